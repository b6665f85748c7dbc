"""The mean logistic loss as a cost of linear models, and its quadratic models.

c(b) = min_u sum_i w_i log(1 + exp(-y_i (u + x_i'b))) / sum_i w_i + l2_penalty |b|^2, y_i in {-1, 1}: the
intercept u is not a step, so that every model has its best one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxrules.losses import logistic
from jaxrules.paths.costs import Array, Quadratic, Sequence, path_along

INTERCEPT_ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class LogisticCost:
    """c(b), its intercepts, and its second-order models.

    Attributes:
        X: shape (rows, features).
        y: -1 or 1, shape (rows,).
        shares: weights of the rows that sum to one.
        l2_penalty: the ridge penalty on b.
        intercept: whether u is free; 0 otherwise.
    """

    X: Array
    y: Array
    shares: Array
    l2_penalty: float
    intercept: bool

    def __call__(self, models: Array) -> Array:
        """The costs of models, shape (..., features) -> (...)."""
        flat = models.reshape(-1, models.shape[-1])
        scores = flat @ self.X.T + self.intercepts(flat)[:, None]
        losses = logistic.value(self.y, scores) @ self.shares
        return (losses + self.l2_penalty * (flat**2).sum(axis=1)).reshape(models.shape[:-1])

    def intercepts(self, models: Array) -> Array:
        """The best intercept of every model, by safeguarded Newton steps, shape (models,)."""
        best = np.zeros(len(models))
        if not self.intercept:
            return best
        scores = models @ self.X.T
        positive = float(self.shares @ (self.y > 0))
        middle = np.log(positive / (1 - positive))
        low, high = middle - scores.max(axis=1), middle - scores.min(axis=1)  # the root lies between
        best = np.clip(middle - scores @ self.shares, low, high)
        for _ in range(INTERCEPT_ITERATIONS):
            slope = logistic.gradient(self.y, scores + best[:, None]) @ self.shares
            low, high = np.where(slope < 0, best, low), np.where(slope > 0, best, high)
            curvature = logistic.curvature(self.y, scores + best[:, None]) @ self.shares
            newton = best - slope / np.maximum(curvature, 1e-300)
            settled = np.abs(newton - best) <= 1e-14 * (1 + np.abs(best))
            if settled.all():
                return best
            inside = (newton > low) & (newton < high)
            best = np.where(settled, best, np.where(inside, newton, (low + high) / 2))
        return best

    def quadratic(self, reference: Array) -> Quadratic:
        """The second-order model around a reference, with the intercept minimised out."""
        scores = self.X @ reference + self.intercepts(reference[None])[0]
        curvatures = self.shares * logistic.curvature(self.y, scores)
        X = self.X
        if self.intercept and curvatures.sum() > 0:
            X = X - (curvatures @ X) / curvatures.sum()
        ridge = self.l2_penalty * np.eye(X.shape[1])
        Q = X.T @ (X * curvatures[:, None]) / 2 + ridge
        half_gradient = self.X.T @ (self.shares * logistic.gradient(self.y, scores)) / 2 + self.l2_penalty * reference
        g = Q @ reference - half_gradient
        constant = float(self(reference[None])[0]) + 2 * g @ reference - reference @ Q @ reference
        return Quadratic((Q + Q.T) / 2, g, float(constant))

    def system(self, step_weights: Array, models: Array, start: Array) -> tuple[Array, Array, float]:
        """The sums over later steps of the quadratic models around each step's model, of the change from `start`.

        Returns:
            P, shape (steps, features, features), G, shape (steps, features), and the constant, as
            `local.improve_weighted` takes them.
        """
        around = [self.quadratic(model).around(start) for model in models]
        P = np.stack([a * q.curvature for a, q in zip(step_weights, around, strict=True)])
        G = np.stack([a * q.linear for a, q in zip(step_weights, around, strict=True)])
        constant = sum(a * q.constant for a, q in zip(step_weights, around, strict=True))
        return P[::-1].cumsum(axis=0)[::-1], G[::-1].cumsum(axis=0)[::-1], float(constant)

    def best_path(
        self, step_weights: Array, sequence: Sequence, start: Array, models: Array | None = None, iterations: int = 50
    ) -> Array:
        """The least-cost path along a sequence: b_1, ..., b_K, by damped Newton steps on the step sizes.

        Args:
            step_weights: alpha, shape (steps,).
            sequence: the features, shape (steps,).
            start: b_0.
            models: where to begin, a path along the same sequence; default: stay at the start.
            iterations: at most so many Newton steps.
        """
        order = np.arange(len(sequence))
        later = np.maximum.outer(order, order)
        models = np.repeat(start[None], len(sequence), axis=0) if models is None else models
        objective = float(step_weights @ self(models))
        for _ in range(iterations):
            P, G, _ = self.system(step_weights, models, start)
            H = P[later, sequence[:, None], sequence]
            changes = Quadratic(H, G[order, sequence], 0.0).minimiser()
            target = start + path_along(sequence, changes, len(start))
            size = 1.0
            while size > 1e-10:
                candidate = models + size * (target - models)
                value = float(step_weights @ self(candidate))
                if value < objective:
                    break
                size /= 2
            else:
                return models
            improved = objective - value
            models, objective = candidate, value
            if improved <= 1e-12 * abs(objective):
                return models
        return models
