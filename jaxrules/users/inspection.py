"""Inspection of models: importance and overlap of rules, scores by group,
and choice of a threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import (
    Label,
    Table,
    TableLike,
    check_order,
    check_sample_weight,
    conform,
    in_order,
    label_order,
    target_array,
)
from jaxrules.models.metrics import known_labels, used_rules
from jaxrules.models.rule_models import (
    OrderedRules,
    RuleEnsemble,
    RuleList,
    decision_function,
    not_a_model,
    predict,
    predict_proba,
    rows_for,
)
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.rules.rows import needed
from jaxrules.tools import checks, display

Floats = NDArray[np.float64]


class Importance(NamedTuple):
    """A rule or linear term as text, its importance, and its weight in the score
    (per unit for a linear term).

    `weight` is None in rule lists and for more than one output.
    """

    text: str
    value: float
    weight: float | None


@checks.verb
def importance(model: Any, X: TableLike) -> tuple[Importance, ...]:
    """The importance of rules and linear terms, the most important first,
    without those of importance 0.

    In an ensemble it is the standard deviation of the contribution to the score over the rows of
    `X`: for a rule |weight| sqrt(s (1 - s)) with its share of rows s (Friedman and Popescu 2008,
    Eq. 28 and 29); averaged over outputs. In a rule list it is the share of rows that the rule
    decides; the default is "otherwise".

    Raises:
        TypeError: for anything but a rule ensemble or list.
        ValueError: if `X` does not fit the model's columns.
    """
    not_a_model(model, "a rule ensemble or list")


@importance.register
def _(model: RuleEnsemble, X: TableLike) -> tuple[Importance, ...]:
    table, weights = rows_for(model, X), np.asarray(model.weights, np.float64)
    texts = [model.conjunctions.describe(r) for r in range(len(weights))]
    if model.linear is not None:
        weights = np.concatenate([weights, np.asarray(model.linear.coefficients, np.float64)])
        texts += [model.linear.describe(t, model.schema) for t in range(len(model.linear.feature))]
    of_rules, of_terms = importances_of_parts(model, table)
    values, one_output = np.concatenate([of_rules, of_terms]), model.n_outputs == 1
    return _ranked(texts, values, weights[:, 0].tolist() if one_output else [None] * len(texts))


@importance.register
def _(model: OrderedRules, X: TableLike) -> tuple[Importance, ...]:
    shares, rules = decided_shares(model, rows_for(model, X)), model.conjunctions
    texts = [*(rules.describe(r, " AND ") for r in range(len(rules))), "otherwise"]
    return _ranked(texts, shares, [None] * len(texts))


def importances_of_parts(model: RuleEnsemble, table: Table) -> tuple[Floats, Floats]:
    """The importances of the rules and of the linear terms of an ensemble, see `importance`."""
    held = np.zeros(len(model.conjunctions))
    for _, satisfied in model.conjunctions.batches(table):
        held += satisfied.sum(axis=0)
    share, of_terms = held / table.n_rows, np.zeros(0)
    # The standard deviation of 0 / 1 is sqrt(s (1 - s)).
    of_rules = _mean_size(model.weights) * np.sqrt(share * (1 - share))
    if model.linear is not None:
        of_terms = _mean_size(model.linear.coefficients) * model.linear.values(table).std(axis=0)
    return of_rules, of_terms


def _mean_size(weights: ArrayLike) -> Floats:
    """The mean absolute weight over the outputs, one per rule or term."""
    return np.abs(np.asarray(weights, np.float64)).mean(axis=1)


def decided_shares(model: OrderedRules, table: Table) -> Floats:
    """The share of rows that each rule of a list decides, and at last the default."""
    return np.bincount(model.position(table), minlength=len(model.conjunctions) + 1) / table.n_rows


def _ranked(
    texts: list[str], values: Floats, weights: Sequence[float | None]
) -> tuple[Importance, ...]:
    found = map(Importance, texts, values.tolist(), weights)
    return tuple(sorted((one for one in found if one.value), key=lambda one: -one.value))


# Overlap and redundancy


class RuleUse(NamedTuple):
    """Statistics of a rule on some rows.

    Attributes:
        text: the rule.
        rows: the share of rows on which it holds.
        alone: the share of rows on which no other rule in use holds.
        like: the position in the report of the rule that overlaps most; None for a single rule.
        overlap: rows of both / rows of either (Jaccard).
        idle: its conditions that can all be removed together without changing
            the rows on which it holds.
    """

    text: str
    rows: float
    alone: float
    like: int | None
    overlap: float
    idle: tuple[str, ...]


@dataclass(frozen=True)
class RuleReport:
    """The rules of a model that are in use, in order, and their overlap.

    Attributes:
        rules: one `RuleUse` each.
        overlap: rows of both / rows of either for every pair, shape (rules,
            rules); 0 where neither holds.
    """

    rules: tuple[RuleUse, ...]
    overlap: NDArray[np.float64]

    def __str__(self) -> str:
        return display.text_table(*self._rows())

    def _repr_html_(self) -> str:
        return display.html_table(
            f"{display.counted(len(self.rules), 'rule')} in use", *self._rows()
        )

    def _rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows: list[tuple[str, ...]] = [
            (
                str(number), f"{rule.rows:.1%}", f"{rule.alone:.1%}",
                "" if rule.like is None else f"{rule.overlap:.0%} with {rule.like + 1}",
                rule.text + (f"   (idle: {', '.join(rule.idle)})" if rule.idle else ""),
            )
            for number, rule in enumerate(self.rules, start=1)
        ]  # fmt: skip
        return ("", "rows", "alone", "overlap", "rule"), rows


def needed_conditions(rule: Sequence[Condition], table: Table) -> list[int]:
    """The positions of the conditions of a rule without which it would hold on other rows."""
    alone = Conjunctions.build(table.schema, [[condition] for condition in rule])
    return needed(alone.satisfied(table).T, [1.0] * len(rule))


def rule_report(model: RuleEnsemble | OrderedRules, X: TableLike) -> RuleReport:
    """How often rules hold, which are nearly the same, and which conditions make no
    difference on these rows.

    Raises:
        TypeError: for anything but a rule ensemble or list.
        ValueError: if `X` does not fit the model's columns.
    """
    if not isinstance(model, (RuleEnsemble, OrderedRules)):
        not_a_model(model, "a rule ensemble or list")
    rules, table = used_rules(model), rows_for(model, X)
    both, alone = np.zeros((len(rules), len(rules))), np.zeros(len(rules))
    for _, satisfied in rules.batches(table):
        both += satisfied.T.astype(np.float64) @ satisfied
        alone += satisfied[satisfied.sum(axis=1) == 1].sum(axis=0)
    held = np.diag(both)
    # Jaccard: |A and B| / |A or B|, with |A or B| = |A| + |B| - |A and B|; 0 if neither ever holds.
    overlap = both / np.maximum(held[:, None] + held - both, 1)
    # No rule is the one that overlaps itself most.
    others = np.where(np.eye(len(rules), dtype=bool), -1.0, overlap)
    used = []
    for r, rule in enumerate(rules):
        kept = needed_conditions(rule, table)
        idle = tuple(one.describe(rules.schema) for i, one in enumerate(rule) if i not in kept)
        like = int(others[r].argmax()) if len(rules) > 1 else None
        share = held[r] / table.n_rows, alone[r] / table.n_rows
        most = 0.0 if like is None else float(overlap[r, like])
        used.append(RuleUse(rules.describe(r), *share, like, most, idle))
    return RuleReport(tuple(used), overlap)


# Groups and thresholds


class GroupScores(NamedTuple):
    """How well the rows of one group are predicted; see `scores_by_group`."""

    group: Any
    rows: int
    accuracy: float | None
    alarms: float | None
    false_positive_rate: float | None
    false_negative_rate: float | None


class GroupRatio(NamedTuple):
    """How often the rows of a group get the favourable prediction.

    Attributes:
        share: of the rows, by weight.
        low, high: its 95 % interval (Wilson 1927).
        ratio: the share divided by that of the group with the largest one.
        ratio_low, ratio_high: its 95 % interval (Katz et al. 1978); None for the group with the
            largest share, and where a share is 0.
    """

    share: float
    low: float
    high: float
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None

    @property
    def four_fifths(self) -> bool:
        """Whether the ratio is at least 4/5, the threshold of the US Uniform Guidelines (1978)."""
        return self.ratio is None or self.ratio >= _FOUR_FIFTHS


_FOUR_FIFTHS = 0.8
_QUANTILE = 1.959963984540054
"""Of the normal distribution, for intervals of 95 %."""


def wilson(share: ArrayLike, size: ArrayLike) -> tuple[Floats, Floats]:
    """The 95 % interval of shares of so many rows (Wilson 1927); it stays within 0 and 1, also for
    shares of 0 and 1.
    """
    p, z2 = np.asarray(share, np.float64), _QUANTILE**2 / np.asarray(size, np.float64)
    middle = (p + z2 / 2) / (1 + z2)
    half = np.sqrt(np.maximum(z2 * p * (1 - p) + z2**2 / 4, 0.0)) / (1 + z2)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


class GroupTable(display.Tabulated, tuple[GroupScores, ...]):
    """The scores of the groups, in order, and their ratios; prints as a table.

    Attributes:
        favourable: the favourable prediction; None for models of more classes, without one.
        ratios: per group; None for a group without weight, or without a favourable prediction.
    """

    favourable: Label | None
    ratios: tuple[GroupRatio | None, ...]

    def __new__(
        cls,
        scores: Iterable[GroupScores],
        favourable: Label | None,
        ratios: Iterable[GroupRatio | None],
    ) -> GroupTable:
        made = super().__new__(cls, scores)
        made.favourable, made.ratios = favourable, tuple(ratios)
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.favourable, self.ratios

    def _caption(self) -> str:
        broken = [one for one in self.ratios if one is not None and not one.four_fifths]
        of = display.counted(len(self), "group")
        if self.favourable is None:
            return of
        said = display.plain(self.favourable)
        if not broken:
            return f"{of}; favourable: {said}; all ratios are at least 4/5"
        sure = sum((one.ratio_high or 0.0) < _FOUR_FIFTHS for one in broken)
        return (
            f"{of}; favourable: {said}; {len(broken)} below 4/5 of the largest share, {sure} of "
            "them beyond chance"
        )

    def tabulated(self) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
        header = (
            *("group", "rows", "accuracy", "favourable", "95 %", "ratio", "95 %"),
            *("false positives", "false negatives"),
        )
        rows = []
        for one, ratio in zip(self, self.ratios, strict=True):
            share = within = relative = between = ""
            if ratio is not None:
                share, within = f"{ratio.share:.1%}", f"{ratio.low:.1%} to {ratio.high:.1%}"
                relative = "" if ratio.ratio is None else f"{ratio.ratio:.2f}"
            if ratio is not None and ratio.ratio_low is not None:
                between = f"{ratio.ratio_low:.2f} to {ratio.ratio_high:.2f}"
            right, *wrong = (
                "" if rate is None else f"{rate:.1%}"
                for rate in (one.accuracy, one.false_positive_rate, one.false_negative_rate)
            )
            group = display.plain(one.group)
            rows.append((group, str(one.rows), right, share, within, relative, between, *wrong))
        return self._caption(), header, rows


def scores_by_group(
    model: Any,
    X: TableLike,
    y: ArrayLike,
    groups: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    favourable: Label | None = None,
) -> GroupTable:
    """Accuracy, error rates and favourable predictions of each group of rows, in the order that
    `groups` declares (an ordered categorical, an Enum of polars), else sorted.

    For two classes also the share of rows predicted as the second class (alarms), the share
    of these among rows of the first class (false positives), and the share of other
    predictions among rows of the second (false negatives). None without such rows (of
    positive weight), or for more classes. The ratios of the shares with a favourable prediction
    to the largest of them, with intervals, show whether the four-fifths rule holds.

    Args:
        model: any model with classes.
        X, y: the data.
        groups: the group of each row, or the name of a column of `X`.
        sample_weight: weight of every row, shape (rows,). Intervals take (sum w)^2 / sum w^2 for
            the number of rows.
        favourable: the class that rows would rather be predicted as; None for the first of two, as
            the second is the one of alarms.

    Raises:
        ValueError: if an argument does not fit the rows, or the model predicts numbers.

    Example:
        >>> import jaxrules as jr
        >>> X = [{"income": 10 * i} for i in range(8)]
        >>> y = ["default"] * 4 + ["repaid"] * 4
        >>> model = jr.exact_list.fit(X, y, max_rules=1, positive="default").model
        >>> found = jr.scores_by_group(model, X, y, ["f", "m"] * 4)
        >>> [one.alarms for one in found], [one.ratio for one in found.ratios]
        ([0.5, 0.5], [1.0, 1.0])
    """
    checks.concrete("X", X)
    check_order(X, y=y, groups=groups, sample_weight=sample_weight)
    predicted, classes = np.asarray(predict(model, X)), model.schema.classes
    checks.require(
        classes is not None,
        "model predicts numbers; scores by group are for classes, and jaxrules.report(groups=...) "
        "has means and errors by group",
    )
    if favourable is not None:
        known = isinstance(favourable, (str, bool, int, float, np.generic))
        checks.require(
            known and favourable in classes,
            f"favourable must be one of the classes {classes}, got {favourable!r}",
        )
    elif len(classes) == 2:
        favourable = classes[0]
    truth = known_labels(y, classes, len(predicted))
    weights = check_sample_weight(sample_weight, len(predicted))
    names, group = group_of_rows(model, X, groups, len(predicted))
    scores = scores_of_groups(predicted, truth, names.tolist(), group, classes, weights)
    ratios: Sequence[GroupRatio | None] = [None] * len(names)
    if favourable is not None:
        ratios = _ratios(predicted == favourable, group, len(names), weights)
    return GroupTable(scores, favourable, ratios)


def _ratios(
    well: NDArray[np.bool_], group: NDArray[np.intp], n: int, weights: NDArray[np.float64]
) -> list[GroupRatio | None]:
    """The shares of the groups, and their ratios to the largest."""
    total = np.bincount(group, weights, n)
    squares = np.bincount(group, weights**2, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.bincount(group, weights * well, n) / total  # NaN without weight
        sizes = total**2 / squares
    best = int(np.nanargmax(shares)) if (total > 0).any() else 0
    found: list[GroupRatio | None] = []
    for k, (share, size) in enumerate(zip(shares.tolist(), sizes.tolist(), strict=True)):
        if not total[k] > 0:
            found.append(None)
            continue
        start, end = map(float, wilson(share, size))
        largest, low, high = float(shares[best]), None, None
        ratio = share / largest if largest > 0 else None
        if ratio and k != best:
            # The logarithm of a ratio of shares has the variance sum of (1 - p) / (n p).
            variance = (1 - share) / (size * share) + (1 - largest) / (float(sizes[best]) * largest)
            # Beyond e^50 the interval says nothing, and must not overflow.
            spread = float(np.exp(min(_QUANTILE * np.sqrt(max(variance, 0.0)), 50.0)))
            low, high = ratio / spread, ratio * spread
        found.append(GroupRatio(share, start, end, ratio, low, high))
    return found


def scores_of_groups(
    predicted: NDArray[Any],
    truth: NDArray[Any],
    names: Sequence[Any],
    group: NDArray[np.intp],
    classes: tuple[Label, ...],
    weights: NDArray[np.float64],
) -> tuple[GroupScores, ...]:
    """`scores_by_group` of predictions; all but `names` and `classes` of shape (rows,)."""
    alarm, positive, found = predicted == classes[1], truth == classes[1], []
    for code, name in enumerate(names):
        inside = group == code
        right = _share(predicted == truth, inside, weights)
        parts = (alarm, inside), (alarm, inside & ~positive), (~alarm, inside & positive)
        of_two = (_share(*part, weights) if len(classes) == 2 else None for part in parts)
        found.append(GroupScores(name, int(inside.sum()), right, *of_two))
    return tuple(found)


def group_of_rows(
    model: Any, X: TableLike, groups: ArrayLike, n_rows: int
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The groups, in order, and the code of every row's group, shape (rows,): as given, or the
    numbers or categories of the column of `X` that `groups` names.

    Raises:
        ValueError: if it fits neither the rows nor a column.
    """
    if not isinstance(groups, str):
        return in_order(target_array(groups, n_rows, "groups"), label_order(groups))
    table = conform(X, model.schema)
    checks.require(
        groups in table.names,
        f"groups must be one group per row or the name of a column of X, which has no {groups!r}",
    )
    place = table.names.index(groups)
    feature, column = table.schema.features[place], table.columns[place]
    if feature.levels is not None:
        missing, known = table.missing_mask(place), (*map(str, feature.levels), "(missing)")
        return in_order(np.array(known)[np.where(missing, -1, column).astype(np.int64)], known)
    if feature.categories is None:
        special = feature.special_values is not None
        return in_order(np.asarray(table.to_columns()[groups]) if special else column, ())
    # The codes -2 and -1 count from the end.
    return in_order(np.array([*feature.categories, "(unseen)", "(missing)"])[column], ())


