"""Sparse softmax regression: all classes as one problem, in which a column enters or leaves for all
classes at once, solved with a certificate.

    minimise  sum_i w_i (log sum_k exp f_ik - f_iy) / sum_i w_i  +  penalty * sum_j c_j |b_j|,
    f_i = b_0 + sum_j x_ij b_j,

where y is the row's class, b_j has a weight per class and |b_j| is its Euclidean norm: the
multinomial group lasso (Simon, Friedman and Hastie 2013, "A blockwise descent algorithm for
group-penalized multiresponse and multinomial regression"). b_0 is not penalised. The weights of a
column, and the intercepts, sum to 0. For two classes, b_j = (-v_j / 2, v_j / 2), and this is the
problem of `sparse_glm` for the logistic loss, v and the L1 penalty ``penalty / sqrt(2)``.

Method: proximal Newton on working sets. The Hessian couples the classes; the model keeps its
diagonal blocks, X' diag(w_i p_ik (1 - p_ik)) X for class k, which bound half of it from above. So
each class has a Gram matrix, which a path keeps (`on_host.Curvature`). Blockwise descent minimises
the model plus the penalty. The spectral step of Barzilai and Borwein makes up for what the model
leaves out: second derivatives are scaled to those along the last step, and the objective may rise
to the worst of the last few (Wright, Nowak and Figueiredo 2009, "Sparse reconstruction by separable
approximation").

The bound is by Fenchel duality. The conjugate of a row's loss is the negative entropy: with
t = y + s theta, where theta is the gradient by the scores, made orthogonal to the constant and the
columns without a penalty, and s shrinks it until |sum_i w_i theta_i x_ij| <= penalty c_j for all j,
the mean entropy of t is a lower bound on the minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, xlogy
from scipy.special import softmax as shares_of

from jaxrules.losses import logistic, merge_rows
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.solvers.linear.design import Design, Floats
from jaxrules.solvers.linear.on_host import Curvature, Point
from jaxrules.solvers.linear.proximal_newton import SecondOrder
from jaxrules.solvers.linear.working_sets import Certificate, Position, WorkingSets
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run

Columns = Floats | BitColumns

_SWEEPS, _ROUNDS = 50, 10  # of blockwise descent for one model; between rounds it may be stopped
_INEXACT = 0.03  # violation left in a model, relative to that of the problem
_AGE = 6  # steps after which a model is renewed ...
_SLOW = 0.1  # ... if they leave more of the violation than this share
_MEMORY = 5  # steps of which the objective may rise to the worst
_LONGEST = 30.0  # change of a score in one step
_LEAST_SCALE = 0.01  # of a model
_RIDGE = 1e-9  # least curvature of a column, relative to the largest
_HALVINGS = 30  # of the line search
_ROUNDING = 1e-15  # of the objective
_ZERO = 1e-14  # of a share that rounding made negative
_SHIFT_STEPS = 50  # of Newton's method towards the best intercepts


@dataclass(frozen=True)
class Solution:
    """One fitted model.

    Attributes:
        coefficients: (columns, classes); exactly zero outside the support.
        intercept: (classes,).
        penalty: the penalty it was fitted with.
        objective: the value of the objective.
        bound: a proved lower bound on its minimum.
        kkt_residual: the largest violation of the optimality conditions
            |gradient_j| <= penalty c_j.
        iterations: steps taken.
        status: CONVERGED, or why the fit ended before that.
    """

    coefficients: Floats
    intercept: Floats
    penalty: float
    objective: float
    bound: float
    kkt_residual: float
    iterations: int
    status: Status


@dataclass
class _Latest:
    """The latest solution and its position: the next one may start there."""

    solution: Solution | None = None
    position: Position | None = None


# Inside, coefficients are (columns, classes), and numbers of rows (classes, rows).


def _sums(columns: Columns, rows: Floats) -> Floats:
    """sum_i rows_ki x_ij, (columns, classes)."""
    return np.asarray(columns @ rows.T)


def _scores(coefficients: Floats, columns: Columns) -> Floats:
    """sum_j b_jk x_ij, (classes, rows)."""
    return np.asarray(coefficients.T @ columns)


def _norms(blocks: Floats) -> Floats:
    return np.asarray(np.sqrt((blocks * blocks).sum(axis=1)))


def _times_hessian(p: Floats, u: Floats) -> Floats:
    """The Hessian of the rows' losses at the probabilities p, times u."""
    return np.asarray(p * (u - (p * u).sum(axis=0)))


