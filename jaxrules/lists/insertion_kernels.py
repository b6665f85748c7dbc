"""The compiled part of `jaxrules.lists.insertion` on the host: the scores of a beam's conditions.
Imported on first use (numba).

These are the JAX kernels of that module, without what only compilers of whole programs need: empty
words and positions at which no row is covered are passed over. NumPy makes their arrays, as numba
takes a tenth of a second to compile each `np.zeros`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from jaxrules.tools.compiling import FROM_KERNELS, from_python

Bits = NDArray[np.uint32]
Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

_jit: Any = from_python(error_model="numpy")
_part: Any = numba.njit(error_model="numpy", **FROM_KERNELS)
_WORST = -(2**30)


def _ones(context: Any, word: Any) -> Any:
    """The number of set bits of a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint32(types.uint32), generate


_n_ones: Any = intrinsic(_ones)


def pack(literal_bits: NDArray[np.uint64], order: Ints, n_literals: int) -> Bits:
    """Literals as bits over rows in a new order.

    Args:
        literal_bits: the literals that every row satisfies, (rows + 1, words); the last row is
            empty, for padding.
        order: the row behind every bit, (words, 64), padding last in each word.
        n_literals: their number.

    Returns:
        uint32 (2 words, literals).
    """
    by_word = np.zeros((2 * len(order), n_literals), np.uint32)
    _pack(literal_bits, order, np.empty((64, literal_bits.shape[1]), np.uint64), by_word)
    return by_word


@_jit
def _pack(
    literal_bits: NDArray[np.uint64], order: Ints, squares: NDArray[np.uint64], by_word: Bits
) -> None:
    """`pack` into `by_word`; `squares` is the kernel's own, (64, words)."""
    n_blocks, n_literals = squares.shape[1], by_word.shape[1]
    for w in range(len(order)):
        # Padding is last in a word: a word that begins with it is empty, and its bits stay 0.
        if order[w, 0] == len(literal_bits) - 1:
            continue
        # From 64 rows with the bits of their literals to 64 literals with the bits of the rows
        for i in range(64):
            for block in range(n_blocks):
                squares[i, block] = literal_bits[order[w, i], block]
        _transpose(squares)
        for block in range(n_blocks):
            for i in range(min(64, n_literals - 64 * block)):
                word = squares[i, block]
                by_word[2 * w, 64 * block + i] = np.uint32(word & np.uint64(0xFFFFFFFF))
                by_word[2 * w + 1, 64 * block + i] = np.uint32(word >> np.uint64(32))


@_part
def _transpose(squares: NDArray[np.uint64]) -> None:
    """Transpose squares of 64 x 64 bits in place, (64, squares): exchange quarters, then quarters
    of quarters, ...
    """
    half, mask = 32, np.uint64(0xFFFFFFFF)
    while half:
        shift = np.uint64(half)
        for i in range(64):
            if i & half:
                continue
            for block in range(squares.shape[1]):
                # Exchange the high bits of one row with the low bits of the other: XOR with
                # their difference changes each into the other.
                one, other = squares[i, block], squares[i + half, block]
                changed = ((one >> shift) ^ other) & mask
                squares[i, block] = one ^ (changed << shift)
                squares[i + half, block] = other ^ changed
        half >>= 1
        # The low half of every group of 2 `half` bits
        mask ^= mask << np.uint64(half)


def meet(
    rows: Bits, covers: Bits, states: NDArray[np.int64], literals: NDArray[np.int64]
) -> tuple[Bits, NDArray[np.uint64]]:
    """The rows of some states that satisfy one more literal each, and a hash of every such set.

    Rows coded as numbers 0 and 1 of float32 are read as bits, too.
    """
    met, marks = np.empty((len(states), rows.shape[1]), np.uint32), np.empty(len(states), np.uint64)
    _meet(rows, covers, states, literals, met, marks)
    return met, marks


