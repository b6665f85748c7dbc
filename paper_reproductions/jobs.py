"""Several processes for one run, and one run at a time for a folder of results."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxrules.learning.workers import check_workers, outcomes
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run
from paper_reproductions.framework import Cell, Measured, Row, Settings, Task, measured
from paper_reproductions.papers import load_paper


def in_processes(paper: str, jobs: int) -> Callable[[Sequence[Task], Settings], Iterator[Measured]]:
    """For `run`: cells are measured by `jobs` workers of joblib, each of which loads the paper by
    its name.

    Neighbouring cells go to different processes, so that what they share is
    prepared in each of them.
    """

    def measure(tasks: Sequence[Task], settings: Settings) -> Iterator[Measured]:
        cells = [_Cell(paper, task.experiment.name, task.cell, settings) for task in tasks]
        run = Run(paper)
        for k, found in outcomes(cells, run, check_workers(jobs)):
            if isinstance(found, Exception):
                yield Measured(tasks[k], (), 0.0, found)
            elif found is not None:
                yield Measured(tasks[k], *found)
        if run.limit is Status.INTERRUPTED:
            raise KeyboardInterrupt

    return measure


@dataclass(frozen=True)
class _Cell:
    """A cell by names: a task itself holds functions, which cannot be sent from process to
    process.
    """

    paper: str
    experiment: str
    cell: Cell
    settings: Settings

    def __call__(
        self, seconds: float | None
    ) -> tuple[Row | Sequence[Row], float, Exception | None]:
        exhibits = load_paper(self.paper).exhibits
        by_name = {e.name: e for exhibit in exhibits for e in exhibit.experiments}
        result = measured(Task(by_name[self.experiment], self.cell), self.settings)
        return result.rows, result.seconds, result.error


class Busy(Exception):
    """Another run works in the folder."""


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While no other run may work in this folder; the lock ends with the process, however it ends.

    Raises:
        Busy: if one does; with its process number.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise Busy(
                f"process {file.read().strip()} is at work in {folder}; use --jobs for more at once"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
