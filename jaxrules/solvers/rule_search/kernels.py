"""Compiled kernels of the rule search: depth-first branch and bound, and the sums of the beam search.

Everything here works on one problem: maximise G(q)^2 / (ridge + H(q)) over conjunctions q of propositions,
G and H the sums of g and h over the rows that q selects. `rule_search` prepares problems, drives the
kernels in slices and reads the results; this module is imported on first use because numba is.

The depth-first search keeps per level the node's FREE rows, those on which some available proposition fails,
by descending g/h; the mandatory rows, which belong to every descendant, are summed up in the base. A row
has its g, its h, one byte per available proposition (`masks`, for SIMD sums) and one bit per proposition
(`bits`): the conjunction of the bits of a set of rows is the set of all propositions that hold on them.
Rows shrink and masks narrow on the way down, so a level is a compact copy of a part of the one above; all
levels lie on one stack. The search stops after any node and goes on later: that is how time limits work.
docs/mandatory-rows-bound.md states and proves the bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

TIE = 1e-10  # objectives this close, relatively, are ties: the first one visited wins
SMALLEST_CURVATURE = 1e-150  # rows with less have an extreme g/h, which stays finite
LEAF_WIDTH = 7  # with this many available propositions or fewer, all subsets are evaluated at once
DONE, PAUSED, FULL = 0, 1, 2  # what `advance` returns

# columns of Stack.levels
SIZE, POSITIVE, NEGATIVE, WIDTH, CHILDREN, NEXT, CHOSEN, ROWS_AT, MASKS_AT, EXPANDED = range(10)
# entries of Search.counters
NODES, EVALUATIONS, LEAVES, BOUND, MANDATORY, REDUNDANT, IMPLIED, REBOUNDS, WORK, LEVEL, ROOT, LENGTH = range(12)
# entries of Search.values
FLOOR, LATER, DROPPED = range(3)


class Problem(NamedTuple):
    """What is constant during a search."""

    ridge: float
    approximation: float
    max_length: int  # at least the number of propositions: no limit


class Stack(NamedTuple):
    """The levels from the root to the current node, and their rows."""

    levels: Any  # int64 (levels, 10)
    base: Any  # float64 (levels, 2): sums of g and h over the mandatory rows
    closure: Any  # uint64 (levels, words): propositions that hold on all mandatory rows
    behind: Any  # uint64 (levels, words): propositions ranked behind the current child, here or above
    available: Any  # int32 (levels, propositions): meaning of the mask columns
    bounds: Any  # float64 (levels, propositions): of the children, ascending once expanded
    gradient: Any  # float64 (row capacity,)
    curvature: Any  # float64 (row capacity,)
    bits: Any  # uint64 (row capacity, words)
    masks: Any  # uint8 (mask capacity,)


class Search(NamedTuple):
    """What a search knows and counts, and its scratch space."""

    counters: Any  # int64 (12,)
    values: Any  # float64 (3,)
    best: Any  # int32 (propositions,): the best conjunction; its length is counters[LENGTH]
    found: Any  # float64 (propositions,): best objective below each root child, shared between threads
    sums: Any  # float64 (4, propositions)
    rows: Any  # uint64 (rows,): unsigned indices need no check for wrapping around
    columns: Any  # uint64 (propositions,)
    row_mask: Any  # uint8 (propositions,)
    words: Any  # uint64 (2, words)
    slots: Any  # int32 (at least twice the rows, a power of two): a hash table
    table: Any  # float64 (2, 2**LEAF_WIDTH)
    ratios: Any  # float64 (rows,)


def _example() -> tuple[Problem, Stack, Search]:
    """Arrays of the right types: the kernels are compiled for these signatures, not per call."""
    f1, f2 = np.zeros(1), np.zeros((1, 1))
    u1, u2, b1 = np.zeros(1, np.uint64), np.zeros((1, 1), np.uint64), np.zeros(1, np.uint8)
    i1, i2 = np.zeros(1, np.int32), np.zeros((1, 1), np.int32)
    l1, l2 = np.zeros(1, np.int64), np.zeros((1, 1), np.int64)
    stack = Stack(l2, f2, u2, u2, i2, f2, f1, f1, u2, b1)
    return Problem(1.0, 1.0, 1), stack, Search(l1, f1, i1, f1, f2, u1, u1, b1, u2, i1, f2, f1)


_PROBLEM, _STACK, _SEARCH = (numba.typeof(example) for example in _example())
_INT, _FLOAT, _NONE, _BOOL = numba.int64, numba.float64, numba.void, numba.boolean
_WORDS = numba.uint64[::1]
# Without NaN and infinity checks the inner loops become SIMD code; ridge > 0 keeps both away.
_FAST = {"contract", "nsz", "nnan", "ninf"}


def _compiled(signature: Any) -> Any:
    """numba.njit without reference counts: the caller owns all arrays and nothing is allocated here.

    Counting them costs a fifth of the search. The option is private to numba; without it all works, slower.
    """
    options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": _FAST}
    njit: Any = numba.njit
    try:
        return njit(signature, _nrt=False, **options)
    except KeyError:
        return njit(signature, **options)


def _maximum(typing: Any, x: Any, y: Any) -> Any:
    """max(x, y) of two floats as one instruction: numba's own ends in slow masked stores in SIMD loops."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[0].type
        signature = ir.FunctionType(number, [number, number])
        return builder.call(builder.module.declare_intrinsic("llvm.maxnum", [number], signature), arguments)

    return _FLOAT(x, y), generate


