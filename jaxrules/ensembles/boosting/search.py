"""The search for the next rule: what it maximises, and which search finds the best one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.boosting.ensemble import BoostedEnsemble, repeated
from jaxrules.ensembles.boosting.objective import ObjectiveOfSign
from jaxrules.ensembles.boosting.options import BoostingOptions
from jaxrules.ensembles.boosting.task import BoostingTask
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.rule_search import (
    Found,
    LeftOut,
    Objective,
    SearchSpace,
    Side,
    best_of,
    search_beam,
    search_best_first,
    search_depth_first,
    search_pairs,
    search_triples,
    search_using,
)
from jaxrules.solvers.rule_search.interactions import strongest_interactions
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run

_FEWER_IN_TRIAL = 3
"""A trial for the ridge examines one in so many of the pairs of columns."""


def next_rule(
    state: BoostedEnsemble,
    task: BoostingTask,
    objectives: ObjectiveOfSign,
    must: list[NDArray[np.bool_]],
    stage: Run,
) -> Found:
    """The next rule. If it must use one of some columns, `must` flags the propositions on each."""
    options = task.options
    parts, longest = [], options.longest(state.n_searched)
    for place, side in enumerate(state.sides):
        run = (
            # Each side gets an equal share of the time that is left, the last one all of it.
            stage if place == len(state.sides) - 1 else stage.child(1 / (len(state.sides) - place))
        )
        objective = objectives(side.sign)
        exact = options.search == "optimal"
        if not must:
            pairing = _pairing(state, task, place, objective, run.stopped)
            find = task.find if pairing is None else partial(task.find, pairing=pairing)
            found = find(side.space, objective, options, longest, len(state.sides), run.stopped)
            if options.objective == "corrective_decrease" and exact:
                found = _of_other_rows(found, state, side, objective, options, run.stopped, pairing)
            parts.append(side.whole(found))
            continue
        # Rules that use one of the wanted propositions: for each of these, a search within its
        # rows, which leaves one proposition fewer to choose. The searches share the evaluations.
        wanted = np.flatnonzero(np.stack(must)[:, side.propositions].any(axis=0)).tolist()
        search = partial(
            task.find, options=options, longest=None if longest is None else longest - 1,
            share=len(state.sides) * len(wanted), stopped=run.stopped,
        )  # fmt: skip
        using = search_using(
            side.space, objective, wanted, search, prunes=exact,
            approximation=options.approximation if exact else 1.0, stopped=run.stopped,
        )  # fmt: skip
        if using is not None:
            parts.append(side.whole(using))
    return best_of(parts)


class Pairing(NamedTuple):
    """Roughly the most pairs of columns to examine, None for all, and some that are among them."""

    most: int | None
    likely: Sequence[tuple[int, int]] = ()


def _pairing(
    state: BoostedEnsemble,
    task: BoostingTask,
    place: int,
    objective: Objective,
    stopped: Callable[[], bool],
) -> Pairing | None:
    """Which pairs of columns a search examines that cannot examine all; half of them for their
    interactions, as the ensemble began.
    """
    space = state.sides[place].space
    most, name = task.options.pairs(space.activations.n_patterns), task.options.objective
    second_order = name in ("corrective_decrease", "second_order")
    if most is None or not second_order or not task.leaves_out_pairs(space):
        return None
    if place not in task.interactions:
        terms, outputs = objective.one_row(space), len(state.intercept)
        g, h = terms.reshape(outputs, -1, terms.shape[1]).transpose(1, 0, 2)[:2]
        task.interactions[place] = strongest_interactions(
            space.partitions or [], g, h, most // 2, stopped
        )
    if task.trial:
        most //= _FEWER_IN_TRIAL
    return Pairing(most, task.interactions[place][: most // 2])


def _of_other_rows(
    found: Found,
    state: BoostedEnsemble,
    side: Side,
    objective: Objective,
    options: BoostingOptions,
    stopped: Callable[[], bool],
    pairing: Pairing | None,
) -> Found:
    """The best rule that repeats none, if `found` holds for the same rows as an earlier rule, or
    for exactly the other rows: under a ridge, a second weight for them gains something but tells a
    reader nothing. If rules may have more than three propositions, the best pair.
    """

    def repeats(places: Sequence[int]) -> bool:
        chosen = side.propositions[list(places)].tolist()
        return repeated(state.candidates.selected(chosen), state.extents)

    space, length = side.space, side.space.longest(options.longest(state.n_searched))
    if space.partitions is None or not found.propositions or not repeats(found.propositions):
        return found
    limit = options.triples(space, objective, len(state.sides))
    other = _by_histograms(
        space, objective, options, length if length <= 3 else 2, limit, stopped, pairing, repeats
    )
    if length <= 3:
        return other
    # Pairs prove nothing about longer rules, but the bound of the first search holds for all rules,
    # and so for those that repeat none.
    return replace(other, bound=found.bound, status=Status.worst((Status.CONVERGED, found.status)))


def best_rule(
    space: SearchSpace,
    objective: Objective,
    options: BoostingOptions,
    longest: int | None,
    share: int,
    stopped: Callable[[], bool],
    pairing: Pairing | None = None,
) -> Found:
    """The best conjunction of at most `longest` propositions, within 1 / share of the
    evaluations.
    """
    if options.search in ("greedy", "beam"):
        width = 1 if options.search == "greedy" else 10
        return search_beam(space, objective, width=width, max_length=longest, stopped=stopped)
    length = space.longest(longest)
    # Pairs are compared exhaustively and need no limit. One that the user gives is for the branch
    # and bound below.
    if length <= 2 and options.max_evaluations in ("auto", None) and space.partitions is not None:
        return _by_histograms(space, objective, options, length, None, stopped, pairing)
    if length == 3 and options.by_products(space, objective):
        limit = options.triples(space, objective, share)
        return _by_histograms(space, objective, options, length, limit, stopped)
    if length == 3 and options.engine == "jax" and options.on_device(space, objective):
        return _by_histograms(space, objective, options, length, None, stopped)
    # The orthogonal objective has no compiled class, which depth-first search needs.
    exact = search_best_first if options.objective == "orthogonal" else search_depth_first
    return exact(
        space, objective, max_length=longest, approximation=options.approximation,
        max_evaluations=options.evaluations(space.activations.n_patterns, share), stopped=stopped,
    )  # fmt: skip


def _by_histograms(
    space: SearchSpace,
    objective: Objective,
    options: BoostingOptions,
    length: int,
    limit: int | None,
    stopped: Callable[[], bool],
    pairing: Pairing | None = None,
    left_out: LeftOut | None = None,
) -> Found:
    """The best of all conjunctions of at most two propositions, or of three within a limit on
    evaluations, by histograms of pairs of columns and products of matrices.
    """
    on_device = options.on_device(space, objective)
    if length == 3:
        return search_triples(
            space, objective, max_evaluations=limit, left_out=left_out, on_device=on_device,
            stopped=stopped,
        )  # fmt: skip
    most, likely = pairing or Pairing(options.pairs(space.activations.n_patterns))
    return search_pairs(
        space, objective, max_length=length, max_pairs=most, likely=likely, left_out=left_out,
        on_device=on_device, stopped=stopped,
    )  # fmt: skip


@one_blas_thread()
def joint_rule(
    space: SearchSpace,
    objective: Objective,
    options: BoostingOptions,
    longest: int | None,
    share: int,
    stopped: Callable[[], bool],
    pairing: Pairing | None = None,
) -> Found:
    """The best conjunction for several classes together, in `best_rule`'s place.

    Rules of three conditions come from products for all triples, longer ones from best-first search
    with the bounds of the classes; at its limit it returns the better of its best rule and the best
    pair.
    """
    length, histograms = space.longest(longest), space.partitions is not None
    pairs = length <= 2 and histograms and options.max_evaluations in ("auto", None)
    if options.search != "optimal" or pairs:
        return best_rule(space, objective, options, longest, share, stopped, pairing)
    terms = objective.one_row(space)
    if length == 3 and histograms:  # an evaluation reads sums, no rows
        limit = options.evaluations(len(terms), share)
        if options.by_products(space, objective):
            limit = options.triples(space, objective, share)
        return _by_histograms(space, objective, options, length, limit, stopped)
    # An evaluation reads the terms of all classes, which count as so many rows.
    limit = options.evaluations(terms.size, share)
    found = search_best_first(
        space, objective, max_length=longest, approximation=options.approximation,
        max_evaluations=limit, stopped=stopped,
    )  # fmt: skip
    if found.status is Status.OPTIMAL or not histograms:
        return found
    # At its limit, a search by loose bounds may have a worse rule than the best pair, which takes
    # little time. The better of the two is returned, with a bound on both.
    pair = _by_histograms(space, objective, options, min(length, 2), None, stopped)
    return best_of([found, pair])
