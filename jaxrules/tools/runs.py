"""A running fit: its clock, its deadline, its progress and its history.

`Run` holds them all, and turns the end of the time and Ctrl-C into a `Status`. Solvers neither keep
time nor handle signals: they ask ``run.stopped()``.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, TypeVar

import numpy as np

from jaxrules.tools.contexts import within
from jaxrules.tools.fits import Details, Fit, ModelT, Status, Step
from jaxrules.tools.float64 import our_settings
from jaxrules.tools.interrupts import Interrupt
from jaxrules.tools.kernels import limiting, seconds_to_load

Result = TypeVar("Result")


_MOST_SECONDS = 10**9


def _processor_share() -> float:
    """How much of a processor this process can expect, from the load of the machine in the last
    minute; 1 where nobody counts it, as on Windows.
    """
    with contextlib.suppress(AttributeError, OSError):
        return min(1.0, (os.cpu_count() or 1) / max(os.getloadavg()[0], 1.0))
    return 1.0


class Deadline:
    """A time limit on an injectable clock. `time_limit=` accepts seconds or a Deadline.

    It is checked between steps; a step that has started is not interrupted. The longest steps are:
    kernels on their first use (numba's load in a second in every process, and compile for seconds
    after an installation; JAX's compile for every shape, for a second or more, less from its
    persistent cache; only exact searches of more than two conditions and LIRE's bound wait for them
    beyond the limit), the import of scikit-learn's forests (a second; with less
    than 2.5 seconds left, more on a busy machine, a fresh process does without), one tree of a
    forest and, with ``method="mip"``, the import of CVXPY and its translation of a large program.

    Args:
        seconds: the limit, or None for no limit. With 0, the first incumbent is returned.
        clock: a function without arguments that returns seconds; tests inject their own.

    Raises:
        ValueError: if `seconds` is negative or NaN.
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        if seconds is not None:
            is_number = isinstance(seconds, (int, float, np.integer, np.floating))
            if isinstance(seconds, bool) or not is_number:
                raise TypeError(
                    f"time_limit must be a number of seconds or None, got {type(seconds).__name__}"
                )
            if not (0 <= seconds <= _MOST_SECONDS or seconds == math.inf):
                raise ValueError(
                    f"time_limit must be from 0 to {_MOST_SECONDS} seconds, or None for no limit, "
                    f"got {seconds}"
                )
        if not callable(clock):
            raise TypeError(f"clock must be a function that returns seconds, got {clock!r}")
        self.seconds = None if seconds == math.inf else seconds
        self.clock = clock
        self.started = clock()

    def __reduce__(self) -> Any:
        # Clocks of machines differ: a copy elsewhere gets the remaining seconds.
        return Deadline, (None if self.seconds is None else self.remaining(), self.clock)

    @classmethod
    def of(cls, time_limit: float | Deadline | None) -> Deadline:
        """The deadline that a `time_limit` argument means."""
        return time_limit if isinstance(time_limit, Deadline) else cls(time_limit)

    def elapsed(self) -> float:
        """Seconds since the deadline was made."""
        return self.clock() - self.started

    def remaining(self) -> float:
        """The remaining seconds, at least 0; infinite without a limit."""
        return math.inf if self.seconds is None else max(0.0, self.seconds - self.elapsed())

    def share(self, part: float = 1.0) -> float | None:
        """A part of the remaining seconds; None without a limit."""
        return None if self.seconds is None else part * self.remaining()

    def work_left(self) -> float:
        """The remaining seconds of one processor: fewer where other processes take their share."""
        left = self.remaining()
        # The time of an injected clock does not pass slower on a busy machine.
        return left * _processor_share() if self.clock is time.monotonic else left

    def expired(self) -> bool:
        """Whether the limit has been reached."""
        return self.seconds is not None and self.elapsed() >= self.seconds


@dataclass(frozen=True)
class Progress:
    """What a progress callback receives.

    Attributes:
        task: the learner, and the part of its work.
        done, total: the number of steps made, and of all steps; total is None if it is not known in
            advance.
        objective, size: those of the best model so far; None before there is one.
        seconds: seconds since the task began.
        phase: the current kind of work: "propositions", "literals" or "rules" before the search,
            then "start", "search", "restarts", "local search", ...
        bound: the bound on that objective proved so far, or None.
        left: the seconds that the rest will take, or None if the task makes no forecast.
    """

    task: str
    done: int
    total: int | None
    objective: float | None
    seconds: float
    size: int | None = None
    phase: str = ""
    bound: float | None = None
    left: float | None = None


ProgressOption = bool | Callable[[Progress], None]