_larger: Any = intrinsic(_maximum)


@_compiled(_BOOL(_WORDS, _INT))
def _has(words: Any, proposition: int) -> bool:
    return (words[proposition >> 6] >> np.uint64(proposition & 63)) & np.uint64(1) != 0


@_compiled(_NONE(_WORDS, _INT))
def _insert(words: Any, proposition: int) -> None:
    words[proposition >> 6] |= np.uint64(1) << np.uint64(proposition & 63)


@_compiled(_NONE(_WORDS, _INT))
def _remove(words: Any, proposition: int) -> None:
    words[proposition >> 6] &= ~(np.uint64(1) << np.uint64(proposition & 63))


@_compiled(_NONE(_PROBLEM, _STACK, _SEARCH, _INT))
def _evaluate(problem: Problem, stack: Stack, search: Search, level: int) -> None:
    """Objective and mandatory-rows bound of every available proposition: sums[3] and stack.bounds.

    Prefixes run over the rows with g > 0 from the front, suffixes over those with g < 0 from the back;
    rows are the outer loop, so that the inner one over propositions is SIMD code.
    """
    info = stack.levels[level]
    size, positive, negative, width = info[SIZE], info[POSITIVE], info[NEGATIVE], info[WIDTH]
    rows_at, masks_at = info[ROWS_AT], info[MASKS_AT]
    gradient, curvature = stack.gradient[rows_at : rows_at + size], stack.curvature[rows_at : rows_at + size]
    g, h, total, objective = search.sums[0], search.sums[1], search.sums[2], search.sums[3]
    bound = stack.bounds[level]
    base_g, base_h = stack.base[level, 0], problem.ridge + stack.base[level, 1]
    for a in range(width):
        g[a], h[a], bound[a] = base_g, base_h, base_g * base_g / base_h
    for r in range(positive):
        row_g, row_h, at = gradient[r], curvature[r], masks_at + r * width
        mask = stack.masks[at : at + width]
        for a in range(width):
            sum_g, sum_h = g[a] + mask[a] * row_g, h[a] + mask[a] * row_h
            g[a], h[a] = sum_g, sum_h
            bound[a] = _larger(bound[a], sum_g * sum_g / sum_h)
    for a in range(width):
        objective[a], total[a] = g[a] - base_g, h[a]
        g[a], h[a] = base_g, base_h
    for r in range(size - 1, negative - 1, -1):
        row_g, row_h, at = gradient[r], curvature[r], masks_at + r * width
        mask = stack.masks[at : at + width]
        for a in range(width):
            sum_g, sum_h = g[a] + mask[a] * row_g, h[a] + mask[a] * row_h
            g[a], h[a] = sum_g, sum_h
            bound[a] = _larger(bound[a], sum_g * sum_g / sum_h)
    for r in range(positive, negative):  # rows with g = 0 only dilute
        row_h, at = curvature[r], masks_at + r * width
        mask = stack.masks[at : at + width]
        for a in range(width):
            h[a] += mask[a] * row_h
    for a in range(width):
        sum_g = objective[a] + g[a]
        objective[a] = sum_g * sum_g / (total[a] + h[a] - base_h)
    search.counters[NODES] += 1
    search.counters[EVALUATIONS] += width
    search.counters[WORK] += width * (size + 8)


