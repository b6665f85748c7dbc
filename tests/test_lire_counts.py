"""LIRE with the Poisson loss: brute force, closed forms, SciPy, the unit of counts, noise."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import xlogy

import jaxrules as jr
from jaxrules import estimators
from jaxrules.ensembles.lire.moves import Support, rank_moves
from jaxrules.ensembles.lire.objective import penalty
from jaxrules.ensembles.lire.problem import SupportProblem, make_problem
from jaxrules.ensembles.lire.search import SupportSearch
from jaxrules.losses import poisson
from jaxrules.rules.rows import Activations

Floats = np.ndarray
RNG = np.random.default_rng(0)
X = RNG.integers(0, 4, (500, 4)).astype(float)
STEP = RNG.poisson(2 * np.exp(X[:, 0] > 1))
EXPOSURE = RNG.uniform(0.2, 3, 500)
EVENTS = RNG.poisson(EXPOSURE * np.exp(0.3 + (X[:, 0] > 1) - 0.8 * (X[:, 1] < 1)))
fit = functools.partial(jr.lire.fit, loss="poisson")


def rules_of(columns: Floats) -> jr.Conjunctions:
    """One rule per 0/1 column: the column is 1."""
    schema = jr.as_table(columns.astype(float)).schema
    return jr.Conjunctions.build(
        schema, [[jr.Condition.above(j, 0.5)] for j in range(columns.shape[1])]
    )


def small(seed: int, rows: int = 60, rules: int = 5) -> tuple[Floats, Floats, Floats]:
    """0/1 columns, counts and weights."""
    rng = np.random.default_rng(seed)
    columns = rng.random((rows, rules)) < rng.uniform(0.2, 0.7, rules)
    counts = rng.poisson(np.exp(rng.normal(0.3, 1) + columns[:, :2] @ rng.normal(0, 1, 2)))
    counts[0] += 1
    return columns, counts.astype(float), rng.choice([0.5, 1.0, 2.0], rows)


def least(columns: Floats, y: Floats, weight: Floats, ridge: float, support: Any) -> float:
    """The least mean loss plus ridge of a support with a free intercept, by SciPy."""
    A = np.column_stack([np.ones(len(y)), columns[:, support]])
    shares, half = weight / weight.sum(), ridge / weight.sum() * np.append(0, np.ones(len(support)))

    def value(b: Floats) -> tuple[float, Floats]:
        means = np.exp(A @ b)
        lost = shares @ (means - y * (A @ b)) + half @ b**2 / 2
        return float(lost), (shares * (means - y)) @ A + half * b

    begin = np.append(np.log(shares @ y), np.zeros(len(support)))
    found = optimize.minimize(value, begin, jac=True, method="BFGS", options={"gtol": 1e-9})
    return float(found.fun)


def optimum(
    columns: Floats, y: Floats, weight: Floats, gamma: float, lam: float, ridge: float
) -> float:
    """The least objective over all supports."""
    coverage = np.average(columns, axis=0, weights=weight)
    supports = itertools.chain.from_iterable(
        itertools.combinations(range(columns.shape[1]), k) for k in range(columns.shape[1] + 1)
    )
    return min(
        least(columns, y, weight, ridge, list(one))
        + float(penalty(len(one), coverage[list(one)].sum(), gamma, lam))
        for one in supports
    )


@pytest.mark.parametrize("encoding", ["signed", "binary"])
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), lam=st.sampled_from([0.0, 0.05]))
def test_brute_force_over_supports(encoding: str, seed: int, lam: float) -> None:
    columns, y, weight = small(seed)
    given = {"global_penalty": 0.03, "local_penalty": lam, "l2_penalty": 2.0}
    found = fit(columns * 1.0, y, weight, rules=rules_of(columns), encoding=encoding, **given)
    best = optimum(columns, y, weight, 0.03, lam, 2.0)
    assert best - 1e-7 <= found.objective <= best + 1e-6
    assert found.objective == pytest.approx(
        jr.lire.objective(found.model, columns * 1.0, y, sample_weight=weight, **given), abs=1e-9
    )


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_branch_and_bound_brackets_the_optimum(seed: int) -> None:
    columns, y, weight = small(seed, rules=6)
    found = fit(
        columns * 1.0, y, weight, rules=rules_of(columns), search="optimal", global_penalty=0.02,
        local_penalty=0.04, l2_penalty=1.0, restarts=0,
    )  # fmt: skip
    best = optimum(columns, y, weight, 0.02, 0.04, 1.0)
    assert found.status == "optimal"
    assert found.bound is not None
    assert found.bound - 1e-9 <= best <= found.objective + 1e-7
    assert found.objective - found.bound <= 1e-5 * (1 + abs(best))


def test_fit_agrees_with_the_optimum_over_all_conjunctions() -> None:
    given = {"global_penalty": 0.05, "l2_penalty": 8.0, "max_rules": 3}
    best = jr.lire.optimal(X, STEP, loss="poisson", max_length=2, max_cut_points=None, **given)
    found = fit(X, STEP, local_penalty=0.0, **given)
    again = fit(X, STEP, local_penalty=0.0, start=best, **given)
    assert best.status == "optimal"
    assert best.bound is not None
    # A pool of trees has most of these conjunctions, and longer ones.
    assert abs(found.objective - best.objective) < 0.01
    assert again.objective <= best.objective + 1e-7
    only = fit(X, STEP, local_penalty=0.0, rules=best.model.conjunctions, **given)
    assert best.bound - 1e-9 <= only.objective <= best.objective + 1e-7


@pytest.mark.parametrize("encoding", ["signed", "binary"])
@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_the_weight_of_one_rule(encoding: str, ridge: float) -> None:
    """Without a ridge it is the logarithm of a ratio of means; with one, SciPy's."""
    held = X[:, 0] > 1
    found = fit(
        held[:, None] * 1.0, STEP, rules=rules_of(held[:, None]), l2_penalty=ridge,
        global_penalty=1e-4, encoding=encoding,
    )  # fmt: skip
    (weight,) = found.model.weights[:, 0]
    inside, outside = STEP[held], STEP[~held]
    if not ridge:
        assert weight == pytest.approx(np.log(inside.mean() / outside.mean()), rel=1e-5)
        assert found.model.intercept[0] == pytest.approx(np.log(outside.mean()), rel=1e-5)
        return

    def total(b: float) -> float:  # with the best intercept, the means add up to the counts
        a = np.log(STEP.sum() / (np.exp(b) * held.sum() + (~held).sum()))
        return float(poisson.value(STEP, a + b * held).sum() + ridge * b * b / 2)

    assert weight == pytest.approx(optimize.minimize_scalar(total, tol=1e-10).x, rel=1e-4)


