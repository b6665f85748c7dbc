"""The loss of one output, or of several classes as one problem.

Scores, slopes and weights have a column per output: one, or one per class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax as shares_of

from jaxrules.learning.options import ONE_VS_REST
from jaxrules.learning.training import TrainingData
from jaxrules.losses import best_constant, logistic, merge_rows, require
from jaxrules.models.rule_models import Link
from jaxrules.rules.rows import check_memory
from jaxrules.solvers.linear import sparse_glm, sparse_softmax
from jaxrules.solvers.linear.design import Design
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

CERTIFICATE = "the certificate of generalised linear rule models"
_CLASSES_BYTES = 100.0
"""Per row and class of classes fitted together."""


class Solved(NamedTuple):
    """A solution of the solver: coefficients (columns, outputs) and intercepts (outputs,); for
    several classes also the problem, with products of columns for the next one.
    """

    coefficients: Floats
    intercept: Floats
    objective: float
    status: Status
    problem: sparse_softmax.SoftmaxProblem | None = None


def n_outputs(data: TrainingData) -> int:
    """The number of outputs that are fitted as one problem."""
    return 1 if data.target.ndim == 1 else data.target.shape[1]


def gradient(data: TrainingData, score: Floats) -> Floats:
    """The derivative of every row's loss by its scores, (rows, outputs) like the scores."""
    if data.target.ndim == 1:
        return np.asarray(data.loss.gradient(data.target, score[:, 0]))[:, None]
    # P - Y for the softmax loss, with the target -1 or 1
    return np.asarray(shares_of(score, axis=1)) - (1.0 + data.target) / 2.0


def constant(data: TrainingData) -> Floats:
    """The scores of the best constant, (outputs,)."""
    if data.target.ndim == 1:
        return np.array([best_constant(data.loss, data.target, data.weights)])
    return np.asarray(np.log(np.average((1.0 + data.target) / 2.0, axis=0, weights=data.weights)))


@dataclass(frozen=True, eq=False)
class OneOutput:
    """The loss on merged rows of a target of one output.

    Attributes:
        data: the original rows.
        target, share: mean target and weight of every merged row; the weights sum to 1.
        constant: the part of the mean loss that merged rows leave out.
    """

    data: TrainingData
    target: Floats
    share: Floats
    constant: float

    @classmethod
    def of(cls, data: TrainingData, group: NDArray[np.integer], n_rows: int) -> OneOutput:
        share = data.weights / data.weights.sum()
        return cls(data, *merge_rows(data.loss, data.target, share, group, n_rows))

    @property
    def link(self) -> Link:
        """That of the model."""
        return self.data.loss.link

    def slopes(self, score: Floats) -> Floats:
        """Derivative of the mean loss by the scores, (rows, outputs)."""
        rows = self.data.loss.gradient(self.target, score[:, 0])
        return np.asarray(self.share * rows)[:, None]

    def solve(
        self,
        design: Design,
        penalties: Floats,
        signs: Bools | None,
        start: tuple[Floats, Floats] | None,
        tolerance: float = 1e-6,
        run: Run | None = None,
        before: tuple[Solved, int] | None = None,
    ) -> Solved:
        """The best coefficients; arguments as of `sparse_glm.solve`, penalties (columns,).

        Args:
            before: the solution on other columns, and the number of columns, the first ones, that
                are the same.
        """
        begin = None if start is None else (start[0][:, 0], float(start[1][0]))
        found = sparse_glm.solve(
            design, self.data.target, 1.0, loss=self.data.loss, sample_weight=self.data.weights,
            penalty_factors=penalties, signs=signs, start=begin, tolerance=tolerance, run=run,
        )  # fmt: skip
        intercept = np.array([found.intercept])
        return Solved(found.coefficients[:, None], intercept, found.objective, found.status)

    def bound(self, score: Floats, ratio: float) -> float:
        """A lower bound on the objective over all rules, by Fenchel duality.

        The slopes u_n of the loss per row, divided by the ratio, are feasible for the dual
        problem if they sum to 0 (the intercept). They do so up to rounding; the heavier sign is
        scaled down to make it exact.

        Args:
            score: of every row, (rows, outputs).
            ratio: no rule's slope exceeds this times its penalty; at least 1.
        """
        # D(u) = -sum_n share_n l*(y_n, u_n) bounds the objective if |sum_n share_n u_n r_k(x_n)| is
        # at most the price of every rule and sum_n share_n u_n = 0. Here u_n is the slope of the
        # row's own loss, without its share.
        share = self.share
        conjugate = require(self.data.loss, "conjugate", CERTIFICATE)
        slopes = self.slopes(score)[:, 0]
        # A merged row may have no weight left; it counts in no sum.
        u = np.divide(slopes, share, out=np.zeros_like(slopes), where=share > 0) / ratio
        positive, negative = float(share @ np.maximum(u, 0.0)), float(share @ np.maximum(-u, 0.0))
        # Scaling down, not up: |u| may only fall, and where the loss has a conjugate at u it has
        # one between 0 and u.
        if positive > negative:
            u = np.where(u > 0, u * (negative / positive), u)
        elif negative > positive:
            u = np.where(u < 0, u * (positive / negative), u)
        return self.constant - float(share @ conjugate(self.target, u))


