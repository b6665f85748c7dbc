"""`report`: the page, its data, and the file."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from jaxrules.data.table import TableLike, check_order
from jaxrules.models.persistence import file_to_write, write_file
from jaxrules.tools import checks
from jaxrules.users.reporting.data import Json, data_json
from jaxrules.users.reporting.subject import Subject, subject_of


@dataclass(frozen=True, eq=False)
class Report:
    """A report as a page; notebooks show it.

    Attributes:
        html: the whole page.
        path: the file that holds it; None if none was written.
    """

    html: str = field(repr=False)
    path: Path | None

    def _repr_html_(self) -> str:
        """The page in its own frame, so that neither it nor the notebook changes the other."""
        return (
            f'<iframe title="Report" srcdoc="{html.escape(self.html)}" '
            'style="width: 100%; height: 50rem; border: 1px solid #8888"></iframe>'
        )


def report(
    result: Any,
    X: TableLike,
    y: ArrayLike,
    path: str | os.PathLike[str] | None = "report.html",
    *,
    groups: ArrayLike | None = None,
    title: str | None = None,
    max_rows: int = 2000,
) -> Report:
    """Write a report as one HTML file that needs no network, no server and no Python.

    It shows the rules with coverage, lift and weight, in tables that sort; quality (ROC and
    calibration, or residuals); whom the rules affect, by group; which rules hold for a row, chosen
    or typed; data, settings and certificate. A path has a slider; near-optimal lists stand side by
    side; a comparison has its table and its fronts. Rules without weight, and rules that no row can
    satisfy, are left out.

    **All figures are for the rows of X and y.** If the model was fitted to them, they are
    optimistic: pass held-out rows (not for a comparison). Every row counts the same.

    Args:
        result: a `Fit`, a model or a scorecard; a path, that is a list of fits or models, or a
            `CoordinatePath`, whose steps are shown; the result of
            `jaxrules.exact_list.near_optimal` (its best 20 lists); or of `jaxrules.compare`, which
            is refitted to X and y, the rows of the comparison, by its best method that yields rules
            or a linear model. Its quality is that on held-out rows: the models of the folds are
            fitted again, too.
        X: rows with the columns of fit.
        y: their labels or numbers, shape (rows,).
        path: of the file, which is replaced if it exists; None writes no file.
        groups: the group of each row, or the name of a column of `X`; at most 20 groups.
        title: of the page; None for one made of the model and the target.
        max_rows: the number of rows, from the first on, that the file stores for readers to
            choose from. Only columns that the model uses are stored. 0 stores none; rows can still
            be typed. The figures always use all rows.

    Returns:
        The page; a notebook shows it.

    Raises:
        TypeError: for anything but a result of this library, or a wrong type of argument.
        ValueError: if X, y or groups does not fit the model, or there are no rows.
        OSError: if the file cannot be written.
    """
    target = None if path is None else file_to_write(path)
    max_rows = checks.integer("max_rows", max_rows, at_least=0)
    if not (title is None or isinstance(title, str)):
        raise TypeError(f"title must be text or None, got {type(title).__name__}")
    checks.concrete("X", X)
    check_order(X, y=y, groups=groups)
    subject = subject_of(result, X, y)
    page = _page(data_json(subject, X, y, groups, title, max_rows), subject)
    if target is not None:
        write_file(target, page.encode())
    return Report(page, target)


_FOLDER = Path(__file__).parent


def _page(data: Json, subject: Subject) -> str:
    """The template with its style, script and data. JSON holds no character with a meaning in HTML,
    so that no name can end the script that holds it.
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    shown = subject.entries[subject.start :][:1]
    models = "\n\n".join(str(entry.card or entry.model) for entry in shown)
    parts = {
        "TITLE": html.escape(data["title"]),
        "STYLE": _source("page.css"),
        "PLAIN": html.escape(models),
        "DATA": text,
        "SCRIPT": _source("page.js"),
    }
    # Only the template is searched for places, never what has been put there.
    first, *others = _source("page.html").split("{{")
    ends = [other.split("}}", 1) for other in others]
    return first + "".join(parts[name] + after for name, after in ends)


def _source(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")
