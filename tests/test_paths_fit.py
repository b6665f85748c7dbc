"""`jaxrules.paths.fit`: the facade, its model object, bad input,
deadlines, and the logistic cost.
"""

import itertools
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from path_oracles import check_quadratic
from scipy.optimize import minimize

import jaxrules as jr
from jaxrules import paths
from jaxrules.paths import logistic
from jaxrules.paths.costs import LossCost, mean_squared_error
from jaxrules.paths.problem import best_path
from jaxrules.tools.runs import Deadline


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Two numbers and a category, on different scales."""
    n = 60
    frame = pd.DataFrame(
        {
            "income": 1000 * rng.normal(5, 2, n),
            "type": rng.choice(["bc", "prof", "wc"], n),
            "education": rng.normal(10, 3, n),
        }
    )
    y = (
        3
        + 0.002 * frame["income"]
        + 4.0 * (frame["type"] == "prof")
        - 0.5 * frame["education"]
        + rng.normal(size=n)
    )
    return frame, y.to_numpy()


def check_costs(fit: jr.Fit, X: Any, y: np.ndarray, weights: np.ndarray | None = None) -> None:
    """Costs and objective anew from the predictions of every model, in the units of fit."""
    path = fit.model
    path.validate()
    costs = []
    for step in range(len(path) + 1):
        residual = (y - jr.predict(path, X, step=step)) / path.output_scale
        costs.append(np.average(residual**2, weights=weights))
    np.testing.assert_allclose(path.costs, costs, rtol=1e-9)
    assert fit.objective == pytest.approx(path.step_weights @ path.costs[1:], rel=1e-12)
    if fit.bound is not None:
        assert fit.bound <= fit.objective


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_models_say_what_they_cost(data: Any, standardise: bool, intercept: bool) -> None:
    X, y = data
    weights = np.random.default_rng(1).random(len(y))
    fit = paths.fit(
        X, y, steps=4, standardise=standardise, intercept=intercept, sample_weight=weights
    )
    assert fit.status == "optimal"
    assert fit.gap is not None
    assert fit.gap < 2e-9
    check_costs(fit, X, y, weights)
    table = fit.model.table()
    assert fit.model.names == ("income", "type=bc", "type=prof", "type=wc", "education")
    assert len(table[1]) == 5


def test_weights_are_repeated_rows(data: Any) -> None:
    X, y = data
    counts = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = paths.fit(X, y, steps=3, sample_weight=counts)
    repeated = paths.fit(X.loc[np.repeat(X.index, counts)], np.repeat(y, counts), steps=3)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)


def test_units_do_not_change_real_paths(data: Any) -> None:
    X, y = data
    plain, standardised = paths.fit(X, y, steps=4), paths.fit(X, y, steps=4, standardise=True)
    assert plain.objective == pytest.approx(standardised.objective * y.var(), rel=1e-8)
    np.testing.assert_allclose(
        jr.predict(plain.model, X), jr.predict(standardised.model, X), rtol=1e-6
    )


def test_ridge_is_that_of_scikit_learn(data: Any) -> None:
    from sklearn.linear_model import Ridge

    X, y = data
    numbers = X[["income", "education"]] / X[["income", "education"]].std()
    fit = paths.fit(numbers, y, steps=8, step_weights=[1e-6] * 7 + [1.0], l2_penalty=0.3)
    ridge = Ridge(alpha=0.3 * len(y)).fit(numbers, y)
    np.testing.assert_allclose(fit.model.models[-1], ridge.coef_, rtol=1e-3)
    expected = np.mean((y - ridge.predict(numbers)) ** 2) + 0.3 * (ridge.coef_**2).sum()
    assert fit.model.costs[-1] == pytest.approx(expected, rel=1e-6)


def test_start_end_and_forbidden(data: Any) -> None:
    X, y = data
    old = paths.fit(X, y, steps=1, standardise=True)
    fit = paths.fit(X, y, steps=3, start=old.model, standardise=True, forbidden=["type"])
    np.testing.assert_array_equal(fit.model.models[0], old.model.models[-1])
    assert not np.diff(fit.model.models, axis=0)[:, 1:4].any()
    check_costs(fit, X, y)
    assert fit.model.costs[0] == pytest.approx(old.model.costs[-1])
    end = {"income": 0.4, "education": -0.2}
    for method in ("exact", "mip"):
        explained = paths.fit(
            X, y, steps=3, end=end, standardise=True, forbidden=[1, 2, 3], method=method
        )
        np.testing.assert_allclose(explained.model.models[-1], [0.4, 0, 0, 0, -0.2])
        assert explained.status == "optimal"
    by_array = paths.fit(
        X, y, steps=3, end=[0.4, 0, 0, 0, -0.2], standardise=True, forbidden=[1, 2, 3]
    )
    assert by_array.objective == pytest.approx(explained.objective, rel=1e-7)


def test_integer_steps_and_bounds(data: Any) -> None:
    X, y = data
    unit = paths.fit(
        X, y, steps=4, integer_steps="unit", forbidden=["income"], lower=-1, upper={"type=prof": 2}
    )
    steps = np.diff(unit.model.models, axis=0)
    assert set(np.unique(steps)) <= {-1.0, 0.0, 1.0}
    assert unit.model.models.min() >= -1
    assert unit.model.models[:, 2].max() <= 2
    assert unit.status == "optimal"
    bounded = paths.fit(X, y, steps=2, standardise=True, method="mip", lower=0)
    exact = paths.fit(X, y, steps=2, standardise=True, lower=0)
    assert exact.status == "optimal"
    assert exact.objective == pytest.approx(bounded.objective, rel=1e-6)
    assert bounded.model.models.min() >= -1e-12
    assert bounded.status == "optimal"
    check_costs(bounded, X, y)


def test_local_is_reproducible(data: Any) -> None:
    X, y = data
    first, second = (paths.fit(X, y, steps=5, method="local", seed=3, restarts=5) for _ in range(2))
    assert first.bound is None
    assert first.status == "converged"
    np.testing.assert_array_equal(first.model.models, second.model.models)
    assert first.objective == pytest.approx(paths.fit(X, y, steps=5).objective, rel=1e-6)


def test_step_weights(data: Any) -> None:
    X, y = data
    np.testing.assert_allclose(
        paths.fit(X, y, steps=3, step_weights=2.0).model.step_weights, [2, 4, 8]
    )
    share = paths.fit(X, y, steps=3, step_weights=[0.2, 0.0, 0.8])
    assert share.objective == pytest.approx(share.model.costs[1:] @ [0.2, 0, 0.8])


def test_constant_and_repeated_columns() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 1))
    X = np.hstack([x, x, np.full((30, 1), 7.0), rng.normal(size=(30, 1))])
    y = X @ [1.0, 1.0, 0.0, -1.0] + rng.normal(size=30)
    reduced = paths.fit(X[:, [0, 3]], y, steps=3)
    assert paths.fit(X, y, steps=3).objective == pytest.approx(reduced.objective, rel=1e-9)
    assert paths.fit(X, y, steps=3, method="local").objective == pytest.approx(
        reduced.objective, rel=1e-6
    )
    assert paths.fit(X, np.ones(30), steps=2).objective == pytest.approx(0, abs=1e-20)
    with pytest.raises(ValueError, match=r"x2.*constant"):
        paths.fit(X, y, steps=3, standardise=True)


def test_missing_values_have_their_own_column() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    X[:10, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 5.0, 2 * X[:, 0]) + 0.1 * rng.normal(size=50)
    with pytest.raises(ValueError, match="x0"):
        paths.fit(X, y, steps=2)
    fit = paths.fit(X, y, steps=2, missing="own_category")
    assert fit.model.names == ("x0", "x0 is missing", "x1")
    check_costs(fit, X, y)
    assert fit.model.costs[-1] < 0.02
    assert fit.model.models[-1] == pytest.approx([2, 5, 0], abs=0.2)
    complete = paths.fit(X[10:], y[10:], steps=2, missing="own_category")
    with pytest.raises(ValueError, match="'x0', which had none in fit"):
        jr.predict(complete.model, X)


# The model object


def test_tables(data: Any) -> None:
    X, y = data
    path = paths.fit(X, y, steps=3, start={"education": -0.5}, standardise=True).model
    heading, rows = path.table()
    assert heading[-1] == "cost"
    assert [row[0] for row in rows] == ["b0", "b1", "b2", "b3"]
    for k, row in enumerate(rows[1:], 1):
        assert sum(cell != "" for cell in row[1:-1]) == 1
        assert row[1 + path.moved.index(path.features[k - 1])] != ""
    text = str(path)
    assert "Coordinate path of 3 steps" in text
    assert all(name in text for name in heading)
    html = path._repr_html_()
    assert html.count("<tr>") == 5
    latex = path.to_latex()
    assert latex.startswith(r"\begin{tabular}{l" + "r" * (len(heading) - 1) + "}")
    assert r"$\beta_{3}$" in latex


def test_names_are_escaped() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a_b & <i>": rng.normal(size=20), "50%": rng.normal(size=20)})
    path = paths.fit(
        X, 1e-9 * (X.iloc[:, 0] + X.iloc[:, 1]).to_numpy() + 1e-10 * rng.normal(size=20), steps=2
    ).model
    assert r"a\_b \& $<$i$>$" in path.to_latex()
    assert r"50\%" in path.to_latex()
    assert r"\cdot 10^{-9}" in path.to_latex()
    assert "a_b &amp; &lt;i&gt;" in path._repr_html_()


def test_predict_explain_save(data: Any, tmp_path: Any) -> None:
    X, y = data
    path = paths.fit(X, y, steps=3, standardise=True).model
    explanation = jr.explain(path, X[:2])[1]
    assert sum(part.weight[0] for part in explanation.parts) == pytest.approx(
        jr.predict(path, X[:2])[1]
    )
    assert jr.complexity(path) == 3
    np.testing.assert_array_equal(jr.predict(path, X), jr.decision_function(path, X))
    with pytest.raises(ValueError, match="no classes"):
        jr.predict_proba(path, X)
    for step, error in ((4, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="step"):
            jr.predict(path, X, step=step)
    jr.save(path, tmp_path / "path.json")
    loaded = jr.load(tmp_path / "path.json")
    np.testing.assert_array_equal(jr.predict(loaded, X, step=2), jr.predict(path, X, step=2))
    leaves, structure = jax.tree.flatten(path)
    assert str(jax.tree.unflatten(structure, leaves)) == str(path)


def test_predict_under_jit() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    path = paths.fit(X, X @ [1.0, 0.0, -2.0], steps=2, standardise=True).model
    traced = jax.jit(lambda rows: jr.predict(path, rows, step=1))(X.astype(np.float32))
    np.testing.assert_allclose(traced, jr.predict(path, X, step=1), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="columns"):
        jax.jit(lambda rows: jr.predict(path, rows))(X[:, :2])


def test_validate_refuses_broken_paths(data: Any) -> None:
    import dataclasses

    X, y = data
    path = paths.fit(X, y, steps=3).model
    jumps = path.models.copy()
    jumps[2:] += 1.0
    for change, match in (
        ({"models": jumps}, "more than its own"),
        ({"models": path.models[:2]}, "models must have shape"),
        ({"features": path.features + 99}, "features"),
        ({"costs": path.costs[:-1]}, "must have shape"),
        ({"intercepts": path.intercepts * np.nan}, "finite"),
    ):
        with pytest.raises(ValueError, match=match):
            dataclasses.replace(path, **change).validate()


def test_losses_are_coherent(data: Any) -> None:
    X, y = data
    candidates = [
        paths.fit(X, y, steps=steps, step_weights=gamma).model
        for steps in (1, 2, 3)
        for gamma in (0.5, 1.0, 2.0)
    ]
    candidates.append(paths.greedy(X, y, steps=3))
    assert paths.is_coherent(lambda p: paths.geometric_loss(p, 0.7), candidates)
    assert paths.is_coherent(lambda p: paths.weighted_loss(p, [0.1, 0.0, 3.0]), candidates)
    assert paths.is_coherent(paths.complexity_loss, candidates)
    assert not paths.is_coherent(lambda p: -p.costs[1], candidates)
    optimal, greedy = paths.fit(X, y, steps=3).model, candidates[-1]
    assert optimal.loss <= greedy.loss
    assert paths.dominates(optimal, optimal)
    assert optimal.loss == pytest.approx(paths.geometric_loss(optimal, 1.0))
    with pytest.raises(ValueError, match="at least 3"):
        paths.weighted_loss(optimal, [1.0])
    with pytest.raises(ValueError, match="at least 0"):
        paths.weighted_loss(optimal, [1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match="gamma"):
        paths.geometric_loss(optimal, 0.0)
    with pytest.raises(ValueError, match="gamma=1e\\+300 to the power of .* steps overflows"):
        paths.geometric_loss(optimal, 1e300)


# Bad input


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"steps": 2.0}, TypeError, "steps must be an integer"),
        ({"steps": True}, TypeError, "steps"),
        (
            {"step_weights": [1, -1, 1]},
            ValueError,
            "step_weights must be finite and at least 0, got -1",
        ),
        ({"step_weights": [1, np.nan, 1]}, ValueError, "step_weights must be finite .* nan"),
        ({"step_weights": [1, np.inf, 1]}, ValueError, "step_weights must be finite .* inf"),
        ({"step_weights": [1, 1, 0]}, ValueError, "last of step_weights is 0"),
        ({"step_weights": [1, 1]}, ValueError, "one per step"),
        ({"step_weights": 0.0}, ValueError, "gamma, must be finite and positive"),
        ({"step_weights": 1e200}, ValueError, "overflow"),
        ({"step_weights": "fast"}, TypeError, "step_weights"),
        ({"start": [0.0, 1.0]}, ValueError, "start must have 3 values"),
        ({"start": [0.0, np.nan, 1.0]}, ValueError, "start has NaN"),
        ({"start": {"zzz": 1.0}}, ValueError, "start names 'zzz'"),
        ({"end": [1.0, 1.0]}, ValueError, "end must have 3 values"),
        ({"end": [1.0, 1.0, 1.0], "steps": 2}, ValueError, "not reachable in 2 steps"),
        ({"end": [4.0, 0.0, 0.0], "integer_steps": "unit"}, ValueError, "takes at least 4"),
        (
            {"end": [0.5, 0.0, 0.0], "integer_steps": "any"},
            ValueError,
            "differ from start by integers",
        ),
        ({"end": [1.0, 0.0, 0.0], "forbidden": ["x0"]}, ValueError, "forbidden columns"),
        ({"end": [1.0, 0.0, 0.0], "method": "local"}, ValueError, 'use method="mip"'),
        ({"method": "magic"}, ValueError, "method must be"),
        ({"cost": "hinge"}, ValueError, "cost must be"),
        ({"l2_penalty": -1.0}, ValueError, "l2_penalty"),
        ({"l2_penalty": "x"}, TypeError, "l2_penalty"),
        ({"intercept": 1}, TypeError, "intercept"),
        ({"standardise": "yes"}, TypeError, "standardise"),
        ({"integer_steps": "two"}, ValueError, "integer_steps"),
        ({"integer_steps": "any", "step_weights": [1, 0, 1]}, ValueError, "positive"),
        ({"lower": 0.5}, ValueError, "start violates"),
        ({"lower": -1.0, "method": "local"}, ValueError, 'use method="mip"'),
        ({"lower": -1.0, "end": [1.0, 0.0, 0.0]}, ValueError, "not both"),
        ({"lower": np.nan}, ValueError, "NaN"),
        ({"lower": {"x0": 0.0}, "upper": {"x0": -1.0}}, ValueError, "lower exceeds upper"),
        ({"upper": {"x0": 0.5}, "end": [1.0, 0, 0]}, ValueError, "end violates"),
        ({"forbidden": ["x9"]}, ValueError, "forbidden names 'x9'"),
        ({"forbidden": "x0"}, TypeError, "forbidden"),
        ({"forbidden": [7]}, ValueError, "position 7"),
        ({"forbidden": [0, 1, 2]}, ValueError, "every column"),
        ({"batch": 4}, ValueError, "batch"),
        ({"batch": 0}, ValueError, "batch"),
        ({"restarts": -1}, ValueError, "restarts"),
        ({"seed": -1}, ValueError, "seed"),
        ({"time_limit": -1.0}, ValueError, "time_limit"),
        ({"sample_weight": [-1.0] * 20}, ValueError, "sample_weight"),
        ({"progress": 3}, TypeError, "progress"),
        ({"missing": "mean"}, ValueError, "missing"),
        ({"method": "mip", "step_weights": [1, 0, 1]}, ValueError, "positive"),
        ({"cost": "logistic", "method": "mip"}, ValueError, "logistic"),
        ({"cost": "logistic", "integer_steps": "any"}, ValueError, "logistic"),
        ({"cost": "poisson", "lower": -1.0}, ValueError, "poisson"),
        ({"cost": "hinge"}, ValueError, "cost"),
        ({"iterations": 0}, ValueError, "iterations"),
        ({"first_sequence": "x0"}, TypeError, "must be a list"),
        ({"first_sequence": 3}, TypeError, "must be a list"),
        ({"first_sequence": [0, 1]}, ValueError, "must have 3 columns"),
        ({"first_sequence": [0, 1, 3]}, ValueError, "position 3"),
        ({"first_sequence": [0, 1, 2], "forbidden": [1]}, ValueError, "no step may change"),
        ({"first_sequence": [0, 1, 2], "lower": -1.0}, ValueError, "omit one"),
        ({"first_sequence": [0, 1, 2], "method": "mip"}, ValueError, "omit one"),
    ],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], match: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = (X[:, 0] > 0).astype(float)
    with pytest.raises(error, match=match):
        paths.fit(X, y, **({"steps": 3, "cost": "squared"} | change))


def test_bad_data() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = X[:, 0].copy()
    y[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        paths.fit(X, y, steps=2)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="missing"):
        paths.fit(X, np.ones(20), steps=2)
    with pytest.raises(ValueError, match="rows"):
        paths.fit(X[1:], np.ones(20), steps=2)
    with pytest.raises(ValueError, match="y is constant"):
        paths.fit(X[1:], np.ones(19), steps=2, standardise=True)
    rounding = 1e6 + 1e-9 * X[1:, 0]  # relative to the size of the numbers
    with pytest.raises(ValueError, match="y is constant"):
        paths.fit(X[1:], rounding, steps=2, standardise=True)
    wide = np.random.default_rng(0).normal(size=(30, 12))
    with pytest.raises(ValueError, match="at most 11"):
        paths.fit(wide, wide[:, 0], steps=2, end=np.eye(12)[0])
    with pytest.raises(ValueError, match="one class"):
        paths.fit(
            X[1:], np.arange(19) % 2, steps=2, cost="logistic", sample_weight=np.arange(19) % 2
        )


# Deadlines


@pytest.mark.parametrize("method", ["exact", "local", "mip"])
def test_a_deadline_that_is_over_returns_a_path(method: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=40)
    best = paths.fit(X, y, steps=4).objective
    fit = paths.fit(X, y, steps=4, method=method, time_limit=Deadline(0.0, clock=lambda: 0.0))
    check_costs(fit, X, y)
    assert fit.status == "time_limit"
    assert fit.objective >= best * (1 - 1e-12)
    if method != "local":
        assert fit.bound is not None
        assert fit.bound <= best
        assert fit.gap == pytest.approx((fit.objective - fit.bound) / fit.objective)


def test_progress_and_history(data: Any) -> None:
    X, y = data
    seen: list[jr.Progress] = []
    fit = paths.fit(X, y, steps=3, method="local", restarts=3, progress=seen.append)
    assert [p.objective for p in seen] == [step.objective for step in fit.history]


# The logistic cost


def test_logistic_cost_and_its_quadratic_model() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.where(X @ [1.0, -1.0, 0.3] + rng.logistic(size=50) + 0.5 > 0, 1.0, -1.0)
    shares = rng.random(50)
    shares /= shares.sum()
    for intercept in (False, True):
        cost = LossCost(jr.losses.logistic, X, y, shares, 0.05, intercept)

        def value(b: np.ndarray, cost: LossCost = cost) -> float:
            def losses(u: float) -> float:
                return float(shares @ np.logaddexp(0, -y * (X @ b + u)) + 0.05 * b @ b)

            return float(
                minimize(lambda u: losses(u[0]), [0.0], tol=1e-12).fun
                if cost.intercept
                else losses(0.0)
            )

        check_quadratic(cost, value, rng, (0.02, 0.01), 6)


@pytest.mark.parametrize("method", ["exact", "local"])
def test_logistic_paths(method: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3)) @ (np.eye(3) + 0.4)
    labels = np.where(X @ [1.5, -1.0, 0.0] + rng.logistic(size=80) > 0, "yes", "no")
    weights = np.array([1.0, 0.5, 1.0])
    fit = paths.fit(X, labels, steps=3, step_weights=weights, cost="logistic", method=method)
    if method == "exact":
        assert fit.status == "optimal"
        assert fit.bound is not None
        assert fit.gap < 1e-7
    else:
        assert fit.status == "converged"
        assert fit.bound is None
    path = fit.model
    path.validate()
    proba = jr.predict_proba(path, X, step=2)
    assert path.costs[2] == pytest.approx(
        -np.log(proba[np.arange(80), (labels == "yes").astype(int)]).mean(), rel=1e-9
    )
    assert set(jr.predict(path, X)) <= {"yes", "no"}
    np.testing.assert_allclose(jr.explain(path, X[:1])[0].score, jr.decision_function(path, X[:1]))

    y = np.where(labels == "yes", 1.0, -1.0)
    cost = LossCost(jr.losses.logistic, X, y, np.full(80, 1 / 80), 0.0, True)
    best = min(
        weights @ cost(logistic.newton_path(cost, weights, np.array(sequence)).models)
        for sequence in itertools.product(range(3), repeat=3)
    )
    assert fit.objective <= best * (1 + 1e-6)


def test_logistic_path_along_a_sequence_is_a_minimum() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    y = np.where(X @ [1.0, -1.0] + rng.logistic(size=40) > 0, 1.0, -1.0)
    cost = LossCost(jr.losses.logistic, X, y, np.full(40, 1 / 40), 0.01, True)
    weights, sequence = np.array([1.0, 2.0, 0.5]), np.array([0, 1, 0])
    models = logistic.newton_path(cost, weights, sequence).models

    def objective(changes: np.ndarray) -> float:
        steps = np.zeros((3, 2))
        steps[np.arange(3), sequence] = changes
        return float(weights @ cost(steps.cumsum(axis=0)))

    reference = minimize(objective, np.zeros(3), tol=1e-10)
    assert weights @ cost(models) == pytest.approx(reference.fun, rel=1e-7)


def test_separable_classes_do_not_fail() -> None:
    X = np.linspace(-1, 1, 20)[:, None]
    fit = paths.fit(X, X[:, 0] > 0, steps=2, cost="logistic", l2_penalty=1e-3)
    assert np.isfinite(fit.objective)
    fit = paths.fit(X, X[:, 0] > 0, steps=2, cost="logistic")
    assert fit.objective < 0.5
    assert np.isfinite(fit.model.models).all()


def test_best_path_is_exported_math() -> None:
    """The facade's models are the closed form on the same quadratic."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=30)
    fit = paths.fit(X, y, steps=3, intercept=False)
    cost = mean_squared_error(X, y, np.ones(30))
    np.testing.assert_allclose(
        fit.model.models[1:], best_path(cost, np.ones(3), fit.model.features), rtol=1e-9
    )


