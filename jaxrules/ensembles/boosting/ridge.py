"""The default ridge, chosen from the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles import noise as noises
from jaxrules.ensembles.boosting.options import Options
from jaxrules.fits import Fit
from jaxrules.losses import best_constant
from jaxrules.models import RuleEnsemble
from jaxrules.training import TrainingData

_ROWS, FEWEST_ROWS = 32.0, 4.0
"""In units of the mean curvature of a row, the default ridge is the first number if noise and
signal are equal, and at least the second. See docs/defaults.md.
"""


def share_left(data: TrainingData, options: Options, fit: Fit[RuleEnsemble]) -> float:
    """The share of the constant's loss that a model leaves, both above the least loss of any
    scores.
    """
    loss, y, weights, model = data.loss, data.target, data.weights, fit.model
    ridge = fit.details["l2_penalty"] / (2 * weights.sum()) * np.sum(np.square(model.weights))
    if y.ndim > 1:  # classes fitted together: the entropy of their shares, and twice the ridge
        shares = shares_of(data)
        return float((fit.objective - 2 * ridge) / -(shares @ np.log(shares)))
    risk = fit.objective - ridge
    return noises.share_left(loss, y, weights, risk, constant_of(data, options))


def ridge_for(data: TrainingData, options: Options, noise: float) -> float:
    """The default ridge: the mean curvature of a row times `_ROWS` times noise over signal."""
    rows = max(FEWEST_ROWS, _ROWS * noises.noise_over_signal(noise))
    if data.target.ndim > 1:
        ridge = max(1.0, rows * float(np.mean(shares_of(data) * (1 - shares_of(data)))))
    else:
        constant = constant_of(data, options)
        ridge = rows * noises.curvature(data.loss, data.target, data.weights, constant)
    return float(f"{ridge:.2g}")


def shares_of(data: TrainingData) -> NDArray[np.float64]:
    """The share of each class, (classes,)."""
    return np.asarray(np.average(data.target > 0, axis=0, weights=data.weights))


def constant_of(data: TrainingData, options: Options) -> float:
    """The score that boosting starts from."""
    return best_constant(data.loss, data.target, data.weights) if options.intercept else 0.0
