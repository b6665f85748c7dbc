"""Test risk at a given size: boosting against the other learners of the library, trees, FIGS and EBM.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/fronts.py [--sets wine ...] [--methods CART ...]
        [--splits 5] [--quick] [--only-summary] [--measure risk]

Every cell (set, split, method) is one row per model on the method's path: its size, its risk on the test rows (mean
log-loss with probabilities clipped to 1 / 2n of the training rows, or squared error over the variance of the test
target), its error (share of wrong classes, or the same squared error), seconds. Cells are appended to
results/fronts.csv as they are computed, and are not computed again. --quick: two splits of three sets.

The size is rules + conditions (`jaxrules.complexity`); a split of a tree counts as a rule of one condition, which
favours trees. At a budget C a method is represented by the largest model on its path within C, the constant if there
is none. EBM has no size: it is the ceiling, the same at every budget.

Recipes of boosting are chosen on the sets of CHOOSE and are shown on those of SHOW, the other half.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import jaxrules as jr
from jaxrules.datasets import Dataset

sys.path.insert(0, str(Path(__file__).parent))
from peers import NotRun, python_of

RESULTS = Path(__file__).parent / "results"
CLASSES = (
    "breast_cancer", "banknote", "tic_tac_toe", "heart", "titanic", "liver", "voice", "telco_churn", "ibm_hr",
    "compas_lire", "fico_lire", "magic",
)  # fmt: skip
NUMBERS = (
    "diabetes", "friedman1", "boston", "friedman2", "insurance", "friedman3", "red_wine_quality", "used_cars",
    "california_housing", "demographics", "bike_day", "life_expectancy",
)  # fmt: skip
CHOOSE, SHOW = (CLASSES[::2] + NUMBERS[::2], CLASSES[1::2] + NUMBERS[1::2])
TRAINING_ROWS = 2000
TEST_ROWS = 5000
BUDGETS = (10, 20, 30, 50)
CEILING = "EBM"


class Point(NamedTuple):
    """A model on a path: its size, and what it says of the test rows: P(second class), or numbers."""

    size: float
    says: NDArray[np.float64]


Path_ = Iterator[Point]


def split(name: str, seed: int) -> tuple[Dataset, Dataset]:
    data = jr.datasets.load(name)
    order = np.random.default_rng(seed).permutation(len(data))
    n = min(TRAINING_ROWS, int(0.75 * len(data)))
    return data[np.sort(order[:n])], data[np.sort(order[n : n + TEST_ROWS])]


# The methods: (training rows, test rows, seed) -> the path


def says(model: Any, test: Dataset) -> NDArray[np.float64]:
    if test.task == "regression":
        return np.asarray(jr.predict(model, test.X), np.float64)
    return np.asarray(jr.predict_proba(model, test.X), np.float64)[:, 1]


def points(fits: Iterable[jr.Fit[Any]], test: Dataset) -> Path_:
    return (Point(jr.complexity(fit.model), says(fit.model, test)) for fit in fits)


def boosting(**options: Any) -> Callable[[Dataset, Dataset, int], Path_]:
    """The models within twice the largest budget: a rule is at least one condition."""

    def path(train: Dataset, test: Dataset, seed: int) -> Path_:
        given: dict[str, Any] = {"max_rules": BUDGETS[-1] // 2, "missing": "own_category"} | options
        return points(jr.boosting.path(train.X, train.y, seed=seed, **given), test)

    return path


def lire(train: Dataset, test: Dataset, seed: int) -> Path_:
    rules = jr.extract_rules(jr.default_forest(train.X, train.y, seed=seed), train.X)
    penalties = np.geomspace(0.05, 2e-4, 15)
    given: dict[str, Any] = {"global_penalties": penalties, "rules": rules, "missing": "own_category", "seed": seed}
    return points(jr.lire.path(train.X, train.y, **given), test)


def rulefit(train: Dataset, test: Dataset, seed: int) -> Path_:
    return points(jr.rulefit.path(train.X, train.y, missing="own_category", seed=seed), test)


def glrm(train: Dataset, test: Dataset, seed: int) -> Path_:
    spread = 1.0 if train.task != "regression" else float(np.var(np.asarray(train.y, np.float64)))
    for penalty in np.geomspace(0.1, 1e-3, 8) * spread:
        fit = jr.glrm.fit(
            train.X, train.y, rule_penalty=penalty, debias=True, missing="own_category", time_limit=10, seed=seed
        )
        yield from points([fit], test)


def cart(train: Dataset, test: Dataset, seed: int) -> Path_:
    """Best-first trees of 2, 3, ... leaves; classes by the leaves' shares with one row of each class added."""
    X, X_test = design(train, train), design(train, test)
    for leaves in range(2, BUDGETS[-1] // 2 + 2):
        if train.task == "regression":
            tree: Any = DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=seed).fit(X, train.y)
            yield Point(2 * (tree.get_n_leaves() - 1), tree.predict(X_test))
        else:
            tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=seed).fit(X, train.y)
            rows, share = tree.tree_.n_node_samples, tree.tree_.value[:, 0, 1]
            at = tree.apply(X_test)
            yield Point(2 * (tree.get_n_leaves() - 1), (rows[at] * share[at] + 1) / (rows[at] + 2))


