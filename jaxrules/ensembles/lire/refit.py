"""The best weights of one support, on its distinct rows, in float64: by Newton's method, and by
L-BFGS for several classes fitted together.

On a support of K two-valued columns, few of the 2^K patterns occur: on Adult, 20 rules split 29304
rows into 1400 patterns. The loss depends on the rows only through these, so a refit takes a few
milliseconds in NumPy: less than a kernel over all rows, and nothing is compiled.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.losses import uncoupled
from jaxrules.solvers.linear.refit import softmax_terms
from jaxrules.tools.bits import distinct, pack

Floats = NDArray[np.float64]

CONVERGED = 1e-9
"""Refits end when Newton's model promises no larger decrease of the loss."""
_LEAST_CURVATURE = 1e-3  # of saturated rows, in the coordinates of L-BFGS
_OPTIMISM = 4.0  # L-BFGS ends early if not even this multiple of the promise reaches its goal
_STEPS = {"maxiter": 500, "maxcor": 20, "ftol": 1e-16, "gtol": 0.0}


class Groups(NamedTuple):
    """Patterns that agree on a support: one pattern of every group, (groups,), and the group of
    every pattern.
    """

    member: NDArray[np.intp]
    group: NDArray[np.intp]


def group_patterns(patterns: NDArray[np.bool_]) -> Groups:
    """Groups of patterns that agree on all rows of a 0/1 matrix (columns, patterns)."""
    return Groups(*distinct(pack(patterns.T)))


def regroup(groups: Groups, kept: NDArray[np.bool_] | None, added: NDArray[np.bool_]) -> Groups:
    """The groups after a move, from those before it, which is much cheaper than starting from all
    columns.

    Args:
        kept: if columns leave, the columns that stay, on one pattern of every group, shape
            (columns, groups); else None.
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


def lbfgs(
    columns: Floats, target: Floats, mass: Floats, weights: Floats, ridge: Floats, goal: float
) -> tuple[Floats, float]:
    """Minimise the softmax loss of K classes plus sum_j ridge_j |b_j|^2 / 2 over the weights.

    It ends at a promised decrease of `CONVERGED`, or earlier if the sum cannot be expected to fall
    below `goal`.

    It works in coordinates in which the Hessian of every class, with the curvatures of
    `jaxrules.losses.uncoupled`, is the identity at the first guess.

    Args:
        columns: shape (patterns, size).
        target: mean targets in the coding -1 and 1, shape (patterns, K).
        mass: the weight of every pattern, shape (patterns,).
        weights: a first guess, shape (size, K).
        ridge: shape (size,).
    """
    from scipy.optimize import minimize

    shares = (1.0 + target) / 2.0
    _, _, p = softmax_terms(columns, shares, mass, ridge, weights)
    h = (mass * (uncoupled(p.T, p.shape[1]) + _LEAST_CURVATURE))[:, None]
    hessians = (columns.T[None] * h) @ columns + np.diag(ridge)
    hessians += 1e-9 * hessians.diagonal(axis1=1, axis2=2).max() * np.eye(len(ridge))
    back = np.linalg.inv(np.linalg.cholesky(hessians)).transpose(0, 2, 1)  # (K, size, size)
    best = weights, np.inf

    def objective(flat: Floats) -> tuple[float, Floats]:
        nonlocal best
        at = (back @ flat.reshape(len(back), -1, 1))[..., 0].T
        value, gradient, _ = softmax_terms(columns, shares, mass, ridge, at)
        slopes = (gradient.T[:, None] @ back).ravel()
        if value < best[1]:
            best = at, value
        promised = float(slopes @ slopes) / 2.0
        if promised <= CONVERGED / 10 or value - _OPTIMISM * promised > goal:
            raise _Ended
        return value, slopes

    begin = np.linalg.solve(back, weights.T[..., None]).ravel()
    with contextlib.suppress(_Ended):
        minimize(objective, begin, jac=True, method="L-BFGS-B", options=_STEPS)
    found, value = best
    centre = found.mean(axis=1)  # changes no probability
    return found - centre[:, None], value - len(p.T) / 2.0 * float(ridge @ centre**2)


class _Ended(Exception):
    """Ends L-BFGS between its own checks."""
