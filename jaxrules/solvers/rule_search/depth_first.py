"""The exact search: a compiled depth-first branch and bound with a certificate.

It uses the mandatory-rows bound (docs/mandatory-rows-bound.md). `best_first.search_published` is
the original algorithm of "Better Short than Greedy".

    space = SearchSpace.of(masks)
    found = search_depth_first(space, SecondOrder(g, h, ridge=1.0))
    found.propositions, found.objective, found.bound
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.beam import run_beams
from jaxrules.solvers.rule_search.objectives import Objective
from jaxrules.solvers.rule_search.shortest import conclude, worth_of
from jaxrules.solvers.rule_search.space import TIE, Found, SearchSpace, never
from jaxrules.tools.fits import Status

if TYPE_CHECKING:
    from jaxrules.solvers.rule_search.kernels.state import Search, Stack

THREADS_FROM = 200_000_000  # row-proposition visits by one thread before a second one joins
FIRST_SLICE = 250_000  # visits in about the time of a beam search
SLICE = 500_000  # visits between two checks of the clock: one or two milliseconds
BEAMS = {0: 2, 10_000_000: 10}
"""Beam searches that improve the incumbent of a long search: visits after which, and width."""
_NO_LIMIT = 2**62
Entries = TypeVar("Entries", bound=np.generic)


def search_depth_first(
    space: SearchSpace,
    objective: Objective,
    *,
    max_length: int | None = None,
    approximation: float = 1.0,
    max_evaluations: int | None = None,
    stopped: Callable[[], bool] = never,
    threads: int = 2,
) -> Found:
    """A best conjunction, with a certificate; the empty conjunction is a candidate.

    Args:
        space: the propositions.
        objective: an objective with compiled code, see `objectives`.
        max_length: of the conjunction, in propositions; None for no limit.
        approximation: alpha in (0, 1]; the objective is at least alpha times the optimum.
        max_evaluations: stop after about this many evaluations; a search with a limit uses one
            thread, so that its result is reproducible.
        stopped: asked every few milliseconds; True ends the search with the best rule so far.
        threads: 2 lets a second thread join a long search; the rule found is the same.
    """
    search = _DepthFirst(space, objective, max_length, approximation)
    if max_evaluations is None:
        return search.run(_NO_LIMIT, stopped, threads)
    return search.run(max_evaluations, stopped, threads=1)


class _DepthFirst:
    """One exact search: the problem, the rules found, and the workers that explore the root's
    children.
    """

    def __init__(
        self, space: SearchSpace, objective: Objective, max_length: int | None, approximation: float
    ) -> None:
        from jaxrules.solvers.rule_search.kernels.depth_first import advance

        self.space, self.objective = space, objective
        self.terms, self.longest = objective.one_row(space), space.longest(max_length)
        self.problem = objective.problem(space, self.terms, self.longest, approximation)
        self.advance = advance[type(self.problem)]
        self.evaluations = 0
        self.candidates: list[tuple[float, tuple[int, ...]]] = [
            (objective.worth_of_nothing(self.terms), ())
        ]

    def worth(self, propositions: tuple[int, ...]) -> float:
        """The worth of a conjunction, summed in the order of the merged rows."""
        return worth_of(self.space, self.objective, self.terms, propositions)

    def run(self, max_evaluations: int, stopped: Callable[[], bool], threads: int) -> Found:
        """Search until proved, stopped or out of evaluations."""
        workers = [_Worker.at_root(self)]
        pool = None
        status = None
        beams = list(BEAMS.items())
        # Easy problems are proved in the first slice and never need a beam.
        while status is None and self.longest and not workers[0].advance(0, max_evaluations):
            if beams and workers[0].visits > beams[0][0] and not stopped():
                self._take_beam(workers[0], beams.pop(0)[1], stopped)
            if workers[0].evaluations >= max_evaluations:
                status = Status.MAX_ITERATIONS
                if beams and not stopped():
                    self._take_beam(workers[0], beams[-1][1], stopped)
            elif stopped():
                status = Status.TIME_LIMIT
            elif threads > 1 and workers[0].visits > THREADS_FROM:
                # Found before all that the two threads will find: first in visit order, it wins
                # ties.
                self.candidates.append(workers[0].best)
                workers.append(workers[0].fork())
                pool = _Pair(workers)
                status = pool.run(stopped)
                break
        bound = 0.0
        if pool is None:
            self.candidates.append(workers[0].best)
        else:
            self.candidates += pool.candidates()
        if status is not None:
            bound = max(worker.open_bound(0 if pool is None else 1) for worker in workers)
            bound = max(bound, 0.0 if pool is None else pool.untouched())
        return self._result(workers, status, bound, stopped)

    def _take_beam(self, worker: _Worker, width: int, stopped: Callable[[], bool]) -> None:
        """Improve the incumbent of a worker by a beam search."""
        beams, _ = run_beams(
            self.space, self.objective, self.terms[None], width, self.longest, stopped=stopped
        )
        self.evaluations += beams[0].evaluations
        for _, best in beams[0].ranked():
            worker.take(self.worth(best), best)

    def _result(
        self,
        workers: list[_Worker],
        status: Status | None,
        open_bound: float,
        stopped: Callable[[], bool],
    ) -> Found:
        from jaxrules.solvers.rule_search.kernels.state import COUNTS

        tie = 1.0 + TIE
        value, best = self.candidates[0]
        # In visit order: a later candidate must be better by more than a tie.
        for other_value, other in self.candidates[1:]:
            if other_value > value * tie:
                value, best = other_value, other
        dropped = max(worker.known["dropped"] for worker in workers)
        if status is None:
            status = Status.OPTIMAL if self.problem.approximation == 1.0 else Status.CONVERGED
        counts = {name: sum(int(worker.counters[name]) for worker in workers) for name in COUNTS}
        evaluations = self.evaluations + sum(worker.evaluations for worker in workers)
        found = conclude(
            self.space, self.objective, self.terms, best, status, evaluations, -math.inf,
            counts, stopped,
        )  # fmt: skip
        assert found.bound is not None
        return replace(
            found, bound=float(max(found.bound, found.objective * tie, open_bound, dropped))
        )


class _Worker:
    """One thread's part of the search: a stack of levels below the root, advanced in slices."""

    def __init__(self, task: _DepthFirst, stack: Stack, search: Search) -> None:
        self.task, self.stack, self.search = task, stack, search
        self.counters, self.known = search.counters[0], search.known[0]  # views

    @classmethod
    def at_root(cls, task: _DepthFirst) -> _Worker:
        """A worker whose only level is the root, not yet expanded."""
        from jaxrules.solvers.rule_search.kernels import state

        space, (g, h) = task.space, task.terms[:2]
        rows, propositions = space.masks.shape
        words, levels = space.activations.words.shape[1], min(propositions, 20) + 2
        order = np.argsort(-task.problem.order(g, h), kind="stable")
        share = float(task.objective.shares(task.terms, np.ones((rows, 1)))[0])
        stack = state.Stack(
            levels=np.zeros(levels, state.LEVEL),
            closure=np.full((levels, words), np.iinfo(np.uint64).max, np.uint64),
            behind=np.zeros((levels, words), np.uint64),
            available=np.zeros((levels, propositions), np.int32),
            bounds=np.zeros((levels, propositions)),
            gradient=_with_room(g.take(order)),
            curvature=_with_room(share * h.take(order)),
            bits=_with_room(space.activations.words.take(order, axis=0)),
            masks=_with_room(space.masks.take(order, axis=0).reshape(-1)),
        )
        root = stack.levels[0]
        root["size"], root["negative"], root["width"] = rows, np.sum(g >= 0), propositions
        root["base_h"], root["share"] = task.problem.ridge, share
        stack.available[0] = np.arange(propositions)
        search = state.Search(
            counters=np.zeros(1, state.COUNTERS),
            known=np.zeros(1, state.KNOWN),
            best=np.zeros(propositions + 1, np.int32),
            found=np.zeros(propositions),
            sum_g=np.zeros(propositions),
            sum_h=np.zeros(propositions),
            part_h=np.zeros(propositions),
            value=np.zeros(propositions),
            rows=np.zeros(rows + 1, np.uint64),
            columns=np.zeros(propositions + 1, np.uint64),
            row_mask=np.zeros(propositions, np.uint8),
            closure=np.zeros(words, np.uint64),
            needed=np.zeros(words, np.uint64),
            row_bits=np.zeros(words, np.uint64),
            slots=np.zeros(max(8, 1 << (2 * rows).bit_length()), np.int32),
            leaf_g=np.zeros(1 << state.LEAF_WIDTH),
            leaf_h=np.zeros(1 << state.LEAF_WIDTH),
            keys=np.zeros(rows),
            chosen=np.zeros(space.activations.bits.shape[1], np.uint64),
            term_sums=np.zeros(len(task.terms)),
            gram=np.zeros((2, len(task.terms), len(task.terms))),
        )
        worker = cls(task, stack, search)
        worker.counters["root"] = -1
        worker.take(*task.candidates[0])
        return worker

    def take(self, objective: float, propositions: tuple[int, ...]) -> None:
        """Make this conjunction the incumbent if it is better."""
        if objective > self.known["floor"] * (1.0 + TIE):
            self.known["floor"], self.known["length"] = objective, len(propositions)
            self.search.best[: len(propositions)] = propositions

    def fork(self) -> _Worker:
        """A second worker with the same expanded root and incumbent, and no work done."""
        stack = copy.deepcopy(self.stack)
        # Both share `found`, by which each hears of the other's rules (`hear_other_thread`).
        search = copy.deepcopy(self.search)._replace(found=self.search.found)
        search.counters[:] = 0
        return _Worker(self.task, stack, search)

    def advance(self, stop: int, max_evaluations: int = _NO_LIMIT, shared: bool = False) -> bool:
        """Search for one slice; True once the root's children from `stop` on are done."""
        from jaxrules.solvers.rule_search.kernels.depth_first import DONE, FULL

        visits = SLICE if self.visits else FIRST_SLICE
        while True:
            state = self.task.advance(
                self.task.problem, self.stack, self.search, stop, visits, max_evaluations, shared
            )
            if state != FULL:
                return state == DONE
            self._grow()

    def _grow(self) -> None:
        """Double the arrays that the next level may exceed."""
        level_arrays = ("levels", "closure", "behind", "available", "bounds")
        level = int(self.counters["level"])
        names = (
            level_arrays
            if level + 2 > len(self.stack.levels)
            else self.stack._fields[len(level_arrays) :]
        )
        self.stack = self.stack._replace(
            **{name: _with_room(getattr(self.stack, name)) for name in names}
        )

    def start(self, child: int) -> None:
        """Make the root's child the next one to visit."""
        self.stack.levels[0]["next"] = child + 1
        # All that are ranked lower, and the child, which `_descend` removes.
        behind = self.stack.available[0, : child + 1]
        self.stack.behind[0] = 0
        np.bitwise_or.at(
            self.stack.behind[0], behind // 64, np.uint64(1) << (behind % 64).astype(np.uint64)
        )

    @property
    def best(self) -> tuple[float, tuple[int, ...]]:
        """The objective and the propositions of the best conjunction that this worker knows."""
        return float(self.known["floor"]), tuple(self.search.best[: self.known["length"]].tolist())

    @property
    def evaluations(self) -> int:
        return int(self.counters["evaluations"])

    @property
    def visits(self) -> int:
        """Row-proposition pairs examined: the time of a search is proportional to them."""
        return int(self.counters["work"])

    def open_bound(self, top: int) -> float:
        """The largest bound on the conjunctions that this worker has left open from level `top`
        down.
        """
        levels, bounds = self.stack.levels, self.stack.bounds
        longest, largest = self.task.longest, 0.0
        for level in range(top, min(int(self.counters["level"]) + 1, longest)):
            # An expanded level leaves open its next child, which has the greatest bound of those
            # left. A level that is not yet expanded has its own bound as a child of the one above.
            if levels[level]["expanded"]:
                child, depth = levels[level]["next"] - 1, level
            elif level > 0:
                child, depth = levels[level - 1]["next"], level - 1
            else:
                return math.inf
            if child >= 0 and depth + 2 <= longest:
                bound = self.task.objective.worth(bounds[depth, child], depth + 2)
                largest = max(largest, float(bound))
        return largest


