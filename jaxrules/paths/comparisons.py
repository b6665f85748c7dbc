"""What optimal paths are compared with (Fig. 3b, 4): forward stagewise, direct, and the LASSO's sequence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.paths.costs import Array, Quadratic, Sequence, greedy_path
from jaxrules.paths.logistic import LogisticCost
from jaxrules.paths.model import CoordinatePath, ModelSequence
from jaxrules.paths.problem import Problem, check_step_weights, check_steps
from jaxrules.table import MissingRule

MAX_ORDERED = 18
"""Columns whose best order is found over all subsets; beyond, the order is greedy."""


def greedy(
    X: Any,
    y: ArrayLike,
    steps: int = 10,
    *,
    step_weights: float | ArrayLike = 1.0,
    start: Any = None,
    l2_penalty: float = 0.0,
    intercept: bool = True,
    standardise: bool = False,
    forbidden: Iterable[Any] = (),
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
) -> CoordinatePath:
    """Forward stagewise: every step lowers the mean squared error as much as one coefficient can, Eq. (3).

    The arguments are those of `fit`; the step weights only price the path.
    """
    steps = check_steps(steps)
    problem, cost, first, columns = _read(
        X, y, start, l2_penalty, intercept, standardise, forbidden, sample_weight, missing
    )
    sequence, changes = greedy_path(cost.around(first).restricted(columns), steps)
    models = np.repeat(first[None], steps + 1, axis=0)
    models[1:, columns] += changes
    return problem.path(columns[sequence], models, check_step_weights(step_weights, steps))


def direct(
    X: Any,
    y: ArrayLike,
    *,
    step_weights: float | ArrayLike = 1.0,
    start: Any = None,
    end: Any = None,
    l2_penalty: float = 0.0,
    intercept: bool = True,
    standardise: bool = False,
    forbidden: Iterable[Any] = (),
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
) -> CoordinatePath:
    """Set the final coefficients one by one, in the best order (the "direct" path of Fig. 3b).

    The order is the best of all by a dynamic programme over subsets, for up to 18 coefficients; beyond, every
    step takes the coefficient that helps most at once.

    Args:
        X, y, step_weights, start, l2_penalty, intercept, standardise, forbidden, sample_weight, missing: as in
            `fit`; there are as many steps as coefficients to set.
        end: the final model; default: the least-squares model.
    """
    problem, cost, first, columns = _read(
        X, y, start, l2_penalty, intercept, standardise, forbidden, sample_weight, missing
    )
    if end is None:
        change = np.zeros(problem.n_columns)
        change[columns] = cost.around(first).restricted(columns).minimiser()
    else:
        change = problem.coefficients(end, "end") - first
        if np.setdiff1d(np.flatnonzero(change), columns).size:
            raise ValueError("end differs from start in forbidden columns")
    moved = np.flatnonzero(change)
    if not len(moved):
        raise ValueError("end equals start: there is no coefficient to set")
    weights = check_step_weights(step_weights, len(moved))
    order = _best_order(cost.around(first).restricted(moved), change[moved], weights)
    models = np.repeat(first[None], len(moved) + 1, axis=0)
    for k, j in enumerate(moved[order], 1):
        models[k:, j] += change[j]
    return problem.path(moved[order], models, weights)


def lasso_sequence(
    X: Any,
    y: ArrayLike,
    steps: int = 10,
    *,
    refit: bool = True,
    intercept: bool = True,
    standardise: bool = False,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
) -> ModelSequence:
    """Linear models with 1, 2, ... features, in the order in which the LASSO's path takes them up (Fig. 4b).

    Args:
        X, y, intercept, standardise, sample_weight, missing: as in `fit`. The LASSO sees the columns in the units
            of fit; standardise them unless they share a unit.
        steps: at most so many features.
        refit: the least-squares model on the features; else the LASSO's own coefficients just before the next
            feature enters.
    """
    from sklearn.linear_model import lars_path_gram

    steps = check_steps(steps)
    problem, cost, _, _ = _read(X, y, None, 0.0, intercept, standardise, (), sample_weight, missing)
    usable = np.flatnonzero(np.diag(cost.curvature) > 0)
    reduced = cost.restricted(usable)
    _, _, coefficients = lars_path_gram(reduced.linear.copy(), reduced.curvature.copy(), n_samples=1, method="lasso")
    sizes = (coefficients != 0).sum(axis=0)
    models = [np.zeros(problem.n_columns)]
    for size in range(1, min(steps, int(sizes.max())) + 1):
        knots = np.flatnonzero(sizes == size)
        if not len(knots):  # two features entered at once
            continue
        model = np.zeros(problem.n_columns)
        support = usable[np.flatnonzero(coefficients[:, knots[0]])]
        if refit:
            model[support] = cost.restricted(support).minimiser()
        else:
            model[usable] = coefficients[:, knots[-1]]
        models.append(model)
    return problem.sequence(np.array(models))


def _read(
    X: Any,
    y: ArrayLike,
    start: Any,
    l2_penalty: float,
    intercept: bool,
    standardise: bool,
    forbidden: Iterable[Any],
    sample_weight: ArrayLike | None,
    missing: MissingRule,
) -> tuple[Problem, Quadratic, Array, NDArray[np.int64]]:
    problem = Problem.of(
        X, y, l2_penalty=l2_penalty, intercept=intercept, standardise=standardise,
        sample_weight=sample_weight, missing=missing,
    )  # fmt: skip
    assert not isinstance(problem.cost, LogisticCost)
    return problem, problem.cost, problem.coefficients(start, "start"), problem.allowed(forbidden)


def _best_order(cost: Quadratic, change: Array, step_weights: Array) -> Sequence:
    """The order of the changes with the least weighted sum of costs."""
    d = len(change)
    if d > MAX_ORDERED:
        order: list[int] = []
        model = np.zeros(d)
        while len(order) < d:
            candidates = np.where(np.eye(d, dtype=bool), change, model)
            values = cost(candidates)
            values[order] = np.inf
            order.append(int(values.argmin()))
            model = candidates[order[-1]]
        return np.array(order, np.int64)
    subsets = np.arange(2**d)
    members = (subsets[:, None] >> np.arange(d)) & 1
    costs = cost(members * change)
    sizes = members.sum(axis=1)
    best = np.full(2**d, np.inf)
    best[0] = 0.0
    last = np.zeros(2**d, np.int64)
    for size in range(1, d + 1):
        layer = subsets[sizes == size]
        before = np.where(members[layer] == 1, best[layer[:, None] ^ (1 << np.arange(d))], np.inf)
        last[layer] = before.argmin(axis=1)
        best[layer] = before.min(axis=1) + step_weights[size - 1] * costs[layer]
    order = []
    subset = 2**d - 1
    while subset:
        order.append(int(last[subset]))
        subset ^= 1 << order[-1]
    return np.array(order[::-1], np.int64)
