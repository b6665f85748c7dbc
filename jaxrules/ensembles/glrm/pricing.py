"""The pricing problem: rules whose slope exceeds their penalty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.glrm.master import Master
from jaxrules.ensembles.glrm.options import GlrmPrices
from jaxrules.ensembles.glrm.problem import GlrmProblem, Rule
from jaxrules.solvers.linear.penalties import L1
from jaxrules.solvers.rule_search import (
    Found,
    GradientSum,
    NormOfSums,
    Objective,
    SearchSpace,
    SignedWeights,
    search_beams,
    search_best_first,
    search_depth_first,
)
from jaxrules.solvers.rule_search.space import never
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]


class Priced(NamedTuple):
    """The result of pricing: violating rules, worst first, and a bound on
    the whole problem if proved.
    """

    rules: list[Rule]
    bound: float | None = None


def price(problem: GlrmProblem, state: Master, run: Run) -> Priced:
    """Rules that violate their optimality condition: from the beam, else from the exact search."""
    options, score = problem.options, state.score()
    slopes = problem.outputs.slopes(score)
    searches = [
        side.whole(one)
        for side in problem.sides
        for one in _by_beam(
            side.space, slopes, problem.prices, sign=side.sign, width=options.beam_width,
            count=options.rules_per_round, max_length=options.max_length,
            tolerance=options.tolerance, stopped=run.stopped,
        )
    ]  # fmt: skip
    # A candidate may exceed its price by what the master problem leaves in its tolerance: adding it
    # again would change nothing. The exact search is slow and runs only if the beam finds no more.
    new = [rule for rule in _worst(searches, options.rules_per_round) if rule not in state.known]
    if new or options.pricing == "beam":
        return Priced(new)
    rules: list[Rule] = []
    # The greatest |slope| / price over all rules and terms, at least 1. Divided by it, the slopes
    # satisfy every optimality condition: they are a feasible point of the dual problem, whose value
    # bounds the objective over all conjunctions.
    ratio = 1.0
    for side in problem.sides:
        found, most = price_exactly(
            side.space, slopes, *problem.prices, sign=side.sign, max_length=options.max_length,
            tolerance=options.tolerance, stopped=run.stopped,
        )  # fmt: skip
        rules += [tuple(side.propositions[list(rule)].tolist()) for rule in found]
        ratio = max(ratio, most)
    if len(problem.linear_price):  # within its tolerance, the master problem may violate theirs
        sums = problem.linear_values.T @ slopes
        pulls = np.linalg.norm(sums, axis=1)
        if sums.shape[1] == 1:
            pulls = L1(problem.linear_price, problem.linear_signs.T).pull(sums[:, 0])
        ratio = max(ratio, float((pulls / problem.linear_price).max(initial=0.0)))
    return Priced(rules, problem.outputs.bound(score, ratio))


def price_by_beam(
    space: SearchSpace,
    slopes: Floats,
    rule_penalty: float,
    condition_penalty: float,
    *,
    width: int,
    max_length: int | None,
    count: int,
    tolerance: float = 0.0,
    stopped: Callable[[], bool] = never,
) -> list[Rule]:
    """Rules whose slope exceeds their penalty, the largest excess first.

    Two beams, one per sign, or one for several classes. (The authors rank by the mean of the slope
    and its value if all rows of the wrong sign were excluded; that favours rules that hold for
    nearly all rows, and ended at an objective 1 % higher on COMPAS and twice as high on Heart.)

    Args:
        space: the propositions.
        slopes: derivative of the mean loss by the score of every row, shape (rows,); or by the
            scores of several classes, of whose sums the norm counts, (rows, classes).
        rule_penalty, condition_penalty: lambda_0, lambda_1.
        width: partial rules kept, for each beam.
        max_length: the most propositions of a rule, None for no limit.
        count: the most rules to return; no two of them hold on the same rows.
        tolerance: share of its penalty by which a rule's slope must exceed it.
        stopped: True ends the search with the rules so far.
    """
    found = _by_beam(
        space, slopes.reshape(len(slopes), -1), GlrmPrices(rule_penalty, condition_penalty), sign=0,
        width=width, count=count, max_length=max_length, tolerance=tolerance, stopped=stopped,
    )  # fmt: skip
    return _worst(found, count)


def _by_beam(
    space: SearchSpace,
    slopes: Floats,
    prices: GlrmPrices,
    *,
    sign: int,
    width: int,
    count: int,
    max_length: int | None,
    tolerance: float,
    stopped: Callable[[], bool],
) -> list[Found]:
    """The rules that `price_by_beam` chooses from, for weights of one sign (0: of either)."""
    objective: Objective
    # The norm of the sums of several slopes has no sign: one beam
    if slopes.shape[1] > 1:
        objective = NormOfSums(slopes.T, rule_price=prices.rule, condition_price=prices.condition)
    else:
        # A weight falls along a positive slope and rises along a negative one: a beam for either.
        gains = np.stack([slopes[:, 0], -slopes[:, 0]]) if sign == 0 else -sign * slopes.T
        objective = SignedWeights(gains, rule_price=prices.rule, condition_price=prices.condition)
    beams = search_beams(
        space, objective, width=width, max_length=max_length, count=count, stopped=stopped
    )
    found = [one for beam in beams for one in beam]
    price = objective.price
    return [one for one in found if one.objective > tolerance * price(len(one.propositions))]


def _worst(found: list[Found], count: int) -> list[Rule]:
    """The rules with the greatest excess."""
    return [one.propositions for one in sorted(found, key=lambda one: -one.objective)][:count]


def price_exactly(
    space: SearchSpace,
    slopes: Floats,
    rule_penalty: float,
    condition_penalty: float,
    *,
    max_length: int | None,
    tolerance: float = 0.0,
    stopped: Callable[[], bool] = never,
    sign: int = 0,
) -> tuple[list[Rule], float]:
    """The rule whose slope exceeds its penalty most, by branch and bound,
    and a bound for all rules.

    A weight of one sign (0: of either) descends on slopes of the other.

    Returns:
        rules: that rule, or none.
        ratio: a proved upper bound on |slope| / (lambda_0 + lambda_1 length) over all rules of at
            least one proposition; 1 if none violates its optimality condition.
    """
    slopes = slopes.reshape(len(slopes), -1)
    prices: dict[str, Any] = {"rule_price": rule_penalty, "condition_price": condition_penalty}
    if slopes.shape[1] > 1:
        objective: Objective = NormOfSums(slopes.T, **prices)
        found = search_best_first(space, objective, max_length=max_length, stopped=stopped)
    else:
        # One-sided, only positive sums count, which belong to negative weights: negate for others.
        one = -slopes[:, 0] if sign > 0 else slopes[:, 0]
        objective = GradientSum(one, one_sided=sign != 0, **prices)
        found = search_depth_first(space, objective, max_length=max_length, stopped=stopped)
    assert found.bound is not None  # the exact search always has one
    # |slope| <= price + bound for every rule, and one proposition has the least price.
    ratio = 1.0 + found.bound / float(objective.price(1))
    violates = found.objective > tolerance * objective.price(len(found.propositions))
    return [found.propositions] if violates else [], ratio
