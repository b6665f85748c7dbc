"""Proximal Newton for an L1-penalised loss of a linear score, as traceable functions of arrays.

Minimises, over the coefficients b (one per column) and an unpenalised intercept b0,

    F(b, b0) = sum_i v_i loss(t_i, f_i) + sum_j penalty_j |b_j|,     f_i = b0 + sum_j b_j x_ij,

with row weights v that sum to one. Every step minimises a quadratic model of the loss plus the penalty
(coordinate descent on the Gram matrix, finished by Newton steps on the support) and then searches along the
line (Lee, Sun and Saunders 2014, "Proximal Newton-type methods for minimizing composite functions").

Everything here may be called inside jit and vmap, in float32 or float64: the dtype of `columns` rules.
Columns come first, as (columns, rows): a column is then contiguous. `jaxrules.solvers.linear.sparse_glm` is the
front door for arrays on the host.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

LossName = Literal["logistic", "squared"]
LOSSES: tuple[LossName, ...] = ("logistic", "squared")

_SWEEPS = 3  # coordinate descent sweeps between two Newton steps on the support
_ROUNDS = 40  # rounds of sweeps and support Newton steps for one quadratic model
_EASY_ROUNDS = 3  # rounds before the interior-point method
_INNER_ITERATIONS = 30  # of the interior-point method
_NEWTON_RIDGE = 0.8  # added to Hessians that are factorised: this power of the rounding unit, relative
_INNER_RIDGE = 0.7  # the same for the interior-point method
_STEP_SIZES = (1.0, 0.5, 0.2, 0.05, 0.01)  # tried along the Newton step on the support
_HALVINGS = 30  # of the line search
_CENTRING_ITERATIONS = 60  # for the intercept alone
_ARMIJO = 1e-4  # share of the predicted decrease that a step must realise
_INEXACT = 0.01  # violation left in a quadratic model, relative to that of the problem
_REUSE = 0.2  # the Gram matrix is kept while a step cuts the violation to this share


# Losses of a target and a score. A logistic target is the probability of the positive class: 0 or 1 for a
# row, a share in between for merged rows, whose summed loss it gives.


def loss_value(loss: LossName, target: Array, score: Array) -> Array:
    """(t - f)^2, or t log(1 + e^-f) + (1 - t) log(1 + e^f)."""
    if loss == "squared":
        return (target - score) ** 2
    return target * jax.nn.softplus(-score) + (1 - target) * jax.nn.softplus(score)


def loss_slope(loss: LossName, target: Array, score: Array) -> Array:
    """The derivative of the loss by the score, without cancellation where a logistic score saturates."""
    if loss == "squared":
        return 2 * (score - target)
    return (1 - target) * jax.nn.sigmoid(score) - target * jax.nn.sigmoid(-score)


def loss_curvature(loss: LossName, score: Array) -> Array:
    """The second derivative of the loss by the score."""
    if loss == "squared":
        return jnp.full_like(score, 2)
    return jax.nn.sigmoid(score) * jax.nn.sigmoid(-score)


def conjugate_value(loss: LossName, target: Array, dual: Array) -> Array:
    """sup_f (dual * f - loss(target, f)), the convex conjugate; infinite outside its domain."""
    if loss == "squared":
        return dual * target + dual**2 / 4
    share = dual + target
    rounding = 64 * jnp.finfo(dual.dtype).eps
    outside = (share < -rounding) | (share > 1 + rounding)
    share = jnp.clip(share, 0, 1)
    entropy = jax.scipy.special.xlogy(share, share) + jax.scipy.special.xlog1py(1 - share, -share)
    return jnp.where(outside, jnp.inf, entropy)


def kkt_violation(coefficients: Array, slope: Array, penalties: Array) -> Array:
    """Distance of 0 from the subdifferential of the objective, per coefficient."""
    return jnp.where(
        coefficients != 0,
        jnp.abs(slope + penalties * jnp.sign(coefficients)),
        jnp.maximum(jnp.abs(slope) - penalties, 0),
    )


def centring_shift(
    loss: LossName, weights: Array, target: Array, score: Array, fit_intercept: Array | bool = True
) -> Array:
    """The change of the intercept that minimises the loss of `score + shift`: its weighted slope is then zero.

    Newton's method in one dimension, kept inside the bracket that the signs of the slope give; 0 without
    `fit_intercept`.
    """
    max_iterations = jnp.where(fit_intercept, _CENTRING_ITERATIONS, 0)
    dtype = score.dtype
    eps = jnp.finfo(dtype).eps

    def unfinished(state: tuple[Array, ...]) -> Array:
        _, low, high, slope, size, iterations = state
        return (jnp.abs(slope) > 4 * eps * size) & (high - low > 0) & (iterations < max_iterations)

    def slope_at(shift: Array) -> tuple[Array, Array]:
        row_slope = weights * loss_slope(loss, target, score + shift)
        return jnp.sum(row_slope), jnp.sum(jnp.abs(row_slope))

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        shift, low, high, slope, _, iterations = state
        low, high = jnp.where(slope < 0, shift, low), jnp.where(slope > 0, shift, high)
        curvature = jnp.sum(weights * loss_curvature(loss, score + shift))
        newton = shift - slope / (curvature + jnp.finfo(dtype).tiny)
        if loss == "logistic":  # far from the minimum the curvature vanishes
            newton = jnp.clip(newton, shift - 3, shift + 3)
        middle = (low + high) / 2  # NaN while a side is open: then the clipped Newton step stays
        shift = jnp.where((newton <= low) | (newton >= high), middle, newton)
        slope, size = slope_at(shift)
        return shift, low, high, slope, size, iterations + 1

    zero, infinity = jnp.zeros((), dtype), jnp.asarray(jnp.inf, dtype)
    start: tuple[Array, ...] = (zero, -infinity, infinity, *slope_at(zero), jnp.int32(0))
    return lax.while_loop(unfinished, step, start)[0]


def project_out(
    columns: Array,
    chosen: Array,
    weights: Array,
    dual: Array,
    curvature: Array,
    fit_intercept: Array | bool,
    refinements: int = 3,
) -> Array:
    """`dual` (rows,) made orthogonal, under `weights`, to the chosen columns and to the constant.

    A dual point is feasible only if it is orthogonal to everything without a penalty. The correction is the
    change that a Newton step of the score makes: proportional to the curvature, it keeps logistic duals of
    saturated rows in their domain.

    Args:
        columns: (k, rows).
        chosen: (k,) bool, the columns to project out.
        curvature: (rows,) of the loss.
    """
    tiny = jnp.finfo(columns.dtype).tiny
    metric = weights * curvature

    def mean(values: Array) -> Array:
        return jnp.where(fit_intercept, values @ metric / (jnp.sum(metric) + tiny), 0)

    if columns.shape[0] == 0:
        slope = jnp.where(fit_intercept, jnp.sum(weights * dual), 0)
        return dual - curvature * (slope / (jnp.sum(metric) + tiny))
    basis = jnp.where(chosen[:, None], columns, 0)
    basis = jnp.concatenate([basis - mean(basis)[:, None], jnp.where(fit_intercept, 1, 0) * jnp.ones_like(basis[:1])])
    matrix = (basis * metric[None, :]) @ basis.T
    ridge = jnp.finfo(columns.dtype).eps ** _NEWTON_RIDGE * jnp.max(jnp.diagonal(matrix)) + tiny
    used = jnp.diagonal(matrix) > 0
    factor = jnp.linalg.cholesky(matrix + jnp.diag(jnp.where(used, ridge, 1)))
    for _ in range(refinements):
        along = jax.scipy.linalg.cho_solve((factor, True), basis @ (weights * dual))
        dual = dual - curvature * (along @ basis)
    return dual


def dual_bound(loss: LossName, weights: Array, target: Array, dual: Array, slope: Array, penalties: Array) -> Array:
    """A lower bound on the minimum of F, from a dual point orthogonal to all that has no penalty.

    Fenchel duality: -sum_i v_i conjugate(t_i, theta_i) is a bound for every theta with
    |sum_i v_i theta_i x_ij| <= penalty_j and sum_i v_i theta_i = 0. `dual` is shrunk until the former holds.
    Both losses are non-negative, so that 0 is a bound too.

    Args:
        dual: (rows,), the loss slope of some score after `project_out`.
        slope: (k,), sum_i v_i dual_i x_ij.
        penalties: (k,); columns without a penalty are taken as orthogonal.
    """
    ratio = jnp.where(penalties > 0, penalties / jnp.maximum(jnp.abs(slope), jnp.finfo(slope.dtype).tiny), 1)
    shrunk = jnp.minimum(1, jnp.min(ratio, initial=1)) * dual
    conjugate = jnp.where(weights > 0, weights * conjugate_value(loss, target, shrunk), 0)
    return jnp.maximum(-jnp.sum(conjugate), 0)


def quadratic_minimum(
    hessian: Array, slope: Array, start: Array, penalties: Array, tolerance: Array, max_rounds: int = _ROUNDS
) -> Array:
    """Minimise slope'd + d' hessian d / 2 + sum_j penalties_j |start_j + d_j| over d; returns start + d.

    Rounds of coordinate descent, which finds the support, and Newton steps on the support. Where the support
    is not found at once (nested rules are nearly collinear columns, on which coordinate descent takes
    thousands of sweeps), an interior-point solution is the new start: some ten Cholesky factorisations.

    Args:
        hessian: (k, k), positive semidefinite.
        slope: (k,), gradient of the smooth part at `start`.
        start: (k,).
        penalties: (k,), at least 0.
        tolerance: scalar, the largest KKT violation to leave.
        max_rounds: bound on the rounds.
    """
    size = start.shape[0]
    diagonal = jnp.diagonal(hessian)
    # A column without curvature (constant, padding) keeps a coefficient of exactly zero under any penalty.
    ridge = jnp.finfo(hessian.dtype).eps ** _NEWTON_RIDGE * jnp.max(diagonal) + jnp.finfo(hessian.dtype).tiny
    curvature = jnp.maximum(diagonal, ridge)

    def update(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        b, gradient = state
        j = i % size
        alone = curvature[j] * b[j] - gradient[j]
        new = jnp.sign(alone) * jnp.maximum(jnp.abs(alone) - penalties[j], 0) / curvature[j]
        return b.at[j].set(new), gradient + hessian[j] * (new - b[j])

    def improved(b: Array, gradient: Array, inner: Array) -> Array:
        """The best of b, `inner` and points on b's Newton step over its support; flipping signs stop at zero."""
        support = (b != 0) | (penalties == 0)
        both = support[:, None] & support[None, :]
        matrix = jnp.where(both, hessian, 0) + jnp.diag(jnp.where(support, ridge, 1))
        right = jnp.where(support, gradient + penalties * jnp.sign(b), 0)
        step = -jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(matrix), True), right)
        trials = b[None, :] + jnp.asarray(_STEP_SIZES, b.dtype)[:, None] * step[None, :]
        trials = jnp.where((trials * b[None, :] < 0) & (penalties > 0)[None, :], 0, trials)
        trials = jnp.concatenate([trials, inner[None, :]])
        d = trials - b[None, :]
        linear = gradient[None, :] * d + penalties[None, :] * (jnp.abs(trials) - jnp.abs(b)[None, :])
        change = jnp.sum(linear + d * (d @ hessian) / 2, axis=1)
        change = jnp.where(jnp.isnan(change), jnp.inf, change)  # the factorisation failed
        # The full step also where it differs from the best, or from b, by no more than rounding.
        rounding = 8 * jnp.finfo(b.dtype).eps * jnp.sum(jnp.abs(gradient * d[0]) + penalties * jnp.abs(d[0]))
        change = change.at[0].add(-rounding)
        best = jnp.argmin(change)
        return jnp.where(change[best] <= 0, trials[best], b)

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        b, gradient, rounds = state
        return (rounds < max_rounds) & (jnp.max(kkt_violation(b, gradient, penalties)) > tolerance)

    def one_round(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        b, gradient, rounds = state
        # The first round is for a start whose support is right: a Newton step is then all that is needed.
        updates = jnp.where(rounds > 0, _SWEEPS * size, 0)
        b, gradient = lax.fori_loop(0, updates, update, (b, gradient))
        iterations = jnp.where(rounds == _EASY_ROUNDS, _INNER_ITERATIONS, 0)
        inner = interior_point(hessian, slope, start, b, penalties, curvature, tolerance / 100, iterations)
        b = improved(b, gradient, jnp.where(iterations > 0, inner, b))
        return b, slope + hessian @ (b - start), rounds + 1

    return lax.while_loop(unfinished, one_round, (start, slope, jnp.int32(0)))[0]


def interior_point(
    hessian: Array,
    slope: Array,
    anchor: Array,
    start: Array,
    penalties: Array,
    curvature: Array,
    tolerance: Array,
    max_iterations: Array | int,
) -> Array:
    """Minimise slope'(b - anchor) + (b - anchor)' hessian (b - anchor) / 2 + sum_j penalties_j |b_j| from inside.

    Mehrotra's predictor-corrector method on b = up - down with up, down >= 0 (Wright 1997, "Primal-Dual
    Interior-Point Methods", chapter 10). The number of iterations hardly depends on the conditioning.

    Args:
        hessian, slope, penalties: as in `quadratic_minimum`.
        anchor: (k,), where `slope` was taken.
        start: (k,), need not be inside.
        curvature: (k,), the diagonal of the Hessian, positive.
        tolerance: scalar, for the complementarity and the residuals.

    Returns:
        (k,) b, with zeros where complementarity says so.
    """
    dtype = hessian.dtype
    free = penalties == 0  # these have no bounds: their `up` takes any sign, their `down` stays zero
    count = 2 * jnp.maximum(jnp.sum(~free), 1)
    regular = hessian + (jnp.finfo(dtype).eps ** _INNER_RIDGE * jnp.max(curvature)) * jnp.eye(len(start), dtype=dtype)
    sides = jnp.asarray([[1], [-1]], dtype)  # the two rows of `parts` and `duals` (2, k): up and down

    def penalised(values: Array) -> Array:
        return jnp.where(free[None, :], 0, values)

    def iteration(state: tuple[Array, ...]) -> tuple[Array, ...]:
        parts, duals, worst, gap, iterations = state
        gradient = slope + regular @ (parts[0] - parts[1] - anchor)
        residual = penalised(sides * gradient[None, :] + penalties[None, :] - duals)
        divisor = jnp.where(free[None, :], 1, parts)
        barrier = jnp.where(free[None, :], 1, duals / divisor)
        inverse = jnp.sum(1 / barrier, axis=0)
        factor = jnp.linalg.cholesky(regular + jnp.diag(jnp.where(free, 0, 1 / inverse)))

        def newton(_: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
            """Newton step of parts and duals towards parts * duals = aim, its length, and a better aim."""
            aim = state[0]
            residual_aim = aim / divisor - duals - residual
            right = jnp.where(free, -gradient, jnp.sum(sides * residual_aim / barrier, axis=0) / inverse)
            along = jax.scipy.linalg.cho_solve((factor, True), right)
            # Each part by its own equation where its barrier is the higher one, else by the difference of the parts.
            change = (residual_aim - sides * (regular @ along)[None, :]) / barrier
            change = jnp.where(barrier < barrier[::-1], change[::-1] + sides * along[None, :], change)
            step = jnp.where(free[None, :], jnp.stack([along, jnp.zeros_like(along)]), change)
            dual_step = penalised(aim / divisor - duals - barrier * step)
            values, steps = jnp.stack([parts, duals]), jnp.stack([step, dual_step])
            length = jnp.min(jnp.where((steps < 0) & ~free[None, None, :], -values / steps, 1), initial=1)
            ahead = jnp.sum(penalised((parts + length * step) * (duals + length * dual_step))) / count
            now = jnp.sum(penalised(parts * duals)) / count
            return (ahead / now) ** 3 * now - step * dual_step, step, dual_step, length

        # First the predictor, with aim 0; then the corrector.
        nothing = jnp.zeros_like(parts)
        _, step, dual_step, length = lax.fori_loop(0, 2, newton, (nothing, nothing, nothing, jnp.zeros((), dtype)))
        parts, duals = parts + 0.995 * length * step, duals + 0.995 * length * dual_step
        worst = jnp.maximum(jnp.max(jnp.abs(residual)), jnp.max(jnp.where(free, jnp.abs(gradient), 0)))
        gap = jnp.sum(penalised(parts * duals)) / count
        return parts, duals, (1 - 0.995 * length) * worst, gap, iterations + 1

    def unfinished(state: tuple[Array, ...]) -> Array:
        *_, worst, gap, iterations = state
        small = (worst <= tolerance) & (gap * jnp.max(curvature) <= tolerance * jnp.max(penalties))
        return ~small & ~jnp.isnan(worst + gap) & (iterations < max_iterations)

    # The start, shifted inside: every part and every dual is at least a small share of what is large.
    gradient = slope + regular @ (start - anchor)
    shift = jnp.max(penalties) / jnp.max(curvature) + jnp.max(jnp.abs(start)) / 100
    violation = jnp.max(kkt_violation(start, gradient, penalties))
    parts = jnp.maximum(sides * start[None, :], 0) + shift
    parts = jnp.where(free[None, :], jnp.stack([start, jnp.zeros_like(start)]), parts)
    duals = jnp.maximum(penalties[None, :] + sides * gradient[None, :], 0) + jnp.max(penalties) / 10 + violation / 10
    duals = jnp.where(free[None, :], 1, duals)
    infinity = jnp.asarray(jnp.inf, dtype)
    state: tuple[Array, ...] = (parts, duals, infinity, infinity, jnp.int32(0))
    parts, duals, *_ = lax.while_loop(unfinished, iteration, state)
    b = parts[0] - parts[1]
    return jnp.where(~free & (curvature * jnp.abs(b) <= jnp.min(duals, axis=0)), 0, b)


class Iterate(NamedTuple):
    """Where proximal Newton stands; the result of `proximal_newton`.

    Attributes:
        coefficients: (k,).
        intercept: scalar.
        score: (rows,).
        objective: scalar, F.
        violation: scalar, the largest KKT violation over coefficients and intercept.
        steps: scalar int, Newton steps taken.
        stalled: scalar bool, no step decreases the objective in this precision.
    """

    coefficients: Array
    intercept: Array
    score: Array
    objective: Array
    violation: Array
    steps: Array
    stalled: Array


class _State(NamedTuple):
    iterate: Iterate
    row_slope: Array
    slope: Array
    hessian: Array
    coupling: Array
    intercept_curvature: Array
    refresh: Array


def proximal_newton(
    columns: Array,
    weights: Array,
    target: Array,
    penalties: Array,
    coefficients: Array,
    intercept: Array,
    *,
    loss: LossName,
    fit_intercept: Array | bool,
    tolerance: Array,
    max_steps: Array,
) -> Iterate:
    """Minimise F from a start, using all columns in every step. Traceable; `loss` is static.

    Args:
        columns: (k, rows).
        weights: (rows,), at least 0, sum 1.
        target: (rows,), real for the squared loss, in [0, 1] for the logistic one.
        penalties: (k,), at least 0.
        coefficients: (k,), the start.
        intercept: scalar, the start.
        loss: "logistic" or "squared".
        fit_intercept: False keeps the intercept where it starts.
        tolerance: scalar, the largest KKT violation to leave.
        max_steps: scalar int, bound on the Newton steps.
    """
    dtype = columns.dtype
    eps = jnp.finfo(dtype).eps

    def objective(b: Array, score: Array) -> Array:
        return weights @ loss_value(loss, target, score) + jnp.sum(penalties * jnp.abs(b))

    def slopes(score: Array) -> tuple[Array, Array]:
        row_slope = weights * loss_slope(loss, target, score)
        return row_slope, columns @ row_slope

    def worst(b: Array, row_slope: Array, slope: Array) -> Array:
        intercept_slope = jnp.where(fit_intercept, jnp.abs(jnp.sum(row_slope)), 0)
        return jnp.maximum(jnp.max(kkt_violation(b, slope, penalties)), intercept_slope)

    def gram(score: Array) -> tuple[Array, Array, Array]:
        """Hessian of the loss with the intercept minimised out, and what that elimination needs."""
        curvature = weights * loss_curvature(loss, score)
        weighted = columns * curvature[None, :]
        matrix = weighted @ columns.T
        coupling = jnp.sum(weighted, axis=1)
        # A fixed intercept is one of infinite curvature.
        total = jnp.where(fit_intercept, jnp.sum(curvature) + jnp.finfo(dtype).tiny, jnp.inf)
        matrix = matrix - coupling[:, None] * (coupling / total)[None, :]
        return matrix, coupling, total

    def step(state: _State) -> _State:
        at, row_slope, slope, hessian, coupling, total, refresh = state
        hessian, coupling, total = lax.cond(refresh, lambda: gram(at.score), lambda: (hessian, coupling, total))
        b, intercept_slope = at.coefficients, jnp.sum(row_slope)
        reduced = slope - coupling * (intercept_slope / total)
        goal = quadratic_minimum(hessian, reduced, b, penalties, jnp.maximum(_INEXACT * at.violation, tolerance / 2))
        d = goal - b
        d0 = -(intercept_slope + coupling @ d) / total
        score_step = d0 + d @ columns
        predicted = (
            slope @ d + intercept_slope * d0 + jnp.sum(penalties * (jnp.abs(goal) - jnp.abs(b)))
        )  # below 0 unless b is optimal
        # Close to the optimum the decrease drowns in the objective's rounding: full steps are then safe.
        rounding = 8 * eps * jnp.abs(at.objective)

        def too_long(search: tuple[Array, Array]) -> Array:
            size, value = search
            worse = ~(value <= at.objective + _ARMIJO * size * predicted + rounding)
            return worse & (size > 0.5**_HALVINGS)

        def halve(search: tuple[Array, Array]) -> tuple[Array, Array]:
            size = search[0] / 2
            return size, objective(b + size * d, at.score + size * score_step)

        size, value = lax.while_loop(too_long, halve, (jnp.full((), 2, dtype), jnp.full((), jnp.inf, dtype)))
        new_b = jnp.where(size == 1, goal, b + size * d)  # exact zeros survive a full step
        new_score = at.score + size * score_step
        new_row_slope, new_slope = slopes(new_score)
        violation = worst(new_b, new_row_slope, new_slope)
        no_descent = ~(value <= at.objective + rounding)
        no_progress = no_descent | ((violation >= at.violation) & (value >= at.objective - rounding))
        exact_hessian = refresh | (loss == "squared")
        iterate = Iterate(
            jnp.where(no_descent, b, new_b),
            jnp.where(no_descent, at.intercept, at.intercept + size * d0),
            jnp.where(no_descent, at.score, new_score),
            jnp.where(no_descent, at.objective, value),
            jnp.where(no_descent, at.violation, violation),
            at.steps + 1,
            no_progress & exact_hessian,
        )
        keep_row_slope = jnp.where(no_descent, row_slope, new_row_slope)
        keep_slope = jnp.where(no_descent, slope, new_slope)
        stale = (violation > _REUSE * at.violation) & (loss != "squared")
        return _State(iterate, keep_row_slope, keep_slope, hessian, coupling, total, stale)

    def unfinished(state: _State) -> Array:
        at = state.iterate
        return (at.violation > tolerance) & (at.steps < max_steps) & ~at.stalled

    score = intercept + coefficients @ columns
    row_slope, slope = slopes(score)
    size = coefficients.shape[0]
    first = _State(
        Iterate(
            coefficients,
            intercept,
            score,
            objective(coefficients, score),
            worst(coefficients, row_slope, slope),
            jnp.int32(0),
            jnp.bool_(False),
        ),
        row_slope,
        slope,
        jnp.zeros((size, size), dtype),
        jnp.zeros(size, dtype),
        jnp.zeros((), dtype),
        jnp.bool_(True),
    )
    return lax.while_loop(unfinished, step, first).iterate


class Supports(NamedTuple):
    """The result of `support_path`: row s - 1 is for s non-zero coefficients.

    Attributes:
        coefficients: (max_size, k); zeros where not found.
        intercepts: (max_size,).
        penalties: (max_size,) the smallest penalty met with this support size.
        found: (max_size,) bool.
    """

    coefficients: Array
    intercepts: Array
    penalties: Array
    found: Array


def support_path(
    columns: Array,
    weights: Array,
    target: Array,
    factors: Array,
    *,
    loss: LossName,
    fit_intercept: Array | bool,
    max_size: int,
    ratio: Array | float = 0.85,
    n_penalties: Array | int = 60,
    bisections: Array | int = 10,
    tolerance: Array | float = 1e-5,
    max_steps: Array | int = 20,
) -> Supports:
    """Solutions with 1, ..., max_size non-zero coefficients, each at about its smallest penalty. Traceable.

    Walks from the penalty of the empty model down a geometric path, each problem started at the one before,
    until more than `max_size` coefficients are non-zero; then bisects for every size met between its last
    penalty and the next one.

    Args:
        columns, weights, target, loss, fit_intercept: as in `proximal_newton`.
        factors: (k,) the penalties of the columns are a multiple of these; all positive.
        max_size: static, the largest support.
        ratio: between penalties of the path.
        n_penalties: length of the path.
        bisections: for each size.
        tolerance: KKT violation to leave, relative to the penalty.
        max_steps: Newton steps for each problem.
    """
    dtype = columns.dtype
    sizes = jnp.arange(1, max_size + 1)
    nothing = jnp.zeros(columns.shape[0], dtype)
    empty = jnp.zeros_like(target)
    first = centring_shift(loss, weights, target, empty, fit_intercept)
    slope = columns @ (weights * loss_slope(loss, target, empty + first))
    largest = jnp.max(jnp.abs(slope) / factors)

    def solution(penalty: Array, b: Array, intercept: Array, steps: Array) -> tuple[Array, Array, Array]:
        at = proximal_newton(
            columns,
            weights,
            target,
            penalty * factors,
            b,
            intercept,
            loss=loss,
            fit_intercept=fit_intercept,
            tolerance=tolerance * penalty * jnp.min(factors),
            max_steps=steps,
        )
        return at.coefficients, at.intercept, jnp.sum(at.coefficients != 0)

    def walking(state: tuple[Array, ...]) -> Array:
        step, *_, size = state
        return (step < n_penalties) & (size <= max_size) & (largest > 0)

    def walk(state: tuple[Array, ...]) -> tuple[Array, ...]:
        step, b, intercept, kept, intercepts, penalties, _ = state
        penalty = largest * jnp.asarray(ratio, dtype) ** (step + 1)
        b, intercept, size = solution(penalty, b, intercept, jnp.asarray(max_steps))
        here = sizes == size
        kept = jnp.where(here[:, None], b[None, :], kept)
        intercepts = jnp.where(here, intercept, intercepts)
        return step + 1, b, intercept, kept, intercepts, jnp.where(here, penalty, penalties), size

    none = jnp.zeros(max_size, dtype)
    kept = jnp.zeros((max_size, len(nothing)), dtype)
    start: tuple[Array, ...] = (jnp.int32(0), nothing, first, kept, none, none, jnp.sum(nothing != 0))
    _, _, _, kept, intercepts, penalties, _ = lax.while_loop(walking, walk, start)
    found = penalties > 0

    def bisect(_: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        kept, intercepts, high, low = state
        middle = jnp.sqrt(high * low)
        b, intercept, size = jax.vmap(solution)(middle, kept, intercepts, jnp.where(found, max_steps, 0))
        same = found & (size == sizes)
        return (
            jnp.where(same[:, None], b, kept),
            jnp.where(same, intercept, intercepts),
            jnp.where(same, middle, high),
            jnp.where(same, low, middle),
        )

    state = (kept, intercepts, penalties, penalties * jnp.asarray(ratio, dtype))
    kept, intercepts, penalties, _ = lax.fori_loop(0, bisections, bisect, state)
    return Supports(kept, intercepts, penalties, found)
