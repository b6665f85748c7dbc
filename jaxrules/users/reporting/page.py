"""`report`: the page, its data, and the file."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import TableLike, check_order, target_array, target_name
from jaxrules.models.persistence import file_to_write, write_file
from jaxrules.tools import checks, display
from jaxrules.users.reporting.data import Json, data_json
from jaxrules.users.reporting.subject import Known, Subject, subject_of, with_target

SIGN_OFF = ("Developed by", "Validated by", "Approved by")
"""Who signs a report if its maker says nothing else."""


@dataclass(frozen=True, eq=False)
class Report:
    """A report as a page; notebooks show it.

    Attributes:
        html: the whole page.
        path: the file that holds it; None if none was written.
        data_hash: SHA-256 of X and y as the model reads them, as the page says: whoever has the
            rows can make the report again and compare.
    """

    html: str = field(repr=False)
    path: Path | None
    data_hash: str = ""

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
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    title: str | None = None,
    max_rows: int = 2000,
    ids: ArrayLike | None = None,
    changeable: Sequence[str] | None = None,
    intended_use: str | None = None,
    sign_off: Sequence[str] = SIGN_OFF,
) -> Report:
    """Write a report as one HTML file that needs no network, no server and no Python.

    It opens with a paragraph in plain words: what is predicted, by how many rules, how well, and
    what is proved. It shows the rules with weight, importance, coverage and lift, in tables that
    sort and filter; what one column does; quality (ROC, precision and recall, calibration, each
    with 95 % intervals and the operating point; or residuals); whom the rules affect, by group; for
    a row, chosen by its name or typed, which rules hold, the reasons, and what would change the
    prediction; data, settings and certificate; intended use and lines to sign. A path has a slider;
    near-optimal models stand side by side; a comparison has its table and its fronts. Rules without
    weight, and rules that no row can satisfy, are left out.

    The target is called by its name in the model, or, if that is "target", by that of `y` (a pandas
    Series).

    **All figures are for the rows of X and y.** If the model was fitted to them, they are
    optimistic: pass held-out rows (not for a comparison). Every row counts the same.

    Args:
        result: a `Fit`, a model or a scorecard; a path, that is a list of fits or models, or a
            `CoordinatePath`, whose steps are shown; the result of `jaxrules.lire.near_optimal` or
            `jaxrules.exact_list.near_optimal` (its best 20 models); or of `jaxrules.compare`, which
            is refitted to X and y, the rows of the comparison, by its best method that yields rules
            or a linear model. Its quality is that on held-out rows: the models of the folds are
            fitted again, too.
        X: rows with the columns of fit.
        y: their labels or numbers, shape (rows,).
        path: of the file, which is replaced if it exists; None writes no file.
        groups: the group of each row, or the name of a column of `X`; at most 20 groups.
        offset, exposure: as in `jaxrules.predict`, for a model or comparison with one of them.
            The page then shows rates: y / exposure (for other links y - offset) beside predictions
            without the offset, and all means over rows have the weights of the fit (for counts
            the exposure), so that a rate is events / exposure. The risk is that of `jaxrules.risk`.
        title: of the page; None for one made of the model and the target.
        max_rows: the number of rows, from the first on, that the file stores for readers to
            choose from. Only columns that the model uses are stored. 0 stores none; rows can still
            be typed. The figures always use all rows.
        ids: a name for every row, shape (rows,), by which readers find it, such as ``X.index``;
            None for the numbers 1, 2, ... The file stores them for the rows that it stores.
        changeable: the columns that "what would change it" may change at first, such as those that
            an applicant can influence; None for all. Readers can choose others.
        intended_use: a text on what the model is for, and what not.
        sign_off: who signs: a line for each, with name, date and signature to fill in; empty for
            none.

    Returns:
        The page; a notebook shows it.

    Raises:
        TypeError: for anything but a result of this library, or a wrong type of argument.
        ValueError: if X, y or groups does not fit the model, or there are no rows; for a model
            fitted with an offset or exposure without one.
        OSError: if the file cannot be written.
    """
    target = None if path is None else file_to_write(path)
    max_rows = checks.integer("max_rows", max_rows, at_least=0)
    for name, text in (("title", title), ("intended_use", intended_use)):
        if not (text is None or isinstance(text, str)):
            raise TypeError(f"{name} must be text or None, got {type(text).__name__}")
    checks.concrete("X", X)
    check_order(X, y=y, groups=groups, offset=offset, exposure=exposure, ids=ids)
    known = Known(offset, exposure)
    names = None if ids is None else [str(one) for one in target_array(ids, None, "ids").tolist()]
    may_change = None if changeable is None else _names("changeable", changeable)
    signing = _names("sign_off", sign_off)
    subject = subject_of(result, X, y, known)
    if called := target_name(y):
        subject = with_target(subject, called)
    data = data_json(subject, X, y, groups, known, title, max_rows, names, may_change)
    data |= {
        "version": version("jaxrules"),
        "date": datetime.now(UTC).date().isoformat(),
        "intended_use": None if intended_use is None else display.plain(intended_use),
        "sign_off": list(map(display.plain, signing)),
    }
    page = _page(data, subject)
    if target is not None:
        write_file(target, page.encode())
    return Report(page, target, data["data_hash"])


def _names(argument: str, given: object) -> list[str]:
    names: Any = given.tolist() if isinstance(given, np.ndarray) else given
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not all(isinstance(one, str) for one in names):
        raise TypeError(f"{argument} must be a sequence of names, got {given!r}")
    return list(names)


_FOLDER = Path(__file__).parent
SCRIPTS = ("page.js", "row.js", "column.js", "start.js")
"""One script in parts: what all sections use, a row, a column, and what begins."""


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
        "SCRIPT": "\n".join(map(_source, SCRIPTS)),
    }
    # Only the template is searched for places, never what has been put there.
    first, *others = _source("page.html").split("{{")
    ends = [other.split("}}", 1) for other in others]
    return first + "".join(parts[name] + after for name, after in ends)


def _source(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")
