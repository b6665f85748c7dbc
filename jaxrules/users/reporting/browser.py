"""A model as the page evaluates it: the program of the exports, as JSON, over codes of columns.

A row is a list of numbers, one per column that some model uses: the number, the place of the level,
or the code of the category (-1 for missing, -2 for unseen); null for a missing number or level.
Directions are columns after these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxrules.data.table import Table
from jaxrules.models.persistence import Json
from jaxrules.tools import display
from jaxrules.users.export.program import FirstMatch, Program, Sum, Term, Test


def columns_of(programs: Sequence[Program]) -> tuple[int, ...]:
    """The columns that at least one program reads, ascending; a number always with its
    companion.
    """
    columns = {column for program in programs for column in program.reads}
    pairs = programs[0].schema.companions.items() if programs else ()
    return tuple(sorted(columns.union(*(pair for pair in pairs if columns & set(pair)))))


def program_json(program: Program, columns: Sequence[int]) -> Json:
    """A program over these columns."""
    places = {column: place for place, column in enumerate(columns)}
    beyond = len(program.schema.features)
    places |= {beyond + d: len(columns) + d for d in range(len(program.directions))}
    result: Json = {
        "directions": [_terms(terms, places) for terms in program.directions],
        "tests": [[_test(test, program, places) for test in rule.tests] for rule in program.rules],
        "texts": [rule.text for rule in program.rules],
        "terms": _terms(program.terms, places),
        "refused": [column in program.refused for column in columns],
    }
    if isinstance(program, FirstMatch) and program.schema.classes is None:
        return result | {"kind": "list", "values": program.labels}
    if isinstance(program, FirstMatch):
        codes = {label: code for code, label in enumerate(program.schema.classes or ())}
        labels = [codes[label] for label in program.labels]
        return result | {"kind": "list", "labels": labels, "shares": program.shares}
    assert isinstance(program, Sum)
    weights = [rule.weights for rule in program.rules]
    total = {"intercept": program.intercept, "link": program.link, "threshold": program.threshold}
    return result | {"kind": "sum", "weights": weights, **total}


def _terms(terms: Sequence[Term], places: dict[int, int]) -> list[Json]:
    # An infinite end becomes null.
    kept = ("category", "weights", "lower", "upper", "text", "origin")
    return [
        {"column": places[term.feature], **{name: getattr(term, name) for name in kept}}
        for term in terms
    ]


def _test(test: Test, program: Program, places: dict[int, int]) -> Json:
    asked: Any = test.asked
    if asked and asked[0][0] in ("in", "not in"):
        ((operator, names),) = asked
        feature = program.schema.features[test.feature]
        known: tuple[Any, ...] = feature.levels or feature.categories or ()
        if feature.source is not None:
            known = tuple(map(float, known[:-1]))
        asked = [(operator, [known.index(name) for name in names])]
    return {"column": places[test.feature], "asked": asked, "missing": test.missing}


def rows_json(table: Table, columns: Sequence[int], n_rows: int) -> Json:
    """The columns, and the first rows as the page evaluates them."""
    features, places = [table.schema.features[column] for column in columns], list(columns)
    companions = table.schema.companions
    named = [
        {
            "name": display.plain(feature.name),
            "categories": feature.categories and list(map(display.plain, feature.categories)),
            "levels": feature.levels and list(map(display.plain, feature.levels)),
            "missing": bool(table.missing_mask(column).any()),
            "special": feature.special_values,
            "companion": places.index(companions[column]) if column in companions else None,
            "typed": feature.source is None,
        }
        for column, feature in zip(columns, features, strict=True)
    ]
    return {"columns": named, "rows": [table.columns[c][:n_rows].tolist() for c in columns]}
