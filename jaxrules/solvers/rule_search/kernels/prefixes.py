"""The best threshold within blocks of a sorted column, by compiled running sums: NumPy would write
the sums of every prefix to memory.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def _value(sums: Floats, n_classes: int, ridge: float, in_span: float) -> float:
    """G^2 / (ridge + H - |B|^2), summed over classes; 0 where the denominator is at most the share
    `in_span` of ridge + H.
    """
    n_terms, value = len(sums) // n_classes, 0.0
    for at in range(0, len(sums), n_terms):
        whole = ridge + sums[at + 1]
        rest = whole
        for t in range(at + 2, at + n_terms):
            rest -= sums[t] * sums[t]
        if rest > in_span * whole:
            value += sums[at] * sums[at] / rest
    return value


@_compiled
def scan_blocks(
    terms: Floats,
    rows: NDArray[np.int32],
    ends: NDArray[np.bool_],
    starts: NDArray[np.int64],
    before: Floats,
    total: Floats,
    blocks: NDArray[np.int64],
    bounds: Floats,
    least: float,
    n_classes: int,
    ridge: float,
    in_span: float,
    below: bool,
    above: bool,
) -> tuple[float, int, bool]:
    """The greatest value above `least` of the thresholds inside some blocks, in descending order of
    their bounds: the value, the number of rows below the threshold (0 if none is greater), and
    whether the rule holds above it.

    Args:
        terms: (rows, terms), of one class after another.
        rows, ends: the sorted column.
        starts: where the blocks start in it, and where the last one ends.
        before: the sums over the rows before each block, (blocks, terms).
        total: the sums over all known rows, (terms,).
        blocks, bounds: the blocks to scan, and their bounds.
        below, above: whether rules below a threshold, and above one, are allowed.
    """
    place, upper = 0, False
    sums, others = np.empty(len(total)), np.empty(len(total))
    for k in range(len(blocks)):
        if bounds[k] <= least:
            break
        block = blocks[k]
        sums[:] = before[block]
        for i in range(starts[block], starts[block + 1]):
            of_row = terms[rows[i]]
            for t in range(len(total)):
                sums[t] += of_row[t]
            if not ends[i]:
                continue
            if below:
                value = _value(sums, n_classes, ridge, in_span)
                if value > least:
                    least, place, upper = value, i + 1, False
            if above:
                for t in range(len(total)):
                    others[t] = total[t] - sums[t]
                value = _value(others, n_classes, ridge, in_span)
                if value > least:
                    least, place, upper = value, i + 1, True
    return least, place, upper
