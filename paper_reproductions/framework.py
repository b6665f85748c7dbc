"""Cells, experiments and exhibits: what is computed, what is kept, and what is shown."""

from __future__ import annotations

import csv
import functools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from paper_reproductions.report import Canvas, Section

Entry = str | int | float
Row = Mapping[str, Any]
"""What was measured, by name: numbers and short texts."""

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Settings:
    """What the user asked for.

    Attributes:
        quick: a version in small, for a first look.
        folds: only the first so many folds, None for all.
        seed: of everything that draws at random.
        slow: also what is left out otherwise because it takes very long; the paper's protocol says what.
    """

    quick: bool = False
    folds: int | None = None
    seed: int = 0
    slow: bool = False

    @property
    def profile(self) -> str:
        """Name of the folder of results: those in small, and those of other seeds, are kept apart."""
        return ("quick" if self.quick else "full") + (f"-seed-{self.seed}" if self.seed else "")

    def first_folds(self, total: int, quick: int = 1) -> range:
        """The folds to run: of `total`, or of `quick` when in small, at most ``folds``."""
        return range(min(quick if self.quick and self.folds is None else total, self.folds or total))


@dataclass(frozen=True)
class Cell:
    """The smallest piece of work that is kept: named values, such as a data set, a method and a fold."""

    key: tuple[tuple[str, Entry], ...]

    @classmethod
    def of(cls, **key: Entry) -> Cell:
        """The cell with these values, in this order."""
        return cls(tuple(key.items()))

    def __getitem__(self, name: str) -> Any:
        return dict(self.key)[name]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.key)

    @property
    def slug(self) -> str:
        """A file name, another one for every cell."""
        return "_".join(f"{name}={quote(str(value), safe='')}" for name, value in self.key)


@dataclass(frozen=True)
class Experiment:
    """Cells that are measured in the same way.

    Attributes:
        name: a name for files.
        cells: the cells that the settings ask for, in the order of computation.
        measure: computes one cell: one row, or several.
    """

    name: str
    cells: Callable[[Settings], Iterable[Cell]]
    measure: Callable[[Cell, Settings], Row | Sequence[Row]]


class Rows(Sequence[Row]):
    """Rows of measurements: the cell's values, what was measured, and ``cell_seconds``."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def where(self, **values: Entry) -> Rows:
        """The rows that have these values."""
        return Rows(row for row in self._rows if all(row.get(name) == value for name, value in values.items()))

    def values(self, name: str) -> tuple[Entry, ...]:
        """The different values of a column, in order of first appearance."""
        return tuple(dict.fromkeys(row[name] for row in self._rows if name in row))

    def column(self, name: str) -> NDArray[np.float64]:
        """A column of numbers, shape (rows,); rows without it are left out."""
        return np.array([row[name] for row in self._rows if row.get(name, "") != ""], np.float64)

    def mean(self, name: str) -> float | None:
        """The mean of a column, or None if there is nothing yet."""
        column = self.column(name)
        return float(column.mean()) if len(column) else None

    def spread(self, name: str) -> float | None:
        """The standard deviation of a column, or None if there are fewer than two rows."""
        column = self.column(name)
        return float(column.std(ddof=1)) if len(column) > 1 else None


class Results:
    """Everything that was measured so far: ``results[experiment]`` are its `Rows`, read once."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self._read: dict[Experiment, Rows] = {}

    def __getitem__(self, experiment: Experiment) -> Rows:
        if experiment not in self._read:
            found = (self.store.read(experiment, cell) for cell in experiment.cells(self.settings))
            self._read[experiment] = Rows(row for rows in found if rows is not None for row in rows)
        return self._read[experiment]


@dataclass(frozen=True)
class Exhibit:
    """One table or figure of the paper.

    Attributes:
        kind, number: "table" or "figure", and its number in the paper.
        title: what it shows.
        experiments: what has to be measured for it.
        show: draws it and compares it with the paper.
    """

    kind: Literal["table", "figure"]
    number: int
    title: str
    experiments: tuple[Experiment, ...]
    show: Callable[[Results, Canvas], Section]

    @property
    def name(self) -> str:
        return f"{self.kind.capitalize()} {self.number}"


@dataclass(frozen=True)
class Paper:
    """A paper to reproduce.

    Attributes:
        name: of its folder.
        title, reference: for the report.
        exhibits: its tables and figures.
        protocol: in words, what was run and how it departs from the paper's protocol.
        quick: what ``--quick`` leaves out.
        summary: optional, over all results: the paragraph that opens the report.
    """

    name: str
    title: str
    reference: str
    exhibits: tuple[Exhibit, ...]
    protocol: str = ""
    quick: str = ""
    summary: Callable[[Results], str] | None = None


@dataclass(frozen=True)
class Store:
    """Finished cells on disk, one CSV file each, replaced in one step: an interrupted run leaves no half cell."""

    folder: Path

    def path(self, experiment: Experiment, cell: Cell) -> Path:
        return self.folder / "cells" / experiment.name / f"{cell.slug}.csv"

    def has(self, experiment: Experiment, cell: Cell) -> bool:
        """Whether a cell is finished."""
        return self.path(experiment, cell).exists()

    def read(self, experiment: Experiment, cell: Cell) -> list[Row] | None:
        """The rows of a cell, or None if it is not finished."""
        return _read(self.path(experiment, cell)) if self.has(experiment, cell) else None

    def write(self, experiment: Experiment, cell: Cell, measured: Row | Sequence[Row], seconds: float) -> None:
        """Keep a finished cell."""
        rows = [measured] if isinstance(measured, Mapping) else list(measured)
        if not rows:
            raise ValueError(f"{experiment.name}: {cell} measured nothing; return at least one row")
        if clash := dict(cell.key).keys() & rows[0].keys():
            raise ValueError(f"{experiment.name}: {cell} measured {sorted(clash)}, which are the cell's own values")
        full = [{**dict(cell.key), **row, "cell_seconds": round(seconds, 3)} for row in rows]
        _write(self.path(experiment, cell), full)


