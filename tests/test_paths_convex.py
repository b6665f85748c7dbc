"""Paths with logistic and Poisson costs: the proof against brute force over all sequences, bounds
of searches that are cut short, predictions, and where local improvement starts and ends.
"""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from path_oracles import brute_force, proved

import jaxrules as jr
from jaxrules import paths
from jaxrules.losses import logistic as logistic_loss
from jaxrules.losses import poisson, squared
from jaxrules.paths import convex, local, logistic
from jaxrules.paths.costs import LossCost
from jaxrules.paths.problem import PathProblem

LOSSES = {"logistic": logistic_loss, "poisson": poisson, "squared": squared}


def problem_of(seed: int, most: int = 3) -> tuple[LossCost, np.ndarray]:
    """A random problem of at most so many columns and steps: correlated or repeated columns,
    weights, an offset, a ridge, with and without intercept.
    """
    rng = np.random.default_rng(seed)
    n, d, steps = (
        int(rng.integers(12, 50)),
        int(rng.integers(1, most + 1)),
        int(rng.integers(1, most + 1)),
    )
    X = rng.normal(size=(n, d)) @ (np.eye(d) + rng.random())
    if rng.random() < 0.2:
        X[:, 0] = X[:, -1]
    name = ("logistic", "poisson", "squared")[seed % 3]
    score = X @ rng.normal(size=d)
    y = {
        "logistic": np.where(score + rng.logistic(size=n) > 0, 1.0, -1.0),
        "poisson": rng.poisson(np.exp(np.clip(score, -2, 2))).astype(float),
        "squared": score + rng.normal(size=n),
    }[name]
    if name == "logistic":
        y[:2] = 1.0, -1.0
    y[0] = max(y[0], 1.0)
    shares = rng.random(n)
    shares /= shares.sum()
    cost = LossCost(
        LOSSES[name], X, y, shares, float(rng.choice([0.0, 0.05])), bool(rng.random() < 0.7),
        offset=0.3 * rng.normal(size=n) * (rng.random() < 0.3),
        centre=rng.normal(size=d) * (rng.random() < 0.3),
        constant=float(-shares @ poisson.value(y, np.log(np.maximum(y, 1e-300))))
        if name == "poisson" else 0.0,
    )  # fmt: skip
    weights = (
        np.ones(steps), rng.random(steps) + 0.1, 2.0 ** np.arange(steps),
        (np.arange(steps) % 2 == (steps - 1) % 2).astype(float),  # every other step counts
    )  # fmt: skip
    return cost, weights[int(rng.integers(4))]


def check_proof(seed: int, most: int = 3) -> None:
    cost, weights = problem_of(seed, most)
    certificate, best = proved(cost, weights), brute_force(cost, weights)
    assert certificate.status == "optimal"
    rounding = 1e-8 * float(cost(np.zeros((1, cost.X.shape[1])))[0]) * weights.sum()
    assert certificate.objective == pytest.approx(best, rel=1e-7, abs=rounding)
    assert certificate.bound <= best + rounding


@pytest.mark.parametrize("seed", range(12))
def test_the_proof_is_brute_force(seed: int) -> None:
    check_proof(seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(12, 150))
def test_the_proof_is_brute_force_on_more_problems(seed: int) -> None:
    check_proof(seed, 4)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_a_search_cut_short_proves_a_bound(seed: int, looks: int) -> None:
    cost, weights = problem_of(seed)
    clock = itertools.count()
    certificate = proved(cost, weights, lambda: next(clock) >= looks)
    optimum = proved(cost, weights).objective
    rounding = 1e-8 * float(cost(np.zeros((1, cost.X.shape[1])))[0]) * weights.sum()
    assert certificate.bound <= optimum + rounding
    assert certificate.objective >= optimum - rounding


