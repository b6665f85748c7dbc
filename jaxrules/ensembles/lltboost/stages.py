"""Fully corrective boosting (Eq. 7 to 9): one rule after another."""

from __future__ import annotations

import time

import numpy as np

from jaxrules.ensembles.lltboost.details import LLTBoostDetails, Stage
from jaxrules.ensembles.lltboost.ensemble import Ensemble
from jaxrules.ensembles.lltboost.growing import grow
from jaxrules.ensembles.lltboost.task import LLTBoostTask
from jaxrules.learning.training import TrainingData
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Conjunctions
from jaxrules.tools.fits import Fit, Status
from jaxrules.tools.runs import Run


def boost(data: TrainingData, task: LLTBoostTask, run: Run) -> list[Fit[RuleEnsemble]]:
    """The fits with 1, 2, ... rules of one output, or of classes fitted together; that without
    rules if there is none.
    """
    ensemble = Ensemble(data, task)
    stages: list[Stage] = []
    reason = None
    with run:
        run.phase = "search"
        while ensemble.n_rules < task.options.max_rules and reason is None and not run.stopped():
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
    reason = reason or (run.limit.advice if run.limit else "max_rules is reached")
    found = Conjunctions.build(data.schema, ensemble.rules, [len(rule) for rule in ensemble.rules])
    held_out = np.zeros(len(data.weights), bool)
    held_out[slice(None) if task.searched is None else task.searched] = ensemble.held_out
    rules = Conjunctions.concatenate([ensemble.first.with_schema(data.schema), found])

    def finished(m: int) -> Fit[RuleEnsemble]:
        last = m == len(stages)
        weights, intercept, objective, ridge = ensemble.steps[m]
        # Of the rules of weight 0, those go that a sign constraint holds there; an expert's stay.
        kept = [
            r
            for r in range(len(weights))
            if r < len(ensemble.first) or weights[r].any() or not ensemble.signs[1 + r]
        ]
        model = RuleEnsemble(
            rules.take(kept),
            weights[kept],
            intercept,
            None,
            ensemble.loss.link,
            ridge.kept(task.settings),
            data.loss.name,
        )
        details = LLTBoostDetails(
            stages=tuple(stages[:m]),
            validation_rows=held_out[np.argsort(data.rows)],  # in the order of X
            reason=reason if last else "max_rules is reached",
            l2_penalty=ridge.value,
            chosen=ridge.chosen,
            sample=None if task.searched is None else len(task.searched),
        )
        fit = run.finish(model, objective, "min", Status.CONVERGED, details=details)
        return fit if last else run.earlier(fit, run.history[:m], Status.CONVERGED)

    # The constant model, m = 0, is a result only if no stage found a rule.
    return [finished(m) for m in range(min(1, len(stages)), len(stages) + 1)]
