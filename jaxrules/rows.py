"""Which rules hold on which rows: bits, with equal rows merged.

Rules satisfied by a row are a short bit pattern, and many rows share it (Adult with 1164 rules: 29304 rows
hold 11282 patterns). Every loss that sees a row only through its pattern can be summed per pattern. `Activations`
keeps one bit per pattern and rule; wider views are made on request.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.bits import Words, distinct, n_words, numbered, pack, take_columns, transposed, unpack
from jaxrules.conditions import Conjunctions
from jaxrules.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Floats = NDArray[np.float64]
_CACHED = 1 << 18
"""Entries of float64 that are multiplied at once."""


@dataclass(frozen=True, eq=False)
class Activations:
    """A binary matrix, rows by rules (or by propositions), with equal rows merged into patterns.

    Attributes:
        bits: (rules, words) uint64, the patterns on which every rule holds; see `Words`.
        pattern: (rows,) intp, the pattern of every row; numbered as they first appear.
    """

    bits: Words
    pattern: NDArray[np.intp]

    @classmethod
    def of(cls, rules: Conjunctions, table: Table) -> Activations:
        """The rules on the rows of a table. Peak memory: two bits per row and rule.

        Raises:
            ValueError: if the bits do not fit into memory, or the table has other columns than the rules.
        """
        check_memory(table.n_rows, len(rules), 0.25)
        words = np.empty((table.n_rows, n_words(len(rules))), np.uint64)
        for rows, block in rules.packed_batches(table):
            words[rows] = block
        return cls.of_words(words, len(rules))

    @classmethod
    def of_matrix(cls, matrix: ArrayLike) -> Activations:
        """A matrix (rows, rules) of booleans or zeros and ones.

        Raises:
            ValueError: if `matrix` is not two-dimensional or holds anything but 0 and 1.
        """
        binary = as_binary(matrix)
        return cls.of_words(pack(binary), binary.shape[1])

    @classmethod
    def of_blocks(cls, blocks: Iterable[NDArray[np.bool_]], n_rules: int) -> Activations:
        """A matrix that comes in blocks of rows, (any number, rules) bool each."""
        return cls.of_words(np.concatenate([np.zeros((0, n_words(n_rules)), np.uint64), *map(pack, blocks)]), n_rules)

    @classmethod
    def of_words(cls, words: Words, n_rules: int) -> Activations:
        """A matrix given by the bits of its rows, (rows, words)."""
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
        return f"Activations({self.n_rows} rows, {self.n_patterns} of them distinct, {self.n_rules} rules)"

    # Views

    def holds(self, rules: Any = slice(None)) -> NDArray[np.bool_]:
        """On which patterns these rules (indices, a mask or a slice) hold, bool (rules, patterns)."""
        return unpack(self.bits[rules], self.n_patterns)

    def at(self, rows: Any) -> NDArray[np.bool_]:
        """Which rules hold on these rows (indices), bool (rows, rules)."""
        patterns = self.pattern[rows]
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
        """(patterns, words) uint64: the rules that hold on every pattern."""
        return transposed(self.bits, self.n_patterns)

    @cached_property
    def sparse(self) -> csr_matrix:
        """(patterns, rules) of ones, float64: what the rules cover, pattern by pattern."""
        from scipy.sparse import csc_matrix  # the only use

        holds = self.by_rule
        ends = np.append(0, np.cumsum(np.count_nonzero(holds, axis=1)))
        patterns = np.nonzero(holds)[1].astype(np.int32)
        return csc_matrix((np.ones(len(patterns)), patterns, ends), holds.shape[::-1]).tocsr()

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """(patterns,) rows of every pattern."""
        return np.bincount(self.pattern, minlength=self.n_patterns)

    # Sums

    def totals(self, values: ArrayLike) -> Floats:
        """Sums of per-row numbers, (rows,) or (rows, outputs), over the rows of every pattern.

        Raises:
            ValueError: if there is not one number per row.
        """
        array = np.asarray(values, np.float64)
        if len(array) != self.n_rows:
            raise ValueError(f"values must hold one number per row ({self.n_rows}), got shape {array.shape}")
        if array.ndim > 1:
            return np.stack([self.totals(column) for column in array.T], axis=-1)
        return np.asarray(np.bincount(self.pattern, array, self.n_patterns), np.float64)

    def class_weights(self, codes: ArrayLike, n_classes: int, sample_weight: ArrayLike | None = None) -> Floats:
        """The weight of every class in every pattern, (patterns, classes).

        Args:
            codes: the class of every row, 0 to n_classes - 1, shape (rows,).
            n_classes: K.
            sample_weight: (rows,); None for ones, which counts the rows.

        Raises:
            ValueError: if a shape does not fit, or a code is out of range.
        """
        classes = np.asarray(codes)
        if classes.shape != (self.n_rows,):
            raise ValueError(f"codes must hold one class per row ({self.n_rows}), got shape {classes.shape}")
        if not np.isin(classes, np.arange(n_classes)).all():
            raise ValueError(f"codes must lie in 0..{n_classes - 1}")
        weight = np.ones(self.n_rows) if sample_weight is None else np.asarray(sample_weight, np.float64)
        if weight.shape != classes.shape or not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError("sample_weight must hold one finite number of at least 0 per row")
        return np.stack([self.totals(weight * (classes == k)) for k in range(n_classes)], axis=1)

    def covered(self, pattern_weight: Floats | None = None) -> Floats:
        """The weight (patterns,) that every rule covers, shape (rules,); None counts the rows."""
        weight = self.counts if pattern_weight is None else pattern_weight
        size = max(1, _CACHED // max(1, self.n_patterns))
        blocks = (self.holds(slice(i, i + size)) for i in range(0, self.n_rules, size))
        return np.concatenate([np.zeros(0), *(block.astype(np.float64) @ weight for block in blocks)])

    # Parts

    def without_copies(
        self, order: NDArray[Any] | None = None, *, complements: bool = False, signs: NDArray[np.bool_] | None = None,
        kinds: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.intp], Activations]:  # fmt: skip
        """One of every set of equal rules, and none that holds everywhere or nowhere: they tell no rows apart.

        Args:
            order: all indices, the most wanted first; None prefers the first.
            complements: a rule and its complement count as equal.
            signs: whether the weight of a rule may be negative, and positive, (rules, 2): rules are copies only where
                these agree, and for complements where they agree the other way round. None does not tell them apart.
            kinds: rules are copies only where these agree, too, (rules, any number).

        Returns:
            The indices that were kept, ascending, and their activations, with the same patterns.
        """
        order = np.arange(self.n_rules) if order is None else order
        size = np.bitwise_count(self.bits).sum(axis=1, dtype=np.int64)
        order = order[(size[order] > 0) & (size[order] < self.n_patterns)]
        bits = self.bits[order]
        if complements:
            odd = (bits[:, :1] & np.uint64(1)).astype(bool)
            bits = np.where(odd, bits ^ pack(np.ones((1, self.n_patterns), bool)), bits)
        if signs is not None:
            kind = np.where(odd, signs[order][:, ::-1], signs[order]) if complements else signs[order]
            bits = np.column_stack([bits, kind.astype(np.uint64)])
        if kinds is not None:
            bits = np.column_stack([bits, kinds[order].astype(np.uint64)])
        kept = np.sort(order[distinct(bits)[0]])
        return kept, Activations(self.bits[kept], self.pattern)

    def extended(self, held: NDArray[np.bool_]) -> Activations:
        """These rules and more; `held`, (rows, more), tells where those hold."""
        first, pattern = distinct(np.column_stack([self.pattern.astype(np.uint64), pack(held)]))
        bits = take_columns(self.bits, self.n_patterns, self.pattern[first])
        return Activations(np.concatenate([bits, pack(np.ascontiguousarray(held[first].T))]), pattern)

    def take_rows(self, rows: Any) -> Activations:
        """These rows (indices or a mask) alone."""
        kept = self.pattern[rows]
        first, pattern = numbered(*np.unique(kept, return_index=True, return_inverse=True)[1:])
        return Activations(take_columns(self.bits, self.n_patterns, kept[first]), pattern)


def needed(holds: NDArray[np.bool_], prices: Sequence[float]) -> list[int]:
    """Of conditions, those that their conjunction needs to hold on the same rows; the dearest is left out first.

    Args:
        holds: (conditions, rows).
        prices: (conditions,).
    """
    kept, failed = list(range(len(holds))), np.count_nonzero(~holds, axis=0)  # how many conditions every row fails
    for one in sorted(kept, key=lambda one: -prices[one]):
        fails = ~holds[one]
        if (failed[fails] > 1).all():
            kept.remove(one)
            failed -= fails
    return kept


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
    """Refuse a matrix of rows x rules that would not fit into memory, before it is made.

    Raises:
        ValueError: names the sizes and what to do.
    """
    needed, available = rows * rules * bytes_per_entry + extra, available_memory()
    if needed > available:
        raise ValueError(
            f"{what}: {rules} {what} on {rows} distinct rows need {needed / 2**30:.3g} GiB of memory, but "
            f"{available / 2**30:.3g} GiB are free; {remedy}"
        )


def available_memory() -> int:
    """Bytes that the device can still give: of the accelerator, or of the machine."""
    statistics = jax.devices()[0].memory_stats()
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
    except (AttributeError, ValueError):  # Windows: unknown, nothing is refused
        return sys.maxsize


# Matrices


def distinct_rows(matrix: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The distinct rows of a binary matrix, in the order of their first appearance.

    Args:
        matrix: (rows, columns) of booleans or zeros and ones.

    Returns:
        first: (patterns,) the row in which each pattern appears first, ascending.
        inverse: (rows,) the pattern of every row; ``matrix[first][inverse]`` equals ``matrix``.

    Raises:
        ValueError: if `matrix` is not two-dimensional or holds anything but 0 and 1.
    """
    return distinct(pack(as_binary(matrix)))


def as_binary(matrix: ArrayLike) -> NDArray[np.bool_]:
    """A two-dimensional matrix of zeros and ones as booleans; uint8 and boolean input is not copied."""
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise ValueError(f"matrix must be two-dimensional (rows, columns), got shape {array.shape}")
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "uif" or not is_binary(array):
        raise ValueError("matrix must hold only zeros and ones (or booleans)")
    return array.view(np.bool_) if array.dtype == np.uint8 else array.astype(bool)


def is_binary(array: NDArray) -> bool:
    """Whether an array holds nothing but booleans or zeros and ones."""
    if array.dtype == bool:
        return True
    if array.dtype.kind == "u":
        return array.size == 0 or int(array.max()) <= 1
    return bool(((array == 0) | (array == 1)).all())
