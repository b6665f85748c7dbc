"""Generalised linear rule models, by column generation (Wei, Dash, Gao and Günlük, ICML 2019).

A linear model over all conjunctions of propositions:

    minimise  mean_n l(y_n, f(x_n)) + sum_k (lambda_0 + lambda_1 length_k) |w_k|       (Eq. 3 and 8)
    f(x) = w_0 + sum_k w_k r_k(x) + sum_j b_j x_j

Propositions are thresholds at quantiles, both sides, and category == or !=. Only few rules are ever
examined. The restricted master problem over the candidates so far is a sparse generalised linear
model (`jaxrules.solvers.linear.sparse_glm`); its loss has a slope g_n at every row. Another rule
lowers the objective if and only if it violates the optimality condition

    |mean slope of the rule|  =  |sum_n g_n r_k(x_n)|  <=  lambda_0 + lambda_1 length_k,

and the pricing problem is to find the rules that violate it most: by a beam search over
conjunctions, or exactly, by branch and bound (`jaxrules.solvers.rule_search`). When the exact
search finds none, the model is optimal over ALL conjunctions, and `Fit.bound` proves it.

The loss l is one of `jaxrules.losses`; the paper halves the squared one. Optional terms b_j x_j are
numeric columns scaled to the standard deviation 0.4 of a typical rule, each with penalty lambda_0.

Several classes may be one problem (`multiclass="joint"`): l is the softmax loss, w_k has a weight
per class, and |w_k| and the mean slope of a rule, which then has an entry per class, too, are
Euclidean norms (`jaxrules.solvers.linear.sparse_softmax`, `rule_search.NormOfSums`). With two
classes this is the problem above, with penalties times sqrt(2).

In the order of reading:

- `options`; `details`: what a fit reports; `fitting`: `fit`, `path` and `cross_validate`;
- `task`: the data, the propositions, and the default penalty; `outputs`: the loss of one output, or
  of all classes; `problem`: the problem at one penalty;
- `generation`: column generation; `master`: the restricted master problem; `pricing`.

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
>>> y = 3.0 * X[:, 0] * X[:, 1]
>>> result = fit(X, y, rule_penalty=0.01, pricing="exact")
>>> result.model.conjunctions.describe(0), result.status.value
('x0 >= 1 & x1 >= 1', 'optimal')
>>> [len(one.model.conjunctions) for one in path(X, y, rule_penalties=[2.0, 0.01])]
[0, 1]
"""

from jaxrules.ensembles.glrm.details import GLRMDetails
from jaxrules.ensembles.glrm.fitting import cross_validate, fit, path
from jaxrules.ensembles.glrm.master import independent
from jaxrules.ensembles.glrm.options import GlrmGrid as Grid
from jaxrules.ensembles.glrm.options import GlrmOptions as Options
from jaxrules.ensembles.glrm.options import GlrmPathOptions as PathOptions
from jaxrules.ensembles.glrm.options import LossOption
from jaxrules.ensembles.glrm.pricing import price_by_beam, price_exactly

__all__ = [
    "GLRMDetails",
    "Grid",
    "LossOption",
    "Options",
    "PathOptions",
    "cross_validate",
    "fit",
    "independent",
    "path",
    "price_by_beam",
    "price_exactly",
]
