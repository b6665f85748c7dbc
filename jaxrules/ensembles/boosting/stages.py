"""The stages of boosting: one rule after another, and a fit after each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.boosting.combinations import Combinations
from jaxrules.ensembles.boosting.details import BoostingDetails, BoostingStage
from jaxrules.ensembles.boosting.ensemble import NOTHING_LEFT, BoostedEnsemble, EnsembleStep
from jaxrules.ensembles.boosting.linear_terms import (
    LinearColumns,
    LinearColumnTerm,
    seconds_to_make,
)
from jaxrules.ensembles.boosting.objective import objectives_of
from jaxrules.ensembles.boosting.pruning import pruned
from jaxrules.ensembles.boosting.search import next_rule
from jaxrules.ensembles.boosting.task import BoostingTask
from jaxrules.ensembles.noise import Ridge
from jaxrules.ensembles.size import (
    Worth,
    best_size,
    has_likelihood,
    nats_among,
    worth_of_rule,
)
from jaxrules.learning.training import TrainingData
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.solvers.rule_search import Found
from jaxrules.solvers.rule_search.space import TIE
from jaxrules.tools.fits import Fit, Status
from jaxrules.tools.fits import Step as Progressed
from jaxrules.tools.runs import Run

_WORTH_KEEPING = 0.5
"""Elimination removes what gains less than this share of the gain of the last rule, both per unit
of complexity.
"""


def _start(data: TrainingData, task: BoostingTask, run: Run) -> BoostedEnsemble:
    """The ensemble before the first stage; it has no linear terms if there is no time to make
    them.
    """
    columns = None
    if task.options.linear_terms and seconds_to_make(data.table) > run.deadline.work_left() / 2:
        run.shortened = True
    elif task.options.linear_terms:
        n_outputs = len(task.candidates.signs)
        columns = LinearColumns.of(data, task.options.winsorise, task.constraints, n_outputs)
    return BoostedEnsemble(data, task.candidates, task.options, columns)


@dataclass(frozen=True, eq=False)
class _Grown:
    """An ensemble after some stages.

    Attributes:
        step: what is reported.
        risks: the regularised risks of the search, after 0, 1, ... stages.
        worth: of the stages, see `best_size`; empty without a likelihood.
        history: the steps of the run.
        nothing_else: only rules for required columns are left.
    """

    state: Any
    step: EnsembleStep
    risks: tuple[float, ...]
    stages: tuple[BoostingStage, ...] = ()
    worth: tuple[Worth, ...] = ()
    history: tuple[Progressed, ...] = ()
    nothing_else: bool = False

    def must(self, size: int) -> list[NDArray[np.bool_]]:
        """The propositions on each unused required column, if a model of this size must use them
        from now on.
        """
        # As many rules are left as required columns are unused: from now on each rule must use one.
        unused = self.state.unused()
        left = size - self.state.n_first - len(self.stages)
        return unused if self.nothing_else or left <= len(unused) else []


@dataclass(frozen=True, eq=False)
class Boosted:
    """The ensembles of several sizes, for one output or classes fitted together."""

    data: TrainingData
    task: BoostingTask
    run: Run
    grown: list[_Grown]

    @property
    def n_stages(self) -> int:
        """The stages of the largest ensemble."""
        return len(self.grown[-1].stages)

    def fits(self) -> list[Fit[RuleEnsemble]]:
        """A fit for every size."""
        return [self._fit(one, one is self.grown[-1]) for one in self.grown]

    def of_best_size(self) -> Fit[RuleEnsemble]:
        """The fit of the size that the data choose; the largest without a likelihood."""
        if not self.grown[-1].worth:
            return self.fits()[-1]
        # Of k rules that are worth their price in likelihood, m gain more than a smaller ridge
        # would. The m are kept, and their ridge is relaxed by m / k, as the near-copies among the k
        # would have done.
        best, paid = best_size([one.worth for one in self.grown])
        one = self.grown[best]
        m = len(one.stages)
        if one is self.grown[-1]:
            return self.fits()[-1]
        ridge = self.task.ridge_of_weights(m, m / len(self.grown[paid].stages))
        why = f"max_rules={m}: further rules gain less than a smaller ridge"
        ridge = Ridge(ridge.value, "; ".join(filter(None, (ridge.chosen, why))))
        step = one.state.under(ridge.value).refitted().step()
        return self._fit(replace(one, step=step), True, ridge)

    def _fit(self, one: _Grown, whole: bool, ridge: Ridge | None = None) -> Fit[RuleEnsemble]:
        """A fit; `whole`: it is the result of the run."""
        data, task, m = self.data, self.task, len(one.stages)
        step, pruning, ridge = one.step, None, ridge or task.ridge_of_weights(m)
        if task.options.prune is not None:
            step, pruning = pruned(one.state.under(ridge.value), step, task.options.prune)
        rules, weights, intercept, risk, linear = step
        model = RuleEnsemble(
            one.state.candidates.pool.conjunctions(rules, data.schema), weights, intercept, linear,
            one.state.loss.link, ridge.kept(task.settings), data.loss.name,
        )  # fmt: skip
        status = Status.worst((Status.CONVERGED, *(stage.status for stage in one.stages)))
        details = BoostingDetails(
            stages=one.stages,
            propositions=task.candidates.n_searched,
            gains=tuple(rule.gain for rule in one.worth),
            prices=tuple(rule.price for rule in one.worth),
            risks=one.risks,
            sample=task.sample,
            l2_penalty=ridge.value,
            chosen=ridge.chosen,
            pruning=pruning,
        )
        fit = self.run.finish(model, risk, "min", status, details=details)
        if whole:
            return replace(fit, history=one.history)
        return self.run.earlier(fit, one.history, status)


def boosted(data: TrainingData, task: BoostingTask, run: Run, sizes: Sequence[int]) -> Boosted:
    """The ensembles with these values of `max_rules`, ascending; fewer if boosting ends early.

    All start with the same rules. A size that has to use required columns leaves these for its
    last rules.
    """
    return Boosted(data, task, run, _grown(data, task, run, sizes))


def _grown(data: TrainingData, task: BoostingTask, run: Run, sizes: Sequence[int]) -> list[_Grown]:
    """The ensembles of these sizes; at least one, unfinished if the run is stopped."""
    state = _start(data, task, run)
    step = state.step()
    # Sizes differ only in when they must use required columns. Until then they share their stages,
    # in `shared`; a size that must goes on from there by itself.
    shared = one = _Grown(state, step, (step.risk,))
    grown: list[_Grown] = []
    with run:
        run.phase = "search"
        combinations = None
        if task.options.max_nonzeros > 1:
            combinations = Combinations.of(data, task, run)
        for place, size in enumerate(sizes):
            # Each size has an equal share of the time that is left, and so has each of its stages.
            part, wanted = run.child(1 / (len(sizes) - place)), size - state.n_first
            one = shared
            while len(one.stages) < wanted and not run.stopped():
                must = one.must(size)
                if one.nothing_else and not must:
                    break
                stage = part.child(1 / (wanted - len(one.stages)))
                done = sizes[place - 1] - state.n_first if place else 0
                longer = _longer(one, task, combinations, must, stage, run)
                if one is shared and not must:
                    shared = longer
                more, one = len(longer.stages) > len(one.stages), longer
                if more:  # last: a progress callback may raise
                    run.step(one.step.risk, len(one.step.rules), max(done, len(one.stages)))
            # With nothing else to find, larger sizes would repeat this ensemble.
            if run.stopped() or shared.nothing_else:
                break
            grown.append(one)
    # The run ended inside of a size: its stages count if they are more than the last size has.
    if not grown or len(one.stages) > len(grown[-1].stages):
        grown.append(one)
    return grown


def _longer(
    grown: _Grown,
    task: BoostingTask,
    combinations: Combinations | None,
    must: list[NDArray[np.bool_]],
    stage: Run,
    run: Run,
) -> _Grown:
    """The ensemble after one more stage, or with nothing else to find."""
    # A shallow copy is enough: an ensemble replaces its lists and arrays and changes none in place,
    # so that the ensemble before the stage stays as it is for smaller sizes.
    options, state, risks = task.options, copy.copy(grown.state), grown.risks
    found, bound, term = _next(state, task, combinations, must, stage)
    # Before the refits below, so that these are the seconds of the search.
    seconds = stage.seconds()
    rows = state.candidates.selected(found.propositions)
    everywhere = term is None and bool(rows.all())
    if everywhere and not must and options.intercept and options.corrective:
        moved = state.shifted()  # such a rule belongs to the intercept
        return replace(grown, state=state, nothing_else=not moved)
    weight = state.add(found.propositions, rows) if term is None else state.add_term(term)
    # Nothing left but rounding. A rule for a required column may gain nothing and stays.
    if not (must or state.gain > NOTHING_LEFT * abs(risks[0])):
        run.shortened |= found.status is Status.TIME_LIMIT
        return replace(grown, nothing_else=True)
    # Conditions are improved before rules are removed: a better one may make others superfluous,
    # and elimination compares risks with that before the stage.
    if combinations is not None and options.corrective:
        state = combinations.swept(state, run.stopped)
    if options.eliminate:
        gain = (risks[-1] - state.step().risk) / state.units(found.propositions)
        state = state.eliminated(_WORTH_KEEPING * gain, run.stopped)
    step = state.step()
    risks = (*risks, step.risk)
    # Rules are always searched with the ridge of `options`: only the reported step has the larger
    # ridge of so many rules, and the state goes on without it.
    ridge = task.ridge_of_weights(len(grown.stages) + 1).value
    if ridge != options.l2_penalty:
        step = state.under(ridge).refitted().step()
    column = "" if term is None else state.columns.name(term, task.data.schema)
    stages = (*grown.stages, _stage(found, weight, stage.limit, seconds, bound, column))
    history = (*grown.history, Progressed(step.risk, len(step.rules), run.seconds()))
    worth = grown.worth
    if has_likelihood(task.data.loss) and options.corrective:
        more = task.nats_of_choice if term is None else nats_among(task.candidates.n_columns, 1)
        worth = (*worth, worth_of_rule(grown.state, state, more))
    return _Grown(state, step, risks, stages, worth, history, grown.nothing_else)


def _next(
    state: Any,
    task: BoostingTask,
    combinations: Combinations | None,
    must: list[NDArray[np.bool_]],
    stage: Run,
) -> tuple[Found, float | None, LinearColumnTerm | None]:
    """The next rule, the bound on rules of single columns, and the linear term if one is worth more
    than the rule; objective and bound of the result are then those over terms and rules.
    """
    objectives = objectives_of(state, task.options)
    found = next_rule(state, task, objectives, must, stage)
    if task.thresholds is not None and not must:
        found = task.thresholds.better(state, found, objectives, task.options, stage.stopped)
    places = found.propositions
    # With an intercept, a condition and its complement give the same model: take the side of fewer
    # rows. Conditions of `Thresholds` chose theirs already.
    if len(places) == 1 and places[0] < state.n_searched and task.options.refits_all:
        place = state.candidates.lighter(places[0], state.output, state.sample_weight)
        found = replace(found, propositions=(place,))
    # Proved for conditions on single columns only: directions lose it.
    bound = found.bound
    if combinations is not None:
        found = replace(found, bound=None)
        if not must:
            found = combinations.better(state, found, bound, objectives(0), stage)
    if must or not task.options.linear_terms or state.columns is None:
        return found, bound, None
    term = state.columns.best(objectives(0), state.terms)
    if term is None or not term.worth > found.objective * (1 + TIE):
        return found, bound, None
    # All terms were tried: the best one is its own bound.
    proved = None if found.bound is None else max(found.bound, term.worth)
    return replace(found, propositions=(), objective=term.worth, bound=proved), bound, term


def _stage(
    found: Found,
    weight: float | tuple[float, ...],
    limit: Status | None,
    seconds: float,
    bound: float | None,
    linear_term: str,
) -> BoostingStage:
    """The record of a search that took these seconds; `limit` says why its run ended early, if it
    did.
    """
    why = limit or found.status if found.status is Status.TIME_LIMIT else found.status
    return BoostingStage(
        found.objective, found.bound, why, weight, len(found.propositions), found.evaluations,
        seconds, found.counts, bound, linear_term,
    )  # fmt: skip
