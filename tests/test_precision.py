"""Products of float32 say their precision: an accelerator would otherwise round the operands to ten
bits or less, which changes models. A CPU ignores the precision, so that the test reads the lowered
programs instead of comparing numbers: those of every compiled kernel of the package, of jitted
predictions and of gradients through models. Linear systems are solved in float64.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import jaxrules as jr

PREFACE = """
import jax, jax.numpy as jnp, numpy as np
import jaxrules as jr
from jaxrules.ensembles import rulefit

rulefit.worth_an_accelerator = lambda entries: True
random = np.random.default_rng(0)
X = random.normal(size=(203, 4))
y = (X[:, 0] + X[:, 1] > 0.3) & (X[:, 2] < 0.5) ^ (random.random(len(X)) < 0.1)
three, weights = y + (X[:, 3] > 0.3), 1 + random.random(len(X))
rows = jnp.asarray(X, jnp.float32)
mesh = jax.make_mesh((1,), ("rows",))

def traced(model):  # jitted prediction, and gradients in the rows and in all arrays of the model
    scores = getattr(jr, "decision_function")
    if hasattr(model, "steepness"):
        scores = lambda model, rows: model(rows)
    risk = lambda model, rows: jnp.mean(scores(model, rows) ** 2)
    jax.jit(scores)(model, rows)
    jax.jit(jax.grad(risk, allow_int=True))(model, rows)
    jax.jit(jax.grad(risk, 1))(model, rows)
    if isinstance(model, jr.RuleEnsemble):
        jax.jit(jr.predict)(model, rows)
"""
# What is compiled, and the kernels of the package that must be among it
PROGRAMS: dict[str, tuple[str, set[str]]] = {
    "lire": ("""
rules = jr.extract_rules(jr.default_forest(X, y, n_trees=4), X)
for loss, encoding in (("logistic", "signed"), ("exponential", "binary")):
    jr.lire.fit(X, y, rules=rules, loss=loss, encoding=encoding, global_penalty=0.1,
        l2_penalty=1.0, restarts=0, engine="jax")
""", {"ensembles.lire.traced._chunk"}),
    "rulefit": ("""
rules = jr.extract_rules(jr.default_forest(X, y, n_trees=4), X)
for target in (y, three):
    traced(jr.rulefit.fit(X, target, rules=rules, l1_penalty=0.02, linear_terms=True).model)
jr.rulefit.path(X, y, rules=rules, l1_penalties=(0.1, 0.05), engine="jax")
""", {"solvers.linear.traced_path._chunk"}),
    "ssrl": ("""
with jr.rows_over(mesh):
    jr.ssrl.fit(X, y, max_rules=2, beam_width=2)
    jr.ssrl.fit(X, y, weights, max_rules=2, beam_width=2)
    jr.ssrl.published(X, y, max_rules=2)
""", {"lists.insertion._descend", "lists.insertion._score", "lists.insertion._modmod"}),
    "lltboost": ("""
for target in (y, three):
    traced(jr.lltboost.fit(X, target, max_rules=1, beam_width=1).model)
""", {"ensembles.lltboost.proposals.propose"}),
    "glrm and paths": ("""
traced(jr.glrm.fit(X, y, linear_terms=True).model)
traced(jr.paths.fit(X, y, steps=2, method="local").model)
""", {"paths.local._descend"}),
    "drnet and exact lists": ("""
for learn, options in ((jr.drnet, {"iterations": 100}), (jr.exact_list, {"max_length": 1})):
    model = learn.fit(X, y, max_rules=2, **options).model
    jax.jit(jr.predict)(model, rows)
""", {"solvers.adam._chunk"}),
    "ltrnet": ("""
for target, training in ((y, "soft"), (three, "straight_through")):
    fit = jr.ltrnet.fit(X, target, max_rules=2, iterations=50, training=training)
    traced(fit.details.soft_model)
""", {"solvers.adam._chunk"}),
    "boosting and finetune": ("""
for target in (y, three):
    model = jr.boosting.fit(X, target, max_rules=2, linear_terms=True, engine="jax").model
    traced(model)
    traced(jr.finetune(model, X, target, iterations=30).model)
""", {"solvers.rule_search.ranking._rank", "solvers.adam._chunk"}),
}  # fmt: skip
PACKAGE = Path(jr.__file__).parent


def kernels() -> set[str]:
    """Module and name of every function of the package that JAX compiles."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                re.search(r"x64_kernel|jax\.jit", ast.unparse(one)) for one in node.decorator_list
            ):
                module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
                found.add(f"{module}.{node.name}")
    return found


def test_every_kernel_is_read() -> None:
    assert kernels() == {kernel for _, named in PROGRAMS.values() for kernel in named}


def products(folder: Path) -> list[tuple[str, str]]:
    """Program and line of each product of floats in the lowered programs of a folder."""
    kinds = re.compile(r"stablehlo\.(dot_general|dot|convolution)\b.*tensor<[^>]*f(8|16|32)")
    return [
        (path.name, line.strip())
        for path in sorted(folder.iterdir())
        for line in path.read_text("utf-8", "replace").splitlines()
        if kinds.search(line)
    ]


def solves(text: str) -> list[str]:
    """The lines of a lowered program that factorise a matrix or solve with it."""
    kinds = re.compile(r"stablehlo\.(cholesky|triangular_solve)|custom_call @\w*(lapack|solver)")
    return [line.strip() for line in text.splitlines() if kinds.search(line)]


@pytest.mark.parametrize("learner", PROGRAMS)
def test_products_of_float32_say_their_precision(learner: str, tmp_path: Path) -> None:
    program, named = PROGRAMS[learner]
    flags = os.environ.get("XLA_FLAGS", "")
    if jax.default_backend() == "cpu":  # what is read comes before
        flags += " --xla_backend_optimization_level=0"
    ran = subprocess.run(
        [sys.executable, "-c", PREFACE + program],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_DUMP_IR_TO": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    texts = [path.read_text("utf-8", "replace") for path in tmp_path.iterdir()]
    for kernel in named:
        name = kernel.rpartition(".")[2]
        assert any(re.search(rf"@(jit_)?{name}\b", text) for text in texts), kernel
    assert not [line for text in texts for line in solves(text) if "f32" in line]
    rounded = [
        (program, line)
        for program, line in products(tmp_path)
        if "f32" in line.split(" : (")[1].split(") ->")[0]
        and "precision = [HIGHEST, HIGHEST]" not in line
    ]
    assert not rounded


def test_the_reader_finds_a_product_without_precision(tmp_path: Path) -> None:
    """What the test above would say of plain products and of a solve in float32."""
    code = """
import jax, jax.numpy as jnp, numpy as np

def plain(a):
    solved = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(a), a)
    return a @ solved, jnp.einsum("ij,kj->ik", a, a), jnp.convolve(a[0], a[1])

jax.jit(plain)(np.eye(2, dtype=np.float32))
"""
    env = {**os.environ, "JAX_DUMP_IR_TO": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    found = products(tmp_path)
    assert len(found) == 3
    assert all("f32" in line and "HIGHEST" not in line for _, line in found)
    (path,) = tmp_path.iterdir()
    assert len([line for line in solves(path.read_text()) if "f32" in line]) >= 2
