"""The number of rules that the data choose: `max_rules="auto"` and `max_rules=None`.

Under a ridge r, m copies of a rule with weight w / m each have the score of one rule and the ridge
r w^2 / m. Near-copies are thus a way around the ridge, and the risk falls with every one of them.
The gain of rule m + 1 therefore counts only as far as it exceeds what the ridge of the first m
rules, relaxed by the same factor, would gain:

    gain(m + 1) = NLL(m rules refitted with ridge r m / (m + 1)) - NLL(m + 1 rules with ridge r)

with the negative log-likelihood NLL a sum over rows, without the ridge. The size is the one with
the greatest sum of gain(j) - 1.25 over its rules j.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jaxrules import checks
from jaxrules.constraints import Constraints
from jaxrules.ensembles.boosting.details import BoostingDetails
from jaxrules.fits import Fit
from jaxrules.losses import Loss, logistic, poisson, squared
from jaxrules.models import RuleEnsemble

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


def of_best_size(fits: list[Fit[RuleEnsemble]], constraints: Constraints) -> Fit[RuleEnsemble]:
    """The best fit along a path, among those whose rules use all required columns that the last fit
    uses.
    """
    gains = np.array(fits[-1].details["gains"])
    total = np.cumsum(gains - _PER_RULE)
    used = [sum(c.any() for c in constraints.using(fit.model.conjunctions)) for fit in fits]
    total[np.array(used) < used[-1]] = -np.inf
    best = fits[int(np.argmax(total))]
    if best is fits[-1]:
        return best
    why = f"max_rules={len(best.details['stages'])}: further rules gain less than a smaller ridge"
    chosen = "; ".join(filter(None, (best.details["chosen"], why)))
    return replace(best, details=BoostingDetails(**{**best.details, "chosen": chosen}))
