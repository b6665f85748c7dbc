"""When compiled kernels are worth the wait."""

import errno
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numba.core.caching import CompileResultCacheImpl, IndexDataCacheFile

import jaxrules as jr
from jaxrules.tools.kernels import Kernels, seconds_to_load
from jaxrules.tools.runs import Deadline, Run

LITTLE, MUCH = 10_000, 10**10
SOURCE = """
from jaxrules.tools.compiling import from_python

@from_python()
def double(x):
    return 2 * x
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Loads a module of kernels, as a new process would."""
    (tmp_path / "my_kernels.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)

    def load() -> ModuleType:
        sys.modules.pop("my_kernels", None)
        return importlib.import_module("my_kernels")

    yield load
    sys.modules.pop("my_kernels", None)


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def limited(seconds: float) -> Run:
    """A run with so much time left, on a clock that stands still."""
    return Run("test", Deadline(seconds, clock=lambda: 0.0))


def test_kernels_on_disk_take_less_time_than_new_ones(module: Any) -> None:
    loaded = module()
    new = seconds_to_load("my_kernels", 100.0)
    loaded.double(1)
    assert seconds_to_load("my_kernels", 100.0) == 0.0
    module()
    on_disk = seconds_to_load("my_kernels", 100.0)
    assert 0.0 < on_disk < new
    assert seconds_to_load("my_kernels", 100.0, ("double",)) == on_disk


def test_changed_kernels_are_new(module: Any, tmp_path: Path) -> None:
    new = seconds_to_load(module().__name__, 100.0)
    module().double(1)
    (tmp_path / "my_kernels.py").write_text("\n" + SOURCE)
    module()
    assert seconds_to_load("my_kernels", 100.0) == new


def test_much_work_pays_at_once_and_little_work_when_it_comes_often(module: Any) -> None:
    module().double(1)
    assert Kernels("my_kernels", "double").pay(MUCH)
    kernels = Kernels("my_kernels", "double")
    asked = 1
    while not kernels.pay(LITTLE):
        asked += 1
    assert asked > 1000
    assert kernels.pay(LITTLE)


def test_new_kernels_must_pay_more(module: Any) -> None:
    asked = []
    for loaded in (module(), module()):
        kernels = Kernels("my_kernels", "double")
        asked.append([kernels.pay(10**6) for _ in range(2000)].index(True))
        loaded.double(1)
    assert asked[0] > 5 * asked[1] > 0


def test_no_limit_is_spent_on_a_compiler(module: Any) -> None:
    kernels = Kernels("my_kernels", "double")
    module()
    with limited(2.0), limited(1000.0):
        assert not kernels.pay(MUCH)
    with limited(1000.0):
        assert kernels.pay(MUCH)
    with limited(2.0):
        module().double(1)
        assert kernels.pay(MUCH)
    with limited(0.01):
        assert kernels.pay(MUCH)  # they are loaded
    run = Run("test")
    with run:
        module()
        ctrl_c()
        assert not kernels.pay(MUCH)
    assert not run.may_import("my_kernels")


def test_the_limit_of_a_run_ends_with_it(module: Any) -> None:
    kernels = Kernels("my_kernels", "double")
    run, other = limited(0.01), limited(0.02)
    module()
    with run:
        with other, run:
            assert not kernels.pay(MUCH)
        assert not kernels.pay(MUCH)
    assert kernels.pay(MUCH)


def test_kernels_work_without_a_folder_for_them(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where neither the installation nor the home may be written to."""
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    loaded = module()
    new = seconds_to_load("my_kernels", 100.0)
    assert loaded.double(1) == 2
    assert seconds_to_load("my_kernels", 100.0) == 0.0
    module()
    assert seconds_to_load("my_kernels", 100.0) == new > 0.0


def test_kernels_work_when_the_disk_is_full(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "save", save)
    assert module().double(1) == 2


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [b"", b"damaged"])
def test_damaged_files_are_written_anew(
    module: Any, tmp_path: Path, kind: str, left: bytes
) -> None:
    module().double(1)
    (file,) = tmp_path.rglob(f"*.{kind}")
    file.write_bytes(left)
    assert module().double(1) == 2
    (file,) = tmp_path.rglob(f"*.{kind}")
    assert file.read_bytes() != left
    again = module().double
    again(1)
    assert sum(again.stats.cache_hits.values()) == 1


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from(["two", "three", "numbers", "counts"]), st.booleans())
def test_models_do_not_depend_on_it(seed: int, kind: str, rounded: bool) -> None:
    r = np.random.default_rng(seed)
    X = r.normal(size=(400, 4))
    X = np.round(X, 1) if rounded else X
    score = X[:, 0] * X[:, 1] + (X[:, 2] > 0.3) + 0.3 * r.normal(size=400)
    y = {
        "two": score > 0.5,
        "three": np.digitize(score, [0.0, 1.0]),
        "numbers": score,
        "counts": r.poisson(np.exp(np.clip(score, -2, 2))),
    }[kind]
    loss = "poisson" if kind == "counts" else None
    models = []
    for pays in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Kernels, "pay", lambda *_, pays=pays: pays)
            models.append(jr.boosting.fit(X, y, loss=loss, max_rules=4).model)
    assert str(models[0]) == str(models[1])
    np.testing.assert_array_equal(models[0].weights, models[1].weights)


def test_a_first_fit_waits_for_no_compiler(tmp_path: Path) -> None:
    """On a machine whose cache is empty."""
    program = """
import numpy as np
import jaxrules as jr

X = np.random.default_rng(0).normal(size=(2000, 10))
jr.boosting.fit(X, X[:, 0] * X[:, 1] > 0)
jr.boosting.fit(X[:300], np.digitize(X[:300, 0], [-1, 1]))
for learner in (jr.boosting, jr.ssrl, jr.exact_list, jr.glrm, jr.rulefit):
    fit = learner.fit(X[:300], X[:300, 0] > 0, time_limit=4)
    assert len(fit.model.conjunctions) > 0, learner
"""
    subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    # RuleFit's takes less than a second.
    compiled = {one.name.partition("-")[0] for one in tmp_path.rglob("*.nbc")}
    assert compiled <= {"coordinate_descent.sweep"}
