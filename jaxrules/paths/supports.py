"""Least-squares costs of supports, and bounds on what follows and precedes them: the tables of the
bound in `exact`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxrules.paths.costs import RANK_TOLERANCE, Array, QuadraticCost

LARGEST_BIT = 62
MAX_SUPPORTS = 2**18
REGULAR = 1e-9
"""A curvature is singular if its smallest eigenvalue is below this share of the largest."""


def schur_values(systems: Array, scales: Array) -> tuple[Array, Array]:
    """Eliminate all but the last coordinate of symmetric systems, skipping dependent coordinates.

    Args:
        systems: shape (n + 1, n + 1, batch), the last row and column hold the linear part and
            the constant; overwritten.
        scales: diagonal entries that a pivot is compared with, shape (n, batch).

    Returns:
        the least values, shape (batch,), and the pivots, shape (n, batch), zero where skipped.
    """
    pivots = np.zeros((len(systems) - 1, systems.shape[2]))
    for j in range(len(pivots)):
        pivot = systems[j, j]
        kept = pivot > RANK_TOLERANCE * scales[j]
        pivots[j] = np.where(kept, pivot, 0.0)
        row = systems[j, j + 1 :]
        systems[j + 1 :, j + 1 :] -= row[:, None] * (row / np.where(kept, pivot, np.inf))
    return systems[-1, -1].copy(), pivots


@dataclass(frozen=True, eq=False)
class Supports:
    """Least-squares costs of supports, and how they grow.

    Two further entries stand for supports outside the table: those beyond the largest size, and
    those that no path below the objective reaches.

    Attributes:
        masks: the supports as ascending bit masks, shape (supports,).
        sizes: their sizes.
        full: whether the table has every subset, so that a mask is its own position.
        least: m(U), shape (supports + 2,); the last two are a bound.
        by_size: a bound on m(U) for supports of k features, usually exact, shape (features + 1,).
        larger: position of U + i, shape (features, supports + 2).
        coupling: (m(U) - m(U+i)) kappa, zero where i is in U; shape (features, supports).
        unexplained: 1 - kappa.
    """

    masks: NDArray[np.int64]
    sizes: NDArray[np.int64]
    full: bool
    least: Array
    by_size: Array
    larger: NDArray[np.int64]
    coupling: Array
    unexplained: Array

    @classmethod
    def of(cls, cost: QuadraticCost, steps: int) -> Supports:
        """Tables for all supports of at most `steps` features, or of the largest size that fits in
        memory.
        """
        d = len(cost.linear)
        return cls._tables(cost, *_subsets(d, min(steps, d)), None, min(steps, d))

    @classmethod
    def reachable(
        cls, cost: QuadraticCost, step_weights: Array, objective: float, stopped: Callable[[], bool]
    ) -> Supports:
        """Tables for the supports of all paths below an objective, size by size, within memory and
        time.

        A support is needed if the least costs of the supports on the way to it, one per step, and
        the least costs of any supports after it sum to less than the objective.
        """
        d, steps = len(cost.linear), len(step_weights)
        if d > LARGEST_BIT:
            return cls.of(cost, steps)
        largest = min(steps, d)
        by_size = _least_by_size(cost, np.full(1, cost.constant), np.zeros(1, np.int64), largest)
        masks = np.zeros(1, np.int64)
        spent = np.append(0.0, np.full(steps, np.inf))[:, None]  # by step and support
        layers = [masks]
        for size in range(1, largest + 1):
            # All supports of this size, each once, and those that they grow from (`parents`)
            grown = masks[:, None] | bits(d)
            parents, features = np.nonzero(grown != masks[:, None])
            masks, to = np.unique(grown[parents, features], return_inverse=True)
            order = np.argsort(to, kind="stable")
            parents, first = parents[order], np.searchsorted(to[order], np.arange(len(masks)))
            least = _least_squares(cost, masks, size)[0]
            smaller, spent = spent, np.full((steps + 1, len(masks)), np.inf)
            total = np.full(len(masks), np.inf)
            for p in range(size, steps + 1):
                # Step p adds a feature, or changes one of the support.
                # `parents` are sorted by the support they grow to, for one minimum per stretch.
                before = np.minimum.reduceat(smaller[p - 1, parents], first)
                before = np.minimum(before, spent[p - 1])
                spent[p] = before + step_weights[p - 1] * least
                # The models after step p have at most size + 1, size + 2, ... features.
                after = step_weights[p:] @ by_size[np.minimum(size + 1 + np.arange(steps - p), d)]
                total = np.minimum(total, spent[p] + after)
            needed = total < objective
            if sum(map(len, layers)) + needed.sum() > MAX_SUPPORTS or stopped():
                largest = size - 1
                break
            masks, spent = masks[needed], spent[:, needed]
            layers.append(masks)
            if not len(masks):
                break
        sizes = np.repeat(np.arange(len(layers)), [len(layer) for layer in layers])
        masks = np.concatenate(layers)
        order = np.argsort(masks)
        return cls._tables(cost, masks[order], sizes[order], by_size, largest)

    @classmethod
    def _tables(
        cls,
        cost: QuadraticCost,
        masks: NDArray[np.int64],
        sizes: NDArray[np.int64],
        by_size: Array | None,
        largest: int,
    ) -> Supports:
        """The tables of given supports; without `by_size` these are all supports of their sizes,
        and `largest` is the largest size of the paths.
        """
        d, count = len(cost.linear), len(masks)
        full = count == 2**d
        diagonal = np.diag(cost.curvature)
        least = np.empty(count + 2)
        logarithms = np.zeros(count)
        independent = np.ones(count, bool)
        for size in range(int(sizes.max()) + 1):
            at = np.flatnonzero(sizes == size)
            least[at], logarithms[at], independent[at] = _least_squares(cost, masks[at], size)
        every = by_size is None
        if by_size is None:
            by_size = _least_by_size(cost, least[:count], sizes, largest)
            largest = int(sizes.max())
        # A support that leaves the table has one feature more than the largest ones in it.
        least[count:] = by_size[min(largest + 1, d)]
        larger = np.empty((d, count + 2), np.int64)
        larger[:, count:] = count, count + 1
        coupling = np.zeros((d, count))
        unexplained = np.ones((d, count))
        # Where U + i is not in the table: too large for it (entry `count`), or reached by no path
        # below the objective (the last entry, whose remainder is infinite)
        missing = count if every else np.where(sizes < largest, count + 1, count)
        for some in _blocks(d, count):
            grown = masks | bits(d)[some, None]
            to = grown if full else _positions(masks, grown)
            larger[some, :count] = to = np.where(to < count, to, missing)
            new = (to < count) & (grown != masks) & independent
            new[new] = independent[to[new]]
            feature, support = np.nonzero(new)
            # 1 - R^2 = det Q[U+i] / (det Q[U] Q_ii)
            share = np.exp(logarithms[to[new]] - logarithms[support]) / diagonal[some][feature]
            unexplained[some][new] = np.clip(share, 0, 1)
            coupling[some] = np.maximum(least[:count] - least[to], 0) * (1 - unexplained[some])
        return cls(masks, sizes, full, least, by_size, larger, coupling, unexplained)

    def positions(self, masks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions of supports in the tables; of those outside, the number of supports."""
        return masks if self.full else _positions(self.masks, masks)

    def pairs(self, some: slice, p: int, step_weights: Array, shares: Array) -> Array:
        """The least of first c(b_p) + second c(b_p + t e_i) over b_p in R^U, for features i, shape
        (some, supports).
        """
        # The bound of `exact`, with A and B the weights and 1 - kappa unexplained.
        first, second = _pair_weights(p, step_weights, shares)
        total = first + second * self.unexplained[some]
        penalty = self.coupling[some] * (first * second / np.where(total > 0, total, 1.0))
        return first * self.least[:-2] + second * self.least[self.larger[some, :-2]] + penalty

    def remainders(self, step_weights: Array, shares: Array) -> Array:
        """rest_p(U), shape (steps + 1, supports + 2), by the chain of pairs from the end."""
        steps, (d, count) = len(step_weights), self.coupling.shape
        rest = np.zeros((steps + 1, count + 2))
        rest[:, -1] = np.inf
        for p in range(steps - 1, -1, -1):
            rest[p, :-2] = np.inf
            for some in _blocks(d, count):
                following = self.pairs(some, p, step_weights, shares)
                following = following + rest[p + 1][self.larger[some, :-2]]
                np.minimum(rest[p, :-2], following.min(axis=0), out=rest[p, :-2])
            costs = self.by_size[[min(p, d), min(p + 1, d)]]  # p steps, at most p features
            # A support beyond the table: only the sizes of the models are known.
            rest[p, -2] = costs @ _pair_weights(p, step_weights, shares) + rest[p + 1, -2]
        return rest

    def beginnings(self, step_weights: Array, shares: Array) -> Array:
        """Lower bounds on the first p steps if b_p has support U, (steps + 1, supports + 2)."""
        steps, (d, count) = len(step_weights), self.coupling.shape
        before = np.full((steps + 1, count + 2), np.inf)
        before[0, 0] = 0.0
        for p, i in itertools.product(range(steps), range(d)):
            to = self.larger[i, :-2]
            value = self.pairs(slice(i, i + 1), p, step_weights, shares)[0] + before[p, :-2]
            stays = to == np.arange(count)  # i belongs to U
            for group in (stays, ~stays):  # in each, no two supports grow to the same one
                before[p + 1, to[group]] = np.minimum(before[p + 1, to[group]], value[group])
        return before


