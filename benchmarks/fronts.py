"""Test risk at a given size: the ensembles of the library, L1-penalised linear models, trees, FIGS,
other RuleFits, boosted trees and EBM.

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

Cells are appended to results/fronts.csv as they are computed, and are not computed again. The
methods are those of SHOWN unless others are named; the sets are 24 and 18 small noisy ones.
--quick: two splits of three sets. The sets adult_folds, bank_folds, heart_folds, fico_folds and
compas_folds use the ten folds of the LIRE paper as their splits, with all of their rows.

The axis is one of

- "size": rules + conditions + linear terms; a condition on a linear combination counts its columns,
  and a split of a tree counts as a rule of one condition, which favours trees;
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
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, lasso_path
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from jaxrules.models.metrics import used_rules

sys.path.insert(0, str(Path(__file__).parent))
from peers import PROGRAMS, NotRun, said

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
SMALL = (
    "small_australian",
    "small_bands",
    "small_breast",
    "small_bupa",
    "small_crx",
    "small_housevotes",
    "small_sonar",
    "small_monk_2",
    "small_chile",
    "small_benefits",
    "small_birthwt",
    "small_participation",
    "small_housing",
    "small_hedonic",
    "small_fair",
    "small_quine",
    "small_cpus",
    "small_caschool",
)
CHOOSE, SHOW = (CLASSES[::2] + NUMBERS[::2], CLASSES[1::2] + NUMBERS[1::2])
TRAINING_ROWS = 2000
TEST_ROWS = 5000
BUDGETS = (10, 20, 30, 50)
AXES = {"size": BUDGETS, "support": (5, 10, 20, 40), "local": (1, 2, 4, 8)}
MOST_RULES = max(AXES["support"]) + 5
"""Paths of penalties end with a model of more rules."""
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
            jr.complexity(model, "nonzeros") - int(used_rules(model).propositions.sum()),
            says(model, test),
            jr.support(model),
            jr.local_support(model, test.X),
        )


def boosting(**options: Any) -> Callable[[Dataset, Dataset, int], Path_]:
    """The models within twice the largest budget: a rule has at least one condition."""

    def path(train: Dataset, test: Dataset, seed: int) -> Path_:
        given: dict[str, Any] = {"max_rules": BUDGETS[-1] // 2, "missing": "own_category"}
        return points(jr.boosting.path(train.X, train.y, seed=seed, **given | options), test)

    return path


def lire(**options: Any) -> Callable[[Dataset, Dataset, int], Path_]:
    """At most eleven penalties, from 60 times the default down, each
    starting from the model before.

    Ends beyond the budgets.
    """

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
                max_rules=MOST_RULES + 5,
                restarts=0,
                **given,
            )
            yield from points([fit], test)
            model = fit.model
            if jr.support(model) > MOST_RULES:
                return

    return path


def rulefit(train: Dataset, test: Dataset, seed: int) -> Path_:
    return points(jr.rulefit.path(train.X, train.y, missing="own_category", seed=seed), test)


def glrm(train: Dataset, test: Dataset, seed: int) -> Path_:
    """Penalties from large to small. Ends beyond the budgets."""
    spread = 1.0 if train.task != "regression" else float(np.var(np.asarray(train.y, np.float64)))
    for penalty in np.geomspace(0.1, 1e-3, 12) * spread:
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
        if jr.support(fit.model) > MOST_RULES:
            return


def lltboost(train: Dataset, test: Dataset, seed: int) -> Path_:
    path = jr.lltboost.path(train.X, train.y, max_rules=15, missing="own_category", seed=seed)
    return points(path, test)


def ltrnet(train: Dataset, test: Dataset, seed: int) -> Path_:
    """A network for every number of rules."""
    for most in (1, 2, 3, 5, 8, 12, 18):
        fit = jr.ltrnet.fit(train.X, train.y, max_rules=most, missing="own_category", seed=seed)
        yield from points([fit], test)


def drnet(train: Dataset, test: Dataset, seed: int) -> Path_:
    """Penalties from large to small; it is for classes."""
    if train.task == "regression":
        raise NotRun("DRNet is for classes")
    penalties = np.geomspace(0.1, 1e-3, 5).tolist()
    path = jr.drnet.path(
        train.X, train.y, literal_penalties=penalties, missing="own_category", seed=seed
    )
    return points(path, test)


def linear(train: Dataset, test: Dataset, seed: int) -> Path_:
    """The path of the L1 penalty, columns standardised; a coefficient has size 1."""
    X, X_test = design(train, train), design(train, test)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    kept = scale > 0
    X, X_test = ((one[:, kept] - centre[kept]) / scale[kept] for one in (X, X_test))
    if train.task == "regression":
        y = np.asarray(train.y, np.float64)
        _, coefficients, _ = lasso_path(X, y - y.mean(), n_alphas=60)
        for one in coefficients.T:
            yield Point(np.count_nonzero(one), y.mean() + X_test @ one)
        return
    y = train.y == np.unique(train.y)[1]
    largest = np.abs(X.T @ (y - y.mean())).max()
    model = LogisticRegression(l1_ratio=1, solver="saga", warm_start=True, tol=1e-3, max_iter=300)
    for C in np.geomspace(1, 1e3, 25) / largest:
        model.set_params(C=C).fit(X, y)
        yield Point(np.count_nonzero(model.coef_), model.predict_proba(X_test)[:, 1])


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
    """A peer program in its own environment; see peer_programs.py."""

    def path(train: Dataset, test: Dataset, seed: int) -> Path_:
        arrays = arrays_of(train) | {"X_test": design(train, test)}
        options = {"sizes of": method, "most": BUDGETS[-1] // 2, "seed": seed}
        for one in said(
            environment, PROGRAMS, arrays, environment, train.task, json.dumps(options)
        ):
            yield Point(one["size"], np.array(one["says"]), one["support"], one["local"])

    return path


def arrays_of(data: Dataset) -> dict[str, NDArray[Any]]:
    """X and y (numbers, or codes of the classes) for a program of others."""
    y = (
        np.asarray(data.y, np.float64)
        if data.task == "regression"
        else np.unique(data.y, return_inverse=True)[1]
    )
    return {"X": design(data, data), "y": y}


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
    "ridge 1": {},
    "length 3": {"search": "beam", "max_length": 3},
    "beam": {"search": "beam", "max_length": None},
    "greedy": {"search": "greedy", "max_length": None},
    "eliminate": {"search": "beam", "max_length": None, "eliminate": True},
    "second order": {"search": "beam", "max_length": None, "objective": "second_order"},
    "any length": {
        "search": "beam",
        "max_length": None,
        "objective": "second_order",
        "per_unit": False,
    },
    "paper": PAPER,
}
"""Of boosting, all with the same ridge."""
METHODS: dict[str, Callable[[Dataset, Dataset, int], Path_]] = {
    "boosting": boosting(),
    "boosting, oblique": boosting(max_nonzeros=3),
    "boosting, oblique and linear": boosting(max_nonzeros=3, linear_terms=True, max_rules=40),
    **{
        f"boosting, {name}": boosting(**{"l2_penalty": 1.0} | options)
        for name, options in RECIPES.items()
    },
    "LLTBoost": lltboost,
    "LTRNet": ltrnet,
    "DRNet": drnet,
    "L1 linear": linear,
    "CART": cart,
    "GLRM": glrm,
    "LIRE": lire(l2_penalty=1.0),
    "LIRE, ridge 4": lire(l2_penalty=4.0),
    "LIRE, paper": lire(**jr.lire.PAPER),
    "RuleFit": rulefit,
    "RuleFit (imodels)": peer("imodels", "RuleFit"),
    "BoostedRules (imodels)": peer("imodels", "BoostedRules"),
    "FIGS": peer("imodels", "FIGS"),
    "TT-Sparse": peer("tt_sparse", "TT-Sparse"),
    "scoredrulesets": peer("scoredrulesets", "RuleGP"),
    "RuleTree": peer("ruletree", "RuleTree"),
    "optbinning": peer("optbinning", "Scorecard"),
    "EBM": peer("interpret", "EBM"),
    "boosted trees": boosted,
}
SHOWN = {
    "boosting": "C0",
    "boosting, oblique": "C9",
    "boosting, oblique and linear": "navy",
    "LIRE": "C1",
    "RuleFit": "C2",
    "GLRM": "C8",
    "LLTBoost": "C3",
    "L1 linear": "C4",
    "CART": "C5",
    "FIGS": "C6",
    "TT-Sparse": "tomato",
    "EBM": "black",
    "boosted trees": "C7",
}
"""What is measured unless other methods are named, with the colours of the picture."""


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


class Ratios(NamedTuple):
    """Of a method's mean measure to the reference's, at every budget: geometric means over the sets
    with their standard errors, the number of sets on which the ratio is below 1, of all, and the
    number of cells.
    """

    mean: NDArray[np.float64]
    error: NDArray[np.float64]
    lower: NDArray[np.int64]
    sets: int
    cells: int


def ratios(
    found: dict[tuple[str, str], NDArray[np.float64]],
    names: Iterable[str],
    method: str,
    reference: str,
) -> Ratios | None:
    """On the splits that both have; measures are at least `LEAST`. None without two such sets."""
    logs, cells = [], 0
    for name in names:
        if {(method, name), (reference, name)} <= set(found):
            mine, theirs = found[method, name], found[reference, name]
            both = ~np.isnan(mine[:, 0]) & ~np.isnan(theirs[:, 0])
            cells += int(both.sum())
            if both.any():
                means = (np.maximum(one[both].mean(axis=0), LEAST) for one in (mine, theirs))
                logs.append(np.log(np.divide(*means)))
    if len(logs) < 2:
        return None
    mean = np.exp(np.mean(logs, axis=0))
    error = mean * np.std(logs, axis=0, ddof=1) / np.sqrt(len(logs))
    return Ratios(mean, error, np.sum(np.array(logs) < 0, axis=0), len(logs), cells)


def summary(
    file: Path, title: str, names: Sequence[str], measure: str, axis: str, reference: str
) -> None:
    """Print the ratios to the reference with their standard errors, and on how many sets a method
    has a lower measure.
    """
    found = at_budgets(file, measure, axis)
    if not any(name in names for _, name in found):
        return
    budgets = " | ".join(map(str, AXES[axis]))
    print(f"\n{title} {', '.join(names)}")
    print(f"{measure}, ratio to {reference!r} +- standard error (sets on which it is lower)\n")
    print(f"| {axis} | {budgets} | sets | cells |\n|" + "---|" * (3 + len(AXES[axis])))
    for method in METHODS:
        one = ratios(found, names, method, reference)
        if one is not None and method != reference:
            parts = zip(one.mean, one.error, one.lower, strict=True)
            line = " | ".join(f"{mean:.2f} +- {se:.2f} ({low})" for mean, se, low in parts)
            print(f"| {method} | {line} | {one.sets} | {one.cells} |")


PANELS = {"24 data sets": CLASSES + NUMBERS, "18 small, noisy data sets": SMALL}


def picture(file: Path, measure: str, axis: str, reference: str, target: Path) -> None:
    """A panel for each group of sets: ratios to the reference against the size, with bars of one
    standard error; every line is labelled at its end.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullLocator

    plt.rcParams["svg.hashsalt"] = "jaxrules"
    found = at_budgets(file, measure, axis)
    figure, axes = plt.subplots(1, len(PANELS), figsize=(11, 5.2), sharey=True)
    budgets = np.arange(len(AXES[axis]))
    for panel, (title, names) in zip(axes, PANELS.items(), strict=True):
        ends = []
        for i, (method, color) in enumerate(SHOWN.items()):
            one = ratios(found, names, method, reference)
            if one is None:
                continue
            bars = None if method == reference else one.error
            style: dict[str, Any] = {"ls": ":" if method in CEILINGS else "-"}
            style |= {"color": color, "lw": 3 if method == reference else 1.3}
            panel.errorbar(budgets + (i - 5) * 0.02, one.mean, bars, capsize=2, **style)
            ends.append((float(one.mean[-1]), method, color))
        panel.set_yscale("log")
        panel.set_yticks([0.5, 0.7, 1, 1.5, 2], ["0.5", "0.7", "1", "1.5", "2"])
        panel.yaxis.set_minor_locator(NullLocator())
        panel.set_xticks(budgets, AXES[axis])
        panel.set_xlim(-0.2, budgets[-1] + 1.9)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_title(title)
        least = 0.0
        for end, method, color in sorted(ends):  # labels side by side do not overlap
            least = max(end, least * 1.065)
            panel.annotate(
                method,
                (budgets[-1] + 0.12, end),
                (budgets[-1] + 0.25, least),
                color=color,
                fontsize=8,
                va="center",
                arrowprops={"arrowstyle": "-", "color": color, "lw": 0.5},
            )
    words = {"size": "rules + conditions", "support": "rules", "local": "rules that hold for a row"}
    figure.supxlabel(f"at most so many {words[axis]}")
    figure.supylabel(f"test {measure} / that of {reference}")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sets", nargs="*", default=None, help='names; "choose", "show" or "small" for a part'
    )
    parser.add_argument("--methods", nargs="*", default=list(SHOWN))
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
    parts = {"choose": CHOOSE, "show": SHOW, "small": SMALL}
    names = arguments.sets or [*CHOOSE, *SHOW, *SMALL]
    names = [name for given in names for name in parts.get(given, (given,))]
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
        ("small and noisy:", SMALL),
        ("folds of", tuple(PUBLISHED_FOLDS)),
    ):
        part = [name for name in names if name in half]
        if arguments.measure != "risk":  # of numbers there is only the one
            part = [name for name in part if name not in NUMBERS]
        if part:
            summary(
                arguments.file, title, part, arguments.measure, arguments.axis, arguments.reference
            )
    known = (arguments.measure, arguments.axis, arguments.reference)
    target = arguments.picture or arguments.file.with_name(f"fronts-{known[0]}-{known[1]}.png")
    picture(arguments.file, *known, target)


if __name__ == "__main__":
    main()
