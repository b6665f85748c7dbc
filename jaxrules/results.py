"""What every learner returns, and how a fit is timed, watched and stopped.

`Fit` is the one result object. `Run` is one fit under way: it holds the clock, the deadline, the
progress callback and the history, and turns Ctrl-C into a status. No solver keeps time itself or takes
signals: it asks ``run.stopped()``.
"""

from __future__ import annotations

import contextlib
import contextvars
import enum
import functools
import html
import inspect
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType, TracebackType
from typing import Any, Generic, Literal, ParamSpec, TypeVar

import numpy as np

from jaxrules import checks
from jaxrules.float64 import our_settings

ModelT = TypeVar("ModelT")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Status(enum.StrEnum):
    """Why a fit ended. Compares equal to its text: ``fit.status == "optimal"``."""

    CONVERGED = "converged"
    OPTIMAL = "optimal"
    TIME_LIMIT = "time_limit"
    MAX_ITERATIONS = "max_iterations"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"

    @property
    def advice(self) -> str:
        """What the status means and what to do next."""
        return _ADVICE[self]

    @staticmethod
    def worst(statuses: Iterable[Status]) -> Status:
        """The status of a fit that is made of several: optimal, say, if all of them are."""
        return min(statuses, key=list(_ADVICE).index)


_ADVICE = {  # the worst first
    Status.INTERRUPTED: "Interrupted by the user; the model is the best so far.",
    Status.TIME_LIMIT: "The time limit ended the fit; the model is the best so far. Raise time_limit to go on.",
    Status.MAX_ITERATIONS: "The iteration limit ended the fit; the model is the best so far. Raise the limit.",
    Status.STALLED: "No further progress at this precision; the model is usable. Loosen the tolerance.",
    Status.CONVERGED: "The stopping criterion was met.",
    Status.OPTIMAL: "Proved optimal: the bound meets the objective.",
}


@dataclass(frozen=True)
class Step:
    """One entry of `Fit.history`: the objective, the model size and the seconds since the start.

    `bound` is what was proved by then for the same objective, None where nothing was.
    """

    objective: float
    size: int
    seconds: float
    bound: float | None = None


@dataclass(frozen=True)
class Progress:
    """What a progress callback receives.

    Attributes:
        task: the learner, and which part of its work.
        done, total: steps; total is None where their number is not known before.
        objective, size: of the best model so far, None before there is one.
        seconds: since the task began.
        phase: what is being done: "propositions", "literals" or "rules" before the search, then "start", "search",
            "restarts", "local search", ...
        bound: proved so far for that objective, or None.
    """

    task: str
    done: int
    total: int | None
    objective: float | None
    seconds: float
    size: int | None = None
    phase: str = ""
    bound: float | None = None


ProgressOption = bool | Callable[[Progress], None]


@dataclass(frozen=True)
class Fit(Generic[ModelT]):
    """The result of every learner.

    Attributes:
        model: the fitted model, an immutable pytree.
        objective: the value that was optimised, in the direction of the paper (see `sense`).
        sense: "min" or "max".
        status: why the fit ended; `status.advice` says what to do next.
        bound: a proved bound on the other side of the optimum, or None without a certificate.
        history: one `Step` per recorded step.
        seconds: wall time of the fit.
        details: figures that only this learner has, by name; its docstring lists them.
    """

    model: ModelT
    objective: float
    sense: Literal["min", "max"]
    status: Status
    bound: float | None = None
    history: tuple[Step, ...] = ()
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """|bound - objective| / max(|objective|, 1e-12), or None without a certificate."""
        if self.bound is None:
            return None
        return abs(self.bound - self.objective) / max(abs(self.objective), 1e-12)

    @property
    def advice(self) -> str:
        """What the status means for this fit, and what to do next."""
        open_end = self.status is Status.CONVERGED and self.bound is None
        return self.status.advice + (" Nothing is proved: it may be a local optimum." if open_end else "")

    def __repr__(self) -> str:
        certificate = "" if self.bound is None else f", bound={self.bound:.6g}, gap={self.gap:.2g}"
        return (
            f"Fit(status={self.status.value}, objective={self.objective:.6g} ({self.sense}){certificate}, "
            f"{self.seconds:.2f} s, {type(self.model).__name__})\n{self.advice}"
        )

    def _repr_html_(self) -> str:
        """How the fit ended, and its model."""
        told = html.escape(repr(self)).replace("\n", "<br>")
        show = getattr(self.model, "_repr_html_", lambda: f"<pre>{html.escape(str(self.model))}</pre>")
        return f"<p>{told}</p>{show()}"


