"""Certified paths of integer steps: S_SLIM and S'_SLIM of Section 5.1.

Every model is a point of the lattice start + Z^d, so two prefixes of equal length that end in the
same point differ only in their cost so far: the cheaper one is kept. The search grows all points
layer by layer, with that dominance and the remainder bounds of `exact`, which hold for real
coefficients and so for integers. Bounds on the coefficients and a given end are conditions on
points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxrules.paths.costs import Array, Sequence
from jaxrules.paths.problem import Changes, PathProblem, steps_between
from jaxrules.paths.supports import Supports, bits
from jaxrules.solvers import layered
from jaxrules.solvers.layered import Children, LayeredCertificate, never

WIDTHS = (100, 2_000, 40_000, 400_000)
"""Points kept per layer; the next width is tried if points were dropped."""
MAX_CHILDREN = 4_000_000
"""The most children of one chunk of points; the other points of the chunk are left out, and
bounded.
"""


def search(
    problem: PathProblem,
    certificate: LayeredCertificate[Changes] | None = None,
    stopped: Callable[[], bool] = never,
) -> LayeredCertificate[Changes]:
    """The least-cost path of integer steps; those of any size need positive step weights. See
    `exact.search`.
    """
    certificate = certificate or problem.certificate()
    if not stopped():
        layered.search(_Lattice(problem), certificate, WIDTHS, stopped)
    return certificate


class _IntegerLayer(NamedTuple):
    points: Array  # whole numbers, shape (states, features)
    spent: Array  # their cost so far, shape (states,)


class _Lattice(layered.LayeredProblem[_IntegerLayer, Changes]):
    """Points of the lattice; a move is a feature and its new coefficient, shape (moves, 2)."""

    chunk = 20_000

    def __init__(self, problem: PathProblem) -> None:
        self.problem, self.cost = problem, problem.cost
        self.depth = problem.steps
        self.supports = Supports.of(self.cost, self.depth)
        # A point's own cost is known and belongs to the prefix: remainders have no share in it.
        self.rest = self.supports.remainders(problem.step_weights, np.zeros(self.depth + 1))

    def root(self) -> _IntegerLayer:
        return _IntegerLayer(np.zeros((1, self.problem.n_features)), np.zeros(1))

    def expand(self, states: _IntegerLayer, some: slice, step: int, incumbent: float) -> Children:
        points, spent = states.points[some], states.spent[some]
        low, high = self._steps(points, spent, step, incumbent)
        numbers = np.maximum(high - low + 1, 0).astype(np.int64)
        left_out = None
        excess = numbers.sum(axis=1).cumsum() > MAX_CHILDREN
        if excess.any():
            # Children left out cost at least what any model does now, and the least remainder.
            least = self.problem.step_weights[step] * float(self.cost(self.cost.minimiser()))
            left_out = float((spent[excess] + least + self.rest[step + 1].min()).min())
            numbers[excess] = 0
        parents, features = np.nonzero(numbers)
        repeats = numbers[parents, features]
        # 0, 1, ... for each pair of a point and a feature: its steps from the smallest on
        offsets = np.arange(repeats.sum()) - np.repeat(repeats.cumsum() - repeats, repeats)
        parents, features = np.repeat(parents, repeats), np.repeat(features, repeats)
        values = points[parents, features] + low[parents, features] + offsets
        # To stand still is a step of size zero, and always allowed.
        parents = np.concatenate([parents, np.arange(len(points))])
        features = np.concatenate([features, np.zeros(len(points), np.int64)])
        values = np.concatenate([values, points[:, 0]])
        grown = points[parents]
        grown[np.arange(len(parents)), features] = values
        if self.problem.end is not None:
            needed = steps_between(grown, self.problem.end, self.problem.kind)
            reachable = needed <= self.depth - 1 - step
            parents, features = parents[reachable], features[reachable]
            values, grown = values[reachable], grown[reachable]
        total = spent[parents] + self.problem.step_weights[step] * self.cost(grown)
        masks = np.bitwise_or.reduce(np.where(grown != 0, bits(grown.shape[1]), 0), axis=1)
        moves = np.stack([features, values.astype(np.int64)], axis=1)
        bounds = total + self.rest[step + 1, self.supports.positions(masks)]
        return Children(parents, moves, bounds, total, left_out=left_out)

    def _steps(
        self, points: Array, spent: Array, step: int, incumbent: float
    ) -> tuple[Array, Array]:
        """The smallest and largest step of every coefficient that can lead below the incumbent."""
        lower, upper = (bound - points for bound in self.problem.bounds)
        if self.problem.kind == "unit":
            low, high = np.full(points.shape, -1.0), np.full(points.shape, 1.0)
        else:
            # alpha c(b + t e_i) = alpha (c(b) - 2 slope t + Q_ii t^2) must stay below the
            # incumbent, less the cost so far and the least of the rest.
            curvature = np.diag(self.cost.curvature)
            usable = curvature > 0
            safe = np.where(usable, curvature, 1.0)
            room = (incumbent - spent - self.rest[step + 1].min()) / self.problem.step_weights[step]
            best = (self.cost.linear - points @ self.cost.curvature) / safe
            left = (room - self.cost(points))[:, None] + safe * best**2
            radius = np.sqrt(np.maximum(left, 0) / safe)
            radius = np.where(usable, radius, 0.0)
            # A coefficient without effect on the cost moves only to the end.
            to_end = 0.0 if self.problem.end is None else self.problem.end - points
            best = np.where(usable, best, to_end)
            low, high = np.ceil(best - radius), np.floor(best + radius)
        # Bounds relative to the point are rounded: 1e-9 keeps whole numbers that are on a bound.
        return np.maximum(low, np.ceil(lower - 1e-9)), np.minimum(high, np.floor(upper + 1e-9))

    def keys(self, states: _IntegerLayer, children: Children) -> Sequence:
        return self._points(states, children).astype(np.int64)

    def grow(self, states: _IntegerLayer, children: Children, step: int) -> _IntegerLayer:
        return _IntegerLayer(self._points(states, children), children.reached)

    def _points(self, states: _IntegerLayer, children: Children) -> Array:
        points = states.points[children.parents]
        features, values = children.moves.T
        points[np.arange(len(points)), features] = values
        return points

    def solution(self, moves: Sequence) -> Changes:
        models = np.zeros((len(moves), self.problem.n_features))
        for k, (feature, value) in enumerate(moves):
            models[k:, feature] = value
        return Changes(moves[:, 0], models)
