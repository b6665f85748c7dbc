"""Working sets, as in celer and skglm: a penalised problem on many columns is solved on its support
and the columns whose gradient is closest to the penalty, until the duality gap over all columns is
small.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.limits import Limits, never
from jaxrules.solvers.linear.design import Design, Floats
from jaxrules.solvers.linear.on_host import NewtonPoint, threads_for
from jaxrules.solvers.linear.penalties import Penalty
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run

_FEWEST = 64
"""The least number of columns of a working set."""
_STEPS_PER_VISIT = 12  # Newton steps on one working set, between two checks of the clock
NEARLY_PERFECT = 1e-6
"""A perfect fit has objective 0: gaps are then relative to this share of that of the null model."""


class Position(NamedTuple):
    """Coefficients of all columns, with everything that follows from them."""

    coefficients: Floats  # (columns,), or (columns, classes)
    intercept: Any  # a number, or (classes,)
    point: NewtonPoint[Floats]
    all_free: bool  # whether `point.dual` is orthogonal to all columns, which a penalty of 0 needs

    def on(self, working: NDArray[np.intp]) -> tuple[Floats, Any, Floats]:
        """Where a solver on the working columns starts: coefficients, intercept and score."""
        return self.coefficients[working], self.intercept, self.point.score


@dataclass(frozen=True)
class SparseSolution:
    """One fitted model.

    Attributes:
        coefficients: (columns,), or (columns, classes), float64; exactly zero outside the support.
        intercept: b_0, or (classes,); 0 if none was fitted.
        penalty: the penalty it was fitted with.
        objective: the value of the objective.
        bound: a proved lower bound on the minimum of the objective (Fenchel duality).
        kkt_residual: the largest violation of the optimality conditions
            |gradient_j| <= penalty c_j.
        iterations: steps taken.
        status: CONVERGED, or why the fit ended before that.
    """

    coefficients: Floats
    intercept: Any
    penalty: float
    objective: float
    bound: float
    kkt_residual: float
    iterations: int
    status: Status

    @property
    def gap(self) -> float:
        """The duality gap: the objective is at most this far above its minimum."""
        return max(self.objective - self.bound, 0.0)

    @property
    def converged(self) -> bool:
        """Whether the duality gap met the tolerance."""
        return self.status is Status.CONVERGED

    @property
    def support(self) -> NDArray[np.intp]:
        """Indices of the columns with a nonzero coefficient."""
        columns = self.coefficients.reshape(len(self.coefficients), -1)
        return np.flatnonzero(columns.any(axis=1))


@dataclass
class Latest:
    """The latest solution and its position: the next one may start there."""

    solution: SparseSolution | None = None
    position: Position | None = None


class Solver(Protocol):
    """A solver on some columns. Its states have `coefficients`, `intercept`, `score` and `steps`,
    the number taken.
    """

    def settings(self) -> AbstractContextManager[None]:
        """What its steps need of NumPy, BLAS and JAX."""

    def init(self, coefficients: Floats, intercept: Any, score: Floats) -> Any:
        """The state at coefficients, an intercept and the score they give."""

    def finished(self, at: Any) -> bool: ...
    def step(self, at: Any) -> Any: ...


class Certificate(NamedTuple):
    objective: float
    bound: float
    violation: Floats  # (columns,)


class WorkingSets(ABC):
    """A loss and a penalty, at all strengths of the penalty.

    Attributes:
        design: the columns.
        penalty: of strength 1; its prices are the penalty factors of the columns.
        constant: of the loss of merged rows.
        least: the sum of the least losses of the single rows: no objective is below.
        worth: the objective at score 0, above the floor: the scale for a nearly perfect fit.
        latest: the latest solution.
    """

    design: Design
    penalty: Penalty
    constant: float
    least: float
    worth: float
    latest: Latest

    @abstractmethod
    def at(self, coefficients: Floats, intercept: Any, score: Floats, all_free: bool) -> Position:
        """The position with the intercept shifted to its best value; evaluates all columns."""

    @abstractmethod
    def solver(self, working: NDArray[np.intp], strength: float, limits: Limits) -> Solver:
        """Of the problem on the working columns and the intercept."""

    @abstractmethod
    def bound(self, penalty: Any, point: NewtonPoint[Floats]) -> float:
        """The lower bound on the objective, without its constant, that the dual point gives."""

    @abstractmethod
    def of_solver(self, coefficients: Floats, intercept: Any) -> tuple[Floats, Any]:
        """The solver's coefficients, (at least columns,), and intercept as those of the matrix."""

    @staticmethod
    def parts_of(start: SparseSolution | tuple[Any, Any]) -> tuple[Floats, Floats]:
        """The coefficients and the intercept, or intercepts, of a given start."""
        if isinstance(start, SparseSolution):
            start = start.coefficients, start.intercept
        return np.asarray(start[0], np.float64), np.asarray(start[1], np.float64)

    @property
    @abstractmethod
    def null(self) -> Position:
        """The null model, in which every penalised coefficient is zero."""

    @abstractmethod
    def start(self, start: Any) -> Position:
        """The position of a given start; for None the null model."""

    def renamed(
        self, solution: SparseSolution, coefficients: Floats, intercept: Any
    ) -> SparseSolution:
        """A solution with other coefficients, (columns,) or (columns, classes), of the same scores
        and objective; as a start, the latest one still costs no evaluation.
        """
        renamed, at = replace(solution, coefficients=coefficients, intercept=intercept), self.latest
        if solution is at.solution and at.position is not None:
            scaled = (coefficients.T * self.design.scale).T
            by = self.design.centre @ (coefficients - solution.coefficients)
            moved = at.position.intercept + (intercept - solution.intercept) + by
            at.solution = renamed
            at.position = at.position._replace(coefficients=scaled, intercept=moved)
        return renamed

    @property
    def unpenalised(self) -> NDArray[np.intp]:
        """The columns without a penalty."""
        return np.flatnonzero(self.penalty.prices == 0)

    def null_model(self, position: Position, limits: Limits) -> Position:
        """The position with the least loss at which every penalised coefficient is zero."""
        free = self.unpenalised
        if not len(free):  # `at` finds the best intercept
            return position
        return self._solved(position, free, 0.0, limits)[0]

    def _solved(
        self, position: Position, working: NDArray[np.intp], strength: float, limits: Limits
    ) -> tuple[Position, int]:
        """The position of the solution on the working columns, the others 0, and its steps."""
        solver = self.solver(working, strength, limits)
        with solver.settings():
            state = solver.init(*position.on(working))
            while not solver.finished(state):
                state = solver.step(state)
        coefficients = np.zeros_like(position.coefficients)
        coefficients[working] = state.coefficients
        found = self.at(coefficients, state.intercept, state.score, position.all_free)
        return found, state.steps

    def certificate(self, position: Position, strength: float) -> Certificate:
        """The objective, a lower bound on its minimum, and the violation of every column."""
        penalty, point, b = self.penalty.times(strength), position.point, position.coefficients
        with np.errstate(all="ignore"):
            bound = self.bound(penalty, point)
        return Certificate(
            float(point.loss) + float(penalty.value(b)) + self.constant,
            # fmax: where the dual point overflows, NaN gives way to the least loss.
            float(np.fmax(bound + self.constant, self.least)),
            penalty.violation(b, point.gradient),
        )

    def excess(self, certificate: Certificate) -> float:
        """Gaps are relative to this: the objective, above the least loss if that is negative."""
        return certificate.objective - min(self.least, 0.0)

    def converged(self, certificate: Certificate, strength: float, tolerance: float) -> bool:
        # A small gap alone would leave at zero coefficients that should just have entered, because
        # the gap is of second order in their violation.
        prices = strength * self.penalty.prices
        loose = np.maximum(math.sqrt(tolerance) * prices, 1e-14)
        settled = (certificate.violation <= loose) | (prices == 0)
        gap = certificate.objective - certificate.bound
        size = max(self.excess(certificate), NEARLY_PERFECT * self.worth)
        return gap <= tolerance * size and bool(settled.all())

    def max_penalty(self) -> float:
        """The smallest penalty at which every penalised coefficient is zero: max_j |gradient_j| /
        c_j at the null model; 0 if no column has a penalty.
        """
        factors, gradient = self.penalty.prices, self.null.point.gradient
        pulls, some = self.penalty.pull(gradient), factors > 0
        return float(np.max(pulls[some] / factors[some], initial=0.0))

    def working_set(self, position: Position, strength: float) -> NDArray[np.intp]:
        """The support, the columns without a penalty, and those whose gradient is closest to the
        penalty.
        """
        prices = strength * self.penalty.prices
        must = (self.penalty.sizes(position.coefficients) != 0) | (prices == 0)
        size = max(int(1.5 * must.sum()), _FEWEST)
        if size >= len(prices):
            return np.arange(len(prices))
        pulls = self.penalty.pull(position.point.gradient)
        closeness = pulls / np.where(prices == 0, 1.0, prices)
        closeness[must] = np.inf
        return np.sort(np.argpartition(-closeness, size)[:size])

    def minimise(
        self,
        strength: float,
        position: Position,
        tolerance: float,
        max_iterations: int,
        run: Run | None,
    ) -> tuple[SparseSolution, Position]:
        """From a position until the duality gap is small."""
        with threads_for(self.design.storage):
            return self._minimise(strength, position, tolerance, max_iterations, run)

    def _minimise(
        self,
        strength: float,
        position: Position,
        tolerance: float,
        max_iterations: int,
        run: Run | None,
    ) -> tuple[SparseSolution, Position]:
        # Without a penalty the dual point must be orthogonal to all columns; with one, only to
        # those of price 0.
        if position.all_free != (strength == 0):
            b, intercept, point, _ = position
            position = self.at(b, intercept, point.score, strength == 0)
        steps, idle, tightening, stopped = 0, 0, 1.0, never if run is None else run.stopped
        certificate = self.certificate(position, strength)
        while True:
            status = None
            if self.converged(certificate, strength, tolerance):
                status = Status.CONVERGED
            elif run is not None and run.stopped():
                status = run.limit
            elif steps >= max_iterations:
                status = Status.MAX_ITERATIONS
            elif idle >= 3:
                status = Status.STALLED
            if status is not None:
                model = self.of_solver(position.coefficients, position.intercept)
                # A derivative by a given coefficient is `scale` times that by the solver's.
                residual = float((certificate.violation * self.design.scale).max(initial=0.0))
                proof = certificate.objective, certificate.bound, residual
                return SparseSolution(*model, strength, *proof, steps, status), position

            working = self.working_set(position, strength)
            outside = np.delete(certificate.violation, working).max(initial=0.0)
            size = float(self.penalty.sizes(position.coefficients).sum())
            # A violation v leaves a gap of up to 2 v times this sum. There is no point in solving
            # the working set far more accurately than the columns outside allow.
            gap = tightening * tolerance * self.excess(certificate)
            wanted = gap / size if size > 0 else math.inf
            worst = float(certificate.violation.max(initial=0.0))
            target = max(min(wanted, 0.2 * worst), 0.2 * outside)
            limits = Limits(target, min(_STEPS_PER_VISIT, max_iterations - steps), stopped)
            position, more = self._solved(position, working, strength, limits)
            steps += more
            previous, certificate = certificate, self.certificate(position, strength)
            gained = previous.objective - certificate.objective > 1e-15 * abs(certificate.objective)
            worst_after = certificate.violation.max(initial=0.0)
            # Where rounding hides the decrease, a falling violation is progress, too.
            idle = 0 if gained or worst_after < 0.9 * worst else idle + 1
            # The columns outside were settled already: if the gap is still too large, its cause is
            # inside.
            if outside <= wanted:
                tightening *= 0.3
