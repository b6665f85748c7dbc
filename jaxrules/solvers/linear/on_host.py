"""Proximal Newton in NumPy, for small problems, and for when there is no time to compile the kernels of
`proximal_newton`.

The same steps towards the same minimum of the same second-order model, without the kernels' care for the last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.float64 import in_x64
from jaxrules.losses import Loss
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.linear.proximal_newton import Data, Iterate, SecondOrder, model_minimum, project_out
from jaxrules.solvers.linear.quadratic import Floats, kkt_violation

FEW = 1 << 20
"""Entries of a matrix up to which NumPy, on one thread, is as fast as the kernels, and spares their compilation."""
_CENTRING, _CENTRING_STEP = 60, 3.0  # steps for the intercept alone, and the longest of them
_HALVINGS = 30  # of the line search
_ROUNDING = 1e-15  # of the objective
_REUSE = 0.2  # the second-order model is kept while a step cuts the violation to this share
_LARGE = 1 << 20  # entries from which on a Hessian is computed in float32: it only has to be good enough for a step
_TINY = np.finfo(np.float64).tiny
_BLOCK = 1 << 12  # rows of a matrix of bytes that are cast at once


class Point(NamedTuple):
    """A score and what follows from it for all columns, whatever the penalty."""

    shift: Any  # scalar, best change of the intercept; `score` has it
    score: Any  # (rows,)
    loss: Any  # scalar
    gradient: Any  # (columns,) of the loss
    dual: Any  # (rows,) the gradient of the loss at each row, made orthogonal to everything unpenalised
    dual_gradient: Any  # (columns,) sum_i weights_i dual_i x_ij


class Visit(NamedTuple):
    """What proximal Newton found on a working set."""

    coefficients: Any  # (working columns,)
    intercept: Any
    score: Any  # (rows,)
    steps: Any


@in_x64
def newton(
    loss: Loss,
    data: Data,
    score: Floats,
    penalties: Floats,
    coefficients: Floats,
    intercept: float,
    tolerance: float,
    max_steps: int,
    stopped: Callable[[], bool] = lambda: False,
    signs: NDArray[np.bool_] | None = None,
) -> Visit:
    """Minimise over the columns of `data`, float64, from a start and its score, until no KKT violation exceeds the
    tolerance."""
    columns, weights, target, fit_intercept = data
    rough = columns.astype(np.float32) if columns.size > _LARGE else columns
    stale, stuck, steps, violation = True, False, 0, np.inf

    def objective(coefficients: Floats, score: Floats) -> float:
        return float(weights @ np.asarray(loss.value(target, score)) + penalties @ np.abs(coefficients))

    with np.errstate(all="ignore"), _threads(columns):
        value = objective(coefficients, score)
        while steps < max_steps and not stopped():
            rows = weights * np.asarray(loss.gradient(target, score))
            gradient, by_intercept = columns @ rows, rows.sum() * fit_intercept
            previous = violation
            violation = kkt_violation(coefficients, gradient, penalties, signs).max(initial=abs(by_intercept))
            if violation <= tolerance or (stuck and not violation <= _REUSE * previous):
                break
            if stale or not violation <= _REUSE * previous:
                curvature = weights * np.asarray(loss.curvature(target, score))
                coupling, total = columns @ curvature, curvature.sum() + _TINY if fit_intercept else np.inf
                products = (rough * curvature.astype(rough.dtype)) @ rough.T
                model = SecondOrder(products - np.outer(coupling, coupling / total), coupling, total)
            at = Iterate(coefficients, intercept, gradient, by_intercept, value, violation, steps, True, False)
            goal = model_minimum(model, at, penalties, tolerance, signs)
            direction = goal - coefficients
            by = -(by_intercept + coupling @ direction) / total
            score_step, size, moved = by + direction @ columns, 2.0, np.inf
            while not moved <= value + _ROUNDING * abs(value) and size > 0.5**_HALVINGS:
                size /= 2
                moved = objective(coefficients + size * direction, score + size * score_step)
            steps, stuck, stale = steps + 1, not moved < value, size < 1
            if not moved <= value + _ROUNDING * abs(value):
                break
            coefficients = goal if size == 1 else coefficients + size * direction
            intercept, score, value = intercept + size * by, score + size * score_step, moved
    return Visit(coefficients, intercept, score, steps)


@in_x64
def point(
    loss: Loss, storage: NDArray[Any], low: NDArray[np.int32], unpenalised: Floats, data: Data, score: Floats
) -> Point:
    """The point at a score, its intercept shifted to the best one; `storage` and `low` are those of the design, and
    `unpenalised` are columns of it, float64."""
    _, weights, target, _ = data
    with np.errstate(all="ignore"), _threads(storage):
        shift = _centring_shift(loss, data, score)
        score = score + shift
        rows, curvature = (np.asarray(of(target, score)) for of in (loss.gradient, loss.curvature))
        gradient = _gradient(storage, low, weights * rows)
        dual = project_out(data._replace(columns=unpenalised), unpenalised.any(axis=1), rows, curvature)
        dual_gradient = _gradient(storage, low, weights * dual) if len(unpenalised) else gradient
        return Point(shift, score, weights @ np.asarray(loss.value(target, score)), gradient, dual, dual_gradient)


def _centring_shift(loss: Loss, data: Data, score: Floats) -> float:
    """The change of the intercept that minimises the loss: Newton's method inside the bracket that the signs of the
    gradient give."""
    _, weights, target, fit_intercept = data
    shift, low, high = 0.0, -math.inf, math.inf
    for step in range(_CENTRING if fit_intercept else 0):
        rows = weights * np.asarray(loss.gradient(target, score + shift))
        gradient = float(rows.sum())
        if abs(gradient) <= 4 * np.finfo(np.float64).eps * np.abs(rows).sum():
            break
        low, high = (shift, high) if gradient < 0 else (low, shift)
        change = -gradient / float(weights @ np.asarray(loss.curvature(target, score + shift)) + _TINY)
        if not loss.quadratic:  # far from the minimum the curvature may vanish, or overflow
            limit = _CENTRING_STEP * (2.0**step if loss.link == "identity" else 1.0)
            change = -math.copysign(limit, gradient) if math.isnan(change) else min(max(change, -limit), limit)
        following = shift + change
        if not low < following < high and math.isfinite(high - low):
            following = (low + high) / 2
        if following == shift:  # the gradient is rounding
            break
        shift = following
    return shift


def _threads(matrix: NDArray[Any]) -> Any:
    return one_blas_thread() if matrix.size <= FEW else nullcontext()


def _gradient(storage: NDArray[Any], low: NDArray[np.int32], rows: Floats) -> Floats:
    """sum_i rows_i x_ij for all columns, cast by blocks of rows."""
    stored = np.zeros(len(storage))
    for start in range(0, len(rows), _BLOCK):
        stored += storage[:, start : start + _BLOCK].astype(np.float64) @ rows[start : start + _BLOCK]
    return stored[: len(low)] + (0.0 if storage.dtype == np.int8 else stored[low])
