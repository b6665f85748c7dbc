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

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax as shares_of
from scipy.special import xlogy

from jaxrules.losses import logistic, merge_rows
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.limits import Limits
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.solvers.linear.design import Design, Floats
from jaxrules.solvers.linear.on_host import Curvature, NewtonPoint
from jaxrules.solvers.linear.penalties import Group, feasible_share
from jaxrules.solvers.linear.working_sets import Latest, Position, SparseSolution, WorkingSets
from jaxrules.tools.runs import Run

Columns = Floats | BitColumns

_SWEEPS, _ROUNDS = 50, 10  # of blockwise descent for one model; between rounds it may be stopped
_INEXACT = 0.03  # violation left in a model, relative to that of the problem
_AGE = 6  # steps after which a model is renewed ...
_SLOW = 0.1  # ... if they leave more of the violation than this share
_IDLE = 5  # steps without a new least objective after which a model is renewed
_MEMORY = 5  # steps of which the objective may rise to the worst
_LONGEST = 30.0  # change of a score in one step
_LEAST_SCALE = 0.01  # of a model
_RIDGE = 1e-9  # least curvature of a column, relative to the largest
_HALVINGS = 30  # of the line search
_ROUNDING = 1e-15  # of the objective
_ZERO = 1e-14  # of a share that rounding made negative
_SHIFT_STEPS = 50  # of Newton's method towards the best intercepts
_UNSEEN = 1e-13  # a gain of this share of the loss is lost in its rounding
_BLOCK = 2048  # rows of a sum over all
_FREE = Limits(1e-14, 100)  # of the columns without a penalty alone


# Inside, coefficients are (columns, classes), and numbers of rows (classes, rows).


def _sums(columns: Columns, rows: Floats) -> Floats:
    """sum_i rows_ki x_ij, (columns, classes)."""
    return np.asarray(columns @ rows.T)


def _scores(coefficients: Floats, columns: Columns) -> Floats:
    """sum_j b_jk x_ij, (classes, rows)."""
    return np.asarray(coefficients.T @ columns)


def _times_hessian(p: Floats, u: Floats) -> Floats:
    """The Hessian of the rows' losses at the probabilities p, times u."""
    return np.asarray(p * (u - (p * u).sum(axis=0)))


def _log_loss(weights: Floats, target: Floats, score: Floats) -> float:
    """In blocks of rows that stay in the cache."""
    total = 0.0
    for start in range(0, len(weights), _BLOCK):
        rows = slice(start, start + _BLOCK)
        below = score[:, rows] - score[:, rows].max(axis=0)
        linear = (target[:, rows] * below).sum(axis=0)  # a row's shares sum to 1
        total += float(weights[rows] @ (np.log(np.exp(below, out=below).sum(axis=0)) - linear))
    return total


