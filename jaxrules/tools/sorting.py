"""The order of many numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FEW = 4096
"""So few numbers are sorted as they are."""
_SMALL = 1 << 16
"""The range of whole numbers that are codes in a lexicographic order."""


def ascending(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """``np.argsort(values, kind="stable")``, missing values last, in less than half of the time for
    many different numbers.

    The bits of a number, read as a whole number, rise with it. Whole numbers whose last bits are
    replaced by the place of the number are sorted by themselves, which takes half of the time of an
    argsort and leaves the places in order, but for numbers that differ in these bits only.
    """
    n = len(values)
    if n < _FEW:
        return np.argsort(values, kind="stable").astype(np.int32)
    if (values[1:] >= values[:-1]).all():  # none is missing
        return np.arange(n, dtype=np.int32)
    # -0 + 0 = 0, so that both zeros have one key. Negative numbers have a sign bit and rise as
    # their other bits fall.
    keys = (values + 0.0).view(np.int64)
    keys ^= (keys >> np.int64(63)) & np.int64(np.iinfo(np.int64).max)
    keys[np.isnan(values)] = np.iinfo(np.int64).max
    n_bits = np.int64((n - 1).bit_length())
    keys >>= n_bits
    keys <<= n_bits
    keys |= np.arange(n)
    keys.sort()
    order = (keys & ((np.int64(1) << n_bits) - 1)).astype(np.int32)
    keys >>= n_bits
    same = keys[1:] == keys[:-1]
    if same.any():
        # Within the places of equal keys, rows ascend, so that a stable sort by value is right.
        tied = np.append(same, False) | np.append(False, same)
        rows = order[tied]
        order[tied] = rows[np.argsort(values[rows], kind="stable")]
    return order


def lexicographic(keys: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    """The order by the first of some numeric keys, ties by the second, and so on; missing values
    last.

    >>> lexicographic([np.array([1, 0, 1, 0]), np.array([2.0, np.nan, 1.5, 3.0])]).tolist()
    [3, 1, 2, 0]
    """
    words: list[NDArray[Any]] = []
    sizes: list[int] = []  # the number of values that a word may have; 0 for any numbers
    for key in keys:
        codes, size = _small_codes(key)
        if size and sizes and sizes[-1] and sizes[-1] * size < 2**63:
            # Neighbouring keys of few whole numbers are the digits of one number.
            words[-1] = words[-1] * size + codes
            sizes[-1] *= size
        else:
            words.append(codes)
            sizes.append(size)
    return np.lexsort(words[::-1])  # which sorts by its last key first


def _small_codes(key: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The key as codes from 0 and their number, if it has whole numbers of a small range, else the
    key itself and 0.
    """
    if not len(key):
        return key, 0
    missing = np.isnan(key)
    low, high = np.fmin.reduce(key), np.fmax.reduce(key)
    if missing.all() or high - low > _SMALL:
        return key, 0
    known = np.where(missing, high + 1, key)
    if (np.floor(known) != known).any():
        return key, 0
    return (known - low).astype(np.int64), int(high - low) + 1 + int(missing.any())


def places_of_equals(keys: NDArray[Any]) -> list[NDArray[np.intp]]:
    """The places of every value that occurs, values and places ascending.

    >>> [places.tolist() for places in places_of_equals(np.array([7, 2, 7, 3]))]
    [[1], [3], [0, 2]]
    """
    order = np.argsort(keys, kind="stable")
    of_order = keys[order]
    ends = np.flatnonzero(np.append(of_order[1:] != of_order[:-1], True)[: len(keys)]) + 1
    return [order[i:j] for i, j in itertools.pairwise([0, *ends.tolist()])]


def different_columns(matrix: NDArray[Any]) -> NDArray[Any]:
    """``np.unique(matrix, axis=1)`` of zeros and ones, many times faster for few rows."""
    octets = np.packbits(matrix > 0, axis=0)  # the first row is the highest bit
    order = np.lexsort(octets[::-1])
    octets = octets[:, order]
    new = (octets[:, 1:] != octets[:, :-1]).any(axis=0)
    return matrix[:, order[np.append(True, new)[: len(order)]]]
