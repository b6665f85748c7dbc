"""Thresholds that the data choose, in addition to the cut points at quantiles.

A quantile grid misses a step between two quantiles, and a rare event beyond the last one. Therefore

- the splits of a few boosted trees of depth two join the cut points before pairs of conditions are
  searched (`jaxrules.ensembles.split_points`);
- at every stage, the best single condition over all values of all numeric columns is found exactly
  (`jaxrules.solvers.rule_search.thresholds`);
- the thresholds of the chosen rule are then moved one after another over all values of their
  columns, the other conditions fixed.

A threshold chosen from thousands of values fits noise better than one of twenty quantiles. The last
two therefore must raise the log-likelihood by `_PRICE` more than the rule that they replace, unless
``max_cut_points=None`` asks for all values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.boosting.directions import row_terms
from jaxrules.ensembles.boosting.ensemble import BoostedEnsemble, repeated
from jaxrules.ensembles.boosting.objective import ObjectiveOfSign
from jaxrules.ensembles.boosting.options import BoostingOptions
from jaxrules.ensembles.split_points import dispersion, sorted_columns
from jaxrules.learning.training import TrainingData
from jaxrules.losses import Loss
from jaxrules.rules.conditions import Condition, PropositionPool
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.rule_search import Found, Objective
from jaxrules.solvers.rule_search.row_classes import RowTerms
from jaxrules.solvers.rule_search.space import TIE
from jaxrules.solvers.rule_search.thresholds import Columns, SortedColumn, Split, best_threshold
from jaxrules.tools.fits import Status

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
_PRICE = 1.25
"""What a threshold that is no cut point must gain, in log-likelihood."""


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The numeric columns that rules may use, sorted, and which rules are allowed.

    Attributes:
        columns: by position in the table.
        signs: for every output whether a rule "at most", and a rule "above", may have a negative
            and a positive weight, by column, (outputs, 2, 2).
    """

    columns: dict[int, SortedColumn]
    signs: dict[int, Bools]
    constraints: Constraints
    loss: Loss
    weights: Floats

    @classmethod
    def of(cls, data: TrainingData, constraints: Constraints) -> Thresholds:
        """All columns sorted; `checkpoint` may interrupt it."""
        schema, n = data.table.schema, len(data.outputs)
        # The only sort: every stage scans the columns in this order.
        columns = sorted_columns(data.table, constraints.forbidden)
        sides = (side for f in columns for side in (Condition.at_most(f, 0), Condition.above(f, 0)))
        pool = PropositionPool.build(schema, [[side] for side in sides])
        allowed = np.stack([constraints.signs(pool, output, n) for output in range(n)])
        signs = {f: allowed[:, 2 * k : 2 * k + 2] for k, f in enumerate(columns)}
        return cls(columns, signs, constraints, data.loss, data.weights)

    def better(
        self,
        state: BoostedEnsemble,
        found: Found,
        objectives: ObjectiveOfSign,
        options: BoostingOptions,
        stopped: Callable[[], bool],
    ) -> Found:
        """The better of the rule that the search found, with its thresholds moved, and the best
        single condition over all values. The bound is then that of both searches.
        """
        g, h = state.derivatives()
        # A price in log-likelihood is a price in the mean loss, as which (2.3) counts gains, after
        # division by the total weight. If all values are cut points, no threshold is extra, and
        # none pays.
        price = 0.0
        if options.max_cut_points is not None:
            price = _PRICE * dispersion(self.loss, g, h, self.weights) / state.total_weight
        for side in state.sides:
            if stopped():
                return replace(found, status=Status.worst((found.status, Status.TIME_LIMIT)))
            objective = objectives(side.sign)
            terms = objective.row_classes or RowTerms(row_terms(objective, len(self.weights)))
            if set(found.propositions) <= set(side.propositions.tolist()):
                found = self._moved(state, found, objective, terms, price)
            # A threshold of less worth would change neither the rule nor the bound.
            least = (
                found.objective * float(objective.divisor(1)) + float(objective.price(1)) + price
            )
            split = self._best(state, objective, terms, side.sign, least - 10 * TIE * abs(least))
            if split is None:
                continue
            worth = _worth(objective, split.value - price, 1)
            # The bound now covers single conditions over all values, too, at their worth after the
            # price.
            if found.bound is not None:
                found = replace(found, bound=max(found.bound, worth * (1 + TIE)))
            if worth > found.objective * (1 + TIE):
                # The rule had to win after paying; its reported worth is what it really gains.
                place = self._add(state, split)
                worth = _worth(objective, split.value, 1)
                found = replace(found, propositions=(place,), objective=worth)
        return found

    def _moved(
        self,
        state: BoostedEnsemble,
        found: Found,
        objective: Objective,
        terms: RowTerms,
        price: float,
    ) -> Found:
        """A conjunction with its thresholds moved, one after another, as long as it pays."""
        rule, length = list(found.propositions), len(found.propositions)
        rows = state.candidates.selected(rule)
        value = float(objective.value(terms.over(rows)))
        if value <= 0.0:  # of one sign, and the rule's weight has the other
            return found
        # A single condition needs no move: `_best` finds its best threshold among all columns.
        for k in range(length) if length > 1 else ():
            (condition,) = state.candidates.pool.rule(rule[k])
            f, sides = condition.feature, (condition.upper < np.inf, condition.lower > -np.inf)
            if not isinstance(f, int) or f not in self.columns:
                continue
            # Only a plain threshold can move: `best_threshold` has no intervals, and a missing
            # number is on neither side of its thresholds.
            if condition.missing or sum(sides) != 1:
                continue
            others = state.candidates.selected([*rule[:k], *rule[k + 1 :]])
            # The moved condition keeps its column and side. Outside of the other conditions, terms
            # are 0.
            inside = {f: (self.columns[f], sides)}
            split = _best_of(inside, objective, terms.inside(others), value * (1 + TIE) + price)
            if split is None:
                continue
            moved = others & self.rows(split)
            if not repeated(moved, state.extents):
                rule[k], value = self._add(state, split), split.value
        if rule == list(found.propositions):
            return found
        worth = _worth(objective, value, length)
        bound = None if found.bound is None else max(found.bound, worth * (1 + TIE))
        return replace(found, propositions=tuple(rule), objective=worth, bound=bound)

    def _best(
        self,
        state: BoostedEnsemble,
        objective: Objective,
        terms: RowTerms,
        sign: int,
        least: float,
    ) -> Split | None:
        """The best single condition with a value above `least` that does not repeat an earlier
        rule.
        """
        columns = {}
        for f, column in self.columns.items():
            signs = self.signs[f][state.output]
            either = signs.any(axis=1) if sign == 0 else signs[:, int(sign > 0)]
            if either.any():
                columns[f] = column, (bool(either[0]), bool(either[1]))
        while True:
            split = _best_of(columns, objective, terms, least)
            if split is None:
                return None
            column, sides = columns[split.column]
            rows = self.rows(split)
            if not repeated(rows, state.extents):
                return self._smaller(split, objective, terms, sides)
            # Every round removes one threshold, so that the loop ends.
            columns[split.column] = column.without([split.place]), sides

    def _smaller(
        self, split: Split, objective: Objective, terms: RowTerms, sides: tuple[bool, bool]
    ) -> Split:
        """The condition on the side with fewer rows, if it is worth the same."""
        other = split._replace(above=not split.above)
        if not all(sides):
            return split
        rows, others = self.rows(split), self.rows(other)
        value = float(objective.value(terms.over(others)))
        # With the intercept in the model, both sides are worth the same, unless numbers are
        # missing: these rows are on neither side.
        light, heavy = self.weights[others].sum(), self.weights[rows].sum()
        if light < heavy and value >= split.value * (1 - 10 * TIE):
            return other._replace(value=value)
        return split

    def rows(self, split: Split) -> Bools:
        values = self.columns[split.column].values
        return values > split.low if split.above else values <= split.low

    def _add(self, state: BoostedEnsemble, split: Split) -> int:
        """Add the condition to the propositions of the ensemble; returns its place."""
        condition, rows = self.condition(split), self.rows(split)
        state.candidates = state.candidates.extended(condition, rows, self.constraints)
        return len(state.candidates.pool) - 1

    def condition(self, split: Split) -> Condition:
        """With the shortest threshold between the two values."""
        threshold = self.columns[split.column].between_values(split, low_belongs=True)
        if split.above and self.columns[split.column].whole:
            # Integers: x > 2.4 is written as x >= 3, and x <= 2.4 as x <= 2.
            return Condition.at_least(split.column, threshold + 1.0)
        return (Condition.above if split.above else Condition.at_most)(split.column, threshold)


def _best_of(columns: Columns, objective: Objective, terms: RowTerms, least: float) -> Split | None:
    return best_threshold(columns, objective, terms.terms, least, terms.of_rows)


def _worth(objective: Objective, value: float, length: int) -> float:
    return float(objective.worth(np.asarray(value), length))
