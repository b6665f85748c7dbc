"""What is fitted and how: the methods, ten bootstrap samples of every set,
and a row for every model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np

import jaxrules as jr
from jaxrules import losses
from jaxrules.data.datasets import Dataset
from jaxrules.rules.conditions import propositions_of
from jaxrules.tools.fits import Fit
from paper_reproductions.framework import Cell, Experiment, Row, Settings
from paper_reproductions.lltboost import data, published

QUICK_SETS = ("Diabetes", "Friedman", "Cars", "Cancer", "Banknote")
QUICK_PENALTIES = (0.01, 1.0, 100.0)
QUICK_STRENGTHS, QUICK_WIDE = (1e-3, 0.01, 0.1), (0.01,)
MORE_REPEATS = 40
EXACT_CUT_POINTS, EXACT_SECONDS = 20, 2.0
"""The exact search of TGB: quantiles per column, and seconds per rule; what ends
without a proof is marked.
"""

LEAST_PROBABILITY = 1e-3
"""A rule set that says 0 or 1 would have an infinite log loss."""
SLOW = ("TGB, exact search", "TGB, all, exact search")
"""Not in the quick version."""

Models = Iterator[tuple[dict[str, Any], list[Any]]]
"""Of one method: what was chosen freely, and the models of different sizes; the
seconds are of one fit of them.
"""


def sets(settings: Settings) -> tuple[str, ...]:
    """Names of the sets to run."""
    return QUICK_SETS if settings.quick else tuple(data.SETS)


def loss_of(train: Dataset) -> str:
    return "squared" if train.task == "regression" else "logistic"


# The methods. "oracle" is chosen per data set by the test risk itself, as in the paper;
# what else differs between the models of a method, the number of rules or "strength",
# trades risk for complexity.

READINGS: dict[str, dict[str, Any]] = {
    "LLTBoost": {"l2_penalty": 1e-3},
    "LLTBoost, to the letter": dict(jr.lltboost.PAPER),
    "LLTBoost, no held-out rows": {"l2_penalty": 1e-3, "validation_fraction": 0.0},
    "LLTBoost, single columns": {"l2_penalty": 1e-3, "max_nonzeros": 1},
}
TGB: dict[str, Any] = {
    **jr.boosting.PAPER,
    "objective": "gradient_sum",
    "search": "greedy",
    "intercept": True,
    "max_cut_points": None,
}
TGBS: dict[str, dict[str, Any]] = {
    "TGB": {},
    "TGB, tolerance": {"objective_tolerance": 0.3},
    "TGB, corrective": {"corrective": True},
    "TGB, corrective, tolerance": {"corrective": True, "objective_tolerance": 0.3},
    "TGB, exact search": {
        "search": "optimal",
        "max_cut_points": EXACT_CUT_POINTS,
        "time_limit": EXACT_SECONDS * published.RULES_AT_MOST,
    },
    "TGB, all, exact search": {
        "search": "optimal",
        "max_cut_points": EXACT_CUT_POINTS,
        "corrective": True,
        "objective_tolerance": 0.3,
        "time_limit": EXACT_SECONDS * published.RULES_AT_MOST,
    },
}

LTRNETS: dict[str, dict[str, Any]] = {
    "LTRNet": {"l2_penalty": 1e-3, "restarts": 6, "combine_starts": False},
    "LTRNet, to the letter": dict(jr.ltrnet.PAPER),
}
RIDGE = "LLTBoost, default ridge"
RIDGE_SETS = ("Liver",)
"""Where the fixed ridge of `READINGS` and the default one, which follows the noise, differ most."""
OWN_OUTPUT = "DRNet, own output"
OWN_OUTPUT_SETS, OWN_OUTPUT_REPEATS = ("Banknote", "Liver", "Magic"), 10
ROUNDED = "LTRNet, rounded weights"
ROUNDED_SETS = (
    (3.0, 3, ("Housing", "Banknote", "Liver")),
    (10.0, published.REPEATS, ("Housing", "Banknote")),
    (10.0, 3, ("Liver", "Voice", "Magic", "Wine", "Diabetes", "Cars")),
)
"""Steepness (jaxrules' and a larger one; the paper names none), repetitions and sets."""
SMALL_WEIGHT = 0.1
"""Rules of less weight than this share of the largest are dropped: how the paper rounds each weight
vector, taken for that of the rules, too.
"""


def in_words(given: Mapping[str, Any], options: type) -> str:
    """How settings differ from the defaults of a learner's options."""
    defaults = {one.name: one.default for one in fields(options)}
    other = [f"{name}={value!r}" for name, value in given.items() if value != defaults[name]]
    return "jaxrules' defaults" + (f" but for {', '.join(other)}" if other else "")


OPEN_SETTINGS: dict[str, Mapping[str, Any]] = {**READINGS, RIDGE: {}}
"""Of LLTBoost, by reading."""
LLTBOOST_SETTING = in_words(READINGS["LLTBoost"], jr.lltboost.Options)


def lltboost_paths(options: dict[str, Any]) -> Callable[[Dataset, int, Settings], Models]:
    def fits(train: Dataset, seed: int, settings: Settings) -> Models:
        began = time.perf_counter()
        path = jr.lltboost.path(
            train.X,
            train.y,
            loss=loss_of(train),
            seed=seed,
            **{"max_rules": published.RULES_AT_MOST, **options},
        )
        yield {"oracle": 0.0, "seconds": time.perf_counter() - began}, path

    return fits


def tgb_paths(options: dict[str, Any]) -> Callable[[Dataset, int, Settings], Models]:
    def fits(train: Dataset, seed: int, settings: Settings) -> Models:
        few = settings.quick or options.get("search") == "optimal"
        for penalty in QUICK_PENALTIES if few else published.TGB_PENALTIES:
            began = time.perf_counter()
            given = TGB | {"max_rules": published.RULES_AT_MOST, "l2_penalty": penalty} | options
            path = jr.boosting.path(train.X, train.y, loss=loss_of(train), **given)
            yield (
                {
                    "oracle": penalty,
                    "seconds": time.perf_counter() - began,
                    "unproved": unproved(path[-1]),
                },
                path,
            )

    return fits


def ltrnet_paths(options: dict[str, Any]) -> Callable[[Dataset, int, Settings], Models]:
    def fits(train: Dataset, seed: int, settings: Settings) -> Models:
        strengths = QUICK_STRENGTHS if settings.quick else published.LTRNET_STRENGTHS
        wide = QUICK_WIDE if settings.quick else published.LTRNET_STRENGTHS
        began = time.perf_counter()
        path = jr.ltrnet.path(
            train.X,
            train.y,
            loss=loss_of(train),
            l1_penalties=strengths,
            binary_penalties=wide,
            seed=seed,
            **options,
        )
        seconds = (time.perf_counter() - began) / len(
            path
        )  # all strengths are trained side by side
        for k, oracle in enumerate(wide):
            yield {"oracle": oracle, "seconds": seconds}, path[k :: len(wide)]

    return fits


def drnet_fits(train: Dataset, seed: int, settings: Settings) -> Models:
    began, fits = time.perf_counter(), []
    strengths = QUICK_STRENGTHS if settings.quick else published.DRNET_STRENGTHS
    for strength in strengths:
        fits.append(jr.drnet.fit(train.X, train.y, literal_penalty=strength, seed=seed))
    yield {"oracle": 0.0, "seconds": (time.perf_counter() - began) / len(strengths)}, fits


def unproved(fit: Fit[Any]) -> int:
    """Stages of an exact search that ended before their proof."""
    return sum(stage.gap is not None and stage.gap > 1e-6 for stage in fit.details["stages"])


METHODS: dict[str, Callable[[Dataset, int, Settings], Models]] = {
    **{name: lltboost_paths(options) for name, options in READINGS.items()},
    **{name: tgb_paths(options) for name, options in TGBS.items()},
    **{name: ltrnet_paths(options) for name, options in LTRNETS.items()},
    "DRNet": drnet_fits,
    RIDGE: lltboost_paths({}),
}
CLASSIFIERS = ("DRNet",)
"""Methods for two classes only."""


def applicable(names: Iterable[str], name: str) -> list[str]:
    """The methods that take the target of this set."""
    return [method for method in names if method not in CLASSIFIERS or name in data.CLASSIFICATIONS]


# Measurements


def scored(model: Any, test: Dataset) -> dict[str, Any]:
    """Size and test risk of a model: squared or log loss, for classes also the 0/1 loss."""
    row = {
        "rules": jr.support(model),
        "complexity": jr.complexity(model, measure="nonzeros"),
        "risk": log_loss(model, test)
        if isinstance(model, jr.RuleList)
        else jr.risk(model, test.X, test.y),
    }
    return row | (
        {"error": 1 - jr.accuracy(model, test.X, test.y)} if test.task == "binary" else {}
    )


def log_loss(model: jr.RuleList, test: Dataset) -> float:
    """Of the probabilities of a rule set's two answers, which are shares of its training rows."""
    probabilities = jr.predict_proba(model, test.X)
    truth = np.searchsorted(np.array(model.schema.classes), test.y)
    return float(
        -np.log(np.maximum(probabilities[np.arange(len(test)), truth], LEAST_PROBABILITY)).mean()
    )


def measure(cell: Cell, settings: Settings) -> list[Row]:
    """A row per model of a method on a bootstrap sample."""
    train, test = data.sample(cell["data"], cell["repeat"], settings.seed)
    return [
        {**chosen, "size": size, **scored(fit.model, test)}
        for chosen, fits in METHODS[cell["method"]](train, cell["repeat"], settings)
        for size, fit in enumerate(fits, start=1)
    ]


def cells(methods: Iterable[str], settings: Settings) -> list[Cell]:
    """Every method on every sample, repetitions outermost: an unfinished run
    has all sets and methods.
    """
    return [
        Cell.of(data=name, repeat=repeat, method=method)
        for repeat in settings.first_folds(published.REPEATS, quick=3)
        for name in sets(settings)
        for method in applicable(methods, name)
        if method not in SLOW or not settings.quick
    ]


def _experiment(name: str, methods: Iterable[str]) -> Experiment:
    return Experiment(name, lambda settings: cells(methods, settings), measure, data.files)


boosting = _experiment("boosting", [name for name in (*READINGS, *TGBS) if name not in SLOW])
networks = _experiment("networks", (*LTRNETS, "DRNet"))
slow = _experiment("slow", SLOW)
more = Experiment(
    "more repetitions",
    lambda settings: [
        Cell.of(data=name, repeat=published.REPEATS + repeat, method="LLTBoost")
        for name in sets(settings)
        for repeat in range(5 if settings.quick else MORE_REPEATS)
    ],
    measure,
    data.files,
)


CUTS = {
    "Housing": (5, 10, 20, 50),
    "Friedman": (5, 10, 50, 100, 200),
    "Cancer": (5, 50),
    "Voice": (5,),
    "Liver": (5, 50),
}
"""The paper names no cut points; the program that it cites cuts a column at about five places
unless it is told otherwise.
"""


def measure_cuts(cell: Cell, settings: Settings) -> list[Row]:
    """TGB with few cut points per column."""
    train, test = data.sample(cell["data"], cell["repeat"], settings.seed)
    paths = tgb_paths({"max_cut_points": cell["cuts"]})
    return [
        {**chosen, "size": size, **scored(fit.model, test)}
        for chosen, fits in paths(train, cell["repeat"], settings)
        for size, fit in enumerate(fits, start=1)
    ]


cuts = Experiment(
    "cut points",
    lambda settings: [
        Cell.of(data=name, repeat=repeat, method="TGB by cut points", cuts=number)
        for repeat in settings.first_folds(published.REPEATS, quick=3)
        for name in sets(settings)
        for number in CUTS.get(name, ())
    ],
    measure_cuts,
    data.files,
)


TIE_SET, ORDERS = "Housing", ("small", "large")
"""From the best constant the gradients of the squared loss sum to zero, so that a proposition and
its complement are worth the same.
"""


def first_of_equals(train: Dataset, first: str, penalty: float) -> list[jr.RuleEnsemble]:
    """TGB for the squared loss with a greedy search that takes the first of equal propositions,
    those of the fewest rows first ("small") or last; models of 1, 2, ... rules.
    """
    pool = propositions_of(train.X)
    on = pool.satisfied(train.X)
    order = np.argsort(on.sum(axis=0) * (1 if first == "small" else -1), kind="stable")
    pool, on = pool.take(order), on[:, order].astype(np.float64)
    intercept = train.y.mean()
    now = np.full(len(train), intercept)
    rules: list[list[int]] = []
    weights: list[float] = []
    models = []
    for _ in range(published.RULES_AT_MOST):
        g, h = losses.derivatives(losses.squared, train.y, now)
        rows, rule, value = np.ones(len(train)), [], abs(g.sum())
        while (gains := np.abs((g * rows) @ on)).max() > value * (1 + 1e-12):
            value = gains.max()
            rule.append(int(np.argmax(gains >= value * (1 - 1e-12))))
            rows = rows * on[:, rule[-1]]
        rules.append(rule)
        weights.append(-(g @ rows) / (penalty + h @ rows))
        now = now + weights[-1] * rows
        models.append(
            jr.RuleEnsemble(
                pool.conjunctions(rules),
                np.array(weights)[:, None],
                np.array([intercept]),
                loss="squared",
            )
        )
    return models


def measure_ties(cell: Cell, settings: Settings) -> list[Row]:
    """As `measure`, with `first_of_equals`."""
    train, test = data.sample(cell["data"], cell["repeat"], settings.seed)
    return [
        {"oracle": penalty, "size": size, **scored(model, test)}
        for penalty in published.TGB_PENALTIES
        for size, model in enumerate(first_of_equals(train, cell["first"], penalty), start=1)
    ]


ties = Experiment(
    "ties",
    lambda settings: [
        Cell.of(data=TIE_SET, repeat=repeat, method="TGB by order", first=first)
        for repeat in settings.first_folds(published.REPEATS, quick=3)
        for first in (() if settings.quick else ORDERS)
    ],
    measure_ties,
    data.files,
)


def _cells(method: str, names: Iterable[str], repeats: int, **more: Any) -> Callable[..., Any]:
    """A method on some sets, in the first repetitions, in all with ``--slow``."""

    def asked(settings: Settings) -> list[Cell]:
        most = published.REPEATS if settings.slow else repeats
        return [
            Cell.of(data=name, repeat=repeat, method=method, **dict(zip(more, values, strict=True)))
            for repeat in settings.first_folds(most, quick=3)
            for name in names
            if name in sets(settings)
            for values in product(*more.values())
        ]

    return asked


ridge = Experiment(
    "default ridge", _cells(RIDGE, RIDGE_SETS, published.REPEATS), measure, data.files
)


def own_output_loss(model: jr.RuleList, test: Dataset) -> float:
    """The log loss of what the network itself puts out, sigma(sum_j r_j - 1/2): of the number of
    the set's rules that hold, not of the yes or no that they make.
    """
    held = model.conjunctions.satisfied(test.X).sum(axis=1) - 0.5
    positive = test.y == np.array(model.schema.classes)[1]
    return float(np.logaddexp(0.0, np.where(positive, -held, held)).mean())


def measure_own_output(cell: Cell, settings: Settings) -> list[Row]:
    """As `measure`, DRNet with the log loss of the network's own output."""
    train, test = data.sample(cell["data"], cell["repeat"], settings.seed)
    return [
        {
            **chosen,
            "size": size,
            **scored(fit.model, test),
            "risk": own_output_loss(fit.model, test),
        }
        for chosen, fits in drnet_fits(train, cell["repeat"], settings)
        for size, fit in enumerate(fits, start=1)
    ]


own_output = Experiment(
    "own output",
    _cells(OWN_OUTPUT, OWN_OUTPUT_SETS, OWN_OUTPUT_REPEATS),
    measure_own_output,
    data.files,
)


def without_small_weights(model: jr.RuleEnsemble) -> jr.RuleEnsemble:
    """The rules of at least `SMALL_WEIGHT` of the largest weight."""
    size = np.abs(np.asarray(model.weights))[:, 0]
    kept = np.flatnonzero(size >= SMALL_WEIGHT * size.max(initial=0.0))
    return replace(
        model,
        conjunctions=model.conjunctions.take(kept),
        weights=np.asarray(model.weights)[kept],
    )


def measure_rounded(cell: Cell, settings: Settings) -> list[Row]:
    """LTRNet to the letter at a steepness, without and with rules of small weight."""
    train, test = data.sample(cell["data"], cell["repeat"], settings.seed)
    paths = ltrnet_paths({**jr.ltrnet.PAPER, "steepness": cell["steepness"]})
    return [
        {**chosen, "size": size, "dropped": dropped, **scored(model, test)}
        for chosen, fits in paths(train, cell["repeat"], settings)
        for size, fit in enumerate(fits, start=1)
        for dropped, model in enumerate((fit.model, without_small_weights(fit.model)))
    ]


rounded = Experiment(
    "rounded weights",
    lambda settings: [
        cell
        for steepness, repeats, names in ROUNDED_SETS
        for cell in _cells(ROUNDED, names, repeats, steepness=(steepness,))(settings)
    ],
    measure_rounded,
    data.files,
)


def measure_size(cell: Cell, settings: Settings) -> Row:
    """Columns and rows of a data set."""
    loaded = data.load(cell["data"])
    return {"columns": len(loaded.X.names), "rows": len(loaded)}


sizes = Experiment(
    "sizes",
    lambda settings: [Cell.of(data=name) for name in sets(settings)],
    measure_size,
    data.files,
)
ALL = (boosting, networks, slow, ridge, own_output)
"""The repetitions of the tables."""
