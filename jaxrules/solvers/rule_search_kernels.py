"""Compiled kernels of the rule search: depth-first branch and bound, and the beam that starts it.

Everything here works on one problem: maximise G(q)^2 / (ridge + H(q)) over conjunctions q of propositions,
G and H the sums of g and h over the rows that q selects. `rule_search` prepares problems, drives the
kernels in slices and reads the results; this module is imported on first use because numba is.

The depth-first search keeps per level the node's FREE rows (the mandatory ones are summed up in the base), sorted
by descending g/h, each with its own g, h, cell codes and mask over the node's available propositions.
Rows shrink and masks narrow on the way down, so a level is a compact copy of a part of the one above; all
levels lie on one stack. The search can stop after any node and go on later, in slices of a given budget.
docs/mandatory-rows-bound.md states and proves the bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

TIE = 1e-10  # objectives this close, relatively, are ties: the first one visited wins
LEAF_WIDTH = 7  # with this many available propositions or fewer, all subsets are evaluated at once
DONE, PAUSED, FULL = 0, 1, 2  # what `advance` returns

# columns of Stack.levels
SIZE, POSITIVE, NEGATIVE, WIDTH, CHILDREN, NEXT, EXCLUDED, CHOSEN, ROWS_AT, MASKS_AT, EXPANDED = range(11)
# entries of Search.counters
NODES, EVALUATIONS, LEAVES, BOUND, MANDATORY, REDUNDANT, IMPLIED, REBOUNDS, WORK, LEVEL, ROOT, LENGTH = range(12)
# entries of Search.values
FLOOR, LATER, DROPPED = range(3)


class Problem(NamedTuple):
    """The propositions and the limits; constant during a search."""

    column: Any  # int32 (propositions,): the code column a proposition looks at
    above: Any  # uint8 (propositions,): 1 for code >= cell, 0 for code <= cell
    cell: Any  # uint16 (propositions,)
    ridge: float
    approximation: float
    max_length: int


class Stack(NamedTuple):
    """The levels from the root to the current node."""

    levels: Any  # int64 (levels, 11)
    base: Any  # float64 (levels, 2): sums of g and h over the mandatory rows
    low: Any  # uint16 (levels, code columns): smallest code of a mandatory row
    high: Any  # uint16 (levels, code columns)
    available: Any  # int32 (levels, propositions): meaning of the mask columns
    bounds: Any  # float64 (levels, propositions): of the children, ascending once expanded
    excluded: Any  # int32 (levels, propositions): ranked behind this node or an ancestor of it
    gradient: Any  # float64 (row capacity,)
    curvature: Any  # float64 (row capacity,)
    codes: Any  # uint16 (row capacity, code columns)
    masks: Any  # uint8 (mask capacity,)


class Search(NamedTuple):
    """What a search knows and counts, and its scratch space."""

    counters: Any  # int64 (12,)
    values: Any  # float64 (3,)
    best: Any  # int32 (propositions,): the best conjunction; its length is counters[LENGTH]
    found: Any  # float64 (propositions,): best objective below each root child, shared between threads
    sums: Any  # float64 (4, propositions)
    rows: Any  # int64 (rows,)
    row_mask: Any  # uint8 (propositions,)
    cell_range: Any  # uint16 (2, code columns)
    table: Any  # float64 (2, 2**LEAF_WIDTH)


def _example() -> tuple[Problem, Stack, Search]:
    """Arrays of the right types: the kernels are compiled for these signatures, not per call."""
    f1, f2 = np.zeros(1), np.zeros((1, 1))
    c1, c2 = np.zeros(1, np.uint16), np.zeros((1, 1), np.uint16)
    b1, i1, l1 = np.zeros(1, np.uint8), np.zeros(1, np.int32), np.zeros(1, np.int64)
    i2, l2 = np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int64)
    problem = Problem(i1, b1, c1, 1.0, 1.0, 1)
    stack = Stack(l2, f2, c2, c2, i2, f2, i2, f1, f1, c2, b1)
    return problem, stack, Search(l1, f1, i1, f1, f2, l1, b1, c2, f2)


_PROBLEM, _STACK, _SEARCH = (numba.typeof(example) for example in _example())
_INT, _FLOAT, _NONE, _BOOL = numba.int64, numba.float64, numba.void, numba.boolean
# Without NaN and infinity checks the inner loops become SIMD code; ridge > 0 keeps both away.
_FAST = {"contract", "nsz", "nnan", "ninf"}


def _compiled(signature: Any) -> Any:
    return numba.njit(signature, cache=True, nogil=True, error_model="numpy", fastmath=_FAST)


@_compiled(_FLOAT(_FLOAT, _FLOAT, _FLOAT))
def _objective(g, h, ridge):
    return g * g / (ridge + h)


@_compiled(_NONE(_PROBLEM, _STACK, _SEARCH, _INT))
def _evaluate(problem, stack, search, level):
    """Objective and mandatory-rows bound of every available proposition: sums[3] and stack.bounds.

    Prefixes run over the rows with g > 0 from the front, suffixes over those with g < 0 from the back;
    rows are the outer loop, so that the inner one over propositions is SIMD code.
    """
    info = stack.levels[level]
    size, positive, negative, width = info[SIZE], info[POSITIVE], info[NEGATIVE], info[WIDTH]
    rows_at, masks_at = info[ROWS_AT], info[MASKS_AT]
    gradient, curvature = stack.gradient[rows_at : rows_at + size], stack.curvature[rows_at : rows_at + size]
    g, h, bound, total = search.sums[0], search.sums[1], stack.bounds[level], search.sums[2]
    objective = search.sums[3]
    base_g, base_h = stack.base[level, 0], problem.ridge + stack.base[level, 1]
    for a in range(width):
        g[a], h[a], bound[a] = base_g, base_h, base_g * base_g / base_h
    for r in range(positive):
        row_g, row_h, at = gradient[r], curvature[r], masks_at + r * width
        mask = stack.masks[at : at + width]
        for a in range(width):
            sum_g, sum_h = g[a] + mask[a] * row_g, h[a] + mask[a] * row_h
            g[a], h[a] = sum_g, sum_h
            bound[a] = max(bound[a], sum_g * sum_g / sum_h)
    for a in range(width):
        objective[a], total[a] = g[a] - base_g, h[a]
        g[a], h[a] = base_g, base_h
    for r in range(size - 1, negative - 1, -1):
        row_g, row_h, at = gradient[r], curvature[r], masks_at + r * width
        mask = stack.masks[at : at + width]
        for a in range(width):
            sum_g, sum_h = g[a] + mask[a] * row_g, h[a] + mask[a] * row_h
            g[a], h[a] = sum_g, sum_h
            bound[a] = max(bound[a], sum_g * sum_g / sum_h)
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
def _threshold(problem, search):
    """Bounds up to this value cannot lead to a better rule than those found (times approximation).

    What was found earlier in the visit order wins ties; what another thread found later in it does not,
    so that two threads return the rule that one thread returns.
    """
    values = search.values
    return max(values[FLOOR] * (1.0 + TIE), values[LATER] * (1.0 - TIE)) / problem.approximation


@_compiled(_NONE(_SEARCH))
def _look_at_the_other_thread(search):
    root, values = search.counters[ROOT], search.values
    for child in range(root, len(search.found)):
        values[FLOOR] = max(values[FLOOR], search.found[child])
    for child in range(root):
        values[LATER] = max(values[LATER], search.found[child])


@_compiled(_NONE(_STACK, _SEARCH, _INT, _FLOAT))
def _record(stack, search, level, objective):
    """Remember a better conjunction: the path to the node; the caller appends what it adds."""
    search.values[FLOOR] = objective
    if level > 0:
        search.found[search.counters[ROOT]] = objective
    for depth in range(1, level + 1):
        search.best[depth - 1] = stack.levels[depth, CHOSEN]
    search.counters[LENGTH] = level


@_compiled(_NONE(_SEARCH, _INT))
def _append(search, proposition):
    search.best[search.counters[LENGTH]] = proposition
    search.counters[LENGTH] += 1


@_compiled(_INT(_PROBLEM, _STACK, _SEARCH, _INT, _INT))
def _absorb_mandatory_rows(problem, stack, search, level, width):
    """Move the rows on which all available propositions hold from the free rows to the base.

    `width` is the number of mask columns; returns how many rows moved.
    """
    info, base = stack.levels[level], stack.base[level]
    rows_at, masks_at = info[ROWS_AT], info[MASKS_AT]
    size, positive, negative = info[SIZE], info[POSITIVE], info[NEGATIVE]
    kept, kept_positive, kept_before_negative = 0, 0, 0
    for r in range(size):
        at = masks_at + r * width
        mask = stack.masks[at : at + width]
        ones = 0
        for a in range(width):
            ones += mask[a]
        source, target = rows_at + r, rows_at + kept
        if ones == width:
            base[0] += stack.gradient[source]
            base[1] += stack.curvature[source]
            for f in range(stack.codes.shape[1]):
                stack.low[level, f] = min(stack.low[level, f], stack.codes[source, f])
                stack.high[level, f] = max(stack.high[level, f], stack.codes[source, f])
            continue
        if kept < r:
            stack.gradient[target] = stack.gradient[source]
            stack.curvature[target] = stack.curvature[source]
            for f in range(stack.codes.shape[1]):
                stack.codes[target, f] = stack.codes[source, f]
            to = masks_at + kept * width
            for a in range(width):
                stack.masks[to + a] = mask[a]
        kept += 1
        if r < positive:
            kept_positive = kept
        if r < negative:
            kept_before_negative = kept
    kept_before_negative = max(kept_before_negative, kept_positive)
    info[SIZE], info[POSITIVE], info[NEGATIVE] = kept, kept_positive, kept_before_negative
    return size - kept


@_compiled(_NONE(_STACK, _SEARCH, _INT, numba.int64[::1]))
def _select_columns(stack, search, level, columns):
    """Keep the given mask columns of a level, in the given order."""
    info, buffer = stack.levels[level], search.row_mask
    width, kept = info[WIDTH], len(columns)
    masks = stack.masks[info[MASKS_AT] :]
    for r in range(info[SIZE]):
        for k in range(kept):
            buffer[k] = masks[r * width + columns[k]]
        for k in range(kept):
            masks[r * kept + k] = buffer[k]
    info[WIDTH] = kept


@_compiled(_NONE(_PROBLEM, _STACK, _SEARCH, _INT))
def _expand(problem, stack, search, level):
    """Evaluate a node's children, prune them by bound, and rank the rest by ascending bound.

    When pruning thins the available propositions out, more rows are mandatory and all bounds are
    tighter: the evaluation is repeated until that no longer pays.
    """
    info, available, bounds = stack.levels[level], stack.available[level], stack.bounds[level]
    while True:
        width = info[WIDTH]
        _evaluate(problem, stack, search, level)
        objective = search.sums[3]
        for a in range(width):
            if objective[a] > search.values[FLOOR] * (1.0 + TIE):
                _record(stack, search, level, objective[a])
                _append(search, available[a])
        threshold = _threshold(problem, search)
        survivors = np.empty(width, np.int64)
        kept = 0
        for a in range(width):
            if bounds[a] > threshold:
                survivors[kept] = a
                kept += 1
            else:
                search.values[DROPPED] = max(search.values[DROPPED], bounds[a])
                search.counters[BOUND] += 1
        survivors = survivors[:kept]
        if kept <= LEAF_WIDTH or kept > 0.8 * width:
            break
        for k in range(kept):
            available[k], bounds[k] = available[survivors[k]], bounds[survivors[k]]
        _select_columns(stack, search, level, survivors)
        size = info[SIZE]
        if _absorb_mandatory_rows(problem, stack, search, level, kept) < 0.1 * size:
            survivors = np.arange(kept)
            break
        search.counters[REBOUNDS] += 1
    survivors = survivors[np.argsort(bounds[survivors], kind="mergesort")]
    _select_columns(stack, search, level, survivors)
    ranked, ranked_bounds = available[survivors], bounds[survivors]
    available[: len(survivors)], bounds[: len(survivors)] = ranked, ranked_bounds
    info[CHILDREN], info[NEXT], info[EXPANDED] = len(survivors), len(survivors), 1


@_compiled(_BOOL(_PROBLEM, _SEARCH, _INT))
def _implied(problem, search, proposition):
    """Whether the proposition holds on every row of the current child (codes within cell_range)."""
    column = problem.column[proposition]
    if problem.above[proposition]:
        return search.cell_range[0, column] >= problem.cell[proposition]
    return search.cell_range[1, column] <= problem.cell[proposition]


@_compiled(_BOOL(_PROBLEM, _STACK, _SEARCH, _INT, _INT, _INT))
def _redundant(problem, stack, search, level, child, size):
    """Whether the child's rows are also found elsewhere: a proposition ranked behind it holds on all of them.

    That proposition's own branch, visited later, contains this child's conjunctions with it added. Under
    a length limit the longer conjunction may not fit; then only a sibling with equal rows counts.
    """
    info = stack.levels[level]
    if problem.max_length >= len(problem.column):
        for e in range(info[EXCLUDED]):
            if _implied(problem, search, stack.excluded[level, e]):
                return True
        for sibling in range(child):
            if _implied(problem, search, stack.available[level, sibling]):
                return True
        return False
    for sibling in range(child):
        if _implied(problem, search, stack.available[level, sibling]):
            rows_of_sibling = 0
            for r in range(info[SIZE]):
                rows_of_sibling += stack.masks[info[MASKS_AT] + r * info[WIDTH] + sibling]
            if rows_of_sibling == size:
                return True
    return False


@_compiled(_NONE(_PROBLEM, _STACK, _SEARCH, _INT, _INT, _INT, numba.int64[::1]))
def _solve_leaf(problem, stack, search, level, child, size, columns):
    """Objectives of all conjunctions of the child with a subset of few propositions, in one pass.

    Rows are summed by the pattern of propositions they satisfy; sums over supersets give G and H of
    every subset.
    """
    info, table = stack.levels[level], search.table
    width, masks_at, rows_at, few = info[WIDTH], info[MASKS_AT], info[ROWS_AT], len(columns)
    patterns = 1 << few
    for pattern in range(patterns):
        table[0, pattern] = table[1, pattern] = 0.0
    for k in range(size):
        r = search.rows[k]
        pattern = 0
        for bit in range(few):
            pattern |= np.int64(stack.masks[masks_at + r * width + columns[bit]]) << bit
        table[0, pattern] += stack.gradient[rows_at + r]
        table[1, pattern] += stack.curvature[rows_at + r]
    table[0, patterns - 1] += stack.base[level, 0]
    table[1, patterns - 1] += stack.base[level, 1]
    for bit in range(few):
        for pattern in range(patterns):
            if not pattern >> bit & 1:
                table[0, pattern] += table[0, pattern | 1 << bit]
                table[1, pattern] += table[1, pattern | 1 << bit]
    room = problem.max_length - level - 1
    best, best_pattern = search.values[FLOOR] * (1.0 + TIE), 0
    for pattern in range(1, patterns):
        value = _objective(table[0, pattern], table[1, pattern], problem.ridge)
        if value > best:
            members = 0
            for bit in range(few):
                members += pattern >> bit & 1
            if members <= room:
                best, best_pattern = value, pattern
    if best_pattern:
        _record(stack, search, level, best)
        _append(search, stack.available[level, child])
        for bit in range(few):
            if best_pattern >> bit & 1:
                _append(search, stack.available[level, columns[bit]])
    search.counters[LEAVES] += 1
    search.counters[EVALUATIONS] += patterns - 1
    search.counters[WORK] += size * few + 2 * patterns


@_compiled(_FLOAT(_PROBLEM, _STACK, _INT))
def _node_bound(problem, stack, level):
    """The mandatory-rows bound of one node."""
    info = stack.levels[level]
    g, h = stack.base[level, 0], problem.ridge + stack.base[level, 1]
    bound = g * g / h
    for r in range(info[ROWS_AT], info[ROWS_AT] + info[POSITIVE]):
        g += stack.gradient[r]
        h += stack.curvature[r]
        bound = max(bound, g * g / h)
    g, h = stack.base[level, 0], problem.ridge + stack.base[level, 1]
    for r in range(info[ROWS_AT] + info[SIZE] - 1, info[ROWS_AT] + info[NEGATIVE] - 1, -1):
        g += stack.gradient[r]
        h += stack.curvature[r]
        bound = max(bound, g * g / h)
    return bound


@_compiled(_BOOL(_PROBLEM, _STACK, _SEARCH, _INT, _INT))
def _descend(problem, stack, search, level, child):
    """Build the node of a child one level down; False if it was solved or pruned on the way."""
    info, available = stack.levels[level], stack.available[level]
    width, rows_at, masks_at = info[WIDTH], info[ROWS_AT], info[MASKS_AT]
    low, high = search.cell_range[0], search.cell_range[1]
    for f in range(len(low)):
        low[f], high[f] = stack.low[level, f], stack.high[level, f]
    size, positive, negative = 0, 0, 0
    for r in range(info[SIZE]):
        if stack.masks[masks_at + r * width + child]:
            search.rows[size] = r
            size += 1
            codes = stack.codes[rows_at + r]
            for f in range(len(low)):
                low[f] = min(low[f], codes[f])
                high[f] = max(high[f], codes[f])
            if r < info[POSITIVE]:
                positive = size
            if r < info[NEGATIVE]:
                negative = size
    negative = max(negative, positive)
    search.counters[WORK] += info[SIZE] + 2 * size
    if _redundant(problem, stack, search, level, child, size):
        search.counters[REDUNDANT] += 1
        return False

    columns = np.empty(width - child, np.int64)
    few = 0
    for later in range(child + 1, info[CHILDREN]):
        if _implied(problem, search, available[later]):
            search.counters[IMPLIED] += 1
        else:
            columns[few] = later
            few += 1
    columns = columns[:few]
    if few == 0:
        return False
    if few <= LEAF_WIDTH:
        _solve_leaf(problem, stack, search, level, child, size, columns)
        return False

    below = stack.levels[level + 1]
    below[ROWS_AT], below[MASKS_AT] = rows_at + info[SIZE], masks_at + info[SIZE] * width
    below[SIZE], below[POSITIVE], below[NEGATIVE] = size, positive, negative
    below[WIDTH], below[CHOSEN], below[EXPANDED] = few, available[child], 0
    stack.base[level + 1, 0], stack.base[level + 1, 1] = stack.base[level, 0], stack.base[level, 1]
    for f in range(len(low)):
        stack.low[level + 1, f], stack.high[level + 1, f] = stack.low[level, f], stack.high[level, f]
    for k in range(size):
        source, target = rows_at + search.rows[k], below[ROWS_AT] + k
        stack.gradient[target], stack.curvature[target] = stack.gradient[source], stack.curvature[source]
        for f in range(len(low)):
            stack.codes[target, f] = stack.codes[source, f]
        from_mask, to_mask = masks_at + search.rows[k] * width, below[MASKS_AT] + k * few
        for a in range(few):
            stack.masks[to_mask + a] = stack.masks[from_mask + columns[a]]
    _absorb_mandatory_rows(problem, stack, search, level + 1, few)
    bound = _node_bound(problem, stack, level + 1)
    if bound <= _threshold(problem, search):
        search.values[DROPPED] = max(search.values[DROPPED], bound)
        search.counters[MANDATORY] += 1
        return False

    for a in range(few):
        stack.available[level + 1, a] = available[columns[a]]
    inherited = info[EXCLUDED]
    for e in range(inherited):
        stack.excluded[level + 1, e] = stack.excluded[level, e]
    for sibling in range(child):
        stack.excluded[level + 1, inherited + sibling] = available[sibling]
    below[EXCLUDED] = inherited + child
    return True


@_compiled(_INT(_PROBLEM, _STACK, _SEARCH, _INT, _INT, _BOOL))
def advance(problem, stack, search, stop, budget, shared):
    """Go on with the search until the root's children from `stop` on are done, or the budget is spent.

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
            if counters[WORK] > until:
                return PAUSED
        child = info[NEXT] - 1
        if level == 0 and child < stop:
            return DONE
        prune = False
        if child >= 0 and stack.bounds[level, child] <= _threshold(problem, search):
            search.values[DROPPED] = max(search.values[DROPPED], stack.bounds[level, child])
            counters[BOUND] += child + 1
            prune = True
        if child < 0 or prune or level + 2 > problem.max_length:
            if level == 0:
                info[NEXT] = stop
                return DONE
            level -= 1
            counters[LEVEL] = level
            continue
        rows_end = info[ROWS_AT] + 2 * info[SIZE]
        masks_end = info[MASKS_AT] + 2 * info[SIZE] * info[WIDTH]
        if (
            level + 2 > len(stack.levels)
            or rows_end > len(stack.gradient)
            or masks_end > len(stack.masks)
        ):
            return FULL
        info[NEXT] = child
        if level == 0:
            counters[ROOT] = child
            if shared:
                search.values[LATER] = 0.0
                _look_at_the_other_thread(search)
        if child < info[CHILDREN] - 1 and _descend(problem, stack, search, level, child):
            level += 1
            counters[LEVEL] = level


