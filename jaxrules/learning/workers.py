"""Many independent tasks, in this process or by joblib's workers, within one time limit.

Folds of `cross_validate`, methods of `jr.compare`, replicates of `jr.stability` and cells of the
reproductions all go through `carry_out`. Which workers they are is the user's choice, by
``joblib.parallel_config(backend=...)``: loky's processes by default, a dask cluster, ray's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
import tempfile
import threading
import time
import traceback
import types
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from jaxrules.tools import checks, placement
from jaxrules.tools.fits import Status
from jaxrules.tools.interrupts import Interrupt
from jaxrules.tools.runs import Run

Result = TypeVar("Result")
Task = Callable[[float | None], Result]
"""A function of its seconds (None: no limit)."""

_LISTENING = 0.2
"""Seconds between two checks whether something has ended or was interrupted."""
_WITHOUT_WORKERS = 300.0
"""Seconds after which a dask cluster that has no worker is given up."""
_MOST_WORKERS = 2**15


def check_workers(n_jobs: Any) -> int:
    """The number of workers that `n_jobs` means, as in joblib and scikit-learn.

    Args:
        n_jobs: None is 1, or what a ``joblib.parallel_config`` context says; negative numbers count
            back from the number of processors. A dask cluster uses all its threads.

    Raises:
        TypeError, ValueError: for anything but an integer or None, and for 0; for several workers
            inside of `rows_over`.
    """
    if n_jobs is not None:
        checks.require(
            checks.integer("n_jobs", n_jobs, at_least=-_MOST_WORKERS, at_most=_MOST_WORKERS) != 0,
            "n_jobs must be at least 1, negative (-1: all processors, -2: all but one), or None",
        )
    if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules):  # then in no context of it
        return 1
    from joblib import effective_n_jobs

    workers = max(1, effective_n_jobs(n_jobs))
    checks.require(
        workers == 1 or placement.mesh() is None,
        f"n_jobs means {workers} workers, which do not inherit the mesh of rows_over; pass "
        "n_jobs=1, or leave the block",
    )
    return workers


def outcomes(
    tasks: Sequence[Task[Result]], run: Run, workers: int
) -> Iterator[tuple[int, Result | Exception | None]]:
    """Yields the number and the result of every task as it ends: None if Ctrl-C ended it, an error
    if its worker died twice with it or could not send the result.

    Every task gets an equal share of the remaining time. A task is sent, with its share, when a
    worker is free; none is after the run has been stopped. If a worker dies, the tasks that were
    under way are repeated one by one.

    Args:
        tasks: pickled by cloudpickle, with what they hold and return.
        run: its time limit and Ctrl-C hold for all; it gets the progress.
        workers: from `check_workers`.

    Raises:
        TypeError: naming the part of a task that cannot be pickled.
        Exception: the one of a task.
    """
    work = _Work(tasks, run, workers)
    ended: Iterator[tuple[int, Result | Exception | None]] = work.here()
    if workers > 1:
        check_sendable(tasks)
        client = _dask_client()
        ended = work.on_dask(client) if client else work.by_joblib()
    with run:
        for done, outcome in enumerate(ended, start=1):
            yield outcome
            run.report(done)


def carry_out(
    tasks: Sequence[Task[Result]], run: Run, workers: int
) -> list[Result | Exception | None]:
    """The results of `outcomes` in the order of the tasks; None also for those not reached."""
    results: list[Result | Exception | None] = [None] * len(tasks)
    for k, result in outcomes(tasks, run, workers):
        results[k] = result
    return results


def carry_out_all(tasks: Sequence[Task[Result]], run: Run, workers: int) -> list[Result | None]:
    """The same for folds, none of which can be spared.

    Raises:
        RuntimeError: for a fold whose worker died twice.
    """
    results: list[Result | None] = []
    for k, result in enumerate(carry_out(tasks, run, workers)):
        if isinstance(result, Exception):
            raise RuntimeError(
                f"fold {k} of {len(tasks)} has no result ({type(result).__name__}); its "
                "worker may have had too little memory: use fewer workers"
            ) from result
        results.append(result)
    return results


class _Work(Generic[Result]):
    """Tasks under way. The methods that carry them out yield as `outcomes`."""

    def __init__(self, tasks: Sequence[Task[Result]], run: Run, workers: int) -> None:
        self.tasks, self.run, self.workers = tasks, run, workers
        self.waiting = list(range(len(tasks)))

    def sent(self) -> Iterator[int]:
        """The waiting tasks, each when it is asked for, until the run is stopped."""
        while self.waiting and not self.run.stopped():
            yield self.waiting.pop(0)

    def share(self) -> float | None:
        """The seconds of the task that was just taken off the waiting ones."""
        deadline, left = self.run.deadline, len(self.waiting) + 1
        if deadline.seconds is None:
            return None
        # w workers need left / w more rounds, and each round gets an equal share.
        return deadline.remaining() * min(self.workers, left) / left

    def here(self) -> Iterator[tuple[int, Result | None]]:
        """One after the other in this process."""
        for k in self.sent():
            result = self.tasks[k](self.share())
            yield k, None if self.run.limit is Status.INTERRUPTED else result

    def by_joblib(self) -> Iterator[tuple[int, Result | Exception | None]]:
        """By the backend of the user's context."""
        with _handed_on(self.run.interrupt) as stop:
            while self.waiting and not self.run.stopped():
                under_way: list[int] = []
                try:
                    yield from self._in_parallel(self.sent(), under_way, stop)
                except _TaskFailed as failed:
                    raise failed.error from None
                except Exception:  # a worker was killed, or cannot send a result
                    # Then no task is to blame, and to repeat one would not help.
                    if not under_way:
                        raise
                    # Without an answer. A dead worker may have taken tasks along that are not to
                    # blame.
                    for k in under_way:
                        yield from self._alone(k, stop)

    def _in_parallel(
        self, order: Iterator[int], under_way: list[int], stop: _StopFile
    ) -> Iterator[tuple[int, Result | None]]:
        from joblib import Parallel, delayed
        from joblib.parallel import get_active_backend

        def calls() -> Iterator[Any]:
            for k in order:
                under_way.append(k)
                yield delayed(_in_worker)(k, self.tasks[k], self.share(), stop)

        as_they_come = get_active_backend()[0].supports_return_generator
        # Nothing is sent ahead of a free worker, as a task's share of the time is fixed when it is
        # sent.
        how = "generator_unordered" if as_they_come else "list"
        parallel = Parallel(self.workers, return_as=how, pre_dispatch="n_jobs", batch_size=1)
        found = parallel(calls())
        try:
            for k, result, error in found:
                under_way.remove(k)
                if error is not None:
                    raise _TaskFailed(error)
                yield k, result
        finally:
            if as_they_come:
                with warnings.catch_warnings():  # that tasks are cancelled
                    warnings.simplefilter("ignore")
                    found.close()

    def _alone(self, k: int, stop: _StopFile) -> Iterator[tuple[int, Result | Exception | None]]:
        """Repeat a task that was under way when a worker died, with no other beside it."""
        if self.run.stopped():
            return
        try:
            yield from self._in_parallel(iter([k]), [], stop)
        except _TaskFailed as failed:
            raise failed.error from None
        except Exception as error:
            if self.run.limit is not Status.INTERRUPTED:
                yield k, error

    def on_dask(self, client: Any) -> Iterator[tuple[int, Result | Exception | None]]:
        """By the threads of a dask cluster, which repeats the tasks of dead workers itself. Those
        that it gives up are repeated one by one.

        Not by joblib, which waits for ever for a task that dask has given up (joblib 1.6), and
        whose dask workers do not receive Ctrl-C. Without any worker, the tasks end with an error
        after some minutes, as a busy machine takes that long to start one again.
        """
        import distributed

        stop = distributed.Event(f"jaxrules-{uuid.uuid4()}", client=client)
        under_way: dict[Any, int] = {}
        given_up: dict[int, Exception] = {}  # by dask, perhaps for another task of their workers
        order, alone = self.sent(), False
        without, checked = 0.0, time.monotonic()

        def send(k: int) -> None:
            with warnings.catch_warnings():  # of the size of the data, which must be sent
                warnings.simplefilter("ignore")
                call = (_in_worker, k, self.tasks[k], self.share(), stop)
                under_way[client.submit(*call, pure=False)] = k

        try:
            while True:
                while len(under_way) < self.workers and (k := next(order, None)) is not None:
                    send(k)
                if not under_way:
                    if not given_up or self.run.stopped():
                        yield from given_up.items()
                        return
                    # One at a time, a task that kills its worker is the only one that is blamed.
                    alone = True
                    send(next(iter(given_up)))
                with contextlib.suppress(TimeoutError):
                    distributed.wait(list(under_way), _LISTENING, "FIRST_COMPLETED")
                there, last, checked = bool(client.nthreads()), checked, time.monotonic()
                # A check that a busy machine delays proves nothing about the time before it
                without = 0.0 if there else without + min(checked - last, 5 * _LISTENING)
                if self.run.limit is Status.INTERRUPTED:
                    stop.set()
                    if not there:  # a terminal's Ctrl-C has ended a local cluster's
                        return
                for future in [future for future in under_way if future.done()]:
                    k = under_way.pop(future)
                    if future.status == "error" and not alone:
                        given_up[k] = future.exception()
                        continue
                    given_up.pop(k, None)
                    yield _from_dask(future, k)
                if without > _WITHOUT_WORKERS:
                    lost = RuntimeError(
                        f"the dask cluster has had no worker for {_WITHOUT_WORKERS:g} seconds; "
                        'restart it, or use backend="loky"'
                    )
                    for k in {*under_way.values(), *given_up, *self.waiting}:
                        yield k, lost
                    return
        finally:
            stop.set()
            client.cancel(list(under_way))


