"""Newton's method for a smooth penalised loss of a linear score, as a traceable function of arrays.

Minimises, over the coefficients b (one per column),

    sum_i v_i loss(y_i, f_i) + 1/2 sum_j penalty_j b_j^2,     f_i = sum_j b_j x_ij,

for tens of columns and any convex loss with two derivatives. May be called inside jit and vmap; the dtype of
`columns` rules. Columns come first, as (columns, rows). `jaxrules.solvers.linear.refit` does the same on the host.

Coefficients may be bound to a sign. Those at 0 that the gradient draws beyond it then stay for the step, Newton's step
is that of the others, and its end is projected (Bertsekas 1982, "Projected Newton methods for optimization problems
with simple constraints").
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxrules.losses import Loss

_RIDGE = 1e-10
"""Added to the Hessian, relative to its diagonal: repeated columns share their coefficient."""


class _State(NamedTuple):
    point: Array
    score: Array
    value: Array
    length: Array
    finished: Array
    steps: Array


def newton(
    loss: Loss,
    columns: Array,
    target: Array,
    weights: Array,
    penalties: Array,
    start: Array,
    *,
    signs: Array | None = None,
    tolerance: float = 1e-12,
    max_steps: int = 60,
) -> Array:
    """The minimiser, from a start. A step that does not decrease the objective is tried again at a quarter.

    Args:
        loss: convex in the score (static).
        columns: (k, rows).
        target: (rows,), in the loss's coding.
        weights: (rows,), at least 0; rows of weight 0 do not count.
        penalties: (k,), at least 0.
        start: (k,).
        signs: (k,) 1 for coefficients that must not be negative, -1 for those that must not be positive, 0 for others;
            None if there are only others. The start keeps them.
        tolerance: the decrease that Newton's model promises, relative to the objective, at which it stops.
        max_steps: bound on the steps.

    Returns:
        (k,) coefficients.
    """
    tiny = jnp.finfo(columns.dtype).tiny

    def objective(point: Array, score: Array) -> Array:
        losses = jnp.where(weights > 0, weights * loss.value(target, score), 0)
        return jnp.sum(losses) + penalties @ point**2 / 2

    def unfinished(state: _State) -> Array:
        return ~state.finished & (state.steps < max_steps)

    def step(state: _State) -> _State:
        gradient = columns @ (weights * loss.gradient(target, state.score)) + penalties * state.point
        curvature = weights * loss.curvature(target, state.score)
        hessian = (columns * curvature[None]) @ columns.T + jnp.diag(penalties)
        if signs is not None:
            free = ~((signs * state.point <= 0) & (signs * gradient > 0))
            gradient = jnp.where(free, gradient, 0)
            hessian = jnp.where(free[:, None] & free[None], hessian, 0)
        hessian = hessian + jnp.diag(_RIDGE * jnp.diagonal(hessian) + jnp.where(jnp.diagonal(hessian) > 0, tiny, 1))
        direction = -jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(hessian), True), gradient)
        promised = -gradient @ direction / 2
        trial = state.point + state.length * direction
        if signs is not None:
            trial = jnp.where(signs * trial < 0, 0, trial)
        score = trial @ columns
        value = objective(trial, score)
        better = value <= state.value
        done = promised <= tolerance * (jnp.abs(state.value) + tiny)
        return _State(
            jnp.where(better, trial, state.point),
            jnp.where(better, score, state.score),
            jnp.where(better, value, state.value),
            jnp.where(better, jnp.minimum(2 * state.length, 1), state.length / 4),
            done | (state.length < 1e-10) | ~(promised > 0),
            state.steps + 1,
        )

    score = start @ columns
    first = objective(start, score)
    state = _State(start, score, first, jnp.ones_like(first), jnp.bool_(False), jnp.int32(0))
    return lax.while_loop(unfinished, step, state).point
