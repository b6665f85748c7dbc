"""Search for the conjunction of propositions that maximises G(q)^2 / (ridge + H(q)).

G and H are sums of per-row numbers g and h over the rows that the conjunction q selects: the objective of
second-order gradient boosting, Eq. (2.3) of "Better Short than Greedy" without its constant 1 / 2n (with h = 0
and ridge = 1 its square root is the gradient sum). The exact search is a compiled depth-first branch and bound
with the mandatory-rows bound (docs/mandatory-rows-bound.md); beam and greedy search share its interface,
and `rule_search_published` is the paper's own Algorithm 1.

    space = SearchSpace.of(masks)
    found = search_optimal(space, g, h, ridge=1.0)
    found.propositions, found.objective, found.bound
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxrules.results import Status

MEMORY_LIMIT = 2**29  # bytes of the proposition matrix; a search takes about six times as much
THREADS_FROM = 200_000_000  # row-proposition visits by one thread before a second one joins
FIRST_SLICE = 250_000  # visits in about the time of a beam search
SLICE = 500_000  # visits between two looks at the clock: one or two milliseconds
_NO_LIMIT = 2**62
BEAM_WIDTH = 2  # of the beam that gives an exact search of more than one slice a good incumbent


@dataclass(frozen=True)
class SearchSpace:
    """Propositions on the rows of a table, and the rows that no proposition tells apart merged into one.

    A proposition compares the integer cell code of one code column with a cell: code >= cell (above) or
    code <= cell. Thresholds of one feature share a code column: of those on one side, the tightest implies the others.

    Attributes:
        masks: uint8 (groups, propositions): whether the proposition holds.
        column, above, cell: per proposition.
        group: int (rows,): the merged row of every row.
    """

    masks: np.ndarray
    column: np.ndarray
    above: np.ndarray
    cell: np.ndarray
    group: np.ndarray

    @classmethod
    def of_codes(cls, codes: np.ndarray, column: np.ndarray, above: np.ndarray, cell: np.ndarray) -> SearchSpace:
        """The space of the propositions (column, above, cell) on rows with these codes.

        Raises:
            ValueError: if the proposition matrix would not fit into memory.
        """
        check_memory(len(codes), len(column))
        masks = np.empty((len(codes), len(column)), bool)
        block = max(1, 2**22 // max(1, len(column)))
        for start in range(0, len(codes), block):  # not to hold all codes of all propositions at once
            values = codes[start : start + block, column]
            masks[start : start + block] = np.where(above[None, :], values >= cell[None, :], values <= cell[None, :])
        first, group = _distinct_rows(bit_sets(masks))
        return cls(
            np.ascontiguousarray(masks[first], np.uint8), np.ascontiguousarray(column, np.int32),
            np.ascontiguousarray(above, np.uint8), np.ascontiguousarray(cell, np.uint16), group,
        )  # fmt: skip

    @classmethod
    def of(cls, masks: np.ndarray) -> SearchSpace:
        """The space of arbitrary propositions given by their boolean matrix (rows, propositions)."""
        masks = np.asarray(masks, bool)
        every = np.arange(masks.shape[1])
        return cls.of_codes(masks.astype(np.uint16), every, np.ones(len(every), bool), np.ones(len(every), np.uint16))

    def __len__(self) -> int:
        return self.masks.shape[1]

    @functools.cached_property
    def bits(self) -> np.ndarray:
        """The masks as bit sets: uint64 (groups, words), proposition a is bit a % 64 of word a // 64."""
        return bit_sets(self.masks)

    def sum_rows(self, values: np.ndarray) -> np.ndarray:
        """Sums of per-row numbers over the merged rows."""
        return np.bincount(self.group, weights=values, minlength=len(self.masks))

    def selected(self, propositions: Sequence[int]) -> np.ndarray:
        """bool (rows,): the rows on which all the propositions hold."""
        return self.selected_groups(propositions)[self.group]

    def selected_groups(self, propositions: Sequence[int]) -> np.ndarray:
        """bool (groups,): the merged rows on which all the propositions hold."""
        masks, rows = self.masks.view(bool), np.ones(len(self.masks), bool)
        for a in propositions:
            rows &= masks[:, a]
        return rows


