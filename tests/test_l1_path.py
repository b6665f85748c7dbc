"""Sparse separators by support size, and Newton's method: against scikit-learn, SciPy and
the optimality conditions.
"""

import warnings
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from compiling import compilations
from jaxrules.ensembles.lltboost.l1_path import EVENT, FLOOR, TOLERANCE, Separators, l1_path
from jaxrules.losses import loss_by_name
from jaxrules.solvers.linear.newton import newton
from jaxrules.tools.float64 import x64_kernel

Floats = NDArray[np.float64]

_path = x64_kernel(l1_path, static=("sizes",))
_newton = x64_kernel(newton, static=("loss",))


def problem(
    seed: int, n: int = 80, d: int = 6, noise: float = 1.0
) -> tuple[Floats, Floats, Floats]:
    """Correlated columns of unit scale, row weights of sum one (some 0), targets of -1 and +1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = rng.random(n) * (rng.random(n) < 0.8)
    target = np.where(X[:, 0] - X[:, 1] + noise * rng.normal(size=n) > 0.3, 1.0, -1.0)
    return X, weights / weights.sum(), target


def path_of(
    X: Floats,
    weights: Floats,
    target: Floats,
    sizes: int = 4,
    sides: NDArray[np.int_] | None = None,
) -> Separators:
    return _path(np.ascontiguousarray(X.T), weights, target, sizes=sizes, sides=sides)


def objective(
    X: Floats, weights: Floats, target: Floats, penalty: float, w: Floats, b: float
) -> float:
    return float(weights @ np.logaddexp(0, -target * (X @ w + b)) + penalty * np.abs(w).sum())


def slopes(X: Floats, weights: Floats, target: Floats, w: Floats, b: float) -> tuple[Floats, float]:
    rows = -weights * target / (1 + np.exp(np.minimum(target * (X @ w + b), 700)))
    return X.T @ rows, float(rows.sum())


def check(
    path: Separators,
    X: Floats,
    weights: Floats,
    target: Floats,
    sides: NDArray[np.int_] | None = None,
) -> None:
    """Every solution has its size, meets the optimality conditions, and is the last of
    its size before an event.
    """
    sides = np.zeros(X.shape[1], int) if sides is None else sides
    for s in range(len(path.found)):
        w, b, penalty = path.coefficients[s], path.intercepts[s], path.penalties[s]
        if not path.found[s]:
            assert not w.any()
            continue
        assert np.count_nonzero(w) == s + 1
        slope, intercept_slope = slopes(X, weights, target, w, b)
        assert np.abs(slope + penalty * np.sign(w))[w != 0].max() <= 1.01 * TOLERANCE * penalty
        assert abs(intercept_slope) <= 1.01 * TOLERANCE * penalty
        assert (sides * w >= 0).all()
        outside = np.where(sides * slope > 0, 0, np.abs(slope))[w == 0]
        assert (outside <= (1 + 3 * EVENT) * penalty).all()
        enters = outside.size > 0 and outside.max() >= (1 - 5 * EVENT) * penalty
        leaves = np.abs(w[w != 0]).min() < 1e-2
        assert enters or leaves or penalty <= 1.001 * FLOOR * path.largest_penalty


def test_scikit_learn_finds_the_same_solutions() -> None:
    for seed, n, d in ((0, 60, 4), (2, 40, 20)):
        X, weights, target = problem(seed, n, d, noise=2.0)
        path = path_of(X, weights, target)
        check(path, X, weights, target)
        used = weights > 0
        for s in np.flatnonzero(path.found):
            saga = LogisticRegression(
                l1_ratio=1, C=1 / path.penalties[s], solver="saga", tol=1e-10, max_iter=20000
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                saga.fit(X[used], target[used], sample_weight=weights[used])
            theirs = objective(
                X, weights, target, path.penalties[s], saga.coef_[0], saga.intercept_[0]
            )
            ours = objective(
                X, weights, target, path.penalties[s], path.coefficients[s], path.intercepts[s]
            )
            assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    sides=st.lists(st.integers(-1, 1), min_size=6, max_size=6),
    repeated=st.booleans(),
    rounded=st.booleans(),
)
def test_a_general_solver_finds_the_same_solutions_within_signs(
    seed: int, sides: list[int], repeated: bool, rounded: bool
) -> None:
    X, weights, target = problem(seed, noise=2.0)
    bound = np.array(sides)
    if rounded:
        X = np.round(2 * X) / 2
    if repeated:
        X[:, 5] = -X[:, 0]
    path = path_of(X, weights, target, sides=bound)
    check(path, X, weights, target, bound)
    share = weights[target > 0].sum()
    slope, _ = slopes(X, weights, target, np.zeros(6), np.log(share / (1 - share)))
    pulls = np.where(bound * slope > 0, 0, np.abs(slope))
    assert path.largest_penalty == pytest.approx(pulls.max(), rel=1e-9, abs=1e-15)
    assert path.found.any() or rounded or repeated or pulls.max() < 1e-9
    parts = np.hstack([X, -X])  # coefficients as differences of two that are not negative
    ends = [
        (0.0, 0.0 if forbidden else None) for forbidden in np.concatenate([bound < 0, bound > 0])
    ]
    for s in np.flatnonzero(path.found):
        penalty = path.penalties[s]

        def penalised(at: Floats, penalty: Any = penalty) -> Any:
            slope, free = slopes(parts, weights, target, at[:-1], at[-1])
            return objective(parts, weights, target, penalty, at[:-1], at[-1]), np.append(
                slope + penalty, free
            )

        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 50_000}
        best = minimize(
            penalised, np.zeros(13), jac=True, bounds=[*ends, (None, None)], options=options
        )
        ours = objective(X, weights, target, penalty, path.coefficients[s], path.intercepts[s])
        assert ours <= best.fun * (1 + 1e-6)  # theirs may end early where columns are repeated


def test_sides_that_bind_nothing_change_nothing() -> None:
    X, weights, target = problem(1)
    free = path_of(X, weights, target)
    for sides in (
        np.zeros(6, int),
        np.sign(free.coefficients[-1]).astype(int),
    ):  # no coefficient changes its sign here
        for ours, theirs in zip(path_of(X, weights, target, sides=sides), free, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_the_largest_penalty_is_exact() -> None:
    X, weights, target = problem(3)
    share = weights[target > 0].sum()
    constant = np.log(share / (1 - share))
    slope, _ = slopes(X, weights, target, np.zeros(X.shape[1]), constant)
    path = path_of(X, weights, target)
    assert path.largest_penalty == pytest.approx(np.abs(slope).max(), rel=1e-12)
    assert (path.penalties[path.found] < path.largest_penalty).all()


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    noise=st.sampled_from([0.0, 0.3, 3.0]),
    rounded=st.booleans(),
    repeated=st.sampled_from(["no", "column", "negative", "constant", "sum"]),
)
def test_solutions_are_optimal_whatever_the_data(
    seed: int, noise: float, rounded: bool, repeated: str
) -> None:
    X, weights, target = problem(seed, noise=noise)
    if rounded:
        X = np.round(2 * X) / 2
    last = {
        "column": X[:, 0],
        "negative": -X[:, 0],
        "constant": np.zeros(len(X)),
        "sum": (X[:, 0] + X[:, 1]) / 2,
    }
    if repeated != "no":
        X = np.column_stack([X[:, :-1], last[repeated]])
    path = path_of(X, weights, target)
    check(path, X, weights, target)
    assert path.found[0] or rounded
    assert np.isfinite(path.coefficients).all()


def test_separable_classes_stay_finite() -> None:
    X, weights, _ = problem(4)
    target = np.where(X[:, 2] > 0.1, 1.0, -1.0)
    path = path_of(X, weights, target)
    check(path, X, weights, target)
    assert path.found[0]
    assert np.abs(path.coefficients).max() < 100
    assert ((X @ path.coefficients[0] + path.intercepts[0] > 0) == (target > 0))[weights > 0].all()


def test_columns_that_enter_together_skip_a_size() -> None:
    signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    X, target = np.repeat(signs, 3, axis=0), np.array([1.0, 1, 1, 1, 1, -1, 1, 1, -1, -1, -1, -1])
    path = path_of(X, np.full(12, 1 / 12), target, sizes=2)
    assert path.found.tolist() == [False, True]
    assert path.coefficients[1, 0] == pytest.approx(path.coefficients[1, 1])


@pytest.mark.parametrize("what", ["one class", "no weights", "constant columns"])
def test_nothing_to_separate(what: str) -> None:
    X, weights, target = problem(5)
    if what == "one class":
        target = np.ones(len(X))
    elif what == "no weights":
        weights = np.zeros(len(X))
    else:
        X = np.zeros_like(X)
    path = path_of(X, weights, target)
    assert not path.found.any()
    assert path.steps == 0
    assert not path.coefficients.any()


def test_a_batch_is_its_problems_and_compiles_once() -> None:
    problems = [problem(seed) for seed in (6, 7, 8)]
    X = problems[0][0]
    weights, targets = (np.stack([p[i] for p in problems]) for i in (1, 2))
    batch = x64_kernel(lambda X, w, t: jax.vmap(lambda w, t: l1_path(X, w, t, sizes=4))(w, t))
    together = batch(np.ascontiguousarray(X.T), weights, targets)
    for k in range(3):
        alone = path_of(X, weights[k], targets[k])
        np.testing.assert_allclose(together.coefficients[k], alone.coefficients, atol=1e-5)
    with compilations() as compiled:
        path_of(X, weights[1], targets[0])
    assert compiled == []


# Newton's method


def targets_of(loss: str, score: Floats, rng: np.random.Generator) -> Floats:
    if loss == "squared":
        return score + rng.normal(size=len(score))
    if loss == "poisson":
        return rng.poisson(np.exp(score)).astype(float)
    return np.where(score + rng.logistic(size=len(score)) > 0, 1.0, -1.0)


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "exponential"])
@pytest.mark.parametrize("start", [0.0, 8.0])
def test_newton_finds_scipys_minimum(loss: str, start: float) -> None:
    rng = np.random.default_rng(0)
    columns = np.vstack([np.ones(90), (rng.random((5, 90)) < 0.4).astype(float)])
    target = targets_of(loss, np.array([0.2, 1, -1, 0.5, 0, 0.3]) @ columns, rng)
    weights, penalties = rng.random(90) / 45, np.array([0, 0.01, 0.01, 0.01, 0.01, 0.01])
    chosen = loss_by_name(loss)

    def risk(b: Floats) -> Any:
        return weights @ chosen.value(target, b @ columns) + penalties @ b**2 / 2

    def gradient(b: Floats) -> Any:
        return columns @ (weights * chosen.gradient(target, b @ columns)) + penalties * b

    theirs = minimize(risk, np.zeros(6), jac=gradient, method="BFGS", options={"gtol": 1e-9})
    ours = _newton(chosen, columns, target, weights, penalties, np.full(6, start))
    assert risk(ours) == pytest.approx(theirs.fun, rel=1e-9)
    np.testing.assert_allclose(ours, theirs.x, atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "exponential"])
@pytest.mark.parametrize("seed", range(4))
def test_newton_finds_scipys_minimum_within_signs(loss: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = np.vstack([np.ones(90), (rng.random((6, 90)) < 0.4).astype(float)])
    columns[6] = columns[1] * columns[2]  # correlated: that one is bound moves the others
    target = targets_of(loss, np.append(0.2, rng.normal(size=6)) @ columns, rng)
    weights, penalties = rng.random(90) / 45, np.array([0, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01])
    signs, chosen = np.append(0, rng.integers(-1, 2, 6)), loss_by_name(loss)

    def risk(b: Floats) -> Any:
        score = b @ columns
        slope = columns @ (weights * chosen.gradient(target, score)) + penalties * b
        return weights @ chosen.value(target, score) + penalties @ b**2 / 2, slope

    ends = [(0.0 if sign > 0 else None, 0.0 if sign < 0 else None) for sign in signs]
    theirs = minimize(
        risk, np.zeros(7), jac=True, bounds=ends, options={"ftol": 1e-15, "gtol": 1e-10}
    )
    ours = _newton(chosen, columns, target, weights, penalties, 2.0 * signs, signs=signs)
    assert (signs * ours >= 0).all()
    assert risk(ours)[0] == pytest.approx(theirs.fun, rel=1e-9)


def test_newton_shares_between_repeated_columns_and_ignores_rows_without_weight() -> None:
    rng = np.random.default_rng(1)
    half = (rng.random(40) < 0.5).astype(float)
    columns, target = np.vstack([np.ones(40), half, half, np.zeros(40)]), rng.normal(size=40)
    weights = np.where(np.arange(40) < 30, 1 / 30, 0)
    target[30:] = 1e9
    b = _newton(loss_by_name("squared"), columns, target, weights, np.zeros(4), np.zeros(4))
    kept = half[:30] > 0
    assert b[0] == pytest.approx(target[:30][~kept].mean(), abs=1e-6)
    assert b[:3].sum() == pytest.approx(target[:30][kept].mean(), abs=1e-6)
    assert b[1] == pytest.approx(b[2])
    assert b[3] == 0
