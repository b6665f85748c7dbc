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

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")


class Given(NamedTuple):
    """The problem. Rows are merged into groups; group 64 w + b is bit b of word w."""

    covers: Words  # the groups that each condition covers, uint64 (conditions, words)
    dense: Floats  # the same as numbers, (64 words, conditions), or empty if too large
    counts: Floats  # weight of every class in a group, and of its heaviest, (64 words, classes + 1)
    # the groups of each class if they weigh the same, uint64 (classes, words); else (0, 0)
    members: Words
    scale: Floats  # and the weights, (classes,)
    prices: Floats  # the penalties of the conditions, (conditions,)
    labels: Flags  # which labels the rule of a condition may have, (classes, conditions)
    defaults: Flags  # which labels the default may be, (classes,)
    uses: Words  # which of the required features a condition uses, as bits, (conditions,)
    required: np.uint64  # all of them


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


@_jit
def _capture(
    free: Words,
    words: Ints,
    cover: Words,
    counts: Floats,
    members: Words,
    scale: Floats,
    sums: Floats,
) -> None:
    """The weight of the free rows that a condition covers, by class and of the heaviest classes,
    into `sums`.
    """
    K = len(scale)
    for k in range(K + 1):
        sums[k] = 0.0
    if len(members):
        for k in range(K):
            ones = np.uint64(0)
            for w in words:
                ones += _n_ones(free[w] & cover[w] & members[k, w])
            sums[k] = scale[k] * ones
            sums[K] += sums[k]
        return
    for w in words:
        word = free[w] & cover[w]
        while word:
            g = 64 * w + np.int64(_lowest(word))
            for k in range(K + 1):
                sums[k] += counts[g, k]
            word &= word - np.uint64(1)


@_jit
def _captures(given: Given, free: Words, sums: Floats, right: Floats) -> Ints:
    """The free rows that every condition captures, and the weight that its best label classifies
    correctly.

    Args:
        given: the problem.
        free: the remaining groups, (words,).
        sums: filled: `_capture` of every condition, and of all rows in the last column,
            (classes + 1, conditions + 1).
        right: filled, (conditions,).

    Returns:
        The words of `free` that are not empty.
    """
    R, K = len(given.covers), len(given.scale)
    words, one = np.empty(len(free), np.int64), np.empty(K + 1)
    n_words = 0
    for i in range(len(free)):
        if free[i]:
            words[n_words] = i
            n_words += 1
    words = words[:n_words]
    sums[:] = 0.0
    # One pass over the free groups counts for all conditions at once, along contiguous rows.
    if len(given.dense):
        for w in words:
            word = free[w]
            while word:
                g = 64 * w + np.int64(_lowest(word))
                row = given.dense[g]
                for k in range(K + 1):
                    weight, total = given.counts[g, k], sums[k]
                    if weight:
                        total[R] += weight
                        for r in range(R):
                            total[r] += weight * row[r]
                word &= word - np.uint64(1)
    else:
        _capture(free, words, free, given.counts, given.members, given.scale, one)
        sums[:, R] = one
        # Rows are counted on the smaller side of a condition: inside it, or outside it and
        # subtracted from the total.
        others = np.empty_like(free)
        for r in range(R):
            cover, inside, outside = given.covers[r], np.uint64(0), np.uint64(0)
            for w in words:
                others[w] = ~cover[w]
                inside += _n_ones(free[w] & cover[w])
                outside += _n_ones(free[w] & others[w])
            few = len(given.members) > 0 or inside <= outside  # rows are examined one by one
            cover = cover if few else others
            _capture(free, words, cover, given.counts, given.members, given.scale, one)
            for k in range(K + 1):
                sums[k, r] = one[k] if few else sums[k, R] - one[k]
    right[:] = -np.inf
    for k in range(K):
        for r in range(R):
            if given.labels[k, r]:
                right[r] = max(right[r], sums[k, r])
    return words