def _log_loss(weights: Floats, target: Floats, score: Floats) -> float:
    return float(weights @ (logsumexp(score, axis=0) - (target * score).sum(axis=0)))


def _violation(coefficients: Floats, gradient: Floats, penalties: Floats) -> Floats:
    """The distance of 0 from the subdifferential, (columns,)."""
    sizes = _norms(coefficients)
    with np.errstate(invalid="ignore", divide="ignore"):
        along = gradient + coefficients * (penalties / sizes)[:, None]
    at_zero = np.maximum(_norms(gradient) - penalties, 0.0)
    return np.where(sizes > 0, _norms(along), at_zero)


@dataclass(frozen=True)
class Problem(WorkingSets[Solution]):
    """Everything but the penalty, with centred and scaled columns.

    Attributes:
        weights: (stored rows,) sum to 1; 0 masks a row.
        target: (classes, stored rows) the shares of the classes in the merged rows.
    """

    design: Design
    weights: Floats
    target: Floats
    factors: Floats
    least: float
    worth: float
    curvatures: list[Curvature] = field(default_factory=list)
    latest: _Latest = field(default_factory=_Latest)

    @classmethod
    def of(
        cls, design: Design, target: Floats, sample_weight: Floats, penalty_factors: Floats
    ) -> Problem:
        """
        Args:
            design: the columns.
            target: +1 for the row's class, -1 for the others, (rows, classes).
            sample_weight: (rows,) positive.
            penalty_factors: (columns,) c_j, at least 0.
        """
        n, k = design.n_patterns, target.shape[1]
        row_weight = sample_weight / sample_weight.sum()
        stored = design.storage.shape[1]
        weights, shares = np.zeros(stored), np.full((k, stored), 1 / k)
        for of_class, one in zip(shares, target.T, strict=True):
            merged = merge_rows(logistic, one, row_weight, design.inverse, n)
            weights[:n], of_class[:n] = merged.weight, (1 + merged.target) / 2
        factors = penalty_factors / design.scale
        least = -float(weights @ xlogy(shares, shares).sum(axis=0))
        curvatures = [Curvature() for _ in range(k)]
        return cls(design, weights, shares, factors, least, float(np.log(k)), curvatures)

    def with_columns(self, design: Design, penalty_factors: Floats, same: int) -> Problem:
        """The problem on the same rows with other columns from the one with index `same` on; it
        takes over the products of those before.
        """
        factors = penalty_factors / design.scale
        for one in self.curvatures:
            one.keep(one.columns < same)
        return replace(self, design=design, factors=factors, latest=_Latest())

    def solve(
        self,
        penalty: float,
        *,
        start: Solution | tuple[ArrayLike, ArrayLike] | None = None,
        tolerance: float = 1e-6,
        max_iterations: int = 1000,
        run: Run | None = None,
    ) -> Solution:
        """The solution at a penalty above 0; successive ones share products of columns.

        Args:
            start: a solution, or coefficients (columns, classes) and intercepts (classes,).
            tolerance, max_iterations, run: as in `sparse_glm.solve`.
        """
        solution, position = self.minimise(
            float(penalty), self.start(start), tolerance, max_iterations, run
        )
        self.latest.solution, self.latest.position = solution, position
        return solution

    def start(self, start: Solution | tuple[ArrayLike, ArrayLike] | None) -> Position:
        """The position of a given start, or the null model: every penalised coefficient zero."""
        design, k = self.design, len(self.target)
        coefficients = np.zeros((design.n_columns, k))
        if start is None:
            position = self.at(coefficients, np.zeros(k), np.zeros_like(self.target), False)
            free = np.flatnonzero(self.factors == 0)
            return position if not len(free) else self.visit(position, free, 0.0, 1e-14, 100)[0]
        if start is self.latest.solution and self.latest.position is not None:
            return self.latest.position
        given, intercept = (
            (start.coefficients, start.intercept) if isinstance(start, Solution) else start
        )
        given, intercept = np.asarray(given, np.float64), np.asarray(intercept, np.float64)
        given = given - given.mean(axis=1, keepdims=True)
        coefficients = given * design.scale[:, None]
        intercept = intercept + design.centre @ given
        used = np.flatnonzero(coefficients.any(axis=1))
        score = _scores(coefficients[used], design.take(used)) + intercept[:, None]
        return self.at(coefficients, intercept, score, False)

    def at(self, coefficients: Floats, intercept: Any, score: Floats, all_free: bool) -> Position:
        shift = _best_shift(self.weights, self.target, score)
        score = score + shift[:, None]
        p = np.asarray(shares_of(score, axis=0))
        dual = p - self.target
        gradient = _sums(self.design.storage, self.weights * dual)
        free = np.flatnonzero(self.factors == 0)
        dual = _projected(self.design.take(free), self.weights, p, dual)
        dual_gradient = _sums(self.design.storage, self.weights * dual) if len(free) else gradient
        loss: Any = _log_loss(self.weights, self.target, score)
        point = Point(shift, score, loss, gradient, dual, dual_gradient)
        return Position(coefficients, intercept + shift, point, all_free)

    def visit(
        self,
        position: Position,
        working: NDArray[np.intp],
        penalty: float,
        tolerance: float,
        max_steps: int,
        stopped: Callable[[], bool] = lambda: False,
    ) -> tuple[Position, int]:
        columns = self.design.take(working)
        with np.errstate(all="ignore"), one_blas_thread():
            at, steps = _descended(
                _Rows(self.weights, self.target, columns, penalty * self.factors[working]),
                _At(position.coefficients[working], position.intercept, position.point.score),
                self.curvatures,
                working,
                tolerance,
                max_steps,
                stopped,
            )
        coefficients = np.zeros_like(position.coefficients)
        coefficients[working] = at.coefficients
        return self.at(coefficients, at.intercept, at.score, position.all_free), steps

    def certificate(self, position: Position, penalty: float) -> Certificate:
        penalties, point = penalty * self.factors, position.point
        objective = float(point.loss) + float(penalties @ _norms(position.coefficients))
        tiny = np.finfo(np.float64).tiny
        ratio = np.where(
            penalties > 0, penalties / np.maximum(_norms(point.dual_gradient), tiny), 1.0
        )
        bound = _dual_value(self.weights, self.target + ratio.min(initial=1.0) * point.dual)
        violation = _violation(position.coefficients, point.gradient, penalties)
        return Certificate(objective, max(bound, self.least), violation)

    def solution(
        self,
        position: Position,
        certificate: Certificate,
        penalty: float,
        steps: int,
        status: Status,
    ) -> Solution:
        design = self.design
        coefficients = position.coefficients / design.scale[:, None]
        violation = certificate.violation * design.scale
        intercept = position.intercept - design.centre @ coefficients
        return Solution(
            coefficients,
            intercept - intercept.mean(),
            penalty,
            certificate.objective,
            certificate.bound,
            float(violation.max(initial=0.0)),
            steps,
            status,
        )

    def sizes(self, coefficients: Floats) -> Floats:
        return _norms(coefficients)

    def pulls(self, gradient: Floats) -> Floats:
        return _norms(gradient)


