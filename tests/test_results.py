"""Fits, statuses, deadlines and runs on an injected clock."""

import contextlib
import io
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import jaxrules as jr
from jaxrules.results import Run, _Interrupt, checkpoint, guarded


class Clock:
    """Time that passes only when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_every_status_has_advice_and_equals_its_text() -> None:
    for status in jr.Status:
        assert status.advice.endswith(".")
    assert jr.Status.OPTIMAL == "optimal"
    assert f"{jr.Status.TIME_LIMIT}" == "time_limit"
    assert jr.Status("stalled") is jr.Status.STALLED


def test_the_gap() -> None:
    def fit(objective: float, bound: float | None) -> jr.Fit[str]:
        return jr.Fit("model", objective, "min", jr.Status.OPTIMAL, bound)

    assert fit(2.0, None).gap is None
    assert fit(2.0, 1.5).gap == 0.25
    assert fit(-2.0, -1.5).gap == 0.25
    assert fit(0.0, 0.0).gap == 0.0
    assert fit(0.0, 1e-12).gap == 1.0
    text = repr(fit(2.0, 1.5))
    assert "objective=2 (min), bound=1.5, gap=0.25" in text
    assert jr.Status.OPTIMAL.advice in text
    assert "bound" not in repr(fit(2.0, None)).splitlines()[0]


def test_deadlines() -> None:
    clock = Clock()
    deadline = jr.Deadline(5, clock)
    assert not deadline.expired()
    clock.now += 3
    assert deadline.elapsed() == 3
    assert deadline.remaining() == 2
    clock.now += 2
    assert deadline.expired()
    clock.now += 2
    assert deadline.remaining() == 0
    assert jr.Deadline.of(deadline) is deadline
    unlimited = jr.Deadline(None, clock)
    assert unlimited.remaining() == math.inf
    assert not unlimited.expired()
    assert jr.Deadline(math.inf, clock).seconds is None
    assert jr.Deadline(0, clock).expired()
    for number in (np.float32(2.5), np.int64(2), 2.5):
        assert jr.Deadline.of(number).seconds == number  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "error"),
    [(-1, ValueError), (math.nan, ValueError), ("5", TypeError), (True, TypeError), ([1], TypeError)],
)
def test_bad_time_limits(limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="time_limit"):
        Run("task", limit)


def test_a_run_records_steps_and_reports() -> None:
    clock, reports = Clock(), []
    run = Run("task", jr.Deadline(60, clock), reports.append, total=3)
    with run:
        for objective in (3.0, 2.0):
            clock.now += 1.5
            run.step(objective, 7)
        run.report(99)
    fit = run.finish("model", 2.0, "min", jr.Status.CONVERGED, 1.0, rounds=2)
    assert fit.history == (jr.Step(3.0, 7, 1.5), jr.Step(2.0, 7, 3.0))
    assert fit.seconds == 3.0
    assert fit.status is jr.Status.CONVERGED
    assert fit.bound == 1.0
    assert fit.details == {"rounds": 2}
    assert reports == [
        jr.Progress("task", 1, 3, 3.0, 1.5, 7),
        jr.Progress("task", 2, 3, 2.0, 3.0, 7),
        jr.Progress("task", 99, 3, None, 3.0),
    ]


def test_the_deadline_gives_the_status_unless_optimality_is_proved() -> None:
    for status, expected in [(jr.Status.CONVERGED, jr.Status.TIME_LIMIT), (jr.Status.OPTIMAL, jr.Status.OPTIMAL)]:
        clock = Clock()
        run = Run("task", jr.Deadline(1, clock))
        with run:
            assert not run.stopped()
            assert run.limit is None
            clock.now += 1
            assert run.stopped()
        assert run.limit is jr.Status.TIME_LIMIT
        assert run.finish("model", 0, "max", status).status is expected


def test_a_fit_that_ends_before_anyone_asks_about_the_time_keeps_its_status() -> None:
    clock = Clock()
    run = Run("task", jr.Deadline(1, clock))
    with run:
        clock.now += 5
    assert run.finish("model", 0, "min", jr.Status.CONVERGED).status is jr.Status.CONVERGED


def test_ctrl_c_ends_the_run_with_the_incumbent() -> None:
    run = Run("task")
    best = 0
    with run:
        for best in range(10):
            if best == 3:
                raise KeyboardInterrupt
    assert run.stopped()
    assert run.finish(best, 1.0, "min", jr.Status.CONVERGED).status is jr.Status.INTERRUPTED
    assert best == 3


def test_ctrl_c_in_a_progress_callback_keeps_the_step() -> None:
    def impatient(progress: jr.Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    run = Run("task", progress=impatient)
    with run:
        for size in range(5):
            run.step(0.0, size)
    fit = run.finish("model", 0.0, "min", jr.Status.CONVERGED)
    assert fit.status is jr.Status.INTERRUPTED
    assert len(fit.history) == 2


def test_other_errors_pass_through() -> None:
    run = Run("task", progress=True)
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError
    assert run.limit is None


def test_progress_must_be_a_switch_or_a_function() -> None:
    for progress in (None, 1, "bar"):
        with pytest.raises(TypeError, match="progress"):
            Run("task", progress=progress)  # type: ignore[arg-type]


def test_the_bar_is_drawn_once_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    import tqdm.auto

    drawn: list[Any] = []

    class Quiet(tqdm.auto.tqdm):  # type: ignore[misc,type-arg]
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs, file=io.StringIO())
            drawn.append(self)

    monkeypatch.setattr(tqdm.auto, "tqdm", Quiet)
    run, other = Run("task", progress=True, total=5), Run("other", progress=True)
    with run:
        run.step(0.5, 1)
        other.report(7)  # two bars at a time do not disturb each other
        run.step(0.25, 1)
    assert len(drawn) == 2
    assert drawn[0].n == 2
    assert drawn[0].total == 5
    assert "objective 0.25" in str(drawn[0])
    assert "task" in str(drawn[0])
    run.finish("model", 0.25, "min", jr.Status.CONVERGED)
    other.finish("model", 0.25, "min", jr.Status.CONVERGED)
    assert all(bar.disable for bar in drawn)  # tqdm disables a closed bar
    run.finish("model", 0.25, "min", jr.Status.CONVERGED)  # closing twice does no harm


def test_a_silent_run_draws_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    run = Run("task")
    with run:
        run.step(1.0, 1)
    run.finish("model", 1.0, "min", jr.Status.CONVERGED)
    assert capfd.readouterr() == ("", "")


# Ctrl-C


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def handler_is_restored() -> Any:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_first_ctrl_c_waits_until_the_run_asks() -> None:
    run = Run("task")
    reached = False
    with run:
        assert not run.stopped()
        ctrl_c()
        reached = True
        assert run.stopped()
        assert run.limit is jr.Status.INTERRUPTED
    assert reached
    assert run.finish("model", 1.0, "min", jr.Status.CONVERGED).status is jr.Status.INTERRUPTED
    assert run.finish("model", 1.0, "min", jr.Status.OPTIMAL).status is jr.Status.OPTIMAL


def test_the_second_ctrl_c_leaves_the_block_at_once() -> None:
    run = Run("task")
    with run:
        ctrl_c()
        ctrl_c()
        pytest.fail("the second Ctrl-C raises")
    assert run.limit is jr.Status.INTERRUPTED


def test_a_second_ctrl_c_while_the_block_is_entered_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would swallow it there."""
    getsignal = signal.getsignal

    def pressed(number: int) -> Any:
        if isinstance(getsignal(number), _Interrupt):
            ctrl_c()
        return getsignal(number)

    @guarded
    def fit(time_limit: Any) -> Run:
        ctrl_c()
        run = Run("task", time_limit)
        monkeypatch.setattr(signal, "getsignal", pressed)
        with run:
            monkeypatch.undo()
        return run

    assert fit(time_limit=None).limit is jr.Status.INTERRUPTED


