"""Merging equal rows of a binary matrix."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from jaxrules.rows import aggregate_rows, as_binary, distinct_rows, is_binary

matrices = hnp.arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 20)))


@settings(deadline=None, max_examples=100)
@given(matrices)
def test_distinct_rows_are_distinct_and_reproduce_the_matrix(matrix: np.ndarray) -> None:
    first, inverse = distinct_rows(matrix)
    np.testing.assert_array_equal(matrix[first][inverse], matrix)
    assert len(np.unique(matrix[first], axis=0)) == len(first)
    assert (np.diff(first) > 0).all()
    assert first[0] == 0


@settings(deadline=None, max_examples=50)
@given(matrices, st.integers(0, 2**32 - 1))
def test_weights_are_summed_by_pattern_and_class(matrix: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, weight = rng.integers(0, 2, len(matrix)), rng.random(len(matrix))
    rows = aggregate_rows(matrix, y, weight)
    for pattern, positive, negative in zip(rows.matrix, rows.positive_weight, rows.negative_weight, strict=True):
        same = (matrix == pattern).all(axis=1)
        assert positive == pytest.approx(weight[same & (y == 1)].sum())
        assert negative == pytest.approx(weight[same & (y == 0)].sum())
    np.testing.assert_array_equal(rows.matrix[rows.inverse], matrix)


def test_without_weights_every_row_counts_once() -> None:
    rows = aggregate_rows(np.array([[0, 1], [1, 1], [0, 1]]), [1, 0, 0])
    np.testing.assert_array_equal(rows.matrix, [[False, True], [True, True]])
    np.testing.assert_array_equal(rows.positive_weight, [1, 0])
    np.testing.assert_array_equal(rows.negative_weight, [1, 1])


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0)])
def test_empty_matrices(shape: tuple[int, int]) -> None:
    matrix = np.zeros(shape, bool)
    first, inverse = distinct_rows(matrix)
    assert len(inverse) == shape[0]
    np.testing.assert_array_equal(matrix[first][inverse], matrix)


def test_bytes_are_not_copied() -> None:
    matrix = np.array([[0, 1], [1, 0]], np.uint8)
    assert np.shares_memory(as_binary(matrix), matrix)


def test_what_counts_as_binary() -> None:
    assert is_binary(np.array([[0.0, 1.0]]))
    assert is_binary(np.array([[True]]))
    assert not is_binary(np.array([[2]], np.uint8))
    assert not is_binary(np.array([[np.nan, 1.0]]))
    assert not is_binary(np.array([[-1, 1]]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: as_binary(np.zeros(3)), "matrix must be two-dimensional"),
        (lambda: as_binary(np.full((2, 2), 2)), "matrix must hold only zeros and ones"),
        (lambda: as_binary(np.array([["a"]])), "matrix must hold only zeros and ones"),
        (lambda: aggregate_rows(np.eye(2), [0, 1, 1]), "y must hold one label per row"),
        (lambda: aggregate_rows(np.eye(2), [-1, 1]), "y must hold zeros and ones"),
        (lambda: aggregate_rows(np.eye(2), [0, 1], [1.0, -1.0]), "sample_weight must hold one finite number"),
        (lambda: aggregate_rows(np.eye(2), [0, 1], [1.0]), "sample_weight must hold one finite number"),
    ],
)
def test_bad_input(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
