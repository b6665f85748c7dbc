"""The order of many numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FEW = 4096
"""So few numbers are sorted as they are."""


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
