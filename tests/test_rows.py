"""Rows by rules: bits, merged rows and their views, all against the dense matrix."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import jaxrules as jr
from jaxrules.losses import merge_rows, squared
from jaxrules.rules.rows import (
    Activations,
    as_binary,
    check_memory,
    distinct_rows,
    is_binary,
    needed,
)
from jaxrules.tools import bits

shapes = st.tuples(st.integers(0, 40), st.integers(0, 70))
matrices = hnp.arrays(bool, shapes)


def with_copies(matrix: np.ndarray, seed: int) -> np.ndarray:
    """The matrix with copies of rows and rules, complements and constant rules, shuffled."""
    rng = np.random.default_rng(seed)
    rows, rules = matrix.shape
    if rows:
        matrix = matrix[rng.integers(0, rows, rows + 20)]
    if rules:
        more = matrix[:, rng.integers(0, rules, 5)]
        matrix = np.concatenate([matrix, more, ~more[:, :2]], axis=1)
    ones = np.ones((len(matrix), 1), bool)
    matrix = np.concatenate([matrix, ones, ~ones], axis=1)
    return matrix[:, rng.permutation(matrix.shape[1])]


# Bits


@given(hnp.arrays(bool, st.tuples(st.integers(0, 1100), st.integers(0, 140))))
def test_bits_say_what_the_matrix_says(matrix: np.ndarray) -> None:
    words = bits.pack(matrix)
    assert words.dtype == np.uint64
    assert words.shape == (len(matrix), bits.n_words(matrix.shape[1]))
    np.testing.assert_array_equal(bits.unpack(words, matrix.shape[1]), matrix)
    np.testing.assert_array_equal(bits.transposed(words, matrix.shape[1]), bits.pack(matrix.T))
    columns = np.flatnonzero(np.arange(matrix.shape[1]) % 3 == 1)
    np.testing.assert_array_equal(
        bits.take_columns(words, matrix.shape[1], columns), bits.pack(matrix[:, columns])
    )
    for i, r in zip(*np.nonzero(matrix[:5]), strict=True):
        assert words[i, r // 64] >> np.uint64(r % 64) & np.uint64(1)


@given(hnp.arrays(bool, st.tuples(st.integers(0, 200), st.integers(1, 70))))
def test_distinct_rows_are_numbered_by_first_appearance(matrix: np.ndarray) -> None:
    numbers: dict[bytes, int] = {}
    expected = [numbers.setdefault(row.tobytes(), len(numbers)) for row in matrix]
    first, inverse = bits.distinct(bits.pack(matrix))
    assert inverse.tolist() == expected
    assert first.tolist() == [expected.index(number) for number in numbers.values()]


def test_many_rows_are_hashed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits, "_HASHED", 1)
    words = np.random.default_rng(0).integers(0, 12, (1300, 3)).astype(np.uint64)
    assert len(words) > 2 * bits._HASHED_ROWS
    first, inverse = bits.distinct(words)
    rows, expected = np.unique(words, axis=0, return_index=True)
    assert first.tolist() == np.sort(expected).tolist()
    np.testing.assert_array_equal(words[first][inverse], words)
    assert len(first) == len(rows)


def test_rows_of_one_hash_are_told_apart() -> None:
    """Two rows that have the same hash because the differences of their two words cancel."""

    def mixed(word: int) -> int:
        key = word * 0x9E3779B97F4A7C15 % 2**64
        return key ^ key >> 29

    words = np.array([[1, 7], [2, 7 ^ mixed(1) ^ mixed(2)], [1, 7]], np.uint64)
    first, inverse = bits.distinct(words)
    assert first.tolist() == [0, 1]
    assert inverse.tolist() == [0, 1, 0]


@settings(max_examples=100)
@given(hnp.arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 20))))
def test_distinct_rows_are_distinct_and_reproduce_the_matrix(matrix: np.ndarray) -> None:
    first, inverse = distinct_rows(matrix)
    np.testing.assert_array_equal(matrix[first][inverse], matrix)
    assert len(np.unique(matrix[first], axis=0)) == len(first)
    assert (np.diff(first) > 0).all()
    assert first[0] == 0


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0)])
def test_empty_matrices(shape: tuple[int, int]) -> None:
    matrix = np.zeros(shape, bool)
    first, inverse = distinct_rows(matrix)
    assert len(inverse) == shape[0]
    np.testing.assert_array_equal(matrix[first][inverse], matrix)


# Activations


def agrees(activations: Activations, matrix: np.ndarray) -> None:
    """Check that every view agrees with the matrix."""
    pattern = activations.pattern
    patterns = np.unique(matrix, axis=0) if matrix.size else matrix[:1]
    assert (activations.n_rows, activations.n_rules) == matrix.shape
    assert activations.n_patterns == len(patterns)
    np.testing.assert_array_equal(activations.dense[pattern], matrix)
    np.testing.assert_array_equal(activations.by_rule[:, pattern], matrix.T)
    np.testing.assert_array_equal(activations.sparse.toarray()[pattern], matrix)
    np.testing.assert_array_equal(bits.unpack(activations.words, matrix.shape[1])[pattern], matrix)
    np.testing.assert_array_equal(
        activations.counts[pattern], [(matrix == row).all(axis=1).sum() for row in matrix]
    )
    np.testing.assert_array_equal(activations.covered(), matrix.sum(axis=0))
    np.testing.assert_array_equal(activations.at(np.arange(len(matrix))), matrix)
    odd = np.arange(matrix.shape[1]) % 2 == 1
    np.testing.assert_array_equal(activations.holds(odd)[:, pattern], matrix[:, odd].T)
    appears = np.unique(pattern, return_index=True)[1]
    assert (np.diff(appears) > 0).all()


@given(matrices, st.integers(0, 2**32 - 1))
def test_every_view_agrees_with_the_dense_matrix(matrix: np.ndarray, seed: int) -> None:
    matrix = with_copies(matrix, seed)
    activations = Activations.of_matrix(matrix)
    agrees(activations, matrix)
    blocks = [matrix[start : start + 7] for start in range(0, len(matrix), 7)]
    agrees(Activations.of_blocks(blocks, matrix.shape[1]), matrix)
    rng = np.random.default_rng(seed)
    mask = rng.random(len(matrix)) < 0.5
    agrees(activations.take_rows(mask), matrix[mask])
    rows = rng.permutation(len(matrix))[: len(matrix) // 2]
    agrees(activations.take_rows(rows), matrix[rows])


@given(matrices, st.integers(0, 2**32 - 1), st.booleans())
def test_copies_are_dropped(matrix: np.ndarray, seed: int, complements: bool) -> None:
    matrix = with_copies(matrix, seed)
    order = np.random.default_rng(seed).permutation(matrix.shape[1])
    kept, reduced = Activations.of_matrix(matrix).without_copies(order, complements=complements)
    expected: dict[bytes, int] = {}
    for rule in order.tolist():
        column = matrix[:, rule]
        if column.any() and not column.all():
            expected.setdefault((column ^ column[0] if complements else column).tobytes(), rule)
    assert kept.tolist() == sorted(expected.values())
    np.testing.assert_array_equal(reduced.dense[reduced.pattern], matrix[:, kept])
    if len(matrix):
        assert len(np.unique(reduced.dense, axis=0)) == reduced.n_patterns


@given(matrices, st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_weights_are_summed_by_pattern_and_class(
    matrix: np.ndarray, seed: int, n_classes: int
) -> None:
    matrix = with_copies(matrix, seed)
    rng = np.random.default_rng(seed)
    codes, weight = rng.integers(0, n_classes, len(matrix)), rng.random(len(matrix))
    values = rng.normal(size=(len(matrix), 3))
    activations = Activations.of_matrix(matrix)
    sums, counts = (
        activations.class_weights(codes, n_classes, weight),
        activations.class_weights(codes, n_classes),
    )
    mean, total, within = merge_rows(
        squared, values[:, 0], weight, activations.pattern, activations.n_patterns
    )
    assert sums.shape == counts.shape == (activations.n_patterns, n_classes)
    for pattern, held in enumerate(activations.dense):
        same = (matrix == held).all(axis=1)
        for k in range(n_classes):
            assert sums[pattern, k] == pytest.approx(weight[same & (codes == k)].sum())
            assert counts[pattern, k] == (same & (codes == k)).sum()
        np.testing.assert_allclose(
            activations.totals(values)[pattern], values[same].sum(axis=0), atol=1e-12
        )
        assert total[pattern] == pytest.approx(weight[same].sum())
        assert mean[pattern] == pytest.approx(np.average(values[same, 0], weights=weight[same]))
    np.testing.assert_allclose(activations.covered(total), weight @ matrix)
    # the squared loss of any function of the patterns, from the aggregate
    score = rng.normal(size=activations.n_patterns)
    direct = weight @ (values[:, 0] - score[activations.pattern]) ** 2
    assert within + total @ (mean - score) ** 2 == pytest.approx(direct)


def test_without_weights_every_row_counts_once() -> None:
    rows = Activations.of_matrix(np.array([[0, 1], [1, 1], [0, 1]]))
    np.testing.assert_array_equal(rows.dense, [[False, True], [True, True]])
    np.testing.assert_array_equal(rows.class_weights(np.array([1, 0, 0]), 2), [[1, 1], [1, 0]])


def test_rules_on_a_table() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3)).round(1)
    forest = jr.default_forest(X, X[:, 0] > X[:, 1], n_trees=20, seed=0)
    table = jr.as_table(X)
    rules = jr.extract_rules(forest, X)
    agrees(Activations.of(rules, table), rules.satisfied(table))
    agrees(Activations.of(rules.take([]), table), np.zeros((300, 0), bool))


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
        (
            lambda: Activations.of_matrix(np.eye(2)).class_weights([0, 1, 1], 2),
            "codes must hold one class per row",
        ),
        (
            lambda: Activations.of_matrix(np.eye(2)).class_weights([-1, 1], 2),
            r"codes must lie in 0\.\.1",
        ),
        (
            lambda: Activations.of_matrix(np.eye(2)).totals([1.0, 1.0, 1.0]),
            "values must hold one number per row",
        ),
        (
            lambda: Activations.of_matrix(np.eye(2)).class_weights([0, 1], 2, [1.0, -1.0]),
            "one finite number of at",
        ),
        (
            lambda: Activations.of_matrix(np.eye(2)).class_weights([0, 1], 2, [1.0]),
            "sample_weight must hold one",
        ),
        (
            lambda: check_memory(2**40, 2**10, 1.0),
            "1024 rules on 1099511627776 distinct rows need 1.05e",
        ),
    ],
)
def test_bad_input(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_wide_rows_are_transposed_in_tiles() -> None:
    matrix = np.random.default_rng(0).random((70, 70_003)) < 0.5
    assert 2 * bits._SQUARES < 9 * 8751
    columns = bits.transposed(bits.pack(matrix), 70_003)
    assert (bits.unpack(columns, 70) == matrix.T).all()


def test_a_condition_is_needed_if_it_alone_excludes_a_row() -> None:
    holds = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 1, 0]], bool)
    assert needed(holds, [1.0, 3.0, 2.0]) == [0, 2]  # 1 is the most expensive
    assert needed(holds, [3.0, 1.0, 2.0]) == [1]


def test_too_little_memory_is_told_in_gibibytes(monkeypatch) -> None:
    monkeypatch.setattr("jaxrules.rules.rows.available_memory", lambda: 3 << 30)
    check_memory(2**20, 2**10, 3.0)
    with pytest.raises(ValueError, match="need 4 GiB of memory, but 3 GiB are free; use less"):
        check_memory(2**20, 2**10, 4.0, remedy="use less")