@pytest.mark.parametrize("encoding", ["signed", "binary"])
def test_predictions_of_moves_are_newton_steps_of_the_refits(encoding: str) -> None:
    """For small effects, the predicted objective of an addition is that of its refit."""
    rng = np.random.default_rng(4)
    columns = rng.random((4000, 6)) < 0.5
    y = rng.poisson(3 * np.exp(0.1 * columns[:, 0] - 0.1 * columns[:, 1])).astype(float)
    problem: SupportProblem = make_problem(
        Activations.of(rules_of(columns), jr.as_table(columns * 1.0)), y, np.ones(4000), poisson,
        encoding,
    )  # fmt: skip
    search = SupportSearch(problem, 0.0, 0.0, 1.0)
    empty = search.start_empty()
    half_deviance = xlogy(y, y / y.mean()).mean() / y.mean()  # in units of the mean
    assert empty.loss == pytest.approx(half_deviance, rel=1e-9)
    _, summed = search._sums(empty)
    support = Support(empty.columns, empty.weights)
    _, add, _, _ = rank_moves(summed, search.charges, support, search.terms, poisson)
    for column in range(1, 7):
        refitted = search.start_from(np.array([column]), np.zeros(1))
        gain = empty.objective - refitted.objective
        predicted = empty.objective - (add[column] + problem.constant)
        assert predicted == pytest.approx(gain, rel=0.05, abs=1e-6)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_counts_changes_the_intercept_alone(factor: float) -> None:
    one, other = fit(X, STEP, restarts=2), fit(X, factor * STEP, restarts=2)
    assert str(other.model.conjunctions) == str(one.model.conjunctions)
    np.testing.assert_allclose(other.model.weights, one.model.weights, atol=1e-6)
    np.testing.assert_allclose(other.model.intercept - one.model.intercept, np.log(factor))


