"""Certified coordinate paths: branch-and-bound over the sequence of features that a path changes.

For a given sequence the best path is a closed form (`costs.best_path`), so the search is over sequences only.

**Bound.** A prefix of p steps is followed by models whose supports grow by at most one feature per step. A
table holds, for every support U, a lower bound on what follows once b_p lies in U:

    rest_p(U) <= min { share_p alpha_p c(b_p) + sum_{k > p} alpha_k c(b_k) : b_p in R^U, a path from b_p on }.

Prefix and remainder meet in b_p and each pays its share of c(b_p); were b_p to belong to the prefix alone,
the two would choose it independently. It starts as a chain of pairs: if b_p in R^U and b_{p+1} = b_p + t e_i
pay weights A and B, then together they cost at least

    A m(U) + B m(U+i) + (m(U) - m(U+i)) kappa AB / (A + B (1 - kappa)),

m(U) the least-squares cost on U and kappa the share of feature i that U explains (R^2 in the metric of Q): a
coefficient added alone gains little when it is correlated with those that may not move. Where that does
not suffice, the table is tightened by searching the remainders themselves (Russian dolls), over ever longer
windows, only for supports that prefixes below the incumbent can reach.

**Search.** First layer by layer, keeping the most promising sequences (NumPy, batched): this gives the
incumbent and, for small problems, already the proof. Else local improvement, and a compiled depth-first search
(`depth_first`). Changing one feature twice in a row is left out only where the weights do not decrease:
there, and only there, it is redundant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxrules.paths.certificate import Certificate
from jaxrules.paths.costs import (
    RANK_TOLERANCE,
    Array,
    Quadratic,
    Sequence,
    best_path,
    greedy_path,
    tail_sums,
)
from jaxrules.results import Run

WIDTH = 256
LARGEST_BIT = 62
SHARE = 0.5
MAX_SUPPORTS = 2**18
RUNGS = ((2, 20_000, 10_000), (4, 100_000, 2_000), (8, 500_000, 1_000))
"""Windows of the Russian dolls, nodes of the search that follows, and nodes per support."""
SLICE = 20_000
"""Nodes between two looks at the clock."""


def search(cost: Quadratic, step_weights: Array, run: Run, starts: Iterable[Sequence] = ()) -> Certificate:
    """The least-cost path of len(step_weights) steps from zero, Eq. (7) and (9), with a certificate.

    Args:
        cost: the cost of the change from the starting model.
        step_weights: alpha_1, ..., alpha_K, nonnegative, the last positive.
        run: clock, deadline and progress; the search ends early when ``run.stopped()``.
        starts: sequences that are known to be good.

    Returns:
        the certificate; ``closed`` when the path is proved optimal to a relative 1e-9.
    """
    steps = len(step_weights)
    certificate = Certificate.of(cost, step_weights)
    for sequence in (greedy_path(cost, steps)[0], *starts):
        certificate.offer(sequence, best_path(cost, step_weights, sequence))
    used = np.flatnonzero(np.diag(cost.curvature) > 0)
    with run:
        if len(used) and not run.stopped() and not certificate.closed:
            problem = _Problem.of(cost, step_weights, used)
            _layered_search(problem, certificate, run)
            if not certificate.closed and not run.stopped():
                _polish(problem, certificate)
                _depth_first_search(problem, certificate, run)
    return certificate


class _Problem:
    """The problem in unit-diagonal features, with the tables of its bounds."""

    def __init__(self, cost: Quadratic, step_weights: Array, features: Sequence, unscaled: Quadratic) -> None:
        self.cost = cost
        self.weights = step_weights
        self.features = features
        self.unscaled = unscaled
        self.steps = len(step_weights)
        self.no_repeats = bool((np.diff(step_weights) >= 0).all())
        self.supports = Supports.of(cost, self.steps)
        self.shares = np.full(self.steps + 1, SHARE)  # of alpha_p c(b_p) that the remainder owns
        self.shares[self.steps] = 0.0
        self.table = self.supports.remainders(step_weights, self.shares)

    @classmethod
    def of(cls, cost: Quadratic, step_weights: Array, used: Sequence) -> _Problem:
        scale = np.sqrt(np.diag(cost.curvature)[used])
        restricted = cost.restricted(used)
        scaled = Quadratic(
            restricted.curvature / np.outer(scale, scale), restricted.linear / scale, restricted.constant
        )
        return cls(scaled, step_weights, used, cost)

    def offer(self, certificate: Certificate, sequence: Sequence) -> None:
        original = self.features[sequence]
        certificate.offer(original, best_path(self.unscaled, self.weights, original))


# The tables


def schur_values(systems: Array, scales: Array) -> tuple[Array, Array]:
    """Eliminate all but the last coordinate of symmetric systems, skipping dependent coordinates.

    Args:
        systems: shape (n + 1, n + 1, batch), the last row and column hold the linear part and the constant;
            overwritten.
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
    """Least-squares costs of supports, and how they grow. One more entry stands for every support beyond the table.

    Attributes:
        masks: the supports as ascending bit masks, shape (supports,).
        sizes: their sizes.
        full: whether every subset is there, so that a mask is its own position.
        least: m(U), shape (supports + 1,).
        larger: position of U + i, shape (features, supports).
        coupling: (m(U) - m(U+i)) kappa, zero where i is in U; shape (features, supports).
        unexplained: 1 - kappa.
    """

    masks: NDArray[np.int64]
    sizes: NDArray[np.int64]
    full: bool
    least: Array
    larger: NDArray[np.int64]
    coupling: Array
    unexplained: Array

    @classmethod
    def of(cls, cost: Quadratic, steps: int) -> Supports:
        """Tables for all supports of at most `steps` features, or of the largest size that fits the memory."""
        d = len(cost.linear)
        masks, sizes = _subsets(d, min(steps, d))
        full = len(masks) == 2**d
        count = len(masks)
        diagonal = np.diag(cost.curvature)
        least = np.empty(count + 1)
        logarithms = np.zeros(count)
        independent = np.ones(count, bool)
        least[count] = float(cost(cost.minimiser()))
        members = (masks[:, None] & bits(d)) > 0
        for size in range(int(sizes.max()) + 1):
            at = np.flatnonzero(sizes == size)
            chosen = np.nonzero(members[at])[1].reshape(len(at), size)
            systems = np.empty((size + 1, size + 1, len(at)))
            systems[:size, :size] = cost.curvature[chosen.T[:, None], chosen.T[None, :]]
            systems[:size, size] = systems[size, :size] = cost.linear[chosen.T]
            systems[size, size] = cost.constant
            least[at], pivots = schur_values(systems, diagonal[chosen.T])
            independent[at] = (pivots > 0).all(axis=0)
            logarithms[at] = np.log(np.where(pivots > 0, pivots, 1.0)).sum(axis=0)
        larger = np.empty((d, count), np.int64)
        coupling = np.zeros((d, count))
        unexplained = np.ones((d, count))
        for i in range(d):
            grown = masks | bits(d)[i]
            larger[i] = grown if full else _positions(masks, grown)
            known = (larger[i] < count) & ~members[:, i]
            known[known] = independent[known] & independent[larger[i, known]]
            to = larger[i, known]
            if known.any():
                unexplained[i, known] = np.clip(np.exp(logarithms[to] - logarithms[known]) / diagonal[i], 0, 1)
            gain = np.maximum(least[:count][known] - least[to], 0)
            coupling[i, known] = gain * (1 - unexplained[i, known])
        return cls(masks, sizes, full, least, larger, coupling, unexplained)

    def positions(self, masks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where supports stand in the tables; those beyond them at the last entry."""
        return masks if self.full else _positions(self.masks, masks)

    def pair(self, i: int, first: float, second: float) -> Array:
        """The least of first c(b) + second c(b + t e_i), b in R^U, for every support U, shape (supports,)."""
        total = first + second * self.unexplained[i]
        penalty = self.coupling[i] * (first * second / np.where(total > 0, total, 1.0))
        return first * self.least[:-1] + second * self.least[self.larger[i]] + penalty

    def remainders(self, step_weights: Array, shares: Array) -> Array:
        """rest_p(U), shape (steps + 1, supports + 1), by the chain of pairs from the end."""
        steps = len(step_weights)
        rest = np.zeros((steps + 1, len(self.masks) + 1))
        for p in range(steps - 1, -1, -1):
            first = shares[p] * step_weights[p - 1] if p else 0.0
            second = (1 - shares[p + 1]) * step_weights[p]
            rest[p, :-1] = np.inf
            for i in range(len(self.larger)):
                np.minimum(rest[p, :-1], self.pair(i, first, second) + rest[p + 1, self.larger[i]], out=rest[p, :-1])
            rest[p, -1] = (first + second) * self.least[-1] + rest[p + 1, -1]
        return rest

    def beginnings(self, step_weights: Array, shares: Array) -> Array:
        """A lower bound on the first p steps if b_p has support U, shape (steps + 1, supports + 1)."""
        steps = len(step_weights)
        before = np.full((steps + 1, len(self.masks) + 1), np.inf)
        before[0, 0] = 0.0
        for p in range(steps):
            first = shares[p] * step_weights[p - 1] if p else 0.0
            second = (1 - shares[p + 1]) * step_weights[p]
            for i in range(len(self.larger)):
                to = self.larger[i]
                value = self.pair(i, first, second) + before[p, :-1]
                stays = to == np.arange(len(to))  # i belongs to U
                before[p + 1, to[stays]] = np.minimum(before[p + 1, to[stays]], value[stays])
                before[p + 1, to[~stays]] = np.minimum(before[p + 1, to[~stays]], value[~stays])
        return before


def bits(n_features: int) -> NDArray[np.int64]:
    """The bit of every feature; those from LARGEST_BIT on share one, and lie beyond every table."""
    return np.left_shift(np.int64(1), np.minimum(np.arange(n_features), LARGEST_BIT))


def _positions(masks: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    at = np.searchsorted(masks, wanted)
    found = masks[np.minimum(at, len(masks) - 1)] == wanted
    return np.where(found, at, len(masks))


def _subsets(d: int, largest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All subsets of range(d) of at most `largest` elements, fewer where they exceed MAX_SUPPORTS."""
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


# The layered search


def _layered_search(problem: _Problem, certificate: Certificate, run: Run) -> None:
    """Grow the most promising sequences step by step; what is dropped goes into the bound."""
    d = len(problem.features)
    sequences = np.zeros((1, 0), np.int64)
    masks = np.zeros(1, np.int64)
    bounds = problem.table[0, :1]
    dropped = np.inf
    for p in range(problem.steps):
        if run.stopped():
            certificate.raise_bound(min(dropped, bounds.min()))
            return
        values = extension_values(problem.cost, problem.weights[: p + 1], 1 - problem.shares[p + 1], sequences)
        grown = masks[:, None] | bits(d)
        children = values + problem.table[p + 1, problem.supports.positions(grown)]
        children = np.maximum(children, bounds[:, None])
        if problem.no_repeats and p:
            children[sequences[:, -1:] == np.arange(d)] = np.inf
        certificate.nodes += children.size
        order = np.argsort(children, axis=None, kind="stable")
        order = order[children.ravel()[order] < certificate.objective - certificate.tolerance]
        keep = 1 if p == problem.steps - 1 else WIDTH
        if len(order) > keep:
            dropped = min(dropped, children.ravel()[order[keep]])
        if not len(order):
            break
        parents, features = np.unravel_index(order[:keep], children.shape)
        sequences = np.concatenate([sequences[parents], features[:, None]], axis=1)
        masks = grown[parents, features]
        bounds = children[parents, features]
    else:
        problem.offer(certificate, sequences[0])
    certificate.raise_bound(min(dropped, certificate.objective - certificate.tolerance))


def extension_values(cost: Quadratic, step_weights: Array, share: float, sequences: Sequence) -> Array:
    """The least objective of every sequence with every feature appended, shape (sequences, features).

    Args:
        cost: the cost.
        step_weights: the weights of the steps up to the appended one, shape (steps,).
        share: the fraction of the appended step's weight that counts.
        sequences: shape (sequences, steps - 1).
    """
    weights = np.append(step_weights[:-1], share * step_weights[-1])
    batch, length = sequences.shape
    d = len(cost.linear)
    tails = tail_sums(weights)
    order = np.arange(length)
    at = sequences.T
    systems = np.empty((length, length + 1 + d, batch))
    systems[:, :length] = cost.curvature[at[:, None], at[None, :]] * tails[np.maximum.outer(order, order)][..., None]
    systems[:, length] = cost.linear[at] * tails[:-1, None]
    systems[:, length + 1 :] = cost.curvature[at].transpose(0, 2, 1) * weights[-1]
    value = np.full(batch, weights.sum() * cost.constant)
    linear = np.repeat((weights[-1] * cost.linear)[:, None], batch, axis=1)
    diagonal = weights[-1] * np.diag(cost.curvature)
    remaining = np.repeat(diagonal[:, None], batch, axis=1)
    scales = cost.curvature[at, at] * tails[:-1, None]
    for j in range(length):
        pivot = systems[j, j].copy()
        inverse = np.where(pivot > RANK_TOLERANCE * scales[j], 1 / np.where(pivot > 0, pivot, 1.0), 0.0)
        row = systems[j, j + 1 :] * inverse
        value -= systems[j, length] * row[length - j - 1]
        columns = systems[j, length + 1 :]
        linear -= columns * row[length - j - 1]
        remaining -= columns * row[length - j :]
        systems[j + 1 :, j + 1 :] -= systems[j, j + 1 : length, None] * row
    independent = remaining > RANK_TOLERANCE * diagonal[:, None]
    gains = np.where(independent, linear**2 / np.where(independent, remaining, 1.0), 0.0)
    return (value - gains).T


# The depth-first search


def _polish(problem: _Problem, certificate: Certificate) -> None:
    """Local improvement of the incumbent, two steps at a time."""
    from jaxrules.paths import local

    start = np.searchsorted(problem.features, certificate.sequence)
    batch = min(2, problem.steps)
    problem.offer(certificate, local.improve(problem.cost, problem.weights, start[None], batch=batch, seed=0)[0])


def _depth_first_search(problem: _Problem, certificate: Certificate, run: Run) -> None:
    """Prove the incumbent, or find a better one, with bounds that are tightened until they suffice."""
    from jaxrules.paths import depth_first

    supports, steps = problem.supports, problem.steps
    cost = (problem.cost.curvature, problem.cost.linear, problem.cost.constant)
    rules = (problem.weights, problem.shares, problem.table)
    subsets = (supports.masks, supports.full, problem.no_repeats)
    stack = depth_first.workspace(len(problem.features), steps)
    before = supports.beginnings(problem.weights, problem.shares)
    rungs = (*(rung for rung in RUNGS if rung[0] < steps), (steps, None, 10_000))
    for window, budget, per_support in rungs:
        for p in range(steps - 1, 0, -1):
            relevant = np.flatnonzero(before[p, :-1] + problem.table[p, :-1] < certificate.objective)
            for positions in np.array_split(relevant, len(relevant) * per_support // (50 * SLICE) + 1):
                if run.stopped():
                    return
                certificate.nodes += depth_first.tighten(
                    stack, p, min(p + window, steps), positions, *cost, *rules, before[p], *subsets,
                    certificate.objective, per_support,
                )  # fmt: skip
        stack = depth_first.workspace(len(problem.features), steps)
        level, spent = 0, 0
        while level >= 0 and (budget is None or spent < budget) and not run.stopped():
            known = certificate.objective
            level, value, nodes = depth_first.search(
                stack, level, 0, steps, *cost, *rules, *subsets, known, certificate.tolerance, SLICE
            )
            spent += nodes
            certificate.nodes += nodes
            if value < known:
                problem.offer(certificate, stack.best.copy())
                run.step(certificate.objective, steps)
        # Pruned states lie within the tolerance of the incumbent, which `Certificate.closed` allows for.
        unproved = depth_first.open_bound(stack, 0, level, certificate.objective)
        certificate.raise_bound(unproved if level >= 0 else certificate.objective - certificate.tolerance)
        if level < 0 or run.stopped():
            return
