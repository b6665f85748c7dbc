"""The search from all its starts: what `jaxrules.lire.fit` does for one output.

Local moves end in a local optimum (`jaxrules.ensembles.lire.search`), so the search descends from
several starts and keeps the best: the empty model, L1 solutions, a given model, the previous model
of a path, the ends of descents along falling ridges, and the best model perturbed.
"""

from __future__ import annotations

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

_RESTARTS = 20
_PROMISING = 1.1
"""A descent that must be promising is abandoned unless its first moves lead below this factor times
the best objective.
"""
_IDLE = 8
"""After this many abandoned restarts in a row, there are no more."""
_ON_SAMPLE = 8
"""The number of restarts on a sample of the patterns, where they are cheap."""
_RIDGES = np.geomspace(1, 1e-3, 7), np.geomspace(1, 1e-3, 13)
"""Ridges that fall to 0, in long and in short steps: neither is better on all problems."""


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
            self.run.step(self.best.objective, size, bound=self.bound)

    def proved(self, bound: float) -> None:
        """Report a bound that closes a hundredth of the gap."""
        assert self.best is not None  # a proof starts from one
        if self.bound is None or self.best.objective - bound < 0.99 * (
            self.best.objective - self.bound
        ):
            self.bound = bound
            self(self.best)


class DescentRequest(NamedTuple):
    """A descent to be made, see `SupportSearch.descend`."""

    search: SupportSearch
    start: Incumbent
    promising: float = np.inf


Descents = Generator[DescentRequest, Incumbent, Outcome]
"""Yields descents to make, and is sent their results: they may be made one after another, or side
by side with those of other penalties.
"""


def in_turn(descents: Descents[Outcome]) -> Outcome:
    """Make descents one after another; returns what the generator returns."""
    try:
        asked = next(descents)
        while True:
            asked = descents.send(asked.search.descend(asked.start, asked.promising))
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
    starts, reached = _starts(output, search, watch, options, begun), None
    while (start := _following(starts, reached)) is not None:
        if isinstance(start, DescentRequest):  # to make a start
            reached = yield start
            continue
        watch.start, run.phase = start.name, "restarts" if start.name == "restart" else "search"
        search.moves = options.max_iterations
        promising = (
            _PROMISING * watch.best.objective
            if start.promises and watch.best is not None
            else np.inf
        )
        reached = yield DescentRequest(search, start.incumbent, promising)
        exhausted |= search.moves <= 0
        if reached is watch.best:
            watch.certified = search.certified
        idle = idle + 1 if start.name == "restart" and reached.objective >= promising else 0
        if run.stopped() or idle == _IDLE:
            break
    return exhausted


def _following(starts: Starts[None], reached: Incumbent | None) -> _Start | DescentRequest | None:
    """The next start, or descent to make one, given the last result; None at the end."""
    try:
        return next(starts) if reached is None else starts.send(reached)
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
    incumbent: Incumbent
    promises: bool = False  # whether the descent from it must be promising


Starts = Generator[_Start | DescentRequest, Incumbent, Outcome]
"""Yields starts, and descents to make them; is sent the result of each."""


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
        yield _Start(
            "previous", search.start_from(output.previous.columns, output.previous.weights)
        )
    if ridges:
        yield from _falling(search)
    if output.sample is not None:
        again = options if restarts is not None else replace(options, restarts=_ON_SAMPLE)
        found = yield from _searched(output.sample, search, watch.run, again, False)
        if found is not None:
            yield _Start("sample", search.start_from(found.columns, found.weights))
    elif output.previous is None or small:
        yield _Start("empty", search.start_empty(), ridges)
    if begun is not None:
        yield _Start("given", begun)
    watch.run.phase = "start"
    if output.sample is None:
        for columns, weights in output.l1_start.starts(search.gamma, watch.run):
            yield _Start("l1", search.start_from(columns, weights), ridges)
    if output.signed is not None:
        found = yield from _searched(output.signed, search, watch.run, options)
        if found is not None:  # signed weights are half as large
            yield _Start("signed", search.start_from(found.columns, 2 * found.weights))
    if restarts is None:
        restarts = _RESTARTS if small and not watch.certified else 0
    rng = np.random.default_rng(options.seed)
    for restart in range(restarts):
        if watch.best is None or not (watch.best.columns != ONES).any():
            return
        yield _Start(
            "restart", search.perturb(watch.best, rng, exchange=restart % 2 == 0), promises=True
        )


def _falling(search: SupportSearch) -> Starts[None]:
    """The results of descents along falling ridges: with a ridge there are fewer local optima."""
    start = begun = search.start_empty()
    for ridges in _RIDGES:
        best = begun
        for ridge in ridges if begun is start else ridges[1:]:  # both begin alike
            with_ridge = dataclasses.replace(
                search, l2_penalty=ridge, observe=lambda incumbent: None
            )
            best = yield DescentRequest(
                with_ridge, with_ridge.start_from(best.columns, best.weights)
            )
            begun = best if begun is start else begun
        yield _Start("ridge", search.start_from(best.columns, best.weights))


def _searched(
    output: Output, search: SupportSearch, run: Run, options: LireOptions, reports: bool = True
) -> Descents[Incumbent | None]:
    """The best model of the same rules on another problem."""
    watch = Watch(run.child(), output.problem, reports)
    other = dataclasses.replace(search, problem=watch.problem, observe=watch)
    yield from minimise(output, other, watch, options)
    return watch.best
