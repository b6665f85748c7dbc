"""Editing a model: drop rules, set weights by hand, refit, calibrate, simplify.

Every function returns a new model of the same type, so that calls can be chained, and the result
can be saved, explained and exported as before::

    smaller = jr.without_rules(model, [2])                # by position, or by its text
    by_hand = jr.with_weights(smaller, {0: 1.5})          # an expert's weight for one rule
    model = jr.refit(by_hand, X, y, keep=[0])             # the best weights for the others
    model = jr.calibrate(model, held_out_X, held_out_y)   # probabilities fitted to held-out rows
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.special import softmax as shares_of

from jaxrules.data.table import (
    Label,
    Table,
    TableLike,
    check_order,
    check_sample_weight,
    effective_row,
)
from jaxrules.learning.training import TrainingData, data_for, relative_spread, without_offset
from jaxrules.losses import Loss, LossFunction, logistic, loss_by_name, softmax, squared
from jaxrules.models.metrics import codes_of, known_labels, loss_of
from jaxrules.models.rule_models import (
    OrderedRules,
    RegressionList,
    RuleEnsemble,
    RuleList,
    RuleModel,
    decision_function,
    not_a_model,
    rows_for,
    rules_named,
    warn_of_threshold,
)
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import Activations
from jaxrules.solvers.linear.refit import refit_outputs, refit_weights
from jaxrules.tools import checks
from jaxrules.users.inspection import OperatingPoint, needed_conditions

Floats = NDArray[np.float64]
ModelT = TypeVar("ModelT", RuleEnsemble, RuleList, RegressionList)
ClassifierT = TypeVar("ClassifierT", RuleEnsemble, RuleList)

_AGAINST_THE_SUM = ("boosting", "lire")
"""Learners whose l2_penalty is relative to the sum of the losses; the others use their mean."""
_FEWEST_ROWS = 10
"""For calibration."""
_RIDGE = 1.0
"""Default ridge of models fitted under another penalty."""


def without_rules(model: ModelT, rules: Sequence[int | str]) -> ModelT:
    """The model without these rules; all others stay unchanged. Usually followed by `refit`.

    Args:
        model: a rule ensemble or a rule list.
        rules: by position in ``model.conjunctions``, or by text as printed.

    Raises:
        TypeError: if `model` is not a rule ensemble or list, or a position is not an integer.
        ValueError: if the model has no such rule.
    """
    _of_rules(model)
    gone = rules_named(model.conjunctions, "rules", rules)
    kept = np.setdiff1d(np.arange(len(model.conjunctions)), gone)
    if isinstance(model, RuleEnsemble):
        others, weights = model.conjunctions.take(kept), np.asarray(model.weights)[kept]
        return dataclasses.replace(model, conjunctions=others, weights=weights)
    return model.take(kept) if len(gone) else model


def refit(
    model: ModelT,
    X: TableLike,
    y: ArrayLike,
    *,
    keep: Sequence[int | str] = (),
    loss: str | Loss | LossFunction | None = None,
    l2_penalty: float | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> ModelT:
    """The same rules with the best weights for these data; for a rule list, with
    their labels, frequencies and counts (without counts if rules are kept); for a regression list,
    with the values that its loss asks for, counts and errors. A rule that decides no row here keeps
    what it said.

    The weights and the intercept (and the coefficients of linear terms, on the scale 0.4 / standard
    deviation) minimise the sum of the losses + l2_penalty / 2 sum_j w_j^2. In a model of several
    outputs, classes that do not use a rule still do not. The result is deterministic.

    Args:
        model: a rule ensemble, or a list.
        X: data with the columns of the model.
        y: the target, with the classes of the model if it has any, shape (rows,).
        keep: rules whose weights (in a list: labels and frequencies, or values) stay
            unchanged, by position or text.
        loss: None for the loss of the fit; a user's loss must be passed again.
        l2_penalty: the ridge, at least 0. None: that of the fit if it had one, else 1; the L1
            penalties of `jaxrules.rulefit` and `jaxrules.glrm` do not shrink the weights again.
        sample_weight: weight of every row, shape (rows,).
        offset, exposure: as in the learners.

    Raises:
        TypeError: if `model` is not a rule ensemble or list, or an argument has the wrong type.
        ValueError: for bad values in any argument, or data that do not fit the model.
    """
    _of_rules(model)
    kept = rules_named(model.conjunctions, "keep", keep)
    if not isinstance(model, RegressionList):
        warn_of_threshold(model)
    if isinstance(model, OrderedRules):
        checks.require(
            loss is None and l2_penalty is None and offset is None and exposure is None,
            "a rule list is refitted without loss, l2_penalty, offset and exposure",
        )
        if isinstance(model, RegressionList):
            return _valued(model, X, y, sample_weight, kept)
        return _counted(model, X, y, sample_weight, kept, before=0.0)
    chosen = loss_of(model) if loss is None else loss_by_name(loss)
    ridge = checks.optional(checks.penalty, "l2_penalty", l2_penalty)
    moves = dict(model.options).get("intercept") is not False
    check_order(X, y=y, sample_weight=sample_weight, offset=offset, exposure=exposure)
    y, sample_weight, shift = without_offset(
        chosen, y, sample_weight, offset, exposure, intercept=moves
    )
    # With offsets, scores are measured from the mean offset: the start is moved there, and the
    # result back.
    data, model = data_for(model, X, y, chosen, sample_weight), model.shifted(-shift)
    refitted = _Refit(model, data, ridge_of(model, data) if ridge is None else ridge, kept).model()
    return refitted.shifted(shift)


def ridge_of(model: RuleEnsemble, data: TrainingData) -> float:
    """The ridge of the model's fit, relative to the sum of the losses."""
    options = dict(model.options)
    ridge = options.get("chosen_l2_penalty", options.get("l2_penalty"))
    if ridge is None:
        return _RIDGE
    # A ridge relative to the mean loss is multiplied by the sum of the weights.
    total = 1.0 if options.get("learner") in _AGAINST_THE_SUM else float(data.weights.sum())
    joint = options.get("learner") in (*_AGAINST_THE_SUM, "lltboost") and model.link == "softmax"
    # `jaxrules.ensembles.noise.ridges` doubles it.
    return (2.0 if joint else 1.0) * float(ridge) * total


