"""The weights of several classes together, compiled: a refit under the softmax loss.

The Hessian couples the classes. The steps use only its diagonal blocks, with the curvatures
K / (K - 1) p_k (1 - p_k) as in `jaxrules.ensembles.boosting.joint`: with two classes they are
Newton's, and with K they take K small systems in the place of one with K^2 times as many entries.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxrules.losses import softmax
from jaxrules.solvers.linear.newton import accepted, damped_hessian

_SHORTEST = 1e-6
"""The search for a shorter step ends below this length."""


class _State(NamedTuple):
    point: Array
    value: Array
    length: Array
    finished: Array
    steps: Array


def slope(target: Array, scores: Array) -> Array:
    """The derivatives of the loss by the scores, (classes, rows); the target is +1 and -1."""
    return jax.nn.softmax(scores, axis=0) - (1 + target) / 2


def refitted(
    design: Array,
    target: Array,
    weights: Array,
    penalties: Array,
    start: Array,
    *,
    tolerance: float,
    max_steps: int,
) -> Array:
    """The best coefficients, from a start. Traceable.

    Args:
        design: (k, rows).
        target: +1 for the row's class, -1 for the others, (classes, rows).
        weights: (rows,), at least 0.
        penalties: ridge on the coefficients of every class, (k,).
        start: (classes, k).
        tolerance: it stops once the quadratic model promises no larger decrease than this, relative
            to the objective.
        max_steps: bound on the steps.
    """
    n_classes = len(target)
    blocks = jax.vmap(damped_hessian, in_axes=(None, 0, None))

    def value(point: Array) -> Array:
        losses = softmax(target.T, (point @ design).T)
        return weights @ losses + jnp.sum(point**2 @ penalties) / 2

    def step(state: _State) -> _State:
        point = state.point
        p = jax.nn.softmax(point @ design, axis=0)
        rest = weights[None] * (p - (1 + target) / 2)
        gradient = rest @ design.T + point * penalties[None]
        curvature = weights[None] * p * (1 - p) * (n_classes / (n_classes - 1))
        factors = jnp.linalg.cholesky(blocks(design, curvature, penalties))
        move = -jax.vmap(lambda a, b: jax.scipy.linalg.cho_solve((a, True), b))(factors, gradient)
        promised = -jnp.sum(gradient * move) / 2
        following = point + state.length * move
        trial = value(following)
        better = accepted(state.value, trial, state.length, promised)
        return _State(
            jnp.where(better, following, point),
            jnp.where(better, trial, state.value),
            jnp.where(better, jnp.minimum(2 * state.length, 1), state.length / 4),
            (promised <= tolerance * state.value) | (state.length < _SHORTEST),
            state.steps + 1,
        )

    def unfinished(state: _State) -> Array:
        return ~state.finished & (state.steps < max_steps)

    first = value(start)
    state = _State(start, first, jnp.ones_like(first), jnp.bool_(False), jnp.int32(0))
    return lax.while_loop(unfinished, step, state).point
