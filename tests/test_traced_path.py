"""Paths of sparse linear models as one JAX program: the host's solutions, without its steps."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from test_placement import on_four_devices

import jaxrules as jr
from jaxrules.solvers.linear import sparse_glm, traced_path
from jaxrules.solvers.linear.penalties import L1
from jaxrules.solvers.linear.proximal_newton import Iterate, SecondOrderModel
from jaxrules.solvers.linear.quadratic import Quadratic
from jaxrules.tools.float64 import x64_kernel

Floats = Any
K = 12


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The host's Newton steps at every solution."""
    counts: list[int] = []
    solve = sparse_glm.SparseProblem.solve

    def counted(
        self: sparse_glm.SparseProblem, *args: Any, **options: Any
    ) -> sparse_glm.SparseSolution:
        solution = solve(self, *args, **options)
        counts.append(solution.iterations)
        return solution

    monkeypatch.setattr(sparse_glm.SparseProblem, "solve", counted)
    return counts


def data(seed: int, rows: int = 60) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    return X, 2 * (X[:, 0] > 0) + 1.5 * (X[:, 1] * X[:, 2] > 0) + rng.normal(size=rows)


def pool(X: Floats, y: Floats) -> jr.Conjunctions:
    rules = jr.extract_rules(
        jr.default_forest(X, y, classification=False, n_trees=6, seed=0), jr.as_table(X)
    )
    return rules.take(np.arange(min(len(rules), 40)))


minimum = x64_kernel(
    lambda hessian, linear, anchor, penalties, tolerance, signs: traced_path.minimum(
        SecondOrderModel(hessian, jnp.zeros(K), jnp.ones(())),
        Iterate(anchor, 0.0, linear, jnp.zeros(()), 0.0, 0.0, 0, True, False),
        L1(penalties, signs), tolerance,
    )
)  # fmt: skip


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3 * K), st.sampled_from([1e-4, 1e-8]))
def test_the_quadratic_subproblem_is_the_hosts(seed: int, rank: int, tolerance: float) -> None:
    """Columns without a penalty, and signs. The host completes what dependent columns leave
    unsolved.
    """
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(rank, K)) + 1.0
    hessian, linear = root.T @ root / rank, root.T @ rng.normal(size=rank)
    penalties = rng.uniform(0.05, 0.5, K) * (rng.random(K) < 0.9)
    signs = (rng.random((2, K)) < 0.8) | (penalties == 0)
    anchor = np.zeros(K)
    b = minimum(hessian, linear, anchor, penalties, tolerance, signs)
    quadratic = Quadratic(hessian, linear, anchor, L1(penalties, signs))
    violation = quadratic.penalty.violation(b, quadratic.gradient(b)).max()
    assert rank < 2 * K or violation <= 2 * tolerance

    def value(b: Floats) -> float:
        return float(linear @ b + b @ hessian @ b / 2 + penalties @ np.abs(b))

    best = quadratic.minimum(1e-13)
    bound = value(best) + violation * np.abs(b - best).sum()  # the function is convex
    assert value(b) <= min(bound, 0.0) + 1e-9


@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson"])
def test_a_path_is_the_hosts_and_takes_no_steps_of_it(loss: str, steps: list[int]) -> None:
    X, score = data(0)
    rules = pool(X, score)
    y = {
        "logistic": score > 1.5,
        "squared": 1e3 + score,
        "poisson": np.random.default_rng(1).poisson(np.exp(score / 2)),
    }[loss]
    weight = np.random.default_rng(2).uniform(0.0, 2.0, len(y)).round(1)
    common: dict[str, Any] = {"loss": loss, "rules": rules, "sample_weight": weight}
    found = jr.rulefit.path(X, y, **common, n_penalties=12, engine="jax")
    assert sum(steps) == 0
    expected = jr.rulefit.path(X, y, **common, n_penalties=12, engine="numpy", tolerance=1e-9)
    assert sum(steps) > 0
    for one, other in zip(found, expected, strict=True):
        assert (one.details["engine"], other.details["engine"]) == ("jax", "numpy")
        assert one.status == "converged"
        assert one.gap <= 1e-6  # relative to the objective above its floor for "poisson"
        assert one.objective == pytest.approx(other.objective, rel=1e-6)
        assert one.bound <= other.objective + 1e-12


