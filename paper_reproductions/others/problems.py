"""Data sets and the splits of the sources, drawn again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules.data.datasets import Dataset

Split = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Problem:
    """Data and splits of a source.

    Attributes:
        file: for `jaxrules.datasets.load`.
        load: the data as the source has them; the target of a classification is 0
            or 1, as it is coded there.
        split: number -> training and test rows.
        splits: how many there are.
        measure: what is chosen by, and compared first.
        note: what differs from the source.
    """

    file: str
    load: Callable[[], Dataset]
    split: Callable[[Dataset, int], Split]
    measure: str
    splits: int = 1
    note: str = ""


def _coded(file: str, positive: str) -> Dataset:
    data = jr.datasets.load(file)
    return replace(data, y=(data.y == positive).astype(np.int64), task="binary", positive_class=1)


def heloc() -> Dataset:
    """Without the rows that are -9 throughout; every other negative code is missing,
    as in `nan_preprocessing`.
    """
    data = _coded("fico", "Good")
    X = data.X.numeric_matrix()
    kept = (X > -9).any(axis=1)
    X = np.where(X >= 0, X, np.nan)[kept]
    table = jr.as_table(X, feature_names=list(data.X.names), missing="own_category")
    return replace(data, X=table, y=data.y[kept])


def random_split(
    test_size: float, random_state: int, stratified: bool = False
) -> Callable[[Dataset, int], Split]:
    """scikit-learn's train_test_split; further splits have the next random states."""

    def split(data: Dataset, number: int) -> Split:
        from sklearn.model_selection import train_test_split

        rows: Any = train_test_split(
            np.arange(len(data)), test_size=test_size, random_state=random_state + number,
            stratify=data.y if stratified else None,
        )  # fmt: skip
        return rows[0], rows[1]

    return split


def shuffled(data: Dataset, number: int) -> Split:
    """One of interpret's three stratified splits."""
    from sklearn.model_selection import StratifiedShuffleSplit

    splits = StratifiedShuffleSplit(3, test_size=0.25, random_state=1337).split(data.y, data.y)
    return list(splits)[number]


PROBLEMS: dict[str, Problem] = {
    "breast cancer, rulelearn": Problem(
        "breast_cancer",
        lambda: _coded("breast_cancer", "benign"),
        random_split(0.2, 31),
        "accuracy",
    ),
    "boston, rulelearn": Problem(
        "boston", lambda: jr.datasets.load("boston"), random_split(0.25, 31), "R2"
    ),
    "HELOC, AIX360": Problem("fico", heloc, random_split(0.25, 0, True), "accuracy"),
    "adult, rulelearn": Problem(
        "adult_train", lambda: _coded("adult_train", ">50K"), random_split(0.2, 42), "accuracy"
    ),
    "breast cancer, interpret": Problem(
        "breast_cancer", lambda: _coded("breast_cancer", "benign"), shuffled, "AUC", 3
    ),
    "telco, interpret": Problem(
        "telco_churn",
        lambda: _coded("telco_churn", "Yes"),
        shuffled,
        "AUC",
        3,
        note="Our file lacks TotalCharges, which the source reads as text: its logistic regression, forest and XGBoost "
        "have a column for every one of its values.",
    ),
    "adult, interpret": Problem(
        "adult_train", lambda: _coded("adult_train", ">50K"), shuffled, "AUC", 3
    ),
}
"""By name, the quick ones first."""


@functools.lru_cache(maxsize=2)
def rows_of(name: str, number: int) -> tuple[Dataset, Dataset]:
    """Training and test rows of a problem."""
    problem = PROBLEMS[name]
    data = problem.load()
    train, test = problem.split(data, number)
    return data[train], data[test]
