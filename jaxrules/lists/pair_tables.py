"""What pairs of conditions have in common, on all rows or on those that a prefix leaves: the tables
of `prefix_kernels.Shared`.

On all rows, popcounts make them. On some rows, matrix products over the fewer groups do, of those
inside or of those outside, which are subtracted from the tables of all rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.lists.candidates import ListCandidates
from jaxrules.tools.bits import Words, pack, unpack

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MOST_SHARED = 1 << 23
"""The most pairs of conditions, for every default, for which tables are kept: 192 MiB each, at most
two at once.
"""


class PairTables:
    """The tables of some candidates.

    Args:
        candidates: the conditions.
        given: `prefix_kernels.Given` of them.

    Attributes:
        defaults: the labels that the default may have; none if the tables would be too large, or
            weights are no bits. The tables are then empty.
        exact: whether the tables say what the weights are after a prefix: they do not round, there
            are two classes, and no features are required.
    """

    def __init__(self, candidates: ListCandidates, given: tuple[Any, ...]) -> None:
        self.candidates, self.given = candidates, given
        self.defaults = np.flatnonzero(candidates.defaults)
        _, _, _, place, _, _, units = given[:7]
        if not len(place) or len(self.defaults) * len(candidates) ** 2 > _MOST_SHARED:
            self.defaults = self.defaults[:0]
        self.whole = bool((units == np.floor(units)).all())
        two = candidates.n_classes == 2 and not candidates.required
        self.exact = bool(len(self.defaults)) and self.whole and two
        # of every class in a group, and of its heaviest
        self.counts = np.column_stack([candidates.counts, candidates.counts.max(axis=1)])
        self.pure = bool((np.count_nonzero(candidates.counts, axis=1) <= 1).all())
        self._latest: tuple[Words, tuple[Any, ...]] | None = None

    @cached_property
    def everywhere(self) -> tuple[Any, ...]:
        """The tables of all rows."""
        return self._with_gains(np.ones(len(self.counts), bool), self._all)

    def of(self, free: Words) -> tuple[Any, ...]:
        """The tables of some groups; the latest ones are kept."""
        if self._latest is None or not np.array_equal(self._latest[0], free):
            inside = unpack(free[None], len(self.counts))[0]
            if inside.all() or not len(self.defaults):
                return self.everywhere
            if 2 * inside.sum() <= len(inside):
                parts = [part.astype(np.float64) for part in self._products(inside)]
            else:
                outside = self._products(~inside)
                parts = [a - b for a, b in zip(self._all, outside, strict=True)]
            self._latest = free, self._with_gains(inside, parts)
        return self._latest[1]

    @cached_property
    def _all(self) -> list[Floats]:
        """`spoiled`, `lost`, `other` and `alone` of all rows."""
        from jaxrules.lists import prefix_kernels

        n, K = len(self.candidates), self.candidates.n_classes
        shape = (len(self.defaults), n, n)
        spoiled, lost, other = np.empty(shape), np.empty(shape), np.empty(shape if K == 2 else 0)
        alone = np.empty((K + 1, n + 1))
        kernels: Any = prefix_kernels
        if len(self.defaults):
            kernels.share(self.given, spoiled, lost, other.reshape(-1, n, n), alone)
            alone[:, n] = self.counts.sum(axis=0)
        return [spoiled, lost, other.reshape(-1, n, n), alone]

    def _products(self, inside: Bools) -> list[NDArray[Any]]:
        """The same of some groups."""
        c, K = self.candidates, self.candidates.n_classes
        # Whole numbers below 2^24 are exact as float32.
        kind: Any = np.float32 if self.whole and self.counts.sum() < 1 << 24 else np.float64
        weights = self.counts[inside].T.astype(kind)
        holds = unpack(c.covers, c.n_groups)[:, inside].astype(kind)

        def common(weight: NDArray[Any]) -> NDArray[Any]:
            return (holds * weight) @ holds.T

        spoiled, lost, other = [], [], []
        for d in self.defaults.tolist():
            rival = weights[1 - d] if K == 2 else np.zeros_like(weights[d])
            lost.append(common(weights[d] - rival))
            if K == 2:
                other.append(common(rival))
                pure = lost[-1] + other[-1] if self.pure else None
                spoiled.append(common(weights[2] - rival) if pure is None else pure)
            else:
                spoiled.append(lost[-1])
        none = np.empty((0, len(c), len(c)), kind)
        alone = np.column_stack([weights @ holds.T, weights.sum(axis=1)])
        return [np.array(spoiled), np.array(lost), np.array(other) if other else none, alone]

    def _with_gains(self, inside: Bools, parts: list[Floats]) -> tuple[Any, ...]:
        """The tables of some groups, from the first four of them."""
        c, (spoiled, lost, other, alone) = self.candidates, parts
        n, K, required = len(c), c.n_classes, bool(c.required)
        if required:  # then the second rule may also have the default's label, and lose nothing
            lost = np.maximum(lost, 0.0)
        gain, ahead = np.zeros((2, len(self.defaults), n))
        for i, d in enumerate(self.defaults.tolist()):
            may = c.labels.T & ((np.arange(K) != d)[:, None] | required)
            gain[i] = np.where(may, alone[:K, :n], -np.inf).max(axis=0) - alone[d, :n] - c.prices
            ahead[i] = (gain[i] + lost[i]).max(axis=1)
        place = self.given[3]
        bits = pack((inside[place] & (place >= 0))[None])[0]
        return spoiled, lost, other, alone, gain, ahead, bits