def test_a_working_set_grows_with_the_support(
    steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, score = data(1)
    monkeypatch.setattr(traced_path, "_WIDTH", 4)
    monkeypatch.setattr(traced_path.TracedPath, "_width", 4)
    fits = jr.rulefit.path(X, score > 1.5, rules=pool(X, score), n_penalties=8, engine="jax")
    assert sum(steps) == 0
    assert jr.support(fits[-1].model) > 8
    assert {fit.status.value for fit in fits} == {"converged"}


def test_folds_and_classes_are_lanes_of_one_program(
    steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, score = data(2)
    lanes: list[int] = []
    solve = traced_path._chunk

    def counted(loss: Any, columns: Any, given: Any, *rest: Any, **options: Any) -> Any:
        lanes.append(len(given.weights))
        return solve(loss, columns, given, *rest, **options)

    monkeypatch.setattr(traced_path, "_chunk", counted)
    common: dict[str, Any] = {"rules": pool(X, score), "n_folds": 3, "one_standard_error": False}
    chosen = jr.rulefit.cross_validate(X, score > 1.5, **common, engine="jax")
    assert set(lanes) == {3, 1}  # the folds; then all rows
    assert sum(steps) == 0
    host = jr.rulefit.cross_validate(X, score > 1.5, **common, engine="numpy")
    np.testing.assert_allclose(
        chosen.details["cross_validation"].risks, host.details["cross_validation"].risks, rtol=0.1
    )
    lanes.clear()
    classes = np.digitize(score, [1.0, 2.0])
    common |= {"l1_penalty": 0.03, "multiclass": "one_vs_rest"}
    fit = jr.rulefit.fit(X, classes, **common, engine="jax")
    assert lanes == [3]
    other = jr.rulefit.fit(X, classes, **common, engine="numpy")
    assert fit.objective == pytest.approx(other.objective, rel=1e-6)


def test_linear_terms_signs_first_rules_and_starts() -> None:
    X, score = data(3)
    rules = pool(X, score)
    common: dict[str, Any] = {
        "rules": rules, "linear_terms": True, "monotone": {0: 1}, "first": rules.take([3]),
        "l1_penalty": 0.02, "tolerance": 1e-8,
    }  # fmt: skip
    fit = jr.rulefit.fit(X, score > 1.5, **common, engine="jax")
    other = jr.rulefit.fit(X, score > 1.5, **common, engine="numpy")
    assert fit.objective == pytest.approx(other.objective, rel=1e-7)
    assert fit.status == "converged"
    again = jr.rulefit.fit(X, score > 1.5, **common, engine="jax", start=other)
    assert again.objective == pytest.approx(other.objective, rel=1e-7)


def test_the_engine_is_numpy_on_a_cpu_and_refused_with_a_limit() -> None:
    X, score = data(4)
    rules = pool(X, score)
    fit = jr.rulefit.fit(X, score, l1_penalty=0.1, rules=rules)
    assert fit.details["engine"] == "numpy"
    with pytest.raises(ValueError, match=r'engine="jax" cannot be combined with time_limit'):
        jr.rulefit.path(X, score, rules=rules, engine="jax", time_limit=10)
    with pytest.raises(ValueError, match="engine must be"):
        jr.rulefit.fit(X, score, rules=rules, engine="gpu")  # type: ignore[arg-type]


def test_an_accelerator_takes_large_problems_without_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, score = data(0)
    monkeypatch.setattr(jr.ensembles.rulefit, "worth_an_accelerator", lambda entries: True)
    common: dict[str, Any] = {"l1_penalty": 0.1, "rules": pool(X, score)}
    assert jr.rulefit.fit(X, score, **common).details["engine"] == "jax"
    assert jr.rulefit.fit(X, score, **common, engine="numpy").details["engine"] == "numpy"
    assert jr.rulefit.fit(X, score, **common, time_limit=1e9).details["engine"] == "numpy"


def test_rows_over_devices() -> None:
    """The same objective, also where rows do not divide; no device holds all of the matrix."""
    one, *others, whole, part = on_four_devices(
        """
from jaxrules.solvers.linear import traced_path
rules = jr.extract_rules(jr.default_forest(X, y, n_trees=8, seed=0), jr.as_table(X))
solve, given = traced_path._chunk, {}
def kept(*args, **options):
    given.update(args=args, options=options)
    return solve(*args, **options)
traced_path._chunk = kept
def fitted(engine="auto"):
    return jr.rulefit.fit(
        X, y, l1_penalty=0.003, rules=rules, engine=engine, tolerance=1e-10).objective
found = [fitted("jax")]
for n in (2, 4):
    with jr.rows_over(mesh(n)):
        found.append(fitted())
k, rows = given["args"][1].shape
with jax.enable_x64(True):
    text = solve.jitted.lower(*given["args"], **given["options"]).compile().as_text()
print(json.dumps([*found, *(f"[{k},{n}]" in text for n in (rows, rows // 4))]))
"""
    )
    assert others == pytest.approx([one, one], rel=1e-9)
    assert part
    assert not whole
