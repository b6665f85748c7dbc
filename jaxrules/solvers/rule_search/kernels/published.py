"""One step of Algorithm 1 of "Better Short than Greedy", for `best_first.search_published`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.kernels.problems import (
    Floats,
    Problem,
    Words,
    compiled,
    per_problem,
    value_of,
)
from jaxrules.solvers.rule_search.kernels.state import has
from jaxrules.solvers.rule_search.space import TIE

Indices = NDArray[np.int64]


class Rows(NamedTuple):
    """The rows of the published search, in the problem's order.

    Attributes:
        gradient, curvature: (rows,).
        members: 0 or 1, (propositions, rows).
        bits: (rows, words).
    """

    gradient: Floats
    curvature: Floats
    members: NDArray[np.uint8]
    bits: Words


class Query(NamedTuple):
    """A query of the published search and its augmentations.

    Attributes:
        extent: (rows of the query,).
        closure: the propositions that the query implies, (words,).
        tail: the last proposition.
        aug: (augmentations,).
        old_bound: of the augmentations, when they were the parent's, (augmentations,).
    """

    extent: Indices
    closure: Words
    tail: int
    aug: Indices
    old_bound: Floats


class Augmented(NamedTuple):
    """The results for the augmentations; those kept come first in bound, kept, closures and
    offsets.

    Attributes:
        crit: their critical indices, (augmentations,).
        bound: (augmentations,).
        kept: which ones, (augmentations,).
        offsets: of their extents, (augmentations + 2,); that of a non-core query is empty.
        rows: the extents.
        closures: what core queries imply, (augmentations, words).
    """

    crit: Indices
    bound: Floats
    kept: Indices
    offsets: Indices
    rows: Indices
    closures: Words


PUBLISHED_COUNTS = np.dtype(
    [
        ("immediate_bound", np.int64),
        ("immediate_equivalence", np.int64),
        ("propagated_bound", np.int64),
        ("propagated_equivalence", np.int64),
        ("skipped_checks", np.int64),  # by (3.7)
    ]
)
"""The columns of Table 2: pruned by a bound or an equivalence, found here (immediate) or at the
parent (propagated).
"""
INCUMBENT = np.dtype(
    [
        ("value", np.float64),
        ("proposition", np.int64),  # the augmentation that is the incumbent; -1 if none is
        ("evaluations", np.int64),
        ("dropped", np.float64),  # the greatest bound that was pruned
    ]
)


@compiled
def _gather(
    problem: Problem, data: Rows, query: Query, new: Augmented, a: int, start: int
) -> tuple[int, float, float]:
    """Write the query's rows that satisfy a to `new.rows` from start on; returns their number,
    value, and bound.

    Theorem 3.1: no subset of them is worth more than one of their prefixes or suffixes.
    """
    size = 0
    g, h, highest = 0.0, problem.ridge, 0.0
    for i in query.extent:
        if data.members[a, i]:
            new.rows[start + size] = i
            size += 1
            g += data.gradient[i]
            h += data.curvature[i]
            highest = max(highest, value_of(problem, g, h))
    value = value_of(problem, g, h)
    g, h = 0.0, problem.ridge
    for k in range(start + size - 1, start - 1, -1):
        g += data.gradient[new.rows[k]]
        h += data.curvature[new.rows[k]]
        highest = max(highest, value_of(problem, g, h))
    return size, value, highest


@compiled
def _critical_index(
    data: Rows, query: Query, new: Augmented, a: int, found: int, start: int, size: int
) -> int:
    """The least proposition that the query with a implies and the query alone does not."""
    closure = new.closures[found]
    for w in range(len(closure)):
        common = ~np.uint64(0)
        for k in range(start, start + size):
            common &= data.bits[new.rows[k], w]
        closure[w] = common
    for j in range(a):
        if has(closure, j) and not has(query.closure, j):
            return j
    return a


def _augment(
    problem: Problem,
    data: Rows,
    query: Query,
    new: Augmented,
    incumbent: NDArray[np.void],
    counters: NDArray[np.void],
) -> int:
    """Lines 8 to 14 of Algorithm 1: evaluate the augmentations of one query; returns the number
    kept.

    Args:
        problem, data, query: as of their classes.
        new: as of its class, updated.
        incumbent: INCUMBENT (1,), updated.
        counters: PUBLISHED_COUNTS (1,), updated.
    """
    best, counts = incumbent[0], counters[0]
    found = 0
    for position in range(len(query.aug)):
        a, c = query.aug[position], new.crit[position]
        # Only tail augmentations, a > tail(q): one path leads to each query.
        if a <= query.tail:
            continue
        # (3.8): the augmentation of an ancestor implies a proposition before the tail that the
        # query lacks, so this is no core query, and neither is any query below it.
        if c < query.tail:
            counts.propagated_equivalence += 1
            continue
        # The parent with a selects more rows than the query with a, so its bound holds for both.
        if problem.approximation * query.old_bound[position] <= best.value * (1.0 + TIE):
            counts.propagated_bound += 1
            best.dropped = max(best.dropped, query.old_bound[position])
            continue
        if has(query.closure, a):
            counts.immediate_equivalence += 1
            continue
        start = new.offsets[found]
        size, value, highest = _gather(problem, data, query, new, a, start)
        best.evaluations += 1
        if value > best.value * (1.0 + TIE):
            best.value, best.proposition = value, a
        if problem.approximation * highest <= best.value * (1.0 + TIE):
            counts.immediate_bound += 1
            best.dropped = max(best.dropped, highest)
            continue
        # An empty extent marks a query that is not core: it is not extended, though a may augment
        # its siblings.
        new.offsets[found + 1] = start
        if c < a and not has(query.closure, c):
            counts.skipped_checks += 1  # (3.7): certainly not a core query
        else:
            # The prefix-preservation check (3.6): core if and only if crt(q p_a) = a.
            c = _critical_index(data, query, new, a, found, start, size)
            if c == a:
                new.offsets[found + 1] = start + size
        new.crit[position] = c
        new.kept[found], new.bound[found] = position, highest
        found += 1
    return found


augment = per_problem(_augment)