def peer(environment: str, method: str) -> Callable[[Dataset, Dataset, int], Path_]:
    """A program in an environment of its own, see fronts_peers.py."""

    def path(train: Dataset, test: Dataset, seed: int) -> Path_:
        python = python_of(environment)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "data.npz"
            y = (
                np.asarray(train.y, np.float64)
                if train.task == "regression"
                else np.unique(train.y, return_inverse=True)[1]
            )
            np.savez(file, X=design(train, train), y=y, X_test=design(train, test))
            script = str(Path(__file__).with_name("fronts_peers.py"))
            command = [str(python), script, method, train.task, str(file), str(BUDGETS[-1] // 2), str(seed)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotRun(f"{method} ended with code {done.returncode}: {done.stderr.strip()[-200:]}")
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                one = json.loads(line)
                yield Point(one["size"], np.array(one["says"]))

    return path


def design(train: Dataset, data: Dataset) -> NDArray[np.float64]:
    """What other programs are given: numbers with the training median where they are missing, and that they are; a
    column per category."""
    columns: list[NDArray[Any]] = []
    for f, feature in enumerate(train.X.schema.features):
        seen, values, missing = train.X.columns[f], data.X.columns[f], data.X.missing_mask(f)
        if feature.categories is None:
            columns.append(np.where(missing, np.nanmedian(seen), values))
        else:
            columns += [values == code for code in range(len(feature.categories))]
        if train.X.missing_mask(f).any():
            columns.append(missing)
    return np.column_stack(columns).astype(np.float64)


PAPER: dict[str, Any] = {**jr.boosting.PAPER, "max_evaluations": "auto", "max_cut_points": 5}
RECIPES: dict[str, dict[str, Any]] = {
    "boosting": {},
    "boosting, length 3": {"search": "beam", "max_length": 3},
    "boosting, beam": {"search": "beam", "max_length": None},
    "boosting, greedy": {"search": "greedy", "max_length": None},
    "boosting, eliminate": {"search": "beam", "max_length": None, "eliminate": True},
    "boosting, second order": {"search": "beam", "max_length": None, "objective": "second_order"},
    "boosting, any length": {"search": "beam", "max_length": None, "objective": "second_order", "per_unit": False},
    "boosting, paper": PAPER,
}
METHODS: dict[str, Callable[[Dataset, Dataset, int], Path_]] = {
    **{name: boosting(**options) for name, options in RECIPES.items()},
    "CART": cart,
    "GLRM": glrm,
    "LIRE": lire,
    "RuleFit": rulefit,
    "FIGS": peer("imodels", "FIGS"),
    CEILING: peer("interpret", "EBM"),
}


# Cells


def measured(method: str, name: str, seed: int) -> Iterator[dict[str, Any]]:
    """The rows of one cell."""
    train, test = split(name, seed)
    began, used = time.perf_counter(), time.process_time()
    path = list(METHODS[method](train, test, seed))
    times = {"seconds": round(time.perf_counter() - began, 3), "cpu": round(time.process_time() - used, 3)}
    if train.task == "regression":
        y = np.asarray(test.y, np.float64)
        constant = np.full(len(y), np.mean(np.asarray(train.y, np.float64)))
    else:
        labels = np.unique(train.y)
        y = (test.y == labels[1]).astype(float)
        constant = np.full(len(y), np.mean(train.y == labels[1]))
    for size, said in [Point(0, constant), *path]:
        if test.task == "regression":
            risk = error = float(np.mean((y - said) ** 2) / np.var(y))
        else:
            p = np.clip(said, 0.5 / len(train), 1 - 0.5 / len(train))
            risk = float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
            error = float(np.mean((said > 0.5) != y))
        yield {"set": name, "split": seed, "method": method, "size": size, "risk": risk, "error": error, **times}


def run(names: list[str], methods: list[str], splits: int, file: Path) -> None:
    """Compute the cells that are not in the file yet."""
    done = {(row["set"], int(row["split"]), row["method"]) for row in read(file)}
    for seed, name, method in itertools.product(range(splits), names, methods):
        if (name, seed, method) in done:
            continue
        try:
            rows = list(measured(method, name, seed))
        except (NotRun, ValueError) as reason:
            print(f"{name} {seed} {method}: not run: {reason}", flush=True)
            continue
        new = not file.exists()
        with file.open("a", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            if new:
                writer.writeheader()
            writer.writerows(rows)
        print(f"{name} {seed} {method}: {len(rows)} models, {rows[0]['cpu']} CPU s", flush=True)


def read(file: Path) -> list[dict[str, str]]:
    if not file.exists():
        return []
    with file.open() as opened:
        return list(csv.DictReader(opened))


# The summary


def at_budgets(file: Path, measure: str) -> dict[tuple[str, str], NDArray[np.float64]]:
    """By method and set, (splits, budgets): NaN where a split was not computed."""
    cells: dict[tuple[str, str, int], list[tuple[float, float]]] = defaultdict(list)
    for row in read(file):
        cells[row["method"], row["set"], int(row["split"])].append((float(row["size"]), float(row[measure])))
    n_splits = 1 + max(seed for _, _, seed in cells)
    found: dict[tuple[str, str], NDArray[np.float64]] = {}
    for (method, name, seed), path in cells.items():
        table = found.setdefault((method, name), np.full((n_splits, len(BUDGETS)), np.nan))
        for k, budget in enumerate(BUDGETS):
            within = [point for point in path if point[0] <= budget or method == CEILING]
            table[seed, k] = max(within, key=lambda point: point[0])[1]
    return found


def summary(file: Path, names: Iterable[str], measure: str, reference: str) -> None:
    """Against the reference, on the splits that both have: the geometric mean over the sets of the ratio of the mean
    measures, and on how many sets it is below."""
    found = at_budgets(file, measure)
    sets = [name for name in names if (reference, name) in found]
    print(f"\n{measure}, ratio to {reference!r} on {len(sets)} sets (sets on which it is lower)")
    print(f"{'':28}" + "".join(f"{f'C = {budget}':>16}" for budget in BUDGETS))
    for method in METHODS:
        ratios = []
        for name in sets:
            if (method, name) in found:
                mine, theirs = found[method, name], found[reference, name]
                both = ~np.isnan(mine[:, 0]) & ~np.isnan(theirs[:, 0])
                if both.any():
                    ratios.append(
                        np.maximum(mine[both].mean(axis=0), 1e-6) / np.maximum(theirs[both].mean(axis=0), 1e-6)
                    )
        if ratios:
            means = np.exp(np.mean(np.log(ratios), axis=0))
            lower = np.sum(np.array(ratios) < 1, axis=0)
            line = "".join(f"{mean:>9.3f} ({low:>2}/{len(ratios):<2})" for mean, low in zip(means, lower, strict=True))
            print(f"{method:28}{line}")


def picture(file: Path, names: Iterable[str], measure: str, target: Path) -> None:
    """A panel per set: the measure against the size, means over the splits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = at_budgets(file, measure)
    drawn = [name for name in names if any(known == name for _, known in found)]
    columns = 4
    rows = -(-len(drawn) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.2 * columns, 2.4 * rows), squeeze=False)
    for axis, name in zip(axes.flat, drawn, strict=False):
        for method in METHODS:
            if (method, name) in found:
                mean = np.nanmean(found[method, name], axis=0)
                axis.plot(BUDGETS, mean, label=method, lw=2 if method == "boosting" else 1, marker=".")
        axis.set_title(name, fontsize=9)
    for axis in axes.flat[len(drawn) :]:
        axis.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=6, fontsize=8)
    figure.supxlabel("rules + conditions", fontsize=9, y=0.06)
    figure.supylabel(measure, fontsize=9)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=None, help='names; "choose" or "show" for one half')
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only-summary", action="store_true")
    parser.add_argument("--measure", default="risk", choices=("risk", "error"))
    parser.add_argument("--reference", default="boosting")
    parser.add_argument("--file", type=Path, default=RESULTS / "fronts.csv")
    arguments = parser.parse_args()
    for method in arguments.methods:
        if method not in METHODS:
            parser.error(f"unknown method {method!r}; known are {', '.join(METHODS)}")
    halves = {"choose": CHOOSE, "show": SHOW}
    names = arguments.sets or [*CHOOSE, *SHOW]
    names = [name for given in names for name in halves.get(given, (given,))]
    splits = arguments.splits
    if arguments.quick:
        names, splits = ["breast_cancer", "banknote", "diabetes"], 2
    arguments.file.parent.mkdir(exist_ok=True)
    if not arguments.only_summary:
        run(names, arguments.methods, splits, arguments.file)
    for title, half in (("chosen on", CHOOSE), ("shown on", SHOW)):
        part = [name for name in names if name in half]
        if part:
            print(f"\n{title} {', '.join(part)}", end="")
            summary(arguments.file, part, arguments.measure, arguments.reference)
    picture(arguments.file, names, arguments.measure, arguments.file.with_suffix(".png"))


if __name__ == "__main__":
    main()
