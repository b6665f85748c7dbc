"""Upper bounds on the values of all pairs of propositions of two partitions, by compiled
histograms.

Most pairs of partitions hold nothing better than the best pair so far, and to know that takes less
than their values:

- A proposition and its complement need one set of sums. With the sums over both sets P and Q, over
  P, over Q and over all rows, those over P & Q, P - Q, Q - P and the rows of neither are
  differences. These lose digits, so every bound allows for all rounding (`allowance`).
- The loops run over neighbouring numbers, so that the compiler uses vector registers; so does
  `vectors` for the terms of a row of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np

from jaxrules.solvers.rule_search.kernels.class_pairs import Cells, Chain, Floats, Indices
from jaxrules.solvers.rule_search.kernels.vectors import add_by_pair

_compiled: Any = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
)
_IN_CACHE = 32_768
"""How many terms are read at a time: 256 KiB."""
_PAIRS_AT_ONCE = 8
"""The pairs of partitions that share one pass over more rows than fit the cache."""
_ROUNDING = float(np.finfo(np.float64).eps)


class Halves(NamedTuple):
    """The propositions of several partitions, up to complements, as sets of cells.

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
    """The sets of a partition's 0/1 matrix (cells, propositions), each once, complements as one."""
    # Of a set and its complement, the one without the last cell: thresholds are then prefixes,
    # each of which adds a few cells to a shorter one.
    sets = np.where(members[-1] > 0, 1.0 - members, members)
    return Chain.of(np.unique(sets, axis=1))


def allowance(terms: Floats) -> Floats:
    """How far rounding may move a sum of g, and a denominator ridge + H - |B|^2, (classes, 2).

    Args:
        terms: (classes, terms, rows).
    """
    # A sum of n numbers is off by at most n eps times the sum of their sizes A, in any order; four
    # such sums make a difference, and the values that these bounds are compared with are rounded,
    # too: hence 8. |B_t|^2 is then off by at most 2 |B_t| n eps A_t, with |B_t| <= A_t.
    size = 8 * _ROUNDING * (terms.shape[2] + 1024)
    sums = np.abs(terms).sum(axis=2)
    return size * np.stack([sums[:, 0], sums[:, 1] + 3 * (sums[:, 2:] ** 2).sum(axis=1)], axis=1)


@_compiled
def _sums_of_sets(
    joint: Floats, width: int, n_terms: int, a: int, b: int, halves: Halves
) -> Floats:
    """The sums of one class over p & q for every set p of a and q of b; the last p and the last q
    are all rows, (sets of b + 1, terms x (sets of a + 1)).

    Args:
        joint: of `add_by_pair`.
    """
    ka, kb = halves.cells[a], halves.cells[b]
    a0, b0 = halves.first[a], halves.first[b]
    ma, mb = halves.first[a + 1] - a0, halves.first[b + 1] - b0
    # First the cells of a are summed up, for every p and, last, for all of them: (p, cell, term).
    # Then those of b: (q, term, p). So the inner loops of both run over neighbouring numbers.
    row = kb * width
    left = np.zeros((ma + 1, row))
    for i in range(ka):
        for j in range(row):
            left[ma, j] += joint[i * row + j]
    for p in range(ma):
        parent = halves.parent[a0 + p]
        if parent >= 0:
            for j in range(row):
                left[p, j] = left[parent, j]
        for at in range(halves.start[a0 + p], halves.end[a0 + p]):
            cell = halves.further[at] * row
            for j in range(row):
                left[p, j] += joint[cell + j]
    n_sums = n_terms * (ma + 1)
    by_cell = np.empty((kb, n_sums))
    for j in range(kb):
        for t in range(n_terms):
            for p in range(ma + 1):
                by_cell[j, t * (ma + 1) + p] = left[p, j * width + t]
    both = np.zeros((mb + 1, n_sums))
    for j in range(kb):
        for k in range(n_sums):
            both[mb, k] += by_cell[j, k]
    for q in range(mb):
        parent = halves.parent[b0 + q]
        if parent >= 0:
            for k in range(n_sums):
                both[q, k] = both[parent, k]
        for at in range(halves.start[b0 + q], halves.end[b0 + q]):
            cell = halves.further[at]
            for k in range(n_sums):
                both[q, k] += by_cell[cell, k]
    return both


