"""How good and how interpretable a model is: risk, complexity, support and local support."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.losses import exponential, logistic, poisson, squared
from jaxrules.models import RuleEnsemble, RuleList, decision_function, predict
from jaxrules.table import Label, check_sample_weight, conform, regression_target, target_array

_LOSS_OF_LINK = {loss.link: loss for loss in (squared, logistic, exponential, poisson)}


@functools.singledispatch
def complexity(model: Any) -> int:
    """Number of rules in use plus number of their conditions (plus linear terms).

    For a rule ensemble this is the measure of Boley et al. (2021): one per rule and one per condition.
    """
    raise TypeError(f"model must be a jaxrules model, got {type(model).__name__}")


@complexity.register
def _(model: RuleEnsemble) -> int:
    used = _used(model)
    linear = 0 if model.linear is None else int(np.asarray(model.linear.coefficients).any(axis=1).sum())
    return int(used.sum() + model.conjunctions.lengths[used].sum() + linear)


@complexity.register
def _(model: RuleList) -> int:
    return int(len(model.conjunctions) + model.conjunctions.lengths.sum())


def support(model: RuleEnsemble | RuleList) -> int:
    """Number of rules with a weight other than zero, |supp(alpha)| in the LIRE paper (Sec. 3.1).

    Linear terms are not rules; `complexity` counts them.
    """
    return int(_used(model).sum())


def local_support(model: RuleEnsemble | RuleList, X: Any) -> float:
    """Mean number of used rules that a row satisfies, mean |lsupp(alpha | x)| in the LIRE paper (Sec. 3.1).

    For a rule list it is the mean number of rules read before one holds.

    Raises:
        ValueError: if `X` does not fit the model's columns.
    """
    return float(local_supports(model, X).mean())


def local_supports(model: RuleEnsemble | RuleList, X: Any) -> NDArray[np.int64]:
    """`local_support` of every row, shape (rows,)."""
    table = conform(X, model.schema)
    if isinstance(model, RuleList):
        return np.minimum(model.position(table) + 1, len(model.conjunctions))
    rules = model.conjunctions.take(_used(model))
    counts = np.empty(table.n_rows, np.int64)
    for rows, satisfied in rules.batches(table):
        counts[rows] = satisfied.sum(axis=1)
    return counts


def _used(model: RuleEnsemble | RuleList) -> NDArray[np.bool_]:
    if isinstance(model, RuleList):
        return np.ones(len(model.conjunctions), bool)
    if isinstance(model, RuleEnsemble):
        return np.asarray((np.asarray(model.weights) != 0).any(axis=1))
    raise TypeError(f"model must be a RuleEnsemble or a RuleList, got {type(model).__name__}")


def accuracy(model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Weighted share of rows that are predicted correctly.

    Raises:
        ValueError: if `y` or `sample_weight` does not fit the rows of `X`, if `y` has a label that the model
            does not know, or if the model predicts numbers.
    """
    classes = model.schema.classes
    if classes is None:
        raise ValueError("model predicts numbers, which have no accuracy; use risk")
    predicted = np.asarray(predict(model, X))
    truth = _known_labels(y, classes, len(predicted))
    return float(np.average(predicted == truth, weights=check_sample_weight(sample_weight, len(truth))))


def _known_labels(y: ArrayLike, classes: tuple[Label, ...], n_rows: int) -> NDArray[Any]:
    truth = target_array(y, n_rows)
    unknown = set(np.unique(truth).tolist()) - set(classes)
    if unknown:
        shown = ", ".join(sorted(repr(label) for label in unknown)[:5])
        raise ValueError(f"y has labels that the model does not know: {shown}; its classes are {classes}")
    return truth


def risk(model: RuleEnsemble, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Weighted mean of the loss that belongs to the model's link (see `jaxrules.losses`).

    With more than two classes it is also the mean over the one-vs-rest outputs.

    Raises:
        ValueError: if `y` or `sample_weight` does not fit the rows of `X`, or if `y` has a label that the
            model does not know.
    """
    scores = np.asarray(decision_function(model, X), np.float64)
    weights = check_sample_weight(sample_weight, len(scores))
    classes = model.schema.classes
    if classes is None:
        target = regression_target(y, len(scores))
    else:
        truth = _known_labels(y, classes, len(scores))
        positive = truth == classes[1] if len(classes) == 2 else truth[:, None] == np.asarray(classes)[None]
        target = np.where(positive, 1.0, -1.0)
    losses = _LOSS_OF_LINK[model.link].value(target, scores)
    losses = losses if losses.ndim == 1 else losses.mean(axis=1)
    return float(np.average(losses, weights=weights))
