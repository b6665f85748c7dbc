"""Paths of linear models of several classes: the softmax cost, its proof against brute force and
other solvers, the logistic cost as the case of two classes, and everything that reads such paths.
"""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from path_oracles import brute_force, check_quadratic, proved
from scipy.optimize import minimize
from scipy.special import logsumexp

import jaxrules as jr
from jaxrules import paths
from jaxrules.losses import logistic as logistic_loss
from jaxrules.paths import local
from jaxrules.paths.costs import LossCost, SoftmaxCost, softmax_cost
from jaxrules.paths.problem import PathProblem


def drawn(seed: int, classes: int | None = None, most: int = 3) -> tuple[SoftmaxCost, np.ndarray]:
    """A random cost of changes, and step weights: correlated columns, weights, a ridge, a start."""
    rng = np.random.default_rng(seed)
    n, d, steps = (int(rng.integers(*ends)) for ends in ((15, 50), (1, most + 1), (1, most + 1)))
    k = classes or int(rng.integers(3, 6))
    X = rng.normal(size=(n, d)) @ (np.eye(d) + rng.random())
    codes = np.argmax(X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k)), axis=1)
    codes[:k] = range(k)
    shares = rng.random(n)
    penalty = float(rng.choice([0.0, 0.03]))
    cost = softmax_cost(X, codes, k, shares / shares.sum(), penalty, bool(rng.random() < 0.7))
    if seed % 4 == 1:
        cost = cost.around(0.3 * rng.normal(size=cost.n_coefficients))
    weights = (np.ones(steps), rng.random(steps) + 0.1, 2.0 ** np.arange(steps))
    return cost, weights[seed % 3]


def classes_of(rng: np.random.Generator, n: int = 60, d: int = 3) -> tuple[Any, Any, Any]:
    """Columns, labels and codes of three classes."""
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    codes = np.argmax(X @ rng.normal(size=(d, 3)) + rng.gumbel(size=(n, 3)), axis=1)
    return X, np.array(["low", "mid", "top"])[codes], codes


def test_the_cost_and_its_quadratic_model(rng: np.random.Generator) -> None:
    X, _, codes = classes_of(rng)
    shares = rng.random(60)
    shares /= shares.sum()
    for intercept in (False, True):
        cost = softmax_cost(X, codes, 3, shares, 0.05, intercept)
        np.testing.assert_allclose(cost.basis.T @ cost.basis, np.eye(2), atol=1e-15)

        def value(b: np.ndarray, cost: SoftmaxCost = cost) -> float:
            rows = cost.by_class(b.reshape(3, 2))
            np.testing.assert_allclose(cost.in_basis(rows), b, rtol=1e-12)

            def losses(u: np.ndarray) -> float:
                scores = X @ rows + u
                lost = logsumexp(scores, axis=1) - scores[np.arange(60), codes]
                return float(shares @ lost + 0.1 * (rows**2).sum())

            return float(
                minimize(losses, np.zeros(3), tol=1e-12).fun
                if cost.intercept
                else losses(np.zeros(3))
            )

        check_quadratic(cost, value, rng, (0.02, 0.005), 24)


@pytest.mark.parametrize("seed", range(9))
def test_the_proof_is_brute_force(seed: int) -> None:
    cost, weights = drawn(seed)
    certificate, best = proved(cost, weights), brute_force(cost, weights)
    assert certificate.status == "optimal"
    assert certificate.objective == pytest.approx(best, rel=1e-7)
    assert certificate.bound <= best * (1 + 1e-10)


@settings(max_examples=8)
@given(st.integers(0, 1000), st.integers(1, 30))
def test_a_search_cut_short_proves_a_bound(seed: int, looks: int) -> None:
    cost, weights = drawn(seed, most=2)
    clock = itertools.count()
    certificate = proved(cost, weights, lambda: next(clock) >= looks)
    optimum = brute_force(cost, weights)
    assert certificate.bound <= optimum * (1 + 1e-9)
    assert certificate.objective >= optimum * (1 - 1e-9)


