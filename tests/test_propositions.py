"""Propositions: evaluation, cell codes, the pool of a table, conversion to conditions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.data.table import MISSING, Feature, Schema, Table
from jaxrules.rules.conditions import PropositionPool, all_propositions, propositions_of
from jaxrules.solvers.rule_search import SearchSpace, space
from jaxrules.tools.runs import Stopped

C = jr.Condition
Oracle = Callable[[Any, Table], np.ndarray]


def a_table(numbers: list[float | None], colours: list[int]) -> Table:
    """Two columns; None and code -1 are missing."""
    schema = Schema(
        (Feature("size"), Feature("colour", ("blue", "green", "red"))), missing="own_category"
    )
    column = np.array([np.nan if number is None else number for number in numbers])
    return Table(schema, (column, np.array(colours, np.int32)))


tables = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(-3, 3).map(float)), st.integers(MISSING, 2)),
    min_size=1,
    max_size=25,
).map(lambda rows: a_table([number for number, _ in rows], [colour for _, colour in rows]))


@pytest.mark.full
@settings(max_examples=150)
@given(table=tables, max_cut_points=st.one_of(st.none(), st.integers(1, 4)))
def test_masks_codes_and_conditions_agree(table: Table, max_cut_points: int | None) -> None:
    pool = propositions_of(table, max_cut_points=max_cut_points)
    masks = pool.satisfied(table)
    assert masks.shape == (table.n_rows, len(pool))
    space = SearchSpace.of_codes(*pool.cell_codes(table))
    np.testing.assert_array_equal(space.activations.dense[space.activations.pattern], masks)
    rules = pool.conjunctions([[a] for a in range(len(pool))])
    np.testing.assert_array_equal(rules.satisfied(table), masks)


@settings(max_examples=100)
@given(table=tables)
def test_the_pool_is_complete_and_has_no_repetitions(table: Table) -> None:
    pool = propositions_of(table)
    masks = pool.satisfied(table)
    extents = {mask.tobytes() for mask in masks.T}
    assert len(extents) == len(pool)
    assert not masks.all(axis=0).any()
    assert masks.any(axis=0).all()
    size, colour = table.columns
    possible = [size <= v for v in size] + [size >= v for v in size] + [size < v for v in size]
    possible += [colour == c for c in range(3)] + [colour != c for c in range(3)]
    possible += [np.isnan(size), ~np.isnan(size), colour == MISSING, colour != MISSING]
    for mask in possible:
        assert mask.all() or not mask.any() or mask.tobytes() in extents


@settings(max_examples=100)
@given(table=tables, data=st.data())
def test_of_equal_propositions_the_first_stays(
    oracle: Oracle, table: Table, data: st.DataObject
) -> None:
    thresholds = C.at_most, C.at_least, C.below, C.above
    asked = [threshold(0, v) for threshold in thresholds for v in (-1.0, 0.5)]
    asked += [C.one_of(1, [code]) for code in range(3)]
    asked += [C.none_of(1, [code], 3) for code in range(3)]
    asked += [C.is_missing(0, numeric=True), C.is_missing(1, numeric=False)]
    asked += [C.is_present(0, None), C.is_present(1, 3)]
    directions = [jr.Direction((0, 1), (weight, 2.0), (MISSING, 1)) for weight in (-1.0, 2.0)]
    asked += [C.at_least(direction, 1.0) for direction in directions]
    asked += [jr.Condition(0, -1.0, 2.0, missing=True), jr.Condition(0, 1.0, -1.0)]
    pool = PropositionPool.of(table.schema, data.draw(st.permutations(asked)))
    masks, kept = oracle(pool, table), {}
    for i, mask in enumerate(masks.T):
        if mask.any() and not mask.all():
            kept.setdefault(mask.tobytes(), i)
    np.testing.assert_array_equal(masks, pool.satisfied(table))
    assert list(pool.distinct(table)) == list(pool.take(list(kept.values())))
    space = SearchSpace.of_codes(*pool.cell_codes(table))
    np.testing.assert_array_equal(space.activations.dense[space.activations.pattern], masks)


def test_quantiles() -> None:
    table = jr.as_table(np.arange(101.0)[:, None])
    pool = propositions_of(table, max_cut_points=4)
    cuts = set(np.concatenate([pool.lower, pool.upper]).tolist()) - {-np.inf, np.inf}
    assert cuts == {20.0, 40.0, 60.0, 80.0}
    pool = propositions_of(table, max_cut_points=1)
    operators = [pool.describe(i).split()[1] for i in range(len(pool))]
    assert operators == ["<=", ">=", "<", ">"]
    few = propositions_of(jr.as_table(np.array([[0.0], [1.0], [2.0]])), max_cut_points=2)
    assert {few.describe(i).split()[1] for i in range(len(few))} == {"<=", ">="}


def test_halfspaces_are_evaluated_in_order_and_are_conditions() -> None:
    table = jr.as_table(np.array([[1.0, 2.0], [0.5, 0.0], [0.1, 0.2]]))
    halfspace = C.at_least(jr.Direction((0, 1), (1.0, -0.5)), 0.0)
    pool = PropositionPool.of(table.schema, [halfspace, C.above(0, 0.3)])
    np.testing.assert_array_equal(pool.satisfied(table)[:, 0], [True, True, True])
    assert pool.describe(0) == "x0 - 0.5 x1 >= 0"
    space = SearchSpace.of_codes(*pool.cell_codes(table))
    np.testing.assert_array_equal(
        space.activations.dense[space.activations.pattern], pool.satisfied(table)
    )
    both = pool.conjunctions([[0, 1]])
    assert both.describe(0) == "x0 - 0.5 x1 >= 0 & x0 > 0.3"
    np.testing.assert_array_equal(both.satisfied(table)[:, 0], [True, True, False])
    with pytest.raises(ValueError, match="distinct and ascending"):
        jr.Direction((1, 0), (1.0, 1.0))
    with pytest.raises(ValueError, match="features of a direction must be one or more"):
        jr.Direction((1,), ())


def test_of_the_categories_the_most_frequent() -> None:
    colours = [2, 2, 0, 1, 1, 2, MISSING]
    table = a_table([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], colours)
    for most, expected in ((None, [0, 1, 2]), (4, [0, 1, 2]), (2, [1, 2]), (1, [2])):
        assert table.compared_categories(1, most) == expected
        named = all_propositions(table, max_cut_points=1, max_categories=most)
        texts = {named.describe(a) for a in range(len(named))}
        colour = {f"colour == {('blue', 'green', 'red')[c]}" for c in expected}
        assert {text for text in texts if text.startswith("colour ==")} == colour
        assert "size is missing" not in texts
        assert sum(text.startswith("size") for text in texts) == 4


def test_the_clock_is_asked_while_rows_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many categories are as many columns of codes, which take seconds to number."""
    n, columns = 1 << 14, 1 << 10
    codes = np.asfortranarray(np.random.default_rng(0).integers(0, 2, (n, columns), np.uint16))
    asked: list[int] = []

    def stop() -> None:
        asked.append(1)
        raise Stopped

    monkeypatch.setattr(space, "checkpoint", stop)
    monkeypatch.setattr(space, "distinct", None)  # what comes after is not reached
    ones = np.ones(columns, np.uint16)
    with pytest.raises(Stopped):
        SearchSpace.of_codes(codes, np.arange(columns, dtype=np.int32), ones > 0, ones)
    assert asked == [1]


def test_words() -> None:
    table = a_table([1.0, None], [0, -1])
    pool = PropositionPool.of(
        table.schema,
        [C.at_most(0, 1.5), C.none_of(1, [2], 3), C.is_missing(0, True), C.is_present(1, 3)],
    )
    words = [pool.describe(i) for i in range(4)]
    assert words == ["size <= 1.5", "colour != red", "size is missing", "colour is not missing"]


def test_bad_input_is_refused() -> None:
    table = a_table([1.0, 2.0], [0, 1])
    for bad in (0, -1, True, 2.5):
        error = ValueError if bad in (0, -1) else TypeError
        with pytest.raises(error, match="max_cut_points must be a"):
            propositions_of(table, max_cut_points=bad)
    for proposition, message in [
        (C.at_most(1, 0.0), "give it categories"),
        (C.at_most(7, 0.0), "names feature 7"),
        (C.one_of(0, [0]), "is numeric; give it an interval"),
        (C.one_of(1, [3]), "codes beyond its categories"),
    ]:
        with pytest.raises(ValueError, match=message):
            PropositionPool.of(table.schema, [proposition])
