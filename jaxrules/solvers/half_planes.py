"""The best half-plane of two columns: exact, for any value of sums over its rows.

Every subset of points that a line separates is found with a line through one of the points and no
other: move a separating line, tilted a little so that it is parallel to no two points, until it
meets the first one. So for each point the line through it is rotated by half a turn. It passes the
others in the order of their angles, and each changes sides once; the point on the line may belong
to either side. That is 4 n^2 subsets of n points at most, each with sums that follow from the last
by one term: O(n^2 log n) time and O(n) memory for a pair of columns. Points with equal coordinates
are merged first.

The sweep is that for the half-plane discrepancy: Dobkin, Eppstein and Mitchell, "Computing the
discrepancy with applications to supersampling patterns" (1996).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.limits import never

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

SAME_ANGLE = 1e-12
"""Angles closer than this are equal: points on a line through a third one, up to rounding."""
MOST_WORK = 10_000_000
"""The most `work`: three seconds, and six with the sums of ten rules."""
_TURN = 200
"""What the turn around a point takes beside its lines, in lines."""


class HalfPlane(NamedTuple):
    """w'(x_i, x_j) >= threshold.

    Attributes:
        columns: i and j.
        w: both not 0, of length one.
        threshold: midway between the points on the two sides.
        missing: whether rows with a missing number belong to it.
        value: of the sums over its rows.
    """

    columns: tuple[int, int]
    w: tuple[float, float]
    threshold: float
    missing: bool
    value: float


class HalfPlanes(NamedTuple):
    """What a search found.

    Attributes:
        best: the best half-plane; None if there is none.
        bound: no half-plane of two columns has a greater value; None if the search was stopped.
    """

    best: HalfPlane | None
    bound: float | None


def work(columns: Floats) -> float:
    """Lines through two distinct points, and `_TURN` for each point, over all pairs of columns; an
    upper bound for columns of few values, shape (columns, rows).
    """
    sizes = np.array([len(np.unique(column[~np.isnan(column)])) for column in columns], float)
    most = float(columns.shape[1])
    pairs = itertools.combinations(range(len(columns)), 2)
    points = np.array([min(sizes[i] * sizes[j], most) for i, j in pairs])
    return float((points * (points + _TURN)).sum())


def best_half_plane(
    columns: Floats,
    terms: Floats,
    value: Callable[[Floats], Floats],
    stopped: Callable[[], bool] = never,
) -> HalfPlanes:
    """The half-plane of two columns with the greatest value, proved by trying all.

    >>> x = np.array([[0.0, 0, 1, 1], [0, 1, 0, 1]])
    >>> found = best_half_plane(x, np.array([[-1.0, 1, 1, 1]]), lambda sums: sums[0])
    >>> found.best.value, found.bound
    (3.0, 3.0)
    >>> [bool(one) for one in np.array(found.best.w) @ x >= found.best.threshold]
    [False, True, True, True]

    Args:
        columns: shape (columns, rows), in units of similar size; NaN for a missing number.
        terms: what is summed over the rows, (sums, rows).
        value: of sums of shape (sums, ...), for all half-planes at once.
        stopped: asked once per point.

    Returns:
        The best half-plane and the bound. Value and bound agree but for rounding.
    """
    best, bound = None, 0.0 if len(columns) < 2 else -np.inf
    for i, j in itertools.combinations(range(len(columns)), 2):
        plane = _Plane(columns[[i, j]], terms, value)
        for point in range(plane.points.shape[1]):
            if stopped():
                return HalfPlanes(best, None)
            plane.turn(point)
        bound = max(bound, plane.greatest)
        found = plane.found()
        if found is not None and (best is None or found.value > best.value):
            best = found._replace(columns=(i, j))
    return HalfPlanes(best, bound)


class _Plane:
    """The distinct points of two columns, and the best half-plane so far."""

    def __init__(self, pair: Floats, terms: Floats, value: Callable[[Floats], Floats]) -> None:
        self.pair, self.terms, self.value = pair, terms, value
        self.lost: Rows = np.isnan(pair).any(axis=0)
        # Adding 0 turns -0 into 0.
        known = pair[:, ~self.lost] + 0.0
        self.points, at = np.unique(known, axis=1, return_inverse=True)
        n = self.points.shape[1]
        at = at.ravel()
        self.sums = np.array([np.bincount(at, one, n) for one in terms[:, ~self.lost]])
        self.sums = self.sums.reshape(len(terms), n)
        self.total = self.sums.sum(axis=1)
        # Rows with a missing number are all in, or all out.
        self.absent = terms[:, self.lost].sum(axis=1)
        self.ways = (False, True) if self.lost.any() else (False,)
        self.greatest = -np.inf
        self._at: tuple[int, float, bool, bool, bool] | None = None

    def turn(self, i: int) -> None:
        """All half-planes whose boundary passes point i and no other."""
        dx, dy = self.points - self.points[:, i : i + 1]
        # Direction and opposite direction have one angle, in [0, pi). Before the turn, the line
        # points to angle 0, and points of angle below pi lie to its left.
        right = (dy < 0) | ((dy == 0) & (dx < 0))
        sign = np.where(right, -1.0, 1.0)
        angles = np.arctan2(sign * dy, sign * dx)
        order = np.argsort(angles)
        order = order[order != i]
        ordered = angles[order]
        here = self.sums[:, i]
        left = self.sums[:, ~right].sum(axis=1) - here
        moved = np.cumsum(self.sums[:, order] * -sign[order], axis=1)
        left = left[:, None] + np.concatenate([np.zeros((len(left), 1)), moved], axis=1)
        # A line turns between two distinct angles; half a turn later the sides are exchanged.
        first, last = (ordered[0], ordered[-1]) if len(ordered) else (np.pi, 0.0)
        before, after = np.append(last - np.pi, ordered), np.append(ordered, first + np.pi)
        turns = np.flatnonzero(after - before > SAME_ANGLE)
        left = left[:, turns]
        rest = self.total[:, None] - left
        # The point belongs to the left side or the right one: four half-planes, and their
        # complements among the rows with a missing number.
        sides = np.stack([left, left + here[:, None], rest - here[:, None], rest], axis=1)
        ways = [sides + self.absent[:, None, None] * way for way in self.ways]
        values = self.value(np.stack(ways, axis=1))
        k = int(np.argmax(values))
        if len(turns) and values.flat[k] > self.greatest:
            way, side, turn = np.unravel_index(k, values.shape)
            angle = float(before[turns[turn]] + after[turns[turn]]) / 2
            self.greatest = float(values.flat[k])
            on_left = bool(side < 2)
            self._at = i, angle, on_left, bool(side in (1, 3)), self.ways[int(way)]

    def found(self) -> HalfPlane | None:
        """The best half-plane, valued by the rows that it holds for."""
        if self._at is None:
            return None
        i, angle, on_left, includes, missing = self._at
        w = np.array([-np.sin(angle), np.cos(angle)]) * (1.0 if on_left else -1.0)
        heights = w @ self.points
        others = np.delete(heights, i)
        here = heights[i]
        # Midway to the next point on the side that is cut off, or that is kept
        beyond = others[others < here] if includes else others[others > here]
        if len(beyond):
            near = beyond.max() if includes else beyond.min()
        else:
            near = here - 1.0 if includes else here + 1.0
        threshold = float(here + near) / 2
        with np.errstate(invalid="ignore"):
            holds = w @ self.pair >= threshold
        holds = np.where(self.lost, missing, holds)
        value = float(self.value((self.terms @ holds.astype(np.float64))[:, None])[0])
        return HalfPlane((0, 1), (float(w[0]), float(w[1])), threshold, missing, value)