def test_after_the_run_ctrl_c_is_python_s_own_again() -> None:
    with Run("task"):
        pass
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
    with pytest.raises(ZeroDivisionError), Run("task"):
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


def test_a_handler_of_the_user_stays_in_force() -> None:
    calls = []

    def own(number: int, frame: FrameType | None) -> None:
        calls.append(number)

    signal.signal(signal.SIGINT, own)
    try:
        run = Run("task")
        with run:
            assert signal.getsignal(signal.SIGINT) is own
            ctrl_c()
            assert not run.stopped()
        assert signal.getsignal(signal.SIGINT) is own
        assert calls == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_runs_in_other_threads_leave_signals_alone() -> None:
    results: list[Any] = []

    def work() -> None:
        with Run("task") as run:
            results.append((signal.getsignal(signal.SIGINT), run.stopped()))

    with Run("main") as main:
        outside = signal.getsignal(signal.SIGINT)
        ctrl_c()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert results == [(outside, False)]
        assert main.stopped()


def test_a_run_within_a_run_hears_the_same_ctrl_c() -> None:
    with Run("outer") as outer:
        with Run("inner") as inner:
            ctrl_c()
            assert inner.stopped()
        assert outer.stopped()
        with Run("later") as later:
            assert later.stopped()
        ctrl_c()
        pytest.fail("the outer run still counts")
    assert outer.limit is jr.Status.INTERRUPTED
    with Run("outer") as outer:
        with Run("inner") as inner:
            raise KeyboardInterrupt  # of a progress callback: it ends the fit that it belongs to
        assert inner.stopped()
        assert not outer.stopped()


