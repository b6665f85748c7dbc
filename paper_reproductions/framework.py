"""Cells, experiments and exhibits: what is computed, what is kept, and what is shown."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import datetime
import functools
import json
import os
import platform
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

import jaxrules
from paper_reproductions import claims
from paper_reproductions.sections import Canvas, Section

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
        slow: also what is left out otherwise because it takes very long; the
            paper's protocol says what.
    """

    quick: bool = False
    folds: int | None = None
    seed: int = 0
    slow: bool = False

    @property
    def profile(self) -> str:
        """Name of the folder of results: those in small, and those of
        other seeds, are kept apart.
        """
        return ("quick" if self.quick else "full") + (f"-seed-{self.seed}" if self.seed else "")

    def first_folds(self, total: int, quick: int = 1) -> range:
        """The folds to run: of `total`, or of `quick` when in small, at most ``folds``."""
        return range(
            min(quick if self.quick and self.folds is None else total, self.folds or total)
        )


@dataclass(frozen=True)
class Cell:
    """The smallest piece of work that is kept: named values, such as a data
    set, a method and a fold.
    """

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
        data: the names, for `jaxrules.datasets.load`, of the sets that a cell needs.
        elsewhere: whether a cell runs a program of others, in an environment of its own.
        version: of the protocol, from 1. Raise it with each change after which a cell would
            measure something else: cells of other versions are measured again.
        rounding: whether a processor that rounds sums in another order may end in another optimum:
            audits then leave out the cells of other processors.

    Raises:
        ValueError: for a version that is no integer from 1.
    """

    name: str
    cells: Callable[[Settings], Iterable[Cell]]
    measure: Callable[[Cell, Settings], Row | Sequence[Row]]
    data: Callable[[Cell], Iterable[str]] = lambda cell: ()
    elsewhere: Callable[[Cell], bool] = lambda cell: False
    version: int = 1
    rounding: bool = False

    def __post_init__(self) -> None:
        if type(self.version) is not int or self.version < 1:
            raise ValueError(
                f"{self.name}: version must be an integer of at least 1, got {self.version!r}"
            )


@dataclass(frozen=True)
class Made:
    """With what a finished cell was made.

    Attributes:
        protocol: the version of its experiment, 0 if it was kept without one.
        version: of jaxrules, with its commit.
        date: of the day, ISO.
        processor: see `processor`; "" if it was not kept.
    """

    protocol: int = 0
    version: str = ""
    date: str = ""
    processor: str = ""


def git(*command: str) -> str:
    """What git says in the library's folder, "" outside a checkout."""
    try:
        done = subprocess.run(
            ["git", "-C", str(Path(jaxrules.__file__).parent), *command],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def library() -> str:
    """The version of jaxrules; in a checkout with the last commit that changed it, and
    whether it is changed since.
    """
    commit = git("log", "-1", "--format=%h", "--abbrev=8", "--", ".")
    changed = ", changed" if commit and git("status", "--porcelain", "--", ".") else ""
    return jaxrules.__version__ + (f" ({commit}{changed})" if commit else "")


@functools.cache
def processor() -> str:
    """The kernels of linear algebra that NumPy takes on this machine, which decide how sums round:
    such as "x86_64 SkylakeX".
    """
    kernels = {str(one.get("architecture", "")) for one in threadpoolctl.threadpool_info()}
    return " ".join([platform.machine(), *sorted(kernels - {""})])


class Rows(Sequence[Row]):
    """Rows of measurements: the cell's values, what was measured, and
    ``cell_seconds``, but not of an archive.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def where(self, **values: Entry) -> Rows:
        """The rows that have these values."""
        return Rows(
            row
            for row in self._rows
            if all(row.get(name) == value for name, value in values.items())
        )

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
class Claim:
    """A sentence of the paper, and what of ours it is compared with.

    Attributes:
        sentence: as the paper has it, shortened by "..." and with additions in square brackets.
        section: where it stands.
        behind: the name of the exhibit that has the numbers.
        compared: in words, what the numbers are, and the bound that makes a vague word exact.
        compare: the comparisons; none while nothing is measured.
        needed: how many of them the sentence needs, None for all.
        beside: optional, further words computed from the results, which the verdict leaves out.
    """

    sentence: str
    section: str
    behind: str
    compared: str
    compare: Callable[[Results], Sequence[claims.Comparison]]
    needed: int | None = None
    beside: Callable[[Results], str] = lambda results: ""

    def weighed(self, results: Results) -> Weighed:
        """The verdict with its numbers."""
        comparisons = self.compare(results)
        return Weighed(
            self, claims.verdict(comparisons, self.needed), comparisons, self.beside(results)
        )


@dataclass(frozen=True)
class Weighed:
    """A claim with its verdict."""

    claim: Claim
    verdict: claims.Verdict
    comparisons: Sequence[claims.Comparison]
    beside: str

    def __str__(self) -> str:
        """What was compared, and how it came out."""
        found = claims.in_words(self.comparisons, self.claim.needed)
        return " ".join(filter(None, [self.claim.compared, found, self.beside]))


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
        claims: what the paper says of its results, in its order.
    """

    name: str
    title: str
    reference: str
    exhibits: tuple[Exhibit, ...]
    protocol: str = ""
    quick: str = ""
    summary: Callable[[Results], str] | None = None
    claims: tuple[Claim, ...] = ()


_MADE = ("cell_protocol", "cell_version", "cell_date", "cell_processor")
"""The columns that say with what a cell was made; not part of its rows."""


@dataclass(frozen=True)
class Store:
    """Finished cells on disk, one CSV file each, replaced in one step: an
    interrupted run leaves no half cell.

    A cell of another version than its experiment has now counts as not finished.
    """

    folder: Path

    def path(self, experiment: Experiment, cell: Cell) -> Path:
        return self.folder / "cells" / experiment.name / f"{cell.slug}.csv"

    def has(self, experiment: Experiment, cell: Cell) -> bool:
        """Whether a cell is finished."""
        made = self.made(experiment, cell)
        return made is not None and made.protocol == experiment.version

    def made(self, experiment: Experiment, cell: Cell) -> Made | None:
        """With what a cell was made, of whichever protocol; None if there is none."""
        path = self.path(experiment, cell)
        if not path.exists():
            return None
        protocol, *made = (_read(path)[0].get(name, "") for name in _MADE)
        known = isinstance(protocol, int)  # it was a text before experiments had versions
        return Made(int(protocol) if known else 0, *map(str, made))

    def read(self, experiment: Experiment, cell: Cell) -> list[Row] | None:
        """The rows of a cell, or None if it is not finished."""
        if not self.has(experiment, cell):
            return None
        return [_without(row, _MADE) for row in _read(self.path(experiment, cell))]

    def seconds(self, experiment: Experiment, settings: Settings) -> tuple[float, int]:
        """The seconds by the clock of its finished cells, summed, and
        how many of them say theirs.
        """
        rows = [
            found[0]
            for cell in experiment.cells(settings)
            if (found := self.read(experiment, cell))
        ]
        known = [seconds for row in rows if (seconds := float(row.get("cell_seconds", 0.0))) > 0]
        return round(sum(known), 3), len(known)

    def write(
        self, experiment: Experiment, cell: Cell, measured: Row | Sequence[Row], seconds: float
    ) -> None:
        """Keep a finished cell."""
        rows = [measured] if isinstance(measured, Mapping) else list(measured)
        if not rows:
            raise ValueError(f"{experiment.name}: {cell} measured nothing; return at least one row")
        if clash := dict(cell.key).keys() & rows[0].keys():
            raise ValueError(
                f"{experiment.name}: {cell} measured {sorted(clash)}, which are the cell's own "
                "values"
            )
        full = [{**dict(cell.key), **row, "cell_seconds": round(seconds, 3)} for row in rows]
        self._write(
            experiment,
            cell,
            full,
            Made(experiment.version, library(), datetime.date.today().isoformat(), processor()),
        )

    def adopt(self, experiment: Experiment, cell: Cell, library: str) -> bool:
        """Take a cell that was kept without a protocol as one of today's, made with
        this version of the library.

        Returns whether there was one. That the protocol was today's is the caller's
        word; the report says so.
        """
        path, made = self.path(experiment, cell), self.made(experiment, cell)
        if made is None or made.protocol:
            return False
        date = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
        self._write(
            experiment, cell, _read(path), Made(experiment.version, f"{library}, adopted", date)
        )
        return True

    def _write(self, experiment: Experiment, cell: Cell, rows: Sequence[Row], made: Made) -> None:
        columns = dict(zip(_MADE, dataclasses.astuple(made), strict=True))
        _write(self.path(experiment, cell), [{**row, **columns} for row in rows])


@dataclass(frozen=True)
class Archive(Store):
    """Finished cells as they are shipped: a CSV file per experiment, and in about.json
    with what they were made.

    Cells of an older version are kept in view; the report says how many they are.
    """

    def path(self, experiment: Experiment, cell: Cell) -> Path:
        return self.folder / f"{experiment.name}.csv"

    def has(self, experiment: Experiment, cell: Cell) -> bool:
        return bool(self._rows(experiment, cell))

    def made(self, experiment: Experiment, cell: Cell) -> Made | None:
        rows = self._rows(experiment, cell)
        return Made(**self._about["Made"][int(rows[0]["made"])]) if rows else None

    def read(self, experiment: Experiment, cell: Cell) -> list[Row] | None:
        return [_without(row, ("made",)) for row in self._rows(experiment, cell)] or None

    def seconds(self, experiment: Experiment, settings: Settings) -> tuple[float, int]:
        seconds, cells = self._about.get("Seconds", {}).get(experiment.name, (0.0, 0))
        return seconds, cells

    def _rows(self, experiment: Experiment, cell: Cell) -> list[Row]:
        path = self.path(experiment, cell)
        names, values = zip(
            *((name, _parsed(_text(value))) for name, value in cell.key), strict=True
        )
        return (
            _archived(path, names).get(values, []) if path.exists() else []
        )  # as read: the text "2011" is a number

    def pack(
        self, results: Results, experiments: Iterable[Experiment], about: Mapping[str, str]
    ) -> None:
        """Put these results into the archive; cells that they do not have stay as they are."""
        before = self._about
        made: set[Made] = set()
        seconds: dict[str, tuple[float, int]] = {}
        tables: dict[str, list[tuple[Made, Row]]] = {}
        stale: dict[str, str] = {}
        kept = 0
        for experiment in experiments:
            rows: list[tuple[Made, Row]] = []
            of_before = older = 0
            for cell in experiment.cells(results.settings):
                store = results.store if results.store.has(experiment, cell) else self
                origin, measured = store.made(experiment, cell), store.read(experiment, cell)
                if origin is None or measured is None:
                    continue
                of_before += store is self
                older += store is self and not experiment.elsewhere(cell)
                made.add(origin)
                for row in measured:  # of seconds, reports have the sum
                    short = {n: _short(v) for n, v in row.items() if n != "cell_seconds"}
                    rows.append((origin, short))
            if rows:
                tables[experiment.name] = rows
                # The seconds of as many cells as possible; of more than there are, they are of an
                # experiment that had others.
                took = [
                    store.seconds(experiment, results.settings) for store in (results.store, self)
                ]
                known = [one for one in took if one[1] <= len(experiment.cells(results.settings))]
                seconds[experiment.name] = max(known, key=lambda one: one[1], default=(0.0, 0))
            if older and experiment.name in before.get("Stale", {}):
                stale[experiment.name] = before["Stale"][experiment.name]
            kept += of_before
        if kept:
            about = {**about, "Earlier cells": before.get("Earlier cells", before["Versions"])}
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("*.csv"):
            old.unlink()
        known = dict.fromkeys(Made(**fields) for fields in before.get("Made", ()))
        entries = [origin for origin in known if origin in made]
        entries += sorted(made - set(entries), key=dataclasses.astuple)
        numbers = {origin: number for number, origin in enumerate(entries)}
        for name, rows in tables.items():
            numbered = [{**row, "made": numbers[origin]} for origin, row in rows]
            _write(self.folder / f"{name}.csv", numbered)
        self._write_about(
            {
                **about,
                "Settings": dataclasses.asdict(results.settings),
                "Seconds": seconds,
                "Made": [dataclasses.asdict(origin) for origin in entries],
                "Stale": stale,
            }
        )

    def mark_stale(self, found: Mapping[str, str]) -> None:
        """Note, by experiment, what an audit found; reports say it."""
        self._write_about({**self._about, "Stale": {**self.stale, **found}})

    def _write_about(self, about: Mapping[str, Any]) -> None:
        (self.folder / "about.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
        _archived.cache_clear()

    @property
    def _about(self) -> dict[str, Any]:
        file = self.folder / "about.json"
        found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
        return found

    @property
    def settings(self) -> Settings:
        """Those of the run that was shipped."""
        return Settings(**self._about["Settings"])

    @property
    def stale(self) -> Mapping[str, str]:
        """Experiments whose cells this library no longer gives, and why."""
        found: dict[str, str] = self._about.get("Stale", {})
        return found

    @property
    def about(self) -> Mapping[str, str]:
        """Profile and versions of the run that was shipped."""
        return {name: text for name, text in self._about.items() if isinstance(text, str)}


def _without(row: Row, names: Sequence[str]) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def as_archived(value: Any) -> Entry:
    """A measured value as reading it from an archive gives it."""
    return _parsed(_text(_short(value)))


def _short(value: Any) -> Any:
    """Seven digits are more than any report prints."""
    return float(f"{value:.7g}") if isinstance(value, float) else value


@functools.lru_cache(maxsize=32)
def _archived(path: Path, names: tuple[str, ...]) -> dict[tuple[Entry, ...], list[Row]]:
    """The rows by cell; what a cell of another kind has is not there, not empty."""
    cells: dict[tuple[Entry, ...], list[Row]] = {}
    for row in _read(path):
        key = tuple(row.get(name) for name in names)
        cells.setdefault(key, []).append(
            {name: value for name, value in row.items() if value != ""}
        )
    return cells


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: _parsed(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _write(path: Path, rows: Sequence[Row]) -> None:
    """A CSV file, replaced in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    with unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file, list(dict.fromkeys(name for row in rows for name in row)), restval=""
        )
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


@dataclass(frozen=True)
class Task:
    """A cell to compute, and its experiment."""

    experiment: Experiment
    cell: Cell


def unfinished(
    experiments: Iterable[Experiment],
    settings: Settings,
    store: Store,
    *,
    only: Sequence[str] = (),
    fresh: bool = False,
) -> list[Task]:
    """The cells that are to be computed, in order.

    Args:
        experiments: what to measure; one that is named twice is measured once.
        settings: what the user asked for.
        store: where finished cells are kept.
        only: if any are named, only the cells of these methods.
        fresh: finished cells, too.

    Raises:
        ValueError: naming the methods there are, if one of `only` is not among them.
    """
    different = {experiment.name: experiment for experiment in experiments}.values()
    tasks = [
        Task(experiment, cell) for experiment in different for cell in experiment.cells(settings)
    ]
    methods = {str(dict(task.cell.key).get("method", "")) for task in tasks} - {""}
    if unknown := [name for name in only if name not in methods]:
        there = ", ".join(map(repr, sorted(methods))) or "none, its cells have no method"
        raise ValueError(f"no cell has the method {unknown[0]!r}; there are {there}")
    wanted = [
        task for task in tasks if not only or str(dict(task.cell.key).get("method", "")) in only
    ]
    return [task for task in wanted if fresh or not store.has(task.experiment, task.cell)]


def run(
    tasks: Sequence[Task],
    settings: Settings,
    store: Store,
    *,
    measure: Callable[[Sequence[Task], Settings], Iterator[Measured]] | None = None,
    report: Callable[[str], None] | None = None,
) -> Outcome:
    """Compute cells and keep each as soon as it is finished.

    A cell that fails is reported and left out, the others go on. Ctrl-C ends the
    run; what is finished stays.

    Args:
        tasks: see `unfinished`.
        settings: what the user asked for.
        store: where finished cells are kept.
        measure: yields what was measured in each, in any order; None computes one after
            the other in this process.
        report: receives a line per cell; None prints it.
    """
    report = report or functools.partial(print, flush=True)
    outcome = Outcome()
    started = time.monotonic()
    try:
        for done, measured in enumerate((measure or one_by_one)(tasks, settings)):
            task = measured.task
            line = f"[{done + 1:{len(str(len(tasks)))}}/{len(tasks)}] {task.experiment.name}: {task.cell}"
            try:
                if measured.error is not None:
                    raise measured.error
                store.write(task.experiment, task.cell, measured.rows, measured.seconds)
            except (
                Exception
            ) as error:  # one bad cell must not cost hours of others; it is named in the report
                outcome.failures.append(Failure(task.experiment, task.cell, error))
                report(f"{line}: FAILED: {type(error).__name__}: {error}")
                continue
            outcome.computed += 1
            elapsed = time.monotonic() - started
            left = elapsed / (done + 1) * (len(tasks) - done - 1)
            report(
                f"{line}: {measured.seconds:.1f} s ({duration(elapsed)} so far, about "
                f"{duration(left)} to go)"
            )
    except KeyboardInterrupt:
        report("interrupted; run the same command to go on")
        outcome.interrupted = True
    return outcome


@dataclass(frozen=True)
class Measured:
    """What came of a task: rows, or the error that ended it."""

    task: Task
    rows: Row | Sequence[Row]
    seconds: float
    error: Exception | None = None


def one_by_one(tasks: Sequence[Task], settings: Settings) -> Iterator[Measured]:
    """Measure in this process."""
    for task in tasks:
        yield measured(task, settings)


def measured(task: Task, settings: Settings) -> Measured:
    """Measure one cell; what goes wrong in it is returned, Ctrl-C alone is raised."""
    begun = time.monotonic()
    with _noticed_interrupt() as pressed:
        try:
            rows = task.experiment.measure(task.cell, settings)
        except Exception as error:
            return Measured(task, (), time.monotonic() - begun, error)
    if pressed:
        raise KeyboardInterrupt
    return Measured(task, rows, time.monotonic() - begun)


@contextlib.contextmanager
def _noticed_interrupt() -> Iterator[list[int]]:
    """Ctrl-C raises; it is in the list even if a fit has made a shorter fit of
    it, which no cell asks for.
    """
    pressed: list[int] = []

    def note(number: int, frame: object) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ours = ours and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def duration(seconds: float) -> str:
    """In words, to two digits or so."""
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


def origins(exhibits: Iterable[Exhibit], results: Results) -> Counter[tuple[Made, bool]]:
    """How many cells were made with what, and whether by the present version of their
    experiment.
    """
    found: Counter[tuple[Made, bool]] = Counter()
    experiments = {e.name: e for exhibit in exhibits for e in exhibit.experiments}.values()
    for experiment in experiments:
        for cell in experiment.cells(results.settings):
            made = results.store.made(experiment, cell)
            if made is not None and results.store.has(experiment, cell):
                found[made, made.protocol == experiment.version] += 1
    return found
