"""Rules with conditions on sparse linear combinations of columns, for `jaxrules.boosting`.

A stage of boosting compares the best rule of conditions on single columns, which is proved, with
the best one found here. A rule may have a condition w'x >= t with up to `max_nonzeros` nonzeros in
w if the gain justifies the complexity: both are ranked by

    objective / C^1.25,    C = 1 + sum over the conditions of (1 + nonzeros).

**Directions.** On some rows, with g and h the derivatives of the loss, the scores that would lower
the risk most are the Newton responses -g / h. The path of the lasso for these, with row weights h,
yields sets of columns that together explain them (`jaxrules.solvers.linear.lars`). Weighted least
squares turns each set of at least two columns into a direction w. Directions of earlier rules are
tried again.

For classes fitted together, each class proposes directions by its own derivatives.

**Cuts.** One matrix product computes the sums over the selected rows that an objective needs, for
all directions, cut points and sets of rows at once. It uses a sample of 8192 rows if there are
more; the best rules are then compared on all rows.

**Conjunctions.** The best single conditions, by gain and by gain per complexity, and their
complements are extended: by directions fitted to their rows, by directions of earlier rules, and,
if they combine columns themselves, by single columns.

**Sweep.** After every stage, each condition of a learned rule is improved with the others fixed:
the rule is removed, all weights are refitted, and w is fitted again on the same columns or rotated
slightly. A change is kept if, after a refit, it lowers the risk by at least a share of 1e-4.

Columns are standardised, with an indicator per category (`jaxrules.ensembles.oblique`). Whether a
missing number satisfies a condition is decided by what gains more. `monotone` fixes signs: in a
rule of positive weight, the entries of w have the signs of their columns' directions.

**Proof.** Rules of one condition on at most two columns (`max_length=1, max_nonzeros=2`) are tried
by all half-planes of all pairs of columns (`jaxrules.solvers.half_planes`), so that the stage has a
bound. Wider directions and conjunctions with directions have none.

The method is the library's own; benchmarks/oblique.py compares it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Table
from jaxrules.ensembles.oblique import Standardised, n_encoded, readable
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import Activations, check_memory
from jaxrules.solvers import half_planes
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.linear.lars import Subset, lasso_subsets
from jaxrules.solvers.rule_search import Objective, SearchSpace
from jaxrules.solvers.rule_search.space import TIE, best_first
from jaxrules.tools.bits import n_words

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]
Signs = NDArray[np.bool_]
"""Whether the weight of a rule may be negative, and positive: (..., 2)."""

PRICE: Mapping[str, float] = MappingProxyType({"condition_units": 2.0, "power": 1.25})
"""What a condition on a single column adds to the complexity, and the power of the complexity by
which gains are divided. A smaller power admits wide rules earlier, a larger one later.
"""
_SCREENED = 8192
"""At most this many rows are used to screen cuts."""
_RIDGE = 1e-3
"""The ridge on directions, in standardised columns and relative to the curvature."""
_NEGLIGIBLE = 1e-3
"""Entries of a direction below this share of the largest become 0."""
_FEWEST_ROWS, _FEWEST_TO_FIT = 10, 20
"""The fewest rows of a rule to extend it, and to fit directions to it."""
_PARENTS, _FITTED = 4, 2
"""The number of conditions to extend, by each of the two rankings, and the number of those to whose
rows, and to the rows of whose complements, directions are fitted.
"""
_FURTHER_STEPS = 3
"""Steps of the lasso path beyond `max_nonzeros`."""
_COMPARED = 16
"""The number of rules that are compared on all rows."""
_TURNS = (-0.3, -0.1, 0.1, 0.3)
"""Changes that a sweep tries to an entry of a direction of length one."""
_SECONDS_PER_ENTRY = 5e-7
"""Time to standardise a column, per row."""
_ENTRIES = 1 << 22
"""Entries of the largest array of a product."""
_MANY_CUTS = 64
"""With more cuts than this, sums come from sorted rows."""
_EQUAL = 1e-5
"""Gains closer than this, relative to each other, are equal up to the rounding of float32."""
_DISTINCT = 1e-9
"""Values of a direction closer than this are equal up to rounding."""


class ObliqueProposition(NamedTuple):
    """w'x + b >= 0, in standardised columns; `missing`: whether a missing number satisfies it."""

    w: Floats
    b: float
    missing: bool

    @property
    def units(self) -> int:
        """Its part of the complexity."""
        return 1 + int(np.count_nonzero(self.w))

    @property
    def complement(self) -> ObliqueProposition:
        return ObliqueProposition(-self.w, -self.b, not self.missing)


