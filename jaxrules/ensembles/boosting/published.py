"""Algorithm 1 of "Better Short than Greedy", as published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from numpy.typing import ArrayLike

from jaxrules.data.table import TableLike
from jaxrules.ensembles.boosting.fitting import or_sketch, task_of
from jaxrules.ensembles.boosting.options import BoostingOptions, PublishedBoostingOptions
from jaxrules.ensembles.boosting.stages import boosted
from jaxrules.learning.options import learner
from jaxrules.learning.training import TrainingData, one_against_rest
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.solvers.rule_search import (
    Found,
    Objective,
    SearchSpace,
    search_beam,
    search_published,
)
from jaxrules.tools.fits import Fit, Status
from jaxrules.tools.runs import Run


@learner(PublishedBoostingOptions)
def published(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: PublishedBoostingOptions
) -> Fit[RuleEnsemble]:
    """The paper's own Algorithm 1: a breadth-first search over core queries with its bound (2.4).

    It finds rules as good as those of ``fit(X, y, **PAPER)``, with as few conditions as their rows
    allow (line 17), and is slow. Of equally good rules for different rows it may take another. It
    exists for the pruning counts of the paper's Table 2, in ``details["stages"]``.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
    >>> result = published(X, 3.0 * X[:, 0] * X[:, 1], loss="squared", max_rules=1)
    >>> result.model.conjunctions.describe(0), result.details.stages[0].counts["nodes"]
    ('x0 >= 1 & x1 >= 1', 2)

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit, as from `fit`.

    Raises:
        ValueError, TypeError: as `fit`.
    """
    # Algorithm 1 compares conjunctions of any length by their objective alone.
    own = options.to(BoostingOptions, per_unit=False, max_length=None)
    task = task_of(X, y, sample_weight, own)
    made = options.settings(loss=task.data.loss)
    task = replace(task, settings=made, find=_published_rule)
    size = [options.max_rules]

    def one(data: TrainingData, run: Run) -> Fit[RuleEnsemble]:
        return boosted(data, task, run, size).fits()[-1]

    found = one_against_rest(task.data, task.run, one)
    return or_sketch(found, task)


def _published_rule(
    space: SearchSpace,
    objective: Objective,
    options: BoostingOptions,
    longest: int | None,
    share: int,
    stopped: Callable[[], bool],
) -> Found:
    """The best conjunction by the paper's Algorithm 1, in `best_rule`'s place."""
    found = search_published(
        space, objective, approximation=options.approximation,
        max_evaluations=options.evaluations(space.activations.n_patterns, share), stopped=stopped,
    )  # fmt: skip
    if found.status is Status.TIME_LIMIT:  # it may not have tried all single propositions
        single = search_beam(space, objective, width=1, max_length=1, stopped=stopped)
        if single.objective > found.objective:
            return replace(found, propositions=single.propositions, objective=single.objective)
    return found