class Deadline:
    """A time limit on an injectable clock. `time_limit=` accepts seconds or a Deadline.

    It is asked for between steps, and a step that has begun is not broken off. The longest ones: kernels on their first
    use in a process (numba's load in a second, and take twenty after an installation; JAX compiles for every shape, a
    second or more, less from its persistent cache, and is not waited for in LLTBoost, the networks, SSRL and paths),
    the import of scikit-learn's forests (a second), one tree of a forest, and with ``method="mip"`` the import of CVXPY
    and its translation of a large program.

    Args:
        seconds: the limit, or None for none. Zero is allowed: the first incumbent is returned.
        clock: a function without arguments that returns seconds; tests inject their own.

    Raises:
        ValueError: if `seconds` is negative or NaN.
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        if seconds is not None:
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float, np.integer, np.floating)):
                raise TypeError(f"time_limit must be a number of seconds or None, got {type(seconds).__name__}")
            if math.isnan(seconds) or seconds < 0:
                raise ValueError(f"time_limit must be at least 0 seconds, got {seconds}; use None for no limit")
        self.seconds = None if seconds == math.inf else seconds
        self.clock = clock
        self.started = clock()

    @classmethod
    def of(cls, time_limit: float | Deadline | None) -> Deadline:
        """The deadline that a `time_limit` argument means."""
        return time_limit if isinstance(time_limit, Deadline) else cls(time_limit)

    def elapsed(self) -> float:
        """Seconds since the deadline was made."""
        return self.clock() - self.started

    def remaining(self) -> float:
        """Seconds left; infinite without a limit, never negative."""
        return math.inf if self.seconds is None else max(0.0, self.seconds - self.elapsed())

    def expired(self) -> bool:
        """Whether the limit has been reached."""
        return self.seconds is not None and self.elapsed() >= self.seconds


class _Interrupt:
    """Ctrl-C, deferred: the first one is remembered until it is asked for; the second, inside a block of a run, raises
    KeyboardInterrupt, which that block swallows.

    It takes the place of Python's own handler, in the main thread alone. A handler that the user has installed
    stays; inside another run (a fit in a progress callback, say) that run's Ctrl-C counts here too.
    """

    def __init__(self) -> None:
        self.taken = False
        self._blocks = 0
        self._outer: _Interrupt | None = None
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            self._outer = handler if isinstance(handler, _Interrupt) else None

    @property
    def pressed(self) -> bool:
        return self.taken or (self._outer is not None and self._outer.pressed)

    def __call__(self, signal_number: int, frame: FrameType | None) -> None:
        if self.taken and self._blocks and not _is_loading(frame):
            raise KeyboardInterrupt
        self.taken = True

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """While it takes the signals."""
        ours = threading.current_thread() is threading.main_thread()
        ours = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if ours:
            signal.signal(signal.SIGINT, self)
        try:
            yield
        finally:
            if ours:
                signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """While the second Ctrl-C may raise."""
        with self.deferred() if self._outer is None else self._outer.block():
            self._blocks += 1
            try:
                yield
            finally:
                self._blocks -= 1


_LOADERS = ("importlib", "_frozen_importlib", "numba", "llvmlite", "jax", "jaxlib")


def _is_loading(frame: FrameType | None) -> bool:
    """Whether an import or a compilation is under way: broken off, it would stay half done for the whole process. Or
    whether a block is being entered or left."""
    if frame is not None and frame.f_globals.get("__name__") in (__name__, "contextlib"):
        return True
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _LOADERS:
            return True
        frame = frame.f_back
    return False


class _Fork:
    """Whether this process was forked off one in which JAX had started: JAX waits there for threads that are not."""

    def __init__(self) -> None:
        self.is_child = self._started = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before, after_in_child=self._after)

    def _before(self) -> None:
        # JAX says this in a private module alone. A release that does not have it counts as started: a fit in the child
        # is then refused, and does not hang (tests/test_results.py notices).
        bridge = sys.modules.get("jax._src.xla_bridge")
        self._started = getattr(bridge, "backends_are_initialized", lambda: True)()

    def _after(self) -> None:
        self.is_child = self.is_child or self._started


_FORK = _Fork()


_KEPT_BY = {
    "required": "boosting, lire, ssrl and exact_list",
    "monotone": "boosting, glrm, rulefit, lire, lltboost, ltrnet, drnet, ssrl and exact_list",
    "first": "boosting, glrm, rulefit, lire, lltboost, ssrl and exact_list",
}
"""Who keeps a constraint: told to those who ask for it elsewhere."""


def guarded(fit: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A function of `time_limit` that keeps it from call to return, and never lets KeyboardInterrupt out.

    The clock starts with the call. Until the return Ctrl-C is deferred (see `Run`), while data are prepared too.

    Raises:
        TypeError: for a constraint that it does not know, naming the learners that do, and for any other argument.
        RuntimeError: in a process forked off one that has used JAX, where a fit would wait for ever.
    """
    known = list(inspect.signature(fit).parameters)

    @functools.wraps(fit)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if _FORK.is_child:
            raise RuntimeError(
                "this process was forked after JAX had started, and JAX does not work in such a process; start "
                'workers with multiprocessing.get_context("spawn") or joblib (loky), or fork before JAX is used'
            )
        for name in kwargs.keys() - known:
            of = fit.__module__.rpartition(".")[2]
            if name in _KEPT_BY:
                raise TypeError(f"{of}.{fit.__name__} cannot keep {name}; {_KEPT_BY[name]} can (docs/constraints.md)")
            raise checks.unknown_argument(f"jaxrules.{of}.{fit.__name__}", name, known)
        with _Interrupt().deferred():
            kwargs["time_limit"] = Deadline.of(kwargs.get("time_limit"))  # type: ignore[arg-type]  # it checks
            return fit(*args, **kwargs)

    return call


