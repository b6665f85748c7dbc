"""All conjunctions whose sum is large, not only the best one.

A conjunction covers a subset of the rows that any of its propositions covers, so neither the
positive nor the negative part of a sum over its rows exceeds that of its propositions. Depth first,
a prefix whose parts are both below the threshold is left with all that extend it. The last two
propositions are found by one product of matrices: the sums of all pairs within the rows of a
prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.space import SearchSpace, never

Floats = NDArray[np.float64]

_BLOCK = 1 << 23
"""Entries of the products between two questions whether to stop."""


class LargeSums(NamedTuple):
    """The conjunctions whose |sum| is at least a threshold.

    Attributes:
        propositions: of each conjunction, ascending, those of shorter ones repeated: (found,
            max_length).
        sums: (found,).
        threshold: every conjunction with an |sum| of at least this is among them. The given one, or
            a higher one if there were too many or the search was stopped (then infinite).
    """

    propositions: NDArray[np.int32]
    sums: Floats
    threshold: float


def large_sums(
    space: SearchSpace,
    terms: Floats,
    threshold: float,
    max_length: int,
    *,
    most: int,
    stopped: Callable[[], bool] = never,
) -> LargeSums:
    """All conjunctions of one to `max_length` propositions whose |sum| is at least a threshold.

    >>> space = SearchSpace.of(np.array([[1, 1], [1, 0], [0, 1]], bool))
    >>> found = large_sums(space, np.array([2.0, -3.0, 1.0]), 1.5, 2, most=10)
    >>> found.propositions.tolist(), found.sums.tolist()
    ([[0, 1], [1, 1]], [2.0, 3.0])

    Args:
        space: the propositions.
        terms: the number that is summed, of every group of rows, shape (groups,).
        threshold: positive.
        max_length: at least 1.
        most: the number of conjunctions that are kept. If more are found, those of the largest
            |sum| are, and the threshold rises.
        stopped: asked between products.
    """
    search = _LargeSumSearch(threshold, most, max_length)
    masks, every = space.masks, np.arange(len(space), dtype=np.int32)
    complete = all(
        not stopped() for _ in search.extend((), every, masks, np.asarray(terms, np.float64))
    )
    return search.result(complete)


class _LargeSumSearch:
    def __init__(self, threshold: float, most: int, max_length: int) -> None:
        self.threshold, self.most, self.length = threshold, most, max_length
        self.rules: list[NDArray[np.int32]] = [np.zeros((0, max_length), np.int32)]
        self.sums: list[Floats] = [np.zeros(0)]
        self.kept = 0

    def extend(
        self,
        prefix: tuple[int, ...],
        places: NDArray[np.int32],
        masks: NDArray[np.uint8],
        terms: Floats,
    ) -> Iterator[None]:
        """Examine what extends a prefix by some propositions; yields between products.

        Args:
            places: the propositions that may follow, ascending.
            masks: these, on the rows of the prefix, (rows, places).
            terms: of these rows.
        """
        used = terms != 0
        if not used.all():
            masks, terms = masks[used], terms[used]
        values = masks.astype(np.float64)
        gains = np.maximum(terms, 0.0) @ values
        losses = gains - terms @ values
        near = np.maximum(gains, losses) >= self.threshold
        places, values, masks = places[near], values[:, near], masks[:, near]
        left = self.length - len(prefix)
        if left != 2:
            self.add(prefix, places[:, None], (gains - losses)[near])
            if left > 2:
                for k, place in enumerate(places.tolist()):
                    rows = masks[:, k] > 0
                    yield from self.extend(
                        (*prefix, place), places[k + 1 :], masks[rows, k + 1 :], terms[rows]
                    )
            yield
            return
        weighted = values * terms[:, None]
        size = max(1, _BLOCK // max(1, values.size))
        for k in range(0, len(places), size):
            # The sum of a proposition with itself is its own, that of a shorter conjunction.
            sums = weighted[:, k : k + size].T @ values[:, k:]
            first, second = np.nonzero(np.abs(sums) >= self.threshold)
            upper = second >= first
            first, second = first[upper], second[upper]
            pairs = np.column_stack([places[k + first], places[k + second]])
            self.add(prefix, pairs, sums[first, second])
            yield

    def add(self, prefix: tuple[int, ...], last: NDArray[np.int32], sums: Floats) -> None:
        """Keep the conjunctions of a prefix and these propositions whose sums are large."""
        large = np.abs(sums) >= self.threshold
        rules = np.empty((int(large.sum()), self.length), np.int32)
        begin = len(prefix)
        rules[:, :begin] = prefix
        rules[:, begin : begin + last.shape[1]] = last[large]
        rules[:, begin + last.shape[1] :] = last[large][:, -1:]
        self.rules.append(rules)
        self.sums.append(sums[large])
        self.kept += len(rules)
        if self.kept > 2 * self.most:
            self.cut()

    def cut(self) -> None:
        """Keep no more than allowed, those of the largest sums."""
        rules, sums = np.concatenate(self.rules), np.concatenate(self.sums)
        if len(sums) > self.most:
            order = np.argpartition(-np.abs(sums), self.most)
            # All that are left out are below the first of them.
            self.threshold = float(np.nextafter(np.abs(sums[order[self.most]]), np.inf))
            kept = np.abs(sums) >= self.threshold
            rules, sums = rules[kept], sums[kept]
        self.rules, self.sums, self.kept = [rules], [sums], len(sums)

    def result(self, complete: bool) -> LargeSums:
        self.cut()
        return LargeSums(self.rules[0], self.sums[0], self.threshold if complete else float("inf"))
