"""The state of a depth-first search: the stack of its nodes, what it knows and counts, and its
scratch space.

A node keeps its free rows, those on which some available proposition fails, in the order of the
problem; its mandatory rows, which belong to every descendant, are summed up in its base. A row has
its g, its h, one byte per available proposition (`masks`, for SIMD sums) and one bit per
proposition (`bits`): the conjunction of the bits of a set of rows is the set of all propositions
that hold on them. Further down, there are fewer rows and narrower masks, so a level is a compact
copy of a part of the one above; all levels lie on one stack. docs/mandatory-rows-bound.md states
and proves the bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.kernels.problems import Floats, Problem, Words, compiled
from jaxrules.solvers.rule_search.space import TIE

LEAF_WIDTH = 7  # with this many available propositions or fewer, all subsets are evaluated at once
LEVEL = np.dtype(
    [
        ("size", np.int64),  # free rows
        ("negative", np.int64),  # the number of them with g >= 0: where the others begin
        ("width", np.int64),  # available propositions, which are the columns of the masks
        ("children", np.int64),  # once expanded: the number of propositions that survive the bound
        ("next", np.int64),  # the children from here on are done
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
"""The counts reported: nodes and leaves evaluated, what each rule has pruned, and
re-evaluations.
"""
COUNTERS = np.dtype(
    [
        *((name, np.int64) for name in COUNTS),
        ("evaluations", np.int64),
        ("work", np.int64),  # rows and propositions visited
        ("level", np.int64),  # of the current node
        ("root", np.int64),  # the root's child above the current node, or -1
    ]
)
KNOWN = np.dtype(
    [
        ("floor", np.float64),  # the worth of the best conjunction
        ("length", np.int64),  # and its number of propositions in Search.best
        ("later", np.float64),  # the greatest worth found by another thread, later in visit order
        ("dropped", np.float64),  # the greatest bound, as a worth, that was pruned
    ]
)


class Stack(NamedTuple):
    """The levels from the root to the current node, and their rows.

    Attributes:
        levels: of dtype LEVEL, (levels,).
        closure: the propositions that hold for all mandatory rows, (levels, words).
        behind: the propositions ranked behind the current child, here or above, (levels, words).
        available: the meaning of the mask columns, (levels, propositions).
        bounds: on the children's values, ascending once expanded, (levels, propositions).
        gradient, curvature: (row capacity,).
        bits: (row capacity, words).
        masks: (mask capacity,).
    """

    levels: NDArray[np.void]
    closure: Words
    behind: Words
    available: NDArray[np.int32]
    bounds: Floats
    gradient: Floats
    curvature: Floats
    bits: Words
    masks: NDArray[np.uint8]


class Search(NamedTuple):
    """What a search knows and counts, and its scratch space.

    Attributes:
        counters, known: of dtypes COUNTERS and KNOWN, (1,).
        best: the best conjunction, (propositions,).
        found: the greatest worth below each child of the root, (propositions,); shared by threads.
        sum_g, sum_h: of the available propositions, (propositions,).
        part_h: sums of h over the rows with g >= 0, (propositions,).
        value: as of `Problem`, (propositions,).
        rows: (rows,): unsigned, because such an index needs no check for wrapping around.
        columns: of the masks, (propositions,); unsigned likewise.
        row_mask: (propositions,).
        closure: the propositions that hold for all rows of a child, (words,).
        needed: the available propositions of a child, (words,).
        row_bits: (words,).
        slots: a hash table, at least twice the rows, a power of two.
        leaf_g, leaf_h: sums by the pattern of the propositions that hold, (2**LEAF_WIDTH,).
        keys: to sort by, (rows,).
        chosen: rows as of `Problem.members`, (words of rows,).
        term_sums: (sums,).
        gram: (2, sums, sums).
    """

    counters: NDArray[np.void]
    known: NDArray[np.void]
    best: NDArray[np.int32]
    found: Floats
    sum_g: Floats
    sum_h: Floats
    part_h: Floats
    value: Floats
    rows: Words
    columns: Words
    row_mask: NDArray[np.uint8]
    closure: Words
    needed: Words
    row_bits: Words
    slots: NDArray[np.int32]
    leaf_g: Floats
    leaf_h: Floats
    keys: Floats
    chosen: Words
    term_sums: Floats
    gram: Floats


@compiled
def has(words: Words, proposition: int) -> bool:
    """Whether a set of propositions, as bits, contains one."""
    return (words[proposition >> 6] >> np.uint64(proposition & 63)) & np.uint64(1) != 0


@compiled
def insert(words: Words, proposition: int) -> None:
    words[proposition >> 6] |= np.uint64(1) << np.uint64(proposition & 63)


@compiled
def remove(words: Words, proposition: int) -> None:
    words[proposition >> 6] &= ~(np.uint64(1) << np.uint64(proposition & 63))


@compiled
def as_value(problem: Problem, worth: float, length: int) -> float:
    """The value at which a conjunction of this length has this worth."""
    return worth * problem.divisor[length] + problem.price[length]


@compiled
def as_worth(problem: Problem, value: float, length: int) -> float:
    """The worth of a conjunction of this value and length."""
    return (value - problem.price[length]) / problem.divisor[length]


@compiled
def threshold(problem: Problem, search: Search) -> float:
    """A bound of at most this worth cannot lead to a rule that improves on those found by more than
    the approximation allows.

    A rule found earlier in the visit order wins ties; one that another thread found later in it
    does not, so that two threads return the rule that one thread returns.
    """
    known = search.known[0]
    return max(known.floor * (1.0 + TIE), known.later * (1.0 - TIE)) / problem.approximation


@compiled
def hear_other_thread(search: Search) -> None:
    """Read what was found below the other children of the root."""
    # Children of the root are visited from the last to the first: one thread would have found what
    # is below `root` later, the rest earlier.
    root, known = search.counters[0].root, search.known[0]
    for child in range(root, len(search.found)):
        known.floor = max(known.floor, search.found[child])
    for child in range(root):
        known.later = max(known.later, search.found[child])


@compiled
def record(stack: Stack, search: Search, level: int, worth: float) -> None:
    """Remember a better conjunction: the path to the node; the caller appends the rest."""
    search.known[0].floor = worth
    # While the root is expanded, no child of it is under way (-1), and single propositions are
    # known to both threads.
    if search.counters[0].root >= 0:
        search.found[search.counters[0].root] = worth
    for depth in range(1, level + 1):
        search.best[depth - 1] = stack.levels[depth].chosen
    search.known[0].length = level


@compiled
def append(search: Search, proposition: int) -> None:
    search.best[search.known[0].length] = proposition
    search.known[0].length += 1


@compiled
def drop(problem: Problem, search: Search, bound: float, length: int) -> None:
    """Prune conjunctions of at least this length; their bound enters the certificate."""
    search.known[0].dropped = max(search.known[0].dropped, as_worth(problem, bound, length))
