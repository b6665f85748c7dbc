"""The depth-first search itself: nodes are expanded and pruned, and small ones solved at once.

The search can pause after any node and continue later: that is how time limits work.
`jaxrules.solvers.rule_search.depth_first` prepares problems, runs these kernels in slices and reads
the results.
"""

from __future__ import annotations

import numpy as np

from jaxrules.solvers.rule_search.kernels.bounds import (
    choose_rows,
    evaluate_children,
    exact_value,
    least_share,
    node_bound,
)
from jaxrules.solvers.rule_search.kernels.nodes import (
    absorb_mandatory_rows,
    close,
    copy_propositions_down,
    list_available,
    merge_rows,
    move_rows_down,
    scale_curvature,
    select_columns,
    select_rows,
    sort_rows,
)
from jaxrules.solvers.rule_search.kernels.problems import (
    Problem,
    Words,
    compiled,
    exceeds,
    is_relaxed,
    per_problem,
    value_of,
)
from jaxrules.solvers.rule_search.kernels.state import (
    LEAF_WIDTH,
    Search,
    Stack,
    append,
    as_value,
    as_worth,
    drop,
    has,
    hear_other_thread,
    insert,
    record,
    remove,
    threshold,
)
from jaxrules.solvers.rule_search.space import TIE

DONE, PAUSED, FULL = 0, 1, 2  # what `advance` returns
_LENGTHS = np.array([pattern.bit_count() for pattern in range(1 << LEAF_WIDTH)])


@compiled
def _expand(problem: Problem, stack: Stack, search: Search, level: int) -> None:
    """Evaluate a node's children, prune them by bound, and rank the others by ascending bound.

    With fewer available propositions, more rows are mandatory and all bounds are tighter: if
    pruning leaves few enough, the evaluation is repeated until that no longer pays.
    """
    node, available, bounds = stack.levels[level], stack.available[level], stack.bounds[level]
    columns, value = search.columns, search.value
    while True:
        width = node.width
        evaluate_children(problem, stack, search, level)
        # Is a child itself, with level + 1 propositions, better than the incumbent?
        needed = as_value(problem, search.known[0].floor * (1.0 + TIE), level + 1)
        for a in range(width):
            if value[a] > needed and is_relaxed(problem):
                choose_rows(problem, stack, search, level, available[a], 0)
                value[a] = exact_value(problem, search)
            if value[a] > needed:
                record(stack, search, level, as_worth(problem, value[a], level + 1))
                append(search, available[a])
                needed = as_value(problem, search.known[0].floor * (1.0 + TIE), level + 1)
        # Could a descendant, with level + 2 propositions or more, be better?
        needed = as_value(problem, threshold(problem, search), level + 2)
        kept = 0
        for a in range(width):
            if bounds[a] > needed:
                columns[kept] = a
                kept += 1
            else:
                drop(problem, search, bounds[a], level + 2)
        search.counters[0].bound += width - kept
        # Another evaluation pays only if enough propositions are gone to make rows mandatory; and
        # the children of a narrow node are leaves, which need no bound.
        if kept <= LEAF_WIDTH or kept > 0.8 * width:
            break
        select_columns(stack, search, level, kept)
        size = node.size
        moved = absorb_mandatory_rows(stack, search, level)
        # The masks are compact now: column a is the a-th survivor.
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
    select_columns(stack, search, level, kept)
    for k in range(kept):
        insert(stack.behind[level], available[k])
    # `next` counts down: the child with the greatest bound, and the fewest siblings to add, is
    # first.
    node.children, node.next, node.expanded = kept, kept, 1


