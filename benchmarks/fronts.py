"""Test risk at a given size: the ensembles of the library, trees, FIGS, other
RuleFits, boosted trees and EBM.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/fronts.py [--sets wine
    ...] [--methods CART ...]
        [--splits 5] [--quick] [--only-summary] [--measure risk] [--axis support]

Every cell (set, split, method) has one row per model on the method's path:

- its size, support and local support;
- its risk on the test rows (mean log-loss with probabilities clipped to 1 / 2n of the training
  rows, or squared error over the variance of the test target), its error (share of wrong classes,
  or the same squared error) and one minus the AUC;
- CPU seconds;
- the validation risk: that of the model at the same place of the path, fitted to three quarters of
  the training rows and measured on the remaining quarter.

Cells are appended to results/fronts.csv as they are computed, and are not computed again. --quick:
two splits of three sets. The sets adult_folds, bank_folds, heart_folds, fico_folds and compas_folds
use the ten folds of the LIRE paper as their splits, with all of their rows.

The axis is one of

- "size": rules + conditions (`jaxrules.complexity`; a split of a tree counts as a rule of one
  condition, which favours trees);
- "support": rules;
- "local": the rules that hold for a row on average.

At a given budget, a method is represented by the model on its path, within the budget, with the
lowest validation risk; if there is none, by the constant. EBM and boosted trees have no size: they
are ceilings, the same at every budget.

Recipes of boosting are chosen on the sets of CHOOSE and shown on those of SHOW, the other half.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
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
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import jaxrules as jr
from jaxrules.datasets import Dataset

sys.path.insert(0, str(Path(__file__).parent))
from peers import NotRun, python_of

RESULTS = Path(__file__).parent / "results"
CLASSES = (
    "breast_cancer",
    "banknote",
    "tic_tac_toe",
    "heart",
    "titanic",
    "liver",
    "voice",
    "telco_churn",
    "ibm_hr",
    "compas_lire",
    "fico_lire",
    "magic",
)
NUMBERS = (
    "diabetes",
    "friedman1",
    "boston",
    "friedman2",
    "insurance",
    "friedman3",
    "red_wine_quality",
    "used_cars",
    "california_housing",
    "demographics",
    "bike_day",
    "life_expectancy",
)
CHOOSE, SHOW = (CLASSES[::2] + NUMBERS[::2], CLASSES[1::2] + NUMBERS[1::2])
TRAINING_ROWS = 2000
TEST_ROWS = 5000
BUDGETS = (10, 20, 30, 50)
AXES = {"size": BUDGETS, "support": (5, 10, 20, 40), "local": (1, 2, 4, 8)}
MEASURES = ("risk", "error", "inverse_auc")
LEAST = 1e-3
"""Smaller measures are raised to this value: a ratio of two tiny measures means nothing."""
CEILINGS = ("EBM", "boosted trees")
PUBLISHED_FOLDS = {
    "adult_folds": "adult_train",
    "bank_folds": "bank",
    "heart_folds": "heart",
    "fico_folds": "fico_lire",
    "compas_folds": "compas_lire",
}


class Point(NamedTuple):
    """A model on a path: size, predictions for the test rows (P(second
    class) or numbers), rules.
    """

    size: float
    says: NDArray[np.float64]
    support: float = np.nan
    local: float = np.nan


Path_ = Iterator[Point]


def split(name: str, seed: int) -> tuple[Dataset, Dataset]:
    data = jr.datasets.load(PUBLISHED_FOLDS.get(name, name))
    if name in PUBLISHED_FOLDS:
        inside, outside = list(StratifiedKFold(10).split(data.y, data.y))[seed]
        return data[inside], data[outside]
    order = np.random.default_rng(seed).permutation(len(data))
    n = min(TRAINING_ROWS, int(0.75 * len(data)))
    return data[np.sort(order[:n])], data[np.sort(order[n : n + TEST_ROWS])]


# The methods: (training rows, test rows, seed) -> the path


def says(model: Any, test: Dataset) -> NDArray[np.float64]:
    if test.task == "regression":
        return np.asarray(jr.predict(model, test.X), np.float64)
    return np.asarray(jr.predict_proba(model, test.X), np.float64)[:, 1]


def points(fits: Iterable[jr.Fit[Any]], test: Dataset) -> Path_:
    for fit in fits:
        model = fit.model
        yield Point(
            jr.complexity(model),
            says(model, test),
            jr.support(model),
            jr.local_support(model, test.X),
        )


def boosting(**options: Any) -> Callable[[Dataset, Dataset, int], Path_]:
    """The models within twice the largest budget: a rule has at least one condition."""

    def path(train: Dataset, test: Dataset, seed: int) -> Path_:
        given: dict[str, Any] = {"max_rules": BUDGETS[-1] // 2, "missing": "own_category"}
        given |= {"l2_penalty": 1.0} | options  # the same ridge for all recipes
        return points(jr.boosting.path(train.X, train.y, seed=seed, **given), test)

    return path


def lire(**options: Any) -> Callable[[Dataset, Dataset, int], Path_]:
    """At most eleven penalties, from 60 times the default down, each
    starting from the model before.

    Ends beyond the budgets.
    """
    most = max(AXES["support"])

    def path(train: Dataset, test: Dataset, seed: int) -> Path_:
        kind, given = (
            options.get("rules", "boosted_trees"),
            {"missing": "own_category", "seed": seed} | options,
        )
        forest = jr.default_forest(
            train.X, train.y, kind=kind, classification=train.task != "regression", seed=seed
        )
        given["rules"] = jr.extract_rules(forest, train.X, activations=True)
        price = jr.lire.fit(train.X, train.y, time_limit=0, **given).details["global_penalty"]
        model = None
        for share in (60, 25, 12, *np.geomspace(6, 0.15, 8)):
            fit = jr.lire.fit(
                train.X,
                train.y,
                global_penalty=share * price,
                start=model,
                max_rules=most + 10,
                restarts=0,
                **given,
            )
            yield from points([fit], test)
            model = fit.model
            if jr.support(model) > most + 5:
                return

    return path


def rulefit(train: Dataset, test: Dataset, seed: int) -> Path_:
    return points(jr.rulefit.path(train.X, train.y, missing="own_category", seed=seed), test)


def glrm(train: Dataset, test: Dataset, seed: int) -> Path_:
    spread = 1.0 if train.task != "regression" else float(np.var(np.asarray(train.y, np.float64)))
    for penalty in np.geomspace(0.1, 1e-3, 8) * spread:
        fit = jr.glrm.fit(
            train.X,
            train.y,
            rule_penalty=penalty,
            debias=True,
            missing="own_category",
            time_limit=10,
            seed=seed,
        )
        yield from points([fit], test)


def boosted(train: Dataset, test: Dataset, seed: int) -> Path_:
    """300 trees of scikit-learn's HistGradientBoosting, a ceiling."""
    X, X_test = design(train, train), design(train, test)
    given: dict[str, Any] = {
        "max_iter": 300,
        "early_stopping": False,
        "max_depth": 3,
        "random_state": seed,
    }
    if train.task == "regression":
        yield Point(0, HistGradientBoostingRegressor(**given).fit(X, train.y).predict(X_test))
    else:
        yield Point(
            0, HistGradientBoostingClassifier(**given).fit(X, train.y).predict_proba(X_test)[:, 1]
        )


