"""LLTBoost: boosting of rules on sparse linear combinations of columns.

Behzadimanesh, Le Bodic, Webb and Boley, "Interpretable Representation Learning for Additive Rule
Ensembles". A rule is a conjunction of propositions 1{x'w >= t} with sparse w. The ensemble
f = b_0 + sum_i b_i q_i (Eq. 1) grows by fully corrective boosting (Eq. 7 to 9): with g_i the
derivative of the loss by the score of row i, rule m maximises |g'q| (Eq. 10); then all weights are
refitted.

A rule grows by one proposition at a time, for each sign of g'q (Algorithm 1). Among the rows that
satisfy the rule so far, a proposition raises the sum of the selected gradients if it classifies
their signs, with weights |g_i| (Eq. 19). The surrogate is L1-penalised logistic regression
(Eq. 21) with 1, 2, ... non-zeros, each at the smallest penalty with so many (Eq. 5, `l1_path`). An
additional non-zero is accepted if it lowers the ensemble's risk on held-out rows, all weights
refitted, by a tolerance; an additional proposition if it raises |g'q| by another.

The paper leaves some choices open. The defaults are those that did best on its data sets: a quarter
of the rows is held out; w and t are refitted without the L1 penalty on the chosen columns; the
final weights are refitted on all rows. The paper to the letter is ``fit(X, y, **PAPER)``.

Under `monotone` a rule's weight will have the sign of -g'q, which restricts the signs of the
coefficients in its propositions. Logistic regression is solved within these signs, with the
penalties and the support sizes of that problem, and refits keep the signs of the weights of rules
that use constrained columns. The proof is in `jaxrules.rules.constraints`.

In the order of reading:

- `options`; `details`: what a fit reports; `task`: its data and constraints;
- `fitting`: `fit` and `path`; `choice`: `cross_validate`;
- `stages`: one rule after another; `ensemble`: the rules so far and their weights;
- `growing`: Algorithm 1; `conjunction`: an unfinished rule;
- `proposals`: its loop over s, for all s in one compiled program; `l1_path`: the path of penalties.

>>> import numpy as np
>>> X = np.random.default_rng(0).normal(size=(200, 3))
>>> y = np.where(2 * X[:, 0] - X[:, 1] > 0.5, 3.0, -1.0)
>>> fit(X, y, max_rules=1).model.conjunctions.describe(0)
'2 x0 - x1 <= 0.43'
"""

from jaxrules.ensembles.lltboost.choice import cross_validate
from jaxrules.ensembles.lltboost.details import LLTBoostDetails, Part, Stage
from jaxrules.ensembles.lltboost.fitting import fit, path
from jaxrules.ensembles.lltboost.options import PAPER
from jaxrules.ensembles.lltboost.options import LLTBoostGrid as Grid
from jaxrules.ensembles.lltboost.options import LLTBoostOptions as Options
from jaxrules.losses import LossOption

__all__ = [
    "PAPER",
    "Grid",
    "LLTBoostDetails",
    "LossOption",
    "Options",
    "Part",
    "Stage",
    "cross_validate",
    "fit",
    "path",
]
