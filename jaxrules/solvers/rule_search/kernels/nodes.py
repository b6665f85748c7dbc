"""Rows and masks of the nodes of the depth-first search: selected, moved down, merged, sorted."""

from __future__ import annotations

import numpy as np

from jaxrules.solvers.rule_search.kernels.bounds import choose_rows, least_share
from jaxrules.solvers.rule_search.kernels.problems import Problem, compiled, order_of
from jaxrules.solvers.rule_search.kernels.state import Search, Stack, has, insert


@compiled
def select_columns(stack: Stack, search: Search, level: int, kept: int) -> None:
    """Keep the first `kept` mask columns named in `Search.columns`, in that order."""
    node, buffer, columns = stack.levels[level], search.row_mask, search.columns
    width = node.width
    available, bounds = stack.available[level], stack.bounds[level]
    at = node.masks_at
    # In place: with kept <= width, row r is written at or before the place where it was read and
    # never beyond, so no later row is lost. The row itself may overlap: it goes through a buffer.
    for r in range(node.size):
        wide = stack.masks[at + r * width : at + (r + 1) * width]
        narrow = stack.masks[at + r * kept : at + (r + 1) * kept]
        for k in range(kept):
            buffer[k] = wide[columns[k]]
        for k in range(kept):
            narrow[k] = buffer[k]
    # The sums are free between two evaluations, and serve as scratch for the permuted bounds and
    # propositions.
    for k in range(kept):
        search.sum_g[k], search.sum_h[k] = bounds[columns[k]], available[columns[k]]
    for k in range(kept):
        bounds[k], available[k] = search.sum_g[k], search.sum_h[k]
    node.width = kept


@compiled
def absorb_mandatory_rows(stack: Stack, search: Search, level: int) -> int:
    """Move the rows on which all available propositions hold into the base; returns their
    number.
    """
    node, closure = stack.levels[level], stack.closure[level]
    rows_at, masks_at, width = node.rows_at, node.masks_at, node.width
    size, negative = node.size, node.negative
    needed = search.needed
    needed[:] = 0
    for a in range(width):
        insert(needed, stack.available[level, a])
    kept, kept_negative = 0, 0
    # The rows that stay keep their order, so prefixes and suffixes (Theorem 3.1) stay such; only
    # the boundary between g >= 0 and g < 0 moves.
    for r in range(size):
        if r == negative:
            kept_negative = kept
        source, target = rows_at + r, rows_at + kept
        lacking = np.uint64(0)
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


@compiled
def select_rows(
    stack: Stack, search: Search, level: int, child: int, start: int, end: int, size: int
) -> int:
    """Append the rows from start to end that satisfy the child to `Search.rows`; returns the new
    size.
    """
    node, rows = stack.levels[level], search.rows
    width, at = node.width, node.masks_at + child
    column = stack.masks[at : at + node.size * width]
    for r in range(start, end):
        rows[size] = r
        size += column[r * width]
    return size


@compiled
def close(stack: Stack, search: Search, level: int, size: int) -> None:
    """Set `Search.closure` to the propositions that hold for all rows of the child, the mandatory
    ones and those in `Search.rows`.
    """
    # The mandatory rows of the node satisfy all its available propositions, hence the child: what
    # they have in common is where to start.
    bits = stack.bits[stack.levels[level].rows_at :]
    for w in range(len(search.closure)):
        common = stack.closure[level, w]
        for k in range(size):
            common &= bits[search.rows[k], w]
        search.closure[w] = common


@compiled
def list_available(stack: Stack, search: Search, level: int, child: int) -> int:
    """List the child's available propositions in `Search.columns` and `Search.needed`; returns
    their number.

    They are the siblings ranked higher, without those that hold for all of its rows and so change
    nothing.
    """
    available = stack.available[level]
    search.needed[:] = 0
    few = 0
    for later in range(child + 1, stack.levels[level].children):
        if has(search.closure, available[later]):
            search.counters[0].implied += 1
        else:
            search.columns[few] = later
            insert(search.needed, available[later])
            few += 1
    return few


@compiled
def move_rows_down(stack: Stack, search: Search, level: int, size: int, negative: int) -> None:
    """Of the rows in `Search.rows`, move the mandatory ones into the base below, and the free ones
    one level down.
    """
    node, below, rows = stack.levels[level], stack.levels[level + 1], search.rows
    needed, at = search.needed, node.rows_at
    gradient, curvature, bits = stack.gradient[at:], stack.curvature[at:], stack.bits[at:]
    at += node.size
    gradient_below, curvature_below, bits_below = (
        stack.gradient[at:],
        stack.curvature[at:],
        stack.bits[at:],
    )
    base_g, base_h, mandatory = node.base_g, node.base_h, stack.closure[level + 1]
    for w in range(len(mandatory)):
        mandatory[w] = stack.closure[level, w]
    # A row is mandatory, in U of docs/mandatory-rows-bound.md, if it lacks none of the propositions
    # that the child may still add. Those of the node are mandatory below too: the child has fewer
    # to add.
    kept, kept_negative = 0, 0
    for k in range(size):
        if k == negative:
            kept_negative = kept
        row = rows[k]
        lacking = np.uint64(0)
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
    below.size, below.rows_at = kept, at
    below.negative = kept if negative == size else kept_negative
    below.base_g, below.base_h = base_g, base_h