def bound_at(weights: Floats, target: Floats, score: Floats, shrunk: float) -> float:
    """The lower bound on the minimum that a score gives, (classes, rows).

    Args:
        weights, target: as of `Problem`.
        shrunk: s in (0, 1]: s times the slope of any column is at most its penalty.
    """
    p = np.asarray(shares_of(score, axis=0))
    dual = _projected(np.zeros((0, len(weights))), weights, p, p - target)
    return _dual_value(weights, target + shrunk * dual)


def _dual_value(weights: Floats, mixed: Floats) -> float:
    """The mean entropy of t (classes, rows); -inf outside the domain of the conjugate."""
    if mixed.min() < -_ZERO:
        return -np.inf
    return -float(weights @ xlogy(mixed, np.abs(mixed)).sum(axis=0))


def _best_shift(weights: Floats, target: Floats, score: Floats) -> Floats:
    """The change of the intercepts (classes,), of sum 0, that minimises the loss."""
    shift = np.zeros(len(score))
    p = shares_of(score, axis=0)
    value = _log_loss(weights, target, score)
    for _ in range(_SHIFT_STEPS):
        rows = weights * (p - target)
        gradient = rows.sum(axis=1)
        if np.abs(gradient).max() <= 4 * np.finfo(np.float64).eps * np.abs(rows).sum(axis=1).max():
            break
        weighted = weights * p
        hessian = np.diag(weighted.sum(axis=1)) - weighted @ p.T
        size = hessian.diagonal().max() + np.finfo(np.float64).tiny
        hessian += size / len(shift)  # 1 is its null vector
        hessian[np.diag_indices_from(hessian)] += 1e-13 * size
        step, length = -np.linalg.solve(hessian, gradient), 2.0
        step *= min(1.0, 3.0 / np.abs(step).max())
        moved = np.inf
        while not moved <= value * (1 + _ROUNDING) and length > 0.5**_HALVINGS:
            length /= 2
            tried = score + (shift + length * step)[:, None]
            moved = _log_loss(weights, target, tried)
        if not moved <= value * (1 + _ROUNDING):
            break
        shift, value, p = shift + length * step, moved, shares_of(tried, axis=0)
    return shift - shift.mean()