@dataclass(frozen=True)
class SoftmaxProblem(WorkingSets):
    """Everything but the penalty, with centred and scaled columns.

    Attributes:
        weights: (stored rows,) sum to 1; 0 masks a row.
        target: (classes, stored rows) the shares of the classes in the merged rows.
    """

    design: Design
    weights: Floats
    target: Floats
    penalty: Group
    least: float
    worth: float
    curvature: Curvature = field(default_factory=Curvature)
    latest: Latest = field(default_factory=Latest)
    constant = 0.0

    @classmethod
    def of(
        cls, design: Design, target: Floats, sample_weight: Floats, penalty_factors: Floats
    ) -> SoftmaxProblem:
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
        penalty = Group(penalty_factors / design.scale)
        # Merged rows of several classes cannot be fitted perfectly: what is left is the entropy of
        # their shares. At score 0 every row loses log K.
        least = -float(weights @ xlogy(shares, shares).sum(axis=0))
        return cls(design, weights, shares, penalty, least, float(np.log(k)))

    def with_columns(self, design: Design, penalty_factors: Floats, same: int) -> SoftmaxProblem:
        """The problem on the same rows with other columns from the one with index `same` on; it
        takes over the products of those before.
        """
        penalty = Group(penalty_factors / design.scale)
        self.curvature.keep(self.curvature.columns < same)
        return replace(self, design=design, penalty=penalty, latest=Latest())

    def solve(
        self,
        penalty: float,
        *,
        start: SparseSolution | tuple[ArrayLike, ArrayLike] | None = None,
        tolerance: float = 1e-6,
        max_iterations: int = 1000,
        run: Run | None = None,
    ) -> SparseSolution:
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

    @cached_property
    def null(self) -> Position:
        k = len(self.target)
        nothing, no_score = np.zeros((self.design.n_columns, k)), np.zeros_like(self.target)
        return self.null_model(self.at(nothing, np.zeros(k), no_score, False), _FREE)

    def start(self, start: SparseSolution | tuple[ArrayLike, ArrayLike] | None) -> Position:
        """The position of a given start, or the null model."""
        design = self.design
        if start is None:
            return self.null
        if start is self.latest.solution and self.latest.position is not None:
            return self.latest.position
        given, intercept = self.parts_of(start)
        # A constant for all classes changes no probability, and only adds to the norm.
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
        free = self.unpenalised
        dual = _projected(self.design.take(free), self.weights, p, dual)
        dual_gradient = _sums(self.design.storage, self.weights * dual) if len(free) else gradient
        loss: Any = _log_loss(self.weights, self.target, score)
        point = NewtonPoint(shift, score, loss, gradient, dual, dual_gradient)
        return Position(coefficients, intercept + shift, point, all_free)

    def solver(self, working: NDArray[np.intp], strength: float, limits: Limits) -> BlockDescent:
        columns, penalty = self.design.take(working), self.penalty.take(working).times(strength)
        return BlockDescent(
            self.weights, self.target, columns, penalty, self.curvature, working, limits
        )

    def bound(self, penalty: Group, point: NewtonPoint[Floats]) -> float:
        share = float(feasible_share(penalty, point.dual_gradient))
        return _dual_value(self.weights, self.target + share * point.dual)

    def of_solver(self, coefficients: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        given = coefficients / self.design.scale[:, None]
        intercept = intercept - self.design.centre @ given
        # A number added to all intercepts changes no probability: their sum is 0.
        return given, intercept - intercept.mean()


def bound_at(weights: Floats, target: Floats, score: Floats, shrunk: float) -> float:
    """The lower bound on the minimum that a score gives, (classes, rows).

    Args:
        weights, target: as of `SoftmaxProblem`.
        shrunk: s in (0, 1]: s times the slope of any column is at most its penalty.
    """
    p = np.asarray(shares_of(score, axis=0))
    dual = _projected(np.zeros((0, len(weights))), weights, p, p - target)
    return _dual_value(weights, target + shrunk * dual)


def _dual_value(weights: Floats, mixed: Floats) -> float:
    """The mean entropy of t (classes, rows); -inf outside the domain of the conjugate."""
    # t must be a distribution over the classes of every row: its entries sum to 1 by construction.
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
        # Equal shifts of all classes change nothing: the null vector gets curvature, and its
        # component is taken off the result.
        size = hessian.diagonal().max() + np.finfo(np.float64).tiny
        hessian += size / len(shift)  # 1 is its null vector
        hessian[np.diag_indices_from(hessian)] += 1e-13 * size
        step, length = -np.linalg.solve(hessian, gradient), 2.0
        step *= min(1.0, 3.0 / np.abs(step).max())
        moved = np.inf
        if -(gradient @ step) <= _UNSEEN * value:
            length, moved, tried = 1.0, value, score + (shift + step)[:, None]
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
    # The last row is the constant.
    z = np.ones((m + 1, n))
    for j in range(m):
        z[j] = np.eye(m)[j] @ free
    hessian = np.empty((k, m + 1, k, m + 1))
    for a in range(m + 1):
        for b in range(m + 1):
            weighted = weights * z[a] * z[b] * p
            hessian[:, a, :, b] = np.diag(weighted.sum(axis=1)) - weighted @ p.T
    matrix = hessian.reshape(k * (m + 1), -1)
    # Constants over the classes are null vectors, so the matrix is singular.
    inverse = np.linalg.pinv(matrix, rcond=1e-12, hermitian=True)
    for _ in range(3):
        rest = ((weights * dual) @ z.T).ravel()
        along = (inverse @ rest).reshape(k, m + 1)
        dual = dual - _times_hessian(p, along @ z)
    return dual


# Steps on a working set


class DescentState(NamedTuple):
    """Where the descent is on a working set.

    Attributes:
        coefficients: (columns, classes).
        intercept: (classes,).
        score: (classes, rows).
        shares: the probabilities of the classes, (classes, rows).
        gradient: of the loss, (columns, classes).
        intercept_gradient: (classes,).
        violation: the largest, over coefficients and intercepts.
        recent: the last `_MEMORY` objectives.
        least: the least objective so far.
        steps: the number taken.
        models: of the classes, kept from step to step; None until the first step.
        scale: of the models' second derivatives, from those along the last step.
        age: the steps that these models have served.
        begun: the violation where they began to.
        idle: steps since the objective was `least`.
        fresh: whether the models are those of this score.
        stuck: whether the models no longer help.
        ended: whether no further step can be made.
    """

    coefficients: Floats
    intercept: Floats
    score: Floats
    shares: Floats
    gradient: Floats
    intercept_gradient: Floats
    violation: float
    recent: tuple[float, ...]
    least: float
    steps: int = 0
    models: _Models | None = None
    scale: float = 1.0
    age: int = 0
    begun: float = np.inf
    idle: int = 0
    fresh: bool = False
    stuck: bool = False
    ended: bool = False


@dataclass(frozen=True, eq=False)
class BlockDescent:
    """Steps on a working set.

    Attributes:
        weights, target: as of `SoftmaxProblem`.
        columns: the working set.
        penalty: of these columns.
        curvature: of every class; may be that of an earlier score.
        names: the indices of the columns in it.
        limits: when it ends.
    """

    weights: Floats
    target: Floats
    columns: Columns
    penalty: Group
    curvature: Curvature
    names: NDArray[np.intp]
    limits: Limits

    @contextmanager
    def settings(self) -> Iterator[None]:
        """No warnings of overflow, and one BLAS thread for small products."""
        with np.errstate(all="ignore"), one_blas_thread():
            yield

    def init(self, coefficients: Floats, intercept: Floats, score: Floats) -> DescentState:
        shares, value = np.asarray(shares_of(score, axis=0)), self._value(coefficients, score)
        slopes = self._slopes(coefficients, shares)
        return DescentState(coefficients, intercept, score, shares, *slopes, (value,), value)

    def finished(self, at: DescentState) -> bool:
        # Where even fresh models do not help, rounding hides what is left.
        done = at.ended or (at.stuck and at.fresh)
        return done or self.limits.reached(at.violation, at.steps)

    def step(self, at: DescentState) -> DescentState:
        # Models are costly: they are renewed only at the start, where they no longer help, or if
        # several steps have gained little.
        slow = at.age >= _AGE and at.violation > _SLOW * at.begun
        if self.curvature.rows is None or at.stuck or slow:
            self.curvature.renew(self.weights * at.shares * (1 - at.shares))
            at = at._replace(models=None, scale=1.0, age=0, idle=0, fresh=True)
        models = at.models or _Models.of(
            self.columns, self.curvature, self.names, self.limits.stopped
        )
        if models is None:
            return at._replace(ended=True)
        goal, by = models.step(at, self.penalty, self.limits.stopped)
        change = goal - at.coefficients
        along = _scores(change, self.columns) + by[:, None]
        # Where classes are separated, the loss has no minimum, and no step is too long for it.
        length, moved = min(2.0, 2 * _LONGEST / np.abs(along).max()), np.inf
        worst = max(at.recent)
        highest = worst + _ROUNDING * abs(worst)
        while not moved <= highest and length > 0.5**_HALVINGS:
            length /= 2
            coefficients = goal if length == 1 else at.coefficients + length * change
            moved = self._value(coefficients, at.score + length * along)
        # The spectral step is not monotone: only several steps without a new least objective count.
        failed, idle = not moved <= highest, 0 if moved < at.least else at.idle + 1
        new = at._replace(
            steps=at.steps + 1, models=models, age=at.age + 1, idle=idle,
            begun=at.violation if at.age == 0 else at.begun, stuck=failed or idle > _IDLE,
        )  # fmt: skip
        if failed:
            return new
        score = at.score + length * along
        shares = np.asarray(shares_of(score, axis=0))
        # The models omit the second derivatives between classes. The curvature of the loss along
        # this step, relative to that of the models, scales the next one (Barzilai and Borwein).
        assert self.curvature.rows is not None
        pairs = zip(self.curvature.rows, along, strict=True)
        said = sum(float(rows @ own**2) for rows, own in pairs)
        bent = float(((shares - at.shares) * along).sum(axis=0) @ self.weights) / length
        gradient, by_intercept, violation = self._slopes(coefficients, shares)
        scale = float(np.clip(bent / said, _LEAST_SCALE, 1 / _LEAST_SCALE)) if said > 0 else 1.0
        return new._replace(
            coefficients=coefficients, intercept=at.intercept + length * by, score=score,
            shares=shares, gradient=gradient, intercept_gradient=by_intercept, fresh=False,
            violation=violation, recent=(*at.recent, moved)[-_MEMORY:], scale=scale,
            least=min(at.least, moved),
        )  # fmt: skip

    def _value(self, coefficients: Floats, score: Floats) -> float:
        loss = _log_loss(self.weights, self.target, score)
        return loss + float(self.penalty.value(coefficients))

    def _slopes(self, coefficients: Floats, shares: Floats) -> tuple[Floats, Floats, float]:
        """The gradients by coefficients and intercepts, and the largest violation."""
        each = self.weights * (shares - self.target)
        gradient, by_intercept = _sums(self.columns, each), each.sum(axis=1)
        violation = self.penalty.violation(coefficients, gradient).max(initial=0.0)
        return gradient, by_intercept, float(max(violation, np.abs(by_intercept).max()))


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
        curvature: Curvature,
        names: NDArray[np.intp],
        stopped: Callable[[], bool],
    ) -> _Models | None:
        models = curvature.models(columns, names, True, stopped)
        if models is None:
            return None
        hessians = np.stack([model.hessian for model in models])
        diagonals = np.diagonal(hessians, axis1=1, axis2=2)
        least = _RIDGE * diagonals.max(axis=1, keepdims=True) + np.finfo(np.float64).tiny
        couplings = np.stack([model.coupling for model in models], axis=1)
        totals = np.array([float(model.total) for model in models])
        return cls(hessians, np.maximum(diagonals, least), couplings, totals)

    def step(
        self, at: DescentState, penalty: Group, stopped: Callable[[], bool]
    ) -> tuple[Floats, Floats]:
        """The coefficients at the minimum of the models, with their second derivatives times
        `at.scale`, plus the penalty; and the change of the intercepts.
        """
        from jaxrules.solvers.linear.kernels.group_descent import group_sweeps

        b, scale = np.array(at.coefficients.T, order="C"), at.scale
        # The intercepts are minimised out, and all is divided by the scale, which is the same as to
        # multiply the models by it.
        slope = (at.gradient - self.couplings * (at.intercept_gradient / self.totals)).T / scale
        slope, wanted = np.ascontiguousarray(slope), _INEXACT * at.violation / scale
        for _ in range(_ROUNDS):
            if stopped() or group_sweeps(
                self.hessians, self.diagonals, penalty.prices / scale, b, slope, _SWEEPS, wanted
            ):
                break
        change = b.T - at.coefficients
        along = (self.couplings * change).sum(axis=0)
        by = -(at.intercept_gradient / scale + along) / self.totals
        # A constant added to the weights of all classes changes no probability. Zeros stay zeros.
        return (b - b.mean(axis=0)).T, by - by.mean()
