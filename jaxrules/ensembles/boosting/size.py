"""The number of rules that the data choose: `max_rules="auto"` and `max_rules=None`.

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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules import checks
from jaxrules.losses import Loss, logistic, poisson, squared

Floats = NDArray[np.float64]

_PER_RULE = 1.25
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


def gain_of_rule(before: Any, after: Any) -> float:
    """The gain of the last rule or linear term, given the ensembles before and after it."""
    m, n = (len(one.rules) + len(one.terms) for one in (before, after))
    if m:
        before = before.under(before.l2_penalty * min(m / n, 1.0)).refitted()
    return before.negative_log_likelihood() - after.negative_log_likelihood()


def best_size(gains: Floats, raised: Floats, allowed: NDArray[np.bool_]) -> tuple[int, int]:
    """The number of rules, and the number that their likelihood is worth.

    Rules whose gain is that of a smaller ridge are left out, and the ridge takes their place: with
    as many rules as raise the likelihood by their price, m of them distinct, the ridge of the m is
    relaxed by m over that number.

    Args:
        gains: of the rules, see `gain_of_rule`.
        raised: by how much each rule raised the log-likelihood.
        allowed: the sizes that use all required columns.
    """
    total = np.where(allowed, np.cumsum(gains - _PER_RULE), -np.inf)
    m = int(np.argmax(total)) + 1
    return m, max(m, int(np.argmax(np.cumsum(raised - _PER_RULE))) + 1)
