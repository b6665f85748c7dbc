"""The best threshold between and within blocks of a sorted column, by compiled running sums: NumPy
would write the sums of every prefix to memory, and spend more time on calls than on few rows.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.kernels.vectors import LANES, add_by_group
from jaxrules.tools.compiling import FROM_KERNELS, from_python

Floats = NDArray[np.float64]
_LARGEST = int(np.iinfo(np.int16).max)
_compiled: Any = from_python(error_model="numpy")
_part: Any = numba.njit(error_model="numpy", **FROM_KERNELS)


@_part
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
def add_slack(terms: Floats, n_terms: int, n_classes: int) -> None:
    """Write max(g, 0) and |b| of every class behind the terms of every row, (rows, width)."""
    of_class = n_terms // n_classes
    for i in range(len(terms)):
        for c in range(n_classes):
            square = 0.0
            for t in range(c * of_class + 2, (c + 1) * of_class):
                square += terms[i, t] * terms[i, t]
            terms[i, n_terms + 2 * c] = max(terms[i, c * of_class], 0.0)
            terms[i, n_terms + 2 * c + 1] = math.sqrt(square)


@_part
def _least_rest(
    before: Floats,
    sums: Floats,
    total: Floats,
    c: int,
    side: int,
    n_terms: int,
    n_classes: int,
    ridge: float,
) -> float:
    """A lower bound on ridge + H - |B|^2 of one class for the thresholds inside a block; 0 if a
    threshold may come close to the span of the rules found.

    Args:
        before, sums: the sums over the rows before the block, and over its rows.
        side: 1 for rules above the threshold.
    """
    at, of_class = c * (n_terms // n_classes), n_terms // n_classes
    h, square = before[at + 1], 0.0
    if side:  # rules above hold for what is not before the block, less a part of it
        h = max(total[at + 1] - h - sums[at + 1], 0.0)
    for t in range(at + 2, at + of_class):
        b = total[t] - before[t] if side else before[t]
        square += b * b
    # dH >= 0 could only enlarge the denominator: it is left out. And |B + dB| is at most |B| plus
    # the sum of |b|.
    norm = math.sqrt(square) + sums[n_terms + 2 * c + 1]
    rest = ridge + h - norm * norm
    # A difference of nearly equal numbers is rounding.
    return rest if rest > 1e-6 * (ridge + h) else 0.0


@_part
def _bound_inside(
    before: Floats,
    sums: Floats,
    total: Floats,
    side: int,
    n_terms: int,
    n_classes: int,
    ridge: float,
) -> float:
    """A bound on the values of the thresholds inside a block; arguments as for `_least_rest`."""
    value = 0.0
    for c in range(n_classes):
        at = c * (n_terms // n_classes)
        # P is the sum of max(g, 0) over the block, D its sum of g: dG lies between D - P and P. See
        # the bound in `thresholds`.
        positive, g = sums[n_terms + 2 * c], before[at]
        if side:
            g = total[at] - g
            low, high = -positive, positive - sums[at]
        else:
            low, high = sums[at] - positive, positive
        gain = max(abs(g + low), abs(g + high))
        rest = _least_rest(before, sums, total, c, side, n_terms, n_classes, ridge)
        if rest > 0.0:
            value += gain * gain / rest
        elif gain > 0.0:  # no bound at all
            value = np.inf
    return value * (1.0 + 1e-9)


@_compiled
def count_blocks(
    blocks: NDArray[np.uint8], of_rows: NDArray[np.uint16], n_blocks: int, n_classes: int
) -> NDArray[np.uint32]:
    """The number of rows of every class of rows in every block, (blocks, classes)."""
    counts = np.zeros((n_blocks, n_classes), np.uint32)
    for i in range(len(blocks)):
        counts[blocks[i], of_rows[i]] += np.uint32(1)
    return counts


@_compiled
def bounds_of_blocks(
    sums: Floats,
    n_terms: int,
    between: NDArray[np.bool_],
    inside: NDArray[np.bool_],
    least: float,
    n_classes: int,
    ridge: float,
    in_span: float,
    below: bool,
    above: bool,
) -> tuple[Floats, Floats, Floats, float, int, bool]:
    """Bounds on the values of the thresholds inside the blocks of a column, and the best threshold
    between blocks.

    Args:
        sums: of the terms with slack over the rows of every block, (blocks, width).
        n_terms: without the slack.
        between: whether a threshold may lie below each block, (blocks,).
        inside: whether there is a threshold inside each block, (blocks,).
        least: values up to this do not count.
        below, above: whether rules below a threshold, and above one, are allowed.

    Returns:
        The bounds, (blocks,); the sums over the rows before each block, (blocks, terms); the sums
        over all rows in a block; the greatest value above `least` between
        blocks, the block above that threshold (0 if there is none), and whether the rule holds
        above it.
    """
    n_blocks = len(between)
    before, total = np.empty((n_blocks, n_terms)), np.zeros(n_terms)
    for block in range(n_blocks):
        for t in range(n_terms):
            before[block, t] = total[t]
            total[t] += sums[block, t]
    place, upper, others = 0, False, np.empty(n_terms)
    bounds = np.empty(n_blocks)
    for block in range(n_blocks):
        bounds[block] = -np.inf
    # The rule above a threshold has the sums over all known rows less those below it.
    for side in range(2):
        if not (above if side else below):
            continue
        for block in range(1, n_blocks):
            if not between[block]:
                continue
            for t in range(n_terms):
                others[t] = total[t] - before[block, t] if side else before[block, t]
            value = _value(others, n_classes, ridge, in_span)
            if value > least:
                least, place, upper = value, block, side == 1
        for block in range(n_blocks):
            if not inside[block]:
                continue
            bound = _bound_inside(
                before[block], sums[block], total, side, n_terms, n_classes, ridge
            )
            bounds[block] = max(bounds[block], bound)
    return bounds, before, total, least, place, upper


@_part
def _refined(
    gradient: Floats,
    rows: NDArray[np.int32],
    of_rows: NDArray[np.uint16],
    start: int,
    stop: int,
    before: Floats,
    sums: Floats,
    total: Floats,
    n_terms: int,
    n_classes: int,
    ridge: float,
    below: bool,
    above: bool,
) -> float:
    """A tighter bound on the thresholds inside a block, from the sums of g up to each of its rows.

    Args:
        gradient, of_rows: as for `scan_blocks`.
        start, stop: the block in the sorted rows.
    """
    bounds = np.zeros(2)
    for c in range(n_classes):
        at = c * (n_terms // n_classes)
        of_class, g = gradient[c], before[at]
        least, most = g, g
        for i in range(start, stop):
            g += of_class[of_rows[rows[i]] if len(of_rows) else rows[i]]
            least, most = min(least, g), max(most, g)
        for side in range(2):
            if side:
                low, high = total[at] - most, total[at] - least
            else:
                low, high = least, most
            gain = max(abs(low), abs(high))
            rest = _least_rest(before, sums, total, c, side, n_terms, n_classes, ridge)
            if rest > 0.0:
                bounds[side] += gain * gain / rest
            elif gain > 0.0:
                bounds[side] = np.inf
    bound = bounds[0] if below else -np.inf
    if above:
        bound = max(bound, bounds[1])
    return bound * (1.0 + 1e-9)


@_compiled
def scan_blocks(
    terms: Floats,
    n_terms: int,
    gradient: Floats,
    rows: NDArray[np.int32],
    of_rows: NDArray[np.uint16],
    ends: NDArray[np.bool_],
    starts: NDArray[np.int64],
    bounds: Floats,
    before: Floats,
    sums: Floats,
    total: Floats,
    least: float,
    n_classes: int,
    ridge: float,
    in_span: float,
    below: bool,
    above: bool,
    lowest: bool,
) -> tuple[float, int, bool]:
    """The greatest value above `least` of the thresholds inside blocks: the value, the number of
    rows below the threshold (0 if none is greater), and whether the rule holds above it.

    Args:
        terms: (rows, width), of one class after another.
        gradient: g of every class, (classes, rows).
        rows, ends: the sorted column.
        of_rows: where the terms and g of every row are; empty if at its own place.
        starts: where the blocks start in it, and where the last one ends.
        bounds, before, sums, total: of `bounds_of_blocks`.
        below, above: whether rules below a threshold, and above one, are allowed.
        lowest: find the lowest threshold with a value above `least` instead, also between blocks.
    """
    place, upper = 0, False
    running, others = np.empty(n_terms), np.empty(n_terms)
    # The block of the greatest bound comes first: what it holds excludes most others.
    first = 0
    for k in range(len(bounds)):
        if bounds[k] > bounds[first]:
            first = k
    for k in range(0 if lowest else -1, len(bounds)):
        block = first if k < 0 else k
        if k == first and not lowest:
            continue
        start, stop = starts[block], starts[block + 1]
        inside = bounds[block] > least and least < _refined(
            gradient, rows, of_rows, start, stop, before[block], sums[block], total, n_terms,
            n_classes, ridge, below, above,
        )  # fmt: skip
        if not (inside or lowest):
            continue
        for t in range(n_terms):
            running[t] = before[block, t] + (0.0 if inside else sums[block, t])
        for i in range(start if inside else stop - 1, stop):
            of_row = terms[of_rows[rows[i]] if len(of_rows) else rows[i]]
            for t in range(n_terms if inside else 0):
                running[t] += of_row[t]
            if not ends[i]:
                continue
            if below:
                value = _value(running, n_classes, ridge, in_span)
                if value > least:
                    least, place, upper = value, i + 1, False
            if above and not (lowest and place):
                for t in range(n_terms):
                    others[t] = total[t] - running[t]
                value = _value(others, n_classes, ridge, in_span)
                if value > least:
                    least, place, upper = value, i + 1, True
            if lowest and place:
                return least, place, upper
    return least, place, upper


@_compiled
def in_units(terms: Floats, largest: Floats) -> tuple[NDArray[np.int16], Floats, NDArray[np.int32]]:
    """The terms of the rows that have any, as 16-bit integers times a unit.

    Args:
        terms: (classes, terms, rows).
        largest: their greatest absolute values, (classes, terms).

    Returns:
        The integers, those of max(g, 0) and |b| behind those of the terms, padded, (classes, rows,
        width); the units of the terms and of |b|, (classes, terms + 1); and the rows.
    """
    n_classes, n_terms, n_rows = terms.shape
    rows, n = np.empty(n_rows, np.int32), 0
    for i in range(n_rows):
        rows[n] = i
        for c in range(n_classes):
            if terms[c, 0, i] != 0.0 or terms[c, 1, i] != 0.0:
                n += 1
                break
    rows = rows[:n]
    unit = np.ones((n_classes, n_terms + 1))
    wide = np.zeros((n_classes, n, max(8, -(-(n_terms + 2) // LANES) * LANES)), np.int16)
    for c in range(n_classes):
        longest = 0.0
        for t in range(n_terms):
            if largest[c, t] > 0.0:
                unit[c, t] = largest[c, t] / _LARGEST
            if t > 1:
                longest += largest[c, t] ** 2
        if longest > 0.0:
            unit[c, n_terms] = math.sqrt(longest) / (_LARGEST - 1)
        for k in range(n):
            square = 0.0
            for t in range(n_terms):
                term = terms[c, t, rows[k]]
                wide[c, k, t] = np.int16(np.rint(term / unit[c, t]))
                if t > 1:
                    square += term * term
            wide[c, k, n_terms] = max(wide[c, k, 0], 0)
            wide[c, k, n_terms + 1] = np.int16(math.ceil(math.sqrt(square) / unit[c, n_terms]))
    return wide, unit, rows


@_compiled
def add_units(
    wide: NDArray[np.int16], blocks: NDArray[np.uint8], rows: NDArray[np.int32], sums: Floats
) -> None:
    """Add the integers of up to 65 536 rows, (classes, rows, width), to the sums of their blocks,
    (classes, blocks, width).
    """
    of_row = np.empty(len(rows), np.uint8)
    for i in range(len(rows)):
        of_row[i] = blocks[rows[i]]
    n_blocks, width = sums.shape[1], sums.shape[2]
    for c in range(len(wide)):
        held = np.zeros((n_blocks, width), np.int32)
        add_by_group(wide[c], of_row, held)
        for block in range(n_blocks):
            for t in range(width):
                sums[c, block, t] += held[block, t]


@_compiled
def bounds_of_column(
    sums: Floats,
    unit: Floats,
    n_rows: int,
    between: NDArray[np.bool_],
    ridge: float,
    in_span: float,
    below: bool,
    above: bool,
) -> tuple[float, float]:
    """No threshold of a column has a greater value than the first number, and one of them has at
    least the second.

    Args:
        sums: of `add_units`.
        unit: of `in_units`.
        n_rows: the number of rows that were added.
        between: whether a threshold may lie below each block, (blocks,).
        ridge: ridge + H - |B|^2 is at least this, as the square of a distance and the ridge.
        below, above: whether rules below a threshold, and above one, are allowed.
    """
    n_terms, n_blocks = unit.shape[1] - 1, len(between)
    upper, lower = np.zeros((2, n_blocks)), np.zeros((2, n_blocks))
    total, before = np.empty(n_terms), np.empty(n_terms)
    for c in range(len(sums)):
        for t in range(n_terms):
            total[t], before[t] = 0.0, 0.0
        for block in range(n_blocks):
            for t in range(n_terms):
                total[t] += sums[c, block, t] * unit[c, t]
        # An integer is off by half a unit at most, and so is each row of a sum.
        half, errors = (0.5 + 1e-9) * n_rows, 0.0
        for t in range(2, n_terms):
            errors += (half * unit[c, t]) ** 2
        error_g, error_h, errors = half * unit[c, 0], half * unit[c, 1], math.sqrt(errors)
        floor = ridge - 1e-8 * (ridge + total[1])
        for block in range(n_blocks):
            d, h = sums[c, block, 0] * unit[c, 0], sums[c, block, 1] * unit[c, 1]
            positive = sums[c, block, n_terms] * unit[c, 0]
            length = sums[c, block, n_terms + 1] * unit[c, n_terms]
            for side in range(2):
                square = 0.0
                for t in range(2, n_terms):
                    b = total[t] - before[t] if side else before[t]
                    square += b * b
                norm = math.sqrt(square)
                g, at, inside = before[0], before[1], before[1]
                low, high = d - positive, positive
                if side:
                    g, at = total[0] - g, total[1] - at
                    low, high, inside = -high, -low, at - h
                # See `_bound_inside`; the boundary below the block is among what it bounds.
                gain = max(abs(g + low), abs(g + high)) + error_g
                rest = ridge + max(inside - error_h, 0.0) - (norm + length + errors) ** 2
                rest = max(rest, floor)
                upper[side, block] += gain * gain / rest if rest > 0.0 else np.inf
                whole, most = ridge + at + error_h, max(norm - errors, 0.0)
                if whole - 2 * error_h - (norm + errors) ** 2 > 2 * in_span * whole:
                    gain = max(abs(g) - error_g, 0.0)
                    lower[side, block] += gain * gain / (whole - most * most)
            for t in range(n_terms):
                before[t] += sums[c, block, t] * unit[c, t]
    best, known = 0.0, 0.0
    for side in range(2):
        if above if side else below:
            for block in range(n_blocks):
                best = max(best, upper[side, block])
                if block and between[block]:
                    known = max(known, lower[side, block])
    return best * (1.0 + 1e-9), known * (1.0 - 1e-9)
