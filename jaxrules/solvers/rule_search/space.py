"""The space of a search, which is propositions on rows, and the result of a search."""

from __future__ import annotations

import bisect
import functools
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Table
from jaxrules.rules import rows
from jaxrules.solvers.limits import never as never
from jaxrules.tools.bits import distinct, n_words, pack, unpack
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import checkpoint
from jaxrules.tools.sorting import places_of_equals

if TYPE_CHECKING:
    from jaxrules.solvers.rule_search.kernels.class_pairs import Chain

_BLOCK = 1 << 22
"""Rows x propositions between two checks of the clock."""
_WORTH_THREADS = 100_000
"""From this many groups on, columns are packed in several threads."""
_CACHED = 1 << 16
"""Groups x propositions that are compared at once, which stay in the cache."""
_BYTES = 6.0
"""The memory that a search takes per row and proposition, roughly."""

IN_SPAN = 1e-9
"""A rule counts as in the span of others if at most this share of its square is outside:
rounding.
"""
TIE = 1e-10
"""Worths within this relative distance are ties; the first that an exact search examines wins."""
_MOST_CELLS = 256
"""The most cells of a partition: with more, the histogram of two would be larger than most
tables.
"""
_WORTH_CELLS = 4
"""Propositions per partition from which sums over cells are cheaper than over propositions."""
_TOGETHER = 64, 256
"""Columns of few values share a partition of at most this many cells and propositions."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Cells of merged rows, and the propositions that are sets of them.

    Attributes:
        cell: the cell of every merged row, below 256, (merged rows,).
        propositions: their indices.
        members: 1.0 where a cell belongs to a proposition, (cells, propositions).
    """

    cell: NDArray[np.uint8]
    propositions: NDArray[np.intp]
    members: NDArray[np.float64]

    @functools.cached_property
    def chain(self) -> Chain:
        """The propositions in the order in which compiled histograms sum them up."""
        from jaxrules.solvers.rule_search.kernels.class_pairs import Chain

        return Chain.of(self.members)

    @functools.cached_property
    def halves(self) -> Chain:
        """The sets of cells of the propositions, a set and its complement as one."""
        from jaxrules.solvers.rule_search.kernels.pair_bounds import halves_of

        return halves_of(self.members)


class Cells(NamedTuple):
    """The cells of all partitions, numbered through.

    Attributes:
        of_rows: the cell of every merged row in each partition, (merged rows, partitions).
        number: the number of cells.
        ends, parts: the cells of proposition a are parts[ends[a] : ends[a + 1]].
    """

    of_rows: NDArray[np.uint32]
    number: int
    ends: NDArray[np.intp]
    parts: NDArray[np.uint32]