def test_the_second_ctrl_c_waits_for_an_import() -> None:
    """Broken off, the import would fail for the rest of the process."""
    with Run("task"):
        ctrl_c()
        exec("ctrl_c()", {"__name__": "numba.core.compiler", "ctrl_c": ctrl_c})
        with contextlib.suppress(KeyboardInterrupt):
            ctrl_c()
            pytest.fail("the second Ctrl-C raises")


# A fit from call to return


@guarded
def some_fit(work: Callable[[Run], Any], *, time_limit: float | jr.Deadline | None = None) -> Any:
    """Works."""
    return work(Run("task", time_limit))


def test_ctrl_c_waits_in_the_preparation_too() -> None:
    def prepares(run: Run) -> Any:
        for _ in range(3):
            ctrl_c()
        with run:
            assert run.stopped()
            ctrl_c()
            pytest.fail("inside the block it raises")
        ctrl_c()
        return run.finish("model", 0.0, "min", jr.Status.CONVERGED)

    assert some_fit(prepares).status is jr.Status.INTERRUPTED
    assert not some_fit(lambda run: run.stopped())
    assert some_fit(lambda run: [ctrl_c(), some_fit(lambda inner: inner.stopped())][1])  # that of the fit around it
    with pytest.raises(ZeroDivisionError):
        some_fit(lambda run: 1 / 0)
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


