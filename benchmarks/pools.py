"""Where should candidate rules come from? Test risk of K rules from pools of different trees.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/pools.py [--sets wine
    ...] [--splits 3] [--quick]

Every pool uses the same simple forward selection: by the gain of a Newton step with all weights
refitted (logistic or squared loss, a ridge of 1). So the script compares pools, not searches.
Training rows, test rows and measures are those of fronts.py. The recipe of the boosted trees was
chosen on CHOOSE, not on SHOW, among variants of the depth, the rows, columns and smallest leaf of a
tree, and the learning rate.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules.data.datasets import Dataset

sys.path.insert(0, str(Path(__file__).parent))
from fronts import split

CHOOSE = (
    "breast_cancer",
    "tic_tac_toe",
    "titanic",
    "heart",
    "voice",
    "ibm_hr",
    "compas_lire",
    "fico_lire",
    "diabetes",
    "boston",
    "insurance",
    "red_wine_quality",
    "california_housing",
    "bike_day",
)
SHOW = (
    "banknote",
    "liver",
    "telco_churn",
    "magic",
    "friedman1",
    "friedman2",
    "friedman3",
    "used_cars",
    "demographics",
    "life_expectancy",
)
KINDS = ("forest", "boosted_trees", "both")
SIZES = (5, 10, 20, 40)
RIDGE = 1.0
Floats = NDArray[np.float64]


def targets(train: Dataset, test: Dataset) -> tuple[Floats, Floats]:
    """0 and 1, or standardised numbers."""
    if train.task == "regression":
        y, y_test = (np.asarray(data.y, np.float64) for data in (train, test))
        return (y - y.mean()) / y.std(), (y_test - y.mean()) / y.std()
    second = np.unique(train.y)[1]
    return (train.y == second).astype(float), (test.y == second).astype(float)


def slopes(y: Floats, scores: Floats, classes: bool) -> tuple[Floats, Floats]:
    """Negative gradient and curvature of the loss at every row."""
    if not classes:
        return y - scores, np.ones_like(y)
    p = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    return y - p, p * (1 - p)


def refitted(columns: Floats, y: Floats, weights: Floats, classes: bool) -> Floats:
    """Newton's method for the intercept and the weights of the rules."""
    ridge = np.r_[1e-8, np.full(len(weights) - 1, RIDGE)]
    for _ in range(25):
        slope, curvature = slopes(y, columns @ weights, classes)
        step = np.linalg.solve(
            (columns.T * curvature) @ columns + np.diag(ridge), columns.T @ slope - ridge * weights
        )
        weights = weights + step
        if np.abs(step).max() < 1e-4:
            break
    return weights


def forward(
    rules: NDArray[np.float32], y: Floats, classes: bool
) -> dict[int, tuple[list[int], Floats]]:
    """The chosen rules and their weights, the intercept first, for every size in SIZES."""
    chosen: list[int] = []
    columns = np.ones((len(y), 1))
    weights = np.array([np.log(y.mean() / (1 - y.mean())) if classes else y.mean()])
    found = {}
    for size in range(1, min(SIZES[-1], rules.shape[1]) + 1):
        slope, curvature = slopes(y, columns @ weights, classes)
        weighted = (columns.T * curvature).astype(np.float32)
        own, across = curvature.astype(np.float32) @ rules, weighted @ rules
        hessian = weighted @ columns + np.diag(np.r_[1e-8, np.full(size - 1, RIDGE)])
        left = own - np.einsum("ij,ij->j", across, np.linalg.solve(hessian, across))
        gain = (slope.astype(np.float32) @ rules) ** 2 / (np.maximum(left, 1e-3 * own) + RIDGE)
        gain[chosen] = -1
        chosen.append(int(gain.argmax()))
        columns = np.column_stack([columns, rules[:, chosen[-1]]])
        weights = refitted(columns, y, np.append(weights, 0.0), classes)
        if size in SIZES:
            found[size] = (list(chosen), weights)
    return found


def measured(
    name: str, seed: int, kind: Any
) -> tuple[dict[int, tuple[float, float, float]], int, float]:
    """Risk, error and local support by size; rules in the pool and CPU seconds to build it."""
    train, test = split(name, seed)
    classes = train.task != "regression"
    began = time.process_time()
    forest = jr.default_forest(train.X, train.y, kind=kind, classification=classes, seed=seed)
    rules, activations = jr.extract_rules(forest, train.X, activations=True)
    seconds = time.process_time() - began
    held = rules.satisfied(test.X)
    y, y_test = targets(train, test)
    found = {}
    for size, (chosen, weights) in forward(
        activations.dense[activations.pattern].astype(np.float32), y, classes
    ).items():
        scores = weights[0] + held[:, chosen] @ weights[1:]
        if classes:
            p = np.clip(
                1 / (1 + np.exp(-np.clip(scores, -500, 500))), 0.5 / len(y), 1 - 0.5 / len(y)
            )
            risk = float(-np.mean(y_test * np.log(p) + (1 - y_test) * np.log(1 - p)))
            error = float(np.mean((scores > 0) != y_test))
        else:
            risk = error = float(np.mean((y_test - scores) ** 2) / np.var(y_test))
        found[size] = risk, error, float(held[:, chosen].sum(axis=1).mean())
    return found, len(rules), seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one split of two sets")
    arguments = parser.parse_args()
    halves = {"chosen on": CHOOSE, "shown on": SHOW}
    if arguments.sets or arguments.quick:
        halves = {"on": tuple(arguments.sets or ("breast_cancer", "diabetes"))}
    splits = 1 if arguments.quick else arguments.splits
    for title, names in halves.items():
        cells = {
            (kind, name): [measured(name, seed, kind) for seed in range(splits)]
            for kind in KINDS
            for name in names
        }
        print(f"\n{title} {', '.join(names)}; {splits} splits")
        for kind in KINDS:
            own = [cell for name in names for cell in cells[kind, name]]
            print(
                f"{kind}: {np.mean([n for _, n, _ in own]):.0f} rules in "
                f"{np.mean([s for *_, s in own]):.2f} CPU s"
            )
        for at, measure in enumerate(("risk", "error", "local support")):
            print(f"{measure}, ratio to 'forest' (sets on which it is lower)")
            for kind in KINDS[1:]:
                line = ""
                for size in SIZES:
                    ratios = []
                    for name in names:
                        mine, forest = (
                            np.mean(
                                [found[min(size, max(found))][at] for found, *_ in cells[one, name]]
                            )
                            for one in (kind, "forest")
                        )
                        ratios.append(max(mine, 1e-3) / max(forest, 1e-3))
                    lower = sum(ratio < 1 for ratio in ratios)
                    line += f"{np.exp(np.mean(np.log(ratios))):>9.3f} ({lower:>2}/{len(ratios):<2})"
                print(f"  {kind:14}{line}")


if __name__ == "__main__":
    main()
