"""Many fits, sequentially or by joblib's workers, within one time limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from jaxrules import checks
from jaxrules.fits import Status
from jaxrules.runs import Run

Result = TypeVar("Result")
Task = Callable[[float | None], Result]
"""A function of its seconds (None: no limit)."""


def check_workers(n_jobs: Any) -> int:
    """The number of workers that `n_jobs` means; negative ones count back from the number of
    processors, as in joblib.

    Raises:
        TypeError, ValueError: for anything but an integer, and for 0.
    """
    n_jobs = checks.integer("n_jobs", n_jobs)
    checks.require(
        n_jobs != 0, "n_jobs must be at least 1, or negative (-1: all processors, -2: all but one)"
    )
    if n_jobs > 0:
        return n_jobs
    from joblib import cpu_count

    return max(1, cpu_count() + 1 + n_jobs)


def carry_out(
    tasks: Sequence[Task[Result]], run: Run, n_jobs: int
) -> list[Result | Exception | None]:
    """The results of the tasks in order: None if the run was stopped before,
    an error if a worker died.

    Every task gets an equal share of the remaining time. Workers are processes of loky;
    tasks and results are pickled.
    """
    results: list[Result | Exception | None] = [None] * len(tasks)

    def share(k: int) -> float | None:
        left = len(tasks) - k
        return (
            None
            if run.deadline.seconds is None
            else run.deadline.remaining() * min(n_jobs, left) / left
        )

    def calls() -> Iterator[Any]:
        for k, task in enumerate(tasks):
            if run.stopped():
                return
            yield delayed(_in_worker)(k, task, share(k))

    with run:
        if n_jobs == 1:
            for k, task in enumerate(tasks):
                if run.stopped():
                    break
                result = task(share(k))
                if run.limit is not Status.INTERRUPTED:  # else the fit was interrupted
                    results[k] = result
                run.report(k + 1)
            return results
        from joblib import Parallel, delayed

        # n_jobs at a time: a task is sent, with its share of the time, when a worker is free.
        workers = Parallel(
            n_jobs,
            backend="loky",
            return_as="generator_unordered",
            pre_dispatch="n_jobs",
            batch_size=1,
        )
        done = 0
        try:
            for k, result in workers(calls()):
                results[k] = result
                done += 1
                run.report(done)
        except Exception as error:  # a worker was killed, or a task cannot be pickled
            if run.limit is not Status.INTERRUPTED:
                results = [error if result is None else result for result in results]
    return results


def _in_worker(k: int, task: Task[Result], seconds: float | None) -> tuple[int, Result | None]:
    """A task, in a process that Ctrl-C reaches too."""
    result = None
    run = Run("worker")
    with run:
        result = task(seconds)
    return k, None if run.limit is Status.INTERRUPTED else result