def cart(train: Dataset, test: Dataset, seed: int) -> Path_:
    """Best-first trees of 2, 3, ... leaves; probabilities count one more row of each class."""
    X, X_test = design(train, train), design(train, test)
    for leaves in range(2, BUDGETS[-1] // 2 + 2):
        if train.task == "regression":
            tree: Any = DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=seed).fit(
                X, train.y
            )
            yield Point(2 * (tree.get_n_leaves() - 1), tree.predict(X_test))
        else:
            tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=seed).fit(X, train.y)
            rows, share = tree.tree_.n_node_samples, tree.tree_.value[:, 0, 1]
            at = tree.apply(X_test)
            yield Point(2 * (tree.get_n_leaves() - 1), (rows[at] * share[at] + 1) / (rows[at] + 2))


def peer(environment: str, method: str) -> Callable[[Dataset, Dataset, int], Path_]:
    """A peer program in its own environment; see fronts_peers.py."""

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
            command = [
                str(python),
                script,
                method,
                train.task,
                str(file),
                str(BUDGETS[-1] // 2),
                str(seed),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotRun(
                f"{method} ended with code {done.returncode}: {done.stderr.strip()[-200:]}"
            )
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                one = json.loads(line)
                yield Point(one["size"], np.array(one["says"]), one["support"], one["local"])

    return path


def design(train: Dataset, data: Dataset) -> NDArray[np.float64]:
    """What other programs receive: numbers, and a column per category.

    Missing numbers become the training median, with a column that marks them.
    """
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
    "boosting, default ridge": {"l2_penalty": None},
    "boosting": {},
    "boosting, length 3": {"search": "beam", "max_length": 3},
    "boosting, beam": {"search": "beam", "max_length": None},
    "boosting, greedy": {"search": "greedy", "max_length": None},
    "boosting, eliminate": {"search": "beam", "max_length": None, "eliminate": True},
    "boosting, second order": {"search": "beam", "max_length": None, "objective": "second_order"},
    "boosting, any length": {
        "search": "beam",
        "max_length": None,
        "objective": "second_order",
        "per_unit": False,
    },
    "boosting, paper": PAPER,
}
METHODS: dict[str, Callable[[Dataset, Dataset, int], Path_]] = {
    **{name: boosting(**options) for name, options in RECIPES.items()},
    "CART": cart,
    "GLRM": glrm,
    "LIRE": lire(l2_penalty=1.0),
    "LIRE, ridge 4": lire(l2_penalty=4.0),
    "LIRE, paper": lire(**jr.lire.PAPER),
    "RuleFit": rulefit,
    "RuleFit (imodels)": peer("imodels", "RuleFit"),
    "BoostedRules (imodels)": peer("imodels", "BoostedRules"),
    "FIGS": peer("imodels", "FIGS"),
    "EBM": peer("interpret", "EBM"),
    "boosted trees": boosted,
}


# Cells


def measured(method: str, name: str, seed: int) -> Iterator[dict[str, Any]]:
    """The rows of one cell."""
    train, test = split(name, seed)
    began, used = time.perf_counter(), cpu_seconds()
    path = [Point(0, constant(train, test), 0, 0), *METHODS[method](train, test, seed)]
    times = {
        "seconds": round(time.perf_counter() - began, 3),
        "cpu": round(cpu_seconds() - used, 3),
    }
    outside = np.random.default_rng(seed).permutation(len(train)) < len(train) // 4
    inner, validation = train[~outside], train[outside]
    chosen_by = [Point(0, constant(inner, validation))]
    if method not in CEILINGS:  # they have one model, at every budget
        chosen_by += METHODS[method](inner, validation, seed)
    for i, point in enumerate(path):
        held_out = (
            measures(train, validation, chosen_by[i].says)["risk"] if i < len(chosen_by) else np.nan
        )
        yield {
            "set": name,
            "split": seed,
            "method": method,
            "size": point.size,
            "support": point.support,
            "local": point.local,
            **measures(train, test, point.says),
            "validation": held_out,
            **times,
        }


def cpu_seconds() -> float:
    """CPU seconds of this process and of the programs that it ran."""
    return sum(os.times()[:4])


def constant(train: Dataset, test: Dataset) -> NDArray[np.float64]:
    if train.task == "regression":
        return np.full(len(test), np.mean(np.asarray(train.y, np.float64)))
    return np.full(len(test), np.mean(train.y == np.unique(train.y)[1]))


def measures(train: Dataset, test: Dataset, said: NDArray[np.float64]) -> dict[str, float]:
    """The measures of a model's predictions for the test rows."""
    if test.task == "regression":
        y = np.asarray(test.y, np.float64)
        return dict.fromkeys(MEASURES, float(np.mean((y - said) ** 2) / np.var(y)))
    y = (test.y == np.unique(train.y)[1]).astype(float)
    p = np.clip(said, 0.5 / len(train), 1 - 0.5 / len(train))
    return {
        "risk": float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))),
        "error": float(np.mean((said > 0.5) != y)),
        "inverse_auc": 1 - float(roc_auc_score(y, said)),
    }


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


