"""Scorecards: the rules of a model with integer points instead of weights.

The score of a row is scale * (sum of the points of the rules that hold) + intercept, a log-odds.
For few rules, every vector of points within the limit is tried, each with its best scale and
intercept, so the result is optimal (RiskSLIM, Ustun and Rudin 2019, finds such cards by integer
programming). For more rules, the weights are rounded at many scales, and the best result is
improved one rule at a time.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Label, TableLike, conform
from jaxrules.learning.training import data_for
from jaxrules.losses import logistic, mean_loss
from jaxrules.models.rule_models import (
    Contribution,
    Explanation,
    RuleEnsemble,
    explain,
    sigmoid,
    warn_of_threshold,
)
from jaxrules.rules.rows import Activations
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Status
from jaxrules.users.inspection import OperatingPoint, operating_point
from jaxrules.users.orientation import reason_words

Floats = NDArray[np.float64]

_MOST_CARDS = 200_000
"""Up to this many vectors of points, all are tried: 5 rules of -5 to +5 points have 161 051."""
_CELLS = 1 << 22
_ROUNDINGS = 60
_NEWTON_STEPS, _HALVINGS = 100, 40
_CONVERGED, _TINY, _ROUNDING = 1e-11, 1e-12, 1e-10


@dataclass(frozen=True, eq=False)
class Scorecard:
    """Rules with points. Prints as a card with the probability of every total.

    Attributes:
        model: the rules with the weights scale * points, to predict, save and export as usual.
        points: the points of the rules, in the order of the model, shape (rules,).
        scale, intercept: log-odds = scale * total + intercept.
        totals: the totals that occur in the rows, and their shares of the weight.
        loss: the mean logistic loss on the rows.
        loss_before: the loss of the model before rounding.
        status: OPTIMAL if no other points within the limit, with any scale and intercept, have a
            lower objective on these rows; CONVERGED if not all were tried.
        tried: the number of vectors of points tried.
    """

    model: RuleEnsemble
    points: NDArray[np.int64]
    scale: float
    intercept: float
    totals: tuple[tuple[int, float], ...]
    loss: float
    loss_before: float
    status: Status
    tried: int

    @property
    def in_points(self) -> RuleEnsemble:
        """The model that predicts the total of points, to export: ``jr.to_sql(card.in_points)``."""
        return _of_points(self.model, 0, self.points, "points")

    def __str__(self) -> str:
        lines = [self._caption(), *display.aligned(self._rows())]
        return "\n".join([*lines, display.text_table(*self._chances())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        card = display.html_table(self._caption(), ("points", "rule"), self._rows())
        return card + display.html_table("", *self._chances())

    def _caption(self) -> str:
        proof = "no better points exist" if self.status is Status.OPTIMAL else "rounded, improved"
        return (
            f"Scorecard of {display.counted(len(self.points), 'rule')} ({proof}): log loss "
            f"{self.loss:.4f}, {self.loss_before:.4f} before"
        )

    def _rows(self) -> list[tuple[str, str]]:
        order = np.argsort(-np.abs(self.points), kind="stable").tolist()
        return [(f"{self.points[r]:+d}", self.model.conjunctions.describe(r)) for r in order]

    def _chances(self) -> tuple[tuple[str, str, str], list[tuple[str, str, str]]]:
        """Every total in the rows, its probability and its share."""
        label = display.plain((self.model.schema.classes or ())[1])
        rows = []
        for total, share in self.totals:
            chance = float(sigmoid(np.array(self.scale * total + self.intercept)))
            rows.append((str(total), display.share_text(chance), f"{share:.1%}"))
        return ("total", f"p({label})", "rows"), rows


@dataclass(frozen=True, eq=False, repr=False)
class ScaledScorecard(display.Tabulated):
    """Rules with points on a scale of scores, see `scaled_scorecard`.

    Attributes:
        model: the rules with the weights of the rounded points, to predict, save, report and export
            as usual.
        base: the points that every row gets.
        points: whole, shape (rules, 2): of a row that does not satisfy the rule, and of one that
            does.
        factor, offset: score = offset + factor * (log-odds of `good`).
        good: the class of high scores.
    """

    model: RuleEnsemble
    base: int
    points: NDArray[np.int64]
    factor: float
    offset: float
    good: Label

    def score(self, X: TableLike) -> NDArray[np.int64]:
        """The score of each row, shape (rows,).

        Raises:
            ValueError: if `X` does not fit the model's columns.
        """
        checks.concrete("X", X)
        held = self.model.conjunctions.satisfied(conform(X, self.model.schema)).astype(np.int64)
        return self.base + (1 - held) @ self.points[:, 0] + held @ self.points[:, 1]

    @property
    def in_points(self) -> RuleEnsemble:
        """The model that predicts the score itself, to export: ``jr.to_sql(card.in_points)``."""
        others, held = self.points.T
        return _of_points(self.model, self.base + int(others.sum()), held - others, "score")

    @property
    def cut_off(self) -> int | None:
        """The least score for which `good` is predicted; None if the threshold is beyond all."""
        at = self.score_at(self.model.threshold)
        if not math.isfinite(at):
            return None
        rounding = _ROUNDING * max(abs(at), 1.0)
        # At the threshold itself the first class is predicted.
        return math.ceil(at - rounding) if self._sign < 0 else math.floor(at + rounding) + 1

    def with_cut_off(self, score: float) -> ScaledScorecard:
        """The card that predicts `good` from this score on, and the other class below.

        Raises:
            TypeError, ValueError: if `score` is not a finite number.

        Example:
            >>> import jaxrules as jr
            >>> X, y = {"income": [10, 20, 30, 40] * 25}, ["bad", "bad", "good", "good"] * 25
            >>> model = jr.boosting.fit(X, y, max_rules=1, positive="bad").model
            >>> card = jr.scaled_scorecard(model).with_cut_off(500)
            >>> card.cut_off, card.score({"income": [20, 30]}).tolist()
            (500, [439, 535])
            >>> jr.predict(card.model, {"income": [20, 30]}).tolist()
            ['bad', 'good']
        """
        given = checks.number("score", score)
        # Scores are whole: a threshold halfway between two of them is out of rounding's reach.
        least = math.ceil(given - _ROUNDING * max(abs(given), 1.0))
        threshold = self._sign * (least - 0.5 - self.offset) / self.factor
        return dataclasses.replace(self, model=dataclasses.replace(self.model, threshold=threshold))

    def score_at(self, log_odds: float) -> float:
        """The score of these log-odds of the second class, such as a threshold."""
        return self.offset + self._sign * self.factor * log_odds

    @property
    def _sign(self) -> float:
        return 1.0 if (self.model.schema.classes or ()).index(self.good) else -1.0

    def tabulated(self) -> tuple[str, tuple[str, ...], list[tuple[str, str, str]]]:
        double = display.number(self.factor * math.log(2.0), 4)
        good = display.plain(self.good)
        cut = f"; {good} is predicted from {self.cut_off} on" if self.model.threshold else ""
        order = np.argsort(-np.abs(np.diff(self.points)[:, 0]), kind="stable").tolist()
        points = ((r, *self.points[r].tolist()) for r in order)
        describe = self.model.conjunctions.describe
        rows = [(f"{yes:+d}", f"{no:+d}", describe(r)) for r, no, yes in points]
        start = f"{self.base} at the start"
        title = f"Scorecard: {double} points double the odds of {good}; {start}{cut}"
        return title, ("yes", "no", "rule"), rows


def scaled_scorecard(
    model: RuleEnsemble | Scorecard,
    *,
    pdo: float = 20.0,
    base_score: float = 600.0,
    base_odds: float = 50.0,
    good: Label | None = None,
    positive_points: bool = True,
) -> ScaledScorecard:
    """A card on the scale of credit scores: `pdo` points double the odds, and `base_score` means
    odds of `base_odds` to 1.

    The score is offset + factor * log-odds with factor = pdo / log 2 and offset = base_score -
    factor * log(base_odds) (Siddiqi, Credit Risk Scorecards, 2006). The points of every rule and of
    the start are rounded to whole numbers, and the card's own model predicts from these.

    Args:
        model: of two classes without linear terms, or a scorecard.
        pdo: the points that double the odds; the larger, the less is lost by rounding.
        base_score, base_odds: a score and the odds of `good` that it stands for.
        good: the class of high scores; None for the first class, as the second is the one that
            alarms are about.
        positive_points: a rule that lowers the score gives its points to the rows that do not
            satisfy it, and the start gets less; scores stay.

    Raises:
        TypeError: for another model, or arguments that are not numbers.
        ValueError: for a model without rules or two classes or with linear terms, numbers out of
            range (pdo from 1 to a million), or a class that does not exist.

    Example:
        >>> import numpy as np
        >>> import jaxrules as jr
        >>> schema = jr.Schema((jr.Feature("income"), jr.Feature("late")), classes=("good", "bad"))
        >>> C = jr.Condition
        >>> rules = jr.Conjunctions.build(schema, [[C.above(0, 30)], [C.above(1, 0)]])
        >>> weights = np.array([[-1.4], [0.7]])
        >>> model = jr.RuleEnsemble(rules, weights, np.array([-2.0]), link="logistic")
        >>> card = jr.scaled_scorecard(model)
        >>> print(card)
        Scorecard: 20 points double the odds of good; 525 at the start
        yes  no   rule
        +40  +0   income > 30
        +0   +20  late > 0
        >>> card.score([{"income": 40, "late": 1}, {"income": 40, "late": 0}]).tolist()
        [565, 585]
    """
    if isinstance(model, Scorecard):
        model = model.model
    checks.instance("model", model, RuleEnsemble, "jaxrules.scorecard")
    _check_of_two(model)
    factor = checks.number("pdo", pdo, at_least=1, at_most=1e6) / math.log(2.0)
    start = checks.number("base_score", base_score, at_least=-1e9, at_most=1e9)
    odds = checks.number("base_odds", base_odds, at_least=1e-9, at_most=1e9)
    offset = start - factor * math.log(odds)
    classes = model.schema.classes or ()
    chosen = classes[0] if good is None else good
    known = isinstance(chosen, (str, bool, int, float, np.generic)) and chosen in classes
    checks.require(known, f"good must be one of the classes {classes}, got {good!r}")
    # The model's scores are the log-odds of the second class.
    sign = 1.0 if classes.index(chosen) else -1.0
    doubled = 2.0 if model.link == "exponential" else 1.0
    worth = sign * factor * doubled
    points = np.rint(worth * np.asarray(model.weights, np.float64)[:, 0]).astype(np.int64)
    base = round(offset + worth * float(np.asarray(model.intercept)[0]))
    card = _of_log_odds(model, sign / factor * points, sign * (base - offset) / factor)
    held, others = points, np.zeros_like(points)
    if checks.flag("positive_points", positive_points):
        held, others = np.maximum(points, 0), np.maximum(-points, 0)
        base += int(np.minimum(points, 0).sum())
    return ScaledScorecard(card, base, np.stack([others, held], axis=1), factor, offset, chosen)


def _of_log_odds(model: RuleEnsemble, weights: Any, intercept: float) -> RuleEnsemble:
    """The model with these log-odds, shape (rules,)."""
    return dataclasses.replace(
        model, weights=weights[:, None], intercept=np.array([intercept]), link="logistic",
        loss=logistic.name, threshold=0.0,
    )  # fmt: skip


def _check_of_two(model: RuleEnsemble) -> None:
    """Refuse a model that cannot become a card."""
    checks.require(len(model.schema.classes or ()) == 2, "model must have two classes")
    checks.require(
        model.linear is None,
        "model has linear terms, which cannot have points; fit it without linear_terms",
    )
    checks.require(len(model.conjunctions) > 0, "model has no rules")
    warn_of_threshold(model)


def scorecard(
    model: RuleEnsemble,
    X: TableLike,
    y: ArrayLike,
    *,
    max_points: int = 5,
    l2_penalty: float | None = None,
    sample_weight: ArrayLike | None = None,
) -> Scorecard:
    """The rules of a model of two classes with integer points from -max_points to +max_points.

    Points, scale and intercept minimise the sum of the logistic losses on these rows + l2_penalty /
    2 sum_j (scale points_j)^2, the objective of `jaxrules.refit`. A rule may get 0 points;
    `jaxrules.without_rules` drops it.

    Args:
        model: a rule ensemble of two classes without linear terms.
        X, y: the training rows.
        max_points: the most points of a rule, positive or negative.
        l2_penalty: the ridge; None for the ridge of the fit, or 1, as in `jaxrules.refit`.
        sample_weight: weight of every row, shape (rows,).

    Raises:
        TypeError: for another model.
        ValueError: for a model without rules or two classes, or data that do not fit it.
    """
    from jaxrules.users.editing import ridge_of  # takes SciPy, which exports do without

    checks.instance("model", model, RuleEnsemble, "jaxrules.boosting.fit")
    limit = checks.integer("max_points", max_points, at_least=1, at_most=1000)
    _check_of_two(model)
    data = data_for(model, X, y, logistic, sample_weight)
    merged = Activations.of(model.conjunctions, data.table)
    weight = merged.totals(data.weights)
    share = merged.totals(data.weights * (data.target > 0)) / weight
    given = checks.optional(checks.penalty, "l2_penalty", l2_penalty)
    ridge = ridge_of(model, data) if given is None else given
    total = float(weight.sum())
    problem = _PointsProblem(merged.dense.astype(np.float64), share, weight / total, ridge / total)
    doubled = 2.0 if model.link == "exponential" else 1.0
    weights = doubled * np.asarray(model.weights, np.float64)[:, 0]
    before = merged.dense @ weights + doubled * float(model.intercept[0])
    m = len(weights)
    every = (2 * limit + 1) ** m <= _MOST_CARDS
    cards = _all_cards(m, limit) if every else _roundings(weights, limit)
    found, tried = problem.best(cards), len(cards)
    if not every:
        found, tried = _improved(problem, found, limit, tried)
    points, scale, intercept, _ = found
    card = _of_log_odds(model, scale * points.astype(np.float64), intercept)
    totals = (merged.dense @ points)[merged.pattern]
    loss, loss_before = (
        float(mean_loss(logistic, data.target, scores, data.weights))
        for scores in (scale * totals + intercept, before[merged.pattern])
    )
    seen, place = np.unique(totals, return_inverse=True)
    shares = np.bincount(place, data.weights) / total
    status = Status.OPTIMAL if every else Status.CONVERGED
    return Scorecard(
        card, points, scale, intercept, tuple(zip(seen.tolist(), shares.tolist(), strict=True)),
        loss, loss_before, status, tried,
    )  # fmt: skip


_Card = tuple[NDArray[np.int64], float, float, float]


@dataclass(frozen=True, eq=False)
class _PointsProblem:
    """Merged rows.

    Attributes:
        holds: the rules that hold, shape (patterns, rules).
        share, weight: the share of the second class in each pattern, and the pattern's share of the
            total weight, shape (patterns,).
        ridge: the ridge, relative to the mean loss.
    """

    holds: Floats
    share: Floats
    weight: Floats
    ridge: float

    def best(self, cards: NDArray[np.int64]) -> _Card:
        """The card with the least objective, its scale and its intercept; the first one in ties."""
        best: _Card | None = None
        # Batches of cards bound the memory of their totals, (cards, patterns).
        size = max(1, _CELLS // len(self.share))
        for start in range(0, len(cards), size):
            some = cards[start : start + size]
            scale, intercept, value = self._fitted(some)
            k = int(value.argmin())
            # Differences below the precision of the fits count as ties.
            if best is None or value[k] < best[3] - _CONVERGED:
                # A negative scale is a positive one of the opposite points.
                sign = -1 if scale[k] < 0 else 1
                best = sign * some[k], abs(float(scale[k])), float(intercept[k]), float(value[k])
        assert best is not None
        return best

    def _fitted(self, cards: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """The best scale and intercept of every card, by damped Newton steps, and the objective."""
        totals = cards @ self.holds.T
        # Totals are scaled to at most 1 in size, and the ridge on scale^2 sum points^2 to match.
        size = np.maximum(np.abs(totals).max(axis=1, initial=0.0), 1.0)
        x, ridge = totals / size[:, None], self.ridge * (cards**2).sum(axis=1) / size**2
        # The start is the best constant: scale 0, and the log-odds of all rows as the intercept.
        rate = np.clip(self.weight @ self.share, 1e-12, 1 - 1e-12)
        scale, intercept = np.zeros(len(x)), np.full(len(x), np.log(rate / (1 - rate)))
        value = self._value(x, ridge, scale, intercept)
        active = np.arange(len(x))
        for _ in range(_NEWTON_STEPS):
            xs, r, s, b = x[active], ridge[active], scale[active], intercept[active]
            # Newton's step for scale and intercept: the 2 x 2 Hessian in closed form.
            p = sigmoid(s[:, None] * xs + b[:, None])
            g, h = self.weight * (p - self.share), self.weight * p * (1 - p)
            gs, gb = (g * xs).sum(axis=1) + r * s, g.sum(axis=1)
            hss, hsb = (h * xs * xs).sum(axis=1) + r + _TINY, (h * xs).sum(axis=1)
            hbb = h.sum(axis=1) + _TINY
            det = np.maximum(hss * hbb - hsb * hsb, _TINY**2)
            ds, db = (hsb * gb - hbb * gs) / det, (hsb * gs - hss * gb) / det
            # Far from the minimum the curvature may nearly vanish: steps are cut to the length 8.
            # The objective is convex, so that a minimum is the least.
            step = 8.0 / np.maximum(np.abs(ds) + np.abs(db), 8.0)
            new = self._value(xs, r, s + step * ds, b + step * db)
            # A rise below the precision of the sums is none: at the minimum, halving would never
            # end it (40 times the work, for every card).
            most = value[active] + _TINY
            worse = np.flatnonzero(new > most)
            for _ in range(_HALVINGS):  # until the objective does not rise
                if not len(worse):
                    break
                step[worse] /= 2
                scale_of, start_of = s + step * ds, b + step * db
                new[worse] = self._value(xs[worse], r[worse], scale_of[worse], start_of[worse])
                worse = worse[new[worse] > most[worse]]
            step[worse] = 0.0
            new[worse] = value[active][worse]
            scale[active], intercept[active] = s + step * ds, b + step * db
            gained = value[active] - new
            value[active] -= gained
            active = active[gained > _CONVERGED]
            if not len(active):
                break
        return scale / size, intercept, value

    def _value(self, x: Floats, ridge: Floats, scale: Floats, intercept: Floats) -> Floats:
        scores = scale[:, None] * x + intercept[:, None]
        # Mean of log(1 + e^f) - q f, where q is the share of the second class in a pattern.
        losses = (np.logaddexp(0.0, scores) - self.share * scores) @ self.weight
        return np.asarray(losses + ridge / 2 * scale**2)


def _all_cards(m: int, limit: int) -> NDArray[np.int64]:
    """Every vector of points except those that equal another one at another scale: with a common
    divisor, or with a negative first entry (scales may be negative).
    """
    axes = np.meshgrid(*[np.arange(-limit, limit + 1)] * m, indexing="ij")
    cards = np.stack([axis.ravel() for axis in axes], axis=1)
    first = np.take_along_axis(cards, (cards != 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    # The card without points has the divisor 0.
    return cards[(np.gcd.reduce(cards, axis=1) <= 1) & (first >= 0)]


def _roundings(weights: Floats, limit: int) -> NDArray[np.int64]:
    """The weights rounded at many scales, from half a point to `limit` points for the largest."""
    largest = float(np.abs(weights).max()) or 1.0
    # At most limit + 0.49 for the largest weight, which still rounds to `limit`.
    scales = np.linspace(0.5, limit + 0.49, _ROUNDINGS) / largest
    return np.unique(np.rint(np.outer(scales, weights)).astype(np.int64), axis=0)


def _improved(problem: _PointsProblem, found: _Card, limit: int, tried: int) -> tuple[_Card, int]:
    """Change the points of one rule at a time as long as that helps."""
    while True:
        points = found[0]
        cards = []
        for r in range(len(points)):
            others = np.setdiff1d(np.arange(-limit, limit + 1), points[r])
            changed = np.tile(points, (len(others), 1))
            changed[:, r] = others
            cards.append(changed)
        better = problem.best(np.concatenate(cards))
        tried += sum(map(len, cards))
        # Every round lowers the objective by more than this, so that no card comes back.
        if better[3] >= found[3] - _CONVERGED:
            return found, tried
        found = better


# In points


@operating_point.register(Scorecard)
@operating_point.register(ScaledScorecard)
def _(
    model: Scorecard | ScaledScorecard,
    X: TableLike,
    y: ArrayLike | None = None,
    *,
    max_alarms: float,
    sample_weight: ArrayLike | None = None,
) -> OperatingPoint:
    point = operating_point(model.model, X, y, max_alarms=max_alarms, sample_weight=sample_weight)
    if isinstance(model, Scorecard):
        return point
    return point._replace(threshold=model.score_at(point.threshold))


def _of_points(
    model: RuleEnsemble, base: int, points: NDArray[np.int64], target: str
) -> RuleEnsemble:
    """The rules with points as the weights of a model of numbers."""
    schema = dataclasses.replace(model.schema, classes=None, target=target)
    rules = model.conjunctions.with_schema(schema)
    return RuleEnsemble(rules, points[:, None].astype(np.float64), np.array([float(base)]))


@explain.register
def _(model: Scorecard, X: TableLike, absent: bool = False) -> list[Explanation]:
    """Per row, the points of the rules that hold and their total."""
    return _in_points(model.model, X, 0, np.stack([0 * model.points, model.points], 1), absent)


@explain.register
def _(model: ScaledScorecard, X: TableLike, absent: bool = False) -> list[Explanation]:
    """Per row, the points at the start, those of every rule, and the score. Points that a rule
    gives to rows for which it does *not* hold belong to ``not (rule)``.
    """
    return _in_points(model.model, X, model.base, model.points, absent)


def _in_points(
    model: RuleEnsemble, X: TableLike, base: int, points: NDArray[np.int64], absent: bool
) -> list[Explanation]:
    """Explanations of the model with points, shape (rules, 2), of rows that do not satisfy a rule
    and of those that do; "absent" are the points of the other case.
    """
    absent = checks.flag("absent", absent)
    checks.concrete("X", X)
    table = conform(X, model.schema)
    words = reason_words(model.conjunctions)
    order = np.argsort(-np.abs(points).max(axis=1, initial=0), kind="stable").tolist()
    found = []
    held_by_row = model.conjunctions.satisfied(table).astype(np.int64)

    def of(sides: NDArray[np.int64]) -> tuple[Contribution, ...]:
        """What rules give on these sides, if anything."""
        pairs = [(r, int(sides[r])) for r in order]
        given = [(words[r][side], points[r, [side]]) for r, side in pairs if points[r, side]]
        return tuple(Contribution(text, number.astype(np.float64)) for text, number in given)

    for one, held in zip(explain(model, table), held_by_row, strict=True):
        parts = (Contribution("at the start", np.array([float(base)])), *of(held))
        score = np.array([sum(float(part.weight[0]) for part in parts)])
        others = of(1 - held) if absent else ()
        told = dataclasses.replace(one, parts=parts, score=score, absent=others, in_points=True)
        found.append(told)
    return found
