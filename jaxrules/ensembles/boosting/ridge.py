"""The default ridge, chosen from the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.boosting.options import Options
from jaxrules.fits import Fit
from jaxrules.losses import best_constant, derivatives, mean_loss
from jaxrules.models import RuleEnsemble
from jaxrules.training import TrainingData

_ROWS, FEWEST_ROWS, _MOST_NOISE = 32.0, 4.0, 0.9
"""In units of the mean curvature of a row, the default ridge is the first number if noise and
signal are equal, and at least the second; a share of noise above the third counts as the third. See
docs/defaults.md.
"""


def share_left(data: TrainingData, options: Options, fit: Fit[RuleEnsemble]) -> float:
    """The share of the constant's loss that a model leaves, both above the least loss of any
    scores.
    """
    loss, y, weights, model = data.loss, data.target, data.weights, fit.model
    ridge = fit.details["l2_penalty"] / (2 * weights.sum()) * np.sum(np.square(model.weights))
    floor = 0.0
    if y.ndim > 1:  # classes fitted together: the entropy of their shares, and twice the ridge
        shares = shares_of(data)
        constant, ridge = -float(shares @ np.log(shares)), 2 * ridge
    else:
        nothing = np.zeros(len(y))
        if loss.conjugate is not None:
            floor = -float(np.average(loss.conjugate(y, nothing), weights=weights))
        constant = mean_loss(loss, y, nothing + constant_of(data, options), weights) - floor
    return float((fit.objective - ridge - floor) / constant) if constant > 0 else 0.0


def ridge_for(data: TrainingData, options: Options, noise: float) -> float:
    """The default ridge: the mean curvature of a row times `_ROWS` times noise over signal.

    After Hoerl, Kennard and Baldwin, "Ridge Regression: Some Simulations" (1975).
    """
    noise = min(max(noise, 0.0), _MOST_NOISE)
    rows = max(FEWEST_ROWS, _ROWS * noise / (1 - noise))
    if data.target.ndim > 1:
        ridge = max(1.0, rows * float(np.mean(shares_of(data) * (1 - shares_of(data)))))
    else:
        scores = np.full(len(data.target), constant_of(data, options))
        curvature = derivatives(data.loss, data.target, scores)[1]
        ridge = rows * (float(np.average(curvature, weights=data.weights)) or 1.0)
    return float(f"{ridge:.2g}")


def shares_of(data: TrainingData) -> NDArray[np.float64]:
    """The share of each class, (classes,)."""
    return np.asarray(np.average(data.target > 0, axis=0, weights=data.weights))


def constant_of(data: TrainingData, options: Options) -> float:
    """The score that boosting starts from."""
    return best_constant(data.loss, data.target, data.weights) if options.intercept else 0.0
