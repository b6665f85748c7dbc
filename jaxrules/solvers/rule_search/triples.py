"""The exact search over all conjunctions of at most three of a few propositions, by products.

With the 0/1 matrix P of the propositions on the rows of one of them, the sums of a term x over the
rows of all triples with it are P' diag(x) P. For quotients of sums, those of g and h bound the
worth; triples are then evaluated in full in descending order of these bounds, until no bound
exceeds the best worth. A proposition and its complement share a column of P: the sums of one are
those of all rows less those of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.objectives import Floats, Objective
from jaxrules.solvers.rule_search.pairs import LeftOut, search_pairs
from jaxrules.solvers.rule_search.ranking import ranking_of
from jaxrules.solvers.rule_search.shortest import conclude
from jaxrules.solvers.rule_search.space import IN_SPAN, TIE, Found, SearchSpace, best_first, never
from jaxrules.tools.bits import distinct, pack
from jaxrules.tools.fits import Status

_ENTRIES = 1 << 22
"""About the most entries of a matrix in memory at once."""
_FIRST = 16
"""The number of triples that are evaluated first; then twice as many, and so on."""
_ROUNDING = 1e-9
"""What rounding may take from a bound, relative."""


def search_triples(
    space: SearchSpace,
    objective: Objective,
    *,
    max_evaluations: int | None = None,
    left_out: LeftOut | None = None,
    on_device: bool = False,
    stopped: Callable[[], bool] = never,
) -> Found:
    """A best conjunction of at most three propositions, with a certificate.

    Arguments and result as for `search_pairs`. The limit is checked between two columns; beyond it,
    only the bound on all subsets of the rows remains.
    """
    terms = objective.one_row(space)
    best = search_pairs(space, objective, left_out=left_out, on_device=on_device, stopped=stopped)
    assert best.bound is not None
    bound, evaluations, status = best.bound, best.evaluations, best.status
    bounds = _Bounds(space, objective, terms)
    floor = best.objective * (1.0 + TIE)
    found = [_Triples(np.zeros((0, 3), np.intp), np.zeros(0))]
    for rank, place in enumerate(bounds.order[:-2].tolist()):
        if stopped() or (max_evaluations is not None and evaluations >= max_evaluations):
            status = Status.TIME_LIMIT if stopped() else Status.MAX_ITERATIONS
            any_rows = objective.bounds(terms, np.ones((terms.shape[1], 1)))
            bound = max(bound, float(np.max(objective.worth(any_rows, 3))))
            break
        sides = [side for side in (0, 1) if bounds.propositions[place, side] >= 0]
        if on_device:
            sides = [side for side in sides if bounds.ranked(place, side, stopped) > floor]
        later = bounds.order[rank + 1 :]  # a triple is found once, from the first of its columns
        evaluations += bounds.count(place, later)
        found += bounds.above(floor, place, sides, later)
    triples = _Triples(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    rule, worth, left = _best(space.masks, objective, terms, best, triples, left_out, stopped)
    if left > worth * (1.0 + TIE):
        status = Status.TIME_LIMIT
    result = conclude(
        space, objective, terms, rule, status, evaluations, max(bound, worth, left), stopped=stopped
    )
    assert result.bound is not None
    return replace(result, bound=max(result.bound, result.objective * (1.0 + TIE)))


class _Triples(NamedTuple):
    """Triples of propositions, (triples, 3), and bounds on their worths, (triples,)."""

    propositions: NDArray[np.intp]
    bounds: Floats


def _best(
    masks: NDArray[np.uint8],
    objective: Objective,
    terms: Floats,
    pair: Found,
    found: _Triples,
    left_out: LeftOut | None,
    stopped: Callable[[], bool],
) -> tuple[tuple[int, ...], float, float]:
    """The best triple, or the best pair, with its worth, and a bound on those not evaluated."""
    best, worth = pair.propositions, pair.objective
    triples, bounds = found
    order, columns = best_first(bounds), masks.T.copy()
    at_once = max(_FIRST, _ENTRIES // len(masks))
    start, size = 0, _FIRST
    while start < len(order) and bounds[order[start]] > worth * (1.0 + TIE):
        if stopped():
            return best, worth, float(bounds[order[start]])
        some = triples[np.sort(order[start : start + size])]
        holds = columns[some[:, 0]] & columns[some[:, 1]] & columns[some[:, 2]]
        values = objective.value(terms @ holds.T.astype(np.float64))
        worths = np.asarray(objective.worth(values, 3), np.float64)
        while (most := float(worths.max())) > worth * (1.0 + TIE):
            # The first within a tie of the greatest; if it is excluded, the next best is tried.
            place = int(np.argmax(worths >= most - TIE * abs(most)))
            rule = tuple(sorted(some[place].tolist()))
            if left_out is None or not left_out(rule):
                best, worth = rule, most
            worths[place] = -np.inf
        start, size = start + size, min(2 * size, at_once)
    return best, worth, -np.inf


class _Bounds:
    """Bounds on the worths of triples.

    Attributes:
        columns: 1 for the rows of a proposition or of its complement, whichever are fewer, (merged
            rows, columns).
        propositions: of every column: the one that holds for these rows, and the one that holds for
            the others, (columns, 2); -1 for none.
        order: the columns, those of the best single propositions first.
    """

    def __init__(self, space: SearchSpace, objective: Objective, terms: Floats) -> None:
        self.space, self.objective, self.terms = space, objective, terms
        bits, n_rows = space.activations.bits, space.activations.n_patterns
        odd = bits[:, :1] & np.uint64(1) == 1
        alike = np.where(odd, bits ^ pack(np.ones((1, n_rows), bool)), bits)
        first, column = distinct(alike)
        large = np.bitwise_count(alike[first]).sum(axis=1, dtype=np.int64) > n_rows // 2
        self.columns = space.masks[:, first] ^ (large ^ odd[first, 0])
        self.propositions = np.full((len(first), 2), -1)
        # From the last to the first, which wins among copies.
        order = np.arange(len(space))[::-1]
        self.propositions[column[order], (odd[:, 0] ^ large[column])[order].astype(int)] = order
        self.g_and_h: Floats | None = None  # of one class after another
        if objective.formula == "square":
            by_class = terms.reshape(objective.classes, -1, n_rows)
            self.g_and_h = by_class[:, :2].reshape(-1, n_rows)
            self.everywhere = _products(self.columns, self.g_and_h)
            self.whole = self.g_and_h.sum(axis=1)
            # What rounding may take from differences of sums of up to all rows.
            per_row = 8 * np.finfo(np.float64).eps * np.abs(self.g_and_h).sum(axis=1)
            self.slack = (n_rows * per_row).reshape(-1, 2, 1, 1).swapaxes(0, 1)
        values, self.shares = self._alone()
        held = np.where(self.propositions < 0, -np.inf, values[self.propositions])
        self.order = best_first(held.max(axis=1))

    def _alone(self) -> tuple[Floats, Floats]:
        """The values of single propositions, and `Objective.shares`, (classes, propositions)."""
        n_rows, n = self.space.masks.shape
        step = max(1, _ENTRIES // (n_rows + 1))
        values, shares = np.zeros(n), np.zeros((self.objective.classes, n))
        for start in range(0, n, step):
            some = slice(start, start + step)
            members = self.space.masks[:, some].astype(np.float64)
            values[some] = self.objective.value(self.terms @ members)
            if self.g_and_h is not None:
                shares[:, some] = self.objective.shares(self.terms, members)
        return values, np.maximum(shares - IN_SPAN, 0.0)  # they were raised to it

    def count(self, place: int, later: NDArray[np.intp]) -> int:
        """The number of triples of a proposition of this column and two of later ones."""
        held = (self.propositions >= 0).sum(axis=1)
        return int(held[place] * (held[later].sum() ** 2 - (held[later] ** 2).sum()) // 2)

    def ranked(self, place: int, side: int, stopped: Callable[[], bool]) -> float:
        """A device's bound on the worth of all triples with a proposition."""
        inside = self.space.selected_groups((int(self.propositions[place, side]),))
        ranking = ranking_of(self.space)
        best = ranking.best(self.objective, self.terms, 1, stopped, inside=inside, beside=1)
        return np.inf if best is None else best[0].worth

    def above(
        self, floor: float, place: int, sides: list[int], later: NDArray[np.intp]
    ) -> Iterator[_Triples]:
        """Of the propositions on some sides of a column, each with two of later columns: the
        triples with bounds above a floor.
        """
        # Both propositions of every later column, and the pairs of two columns.
        some, of = self.propositions[later].T.ravel(), np.tile(np.arange(len(later)), 2)
        pairs = (of[:, None] < of) & (some[:, None] >= 0) & (some >= 0)
        for side, values in zip(sides, self._values(place, sides, later), strict=True):
            worths = np.where(pairs, self.objective.worth(values, 3), -np.inf)
            first, second = np.nonzero(worths > floor)
            given = np.full(len(first), self.propositions[place, side])
            triples = np.column_stack([given, some[first], some[second]])
            yield _Triples(triples, worths[first, second])

    def _values(self, place: int, sides: list[int], later: NDArray[np.intp]) -> Iterator[Floats]:
        """Bounds on the values, for every side: (2 later columns, 2 later columns)."""
        if self.g_and_h is None:
            yield from [np.asarray(np.inf)] * len(sides)
            return
        rows = np.flatnonzero(self.columns[:, place])
        terms = self.g_and_h[:, rows]
        # On the rows of the column, and on the others: for pairs, and for all these rows.
        inside = _products(self.columns[rows][:, later], terms), terms.sum(axis=1)
        outside = self.everywhere[:, later][:, :, later] - inside[0], self.whole - inside[1]
        g_slack, h_slack = self.slack
        ridge = getattr(self.objective, "ridge", 0.0)
        of_each = self.shares[:, self.propositions[later].T.ravel()]
        of_pairs = np.maximum(of_each[:, :, None], of_each[:, None])
        for side in sides:
            both, whole = (inside, outside)[side]
            alone = np.diagonal(both, axis1=1, axis2=2)
            second = alone[:, None] - both  # without the first
            neither = whole[:, None, None] - alone[:, :, None] - second
            sums = np.block([[both, second.swapaxes(1, 2)], [second, neither]])
            g, h = sums.reshape(-1, 2, *sums.shape[1:]).swapaxes(0, 1)
            gain = (np.maximum(g, 0.0) if self.objective.one_sided else np.abs(g)) + g_slack
            # A triple selects a subset of the rows of each of its propositions.
            share = np.maximum(of_pairs, self.shares[:, self.propositions[place, side], None, None])
            with np.errstate(divide="ignore", invalid="ignore"):  # without a ridge
                values = gain**2 / (ridge + share * np.maximum(h - h_slack, 0.0))
            yield values.sum(axis=0) * (1.0 + _ROUNDING)


def _products(masks: NDArray[np.uint8], terms: Floats) -> Floats:
    """The sums of every term over the rows that two columns share, (terms, columns, columns)."""
    n_rows, n = masks.shape
    sums = np.zeros((len(terms), n, n))
    step = max(1, _ENTRIES // max(1, n))
    for start in range(0, n_rows, step):
        holds = masks[start : start + step].astype(np.float64)
        for total, term in zip(sums, terms, strict=True):
            total += holds.T @ (holds * term[start : start + step, None])
    return sums
