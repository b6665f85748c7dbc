"""Folds, methods and replicates by workers: the results are those of one process; dead workers,
Ctrl-C, time limits, and what can be sent.
"""

from __future__ import annotations

import functools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from joblib import parallel_config

import jaxrules as jr
from jaxrules import losses
from jaxrules.learning import workers
from jaxrules.learning.options import FitOptions
from jaxrules.learning.workers import carry_out, carry_out_all, check_sendable, check_workers
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Run

# dask warns if that takes over a second, as on a loaded machine
pytestmark = pytest.mark.filterwarnings("ignore:Creating scratch directories")

_random = np.random.default_rng(0)
X = _random.normal(size=(120, 3))
NUMBERS = X[:, 0] + (X[:, 1] > 0.3) + 0.3 * _random.normal(size=120)
LABELS = np.where(NUMBERS > 0.2, "yes", "no")


@pytest.fixture(scope="module")
def clusters() -> Iterator[Callable[[], Any]]:
    """Clients of dask clusters of two processes on this machine."""
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    clients: list[Any] = []
    # A task that kills its worker goes to others three times by default: the more workers are to be
    # started again, the more often dask loses one
    settings = {
        "distributed.comm.timeouts.connect": "600s",
        "distributed.scheduler.allowed-failures": 0,
    }
    with dask.config.set(settings), ExitStack() as stack:

        def client() -> Any:
            """The last one, if it has its workers: on a busy machine, dask may give up one that was
            killed and is slow to start again.
            """
            if clients:
                with suppress(TimeoutError):
                    clients[-1].wait_for_workers(2, timeout=20)
                    return clients[-1]
            made = stack.enter_context(distributed.LocalCluster(**options))
            clients.append(stack.enter_context(distributed.Client(made)))
            return clients[-1]

        yield client


@pytest.fixture
def cluster(clusters: Callable[[], Any]) -> Any:
    return clusters()


