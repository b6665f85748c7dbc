"""Many searches side by side, as lanes of the traced program: those of the penalties of a path and,
if rules are given, of the folds of a cross-validation.

Each `Member` makes the descents that it would make alone (`minimise`), in step with the others.
Along a path, each model then also becomes a start for the next penalties, so that the objective
never rises if both penalties fall.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from jaxrules.ensembles.lire.descents import DescentRequest, Descents, Output, Watch, minimise
from jaxrules.ensembles.lire.options import LireOptions
from jaxrules.ensembles.lire.search import Incumbent, SupportSearch
from jaxrules.ensembles.lire.traced import TracedSearch, descend_all


@dataclass(eq=False)
class Member:
    """One output at one set of penalties.

    Attributes:
        output: the problem and its starts.
        search: the search at the penalties, which reports to the watch.
        watch: keeps the best model.
        exhausted: whether the limit on moves ended a descent.
    """

    output: Output
    search: SupportSearch
    watch: Watch
    options: LireOptions
    exhausted: bool = False

    def descents(self) -> Descents[None]:
        """The descents from all its starts."""
        self.exhausted |= yield from minimise(self.output, self.search, self.watch, self.options)

    def descent_from(self, previous: Member) -> Descents[None]:
        """The descent from the model of other penalties."""
        if previous.watch.best is None or self.watch.run.stopped():
            return
        self.watch.start, self.search.moves = "previous", self.options.max_iterations
        (reached,) = yield [DescentRequest(self.search, self.at_these(previous.watch.best))]
        self.exhausted |= self.search.moves <= 0
        if reached is self.watch.best:
            self.watch.certified = self.search.certified

    def take_over(self, previous: Member) -> None:
        """Take the model of other penalties if it is better at these."""
        if previous.watch.best is None:
            return
        found, best = self.at_these(previous.watch.best), self.watch.best
        if best is None or found.objective < best.objective:
            self.watch.start, self.watch.certified = "previous", False
            self.watch(found)

    def at_these(self, incumbent: Incumbent) -> Incumbent:
        """A model, refitted at these penalties."""
        started = self.search.start_from(incumbent.columns, incumbent.weights)
        return self.search.complete(started)


def minimise_all(paths: Sequence[Sequence[Member]]) -> None:
    """Search for all members of all paths at once; along each path the penalties fall."""
    side_by_side([member.descents() for path in paths for member in path])
    pairs = [pair for path in paths for pair in itertools.pairwise(path)]
    side_by_side([member.descent_from(previous) for previous, member in pairs])
    for previous, member in pairs:
        member.take_over(previous)


def side_by_side(tasks: Sequence[Descents[None]]) -> None:
    """Make the descents that all tasks ask for, as lanes of one program, until none asks."""
    asked = dict(_answers((task, None) for task in tasks))
    while asked:
        lanes = defaultdict(list)
        for task, descents in asked.items():
            problem = descents[0].search.problem  # all of a task are of one problem
            lanes[id(problem.activations), problem.encoding].append((task, descents))
        asked = {}
        for together in lanes.values():
            descents = [one for _, some in together for one in some]
            searches = [cast(TracedSearch, one.search) for one in descents]
            starts, promising = zip(*((one.start, one.promising) for one in descents), strict=True)
            found = iter(descend_all(searches, starts, promising))
            answers = [(task, [next(found) for _ in some]) for task, some in together]
            asked |= dict(_answers(answers))


def _answers(
    answered: Iterable[tuple[Descents[None], list[Incumbent] | None]],
) -> Iterator[tuple[Descents[None], list[DescentRequest]]]:
    """What each task asks for next, given the results of its last descents; finished tasks are left
    out.
    """
    for task, reached in answered:
        with contextlib.suppress(StopIteration):
            yield task, next(task) if reached is None else task.send(reached)
