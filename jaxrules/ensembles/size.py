"""The number of rules that the data choose: `max_rules="auto"`, and `max_rules=None` of boosting.

Under a ridge r, m copies of a rule with weight w / m each have the score of one rule and the ridge
r w^2 / m. Near-copies are thus a way around the ridge, and the risk falls with every one of them.
The gain of rule m + 1 therefore counts only as far as it exceeds what the ridge of the first m
rules, relaxed by the same factor, would gain:

    gain(m + 1) = NLL(m rules refitted with ridge r m / (m + 1)) - NLL(m + 1 rules with ridge r)

with the negative log-likelihood NLL a sum over rows, without the ridge. The size is the one with
the greatest sum of gain(j) - 1.25 over its rules j. The ridge of the weights then gives what
near-copies would have gained, see `best_size`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.losses import Loss, logistic, poisson, squared
from jaxrules.tools import checks

Floats = NDArray[np.float64]

PER_RULE = 1.25
"""By how much each rule must raise the log-likelihood (Akaike's criterion for one weight: 1)."""


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


def gain_of_rule(before: Any, after: Any) -> float:
    """The gain of the last rule or linear term, given the ensembles before and after it."""
    m, n = (len(one.rules) + len(one.terms) for one in (before, after))
    # Elimination may leave fewer rules than before (n < m): the ridge is never raised.
    if m:
        before = before.under(before.l2_penalty * min(m / n, 1.0)).refitted()
    return before.negative_log_likelihood() - after.negative_log_likelihood()


def best_size(sizes: Sequence[tuple[Sequence[float], Sequence[float]]]) -> tuple[int, int]:
    """The place of the best size, and of the size that the likelihood is worth.

    Rules that gain no more than a smaller ridge are left out, and the ridge takes their place: if k
    rules raise the likelihood by their price, of which m are kept, the ridge of the m is relaxed by
    m / k.

    Args:
        sizes: for each size, ascending, the gains of its rules (see `gain_of_rule`), and by how
            much each raised the log-likelihood.
    """
    # Of equal sums `argmax` takes the first, and so the smallest size. Sizes differ in their rules
    # only where columns are required, so each has gains of its own.
    best, paid = (
        int(np.argmax([sum(part) - PER_RULE * len(part) for part in parts]))
        for parts in zip(*sizes, strict=True)
    )
    return best, max(best, paid)