def test_exposure_is_the_fit_of_rates() -> None:
    found = fit(X, EVENTS, exposure=EXPOSURE)
    rates = fit(X, EVENTS / EXPOSURE, EXPOSURE / EXPOSURE.mean())
    np.testing.assert_allclose(found.model.weights, rates.model.weights, atol=1e-6)
    days = fit(X, EVENTS, exposure=365 * EXPOSURE)
    np.testing.assert_allclose(days.model.weights, found.model.weights, atol=1e-6)
    np.testing.assert_allclose(days.model.intercept, found.model.intercept - np.log(365))
    assert jr.predict(found.model, X, exposure=EXPOSURE).sum() == pytest.approx(
        EVENTS.sum(), rel=0.05
    )
    # The intercept is free: where no rule is shrunk, predicted and observed totals agree.
    free = fit(X, EVENTS, exposure=EXPOSURE, l2_penalty=0.0, global_penalty=0.02)
    assert jr.predict(free.model, X, exposure=EXPOSURE).sum() == pytest.approx(EVENTS.sum())


def test_weights_mean_repeated_rows() -> None:
    weight = RNG.integers(1, 4, 500)
    given = {"global_penalty": 0.05, "l2_penalty": 4.0}
    rules = fit(X, STEP, **given).model.conjunctions
    one = fit(X, STEP, weight, rules=rules, **given)
    repeated = np.repeat(np.arange(500), weight)
    other = fit(X[repeated], STEP[repeated], rules=rules, **given)
    assert one.objective == pytest.approx(other.objective, abs=1e-9)
    np.testing.assert_allclose(one.model.weights, other.model.weights, atol=1e-6)


@pytest.mark.parametrize("mean", [0.1, 3.0, 200.0])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_noise_has_at_most_one_rule_and_a_step_is_found(mean: float, spread: float) -> None:
    rng = np.random.default_rng(8)
    grid = rng.integers(0, 8, (1500, 4)).astype(float)
    rate = mean * (rng.gamma(1 / spread, spread, 1500) if spread else 1.0)
    assert len(fit(grid, rng.poisson(rate, 1500)).model.conjunctions) <= 1
    if spread and mean < 1:
        return
    jump = np.exp(1.5 * (grid[:, 2] > 3))
    found = fit(grid, rng.poisson(rate * jump))
    first = int(np.abs(found.model.weights[:, 0]).argmax())
    assert found.model.conjunctions.describe(first) in ("x2 <= 3", "x2 > 3")
    assert len(found.model.conjunctions) <= 3
    assert found.details.chosen.startswith("global_penalty=")
    assert " and l2_penalty=" in found.details.chosen
    assert "of the constant's deviance" in found.details.chosen


def test_a_given_price_is_kept() -> None:
    found = fit(X, STEP, global_penalty=0.04, l2_penalty=3.0)
    assert (found.details.global_penalty, found.details.l2_penalty) == (0.04, 3.0)
    assert not found.details.chosen
    one = fit(X, STEP, global_penalty=0.04)
    assert one.details.global_penalty == 0.04
    assert one.details.chosen.startswith("l2_penalty=")


@pytest.mark.parametrize("encoding", ["signed", "binary"])
def test_both_engines_are_one_search(encoding: str) -> None:
    columns, y, weight = small(3, rows=200, rules=12)
    given: dict[str, Any] = {
        "rules": rules_of(columns), "global_penalty": 0.01, "l2_penalty": 1.0, "encoding": encoding,
    }  # fmt: skip
    one, other = (fit(columns * 1.0, y, weight, engine=e, **given) for e in ("numpy", "jax"))
    assert other.details.engine == "jax"
    assert one.objective == pytest.approx(other.objective, rel=1e-4)
    for engine in ("numpy", "jax"):
        path = jr.lire.path(
            columns * 1.0, y, weight, loss="poisson", rules=rules_of(columns), engine=engine
        )
        assert len(path) == 5
        assert (np.diff([one.objective for one in path]) <= 1e-9).all()


