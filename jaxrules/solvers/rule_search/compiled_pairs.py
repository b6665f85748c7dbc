"""Compiled histograms of pairs of partitions, for values that are sums of quotients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.space import IN_SPAN, Partition

Floats = NDArray[np.float64]
BoundsOfPairs = Callable[[NDArray[np.intp]], Floats]
"""Returns an upper bound on the values of each pair of partitions, given their places, (pairs,
2).
"""
_NANOSECONDS = 4_000_000
"""How long the bounds of some pairs may take, before the clock is asked."""
_PER_TERM, _PER_PAIR = 0.13, 20_000
"""The nanoseconds that a pair of partitions takes: for each row and term, and in addition."""


class CompiledPairs:
    """The sums over classes of G^2 / (ridge + H - |B|^2) of pairs of propositions.

    Args:
        terms: g, h and the corrective terms, (classes, terms of one, merged rows).
        ridge: positive.
    """

    def __init__(self, terms: Floats, ridge: float) -> None:
        from jaxrules.solvers.rule_search.kernels.vectors import padded

        self.terms, self.n_terms, self.ridge = terms, terms.shape[1], ridge
        self.rows = padded(terms)
        self.cells: NDArray[np.uint8] | None = None  # of all partitions, once they are needed

    def of_cells(self, partitions: Sequence[Partition]) -> list[Floats]:
        """The sums over the rows of the cells of each partition, of one class after another,
        (classes x terms, cells).
        """
        from jaxrules.solvers.rule_search.kernels.vectors import add_by_groups

        if not partitions:
            return []
        n_classes, _, width = self.rows.shape
        sizes = [len(part.members) for part in partitions]
        found = np.zeros((n_classes, len(partitions), max(sizes), width))
        cells = self._cells(partitions)
        for of_class, sums in zip(self.rows, found, strict=True):
            add_by_groups(of_class, cells, sums)
        return [
            found[:, k, :size, : self.n_terms].transpose(0, 2, 1).reshape(-1, size)
            for k, size in enumerate(sizes)
        ]

    def _cells(self, partitions: Sequence[Partition]) -> NDArray[np.uint8]:
        """The cell of every row in every partition, (partitions, rows)."""
        if self.cells is None:
            self.cells = np.stack([part.cell for part in partitions])
        return self.cells

    def values(self, a: Partition, b: Partition) -> Floats:
        """The values of all pairs of their propositions, (of a, of b)."""
        from jaxrules.solvers.rule_search.kernels.class_pairs import add_rows, add_values

        found, width = np.zeros((len(a.propositions), len(b.propositions))), self.rows.shape[2]
        for of_class in self.rows:
            joint = np.zeros((len(a.members), len(b.members) * width))
            add_rows(of_class, a.cell, b.cell, joint)
            add_values(joint, width, self.ridge, IN_SPAN, a.chain, b.chain, found)
        return found

    def bounds(self, partitions: Sequence[Partition]) -> BoundsOfPairs | None:
        """A function for upper bounds on `values`; None if rounding might exceed the ridge, so
        that there are no useful ones.
        """
        from jaxrules.solvers.rule_search.kernels.pair_bounds import (
            Halves,
            allowance,
            bounds_of_pairs,
            quantised,
        )

        # Term by term, so that no copy of all terms is made.
        sizes = np.array([[np.abs(one).sum() for one in of_class] for of_class in self.terms])
        slack = allowance(sizes, self.terms.shape[2])
        if not (partitions and slack[:, 1].max() < self.ridge / 1000):
            return None
        units = quantised(self.terms, sizes, self.rows)
        cells = self._cells(partitions)
        halves = Halves.of(
            [part.halves for part in partitions], [len(part.members) for part in partitions]
        )
        return lambda pairs: bounds_of_pairs(
            units, self.n_terms, cells, pairs, halves, self.ridge, IN_SPAN, slack
        )

    @property
    def at_once(self) -> int:
        """How many pairs to bound between two looks at the clock."""
        per_pair = self.rows.size * _PER_TERM + len(self.rows) * _PER_PAIR
        return max(8, int(_NANOSECONDS / per_pair))
