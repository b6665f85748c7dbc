"""Standardised columns, and conditions that a person can read."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.ensembles import oblique
from jaxrules.ensembles.oblique import Standardised, readable
from jaxrules.tools.display import shortest_number

ONES = np.ones(60)


def frame(seed: int = 0, n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "small": 1e-8 * rng.normal(size=n),
            "colour": rng.choice(["a", "b", "c"], n),
            "flat": np.full(n, 3.0),
            "large": 1e8 * (5 + rng.normal(size=n)),
            "age": np.where(np.arange(n) % 7 == 0, np.nan, rng.normal(size=n)),
        }
    )


def test_columns_have_mean_zero_and_deviation_one_on_any_scale() -> None:
    table = jr.as_table(frame(), missing="own_category")
    weights = np.random.default_rng(1).random(60)
    columns = Standardised.of(table, weights)
    assert columns.names(table) == [
        "small",
        "[colour == a]",
        "[colour == b]",
        "[colour == c]",
        "large",
        "age",
    ]
    for values, missing in zip(columns.values, columns.missing, strict=True):
        known = weights * ~missing
        assert np.average(values, weights=known) == pytest.approx(0, abs=1e-12)
        assert np.average(values**2, weights=known) == pytest.approx(1)
        assert not values[missing].any()
    assert columns.missing[-1].sum() == 9
    np.testing.assert_allclose(
        columns.values[0] * columns.scale[0] + columns.centre[0], table.columns[0]
    )


def test_without_missing_numbers_there_is_no_mask_and_extreme_numbers_survive() -> None:
    X = np.column_stack([[1e300, -1e300, 0.0], [1e-300, 2e-300, 5e-300]])
    columns = Standardised.of(jr.as_table(X), np.ones(3))
    assert columns.missing.shape == (0, 3)
    assert np.isfinite(columns.values).all()
    assert np.abs(columns.values).max() < 2


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), nonzeros=st.integers(1, 4), admits=st.booleans())
def test_no_row_changes_sides_and_the_model_says_the_same(
    seed: int, nonzeros: int, admits: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = frame(seed)
    table = jr.as_table(X, missing="own_category")
    columns = Standardised.of(table, ONES)
    w = np.where(rng.permutation(6) < nonzeros, rng.normal(size=6), 0.0)
    b = 0.3 * rng.normal()
    if np.count_nonzero(w) == 1 and columns.encoded[int(np.argmax(np.abs(w)))].category is not None:
        b = -float(
            w @ np.where(w != 0, columns.values.mean(axis=1), 0)
        )  # between the two values of an indicator
    holds = w @ columns.values + b >= 0
    unknown = columns.missing[w != 0].any(axis=0)
    condition, rows = readable(columns, table, w, b, admits, np.ones(60, bool))
    np.testing.assert_array_equal(rows, np.where(unknown, admits, holds))
    conjunctions = jr.Conjunctions.build(table.schema, [[condition]])
    np.testing.assert_array_equal(conjunctions.satisfied(table)[:, 0], rows)


def test_digits_are_as_few_as_the_rows_allow() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    table = jr.as_table(X, feature_names=["variance", "skewness"])
    columns = Standardised.of(table, ONES)
    w = np.array([2.8104321, 1.4987654]) * columns.scale
    b = 0.2812345 + float(w @ (columns.centre / columns.scale))
    condition, rows = readable(columns, table, w, b, False, np.ones(60, bool))
    assert condition.describe(table.schema) == "2 variance + skewness >= -0.3"
    np.testing.assert_array_equal(rows, X @ [2.8104321, 1.4987654] >= -0.2812345)
    few, _ = readable(
        columns, table, w, b, False, np.arange(60) < 1
    )  # one row alone allows anything
    assert few.feature.weights == (2.0, 1.0)
    close = np.vstack(
        [X, [[0.0, -0.2812345 / 1.4987654 - 1e-5], [0.0, -0.2812345 / 1.4987654 + 1e-5]]]
    )
    table = jr.as_table(close)
    columns = Standardised.of(table, np.ones(62))
    w = np.array([2.8104321, 1.4987654]) * columns.scale
    b = 0.2812345 + float(w @ (columns.centre / columns.scale))
    more, rows = readable(columns, table, w, b, False, np.ones(62, bool))
    assert rows[-2:].tolist() == [False, True]
    assert more.feature.weights == (1.9, 1.0)
    assert 5 <= len(str(abs(more.lower)).split(".")[1]) <= 7


def test_rows_next_to_the_threshold_are_tried_first_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = jr.as_table(frame(0), missing="own_category")
    columns = Standardised.of(table, ONES)
    found = []
    for near in (1, 7, 4096):
        monkeypatch.setattr(oblique, "_NEAR", near)
        for seed in range(20):
            rng = np.random.default_rng(seed)
            w, among = rng.normal(size=6), rng.random(60) < 0.7
            condition, _ = readable(columns, table, w, 0.3 * rng.normal(), False, among)
            found.append(condition.describe(table.schema))
    assert found[:20] == found[20:40] == found[40:]


@pytest.mark.parametrize(("k", "written"), [(50, 50), (100, 40), (5000, 1)])
def test_many_weights_are_tried_in_few_units(
    k: int, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(k)
    table = jr.as_table(rng.normal(size=(60, k)))
    columns = Standardised.of(table, ONES)
    w, units = rng.normal(size=k), []
    made = oblique._direction

    def counted(*arguments: Any) -> Any:
        units.append(arguments[-2:])
        return made(*arguments)

    monkeypatch.setattr(oblique, "_direction", counted)
    condition, rows = readable(columns, table, w, 0.3, False, np.ones(60, bool))
    np.testing.assert_array_equal(rows, w @ columns.values + 0.3 >= 0)
    assert 1.0 in np.abs(condition.feature.weights)
    assert len({unit for unit, digits in units if digits == 0}) == written


def year_like(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(1985, 2020, 40).astype(float)


KINDS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "year": year_like,
    "seconds": lambda rng: rng.integers(1_500_000_000, 1_600_000_000, 40).astype(float),
    "nanoseconds": lambda rng: 1.5e18 + rng.integers(0, 10**15, 40).astype(float),
    "kelvin": lambda rng: np.round(rng.normal(290, 8, 40), 2),
    "below": lambda rng: rng.normal(-1e6, 1.0, 40),
    "density": lambda rng: np.round(rng.normal(0.997, 0.002, 40), 5),
    "tiny": lambda rng: 1e-12 * (50 + rng.normal(size=40)),
    "huge": lambda rng: 1e12 * rng.normal(size=40),
    "small": lambda rng: 1e-5 * np.round(rng.normal(size=40), 3),
    "plain": lambda rng: np.round(rng.normal(size=40), 3),
    "single": lambda rng: rng.normal(100, 5, 40).astype(np.float32).astype(float),
    "mostly equal": lambda rng: np.where(rng.random(40) < 0.1, rng.normal(size=40), 2000.0),
}


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10_000),
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3),
)
def test_the_printed_condition_says_the_same_of_every_row(seed: int, kinds: list[str]) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack([KINDS[kind](rng) for kind in kinds])
    table = jr.as_table(X)
    columns = Standardised.of(table, np.ones(40))
    assume(len(columns.encoded) == len(kinds))  # none is constant
    w = rng.normal(size=len(kinds))
    condition, rows = readable(columns, table, w, 0.2, False, np.ones(40, bool))
    np.testing.assert_array_equal(rows, w @ columns.values + 0.2 >= 0)
    text = condition.describe(table.schema)
    code = re.sub(r"(?<=\d) (?=[x(])", " * ", text)
    values = {f"x{j}": X[:, j] for j in range(len(kinds))}
    np.testing.assert_array_equal(eval(code, values), rows)
    if len(kinds) > 1:
        assert 1.0 in np.abs(condition.feature.weights)
    rules = jr.Conjunctions.build(table.schema, [[condition]])
    np.testing.assert_array_equal(rules.satisfied(table)[:, 0], rows)


def test_columns_far_from_zero_are_measured_from_a_round_number() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({kind: KINDS[kind](rng) for kind in KINDS})
    X["kelvin"] = X["kelvin"].where(rng.random(40) < 0.8)
    X["flag"] = pd.Categorical(["a"] * 39 + ["b"])
    columns = Standardised.of(jr.as_table(X, missing="own_category"), np.ones(40))
    names = columns.names(jr.as_table(X, missing="own_category"))
    each = columns.origins(np.arange(len(names)))
    origins = {name: origin for name, origin in zip(names, each, strict=True) if origin}
    assert origins == {
        "year": 2000.0,
        "seconds": 1_600_000_000.0,
        "nanoseconds": 1.5005e18,
        "kelvin": 290.0,
        "below": -1_000_000.0,
        "density": 0.997,
        "tiny": 5e-11,
        "single": 100.0,
    }


def test_power_and_year_read_without_a_large_threshold() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"year": year_like(rng), "power": rng.integers(40, 300, 40).astype(float)})
    table = jr.as_table(X)
    columns = Standardised.of(table, np.ones(40))
    w = np.array([47.0, 1.0]) * columns.scale
    b = float(np.array([47.0, 1.0]) @ columns.centre) - 94850
    condition, _ = readable(columns, table, w, b, False, np.ones(40, bool))
    assert re.fullmatch(
        r"[0-9.]+ \(year - 2000\) \+ power >= [0-9.]+", condition.describe(table.schema)
    )
    assert condition.lower < 1000


def test_one_column_is_a_plain_condition() -> None:
    table = jr.as_table(frame(), missing="own_category")
    columns = Standardised.of(table, ONES)
    everything = np.ones(60, bool)
    unit = np.eye(6)
    for w, b, text in (
        (unit[0], 0.0, "small >= "), (-unit[0], 0.0, "small <= "), (unit[2], -0.1, "colour == b"),
        (-unit[2], 0.1, "colour != b"), (-unit[4], 0.0, "large <= "), (unit[5], 0.0, "(age >= "),
    ):  # fmt: skip
        condition, _ = readable(columns, table, w, b, text.startswith("("), everything)
        assert condition.describe(table.schema).startswith(text)


def test_a_missing_category_beside_others_of_its_column() -> None:
    table = jr.as_table(frame().assign(colour=["a", "b", None] * 20), missing="own_category")
    columns = Standardised.of(table, ONES)
    w = np.array(
        [1.0 * (table.schema.features[c.feature].name == "colour") for c in columns.encoded]
    )
    w *= np.arange(1, len(w) + 1)
    condition, rows = readable(columns, table, w, 0.1, False, np.ones(60, bool))
    np.testing.assert_array_equal(rows, w @ columns.values >= -0.1)
    np.testing.assert_array_equal(
        jr.Conjunctions.build(table.schema, [[condition]]).satisfied(table)[:, 0], rows
    )


@settings(max_examples=200)
@given(
    low=st.floats(-1e12, 1e12),
    width=st.floats(1e-9, 1e12),
    share=st.floats(-0.5, 1.5),
)
def test_the_shortest_number_lies_in_the_gap(low: float, width: float, share: float) -> None:
    high = low + width
    if not low < high:
        return
    found = shortest_number(low + share * width, low, high)
    assert low < found <= high
    if 0.25 <= share <= 0.75:  # rounded to a quarter of the gap it is still inside
        assert found == round(found, max(0, 2 - math.floor(math.log10(width))))


def test_gaps_without_an_end() -> None:
    assert shortest_number(2.345, -math.inf, math.inf) == 2
    assert shortest_number(0.0, -1.0, math.inf) == 0
    assert shortest_number(5.0, -math.inf, 1.26) == 1
    assert shortest_number(-5.0, 3.0, math.inf) > 3
