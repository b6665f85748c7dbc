"""The first paragraph of a report: what is predicted, how well, by how many rules, and what is
proved, in words that need no knowledge of statistics.
"""

from __future__ import annotations

import numpy as np

from jaxrules.models.persistence import Json
from jaxrules.models.rule_models import OrderedRules, RuleEnsemble
from jaxrules.tools import display
from jaxrules.tools.fits import Status
from jaxrules.users.export.program import Program
from jaxrules.users.reporting.figures import FigureRows
from jaxrules.users.reporting.subject import Entry
from jaxrules.users.scorecards import Scorecard

_NORMAL = 1.96
"""Standard errors of an interval with 95 % confidence."""
_OF_MEDIANS = ("mean absolute", "mean huber", "mean quantile")


def opening(
    entry: Entry, program: Program, rows: FigureRows, quality: Json, held_out: int
) -> list[str]:
    """Its sentences.

    Args:
        entry, program: the model.
        rows: the rows that it is rated on.
        quality: of `quality_json`.
        held_out: the folds whose models are rated on their held-out rows; 0 if the model itself is.
    """
    return [
        *_what(entry, program, rows),
        *(_of_numbers if rows.classes is None else _of_classes)(rows, quality, held_out),
        _proved(entry),
    ]


def _what(entry: Entry, program: Program, rows: FigureRows) -> list[str]:
    target, model = display.plain(rows.table.schema.target), entry.model
    columns = f"{len(program.asks)} of {display.counted(len(rows.table.schema.sources), 'column')}"
    outcomes = ""
    if rows.classes is not None:
        names = list(map(display.plain, rows.classes))
        outcomes = f" ({', '.join(names[:-1])} or {names[-1]})"
    said = f"This model predicts {target}{outcomes} from {columns}"
    if isinstance(model, OrderedRules):
        size = display.counted(len(program.rules), "rule")
        return [f"{said} by {size}: the first that holds decides, a default otherwise."]
    if isinstance(model, RuleEnsemble):
        parts = display.size_text(len(program.rules), len(program.terms))
        return [f"{said} by {parts}: the weights of those that hold are added up."]
    return [f"{said}, as a weighted sum of {display.counted(len(program.terms), 'term')}."]


def _where(rows: FigureRows, held_out: int) -> str:
    fitted = f", predicted by {held_out} models that were fitted without them," if held_out else ""
    return f"On the {display.counted(rows.table.n_rows, 'row')} of this report{fitted}"


def _of_classes(rows: FigureRows, quality: Json, held_out: int) -> list[str]:
    classes, n = rows.classes or (), rows.table.n_rows
    counts = np.bincount(rows.truth, minlength=len(classes))
    most = int(counts.argmax())
    right, where = quality["figures"]["accuracy"], _where(rows, held_out)
    usual = display.plain(classes[most])
    said = [
        f"{where} it is right for {right:.1%}; always saying {usual} would be right for "
        f"{counts[most] / n:.1%}."
    ]
    curves = quality["curves"]
    if len(classes) == 2 and curves[0]["auc"] is not None:
        other, name = (display.plain(label) for label in classes)
        area, error = curves[0]["auc"], curves[0]["auc_error"]
        between = "" if error is None else f" (95 % interval {_interval(area, error)})"
        said.append(
            f"Of two rows, one {name} and one {other}, it gives the {name} one the higher score in "
            f"{area:.1%} of the cases{between}."
        )
    return said


def _interval(share: float, error: float) -> str:
    low, high = max(share - _NORMAL * error, 0.0), min(share + _NORMAL * error, 1.0)
    return f"{low:.1%} to {high:.1%}"


def _of_numbers(rows: FigureRows, quality: Json, held_out: int) -> list[str]:
    figures, target = quality["figures"], display.plain(rows.table.schema.target)
    where = _where(rows, held_out)
    if quality["risk"][0].startswith(_OF_MEDIANS):
        error, usual, how = figures["mean absolute error"], "median", ""
        spread = float(np.abs(rows.truth - np.median(rows.truth)).mean())
    else:
        # The mean is what other losses aim at: counts are often nearer to their median, 0.
        error, usual, how = figures["root mean squared error"], "mean", " (root mean square)"
        centre = np.average(rows.truth, weights=rows.weight)
        spread = float(np.sqrt(np.average((rows.truth - centre) ** 2, weights=rows.weight)))
    return [
        f"{where} its predictions of {target} are off by {display.number(error, 3)} on "
        f"average{how}; always saying the {usual} would be off by {display.number(spread, 3)}."
    ]


def _proved(entry: Entry) -> str:
    fit, card = entry.fit, entry.card
    gap = entry.gap if fit is None else fit.gap
    if isinstance(card, Scorecard) and card.status is Status.OPTIMAL:
        return "It is proved that no other points for these rules fit its training rows better."
    if fit is not None and gap is None:
        return f"What is proved about its fit: {fit.advice}"
    if gap is None:
        return "Nothing is known about better models: the report was made without the fit."
    if gap <= 1e-9:
        return "It is proved that no choice of its candidates has a better objective."
    return (
        "It is proved that no choice of its candidates improves its objective on the training rows "
        f"by more than {max(gap, 1e-4):.2%}."
    )
