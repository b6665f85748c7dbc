"""Accuracy and interpretability of models: risk, complexity, support and local support."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import (
    Label,
    TableLike,
    check_order,
    check_sample_weight,
    conform,
    regression_target,
    target_array,
    total_offset,
)
from jaxrules.losses import (
    Loss,
    LossFunction,
    check_target,
    logistic,
    loss_by_name,
    softmax,
    squared,
)
from jaxrules.models.rule_models import (
    RELATIVE_TO,
    OrderedRules,
    RegressionList,
    RuleEnsemble,
    RuleList,
    decision_function,
    not_a_model,
    predict,
    predict_proba,
)
from jaxrules.rules.conditions import Conjunctions
from jaxrules.tools import checks

Measure = Literal["propositions", "conditions", "nonzeros"]


@checks.verb
def complexity(model: object, measure: Measure = "propositions") -> int:
    """Number of rules in use plus the size of each (plus linear terms).

    A rule with weight 0 is not in use. A rule or linear term shared by several outputs counts once.

    Args:
        model: a rule ensemble or rule list; for a coordinate path the measure is its number of
            steps.
        measure: the size of a rule. "propositions": their number, as counted by Boley et al.
            (2021); ``3 <= x <= 7`` is two. "conditions": the number when propositions on the same
            column or direction are merged, as printed. "nonzeros": its propositions plus the number
            of columns in each, the C(f) = r + sum_i (k_i + sum_j ||w_ij||_0) of oblique rule
            ensembles; for rules without directions it is r + 2 sum_i k_i.

    Raises:
        TypeError: if `model` is not a model.
        ValueError: for an unknown measure.
    """
    not_a_model(model)


@complexity.register
def _(model: RuleEnsemble, measure: Measure = "propositions") -> int:
    linear = 0 if model.linear is None else len(model.linear.used)
    return _size(used_rules(model), measure) + linear


@complexity.register
def _(model: OrderedRules, measure: Measure = "propositions") -> int:
    return _size(model.conjunctions, measure)


def _size(rules: Conjunctions, measure: Measure) -> int:
    """Number of rules plus the number of their conditions or propositions, or of propositions and
    their columns.
    """
    measure = checks.choice("measure", measure, get_args(Measure))
    if measure == "conditions":
        return len(rules) + len(rules.feature)
    propositions = int(rules.propositions.sum())
    if measure == "propositions":
        return len(rules) + propositions
    # A proposition has one column, or all columns of a direction; an interval is one proposition
    # per end.
    on = np.flatnonzero(rules.feature >= len(rules.schema.features))
    ends = np.maximum(1, np.isfinite([rules.lower[on], rules.upper[on]]).sum(axis=0))
    more = rules.directions.nonzeros[rules.feature[on] - len(rules.schema.features)] - 1
    return len(rules) + 2 * propositions + int(ends @ more)


def used_rules(model: RuleEnsemble | OrderedRules) -> Conjunctions:
    """The rules with nonzero weight; all rules of a list."""
    used = _used(model)  # refuses anything but a model
    return model.conjunctions.take(used)


def support(model: RuleEnsemble | OrderedRules) -> int:
    """Number of rules with nonzero weight, |supp(alpha)| in the LIRE paper (Sec. 3.1).

    Linear terms are not rules; `complexity` counts them.
    """
    return int(_used(model).sum())


def local_support(model: RuleEnsemble | OrderedRules, X: TableLike) -> float:
    """Mean number of used rules that a row satisfies, mean |lsupp(alpha | x)| in the LIRE paper
    (Sec. 3.1).

    For a rule list it is the mean number of rules read before one holds.

    Raises:
        ValueError: if `X` does not fit the model's columns.
    """
    supports = local_supports(model, X)
    checks.require(len(supports) > 0, "X has no rows")
    return float(supports.mean())


def support_ratio(model: RuleEnsemble | OrderedRules, X: TableLike) -> float:
    """`local_support` / `support`, the support ratio of the LIRE paper's experiments: the mean
    share of the rules that a row satisfies; 0 for a model without rules.

    Raises:
        ValueError: if `X` does not fit the model's columns.
    """
    size = support(model)
    return local_support(model, X) / max(1, size)


def local_supports(model: RuleEnsemble | OrderedRules, X: TableLike) -> NDArray[np.int64]:
    """`local_support` of each row, shape (rows,)."""
    if isinstance(model, OrderedRules):
        table = conform(X, model.schema)
        return np.minimum(model.position(table) + 1, len(model.conjunctions))
    rules = used_rules(model)
    table = conform(X, model.schema)
    counts = np.empty(table.n_rows, np.int64)
    for rows, satisfied in rules.batches(table):
        counts[rows] = satisfied.sum(axis=1)
    return counts


def _used(model: object) -> NDArray[np.bool_]:
    if isinstance(model, OrderedRules):
        return np.ones(len(model.conjunctions), bool)
    if not hasattr(model, "schema"):
        not_a_model(model)
    ensemble = checks.instance("model", model, RuleEnsemble, "jaxrules.boosting.fit")
    return np.asarray((np.asarray(ensemble.weights) != 0).any(axis=1))


def accuracy(
    model: Any, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Weighted share of correctly predicted rows.

    Raises:
        ValueError: if `y` or `sample_weight` does not fit the rows of `X`, if `y` has a label that
            is not a class of the model, or if the model predicts numbers.
    """
    predicted, truth, weights = _labels(model, X, y, sample_weight, "accuracy")
    return float(np.average(predicted == truth, weights=weights))


