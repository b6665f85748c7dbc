"""Compiled products of bits and vectors for `jaxrules.solvers.linear.bit_columns`; imported on
first use, as it loads numba.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import float32, float64, int64, uint8
from numpy.typing import NDArray

from jaxrules.tools.compiling import from_python

Floats = NDArray[np.float64]
Octets = NDArray[np.uint8]

OCTETS = numba.types.Array(uint8, 2, "C", readonly=True)
TO_COMPILE = 4.0
"""Seconds, with the kernels of coordinate descent."""

_READ, _READ_MATRIX = (numba.types.Array(float64, n, "C", readonly=True) for n in (1, 2))

TILE = 1024
"""The number of octets of a column (eight rows each) transposed at once, so that their scores stay
in the cache.
"""


@numba.njit(inline="always")
def transpose(octets: Octets, first: int, start: int, tile: NDArray[np.uint64]) -> None:
    """Octet i of tile[b] is row 8 (start + b) + i of the eight columns from `first` on."""
    # Columns that are missing in the last group of eight count as zeros.
    tile[:] = 0
    for j in range(min(8, len(octets) - first)):
        for b in range(len(tile)):
            tile[b] |= np.uint64(octets[first + j, start + b]) << np.uint64(8 * j)
    # Every octet of x is eight rows of one column. The three swaps exchange the bits, pairs and
    # fours of bits across the diagonal: then every octet is the eight columns of one row.
    for b in range(len(tile)):  # Warren, "Hacker's Delight", section 7-3
        x = tile[b]
        t = (x ^ (x >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
        x = x ^ t ^ (t << np.uint64(7))
        t = (x ^ (x >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
        x = x ^ t ^ (t << np.uint64(14))
        t = (x ^ (x >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
        tile[b] = x ^ t ^ (t << np.uint64(28))


@from_python((OCTETS, _READ, float64[:, :, ::1]))
def add_sums(octets: Octets, rows: Floats, by_octet: Floats) -> None:
    """Add each row's number at the index that its eight entries of a group of columns form, in
    (groups, 4, 256).

    Neighbouring rows add to different tables: most rows of rare rules have the same index, so each
    addition would otherwise wait for the one before.
    """
    count = octets.shape[1]
    buffer = np.empty(TILE, np.uint64)
    for start in range(0, count, TILE):
        tile = buffer[: min(TILE, count - start)]
        for group in range(len(by_octet)):
            transpose(octets, 8 * group, start, tile)
            into = by_octet[group]
            for b in range(len(tile)):
                entries, row = tile[b], 8 * (start + b)
                for i in range(8):
                    into[i % 4, entries & np.uint64(255)] += rows[row + i]
                    entries >>= np.uint64(8)


@from_python((OCTETS, _READ_MATRIX, float64[::1]))
def add_scores(octets: Octets, by_octet: Floats, scores: Floats) -> None:
    """Add to each row the number at the index that its eight entries of a group of columns form, in
    (groups, 256).
    """
    count = octets.shape[1]
    buffer = np.empty(TILE, np.uint64)
    for start in range(0, count, TILE):
        tile = buffer[: min(TILE, count - start)]
        for group in range(len(by_octet)):
            transpose(octets, 8 * group, start, tile)
            worth = by_octet[group]
            for b in range(len(tile)):
                entries, row = tile[b], 8 * (start + b)
                for i in range(8):
                    scores[row + i] += worth[entries & np.uint64(255)]
                    entries >>= np.uint64(8)


def _scaled(
    octets: Octets,
    start: int,
    bits: NDArray[np.floating],
    factors: NDArray[np.floating],
    out: NDArray[np.floating],
) -> None:
    """Set `out`, (columns, some rows), to the entries from octet `start` on, times one factor per
    row; `bits`, (256, 8), holds the bits of every octet.
    """
    for j in range(len(octets)):
        for b in range(out.shape[1] // 8):
            entries = bits[octets[j, start + b]]
            for i in range(8):
                out[j, 8 * b + i] = entries[i] * factors[8 * (start + b) + i]


scaled = from_python(
    *((OCTETS, int64, kind[:, ::1], kind[::1], kind[:, ::1]) for kind in (float32, float64))
)(_scaled)
