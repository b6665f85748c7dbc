"""Several classes as one problem: a rule has a weight per class, under the softmax loss.

With G the derivatives of the mean loss by the scores, (rows, classes), a rule maximises |G'q|, the
slope along its weights, in the place of |g'q| (Eq. 10). The four classes with the largest gradients
each grow a conjunction for their own column of G, for each sign; the one of largest |G'q| is added,
and all weights are refitted. The ridge is twice `l2_penalty`, so that with two classes this is the
binary problem for the weights v = 2 w_2 = -2 w_1.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from jaxrules.ensembles.lltboost.conjunction import Conjunction
from jaxrules.ensembles.lltboost.ensemble import Ensemble, Floats, TrainedRows
from jaxrules.ensembles.noise import Ridge
from jaxrules.losses import softmax
from jaxrules.solvers.linear.refit import refit_softmax


class JointEnsemble(Ensemble):
    """The rules so far, with a weight per class."""

    ridges = 2.0

    def _constant(self) -> Floats:
        log_shares = np.log(_shares(self.training))
        return np.asarray(log_shares - log_shares.mean())

    def _least_risk(self) -> float:
        return 0.0

    def _slope(self, scores: Floats) -> Floats:
        return np.asarray(special.softmax(scores, axis=0) - (self.data.target.T > 0))

    def _loss(self, scores: Floats) -> float:
        return float(self.final.shares @ softmax(self.final.data.target, scores.T))

    def worth(self, one: Conjunction) -> float:
        return float(np.linalg.norm(self.gradient @ one.rows))

    def _refit(self, rows: TrainedRows, start: Floats, ridge: float) -> Floats:
        m = self.n_rules
        result = np.zeros_like(start)
        found, constants = refit_softmax(
            rows.data.target,
            rows.holds[:, :m],
            l2_penalty=self.ridges * ridge,
            sample_weight=rows.shares,
            start=(start[:, 1 : m + 1].T, start[:, 0]),
        )
        result[:, 1 : m + 1], result[:, 0] = found.T, constants - constants.mean()
        return result

    def _by_noise(self, risk: float) -> Ridge:
        shares = _shares(self.final)
        left, curvature = risk / -float(shares @ np.log(shares)), np.mean(shares * (1 - shares))
        return Ridge.by_noise(left, float(curvature), self.final.weights, self.n_rules)


def _shares(rows: TrainedRows) -> Floats:
    """The share of each class, (classes,)."""
    return np.asarray(np.average(rows.data.target > 0, axis=0, weights=rows.weights))
