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
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Subproblem = Literal["beam", "modmod", "exact"]

MOST_ROWS = 2**24
_TOLERANCE = 1e-6
"""Gains that differ by less than this share are ties."""
_POLISHED = 4
"""Conditions of a beam that are improved literal by literal at its end."""
_BLOCK = 64
"""Conditions that the exact search looks at together."""
_WORDS = 4
"""32-bit words of a chunk of rows: groups of rows are padded to 128."""


class Insertion(NamedTuple):
    """A rule to insert: its gain, its literals (ascending; none if nothing gains), where, and with which label."""

    gain: float
    condition: tuple[int, ...]
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
    """

    literals: Bools
    counts: Floats
    default: int

    FEW_ROWS: ClassVar[int] = 512
    """Up to so many distinct rows, products over the distinct rows beat bit counts over all."""

    @property
    def n_rows(self) -> int:
        return self.literals.shape[1]

    @property
    def n_classes(self) -> int:
        return self.counts.shape[1]

    @functools.cached_property
    def labels(self) -> NDArray[np.intp] | None:
        """The class of every row if each row is one row of weight one, else None: then bits can be counted."""
        single = (np.count_nonzero(self.counts, axis=1) == 1).all() and (
            self.counts.max(axis=1, initial=1.0) == 1
        ).all()
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

    gain: Any
    position: Any
    purity: Any  # positive weight minus half of the negative
    accuracy: Any  # weighted relative accuracy
    potential: Any  # the positive weight at the first position: no refinement gains more


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
        self.packed = labels is not None and examples.n_rows > examples.FEW_ROWS
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


class _State(NamedTuple):
    """A condition of the search: its literals, the rows that it covers, and what its refinements can gain."""

    condition: tuple[int, ...]
    rows: NDArray  # as in `_Layout`
    potential: float = np.inf


class _Conditions:
    """Conditions refined literal by literal, layer by layer; the best insertion of any of them.

    Gains are float32, exact but for the rounding of alpha: what is within `_TOLERANCE` of the best is a tie.
    """

    def __init__(self, layout: _Layout, examples: Examples, m: int, penalty: float, labels: Bools) -> None:
        self.layout, self.n_literals, self.m, self.penalty = layout, len(examples.literals), m, penalty
        self.labels = labels
        self.device_table = jax.device_put(layout.table)
        self.best: tuple[float, tuple[int, ...], int, int] = (0.0, (), 0, 0)
        self.promising: dict[tuple[int, ...], float] = {}

    @property
    def needed(self) -> float:
        """A gain must be above this to be better than the best."""
        return self.best[0] + _TOLERANCE * max(1.0, self.best[0])

    def score(self, states: Sequence[_State]) -> _Scores:
        """Gains after the penalty, and the other scores, of all children of some states."""
        size = padded(len(states), 8) if len(states) > 1 else 1
        rows = np.stack([state.rows for state in states])
        rows = np.concatenate([rows, np.zeros((size - len(rows), *rows.shape[1:]), rows.dtype)])
        scores = score_children(rows, self.layout.literals, self.device_table)
        scores = _Scores(*(np.asarray(part)[: len(states)] for part in scores))
        length = np.array([len(state.condition) + 1 for state in states], np.float32)[:, None, None]
        open_ = np.broadcast_to(self.labels, scores.gain.shape).copy()
        for row, state in enumerate(states):
            open_[row, list(state.condition)] = False
        gain = np.where(open_, scores.gain - np.float32(self.penalty) * length, -np.inf)
        potential = np.where(open_, scores.potential - np.float32(self.penalty) * (length + 1), -np.inf)
        scores = scores._replace(gain=gain, potential=potential)
        self._note(states, scores)
        return scores

    def _note(self, states: Sequence[_State], scores: _Scores) -> None:
        """Remember the best child, and a few more to polish."""
        flat = scores.gain.reshape(-1)
        for index in np.argpartition(-flat, min(3, len(flat) - 1))[:4].tolist():
            value = float(flat[index])
            row, literal, label = np.unravel_index(index, scores.gain.shape)
            condition = tuple(sorted((*states[row].condition, int(literal))))
            if value > self.promising.get(condition, 0.0):
                self.promising[condition] = value
            if value > self.needed:
                position = min(int(scores.position[row, literal, label]), self.m)
                self.best = (value, condition, position, int(label))

    def child(self, state: _State, literal: int, potential: float) -> _State:
        condition = tuple(sorted((*state.condition, literal)))
        return _State(condition, self.layout.meet(state.rows, literal), potential)

    def beam(self, max_length: int, width: int, stopped: Callable[[], bool]) -> None:
        """Keep some children of every layer; then exchange single literals of the best conditions."""
        states = [_State((), self.layout.everything)]
        per_list = max(2, -(-width // (3 * int(self.labels.sum()))))
        for length in range(1, max_length + 1):
            scores = self.score(states)
            if length == max_length or stopped():
                break
            states = self._select(states, scores, per_list)
            if not states:
                break
        for condition, _ in sorted(self.promising.items(), key=lambda item: -item[1])[:_POLISHED]:
            self._polish(condition, max_length, stopped)

    def _select(self, states: Sequence[_State], scores: _Scores, per_list: int) -> list[_State]:
        """The best children by every score and label that can still win; of equal covers one."""
        live = scores.potential > self.needed
        chosen: dict[bytes, _State | None] = {state.rows.tobytes(): None for state in states}
        for ranking in (scores.gain, scores.purity, scores.accuracy):
            for label in np.flatnonzero(live.any(axis=(0, 1))).tolist():
                ranked = np.where(live[:, :, label], ranking[:, :, label], -np.inf).reshape(-1)
                most = min(6 * per_list, len(ranked))
                order = np.argpartition(-ranked, most - 1)[:most]
                taken = 0
                for index in order[np.argsort(-ranked[order], kind="stable")].tolist():
                    if taken == per_list or not np.isfinite(ranked[index]):
                        break
                    child = self.child(states[index // self.n_literals], index % self.n_literals, np.inf)
                    key = child.rows.tobytes()
                    if key not in chosen:
                        chosen[key] = child
                        taken += 1
        return [state for state in chosen.values() if state is not None]

    def _polish(self, condition: tuple[int, ...], max_length: int, stopped: Callable[[], bool]) -> None:
        """Hill climbing over conditions that differ in one literal."""
        value = self.promising[condition]
        while len(condition) > 1 and not stopped():
            bases = [condition] * (len(condition) < max_length)
            bases += [condition[:i] + condition[i + 1 :] for i in range(len(condition))]
            states = [_State(base, functools.reduce(self.layout.meet, base, self.layout.everything)) for base in bases]
            gain = self.score(states).gain
            if not gain.max() > value + _TOLERANCE * max(1.0, value):
                return
            row, literal, _ = np.unravel_index(int(gain.argmax()), gain.shape)
            value, condition = float(gain.max()), tuple(sorted((*bases[row], int(literal))))

    def exhaust(self, max_length: int, stopped: Callable[[], bool]) -> float:
        """Keep every child that can still win, of equal covers the shortest; returns a bound on all gains."""
        states = [_State((), self.layout.everything)]
        seen: set[bytes] = set()
        for length in range(1, max_length + 1):
            children: list[_State] = []
            for start in range(0, len(states), _BLOCK):
                if stopped():
                    return max([self.needed, *(s.potential for s in states[start:]), *(c.potential for c in children)])
                block = states[start : start + _BLOCK]
                potential = self.score(block).potential.max(axis=-1)
                if length < max_length:
                    for row, literal in np.argwhere(potential > self.needed).tolist():
                        child = self.child(block[row], literal, float(potential[row, literal]))
                        key = child.rows.tobytes()
                        if key not in seen:
                            seen.add(key)
                            children.append(child)
            states = sorted((c for c in children if c.potential > self.needed), key=lambda c: -c.potential)
        return self.needed


def best_insertion(
    examples: Examples,
    first: NDArray[np.intp],
    rule_labels: Sequence[int],
    *,
    alpha: float,
    mask: Bools,
    penalty: float,
    max_length: int | None,
    max_rules: int,
    method: Subproblem = "beam",
    width: int = 36,
    labels: Sequence[int] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Insertion:
    """The insertion with the largest gain that a search finds.

    Args:
        examples: the rows.
        first: F, the first rule that covers each row, shape (rows,).
        rule_labels: the labels of the rules in order.
        alpha, mask: see the module.
        penalty: the price of a literal.
        max_length: most literals, None for no limit.
        max_rules: most rules that the list will ever have; lists up to that length share compiled kernels.
        method: "beam", "modmod" or "exact".
        width: of the beam.
        labels: the labels that a rule may have; None for all.
        stopped: asked between layers; the best so far is returned when it says True.
    """
    m, n_literals = len(rule_labels), len(examples.literals)
    allowed = np.isin(np.arange(examples.n_classes), range(examples.n_classes) if labels is None else labels)
    limit = n_literals if max_length is None else min(max_length, n_literals)
    bound = None
    if method == "modmod":
        condition, position, label = modmod(examples, first, rule_labels, alpha, mask, penalty, allowed, limit, stopped)
    else:
        layout = _Layout(examples, first, rule_labels, alpha, mask, padded(max_rules, 4))
        search = _Conditions(layout, examples, m, penalty, allowed)
        search.beam(limit, width, stopped)
        if method == "exact":
            bound = search.exhaust(limit, stopped)
        _, condition, position, label = search.best
    if not condition:
        return Insertion(0.0, (), 0, 0, bound)
    exact = gains_of(examples.cover(condition), examples, first, rule_labels, alpha, mask)
    return Insertion(float(exact[position, label]) - penalty * len(condition), condition, position, label, bound)


# ModMod, the paper's own sub-problem solver (Algorithm 4)


@functools.partial(jax.jit, static_argnames="rounds")
def _modmod(
    unsatisfied: jax.Array, charge: jax.Array, reward: jax.Array, penalty: jax.Array, rounds: int
) -> tuple[jax.Array, jax.Array]:
    """The best condition of some rounds, for every row of weights.

    With Z_ij = 1 where row i does not satisfy literal j, the gain of a condition c is, but for a constant,
    omega(c) - v(c), both submodular: omega(c) = sum of P over the rows that some literal of c rejects; v(c) likewise
    with Q, plus penalty |c|. A round replaces omega by a modular lower bound, tight at c (Eq. 12: marginals along a
    permutation that begins with c) and v by two upper bounds (Eq. 10 and 11), and keeps the better of both maximisers.

    Args:
        unsatisfied: Z, float32 (rows, literals).
        charge, reward: P and Q, float32 (weight rows, rows): what covering a row costs, and what it brings.
        penalty: the price of a literal.
        rounds: how many.

    Returns:
        Conditions, bool (weight rows, literals), and their gains, float32 (weight rows,).
    """
    n_literals = unsatisfied.shape[1]

    def product(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.matmul(a, b, precision="highest")

    def of_row(weights: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        p, q = weights
        alone_p, alone_q = product(p, unsatisfied), product(q, unsatisfied) + penalty

        def gain(condition: jax.Array) -> jax.Array:
            covered = product(unsatisfied, condition.astype(jnp.float32)) == 0
            value = jnp.sum(jnp.where(covered, q - p, 0.0)) - penalty * condition.sum()
            return jnp.where(condition.any(), value, -jnp.inf)

        def one_round(_: int, state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
            condition, best, best_gain = state
            rejected = product(unsatisfied, condition.astype(jnp.float32))
            covered, once = rejected == 0, rejected == 1
            more_q = product(jnp.where(covered, q, 0.0), unsatisfied) + penalty
            only_q = product(jnp.where(once, q, 0.0), unsatisfied) + penalty
            more_p = product(jnp.where(covered, p, 0.0), unsatisfied)
            # the condition's literals first, then by what the bounds leave of a literal
            ratio = more_p / jnp.maximum(more_q, 1e-6)
            order = jnp.argsort(jnp.where(condition, 1e30, 0.0) + jnp.where(condition, alone_p - alone_q, ratio))[::-1]
            rank = jnp.zeros(n_literals, jnp.int32).at[order].set(jnp.arange(n_literals, dtype=jnp.int32))
            place = jnp.where(unsatisfied > 0, rank, n_literals).min(axis=1)
            marginal = jax.ops.segment_sum(p, place, n_literals + 1)[rank]
            first = jnp.where(condition, marginal >= only_q, marginal >= alone_q)
            second = jnp.where(condition, marginal >= penalty, marginal >= more_q)
            gains = gain(first), gain(second)
            condition = jnp.where(gains[0] >= gains[1], first, second)
            top = jnp.maximum(*gains)
            better = top > best_gain
            return condition, jnp.where(better, condition, best), jnp.where(better, top, best_gain)

        nothing = jnp.zeros(n_literals, bool)
        _, best, best_gain = jax.lax.fori_loop(0, rounds, one_round, (nothing, nothing, -jnp.inf))
        return best, best_gain

    return jax.lax.map(of_row, (charge, reward))


def modmod(
    examples: Examples, first: NDArray[np.intp], rule_labels: Sequence[int], alpha: float, mask: Bools, penalty: float,
    labels: Bools, max_length: int, stopped: Callable[[], bool],
) -> tuple[tuple[int, ...], int, int]:  # fmt: skip
    """Algorithm 4 for all positions and labels: the literals of the best condition, its position and label.

    A condition longer than `max_length` is none. Nothing is found when already stopped.
    """
    m, rows = len(rule_labels), np.arange(examples.n_rows)
    right = np.where(first < m, examples.counts[rows, np.append(rule_labels, 0).astype(int)[first]], 0.0)
    behind = first >= np.arange(m + 1)[:, None]
    charge = alpha * behind * right + mask * examples.counts[:, examples.default]
    reward = alpha * behind[:, None, :] * examples.counts.T[labels]
    n_labels = int(labels.sum())
    size = padded(m + 1, 4) * n_labels
    pad = ((0, size - (m + 1) * n_labels), (0, 0))
    if stopped():
        return (), 0, 0
    conditions, gains = _modmod(
        1.0 - examples.literal_floats,
        np.pad(np.repeat(charge, n_labels, axis=0), pad).astype(np.float32),
        np.pad(reward.reshape(-1, examples.n_rows), pad).astype(np.float32),
        np.float32(penalty),
        rounds=8,
    )
    chosen = np.asarray(conditions)[: (m + 1) * n_labels]
    value = np.where(chosen.sum(axis=1) <= max_length, np.asarray(gains)[: len(chosen)], -np.inf)
    best = int(value.argmax())
    if not value[best] > 0:
        return (), 0, 0
    condition = tuple(np.flatnonzero(chosen[best]).tolist())
    return condition, best // n_labels, int(np.flatnonzero(labels)[best % n_labels])