@dataclass(frozen=True)
class Archive(Store):
    """Finished cells as they are shipped: a CSV file per experiment, and in about.json with what they were made."""

    def path(self, experiment: Experiment, cell: Cell) -> Path:
        return self.folder / f"{experiment.name}.csv"

    def has(self, experiment: Experiment, cell: Cell) -> bool:
        return self.read(experiment, cell) is not None

    def read(self, experiment: Experiment, cell: Cell) -> list[Row] | None:
        path = self.path(experiment, cell)
        rows = _archived(path) if path.exists() else []
        return [row for row in rows if all(row.get(name) == value for name, value in cell.key)] or None

    def pack(self, results: Results, experiments: Iterable[Experiment], about: Mapping[str, str]) -> None:
        """Replace the archive by these results."""
        for experiment in experiments:
            rows = [{name: _short(value) for name, value in row.items()} for row in results[experiment]]
            if rows:
                _write(self.folder / f"{experiment.name}.csv", rows)
        (self.folder / "about.json").write_text(json.dumps(dict(about), indent=1) + "\n")
        _archived.cache_clear()

    @property
    def about(self) -> Mapping[str, str]:
        """With what the cells were made: profile, versions, date."""
        found: dict[str, str] = json.loads((self.folder / "about.json").read_text())
        return found


def _short(value: Any) -> Any:
    """Seven digits are more than any report prints."""
    return float(f"{value:.7g}") if isinstance(value, float) else value


@functools.lru_cache(maxsize=32)
def _archived(path: Path) -> list[Row]:
    """What a cell of another kind has is not there, not empty."""
    return [{name: value for name, value in row.items() if value != ""} for row in _read(path)]


def _read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [{name: _parsed(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _write(path: Path, rows: Sequence[Row]) -> None:
    """A CSV file, replaced in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    with unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), restval="")
        writer.writeheader()
        writer.writerows({name: _text(value) for name, value in row.items()} for row in rows)
    unfinished.replace(path)


def _text(value: Any) -> str:
    """Numbers so that reading gives them back exactly."""
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)


def _parsed(text: str) -> Entry:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class Failure:
    """A cell that could not be computed."""

    experiment: Experiment
    cell: Cell
    error: Exception

    def __str__(self) -> str:
        return f"{self.experiment.name}: {self.cell}: {type(self.error).__name__}: {self.error}"


@dataclass
class Outcome:
    """What a run did."""

    computed: int = 0
    kept: int = 0
    failures: list[Failure] = field(default_factory=list)
    interrupted: bool = False


def run(
    experiments: Iterable[Experiment],
    settings: Settings,
    store: Store,
    *,
    fresh: bool = False,
    report: Callable[[str], None] | None = None,
) -> Outcome:
    """Compute the cells that are not finished yet.

    A cell that fails is reported and left out, the others go on. Ctrl-C ends the run; what is finished stays.

    Args:
        experiments: what to measure; one that is named twice is measured once.
        settings: what the user asked for.
        store: where finished cells are kept.
        fresh: compute cells again that are finished already.
        report: receives a line per cell; None prints it.
    """
    report = report or functools.partial(print, flush=True)
    outcome = Outcome()
    todo: list[tuple[Experiment, Cell]] = []
    for experiment in {experiment.name: experiment for experiment in experiments}.values():
        for cell in experiment.cells(settings):
            if fresh or not store.has(experiment, cell):
                todo.append((experiment, cell))
            else:
                outcome.kept += 1
    if outcome.kept:
        report(f"{outcome.kept} cells are finished already")
    started = time.monotonic()
    for done, (experiment, cell) in enumerate(todo):
        if not fresh and store.has(experiment, cell):  # another process has computed it meanwhile
            outcome.kept += 1
            continue
        begun = time.monotonic()
        line = f"[{done + 1:{len(str(len(todo)))}}/{len(todo)}] {experiment.name}: {cell}"
        try:
            measured = experiment.measure(cell, settings)
            seconds = time.monotonic() - begun
            store.write(experiment, cell, measured, seconds)
        except KeyboardInterrupt:
            report(f"{line}: interrupted; run the same command to go on")
            outcome.interrupted = True
            break
        except Exception as error:  # one bad cell must not cost hours of others; it is named in the report
            outcome.failures.append(Failure(experiment, cell, error))
            report(f"{line}: FAILED: {type(error).__name__}: {error}")
            continue
        outcome.computed += 1
        elapsed = time.monotonic() - started
        left = elapsed / (done + 1) * (len(todo) - done - 1)
        report(f"{line}: {seconds:.1f} s ({_duration(elapsed)} so far, about {_duration(left)} to go)")
    return outcome


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def missing_cells(exhibit: Exhibit, results: Results) -> Iterator[tuple[Experiment, Cell]]:
    """The cells of an exhibit that are not finished."""
    for experiment in exhibit.experiments:
        for cell in experiment.cells(results.settings):
            if not results.store.has(experiment, cell):
                yield experiment, cell
