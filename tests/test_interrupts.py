"""Ctrl-C at every place of a fit, and forked processes."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import jaxrules as jr
from jaxrules.learning.guard import guarded
from jaxrules.tools.interrupts import Interrupt
from jaxrules.tools.runs import Run


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def handler_is_restored() -> Any:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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


def test_ctrl_c_while_a_preparation_is_told_is_remembered() -> None:
    def impatient(progress: jr.Progress) -> None:
        raise KeyboardInterrupt

    run = Run("task", None, impatient)
    run.preparing("rules")
    assert run.limit is jr.Status.INTERRUPTED


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
    """Nothing would catch it there."""
    getsignal = signal.getsignal

    def pressed(number: int) -> Any:
        if isinstance(getsignal(number), Interrupt):
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


def test_a_second_ctrl_c_never_leaves_a_fit() -> None:
    """Pressed in every function that is called, those that enter and leave the blocks included."""

    @guarded
    def fit(time_limit: Any) -> jr.Fit[str]:
        ctrl_c()
        run = Run("task", time_limit)
        with run:
            run.report(0)
            with run.child() as part:
                part.step(1.0, 1)
        return run.finish("model", 1.0, "min", jr.Status.CONVERGED)

    def fit_pressed_at(call: int) -> int:
        calls = 0

        def on_call(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal calls
            handler = signal.getsignal(signal.SIGINT)
            if event == "call" and isinstance(handler, Interrupt):
                calls += 1
                if calls == call:
                    handler(signal.SIGINT, frame)  # as in the frame that was called, not in this

        sys.setprofile(on_call)
        try:
            assert fit(time_limit=None).status is jr.Status.INTERRUPTED
        except KeyboardInterrupt:
            pytest.fail(f"pressed at call {call}, it left the fit")
        finally:
            sys.setprofile(None)
        return calls

    total = fit_pressed_at(0)
    assert total > 50
    for call in range(total):
        fit_pressed_at(call + 1)


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


def test_a_handler_that_a_callback_sets_stays() -> None:
    with Run("task"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
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


def test_work_after_ctrl_c_does_not_hear_it() -> None:
    with Run("outer") as outer:
        ctrl_c()
        with Interrupt.unheard():
            alone = Run("alone")
        assert outer.stopped()
        assert Run("inner").stopped()
        with alone:
            assert not alone.stopped()
            ctrl_c()  # the second one ends the work
            pytest.fail("the second Ctrl-C raises")
        assert alone.stopped()


def test_nothing_large_is_imported_after_ctrl_c() -> None:
    run = Run("task")
    assert run.may_import("a large module")
    with run:
        ctrl_c()
    assert not run.may_import("a large module")
    assert run.may_import("jaxrules.tools.runs")


def test_the_second_ctrl_c_waits_for_an_import() -> None:
    """Broken off, the import would fail for the rest of the process."""
    with Run("task"):
        ctrl_c()
        exec("ctrl_c()", {"__name__": "numba.core.compiler", "ctrl_c": ctrl_c})
        with contextlib.suppress(KeyboardInterrupt):
            ctrl_c()
            pytest.fail("the second Ctrl-C raises")


@guarded
def some_fit(work: Callable[[Run], Any], *, time_limit: float | jr.Deadline | None = None) -> Any:
    """Works."""
    return work(Run("task", time_limit))


def test_an_import_that_makes_a_fit_does_not_count() -> None:
    """The import began before the fit: for example a module of the user that fits when it is
    imported.
    """

    def work(run: Run) -> Run:
        with run:
            ctrl_c()
            ctrl_c()
            pytest.fail("the second Ctrl-C raises")
        return run

    module = {"__name__": "importlib", "make": lambda: some_fit(work)}
    exec("run = make()", module)
    assert isinstance(module["run"], Run)
    assert module["run"].limit is jr.Status.INTERRUPTED


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
    assert some_fit(
        lambda run: [ctrl_c(), some_fit(lambda inner: inner.stopped())][1]
    )  # that of the fit around it
    with pytest.raises(ZeroDivisionError):
        some_fit(lambda run: 1 / 0)
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_in_a_forked_child_a_fit_says_what_to_do() -> None:
    program = """
import os, warnings
from jaxrules.tools.float64 import on_device
from jaxrules.learning.guard import guarded
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
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout.split() == ["0", "7"], done.stderr