def test_brute_force_by_another_solver(rng: np.random.Generator) -> None:
    """All sequences of two steps, the changes and intercepts of each by SciPy."""
    X, labels, codes = classes_of(rng)
    fit = paths.fit(X, labels, steps=2, step_weights=[1.0, 0.5], l2_penalty=0.02)

    def objective(numbers: np.ndarray, sequence: tuple[int, int]) -> float:
        changes, intercepts = numbers.reshape(2, 2, 3)
        rows, total = np.zeros((3, 3)), 0.0
        for weight, j, change, u in zip((1.0, 0.5), sequence, changes, intercepts, strict=True):
            rows[j] += change
            scores = X @ rows + u
            lost = (logsumexp(scores, axis=1) - scores[np.arange(60), codes]).mean()
            total += weight * (lost + 2 * 0.02 * float((rows**2).sum()))
        return total

    best = min(
        minimize(objective, np.zeros(12), (sequence,), tol=1e-11).fun
        for sequence in itertools.product(range(3), repeat=2)
    )
    assert fit.status == "optimal"
    assert fit.objective == pytest.approx(best, rel=1e-6)
    assert fit.bound == pytest.approx(best, rel=1e-6)


def test_the_last_model_is_that_of_cvxpy(rng: np.random.Generator) -> None:
    import cvxpy as cp

    X, labels, codes = classes_of(rng)
    weights = np.array([1e-9, 1e-9, 1.0])  # only the last model counts
    fit = paths.fit(X, labels, steps=3, step_weights=weights, l2_penalty=0.01)
    B, u = cp.Variable((3, 3)), cp.Variable((1, 3))
    scores = X @ B + np.ones((60, 1)) @ u
    own = cp.sum(cp.multiply(np.eye(3)[codes], scores)) / 60
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.log_sum_exp(scores, axis=1)) / 60 - own + 0.02 * cp.sum_squares(B))
    )
    problem.solve(solver="CLARABEL")
    assert fit.model.costs[-1] == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(fit.model.models[-1], B.value, atol=1e-3)


