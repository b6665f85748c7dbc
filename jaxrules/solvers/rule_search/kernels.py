"""Compiled kernels of the depth-first and the published search.

A problem: find the conjunction q of propositions of the greatest worth, (value(G, H) - price) / divisor, G and H the
sums of g and h over the rows that q selects. The value is a method of the problem's class, and the kernels are
compiled for every class apart; price and divisor depend on the number of propositions. `depth_first` prepares
problems, drives the kernels in slices and reads the results; this module is imported on first use because numba is.

The depth-first search keeps per level the node's FREE rows, those on which some available proposition fails,
in the problem's order; the mandatory rows, which belong to every descendant, are summed up in the base. A row
has its g, its h, one byte per available proposition (`masks`, for SIMD sums) and one bit per proposition
(`bits`): the conjunction of the bits of a set of rows is the set of all propositions that hold on them.
Rows shrink and masks narrow on the way down, so a level is a compact copy of a part of the one above; all
levels lie on one stack. The search stops after any node and goes on later: that is how time limits work.
docs/mandatory-rows-bound.md states and proves the bound.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic, overload

from jaxrules.solvers.rule_search.space import IN_SPAN, TIE

SMALLEST_CURVATURE = 1e-150  # rows with less have an extreme g/h, which stays finite
LEAF_WIDTH = 7  # with this many available propositions or fewer, all subsets are evaluated at once
DONE, PAUSED, FULL = 0, 1, 2  # what `advance` returns

# columns of Stack.levels
SIZE, NEGATIVE, WIDTH, CHILDREN, NEXT, CHOSEN, ROWS_AT, MASKS_AT, EXPANDED = range(9)
# entries of Search.counters
NODES, EVALUATIONS, LEAVES, BOUND, MANDATORY, REDUNDANT, IMPLIED, REBOUNDS, WORK, LEVEL, ROOT, LENGTH = range(12)
# entries of Search.values
FLOOR, LATER, DROPPED = range(3)

_MEMBERS = np.array([pattern.bit_count() for pattern in range(1 << LEAF_WIDTH)])


class Problem(NamedTuple):
    """What is constant during a search; a subclass per objective says what the sums G and H are worth."""

    ridge: float  # added to every H
    approximation: float
    max_length: int  # at least the number of propositions: no limit
    any_length: bool  # neither a limit nor a price: more propositions for the same rows are as good
    price: Any  # float64 (propositions + 3,), by the number of propositions
    divisor: Any  # float64 (propositions + 3,)
    terms: Any  # float64 (sums, rows): where g and h alone do not say what a conjunction is worth
    members: Any  # uint64 (propositions, words of rows), or nothing

    def value(self, g: float, h: float) -> float:
        raise NotImplementedError  # every problem has its own

    def exceeds(self, g: float, h: float, needed: float) -> bool:
        """Whether the value is greater than needed."""
        return bool(_value(self, g, h) > needed)

    def order(self, g: float, h: float) -> float:
        """Rows are sorted by this: the greatest value of any subset is that of a prefix of the rows with g >= 0, or
        of a suffix of the others."""
        return np.sign(g)

    def curved(self) -> bool:
        """Whether the value depends on H. If not, the longest prefix or suffix has the greatest value."""
        return False

    def relaxed(self) -> bool:
        """Whether the value is a bound only. The curvature of a level's rows is then multiplied by the share of it that
        no conjunction inside the node's rows can lose; what looks better than the incumbent is evaluated from terms."""
        return False


class SecondOrder(Problem):
    """G^2 / H."""

    def value(self, g: float, h: float) -> float:
        return g * g / h

    def exceeds(self, g: float, h: float, needed: float) -> bool:
        return g * g > needed * h

    def order(self, g: float, h: float) -> float:
        return g / (h + SMALLEST_CURVATURE)

    def curved(self) -> bool:
        return True


class CorrectiveDecrease(SecondOrder):
    """G^2 / (H - |sum b|^2), at most G^2 / (ridge + share (H - ridge)) with a level's share; b are the last terms."""

    def relaxed(self) -> bool:
        return True


class OneSidedCorrectiveDecrease(CorrectiveDecrease):
    """The same for positive G; other sums are worth nothing. The greatest value of any subset is that of a prefix."""

    def value(self, g: float, h: float) -> float:
        g = max(g, 0.0)
        return g * g / h

    def exceeds(self, g: float, h: float, needed: float) -> bool:
        return g > 0.0 and g * g > needed * h


class AbsoluteSum(Problem):
    """|G|."""

    def value(self, g: float, h: float) -> float:
        return abs(g)


class SignedSum(Problem):
    """G."""

    def value(self, g: float, h: float) -> float:
        return g


class Stack(NamedTuple):
    """The levels from the root to the current node, and their rows."""

    levels: Any  # int64 (levels, 9)
    base: Any  # float64 (levels, 3): sums of g and h over the mandatory rows, the share that multiplies all h
    closure: Any  # uint64 (levels, words): propositions that hold on all mandatory rows
    behind: Any  # uint64 (levels, words): propositions ranked behind the current child, here or above
    available: Any  # int32 (levels, propositions): meaning of the mask columns
    bounds: Any  # float64 (levels, propositions): on the children's values, ascending once expanded
    gradient: Any  # float64 (row capacity,)
    curvature: Any  # float64 (row capacity,)
    bits: Any  # uint64 (row capacity, words)
    masks: Any  # uint8 (mask capacity,)


