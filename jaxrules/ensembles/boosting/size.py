"""The number of rules chosen from the data: `max_rules=None`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaxrules import checks
from jaxrules.constraints import Constraints
from jaxrules.ensembles.boosting.details import BoostingDetails
from jaxrules.fits import Fit
from jaxrules.losses import Loss, logistic, poisson, squared
from jaxrules.models import RuleEnsemble
from jaxrules.training import TrainingData

_PER_RULE = 1.25
"""By how much each rule must raise the log-likelihood (Akaike's criterion for one weight: 1)."""


def check_likelihood(loss: Loss) -> None:
    """Refuse a loss that is not a negative log-likelihood, up to a scale that can be estimated."""
    checks.require(
        loss in (logistic, squared, poisson),
        "max_rules=None needs a loss with a likelihood (logistic, squared or poisson), not "
        f"{loss.name}; set max_rules, or use cross_validate",
    )


def of_best_size(
    fits: list[Fit[RuleEnsemble]], data: TrainingData, constraints: Constraints, most: int
) -> Fit[RuleEnsemble]:
    """The fit along a path with the least penalised negative log-likelihood, among those whose
    rules use all required columns that the last fit uses.

    With n the total weight, the negative log-likelihood is n times the regularised risk with the
    ridge of the search; for the squared loss, whose variance is estimated too, it is n / 2 times
    the logarithm of the risk.
    """
    n, risks = float(data.weights.sum()), np.array([fit.details["risks"][-1] for fit in fits])
    if data.loss.quadratic:
        fitted = n / 2 * np.log(np.maximum(risks, np.finfo(np.float64).tiny))
    else:
        fitted = n * risks
    stages = np.array([len(fit.details["stages"]) for fit in fits])
    used = np.array(
        [np.sum([c.any() for c in constraints.using(f.model.conjunctions)]) for f in fits]
    )
    total = np.where(used < used.max(), np.inf, fitted + _PER_RULE * stages)
    best = fits[int(np.argmin(total))]
    why = f"max_rules={len(best.details['stages'])}: least penalised loss of sizes up to {most}"
    chosen = "; ".join(filter(None, (best.details["chosen"], why)))
    return replace(best, details=BoostingDetails(**{**best.details, "chosen": chosen}))