def _projected(free: Columns, weights: Floats, p: Floats, dual: Floats) -> Floats:
    """`dual` (classes, rows) made orthogonal, under the weights, to the constant and the columns
    without a penalty, by the change of the gradient in a Newton step of the score, which keeps
    saturated rows in the domain of the conjugate.
    """
    m, k, n = len(free), *dual.shape
    z = np.ones((m + 1, n))
    for j in range(m):
        z[j] = np.eye(m)[j] @ free
    hessian = np.empty((k, m + 1, k, m + 1))
    for a in range(m + 1):
        for b in range(m + 1):
            weighted = weights * z[a] * z[b] * p
            hessian[:, a, :, b] = np.diag(weighted.sum(axis=1)) - weighted @ p.T
    matrix = hessian.reshape(k * (m + 1), -1)
    inverse = np.linalg.pinv(matrix, rcond=1e-12, hermitian=True)
    for _ in range(3):
        rest = ((weights * dual) @ z.T).ravel()
        along = (inverse @ rest).reshape(k, m + 1)
        dual = dual - _times_hessian(p, along @ z)
    return dual


# Steps on a working set


class _Rows(NamedTuple):
    """The rows, and the columns of the working set with their penalties."""

    weights: Floats
    target: Floats
    columns: Columns
    penalties: Floats

    def value(self, coefficients: Floats, score: Floats) -> float:
        return _log_loss(self.weights, self.target, score) + float(
            self.penalties @ _norms(coefficients)
        )


class _At(NamedTuple):
    """Where the descent is: (columns, classes), (classes,), (classes, rows)."""

    coefficients: Floats
    intercept: Floats
    score: Floats


