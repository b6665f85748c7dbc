"""The best weights of one support: Newton's method on its distinct rows, in float64.

A support of K two-valued columns takes few of its 2^K patterns: on Adult, 20 rules split 29304 rows into 1400.
The loss sees no more of the rows than that, so that a refit takes a few milliseconds of NumPy: less
than a kernel over all rows, and nothing is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from jaxrules.bits import distinct, pack
from jaxrules.lire.objective import loss_terms
from jaxrules.losses import Loss

Floats = NDArray[np.float64]

_CONVERGED = 1e-9  # predicted decrease of the loss
_LARGEST_STEP = 3.0


class Groups(NamedTuple):
    """Patterns that agree on a support: one pattern of every group, (groups,), and the group of every pattern."""

    member: NDArray[np.intp]
    group: NDArray[np.intp]


def group_patterns(patterns: NDArray[np.bool_]) -> Groups:
    """Which columns of a 0/1 matrix (columns, patterns) are equal."""
    return Groups(*distinct(pack(patterns.T)))


def regroup(groups: Groups, kept: NDArray[np.bool_] | None, added: NDArray[np.bool_]) -> Groups:
    """The groups after a move, from those before it: much cheaper than from all columns again.

    Args:
        kept: if columns leave, those that stay, on one pattern of every group, shape (columns, groups).
        added: the columns that enter, shape (columns, patterns).
    """
    member, group = groups
    if kept is not None:
        first, merged = group_patterns(kept)
        member, group = member[first], merged[group]
    for column in added:
        halves = 2 * group + column
        used = np.flatnonzero(np.bincount(halves, minlength=2 * len(member)))
        group = np.zeros(2 * len(member), np.intp)
        group[used] = np.arange(len(used))
        group = group[halves]
        member = np.zeros(len(used), np.intp)
        member[group] = np.arange(len(group))
    return Groups(member, group)


def newton(
    loss: Loss,
    columns: Floats,
    target: Floats,
    mass: Floats,
    weights: Floats,
    ridge: Floats,
    least: Floats,
    most: Floats,
    goal: float = np.inf,
) -> tuple[Floats, float]:
    """Minimise loss + sum_j ridge_j b_j^2 / 2 over the weights, projected on least <= b <= most.

    Ends at a predicted decrease of 1e-9, or early when the sum will not fall below `goal`.

    Args:
        columns: shape (patterns, size), C order.
        target, mass: mean target and weight of every pattern, shape (patterns,).
        weights: a first guess, shape (size,).
        ridge: prices, shape (size,).
        least, most: the ends of the weights, shape (size,), not positive and not negative; infinite for none.
    """

    def at(weights: Floats) -> tuple[float, Floats, Floats]:
        value, slope, curvature = loss_terms(loss, target, mass, columns @ weights)
        return value + float(ridge @ weights**2) / 2, slope @ columns - ridge * weights, curvature

    weights = np.minimum(np.maximum(weights, least), most)  # sooner than np.clip
    value, gradient, curvature = at(weights)
    for _ in range(50 + len(weights)):
        step, predicted = _direction(columns, gradient, curvature, ridge, weights, least, most)
        if predicted <= _CONVERGED or value - 2 * predicted >= goal:
            break
        scale = min(1.0, _LARGEST_STEP / np.abs(step).max())
        while True:
            moved = np.minimum(np.maximum(weights + scale * step, least), most)
            new_value, gradient, curvature = at(moved)
            if new_value <= value - 0.1 * scale * predicted or scale < 1e-6:
                break
            scale = min(scale / 4, _to_the_end(weights, step, least, most))  # a clipped step may lead uphill
        if not new_value < value:
            break
        weights, value = moved, new_value
    return weights, value


def _to_the_end(weights: Floats, step: Floats, least: Floats, most: Floats) -> float:
    """The part of the step at which the first weight reaches its end."""
    moving = step != 0
    room = np.where(step > 0, most, least)[moving] - weights[moving]
    return float(np.min(room / step[moving], initial=np.inf))


def _direction(
    columns: Floats, gradient: Floats, curvature: Floats, ridge: Floats, weights: Floats, least: Floats, most: Floats
) -> tuple[Floats, float]:
    """Newton's step among the weights that may move, and the decrease that it predicts.

    Weights at an end that would cross it stay, and the others move as if they were constants.
    """
    hessian = columns.T @ (columns * curvature[:, None])
    hessian.ravel()[:: len(hessian) + 1] += ridge + 1e-10 * curvature.sum() + 1e-300  # equal columns share a weight
    lowest, highest = weights <= least * (1 - 1e-12), weights >= most * (1 - 1e-12)
    if len(weights) and not (lowest | highest).any():
        step = _solved(hessian, gradient)
        return step, float(gradient @ step / 2)
    movable = ~(lowest & (gradient < 0) | highest & (gradient > 0))
    while movable.any():
        on, step = np.flatnonzero(movable), np.zeros(len(weights))
        step[on] = _solved(hessian[on[:, None], on], gradient[on])
        crossing = movable & (lowest & (step < 0) | highest & (step > 0))
        if not crossing.any():
            return step, float(gradient @ step / 2)
        movable &= ~crossing
    return np.zeros(len(weights)), 0.0


def _solved(hessian: Floats, gradient: Floats) -> Floats:
    _, step, failed = dposv(hessian, gradient)  # LAPACK itself: SciPy's checks take as long as so small a system
    return np.asarray(gradient / np.diagonal(hessian) if failed else step)