@compiled
def _redundant(
    problem: Problem, stack: Stack, level: int, child: int, size: int, closure: Words
) -> bool:
    """Whether another branch contains the child's conjunctions, because a proposition ranked behind
    it holds on all of its rows.

    The branch of that proposition, visited later, has these conjunctions with it added. If length
    is limited or penalised, the longer conjunction may be forbidden or worth less; then only a
    sibling that selects the same rows counts.
    """
    if problem.any_length:
        common = np.uint64(0)
        for w in range(len(closure)):
            common |= closure[w] & stack.behind[level, w]
        return common != 0
    node = stack.levels[level]
    # A sibling in the closure holds on all rows of the child. If it has no more rows than that,
    # both select the same ones. (Mandatory rows belong to both.)
    for sibling in range(child):
        if has(closure, stack.available[level, sibling]):
            rows_of_sibling = 0
            for r in range(node.size):
                rows_of_sibling += stack.masks[node.masks_at + r * node.width + sibling]
            if rows_of_sibling == size:
                return True
    return False


@compiled
def _sum_leaf(
    problem: Problem, stack: Stack, search: Search, level: int, child: int, size: int, few: int
) -> None:
    """Set `leaf_g` and `leaf_h` to G and H of the child with every subset of its few available
    propositions.

    One pass sums the rows by the pattern of propositions that they satisfy; then every pattern adds
    the sums of its supersets.
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
        pattern_of_row = np.uint64(0)
        for bit in range(few):
            pattern_of_row |= np.uint64(mask[columns[bit]]) << np.uint64(bit)
        g[pattern_of_row] += gradient[row]
        h[pattern_of_row] += curvature[row]
    # Mandatory rows satisfy all propositions.
    g[patterns - 1] += node.base_g
    if is_relaxed(problem):
        choose_rows(problem, stack, search, level, stack.available[level, child], 0)
        ratio = max(1.0, least_share(problem, search) / node.share)
        for pattern in range(patterns):
            h[pattern] *= ratio
        h[patterns - 1] += problem.ridge + (node.base_h - problem.ridge) * ratio
    else:
        h[patterns - 1] += node.base_h
    # Proposition by proposition: the rows that a subset selects satisfy exactly it or a superset.
    half = 1
    while half < patterns:
        for start in range(0, patterns, 2 * half):
            for pattern in range(start, start + half):
                g[pattern] += g[pattern + half]
                h[pattern] += h[pattern + half]
        half *= 2


@compiled
def _solve_leaf(
    problem: Problem, stack: Stack, search: Search, level: int, child: int, size: int, few: int
) -> None:
    """Find the best conjunction of the child with a subset of few propositions, `Search.columns`,
    on the rows in `Search.rows`.
    """
    _sum_leaf(problem, stack, search, level, child, size, few)
    g, h, patterns = search.leaf_g, search.leaf_h, 1 << few
    worth, best_pattern, better = search.known[0].floor * (1.0 + TIE), 0, 0
    needed = as_value(problem, worth, level + 2)  # or more, for a longer one
    # If nothing exceeds the least value needed, the second loop is spared; this one has no
    # branches. Price and divisor do not fall with the length, so the shortest length needs the
    # least.
    for pattern in range(1, patterns):
        better += exceeds(problem, g[pattern], h[pattern], needed)
    for pattern in range(1, patterns if better else 0):
        length = level + 1 + _LENGTHS[pattern]
        needed = as_value(problem, worth, length)
        if length <= problem.max_length and exceeds(problem, g[pattern], h[pattern], needed):
            value = value_of(problem, g[pattern], h[pattern])
            if is_relaxed(problem):
                choose_rows(problem, stack, search, level, stack.available[level, child], pattern)
                value = exact_value(problem, search)
                if not value > needed:
                    continue
            worth, best_pattern = as_worth(problem, value, length), pattern
    if best_pattern:
        record(stack, search, level, worth)
        append(search, stack.available[level, child])
        for bit in range(few):
            if best_pattern >> bit & 1:
                append(search, stack.available[level, search.columns[bit]])
    search.counters[0].leaves += 1
    search.counters[0].evaluations += patterns - 1
    search.counters[0].work += size * few + patterns


@compiled
def _descend(problem: Problem, stack: Stack, search: Search, level: int, child: int) -> bool:
    """Build the node of a child one level down; False if it was solved or pruned on the way."""
    node, below, counters = stack.levels[level], stack.levels[level + 1], search.counters[0]
    # The child is no longer behind itself or those ranked below it.
    remove(stack.behind[level], stack.available[level, child])
    # Its extent, its closure, and whether another branch has the same conjunctions.
    negative = select_rows(stack, search, level, child, 0, node.negative, 0)
    size = select_rows(stack, search, level, child, node.negative, node.size, negative)
    close(stack, search, level, size)
    counters.work += node.size + size
    if _redundant(problem, stack, level, child, size, search.closure):
        counters.redundant += 1
        return False
    few = list_available(stack, search, level, child)
    # The child alone was evaluated when the node was expanded.
    if few == 0:
        return False
    if few <= LEAF_WIDTH:
        _solve_leaf(problem, stack, search, level, child, size, few)
        return False

    # The node, its bound, and a tighter bound after rows with equal propositions are merged.
    move_rows_down(stack, search, level, size, negative)
    below.masks_at = node.masks_at + node.size * node.width
    below.width, below.chosen, below.expanded = few, stack.available[level, child], 0
    below.share = node.share
    if is_relaxed(problem):
        scale_curvature(problem, stack, search, level, child)
    bound = node_bound(problem, stack, level + 1)
    needed_value = as_value(problem, threshold(problem, search), level + 2)
    if bound > needed_value:
        kept = below.size
        if merge_rows(stack, search, level + 1) < kept:
            sort_rows(problem, stack, search, level + 1)
            bound = node_bound(problem, stack, level + 1)
    if bound <= needed_value:
        drop(problem, search, bound, level + 2)
        counters.mandatory_rows += 1
        return False
    copy_propositions_down(stack, search, level)
    return True


def _advance(
    problem: Problem,
    stack: Stack,
    search: Search,
    stop: int,
    budget: int,
    max_evaluations: int,
    shared: bool,
) -> int:
    """Continue the search until the root's children from `stop` on are done, or until it pauses:
    after `budget` visits of rows and propositions, or at `max_evaluations` in total.

    Returns DONE, PAUSED (call again), or FULL (give the stack more room, then call again).
    """
    counters = search.counters[0]
    until = counters.work + budget
    level = counters.level
    while True:
        node = stack.levels[level]
        if not node.expanded:
            if shared and counters.nodes & 31 == 0:
                hear_other_thread(search)
            _expand(problem, stack, search, level)
            if counters.work > until or counters.evaluations >= max_evaluations:
                return PAUSED
        child = node.next - 1
        if level == 0 and child < stop:
            return DONE
        finished = child < 0 or level + 2 > problem.max_length
        needed = as_value(problem, threshold(problem, search), level + 2)
        # Bounds ascend with the rank: if this child can be no better, nor can those below it, and
        # its bound covers theirs in the certificate.
        if not finished and stack.bounds[level, child] <= needed:
            drop(problem, search, stack.bounds[level, child], level + 2)
            counters.bound += child + 1
            finished = True
        if finished:
            if level == 0:
                node.next = stop
                return DONE
            level -= 1
            counters.level = level
            continue
        # A child has at most the rows and masks of its node, which it follows on the stack.
        rows_end = node.rows_at + 2 * node.size
        masks_end = node.masks_at + 2 * node.size * node.width
        if (
            level + 2 > len(stack.levels)
            or rows_end > len(stack.gradient)
            or masks_end > len(stack.masks)
        ):
            return FULL
        # Only now is the child taken: a call that returns FULL is repeated for the same child.
        node.next = child
        if level == 0:
            counters.root = child
            if shared:
                search.known[0].later = 0.0
                hear_other_thread(search)
        if _descend(problem, stack, search, level, child):
            level += 1
            counters.level = level


advance = per_problem(_advance)
