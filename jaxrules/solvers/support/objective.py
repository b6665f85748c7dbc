"""What a support costs and what one column can win: the penalty and Lemma 1 and Theorem 1 of LIRE (Kanamori, 2023).

Every function works element by element, on numbers, NumPy arrays and jax arrays, traced ones included: the
kernels call them, and so do the tests.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrules.losses import Loss, exponential

Array = Any  # a number, a NumPy array or a jax array

SHARE_CLIP = 1e-10
"""The share of wrongly signed loss is clipped to [1e-10, 1 - 1e-10], so that separable data have finite weights."""


def penalty(size: Array, covered: Array, global_penalty: Array, local_penalty: Array) -> Array:
    """gamma |supp| + lambda Omega_L, where Omega_L is the mean coverage of the support (0 when it is empty).

    Args:
        size: |supp|.
        covered: the sum of the coverages p_m over the support.
        global_penalty, local_penalty: gamma and lambda.
    """
    return global_penalty * size + local_penalty * covered / (size + (size == 0))


def penalty_increase(
    size: Array, local_ratio: Array, coverage: Array, global_penalty: Array, local_penalty: Array
) -> Array:
    """C_m: by how much the penalty rises when rule m joins the support (Lemma 1).

    It is negative when the rule covers so little that it lowers Omega_L by more than gamma is worth.

    Args:
        size: |supp| before.
        local_ratio: Omega_L before; 0 for an empty support.
        coverage: p_m.
        global_penalty, local_penalty: gamma and lambda.
    """
    return global_penalty + local_penalty * (coverage - local_ratio) / (1 + size)


def best_weight(loss: Array, wrong_share: Array, increase: Array) -> Array:
    """The weight of one rule outside the support that minimises G, the other weights fixed (Theorem 1).

    The printed theorem decides by an interval around 1/2, and squares an inequality to get it. That loses a
    sign: the interval is wrong for C_m < 0 and for eps < C_m < 2 eps. The decrease itself decides here:
    the rule is kept if and only if eps (1 - 2 sqrt(eps- (1 - eps-))) > C_m.

    Args:
        loss: eps, the mean exponential loss on the rows that the rule moves (0 elsewhere); at least 0.
        wrong_share: eps-, the share of it on rows of the negative class, in [0, 1]. It is clipped to
            [1e-10, 1 - 1e-10], so that a pure rule has a finite weight.
        increase: C_m, see `penalty_increase`.

    Returns:
        1/2 ln((1 - eps-) / eps-), or 0 where the rule stays out: also where eps = 0, and where eps- = 1/2 and
        C_m < 0 (any tiny weight would do; the infimum is not attained).
    """
    xp = jnp if isinstance(loss, jax.Array) else np
    share = xp.clip(wrong_share, SHARE_CLIP, 1 - SHARE_CLIP)
    decrease = loss - least_loss(loss * (1 - share), loss * share)
    return xp.where((decrease > increase) & (loss > 0), 0.5 * xp.log((1 - share) / share), 0.0)


def least_loss(helped: Array, harmed: Array) -> Array:
    """What the best weight leaves of the exponential loss on the rows that a rule moves.

    Args:
        helped, harmed: that loss where a positive weight helps and harms: eps (1 - eps-) and eps eps-.
    """
    xp = jnp if isinstance(helped, jax.Array) else np
    return 2 * xp.sqrt(xp.maximum(helped, 0.0) * xp.maximum(harmed, 0.0))


def loss_terms(loss: Loss, target: Array, weight: Array, margins: Array) -> tuple[Array, Array, Array]:
    """The loss, summed, and downhill slope and curvature of every pattern at these margins; all shape (patterns,).

    Args:
        target, weight: the mean target and the weight of every pattern, see `jaxrules.losses.merge_rows`.
    """
    if loss is exponential:  # one power serves all three; it stays finite, because 0 * inf would be NaN
        xp = jnp if isinstance(margins, jax.Array) else np
        power = xp.exp(xp.clip(margins, -600.0, 600.0))
        right, wrong = weight * (1 + target) / 2 / power, weight * (1 - target) / 2 * power
        return (right + wrong).sum(), right - wrong, right + wrong
    value, slope = weight * loss.value(target, margins), -weight * loss.gradient(target, margins)
    return value.sum(), slope, weight * loss.curvature(target, margins)
