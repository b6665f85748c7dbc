"""What ``import jaxrules`` may load and change."""

import json
import subprocess
import sys

HEAVY = ["numba", "cvxpy", "highspy", "matplotlib", "sklearn.ensemble", "optax", "pandas", "polars", "tqdm"]

PROGRAM = f"""
import json, sys, threading
import jax
before = dict(jax.config.values)
threads = threading.active_count()
import jaxrules
print(json.dumps({{
    "loaded": [name for name in {HEAVY!r} if name in sys.modules],
    "changed": [name for name, value in jax.config.values.items() if before.get(name, value) != value],
    "threads": threading.active_count() - threads,
    "missing": [name for name in jaxrules.__all__ if not hasattr(jaxrules, name)],
    # made under the precision of the import, they would keep it when the user's flag changes
    "arrays": [f"{{name}}.{{key}}" for name, module in list(sys.modules.items()) if name.startswith("jaxrules")
               for key, value in vars(module).items() if isinstance(value, jax.Array)],
}}))
"""


def test_import_is_light_and_leaves_jax_alone() -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"loaded": [], "changed": [], "threads": 0, "missing": [], "arrays": []}
    assert result.stderr == ""
