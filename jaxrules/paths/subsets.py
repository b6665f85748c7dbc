"""The least cost of any k features, for every k: leaps and bounds. Compiled, imported on first use
(numba).

Furnival and Wilson, "Regressions by Leaps and Bounds" (1974). Features are removed one by one from
the full model, in a fixed order, so that every set occurs once. Removal only raises the cost, so
the search leaves a set if its cost exceeds the best known one of every smaller size that it can
still reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxrules.paths.costs import Array, QuadraticCost
from jaxrules.tools.compiling import from_python

BUDGET = 300_000
"""The most sets examined; then the open ones bound the rest."""


def least_by_size(cost: QuadraticCost, smallest: int, largest: int) -> Array:
    """Lower bounds on the cost of k features, for k = smallest, ..., largest; exact if the search
    ends within its budget.

    Args:
        cost: with a regular curvature.
        smallest, largest: the sizes, below the number of features.
    """
    inverse = np.linalg.inv(cost.curvature)
    best = np.full(len(cost.linear) + 1, np.inf)
    least = float(cost(cost.minimiser()))
    symmetric = (inverse + inverse.T) / 2
    left_open = _search(symmetric, inverse @ cost.linear, least, smallest, largest, best, BUDGET)
    rounding = 1e-10 * abs(float(cost.constant))
    found: Array = np.minimum(best[smallest : largest + 1], left_open) - rounding
    return found


@from_python(error_model="numpy")
def _search(
    inverse: Any, model: Any, least: float, smallest: int, largest: int, best: Any, budget: int
) -> float:
    """Best costs by size into `best`; returns the least cost of the sets left open, infinite if
    none.
    """
    d = len(model)
    inverses, models, costs = np.zeros((d + 1, d, d)), np.zeros((d + 1, d)), np.zeros(d + 1)
    removable = np.zeros((d + 1, d), np.int64)
    count, following = np.zeros(d + 1, np.int64), np.zeros(d + 1, np.int64)
    removed = np.zeros((d + 1, d), np.bool_)
    inverses[0], models[0], costs[0], count[0] = inverse, model, least, d
    cheap = np.zeros(d)
    # Without feature j the least cost rises by b_j^2 / (Q^-1)_jj.
    for level in range(d - smallest):  # backward elimination: the first incumbents
        for j in range(d):
            rise = models[level, j] ** 2 / inverses[level, j, j]
            cheap[j] = np.inf if removed[level, j] else rise
        _remove(inverses, models, costs, removed, level, int(np.argmin(cheap)))
        best[d - level - 1] = costs[level + 1]
    # The most expensive first: its branch is the largest, and ends soon.
    removable[0] = np.argsort(-(model**2) / np.diag(inverse))
    following[0] = d - 1
    level, nodes = 0, 0
    while level >= 0:
        i = following[level]
        if i < 0:
            level -= 1
            continue
        if nodes >= budget:
            opened = np.inf
            for k in range(level + 1):
                # Sets below an open one cost at least as much as it.
                for at in range(following[k] + 1):
                    j = removable[k, at]
                    opened = min(opened, costs[k] + models[k, j] ** 2 / inverses[k, j, j])
            return opened
        nodes += 1
        following[level] -= 1
        j = removable[level, i]
        # Below this set, only the `rest` features after i may go: every set occurs once.
        size, rest = d - level - 1, count[level] - i - 1
        value = costs[level] + models[level, j] ** 2 / inverses[level, j, j]
        best[size] = min(best[size], value)
        # Subsets cost more: only sizes whose best is above this cost can still improve.
        hopeful = False
        for k in range(max(size - rest, smallest), min(size - 1, largest) + 1):
            hopeful = hopeful or value < best[k]
        if not hopeful:
            continue
        _remove(inverses, models, costs, removed, level, j)
        level += 1
        count[level], following[level] = rest, rest - 1
        removable[level, :rest] = removable[level - 1, i + 1 : i + 1 + rest]
    return np.inf


@from_python(error_model="numpy")
def _remove(inverses: Any, models: Any, costs: Any, removed: Any, level: int, j: int) -> None:
    """Least squares without feature j, into the next level."""
    d = models.shape[1]
    before, after = inverses[level], inverses[level + 1]
    scale = 1.0 / before[j, j]
    step = models[level, j] * scale
    costs[level + 1] = costs[level] + models[level, j] * step
    # The inverse of Q without row and column j: (Q^-1)_ab - (Q^-1)_aj (Q^-1)_jb / (Q^-1)_jj
    for a in range(d):
        factor = before[a, j] * scale
        models[level + 1, a] = models[level, a] - before[a, j] * step
        for b in range(d):
            after[a, b] = before[a, b] - factor * before[j, b]
    removed[level + 1] = removed[level]
    removed[level + 1, j] = True
