"""Costs of linear models, and the best path along a given sequence of coordinates.

Every cost here is a quadratic function of the coefficients, c(b) = s - 2 g'b + b'Qb: the mean squared
error (Section 2 of the paper), the same plus a ridge penalty, or the second-order model of the mean
logistic loss around a reference. Only Q, g and s enter the searches, never the rows of the data.

A path b_0, ..., b_K changes coordinate i_k by delta_k in step k. With T_k the sum of the step weights
alpha_k, ..., alpha_K, the objective sum_k alpha_k c(b_k) of Eq. (7) is, for a given sequence, the quadratic
s T_1 - 2 h'delta + delta'H delta with H_jk = Q[i_j, i_k] T_max(j,k) and h_k = g[i_k] T_k (`path_system`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Sequence = NDArray[np.int64]

RANK_TOLERANCE = 1e-12
"""A pivot below this fraction of its diagonal counts as zero: the column repeats earlier ones."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """c(b) = constant - 2 linear'b + b' curvature b.

    Attributes:
        curvature: Q, symmetric positive semidefinite, shape (features, features).
        linear: g, shape (features,), in the range of Q.
        constant: s.
    """

    curvature: Array
    linear: Array
    constant: float

    def __call__(self, models: Array) -> Array:
        """The costs of models, shape (..., features) -> (...)."""
        return self.constant + ((models @ self.curvature - 2 * self.linear) * models).sum(axis=-1)

    def gradient(self, model: Array) -> Array:
        """Half the gradient, Q b - g, shape (features,)."""
        return self.curvature @ model - self.linear

    def around(self, start: Array) -> Quadratic:
        """The cost as a function of the change b - start."""
        return Quadratic(self.curvature, -self.gradient(start), float(self(start)))

    def restricted(self, features: Sequence) -> Quadratic:
        """The cost where only these features may differ from zero."""
        return Quadratic(self.curvature[np.ix_(features, features)], self.linear[features], self.constant)

    def minimiser(self) -> Array:
        """A least-cost model; the shortest one where Q is singular."""
        scale = np.sqrt(np.diag(self.curvature))
        scale = np.where(scale > 0, scale, 1.0)
        scaled = self.curvature / np.outer(scale, scale)
        return np.linalg.lstsq(scaled, self.linear / scale, rcond=RANK_TOLERANCE)[0] / scale


def mean_squared_error(X: Array, y: Array, sample_weight: Array, l2_penalty: float = 0.0) -> Quadratic:
    """sum_i w_i (y_i - x_i'b)^2 / sum_i w_i + l2_penalty |b|^2 as a quadratic of b.

    Args:
        X: shape (rows, features), centred by the caller where an intercept is wanted.
        y: shape (rows,).
        sample_weight: shape (rows,), not all zero.
        l2_penalty: the ridge penalty; scikit-learn's `Ridge` calls ``alpha`` this times the sum of weights.
    """
    shares = sample_weight / sample_weight.sum()
    weighted = X * shares[:, None]
    curvature = X.T @ weighted
    curvature = (curvature + curvature.T) / 2 + l2_penalty * np.eye(X.shape[1])
    return Quadratic(curvature, weighted.T @ y, float(shares @ y**2))


def geometric_weights(gamma: float, steps: int) -> Array:
    """alpha_k = gamma^k for k = 1, ..., steps (Section 3.2), shape (steps,); infinite beyond the largest float."""
    with np.errstate(over="ignore", under="ignore"):
        return np.power(float(gamma), np.arange(1, steps + 1))


def tail_sums(step_weights: Array) -> Array:
    """T_k, the sum of alpha_k, ..., alpha_K, shape (steps,)."""
    return np.cumsum(step_weights[::-1])[::-1]


def path_system(cost: Quadratic, step_weights: Array, sequence: Sequence) -> tuple[Array, Array]:
    """H, shape (steps, steps), and h, shape (steps,), of the objective as a function of the step sizes."""
    tails = tail_sums(step_weights)
    order = np.arange(len(sequence))
    curvature = cost.curvature[np.ix_(sequence, sequence)] * tails[np.maximum.outer(order, order)]
    return curvature, cost.linear[sequence] * tails


def path_along(sequence: Sequence, changes: Array, n_features: int) -> Array:
    """The models after each step, shape (steps, features), that start at zero."""
    steps = np.zeros((len(sequence), n_features))
    steps[np.arange(len(sequence)), sequence] = changes
    return np.cumsum(steps, axis=0)


def best_path(cost: Quadratic, step_weights: Array, sequence: Sequence) -> Array:
    """The least-cost path from zero along a sequence of features: b_1, ..., b_K, shape (steps, features).

    The closed form of Eq. (10)'s inner problem. Where H is singular (repeated columns, steps of weight zero)
    the shortest solution is taken.
    """
    curvature, linear = path_system(cost, step_weights, sequence)
    changes = Quadratic(curvature, linear, 0.0).minimiser()
    return path_along(sequence, changes, len(cost.linear))


def constrained_path(
    cost: Quadratic,
    step_weights: Array,
    sequence: Sequence,
    lower: Array | None = None,
    upper: Array | None = None,
    end: Array | None = None,
) -> Array:
    """`best_path` within bounds on every coefficient, and with a given last model.

    The unknowns are the new coefficients x_k after each step, so that bounds are bounds on x_k, and the end
    fixes the last x_k of each feature. A bounded least-squares problem in the square root of Q.

    Args:
        cost: the cost of the change from the starting model.
        step_weights: alpha, shape (steps,).
        sequence: the features, shape (steps,); every feature in which `end` differs from 0 must occur.
        lower, upper: bounds on the change, shape (features,); infinite or None for none.
        end: the change that the last model must have, shape (features,), or None.
    """
    from scipy.optimize import lsq_linear

    steps, d = len(sequence), len(cost.linear)
    root = square_root(cost.curvature)
    active = np.zeros((steps, d, steps))  # active[k, i, j]: is coefficient i of model k the one set in step j?
    latest = np.full(d, -1)
    for k, feature in enumerate(sequence):
        latest[feature] = k
        set_features = np.flatnonzero(latest >= 0)
        active[k, set_features, latest[set_features]] = 1.0
    weight = np.sqrt(step_weights)
    design = ((root @ active) * weight[:, None, None]).reshape(-1, steps)
    target = (weight[:, None] * (root @ cost.minimiser())).ravel()
    low, high = (np.full(steps, sign * np.inf) for sign in (-1, 1))
    if lower is not None and upper is not None:
        low, high = lower[sequence], upper[sequence]
    values = np.zeros(steps)
    free = np.ones(steps, bool)
    if end is not None:
        final = latest[latest >= 0]
        values[final] = end[sequence[final]]
        free[final] = False
    fixed = free & (low == high)
    values[fixed] = low[fixed]
    free &= ~fixed
    if free.any():
        residual = target - design @ values
        if np.isfinite(low[free]).any() or np.isfinite(high[free]).any():
            values[free] = lsq_linear(design[:, free], residual, (low[free], high[free]), "bvls").x
        else:
            values[free] = np.linalg.lstsq(design[:, free], residual, rcond=RANK_TOLERANCE)[0]
    return active @ values


def square_root(curvature: Array) -> Array:
    """R of full row rank with R'R = Q, up to the rank tolerance, shape (rank, features)."""
    eigenvalues, vectors = np.linalg.eigh(curvature)
    kept = eigenvalues > RANK_TOLERANCE * max(eigenvalues[-1], 0.0)
    return np.sqrt(eigenvalues[kept])[:, None] * vectors[:, kept].T


def path_objective(cost: Quadratic, step_weights: Array, models: Array) -> float:
    """sum_k alpha_k c(b_k), Eq. (7), computed from the models themselves."""
    return float(step_weights @ cost(models))


def greedy_path(
    cost: Quadratic,
    steps: int,
    kind: str | None = None,
    lower: Array | None = None,
    upper: Array | None = None,
    end: Array | None = None,
) -> tuple[Sequence, Array]:
    """Forward stagewise fitting: every step takes the coefficient change that lowers the cost most, Eq. (3).

    Args:
        cost: the cost of the change from the starting model.
        steps: how many.
        kind: "any" or "unit" integer steps, None for real ones.
        lower, upper: bounds on the change, shape (features,), or None.
        end: the change that the last model must have, reachable in `steps`; the last steps lead there.

    Returns:
        the features, shape (steps,), and the changes from the start, shape (steps, features).
    """
    d = len(cost.linear)
    curvature = np.diag(cost.curvature)
    model = np.zeros(d)
    sequence = np.zeros(steps, np.int64)
    models = np.zeros((steps, d))
    for k in range(steps):
        best = model - np.where(curvature > 0, cost.gradient(model) / np.where(curvature > 0, curvature, 1.0), 0.0)
        if kind == "any":
            best = np.round(best)
        elif kind == "unit":
            best = model + np.clip(np.round(best - model), -1, 1)
        if lower is not None and upper is not None:
            best = np.clip(best, np.ceil(lower) if kind else lower, np.floor(upper) if kind else upper)
        if end is not None and _steps_between(model, end, kind) >= steps - k:  # no step to lose on the way
            best = end if kind != "unit" else model + np.sign(end - model)
        candidates = np.where(np.eye(d, dtype=bool), best, model)
        values = cost(candidates)
        if end is not None:
            values[_steps_between(candidates, end, kind) > steps - k - 1] = np.inf
        sequence[k] = values.argmin()
        if np.isfinite(values.min()):
            model = candidates[sequence[k]]
        models[k] = model
    return sequence, models


def _steps_between(models: Array, end: Array, kind: str | None) -> NDArray[np.float64]:
    """How many steps lead from models, shape (..., features), to the end."""
    away = np.abs(models - end)
    return np.round(away.sum(axis=-1)) if kind == "unit" else (away > 0).sum(axis=-1).astype(np.float64)
