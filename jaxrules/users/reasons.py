"""Reason codes: which rules move the score of a row towards a class, by how many points, the most
first; also those that do *not* hold.

A card of protective rules gives an applicant points for what holds. Who is declined lacks points,
and the reasons are the rules that do not hold. Against the best case, a rule of weight w adds
w [rule] - min(0, w) towards the class: w if it holds and raises the score, or |w| if it would lower
the score and does not hold. Against other rows, it adds w [rule] - w (share of rows on which it
holds). In both cases a score is that of the reference plus what all rules add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Label, Table, TableLike, conform
from jaxrules.models.rule_models import LinearTerms, RuleEnsemble, not_a_model, predict
from jaxrules.tools import checks, display
from jaxrules.users.orientation import reason_words
from jaxrules.users.scorecards import ScaledScorecard, Scorecard


class Reason(NamedTuple):
    """What one rule (or linear term) adds.

    Attributes:
        text: the rule if it holds; else its complement, or ``not (rule)``.
        points: towards the class, against the reference: of the score, or of the card.
        rule: its position in the model; a linear term counts from the number of rules on.
    """

    text: str
    points: float
    rule: int


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why a row has its score, compared with a reference.

    Attributes:
        prediction: the label or number.
        label: the class towards which the score counts; None for a number.
        score: of the row towards the class, in points of a card.
        reference: the score of the best case, or the mean of the rows compared with.
        reasons: those that add points, the most first.
    """

    prediction: Any
    label: Label | None
    score: float
    reference: float
    reasons: tuple[Reason, ...]

    def _caption(self) -> str:
        toward = "" if self.label is None else f" towards {display.plain(self.label)}"
        score, reference = display.number(self.score), display.number(self.reference)
        said = display.plain(self.prediction)
        return f"prediction: {said}   (score{toward} {score}, reference {reference})"

    def _rows(self) -> list[tuple[str, str]]:
        points = [one.points for one in self.reasons]
        # The points and totals of a card are whole.
        if all(float(one).is_integer() for one in (self.score, self.reference, *points)):
            return [(f"{one.points:+.0f}", one.text) for one in self.reasons]
        largest = max(points, default=0.0)
        return [(display.weight_text(one.points, largest), one.text) for one in self.reasons]

    def __str__(self) -> str:
        rows = self._rows() or [("", "no rule adds points")]
        return "\n".join([self._caption(), *display.aligned(rows)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return display.html_table(self._caption(), ("points", "because"), self._rows())


def reasons(
    model: RuleEnsemble | Scorecard | ScaledScorecard,
    X: TableLike,
    *,
    label: Label | None = None,
    against: TableLike | None = None,
    most: int | None = 4,
) -> list[Reasons]:
    """For each row, the rules that move its score most towards a class, also those that do not
    hold.

    Args:
        model: a rule ensemble, or a scorecard, whose points are then whole. On the scale of a
            `ScaledScorecard`, reasons for the other class than its `good` one are points lost.
        X: rows.
        label: the class that the reasons are for, such as "declined"; None for the second of two
            classes, or for a model that predicts numbers (why the score is high).
        against: None compares with the best case, in which every rule adds the least that it can
            (points lost); rows compare with the mean over them.
        most: of the reasons of a row; None for all.

    Raises:
        TypeError: for another model.
        ValueError: for a label that is not a class, or None among more than two; for rows that do
            not fit; for linear terms without limits and no rows to compare with.

    Example:
        >>> import numpy as np
        >>> import jaxrules as jr
        >>> columns = (jr.Feature("income"), jr.Feature("late"))
        >>> schema = jr.Schema(columns, classes=("repaid", "default"))
        >>> C = jr.Condition
        >>> rules = jr.Conjunctions.build(schema, [[C.above(0, 30)], [C.at_most(1, 0)]])
        >>> weights = np.array([[-2.0], [-0.5]])
        >>> model = jr.RuleEnsemble(rules, weights, np.array([1.5]), link="logistic")
        >>> print(jr.reasons(model, [{"income": 24, "late": 2}])[0])
        prediction: default   (score towards default 1.5, reference -1)
          +2.0000  income <= 30
          +0.5000  late > 0
    """
    card = model if isinstance(model, Scorecard) else None
    scaled = model if isinstance(model, ScaledScorecard) else None
    ensemble = model.model if isinstance(model, (Scorecard, ScaledScorecard)) else model
    if not isinstance(ensemble, RuleEnsemble):
        not_a_model(model, "a rule ensemble or a scorecard")
    most = checks.optional(checks.integer, "most", most, at_least=1)
    output, sign, toward = _towards(ensemble, label)
    # A card counts whole points: its scores are the totals.
    unit = 1.0 if card is None else card.scale or 1.0
    sign_unit = sign / unit if scaled is None else sign * scaled.factor
    table = conform(X, ensemble.schema)
    parts = _Addends(ensemble, output, sign_unit)
    held, added = parts.added(table)
    if against is None:
        reference = parts.least()
    else:
        checks.concrete("against", against)
        with checks.spoken_of_as("against", "an X"):
            others = conform(against, ensemble.schema)
        checks.require(others.n_rows > 0, "against has no rows")
        reference = parts.added(others)[1].mean(axis=0)
    start = 0.0 if card is not None else sign_unit * float(np.asarray(ensemble.intercept)[output])
    lost = added - reference
    if card is not None or scaled is not None:
        lost = np.round(lost, 9)  # scale * points / scale
    predictions = np.asarray(predict(ensemble, table)).tolist()
    of_scale = np.zeros(table.n_rows) if scaled is None else scaled.score(table)
    found = []
    for i, row in enumerate(lost):
        order = np.argsort(-row, kind="stable")
        chosen = order[row[order] > 0].tolist()[:most]
        listed = tuple(Reason(parts.text(r, held[i], table, i), float(row[r]), r) for r in chosen)
        score, best = start + float(added[i].sum()), start + float(reference.sum())
        named = toward
        if scaled is not None:
            # Its scores rise towards one class, whichever class the reasons are for.
            named, up = scaled.good, 1.0 if toward == scaled.good else -1.0
            score = float(of_scale[i])
            best = score - up * float(row.sum())
        found.append(Reasons(predictions[i], named, score, best, listed))
    return found


def _towards(model: RuleEnsemble, label: Label | None) -> tuple[int, float, Label | None]:
    """The output that belongs to a class, the sign with which it counts towards it, and the
    class.
    """
    classes = model.schema.classes
    if not (label is None or isinstance(label, (str, bool, int, float, np.generic))):
        raise TypeError(f"label must be a class or None, got {type(label).__name__}")
    if classes is None:
        checks.require(label is None, f"label is {label!r}, but the model predicts numbers")
        return 0, 1.0, None
    if label is None:
        checks.require(len(classes) == 2, f"label must be one of the classes {classes}")
        return 0, 1.0, classes[1]
    checks.require(label in classes, f"label must be one of the classes {classes}, got {label!r}")
    place = classes.index(label)
    return (0, 1.0 if place else -1.0, label) if model.n_outputs == 1 else (place, 1.0, label)


class _Addends:
    """The rules and linear terms of a model, and what they add to one output."""

    def __init__(self, model: RuleEnsemble, output: int, factor: float) -> None:
        self.rules, self.schema = model.conjunctions, model.schema
        self.weights = factor * np.asarray(model.weights, np.float64)[:, output]
        self.linear: LinearTerms | None = model.linear
        self.slopes = np.zeros(0)
        if model.linear is not None:
            self.slopes = factor * np.asarray(model.linear.coefficients, np.float64)[:, output]
        self._words = reason_words(self.rules)

    def added(self, table: Table) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which rules hold, shape (rows, rules), and what every part adds, shape (rows, parts)."""
        held = self.rules.satisfied(table)
        added = held * self.weights
        if self.linear is not None:
            added = np.concatenate([added, self.linear.values(table) * self.slopes], axis=1)
        return held, added

    def least(self) -> NDArray[np.float64]:
        """The least that every part can add."""
        least = np.minimum(self.weights, 0.0)
        if self.linear is None:
            return least
        ends = np.array([self.linear.lower, self.linear.upper])
        checks.require(
            bool(np.isfinite(ends[:, self.slopes != 0]).all()),
            "model has linear terms without limits, so that no best case exists; pass rows as "
            "against",
        )
        # A missing value adds nothing.
        gaps = [self.schema.absent([f]) is not None for f in self.linear.feature.tolist()]
        products = np.where(self.slopes == 0, 0.0, np.where(np.isfinite(ends), ends, 0.0))
        of_terms = (products * self.slopes).min(axis=0, initial=np.inf)
        return np.concatenate([least, np.where(gaps, np.minimum(of_terms, 0.0), of_terms)])

    def text(self, part: int, held: NDArray[np.bool_], table: Table, row: int) -> str:
        """A part as text, for a row."""
        n = len(self.rules)
        if part >= n and self.linear is not None:
            value = float(self.linear.column(part - n, table[row : row + 1])[0])
            name = self.schema.features[self.linear.feature[part - n]].as_number
            return f"{display.plain(name)} at {display.number(value)}"
        return self._words[part][int(held[part])]