@_compiled(_FLOAT(_PROBLEM, _SEARCH))
def _threshold(problem: Problem, search: Search) -> float:
    """Bounds up to this value cannot lead to a better rule than those found (times approximation).

    What was found earlier in the visit order wins ties; what another thread found later in it does not,
    so that two threads return the rule that one thread returns.
    """
    values = search.values
    return max(values[FLOOR] * (1.0 + TIE), values[LATER] * (1.0 - TIE)) / problem.approximation


@_compiled(_NONE(_SEARCH))
def _look_at_the_other_thread(search: Search) -> None:
    root, values = search.counters[ROOT], search.values
    for child in range(root, len(search.found)):
        values[FLOOR] = max(values[FLOOR], search.found[child])
    for child in range(root):
        values[LATER] = max(values[LATER], search.found[child])


@_compiled(_NONE(_STACK, _SEARCH, _INT, _FLOAT))
def _record(stack: Stack, search: Search, level: int, objective: float) -> None:
    """Remember a better conjunction: the path to the node; the caller appends what it adds."""
    search.values[FLOOR] = objective
    if search.counters[ROOT] >= 0:
        search.found[search.counters[ROOT]] = objective
    for depth in range(1, level + 1):
        search.best[depth - 1] = stack.levels[depth, CHOSEN]
    search.counters[LENGTH] = level


@_compiled(_NONE(_SEARCH, _INT))
def _append(search: Search, proposition: int) -> None:
    search.best[search.counters[LENGTH]] = proposition
    search.counters[LENGTH] += 1


@_compiled(_NONE(_STACK, _SEARCH, _INT, _INT))
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
    objective = search.sums[3]
    for k in range(kept):
        search.sums[0, k], objective[k] = bounds[columns[k]], available[columns[k]]
    for k in range(kept):
        bounds[k], available[k] = search.sums[0, k], objective[k]
    info[WIDTH] = kept


@_compiled(_INT(_STACK, _SEARCH, _INT))
def _absorb_mandatory_rows(stack: Stack, search: Search, level: int) -> int:
    """Move the rows on which all available propositions hold into the base; returns how many."""
    info, base, closure = stack.levels[level], stack.base[level], stack.closure[level]
    rows_at, masks_at, width = info[ROWS_AT], info[MASKS_AT], info[WIDTH]
    size, positive, negative = info[SIZE], info[POSITIVE], info[NEGATIVE]
    needed = search.words[1]
    needed[:] = 0
    for a in range(width):
        _insert(needed, stack.available[level, a])
    kept, kept_positive, kept_negative = 0, 0, 0
    for r in range(size):
        if r == positive:
            kept_positive = kept
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
    info[POSITIVE] = kept if positive == size else kept_positive
    info[NEGATIVE] = kept if negative == size else kept_negative
    return size - kept


@_compiled(_NONE(_PROBLEM, _STACK, _SEARCH, _INT))
def _expand(problem: Problem, stack: Stack, search: Search, level: int) -> None:
    """Evaluate a node's children, prune them by bound, and rank the rest by ascending bound.

    When pruning thins the available propositions out, more rows are mandatory and all bounds are
    tighter: the evaluation is repeated until that no longer pays.
    """
    info, available, bounds = stack.levels[level], stack.available[level], stack.bounds[level]
    columns, objective = search.columns, search.sums[3]
    while True:
        width = info[WIDTH]
        _evaluate(problem, stack, search, level)
        for a in range(width):
            if objective[a] > search.values[FLOOR] * (1.0 + TIE):
                _record(stack, search, level, objective[a])
                _append(search, available[a])
        threshold = _threshold(problem, search)
        kept = 0
        for a in range(width):
            if bounds[a] > threshold:
                columns[kept] = a
                kept += 1
            else:
                search.values[DROPPED] = max(search.values[DROPPED], bounds[a])
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


