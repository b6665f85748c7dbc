"""The problem that the searches solve, and the best path along a given sequence of features.

A path b_0, ..., b_K changes coordinate i_k by delta_k in step k. With T_k the sum of the step
weights alpha_k, ..., alpha_K, the objective sum_k alpha_k c(b_k) of Eq. (7) is, for a given
sequence, the quadratic s T_1 - 2 h'delta + delta'H delta with H_jk = Q[i_j, i_k] T_max(j,k) and h_k
= g[i_k] T_k (`best_path`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from jaxrules.paths.costs import RANK_TOLERANCE, Array, QuadraticCost, Sequence, blocks
from jaxrules.solvers.layered import LayeredCertificate

IntegerSteps = Literal["any", "unit"]


class Changes(NamedTuple):
    """A path, as changes from its start.

    Attributes:
        features: what each step changes, shape (steps,).
        models: b_1 - b_0, ..., b_K - b_0, shape (steps, coefficients).
    """

    features: Sequence
    models: Array


@dataclass(frozen=True, eq=False)
class PathProblem:
    """The least sum_k alpha_k c(b_k) over paths from zero, Eq. (7) and (9), under side conditions.

    Attributes:
        cost: the cost of the change from the starting model.
        step_weights: alpha, at least 0, the last one positive, shape (steps,).
        kind: steps of "any" integer size (S_SLIM), of one point ("unit", S'_SLIM), or None for real
            ones.
        lower, upper: bounds on the change, shape (features,) or one number, infinite for none; they
            contain 0.
        end: the change that the last model must have, shape (features,), reachable in these steps;
            or None.
        width: the number of coefficients of a feature, which a step changes together; more than one
            only without side conditions.
    """

    cost: QuadraticCost
    step_weights: Array
    kind: IntegerSteps | None = None
    lower: Array | float = -np.inf
    upper: Array | float = np.inf
    end: Array | None = None
    width: int = 1

    @property
    def steps(self) -> int:
        return len(self.step_weights)

    @property
    def n_features(self) -> int:
        return len(self.cost.linear) // self.width

    @property
    def fewest_steps(self) -> int:
        """The fewest steps in which the end can be reached; 0 without one."""
        return 0 if self.end is None else int(steps_between(0.0, self.end, self.kind))

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """The lower and upper bounds, shape (features,) each."""
        low, high = (
            np.broadcast_to(np.asarray(b, np.float64), self.n_features)
            for b in (self.lower, self.upper)
        )
        return low, high

    @cached_property
    def bounded(self) -> bool:
        """Whether any bound is finite."""
        return bool(np.isfinite(self.bounds).any())

    def objective(self, path: Changes) -> float:
        """sum_k alpha_k c(b_k), Eq. (7), computed from the models themselves."""
        return float(self.step_weights @ self.cost(path.models))

    def along(self, sequence: Sequence) -> Changes:
        """The least-cost path along a sequence of features, without side conditions."""
        if not len(sequence):
            return Changes(sequence, np.zeros((0, len(self.cost.linear))))
        return Changes(sequence, best_path(self.cost, self.step_weights, sequence, self.width))

    def certificate(self) -> LayeredCertificate[Changes]:
        """The certificate before any search: the greedy path, and the least cost of any model in
        every step.

        Objectives count as equal within a relative 1e-9, and within the rounding of the objective
        of not moving.
        """
        first = greedy_path(self)
        if self.kind is None and self.end is None and not self.bounded:
            first = self.along(first.features)
        total = float(self.step_weights.sum())
        least = float(self.cost(self.cost.minimiser())) * total
        rounding = 1e-13 * abs(float(self.cost.constant)) * total
        return LayeredCertificate(first, self.objective, least, absolute=rounding)


def geometric_weights(gamma: float, steps: int) -> Array:
    """alpha_k = gamma^k for k = 1, ..., steps (Section 3.2), shape (steps,); infinite beyond the
    largest float.
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.power(float(gamma), np.arange(1, steps + 1))


def tail_sums(weighted: Array) -> Array:
    """The sum of the entries from k on, for every k, along the first axis: T_k of alpha."""
    return np.cumsum(weighted[::-1], axis=0)[::-1]


def weighted_sums(cost: QuadraticCost, step_weights: Array) -> tuple[Array, Array, float]:
    """P_k = sum_{m >= k} alpha_m Q_m, G_k = sum_{m >= k} alpha_m g_m, and sum_m alpha_m s_m.

    Args:
        cost: one for all steps, or stacked, one per step.
        step_weights: alpha, shape (steps,).

    Returns:
        P, shape (steps, features, features), G, shape (steps, features), and the constant.
    """
    P = tail_sums(step_weights[:, None, None] * cost.curvature)
    G = tail_sums(step_weights[:, None] * cost.linear)
    return P, G, float((step_weights * cost.constant).sum())


def path_along(sequence: Sequence, changes: Array, n_features: int) -> Array:
    """The models after each step, shape (steps, features), that start at zero."""
    steps = np.zeros((len(sequence), n_features))
    steps[np.arange(len(sequence)), sequence] = changes
    return np.cumsum(steps, axis=0)


def best_path(
    cost: QuadraticCost, step_weights: Array, sequence: Sequence, width: int = 1
) -> Array:
    """The least-cost path from zero along a sequence of features, each of which has `width`
    coefficients: b_1, ..., b_K, shape (steps, coefficients).

    The closed form of Eq. (10)'s inner problem, for one cost or one per step. If H is singular
    (repeated columns, steps of weight zero), the solution of least norm is taken.
    """
    if width > 1:
        # A step of several coefficients is as many steps, of which only the last has a weight.
        weights = np.zeros((len(sequence), width))
        weights[:, -1] = step_weights
        if cost.curvature.ndim > 2:
            curvature, linear = (
                np.repeat(part, width, axis=0) for part in (cost.curvature, cost.linear)
            )
            cost = QuadraticCost(curvature, linear, 0.0)
        models = best_path(cost, weights.ravel(), blocks(sequence, width))
        return models[width - 1 :: width]
    P, G, _ = weighted_sums(cost.restricted(sequence), step_weights)
    order = np.arange(len(sequence))
    # Changes j and k are both part of the models from step max(j, k) on.
    H = P[np.maximum.outer(order, order), order[:, None], order]
    changes = QuadraticCost(H, G[order, order], 0.0).minimiser()
    return path_along(sequence, changes, cost.linear.shape[-1])


def constrained_path(problem: PathProblem, sequence: Sequence) -> Array:
    """`best_path` within bounds on every coefficient, and with a given last model (real steps).

    The unknowns are the new coefficients x_k after each step: bounds are bounds on x_k, and the end
    fixes the last x_k of each feature. This is a bounded least-squares problem in the square root
    of Q.

    Args:
        problem: its kind of steps is ignored.
        sequence: the features, shape (steps,), with all those in which the end differs from 0.
    """
    from scipy.optimize import lsq_linear

    steps, d = len(sequence), problem.n_features
    root = problem.cost.square_root()
    # active[k, i, j]: is coefficient i of model k the one set in step j?
    active = np.zeros((steps, d, steps))
    latest = np.full(d, -1)
    for k, feature in enumerate(sequence):
        latest[feature] = k
        set_features = np.flatnonzero(latest >= 0)
        active[k, set_features, latest[set_features]] = 1.0
    weight = np.sqrt(problem.step_weights)
    # With b_k = active_k x, the objective is sum_k alpha_k |R (b_k - bhat)|^2 and a constant.
    design = ((root @ active) * weight[:, None, None]).reshape(-1, steps)
    target = (weight[:, None] * (root @ problem.cost.minimiser())).ravel()
    low, high = (bound[sequence] for bound in problem.bounds)
    values = np.where(low == high, low, 0.0)
    free = low < high
    if problem.end is not None:
        final = latest[latest >= 0]
        values[final] = problem.end[sequence[final]]
        free[final] = False
    if free.any():
        residual = target - design @ values
        if np.isfinite(low[free]).any() or np.isfinite(high[free]).any():
            values[free] = lsq_linear(design[:, free], residual, (low[free], high[free]), "bvls").x
        else:
            values[free] = np.linalg.lstsq(design[:, free], residual, rcond=RANK_TOLERANCE)[0]
    return active @ values


def greedy_path(problem: PathProblem) -> Changes:
    """Forward stagewise fitting: every step takes the coefficient change that lowers the cost most,
    Eq. (3).

    If the end is given, the last steps lead there.
    """
    cost, kind, end, d = problem.cost, problem.kind, problem.end, problem.n_features
    low, high = problem.bounds
    if kind is not None:
        low, high = np.ceil(low), np.floor(high)
    curvature = np.diag(cost.curvature)
    safe = np.where(curvature > 0, curvature, 1.0)
    model = np.zeros(len(cost.linear))
    sequence = np.zeros(problem.steps, np.int64)
    models = np.zeros((problem.steps, len(model)))
    for k in range(problem.steps):
        later = problem.steps - 1 - k
        # Along one coefficient, the cost is least at b_i - (Qb - g)_i / Q_ii.
        best = model - np.where(curvature > 0, cost.gradient(model) / safe, 0.0)
        if kind == "any":
            best = np.round(best)
        elif kind == "unit":
            best = model + np.clip(np.round(best - model), -1, 1)
        if problem.width == 1:
            best = np.clip(best, low, high)
        if end is not None and steps_between(model, end, kind) > later:  # no step to spare
            best = end if kind != "unit" else model + np.sign(end - model)
        candidates = (
            np.where(np.eye(d, dtype=bool), best, model)
            if problem.width == 1
            else _with_one_block(cost, model, problem.width)
        )
        values = cost(candidates)
        if end is not None:
            values[steps_between(candidates, end, kind) > later] = np.inf
        sequence[k] = values.argmin()
        if np.isfinite(values.min()):
            model = candidates[sequence[k]]
        models[k] = model
    return Changes(sequence, models)


def _with_one_block(cost: QuadraticCost, model: Array, width: int) -> Array:
    """The model with the coefficients of one feature at their best, shape
    (features, coefficients).
    """
    d = len(model) // width
    every = np.arange(d)
    own = cost.curvature.reshape(d, width, d, width)[every, :, every]
    gradient = cost.gradient(model).reshape(d, width)
    candidates = np.repeat(model[None], d, axis=0)
    steps = np.linalg.pinv(own, RANK_TOLERANCE, hermitian=True) @ gradient[..., None]
    candidates.reshape(d, d, width)[every, every] -= steps[..., 0]
    return candidates


def steps_between(models: Array | float, end: Array, kind: IntegerSteps | None) -> Sequence:
    """The number of steps from models, shape (..., features), to the end, in steps of this kind."""
    away = np.abs(models - end)
    steps: Sequence = (
        np.round(away.sum(axis=-1)).astype(np.int64) if kind == "unit" else (away > 0).sum(axis=-1)
    )
    return steps
