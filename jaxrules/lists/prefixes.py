"""Branch-and-bound over the prefixes of rule lists.

A prefix of a list matters only through the rows that it has not captured: the best label of a rule
is the heaviest class among the rows that it is the first to cover. So the search is over conditions
alone, and of two prefixes of equal length that capture the same rows the better one stays. Rows
that no condition distinguishes form one group.

**Bound.** Let a group weigh n_l in class l, and d be the default label. Beyond what a prefix and
the default classify correctly, a group can add at most max_l n_l - n_d, its potential. A list with
m further rules adds at most the remaining potential, less the penalty of the cheapest rule; and at
most the m greatest potentials of conditions on the remaining rows, each less its penalty. With a
local penalty, all rows that the prefix leaves pay for reading one further rule.

Pairs of rows of two classes that few conditions split give another bound (`row_pairs`).

**The last two rules** are found together unless there are too many conditions: the second is
examined only if its gain, with what the first may take from it at its expense, could suffice
(`prefix_kernels.finish`). What two conditions have in common bounds this; it is counted on all
rows, and again on the rows that a prefix with many children leaves (`pair_tables`).

**Weights** are counted by the bit where they have a common unit (`weighed_bits`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.lists.candidates import ListCandidates
from jaxrules.lists.pair_tables import PairTables
from jaxrules.solvers import layered
from jaxrules.solvers.layered import Children, LayeredCertificate, never
from jaxrules.tools.bits import Words, pack, unpack

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Choice = tuple[int, ...]
"""A list: its conditions, in order."""

LAYERS = tuple(4**k for k in range(7, 17))
"""Conditions examined per layer by successive searches, which sets the number of prefixes: each is
wider than the one before.
"""
TOLERANCE = 1e-11
"""Objectives that differ by less than this share of the weight are equal: sums are rounded."""
_MOST_DENSE = 1 << 24
"""The most groups x conditions for which covers are also kept as numbers: 128 MiB."""
_MOST_PAIRED = 2048
"""The most conditions for which the last two rules are found together."""
_MOST_ADDED = 1 << 24
"""The same for pairs of conditions times words of their rows, if weights are no bits: nothing looks
at the clock while a prefix is examined.
"""
_FAMILY = 24
"""What pairs have in common is counted on the rows that a prefix leaves if it has at least one
child for so many conditions and groups: then it takes no longer than what it spares.
"""
_EVALUATED_AT_ONCE = 1 << 20
"""Conditions, or pairs of them, examined between two checks of the clock."""
_SOME_SECONDS = 13_000_000, 16
"""Conditions that can be examined in some seconds if their bits take at most this many words."""


def in_some_seconds(words: int) -> float:
    """The conditions that can be examined in some seconds if their bits take so many words."""
    most, short = _SOME_SECONDS
    return most * min(1.0, short / words)


class Layer(NamedTuple):
    """Prefixes of equal length."""

    free: Words  # the groups that they have not captured, (prefixes, words)
    values: Floats  # correct weight of their rules minus their penalties
    used: NDArray[np.uint64]  # the required features that they use
    parents: Parents | None = None  # of a last layer that comes parent by parent


class Parents(NamedTuple):
    """The prefixes of a layer without their last rules."""

    free: Words  # as in `Layer`, (parents, words)
    of: Indices  # the parent of each prefix, ascending
    last: Indices  # the condition that each prefix adds


class Prefixes(layered.LayeredProblem[Layer, Choice]):
    """The best list of at most `max_rules` candidates. A move is one condition, or the last
    two: (r, q), q -1 for none.

    Attributes:
        candidates: the conditions, and the weight of every class in every group.
        max_rules: the most rules.
        listed: the most children listed per chunk of prefixes, the most promising ones; set it with
            the width.
        evaluations: the number of conditions tried after prefixes; 16 that are only compared with
            bounds count as one.
    """

    def __init__(self, candidates: ListCandidates, max_rules: int) -> None:
        self.candidates, self.max_rules = candidates, max_rules
        # If weights are no bits, an examination adds them row by row.
        words = 1 if len(self.given[3]) else candidates.covers.shape[1]
        # Of a prefix, all second rules are tried for about one of eight first rules.
        both = len(candidates) ** 2 // 8
        self.pairs = self.by_parents = (
            max_rules > 1 and len(candidates) <= _MOST_PAIRED and both * words <= _MOST_ADDED
        )
        self.depth = max_rules - 1 if self.pairs else max_rules
        tried = both if self.pairs else len(candidates)
        self.chunk = max(1, _EVALUATED_AT_ONCE // max(1, tried * words))
        self.listed = 1 << 62
        # The free groups of open children take at most 2^26 words, 512 MiB.
        self.max_open = min(self.max_open, (1 << 26) // candidates.covers.shape[1])
        self.evaluations = 0

    @cached_property
    def given(self) -> tuple[Any, ...]:
        """The input of the kernels, see `prefix_kernels.Given`."""
        c = self.candidates
        n_bits = 64 * c.covers.shape[1]
        counts = np.zeros((n_bits, c.n_classes + 1))
        counts[: c.n_groups, :-1] = c.counts
        counts[: c.n_groups, -1] = c.counts.max(axis=1)
        return (
            c.covers,
            counts,
            *c.bits,
            c.prices,
            np.ascontiguousarray(c.labels.T),
            c.defaults,
            c.uses,
            c.required,
            c.local_penalty,
        )

    @cached_property
    def dense(self) -> Floats | None:
        """`dense` of `prefix_kernels.expand`. There are three ways to weigh: bits if all weights
        have a common unit; else rows of numbers if they fit; else group by group.
        """
        covers = self.candidates.covers
        n_bits, place = 64 * covers.shape[1], self.given[3]
        if len(place) or n_bits * len(covers) > _MOST_DENSE:
            return None
        return np.ascontiguousarray(unpack(covers, n_bits).T.astype(np.float64))

    @cached_property
    def row_pairs(self) -> tuple[Any, ...]:
        """`prefix_kernels.RowPairs`: none, or those of `pair_rows`."""
        from jaxrules.lists import prefix_kernels

        return tuple(prefix_kernels.no_pairs())

    @cached_property
    def margin(self) -> float:
        """Objectives that differ by less are equal, but for rounding."""
        return TOLERANCE * float(self.candidates.counts.sum())

    @cached_property
    def tables(self) -> PairTables:
        """What pairs of conditions have in common."""
        return PairTables(self.candidates, self.given)

    def certificate(self, start: Choice = (), **options: Any) -> LayeredCertificate[Choice]:
        """A certificate that starts from some list."""
        c = self.candidates
        return LayeredCertificate(
            start,
            c.evaluate,
            float(c.counts.max(axis=1).sum()),
            "max",
            0.0,
            self.margin,
            **options,
        )

    def pair_rows(
        self, certificate: LayeredCertificate[Choice], stopped: Callable[[], bool] = never
    ) -> None:
        """Pair rows: this proves a bound on all lists, and bounds prefixes from now on."""
        from jaxrules.lists import row_pairs

        pairs, bound = row_pairs.paired(self.candidates, self.max_rules, stopped)
        certificate.prove(bound)
        self.row_pairs = tuple(pairs)

    def search(
        self,
        certificate: LayeredCertificate[Choice],
        evaluations: int,
        stopped: Callable[[], bool] = never,
    ) -> None:
        """Search once, with layers for which about so many conditions are examined."""
        width = max(1, evaluations // len(self.candidates))
        self.listed = 8 * width
        layered.search(self, certificate, (width,), stopped)

    def root(self) -> Layer:
        return Layer(
            pack(np.ones((1, self.candidates.n_groups), bool)), np.zeros(1), np.zeros(1, np.uint64)
        )

    def children(self, states: Layer, some: slice, after: int, settled: float) -> Any:
        """Prefixes with one further rule, to which `after` may be added: `parents`, conditions,
        `bounds`, `reached` and `values` as in `Children`, for bounds above `settled`.
        """
        from jaxrules.lists import prefix_kernels  # numba loads when it is needed

        layer = (states.free[some], states.values[some], states.used[some])
        room = len(layer[0]) * len(self.candidates)
        self.evaluations += room
        kernels: Any = prefix_kernels
        arrays: list[Any] = [np.empty(room, np.int64) for _ in range(2)] + [
            np.empty(room) for _ in range(3)
        ]
        top = np.empty((self.candidates.n_classes + 1, after + 1))
        n = kernels.expand(
            self.given, self.dense, self.row_pairs, *layer, after, settled, *arrays, top,
            *kernels.room(self.given, self.dense),
        )  # fmt: skip
        return [array[:n].copy() for array in arrays]

    def expand(self, states: Layer, some: slice, step: int, incumbent: float) -> Children:
        settled = incumbent + self.margin
        # A last layer of pairs is solved outright; the others list children and their bounds.
        if self.pairs and step == self.depth - 1:
            return self._last_two(states, some, settled)
        parents, moves, bounds, reached, stops = self.children(
            states, some, self.max_rules - 1 - step, settled
        )
        promise, left_out = bounds + np.maximum(stops, reached), None
        kept = np.arange(len(parents))
        if len(parents) > self.listed:
            order = np.argpartition(-promise, self.listed)
            # The best list of the chunk is always listed; if it is twice, `keys` merges it.
            kept = np.append(order[: self.listed], stops.argmax())
            left_out = float(bounds[order[self.listed :]].max())
        moves = np.stack([moves[kept], np.full(len(kept), -1)], axis=1)
        return Children(
            parents[kept], moves, bounds[kept], reached[kept], stops[kept], promise[kept], left_out
        )

    def _last_two(self, states: Layer, some: slice, settled: float) -> Children:
        from jaxrules.lists import prefix_kernels

        kernels: Any = prefix_kernels
        start, end, _ = some.indices(len(states.free))
        prefixes, moves, values = np.zeros(0, np.int64), np.zeros((0, 2), np.int64), np.zeros(0)
        for family, shared, taken in self._families(states, start, end):
            prefix, first, second, value, looked = kernels.finish(
                self.given, self.dense, self.row_pairs, shared, taken, states.free[family],
                states.values[family], states.used[family], settled, self.margin,
                *kernels.room(self.given, self.dense),
            )  # fmt: skip
            self.evaluations += len(taken) * len(self.candidates) + looked
            if prefix >= 0:
                settled = value + self.margin
                prefixes, values = np.array([family.start - start + prefix]), np.array([value])
                moves = np.array([[first, second]])
        return Children(prefixes, moves, values, values)

    def _families(
        self, states: Layer, start: int, end: int
    ) -> Iterator[tuple[slice, tuple[Any, ...], Indices]]:
        """Some prefixes, parent by parent: which, what pairs of conditions have in common on rows
        of which they leave a part, and `taken` of `prefix_kernels.finish`.
        """
        parents, tables, c = states.parents, self.tables, self.candidates
        while start < end:
            first, stop, p = start, end, 0
            if parents is not None and len(tables.defaults):
                p = int(parents.of[start])
                first, stop = np.searchsorted(parents.of, [p, p + 1]).tolist()
            family = slice(start, min(stop, end))
            start = family.stop
            if parents is None or _FAMILY * (stop - first) < len(c) + c.n_groups:
                yield family, tables.everywhere, np.full(family.stop - family.start, -1)
            else:
                last = parents.last[family]
                yield family, tables.of(parents.free[p]), last if tables.exact else 0 * last - 1

    def keys(self, states: Layer, children: Children) -> Indices:
        # Dominance: of prefixes with equal free rows and equal required columns, the best stays.
        return np.column_stack([self._free(states, children), self._used(states, children)]).view(
            np.int64
        )

    def grow(self, states: Layer, children: Children, step: int) -> Layer:
        parents = None
        if self.pairs and step == self.depth - 2:
            parents = Parents(states.free, children.parents, children.moves[:, 0])
        return Layer(
            self._free(states, children), children.reached, self._used(states, children), parents
        )

    def _free(self, states: Layer, children: Children) -> Words:
        return states.free[children.parents] & ~self.candidates.covers[children.moves[:, 0]]

    def _used(self, states: Layer, children: Children) -> NDArray[np.uint64]:
        return states.used[children.parents] | self.candidates.uses[children.moves[:, 0]]

    def solution(self, moves: Indices) -> Choice:
        return tuple(move for move in moves.ravel().tolist() if move >= 0)
