"""The best threshold on one column, over all its values.

A column is sorted once. The rows below a threshold are then a prefix of that order, and the sums of
an objective over all prefixes are cumulative sums: a pass over the rows per column, whatever the
number of distinct values.

A pass in the order of a column reads the rows at random. With many rows, the sums over blocks of
neighbouring values come first, read in the order of the rows: those of 16-bit integers bound the
values of a column, which excludes most columns. (Where many rows have equal terms, the rows of each
class are counted instead, which gives all sums.) In the others, only blocks that may hold a
better threshold than the best boundary between blocks are passed through: first with the sums of g
alone, which replace the bound on dG below, and only then with all. Let G, H and B be the
sums over the rows before a block, and dG, dH and dB those over a part of it. The value
(G + dG)^2 / (ridge + H + dH - |B + dB|^2) of a threshold inside is bounded: dG lies between the
sums of the negative and of the positive g of the block, dH >= 0, and |dB| is at most its sum of
|b|. Blocks are smaller towards both ends, where rules hold for few rows or all but few, and these
sums are large against H.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.objectives import Floats, Objective
from jaxrules.solvers.rule_search.space import IN_SPAN, TIE
from jaxrules.tools import display
from jaxrules.tools.kernels import Kernels
from jaxrules.tools.runs import checkpoint
from jaxrules.tools.sorting import ascending

Bools = NDArray[np.bool_]
Sides = tuple[bool, bool]
"""Whether rules below a threshold, and above one, are allowed."""
_BY_BLOCKS = Kernels("jaxrules.solvers.rule_search.kernels.prefixes", "bounds_of_blocks")
_STEPS = 5
"""As long as so many steps of a histogram NumPy takes for a term of a sorted row."""
_BLOCKS = 255
"""The most blocks: their numbers, and one for missing values, have 8 bits."""
_AT_ONCE = 16_384
"""The rows whose integers are read for all columns while they are in the cache."""


class Split(NamedTuple):
    """A threshold between two neighbouring values of a column.

    Attributes:
        value: the objective's value.
        column: the column's key.
        low: the largest value below the threshold.
        high: the smallest value above it.
        above: whether the rule holds above the threshold.
        place: the number of rows below it.
    """

    value: float
    column: int
    low: float
    high: float
    above: bool
    place: int


@dataclass(frozen=True, eq=False)
class SortedColumn:
    """The known values of a numeric column, in ascending order.

    Attributes:
        values: the column, NaN for missing, (rows,).
        rows: the rows with a value, by ascending value, (known rows,).
        ends: whether the next value is greater, so that a threshold may lie between the two; the
            last entry is False.
    """

    values: Floats
    rows: NDArray[np.int32]
    ends: Bools

    @classmethod
    def of(cls, values: Floats, order: NDArray[np.int32] | None = None) -> SortedColumn:
        """The column sorted, if its `ascending` order is not given; `checkpoint` may interrupt
        it.
        """
        checkpoint()
        order = ascending(values) if order is None else order
        rows = order[: len(values) - np.count_nonzero(np.isnan(values))]
        known = values[rows]
        return cls(values, rows, np.append(known[1:] > known[:-1], False)[: len(rows)])

    def without(self, places: Iterable[int]) -> SortedColumn:
        """Without the thresholds above so many rows."""
        ends = self.ends.copy()
        ends[np.fromiter(places, int) - 1] = False
        return SortedColumn(self.values, self.rows, ends)

    @functools.cached_property
    def whole(self) -> bool:
        """Whether all known values are integers."""
        known = self.values[self.rows]
        return bool((known == np.rint(known)).all())

    def below(self, split: Split) -> Bools:
        """The rows below a threshold of this column, (rows,)."""
        return self.values <= split.low

    def between_values(self, split: Split, low_belongs: bool) -> float:
        """The shortest number in [low, high) if `low_belongs`, else in (low, high]; 0 if it is
        among them. It is whole in a column of integers.
        """
        low, high = split.low, split.high
        zero = low <= 0.0 < high if low_belongs else low < 0.0 <= high
        middle = low + (high - low) / 2
        number = 0.0 if zero else display.shortest_number(middle, low, high, low_belongs)
        return float((np.floor if low_belongs else np.ceil)(number)) if self.whole else number

    @functools.cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the blocks start, and where the last one ends: equal values share a block."""
        n, share = len(self.rows), np.arange(1, _BLOCKS) / _BLOCKS
        # The ends of the k-th block from either side are in proportion to k^2.
        wanted = n * np.where(share < 0.5, 2 * share**2, 1 - 2 * (1 - share) ** 2)
        last = np.flatnonzero(np.append(self.ends[:-1], True))  # of every distinct value
        chosen = last[np.minimum(np.searchsorted(last, wanted.astype(int)), len(last) - 1)]
        return np.unique(np.concatenate([[0], chosen + 1, [n]]))

    @functools.cached_property
    def between(self) -> Bools:
        """Whether a threshold may lie just below each block, (blocks,)."""
        return np.append(False, self.ends[self.starts[1:-1] - 1])

    @functools.cached_property
    def inside(self) -> Bools:
        """Whether a threshold may lie inside each block, (blocks,)."""
        inner = self.ends.copy()
        inner[self.starts[1:] - 1] = False
        return np.logical_or.reduceat(inner, self.starts[:-1])

    @functools.cached_property
    def blocks(self) -> NDArray[np.uint8]:
        """The block of every row; the number of blocks for a missing value."""
        n = len(self.starts) - 1
        of_row = np.full(len(self.values), n, np.uint8)
        of_row[self.rows] = np.repeat(np.arange(n, dtype=np.uint8), np.diff(self.starts))
        return of_row


