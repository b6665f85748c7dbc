"""Do the defaults of boosting, GLRM, LIRE, LLTBoost, LTRNet and rule lists harm on noisy data?

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/defaults.py [--sets NAME ...]
        [--splits 5] [--methods boosting ...] [--only-summary]

Every cell (set, split, method) is fitted to at most 800 rows, 70 % of the set. Its risk is the mean
log-loss (with probabilities of at least 1 / 2n of the n training rows) or the mean squared error of
at most 4000 other rows, over that of the best constant of the training rows. "Before" are the
defaults of version 0.2.0, given explicitly. Cells are appended to results/defaults.csv, and are not
computed again.

A set is noisy if the risk of the L1 regression is above .8. The recipes were chosen on the sets of
CHOOSE, the others are in SHOW. Means are geometric over sets of the mean over splits; the standard
error is that over sets, in percent.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jaxrules as jr
from jaxrules.data.datasets import Dataset

sys.path.insert(0, str(Path(__file__).parent))
from fronts import design
from rows_csv import add, known

RESULTS = Path(__file__).parent / "results" / "defaults.csv"
CLASSES = (
    "small_australian", "small_bands", "small_breast", "small_bupa", "small_crx",
    "small_housevotes", "small_monk_2", "small_chile", "small_benefits", "small_birthwt",
    "small_participation", "heart", "liver", "titanic", "tic_tac_toe", "breast_cancer", "banknote",
    "ibm_hr", "voice", "telco_churn", "compas_lire", "fico_lire", "magic", "bank", "adult_train",
)  # fmt: skip
NUMBERS = (
    "small_housing", "small_hedonic", "small_fair", "small_quine", "small_cpus", "small_caschool",
    "diabetes", "boston", "friedman1", "friedman2", "friedman3", "insurance", "red_wine_quality",
    "used_cars", "life_expectancy", "world_happiness", "prestige", "bike_day",
    "california_housing", "demographics", "mobile_prices",
)  # fmt: skip
SEVERAL = ("small_contraceptive", "small_tae", "cardio", "iris", "wine", "page_blocks")
SETS = (*CLASSES, *NUMBERS, *SEVERAL)
CHOOSE = {name for kind in (CLASSES, NUMBERS, SEVERAL) for name in sorted(kind)[::2]}
ROWS, TEST_ROWS, LEAST = 800, 4000, 1e-3
Model = Any


def split(name: str, seed: int) -> tuple[Dataset, Dataset]:
    """Training rows, and test rows of classes that they have."""
    data = jr.datasets.load(name)
    order = np.random.default_rng(seed).permutation(len(data))
    n = min(ROWS, int(0.7 * len(data)))
    train, test = data[np.sort(order[:n])], data[np.sort(order[n : n + TEST_ROWS])]
    return train, test if data.task == "regression" else test[np.isin(test.y, train.y)]


# The defaults before


def boosting(train: Dataset, **options: Any) -> Model:
    return jr.boosting.fit(train.X, train.y, missing="own_category", **options).model


def lire_before(train: Dataset) -> Model:
    """A ridge of 1; .15 and a penalty of half a percent if little of the loss is left."""
    given: dict[str, Any] = {"missing": "own_category"}
    fit = jr.lire.fit(train.X, train.y, l2_penalty=1.0, **given)
    if train.task == "regression":
        return fit.model
    codes = (train.y[:, None] == np.unique(train.y)).mean(axis=0)
    one = codes if len(codes) > 2 else codes[:1]
    constant = -np.mean(one * np.log(one) + (1 - one) * np.log(1 - one))
    if np.mean(fit.details["loss"]) >= 0.25 * constant:
        return fit.model
    lower = {"l2_penalty": 0.15, "global_penalty": 0.005 * constant, "start": fit.model}
    return jr.lire.fit(train.X, train.y, **lower, **given).model


def glrm_before(train: Dataset) -> Model:
    """A twentieth of the penalty that excludes every proposition, at 9 cut points."""
    given: dict[str, Any] = {"missing": "own_category", "max_length": 1, "max_rules": 0}
    path = jr.glrm.path(train.X, train.y, max_cut_points=9, **given)
    largest = float(np.max(path[0].details["rule_penalty"])) / 0.3
    return glrm(train, rule_penalty=0.05 * largest, max_cut_points=9)


def ssrl_before(train: Dataset) -> Model:
    """A row for a literal, and a row of each class in every frequency."""
    model = jr.ssrl.fit(train.X, train.y, missing="own_category", literal_penalty=1.0).model
    counts = np.ones((len(model.labels), len(model.schema.classes or ())))
    codes = np.searchsorted(np.unique(train.y), train.y)
    np.add.at(counts, (model.position(jr.as_table(train.X, missing="own_category")), codes), 1)
    return replace(model, probabilities=counts / counts.sum(axis=1, keepdims=True))


def glrm(train: Dataset, **options: Any) -> Model:
    return jr.glrm.fit(train.X, train.y, missing="own_category", **options).model


def of(learner: str, **options: Any) -> Callable[[Dataset], Model]:
    def fitted(train: Dataset) -> Model:
        return getattr(jr, learner).fit(train.X, train.y, missing="own_category", **options).model

    return fitted


def linear(train: Dataset) -> Model:
    """L1 regression of standardised columns, its penalty by five folds."""
    if train.task == "regression":
        kind = LassoCV(cv=5)
    else:
        kind = LogisticRegressionCV(
            Cs=10, cv=5, l1_ratios=(1.0,), solver="saga", scoring="neg_log_loss", max_iter=500,
            use_legacy_attributes=False,
        )  # fmt: skip
    return make_pipeline(StandardScaler(), kind).fit(design(train, train), train.y)


METHODS: dict[str, Callable[[Dataset], Model]] = {
    "boosting, before": lambda train: boosting(train, l2_penalty=1.0),
    "boosting": boosting,
    "boosting 40, before": lambda train: boosting(train, l2_penalty=1.0, max_rules=40),
    "boosting 40": lambda train: boosting(train, max_rules=40),
    "boosting None": lambda train: boosting(train, max_rules=None),
    "GLRM, before": glrm_before,
    "GLRM": glrm,
    "GLRM, 9 cut points, all rules": of(
        "glrm", max_cut_points=9, eliminate=False, standard_errors=1.6
    ),
    "LIRE, before": lire_before,
    "LIRE": of("lire"),
    "LLTBoost, before": of("lltboost", l2_penalty=1e-3),
    "LLTBoost": of("lltboost"),
    "LTRNet, before": of("ltrnet", l2_penalty=1e-3, restarts=6, combine_starts=False),
    "LTRNet": of("ltrnet"),
    "SSRL, before": ssrl_before,
    "SSRL": of("ssrl"),
    "exact lists, before": of("exact_list", literal_penalty=1.0),
    "exact lists": of("exact_list"),
    "L1 regression": linear,
}


# Cells


def measured(name: str, seed: int, method: str) -> dict[str, Any]:
    """The risk, the accuracy over that of the majority, the number of rules and CPU seconds."""
    train, test = split(name, seed)
    start = time.process_time()
    model = METHODS[method](train)
    seconds = time.process_time() - start
    ours = method != "L1 regression"
    X = test.X if ours else design(train, test)
    row: dict[str, Any] = {"set": name, "split": seed, "method": method}
    if train.task == "regression":
        said = np.asarray(jr.predict(model, X) if ours else model.predict(X))
        row["risk"] = np.mean((test.y - said) ** 2) / np.mean((test.y - train.y.mean()) ** 2)
        row["gain"] = ""
    else:
        classes, codes = np.unique(train.y, return_inverse=True)
        truth = np.searchsorted(classes, test.y)
        shares = np.bincount(codes) / len(codes)
        said = np.asarray(jr.predict_proba(model, X) if ours else model.predict_proba(X))
        own = np.maximum(said[np.arange(len(truth)), truth], 1 / (2 * len(codes)))
        row["risk"] = np.log(own).sum() / np.log(shares[truth]).sum()
        right = np.asarray(jr.predict(model, X) if ours else model.predict(X)) == test.y
        row["gain"] = np.mean(right) - np.mean(truth == shares.argmax())
    return {**row, "rules": jr.support(model) if ours else "", "seconds": seconds}


# The table


def told(risks: dict[str, list[float]]) -> str:
    """The geometric mean over sets, with its standard error, and the cells above 1.02."""
    logs = [np.log(max(float(np.mean(cells)), LEAST)) for cells in risks.values()]
    cells = [risk for some in risks.values() for risk in some]
    error = 100 * np.std(logs, ddof=1) / len(logs) ** 0.5 if len(logs) > 1 else np.nan
    above = f"{sum(risk > 1.02 for risk in cells)} of {len(cells)}"
    return f"{np.exp(np.mean(logs)):.3f} | {above} | {max(cells):.2f} | {error:.0f} %"


def compared(after: dict[str, list[float]], before: dict[str, list[float]]) -> str:
    """The ratio of the two, set by set, and its standard error."""
    ratios = [
        np.log(max(np.mean(after[name]), LEAST) / max(np.mean(before[name]), LEAST))
        for name in after.keys() & before.keys()
    ]
    error = np.std(ratios, ddof=1) / len(ratios) ** 0.5 if len(ratios) > 1 else np.nan
    return f"{np.exp(np.mean(ratios)):.3f} +- {error:.3f}"


def summary(splits: int) -> None:
    cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    gains: dict[str, list[float]] = defaultdict(list)
    rules: dict[str, list[float]] = defaultdict(list)
    for row in known(RESULTS):
        if int(row["split"]) < splits:
            cells[row["method"]][row["set"]].append(float(row["risk"]))
            if row["gain"]:
                gains[row["method"]].append(float(row["gain"]))
            if row["rules"]:
                rules[row["method"]].append(float(row["rules"]))
    noisy = {name for name, risks in cells["L1 regression"].items() if np.mean(risks) > 0.8}
    everything = set().union(*cells.values())
    groups: dict[str, Any] = {
        "all sets": everything,
        "chosen on": CHOOSE,
        "shown on": everything - CHOOSE,
        "noisy": noisy,
        "clean": everything - noisy,
        "several classes": set(SEVERAL),
        "regression": set(NUMBERS),
    }
    for group, names in groups.items():
        print(
            f"\n| {group} | risk | above 1.02 | worst | se | to before |\n|---|---|---|---|---|---|"
        )
        for method in METHODS:
            risks = {name: cells[method][name] for name in names & cells[method].keys()}
            if not risks:
                continue
            before = cells.get(f"{method}, before", {})
            ratio = compared(risks, {name: before[name] for name in names & before.keys()})
            print(f"| {method} | {told(risks)} | {ratio if before else ''} |")
    print("\nAccuracy over the majority's, cells below it by more than .01, fewest")
    for method, some in gains.items():
        below = sum(gain < -0.01 for gain in some)
        print(f"{method}: {np.mean(some):.4f}, {below} of {len(some)}, {min(some):.3f}")
    print("\nRules on average")
    for method, some in rules.items():
        print(f"{method}: {np.mean(some):.1f}")
    print("\nTo boosting with 10 rules, and sets on which it is more than 2 % above:")
    for many, few in (
        ("boosting 40, before", "boosting, before"),
        ("boosting 40", "boosting"),
        ("boosting None", "boosting"),
    ):
        worse = {
            name: round(float(np.mean(cells[many][name]) / np.mean(cells[few][name])), 3)
            for name in cells[few].keys() & cells[many].keys()
            if np.mean(cells[many][name]) > 1.02 * np.mean(cells[few][name])
        }
        ratio = compared(cells[many], cells[few])
        print(f"{many}: {ratio}; {len(worse)} of {len(cells[few])}: {worse}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="*", default=tuple(METHODS), choices=tuple(METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only-summary", action="store_true")
    given = parser.parse_args()
    done = {(row["set"], int(row["split"]), row["method"]) for row in known(RESULTS)}
    for seed in range(0 if given.only_summary else given.splits):
        for name in given.sets:
            for method in given.methods:
                lists_only = method.startswith(("SSRL", "exact")) and name in NUMBERS
                if not lists_only and (name, seed, method) not in done:
                    add(RESULTS, measured(name, seed, method))
    summary(given.splits)


if __name__ == "__main__":
    main()
