"""The 24 data sets of Table 1 with the authors' splits, and the propositions that
their program makes of them.

`settings.json` holds what the authors publish for each set: cut points, both
lambdas and five split seeds.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules import datasets
from jaxrules.data.datasets import Dataset
from jaxrules.rules.conditions import PropositionPool
from paper_reproductions.framework import Cell

CLASSIFICATION_2 = (
    "sklearn.datasets.make_classification(n_samples=2000, n_features=8, n_classes=2, "
    "n_informative=3, n_redundant=3, "
    "n_repeated=0, n_clusters_per_class=3, hypercube=True)"
)


@dataclass(frozen=True)
class Source:
    """Where a set comes from, and how the authors' program was set for it.

    Attributes:
        name: for `jaxrules.datasets.load`, or a generator's name.
        penalty, greedy_penalty: the lambda of the optimal and of the greedy learner.
        most: the most attributes of a numeric column, two for every cut point;
            by name where it differs.
        seeds: of the splits, and of what is generated.
        rulefit_C: the ends of RuleFit's penalties, scikit-learn's C.
        generated: rows to generate, 0 for data from a file.
        positive: the class of interest.
    """

    name: str
    penalty: float
    greedy_penalty: float
    most: int
    most_of: Mapping[str, int]
    seeds: tuple[int, ...]
    rulefit_C: tuple[float, float]
    generated: int = 0
    positive: str | None = None


def _sources() -> dict[str, Source]:
    published: dict[str, Any] = json.loads(
        (Path(__file__).parent / "settings.json").read_text("utf-8")
    )["sets"]
    places: dict[str, tuple[str, int, str | None]] = {
        "breast cancer": ("breast_cancer", 0, "benign"),
        "digits (5)": ("digits5", 0, None),
        "gender recog": ("voice", 0, "male"),
        "IBM HR": ("ibm_hr", 0, None),
        "iris (1)": ("iris", 0, "versicolor"),
        "wine (1)": ("wine", 0, "class_1"),
        "classification2": ("classification", 2000, "1"),
        "telco churn": ("telco_churn", 0, None),
        "tic-tac-toe": ("tic_tac_toe", 0, "positive"),
        "titanic": ("titanic_orb", 0, None),
        "boston": ("boston", 0, None),
        "demographics": ("demographics", 0, None),
        "insurance": ("insurance", 0, None),
        "load diabetes": ("diabetes", 0, None),
        "friedman1": ("friedman1", 2000, None),
        "friedman2": ("friedman2", 2000, None),
        "friedman3": ("friedman3", 2000, None),
        "mobile prices": ("mobile_prices", 0, None),
        "red wine quality": ("red_wine_quality", 0, None),
        "suicide rates": ("suicide_rates", 0, None),
        "used cars": ("used_cars", 0, None),
        "videogamesales": ("videogamesales", 0, None),
        "life expectancy": ("life_expectancy", 0, None),
        "world happiness": ("world_happiness", 0, None),
    }
    sources = {}
    for name, (place, generated, positive) in places.items():
        given = published[name]
        penalties, most = (given["optimal_l2"], given["greedy_l2"]), given["max_attributes"]
        seeds, C = tuple(given["split_seeds"]), tuple(given["rulefit_C"])
        most_of = given.get("max_attributes_of", {})
        sources[name] = Source(place, *penalties, most, most_of, seeds, C, generated, positive)
    return sources


SETS = _sources()


def files(cell: Cell) -> tuple[str, ...]:
    """What a cell loads."""
    source = SETS[cell["data"]]
    return () if source.generated else (source.name,)


@functools.lru_cache(maxsize=4)
def load(name: str, seed: int) -> Dataset:
    """A set of Table 1; the target of a classification is 0 or 1. `seed`
    is that of the generators.
    """
    source = SETS[name]
    data = _generate(source, seed) if source.generated else datasets.load(source.name)
    if data.task == "regression":
        return data
    positive = source.positive or data.positive_class
    if positive is None:
        raise ValueError(f"{name} needs a positive class")
    return replace(
        data,
        y=(data.y.astype(str) == str(positive)).astype(np.int64),
        task="binary",
        positive_class="1",
    )


def _generate(source: Source, seed: int) -> Dataset:
    from sklearn import datasets as generators

    if source.name == "classification":
        X, y = generators.make_classification(
            source.generated,
            8,
            n_informative=3,
            n_redundant=3,
            n_repeated=0,
            n_classes=2,
            n_clusters_per_class=3,
            hypercube=True,
            random_state=seed,
        )
        return Dataset(source.name, jr.as_table(X), y, "binary", "1", CLASSIFICATION_2)
    X, y = getattr(generators, f"make_{source.name}")(
        source.generated, noise=0.1, random_state=seed
    )
    return Dataset(source.name, jr.as_table(X), y, "regression")


def split(name: str, number: int, seed: int = 0) -> tuple[Dataset, Dataset]:
    """The authors' random 80/20 split of this number, 0 to 4; another one where `seed` is not 0."""
    from sklearn.model_selection import train_test_split

    random_state = (SETS[name].seeds[number] + seed) % 2**32
    whole = load(name, random_state if SETS[name].generated else 0)
    train, test = train_test_split(np.arange(len(whole)), test_size=0.2, random_state=random_state)
    return whole[train], whole[test]


