"""What a report shows, as JSON: its models, their figures, the rows, settings and certificates."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Feature, Table, TableLike, as_table, conform
from jaxrules.models.near_optimal import NearOptimalModels
from jaxrules.models.persistence import Json
from jaxrules.models.rule_models import (
    OrderedRules,
    RegressionList,
    RuleEnsemble,
    RuleList,
    predict,
)
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Fit
from jaxrules.users.comparison import Comparison
from jaxrules.users.export.program import Program, program_of
from jaxrules.users.orientation import reason_words
from jaxrules.users.reporting.browser import columns_of, program_json, rows_json
from jaxrules.users.reporting.figures import (
    FigureRows,
    importances_json,
    joined,
    quality_json,
    rules_json,
)
from jaxrules.users.reporting.near_optimal import near_optimal_json
from jaxrules.users.reporting.opening import opening
from jaxrules.users.reporting.subject import Entry, Known, Model, Subject
from jaxrules.users.scorecards import ScaledScorecard, Scorecard

_STEPS = 300
"""The most steps of a fit's history in the chart."""


def data_json(
    subject: Subject,
    X: TableLike,
    y: ArrayLike,
    groups: ArrayLike | None,
    known: Known,
    title: str | None,
    max_rows: int,
    ids: Sequence[str] | None = None,
    changeable: Sequence[str] | None = None,
) -> Json:
    """Everything that the page needs. Infinite numbers and NaN are null.

    Raises:
        TypeError, ValueError: if X, y or groups does not fit the models.
    """
    result: Json = {"kind": subject.kind, "start": subject.start, "models": []}
    if isinstance(subject.given, Comparison):
        result["comparison"] = _comparison(subject.given)
    if subject.entries:
        result |= _of_models(subject, X, y, groups, known, max_rows)
        result |= _for_rows(result, ids, changeable)
    else:
        checks.require(
            groups is None,
            "groups is for rules, but no method of the comparison yields any; omit groups",
        )
        table = as_table(X, missing="own_category")
        result |= {"target": "target", "table": _table(table)}
        result["data_hash"] = hash_of(table, np.asarray(y))
    result["title"] = display.plain(title or f"{_what(subject)} for {result['target']}")
    made: Json = _finite(result)
    return made


def _of_models(
    subject: Subject,
    X: TableLike,
    y: ArrayLike,
    groups: ArrayLike | None,
    known: Known,
    max_rows: int,
) -> Json:
    first = subject.entries[0].model
    rows = FigureRows.of(first, conform(X, first.schema), y, groups, known)
    programs = [program_of(entry.model) for entry in subject.entries]
    columns, stored = columns_of(programs), min(max_rows, rows.table.n_rows)
    models = []
    for entry, program in zip(subject.entries, programs, strict=True):
        model, parts = entry.model, subject.held_out or [(entry.model, slice(None))]
        quality = quality_json(parts, program, rows)
        models.append(
            _described(entry)
            | {
                "program": program_json(program, columns),
                "rules": rules_json(model, program, rows),
                "importances": importances_json(model, program, rows),
                "reasons": _reasons(model, program),
                "points": _points(entry),
                "quality": quality,
                "opening": opening(entry, program, rows, quality, len(subject.held_out)),
            }
        )
    result = {
        "models": models,
        "target": known.named(display.plain(first.schema.target), first),
        "classes": rows.classes and list(map(display.plain, rows.classes)),
        "groups": list(zip(rows.group_names, np.bincount(rows.group).tolist(), strict=False)),
        "table": _table(rows.table) | {"target": _target(rows)},
        **rows_json(rows.table, columns, stored),
        "truth": rows.truth[:stored].tolist(),
        "data_hash": hash_of(rows.table, rows.truth),
    }
    if subject.held_out:
        result["held_out"] = {"folds": len(subject.held_out)}
        if rows.classes is None:
            predicted = joined(predict, subject.held_out, rows)[:stored]
            result["held_out"]["predicted"] = predicted.tolist()
    if isinstance(subject.given, NearOptimalModels):
        result["near_optimal"] = near_optimal_json(subject.given, subject.entries, rows)
    return result


def _for_rows(result: Json, ids: Sequence[str] | None, changeable: Sequence[str] | None) -> Json:
    """The names of the stored rows, and the columns that "what would change it" may change."""
    names = [column["name"] for column in result["columns"]]
    found: Json = {"ids": None, "changeable": [True] * len(names)}
    if ids is not None:
        n_rows = result["table"]["rows"]
        checks.require(len(ids) == n_rows, f"ids has {len(ids)} values, and X has {n_rows} rows")
        found["ids"] = [display.plain(one) for one in ids[: len(result["truth"])]]
    if changeable is not None:
        known = [column[0] for column in result["table"]["columns"]]
        wanted = list(map(display.plain, changeable))
        unknown = sorted(set(wanted) - set(known))
        refused = f"changeable names {unknown}, which are no columns of the model"
        checks.require(not unknown, refused)
        found["changeable"] = [name in wanted for name in names]
    return found


def _reasons(model: Model, program: Program) -> list[tuple[str, str]]:
    """For every rule of an ensemble's program, the reason that it does not hold, and that it does;
    empty for other models.
    """
    if not isinstance(model, RuleEnsemble):
        return []
    words = reason_words(model.conjunctions)
    return [words[rule.position] for rule in program.rules]


def _points(entry: Entry) -> Json | None:
    """Of a card: how many points towards its class a unit of the score is worth, and those of the
    score 0.
    """
    classes, card = entry.model.schema.classes or (), entry.card
    if isinstance(card, Scorecard):
        # A card whose rules have no points has scale 0.
        unit = 1 / (card.scale or 1.0)
        return {"class": 1, "per_unit": unit, "start": -unit * card.intercept}
    if isinstance(card, ScaledScorecard):
        good = classes.index(card.good)
        unit = card.score_at(1.0) - card.offset
        return {"class": good, "per_unit": unit, "start": card.offset}
    return None


