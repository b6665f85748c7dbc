"""Algorithm 1 of "Better Short than Greedy": best-first search over core queries, as published.

It has the interface and the objective of `rule_search.search_optimal` and is there as an oracle for tests, as
the reference for gaps (its boundary gives a best-first bound), and because the pruning counts of the
paper's Table 2 exist only in it: bounding by Thm. 3.1, core queries (3.6), and their propagation by
OPUS and by the critical index (Thm. 3.2). `search_optimal` is faster by one to three orders of magnitude.

Names follow the paper: a query q has an extent I(q); an augmentation is a triple of the proposition a, the bound b
and the critical index c = crt(q p_a), the smallest proposition that q p_a implies and q does not.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from jaxrules.results import Status
from jaxrules.solvers.rule_search.depth_first import (
    Found,
    SearchSpace,
    bit_sets,
    never,
    objective_of,
    shortest_equivalent,
)

TIE = 1e-10
# entries of the counts
IMMEDIATE_BOUND, IMMEDIATE_EQUIVALENCE, PROPAGATED_BOUND, PROPAGATED_EQUIVALENCE, SKIPPED_CHECKS = range(5)
_COUNT_NAMES = (
    "immediate_bound", "immediate_equivalence", "propagated_bound", "propagated_equivalence", "skipped_checks",
)  # fmt: skip

_INTS, _FLOATS, _WORDS = numba.int64[::1], numba.float64[::1], numba.uint64[::1]


@numba.njit(
    numba.int64(
        _FLOATS, _FLOATS, numba.uint8[:, ::1], numba.uint64[:, ::1], _INTS, _WORDS, numba.int64,
        numba.float64, numba.float64, _FLOATS, _INTS, _FLOATS, _INTS, _FLOATS, _INTS, _INTS, _INTS,
        numba.uint64[:, ::1], _INTS,
    ),
    cache=True, nogil=True, error_model="numpy",
)  # fmt: skip
def _augment(
    gradient: Any,
    curvature: Any,
    members: Any,
    bits: Any,
    extent: Any,
    closure: Any,
    tail: int,
    ridge: float,
    approximation: float,
    best: Any,
    aug: Any,
    old_bound: Any,
    crit: Any,
    bound: Any,
    kept: Any,
    offsets: Any,
    rows: Any,
    closures: Any,
    counts: Any,
) -> int:
    """Lines 8 to 14: evaluate the augmentations of one query; returns how many are kept.

    On return kept[k], bound[k] and crit[kept[k]] describe augmentation k, rows[offsets[k]:offsets[k + 1]] is its
    extent and closures[k] what it implies (core queries only). best = [objective, proposition] of the
    incumbent, the proposition -1 while no augmentation of this query is it; best[2] counts evaluations, best[3]
    is the largest bound that was pruned.
    """
    found = 0
    for position in range(len(aug)):
        a, c = aug[position], crit[position]
        if a <= tail:
            continue
        if c < tail:
            counts[PROPAGATED_EQUIVALENCE] += 1
            continue
        if approximation * old_bound[position] <= best[0] * (1.0 + TIE):
            counts[PROPAGATED_BOUND] += 1
            best[3] = max(best[3], old_bound[position])
            continue
        if closure[a >> 6] >> np.uint64(a & 63) & np.uint64(1):
            counts[IMMEDIATE_EQUIVALENCE] += 1
            continue
        start = offsets[found]
        size = 0
        g, h, highest = 0.0, ridge, 0.0
        for i in extent:
            if members[a, i]:
                rows[start + size] = i
                size += 1
                g += gradient[i]
                h += curvature[i]
                highest = max(highest, g * g / h)
        objective = g * g / h
        g, h = 0.0, ridge
        for k in range(start + size - 1, start - 1, -1):
            g += gradient[rows[k]]
            h += curvature[rows[k]]
            highest = max(highest, g * g / h)
        best[2] += 1
        if objective > best[0] * (1.0 + TIE):
            best[0], best[1] = objective, a
        if approximation * highest <= best[0] * (1.0 + TIE):
            counts[IMMEDIATE_BOUND] += 1
            best[3] = max(best[3], highest)
            continue
        offsets[found + 1] = start
        if c < a and not (closure[c >> 6] >> np.uint64(c & 63) & np.uint64(1)):
            counts[SKIPPED_CHECKS] += 1  # (3.7): certainly not a core query
        else:
            for w in range(len(closure)):
                common = ~np.uint64(0)
                for k in range(start, start + size):
                    common &= bits[rows[k], w]
                closures[found, w] = common
            c = a
            for j in range(a - 1, -1, -1):
                if (closures[found, j >> 6] & ~closure[j >> 6]) >> np.uint64(j & 63) & np.uint64(1):
                    c = j
            if c == a:
                offsets[found + 1] = start + size
        crit[position] = c
        kept[found], bound[found] = position, highest
        found += 1
    return found


@dataclass(frozen=True, slots=True)
class _Query:
    """An entry of the boundary."""

    path: tuple[int, ...]
    bound: float
    extent: np.ndarray
    closure: np.ndarray
    aug: np.ndarray
    old_bound: np.ndarray
    crit: np.ndarray

    @property
    def tail(self) -> int:
        return self.path[-1] if self.path else -1


def search_published(
    space: SearchSpace,
    gradient: np.ndarray,
    curvature: np.ndarray,
    *,
    ridge: float,
    approximation: float = 1.0,
    max_evaluations: int | None = None,
    stopped: Callable[[], bool] = never,
) -> Found:
    """A best conjunction by the paper's Algorithm 1; arguments and result as of `search_optimal`.

    Propositions are ordered by ascending support, as in the authors' code. ``counts`` has the four numbers of
    Table 2 (immediate_bound, immediate_equivalence, propagated_bound, propagated_equivalence), the
    checks skipped by (3.7), and the nodes taken from the boundary.
    """
    g, h = space.sum_rows(gradient), space.sum_rows(curvature)
    with np.errstate(divide="ignore", invalid="ignore"):
        rank = np.argsort(-np.where(g == 0.0, 0.0, g / h), kind="stable")
    order = np.argsort(space.masks.sum(axis=0), kind="stable")
    masks = space.masks[rank][:, order]
    members, bits = np.ascontiguousarray(masks.T), bit_sets(masks)
    sorted_g, sorted_h = g[rank], h[rank]
    d, words = len(space), bits.shape[1]
    best = np.array([objective_of(g, h, ridge, np.ones(len(g), bool)), -1.0, 0.0, 0.0])
    best_path: tuple[int, ...] = ()
    counts = np.zeros(len(_COUNT_NAMES), np.int64)
    every = np.arange(d)
    root = _Query(
        (), math.inf, np.arange(len(g)), np.zeros(words, np.uint64), every, np.full(d, math.inf), every.copy()
    )
    boundary = [(-math.inf, 0, root)]
    pushed = nodes = 0
    open_bound = 0.0
    status = Status.OPTIMAL if approximation == 1.0 else Status.CONVERGED
    try:
        while boundary:
            negative, _, query = heapq.heappop(boundary)
            if approximation * -negative <= best[0] * (1.0 + TIE):
                open_bound = -negative
                break  # all others are bounded by it, too
            limit = None
            if max_evaluations is not None and best[2] >= max_evaluations:
                limit = Status.MAX_ITERATIONS
            elif nodes % 16 == 0 and stopped():
                limit = Status.TIME_LIMIT
            if limit is not None:
                status, open_bound = limit, query.bound
                break
            nodes += 1
            k, m = len(query.aug), len(query.extent)
            crit, bound = query.crit.copy(), np.empty(k)
            kept, offsets, rows = np.empty(k, np.int64), np.zeros(k + 2, np.int64), np.empty(k * m + m, np.int64)
            closures = np.zeros((k, words), np.uint64)
            best[1] = -1.0
            found = _augment(
                sorted_g, sorted_h, members, bits, query.extent, query.closure, query.tail, ridge,
                approximation, best, query.aug, query.old_bound, crit, bound, kept, offsets, rows, closures, counts,
            )  # fmt: skip
            if best[1] >= 0:
                best_path = (*query.path, int(best[1]))
            alive = approximation * bound[:found] > best[0] * (1.0 + TIE)
            counts[IMMEDIATE_BOUND] += found - alive.sum()
            best[3] = max(best[3], bound[:found][~alive].max(initial=0.0))
            survivors = kept[:found][alive]
            aug, crit, bounds = query.aug[survivors], crit[survivors], bound[:found][alive]
            for position, a, b in zip(np.flatnonzero(alive), aug, bounds, strict=True):
                if offsets[position + 1] > offsets[position]:
                    pushed += 1
                    extent = rows[offsets[position] : offsets[position + 1]].copy()
                    path = (*query.path, int(a))
                    child = _Query(path, float(b), extent, closures[position].copy(), aug, bounds, crit)
                    heapq.heappush(boundary, (-float(b), pushed, child))
                else:
                    counts[IMMEDIATE_EQUIVALENCE] += 1
    except KeyboardInterrupt:
        status, open_bound = Status.INTERRUPTED, max([-entry[0] for entry in boundary], default=math.inf)
    selected = space.selected_groups([int(order[a]) for a in best_path])
    value = objective_of(g, h, ridge, selected)
    return Found(
        shortest_equivalent(space, selected), value, float(max(value * (1.0 + TIE), open_bound, best[3])), status,
        int(best[2]), {"nodes": nodes} | dict(zip(_COUNT_NAMES, counts.tolist(), strict=True)),
    )  # fmt: skip