class _Refit:
    """The columns to weigh, rules and scaled linear terms, on merged rows if the loss allows it."""

    def __init__(
        self, model: RuleEnsemble, data: TrainingData, ridge: float, kept: NDArray[np.int64]
    ) -> None:
        self.old, self.loss, self.ridge = model, data.loss, ridge
        activations = Activations.of(model.conjunctions, data.table)
        self.columns = activations.dense.astype(np.float64)
        self.start = np.asarray(model.weights, np.float64)
        self.scale = np.ones(len(self.start))
        # A weight of 0 stays 0, unless the rule has weight 0 for all classes: then all are free.
        used = self.start != 0
        self.free = used | ~used.any(axis=1, keepdims=True)
        self.free[kept] = False
        # Rules are equal within a pattern, but linear terms are not. Merged rows have their mean
        # target; no pattern has weight 0, since rows without weight are dropped.
        merged = data.loss.mergeable and model.linear is None
        if not merged:
            self.columns = self.columns[activations.pattern]
        if model.linear is not None:
            coefficients = np.asarray(model.linear.coefficients, np.float64)
            values = model.linear.values(data.table)
            spread = relative_spread(values, data.weights)
            spread[spread == 0] = 1.0
            self.columns = np.concatenate([self.columns, values / spread], axis=1)
            self.scale = np.append(self.scale, spread)
            self.start = np.concatenate([self.start, coefficients * spread[:, None]])
            self.free = np.concatenate([self.free, coefficients != 0])
        self.target, self.weights = data.outputs, data.weights
        if merged:
            self.weights = activations.totals(data.weights)
            self.target = np.array(
                [activations.totals(data.weights * one) / self.weights for one in data.outputs]
            )

    def model(self) -> RuleEnsemble:
        """With the best weights."""
        old, intercept = self.old, np.array(self.old.intercept, np.float64)
        moves = dict(old.options).get("intercept") is not False
        weights, intercept = refit_outputs(
            softmax if old.link == "softmax" else self.loss, self.target.T, self.columns,
            l2_penalty=self.ridge, sample_weight=self.weights, start=(self.start, intercept),
            intercept=moves, free=self.free,
        )  # fmt: skip
        n, linear = len(old.conjunctions), old.linear
        if linear is not None:
            linear = dataclasses.replace(linear, coefficients=weights[n:] / self.scale[n:, None])
        return dataclasses.replace(
            old, weights=weights[:n], intercept=intercept, linear=linear, loss=self.loss.name
        )


# Labels and probabilities


