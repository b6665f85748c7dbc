"""Linear terms among the candidates of boosting, against brute force."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from claims import check_elsewhere
from jaxrules.ensembles.boosting.ridge import constant_of
from jaxrules.losses import derivatives, loss_by_name

fit = partial(jr.boosting.fit, linear_terms=True)


def table(seed: int = 0, n: int = 150) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": 1e4 + 20 * rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "c": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )


def target(X: pd.DataFrame, seed: int = 0) -> np.ndarray:
    score = 2 * X.a + (X.b - 1e4) / 20 + 2 * ((X.colour == "red") & (X.a > 0))
    return np.asarray(score + 0.3 * np.random.default_rng(seed).normal(size=len(X)))


def columns(X: pd.DataFrame, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The winsorised columns of `table`, centred and in units of .4 standard deviations, and these
    units.
    """
    parts, units = [], []
    for name in ("a", "b", "c"):
        x, known = X[name].to_numpy(), X[name].notna().to_numpy()
        order = np.argsort(x[known])
        at = np.cumsum(weights[known][order]) / weights[known].sum()
        low, high = x[known][order][np.searchsorted(at, [0.025, 0.975])]
        clipped = np.where(known, np.clip(x, low, high), 0.0)
        spread = np.sqrt(np.cov(clipped[known], aweights=weights[known], ddof=0))
        parts.append((clipped - np.average(clipped, weights=weights)) * 0.4 / spread)
        units.append(spread / 0.4)
    return np.stack(parts, axis=1), np.array(units)


def test_rules_alone_are_the_default() -> None:
    X = table()
    plain = jr.boosting.fit(X, target(X), max_rules=3, missing="own_category")
    assert plain.model.linear is None
    assert all(stage.linear_term == "" for stage in plain.details.stages)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), loss=st.sampled_from(["squared", "logistic", "poisson"]))
def test_the_first_two_terms_are_the_best_of_all(seed: int, loss: str) -> None:
    X = table(seed)
    score, weights = target(X, seed), np.random.default_rng(seed).random(len(X)) + 0.1
    y = {"squared": score, "poisson": np.round(np.exp(score / 3))}.get(loss, score > 0)
    coded = np.where(y, 1.0, -1.0) if loss == "logistic" else y
    ridge, n = 2.0, weights.sum()
    path = jr.boosting.path(
        X, y, weights, loss=loss, linear_terms=True, max_rules=3, l2_penalty=ridge,
        missing="own_category",
    )  # fmt: skip
    Z = columns(X, weights)[0]
    for m, stage in enumerate(path[-1].details.stages):
        if m == 0:
            span, scores = np.ones((len(X), 1)), np.full(len(X), np.nan)
            scores[:] = constant_of(  # the best constant
                jr.learning.training.training_data(
                    X, y, loss_by_name(loss), sample_weight=weights, missing="own_category"
                ),
                jr.boosting.Options(),
            )
        else:
            model = path[m - 1].model
            scores = np.asarray(jr.decision_function(model, X)).ravel()
            rules = model.conjunctions.satisfied(jr.as_table(X, missing="own_category"))
            used = (
                [] if model.linear is None else [(0, 1, None, 2)[f] for f in model.linear.feature]
            )
            span = np.column_stack([np.ones(len(X)), rules, Z[:, used]])
        g, h = (weights * one for one in derivatives(loss_by_name(loss), coded, scores))
        penalties = np.diag([0.0] + [ridge] * (span.shape[1] - 1))
        inverse = np.linalg.inv((span.T * h) @ span + penalties)
        gains = []
        for z in Z.T:
            c = span.T @ (h * z)
            gains.append((g @ z) ** 2 / (2 * n * (ridge + h @ z**2 - c @ inverse @ c)))
        free = [k for k in range(3) if m == 0 or k not in used]
        best = max((gains[k] for k in free), default=0.0)
        assert stage.bound is not None
        assert stage.bound >= best * (1 - 1e-6)
        if stage.linear_term:
            assert stage.objective == pytest.approx(best, rel=1e-4)
            assert stage.length == 0
            assert stage.linear_term == "abc"[max(free, key=lambda k: gains[k])]
        else:
            assert stage.objective >= best * (1 - 1e-6)


