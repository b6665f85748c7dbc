"""Several processes for one run, and one run at a time for a folder of results."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from paper_reproductions.framework import Cell, Measured, Row, Settings, Task, measured
from paper_reproductions.papers import load_paper


def in_processes(paper: str, jobs: int) -> Callable[[Sequence[Task], Settings], Iterator[Measured]]:
    """For `run`: cells are measured in `jobs` processes, each of which loads the paper by its name.

    Neighbouring cells go to different processes, so that what they share is
    prepared in each of them.
    """

    def measure(tasks: Sequence[Task], settings: Settings) -> Iterator[Measured]:
        before = set(multiprocessing.active_children())
        context = multiprocessing.get_context("spawn")  # JAX does not work in a fork
        pool = concurrent.futures.ProcessPoolExecutor(jobs, context, _ignore_interrupts)
        try:
            waiting = {
                pool.submit(_measure, paper, task.experiment.name, task.cell, settings): task
                for task in tasks
            }
            for done in concurrent.futures.as_completed(waiting):
                error = done.exception()
                rows, seconds = ((), 0.0) if error else done.result()
                yield Measured(waiting[done], rows, seconds, error)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(multiprocessing.active_children()) - before:
                worker.terminate()
            raise
        pool.shutdown()

    return measure


def _ignore_interrupts() -> None:
    """The first process hears Ctrl-C and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _measure(
    paper: str, experiment: str, cell: Cell, settings: Settings
) -> tuple[Row | Sequence[Row], float]:
    """Rows and seconds; a task itself holds functions, which cannot be sent from process to
    process.
    """
    by_name = {e.name: e for exhibit in load_paper(paper).exhibits for e in exhibit.experiments}
    result = measured(Task(by_name[experiment], cell), settings)
    if result.error is not None:
        raise result.error
    return result.rows, result.seconds


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