class Stopped(Exception):
    """A preparation is broken off: no time is left, or Ctrl-C was pressed. It never leaves a fit."""


_PREPARING: contextvars.ContextVar[Run | None] = contextvars.ContextVar("preparing", default=None)


def checkpoint() -> None:
    """Asked between the parts of long preparations.

    Raises:
        Stopped: inside `Run.prepared`, when that run is stopped.
    """
    run = _PREPARING.get()
    if run is not None and run.stopped():
        raise Stopped


class Run:
    """One fit under way. A context manager that takes Ctrl-C and remembers it::

        run = Run("lire", time_limit, progress, total=max_iterations)
        with run:
            while not converged and not run.stopped():
                state = improve(state)          # `state` is a complete incumbent after every step
                run.step(objective, size)
        return run.finish(model, objective, "min", Status.CONVERGED)

    Inside the block, in the main thread, the first Ctrl-C makes `stopped` true; the second raises KeyboardInterrupt
    at once, which the block swallows, as it does one that a progress callback raises. Where the user has a handler
    of SIGINT of their own, it stays in force. Part of the work gets its part of the time by `child`.
    """

    def __init__(
        self,
        task: str,
        time_limit: float | Deadline | None = None,
        progress: ProgressOption = False,
        total: int | None = None,
    ) -> None:
        if not (isinstance(progress, bool) or callable(progress)):
            raise TypeError("progress must be False, True (a bar) or a function of one jaxrules.Progress")
        self.task = task
        self.total = total
        self.phase = ""
        self.deadline = Deadline.of(time_limit)
        self._interrupt = _Interrupt()
        self._start = self.deadline.clock()
        self._bar = _Bar() if progress is True else None
        self._report = progress if callable(progress) else self._bar
        self._history: list[Step] = []
        self._limit: Status | None = None
        self.shortened = False
        """Set where a preparation is cut to fit the time: with more time the fit would not be the same."""

    def child(self, share: float = 1.0, task: str | None = None, total: int | None = None) -> Run:
        """A run for a part of the work, with this share, in (0, 1], of the time that is left.

        It has a history of its own. Its interrupt and its progress are those of this run, whose bar it never closes.
        """
        seconds = None if self.deadline.seconds is None else share * self.deadline.remaining()
        child = Run(task or self.task, Deadline(seconds, self.deadline.clock), total=total)
        child._interrupt, child._report, child.shortened = self._interrupt, self._report, self.shortened
        return child

    @property
    def history(self) -> tuple[Step, ...]:
        """The steps so far."""
        return tuple(self._history)

    def seconds(self) -> float:
        """Seconds since the run began."""
        return self.deadline.clock() - self._start

    def step(self, objective: float, size: int, done: int | None = None, bound: float | None = None) -> None:
        """Record a step in the history and report progress; `done` defaults to the steps so far."""
        bound = None if bound is None else float(bound)
        self._history.append(Step(float(objective), int(size), self.seconds(), bound))
        self.report(len(self._history) if done is None else done, objective, size, bound)

    def report(
        self, done: int, objective: float | None = None, size: int | None = None, bound: float | None = None
    ) -> None:
        """Report progress without recording a step."""
        if self._report is not None:
            self._report(Progress(self.task, done, self.total, objective, self.seconds(), size, self.phase, bound))

    def preparing(self, phase: str) -> None:
        """Tell of a preparation that takes a while, in steps of unknown number; Ctrl-C that a callback raises is
        remembered."""
        with self:
            self.phase, total, self.total = phase, self.total, None
            try:
                self.report(0)
            finally:
                self.total = total

    def stopped(self) -> bool:
        """Whether the deadline is over or the user interrupted; asked between steps."""
        if self._limit is None and self.deadline.expired():
            self._limit = Status.TIME_LIMIT
        return self.limit is not None

    @property
    def limit(self) -> Status | None:
        """TIME_LIMIT or INTERRUPTED when one of them ended the run, else None."""
        return Status.INTERRUPTED if self._interrupt.pressed else self._limit

    def prepared(self, make: Callable[[], Result], otherwise: Callable[[], Result]) -> Result:
        """What `make` gives; when the run is stopped, `make` is left at its next `checkpoint` for `otherwise`."""
        token = _PREPARING.set(self)
        try:
            checkpoint()
            return make()
        except Stopped:
            pass
        finally:
            _PREPARING.reset(token)
        return otherwise()

    def __enter__(self) -> Run:
        self._inside = contextlib.ExitStack()
        self._inside.enter_context(our_settings())
        self._inside.enter_context(self._interrupt.block())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._inside.close()
        if self._bar is not None:
            self._bar.close()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._interrupt.taken = True
            return True
        return False

    def finish(
        self,
        model: ModelT,
        objective: float,
        sense: Literal["min", "max"],
        status: Status,
        bound: float | None = None,
        **details: Any,
    ) -> Fit[ModelT]:
        """The result: `status` unless the deadline or Ctrl-C ended the run (OPTIMAL is kept: it is proved)."""
        if status is not Status.OPTIMAL:
            status = self.limit or (Status.TIME_LIMIT if self.shortened else status)
        if self._bar is not None:
            self._bar.close()
        return Fit(
            model, float(objective), sense, status, None if bound is None else float(bound),
            self.history, self.seconds(), details,
        )  # fmt: skip

    def earlier(self, fit: Fit[ModelT], steps: int, status: Status) -> Fit[ModelT]:
        """A result of this run as of so many of its steps, when no limit had ended it yet."""
        history = self.history[:steps]
        return replace(fit, status=status, history=history, seconds=history[-1].seconds if history else 0.0)


class _Bar:
    """``progress=True``: a tqdm bar, in a notebook a widget. It appears at the first report of a task."""

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
            self._drawn = tqdm(desc=named, total=progress.total, leave=False)
        self._drawn.n = progress.done
        if progress.objective is not None:
            size = "" if progress.size is None else f", size {progress.size}"
            bound = "" if progress.bound is None else f", bound {progress.bound:.6g}"
            self._drawn.set_postfix_str(f"objective {progress.objective:.6g}{bound}{size}", refresh=False)
        self._drawn.refresh()

    def close(self) -> None:
        if self._drawn is not None:
            self._drawn.close()
            self._drawn = None
