"""The sub-problem of rule list learning: which rule to insert into a list, and where.

A list has m rules; row i is decided by its first satisfied rule F_i (m: by the default). Putting the rule "condition
c, label l" at position k changes the (distorted) number of rows that are right by

    G(c, k, l) = sum over rows i covered by c of w_i(k, l) - literal_penalty |c|,
    w_i(k, l)  = alpha [F_i >= k] (n_il - s_i) - [i in mask] n_id,

where n_il is the weight of label l in row i, s_i = n_i,label(F_i) for rows decided by a rule, else 0, d the default
label, and the mask says which rows the default label is charged for (SSRL Eq. 24 to 26, Lemma 6). All positions and
labels share the conditions: rows are sorted so that w is constant on groups (equal F, label and mask), the rows of a
condition are counted per group by bit operations, and one product with the table of weights gives G for every
position and label at once. Counts are exact: float32 holds every integer below 2^24.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_ROWS = 2**24
_WORDS = 4
"""32-bit words of a chunk of rows: groups of rows are padded to 128."""
_FEW_ROWS = 512
"""Up to so many distinct rows, products over the distinct rows beat bit counts over all."""
_SCORES = 3
"""Children of a beam are ranked by gain, by gain + potential and by weighted relative accuracy."""


class Insertion(NamedTuple):
    """A rule to insert: its gain, its literals (ascending), where, and with which label."""

    gain: float
    condition: tuple[int, ...]
    position: int
    label: int


@dataclass(frozen=True, eq=False)
class Examples:
    """Binary rows with the weight of each class.

    Attributes:
        literals: bool, shape (literals, rows): which rows satisfy each literal.
        counts: float64, shape (rows, classes): the weight of each class in each row.
        default: code of the default label.
    """

    literals: Bools
    counts: Floats
    default: int

    @property
    def n_rows(self) -> int:
        return self.literals.shape[1]

    @property
    def n_classes(self) -> int:
        return self.counts.shape[1]

    @functools.cached_property
    def labels(self) -> NDArray[np.intp] | None:
        """The class of every row if each row is one row of weight one, else None: then bits can be counted."""
        single = (np.count_nonzero(self.counts, axis=1) == 1).all() and (self.counts.max(axis=1, initial=1.0) == 1).all()
        return self.counts.argmax(axis=1) if single else None

    @functools.cached_property
    def literal_rows(self) -> jax.Array:
        """uint8 (rows + 1, literals) on the device; the last row is empty."""
        return jnp.asarray(np.pad(self.literals.T, ((0, 1), (0, 0))).astype(np.uint8))

    @functools.cached_property
    def literal_floats(self) -> jax.Array:
        """float32 (rows, literals) on the device."""
        return jnp.asarray(self.literals.T.astype(np.float32))

    def cover(self, condition: Sequence[int]) -> Bools:
        """The rows that satisfy all literals of a condition."""
        return np.asarray(self.literals[list(condition)].all(axis=0))


def gains_of(
    covered: Bools, examples: Examples, first: NDArray[np.intp], rule_labels: Sequence[int], alpha: float, mask: Bools
) -> Floats:
    """G without its penalty for one condition at every position and label, exactly, shape (rules + 1, classes)."""
    m, rows = len(rule_labels), np.flatnonzero(covered)
    counts, at = examples.counts[rows], first[rows]
    by_position = np.zeros((m + 1, examples.n_classes))
    np.add.at(by_position, at, counts)
    right = np.append(by_position[np.arange(m), list(rule_labels)], 0.0)
    behind = np.cumsum((by_position - right[:, None])[::-1], axis=0)[::-1]
    charged = counts[mask[rows], examples.default].sum()
    return np.asarray(alpha * behind - charged)


class _Table(NamedTuple):
    """What covering one row of a chunk is worth at every label and position; a chunk's rows are alike."""

    gain: NDArray[np.float32]  # (chunks, classes, positions): w(k, l)
    above: NDArray[np.float32]  # (chunks, classes, positions): its positive part
    ratio: NDArray[np.float32]  # (classes, positions): positive to negative weight in all, at most 1