@_compiled
def _add_values(
    both: Floats, n_terms: int, ridge: float, in_span: float, slack: Floats, values: Floats
) -> None:
    """Add the bounds of one class: for every set p of a and q of b, of p & q, p - q, q - p and
    neither.

    Args:
        both: of `_sums_of_sets`.
        slack: of `allowance`, for this class, (2,).
        values: (sets of b, 4, sets of a), changed in place.
    """
    mb, ma = len(both) - 1, both.shape[1] // n_terms - 1
    # Of every p and of p & q, p - q, q - p and neither: G, H, |B|^2.
    gains, wholes, squares = np.empty((4, ma)), np.empty((4, ma)), np.zeros((4, ma))
    for q in range(mb):
        for t in range(n_terms):
            first = t * (ma + 1)
            x, of_p = both[q, first : first + ma], both[mb, first : first + ma]
            of_q = both[q, first + ma]
            outside = both[mb, first + ma] - of_q
            if t < 2:
                sums = gains if t == 0 else wholes
                for p in range(ma):
                    sums[0, p] = x[p]
                    sums[1, p] = of_p[p] - x[p]
                    sums[2, p] = of_q - x[p]
                    sums[3, p] = outside - of_p[p] + x[p]
            else:
                if t == 2:
                    squares[:] = 0.0
                for p in range(ma):
                    squares[0, p] += x[p] ** 2
                    squares[1, p] += (of_p[p] - x[p]) ** 2
                    squares[2, p] += (of_q - x[p]) ** 2
                    squares[3, p] += (outside - of_p[p] + x[p]) ** 2
        for side in range(4):
            bounds = values[q, side]
            for p in range(ma):
                gain, whole = abs(gains[side, p]) + slack[0], ridge + wholes[side, p]
                rest = whole - squares[side, p] - slack[1]
                # Where rounding decides whether a rule is in the span, nothing is known.
                bounds[p] += gain * gain / rest if rest > 2.0 * in_span * whole else np.inf


@_compiled
def bounds_of_pairs(
    terms: Floats, n_terms: int, cells: Cells, pairs: Indices, halves: Halves, ridge: float,
    in_span: float, slack: Floats,
) -> Floats:  # fmt: skip
    """An upper bound on the greatest value of every pair of partitions, (pairs,).

    Args:
        terms: rows of `vectors.padded`, (classes, rows, width).
        n_terms: without the padding.
        cells: the cell of every row in every partition, (partitions, rows).
        pairs: (pairs, 2).
        ridge: positive.
        in_span: as for `class_pairs.add_values`.
        slack: of `allowance`, (classes, 2).
    """
    found = np.empty(len(pairs))
    n_classes, n_rows, width = terms.shape
    flat = terms.reshape(n_classes, n_rows * width)
    block = max(1, _IN_CACHE // width)
    # With all rows in the cache, one pair after another, whose histogram then stays there.
    together = 1 if n_rows <= block else _PAIRS_AT_ONCE
    size, most = 0, 0
    for k in range(len(pairs)):
        a, b = pairs[k]
        size = max(size, halves.cells[a] * halves.cells[b] * width)
        sets = halves.first[a + 1] - halves.first[a], halves.first[b + 1] - halves.first[b]
        most = max(most, 4 * sets[0] * sets[1])
    joint, values = np.empty((together, size)), np.empty((together, most))
    for start in range(0, len(pairs), together):
        some = min(together, len(pairs) - start)
        values[:some] = 0.0
        for c in range(n_classes):
            joint[:some] = 0.0
            for row in range(0, n_rows, block):
                stop = min(row + block, n_rows)
                for k in range(some):
                    a, b = pairs[start + k]
                    add_by_pair(
                        flat[c, row * width : stop * width], width, cells[a, row:stop],
                        cells[b, row:stop], halves.cells[b], joint[k],
                    )  # fmt: skip
            for k in range(some):
                a, b = pairs[start + k]
                ma = halves.first[a + 1] - halves.first[a]
                mb = halves.first[b + 1] - halves.first[b]
                both = _sums_of_sets(joint[k], width, n_terms, a, b, halves)
                of_pair = values[k, : 4 * ma * mb].reshape(mb, 4, ma)
                _add_values(both, n_terms, ridge, in_span, slack[c], of_pair)
        for k in range(some):
            a, b = pairs[start + k]
            ma = halves.first[a + 1] - halves.first[a]
            mb = halves.first[b + 1] - halves.first[b]
            found[start + k] = values[k, : 4 * ma * mb].max() if ma * mb else -np.inf
    return found
