"""Compiled block coordinate descent: the weights of a column for all classes at once; imported on
first use, as it loads numba.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import float64, int64
from numpy.typing import NDArray

from jaxrules.tools.compiling import from_python

Floats = NDArray[np.float64]

_READ, _MATRIX, _CUBE = (numba.types.Array(float64, n, "C", readonly=True) for n in (1, 2, 3))

_NORM_STEPS = 30
_AT_ZERO = (
    1e-12  # above the penalty is rounding: a rule whose complement is in use is at the penalty
)


@from_python((_CUBE, _MATRIX, _READ, float64[:, ::1], float64[:, ::1], int64, float64))
def group_sweeps(
    hessians: Floats,
    curvature: Floats,
    penalties: Floats,
    b: Floats,
    gradient: Floats,
    sweeps: int,
    tolerance: float,
) -> bool:
    """Set the weights of each column in turn, a column of b, to their best values under a penalty
    on their norm; b and the gradient, (classes, k), change in place. Returns whether the changes of
    a sweep, times the curvature, were at most the tolerance, which ends it early.

    Args:
        hessians: of every class, (classes, k, k).
        curvature: their diagonals, kept positive, (classes, k).
    """
    classes, k = b.shape
    change = np.empty(classes)
    for _ in range(sweeps):
        largest = 0.0
        for j in range(k):
            penalty, norm, most = penalties[j], 0.0, 0.0
            # At 0 the column's weights have the slope -change: it stays out if the norm is within
            # the penalty.
            for c in range(classes):
                change[c] = curvature[c, j] * b[c, j] - gradient[c, j]
                norm += change[c] * change[c]
                most = max(most, curvature[c, j])
            norm = np.sqrt(norm)
            size = 0.0
            if norm > (1 + _AT_ZERO) * penalty:
                # This would be the norm if all classes had the largest curvature; the true one is
                # at least that.
                size = (norm - penalty) / most
            if size > 0.0 and penalty > 0.0:
                # The weights of norm s are s change / (s curvature + penalty). Newton's method for
                # s, on the inverse of the norm of change / (s curvature + penalty), from below.
                for _ in range(_NORM_STEPS):
                    squares, slope = 0.0, 0.0
                    for c in range(classes):
                        below = curvature[c, j] * size + penalty
                        square = (change[c] / below) ** 2
                        squares += square
                        slope += square * curvature[c, j] / below
                    step = (np.sqrt(squares) - 1) * squares / slope
                    size += step
                    if step <= 1e-14 * size:
                        break
            for c in range(classes):
                new = 0.0
                if size > 0.0:
                    new = size * change[c] / (curvature[c, j] * size + penalty)
                move = new - b[c, j]
                if move != 0.0:
                    b[c, j] = new
                    largest = max(largest, curvature[c, j] * abs(move))
                    for i in range(k):
                        gradient[c, i] += hessians[c, j, i] * move
        if largest <= tolerance:
            return True
    return False
