"""Fully corrective boosting (Eq. 7 to 9): one rule after another."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from jaxrules.ensembles.lltboost.details import LLTBoostDetails, Stage
from jaxrules.ensembles.lltboost.ensemble import Ensemble, Refitted
from jaxrules.ensembles.lltboost.growing import grow
from jaxrules.ensembles.lltboost.task import LLTBoostTask
from jaxrules.ensembles.size import best_size
from jaxrules.learning.training import TrainingData
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Conjunctions
from jaxrules.tools.fits import Fit, Status
from jaxrules.tools.runs import Run

_LIMIT = "max_rules is reached"


@dataclass(frozen=True, eq=False)
class BoostedOblique:
    """The ensembles with 1, 2, ... rules of one output, or of classes fitted together; that without
    rules if there is none.

    Attributes:
        ensemble: the largest, whose first rules are those of the others.
        stages: one per rule that was found.
        reason: why there are no more.
    """

    data: TrainingData
    task: LLTBoostTask
    run: Run
    ensemble: Ensemble
    stages: tuple[Stage, ...]
    reason: str

    @property
    def sizes(self) -> range:
        """The numbers of rules found; 0, the constant model, only if no stage found a rule."""
        return range(min(1, len(self.stages)), len(self.stages) + 1)

    def fits(self) -> list[Fit[RuleEnsemble]]:
        """A fit for every size."""
        steps, last = self.ensemble.steps, len(self.stages)
        return [self._fit(m, steps[m], self.reason if m == last else _LIMIT) for m in self.sizes]

    def fit(self) -> Fit[RuleEnsemble]:
        """The fit of the size that the data choose, or of the largest."""
        steps = self.ensemble.steps
        if not self.ensemble.chooses_size:
            return self.fits()[-1]
        worth = [[step.worth for step in steps[1 : m + 1]] for m in self.sizes]
        best, paid = (self.sizes[at] for at in best_size(worth))
        if best == len(self.stages):
            return self.fits()[-1]
        # As in `jaxrules.boosting`: of k rules that are worth their price in likelihood, m gain
        # more than a smaller ridge would; their ridge is relaxed by m / k.
        first = len(self.ensemble.first)
        step = self.ensemble.relaxed(best, (first + best) / (first + paid))
        reason = f"max_rules={first + best}: further rules gain less than a smaller ridge"
        fit = self._fit(best, step, reason)
        # The run as a whole gave this result: its seconds, and its status if it was cut short.
        return replace(fit, history=self.run.history[:best])

    def _fit(self, m: int, step: Refitted, reason: str) -> Fit[RuleEnsemble]:
        """The fit with m of the rules that were found; `reason` says why it has no more."""
        data, task, ensemble, run = self.data, self.task, self.ensemble, self.run
        weights, ridge = step.weights, step.ridge
        n_first = len(ensemble.first)
        rules = [*ensemble.rules[:m]]
        found = Conjunctions.build(data.schema, rules, [len(rule) for rule in rules])
        rules_of = Conjunctions.concatenate([ensemble.first.with_schema(data.schema), found])
        held_out = np.zeros(len(data.weights), bool)
        held_out[slice(None) if task.searched is None else task.searched] = ensemble.held_out
        # Of the rules of weight 0, those go that a sign constraint holds there; an expert's stay.
        free = ~ensemble.signs[1 : 1 + len(weights)].astype(bool)
        free[:n_first] = True
        kept = np.flatnonzero(free | weights.any(axis=1))
        model = RuleEnsemble(
            rules_of.take(kept), weights[kept], step.intercept, None, ensemble.loss.link,
            ridge.kept(task.settings), data.loss.name,
        )  # fmt: skip
        told = [ridge.chosen, reason if reason.startswith("max_rules=") else ""]
        grown = ensemble.steps[1 : m + 1] if ensemble.chooses_size else []
        details = LLTBoostDetails(
            stages=self.stages[:m], reason=reason, gains=tuple(one.worth.gain for one in grown),
            validation_rows=held_out[np.argsort(data.rows)],  # in the order of X
            l2_penalty=ridge.value, chosen="; ".join(filter(None, told)),
            sample=None if task.searched is None else len(task.searched),
        )  # fmt: skip
        fit = run.finish(model, step.objective, "min", Status.CONVERGED, details=details)
        if not any(step is one for one in ensemble.steps[:-1]):
            return fit
        return run.earlier(fit, run.history[:m], Status.CONVERGED)


def boosted(data: TrainingData, task: LLTBoostTask, run: Run) -> BoostedOblique:
    """Boosting of one output, or of classes fitted together."""
    ensemble = Ensemble(data, task)
    stages: list[Stage] = []
    reason = None
    with run:
        run.phase = "search"
        while ensemble.n_rules < task.options.most_rules and reason is None and not run.stopped():
            began = time.perf_counter()
            grown = None if ensemble.is_perfect else grow(ensemble, task.options, run)
            # A repeated rule changes no score, hence no gradient: the next stage would find it
            # again.
            if grown is not None and not ensemble.repeats(grown.rows):
                # In this order: `worth` reads the gradient that the refit in `add` changes.
                worth, parts = ensemble.worth(grown), ensemble.add(grown)
                seconds = time.perf_counter() - began
                of_class = (data.classes or ())[grown.of_class] if task.joint else None
                stages.append(Stage(grown.sign, worth, grown.risk, parts, seconds, of_class))
                run.step(ensemble.steps[-1].objective, ensemble.n_rules)
            elif ensemble.is_perfect:
                reason = "all gradients are zero: the ensemble fits the training rows perfectly"
            elif grown is not None:
                reason = (
                    "the best rule selects the same training rows as an earlier one, or all others"
                )
            elif not run.stopped():
                reason = "no proposition raises the objective"
    reason = reason or (run.limit.advice if run.limit else _LIMIT)
    return BoostedOblique(data, task, run, ensemble, tuple(stages), reason)
