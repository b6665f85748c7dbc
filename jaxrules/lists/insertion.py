"""The sub-problem of rule list learning: which rule to insert into a list, and where.

A list has m rules; row i is decided by its first satisfied rule, F_i (m for the default). Inserting
the rule "condition c, label l" at position k changes the (distorted) number of correct rows by

    G(c, k, l) = sum over rows i covered by c of w_i(k, l) - literal_penalty |c|,
                 - local_penalty (rules that rows read more)
    w_i(k, l)  = alpha [F_i >= k] (n_il - s_i) - [i in mask] n_id,

where n_il is the weight of label l in row i, s_i = n_i,label(F_i) for rows decided by a rule, else
0, d is the default label, and the mask marks the rows charged for the default label (SSRL Eq. 24 to
26, Lemma 6). The rule is read by all rows that reach k, and spares those that it covers all later
rules that they read now.

One pass over the rows gives G at all positions and labels: rows are sorted by F in blocks, the last
position first, and the cover of a condition is counted block by block; the partial sum at the end
of a position's blocks belongs to that position. Blocks of equal rows are bits, counted exactly;
rows with weights use a float32 product, exact below 2^24.

On one device numba counts and NumPy does the rest: a program would compile for longer than most
fits take, and its many small steps take longer on an accelerator, too. On a mesh, a beam search is
one JAX program of the same functions: every block has a part on each device, which counts its own
rows; counts are added once a position.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from jaxrules.losses import Array
from jaxrules.solvers.layered import never
from jaxrules.solvers.patience import Patient
from jaxrules.tools import placement
from jaxrules.tools.bits import Words, pack, transposed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Literals = tuple[int, ...]
"""The literals of a condition, ascending."""

_TOLERANCE = 1e-6
"""Gains that differ by less than this share are ties."""
_PATIENCE = 2
"""The beam ends after this many layers without a better condition."""
_FOUND = 4
"""The number of conditions that are improved literal by literal at the end."""
_BLOCK = 64
"""The number of conditions that the exact search examines together."""
_WORDS = 8
"""The number of 32-bit words in a block of rows."""
_SOME_ROWS = 2048
"""The number of rows used to choose a literal when there is no time to compile."""
_WEIGHTED = 32
"""The number of rows in a block of rows with weights."""


class Insertion(NamedTuple):
    """A rule to insert: its gain, its literals (none if no rule gains), position and label."""

    gain: float
    condition: Literals
    position: int
    label: int
    bound: float | None = None
    """A proved upper bound on the gain of every insertion, from the exact search."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Binary rows with the weight of each class.

    Attributes:
        literals: bool, shape (literals, rows): which rows satisfy each literal.
        counts: float64, shape (rows, classes): the weight of each class in each row.
        default: code of the default label.
        allowed: bool, shape (classes, literals): which literals a rule of each
            label may have; None for all.
        sample: the rows that a beam search counts; None for all.
        local_penalty: of a rule that a row reads, times the weight of the row.
    """

    literals: Bools
    counts: Floats
    default: int
    allowed: Bools | None = None
    sample: DrawnExamples | None = None
    local_penalty: float = 0.0

    FEW_ROWS: ClassVar[int] = 512
    """Up to this many distinct rows, products over the distinct rows are faster than bit counts
    over all.
    """

    @property
    def n_rows(self) -> int:
        return self.literals.shape[1]

    @property
    def n_classes(self) -> int:
        return self.counts.shape[1]

    @functools.cached_property
    def weights(self) -> Floats:
        """Of the rows."""
        return np.asarray(self.counts.sum(axis=1))

    @functools.cached_property
    def labels(self) -> NDArray[np.intp] | None:
        """The class of every row if all weights are one (or zero, class -1), so that bits can be
        counted; else None.
        """
        weight = self.counts.sum(axis=1)
        single = np.isin(self.counts, (0, 1)).all() and (weight <= 1).all()
        return np.where(weight > 0, self.counts.argmax(axis=1), -1) if single else None

    @functools.cached_property
    def literal_rows(self) -> NDArray[np.uint8]:
        """uint8 (rows + 1, literals); the last row is empty, for padding."""
        return np.pad(self.literals.T.view(np.uint8), ((0, 1), (0, 0)))

    @functools.cached_property
    def literal_bits(self) -> Words:
        """`literal_rows` as bits, uint64 (rows + 1, words)."""
        return np.pad(transposed(pack(self.literals), self.n_rows), ((0, 1), (0, 0)))

    def cover(self, condition: Sequence[int]) -> Bools:
        """The rows that satisfy all literals of a condition."""
        covered = np.ones(self.n_rows, bool)
        for literal in condition:  # many times as fast as all(axis=0) on a million rows
            covered &= self.literals[literal]
        return covered

    def sampled(self, rows: NDArray[np.intp], classes: NDArray[np.intp], weight: float) -> Examples:
        """The same rows, with drawn ones for beam searches; see `DrawnExamples`."""
        counts = (classes[:, None] == np.arange(self.n_classes)).astype(np.float64)
        literals = np.take(self.literals, rows, axis=1)
        drawn = replace(self, literals=literals, counts=counts)
        return replace(self, sample=DrawnExamples(drawn, rows, weight))


@dataclass(frozen=True, eq=False)
class DrawnExamples:
    """Rows drawn with a probability in proportion to their weight, for beam searches on large data.

    Attributes:
        examples: the drawn rows, each with weight one.
        rows: their places among all rows.
        weight: what each represents.
    """

    examples: Examples
    rows: NDArray[np.intp]
    weight: float


@dataclass(frozen=True, eq=False)
class Subproblem:
    """Which rule to insert into a list, and where.

    Attributes:
        examples: the rows.
        first: F, the first rule that covers each row, shape (rows,).
        rule_labels: the labels of the rules in order.
        alpha, mask: see the module.
        penalty: of a literal.
        max_length: the most literals, None for no limit.
        max_rules: the most rules that the list will have; lists up to that length share compiled
            kernels.
        at_least: only insertions that gain more than this are found.
    """

    examples: Examples
    first: NDArray[np.intp]
    rule_labels: Sequence[int]
    alpha: float
    mask: Bools
    penalty: float
    max_length: int | None
    max_rules: int
    at_least: float = 0.0

    @property
    def limit(self) -> int:
        """The most literals of a condition."""
        n_literals = len(self.examples.literals)
        return n_literals if self.max_length is None else min(self.max_length, n_literals)

    @functools.cached_property
    def allowed(self) -> Bools:
        """Which literals a rule of each label may have, (classes, literals)."""
        examples = self.examples
        if examples.allowed is None:
            return np.ones((examples.n_classes, len(examples.literals)), bool)
        return examples.allowed

    def gains(self, covered: Bools) -> Floats:
        """G without its penalty for one condition, see `gains_of`."""
        return gains_of(covered, self.examples, self.first, self.rule_labels, self.alpha, self.mask)

    def best(self, condition: Literals) -> tuple[float, int, int]:
        """The gain of a condition at its best position and label, with both."""
        gains = self.gains(self.examples.cover(condition))
        gains[:, ~self.allowed[:, list(condition)].all(axis=1)] = -np.inf
        position, label = np.unravel_index(int(gains.argmax()), gains.shape)
        gain = float(gains[position, label]) - self.penalty * len(condition)
        return gain, int(position), int(label)

    def for_beam(self) -> Subproblem:
        """The same on the sampled rows, if there are any."""
        sample = self.examples.sample
        if sample is None:
            return self
        return replace(
            # A drawn row counts one but stands for `weight`: gains shrink by this factor, and with
            # them the penalty and the least gain.
            self, examples=sample.examples, first=self.first[sample.rows],
            mask=self.mask[sample.rows], penalty=self.penalty / sample.weight,
            at_least=self.at_least / sample.weight,
        )  # fmt: skip


Finder = Callable[[Subproblem, Callable[[], bool]], tuple[Literals, float | None]]
"""Finds the condition of a good insertion, unless stopped: `by_beam`, `exactly` or `modmod`. Also
returns a proved bound on the gain of every insertion, or None.
"""


def best_insertion(
    problem: Subproblem, find: Finder, stopped: Callable[[], bool] = never
) -> Insertion:
    """The insertion with the largest gain that a search finds, at its best position and label."""
    condition, bound = find(problem, stopped)
    if not condition:
        return Insertion(0.0, (), 0, 0, bound)
    gain, position, label = problem.best(condition)
    return Insertion(gain, condition, position, label, bound)


def gains_of(
    covered: Bools,
    examples: Examples,
    first: NDArray[np.intp],
    rule_labels: Sequence[int],
    alpha: float,
    mask: Bools,
) -> Floats:
    """G without its penalty for one condition at every position and label, computed exactly, shape
    (rules + 1, classes).
    """
    # alpha c(r, k | R) of Eq. 24: at position k a rule takes over the covered rows with F >= k. It
    # gains those of its label and loses those that their old rules classify correctly (`right`; the
    # default's are not lost here but charged by the mask).
    m, rows = len(rule_labels), np.flatnonzero(covered)
    counts, at = examples.counts[rows], first[rows]
    by_position = np.stack([np.bincount(at, column, m + 1) for column in counts.T], axis=1)
    right = np.append(by_position[np.arange(m), list(rule_labels)], 0.0)
    behind = np.cumsum((by_position - right[:, None])[::-1], axis=0)[::-1]
    charged = counts[mask[rows], examples.default].sum()
    gains = np.asarray(alpha * behind - charged)
    if examples.local_penalty:
        reached, covered_from = (
            np.cumsum(np.bincount(one, weights, m + 1)[::-1])[::-1]
            for one, weights in ((first, examples.weights), (at, examples.weights[rows]))
        )
        spared = np.append(np.cumsum(covered_from[:m][::-1])[::-1], 0.0)
        gains -= examples.local_penalty * (reached - spared)[:, None]
    return gains


# The input of the kernels


class _InsertionProblem(NamedTuple):
    """A sub-problem on the device. Blocks are sorted by position, the last first; padding rows
    belong to no state.

    Rows in a block of bits are equal: its `cell` gives the effect of covering one of them, see
    `_worth`. On a mesh, the words or rows of each device lie together.
    """

    literals: Array  # uint32 (words, literals) of bits, or float32 (rows, literals)
    covers: Array  # the same by literal: whole rows are gathered faster than columns
    everything: Array  # uint32 (words,) of bits, or float32 (rows,): all rows but the padding
    # int32 (blocks,); or float32 (blocks, 2 classes + 2, rows of all devices), what covering each
    # row changes
    cell: Array
    # int32 (positions + 1,): blocks before the end of the last position, of the one before, ...
    ends: Array
    # float32 (positions, classes): positive to negative weight of all rows, at most 1; like `ends`
    ratio: Array
    labels: Array  # bool (classes, literals): which literals a rule of each label may have
    positions: Array  # m + 1
    default: Array
    alpha: Array
    penalty: Array
    limit: Array  # most literals
    at_least: Array  # insertions must gain more than this
    local: Array  # price of a rule that a row reads, divided by alpha
    reading: Array  # float32 (positions,): that of all rows that reach it; like `ends`


class _Scores(NamedTuple):
    """Scores of all conditions "state and literal" by label, each at its best position, (classes,
    states, literals).
    """

    gain: Array
    purity: Array  # positive weight minus half of the negative
    accuracy: Array  # weighted relative accuracy
    # the positive weight at the first position, and what reading saves at most: no refinement
    # gains more
    potential: Array


def _worth(cells: Array, default: Array, counted: bool) -> tuple[list[Array], list[Array], Array]:
    """From sums over the rows from a position on: by label, the sums of n_l - s and of its positive
    part, both divided by alpha, and the charged weight.

    Args:
        cells: bits are counted in 2 classes + 2 cells: first rows that no rule classifies
            correctly, by class, and those of the default class that are charged; then the same for
            correct rows. For rows with weights, the cells are the result already, and the weight.
        default: code of the default label.
        counted: whether bits are.
    """
    classes = len(cells) // 2 - 1
    if not counted:
        return list(cells[:classes]), list(cells[classes:-2]), cells[-2]
    wrong, right, charged = cells[:classes], cells[classes + 1 : -1], cells[classes] + cells[-1]
    lost = sum(right) + cells[-1]
    gains = [
        wrong[label] + right[label] - lost + charged * (label == default)
        for label in range(classes)
    ]
    return gains, list(wrong), charged


class _Blocks(NamedTuple):
    """Rows sorted into blocks of one size, and the arrays that the kernels read."""

    literals: Array
    everything: Array
    cell: Array
    ends: NDArray[np.intp]  # blocks before the end of the last position, of the one before, ...
    cells: NDArray[Any]  # sums over the rows of each position, see `_worth`; (cells, positions)


def _on_device(problem: Subproblem) -> _InsertionProblem:
    """Sort the rows into blocks, in NumPy's arrays for the host's kernels, else in a mesh's. All
    sub-problems of lists of up to `max_rules` rules have the same shapes.
    """
    examples, alpha, m = problem.examples, problem.alpha, len(problem.rule_labels)
    counted = examples.labels is not None and examples.n_rows > examples.FEW_ROWS
    blocks = _blocks_of_bits(problem) if counted else _weighted_blocks(problem)
    # For the weighted relative accuracy: unless the ratio is cut to 1, a condition that covers all
    # rows scores 0. The charge of a row does not depend on the position, so that all positions have
    # the charge of all rows, which is the last running sum.
    gains, above, charged = _worth(np.cumsum(blocks.cells, axis=1), examples.default, counted)
    positive = alpha * np.stack(above)
    ratio = positive / np.maximum(
        np.maximum(positive - alpha * np.stack(gains) + charged[-1], positive), 1e-9
    )
    local = examples.local_penalty / alpha
    reading = local * np.cumsum(np.bincount(m - problem.first, examples.weights, m + 1))
    # Positions beyond m are padding, which no kernel reads: the loops end at `positions` = m + 1.
    room = problem.max_rules - m
    found = _InsertionProblem(
        blocks.literals,
        blocks.literals.T,
        blocks.everything,
        blocks.cell,
        np.pad(blocks.ends, (1, room)).astype(np.int32),
        np.pad(ratio.T, ((0, room + 1), (0, 0))).astype(np.float32, order="C"),
        problem.allowed,
        np.int32(m + 1),
        np.int32(examples.default),
        np.float32(alpha),
        np.float32(problem.penalty),
        np.int32(problem.limit),
        np.float32(problem.at_least),
        np.float32(local),
        np.pad(reading, (0, room + 1)).astype(np.float32),
    )
    if on_host():
        return found
    axes = {"literals": 0, "covers": 1, "everything": 0}
    axes |= {} if counted else {"cell": 2}
    return _InsertionProblem(
        *(placement.place(one, axes.get(name)) for name, one in found._asdict().items())
    )


def _blocks_of_bits(problem: Subproblem) -> _Blocks:
    """For rows of one class each: all rows of a block have the same position, class and charge."""
    examples, m, n = problem.examples, len(problem.rule_labels), problem.examples.n_rows
    classes, K = np.asarray(examples.labels), examples.n_classes
    # Covering a row changes the list by its class, by whether a rule (never the default, label -1)
    # already classifies it correctly, and by whether it is charged: 2 K + 2 kinds. A kind is the
    # index of the cell in which its rows are counted (`_worth`).
    right = np.array([*problem.rule_labels, -1])[problem.first] == classes
    charged = problem.mask & (classes == examples.default)
    kinds, size, rows = 2 * K + 2, 32 * _WORDS * _devices(), np.flatnonzero(classes >= 0)
    # Positions in descending order: a rule at position k reaches the rows with F >= k, so that the
    # running sum of the blocks up to the end of position k is all that it can change.
    group = (m - problem.first) * kinds + np.where(charged, K, classes) + (K + 1) * right
    # The most blocks of any list, so that all sub-problems share a shape: full blocks, and one
    # begun block for each group. A position has at most K + 1 kinds of rows, as its rule classifies
    # one class correctly and the others not, and only the default class divides into charged and
    # not.
    capacity = -(-n // size) + problem.max_rules * (K + 1)
    row, sizes, blocks = _sorted_rows(group[rows], rows, kinds * (m + 1), size, capacity, n)
    ends = np.cumsum(blocks)
    cell = np.zeros(capacity, np.int32)
    cell[: ends[-1]] = np.repeat(np.arange(len(sizes)) % kinds, blocks)
    row = _by_device(row, capacity)
    return _Blocks(
        # the bits of every literal over the rows in the new order, 64 rows a word
        _kernels().pack(examples.literal_bits, row.reshape(-1, 64), len(examples.literals)),
        np.packbits(row < n, bitorder="little").view(np.uint32),
        cell,
        ends[kinds - 1 :: kinds],
        sizes.reshape(-1, kinds).T,
    )


def _weighted_blocks(problem: Subproblem) -> _Blocks:
    """For rows with any weights: all rows of a block have the same position."""
    examples, first, m = problem.examples, problem.first, len(problem.rule_labels)
    n, rows = examples.n_rows, np.arange(examples.n_rows)
    decided = np.array([*problem.rule_labels, -1])[first]
    right = np.where(decided >= 0, examples.counts[rows, decided], 0.0)
    gain = examples.counts - right[:, None]
    charged = (problem.mask * examples.counts[:, examples.default])[:, None]
    # Per row, divided by alpha: what a rule of each label gains, the positive part after the charge
    # (for bounds), the charge itself, and the weight if reading has a price
    weight = (examples.weights * (examples.local_penalty > 0))[:, None]
    values = np.hstack([gain, np.maximum(gain - charged / problem.alpha, 0.0), charged, weight])
    size = _WEIGHTED * _devices()
    capacity = -(-n // size) + problem.max_rules
    row, _, blocks = _sorted_rows(m - first, rows, m + 1, size, capacity, n)
    # Places without a row point to row n, whose values are 0.
    padded = np.pad(values, ((0, 1), (0, 0))).astype(np.float32)
    cell = np.ascontiguousarray(padded[row].reshape(capacity, size, -1).swapaxes(1, 2))
    row = _by_device(row, capacity)
    return _Blocks(
        examples.literal_rows[row].astype(np.float32),
        (row < n).astype(np.float32),
        cell,
        np.cumsum(blocks),
        np.stack([np.bincount(m - first, value, m + 1) for value in values.T]),
    )


def _sorted_rows(
    group: NDArray[np.intp],
    rows: NDArray[np.intp],
    n_groups: int,
    size: int,
    capacity: int,
    padding: int,
) -> tuple[NDArray[np.int32], NDArray[np.intp], NDArray[np.intp]]:
    """The row at every place of `capacity` blocks, groups in order and each padded to whole blocks;
    the size of every group, and its number of blocks.
    """
    sizes = np.bincount(group, minlength=n_groups)
    blocks = -(-sizes // size)
    row = np.full(size * capacity, padding, np.int32)
    # How far each group moves to the right because the groups before it fill whole blocks
    gaps = size * (np.cumsum(blocks) - blocks) - (np.cumsum(sizes) - sizes)
    # NumPy sorts numbers of at most 16 bits by their digits
    order = np.argsort(group.astype(np.min_scalar_type(n_groups)), kind="stable")
    row[np.arange(len(rows)) + np.repeat(gaps, sizes)] = rows[order]
    return row, sizes, blocks


def _devices() -> int:
    """The number of devices that a block is split over."""
    over = placement.mesh()
    return 1 if over is None else over.size


def _by_device(row: NDArray[np.int32], n_blocks: int) -> NDArray[np.int32]:
    """Rows in the order of blocks, their parts on the first device before those on the next."""
    return row.reshape(n_blocks, _devices(), -1).swapaxes(0, 1).ravel()


# Kernels


def on_host() -> bool:
    """Whether the search runs numba's kernels, not those of JAX."""
    return placement.mesh() is None


