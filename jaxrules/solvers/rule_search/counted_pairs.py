"""Histograms of pairs of partitions from the numbers of rows of every class.

Where many rows have equal terms (`row_classes`), the sums over a pair of cells follow from the
number of its rows of each class. These numbers are kept from search to search: a new rule divides
classes, and only the rows outside of the largest part of each are counted again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from jaxrules.rules.rows import Activations
from jaxrules.solvers.rule_search.compiled_pairs import BoundsOfPairs
from jaxrules.solvers.rule_search.objectives import Objective
from jaxrules.solvers.rule_search.row_classes import RowTerms
from jaxrules.solvers.rule_search.space import IN_SPAN, Partition, SearchSpace

Floats = NDArray[np.float64]
_BYTES, _BYTES_PER_ROW = 1 << 24, 96
"""The memory for counts: the greater of the first number and so much per row, which is what the
terms of all rows would take.
"""


class PairCounts:
    """The number of rows of every class in each pair of cells of some partitions.

    Attributes:
        of_rows: the class of every row at the last count.
        counts: (classes, pairs of cells), as of `count_pairs`.
    """

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self.partitions = partitions
        self.n_cells = np.array([len(part.members) for part in partitions], np.intp)
        d = len(partitions)
        self.first = np.zeros((d, d), np.intp)
        sizes = np.outer(self.n_cells, self.n_cells)[np.triu_indices(d)]
        self.size = int(sizes.sum())
        self.first[np.triu_indices(d)] = np.cumsum(sizes) - sizes
        self.of_rows: NDArray[np.intp] | None = None
        self.counts = np.zeros((0, self.size), np.uint32)

    def room(self, n_rows: int) -> int:
        """The number of classes that memory allows."""
        return max(_BYTES, _BYTES_PER_ROW * n_rows) // (4 * max(1, self.size))

    def update(self, of_rows: NDArray[np.uint16], n_classes: int) -> NDArray[np.intp]:
        """Count rows by these classes; returns the place in `counts` of each class."""
        from jaxrules.solvers.rule_search.kernels.counts import count_pairs

        place = self._kept(of_rows, n_classes)
        if self.of_rows is None:
            self.counts = np.zeros((self.room(len(of_rows)), self.size), np.uint32)
        # Rows of new classes, one class after another.
        start, new = np.count_nonzero(place >= 0), np.flatnonzero(place < 0)
        moved = np.flatnonzero((place < 0)[of_rows])
        moved = moved[np.argsort(of_rows[moved], kind="stable")]
        ends = np.cumsum([0, *np.bincount(of_rows[moved], minlength=n_classes)[new]])
        added = self.counts[start : start + len(new)]
        cells = np.stack([part.cell[moved] for part in self.partitions])
        count_pairs(cells, ends, self.n_cells, added)
        if self.of_rows is not None:  # what a class keeps is what others do not take
            for earlier, counts in zip(self.of_rows[moved[ends[:-1]]], added, strict=True):
                self.counts[earlier] -= counts
        place[new] = start + np.arange(len(new))
        self.of_rows = place[of_rows]
        return place

    def _kept(self, of_rows: NDArray[np.uint16], n_classes: int) -> NDArray[np.intp]:
        """The place of each class that is the largest part of an earlier one, -1 for others; all
        are new unless each is a part of one.
        """
        place = np.full(n_classes, -1)
        if self.of_rows is not None:
            n_before = int(self.of_rows.max()) + 1
            both = np.bincount(self.of_rows * n_classes + of_rows, minlength=n_before * n_classes)
            parts = both.reshape(n_before, n_classes)
            if (np.count_nonzero(parts, axis=0) == 1).all():
                place[parts.argmax(axis=1)] = np.arange(n_before)
            else:
                self.of_rows = None
        return place


class CountedPairs:
    """As `CompiledPairs`, of one class of the target.

    Args:
        classes: with the class of every row.
        ridge: positive.
        counts: of this search alone, updated.
    """

    at_once = 16

    def __init__(self, classes: RowTerms, ridge: float, counts: PairCounts) -> None:
        assert classes.of_rows is not None
        self.ridge, self.counts = ridge, counts
        self.n_terms, self.n_classes = classes.terms.shape
        self.terms = np.empty((self.n_classes, self.n_terms))
        self.terms[counts.update(classes.of_rows, self.n_classes)] = classes.terms.T
        of_class = np.bincount(classes.of_rows).astype(np.float64)
        self.sizes, self.n_rows = np.abs(classes.terms) @ of_class, len(classes.of_rows)
        self.places = {id(part): k for k, part in enumerate(counts.partitions)}

    def of_cells(self, partitions: Sequence[Partition]) -> list[Floats]:
        """The sums over the rows of the cells of each partition, (terms, cells)."""
        found = []
        for k, size in enumerate(self.counts.n_cells.tolist()):
            cells = self.counts.first[k, k] + np.arange(size) * (size + 1)
            found.append(self.terms.T @ self.counts.counts[: self.n_classes, cells])
        return found

    def _joint(self, a: int, b: int) -> Floats:
        """The sums over the rows of every pair of cells, (cells of a, cells of b x terms)."""
        first, size = self.counts.first[a, b], self.counts.n_cells[a] * self.counts.n_cells[b]
        counts = self.counts.counts[: self.n_classes, first : first + size].astype(np.float64)
        return (counts.T @ self.terms).reshape(self.counts.n_cells[a], -1)

    def values(self, a: Partition, b: Partition) -> Floats:
        """The values of all pairs of their propositions, (of a, of b)."""
        from jaxrules.solvers.rule_search.kernels.class_pairs import add_values

        found = np.zeros((len(a.propositions), len(b.propositions)))
        joint = self._joint(self.places[id(a)], self.places[id(b)])
        add_values(joint, self.n_terms, self.ridge, IN_SPAN, a.chain, b.chain, found)
        return found

    def bounds(self, partitions: Sequence[Partition]) -> BoundsOfPairs | None:
        """As of `CompiledPairs`."""
        from jaxrules.solvers.rule_search.kernels.pair_bounds import (
            Halves,
            allowance,
            bound_of_pair,
        )

        slack = allowance(self.sizes[None], self.n_rows)[0]
        if not slack[1] < self.ridge / 1000:
            return None
        halves = Halves.of([part.halves for part in partitions], self.counts.n_cells.tolist())

        def bounds(pairs: NDArray[np.intp]) -> Floats:
            return np.array([
                bound_of_pair(
                    self._joint(a, b).ravel(), self.n_terms, a, b, halves, self.ridge, IN_SPAN,
                    slack,
                )
                for a, b in pairs.tolist()
            ])  # fmt: skip

        return bounds


_kept: WeakKeyDictionary[Activations, PairCounts] = WeakKeyDictionary()


def counted_pairs(
    objective: Objective, space: SearchSpace, max_pairs: int | None
) -> CountedPairs | None:
    """Histograms of all pairs of partitions of a space; None if rows do not have a few classes, or
    there are more pairs.
    """
    classes, quotients = objective.row_classes, objective.quotients()
    if classes is None or quotients is None or not space.partitions:
        return None
    n_rows, n_classes = space.activations.n_patterns, classes.terms.shape[1]
    # Taken away while it is used, as other threads search in the same space.
    counts = _kept.pop(space.activations, None)
    if counts is None or counts.partitions is not space.partitions:
        counts = PairCounts(space.partitions)
    n_pairs = math.comb(len(space.partitions) + 1, 2)
    if n_rows != space.activations.n_rows or n_classes > counts.room(n_rows):
        return None
    if max_pairs is not None and n_pairs > max_pairs:
        return None
    return CountedPairs(classes, quotients[1], counts)


def keep(space: SearchSpace, pairs: CountedPairs) -> None:
    """Keep the counts for the next search, which may begin with them."""
    _kept[space.activations] = pairs.counts
