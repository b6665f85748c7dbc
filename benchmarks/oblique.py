"""Rules on linear combinations of columns: test risk at a given complexity.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/oblique.py [--sets wine ...]
        [--methods CART ...] [--splits 2] [--only-summary] [--reference boosting]

The sets of fronts.py, or others, with at most 800 training rows; boosting with `max_nonzeros` 1, 2,
3 and 5, with 1 and 3 also with `linear_terms`, LLTBoost, L1-penalised linear models and CART.
Complexity is the papers': rules + conditions +
columns that each weighs; a split of a tree counts as a rule with one condition, and a coefficient
of a linear model as 1. At a given budget a method is represented by the largest model of its path
within the budget, without any choice by held-out rows.

Every model of every cell (set, split, method) is a row of results/oblique.csv. Cells in the file
are not computed again.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fronts
import numpy as np

import jaxrules as jr
from jaxrules.data.datasets import Dataset

BUDGETS = (10, 20, 30, 45)
RULES, TERMS = 15, 25
ROWS = 800
Cell = Iterator[tuple[float, Any]]


def boosting(max_nonzeros: int, **options: Any) -> Callable[[Dataset, Dataset, int], Cell]:
    def path(train: Dataset, test: Dataset, seed: int) -> Cell:
        given: dict[str, Any] = {"missing": "own_category", "seed": seed, "max_rules": RULES}
        given |= {"max_nonzeros": max_nonzeros, **options}
        for fit in jr.boosting.path(train.X, train.y, **given):
            yield jr.complexity(fit.model, "nonzeros"), fronts.says(fit.model, test)

    return path


def lltboost(train: Dataset, test: Dataset, seed: int) -> Cell:
    for fit in jr.lltboost.path(
        train.X, train.y, max_rules=RULES, missing="own_category", seed=seed
    ):
        yield jr.complexity(fit.model, "nonzeros"), fronts.says(fit.model, test)


def linear(train: Dataset, test: Dataset, seed: int) -> Cell:
    for point in fronts.linear(train, test, seed):
        yield point.size, point.says


def cart(train: Dataset, test: Dataset, seed: int) -> Cell:
    for point in fronts.cart(train, test, seed):  # a split is a rule, a condition and a column
        yield 1.5 * point.size, point.says


METHODS: dict[str, Callable[[Dataset, Dataset, int], Cell]] = {
    "boosting": boosting(1),
    "oblique 5": boosting(5),
    "oblique 3": boosting(3),
    "oblique 2": boosting(2),
    "linear terms": boosting(1, linear_terms=True, max_rules=TERMS),
    "linear terms, oblique 3": boosting(3, linear_terms=True, max_rules=TERMS),
    "LLTBoost": lltboost,
    "L1 linear": linear,
    "CART": cart,
}


def split(name: str, seed: int) -> tuple[Dataset, Dataset]:
    """As in fronts.py, with a random part of the training rows."""
    train, test = fronts.split(name, seed)
    some = np.random.default_rng(seed).permutation(len(train))[:ROWS]
    return train[np.sort(some)], test


def run(names: list[str], methods: list[str], splits: int, file: Path) -> None:
    done = {(row["set"], row["split"], row["method"]) for row in fronts.read(file)}
    for seed, name, method in itertools.product(range(splits), names, methods):
        if (name, str(seed), method) in done:
            continue
        train, test = split(name, seed)
        began = time.process_time()
        path = [(0.0, fronts.constant(train, test)), *METHODS[method](train, test, seed)]
        seconds = round(time.process_time() - began, 3)
        new = not file.exists()
        with file.open("a", newline="") as out:
            writer = csv.writer(out)
            if new:
                writer.writerow(("set", "split", "method", "complexity", "risk", "seconds"))
            for size, said in path:
                risk = fronts.measures(train, test, said)["risk"]
                writer.writerow((name, seed, method, size, risk, seconds))
        print(name, seed, method, seconds, flush=True)


def summary(names: list[str], file: Path, reference: str) -> None:
    """Geometric means over the sets of risk over that of the reference, with standard errors, and
    the sets on which it is lower.
    """
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    for row in fronts.read(file):
        if row["set"] in names:
            key = row["method"], row["set"], row["split"]
            found[key].append((float(row["complexity"]), float(row["risk"])))
            seconds[row["method"]].append(float(row["seconds"]))
    risks: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for (method, name, _), path in found.items():
        at = [max((size, k) for k, (size, _) in enumerate(path) if size <= c)[1] for c in BUDGETS]
        risks[method, name].append([max(path[k][1], fronts.LEAST) for k in at])
    print(f"\n| complexity, {len(names)} sets | " + " | ".join(map(str, BUDGETS)) + " | CPU s |")
    print("|---" * (len(BUDGETS) + 2) + "|")
    for method in METHODS:
        both = [name for name in names if (method, name) in risks and (reference, name) in risks]
        if len(both) < 2:
            continue
        logs = np.log(
            [np.mean(risks[method, n], 0) / np.mean(risks[reference, n], 0) for n in both]
        )
        error = logs.std(axis=0, ddof=1) / np.sqrt(len(both))
        cells = [
            f"{np.exp(m):.3f} ± {np.exp(m) * e:.3f} ({w})"
            for m, e, w in zip(logs.mean(axis=0), error, (logs < 0).sum(axis=0), strict=True)
        ]
        print(f"| {method} | " + " | ".join(cells) + f" | {np.median(seconds[method]):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="*", default=[*fronts.CLASSES, *fronts.NUMBERS])
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--only-summary", action="store_true")
    parser.add_argument("--reference", default="boosting", choices=list(METHODS))
    parser.add_argument("--file", type=Path, default=fronts.RESULTS / "oblique.csv")
    arguments = parser.parse_args()
    arguments.file.parent.mkdir(exist_ok=True)
    if not arguments.only_summary:
        run(arguments.sets, arguments.methods, arguments.splits, arguments.file)
    summary(arguments.sets, arguments.file, arguments.reference)


if __name__ == "__main__":
    sys.exit(main())