@pytest.mark.parametrize("engine", ["numpy", "jax"])
def test_cross_validation_has_ridges_in_units_of_the_mean(engine: str) -> None:
    rules = fit(X, STEP, global_penalty=0.02).model.conjunctions
    given = {"global_penalties": [0.2, 0.02], "n_folds": 2, "rules": rules, "engine": engine}
    found = jr.lire.cross_validate(X, STEP, loss="poisson", **given)
    ridges = {one["l2_penalty"] for one in found.details.cross_validation.settings}
    np.testing.assert_allclose(sorted(ridges), STEP.mean() * np.array([0.25, 2.5, 25]))
    assert found.details.cross_validation.setting["global_penalty"] in (0.2, 0.02)


def test_rules_without_events_have_finite_weights() -> None:
    y = np.where(X[:, 0] > 1, STEP + 1, 0)
    found = fit(X, y, l2_penalty=0.0, global_penalty=0.01)
    assert np.isfinite(found.model.weights).all()
    assert (np.abs(found.model.weights) <= 46.1).all()
    assert jr.predict(found.model, X)[X[:, 0] <= 1].max() < 1e-6


def test_constraints_hold() -> None:
    found = fit(X, EVENTS, monotone={"x0": -1, "x1": 1}, forbidden=["x3"], required=["x2"])
    means = [jr.predict(found.model, np.where(np.arange(4) == 0, level, X)) for level in range(4)]
    assert all((one >= other - 1e-12).all() for one, other in itertools.pairwise(means))
    names = " ".join(found.model.conjunctions.describe(r) for r in range(len(found.model.weights)))
    assert "x3" not in names
    assert "x2" in names


def test_an_intercept_with_a_price() -> None:
    """The score 0, a mean of 1, costs nothing; another constant is a rule."""
    columns, y, weight = small(5)
    given = {"rules": rules_of(columns), "l2_penalty": 1.0, "penalise_intercept": True}
    none = fit(columns * 1.0, y, weight, global_penalty=50.0, **given)
    assert none.model.intercept[0] == 0
    assert none.objective == pytest.approx(1.0)
    some = fit(columns * 1.0, y, weight, global_penalty=0.01, **given)
    assert some.objective == pytest.approx(
        jr.lire.objective(
            some.model, columns * 1.0, y, sample_weight=weight, global_penalty=0.01,
            local_penalty=0.02, l2_penalty=1.0,
        )
    )  # fmt: skip


def test_no_time_and_little_time() -> None:
    for limit in (0.0, 0.05):
        found = fit(X, STEP, time_limit=limit)
        assert np.isfinite(found.objective)
        assert (jr.predict(found.model, X) > 0).all()


def test_estimators_survival_and_comparisons_take_counts() -> None:
    model = estimators.LIRERegressor(loss="poisson").fit(X, EVENTS, exposure=EXPOSURE)
    assert model.predict(X, exposure=EXPOSURE).sum() == pytest.approx(EVENTS.sum(), rel=0.05)
    time = np.random.default_rng(2).exponential(np.where(X[:, 0] > 1, 1.0, 4.0)) + 1e-3
    found = jr.survival.fit(X, time, np.ones(500), learner=jr.lire.fit, cuts=1)
    assert "x0" in str(found.rates)
    compared = jr.compare(X, STEP, loss="poisson", methods=["lire"], folds=2, inner_folds=2)
    assert (compared["lire"].risks < poisson.value(STEP, np.log(STEP.mean())).mean()).all()


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.zeros(500), "y has only one value"),
        (STEP - 1.0, "y must be non-negative for the poisson loss; its smallest value is -1"),
        (np.where(np.arange(500) == 3, np.nan, STEP), "y has NaN or infinite values"),
        (np.where(STEP > 3, "many", "few"), "y holds text labels"),
    ],
)
def test_bad_counts_are_refused(y: Any, words: str) -> None:
    for learner in (fit, functools.partial(jr.lire.path, loss="poisson")):
        with pytest.raises((TypeError, ValueError), match=words):
            learner(X, y)


def test_a_fold_without_events_is_refused_by_name() -> None:
    y = np.where(np.arange(500) == 7, 1.0, 0.0)
    rules = rules_of(X[:, :2] > 1)
    with pytest.raises(ValueError, match="y "):
        jr.lire.cross_validate(
            (X[:, :2] > 1) * 1.0, y, loss="poisson", rules=rules, engine="jax", n_folds=2
        )