def _share(
    what: NDArray[np.bool_], among: NDArray[np.bool_], weights: NDArray[np.float64]
) -> float | None:
    total = float(weights[among].sum())
    return float(weights[among & what].sum() / total) if total else None


class OperatingPoint(NamedTuple):
    """A threshold, the share of rows above it, and, given targets, the share of each class above
    it.

    Attributes:
        threshold: pass it, or the whole operating point, to `jaxrules.with_threshold`.
        alarms: the share of rows above it.
        true_positive_rate, false_positive_rate: the share of the second and of the first class.
        tied: the share of rows that have the next lower score: they would all be alarms at the
            next lower threshold, alarms + tied in all. Few rules give few scores and large ties.
    """

    threshold: float
    alarms: float
    true_positive_rate: float | None = None
    false_positive_rate: float | None = None
    tied: float = 0.0


@checks.verb
def operating_point(
    model: Any,
    X: TableLike,
    y: ArrayLike | None = None,
    *,
    max_alarms: float,
    sample_weight: ArrayLike | None = None,
) -> OperatingPoint:
    """The lowest threshold with alarms on at most this share of rows; choose it on training rows.

    An alarm is ``decision_function(model, X) > threshold``, and
    ``predict_proba(model, X)[:, 1] > threshold`` for rule lists. The threshold lies halfway between
    two observed scores; it is -inf if all rows may be alarms. Rows of one score are alarms
    together, so the share may stay below the limit: `OperatingPoint.tied` says by how much the
    next threshold would raise it.

    Args:
        model: a model of two classes, with one score; or a card. The threshold of a
            `ScaledScorecard` is in its scores, for `ScaledScorecard.with_cut_off`: alarms are below
            it, or above it if the second class is the good one.
        X: rows.
        y: their labels, for the rates.
        max_alarms: the share of rows (of their weight), in [0, 1].
        sample_weight: weight of every row, shape (rows,).

    Raises:
        TypeError, ValueError: if the model does not have two classes, or an argument does not fit.
    """
    limit = checks.number("max_alarms", max_alarms, at_least=0, at_most=1)
    check_order(X, y=y, sample_weight=sample_weight)
    table = rows_for(model, X)
    classes: tuple[Label, ...] = model.schema.classes or ()
    checks.require(len(classes) == 2, "model must have two classes: alarms are rows of the second")
    is_list = isinstance(model, RuleList)
    said = predict_proba(model, table)[:, 1] if is_list else decision_function(model, table)
    score = np.asarray(said, np.float64)
    weights = check_sample_weight(sample_weight, len(score))
    values, place = np.unique(score, return_inverse=True)
    # The share of rows with at least each value.
    above = np.append(np.cumsum(np.bincount(place, weights)[::-1])[::-1], 0.0) / weights.sum()
    # The last entry, 0, is within every limit, so that one is found. The shares are rounded sums.
    first = int(np.argmax(above <= limit * (1 + 1e-12)))  # alarms from here on
    threshold, tied = -np.inf, 0.0
    if first:
        # With no alarm, the threshold is the largest score itself, which is not above it.
        threshold = float((values[first - 1] + values[min(first, len(values) - 1)]) / 2)
        tied = float(above[first - 1] - above[first])
    alarm = score > threshold
    share = float(weights[alarm].sum() / weights.sum())
    if y is None:
        return OperatingPoint(threshold, share, tied=tied)
    positive = known_labels(y, classes, len(score)) == classes[1]
    return OperatingPoint(
        threshold, share, _share(alarm, positive, weights), _share(alarm, ~positive, weights), tied
    )
