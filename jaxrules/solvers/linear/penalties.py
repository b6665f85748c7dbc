"""Penalties on the coefficients of columns, as objects: what solvers ask of them.

Arrays are NumPy's or JAX's. Both penalties are pytrees, so that traced functions take them too.
`b` are coefficients, (columns,) or for several classes (columns, classes); a gradient is that of
the loss, of the same shape.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxrules.tools.float64 import numpy_of

Array = Any  # of NumPy or JAX


class L1(NamedTuple):
    """sum_j prices_j |b_j|, where some coefficients may not be negative, or not positive.

    Attributes:
        prices: (columns,), at least 0.
        signs: whether a coefficient may be negative, and positive, bool (2, columns); one that may
            not be both must have a price above 0. None if all may be both.
    """

    prices: Array
    signs: Array | None = None

    def times(self, factor: float) -> L1:
        """The penalty with all prices times a factor."""
        return self._replace(prices=factor * self.prices)

    def take(self, columns: Array) -> L1:
        """The penalty of some columns."""
        return L1(self.prices[columns], None if self.signs is None else self.signs[:, columns])

    def sizes(self, b: Array) -> Array:
        """|b_j|, (columns,)."""
        return numpy_of(b).abs(b)

    def value(self, b: Array) -> Array:
        return self.prices @ self.sizes(b)

    def pull(self, gradient: Array) -> Array:
        """How strongly the loss pulls each coefficient away from 0 to where it may go, at least 0;
        at an optimum at most its price.
        """
        xp = numpy_of(gradient)
        if self.signs is None:
            return xp.abs(gradient)
        down, up = self.signs
        return xp.maximum(xp.where(down, gradient, 0), xp.where(up, -gradient, 0))

    def violation(self, b: Array, gradient: Array) -> Array:
        """The distance of 0 from the subdifferential of loss and penalty, (columns,)."""
        xp = numpy_of(gradient)
        # Away from 0: gradient + price sign(b) = 0. At 0: the pull is at most the price.
        at_zero = xp.maximum(self.pull(gradient) - self.prices, 0)
        return xp.where(b != 0, xp.abs(gradient + self.prices * xp.sign(b)), at_zero)

    def allowed(self, b: Array) -> Array:
        """Coefficients, of any shape (..., columns), with 0 for those of a forbidden sign."""
        if self.signs is None:
            return b
        down, up = self.signs if b.ndim == 1 else self.signs[:, None]
        return numpy_of(b).where((b < 0) & down | (b >= 0) & up, b, 0.0)


class Group(NamedTuple):
    """sum_j prices_j |b_j|, where b_j are the weights of a column, one per class, and |b_j| is
    their Euclidean norm: a column enters or leaves for all classes at once.

    Attributes:
        prices: (columns,), at least 0.
    """

    prices: Array

    def times(self, factor: float) -> Group:
        """The penalty with all prices times a factor."""
        return Group(factor * self.prices)

    def take(self, columns: Array) -> Group:
        """The penalty of some columns."""
        return Group(self.prices[columns])

    def sizes(self, b: Array) -> Array:
        """The norms |b_j|, (columns,)."""
        xp = numpy_of(b)
        return xp.sqrt((b * b).sum(axis=1))

    def value(self, b: Array) -> Array:
        return self.prices @ self.sizes(b)

    def pull(self, gradient: Array) -> Array:
        """How strongly the loss pulls each column away from 0; at an optimum at most its price."""
        return self.sizes(gradient)

    def violation(self, b: Array, gradient: Array) -> Array:
        """The distance of 0 from the subdifferential of loss and penalty, (columns,)."""
        xp, sizes = numpy_of(gradient), self.sizes(b)
        # Away from 0: gradient_j + price_j b_j / |b_j| = 0, for all classes.
        along = gradient + b * (self.prices / xp.where(sizes > 0, sizes, 1.0))[:, None]
        at_zero = xp.maximum(self.sizes(gradient) - self.prices, 0.0)
        return xp.where(sizes > 0, self.sizes(along), at_zero)


Penalty = L1 | Group


def feasible_share(penalty: Penalty, dual_gradient: Array) -> Array:
    """The largest factor, at most 1, that shrinks a dual point until no pull exceeds its price.

    Args:
        dual_gradient: sum_i weights_i dual_i x_ij, (columns,) or (columns, classes); the dual
            point is taken to be orthogonal to columns without a price.
    """
    xp, prices = numpy_of(dual_gradient), penalty.prices
    tiny = xp.finfo(dual_gradient.dtype).tiny
    # Columns without a price do not limit the factor: the dual point is orthogonal to them.
    ratio = xp.where(prices > 0, prices / xp.maximum(penalty.pull(dual_gradient), tiny), 1)
    return xp.minimum(1, xp.min(ratio, initial=1))
