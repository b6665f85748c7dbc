"""Compiled coordinate descent on a quadratic function plus soft thresholds; imported on first use,
as it loads numba. Its twin for several classes is `group_descent`.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import boolean, float64, int64
from numpy.typing import NDArray

from jaxrules.tools.compiling import from_python

Floats = NDArray[np.float64]

_READ, _MATRIX = (numba.types.Array(float64, n, "C", readonly=True) for n in (1, 2))
_FLAGS = numba.types.Array(boolean, 1, "C", readonly=True)


@from_python((_MATRIX, _READ, _READ, _FLAGS, _FLAGS, float64[::1], float64[::1], int64))
def sweep(
    hessian: Floats,
    curvature: Floats,
    penalties: Floats,
    negative: NDArray[np.bool_],
    positive: NDArray[np.bool_],
    b: Floats,
    gradient: Floats,
    sweeps: int,
) -> None:
    """Set each coefficient in turn to its best value by soft-thresholding, or to 0 if `negative` or
    `positive`, (k,), forbid its sign; b and the gradient, (k,), change in place.
    """
    for _ in range(sweeps):
        for j in range(len(b)):
            # Minus the slope at b_j = 0, the other coefficients fixed: the minimum over b_j alone
            # is its soft threshold over the curvature.
            alone = curvature[j] * b[j] - gradient[j]
            size = max(abs(alone) - penalties[j], 0.0) / curvature[j]
            if not (positive[j] if alone > 0 else negative[j]):
                size = 0.0
            change = (size if alone > 0 else -size) - b[j]
            if change != 0.0:
                b[j] += change
                # The Hessian is symmetric; its rows are contiguous.
                for i in range(len(b)):
                    gradient[i] += hessian[j, i] * change
