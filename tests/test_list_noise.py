"""Lists of noise and of a step: the penalty that noise asks for, and the thresholds of the data."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import jaxrules as jr
from jaxrules.lists.literals import literals_for, split_literals
from jaxrules.lists.noise import Left
from jaxrules.lists.reading import ListOptions, list_data
from jaxrules.rules.constraints import Constraints

LEARNERS = [jr.ssrl, jr.exact_list]
NAMES = ["ssrl", "exact_list"]


def columns(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Normal columns, and a step in the first that no decile meets."""
    X = np.random.default_rng(seed).normal(size=(rows, 6))
    return X, X[:, 0] > 0.1234


@given(
    st.floats(1, 1e5), st.floats(0, 1e5), st.floats(0, 1e5), st.integers(2, 10_000)
)  # fmt: skip
@settings(deadline=None)
def test_what_chance_gains_is_the_best_over_all_numbers_of_rows(
    right: float, second: float, others: float, literals: int
) -> None:
    rows = right + second + others
    p1, p2 = right / rows, second / rows
    w = np.linspace(0, rows / 2, 20_001)
    deviation = np.sqrt(w * (p1 + p2 - (p1 - p2) ** 2))
    best = (np.sqrt(2 * np.log(literals)) * deviation - w * max(p1 - p2, 0)).max()
    found = Left(second + others, 0.0, second + others, right, second, rows).by_chance(literals)
    assert best <= found * (1 + 1e-9) + 1e-9
    # The grid is coarse where a few of many rows are best.
    assert found == pytest.approx(best, rel=1e-3) or found < rows / 1000


def test_what_a_list_leaves() -> None:
    decided = np.array([[5.0, 1.0, 0.0], [2.0, 7.0, 3.0], [0.0, 1.0, 4.0]])
    left = Left.of_list(decided, np.array([0, 1, 2]), literals=3.0, first=1)
    assert left[:-1] == (7.0, 3.0, 14.0, 11.0, 4.0, 17.0)
    # Of the last two rules: the entropy of (2, 8, 7), less those of (2, 7, 3) and (0, 1, 4).
    whole = 17 * np.log(17) - 2 * np.log(2) - 8 * np.log(8) - 7 * np.log(7)
    parts = 12 * np.log(12) - 2 * np.log(2) - 7 * np.log(7) - 3 * np.log(3)
    parts += 5 * np.log(5) - 4 * np.log(4)
    assert left.explained == pytest.approx(whole - parts)
    assert left.words(100) == pytest.approx(3 * np.log(100) / left.explained)
    assert left.words(1) == left._replace(explained=0.0).words(100) == 0.0


@pytest.mark.parametrize("flipped", [0.0, 0.1, 1.0])
def test_lists_of_hundreds_of_columns_are_no_longer_than_the_truth(flipped: float) -> None:
    """Lists of noise are almost without errors: it shows in the number of their literals."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 300))
    y = ((X[:, 0] > 0.3) & (X[:, 1] > -0.2)) | (X[:, 2] > 1)
    y = rng.permutation(y) if flipped == 1.0 else y ^ (rng.random(500) < flipped)
    assert jr.support(jr.ssrl.fit(X, y).model) == (0 if flipped == 1.0 else 2)


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
@pytest.mark.parametrize("rows", [200, 1000])
def test_noise_has_no_rule(learner: Any, rows: int) -> None:
    """With a penalty of 4 there were as many as allowed."""
    X, _ = columns(rows)
    fit = learner.fit(X, np.random.default_rng(1).integers(0, 2, rows), max_cut_points=4)
    assert jr.support(fit.model) == 0
    assert "literals gains by chance where 100% of the errors" in fit.chosen
    value = fit.details.literal_penalty
    assert fit.chosen.startswith(f"literal_penalty={value:g}: ")
    assert value > 4


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_step_has_one_rule(learner: Any, noise: float) -> None:
    X, step = columns(500)
    y = step ^ (np.random.default_rng(2).random(500) < noise)
    fit = learner.fit(X, y, max_rules=3)
    (rule,) = fit.model.conjunctions
    assert [condition.feature for condition in rule] == [0]
    assert (jr.predict(fit.model, X) == step).mean() > (0.97 if noise else 0.9999)


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_literals_that_gain_only_together_are_found(learner: Any) -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(2300, 6))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0) ^ (r.random(2300) < 0.1)
    fit = learner.fit(X[:300], y[:300])
    assert len(fit.model.conjunctions) == 2
    assert fit.details["literal_penalty"] == pytest.approx(4.0, rel=0.2)
    assert jr.accuracy(fit.model, X[300:], y[300:]) > 0.8
    squares = r.uniform(0, 4, (1500, 2))
    fit = learner.fit(squares, np.floor(squares).sum(axis=1) % 2 == 1)
    assert jr.accuracy(fit.model, squares, np.floor(squares).sum(axis=1) % 2 == 1) > 0.65


def test_a_step_of_numbers_has_one_rule() -> None:
    X, step = columns(500)
    fit = jr.regression_list.fit(X, step + 0.1 * np.random.default_rng(2).normal(size=500))
    assert jr.support(fit.model) == 1
    assert (abs(jr.predict(fit.model, X) - step) < 0.1).all()


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_the_penalty_falls_where_rules_leave_less(learner: Any) -> None:
    """Beside no rule chance gains more than beside the list; the list is that of its penalty."""
    X, step = columns(600)
    y = step ^ (np.random.default_rng(3).random(600) < 0.15)
    fit = learner.fit(X, y, max_rules=2)
    value = fit.details.literal_penalty
    counts = np.bincount(y).astype(float)
    none = Left.of_list(counts[None], np.array([counts.argmax()]), 0.0)
    assert 4 <= value < none.by_chance(100) / 2
    given = learner.fit(X, y, max_rules=2, literal_penalty=value)
    assert list(given.model.conjunctions) == list(fit.model.conjunctions)
    assert given.objective == fit.objective


def test_thresholds_that_the_data_choose() -> None:
    X, step = columns(400)
    table = jr.as_table(np.column_stack([X[:, :2], np.round(10 * X[:, 0])]))
    data = list_data(table, step, None, ListOptions())
    none = Constraints()
    chosen = split_literals(data, none, (), seed=0)
    for (condition,) in chosen:
        ends = condition.lower, condition.upper
        threshold = min(ends, key=abs)
        column = np.sort(table.columns[condition.feature])
        k = np.searchsorted(column, threshold)
        assert column[k - 1] < threshold <= column[k]
        assert condition.feature < 2 or threshold == np.round(threshold)
    below, above = chosen.satisfied(table).T[:2]
    assert (above == step).all()
    assert (below == ~step).all()
    assert not (split_literals(data, none, ("x0",), 0).feature == 0).any()
    forbidden = Constraints.of(table.schema, [0, 2], (), None)
    assert set(split_literals(data, forbidden, (), 0).feature.tolist()) <= {1}
    options: Any = {"cut_points": None, "seed": 0}
    fixed = literals_for(data, none, max_cut_points=9, **options)
    both = literals_for(data, none, max_cut_points="auto", **options)
    assert len(fixed) < len(both) <= len(fixed) + len(chosen)
    assert both.describe(0) == fixed.describe(0)
