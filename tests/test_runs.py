"""Deadlines, runs and their children on an injected clock; progress and its bar."""

import math
from typing import Any

import numpy as np
import pytest

import jaxrules as jr
from jaxrules.tools.fits import Details
from jaxrules.tools.runs import Run, checkpoint


class Clock:
    """Time that passes only when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


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
        assert jr.Deadline.of(number).seconds == number


def test_on_a_busy_machine_less_work_fits_into_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.getloadavg", lambda: (8.0, 1.0, 1.0), raising=False)
    assert 20 < jr.Deadline(100.0).work_left() <= 25
    assert jr.Deadline(100.0, lambda: 0.0).work_left() == 100  # nothing is known about this clock
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 1.0, 1.0), raising=False)
    assert 90 < jr.Deadline(100.0).work_left() <= 100
    monkeypatch.delattr("os.getloadavg", raising=False)
    assert 90 < jr.Deadline(100.0).work_left() <= 100


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        (-1, ValueError),
        (math.nan, ValueError),
        ("5", TypeError),
        (True, TypeError),
        ([1], TypeError),
    ],
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
    fit = run.finish("model", 2.0, "min", jr.Status.CONVERGED, 1.0, Details(cross_validation=2))
    assert fit.history == (jr.Step(3.0, 7, 1.5), jr.Step(2.0, 7, 3.0))
    assert fit.seconds == 3.0
    assert fit.status is jr.Status.CONVERGED
    assert fit.bound == 1.0
    assert fit.details["cross_validation"] == fit.details.cross_validation == 2
    assert reports == [
        jr.Progress("task", 1, 3, 3.0, 1.5, 7),
        jr.Progress("task", 2, 3, 2.0, 3.0, 7),
        jr.Progress("task", 99, 3, None, 3.0),
    ]


def test_an_earlier_result_is_that_of_its_steps() -> None:
    clock = Clock()
    run = Run("task", jr.Deadline(60, clock))
    with run:
        for objective in (3.0, 2.0):
            clock.now += 1.5
            run.step(objective, 1)
    fit = run.finish("model", 2.0, "min", jr.Status.CONVERGED)
    for steps, seconds in ((0, 0.0), (1, 1.5), (2, 3.0)):
        earlier = run.earlier(fit, fit.history[:steps], jr.Status.CONVERGED)
        assert earlier.seconds == seconds
        assert earlier.history == fit.history[:steps]


def test_the_deadline_gives_the_status_unless_optimality_is_proved() -> None:
    for status, expected in [
        (jr.Status.CONVERGED, jr.Status.TIME_LIMIT),
        (jr.Status.OPTIMAL, jr.Status.OPTIMAL),
    ]:
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


def test_other_errors_pass_through() -> None:
    run = Run("task", progress=True)
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError
    assert run.limit is None


def test_progress_must_be_a_switch_or_a_function() -> None:
    for progress in (None, 1, "bar"):
        with pytest.raises(TypeError, match="progress"):
            Run("task", progress=progress)


def test_the_bar_is_drawn_once_and_closed(drawn: list[Any]) -> None:
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
    assert not any(bar.leave or bar.miniters for bar in drawn)
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


# A fit from call to return


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


def test_children_report_where_their_parent_does_and_keep_their_own_history() -> None:
    clock, reports = Clock(), []
    run = Run("task", jr.Deadline(None, clock), reports.append, total=2)
    child = run.child(task="part", total=5)
    clock.now += 1
    child.step(3.0, 1)
    run.child().report(4)
    run.step(2.0, 1)
    assert [(p.task, p.done, p.total) for p in reports] == [
        ("part", 1, 5),
        ("task", 4, None),
        ("task", 1, 2),
    ]
    assert child.finish("model", 3.0, "min", jr.Status.CONVERGED).history == (jr.Step(3.0, 1, 1.0),)
    assert len(run.finish("model", 3.0, "min", jr.Status.CONVERGED).history) == 1


def test_children_do_not_close_the_bar(drawn: list[Any]) -> None:
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


def test_phases_have_names_and_the_incumbent_a_size() -> None:
    reports: list[jr.Progress] = []
    run = Run("task", None, reports.append)
    run.preparing("rules")
    with run:
        run.phase, run.total = "search", 2
        run.step(3.0, 7)
        run.report(2, 2.5, 8, bound=1.0)
        run.preparing("rest")
    assert [
        (one.phase, one.done, one.total, one.objective, one.size, one.bound) for one in reports
    ] == [
        ("rules", 0, None, None, None, None),
        ("search", 1, 2, 3.0, 7, None),
        ("search", 2, 2, 2.5, 8, 1.0),
        ("rest", 0, None, None, None, None),
    ]
    assert run.total == 2


def test_steps_keep_the_bound() -> None:
    run = Run("task")
    with run:
        run.step(3.0, 1)
        run.step(2.0, 1, bound=np.float64(1.5))
    assert [step.bound for step in run.history] == [None, 1.5]
