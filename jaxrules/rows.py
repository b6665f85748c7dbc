"""Equal rows of a binary matrix, merged.

Rules satisfied by a row are a short bit pattern, and many rows share it (Adult with 1164 rules: 29304 rows
hold 11282 patterns). Every loss that sees a row only through its pattern can be summed per pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class AggregatedRows:
    """A binary matrix with equal rows merged, and the weight of each class in every distinct row.

    Attributes:
        matrix: (patterns, columns) bool, the distinct rows in the order of their first appearance.
        positive_weight: (patterns,) float64, summed weight of the positive rows of each pattern.
        negative_weight: (patterns,) float64, summed weight of the negative rows of each pattern.
        inverse: (rows,) intp, the pattern of every row: ``matrix[inverse]`` is the original matrix.
    """

    matrix: NDArray[np.bool_]
    positive_weight: NDArray[np.float64]
    negative_weight: NDArray[np.float64]
    inverse: NDArray[np.intp]


def distinct_rows(matrix: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The distinct rows of a binary matrix, in the order of their first appearance.

    Args:
        matrix: (rows, columns) of booleans or zeros and ones.

    Returns:
        first: (patterns,) the row in which each pattern appears first, ascending.
        inverse: (rows,) the pattern of every row; ``matrix[first][inverse]`` equals ``matrix``.

    Raises:
        ValueError: if `matrix` is not two-dimensional or holds anything but 0 and 1.
    """
    binary = as_binary(matrix)
    rows, columns = binary.shape
    if rows == 0 or columns == 0:
        first = np.zeros(min(rows, 1), np.intp)
        return first, np.zeros(rows, np.intp)
    # One opaque key of columns / 8 bytes per row: sorting bytes is far faster than sorting rows.
    packed = np.ascontiguousarray(np.packbits(binary, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.ravel()]


def aggregate_rows(matrix: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> AggregatedRows:
    """Merge equal rows of a binary matrix and sum the weight of both classes in each.

    Args:
        matrix: (rows, columns) of booleans or zeros and ones.
        y: (rows,) of zeros and ones (or booleans), 1 for the positive class.
        sample_weight: (rows,) weights of at least 0; None for ones.

    Raises:
        ValueError: if a shape does not fit, `matrix` or `y` is not binary, or a weight is negative or not finite.
    """
    binary = as_binary(matrix)
    target = np.asarray(y)
    weight = np.ones(len(binary)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if target.shape != (len(binary),):
        raise ValueError(f"y must hold one label per row of matrix ({len(binary)}), got shape {target.shape}")
    if not np.isin(target, (0, 1)).all():
        raise ValueError("y must hold zeros and ones; encode the two classes first")
    if weight.shape != (len(binary),) or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must hold one finite number of at least 0 per row")
    first, inverse = distinct_rows(binary)
    positive = np.zeros(len(first))
    negative = np.zeros(len(first))
    np.add.at(positive, inverse, weight * (target == 1))
    np.add.at(negative, inverse, weight * (target == 0))
    return AggregatedRows(binary[first], positive, negative, inverse)


def as_binary(matrix: ArrayLike) -> NDArray[np.bool_]:
    """A two-dimensional matrix of zeros and ones as booleans; uint8 and boolean input is not copied."""
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise ValueError(f"matrix must be two-dimensional (rows, columns), got shape {array.shape}")
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "uif" or not is_binary(array):
        raise ValueError("matrix must hold only zeros and ones (or booleans)")
    return array.view(np.bool_) if array.dtype == np.uint8 else array.astype(bool)


def is_binary(array: NDArray) -> bool:
    """Whether an array holds nothing but booleans or zeros and ones."""
    if array.dtype == bool:
        return True
    if array.dtype.kind == "u":
        return array.size == 0 or int(array.max()) <= 1
    return bool(((array == 0) | (array == 1)).all())
