"""What several test files need: bars that are not drawn, a small table and models of it, and the
meaning of conditions in plain Python.
"""

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxrules as jr
from jaxrules.data.table import MISSING, UNSEEN
from jaxrules.rules.lowered import Direction


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bars that are drawn, none of them on the screen."""
    import tqdm.auto

    drawn: list[Any] = []

    class Quiet(tqdm.auto.tqdm):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs, file=io.StringIO())
            drawn.append(self)

    monkeypatch.setattr(tqdm.auto, "tqdm", Quiet)
    return drawn


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def schema() -> jr.Schema:
    """Two numeric columns and a categorical one; missing values allowed; two classes."""
    features = (
        jr.Feature("age"),
        jr.Feature("job", ("clerk", "cook", "smith")),
        jr.Feature("income"),
    )
    return jr.Schema(features, "own_category", ("no", "yes"), "buys")


@pytest.fixture
def table(schema: jr.Schema) -> jr.Table:
    """Eight rows with cut points, neighbours of cut points, missing
    values and an unseen category.
    """
    age = np.array([18.0, 30.0, np.nextafter(30.0, 99.0), 45.0, np.nan, -0.0, 1e300, 44.0])
    job = np.array([0, 1, 2, MISSING, 0, UNSEEN, 1, 2], np.int32)
    income = np.array([0.0, 1.5, np.nan, -2.5, 1e-300, 1e-300, 7.0, -1e300])
    return jr.Table(schema, (age, job, income))


@pytest.fixture
def rules(schema: jr.Schema) -> jr.Conjunctions:
    """Five rules: an interval, a mix, the empty conjunction, one that nothing
    satisfies, one on missing values.
    """
    c = jr.Condition
    return jr.Conjunctions.build(
        schema,
        [
            [c.above(0, 30.0), c.at_most(0, 45.0)],
            [c.none_of(1, [0], 3), c.at_least(2, 0.0, missing=True)],
            [],
            [c.above(0, 45.0), c.at_most(0, 30.0)],
            [c.is_missing(2, numeric=True)],
        ],
    )


@pytest.fixture
def ensemble(rules: jr.Conjunctions) -> jr.RuleEnsemble:
    return jr.RuleEnsemble(
        rules,
        np.array([[0.5], [-1.25], [0.125], [4.0], [0.0]]),
        np.array([-0.375]),
        link="logistic",
        options=(("loss", "logistic"), ("penalty", 0.1)),
    )


@pytest.fixture
def rule_list(rules: jr.Conjunctions) -> jr.RuleList:
    chosen = rules.take([4, 0, 1])
    shares = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5], [0.625, 0.375]])
    return jr.RuleList(chosen, np.array([1, 0, 1, 0], np.int32), shares)


def holds(condition: jr.Condition, value: float, numeric: bool) -> bool:
    """The meaning of one condition, in plain Python."""
    if numeric:
        if value != value:
            return condition.missing
        lower, upper = condition.lower, condition.upper  # infinite ends are none, sums may overflow
        above = lower == -math.inf or (value >= lower if condition.lower_closed else value > lower)
        below = upper == math.inf or (value <= upper if condition.upper_closed else value < upper)
        return bool(above and below and lower < math.inf and upper > -math.inf)
    if value == MISSING:
        return condition.missing
    if value == UNSEEN:
        return condition.unseen
    return int(value) in (condition.categories or frozenset())


def value_of(feature: int | Direction, table: jr.Table, row: int) -> float:
    """A column's value in one row, or a direction's: a plain sum in the order of its terms."""
    if isinstance(feature, int):
        return table.columns[feature][row].item()
    total = 0.0
    for f, weight, code, origin in zip(*feature.terms, strict=True):
        value = table.columns[f][row].item()
        total += weight * (
            value - origin if table.schema.features[f].is_numeric else float(value == code)
        )
    return total


def by_hand(rules: Any, table: jr.Table) -> np.ndarray:
    """Which rules every row satisfies, by loops; `rules` is an iterable
    of sequences of conditions.
    """
    rules = [list(rule) for rule in rules]
    result = np.zeros((table.n_rows, len(rules)), bool)
    for i in range(table.n_rows):
        for r, rule in enumerate(rules):
            result[i, r] = all(
                holds(c, value_of(c.feature, table, i), c.categories is None) for c in rule
            )
    return result


@pytest.fixture(scope="session")
def oracle() -> Callable[[Any, jr.Table], np.ndarray]:
    """Which rules every row satisfies, from the meaning of the conditions alone."""
    return by_hand
