"""What ``import jaxrules`` loads and changes, and what loading a model and predicting needs."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxrules

HEAVY = [  # packages that `import jaxrules`, `load` and the questions to a model do without
    *(
        "cvxpy",
        "highspy",
        "numba",
        "llvmlite",
        "sklearn",
        "scipy",
        "optax",
        "matplotlib",
        "threadpoolctl",
        "tqdm",
    ),
    *("joblib", "pandas", "polars", "duckdb", "lightgbm"),
]
LEARNERS = ("jaxrules.ensembles", "jaxrules.ensembles.lire", "jaxrules.lists")
GOLDEN = Path(__file__).parent / "golden"

IMPORT = f"""
import json, sys, threading
import jax
before = dict(jax.config.values)
threads = threading.active_count()
import jaxrules
print(json.dumps({{
    "loaded": [name for name in {HEAVY!r} if name in sys.modules],
    "learners": [name for name in sys.modules if name.startswith({LEARNERS!r})],
    "narwhals": "narwhals" in sys.modules,
    "changed": [
        name for name, value in jax.config.values.items() if before.get(name, value) != value
    ],
    "threads": threading.active_count() - threads,
    "missing": [name for name in jaxrules.__all__ if not hasattr(jaxrules, name)],
    # made under the precision of the import, they would keep it when the user's flag changes
    "arrays": [f"{{name}}.{{key}}" for name, module in list(sys.modules.items())
               if name.startswith("jaxrules")
               for key, value in vars(module).items() if isinstance(value, jax.Array)],
}}))
"""

PREDICT = f"""
import json, pathlib, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY!r}:
            raise ImportError(f"{{name}} is not installed")

sys.meta_path.insert(0, Refused())
import jaxrules as jr

ages = [18.0, 30.0, 30.000000000000004, 45.0, None, -0.0, 1e300, 44.0, 0.1]
jobs = ["clerk", "cook", "smith", None, "clerk", "pilot", "cook", "smith", "cook"]
incomes = [0.0, 1.5, None, -2.5, 1e-300, 0.30000000000000004, 7.0, -1e300, 0.1]
X = {{"age": ages, "job": jobs, "income": incomes}}  # without a dataframe package: records
rows = [dict(zip(X, values)) for values in zip(*X.values())]
answers = {{}}
for path in sorted(pathlib.Path({str(GOLDEN)!r}).glob("*.json")):
    model = jr.load(path)
    if type(model).__name__ == "SurvivalModel":
        str(model), jr.save(model, sys.argv[1])
        answers[path.stem] = jr.load(sys.argv[1]).survival(X, [0.5, 2.5, 7.0]).tolist()
        continue
    y = jr.predict(model, X)
    assert y.tolist() == jr.predict(model, rows).tolist()
    str(model), model._repr_html_() if hasattr(model, "_repr_html_") else "", jr.to_latex(model)
    jr.explain(model, X), jr.save(model, sys.argv[1]), jr.predict(jr.load(sys.argv[1]), X)
    if model.schema.classes:
        jr.predict_proba(model, X), jr.accuracy(model, X, y)
    if type(model).__name__ == "RuleEnsemble":
        jr.decision_function(model, X), jr.complexity(model)
        jr.support(model), jr.local_support(model, X)
    if "RuleEnsemble-2" in path.name:
        jr.to_python(model), jr.to_sql(model), jr.importance(model, X)
    answers[path.stem] = y.tolist()
assert not [name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps(answers))
"""

FEW_RULES = """
import sys
import numpy as np
import jaxrules as jr

X = np.random.default_rng(0).normal(size=(6000, 40))
for columns in (10, 40):
    fit = jr.boosting.fit(X[:, :columns], X[:, 0] > 0, time_limit=0.01)
    assert len(fit.model.conjunctions) > 0, fit
print("true" if "numba" in sys.modules else "false")
"""

WITHOUT_DOCSTRINGS = """
import numpy as np
import jaxrules as jr
from jaxrules import estimators

X = np.random.default_rng(0).normal(size=(60, 2))
for name in estimators.__all__:
    model = getattr(estimators, name)()
    if name.startswith("RuleBoosting"):
        model.fit(X, X[:, 0] > 0)
print(len(jr.lltboost.fit(X, X[:, 0], max_rules=1).model.conjunctions))
"""


def output(program: str, *arguments: str, python: tuple[str, ...] = ()) -> Any:
    command = [sys.executable, *python, "-W", "error", "-c", program, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_import_is_light_and_leaves_jax_alone() -> None:
    nothing = {
        "loaded": [],
        "learners": [],
        "narwhals": False,
        "changed": [],
        "missing": [],
        "arrays": [],
    }
    assert output(IMPORT) == {**nothing, "threads": 0}


def test_fits_and_estimators_without_docstrings() -> None:
    assert output(WITHOUT_DOCSTRINGS, python=("-OO",)) == 1


def test_a_few_rules_in_a_fresh_process_load_no_kernels() -> None:
    assert output(FEW_RULES) is False


def test_a_saved_model_predicts_where_little_is_installed(tmp_path: Path) -> None:
    answers = output(PREDICT, str(tmp_path / "model.json"))
    files = {
        path.stem: json.loads(path.with_suffix(".answers").read_text())
        for path in GOLDEN.glob("*.json")
    }
    assert set(answers) == set(files) != set()
    for name, expected in files.items():
        if "survival" in expected:
            np.testing.assert_allclose(answers[name], expected["survival"], rtol=1e-12)
            continue
        numbers = isinstance(expected["predict"][0], float)
        assert answers[name] == (
            pytest.approx(expected["predict"]) if numbers else expected["predict"]
        )


def test_type_checkers_see_the_public_names_and_no_others() -> None:
    tree = ast.parse(Path(jaxrules.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for name, home in seen.items():
        found = getattr(jaxrules, name)
        assert found is (sys.modules.get(f"{home}.{name}") or getattr(sys.modules[str(home)], name))
    assert sorted(jaxrules.__all__) == sorted(seen)
    assert set(jaxrules.__all__) <= set(dir(jaxrules))


INTERRUPTED = """
import json, signal, sys

class Press:
    left = int(sys.argv[1])  # modules until Ctrl-C

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        cls.left -= 1
        if cls.left == 0:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Press)
interrupted = []
for _ in range(3):
    try:
        import jaxrules as jr
        import jaxrules.models.rule_models, jaxrules.tools.checks
        fit = jr.boosting.fit
    except KeyboardInterrupt:
        interrupted.append(Press.left <= 0)
assert jr.RuleEnsemble is jaxrules.models.rule_models.RuleEnsemble
assert jr.tools is sys.modules["jaxrules.tools"] and jr.models is sys.modules["jaxrules.models"]
jr.as_table([[1.0]])
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print(json.dumps(interrupted))
"""


@pytest.mark.full
@pytest.mark.parametrize("modules", [30, 300, 600])  # of some 900
def test_ctrl_c_leaves_no_module_half_imported(modules: int) -> None:
    assert output(INTERRUPTED, str(modules)) == [True]