def _from_dask(future: Any, k: int) -> tuple[int, Any]:
    if future.status != "finished":  # workers died with it, again and again
        return k, future.exception()
    _, result, error = future.result()
    if error is not None:
        raise error
    return k, result


class _TaskFailed(Exception):
    """The exception of a task, as against one of its worker."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _dask_client() -> Any:
    """The client of the dask cluster that the user's joblib context names, else None."""
    if "distributed" not in sys.modules:
        return None
    from joblib.parallel import get_active_backend

    return getattr(get_active_backend()[0], "client", None)


class _StopFile:
    """An event that processes of one machine share: set once its file exists."""

    def __init__(self, path: str) -> None:
        self.path = path

    def set(self) -> None:
        open(self.path, "w").close()

    def is_set(self) -> bool:
        return os.path.exists(self.path)


@contextlib.contextmanager
def _listening(heard: Callable[[], bool], then: Callable[[], None]) -> Iterator[None]:
    """While a thread asks again and again, and does what follows once it hears something."""
    ended = threading.Event()

    def listen() -> None:
        with contextlib.suppress(Exception):  # the cluster is gone
            while not ended.wait(_LISTENING):
                if heard():
                    then()
                    return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield
    finally:
        ended.set()
        listener.join()


@contextlib.contextmanager
def _handed_on(interrupt: Interrupt) -> Iterator[_StopFile]:
    """While Ctrl-C sets the event of the workers. A terminal signals them, too, but a task may just
    then be on its way to one that has heard it already; and threads hear nothing.
    """
    with tempfile.TemporaryDirectory(prefix="jaxrules-") as folder:
        stop = _StopFile(os.path.join(folder, "stop"))
        with _listening(lambda: interrupt.pressed, stop.set):
            yield stop


