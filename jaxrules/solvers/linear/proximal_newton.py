"""The building blocks of proximal Newton for an L1-penalised loss of a linear score, as traceable
functions of arrays.

Minimises, over the coefficients b (one per column) and an unpenalised intercept b0,

    F(b, b0) = sum_i v_i loss(t_i, f_i) + sum_j price_j |b_j|,     f_i = b0 + sum_j b_j x_ij,

with row weights v that sum to one. Every step (Lee, Sun and Saunders 2014, "Proximal Newton-type
methods for minimizing composite functions") makes a quadratic model of the loss (`second_order`),
minimises it plus the penalty (`subproblem`, on the host) and searches along the line
(`advance`): the step is halved until F falls, so that F never rises, even if the curvature of the
loss is unbounded. `jaxrules.solvers.linear.sparse_glm` combines these parts.

All but `subproblem` may be called inside jit and vmap, in float32 or float64: the dtype of the
columns decides; the loss is static. The formulas (`objective`, `derivatives`, `without_intercept`,
`line`, `project_out`, `dual_bound`) also accept NumPy arrays: `on_host` makes the same steps with
them.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import Array, lax

from jaxrules.losses import Loss, require
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.solvers.linear.penalties import L1, feasible_share
from jaxrules.solvers.linear.quadratic import Floats, Quadratic
from jaxrules.tools.float64 import numpy_of

_NEWTON_RIDGE = 0.8  # added to Hessians to factorise: this power of the rounding unit, relative
_HALVINGS = 30  # of the line search
_ARMIJO = 1e-4  # share of the predicted decrease that a step must realise
INEXACT = 0.01
"""Violation left in a quadratic model, relative to that of the problem: more accuracy than the next
step needs would be wasted.
"""
_REUSE = 0.2  # the Gram matrix is kept while a step cuts the violation to this share

Numbers = TypeVar("Numbers", Array, Floats)
"""Arrays are all of JAX (inside kernels) or all of NumPy (outside)."""
Flag = Array | np.bool_ | bool


class NewtonData(NamedTuple, Generic[Numbers]):
    """The rows as the solver stores them.

    Attributes:
        columns: (k, rows): columns come first, so that each is contiguous.
        weights: (rows,), at least 0, sum 1; 0 masks a row.
        target: (rows,) in the coding of the loss; for merged rows, the mean.
        fit_intercept: scalar bool; False keeps the intercept where it starts.
    """

    columns: Any  # arrays of JAX or NumPy, or `BitColumns`
    weights: Numbers
    target: Numbers
    fit_intercept: Flag


# -------------------------------------------------------------------------------
# optimality, intercept, duality


def project_out(
    data: NewtonData[Numbers], dual: Numbers, curvature: Numbers, refinements: int = 3
) -> Numbers:
    """`dual` (rows,) made orthogonal, under the weights, to the columns of `data` and to the
    constant.

    A dual point is feasible only if it is orthogonal to the unpenalised columns and the constant.
    The correction is the change of the gradient by a Newton step of the score. It is proportional
    to the curvature, so the duals of saturated rows stay in the domain of the conjugate.

    Args:
        curvature: (rows,) of the loss.
    """
    xp = numpy_of(dual)
    library: Any = jax.scipy if xp is jnp else scipy
    columns, weights, _, fit_intercept = data
    metric = weights * curvature
    total = intercept_curvature(metric, fit_intercept)
    if columns.shape[0] == 0:
        return dual - curvature * (xp.sum(weights * dual) / total)
    coupling = columns @ metric
    matrix = without_intercept(weighted_gram(columns, metric), coupling, total)
    diagonal = xp.diagonal(matrix)
    # Repeated columns make the matrix singular, and columns of zeros leave zeros on its diagonal.
    ridge = xp.finfo(dual.dtype).eps ** _NEWTON_RIDGE * xp.max(diagonal) + xp.finfo(dual.dtype).tiny
    factor = xp.linalg.cholesky(matrix + xp.diag(xp.where(diagonal > 0, ridge, 1)))
    # The ridge and rounding leave a little of each product: iterative refinement takes it away.
    for _ in range(refinements):
        rows = weights * dual
        level = xp.sum(rows) / total
        right = columns @ rows - coupling * level
        along = library.linalg.cho_solve((factor, True), right, check_finite=False)
        dual = dual - curvature * (level + along @ columns - along @ coupling / total)
    return dual


def weighted_gram(columns: Numbers | BitColumns, weights: Numbers) -> Numbers:
    """sum_i weights_i x_ij x_ik (k, k), in the precision of the weights."""
    if isinstance(columns, BitColumns):
        gram: Any = columns.gram(np.asarray(weights), dtype=weights.dtype)  # of NumPy, as weights
        return gram
    return (columns * weights[None, :]) @ columns.T


def dual_bound(
    loss: Loss, data: NewtonData[Numbers], penalty: L1, dual: Numbers, dual_gradient: Numbers
) -> Numbers:
    """A lower bound on the minimum of F, from a dual point orthogonal to the unpenalised columns
    and the constant.

    Fenchel duality: -sum_i v_i conjugate(t_i, theta_i) is a bound for every theta with
    |sum_i v_i theta_i x_ij| <= price_j, on the sides that the signs allow, and
    sum_i v_i theta_i = 0. `dual` is shrunk until the first condition holds. (theta = 0 gives
    another bound: the sum of the least losses of the single rows.)

    Args:
        data: the rows; columns are not read.
        dual: (rows,), the gradient of the loss at some score after `project_out`.
        dual_gradient: (k,), sum_i v_i dual_i x_ij.
    """
    xp, (_, weights, target, _) = numpy_of(dual_gradient), data
    conjugate = require(loss, "conjugate", "a bound by duality")
    shrunk = feasible_share(penalty, dual_gradient) * dual
    # The conjugate may be infinite on rows of weight 0, and 0 times infinity is NaN.
    return -xp.sum(xp.where(weights > 0, weights * conjugate(target, shrunk), 0))


# --------------------------------------------------------------------------------------------------
# Newton steps


class SecondOrderModel(NamedTuple, Generic[Numbers]):
    """The second-order model of the loss, with the intercept minimised out.

    Attributes:
        hessian: (k, k).
        coupling: (k,), second derivatives by a coefficient and the intercept.
        total: scalar, the second derivative by the intercept; infinite if it is fixed.
    """

    hessian: Numbers
    coupling: Numbers
    total: Numbers


class Slopes(Protocol):
    """What a Newton step reads of an iterate, here or on the host; attributes as of `Iterate`."""

    @property
    def coefficients(self) -> Any: ...
    @property
    def gradient(self) -> Any: ...
    @property
    def intercept_gradient(self) -> Any: ...
    @property
    def violation(self) -> Any: ...


class Iterate(NamedTuple, Generic[Numbers]):
    """The state of proximal Newton, without the scores of the rows.

    Attributes:
        coefficients: (k,).
        intercept: scalar.
        gradient: (k,) of the loss.
        intercept_gradient: scalar.
        objective: scalar, F.
        violation: scalar, the largest KKT violation over coefficients and intercept.
        steps: scalar int, Newton steps taken.
        stale: scalar bool, the second-order model must be computed again.
        stalled: scalar bool, no step decreases the objective at this precision.
    """

    coefficients: Numbers
    intercept: Numbers | float
    gradient: Numbers
    intercept_gradient: Numbers
    objective: Numbers | float
    violation: Numbers | float
    steps: Array | int
    stale: Array | bool
    stalled: Array | bool


def first_iterate(
    loss: Loss,
    data: NewtonData[Array],
    penalty: L1,
    coefficients: Array,
    intercept: Array,
    score: Array | None = None,
) -> tuple[Iterate[Array], Array]:
    """The first iterate, and its scores (rows,); given scores may include columns not in `data`."""
    if score is None:
        score = intercept + coefficients @ data.columns
    gradient, by_intercept, violation = derivatives(loss, data, penalty, coefficients, score)
    value = objective(loss, data, penalty, coefficients, score)
    no = jnp.bool_(False)
    at = Iterate(
        coefficients, intercept, gradient, by_intercept, value, violation, jnp.int32(0), ~no, no
    )
    return at, score


def second_order(loss: Loss, data: NewtonData[Array], score: Array) -> SecondOrderModel[Array]:
    """The second-order model at a score; this takes the costly product over the rows."""
    curvature = data.weights * loss.curvature(data.target, score)
    coupling, total = data.columns @ curvature, intercept_curvature(curvature, data.fit_intercept)
    gram = weighted_gram(data.columns, curvature)
    return SecondOrderModel(without_intercept(gram, coupling, total), coupling, total)


def intercept_curvature(curvature: Numbers, fit_intercept: Flag) -> Numbers:
    """The second derivative by the intercept; infinite for a fixed one.

    Args:
        curvature: (rows,), with the weights.
    """
    xp = numpy_of(curvature)
    return xp.where(fit_intercept, xp.sum(curvature) + xp.finfo(curvature.dtype).tiny, xp.inf)


def without_intercept(gram: Numbers, coupling: Numbers, total: Numbers) -> Numbers:
    """A Hessian (k, k) with the intercept minimised out (the Schur complement), from its `coupling`
    (k,) and `intercept_curvature`.
    """
    return gram - coupling[:, None] * (coupling / total)[None, :]


def line(model: SecondOrderModel[Numbers], at: Slopes, goal: Numbers) -> tuple[Numbers, Numbers]:
    """The changes of the coefficients (k,) towards a goal, and the change of the intercept that is
    best for them.
    """
    change = goal - at.coefficients
    return change, -(at.intercept_gradient + model.coupling @ change) / model.total


def subproblem(model: SecondOrderModel[Floats], at: Slopes, penalty: L1) -> Quadratic:
    """The model plus the penalty, without rows, as a function of the coefficients; on the host."""
    linear = at.gradient - model.coupling * (float(at.intercept_gradient) / float(model.total))
    return Quadratic(model.hessian, linear, at.coefficients, penalty)


def advance(
    loss: Loss,
    data: NewtonData[Array],
    penalty: L1,
    model: SecondOrderModel[Array],
    at: Iterate[Array],
    score: Array,
    goal: Array,
) -> tuple[Iterate[Array], Array]:
    """The line search from an iterate and its scores towards the minimum of the model; if nothing
    descends, the iterate stays.
    """
    b, (d, d0) = at.coefficients, line(model, at, goal)
    score_step = d0 + d @ data.columns
    rise = jnp.sum(penalty.prices * (jnp.abs(goal) - jnp.abs(b)))
    predicted = at.gradient @ d + at.intercept_gradient * d0 + rise  # below 0 unless b is optimal
    # Close to the optimum, rounding of the objective exceeds the decrease; full steps are safe
    # there.
    rounding = 8 * jnp.finfo(b.dtype).eps * jnp.abs(at.objective)

    def too_long(search: tuple[Array, Array]) -> Array:
        size, value = search
        worse = ~(value <= at.objective + _ARMIJO * size * predicted + rounding)
        return worse & (size > 0.5**_HALVINGS)

    def halve(search: tuple[Array, Array]) -> tuple[Array, Array]:
        size = search[0] / 2
        return size, objective(loss, data, penalty, b + size * d, score + size * score_step)

    # The first length tried is 1: sizes are halved before they are tried.
    begin = jnp.full((), 2, b.dtype), jnp.full((), jnp.inf, b.dtype)
    size, value = lax.while_loop(too_long, halve, begin)
    new_b = jnp.where(size == 1, goal, b + size * d)  # exact zeros survive a full step
    new_score = score + size * score_step
    gradient, by_intercept, violation = derivatives(loss, data, penalty, new_b, new_score)
    no_descent = ~(value <= at.objective + rounding)
    no_progress = no_descent | ((violation >= at.violation) & (value >= at.objective - rounding))
    moved = at._replace(
        coefficients=new_b, intercept=at.intercept + size * d0, gradient=gradient,
        intercept_gradient=by_intercept, objective=value, violation=violation,
    )  # fmt: skip
    kept, kept_score = jax.tree.map(
        lambda new, old: jnp.where(no_descent, old, new), (moved, new_score), (at, score)
    )
    return kept._replace(
        steps=at.steps + 1,
        stale=jnp.logical_and(violation > _REUSE * at.violation, not loss.quadratic),
        stalled=no_progress & jnp.logical_or(at.stale, loss.quadratic),
    ), kept_score


def objective(
    loss: Loss, data: NewtonData[Numbers], penalty: L1, coefficients: Numbers, score: Numbers
) -> Numbers:
    """F, at coefficients and the score that they and the intercept give."""
    return data.weights @ loss.value(data.target, score) + penalty.value(coefficients)


def derivatives(
    loss: Loss, data: NewtonData[Numbers], penalty: L1, coefficients: Numbers, score: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Gradient of the loss by the coefficients and by the intercept, and the largest KKT
    violation.
    """
    xp = numpy_of(score)
    rows = data.weights * loss.gradient(data.target, score)
    gradient, by_intercept = data.columns @ rows, xp.sum(rows)
    of_intercept = xp.where(data.fit_intercept, abs(by_intercept), 0)
    violation = xp.max(penalty.violation(coefficients, gradient), initial=of_intercept)
    return gradient, by_intercept, violation