@_compiled(_FLOAT(_PROBLEM, _STACK, _SEARCH, _INT))
def open_bound(problem, stack, search, top):
    """The largest bound among the children from level `top` down that have not been visited; 0 for none."""
    bound = 0.0
    for level in range(top, min(search.counters[LEVEL] + 1, problem.max_length)):
        info = stack.levels[level]
        if info[EXPANDED]:
            if info[NEXT] > 0 and level + 2 <= problem.max_length:
                bound = max(bound, stack.bounds[level, info[NEXT] - 1])
        elif level > 0:
            parent = stack.levels[level - 1]
            bound = max(bound, stack.bounds[level - 1, parent[NEXT]])
        else:
            bound = np.inf
    return bound


@_compiled(_NONE(numba.uint8[:, ::1], _FLOAT[::1], _FLOAT[::1], _BOOL[::1], _FLOAT[:, ::1]))
def extension_sums(masks, gradient, curvature, selected, sums):
    """Add up g and h over the selected rows that satisfy each proposition: sums (2, propositions)."""
    sums[:] = 0.0
    sum_g, sum_h = sums[0], sums[1]
    for r in range(len(selected)):
        if selected[r]:
            mask, g, h = masks[r], gradient[r], curvature[r]
            for a in range(len(mask)):
                sum_g[a] += mask[a] * g
                sum_h[a] += mask[a] * h
