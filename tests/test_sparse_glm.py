"""The sparse generalised linear model solver against scikit-learn, skglm, its own
conditions and brute force.
"""

from __future__ import annotations

import itertools
import warnings

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import expit, xlogy

from compiling import compilations
from jaxrules import losses
from jaxrules.solvers.linear import bit_columns, on_host
from jaxrules.solvers.linear import sparse_glm as glm
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.solvers.linear.design import Design
from jaxrules.solvers.linear.penalties import L1
from jaxrules.solvers.linear.proximal_newton import NewtonData, project_out
from jaxrules.solvers.linear.quadratic import Quadratic
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Deadline, Run

LOSSES = ("logistic", "squared")
ALL = (*LOSSES, "exponential", "poisson")
KINDS = ("binary", "real")
SEEDS = st.integers(0, 2**32 - 1)


def data(
    kind: str, loss: str, seed: int, rows: int = 60, columns: int = 12
) -> tuple[np.ndarray, np.ndarray]:
    """A problem with signal."""
    rng = np.random.default_rng(seed)
    X = (
        rng.random((rows, columns)) < rng.uniform(0.2, 0.8, columns)
        if kind == "binary"
        else rng.normal(size=(rows, columns))
    )
    score = X[:, :3] @ np.array([2.0, -1.5, 1.0])[: min(3, columns)] + rng.normal(size=rows)
    score -= score.mean()
    if loss == "poisson":
        return X, rng.poisson(np.exp(score / 2)).astype(float)
    return X, score if loss == "squared" else np.where(score > 0, 1.0, -1.0)


LOSS = {  # values and derivatives
    "squared": lambda y, f: ((y - f) ** 2, 2 * (f - y)),
    "logistic": lambda y, f: (np.logaddexp(0, f) - (y + 1) / 2 * f, expit(f) - (y + 1) / 2),
    "exponential": lambda y, f: (np.exp(-y * f), -y * np.exp(-y * f)),
    "poisson": lambda y, f: (np.exp(f) - y * f, np.exp(f) - y),
}


def optimality(X, y, solution, loss, weight=None, factors=None) -> tuple[float, float, float]:
    """Objective, largest violation of the optimality conditions, and slope of the
    intercept, in plain NumPy.
    """
    X = np.asarray(X, np.float64)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
    weight = weight / weight.sum()
    penalties = solution.penalty * (np.ones(X.shape[1]) if factors is None else np.asarray(factors))
    b = solution.coefficients
    score = solution.intercept + X @ b
    values, slopes = LOSS[loss](np.asarray(y), score)
    slope = X.T @ (weight * slopes)
    violation = np.where(
        b != 0, np.abs(slope + penalties * np.sign(b)), np.maximum(np.abs(slope) - penalties, 0)
    )
    objective = weight @ values + penalties @ np.abs(b)
    return objective, violation.max(initial=0.0), abs(weight @ slopes)


# Oracles