class Search(NamedTuple):
    """What a search knows and counts, and its scratch space."""

    counters: Any  # int64 (12,)
    values: Any  # float64 (3,)
    best: Any  # int32 (propositions,): the best conjunction; its length is counters[LENGTH]
    found: Any  # float64 (propositions,): greatest worth below each root child, shared between threads
    sums: Any  # float64 (4, propositions)
    rows: Any  # uint64 (rows,): unsigned indices need no check for wrapping around
    columns: Any  # uint64 (propositions,)
    row_mask: Any  # uint8 (propositions,)
    words: Any  # uint64 (2, words)
    slots: Any  # int32 (at least twice the rows, a power of two): a hash table
    table: Any  # float64 (2, 2**LEAF_WIDTH)
    keys: Any  # float64 (rows,)
    chosen: Any  # uint64 (words of rows,), as of Problem.members
    gram: Any  # float64 (2, sums, sums)


# Without NaN and infinity checks the inner loops become SIMD code; ridge > 0 keeps both away.
_OPTIONS: Any = {"error_model": "numpy", "fastmath": {"contract", "nsz", "nnan", "ninf"}}


def _compiled(function: Any, entry_point: bool = False) -> Any:
    """numba.njit without reference counts: the caller owns all arrays and nothing is allocated here.

    Counting them costs a fifth of the search. The option is private to numba; without it all works, slower.
    What only other kernels call needs no wrapper for Python, which takes long to compile, and is in their cache.
    """
    njit: Any = functools.partial(
        numba.njit, nogil=True, cache=entry_point, no_cpython_wrapper=not entry_point, no_cfunc_wrapper=True, **_OPTIONS
    )
    try:
        return njit(_nrt=False)(function)
    except KeyError:
        return njit()(function)


def _per_problem(function: Any) -> dict[type[Problem], Any]:
    """An entry point per class of problems, compiled when first called, or loaded from numba's cache on disk.

    Every class has cache files of its own: processes that compile different ones at the same time would write
    the signatures of one function over each other.
    """
    kernels: dict[type[Problem], Any] = {}
    for kind in (SecondOrder, CorrectiveDecrease, OneSidedCorrectiveDecrease, AbsoluteSum, SignedSum):
        copy = FunctionType(function.__code__, globals(), function.__name__)
        copy.__qualname__ = f"{function.__name__}_{kind.__name__}"
        kernels[kind] = _compiled(copy, entry_point=True)
    return kernels


def _method(name: str) -> Any:
    """A method of problems as a function of a problem. Compiled code finds the method by the problem's class.

    numba can overload a type's methods, too, but the type of problems is that of all named tuples of a process.
    """

    def call(problem: Any, *arguments: Any) -> Any:
        return getattr(problem, name)(*arguments)

    def find(problem: Any, *arguments: Any) -> Any:
        return getattr(problem.instance_class, name)

    overload(call, strict=False, jit_options=_OPTIONS)(find)
    return call


_value, _exceeds, _order, _curved, _relaxed = map(_method, ("value", "exceeds", "order", "curved", "relaxed"))


