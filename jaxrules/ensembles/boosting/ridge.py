"""The default ridge, chosen from the data."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles import noise as noises
from jaxrules.ensembles.boosting.options import FEW_RULES, BoostingOptions
from jaxrules.learning.training import TrainingData
from jaxrules.losses import best_constant, softmax
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.tools.fits import Fit

_ROWS, FEWEST_ROWS = 32.0, 4.0
"""In units of the mean curvature of a row, the default ridge is the first number if noise and
signal are equal, and at least the second. See docs/defaults.md.
"""
_MANY_RULES, _GROWTH = 40, 4.0
"""By which multiple the ridge of the weights of so many rules would grow on pure noise."""


class DefaultRidge(NamedTuple):
    """The default ridge, with which rules are found; why it was chosen; by which multiple the
    ridge of the weights grows from ten rules to 40; and the unit in which it is rounded.
    """

    value: float
    why: str
    growth: float
    unit: float = 1.0

    @classmethod
    def by_noise(cls, value: float, why: str, least: float, unit: float) -> DefaultRidge:
        """A ridge that grows by 4 (9 q' - 1) / 8, with q' the share of noise; the ridge `least` of
        q' = 1/9, and lower ones, do not.
        """
        # With value = 32 c q' / (1 - q') and least = 4 c, the numerator is 4 c (9 q' - 1) / (1 -
        # q') and the denominator 32 c / (1 - q'): this is (9 q' - 1) / 8, without c.
        share = (value - least) / (value + _ROWS / FEWEST_ROWS * least)
        return cls(value, why, _GROWTH * max(share, 0.0), unit)

    def of_weights(self, rules: int, share: float = 1.0) -> noises.Ridge:
        """The ridge of the weights of so many rules, or this share of it."""
        # 0 for up to ten rules, 1 from 40 on
        many = (min(rules, _MANY_RULES) - FEW_RULES) / (_MANY_RULES - FEW_RULES)
        value = noises.rounded(self.value * (1 + self.growth * max(many, 0.0)) * share, self.unit)
        found = f"; rules were found with {self.value:g}" if value != self.value else ""
        return noises.Ridge(value, f"l2_penalty={value:g}: {self.why}{found}")


def share_left(data: TrainingData, options: BoostingOptions, fit: Fit[RuleEnsemble]) -> float:
    """The share of the constant's loss that a model leaves, both above the least loss of any
    scores.
    """
    loss, y, weights, model = data.row_loss, data.target, data.weights, fit.model
    # The objective of the fit includes the ridge, which is not part of what the rules leave.
    ridge = fit.details["l2_penalty"] / (2 * weights.sum()) * np.sum(np.square(model.weights))
    risk = fit.objective - noises.ridges(loss) * ridge
    return noises.share_left(loss, y, weights, risk, constant_of(data, options))


def ridge_for(data: TrainingData, options: BoostingOptions, noise: float) -> float:
    """The default ridge: the mean curvature of a row times `_ROWS` times noise over signal, of two
    classes the geometric mean of that and of the curvature of equal classes; for several at least
    1.
    """
    curved = partial(noises.curvature, data.row_loss, data.target, data.weights)
    of_row = noisy = curved(constant_of(data, options))
    if data.loss.target == "sign" and data.target.ndim == 1:
        # Where a rule finds rare cases, by chance or not, a row has nearly the curvature of equal
        # classes.
        noisy = math.sqrt(of_row * curved(0.0))
    # 32 q / (1 - q) rows on which a rule has no effect: their curvature is the ridge.
    ridge = max(FEWEST_ROWS * of_row, _ROWS * noises.noise_over_signal(noise) * noisy)
    if data.row_loss == softmax:  # each of many classes has few rows, and little curvature
        ridge = max(1.0, ridge)
    return noises.rounded(ridge, noises.unit(data.loss, data.target, data.weights))


def constant_of(data: TrainingData, options: BoostingOptions) -> NDArray[np.float64] | float:
    """The score that boosting starts from, or those of the classes."""
    return best_constant(data.row_loss, data.target, data.weights) if options.intercept else 0.0
