"""The fit of one model, and of one with every number of rules."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import TableLike
from jaxrules.ensembles.in_time import model_in_time
from jaxrules.ensembles.lltboost.details import LLTBoostDetails
from jaxrules.ensembles.lltboost.options import LLTBoostOptions
from jaxrules.ensembles.lltboost.stages import boosted
from jaxrules.ensembles.lltboost.task import LLTBoostTask
from jaxrules.ensembles.noise import first_ridge, ridges
from jaxrules.ensembles.oblique import n_encoded
from jaxrules.learning.in_time import on_all_rows
from jaxrules.learning.options import learner
from jaxrules.learning.training import (
    TrainingData,
    one_against_rest,
    paths_against_rest,
    sample_in_time,
)
from jaxrules.losses import softmax
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.tools.fits import Fit, Status


@learner(LLTBoostOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LLTBoostOptions
) -> Fit[RuleEnsemble]:
    """Boost rules whose propositions combine several columns.

    Numbers are standardised, and every category is an indicator; a proposition may combine both. A
    proposition on one column becomes a plain condition on it. Weights and thresholds are given on
    the original columns, with the fewest digits that change the rule for no training row.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> result = fit(X, np.where(X[:, 0] + X[:, 2] > 0, "yes", "no"), max_rules=1, max_nonzeros=2)
    >>> len(result.model.conjunctions), sorted(result.details.stages[0].parts[0].coefficients)
    (1, ['x0', 'x2'])

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: numbers for "squared" and user losses, counts for "poisson", classes for "logistic" and
            "exponential", shape (rows,). For more than two classes see `multiclass`: an ensemble
            with one output per class.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is the mean loss plus ridge over the rows that the weights were fitted
        on, with `LLTBoostDetails`. For one model per class see
        `jaxrules.learning.training.one_against_rest`.

    Raises:
        ValueError: for an invalid value of any argument, or a target for which the loss is not
            defined.
        TypeError: for arguments of the wrong type.
    """
    task = LLTBoostTask.of(X, y, sample_weight, options)
    sample, columns = None, n_encoded(task.data.table)
    if not len(task.first):
        sample = sample_in_time(task.data, task.run, options.seed, columns)
    if sample is not None:
        return _in_time(task, sample)
    return one_against_rest(
        task.data, task.run, lambda part, run: boosted(part, task, run).fit(), joint=task.joint
    )


def _in_time(task: LLTBoostTask, sample: TrainingData) -> Fit[RuleEnsemble]:
    """The model of a sample of the rows, with its weights, evaluated on all rows."""
    data, options, run = task.data, task.options, task.run
    model, _ = model_in_time(
        sample, fit, options, run, max_rules=options.most_rules, max_length=options.max_length,
        one_vs_rest=not task.joint,
    )  # fmt: skip
    joint = model.link == "softmax"
    several = {} if len(data.outputs) == 1 else {"multiclass": "joint" if joint else "one_vs_rest"}
    squares = float(np.sum(np.square(model.weights)))
    # As in whole fits: twice the ridge for classes together, else the mean over the outputs.
    squares = ridges(softmax) * squares if joint else squares / len(data.outputs)
    ridge = first_ridge(options.l2_penalty, data)
    held = np.zeros(len(data.rows), bool)
    details = LLTBoostDetails(
        stages=(), validation_rows=held, reason=Status.TIME_LIMIT.advice,
        l2_penalty=ridge, sample=len(sample.weights),
    )  # fmt: skip
    settings = tuple((dict(task.settings) | several).items())
    return on_all_rows(model, data, ridge / 2 * squares, run, settings, details)


@learner(LLTBoostOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LLTBoostOptions
) -> list[Fit[RuleEnsemble]]:
    """One Fit for each number of rules from 1 to `max_rules`, from one run: what `fit` with that
    limit returns. A ridge that follows the noise is chosen for each.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> fits = path(X, X[:, 0] + np.maximum(X[:, 1], 0), max_rules=3)
    >>> [len(one.model.conjunctions) for one in fits]
    [1, 2, 3]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits. The list is shorter if `fit` stops early, and holds the constant model if there is
        no rule.

    Raises:
        ValueError, TypeError: as `fit`.
    """
    task = LLTBoostTask.of(X, y, sample_weight, options)
    return paths_against_rest(
        task.data, task.run, lambda part, run: boosted(part, task, run).fits(),
        1 + len(task.first), joint=task.joint,
    )  # fmt: skip
