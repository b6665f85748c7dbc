"""Baselines for optimal paths (Fig. 3b, 4): forward stagewise, direct, and the LASSO's sequence.

>>> import numpy as np
>>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float), np.array([0, 1, 3, 4.0] * 5)
>>> greedy(X, y, steps=2).features.tolist()
[0, 1]
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import MissingRule, TableLike
from jaxrules.paths.costs import Array, QuadraticCost, Sequence
from jaxrules.paths.data import (
    MOST_STEPS,
    Coefficients,
    ModelOptions,
    ModelSpace,
    check_step_weights,
)
from jaxrules.paths.model import CoordinatePath, ModelSequence
from jaxrules.paths.problem import Changes, PathProblem, greedy_path, path_along
from jaxrules.tools import checks

MAX_ORDERED = 18
"""The most columns whose best order is found over all subsets; beyond, the order is greedy."""


@checks.known_arguments
def greedy(
    X: TableLike,
    y: ArrayLike,
    *,
    steps: int = 10,
    step_weights: float | ArrayLike = 1.0,
    start: Coefficients = None,
    l2_penalty: float = 0.0,
    intercept: bool = True,
    standardise: bool = False,
    forbidden: Iterable[str | int] = (),
    sample_weight: ArrayLike | None = None,
    missing: MissingRule | None = None,
) -> CoordinatePath:
    """Forward stagewise: every step lowers the mean squared error as much as one coefficient can,
    Eq. (3).

    The arguments are those of `fit`; the step weights only define the path's loss.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    steps = checks.integer("steps", steps, at_least=1, at_most=MOST_STEPS)
    weights = check_step_weights(step_weights, steps)
    options = ModelOptions(
        start=start, forbidden=forbidden, l2_penalty=l2_penalty, intercept=intercept,
        standardise=standardise, missing=missing,
    )  # fmt: skip
    space = ModelSpace.of(X, y, sample_weight, options)
    return space.path(greedy_path(space.problem(weights)), weights)


@checks.known_arguments
def direct(
    X: TableLike,
    y: ArrayLike,
    *,
    step_weights: float | ArrayLike = 1.0,
    start: Coefficients = None,
    end: Coefficients = None,
    l2_penalty: float = 0.0,
    intercept: bool = True,
    standardise: bool = False,
    forbidden: Iterable[str | int] = (),
    sample_weight: ArrayLike | None = None,
    missing: MissingRule | None = None,
) -> CoordinatePath:
    """Set the final coefficients one by one, in the best order (the "direct" path of Fig. 3b).

    For up to 18 coefficients the order is optimal, by dynamic programming over subsets; beyond,
    every step takes the coefficient that helps most at once.

    Args:
        X, y, sample_weight, missing, start, forbidden, l2_penalty, intercept, standardise: as in
            `fit`.
        step_weights: as in `fit`; there are as many steps as coefficients to set.
        end: the final model; None for the least-squares model.

    Raises:
        TypeError, ValueError: as `fit`; if the end is the start.
    """
    options = ModelOptions(
        start=start, forbidden=forbidden, l2_penalty=l2_penalty, intercept=intercept,
        standardise=standardise, missing=missing,
    )  # fmt: skip
    space = ModelSpace.of(X, y, sample_weight, options)
    cost = space.squared
    change = cost.minimiser() if end is None else space.end_change(end)
    moved = np.flatnonzero(change)
    if not len(moved):
        which = "the optimum for X, y and sample_weight" if end is None else "end"
        raise ValueError(f"{which} equals start, so there is no coefficient to set")
    weights = check_step_weights(step_weights, len(moved))
    features = moved[_best_order(cost.restricted(moved), change[moved], weights)]
    models = path_along(features, change[features], len(change))
    return space.path(Changes(features, models), weights)


@checks.known_arguments
def lasso_sequence(
    X: TableLike,
    y: ArrayLike,
    *,
    steps: int = 10,
    refit: bool = True,
    intercept: bool = True,
    standardise: bool = False,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule | None = None,
) -> ModelSequence:
    """Linear models with 1, 2, ... features, in the order in which they enter the LASSO's path
    (Fig. 4b).

    Args:
        X, y, intercept, standardise, sample_weight, missing: as in `fit`. The LASSO depends on the
            units of the columns; standardise them unless they share a unit.
        steps: the most features.
        refit: True for the least-squares model on the features, False for the LASSO's own
            coefficients just before the next feature enters.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    from sklearn.linear_model import lars_path_gram

    refit = checks.flag("refit", refit)
    steps = checks.integer("steps", steps, at_least=1, at_most=MOST_STEPS)
    options = ModelOptions(intercept=intercept, standardise=standardise, missing=missing)
    space = ModelSpace.of(X, y, sample_weight, options)
    cost = space.squared
    usable = np.flatnonzero(np.diag(cost.curvature) > 0)
    reduced = cost.restricted(usable)
    _, _, coefficients = lars_path_gram(
        reduced.linear.copy(), reduced.curvature.copy(), n_samples=1, method="lasso"
    )
    sizes = (coefficients != 0).sum(axis=0)
    models = [np.zeros(space.n_columns)]
    for size in range(1, min(steps, int(sizes.max())) + 1):
        # The path is linear between knots: at the last of this size, the next feature is to enter.
        knots = np.flatnonzero(sizes == size)
        if not len(knots):  # two features entered at once
            continue
        model = np.zeros(space.n_columns)
        support = usable[np.flatnonzero(coefficients[:, knots[0]])]
        if refit:
            model[support] = cost.restricted(support).minimiser()
        else:
            model[usable] = coefficients[:, knots[-1]]
        models.append(model)
    return space.sequence(np.array(models))


def _best_order(cost: QuadraticCost, change: Array, step_weights: Array) -> Sequence:
    """The order of the changes with the least weighted sum of costs."""
    d = len(change)
    if d > MAX_ORDERED:
        return greedy_path(PathProblem(cost, step_weights, end=change)).features
    # best[S]: the least weighted cost of the first |S| steps if they set the coefficients in S.
    # Costs depend on which coefficients are set, not on the order: 2^d states for d! orders.
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