def _kernels() -> Any:
    """The kernels of numba, which is imported on first use."""
    from jaxrules.lists import insertion_kernels

    return insertion_kernels


def score(conditions: Array, rows: Array, problem: _InsertionProblem) -> _Scores:
    """See `_score`; by numba if the problem is in NumPy's arrays."""
    if not isinstance(problem.literals, np.ndarray):
        return _score(conditions, rows, problem)
    bits = rows.dtype == np.uint32
    count = _kernels().score_bits if bits else _kernels().score_rows
    return _Scores(
        *count(
            conditions, rows, problem.literals, problem.cell, problem.ends, problem.ratio,
            problem.labels, problem.positions, problem.default, problem.alpha, problem.penalty,
            problem.limit, problem.local, problem.reading,
        )
    )  # fmt: skip


@jax.jit
def _score(conditions: jax.Array, rows: jax.Array, problem: _InsertionProblem) -> _Scores:
    """Score every condition "state and literal", penalty included; -inf if it is not allowed or
    covers the same rows as the state.

    Args:
        conditions: bool (states, literals).
        rows: the rows that each state covers, coded like `_InsertionProblem.everything`: (states,
            words or rows).
        problem: the sub-problem.
    """
    bits, n_blocks = rows.dtype == jnp.uint32, len(problem.cell)
    unit = _WORDS if bits else _WEIGHTED
    devices = rows.shape[1] // (n_blocks * unit)
    states = jnp.moveaxis(rows.reshape(len(rows), devices, n_blocks, unit), 2, 0)
    literals = jnp.moveaxis(problem.literals.reshape(devices, n_blocks, unit, -1), 1, 0)

    def add_block(block: Array, cells: jax.Array) -> jax.Array:
        if bits:
            counts = jax.lax.population_count(states[block][..., None] & literals[block][None]).sum(
                axis=2
            )
            cell = problem.cell[block]
            return jax.lax.dynamic_update_index_in_dim(
                cells, cells[cell] + counts.astype(jnp.int32), cell, 0
            )
        worth = problem.cell[block].reshape(-1, 1, devices, unit) * states[block][None]
        return cells + jnp.einsum("csdu,dul->csdl", worth, literals[block], precision="highest")

    def add_position(step: Any, sums: Any) -> Any:
        cells, best, spared, most = sums
        cells = jax.lax.fori_loop(problem.ends[step], problem.ends[step + 1], add_block, cells)
        summed = cells.sum(axis=2)
        gains, above, _ = _worth(summed, problem.default, bits)
        covered = summed.sum(axis=0) if bits else summed[-1]
        spared = spared + jnp.where(step > 0, covered, 0).astype(jnp.float32)
        bonus = problem.local * spared - problem.reading[step]
        gains, most = [one + bonus for one in gains], jnp.maximum(most, bonus)
        # Keep the best position of each label; one by one fuses better than an axis of labels.
        for label, old in enumerate(best):
            ratio = jnp.full(old[2].shape, problem.ratio[step, label])
            better = gains[label] > old[0]
            new = gains[label], above[label], ratio
            best[label] = tuple(jnp.where(better, a, b) for a, b in zip(new, old, strict=True))
        return cells, best, spared, most

    classes, shape, kind = len(problem.labels), conditions.shape, jnp.int32 if bits else jnp.float32
    cells = jnp.zeros((2 * classes + 2, len(rows), devices, shape[1]), kind)
    nothing = jnp.zeros(shape, jnp.float32)
    # The first position in the loop replaces this value. Counts are exact in float32.
    none = nothing - 2**30, jnp.zeros(shape, kind), nothing
    cells, best, _, most = jax.lax.fori_loop(
        0, problem.positions, add_position, (cells, [none] * classes, nothing, nothing - jnp.inf)
    )
    gain, above, ratio = (jnp.stack(part) for part in zip(*best, strict=True))
    # Added over the devices, as in the loop
    cells = cells.sum(axis=2)
    _, potential, charged = _worth(cells, problem.default, bits)
    covered = cells.sum(axis=0) if bits else jnp.matmul(rows, problem.literals, precision="highest")
    before = (jax.lax.population_count(rows) if bits else rows).sum(axis=1)[:, None]
    length = conditions.sum(axis=1)[:, None] + 1
    fits = ~(conditions[None] & ~problem.labels[:, None]).any(axis=-1)
    narrower = (covered < before) & (length <= problem.limit)
    open_ = narrower[None] & problem.labels[:, None] & fits[..., None]
    # G (Eq. 26), here without its penalty, and its positive and negative parts
    gain, positive = problem.alpha * gain - charged[None], problem.alpha * above
    negative, paid = positive - gain, (problem.penalty * length)[None]
    scores = (
        gain - paid,
        positive - 0.5 * negative,
        positive - ratio * negative,
        problem.alpha * (jnp.stack(potential) + most[None]) - paid,
    )
    return _Scores(*(jnp.where(open_, value, -jnp.inf) for value in scores))