@dataclass(frozen=True)
class SearchSpace:
    """Propositions on the rows of a table, with the rows that no proposition distinguishes merged
    into groups.

    A proposition compares the integer cell code of one code column with a cell: code >= cell
    (above) or code <= cell. Thresholds of one feature share a code column: of those on one side,
    the tightest implies the others.

    Attributes:
        activations: the propositions on the rows; its patterns are the groups.
        column, above, cell: per proposition.
        codes: of the groups, (groups, code columns); None if the space was not made of codes.
    """

    activations: rows.Activations
    column: NDArray[np.int32]
    above: NDArray[np.bool_]
    cell: NDArray[np.uint16]
    codes: NDArray[np.uint16] | None = None

    @classmethod
    def of_codes(
        cls,
        codes: NDArray[np.uint16],
        column: NDArray[np.int32],
        above: NDArray[np.bool_],
        cell: NDArray[np.uint16],
    ) -> SearchSpace:
        """The space of the propositions (column, above, cell) on rows with these codes.

        Raises:
            ValueError: if a search would not fit in memory.
        """
        check_memory(len(codes), len(column))
        columns = places_of_equals(column)
        # A row's key has a digit per column, the cell of its code, in a system of mixed radix. A
        # further word begins before the product of the radices reaches 2^63.
        keys = [np.zeros(len(codes), np.uint64)]
        room = 1  # the number of values that the last key may have
        by_column = np.asfortranarray(codes)
        entries = 0  # since the last check of the clock
        for some in columns:  # equal cells of all columns are equal propositions
            if (entries := entries + len(codes)) > _BLOCK:
                checkpoint()
                entries = 0
            of_column = by_column[:, column[some[0]]]
            # Rows are numbered by first appearance, so any numbers of the cells will do.
            number = _cells(int(of_column.max(initial=0)), above[some], cell[some])
            size = int(number.max(initial=0)) + 1
            if room * size >= 2**63:
                keys.append(np.zeros(len(codes), np.uint64))
                room = 1
            keys[-1] *= np.uint64(size)
            # Ones and zeros are often numbers of cells already.
            keys[-1] += of_column if size == len(number) else number.astype(np.uint64)[of_column]
            room *= size
        first, pattern = distinct(np.column_stack(keys))
        of_groups = by_column
        if len(first) < len(codes):
            of_groups = np.take(by_column.T, first, axis=1).T
        bits = np.zeros((len(column), n_words(len(first))), np.uint64)
        at_once = max(1, _CACHED // len(first))  # propositions

        def fill(some: NDArray[np.intp]) -> None:
            of_group = of_groups[:, column[some[0]]]
            for compare, side in ((np.greater_equal, True), (np.less_equal, False)):
                of_side = some[above[some] == side]
                for block in np.split(of_side, range(at_once, len(of_side), at_once)):
                    bits[block] = pack(compare(of_group, cell[block, None]))

        # Every call fills rows of `bits` of its own. Results come in the order of the columns, so
        # that this thread can check the clock in between.
        entries = _BLOCK  # since the last check of the clock
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            large = len(first) > _WORTH_THREADS
            for some, _ in zip(
                columns, (threads.map if large else map)(fill, columns), strict=True
            ):
                entries += len(first) * len(some)
                if entries > _BLOCK:
                    checkpoint()
                    entries = 0
        return cls(rows.Activations(bits, pattern), column, above, cell, of_groups)

    @classmethod
    def of(cls, masks: NDArray[np.bool_]) -> SearchSpace:
        """The space of arbitrary propositions given by their boolean matrix (rows,
        propositions).
        """
        n = masks.shape[1]
        check_memory(*masks.shape)
        activations = rows.Activations.of_matrix(masks)
        return cls(
            activations, np.arange(n, dtype=np.int32), np.ones(n, bool), np.ones(n, np.uint16)
        )

    @functools.cached_property
    def groups(self) -> SearchSpace:
        """The same propositions on one row per group."""
        one_each = np.arange(self.activations.n_patterns)
        return replace(self, activations=rows.Activations(self.activations.bits, one_each))

    def take(self, propositions: NDArray[np.intp]) -> SearchSpace:
        """Some of the propositions, on the same groups of rows."""
        activations = rows.Activations(
            self.activations.bits[propositions], self.activations.pattern
        )
        sides = (self.column[propositions], self.above[propositions], self.cell[propositions])
        return SearchSpace(activations, *sides, self.codes)

    def within(self, groups: NDArray[np.bool_]) -> SearchSpace:
        """The same propositions on one row for each of some groups, (groups,)."""
        bits = pack(self.activations.by_rule[:, groups])
        return replace(
            self,
            activations=rows.Activations(bits, np.arange(np.count_nonzero(groups))),
            codes=None if self.codes is None else self.codes[groups],
        )

    @functools.cached_property
    def partitions(self) -> list[Partition] | None:
        """The propositions by partitions, in their order; None if a column has too many cells
        for histograms.
        """
        groups: list[tuple[NDArray[np.intp], list[NDArray[np.intp]]]] = []
        for together in places_of_equals(self.column):
            checkpoint()
            # Thresholds of one column are nested: the number of those that hold identifies the
            # cell.
            cell = _numbered(self._number_held(together))
            if cell.max(initial=0) >= _MOST_CELLS:
                return None
            if groups:
                before = groups[-1][0]
                # Only the pairs of cells that occur are numbered: correlated columns have few of
                # them.
                joint = _numbered(before * (int(cell.max(initial=0)) + 1) + cell)
                columns = [*groups[-1][1], together]
                if joint.max(initial=0) < _TOGETHER[0] and sum(map(len, columns)) <= _TOGETHER[1]:
                    groups[-1] = joint, columns
                    continue
            groups.append((cell, [together]))
        found = []
        for cell, columns in groups:
            propositions = np.sort(np.concatenate(columns))
            # A proposition is constant on a cell, so that one group of each cell shows which ones
            # hold.
            example = np.empty(int(cell.max(initial=0)) + 1, np.intp)
            example[cell] = np.arange(len(cell))
            holds = rows.Activations(self.activations.bits[propositions], example).at(slice(None))
            found.append(Partition(cell.astype(np.uint8), propositions, holds.astype(np.float64)))
        return found

    @functools.cached_property
    def cells(self) -> Cells | None:
        """The cells of all partitions; None if these have few propositions, or do not exist."""
        parts = self.partitions
        if not parts or len(self) < _WORTH_CELLS * len(parts):
            return None
        firsts = np.cumsum([0, *(len(part.members) for part in parts)], dtype=np.uint32)
        of_rows = np.stack([part.cell for part in parts], axis=1) + firsts[:-1]
        members: list[NDArray[np.uint32]] = [firsts[:0]] * len(self)
        for part, first in zip(parts, firsts, strict=False):
            for a, holds in zip(part.propositions.tolist(), part.members.T > 0, strict=True):
                members[a] = first + np.flatnonzero(holds).astype(np.uint32)
        ends = np.cumsum([0, *map(len, members)], dtype=np.intp)
        return Cells(of_rows, int(firsts[-1]), ends, np.concatenate(members))

    def _number_held(self, together: NDArray[np.intp]) -> NDArray[np.intp]:
        """The number of some propositions on one column that hold for each group, `above` read as
        such.
        """
        above = self.above[together]
        if self.codes is None or not len(together):
            # With those of the other side negated, all hold from some code on.
            holds = self.activations.holds(together) ^ ~above[:, None]
            return np.sum(holds, axis=0, dtype=np.intp)
        code = self.codes[:, self.column[together[0]]]
        starts, values = np.sort(_starts(above, self.cell[together])), int(code.max(initial=0)) + 1
        return np.searchsorted(starts, np.arange(values), side="right")[code]

    def __len__(self) -> int:
        return self.activations.n_rules

    @functools.cached_property
    def masks(self) -> NDArray[np.uint8]:
        """Whether each proposition holds, (groups, propositions)."""
        return self.activations.dense.view(np.uint8)

    def selected(self, propositions: Sequence[int]) -> NDArray[np.bool_]:
        """The rows on which all the propositions hold, (rows,)."""
        return self.selected_groups(propositions)[self.activations.pattern]

    def selected_groups(self, propositions: Sequence[int]) -> NDArray[np.bool_]:
        """The groups on which all the propositions hold, (groups,)."""
        everywhere = np.iinfo(np.uint64).max
        words = np.bitwise_and.reduce(
            self.activations.bits[list(propositions)], axis=0, initial=everywhere
        )
        return unpack(words[None], self.activations.n_patterns)[0]

    def longest(self, max_length: int | None) -> int:
        """The most propositions that a conjunction can have under this limit."""
        return len(self) if max_length is None else min(max_length, len(self))


def _starts(above: NDArray[np.bool_], cell: NDArray[np.uint16]) -> NDArray[np.int64]:
    """The code at which each proposition on one column begins to hold, or ceases to."""
    # `code <= cell` ceases to hold at cell + 1, which may exceed 16 bits.
    return np.where(above, cell, cell.astype(np.int64) + 1)


def _cells(largest: int, above: NDArray[np.bool_], cell: NDArray[np.uint16]) -> NDArray[np.intp]:
    """Equal numbers for the codes 0, ..., `largest` of a column that no proposition separates."""
    return np.searchsorted(np.unique(_starts(above, cell)), np.arange(largest + 1), side="right")


def _numbered(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Codes 0, 1, ... for the numbers that occur, in ascending order; numbers are small."""
    occurs = np.bincount(codes) > 0
    return codes if occurs.all() else (np.cumsum(occurs) - 1)[codes]


def check_memory(
    n_rows: int,
    propositions: int,
    remedy: str = "set max_cut_points, or lower it, for fewer propositions",
) -> None:
    """Refuse a search that memory does not allow, at about six bytes per row and proposition."""
    rows.check_memory(n_rows, propositions, _BYTES, what="propositions", remedy=remedy)


def most_propositions(n_rows: int) -> float:
    """The number of propositions for which a search has memory."""
    return rows.available_memory() / _BYTES / max(1, n_rows)


def check_cut_points(
    table: Table, max_cut_points: int | None, *, fewer: bool = False
) -> int | None:
    """`max_cut_points`, if memory allows the propositions; the error says how many cut points fit.

    Args:
        fewer: return the number that fits, if any do, instead of an error.

    Raises:
        ValueError: naming `max_cut_points`.
    """
    fitting = most_propositions(table.n_rows)
    features = table.schema.features
    of_categories = sum(2 * len(feature.categories) for feature in features if feature.categories)

    def total(cut_points: float, distinct: NDArray[np.float64]) -> float:
        return float(np.minimum(2.0 * distinct, 4.0 * cut_points).sum()) + of_categories

    wanted, numeric = (
        np.inf if max_cut_points is None else max_cut_points,
        [f.is_numeric for f in features],
    )
    # A quick test first: a column has at most as many distinct values as rows. Columns are sorted
    # only if these would be too many.
    if total(wanted, np.full(sum(numeric), float(table.n_rows))) <= fitting:
        return max_cut_points
    distinct = np.array(
        [
            float(len(np.unique(c)))
            for c, number in zip(table.columns, numeric, strict=True)
            if number
        ]
    )
    if (propositions := total(wanted, distinct)) > fitting:
        # The total rises with the cut points, so the number of them that fit can be bisected.
        most = bisect.bisect_right(
            range(1, table.n_rows), fitting, key=lambda cuts: total(cuts, distinct)
        )
        if fewer and most:
            return most
        remedy = (
            f"set max_cut_points={most}, the most that fit" if most else "use fewer rows or columns"
        )
        check_memory(table.n_rows, int(propositions), remedy)
    return max_cut_points


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
        propositions: a shortest conjunction for the best set of rows found.
        objective: its worth.
        bound: proved upper bound on the worth of every conjunction; None for a heuristic search. A
            finished exact search includes the relative tolerance of 1e-10 within which worths are
            ties.
        status: OPTIMAL, CONVERGED (a heuristic, or an approximation guarantee below 1), TIME_LIMIT
            (`stopped`), or MAX_ITERATIONS (max_evaluations).
        evaluations: the number of objective evaluations.
        counts: how often each pruning rule applied.
    """

    propositions: tuple[int, ...]
    objective: float
    bound: float | None
    status: Status
    evaluations: int
    counts: Mapping[str, int] = field(default_factory=dict)


def best_first(values: NDArray[np.float64], tie: float = TIE) -> NDArray[np.intp]:
    """Places by descending value; values within this relative distance, which rounding would order
    differently on every machine, stay in their order.
    """
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    before = np.append(falling[:1], falling[:-1])
    with np.errstate(invalid="ignore"):  # infinite ones
        # A drop of more than the tie begins a group; within a group, places decide. Infinity minus
        # infinity is NaN, no drop: infinite values are ties.
        group = np.cumsum(before - falling > tie * np.abs(before))
    return order[np.lexsort((order, group))]
