"""Rule boosting with an exact base learner.

Boley, Teshuva, Le Bodic and Webb, "Better Short than Greedy: Interpretable Models through Optimal
Rule Boosting" (SIAM SDM 2021). The regularised risk (2.1) of an ensemble f = sum_t w_t q_t,

    mean_i l(y_i, f(x_i)) + l2_penalty / (2 n) sum_t w_t^2,

is reduced one rule at a time. With g and h the first and second derivatives of the loss
at the current scores, rule t maximises over conjunctions q of propositions (sums run
over the rows that q selects)

    "second_order"          (sum g)^2 / (2 n (l2_penalty + sum h))             (2.3)
    "corrective_decrease"   (sum g)^2 / (2 n (l2_penalty + sum h - c'M^-1 c))  (2.3), all refitted
    "gradient_sum"          |sum g|
    "orthogonal"            |sum g| / (||q_perp|| + epsilon)   Yang et al. (AISTATS 2024)

and gets the weight w = -sum g / (l2_penalty + sum h) (2.2), or all weights are refitted
(``corrective=True``). The orthogonal objective is meant for refits: its gradient is made orthogonal
to the rules found so far. With sample weights, g and h are multiplied by them and n is their sum. c
and M are of `jaxrules.solvers.rule_search.CorrectiveDecrease`.

The paper's own setting is ``fit(X, y, **PAPER)``. The defaults differ where another choice gave
better models of the same size (benchmarks/fronts.py): a rule maximises its objective divided by its
complexity 1 + length (``per_unit``); all weights are refitted, starting from the best constant; and
the objective accounts for the refit. Rules have at most two conditions, or three if there are few
propositions: longer rules did not predict better at the same size, and the best rule of two
conditions is proved in milliseconds (`jaxrules.solvers.rule_search.pairs`), while a search over
rules of any length ends without a useful bound. ``max_length=None`` allows any length; the search
for a rule then stops after a number of evaluations and reports the bound proved by then. A rule
that holds for the same rows as an earlier one, or for exactly the other rows, is not a candidate:
under a ridge it would gain something, but it would tell a reader nothing. A single condition is
written on the side that holds for fewer rows: with an intercept both sides give the same model.

With ``objective_tolerance`` the rule maximises its objective over (1 + objective_tolerance)^length:
each further proposition must raise it by this share, as in `jaxrules.lltboost`. Threshold-based
gradient boosting (TGB), the baseline of LLTBoost, is
``PAPER | {"objective": "gradient_sum", "search": "greedy", "intercept": True}``.

The exact search is a compiled branch and bound. Its mandatory-rows bound, stated and proved in
docs/mandatory-rows-bound.md, is tighter and cheaper than the paper's (Theorem 3.1). Every stage
reports its proved optimality gap. XGBoost's ``reg_lambda`` is l2_penalty for the logistic loss and
half of it for squared error, which XGBoost halves.

In the order of reading:

- `options`: what can be set, and the paper's own setting; `task`: what a fit works on;
- `objective`: what a stage maximises; `search`: the search for the rule that maximises it;
- `ensemble`: the rules so far, the weight of a new one (2.2), the refit of all weights, and
  elimination; several classes are one problem there; `pruning`: fewer weights for them;
- `thresholds`, `linear_terms`, and `directions` with `combinations`: additional candidates of a
  stage;
- `stages`: one rule after another; `details`: what is recorded of them;
- `ridge`: the default ridge; `size`: the number of rules if the data choose it;
- `fitting`: `fit` and `path`; `choice`: `cross_validate`;
- `published`: the paper's Algorithm 1.
"""

from jaxrules.ensembles.boosting.choice import cross_validate
from jaxrules.ensembles.boosting.details import BoostingDetails
from jaxrules.ensembles.boosting.details import BoostingStage as Stage
from jaxrules.ensembles.boosting.fitting import fit, model_in_time, path
from jaxrules.ensembles.boosting.options import (
    PAPER,
    Multiclass,
    Objective,
    Search,
)
from jaxrules.ensembles.boosting.options import (
    BoostingGrid as Grid,
)
from jaxrules.ensembles.boosting.options import (
    BoostingOptions as Options,
)
from jaxrules.ensembles.boosting.options import (
    PublishedBoostingOptions as PublishedOptions,
)
from jaxrules.ensembles.boosting.published import published
from jaxrules.losses import LossOption

__all__ = [
    "PAPER",
    "BoostingDetails",
    "Grid",
    "LossOption",
    "Multiclass",
    "Objective",
    "Options",
    "PublishedOptions",
    "Search",
    "Stage",
    "cross_validate",
    "fit",
    "model_in_time",
    "path",
    "published",
]
