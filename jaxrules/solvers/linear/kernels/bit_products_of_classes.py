"""`bit_products` for several classes, whose bits are read once; imported on first use, as it loads
numba.

Unsigned indices of flat arrays spare the compiler the question whether they count from the end, so
that it adds several classes in one instruction.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import float64, int64

from jaxrules.solvers.linear.kernels.bit_products import OCTETS, TILE, Floats, Octets, transpose
from jaxrules.tools.compiling import from_python

TO_COMPILE = 6.0
"""Seconds, with the kernels of coordinate descent."""

_READ, _READ_MATRIX = (numba.types.Array(float64, n, "C", readonly=True) for n in (1, 2))


@from_python((OCTETS, _READ, int64, float64[:, ::1]))
def add_sums_of_classes(octets: Octets, rows: Floats, classes: int, by_octet: Floats) -> None:
    """`add_sums` for flat (rows, classes), into (groups, 256 classes)."""
    count, step = octets.shape[1], np.uint64(classes)
    buffer = np.empty(TILE, np.uint64)
    for start in range(0, count, TILE):
        tile = buffer[: min(TILE, count - start)]
        for group in range(len(by_octet)):
            transpose(octets, 8 * group, start, tile)
            into = by_octet[group]
            for b in range(len(tile)):
                entries, row = tile[b], np.uint64(8 * (start + b)) * step
                for _ in range(8):
                    at = (entries & np.uint64(255)) * step
                    for c in range(step):
                        into[at + c] += rows[row + c]
                    entries >>= np.uint64(8)
                    row += step


@from_python((OCTETS, _READ_MATRIX, int64, float64[::1]))
def add_scores_of_classes(octets: Octets, by_octet: Floats, classes: int, scores: Floats) -> None:
    """`add_scores` for (groups, 256 classes), to flat (rows, classes)."""
    count, step, size = octets.shape[1], np.uint64(classes), max(1, TILE // classes)
    buffer = np.empty(size, np.uint64)
    for start in range(0, count, size):
        tile = buffer[: min(size, count - start)]
        for group in range(len(by_octet)):
            transpose(octets, 8 * group, start, tile)
            worth = by_octet[group]
            for b in range(len(tile)):
                entries, row = tile[b], np.uint64(8 * (start + b)) * step
                for _ in range(8):
                    at = (entries & np.uint64(255)) * step
                    for c in range(step):
                        scores[row + c] += worth[at + c]
                    entries >>= np.uint64(8)
                    row += step