def _labels(
    model: Any, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, score: str
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """The predicted and the true class, and the weight, of every row."""
    checks.concrete("X", X)
    check_order(X, y=y, sample_weight=sample_weight)
    predicted = np.asarray(predict(model, X))
    checks.require(len(predicted) > 0, "X has no rows")
    classes = model.schema.classes
    if classes is None:
        raise ValueError(f"model predicts numbers, which have no {score}; use risk")
    truth = known_labels(y, classes, len(predicted))
    return predicted, truth, check_sample_weight(sample_weight, len(truth))


def f1(
    model: Any,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    positive: Label | None = None,
) -> float:
    """The F1 score of a class: 2 TP / (2 TP + FP + FN), in weights of rows; 0 if no row has the
    class and none is predicted to have it.

    >>> import jaxrules as jr
    >>> data = jr.datasets.load("breast_cancer")
    >>> fit = jr.ssrl.fit(data.X, data.y, max_rules=2)
    >>> round(f1(fit.model, data.X, data.y), 2)
    0.97

    Args:
        model: a classifier.
        X, y: the data.
        sample_weight: weight of every row, shape (rows,).
        positive: the class; None for the second of two.

    Raises:
        ValueError: as `accuracy`; also for more than two classes without `positive`, or a label
            that is not a class.
    """
    predicted, truth, weights = _labels(model, X, y, sample_weight, "F1 score")
    classes = model.schema.classes
    if positive is None and len(classes) > 2:
        raise ValueError(f"there are {len(classes)} classes; pass one of {classes} as positive")
    if positive is not None and positive not in classes:
        raise ValueError(f"positive must be one of {classes}, got {positive!r}")
    label = classes[-1] if positive is None else positive
    holds, said = truth == label, predicted == label
    both = 2 * float(weights[holds & said].sum())
    total = float(weights[holds].sum() + weights[said].sum())
    return both / total if total else 0.0


def known_labels(y: ArrayLike, classes: tuple[Label, ...], n_rows: int) -> NDArray[Any]:
    """The labels of `y`, all of them classes of the model."""
    truth = target_array(y, n_rows)
    unknown = set(np.unique(truth).tolist()) - set(classes)
    if unknown:
        shown = ", ".join(sorted(repr(label) for label in unknown)[:5])
        raise ValueError(
            f"y has labels that the model does not know: {shown}; its classes are {classes}"
        )
    return truth


def codes_of(labels: NDArray[Any], classes: Sequence[Label]) -> NDArray[np.intp]:
    """The places of labels among the classes."""
    codes = {label: code for code, label in enumerate(classes)}
    return np.array([codes[label] for label in labels.tolist()], np.intp)


def risk(
    model: RuleEnsemble | OrderedRules,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    loss: str | Loss | LossFunction | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> float:
    """Weighted mean loss; with more than two classes, averaged over the one-vs-rest outputs.

    For classes fitted together (link "softmax"), the logistic loss is the softmax loss, see
    `jaxrules.losses.softmax`. For a rule list, the logistic loss of a row is -log p of its class,
    and other losses of two classes take the log-odds as the score (half of them for a loss with
    the exponential link).

    >>> import jaxrules as jr
    >>> data = jr.datasets.load("breast_cancer")
    >>> fit = jr.ssrl.fit(data.X, data.y, max_rules=2)
    >>> round(risk(fit.model, data.X, data.y), 3)
    0.112

    Args:
        model: a model with scores, or a list.
        X, y: the data.
        sample_weight: weight of every row, shape (rows,).
        loss: as in the learners, see `jaxrules.losses`; None for the loss of the fit, and the
            logistic one for a rule list of classes.
        offset, exposure: known parts of the scores, as in `jaxrules.predict`. A model that was
            fitted with one of them needs it here too: its scores are rates.

    Raises:
        ValueError: if `y` or `sample_weight` does not fit the rows of `X`, if `y` has a label that
            is not a class of the model, if the loss is not defined for `y` or infinite, if the
            model was fitted with a user's loss, which must be passed again, or with an offset or
            exposure, which is missing.
    """
    checks.concrete("X", X)
    check_order(X, y=y, sample_weight=sample_weight, offset=offset, exposure=exposure)
    is_list = isinstance(model, RuleList)
    if loss is None:
        chosen = logistic if is_list else loss_of(model)
    else:
        chosen = loss_by_name(loss)
    if isinstance(model, RuleList):
        scores = scores_of_probabilities(np.asarray(predict_proba(model, X)), chosen)
    elif isinstance(model, RegressionList):
        checks.require(
            chosen.link == "identity",
            f"loss {chosen.name!r} rates scores, which a RegressionList does not have; use "
            "'squared', or None for that of the fit",
        )
        scores = np.asarray(predict(model, X), np.float64)
    else:
        scores = np.asarray(decision_function(model, X), np.float64)
    checks.require(len(scores) > 0, "X has no rows")
    weights = check_sample_weight(sample_weight, len(scores))
    classes = model.schema.classes
    if classes is None:
        target = regression_target(y, len(scores))
    else:
        truth = known_labels(y, classes, len(scores))
        # In the coding of the losses: for several classes, a column of -1 and +1 for each.
        truth = truth if len(classes) == 2 else truth[:, None]
        positive = classes[1] if len(classes) == 2 else np.asarray(classes)[None]
        target = np.where(truth == positive, 1.0, -1.0)
    check_target(chosen, target)
    if offset is not None or exposure is not None:
        checks.require(classes is None, "offset and exposure are for models that predict numbers")
        scores = scores + total_offset(offset, exposure, len(scores), chosen.link == "log")
    else:
        require_known_part(model)
    # `loss_of` calls the loss of classes fitted together logistic; its value is that of `softmax`.
    # The logarithms of a list's probabilities are such scores too.
    together = is_list or getattr(model, "link", None) == "softmax"
    used = softmax if together and scores.ndim == 2 and chosen == logistic else chosen
    with np.errstate(over="ignore", invalid="ignore"):
        losses = np.asarray(used.value(target, scores))
    checks.require(
        bool((losses < _INFINITE).all()),
        "the loss of some rows of X and y is too large for float64"
        + (", or a rule gives their class the probability 0" if is_list else ""),
    )
    losses = losses if losses.ndim == 1 else losses.mean(axis=1)
    return float(np.average(losses, weights=weights))


_INFINITE = 1e308
"""Stands for an infinite loss, and the score that has it: the losses multiply scores by 0."""


def scores_of_probabilities(shares: NDArray[np.float64], loss: Loss) -> NDArray[np.float64]:
    """The scores with which a loss of classes rates probabilities, shape (rows, classes): the
    log-odds of the second class, half of them under the exponential link; the logarithms of more
    than two, for `softmax`.

    Raises:
        ValueError: for another loss than the logistic one of more than two classes.
    """
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(shares), -_INFINITE)
    if logs.shape[1] > 2:
        checks.require(
            loss == logistic,
            f"loss {loss.name!r} of more than two classes has no value for probabilities; use "
            "'logistic'",
        )
        return logs
    return (logs[:, 1] - logs[:, 0]) * (0.5 if loss.link == "exponential" else 1.0)


def require_known_part(model: Any) -> None:
    """Refuse to compare the rates of a model that was fitted with an offset or exposure with
    counts.

    Raises:
        ValueError: naming the argument that is missing.
    """
    needed = dict(getattr(model, "options", ())).get(RELATIVE_TO)
    if needed is not None:
        rows = "numpy.ones" if needed == "exposure" else "numpy.zeros"
        raise ValueError(
            f"the model was fitted with {needed}; pass {needed}= of these rows, too, or "
            f"{rows}(len(y)) if y is already without it"
        )


absolute_error = Loss(
    "absolute",
    value=lambda y, score: abs(y - score),
    gradient=lambda y, score: np.sign(score - y),
    curvature=lambda y, score: 0.0 * (y + score),
)
"""|y - f|, with its kink, which lists minimise; `jaxrules.losses.absolute` is smooth, for sums."""


def loss_of(model: Any) -> Loss:
    """The loss that a model was fitted with."""
    if not hasattr(model, "schema"):
        not_a_model(model)
    if isinstance(model, RegressionList):
        return absolute_error if model.loss == "absolute" else squared
    if not isinstance(model, RuleEnsemble):
        raise TypeError(
            f"model is a {type(model).__name__}, which does not record its loss; pass it as loss="
        )
    link = "logistic" if model.link == "softmax" else model.link
    with contextlib.suppress(ValueError):
        return loss_by_name(model.loss or {"identity": "squared", "log": "poisson"}.get(link, link))
    raise ValueError(
        f"model was fitted with the loss {model.loss!r}, which is not in jaxrules.losses; pass it "
        "as loss="
    )
