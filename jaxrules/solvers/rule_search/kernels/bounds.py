"""Values and bounds of the nodes of the depth-first search.

The mandatory-rows bound (docs/mandatory-rows-bound.md): no descendant of a node is worth more than
its mandatory rows with a prefix, or a suffix, of its free rows in the problem's order.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic

from jaxrules.solvers.rule_search.kernels.problems import Problem, compiled, is_curved, value_of
from jaxrules.solvers.rule_search.kernels.state import Search, Stack, has
from jaxrules.solvers.rule_search.space import IN_SPAN, TIE


def _maximum(typing: Any, x: Any, y: Any) -> Any:
    """max(x, y) of two floats as one instruction; numba's own becomes slow masked stores in SIMD
    loops.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[0].type
        signature = ir.FunctionType(number, [number, number])
        return builder.call(
            builder.module.declare_intrinsic("llvm.maxnum", [number], signature), arguments
        )

    return numba.float64(x, y), generate


_larger: Any = intrinsic(_maximum)


@compiled
def _add_rows(
    problem: Problem, stack: Stack, search: Search, level: int, start: int, end: int, step: int
) -> None:
    """Add rows one by one to `sum_g` and `sum_h` of every available proposition, and raise its
    bound to the greatest value of any prefix.

    Rows are the outer loop, so that the inner one over propositions is SIMD code.
    """
    node = stack.levels[level]
    width, rows_at, masks_at = node.width, node.rows_at, node.masks_at
    g, h, bound = search.sum_g, search.sum_h, stack.bounds[level]
    base_g, base_h = node.base_g, node.base_h
    for a in range(width):
        g[a], h[a] = base_g, base_h
    for r in range(start, end, step):
        row_g, row_h = stack.gradient[rows_at + r], stack.curvature[rows_at + r]
        at = masks_at + r * width
        mask = stack.masks[at : at + width]
        # Whether a row counts is a factor, not a branch, which SIMD code could not take.
        for a in range(width):
            sum_g = g[a] + mask[a] * row_g
            g[a] = sum_g
            if is_curved(problem):
                sum_h = h[a] + mask[a] * row_h
                h[a] = sum_h
                bound[a] = _larger(bound[a], value_of(problem, sum_g, sum_h))
    # Without curvature the value grows with every row of one sign, so that the longest prefix alone
    # gives the bound.
    if not is_curved(problem):
        for a in range(width):
            bound[a] = _larger(bound[a], value_of(problem, g[a], h[a]))


@compiled
def evaluate_children(problem: Problem, stack: Stack, search: Search, level: int) -> None:
    """Set `value` and `Stack.bounds`, the mandatory-rows bound, of every available proposition.

    Prefixes run from the front over the rows with g >= 0, suffixes from the back over those with g
    < 0 (Theorem 3.1).
    """
    node = stack.levels[level]
    size, negative, width = node.size, node.negative, node.width
    g, h, part_h, value = search.sum_g, search.sum_h, search.part_h, search.value
    bound = stack.bounds[level]
    base_g, base_h = node.base_g, node.base_h
    for a in range(width):
        bound[a] = value_of(problem, base_g, base_h)
    _add_rows(problem, stack, search, level, 0, negative, 1)
    # The suffixes start from the base again, which then counts twice in the sum of both passes: it
    # is taken off the first one here.
    for a in range(width):
        value[a], part_h[a] = g[a] - base_g, h[a] - base_h
    _add_rows(problem, stack, search, level, size - 1, negative - 1, -1)
    for a in range(width):
        value[a] = value_of(problem, value[a] + g[a], part_h[a] + h[a])
    search.counters[0].nodes += 1
    search.counters[0].evaluations += width
    search.counters[0].work += width * (size + 8)


@compiled
def node_bound(problem: Problem, stack: Stack, level: int) -> float:
    """The mandatory-rows bound on the values of one node and its descendants: Theorem 3.1 with the
    sums over the mandatory rows added to those of every prefix and suffix of the free ones.
    """
    node = stack.levels[level]
    start = node.rows_at
    bound = value_of(problem, node.base_g, node.base_h)
    for begin, end, step in ((0, node.negative, 1), (node.size - 1, node.negative - 1, -1)):
        g, h = node.base_g, node.base_h
        for r in range(start + begin, start + end, step):
            g += stack.gradient[r]
            h += stack.curvature[r]
            bound = max(bound, value_of(problem, g, h))
    return bound


@compiled
def choose_rows(
    problem: Problem, stack: Stack, search: Search, level: int, child: int, pattern: int
) -> None:
    """Set `Search.chosen` to the rows of the node's child and of a subset of `Search.columns`."""
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


@compiled
def exact_value(problem: Problem, search: Search) -> float:
    """The value of the rows in `Search.chosen`, from the terms; 0 in the span of the rules
    found.
    """
    terms, sums = problem.terms, search.term_sums
    search.counters[0].evaluations += 1
    sums[:] = 0.0
    for r in range(terms.shape[1]):
        if has(search.chosen, r):
            for t in range(len(terms)):
                sums[t] += terms[t, r]
    # ridge + H - |sum of b|^2, the denominator of "Refitted weights" in
    # docs/mandatory-rows-bound.md.
    whole = problem.ridge + sums[1]
    rest = whole
    for t in range(2, len(terms)):
        rest -= sums[t] * sums[t]
    return value_of(problem, sums[0], rest) if rest > IN_SPAN * whole else 0.0


@compiled
def least_share(problem: Problem, search: Search) -> float:
    """The least share of its curvature that a conjunction inside `Search.chosen` keeps: 1 - rho,
    rho the greatest eigenvalue of S, the sum of b b' / h.

    Three squarings give S^8, whose Frobenius norm is at least rho^8; S is divided by its trace
    first, so that nothing overflows.
    """
    terms, gram = problem.terms, search.gram
    size = len(terms) - 2
    search.counters[0].evaluations += size  # about as much work
    search.counters[0].work += size * terms.size // 4
    gram[:] = 0.0
    for r in range(terms.shape[1]):
        h = terms[1, r]
        if h > 0.0 and has(search.chosen, r):
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
    # rho <= tr(S) |(S / tr S)^8|^(1/8) in the Frobenius norm; `norm` is the square of that norm,
    # hence the 16th root. The tie covers the rounding of the powers.
    norm = 0.0
    for i in range(size):
        for j in range(size):
            norm += gram[now, i, j] ** 2
    return max(IN_SPAN, 1.0 - trace * norm ** (1.0 / 16.0) * (1.0 + TIE))
