"""``python -m paper_reproductions audit``: random cells of the archives, measured again.

A cell's protocol says how it was measured, not by which library. An audit shows whether the library
still gives what an archive holds, to the digits that are kept.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paper_reproductions import data_sources
from paper_reproductions.framework import (
    Archive,
    Experiment,
    Row,
    Task,
    as_archived,
    git,
    library,
    measured,
    processor,
)
from paper_reproductions.papers import archive_of, available_papers, load_paper

TIMES = ("seconds", "cpu_seconds", "choosing")
"""Columns that differ from run to run."""
RELATIVE, ABSOLUTE = 2e-6, 1e-8
"""An archive keeps seven digits; what is nearly zero is rounding."""
STOPPED = ("unproved", "uncertified")
"""Columns with the number of stages that the clock ended: another machine gets further."""


@dataclass(frozen=True)
class Archived:
    """A cell of an archive that can be measured again, and the seconds that this
    took (0.0 if unknown): its own, or the mean of its experiment.
    """

    paper: str
    archive: Archive
    task: Task
    rows: Sequence[Row]
    seconds: float

    def __str__(self) -> str:
        return f"{self.paper}, {self.task.experiment.name}: {self.task.cell}"


def archived(paper: str, archive: Archive, experiments: Sequence[Experiment]) -> list[Archived]:
    """The cells that can be measured again: not those of programs of others, those that the clock
    ended, and those that depend on how another processor rounds.
    """
    found = []
    for experiment in experiments:
        total, known = archive.seconds(experiment, archive.settings)
        for cell in experiment.cells(archive.settings):
            rows = archive.read(experiment, cell)
            made = archive.made(experiment, cell)
            if rows is None or made is None or experiment.elsewhere(cell) or _stopped(rows):
                continue
            if experiment.rounding and made.processor != processor():
                continue
            own = sum({float(row[name]) for row in rows for name in TIMES if name in row})
            seconds = max(own, total / max(known, 1))
            own_values = dict(cell.key)
            rows = [{n: v for n, v in row.items() if n not in own_values} for row in rows]
            found.append(Archived(paper, archive, Task(experiment, cell), rows, seconds))
    return found


def _stopped(rows: Sequence[Row]) -> bool:
    return any(row.get(name) for row in rows for name in STOPPED)


def difference(kept: Sequence[Row], now: Row | Sequence[Row]) -> str:
    """The first value that differs beyond the digits kept, in words; "" if none does."""
    rows = [now] if isinstance(now, Mapping) else now
    if len(rows) != len(kept):
        return f"{len(kept)} rows in the archive, {len(rows)} now"
    for number, (old, new) in enumerate(zip(kept, rows, strict=True)):
        for name in (name for name in {**old, **new} if name not in TIMES):
            before, value = old.get(name, ""), as_archived(new.get(name, ""))
            if not _equal(before, value):
                return f"row {number}, {name}: {before} in the archive, {value} now"
    return ""


def _equal(kept: Any, now: Any) -> bool:
    if isinstance(kept, str) or isinstance(now, str):
        return bool(kept == now)
    return math.isclose(kept, now, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (
        kept != kept and now != now
    )


def drawn(
    cells: Sequence[Archived], draw: random.Random, *, share: float | None, number: int
) -> list[Archived]:
    """A share of the cells of every experiment, at least one of each; or so many cells, of different
    experiments first.
    """
    by_experiment: dict[str, list[Archived]] = {}
    for cell in draw.sample(cells, len(cells)):
        by_experiment.setdefault(cell.task.experiment.name, []).append(cell)
    queues = list(by_experiment.values())
    if share is not None:
        return [cell for queue in queues for cell in queue[: math.ceil(share * len(queue))]]
    draw.shuffle(queues)
    rounds = itertools.zip_longest(*queues)
    return [cell for found in rounds for cell in found if cell is not None][:number]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is 1 if a cell differs, 2 if nothing could be done."""
    options = _parser().parse_args(arguments)
    seed = _of_commit() if options.seed is None else options.seed
    papers = options.paper or available_papers()
    longest = math.inf
    if options.seconds is not None and options.share is None:
        longest = options.seconds / options.cells / len(papers)
    chosen: list[Archived] = []
    for paper in papers:
        try:
            exhibits = load_paper(paper).exhibits
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
        archive = archive_of(paper)
        wanted = [
            e
            for e in {e.name: e for exhibit in exhibits for e in exhibit.experiments}.values()
            if (e.name in options.only if options.only else e.name not in archive.stale)
        ]
        cells = [cell for cell in archived(paper, archive, wanted) if cell.seconds <= longest]
        draw = random.Random(f"{seed} {paper}")
        chosen += drawn(cells, draw, share=options.share, number=options.cells)
    if problem := data_sources.missing([cell.task for cell in chosen]):
        print(problem, file=sys.stderr)
        return 2
    print(f"{len(chosen)} cells, --seed {seed}", flush=True)
    counts = _compared(chosen, options.seconds)
    wrong = {key: count for key, count in counts.items() if count.differ}
    print(
        f"{sum(count.differ for count in wrong.values())} of "
        f"{sum(count.cells for count in counts.values())} cells differ"
    )
    if options.mark:
        for (paper, name), count in wrong.items():
            archive_of(paper).mark_stale({name: f"{count} differ with jaxrules {library()}"})
    return int(bool(wrong))


@dataclass
class _Count:
    cells: int = 0
    differ: int = 0

    def __str__(self) -> str:
        return f"{self.differ} of {self.cells} cells measured again"


def _compared(chosen: Sequence[Archived], seconds: float | None) -> dict[tuple[str, str], _Count]:
    """Measure the cells again, with a line for each; by paper and experiment, how many differ."""
    began = time.monotonic()
    counts: dict[tuple[str, str], _Count] = {}
    for done, cell in enumerate(chosen):
        if seconds is not None and time.monotonic() - began > seconds:
            print(f"{len(chosen) - done} cells were not measured in {seconds:g} s")
            break
        now = measured(cell.task, cell.archive.settings)
        found = repr(now.error) if now.error else difference(cell.rows, now.rows)
        count = counts.setdefault((cell.paper, cell.task.experiment.name), _Count())
        count.cells += 1
        count.differ += bool(found)
        print(f"{'DIFFERS' if found else 'equal'} ({now.seconds:.1f} s) {cell}", flush=True)
        if found:
            print(f"    {found}", flush=True)
    return counts


def _of_commit() -> int:
    """A seed for each commit, so that a failure can be repeated and another commit tries others."""
    commit = git("rev-parse", "HEAD")
    return int(commit[:6] or "0", 16)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m paper_reproductions audit",
        description="Measure random cells of the archives again and compare.",
    )
    parser.add_argument("paper", nargs="*", help="whose archives (default: all)")
    parser.add_argument(
        "--share", type=float, metavar="F", help="this share of every experiment's cells"
    )
    parser.add_argument(
        "--cells", type=int, default=3, metavar="N",
        help="so many cells of every archive (default 3), of different experiments first",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=float, metavar="S",
        help="stop after S seconds; with --cells take only cells that leave time for the others",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, metavar="K", help="of the draw (default: the commit's)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="EXPERIMENT",
        help="only this experiment; without it those known to be stale are left out",
    )  # fmt: skip
    parser.add_argument(
        "--mark", action="store_true",
        help="note the experiments that differ in their archives, and their reports, as stale",
    )  # fmt: skip
    return parser
