"""All rule lists that are nearly as good as the best one: the Rashomon set of rule lists.

Lists grow rule by rule, all lists of a length together. Only prefixes that cannot be extended to a
list that is good enough are dropped, by the bound of the exact search (`jaxrules.lists.prefixes`).
The label of a rule is the best one for the rows that it captures, and every rule captures some.

**Equal captures are merged.** Two lists are equal if their rules capture the same sets of rows, in
any order: then they predict the same for every training row, with the same probabilities. The best
represents all of them: the one with the fewest literals or, with a local penalty, the one with the
lowest price of literals and reading. The same holds for prefixes: any continuation of one is a
continuation of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Table, TableLike, conform
from jaxrules.lists.exact_problem import ListProblem
from jaxrules.lists.first_rules import list_of
from jaxrules.lists.noise import Penalty
from jaxrules.lists.prefixes import TOLERANCE, Choice, Layer, Prefixes
from jaxrules.models.near_optimal import NearOptimalModels
from jaxrules.models.rule_models import RuleList
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.rows import Activations
from jaxrules.solvers.layered import never
from jaxrules.tools import display
from jaxrules.tools.bits import Words, distinct
from jaxrules.tools.fits import Settings, Status

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MOST_PREFIXES = 1 << 20
"""Prefixes of one length that are kept."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NearOptimal(NearOptimalModels):
    """The lists whose objective is within a share of the optimum, the best first. Indexing gives
    them as models.

    Attributes, besides those of `NearOptimalModels`:
        rules: the conditions of the lists, and `supports` their positions, in order.
        labels: the class codes of the rules of each list and of its default.
        decided: the weight of every class among the training rows that each rule captures, and that
            the default decides.
        floor: every list with an objective above it is included; `threshold` if all are.
        at_most: a bound on the number of near-optimal lists; their number if all are included.
        penalty: on a literal, and why it was chosen.
        options: the settings, as (name, value) pairs.
        unit: the weight of one row, see `jaxrules.data.table.effective_row`.
        status: OPTIMAL if all are included; else what ended the search, TIME_LIMIT, INTERRUPTED or
            MAX_ITERATIONS (`max_evaluations`, or `limit`).
    """

    labels: tuple[tuple[int, ...], ...]
    decided: tuple[Floats, ...]
    floor: float
    at_most: int
    penalty: Penalty
    options: Settings = ()
    unit: float = 1.0

    noun, part, sense = "list", "condition", "max"

    @property
    def conditions(self) -> Conjunctions:
        """The same as `rules`."""
        return self.rules

    @property
    def lists(self) -> tuple[Choice, ...]:
        """The same as `supports`."""
        return self.supports

    def __getitem__(self, index: int) -> RuleList:
        """One list as a model, with the probabilities of `jaxrules.exact_list.fit`."""
        rules, labels = self.rules.take(list(self.supports[index])), self.labels[index]
        return list_of(
            rules, np.array(labels, np.int32), self.decided[index], self.unit, self.options,
            self.penalty.shrinkage,
        )  # fmt: skip

    def possible(self, X: TableLike) -> Bools:
        rows = Activations.of(self.rules, X if isinstance(X, Table) else conform(X, self.schema))
        holds = np.concatenate([rows.by_rule, np.ones((1, rows.n_patterns), bool)])
        result = np.zeros((rows.n_patterns, len(self.schema.classes or ())), bool)
        for conditions, labels in zip(self.supports, self.labels, strict=True):
            first = holds[[*conditions, -1]].argmax(axis=0)
            result[np.arange(rows.n_patterns), np.array(labels)[first]] = True
        return result[rows.pattern]

    @property
    def notes(self) -> tuple[str, ...]:
        return (self.penalty.chosen,) if self.penalty.chosen else ()

    @property
    def unlisted(self) -> str:
        if self.complete:
            return ""
        what = "the search did not get that far"
        if self.floor < self.optimum:
            what = f"all above {display.number(self.floor)} are listed"
        return f"There may be more, at most {self.at_most}: {what}."


class _FoundLists(NamedTuple):
    """Lists or prefixes of one length: what they capture, and how they were built."""

    keys: Words  # of the set of the sets of rows that the rules capture, (lists, 2)
    values: Floats  # of lists with equal keys the greatest stays
    bounds: Floats  # the objective of the list, or a bound for all lists with this prefix
    parents: NDArray[np.int64]
    moves: NDArray[np.int64]

    def take(self, chosen: Any) -> _FoundLists:
        return _FoundLists(*(part[chosen] for part in self))

    @classmethod
    def merged(cls, some: list[_FoundLists]) -> _FoundLists:
        """All of them; of those with equal keys, the best."""
        found = cls(*(np.concatenate(parts) for parts in zip(*some, strict=True)))
        order = np.argsort(-found.values, kind="stable")
        return found.take(order[distinct(np.ascontiguousarray(found.keys[order]))[0]])


