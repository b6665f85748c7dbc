"""Our learners at their defaults and at settings chosen on training rows, and
what is measured of a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from jaxrules.tools.fits import Fit

Options = dict[str, Any]
MISSING: Any = "own_category"


def _learner(fit: Callable[..., Fit[Any]]) -> Callable[[Dataset, Options], Fit[Any]]:
    return lambda train, options: fit(train.X, train.y, missing=MISSING, **options)


def _rulefit(train: Dataset, options: Options) -> Fit[Any]:
    """With ``trees``, rules of so many boosted trees of ``leaves`` leaves, else those
    that it takes by default.
    """
    options = dict(options)
    trees = options.pop("trees", None)
    leaves = options.pop("leaves", 4)
    if trees is not None:
        options["rules"] = boosted_rules(train, trees, leaves)
    return jr.rulefit.fit(train.X, train.y, missing=MISSING, **options)


def boosted_rules(train: Dataset, trees: int, leaves: int) -> jr.Conjunctions:
    """The rules of LightGBM's trees."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMRegressor if train.task == "regression" else LGBMClassifier
    model = kind(n_estimators=trees, num_leaves=leaves, verbosity=-1, n_jobs=1, random_state=0)
    return jr.extract_rules(model.fit(train.X.one_hot()[0], train.y), train.X)


LEARNERS: dict[str, Callable[[Dataset, Options], Fit[Any]]] = {
    "boosting": _learner(jr.boosting.fit),
    "GLRM": _learner(jr.glrm.fit),
    "RuleFit": _rulefit,
    "LIRE": _learner(jr.lire.fit),
    "rule list": _learner(jr.ssrl.fit),
    "exact list": _learner(jr.exact_list.fit),
    "regression list": _learner(jr.regression_list.fit),
    "LLTBoost": _learner(jr.lltboost.fit),
    "LTRNet": _learner(jr.ltrnet.fit),
}
CLASSIFIERS = ("LIRE", "rule list", "exact list")
REGRESSORS = ("regression list",)
"""Learners that are run on classes only, and on numbers only."""

TUTORIAL: Options = {
    "max_cut_points": 9,
    "linear_terms": True,
    "rule_penalty": 0.005,
    "condition_penalty": 0.001,
    "debias": True,
}
"""Of AIX360's tutorial on HELOC; its program fits the chosen rules again without a penalty."""

GRID: dict[str, tuple[Options, ...]] = {
    "boosting": (
        {"search": "greedy", "max_rules": 20},
        {"search": "greedy", "max_rules": 40},
        {"search": "greedy", "max_rules": 80, "max_cut_points": 60},
    ),
    "GLRM": (
        *(
            {**TUTORIAL, "tolerance": 1e-3, **shorter}
            for shorter in ({}, {"max_length": 2}, {"max_length": 1})
        ),
        *(
            {"linear_terms": linear, "rule_penalty": 0.001, "max_length": 2, "tolerance": 1e-3}
            for linear in (True, False)
        ),
    ),
    "RuleFit": (
        {"trees": 100, "leaves": 4, "l1_penalty": 0.001, "tolerance": 1e-4},
        {"trees": 100, "leaves": 4, "l1_penalty": 0.003, "tolerance": 1e-4},
        {"trees": 100, "leaves": 4, "l1_penalty": 0.003, "tolerance": 1e-4, "linear_terms": True},
    ),
    "LIRE": tuple({"global_penalty": price} for price in (0.0005, 0.001, 0.003, 0.01)),
    "rule list": (
        {"literal_penalty": 1.0, "max_rules": 10},
        {"literal_penalty": 5.0, "max_rules": 10},
        {"literal_penalty": 1.0, "max_rules": 30},
    ),
}
"""Settings that are tried; the defaults, too. GLRM's first are those of AIX360's tutorial, also
with shorter rules: the model that the tutorial prints has none of two conditions.
"""
SETTINGS = ("default", "chosen")
FOLDS = 3


