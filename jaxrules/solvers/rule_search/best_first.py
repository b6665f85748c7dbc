"""Best-first search: it always extends the conjunction with the greatest bound, so the proved gap
is as small as possible.

`search_best_first` accepts every objective with bounds, and is the exact search for those without
compiled code. `search_published` is Algorithm 1 of "Better Short than Greedy" with its core
queries: an oracle for tests, the reference for gaps, and the only search with the pruning counts of
the paper's Table 2. `search_depth_first` is faster than either by one to three orders of magnitude.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.beam import run_beams
from jaxrules.solvers.rule_search.objectives import Floats, Objective
from jaxrules.solvers.rule_search.shortest import conclude
from jaxrules.solvers.rule_search.space import TIE, Found, SearchSpace, never
from jaxrules.tools.bits import pack
from jaxrules.tools.fits import Status

BEAM_WIDTH = 4  # of the beam search that finds the first incumbent
Words = NDArray[np.uint64]
Indices = NDArray[np.int64]
DetailsT = TypeVar("DetailsT")


def search_best_first(
    space: SearchSpace,
    objective: Objective,
    *,
    max_length: int | None = None,
    approximation: float = 1.0,
    max_evaluations: int | None = None,
    stopped: Callable[[], bool] = never,
) -> Found:
    """A best conjunction, with a certificate; arguments and result as of `search_depth_first`.

    Each node evaluates all rows in NumPy, which suits small problems, or searches with a limit.
    """
    return _BestFirst(space, objective, max_length, approximation).run(max_evaluations, stopped)


def search_published(
    space: SearchSpace,
    objective: Objective,
    *,
    approximation: float = 1.0,
    max_evaluations: int | None = None,
    stopped: Callable[[], bool] = never,
    exhaust: bool = False,
) -> Found:
    """A best conjunction by the paper's Algorithm 1; arguments and result as of
    `search_depth_first`.

    With ``exhaust`` it does not end when nothing in the boundary can be better, but empties it,
    like the authors' program. That finds nothing better, but most augmentations then count as
    pruned by their propagated bound. Propositions are ordered by ascending support, as in the
    authors' code. ``counts`` has the four numbers of Table 2 (immediate_bound,
    immediate_equivalence, propagated_bound, propagated_equivalence), the checks skipped by (3.7),
    and the nodes taken from the boundary.
    """
    search = _Published(space, objective, approximation)
    search.exhaust = exhaust
    return search.run(max_evaluations, stopped)


class _Node(NamedTuple, Generic[DetailsT]):
    """A conjunction to extend: its propositions, merged rows, and what it may be extended by."""

    path: tuple[int, ...]
    rows: Indices
    available: Indices
    details: DetailsT


class _Boundary(Generic[DetailsT]):
    """The conjunctions still to be extended, the incumbent, and the bound on the pruned ones."""

    exhaust = False  # whether to continue when nothing can be better

    def __init__(self, space: SearchSpace, objective: Objective, approximation: float) -> None:
        self.space, self.objective, self.approximation = space, objective, approximation
        self.terms = objective.one_row(space)
        self.best: tuple[int, ...] = ()
        self.worth = objective.worth_of_nothing(self.terms)
        self.evaluations, self.dropped = 0, 0.0
        self.counts: dict[str, int] = {}

    def root(self) -> tuple[float, _Node[DetailsT]]:
        """The empty conjunction, with its bound."""
        raise NotImplementedError  # every search has its own

    def extend(
        self, node: _Node[DetailsT], bound: float
    ) -> Iterator[tuple[float, _Node[DetailsT]]]:
        """Evaluate the extensions of a node; yield those to be extended, with their bounds."""
        raise NotImplementedError  # every search has its own

    def hopeful(self, bounds: Floats) -> NDArray[np.bool_]:
        """Whether conjunctions with these bounds could be better than the incumbent."""
        return self.approximation * bounds > self.worth * (1.0 + TIE)

    def run(self, max_evaluations: int | None, stopped: Callable[[], bool]) -> Found:
        status = Status.OPTIMAL if self.approximation == 1.0 else Status.CONVERGED
        bound, root = self.root()
        # A heap of (-bound, number, node): numbers are distinct, so nodes, which have no order, are
        # never compared.
        boundary, order = [(-bound, 0, root)], itertools.count(1)
        while boundary and (self.exhaust or self.hopeful(np.array(-boundary[0][0]))):
            if max_evaluations is not None and self.evaluations >= max_evaluations:
                status = Status.MAX_ITERATIONS
                break
            if stopped():
                status = Status.TIME_LIMIT
                break
            negative, _, node = heapq.heappop(boundary)
            for bound, child in self.extend(node, -negative):
                heapq.heappush(boundary, (-bound, next(order), child))
        found = conclude(
            self.space, self.objective, self.terms, self.best, status, self.evaluations,
            -math.inf, stopped=stopped,
        )  # fmt: skip
        assert found.bound is not None
        # The greatest open bound is at the top of the heap; pruned ones are in `dropped`.
        ends = [-negative for negative, _, _ in boundary[:1]]
        bound = max(found.bound, self.dropped, found.objective * (1.0 + TIE), *ends)
        return replace(found, bound=bound, counts=self.counts)


class _BestFirst(_Boundary[Words]):
    """Children are ranked by bound; the one with the greatest may be extended by the fewest
    propositions (OPUS).

    The details of a node are the propositions ranked behind it. If one of them holds on all of its
    rows, that one's branch has all conjunctions of this one.
    """

    def __init__(
        self, space: SearchSpace, objective: Objective, max_length: int | None, approximation: float
    ) -> None:
        super().__init__(space, objective, approximation)
        self.longest = space.longest(max_length)
        self.any_length = objective.any_length and self.longest == len(space)
        self.bit = pack(np.eye(len(space), dtype=bool))
        self.counts = {"nodes": 0, "bound": 0, "redundant": 0, "implied": 0}

    def run(self, max_evaluations: int | None, stopped: Callable[[], bool]) -> Found:
        (beam,), _ = run_beams(
            self.space, self.objective, self.terms[None], BEAM_WIDTH, self.longest, stopped=stopped
        )
        self.evaluations = beam.evaluations
        self.worth, self.best = max(
            [(self.worth, self.best), *beam.ranked()], key=lambda entry: entry[0]
        )
        return super().run(max_evaluations, stopped)

    def root(self) -> tuple[float, _Node[Words]]:
        everything = np.ones((len(self.space.masks), 1))
        bound = self.objective.worth(self.objective.bounds(self.terms, everything), 1)
        behind = np.zeros(self.space.activations.words.shape[1], np.uint64)
        available = np.arange(len(self.space)) if self.longest else np.arange(0)
        return float(np.max(bound)), _Node((), np.arange(len(everything)), available, behind)

    def extend(self, node: _Node[Words], bound: float) -> Iterator[tuple[float, _Node[Words]]]:
        space, objective, length = self.space, self.objective, len(node.path) + 1
        self.counts["nodes"] += 1
        self.evaluations += len(node.available)
        if not len(node.available):
            return
        terms, children = self.terms, np.zeros((len(space.masks), len(node.available)))
        children[node.rows] = space.masks[np.ix_(node.rows, node.available)]
        worth = objective.worth(objective.value(terms @ children), length)
        top = int(np.argmax(worth))
        if worth[top] > self.worth * (1.0 + TIE):
            self.best, self.worth = (*node.path, int(node.available[top])), float(worth[top])
        if length == self.longest:
            return
        # Extensions of a child have length + 1 propositions or more, and are extensions of the
        # node, whose bound they share.
        bounds = np.minimum(objective.worth(objective.bounds(terms, children), length + 1), bound)
        alive = self.hopeful(bounds)
        self.counts["bound"] += int(np.sum(~alive))
        self.dropped = max(self.dropped, float(np.max(bounds[~alive], initial=0.0)))
        ranked = np.flatnonzero(alive)[np.argsort(bounds[alive], kind="stable")]
        for position, child in enumerate(ranked):
            rows = np.flatnonzero(children[:, child])
            closure = np.bitwise_and.reduce(space.activations.words[rows], axis=0)
            # The rule of "No duplicate rows" in docs/mandatory-rows-bound.md. It presupposes that a
            # longer conjunction for the same rows is allowed and worth as much.
            behind = node.details | np.bitwise_or.reduce(
                self.bit[node.available[ranked[:position]]], axis=0, initial=0
            )
            if self.any_length and np.any(closure & behind):
                self.counts["redundant"] += 1
                continue
            later = node.available[ranked[position + 1 :]]
            implied = np.any(self.bit[later] & closure, axis=1)
            self.counts["implied"] += int(np.sum(implied))
            # A child without extensions is done: its own worth was taken above.
            if not np.all(implied):
                path = (*node.path, int(node.available[child]))
                yield float(bounds[child]), _Node(path, rows, later[~implied], behind)


class _Augmentations(NamedTuple):
    """A query in Algorithm 1: its closure, and the bounds and critical indices of its
    augmentations.
    """

    closure: Words
    bounds: Floats
    crit: Indices


class _Published(_Boundary[_Augmentations]):
    """Algorithm 1. Names follow the paper: a query q has an extent I(q); an augmentation is a
    triple of the proposition a, the bound b and the critical index c = crt(q p_a), the smallest
    proposition that q p_a implies and q does not.

    Propositions of a node are in the order of their support.
    """

    def __init__(self, space: SearchSpace, objective: Objective, approximation: float) -> None:
        from jaxrules.solvers.rule_search.kernels import published

        super().__init__(space, objective, approximation)
        if objective.rule_price or not objective.any_length:
            raise ValueError(
                "the published search cannot be combined with prices or limits on length; use "
                "search_depth_first"
            )
        self.problem = objective.problem(space, self.terms, len(space), approximation)
        if self.problem.relaxed():
            raise TypeError(
                f"the published search cannot maximise {type(objective).__name__}; use "
                "search_depth_first"
            )
        self.kernels, self.augment = published, published.augment[type(self.problem)]
        # Rows in the order of Theorem 3.1, so that prefixes and suffixes are running sums.
        rank = np.argsort(-self.problem.order(*self.terms), kind="stable")
        self.order = np.argsort(space.masks.sum(axis=0), kind="stable")
        masks, (g, h) = space.activations.dense[rank][:, self.order], self.terms.take(rank, axis=1)
        self.data = published.Rows(g, h, np.ascontiguousarray(masks.T.view(np.uint8)), pack(masks))
        self.counters = np.zeros(1, published.PUBLISHED_COUNTS)
        self.nodes = 0

    def run(self, max_evaluations: int | None, stopped: Callable[[], bool]) -> Found:
        found = super().run(max_evaluations, stopped)
        counts = {
            name: int(self.counters[name][0]) for name in self.kernels.PUBLISHED_COUNTS.names or ()
        }
        return replace(found, counts={"nodes": self.nodes} | counts)

    def root(self) -> tuple[float, _Node[_Augmentations]]:
        every = np.arange(len(self.space))
        nothing = np.zeros(self.data.bits.shape[1], np.uint64)
        details = _Augmentations(nothing, np.full(len(every), math.inf), every.copy())
        return math.inf, _Node((), np.arange(len(self.space.masks)), every, details)

    def extend(
        self, node: _Node[_Augmentations], bound: float
    ) -> Iterator[tuple[float, _Node[_Augmentations]]]:
        closure, old_bounds, crit = node.details
        k, m = len(node.available), len(node.rows)
        new = self.kernels.Augmented(
            crit=crit.copy(),
            bound=np.empty(k),
            kept=np.empty(k, np.int64),
            offsets=np.zeros(k + 2, np.int64),
            rows=np.empty(k * m + m, np.int64),
            closures=np.zeros((k, len(closure)), np.uint64),
        )
        incumbent = np.array([(self.worth, -1, 0, self.dropped)], self.kernels.INCUMBENT)
        query = self.kernels.Query(
            node.rows, closure, node.path[-1] if node.path else -1, node.available, old_bounds
        )
        found = self.augment(self.problem, self.data, query, new, incumbent, self.counters)
        self.nodes += 1
        self.worth, proposition, evaluations, self.dropped = incumbent[0].item()
        self.evaluations += evaluations
        if proposition >= 0:
            self.best = tuple(int(self.order[a]) for a in (*node.path, proposition))
        alive = self.hopeful(new.bound[:found])
        self.counters["immediate_bound"] += np.sum(~alive)
        self.dropped = max(self.dropped, new.bound[:found][~alive].max(initial=0.0))
        survivors = new.kept[:found][alive]
        available = node.available[survivors]
        bounds, later_crit = new.bound[:found][alive], new.crit[survivors]
        for position, a, b in zip(
            np.flatnonzero(alive), available.tolist(), bounds.tolist(), strict=True
        ):
            # `available` and the bounds are those of all surviving siblings; the kernel skips what
            # is not behind the tail.
            extent = new.rows[new.offsets[position] : new.offsets[position + 1]]
            if len(extent):
                details = _Augmentations(new.closures[position].copy(), bounds, later_crit)
                yield b, _Node((*node.path, a), extent.copy(), available, details)
            else:  # not a core query
                self.counters["immediate_equivalence"] += 1
