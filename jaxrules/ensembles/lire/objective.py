"""G: the penalty on a support, what a move adds to it (Lemma 1 of Kanamori, 2023), the best weight
of one rule (Theorem 1), and G of a whole model, `objective`.

The formulas work element by element on numbers, NumPy arrays and jax arrays, traced ones included.
The searches call them, and so do the tests.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import (
    TableLike,
    check_order,
    check_sample_weight,
    conform,
    regression_target,
)
from jaxrules.losses import Array, Loss, loss_by_name, mean_loss, softmax
from jaxrules.models.metrics import known_labels
from jaxrules.models.rule_models import RuleEnsemble, decision_function
from jaxrules.tools import checks
from jaxrules.tools.float64 import numpy_of

SHARE_CLIP = 1e-10
"""Without a ridge, the share of the loss on rows that a rule harms is clipped to [1e-10, 1 -
1e-10], so that weights on separable data are finite.
"""
WEIGHT_CAP = 0.5 * math.log((1 - SHARE_CLIP) / SHARE_CLIP)
"""The largest weight of a signed column under the exponential loss that this clip allows: 11.5."""
PUBLISHED = "lire.published"
"""The learner's name in the settings of models of `jaxrules.lire.published`, where the intercept
counts as a rule.
"""
_NEWTON_STEPS = 3  # they reach 1e-10 of the loss on the rows that a rule moves
_PURE = 1e-24  # a smaller share of the loss on harmed rows is negligible


def penalty(size: Array, covered: Array, global_penalty: Array, local_penalty: Array) -> Array:
    """gamma |supp| + lambda Omega_L; Omega_L is the mean coverage of the support, 0 if it is empty.

    Args:
        size: |supp|.
        covered: the sum of the coverages p_m over the support.
        global_penalty, local_penalty: gamma and lambda.
    """
    return global_penalty * size + local_penalty * covered / (size + (size == 0))


def penalty_increase(
    size: Array, local_ratio: Array, coverage: Array, global_penalty: Array, local_penalty: Array
) -> Array:
    """C_m: by how much the penalty rises when rule m joins the support (Lemma 1).

    It is negative if the rule covers so few rows that it lowers lambda Omega_L by more than gamma.

    Args:
        size: |supp| before.
        local_ratio: Omega_L before; 0 for an empty support.
        coverage: p_m.
        global_penalty, local_penalty: gamma and lambda.
    """
    return global_penalty + local_penalty * (coverage - local_ratio) / (1 + size)


def best_weight(
    loss: Array,
    wrong_share: Array,
    increase: Array,
    ridge: Array = 0.0,
    least: Array = -WEIGHT_CAP,
    most: Array = WEIGHT_CAP,
) -> Array:
    """The weight of one rule outside the support that minimises G, the other weights fixed (Theorem
    1).

    The theorem as printed decides by an interval of eps- around 1/2, derived by squaring an
    inequality. Squaring loses a sign: the interval is wrong for C_m < 0 and for eps < C_m < 2 eps.
    Here the decrease itself decides: the rule is kept if and only if eps (1 - 2 sqrt(eps- (1 -
    eps-))) > C_m. With a ridge the decrease is that of eps ((1 - eps-) e^-b + eps- e^b) + ridge b^2
    / 2.

    >>> float(best_weight(1.0, 0.1, 0.01).round(4)), float(best_weight(1.0, 0.45, 0.01))
    (1.0986, 0.0)

    Args:
        loss: eps, the mean exponential loss on the rows that the rule moves (0 elsewhere); at least
            0.
        wrong_share: eps-, the share of it on rows of the negative class, in [0, 1]. It is clipped
            to [1e-10, 1 - 1e-10], so that a pure rule has a finite weight.
        increase: C_m, see `penalty_increase`.
        ridge: penalty on half the squared weight.
        least, most: the bounds on the weight; 0 lies between them, or is one of them.

    Returns:
        1/2 ln((1 - eps-) / eps-) without a ridge, or 0 if the rule stays out; this includes eps =
        0, and eps- = 1/2 with C_m < 0 (any tiny weight would do, but the infimum is not attained).
    """
    xp = numpy_of(loss)
    helped, harmed = loss * (1 - wrong_share), loss * wrong_share
    weight = xp.clip(_free_weight(helped, harmed, ridge), least, most)
    decrease = loss - _loss_at(weight, helped, harmed, ridge)
    return xp.where((decrease > increase) & (loss > 0), weight, 0.0)


def least_loss(
    helped: Array,
    harmed: Array,
    ridge: Array = 0.0,
    least: Array = -WEIGHT_CAP,
    most: Array = WEIGHT_CAP,
) -> Array:
    """The exponential loss that the best weight leaves on the rows that a rule moves, plus the
    ridge on that weight.

    Args:
        helped, harmed: the loss before on the rows that a positive weight helps and harms: eps (1 -
            eps-) and eps eps-.
        ridge, least, most: as in `best_weight`.
    """
    weight = numpy_of(helped).clip(_free_weight(helped, harmed, ridge), least, most)
    return _loss_at(weight, helped, harmed, ridge)


def _loss_at(weight: Array, helped: Array, harmed: Array, ridge: Array) -> Array:
    xp = numpy_of(weight)
    return helped * xp.exp(-weight) + harmed * xp.exp(weight) + ridge * weight * weight / 2


def _free_weight(helped: Array, harmed: Array, ridge: Array) -> Array:
    """The b that minimises helped e^-b + harmed e^b + ridge b^2 / 2; 0 for ties. The function is
    convex, so clipping b gives the best b between two bounds.

    Let s = sqrt(helped harmed), and b_0 = 1/2 ln(helped / harmed) be the best weight without a
    ridge (Theorem 1). Then b solves b + asinh(ridge b / 2 s) = b_0, which is concave in b > 0.
    Newton's method starts from the smaller of two upper bounds: b_0, and the weight W(helped /
    ridge) of a pure rule (Lambert's function, approximately).
    """
    xp = numpy_of(helped)
    least = xp.finfo(xp.result_type(helped)).tiny / _PURE**1.1  # so that nothing below overflows
    more = xp.maximum(xp.maximum(helped, harmed), least)
    less = xp.maximum(xp.minimum(helped, harmed), _PURE * more)
    unpenalised = 0.5 * (xp.log(more) - xp.log(less))
    if xp is np and not np.any(ridge):
        return np.copysign(unpenalised, helped - harmed)
    tilt = ridge / (2 * xp.sqrt(more) * xp.sqrt(less))
    growth = xp.log1p(more / xp.maximum(ridge, least))
    weight = xp.minimum(unpenalised, growth * (1 - xp.log1p(growth) / (2 + growth)))
    for _ in range(_NEWTON_STEPS):
        steep = tilt * weight
        excess = weight + xp.arcsinh(steep) - unpenalised
        weight = xp.maximum(weight - excess / (1 + tilt / xp.sqrt(1 + steep * steep)), 0.0)
    return xp.copysign(weight, helped - harmed)


def loss_terms(
    loss: Loss, target: Array, weight: Array, margins: Array
) -> tuple[Array, Array, Array]:
    """The summed loss, and the downhill slope and curvature of every pattern at these margins,
    shape (patterns,) each.

    Args:
        target, weight: the mean target and the weight of every pattern, see
            `jaxrules.losses.merge_rows`.
    """
    value, gradient, curvature = loss.terms(target, margins)
    return (weight * value).sum(), -weight * gradient, weight * curvature


# Of a model


def objective(
    model: RuleEnsemble,
    X: TableLike,
    y: ArrayLike,
    *,
    global_penalty: float,
    local_penalty: float,
    l2_penalty: float = 0.0,
    penalise_intercept: bool | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """G of a model plus the ridge, recomputed in float64 from its predictions.

    It is mean loss + gamma |supp| + lambda Omega_L + mu / (2 n) sum_m a_m^2.

    Rules of weight 0 are not in the support, even an expert's. (A fit does penalise a rule of
    weight 0 that it keeps only for `required`.)

    >>> import jaxrules, numpy as np
    >>> X = np.array([[0], [1]] * 50)
    >>> fit = jaxrules.lire.fit(X, X[:, 0] > 0)
    >>> given = {f"{name}_penalty": fit.details[f"{name}_penalty"] for name in ("global", "local")}
    >>> abs(objective(fit.model, X, X[:, 0] > 0, **given) - fit.details.paper_objective) < 1e-12
    True

    Args:
        model: an ensemble of rules without linear terms; for classes one-vs-rest, G is the mean
            over the classes, and for classes fitted together that of the softmax loss, plus
            mu / n sum_m |a_m|^2.
        X, y: the data, shape (rows, features) and (rows,).
        global_penalty, local_penalty: gamma and lambda.
        l2_penalty: mu; the value of a fit gives its objective, 0 the paper's.
        penalise_intercept: count the intercept as a rule of coverage 1 unless it is 0; None does as
            the fit did (`jaxrules.lire.published` always counts it). For signed rules, the
            intercept that counts is a_0 + sum_m a_m / 2.
        sample_weight: weight of every row; all means are weighted.

    Raises:
        TypeError: if the model is not an ensemble.
        ValueError: if the data do not fit the model, or the model has linear terms.
    """
    if not isinstance(model, RuleEnsemble):
        raise TypeError(f"model must be a RuleEnsemble, got {type(model).__name__}")
    if model.linear is not None:
        raise ValueError("model has linear terms, which the objective of LIRE does not cover")
    gamma = checks.penalty("global_penalty", global_penalty)
    lam = checks.penalty("local_penalty", local_penalty)
    ridge = checks.penalty("l2_penalty", l2_penalty)
    checks.concrete("X", X)
    check_order(X, y=y, sample_weight=sample_weight)
    options = dict(model.options)
    penalise_intercept = checks.optional(checks.flag, "penalise_intercept", penalise_intercept)
    if penalise_intercept is None:
        published = options.get("learner") == PUBLISHED
        penalise_intercept = published or bool(options.get("penalise_intercept", False))
    scores = np.asarray(decision_function(model, X), np.float64).reshape(-1, model.n_outputs)
    checks.require(len(scores) > 0, "X has no rows")
    weight = check_sample_weight(sample_weight, len(scores))
    satisfied = model.conjunctions.satisfied(conform(X, model.schema))
    coverage, classes = np.average(satisfied, axis=0, weights=weight), model.schema.classes
    half = ridge / (2 * float(weight.sum()))
    if classes is None:
        target = regression_target(y, len(scores))[:, None]
    else:
        truth = known_labels(y, classes, len(scores))
        target = np.where(truth[:, None] == np.asarray(classes[-model.n_outputs :]), 1.0, -1.0)
    if model.link == "softmax":
        squares = np.asarray(model.weights) ** 2
        used = squares.any(axis=1)
        lost = mean_loss(softmax, target, scores, weight)
        lost += float(penalty(used.sum(), coverage[used].sum(), gamma, lam))
        return lost + 2 * half * float(squares.sum())
    total = 0.0
    loss = loss_by_name(model.loss or {"identity": "squared"}.get(model.link, model.link))
    for k, weights in enumerate(np.asarray(model.weights).T):
        size, covered = float(np.count_nonzero(weights)), float(coverage[weights != 0].sum())
        if penalise_intercept:
            own = float(model.intercept[k])
            own += float(weights.sum()) / 2 if options.get("encoding") == "signed" else 0.0
            counts = abs(own) > 1e-12 * (1 + np.abs(weights).sum())
            size, covered = size + counts, covered + counts
        total += mean_loss(loss, target[:, k], scores[:, k], weight)
        total += penalty(size, covered, gamma, lam) + half * float(weights @ weights)
    return total / model.n_outputs
