"""LIRE: locally interpretable rule ensembles (Kanamori, ECML PKDD 2023).

From candidate rules r_m, choose a few, of which few hold for any one row (Problem 2):

    minimise  G(a) + mu / (2 n) sum_m a_m^2,     f(x) = a_0 + sum_m a_m r_m(x),
    G(a) = L(a) + gamma |supp(a)| + lambda Omega_L(a),
    Omega_L(a) = mean_n |lsupp(a | x_n)| / |supp(a)|

where lsupp(a | x) are the rules of the support that hold for x. By exchanging the sums, Omega_L is
the mean coverage p_m = mean_n r_m(x_n) over the support (0 if it is empty), so G depends on the
data only through the mean loss L and the coverages. L is the logistic loss, the exponential loss of
the paper, the squared loss for regression, the Poisson loss for counts, or the softmax loss of
several classes. Here the intercept a_0 is free: not penalised, not in the support. The ridge mu is
our addition: without it rules fit noise, and on separable data their weights grow to the cap and
mean nothing. The paper's own problem is ``fit(X, y, **PAPER)``, its own algorithm
``published(X, y)``.

In the order of reading:

- `objective`: G, what a move adds to the penalty (Lemma 1), the weight of a rule that enters alone
  (Theorem 1);
- `problem`: the data of a search as columns, with equal rows merged; `candidates` makes it from
  rules;
- `moves`: the objective after every addition, drop and swap at once; `refit`: the best weights of a
  support;
- `search`: local search by these moves from one start; `traced`: the same as one JAX program;
  `start`: L1 solutions to start from; `descents`: the search from all starts; `batches`: the
  searches of many penalties and folds side by side;
- `joint_search`: the local search for several classes as one problem, with a weight per class and
  rule;
- `bound`: branch-and-bound, which proves how good a result is (``search="optimal"``), with
  `bound_kernels`;
- `fitting`: `fit`, `path` and `cross_validate`, with `options`; `solution`: from chosen columns to
  a model, and the details of a fit;
- `published`: the paper's Algorithm 1 as its author runs it;
- `all_conjunctions`: `optimal`, the best ensemble over all conjunctions, proved; `near_optimal`:
  all that are nearly as good.
"""

from jaxrules.ensembles.lire.all_conjunctions import OptimalDetails, optimal
from jaxrules.ensembles.lire.fitting import cross_validate, fit, path
from jaxrules.ensembles.lire.near_optimal import NearOptimalEnsembles, near_optimal
from jaxrules.ensembles.lire.objective import best_weight, objective, penalty_increase
from jaxrules.ensembles.lire.options import PAPER
from jaxrules.ensembles.lire.published import published
from jaxrules.ensembles.lire.solution import LireDetails, PublishedDetails

__all__ = [
    "PAPER",
    "LireDetails",
    "NearOptimalEnsembles",
    "OptimalDetails",
    "PublishedDetails",
    "best_weight",
    "cross_validate",
    "fit",
    "near_optimal",
    "objective",
    "optimal",
    "path",
    "penalty_increase",
    "published",
]