def _maximum(typing: Any, x: Any, y: Any) -> Any:
    """max(x, y) of two floats as one instruction: numba's own ends in slow masked stores in SIMD loops."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[0].type
        signature = ir.FunctionType(number, [number, number])
        return builder.call(builder.module.declare_intrinsic("llvm.maxnum", [number], signature), arguments)

    return numba.float64(x, y), generate


_larger: Any = intrinsic(_maximum)


@_compiled
def _has(words: Any, proposition: int) -> bool:
    return (words[proposition >> 6] >> np.uint64(proposition & 63)) & np.uint64(1) != 0


@_compiled
def _insert(words: Any, proposition: int) -> None:
    words[proposition >> 6] |= np.uint64(1) << np.uint64(proposition & 63)


@_compiled
def _remove(words: Any, proposition: int) -> None:
    words[proposition >> 6] &= ~(np.uint64(1) << np.uint64(proposition & 63))


@_compiled
def _needed(problem: Problem, worth: float, length: int) -> float:
    """The value that makes a conjunction of this length worth so much."""
    return worth * problem.divisor[length] + problem.price[length]


@_compiled
def _worth(problem: Problem, value: float, length: int) -> float:
    return (value - problem.price[length]) / problem.divisor[length]


@_compiled
def _add_rows(problem: Problem, stack: Stack, search: Search, level: int, start: int, end: int, step: int) -> None:
    """Add rows to sums[0] and sums[1] of every available proposition, with the greatest value on the way in the bounds.

    Rows are the outer loop, so that the inner one over propositions is SIMD code.
    """
    info = stack.levels[level]
    width, rows_at, masks_at = info[WIDTH], info[ROWS_AT], info[MASKS_AT]
    g, h, bound = search.sums[0], search.sums[1], stack.bounds[level]
    base_g, base_h = stack.base[level, 0], stack.base[level, 1]
    for a in range(width):
        g[a], h[a] = base_g, base_h
    for r in range(start, end, step):
        row_g, row_h, at = stack.gradient[rows_at + r], stack.curvature[rows_at + r], masks_at + r * width
        mask = stack.masks[at : at + width]
        for a in range(width):
            sum_g = g[a] + mask[a] * row_g
            g[a] = sum_g
            if _curved(problem):
                sum_h = h[a] + mask[a] * row_h
                h[a] = sum_h
                bound[a] = _larger(bound[a], _value(problem, sum_g, sum_h))
    if not _curved(problem):
        for a in range(width):
            bound[a] = _larger(bound[a], _value(problem, g[a], h[a]))


@_compiled
def _evaluate(problem: Problem, stack: Stack, search: Search, level: int) -> None:
    """Value and mandatory-rows bound of every available proposition: sums[3] and stack.bounds.

    Prefixes run over the rows with g >= 0 from the front, suffixes over those with g < 0 from the back.
    """
    info = stack.levels[level]
    size, negative, width = info[SIZE], info[NEGATIVE], info[WIDTH]
    g, h, total, value = search.sums[0], search.sums[1], search.sums[2], search.sums[3]
    bound = stack.bounds[level]
    base_g, base_h = stack.base[level, 0], stack.base[level, 1]
    for a in range(width):
        bound[a] = _value(problem, base_g, base_h)
    _add_rows(problem, stack, search, level, 0, negative, 1)
    for a in range(width):
        value[a], total[a] = g[a] - base_g, h[a] - base_h
    _add_rows(problem, stack, search, level, size - 1, negative - 1, -1)
    for a in range(width):
        value[a] = _value(problem, value[a] + g[a], total[a] + h[a])
    search.counters[NODES] += 1
    search.counters[EVALUATIONS] += width
    search.counters[WORK] += width * (size + 8)


@_compiled
def _threshold(problem: Problem, search: Search) -> float:
    """Bounds up to this worth cannot lead to a better rule than those found (times approximation).

    What was found earlier in the visit order wins ties; what another thread found later in it does not,
    so that two threads return the rule that one thread returns.
    """
    values = search.values
    return max(values[FLOOR] * (1.0 + TIE), values[LATER] * (1.0 - TIE)) / problem.approximation


@_compiled
def _look_at_the_other_thread(search: Search) -> None:
    root, values = search.counters[ROOT], search.values
    for child in range(root, len(search.found)):
        values[FLOOR] = max(values[FLOOR], search.found[child])
    for child in range(root):
        values[LATER] = max(values[LATER], search.found[child])


@_compiled
def _record(stack: Stack, search: Search, level: int, worth: float) -> None:
    """Remember a better conjunction: the path to the node; the caller appends what it adds."""
    search.values[FLOOR] = worth
    if search.counters[ROOT] >= 0:
        search.found[search.counters[ROOT]] = worth
    for depth in range(1, level + 1):
        search.best[depth - 1] = stack.levels[depth, CHOSEN]
    search.counters[LENGTH] = level


@_compiled
def _append(search: Search, proposition: int) -> None:
    search.best[search.counters[LENGTH]] = proposition
    search.counters[LENGTH] += 1


@_compiled
def _select_columns(stack: Stack, search: Search, level: int, kept: int) -> None:
    """Keep the first `kept` mask columns named in search.columns, in that order."""
    info, buffer, columns = stack.levels[level], search.row_mask, search.columns
    width = info[WIDTH]
    available, bounds = stack.available[level], stack.bounds[level]
    at = info[MASKS_AT]
    for r in range(info[SIZE]):
        wide, narrow = (
            stack.masks[at + r * width : at + (r + 1) * width],
            stack.masks[at + r * kept : at + (r + 1) * kept],
        )
        for k in range(kept):
            buffer[k] = wide[columns[k]]
        for k in range(kept):
            narrow[k] = buffer[k]
    for k in range(kept):
        search.sums[0, k], search.sums[1, k] = bounds[columns[k]], available[columns[k]]
    for k in range(kept):
        bounds[k], available[k] = search.sums[0, k], search.sums[1, k]
    info[WIDTH] = kept


@_compiled
def _absorb_mandatory_rows(stack: Stack, search: Search, level: int) -> int:
    """Move the rows on which all available propositions hold into the base; returns how many."""
    info, base, closure = stack.levels[level], stack.base[level], stack.closure[level]
    rows_at, masks_at, width = info[ROWS_AT], info[MASKS_AT], info[WIDTH]
    size, negative = info[SIZE], info[NEGATIVE]
    needed = search.words[1]
    needed[:] = 0
    for a in range(width):
        _insert(needed, stack.available[level, a])
    kept, kept_negative = 0, 0
    for r in range(size):
        if r == negative:
            kept_negative = kept
        source, target = rows_at + r, rows_at + kept
        lacking: Any = np.uint64(0)
        for w in range(len(needed)):
            lacking |= needed[w] & ~stack.bits[source, w]
        if lacking == 0:
            base[0] += stack.gradient[source]
            base[1] += stack.curvature[source]
            for w in range(len(needed)):
                closure[w] &= stack.bits[source, w]
            continue
        if kept < r:
            stack.gradient[target] = stack.gradient[source]
            stack.curvature[target] = stack.curvature[source]
            for w in range(len(needed)):
                stack.bits[target, w] = stack.bits[source, w]
            for a in range(width):
                stack.masks[masks_at + kept * width + a] = stack.masks[masks_at + r * width + a]
        kept += 1
    info[SIZE] = kept
    info[NEGATIVE] = kept if negative == size else kept_negative
    return size - kept


@_compiled
def _drop(problem: Problem, search: Search, bound: float, length: int) -> None:
    """Leave out what has at least this length: the certificate knows its bound."""
    search.values[DROPPED] = max(search.values[DROPPED], _worth(problem, bound, length))


@_compiled
def _choose(problem: Problem, stack: Stack, search: Search, level: int, child: int, pattern: int) -> None:
    """The rows, as of Problem.members, of the node's child and of a subset of search.columns, in search.chosen."""
    chosen, members = search.chosen, problem.members
    for w in range(len(chosen)):
        chosen[w] = members[child, w]
    for depth in range(1, level + 1):
        for w in range(len(chosen)):
            chosen[w] &= members[stack.levels[depth, CHOSEN], w]
    bit = 0
    while pattern >> bit:
        if pattern >> bit & 1:
            for w in range(len(chosen)):
                chosen[w] &= members[stack.available[level, search.columns[bit]], w]
        bit += 1
    search.counters[WORK] += problem.terms.size


