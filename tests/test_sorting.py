"""The order of many numbers, and what is derived from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import jaxrules as jr
from jaxrules.rules.conditions import propositions_of
from jaxrules.tools.sorting import ascending, different_columns, lexicographic, places_of_equals

N = 5000  # more than are sorted as they are
RANDOM = np.random.default_rng(0)
COLUMNS = {
    "different": RANDOM.normal(size=N),
    "whole": RANDOM.integers(-3, 4, N) * 1.0,
    "missing": np.where(RANDOM.random(N) < 0.3, np.nan, RANDOM.normal(size=N)),
    "missing, with a sign": np.where(RANDOM.random(N) < 0.3, -np.nan, RANDOM.normal(size=N)),
    "nearly equal": 1 + 1e-13 * RANDOM.normal(size=N),
    "two zeros": np.where(RANDOM.random(N) < 0.5, -0.0, 0.0),
    "infinite": np.where(RANDOM.random(N) < 0.3, -np.inf, np.inf),
    "large and small": RANDOM.normal(size=N) * 10.0 ** RANDOM.integers(-300, 300, N),
    "sorted": np.sort(RANDOM.normal(size=N)),
    "nothing": np.full(N, np.nan),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_order_is_that_of_a_stable_sort(name: str) -> None:
    column = COLUMNS[name]
    np.testing.assert_array_equal(ascending(column), np.argsort(column, kind="stable"))


@given(st.lists(st.floats(allow_nan=True), min_size=1, max_size=8), st.integers(0, 2**32))
def test_the_order_of_any_numbers(values: list[float], seed: int) -> None:
    column = np.random.default_rng(seed).choice(values, N)
    np.testing.assert_array_equal(ascending(column), np.argsort(column, kind="stable"))


@pytest.mark.parametrize("name", ["different", "whole", "missing", "two zeros", "sorted"])
def test_cells_by_the_order_are_those_by_the_values(name: str) -> None:
    table = jr.as_table(COLUMNS[name][:, None], missing="own_category")
    pool = propositions_of(table, max_cut_points=9)
    assert table.sorted_before(0) is not None
    unsorted = jr.as_table(COLUMNS[name][:, None], missing="own_category")
    for kept, anew in zip(pool.cell_codes(table), pool.cell_codes(unsorted), strict=True):
        np.testing.assert_array_equal(kept, anew)
    assert unsorted.sorted_before(0) is None


@given(
    st.integers(0, 30).flatmap(
        lambda n: st.lists(
            st.lists(
                st.sampled_from([0.0, 1.0, -3.0, 0.5, 1e-20, 65536.0, 2.0**60, np.nan]),
                min_size=n,
                max_size=n,
            ),
            min_size=1,
            max_size=6,
        )
    )
)
def test_lexicographic_order_is_that_of_all_keys(keys: list[list[float]]) -> None:
    columns = [np.array(key, float) for key in keys]
    np.testing.assert_array_equal(lexicographic(columns), np.lexsort(columns[::-1]))


def test_many_keys_of_few_whole_numbers_make_more_than_one_word() -> None:
    keys = list(np.random.default_rng(0).integers(0, 3, (60, 500)))
    np.testing.assert_array_equal(lexicographic(keys), np.lexsort(keys[::-1]))


@given(arrays(np.int64, st.integers(0, 40), elements=st.integers(-2, 5)))
def test_places_of_equals_are_those_of_every_value(keys: np.ndarray) -> None:
    expected = [np.flatnonzero(keys == value).tolist() for value in np.unique(keys)]
    assert [places.tolist() for places in places_of_equals(keys)] == expected


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 20), st.integers(1, 12)),
        elements=st.sampled_from([0.0, 1.0]),
    )
)
def test_different_columns_are_those_of_numpy(matrix: np.ndarray) -> None:
    np.testing.assert_array_equal(different_columns(matrix), np.unique(matrix, axis=1))
