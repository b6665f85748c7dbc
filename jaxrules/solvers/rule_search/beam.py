"""Beam search (greedy search if the width is 1): quick, without a certificate.

Every level extends each partial conjunction by one proposition and keeps the `width` best
extensions that select different rows, among those that raise the value by more than the penalty on
the proposition and, if the objective has a potential, could still lead to something better. All
rows of weights of an objective are searched side by side.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.objectives import Floats, Objective
from jaxrules.solvers.rule_search.shortest import conclude
from jaxrules.solvers.rule_search.space import TIE, Found, SearchSpace, best_first, never
from jaxrules.tools.bits import pack, unpack
from jaxrules.tools.fits import Status

Rule = tuple[int, ...]
_BLOCK = 2**24
"""Row-proposition visits between two checks of the clock: some ten milliseconds."""
_PATIENCE = 3
"""With `per_unit`, a beam ends after this many levels without a better conjunction, because values
may rise for ever.
"""


def search_beam(
    space: SearchSpace,
    objective: Objective,
    *,
    width: int = 10,
    max_length: int | None = None,
    stopped: Callable[[], bool] = never,
) -> Found:
    """The best conjunction that a beam of `width` partial conjunctions reaches.

    Width 1 is the greedy search of "Better Short than Greedy": add the proposition that raises the
    value most, until none does; if two raise it equally, follow both. Even a stopped search has
    examined all single propositions.
    """
    return search_beams(space, objective, width=width, max_length=max_length, stopped=stopped)[0][0]


def search_beams(
    space: SearchSpace,
    objective: Objective,
    *,
    width: int = 10,
    max_length: int | None = None,
    count: int = 1,
    stopped: Callable[[], bool] = never,
) -> list[list[Found]]:
    """A beam search for every row of weights of the objective.

    Returns:
        Per row of weights, the `count` best conjunctions that select different rows and are worth
        more than the empty one, best first; the empty one if there are none.
    """
    terms = objective.terms(space)
    beams, status = run_beams(space, objective, terms, width, max_length, count, stopped)
    found = [
        [
            conclude(space, objective, row, rule, status, beam.evaluations, stopped=stopped)
            for _, rule in beam.ranked() or [(0.0, ())]
        ]
        for row, beam in zip(terms, beams, strict=True)
    ]
    # Their rows are summed in another order than the beam did: ties may change places.
    return [sorted(of_row, key=lambda one: -one.objective) for of_row in found]


class _Partial(NamedTuple):
    """A conjunction under construction, its merged rows as bits, and its value."""

    rule: Rule
    rows: np.ndarray
    value: float


class Beam:
    """The search for one row of weights: the conjunctions under construction, and the best ones so
    far, by the rows that they select.
    """

    def __init__(self, start: _Partial, worth_of_nothing: float, count: int) -> None:
        self.partials, self.worth_of_nothing, self.count = [start], worth_of_nothing, count
        self.best: dict[bytes, tuple[float, Rule]] = {}
        self.evaluations, self.idle_levels = 0, 0

    def ranked(self) -> list[tuple[float, Rule]]:
        """Worth and propositions, best first."""
        return sorted(self.best.values(), key=lambda entry: -entry[0])

    @property
    def floor(self) -> float:
        """A conjunction must be worth more than this to be kept."""
        return self.ranked()[-1][0] if len(self.best) == self.count else self.worth_of_nothing

    def select(
        self,
        space: SearchSpace,
        value: Floats,
        worth: Floats,
        outlook: Floats,
        objective: Objective,
        width: int,
    ) -> None:
        """Keep the best extensions. Value, worth and outlook are (partial conjunctions,
        propositions).
        """
        before = np.array([partial.value for partial in self.partials[: len(value)]])[:, None]
        # A proposition must earn its price, and its share of growth; rises below a tie are
        # rounding.
        rise = max(TIE, objective.growth) * np.abs(before) + objective.condition_price
        pays = np.flatnonzero(value > before + rise)
        different = self._different(space, value, pays[best_first(value.ravel()[pays])])
        # `different` is lazy: what is offered comes first, and the search for the next level goes
        # on where this one stopped.
        best = list(itertools.islice(different, self.count))
        known = len(self.best), self.floor
        for place, partial in best:
            self._offer(partial, float(worth.flat[place]))
        self.idle_levels = self.idle_levels + 1 if known == (len(self.best), self.floor) else 0
        self.evaluations += value.size
        if objective.per_unit and self.idle_levels >= _PATIENCE:
            self.partials = []
            return
        floor = self.floor
        promising = (
            partial
            for place, partial in itertools.chain(best, different)
            if outlook.flat[place] > floor
        )
        kept = list(itertools.islice(promising, width))
        # If weights are refitted, a proposition and its opposite are worth the same: keep both.
        if width == 1:
            least = kept[0].value - TIE * abs(kept[0].value) if kept else 0.0
            kept += [other for other in itertools.islice(promising, 1) if other.value >= least]
        self.partials = kept

    def _different(
        self, space: SearchSpace, value: Floats, places: NDArray[np.intp]
    ) -> Iterator[tuple[int, _Partial]]:
        """The extensions at these places, without those that select the rows of an earlier one."""
        seen: set[bytes] = set()
        for place in map(int, places):
            parent, proposition = self.partials[place // len(space)], place % len(space)
            rows = parent.rows & space.activations.bits[proposition]
            if rows.tobytes() not in seen:
                seen.add(rows.tobytes())
                yield place, _Partial((*parent.rule, proposition), rows, float(value.flat[place]))

    def _offer(self, partial: _Partial, worth: float) -> None:
        """Keep the conjunction if it is among the best."""
        rows = partial.rows.tobytes()
        least = self.best[rows][0] if rows in self.best else self.floor
        if worth > least + TIE * abs(least):
            self.best[rows] = worth, partial.rule
            if len(self.best) > self.count:
                del self.best[min(self.best, key=lambda key: self.best[key][0])]


def run_beams(
    space: SearchSpace,
    objective: Objective,
    terms: Floats,
    width: int,
    max_length: int | None,
    count: int = 1,
    stopped: Callable[[], bool] = never,
) -> tuple[list[Beam], Status]:
    """The beams of all rows of weights (terms as of `Objective.terms`), level by level."""
    everything = pack(np.ones((1, space.activations.n_patterns), bool))[0]
    first = (
        objective.value(terms.sum(axis=2).T)
        if objective.empty_is_rule
        # Less than any rule, so that a first proposition raises it, but finite: `select` takes a
        # share of it.
        else np.full(len(terms), -1e300)
    )
    starts = (_Partial((), everything, value) for value in first.tolist())
    beams = [
        Beam(start, objective.worth_of_nothing(row), count)
        for start, row in zip(starts, terms, strict=True)
    ]
    for length in range(1, space.longest(max_length) + 1):
        ends = list(itertools.accumulate(len(beam.partials) for beam in beams))
        if not ends[-1]:
            break
        if length > 1 and stopped():
            return beams, Status.TIME_LIMIT
        owners = np.repeat(np.arange(len(beams)), np.diff(ends, prepend=0))
        rows = [partial.rows for beam in beams for partial in beam.partials]
        value, potential = _extend(space, objective, terms, owners, rows, stopped)
        worth, outlook = objective.worth(value, length), objective.worth(potential, length + 1)
        for beam, end in zip(beams, ends, strict=True):
            mine = slice(end - len(beam.partials), end)
            beam.select(space, value[mine], worth[mine], outlook[mine], objective, width)
        if len(value) < len(rows):
            return beams, Status.TIME_LIMIT
    return beams, Status.CONVERGED


def _extend(
    space: SearchSpace,
    objective: Objective,
    terms: Floats,
    owners: NDArray[np.intp],
    bits: list[np.ndarray],
    stopped: Callable[[], bool],
) -> tuple[Floats, Floats]:
    """Value and potential of every extension of sets of rows, (sets, propositions); of fewer sets
    if stopped.
    """
    at_once = max(1, _BLOCK // max(1, terms.shape[1] * len(space) * space.activations.n_patterns))
    found = []
    for start in range(0, len(bits), at_once):
        if start and stopped():
            break
        rows = unpack(np.stack(bits[start : start + at_once]), space.activations.n_patterns)
        sums = _sums(space, terms, owners[start : start + at_once], rows)
        found.append((objective.value(sums), objective.potential(sums)))
    value, potential = zip(*found, strict=True)
    return np.concatenate(value), np.concatenate(potential)


def _sums(
    space: SearchSpace, terms: Floats, owners: NDArray[np.intp], rows: NDArray[np.bool_]
) -> Floats:
    """Sums of terms over those of some rows on which each proposition holds, (terms, sets,
    propositions).
    """
    from jaxrules.solvers.rule_search.kernels.extensions import extension_sums, sums_by_cells

    sums = np.empty((terms.shape[1], len(rows), len(space)))
    cells = space.cells
    if cells is None:
        extension_sums(space.masks, terms, owners, rows, sums)
    else:
        of_cells = np.empty((terms.shape[1], cells.number))
        sums_by_cells(cells.of_rows, cells.ends, cells.parts, terms, owners, rows, of_cells, sums)
    return sums
