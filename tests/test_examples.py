"""The notebooks of examples/ run from the first cell to the last, as scripts."""

import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import jaxrules as jr

EXAMPLES = Path(__file__).parent.parent / "examples"
LONG = {"tour.py"}
"""Every learner compiles its kernels."""
NOTEBOOKS = sorted(
    path.name for path in EXAMPLES.glob("*.py") if path.read_text().startswith("# %%")
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in NOTEBOOKS]
)
def test_notebook_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")  # plt.show()
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    plt.close("all")
    assert capsys.readouterr().out


def printed_by(name: str) -> str:
    """What an example prints as a script of its own."""
    slow = "ignore:Creating scratch directories"  # dask's warning on a loaded machine
    command = [sys.executable, "-W", "error", "-W", slow, str(EXAMPLES / name)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_on_a_cluster() -> None:
    pytest.importorskip("distributed")
    printed = printed_by("on_a_cluster.py")
    assert "cart" in printed
    assert "RuleEnsemble" in printed


@pytest.mark.skipif(sys.platform != "linux", reason="JAX's collectives of CPUs are Linux's")
def test_two_processes_get_the_model_of_one() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(301, 3))
    y = (X[:, 0] + X[:, 1] > 0.3) ^ (random.random(len(X)) < 0.05)
    start = jr.boosting.fit(X, y, max_rules=2).model
    alone = jr.finetune(start, X, y, iterations=20)
    printed = printed_by("two_processes.py")
    found = re.findall(r"^0\.\d{12}$", printed, re.MULTILINE)
    assert len(found) == 2
    assert [float(text) for text in found] == pytest.approx([alone.objective] * 2, rel=1e-9)
    assert printed.count(str(alone.model)) == 2


def test_a_service_answers_and_refuses() -> None:
    printed = printed_by("serving.py")
    assert re.findall(r"^(\d{3}) ", printed, re.MULTILINE) == ["200", *["422"] * 5]
    assert '"rule": "intercept"' in printed
    assert "422 X lacks the columns 'late payments'" in printed


def test_questions_have_notebooks() -> None:
    questions = {
        "which_rules_fired",
        "how_certain_is_optimality",
        "how_to_cap_the_rules",
        "take_the_model_away",
        "serving",
        "tour",
    }
    assert questions <= {Path(name).stem for name in NOTEBOOKS}
