"""Rules with conditions on linear combinations of columns: where boosting looks for them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.boosting.directions import (
    ObliqueProposition,
    ObliqueSpace,
    ObliqueStage,
    best_pair,
    best_rule,
    improved,
    seconds_to_make,
)
from jaxrules.ensembles.boosting.ensemble import BoostedEnsemble
from jaxrules.ensembles.boosting.objective import objective_of
from jaxrules.ensembles.boosting.options import CUT_POINTS, BoostingOptions
from jaxrules.ensembles.boosting.task import BoostingTask
from jaxrules.learning.training import TrainingData
from jaxrules.rules.conditions import Condition
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.rule_search import Found, Objective
from jaxrules.solvers.rule_search.space import TIE
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run

_WORTH_CHANGING = 1e-4
"""A sweep keeps a change only if it lowers the risk by at least this share."""
_ALL_TRIED = 10
"""With up to so many rules, a sweep tries all conditions: this is soon done."""


@dataclass(frozen=True, eq=False)
class Combinations:
    """The search for rules with conditions on linear combinations of columns, for one output or
    classes fitted together; see `jaxrules.ensembles.boosting.directions`.

    Attributes:
        known: the conditions in use, as propositions on standardised columns; None for one that
            has no threshold to move.
    """

    space: ObliqueSpace
    options: BoostingOptions
    constraints: Constraints
    known: dict[Condition, ObliqueProposition | None] = field(default_factory=dict)

    @classmethod
    def of(cls, data: TrainingData, task: BoostingTask, run: Run) -> Combinations | None:
        """None if fewer than two columns vary, or if there is no time to standardise them."""
        if seconds_to_make(data.table) > run.deadline.work_left() / 2:
            run.shortened = True
            return None
        options, cuts = task.options, task.options.max_cut_points
        space = ObliqueSpace(
            data.table, data.weights,
            task.constraints.of_output(data.output, len(task.candidates.signs)),
            options.max_nonzeros, CUT_POINTS if cuts == "auto" else cuts, options.seed,
        )  # fmt: skip
        return cls(space, options, task.constraints) if len(space.values) > 1 else None

    def better(
        self,
        state: BoostedEnsemble,
        found: Found,
        bound: float | None,
        objective: Objective,
        stage: Run,
    ) -> Found:
        """The better of two rules: the one that the search on single columns found, with its bound,
        and the best one with a direction. Only rules of one condition on at most two columns are
        proved once directions are allowed.
        """
        optimal = found.status is Status.OPTIMAL
        # The search on single columns was proved, but not among rules with directions.
        if found.status is Status.OPTIMAL:
            found = replace(found, status=Status.CONVERGED)
        if stage.stopped():
            return found
        known = [self._known(state, place) for rule in state.rules for place in rule]
        earlier = [one.w for one in known if one is not None and np.count_nonzero(one.w) > 1]
        rule = best_rule(
            self.space, objective, *state.derivatives(), earlier,
            self.options.longest(state.n_searched), stage.stopped,
        )  # fmt: skip
        if self.options.max_nonzeros == 2 and self.options.longest(state.n_searched) == 1:
            pair, of_pairs = best_pair(self.space, objective, stage.stopped)
            if pair is not None and (rule is None or pair.worth > rule.worth * (1 + TIE)):
                rule = pair
            if optimal and bound is not None and of_pairs is not None:
                found = replace(found, status=Status.OPTIMAL, bound=max(bound, of_pairs))
        if rule is None or not rule.worth > found.objective * (1 + TIE):
            return found
        # Each condition is written with as many digits as the rows need for which the ones before
        # it hold: elsewhere it decides nothing.
        places: tuple[int, ...] = ()
        for one in rule.propositions:
            places = (*places, self._add(state, one, state.candidates.selected(places)))
        return replace(found, propositions=places, objective=rule.worth)

    def swept(self, state: BoostedEnsemble, stopped: Callable[[], bool]) -> BoostedEnsemble:
        """The ensemble after the conditions of the learned rules were improved in turn, the others
        fixed. Among many rules, one that could not be improved rests for 1, then 3, 7, ... sweeps.
        """
        for r in range(state.n_first, len(state.rules)):
            stage = None  # serves all conditions of a rule until one of them changes
            for k in range(len(state.rules[r])):
                if stopped():
                    return state
                place = state.rules[r][k]
                left, rest = state.resting.get(place, (0, 0))
                if left or self._known(state, place) is None:
                    state.resting = state.resting | {place: (max(left - 1, 0), rest)}
                    continue
                stage = stage or self._without(state, r, stopped)
                better = self._improved(state, r, k, stage)
                if better is state:
                    if len(state.rules) > _ALL_TRIED:
                        state.resting = state.resting | {place: (2 * rest + 1, 2 * rest + 1)}
                    continue
                # The other conditions of this rule now decide on other rows.
                state, stage = better, None
                state.resting = {
                    one: rests for one, rests in state.resting.items() if one not in state.rules[r]
                }
        return state

    def _without(self, state: BoostedEnsemble, r: int, stopped: Callable[[], bool]) -> ObliqueStage:
        """The stage in which the conditions of rule r are improved: that of an ensemble without the
        rule, whose other weights have taken over what they can.
        """
        without = state.replaced(r, []).refitted()
        objective = objective_of(without, self.options)
        return ObliqueStage(self.space, objective, *without.derivatives(), stopped)

    def _improved(
        self, state: BoostedEnsemble, r: int, k: int, stage: ObliqueStage
    ) -> BoostedEnsemble:
        """With a better condition k in rule r, if there is one."""
        rule: tuple[int, ...] = state.rules[r]
        rest = (*rule[:k], *rule[k + 1 :])
        one, others = self._known(state, rule[k]), state.candidates.selected(rest)
        if one is None:
            return state
        better = improved(stage, one, others, state.signs_of[list(rest)].all(axis=0))
        if better is None:
            return state
        # A copy, because `_add` gives it more candidates: the ensemble keeps its own if the trial
        # fails.
        trial = copy.copy(state)
        place = self._add(trial, better, others)
        trial = trial.replaced(r, [(*rule[:k], place, *rule[k + 1 :])]).refitted()
        before, after = state.step().risk, trial.step().risk
        return trial if after < before - _WORTH_CHANGING * abs(before) else state

    def _known(self, state: BoostedEnsemble, place: int) -> ObliqueProposition | None:
        """A proposition of the pool in standardised columns; None if it has no threshold to
        move.
        """
        (condition,) = state.candidates.pool.rule(place)
        if condition not in self.known:
            self.known[condition] = self.space.proposition(condition)
        return self.known[condition]

    def _add(
        self, state: BoostedEnsemble, one: ObliqueProposition, among: NDArray[np.bool_]
    ) -> int:
        """Add a proposition to those of the ensemble; returns its place."""
        condition, rows = self.space.condition(one, among)
        self.known[condition] = one
        state.candidates = state.candidates.extended(condition, rows, self.constraints)
        return len(state.candidates.pool) - 1
