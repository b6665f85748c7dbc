"""Compiled kernels of the depth-first and the published search.

A problem: find the conjunction q of propositions of the greatest worth, (value(G, H) - price) /
divisor, G and H the sums of g and h over the rows that q selects. The value is a method of the
problem's class, and the kernels are compiled for every class apart; price and divisor depend on the
number of propositions. `depth_first` prepares problems, drives the kernels in slices and reads the
results; this module is imported on first use because numba is.

The depth-first search keeps per level the node's FREE rows, those on which some available
proposition fails, in the problem's order; the mandatory rows, which belong to every descendant, are
summed up in the base. A row has its g, its h, one byte per available proposition
(`masks`, for SIMD sums) and one bit per proposition (`bits`): the conjunction of the bits of a set
of rows is the set of all propositions that hold on them. Rows shrink and masks narrow on the way
down, so a level is a compact copy of a part of the one above; all levels lie on one stack. The
search stops after any node and goes on later: that is how time limits work.
docs/mandatory-rows-bound.md states and proves the bound.

One file, because numba's cache on disk knows a kernel by the file of its entry point: it would not
notice changes in others.
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

LEVEL = np.dtype(
    [
        ("size", np.int64),  # free rows
        ("negative", np.int64),  # how many of them have g >= 0: where the others begin
        ("width", np.int64),  # available propositions, which are the columns of the masks
        ("children", np.int64),  # once expanded: the available propositions that the bound has left
        ("next", np.int64),  # of the children, those from here on are done
        ("chosen", np.int64),  # the proposition that leads here from the level above
        ("rows_at", np.int64),  # where its rows begin in Stack.gradient, curvature and bits
        ("masks_at", np.int64),  # and in Stack.masks
        ("expanded", np.int64),  # whether its children have been evaluated
        ("base_g", np.float64),  # the sum of g over the mandatory rows
        ("base_h", np.float64),  # the ridge and the sum of h over the mandatory rows
        ("share", np.float64),  # that multiplies all h, see Problem.relaxed
    ]
)
"""A node: a level of the stack."""
COUNTS = ("nodes", "leaves", "bound", "mandatory_rows", "redundant", "implied", "rebounds")
"""What is reported: nodes and leaves evaluated, what each rule has pruned,
and evaluations repeated.
"""
COUNTERS = np.dtype(
    [
        *((name, np.int64) for name in COUNTS),
        ("evaluations", np.int64),
        ("work", np.int64),  # rows and propositions visited
        ("level", np.int64),  # of the current node
        ("root", np.int64),  # the root's child that it is below, or -1
    ]
)
KNOWN = np.dtype(
    [
        ("floor", np.float64),  # the worth of the best conjunction
        ("length", np.int64),  # and how many propositions of Search.best it has
        (
            "later",
            np.float64,
        ),  # the greatest worth that another thread found later in the visit order
        ("dropped", np.float64),  # the greatest bound, as a worth, that was pruned
    ]
)

_MEMBERS = np.array([pattern.bit_count() for pattern in range(1 << LEAF_WIDTH)])


class Problem(NamedTuple):
    """What is constant during a search; a subclass per objective says what
    the sums G and H are worth.
    """

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
        """Rows are sorted by this: the greatest value of any subset is that of a prefix of the rows
        with g >= 0, or of a suffix of the others.
        """
        return np.sign(g)

    def curved(self) -> bool:
        """Whether the value depends on H. If not, the longest prefix or
        suffix has the greatest value.
        """
        return False

    def relaxed(self) -> bool:
        """Whether the value is a bound only. The curvature of a level's rows is then multiplied by
        the share of it that no conjunction inside the node's rows can lose; what looks better than
        the incumbent is evaluated from terms.
        """
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
    """The same for positive G; other sums are worth nothing. The greatest value of any
    subset is that of a prefix.
    """

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

    levels: Any  # LEVEL (levels,)
    closure: Any  # uint64 (levels, words): propositions that hold on all mandatory rows
    behind: (
        Any  # uint64 (levels, words): propositions ranked behind the current child, here or above
    )
    available: Any  # int32 (levels, propositions): meaning of the mask columns
    bounds: Any  # float64 (levels, propositions): on the children's values, ascending once expanded
    gradient: Any  # float64 (row capacity,)
    curvature: Any  # float64 (row capacity,)
    bits: Any  # uint64 (row capacity, words)
    masks: Any  # uint8 (mask capacity,)


class Search(NamedTuple):
    """What a search knows and counts, and its scratch space."""

    counters: Any  # COUNTERS (1,)
    known: Any  # KNOWN (1,)
    best: Any  # int32 (propositions,): the best conjunction
    found: (
        Any  # float64 (propositions,): greatest worth below each root child, shared between threads
    )
    sum_g: Any  # float64 (propositions,), of the available ones; so are sum_h and value
    sum_h: Any
    part_h: Any  # float64 (propositions,): the sum of h over the rows with g >= 0
    value: Any  # as of Problem
    rows: Any  # uint64 (rows,): unsigned indices need no check for wrapping around
    columns: Any  # uint64 (propositions,)
    row_mask: Any  # uint8 (propositions,)
    closure: Any  # uint64 (words,): the propositions that hold on all rows of a child
    needed: Any  # uint64 (words,): the available propositions of a child
    row_bits: Any  # uint64 (words,)
    slots: Any  # int32 (at least twice the rows, a power of two): a hash table
    leaf_g: Any  # float64 (2**LEAF_WIDTH,): sums by the pattern of the propositions that hold
    leaf_h: Any
    keys: Any  # float64 (rows,)
    chosen: Any  # uint64 (words of rows,), as of Problem.members
    term_sums: Any  # float64 (sums,)
    gram: Any  # float64 (2, sums, sums)


# Without NaN and infinity checks the inner loops become SIMD code; ridge > 0 keeps both away.
_OPTIONS: Any = {"error_model": "numpy", "fastmath": {"contract", "nsz", "nnan", "ninf"}}


def _compiled(function: Any, entry_point: bool = False) -> Any:
    """numba.njit without reference counts: the caller owns all arrays and
    nothing is allocated here.

    Counting them costs a fifth of the search. The option is private to numba; without it all
    works, slower. What only other kernels call needs no wrapper for Python, which takes long to
    compile, and is in their cache.
    """
    njit: Any = functools.partial(
        numba.njit,
        nogil=True,
        cache=entry_point,
        no_cpython_wrapper=not entry_point,
        no_cfunc_wrapper=True,
        **_OPTIONS,
    )
    try:
        return njit(_nrt=False)(function)
    except KeyError:
        return njit()(function)


def _per_problem(function: Any) -> dict[type[Problem], Any]:
    """An entry point per class of problems, compiled when first called, or loaded
    from numba's cache on disk.

    Every class has cache files of its own: processes that compile different ones at the same time
    would write the signatures of one function over each other.
    """
    kernels: dict[type[Problem], Any] = {}
    for kind in (
        SecondOrder,
        CorrectiveDecrease,
        OneSidedCorrectiveDecrease,
        AbsoluteSum,
        SignedSum,
    ):
        copy = FunctionType(function.__code__, globals(), function.__name__)
        copy.__qualname__ = f"{function.__name__}_{kind.__name__}"
        kernels[kind] = _compiled(copy, entry_point=True)
    return kernels


def _method(name: str) -> Any:
    """A method of problems as a function of a problem. Compiled code finds the
    method by the problem's class.

    numba can overload a type's methods, too, but the type of problems is that of all
    named tuples of a process.
    """

    def call(problem: Any, *arguments: Any) -> Any:
        return getattr(problem, name)(*arguments)

    def find(problem: Any, *arguments: Any) -> Any:
        return getattr(problem.instance_class, name)

    overload(call, strict=False, jit_options=_OPTIONS)(find)
    return call


_value, _exceeds, _order, _curved, _relaxed = map(
    _method, ("value", "exceeds", "order", "curved", "relaxed")
)


def _maximum(typing: Any, x: Any, y: Any) -> Any:
    """max(x, y) of two floats as one instruction: numba's own ends in slow
    masked stores in SIMD loops.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[0].type
        signature = ir.FunctionType(number, [number, number])
        return builder.call(
            builder.module.declare_intrinsic("llvm.maxnum", [number], signature), arguments
        )

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
def _add_rows(
    problem: Problem, stack: Stack, search: Search, level: int, start: int, end: int, step: int
) -> None:
    """Add rows to sums[0] and sums[1] of every available proposition, with the greatest value
    on the way in the bounds.

    Rows are the outer loop, so that the inner one over propositions is SIMD code.
    """
    node = stack.levels[level]
    width, rows_at, masks_at = node.width, node.rows_at, node.masks_at
    g, h, bound = search.sum_g, search.sum_h, stack.bounds[level]
    base_g, base_h = node.base_g, node.base_h
    for a in range(width):
        g[a], h[a] = base_g, base_h
    for r in range(start, end, step):
        row_g, row_h, at = (
            stack.gradient[rows_at + r],
            stack.curvature[rows_at + r],
            masks_at + r * width,
        )
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

    Prefixes run over the rows with g >= 0 from the front, suffixes over those
    with g < 0 from the back.
    """
    node = stack.levels[level]
    size, negative, width = node.size, node.negative, node.width
    g, h, part_h, value = search.sum_g, search.sum_h, search.part_h, search.value
    bound = stack.bounds[level]
    base_g, base_h = node.base_g, node.base_h
    for a in range(width):
        bound[a] = _value(problem, base_g, base_h)
    _add_rows(problem, stack, search, level, 0, negative, 1)
    for a in range(width):
        value[a], part_h[a] = g[a] - base_g, h[a] - base_h
    _add_rows(problem, stack, search, level, size - 1, negative - 1, -1)
    for a in range(width):
        value[a] = _value(problem, value[a] + g[a], part_h[a] + h[a])
    search.counters[0].nodes += 1
    search.counters[0].evaluations += width
    search.counters[0].work += width * (size + 8)


@_compiled
def _threshold(problem: Problem, search: Search) -> float:
    """Bounds up to this worth cannot lead to a better rule than those found (times approximation).

    What was found earlier in the visit order wins ties; what another thread found later in it does
    not, so that two threads return the rule that one thread returns.
    """
    known = search.known[0]
    return max(known.floor * (1.0 + TIE), known.later * (1.0 - TIE)) / problem.approximation


@_compiled
def _look_at_the_other_thread(search: Search) -> None:
    root, known = search.counters[0].root, search.known[0]
    for child in range(root, len(search.found)):
        known.floor = max(known.floor, search.found[child])
    for child in range(root):
        known.later = max(known.later, search.found[child])


@_compiled
def _record(stack: Stack, search: Search, level: int, worth: float) -> None:
    """Remember a better conjunction: the path to the node; the caller appends what it adds."""
    search.known[0].floor = worth
    if search.counters[0].root >= 0:
        search.found[search.counters[0].root] = worth
    for depth in range(1, level + 1):
        search.best[depth - 1] = stack.levels[depth].chosen
    search.known[0].length = level


@_compiled
def _append(search: Search, proposition: int) -> None:
    search.best[search.known[0].length] = proposition
    search.known[0].length += 1


@_compiled
def _select_columns(stack: Stack, search: Search, level: int, kept: int) -> None:
    """Keep the first `kept` mask columns named in search.columns, in that order."""
    node, buffer, columns = stack.levels[level], search.row_mask, search.columns
    width = node.width
    available, bounds = stack.available[level], stack.bounds[level]
    at = node.masks_at
    for r in range(node.size):
        wide, narrow = (
            stack.masks[at + r * width : at + (r + 1) * width],
            stack.masks[at + r * kept : at + (r + 1) * kept],
        )
        for k in range(kept):
            buffer[k] = wide[columns[k]]
        for k in range(kept):
            narrow[k] = buffer[k]
    for k in range(kept):
        search.sum_g[k], search.sum_h[k] = bounds[columns[k]], available[columns[k]]
    for k in range(kept):
        bounds[k], available[k] = search.sum_g[k], search.sum_h[k]
    node.width = kept


@_compiled
def _absorb_mandatory_rows(stack: Stack, search: Search, level: int) -> int:
    """Move the rows on which all available propositions hold into the base; returns how many."""
    node, closure = stack.levels[level], stack.closure[level]
    rows_at, masks_at, width = node.rows_at, node.masks_at, node.width
    size, negative = node.size, node.negative
    needed = search.needed
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
            node.base_g += stack.gradient[source]
            node.base_h += stack.curvature[source]
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
    node.size = kept
    node.negative = kept if negative == size else kept_negative
    return size - kept


@_compiled
def _drop(problem: Problem, search: Search, bound: float, length: int) -> None:
    """Leave out what has at least this length: the certificate knows its bound."""
    search.known[0].dropped = max(search.known[0].dropped, _worth(problem, bound, length))


@_compiled
def _choose(
    problem: Problem, stack: Stack, search: Search, level: int, child: int, pattern: int
) -> None:
    """The rows, as of Problem.members, of the node's child and of a subset of
    search.columns, in search.chosen.
    """
    chosen, members = search.chosen, problem.members
    for w in range(len(chosen)):
        chosen[w] = members[child, w]
    for depth in range(1, level + 1):
        for w in range(len(chosen)):
            chosen[w] &= members[stack.levels[depth].chosen, w]
    bit = 0
    while pattern >> bit:
        if pattern >> bit & 1:
            for w in range(len(chosen)):
                chosen[w] &= members[stack.available[level, search.columns[bit]], w]
        bit += 1
    search.counters[0].work += problem.terms.size


@_compiled
def _exact_value(problem: Problem, search: Search) -> float:
    """Of the rows in search.chosen, from the terms."""
    terms, sums = problem.terms, search.term_sums
    search.counters[0].evaluations += 1
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
    """The least share of its curvature that a conjunction inside search.chosen keeps: 1 - rho,
    rho the greatest eigenvalue of S, the sum of b b' / h. With S of trace 1, rho^8 is at most
    the Frobenius norm of S^8.
    """
    terms, gram = problem.terms, search.gram
    size = len(terms) - 2
    search.counters[0].evaluations += size  # as much work, about
    search.counters[0].work += size * terms.size // 4
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
    node, available, bounds = stack.levels[level], stack.available[level], stack.bounds[level]
    columns, value = search.columns, search.value
    while True:
        width = node.width
        _evaluate(problem, stack, search, level)
        # the children themselves, of level + 1 propositions: is one better than the incumbent?
        needed = _needed(problem, search.known[0].floor * (1.0 + TIE), level + 1)
        for a in range(width):
            if value[a] > needed and _relaxed(problem):
                _choose(problem, stack, search, level, available[a], 0)
                value[a] = _exact_value(problem, search)
            if value[a] > needed:
                _record(stack, search, level, _worth(problem, value[a], level + 1))
                _append(search, available[a])
                needed = _needed(problem, search.known[0].floor * (1.0 + TIE), level + 1)
        # their descendants, of level + 2 or more: could one be?
        needed = _needed(problem, _threshold(problem, search), level + 2)
        kept = 0
        for a in range(width):
            if bounds[a] > needed:
                columns[kept] = a
                kept += 1
            else:
                _drop(problem, search, bounds[a], level + 2)
        search.counters[0].bound += width - kept
        if kept <= LEAF_WIDTH or kept > 0.8 * width:
            break
        _select_columns(stack, search, level, kept)
        size = node.size
        moved = _absorb_mandatory_rows(stack, search, level)
        for a in range(kept):
            columns[a] = a
        if moved < 0.1 * size:
            break
        search.counters[0].rebounds += 1
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
    node.children, node.next, node.expanded = kept, kept, 1


@_compiled
def _redundant(
    problem: Problem, stack: Stack, level: int, child: int, size: int, closure: Any
) -> bool:
    """Whether the child's conjunctions are also met elsewhere: a proposition ranked
    behind holds on all its rows.

    That proposition's own branch, visited later, has these conjunctions with it added. Where length
    has a limit or a price the longer conjunction may not fit or be worth less; then only a sibling
    that selects the same rows counts.
    """
    if problem.any_length:
        common: Any = np.uint64(0)
        for w in range(len(closure)):
            common |= closure[w] & stack.behind[level, w]
        return common != 0
    node = stack.levels[level]
    for sibling in range(child):
        if _has(closure, stack.available[level, sibling]):
            rows_of_sibling = 0
            for r in range(node.size):
                rows_of_sibling += stack.masks[node.masks_at + r * node.width + sibling]
            if rows_of_sibling == size:
                return True
    return False


@_compiled
def _solve_leaf(
    problem: Problem, stack: Stack, search: Search, level: int, child: int, size: int, few: int
) -> None:
    """Values of all conjunctions of the child with a subset of few propositions, in one pass.

    Rows are summed by the pattern of propositions they satisfy; sums over supersets give G and H of
    every subset.
    """
    node, columns = stack.levels[level], search.columns
    width, masks_at, rows_at = node.width, node.masks_at, node.rows_at
    g, h = search.leaf_g, search.leaf_h
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
    g[patterns - 1] += node.base_g
    if _relaxed(problem):
        _choose(problem, stack, search, level, stack.available[level, child], 0)
        ratio = max(1.0, _share(problem, search) / node.share)
        for pattern in range(patterns):
            h[pattern] *= ratio
        h[patterns - 1] += problem.ridge + (node.base_h - problem.ridge) * ratio
    else:
        h[patterns - 1] += node.base_h
    # sums over supersets, proposition by proposition: what a subset selects
    # satisfies at least the subset
    half = 1
    while half < patterns:
        for start in range(0, patterns, 2 * half):
            for pattern in range(start, start + half):
                g[pattern] += g[pattern + half]
                h[pattern] += h[pattern + half]
        half *= 2
    worth, best_pattern, better = search.known[0].floor * (1.0 + TIE), 0, 0
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
    search.counters[0].leaves += 1
    search.counters[0].evaluations += patterns - 1
    search.counters[0].work += size * few + patterns


@_compiled
def _select_rows(
    stack: Stack, search: Search, level: int, child: int, start: int, end: int, size: int
) -> int:
    """Append the rows from start to end that satisfy the child to
    search.rows; returns the new size.
    """
    node, rows = stack.levels[level], search.rows
    width, at = node.width, node.masks_at + child
    column = stack.masks[at : at + node.size * width]
    for r in range(start, end):
        rows[size] = r
        size += column[r * width]
    return size


@_compiled
def _node_bound(problem: Problem, stack: Stack, level: int) -> float:
    """The mandatory-rows bound on the values of one node and its descendants.

    It is Theorem 3.1 with the sums over the mandatory rows added to those of every prefix
    and suffix of the free ones.
    """
    node = stack.levels[level]
    start = node.rows_at
    bound = _value(problem, node.base_g, node.base_h)
    for begin, end, step in ((0, node.negative, 1), (node.size - 1, node.negative - 1, -1)):
        g, h = node.base_g, node.base_h
        for r in range(start + begin, start + end, step):
            g += stack.gradient[r]
            h += stack.curvature[r]
            bound = max(bound, _value(problem, g, h))
    return bound


@_compiled
def _merge_rows(stack: Stack, search: Search, level: int) -> int:
    """Merge rows that no available proposition (search.needed) tells apart;
    returns how many rows are left.

    Merged rows are all in or all out of every descendant: fewer rows to add up, and a tighter
    bound, because a prefix cannot split them. The caller sorts what is left.
    """
    node, needed, slots, rows = stack.levels[level], search.needed, search.slots, search.rows
    at, size = node.rows_at, node.size
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
                gradient[groups], curvature[groups], rows[groups] = (
                    gradient[r],
                    curvature[r],
                    rows[r],
                )
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
    node.size = groups
    return groups


@_compiled
def _sort_rows(problem: Problem, stack: Stack, search: Search, level: int) -> None:
    """Sort the rows of a level (g, h, bits and search.rows) into the problem's order, in place.

    Sort keys and row numbers are sorted by Shell's method; then every cycle of the
    permutation is moved once.
    """
    node, rows, keys, order, spare = (
        stack.levels[level],
        search.rows,
        search.keys,
        search.slots,
        search.row_bits,
    )
    at, size = node.rows_at, node.size
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
    node.negative = negative


@_compiled
def _descend(problem: Problem, stack: Stack, search: Search, level: int, child: int) -> bool:
    """Build the node of a child one level down; False if it was solved or pruned on the way."""
    node, below, counters = stack.levels[level], stack.levels[level + 1], search.counters[0]
    _remove(stack.behind[level], stack.available[level, child])
    # extent, closure, and whether another branch has the same conjunctions
    negative = _select_rows(stack, search, level, child, 0, node.negative, 0)
    size = _select_rows(stack, search, level, child, node.negative, node.size, negative)
    _close(stack, search, level, size)
    counters.work += node.size + size
    if _redundant(problem, stack, level, child, size, search.closure):
        counters.redundant += 1
        return False
    few = _list_available(stack, search, level, child)
    if few == 0:
        return False
    if few <= LEAF_WIDTH:
        _solve_leaf(problem, stack, search, level, child, size, few)
        return False

    # the node, its bound, and its bound again once rows that look alike are one
    _move_rows_down(stack, search, level, size, negative)
    below.masks_at = node.masks_at + node.size * node.width
    below.width, below.chosen, below.expanded = few, stack.available[level, child], 0
    below.share = node.share
    if _relaxed(problem):
        _scale_curvature(problem, stack, search, level, child)
    bound = _node_bound(problem, stack, level + 1)
    needed_value = _needed(problem, _threshold(problem, search), level + 2)
    if bound > needed_value:
        kept = below.size
        if _merge_rows(stack, search, level + 1) < kept:
            _sort_rows(problem, stack, search, level + 1)
            bound = _node_bound(problem, stack, level + 1)
    if bound <= needed_value:
        _drop(problem, search, bound, level + 2)
        counters.mandatory_rows += 1
        return False
    _copy_propositions_down(stack, search, level)
    return True


@_compiled
def _close(stack: Stack, search: Search, level: int, size: int) -> None:
    """The propositions that hold on all rows of the child, mandatory ones
    and those in search.rows.
    """
    bits = stack.bits[stack.levels[level].rows_at :]
    for w in range(len(search.closure)):
        common = stack.closure[level, w]
        for k in range(size):
            common &= bits[search.rows[k], w]
        search.closure[w] = common


@_compiled
def _list_available(stack: Stack, search: Search, level: int, child: int) -> int:
    """List the child's available propositions in search.columns and search.needed;
    returns how many they are.

    They are the higher-ranked siblings without those that hold on all of its rows
    and would change nothing.
    """
    available = stack.available[level]
    search.needed[:] = 0
    few = 0
    for later in range(child + 1, stack.levels[level].children):
        if _has(search.closure, available[later]):
            search.counters[0].implied += 1
        else:
            search.columns[few] = later
            _insert(search.needed, available[later])
            few += 1
    return few


@_compiled
def _move_rows_down(stack: Stack, search: Search, level: int, size: int, negative: int) -> None:
    """The rows in search.rows: mandatory ones (U) into the base below, free ones (F) one level
    down.
    """
    node, below, rows, needed = (
        stack.levels[level],
        stack.levels[level + 1],
        search.rows,
        search.needed,
    )
    gradient, curvature, bits = (
        stack.gradient[node.rows_at :],
        stack.curvature[node.rows_at :],
        stack.bits[node.rows_at :],
    )
    at = node.rows_at + node.size
    gradient_below, curvature_below, bits_below = (
        stack.gradient[at:],
        stack.curvature[at:],
        stack.bits[at:],
    )
    base_g, base_h, mandatory = node.base_g, node.base_h, stack.closure[level + 1]
    for w in range(len(mandatory)):
        mandatory[w] = stack.closure[level, w]
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
    below.size, below.negative, below.rows_at = (
        kept,
        kept if negative == size else kept_negative,
        at,
    )
    below.base_g, below.base_h = base_g, base_h


@_compiled
def _scale_curvature(
    problem: Problem, stack: Stack, search: Search, level: int, child: int
) -> None:
    """Multiply the curvature of the level below by what its share of it, 1 - rho, has grown to."""
    below = stack.levels[level + 1]
    _choose(problem, stack, search, level, stack.available[level, child], 0)
    ratio = max(1.0, _share(problem, search) / below.share)
    below.share *= ratio
    below.base_h = problem.ridge + (below.base_h - problem.ridge) * ratio
    for r in range(below.rows_at, below.rows_at + below.size):
        stack.curvature[r] *= ratio


@_compiled
def _copy_propositions_down(stack: Stack, search: Search, level: int) -> None:
    """Give the level below its available propositions, search.columns, with their masks
    on its rows, search.rows.
    """
    node, below, columns = stack.levels[level], stack.levels[level + 1], search.columns
    width, few = node.width, below.width
    for w in range(len(search.needed)):
        stack.behind[level + 1, w] = stack.behind[level, w]
    for a in range(few):
        stack.available[level + 1, a] = stack.available[level, columns[a]]
    for k in range(below.size):
        start, end = node.masks_at + np.int64(search.rows[k]) * width, below.masks_at + k * few
        mask, mask_below = stack.masks[start : start + width], stack.masks[end : end + few]
        for a in range(few):
            mask_below[a] = mask[columns[a]]


def _advance(
    problem: Problem,
    stack: Stack,
    search: Search,
    stop: int,
    budget: int,
    max_evaluations: int,
    shared: bool,
) -> int:
    """Go on with the search until the root's children from `stop` on are done, or
    until it is time to pause.

    It pauses after `budget` visits of rows and propositions, or at `max_evaluations` in total.

    Returns DONE, PAUSED (call again), or FULL (give the stack more room, then call again).
    """
    counters = search.counters[0]
    until = counters.work + budget
    level = counters.level
    while True:
        node = stack.levels[level]
        if not node.expanded:
            if shared and counters.nodes & 31 == 0:
                _look_at_the_other_thread(search)
            _expand(problem, stack, search, level)
            if counters.work > until or counters.evaluations >= max_evaluations:
                return PAUSED
        child = node.next - 1
        if level == 0 and child < stop:
            return DONE
        finished = child < 0 or level + 2 > problem.max_length
        needed = _needed(problem, _threshold(problem, search), level + 2)
        if not finished and stack.bounds[level, child] <= needed:
            _drop(problem, search, stack.bounds[level, child], level + 2)
            counters.bound += child + 1
            finished = True
        if finished:
            if level == 0:
                node.next = stop
                return DONE
            level -= 1
            counters.level = level
            continue
        rows_end = node.rows_at + 2 * node.size
        masks_end = node.masks_at + 2 * node.size * node.width
        if (
            level + 2 > len(stack.levels)
            or rows_end > len(stack.gradient)
            or masks_end > len(stack.masks)
        ):
            return FULL
        node.next = child
        if level == 0:
            counters.root = child
            if shared:
                search.known[0].later = 0.0
                _look_at_the_other_thread(search)
        if _descend(problem, stack, search, level, child):
            level += 1
            counters.level = level


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
    """What becomes of the augmentations; those kept come first in bound,
    kept, closures and offsets.
    """

    crit: Any  # int64 (augmentations,): their critical indices
    bound: Any  # float64 (augmentations,)
    kept: Any  # int64 (augmentations,): which ones
    offsets: Any  # int64 (augmentations + 2,): of their extents; that of a non-core query is empty
    rows: Any  # int64: the extents
    closures: Any  # uint64 (augmentations, words): what they imply (core queries only)


PUBLISHED_COUNTS = np.dtype(
    [
        ("immediate_bound", np.int64),
        ("immediate_equivalence", np.int64),
        ("propagated_bound", np.int64),
        ("propagated_equivalence", np.int64),
        ("skipped_checks", np.int64),  # by (3.7)
    ]
)
"""Table 2: pruned by a bound or an equivalence, of an augmentation itself or of its parent's."""
INCUMBENT = np.dtype(
    [
        ("value", np.float64),
        ("proposition", np.int64),  # the augmentation that it is; -1 while none of this query is
        ("evaluations", np.int64),
        ("dropped", np.float64),  # the greatest bound that was pruned
    ]
)