def test_bounds_of_single_problems_are_those_of_duality() -> None:
    """From every start the bound is below the least cost, and meets it at the end."""
    rng = np.random.default_rng(0)
    for seed in range(12):
        cost, weights = problem_of(seed)
        d, steps = cost.X.shape[1], len(weights)
        solver = convex._Solver(cost)  # the solver has no public name
        columns = rng.integers(0, d, (5, steps))
        found = solver.models(columns, np.tri(steps), weights, None, np.full(5, np.inf))
        for sequence, lower in zip(columns, found.lower, strict=True):
            best = float(weights @ cost(logistic.newton_path(cost, weights, sequence).models))
            assert lower <= best * (1 + 1e-10)
            assert lower == pytest.approx(best, rel=1e-8)
        x, u = (
            rng.normal(size=(2, 5, 1, steps)) * np.array([1.0, cost.intercept])[:, None, None, None]
        )
        value, bound, _ = solver._newton(columns, np.tri(steps), weights, x, u)
        assert (bound <= found.lower * (1 + 1e-9)).all()
        assert (value >= found.lower * (1 - 1e-9)).all()


def test_without_room_for_supports_the_proof_is_still_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convex, "MAX_SUPPORTS", 3)
    for seed in range(6):
        check_proof(seed)


def test_the_squared_cost_is_proved_alike() -> None:
    """The general search finds the optimum of the dedicated one."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 6)) + rng.normal(size=(60, 1))
    y = X @ rng.normal(size=6) + rng.normal(size=60)
    best = paths.fit(X, y, steps=4).objective
    cost = LossCost(squared, X - X.mean(axis=0), y - y.mean(), np.full(60, 1 / 60), 0.0, False)
    certificate = proved(cost, np.ones(4))
    assert certificate.objective == pytest.approx(best, rel=1e-7)
    assert certificate.bound == pytest.approx(best, rel=1e-7)


def test_more_columns_than_bits() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 70))
    fit = paths.fit(X, X[:, 3] + rng.logistic(size=80) > 0, steps=1, l2_penalty=0.1, restarts=2)
    assert fit.status == "optimal"
    assert (
        fit.model.features.tolist()
        == [paths.fit(X, X[:, 3], steps=1, restarts=2).model.features[0]]
        or fit.gap < 1e-7
    )


@pytest.fixture
def counts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(120, 4)) @ (np.eye(4) + 0.3)
    return X, rng.poisson(np.exp(0.5 + X @ [0.5, -0.4, 0.0, 0.1])).astype(float)


@pytest.mark.parametrize("method", ["exact", "local"])
def test_poisson_paths(method: Any, counts: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = counts
    fit = paths.fit(X, y, steps=3, cost="poisson", method=method)
    model = fit.model
    model.validate()
    means = np.asarray(jr.predict(model, X))
    np.testing.assert_allclose(means, np.exp(np.asarray(jr.decision_function(model, X))))
    from sklearn.metrics import mean_poisson_deviance

    assert model.costs[3] == pytest.approx(mean_poisson_deviance(y, means) / 2, rel=1e-9)
    assert means.mean() == pytest.approx(y.mean(), rel=1e-6)  # the best intercept
    assert jr.explain(model, X[:1])[0].prediction == pytest.approx(means[0])
    assert "log expected" in str(model)
    if method == "exact":
        assert fit.status == "optimal"
        assert fit.gap < 1e-7
    else:
        assert fit.bound is None
        best = paths.fit(X, y, steps=3, cost="poisson").objective
        assert best * (1 - 1e-7) <= fit.objective <= best * 1.01
    file = tmp_path / "path.json"
    jr.save(model, file)
    np.testing.assert_allclose(jr.predict(jr.load(file), X), means)


def test_the_last_model_of_a_long_poisson_path_is_that_of_scikit_learn(
    counts: tuple[np.ndarray, np.ndarray],
) -> None:
    from sklearn.linear_model import PoissonRegressor

    X, y = counts
    weights = np.append(np.full(5, 1e-6), 1.0)  # only the last model counts
    fit = paths.fit(X, y, steps=6, step_weights=weights, cost="poisson", time_limit=20)
    theirs = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(jr.predict(fit.model, X), theirs.predict(X), rtol=1e-3)


def test_counts_are_checked(counts: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = counts
    with pytest.raises(ValueError, match="y must be non-negative"):
        paths.fit(X, y - 1, steps=2, cost="poisson")
    with pytest.raises(ValueError, match="no positive count"):
        paths.fit(X, 0 * y, steps=2, cost="poisson")
    with pytest.raises(ValueError, match="is for two classes"):
        paths.fit(X, y, steps=2, cost="poisson", positive=1)
    path = paths.fit(X, y > 1, steps=1).model
    with pytest.raises(ValueError, match="'log' is for numbers"):
        dataclasses.replace(path, link="log")


# Where local improvement starts and ends (appendix C)


def test_local_improvement_starts_at_the_given_sequence(rng: np.random.Generator) -> None:
    """The paper's algorithm with q = 1 and one iteration changes at most one index of i0."""
    X = rng.normal(size=(80, 6)) + rng.normal(size=(80, 1))
    y = X @ rng.normal(size=6) + rng.normal(size=80)
    once: dict[str, Any] = {"method": "local", "steps": 5, "restarts": 0, "batch": 1}
    first = [0, 0, 1, 1, 2]
    fit = paths.fit(X, y, iterations=1, first_sequence=first, **once)
    objectives = [fit.objective]
    problem = problem_along(X, y, 5)
    start = problem.objective(problem.along(np.array(first)))
    greedy = paths.fit(X, y, iterations=1, **once)
    assert fit.objective <= start
    # The greedy path is known before, so that no start can make a fit worse than it.
    if fit.objective < greedy.history[0].objective - 1e-9:
        assert (fit.model.features != first).sum() <= 1
    for iterations in (3, 30, None):
        objectives.append(
            paths.fit(X, y, iterations=iterations, first_sequence=first, **once).objective
        )
    assert (np.diff(objectives) <= 1e-12).all()
    names = paths.fit(X, y, first_sequence=[f"x{j}" for j in first], iterations=1, **once)
    assert names.objective == fit.objective