def scores(model: Any, test: Dataset) -> dict[str, float]:
    """Of the test rows: accuracy, balanced accuracy and AUC, or R2; and the size of the model."""
    from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score

    said = np.asarray(jr.predict(model, test.X))
    if test.task == "regression":
        found = {"R2": float(r2_score(test.y, said))}
    else:
        found = {
            "accuracy": float(np.mean(said == test.y)),
            "balanced": float(balanced_accuracy_score(test.y, said)),
            "AUC": float(roc_auc_score(test.y, np.asarray(jr.predict_proba(model, test.X))[:, 1])),
        }
    linear = getattr(model, "linear", None)
    terms = 0 if linear is None else int(np.asarray(linear.coefficients).any(axis=1).sum())
    rules = len(model.conjunctions) if isinstance(model, jr.RuleList) else jr.support(model)
    conditions = jr.complexity(model) - rules - terms
    return {**found, "rules": rules, "linear_terms": terms, "conditions": float(conditions)}


def timed(name: str, train: Dataset, options: Options) -> tuple[Fit[Any], float]:
    """A fit and its seconds of the processor, compiling included."""
    began = time.process_time()
    fit = LEARNERS[name](train, options)
    return fit, time.process_time() - began


def chosen(name: str, train: Dataset, measure: str) -> tuple[Options, float]:
    """The setting that is best on a quarter of the training rows, and its score; the
    defaults are one of them.
    """
    inside, outside = jr.datasets.train_test_split(train, test_size=0.25, seed=0)
    tried: list[Options] = [{}, *_scaled(GRID[name], train)]
    measured = [
        scores(LEARNERS[name](inside, options).model, outside)[measure] for options in tried
    ]
    best = int(np.argmax(measured))
    return tried[best], measured[best]


def chosen_on_folds(name: str, train: Dataset, measure: str) -> tuple[Options, float]:
    """As `chosen`, by the mean over three folds of the training rows, classes with their shares."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if train.task == "regression" else StratifiedKFold
    tried: list[Options] = [{}, *_scaled(GRID[name], train)]
    parts = list(kind(FOLDS, shuffle=True, random_state=0).split(train.y, train.y))
    measured = [
        np.mean(
            [
                scores(LEARNERS[name](train[inside], options).model, train[outside])[measure]
                for inside, outside in parts
            ]
        )
        for options in tried
    ]
    best = int(np.argmax(measured))
    return tried[best], float(measured[best])


def _lire_path(train: Dataset, measure: str) -> Fit[Any]:
    """The penalty that is best on a quarter of the training rows, from one path on the others."""
    inside, outside = jr.datasets.train_test_split(train, test_size=0.25, seed=0)
    prices = [options["global_penalty"] for options in GRID["LIRE"][:3]]
    fits = jr.lire.path(inside.X, inside.y, global_penalties=prices, missing=MISSING)
    best = max(fits, key=lambda fit: scores(fit.model, outside)[measure])
    return jr.lire.fit(
        train.X, train.y, global_penalty=best.details["global_penalty"], missing=MISSING
    )


OWN_PATHS: dict[str, Callable[[Dataset, str], Fit[Any]]] = {
    "GLRM": lambda train, measure: jr.glrm.cross_validate(
        train.X,
        train.y,
        linear_terms=True,
        n_folds=3,
        one_standard_error=False,
        tolerance=1e-3,
        max_cut_points=9,
        missing=MISSING,
    ),
    "RuleFit": lambda train, measure: jr.rulefit.fit(
        train.X, train.y, linear_terms=True, n_folds=3, tolerance=1e-4, missing=MISSING
    ),
    "LIRE": _lire_path,
}
"""The penalty from the learner's own path: GLRM's and RuleFit's on three folds, with
columns beside the rules.
"""


def own_path(name: str, train: Dataset, measure: str) -> tuple[Fit[Any], float]:
    """A fit with its choice, and their seconds of the processor."""
    began = time.process_time()
    fit = OWN_PATHS[name](train, measure)
    return fit, time.process_time() - began


def in_words(options: Options) -> str:
    """A setting as text."""
    parts = (
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in options.items()
    )
    return ", ".join(parts) or "defaults"


def _scaled(grid: tuple[Options, ...], train: Dataset) -> list[Options]:
    """Penalties are prices in units of the loss; that of numbers is squared."""
    if train.task != "regression":
        return list(grid)
    spread = float(np.var(train.y))
    return [
        {
            option: value * spread if option.endswith("_penalty") else value
            for option, value in options.items()
        }
        for options in grid
    ]
