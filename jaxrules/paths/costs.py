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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jaxrules.losses import Loss, best_constant, require, softmax, squared

Array = NDArray[np.float64]
Sequence = NDArray[np.int64]

RANK_TOLERANCE = 1e-12
"""A pivot below this fraction of its diagonal counts as zero: the column repeats earlier ones."""
INTERCEPT_ITERATIONS = 100
ROUNDING = 4 * np.finfo(np.float64).eps
"""Of a mean of differences of probabilities."""


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
        parts = zip(*((c.curvature, c.linear, c.constant) for c in costs), strict=True)
        return cls(*map(np.array, parts))

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
        curvature = self.curvature[..., features[:, None], features]
        return QuadraticCost(curvature, self.linear[..., features], self.constant)

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

    @property
    def width(self) -> int:
        """The number of coefficients of a feature, which a step changes together."""
        return 1

    @property
    def n_coefficients(self) -> int:
        return self.width * self.X.shape[1]

    def __call__(self, models: Array) -> Array:
        """The costs of models, shape (..., coefficients) -> (...)."""
        flat = models.reshape(-1, models.shape[-1])
        scores = self._scores(flat)
        losses = self._losses(scores + self._best_intercepts(scores)[..., None]) @ self.shares
        ridge = self.l2_penalty * ((flat + self.centre) ** 2).sum(axis=1) + self.constant
        costs: Array = (losses + ridge).reshape(models.shape[:-1])
        return costs

    def around(self, start: Array) -> LossCost:
        """The cost as a function of the change b - start."""
        offset, centre = self._scores(start[None])[0], self.centre + start
        return dataclasses.replace(self, offset=offset, centre=centre)

    def restricted(self, features: Sequence) -> LossCost:
        """The cost where only these features may differ from zero."""
        centre = np.broadcast_to(self.centre, self.n_coefficients)
        kept = blocks(features, self.width)
        fixed = self.l2_penalty * float((np.delete(centre, kept) ** 2).sum())
        return dataclasses.replace(
            self, X=self.X[:, features], centre=centre[kept], constant=self.constant + fixed
        )

    def intercepts(self, models: Array) -> Array:
        """The best intercept of every model, shape (models,)."""
        return self._best_intercepts(self._scores(models))

    def terms(self, scores: Array) -> tuple[Array, Array, Array]:
        """The losses of the rows, shape (models, ..., rows), from scores of shape (models, width,
        ..., rows); their gradients, of the shape of the scores; and their Hessians, which have the
        axis of the width twice.
        """
        one = scores[:, 0]
        value, slope, curvature = self.loss.terms(np.broadcast_to(self.y, one.shape), one)
        return value, slope[:, None], curvature[:, None, None]

    def conjugates(self, slopes: Array) -> Array:
        """The conjugates of the losses, shape (models, ..., rows), at slopes as of `terms`."""
        conjugate = require(self.loss, "conjugate", "the proof of a path")
        values: Array = conjugate(np.broadcast_to(self.y, slopes[:, 0].shape), slopes[:, 0])
        return values

    def _losses(self, scores: Array) -> Array:
        values: Array = self.loss.value(self.y, scores)
        return values

    def _scores(self, models: Array) -> Array:
        return models @ self.X.T + self.offset

    @cached_property
    def _constant(self) -> float:
        return float(best_constant(self.loss, self.y, self.shares))

    def _best_intercepts(self, scores: Array) -> Array:
        """By safeguarded Newton steps."""
        best = np.zeros(len(scores))
        if not self.intercept:
            return best
        # With the best constant alone, the slope is 0. At `low` every score lies below it, at
        # `high` above:
        middle = self._constant
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

    def quadratic(self, reference: Array, intercepts: Array | None = None) -> QuadraticCost:
        """The second-order model around a reference, with the intercept minimised out; its best
        intercepts, if they are known.
        """
        scores = self._scores(reference[None])
        known = self._best_intercepts(scores) if intercepts is None else intercepts
        scores = scores[0] + known
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


