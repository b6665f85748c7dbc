"""Searches for rules whose weight must have a given sign, and for rules that must use one of some
propositions.

If constraints tie the sign of a weight to the propositions of its rule, the best rule is the better
of two: the best with a positive weight, and the best with a negative weight, each found among the
propositions that allow it, with a one-sided objective. No rule is worth more than the greater of
the two bounds, which therefore bounds the better rule.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.objectives import GivenObjective, Objective
from jaxrules.solvers.rule_search.space import TIE, Found, SearchSpace, best_first, never
from jaxrules.tools.fits import Status


@dataclass(frozen=True, eq=False)
class Side:
    """The propositions that may be combined in one rule.

    Attributes:
        sign: the sign of the rule's weight, 1 or -1; 0 for any.
        propositions: their indices in the whole space.
        space: the space of these propositions.
    """

    sign: int
    propositions: NDArray[np.intp]
    space: SearchSpace

    def whole(self, found: Found) -> Found:
        """The result in terms of the whole space."""
        return replace(
            found, propositions=tuple(self.propositions[list(found.propositions)].tolist())
        )


def sides_of(space: SearchSpace, signs: NDArray[np.bool_]) -> tuple[Side, ...]:
    """One side if signs do not matter, else one per sign; propositions that allow no sign are on
    neither.

    Args:
        space: all propositions.
        signs: whether a rule that has the proposition may have a negative weight, and a positive
            one, (propositions, 2).
    """
    either = np.flatnonzero(signs.any(axis=1))
    # Those left allow a sign; if each allows both, one search with a two-sided objective serves.
    if (signs[either, 0] == signs[either, 1]).all():
        return (Side(0, either, space if len(either) == len(space) else space.take(either)),)
    by_sign = ((1, np.flatnonzero(signs[:, 1])), (-1, np.flatnonzero(signs[:, 0])))
    return tuple(Side(sign, on, space.take(on)) for sign, on in by_sign)


def best_of(parts: Sequence[Found]) -> Found:
    """The best result of several searches, with a bound that holds for all of them."""
    if len(parts) == 1:
        return parts[0]
    best = parts[best_first(np.array([found.objective for found in parts]))[0]]
    bounds = [found.bound for found in parts if found.bound is not None]
    counts: Counter[str] = Counter()
    for found in parts:
        counts.update(found.counts)
    return replace(
        best, bound=max(bounds) if len(bounds) == len(parts) else None,
        status=Status.worst(found.status for found in parts),
        evaluations=sum(found.evaluations for found in parts), counts=dict(counts),
    )  # fmt: skip


def search_using(
    space: SearchSpace,
    objective: Objective,
    wanted: Iterable[int],
    search: Callable[[SearchSpace, Objective], Found],
    *,
    prunes: bool,
    approximation: float = 1.0,
    stopped: Callable[[], bool] = never,
) -> Found | None:
    """The best conjunction with at least one of some propositions: one search for each of these,
    within its rows.

    Args:
        space: the propositions.
        objective: the objective of the whole conjunction.
        wanted: the propositions, at least one of which must be used.
        search: finds the rest of the conjunction, given a space and an objective.
        prunes: skip propositions whose bound is below the best worth, as an exact search may.
        approximation: as for `search_depth_first`.
        stopped: asked between the searches; at least one is made.

    Returns:
        The best result, None if there are no wanted propositions; its bound is the greatest of all
        searches and of the skipped propositions.
    """
    some = np.fromiter(wanted, np.intp)
    if not len(some):
        return None
    terms = objective.terms(space)
    masks = space.masks[:, some].astype(np.float64)
    worths = objective.worth(objective.value(terms[0] @ masks), 1)
    bounds = np.full(len(some), np.inf)
    if prunes:
        bounds = np.asarray(objective.worth(objective.bounds(terms[0], masks), 1), np.float64)
    parts: list[Found] = []
    best = -math.inf
    # Greatest bound first: the first proposition left out bounds all later ones, for which one
    # entry stands. Without pruning all bounds are infinite, and the worth decides.
    for place in np.lexsort((-worths, -bounds)).tolist():
        left_out = prunes and approximation * bounds[place] <= best * (1.0 + TIE)
        if parts and (left_out or stopped()):
            status = parts[0].status if left_out else Status.TIME_LIMIT
            parts.append(Found((), -math.inf, float(bounds[place]) if prunes else None, status, 0))
            break
        proposition, inside = int(some[place]), masks[:, place] > 0
        found = search(space.within(inside), GivenObjective.of(objective, terms, inside))
        propositions = tuple(sorted({proposition, *found.propositions}))
        parts.append(replace(found, propositions=propositions))
        best = max(best, found.objective)
    return best_of(parts)