@_jit
def _meet(
    rows: Bits,
    covers: Bits,
    states: NDArray[np.int64],
    literals: NDArray[np.int64],
    met: Bits,
    marks: NDArray[np.uint64],
) -> None:
    """`meet` into its answers."""
    n, n_words = met.shape
    for i in range(n):
        one, other, mark = rows[states[i]], covers[literals[i]], np.uint64(0)
        for w in range(n_words):
            word = one[w] & other[w]
            met[i, w] = word
            # A sum of mixed words, each mixed with its place; empty words add nothing.
            if word:
                mixed = (np.uint64(word) ^ (np.uint64(w) << np.uint64(32))) * np.uint64(
                    0x9E3779B97F4A7C15
                )
                mark += (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        marks[i] = mark


def top_k(values: Floats, k: int) -> tuple[Floats, NDArray[np.int64]]:
    """The k largest values of each row and their places, of equal ones the first."""
    top, place = np.empty((len(values), k), np.float32), np.empty((len(values), k), np.int64)
    _top_k(values, top, place)
    return top, place


@_jit
def _top_k(values: Floats, top: Floats, place: NDArray[np.int64]) -> None:
    """`top_k` into its answers."""
    k = top.shape[1]
    for r in range(len(values)):
        n = 0
        for i in range(values.shape[1]):
            value = values[r, i]
            # Of equal values the first stays in front, here and below, as in `jax.lax.top_k`.
            if n == k and value <= top[r, k - 1]:
                continue
            n = min(n + 1, k)
            j = n - 1
            while j > 0 and top[r, j - 1] < value:
                top[r, j], place[r, j] = top[r, j - 1], place[r, j - 1]
                j -= 1
            top[r, j], place[r, j] = value, i


def _reads(
    n_states: int, n_literals: int, local: np.float32, reading: Floats
) -> tuple[np.float32, Floats | None, Floats, Floats]:
    """The last two of the problem, None for the second where reading has no price, so that `_read`
    is not compiled; and `spared` and `most` of `_read` for every state.
    """
    shape = n_states, n_literals
    most = np.full(shape, -np.inf if local else 0.0, np.float32)
    return local, reading if local else None, np.zeros(shape, np.float32), most


@_part
def _add(cells: Any, total: Any) -> None:
    """The sum of some cells, (cells, literals), into `total`."""
    for j in range(len(total)):
        total[j] = cells[0, j]
    for c in range(1, len(cells)):
        for j in range(len(total)):
            total[j] += cells[c, j]


@_part
def _gain(sums: Ints, default: int, lost: Ints, gain: Floats) -> None:
    """`insertion._worth` of bits, into `gain`, (classes, literals)."""
    # Cells, by row of `sums`: wrong of class 0 to K - 1, wrong and charged (K), then the same for
    # correct rows (K + 1 to 2 K, 2 K + 1).
    K, L = gain.shape
    for j in range(L):
        lost[j] = sums[2 * K + 1, j]
    for k in range(K):
        for j in range(L):
            lost[j] += sums[K + 1 + k, j]
    for k in range(K):
        for j in range(L):
            gain[k, j] = np.float32(sums[k, j] + sums[K + 1 + k, j] - lost[j])
    for j in range(L):
        gain[default, j] += np.float32(sums[K, j] + sums[2 * K + 1, j])


@_part
def _keep(
    gain: Floats, above: Any, ratio: Floats, best: Floats, best_above: Any, best_ratio: Floats
) -> None:
    """Keep the best position of each label; all arrays but `ratio` are (classes, literals)."""
    for k in range(len(gain)):
        for j in range(gain.shape[1]):
            better = gain[k, j] > best[k, j]
            best[k, j] = gain[k, j] if better else best[k, j]
            best_above[k, j] = above[k, j] if better else best_above[k, j]
            best_ratio[k, j] = ratio[k] if better else best_ratio[k, j]


@_part
def _read(
    covered: Any, later: bool, local: np.float32, reading: np.float32, gain: Floats, spared: Floats,
    most: Floats,
) -> None:  # fmt: skip
    """Take the price of reading off the gains at a position, (classes, literals): all rows that
    reach it read the rule, which spares those that it covers the `later` rule.

    Args:
        covered: the weight that reaches the position and is covered, (literals,).
        reading: the price for all rows that reach it.
        spared: what earlier positions spared, (literals,).
        most: the greatest change of the gains at any position, (literals,).
    """
    for j in range(len(spared)):
        if later:
            spared[j] += np.float32(covered[j])
        bonus = local * spared[j] - reading
        most[j] = max(most[j], bonus)
        for k in range(len(gain)):
            gain[k, j] += bonus


@_part
def _finish(
    condition: Flags,
    before: Any,
    covered: Any,
    best: Any,
    above: Any,
    ratio: Floats,
    potential: Any,
    most: Floats,
    charged: Any,
    labels: Flags,
    alpha: np.float32,
    penalty: np.float32,
    limit: int,
    scores: Floats,
) -> None:
    """Gain, purity, accuracy and potential of one state with every literal, as
    `insertion._Scores`, into `scores`, (4, classes, literals).
    """
    length = 1
    for held in condition:
        length += held
    paid = penalty * np.float32(length)
    for k in range(len(labels)):
        fits = length <= limit
        for j in range(len(condition)):
            fits = fits and (labels[k, j] or not condition[j])
        for j in range(labels.shape[1]):
            if not (fits and labels[k, j] and covered[j] < before):
                for which in range(4):
                    scores[which, k, j] = -np.inf
                continue
            # G (Eq. 26): the positive and the negative part give purity and accuracy. The potential
            # is the positive part at the first position.
            gain = alpha * np.float32(best[k, j]) - np.float32(charged[j])
            positive = alpha * np.float32(above[k, j])
            negative = positive - gain
            scores[0, k, j] = gain - paid
            scores[1, k, j] = positive - np.float32(0.5) * negative
            scores[2, k, j] = positive - ratio[k, j] * negative
            scores[3, k, j] = alpha * (np.float32(potential[k, j]) + most[j]) - paid


def score_bits(conditions: Flags, rows: Bits, literals: Bits, *problem: Any) -> Floats:
    """`insertion.score` for rows coded as bits, (4, classes, states, literals)."""
    labels = problem[3]
    (n_states, (K, L)), counts = (len(rows), labels.shape), np.int32
    cells = np.zeros((n_states, 2 * K + 2, L), counts)
    best, above = np.full((n_states, K, L), _WORST, np.float32), np.zeros((n_states, K, L), counts)
    at, scores = np.zeros((n_states, K, L), np.float32), np.empty((4, K, n_states, L), np.float32)
    few, covers_more = np.empty((3, L), counts), np.ones(n_states, bool)
    gain, (*read, spared, most) = np.empty((K, L), np.float32), _reads(n_states, L, *problem[-2:])
    _score_bits(
        conditions, rows, literals, *problem[:-2], *read, cells, best, above, at, gain, few, spared,
        most, covers_more, scores,
    )  # fmt: skip
    return scores


@_jit
def _score_bits(
    conditions: Flags,
    rows: Bits,
    literals: Bits,
    cell: Ints,
    ends: Ints,
    ratio: Floats,
    labels: Flags,
    positions: int,
    default: int,
    alpha: np.float32,
    penalty: np.float32,
    limit: int,
    local: np.float32,
    reading: Floats | None,
    cells: Ints, best: Floats, above: Ints, at: Floats, gain: Floats, few: Ints,
    spared: Floats, most: Floats, covers_more: Flags, scores: Floats,
) -> None:  # fmt: skip
    """`score_bits` into `scores`; the arrays before it are its own, see there."""
    (n_states, n_words), (K, L) = rows.shape, labels.shape
    lost, covered, charged = few[0], few[1], few[2]
    # A block has `insertion._WORDS` = 8 words, a multiple of the 4 below.
    size = n_words // len(cell)
    for p in range(positions):
        for block in range(ends[p], ends[p + 1]):  # a block stays in the cache for all states
            for s in range(n_states):
                sums = cells[s, cell[block]]
                for w in range(block * size, (block + 1) * size, 4):
                    a, b, c, d = rows[s, w], rows[s, w + 1], rows[s, w + 2], rows[s, w + 3]
                    if a | b | c | d:
                        covers_more[s] = True
                        for j in range(L):
                            sums[j] += (
                                _n_ones(a & literals[w, j])
                                + _n_ones(b & literals[w + 1, j])
                                + _n_ones(c & literals[w + 2, j])
                                + _n_ones(d & literals[w + 3, j])
                            )
        for s in range(n_states):
            # Without another covered row the gains are those of the position before, unless reading
            # has a price, and only a greater one would be kept. The flags start at 1 to replace
            # `_WORST` in any case.
            if not covers_more[s] and local == 0.0:
                continue
            covers_more[s] = False
            _gain(cells[s], default, lost, gain)
            if reading is not None:
                _add(cells[s], covered)
                _read(covered, p > 0, local, reading[p], gain, spared[s], most[s])
            _keep(gain, cells[s, :K], ratio[p], best[s], above[s], at[s])
    for s in range(n_states):
        before = np.int64(0)
        for w in range(n_words):
            before += np.int64(_n_ones(rows[s, w]))
        for j in range(L):
            charged[j] = cells[s, K, j] + cells[s, 2 * K + 1, j]
        _add(cells[s], covered)
        _finish(
            conditions[s], before, covered, best[s], above[s], at[s], cells[s, :K], most[s],
            charged, labels, alpha, penalty, limit, scores[:, :, s],
        )  # fmt: skip


def score_rows(conditions: Flags, rows: Floats, literals: Floats, *problem: Any) -> Floats:
    """`insertion.score` for rows with weights, (4, classes, states, literals)."""
    (n_states, (K, L)), number = (len(rows), problem[3].shape), np.float32
    cells, covered = np.zeros((n_states, 2 * K + 2, L), number), np.zeros((n_states, L), number)
    best, gain = np.full((n_states, K, L), _WORST, number), np.empty((K, L), number)
    above, at = np.zeros((n_states, K, L), number), np.zeros((n_states, K, L), number)
    scores = np.empty((4, K, n_states, L), number)
    *read, spared, most = _reads(n_states, L, *problem[-2:])
    _score_rows(
        conditions, rows, literals, *problem[:-2], *read, cells, best, above, at, gain, covered,
        spared, most, scores,
    )  # fmt: skip
    return scores


@_jit
def _score_rows(
    conditions: Flags,
    rows: Floats,
    literals: Floats,
    cell: Floats,
    ends: Ints,
    ratio: Floats,
    labels: Flags,
    positions: int,
    default: int,
    alpha: np.float32,
    penalty: np.float32,
    limit: int,
    local: np.float32,
    reading: Floats | None,
    cells: Floats, best: Floats, above: Floats, at: Floats, gain: Floats, covered: Floats,
    spared: Floats, most: Floats, scores: Floats,
) -> None:  # fmt: skip
    """`score_rows` into `scores`; the arrays before it are its own, see there."""
    (n_states, n_rows), (K, L) = rows.shape, labels.shape
    size = n_rows // len(cell)
    for p in range(positions):
        for block in range(ends[p], ends[p + 1]):
            for s in range(n_states):
                for i in range(size):
                    if rows[s, block * size + i]:
                        row = literals[block * size + i]
                        for c in range(2 * K + 2):
                            value = cell[block, c, i]
                            if value:
                                for j in range(L):
                                    cells[s, c, j] += value * row[j]
                        for j in range(L):
                            covered[s, j] += row[j]
        for s in range(n_states):
            for k in range(K):
                for j in range(L):
                    gain[k, j] = cells[s, k, j]
            if reading is not None:
                _read(cells[s, 2 * K + 1], p > 0, local, reading[p], gain, spared[s], most[s])
            _keep(gain, cells[s, K : 2 * K], ratio[p], best[s], above[s], at[s])
    for s in range(n_states):
        _finish(
            conditions[s], rows[s].sum(), covered[s], best[s], above[s], at[s],
            cells[s, K : 2 * K], most[s], cells[s, 2 * K], labels, alpha, penalty, limit,
            scores[:, :, s],
        )  # fmt: skip
