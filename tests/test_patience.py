"""Kernels that are not waited for while they compile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import jaxrules as jr
from jaxrules.ensembles.lltboost import ensemble
from jaxrules.lists import insertion
from jaxrules.paths import local
from jaxrules.rules.conditions import Condition
from jaxrules.solvers import adam
from jaxrules.solvers.patience import Patient

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = (X[:, 1] + 0.3 * RNG.normal(size=150) > 0.2).astype(int)


class Slow:
    """A kernel whose first call ends when the test lets it."""

    def __init__(self) -> None:
        self.end, self.calls, self.threads = threading.Event(), 0, set[threading.Thread]()

    def __call__(self, *args: Any, **static: Any) -> int:
        self.calls += 1
        self.threads.add(threading.current_thread())
        assert self.end.wait(60)
        return self.calls


@pytest.fixture
def slow() -> Iterator[Slow]:
    kernel = Slow()
    yield kernel
    kernel.end.set()
    for thread in kernel.threads - {threading.current_thread()}:
        thread.join()


def ctrl_c(*_: Any) -> bool:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["start", "run", "stopped"])
def test_no_call_waits_for_a_compilation_that_ctrl_c_ended(
    where: str, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Patient(slow)
    with monkeypatch.context() as patch:
        if where == "start":  # before the thread began
            patch.setattr(threading.Thread, "start", ctrl_c)
        elif where == "run":  # while it begins
            begin = threading.Thread.start
            patch.setattr(threading.Thread, "start", lambda one: begin(one) or ctrl_c())
        with pytest.raises(KeyboardInterrupt):
            patient(ctrl_c, np.zeros(3))
    slow.end.set()
    assert patient(lambda: False, np.zeros(3)) >= 1


def test_a_compilation_is_left_alone_and_found_later(slow: Slow) -> None:
    patient = Patient(slow)
    assert patient(lambda: True, np.zeros(3)) is None
    assert patient(lambda: True, np.ones(3)) is None  # the same shape: nothing is begun again
    assert slow.calls == 1
    slow.end.set()
    assert patient(lambda: False, np.zeros(3)) == 2
    assert (
        patient(lambda: True, np.zeros(3)) == 3
    )  # compiled: in the caller's thread, whatever the time
    assert len(slow.threads) == 2
    assert threading.current_thread() in slow.threads


@pytest.mark.parametrize(
    ("args", "static"),
    [
        ((np.zeros(4),), {}),
        ((np.zeros(3, np.float32),), {}),
        (((np.zeros(3),),), {}),
        ((np.zeros(3),), {"size": 2}),
        ((np.zeros(3), None), {}),
        ((np.zeros(3), 1), {}),
        ((np.zeros(3), 1.0), {}),
        ((np.zeros(3), True), {}),
    ],
)
def test_what_is_compiled_for(args: Any, static: Any) -> None:
    """Shapes, dtypes, structure, kinds of numbers and static arguments; not the numbers."""
    threads = []
    patient = Patient(
        lambda *args, **static: threads.append(threading.current_thread()) or len(threads)
    )
    assert patient(lambda: False, np.zeros(3)) == 1
    assert patient(lambda: False, np.ones(3)) == 2
    assert patient(lambda: False, *args, **static) == 3
    assert patient(lambda: False, *args, **static) == 4
    own = threading.current_thread()
    assert [thread is own for thread in threads] == [False, True, False, True]


def test_an_error_of_the_kernel_is_the_callers() -> None:
    def kernel(values: Any) -> None:
        raise ZeroDivisionError

    patient = Patient(kernel)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            patient(lambda: False, np.zeros(3))


def test_the_threads_device_is_the_callers() -> None:
    device = jax.devices("cpu")[0]
    seen = []
    patient = Patient(lambda values: seen.append(jax.config.jax_default_device) or 0)
    with jax.default_device(device):
        patient(lambda: False, np.zeros(3))
    assert seen == [device]


class Late:
    """A kernel that is still compiling when the time limit passes, and the clock that decides
    when.
    """

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self, stopped: Any, *args: Any, **static: Any) -> None:
        self.now = 2.0
        assert stopped()

    def limit(self) -> jr.Deadline:
        return jr.Deadline(1.0, lambda: self.now)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Late:
    """All kernels at once."""
    kernel = Late()
    for module, name in (
        (ensemble, "_propose_in_time"),
        (insertion, "_descend_in_time"),
        (insertion, "_modmod_in_time"),
        (adam, "_compiled_in_time"),
        (local, "_compiled_in_time"),
    ):
        monkeypatch.setattr(module, name, kernel)
    return kernel


def conditions(fit: jr.Fit[Any]) -> list[tuple[Condition, ...]]:
    return list(fit.model.conjunctions)


@pytest.mark.parametrize("sign", [1, -1])
def test_lltboost_without_the_time_to_compile(late: Late, sign: int) -> None:
    """One rule all the same: the best cut of a column."""
    fit = jr.lltboost.fit(sign * X, Y, time_limit=late.limit())
    assert fit.status is jr.Status.TIME_LIMIT
    assert [[condition.feature for condition in rule] for rule in conditions(fit)] == [[1]]
    assert jr.accuracy(fit.model, sign * X, Y) > 0.8
    assert np.isnan(fit.details["stages"][0].risk)


def test_lltboost_without_time_and_with_missing_numbers(late: Late) -> None:
    holes = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    fit = jr.lltboost.fit(holes, Y, missing="own_category", time_limit=late.limit())
    assert len(fit.model.conjunctions) == 1
    assert jr.accuracy(fit.model, holes, Y) > 0.75


def test_lltboost_without_time_on_columns_that_are_all_constant(
    late: Late,
) -> None:
    with pytest.warns(UserWarning, match="the model is a constant"):
        fit = jr.lltboost.fit(np.ones((150, 2)), Y, time_limit=late.limit())
    assert len(fit.model.conjunctions) == 0


@pytest.mark.parametrize("subproblem", ["beam", "exact", "published"])
def test_ssrl_without_the_time_to_compile(late: Late, subproblem: Any) -> None:
    """One rule of one literal."""
    if subproblem == "published":
        fit = jr.ssrl.published(X, Y, time_limit=late.limit())
    else:
        fit = jr.ssrl.fit(X, Y, subproblem=subproblem, time_limit=late.limit())
    assert fit.status is jr.Status.TIME_LIMIT
    assert [len(rule) for rule in conditions(fit)] == [1]
    assert jr.accuracy(fit.model, X, Y) > 0.8


def test_ssrl_without_time_keeps_constraints(late: Late) -> None:
    fit = jr.ssrl.fit(X, Y, forbidden=["x1"], time_limit=late.limit())
    assert all(condition.feature != 1 for rule in conditions(fit) for condition in rule)


@pytest.mark.parametrize("learner", ["ltrnet", "drnet"])
@pytest.mark.parametrize("sign", [1, -1])
def test_networks_without_the_time_to_compile(late: Late, learner: str, sign: int) -> None:
    """One rule of one column."""
    fit = getattr(jr, learner).fit(sign * X, Y, time_limit=late.limit())
    assert fit.status is jr.Status.TIME_LIMIT
    assert [[condition.feature for condition in rule] for rule in conditions(fit)] == [[1]]
    assert jr.accuracy(fit.model, sign * X, Y) > 0.8


@pytest.mark.parametrize("learner", ["ltrnet", "drnet"])
def test_networks_of_three_classes_without_time(late: Late, learner: str) -> None:
    y = np.digitize(X[:, 1], [-0.5, 0.5])
    fit = getattr(jr, learner).fit(X, y, time_limit=late.limit())
    assert jr.accuracy(fit.model, X, y) > 0.55  # the largest class has .4


def test_ltrnet_without_time_for_numbers(late: Late) -> None:
    """The weight of a rule is the difference between the mean of its rows and that of the others,
    with and without a refit.
    """
    y = np.where(X[:, 0] > 0.1, 5.0, 3.0)
    for refit in (True, False):
        late.now = 0.0
        fit = jr.ltrnet.fit(X, y, refit=refit, l2_penalty=0.0, time_limit=late.limit())
        np.testing.assert_allclose(jr.predict(fit.model, X), y, atol=1e-6)


def test_paths_without_the_time_to_compile(late: Late) -> None:
    """The greedy path."""
    fit = jr.paths.fit(X, X @ [1.0, 2.0, 3.0], method="local", time_limit=late.limit())
    assert fit.status is jr.Status.TIME_LIMIT
    assert np.isfinite(fit.objective)
