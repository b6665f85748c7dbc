"""Working sets, as in celer and skglm: a penalised problem on many columns is solved on its support
and the columns whose gradient is closest to the penalty, until the duality gap over all columns is
small.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.linear.design import Design, Floats
from jaxrules.solvers.linear.on_host import Point
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run

_FEWEST = 64
"""The least number of columns of a working set."""
_STEPS_PER_VISIT = 12  # Newton steps on one working set, between two checks of the clock
NEARLY_PERFECT = 1e-6
"""A perfect fit has objective 0: gaps are then relative to this share of that of the null model."""

SolutionT = TypeVar("SolutionT")


class Position(NamedTuple):
    """Coefficients of all columns, with everything that follows from them."""

    coefficients: Floats  # (columns,), or (columns, classes)
    intercept: Any  # a number, or (classes,)
    point: Point[Floats]
    all_free: bool  # whether `point.dual` is orthogonal to all columns, which a penalty of 0 needs


class Certificate(NamedTuple):
    objective: float
    bound: float
    violation: Floats  # (columns,)


class WorkingSets(ABC, Generic[SolutionT]):
    """A problem at all penalties.

    Attributes:
        design: the columns.
        factors: (columns,) penalty factors.
        least: the sum of the least losses of the single rows: no objective is below.
        worth: the objective at score 0, above the floor: the scale for a nearly perfect fit.
    """

    design: Design
    factors: Floats
    least: float
    worth: float

    @abstractmethod
    def at(self, coefficients: Floats, intercept: Any, score: Floats, all_free: bool) -> Position:
        """The position with the intercept shifted to its best value; evaluates all columns."""

    @abstractmethod
    def visit(
        self,
        position: Position,
        working: NDArray[np.intp],
        penalty: float,
        tolerance: float,
        max_steps: int,
        stopped: Callable[[], bool],
    ) -> tuple[Position, int]:
        """Minimise over the working columns and the intercept, from `position`; returns also the
        number of steps.
        """

    @abstractmethod
    def certificate(self, position: Position, penalty: float) -> Certificate: ...

    @abstractmethod
    def solution(
        self,
        position: Position,
        certificate: Certificate,
        penalty: float,
        steps: int,
        status: Status,
    ) -> SolutionT: ...

    @abstractmethod
    def sizes(self, coefficients: Floats) -> Floats:
        """What the penalty measures, (columns,)."""

    @abstractmethod
    def pulls(self, gradient: Floats) -> Floats:
        """What must not exceed the penalty of a column that is 0, (columns,)."""

    def excess(self, certificate: Certificate) -> float:
        """Gaps are relative to this: the objective, above the least loss if that is negative."""
        return certificate.objective - min(self.least, 0.0)

    def converged(self, certificate: Certificate, penalty: float, tolerance: float) -> bool:
        # A small gap alone would leave at zero coefficients that should just have entered, because
        # the gap is of second order in their violation.
        loose = np.maximum(math.sqrt(tolerance) * penalty * self.factors, 1e-14)
        settled = (certificate.violation <= loose) | (self.factors * penalty == 0)
        gap = certificate.objective - certificate.bound
        return gap <= tolerance * max(
            self.excess(certificate), NEARLY_PERFECT * self.worth
        ) and bool(settled.all())

    @abstractmethod
    def start(self, start: Any) -> Position:
        """The position of a given start; for None the null model, in which every penalised
        coefficient is zero.
        """

    def max_penalty(self) -> float:
        """The smallest penalty at which every penalised coefficient is zero: max_j |gradient_j| /
        c_j at the null model; 0 if no column has a penalty.
        """
        pulls, some = self.pulls(self.start(None).point.gradient), self.factors > 0
        return float(np.max(pulls[some] / self.factors[some], initial=0.0))

    def working_set(self, position: Position, penalty: float) -> NDArray[np.intp]:
        """The support, the columns without a penalty, and those whose gradient is closest to the
        penalty.
        """
        penalties, n_columns = penalty * self.factors, len(self.factors)
        must = (self.sizes(position.coefficients) != 0) | (penalties == 0)
        size = max(int(1.5 * must.sum()), _FEWEST)
        if size >= n_columns:
            return np.arange(n_columns)
        pulls = self.pulls(position.point.gradient)
        closeness = pulls / np.where(penalties == 0, 1.0, penalties)
        closeness[must] = np.inf
        return np.sort(np.argpartition(-closeness, size)[:size])

    def minimise(
        self,
        penalty: float,
        position: Position,
        tolerance: float,
        max_iterations: int,
        run: Run | None,
    ) -> tuple[SolutionT, Position]:
        """From a position until the duality gap is small."""
        if position.all_free != (penalty == 0):
            position = self.at(
                position.coefficients, position.intercept, position.point.score, penalty == 0
            )
        steps, idle, tightening, stopped = (
            0,
            0,
            1.0,
            (lambda: False) if run is None else run.stopped,
        )
        certificate = self.certificate(position, penalty)
        while True:
            status = None
            if self.converged(certificate, penalty, tolerance):
                status = Status.CONVERGED
            elif run is not None and run.stopped():
                status = run.limit
            elif steps >= max_iterations:
                status = Status.MAX_ITERATIONS
            elif idle >= 3:
                status = Status.STALLED
            if status is not None:
                return self.solution(position, certificate, penalty, steps, status), position

            working = self.working_set(position, penalty)
            outside = np.delete(certificate.violation, working).max(initial=0.0)
            size = float(self.sizes(position.coefficients).sum())
            # A violation v leaves a gap of up to 2 v times this sum. There is no point in solving
            # the working set far more accurately than the columns outside allow.
            wanted = (
                tightening * tolerance * self.excess(certificate) / size if size > 0 else math.inf
            )
            worst = float(certificate.violation.max())
            target = max(min(wanted, 0.2 * worst), 0.2 * outside)
            most = min(_STEPS_PER_VISIT, max_iterations - steps)
            position, taken = self.visit(position, working, penalty, target, most, stopped)
            steps += taken
            previous, certificate = certificate, self.certificate(position, penalty)
            gained = previous.objective - certificate.objective > 1e-15 * abs(certificate.objective)
            improved = certificate.violation.max() < 0.9 * previous.violation.max()
            idle = 0 if gained or improved else idle + 1
            if outside <= wanted:
                tightening *= 0.3
