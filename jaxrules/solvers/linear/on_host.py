"""Proximal Newton on the host, in NumPy: nothing is compiled for a loss or a shape.

`traced_path` makes the same steps, with the formulas of `proximal_newton`, as one JAX program; the
line search here takes less care of the last digits. Most of the work is the Gram matrix of the
model, weighted by the curvature of every row. `Curvature` keeps it from step to step, from one
working set to the next and along a path, as long as steps towards its minimum make good progress.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.losses import Loss, best_shift
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.solvers.linear.proximal_newton import (
    Data,
    Flag,
    Iterate,
    Numbers,
    SecondOrder,
    derivatives,
    intercept_curvature,
    line,
    model_minimum,
    objective,
    project_out,
    without_intercept,
)
from jaxrules.solvers.linear.quadratic import Floats
from jaxrules.tools.float64 import in_x64

FEW = 1 << 20
"""For matrices of up to this many entries, one BLAS thread is faster than several."""
_HALVINGS = 30  # of the line search
_ROUNDING = 1e-15  # of the objective
_REUSE = 0.2  # the second-order model is kept while a step cuts the violation to this share
_LARGE = 1 << 22  # entries above which a Hessian is computed in float32: enough for a step
_ROUNDING32 = 8 * float(np.finfo(np.float32).eps)  # of its eigenvalues, relative to the norm


class Point(NamedTuple, Generic[Numbers]):
    """A score and what follows from it for all columns, independently of the penalty.

    Attributes:
        shift: scalar, the best change of the intercept; `score` includes it.
        score: (rows,).
        loss: scalar.
        gradient: of the loss, (columns,).
        dual: the gradient of the loss by the score of each row, made orthogonal to the unpenalised
            columns and the constant, (rows,).
        dual_gradient: sum_i weights_i dual_i x_ij, (columns,).
    """

    shift: Numbers | float
    score: Numbers
    loss: Numbers
    gradient: Numbers
    dual: Numbers
    dual_gradient: Numbers


class Visit(NamedTuple):
    """The result of proximal Newton on a working set.

    Attributes:
        coefficients: (working columns,).
        intercept: scalar.
        score: (rows,).
        steps: Newton steps taken.
    """

    coefficients: Floats
    intercept: float
    score: Floats
    steps: int


@dataclass
class Curvature:
    """Second derivatives of the loss at some score, for changing sets of columns.

    Products of pairs of columns are kept, so that along a path each pair is multiplied about once.

    Attributes:
        rows: the second derivatives times the row weights, (rows,); None at the start.
        columns: (k,) indices of the columns whose products are known.
        products: (k, k).
    """

    rows: Floats | None = None
    columns: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    products: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def renew(self, rows: Floats) -> None:
        """Start again at another score, without products."""
        self.rows, self.columns, self.products = rows, self.columns[:0], self.products[:0, :0]

    def keep(self, some: NDArray[np.bool_]) -> None:
        """Forget the products of the other columns."""
        self.columns, self.products = self.columns[some], self.products[np.ix_(some, some)]

    def model(
        self,
        matrix: Floats | BitColumns,
        columns: NDArray[np.intp],
        fit_intercept: Flag,
        stopped: Callable[[], bool],
    ) -> SecondOrder[Floats] | None:
        """The second-order model of some columns; None if it was stopped.

        Args:
            matrix: the columns, (k, rows).
            columns: their indices in the design, (k,), ascending.
        """
        assert self.rows is not None
        _, place, known = np.intersect1d(
            columns, self.columns, assume_unique=True, return_indices=True
        )
        new = np.setdiff1d(np.arange(len(columns)), place)
        # Compute only new pairs, unless they are more than half: the full product is symmetric and
        # takes half the work.
        left = new if 2 * len(new) <= len(columns) else None
        kind = np.float32 if matrix.size > _LARGE else np.float64
        if isinstance(matrix, BitColumns):
            found = matrix.gram(self.rows, left, kind, stopped)
        else:
            rough = matrix.astype(kind, copy=False)
            weighted = (rough if left is None else rough[left]) * self.rows.astype(kind)
            found = (weighted @ rough.T).astype(np.float64, copy=False)
        if found is None:
            return None
        if left is not None:
            products = np.empty((len(columns),) * 2)
            products[np.ix_(place, place)] = self.products[np.ix_(known, known)]
            products[new], products[:, new] = found, found.T
            found = products
        self.columns, self.products = columns, found
        coupling, total = matrix @ self.rows, intercept_curvature(self.rows, fit_intercept)
        hessian = without_intercept(found, coupling, total)
        if kind is np.float32:
            # Nested rules are nearly collinear, so rounding can make the smallest eigenvalues
            # negative; on a model without a minimum, the minimiser would use up all its rounds.
            diagonal = np.diag_indices_from(hessian)
            hessian[diagonal] += _ROUNDING32 * np.linalg.norm(hessian)
        return SecondOrder(hessian, coupling, total)


@in_x64
def newton(
    loss: Loss,
    data: Data[Floats],
    score: Floats,
    curvature: Curvature,
    names: NDArray[np.intp],
    penalties: Floats,
    coefficients: Floats,
    intercept: float,
    tolerance: float,
    max_steps: int,
    stopped: Callable[[], bool] = lambda: False,
    signs: NDArray[np.bool_] | None = None,
) -> Visit:
    """Minimise over the columns of `data`, bits or float64, from a start and its score, until no
    KKT violation exceeds the tolerance. The curvature may be that of an earlier score; `names` are
    the indices of the columns in it.
    """
    columns, weights, target, fit_intercept = data
    model, renewed, stale, stuck, steps, violation = None, False, False, False, 0, np.inf
    with np.errstate(all="ignore"), _threads(columns):
        value = float(objective(loss, data, penalties, coefficients, score))
        while steps < max_steps and not stopped():
            previous = violation
            gradient, by_intercept, largest = derivatives(
                loss, data, penalties, signs, coefficients, score
            )
            violation = float(largest)
            slow = not violation <= _REUSE * previous
            if violation <= tolerance or (stuck and slow and (renewed or loss.quadratic)):
                break
            renewed = curvature.rows is None or ((stale or slow) and not loss.quadratic)
            if renewed:
                curvature.renew(weights * np.asarray(loss.curvature(target, score)))
            if renewed or model is None:
                model = curvature.model(columns, names, fit_intercept, stopped)
                if model is None:
                    break
            at: Iterate[Floats] = Iterate(
                coefficients, intercept, gradient, by_intercept, value, violation, steps,
                stale=True, stalled=False,
            )  # fmt: skip
            goal = model_minimum(model, at, penalties, tolerance, signs)
            direction, by = line(model, at, goal)
            score_step = by + direction @ columns
            size, moved = _step_size(
                loss, data, penalties, value, coefficients, direction, score, score_step
            )
            steps, stuck, stale = steps + 1, not moved < value, size < 1
            if moved <= value + _ROUNDING * abs(value):
                coefficients = goal if size == 1 else coefficients + size * direction
                intercept, score = intercept + size * float(by), score + size * score_step
                value = moved
            elif renewed or loss.quadratic:
                break
    return Visit(coefficients, intercept, score, steps)


def _step_size(
    loss: Loss,
    data: Data[Floats],
    penalties: Floats,
    value: float,
    coefficients: Floats,
    direction: Floats,
    score: Floats,
    score_step: Floats,
) -> tuple[float, float]:
    """The greatest of 1, 1/2, 1/4, ... at which F does not rise above its value, and F there."""
    size, moved = 2.0, np.inf
    while not moved <= value + _ROUNDING * abs(value) and size > 0.5**_HALVINGS:
        size /= 2
        following = coefficients + size * direction
        moved = float(objective(loss, data, penalties, following, score + size * score_step))
    return size, moved


@in_x64
def point(
    loss: Loss,
    columns: Floats | BitColumns,
    unpenalised: Floats | BitColumns,
    data: Data[Floats],
    score: Floats,
) -> Point[Floats]:
    """The point at a score, its intercept shifted to the best one.

    Args:
        columns: all, bits or float64.
        unpenalised: some of them.
    """
    _, weights, target, fit_intercept = data
    with np.errstate(all="ignore"), _threads(unpenalised):
        shift = best_shift(loss, target, score, weights) if fit_intercept else 0.0
        score = score + shift
        rows, curvature = (np.asarray(of(target, score)) for of in (loss.gradient, loss.curvature))
        gradient = columns @ (weights * rows)
        dual = project_out(data._replace(columns=unpenalised), rows, curvature)
        dual_gradient = columns @ (weights * dual) if len(unpenalised) else gradient
        return Point(
            shift,
            score,
            weights @ np.asarray(loss.value(target, score)),
            gradient,
            dual,
            dual_gradient,
        )


def _threads(matrix: Floats | BitColumns) -> AbstractContextManager[None]:
    """One BLAS thread for a small matrix."""
    return one_blas_thread() if matrix.size <= FEW else nullcontext()
