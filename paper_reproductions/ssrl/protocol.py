"""What is fitted and how: ten stratified folds, the settings chosen in
four ways, and single lists.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from jaxrules.lists.literals import literals_of
from jaxrules.rules.conditions import PropositionPool
from paper_reproductions.framework import Cell, Row, Settings
from paper_reproductions.ssrl import published

FOLDS = 10
SETS = {
    "iris": "iris",
    "WDBC": "breast_cancer",
    "COMPAS-binary": "compas_binary",
    "cmc": "cmc",
    "FICO-binary": "fico_binary",
    "cardio": "cardio",
    "page-blocks": "page_blocks",
    "FICO": "fico",
    "magic": "magic",
    "adult": "adult",
    "dry-bean": "dry_bean",
    "pendigits": "pendigits",
}
"""File by the paper's name, the quick ones first; gas is apart."""
LARGE = ("FICO", "magic", "adult", "dry-bean", "pendigits")
"""Sets with two inner folds instead of three, and at most 30 rules instead of 40:
the paper's have at most 34.
"""
QUICK_SETS = ("iris", "WDBC", "COMPAS-binary", "cmc")
GAS = {"raw, 8 of 10 batches": "gas", "standardised by batch": "gas_batch_standardised"}
MISSING: Any = "own_category"
DEFAULTS = {"iris": "virginica"}
"""The default label of the printed list, where the classes are of one size."""


def sets(settings: Settings) -> Sequence[str]:
    """The paper's names of the sets to run."""
    return QUICK_SETS if settings.quick else tuple(SETS)


def files(cell: Cell) -> tuple[str, ...]:
    """What a cell loads."""
    given = dict(cell.key)
    if "file" in given:
        return (GAS[given["file"]],)
    return ({**SETS, "gas": "gas_batch_standardised"}[given["data"]],)


def default_of(name: str) -> dict[str, Any]:
    """The argument that says the default label, if it is not the majority's."""
    return {"default": DEFAULTS[name]} if name in DEFAULTS else {}


def grid(name: str, settings: Settings) -> dict[str, Any]:
    """The settings to choose from, as `jaxrules.ssrl.cross_validate` takes them."""
    if settings.quick:
        return {"literal_penalties": (1.0, 5.0), "max_rules": (10,), "n_folds": 2}
    large = name in LARGE
    rules = published.MOST_RULES[::2] if large else published.MOST_RULES[::3]
    return {
        "literal_penalties": published.PENALTIES,
        "max_rules": rules,
        "n_folds": 2 if large else 3,
    }


NINTHS = 8
"""Quantiles k/9: 2.63, 4.9 and 1.6, the thresholds of the printed list for iris, are
among them; no decile is.
"""


def closed(X: jr.Table, n: int) -> dict[str, list[float]]:
    """Quantiles as cut points with which "< t" says "<= quantile", as in the printed list: the
    next numbers above. Columns with no more values than quantiles are left to `jaxrules`, which
    cuts them at every value.
    """
    cuts = {}
    for feature, column in zip(X.schema.features, X.columns, strict=True):
        there = column[np.isfinite(column)] if feature.is_numeric else np.empty(0)
        if len(np.unique(there)) > n:
            cuts[feature.name] = np.nextafter(
                np.quantile(there, np.arange(1, n + 1) / (n + 1)), np.inf
            ).tolist()
    return cuts


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows."""

    train: Dataset
    test: Dataset

    def quality(self, fit: jr.Fit[jr.RuleList], seconds: float) -> Row:
        """Test accuracy in per cent, size and time of a fit; the default counts
        as a rule, as in the paper.
        """
        conjunctions = fit.model.conjunctions
        return {
            "accuracy": 100 * jr.accuracy(fit.model, self.test.X, self.test.y),
            "rules": len(conjunctions) + 1, "literals": int(conjunctions.propositions.sum()),
            "objective": fit.objective, "status": str(fit.status), "cpu_seconds": seconds,
        }  # fmt: skip


@functools.lru_cache(maxsize=2)
def load(file: str) -> Dataset:
    """A data set; adult's missing values are a category of their own."""
    return jr.datasets.load(file)


