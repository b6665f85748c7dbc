"""How much noise the rules leave, and the ridge that follows: see docs/defaults.md."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.learning.training import TrainingData
from jaxrules.losses import (
    Loss,
    best_constant,
    derivatives,
    least_loss,
    mean_loss,
    softmax,
    squared,
)
from jaxrules.tools.fits import Settings

Floats = NDArray[np.float64]

_SMALL_RIDGE = 1e-3
"""Relative to the mean loss: the ridge until the last refit, and the least default of that."""
_ROWS = 10.0
"""In units of the mean curvature of a row, that ridge if noise and signal are equal."""
_BY_CHANCE, _MOST_CHANCE = 3.0, 0.2
"""By chance, a rule explains a share of the constant's loss of the first number divided by the
number of rows; all rules together at most the second number.
"""
_PER_NAT = 1.5
"""The share of the constant's loss of one row that a nat is: 1 / ln 2 for two equal classes, 2 for
squares.
"""
_MOST_EQUAL = 1.5
"""Rows are mostly repeated if those equal to a row have, on average, more than this weight."""
_MOST_NOISE = 0.9
"""A larger share of noise counts as this one."""


def first_ridge(given: float | None, data: TrainingData) -> float:
    """The ridge until the last refit."""
    return _SMALL_RIDGE * unit(data.loss, data.target, data.weights) if given is None else given


def ridges(loss: Loss) -> float:
    """The ridge on a weight, in units of `l2_penalty`: for classes together it is twice as large,
    so that two classes, whose weights are -v / 2 and v / 2, are the binary problem of v.
    """
    return 2.0 if loss == softmax else 1.0


def unit(loss: Loss, y: Floats, weights: Floats) -> float:
    """The unit of default ridges: the curvature of a row at the best constant, which follows the
    unit of the target; 1 for classes and the squared loss, which have none to follow.
    """
    if loss.target == "sign" or loss == squared:
        return 1.0
    return curvature(loss, y, weights, best_constant(loss, y, weights))


def rounded(ridge: float, unit: float) -> float:
    """The ridge to two digits of its unit."""
    return float(f"{ridge / unit:.2g}") * unit


def share_left(
    loss: Loss, y: Floats, weights: Floats, risk: float, constant: Floats | float
) -> float:
    """A mean loss as a share of that of a constant score, one per class for `softmax`, both above
    the least loss of any scores.
    """
    floor = least_loss(loss, y, weights)  # for counts, the share is one of the deviance
    whole = mean_loss(loss, y, np.zeros(y.shape) + constant, weights) - floor
    return float((risk - floor) / whole) if whole > 0 else 0.0


def by_chance(rules: int, weights: Floats, more: float = 0.0, rare: float = 1.0) -> float:
    """The share of the loss that so many rules explain by chance, each of which gains so many nats
    more as it is chosen among many columns; of classes with this `rarity`.
    """
    of_rule = rare * (_BY_CHANCE + share_of(more))
    return min(of_rule * rules / float(weights.sum()), _MOST_CHANCE)


def rarity(loss: Loss, y: Floats, weights: Floats) -> float:
    """How many times as much of the constant's loss a nat is as if two classes were equally
    frequent: the fewer rows one has, the less they tell. 1 for numbers and for several classes.
    """
    if loss.target != "sign" or y.ndim > 1:
        return 1.0
    nothing = np.zeros(y.shape)
    constant = mean_loss(loss, y, nothing + best_constant(loss, y, weights), weights)
    return mean_loss(loss, y, nothing, weights) / constant if constant > 0 else 1.0


def mostly_repeated(weights: Floats) -> bool:
    """Whether most rows repeat others, given the weights of distinct rows."""
    return float(weights @ weights) > _MOST_EQUAL * float(weights.sum())


def share_of(nats: float) -> float:
    """The share of the constant's loss that so many nats are, on one row."""
    return _PER_NAT * nats


def noise_over_signal(noise: float) -> float:
    """The ratio, of which the ridge is a multiple, of a share of noise.

    After Hoerl, Kennard and Baldwin, "Ridge Regression: Some Simulations" (1975).
    """
    noise = min(max(noise, 0.0), _MOST_NOISE)
    return noise / (1 - noise)


def curvature(loss: Loss, y: Floats, weights: Floats, constant: Floats | float) -> float:
    """The mean curvature of a row, and of its classes, at a constant score; 1 if it is zero."""
    of_row = derivatives(loss, y, np.zeros(y.shape) + constant)[1]
    return float(np.mean(np.average(of_row, axis=0, weights=weights))) or 1.0


class Ridge(NamedTuple):
    """A ridge relative to the mean loss, and why it was chosen; empty if it was given."""

    value: float
    chosen: str = ""

    @classmethod
    def by_noise(
        cls,
        left: float,
        curvature: float,
        weights: Floats,
        rules: int,
        unit: float = 1.0,
        held_out: float | None = None,
    ) -> Ridge:
        """The default ridge for the last refit of the weights of rules.

        Args:
            left: the share of the constant's loss that the rules leave under the small ridge.
            curvature: of the loss, the mean of a row at the constant.
            weights: of the rows.
            rules: the number of rules.
            unit: of the small ridge, see `unit`.
            held_out: the share that they leave on rows that they have not seen, if it is known.
        """
        small = _SMALL_RIDGE * unit
        why = f"rules fitted with a ridge of {small:g} leave {left:.0%} of the constant's loss"
        if held_out is not None:
            why += f", and {held_out:.0%} of that of rows that they have not seen"
            # Between what is too little, on seen rows, and too much, as fewer rows were seen
            left = math.sqrt(max(left * held_out, 0.0))
        # The ridge acts like so many rows on which no rule has an effect, each of mean curvature.
        # Divided by all rows, it is relative to the mean loss.
        rows = _ROWS * noise_over_signal(left + by_chance(rules, weights))
        value = max(small, rounded(rows * curvature / float(weights.sum()), unit))
        return cls(value, f"l2_penalty={value:g}: {why}")

    @classmethod
    def of_rules(
        cls,
        loss: Loss,
        y: Floats,
        weights: Floats,
        risk: float,
        rules: int,
        held_out: float | None = None,
    ) -> Ridge:
        """The default ridge for the rules of one output, or of classes together, that have this
        mean loss, and perhaps this one on rows that they have not seen.
        """
        constant = best_constant(loss, y, weights)
        left, unseen = share_left(loss, y, weights, risk, constant), None
        if held_out is not None:
            unseen = share_left(loss, y, weights, held_out, constant)
        of_row = curvature(loss, y, weights, constant)
        return cls.by_noise(left, of_row, weights, rules, unit(loss, y, weights), unseen)

    def kept(self, settings: Settings) -> Settings:
        """The settings of the model, with the ridge if it was chosen."""
        return (*settings, ("chosen_l2_penalty", self.value)) if self.chosen else settings
