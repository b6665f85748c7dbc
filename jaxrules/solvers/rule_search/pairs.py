"""The exact search over all conjunctions of at most two propositions, by histograms.

Propositions on one column, or on a few columns of few values, divide the rows into a few dozen
cells, and each proposition is a set of cells: a `Partition`. For two partitions the sums of g, h,
... over the rows of every pair of cells are one histogram, in time proportional to the rows, and
the sums of every pair of propositions are sums of its entries. With d partitions, a search thus
takes rows x d^2 / 2 steps per term, whatever the number of propositions, while branch and bound
examines pair by pair. It needs only the value of an objective, and its result is proved.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.compiled_pairs import BoundsOfPairs, CompiledPairs
from jaxrules.solvers.rule_search.counted_pairs import CountedPairs, counted_pairs, keep
from jaxrules.solvers.rule_search.objectives import Floats, Objective
from jaxrules.solvers.rule_search.ranking import ranking_of
from jaxrules.solvers.rule_search.shortest import conclude
from jaxrules.solvers.rule_search.space import TIE, Found, Partition, SearchSpace, best_first, never
from jaxrules.tools.fits import Status
from jaxrules.tools.kernels import Kernels

LeftOut = Callable[[tuple[int, ...]], bool]
_MOST = float(np.finfo(np.float64).max)
_RANKED, _MOST_RANKED = 64, 1024
"""The number of pairs that a device first reports, and the most that are evaluated one by one."""
_HISTOGRAMS = Kernels("jaxrules.solvers.rule_search.kernels.pair_bounds", "bounds_of_pairs")


def search_pairs(
    space: SearchSpace,
    objective: Objective,
    *,
    max_length: int | None = 2,
    max_pairs: int | None = None,
    likely: Sequence[tuple[int, int]] = (),
    left_out: LeftOut | None = None,
    on_device: bool = False,
    stopped: Callable[[], bool] = never,
) -> Found:
    """A best conjunction of at most two propositions, with a certificate; the empty conjunction is
    a candidate.

    Args:
        space: the propositions, with `SearchSpace.partitions`.
        objective: with one row of weights.
        max_length: 0, 1 or 2.
        max_pairs: roughly the most pairs of partitions to examine, None for all. If there are more,
            the partitions of the best single propositions are paired with all others, and the bound
            is the one on all subsets of the rows; `counts` reports the number of pairs left out.
        likely: pairs of partitions, given by their places, that are then among those examined.
        left_out: says whether a conjunction, given its propositions, is to be excluded; the bound
            is then on the others. It is called for conjunctions that would be the best so far.
        on_device: rank all pairs on a device first, whatever `max_pairs` is; the result is the
            same.
        stopped: asked every few milliseconds, once all single propositions are examined; True ends
            the search with the best rule so far.
    """
    longest = space.longest(max_length)
    if longest > 2 or space.partitions is None:
        raise ValueError(
            "pairs of propositions by histograms need max_length of at most 2, and columns of few "
            "cells"
        )
    terms = objective.one_row(space)
    partitions = space.partitions if longest else []
    n_propositions = sum(len(part.propositions) for part in partitions)
    work = work_of(terms.shape[1], len(partitions), n_propositions, longest)
    pairs = _Pairs(objective, terms, partitions, left_out, work)
    if longest == 2 and not on_device and pairs.repays:
        pairs.counted = counted_pairs(objective, space, max_pairs)
    unpaired = 0
    if on_device and longest == 2:
        finished = pairs.examine_ranked(space, stopped)
    else:
        pairs.examine_single()
        some = pairs.chosen(max_pairs, likely) if longest == 2 else []
        unpaired = math.comb(len(partitions) + 1, 2) - len(some) if some else 0
        finished = not some or pairs.examine_pairs(some, stopped)
    if pairs.counted is not None:
        keep(space, pairs.counted)
    bound = pairs.worth
    if unpaired or not finished:  # any subset of all rows could be a pair
        any_rows = objective.bounds(terms, np.ones((terms.shape[1], 1)))
        bound = max(bound, float(np.max(objective.worth(any_rows, 2))))
    status = Status.MAX_ITERATIONS if unpaired else Status.OPTIMAL
    counts = {"pairs_left_out": unpaired} if unpaired else {}
    found = conclude(
        space, objective, terms, pairs.best, status if finished else Status.TIME_LIMIT,
        pairs.evaluations, bound, counts, stopped,
    )  # fmt: skip
    assert found.bound is not None
    return replace(found, bound=max(found.bound, found.objective * (1.0 + TIE)))


def work_of(n_rows: int, n_partitions: int, n_propositions: int, longest: int) -> int:
    """The steps of a search, roughly: rows times partitions, or times pairs of them."""
    if longest < 2:
        return n_rows * n_partitions + n_propositions
    return (n_rows * n_partitions**2 + n_propositions**2) // 2


class _Pairs:
    """The best conjunction so far, and histograms to find a better one."""

    def __init__(
        self,
        objective: Objective,
        terms: Floats,
        partitions: list[Partition],
        left_out: LeftOut | None,
        work: int,
    ) -> None:
        self.objective, self.terms, self.partitions = objective, terms, partitions
        self.left_out, self.work = left_out, work
        self.counted: CountedPairs | None = None
        self.scales = [
            (float(objective.price(length)), float(objective.divisor(length)))
            for length in range(3)
        ]
        self.start()

    def start(self) -> None:
        """Begin with the empty conjunction."""
        self.best: tuple[int, ...] = ()
        self.worth, self.evaluations = self.objective.worth_of_nothing(self.terms), 1
        if self.left_out is not None and self.left_out(()):
            self.worth = -_MOST

    @functools.cached_property
    def repays(self) -> bool:
        """Whether there is work enough for compiled histograms."""
        return _HISTOGRAMS.pay(self.work * len(self.terms))

    @functools.cached_property
    def compiled(self) -> CompiledPairs | CountedPairs | None:
        if self.counted is not None:
            return self.counted
        return self.objective.values_of_pairs(self.terms) if self.repays else None

    def examine_single(self) -> None:
        """Evaluate all single propositions."""
        self.singles = np.full(len(self.partitions), -math.inf)
        if not self.partitions:
            return
        sums = [
            sums @ part.members for part, sums in zip(self.partitions, self.of_cells, strict=True)
        ]
        values = self.objective.value(np.concatenate(sums, axis=1))
        ends = np.cumsum([one.shape[1] for one in sums])[:-1]
        for at, (part, some) in enumerate(
            zip(self.partitions, np.split(values, ends), strict=True)
        ):
            self.singles[at] = self._take_best(some[:, None], 1, part, part)

    def chosen(
        self, max_pairs: int | None = None, likely: Sequence[tuple[int, int]] = ()
    ) -> list[tuple[int, int]]:
        """All pairs of partitions; if these are more than `max_pairs`, those of the best single
        propositions with all others, and the likely ones, to get about `max_pairs`.
        """
        n, order = len(self.partitions), range(len(self.partitions))
        all_with = n  # partitions that are paired with all others
        if max_pairs is None or math.comb(n + 1, 2) <= max_pairs:
            likely = ()
        else:
            all_with = max(1, (max_pairs - len(likely)) // n)
            order = best_first(self.singles).tolist()
        # Pairs that begin with the first `all_with` partitions: n + (n - 1) + ... of them, in this
        # order.
        first = n * all_with - all_with * (all_with - 1) // 2
        places = itertools.combinations_with_replacement(order, 2)
        pairs = dict.fromkeys((min(two), max(two)) for two in itertools.islice(places, first))
        return list(pairs | dict.fromkeys(likely))

    def examine_pairs(self, pairs: list[tuple[int, int]], stopped: Callable[[], bool]) -> bool:
        """Evaluate these pairs of partitions; False if the search was stopped before the end."""
        bounds = None if self.compiled is None else self.compiled.bounds(self.partitions)
        if bounds is not None:
            return self._examine_bounded(pairs, bounds, stopped)
        for a, b in pairs:
            if stopped():
                return False
            self._take_best(self._values(a, b), 2, self.partitions[a], self.partitions[b])
        return True

    def _examine_bounded(
        self,
        pairs: list[tuple[int, int]],
        bounds: BoundsOfPairs,
        stopped: Callable[[], bool],
    ) -> bool:
        """As `examine_pairs`, with the values only of pairs whose bounds allow a better
        conjunction.
        """
        assert self.compiled is not None
        sizes = np.array([len(part.propositions) for part in self.partitions])
        price, divisor = self.scales[2]
        at_once = self.compiled.at_once
        for start in range(0, len(pairs), at_once):
            if stopped():
                return False
            some = np.array(pairs[start : start + at_once])
            worths = (bounds(some) - price) / divisor
            examined = 0
            for place in np.flatnonzero(worths > self.worth + TIE * abs(self.worth)).tolist():
                if worths[place] > self.worth + TIE * abs(self.worth):  # which may have risen
                    a, b = some[place].tolist()
                    self._take_best(self._values(a, b), 2, self.partitions[a], self.partitions[b])
                    examined += int(sizes[a] * sizes[b])
            # All pairs of propositions count as evaluated: the bound says what they are worth.
            self.evaluations += int((sizes[some[:, 0]] * sizes[some[:, 1]]).sum()) - examined
        return True

    def _values(self, a: int, b: int) -> Floats:
        """Of all pairs of propositions of two partitions, (of a, of b)."""
        if self.compiled is not None:
            return self.compiled.values(self.partitions[a], self.partitions[b])
        return self.objective.value(self._sums(a, b))

    def examine_ranked(self, space: SearchSpace, stopped: Callable[[], bool]) -> bool:
        """As `examine_single` and `examine_pairs`, of what a device ranks first; False if the
        search was stopped before the end.
        """
        values: dict[tuple[int, int], float] = {}
        count = _RANKED
        while len(values) <= _MOST_RANKED:
            ranked = ranking_of(space).best(self.objective, self.terms, count, stopped)
            if ranked is None:
                self.examine_single()
                return False
            while len(values) <= _MOST_RANKED:
                self._take_from(values)
                close = self.worth - 2 * TIE * abs(self.worth)  # ties are resolved as by the host
                better = [bound.pair for bound in ranked if bound.worth >= close]
                pending = [pair for pair in better if pair not in values]
                if not pending:
                    break
                if stopped():
                    self.examine_single()
                    return False
                # One, then two, four, ... in descending order of their bounds: every batch may
                # raise the worth above the bounds of the rest.
                for pair in pending[: len(values) + 1]:
                    rows = space.selected_groups(pair).astype(np.float64)
                    values[pair] = float(self.objective.value((self.terms @ rows)[:, None])[0])
            # Proved: all that may be better has been evaluated. The evaluations are counted as on
            # the host, so that results do not depend on the device: the propositions alone, and the
            # pairs of every two partitions, or of one with itself.
            if len(ranked) < count or len(better) < len(ranked):
                sizes = [len(part.propositions) for part in self.partitions]
                self.evaluations = (
                    1 + sum(sizes) + (sum(sizes) ** 2 + sum(size**2 for size in sizes)) // 2
                )
                return True
            count *= 8
        self.start()  # too many could be the best: rows of hardly any curvature
        self.examine_single()
        return self.examine_pairs(self.chosen(), stopped)

    def _take_from(self, values: dict[tuple[int, int], float]) -> None:
        """Update the best conjunction from the start, by the values of some pairs (of one
        proposition twice: alone), in the order of the host.
        """
        self.start()
        alone: dict[int, Floats] = {}
        paired: dict[tuple[int, int], Floats] = {}
        for pair, value in values.items():
            (a, i), (b, j) = sorted(self.places[one] for one in pair)
            if pair[0] == pair[1]:
                of_part = alone.setdefault(a, self._nothing(a))
                of_part[i, 0] = value
            else:
                paired.setdefault((a, b), self._nothing(a, b))[i, j] = value
        for a in sorted(alone):
            self._take_best(alone[a], 1, self.partitions[a], self.partitions[a])
        for a, b in sorted(paired):
            self._take_best(paired[a, b], 2, self.partitions[a], self.partitions[b])

    def _nothing(self, a: int, b: int | None = None) -> Floats:
        """Values of the propositions of a partition, or of their pairs with another's, none of
        them known.
        """
        width = 1 if b is None else len(self.partitions[b].propositions)
        return np.full((len(self.partitions[a].propositions), width), -math.inf)

    @functools.cached_property
    def places(self) -> dict[int, tuple[int, int]]:
        """The partition of every proposition, and its place there."""
        return {
            proposition: (a, i)
            for a, part in enumerate(self.partitions)
            for i, proposition in enumerate(part.propositions.tolist())
        }

    def _sums(self, a: int, b: int) -> Floats:
        """Over the rows of all pairs of propositions of two partitions, (terms, of a, of b)."""
        first, second = self.partitions[a], self.partitions[b]
        if a == b:  # both propositions hold in the cells that they share
            left = first.members.T * self.of_cells[a][:, None]
        else:
            shape = len(first.members), len(second.members)
            joint = self._histograms(
                first.cell.astype(np.intp) * shape[1] + second.cell, shape[0] * shape[1]
            )
            left = first.members.T @ joint.reshape(len(self.terms), *shape)
        return np.asarray(left @ second.members)

    @functools.cached_property
    def of_cells(self) -> list[Floats]:
        """The sums over the rows of the cells of every partition, (terms, cells)."""
        if self.compiled is None:
            return [self._histograms(part.cell, len(part.members)) for part in self.partitions]
        return self.compiled.of_cells(self.partitions)

    def _histograms(self, cell: NDArray[np.integer], size: int) -> Floats:
        """The sums of every term over the rows of each cell, (terms, cells)."""
        return np.stack([np.bincount(cell, row, size) for row in self.terms])

    def _take_best(self, values: Floats, length: int, first: Partition, second: Partition) -> float:
        """Update the best conjunction from those of one proposition of each partition; returns the
        greatest worth among these.

        Args:
            values: (propositions of the first, of the second); (propositions, 1) for length 1.
        """
        self.evaluations += values.size
        if not values.size:
            return -math.inf
        price, divisor = self.scales[length]  # of `worth`, too slow to call for every few values
        best = most = (float(values.max()) - price) / divisor
        if most <= self.worth + TIE * abs(self.worth):
            return best
        worths = np.ravel(self.objective.worth(values, length))
        while most > self.worth + TIE * abs(self.worth):
            # The first within a tie of the greatest; if it is excluded, the next best is tried.
            place = int(np.argmax(worths >= most - TIE * abs(most)))
            chosen = (
                first.propositions[place // values.shape[1]],
                second.propositions[place % values.shape[1]],
            )
            rule = tuple(sorted(set(map(int, chosen[:length]))))
            if self.left_out is None or not self.left_out(rule):
                self.best, self.worth = rule, most
                break
            worths[place] = -math.inf
            most = float(worths.max())
        return best