@pytest.mark.full
@settings(max_examples=10)
@given(
    seed=st.integers(0, 1000),
    loss=st.sampled_from(["squared", "logistic", "exponential", "poisson"]),
    max_nonzeros=st.sampled_from([1, 3]),
    eliminate=st.booleans(),
)
def test_the_risk_is_that_of_the_model(
    seed: int, loss: str, max_nonzeros: int, eliminate: bool
) -> None:
    X = table(seed)
    score, weights = target(X, seed), np.random.default_rng(seed).random(len(X)) + 0.1
    y = {"squared": score, "poisson": np.round(np.exp(score / 3))}.get(loss, score > 0)
    options: dict[str, Any] = {
        "loss": loss, "linear_terms": True, "missing": "own_category", "l2_penalty": 2.0,
        "max_nonzeros": max_nonzeros, "eliminate": eliminate,
    }  # fmt: skip
    fits = jr.boosting.path(X, y, weights, max_rules=5, **options)
    units = columns(X, weights)[1]
    coded = np.where(y, 1.0, -1.0) if y.dtype == bool else y
    for found in fits:
        model = found.model
        squares = float(np.sum(np.square(model.weights)))
        if model.linear is not None:
            on = [(0, 1, None, 2)[f] for f in model.linear.feature]
            squares += float(np.sum((model.linear.coefficients[:, 0] * units[on]) ** 2))
        scores = np.asarray(jr.decision_function(model, X)).ravel()
        losses = np.asarray(loss_by_name(loss).value(coded, scores))
        risk = float(np.average(losses, weights=weights)) + squares / weights.sum()
        assert found.objective == pytest.approx(risk, rel=1e-6)
    again = jr.boosting.fit(X, y, weights, max_rules=len(fits), **options)
    if len(fits) > 1:
        assert again.objective == pytest.approx(fits[-1].objective, rel=1e-12)
    assert all(len(f.model.conjunctions) <= m + 1 for m, f in enumerate(fits))


def test_it_finds_out_what_is_linear_and_what_is_not() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    linear = fit(X, X[:, 0] - 2 * X[:, 1], max_rules=2, l2_penalty=0.0, winsorise=0.0)
    assert len(linear.model.conjunctions) == 0
    assert linear.objective == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(np.sort(linear.model.linear.coefficients[:, 0]), [-2, 1])
    assert jr.complexity(linear.model) == 2
    middle = fit(X, 1.0 * (np.abs(X[:, 0]) < 0.5), loss="squared", max_rules=1)
    assert middle.model.linear is None
    both = fit(X, X[:, 0] + 2 * (np.abs(X[:, 1]) < 0.5), max_rules=2, l2_penalty=0.0, winsorise=0.0)
    assert [s.linear_term for s in both.details.stages].count("x0") == 1
    assert len(both.model.conjunctions) == 1
    assert both.objective < 0.1
    assert all(stage.status == "optimal" for stage in both.details.stages)


def test_constraints_hold() -> None:
    X = table()
    y = target(X)
    given: dict[str, Any] = {"missing": "own_category", "max_rules": 5}
    without = fit(X, y, forbidden=["a"], **given)
    assert 0 not in without.model.linear.feature
    against = fit(X, y, monotone={"a": -1, "b": 1}, **given)
    coefficients = dict(
        zip(against.model.linear.feature.tolist(), against.model.linear.coefficients[:, 0],
            strict=True)
    )  # fmt: skip
    assert coefficients[1] > 0
    assert coefficients.get(0, 0) <= 0
    grid = pd.concat([X.iloc[:20].assign(a=a) for a in np.linspace(-3, 3, 25)])
    assert (np.diff(jr.predict(against.model, grid).reshape(25, 20), axis=0) <= 1e-9).all()
    wanted = fit(X, y, required=["colour"], **given)
    assert "colour" in str(wanted.model)


def test_several_classes_have_terms_of_their_own() -> None:
    X = table()
    y = np.digitize(target(X), [-1, 1])
    found = fit(X, y, max_rules=2, missing="own_category", monotone={"a": 1})
    assert dict(found.model.options)["multiclass"] == "one_vs_rest"
    assert found.model.linear.coefficients.shape[1] == 3
    assert np.mean(jr.predict(found.model, X) == y) > 0.6


def test_choice_by_cross_validation_and_estimators() -> None:
    X = table()[["a", "b"]]
    y = target(table())
    chosen = jr.boosting.cross_validate(X, y, max_rules=3, linear_terms=True, n_folds=2)
    assert chosen.model.linear is not None
    from jaxrules.estimators import RuleBoostingRegressor

    estimator = RuleBoostingRegressor(max_rules=3, linear_terms=True).fit(X, y)
    assert estimator.score(X, y) > 0.8


def test_saved_and_exported_models_say_the_same(tmp_path: Path) -> None:
    X = table()
    found = fit(X, target(X) > 0, max_rules=4, missing="own_category")
    assert found.model.linear is not None
    check_elsewhere(found.model, X, tmp_path)


def test_time_limits_and_tables_without_numbers() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 6))
    assert fit(X, X[:, 0] + X[:, 1] > 0, time_limit=1e-3).status == "time_limit"
    colours = table()[["colour"]]
    assert fit(colours, target(table())).model.linear is None


def test_bad_input() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    others: list[dict[str, Any]] = [
        {"corrective": False, "objective": "second_order"}, {"intercept": False}
    ]  # fmt: skip
    for one in others:
        with pytest.raises(ValueError, match="linear_terms=True refits all weights"):
            fit(X, X[:, 0], **one)
    with pytest.raises(ValueError, match=r"winsorise must lie in \[0, 0.5\)"):
        fit(X, X[:, 0], winsorise=0.5)
