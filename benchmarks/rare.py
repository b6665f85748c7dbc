"""Rare positives: boosting beside trees of the same size, FIGS and EBM.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/rare.py [--sets NAME ...]
        [--splits 5] [--methods boosting ...] [--only-summary]

The sets: page_blocks, each class against the rest; 20 000 rows of five normal columns whose first
is above its 99th or 99.9th percentile; and five public sets in which 1 to 12 % are positive. A
split trains on a stratified half of the rows, at most 10 000, and tests on the rest.

A cell (set, split, method) has the average precision and the log-loss of the test rows, with
probabilities of at least 1 / 2n of the n training rows, over that of the best constant. "CART" and
"FIGS" have half as many splits as boosting's model of ten rules has rules and conditions: a split
counts as a rule of one condition, as in fronts.py, which favours trees. "boosting" is the default;
EBM, by default without pairs, has no such size. Cells are appended to results/rare.csv and are not
computed again.

The table gives means over splits with their standard errors, and on how many sets boosting of ten
rules differs from a method by more than two standard errors of the paired difference.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import jaxrules as jr

sys.path.insert(0, str(Path(__file__).parent))
from peers import PROGRAMS, said
from rows_csv import add, known

RESULTS = Path(__file__).parent / "results" / "rare.csv"
MOST = 10_000
Floats = NDArray[np.float64]
Problem = tuple[Floats, NDArray[np.int64]]


def against_rest(name: str, positive: object) -> Problem:
    """One class of a known data set."""
    data = jr.datasets.load(name)
    return np.asarray(data.X, np.float64), (np.asarray(data.y) == positive).astype(np.int64)


def tail(percentile: float) -> Problem:
    """A column above a percentile of its own, among four others."""
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    return X, (X[:, 0] > np.percentile(X[:, 0], percentile)).astype(np.int64)


def good_wine() -> Problem:
    """Quality of at least 8: 18 of 1599."""
    data = jr.datasets.load("red_wine_quality")
    return np.asarray(data.X, np.float64), (np.asarray(data.y) >= 8).astype(np.int64)


SETS: dict[str, Callable[[], Problem]] = {
    **{f"page_blocks {k}": partial(against_rest, "page_blocks", k) for k in (2, 3, 4, 5)},
    "page_blocks, not 1": lambda: negated(against_rest("page_blocks", 1)),
    "tail 1 %": lambda: tail(99),
    "tail .1 %": lambda: tail(99.9),
    "red wine, 8 or more": good_wine,
    "dry_bean BOMBAY": lambda: against_rest("dry_bean", "BOMBAY"),
    "cardio 3": lambda: against_rest("cardio", 3),
    "digits 8": lambda: against_rest("digits", 8),
    "bank": lambda: against_rest("bank", 0),
}


def negated(problem: Problem) -> Problem:
    """The other class as the positive one."""
    X, y = problem
    return X, 1 - y


# Methods: probabilities of the positives among the test rows, and the size


def boosting(X: Floats, y: NDArray[np.int64], X_test: Floats, **given: Any) -> tuple[Floats, int]:
    model = jr.boosting.fit(X, y, **given).model
    return np.asarray(jr.predict_proba(model, X_test))[:, 1], int(jr.complexity(model))


def cart(X: Floats, y: NDArray[np.int64], X_test: Floats, splits: int) -> tuple[Floats, int]:
    tree = DecisionTreeClassifier(max_leaf_nodes=splits + 1, random_state=0).fit(X, y)
    return tree.predict_proba(X_test)[:, 1], 2 * (tree.get_n_leaves() - 1)


def peer(environment: str, name: str) -> Callable[..., tuple[Floats, int]]:
    """The largest model of a program within so many splits."""

    def fitted(X: Floats, y: NDArray[np.int64], X_test: Floats, splits: int) -> tuple[Floats, int]:
        arrays = {"X": X, "y": y, "X_test": X_test}
        options = f'{{"sizes of": "{name}", "most": {splits}, "seed": 0}}'
        last = said(environment, PROGRAMS, arrays, environment, "binary", options)[-1]
        return np.asarray(last["says"]), int(last["size"])

    return fitted


TEN = "boosting, ten rules"
METHODS: dict[str, Callable[..., tuple[Floats, int]]] = {
    TEN: lambda X, y, X_test, _: boosting(X, y, X_test, max_rules=10),
    "boosting": lambda X, y, X_test, _: boosting(X, y, X_test),
    "CART": cart,
    "FIGS": peer("imodels", "FIGS"),
    "EBM": peer("interpret", "EBM"),
}


# Cells


def measured(name: str, seed: int, method: str, size: int) -> dict[str, Any]:
    """A cell; `size` is that of boosting of ten rules on the same split."""
    X, y = SETS[name]()
    n = min(MOST, len(y) // 2)
    X, X_test, y, y_test = train_test_split(X, y, train_size=n, stratify=y, random_state=seed)
    p, size = METHODS[method](X, y, X_test, max(1, round(size / 2)))
    least, share = 1 / (2 * n), y.mean()
    p, of_constant = np.clip(p, least, 1 - least), np.clip(share, least, 1 - least)
    loss, constant = (
        -np.mean(np.log(np.where(y_test == 1, one, 1 - one))) for one in (p, of_constant)
    )
    return {
        "set": name, "split": seed, "method": method, "positives": int(y.sum() + y_test.sum()),
        "precision": average_precision_score(y_test, p), "loss": loss / constant, "size": size,
    }  # fmt: skip


# The table


def told(values: list[float]) -> str:
    mean = f"{np.mean(values):.3f}"
    if len(values) > 1:
        mean += f" ± {np.std(values, ddof=1) / len(values) ** 0.5:.3f}"
    return mean.replace("0.", ".")


def summary(splits: int) -> None:
    cells: dict[tuple[str, str], dict[int, dict[str, str]]] = defaultdict(dict)
    for row in known(RESULTS):
        if int(row["split"]) < splits:
            cells[row["set"], row["method"]][int(row["split"])] = row
    for measure in ("precision", "loss"):
        print(
            f"\n| {measure} | positives | {' | '.join(METHODS)} |\n|---|---|{'---|' * len(METHODS)}"
        )
        for name in SETS:
            first = next(iter(cells[name, TEN].values()), None)
            if first is None:
                continue
            each = [
                told([float(row[measure]) for row in cells[name, method].values()])
                if cells[name, method]
                else ""
                for method in METHODS
            ]
            print(f"| {name} | {first['positives']} | {' | '.join(each)} |")
        sign = 1 if measure == "precision" else -1
        for method in list(METHODS)[1:]:
            behind, ahead = [], []
            for name in SETS:
                own, other = cells[name, TEN], cells[name, method]
                gains = [
                    sign * (float(own[k][measure]) - float(other[k][measure]))
                    for k in own.keys() & other.keys()
                ]
                if len(gains) < 2:
                    continue
                error = np.std(gains, ddof=1) / len(gains) ** 0.5
                if abs(np.mean(gains)) > 2 * error:
                    (ahead if np.mean(gains) > 0 else behind).append(name)
            print(f"{TEN} beside {method}: ahead {len(ahead)}, behind {len(behind)}: {behind}")
    for name in SETS:
        sizes = {
            method: round(
                float(np.mean([float(row["size"]) for row in cells[name, method].values()])), 1
            )
            for method in METHODS
            if cells[name, method]
        }
        print(f"sizes, {name}: {sizes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only-summary", action="store_true")
    given = parser.parse_args()
    done = {
        (row["set"], int(row["split"]), row["method"]): int(row["size"]) for row in known(RESULTS)
    }
    for seed in range(0 if given.only_summary else given.splits):
        for name in given.sets:
            for method in dict.fromkeys((TEN, *given.methods)):
                if (name, seed, method) not in done:
                    size = 0 if method == TEN else done[name, seed, TEN]
                    row = measured(name, seed, method, size)
                    done[name, seed, method] = row["size"]
                    add(RESULTS, row)
    summary(given.splits)


if __name__ == "__main__":
    main()
