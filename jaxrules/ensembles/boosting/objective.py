"""What a stage of boosting maximises."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxrules.ensembles.boosting.directions import PRICE
from jaxrules.ensembles.boosting.ensemble import BoostedEnsemble
from jaxrules.ensembles.boosting.options import BoostingOptions
from jaxrules.losses import softmax
from jaxrules.solvers.rule_search import (
    CorrectiveDecrease,
    GradientSum,
    Objective,
    Orthogonal,
    SecondOrder,
    SumOverClasses,
)

ObjectiveOfSign = Callable[[int], Objective]
"""What a stage maximises among rules whose weight has this sign, 0 for any."""


def objectives_of(state: BoostedEnsemble, options: BoostingOptions) -> ObjectiveOfSign:
    """`objective_of` for all searches of a stage, which share the terms of the rows."""
    return functools.cache(functools.partial(objective_of, state, options))


def objective_of(state: BoostedEnsemble, options: BoostingOptions, sign: int = 0) -> Objective:
    """What the next rule maximises, among rules whose weight has this sign (0 for any)."""
    price: dict[str, Any] = {
        "per_unit": options.per_unit, "growth": options.objective_tolerance, "one_sided": sign != 0
    }  # fmt: skip
    # With directions, gains are divided by C^1.25; see `jaxrules.ensembles.boosting.directions`.
    if options.max_nonzeros > 1:
        price |= PRICE
    g, h = state.derivatives()
    if sign > 0:  # the weight has the sign of -g
        g = -g
    if options.objective == "orthogonal":
        return Orthogonal(g, state.span(), state.sample_weight, **price)
    if options.objective == "gradient_sum":
        return GradientSum(g, **price)
    # Without a ridge, 0 / 0 is avoided for a rule that holds for no row.
    ridge = state.ridge or float(np.finfo(np.float64).tiny)
    g = g / math.sqrt(2.0 * state.total_weight)  # (2.3) with its constant
    if options.objective == "corrective_decrease":
        span = state.span()
        # The intercept is the first column of the span and has no penalty.
        free = int(state.has_intercept)
        penalties = np.array([0.0] * free + [ridge] * (span.shape[1] - free))
        if state.loss == softmax:
            # The model of the risk has no terms across classes, so that their decreases add up.
            parts = zip(g.T, h.T, strict=True)
            each = (CorrectiveDecrease(*one, ridge, span, penalties) for one in parts)
            return SumOverClasses(tuple(each), **price)
        return CorrectiveDecrease(g, h, ridge, span, penalties, **price)
    return SecondOrder(g, h, ridge, **price)
