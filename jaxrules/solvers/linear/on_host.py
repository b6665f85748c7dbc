"""Proximal Newton on the host, in NumPy: nothing is compiled for a loss or a shape.

`traced_path` makes the same steps, with the formulas of `proximal_newton`, as one JAX program; the
line search here takes less care of the last digits. Most of the work is the Gram matrix of the
model, weighted by the curvature of every row. `Curvature` keeps it from step to step, from one
working set to the next and along a path, as long as steps towards its minimum make good progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.losses import Loss, best_shift
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.limits import Limits
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.solvers.linear.penalties import L1
from jaxrules.solvers.linear.proximal_newton import (
    INEXACT,
    Flag,
    NewtonData,
    Numbers,
    SecondOrderModel,
    derivatives,
    intercept_curvature,
    line,
    objective,
    project_out,
    subproblem,
    without_intercept,
)
from jaxrules.solvers.linear.quadratic import Floats
from jaxrules.tools.float64 import in_x64, x64

FEW = 1 << 20
"""For matrices of up to this many entries, one BLAS thread is faster than several."""
_HALVINGS = 30  # of the line search
_ROUNDING = 1e-15  # of the objective
_REUSE = 0.2  # the second-order model is kept while a step cuts the violation to this share
_LARGE = 1 << 22  # entries above which a Hessian is computed in float32: enough for a step
_ROUNDING32 = 8 * float(np.finfo(np.float32).eps)  # of its eigenvalues, relative to the norm


class NewtonPoint(NamedTuple, Generic[Numbers]):
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


@dataclass
class Curvature:
    """Second derivatives of the loss at some score, for changing sets of columns.

    Products of pairs of columns are kept, so that along a path each pair is multiplied about once.

    Attributes:
        rows: the second derivatives times the row weights, (outputs, rows); None at the start.
        columns: (k,) indices of the columns whose products are known.
        products: (outputs, k, k).
    """

    rows: Floats | None = None
    columns: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    products: Floats = field(default_factory=lambda: np.zeros((1, 0, 0)))

    def renew(self, rows: Floats) -> None:
        """Start again at another score, without products."""
        self.rows, self.columns = rows, self.columns[:0]
        self.products = np.zeros((len(rows), 0, 0))

    def keep(self, some: NDArray[np.bool_]) -> None:
        """Forget the products of the other columns."""
        self.columns, self.products = self.columns[some], self.products[:, some][:, :, some]

    def models(
        self,
        matrix: Floats | BitColumns,
        columns: NDArray[np.intp],
        fit_intercept: Flag,
        stopped: Callable[[], bool],
    ) -> list[SecondOrderModel[Floats]] | None:
        """The second-order model of some columns for every output; None if it was stopped.

        Args:
            matrix: the columns, (k, rows).
            columns: their indices in the design, (k,), ascending.
        """
        assert self.rows is not None
        # `place` are the positions here of the columns whose products are known, `known` those
        # there.
        _, place, known = np.intersect1d(
            columns, self.columns, assume_unique=True, return_indices=True
        )
        new = np.setdiff1d(np.arange(len(columns)), place)
        # Compute only new pairs, unless they are more than half: the full product is symmetric and
        # takes half the work.
        left = new if 2 * len(new) <= len(columns) else None
        kind = np.float32 if matrix.size > _LARGE else np.float64
        if isinstance(matrix, BitColumns):
            found = matrix.grams(self.rows, left, kind, stopped)
        else:
            rough = matrix.astype(kind, copy=False)
            some = rough if left is None else rough[left]
            each = [(some * rows) @ rough.T for rows in self.rows.astype(kind)]
            found = np.stack(each).astype(np.float64, copy=False)
        if found is None:
            return None
        if left is not None:
            # Known pairs are copied; new ones are computed against all columns and stand for both
            # triangles.
            products = np.empty((len(found), len(columns), len(columns)))
            products[:, place[:, None], place] = self.products[:, known[:, None], known]
            products[:, new], products[:, :, new] = found, found.transpose(0, 2, 1)
            found = products
        self.columns, self.products = columns, found
        couplings, models = matrix @ self.rows.T, []
        for products, rows, coupling in zip(found, self.rows, couplings.T, strict=True):
            total = intercept_curvature(rows, fit_intercept)
            hessian = without_intercept(products, coupling, total)
            if kind is np.float32:
                # Nested rules are nearly collinear, so rounding can make the smallest eigenvalues
                # negative; on a model without a minimum, the minimiser would use up all its rounds.
                diagonal = np.diag_indices_from(hessian)
                hessian[diagonal] += _ROUNDING32 * np.linalg.norm(hessian)
            models.append(SecondOrderModel(hessian, coupling, total))
        return models


class HostNewtonState(NamedTuple):
    """Where proximal Newton is on a working set.

    Attributes:
        coefficients: (k,).
        intercept: scalar.
        score: (rows,).
        objective: F.
        gradient: (k,) of the loss.
        intercept_gradient: scalar.
        violation: the largest KKT violation, over coefficients and intercept.
        steps: the number taken.
        model: the second-order model of the last step, or None.
        fresh: whether that model was made where the step began, and not at an earlier score.
        slow: whether the step left more than a share `_REUSE` of the violation.
        short: whether it was shorter than the model asked for.
        stuck: whether it did not lower the objective.
        ended: whether no further step can: rounding allows none, or the model was not finished.
    """

    coefficients: Floats
    intercept: float
    score: Floats
    objective: float
    gradient: Floats
    intercept_gradient: Any
    violation: float
    steps: int = 0
    model: SecondOrderModel[Floats] | None = None
    fresh: bool = False
    slow: bool = False
    short: bool = False
    stuck: bool = False
    ended: bool = False


@dataclass(frozen=True, eq=False)
class ProximalNewton:
    """Proximal Newton on a working set.

    Attributes:
        loss: convex in the score.
        data: the rows, and the columns as bits or float64.
        penalty: of these columns.
        curvature: that of an earlier score, or none; steps renew it.
        names: the indices of the columns in it.
        limits: when it ends.
    """

    loss: Loss
    data: NewtonData[Floats]
    penalty: L1
    curvature: Curvature
    names: NDArray[np.intp]
    limits: Limits

    @contextmanager
    def settings(self) -> Iterator[None]:
        """float64, and no warnings of overflow."""
        with x64(), np.errstate(all="ignore"), threads_for(self.data.columns):
            yield

    def init(self, coefficients: Floats, intercept: float, score: Floats) -> HostNewtonState:
        value = float(objective(self.loss, self.data, self.penalty, coefficients, score))
        gradient, by_intercept, violation = derivatives(
            self.loss, self.data, self.penalty, coefficients, score
        )
        return HostNewtonState(
            coefficients, intercept, score, value, gradient, by_intercept, float(violation)
        )

    def finished(self, at: HostNewtonState) -> bool:
        if at.ended or self.limits.reached(at.violation, at.steps):
            return True
        # A new model would be the same one: rounding hides what is left.
        return at.stuck and at.slow and (at.fresh or self.loss.quadratic)

    def step(self, at: HostNewtonState) -> HostNewtonState:
        loss, data, penalty = self.loss, self.data, self.penalty
        # Most of the work is the model. As long as steps towards its minimum make good progress,
        # that of an earlier score serves; that of a quadratic loss is the same everywhere.
        fresh = self.curvature.rows is None or ((at.short or at.slow) and not loss.quadratic)
        if fresh:
            second = np.asarray(loss.curvature(data.target, at.score))
            self.curvature.renew((data.weights * second)[None])
        model = at.model
        if fresh or model is None:
            given = self.names, data.fit_intercept, self.limits.stopped
            models = self.curvature.models(data.columns, *given)
            if models is None:
                return at._replace(ended=True)
            model = models[0]
        inner = max(INEXACT * at.violation, self.limits.tolerance / 2)
        goal = subproblem(model, at, penalty).minimum(inner)
        direction, by = line(model, at, goal)
        along = by + direction @ data.columns
        length, moved = self._length(at, direction, along)
        # The step counts as slow until it is accepted and the violation it leaves is known.
        new = at._replace(
            steps=at.steps + 1, model=model, fresh=fresh, slow=True, short=length < 1,
            stuck=not moved < at.objective,
        )  # fmt: skip
        if not moved <= at.objective + _ROUNDING * abs(at.objective):
            return new._replace(ended=fresh or loss.quadratic)
        # A full step lands on the goal itself, whose zeros are exact.
        coefficients = goal if length == 1 else at.coefficients + length * direction
        score = at.score + length * along
        gradient, by_intercept, violation = derivatives(loss, data, penalty, coefficients, score)
        return new._replace(
            coefficients=coefficients, intercept=at.intercept + length * float(by), score=score,
            objective=moved, gradient=gradient, intercept_gradient=by_intercept,
            violation=float(violation), slow=not float(violation) <= _REUSE * at.violation,
        )  # fmt: skip

    def _length(self, at: HostNewtonState, direction: Floats, along: Floats) -> tuple[float, float]:
        """The greatest of 1, 1/2, 1/4, ... at which F does not rise above its value, and F there;
        `along` is the change of the score.
        """
        size, moved = 2.0, np.inf
        highest = at.objective + _ROUNDING * abs(at.objective)
        while not moved <= highest and size > 0.5**_HALVINGS:
            size /= 2
            coefficients, score = at.coefficients + size * direction, at.score + size * along
            moved = float(objective(self.loss, self.data, self.penalty, coefficients, score))
        return size, moved


@in_x64
def point_at(
    loss: Loss,
    columns: Floats | BitColumns,
    unpenalised: Floats | BitColumns,
    data: NewtonData[Floats],
    score: Floats,
) -> NewtonPoint[Floats]:
    """The point at a score, its intercept shifted to the best one.

    Args:
        columns: all, bits or float64.
        unpenalised: some of them.
    """
    _, weights, target, fit_intercept = data
    with np.errstate(all="ignore"), threads_for(unpenalised):
        # At the best intercept the gradient sums to zero, as a feasible dual point must.
        shift = best_shift(loss, target, score, weights) if fit_intercept else 0.0
        score = score + shift
        rows, curvature = (np.asarray(of(target, score)) for of in (loss.gradient, loss.curvature))
        gradient = columns @ (weights * rows)
        dual = project_out(data._replace(columns=unpenalised), rows, curvature)
        dual_gradient = columns @ (weights * dual) if len(unpenalised) else gradient
        value = weights @ np.asarray(loss.value(target, score))
        return NewtonPoint(shift, score, value, gradient, dual, dual_gradient)


def threads_for(matrix: Floats | BitColumns) -> AbstractContextManager[None]:
    """One BLAS thread beside a small matrix, or one of bits, whose own products leave little to
    BLAS: its other threads would wait, spinning.
    """
    few = isinstance(matrix, BitColumns) or matrix.size <= FEW
    return one_blas_thread() if few else nullcontext()
