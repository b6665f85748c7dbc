"""The number of rules and the ridge, chosen by cross-validation."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from jaxrules.data.table import TableLike
from jaxrules.ensembles.boosting.fitting import fit, path
from jaxrules.ensembles.boosting.options import FEW_RULES, BoostingGrid, BoostingOptions
from jaxrules.learning.cross_validation import (
    along_paths,
    by_size,
    fit_of_best_setting,
    sizes_to_try,
)
from jaxrules.learning.options import learner
from jaxrules.learning.training import loss_for
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.constraints import Constraints
from jaxrules.tools.fits import Fit


@learner(BoostingGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: BoostingGrid
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
    ridges = options.l2_penalties
    return fit_of_best_setting(
        fit,
        (X, y, sample_weight),
        options,
        data,
        [{"max_rules": size, "l2_penalty": ridge} for ridge in ridges for size in sizes],
        along_paths(
            path, [options.to(BoostingOptions, l2_penalty=it) for it in ridges], by_size(sizes)
        ),
        run,
        # Without time for any fold: the tenth size, or the last of fewer, with the first ridge.
        otherwise=min(FEW_RULES, len(sizes)) - 1,
    )