def with_threshold(model: ClassifierT, threshold: float | OperatingPoint) -> ClassifierT:
    """The model that predicts the second of two classes for scores above a threshold.

    The model keeps the threshold: predictions, saved files and all exports use it, and prints,
    explanations and reports state it. Probabilities do not change. The rules of a rule list get the
    second class as their label if their probability of it is above the threshold.

    In PMML the output "prediction" uses the threshold; the target field itself stays at one half.

    Args:
        model: a rule ensemble or rule list of two classes.
        threshold: of `decision_function`, or for a rule list of the probability of the second
            class; or the result of `jaxrules.operating_point` for this model.

    Raises:
        TypeError: if `model` is not a rule ensemble or list, or the threshold is not a number.
        ValueError: if the model does not have two classes, the threshold is NaN, or gives a rule
            of a list that was fitted with `monotone` a label that would break it.
    """
    _of_rules(model)
    checks.require(len(model.schema.classes or ()) == 2, "model must have two classes")
    given = threshold.threshold if isinstance(threshold, OperatingPoint) else threshold
    # A model's threshold is finite: in place of -inf, a number below every score or probability.
    everywhere = isinstance(threshold, OperatingPoint) and given == -np.inf
    if isinstance(model, RuleEnsemble):
        number = -float(np.finfo(float).max) if everywhere else checks.number("threshold", given)
        return dataclasses.replace(model, threshold=number)
    number = -1.0 if everywhere else checks.number("threshold", given)
    labels = (model.probabilities[:, 1] > number).astype(np.int32)
    columns = dict(dict(model.options).get("monotone") or ())
    Constraints.of(model.schema, monotone=columns).check_labels(
        f"the list at the threshold {number:.6g}", model.conjunctions, labels[:-1],
        model.schema.classes or (), "choose another threshold, or fit without monotone",
    )  # fmt: skip
    return dataclasses.replace(model, labels=labels, threshold=number)


