"""The number of rules, chosen by cross-validation."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from jaxrules.data.table import TableLike
from jaxrules.ensembles.lltboost.fitting import fit, path
from jaxrules.ensembles.lltboost.options import FEW_RULES, LLTBoostGrid, LLTBoostOptions
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


@learner(LLTBoostGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LLTBoostGrid
) -> Fit[RuleEnsemble]:
    """Choose the number of rules by cross-validation (see `jaxrules.learning.cross_validation`);
    fit on all rows.

    There is one `path` per fold, which holds out rows of its own.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> y = np.where(X[:, 0] - X[:, 1] > 0, 1.0, 0.0)
    >>> result = cross_validate(X, y, loss="squared", max_rules=3, n_folds=2)
    >>> result.details.cross_validation.risks.shape
    (2, 3)

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    loss = loss_for(y, options.loss)
    options = replace(options, loss=loss)  # the same in all folds
    run = options.run()
    data = options.training_data(X, y, sample_weight, loss)
    constraints = Constraints.of(data.schema, options.forbidden, (), options.monotone)
    sizes = sizes_to_try(constraints, data.schema, options.first, options.max_rules)
    walk = along_paths(path, [options.to(LLTBoostOptions)], by_size(sizes))
    # Without time to compare, the ten rules that `fit` has by default.
    otherwise = min(FEW_RULES, len(sizes)) - 1
    grid = [{"max_rules": size} for size in sizes]
    return fit_of_best_setting(
        fit, (X, y, sample_weight), options, data, grid, walk, run, otherwise=otherwise
    )
