"""The number of rules and the ridge, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from numpy.typing import ArrayLike

from jaxrules.data.table import TableLike
from jaxrules.ensembles.boosting.fitting import fit, path
from jaxrules.ensembles.boosting.options import FEW_RULES, Grid, Options
from jaxrules.learning.cross_validation import (
    arguments_of,
    by_size,
    fit_of_best_setting,
    sizes_to_try,
)
from jaxrules.learning.options import learner
from jaxrules.learning.training import TrainingData, loss_for
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.constraints import Constraints
from jaxrules.tools.fits import Fit
from jaxrules.tools.runs import Run


@learner(Grid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: Grid
) -> Fit[RuleEnsemble]:
    """Choose the number of rules and the ridge by cross-validation (see
    `jaxrules.learning.cross_validation`); fit on all rows.

    Each fold has its own cut points, unless `propositions` are given. It computes one `path` per
    ridge.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10, float)
    >>> y = X[:, 0] + 3.0 * X[:, 0] * X[:, 1]
    >>> result = cross_validate(X, y, max_rules=3, l2_penalties=[0.0, 8.0], n_folds=2)
    >>> result.details.cross_validation.setting
    {'max_rules': 2, 'l2_penalty': 0.0}

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    options = replace(options, loss=loss_for(y, options.loss))  # the same in all folds
    run = options.run()
    data = options.training_data(X, y, sample_weight, loss_for(y, options.loss))
    schema = data.schema
    constraints = Constraints.of(schema, options.forbidden, options.required, options.monotone)
    sizes = sizes_to_try(constraints, schema, options.first, options.max_rules)
    grid = [
        {"max_rules": size, "l2_penalty": ridge} for ridge in options.l2_penalties for size in sizes
    ]

    def walk(_: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
        return _walk(inside, sizes, options, run)

    few = min(FEW_RULES, len(sizes)) - 1
    return fit_of_best_setting(
        fit, (X, y, sample_weight), options, data, grid, walk, run, otherwise=few
    )


def _walk(inside: TrainingData, sizes: range, options: Grid, run: Run) -> Iterator[RuleEnsemble]:
    """The models of a fold, for every ridge and all of these sizes, until time runs out."""
    ridges = options.l2_penalties
    for i, ridge in enumerate(ridges):
        part = run.child(1 / (len(ridges) - i))
        same = options.to(
            Options, max_rules=sizes[-1], l2_penalty=ridge, time_limit=part.deadline, progress=False
        )
        yield from by_size(path.with_options(*arguments_of(inside), same), sizes, part)
        if part.stopped():
            return