def at_budgets(file: Path, measure: str, axis: str) -> dict[tuple[str, str], NDArray[np.float64]]:
    """By method and set, an array (splits, budgets): NaN where a split was not computed."""
    cells: dict[tuple[str, str, int], list[tuple[float, float, float]]] = defaultdict(list)
    for row in read(file):
        figures = [float(row[name]) for name in (axis, "validation", measure)]
        cells[row["method"], row["set"], int(row["split"])].append(
            (figures[0], figures[1], figures[2])
        )
    n_splits = 1 + max(seed for _, _, seed in cells)
    found: dict[tuple[str, str], NDArray[np.float64]] = {}
    for (method, name, seed), path in cells.items():
        table = found.setdefault((method, name), np.full((n_splits, len(AXES[axis])), np.nan))
        if method in CEILINGS:
            table[seed] = path[-1][2]
            continue
        if (
            len(path) > 1 and np.isnan([point[0] for point in path[1:]]).all()
        ):  # has no such size but as a constant
            del found[method, name]
            continue
        for k, budget in enumerate(AXES[axis]):
            within = [point for point in path if point[0] <= budget and not np.isnan(point[1])]
            table[seed, k] = min(within, key=lambda point: point[1])[2]
    return found


def summary(file: Path, names: Iterable[str], measure: str, axis: str, reference: str) -> None:
    """Print the comparison with the reference, on the splits that both have.

    The figures are ratios of the mean measures (at least `LEAST`): the geometric mean over the
    sets, the median, and the number of sets on which the ratio is below 1.
    """
    found = at_budgets(file, measure, axis)
    sets = [name for name in names if (reference, name) in found]
    print(f"\n{measure}, ratio to {reference!r}: mean; median (sets on which it is lower / sets)\n")
    print(
        f"| {axis} | "
        + " | ".join(map(str, AXES[axis]))
        + " | splits |\n|"
        + "---|" * (2 + len(AXES[axis]))
    )
    for method in METHODS:
        ratios, splits = [], 0
        for name in sets:
            if (method, name) in found:
                mine, theirs = found[method, name], found[reference, name]
                both = ~np.isnan(mine[:, 0]) & ~np.isnan(theirs[:, 0])
                splits += int(both.sum())
                if both.any():
                    means = (np.maximum(one[both].mean(axis=0), LEAST) for one in (mine, theirs))
                    ratios.append(np.divide(*means))
        if ratios:
            mean, middle = np.exp(np.mean(np.log(ratios), axis=0)), np.median(ratios, axis=0)
            parts = zip(mean, middle, np.sum(np.array(ratios) < 1, axis=0), strict=True)
            line = " | ".join(
                f"{one:.2f}; {half:.2f} ({low}/{len(ratios)})" for one, half, low in parts
            )
            print(f"| {method} | {line} | {splits} |")