def calibrate(
    model: ClassifierT, X: TableLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> ClassifierT:
    """The model with probabilities calibrated on these rows, which should be held-out rows.

    The scores of a rule ensemble are mapped linearly: one factor for its weights and a shift of its
    intercept (Platt 1999): for each class if they were fitted one-vs-rest, with one factor for all
    if they were fitted together. The map minimises the logistic loss of the probabilities, with
    Platt's targets (N + 1) / (N + 2) in place of 1, so that it stays finite on separable rows. The
    order of the rows by score stays; labels may change, since a score of 0 still means a
    probability of one half. A threshold of `with_threshold` moves with the scores.

    Each rule of a rule list gets the class frequencies of the rows that it decides here, smoothed
    by the previous frequencies with the weight of one row per class (Cestnik's m-estimate, m the
    number of classes). Labels stay; a threshold does if they still follow it.

    The result is a model of the same type; exports and files work as before.

    Args:
        model: a rule ensemble or list with classes.
        X: held-out rows with the columns of the model.
        y: their labels, shape (rows,); every class must occur, on at least ten rows together.
        sample_weight: weight of every row, shape (rows,); rows of weight 0 are ignored.

    Raises:
        TypeError: for anything but a rule ensemble or list.
        ValueError: for a model that predicts numbers, data that do not fit it, too few rows, a
            class without rows, or scores that do not increase with the class.
    """
    _of_rules(model)
    checks.require(
        model.schema.classes is not None,
        "model predicts numbers, and has no probabilities to calibrate; jaxrules.refit, which "
        "takes offset and exposure, fits its weights to other rows",
    )
    table, codes, weights = _labelled(model, X, y, sample_weight)
    _check_enough(codes[weights > 0], model.schema.classes or ())
    if isinstance(model, RuleList):
        before = float(len(model.schema.classes or ()))
        return _counted(model, X, y, sample_weight, np.zeros(0, np.int64), before=before)
    classes: tuple[Label, ...] = model.schema.classes or ()
    scores = np.asarray(decision_function(model, table), np.float64).reshape(-1, model.n_outputs)
    if model.link == "softmax":
        slopes, shifts = _temperature(scores, codes, weights)
    else:
        doubled = 2.0 if model.link == "exponential" else 1.0
        # A single output is the score of the second of two classes.
        positive = codes[:, None] == np.arange(len(classes))[-model.n_outputs :]
        lines = [
            _platt(doubled * one, is_positive, weights, classes[len(classes) - model.n_outputs + k])
            for k, (one, is_positive) in enumerate(zip(scores.T, positive.T, strict=True))
        ]
        # The lines map log-odds. For scores s of half of them, 2 s' = a (2 s) + b: the slope is the
        # same, and the shift is half.
        slopes, shifts = np.array(lines).T / [[1.0], [doubled]]
    linear = model.linear
    if linear is not None:
        linear = dataclasses.replace(linear, coefficients=np.asarray(linear.coefficients) * slopes)
    intercept = np.asarray(model.intercept, np.float64) * slopes + shifts
    # A threshold of 0 stays: it means one half, before and after.
    threshold = model.threshold and model.threshold * float(slopes[0]) + float(shifts[0])
    return dataclasses.replace(
        model, weights=np.asarray(model.weights) * slopes, intercept=intercept, linear=linear,
        threshold=threshold,
    )  # fmt: skip


def _check_enough(codes: NDArray[np.intp], classes: tuple[Label, ...]) -> None:
    """Refuse rows that cannot calibrate: too few, or none of a class."""
    if len(codes) < _FEWEST_ROWS:
        raise ValueError(
            f"X has too few rows with a positive sample_weight, {len(codes)}; calibrating takes at "
            f"least {_FEWEST_ROWS}"
        )
    absent = [label for code, label in enumerate(classes) if not (codes == code).any()]
    if absent:
        raise ValueError(
            f"y has no row of class {absent[0]!r}, which the model predicts; calibrate on rows of "
            "every class"
        )


def _platt(
    scores: Floats, positive: NDArray[np.bool_], weights: Floats, label: Label
) -> tuple[float, float]:
    """Slope and shift of the linear map with the best log-odds."""
    n = weights @ positive, weights @ ~positive
    # (N + 1) / (N + 2) and 1 / (N + 2) as targets from -1 to 1.
    target = np.where(positive, 1 - 2 / (n[0] + 2), 2 / (n[1] + 2) - 1)
    given: dict[str, Any] = {"l2_penalty": 0.0, "intercept": True, "sample_weight": weights}
    # Equal scores say nothing about a slope: only the shift is fitted.
    if not np.ptp(scores) > 0:
        none, start = np.zeros((len(scores), 0)), (np.zeros(0), 0.0)
        return 1.0, refit_weights(logistic, target, none, start=start, offset=scores, **given)[1]
    scale = float(np.abs(scores).max())
    slope, shift = refit_weights(
        logistic, target, scores[:, None] / scale, start=(np.array([min(scale, 1.0)]), 0.0), **given
    )
    if not slope[0] > 0:
        raise ValueError(
            f"X and y cannot calibrate the model: rows of class {label!r} do not have higher "
            "scores; refit it, or use more rows"
        )
    return float(slope[0]) / scale, shift


def _temperature(scores: Floats, codes: NDArray[np.intp], weights: Floats) -> tuple[Floats, Floats]:
    """One slope for all scores and a shift for each, under the softmax loss."""
    n, n_classes = np.bincount(codes, weights, scores.shape[1]), scores.shape[1]
    # Platt's targets for K classes: (N + 1) / (N + K), and 1 / (N + K) for the others.
    target = np.full(scores.shape, 1.0) / (n[codes, None] + n_classes)
    target[np.arange(len(codes)), codes] *= n[codes] + 1
    total, scale = weights.sum(), float(np.abs(scores).max()) or 1.0

    # The mean of w_i (logsumexp(z_i) - t_i z_i) with z = slope s + shift, and its derivatives by
    # w_i (softmax(z_i) - t_i). Scores are divided by their largest, and the start is slope 1.
    def objective(at: Floats) -> tuple[float, Floats]:
        mapped = at[0] / scale * scores + at[1:]
        slopes = weights[:, None] * (shares_of(mapped, axis=1) - target) / total
        loss = weights @ (logsumexp(mapped, axis=1) - (target * mapped).sum(axis=1)) / total
        return float(loss), np.append((slopes * scores).sum() / scale, slopes.sum(axis=0))

    start = np.append(scale, np.zeros(n_classes))
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9}
    ).x
    if not found[0] > 0:
        raise ValueError(
            "X and y cannot calibrate the model: the rows of a class do not have higher scores "
            "for it; refit it, or use more rows"
        )
    # A number added to all scores changes no probability: the shifts are centred.
    return np.full(n_classes, found[0] / scale), found[1:] - found[1:].mean()