class _Scores(NamedTuple):
    """Of all conditions "state and literal" by label, each at its best position; (states, literals, classes)."""

    gain: NDArray[np.float32]
    position: NDArray[np.int32]
    purity: NDArray[np.float32]  # positive weight minus half of the negative
    accuracy: NDArray[np.float32]  # weighted relative accuracy
    potential: NDArray[np.float32]  # the positive weight at the first position: no refinement gains more


@jax.jit
def pack_rows(literal_rows: jax.Array, order: jax.Array) -> jax.Array:
    """Literals as bits over rows in a new order.

    Args:
        literal_rows: uint8 (rows + 1, literals) of zeros and ones; the last row is empty, for padding.
        order: int32 (words, 32), the row behind every bit.

    Returns:
        uint32 (words, literals).
    """
    words = jnp.zeros((len(order), literal_rows.shape[1]), jnp.uint32)
    for bit in range(32):
        words = words | (literal_rows[order[:, bit]].astype(jnp.uint32) << bit)
    return words


@jax.jit
def score_children(states: jax.Array, literals: jax.Array, table: _Table) -> _Scores:
    """Score every condition "state and literal".

    Args:
        states: rows covered by each state: uint32 (states, words) of bits, or float32 (states, rows).
        literals: rows that satisfy each literal: uint32 (words, literals), or float32 (rows, literals).
        table: see `_Table`; a chunk is `_WORDS` words, or one row.
    """
    chunks, classes, positions = table.gain.shape
    both = jnp.concatenate([table.gain.reshape(chunks, -1), table.above.reshape(chunks, -1)], axis=1)

    def of_state(state: jax.Array) -> _Scores:
        if literals.dtype == jnp.uint32:
            bits = jax.lax.population_count(state[:, None] & literals)
            counts = bits.reshape(chunks, _WORDS, -1).sum(axis=1).astype(jnp.float32)
        else:
            counts = state[:, None] * literals
        sums = jnp.matmul(counts.T, both, precision="highest").reshape(-1, 2, classes, positions)
        gain, above = sums[:, 0], sums[:, 1]
        best = gain.argmax(axis=-1)

        def at_best(values: jax.Array) -> jax.Array:
            return jnp.take_along_axis(values, best[..., None], axis=-1)[..., 0]

        top, positive = at_best(gain), at_best(above)
        negative = positive - top
        ratio = at_best(jnp.broadcast_to(table.ratio, gain.shape))
        return _Scores(
            top, best.astype(jnp.int32), positive - 0.5 * negative, positive - ratio * negative, above[..., 0]
        )

    return jax.lax.map(of_state, states)


