"""The notebooks of examples/ run from the first cell to the last, as scripts."""

import runpy
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

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


def test_questions_have_notebooks() -> None:
    questions = {
        "which_rules_fired",
        "how_certain_is_optimality",
        "how_to_cap_the_rules",
        "take_the_model_away",
        "tour",
    }
    assert questions <= {Path(name).stem for name in NOTEBOOKS}