@compiled
def merge_rows(stack: Stack, search: Search, level: int) -> int:
    """Merge rows that no available proposition (`Search.needed`) distinguishes; returns the
    remaining number of rows.

    Every descendant has all of the merged rows or none. There are fewer rows to sum, and the bound
    is tighter, because a prefix cannot split them. The caller sorts the rows.
    """
    node, needed, slots, rows = stack.levels[level], search.needed, search.slots, search.rows
    at, size = node.rows_at, node.size
    gradient, curvature, bits = stack.gradient[at:], stack.curvature[at:], stack.bits[at:]
    # At most half of the slots are ever taken, so that a search for a free one is short and ends.
    # Multiplication by 2^64 over the golden ratio spreads the bits upwards, and the shift brings
    # them back to the low ones, which choose the slot.
    buckets = 8
    while buckets < 2 * size:
        buckets *= 2
    for bucket in range(buckets):
        slots[bucket] = -1
    last = np.uint64(buckets - 1)
    groups = 0
    for r in range(size):
        key = np.uint64(0)
        for w in range(len(needed)):
            key = (key ^ (bits[r, w] & needed[w])) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        slot = key & last
        while True:
            group = slots[slot]
            # In place: groups <= r, so the row that is overwritten has been merged already.
            if group < 0:
                slots[slot] = groups
                gradient[groups], curvature[groups] = gradient[r], curvature[r]
                rows[groups] = rows[r]
                for w in range(len(needed)):
                    bits[groups, w] = bits[r, w]
                groups += 1
                break
            differ = np.uint64(0)
            for w in range(len(needed)):
                differ |= (bits[group, w] ^ bits[r, w]) & needed[w]
            if differ == 0:
                # Any of the rows, with its masks, stands for all: they differ only in propositions
                # that no descendant uses. The bits in common are kept, for the closures of
                # descendants.
                gradient[group] += gradient[r]
                curvature[group] += curvature[r]
                for w in range(len(needed)):
                    bits[group, w] &= bits[r, w]
                break
            slot = (slot + np.uint64(1)) & last
    node.size = groups
    return groups


@compiled
def sort_rows(problem: Problem, stack: Stack, search: Search, level: int) -> None:
    """Sort the rows of a level (g, h, bits and `Search.rows`) into the problem's order, in place.

    Shell's method sorts keys and row numbers; then every cycle of the permutation is moved once.
    """
    node, rows, keys = stack.levels[level], search.rows, search.keys
    order, spare = search.slots, search.row_bits
    at, size = node.rows_at, node.size
    gradient, curvature, bits = stack.gradient[at:], stack.curvature[at:], stack.bits[at:]
    for r in range(size):
        keys[r], order[r] = order_of(problem, gradient[r], curvature[r]), r
    # Kernels allocate no memory (`compiled`), so that a sort of NumPy is not at hand. Both scratch
    # arrays are free: the hash table of `merge_rows` has served.
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
    # Keys have the sign of g, so the rows with g < 0 are last; merging has changed the sums, so
    # that they must be counted again.
    negative = size
    while negative > 0 and gradient[negative - 1] < 0:
        negative -= 1
    node.negative = negative


@compiled
def scale_curvature(problem: Problem, stack: Stack, search: Search, level: int, child: int) -> None:
    """Multiply the curvature of the level below by the increase of its share, 1 - rho (see
    `least_share`): fewer rows have a smaller rho.
    """
    below = stack.levels[level + 1]
    choose_rows(problem, stack, search, level, stack.available[level, child], 0)
    # A share that rounding made smaller than the parent's would only loosen the bound; the parent's
    # is valid here, too. The ridge, part of the base, is no curvature of rows and is not scaled.
    ratio = max(1.0, least_share(problem, search) / below.share)
    below.share *= ratio
    below.base_h = problem.ridge + (below.base_h - problem.ridge) * ratio
    for r in range(below.rows_at, below.rows_at + below.size):
        stack.curvature[r] *= ratio


@compiled
def copy_propositions_down(stack: Stack, search: Search, level: int) -> None:
    """Give the level below its available propositions, `Search.columns`, with their masks on its
    rows, `Search.rows`.
    """
    node, below, columns = stack.levels[level], stack.levels[level + 1], search.columns
    width, few = node.width, below.width
    for w in range(len(search.needed)):
        # Children are visited from the highest rank down and removed as they are: what is left is
        # ranked lower than this child, or was behind its parent.
        stack.behind[level + 1, w] = stack.behind[level, w]
    for a in range(few):
        stack.available[level + 1, a] = stack.available[level, columns[a]]
    for k in range(below.size):
        start, end = node.masks_at + np.int64(search.rows[k]) * width, below.masks_at + k * few
        # Rows were numbered in the node before they were merged and sorted; `rows` still has these
        # numbers, so one pass copies the masks in the final order.
        mask, mask_below = stack.masks[start : start + width], stack.masks[end : end + few]
        for a in range(few):
            mask_below[a] = mask[columns[a]]
