"""Corrective refits of counts, against scikit-learn and a general solver; losses that
certificates cannot take.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize

import jaxrules as jr
from jaxrules.losses import Loss, loss_by_name, poisson
from jaxrules.solvers.linear.refit import refit_weights


def counts(seed: int, rules: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.random((120, rules)) < rng.uniform(0.2, 0.8, rules)
    return (
        rows,
        rng.poisson(np.exp(rows @ rng.normal(size=rules))).astype(float),
        rng.uniform(0.1, 3, 120),
    )


def objective(
    point: np.ndarray, rows: np.ndarray, y: np.ndarray, weight: np.ndarray, l2_penalty: float
) -> float:
    score = point[-1] + rows @ point[:-1]
    return (
        float(weight @ (np.exp(score) - y * score) + l2_penalty / 2 * point[:-1] @ point[:-1])
        / weight.sum()
    )


@pytest.mark.parametrize("l2_penalty", [0.0, 0.5, 30.0])
def test_a_refit_of_counts_equals_poisson_regressor(l2_penalty: float) -> None:
    """Their penalty is also halved, but relative to the mean loss: their alpha is ours divided by
    the sum of the weights.
    """
    from sklearn.linear_model import PoissonRegressor

    rows, y, weight = counts(0)
    theirs = PoissonRegressor(
        alpha=l2_penalty / weight.sum(), tol=1e-12, max_iter=10_000, solver="newton-cholesky"
    )
    theirs.fit(rows.astype(float), y, sample_weight=weight)
    weights, intercept = refit_weights(
        poisson,
        y,
        rows,
        l2_penalty=l2_penalty,
        intercept=True,
        sample_weight=weight,
        start=(np.zeros(5), 0.0),
    )
    ours = objective(np.append(weights, intercept), rows, y, weight, l2_penalty)
    best = objective(np.append(theirs.coef_, theirs.intercept_), rows, y, weight, l2_penalty)
    assert ours == pytest.approx(best, rel=1e-9)
    np.testing.assert_allclose(weights, theirs.coef_, atol=1e-5)
    assert intercept == pytest.approx(theirs.intercept_, abs=1e-5)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(-6, 6))
def test_a_refit_of_counts_never_raises_the_objective(seed: int, away: float) -> None:
    """Step by step, from starts where a full Newton step overshoots, down to the minimum of a
    general solver.
    """
    rows, y, weight = counts(seed)
    point = np.append(away * np.random.default_rng(seed).normal(size=5), 0.0)
    for _ in range(100):
        before = objective(point, rows, y, weight, 1.0)
        weights, intercept = refit_weights(
            poisson, y, rows, l2_penalty=1.0, intercept=True, sample_weight=weight,
            start=(point[:-1], point[-1]), max_steps=1,
        )  # fmt: skip
        point = np.append(weights, intercept)
        assert objective(point, rows, y, weight, 1.0) <= before + 1e-12 * abs(before)
    oracle = minimize(objective, np.zeros(6), args=(rows, y, weight, 1.0), tol=1e-12)
    assert objective(point, rows, y, weight, 1.0) == pytest.approx(oracle.fun, rel=1e-6, abs=1e-8)


X = np.random.default_rng(1).normal(size=(300, 2)).round(1)
C, TABLE = jr.Condition, jr.as_table(X)
RULES = jr.Conjunctions.build(
    TABLE.schema, [[C.above(0, 0.0)], [C.above(1, 0.5)], [C.above(0, 0.0), C.above(1, 0.5)]]
)


def test_rules_of_counts_without_penalty_equal_poisson_regressor() -> None:
    from sklearn.linear_model import PoissonRegressor

    y = np.random.default_rng(2).poisson(np.exp(1 + (X[:, 0] > 0) - (X[:, 1] > 0.5)))
    columns = RULES.satisfied(TABLE).astype(float)
    fit = jr.rulefit.fit(X, y, loss="poisson", rules=RULES, l1_penalty=0.0, tolerance=1e-9)
    theirs = PoissonRegressor(alpha=0, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(
        columns, y
    )
    mean = theirs.predict(columns)
    assert fit.objective == pytest.approx(np.mean(mean - y * np.log(mean)), rel=1e-6)
    assert fit.bound is not None
    assert fit.bound <= fit.objective
    np.testing.assert_allclose(jr.predict(fit.model, X), mean, rtol=1e-4)


@pytest.mark.parametrize("width", [0.05, 1e-3])
def test_a_refit_with_a_narrow_kink_reaches_the_minimum(width: float) -> None:
    cvxpy = pytest.importorskip("cvxpy")
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows, rules = int(rng.integers(4, 16)), int(rng.integers(1, 4))
        features, y = rng.random((rows, rules)) < 0.5, rng.integers(-3, 7, rows).astype(float)
        weight, offset = rng.integers(1, 4, rows).astype(float), 2.0 * rng.normal(size=rows)
        level, signs = float(rng.choice([0.1, 0.5, 0.9])), rng.integers(-1, 2, rules)
        loss = jr.losses.quantile(level, width=width)
        weights, intercept = refit_weights(
            loss, y, features, l2_penalty=0.1, intercept=True, sample_weight=weight,
            start=(np.zeros(rules), 0.0), offset=offset, signs=signs,
        )  # fmt: skip
        reached = weight @ loss.value(y, features @ weights + intercept + offset)
        b, b0 = cvxpy.Variable(rules), cvxpy.Variable()
        z = (y - (features.astype(float) @ b + b0 + offset)) / width
        least = weight @ (width * ((level - 1) * z + cvxpy.logistic(z)))
        problem = cvxpy.Problem(
            cvxpy.Minimize(least + 0.05 * cvxpy.sum_squares(b)), [cvxpy.multiply(signs, b) >= 0]
        )
        problem.solve(solver="CLARABEL")
        assert reached + 0.05 * weights @ weights <= problem.value * (1 + 1e-6)


def test_rulefit_takes_a_loss_of_ones_own_with_a_conjugate() -> None:
    y = X[:, 0] + (X[:, 1] > 0.5)
    half = Loss(
        "half",
        value=lambda y, score: (y - score) ** 2 / 2,
        gradient=lambda y, score: score - y,
        curvature=lambda y, score: 1.0 + 0 * score,
        conjugate=lambda y, dual: dual * y + dual**2 / 2,
    )
    own = jr.rulefit.fit(X, y, loss=half, rules=RULES, l1_penalty=0.01)
    squared = jr.rulefit.fit(X, y, loss="squared", rules=RULES, l1_penalty=0.02)
    assert own.objective == pytest.approx(squared.objective / 2, rel=1e-5)


@pytest.mark.parametrize("learner", [jr.rulefit.fit, jr.glrm.fit])
def test_a_loss_without_a_conjugate_is_named(learner) -> None:
    with pytest.raises(
        ValueError,
        match="has no conjugate; the certificate of .* needs one; use 'squared', 'logistic'",
    ):
        learner(X, X[:, 0], loss=lambda y, score: (y - score) ** 4)


@pytest.mark.parametrize("name", ["squared", "logistic", "exponential", "poisson"])
@pytest.mark.parametrize("signed", [False, True])
def test_rows_of_equal_rules_are_merged_and_nothing_else_changes(name: str, signed: bool) -> None:
    """Numbers instead of booleans are never merged."""
    rng = np.random.default_rng(4)
    rows = rng.random((1500, 6)) < 0.5
    score = rows @ rng.normal(size=6) + rng.normal(size=1500)
    y = {"squared": score, "poisson": rng.poisson(np.exp(score)).astype(float)}.get(
        name, np.sign(score)
    )
    arguments = {
        "l2_penalty": 2.0,
        "intercept": True,
        "sample_weight": rng.integers(3, size=1500).astype(float),
        "start": (np.zeros(6), 0.0),
        "offset": np.zeros(1500),
        "signs": np.array([1, 1, 0, 0, -1, -1]) if signed else None,
    }
    merged, whole = (
        refit_weights(loss_by_name(name), y, features, **arguments)
        for features in (rows, rows.astype(float))
    )
    np.testing.assert_allclose(merged[0], whole[0], atol=1e-6)
    assert merged[1] == pytest.approx(whole[1], abs=1e-6)


@pytest.mark.parametrize("name", ["logistic", "poisson", "exponential", "squared"])
@settings(max_examples=20)
@given(away=st.floats(-60, 60), seed=st.integers(0, 3))
def test_a_refit_does_not_depend_on_its_start(name: str, away: float, seed: int) -> None:
    """Where all scores are far from the target, curvature and slopes vanish."""
    rows, y, weight = counts(seed, 2)
    y = np.where(y > np.median(y), 1.0, -1.0) if name in ("logistic", "exponential") else y
    given: dict[str, Any] = {"l2_penalty": 0.1, "intercept": True, "sample_weight": weight}
    (w, b), (w0, b0) = (
        refit_weights(loss_by_name(name), y, rows, start=start, **given)
        for start in ((np.full(2, away / 10), away), (np.zeros(2), 0.0))
    )
    np.testing.assert_allclose([*w, b], [*w0, b0], rtol=1e-5, atol=1e-6)