class _Pair:
    """Two workers in two threads that take the root's remaining children in turn, highest bound
    first.

    The rule found does not depend on which worker takes a child: candidates are stored by child and
    compared in the order in which one worker would have found them.
    """

    def __init__(self, workers: list[_Worker]) -> None:
        self.workers = workers
        self.next_child = int(workers[0].stack.levels[0]["next"])  # under way in the first worker
        self.lock = threading.Lock()
        self.halt = threading.Event()
        self.by_child: dict[int, tuple[float, tuple[int, ...]]] = {}

    def run(self, stopped: Callable[[], bool]) -> Status | None:
        """Work until all children are done (None), or the search is stopped."""
        status = None
        with ThreadPoolExecutor(2) as pool:
            jobs = [
                pool.submit(self._work, worker, worker is self.workers[0])
                for worker in self.workers
            ]
            try:
                while status is None and wait(jobs, timeout=0.01).not_done:
                    if stopped():
                        status = Status.TIME_LIMIT
            finally:  # also when `stopped` raises
                self.halt.set()
        for job in jobs:
            job.result()
        return status

    def _work(self, worker: _Worker, under_way: bool) -> None:
        while not self.halt.is_set():
            if under_way:
                child, under_way = self.next_child, False
            else:
                with self.lock:
                    self.next_child -= 1
                    child = self.next_child
                if child < 0:
                    return
                worker.start(child)
            # A slice enters the child before it can pause, so that the levels below the root, which
            # `open_bound(1)` reads, cover what is left of it.
            while not worker.advance(child, shared=True):
                if self.halt.is_set():
                    break
            self._keep(worker, child)

    def _keep(self, worker: _Worker, child: int) -> None:
        found = worker.search.found
        value = found[child] if child < len(found) else 0.0  # none was under way
        if value > 0.0:
            self.by_child[child] = (value, worker.best[1])

    def candidates(self) -> list[tuple[float, tuple[int, ...]]]:
        """The best conjunctions by child of the root, in visit order."""
        return [self.by_child[child] for child in sorted(self.by_child, reverse=True)]

    def untouched(self) -> float:
        """The largest bound of the children that no worker has started."""
        if self.next_child <= 0:
            return 0.0
        worker = self.workers[0]
        return float(worker.task.objective.worth(worker.stack.bounds[0, self.next_child - 1], 2))


def _with_room(array: NDArray[Entries]) -> NDArray[Entries]:
    """The array followed by as many empty rows again."""
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