def _least_squares(
    cost: QuadraticCost, masks: NDArray[np.int64], size: int
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """m(U) of supports of one size, log det of Q on U, and whether its columns are independent."""
    least, logarithms = np.empty((2, len(masks)))
    independent = np.empty(len(masks), bool)
    for some in (slice(i, i + 2**14) for i in range(0, len(masks), 2**14)):
        members = np.nonzero(masks[some, None] & bits(len(cost.linear)))[1]
        chosen = members.reshape(len(masks[some]), size).T
        systems = np.empty((size + 1, size + 1, chosen.shape[1]))
        systems[:size, :size] = cost.curvature[chosen[:, None], chosen[None, :]]
        systems[:size, size] = systems[size, :size] = cost.linear[chosen]
        systems[size, size] = cost.constant
        least[some], pivots = schur_values(systems, np.diag(cost.curvature)[chosen])
        independent[some] = (pivots > 0).all(axis=0)
        # The product of the pivots is the determinant.
        logarithms[some] = np.log(np.where(pivots > 0, pivots, 1.0)).sum(axis=0)
    return least, logarithms, independent


def _least_by_size(
    cost: QuadraticCost, least: Array, sizes: NDArray[np.int64], largest: int
) -> Array:
    """The least costs by size: from the table, and for sizes beyond it up to `largest` by leaps and
    bounds.
    """
    d = len(cost.linear)
    by_size = np.full(d + 1, float(cost(cost.minimiser())))
    if d > LARGEST_BIT:  # the table lacks some features
        return by_size
    known = int(sizes.max())
    by_size[: known + 1] = [least[sizes == size].min() for size in range(known + 1)]
    largest = min(largest, d - 1)
    if known < largest and _regular(cost.curvature):
        from jaxrules.paths.subsets import least_by_size  # numba loads when it is needed

        found = least_by_size(cost, known + 1, largest)
        by_size[known + 1 : largest + 1] = np.maximum(found, by_size[-1])
    return by_size


def _regular(curvature: Array) -> bool:
    eigenvalues = np.linalg.eigvalsh(curvature)
    return bool(eigenvalues[0] > REGULAR * eigenvalues[-1])


def _pair_weights(p: int, step_weights: Array, shares: Array) -> tuple[float, float]:
    """The weights of c(b_p), and of c(b_{p+1}) less the share of the next remainder, in the
    remainder after p steps.
    """
    return shares[p] * step_weights[p - 1] if p else 0.0, (1 - shares[p + 1]) * step_weights[p]


def _blocks(d: int, count: int) -> list[slice]:
    """Features processed together: all for few supports, one for many; arrays stay small."""
    size = max(2**14 // count, 1)
    return [slice(i, i + size) for i in range(0, d, size)]


def bits(n_features: int) -> NDArray[np.int64]:
    """The bit of every feature; those from LARGEST_BIT on share one, and are in no table."""
    return np.left_shift(np.int64(1), np.minimum(np.arange(n_features), LARGEST_BIT))


def _positions(masks: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    at = np.searchsorted(masks, wanted)
    found = masks[np.minimum(at, len(masks) - 1)] == wanted
    return np.where(found, at, len(masks))


def _subsets(d: int, largest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All subsets of range(d) of at most `largest` elements, fewer if they exceed MAX_SUPPORTS."""
    layers = [np.zeros(1, np.int64)]
    d = min(d, LARGEST_BIT)
    for size in range(1, largest + 1):
        previous = layers[-1]
        highest = np.where(previous > 0, np.frexp(previous.astype(float))[1], 0)  # number of bits
        grown = np.concatenate([previous[highest <= i] | (1 << i) for i in range(d)])
        if sum(map(len, layers)) + len(grown) > MAX_SUPPORTS and size > 1:
            break
        layers.append(grown)
    masks = np.concatenate(layers)
    sizes = np.repeat(np.arange(len(layers)), [len(layer) for layer in layers])
    order = np.argsort(masks, kind="stable")
    return masks[order], sizes[order]