class Stopped(Exception):
    """Raised to interrupt a preparation when time has run out or Ctrl-C was pressed. It never
    leaves a fit.
    """


_PREPARING: contextvars.ContextVar[Run | None] = contextvars.ContextVar("preparing", default=None)


def checkpoint() -> None:
    """Called between the parts of long preparations, so that they can be interrupted.

    Raises:
        Stopped: inside `Run.prepared`, when that run is stopped.
    """
    run = _PREPARING.get()
    if run is not None and run.stopped():
        raise Stopped


class Run:
    """A running fit: a context manager that catches Ctrl-C and remembers it::

        run = Run("lire", time_limit, progress, total=max_iterations)
        with run:
            while not converged and not run.stopped():
                state = improve(state)          # `state` is a complete incumbent after every step
                run.step(objective, size)
        return run.finish(model, objective, "min", Status.CONVERGED)

    Inside the block, the first Ctrl-C makes `stopped` true, and the second leaves the block at once
    (see `Interrupt`). The block swallows KeyboardInterrupt, also one that a progress callback
    raises. `child` gives a part of the work a part of the time.
    """

    def __init__(
        self,
        task: str,
        time_limit: float | Deadline | None = None,
        progress: ProgressOption = False,
        total: int | None = None,
    ) -> None:
        _check_progress(progress)
        self.task = task
        self.total = total
        self.phase = ""
        self.deadline = Deadline.of(time_limit)
        self.interrupt = Interrupt()
        self._start = self.deadline.clock()
        self._bar = _Bar()
        shown = self._bar if progress is True else None
        self._report = progress if callable(progress) else shown
        self._history: list[Step] = []
        self._limit: Status | None = None
        self._end: float | None = None
        self._inside: list[contextlib.ExitStack] = []  # a run may be entered again inside itself
        self.shortened = False
        """Set if a preparation is cut short: with more time, the fit would be different."""

    def child(self, share: float = 1.0, task: str | None = None, total: int | None = None) -> Run:
        """A run for a part of the work, with this share, in (0, 1], of the remaining time.

        It has its own history, but shares the interrupt and the progress of this run, whose bar it
        never closes.
        """
        deadline = Deadline(self.deadline.share(share), self.deadline.clock)
        child = Run(task or self.task, deadline, total=total)
        child.interrupt, child._report = self.interrupt, self._report
        child.shortened = self.shortened
        return child

    @property
    def history(self) -> tuple[Step, ...]:
        """The steps so far."""
        return tuple(self._history)

    def seconds(self) -> float:
        """Seconds since the run began."""
        return self.deadline.clock() - self._start

    def step(
        self, objective: float, size: int, done: int | None = None, bound: float | None = None
    ) -> None:
        """Record a step in the history and report progress; `done` defaults to the steps so far."""
        bound = None if bound is None else float(bound)
        self._history.append(Step(float(objective), int(size), self.seconds(), bound))
        self.report(len(self._history) if done is None else done, objective, size, bound)

    def include(self, child: Run) -> None:
        """Take the steps of a child as steps of this run."""
        # The seconds of a child's steps count from its own start.
        begun = child._start - self._start
        self._history += [replace(step, seconds=begun + step.seconds) for step in child.history]

    def may_import(self, module: str) -> bool:
        """Whether a large package or module of kernels is ready, or there is time for that: neither
        an import nor a compilation can be interrupted.
        """
        left = self.work_left()
        return left >= seconds_to_load(module, left)

    def work_left(self) -> float:
        """The remaining seconds of one processor: none after Ctrl-C."""
        return 0.0 if self.interrupt.pressed else self.deadline.work_left()

    def expect(self, seconds: float) -> None:
        """Forecast how long the rest will take."""
        self._end = self.deadline.clock() + seconds

    def report(
        self,
        done: int,
        objective: float | None = None,
        size: int | None = None,
        bound: float | None = None,
    ) -> None:
        """Report progress without recording a step."""
        if self._report is not None:
            left = None if self._end is None else max(0.0, self._end - self.deadline.clock())
            what = (self.task, done, self.total, objective, self.seconds(), size, self.phase)
            self._report(Progress(*what, bound, left))

    def preparing(self, phase: str) -> None:
        """Report a preparation that takes a while, with an unknown number of steps; a Ctrl-C that a
        callback raises is remembered.
        """
        with self:
            self.phase, total, self.total = phase, self.total, None
            try:
                self.report(0)
            finally:
                self.total = total

    def stopped(self) -> bool:
        """Whether the deadline has passed or the user has interrupted; asked between steps."""
        # Set only when somebody asks: a run that ends by itself in the last moment was not cut
        # short.
        if self._limit is None and self.deadline.expired():
            self._limit = Status.TIME_LIMIT
        return self.limit is not None

    @property
    def limit(self) -> Status | None:
        """TIME_LIMIT or INTERRUPTED if that ended the run, else None."""
        return Status.INTERRUPTED if self.interrupt.pressed else self._limit

    def prepared(self, make: Callable[[], Result], otherwise: Callable[[], Result]) -> Result:
        """The result of `make`; if the run is stopped, `make` is interrupted at its next
        `checkpoint`, and the result is that of `otherwise`.
        """
        with contextlib.suppress(Stopped), within(_PREPARING, self), limiting(self.work_left):
            checkpoint()
            return make()
        # Outside of the context: the run is still stopped, and checkpoints must not stop this as
        # well.
        return otherwise()

    def __enter__(self) -> Run:
        with contextlib.ExitStack() as inside:
            inside.enter_context(limiting(self.work_left))
            inside.enter_context(our_settings())
            inside.enter_context(self.interrupt.block())
            self._inside.append(inside.pop_all())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        # The block is left first: from here on, Ctrl-C does not raise.
        self._inside.pop().close()
        self._bar.close()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.interrupt.taken = True
            return True
        return False

    def finish(
        self,
        model: ModelT,
        objective: float,
        sense: Literal["min", "max"],
        status: Status,
        bound: float | None = None,
        details: Details | None = None,
    ) -> Fit[ModelT]:
        """The result, with this status unless the deadline or Ctrl-C ended the run (OPTIMAL stays,
        because it is proved).
        """
        if status is not Status.OPTIMAL:
            status = self.limit or (Status.TIME_LIMIT if self.shortened else status)
        self._bar.close()
        return Fit(
            model, float(objective), sense, status, None if bound is None else float(bound),
            self.history, self.seconds(), details or Details(),
        )  # fmt: skip

    def whole(self, fit: Fit[ModelT]) -> Fit[ModelT]:
        """The result of a child as that of this run."""
        self._bar.close()
        return replace(fit, status=self.limit or fit.status, seconds=self.seconds())

    def earlier(self, fit: Fit[ModelT], history: tuple[Step, ...], status: Status) -> Fit[ModelT]:
        """A result of this run as it was after these steps, before any limit ended the run."""
        return replace(
            fit, status=status, history=history, seconds=history[-1].seconds if history else 0.0
        )


