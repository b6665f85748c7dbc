"""Which pairs of partitions are worth examining, where there are too many to examine all.

The best single propositions tell which partitions matter by themselves, but not which matter only
together, as in y = (a > 0) != (b > 0). For two centred propositions u and v, the sum of g u v over
the rows measures that: it vanishes if g is a sum of functions of single independent columns. All
pairs of a few propositions per partition are one matrix product, far cheaper than histograms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.rule_search.objectives import Floats
from jaxrules.solvers.rule_search.space import Partition
from jaxrules.tools.sorting import different_columns

_SHARES = 0.25, 0.5, 0.75
"""A partition of many propositions is represented by those nearest to these shares of the rows."""
_FEW = 8
"""A partition of so few different ones, by all."""
_MANY = 700
"""With more partitions, by the one nearest to half of the rows alone."""
_MOST_ROWS, _FEWEST_ROWS = 5000, 500
"""How many rows are read."""
_MOST_PRODUCTS = 10**10
"""Rows times pairs of propositions; with so many partitions that this leaves fewer than the fewest
rows, nothing is measured.
"""
_AT_ONCE = 100
"""The partitions of a product, between two looks at the clock."""
_TINY = float(np.finfo(np.float32).tiny)


@one_blas_thread()
def strongest_interactions(
    partitions: Sequence[Partition], g: Floats, h: Floats, most: int, stopped: Callable[[], bool]
) -> list[tuple[int, int]]:
    """The places of so many pairs of partitions, the strongest interaction first; none if there are
    too many partitions, or if the search was stopped.

    Args:
        g, h: slopes and curvatures of one or several classes, (classes, merged rows).
    """
    d, n_rows, total = len(partitions), g.shape[1], h.sum(axis=0)
    sets = [_representatives(part, total, d > _MANY) for part in partitions]
    first = np.cumsum([0, *(one.shape[1] for one in sets)])
    room = _MOST_PRODUCTS // (len(g) * int(first[-1]) ** 2)
    if room < min(n_rows, _FEWEST_ROWS):
        return []
    some = slice(None, None, -(-n_rows // min(room, _MOST_ROWS)))
    g, h = g[:, some], h[:, some]
    # Without an interaction, the square of a sum of g u v is about the sum of h.
    g = (g / np.sqrt(np.maximum(h.sum(axis=1, keepdims=True), _TINY))).astype(np.float32)
    each = [
        _centred(one, part.cell[some], total[some])
        for one, part in zip(sets, partitions, strict=True)
    ]
    columns = np.concatenate(each, axis=1)
    strength = np.empty((d, d), np.float32)
    for start in range(0, d, _AT_ONCE):
        if stopped():
            return []
        of_block = first[start : start + _AT_ONCE + 1]
        block = columns[:, of_block[0] : of_block[-1]]
        squares = sum(((block * one[:, None]).T @ columns) ** 2 for one in g)
        by_column = np.maximum.reduceat(squares, of_block[:-1] - of_block[0], axis=0)
        strength[start : start + _AT_ONCE] = np.maximum.reduceat(by_column, first[:-1], axis=1)
    strength[np.tri(d, dtype=bool)] = -1.0  # each pair once, and no partition with itself
    weak, k = -strength.ravel(), min(most, math.comb(d, 2))
    places = np.sort(np.argpartition(weak, k)[:k])
    return [divmod(at, d) for at in places[np.argsort(weak[places], kind="stable")].tolist()]


def _representatives(part: Partition, weights: Floats, one: bool) -> Floats:
    """Some of its propositions as sets of cells, or one, (cells, sets)."""
    # Of a proposition and its complement, the one without the last cell.
    sets = np.where(part.members[-1] > 0, 1.0 - part.members, part.members)
    if not one and sets.shape[1] <= 4 * _FEW:
        different = different_columns(sets)
        if different.shape[1] <= _FEW:
            return different
    share = np.bincount(part.cell, weights, len(sets)) @ sets / max(weights.sum(), _TINY)
    wanted = np.array(_SHARES[1:2] if one else _SHARES)
    return sets[:, np.abs(share - wanted[:, None]).argmin(axis=1)]


def _centred(sets: Floats, cell: NDArray[np.uint8], weights: Floats) -> NDArray[np.float32]:
    """Sets of cells with mean 0 and mean square 1, (rows, sets)."""
    share = np.bincount(cell, weights, len(sets)) @ sets / max(weights.sum(), _TINY)
    spread = np.sqrt(np.maximum(share * (1.0 - share), _TINY))
    return np.asarray(((sets - share) / spread).astype(np.float32)[cell])
