"""The quadratic subproblem of proximal Newton: a quadratic function of the coefficients plus their
L1 penalty.

It involves no rows and is small, so it is solved on the host: compiled coordinate descent finds the
support, and Newton steps on the support (LAPACK) finish. Nothing is compiled per size.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from jaxrules.losses import Array
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.linear.penalties import L1
from jaxrules.tools.float64 import numpy_of

Floats = NDArray[np.float64]

_SWEEPS = 3  # coordinate descent sweeps between two Newton steps on the support
_ROUNDS = 40  # rounds of sweeps and support Newton steps for one problem
_EASY_ROUNDS = 3  # rounds before the interior-point method
_INNER_ITERATIONS = 30  # of the interior-point method
_EPS, _TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
NEWTON_RIDGE = _EPS**0.8  # added to Hessians that are factorised, relative
_INNER_RIDGE = _EPS**0.7  # the same for the interior-point method
_STEP_SIZES = np.array([[1.0], [0.5], [0.2], [0.05], [0.01]])  # tried along a support Newton step
_SIDES = np.array([[1.0], [-1.0]])  # the two rows of parts and duals (2, k): up and down
_TO_THE_BOUND = 0.995  # share of the step to the nearest bound that the interior point takes


def best_along(
    hessian: Array, penalty: L1, b: Array, gradient: Array, step: Array, others: Array
) -> Array:
    """The best of b, some points along its Newton step and others, (n, k); a coefficient whose sign
    would flip stops at zero. For arrays of NumPy and JAX.
    """
    numpy = numpy_of(b)
    trials = b[None] + _STEP_SIZES * step[None]
    trials = numpy.where((trials * b[None] < 0) & (penalty.prices > 0)[None], 0.0, trials)
    trials = numpy.concatenate([penalty.allowed(trials), others])
    d = trials - b[None]
    heights = (numpy.abs(trials) - numpy.abs(b)[None]) @ penalty.prices
    change = d @ gradient + heights + numpy.sum(d * (d @ hessian), axis=1) / 2
    # Prefer the full step, even if by rounding it is worse than another, or than b.
    rounding = 8 * _EPS * (numpy.abs(gradient) + penalty.prices) @ numpy.abs(d[0])
    change = numpy.concatenate([change[:1] - rounding, change[1:]])
    change = numpy.where(numpy.isnan(change), np.inf, change)
    best = numpy.argmin(change)
    return numpy.where(change[best] <= 0, trials[best], b)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The function linear'd + d' hessian d / 2 of b, with d = b - anchor, plus a penalty.

    Attributes:
        hessian: (k, k), positive semidefinite.
        linear: (k,), the gradient of the smooth part at the anchor.
        anchor: (k,); it must satisfy the signs of the penalty.
    """

    hessian: Floats
    linear: Floats
    anchor: Floats
    penalty: L1

    def gradient(self, b: Floats) -> Floats:
        """Of the smooth part, (k,)."""
        return np.asarray(self.linear + self.hessian @ (b - self.anchor))

    @functools.cached_property
    def curvature(self) -> Floats:
        """(k,) the diagonal of the Hessian, kept positive: a column without curvature (a constant)
        stays at zero.
        """
        diagonal = np.diagonal(self.hessian)
        return np.maximum(diagonal, NEWTON_RIDGE * diagonal.max(initial=0.0) + _TINY)

    def minimum(self, tolerance: float, max_rounds: int = _ROUNDS) -> Floats:
        """The coefficients b (k,) that minimise the function, from the anchor.

        Rounds of coordinate descent, which finds the support, and Newton steps on the support. If
        they do not find the support soon (nested rules are nearly collinear columns, on which
        coordinate descent takes thousands of sweeps), they restart from an interior-point solution,
        which takes about ten Cholesky factorisations.

        Args:
            tolerance: the largest KKT violation allowed.
            max_rounds: bound on the rounds.
        """
        from jaxrules.solvers.linear.kernels.coordinate_descent import sweep

        b, gradient = self.anchor.copy(), self.linear.copy()
        signs = self.penalty.signs
        signs = np.ones((2, len(b)), bool) if signs is None else np.ascontiguousarray(signs)
        negative, positive = signs
        with one_blas_thread():
            for round_ in range(max_rounds):
                violation = self.penalty.violation(b, gradient)
                if violation.max(initial=0.0) <= tolerance:
                    break
                if round_ > 0:  # if the support of the start is right, one Newton step suffices
                    sweep(
                        self.hessian, self.curvature, self.penalty.prices, negative, positive, b,
                        gradient, _SWEEPS,
                    )  # fmt: skip
                # Another candidate that cannot hurt: `best_along` takes it only if it is better.
                inner = b
                if round_ == _EASY_ROUNDS:
                    inner = self.penalty.allowed(self.interior_point(b, tolerance / 100))
                b = self._improved(b, gradient, inner)
                gradient = self.gradient(b)
        return b

    def _improved(self, b: Floats, gradient: Floats, inner: Floats) -> Floats:
        """The best of b, `inner` and points along b's Newton step on its support; a coefficient
        whose sign would flip stops at zero.
        """
        support = np.flatnonzero((b != 0) | (self.penalty.prices == 0))
        matrix = self.hessian[np.ix_(support, support)]
        ridge = NEWTON_RIDGE * self.curvature.max(initial=0.0) + _TINY
        matrix[np.diag_indices(len(support))] += ridge
        step = np.zeros_like(b)
        with contextlib.suppress(LinAlgError):
            right = (gradient + self.penalty.prices * np.sign(b))[support]
            step[support] = -cho_solve(_factorised(matrix), right, check_finite=False)
        return best_along(self.hessian, self.penalty, b, gradient, step, others=inner[None])

    def interior_point(
        self, start: Floats, tolerance: float, max_iterations: int = _INNER_ITERATIONS
    ) -> Floats:
        """Minimise from inside the bounds.

        Mehrotra's predictor-corrector method on b = up - down with up, down >= 0 (Wright 1997,
        "Primal-Dual Interior-Point Methods", chapter 10). The number of iterations hardly depends
        on the condition number. A coefficient without a penalty has no bounds: its `up` takes
        either sign, and its `down` stays zero.

        Args:
            start: (k,); it need not be inside the bounds.
            tolerance: for the complementarity and the residuals.
            max_iterations: bound on the factorisations.

        Returns:
            (k,) b, with zeros where complementarity implies them; NaN if numbers overflow float64.
        """
        prices, curvature = self.penalty.prices, self.curvature.max()
        free, steepest = prices == 0, prices.max()
        count = 2 * max(int(np.sum(~free)), 1)
        regular = self.hessian + _INNER_RIDGE * curvature * np.eye(len(start))

        def gradient_at(b: Floats) -> Floats:
            return np.asarray(self.linear + regular @ (b - self.anchor))

        def penalised(values: Floats) -> Floats:
            return np.where(free, 0.0, values)

        # With parts p = (up, down) and duals z: sides * gradient + penalties - z = 0, and p z =
        # aim, which falls to 0. The residual is what the first equation leaves.
        penalties, parts, duals = self._inside(start, gradient_at(start), free)
        with np.errstate(all="ignore"):
            for _ in range(max_iterations):
                gradient = gradient_at(parts[0] - parts[1])
                residual = penalised(_SIDES * gradient + penalties - duals)
                divisor = np.where(free, 1.0, parts)
                # Eliminating the duals gives each part the curvature z / p; eliminating the sum of
                # both parts leaves (H + diag(1 / (p1 / z1 + p2 / z2))) along = right, for their
                # difference alone.
                barrier = np.where(free, 1.0, duals / divisor)
                inverse = np.sum(1 / barrier, axis=0)
                try:
                    factor = _factorised(regular + np.diag(np.where(free, 0.0, 1 / inverse)))
                except LinAlgError:
                    break
                now, aim = np.sum(penalised(parts * duals)) / count, np.zeros_like(parts)
                for _ in range(2):  # the predictor, with aim 0; then the corrector, with its aim
                    wanted = aim / divisor - duals - residual
                    right = np.sum(_SIDES * wanted / barrier, axis=0) / inverse
                    right = np.where(free, -gradient, right)
                    along = cho_solve(factor, right, check_finite=False)  # NaN ends it below
                    # Of the two parts, the one with the higher barrier takes its own equation; the
                    # other follows from their difference, `along`.
                    change = (wanted - _SIDES * (regular @ along)) / barrier
                    other = change[::-1] + _SIDES * along
                    change = np.where(barrier < barrier[::-1], other, change)
                    step = np.where(free, np.stack([along, np.zeros_like(along)]), change)
                    dual_step = penalised(aim / divisor - duals - barrier * step)
                    values, steps = np.stack([parts, duals]), np.stack([step, dual_step])
                    length = np.where((steps < 0) & ~free, -values / steps, 1.0).min(initial=1.0)
                    ahead = penalised((parts + length * step) * (duals + length * dual_step))
                    # Mehrotra: the cube of what the predictor would leave of the complementarity,
                    # and its second-order error, which the corrector takes back.
                    aim = (np.sum(ahead) / count / now) ** 3 * now - step * dual_step
                parts = parts + _TO_THE_BOUND * length * step
                duals = duals + _TO_THE_BOUND * length * dual_step
                worst = max(np.abs(residual).max(), np.abs(gradient[free]).max(initial=0.0))
                worst *= 1 - _TO_THE_BOUND * length  # the equations are linear
                gap = np.sum(penalised(parts * duals)) / count
                small = worst <= tolerance and gap * curvature <= tolerance * steepest
                if small or np.isnan(worst + gap):
                    break
        b = parts[0] - parts[1]
        # At the solution p or z is 0. Where the smaller dual exceeds the coefficient, in the same
        # units, it is the coefficient that vanishes.
        return np.where(~free & (self.curvature * np.abs(b) <= duals.min(axis=0)), 0.0, b)

    def _inside(
        self, start: Floats, gradient: Floats, free: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Floats]:
        """Penalties (2, k) or (k,), and the parts and duals (2, k) from which the interior-point
        method starts.

        Every part and every dual is at least a small share of the largest. A part of a forbidden
        sign gets a penalty so large that its dual stays positive.
        """
        penalties, signs = self.penalty
        curvature, steepest = self.curvature.max(), penalties.max()
        parts = np.maximum(_SIDES * start, 0.0) + steepest / curvature + np.abs(start).max() / 100
        parts = np.where(free, np.stack([start, np.zeros_like(start)]), parts)
        violation = self.penalty.violation(start, gradient).max()
        if signs is not None:
            forbidden = ~signs[::-1]
            penalties = np.where(forbidden, 10.0 * (penalties + np.abs(gradient).max()), penalties)
        duals = np.maximum(penalties + _SIDES * gradient, 0.0) + (steepest + violation) / 10
        return penalties, parts, np.where(free, 1.0, duals)


def _factorised(matrix: Floats) -> Any:
    return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