@pytest.mark.full
def test_an_exact_fit_that_is_cut_short_is_not_worse_than_a_local_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock moves one second per look: both look at it after every
    start of local improvement.
    """
    monkeypatch.setattr(paths.local, "MAX_CANDIDATES", 1)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 14)) + rng.normal(size=(60, 1))
    y = X @ rng.normal(size=14) + rng.normal(size=60)
    options: dict[str, Any] = {"steps": 6, "step_weights": 0.8, "restarts": 6, "seed": 1}

    def objective(method: Any, seconds: int) -> float:
        ticks = itertools.count()
        limit = Deadline(float(seconds), clock=lambda: float(next(ticks)))
        return paths.fit(X, y, method=method, time_limit=limit, **options).objective

    paths.fit(
        X, y, method="local", **options
    )  # compiles: who waits for that looks at the clock, too
    found = [
        (objective("exact", seconds), objective("local", seconds))
        for seconds in (0, 2, 4, 6, 8, 12)
    ]
    assert all(exact <= local * (1 + 1e-12) for exact, local in found)
    assert found[0][1] > found[-1][1], "restarts find something here"


def test_a_constant_column_is_refused_unless_forbidden(rng: np.random.Generator) -> None:
    X = {"x": rng.normal(size=30), "same": np.ones(30), "kind": ["a"] * 30}
    y = 2 * X["x"]
    with pytest.raises(ValueError, match=r"columns \['same', 'kind=a'\] are constant.*forbidden"):
        paths.fit(X, y, steps=1, standardise=True)
    fit = paths.fit(X, y, steps=1, standardise=True, forbidden=["same", "kind=a"])
    assert fit.model.features.tolist() == [0]
