"""The shortest description of the rows that a search has found."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.objectives import Floats, Objective
from jaxrules.solvers.rule_search.space import Found, SearchSpace, never
from jaxrules.tools.bits import Words, pack, transposed, unpack
from jaxrules.tools.fits import Status

_MOST_STEPS = 20_000
"""The most steps of the search for a cover smaller than the greedy one."""
_SOME_WORDS = 4
"""The number of words of rows compared first; the next time, four times as many."""
_MANY_ROWS = 4096
"""Above this many rows, it saves time to reduce them to the hardest ones first."""


def conclude(
    space: SearchSpace,
    objective: Objective,
    terms: Floats,
    propositions: tuple[int, ...],
    status: Status,
    evaluations: int,
    bound: float | None = None,
    counts: Mapping[str, int] | None = None,
    stopped: Callable[[], bool] = never,
) -> Found:
    """The result of a search that ended with this conjunction: the shortest description of its
    rows, and its worth.

    If length is penalised and a shorter description has not been ruled out, the bound is at least
    the worth that the shortest possible one would have, and the result is not proved.
    """
    short, least = _shortest(space, space.selected_groups(propositions), stopped)
    # The empty conjunction may not serve where it is no rule; and a cover that time cut short may
    # be longer than the conjunction given.
    no_rule = not short and not objective.empty_is_rule
    if no_rule or len(propositions) < len(short):
        short = tuple(sorted(propositions))
        # 0 only promised the empty conjunction, which was not allowed.
        least = min(least, len(propositions)) or len(propositions)
    worth = worth_of(space, objective, terms, short)
    if least < len(short) and bound is not None:
        promise = worth_of(space, objective, terms, short, least)
        if promise > worth:
            bound = max(bound, promise)
            if status in (Status.OPTIMAL, Status.CONVERGED):
                status = Status.TIME_LIMIT if stopped() else Status.MAX_ITERATIONS
    return Found(short, worth, bound, status, int(evaluations), counts or {})


def worth_of(
    space: SearchSpace,
    objective: Objective,
    terms: Floats,
    propositions: tuple[int, ...],
    length: int | None = None,
) -> float:
    """The worth of a conjunction, summed in the order of the merged rows; of another length if one
    is given.
    """
    if not propositions:
        return objective.worth_of_nothing(terms)
    rows = space.selected_groups(propositions)
    length = len(propositions) if length is None else length
    return float(objective.worth(objective.value(terms[:, rows].sum(axis=1)), length))


def shortest_equivalent(
    space: SearchSpace, rows: np.ndarray, stopped: Callable[[], bool] = never
) -> tuple[int, ...]:
    """A shortest conjunction that selects exactly these merged rows.

    Only the tightest implied proposition per code column and side can be needed. Excluding the
    other rows with as few of them as possible is a set cover problem: greedy as in the paper, then
    every smaller size, branching on the row that the fewest propositions exclude.

    Args:
        space: the propositions.
        rows: bool (groups,); the rows of some conjunction.
        stopped: True ends the search with the shortest conjunction so far.

    Returns:
        Proposition indices in ascending order.
    """
    return _shortest(space, rows, stopped)[0]


def _shortest(
    space: SearchSpace, rows: np.ndarray, stopped: Callable[[], bool]
) -> tuple[tuple[int, ...], int]:
    """The shortest conjunction found, and a lower bound on the length of any."""
    if rows.all() or not len(space):
        return (), 0
    candidates = _tightest_implied(space, rows)
    # Set cover: every row outside must be excluded by one of the propositions chosen. Sets are
    # whole numbers, whose operations take a word at a time.
    outside = _as_integers(pack(~rows[None]))[0]
    excluded = [
        outside & ~selected for selected in _as_integers(space.activations.bits[candidates])
    ]
    cover = _greedy_cover(excluded, outside)
    least = min(len(cover), 2)  # if one is not enough, at least two
    if len(cover) > 2 and not stopped():
        steps = itertools.count(1)
        cut = False

        def over() -> bool:
            nonlocal cut
            step = next(steps)
            cut = cut or step > _MOST_STEPS or (step % 64 == 0 and stopped())
            return cut

        if len(rows) > _MANY_ROWS:
            hardest = _hardest(space.activations.bits[candidates], rows, over)
            excluded, outside = _as_integers(pack(hardest.T)), (1 << len(hardest)) - 1
        # No cover has fewer than `least` sets; the search for one of that size either finds the
        # shortest or, if it was complete, raises `least`.
        while least < len(cover) and not cut:
            smaller = _cover_of_size(excluded, outside, least, over)
            if smaller is not None:
                cover = smaller
            elif not cut:
                least += 1
    return tuple(sorted(candidates[k] for k in cover)), least


def _tightest_implied(space: SearchSpace, rows: np.ndarray) -> list[int]:
    """Of the propositions that hold for all these rows, the most restrictive one per code column
    and side.
    """
    tightest: dict[tuple[int, int], int] = {}
    for a in _implied(space.activations.bits, pack(rows[None])[0]):
        side, cell = (space.column.item(a), space.above.item(a)), space.cell.item(a)
        known = tightest.get(side)
        if known is None or (
            cell > space.cell.item(known) if side[1] else cell < space.cell.item(known)
        ):
            tightest[side] = a
    return list(tightest.values())


def _implied(bits: Words, rows: Words) -> list[int]:
    """The sets that contain all of these rows. A first few words of rows rule out most other
    sets.

    Args:
        bits: (sets, words).
        rows: (words,).
    """
    left, words = np.arange(len(bits)), np.flatnonzero(rows)
    start, count = 0, _SOME_WORDS
    while start < len(words):
        some = words[start : start + count]
        left = left[~np.any(rows[some] & ~bits[np.ix_(left, some)], axis=1)]
        start, count = start + count, 4 * count
    return left.tolist()


def _as_integers(bits: np.ndarray) -> list[int]:
    """Bit sets as integers."""
    return [int.from_bytes(words.astype("<u8").tobytes(), "little") for words in bits]


def _hardest(selected: Words, rows: NDArray[np.bool_], over: Callable[[], bool]) -> np.ndarray:
    """Of the rows that a conjunction excludes, those whose exclusion implies that of all others: a
    row is dropped if every proposition that excludes another row excludes it too.

    Args:
        selected: the rows of the propositions, (propositions, words).
        rows: the rows that the conjunction selects, (rows,).
        over: True ends the reduction early.

    Returns:
        bool (fewer rows, propositions): whether a proposition excludes a row; the rows that the
        fewest exclude come first.
    """
    # The first proposition is the highest bit: the order of numbers is that of rows of booleans.
    holds = transposed(selected[::-1], len(rows))[~rows]
    if holds.shape[1] == 1:
        left = np.unique(holds)[::-1, None]
    else:
        left = np.unique(holds[:, ::-1], axis=0)[::-1, ::-1]
    used = pack(np.ones((1, len(selected)), bool))
    left = ~left & used
    left = left[np.argsort(np.bitwise_count(left).sum(axis=1), kind="stable")]
    # Fewest excluding propositions first. If each of those of the first row excludes another row,
    # too, that row needs no attention: any cover of the first excludes it.
    kept = [left[:0]]
    while len(left) and not over():
        kept.append(left[:1])
        left = left[np.any(left[0] & ~left, axis=1)]
    return unpack(np.concatenate([*kept, left]), len(selected))[:, ::-1]


def _greedy_cover(sets: list[int], everything: int) -> list[int]:
    cover: list[int] = []
    while everything:
        best = max(range(len(sets)), key=lambda k: (sets[k] & everything).bit_count())
        cover.append(best)
        everything &= ~sets[best]
    return cover


def _cover_of_size(
    sets: list[int], left: int, size: int, over: Callable[[], bool]
) -> list[int] | None:
    """A cover of `left` by at most `size` of the sets; None if there is none or time ran out."""
    if not left:
        return []
    if size == 0 or over():
        return None
    counts = [(one & left).bit_count() for one in sets]
    # Even without overlap, the largest sets do not suffice.
    if sum(sorted(counts)[-size:]) < left.bit_count():
        return None
    # The lowest bit: some set must hold it, so that only those sets are tried. After `_hardest` it
    # is the row with the fewest of them.
    element = left & -left
    for k in sorted((k for k, one in enumerate(sets) if one & element), key=lambda k: -counts[k]):
        rest = _cover_of_size(sets, left & ~sets[k], size - 1, over)
        if rest is not None:
            return [k, *rest]
    return None