@_compiled
def _gather(
    problem: Problem, data: Rows, query: Query, new: Augmented, a: int, start: int
) -> tuple[int, float, float]:
    """The query's rows that satisfy a, in new.rows from start on: how many,
    their value, and its bound.

    Theorem 3.1: no subset of them is worth more than one of their prefixes or suffixes.
    """
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
    return size, value, highest


@_compiled
def _critical_index(
    data: Rows, query: Query, new: Augmented, a: int, found: int, start: int, size: int
) -> int:
    """The least proposition that the query with a implies and the query alone does not."""
    closure = new.closures[found]
    for w in range(len(closure)):
        common = ~np.uint64(0)
        for k in range(start, start + size):
            common &= data.bits[new.rows[k], w]
        closure[w] = common
    for j in range(a):
        if _has(closure, j) and not _has(query.closure, j):
            return j
    return a


def _augment(
    problem: Problem, data: Rows, query: Query, new: Augmented, incumbent: Any, counters: Any
) -> int:
    """Lines 8 to 14 of Algorithm 1: evaluate the augmentations of one query;
    returns how many are kept.

    Args:
        problem, data, query, new: see there.
        incumbent: INCUMBENT (1,), updated.
        counters: PUBLISHED_COUNTS (1,), updated.
    """
    best, counts = incumbent[0], counters[0]
    found = 0
    for position in range(len(query.aug)):
        a, c = query.aug[position], new.crit[position]
        if a <= query.tail:
            continue
        if c < query.tail:
            counts.propagated_equivalence += 1
            continue
        if problem.approximation * query.old_bound[position] <= best.value * (1.0 + TIE):
            counts.propagated_bound += 1
            best.dropped = max(best.dropped, query.old_bound[position])
            continue
        if _has(query.closure, a):
            counts.immediate_equivalence += 1
            continue
        start = new.offsets[found]
        size, value, highest = _gather(problem, data, query, new, a, start)
        best.evaluations += 1
        if value > best.value * (1.0 + TIE):
            best.value, best.proposition = value, a
        if problem.approximation * highest <= best.value * (1.0 + TIE):
            counts.immediate_bound += 1
            best.dropped = max(best.dropped, highest)
            continue
        new.offsets[found + 1] = start
        if c < a and not _has(query.closure, c):
            counts.skipped_checks += 1  # (3.7): certainly not a core query
        else:
            c = _critical_index(data, query, new, a, found, start, size)
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