@_compiled
def _exact_value(problem: Problem, search: Search) -> float:
    """Of the rows in search.chosen, from the terms."""
    terms, sums = problem.terms, search.gram[0, 0]
    search.counters[EVALUATIONS] += 1
    sums[:] = 0.0
    for r in range(terms.shape[1]):
        if _has(search.chosen, r):
            for t in range(len(terms)):
                sums[t] += terms[t, r]
    whole = problem.ridge + sums[1]
    rest = whole
    for t in range(2, len(terms)):
        rest -= sums[t] * sums[t]
    return _value(problem, sums[0], rest) if rest > IN_SPAN * whole else 0.0


@_compiled
def _share(problem: Problem, search: Search) -> float:
    """The least share of its curvature that a conjunction inside search.chosen keeps: 1 - rho, rho the greatest
    eigenvalue of S, the sum of b b' / h. With S of trace 1, rho^8 is at most the Frobenius norm of S^8."""
    terms, gram = problem.terms, search.gram
    size = len(terms) - 2
    search.counters[EVALUATIONS] += size  # as much work, about
    search.counters[WORK] += size * terms.size // 4
    gram[:] = 0.0
    for r in range(terms.shape[1]):
        h = terms[1, r]
        if h > 0.0 and _has(search.chosen, r):
            for i in range(size):
                for j in range(i + 1):
                    gram[0, i, j] += terms[2 + i, r] * terms[2 + j, r] / h
    trace = 0.0
    for i in range(size):
        trace += gram[0, i, i]
    if trace == 0.0:
        return 1.0
    for i in range(size):
        for j in range(i + 1):
            gram[0, i, j] /= trace
            gram[0, j, i] = gram[0, i, j]
    now = 0
    for _ in range(3):
        for i in range(size):
            for j in range(size):
                product = 0.0
                for k in range(size):
                    product += gram[now, i, k] * gram[now, k, j]
                gram[1 - now, i, j] = product
        now = 1 - now
    norm = 0.0
    for i in range(size):
        for j in range(size):
            norm += gram[now, i, j] ** 2
    return max(IN_SPAN, 1.0 - trace * norm ** (1.0 / 16.0) * (1.0 + TIE))


@_compiled
def _expand(problem: Problem, stack: Stack, search: Search, level: int) -> None:
    """Evaluate a node's children, prune them by bound, and rank the rest by ascending bound.

    When pruning thins the available propositions out, more rows are mandatory and all bounds are
    tighter: the evaluation is repeated until that no longer pays.
    """
    info, available, bounds = stack.levels[level], stack.available[level], stack.bounds[level]
    columns, value = search.columns, search.sums[3]
    while True:
        width = info[WIDTH]
        _evaluate(problem, stack, search, level)
        needed = _needed(problem, search.values[FLOOR] * (1.0 + TIE), level + 1)
        for a in range(width):
            if value[a] > needed and _relaxed(problem):
                _choose(problem, stack, search, level, available[a], 0)
                value[a] = _exact_value(problem, search)
            if value[a] > needed:
                _record(stack, search, level, _worth(problem, value[a], level + 1))
                _append(search, available[a])
                needed = _needed(problem, search.values[FLOOR] * (1.0 + TIE), level + 1)
        needed = _needed(problem, _threshold(problem, search), level + 2)
        kept = 0
        for a in range(width):
            if bounds[a] > needed:
                columns[kept] = a
                kept += 1
            else:
                _drop(problem, search, bounds[a], level + 2)
        search.counters[BOUND] += width - kept
        if kept <= LEAF_WIDTH or kept > 0.8 * width:
            break
        _select_columns(stack, search, level, kept)
        size = info[SIZE]
        moved = _absorb_mandatory_rows(stack, search, level)
        for a in range(kept):
            columns[a] = a
        if moved < 0.1 * size:
            break
        search.counters[REBOUNDS] += 1
    for k in range(1, kept):  # insertion sort: few columns, nearly in order
        column = columns[k]
        bound, j = bounds[column], k
        while j > 0 and bounds[columns[j - 1]] > bound:
            columns[j] = columns[j - 1]
            j -= 1
        columns[j] = column
    _select_columns(stack, search, level, kept)
    for k in range(kept):
        _insert(stack.behind[level], available[k])
    info[CHILDREN], info[NEXT], info[EXPANDED] = kept, kept, 1


