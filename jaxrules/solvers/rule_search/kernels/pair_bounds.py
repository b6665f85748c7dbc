"""Upper bounds on the values of all pairs of propositions of two partitions, by compiled
histograms.

Most pairs of partitions hold nothing better than the best pair so far, and to know that takes less
than their values:

- A proposition and its complement need one set of sums. With the sums over both sets P and Q, over
  P, over Q and over all rows, those over P & Q, P - Q, Q - P and the rows of neither are
  differences. These lose digits, so every bound allows for all rounding (`allowance`).
- The sums are those of 16-bit integers, `quantised`: half of the time, as a row of the data and its
  sums are a quarter and half as large. A term is then wrong by at most half a unit, and every
  bound allows for as many half units as rows. A few terms far larger than the others would make
  the unit too large: then they stay float64.
- The loops run over neighbouring numbers, so that the compiler uses vector registers; so does
  `vectors` for the terms of a row of the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np

from jaxrules.solvers.rule_search.kernels.class_pairs import Cells, Chain, Floats, Indices
from jaxrules.solvers.rule_search.kernels.vectors import LANES, add_by_pair
from jaxrules.tools.compiling import FROM_KERNELS, from_python
from jaxrules.tools.sorting import different_columns

_OPTIONS: Any = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
_compiled: Any = from_python(**_OPTIONS)
_part: Any = numba.njit(**_OPTIONS, **FROM_KERNELS)
_IN_CACHE = 262_144
"""How many bytes of terms are read at a time."""
_NO_OVERFLOW = 65_536
"""So many 16-bit numbers have a 32-bit sum."""
_LARGEST_SHARE = 64
"""Terms are quantised if the largest is at most so many times their mean size."""
_PAIRS_AT_ONCE = 8
"""The pairs of partitions that share one pass over more rows than fit the cache."""
_SETS = 32
"""The sets of cells whose values are computed together."""
_ROUNDING = float(np.finfo(np.float64).eps)


class Halves(NamedTuple):
    """The propositions of several partitions, up to complements, as sets of cells; the last set of
    each partition has all cells.

    Attributes:
        first: the first set of each partition; then the number of all sets, (partitions + 1,).
        parent: as in `Chain`, the place of a subset within its partition, -1 for none, (sets,).
        start, end: where the further cells of each set are in `further`, (sets,).
        further: those cells.
        cells: the number of cells, (partitions,).
    """

    first: Indices
    parent: Indices
    start: Indices
    end: Indices
    further: Indices
    cells: Indices

    @classmethod
    def of(cls, chains: Sequence[Chain], cells: Sequence[int]) -> Halves:
        """Of partitions with these `halves_of` and numbers of cells."""
        first = np.cumsum([0, *(len(chain.parent) for chain in chains)])
        before = np.cumsum([0, *(len(chain.further) for chain in chains)])[:-1].tolist()
        bounds = [chain.ends + at for chain, at in zip(chains, before, strict=True)]
        return cls(
            first.astype(np.intp), np.concatenate([chain.parent for chain in chains]),
            np.concatenate([ends[:-1] for ends in bounds]),
            np.concatenate([ends[1:] for ends in bounds]),
            np.concatenate([chain.further for chain in chains]),
            np.array(cells, np.intp),
        )  # fmt: skip


def halves_of(members: Floats) -> Chain:
    """The sets of a partition's 0/1 matrix (cells, propositions), each once, complements as one;
    and last, all cells.
    """
    # Of a set and its complement, the one without the last cell: thresholds are then prefixes,
    # each of which adds a few cells to a shorter one.
    sets = np.where(members[-1] > 0, 1.0 - members, members)
    return Chain.of(np.append(different_columns(sets), np.ones((len(members), 1)), axis=1))


class Units(NamedTuple):
    """The terms of the rows, as numbers times a unit.

    Attributes:
        terms: int16 with a 1 for every row behind the terms, or float64, padded, (classes, rows,
            width).
        unit: of every term and of that 1, (classes, terms), 1 for float64.
        error: by how much g, h and the length of b of a row may be wrong, (classes, 3).
        none: an empty array of the type of their sums.
    """

    terms: Any
    unit: Floats
    error: Floats
    none: Any


def quantised(terms: Floats, sizes: Floats, as_they_are: Floats) -> Units:
    """The terms as 16-bit integers, unless a few are far larger than the others.

    Args:
        terms: (classes, terms, rows).
        sizes: the sums of their absolute values, (classes, terms).
        as_they_are: padded float64.
    """
    n_classes, n_terms, n_rows = terms.shape
    largest = np.maximum(terms.max(axis=2), -terms.min(axis=2))
    if (largest[:, :2] * n_rows > _LARGEST_SHARE * sizes[:, :2]).any():
        nothing = np.zeros((n_classes, 3))
        return Units(as_they_are, np.ones((n_classes, n_terms)), nothing, np.zeros(0))
    unit = np.where(largest > 0, largest, 1.0) / np.iinfo(np.int16).max
    half = unit * (0.5 + 1e-9)  # and what rounding adds to a half
    error = np.stack([half[:, 0], half[:, 1], np.sqrt((half[:, 2:] ** 2).sum(axis=1))], axis=1)
    wide = np.zeros((n_classes, n_rows, max(8, -(-(n_terms + 1) // LANES) * LANES)), np.int16)
    _quantise(terms, unit, wide)
    return Units(
        wide, np.append(unit, np.ones((n_classes, 1)), axis=1), error, np.zeros(0, np.int32)
    )


@_compiled
def _quantise(terms: Floats, unit: Floats, wide: Any) -> None:
    n_classes, n_terms, n_rows = terms.shape
    for c in range(n_classes):
        for i in range(n_rows):
            for t in range(n_terms):
                wide[c, i, t] = np.int16(np.rint(terms[c, t, i] / unit[c, t]))
            wide[c, i, n_terms] = 1


def allowance(sizes: Floats, n_rows: int) -> Floats:
    """How far rounding may move a sum of g, and a denominator ridge + H - |B|^2, (classes, 2).

    Args:
        sizes: the sums of the absolute values of the terms, (classes, terms).
    """
    # A sum of n numbers is off by at most n eps times the sum of their sizes A, in any order; four
    # such sums make a difference, and the values that these bounds are compared with are rounded,
    # too: hence 8. |B_t|^2 is then off by at most 2 |B_t| n eps A_t, with |B_t| <= A_t.
    size = 8 * _ROUNDING * (n_rows + 1024)
    return size * np.stack([sizes[:, 0], sizes[:, 1] + 3 * (sizes[:, 2:] ** 2).sum(axis=1)], axis=1)


@_part
def _sum_up(of_cells: Floats, k: int, halves: Halves) -> Floats:
    """The sums over every set of partition k, (sets, numbers), from those over its cells."""
    first, n_sets = halves.first[k], halves.first[k + 1] - halves.first[k]
    sums, nothing = np.empty((n_sets, of_cells.shape[1])), np.zeros(of_cells.shape[1])
    for p in range(n_sets):
        parent, start, end = (
            halves.parent[first + p],
            halves.start[first + p],
            halves.end[first + p],
        )
        before, into = sums[parent] if parent >= 0 else nothing, sums[p]
        if start == end:
            for j in range(len(into)):
                into[j] = before[j]
        for at in range(start, end):
            more = of_cells[halves.further[at]]
            for j in range(len(into)):
                into[j] = before[j] + more[j]
            before = into
    return sums


@_part
def _sums_of_sets(
    joint: Floats, width: int, unit: Floats, a: int, b: int, halves: Halves
) -> Floats:
    """The sums of one class over p & q for every set p of a and q of b, (sets of b, terms x (sets
    of a)).

    Args:
        joint: of `add_by_pair`.
        unit: of the terms of this class.
    """
    n_terms, ka, kb = len(unit), halves.cells[a], halves.cells[b]
    # First the cells of a are summed up, for every p: (p, cell, term). Then those of b: (q, term,
    # p). So the inner loops of both run over neighbouring numbers.
    left = _sum_up(joint[: ka * kb * width].reshape(ka, kb * width), a, halves)
    n_sets = len(left)
    by_cell = np.empty((kb, n_terms * n_sets))
    for j in range(kb):
        for t in range(n_terms):
            column, into, scale = left[:, j * width + t], by_cell[j], unit[t]
            for p in range(n_sets):
                into[np.uintp(t * n_sets + p)] = column[p] * scale
    return _sum_up(by_cell, b, halves)


@_part
def _add_values(
    both: Floats, n_terms: int, n_sums: int, ridge: float, in_span: float, slack: Floats,
    error: Floats, values: Floats,
) -> None:  # fmt: skip
    """Add the bounds of one class: for every set p of a and q of b, of p & q, p - q, q - p and
    neither.

    Args:
        both: of `_sums_of_sets`.
        n_terms: without the number of rows.
        n_sums: with it, if it is there.
        slack, error: of `allowance` and `Units`, for this class, (2,) and (3,).
        values: (sets of b, 4, sets of a), changed in place.
    """
    mb, ma = len(both) - 1, both.shape[1] // n_sums - 1  # without those of all rows
    # n rows move B by at most n e: (|B| + n e)^2 <= (1 + r) |B|^2 + (1 + 1 / r) (n e)^2 for any r.
    # The two sides are about equal for r = n e / |B|, here of all rows.
    share, whole_square, every = 0.0, 0.0, both[mb]
    if n_sums > n_terms:
        for t in range(2, n_terms):
            whole_square += every[t * (ma + 1) + ma] ** 2
        moved = every[n_terms * (ma + 1) + ma] * error[2]
        share = min(max(moved / math.sqrt(max(whole_square, 1e-300)), 1e-6), 1.0)
    more, moves = 1.0 + share, (1.0 + 1.0 / share) * error[2] ** 2 if share > 0.0 else 0.0
    # The compiler uses vector registers where it sees that no number of a loop depends on another:
    # hence numbers instead of entries, a constant distance between the four sides, and indices
    # without a sign, which do not wrap around.
    of_gain, of_whole, gain_slack, rest_slack = error[0], error[1], slack[0], slack[1]
    # Of `_SETS` sets p and of p & q, p - q, q - p and neither: G, H, |B|^2, the number of rows.
    gains, wholes, counts = np.empty(4 * _SETS), np.empty(4 * _SETS), np.zeros(4 * _SETS)
    squares = np.empty(4 * _SETS)
    for q in range(mb):
        of_both = both[q]
        for start in range(0, ma, _SETS):
            n_sets = min(_SETS, ma - start)
            squares[:] = 0.0
            for t in range(n_sums):
                last = t * (ma + 1) + ma
                first, of_q = np.uintp(last - ma + start), of_both[last]
                outside = every[last] - of_q
                if t < 2 or t >= n_terms:
                    sums = gains if t == 0 else wholes if t == 1 else counts
                    for p in range(n_sets):
                        x, of_p = of_both[first + np.uintp(p)], every[first + np.uintp(p)]
                        sums[p] = x
                        sums[_SETS + p] = of_p - x
                        sums[2 * _SETS + p] = of_q - x
                        sums[3 * _SETS + p] = outside - of_p + x
                else:
                    for p in range(n_sets):
                        x, of_p = of_both[first + np.uintp(p)], every[first + np.uintp(p)]
                        squares[p] += x**2
                        squares[_SETS + p] += (of_p - x) ** 2
                        squares[2 * _SETS + p] += (of_q - x) ** 2
                        squares[3 * _SETS + p] += (outside - of_p + x) ** 2
            for side in range(4):
                bounds, at = values[q, side], side * _SETS
                for p in range(n_sets):
                    n = counts[at + p]
                    gain = abs(gains[at + p]) + n * of_gain + gain_slack
                    whole = ridge + wholes[at + p] + n * of_whole
                    rest = whole - 2.0 * n * of_whole - rest_slack
                    rest -= more * squares[at + p] + moves * n * n
                    # Where rounding decides whether a rule is in the span, nothing is known.
                    bound = gain * gain / rest if rest > 2.0 * in_span * whole else np.inf
                    bounds[np.uintp(start + p)] += bound


@_part
def _greatest(values: Floats, n: int) -> float:
    """The greatest of the first n values; numba compiles a loop sooner than `max`."""
    greatest = np.full(8, -np.inf)  # none of these eight waits for another
    for start in range(0, n - 7, 8):
        for k in range(8):
            greatest[k] = max(greatest[k], values[np.uintp(start + k)])
    for i in range(n // 8 * 8, n):
        greatest[0] = max(greatest[0], values[i])
    for k in range(8):
        greatest[0] = max(greatest[0], greatest[k])
    return float(greatest[0])


@_compiled
def bound_of_pair(
    joint: Floats, n_terms: int, a: int, b: int, halves: Halves, ridge: float, in_span: float,
    slack: Floats,
) -> float:  # fmt: skip
    """As `bounds_of_pairs`, of one pair and class, from the sums over the pairs of cells, (cells of
    a x cells of b x terms,).
    """
    both = _sums_of_sets(joint, n_terms, np.ones(n_terms), a, b, halves)
    values = np.zeros((len(both) - 1, 4, both.shape[1] // n_terms - 1))
    _add_values(both, n_terms, n_terms, ridge, in_span, slack, np.zeros(3), values)
    return _greatest(values.reshape(values.size), values.size)


@_compiled
def bounds_of_pairs(
    units: Units, n_terms: int, cells: Cells, pairs: Indices, halves: Halves, ridge: float,
    in_span: float, slack: Floats,
) -> Floats:  # fmt: skip
    """An upper bound on the greatest value of every pair of partitions, (pairs,).

    Args:
        units: of `quantised`.
        n_terms: without the number of rows and the padding.
        cells: the cell of every row in every partition, (partitions, rows).
        pairs: (pairs, 2).
        ridge: positive.
        in_span: as for `class_pairs.add_values`.
        slack: of `allowance`, (classes, 2).
    """
    found = np.empty(len(pairs))
    terms, n_sums = units.terms, units.unit.shape[1]
    n_classes, n_rows, width = terms.shape
    flat = terms.reshape(n_classes, n_rows * width)
    block = max(1, _IN_CACHE // (width * terms.itemsize))
    # With all rows in the cache, one pair after another, whose histogram then stays there.
    together = 1 if n_rows <= block else _PAIRS_AT_ONCE
    sets = np.empty(len(halves.cells), np.intp)  # without that of all cells
    for k in range(len(sets)):
        sets[k] = halves.first[k + 1] - halves.first[k] - 1
    size, most = 0, 0
    for k in range(len(pairs)):
        a, b = pairs[k]
        size = max(size, halves.cells[a] * halves.cells[b] * width)
        most = max(most, 4 * sets[a] * sets[b])
    joint, values = np.empty((together, size)), np.empty((together, most))
    held = np.empty((together, size), units.none.dtype)
    for start in range(0, len(pairs), together):
        some = min(together, len(pairs) - start)
        values[:some] = 0.0
        for c in range(n_classes):
            for begin in range(0, n_rows, _NO_OVERFLOW):
                held[:some] = 0
                end = min(begin + _NO_OVERFLOW, n_rows)
                for row in range(begin, end, block):
                    stop = min(row + block, end)
                    for k in range(some):
                        a, b = pairs[start + k]
                        add_by_pair(
                            flat[c, row * width : stop * width], width, cells[a, row:stop],
                            cells[b, row:stop], halves.cells[b], held[k],
                        )  # fmt: skip
                for k in range(some):
                    of_pair, more = joint[k], held[k]
                    for j in range(size):
                        of_pair[j] = more[j] if begin == 0 else of_pair[j] + more[j]
            for k in range(some):
                a, b = pairs[start + k]
                both = _sums_of_sets(joint[k], width, units.unit[c], a, b, halves)
                of_pair = values[k, : 4 * sets[a] * sets[b]].reshape(sets[b], 4, sets[a])
                _add_values(
                    both, n_terms, n_sums, ridge, in_span, slack[c], units.error[c], of_pair
                )
        for k in range(some):
            a, b = pairs[start + k]
            n = 4 * sets[a] * sets[b]
            found[start + k] = _greatest(values[k], n)
    return found