@pytest.mark.parametrize("seed", [0, 2, 3, 6])
def test_two_classes_are_the_logistic_cost(seed: int) -> None:
    cost, weights = drawn(seed, classes=2)
    binary = LossCost(
        logistic_loss, cost.X, cost.y[:, 1], cost.shares, cost.l2_penalty / 2, cost.intercept
    )
    ours, theirs = proved(cost, weights), proved(binary, weights)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)
    assert ours.bound == pytest.approx(theirs.bound, rel=1e-7)
    assert ours.solution.features.tolist() == theirs.solution.features.tolist()
    changes = cost.by_class(ours.solution.models[..., None])
    np.testing.assert_allclose(changes[..., 1], theirs.solution.models / 2, atol=1e-6)
    np.testing.assert_allclose(changes[..., 0], -changes[..., 1])


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_local_improvement_compares_all_candidates(batch: int) -> None:
    cost, _ = drawn(5, most=4)
    weights = np.array([1.0, 0.5, 2.0])
    problem = PathProblem(cost.quadratic(np.zeros(cost.n_coefficients)), weights, width=cost.width)
    d = problem.n_features
    every = np.array(list(itertools.product(range(d), repeat=3)))
    values = [problem.objective(problem.along(one)) for one in every]
    for start in every[:: max(len(every) // 5, 1)]:
        found = local.improve(problem.cost, weights, start[None], batch=batch, width=cost.width)[0]
        reached = problem.objective(problem.along(found))
        near = (every != found).sum(axis=1) <= batch
        assert reached <= np.min(np.array(values)[near]) * (1 + 1e-9)


def test_paths_by_class(rng: np.random.Generator, tmp_path: Path) -> None:
    X, labels, codes = classes_of(rng, 80)
    fit = paths.fit(X, labels, steps=3, standardise=True, l2_penalty=0.001)
    path = fit.model
    path.validate()
    assert path.link == "softmax"
    assert path.models.shape == (4, 3, 3)
    np.testing.assert_allclose(path.models.sum(axis=2), 0.0, atol=1e-12)
    assert path.values.shape == (3, 3)
    for step in range(4):
        proba = np.asarray(jr.predict_proba(path, X, step=step))
        np.testing.assert_allclose(proba.mean(axis=0), np.bincount(codes) / 80, atol=1e-9)
        ridge = 2 * 0.001 * (path.models[step] ** 2).sum()
        lost = -np.log(proba[np.arange(80), codes]).mean()
        assert path.costs[step] == pytest.approx(lost + ridge, rel=1e-9)
    scores = np.asarray(jr.decision_function(path, X))
    assert scores.shape == (80, 3)
    assert (jr.predict(path, X) == np.array(["low", "mid", "top"])[scores.argmax(axis=1)]).all()
    told = jr.explain(path, X[:2])[1]
    np.testing.assert_allclose(told.score, scores[1])
    np.testing.assert_allclose(sum(part.weight for part in told.parts), scores[1])
    assert told.prediction == jr.predict(path, X)[1]
    assert told.runner_up in {"low", "mid", "top"} - {told.prediction}

    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(path.scores)(jax.numpy.asarray(X)), scores)
        codes_of = jax.jit(lambda rows: jr.predict(path, rows))(jax.numpy.asarray(X))
        np.testing.assert_array_equal(codes_of, scores.argmax(axis=1))
        traced = jax.jit(lambda rows: jr.predict_proba(path, rows))(jax.numpy.asarray(X))
        np.testing.assert_allclose(traced, jr.predict_proba(path, X))
    file = tmp_path / "path.json"
    jr.save(path, file)
    np.testing.assert_array_equal(jr.predict_proba(jr.load(file), X), jr.predict_proba(path, X))


def test_tables_have_a_number_per_class(rng: np.random.Generator) -> None:
    X, labels, _ = classes_of(rng)
    first = paths.fit(X, labels, steps=2, l2_penalty=0.05).model
    path = paths.fit(X, labels, steps=2, start=first, l2_penalty=0.05).model
    np.testing.assert_allclose(path.models[0], first.models[-1], atol=1e-12)
    assert path.costs[0] == pytest.approx(first.costs[-1])
    heading, rows = path.table()
    assert heading == ("", "", "low", "mid", "top", "cost")
    at_start = int(first.models[-1].any(axis=1).sum())
    assert [row[0] for row in rows] == ["b0", *[""] * (at_start - 1), "b1", "b2"]
    assert [row[1] for row in rows[at_start:]] == [path.names[j] for j in path.features]
    assert rows[-1][2] == f"{path.values[-1, 0]:.4g}"
    assert all(row[-1] for row in rows if row[0])
    assert "low" in str(path)
    assert "<td" in path._repr_html_()
    latex = jr.to_latex(path)
    assert r"\begin{tabular}{llrrrr}" in latex
    assert latex.count(r"\beta") == 3


def test_a_start_is_shifted_to_the_sum_of_zero(rng: np.random.Generator) -> None:
    X, labels, _ = classes_of(rng)
    rows = rng.normal(size=(3, 3))
    given = [
        paths.fit(X, labels, steps=2, start=start, l2_penalty=0.05)
        for start in (
            rows,
            rows + rng.normal(size=(3, 1)),
            {f"x{j}": row for j, row in enumerate(rows)},
        )
    ]
    for fit in given:
        np.testing.assert_allclose(
            fit.model.models[0], rows - rows.mean(axis=1, keepdims=True), atol=1e-12
        )
        assert fit.objective == pytest.approx(given[0].objective, rel=1e-9)


def test_paths_of_all_lengths_and_their_choice(rng: np.random.Generator) -> None:
    X, labels, codes = classes_of(rng, 120)
    labels = labels.astype(object)
    options: dict[str, Any] = {"l2_penalty": 0.01, "method": "local", "restarts": 2}
    found = paths.path(X, labels, steps=3, **options)
    assert [len(fit.model) for fit in found] == [1, 2, 3]
    chosen = paths.cross_validate(X, labels, steps=2, n_folds=3, **options)
    steps = chosen.details.cross_validation.setting["steps"]
    again = paths.fit(X, labels, steps=steps, **options)
    assert chosen.objective == pytest.approx(again.objective, rel=1e-9)
    assert paths.fit(X, codes, steps=1, **options).read_as.startswith("3 classes: 0, 1, 2")


def test_what_reads_paths_reads_those_by_class(rng: np.random.Generator) -> None:
    X, labels, _ = classes_of(rng)
    path = paths.fit(X, labels, steps=2, method="local", restarts=1, l2_penalty=0.01).model
    assert jr.accuracy(path, X, labels) > 0.4
    spread = X.std(axis=0) * np.abs(path.slopes()).mean(axis=1)
    found = [one.value for one in jr.feature_importance(path, X)]
    np.testing.assert_allclose(found, spread / spread.sum())
    with pytest.raises(ValueError, match="single score, not one per class"):
        jr.local_importance(path, X, X[:1])
    with pytest.raises(ValueError, match="a score per class"):
        jr.plots.coefficient_path(path)
    compared = jr.compare(X, labels, methods=["paths"], folds=2)
    assert compared.rows[0].risk is not None


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"end": np.zeros((3, 3))}, ValueError, '"softmax" cannot be combined with end'),
        ({"lower": 0.0}, ValueError, '"softmax" cannot be combined with lower or upper'),
        ({"integer_steps": "any"}, ValueError, "cannot be combined with integer_steps"),
        ({"method": "mip"}, ValueError, 'cannot be combined with method="mip"'),
        ({"positive": "low"}, ValueError, "positive='low' is for two classes"),
        ({"start": np.zeros(3)}, ValueError, r"one per class .* got shape \(3,\)"),
        ({"start": np.zeros((3, 2))}, ValueError, "one per class"),
        ({"start": {"x0": 1.0}}, ValueError, r"start\['x0'\] must be 3 numbers, one per class"),
        ({"start": {"x9": [1.0, 0.0, 0.0]}}, ValueError, "start names 'x9'"),
        ({"start": np.full((3, 3), np.nan)}, ValueError, "start has NaN"),
        ({"cost": "logistic"}, ValueError, 'y has 3 classes.*use cost="softmax"'),
        ({"cost": "squared"}, TypeError, "text labels"),
        ({"cost": "multinomial"}, ValueError, "cost must be"),
        ({"y": ["low"] * 60}, ValueError, "only one class"),
        ({"y": ["low", "top"] * 30}, ValueError, 'two classes.*use cost="logistic"'),
        ({"y": [np.nan, 1.0, 2.0] * 20}, ValueError, "missing values"),
        ({"y": ["low", "mid", "top"] * 19}, ValueError, "rows"),
        ({"y": [["low", "mid", "top"]] * 60}, ValueError, "y must"),
        ({"sample_weight": "without top"}, ValueError, r"every row of the classes \['top'\]"),
        ({"first_sequence": [0]}, ValueError, "must have 2 columns"),
    ],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], match: str) -> None:
    X, labels, _ = classes_of(np.random.default_rng(0))
    options = {"y": labels, "steps": 2, "cost": "softmax"} | change
    if "sample_weight" in change:
        options["sample_weight"] = (labels != "top").astype(float)
    with pytest.raises(error, match=match):
        paths.fit(X, **options)


