"""The weights of several classes together, compiled: a refit under the softmax loss.

The Hessian couples the classes. The steps use only its diagonal blocks, with the curvatures of
`jaxrules.losses.uncoupled`: K small systems in the place of one with K^2 times as many entries.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxrules.losses import uncoupled
from jaxrules.solvers.linear.newton import accepted, damped_hessian

_SHORTEST = 1e-6
"""The search for a shorter step ends below this length."""


class _SoftmaxState(NamedTuple):
    point: Array
    scores: Array
    normaliser: Array  # log sum_k exp(f_k), (rows,)
    value: Array
    length: Array
    finished: Array
    steps: Array


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

    own = (1 + target) / 2

    def value(point: Array, scores: Array) -> tuple[Array, Array]:
        # log sum_k exp(f_k) - f_y, with y the row's class, plus the ridge
        normaliser = jax.nn.logsumexp(scores, axis=0)
        losses = normaliser - jnp.sum(own * scores, axis=0)
        return normaliser, weights @ losses + jnp.sum(point**2 @ penalties) / 2

    def step(state: _SoftmaxState) -> _SoftmaxState:
        point = state.point
        # gradient_k = sum_i c_i (p_ik - [y_i = k]) x_i + ridge b_k
        p = jnp.exp(state.scores - state.normaliser[None])
        gradient = (weights[None] * (p - own)) @ design.T + point * penalties[None]
        # H_kk = sum_i c_i K / (K - 1) p_ik (1 - p_ik) x_i x_i' + ridge; no H_kl
        curvature = weights[None] * uncoupled(p, n_classes)
        factors = jnp.linalg.cholesky(blocks(design, curvature, penalties))
        move = -jax.vmap(lambda a, b: jax.scipy.linalg.cho_solve((a, True), b))(factors, gradient)
        promised = -jnp.sum(gradient * move) / 2
        following = point + state.length * move
        scores = following @ design
        normaliser, trial = value(following, scores)
        # Without the coupling, a full step may overshoot. A refused one leaves the point and is
        # repeated at a quarter of its length; an accepted one doubles the next length, up to 1.
        better = accepted(state.value, trial, state.length, promised)
        return _SoftmaxState(
            jnp.where(better, following, point),
            jnp.where(better, scores, state.scores),
            jnp.where(better, normaliser, state.normaliser),
            jnp.where(better, trial, state.value),
            jnp.where(better, jnp.minimum(2 * state.length, 1), state.length / 4),
            (promised <= tolerance * state.value) | (state.length < _SHORTEST),
            state.steps + 1,
        )

    def unfinished(state: _SoftmaxState) -> Array:
        return ~state.finished & (state.steps < max_steps)

    scores = start @ design
    normaliser, first = value(start, scores)
    whole, no = jnp.ones_like(first), jnp.bool_(False)
    state = _SoftmaxState(start, scores, normaliser, first, whole, no, jnp.int32(0))
    return lax.while_loop(unfinished, step, state).point