def split(data: Dataset, fold: int, seed: int) -> Split:
    """One of ten stratified folds, shuffled with the seed: some files are sorted."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(data.y, data.y)
    inside, outside = list(folds)[fold]
    return Split(data[inside], data[outside])


PAPERS: dict[str, Any] = {"literal_penalty": 1.0, "max_cut_points": 9}
"""The paper's settings of what the library chooses from the data."""
WHOLE: dict[str, Any] = {"beam_literals": None, "beam_rows": None}
"""Beams of all literals and rows, where the library keeps the best 512 literals of more (gas)."""


def timed(X: Any, y: NDArray[Any], **options: Any) -> tuple[jr.Fit[jr.RuleList], float]:
    """A fit and its CPU seconds, compilation among them."""
    started = time.process_time()
    fit = jr.ssrl.fit(X, y, missing=MISSING, **{**PAPERS, **options})
    return fit, time.process_time() - started


# Tables 4 to 7


def fold_cells(settings: Settings) -> list[Cell]:
    """Every fold of every set; small sets come first."""
    folds = settings.first_folds(FOLDS, quick=2)
    return [Cell.of(data=name, fold=fold) for name in sets(settings) for fold in folds]


SHORTEST, ACCURATE, AS_LONG = "one standard error", "best accuracy", "at the paper's size"
"""Rules by which cross-validation chooses: the shortest list within one standard error; the most
accurate; the most accurate with at most the paper's mean and one standard deviation of rules.
"""


def measure_inside(cell: Cell, settings: Settings) -> list[Row]:
    """Penalty and number of rules chosen by cross-validation inside the training
    rows: a row for each rule.
    """
    name = cell["data"]
    part, tried, started = (
        split(load(SETS[name]), cell["fold"], settings.seed),
        grid(name, settings),
        time.process_time(),
    )
    fixed = {"cut_points": closed(part.train.X, NINTHS), **default_of(name), **WHOLE}
    fit = jr.ssrl.cross_validate(
        part.train.X, part.train.y, missing=MISSING, max_cut_points=9, seed=settings.seed,
        quick_folds=False, **fixed, **tried,
    )  # fmt: skip
    shortest = {option: fit.details[option] for option in ("literal_penalty", "max_rules")}
    rows = [{"choice": SHORTEST, **part.quality(fit, time.process_time() - started), **shortest}]
    accuracies, rules, literals = (
        fit.details[figure].mean(axis=0) for figure in ("accuracies", "rules", "literals")
    )
    (mean, deviation), _ = published.SIZES[name]["SSRL"]
    places = list(np.ndindex(accuracies.shape))
    short = [at for at in places if rules[at] + 1 <= mean + deviation] or [
        min(places, key=rules.__getitem__)
    ]
    for choice, allowed in ((ACCURATE, places), (AS_LONG, short)):
        at = min(allowed, key=lambda at: (-accuracies[at], literals[at]))
        setting = {
            "literal_penalty": tried["literal_penalties"][at[0]],
            "max_rules": tried["max_rules"][at[1]],
        }
        fit, seconds = timed(part.train.X, part.train.y, **setting, **fixed)
        rows.append({"choice": choice, **part.quality(fit, seconds), **setting})
    return rows


def measure_settings(cell: Cell, settings: Settings) -> list[Row]:
    """Test accuracy of every setting: a row each."""
    part = split(load(SETS[cell["data"]]), cell["fold"], settings.seed)
    tried, rows = grid(cell["data"], settings), []
    fixed = {"cut_points": closed(part.train.X, NINTHS), **default_of(cell["data"]), **WHOLE}
    for rules in tried["max_rules"]:
        for penalty in tried["literal_penalties"]:
            setting = {"literal_penalty": penalty, "max_rules": rules}
            fit, seconds = timed(part.train.X, part.train.y, **setting, **fixed)
            rows.append({**setting, **part.quality(fit, seconds)})
    return rows


# ModMod, the paper's own search

MODMOD_SETS = ("iris", "WDBC", "COMPAS-binary", "cmc", "FICO-binary", "cardio", "page-blocks")
"""Where a fold takes seconds. Of the others the paper's lists have 11 to 34 rules."""
MODMOD_RULES = 10
"""The smallest number of rules of the grid; the paper's lists for these sets have at most nine."""


def modmod_cells(settings: Settings) -> list[Cell]:
    """Every fold of the sets on which Algorithm 4 is quick; in small two sets."""
    folds = settings.first_folds(FOLDS, quick=1)
    names = MODMOD_SETS[:2] if settings.quick else MODMOD_SETS
    return [Cell.of(data=name, fold=fold) for name in names for fold in folds]