def bit_sets(masks: np.ndarray) -> np.ndarray:
    """Rows of a 0/1 matrix as bit sets: uint64 (rows, words)."""
    words = max(1, -(-masks.shape[1] // 64))
    packed = np.zeros((len(masks), 8 * words), np.uint8)
    packed[:, : -(-masks.shape[1] // 8)] = np.packbits(masks, axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64)


def _distinct_rows(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct row comes first, and the distinct row of every row."""
    key = np.zeros(len(bits), np.uint64)
    for word in bits.T:  # a hash, so that one sort of integers is enough
        key = (key ^ word) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(bits[first[group]], bits):  # two different rows of equal hash: sort the rows themselves
        _, first, group = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


def check_memory(rows: int, propositions: int) -> None:
    """Refuse a proposition matrix that memory does not allow."""
    if rows * propositions > MEMORY_LIMIT:
        raise ValueError(
            f"{propositions} propositions on {rows} rows need {rows * propositions / 2**30:.1f} GiB; "
            f"set max_cut_points (for example 20) to use fewer cut points per column"
        )


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
        propositions: a shortest conjunction that selects the best rows found.
        objective: G^2 / (ridge + H) of those rows.
        bound: proved upper bound on the objective of every conjunction, None for a heuristic search. A
            finished exact search states the relative tolerance 1e-10 within which objectives are ties.
        status: OPTIMAL, CONVERGED (a heuristic, or an approximation guarantee below 1), TIME_LIMIT,
            MAX_ITERATIONS (max_evaluations) or INTERRUPTED.
        evaluations: objective evaluations.
        counts: pruning activations by mechanism.
    """

    propositions: tuple[int, ...]
    objective: float
    bound: float | None
    status: Status
    evaluations: int
    counts: Mapping[str, int] = field(default_factory=dict)


def never() -> bool:
    """The stopping rule of a search without a time limit."""
    return False


def search_optimal(
    space: SearchSpace,
    gradient: np.ndarray,
    curvature: np.ndarray,
    *,
    ridge: float,
    max_length: int | None = None,
    approximation: float = 1.0,
    max_evaluations: int | None = None,
    stopped: Callable[[], bool] = never,
    threads: int = 2,
) -> Found:
    """A best conjunction, with a certificate; the empty conjunction is a candidate.

    Args:
        space: the propositions.
        gradient, curvature: float64 (rows,); curvature >= 0.
        ridge: positive; the paper's lambda.
        max_length: the most propositions in the conjunction, None for no limit.
        approximation: alpha in (0, 1]; the objective is at least alpha times the optimum.
        max_evaluations: stop after about this many evaluations (one thread then, to repeat exactly).
        stopped: asked every few milliseconds; True ends the search with the best rule so far.
        threads: 2 lets a second thread join a long search; the rule found is the same.
    """
    search = _DepthFirst(space, gradient, curvature, ridge, max_length, approximation)
    if max_evaluations is None:
        return search.run(_NO_LIMIT, stopped, threads)
    return search.run(max_evaluations, stopped, threads=1)


def search_beam(
    space: SearchSpace,
    gradient: np.ndarray,
    curvature: np.ndarray,
    *,
    ridge: float,
    max_length: int | None = None,
    width: int = 10,
) -> Found:
    """The best conjunction that a beam of `width` partial conjunctions reaches; no certificate."""
    g, h = space.sum_rows(gradient), space.sum_rows(curvature)
    best, evaluations = _beam(space.masks, g, h, ridge, _limit(max_length, space), width)
    return _heuristic(space, g, h, ridge, best, evaluations)


def search_greedy(
    space: SearchSpace,
    gradient: np.ndarray,
    curvature: np.ndarray,
    *,
    ridge: float,
    max_length: int | None = None,
) -> Found:
    """The paper's greedy search: the proposition that raises the objective most, until none does."""
    return search_beam(space, gradient, curvature, ridge=ridge, max_length=max_length, width=1)


def _heuristic(
    space: SearchSpace, g: np.ndarray, h: np.ndarray, ridge: float, best: tuple[int, ...], evaluations: int
) -> Found:
    rows = space.selected_groups(best)
    short = shortest_equivalent(space, rows)
    return Found(short, objective_of(g, h, ridge, rows), None, Status.CONVERGED, evaluations)


def objective_of(g: np.ndarray, h: np.ndarray, ridge: float, rows: np.ndarray) -> float:
    """G^2 / (ridge + H) of a set of rows."""
    return float(g[rows].sum() ** 2 / (ridge + h[rows].sum()))


def _limit(max_length: int | None, space: SearchSpace) -> int:
    return len(space) if max_length is None else min(max_length, len(space))


def _beam(
    masks: np.ndarray, g: np.ndarray, h: np.ndarray, ridge: float, max_length: int, width: int
) -> tuple[tuple[int, ...], int]:
    """The best conjunction of a beam search and the number of evaluations.

    Every level keeps the `width` best extensions that select different rows (told apart by their G and
    H) and improve on what they extend; the search ends when none does.
    """
    from jaxrules.solvers.rule_search import kernels

    everything = np.ones(len(g), bool)
    best: tuple[int, ...] = ()
    best_value = objective_of(g, h, ridge, everything)
    beam = [(best, everything, best_value)]
    sums = np.empty((2, masks.shape[1]))
    evaluations = 0
    for _ in range(max_length):
        extensions: list[tuple[float, float, tuple[int, ...], np.ndarray]] = []
        for conjunction, rows, value in beam:
            kernels.extension_sums(masks, g, h, rows, sums)
            values = sums[0] ** 2 / (ridge + sums[1])
            evaluations += len(values)
            top = np.argsort(-values, kind="stable")[: 3 * width]
            for a, extended, total in zip(top.tolist(), values[top].tolist(), sums[0, top].tolist(), strict=True):
                if extended > value * (1.0 + 1e-12):
                    extensions.append((extended, total, (*conjunction, a), rows))
        extensions.sort(key=lambda extension: -extension[0])
        beam = []
        seen: set[tuple[str, str]] = set()
        for value, total, conjunction, rows in extensions:
            key = (f"{value:.10g}", f"{total:.10g}")
            if key not in seen and len(beam) < width:
                seen.add(key)
                beam.append((conjunction, rows & masks[:, conjunction[-1]].view(bool), value))
        if not beam:
            break
        if beam[0][2] > best_value:
            best, best_value = beam[0][0], beam[0][2]
    return best, evaluations


class _DepthFirst:
    """One exact search: the problem, the rules found, and the workers that explore the root's children."""

    def __init__(
        self,
        space: SearchSpace,
        gradient: np.ndarray,
        curvature: np.ndarray,
        ridge: float,
        max_length: int | None,
        approximation: float,
    ) -> None:
        from jaxrules.solvers.rule_search import kernels

        self.kernels, self.space, self.ridge = kernels, space, float(ridge)
        self.g, self.h = space.sum_rows(gradient), space.sum_rows(curvature)
        length = _limit(max_length, space)
        self.problem = kernels.Problem(self.ridge, float(approximation), length)
        self.evaluations = 0
        self.candidates: list[tuple[float, tuple[int, ...]]] = [(self.objective(()), ())]  # in visit order

    def objective(self, propositions: Sequence[int]) -> float:
        """The objective of a conjunction, summed in the order of the merged rows."""
        rows = self.space.selected_groups(propositions)
        return objective_of(self.g, self.h, self.ridge, rows)

    def run(self, max_evaluations: int, stopped: Callable[[], bool], threads: int) -> Found:
        """Search until proved, stopped, interrupted or out of evaluations."""
        workers = [_Worker.at_root(self)]
        pool = None
        status = None
        try:
            while status is None and self.problem.max_length and not workers[0].advance(0, max_evaluations):
                if not self.evaluations:  # a search that ends within its first slice is faster without
                    self._take_beam(workers[0])
                if workers[0].evaluations >= max_evaluations:
                    status = Status.MAX_ITERATIONS
                elif stopped():
                    status = Status.TIME_LIMIT
                elif threads > 1 and workers[0].visits > THREADS_FROM:
                    self.candidates.append(workers[0].best)
                    workers.append(workers[0].fork())
                    pool = _Pair(workers)
                    status = pool.run(stopped)
                    break
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        bound = 0.0
        if pool is None:
            self.candidates.append(workers[0].best)
        else:
            self.candidates += pool.candidates()
        if status is not None:
            bound = max(worker.open_bound(0 if pool is None else 1) for worker in workers)
            bound = max(bound, 0.0 if pool is None else pool.untouched())
        return self._result(workers, status, bound)

    def _take_beam(self, worker: _Worker) -> None:
        """Give a worker the result of a beam search to beat."""
        length = self.problem.max_length
        best, self.evaluations = _beam(self.space.masks, self.g, self.h, self.ridge, length, BEAM_WIDTH)
        worker.take(self.objective(best), best)

    def _result(self, workers: list[_Worker], status: Status | None, open_bound: float) -> Found:
        tie = 1.0 + self.kernels.TIE
        value, best = self.candidates[0]
        for other_value, other in self.candidates[1:]:
            if other_value > value * tie:
                value, best = other_value, other
        rows = self.space.selected_groups(best)
        value = objective_of(self.g, self.h, self.ridge, rows)
        bound = max([value * tie, open_bound] + [worker.search.values[self.kernels.DROPPED] for worker in workers])
        if status is None:
            status = Status.OPTIMAL if self.problem.approximation == 1.0 else Status.CONVERGED
        total = sum(worker.search.counters for worker in workers)
        kernels = self.kernels
        counts = {
            "nodes": total[kernels.NODES],
            "leaves": total[kernels.LEAVES],
            "bound": total[kernels.BOUND],
            "mandatory_rows": total[kernels.MANDATORY],
            "redundant": total[kernels.REDUNDANT],
            "implied": total[kernels.IMPLIED],
            "rebounds": total[kernels.REBOUNDS],
        }
        evaluations = self.evaluations + sum(worker.evaluations for worker in workers)
        return Found(
            shortest_equivalent(self.space, rows), value, float(bound), status, int(evaluations),
            {name: int(count) for name, count in counts.items()},
        )  # fmt: skip


class _Worker:
    """One thread's part of the search: a stack of levels below the root, advanced in slices."""

    def __init__(self, task: _DepthFirst, stack: Any, search: Any) -> None:
        self.task, self.stack, self.search = task, stack, search

    @classmethod
    def at_root(cls, task: _DepthFirst) -> _Worker:
        """A worker whose only level is the root, not yet expanded."""
        kernels, space, g, h = task.kernels, task.space, task.g, task.h
        rows, propositions = space.masks.shape
        words, levels = space.bits.shape[1], min(propositions, 20) + 2
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(g == 0.0, 0.0, g / h)
        order = np.argsort(-ratio, kind="stable")
        stack = kernels.Stack(
            levels=np.zeros((levels, kernels.EXPANDED + 1), np.int64),
            base=np.zeros((levels, 2)),
            closure=np.full((levels, words), np.iinfo(np.uint64).max, np.uint64),
            behind=np.zeros((levels, words), np.uint64),
            available=np.zeros((levels, propositions), np.int32),
            bounds=np.zeros((levels, propositions)),
            gradient=_with_room(g.take(order)),
            curvature=_with_room(h.take(order)),
            bits=_with_room(space.bits.take(order, axis=0)),
            masks=_with_room(space.masks.take(order, axis=0).reshape(-1)),
        )
        root = stack.levels[0]
        root[kernels.SIZE], root[kernels.WIDTH] = rows, propositions
        root[kernels.POSITIVE], root[kernels.NEGATIVE] = np.sum(ratio > 0), rows - np.sum(ratio < 0)
        stack.available[0] = np.arange(propositions)
        search = kernels.Search(
            counters=np.zeros(kernels.LENGTH + 1, np.int64),
            values=np.zeros(kernels.DROPPED + 1),
            best=np.zeros(propositions + 1, np.int32),
            found=np.zeros(propositions),
            sums=np.zeros((4, propositions)),
            rows=np.zeros(rows + 1, np.uint64),
            columns=np.zeros(propositions + 1, np.uint64),
            row_mask=np.zeros(propositions, np.uint8),
            words=np.zeros((2, words), np.uint64),
            slots=np.zeros(max(8, 1 << (2 * rows).bit_length()), np.int32),
            table=np.zeros((2, 1 << kernels.LEAF_WIDTH)),
            ratios=np.zeros(rows),
        )
        search.counters[kernels.ROOT] = -1
        worker = cls(task, stack, search)
        worker.take(*task.candidates[0])
        return worker

    def take(self, objective: float, propositions: tuple[int, ...]) -> None:
        """Go on from this conjunction if it is better than what the worker knows."""
        kernels, search = self.task.kernels, self.search
        if objective > search.values[kernels.FLOOR] * (1.0 + kernels.TIE):
            search.values[kernels.FLOOR] = objective
            search.best[: len(propositions)] = propositions
            search.counters[kernels.LENGTH] = len(propositions)

    def fork(self) -> _Worker:
        """A worker with the same expanded root and the same incumbent, and no work yet."""
        kernels = self.task.kernels
        stack = kernels.Stack(*(array.copy() for array in self.stack))
        search = kernels.Search(*(array.copy() for array in self.search))._replace(found=self.search.found)
        length = search.counters[kernels.LENGTH]
        search.counters[:] = 0
        search.counters[kernels.LENGTH] = length
        return _Worker(self.task, stack, search)

    def advance(self, stop: int, max_evaluations: int = _NO_LIMIT, shared: bool = False) -> bool:
        """Search for one slice; True once the root's children from `stop` on are done."""
        kernels, problem = self.task.kernels, self.task.problem
        visits = SLICE if self.visits else FIRST_SLICE
        while True:
            state = kernels.advance(problem, self.stack, self.search, stop, visits, max_evaluations, shared)
            if state != kernels.FULL:
                return bool(state == kernels.DONE)
            self._grow()

    def _grow(self) -> None:
        """Double what the next level may run out of."""
        level_arrays = ("levels", "base", "closure", "behind", "available", "bounds")
        level = int(self.search.counters[self.task.kernels.LEVEL])
        names = level_arrays if level + 2 > len(self.stack.levels) else self.stack._fields[len(level_arrays) :]
        self.stack = self.stack._replace(**{name: _with_room(getattr(self.stack, name)) for name in names})

    def start(self, child: int) -> None:
        """Make the root's child the next one to visit."""
        self.stack.levels[0, self.task.kernels.NEXT] = child + 1
        behind = self.stack.available[0, : child + 1]
        self.stack.behind[0] = 0
        np.bitwise_or.at(self.stack.behind[0], behind // 64, np.uint64(1) << (behind % 64).astype(np.uint64))

    @property
    def best(self) -> tuple[float, tuple[int, ...]]:
        """The objective and the propositions of the best conjunction that this worker knows."""
        length = self.search.counters[self.task.kernels.LENGTH]
        return self.search.values[self.task.kernels.FLOOR], tuple(self.search.best[:length].tolist())

    @property
    def evaluations(self) -> int:
        return int(self.search.counters[self.task.kernels.EVALUATIONS])

    @property
    def visits(self) -> int:
        """Row-proposition pairs looked at: what a search's time is proportional to."""
        return int(self.search.counters[self.task.kernels.WORK])

    def open_bound(self, top: int) -> float:
        """The largest bound of what this worker has left open from level `top` down."""
        bound = float(self.task.kernels.open_bound(self.task.problem, self.stack, self.search, top))
        return math.inf if bound < 0 else bound


class _Pair:
    """Two workers in two threads that take the root's remaining children in turn, highest bound first.

    Which worker takes a child has no influence on the rule found: candidates are kept by child and
    compared in the order in which one worker would have found them.
    """

    def __init__(self, workers: list[_Worker]) -> None:
        self.workers = workers
        self.kernels = workers[0].task.kernels
        self.next_child = int(workers[0].stack.levels[0, self.kernels.NEXT])  # under way in the first worker
        self.lock = threading.Lock()
        self.halt = threading.Event()
        self.by_child: dict[int, tuple[float, tuple[int, ...]]] = {}

    def run(self, stopped: Callable[[], bool]) -> Status | None:
        """Work until all children are done (None), or the time limit or Ctrl-C ends the search."""
        status = None
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(self._work, worker, worker is self.workers[0]) for worker in self.workers]
            try:
                while status is None and wait(jobs, timeout=0.01).not_done:
                    if stopped():
                        status = Status.TIME_LIMIT
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
            if status is not None:
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
        """The largest bound of the children that no worker has begun."""
        return float(self.workers[0].stack.bounds[0, self.next_child - 1]) if self.next_child > 0 else 0.0


def _with_room(array: np.ndarray) -> np.ndarray:
    """The array followed by as many empty rows again."""
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def shortest_equivalent(space: SearchSpace, rows: np.ndarray) -> tuple[int, ...]:
    """A shortest conjunction that selects exactly these merged rows.

    Only the tightest implied proposition per code column and side can be needed. Excluding the other
    rows with as few of them as possible is a set cover: greedy as in the paper, then every smaller size
    by branching on the row that the fewest propositions exclude.

    Args:
        space: the propositions.
        rows: bool (groups,); the rows of some conjunction.

    Returns:
        Proposition indices in ascending order.
    """
    if rows.all() or not len(space):
        return ()
    candidates = _tightest_implied(space, rows)
    outside = np.flatnonzero(~rows)
    excluded = [
        int.from_bytes(np.packbits(space.masks[outside, a] == 0, bitorder="little").tobytes(), "little")
        for a in candidates
    ]
    everything = (1 << len(outside)) - 1
    cover = _greedy_cover(excluded, everything)
    budget = [20_000]
    for size in range(1, len(cover)):
        smaller = _cover_of_size(excluded, everything, size, budget)
        if smaller is not None:
            cover = smaller
            break
    return tuple(sorted(int(candidates[k]) for k in cover))


def _tightest_implied(space: SearchSpace, rows: np.ndarray) -> list[int]:
    """Of the propositions that hold on all these rows: the most restrictive per code column and side."""
    words = np.bitwise_and.reduce(space.bits[rows], axis=0, initial=np.iinfo(np.uint64).max)
    implied = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")[: len(space)]
    tightest: dict[tuple[int, int], int] = {}
    for a in np.flatnonzero(implied).tolist():
        side, cell = (space.column.item(a), space.above.item(a)), space.cell.item(a)
        known = tightest.get(side)
        if known is None or (cell > space.cell.item(known) if side[1] else cell < space.cell.item(known)):
            tightest[side] = a
    return list(tightest.values())


def _greedy_cover(sets: list[int], everything: int) -> list[int]:
    cover: list[int] = []
    while everything:
        best = max(range(len(sets)), key=lambda k: (sets[k] & everything).bit_count())
        cover.append(best)
        everything &= ~sets[best]
    return cover


def _cover_of_size(sets: list[int], left: int, size: int, budget: list[int]) -> list[int] | None:
    """A cover of `left` by at most `size` of the sets, None if there is none (or the budget is spent)."""
    if not left:
        return []
    budget[0] -= 1
    if size == 0 or budget[0] < 0:
        return None
    useful = [k for k in range(len(sets)) if sets[k] & left]
    if max((sets[k] & left).bit_count() for k in useful) * size < left.bit_count():
        return None
    element = left & -left
    for k in sorted((k for k in useful if sets[k] & element), key=lambda k: -(sets[k] & left).bit_count()):
        rest = _cover_of_size(sets, left & ~sets[k], size - 1, budget)
        if rest is not None:
            return [k, *rest]
    return None