class _Beam(NamedTuple):
    """Conditions under refinement, and the best ones found."""

    conditions: Array  # bool (states, literals)
    rows: Array  # the rows that each state covers; empty slots cover none
    found: Array  # bool (_FOUND, literals): the best conditions, best first
    gains: Array  # float32 (_FOUND,)
    idle: Array  # layers since the last improvement


def _needed(best: Array) -> Array:
    """A gain must exceed this to count as better than the best."""
    return best + _TOLERANCE * (1.0 + abs(best))


def descend(beam: _Beam, problem: _InsertionProblem) -> _Beam:
    """Refine the states of a beam layer by layer; then drop single literals
    from the best conditions.
    """
    if not isinstance(problem.literals, np.ndarray):
        return _descend(beam, problem)
    with np.errstate(invalid="ignore"):  # before the first condition, the best gain is -inf
        while _open(beam):
            beam = _layer(beam, problem)
    return _leave_one_out(beam, problem)


@jax.jit
def _descend(beam: _Beam, problem: _InsertionProblem) -> _Beam:
    beam = jax.lax.while_loop(_open, lambda beam: _layer(beam, problem), beam)
    return _leave_one_out(beam, problem)


def _open(beam: _Beam) -> Array:
    """Whether to refine further."""
    return (beam.idle < _PATIENCE) & (beam.rows != 0).any()