@pytest.fixture(params=["loky", "dask"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Inside the context of each backend."""
    if request.param == "dask":
        request.getfixturevalue("cluster")
    with parallel_config(backend=request.param):
        yield request.param


# Tasks


def number(k: int, seconds: float | None) -> int:
    return k


def fails(seconds: float | None) -> None:
    raise ZeroDivisionError("no number")


def dies(seconds: float | None) -> None:
    time.sleep(1)  # dask may never restart a worker that dies as soon as it starts
    os._exit(1)


def dies_once(mark: Path, seconds: float | None) -> str:
    if not mark.exists():
        mark.touch()
        dies(seconds)
    return "alive"


def naps(seconds: float | None) -> None:
    time.sleep(3)


def limit(seconds: float | None) -> float | None:
    return seconds


def lock(seconds: float | None) -> Any:
    return threading.Lock()


def tasks(count: int) -> list[Callable[[float | None], Any]]:
    return [functools.partial(number, k) for k in range(count)]


# The number of workers


def test_n_jobs_is_that_of_joblib() -> None:
    assert check_workers(None) == check_workers(1) == 1
    assert check_workers(3) == 3
    with parallel_config(n_jobs=2):
        assert check_workers(None) == 2
        assert check_workers(1) == 1
    assert check_workers(-1) >= check_workers(-2) >= 1
    for far in (2**15 + 1, -(2**15) - 1):
        with pytest.raises(ValueError, match="n_jobs must be"):
            check_workers(far)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True])
def test_bad_n_jobs_are_refused(n_jobs: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="n_jobs must be"):
        jr.boosting.cross_validate(X, LABELS, n_jobs=n_jobs)


def test_workers_and_a_mesh_are_refused() -> None:
    mesh = jax.make_mesh((1,), ("rows",))
    with jr.rows_over(mesh), pytest.raises(ValueError, match="n_jobs means 2 workers"):
        check_workers(2)


# Results, deaths, errors


def test_results_are_in_order(backend: str) -> None:
    reports: list[jr.Progress] = []
    run = Run("test", progress=reports.append)
    assert carry_out(tasks(5), run, 2) == [0, 1, 2, 3, 4]
    assert [report.done for report in reports] == [1, 2, 3, 4, 5]


def test_a_killed_worker_loses_one_task_at_most(backend: str, tmp_path: Path) -> None:
    found = carry_out([*tasks(2), dies, *tasks(2)], Run("test"), 2)
    assert isinstance(found[2], Exception)
    assert [*found[:2], *found[3:]] == [0, 1, 0, 1]
    # In a run of its own: the death of a task beside it may end it before its first line.
    again = functools.partial(dies_once, tmp_path / "mark")
    assert carry_out([*tasks(2), again, *tasks(2)], Run("test"), 2) == [0, 1, "alive", 0, 1]


def test_a_cluster_that_loses_all_workers_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "_WITHOUT_WORKERS", 0.5)
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as made, distributed.Client(made):
        run = Run("test", progress=lambda report: made.scale(0))
        with parallel_config(backend="dask"):
            found = carry_out([*tasks(1), naps, naps, naps], run, 2)
    assert found[0] == 0
    assert isinstance(found[-1], RuntimeError)
    assert "no worker" in str(found[-1])


def test_a_cluster_that_never_has_a_worker_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "_WITHOUT_WORKERS", 0.5)
    cluster = distributed.LocalCluster(n_workers=0, dashboard_address=":0")
    with cluster as made, distributed.Client(made), parallel_config(backend="dask"):
        found = carry_out([naps, naps], Run("test"), 2)
    assert all("no worker" in str(one) for one in found)


def test_folds_need_all_results(monkeypatch: pytest.MonkeyPatch) -> None:
    assert carry_out_all(tasks(2), Run("test"), 1) == [0, 1]
    monkeypatch.setattr(workers, "carry_out", lambda *_: [0, MemoryError("x")])
    with pytest.raises(RuntimeError, match=r"fold 1 of 2 has no result \(MemoryError\).* fewer"):
        carry_out_all(tasks(2), Run("test"), 2)


def test_the_error_of_a_task_is_raised(backend: str) -> None:
    with pytest.raises(ZeroDivisionError, match="no number") as caught:
        carry_out([*tasks(3), fails], Run("test"), 2)
    assert "In a worker" in "".join(caught.value.__notes__)


@pytest.mark.slow
def test_a_result_that_cannot_be_sent_loses_its_task() -> None:
    found = carry_out([*tasks(2), lock], Run("test"), 2)
    assert found[:2] == [0, 1]
    assert isinstance(found[2], Exception)


def test_every_task_gets_its_share_of_the_time(backend: str) -> None:
    deadline = jr.Deadline(12, clock=lambda: 0.0)
    assert carry_out([limit] * 4, Run("test", deadline), 2) == [6, 8, 12, 12]
    assert carry_out([limit] * 4, Run("test", deadline), 1) == [3, 4, 6, 12]


def test_nothing_is_sent_after_the_time_limit(backend: str) -> None:
    run = Run("test", jr.Deadline(0.0))
    assert carry_out(tasks(3), run, 2) == [None] * 3
    assert run.limit is Status.TIME_LIMIT


# What can be sent


class Held:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def loss(self, y: Any, score: Any) -> Any:
        return (y - score) ** 2


def test_what_cannot_be_sent_is_named() -> None:
    held = threading.Lock()

    def loss(y: Any, score: Any) -> Any:
        return (y - score) ** 2 if held else 0

    message = r"loss\.\S*held cannot be sent to workers: <unlocked _thread.lock .*pass n_jobs=1"
    with pytest.raises(TypeError, match=message):
        jr.boosting.cross_validate(X, NUMBERS, loss=loss, n_jobs=2)
    with pytest.raises(TypeError, match=r"method\.\S*lock cannot be sent to workers"):
        jr.compare(X, NUMBERS, methods={"own": Held().loss}, n_jobs=2)
    check_sendable([functools.partial(print, end="")])


@pytest.mark.parametrize("name", ["squared", "logistic", "exponential", "poisson"])
def test_the_losses_stay_themselves(name: str) -> None:
    loss = losses.loss_by_name(name)
    assert pickle.loads(pickle.dumps(loss)) is loss


class Ticks:
    """Every reading of this clock takes a second."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return float(self.looks)


def test_options_and_deadlines_travel() -> None:
    options = FitOptions(time_limit=jr.Deadline(5.0, lambda: 0.0), progress=print)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(options)  # the clock of this test
    there = pickle.loads(pickle.dumps(FitOptions(time_limit=jr.Deadline(5.0, Ticks()))))
    assert there.progress is False
    assert there.time_limit.seconds == 4.0  # one was over when it was sent
    assert pickle.loads(pickle.dumps(jr.Deadline(None))).seconds is None


# The public functions


def test_cross_validation_of_one_process(backend: str) -> None:
    def loss(y: Any, score: Any) -> Any:
        return (y - score) ** 2

    for options in ({"y": LABELS}, {"y": NUMBERS, "loss": loss}):
        alone, together = (
            jr.boosting.cross_validate(X, max_rules=2, n_folds=3, n_jobs=n_jobs, **options)
            for n_jobs in (1, 2)
        )
        found, expected = together.details.cross_validation, alone.details.cross_validation
        np.testing.assert_array_equal(found.risks, expected.risks)
        np.testing.assert_array_equal(found.sizes, expected.sizes)
        assert found.chosen == expected.chosen
        assert str(together.model) == str(alone.model)


@pytest.mark.parametrize(
    "learner", ["rulefit", pytest.param("ssrl", marks=pytest.mark.slow)]
)  # patience; folds of its own
def test_other_cross_validations_of_one_process(learner: str) -> None:
    options = {"max_rules": [1, 2]} if learner == "ssrl" else {}
    alone, together = (
        getattr(jr, learner).cross_validate(X, LABELS, n_folds=2, n_jobs=n_jobs, **options)
        for n_jobs in (1, 2)
    )
    found, expected = together.details.cross_validation, alone.details.cross_validation
    np.testing.assert_array_equal(found.risks, expected.risks)
    assert str(together.model) == str(alone.model)


def test_comparison_and_stability_on_a_cluster(cluster: Any) -> None:
    options = {"methods": ["cart", "boosting"], "folds": 2, "inner_folds": 2}
    alone = jr.compare(X, LABELS, **options)
    replicates = jr.stability("boosting", X, LABELS, replicates=2)
    with parallel_config(backend="dask"):  # n_jobs=None is all of it
        together = jr.compare(X, LABELS, **options)
        on_cluster = jr.stability("boosting", X, LABELS, replicates=2)
    for name in options["methods"]:
        np.testing.assert_array_equal(alone[name].risks, together[name].risks)
    assert str(replicates) == str(on_cluster)


def test_a_worker_without_the_data_folder_says_so(cluster: Any, tmp_path: Path) -> None:
    def method(X: Any, y: Any) -> Any:
        return jr.datasets.load("fico", data_home=tmp_path / "not there")

    with parallel_config(backend="dask"):
        found = jr.compare(X, LABELS, methods={"own": method}, folds=2, inner_folds=2)
    assert "not there" in str(found["own"].failures)


# Ctrl-C


WAITS = """
import os, sys, time
from functools import partial
from pathlib import Path
from joblib import parallel_config
from jaxrules.tools.runs import Run
from jaxrules.learning.workers import carry_out

def wait(mark, seconds):
    run = Run("fit")
    with run:
        mark.touch()
        while not run.stopped():
            time.sleep(0.01)
    mark.with_suffix(".ended").touch()

def main():
    folder, backend = Path(sys.argv[1]), sys.argv[2]
    if backend == "dask":
        from distributed import Client
        client = Client(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    run = Run("test")
    with parallel_config(backend=backend):
        found = carry_out([partial(wait, folder / str(k)) for k in range(4)], run, 2)
    print(run.limit.value, found)
    if backend == "dask":
        client.shutdown()

if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups of this kind")
@pytest.mark.parametrize("backend", ["loky", "dask"])
@pytest.mark.parametrize("signalled", ["all", "parent"])
def test_ctrl_c_reaches_the_workers(backend: str, signalled: str, tmp_path: Path) -> None:
    if backend == "dask":
        pytest.importorskip("distributed")
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    ran = subprocess.Popen(
        [sys.executable, script, tmp_path, backend],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    ended = threading.Event()
    while not all((tmp_path / str(k)).exists() for k in range(2)):
        assert ran.poll() is None
        ended.wait(0.05)
    if signalled == "all":  # as a terminal does
        os.killpg(ran.pid, signal.SIGINT)
    else:  # workers on another machine, or one that gets a task just after it has heard Ctrl-C
        os.kill(ran.pid, signal.SIGINT)
    output, _ = ran.communicate()
    assert output == "interrupted [None, None, None, None]\n"
    begun = {path.stem for path in tmp_path.glob("[0-3]")}  # a third may have been on its way
    if (backend, signalled) != ("dask", "all"):  # a local cluster's workers die of it
        assert {path.stem for path in tmp_path.glob("*.ended")} == begun
