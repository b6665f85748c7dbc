"""All pairs of propositions at once, ranked on a device by products of matrices.

Let B be the 0/1 matrix of merged rows by cells (`Partition`). The sums of a term x over the rows of
all pairs of cells are B' diag(x) B, and those of all pairs of propositions follow by sums of cells.
A product takes 2 rows x cells^2 operations, which is what accelerators are made for; the host's
histograms take a step per row and pair of columns.

Sums are exact for rounded terms: a term is rounded to a multiple of its step, at most 2^-22 of its
largest absolute value, and this whole number is split into three digits of at most eight bits. The
digits are exact in bfloat16, and so are the float32 sums of products with zeros and ones within a
block, as whole numbers below 2^24; blocks are added in float64. (So bfloat16 suffices here, on any
device and in any order of summation.) A sum over k rows thus differs from the true one by at most k
steps, which gives an upper bound on the worth of each pair. The host evaluates in float64 every
pair whose bound exceeds the best worth: the result is proved as the one by histograms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from jaxrules.rules.rows import Activations
from jaxrules.solvers.patience import Patient
from jaxrules.solvers.rule_search.objectives import DISTANCE_FLOOR, Floats, Objective
from jaxrules.solvers.rule_search.space import IN_SPAN, SearchSpace
from jaxrules.tools.float64 import on_device, x64_kernel

_BITS, _DIGIT = 23, 8
"""The bits of a rounded term, besides its sign, and of a digit."""
_LARGEST_BLOCK = 1 << 16
"""The most rows of a block: sums of digits stay below 2^24."""
_BLOCK_ENTRIES = 1 << 27
"""The most entries of digits times cells in a block, of two bytes each."""
_PAIRS_AT_ONCE = 1 << 20
"""About the most pairs of propositions whose sums are in memory at once."""
_ROUNDING = 1e-9
"""What float64 may round of a bound, relative."""
_TERMS, _UNIT = 8, 64
"""Terms are padded to a multiple of the first, cells and propositions to one of the second, so that
few shapes are compiled.
"""


class _Half(NamedTuple):
    """The cells and propositions on one side of the pairs, padded.

    Attributes:
        part, cell: the partition and the number of each cell, (cells,); cell -1 for none.
        members: 1 where a cell belongs to a proposition, (cells, propositions).
        proposition: (propositions,); -1 for none.
    """

    part: NDArray[np.int32]
    cell: NDArray[np.int16]
    members: NDArray[np.int8]
    proposition: NDArray[np.int32]


class Bound(NamedTuple):
    """No pair, or single proposition (twice the same), of this place is worth more."""

    worth: float
    pair: tuple[int, int]


class Ranking:
    """The propositions of a space on a device, where they stay from search to search."""

    def __init__(self, space: SearchSpace) -> None:
        assert space.partitions is not None
        parts, self.n_rows = space.partitions, space.activations.n_patterns
        # A block has at most an eighth of the rows (if there are 8192 or more), which limits the
        # padding.
        step = max(1024, min(_LARGEST_BLOCK, 1 << max(self.n_rows.bit_length() - 4, 0)))
        self.step, self.padded = step, max(1, -(-self.n_rows // step)) * step
        codes = np.zeros((len(parts), self.padded), np.uint8)
        for code, part in zip(codes, parts, strict=True):
            code[: self.n_rows] = part.cell
        cells = [part.members.shape for part in parts]
        width = max(1, _PAIRS_AT_ONCE // max(1, len(space)))
        # The left side is cut into groups of partitions, each paired with all propositions at once.
        groups: list[list[int]] = []
        for place, (_, propositions) in enumerate(cells):
            if not groups or propositions + sum(cells[one][1] for one in groups[-1]) > width:
                groups.append([])
            groups[-1].append(place)
        most = [max(sum(cells[one][k] for one in group) for group in groups) for k in (0, 1)]
        self.codes = on_device(codes)
        self.right = on_device(_half(space, range(len(parts)), (0, 0)))
        self.left = [self.right] if len(groups) == 1 else [
            on_device(_half(space, group, (most[0], most[1]))) for group in groups
        ]  # fmt: skip

    def best(
        self,
        objective: Objective,
        terms: Floats,
        count: int,
        stopped: Callable[[], bool],
        *,
        inside: NDArray[np.bool_] | None = None,
        beside: int = 0,
    ) -> list[Bound] | None:
        """The `count` greatest upper bounds on worths, or all, descending; None if `stopped` said
        so while the program compiled.

        Args:
            objective: one with a formula.
            terms: those of `Objective.one_row`.
            inside: the merged rows to sum over, None for all.
            beside: the number of further propositions that all conjunctions have.
        """
        n_classes = objective.classes
        by_class = terms.reshape(n_classes, -1, terms.shape[1])
        if objective.formula in ("sum", "absolute"):  # the other terms are for bounds on subsets
            by_class = by_class[:, :1]
        n_terms = by_class.shape[1]
        padded_terms = n_terms if n_terms < 3 else -(-n_terms // _TERMS) * _TERMS
        # With 2^(e - 1) <= largest < 2^e, a term over 2^e is below 1; a step of 2^(e - 23) is at
        # most 2^-22 of the largest. float32 is off by at most a quarter of a step, and rounding by
        # half a step: less than one step together.
        largest = np.abs(by_class).max(axis=2, initial=0.0)
        exponent = np.where(largest > 0, np.frexp(np.maximum(largest, 1e-300))[1], 0)
        scaled = np.zeros((n_classes, padded_terms, self.padded), np.float32)
        scaled[:, :n_terms, : self.n_rows] = by_class * np.ldexp(1.0, -exponent)[:, :, None]
        steps = np.zeros((n_classes, padded_terms))
        steps[:, :n_terms] = np.ldexp(1.0, exponent - _BITS)
        counted = np.zeros(self.padded, np.int8)
        counted[: self.n_rows] = 1 if inside is None else inside
        lengths = np.array([1, 2]) + beside
        prices, divisors = objective.price(lengths), objective.divisor(lengths)
        digits = 3 * n_classes * padded_terms + 1
        found: list[Bound] = []
        placed = on_device((scaled.reshape(-1, self.padded), counted, steps))
        for left in self.left:
            block = self.step
            # Halving divides `step`, so that the padded rows remain a multiple of the block.
            while block > 1024 and digits * len(left.part) * block > _BLOCK_ENTRIES:
                block //= 2
            ranked = _rank_in_time(
                stopped, self.codes, *placed, left, self.right,
                np.float64(getattr(objective, "ridge", 0.0)), prices, divisors,
                formula=objective.formula, one_sided=objective.one_sided, block=block, count=count,
            )  # fmt: skip
            if ranked is None:
                return None
            found += [
                Bound(worth, (first, second))
                for worth, first, second in zip(*(one.tolist() for one in ranked), strict=True)
                if worth > -math.inf
            ]
        return sorted(found, key=lambda bound: -bound.worth)[:count]


_rankings: WeakKeyDictionary[Activations, Ranking] = WeakKeyDictionary()


def ranking_of(space: SearchSpace) -> Ranking:
    """The ranking of a space with `partitions`, which is made once."""
    known = _rankings.get(space.activations)
    if known is None:
        known = _rankings[space.activations] = Ranking(space)
    return known


def _half(space: SearchSpace, places: Sequence[int], least: tuple[int, int]) -> _Half:
    """The propositions of some partitions, padded to at least these numbers of cells and
    propositions.
    """
    assert space.partitions is not None
    parts = [space.partitions[place] for place in places]
    shapes = [part.members.shape for part in parts]
    n_cells, n_propositions = (
        max(1, -(-max(size, sum(shape[k] for shape in shapes)) // _UNIT)) * _UNIT
        for k, size in enumerate(least)
    )
    half = _Half(
        np.zeros(n_cells, np.int32),
        np.full(n_cells, -1, np.int16),
        np.zeros((n_cells, n_propositions), np.int8),
        np.full(n_propositions, -1, np.int32),
    )
    row = column = 0
    for place, part, (cells, propositions) in zip(places, parts, shapes, strict=True):
        own, across = slice(row, row + cells), slice(column, column + propositions)
        half.part[own], half.cell[own] = place, np.arange(cells)
        half.members[own, across], half.proposition[across] = part.members, part.propositions
        row, column = row + cells, column + propositions
    return half


@x64_kernel(static=("formula", "one_sided", "block", "count"))
def _rank(
    codes: jax.Array,
    terms: jax.Array,
    counted: jax.Array,
    steps: jax.Array,
    left: _Half,
    right: _Half,
    ridge: jax.Array,
    prices: jax.Array,
    divisors: jax.Array,
    *,
    formula: str,
    one_sided: bool,
    block: int,
    count: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The greatest upper bounds on the worth of pairs, and their propositions.

    Args:
        codes: the cell of every row in every partition, (partitions, rows).
        terms: divided by a power of two, to at most 1, (classes x terms, rows).
        counted: 1 for rows that count, (rows,).
        steps: of every term, (classes, terms).
        prices, divisors: for single propositions and for pairs, (2,).
    """
    sums = _sums_of_cells(codes, terms, counted, left, right, block)
    members = left.members.astype(sums.dtype), right.members.astype(sums.dtype)
    sums = jnp.einsum("taq,ap->tpq", jnp.einsum("tab,bq->taq", sums, members[1]), members[0])
    steps = steps[:, :, None, None]
    by_class = sums[:-1].reshape(*steps.shape[:2], *sums.shape[1:]) * steps
    value = _greatest(by_class, sums[-1][None, None] * steps, ridge, formula, one_sided)
    value = value.sum(axis=0) * (1 + _ROUNDING)
    first, second = left.proposition[:, None], right.proposition[None]
    single, pair = ((value - prices[k]) / divisors[k] for k in (0, 1))
    # Each unordered pair once; a proposition with itself is that proposition alone.
    worth = jnp.where(first == second, single, jnp.where(first < second, pair, -jnp.inf))
    worth = jnp.where(first >= 0, worth, -jnp.inf)
    best, place = lax.top_k(worth.ravel(), min(count, worth.size))
    row, column = jnp.divmod(place, worth.shape[1])
    return best, left.proposition[row], right.proposition[column]