def _check_progress(progress: object) -> None:
    """Refuse what is neither a flag nor a function that takes one argument."""
    if isinstance(progress, bool):
        return
    if not callable(progress):
        raise TypeError(
            "progress must be False, True (a bar) or a function of one jaxrules.Progress"
        )
    with contextlib.suppress(ValueError):  # a builtin may have no signature
        signature = inspect.signature(progress)
        try:
            signature.bind(None)
        except TypeError:
            raise TypeError(
                "progress must take one argument, a jaxrules.Progress; it is a function of "
                f"{signature}"
            ) from None


_WITHOUT_FORECAST = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
"""The bar of a task that makes its own: tqdm takes all steps for equally long."""


class _Bar:
    """The bar of ``progress=True``: a tqdm bar, or a widget in a notebook. It appears at the first
    report of a task.
    """

    def __init__(self) -> None:
        self._drawn: Any = None
        self._task: tuple[str, str, int | None] | None = None

    def __call__(self, progress: Progress) -> None:
        task = progress.task, progress.phase, progress.total
        if self._task != task:
            self.close()
        if self._drawn is None:
            from tqdm.auto import tqdm

            self._task, named = task, ": ".join(filter(None, (progress.task, progress.phase)))
            # miniters=0: it is redrawn ten times a second, not at every step
            own = {} if progress.left is None else {"bar_format": _WITHOUT_FORECAST}
            self._drawn = tqdm(desc=named, total=progress.total, leave=False, miniters=0, **own)
        if progress.left is not None:
            left = self._drawn.format_interval(progress.left)
            self._drawn.set_postfix_str(f"about {left} left", refresh=False)
        if progress.objective is not None:
            size = "" if progress.size is None else f", size {progress.size}"
            bound = "" if progress.bound is None else f", bound {progress.bound:.6g}"
            self._drawn.set_postfix_str(
                f"objective {progress.objective:.6g}{bound}{size}", refresh=False
            )
        self._drawn.update(progress.done - self._drawn.n)

    def close(self) -> None:
        if self._drawn is not None:
            self._drawn.close()
            self._drawn = None