_NONE = _FoundLists(np.zeros((0, 2), np.uint64), *np.zeros((2, 0)), *np.zeros((2, 0), np.int64))


class Enumeration:
    """The lists whose objective is at least `optimum` - `within` |`optimum`|, length by length.

    Args:
        problem: the lists to choose from.
        optimum: the best objective known, with the expert's rules.
        bound: on the objective of all lists.
        within: the share.
        limit: the most lists that are kept, the best.
        best: the list with that optimum, which is listed even if the search does not reach it.
    """

    def __init__(
        self, problem: ListProblem, optimum: float, bound: float, within: float, limit: int,
        best: Choice,
    ) -> None:  # fmt: skip
        self.best = best
        self.problem, self.candidates, self.limit = problem, problem.candidates, limit
        self.optimum, self.bound, self.least = optimum, bound, optimum - within * abs(optimum)
        self.search = Prefixes(problem.candidates, problem.max_rules)
        # of lists without the expert's rules: no list above the floor is lost; `lost` bounds the
        # number of those between the threshold and the floor
        self.rounding = TOLERANCE * float(self.candidates.counts.sum())
        self.threshold = self.least - problem.offset - self.rounding
        self.floor, self.lost, self.ran = self.threshold, 0, False
        empty = np.full(1, self.candidates.evaluate(()))
        none = _FoundLists(
            np.zeros((1, 2), np.uint64), empty, empty, np.zeros(1, np.int64), np.zeros(1, np.int64)
        )
        self.ended = [none.take(empty > self.threshold)]  # the lists of no rule, of one, ...
        # parents and moves of the prefixes of one rule, of two, ...
        self.trail: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def run(self, stopped: Callable[[], bool] = never) -> None:
        """All lists of at least one rule."""
        self._run(stopped)
        self.ran = True

    def _run(self, stopped: Callable[[], bool]) -> None:
        layer, keys, bounds = (
            self.search.root(),
            np.zeros((1, 2), np.uint64),
            np.full(1, self.bound),
        )
        n, R, depth = self.search.chunk, len(self.candidates), self.search.max_rules
        # Invariant: every list of at most `step` rules above the floor is in `ended`, and every
        # longer one continues a prefix of the layer. What is given up raises the floor to its
        # bound, and the number of lists that it could have contained is added to `lost`; `longer`
        # is the number of ways to continue a list by at least one rule (conditions that repeat
        # included).
        for step in range(depth):
            after = depth - 1 - step
            longer = sum(R**k for k in range(1, after + 1))  # lists that continue a given one
            grown, ended = [_NONE], [_NONE]
            self.ended.append(_NONE)
            for start in range(0, len(bounds), n):
                if stopped():
                    # Lost: the children of prefixes not expanded, as lists and as prefixes, and the
                    # continuations of the children found so far; as lists these are in `ended`.
                    self.end(ended)
                    self.lose(float(bounds[start:].max()), (len(bounds) - start) * R * (1 + longer))
                    for children in grown:
                        self.lose(
                            float(children.bounds.max(initial=-np.inf)),
                            len(children.bounds) * longer,
                        )
                    return
                some = slice(start, start + n)
                parents, moves, most, values, stops = self.search.children(
                    layer, some, after, self.floor
                )
                # `children` leaves out bounds up to the floor. While the floor is the threshold,
                # nothing near-optimal is among these; once it has risen, any of them may be.
                if self.floor > self.threshold:
                    self.lost += (len(bounds[some]) * R - len(parents)) * (1 + longer)
                parents = parents + start
                # The set of the captured sets identifies a list: a sum of hashes, in any order.
                captures = layer.free[parents] & self.candidates.covers[moves]
                found = _FoundLists(keys[parents] + _hashes(captures), stops, stops, parents, moves)
                ended.append(found.take(stops > self.floor))
                if after:
                    # as a prefix its value is that of its rules alone, without the default
                    grown.append(found._replace(values=values, bounds=most))
                # Keep memory bounded while a layer grows, not only at its end.
                if sum(len(children.bounds) for children in grown) > self.search.max_open:
                    grown = [self.kept(grown, longer)]
                if sum(len(lists.bounds) for lists in ended) > _MOST_PREFIXES:
                    self.end(ended)
                    ended = [_NONE]
            self.end(ended)
            children = self.kept(grown, longer)
            if not len(children.bounds):
                return
            self.trail.append((children.parents, children.moves))
            free = layer.free[children.parents] & ~self.candidates.covers[children.moves]
            used = layer.used[children.parents] | self.candidates.uses[children.moves]
            layer, keys, bounds = Layer(free, children.values, used), children.keys, children.bounds

    def lose(self, bound: float, lists: int) -> None:
        """Give up some lists, none with an objective above `bound`."""
        self.floor = max(self.floor, bound)
        self.lost += lists

    def end(self, some: list[_FoundLists]) -> None:
        """Add lists of the newest length; keep the best of all lists, up to the limit."""
        self.ended[-1] = _FoundLists.merged([self.ended[-1], *some])
        objectives = np.concatenate([found.bounds for found in self.ended])
        if len(objectives) > self.limit:
            # The list in the last place within the limit decides: lists below it are dropped, and
            # of those equal to it the later ones.
            least = -np.partition(-objectives, self.limit - 1)[self.limit - 1]
            self.lose(float(least), 0)
            spare = self.limit - int((objectives > least).sum())
            for length, found in enumerate(self.ended):
                tied = found.bounds == least
                kept = (found.bounds > least) | (tied & (np.cumsum(tied) <= spare))
                spare -= min(spare, int(tied.sum()))
                self.lost += int((~kept).sum())
                self.ended[length] = found.take(kept)

    def kept(self, grown: list[_FoundLists], longer: int) -> _FoundLists:
        """The prefixes that may become lists above the floor, as many as memory allows."""
        children = _FoundLists.merged(grown)
        inside = children.bounds > self.floor
        if self.floor > self.threshold:
            self.lost += int((~inside).sum()) * longer
        children = children.take(inside)
        order = np.argsort(-children.bounds, kind="stable")  # the worst are not reached in time
        room = min(_MOST_PREFIXES, self.search.max_open // 2)
        if len(order) > room:
            self.lose(float(children.bounds[order[room]]), (len(order) - room) * longer)
        return children.take(order[:room])

    def lists(self) -> list[tuple[float, Choice]]:
        """Objectives and lists found, the best and shortest first."""
        result: list[tuple[float, Choice]] = [
            (objective, ()) for objective in self.ended[0].bounds.tolist()
        ]
        for length, found in enumerate(self.ended[1:]):
            for objective, parent, move in zip(*(part.tolist() for part in found[2:]), strict=True):
                # From the last rule back to the first, along the parents
                moves = [move]
                for parents, taken in reversed(self.trail[:length]):
                    moves.append(int(taken[parent]))
                    parent = parents[parent]
                result.append((objective, tuple(moves[::-1])))
        result.sort(key=lambda item: (-item[0], len(item[1]), item[1]))
        value = self.candidates.evaluate(self.best)
        if not result or result[0][0] < value - self.rounding:
            result = [(value, self.best), *result][: self.limit]
        return result

    def result(
        self, options: Settings, penalty: Penalty, limit: Status | None = None
    ) -> NearOptimal:
        """The result, with the settings and the limit of the run that ended it, if any did."""
        if not self.candidates.complete:  # any list of a missing condition may be near-optimal
            self.ran, self.lost = False, self.lost + self.problem.n_possible
        complete = self.ran and self.floor == self.threshold
        problem, candidates, lists = self.problem, self.candidates, self.lists()
        first, schema = problem.first, problem.data.schema
        n_first = len(first.rules)
        used = sorted({r for _, conditions in lists for r in conditions})
        place = {r: n_first + i for i, r in enumerate(used)}
        first_labels = tuple(first.labels.tolist())
        floor = problem.offset + self.floor if self.ran else self.bound
        return NearOptimal(
            rules=Conjunctions.concatenate(
                [first.rules.with_schema(schema), candidates.rules(tuple(used), schema)]
            ),
            supports=tuple(
                (*range(n_first), *(place[r] for r in conditions)) for _, conditions in lists
            ),
            labels=tuple(
                (*first_labels, *candidates.labelled(conditions)[0].tolist())
                for _, conditions in lists
            ),
            decided=tuple(
                np.concatenate([first.decided, candidates.decided(conditions)])
                for _, conditions in lists
            ),
            objectives=np.array([problem.offset + objective for objective, _ in lists]),
            optimum=self.optimum, bound=self.bound, threshold=self.least,
            floor=self.least if complete else floor, at_most=len(lists) + self.lost,
            penalty=penalty, options=options, unit=first.unit,
            status=Status.OPTIMAL if complete else limit or Status.MAX_ITERATIONS,
        )  # fmt: skip


def _hashes(captures: Words) -> Words:
    """Two random numbers for every set of groups; the key of a set of such sets is their sum."""
    result = np.empty((len(captures), 2), np.uint64)
    for side, seed in enumerate((0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)):
        # Sums of good hashes identify sets of sets up to chance: among n lists, two share a key of
        # 128 bits with a probability of about n^2 / 2^129.
        key = np.full(len(captures), seed, np.uint64)
        for word in captures.T:
            key = (key ^ word) * np.uint64(0xBF58476D1CE4E5B9)
            key ^= key >> np.uint64(29)
            key *= np.uint64(seed | 1)
            key ^= key >> np.uint64(32)
        result[:, side] = key
    return result