@_compiled
def _redundant(problem: Problem, stack: Stack, level: int, child: int, size: int, closure: Any) -> bool:
    """Whether the child's conjunctions are also met elsewhere: a proposition ranked behind holds on all its rows.

    That proposition's own branch, visited later, has these conjunctions with it added. Where length has a limit or a
    price the longer conjunction may not fit or be worth less; then only a sibling that selects the same rows counts.
    """
    if problem.any_length:
        common: Any = np.uint64(0)
        for w in range(len(closure)):
            common |= closure[w] & stack.behind[level, w]
        return common != 0
    info = stack.levels[level]
    for sibling in range(child):
        if _has(closure, stack.available[level, sibling]):
            rows_of_sibling = 0
            for r in range(info[SIZE]):
                rows_of_sibling += stack.masks[info[MASKS_AT] + r * info[WIDTH] + sibling]
            if rows_of_sibling == size:
                return True
    return False


@_compiled
def _solve_leaf(problem: Problem, stack: Stack, search: Search, level: int, child: int, size: int, few: int) -> None:
    """Values of all conjunctions of the child with a subset of few propositions, in one pass.

    Rows are summed by the pattern of propositions they satisfy; sums over supersets give G and H of
    every subset.
    """
    info, columns = stack.levels[level], search.columns
    width, masks_at, rows_at = info[WIDTH], info[MASKS_AT], info[ROWS_AT]
    g, h = search.table[0], search.table[1]
    patterns = 1 << few
    for pattern in range(patterns):
        g[pattern] = h[pattern] = 0.0
    gradient, curvature = stack.gradient[rows_at:], stack.curvature[rows_at:]
    for k in range(size):
        row = search.rows[k]
        at = masks_at + np.int64(row) * width
        mask = stack.masks[at : at + width]
        pattern_of_row: Any = np.uint64(0)
        for bit in range(few):
            pattern_of_row |= np.uint64(mask[columns[bit]]) << np.uint64(bit)
        g[pattern_of_row] += gradient[row]
        h[pattern_of_row] += curvature[row]
    g[patterns - 1] += stack.base[level, 0]
    if _relaxed(problem):
        _choose(problem, stack, search, level, stack.available[level, child], 0)
        ratio = max(1.0, _share(problem, search) / stack.base[level, 2])
        for pattern in range(patterns):
            h[pattern] *= ratio
        h[patterns - 1] += problem.ridge + (stack.base[level, 1] - problem.ridge) * ratio
    else:
        h[patterns - 1] += stack.base[level, 1]
    half = 1
    while half < patterns:
        for start in range(0, patterns, 2 * half):
            for pattern in range(start, start + half):
                g[pattern] += g[pattern + half]
                h[pattern] += h[pattern + half]
        half *= 2
    worth, best_pattern, better = search.values[FLOOR] * (1.0 + TIE), 0, 0
    needed = _needed(problem, worth, level + 2)  # or more, for a longer one
    for pattern in range(1, patterns):
        better += _exceeds(problem, g[pattern], h[pattern], needed)
    for pattern in range(1, patterns if better else 0):
        length = level + 1 + _MEMBERS[pattern]
        needed = _needed(problem, worth, length)
        if length <= problem.max_length and _exceeds(problem, g[pattern], h[pattern], needed):
            value = _value(problem, g[pattern], h[pattern])
            if _relaxed(problem):
                _choose(problem, stack, search, level, stack.available[level, child], pattern)
                value = _exact_value(problem, search)
                if not value > needed:
                    continue
            worth, best_pattern = _worth(problem, value, length), pattern
    if best_pattern:
        _record(stack, search, level, worth)
        _append(search, stack.available[level, child])
        for bit in range(few):
            if best_pattern >> bit & 1:
                _append(search, stack.available[level, columns[bit]])
    search.counters[LEAVES] += 1
    search.counters[EVALUATIONS] += patterns - 1
    search.counters[WORK] += size * few + patterns


@_compiled
def _select_rows(stack: Stack, search: Search, level: int, child: int, start: int, end: int, size: int) -> int:
    """Append the rows from start to end that satisfy the child to search.rows; returns the new size."""
    info, rows = stack.levels[level], search.rows
    width, at = info[WIDTH], info[MASKS_AT] + child
    column = stack.masks[at : at + info[SIZE] * width]
    for r in range(start, end):
        rows[size] = r
        size += column[r * width]
    return size


