"""Forward selection among given rules: which next, and how many.

The next rule is the one with the largest decrease of the risk per complexity to the power of 1.25,
as in oblique boosting. The decrease is that of a Newton step of its weight in which the weights of
the rules so far move, too. The number of rules is the smallest whose cross-fitted risk exceeds the
least by no more than a standard error of the paired difference.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

# .75 and 1.5 were no better in prototypes of oblique boosting.
_EXPONENT = 1.25
_BLOCK = 2048
"""Rows that are multiplied at a time, for the processor's cache."""
_NEGLIGIBLE = 1e-6
"""A rule of less variance given the others repeats them."""


def gains(
    rows: Rows,
    chosen: list[int],
    first: Floats,
    second: Floats,
    ridge: float,
    signs: NDArray[np.int_],
) -> Floats:
    """The decrease of the risk by each rule, summed over the outputs; 0 for chosen rules and those
    that these repeat.

    Args:
        rows: (rules, rows), where the rules hold.
        chosen: the rules so far.
        first, second: derivatives of the mean loss by the scores, times the row weights, (outputs,
            rows).
        ridge: on the weights, relative to the mean loss.
        signs: of the weights, 0 for any, 2 for weights that stay 0, (rules, outputs).
    """
    # For a rule q and the rules so far Q = (1, q_1, ...), with weights h:
    # c = Q'h q,  M = Q'h Q + ridge,  gain = (g'q)^2 / (2 (h'q - c' M^-1 c + ridge))
    # The Schur complement is the curvature along q once the weights of Q follow.
    penalty = np.diag(np.append(0.0, np.full(len(chosen), ridge)))
    total = np.zeros(len(rows))
    for g, h, sign in zip(first, second, signs.T, strict=True):
        sums = np.zeros((len(rows), len(chosen) + 2))
        for k in range(0, len(g), _BLOCK):
            part = slice(k, k + _BLOCK)
            held = rows[:, part].astype(np.float64)
            sums += held @ np.vstack([h[part], held[chosen] * h[part], g[part]]).T
        common, slope = sums[:, :-1], sums[:, -1]
        # q^2 = q: h'q is the curvature of q alone, and 1'h Q the row of the constant in M.
        alone = common[:, 0]
        own = np.vstack([np.append(h.sum(), alone[chosen]), common[chosen]])  # of the chosen
        # Least squares: without a ridge, M is singular if the chosen rules are dependent.
        shared = np.linalg.lstsq(own + penalty, common.T)[0].T
        rest = alone - np.sum(common * shared, axis=1)
        # The new weight is -slope / curvature, whose sign must be an allowed one.
        new = (rest > _NEGLIGIBLE * alone) & ((sign == 0) | (sign * slope < 0)) & (sign != 2)
        total += np.where(new, slope**2 / np.where(new, 2 * (rest + ridge), 1.0), 0.0)
    total[chosen] = 0.0
    return total


def per_complexity(gains: Floats, sizes: NDArray[np.int_]) -> Floats:
    """What the next rule maximises."""
    return np.asarray(gains / sizes**_EXPONENT)


def close_to_best(
    losses: Floats, weights: Floats, squares: Floats, n_rows: int
) -> NDArray[np.intp]:
    """The places of those models whose mean loss exceeds the least by no more than a standard
    error.

    Args:
        losses: of each model on each group of rows, held out, (models, groups).
        weights: of the rows, summed over each group, with a total of one.
        squares: of these weights, likewise.
        n_rows: the number of rows in all groups.
    """
    means = losses @ weights
    if not math.isfinite(means.min()):
        return np.arange(1)  # nothing is known: the first
    excess = losses - losses[int(means.argmin())]
    mean = excess @ weights
    # The standard error of the paired difference, per row: what is hard for both models cancels.
    errors = ((excess - mean[:, None]) ** 2) @ squares * n_rows / max(n_rows - 1, 1)
    return np.flatnonzero(mean <= np.sqrt(errors))  # the best has an excess of 0 and no error