Columns = Mapping[int, tuple[SortedColumn, Sides]]
"""Columns by a key, with the rules that are allowed."""


def best_threshold(
    columns: Columns,
    objective: Objective,
    terms: Floats,
    least: float = -math.inf,
    of_rows: NDArray[np.uint16] | None = None,
) -> Split | None:
    """The threshold of the greatest value over some columns; None if none has a value above
    `least`.

    Args:
        objective: its `value` decides.
        terms: the objective's for every row, (sums, rows), or for classes of rows.
        least: the greater it is, the less is to be examined.
        of_rows: the class of every row, (rows,), if terms are those of `RowTerms`.
    """
    best: Split | None = None
    quotients = objective.quotients()
    n_rows = terms.shape[1] if of_rows is None else len(of_rows)
    if quotients is not None and _BY_BLOCKS.pay(_STEPS * n_rows * len(terms) * len(columns)):
        return _by_blocks(columns, terms, *quotients, least, of_rows)
    if of_rows is not None:
        terms = np.take(terms, of_rows, axis=1)
    by_row = np.ascontiguousarray(terms.T)
    for key, (column, sides) in columns.items():
        if not column.ends.any():
            continue
        sums = np.cumsum(by_row[column.rows], axis=0)
        below = sums[column.ends]
        values = [
            objective.value(some.T) if allowed else np.full(len(some), -math.inf)
            for some, allowed in zip((below, sums[-1] - below), sides, strict=True)
        ]
        # Row by row of (below, above): of equal values the lowest threshold wins, and there the
        # rule below it. Rounding must not decide between them, nor between columns.
        by_place = np.stack(values, axis=1).ravel()
        top = float(by_place.max())
        if top > (least if best is None else best.value + TIE * abs(best.value)):
            equal = (by_place > least) & (by_place >= _least_equal(top))
            at, above = divmod(int(equal.argmax()), 2)
            place = int(np.flatnonzero(column.ends)[at]) + 1
            best = _split(float(values[above][at]), key, column, bool(above), place)
    return best


def _least_equal(value: float) -> float:
    """The least value that differs from this one only by rounding."""
    return value * (1 - math.copysign(TIE, value))


def _split(value: float, key: int, column: SortedColumn, above: bool, place: int) -> Split:
    low, high = column.values[column.rows[place - 1 : place + 1]].tolist()
    return Split(value, key, low, high, above, place)