def problem_along(X: np.ndarray, y: np.ndarray, steps: int) -> PathProblem:
    centred = X - X.mean(axis=0)
    cost = LossCost(squared, centred, y - y.mean(), np.full(len(y), 1 / len(y)), 0.0, False)
    return PathProblem(cost.quadratic(np.zeros(X.shape[1])), np.ones(steps))


def test_iterations_limit_the_descent(rng: np.random.Generator) -> None:
    """After T choices of one step, the sequence differs from i0 in at most T indices."""
    X = rng.normal(size=(80, 6)) + rng.normal(size=(80, 1))
    problem = problem_along(X, X @ rng.normal(size=6) + rng.normal(size=80), 6)
    start = np.full((1, 6), 5)
    values = []
    for iterations in (1, 2, 3, 10, None):
        found = local.improve(
            problem.cost, problem.step_weights, start, batch=1, iterations=iterations
        )
        if iterations is not None:
            assert (found != start).sum() <= iterations
        values.append(problem.objective(problem.along(found[0])))
    assert (np.diff(values) <= 1e-12).all()
    assert values[0] < problem.objective(problem.along(start[0]))


@pytest.mark.parametrize("cost", ["squared", "logistic"])
def test_a_first_sequence_is_a_start_of_every_method(cost: Any, rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 4))
    y = X @ [1.0, 0.5, 0.0, 0.0] + rng.logistic(size=60)
    target: Any = y if cost == "squared" else y > 0
    best = paths.fit(X, target, steps=3)
    for method in ("exact", "local"):
        fit = paths.fit(
            X, target, steps=3, method=method, first_sequence=best.model.features, restarts=0,
            iterations=1, forbidden=[],
        )  # fmt: skip
        assert fit.objective == pytest.approx(best.objective, rel=1e-6)
    shorter = paths.path(X, target, steps=3, first_sequence=[0, 1, 2], restarts=0)
    assert len(shorter) == 3