@pytest.mark.parametrize("kind", KINDS)
def test_logistic_equals_saga(kind: str) -> None:
    from sklearn.linear_model import LogisticRegression

    X, y = data(kind, "logistic", 1)
    penalty = 0.02
    ours = glm.solve(X, y, penalty, loss="logistic", tolerance=1e-10)
    saga = LogisticRegression(
        C=1 / (len(y) * penalty), l1_ratio=1, solver="saga", tol=1e-12, max_iter=200_000
    )
    theirs = saga.fit(X, y)
    assert ours.converged
    np.testing.assert_allclose(ours.coefficients, theirs.coef_[0], atol=1e-6)
    assert ours.intercept == pytest.approx(theirs.intercept_[0], abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_squared_equals_lasso(kind: str, intercept: bool) -> None:
    from sklearn.linear_model import Lasso

    X, y = data(kind, "squared", 2)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    ours = glm.solve(
        X, y, 0.1, loss="squared", sample_weight=weight, intercept=intercept, tolerance=1e-10
    )
    theirs = Lasso(alpha=0.05, fit_intercept=intercept, tol=1e-12, max_iter=100_000)
    theirs.fit(X.astype(float), y, sample_weight=weight)
    np.testing.assert_allclose(ours.coefficients, theirs.coef_, atol=1e-6)
    assert ours.intercept == pytest.approx(theirs.intercept_, abs=1e-6)


@pytest.mark.parametrize("loss", [pytest.param("logistic", marks=pytest.mark.slow), "squared"])
def test_equals_skglm(loss: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skglm import Lasso, SparseLogisticRegression

        X, y = data("real", loss, 3)
        ours = glm.solve(X, y, 0.05, loss=loss, tolerance=1e-10)
        if loss == "squared":
            theirs = Lasso(alpha=0.025, tol=1e-10, max_iter=1000).fit(X, y)
        else:
            theirs = SparseLogisticRegression(alpha=0.05, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coefficients, np.ravel(theirs.coef_), atol=1e-6)
    assert ours.intercept == pytest.approx(float(np.squeeze(theirs.intercept_)), abs=1e-6)


@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("kind", KINDS)
def test_brute_force_over_signs_finds_nothing_better(kind: str, loss: str) -> None:
    """Every orthant is a smooth problem with bounds; L-BFGS-B solves it."""
    from scipy.optimize import minimize

    X, y = data(kind, loss, 4, rows=30, columns=3)
    ours = glm.solve(X, y, 0.05, loss=loss, tolerance=1e-10)

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        score = v[0] + X @ v[1:]
        values, slopes = LOSS[loss](y, score)
        slope = np.append(slopes.mean(), X.T @ slopes / len(y) + 0.05 * np.array(signs))
        return values.mean() + 0.05 * np.abs(v[1:]).sum(), slope

    best = np.inf
    for signs in itertools.product([-1, 1], repeat=3):
        bounds = [(None, None)] + [(0, None) if s > 0 else (None, 0) for s in signs]
        fit = minimize(objective, np.zeros(4), jac=True, bounds=bounds, tol=1e-14)
        best = min(best, fit.fun)
    assert ours.objective == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_poisson_without_penalty_equals_poisson_regressor(scale: float) -> None:
    """Their objective, half the deviance, is ours less a constant."""
    from sklearn.linear_model import PoissonRegressor

    X, y = data("real", "poisson", 33, columns=5)
    y, weight = np.floor(scale * y), np.random.default_rng(0).uniform(0.1, 3, len(y))
    theirs = PoissonRegressor(alpha=0, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(X, y, sample_weight=weight)
    ours = glm.solve(X, y, 0.0, loss="poisson", sample_weight=weight, tolerance=1e-10)
    assert ours.converged
    share, score = weight / weight.sum(), theirs.intercept_ + X @ theirs.coef_
    assert ours.objective == pytest.approx(share @ LOSS["poisson"](y, score)[0], rel=1e-9)
    np.testing.assert_allclose(ours.coefficients, theirs.coef_, atol=1e-5)
    deviance = share @ LOSS["poisson"](y, ours.intercept + X @ ours.coefficients)[0] - share @ (
        y - xlogy(y, y)
    )
    assert 1 - 2 * deviance / _null_deviance(y, share) == pytest.approx(
        theirs.score(X, y, weight), rel=1e-6
    )


def _null_deviance(y: np.ndarray, share: np.ndarray) -> float:
    return 2 * float(share @ (xlogy(y, y) - y * np.log(share @ y)))


# Certificates, properties


@settings(max_examples=30)
@given(
    SEEDS,
    st.sampled_from(KINDS),
    st.sampled_from(["exponential", "poisson"]),
    st.floats(-6, 6),
    st.floats(-4, -1),
)
def test_the_objective_never_rises(
    seed: int, kind: str, loss: str, away: float, exponent: float
) -> None:
    """Losses without a bound on their curvature, from starts far away, one
    Newton step after the other.
    """
    X, y = data(kind, loss, seed)
    solution: tuple | glm.SparseSolution = (
        away * np.random.default_rng(seed).normal(size=X.shape[1]),
        away,
    )
    before = np.inf
    for _ in range(60):
        solution = glm.solve(
            X, y, 10**exponent, loss=loss, start=solution, max_iterations=1, tolerance=1e-9
        )
        assert solution.objective <= before + 1e-12 * abs(before)
        before = solution.objective
        if solution.converged:
            break
    assert solution.objective == pytest.approx(
        glm.solve(X, y, 10**exponent, loss=loss).objective, rel=1e-4, abs=1e-6
    )


def test_any_loss_with_a_conjugate() -> None:
    """Half the squared loss, as a user would define it; without the conjugate the solver says what
    is missing.
    """
    X, y = data("binary", "squared", 34)
    half = losses.Loss(
        "half",
        value=lambda y, score: (y - score) ** 2 / 2,
        gradient=lambda y, score: score - y,
        curvature=lambda y, score: 1.0 + 0 * score,
        conjugate=lambda y, dual: dual * y + dual**2 / 2,
    )
    apart = Design.of(X, inverse=np.arange(len(y)))
    solution = glm.solve(apart, y, 0.05, loss=half, tolerance=1e-9)
    assert solution.converged
    assert solution.objective == pytest.approx(
        glm.solve(X, y, 0.1, loss="squared").objective / 2, rel=1e-6
    )
    with pytest.raises(ValueError, match="loss 'half' is not mergeable"):
        glm.solve(np.repeat(X, 2, axis=0), np.repeat(y, 2), 0.05, loss=half)
    nameless = losses.custom(lambda y, score: (y - score) ** 4)
    with pytest.raises(
        ValueError, match="has no conjugate; the certificate of a sparse linear model needs one"
    ):
        glm.solve(X, y, 0.05, loss=nameless)


@settings(max_examples=60)
@given(SEEDS, st.sampled_from(KINDS), st.sampled_from(ALL), st.floats(-4, 0.2))
def test_conditions_objective_and_bound_hold_independently(
    seed: int, kind: str, loss: str, exponent: float
) -> None:
    X, y = data(kind, loss, seed, columns=1 + seed % 40)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 4, len(y)) * rng.random()
    factors = rng.integers(0, 3, X.shape[1]) + 0.5
    if loss in ("logistic", "exponential") and not abs(weight @ y) < weight.sum():
        return
    options = {"loss": loss, "sample_weight": weight, "penalty_factors": factors}
    penalty = glm.SparseProblem.of(X, y, **options).max_penalty() * 10**exponent
    solution = glm.solve(X, y, penalty, tolerance=1e-9, **options)
    objective, violation, intercept_slope = optimality(X, y, solution, loss, weight, factors)
    assert solution.converged
    assert solution.objective == pytest.approx(objective, rel=1e-10)
    assert violation <= 1e-4 * penalty * factors.max() + 1e-12
    assert solution.kkt_residual == pytest.approx(violation, rel=1e-3, abs=1e-12)
    assert intercept_slope < 1e-12 * max(1.0, y.max())
    least = (
        (weight / weight.sum()) @ (y - xlogy(y, y)) if loss == "poisson" else 0.0
    )  # of every row by itself
    assert 0 <= solution.gap <= 1e-9 * (objective - min(least, 0.0)) + 1e-15


@settings(max_examples=30)
@given(SEEDS, st.sampled_from(KINDS), st.sampled_from(ALL))
def test_objective_is_never_above_that_of_perturbed_points(seed: int, kind: str, loss: str) -> None:
    X, y = data(kind, loss, seed)
    rng = np.random.default_rng(seed)
    penalty = 10 ** rng.uniform(-4, -1)
    solution = glm.solve(X, y, penalty, loss=loss)
    for size in (1e-4, 1e-2, 1.0):
        moved = glm.SparseSolution(
            solution.coefficients
            + size * rng.normal(size=X.shape[1]) * rng.integers(0, 2, X.shape[1]),
            solution.intercept + size * rng.normal(),
            penalty,
            0.0,
            0.0,
            0.0,
            0,
            Status.CONVERGED,
        )
        objective = optimality(X, y, moved, loss)[0]
        assert solution.bound <= objective + 1e-12 * abs(objective)


@settings(max_examples=30)
@given(SEEDS, st.sampled_from(KINDS), st.sampled_from(LOSSES))
def test_max_penalty_is_where_the_first_coefficient_enters(seed: int, kind: str, loss: str) -> None:
    X, y = data(kind, loss, seed)
    factors = np.random.default_rng(seed).uniform(0.5, 2, X.shape[1])
    largest = glm.SparseProblem.of(X, y, loss=loss, penalty_factors=factors).max_penalty()
    for penalty, empty in ((largest * 1.5, True), (largest, True), (largest * 0.99, False)):
        solution = glm.solve(X, y, penalty, loss=loss, penalty_factors=factors)
        assert (len(solution.support) == 0) == empty
    constant = glm.solve(X, y, largest, loss=loss, penalty_factors=factors).intercept
    share = (1 + y.mean()) / 2
    assert constant == pytest.approx(y.mean() if loss == "squared" else np.log(share / (1 - share)))


@settings(max_examples=20)
@given(SEEDS, st.sampled_from(KINDS), st.sampled_from(LOSSES))
def test_integer_weights_equal_repeated_rows_and_zero_weights_equal_absent_rows(
    seed: int, kind: str, loss: str
) -> None:
    X, y = data(kind, loss, seed, rows=30)
    weight = np.random.default_rng(seed).integers(0, 4, len(y))
    if loss == "logistic" and not abs(weight @ y) < weight.sum():
        return
    weighted = glm.solve(X, y, 0.03, loss=loss, sample_weight=weight, tolerance=1e-10)
    repeated = glm.solve(
        np.repeat(X, weight, 0), np.repeat(y, weight), 0.03, loss=loss, tolerance=1e-10
    )
    absent = glm.solve(
        X[weight > 0],
        y[weight > 0],
        0.03,
        loss=loss,
        sample_weight=weight[weight > 0],
        tolerance=1e-10,
    )
    for other in (repeated, absent):
        assert other.objective == pytest.approx(weighted.objective, rel=1e-9)
        np.testing.assert_allclose(
            other.intercept + X @ other.coefficients,
            weighted.intercept + X @ weighted.coefficients,
            atol=2e-4,
        )


@settings(max_examples=20)
@given(SEEDS, st.sampled_from(LOSSES))
def test_permuted_columns_permute_the_solution(seed: int, loss: str) -> None:
    X, y = data("real", loss, seed)
    order = np.random.default_rng(seed).permutation(X.shape[1])
    plain = glm.solve(X, y, 0.05, loss=loss, tolerance=1e-10)
    permuted = glm.solve(X[:, order], y, 0.05, loss=loss, tolerance=1e-10)
    np.testing.assert_allclose(permuted.coefficients, plain.coefficients[order], atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_merged_rows_give_the_same_objective(loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((500, 4)) < 0.5
    y = np.where(rng.random(500) < 0.3 + 0.4 * X[:, 0], 1.0, -1.0)
    assert Design.of(X).n_patterns <= 16
    solution = glm.solve(X, y, 0.01, loss=loss, tolerance=1e-10)
    objective, violation, _ = optimality(X, y, solution, loss)
    assert solution.objective == pytest.approx(objective, rel=1e-12)
    assert violation < 1e-9


def test_logistic_targets_may_be_means() -> None:
    """A row with a mean target and a weight stands for that many rows of both classes."""
    X, y = data("binary", "logistic", 5)
    patterns, inverse = np.unique(X, axis=0, return_inverse=True)
    count, total = np.bincount(inverse), np.bincount(inverse, y)
    merged = glm.solve(patterns, total / count, 0.01, loss="logistic", sample_weight=count)
    assert merged.objective == pytest.approx(
        glm.solve(X, y, 0.01, loss="logistic").objective, rel=1e-6
    )


@pytest.mark.parametrize("loss", ["logistic", pytest.param("squared", marks=pytest.mark.slow)])
def test_working_sets_reach_the_optimum_of_many_correlated_columns(loss: str) -> None:
    rng = np.random.default_rng(6)
    base = rng.random((300, 40)) < 0.4
    pairs = rng.integers(0, 40, (140, 2))
    X = np.hstack([base, base[:, pairs[:, 0]] & base[:, pairs[:, 1]]])
    score = X[:, :60] @ rng.normal(size=60) + rng.normal(size=300)
    y = np.where(score > np.median(score), 1.0, -1.0) if loss == "logistic" else score
    penalty = 0.01 * glm.SparseProblem.of(X, y, loss=loss).max_penalty()
    solution = glm.solve(X, y, penalty, loss=loss, tolerance=1e-9)
    assert solution.converged
    assert len(solution.support) > 64
    objective, violation, _ = optimality(X, y, solution, loss)
    assert objective == pytest.approx(solution.objective, rel=1e-11)
    assert violation < 1e-4 * penalty


# Degenerate cases


@pytest.mark.parametrize("loss", LOSSES)
def test_constant_and_duplicated_columns(loss: str) -> None:
    X, y = data("real", loss, 7, columns=6)
    plain = glm.solve(X, y, 0.02, loss=loss, tolerance=1e-10)
    extended = np.column_stack([X, np.full(len(y), 0.1), np.zeros(len(y)), X[:, 0], X[:, 1]])
    solution = glm.solve(extended, y, 0.02, loss=loss, tolerance=1e-10)
    assert solution.objective == pytest.approx(plain.objective, rel=1e-9)
    np.testing.assert_array_equal(solution.coefficients[6:8], 0.0)


def test_shifted_and_scaled_columns_change_nothing_but_units() -> None:
    X, y = data("real", "logistic", 8, columns=6)
    scale, shift = 10.0 ** np.arange(-3, 3), 10.0 ** np.arange(5, -1, -1)
    plain = glm.solve(X, y, 0.02, loss="logistic", tolerance=1e-9)
    other = glm.solve(
        X * scale + shift, y, 0.02, loss="logistic", penalty_factors=scale, tolerance=1e-9
    )
    np.testing.assert_allclose(other.coefficients * scale, plain.coefficients, atol=1e-6)
    assert other.objective == pytest.approx(plain.objective, rel=1e-8)


def test_a_far_mean_of_the_target_costs_no_digits() -> None:
    X, y = data("real", "squared", 8, columns=6)
    y = np.round(y, 3)
    plain = glm.solve(X, y, 0.02, loss="squared", tolerance=1e-9)
    other = glm.solve(X, y + 2.0**24, 0.02, loss="squared", tolerance=1e-9)
    np.testing.assert_allclose(other.coefficients, plain.coefficients, atol=1e-7)
    assert other.intercept - 2.0**24 == pytest.approx(plain.intercept, abs=1e-7)
    assert other.objective == pytest.approx(plain.objective, rel=1e-7)


@pytest.mark.parametrize("penalty", [1e-4, 1e-8, 0.0])
def test_separable_classes_have_finite_coefficients(penalty: float) -> None:
    X = np.linspace(-1, 1, 20)[:, None]
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    solution = glm.solve(X, y, penalty, loss="logistic")
    assert solution.converged
    assert np.isfinite(solution.coefficients).all()
    assert 0 < solution.coefficients[0] < 1e4


def test_without_penalty_squared_is_least_squares() -> None:
    X, y = data("real", "squared", 9, columns=5)
    solution = glm.solve(X, y, 0.0, loss="squared", tolerance=1e-9)
    expected = np.linalg.lstsq(np.column_stack([np.ones(len(y)), X]), y)[0]
    np.testing.assert_allclose(
        np.append(solution.intercept, solution.coefficients), expected, atol=1e-8
    )


def test_without_penalty_logistic_is_maximum_likelihood() -> None:
    X, y = data("real", "logistic", 10, columns=3)
    y[:10] = -y[:10]  # not separable
    solution = glm.solve(X, y, 0.0, loss="logistic", tolerance=1e-9)
    assert solution.converged
    assert optimality(X, y, solution, "logistic")[1] < 1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", [1e-3, 0.0])
def test_more_columns_than_rows(loss: str, penalty: float) -> None:
    X, y = data("real", loss, 11, rows=8, columns=30)
    y[0] = -y[0]
    solution = glm.solve(X, y, penalty, loss=loss)
    assert solution.converged
    assert np.isfinite(solution.coefficients).all()


def test_a_single_row() -> None:
    solution = glm.solve([[1.0, 2.0]], [3.0], 0.1, loss="squared")
    np.testing.assert_array_equal(solution.coefficients, 0.0)
    assert solution.intercept == 3.0
    solution = glm.solve([[1.0, 2.0]], [3.0], 0.4, loss="squared", intercept=False)
    np.testing.assert_allclose(solution.coefficients, [0.0, 1.45])  # 2 (2b - 3) 2 + 0.4 = 0


def test_no_columns() -> None:
    solution = glm.solve(np.zeros((4, 0)), [-1, 1, 1, 1], 0.1, loss="logistic")
    assert solution.converged
    assert solution.intercept == pytest.approx(np.log(3))
    assert glm.SparseProblem.of(np.zeros((4, 0)), [-1, 1, 1, 1], "logistic").max_penalty() == 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_without_penalty(loss: str) -> None:
    X, y = data("real", loss, 12)
    y[:10] = -y[:10]
    factors = np.where(np.arange(12) < 2, 0.0, 1.0)
    largest = glm.SparseProblem.of(X, y, loss=loss, penalty_factors=factors).max_penalty()
    null = glm.solve(X, y, largest, loss=loss, penalty_factors=factors)
    np.testing.assert_array_equal(null.support, [0, 1])
    assert optimality(X[:, :2], y, glm.solve(X[:, :2], y, 0.0, loss=loss, tolerance=1e-9), loss)[
        0
    ] == pytest.approx(null.objective, rel=1e-7)
    solution = glm.solve(X, y, largest / 10, loss=loss, penalty_factors=factors, tolerance=1e-9)
    assert solution.converged
    assert optimality(X, y, solution, loss, factors=factors)[1] < 1e-6


# Designs, starts


def test_a_tuple_of_matrices_stands_side_by_side() -> None:
    X, y = data("binary", "logistic", 13)
    Z = data("real", "logistic", 14, columns=3)[0]
    whole = glm.solve(np.hstack([X, Z]), y, 0.02, loss="logistic", tolerance=1e-9)
    blocks = glm.solve((X, Z), y, 0.02, loss="logistic", tolerance=1e-9)
    np.testing.assert_allclose(blocks.coefficients, whole.coefficients, atol=1e-7)
    both = glm.solve((X, X[:, :2]), y, 0.02, loss="logistic")
    assert both.objective == pytest.approx(
        glm.solve(X, y, 0.02, loss="logistic").objective, rel=1e-6
    )


def test_a_design_serves_many_fits() -> None:
    X, y = data("binary", "logistic", 15)
    design = Design.of(X)
    assert Design.of(design) is design
    assert design.n_rows == len(y)
    fold = np.arange(len(y)) % 3 != 0
    by_weight = glm.solve(design, y, 0.02, loss="logistic", sample_weight=fold)
    by_rows = glm.solve(X[fold], y[fold], 0.02, loss="logistic")
    assert by_weight.objective == pytest.approx(by_rows.objective, rel=1e-6)


def test_a_start_at_the_solution_takes_no_step() -> None:
    X, y = data("real", "logistic", 16)
    first = glm.solve(X, y, 0.02, loss="logistic")
    assert first.iterations > 0
    for start in (first, (first.coefficients, first.intercept)):
        again = glm.solve(X, y, 0.02, loss="logistic", start=start)
        assert again.iterations == 0
        assert again.objective == pytest.approx(first.objective, rel=1e-12)


def test_equal_input_gives_equal_output() -> None:
    X, y = data("binary", "logistic", 17)
    first, second = (glm.solve(X, y, 0.01, loss="logistic") for _ in range(2))
    np.testing.assert_array_equal(first.coefficients, second.coefficients)


# The path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ALL)
def test_a_path_equals_single_solves(kind: str, loss: str) -> None:
    """A problem keeps products of columns from one penalty to the next."""
    X, y = data(kind, loss, 18)
    problem, solution = glm.SparseProblem.of(X, y, loss), None
    largest = problem.max_penalty()
    for penalty in largest * np.geomspace(1, 1e-2, 8):
        solution = problem.solve(penalty, start=solution, tolerance=1e-9)
        assert (len(solution.support) == 0) == (penalty == largest)
        single = glm.solve(X, y, penalty, loss=loss, tolerance=1e-9)
        assert solution.objective == pytest.approx(single.objective, rel=1e-8)
        np.testing.assert_allclose(solution.coefficients, single.coefficients, atol=1e-4)


# The quadratic model


@settings(max_examples=30)
@given(SEEDS, st.floats(-6, 0))
def test_quadratic_models_with_nearly_collinear_columns(seed: int, exponent: float) -> None:
    """Nested intervals, where coordinate descent alone takes thousands of sweeps."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.random(24))
    A = rng.random((200, 1)) < cuts[None, :]
    H = np.cov(A.T.astype(float)) + 1e-9 * np.eye(24)
    target = rng.normal(size=200).cumsum()
    slope = -(A.T - A.mean(axis=0)[:, None]) @ target / 200
    penalties = np.full(24, np.abs(slope).max() * 10**exponent)
    tolerance = 1e-6 * penalties[0]
    b = Quadratic(H, slope, np.zeros(24), L1(penalties)).minimum(tolerance)
    gradient = slope + H @ b
    violation = np.where(
        b != 0, np.abs(gradient + penalties * np.sign(b)), np.abs(gradient) - penalties
    )
    assert violation.max() <= tolerance + 1e-12 * np.abs(slope).max()


# Limits, compilation


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ALL)
def test_nothing_is_compiled(kind: str, loss: str) -> None:
    X, y = data(kind, loss, 26)
    with compilations() as compiled:
        glm.solve(X, y, 0.01, loss=loss, penalty_factors=np.arange(X.shape[1]) >= 2)
    assert compiled == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_deadline_returns_the_best_so_far(kind: str) -> None:
    X, y = data(kind, "logistic", 29)
    for ticks in range(12):  # wherever the time ends, what was found so far is certified
        short = Deadline(ticks, clock=map(float, itertools.count()).__next__)
        early = glm.solve(X, y, 0.01, loss="logistic", run=Run("test", short))
        assert early.objective == pytest.approx(optimality(X, y, early, "logistic")[0])
        assert early.bound <= early.objective
    at_once = glm.solve(X, y, 0.01, loss="logistic", run=Run("test", 0.0))
    assert at_once.status is Status.TIME_LIMIT
    assert not at_once.converged
    assert at_once.objective == pytest.approx(optimality(X, y, at_once, "logistic")[0])
    best = glm.solve(X, y, 0.01, loss="logistic").objective
    assert at_once.bound <= best <= at_once.objective


@pytest.mark.parametrize("loss", [losses.quantile(0.9, width=0.01), losses.absolute(width=0.05)])
def test_a_narrow_kink(loss: losses.Loss) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 4, (8, 4)) / 2.0, rng.integers(-3, 7, 8).astype(float)
        found = glm.solve(
            X, y, 0.02, loss=loss, sample_weight=rng.integers(1, 4, 8),
            penalty_factors=[0.0, 1.0, 1.0, 1.0],
        )  # fmt: skip
        assert found.converged
        assert found.gap <= 1e-6 * found.objective


def test_iteration_limit() -> None:
    X, y = data("real", "logistic", 30)
    solution = glm.solve(X, y, 0.001, loss="logistic", max_iterations=1)
    assert solution.status is Status.MAX_ITERATIONS
    assert solution.iterations == 1
    assert solution.gap > 0


def test_the_global_precision_does_not_matter() -> None:
    X, y = data("real", "logistic", 32)
    plain = glm.solve(X, y, 0.01, loss="logistic")
    with jax.enable_x64(True):
        wide = glm.solve(X, y, 0.01, loss="logistic")
    np.testing.assert_array_equal(plain.coefficients, wide.coefficients)
    assert plain.coefficients.dtype == np.float64


# Bad input

X_OK, Y_OK = np.array([[0.0, 1.5], [1.0, 0.0], [1.0, 1.0]]), np.array([-1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": [["a", "b"]] * 3}, TypeError, "X must be numeric"),
        ({"X": [1.0, 2.0, 3.0]}, ValueError, "X must be two-dimensional"),
        ({"X": np.zeros((0, 2))}, ValueError, "X has no rows"),
        ({"X": [[np.nan, 0], [1, 0], [1, 1]]}, ValueError, "X has NaN or infinite"),
        ({"X": [[np.inf, 0], [1, 0], [1, 1]]}, ValueError, "X has NaN or infinite"),
        ({"X": (X_OK, X_OK[:2])}, ValueError, "different numbers of rows"),
        ({"y": ["a", "b", "b"]}, TypeError, "y must be numeric"),
        ({"y": [0.0, 1.0]}, ValueError, "y must hold one number per row"),
        ({"y": [0.0, np.nan, 1.0]}, ValueError, "y has NaN"),
        ({"y": [0.0, 1.0, 1.0]}, ValueError, r"pass 2 \* y - 1"),
        ({"y": [-1.5, 1.0, 1.0]}, ValueError, r"y must be -1 or \+1"),
        ({"y": [1.0, 1.0, 1.0]}, ValueError, "y has only one class"),
        ({"sample_weight": [0, 1, 1]}, ValueError, "y has only one class"),
        ({"loss": "poisson"}, ValueError, "y must be non-negative for the poisson loss"),
        ({"loss": "poisson", "y": [0.0, 0.0, 0.0]}, ValueError, "y has no positive count"),
        ({"sample_weight": [1.0, -1, 1]}, ValueError, "sample_weight has negative"),
        ({"sample_weight": [0, 0, 0]}, ValueError, "sample_weight is zero"),
        ({"sample_weight": [1, 1]}, ValueError, "sample_weight has 2 values"),
        ({"l1_penalty": -0.1}, ValueError, "l1_penalty must be finite and at least 0"),
        ({"l1_penalty": np.nan}, ValueError, "l1_penalty must be finite and at least 0"),
        ({"l1_penalty": np.inf}, ValueError, "l1_penalty must be finite and at least 0"),
        ({"l1_penalty": [0.1, 0.2]}, ValueError, "l1_penalty must be finite and at least 0"),
        ({"loss": "hinge"}, ValueError, "loss must be one of"),
        ({"penalty_factors": [1.0]}, ValueError, "penalty_factors must hold one number per column"),
        (
            {"penalty_factors": [1.0, -1.0]},
            ValueError,
            "penalty_factors must be finite and at least 0",
        ),
        ({"start": ([0.0], 0.0)}, ValueError, "start must hold 2 finite coefficients"),
        ({"start": ([0.0, np.nan], 0.0)}, ValueError, "start must hold 2 finite coefficients"),
        ({"tolerance": 0.0}, ValueError, "tolerance must lie between 0 and 1"),
        ({"max_iterations": 0}, ValueError, "max_iterations must be at least 1"),
    ],
)
def test_solve_refuses(change: dict, error: type[Exception], message: str) -> None:
    arguments = {"X": X_OK, "y": Y_OK, "l1_penalty": 0.1, "loss": "logistic"} | change
    with pytest.raises(error, match=message):
        glm.solve(**arguments)


def test_designs_refuse() -> None:
    design = Design.of(X_OK + 100.5)
    with pytest.raises(ValueError, match=r"Design.of\(X, intercept=False\)"):
        glm.solve(design, Y_OK, 0.1, loss="logistic", intercept=False)
    with pytest.raises(ValueError, match="X is given as bits, so inverse must"):
        Design.of(BitColumns.of(np.eye(3, dtype=bool)))
    uncentred = Design.of(X_OK + 100.5, intercept=False)
    assert glm.solve(uncentred, Y_OK, 0.1, loss="logistic", intercept=False).intercept == 0.0


@pytest.mark.parametrize("loss", ALL)
def test_large_hessians_are_rough_and_solutions_are_not(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products in float32, by blocks of rows on two threads, reused along the path, give the same
    certified solutions.
    """
    X, y = data("binary", loss, 0, rows=300)
    X[:] = np.unpackbits(np.arange(300, dtype=">u2").view(np.uint8).reshape(300, 2), axis=1)[
        :, -12:
    ]  # all distinct
    X ^= np.random.default_rng(1).random(X.shape) < 0.2
    single = [
        glm.solve(X, y, penalty, loss=loss, tolerance=1e-9) for penalty in (0.05, 0.02, 0.005)
    ]
    monkeypatch.setattr(on_host, "_LARGE", 0)
    monkeypatch.setattr(bit_columns, "_BLOCK", 3)
    problem, other = glm.SparseProblem.of(X, y, loss), None
    for one in single:
        other = problem.solve(one.penalty, start=other, tolerance=1e-9)
        assert other.converged
        assert other.objective == pytest.approx(one.objective, rel=1e-8)
        np.testing.assert_allclose(other.coefficients, one.coefficients, atol=1e-4)


@settings(max_examples=40)
@given(
    SEEDS,
    st.integers(0, 40),
    st.integers(1, 300),
    st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    st.integers(1, 40),
)
def test_products_of_bits_are_those_of_numbers(
    seed: int, k: int, rows: int, density: float, block: int
) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.random((k, rows)) < density
    bits = BitColumns.of(dense)
    assert bits.shape == (k, 64 * -(-rows // 64))
    padding = bits.shape[1] - rows
    whole = np.pad(dense, ((0, 0), (0, padding))).astype(float)
    values, coefficients = (
        rng.normal(size=bits.shape[1]),
        rng.normal(size=k) * (rng.random(k) < 0.6),
    )
    np.testing.assert_allclose(bits @ values, whole @ values, atol=1e-12)
    np.testing.assert_allclose(coefficients @ bits, coefficients @ whole, atol=1e-12)
    of_classes = rng.normal(size=(bits.shape[1], 1 + seed % 9))
    each = rng.normal(size=(1 + seed % 9, k)) * (rng.random(k) < 0.6)
    for same in (bits, BitColumns(bits.words, compiled=False)):
        np.testing.assert_allclose(same @ of_classes, whole @ of_classes, atol=1e-12)
        np.testing.assert_allclose(each @ same, each @ whole, atol=1e-12)
    some = np.flatnonzero(rng.random(k) < 0.5)
    expected = (whole * values**2) @ whole.T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bit_columns, "_BLOCK", block)
        np.testing.assert_allclose(bits.gram(values**2, dtype=np.float64), expected, atol=1e-10)
        np.testing.assert_allclose(bits.gram(values**2, some), expected[some], rtol=1e-5, atol=1e-5)
        assert bits.gram(values**2, stopped=lambda: True) is None
        squares = of_classes.T**2
        each = np.stack([(whole * one) @ whole.T for one in squares])
        for at_once, left, wanted in (
            (512, None, each),
            (512, some, each[:, some]),
            (2 * len(some), some, each[:, some]),
        ):
            patch.setattr(bit_columns, "_WEIGHTED", at_once)
            found = bits.grams(squares, left, np.float64)
            np.testing.assert_allclose(found, wanted, atol=1e-10)
            assert bits.grams(squares, left, stopped=lambda: True) is None
    np.testing.assert_allclose(bits.take(some) @ values, (whole @ values)[some], atol=1e-12)


@pytest.mark.parametrize("columns", [np.zeros((0, 4)), np.array([[0.0, 1.0, 1.0, 3.0]])])
def test_duals_become_orthogonal_to_everything_unpenalised(columns) -> None:
    weights, curvature = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 2.0, 1.0, 3.0])
    data = NewtonData(columns, weights, np.zeros(4), True)
    dual = project_out(data, np.array([1.0, 2.0, 3.0, 5.0]), curvature)
    unpenalised = np.vstack([columns, np.ones(4)])
    np.testing.assert_allclose(unpenalised @ (weights * dual), 0.0, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_rounded_products_leave_the_model_convex(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Nested rules are nearly collinear; their products are rounded to float32."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(on_host, "_LARGE", 0)
    columns = np.sort(rng.random(3008)) > 0.1 * np.sort(rng.random((300, 1)), axis=0)
    models = on_host.Curvature(rng.random((1, 3008)) / 3008).models(
        BitColumns.of(columns), np.arange(len(columns)), True, lambda: False
    )
    assert models is not None
    np.linalg.cholesky(
        models[0].hessian.astype(np.float64)
    )  # raises if it is not positive definite
