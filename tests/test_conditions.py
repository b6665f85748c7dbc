"""Conditions and conjunctions: meaning, merging, exact checking, the traced route, pytrees."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.data.table import MISSING, UNSEEN
from jaxrules.rules import conditions as module
from jaxrules.rules.conditions import all_propositions, readable_quantiles, whole_thresholds
from jaxrules.rules.lowered import Direction, Directions
from jaxrules.tools.bits import unpack

Oracle = Callable[[Any, jr.Table], np.ndarray]
C = jr.Condition
N_CATEGORIES = 3
SCHEMA = jr.Schema(
    (jr.Feature("u"), jr.Feature("k", ("a", "b", "c")), jr.Feature("v"), jr.Feature("l", ("x",))),
    "own_category",
)
NUMERIC, CATEGORICAL = (0, 2), {1: 3, 3: 1}

# Few distinct numbers, so that values meet cut points; their neighbours, both zeros, the extremes.
CUTS = [
    -1e300,
    -1.5,
    -0.0,
    0.0,
    1e-308,
    0.1,
    1.0,
    np.nextafter(1.0, 2.0),
    np.nextafter(1.0, 0.0),
    2.0**53,
    1e300,
]
numbers = st.sampled_from([float(cut) for cut in CUTS])
values = numbers | st.floats(allow_nan=False, allow_infinity=False) | st.just(math.nan)
ends = numbers | st.sampled_from([-math.inf, math.inf])
codes_of = {f: st.frozensets(st.integers(0, n - 1), max_size=n) for f, n in CATEGORICAL.items()}


weights = st.sampled_from([1.0, -1.0, 0.1, -2.5, 1e-300, 1e300])
TERMS = [(0, MISSING), (1, MISSING), (1, 0), (1, 2), (2, MISSING), (3, MISSING), (3, 0)]


@st.composite
def directions(draw: st.DrawFn, weights: Any = weights, least: int = 1, most: int = 4) -> Direction:
    """Sums of numbers, and of indicators of categories and of missing ones."""
    chosen = sorted(draw(st.sets(st.sampled_from(TERMS), min_size=least, max_size=most)))
    features, codes = zip(*chosen, strict=True)
    origins = [draw(st.sampled_from([0.0, 1.0, -0.1])) if f in NUMERIC else 0.0 for f in features]
    return Direction(features, tuple(draw(weights) for _ in chosen), codes, tuple(origins))


@st.composite
def conditions(draw: st.DrawFn, feature: int | Direction | None = None) -> jr.Condition:
    f = draw(st.integers(0, 3) | directions()) if feature is None else feature
    if isinstance(f, Direction) or f in NUMERIC:
        return C(
            f, draw(ends), draw(ends), draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
        )
    missing, unseen = draw(st.booleans()), draw(st.booleans())
    return C(f, missing=missing, categories=draw(codes_of[f]), unseen=unseen)


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 12) -> jr.Table:
    n = draw(st.integers(1, max_rows))
    columns = []
    for f in range(4):
        if f in NUMERIC:
            columns.append(np.array(draw(st.lists(values, min_size=n, max_size=n))))
        else:
            code = st.integers(UNSEEN, CATEGORICAL[f] - 1)
            columns.append(np.array(draw(st.lists(code, min_size=n, max_size=n)), np.int32))
    return jr.Table(SCHEMA, tuple(columns))


rule_sets = st.lists(st.lists(conditions(), max_size=5), max_size=8)


def table_of(numbers: list[float], codes: list[int] | None = None) -> jr.Table:
    u = np.array(numbers, np.float64)
    k = np.array(codes if codes is not None else [0] * len(u), np.int32)
    return jr.Table(SCHEMA, (u, k, np.zeros(len(u)), np.zeros(len(u), np.int32)))


def check(condition: jr.Condition, table: jr.Table) -> list[bool]:
    return jr.Conjunctions.build(SCHEMA, [[condition]]).satisfied(table)[:, 0].tolist()


# The constructors


def test_interval_constructors() -> None:
    below, above = np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0)
    table = table_of([below, 1.0, above, math.nan])
    assert check(C.at_most(0, 1.0), table) == [True, True, False, False]
    assert check(C.above(0, 1.0), table) == [False, False, True, False]
    assert check(C.at_least(0, 1.0), table) == [False, True, True, False]
    assert check(C.below(0, 1.0), table) == [True, False, False, False]
    for constructor in (C.at_most, C.above, C.at_least, C.below):
        assert check(constructor(0, 1.0, missing=True), table)[3]
    assert check(C.is_missing(0, numeric=True), table) == [False, False, False, True]
    assert check(C.is_present(0, None), table) == [True, True, True, False]


def test_set_constructors() -> None:
    table = table_of([0.0] * 5, [0, 1, 2, UNSEEN, MISSING])
    assert check(C.one_of(1, [0, 2]), table) == [True, False, True, False, False]
    assert check(C.one_of(1, [0, MISSING]), table) == [True, False, False, False, True]
    assert check(C.one_of(1, [0], missing=True), table) == [True, False, False, False, True]
    assert check(C.none_of(1, [0], 3), table) == [False, True, True, True, True]
    assert check(C.none_of(1, [0, MISSING], 3), table) == [False, True, True, True, False]
    assert check(C.is_missing(1, numeric=False), table) == [False, False, False, False, True]
    assert check(C.is_present(1, 3), table) == [True, True, True, True, False]


def test_zeros_of_both_signs_are_one_number() -> None:
    for zero in (0.0, -0.0):
        table = table_of([0.0, -0.0])
        assert check(C.at_most(0, zero), table) == [True, True]
        assert check(C.below(0, zero), table) == [False, False]
        assert check(C.at_least(0, zero), table) == [True, True]
        assert check(C.above(0, zero), table) == [False, False]


@given(a=conditions(0), b=conditions(0), value=values)
def test_merged_intervals_mean_both(a: jr.Condition, b: jr.Condition, value: float) -> None:
    table = table_of([value])
    assert check(a & b, table)[0] == (check(a, table)[0] and check(b, table)[0])
    assert check(a & b, table) == check(b & a, table)


@given(data=st.data(), direction=directions(), table=tables(6))
def test_merged_conditions_on_a_direction_mean_both(
    data: st.DataObject, direction: Direction, table: jr.Table
) -> None:
    a, b = data.draw(conditions(direction)), data.draw(conditions(direction))
    both = jr.Conjunctions.build(SCHEMA, [[a, b]])
    assert len(both.feature) == len(both.directions) == 1
    np.testing.assert_array_equal(
        both.satisfied(table)[:, 0], np.logical_and(check(a, table), check(b, table))
    )


@given(a=conditions(1), b=conditions(1), code=st.integers(UNSEEN, 2))
def test_merged_sets_mean_both(a: jr.Condition, b: jr.Condition, code: int) -> None:
    table = table_of([0.0], [code])
    assert check(a & b, table)[0] == (check(a, table)[0] and check(b, table)[0])


def test_conditions_that_do_not_merge() -> None:
    with pytest.raises(ValueError, match="features 0 and 2"):
        C.at_most(0, 1.0) & C.at_most(2, 1.0)
    with pytest.raises(ValueError, match="interval and a set"):
        C.at_most(0, 1.0) & C.one_of(0, [1])


def test_an_empty_interval_knows_it() -> None:
    assert (C.above(0, 2.0) & C.at_most(0, 2.0)).admits_no_number
    assert (C.above(0, 3.0) & C.at_most(0, 2.0)).admits_no_number
    assert C.is_missing(0, numeric=True).admits_no_number
    assert not (C.at_least(0, 2.0) & C.at_most(0, 2.0)).admits_no_number
    assert not C.is_present(0, None).admits_no_number


# Checking


@settings(max_examples=200)
@given(rules=rule_sets, table=tables())
def test_checking_agrees_with_loops(
    oracle: Oracle, rules: list[list[jr.Condition]], table: jr.Table
) -> None:
    conjunctions = jr.Conjunctions.build(SCHEMA, rules)
    satisfied = conjunctions.satisfied(table)
    assert satisfied.shape == (table.n_rows, len(rules))
    assert satisfied.dtype == bool
    np.testing.assert_array_equal(satisfied, oracle(rules, table))  # the conditions before merging
    np.testing.assert_array_equal(satisfied, oracle(conjunctions, table))


def many_rules(rng: np.random.Generator, n_rules: int) -> list[list[jr.Condition]]:
    """Random rules on all columns; about one in ten without conditions."""
    rules = []
    for _ in range(n_rules):
        rule = []
        for f in rng.permutation(4)[: rng.integers(0, 4)].tolist():
            if f in NUMERIC:
                low, high = np.sort(np.round(rng.normal(size=2), 1)).tolist()
                closed, missing = rng.random(2) < 0.5, bool(rng.random() < 0.2)
                rule.append(C(f, low, high, bool(closed[0]), bool(closed[1]), missing))
            else:
                rule.append(
                    C.none_of(f, [int(rng.integers(MISSING, CATEGORICAL[f]))], CATEGORICAL[f])
                )
        rules.append(rule)
    return rules


def random_table(rng: np.random.Generator, n_rows: int) -> jr.Table:
    columns: list[np.ndarray] = []
    for f in range(4):
        if f in NUMERIC:
            x = np.round(rng.normal(size=n_rows), 1)
            columns.append(np.where(rng.random(n_rows) < 0.1, np.nan, x))
        else:
            columns.append(rng.integers(UNSEEN, CATEGORICAL[f], n_rows).astype(np.int32))
    return jr.Table(SCHEMA, tuple(columns))


def test_thresholds_are_met_exactly_in_the_order_of_the_terms() -> None:
    up, down = Direction((0, 2), (0.1, 0.2)), Direction((0, 2), (0.2, 0.1))
    u, v = np.array([1.0, 3.0, 7.0, np.inf, 1e308]), np.array([1.0, 3.0, 11.0, -np.inf, 1e308])
    codes = np.zeros(5, np.int32)
    table = jr.Table(SCHEMA, (u, codes, v, codes))
    for direction, (a, b) in ((up, (0.1, 0.2)), (down, (0.2, 0.1))):
        values = [a * x + b * y for x, y in zip(u.tolist(), v.tolist(), strict=True)]
        for value in values[:3]:
            assert check(C.at_least(direction, value), table) == [x >= value for x in values]
            assert check(C.above(direction, value), table) == [x > value for x in values]
        assert check(C(direction, missing=True), table) == [True] * 5
        assert check(C.is_missing(0, True), table) == [False] * 5
        assert check(C(direction, math.inf, -math.inf, missing=True), table) == [False] * 3 + [
            True,
            False,
        ]  # inf - inf


def test_sums_that_overflow_lie_beyond_all_numbers() -> None:
    table = table_of([2.0, -2.0])
    huge = Direction((0,), (1e308,))  # inf and -inf
    for closed in (False, True):
        conditions = [
            C(huge, 0.0, math.inf, closed, closed),
            C(huge, -math.inf, 0.0, closed, closed),
            C(huge),
        ]
        conditions += [
            C(huge, math.inf, math.inf, closed, closed),
            C(huge, -math.inf, -math.inf, closed, closed),
        ]
        rules = jr.Conjunctions.build(SCHEMA, [[condition] for condition in conditions])
        expected = [[True, False, True, False, False], [False, True, True, False, False]]
        assert rules.satisfied(table).tolist() == expected
        assert jax.jit(rules.satisfied_traced)(as_float32(table)).tolist() == expected


def test_a_missing_category_is_one_of_its_own_and_a_missing_number_hides_the_sum() -> None:
    direction = Direction((0, 1, 1), (1.0, 2.0, 4.0), (MISSING, MISSING, 0))
    table = table_of([1.0, 1.0, 1.0, 1.0, math.nan], [0, 1, MISSING, UNSEEN, 0])
    for total, rows in ((5.0, [0]), (1.0, [1, 3]), (3.0, [2])):
        exactly = C.at_least(direction, total) & C.at_most(direction, total)
        assert np.flatnonzero(check(exactly, table)).tolist() == rows
    assert check(C.at_least(direction, 0.0, missing=True), table)[4]


@pytest.mark.parametrize("n_rules", [0, 1, 63, 64, 65, 128, 200])
def test_any_number_of_rules(oracle: Oracle, rng: np.random.Generator, n_rules: int) -> None:
    rules, table = many_rules(rng, n_rules), random_table(rng, 60)
    np.testing.assert_array_equal(
        jr.Conjunctions.build(SCHEMA, rules).satisfied(table), oracle(rules, table)
    )


@pytest.mark.parametrize("rows_per_batch", [1, 7, 19, 20, 1000])
def test_batches_and_threads_change_nothing(
    oracle: Oracle, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, rows_per_batch: int
) -> None:
    rules, table = many_rules(rng, 70), random_table(rng, 20)
    monkeypatch.setattr(module, "_MOST_ROWS_PER_BATCH", rows_per_batch)
    conjunctions = jr.Conjunctions.build(SCHEMA, rules)
    expected = oracle(rules, table)
    np.testing.assert_array_equal(conjunctions.satisfied(table), expected)
    by_rule = np.concatenate([held for _, held in conjunctions.batches_by_rule(table)], axis=1)
    np.testing.assert_array_equal(by_rule, expected.T)
    covered = [
        i for rows, _ in conjunctions.batches(table) for i in range(*rows.indices(table.n_rows))
    ]
    assert covered == list(range(table.n_rows))


def test_many_rules_are_built_in_blocks(
    oracle: Oracle, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, table = many_rules(rng, 400), random_table(rng, 30)
    monkeypatch.setattr(module, "_WORDS_PER_BLOCK", 2)
    monkeypatch.setattr(module, "_CELLS_PER_BATCH", 3000)
    np.testing.assert_array_equal(
        jr.Conjunctions.build(SCHEMA, rules).satisfied(table), oracle(rules, table)
    )


def test_batches_may_be_abandoned(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_ROWS_PER_BATCH", 2)
    batches = jr.Conjunctions.build(SCHEMA, many_rules(rng, 3)).batches(random_table(rng, 50))
    next(batches)
    batches.close()


def test_a_table_of_other_columns_is_refused(rules: jr.Conjunctions) -> None:
    with pytest.raises(ValueError, match="different columns"):
        rules.satisfied(table_of([1.0]))


# Building and combining


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (lambda: C.at_most(-1, 1.0), "feature -1; columns count from 0"),
        (lambda: C.at_most(Direction((-1,), (1.0,)), 1.0), "column positions"),
        (lambda: C.at_most(0, 10**400), "too large for float64"),
        (lambda: C.at_most(9, 1.0), "feature 9; there are 4"),
        (lambda: C.at_most(1, 1.0), "'k' is categorical"),
        (lambda: C.one_of(0, [1]), "'u' is numeric"),
        (lambda: C.is_missing(0, numeric=False), "'u' is numeric"),
        (lambda: C.is_missing(1, numeric=True), "'k' is categorical"),
        (lambda: C.one_of(1, [3]), "codes beyond its categories"),
        (lambda: C.one_of(1, [UNSEEN]), "codes must be at least -1"),
        (lambda: C.one_of(3, [1]), "codes beyond its categories"),
        (lambda: C.at_most(0, math.nan), "NaN"),
        (
            lambda: C.at_most(Direction((0, 9), (1.0, 1.0)), 1.0),
            "direction names feature 9; there are 4",
        ),
        (lambda: C.at_most(Direction((0,), (1.0,), (0,)), 1.0), "category 0 of 'u'"),
        (lambda: C.at_most(Direction((1,), (1.0,), (3,)), 1.0), "category 3 of 'k'"),
        (
            lambda: C.at_most(Direction((1,), (1.0,), (UNSEEN,)), 1.0),
            "codes as categories, got 1, 1.0, -2",
        ),
        (lambda: C.at_most(Direction((0,), (0.0,)), 1.0), "finite weights other than 0"),
        (lambda: C.at_most(Direction((0,), (math.inf,)), 1.0), "finite weights other than 0"),
        (lambda: C.at_most(Direction((0,), (1.0,), (), (math.inf,)), 1.0), "origins .* finite"),
        (lambda: C.at_most(Direction((1,), (1.0,), (2,), (3.0,)), 1.0), "0 for a category"),
        (lambda: C.at_most(Direction((1,), (1.0,), (), (3.0,)), 1.0), "origin for category -1"),
        (lambda: C.one_of(Direction((0,), (1.0,)), [1]), "a direction is numeric"),
        (lambda: C.at_most(Direction((0,), (1.0,)), math.nan), "NaN"),
    ],
)
def test_conditions_that_do_not_fit_the_schema(
    condition: Callable[[], jr.Condition], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        jr.Conjunctions.build(SCHEMA, [[], [condition()]])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (lambda: None, "rules must be a list of rules, each a list of conditions, got NoneType"),
        (lambda: [C.above(0, 1.0)], "rules must hold lists of conditions, got Condition"),
        (lambda: ["x0 > 1"], "rules must hold lists of conditions, got str"),
        (lambda: [[1.0]], "rules must be made of conditions .*got 1.0"),
        (
            lambda: [[C.above("u", 1.0)]],
            "name its feature by column position or Direction, got 'u'",
        ),
        (lambda: [[C.above(True, 1.0)]], "by column position or Direction, got True"),
        (lambda: [[C.above(0, "1")]], "lower, the value of a condition, must be a number, got str"),
    ],
)
def test_what_no_rules_are_made_of(rules: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        jr.Conjunctions.build(SCHEMA, rules())


def test_a_schema_is_checked() -> None:
    with pytest.raises(TypeError, match="schema must be Schema .*got NoneType"):
        jr.Conjunctions.build(None, [])


def test_directions_check_their_terms() -> None:
    lengths = [((), ()), ((0, 1), (1.0,)), ((0,), (1.0,), (0, 1)), ((0,), (1.0,), (), (1.0, 2.0))]
    for terms in lengths:
        with pytest.raises(ValueError, match="features of a direction must be one or more"):
            Direction(*terms)
    for terms in [((2, 0), (1.0, 1.0)), ((0, 0), (1.0, 1.0)), ((1, 1), (1.0, 1.0), (2, 0))]:
        with pytest.raises(ValueError, match="distinct and ascending"):
            Direction(*terms)


def test_lengths_count_merged_conditions() -> None:
    rules = [[C.above(0, 1.0), C.one_of(1, [0]), C.at_most(0, 2.0)], [], [C.above(2, 0.0)]]
    conjunctions = jr.Conjunctions.build(SCHEMA, rules)
    assert len(conjunctions) == 3
    assert conjunctions.lengths.tolist() == [2, 0, 1]
    assert conjunctions.rule(0) == (C(0, 1.0, 2.0), C.one_of(1, [0]))
    assert list(conjunctions) == [conjunctions.rule(r) for r in range(3)]
    assert repr(conjunctions) == "Conjunctions(3 rules, 3 conditions)"
    assert conjunctions.describe(0) == "1 < u <= 2 & k == a"


@settings(max_examples=60)
@given(rules=rule_sets, table=tables(4), data=st.data())
def test_take_and_concatenate(
    rules: list[list[jr.Condition]], table: jr.Table, data: st.DataObject
) -> None:
    conjunctions = jr.Conjunctions.build(SCHEMA, rules)
    n = len(rules)
    chosen = data.draw(st.lists(st.integers(-n, n - 1), max_size=6)) if n else []
    part = conjunctions.take(chosen)
    part.validate()
    assert list(part) == [conjunctions.rule(r % n) for r in chosen]
    np.testing.assert_array_equal(
        part.satisfied(table), conjunctions.satisfied(table)[:, np.array(chosen, int)]
    )
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    assert list(conjunctions.take(mask)) == [
        rule for rule, keep in zip(conjunctions, mask, strict=True) if keep
    ]
    both = jr.Conjunctions.concatenate([conjunctions, part, conjunctions])
    both.validate()
    assert list(both) == [*conjunctions, *part, *conjunctions]
    for one in (conjunctions, part, both):  # every direction once, and only those that are used
        mentioned = [c.feature for rule in one for c in rule if isinstance(c.feature, Direction)]
        assert list(one.directions) == list(dict.fromkeys(mentioned))
    assert both.propositions.tolist() == [
        *conjunctions.propositions,
        *part.propositions,
        *conjunctions.propositions,
    ]
    assert both.offsets.dtype == part.offsets.dtype == np.int32


def test_rules_of_other_columns_do_not_mix(rules: jr.Conjunctions) -> None:
    other = jr.Conjunctions.build(SCHEMA, [[]])
    with pytest.raises(ValueError, match="different columns"):
        jr.Conjunctions.concatenate([rules, other])
    with pytest.raises(ValueError, match="columns other than"):
        rules.with_schema(SCHEMA)
    with pytest.raises(ValueError, match="nothing to concatenate"):
        jr.Conjunctions.concatenate([])
    with pytest.raises(IndexError):
        rules.take([99])


def test_with_schema_changes_the_classes(rules: jr.Conjunctions) -> None:
    renamed = rules.with_schema(rules.schema.with_classes((1, 2, 3)))
    assert renamed.schema.classes == (1, 2, 3)
    assert list(renamed) == list(rules)


def test_validate_names_what_is_wrong(rules: jr.Conjunctions) -> None:
    def broken(**changes: Any) -> jr.Conjunctions:
        return module.Conjunctions(**{**vars(rules), **changes})

    def nth(name: str, i: int, value: Any) -> np.ndarray:
        array = getattr(rules, name).copy()
        array[i] = value
        return array

    cases = {
        "rise from 0": lambda: broken(offsets=rules.offsets[1:]),
        "must not fall": lambda: broken(offsets=np.array([0, 2, 1, 5], np.int32)),
        "lower must have shape": lambda: broken(lower=rules.lower[1:]),
        "allowed must have shape": lambda: broken(allowed=rules.allowed[:, :2]),
        "feature must lie": lambda: broken(feature=nth("feature", 0, 3)),
        "not be NaN": lambda: broken(upper=nth("upper", 0, np.nan)),
        "two conditions on one feature": lambda: broken(
            offsets=np.array([0, len(rules.feature)], np.int32), propositions=rules.propositions[:1]
        ),
        "category that its feature": lambda: broken(allowed=nth("allowed", 0, True)),
        "interval is for numeric": lambda: broken(unseen=nth("unseen", 0, True)),
        "feature must have shape": lambda: broken(feature=np.array(0, np.int32)),
    }
    oblique = jr.Conjunctions.build(
        rules.schema, [[C.above(Direction((0, 2), (1.0, weight)), 0.0)] for weight in (1, 2)]
    )

    def table(**changes: Any) -> jr.Conjunctions:
        wrong = Directions(**{**vars(oblique.directions), **changes})
        return module.Conjunctions(**{**vars(oblique), "directions": wrong})

    cases |= {
        "propositions must hold": lambda: broken(propositions=rules.propositions[1:]),
        "at least 0 for each": lambda: broken(propositions=nth("propositions", 0, -1)),
        "directions must rise from 0": lambda: table(offsets=np.array([0, 2, 2, 4], np.int32)),
        "directions must have shape": lambda: table(weight=np.ones(3)),
        "two directions are equal": lambda: table(weight=np.ones(4)),
        "distinct and ascending": lambda: table(feature=np.array([2, 0, 0, 2], np.int32)),
        "lie in 0..3": lambda: table(**vars(Directions.build([oblique.directions[0]]))),
    }
    for message, make in cases.items():
        with pytest.raises(ValueError, match=message):
            make().validate()


# Under JAX


def as_float32(table: jr.Table) -> np.ndarray:
    return np.stack([column.astype(np.float32) for column in table.columns], axis=1)


# Subnormal numbers are left out: XLA may flush them to zero.
small = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)
float32_values = (
    st.sampled_from([0.0, -0.0, 1.0, -1.5, float(np.nextafter(np.float32(1), np.float32(2)))])
    | small
)


@settings(max_examples=40)
@given(data=st.data())
def test_the_traced_route_agrees_on_float32_data(data: st.DataObject) -> None:
    def single(condition: jr.Condition) -> jr.Condition:
        if condition.categories is not None:
            return condition
        end = float32_values | st.sampled_from([-math.inf, math.inf])
        return C(
            condition.feature, data.draw(end), data.draw(end),
            condition.lower_closed, condition.upper_closed, condition.missing,
        )  # fmt: skip

    # Padded to fixed sizes, so that the examples share few compilations.
    on_columns = st.integers(0, 3).flatmap(conditions)
    rules = [
        [single(c) for c in rule]
        for rule in data.draw(st.lists(st.lists(on_columns, max_size=3), max_size=3))
    ]
    table = data.draw(tables(3))
    floats = [
        np.array(data.draw(st.lists(float32_values, min_size=3, max_size=3))) for _ in NUMERIC
    ]
    codes = [np.resize(table.columns[f], 3) for f in CATEGORICAL]
    floats[0] = np.where(np.resize(np.isnan(table.columns[0]), 3), np.nan, floats[0])
    table = jr.Table(SCHEMA, (floats[0], codes[0], floats[1], codes[1]))
    conjunctions = jr.Conjunctions.build(SCHEMA, rules)
    expected = conjunctions.satisfied(table)
    X = as_float32(table)
    np.testing.assert_array_equal(jax.jit(conjunctions.satisfied_traced)(X), expected)


# Sums of few small multiples of 1/4 are exact in float32, in any order.
quarters = st.integers(-8, 8).map(lambda n: n / 4)


@jax.jit
def satisfied_traced(rules: jr.Conjunctions, X: jax.Array) -> jax.Array:
    return rules.satisfied_traced(X)


@settings(max_examples=40)
@given(data=st.data())
def test_the_traced_route_projects_as_the_host_does(data: st.DataObject) -> None:
    # Of fixed sizes, so that the examples share one compilation.
    some = data.draw(
        st.lists(directions(quarters.filter(bool), 3, 3), min_size=2, max_size=2, unique=True)
    )
    end = quarters | st.sampled_from([-math.inf, math.inf])
    interval = st.tuples(end, end, st.booleans(), st.booleans(), st.booleans())
    rules = [
        [C(d, *data.draw(interval)) for d in some] + [data.draw(conditions(1))] for _ in range(3)
    ]
    floats = [
        np.array(data.draw(st.lists(quarters | st.just(math.nan), min_size=5, max_size=5)))
        for _ in NUMERIC
    ]
    codes = [
        np.array(data.draw(st.lists(st.integers(UNSEEN, n - 1), min_size=5, max_size=5)), np.int32)
        for n in (3, 1)
    ]
    table = jr.Table(SCHEMA, (floats[0], codes[0], floats[1], codes[1]))
    conjunctions = jr.Conjunctions.build(SCHEMA, rules)
    np.testing.assert_array_equal(
        satisfied_traced(conjunctions, as_float32(table)), conjunctions.satisfied(table)
    )


def test_the_traced_route_under_transformations(rules: jr.Conjunctions, table: jr.Table) -> None:
    X = np.clip(np.stack(table.columns, axis=1), -1e30, 1e30).astype(np.float32)
    host = jr.Table(table.schema, (X[:, 0].astype(float), table.columns[1], X[:, 2].astype(float)))
    expected = rules.satisfied(host)
    as_argument = jax.jit(lambda r, x: r.satisfied_traced(x))
    np.testing.assert_array_equal(as_argument(rules, X), expected)
    by_row = jax.vmap(lambda x: rules.satisfied_traced(x[None, :])[0])
    np.testing.assert_array_equal(by_row(X), expected)
    np.testing.assert_array_equal(
        jax.vmap(rules.satisfied_traced)(jnp.stack([X, X])), np.stack([expected] * 2)
    )


def test_the_traced_route_of_no_rules_and_of_integers() -> None:
    X = jnp.zeros((2, 4))
    assert jax.jit(jr.Conjunctions.build(SCHEMA, []).satisfied_traced)(X).shape == (2, 0)
    assert jax.jit(jr.Conjunctions.build(SCHEMA, [[], []]).satisfied_traced)(X).all()
    rules = jr.Conjunctions.build(SCHEMA, [[C.above(0, 1.5)], [C.one_of(1, [2])]])
    integers = jnp.array([[1, 2, 0, 0], [2, MISSING, 0, 0]])
    assert jax.jit(rules.satisfied_traced)(integers).tolist() == [[False, True], [True, False]]


def test_cut_points_beyond_the_dtype_are_infinite() -> None:
    rules = jr.Conjunctions.build(SCHEMA, [[C.at_most(0, 1e300)], [C.above(0, 1e300)]])
    assert jax.jit(rules.satisfied_traced)(jnp.ones((1, 4))).tolist() == [[True, False]]


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 5), (1, 2, 4)])
def test_wrong_shapes_are_refused_while_tracing(shape: tuple[int, ...]) -> None:
    rules = jr.Conjunctions.build(SCHEMA, [[C.at_most(2, 0.0)]])
    with pytest.raises(ValueError, match=r"shape \(rows, 4\).*X\[None, :\]"):
        jax.jit(rules.satisfied_traced)(jnp.zeros(shape))


def test_conjunctions_are_a_pytree_with_a_static_schema(rules: jr.Conjunctions) -> None:
    leaves, structure = jax.tree.flatten(rules)
    assert len(leaves) == 15
    assert hash(structure) == hash(jax.tree.structure(rules.take([0])))
    rebuilt = jax.tree.unflatten(structure, leaves)
    assert list(rebuilt) == list(rules)
    nothing = jax.tree.map(lambda leaf: None, rules)  # unflattening validates nothing
    assert nothing.schema is rules.schema
    shifted = jax.tree.map(lambda leaf: leaf + 1 if leaf.dtype == np.float64 else leaf, rules)
    assert shifted.rule(0)[0].lower == 31.0


# Short thresholds


@settings(max_examples=60)
@given(rules=rule_sets, table=tables(4), seed=st.integers(0, 99))
def test_short_thresholds_leave_rules_where_they_hold(
    rules: Any, table: jr.Table, seed: int
) -> None:
    built = jr.Conjunctions.build(table.schema, rules)
    noise = np.random.default_rng(seed).uniform(-1e-3, 1e-3, (2, len(built.feature)))
    ends = {
        name: getattr(built, name) + one
        for name, one in zip(("lower", "upper"), noise, strict=True)
    }
    long = replace(built, **ends)
    short = long.with_short_thresholds(table)
    short.validate()
    np.testing.assert_array_equal(short.satisfied(table), long.satisfied(table))


def test_quantiles_between_values_are_round() -> None:
    x = np.array([0.1, 0.2, 0.34, 0.35, 0.7, 1.123456789, 1.15])
    cuts = readable_quantiles(x, np.arange(1, 10) / 10)
    exact = np.quantile(x, np.arange(1, 10) / 10)
    assert set(np.searchsorted(x, cuts)) == set(np.searchsorted(x, exact - 1e-13))
    assert all(len(repr(cut)) <= 5 for cut in cuts.tolist())
    assert readable_quantiles(np.array([0.1, 0.1, 0.1]), np.array([0.5])).tolist() == [0.1]


# Columns of integers


@given(st.lists(st.integers(-60, 60), min_size=1, max_size=40), st.integers(1, 5), st.data())
def test_columns_of_integers_are_compared_with_integers(
    values: list[int], most: int, data: st.DataObject
) -> None:
    column = np.array(values, float)
    halves = data.draw(st.lists(st.sampled_from([np.nan, -0.5, *column]), min_size=1, max_size=3))
    table = jr.Table(jr.Schema((jr.Feature("x"),), "own_category"), (column,))
    pool = all_propositions(table, max_cut_points=most)
    ends = np.concatenate([pool.lower, pool.upper])
    assert (ends[np.isfinite(ends)] % 1 == 0).all()
    # the same sets of rows as of the quantiles themselves
    quantiles = readable_quantiles(column, np.arange(1, most + 1) / (most + 1))
    for below in (False, True):
        whole = whole_thresholds(quantiles, np.append(column, np.nan), below)
        kept = whole_thresholds(quantiles, np.append(column, halves), below)
        assert not (np.signbit(whole) & (whole == 0)).any()
        for threshold, moved in zip(quantiles, whole, strict=True):
            compare = np.less_equal if below else np.less
            everything = np.arange(-99, 99)
            assert (compare(everything, threshold) == compare(everything, moved)).all()
        assert (kept == (quantiles if -0.5 in halves else whole)).all()


def test_short_thresholds_of_integers_are_integers() -> None:
    schema = jr.Schema((jr.Feature("x"), jr.Feature("y")))
    table = jr.Table(schema, (np.array([40.0, 41.0, 42.0, 43.0]), np.array([0.25, 1.0, 2.0, 3.0])))
    rules = jr.Conjunctions.build(
        schema,
        [
            [C.at_most(0, 41.5), C.at_most(1, 1.5)],
            [C.at_least(0, 41.5)],
            [C.above(0, 40.2), C.below(0, 42.7)],
            [C.at_most(0, 99.5)],
            [C.above(0, 41.2), C.at_most(0, 41.7)],
        ],
    )
    short = rules.with_short_thresholds(table)
    assert [short.describe(r) for r in range(4)] == [
        "x <= 41 & y <= 1.5",
        "x >= 42",
        "40 < x < 43",
        "x <= 99",
    ]
    assert (short.satisfied(table) == rules.satisfied(table)).all()


@pytest.mark.parametrize("rows", [3, 200])
def test_many_columns_are_evaluated_in_parts(rows: int) -> None:
    """Rules that stand column by column: those of a part use few columns."""
    rng = np.random.default_rng(rows)
    columns: dict[str, Any] = {f"x{j}": np.round(rng.normal(size=500), 2) for j in range(60)}
    columns["x7"][::3] = np.nan
    columns["colour"] = rng.choice(["red", "green", "blue"], 500)
    table = jr.as_table(columns, missing="own_category")
    pool = all_propositions(table, max_cut_points=19)
    some, few = table[np.arange(rows)], np.array([5, 1030, len(pool) - 2])
    assert len(pool) > 2048
    assert len(pool._parts()) > 2
    holds = pool.satisfied(some)
    one_by_one = np.column_stack([pool.take([r]).satisfied(some)[:, 0] for r in range(len(pool))])
    np.testing.assert_array_equal(holds, one_by_one)
    np.testing.assert_array_equal(holds[:, few], pool.take(few).satisfied(some))
    (_, by_rule), *_ = pool.batches_by_rule(some)
    np.testing.assert_array_equal(by_rule, holds.T)
    (_, bits), *_ = pool.packed_batches(some)
    np.testing.assert_array_equal(unpack(bits, len(pool)), holds)
    mixed = pool.take(rng.permutation(len(pool)))  # each part would use all columns
    assert len(mixed._parts()) == 1
