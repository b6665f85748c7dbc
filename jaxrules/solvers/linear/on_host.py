"""Proximal Newton in NumPy, for when there is no time to compile or to load the kernels of `proximal_newton`.

The same steps towards the same minimum of the same second-order model, without the kernels' care for the last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.float64 import in_x64
from jaxrules.losses import Loss
from jaxrules.solvers.linear.proximal_newton import Data, Iterate, SecondOrder, model_minimum, project_out
from jaxrules.solvers.linear.quadratic import Floats, kkt_violation

_CENTRING = 60  # steps for the intercept alone
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
    stale, steps, violation = True, 0, np.inf

    def objective(coefficients: Floats, score: Floats) -> float:
        return float(weights @ np.asarray(loss.value(target, score)) + penalties @ np.abs(coefficients))

    with np.errstate(all="ignore"):
        value = objective(coefficients, score)
        while steps < max_steps and not stopped():
            rows = weights * np.asarray(loss.gradient(target, score))
            gradient, by_intercept = columns @ rows, rows.sum() * fit_intercept
            previous = violation
            violation = kkt_violation(coefficients, gradient, penalties, signs).max(initial=abs(by_intercept))
            if violation <= tolerance:
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
            if moved <= value + _ROUNDING * abs(value):
                coefficients = goal if size == 1 else coefficients + size * direction
                intercept, score, value = intercept + size * by, score + size * score_step, moved
            if stuck:
                break
    return Visit(coefficients, intercept, score, steps)


@in_x64
def point(
    loss: Loss, storage: NDArray[Any], low: NDArray[np.int32], unpenalised: Floats, data: Data, score: Floats
) -> Point:
    """The point at a score, its intercept shifted to the best one; `storage` and `low` are those of the design, and
    `unpenalised` are columns of it, float64."""
    _, weights, target, _ = data
    nothing = np.zeros(0)
    centring = data._replace(columns=np.zeros((0, len(score))))
    _, shift, score, _ = newton(loss, centring, score, nothing, nothing, 0.0, 0.0, _CENTRING)
    with np.errstate(all="ignore"):
        rows, curvature = (np.asarray(of(target, score)) for of in (loss.gradient, loss.curvature))
        gradient = _gradient(storage, low, weights * rows)
        dual = project_out(data._replace(columns=unpenalised), unpenalised.any(axis=1), rows, curvature)
        dual_gradient = _gradient(storage, low, weights * dual) if len(unpenalised) else gradient
        return Point(shift, score, weights @ np.asarray(loss.value(target, score)), gradient, dual, dual_gradient)


def _gradient(storage: NDArray[Any], low: NDArray[np.int32], rows: Floats) -> Floats:
    """sum_i rows_i x_ij for all columns, cast by blocks of rows."""
    stored = np.zeros(len(storage))
    for start in range(0, len(rows), _BLOCK):
        stored += storage[:, start : start + _BLOCK].astype(np.float64) @ rows[start : start + _BLOCK]
    return stored[: len(low)] + (0.0 if storage.dtype == np.int8 else stored[low])
