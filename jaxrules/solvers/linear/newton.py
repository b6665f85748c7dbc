"""Newton's method for a smooth penalised loss of a linear score, on the host and as a traceable
function of arrays.

Minimises, over the coefficients b (one per column) between their ends,

    F(b) = sum_i v_i loss(y_i, f_i) + 1/2 sum_j penalty_j b_j^2,    f_i = sum_j b_j x_ij + offset_i,

for tens of columns and any convex loss with two derivatives. Columns come first, as (columns,
rows).

`newton_on_host` is a Python loop over NumPy: nothing is compiled, and small problems take a
fraction of a millisecond. `newton` is a `lax.while_loop`, for use inside jit and vmap. They share
the formulas, which are functions of arrays of either kind: `evaluate`, `damped_hessian`, `held`,
`within` and `accepted`.

Coefficients at an end that a step downhill would cross stay fixed for the step. The others take
Newton's step, whose result is projected (Bertsekas 1982, "Projected Newton methods for optimization
problems with simple constraints").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from jaxrules.losses import Loss, derivatives, widened
from jaxrules.tools.float64 import numpy_of

Floats = NDArray[np.float64]

_RIDGE = 1e-9
"""Added to the Hessian, relative to its diagonal: repeated columns share their coefficient."""
_SUFFICIENT = 0.1
"""Share of the promised decrease that a step must achieve (Armijo)."""
_ROUNDING = 4.0
"""Units of rounding by which the objective may rise: near the minimum, decreases are smaller than
that.
"""
_NO_ROUNDING = 1e-9
"""A decrease by more than this share of the objective is none of rounding."""
_SHORTEST = 1e-10
"""The search for a shorter step ends below this length."""

Numbers = Any  # an array of NumPy or JAX, or a number


# The formulas, for arrays of NumPy and of JAX


class Evaluation(NamedTuple):
    """The objective at a point.

    Attributes:
        value: scalar, F.
        gradient: (k,), of F.
        curvature: (rows,), second derivatives of the weighted losses.
    """

    value: Numbers
    gradient: Numbers
    curvature: Numbers


def evaluate(
    loss: Loss,
    columns: Numbers,
    target: Numbers,
    weights: Numbers,
    penalties: Numbers,
    point: Numbers,
    score: Numbers,
) -> Evaluation:
    """The objective and its derivatives at a point and its scores."""
    value, gradient, curvature = loss.terms(target, score)
    return Evaluation(
        weights @ value + penalties @ point**2 / 2,
        columns @ (weights * gradient) + penalties * point,
        weights * curvature,
    )


def damped_hessian(columns: Numbers, curvature: Numbers, penalties: Numbers) -> Numbers:
    """(k, k), positive definite, also for repeated columns and columns of zeros."""
    xp = numpy_of(columns)
    hessian = (columns * curvature[None]) @ columns.T
    ridge = _RIDGE * (xp.diagonal(hessian) + penalties) + xp.finfo(hessian.dtype).tiny
    return hessian + xp.diag(penalties + ridge)


def ends_of(signs: Numbers) -> tuple[Numbers, Numbers]:
    """The least and the greatest coefficients of given signs, (k,) each.

    Args:
        signs: (k,) 1 for coefficients that must not be negative, -1 for those that must not
            be positive, 0 for others.
    """
    xp = numpy_of(signs)
    return xp.where(signs > 0, 0.0, -xp.inf), xp.where(signs < 0, 0.0, xp.inf)


def held(point: Numbers, slope: Numbers, least: Numbers, most: Numbers) -> Numbers:
    """Which coefficients stay fixed: those at an end that a step down this slope would cross."""
    return ((point <= least) & (slope > 0)) | ((point >= most) & (slope < 0))


def within(point: Numbers, least: Numbers, most: Numbers) -> Numbers:
    """The point projected onto its ends."""
    xp = numpy_of(point)
    return xp.minimum(xp.maximum(point, least), most)  # faster than np.clip


def accepted(now: Numbers, trial: Numbers, length: Numbers, promised: Numbers) -> Numbers:
    """Whether a step of this length achieves enough of the decrease that the full step promised;
    never if it leads to NaN.
    """
    xp = numpy_of(now)
    rounding = _ROUNDING * xp.finfo(xp.result_type(now, 1.0)).eps * abs(now)
    # Comparisons with NaN are False.
    return trial <= now - _SUFFICIENT * length * promised + rounding


# On the host


def newton_on_host(
    loss: Loss,
    columns: Floats,
    target: Floats,
    weights: Floats,
    penalties: Floats,
    start: Floats,
    *,
    offset: Floats | float = 0.0,
    ends: tuple[Floats, Floats] | None = None,
    relative: float = 1e-14,
    absolute: float = 0.0,
    goal: float = np.inf,
    max_steps: int = 100,
    widen: bool = True,
) -> tuple[Floats, float]:
    """The minimiser and its objective, from a start. A step that does not descend is retried at a
    quarter of its length.

    Args:
        loss: convex in the score.
        columns: (k, rows).
        target: (rows,), in the loss's coding.
        weights: (rows,), at least 0.
        penalties: (k,), at least 0.
        start: (k,); replaced with 0 if its objective is not finite, or if it is worse and no steps
            lead below that of 0.
        offset: a fixed part of the scores, (rows,).
        ends: the least and the greatest coefficients, (k,) each, at most and at least 0; None for
            none.
        relative, absolute: it stops once Newton's model promises no larger decrease than these,
            relative to the objective and in absolute terms.
        goal: it stops early once the objective cannot be expected to fall below this.
        max_steps: bound on the steps.
        widen: whether, if the steps end early at a loss with a narrow kink, they start again from
            the minimum of wider ones.

    Raises:
        ValueError: for non-finite derivatives or negative curvature of the loss.
    """
    reached, (least, most) = False, (-np.inf, np.inf) if ends is None else ends

    def at(point: Floats) -> Evaluation:
        return evaluate(loss, columns, target, weights, penalties, point, point @ columns + offset)

    with np.errstate(all="ignore"):
        point = within(np.asarray(start, np.float64), least, most)
        now = at(point)
        if not np.isfinite(now.value):
            # A start whose scores overflow is useless; at 0 the scores are the offset alone.
            point = np.zeros_like(point)
            now = at(point)
        first = point
        for _ in range(max_steps if len(point) else 0):
            # Also for NaN, which no comparison would catch as negative; the error follows below.
            if not now.curvature.min(initial=0.0) >= 0:
                break
            step, promised = _step(columns, now, penalties, point, least, most)
            enough = promised > max(relative * abs(now.value), absolute)
            if not enough or now.value - 2 * promised >= goal:
                # For a quadratic loss, a second step removes the error that the ridge left.
                if loss.quadratic and promised > absolute:
                    point = within(point + step, least, most)
                reached = np.isfinite(promised)
                break
            length = 1.0
            following = within(point + step, least, most)
            trial = at(following)
            while not accepted(now.value, trial.value, length, promised) and length > _SHORTEST:
                length /= 4
                if ends is not None:  # a projected step may lead uphill
                    length = min(length, _to_the_end(point, step, least, most))
                trial = at(following := within(point + length * step, least, most))
            # Accepted within rounding only, or no shorter step helps: nothing more can be gained.
            if not trial.value < now.value:
                break
            point, now = following, trial
    if not (np.isfinite(now.gradient).all() and now.curvature.min(initial=0.0) >= 0):
        derivatives(loss, target, point @ columns + offset)  # says what is wrong
    found = point, float(now.value)
    if reached or not len(point):
        return found
    return _again(
        loss, (columns, target, weights, penalties), first, found, goal, widen, offset=offset,
        ends=ends, relative=relative, absolute=absolute, max_steps=max_steps,
    )  # fmt: skip


def _again(
    loss: Loss,
    rows: tuple[Floats, Floats, Floats, Floats],
    start: Floats,
    found: tuple[Floats, float],
    goal: float,
    widen: bool,
    **given: Any,
) -> tuple[Floats, float]:
    """The minimum from 0, if that is below what was found; else the better of this and the one that
    steps from the minimum of a wider loss reach.
    """
    nothing, lower = np.zeros_like(start), found[1] - _NO_ROUNDING * abs(found[1])
    with np.errstate(all="ignore"):
        fixed = np.broadcast_to(given["offset"], rows[1].shape)
        at_nothing = evaluate(loss, *rows, nothing, fixed).value
    if start.any() and at_nothing < lower:
        # The start was so far away that its curvature, and with it all decreases, was rounding
        return newton_on_host(loss, *rows, nothing, goal=goal, widen=widen, **given)
    if not widen:
        return found
    scores = np.broadcast_to(start @ rows[0] + given["offset"], rows[1].shape)
    wider = widened(loss, rows[1], scores)
    if wider is None:
        return found
    # The wider loss may be widened in turn; the second call starts near its minimum and need not.
    wide, _ = newton_on_host(wider, *rows, start, **given)
    again = newton_on_host(loss, *rows, wide, goal=goal, widen=False, **given)
    return again if again[1] < found[1] else found


def _step(
    columns: Floats,
    now: Evaluation,
    penalties: Floats,
    point: Floats,
    least: Numbers,
    most: Numbers,
) -> tuple[Floats, float]:
    """Newton's step, and the decrease that it promises.

    Coefficients at an end that the step would cross stay fixed too; the others move as if those
    were constants.
    """
    hessian = damped_hessian(columns, now.curvature, penalties)
    if not ((point <= least) | (point >= most)).any():
        step = -_solved(hessian, now.gradient)
        return step, float(-now.gradient @ step / 2)
    step = np.zeros_like(point)
    free = ~held(point, now.gradient, least, most)
    # Every round fixes at least one more coefficient, so that there are at most k of them.
    while free.any():
        on = np.flatnonzero(free)
        step[:] = 0.0
        step[on] = -_solved(hessian[on[:, None], on], now.gradient[on])
        crossing = free & held(point, -step, least, most)
        if not crossing.any():
            return step, float(-now.gradient @ step / 2)
        free &= ~crossing
    return np.zeros_like(point), 0.0


def _solved(hessian: Floats, gradient: Floats) -> Floats:
    # Calls LAPACK directly: for such small systems, SciPy's checks take as long as the solution.
    _, step, failed = dposv(hessian, gradient)
    return np.asarray(gradient / np.diagonal(hessian) if failed else step)


def _to_the_end(point: Floats, step: Floats, least: Numbers, most: Numbers) -> float:
    """The part of the step at which the first coefficient reaches its end."""
    moving = step != 0
    room = np.where(step > 0, most, least)[moving] - point[moving]
    return float(np.min(room / step[moving], initial=np.inf))


# Traced


class _NewtonState(NamedTuple):
    point: Array
    now: Evaluation
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
    """The minimiser, from a start. Traceable, in the dtype of `columns`.

    A step that does not descend is retried at a quarter of its length; after that, the length
    doubles with every successful step.

    Args:
        loss: convex in the score (static).
        columns: (k, rows).
        target: (rows,), in the loss's coding.
        weights: (rows,), at least 0; rows of weight 0 do not count.
        penalties: (k,), at least 0.
        start: (k,).
        signs: (k,), see `ends_of`; None if all are 0. The start must satisfy them.
        tolerance: it stops once Newton's model promises no larger decrease than this, relative to
            the objective.
        max_steps: bound on the steps.

    Returns:
        (k,) coefficients.
    """
    tiny = jnp.finfo(columns.dtype).tiny
    least, most = (-jnp.inf, jnp.inf) if signs is None else ends_of(signs)

    def at(point: Array) -> Evaluation:
        score = jnp.where(weights > 0, point @ columns, 0)  # those of other rows may overflow
        return evaluate(loss, columns, target, weights, penalties, point, score)

    def unfinished(state: _NewtonState) -> Array:
        return ~state.finished & (state.steps < max_steps)

    def step(state: _NewtonState) -> _NewtonState:
        point, now, length = state.point, state.now, state.length
        gradient, hessian = now.gradient, damped_hessian(columns, now.curvature, penalties)
        if signs is not None:
            free = ~held(point, gradient, least, most)
            gradient = jnp.where(free, gradient, 0)
            # The diagonal stays for those held, and their slope is set to 0: the matrix is positive
            # definite, and they do not move.
            kept = (free[:, None] & free[None]) | jnp.eye(len(free), dtype=bool)
            hessian = jnp.where(kept, hessian, 0)
        direction = -jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(hessian), True), gradient)
        promised = -gradient @ direction / 2
        following = within(point + length * direction, least, most)
        trial = at(following)
        better = accepted(now.value, trial.value, length, promised)
        point, now = jax.tree.map(
            lambda new, old: jnp.where(better, new, old), (following, trial), (point, now)
        )
        done = promised <= tolerance * (jnp.abs(state.now.value) + tiny)
        done = done | (length < _SHORTEST) | ~(promised > 0)
        length = jnp.where(better, jnp.minimum(2 * length, 1), length / 4)
        return _NewtonState(point, now, length, done, state.steps + 1)

    first = at(start)
    state = _NewtonState(start, first, jnp.ones_like(first.value), jnp.bool_(False), jnp.int32(0))
    return lax.while_loop(unfinished, step, state).point