def picture(
    file: Path,
    names: list[str],
    methods: list[str],
    measure: str,
    axis: str,
    reference: str,
    target: Path,
) -> None:
    """One panel per set: the measure against the size, averaged over the splits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "jaxrules"
    found = at_budgets(file, measure, axis)
    drawn = [name for name in names if any(known == name for _, known in found)]
    methods = [method for method in methods if any((method, name) in found for name in drawn)]
    handles: dict[str, Any] = {}
    columns = 4
    rows = -(-len(drawn) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.2 * columns, 2.4 * rows), squeeze=False)
    for panel, name in zip(axes.flat, drawn, strict=False):
        for color, method in enumerate(methods):
            if (method, name) in found:
                mean = np.nanmean(found[method, name], axis=0)
                style: dict[str, Any] = {"ls": ":"} if method in CEILINGS else {"marker": "."}
                style |= {"color": f"C{color}", "lw": 2.5 if method == reference else 1}
                (handles[method],) = panel.plot(AXES[axis], mean, **style)
        panel.set_title(name, fontsize=9)
    for panel in axes.flat[len(drawn) :]:
        panel.axis("off")
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=8, fontsize=8)
    words = {"size": "rules + conditions", "support": "rules", "local": "rules that hold for a row"}
    figure.supxlabel(words[axis], fontsize=9, y=0.06)
    figure.supylabel(measure, fontsize=9)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sets", nargs="*", default=None, help='names; "choose" or "show" for one half'
    )
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only-summary", action="store_true")
    parser.add_argument("--measure", default="risk", choices=MEASURES)
    parser.add_argument("--axis", default="size", choices=AXES)
    parser.add_argument("--reference", default="boosting")
    parser.add_argument("--picture", type=Path, default=None, help="by default beside the file")
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
    for title, half in (
        ("all of", CHOOSE + SHOW),
        ("chosen on", CHOOSE),
        ("shown on", SHOW),
        ("folds of", tuple(PUBLISHED_FOLDS)),
    ):
        part = [name for name in names if name in half]
        if arguments.measure != "risk":  # of numbers there is only the one
            part = [name for name in part if name not in NUMBERS]
        if part:
            print(f"\n{title} {', '.join(part)}", end="")
            summary(arguments.file, part, arguments.measure, arguments.axis, arguments.reference)
    known = (arguments.measure, arguments.axis, arguments.reference)
    target = arguments.picture or arguments.file.with_name(f"fronts-{known[0]}-{known[1]}.png")
    picture(arguments.file, names, arguments.methods, *known, target)


if __name__ == "__main__":
    main()