def _sums_of_cells(
    codes: jax.Array,
    terms: jax.Array,
    counted: jax.Array,
    left: _Half,
    right: _Half,
    block: int,
) -> jax.Array:
    """The sums of terms, in their steps, over the rows of all pairs of cells, and the number of
    these rows, (terms + 1, cells of the left, of the right); whole numbers, exact.
    """
    n_terms, base = len(terms), float(1 << _DIGIT)
    shape = len(left.part), len(right.part)

    def holds(code: jax.Array, half: _Half) -> jax.Array:
        return (code[half.part].astype(jnp.int16) == half.cell[:, None]).astype(jnp.bfloat16)

    def add(k: jax.Array, sums: jax.Array) -> jax.Array:
        code, x, counts = (
            lax.dynamic_slice_in_dim(array, k * block, block, axis=-1)
            for array in (codes, terms, counted)
        )
        x = jnp.round(x * 2.0**_BITS) * counts.astype(x.dtype)[None]
        # x = (high 2^8 + middle) 2^8 + low, with digits of size at most 128: exact in bfloat16, and
        # 2^16 of them sum to at most 2^23.
        high = jnp.round(x / base**2)
        rest = x - high * base**2
        middle = jnp.round(rest / base)
        digits = jnp.concatenate([high, middle, rest - middle * base, counts[None].astype(x.dtype)])
        rows = digits.astype(jnp.bfloat16)[:, None] * holds(code, left)[None]
        found = lax.dot_general(
            rows.reshape(-1, block), holds(code, right), (((1,), (1,)), ((), ())),
            precision="default", preferred_element_type=jnp.float32,
        ).astype(sums.dtype).reshape(-1, *shape)  # fmt: skip
        high, middle, low = found[:-1].reshape(3, n_terms, *shape)
        whole = (high * base + middle) * base + low
        return sums + jnp.concatenate([whole, found[-1:]])

    start = jnp.zeros((n_terms + 1, *shape), jnp.float64)
    return lax.fori_loop(0, codes.shape[1] // block, add, start)


def _greatest(
    sums: jax.Array, errors: jax.Array, ridge: jax.Array, formula: str, one_sided: bool
) -> jax.Array:
    """Upper bounds on the value of each class, (classes, ...), given its sums up to these errors,
    (classes, terms, ...); the formulas are those of the objectives' `value`.
    """
    gain = jnp.maximum(sums[:, 0], 0) if one_sided else jnp.abs(sums[:, 0])
    if formula == "sum":
        return sums[:, 0] + errors[:, 0]
    gain = gain + errors[:, 0]
    if formula == "absolute":
        return gain
    whole = sums[:, 1] + (ridge if formula == "square" else 0)
    # The least and the greatest denominator that the errors allow. A value is 0 only if even the
    # greatest is in the span; otherwise the least, raised to where values become 0, gives the
    # bound.
    inside, outside = jnp.abs(sums[:, 2:]) + errors[:, 2:], jnp.abs(sums[:, 2:]) - errors[:, 2:]
    least = whole - errors[:, 1] - (inside**2).sum(axis=1)
    most = whole + errors[:, 1] - (jnp.maximum(outside, 0) ** 2).sum(axis=1)
    floor = IN_SPAN * jnp.maximum(whole - errors[:, 1], ridge if formula == "square" else 0)
    in_span, least = most <= floor * (1 - _ROUNDING), jnp.maximum(least, floor)
    value = gain**2 / least if formula == "square" else gain / (jnp.sqrt(least) + DISTANCE_FLOOR)
    return jnp.where(in_span | (gain == 0), 0.0, value)


_rank_in_time = Patient(_rank)