@_jit
def expand(
    given: tuple[Any, ...], free: Words, values: Floats, used: Words, after: int, settled: float,
    parents: Ints, moves: Ints, bounds: Floats, reached: Floats, stops: Floats,
) -> int:  # fmt: skip
    """The prefixes with one further rule that may lead to a list better than `settled`.

    Args:
        given: the problem, a `Given`.
        free: the groups that each prefix does not capture, uint64 (prefixes, words).
        values: the weight that its rules classify correctly minus their penalties, (prefixes,).
        used: the required features that it uses.
        after: the most rules that may follow the next.
        settled: children that cannot be better are left out.
        parents, moves, bounds, reached, stops: filled as in `Children`; at most one for every
            prefix and condition.

    Returns:
        The number of children.
    """
    given = Given(*given)
    R, K, prices = len(given.covers), len(given.scale), given.prices
    cheapest = prices.min()
    sums, right = np.empty((K + 1, R + 1)), np.empty(R)
    top = np.empty((K, after + 1))  # the greatest potentials, by default label
    n = 0
    for s in range(len(free)):
        _captures(given, free[s], sums, right)
        # Potential: what a condition adds at most if d is the default, less its penalty.
        top[:] = 0.0
        for d in range(K):
            for r in range(R):
                potential = sums[K, r] - sums[d, r] - prices[r]
                # insertion into a sorted list: `after` + 1 potentials are kept, see below
                if potential > top[d, after]:
                    i = after
                    while i > 0 and top[d, i - 1] < potential:
                        top[d, i] = top[d, i - 1]
                        i -= 1
                    top[d, i] = potential
        for r in range(R):
            incomplete = used[s] | given.uses[r] != given.required
            # A rule that captures nothing, or no room for the required features that are missing
            if sums[K, r] == 0 or (incomplete and after == 0):
                continue
            value = values[s] + right[r] - prices[r]
            stop = bound = -np.inf
            for d in range(K):
                if given.defaults[d]:
                    rest = sums[d, R] - sums[d, r]
                    more = 0.0
                    if after > 0:  # the bound of `jaxrules.lists.prefixes`, in both its forms
                        potential = sums[K, r] - sums[d, r] - prices[r]
                        for i in range(after):
                            more += top[d, i]
                        # r does not follow itself: the next one takes its place
                        if potential > top[d, after]:
                            more += top[d, after] - potential
                        more = max(0.0, min(more, sums[K, R] - sums[K, r] - rest - cheapest))
                    stop = max(stop, value + rest)
                    bound = max(bound, value + rest + more)
            if bound > settled:
                parents[n], moves[n], bounds[n], reached[n] = s, r, bound, value
                stops[n] = -np.inf if incomplete else stop
                n += 1
    return n


@_jit
def finish(
    given: tuple[Any, ...], free: Words, values: Floats, used: Words, settled: float
) -> tuple[int, int, int, float, int]:
    """The best list that continues a prefix by one or two rules, if it is better than `settled`.

    The second rule q is examined only if its potential, or its gain if the first rule r took from
    it only rows that it classifies wrongly, could suffice.

    Returns:
        The prefix, its two conditions (the second -1 for a single rule), and the list's objective;
        the prefix is -1 if nothing is better. Also the number of second rules examined.
    """
    given = Given(*given)
    R, K, W, prices = len(given.covers), len(given.scale), free.shape[1], given.prices
    sums, right, got, left = (
        np.empty((K + 1, R + 1)),
        np.empty(R),
        np.empty(K + 1),
        np.empty(W, np.uint64),
    )
    stop, gain, potential, order = np.empty(R), np.empty(R), np.empty(R), np.empty(R, np.int64)
    best, first, second, looked = -1, -1, -1, 0
    for s in range(len(free)):
        words = _captures(given, free[s], sums, right)
        for d in range(K):
            if not given.defaults[d]:
                continue
            # 1. Every single rule r, and the highest objective that one reaches
            highest = -np.inf
            for r in range(R):
                gain[r] = right[r] - sums[d, r] - prices[r]
                stop[r] = values[s] + sums[d, R] + gain[r] if sums[K, r] > 0 else -np.inf
                highest = max(highest, stop[r])
                if stop[r] > settled and used[s] | given.uses[r] == given.required:
                    settled, best, first, second = stop[r], s, r, -1
            # 2. Candidates for the second rule q: the best first rule plus all that q could add
            # must win.
            n = 0
            for q in range(R):
                potential[q] = sums[K, q] - sums[d, q] - prices[q]
                if highest + potential[q] > settled:
                    order[n] = q
                    n += 1
            if n == 0:
                continue
            some = order[:n][np.argsort(-potential[order[:n]])]
            for r in range(R):
                if stop[r] + potential[some[0]] <= settled:
                    continue
                # What q may gain when r takes rows from it: q changes a group by n_l - n_d, so that
                # a group which q would classify worse than the default is better left to r. If l
                # is the other of two classes, max(n) - n_l bounds this gain; with more, n_d does.
                spoiled = sums[K, r] - sums[1 - d, r] if K == 2 else sums[d, r]
                for w in words:
                    left[w] = free[s, w] & ~given.covers[r, w]
                for q in some:
                    # q come by falling potential: no later one can win either
                    if stop[r] + potential[q] <= settled:
                        break
                    if stop[r] + gain[q] + spoiled <= settled:
                        continue
                    if used[s] | given.uses[r] | given.uses[q] != given.required:
                        continue
                    looked += 1
                    _capture(
                        left, words, given.covers[q], given.counts, given.members, given.scale, got
                    )
                    most = -np.inf
                    for k in range(K):
                        if given.labels[k, q]:
                            most = max(most, got[k])
                    value = stop[r] + most - got[d] - prices[q]
                    if got[K] > 0 and value > settled:
                        settled, best, first, second = value, s, r, q
    return best, first, second, settled, looked