def _descended(
    rows: _Rows,
    at: _At,
    curvatures: Sequence[Curvature],
    names: NDArray[np.intp],
    tolerance: float,
    max_steps: int,
    stopped: Callable[[], bool],
) -> tuple[_At, int]:
    """Steps on a working set until no violation exceeds the tolerance.

    Args:
        curvatures: one per class; may be those of an earlier score. `names` are the indices of the
            columns in them.
    """
    value, p = rows.value(at.coefficients, at.score), np.asarray(shares_of(at.score, axis=0))
    values, scale, models, age, begun, idle, steps = [value], 1.0, None, 0, np.inf, 0, 0
    stuck, fresh = False, False  # `fresh`: the models are those of this score
    while steps < max_steps and not stopped():
        each = rows.weights * (p - rows.target)
        gradient, by_intercept = _sums(rows.columns, each), each.sum(axis=1)
        violation = max(
            _violation(at.coefficients, gradient, rows.penalties).max(initial=0.0),
            np.abs(by_intercept).max(),
        )
        if violation <= tolerance or (stuck and fresh):
            break
        slow = age >= _AGE and violation > _SLOW * begun
        if curvatures[0].rows is None or stuck or slow:
            for curvature, own in zip(curvatures, p, strict=True):
                curvature.renew(rows.weights * own * (1 - own))
            models, scale, age, idle, fresh = None, 1.0, 0, 0, True
        if age == 0:
            begun = violation
        if models is None:
            models = _Models.of(rows.columns, curvatures, names, stopped)
            if models is None:
                break
        goal, by = models.step(rows, at, gradient, by_intercept, scale, violation, stopped)
        change = goal - at.coefficients
        u = _scores(change, rows.columns) + by[:, None]
        # Where classes are separated, the loss has no minimum, and no step is too long for it.
        length, moved = min(2.0, 2 * _LONGEST / np.abs(u).max()), np.inf
        worst = max(values[-_MEMORY:])
        while not moved <= worst + _ROUNDING * abs(worst) and length > 0.5**_HALVINGS:
            length /= 2
            coefficients = goal if length == 1 else at.coefficients + length * change
            moved = rows.value(coefficients, at.score + length * u)
        failed = not moved <= worst + _ROUNDING * abs(worst)
        steps, age, idle = steps + 1, age + 1, 0 if moved < min(values) else idle + 1
        stuck = failed or idle > 5
        if failed:
            continue
        fresh = False
        before, p = p, np.asarray(shares_of(at.score + length * u, axis=0))
        metric = sum(float(one.rows @ own**2) for one, own in zip(curvatures, u, strict=True))
        bent = float(((p - before) * u).sum(axis=0) @ rows.weights) / length
        scale = float(np.clip(bent / metric, _LEAST_SCALE, 1 / _LEAST_SCALE)) if metric > 0 else 1.0
        at = _At(coefficients, at.intercept + length * by, at.score + length * u)
        values.append(moved)
    return at, steps


class _Models(NamedTuple):
    """The second-order models of the classes: Hessians (classes, k, k), their diagonals
    (classes, k), couplings (k, classes) and totals (classes,).
    """

    hessians: Floats
    diagonals: Floats
    couplings: Floats
    totals: Floats

    @classmethod
    def of(
        cls,
        columns: Columns,
        curvatures: Sequence[Curvature],
        names: NDArray[np.intp],
        stopped: Callable[[], bool],
    ) -> _Models | None:
        models: list[SecondOrder[Floats]] = []
        for one in curvatures:
            model = one.model(columns, names, True, stopped)
            if model is None:
                return None
            models.append(model)
        hessians = np.stack([model.hessian for model in models])
        diagonals = np.diagonal(hessians, axis1=1, axis2=2)
        least = _RIDGE * diagonals.max(axis=1, keepdims=True) + np.finfo(np.float64).tiny
        return cls(
            hessians,
            np.maximum(diagonals, least),
            np.stack([model.coupling for model in models], axis=1),
            np.array([float(model.total) for model in models]),
        )

    def step(
        self,
        rows: _Rows,
        at: _At,
        gradient: Floats,
        by_intercept: Floats,
        scale: float,
        violation: float,
        stopped: Callable[[], bool],
    ) -> tuple[Floats, Floats]:
        """The coefficients at the minimum of the models, with their second derivatives times
        `scale`, plus the penalty; and the change of the intercepts.
        """
        from jaxrules.solvers.linear.coordinate_descent import group_sweeps

        b = np.array(at.coefficients.T, order="C")
        slope = (gradient - self.couplings * (by_intercept / self.totals)).T / scale
        slope, wanted = np.ascontiguousarray(slope), _INEXACT * violation / scale
        for _ in range(_ROUNDS):
            if stopped() or group_sweeps(
                self.hessians, self.diagonals, rows.penalties / scale, b, slope, _SWEEPS, wanted
            ):
                break
        change = b.T - at.coefficients
        along = (self.couplings * change).sum(axis=0)
        by = -(by_intercept / scale + along) / self.totals
        # A constant added to the weights of all classes changes no probability. Zeros stay zeros.
        return (b - b.mean(axis=0)).T, by - by.mean()