def _by_blocks(
    columns: Columns,
    terms: Floats,
    n_classes: int,
    ridge: float,
    least: float,
    of_rows: NDArray[np.uint16] | None,
) -> Split | None:
    """`best_threshold` for many rows and a sum of quotients."""
    from jaxrules.solvers.rule_search.kernels.prefixes import (
        add_slack,
        bounds_of_blocks,
        scan_blocks,
    )
    from jaxrules.solvers.rule_search.kernels.vectors import padded

    columns = {key: one for key, one in columns.items() if one[0].ends.any()}
    if of_rows is None:
        columns = _promising(columns, terms, n_classes, ridge, least)
    if not columns:
        return None
    n_terms = len(terms)
    wide = padded(terms, 2 * n_classes)
    add_slack(wide, n_terms, n_classes)
    gradient = np.ascontiguousarray(terms[:: n_terms // n_classes])
    best: Split | None = None
    known, level = {}, least
    # First the thresholds between blocks of all columns: the best of them prunes blocks of any.
    for key, (column, sides) in columns.items():
        sums = _sums_of_blocks(column, wide, of_rows)
        bounds, before, total, level, block, above = bounds_of_blocks(
            sums, n_terms, column.between, column.inside, level, n_classes, ridge, IN_SPAN, *sides
        )
        known[key] = bounds, before, sums, total
        if block:
            best = _split(level, key, column, above, int(column.starts[block]))
    places = np.zeros(0, np.uint16) if of_rows is None else of_rows

    def scanned(key: int, level: float, lowest: bool) -> Split | None:
        column, sides = columns[key]
        value, place, above = scan_blocks(
            wide, n_terms, gradient, column.rows, places, column.ends, column.starts, *known[key],
            level, n_classes, ridge, IN_SPAN, *sides, lowest,
        )  # fmt: skip
        return _split(value, key, column, above, place) if place else None

    # Then within blocks, from the column of the greatest bound on, until no bound exceeds the best.
    for bound, key in sorted((-float(one[0].max()), key) for key, one in known.items()):
        level = least if best is None else best.value
        if -bound <= level:
            break
        best = scanned(key, level, lowest=False) or best
    if best is None:
        return None
    # Of equal values the first, as without blocks.
    level = max(least, _least_equal(best.value))
    return next(filter(None, (scanned(key, level, lowest=True) for key in columns)), best)


def _sums_of_blocks(
    column: SortedColumn, wide: Floats, of_rows: NDArray[np.uint16] | None
) -> Floats:
    """The sums of terms over the rows of every block, and over the others, (blocks + 1, width).

    Args:
        wide: of every row or class of rows, (..., width).
    """
    from jaxrules.solvers.rule_search.kernels.prefixes import count_blocks
    from jaxrules.solvers.rule_search.kernels.vectors import add_by_group

    n_blocks = len(column.between) + 1
    if of_rows is not None:
        counts = count_blocks(column.blocks, of_rows, n_blocks, len(wide))
        return np.asarray(counts.astype(np.float64) @ wide)
    sums = np.zeros((n_blocks, wide.shape[1]))
    # In the order of the rows, so that the terms, the large array, are read from start to end.
    add_by_group(wide, column.blocks, sums)
    return sums


def _promising(
    columns: Columns, terms: Floats, n_classes: int, ridge: float, least: float
) -> Columns:
    """The columns that may have the best threshold, with a value above `least`."""
    from jaxrules.solvers.rule_search.kernels.prefixes import add_units, bounds_of_column, in_units

    by_class = terms.reshape(n_classes, -1, terms.shape[1])
    largest = np.maximum(by_class.max(axis=2), -by_class.min(axis=2))
    wide, unit, rows = in_units(by_class, largest)
    sums = [
        np.zeros((n_classes, len(one.between) + 1, wide.shape[2])) for one, _ in columns.values()
    ]
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        units = np.ascontiguousarray(wide[:, start : start + _AT_ONCE])  # of several classes
        for (column, _), found in zip(columns.values(), sums, strict=True):
            add_units(units, column.blocks, some, found)
    bounds = [
        bounds_of_column(found, unit, len(rows), column.between, ridge, IN_SPAN, *sides)
        for (column, sides), found in zip(columns.values(), sums, strict=True)
    ]
    # A column whose values are all below one of another's is excluded; not so at equality, which
    # the order of the columns decides.
    known = max((lower for _, lower in bounds), default=0.0)
    return {
        key: one
        for (key, one), (upper, _) in zip(columns.items(), bounds, strict=True)
        if upper > least and upper >= known
    }
