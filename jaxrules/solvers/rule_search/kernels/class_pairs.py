"""The values of all pairs of propositions for several classes, by compiled histograms.

NumPy would pass over every pair of cells once per term and class; here one class after another
stays in the cache. A proposition is another one plus a few cells (`Chain`), so its sums take only
additions, and no small sum is spoilt by a difference of large ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from jaxrules.tools.compiling import FROM_KERNELS, from_python

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Cells = NDArray[np.uint8]
_OPTIONS: Any = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
_compiled: Any = from_python(**_OPTIONS)
_part: Any = numba.njit(**_OPTIONS, **FROM_KERNELS)


class Chain(NamedTuple):
    """The propositions of a partition by ascending number of cells, each built from an earlier one.

    Attributes:
        order: their positions in the partition.
        parent: the position, in this order, of one whose cells are a subset of its cells; -1 for
            none.
        ends: where the additional cells of each proposition start and end in `further`,
            (propositions + 1,).
        further: the additional cells.
    """

    order: Indices
    parent: Indices
    ends: Indices
    further: Indices

    @classmethod
    def of(cls, members: Floats) -> Chain:
        """Of a partition's 0/1 matrix, (cells, propositions)."""
        sizes = members.sum(axis=0)
        order = np.argsort(sizes, kind="stable")
        members, sizes = members[:, order], sizes[order]
        # Cells of i are cells of j if and only if both share as many cells as i has. Above the
        # diagonal, i comes earlier; the last such i is the largest, to which the fewest cells must
        # be added.
        inside = np.triu(members.T @ members == sizes[:, None], 1)
        parent = np.where(inside.any(axis=0), len(order) - 1 - inside[::-1].argmax(axis=0), -1)
        further = members > np.where(parent >= 0, members[:, parent], 0.0)
        ends = np.concatenate([[0], np.cumsum(further.sum(axis=0))])
        return cls(order, parent, ends.astype(np.intp), np.nonzero(further.T)[1])


@_part
def _sum_up(sums: Floats, of_cells: Floats, at: int, chain: Chain) -> None:
    """The sums of one proposition, (propositions, ...), from those of its parent and its cells."""
    parent = chain.parent[at]
    if parent >= 0:
        for t in range(sums.shape[1]):
            sums[at, t] = sums[parent, t]
    else:
        for t in range(sums.shape[1]):
            sums[at, t] = 0.0
    for place in range(chain.ends[at], chain.ends[at + 1]):
        cell = chain.further[place]
        for t in range(sums.shape[1]):
            sums[at, t] += of_cells[cell, t]


@_compiled
def add_rows(terms: Floats, first: Cells, second: Cells, joint: Floats) -> None:
    """Add the terms of rows to the histogram of the pairs of cells.

    Args:
        terms: (rows, terms).
        first, second: the cells of these rows in both partitions.
        joint: (cells of the first, cells of the second x terms), changed in place.
    """
    n_terms = terms.shape[1]
    for i in range(len(terms)):
        a, at = first[i], second[i] * n_terms
        for t in range(n_terms):
            joint[a, at + t] += terms[i, t]


@_compiled
def add_values(
    joint: Floats,
    n_terms: int,
    ridge: float,
    in_span: float,
    first: Chain,
    second: Chain,
    values: Floats,
) -> None:
    """Add G^2 / (ridge + H - |B|^2) of one class for every pair of propositions.

    Args:
        joint: the sums of g, h and the corrective terms over the rows of every pair of cells, as
            `add_rows` leaves them.
        ridge: positive.
        in_span: values are 0 where the denominator is at most this share of ridge + H.
        first, second: the propositions of both partitions.
        values: (propositions of the first, of the second), changed in place.
    """
    left = np.empty((len(first.order), joint.shape[1]))
    sums = np.empty((len(second.order), n_terms))
    # First the cells of one partition are summed up for p, then the remaining cells, of the other,
    # for every q.
    for p in range(len(first.order)):
        _sum_up(left, joint, p, first)
        of_cells = left[p].reshape(joint.shape[1] // n_terms, n_terms)
        for q in range(len(second.order)):
            _sum_up(sums, of_cells, q, second)
            whole = ridge + sums[q, 1]
            # The same guard as in `CorrectiveDecrease.value`.
            rest = whole
            for t in range(2, n_terms):
                rest -= sums[q, t] * sums[q, t]
            if rest > in_span * whole:
                values[first.order[p], second.order[q]] += sums[q, 0] ** 2 / rest
