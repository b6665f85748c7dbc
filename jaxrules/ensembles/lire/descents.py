"""The search from all its starts: what `jaxrules.lire.fit` does for one output.

Local moves end in a local optimum (`jaxrules.ensembles.lire.search`), so the search descends from
several starts and keeps the best: the empty model, L1 solutions, a given model, the previous model
of a path, the ends of descents along falling ridges, and the best model perturbed.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.lire.moves import ONES
from jaxrules.ensembles.lire.options import LireOptions
from jaxrules.ensembles.lire.problem import SMALL, SupportProblem
from jaxrules.ensembles.lire.search import Incumbent, SupportSearch
from jaxrules.ensembles.lire.start import L1Start
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]
Outcome = TypeVar("Outcome")

_PROMISING = 1.1
"""A descent that must be promising is abandoned unless its first moves lead below this factor times
the best objective.
"""
_IDLE = 8
"""After this many abandoned restarts in a row, there are no more."""
_IMPROVED = 1e-6
"""If restarts made together do not lower the objective by this share, there are no more."""
_ON_SAMPLE = 8
"""The number of restarts on a sample of the patterns, where they are cheap."""
_RIDGES = 1.0, 1e-3
"""The first and the last of ridges that fall to 0, see `SupportSearch.falls`."""


class GivenStart(NamedTuple):
    """Columns of the problem and their encoded weights, shape (size,) each."""

    columns: NDArray[np.int64]
    weights: Floats


@dataclass(eq=False)
class Output:
    """The problem of one output, its starts, and the result at the previous penalties.

    Attributes:
        problem: its data.
        l1_start: its L1 solutions, by penalty.
        given: the caller's start.
        signed: for binary rules on small data, the same columns in signed encoding, whose search
            reaches lower objectives.
        sample: for many patterns, the same columns on some of them, where all starts are tried; the
            search continues from the best.
        previous: the best model at the previous penalties.
    """

    problem: SupportProblem
    l1_start: L1Start
    given: GivenStart | None = None
    signed: Output | None = None
    sample: Output | None = None
    previous: Incumbent | None = None


class Watch:
    """Keeps the best incumbent, so that a deadline or Ctrl-C loses nothing, and reports to the run.

    Attributes:
        best: the best incumbent so far.
        bound: proved lower bound over all supports; None if nothing is proved yet.
        start, best_start: the start of the current descent, and of the one that led to the best.
        certified: whether no single move improves the best.
        reports: whether it reports to the run; False on a sample, whose objective differs.
    """

    def __init__(self, run: Run, problem: SupportProblem, reports: bool = True) -> None:
        self.run, self.problem, self.reports = run, problem, reports
        self.best: Incumbent | None = None
        self.bound: float | None = None
        self.start = self.best_start = "empty"
        self.certified = False

    def __call__(self, incumbent: Incumbent) -> None:
        if self.best is None or incumbent.objective < self.best.objective:
            self.best, self.best_start = incumbent, self.start
        if self.reports:
            size = int(self.problem.counted[self.best.columns].sum())
            stated = self.problem.stated
            bound = None if self.bound is None else stated(self.bound)
            self.run.step(stated(self.best.objective), size, bound=bound)

    def proved(self, bound: float) -> None:
        """Report a bound that closes a hundredth of the gap."""
        assert self.best is not None  # a proof starts from one
        best = self.best.objective
        if self.bound is None or best - bound < 0.99 * (best - self.bound):
            self.bound = bound
            self(self.best)


class DescentRequest(NamedTuple):
    """A descent to be made, see `SupportSearch.descend`."""

    search: SupportSearch
    start: Incumbent
    promising: float = np.inf


Descents = Generator[list[DescentRequest], list[Incumbent], Outcome]
"""Yields descents to make, each of a search of its own, and is sent their results: they may be made
one after another, or side by side, also with those of other penalties.
"""


def in_turn(descents: Descents[Outcome]) -> Outcome:
    """Make descents one after another; returns what the generator returns."""
    try:
        asked = next(descents)
        while True:
            asked = descents.send([one.search.descend(one.start, one.promising) for one in asked])
    except StopIteration as end:
        return cast(Outcome, end.value)


def minimise(
    output: Output, search: SupportSearch, watch: Watch, options: LireOptions
) -> Descents[bool]:
    """Descend from every start; `watch` keeps the best model. Returns whether the limit on moves
    ended one of the descents.
    """
    exhausted, run, idle = False, watch.run, 0
    begun = _first_incumbents(output, search, watch)
    starts, found = _starts(output, search, watch, options, begun), None
    while (start := _following(starts, found)) is not None:
        if isinstance(start, list):  # descents to make a start
            found = yield start
            continue
        watch.start, run.phase = start.name, "restarts" if start.name == "restart" else "search"
        promising = np.inf
        if start.promises and watch.best is not None:
            promising = _PROMISING * watch.best.objective
        searches = [search, *(copy.copy(search) for _ in start.incumbents[1:])]
        for one in searches:
            one.moves = options.max_iterations
        asked = zip(searches, start.incumbents, strict=True)
        found = yield [DescentRequest(one, begin, promising) for one, begin in asked]
        for one, reached in zip(searches, found, strict=True):
            exhausted |= one.moves <= 0
            if reached is watch.best:
                watch.certified = one.certified
        promised = any(reached.objective < promising for reached in found)
        idle = 0 if promised or start.name != "restart" else idle + len(found)
        if run.stopped() or idle >= _IDLE:
            break
    return exhausted


def _following(
    starts: Starts[None], found: list[Incumbent] | None
) -> _Start | list[DescentRequest] | None:
    """The next start, or descents to make one, given the last results; None at the end."""
    try:
        return next(starts) if found is None else starts.send(found)
    except StopIteration:
        return None


def _first_incumbents(output: Output, search: SupportSearch, watch: Watch) -> Incumbent | None:
    """Models before the first descent: the previous one, the given one (which is returned) and,
    under a time limit, L1 solutions, which need no ranking of moves.
    """
    begun = None
    if output.previous is not None:
        watch.start = "previous"
        watch(search.complete(search.start_from(output.previous.columns, output.previous.weights)))
    if output.given is not None:
        begun, watch.start = search.complete(search.start_from(*output.given)), "given"
        if search.fits(begun):
            watch(begun)
    if watch.run.deadline.seconds is not None and not watch.run.stopped():
        watch.start = "l1"
        for columns, weights in output.l1_start.starts(search.gamma, watch.run):
            watch(search.thin_out(search.start_from(columns, weights)))
    return begun


class _Start(NamedTuple):
    name: str
    incumbents: list[Incumbent]  # from which descents are made side by side
    promises: bool = False  # whether descents from them must be promising


Starts = Generator[_Start | list[DescentRequest], list[Incumbent], Outcome]
"""Yields starts, and descents to make them; is sent the results of each."""


def _starts(
    output: Output,
    search: SupportSearch,
    watch: Watch,
    options: LireOptions,
    begun: Incumbent | None,
) -> Starts[None]:
    """The starts, each made after the descent before it. On large data, the previous model replaces
    the empty one; on very large data, the result of the search on a sample replaces that and the L1
    solutions.
    """
    small, restarts = search.problem.size <= SMALL, options.restarts
    ridges = small and not search.l2_penalty and output.signed is None and restarts != 0
    if output.previous is not None:
        previous = search.start_from(output.previous.columns, output.previous.weights)
        yield _Start("previous", [previous])
    if ridges:
        yield from _falling(search)
    if output.sample is not None:
        again = options if restarts is not None else replace(options, restarts=_ON_SAMPLE)
        found = yield from _searched(output.sample, search, watch.run, again, False)
        if found is not None:
            yield _Start("sample", [search.start_from(found.columns, found.weights)])
    elif output.previous is None or small:
        yield _Start("empty", [search.start_empty()], ridges)
    if begun is not None:
        yield _Start("given", [begun])
    watch.run.phase = "start"
    if output.sample is None:
        for columns, weights in output.l1_start.starts(search.gamma, watch.run):
            yield _Start("l1", [search.start_from(columns, weights)], ridges)
    if output.signed is not None:
        found = yield from _searched(output.signed, search, watch.run, options)
        if found is not None:  # signed weights are half as large
            yield _Start("signed", [search.start_from(found.columns, 2 * found.weights)])
    if restarts is None:
        restarts = search.restarts if small and not watch.certified else 0
    rng = np.random.default_rng(options.seed)
    for first in range(0, restarts, search.at_once):
        if watch.best is None or not (watch.best.columns != ONES).any():
            return
        some, before = range(first, min(first + search.at_once, restarts)), watch.best.objective
        kicked = [search.perturb(watch.best, rng, exchange=k % 2 == 0) for k in some]
        yield _Start("restart", kicked, promises=True)
        if len(some) > 1 and watch.best.objective > (1 - _IMPROVED) * before:
            return


def _falling(search: SupportSearch) -> Starts[None]:
    """The results of descents along falling ridges: with a ridge there are fewer local optima."""

    def at(ridge: float, best: Incumbent) -> DescentRequest:
        with_ridge = dataclasses.replace(search, l2_penalty=ridge, observe=lambda incumbent: None)
        return DescentRequest(with_ridge, with_ridge.start_from(best.columns, best.weights))

    (begun,) = yield [at(_RIDGES[0], search.start_empty())]  # all sequences begin alike
    for first in range(0, len(search.falls), search.at_once):
        steps = search.falls[first : first + search.at_once]
        ridges, best = [np.geomspace(*_RIDGES, n)[1:] for n in steps], [begun] * len(steps)
        for step in range(max(steps) - 1):
            if search.stopped():
                break
            going = [k for k, falling in enumerate(ridges) if step < len(falling)]
            found = yield [at(ridges[k][step], best[k]) for k in going]
            for k, reached in zip(going, found, strict=True):
                best[k] = reached
        ends = {np.sort(one.columns).tobytes(): one for one in best}
        begun_at = [search.start_from(one.columns, one.weights) for one in ends.values()]
        yield _Start("ridge", begun_at)


def _searched(
    output: Output, search: SupportSearch, run: Run, options: LireOptions, reports: bool = True
) -> Descents[Incumbent | None]:
    """The best model of the same rules on another problem."""
    watch = Watch(run.child(), output.problem, reports)
    other = dataclasses.replace(search, problem=watch.problem, observe=watch)
    yield from minimise(output, other, watch, options)
    return watch.best
