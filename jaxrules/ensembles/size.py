"""The number of rules that the data choose: `max_rules="auto"`, and `max_rules=None` of boosting.

Under a ridge r, m copies of a rule with weight w / m each have the score of one rule and the ridge
r w^2 / m. Near-copies are thus a way around the ridge, and the risk falls with every one of them.
The gain of rule m + 1 therefore counts only as far as it exceeds what the ridge of the first m
rules, relaxed by the same factor, would gain:

    gain(m + 1) = NLL(m rules refitted with ridge r m / (m + 1)) - NLL(m + 1 rules with ridge r)

with the negative log-likelihood NLL a sum over rows, without the ridge. The size is the one with
the greatest sum of gain(j) - price(j) over its rules j. The ridge of the weights then gives what
near-copies would have gained, see `best_size`.

The price of a rule is a number of nats times the scale of the likelihood: a loss that varies less
than its likelihood says is one over a scale, as in quasi-likelihood (McCullagh and Nelder,
"Generalized Linear Models", 1989, Sec. 9.2),

    price(j) = nats s,    s = sum g^2 / sum h

with the slopes g and curvatures h of the loss at the scores of j rules, whose sums are equal for a
likelihood that is true. With classes that are nearly separated, the first rules leave a few nats,
and all rows together vary by as little: what is a small gain for noisy classes is a large part of
what is left. For squares the variance is estimated, and the scale is 1.

It takes 1.25 nats on few rows, on which weak rules under a ridge lower the risk, and grows with the
rows to 8. On many rows a rule must beat the best of thousands by chance, which gains the logarithm
of their number (Foster and George, "The Risk Inflation Criterion", 1994). So a rule of boosting
takes more nats where it is chosen among more than 40 columns, see `nats_among`. A scale below 1
leaves less to chance: what exceeds 1.25 nats is times the scale once more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.losses import Loss, derivatives, logistic, poisson, squared
from jaxrules.tools import checks

Floats = NDArray[np.float64]

PER_RULE, _MOST = 1.25, 8.0
"""By how much each rule must raise the log-likelihood, on few rows (Akaike's criterion for one
weight: 1) and at most.
"""
_FEW_ROWS, _FEW_COLUMNS = 250, 40


class Worth(NamedTuple):
    """What the last rule or linear term of an ensemble is worth.

    Attributes:
        gain: see the module's docstring; nan if it is unknown.
        raised: by how much it raised the log-likelihood, under one ridge.
        price: by how much it must raise it.
    """

    gain: float = math.nan
    raised: float = math.nan
    price: float = math.nan


def has_likelihood(loss: Loss) -> bool:
    """Whether a loss is a negative log-likelihood, up to a scale that can be estimated."""
    return loss in (logistic, squared, poisson)


def check_likelihood(loss: Loss) -> None:
    """Refuse a loss without a likelihood."""
    checks.require(
        has_likelihood(loss),
        "max_rules=None needs a loss with a likelihood (logistic, squared or poisson), not "
        f"{loss.name}; set max_rules, or use cross_validate",
    )


def negative_log_likelihood(loss: Loss, y: Floats, scores: Floats, weights: Floats) -> float:
    """The sum of the losses; for squares, with the variance estimated.

    Args:
        y: as the loss takes it.
        scores: of every row.
        weights: of the rows.
    """
    losses = float(weights @ np.asarray(loss.value(y, scores)))
    if not loss.quadratic:
        return losses
    # n / 2 log(mean square), the variance at its best value; a perfect fit has a mean square of 0,
    # whose logarithm is not finite.
    total = float(weights.sum())
    return total / 2 * math.log(max(losses / total, float(np.finfo(np.float64).tiny)))


def scale(loss: Loss, y: Floats, scores: Floats, weights: Floats) -> float:
    """The scale of the slopes: their squares over the curvature, both summed over rows (and
    classes). It is about 1 if the loss is a negative log-likelihood that is true.

    Args:
        y, scores, weights: as for `negative_log_likelihood`.
    """
    slopes, curvatures = derivatives(loss, y, scores)
    whole = float(np.sum(weights @ curvatures))
    return float(np.sum(weights @ slopes**2)) / max(whole, float(np.finfo(np.float64).tiny))


def nats(weights: Floats, scale: float = 1.0, most: float = _MOST, more: float = 0.0) -> float:
    """The nats that a rule takes on rows with these weights."""
    rows = max(float(weights.sum()), _FEW_ROWS)
    most = min(PER_RULE * (1 + 2 * math.log(rows / _FEW_ROWS)), most) + more
    return PER_RULE + (most - PER_RULE) * min(scale, 1.0)


def nats_among(columns: int, conditions: int) -> float:
    """By how many nats a rule of so many conditions is dearer than one that is chosen among a few
    columns: the logarithm of how many times as many rules there are.
    """
    return conditions * max(0.0, math.log(max(1, columns) / _FEW_COLUMNS))


def price_of_rule(
    loss: Loss, y: Floats, scores: Floats, weights: Floats, most: float = _MOST, more: float = 0.0
) -> float:
    """By how much the last rule of these scores must raise the log-likelihood.

    Args:
        y, scores, weights: as for `negative_log_likelihood`.
        most: the most nats.
        more: nats in addition.
    """
    if loss.quadratic:  # whose scale the likelihood estimates
        return nats(weights, most=most, more=more)
    own = scale(loss, y, scores, weights)
    return nats(weights, own, most, more) * own


def worth_of_rule(before: Any, after: Any, more: float) -> Worth:
    """What the last rule or linear term is worth, given the ensembles before and after it; `more`:
    nats that it takes in addition.
    """
    m, n = (len(one.rules) + len(one.terms) for one in (before, after))
    # Elimination may leave fewer rules than before (n < m): the ridge is never raised.
    relaxed = before.under(before.l2_penalty * min(m / n, 1.0)).refitted() if m else before
    nll = after.negative_log_likelihood()
    return Worth(
        relaxed.negative_log_likelihood() - nll,
        before.negative_log_likelihood() - nll,
        price_of_rule(after.loss, after.y, after.scores, after.sample_weight, more=more),
    )


def best_size(sizes: Sequence[Sequence[Worth]]) -> tuple[int, int]:
    """The place of the best size, and of the size that the likelihood is worth.

    Rules that gain no more than a smaller ridge are left out, and the ridge takes their place: if k
    rules raise the likelihood by their price, of which m are kept, the ridge of the m is relaxed by
    m / k.

    Args:
        sizes: for each size, ascending, what its rules are worth.
    """
    # Of equal sums `argmax` takes the first, and so the smallest size. Sizes differ in their rules
    # only where columns are required, so each has gains of its own.
    best = int(np.argmax([sum(one.gain - one.price for one in rules) for rules in sizes]))
    paid = int(np.argmax([sum(one.raised - one.price for one in rules) for rules in sizes]))
    return best, max(best, paid)
