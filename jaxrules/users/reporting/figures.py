"""The figures of a report: what rules cover, how good a model is, and both by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Label, Table, regression_target
from jaxrules.losses import logistic, squared
from jaxrules.models.metrics import codes_of, known_labels, loss_of, risk
from jaxrules.models.persistence import Json
from jaxrules.models.rule_models import (
    OrderedRules,
    RegressionList,
    RuleEnsemble,
    RuleList,
    decision_function,
    predict,
    predict_proba,
)
from jaxrules.paths.model import ModelSequence
from jaxrules.tools import display
from jaxrules.tools.checks import require
from jaxrules.users.export.program import FirstMatch, Program, Sum
from jaxrules.users.inspection import group_of_rows, importances_of_parts, scores_of_groups
from jaxrules.users.reporting.subject import Known, Model

Floats = NDArray[np.float64]
Parts = Sequence[tuple[Model, Any]]
"""Models, and the rows that each predicts: one model and all rows, or those of folds and their
held-out rows.
"""

MOST_GROUPS = 20
_BINS = 10
"""Bins of the calibration, of equally many rows."""
_POINTS = 200
"""The most points of a ROC curve."""


@dataclass(frozen=True, eq=False)
class FigureRows:
    """The rows that a report is about.

    Attributes:
        table: their columns.
        y: the labels or numbers.
        classes: of the models; None for numbers.
        truth: the class codes or the numbers, without a known part of them (see `Known`), shape
            (rows,).
        weight: of each row in means over rows, shape (rows,).
        known: the offset or exposure.
        groups: as the user gave them, or None.
        group_names: the groups in order; empty without groups.
        group: the group of every row, as a position there, shape (rows,).
    """

    table: Table
    y: ArrayLike
    classes: tuple[Label, ...] | None
    truth: NDArray[Any]
    weight: Floats
    known: Known
    groups: ArrayLike | None
    group_names: tuple[str, ...]
    group: NDArray[np.int64]

    @classmethod
    def of(
        cls, model: Model, table: Table, y: ArrayLike, groups: ArrayLike | None, known: Known
    ) -> FigureRows:
        """The rows of a table with their targets and groups, checked.

        Raises:
            TypeError, ValueError: if `y` or `groups` does not fit the rows or the model.
        """
        classes, n = model.schema.classes, table.n_rows
        require(n > 0, "X has no rows")
        known.check(model)
        truth: NDArray[Any]
        weight = np.ones(n)
        if classes is None:
            truth, weight = known.relative(model, regression_target(y, n))
        else:
            truth = codes_of(known_labels(y, classes, n), classes)
        if groups is None:
            nowhere = np.zeros(n, np.int64)
            return cls(table, y, classes, truth, weight, known, None, (), nowhere)
        found, group = group_of_rows(model, table, groups, n)
        require(
            len(found) <= MOST_GROUPS,
            f"groups has {len(found)} distinct values, and a report shows at most {MOST_GROUPS}; "
            "merge them first, e.g. numbers into intervals",
        )
        names = tuple(_name(one) for one in found.tolist())
        return cls(table, y, classes, truth, weight, known, groups, names, group)

    def sums(self, rows: slice) -> Floats:
        """What is summed over the rows of a rule, of all rows and of each group: 1, and the
        indicators of the classes, shape (rows, 1 + groups, 1 + classes), or the weighted number and
        the weight, shape (rows, 1 + groups, 3).
        """
        truth, group, weight = self.truth[rows], self.group[rows], self.weight[rows]
        ones = np.ones((len(truth), 1))
        if self.classes is None:
            targets = np.stack([weight * truth, weight], axis=1)
        else:
            targets = _indicators(truth, len(self.classes))
        inside = np.append(ones, _indicators(group, len(self.group_names)), axis=1)
        return inside[:, :, None] * np.append(ones, targets, axis=1)[:, None, :]


def _name(group: Any) -> str:
    if isinstance(group, float):
        return "(missing)" if np.isnan(group) else display.number(group)
    return display.plain(group)


def _indicators(codes: NDArray[Any], n: int) -> Floats:
    return (codes[:, None] == np.arange(n)[None]).astype(np.float64)


# Rules


def rules_json(model: Model, program: Program, rows: FigureRows) -> list[Json]:
    """How many rows each rule of the program holds for (in a list: decides), and of which kind they
    are; in a list also the default, last.

    "target" is the class whose share the "rate" is: of two classes the second, of several that of
    the largest weight, in a list the label. "lift" is this rate divided by that of all rows; for
    numbers the rate is their mean, and "lift" its difference from the mean of all rows.
    """
    everything = rows.sums(slice(None)).sum(axis=0)
    pairs = zip(_covered(model, program, rows), _targets(program, rows), strict=True)
    return [_rule(sums, everything, target, rows.classes is None) for sums, target in pairs]


def importances_json(model: Model, program: Program, rows: FigureRows) -> list[float]:
    """The importances of the rules and terms of the program of an ensemble, in its order, see
    `jaxrules.importance`; empty for other models.
    """
    if not isinstance(model, RuleEnsemble):
        return []
    rules, terms = importances_of_parts(model, rows.table)
    used = [rule.position for rule in program.rules]
    if model.linear is not None:  # the program has the terms with a coefficient, in order
        terms = terms[model.linear.used]
    return [*rules[used].tolist(), *terms.tolist()]


def _covered(model: Model, program: Program, rows: FigureRows) -> Floats:
    """`FigureRows.sums` over the rows of each rule, shape (rules, 1 + groups, 1 + classes)."""
    if isinstance(model, ModelSequence):
        return np.zeros((0, 1, 1))
    positions = [rule.position for rule in program.rules]
    total: Any = 0.0
    for batch, satisfied in model.conjunctions.take(positions).batches(rows.table):
        covered = satisfied.astype(np.float64)
        if isinstance(model, OrderedRules):  # the first that holds decides
            first = np.append(covered, np.ones((len(covered), 1)), axis=1).argmax(axis=1)
            covered = _indicators(first, len(positions) + 1)
        total += np.tensordot(covered, rows.sums(batch), axes=(0, 0))
    return np.asarray(total)


def _targets(program: Program, rows: FigureRows) -> list[int]:
    if isinstance(program, FirstMatch) and rows.classes is None:
        return [0] * len(program.labels)
    if isinstance(program, FirstMatch):
        classes = program.schema.classes or ()
        return [classes.index(label) for label in program.labels]
    several = rows.classes is not None and len(rows.classes) > 2
    usual = 0 if rows.classes is None else 1
    return [int(np.argmax(np.abs(rule.weights))) if several else usual for rule in program.rules]


def _rule(sums: Floats, everything: Floats, target: int, is_number: bool) -> Json:
    held, of_target, n = sums[:, 0], sums[:, 1 + target], everything[:, 0]
    out_of = 2 if is_number else 0  # the weights, or the rows
    rates = [_ratio(a, b) for a, b in zip(of_target, sums[:, out_of], strict=True)]
    usual = everything[0, 1 + target] / everything[0, out_of]
    lift = None
    if rates[0] is not None:
        lift = rates[0] - usual if is_number else _ratio(rates[0], usual)
    shares = [_ratio(a, b) for a, b in zip(held, n, strict=True)]
    groups = [list(pair) for pair in zip(shares[1:], rates[1:], strict=True)]
    figures = {"rows": int(held[0]), "coverage": shares[0], "rate": rates[0], "lift": lift}
    return {**figures, "target": target, "groups": groups}


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


# Quality


def quality_json(parts: Parts, program: Program, rows: FigureRows) -> Json:
    """Risk, and for classes the confusion matrix, ROC curves and calibration."""
    predicted = joined(predict, parts, rows)
    if rows.classes is None:
        return _of_numbers(parts, predicted, rows)
    shares = joined(predict_proba, parts, rows)
    n = len(rows.classes)
    said = codes_of(predicted, rows.classes)
    truth = _indicators(rows.truth, n)
    name, value = _risk(parts, rows, float((said != rows.truth).mean()))
    single = isinstance(program, Sum) and n == 2
    scores = joined(decision_function, parts, rows)[:, None] if single else shares[:, -1:]
    curves = [
        {"class": k, **_curve(score, truth[:, k] == 1, shares[:, k])}
        for k, score in ([(1, scores[:, 0])] if n == 2 else enumerate(shares.T))
    ]
    even = np.ones(len(said))
    groups = scores_of_groups(said, rows.truth, rows.group_names, rows.group, tuple(range(n)), even)
    return {
        "risk": [name, value],
        "figures": {
            "accuracy": float((said == rows.truth).mean()),
            name: value,
            "Brier score": float(((shares - truth) ** 2).sum(axis=1).mean() / (2 if n == 2 else 1)),
        },
        "confusion": (truth.T @ _indicators(said, n)).astype(int).tolist(),
        "curves": curves,
        "groups": [scores[1:] for scores in groups] if rows.group_names else [],
    }


def joined(ask: Any, parts: Parts, rows: FigureRows) -> NDArray[Any]:
    """What `ask` returns for every row, of the model that predicts it."""
    found = np.concatenate([np.asarray(ask(model, rows.table[place])) for model, place in parts])
    every = np.arange(rows.table.n_rows)
    # Each row is in one part: the places are a permutation, and `argsort` inverts it.
    return found[np.argsort(np.concatenate([every[place] for _, place in parts]))]


def _of_numbers(parts: Parts, predicted: Floats, rows: FigureRows) -> Json:
    def mean(values: Floats, rows_in: Any = slice(None)) -> float:
        return float(np.average(values[rows_in], weights=rows.weight[rows_in]))

    residuals = rows.truth - predicted
    spread = mean((rows.truth - mean(rows.truth)) ** 2)
    error = mean(residuals**2)
    name, value = _risk(parts, rows, error)
    figures = {
        name: value,
        "R²": 1 - error / spread if spread else None,
        "root mean squared error": error**0.5,
        "mean absolute error": mean(np.abs(residuals)),
    }
    groups = []
    for inside in (rows.group == k for k in range(len(rows.group_names))):
        means = [mean(values, inside) for values in (rows.truth, predicted, residuals**2)]
        groups.append([int(inside.sum()), *means[:2], means[2] ** 0.5])
    calibration = _calibration(predicted, rows.truth, rows.weight)
    return {"risk": [name, value], "figures": figures, "calibration": calibration, "groups": groups}


def _risk(parts: Parts, rows: FigureRows, otherwise: float) -> tuple[str, float]:
    """The mean of the loss of the fit, or of the usual one; `otherwise` for models without one."""
    usual, model = squared if rows.classes is None else logistic, parts[0][0]
    if isinstance(model, (RuleEnsemble, RegressionList)):
        try:
            usual = loss_of(model)
        except ValueError:  # a user's loss, which the model does not keep
            return ("mean squared error" if rows.classes is None else "error rate"), otherwise
    elif isinstance(model, RuleList):
        return "error rate", otherwise
    if rows.known:  # of one model and all rows
        given = {"offset": rows.known.offset, "exposure": rows.known.exposure}
        value = risk(cast(RuleEnsemble, model), rows.table, rows.y, loss=usual, **given)
        return f"mean {usual.name} loss", value
    y = rows.truth if rows.classes is None else np.asarray(rows.classes)[rows.truth]
    scored: Any = parts
    total = sum(
        len(y[place]) * risk(one, rows.table[place], y[place], loss=usual) for one, place in scored
    )
    return f"mean {usual.name} loss", total / len(y)


def _curve(score: Floats, positive: NDArray[np.bool_], share: Floats) -> Json:
    """ROC curve, the area under it with its standard error, the largest difference of its two
    rates, the numbers of rows of the class and of the rest, and calibration of one class against
    the rest.
    """
    calibration = _calibration(share, positive.astype(np.float64))
    n_positive, n = int(positive.sum()), len(positive)
    known: Json = {"rows": [n_positive, n - n_positive], "calibration": calibration}
    if n_positive in (0, n):
        return {"roc": None, "auc": None, "auc_error": None, **known}
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.diff(score[order]) != 0, True)  # equal scores are one step
    hits, seen = np.cumsum(positive[order])[ends], np.flatnonzero(ends) + 1
    true = np.append(0.0, hits / n_positive)
    false = np.append(0.0, (seen - hits) / (n - n_positive))
    # A step of equal scores is a slope, whose trapezoid counts each of its pairs as half.
    area = float(np.trapezoid(true, false))
    shown = np.unique(np.linspace(0, len(true) - 1, min(len(true), _POINTS)).round().astype(int))
    points = np.stack([false, true], axis=1)[shown].round(5)
    apart = float((true - false).max())
    error = auc_error(score, positive)
    return {"roc": points.tolist(), "auc": area, "auc_error": error, "ks": apart, **known}


def auc_error(score: Floats, positive: NDArray[np.bool_]) -> float | None:
    """The standard error of the area under the ROC curve (DeLong et al. 1988): with the share of
    rows of the other class that every row ranks correctly, V, it is the root of var(V of the class)
    / its rows + var(V of the rest) / its rows. None with a single row in either.
    """
    above, below = np.sort(score[positive]), np.sort(score[~positive])
    if min(len(above), len(below)) < 2:
        return None

    def lower(of: Floats, among: Floats) -> Floats:  # equal scores count half
        ends = [np.searchsorted(among, of, side) for side in ("left", "right")]
        return np.asarray((ends[0] + ends[1]) / (2 * len(among)))

    parts = ((lower(above, below), len(above)), (lower(below, above), len(below)))
    return float(sum(one.var(ddof=1) / n for one, n in parts) ** 0.5)


def _calibration(
    predicted: Floats, observed: Floats, weight: Floats | None = None
) -> list[list[float]]:
    """Mean prediction, mean observation and number of rows in bins of the prediction; equal
    predictions share a bin. The means have these weights of the rows.
    """
    weight = np.ones(len(predicted)) if weight is None else weight
    values, place = np.unique(predicted, return_inverse=True)
    if len(values) > _BINS:
        # Equal cuts become one; predictions equal to a cut lie below it, so that they share a bin.
        cuts = np.unique(np.quantile(predicted, np.arange(1, _BINS) / _BINS))
        place = np.searchsorted(cuts, predicted)
    counts = np.bincount(place)
    kept = np.flatnonzero(counts)
    total = np.bincount(place, weight)[kept]
    means = [np.bincount(place, weight * of)[kept] / total for of in (predicted, observed)]
    return [list(one) for one in zip(*(of.tolist() for of in (*means, counts[kept])), strict=True)]
