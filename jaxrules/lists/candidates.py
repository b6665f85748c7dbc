"""The conditions that an exact rule list chooses from, on rows merged into groups."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Schema, Table
from jaxrules.lists.weighed_bits import WeighedBits, weighed_bits
from jaxrules.rules.conditions import Conjunctions, PropositionPool
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import Activations, check_memory
from jaxrules.tools.bits import Words, distinct, pack, take_columns, transposed, unpack

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MULTIPLIED_AT_ONCE = 1 << 22
"""Rows x conditions multiplied at once, between two checks of the clock."""
_MET_AT_ONCE = 1 << 20
"""The same for the words of bits that are met."""
_MOST_COUNTED = 1 << 24
"""float32 holds all integers below."""
_MOST_REGROUPED = 1 << 26
"""Rows x conditions up to which equal rows are merged again."""


@dataclass(frozen=True, eq=False)
class ListCandidates:
    """Conditions, each a set of parts (literals, or the user's rules), on rows merged into groups.

    Attributes:
        parts: that conditions are made of.
        members: the parts of every condition, ascending, then -1: int (conditions, most parts).
        covers: the groups that each covers, bits (conditions, words).
        lengths: the number of literals of each, (conditions,).
        labels: which labels a rule with each may have, bool (conditions, classes).
        uses: which of the required features each uses, as bits, (conditions,).
        group: the group of every row.
        counts: the weight of every class in every group, (groups, classes).
        defaults: which labels the default may be, bool (classes,).
        penalty: of a literal.
        required: the bits of all required features.
        local_penalty: of a rule that a row reads, times the weight of the row.
        complete: whether there was time for all conditions.
        kept: what copies with other penalties share.
    """

    parts: Conjunctions
    members: NDArray[np.int64]
    covers: Words
    lengths: Floats
    labels: Bools
    uses: NDArray[np.uint64]
    group: NDArray[np.intp]
    counts: Floats
    defaults: Bools
    penalty: float
    required: np.uint64
    local_penalty: float = 0.0
    complete: bool = True
    kept: dict[str, WeighedBits] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.covers)

    @property
    def n_groups(self) -> int:
        return len(self.counts)

    @property
    def n_classes(self) -> int:
        return self.counts.shape[1]

    @cached_property
    def prices(self) -> Floats:
        """The penalty of each condition, (conditions,)."""
        return self.penalty * self.lengths

    @property
    def bits(self) -> WeighedBits:
        """The conditions by the bits that weigh them."""
        if "bits" not in self.kept:
            self.kept["bits"] = weighed_bits(self.covers, self.counts)
        return self.kept["bits"]

    def covered(self, conditions: Any) -> Bools:
        """Which groups some conditions cover, bool (conditions, groups)."""
        return unpack(self.covers[conditions], self.n_groups)

    def decided(self, conditions: tuple[int, ...]) -> Floats:
        """The weight of each class among the rows that each rule of a list, and its default,
        captures.
        """
        first = np.full(self.n_groups, len(conditions))
        # Backwards, so that earlier rules overwrite later ones
        for k, covered in reversed(list(enumerate(self.covered(list(conditions))))):
            first[covered] = k
        result = np.zeros((len(conditions) + 1, self.n_classes))
        np.add.at(result, first, self.counts)
        return result

    def labelled(self, conditions: tuple[int, ...]) -> tuple[NDArray[np.int32], Floats]:
        """The best labels of a list's rules and its default, (rules + 1,), and the weight that each
        classifies correctly.
        """
        decided = self.decided(conditions)
        allowed = np.concatenate([self.labels[list(conditions)], self.defaults[None]])
        labels = np.where(allowed, decided, -np.inf).argmax(axis=1)
        return labels.astype(np.int32), decided[np.arange(len(labels)), labels]

    def evaluate(self, conditions: tuple[int, ...]) -> float:
        """The objective of a list (SSRL Eq. 14, less the price of reading it), minus infinity if it
        lacks a required feature.
        """
        if np.bitwise_or.reduce(self.uses[list(conditions)], initial=np.uint64(0)) != self.required:
            return -np.inf
        right = self.labelled(conditions)[1].sum() - self.prices[list(conditions)].sum()
        return float(right - self.local_penalty * rules_read(self.decided(conditions)))

    def find(self, rules: Conjunctions, table: Table) -> tuple[int, ...]:
        """The conditions that cover the same of these rows as some rules; rules without such a
        condition are left out.

        Args:
            table: the rows that the conditions were made on.
        """
        some_row = np.unique(self.group, return_index=True)[1]
        # A rule that tells rows of a group apart may be taken for a condition. No harm: the list of
        # the conditions found is evaluated anew.
        covers = pack(rules.satisfied(table[some_row]).T)
        found: list[int] = []
        for cover in covers:
            equal = np.flatnonzero(self.covers[:, 0] == cover[0])  # first, as most differ here
            equal = equal[(self.covers[equal] == cover).all(axis=1)]
            found += equal[:1].tolist()
        return tuple(found)

    def rules(self, conditions: tuple[int, ...], schema: Schema) -> Conjunctions:
        """Some conditions as rules."""
        members = self.members[list(conditions)]
        if isinstance(self.parts, PropositionPool):
            return self.parts.conjunctions([row[row >= 0].tolist() for row in members], schema)
        return self.parts.with_schema(schema).take(members[:, 0])


def rules_read(decided: Floats) -> float:
    """The number of rules read before a prediction, summed over the weight: rule k is read by all
    rows that no earlier rule captures.

    Args:
        decided: the weight of every class that each rule captures, and the default, (rules + 1,
            classes).
    """
    captured = decided.sum(axis=1)
    return float(np.minimum(np.arange(1, len(captured) + 1), len(captured) - 1) @ captured)


def candidates_of(
    parts: Conjunctions,
    table: Table,
    class_weights: Floats,
    *,
    constraints: Constraints,
    penalty: float,
    defaults: Bools,
    max_length: int | None,
    least: float,
    per_literal: float = 0.0,
    most: float = math.inf,
    stopped: Callable[[], bool] = lambda: False,
) -> ListCandidates:
    """The conditions that a list may use.

    Args:
        parts: literals; or, with `max_length` None, the conditions themselves.
        table: the rows.
        class_weights: the weight of every class in every row, (rows, classes).
        constraints, penalty, defaults: see `ListCandidates`.
        max_length: the most literals of a condition.
        least: the least weight that a condition made of literals covers.
        per_literal: the same for each of its literals.
        most: with more conditions, long ones are left out.
        stopped: checked between parts; if True, long conditions may be missing,
            see `ListCandidates.complete`.

    Raises:
        ValueError: if there are none, or too many for the memory.
    """
    n_classes = class_weights.shape[1]
    rows = Activations.of(parts, table)
    if rows.n_patterns > table.n_rows // 2 and not stopped() and alike(class_weights):
        every = np.arange(table.n_rows)  # hardly any rows are equal: counting each is faster
        rows = Activations(take_columns(rows.bits, rows.n_patterns, rows.pattern), every)
    totals = rows.totals(class_weights)
    if (np.count_nonzero(totals, axis=1) == 1).all():
        rows, totals = _by_class(rows, totals)
    # Tags of a conjunction are the AND of its literals' tags: the labels that all of them allow,
    # and the complement of the required features that any of them uses, hence the inversion.
    tags = np.concatenate(
        [pack(constraints.allows(parts, n_classes)), ~constraints.uses(parts)[:, None]], axis=1
    )
    if max_length is None:
        members, found, complete = *_distinct(rows, tags, parts.propositions), True
    else:
        weights = totals.sum(axis=1)
        limits = _Limits(max_length, least, per_literal, most)
        members, found, complete = _conjoined(rows, weights, tags, limits, stopped)
    words = rows.bits.shape[1]
    labels = unpack(np.ascontiguousarray(found[:, words:-1]), n_classes)
    kept = labels.any(axis=1)
    members, found, labels = members[kept], found[kept], labels[kept]
    if not len(members):
        raise ValueError(
            "no condition is available: no column of X varies across the cut points, or "
            "min_support, forbidden and monotone exclude every condition"
        )
    covers, group = np.ascontiguousarray(found[:, :words]), rows.pattern
    if rows.n_patterns * len(covers) <= _MOST_REGROUPED:
        # more rows may be equal without the dropped literals
        merged = Activations.of_words(transposed(covers, rows.n_patterns), len(covers))
        covers, group, totals = merged.bits, merged.pattern[group], merged.totals(totals)
    # Index -1, which pads `members`, counts no literal.
    propositions = np.append(parts.propositions, 0)
    return ListCandidates(
        parts,
        members,
        covers,
        propositions[members].sum(axis=1).astype(np.float64),
        labels,
        ~found[:, -1],
        group,
        totals,
        defaults,
        penalty,
        np.uint64((1 << len(constraints.required)) - 1),
        complete=complete,
    )


def _by_class(rows: Activations, totals: Floats) -> tuple[Activations, Floats]:
    """The groups of a class in a row, if each has one: `weighed_bits` then takes whole words."""
    order = np.argsort(totals.argmax(axis=1), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows = Activations(take_columns(rows.bits, len(order), order), place[rows.pattern])
    return rows, totals[order]


class _Limits(NamedTuple):
    """Which conditions are made; see `candidates_of`."""

    max_length: int
    least: float
    per_literal: float
    most: float

    def enough(self, weights: NDArray[Any], length: int) -> NDArray[np.bool_]:
        """Which covered weights suffice for a condition of this length."""
        # 1e-12 allows for rounded sums; `tiny` excludes conditions that hold for no row.
        least = max(self.least, length * self.per_literal) * (1 - 1e-12)
        least = np.float64(max(least, np.finfo(float).tiny))  # not rounded to float32
        return np.asarray(weights >= least)


def _distinct(
    rows: Activations, tags: Words, lengths: NDArray[np.integer]
) -> tuple[NDArray[np.int64], Words]:
    """Given conditions that hold on some rows and not on all, the shortest of each set of equal
    ones; and their rows, followed by their tags.
    """
    keys = np.concatenate([rows.bits, tags], axis=1)
    size = np.bitwise_count(rows.bits).sum(axis=1)
    order = np.argsort(lengths, kind="stable")
    order = order[(size[order] > 0) & (size[order] < rows.n_patterns)]
    members = np.sort(order[distinct(keys[order])[0]])[:, None]
    return members, keys[members[:, 0]]


def alike(class_weights: Floats) -> bool:
    """Whether each row has one class, and all rows of a class have the same weight."""
    single = (np.count_nonzero(class_weights, axis=1) == 1).all()
    return bool(
        single and ((class_weights == 0) | (class_weights == class_weights.max(axis=0))).all()
    )


def _conjoined(
    literals: Activations,
    weights: Floats,
    tags: Words,
    limits: _Limits,
    stopped: Callable[[], bool],
) -> tuple[NDArray[np.int64], Words, bool]:
    """All conjunctions of literals that cover enough, one of each set of equal ones.

    Args:
        literals: the rows that satisfy each.
        weights: of the distinct rows, positive.
        tags: further bits of each, (literals, words): a conjunction has the
            tags common to its literals.
        limits: which conditions are made.
        stopped: checked between parts; if True, longer conditions are left out.

    Returns:
        The literals of every condition, ascending, then -1; the rows that it covers, followed
        by its tags; and whether the set is complete. Of conditions with equal bits the first
        stays, shorter before longer.
    """
    counts = weights.sum() < _MOST_COUNTED and bool((weights == np.round(weights)).all())
    dtype: Any = (
        np.float32 if counts else np.float64
    )  # float32 holds counts exactly, in half the time
    check_memory(
        literals.n_patterns, literals.n_rules, np.dtype(dtype).itemsize + 1, what="literals",
        remedy="use fewer cut points, or fewer rows",
    )  # fmt: skip
    holds, weights = literals.holds().astype(dtype), weights.astype(dtype)
    keys = np.concatenate([literals.bits, tags], axis=1)
    members = np.flatnonzero(limits.enough(holds @ weights, 1))[:, None]
    kept = distinct(keys[members[:, 0]])[0]
    members, covers = members[kept], keys[members[kept, 0]]
    newest = 0
    # A condition is made once, from its literals but the last: a prefix covers at least as much, so
    # the least support excludes nothing by it. Nor do merged duplicates: if a prefix equals an
    # earlier condition, that one and the last literal make an equal condition, shorter or earlier
    # in the same order; the first condition with any given bits is always reached.
    for length in range(2, limits.max_length + 1):
        n_found = len(members)
        size = max(1, _MULTIPLIED_AT_ONCE // max(1, literals.n_patterns))
        pairs = [np.zeros((2, 0), np.int64)]
        for start in range(newest, len(members), size):
            if stopped():
                return members, covers, False
            some = slice(start, start + size)
            both = (
                unpack(covers[some, : literals.bits.shape[1]], literals.n_patterns)
                * weights
                @ holds.T
            )
            rows, added = np.nonzero(
                limits.enough(both, length) & (np.arange(len(holds)) > members[some, -1:])
            )
            pairs.append(np.stack([rows + start, added]))
            n_found += len(rows)
            if n_found > limits.most:
                return members, covers, False
        parent, added = np.concatenate(pairs, axis=1)
        if not len(parent):
            break
        check_memory(
            literals.n_patterns, len(members) + len(parent), 0.5, what="conditions",
            remedy="lower max_length, raise min_support, or use fewer cut points",
        )  # fmt: skip
        longer = _with_met(covers, parent, keys, added, stopped)
        if longer is None:
            return members, covers, False
        grown = np.concatenate([members[parent], added[:, None]], axis=1)
        members = np.concatenate([np.pad(members, ((0, 0), (0, 1)), constant_values=-1), grown])
        # Duplicates come after their firsts, so that conditions before `newest` keep their places.
        newest, covers = len(covers), longer
        kept = distinct(covers)[0]
        if len(kept) < len(covers):
            members, covers = members[kept], covers[kept]
    return members, covers, True


def _with_met(
    covers: Words,
    parent: NDArray[np.int64],
    keys: Words,
    added: NDArray[np.int64],
    stopped: Callable[[], bool],
) -> Words | None:
    """The bits of conditions, then of some with one literal more; None if there was no time."""
    n = len(covers)
    both = np.empty((n + len(parent), covers.shape[1]), covers.dtype)
    both[:n] = covers
    size = max(1, _MET_AT_ONCE // covers.shape[1])
    for start in range(0, len(parent), size):
        if stopped():
            return None
        some = slice(start, start + size)
        met = both[n + start : n + start + size]
        np.bitwise_and(covers[parent[some]], keys[added[some]], out=met)
    return both