def test_models_are_checked(rng: np.random.Generator) -> None:
    X, labels, _ = classes_of(rng)
    path = paths.fit(X, labels, steps=2, method="local", restarts=1, l2_penalty=0.01).model
    with pytest.raises(ValueError, match="the link 'softmax' is for more than two classes"):
        dataclasses.replace(path, link="identity")
    with pytest.raises(ValueError, match=r"intercepts must have shape \(3, 3\)"):
        dataclasses.replace(path, intercepts=path.intercepts[:, :2])
    moved = path.models.copy()
    moved[1:, (path.features[0] + 1) % 3, 1] += 1.0
    with pytest.raises(ValueError, match="a step changes more than its own coefficient"):
        dataclasses.replace(path, models=moved)
    others = np.where(labels == "low", "less", labels)
    with pytest.raises(ValueError, match="start has the classes .* but y has"):
        paths.fit(X, others, steps=1, start=path)
    with pytest.raises(ValueError, match="start must have 3 values"):
        paths.fit(X, labels == "low", steps=1, start=path)
    for squared in (paths.pareto, paths.greedy, paths.direct, paths.lasso_sequence):
        with pytest.raises(TypeError, match="text labels"):
            squared(X, labels)


def test_separable_classes_do_not_fail() -> None:
    x = np.linspace(-1, 1, 30)
    X, codes = np.column_stack([x, x**2]), np.digitize(x, [-0.3, 0.3])
    fit = paths.fit(X, codes, steps=2, time_limit=20)
    assert np.isfinite(fit.model.models).all()
    assert fit.objective < 1.0
    assert fit.bound is not None
    assert fit.bound <= fit.objective