def _numpy_or_jax(array: Array) -> Any:
    """The module whose functions take this array."""
    return np if isinstance(array, np.ndarray) else jnp


def _top_k(values: Array, k: int) -> tuple[Array, Array]:
    """The k largest of every row, largest first, and their places; in ties, the first."""
    if not isinstance(values, np.ndarray):
        return jax.lax.top_k(values, k)
    return _kernels().top_k(values, k)


def _layer(beam: _Beam, problem: _InsertionProblem) -> _Beam:
    """Evaluate the children of all states: record the best, and keep the leaders by each score and
    label in turn.
    """
    xp = _numpy_or_jax(problem.literals)
    n_states, n_literals = beam.conditions.shape
    scores = score(beam.conditions, beam.rows, problem)

    def child(index: Array) -> Array:
        return beam.conditions[index // n_literals] | (
            xp.arange(n_literals)[None] == (index % n_literals)[:, None]
        )

    values, index = _top_k(scores.gain.max(axis=0).reshape(1, -1), _FOUND)
    found = xp.concatenate([beam.found, child(index[0])])
    gains = xp.concatenate([beam.gains, values[0]])
    # The best conditions so far, each once
    known = xp.tril((found[:, None] == found[None]).all(axis=-1), -1).any(axis=1)
    gains, order = (one[0] for one in _top_k(xp.where(known, -np.inf, gains)[None], _FOUND))
    # A child is kept if its potential, less the penalty of one more literal, may still win.
    live = scores.potential - problem.penalty > _needed(xp.maximum(gains[0], problem.at_least))
    rankings = xp.where(
        live[None], xp.stack([scores.gain, scores.purity, scores.accuracy]), -np.inf
    )
    rankings = rankings.reshape(-1, n_states * n_literals)
    # Twice as many children as slots, as some cover the same rows. The transposition puts the best
    # child of every ranking first, then the second best: no score fills the beam alone.
    values, index = _top_k(rankings, max(2, -(-2 * n_states // len(rankings))))
    values, index = values.T.reshape(-1), index.T.reshape(-1)
    rows, marks = _children(beam.rows, problem.covers, index // n_literals, index % n_literals)
    # One child for each set of rows
    taken = xp.tril((marks[:, None] == marks[None]).all(axis=-1), -1).any(axis=1) | (
        values == -np.inf
    )
    # Slots without a new child cover no rows; when all are so, the search ends (`_open`). Sets with
    # equal hashes that differ would only cost the beam a child.
    kept = xp.argsort(taken, stable=True)[:n_states]
    rows = xp.where(taken[kept, None], 0, rows[kept]).astype(rows.dtype)
    idle = xp.where(gains[0] > _needed(beam.gains[0]), 0, beam.idle + 1)
    return _Beam(child(index[kept]), rows, found[order], gains, idle)


def _leave_one_out(beam: _Beam, problem: _InsertionProblem) -> _Beam:
    """A beam that starts from the best conditions, each without one of its literals."""
    xp = _numpy_or_jax(problem.literals)
    n_states, n_literals = beam.conditions.shape
    each = n_states // _FOUND
    # A slot for each literal of a found condition: it covers the rows in the covers of all the
    # others. Longer conditions than there are slots are left out (`short`).
    found = xp.pad(beam.found, ((0, 0), (0, each)))  # there may be fewer literals
    _, place = _top_k(found.astype(np.float32), each)
    has = xp.take_along_axis(found, place, axis=1)
    left_out = xp.eye(each, dtype=bool)
    rows = xp.broadcast_to(problem.everything, (_FOUND, each, len(problem.everything)))
    for i in range(each):
        literal = xp.minimum(place[:, i], n_literals - 1)
        with_literal = _meet(rows, problem.covers[literal][:, None])
        rows = xp.where((has[:, i, None] & ~left_out[i][None])[..., None], with_literal, rows)
    short = (beam.found.sum(axis=1) <= each)[:, None, None]
    conditions = beam.found[:, None] & (xp.arange(n_literals)[None, None] != place[..., None])
    rows = xp.where(short, rows, 0).astype(rows.dtype).reshape(n_states, -1)
    # The patience allows a single layer that finds nothing better.
    return beam._replace(
        conditions=conditions.reshape(n_states, -1), rows=rows, idle=np.int32(_PATIENCE - 1)
    )


def _meet(rows: Array, others: Array) -> Array:
    """The rows in both sets."""
    return rows & others if rows.dtype == jnp.uint32 else rows * others


def _children(rows: Array, covers: Array, states: Array, literals: Array) -> tuple[Array, Array]:
    """The rows that some states share with one literal each, and hashes of these sets."""
    if not isinstance(rows, np.ndarray):
        met = _meet(rows[states], covers[literals])
        return met, _marks(met)
    bits, marks = _kernels().meet(rows.view(np.uint32), covers.view(np.uint32), states, literals)
    return bits.view(rows.dtype), marks[:, None]


def _marks(rows: jax.Array) -> jax.Array:
    """Two hashes of every set of rows, (sets, 2); equal sets have equal hashes."""
    words = rows.astype(jnp.uint32) ^ (rows.astype(jnp.uint32) >> 16)
    place = jnp.arange(1, rows.shape[1] + 1, dtype=jnp.uint32)
    mixed = words * (place * jnp.uint32(0x9E3779B1) | 1)[None]
    mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0x85EBCA77)
    return jnp.stack([mixed.sum(axis=1), (mixed ^ (mixed >> 13)).sum(axis=1)], axis=1).astype(
        jnp.uint32
    )


def by_beam(
    problem: Subproblem,
    stopped: Callable[[], bool] = never,
    *,
    width: int = 36,
    literals: int | None = None,
) -> tuple[Literals, None]:
    """The best condition that a beam search finds, without a bound; all rows choose among those
    that it finds on a sample.

    Args:
        width: the number of conditions refined at once.
        literals: add only the best literals, this many, to conditions; None for all.
    """
    small = problem.for_beam()
    _, found = _begun(small, _on_device(small), width, literals, stopped)
    if small is not problem and len(found) > 1:
        return max(found, key=problem.best), None
    return (found[0] if found else ()), None


def exactly(
    problem: Subproblem,
    stopped: Callable[[], bool] = never,
    *,
    width: int = 36,
    literals: int | None = None,
    most_blocks: float = math.inf,
) -> tuple[Literals, float]:
    """The best of all conditions, and a bound on all gains. It starts with a beam search, and may
    end after so many blocks of conditions.
    """
    on_device = _on_device(problem)
    gain, found = _begun(problem, on_device, width, literals, stopped)
    return _exhaust(on_device, gain, found[0] if found else (), problem.limit, stopped, most_blocks)


def _begun(
    problem: Subproblem,
    on_device: _InsertionProblem,
    width: int,
    literals: int | None,
    stopped: Callable[[], bool],
) -> tuple[float, list[Literals]]:
    """The best gain and conditions of a beam search, or a single literal if there is no time to
    compile it.
    """
    found = _screened_search(on_device, width, literals, stopped)
    return found or (problem.at_least, [_one_literal(problem)])


def _one_literal(problem: Subproblem) -> Literals:
    """The best single literal at the front of a list, on a sample of the rows; used if there is no
    time to compile more.
    """
    examples = problem.examples
    some = np.linspace(0, examples.n_rows - 1, min(examples.n_rows, _SOME_ROWS)).astype(np.intp)
    counts, charged = examples.counts[some], problem.mask[some]
    # G without s, the rows that the list already classifies correctly: this need only be some rule.
    worth = problem.alpha * counts - (charged * counts[:, examples.default])[:, None]
    gains = np.where(problem.allowed.T, examples.literals[:, some] @ worth, -np.inf)
    return (int(gains.max(axis=1).argmax()),)


def _screened_search(
    problem: _InsertionProblem, width: int, literals: int | None, stopped: Callable[[], bool]
) -> tuple[float, list[Literals]] | None:
    """A beam search among the best literals by each score and label, in turn."""
    n_literals = problem.literals.shape[1]
    if literals is None or n_literals <= literals:
        return _beam_search(problem, width, stopped)
    nothing, everything = np.zeros((1, n_literals), bool), problem.everything[None]
    scores = _score_in_time(stopped, nothing, everything, problem)
    if scores is None:
        return None
    each = [placement.to_host(one) for one in (scores.gain, scores.purity, scores.accuracy)]
    rankings = np.stack(each).reshape(-1, n_literals)
    # The best literal of every ranking, then the second best, ...; each once, where it comes first
    order = np.argsort(-rankings, axis=1, kind="stable").T.ravel()
    first = np.sort(np.unique(order, return_index=True)[1])
    chosen = np.sort(order[first[:literals]])
    best = _numpy_or_jax(problem.literals).take(problem.literals, chosen, axis=1)
    labels = _numpy_or_jax(problem.labels).take(problem.labels, chosen, axis=1)
    few = problem._replace(literals=best, covers=best.T, labels=labels)
    found = _beam_search(few, width, stopped)
    return found and (found[0], [tuple(chosen[list(one)].tolist()) for one in found[1]])


def _beam_search(
    problem: _InsertionProblem, width: int, stopped: Callable[[], bool]
) -> tuple[float, list[Literals]] | None:
    """Keep some children of every layer; then leave literals out of the best conditions, as long as
    that leads to better ones. Returns the best gain and those with enough gain, best first; None if
    there is no time to compile.
    """
    # A multiple of _FOUND, so that `_leave_one_out` has equally many slots for every condition
    n_states, n_literals = _FOUND * -(-width // _FOUND), problem.literals.shape[1]
    rows = np.zeros((n_states, len(problem.everything)), problem.everything.dtype)
    rows[0] = problem.everything
    nothing = np.zeros((n_states, n_literals), bool)
    if isinstance(problem.covers, np.ndarray):
        # `covers` is a transposed view, of which children gather rows.
        problem = problem._replace(covers=np.ascontiguousarray(problem.covers))
    beam = _Beam(
        nothing, _placed(rows), nothing[:_FOUND], np.full(_FOUND, -np.inf, np.float32), np.int32(0)
    )
    best, reached = -np.inf, 0.0
    while not stopped() and reached > best:
        answer = _descend_in_time(stopped, beam, problem)
        if answer is None:
            return None
        beam = answer
        best, reached = reached, float(placement.to_host(beam.gains)[0])
    enough = placement.to_host(beam.gains) > float(problem.at_least)
    found = [tuple(np.flatnonzero(one).tolist()) for one in placement.to_host(beam.found)[enough]]
    return max(reached, float(problem.at_least)), found


def _placed(rows: NDArray[Any]) -> Array:
    """Rows of states, (states, words or rows), split over the mesh if there is one."""
    return rows if placement.mesh() is None else placement.place(rows, 1)


_descend_in_time, _score_in_time = Patient(descend), Patient(score)


class _OpenCondition(NamedTuple):
    """A condition of the exact search: a bound on the gain of its refinements, its literals, and
    the rows that it covers.
    """

    potential: float
    condition: Literals
    rows: NDArray[Any]

    def with_literal(self, literal: int) -> Literals:
        return tuple(sorted((*self.condition, literal)))


def _exhaust(
    problem: _InsertionProblem,
    best: float,
    found: Literals,
    limit: int,
    stopped: Callable[[], bool],
    most_blocks: float,
) -> tuple[Literals, float]:
    """Layer by layer, keep every child that can still win, of equal covers the shortest; returns
    the best condition and a bound on all gains.
    """
    literals, labels = placement.to_host(problem.covers), placement.to_host(problem.labels)
    states = [_OpenCondition(np.inf, (), placement.to_host(problem.everything))]
    penalty = float(problem.penalty)
    seen: set[bytes] = set()
    examined = 0
    # Invariant: every condition of `length` or more literals that could beat `best` refines one of
    # the states, up to conditions with equal covers and labels.
    for length in range(1, limit + 1):
        children: list[_OpenCondition] = []
        for start in range(0, len(states), _BLOCK):
            block = states[start : start + _BLOCK]
            # One shape for all blocks: empty slots of a short last block cover no rows and score
            # -inf.
            conditions = np.zeros((_BLOCK, len(literals)), bool)
            rows = np.zeros((_BLOCK, literals.shape[1]), literals.dtype)
            for i, state in enumerate(block):
                conditions[i, list(state.condition)], rows[i] = True, state.rows
            ended = examined >= most_blocks or stopped()
            scores = None if ended else _score_in_time(stopped, conditions, _placed(rows), problem)
            examined += 1
            if scores is None:  # what refines an open state gains at most its potential
                open_ = [*states[start:], *children]
                return found, max(float(_needed(best)), *(state.potential for state in open_))
            gain = placement.to_host(scores.gain).max(axis=0)[: len(block)]
            potential = placement.to_host(scores.potential).max(axis=0)[: len(block)] - penalty
            if gain.max() > _needed(best):
                top = int(gain.argmax())
                best, found = (
                    float(gain.max()),
                    block[top // len(literals)].with_literal(top % len(literals)),
                )
            for row, literal in (
                np.argwhere(potential > _needed(best)).tolist() if length < limit else ()
            ):
                cover = _meet(block[row].rows, literals[literal])
                # Conditions with equal covers and labels have the same refinements. Lengths ascend,
                # so that the first one seen is among the shortest.
                key = (
                    cover.tobytes()
                    + labels[:, [*block[row].condition, literal]].all(axis=1).tobytes()
                )
                if key not in seen:
                    seen.add(key)
                    children.append(
                        _OpenCondition(
                            float(potential[row, literal]), block[row].with_literal(literal), cover
                        )
                    )
        # The most promising first: a better `best` found early prunes later blocks.
        states = sorted(
            (c for c in children if c.potential > _needed(best)), key=lambda c: -c.potential
        )
        if not states:
            break
    return found, float(_needed(best))


# ModMod, the paper's own sub-problem solver (Algorithm 4)


_Round = tuple[jax.Array, jax.Array, Array, Array, Array]
"""The condition, the best so far and its gain, the number of the round, and whether the round
changed the condition.
"""


@functools.partial(jax.jit, static_argnames="rounds")
def _modmod(
    unsatisfied: jax.Array, charge: jax.Array, reward: jax.Array, penalty: jax.Array, rounds: int
) -> tuple[jax.Array, jax.Array]:
    """The best condition after this many rounds, or fewer if a round changes nothing (Algorithm 4).

    Let Z_ij = 1 if row i does not satisfy literal j. Up to a constant, the gain of a condition c is
    omega(c) - v(c), both submodular (Lemma 6): omega(c) is the sum of P over the rows that some
    literal of c rejects; v(c) likewise with Q, plus penalty |c|. A round replaces omega with a
    modular lower bound that is tight at c (Eq. 12: marginals along a permutation that begins with
    c) and v with two upper bounds (Eq. 10 and 11), and keeps the better of the two maximisers.

    Args:
        unsatisfied: Z, float32 (rows, literals).
        charge, reward: P and Q, float32 (rows,): the cost and the reward of covering a row.
        penalty: of a literal.
        rounds: the most rounds.

    Returns:
        The condition, bool (literals,), and its gain, float32.
    """
    n_literals = unsatisfied.shape[1]

    def product(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.matmul(a, b, precision="highest")

    p, q = charge, reward
    alone_p, alone_q = product(p, unsatisfied), product(q, unsatisfied) + penalty

    def gain(condition: jax.Array) -> jax.Array:
        covered = product(unsatisfied, condition.astype(jnp.float32)) == 0
        value = jnp.sum(jnp.where(covered, q - p, 0.0)) - penalty * condition.sum()
        return jnp.where(condition.any(), value, -jnp.inf)

    def one_round(state: _Round) -> _Round:
        before, best, best_gain, number, _ = state
        # Of every literal j: v(j | c), v(j | c without j) and omega(j | c)
        rejected = product(unsatisfied, before.astype(jnp.float32))
        covered, once = rejected == 0, rejected == 1
        more_q = product(jnp.where(covered, q, 0.0), unsatisfied) + penalty
        only_q = product(jnp.where(once, q, 0.0), unsatisfied) + penalty
        more_p = product(jnp.where(covered, p, 0.0), unsatisfied)
        # The permutation: the literals of the condition, then the others by omega(j | c) / v(j | c)
        ratio = more_p / jnp.maximum(more_q, 1e-6)
        order = jnp.argsort(
            jnp.where(before, 1e30, 0.0) + jnp.where(before, alone_p - alone_q, ratio)
        )[::-1]
        rank = (
            jnp.zeros(n_literals, jnp.int32).at[order].set(jnp.arange(n_literals, dtype=jnp.int32))
        )
        # Eq. 13: a row counts for the first literal that rejects it.
        place = jnp.where(unsatisfied > 0, rank, n_literals).min(axis=1)
        marginal = jax.ops.segment_sum(p, place, n_literals + 1)[rank]
        # The literals whose share of each bound is at least 0 (Algorithm 4, lines 4 and 5). For
        # v(j | all others) in Eq. 11 stands the penalty, which is no larger: still an upper bound.
        first = jnp.where(before, marginal >= only_q, marginal >= alone_q)
        second = jnp.where(before, marginal >= penalty, marginal >= more_q)
        gains = gain(first), gain(second)
        condition = jnp.where(gains[0] >= gains[1], first, second)
        top = jnp.maximum(*gains)
        better = top > best_gain
        best, best_gain = jnp.where(better, condition, best), jnp.where(better, top, best_gain)
        return condition, best, best_gain, number + 1, (condition != before).any()

    nothing = jnp.zeros(n_literals, bool)
    start: _Round = (nothing, nothing, jnp.float32(-jnp.inf), jnp.int32(0), jnp.bool_(True))
    _, best, best_gain, _, _ = jax.lax.while_loop(
        lambda state: state[4] & (state[3] < rounds), one_round, start
    )
    return best, best_gain


_modmod_in_time = Patient(_modmod)


def modmod(problem: Subproblem, stopped: Callable[[], bool] = never) -> tuple[Literals, None]:
    """Algorithm 4 for all positions and labels: the literals of the best condition, without a
    bound.

    Conditions longer than `max_length` are ignored. If already stopped, it finds nothing.
    """
    examples, first, alpha = problem.examples, problem.first, problem.alpha
    m, rows = len(problem.rule_labels), np.arange(examples.n_rows)
    label_of = np.append(problem.rule_labels, 0).astype(int)
    right = np.where(first < m, examples.counts[rows, label_of[first]], 0.0)
    behind = first >= np.arange(m + 1)[:, None]
    # P and Q of Lemma 6 at every position k: rows that reach it have F >= k (`behind`).
    charge = alpha * behind * right + problem.mask * examples.counts[:, examples.default]
    best = 0.0
    condition: Literals = ()
    may_say = problem.allowed
    # labels with the same allowed literals, together
    for allowed in np.unique(may_say[may_say.any(axis=1)], axis=0):
        some = (may_say == allowed).all(axis=1)
        reward = alpha * behind[:, None, :] * examples.counts.T[some]
        # a literal that is not allowed holds for no row
        unsatisfied = placement.place((~examples.literals.T | ~allowed).astype(np.float32), 0)
        for position, label in itertools.product(range(m + 1), range(int(some.sum()))):
            if stopped():
                return condition, None
            weights = (
                placement.place(one.astype(np.float32), 0)
                for one in (charge[position], reward[position, label])
            )
            penalty = np.float32(problem.penalty)
            answer = _modmod_in_time(stopped, unsatisfied, *weights, penalty, rounds=8)
            if answer is None:
                return condition or _one_literal(problem), None
            chosen, gain = map(placement.to_host, answer)
            if chosen.sum() <= problem.limit and gain > best:
                best, condition = float(gain), tuple(np.flatnonzero(chosen).tolist())
    return condition, None