@_compiled
def _node_bound(problem: Problem, stack: Stack, level: int) -> float:
    """The mandatory-rows bound on the values of one node and its descendants."""
    info = stack.levels[level]
    start = info[ROWS_AT]
    bound = _value(problem, stack.base[level, 0], stack.base[level, 1])
    for begin, end, step in ((0, info[NEGATIVE], 1), (info[SIZE] - 1, info[NEGATIVE] - 1, -1)):
        g, h = stack.base[level, 0], stack.base[level, 1]
        for r in range(start + begin, start + end, step):
            g += stack.gradient[r]
            h += stack.curvature[r]
            bound = max(bound, _value(problem, g, h))
    return bound


@_compiled
def _merge_rows(stack: Stack, search: Search, level: int) -> int:
    """Merge rows that no available proposition (words[1]) tells apart; returns how many rows are left.

    Merged rows are all in or all out of every descendant: fewer rows to add up, and a tighter bound,
    because a prefix cannot split them. The caller sorts what is left.
    """
    info, needed, slots, rows = stack.levels[level], search.words[1], search.slots, search.rows
    at, size = info[ROWS_AT], info[SIZE]
    gradient, curvature, bits = stack.gradient[at:], stack.curvature[at:], stack.bits[at:]
    buckets = 8
    while buckets < 2 * size:
        buckets *= 2
    for bucket in range(buckets):
        slots[bucket] = -1
    last = np.uint64(buckets - 1)
    groups = 0
    for r in range(size):
        key: Any = np.uint64(0)
        for w in range(len(needed)):
            key = (key ^ (bits[r, w] & needed[w])) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        slot: Any = key & last
        while True:
            group = slots[slot]
            if group < 0:
                slots[slot] = groups
                gradient[groups], curvature[groups], rows[groups] = gradient[r], curvature[r], rows[r]
                for w in range(len(needed)):
                    bits[groups, w] = bits[r, w]
                groups += 1
                break
            differ: Any = np.uint64(0)
            for w in range(len(needed)):
                differ |= (bits[group, w] ^ bits[r, w]) & needed[w]
            if differ == 0:
                gradient[group] += gradient[r]
                curvature[group] += curvature[r]
                for w in range(len(needed)):
                    bits[group, w] &= bits[r, w]
                break
            slot = (slot + np.uint64(1)) & last
    info[SIZE] = groups
    return groups


