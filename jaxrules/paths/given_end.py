"""Certified explanations of a given model: the best path that ends in it, P_K(beta) of Section 2.1.

Every coefficient's last change sets it to its final value; call that step a pin, and all others free. A state
is a prefix of free steps and pins: the least cost so far is a quadratic form of the free coefficients S, while
the pinned ones F stand at their final values, and may not change again. There are 3^d supports (S, F), and for
each the least cost m(S, F); a dynamic programme over them bounds every remainder, and knows which prefixes can
still pin everything in time. The search grows prefixes layer by layer, keeping the most promising.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jaxrules.paths.certificate import Certificate
from jaxrules.paths.costs import Array, Quadratic, constrained_path, greedy_path
from jaxrules.paths.exact import schur_values
from jaxrules.results import Run

MAX_FEATURES = 11
"""3^d supports have to fit the memory."""
WIDTHS = (256, 4_000, 64_000, 1_000_000)
CHUNK = 500


def search(cost: Quadratic, step_weights: Array, end: Array, run: Run) -> Certificate:
    """The least-cost path from zero to `end`, with a certificate.

    Args:
        cost: the cost of the change from the starting model, of at most MAX_FEATURES features.
        step_weights: alpha, shape (steps,).
        end: the change of the last model, shape (features,), reachable.
        run: clock, deadline and progress.
    """
    certificate = Certificate.of(cost, step_weights)
    certificate.offer(*greedy_path(cost, len(step_weights), end=end))
    with run:
        tables = _Tables(cost, step_weights, end)
        for width in WIDTHS:
            if run.stopped() or certificate.closed:
                break
            _grow(certificate, tables, end, width, run)
    return certificate


class _Tables:
    """Quadratic forms and least costs by support; supports are numbers with a digit 0, 1 (free) or 2 (pinned) each."""

    def __init__(self, cost: Quadratic, step_weights: Array, end: Array) -> None:
        d = len(end)
        self.powers = 3 ** np.arange(d)
        self.digits = (np.arange(3**d)[:, None] // self.powers) % 3
        self.cost = cost
        self.end = end
        self.diagonal = np.diag(cost.curvature)
        self.least = np.concatenate([self._least(some) for some in np.array_split(np.arange(3**d), 3**d // 4096 + 1)])
        self.rest = self._remainders(step_weights)

    def forms(self, supports: NDArray[np.int64]) -> Array:
        """c as a quadratic form of the free coefficients and the constant, shape (d + 1, d + 1, supports)."""
        d = len(self.end)
        digits = self.digits[supports].T
        pinned = np.where(digits == 2, self.end[:, None], 0.0)
        free = (digits == 1).astype(np.float64)
        forms = np.zeros((d + 1, d + 1, len(supports)))
        forms[:d, :d] = self.cost.curvature[:, :, None] * free[:, None] * free
        forms[:d, d] = free * (self.cost.linear[:, None] - self.cost.curvature @ pinned)
        forms[d, :d] = forms[:d, d]
        forms[d, d] = self.cost(pinned.T)
        return forms

    def _least(self, supports: NDArray[np.int64]) -> Array:
        """m(S, F), shape (supports,)."""
        scales = np.repeat(self.diagonal[:, None], len(supports), axis=1)
        return schur_values(self.forms(supports), scales)[0]

    def children(self, supports: NDArray[np.int64]) -> NDArray[np.int64]:
        """The supports after a free step of each feature, then after a pin of each, -1 where it was pinned before."""
        digits = self.digits[supports]
        free = supports[:, None] + (1 - digits) * self.powers
        pin = supports[:, None] + (2 - digits) * self.powers
        return np.where(np.tile(digits == 2, 2), -1, np.concatenate([free, pin], axis=1))

    def _remainders(self, step_weights: Array) -> Array:
        """A lower bound on what follows p steps that end in a support, infinite where the end is out of reach."""
        steps = len(step_weights)
        children = self.children(np.arange(len(self.digits)))
        rest = np.full((steps + 1, len(self.digits) + 1), np.inf)  # the last entry: no such child
        finished = (self.digits != 1).all(axis=1) & ((self.digits == 2) | (self.end == 0)).all(axis=1)
        rest[steps, :-1][finished] = 0.0
        least = np.append(self.least, 0.0)
        for p in range(steps - 1, -1, -1):
            rest[p, :-1] = (step_weights[p] * least + rest[p + 1])[children].min(axis=1)
            # standing still: a repeated step of what is already final
            still = np.where(finished, step_weights[p] * self.least + rest[p + 1, :-1], np.inf)
            rest[p, :-1] = np.minimum(rest[p, :-1], still)
        return rest


def _grow(certificate: Certificate, tables: _Tables, end: Array, width: int, run: Run) -> None:
    """One search that keeps at most `width` prefixes per layer; what is dropped goes into the bound."""
    weights = certificate.step_weights
    steps, d = certificate.models.shape
    sequences = np.zeros((1, 0), np.int64)
    supports = np.zeros(1, np.int64)
    forms = np.zeros((d + 1, d + 1, 1))
    bounds = np.full(1, -np.inf)
    dropped = np.inf
    for p in range(steps):
        if run.stopped():
            certificate.raise_bound(min(dropped, bounds.min()))
            return
        children = np.concatenate([tables.children(supports), supports[:, None]], axis=1)  # the last: stand still
        bound = np.full(children.shape, np.inf)
        for chunk in np.array_split(np.arange(len(supports)), -(-len(supports) // CHUNK)):
            parent, move = np.nonzero(np.isfinite(tables.rest[p + 1, children[chunk]]))
            grown = _append(tables, forms[:, :, chunk[parent]], children[chunk][parent, move], move, weights[p])
            values, _ = schur_values(grown, np.abs(grown[np.arange(d), np.arange(d)]))
            values += tables.rest[p + 1, children[chunk][parent, move]]
            bound[chunk[parent], move] = np.maximum(values, bounds[chunk[parent]])
        certificate.nodes += int(np.isfinite(bound).sum())
        order = np.argsort(bound, axis=None, kind="stable")
        order = order[bound.ravel()[order] < certificate.objective - certificate.tolerance]
        if len(order) > width:
            dropped = min(dropped, bound.ravel()[order[width]])
        if not len(order):
            break
        parents, moves = np.unravel_index(order[:width], bound.shape)
        forms = _append(tables, forms[:, :, parents], children[parents, moves], moves, weights[p])
        supports, bounds = children[parents, moves], bound[parents, moves]
        repeated = sequences[parents, -1] if p else np.zeros(len(parents), np.int64)
        features = np.where(moves == 2 * d, repeated, moves % d)
        sequences = np.concatenate([sequences[parents], features[:, None]], axis=1)
    else:
        certificate.offer(sequences[0], constrained_path(certificate.cost, weights, sequences[0], end=end))
        run.step(certificate.objective, steps)
        if len(bounds) > 1:
            dropped = min(dropped, bounds[1])
    certificate.raise_bound(min(dropped, certificate.objective - certificate.tolerance))


def _append(
    tables: _Tables, forms: Array, supports: NDArray[np.int64], moves: NDArray[np.int64], weight: float
) -> Array:
    """The cost-to-come after one more step: minimise out the old coefficient, add the new cost."""
    d = len(tables.end)
    batch = np.arange(len(moves))
    still = moves == 2 * d
    features = np.where(still, 0, moves % d)
    columns = forms[:, features, batch]
    old = forms[features, features, batch]
    kept = (old > 1e-12 * np.maximum(tables.diagonal[features] * weight, old)) & ~still
    inverse = np.where(kept, 1 / np.where(kept, old, 1.0), 0.0)
    grown = forms - columns[:, None] * (columns * inverse)
    moved = np.flatnonzero(~still)
    grown[features[moved], :, moved] = 0.0
    grown[:, features[moved], moved] = 0.0
    return grown + weight * tables.forms(supports)
