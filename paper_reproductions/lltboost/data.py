"""The ten data sets, and the bootstrap samples that they are repeated on."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from paper_reproductions.framework import Cell
from paper_reproductions.lltboost import published

SETS = {
    "Housing": "california_housing",
    "Wine": "red_wine_quality",
    "Diabetes": "diabetes",
    "Friedman": "friedman1",
    "Cars": "used_cars",
    "Cancer": "breast_cancer",
    "Banknote": "banknote",
    "Voice": "voice",
    "Magic": "magic",
    "Liver": "liver",
}
"""Names for `jaxrules.datasets.load`; regression first, from Cancer on two classes."""
CLASSIFICATIONS = tuple(SETS)[tuple(SETS).index("Cancer") :]


def files(cell: Cell) -> tuple[str, ...]:
    """What a cell loads."""
    return (SETS[dict(cell.key).get("data", "Banknote")],)


@functools.lru_cache(maxsize=2)
def load(name: str) -> Dataset:
    """A set with standardised columns and, for regression, a standardised target: risks
    are shares of its variance.
    """
    data = jr.datasets.load(SETS[name])
    X = data.X.numeric_matrix()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = (data.y - data.y.mean()) / data.y.std() if data.task == "regression" else data.y
    return replace(data, X=jr.as_table(X, feature_names=list(data.X.names)), y=y)


@functools.lru_cache(maxsize=2)
def sample(name: str, repeat: int, seed: int = 0) -> tuple[Dataset, Dataset]:
    """A bootstrap sample of at most 500 rows to train on, and the rows
    out of the bag to test on.
    """
    data = load(name)
    rng = np.random.default_rng([seed, repeat, tuple(SETS).index(name)])
    drawn = rng.integers(0, len(data), min(len(data), published.MOST_ROWS))
    rest = np.ones(len(data), bool)
    rest[drawn] = False
    return data[drawn], data[np.flatnonzero(rest)]


def two_columns(repeat: int, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Banknote with the columns of Fig. 1 alone."""
    train, test = sample("Banknote", repeat, seed)

    def narrow(part: Dataset) -> Dataset:
        return replace(
            part, X=jr.as_table(part.X.numeric_matrix()[:, :2], feature_names=["var", "skew"])
        )

    return narrow(train), narrow(test)
