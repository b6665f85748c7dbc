"""The stages of boosting: one rule after another, and a fit after each."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.boosting.combinations import Combinations
from jaxrules.ensembles.boosting.details import BoostingDetails, Stage
from jaxrules.ensembles.boosting.ensemble import NOTHING_LEFT, Ensemble, Step
from jaxrules.ensembles.boosting.joint import JointEnsemble
from jaxrules.ensembles.boosting.linear_terms import LinearColumns, Term, seconds_to_make
from jaxrules.ensembles.boosting.objective import objective_of
from jaxrules.ensembles.boosting.search import next_rule
from jaxrules.ensembles.boosting.size import best_size, gain_of_rule, has_likelihood
from jaxrules.ensembles.boosting.task import Task
from jaxrules.ensembles.noise import Ridge
from jaxrules.fits import Fit, Status
from jaxrules.models import RuleEnsemble
from jaxrules.runs import Run
from jaxrules.solvers.rule_search import Found
from jaxrules.solvers.rule_search.space import TIE
from jaxrules.training import TrainingData

_WORTH_KEEPING = 0.5
"""Elimination removes what gains less than this share of the gain of the last rule, both per unit
of complexity.
"""


def _start(data: TrainingData, task: Task, run: Run) -> Ensemble | JointEnsemble:
    """The ensemble before the first stage; it has no linear terms if there is no time to make
    them.
    """
    columns = None
    if task.options.linear_terms and seconds_to_make(data.table) > run.deadline.work_left() / 2:
        run.shortened = True
    elif task.options.linear_terms:
        n_outputs = len(task.candidates.signs)
        columns = LinearColumns.of(data, task.options.winsorise, task.constraints, n_outputs)
    kind = JointEnsemble if task.joint else Ensemble
    return kind(data, task.candidates, task.options, columns)


@dataclass(frozen=True, eq=False)
class Boosted:
    """The ensembles of all stages, for one output or classes fitted together.

    Attributes:
        states: the ensembles after 0, 1, ... stages.
        steps: what is reported of them.
        risks: their regularised risks, with the ridge of the search.
        gains: of the stages, see `jaxrules.ensembles.boosting.size`; empty without a likelihood.
        stages: how each rule was found.
    """

    data: TrainingData
    task: Task
    run: Run
    states: list[Any]
    steps: list[Step]
    risks: list[float]
    gains: list[float]
    stages: list[Stage]

    def path(self) -> list[Fit[RuleEnsemble]]:
        """The fits with 1, 2, ... rules; of the constant if there is no rule."""
        return [self.fit(m) for m in range(min(1, len(self.stages)), len(self.stages) + 1)]

    def first(self, m: int) -> Boosted:
        """The first m stages."""
        parts = (self.states, self.steps, self.risks)
        return Boosted(
            self.data, self.task, self.run, *(part[: m + 1] for part in parts), self.gains[:m],
            self.stages[:m],
        )  # fmt: skip

    def fit(self, m: int, ridge: Ridge | None = None) -> Fit[RuleEnsemble]:
        """The fit after m stages. If another ridge is given, its weights are refitted, and it is
        the result of the whole run.
        """
        data, task, step, pruning = self.data, self.task, self.steps[m], None
        whole = ridge is not None or m == len(self.stages)
        if ridge is None:
            ridge = task.ridge_of_weights(m)
        else:
            step = self.states[m].under(ridge.value).refitted().step()
        if task.options.prune is not None:
            step, pruning = self.states[-1].under(ridge.value).pruned(step, task.options.prune)
        rules, weights, intercept, risk, linear = step
        model = RuleEnsemble(
            self.states[-1].candidates.pool.conjunctions(rules, data.schema), weights, intercept,
            linear, "softmax" if task.joint else data.loss.link, ridge.kept(task.settings),
            data.loss.name,
        )  # fmt: skip
        status = Status.worst((Status.CONVERGED, *(stage.status for stage in self.stages[:m])))
        details = BoostingDetails(
            stages=tuple(self.stages[:m]),
            propositions=task.candidates.n_searched,
            gains=tuple(self.gains[:m]),
            risks=tuple(self.risks[: m + 1]),
            sample=task.sample,
            l2_penalty=ridge.value,
            chosen=ridge.chosen,
            pruning=pruning,
        )
        fit = self.run.finish(model, risk, "min", status, details=details)
        return fit if whole else self.run.earlier(fit, m, status)

    def of_best_size(self) -> Fit[RuleEnsemble]:
        """The fit of the size that the data choose; all stages without a likelihood."""
        if not self.gains:
            return self.fit(len(self.stages))
        using = self.task.candidates.using
        spoken = [[place for rule in one.rules for place in rule] for one in self.steps[1:]]
        used = [sum(on[places].any() for on in using) for places in spoken]
        allowed = np.array(used) == used[-1]
        likelihoods = [state.negative_log_likelihood() for state in self.states]
        m, paid = best_size(np.array(self.gains), -np.diff(likelihoods), allowed)
        ridge = self.task.ridge_of_weights(m)
        if self.task.ridge is not None and paid > m:
            ridge = ridge.relaxed(m / paid)
        elif m == len(self.stages):
            return self.fit(m)
        why = f"max_rules={m}: further rules gain less than a smaller ridge"
        return self.fit(m, Ridge(ridge.value, "; ".join(filter(None, (ridge.chosen, why)))))


def boosted(data: TrainingData, task: Task, run: Run) -> Boosted:
    """One rule after another."""
    options = task.options
    state: Any = _start(data, task, run)
    combinations: Combinations | None = None
    states, steps = [copy.copy(state)], [state.step()]
    risks = [steps[0].risk]
    gains: list[float] = []
    stages: list[Stage] = []
    to_find = options.most_rules - state.n_first
    nothing_else = False  # only rules for required columns are left
    with run:
        run.phase = "search"
        if options.max_nonzeros > 1:
            combinations = Combinations.of(data, task, run)
        for rule in range(to_find):
            if run.stopped():
                break
            unused = state.unused()
            must = unused if nothing_else or to_find - rule <= len(unused) else []
            if nothing_else and not must:
                break
            stage = run.child(1 / (to_find - rule))
            before = copy.copy(state)
            found, bound, term = _next(state, task, combinations, must, stage)
            seconds = stage.seconds()
            rows = state.candidates.selected(found.propositions)
            everywhere = term is None and bool(rows.all())
            if everywhere and not must and options.intercept and options.corrective:
                nothing_else = not state.shifted()  # such a rule belongs to the intercept
                continue
            weight = state.add(found.propositions, rows) if term is None else state.add_term(term)
            if not (must or state.gain > NOTHING_LEFT * abs(risks[0])):
                run.shortened |= found.status is Status.TIME_LIMIT
                nothing_else, state = True, before
                continue
            if combinations is not None and options.corrective:
                state = combinations.swept(state, run.stopped)
            if options.eliminate:
                gain = (risks[-1] - state.step().risk) / state.units(found.propositions)
                state = state.eliminated(_WORTH_KEEPING * gain, run.stopped)
            step = state.step()
            risks.append(step.risk)
            if has_likelihood(data.loss) and options.corrective:
                gains.append(gain_of_rule(before, state))
            ridge = task.ridge_of_weights(len(steps)).value
            if ridge != options.l2_penalty:
                step = state.under(ridge).refitted().step()
            steps.append(step)
            column = "" if term is None else state.columns.name(term, data.schema)
            stages.append(_stage(found, weight, stage.limit, seconds, bound, column))
            states.append(copy.copy(state))
            run.step(steps[-1].risk, len(steps[-1].rules))
    return Boosted(data, task, run, states, steps, risks, gains, stages)


def _next(
    state: Any,
    task: Task,
    combinations: Combinations | None,
    must: list[NDArray[np.bool_]],
    stage: Run,
) -> tuple[Found, float | None, Term | None]:
    """The next rule, the bound on rules of single columns, and the linear term if one is worth more
    than the rule; objective and bound of the result are then those over terms and rules.
    """
    found = next_rule(state, task, must, stage)
    if task.thresholds is not None and not must:
        found = task.thresholds.better(state, found, task.options, stage.stopped)
    places = found.propositions
    if len(places) == 1 and places[0] < state.n_searched and task.options.refits_all:
        place = state.candidates.lighter(places[0], state.output, state.sample_weight)
        found = replace(found, propositions=(place,))
    bound = found.bound
    if combinations is not None:
        found = replace(found, bound=None)
        if not must:
            found = combinations.better(state, found, stage)
    if must or not task.options.linear_terms or state.columns is None:
        return found, bound, None
    term = state.columns.best(objective_of(state, task.options), state.terms)
    if term is None or not term.worth > found.objective * (1 + TIE):
        return found, bound, None
    proved = None if found.bound is None else max(found.bound, term.worth)
    return replace(found, propositions=(), objective=term.worth, bound=proved), bound, term


def _stage(
    found: Found,
    weight: float | tuple[float, ...],
    limit: Status | None,
    seconds: float,
    bound: float | None,
    linear_term: str,
) -> Stage:
    """The record of a search that took these seconds; `limit` says why its run ended early, if it
    did.
    """
    why = limit or found.status if found.status is Status.TIME_LIMIT else found.status
    return Stage(
        found.objective, found.bound, why, weight, len(found.propositions), found.evaluations,
        seconds, found.counts, bound, linear_term,
    )  # fmt: skip