def hash_of(table: Table, y: NDArray[Any]) -> str:
    """SHA-256 of the columns as the model reads them (names, categories, values) and the target."""
    found = hashlib.sha256()
    for feature, column in zip(table.schema.features, table.columns, strict=True):
        kept = (feature.name, feature.kind, feature.categories, feature.levels)
        found.update(repr(kept).encode(errors="surrogatepass"))
        found.update(np.ascontiguousarray(column).tobytes())
    found.update(repr(np.asarray(y).tolist()).encode(errors="surrogatepass"))
    return found.hexdigest()


def _what(subject: Subject) -> str:
    """The title, without the target."""
    if subject.kind == "comparison":
        return f"Comparison of {display.counted(len(subject.given.contestants), 'method')}"
    if subject.kind == "near-optimal":
        return display.counted(len(subject.given), f"near-optimal rule {subject.given.noun}")
    if subject.kind == "path":
        return f"Path of {display.counted(len(subject.entries), 'model')}"
    (entry,) = subject.entries
    kinds = {
        RuleEnsemble: "Rule ensemble",
        RuleList: "Rule list",
        RegressionList: "Regression list",
    }
    return f"{kinds.get(type(entry.model), 'Linear model')} of {entry.label}"


def _described(entry: Entry) -> Json:
    """A model's size, meaning, settings and certificate."""
    model, fit, cut = entry.model, entry.fit, getattr(entry.model, "cut", None)
    if isinstance(model, RuleEnsemble):
        heading = model.heading + _points_text(entry.card)
    elif isinstance(model, OrderedRules):
        heading = "The first rule that holds decides" + ("." if cut is None else f"; {cut}.")
    else:
        classes, what = model.schema.classes, display.plain(model.schema.target)
        if classes is not None:
            what = f"log-odds of {what} == {display.plain(classes[1])}"
        start = display.weight_text(model.intercepts[-1])
        heading = f"{what} = {start} + the sum of weight times column"
    settings = [(name, display.plain(value)) for name, value in model.options]
    return {
        "label": entry.label,
        "complexity": entry.complexity,
        "heading": heading,
        "threshold": "" if cut is None else f"Here {cut}.",
        "settings": settings,
        "fit": None if fit is None else _fit(fit),
    }


def _points_text(card: Scorecard | ScaledScorecard | None) -> str:
    """What a point of a card is worth."""
    if card is None:
        return ""
    if isinstance(card, Scorecard):
        return f"; a point of the card is worth {display.number(card.scale, 4)}"
    toward = display.plain(card.good)
    cut = f"; {toward} is predicted from {card.cut_off} points on" if card.model.threshold else ""
    return f"; a point towards {toward} is worth {display.number(1 / card.factor, 4)}{cut}"


def _fit(fit: Fit[Any]) -> Json:
    """How a fit ended, and its history, thinned."""
    shown = np.linspace(0, len(fit.history) - 1, min(len(fit.history), _STEPS)).round().astype(int)
    steps = [fit.history[k] for k in shown.tolist()]
    told = ("objective", "sense", "advice", "bound", "gap", "seconds")
    history = [(step.seconds, step.objective, step.bound) for step in steps]
    figures = {name: getattr(fit, name) for name in told}
    return {**figures, "status": fit.status.value, "history": history}


# Data


def _table(table: Table) -> Json:
    """The number of rows, and each column: name, kind, missing values, what is in it."""
    columns = []
    for place, feature in enumerate(table.schema.features):
        missing = int(table.missing_mask(table.schema.companions.get(place, place)).sum())
        kind = "categories" if feature.kind == "text" else feature.kind
        what = _values(feature, table.columns[place])
        columns.append((display.plain(feature.name), kind, missing, what))
    return {"rows": table.n_rows, "columns": columns}


def _values(feature: Feature, column: NDArray[Any]) -> str:
    """What is in a column."""
    if feature.levels is not None:
        places = column[~np.isnan(column)].astype(np.int32)
        return _categories(tuple(map(str, feature.levels)), places)
    categories = feature.categories
    return _numbers(column) if categories is None else _categories(categories, column)


def _numbers(column: NDArray[np.float64]) -> str:
    known = column[~np.isnan(column)]
    if not len(known):
        return "no value"
    low, middle, high = (display.number(float(np.quantile(known, q))) for q in (0, 0.5, 1))
    return f"{low} to {high}, median {middle}"


def _categories(categories: tuple[str, ...], column: NDArray[np.int32]) -> str:
    counts = np.bincount(column[column >= 0], minlength=len(categories))
    often = np.argsort(-counts, kind="stable")[:3].tolist()
    listed = ", ".join(f"{display.plain(categories[k])} ({counts[k]})" for k in often)
    return f"{len(categories)}: {listed}{', ...' if len(categories) > 3 else ''}"


def _target(rows: FigureRows) -> str:
    if rows.classes is None:
        return _numbers(rows.truth)
    counts = np.bincount(rows.truth, minlength=len(rows.classes)).tolist()
    listed = zip(rows.classes, counts, strict=True)
    return ", ".join(f"{display.plain(label)} ({count})" for label, count in listed)


# Comparisons


def _comparison(found: Comparison) -> Json:
    return {
        "caption": found.caption,
        "risk": found.risk,
        "rows": [row._asdict() for row in found.rows],
        "fronts": {one.method: one.front for one in found.contestants},
    }


def _finite(value: Any) -> Any:
    """JSON of Python's own numbers."""
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