@_compiled
def _sort_rows(problem: Problem, stack: Stack, search: Search, level: int) -> None:
    """Sort the rows of a level (g, h, bits and search.rows) into the problem's order, in place.

    Sort keys and row numbers are sorted by Shell's method; then every cycle of the permutation is moved once.
    """
    info, rows, keys, order, spare = stack.levels[level], search.rows, search.keys, search.slots, search.words[0]
    at, size = info[ROWS_AT], info[SIZE]
    gradient, curvature, bits = stack.gradient[at:], stack.curvature[at:], stack.bits[at:]
    for r in range(size):
        keys[r], order[r] = _order(problem, gradient[r], curvature[r]), r
    gap = 1
    while 9 * gap < 4 * size:
        gap = 9 * gap // 4 + 1
    while True:
        for start in range(gap, size):
            key, row, r = keys[start], order[start], start
            while r >= gap and keys[r - gap] < key:
                keys[r], order[r] = keys[r - gap], order[r - gap]
                r -= gap
            keys[r], order[r] = key, row
        if gap == 1:
            break
        gap = max(1, 4 * gap // 9)
    for start in range(size):
        if order[start] == start:
            continue
        first_g, first_h, first_row, r = gradient[start], curvature[start], rows[start], start
        for w in range(len(spare)):
            spare[w] = bits[start, w]
        while order[r] != start:
            source = order[r]
            gradient[r], curvature[r], rows[r] = gradient[source], curvature[source], rows[source]
            for w in range(len(spare)):
                bits[r, w] = bits[source, w]
            order[r], r = r, source
        gradient[r], curvature[r], rows[r], order[r] = first_g, first_h, first_row, r
        for w in range(len(spare)):
            bits[r, w] = spare[w]
    negative = size
    while negative > 0 and gradient[negative - 1] < 0:
        negative -= 1
    info[NEGATIVE] = negative


@_compiled
def _descend(problem: Problem, stack: Stack, search: Search, level: int, child: int) -> bool:
    """Build the node of a child one level down; False if it was solved or pruned on the way."""
    info, below = stack.levels[level], stack.levels[level + 1]
    available, closure, rows = stack.available[level], search.words[0], search.rows
    width, rows_at, masks_at = info[WIDTH], info[ROWS_AT], info[MASKS_AT]
    gradient, curvature, bits = stack.gradient[rows_at:], stack.curvature[rows_at:], stack.bits[rows_at:]
    _remove(stack.behind[level], available[child])
    negative = _select_rows(stack, search, level, child, 0, info[NEGATIVE], 0)
    size = _select_rows(stack, search, level, child, info[NEGATIVE], info[SIZE], negative)
    for w in range(len(closure)):
        common = stack.closure[level, w]
        for k in range(size):
            common &= bits[rows[k], w]
        closure[w] = common
    search.counters[WORK] += info[SIZE] + size
    if _redundant(problem, stack, level, child, size, closure):
        search.counters[REDUNDANT] += 1
        return False

    columns, needed = search.columns, search.words[1]
    needed[:] = 0
    few = 0
    for later in range(child + 1, info[CHILDREN]):
        if _has(closure, available[later]):
            search.counters[IMPLIED] += 1
        else:
            columns[few] = later
            _insert(needed, available[later])
            few += 1
    if few == 0:
        return False
    if few <= LEAF_WIDTH:
        _solve_leaf(problem, stack, search, level, child, size, few)
        return False

    # the rows: mandatory ones into the base, free ones one level down
    base_g, base_h = stack.base[level, 0], stack.base[level, 1]
    mandatory = closure  # of the mandatory rows; the child's own closure is no longer needed
    for w in range(len(mandatory)):
        mandatory[w] = stack.closure[level, w]
    at = rows_at + info[SIZE]
    gradient_below, curvature_below, bits_below = stack.gradient[at:], stack.curvature[at:], stack.bits[at:]
    kept, kept_negative = 0, 0
    for k in range(size):
        if k == negative:
            kept_negative = kept
        row = rows[k]
        lacking: Any = np.uint64(0)
        for w in range(len(needed)):
            lacking |= needed[w] & ~bits[row, w]
        if lacking == 0:
            base_g += gradient[row]
            base_h += curvature[row]
            for w in range(len(needed)):
                mandatory[w] &= bits[row, w]
        else:
            gradient_below[kept], curvature_below[kept] = gradient[row], curvature[row]
            rows[kept] = row
            for w in range(len(needed)):
                bits_below[kept, w] = bits[row, w]
            kept += 1
    below[SIZE] = kept
    below[NEGATIVE] = kept if negative == size else kept_negative
    below[ROWS_AT], below[MASKS_AT] = at, masks_at + info[SIZE] * width
    below[WIDTH], below[CHOSEN], below[EXPANDED] = few, available[child], 0
    share = stack.base[level, 2]
    if _relaxed(problem):
        _choose(problem, stack, search, level, available[child], 0)
        ratio = max(1.0, _share(problem, search) / share)
        share *= ratio
        base_h = problem.ridge + (base_h - problem.ridge) * ratio
        for k in range(kept):
            curvature_below[k] *= ratio
    stack.base[level + 1, 0], stack.base[level + 1, 1], stack.base[level + 1, 2] = base_g, base_h, share
    bound, needed_value = (
        _node_bound(problem, stack, level + 1),
        _needed(problem, _threshold(problem, search), level + 2),
    )
    if bound > needed_value:
        for w in range(len(mandatory)):
            stack.closure[level + 1, w] = mandatory[w]
        if _merge_rows(stack, search, level + 1) < kept:
            _sort_rows(problem, stack, search, level + 1)
            kept = below[SIZE]
            bound = _node_bound(problem, stack, level + 1)
    if bound <= needed_value:
        _drop(problem, search, bound, level + 2)
        search.counters[MANDATORY] += 1
        return False

    for w in range(len(mandatory)):
        stack.behind[level + 1, w] = stack.behind[level, w]
    for a in range(few):
        stack.available[level + 1, a] = available[columns[a]]
    for k in range(kept):
        row = np.int64(rows[k])
        start, end = masks_at + row * width, below[MASKS_AT] + k * few
        mask, mask_below = stack.masks[start : start + width], stack.masks[end : end + few]
        for a in range(few):
            mask_below[a] = mask[columns[a]]
    return True


def _advance(
    problem: Problem, stack: Stack, search: Search, stop: int, budget: int, max_evaluations: int, shared: bool
) -> int:
    """Go on with the search until the root's children from `stop` on are done, or until it is time to pause.

    It pauses after `budget` visits of rows and propositions, or at `max_evaluations` in total.

    Returns DONE, PAUSED (call again), or FULL (give the stack more room, then call again).
    """
    counters = search.counters
    until = counters[WORK] + budget
    level = counters[LEVEL]
    while True:
        info = stack.levels[level]
        if not info[EXPANDED]:
            if shared and counters[NODES] & 31 == 0:
                _look_at_the_other_thread(search)
            _expand(problem, stack, search, level)
            if counters[WORK] > until or counters[EVALUATIONS] >= max_evaluations:
                return PAUSED
        child = info[NEXT] - 1
        if level == 0 and child < stop:
            return DONE
        finished = child < 0 or level + 2 > problem.max_length
        needed = _needed(problem, _threshold(problem, search), level + 2)
        if not finished and stack.bounds[level, child] <= needed:
            _drop(problem, search, stack.bounds[level, child], level + 2)
            counters[BOUND] += child + 1
            finished = True
        if finished:
            if level == 0:
                info[NEXT] = stop
                return DONE
            level -= 1
            counters[LEVEL] = level
            continue
        rows_end = info[ROWS_AT] + 2 * info[SIZE]
        masks_end = info[MASKS_AT] + 2 * info[SIZE] * info[WIDTH]
        if level + 2 > len(stack.levels) or rows_end > len(stack.gradient) or masks_end > len(stack.masks):
            return FULL
        info[NEXT] = child
        if level == 0:
            counters[ROOT] = child
            if shared:
                search.values[LATER] = 0.0
                _look_at_the_other_thread(search)
        if _descend(problem, stack, search, level, child):
            level += 1
            counters[LEVEL] = level


advance = _per_problem(_advance)


class Rows(NamedTuple):
    """The rows of the published search, in the problem's order."""

    gradient: Any  # float64 (rows,)
    curvature: Any  # float64 (rows,)
    members: Any  # uint8 (propositions, rows)
    bits: Any  # uint64 (rows, words)


class Query(NamedTuple):
    """A query of the published search and its augmentations."""

    extent: Any  # int64 (rows of the query,)
    closure: Any  # uint64 (words,): what the query implies
    tail: int  # the last proposition
    aug: Any  # int64 (augmentations,)
    old_bound: Any  # float64 (augmentations,): when they were augmentations of the parent


class Augmented(NamedTuple):
    """What becomes of the augmentations; those kept come first in bound, kept, closures and offsets."""

    crit: Any  # int64 (augmentations,): their critical indices
    bound: Any  # float64 (augmentations,)
    kept: Any  # int64 (augmentations,): which ones
    offsets: Any  # int64 (augmentations + 2,): of their extents; that of a non-core query is empty
    rows: Any  # int64: the extents
    closures: Any  # uint64 (augmentations, words): what they imply (core queries only)


# the counts of the published search
PUBLISHED_COUNTS = (
    "immediate_bound", "immediate_equivalence", "propagated_bound", "propagated_equivalence", "skipped_checks",
)  # fmt: skip
IMMEDIATE_BOUND, IMMEDIATE_EQUIVALENCE, PROPAGATED_BOUND, PROPAGATED_EQUIVALENCE, SKIPPED_CHECKS = range(5)


def _augment(problem: Problem, data: Rows, query: Query, new: Augmented, best: Any, counts: Any) -> int:
    """Lines 8 to 14 of Algorithm 1: evaluate the augmentations of one query; returns how many are kept.

    best = [value, proposition] of the incumbent, the proposition -1 while no augmentation of this query is it;
    best[2] counts evaluations, best[3] is the largest bound that was pruned.
    """
    found = 0
    for position in range(len(query.aug)):
        a, c = query.aug[position], new.crit[position]
        if a <= query.tail:
            continue
        if c < query.tail:
            counts[PROPAGATED_EQUIVALENCE] += 1
            continue
        if problem.approximation * query.old_bound[position] <= best[0] * (1.0 + TIE):
            counts[PROPAGATED_BOUND] += 1
            best[3] = max(best[3], query.old_bound[position])
            continue
        if _has(query.closure, a):
            counts[IMMEDIATE_EQUIVALENCE] += 1
            continue
        start = new.offsets[found]
        size = 0
        g, h, highest = 0.0, problem.ridge, 0.0
        for i in query.extent:
            if data.members[a, i]:
                new.rows[start + size] = i
                size += 1
                g += data.gradient[i]
                h += data.curvature[i]
                highest = max(highest, _value(problem, g, h))
        value = _value(problem, g, h)
        g, h = 0.0, problem.ridge
        for k in range(start + size - 1, start - 1, -1):
            g += data.gradient[new.rows[k]]
            h += data.curvature[new.rows[k]]
            highest = max(highest, _value(problem, g, h))
        best[2] += 1
        if value > best[0] * (1.0 + TIE):
            best[0], best[1] = value, a
        if problem.approximation * highest <= best[0] * (1.0 + TIE):
            counts[IMMEDIATE_BOUND] += 1
            best[3] = max(best[3], highest)
            continue
        new.offsets[found + 1] = start
        if c < a and not _has(query.closure, c):
            counts[SKIPPED_CHECKS] += 1  # (3.7): certainly not a core query
        else:
            closure = new.closures[found]
            for w in range(len(closure)):
                common = ~np.uint64(0)
                for k in range(start, start + size):
                    common &= data.bits[new.rows[k], w]
                closure[w] = common
            c = a
            for j in range(a - 1, -1, -1):
                if _has(closure, j) and not _has(query.closure, j):
                    c = j
            if c == a:
                new.offsets[found + 1] = start + size
        new.crit[position] = c
        new.kept[found], new.bound[found] = position, highest
        found += 1
    return found


augment = _per_problem(_augment)


@functools.partial(_compiled, entry_point=True)
def extension_sums(masks: Any, terms: Any, owners: Any, rows: Any, sums: Any) -> None:
    """Sums of terms over some rows on which each proposition holds.

    Args:
        masks: uint8 (rows, propositions).
        terms: float64 (owners, terms, rows).
        owners: int64 (sets,): which terms to sum.
        rows: bool (sets, rows).
        sums: float64 (terms, sets, propositions), the result.
    """
    sums[:] = 0.0
    for s in range(len(owners)):
        for r in range(len(masks)):
            if rows[s, r]:
                mask = masks[r]
                for t in range(len(sums)):
                    value, total = terms[owners[s], t, r], sums[t, s]
                    for a in range(len(mask)):
                        total[a] += mask[a] * value
