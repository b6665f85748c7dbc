"""Certified paths within bounds on the coefficients.

The unknowns are the values x_1, ..., x_K that the steps set. Bounds on coefficients are bounds on
x, and the best path along a sequence of features is a quadratic program in a box. Prefixes grow
layer by layer as in `exact`, with the least cost of a prefix within the bounds and a table of lower
bounds on the rest. The table has the larger of two bounds: one from the least cost m(U) of every
support within the bounds on coefficients; and that of `exact`, which ignores these but accounts for
the dependence of successive models.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.paths.costs import Array, Sequence
from jaxrules.paths.exact import SHARE
from jaxrules.paths.problem import Changes, PathProblem, constrained_path
from jaxrules.paths.supports import Supports, bits
from jaxrules.solvers import layered
from jaxrules.solvers.layered import Children, LayeredCertificate, never

MAX_FEATURES = 14
"""Limited by a quadratic program per support."""
WIDTHS = (256, 4_000, 64_000)
GAP = 1e-8
"""Relative tolerance of the certificate."""
PIVOTS = 40


def search(
    problem: PathProblem,
    certificate: LayeredCertificate[Changes] | None = None,
    stopped: Callable[[], bool] = never,
) -> LayeredCertificate[Changes]:
    """The least-cost path of real steps within bounds, for at most MAX_FEATURES features; see
    `exact.search`.
    """
    certificate = certificate or problem.certificate()
    certificate.relative = GAP
    if not stopped() and not certificate.closed:
        prefixes = _BoundedPrefixes(problem)
        certificate.prove(float(prefixes.rest[0, 0]))
        layered.search(prefixes, certificate, WIDTHS, stopped)
    return certificate


class _BoundedLayer(NamedTuple):
    sequences: Sequence  # shape (states, steps so far)
    masks: NDArray[np.int64]  # their supports as bit masks


class _BoundedPrefixes(layered.LayeredProblem[_BoundedLayer, Changes]):
    """Sequences of features; a move is a feature."""

    chunk = 500

    def __init__(self, problem: PathProblem) -> None:
        self.problem, self.cost, self.depth = problem, problem.cost, problem.steps
        self.supports = Supports.of(self.cost, self.depth)
        self.shares = np.full(self.depth + 1, SHARE)
        self.shares[self.depth] = 0.0
        known = self.supports.least
        within = np.append(np.maximum(self._least(), known[:-2]), known[-2:])
        # The coupling is derived for least squares without bounds: larger m(U) go without it.
        alone = dataclasses.replace(
            self.supports, least=within, coupling=np.zeros_like(self.supports.coupling)
        )
        tables = (
            table.remainders(problem.step_weights, self.shares) for table in (self.supports, alone)
        )
        self.rest = np.maximum(*tables)

    def _least(self) -> Array:
        """The least cost within the bounds on every support."""
        masks, sizes = self.supports.masks, self.supports.sizes
        least = np.empty(len(masks))
        for size in range(int(sizes.max()) + 1):
            at = np.flatnonzero(sizes == size)
            members = np.nonzero(masks[at, None] & bits(self.problem.n_features))[1]
            chosen = members.reshape(len(at), size)
            curvature = self.cost.curvature[chosen[:, :, None], chosen[:, None, :]]
            low, high = (bound[chosen] for bound in self.problem.bounds)
            found = least_in_box(curvature, self.cost.linear[chosen], low, high)
            least[at] = float(self.cost.constant) + found
        return least

    def root(self) -> _BoundedLayer:
        return _BoundedLayer(np.zeros((1, 0), np.int64), np.zeros(1, np.int64))

    def expand(self, states: _BoundedLayer, some: slice, step: int, incumbent: float) -> Children:
        sequences, masks = states.sequences[some], states.masks[some]
        count, d = len(sequences), self.problem.n_features
        parents, moves = np.divmod(np.arange(count * d), d)
        grown = np.column_stack([sequences[parents], moves])
        rest = self.rest[step + 1, self.supports.positions(masks[:, None] | bits(d))].ravel()
        bounds = self._values(grown, 1 - self.shares[step + 1]) + rest
        return Children(parents, moves, bounds, bounds)

    def _values(self, sequences: Sequence, share: float) -> Array:
        """The least cost of the models along sequences within the bounds; only a share of the last
        one counts.
        """
        count, steps = sequences.shape
        weights = self.problem.step_weights[:steps].copy()
        weights[-1] *= share
        curvature = self.cost.curvature[sequences[:, :, None], sequences[:, None, :]]
        H, h = np.zeros((count, steps, steps)), np.zeros((count, steps))
        valid = np.zeros((count, steps), bool)  # the values, of those set so far, that still hold
        for k, weight in enumerate(weights.tolist()):
            # Step k overwrites the value of its feature; model k has the valid values, at weight
            # alpha_k.
            valid[:, :k] &= sequences[:, :k] != sequences[:, k : k + 1]
            valid[:, k] = True
            H += np.where(valid[:, :, None] & valid[:, None, :], weight * curvature, 0.0)
            h += np.where(valid, weight * self.cost.linear[sequences], 0.0)
        box = (bound[sequences] for bound in self.problem.bounds)
        return weights.sum() * self.cost.constant + least_in_box(H, h, *box)

    def grow(self, states: _BoundedLayer, children: Children, step: int) -> _BoundedLayer:
        parents, moves = children.parents, children.moves
        masks = states.masks[parents] | bits(self.problem.n_features)[moves]
        return _BoundedLayer(np.column_stack([states.sequences[parents], moves]), masks)

    def solution(self, moves: Sequence) -> Changes:
        return Changes(moves, constrained_path(self.problem, moves))


def least_in_box(H: Array, h: Array, lower: Array, upper: Array) -> Array:
    """Lower bounds on min x'Hx - 2h'x over lower <= x <= upper, shapes (batch, n, n) and
    (batch, n) -> (batch,).

    Block principal pivoting (Judice and Pires, 1994): variables are free or at a bound, and all
    that violate optimality change at once. This nearly always ends at the minimum. If it does not,
    the multipliers still prove a bound: with any multipliers of the right sign, the minimum of the
    Lagrangian is one.
    """
    batch, n = h.shape
    if n == 0:
        return np.zeros(batch)
    order = np.arange(n)
    diagonal = H[:, order, order]
    H = H.copy()
    # Regular systems for dependent columns, by a ridge below the tolerance of the certificate
    H[:, order, order] += np.where(diagonal > 0, 1e-13 * diagonal, 1.0)
    side = np.zeros((batch, n), np.int8)  # -1 at the lower bound, 1 at the upper one
    x, slope = np.zeros((batch, n)), np.zeros((batch, n))
    todo = np.arange(batch)
    scale = 1e-11 * np.sqrt(np.maximum(diagonal, 0))
    for _ in range(PIVOTS):
        fixed = np.where(side[todo] < 0, lower[todo], np.where(side[todo] > 0, upper[todo], 0.0))
        free = side[todo] == 0
        fixed[free] = 0.0
        right = np.where(free, h[todo] - (H[todo] @ fixed[..., None])[..., 0], fixed)
        system = np.where(free[:, :, None] & free[:, None, :], H[todo], 0.0)
        system[:, order, order] += ~free
        x[todo] = np.linalg.solve(system, right[..., None])[..., 0]
        slope[todo] = (H[todo] @ x[todo][..., None])[..., 0] - h[todo]
        # All violations change sides at once: free values beyond a bound, and values at a bound
        # with a slope that pulls them inside.
        low, high = free & (x[todo] < lower[todo]), free & (x[todo] > upper[todo])
        release = ~free & (np.where(side[todo] < 0, -slope[todo], slope[todo]) > scale[todo])
        release &= lower[todo] < upper[todo]
        side[todo] = np.where(low, -1, np.where(high, 1, np.where(release, 0, side[todo])))
        todo = todo[(low | high | release).any(axis=1)]
        if not len(todo):
            break
    # Multipliers: max(slope, 0) of finite lower bounds, max(-slope, 0) of finite upper ones. The
    # Lagrangian with m, lower less upper ones, is least at H^-1 (h + m):
    # 2 m'ends - (h + m)'H^-1 (h + m).
    multiplier = np.where(np.isfinite(lower), np.maximum(slope, 0.0), 0.0)
    multiplier -= np.where(np.isfinite(upper), np.maximum(-slope, 0.0), 0.0)
    ends = np.where(multiplier > 0, lower, np.where(multiplier < 0, upper, 0.0))
    at = h + multiplier
    solved = np.linalg.solve(H, at[..., None])[..., 0]
    values: Array = 2 * (multiplier * np.where(multiplier != 0, ends, 0.0)).sum(axis=1) - (
        at * solved
    ).sum(axis=1)
    return values
