"""The compiled part of `jaxrules.lists.regression_list`: what a beam's conditions save. Imported on
first use (numba).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from jaxrules.tools.compiling import FROM_KERNELS, from_python

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_jit: Any = from_python(error_model="numpy")
_part: Any = numba.njit(error_model="numpy", **FROM_KERNELS)

_SLACK = 1e-9
"""What rounding may change of values, whose range is 1."""


@_part
def _fitted(sums: Floats) -> tuple[float, float]:
    """The loss of rows around their best value, and the value, (bins, 2): with one bin, the squared
    loss without the sum of the squares; with more, the absolute loss of rows at the means of their
    bins.
    """
    total = 0.0
    for b in range(len(sums)):
        total += sums[b, 0]
    if total <= 0.0:
        return 0.0, 0.0
    if len(sums) == 1:
        return -sums[0, 1] * sums[0, 1] / total, sums[0, 1] / total
    below, place = 0.0, 0
    for b in range(len(sums)):
        below += sums[b, 0]
        if sums[b, 0] > 0.0:
            place = b
            if 2.0 * below >= total:
                break
    median, loss = sums[place, 1] / sums[place, 0], 0.0
    for b in range(len(sums)):
        away = sums[b, 1] - median * sums[b, 0]
        loss += away if b > place else -away
    return loss, median


@_part
def _add(into: Floats, other: Floats, sign: float) -> None:
    """Add or subtract sums, (groups, bins, 2): numba takes seconds to compile the same as an
    expression of arrays, whose shapes it compares.
    """
    for g in range(into.shape[0]):
        for b in range(into.shape[1]):
            for t in range(2):
                into[g, b, t] += sign * other[g, b, t]


@_part
def _sum_cells(
    rows: Ints, cell: NDArray[np.int32], first: int, terms: Floats, bins: Ints, group: Ints,
    sums: Floats,
) -> None:  # fmt: skip
    """The sums over all cells of a column before each cell, (cells + 1, groups, bins, 2)."""
    sums[:] = 0.0
    for r in rows:
        c, g, b = cell[r] - first + 1, group[r], bins[r]
        sums[c, g, b, 0] += terms[r, 0]
        sums[c, g, b, 1] += terms[r, 1]
    for c in range(1, len(sums)):
        _add(sums[c], sums[c - 1], 1.0)


@_part
def _keeps(side: int, value: float, bottom: float, top: float) -> bool:
    """Whether a rule may have this value before others with values from bottom to top; see
    `savings`.
    """
    return (side <= 0 or value >= top - _SLACK) and (side >= 0 or value <= bottom + _SLACK)


@_part
def _best_place(
    own: Floats, totals: Floats, before: Floats, least: float, tie: float, union: Floats,
    rest: Floats, side: int, sides: Ints, limits: Floats, reached: Floats, local: float,
) -> tuple[float, int]:  # fmt: skip
    """What a rule saves at its best position, and the position; -inf for none.

    Args:
        own, totals: the sums of the rule's rows, and of all, (groups, bins, 2).
        before: the loss of each group.
        least, tie: the least weight of a rule; what rounding may change.
        union, rest: room for sums, (bins, 2).
        side: of the rule.
        sides, limits, local: see `savings`.
        reached: the weight that reaches each position, (groups,).
    """
    union[:] = 0.0
    weight, change, best, place = 0.0, 0.0, -np.inf, 0
    bottom, top, bound = np.inf, -np.inf, len(sides) > 0
    spared = 0.0  # the weight of the rule's rows, once for every rule that they no longer read
    # A rule at position g takes its rows from group g and all later ones.
    for g in range(len(totals) - 1, -1, -1):
        taken, left = 0.0, 0.0
        for b in range(totals.shape[1]):
            taken += own[g, b, 0]
            left += totals[g, b, 0] - own[g, b, 0]
            for t in range(2):
                union[b, t] += own[g, b, t]
                rest[b, t] = totals[g, b, t] - own[g, b, t]
        if left < least:
            break
        if taken > 0.0 or bound:
            loss, value = _fitted(rest)
            change += before[g] - loss
            weight += taken
            if bound:
                if not _keeps(sides[g], value, bottom, top):
                    break
                bottom, top = min(bottom, value), max(top, value)
        if g < len(totals) - 1:
            spared += weight
        if weight >= least and weight > 0.0:
            loss, value = _fitted(union)
            worth = change - loss - local * (reached[g] - spared)
            if bound and not (
                _keeps(side, value, bottom, top)
                and min(bottom, value) >= limits[g, 0] - _SLACK
                and max(top, value) <= limits[g, 1] + _SLACK
            ):
                continue
            if worth > best + tie:
                best, place = worth, g
    return best, place


@_jit
def savings(
    rows: Ints,
    cells: NDArray[np.int32],
    firsts: Ints,
    runs: Ints,
    ends: Ints,
    columns: Ints,
    terms: Floats,
    bins: Ints,
    group: Ints,
    totals: Floats,
    least: float,
    literal_sides: Ints,
    side: int,
    sides: Ints,
    limits: Floats,
    local: float,
    saved: Floats,
    place: Ints,
    sums: Floats, own: Floats, union: Floats, rest: Floats, before: Floats, reached: Floats,
) -> None:  # fmt: skip
    """What the rule of some rows and of each literal saves, at its best position in a list.

    Args:
        rows: the rows of a condition, which every literal is added to.
        cells: of every row in each column, counted through all columns, (columns, rows).
        firsts: the first cell of each column, and the end.
        runs: the literals as runs of cells from the first to before the second, (runs, 2).
        ends: the runs of literal a are runs[ends[a] : ends[a + 1]].
        columns: of the literals, ascending, (literals,).
        terms: weight, and weight times target, of every row, (rows, 2).
        bins: the bin of the target of every row.
        group: the rule that decides every row, the default last.
        totals: the terms summed over the rows of each group and bin, (groups, bins, 2).
        least: the least weight of rows that each rule decides.
        literal_sides: 1 for a literal that a monotone column makes true as it rises in its
            direction, -1 for one that it makes false, else 0; empty without monotone columns.
        side: the same of the condition, which literals of the other side are not added to.
        sides: of every group; a rule of side 1 may not have a lower value than one behind it.
        limits: the least and the greatest value that rules from each position on may have,
            (groups, 2).
        local: the price of a rule that a row reads, times the weight of the row.
        saved: the result, (literals,); -inf where no position leaves every rule enough rows.
        place: the best position, (literals,).
        sums, own, union, rest, before, reached: room, see `rooms`.
    """
    n_groups, tie = len(totals), 0.0
    for g in range(n_groups):
        before[g], _ = _fitted(totals[g])
        tie += 1e-12 * abs(before[g])  # positions that rounding alone separates are as good
    for g in range(n_groups - 1, -1, -1):
        weight = 0.0
        for b in range(totals.shape[1]):
            weight += totals[g, b, 0]
        reached[g] = reached[g + 1] + weight
    last = -1
    for a in range(len(columns)):
        f = columns[a]
        if f != last:
            last = f
            n_cells = firsts[f + 1] - firsts[f]
            _sum_cells(rows, cells[f], firsts[f], terms, bins, group, sums[: n_cells + 1])
        own[:] = 0.0
        for k in range(ends[a], ends[a + 1]):
            _add(own, sums[runs[k, 1] - firsts[f]], 1.0)
            _add(own, sums[runs[k, 0] - firsts[f]], -1.0)
        both = side
        if len(literal_sides):
            if side * literal_sides[a] < 0:
                saved[a] = -np.inf
                continue
            both = side + literal_sides[a]
        saved[a], place[a] = _best_place(
            own, totals, before, least, tie, union, rest, both, sides, limits, reached, local
        )


def rooms(firsts: Ints, totals: Floats) -> tuple[Floats, ...]:
    """The arrays that `savings` needs for itself; numba takes a tenth of a second to compile each
    `np.zeros`.
    """
    n_groups, of_bins = len(totals), totals.shape[1:]
    sums = np.empty((int(np.diff(firsts).max()) + 1, *totals.shape))
    own, union, rest = np.empty(totals.shape), np.empty(of_bins), np.empty(of_bins)
    return sums, own, union, rest, np.empty(n_groups), np.zeros(n_groups + 1)