def test_the_clock_starts_with_the_call() -> None:
    assert some_fit(lambda run: run.deadline.started, time_limit=5.0) <= time.monotonic()
    clock = Clock()
    deadline = jr.Deadline(2.0, clock)
    assert some_fit(lambda run: run.deadline, time_limit=deadline) is deadline
    assert some_fit(lambda run: run.deadline.seconds) is None
    with pytest.raises(ValueError, match="time_limit must be"):
        some_fit(lambda run: None, time_limit=-1.0)
    assert some_fit.__doc__ == "Works."


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_in_a_forked_child_a_fit_says_what_to_do() -> None:
    program = """
import os, warnings
from jaxrules.float64 import on_device
from jaxrules.results import guarded
warnings.simplefilter("ignore")
@guarded
def fit(time_limit=None):
    pass
def fit_in_child():
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        fit()
    except RuntimeError as error:
        os._exit(7 if "spawn" in str(error) else 1)
    os._exit(0)
print(fit_in_child())
on_device([0.0])
print(fit_in_child())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.split() == ["0", "7"], done.stderr


def test_a_preparation_stops_at_its_checkpoints() -> None:
    clock = Clock()
    run = Run("task", jr.Deadline(1, clock))

    def make() -> str:
        checkpoint()
        clock.now += 0.5
        checkpoint()
        return "whole"

    def otherwise() -> str:
        checkpoint()  # outside of the preparation there is no question
        return "nothing"

    assert run.prepared(make, otherwise) == "whole"
    assert run.prepared(make, otherwise) == "nothing"
    assert run.prepared(lambda: pytest.fail("there is no time"), otherwise) == "nothing"


# Children


def test_a_child_has_a_share_of_the_time_that_is_left() -> None:
    clock = Clock()
    run = Run("task", jr.Deadline(10, clock))
    clock.now += 2
    child = run.child(1 / 4)
    assert child.deadline.remaining() == 2
    assert child.seconds() == 0
    clock.now += 2
    assert child.stopped()
    assert child.limit is jr.Status.TIME_LIMIT
    assert not run.stopped()
    assert child.finish("model", 0, "min", jr.Status.CONVERGED).seconds == 2
    assert run.child().deadline.remaining() == 6
    assert Run("task").child(0.5).deadline.seconds is None
    assert Run("task", jr.Deadline(0, clock)).child(0.5).stopped()


@pytest.mark.parametrize("pressed_in", ["parent", "child", "grandchild"])
def test_parents_and_children_share_the_interrupt(pressed_in: str) -> None:
    parent = Run("task")
    child = parent.child()
    grandchild = child.child()
    with parent:
        with child, {"parent": parent, "child": child, "grandchild": grandchild}[pressed_in]:
            ctrl_c()
        assert parent.stopped()
        assert child.stopped()
        assert grandchild.stopped()
        ctrl_c()  # still deferred by the parent: the second one
        pytest.fail("the second Ctrl-C raises")
    raising = Run("task")
    with raising.child():
        raise KeyboardInterrupt
    assert raising.limit is jr.Status.INTERRUPTED


def test_children_report_where_their_parent_does_and_keep_their_own_history() -> None:
    clock, reports = Clock(), []
    run = Run("task", jr.Deadline(None, clock), reports.append, total=2)
    child = run.child(task="part", total=5)
    clock.now += 1
    child.step(3.0, 1)
    run.child().report(4)
    run.step(2.0, 1)
    assert [(p.task, p.done, p.total) for p in reports] == [("part", 1, 5), ("task", 4, None), ("task", 1, 2)]
    assert child.finish("model", 3.0, "min", jr.Status.CONVERGED).history == (jr.Step(3.0, 1, 1.0),)
    assert len(run.finish("model", 3.0, "min", jr.Status.CONVERGED).history) == 1


def test_children_do_not_close_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    import tqdm.auto

    drawn: list[Any] = []

    class Quiet(tqdm.auto.tqdm):  # type: ignore[misc,type-arg]
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs, file=io.StringIO())
            drawn.append(self)

    monkeypatch.setattr(tqdm.auto, "tqdm", Quiet)
    run = Run("task", progress=True, total=3)
    with run:
        for done in range(3):
            child = run.child(total=3)
            with child:
                child.step(0.0, 1, done + 1)
            child.finish("model", 0.0, "min", jr.Status.CONVERGED)
            assert not drawn[0].disable
        run.child(task="next").report(1)
        assert len(drawn) == 2
        assert drawn[0].disable
    assert drawn[1].disable


def test_a_fit_shows_itself_and_its_model_in_a_notebook() -> None:
    fit = jr.Fit("<rules>", 0.5, "min", jr.Status.CONVERGED)
    assert fit._repr_html_().startswith("<p>Fit(status=converged, objective=0.5 (min), 0.00 s, str)<br>")
    assert fit._repr_html_().endswith("<pre>&lt;rules&gt;</pre>")


def test_phases_have_names_and_the_incumbent_a_size() -> None:
    reports: list[jr.Progress] = []
    run = Run("task", None, reports.append)
    run.preparing("rules")
    with run:
        run.phase, run.total = "search", 2
        run.step(3.0, 7)
        run.report(2, 2.5, 8, bound=1.0)
        run.preparing("rest")
    assert [(one.phase, one.done, one.total, one.objective, one.size, one.bound) for one in reports] == [
        ("rules", 0, None, None, None, None), ("search", 1, 2, 3.0, 7, None), ("search", 2, 2, 2.5, 8, 1.0),
        ("rest", 0, None, None, None, None),
    ]  # fmt: skip
    assert run.total == 2


def test_steps_keep_the_bound() -> None:
    run = Run("task")
    with run:
        run.step(3.0, 1)
        run.step(2.0, 1, bound=np.float64(1.5))
    assert [step.bound for step in run.history] == [None, 1.5]


def test_ctrl_c_while_a_preparation_is_told_is_remembered() -> None:
    def impatient(progress: jr.Progress) -> None:
        raise KeyboardInterrupt

    run = Run("task", None, impatient)
    run.preparing("rules")
    assert run.limit is jr.Status.INTERRUPTED


def test_a_fit_says_where_nothing_is_proved() -> None:
    said = {bound: jr.Fit("model", 1.0, "min", jr.Status.CONVERGED, bound).advice for bound in (None, 0.9)}
    assert said[None] == said[0.9] + " Nothing is proved: it may be a local optimum."
    assert said[None] in repr(jr.Fit("model", 1.0, "min", jr.Status.CONVERGED))
    assert "local" not in jr.Fit("model", 1.0, "min", jr.Status.TIME_LIMIT).advice