def padded(size: int, step: int) -> int:
    """The next size on a grid with steps of at most a quarter, so that similar shapes share compiled kernels."""
    steps = max(1, -(-size // step))
    unit = 1 << max(0, steps.bit_length() - 3)
    return step * unit * -(-steps // unit)


class _Layout:
    """Rows sorted into chunks of equal weight, and what covering them is worth."""

    def __init__(
        self, examples: Examples, first: NDArray[np.intp], rule_labels: Sequence[int], alpha: float, mask: Bools,
        capacity: int,
    ) -> None:  # fmt: skip
        m, K = len(rule_labels), examples.n_classes
        labels = examples.labels
        self.packed = labels is not None and examples.n_rows > _FEW_ROWS
        if labels is not None and self.packed:
            group = (first * K + labels) * 2 + mask
            order = np.argsort(group, kind="stable")
            ids, sizes = np.unique(group, return_counts=True)
            per_group = -(-sizes // (32 * _WORDS))
            starts = 32 * _WORDS * (np.cumsum(per_group) - per_group)
            chunk = np.repeat(ids, per_group)
            self.chunks = padded(len(chunk), 32)
            bits = np.full(32 * _WORDS * self.chunks, examples.n_rows, np.int32)
            bits[np.arange(len(group)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)] = order
            self.everything = np.packbits(bits < examples.n_rows, bitorder="little").view(np.uint32)
            self.literals = pack_rows(examples.literal_rows, bits.reshape(-1, 32))
            at, charged = chunk // (2 * K), chunk % 2 == 1
            counts = (chunk[:, None] // 2 % K == np.arange(K)).astype(np.float64)
            size = np.repeat(sizes / per_group, per_group)  # rows of a chunk, on average
        else:
            at, charged, counts, size = first, mask, examples.counts, np.ones(len(first))
            self.chunks = examples.n_rows
            self.everything = np.ones(self.chunks, np.float32)
            self.literals = examples.literal_floats
        right = np.where(at < m, counts[np.arange(len(at)), np.append(rule_labels, 0).astype(int)[at]], 0.0)
        behind = at[:, None] >= np.minimum(np.arange(capacity), m)  # positions after the last repeat it
        gain = alpha * (counts - right[:, None])[:, :, None] * behind[:, None, :]
        gain -= (charged * counts[:, examples.default])[:, None, None]
        above = np.maximum(gain, 0.0)
        positive = np.tensordot(size, above, 1)
        negative = positive - np.tensordot(size, gain, 1)
        room = ((0, self.chunks - len(at)), (0, 0), (0, 0))
        self.table = _Table(
            np.pad(gain, room).astype(np.float32),
            np.pad(above, room).astype(np.float32),
            (positive / np.maximum(np.maximum(negative, positive), 1e-9)).astype(np.float32),
        )
        self.by_literal = np.ascontiguousarray(np.asarray(self.literals).T)

    def meet(self, rows: NDArray, literal: int) -> NDArray:
        """The rows of a state that satisfy a literal too."""
        return rows & self.by_literal[literal] if self.packed else rows * self.by_literal[literal]


@dataclass(frozen=True)
class _State:
    """A condition of the beam."""

    condition: tuple[int, ...]
    rows: NDArray  # as `_Layout.of` has them


class _Beam:
    """Conditions refined literal by literal; the best insertion of any of them."""

    def __init__(self, layout: _Layout, n_literals: int, m: int, penalty: float, width: int) -> None:
        self.layout, self.n_literals, self.m, self.penalty = layout, n_literals, m, penalty
        self.device_table = jax.device_put(layout.table)
        K = layout.table.gain.shape[1]
        self.per_list = max(2, -(-width // (3 * K)))
        self.capacity = 3 * K * self.per_list
        self.best: tuple[float, tuple[int, ...], int, int] = (0.0, (), 0, 0)
        self.promising: dict[tuple[int, ...], float] = {}

    def score(self, states: Sequence[_State]) -> _Scores:
        """Gains after the penalty, and the other scores, of all children of some states."""
        size = 1 if len(states) == 1 else 8 if len(states) <= 8 else max(self.capacity, len(states))
        rows = np.stack([state.rows for state in states])
        rows = np.concatenate([rows, np.zeros((size - len(rows), *rows.shape[1:]), rows.dtype)])
        scores = score_children(rows, self.layout.literals, self.device_table)
        scores = _Scores(*(np.asarray(part)[: len(states), : self.n_literals] for part in scores))
        lengths = np.array([len(state.condition) for state in states])[:, None, None] + 1
        gain = scores.gain - np.float32(self.penalty) * lengths
        used = np.zeros(gain.shape[:2], bool)
        for row, state in enumerate(states):
            used[row, list(state.condition)] = True
        gain[used] = -np.inf
        self.note(states, gain, scores.position)
        return scores._replace(gain=gain, potential=scores.potential - np.float32(self.penalty) * (lengths + 1))

    def note(self, states: Sequence[_State], gain: NDArray, position: NDArray) -> None:
        """Remember the best child, and a few more to polish."""
        flat = gain.reshape(-1)
        for index in np.argpartition(-flat, min(3, len(flat) - 1))[:4].tolist():
            value = float(flat[index])
            row, literal, label = np.unravel_index(index, gain.shape)
            condition = tuple(sorted((*states[row].condition, int(literal))))
            if value > self.promising.get(condition, 0.0):
                self.promising[condition] = value
            if value > self.best[0] * (1 + 1e-6) + 1e-6:
                self.best = (value, condition, min(int(position[row, literal, label]), self.m), int(label))

    def select(self, states: Sequence[_State], scores: _Scores) -> list[_State]:
        """The next states: the best children by each score and label that can still win, equal covers once."""
        live = (scores.potential > self.best[0] * (1 + 1e-6) + 1e-6) & np.isfinite(scores.gain)
        if not live.any():
            return []
        chosen: dict[bytes, _State] = {state.rows.tobytes(): state for state in states}
        parents = len(chosen)
        D = scores.gain.shape[1]
        for ranking in (scores.gain, scores.purity, scores.accuracy):
            for label in range(ranking.shape[2]):
                ranked = np.where(live[:, :, label], ranking[:, :, label], -np.inf).reshape(-1)
                many = min(6 * self.per_list, len(ranked))
                order = np.argpartition(-ranked, many - 1)[:many]
                taken = 0
                for index in order[np.argsort(-ranked[order], kind="stable")].tolist():
                    if taken == self.per_list or not np.isfinite(ranked[index]):
                        break
                    parent = states[index // D]
                    rows = self.layout.meet(parent.rows, index % D)
                    key = rows.tobytes()
                    if key not in chosen:
                        chosen[key] = _State(tuple(sorted((*parent.condition, index % D))), rows)
                        taken += 1
        return list(chosen.values())[parents:]

    def run(self, everything: NDArray, max_length: int, stopped: Callable[[], bool]) -> None:
        """Refine from the empty condition; then drop, exchange and add single literals of the best ones."""
        states = [_State((), everything)]
        for length in range(1, max_length + 1):
            scores = self.score(states)
            if length == max_length or stopped():
                break
            states = self.select(states, scores)
            if not states:
                break
        for condition, _ in sorted(self.promising.items(), key=lambda item: -item[1])[:4]:
            self.polish(condition, max_length, stopped)

    def polish(self, condition: tuple[int, ...], max_length: int, stopped: Callable[[], bool]) -> None:
        """Hill climbing over conditions that differ in one literal."""
        value = self.promising[condition]
        while len(condition) > 1 and not stopped():
            bases = [condition] * (len(condition) < max_length)
            bases += [condition[:i] + condition[i + 1 :] for i in range(len(condition))]
            states = [_State(base, functools.reduce(self.layout.meet, base, self.layout.everything)) for base in bases]
            gain = self.score(states).gain
            row, literal, _ = np.unravel_index(int(gain.argmax()), gain.shape)
            if not gain.max() > value * (1 + 1e-6) + 1e-6:
                return
            value, condition = float(gain.max()), tuple(sorted((*bases[row], int(literal))))


def best_insertion(
    examples: Examples,
    first: NDArray[np.intp],
    rule_labels: Sequence[int],
    *,
    alpha: float,
    mask: Bools,
    penalty: float,
    max_length: int,
    max_rules: int,
    width: int = 36,
    stopped: Callable[[], bool] = lambda: False,
) -> Insertion | None:
    """The insertion with the largest gain that a beam search finds, None if none gains anything."""
    layout = _Layout(examples, first, rule_labels, alpha, mask, padded(max_rules, 4))
    beam = _Beam(layout, len(examples.literals), len(rule_labels), penalty, width)
    beam.run(layout.everything, max_length, stopped)
    gain, condition, position, label = beam.best
    if not condition:
        return None
    exact = gains_of(examples.cover(condition), examples, first, rule_labels, alpha, mask)
    return Insertion(float(exact[position, label]) - penalty * len(condition), condition, position, label)