@dataclass(frozen=True, eq=False)
class SoftmaxCost(LossCost):
    """The same for K classes together: l is the softmax loss of the K scores of a row, which are
    x_i'B for a matrix B with a row of K coefficients per feature, and of K intercepts.

    A number added to a row of B changes no loss: rows sum to 0. A model is a flat array that has,
    feature by feature, the K - 1 numbers of its row in the orthonormal `basis` of such rows. Scores
    and intercepts are in this basis too.

    Attributes:
        y: +1 for the row's class, -1 for the others, shape (rows, K).
        l2_penalty: on |A + B|^2. Twice that of the logistic cost, so that two classes, whose rows
            of B are (-v, v) / 2, are the logistic problem of v.
        offset: shape (K - 1, rows).
    """

    @property
    def width(self) -> int:
        return self.y.shape[1] - 1

    @cached_property
    def basis(self) -> Array:
        """Orthonormal columns that sum to 0, shape (K, K - 1)."""
        order = np.arange(self.width + 1.0)
        contrasts = np.diag(order) - np.triu(np.ones((len(order), len(order))), 1)
        return contrasts[:, 1:] / np.sqrt(order[1:] * (order[1:] + 1))

    def in_basis(self, rows: Array) -> Array:
        """Models of shape (..., features, K), whose rows sum to 0, as flat arrays."""
        return (rows @ self.basis).reshape(*rows.shape[:-2], -1)

    def by_class(self, numbers: Array) -> Array:
        """The K numbers of a feature or of intercepts from those in the basis, (..., K - 1) ->
        (..., K); equal numbers stay equal.
        """
        # Sums by hand: a product of matrices may round the same row in two ways.
        parts = [numbers[..., c, None] * own for c, own in enumerate(self.basis.T)]
        return np.asarray(sum(parts))

    def terms(self, scores: Array) -> tuple[Array, Array, Array]:
        value, p, shares = self._likelihoods(scores)
        slope = self.basis.T @ (p - shares)
        # The covariance of the basis under p, centred: no difference of numbers that are nearly 1
        centred = self.basis[..., None] - (self.basis.T @ p)[:, None]
        curvature = np.einsum("nkar,nkbr->nabr", p[:, :, None] * centred, centred)
        rest = scores.shape[2:]
        return (
            value.reshape(-1, *rest),
            slope.reshape(scores.shape),
            curvature.reshape(*scores.shape[:2], *scores.shape[1:2], *rest),
        )

    def conjugates(self, slopes: Array) -> Array:
        """The negative entropies of slopes + y, infinite where these are no probabilities."""
        differences, shares = self._by_rows(slopes)
        p = shares + differences
        outside = (p < -64 * np.finfo(np.float64).eps).any(axis=1)
        p = np.maximum(p, 0.0)
        entropy = (p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1)
        values: Array = np.where(outside, np.inf, entropy)
        return values.reshape(-1, *slopes.shape[2:])

    def quadratic(self, reference: Array, intercepts: Array | None = None) -> QuadraticCost:
        scores = self._scores(reference[None])
        if intercepts is None:
            intercepts = self._best_intercepts(scores)[0]
        value, slope, curvature = self.terms(scores + intercepts[:, None])
        weighted = self.shares * curvature[0]  # (width, width, rows)
        # Half of the Hessian, (width, features, width, features), as in `LossCost`
        Q = ((weighted[:, :, None] * self.X.T) @ self.X).transpose(0, 2, 1, 3)
        if self.intercept:
            crossed = weighted @ self.X
            gained = np.tensordot(inverses(weighted.sum(axis=-1)), crossed, axes=1)
            Q = Q - np.tensordot(crossed, gained, axes=(0, 0))
        size = self.n_coefficients
        Q = Q.transpose(1, 0, 3, 2).reshape(size, size) / 2
        Q = (Q + Q.T) / 2 + self.l2_penalty * np.eye(size)
        half_gradient = (self.X.T @ (self.shares * slope[0]).T).ravel() / 2
        g = Q @ reference - half_gradient - self.l2_penalty * (reference + self.centre)
        ridge = self.l2_penalty * ((reference + self.centre) ** 2).sum() + self.constant
        constant = value[0] @ self.shares + ridge + 2 * g @ reference - reference @ Q @ reference
        return QuadraticCost(Q, g, float(constant))

    def _by_rows(self, numbers: Array) -> tuple[Array, Array]:
        """Numbers in the basis, shape (models, width, ..., rows), by class, and the shares of the
        classes in y, each of shape (models, K, ... times rows) or (K, ...).
        """
        flat = numbers.reshape(*numbers.shape[:2], -1)
        return self.basis @ flat, np.tile((1 + self.y.T) / 2, flat.shape[2] // len(self.y))

    def _likelihoods(self, scores: Array) -> tuple[Array, Array, Array]:
        """The losses, and the probabilities and shares of the classes, as of `_by_rows`."""
        f, shares = self._by_rows(scores)
        f -= f.max(axis=1, keepdims=True)
        p = np.exp(f)
        total = p.sum(axis=1, keepdims=True)
        return np.log(total[:, 0]) - (shares * f).sum(axis=1), p / total, shares

    def _scores(self, models: Array) -> Array:
        """Shape (models, width, rows)."""
        rows = models.reshape(len(models), -1, self.width).transpose(0, 2, 1)
        return rows @ self.X.T + self.offset

    def _losses(self, scores: Array) -> Array:
        return self._likelihoods(scores)[0]

    def _best_intercepts(self, scores: Array) -> Array:
        """By damped Newton steps, shape (models, width)."""
        best = np.zeros(scores.shape[:2])
        if not self.intercept:
            return best
        best = best_constant(self.loss, self.y, self.shares) @ self.basis - scores @ self.shares
        for _ in range(INTERCEPT_ITERATIONS):
            _, slopes, curvatures = self.terms(scores + best[..., None])
            slope = slopes @ self.shares
            newton = inverses(curvatures @ self.shares, 1e-300) @ slope[..., None]
            # A step that changes scores by at most r is damped to log(1 + r): then the loss falls,
            # as its third derivatives are at most r times the second (Sun and Tran-Dinh 2019).
            reach = np.ptp(self.by_class(newton[..., 0]), axis=1)[:, None]
            step = newton[..., 0] * np.log1p(reach) / np.where(reach > 0, reach, 1.0)
            best = best - step
            if (np.abs(slope) <= ROUNDING).all():
                break
        return best


def softmax_cost(
    X: Array, codes: Sequence, classes: int, shares: Array, l2_penalty: float, intercept: bool
) -> SoftmaxCost:
    """The cost of `classes` classes with these codes, and the ridge of `LossCost` for two."""
    y = np.where(codes[:, None] == np.arange(classes), 1.0, -1.0)
    return SoftmaxCost(softmax, X, y, shares, 2 * l2_penalty, intercept)


def blocks(features: Sequence, width: int) -> Sequence:
    """The positions of the coefficients of features, `width` each."""
    return np.asarray((features[..., None] * width + np.arange(width)).reshape(-1), np.int64)


def inverses(matrices: Array, least: float = 0.0) -> Array:
    """The inverses of positive semidefinite matrices, shape (..., n, n), on their range; or with
    eigenvalues of at least `least`, if that is positive.
    """
    if matrices.shape[-1] == 1:
        eigenvalues, vectors = matrices[..., 0], np.ones((1, 1))
    else:
        eigenvalues, vectors = np.linalg.eigh(matrices)
    positive = eigenvalues > 0
    inverse = np.where(positive, 1 / np.where(positive, eigenvalues, 1.0), 0.0)
    if least:
        inverse = 1 / np.maximum(eigenvalues, least)
    return np.asarray((vectors * inverse[..., None, :]) @ np.swapaxes(vectors, -1, -2))


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