def measure_modmod(cell: Cell, settings: Settings) -> list[Row]:
    """Algorithm 4 with ModMod: a row for every penalty of the paper's grid."""
    name = cell["data"]
    part = split(load(SETS[name]), cell["fold"], settings.seed)
    fixed = {"cut_points": closed(part.train.X, NINTHS), **default_of(name)}
    rows = []
    for penalty in published.PENALTIES:
        started = time.process_time()
        fit = jr.ssrl.published(
            part.train.X,
            part.train.y,
            missing=MISSING,
            literal_penalty=penalty,
            max_rules=MODMOD_RULES,
            **fixed,
        )
        rows.append(
            {"literal_penalty": penalty, **part.quality(fit, time.process_time() - started)}
        )
    return rows


# What magic and iris need

VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "magic": {
        "k/9 quantiles, penalty 1, 40 rules": {},
        "deciles": {"max_cut_points": 9},
        "19 quantiles": {"max_cut_points": 19},
        "penalty 0.25": {"literal_penalty": 0.25},
        "penalty 2.5": {"literal_penalty": 2.5},
        "penalty 5": {"literal_penalty": 5.0},
        "60 rules": {"max_rules": 60},
        "first bound alone": {"max_rounds": 1},
        "no local search": {"local_search": False, "max_rounds": 10},
        "at most 2 literals": {"max_length": 2},
        "at most 3 literals": {"max_length": 3},
    },
    "iris": {
        "k/9 quantiles, penalty 1, 2 rules": {},
        "deciles": {"max_cut_points": 9},
        "k/9 quantiles, < and >=": {"max_cut_points": NINTHS},
        "penalty 0.5": {"literal_penalty": 0.5},
        "10 rules": {"max_rules": 10},
        "default setosa": {"default": "setosa"},
    },
}
"""The first row's setting, and what each other row changes; quantiles that it
names are cut by < and >=.
"""
BASE: dict[str, dict[str, Any]] = {
    "magic": {"max_rules": 40},
    "iris": {"max_rules": 2, "default": "virginica"},
}


def variant_cells(settings: Settings) -> list[Cell]:
    """iris on all folds, magic on four; when in small, two variants of magic on one."""
    cells = []
    for data, variants in VARIANTS.items():
        folds = settings.first_folds(
            FOLDS if data == "iris" else 4, quick=2 if data == "iris" else 1
        )
        chosen = list(variants)[:2] if settings.quick and data == "magic" else list(variants)
        cells += [
            Cell.of(data=data, variant=variant, fold=fold) for fold in folds for variant in chosen
        ]
    return sorted(cells, key=lambda cell: cell["data"])


def measure_variant(cell: Cell, settings: Settings) -> Row:
    """A variant of the setting on a fold; in small on a fifth of magic's rows."""
    name = cell["data"]
    data = load(name)
    part = split(
        data[np.arange(0, len(data), 5)] if settings.quick and name == "magic" else data,
        cell["fold"],
        settings.seed,
    )
    options = BASE[name] | VARIANTS[name][cell["variant"]]
    if "max_cut_points" not in options:
        options["cut_points"] = closed(part.train.X, NINTHS)
    fit, seconds = timed(part.train.X, part.train.y, **options)
    train = 100 * jr.accuracy(fit.model, part.train.X, part.train.y)
    return {
        **part.quality(fit, seconds),
        "training_accuracy": train,
        "n_literals": fit.details["n_literals"],
    }


# gas


def gas_cells(settings: Settings) -> list[Cell]:
    """Six classes, and each against the rest, of both files; with ``--slow``
    on all folds, else on one.
    """
    folds = settings.first_folds(FOLDS if settings.slow else 1)
    tasks = ("six classes", *(f"class {k} against the rest" for k in range(1, 7)))
    return (
        []
        if settings.quick
        else [Cell.of(file=f, task=t, fold=k) for k in folds for t in tasks for f in GAS]
    )


def measure_gas(cell: Cell, settings: Settings) -> Row:
    """One setting, as for the paper's size: at most 20 rules, penalty 1."""
    data = load(GAS[cell["file"]])
    part = split(data, cell["fold"], settings.seed)
    if cell["task"] != "six classes":
        label = int(cell["task"].split()[1])
        part = Split(*(_against_rest(rows, label) for rows in (part.train, part.test)))
    fit, seconds = timed(part.train.X, part.train.y, max_rules=20, **WHOLE)
    return part.quality(fit, seconds)