def folds(data: Dataset, n_folds: int, seed: int = 0) -> Iterator[tuple[Dataset, Dataset]]:
    """Training and held-out rows of each fold, for choosing lambda."""
    fold = np.random.default_rng(seed).permutation(len(data)) % n_folds
    for k in range(n_folds):
        yield data[np.flatnonzero(fold != k)], data[np.flatnonzero(fold == k)]


def attributes(name: str, table: jr.Table) -> PropositionPool:
    """The attributes that the authors' program makes of training rows, in its
    order: ascending support.

    A numeric column has <= v and >= v at quantiles, the minimum left out; or, if there are at most
    as many as allowed, for all its values. A categorical column has == v only. Some hold on all
    rows (<= maximum), some are equal.
    """
    source = SETS[name]
    return _by_support(
        _attributes(table, lambda column: source.most_of.get(column, source.most)), table
    )


def propositions(name: str, table: jr.Table) -> PropositionPool:
    """The `attributes` that tell rows apart, each once."""
    return attributes(name, table).distinct(table)


def quantile_propositions(table: jr.Table, most: int) -> PropositionPool:
    """As `propositions`, for a table that is none of Table 1's sets."""
    return _by_support(_attributes(table, lambda column: most), table).distinct(table)


def _attributes(table: jr.Table, most: Any) -> list[jr.Condition]:
    found: list[jr.Condition] = []
    for j, (feature, column) in enumerate(zip(table.schema.features, table.columns, strict=True)):
        if feature.categories is not None:
            found += [jr.Condition.one_of(j, [code]) for code in range(len(feature.categories))]
            continue
        values = np.unique(column)
        if 2 * len(values) > most(feature.name):
            cuts = np.unique(_quantiles(np.sort(column), most(feature.name) // 2))[1:]
            sides = jr.Condition.at_most, jr.Condition.at_least
            found += [side(j, cut) for cut in cuts.tolist() for side in sides]
        else:
            found += [jr.Condition.at_most(j, value) for value in values[:-1].tolist()]
            found += [jr.Condition.at_least(j, value) for value in values[1:].tolist()]
    return found


def _quantiles(ordered: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    """The quantiles 0, 1 / parts, ..., 1 with the rounding of the pandas of that time.

    It matters where a quantile is a value of the column: NumPy's, a last digit away,
    is on the other side of it.
    """
    at = np.linspace(0, 1, parts + 1) * (len(ordered) - 1)
    below = np.floor(at).astype(int)
    step = ordered[np.minimum(below + 1, len(ordered) - 1)] - ordered[below]
    return ordered[below] + step * (at - below)


def _by_support(given: list[jr.Condition], table: jr.Table) -> PropositionPool:
    pool = PropositionPool.of(table.schema, given)
    return pool.take(np.argsort(pool.satisfied(table).sum(axis=0), kind="stable"))
