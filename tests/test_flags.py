"""Every learner with JAX's global float64 flag off and on, warnings (of truncation, say) as errors.

One process per setting runs all learners on one small problem; the tests compare what they report. A
learner joins by a line in `LEARNERS`.
"""

import functools
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

# What is called, on X (120 rows, 4 columns), y (two classes) and t (numbers).
LEARNERS = {
    "rulefit": "jr.rulefit.fit(X, y, l1_penalty=0.02)",
    "rulefit, linear terms": "jr.rulefit.fit(X, t, loss='squared', l1_penalty=0.02, linear_terms=True)",
    "lire": "jr.lire.fit(X, y, global_penalty=0.01, local_penalty=0.02)",
    "boosting": "jr.boosting.fit(X, y, loss='logistic', max_rules=2)",
    "glrm": "jr.glrm.fit(X, y)",
    "paths": "jr.paths.fit(X, t, steps=3)",
    "paths, logistic": "jr.paths.fit(X, y, steps=3, cost='logistic', method='local')",
}

PROGRAM = """
import json, sys, traceback, warnings
import jax
import numpy as np
import jaxrules as jr

warnings.simplefilter("error")
rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(120, 4)), 2)
t = X[:, 0] - 2 * (X[:, 1] > 0.3) + 0.1 * rng.normal(size=120)
y = (t > 0).astype(int)
before = dict(jax.config.values)

def report(call):
    fit = eval(call)
    single = [str(leaf.dtype) for leaf in jax.tree.leaves(fit.model) if isinstance(leaf, jax.Array)]
    floats = {str(leaf.dtype) for leaf in jax.tree.leaves(fit.model)} - {"int32", "int64", "bool", "float64"}
    return {
        "objective": fit.objective,
        "status": str(fit.status),
        "predictions": np.asarray(jr.predict(fit.model, X)).tolist(),
        "jax leaves": single,
        "other dtypes": sorted(floats),
        "config changed": [name for name, value in jax.config.values.items() if before.get(name, value) != value],
    }

results = {}
for name, call in json.loads(sys.argv[1]).items():
    try:
        results[name] = report(call)
    except Exception:
        results[name] = {"error": traceback.format_exc()}
print("\\n" + json.dumps(results))
"""


@functools.cache
def reports(x64: bool) -> dict[str, Any]:
    """What every learner reports under this setting."""
    environment = {**os.environ, "JAX_ENABLE_X64": str(int(x64)), "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(LEARNERS)],
        capture_output=True, text=True, check=False, timeout=900, env=environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_flag_changes_nothing(learner: str) -> None:
    off, on = reports(False)[learner], reports(True)[learner]
    for setting, report in (("off", off), ("on", on)):
        assert "error" not in report, f"flag {setting}: {report.get('error')}"
        assert report["jax leaves"] == []  # models hold NumPy arrays
        assert report["other dtypes"] == []  # of float64, integers and booleans
        assert report["config changed"] == []
    assert off["status"] == on["status"]
    np.testing.assert_allclose(off["objective"], on["objective"], rtol=1e-6)
    if isinstance(off["predictions"][0], float):
        np.testing.assert_allclose(off["predictions"], on["predictions"], rtol=1e-3, atol=1e-4)
    else:
        assert off["predictions"] == on["predictions"]


@pytest.mark.parametrize("x64", [False, True])
def test_traced_models_under_both_settings(x64: bool, tmp_path: Any) -> None:
    """Prediction, gradients and persistence of hand-made models, warnings as errors."""
    program = """
import warnings
import jax, jax.numpy as jnp, numpy as np
import jaxrules as jr
warnings.simplefilter("error")
schema = jr.Schema((jr.Feature("a"), jr.Feature("k", ("x", "y"))), "own_category", ("no", "yes"))
C = jr.Condition
rules = jr.Conjunctions.build(schema, [[C.above(0, 0.1)], [C.one_of(1, [1]), C.at_most(0, 1e300)], []])
terms = jr.LinearTerms(np.array([0], np.int32), np.ones((1, 1)), np.array([-np.inf]), np.array([0.3]))
model = jr.RuleEnsemble(rules, np.array([[0.1], [0.2], [0.3]]), np.array([0.4]), terms, "logistic")
X = np.array([[0.05, 0.0], [0.1, 1.0], [0.5, -1.0], [np.nan, -2.0]])
table = jr.Table(schema, (X[:, 0], X[:, 1].astype(np.int32)))
host = jr.decision_function(model, table)
x = X if jax.config.jax_enable_x64 else X.astype(np.float32)
precision = 1e-12 if jax.config.jax_enable_x64 else 1e-6
traced = jax.jit(lambda x: jr.decision_function(model, x))(x)
assert traced.dtype == x.dtype
np.testing.assert_allclose(traced[jnp.array([0, 2, 3])], host[[0, 2, 3]], rtol=precision)
weights = jnp.asarray(model.weights)
gradient = jax.grad(lambda w: jr.decision_function(jr.with_weights(model, w), table).sum())(weights)
np.testing.assert_array_equal(gradient[:, 0], rules.satisfied(table).sum(axis=0))
assert jr.decision_function(jr.with_weights(model, weights), table).dtype == np.float64
"""
    environment = {**os.environ, "JAX_ENABLE_X64": str(int(x64)), "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300, env=environment
    )
    assert result.returncode == 0, result.stderr