def _counted(
    model: RuleList,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    kept: NDArray[np.int64],
    before: float,
) -> RuleList:
    """The class frequencies of the rows that each rule decides, plus the previous ones with this
    weight; without it, plus one row per class, and with new labels.
    """
    table, codes, weights = _labelled(model, X, y, sample_weight)
    counts, unit = np.zeros_like(model.probabilities), effective_row(weights)
    np.add.at(counts, (model.position(table), codes), weights)
    # In effective rows, so that a factor of all weights changes nothing. Of m classes with the old
    # shares p_c, the new ones are (n_c + m p_c) / (n + m); without old ones, (n_c + 1) / (n + m).
    decided = counts / unit
    prior = before * model.probabilities if before else np.ones_like(decided)
    shares = (decided + prior) / (decided + prior).sum(axis=1, keepdims=True)
    labels = model.labels
    if not before:
        # A rule that decides no row here keeps its label.
        labels = np.where(decided.any(axis=1), decided.argmax(axis=1), labels).astype(np.int32)
    labels[kept], shares[kept] = model.labels[kept], model.probabilities[kept]
    known = not before and not len(kept)  # other frequencies do not come from these rows alone
    threshold = model.threshold
    if threshold is not None and ((shares[:, 1] > threshold) != labels).any():
        threshold = None
    return dataclasses.replace(
        model, labels=labels, probabilities=shares, threshold=threshold,
        counts=counts if known else None, weighted=unit != 1.0,
    )  # fmt: skip


def _valued(
    model: RegressionList,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    kept: NDArray[np.int64],
) -> RegressionList:
    """The means or medians of the rows that each rule decides; `kept` rules keep their values."""
    data, old = data_for(model, X, y, squared, sample_weight), np.asarray(model.values, np.float64)
    refitted = RegressionList.of_rows(
        model.conjunctions, model.position(data.table), data.target, data.weights, model.loss,
        model.options, old,
    )  # fmt: skip
    if not len(kept):
        return refitted
    values = np.asarray(refitted.values).copy()
    values[kept] = old[kept]
    # The errors are about the values that were replaced.
    return dataclasses.replace(refitted, values=values, errors=None)


def _labelled(
    model: RuleModel, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Table, NDArray[np.intp], Floats]:
    """Rows, the codes of their classes, and their weights."""
    check_order(X, y=y, sample_weight=sample_weight)
    table, classes = rows_for(model, X), model.schema.classes or ()
    codes = codes_of(known_labels(y, classes, table.n_rows), classes)
    return table, codes, check_sample_weight(sample_weight, table.n_rows)


# Shorter forms


def simplify(model: ModelT, X: TableLike) -> ModelT:
    """A shorter form of the same model: on these rows every rule and every
    prediction stays the same.

    Conditions that make no difference to their rule on the rows are dropped, thresholds are
    rounded as far as no row changes sides, rules of weight 0 are dropped, and rules with equal
    conditions are merged (in a list, the first stays). Other rows may fall between an old
    threshold and the new one.

    Args:
        model: a rule ensemble or a rule list.
        X: the training rows, or any rows on which the model must stay the same.

    Raises:
        TypeError: for anything but a rule ensemble or list.
        ValueError: if `X` does not fit the model's columns, or has no rows.
    """
    _of_rules(model)
    table, rules = rows_for(model, X), model.conjunctions
    shorter = [[rule[i] for i in needed_conditions(rule, table)] for rule in rules]
    # A rule that lost conditions is counted anew, but never as longer than before.
    counts = rules.propositions.tolist()
    for r, (one, rule) in enumerate(zip(shorter, rules, strict=True)):
        if len(one) < len(rule):
            counts[r] = min(counts[r], sum(c.n_propositions(rules.schema) for c in one))
    conjunctions = Conjunctions.build(rules.schema, shorter, counts).with_short_thresholds(table)
    # Of rules with equal conditions, the first stands for all: a later one in a list decides no
    # row, and in a sum the weights are added.
    place: dict[frozenset[Any], int] = {}
    first = np.array(
        [place.setdefault(frozenset(rule), i) for i, rule in enumerate(conjunctions)], np.int64
    )
    kept = np.unique(first)
    if isinstance(model, OrderedRules):
        # Without counts: training rows that are not in X may change sides.
        return dataclasses.replace(model.take(kept), conjunctions=conjunctions.take(kept))
    weights = np.zeros_like(np.asarray(model.weights, np.float64))
    np.add.at(weights, first, np.asarray(model.weights, np.float64))
    always = conjunctions.lengths == 0  # true on all rows: join the intercept
    intercept = np.asarray(model.intercept, np.float64) + weights[always].sum(axis=0)
    kept = kept[weights[kept].any(axis=1) & ~always[kept]]
    return dataclasses.replace(
        model, conjunctions=conjunctions.take(kept), weights=weights[kept], intercept=intercept
    )


def _of_rules(model: Any) -> None:
    if not isinstance(model, (RuleEnsemble, OrderedRules)):
        not_a_model(model, "a rule ensemble or list")
