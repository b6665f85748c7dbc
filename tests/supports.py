"""The best support of a small pool of rules, by brute force: Newton's method on all supports of a
size at once.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from jaxrules.losses import Loss, best_constant, merge_rows

Floats = np.ndarray


def best_losses(
    loss: Loss, R: Floats, y: Floats, w: Floats, ridge: float, supports: Floats
) -> Floats:
    """The least mean loss plus ridge of each support, (supports,), by Newton's method on all of
    them at once.
    """
    size = supports.shape[1]
    A = np.concatenate([np.ones((len(supports), len(y), 1)), R.T[supports].transpose(0, 2, 1)], 2)
    b = np.zeros((len(supports), 1 + size))
    b[:, 0] = best_constant(loss, y, w)
    P = np.diag([0.0] + [ridge] * size)

    def value(b: Floats) -> Floats:
        return (w * loss.value(y, np.einsum("sij,sj->si", A, b))).sum(1) + (b @ P * b).sum(1) / 2

    for _ in range(60):
        _, slope, curvature = loss.terms(y, np.einsum("sij,sj->si", A, b))
        gradient = np.einsum("sij,si->sj", A, w * slope) + b @ P
        hessian = np.einsum("sij,si,sik->sjk", A, w * curvature, A) + P + 1e-12 * np.eye(1 + size)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        now, scale = value(b), np.ones((len(b), 1))
        for _ in range(30):
            worse = value(b - scale * step) > now + 1e-15 * abs(now)
            if not worse.any():
                break
            scale[worse] /= 2
        b = b - scale * step
        if (gradient * step).sum(1).max() < 1e-12:
            break
    return value(b)


def best_support(
    loss: Loss,
    R: Floats,
    y: Floats,
    w: Floats,
    gamma: float,
    ridge: float,
    max_rules: int | None = None,
    keeps: Any = lambda support: True,
) -> tuple[float, tuple[int, ...]]:
    """The least objective over all supports of the columns, and its support."""
    first, group = np.unique(R, axis=0, return_index=True, return_inverse=True)[1:]
    y, w, constant = merge_rows(loss, y, w, group.ravel(), len(first))
    R, n = R[first], R.shape[1]
    least = best_losses(loss, R, y, w, ridge, np.arange(n)[None])[0] - 1e-6  # of any support
    best: tuple[float, tuple[int, ...]] = (np.inf, ())
    for size in range(n + 1):
        if least + gamma * size > best[0] or (max_rules is not None and size > max_rules):
            break
        supports = [one for one in itertools.combinations(range(n), size) if keeps(one)]
        for begin in range(0, len(supports), 4000):
            some = np.array(supports[begin : begin + 4000], int)
            some = some.reshape(len(some), size)
            values = best_losses(loss, R, y, w, ridge, some) + gamma * size
            k = int(values.argmin())
            best = min(best, (float(values[k]), tuple(some[k].tolist())))
    return best[0] + constant, best[1]
