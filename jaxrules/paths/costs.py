"""Costs of linear models.

Every search minimises a quadratic function of the coefficients, c(b) = s - 2 g'b + b'Qb: the
mean squared error (Section 2 of the paper), the same plus a ridge penalty, or the second-order
model of the mean of another loss around a reference. Searches use only Q, g and s, never the rows
of the data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxrules.losses import Loss, best_constant, squared

Array = NDArray[np.float64]
Sequence = NDArray[np.int64]

RANK_TOLERANCE = 1e-12
"""A pivot below this fraction of its diagonal counts as zero: the column repeats earlier ones."""
INTERCEPT_ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class QuadraticCost:
    """c(b) = constant - 2 linear'b + b' curvature b; or a stack of such, with a leading axis.

    Attributes:
        curvature: Q, symmetric positive semidefinite, shape (features, features).
        linear: g, shape (features,), in the range of Q.
        constant: s.
    """

    curvature: Array
    linear: Array
    constant: float | Array

    @classmethod
    def stack(cls, costs: Iterable[QuadraticCost]) -> QuadraticCost:
        """One cost per step."""
        curvature, linear, constant = zip(
            *((c.curvature, c.linear, c.constant) for c in costs), strict=True
        )
        return cls(np.array(curvature), np.array(linear), np.array(constant))

    def __call__(self, models: Array) -> Array:
        """The costs of models, shape (..., features) -> (...)."""
        return self.constant + ((models @ self.curvature - 2 * self.linear) * models).sum(axis=-1)

    def gradient(self, model: Array) -> Array:
        """Half the gradient, Q b - g, shape (features,)."""
        return self.curvature @ model - self.linear

    def around(self, start: Array) -> QuadraticCost:
        """The cost as a function of the change b - start."""
        return QuadraticCost(self.curvature, -self.gradient(start), float(self(start)))

    def restricted(self, features: Sequence) -> QuadraticCost:
        """The cost where only these features may differ from zero."""
        return QuadraticCost(
            self.curvature[..., features[:, None], features],
            self.linear[..., features],
            self.constant,
        )

    def minimiser(self) -> Array:
        """A least-cost model; the one of least norm if Q is singular."""
        # Unit diagonal: the rank tolerance then holds relative to every column, whatever its unit.
        scale = np.sqrt(np.diag(self.curvature))
        scale = np.where(scale > 0, scale, 1.0)
        scaled = self.curvature / np.outer(scale, scale)
        return np.linalg.lstsq(scaled, self.linear / scale, rcond=RANK_TOLERANCE)[0] / scale

    def square_root(self) -> Array:
        """R of full row rank with R'R = Q, up to the rank tolerance, shape (rank, features)."""
        eigenvalues, vectors = np.linalg.eigh(self.curvature)
        kept = eigenvalues > RANK_TOLERANCE * max(eigenvalues[-1], 0.0)
        return np.sqrt(eigenvalues[kept])[:, None] * vectors[:, kept].T


