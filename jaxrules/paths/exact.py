"""Certified coordinate paths: branch-and-bound over the sequence of features that a path changes.

For a given sequence the best path is a closed form (`problem.best_path`), so the search is over
sequences only.

**Bound.** A prefix of p steps is followed by models whose supports grow by at most one feature per
step. A table holds, for every support U, a lower bound on what follows once b_p lies in U:

    rest_p(U) <= min { share_p alpha_p c(b_p) + sum_{k > p} alpha_k c(b_k) :
                       b_p in R^U, a path from b_p on }.

Prefix and remainder meet in b_p and each pays its share of c(b_p); if b_p belonged to the prefix
alone, the two would choose it independently. The table starts as a chain of pairs: if b_p in R^U
and b_{p+1} = b_p + t e_i pay weights A and B, then together they cost at least

    A m(U) + B m(U+i) + (m(U) - m(U+i)) kappa AB / (A + B (1 - kappa)),

m(U) the least-squares cost on U and kappa the share of feature i that U explains (R^2 in the metric
of Q): a coefficient added alone gains little if it is correlated with those that may not move. If
that does not suffice, the table is tightened by searching the remainders themselves (Russian
dolls), over ever longer windows. With many features, the table has only the supports that paths
below the incumbent can reach.

**Search.** Layer by layer, keeping the most promising sequences (NumPy, batched): this gives the
incumbent and, for small problems, already the proof. Otherwise, local improvement (with many
features it comes first, as their tables take seconds) and a compiled depth-first search
(`depth_first`) follow. Changing one feature twice in a row is excluded only where the weights do
not decrease, because only there it is redundant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from jaxrules.paths import local
from jaxrules.paths.costs import RANK_TOLERANCE, Array, QuadraticCost, Sequence
from jaxrules.paths.problem import Changes, PathProblem, tail_sums
from jaxrules.paths.supports import Supports
from jaxrules.solvers import layered
from jaxrules.solvers.layered import Children, LayeredCertificate, never

WIDTH = 256
FEW = 12
"""With at most this many features layers come first: they take less time than compiling local
improvement.
"""
SHARE = 0.5
RUNGS = ((2, 10_000), (4, 2_000), (8, 1_000))
"""Windows of the Russian dolls, and nodes per support."""
EFFORT = 2
"""Nodes of the search that follows a rung, per node so far: longer windows cost more than most
proofs.
"""
SLICE = 20_000
"""Nodes between two checks of the clock."""


def search(
    problem: PathProblem,
    certificate: LayeredCertificate[Changes] | None = None,
    stopped: Callable[[], bool] = never,
    starts: Iterable[Sequence] = (),
    *,
    batch: int = 2,
    iterations: int | None = None,
    restarts: int = 0,
    seed: int = 0,
) -> LayeredCertificate[Changes]:
    """The least-cost path without side conditions, proved to a relative 1e-9 if the certificate is
    closed.

    Args:
        problem: without side conditions.
        certificate: of the problem, to be continued.
        stopped: the search ends early when this is true.
        starts: good sequences, besides the greedy one.
        batch, iterations, restarts, seed: of local improvement, see `local.search`. A search cut
            short is no worse than that.
    """
    certificate = certificate or problem.certificate()
    for sequence in starts:
        certificate.offer(problem.along(sequence))
    batch, improved = min(batch, problem.steps), math.inf
    if restarts and problem.n_features > FEW:
        local.search(
            problem, certificate, stopped, batch=batch, iterations=iterations, restarts=restarts,
            seed=seed,
        )  # fmt: skip
        improved = certificate.objective
    if certificate.closed or stopped():
        return certificate
    prefixes = _ExactPrefixes(problem, certificate.objective, stopped)
    certificate.prove(float(prefixes.rest[0, 0]))
    layered.search(prefixes, certificate, (WIDTH,), stopped)
    if not certificate.closed and not stopped():
        if certificate.objective < improved:  # as many starts as before, for the compiled program
            local.search(
                problem, certificate, stopped, batch=batch, iterations=iterations,
                restarts=restarts, seed=seed + 1,
            )  # fmt: skip
        _depth_first_search(prefixes, certificate, stopped)
    return certificate


class _ExactLayer(NamedTuple):
    sequences: Sequence  # shape (states, steps so far)
    supports: Sequence  # positions of their supports in the tables


class _ExactPrefixes(layered.LayeredProblem[_ExactLayer, Changes]):
    """Prefixes of sequences of the features that have an effect, scaled to a unit diagonal, and the
    tables of bounds.
    """

    def __init__(self, problem: PathProblem, objective: float, stopped: Callable[[], bool]) -> None:
        self.problem = problem
        self.features = np.flatnonzero(np.diag(problem.cost.curvature) > 0)
        restricted = problem.cost.restricted(self.features)
        # Scaling coefficients changes no cost: paths are searched as sequences of features alone.
        scale = np.sqrt(np.diag(restricted.curvature))
        curvature = restricted.curvature / np.outer(scale, scale)
        self.cost = QuadraticCost(curvature, restricted.linear / scale, restricted.constant)
        self.weights = problem.step_weights
        self.depth = problem.steps
        # Two steps in a row on one feature are redundant if weights do not decrease (by Abel
        # summation). With other weights they may belong to the optimum.
        self.no_repeats = bool((np.diff(self.weights) >= 0).all())
        few = len(self.features) <= FEW
        self.supports = (
            Supports.of(self.cost, self.depth) if few else
            Supports.reachable(self.cost, self.weights, objective, stopped)
        )  # fmt: skip
        self.shares = np.full(self.depth + 1, SHARE)  # of alpha_p c(b_p) that the remainder owns
        self.shares[self.depth] = 0.0
        self.rest = self.supports.remainders(self.weights, self.shares)

    def root(self) -> _ExactLayer:
        empty = np.zeros(1, np.int64)  # the empty support comes first
        return _ExactLayer(np.zeros((1, 0), np.int64), empty)

    def expand(self, states: _ExactLayer, some: slice, step: int, incumbent: float) -> Children:
        sequences, supports = states.sequences[some], states.supports[some]
        count, d = len(sequences), len(self.features)
        # The prefix has the share 1 - share of the new step's cost; `rest` includes the other.
        share = 1 - self.shares[step + 1]
        values = extension_values(self.cost, self.weights[: step + 1], share, sequences)
        bounds = values + self.rest[step + 1, self.supports.larger[:, supports].T]
        if self.no_repeats and step:
            bounds[np.arange(count), sequences[:, -1]] = np.inf
        parents, moves = np.divmod(np.arange(count * d), d)
        return Children(parents, moves, bounds.ravel(), bounds.ravel())

    def grow(self, states: _ExactLayer, children: Children, step: int) -> _ExactLayer:
        parents, moves = children.parents, children.moves
        sequences = np.column_stack([states.sequences[parents], moves])
        return _ExactLayer(sequences, self.supports.larger[moves, states.supports[parents]])

    def solution(self, moves: Sequence) -> Changes:
        return self.problem.along(self.features[moves])


def extension_values(
    cost: QuadraticCost, step_weights: Array, share: float, sequences: Sequence
) -> Array:
    """The least objective of every sequence with every feature appended, shape
    (sequences, features).

    Args:
        cost: the cost.
        step_weights: the weights of the steps up to the appended one, shape (steps,).
        share: the fraction of the appended step's weight that counts.
        sequences: shape (sequences, steps - 1).
    """
    # H_jk = Q[i_j, i_k] T_max(j, k) and h_k = g[i_k] T_k, see `problem`. The appended step is last,
    # so that its T is its own weight alone.
    weights = np.append(step_weights[:-1], share * step_weights[-1])
    batch, length = sequences.shape
    d = len(cost.linear)
    tails = tail_sums(weights)
    order = np.arange(length)
    at = sequences.T
    systems = np.empty((length, length + 1 + d, batch))
    # Gaussian elimination of H per sequence, with h and the columns of all possible next steps.
    later = tails[np.maximum.outer(order, order)][..., None]
    systems[:, :length] = cost.curvature[at[:, None], at[None, :]] * later
    systems[:, length] = cost.linear[at] * tails[:-1, None]
    systems[:, length + 1 :] = cost.curvature[at].transpose(0, 2, 1) * weights[-1]
    value = np.full(batch, weights.sum() * cost.constant)
    linear = np.repeat((weights[-1] * cost.linear)[:, None], batch, axis=1)
    diagonal = weights[-1] * np.diag(cost.curvature)
    remaining = np.repeat(diagonal[:, None], batch, axis=1)
    scales = cost.curvature[at, at] * tails[:-1, None]
    for j in range(length):
        pivot = systems[j, j].copy()
        inverse = np.where(
            pivot > RANK_TOLERANCE * scales[j], 1 / np.where(pivot > 0, pivot, 1.0), 0.0
        )
        # `row` has the rest of H's row, then h (at length - j - 1), then a column per next step. A
        # pivot of 0 is a dependent step: it is skipped.
        row = systems[j, j + 1 :] * inverse
        value -= systems[j, length] * row[length - j - 1]
        columns = systems[j, length + 1 :]
        linear -= columns * row[length - j - 1]
        remaining -= columns * row[length - j :]
        systems[j + 1 :, j + 1 :] -= systems[j, j + 1 : length, None] * row
    # The Schur complement of each next step: what it gains beside the sequence.
    independent = remaining > RANK_TOLERANCE * diagonal[:, None]
    gains = np.where(independent, linear**2 / np.where(independent, remaining, 1.0), 0.0)
    return (value - gains).T


# The depth-first search


def _depth_first_search(
    prefixes: _ExactPrefixes, certificate: LayeredCertificate[Changes], stopped: Callable[[], bool]
) -> None:
    """Prove the incumbent, or find a better one; bounds are tightened until they suffice."""
    from jaxrules.paths import depth_first  # numba loads when it is needed

    cost, supports, steps = prefixes.cost, prefixes.supports, prefixes.depth
    given = tuple(
        depth_first.GivenTables(
            cost.curvature, cost.linear, float(cost.constant), prefixes.weights, prefixes.shares,
            prefixes.rest, supports.masks, supports.larger, prefixes.no_repeats,
        )
    )  # fmt: skip
    stack: tuple[Any, ...] = tuple(depth_first.workspace(len(prefixes.features), steps))
    before = supports.beginnings(prefixes.weights, prefixes.shares)
    # Each rung tightens the table over a longer window, then tries the layers and a depth-first
    # search of a few nodes. The last window is the whole remainder, with any number of nodes.
    for window, per_support in (*(rung for rung in RUNGS if rung[0] < steps), (steps, 10_000)):
        # From the end: entries beyond the window after p, which bound it, are tight by now.
        for p in range(steps - 1, 0, -1):
            # Supports that a better path may still pass after p steps
            whole = before[p, :-2] + prefixes.rest[p, :-2]
            relevant = np.flatnonzero(whole < certificate.objective)
            parts = len(relevant) * per_support // (50 * SLICE) + 1
            for positions in np.array_split(relevant, parts):
                if stopped():
                    return
                certificate.nodes += depth_first.tighten(
                    given, stack, p, min(p + window, steps), positions, before[p],
                    certificate.objective, per_support,
                )  # fmt: skip
        layered.search(prefixes, certificate, (WIDTH,), stopped)  # a better bound, or the proof
        if certificate.closed or stopped():
            return
        # A new stack: the search begins at the empty prefix again.
        stack = tuple(depth_first.workspace(len(prefixes.features), steps))
        level, spent = 0, 0
        budget = math.inf if window == steps else max(SLICE, EFFORT * certificate.nodes)
        while level >= 0 and spent < budget and not stopped():
            known = certificate.objective
            level, value, nodes = depth_first.search(
                given, stack, level, 0, steps, known, certificate.tolerance, SLICE
            )
            spent += nodes
            certificate.nodes += nodes
            if value < known:
                certificate.offer(prefixes.solution(depth_first.PathStack(*stack).best.copy()))
        # Cut short, the search proves the least bound that is open; ended, that nothing is better.
        unproved = depth_first.open_bound(stack, 0, level, certificate.objective)
        certificate.prove(unproved if level >= 0 else certificate.settled)
        if level < 0 or stopped():
            return