def _in_worker(
    k: int, task: Task[Result], seconds: float | None, stop: Any
) -> tuple[int, Result | None, Exception | None]:
    """A task, in a process or thread that receives Ctrl-C itself or by the event."""
    result, failure, run = None, None, Run("worker")
    with run, _interrupted_by(stop, run.interrupt):
        try:
            result = task(seconds)
        except Exception as error:
            # Returned, not raised: the error of a task must not look like that of its worker.
            error.add_note(f"In a worker:\n{traceback.format_exc()}")
            failure = error
    return k, None if run.limit is Status.INTERRUPTED else result, failure


@contextlib.contextmanager
def _interrupted_by(stop: Any, interrupt: Interrupt) -> Iterator[None]:
    """While a thread polls an event, which interrupts the fits here."""
    stop.is_set()  # dask's finds the worker's client, which threads of our own do not

    def interrupted() -> None:
        interrupt.taken = True

    with _listening(stop.is_set, interrupted), interrupt.enclosing():
        yield


# What can be sent


def check_sendable(tasks: Sequence[Any]) -> None:
    """Refuse tasks that cannot be pickled, before any is carried out.

    Raises:
        TypeError: with the path to the part, and the remedy.
    """
    if (error := _refusal(list(tasks))) is None:
        return
    path, culprit = _culprit(tasks, "")
    raise TypeError(
        f"{path or 'a task'} cannot be sent to workers: {culprit!r} ({error}); define it at the "
        "top level of a module, without parts that cannot be pickled, or pass n_jobs=1"
    ) from error


def _refusal(value: Any) -> Exception | None:
    """The error of pickling, without copies of large arrays."""
    try:
        import cloudpickle  # what joblib pickles with
    except ImportError:  # which was a part of joblib before 1.6
        from joblib.externals import cloudpickle
    try:
        cloudpickle.dumps(value, protocol=5, buffer_callback=lambda _: None)
    except Exception as error:
        return error
    return None


def _culprit(value: Any, path: str) -> tuple[str, Any]:
    """The innermost part that cannot be pickled, and the names that lead to it."""
    for name, part in _parts(value):
        if _refusal(part) is not None:
            return _culprit(part, f"{path}.{name}".lstrip(".") if name else path)
    return path, value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, by name: fields, attributes, items, and the variables of functions."""
    if isinstance(value, Mapping):
        yield from ((str(key), part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from (("", part) for part in value)
    elif isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((name, cell.cell_contents) for name, cell in cells)
        yield from (value.__kwdefaults__ or {}).items()
        yield from (("", part) for part in value.__defaults__ or ())
        named = set(value.__code__.co_names) & set(value.__globals__)
        yield from ((name, value.__globals__[name]) for name in sorted(named))
    elif isinstance(value, types.MethodType):
        yield "", value.__self__
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("", value.args), *value.keywords.items())
    elif dataclasses.is_dataclass(value):
        yield from ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
    else:
        yield from getattr(value, "__dict__", {}).items()