@dataclass(frozen=True, eq=False)
class ObliqueRule:
    """A rule with a condition on a combination of columns.

    Attributes:
        propositions: at least one of them combines two or more columns.
        worth: objective divided by complexity.
    """

    propositions: tuple[ObliqueProposition, ...]
    worth: float


@dataclass(frozen=True, eq=False)
class _ObliqueCandidate:
    """A conjunction being built: its gain and gain per complexity on the screened rows, and the
    signs that its weight may have.
    """

    propositions: tuple[ObliqueProposition, ...]
    gain: float
    worth: float
    may: Signs

    @property
    def is_oblique(self) -> bool:
        return any(np.count_nonzero(one.w) > 1 for one in self.propositions)

    @property
    def units(self) -> int:
        return 1 + sum(one.units for one in self.propositions)


class ObliqueSpace:
    """The columns of a table as directions see them.

    Attributes:
        columns: standardised.
        sides: required signs of the coefficients in a rule of positive weight, 0 for any,
            (columns,).
        n_cuts: the number of cut points per direction; None for all.
    """

    def __init__(
        self,
        table: Table,
        weights: Floats,
        constraints: Constraints,
        max_nonzeros: int,
        n_cuts: int | None,
        seed: int,
    ) -> None:
        self.table = table
        # A blanked column is constant and gets no place among the standardised ones, so that no
        # direction can use a forbidden column.
        blanked = constraints.blanked(table)
        check_memory(
            table.n_rows, n_encoded(table), 32.0, what="columns",
            remedy="set max_nonzeros=1 for conditions on single columns only",
        )  # fmt: skip
        self.columns = Standardised.of(blanked, weights)
        self.values, self.missing = self.columns.values, self.columns.missing
        self.sides = self.columns.directions(constraints)
        self.max_nonzeros, self.n_cuts = min(max_nonzeros, len(self.values)), n_cuts
        n = table.n_rows
        self.screened: Any = slice(None)
        if n > _SCREENED:
            self.screened = np.sort(np.random.default_rng(seed).choice(n, _SCREENED, replace=False))
        self.few_values = np.ascontiguousarray(self.values[:, self.screened])
        self.few_missing = self.missing[:, self.screened]
        self.units = np.eye(len(self.values))
        self.unit_cuts = self.cuts(*self.project(self.units), self.n_cuts)

    @cached_property
    def pairs(self) -> half_planes.HalfPlaneSearch | None:
        """The half-planes of all pairs of columns, if all can be tried: few rows, and no required
        signs.
        """
        columns = self.values
        if len(self.missing):
            columns = np.where(self.missing, np.nan, columns)
        if self.sides.any() or half_planes.work(columns) > half_planes.MOST_WORK:
            return None
        return half_planes.HalfPlaneSearch(columns)

    def project(self, directions: Floats) -> tuple[Floats, Rows]:
        """The values of directions on the screened rows, NaN if a number is missing, and a mask of
        these: (directions, rows); the mask is (0, rows) if X has no missing numbers.
        """
        values = directions @ self.few_values
        lost = self.few_missing
        if len(lost):
            lost = (directions != 0).astype(np.float32) @ lost.astype(np.float32) > 0
            # A direction is missing where any of its columns is: the value of the others alone
            # would be compared with a cut that was made for all.
            values[lost] = np.nan
        return values, lost

    def cuts(self, values: Floats, lost: Rows, n_cuts: int | None) -> Floats:
        """Cut points of directions, midway between distinct values, at quantiles or all of them;
        padded with infinity. Shape (directions, cuts).
        """
        n = values.shape[1]
        order = np.sort(values, axis=1)  # missing ones last
        known = n - lost.sum(axis=1) if len(lost) else np.full(len(values), n)
        rises = np.diff(order, axis=1) > _DISTINCT  # False at missing ones
        n_gaps = rises.sum(axis=1)
        most = int(n_gaps.max(initial=0)) if n_cuts is None else n_cuts
        # Padding: no value reaches an infinite cut. Its lower side is the rule that it extends,
        # which has fewer conditions and so is worth more.
        result = np.full((len(values), most), np.inf)
        many = n_gaps > most
        if many.any():
            shares = np.linspace(0, 1, most + 2)[1:-1]
            at = np.clip(np.round(shares * known[many, None]).astype(int), 1, None)
            # the last value before each place that is smaller than the value there
            before = np.maximum.accumulate(np.where(rises[many], np.arange(n - 1), -1), axis=1)
            gap = np.take_along_axis(before, at - 1, axis=1)
            middle = (
                np.take_along_axis(order[many], np.maximum(gap, 0), axis=1)
                + np.take_along_axis(order[many], gap + 1, axis=1)
            ) / 2
            result[many] = np.where(gap >= 0, middle, np.inf)
        for k in np.flatnonzero(~many).tolist():
            gaps = np.flatnonzero(rises[k])
            result[k, : len(gaps)] = (order[k, gaps] + order[k, gaps + 1]) / 2
        return result

    def holds(self, one: ObliqueProposition, rows: Any = slice(None)) -> Rows:
        """On which rows a proposition holds."""
        on = np.flatnonzero(one.w)
        holds = one.w[on] @ self.values[on][:, rows] + one.b >= 0
        if len(self.missing):
            lost = self.missing[on][:, rows].any(axis=0)
            holds = np.where(lost, one.missing, holds)
        return holds

    def condition(self, one: ObliqueProposition, among: Rows) -> tuple[Condition, Rows]:
        """The proposition as a condition on the original columns, with as few digits as these rows
        allow, and the rows that satisfy it.
        """
        return readable(self.columns, self.table, one.w, one.b, one.missing, among)

    def proposition(self, condition: Condition) -> ObliqueProposition | None:
        """A threshold on a single column as a proposition, midway between the values on its two
        sides: a threshold that is a value itself could change sides when it is standardised. None
        for other conditions, and if no two values are on different sides.
        """
        low, high = math.isfinite(condition.lower), math.isfinite(condition.upper)
        if condition.categories is not None or low == high:
            return None
        # Without a place the column is constant. With one finite bound only, the condition is one
        # side of one threshold, as w'x >= t is.
        places = [j for j, c in enumerate(self.columns.encoded) if c.feature == condition.feature]
        if not places or not isinstance(condition.feature, int):
            return None
        j, side = places[0], 1.0 if low else -1.0
        held = Conjunctions.build(self.table.schema, [[condition]]).satisfied(self.table)[:, 0]
        known = ~self.table.missing_mask(condition.feature)
        values = side * self.values[j]
        below = float(values[known & ~held].max(initial=-math.inf))
        above = float(values[known & held].min(initial=math.inf))
        if not -math.inf < below < above < math.inf:
            return None
        return ObliqueProposition(side * self.units[j], -(below + above) / 2, condition.missing)

    def signs(self, directions: Floats) -> Signs:
        """Which weights a rule with the condition w'x >= t may have, (directions, 2)."""
        # A rule of positive weight raises the score with the columns of w > 0, one of negative
        # weight with those of w < 0. So a weight is allowed if no column goes against its side.
        along = directions * self.sides
        return np.stack([(along <= 0).all(axis=1), (along >= 0).all(axis=1)], axis=1)


