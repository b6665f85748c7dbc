"""The best threshold between and within blocks of a sorted column, by compiled running sums: NumPy
would write the sums of every prefix to memory, and spend more time on calls than on few rows.
"""

from __future__ import annotations

import math
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
def slack_of(terms: Floats, n_classes: int) -> Floats:
    """For every row and class max(g, 0) and |b|, (rows, 2 x classes)."""
    n_terms = terms.shape[1] // n_classes
    slack = np.empty((len(terms), 2 * n_classes))
    for i in range(len(terms)):
        for c in range(n_classes):
            square = 0.0
            for t in range(c * n_terms + 2, (c + 1) * n_terms):
                square += terms[i, t] * terms[i, t]
            slack[i, 2 * c] = max(terms[i, c * n_terms], 0.0)
            slack[i, 2 * c + 1] = math.sqrt(square)
    return slack


@_compiled
def sum_blocks(
    terms: Floats, slack: Floats, blocks: NDArray[np.uint16], n_blocks: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """The sums of the terms over the rows before each block, (blocks, terms); those over the
    block; those of the slack; and the terms over all rows in a block, (terms,).

    Args:
        terms: (rows, terms).
        slack: of `slack_of`.
        blocks: the block of every row; `n_blocks` for a row in none.
    """
    sums = np.zeros((n_blocks + 1, terms.shape[1]))
    slacks = np.zeros((n_blocks + 1, slack.shape[1]))
    for i in range(len(terms)):
        # In the order of the rows, so that the terms, the large array, are read from start to end.
        block = blocks[i]
        for t in range(terms.shape[1]):
            sums[block, t] += terms[i, t]
        for t in range(slack.shape[1]):
            slacks[block, t] += slack[i, t]
    before, total = np.empty((n_blocks, terms.shape[1])), np.zeros(terms.shape[1])
    for block in range(n_blocks):
        for t in range(len(total)):
            before[block, t] = total[t]
            total[t] += sums[block, t]
    return before, sums[:n_blocks], slacks[:n_blocks], total


@_compiled
def best_boundary(
    before: Floats,
    total: Floats,
    allowed: NDArray[np.bool_],
    least: float,
    n_classes: int,
    ridge: float,
    in_span: float,
    below: bool,
    above: bool,
) -> tuple[float, int, bool]:
    """The greatest value above `least` of the thresholds between blocks: the value, the block
    above the threshold (0 if none is greater), and whether the rule holds above it.

    Args:
        before, total: of `sum_blocks`.
        allowed: whether a threshold may lie below each block, (blocks,).
        below, above: whether rules below a threshold, and above one, are allowed.
    """
    place, upper, others = 0, False, np.empty(len(total))
    # The rule above a threshold has the sums over all known rows less those below it.
    for side in range(2):
        if not (above if side else below):
            continue
        for block in range(1, len(before)):
            if not allowed[block]:
                continue
            for t in range(len(total)):
                others[t] = total[t] - before[block, t] if side else before[block, t]
            value = _value(others, n_classes, ridge, in_span)
            if value > least:
                least, place, upper = value, block, side == 1
    return least, place, upper


@_compiled
def bounds_of_blocks(
    before: Floats,
    sums: Floats,
    slacks: Floats,
    total: Floats,
    inside: NDArray[np.bool_],
    n_classes: int,
    ridge: float,
    below: bool,
    above: bool,
) -> Floats:
    """Bounds on the values of all thresholds inside each block, (blocks,).

    Args:
        before, sums, slacks, total: of `sum_blocks`.
        inside: whether there is a threshold inside each block, (blocks,).
    """
    n_terms = len(total) // n_classes
    bounds = np.full(len(before), -np.inf)
    for block in range(len(before)):
        if not inside[block]:
            continue
        bounds[block] = 0.0
        for side in range(2):
            if not (above if side else below):
                continue
            value = 0.0
            for c in range(n_classes):
                at = c * n_terms
                positive, length = slacks[block, 2 * c], slacks[block, 2 * c + 1]
                # P = `positive` is the sum of max(g, 0) over the block, D its sum of g: dG lies
                # between D - P and P. See the bound in `thresholds`.
                g, h, square = before[block, at], before[block, at + 1], 0.0
                if side:  # rules above hold for what is not before the block, less a part of it
                    g, h = total[at] - g, max(total[at + 1] - h - sums[block, at + 1], 0.0)
                    low, high = -positive, positive - sums[block, at]
                else:
                    low, high = sums[block, at] - positive, positive
                for t in range(at + 2, at + n_terms):
                    b = total[t] - before[block, t] if side else before[block, t]
                    square += b * b
                # dH >= 0 could only enlarge the denominator: it is left out. And |B + dB| is at
                # most |B| plus the sum of |b|.
                gain = max(abs(g + low), abs(g + high))
                norm = math.sqrt(square) + length
                rest = ridge + h - norm * norm
                if rest > 0.0:
                    value += gain * gain / rest
                # No bound at all: a threshold in this block may come close to the span of the rules
                # found.
                elif gain > 0.0:
                    value = np.inf
            bounds[block] = max(bounds[block], value * (1.0 + 1e-9))
    return bounds


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