@dataclass(frozen=True, eq=False)
class Classes:
    """The loss on merged rows of several classes as one problem; methods as of `OneOutput`.

    Attributes:
        data: the original rows.
        target: the shares of the classes in every merged row, (rows, classes).
        share: the weight of every merged row; they sum to 1.
    """

    data: TrainingData
    target: Floats
    share: Floats

    @property
    def link(self) -> Link:
        return "softmax"

    @classmethod
    def of(cls, data: TrainingData, group: NDArray[np.integer], n_rows: int) -> Classes:
        n_classes = data.target.shape[1]
        check_memory(n_rows, n_classes, _CLASSES_BYTES, what="classes", remedy=ONE_VS_REST)
        share = data.weights / data.weights.sum()
        # Every class is merged as a target -1 or 1, whose means are shares after (1 + y) / 2.
        merged = [merge_rows(logistic, one, share, group, n_rows) for one in data.target.T]
        target = np.stack([(1.0 + one.target) / 2.0 for one in merged], axis=1)
        return cls(data, target, merged[0].weight)

    def slopes(self, score: Floats) -> Floats:
        return np.asarray(self.share[:, None] * (shares_of(score, axis=1) - self.target))

    def solve(
        self,
        design: Design,
        penalties: Floats,
        signs: Bools | None,
        start: tuple[Floats, Floats] | None,
        tolerance: float = 1e-6,
        run: Run | None = None,
        before: tuple[Solved, int] | None = None,
    ) -> Solved:
        # The products of the columns that were there before are kept: only those of new rules are
        # made.
        if before is not None and before[0].problem is not None:
            problem = before[0].problem.with_columns(design, penalties, before[1])
        else:
            rows = self.data.target, self.data.weights
            problem = sparse_softmax.SoftmaxProblem.of(design, *rows, penalties)
        found = problem.solve(1.0, start=start, tolerance=tolerance, run=run)
        return Solved(found.coefficients, found.intercept, found.objective, found.status, problem)

    def bound(self, score: Floats, ratio: float) -> float:
        return sparse_softmax.bound_at(self.share, self.target.T, score.T, 1.0 / ratio)


Outputs = OneOutput | Classes


def outputs_of(data: TrainingData, group: NDArray[np.integer], n_rows: int) -> Outputs:
    """The loss of the data on merged rows, for several classes as one problem.

    Args:
        group: the merged row of every row, (rows,).
        n_rows: the number of merged rows.
    """
    kind = OneOutput if data.target.ndim == 1 else Classes
    return kind.of(data, group, n_rows)
