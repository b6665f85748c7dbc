"""The compiled part of exact rule lists: the continuations of a prefix. Imported on first use
(numba).

The rows that a prefix has captured determine its continuations: for all conditions at once, the
classes of the rows that each would capture are counted. These give the value of stopping there and
a bound on what can still be gained. Functions that Python calls take `Given` as a plain
tuple: numba needs far longer to recognise named ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from jaxrules.tools.compiling import FROM_KERNELS, from_python

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

_jit: Any = from_python(error_model="numpy")
_part: Any = numba.njit(error_model="numpy", **FROM_KERNELS)

_COMPARED = 16
"""So many second rules are compared with their bounds in the time in which one is examined."""


class Given(NamedTuple):
    """The problem. Rows are merged into groups; group 64 w + b is bit b of word w."""

    covers: Words  # the groups that each condition covers, uint64 (conditions, words)
    counts: Floats  # weight of every class in a group, and of its heaviest, (64 words, classes + 1)
    # `WeighedBits` of the conditions; of no words if weights are summed as numbers
    bits: Words
    place: Ints
    powers: Words
    parts: Ints
    units: Floats
    prices: Floats  # the penalties of the conditions, (conditions,)
    labels: Flags  # which labels the rule of a condition may have, (classes, conditions)
    defaults: Flags  # which labels the default may be, (classes,)
    uses: Words  # which of the required features a condition uses, as bits, (conditions,)
    required: np.uint64  # all of them
    local: float  # the penalty of a rule that a row reads, times the weight of the row


class RowPairs(NamedTuple):
    """Pairs of rows of two classes, see `jaxrules.lists.row_pairs`; none if not made.

    Attributes:
        first, second: the groups of the rows, (pairs,).
        for_first, for_second: the pairs that each condition splits for the label of the first, and
            of the second, bits (conditions, words).
        touched: the pairs of which a condition covers a row.
        unit: the weight of each row.
    """

    first: Ints
    second: Ints
    for_first: Words
    for_second: Words
    touched: Words
    unit: float


def no_pairs() -> RowPairs:
    none, words = np.zeros(0, np.int64), np.zeros((0, 0), np.uint64)
    return RowPairs(none, none, words, words, words, 1.0)


def _ones(context: Any, word: Any) -> Any:
    """The number of set bits of a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _place(context: Any, word: Any) -> Any:
    """The position of the lowest set bit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


_n_ones: Any = intrinsic(_ones)
_lowest: Any = intrinsic(_place)


def room(given: tuple[Any, ...], dense: Floats | None) -> tuple[Any, ...]:
    """`bits`, `words`, `others`, `one`, `sums` and `right` of `_captures`: numba takes a tenth of a
    second to compile each `np.empty`, and does not compile what it would do with None.
    """
    problem = Given(*given)
    (R, W), K, P = problem.covers.shape, len(problem.labels), len(problem.powers)
    bits = np.empty(P, np.uint64) if P else None
    others = np.empty(W, np.uint64) if bits is None and dense is None else None
    return (
        bits,
        np.empty(W, np.int64),
        others,
        np.empty(K + 1),
        np.empty((K + 1, R + 1)),
        np.empty(R),
    )


@_part
def _counted(
    free: Words, cover: Words, powers: Words, parts: Ints, units: Floats, sums: Floats
) -> None:
    """The weight of the common bits, by class and of the heaviest classes, into `sums`."""
    K = len(sums) - 1
    sums[:] = 0.0
    for p in range(len(parts)):
        first, end = parts[p, 0], parts[p, 1]
        # Slices from 0 on, so that the compiler counts eight words at once
        one, other, power = free[first:end], cover[first:end], powers[first:end]
        total = np.uint64(0)
        for w in range(end - first):
            total += _n_ones(one[w] & other[w]) * power[w]
        sums[parts[p, 2]] += units[p] * np.int64(total)
    if len(parts) == K:  # the heaviest class of a group is its only one
        for k in range(K):
            sums[K] += sums[k]


@_part
def _added(free: Words, cover: Words, words: Ints, counts: Floats, sums: Floats) -> None:
    """The weight of the common groups, by class and of the heaviest classes, into `sums`."""
    sums[:] = 0.0
    for w in words:
        word = free[w] & cover[w]
        while word:
            g = 64 * w + np.int64(_lowest(word))
            for k in range(len(sums)):
                sums[k] += counts[g, k]
            word &= word - np.uint64(1)


@_part
def _bits_of(given: Given, free: Words, bits: Words) -> None:
    """The bits of some groups, into `bits`."""
    for w in range(len(bits)):
        word = np.uint64(0)
        for b in range(64):
            g = given.place[64 * w + b]
            if g < 0:
                break
            word |= (free[g >> 6] >> np.uint64(g & 63) & np.uint64(1)) << np.uint64(b)
        bits[w] = word


@_part
def _weight(sums: Floats, r: int) -> float:
    """The weight of all classes that a condition captures; of `_captures`."""
    weight = 0.0
    for k in range(len(sums) - 1):
        weight += sums[k, r]
    return weight


@_part
def _captures(
    given: Given, dense: Floats | None, free: Words, bits: Words | None, words: Ints,
    others: Words | None, one: Floats, sums: Floats, right: Floats,
) -> Ints:  # fmt: skip
    """The free rows that every condition captures, and the weight that its best label classifies
    correctly.

    Args:
        given: the problem.
        dense: the groups that each condition covers as numbers, (64 words, conditions). None if
            too large, or if weights are bits.
        free: the remaining groups, (words,).
        bits: filled with the bits of these groups; None if weights are no bits.
        words, others, one: room, (words,), (words,) and (classes + 1,); `others` is None if `bits`
            or `dense` is not.
        sums: filled: the weight by class of every condition, and of all rows in the last column,
            (classes + 1, conditions + 1).
        right: filled, (conditions,).

    Returns:
        The words of `free` that are not empty.
    """
    R, K = len(given.covers), len(given.labels)
    n_words = 0
    for i in range(len(free)):
        if free[i]:
            words[n_words] = i
            n_words += 1
    words = words[:n_words]
    sums[:] = 0.0
    if bits is not None:
        _bits_of(given, free, bits)
        for r in range(R + 1):
            cover = given.bits[r] if r < R else bits
            _counted(bits, cover, given.powers, given.parts, given.units, one)
            # Not by a slice: its check of shapes takes two seconds to compile.
            for k in range(K + 1):
                sums[k, r] = one[k]
    # One pass over the free groups counts for all conditions at once, along contiguous rows.
    elif dense is not None:
        for w in words:
            word = free[w]
            while word:
                g = 64 * w + np.int64(_lowest(word))
                row = dense[g]
                for k in range(K + 1):
                    weight, total = given.counts[g, k], sums[k]
                    if weight:
                        total[R] += weight
                        for r in range(R):
                            total[r] += weight * row[r]
                word &= word - np.uint64(1)
    elif others is not None:
        _added(free, free, words, given.counts, one)
        for k in range(K + 1):
            sums[k, R] = one[k]
        # Rows are counted on the smaller side of a condition: inside it, or outside it and
        # subtracted from the total.
        for r in range(R):
            cover, inside, outside = given.covers[r], np.uint64(0), np.uint64(0)
            for w in words:
                others[w] = ~cover[w]
                inside += _n_ones(free[w] & cover[w])
                outside += _n_ones(free[w] & others[w])
            few = inside <= outside
            _added(free, cover if few else others, words, given.counts, one)
            for k in range(K + 1):
                sums[k, r] = one[k] if few else sums[k, R] - one[k]
    right[:] = -np.inf
    for k in range(K):
        for r in range(R):
            if given.labels[k, r]:
                right[r] = max(right[r], sums[k, r])
    return words


@_part
def _split(given: Given, pairs: RowPairs, free: Words, both: Words, splits: Floats) -> float:
    """Fill the pairs of which both rows are free, and the weight that each condition splits of
    them, less its penalty. Returns the weight of these pairs.
    """
    both[:] = np.uint64(0)
    n = np.uint64(0)
    for p in range(len(pairs.first)):
        i, j = pairs.first[p], pairs.second[p]
        left = free[i >> 6] >> np.uint64(i & 63) & free[j >> 6] >> np.uint64(j & 63) & np.uint64(1)
        both[p >> 6] |= left << np.uint64(p & 63)
        n += left
    for r in range(len(splits)):
        one, other = np.uint64(0), np.uint64(0)
        for w in range(len(both)):
            one += _n_ones(both[w] & pairs.for_first[r, w])
            other += _n_ones(both[w] & pairs.for_second[r, w])
        splits[r] = pairs.unit * np.int64(max(one, other)) - given.prices[r]
    return float(pairs.unit * np.int64(n))


@_part
def _touched(pairs: RowPairs, both: Words, r: int) -> float:
    """The weight of the pairs of which a condition covers a free row."""
    n = np.uint64(0)
    for w in range(len(both)):
        n += _n_ones(both[w] & pairs.touched[r, w])
    return float(pairs.unit * np.int64(n))


@_part
def _keep(value: float, greatest: Floats) -> None:
    """Insert a value into the greatest so far, if it is one of them."""
    i = len(greatest) - 1
    if value > greatest[i]:
        while i > 0 and greatest[i - 1] < value:
            greatest[i] = greatest[i - 1]
            i -= 1
        greatest[i] = value


@_part
def _others(own: float, greatest: Floats) -> float:
    """The sum of the greatest values of all conditions but one: the next one takes its place."""
    total, last = 0.0, len(greatest) - 1
    for i in range(last):
        total += greatest[i]
    return total + min(0.0, greatest[last] - own)


@_part
def _with_two(
    given: Given, pairs: RowPairs, free: Words, both: Words, splits: Floats, top: Floats
) -> tuple[float, float]:
    """The weight of the pairs that are left, and the most that two rules and the default classify
    correctly, less the penalties, by these pairs. Fills the splits, and the two greatest.
    """
    paired, right = _split(given, pairs, free, both, splits), 0.0
    top[:] = 0.0
    for split in splits:
        _keep(split, top)
    for w in range(len(free)):
        word = free[w]
        while word:
            right += given.counts[64 * w + np.int64(_lowest(word)), len(given.labels)]
            word &= word - np.uint64(1)
    return paired, right - paired + top.sum()


@_jit
def expand(
    given: tuple[Any, ...], dense: Floats | None, pairs: tuple[Any, ...], free: Words,
    values: Floats, used: Words, after: int, settled: float, parents: Ints, moves: Ints,
    bounds: Floats, reached: Floats, stops: Floats, top: Floats, bits: Words | None, words: Ints,
    others: Words | None, one: Floats, sums: Floats, right: Floats,
) -> int:  # fmt: skip
    """The prefixes with one further rule that may lead to a list better than `settled`.

    Args:
        given: the problem, a `Given`.
        dense: see `_captures`.
        pairs: `RowPairs`.
        free: the groups that each prefix does not capture, uint64 (prefixes, words).
        values: the weight that its rules classify correctly minus their penalties, those of reading
            them included, (prefixes,).
        used: the required features that it uses.
        after: the most rules that may follow the next.
        settled: children that cannot be better are left out.
        parents, moves, bounds, reached, stops: filled as in `Children`; at most one for every
            prefix and condition.
        top: room for the greatest potentials, by default label, and for the greatest weights of
            split pairs, (classes + 1, after + 1).
        bits, words, others, one, sums, right: `room`.

    Returns:
        The number of children.
    """
    given, pairs = Given(*given), RowPairs(*pairs)
    R, K, prices = len(given.covers), len(given.labels), given.prices
    both, splits, paired = np.empty(pairs.touched.shape[1], np.uint64), np.empty(R), 0.0
    use_pairs = after > 0 and len(pairs.first) > 0
    cheapest = np.inf
    for price in prices:
        cheapest = min(cheapest, price)
    n = 0
    for s in range(len(free)):
        _captures(given, dense, free[s], bits, words, others, one, sums, right)
        read = given.local * _weight(sums, R)  # all free rows read the next rule
        # Potential: what a condition adds at most if d is the default, less its penalty.
        top[:] = 0.0
        for d in range(K):
            for r in range(R):
                potential = sums[K, r] - sums[d, r] - prices[r]
                _keep(potential, top[d])  # `after` + 1 potentials are kept, see below
        if use_pairs:
            paired = _split(given, pairs, free[s], both, splits)
            for r in range(R):
                _keep(splits[r], top[K])
        for r in range(R):
            incomplete = used[s] | given.uses[r] != given.required
            # A rule that captures nothing, or no room for the required features that are missing
            if sums[K, r] == 0 or (incomplete and after == 0):
                continue
            value = values[s] + right[r] - prices[r] - read
            later = read - given.local * _weight(sums, r)  # one further rule is read at least
            split = np.inf  # all that is right of what r leaves, by the pairs
            if use_pairs:
                split = sums[K, R] - sums[K, r] - paired + _touched(pairs, both, r)
                split += _others(splits[r], top[K])
            stop = bound = -np.inf
            for d in range(K):
                if given.defaults[d]:
                    rest = sums[d, R] - sums[d, r]
                    more = 0.0
                    if after > 0:  # the bounds of `jaxrules.lists.prefixes`
                        potential = sums[K, r] - sums[d, r] - prices[r]
                        more = _others(potential, top[d])
                        more = min(more, sums[K, R] - sums[K, r] - rest - cheapest)
                        more = min(more, split - rest)
                        more = max(0.0, more - later)
                    stop = max(stop, value + rest)
                    bound = max(bound, value + rest + more)
            if bound > settled:
                parents[n], moves[n], bounds[n], reached[n] = s, r, bound, value
                stops[n] = -np.inf if incomplete else stop
                n += 1
    return n


class Shared(NamedTuple):
    """What pairs of conditions have in common among some rows, the base, for every default that is
    allowed: bounds for prefixes that leave a part of these rows, see `finish`. Empty if unknown.
    """

    spoiled: Floats  # on common rows, what a rule can lose at most, (defaults, R, R)
    lost: Floats  # with two classes, what it loses; with more, the same as `spoiled`
    other: Floats  # with two classes, the weight of the other one
    alone: Floats  # `sums` of `_captures`
    gain: Floats  # of a rule alone, less its penalty, (defaults, R)
    ahead: Floats  # of the best second rule after each first one, at most, (defaults, R)
    bits: Words  # of the base


@_jit
def share(
    given: tuple[Any, ...], spoiled: Floats, lost: Floats, other: Floats, alone: Floats
) -> None:
    """Fill the first parts of `Shared`, for all rows; the weights of the problem are bits."""
    given = Given(*given)
    R, K = len(given.covers), len(given.labels)
    one = np.empty(K + 1)
    for r in range(R):
        for q in range(r + 1):
            _counted(given.bits[r], given.bits[q], given.powers, given.parts, given.units, one)
            i = 0
            for d in range(K):
                if given.defaults[d]:
                    if K == 2:
                        spoiled[i, r, q] = spoiled[i, q, r] = one[2] - one[1 - d]
                        lost[i, r, q] = lost[i, q, r] = one[d] - one[1 - d]
                        other[i, r, q] = other[i, q, r] = one[1 - d]
                    else:
                        spoiled[i, r, q] = spoiled[i, q, r] = one[d]
                        lost[i, r, q] = lost[i, q, r] = one[d]
                    i += 1
        for k in range(K + 1):
            alone[k, r] = one[k]


@_part
def _after(
    given: Given, shared: Shared, taken: int, bits: Words, sums: Floats, right: Floats
) -> None:
    """`bits`, `sums` and `right` of `_captures` for the base without the rows of a condition; two
    classes.
    """
    R, d = len(right), 0 if given.defaults[0] else 1
    for w in range(len(bits)):
        bits[w] = shared.bits[w] & ~given.bits[taken, w]
    for q in range(R):
        other = shared.other[0, taken, q]
        sums[1 - d, q] = shared.alone[1 - d, q] - other
        sums[d, q] = shared.alone[d, q] - (shared.lost[0, taken, q] + other)
        sums[2, q] = shared.alone[2, q] - (shared.spoiled[0, taken, q] + other)
    right[:] = -np.inf
    for k in range(2):
        sums[k, R] = shared.alone[k, R] - shared.alone[k, taken]
        for q in range(R):
            if given.labels[k, q]:
                right[q] = max(right[q], sums[k, q])
    sums[2, R] = shared.alone[2, R] - shared.alone[2, taken]


@_part
def _of_rest(
    given: Given, dense: Floats | None, shared: Shared, taken: int, free: Words,
    bits: Words | None, words: Ints, others: Words | None, one: Floats, sums: Floats, right: Floats,
) -> Ints:  # fmt: skip
    """`_captures`, from the base where the prefix captures a single condition of it."""
    if taken >= 0 and bits is not None:
        _after(given, shared, taken, bits, sums, right)
        return words
    return _captures(given, dense, free, bits, words, others, one, sums, right)


class Second(NamedTuple):
    """What bounds the gain of a second rule q after a prefix, see `finish`; each (R,)."""

    gain: Floats  # g_q
    own: Floats  # the sum of max(0, n_d - n_l) over its free rows
    gone: Floats  # the same over its rows of the base that the prefix captures
    other: Floats  # the weight of class l that the prefix captures of it
    reach: Floats  # `gone`, and what it gains on the base


@_part
def _second(given: Given, shared: Shared, i: int, d: int, sums: Floats, second: Second) -> float:
    """Fill `Second`. Returns the sum of max(0, n_d - n_l) over all rows of the base that the prefix
    captures.
    """
    K, R, gone = len(given.labels), len(second.gain), 0.0
    for q in range(R + 1):
        own = sums[K, q] - sums[1 - d, q] if K == 2 else sums[d, q]
        if len(shared.spoiled):
            before = shared.alone[K, q] - shared.alone[1 - d, q] if K == 2 else shared.alone[d, q]
            gone = before - own
        if q < R:
            second.own[q], second.gone[q] = own, gone
            if len(shared.spoiled):
                second.other[q] = shared.alone[1 - d, q] - sums[1 - d, q] if K == 2 else 0.0
                second.reach[q] = gone + shared.gain[i, q]
            most = sums[d, q] if given.required and given.labels[d, q] else -np.inf
            for k in range(K):
                if k != d and given.labels[k, q]:
                    most = max(most, sums[k, q])
            second.gain[q] = most - sums[d, q] - given.prices[q]
    return gone


@_part
def _promising(
    need: float, shared: Shared, i: int, r: int, second: Second, elsewhere: float, able: Flags
) -> bool:
    """Which second rules may gain more than `need`, by the bounds of `finish`, and whether any."""
    # Loops without a break, and of few arrays, so that the compiler takes several rules at once
    found, own_r = 0, second.own[r]
    if len(shared.spoiled) == 0:
        for q in range(len(able)):
            able[q] = second.gain[q] + min(own_r, second.own[q]) > need
            found += able[q]
        return found > 0
    if shared.ahead[i, r] + elsewhere <= need:
        return False
    spoiled, lost, base = shared.spoiled[i, r], shared.lost[i, r], shared.gain[i]
    other_r = second.other[r]
    for q in range(len(able)):
        most = second.gain[q] + min(min(own_r, spoiled[q]), lost[q] + other_r)
        able[q] = min(most, lost[q] + second.reach[q]) > need
        found += able[q]
    if found:
        for q in range(len(able)):
            most = min(second.gain[q] + second.own[q], base[q] + lost[q] + elsewhere)
            able[q] = able[q] and most > need
    return found > 0


@_jit
def finish(
    given: tuple[Any, ...], dense: Floats | None, pairs: tuple[Any, ...], shared: tuple[Any, ...],
    taken: Ints, free: Words, values: Floats, used: Words, settled: float, margin: float,
    bits: Words | None, words: Ints, others: Words | None, one: Floats, sums: Floats, right: Floats,
) -> tuple[int, int, int, float, int]:  # fmt: skip
    """The best list that continues a prefix by one or two rules, if it is better than `settled`.

    Let d be the default label, and own(S) the sum of max(0, n_d - n_l) over rows S. The second rule
    q, with a label l other than d, gains g_q, the sum of n_l - n_d over its free rows less its
    penalty, and less the sum over those that the first rule r takes from it. Some base contains the
    free rows; what pairs of conditions have in common there is known. q gains at most

    - all potential that r leaves, less the least penalty, or less the pairs of which it leaves
      both rows and that no q splits;
    - g_q + own(S) for S the free rows of r, or of q, or the rows of the base that both cover;
    - g_q, plus the sum of n_d - n_l over the rows of the base that both cover, plus n_l over the
      captured rows of r in the base;
    - what it gains after r in the base, plus own(S) for S the captured rows of q in the base, or
      those that r does not cover.

    With more than two classes, n_d alone is summed. A second rule with label d gains nothing; it is
    needed only for required features.

    Args:
        given, dense, pairs, free, values, used, settled: as for `expand`, as are the last ones.
        shared: `Shared` of rows of which the prefixes leave a part.
        taken: the condition whose rows the prefix captures of these, and no others; -1 if unknown.
        margin: by how much a list must be better than the best so far: rounding does not decide
            between equal ones.

    Returns:
        The prefix, its two conditions (the second -1 for a single rule), and the list's objective;
        the prefix is -1 if nothing is better. Also the number of second rules examined;
        `_COMPARED` that are only compared with their bounds count as one.
    """
    given, shared, pairs = Given(*given), Shared(*shared), RowPairs(*pairs)
    both, top, paired = np.empty(pairs.touched.shape[1], np.uint64), np.zeros(2), 0.0
    R, K, W = len(given.covers), len(given.labels), max(len(given.powers), free.shape[1])
    got, inside, stop, able = np.empty(K + 1), np.empty(W, np.uint64), np.empty(R), np.empty(R) > 0
    second = Second(np.empty(R), np.empty(R), np.empty(R), np.empty(R), np.empty(R))
    cheapest, best, first, last, most, looked = given.prices.min(), -1, -1, -1, settled, 0
    for s in range(len(free)):
        if len(pairs.first):
            # 0. For most prefixes, two rules split too few of the pairs that are left
            paired, most_right = _with_two(given, pairs, free[s], both, stop, top)
            if values[s] + most_right <= settled:
                looked -= R - R // _COMPARED  # it took no longer
                continue
        room = (bits, words, others, one, sums, right)
        some_words = _of_rest(given, dense, shared, taken[s], free[s], *room)
        i = -1
        read = given.local * _weight(sums, R)  # all free rows read the next rule
        for d in range(K):
            if not given.defaults[d]:
                continue
            i += 1
            # 1. Every single rule r, and the highest objective that one reaches
            highest = -np.inf
            for r in range(R):
                stop[r] = values[s] + sums[d, R] + (right[r] - sums[d, r] - given.prices[r]) - read
                if sums[K, r] == 0:
                    stop[r] = -np.inf
                highest = max(highest, stop[r])
                if stop[r] > settled and used[s] | given.uses[r] == given.required:
                    most, best, first, last = stop[r], s, r, -1
                    settled = most + margin
            # 2. Candidates for the second rule q: the best first rule plus all that q could add
            # must win.
            gone = _second(given, shared, i, d, sums, second)
            most_alone, most_free = second.gain.max(), (second.gain + second.own).max()
            if highest + most_free <= settled:
                continue
            for r in range(R):
                later = read - given.local * _weight(sums, r)  # what r leaves reads q
                need = settled - stop[r] + later
                left = (sums[K, R] - sums[d, R]) - (sums[K, r] - sums[d, r])
                left += min(-cheapest, _touched(pairs, both, r) + top[0] - paired)
                if min(min(most_free, left), most_alone + second.own[r]) <= need:
                    continue
                looked += R // _COMPARED
                if not _promising(need, shared, i, r, second, gone - second.gone[r], able):
                    continue
                _common(given, free[s], bits, some_words, r, inside)
                for q in range(R):
                    if not able[q] or used[s] | given.uses[r] | given.uses[q] != given.required:
                        continue
                    looked += 1
                    _both(given, bits is not None, inside, q, some_words, got)
                    value = stop[r] - later + _what_is_left(given, sums, got, q, d)
                    if value > settled and _any_left(free[s], given.covers[r], given.covers[q]):
                        most, best, first, last = value, s, r, q
                        settled = most + margin
    return best, first, last, most, looked


@_part
def _both(given: Given, bits: bool, inside: Words, q: int, words: Ints, got: Floats) -> None:
    """The weight by class of the rows inside that a condition covers."""
    if bits:
        parts = given.parts[: len(given.labels)]
        _counted(inside, given.bits[q], given.powers, parts, given.units, got)
    else:
        _added(inside, given.covers[q], words, given.counts, got)


@_part
def _what_is_left(given: Given, sums: Floats, got: Floats, q: Any, d: int) -> float:
    """What a second rule adds to the objective when the first has taken `got` from it."""
    most = -np.inf
    for k in range(len(given.labels)):
        if given.labels[k, q]:
            most = max(most, sums[k, q] - got[k])
    return float(most - (sums[d, q] - got[d]) - given.prices[q])


@_part
def _common(
    given: Given, free: Words, bits: Words | None, words: Ints, r: int, inside: Words
) -> None:
    """The free rows that a condition covers, as bits or groups, into `inside`."""
    if bits is not None:
        for w in range(len(bits)):
            inside[w] = bits[w] & given.bits[r, w]
    else:
        for w in words:
            inside[w] = free[w] & given.covers[r, w]


@_part
def _any_left(free: Words, first: Words, second: Words) -> bool:
    """Whether the second rule captures a group."""
    left = np.uint64(0)
    for w in range(len(free)):
        left |= free[w] & ~first[w] & second[w]
    return bool(left)
