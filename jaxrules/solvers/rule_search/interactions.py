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

_SHARES = 0.25, 0.5, 0.75
"""A partition is represented by the propositions nearest to these shares of the rows."""
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
    shares = _SHARES if len(partitions) <= _MANY else _SHARES[1:2]
    d, m, n_rows = len(partitions), len(shares), g.shape[1]
    room = _MOST_PRODUCTS // (len(g) * (m * d) ** 2)
    if room < min(n_rows, _FEWEST_ROWS):
        return []
    some = slice(None, None, -(-n_rows // min(room, _MOST_ROWS)))
    g, h = g[:, some], h[:, some]
    # Without an interaction, the square of a sum of g u v is about the sum of h.
    g = (g / np.sqrt(np.maximum(h.sum(axis=1, keepdims=True), _TINY))).astype(np.float32)
    each = [_centred(part, part.cell[some], h.sum(axis=0), shares) for part in partitions]
    columns = np.concatenate(each, axis=1)
    strength = np.empty((d, d), np.float32)
    for start in range(0, d, _AT_ONCE):
        if stopped():
            return []
        block = columns[:, start * m : (start + _AT_ONCE) * m]
        squares = sum(((block * one[:, None]).T @ columns) ** 2 for one in g)
        strength[start : start + _AT_ONCE] = np.reshape(squares, (-1, m, d, m)).max(axis=(1, 3))
    strength[np.tri(d, dtype=bool)] = -1.0  # each pair once, and no partition with itself
    weak, k = -strength.ravel(), min(most, math.comb(d, 2))
    places = np.sort(np.argpartition(weak, k)[:k])
    return [divmod(at, d) for at in places[np.argsort(weak[places], kind="stable")].tolist()]


def _centred(
    part: Partition, cell: NDArray[np.uint8], weights: Floats, shares: Sequence[float]
) -> NDArray[np.float32]:
    """The propositions nearest to these shares, with mean 0 and mean square 1, (rows, shares)."""
    # Of a proposition and its complement, the one without the last cell.
    sets = np.where(part.members[-1] > 0, 1.0 - part.members, part.members)
    held = np.bincount(cell, weights, len(sets)) @ sets / max(weights.sum(), _TINY)
    nearest = np.abs(held - np.array(shares)[:, None]).argmin(axis=1)
    mean = held[nearest]
    spread = np.sqrt(np.maximum(mean * (1.0 - mean), _TINY))
    return np.asarray(((sets[:, nearest] - mean) / spread).astype(np.float32)[cell])
