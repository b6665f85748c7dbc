"""A model, or a table, as a dataframe."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast, get_args

from jaxrules.data.table import Table
from jaxrules.tools import checks, display
from jaxrules.users.export.program import FirstMatch, Sum, Term, program_of

Backend = Literal["pandas", "polars", "pyarrow"]


def to_dataframe(model: Any, backend: Backend | None = None) -> Any:
    """The model as a dataframe, one row per rule in use; a `Table` as a dataframe of its rows.

    - A rule ensemble, or the last model of a coordinate path: ``kind`` ("intercept", "rule" or
      "linear term"), ``rule`` as text, ``conditions``, and ``weight``, or ``weight of CLASS`` for
      each of more than two classes.
    - A rule list: ``rule``, ``conditions``, ``then`` (the label or number),
      ``probability of CLASS``; the default last.

    Args:
        model: any jaxrules model, or a Table: numbers with NaN, and categories as text with
            None, for missing values.
        backend: "pandas", "polars" or "pyarrow"; None for the first of them that is installed.

    Raises:
        TypeError: for anything but a model.
        ValueError: for an unknown backend.
        ImportError: if none of them is installed.
    """
    if isinstance(model, Table):
        return frame(model.to_columns(), backend)
    program = program_of(model)
    texts = [rule.text for rule in program.rules]
    conditions = [len(rule.tests) for rule in program.rules]
    numbers: tuple[tuple[float, ...], ...]
    if isinstance(program, FirstMatch):
        columns: dict[str, Any] = {"rule": [*texts, "no rule holds"]}
        columns |= {"conditions": [*conditions, 0], "then": list(program.labels)}
        named = [f"probability of {label}" for label in program.schema.classes or ()]
        numbers = program.shares
    else:
        assert isinstance(program, Sum)
        columns = {
            "kind": ["intercept", *["rule"] * len(texts), *["linear term"] * len(program.terms)],
            "rule": ["always", *texts, *map(_text, program.terms)],
            "conditions": [0, *conditions, *[0] * len(program.terms)],
        }
        several = len(program.intercept) > 1
        named = [f"weight of {label}" for label in program.scored] if several else ["weight"]
        parts: tuple[Any, ...] = (*program.rules, *program.terms)
        numbers = (program.intercept, *(part.weights for part in parts))
    columns |= dict(zip(named, map(list, zip(*numbers, strict=True)), strict=True))
    return frame(columns, backend)


def frame_of_rows(
    names: Sequence[str], rows: Sequence[Sequence[Any]], backend: Backend | None
) -> Any:
    """A dataframe of these rows; errors as `frame`."""
    return frame({name: [row[place] for row in rows] for place, name in enumerate(names)}, backend)


def frame(columns: Mapping[str, Any], backend: Backend | None) -> Any:
    """A dataframe of these columns.

    Raises:
        ValueError: for an unknown backend.
        ImportError: if none of them is installed.
    """
    import narwhals as nw

    chosen = checks.choice("backend", backend, (*get_args(Backend), None)) or _installed()
    return nw.from_dict(dict(columns), backend=chosen).to_native()


def _text(term: Term) -> str:
    if not (math.isfinite(term.lower) or math.isfinite(term.upper)):
        return term.text
    lower, upper = display.number(term.lower), display.number(term.upper)
    return f"{term.text}, clipped to [{lower}, {upper}]"


def _installed() -> Backend:
    for name in get_args(Backend):
        if importlib.util.find_spec(name):
            return cast(Backend, name)
    raise ImportError("to_dataframe needs pandas, polars or pyarrow; install one of them")
