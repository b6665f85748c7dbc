"""The exact search over conjunctions of at most two propositions: all of them, by histograms.

Propositions on one column, or on a few columns of few values, tell the rows into some dozen cells,
and each is a set of cells: a `Partition`. For two partitions the sums of g, h, ... over the rows of
every pair of cells are one histogram, in time proportional to the rows, and the sums of every pair
of propositions are sums of its entries. So with d partitions a search takes rows x d^2 / 2 steps
per term, however many propositions there are: what branch and bound looks at pair by pair. Every
objective that knows its value can be searched, and what is found is proved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jaxrules.fits import Status
from jaxrules.solvers.rule_search.objectives import Floats, Objective
from jaxrules.solvers.rule_search.shortest import conclude
from jaxrules.solvers.rule_search.space import TIE, Found, Partition, SearchSpace, never


def search_pairs(
    space: SearchSpace,
    objective: Objective,
    *,
    max_length: int | None = 2,
    stopped: Callable[[], bool] = never,
) -> Found:
    """A best conjunction of at most two propositions, with a certificate; the empty
    conjunction is a candidate.

    Args:
        space: the propositions, with `SearchSpace.partitions`.
        objective: with one row of weights.
        max_length: 0, 1 or 2.
        stopped: asked every few milliseconds, once all single propositions are looked at; True ends
            the search with the best rule so far.
    """
    longest = space.longest(max_length)
    if longest > 2 or space.partitions is None:
        raise ValueError(
            "pairs of propositions by histograms need max_length of at most 2, and columns of few "
            "cells"
        )
    partitions, terms = space.partitions if longest else [], objective.one_row(space)
    best: tuple[int, ...] = ()
    worth, evaluations, status = objective.worth_of_nothing(terms), 1, Status.OPTIMAL

    def look(sums: Floats, length: int, first: Partition, second: Partition) -> None:
        """Take the best of these conjunctions of a proposition of each
        partition if it is better.
        """
        nonlocal best, worth, evaluations
        worths = np.ravel(objective.worth(objective.value(sums), length))
        evaluations += len(worths)
        most = float(worths.max(initial=-math.inf))
        if most > worth + TIE * abs(worth):
            place = int(np.argmax(worths >= most - TIE * abs(most)))
            chosen = (
                first.propositions[place // sums.shape[2]],
                second.propositions[place % sums.shape[2]],
            )
            best, worth = tuple(sorted(set(map(int, chosen[:length])))), most

    def histograms(cell: NDArray[np.intp], size: int) -> Floats:
        return np.stack([np.bincount(cell, row, size) for row in terms])

    of_cells = [histograms(part.cell, len(part.members)) for part in partitions]
    for part, sums in zip(partitions, of_cells, strict=True):
        look((sums @ part.members)[:, :, None], 1, part, part)
    of_two = (
        itertools.combinations_with_replacement(range(len(partitions)), 2) if longest > 1 else ()
    )
    for a, b in of_two:
        if stopped():
            status = Status.TIME_LIMIT
            break
        first, second = partitions[a], partitions[b]
        if a == b:
            left = first.members.T * of_cells[a][:, None]
        else:
            shape = len(first.members), len(second.members)
            joint = histograms(first.cell * shape[1] + second.cell, shape[0] * shape[1])
            left = first.members.T @ joint.reshape(len(terms), *shape)
        look(left @ second.members, 2, first, second)
    bound = worth
    if status is not Status.OPTIMAL:
        any_rows = objective.bounds(terms, np.ones((terms.shape[1], 1)))
        bound = max(worth, float(np.max(objective.worth(any_rows, 2))))
    found = conclude(space, objective, terms, best, status, evaluations, bound, {}, stopped)
    assert found.bound is not None
    return replace(found, bound=max(found.bound, found.objective * (1.0 + TIE)))