@_compiled(_BOOL(_PROBLEM, _STACK, _INT, _INT, _INT, _WORDS))
def _redundant(problem: Problem, stack: Stack, level: int, child: int, size: int, closure: Any) -> bool:
    """Whether the child's conjunctions are also met elsewhere: a proposition ranked behind holds on all its rows.

    That proposition's own branch, visited later, has these conjunctions with it added. Under a length
    limit the longer conjunction may not fit; then only a sibling that selects the same rows counts.
    """
    if problem.max_length >= stack.available.shape[1]:
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


@_compiled(_NONE(_PROBLEM, _STACK, _SEARCH, _INT, _INT, _INT, _INT))
def _solve_leaf(problem: Problem, stack: Stack, search: Search, level: int, child: int, size: int, few: int) -> None:
    """Objectives of all conjunctions of the child with a subset of few propositions, in one pass.

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
    h[patterns - 1] += stack.base[level, 1]
    half = 1
    while half < patterns:
        for start in range(0, patterns, 2 * half):
            for pattern in range(start, start + half):
                g[pattern] += g[pattern + half]
                h[pattern] += h[pattern + half]
        half *= 2
    room = problem.max_length - level - 1
    best, best_pattern = search.values[FLOOR] * (1.0 + TIE), 0
    for pattern in range(1, patterns):
        if g[pattern] * g[pattern] > best * (problem.ridge + h[pattern]):
            members = 0
            for bit in range(few):
                members += pattern >> bit & 1
            if members <= room:
                best, best_pattern = g[pattern] * g[pattern] / (problem.ridge + h[pattern]), pattern
    if best_pattern:
        _record(stack, search, level, best)
        _append(search, stack.available[level, child])
        for bit in range(few):
            if best_pattern >> bit & 1:
                _append(search, stack.available[level, columns[bit]])
    search.counters[LEAVES] += 1
    search.counters[EVALUATIONS] += patterns - 1
    search.counters[WORK] += size * few + patterns


@_compiled(_INT(_STACK, _SEARCH, _INT, _INT, _INT, _INT, _INT))
def _select_rows(stack: Stack, search: Search, level: int, child: int, start: int, end: int, size: int) -> int:
    """Append the rows from start to end that satisfy the child to search.rows; returns the new size."""
    info, rows = stack.levels[level], search.rows
    width, at = info[WIDTH], info[MASKS_AT] + child
    column = stack.masks[at : at + info[SIZE] * width]
    for r in range(start, end):
        rows[size] = r
        size += column[r * width]
    return size


@_compiled(_FLOAT(_PROBLEM, _STACK, _INT))
def _node_bound(problem: Problem, stack: Stack, level: int) -> float:
    """The mandatory-rows bound of one node."""
    info = stack.levels[level]
    start = info[ROWS_AT]
    g, h = stack.base[level, 0], problem.ridge + stack.base[level, 1]
    bound = g * g / h
    for r in range(start, start + info[POSITIVE]):
        g += stack.gradient[r]
        h += stack.curvature[r]
        bound = max(bound, g * g / h)
    g, h = stack.base[level, 0], problem.ridge + stack.base[level, 1]
    for r in range(start + info[SIZE] - 1, start + info[NEGATIVE] - 1, -1):
        g += stack.gradient[r]
        h += stack.curvature[r]
        bound = max(bound, g * g / h)
    return bound


@_compiled(_INT(_STACK, _SEARCH, _INT))
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


@_compiled(_NONE(_STACK, _SEARCH, _INT))
def _sort_rows(stack: Stack, search: Search, level: int) -> None:
    """Sort the rows of a level (g, h, bits and search.rows) by descending g/h, in place.

    Ratios and row numbers are sorted by Shell's method; then every cycle of the permutation is moved once.
    """
    info, rows, ratios, order, spare = stack.levels[level], search.rows, search.ratios, search.slots, search.words[0]
    at, size = info[ROWS_AT], info[SIZE]
    gradient, curvature, bits = stack.gradient[at:], stack.curvature[at:], stack.bits[at:]
    for r in range(size):
        ratios[r], order[r] = gradient[r] / max(curvature[r], SMALLEST_CURVATURE), r
    gap = 1
    while 9 * gap < 4 * size:
        gap = 9 * gap // 4 + 1
    while True:
        for start in range(gap, size):
            ratio, row, r = ratios[start], order[start], start
            while r >= gap and ratios[r - gap] < ratio:
                ratios[r], order[r] = ratios[r - gap], order[r - gap]
                r -= gap
            ratios[r], order[r] = ratio, row
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
    positive = 0
    while positive < size and gradient[positive] > 0:
        positive += 1
    negative = size
    while negative > positive and gradient[negative - 1] < 0:
        negative -= 1
    info[POSITIVE], info[NEGATIVE] = positive, negative


@_compiled(_BOOL(_PROBLEM, _STACK, _SEARCH, _INT, _INT))
def _descend(problem: Problem, stack: Stack, search: Search, level: int, child: int) -> bool:
    """Build the node of a child one level down; False if it was solved or pruned on the way."""
    info, below = stack.levels[level], stack.levels[level + 1]
    available, closure, rows = stack.available[level], search.words[0], search.rows
    width, rows_at, masks_at = info[WIDTH], info[ROWS_AT], info[MASKS_AT]
    gradient, curvature, bits = stack.gradient[rows_at:], stack.curvature[rows_at:], stack.bits[rows_at:]
    _remove(stack.behind[level], available[child])
    positive = _select_rows(stack, search, level, child, 0, info[POSITIVE], 0)
    negative = _select_rows(stack, search, level, child, info[POSITIVE], info[NEGATIVE], positive)
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
    kept, kept_positive, kept_negative = 0, 0, 0
    for k in range(size):
        if k == positive:
            kept_positive = kept
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
    below[POSITIVE] = kept if positive == size else kept_positive
    below[NEGATIVE] = kept if negative == size else kept_negative
    below[ROWS_AT], below[MASKS_AT] = at, masks_at + info[SIZE] * width
    below[WIDTH], below[CHOSEN], below[EXPANDED] = few, available[child], 0
    stack.base[level + 1, 0], stack.base[level + 1, 1] = base_g, base_h
    bound = _node_bound(problem, stack, level + 1)
    if bound > _threshold(problem, search):
        for w in range(len(mandatory)):
            stack.closure[level + 1, w] = mandatory[w]
        if _merge_rows(stack, search, level + 1) < kept:
            _sort_rows(stack, search, level + 1)
            kept = below[SIZE]
            bound = _node_bound(problem, stack, level + 1)
    if bound <= _threshold(problem, search):
        search.values[DROPPED] = max(search.values[DROPPED], bound)
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


@_compiled(_INT(_PROBLEM, _STACK, _SEARCH, _INT, _INT, _INT, _BOOL))
def advance(
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
        if not finished and stack.bounds[level, child] <= _threshold(problem, search):
            search.values[DROPPED] = max(search.values[DROPPED], stack.bounds[level, child])
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


@_compiled(_FLOAT(_PROBLEM, _STACK, _SEARCH, _INT))
def open_bound(problem: Problem, stack: Stack, search: Search, top: int) -> float:
    """The largest bound among the children from level `top` down that have not been visited; 0 for none.

    Negative if the root itself has not been expanded.
    """
    bound = 0.0
    for level in range(top, min(search.counters[LEVEL] + 1, problem.max_length)):
        info = stack.levels[level]
        if info[EXPANDED]:
            if info[NEXT] > 0 and level + 2 <= problem.max_length:
                bound = max(bound, stack.bounds[level, info[NEXT] - 1])
        elif level > 0:
            bound = max(bound, stack.bounds[level - 1, stack.levels[level - 1, NEXT]])
        else:
            return -1.0
    return bound


@_compiled(_NONE(numba.uint8[:, ::1], _FLOAT[::1], _FLOAT[::1], _BOOL[::1], _FLOAT[:, ::1]))
def extension_sums(masks: Any, gradient: Any, curvature: Any, selected: Any, sums: Any) -> None:
    """Sums of g and h over the selected rows that satisfy each proposition, into sums (2, propositions)."""
    sums[:] = 0.0
    sum_g, sum_h = sums[0], sums[1]
    for r in range(len(selected)):
        if selected[r]:
            mask, g, h = masks[r], gradient[r], curvature[r]
            for a in range(len(mask)):
                sum_g[a] += mask[a] * g
                sum_h[a] += mask[a] * h