@dataclass(frozen=True, eq=False)
class LossCost:
    """c(b) = min_u sum_i w_i l(y_i, u + o_i + x_i'b) / sum_i w_i + l2_penalty |a + b|^2 + constant.

    The intercept u is not a step, so that every model has its best one.

    Attributes:
        loss: l.
        X: shape (rows, features).
        y: in the loss's coding, shape (rows,).
        shares: weights of the rows that sum to one.
        l2_penalty: the ridge penalty.
        intercept: whether u is free; 0 otherwise.
        offset, centre, constant: o, shape (rows,), a, shape (features,), and the constant; not zero
            in costs of changes.
    """

    loss: Loss
    X: Array
    y: Array
    shares: Array
    l2_penalty: float
    intercept: bool
    offset: Array | float = 0.0
    centre: Array | float = 0.0
    constant: float = 0.0

    def __call__(self, models: Array) -> Array:
        """The costs of models, shape (..., features) -> (...)."""
        flat = models.reshape(-1, models.shape[-1])
        scores = self._scores(flat)
        losses = (
            self.loss.value(self.y, scores + self._best_intercepts(scores)[:, None]) @ self.shares
        )
        ridge = self.l2_penalty * ((flat + self.centre) ** 2).sum(axis=1) + self.constant
        costs: Array = (losses + ridge).reshape(models.shape[:-1])
        return costs

    def around(self, start: Array) -> LossCost:
        """The cost as a function of the change b - start."""
        offset, centre = self.offset + self.X @ start, self.centre + start
        return dataclasses.replace(self, offset=offset, centre=centre)

    def restricted(self, features: Sequence) -> LossCost:
        """The cost where only these features may differ from zero."""
        centre = np.broadcast_to(self.centre, self.X.shape[1])
        fixed = self.l2_penalty * float((np.delete(centre, features) ** 2).sum())
        return dataclasses.replace(
            self, X=self.X[:, features], centre=centre[features], constant=self.constant + fixed
        )

    def intercepts(self, models: Array) -> Array:
        """The best intercept of every model, shape (models,)."""
        return self._best_intercepts(self._scores(models))

    def _scores(self, models: Array) -> Array:
        return models @ self.X.T + self.offset

    def _best_intercepts(self, scores: Array) -> Array:
        """By safeguarded Newton steps."""
        best = np.zeros(len(scores))
        if not self.intercept:
            return best
        # With the best constant alone, the slope is 0. At `low` every score lies below it, at
        # `high` above:
        middle = best_constant(self.loss, self.y, self.shares)
        # The root lies between.
        low, high = middle - scores.max(axis=1), middle - scores.min(axis=1)
        best = np.clip(middle - scores @ self.shares, low, high)
        for _ in range(INTERCEPT_ITERATIONS):
            slope = self.loss.gradient(self.y, scores + best[:, None]) @ self.shares
            # The loss is convex in u: the sign of its slope says where the minimum lies.
            low, high = np.where(slope < 0, best, low), np.where(slope > 0, best, high)
            curvature = self.loss.curvature(self.y, scores + best[:, None]) @ self.shares
            newton = best - slope / np.maximum(curvature, 1e-300)
            settled = np.abs(newton - best) <= 1e-14 * (1 + np.abs(best))
            if settled.all():
                return best
            inside = (newton > low) & (newton < high)
            # Outside the bracket Newton has overshot: halve the bracket instead.
            best = np.where(settled, best, np.where(inside, newton, (low + high) / 2))
        return best

    def quadratic(self, reference: Array) -> QuadraticCost:
        """The second-order model around a reference, with the intercept minimised out."""
        scores = self._scores(reference[None])
        scores = (scores + self._best_intercepts(scores)[:, None])[0]
        curvatures = self.shares * self.loss.curvature(self.y, scores)
        X = self.X
        if self.intercept and curvatures.sum() > 0:  # with u at its best, columns are centred
            X = X - (curvatures @ X) / curvatures.sum()
        # c(b) = s - 2 g'b + b'Qb: Q is half of the Hessian, and Q b - g half of the gradient.
        Q = X.T @ (X * curvatures[:, None]) / 2
        Q = (Q + Q.T) / 2 + self.l2_penalty * np.eye(X.shape[1])
        # Columns need no centring here: at the best u, the slopes of the rows sum to 0.
        half_gradient = self.X.T @ (self.shares * self.loss.gradient(self.y, scores)) / 2
        g = Q @ reference - half_gradient - self.l2_penalty * (reference + self.centre)
        # Value and gradient at the reference are those of the cost itself.
        constant = float(self(reference[None])[0]) + 2 * g @ reference - reference @ Q @ reference
        return QuadraticCost(Q, g, float(constant))


def mean_squared_error(
    X: Array, y: Array, sample_weight: Array, l2_penalty: float = 0.0
) -> QuadraticCost:
    """sum_i w_i (y_i - x_i'b)^2 / sum_i w_i + l2_penalty |b|^2 as a quadratic of b.

    Args:
        X: shape (rows, features), centred by the caller if an intercept is wanted.
        y: shape (rows,).
        sample_weight: shape (rows,), not all zero.
        l2_penalty: the ridge penalty. The ``alpha`` of scikit-learn's `Ridge` is this times the sum
            of the weights.
    """
    cost = LossCost(squared, X, y, sample_weight / sample_weight.sum(), l2_penalty, False)
    return cost.quadratic(np.zeros(X.shape[1]))
