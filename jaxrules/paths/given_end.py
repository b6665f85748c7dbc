"""Certified explanations of a given model: the best path that ends in it, P_K(beta) of Section 2.1.

The last change of a coefficient sets it to its final value: call that step a pin, and all others
free. A state is a prefix of free steps and pins. Its least cost is a quadratic form of the free
coefficients S; the pinned ones F have their final values and may not change again. There are 3^d
supports (S, F), each with a least cost m(S, F). A dynamic program over them bounds every remainder
and finds which prefixes can still pin everything in time. The search grows prefixes layer by layer,
keeping the most promising.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxrules.paths.costs import RANK_TOLERANCE, Array, Sequence
from jaxrules.paths.problem import Changes, PathProblem, constrained_path
from jaxrules.paths.supports import schur_values
from jaxrules.solvers import layered
from jaxrules.solvers.layered import Children, LayeredCertificate, never

MAX_FEATURES = 11
"""Limited by the memory for 3^d supports."""
WIDTHS = (256, 4_000, 64_000, 1_000_000)
FREE, PIN = 1, 2


def search(
    problem: PathProblem,
    certificate: LayeredCertificate[Changes] | None = None,
    stopped: Callable[[], bool] = never,
) -> LayeredCertificate[Changes]:
    """The least-cost path of real steps to the problem's end, for at most MAX_FEATURES features;
    see `exact.search`.
    """
    certificate = certificate or problem.certificate()
    if not stopped():
        layered.search(_Pins(problem), certificate, WIDTHS, stopped)
    return certificate


class _GivenEndLayer(NamedTuple):
    supports: Sequence
    # cost-to-come of the free coefficients and the constant, shape (d + 1, d + 1, states)
    forms: Array


class _Pins(layered.LayeredProblem[_GivenEndLayer, Changes]):
    """Prefixes of free steps and pins. A support is a number with a digit 0, FREE or PIN for every
    feature.

    A move is a feature (a free step), d + a feature (its pin), or 2 d: stand still.
    """

    chunk = 500

    def __init__(self, problem: PathProblem) -> None:
        assert problem.end is not None
        d = problem.n_features
        self.problem, self.cost, self.end = problem, problem.cost, problem.end
        self.depth = problem.steps
        self.powers = 3 ** np.arange(d)
        self.digits = (np.arange(3**d)[:, None] // self.powers) % 3
        self.diagonal = np.diag(self.cost.curvature)
        self.rest = self._remainders()

    def forms(self, supports: Sequence) -> Array:
        """c as a quadratic form of the free coefficients and 1, shape (d + 1, d + 1, supports)."""
        d = len(self.end)
        digits = self.digits[supports].T
        # c(v + p), with v free and p pinned, is v'Qv - 2 (g - Qp)'v + c(p): a form in (v, -1), of
        # which Schur complements are taken.
        pinned = np.where(digits == PIN, self.end[:, None], 0.0)
        free = (digits == FREE).astype(np.float64)
        forms = np.zeros((d + 1, d + 1, len(supports)))
        forms[:d, :d] = self.cost.curvature[:, :, None] * free[:, None] * free
        forms[:d, d] = free * (self.cost.linear[:, None] - self.cost.curvature @ pinned)
        forms[d, :d] = forms[:d, d]
        forms[d, d] = self.cost(pinned.T)
        return forms

    def after(self, supports: Sequence) -> Sequence:
        """The supports after every move, shape (supports, 2 d + 1); -1 for those that change a
        pinned feature.
        """
        digits = self.digits[supports]
        # Setting a digit to 1 or 2 adds its difference times the digit's power of 3.
        moved = np.concatenate(
            [supports[:, None] + (to - digits) * self.powers for to in (FREE, PIN)], axis=1
        )
        return np.concatenate(
            [np.where(np.tile(digits == PIN, 2), -1, moved), supports[:, None]], axis=1
        )

    def _remainders(self) -> Array:
        """A lower bound on what follows p steps that end in a support, infinite if the end is out
        of reach; shape (steps + 1, supports + 1).
        """
        count = len(self.digits)
        scales = self.diagonal[:, None]
        chunks = np.array_split(np.arange(count), count // 4096 + 1)
        m = [schur_values(self.forms(some), scales)[0] for some in chunks]  # m(S, F)
        least = np.append(np.concatenate(m), 0.0)
        after = self.after(np.arange(count))
        rest = np.full((self.depth + 1, count + 1), np.inf)  # the last entry: no such support
        # rest_K is 0 if all features are final; rest_p is the least of alpha m + rest_p+1.
        finished = ((self.digits == PIN) | ((self.digits == 0) & (self.end == 0))).all(axis=1)
        rest[self.depth, :-1][finished] = 0.0
        for p in range(self.depth - 1, -1, -1):
            rest[p, :-1] = (self.problem.step_weights[p] * least + rest[p + 1])[after].min(axis=1)
        return rest

    def root(self) -> _GivenEndLayer:
        size = len(self.end) + 1
        return _GivenEndLayer(np.zeros(1, np.int64), np.zeros((size, size, 1)))

    def expand(self, states: _GivenEndLayer, some: slice, step: int, incumbent: float) -> Children:
        after = self.after(states.supports[some])
        # Infinite if too few steps are left to pin all features, and at -1 (a pinned one changed)
        parents, moves = np.nonzero(np.isfinite(self.rest[step + 1, after]))
        supports = after[parents, moves]
        grown = self._append(states.forms[:, :, some][:, :, parents], supports, moves, step)
        values, _ = schur_values(grown, np.abs(np.diagonal(grown)[:, :-1].T))
        bounds = values + self.rest[step + 1, supports]
        return Children(parents, moves, bounds, bounds)

    def grow(self, states: _GivenEndLayer, children: Children, step: int) -> _GivenEndLayer:
        parents, moves = children.parents, children.moves
        supports = self.after(states.supports[parents])[np.arange(len(moves)), moves]
        forms = self._append(states.forms[:, :, parents], supports, moves, step)
        return _GivenEndLayer(supports, forms)

    def _append(self, forms: Array, supports: Sequence, moves: Sequence, step: int) -> Array:
        """The cost-to-come after a further step: minimise out the old coefficient, add the cost of
        the new model.
        """
        d, weight = len(self.end), self.problem.step_weights[step]
        batch = np.arange(len(moves))
        still = moves == 2 * d
        features = np.where(still, 0, moves % d)
        columns = forms[:, features, batch]
        old = forms[features, features, batch]
        # Phi - Phi_i Phi_i' / Phi_ii: the old coefficient at its best; then alpha times the cost.
        kept = (old > RANK_TOLERANCE * np.maximum(self.diagonal[features] * weight, old)) & ~still
        inverse = np.where(kept, 1 / np.where(kept, old, 1.0), 0.0)
        grown = forms - columns[:, None] * (columns * inverse)
        moved = np.flatnonzero(~still)
        # The old coefficient is gone: the new one has no history, and costs count from this step.
        grown[features[moved], :, moved] = 0.0
        grown[:, features[moved], moved] = 0.0
        return grown + weight * self.forms(supports)

    def solution(self, moves: Sequence) -> Changes:
        """The best path of these features; to stand still sets the previous feature again."""
        d = len(self.end)
        features = moves % d
        for k in np.flatnonzero(moves == 2 * d):
            features[k] = features[k - 1] if k else 0
        return Changes(features, constrained_path(self.problem, features))
