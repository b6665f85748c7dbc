"""Which rules hold for which rows, as bits, with equal rows merged.

The rules that a row satisfies form a short bit pattern, which many rows share (Adult with 1164
rules: 29304 rows have 11282 patterns). A loss that depends on a row only through its pattern can be
summed per pattern. `Activations` stores one bit per pattern and rule; wider views are made on
request.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Table
from jaxrules.rules.conditions import Conjunctions
from jaxrules.tools import placement
from jaxrules.tools.bits import (
    Words,
    distinct,
    n_words,
    numbered,
    pack,
    take_columns,
    transposed,
    unpack,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Floats = NDArray[np.float64]
Places = NDArray[np.integer] | NDArray[np.bool_] | Sequence[int] | slice | int
_CACHED = 1 << 18
"""The number of float64 entries multiplied at once."""


@dataclass(frozen=True, eq=False)
class Activations:
    """A binary matrix, rows by rules (or by propositions), with equal rows merged into patterns.

    Attributes:
        bits: (rules, words) uint64, the patterns for which each rule holds; see `Words`.
        pattern: (rows,) intp, the pattern of each row, numbered by first appearance.
    """

    bits: Words
    pattern: NDArray[np.intp]

    @classmethod
    def of(cls, rules: Conjunctions, table: Table) -> Activations:
        """The rules on the rows of a table. Peak memory: two bits per row and rule.

        Raises:
            ValueError: if the bits do not fit in memory, or the table does not have the columns of
                the rules.
        """
        check_memory(table.n_rows, len(rules), 0.25)
        words = np.empty((table.n_rows, n_words(len(rules))), np.uint64)
        for rows, block in rules.packed_batches(table):
            words[rows] = block
        return cls.of_words(words, len(rules))

    @classmethod
    def of_matrix(cls, matrix: ArrayLike) -> Activations:
        """The activations of a matrix (rows, rules) of booleans or zeros and ones.

        Raises:
            ValueError: if `matrix` is not two-dimensional or holds anything but 0 and 1.
        """
        binary = as_binary(matrix)
        return cls.of_words(pack(binary), binary.shape[1])

    @classmethod
    def of_blocks(cls, blocks: Iterable[NDArray[np.bool_]], n_rules: int) -> Activations:
        """The activations of a matrix given in blocks of rows, (any number, rules) bool each."""
        return cls.of_words(
            np.concatenate([np.zeros((0, n_words(n_rules)), np.uint64), *map(pack, blocks)]),
            n_rules,
        )

    @classmethod
    def of_words(cls, words: Words, n_rules: int) -> Activations:
        """The activations of a matrix given by the bits of its rows, (rows, words)."""
        first, pattern = distinct(words)
        merged = words if len(first) == len(words) else words[first]
        return cls(transposed(merged, n_rules), pattern)

    @property
    def n_rows(self) -> int:
        return len(self.pattern)

    @property
    def n_rules(self) -> int:
        return len(self.bits)

    @cached_property
    def n_patterns(self) -> int:
        return int(self.pattern.max(initial=-1)) + 1

    def __repr__(self) -> str:
        return (
            f"Activations({self.n_rows} rows, {self.n_patterns} of them distinct, "
            f"{self.n_rules} rules)"
        )

    # Views

    def holds(self, rules: Places = slice(None)) -> NDArray[np.bool_]:
        """The patterns for which these rules (indices, a mask or a slice) hold, bool (rules,
        patterns).
        """
        return unpack(self.bits[rules], self.n_patterns)

    def at(self, rows: Places) -> NDArray[np.bool_]:
        """The rules that hold for these rows (indices), bool (rows, rules)."""
        patterns = self.pattern[rows]
        # Bit p of a rule is bit p % 64 of its word p // 64; shifted, it is the lowest.
        words = self.bits[:, patterns // 64] >> (patterns % 64).astype(np.uint64)
        return (words & np.uint64(1)).astype(bool).T

    @cached_property
    def by_rule(self) -> NDArray[np.bool_]:
        """(rules, patterns) bool."""
        return self.holds()

    @cached_property
    def dense(self) -> NDArray[np.bool_]:
        """(patterns, rules) bool; ``dense[pattern]`` is the matrix of all rows."""
        return unpack(self.words, self.n_rules)

    @cached_property
    def words(self) -> Words:
        """(patterns, words) uint64: the rules that hold for each pattern."""
        return transposed(self.bits, self.n_patterns)

    @cached_property
    def sparse(self) -> csr_matrix:
        """(patterns, rules) float64: 1 where the rule holds for the pattern."""
        from scipy.sparse import csc_matrix  # the only use

        holds = self.by_rule
        ends = np.append(0, np.cumsum(np.count_nonzero(holds, axis=1)))
        # The nonzeros of a rule stand together: a column of the result, hence compressed columns
        # first.
        patterns = np.nonzero(holds)[1].astype(np.int32)
        return csc_matrix((np.ones(len(patterns)), patterns, ends), holds.shape[::-1]).tocsr()

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """(patterns,) the number of rows of each pattern."""
        return np.bincount(self.pattern, minlength=self.n_patterns)

    # Sums

    def totals(self, values: ArrayLike) -> Floats:
        """Sums of per-row numbers, (rows,) or (rows, outputs), over the rows of each pattern.

        Raises:
            ValueError: if there is not one number per row.
        """
        array = np.asarray(values, np.float64)
        if len(array) != self.n_rows:
            raise ValueError(
                f"values must hold one number per row ({self.n_rows}), got shape {array.shape}"
            )
        if array.ndim > 1:
            return np.stack([self.totals(column) for column in array.T], axis=-1)
        if self.n_patterns == self.n_rows:  # patterns are numbered by first appearance
            return array.copy()
        return np.asarray(np.bincount(self.pattern, array, self.n_patterns), np.float64)

    def class_weights(
        self, codes: ArrayLike, n_classes: int, sample_weight: ArrayLike | None = None
    ) -> Floats:
        """The weight of each class in each pattern, (patterns, classes).

        Args:
            codes: the class of every row, 0 to n_classes - 1, shape (rows,).
            n_classes: K.
            sample_weight: (rows,); None for ones, which counts the rows.

        Raises:
            ValueError: if a shape does not fit, or a code is out of range.
        """
        classes = np.asarray(codes)
        if classes.shape != (self.n_rows,):
            raise ValueError(
                f"codes must hold one class per row ({self.n_rows}), got shape {classes.shape}"
            )
        if not np.isin(classes, np.arange(n_classes)).all():
            raise ValueError(f"codes must lie in 0..{n_classes - 1}")
        weight = (
            np.ones(self.n_rows) if sample_weight is None else np.asarray(sample_weight, np.float64)
        )
        if weight.shape != classes.shape or not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError("sample_weight must hold one finite number of at least 0 per row")
        return np.stack([self.totals(weight * (classes == k)) for k in range(n_classes)], axis=1)

    def covered(self, pattern_weight: Floats | None = None) -> Floats:
        """The total of `pattern_weight`, (patterns,), over the patterns that each rule covers,
        shape (rules,); None counts rows.
        """
        weight = self.counts if pattern_weight is None else pattern_weight
        size = max(1, _CACHED // max(1, self.n_patterns))
        blocks = (self.holds(slice(i, i + size)) for i in range(0, self.n_rules, size))
        return np.concatenate(
            [np.zeros(0), *(block.astype(np.float64) @ weight for block in blocks)]
        )

    # Parts

    def without_copies(
        self,
        order: NDArray[np.integer] | None = None,
        *,
        complements: bool = False,
        signs: NDArray[np.bool_] | None = None,
        kinds: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.intp], Activations]:
        """One of each set of equal rules, without those that hold for all rows or for none.

        Args:
            order: all indices, the most preferred first; None prefers the first rule.
            complements: a rule and its complement count as equal.
            signs: whether the weight of a rule may be negative, and positive, (rules, 2): rules are
                copies only if these agree, and complements only if they agree with the columns
                exchanged. None ignores signs.
            kinds: (rules, any number): rules are copies only if these agree too.

        Returns:
            The kept indices, ascending, and their activations, with the same patterns.
        """
        order = np.arange(self.n_rules) if order is None else order
        size = np.bitwise_count(self.bits).sum(axis=1, dtype=np.int64)
        order = order[(size[order] > 0) & (size[order] < self.n_patterns)]
        bits = self.bits[order]
        if complements:
            # A rule that holds for the first pattern is replaced by its complement. Then a rule and
            # its complement have the same bits, and no rule holds for the first pattern.
            odd = (bits[:, :1] & np.uint64(1)).astype(bool)
            bits = np.where(odd, bits ^ pack(np.ones((1, self.n_patterns), bool)), bits)
        if signs is not None:
            # A rule that was replaced has the opposite weight, so its signs are exchanged.
            kind = (
                np.where(odd, signs[order][:, ::-1], signs[order]) if complements else signs[order]
            )
            bits = np.column_stack([bits, kind.astype(np.uint64)])
        if kinds is not None:
            bits = np.column_stack([bits, kinds[order].astype(np.uint64)])
        # `distinct` returns first places, here the most preferred of equal rules.
        kept = np.sort(order[distinct(bits)[0]])
        return kept, Activations(self.bits[kept], self.pattern)

    def extended(self, held: NDArray[np.bool_]) -> Activations:
        """These rules and additional ones; `held`, (rows, additional rules), marks the rows for
        which these hold.
        """
        # A new pattern is an old one together with the values of the additional rules.
        first, pattern = distinct(np.column_stack([self.pattern.astype(np.uint64), pack(held)]))
        bits = take_columns(self.bits, self.n_patterns, self.pattern[first])
        return Activations(
            np.concatenate([bits, pack(np.ascontiguousarray(held[first].T))]), pattern
        )

    def take_rows(self, rows: Places) -> Activations:
        """Only these rows (indices or a mask)."""
        kept = self.pattern[rows]
        first, pattern = numbered(*np.unique(kept, return_index=True, return_inverse=True)[1:])
        return Activations(take_columns(self.bits, self.n_patterns, kept[first]), pattern)


def needed(holds: NDArray[np.bool_], prices: Sequence[float]) -> list[int]:
    """The conditions needed for their conjunction to hold on the same rows; the most expensive is
    removed first.

    Args:
        holds: (conditions, rows).
        prices: (conditions,).
    """
    order = sorted(range(len(holds)), key=lambda one: -prices[one])
    # Where the conditions after each one hold; their product with those that are kept is the rule
    # without it.
    after = np.ones_like(holds)
    for place in range(len(order) - 1, 0, -1):
        np.logical_and(after[place], holds[order[place]], out=after[place - 1])
    kept, before = [], np.ones(holds.shape[1:], bool)
    for one, others in zip(order, after, strict=True):
        others &= before
        if (others > holds[one]).any():  # it alone excludes a row
            kept.append(one)
            before &= holds[one]
    return sorted(kept)


# Memory


def check_memory(
    rows: int,
    rules: int,
    bytes_per_entry: float,
    *,
    extra: float = 0.0,
    what: str = "rules",
    remedy: str = "pass fewer rules (a smaller forest, rules.take) or fewer rows",
) -> None:
    """Refuse a matrix of rows x rules that would not fit in memory, before it is allocated.

    Raises:
        ValueError: with the sizes and a remedy.
    """
    needed, available = rows * rules * bytes_per_entry + extra, available_memory()
    if needed > available:
        raise ValueError(
            f"{rules} {what} on {rows} distinct rows need {needed / 2**30:.3g} GiB of "
            f"memory, but {available / 2**30:.3g} GiB are free; {remedy}"
        )


def available_memory() -> int:
    """The free memory in bytes, of the accelerator or of the machine."""
    statistics = placement.device().memory_stats()
    if statistics and "bytes_limit" in statistics:
        return int(statistics["bytes_limit"] - statistics.get("bytes_in_use", 0))
    try:
        with open("/proc/meminfo") as meminfo:
            fields = dict(line.split(":", 1) for line in meminfo)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):  # not Linux
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):  # Windows: unknown, so nothing is refused
        return sys.maxsize


# Matrices


def distinct_rows(matrix: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The distinct rows of a binary matrix, in order of first appearance.

    Args:
        matrix: (rows, columns) of booleans or zeros and ones.

    Returns:
        first: (patterns,) the row in which each pattern appears first, ascending.
        inverse: (rows,) the pattern of each row; ``matrix[first][inverse]`` equals ``matrix``.

    Raises:
        ValueError: if `matrix` is not two-dimensional or holds anything but 0 and 1.
    """
    return distinct(pack(as_binary(matrix)))


def as_binary(matrix: ArrayLike) -> NDArray[np.bool_]:
    """A two-dimensional matrix of zeros and ones as booleans; uint8 and boolean matrices are not
    copied.
    """
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise ValueError(f"matrix must be two-dimensional (rows, columns), got shape {array.shape}")
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "uif" or not is_binary(array):
        raise ValueError("matrix must hold only zeros and ones (or booleans)")
    return array.view(np.bool_) if array.dtype == np.uint8 else array.astype(bool)


def is_binary(array: NDArray) -> bool:
    """Whether an array holds only booleans or zeros and ones."""
    if array.dtype == bool:
        return True
    if array.dtype.kind == "u":
        return array.size == 0 or int(array.max()) <= 1
    return bool(((array == 0) | (array == 1)).all())