def _against_rest(data: Dataset, label: int) -> Dataset:
    return Dataset(data.name, data.X, np.asarray(data.y) == label, "binary")


# Fig. 4

REPEATS = 5
FEATURES = {"gas": (500, 550, 600, 650, 700, 750), "WDBC": (100, 200, 300, 400, 500, 540)}
"""The paper's sizes; the last takes all of WDBC, 538 literals here and 540 in the paper."""


def time_cells(settings: Settings) -> list[Cell]:
    """A random part of the binary features, five times (in small once, WDBC alone)."""
    names = ("WDBC",) if settings.quick else ("WDBC", "gas")
    repeats = settings.first_folds(REPEATS)
    return [
        Cell.of(data=d, features=n, repeat=r) for d in names for r in repeats for n in FEATURES[d]
    ]


def drawn(cell: Cell, settings: Settings) -> tuple[Dataset, NDArray[Any], PropositionPool]:
    """Rows, classes and literals of a cell of Fig. 4; fewer features are a part of more."""
    data = load({"gas": "gas_batch_standardised", "WDBC": "breast_cancer"}[cell["data"]])
    y = np.asarray(data.y) == data.y[0] if cell["data"] == "gas" else data.y
    pool = literals_of(data.X)
    order = np.random.default_rng([settings.seed, cell["repeat"]]).permutation(len(pool))
    return data, y, pool.take(np.sort(order[: cell["features"]]))


def measure_time(cell: Cell, settings: Settings) -> Row:
    """Seconds of a second fit with the same shapes: nothing is compiled in it. Its accuracy on the
    same rows in per cent; rules without the default.
    """
    data, y, pool = drawn(cell, settings)
    timed(data.X, y, propositions=pool, max_rules=10)
    started = time.perf_counter()
    fit, seconds = timed(data.X, y, propositions=pool, max_rules=10)
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": seconds,
        "rules": len(fit.model.conjunctions),
        "accuracy": 100 * jr.accuracy(fit.model, data.X, y),
    }


# Tables 8 and 9


def list_cells(settings: Settings) -> list[Cell]:
    """The printed lists' data sets."""
    return [Cell.of(data="COMPAS-binary"), Cell.of(data="iris")]


LISTS: dict[str, dict[str, Any]] = {
    "COMPAS-binary": {"max_rules": 4, "literal_penalty": 5.0},
    "iris": {"max_rules": 2, "literal_penalty": 0.5, "default": "virginica"},
}


def measure_list(cell: Cell, settings: Settings) -> list[Row]:
    """Our list on all rows, line by line, with its rows right; and the
    paper's list on the same rows.
    """
    data, options = load(SETS[cell["data"]]), LISTS[cell["data"]]
    fit, _ = timed(data.X, data.y, **options, cut_points=closed(data.X, NINTHS))
    right = round(jr.accuracy(fit.model, data.X, data.y) * len(data))
    theirs = int(np.sum(printed_list(cell["data"], data) == data.y))
    lines = str(fit.model).splitlines()
    return [
        {
            "line": line,
            "right": right,
            "paper_right": theirs,
            "n": len(data),
            "objective": fit.objective,
            "literals": int(fit.model.conjunctions.propositions.sum()),
        }
        for line in lines
    ]


def printed_list(name: str, data: Dataset) -> NDArray[Any]:
    """What the list of Table 8 or 9 says of every row."""
    columns = dict(zip(data.X.schema.names, data.X.columns, strict=True))
    if name == "iris":
        length, width = columns["petal length (cm)"], columns["petal width (cm)"]
        classes = np.unique(data.y)
        return classes[
            np.where(length <= 2.63, 0, np.where((length <= 4.9) & (width <= 1.6), 1, 2))
        ]
    holds = {column: values == 1 for column, values in columns.items()}
    rules = (
        (~holds["juvenile-crimes:=0"] & holds["juvenile-misdemeanors:=0"], 1),
        (~holds["age:<26"] & holds["priors:2-3"], 0),
        (holds["age:<21"] & ~holds["sex:Female"], 1),
        (~holds["priors:=0"] & ~holds["priors:=1"], 1),
    )
    predicted, open_ = np.zeros(len(data), int), np.ones(len(data), bool)
    for covered, label in rules:
        predicted[open_ & covered] = label
        open_ &= ~covered
    return predicted