def seconds_to_make(table: Table) -> float:
    """Roughly how long it takes to make an `ObliqueSpace`."""
    return _SECONDS_PER_ENTRY * table.n_rows * n_encoded(table)


def row_terms(objective: Objective, n_rows: int) -> Floats:
    """The numbers that an objective sums over the rows of a rule, (sums, rows)."""
    # A space without propositions, in which every row is a group of its own: terms are then per
    # row.
    each = Activations(np.zeros((0, n_words(n_rows)), np.uint64), np.arange(n_rows))
    none = np.zeros(0, np.int32)
    return objective.one_row(SearchSpace(each, none, none > 0, none.astype(np.uint16)))


@dataclass(eq=False)
class ObliqueStage:
    """The search of one stage: the space, and what a rule is worth."""

    space: ObliqueSpace
    objective: Objective
    gradient: Floats
    curvature: Floats
    stopped: Callable[[], bool]

    def __post_init__(self) -> None:
        self.terms = row_terms(self.objective, len(self.gradient))
        screened = self.space.screened
        few = self.terms[:, screened]
        # (targets, rows), a target for each class
        gradient, curvature = (np.atleast_2d(one.T) for one in (self.gradient, self.curvature))
        self.few_gradient, self.few_curvature = gradient[:, screened], curvature[:, screened]
        # Screening sums in float32, so each term is first divided by its largest size. The sums of
        # a sample are then scaled up to all rows: the ridge of the objective is meant for sums over
        # these.
        self.scale = np.abs(few).max(axis=1, initial=np.finfo(np.float32).tiny)
        self.few = (few / self.scale[:, None]).astype(np.float32)
        self.scale *= self.terms.shape[1] / few.shape[1]
        self.everywhere = np.ones(few.shape[1], bool)

    def rows(self, propositions: Iterable[ObliqueProposition], rows: Any = None) -> Rows:
        """On which of these rows (None: the screened ones) all propositions hold."""
        rows = self.space.screened if rows is None else rows
        held = np.ones(self.terms.shape[1], bool)[rows]
        for one in propositions:
            held &= self.space.holds(one, rows)
        return held

    def directions(self, held: Rows) -> list[Floats]:
        """Directions fitted to each of some sets of rows, (sets, rows): (directions, columns)
        each.
        """
        space = self.space
        # The lasso for the responses -g / h with row weights h needs only the moments h (-g / h) =
        # -g: rows without curvature divide nothing. Sets of rows and classes are problems side by
        # side.
        weights = (held[:, None] * self.few_curvature).reshape(-1, held.shape[1])
        subsets = lasso_subsets(
            space.few_values,
            weights,
            (held[:, None] * -self.few_gradient).reshape(weights.shape),
            largest=space.max_nonzeros,
            steps=space.max_nonzeros + _FURTHER_STEPS,
            sides=space.sides,
        )
        fitted = [
            [
                w
                for one in of_target
                if len(one.columns) > 1 and (w := self._fitted(one, total)) is not None
            ]
            for of_target, total in zip(subsets, weights.sum(axis=1).tolist(), strict=True)
        ]
        n = len(self.few_gradient)
        return [
            _distinct(itertools.chain(*fitted[p : p + n]), len(space.values))
            for p in range(0, len(fitted), n)
        ]

    def _fitted(self, subset: Subset, total: float) -> Floats | None:
        """The least-squares direction on a set of columns, of length one; None if fewer than two
        columns remain.
        """
        on = np.arange(len(subset.columns))
        # Entries that are negligible or against their side go, which changes the others: solve
        # again until all are kept. Every round drops at least one, so that the loop ends.
        gram = subset.gram + _RIDGE * total * np.eye(len(on))
        while len(on) > 1:
            w = np.linalg.solve(gram[on[:, None], on], subset.slope[on])
            kept = np.abs(w) > _NEGLIGIBLE * np.abs(w).max()
            kept &= w * self.space.sides[subset.columns[on]] >= 0
            if kept.all():
                result = np.zeros(len(self.space.values))
                result[subset.columns[on]] = w / np.linalg.norm(w)
                return result
            on = on[kept]
        return None

    def cut(
        self,
        directions: Floats,
        sets: Sequence[_ObliqueCandidate],
        held: Rows,
        cuts: Floats | None = None,
        n_cuts: int | None = None,
    ) -> list[list[_ObliqueCandidate]]:
        """The best cut of every direction, for each of some sets of rows.

        Args:
            directions: (directions, columns).
            sets: the conjunctions to extend.
            held: their rows, (sets, rows).
            cuts: (directions, cuts); None takes them from the rows of a single set.

        Returns:
            For each set, its extensions, at most one per direction.
        """
        space = self.space
        found: list[list[_ObliqueCandidate]] = [[] for _ in sets]
        if not len(directions) or not sets:
            return found
        values, lost = space.project(directions)
        if cuts is None:
            some = held[0]
            cuts = space.cuts(values[:, some], lost[:, some], n_cuts or space.n_cuts)
        n_cuts, n_sets = max(1, cuts.shape[1]), len(sets)
        # Terms that are 0 outside a set of rows: one product with the cuts then serves all sets.
        terms = np.concatenate([self.few * one for one in held]).T  # (rows, sets x sums)
        size = max(1, _ENTRIES // (n_cuts * max(values.shape[1], n_sets * 4 * len(self.few))))
        for start in range(0, len(directions), size):
            if start and self.stopped():
                break
            part = slice(start, start + size)
            best = self._best(directions[part], values[part], lost[part], cuts[part], terms, sets)
            for extensions, of_set in zip(found, zip(*best, strict=True), strict=True):
                extensions += [one for one in of_set if one is not None]
        return found

    def _best(
        self,
        directions: Floats,
        values: Floats,
        lost: Rows,
        cuts: Floats,
        terms: NDArray[np.float32],
        sets: Sequence[_ObliqueCandidate],
    ) -> list[list[_ObliqueCandidate | None]]:
        """The best extension of each set by each of a few directions; None if there is none."""
        shape = (len(sets), len(self.few))
        above = _sums_above(values, cuts, terms).reshape(*cuts.shape, *shape)
        absent = (lost.astype(np.float32) @ terms).reshape(len(lost), 1, *shape)
        total = terms.sum(axis=0).reshape(shape)
        below = total - above
        # A cut gives a rule for either side, and each may take in the rows with a missing number or
        # leave them out: four ways. These rows are never `above` (their value is NaN), so that they
        # are in `below`, and only the two other ways need their sums (`absent`). The order of the
        # ways is decoded below: odd ones are the lower side, the last two take in missing numbers.
        ways = [above, below]  # without missing numbers, the first two
        if len(lost):
            ways = [above, below - absent, above + absent, below]
        sums = (
            np.stack(ways).astype(np.float64) * self.scale
        )  # (ways, directions, cuts, sets, sums)
        gains = self.objective.value(np.moveaxis(sums, -1, 0))
        may = self._may(directions, sets)
        gains *= np.where(
            sums[..., 0] > 0, may[..., 0][:, :, None], may[..., 1][:, :, None]
        )  # a positive sum of gradients gives a negative weight
        # Cuts before ways, (directions, cuts x ways, sets): `divmod` below undoes this.
        gains = np.moveaxis(gains, 0, 2).reshape(len(directions), -1, len(sets))
        # the first of equal ones: float32 sums round a cut and its complement differently
        place = (gains >= gains.max(axis=1, keepdims=True) * (1 - _EQUAL)).argmax(axis=1)
        gain = np.take_along_axis(gains, place[:, None], axis=1)[:, 0]
        n_ways = len(ways)
        result: list[list[_ObliqueCandidate | None]] = []
        for k, w in enumerate(directions):
            row: list[_ObliqueCandidate | None] = []
            for s, one in enumerate(sets):
                cut, way = divmod(int(place[k, s]), n_ways)
                if not gain[k, s] > 0:
                    row.append(None)
                    continue
                # w'x >= cut for the upper side, -w'x >= -cut for the lower one
                side = -1.0 if way % 2 else 1.0
                new = ObliqueProposition(side * w, -side * float(cuts[k, cut]), way > 1)
                propositions = (*one.propositions, new)
                worth = gain[k, s] / self.objective.divisor(
                    len(propositions), one.units + new.units
                )
                row.append(
                    _ObliqueCandidate(propositions, float(gain[k, s]), float(worth), may[way, k, s])
                )
            result.append(row)
        return result

    def _may(self, directions: Floats, sets: Sequence[_ObliqueCandidate]) -> Signs:
        """The signs that the weight of an extension may have, (ways, directions, sets, 2)."""
        above = self.space.signs(directions)
        # The lower side -w'x >= -t has the signs of w'x >= t exchanged. A rule may have a weight
        # only if all of its conditions allow it.
        both = np.stack([above, above[:, ::-1], above, above[:, ::-1]])[:, :, None]
        signs = both & np.stack([one.may for one in sets])
        return signs if len(self.space.missing) else signs[:2]


def _rising(w: Floats) -> Floats:
    """The direction, or its negative, whose first weight is positive."""
    return np.asarray(np.sign(w[np.flatnonzero(w)[0]]) * w)


def _distinct(directions: Iterable[Floats], n_columns: int) -> Floats:
    """The directions that differ in two digits from all earlier ones and their negatives, with a
    positive first weight: of equal sides, "at least" comes first.
    """
    kept: dict[bytes, Floats] = {}
    for w in map(_rising, directions):
        # Adding 0 turns -0 into 0, whose bytes differ.
        kept.setdefault((np.round(w, 2) + 0.0).tobytes(), w)
    return np.array(list(kept.values())).reshape(-1, n_columns)


def _sums_above(values: Floats, cuts: Floats, terms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sums of the terms over the rows with a value of at least the cut, (directions, cuts,
    terms).
    """
    # A 0/1 matrix costs rows x cuts, which one matrix product repays if cuts are few. Otherwise
    # rows are sorted by descending value: those at or above a cut are a prefix, and its sum a
    # cumulative one, in float64 as it has as many summands as there are rows.
    if cuts.shape[1] <= _MANY_CUTS:
        above = (values[:, None] >= cuts[:, :, None]).reshape(-1, values.shape[1])
        return (above.astype(np.float32) @ terms).reshape(*cuts.shape, -1)
    result = np.empty((*cuts.shape, terms.shape[1]), np.float32)
    for k, (value, cut) in enumerate(zip(values, cuts, strict=True)):
        order = np.argsort(-value)  # missing ones last
        sums = np.concatenate(
            [np.zeros((1, terms.shape[1])), np.cumsum(terms[order], axis=0, dtype=np.float64)]
        )
        result[k] = sums[np.searchsorted(-value[order], -cut, side="right")]
    return result


@one_blas_thread()
def best_rule(
    space: ObliqueSpace,
    objective: Objective,
    gradient: Floats,
    curvature: Floats,
    earlier: Sequence[Floats],
    longest: int | None,
    stopped: Callable[[], bool],
) -> ObliqueRule | None:
    """The best rule found with a condition on a combination of columns; None if there is none, or
    if time ran out.

    Args:
        space: the columns.
        objective: the objective of a rule.
        gradient, curvature: of the loss at the rows, times their weights, (rows,), or (rows,
            classes) for classes fitted together.
        earlier: directions of rules found before, (columns,) each.
        longest: the most conditions of a rule; None for any number.
        stopped: asked between the parts of the search.
    """
    stage = ObliqueStage(space, objective, gradient, curvature, stopped)
    root = _ObliqueCandidate((), 0.0, 0.0, np.ones(2, bool))
    every = stage.everywhere[None]
    reused = _distinct(earlier, len(space.values))
    reused_cuts = space.cuts(*space.project(reused), space.n_cuts)
    fresh = stage.directions(every)[0]
    # Single columns are in the first level because they may be one condition of a rule with a
    # direction; by themselves, they belong to the search that is proved.
    level = [
        *stage.cut(space.units, [root], every, space.unit_cuts)[0],
        *stage.cut(reused, [root], every, reused_cuts)[0],
        *stage.cut(fresh, [root], every)[0],
    ]
    found, length, most = list(level), 1, -math.inf
    while (longest is None or length < longest) and level and not stopped():
        # Longer rules are worth trying while the best worth still rises from one length to the
        # next.
        best = max(one.worth for one in level)
        if length > 1 and best <= most:
            break
        most, length = max(most, best), length + 1
        level = _extended(stage, level, reused, reused_cuts)
        found += level
    found = _best_first((one for one in found if one.is_oblique), "worth")
    return _best_on_all_rows(stage, found[:_COMPARED])


@one_blas_thread()
def best_pair(
    space: ObliqueSpace, objective: Objective, stopped: Callable[[], bool]
) -> tuple[ObliqueRule | None, float | None]:
    """The best rule of one condition on two columns, and a bound on the worth of all such rules;
    None if time ran out, if columns have required signs, or if trying all takes too long.
    """
    pairs = space.pairs
    if pairs is None:
        return None, None
    terms = row_terms(objective, pairs.columns.shape[1])
    found = pairs.best(terms, objective.value, stopped)
    units = 1 + ObliqueProposition(np.ones(2), 0.0, False).units
    divisor = float(objective.divisor(1, units))
    bound = None if found.bound is None else found.bound / divisor
    if found.best is None or not found.best.value > 0:
        return None, bound
    w = np.zeros(len(pairs.columns))
    w[list(found.best.columns)] = found.best.w
    proposition = ObliqueProposition(w, -found.best.threshold, found.best.missing)
    return ObliqueRule((proposition,), found.best.value / divisor), bound


def _extended(
    stage: ObliqueStage, level: list[_ObliqueCandidate], reused: Floats, reused_cuts: Floats
) -> list[_ObliqueCandidate]:
    """The best conjunctions of a level, each with one further condition."""
    space = stage.space
    parents = _best_first(level, "worth")[:_PARENTS]
    parents += [one for one in _best_first(level, "gain")[:_PARENTS] if one not in parents]
    sets: list[_ObliqueCandidate] = []
    fits: list[bool] = []
    for place, parent in enumerate(parents):
        sets.append(parent)
        if len(parent.propositions) == 1:
            # The complement of a good condition may be the better one to extend: what its rows
            # lack, a second condition can add. Longer conjunctions have no complement that is a
            # conjunction.
            other = parent.propositions[0].complement
            sets.append(
                _ObliqueCandidate(
                    (other,), parent.gain, parent.worth, space.signs(other.w[None])[0]
                )
            )
        fits += [place < _FITTED] * (len(sets) - len(fits))
    held = np.stack([stage.rows(one.propositions) for one in sets])
    enough = held.sum(axis=1) >= _FEWEST_ROWS
    slanted = np.array([one.is_oblique for one in sets]) & enough
    found: list[_ObliqueCandidate] = []
    for some, directions, cuts in (
        # Conjunctions of single columns alone are searched elsewhere, with a proof: parents without
        # a direction are extended by directions only.
        (slanted, space.units, space.unit_cuts),
        (enough, reused, reused_cuts),
    ):
        on = np.flatnonzero(some)
        if len(on):
            for part in stage.cut(directions, [sets[s] for s in on], held[on], cuts):
                found += part
    on = np.flatnonzero(np.array(fits) & (held.sum(axis=1) >= _FEWEST_TO_FIT))
    if len(on) and not stage.stopped():
        for s, fresh in zip(on.tolist(), stage.directions(held[on]), strict=True):
            found += stage.cut(fresh, [sets[s]], held[[s]])[0]
    return found


def _best_first(
    found: Iterable[_ObliqueCandidate], by: Literal["worth", "gain"]
) -> list[_ObliqueCandidate]:
    """By descending worth or gain; equal ones stay in their order."""
    every = list(found)
    values = np.array([getattr(one, by) for one in every])
    return [every[k] for k in best_first(values, _EQUAL)]


def _best_on_all_rows(stage: ObliqueStage, found: list[_ObliqueCandidate]) -> ObliqueRule | None:
    """The best of some rules on all rows, in full precision."""
    if not found:
        return None
    # Screened sums are float32 and may be of a sample: all rows, in float64, decide.
    rows = np.stack([stage.rows(one.propositions, slice(None)) for one in found])
    sums = stage.terms @ rows.T.astype(np.float64)
    may = np.stack([one.may for one in found])
    # For classes together, `sums[0]` is of the first class alone; their rules may have any sign.
    gains = stage.objective.value(sums) * np.where(sums[0] > 0, may[:, 0], may[:, 1])
    worths = [
        gain / float(stage.objective.divisor(len(one.propositions), one.units))
        for one, gain in zip(found, gains.tolist(), strict=True)
    ]
    best = int(np.argmax(np.array(worths) >= max(worths) * (1 - TIE)))
    if not worths[best] > 0:
        return None
    return ObliqueRule(found[best].propositions, float(worths[best]))


@one_blas_thread()
def improved(
    stage: ObliqueStage, proposition: ObliqueProposition, others: Rows, signs: Signs
) -> ObliqueProposition | None:
    """A better condition on the same columns, with the other conditions of its rule fixed; None if
    none is found.

    Args:
        stage: of the ensemble without the rule.
        proposition: to be improved.
        others: the rows that satisfy the other conditions, (rows,).
        signs: whether a rule of these may have a negative, and a positive, weight, (2,).
    """
    space = stage.space
    held = others[space.screened]
    if held.sum() < _FEWEST_ROWS:
        return None
    # The direction itself is tried first: its threshold alone may have become wrong.
    w = _rising(proposition.w) / np.linalg.norm(proposition.w)
    on = np.flatnonzero(w)
    tried = [w]
    if len(on) > 1:
        # The Newton response on the rows of the other conditions, with the intercept that follows:
        # the weighted least squares of -g / h on the same columns
        values = space.few_values[on][:, held]
        for g, h in zip(stage.few_gradient[:, held], stage.few_curvature[:, held], strict=True):
            centred = values - (values @ h / max(h.sum(), 1e-300))[:, None]
            gram = (centred * h) @ centred.T
            again = stage._fitted(Subset(on, gram, -centred @ g), float(h.sum()))
            # A sweep keeps the columns: with fewer, this would be a rule of another complexity.
            tried += [again] if again is not None and np.count_nonzero(again) == len(on) else []
        turned = [w + turn * space.units[j] for j in on for turn in _TURNS]
        tried += [u / np.linalg.norm(u) for u in turned if np.count_nonzero(u) == len(on)]
    n_cuts = None if space.n_cuts is None else 2 * space.n_cuts
    root = _ObliqueCandidate((), 0.0, 0.0, signs)
    found = stage.cut(np.array(tried), [root], held[None], None, n_cuts)[0]
    if not found:
        return None
    best = _best_first(found, "gain")[0].propositions[0]
    rows = np.stack([space.holds(proposition) & others, space.holds(best) & others])
    # On all rows and against the condition as it is: screening compares new ones with each other
    # only.
    before, after = stage.objective.value(stage.terms @ rows.T.astype(np.float64))
    return best if after > before * (1 + TIE) else None
