"""Least-angle regression: the supports along the path of the lasso, for several problems at once.

Efron, Hastie, Johnstone and Tibshirani, "Least Angle Regression" (Annals of Statistics 2004), with
the lasso modification (Sec. 3.1): a coefficient that reaches zero leaves the active set. The
problems are weighted least squares on the same columns, each with its own row weights and response.
One step of all problems takes a single matrix product, of the entering columns with all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_CONSTANT = 1e-6
"""A column whose deviation is below this share of its norm is constant on the weighted rows."""
_DEPENDENT = 1e-6
"""A column stays out if at most this share of its square lies outside the span of the active
columns.
"""
_TINY = 1e-12


class Subset(NamedTuple):
    """The active columns at a knot of the path, and the least-squares problem on them.

    Attributes:
        columns: ascending, (k,).
        gram: (k, k), their weighted covariance times the sum of weights.
        slope: (k,), their weighted covariance with the response times the sum of weights.
    """

    columns: NDArray[np.intp]
    gram: Floats
    slope: Floats


def lasso_subsets(
    columns: Floats,
    weights: Floats,
    moments: Floats,
    *,
    largest: int,
    steps: int,
    sides: NDArray[np.int_] | None = None,
) -> list[list[Subset]]:
    """The distinct supports of 1 to `largest` columns along each path, in order.

    Columns are centred and scaled under the weights of each problem.

    Args:
        columns: (columns, rows).
        weights: row weights, at least 0, (problems, rows).
        moments: weights times response, (problems, rows).
        largest: the most columns in a support.
        steps: the number of steps; at each one a column enters or leaves.
        sides: the signs that coefficients may have, 0 for any, (columns,).
    """
    path = _Paths(columns, weights, moments, steps, sides)
    found: list[dict[tuple[int, ...], Subset]] = [{} for _ in weights]
    for step in range(steps):
        path.enter(step)
        path.move()
        sizes = path.active.sum(axis=1)
        for p in np.flatnonzero(path.running & (sizes > 0) & (sizes <= largest)).tolist():
            one = path.subset(p)
            found[p].setdefault(tuple(one.columns.tolist()), one)
        path.running &= ~path.ended & (sizes <= largest)
        if not path.running.any():
            break
    return [list(subsets.values()) for subsets in found]


class _Paths:
    """The state of all paths. A column occupies the slot of the step at which it enters.

    `order` (the column of each slot), `active`, `sign` and `coefficients` are (problems, slots);
    `gram` holds the products of the slots with all columns, (problems, slots, columns); `slope` is
    the current covariance of each column with the residual.
    """

    def __init__(
        self,
        columns: Floats,
        weights: Floats,
        moments: Floats,
        slots: int,
        sides: NDArray[np.int_] | None,
    ) -> None:
        self.columns, self.weights = columns, weights
        self.sides = np.zeros(len(columns), int) if sides is None else sides
        n_problems = len(weights)
        self.every = np.arange(n_problems)
        self.total = np.maximum(weights.sum(axis=1), np.finfo(np.float64).tiny)[:, None]
        # sum w (x - m)^2 = sum w x^2 - W m^2: no centred copy of the columns per problem is needed.
        # Where the difference leaves mostly rounding, the column counts as constant.
        self.mean = weights @ columns.T / self.total
        square = weights @ (columns**2).T
        rest = square - self.total * self.mean**2
        usable = rest > _CONSTANT**2 * square
        self.scale = np.sqrt(np.where(usable, rest, 1.0))
        self.first_slope = moments @ columns.T - self.mean * moments.sum(axis=1)[:, None]
        self.slope = self.first_slope / self.scale
        self.order = np.zeros((n_problems, slots), np.intp)
        self.active = np.zeros((n_problems, slots), bool)
        self.sign, self.coefficients = np.zeros((2, n_problems, slots))
        self.gram = np.zeros((n_problems, slots, len(columns)))
        self.closed = ~usable
        # The path begins where the penalty is the largest slope, on a side that is allowed.
        strength = np.where(self.sides == 0, np.abs(self.slope), self.sides * self.slope)
        strength[self.closed] = 0.0
        self.entering = strength.argmax(axis=1)
        self.level = strength.max(axis=1)  # the slope that all active columns share
        self.running = self.level > 0
        self.ended = ~self.running

    def enter(self, slot: int) -> None:
        """Make the entering columns active, except those that depend linearly on the active
        ones.
        """
        new = self.running & (self.entering >= 0)
        at = np.where(new, self.entering, 0)
        # The weighted covariances of the entering columns with all others, one product for all
        # problems; columns have norm 1 after the division.
        products = (self.weights * self.columns[at]) @ self.columns.T
        products -= self.total * self.mean * self.mean[self.every, at][:, None]
        products /= self.scale * self.scale[self.every, at][:, None]
        self.gram[:, slot] = products * new[:, None]
        self.order[:, slot] = at
        shared = np.take_along_axis(products, self.order, axis=1) * self.active
        # The Schur complement 1 - g'G^-1 g: the share of the column's square outside the span of
        # the active ones. Without such a share, the equiangular direction would not exist.
        outside = 1.0 - np.sum(shared * self._solved(shared), axis=1)
        joins = new & (outside > _DEPENDENT)
        self.active[:, slot] = joins
        self.sign[:, slot] = np.where(self.slope[self.every, at] >= 0, 1.0, -1.0)
        # Also those that stay out: they would try to enter at every knot.
        self.closed[self.every[new], at[new]] = True

    def move(self) -> None:
        """Go to the next knot: a column is about to enter, one leaves, or the path ends."""
        # G d = sign: along d the slopes of all active columns fall at the rate 1, together with the
        # level that they share (Sec. 2, in the scale in which the paper's A_A is 1).
        step = self._solved(self.sign * self.active)
        change = np.einsum("ps,psd->pd", step, self.gram)
        level = self.level[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            # The next column to enter (Eq. 2.13), and the next coefficient to reach zero (Eq. 3.4)
            up, down = (level - self.slope) / (1 - change), (level + self.slope) / (1 + change)
            up = np.where((1 - change > _TINY) & (self.sides >= 0), up, np.inf)
            down = np.where((1 + change > _TINY) & (self.sides <= 0), down, np.inf)
            # Rounding may leave a slope just above the level: that column enters at once.
            reach = np.where(self.closed, np.inf, np.maximum(np.minimum(up, down), 0.0))
            zero = np.where(self.active, -self.coefficients / step, np.inf)
        # Of a column that has just entered, the coefficient is zero already, and moves away from
        # it.
        zero = np.where(zero > _TINY * (1 + level), zero, np.inf)
        enters, leaves = reach.min(axis=1), zero.min(axis=1)
        length = np.minimum(np.minimum(enters, leaves), self.level)
        self.ended = length >= self.level * (1 - _TINY)
        moved = np.where(self.running, length, 0.0)[:, None]
        self.slope = self.slope - moved * change
        self.coefficients = self.coefficients + moved * step
        self.level = self.level - moved[:, 0]
        # Sec. 3.1: a coefficient that reaches zero first leaves, and nothing enters at this knot.
        drops = self.running & (leaves < enters) & ~self.ended
        self.entering = np.where(drops, -1, reach.argmin(axis=1))
        slot = zero.argmin(axis=1)
        self.active[self.every[drops], slot[drops]] = False
        # It may enter again, but not at the next knot: its slope is still the largest, but falls
        # faster than the level from here on (1 - change < 0), so that `reach` leaves it out.
        self.closed[self.every[drops], self.order[drops, slot[drops]]] = False

    def subset(self, problem: int) -> Subset:
        """The active columns of a problem."""
        slots = np.flatnonzero(self.active[problem])
        slots = slots[np.argsort(self.order[problem, slots])]
        on = self.order[problem, slots]
        scale = self.scale[problem, on]
        gram = self.gram[problem][slots[:, None], on] * scale[:, None] * scale
        return Subset(on, gram, self.first_slope[problem, on])

    def _solved(self, right: Floats) -> Floats:
        """The solution on the active slots, 0 on the others, (problems, slots)."""
        both = self.active[:, :, None] & self.active[:, None]
        between = np.take_along_axis(self.gram, self.order[:, None], axis=2)
        # Inactive slots are an identity, so that problems of different sizes are one batch.
        matrix = np.where(both, between, np.eye(self.active.shape[1]))
        return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0]) * self.active
