"""The best half-plane of two columns: exact, for any value of sums over its rows.

Every subset of points that a line separates is found with a line through one of the points and no
other: move a separating line, tilted a little so that it is parallel to no two points, until it
meets the first one. So for each point the line through it is rotated by half a turn. It passes the
others in the order of their angles, and each changes sides once; the point on the line may belong
to either side. That is 4 n^2 subsets of n points at most, each with sums that follow from the last
by one term: O(n^2 log n) time for a pair of columns, and O(n^2) once the orders of the angles are
known, which are kept. Points with equal coordinates are merged first.

The sweep is that for the half-plane discrepancy: Dobkin, Eppstein and Mitchell, "Computing the
discrepancy with applications to supersampling patterns" (1996).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.limits import never

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

SAME_ANGLE = 1e-12
"""Angles closer than this are equal: points on a line through a third one, up to rounding."""
MOST_WORK = 10_000_000
"""The most `work`; a search then keeps 30 MB."""
_MOST_KEPT = 1 << 27
"""The most bytes of orders and points that a search keeps; what is beyond is made anew."""
_AT_ONCE = 1 << 15
"""The number of lines, roughly, that are turned at once: their sums stay in the cache."""
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


class HalfPlaneSearch:
    """The half-planes of every pair of some columns. The orders in which lines pass the points are
    kept from one objective to the next.

    >>> x = np.array([[0.0, 0, 1, 1], [0, 1, 0, 1]])
    >>> found = HalfPlaneSearch(x).best(np.array([[-1.0, 1, 1, 1]]), lambda sums: sums[0])
    >>> found.best.value, found.bound
    (3.0, 3.0)
    >>> [bool(one) for one in np.array(found.best.w) @ x >= found.best.threshold]
    [False, True, True, True]

    Args:
        columns: shape (columns, rows), in units of similar size; NaN for a missing number.
    """

    def __init__(self, columns: Floats) -> None:
        self.columns = columns
        self._planes: dict[tuple[int, int], _Plane] = {}
        self._room = _MOST_KEPT

    def best(
        self,
        terms: Floats,
        value: Callable[[Floats], Floats],
        stopped: Callable[[], bool] = never,
    ) -> HalfPlanes:
        """The half-plane of two columns with the greatest value, proved by trying all.

        Args:
            terms: what is summed over the rows, (sums, rows).
            value: of sums of shape (sums, ...), for all half-planes at once.
            stopped: asked once per some thousand lines.

        Returns:
            The best half-plane and the bound. Value and bound agree but for rounding.
        """
        best, bound = None, 0.0 if len(self.columns) < 2 else -np.inf
        for pair in itertools.combinations(range(len(self.columns)), 2):
            turn = _Turn(self._plane(pair), terms, value)
            for some in turn.plane.blocks():
                if stopped():
                    return HalfPlanes(best, None)
                turn.around(some)
            bound = max(bound, turn.greatest)
            found = turn.found(self.columns[list(pair)])
            if found is not None and (best is None or found.value > best.value):
                best = found._replace(columns=pair)
        return HalfPlanes(best, bound)

    def _plane(self, pair: tuple[int, int]) -> _Plane:
        """Of two columns, kept if there is room."""
        plane = self._planes.get(pair)
        if plane is None:
            plane = _Plane(self.columns[list(pair)])
            if plane.size <= self._room:
                plane.keep()
                self._planes[pair] = plane
                self._room -= plane.size
        return plane


class _Plane:
    """The distinct points of two columns, and the orders in which lines through them turn.

    Attributes:
        lost: the rows with a missing number.
        points: (2, points).
        at: the point of every other row.
        size: the bytes of all this.
    """

    def __init__(self, pair: Floats) -> None:
        self.lost: Rows = np.isnan(pair).any(axis=0)
        # Adding 0 turns -0 into 0.
        known = pair[:, ~self.lost] + 0.0
        self.points, at = np.unique(known, axis=1, return_inverse=True)
        self.at = at.ravel()
        self._type = np.min_scalar_type(2 * self.points.shape[1])
        n = self.points.shape[1]
        self.size = self.lost.nbytes + self.points.nbytes + self.at.nbytes
        self.size += n * n * (self._type.itemsize + 1)
        self._orders: tuple[NDArray[Any], Rows] | None = None
        self._known = 0  # the orders of so many points are known

    def keep(self) -> None:
        """Make room for the orders."""
        n = self.points.shape[1]
        self._orders = np.empty((n - 1 if n else 0, n), self._type), np.empty((n, n), bool)

    def blocks(self) -> Iterator[slice]:
        """All points, some at a time."""
        n = self.points.shape[1]
        size = max(1, _AT_ONCE // max(n, 1))
        return (slice(start, min(start + size, n)) for start in range(0, n, size))

    def right(self, some: slice) -> tuple[Rows, Floats]:
        """For lines through some points that point to angle 0: which points lie to their right,
        those of angle below pi to the left, (some, points); and the way to all, (2, some, points).
        """
        away = self.points[:, None] - self.points[:, some, None]
        dx, dy = away
        return (dy < 0) | ((dy == 0) & (dx < 0)), away

    def orders(self, some: slice, right: Rows, away: Floats) -> tuple[NDArray[Any], Rows]:
        """In which order lines through some points pass the others, plus the number of points for
        those to the right, (points - 1, some); and before which of them, or after all, a line is
        between two distinct angles, (points, some).
        """
        if self._orders is not None and some.stop <= self._known:
            return self._orders[0][:, some], self._orders[1][:, some]
        order, ordered = _by_angle(some, right, away)
        gaps = np.diff(_around(ordered), axis=1)
        n = right.shape[1]
        order += n * np.take_along_axis(right, order, axis=1)
        found = order.T.astype(self._type), gaps.T > SAME_ANGLE
        if self._orders is not None:
            self._orders[0][:, some], self._orders[1][:, some] = found
            self._known = some.stop
        return found


def _by_angle(some: slice, right: Rows, away: Floats) -> tuple[NDArray[np.intp], Floats]:
    """The other points in the order of their angles, and these, (some, points - 1). Direction and
    opposite direction have one angle, in [0, pi).
    """
    sign = np.where(right, -1.0, 1.0)
    angles = np.arctan2(sign * away[1], sign * away[0])
    order = np.argsort(angles, axis=1)
    order = order[order != np.arange(some.start, some.stop)[:, None]].reshape(len(order), -1)
    return order, np.take_along_axis(angles, order, axis=1)


def _around(ordered: Floats) -> Floats:
    """Angles between which lines turn, (some, points + 1): half a turn later the sides are
    exchanged.
    """
    if not ordered.shape[1]:
        return np.tile([-np.pi, 2 * np.pi], (len(ordered), 1))
    return np.hstack([ordered[:, -1:] - np.pi, ordered, ordered[:, :1] + np.pi])


class _Turn:
    """The best half-plane of two columns so far, for one objective."""

    def __init__(self, plane: _Plane, terms: Floats, value: Callable[[Floats], Floats]) -> None:
        self.plane, self.terms, self.value = plane, terms, value
        n, known = plane.points.shape[1], terms[:, ~plane.lost]
        self.sums = np.array([np.bincount(plane.at, one, n) for one in known])
        self.sums = self.sums.reshape(len(terms), n)
        # What is added to the left when a line passes a point: those to the left leave it.
        self.moved = np.concatenate([-self.sums, self.sums], axis=1)
        self.total = self.sums.sum(axis=1)
        # Rows with a missing number are all in, or all out.
        self.absent = terms[:, plane.lost].sum(axis=1)
        self.ways = (False, True) if plane.lost.any() else (False,)
        self.greatest = -np.inf
        self._at: tuple[int, int, bool, bool, bool] | None = None

    def around(self, some: slice) -> None:
        """All half-planes whose boundary passes one of some points and no other."""
        right, away = self.plane.right(some)
        order, between = self.plane.orders(some, right, away)
        here = self.sums[:, None, some]
        begin = np.stack([self.sums[:, ~one].sum(axis=1) for one in right], axis=1)[:, None] - here
        left = np.empty((len(self.sums), *between.shape))
        left[:, :1] = begin
        np.cumsum(np.take(self.moved, order, axis=1), axis=1, out=left[:, 1:])
        left[:, 1:] += begin
        rest = self.total[:, None, None] - left
        # The point belongs to the left side or the right one: four half-planes, and their
        # complements among the rows with a missing number.
        values, all_between = [], bool(between.all())
        for way in self.ways:
            for sums in (left, left + here, rest - here, rest):
                inside = sums + self.absent[:, None, None] if way else sums
                found = self.value(inside)
                values.append(found if all_between else np.where(between, found, -np.inf))
        most = np.stack([one.max(axis=0) for one in values])
        point = int(most.max(axis=0).argmax())
        kind = int(most[:, point].argmax())
        if most[kind, point] > self.greatest:
            self.greatest = float(most[kind, point])
            which, side = divmod(kind, 4)
            turn = int(values[kind][:, point].argmax())
            self._at = some.start + point, turn, side < 2, side in (1, 3), self.ways[which]

    def found(self, pair: Floats) -> HalfPlane | None:
        """The best half-plane of the columns, valued by the rows that it holds for."""
        if self._at is None:
            return None
        i, turn, on_left, includes, missing = self._at
        some = slice(i, i + 1)
        angles = _around(_by_angle(some, *self.plane.right(some))[1])[0]
        angle = float(angles[turn] + angles[turn + 1]) / 2
        w = np.array([-np.sin(angle), np.cos(angle)]) * (1.0 if on_left else -1.0)
        heights = w @ self.plane.points
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
            holds = w @ pair >= threshold
        holds = np.where(self.plane.lost, missing, holds)
        value = float(self.value((self.terms @ holds.astype(np.float64))[:, None])[0])
        return HalfPlane((0, 1), (float(w[0]), float(w[1])), threshold, missing, value)
