"""RuleFit against scikit-learn and against its own optimality conditions."""

import itertools
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1
from sklearn.linear_model import Lasso, LogisticRegression

import jaxrules as jr
from compiling import compilations
from jaxrules.learning.cross_validation import folds
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.solvers.linear import on_host
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Deadline


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return jr.as_table(X), np.array(["malignant", "benign"])[y]


@pytest.fixture(scope="module")
def cancer_rules(cancer):
    X, y = cancer
    return jr.extract_rules(jr.default_forest(X, y, n_trees=15, seed=0), X)


def test_the_walk_through_the_house(cancer):
    X, y = cancer
    fit = jr.rulefit.fit(X, y, l1_penalty=0.05, seed=0)
    assert fit.status == "converged"
    assert fit.gap <= 1e-6
    assert jr.accuracy(fit.model, X, y) > 0.9
    assert 0 < jr.support(fit.model) == len(fit.model.conjunctions) < fit.details["n_candidates"]
    assert "Rule ensemble" in str(fit.model)
    parts = jr.explain(fit.model, X[:1])[0].parts
    assert sum(float(part.weight[0]) for part in parts) == pytest.approx(
        jr.decision_function(fit.model, X[:1])[0]
    )


def test_logistic_objective_equals_scikit_learn(cancer, cancer_rules):
    X, y = cancer
    penalty = 0.01
    fit = jr.rulefit.fit(X, y, l1_penalty=penalty, rules=cancer_rules, tolerance=1e-9)
    R = cancer_rules.satisfied(X).astype(float)
    # saga leaves the intercept unpenalised, as RuleFit does
    oracle = LogisticRegression(
        C=1 / (len(y) * penalty),
        l1_ratio=1,
        solver="saga",
        tol=1e-9,
        max_iter=100_000,
        random_state=0,
    ).fit(R, y)
    sign = np.where(y == oracle.classes_[1], 1.0, -1.0)
    theirs = (
        np.logaddexp(0, -sign * oracle.decision_function(R)).mean()
        + penalty * np.abs(oracle.coef_).sum()
    )
    assert fit.objective == pytest.approx(theirs, rel=1e-6)
    assert fit.bound <= theirs
    np.testing.assert_allclose(
        jr.decision_function(fit.model, X), oracle.decision_function(R), atol=2e-3
    )


def test_squared_objective_equals_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    table = jr.as_table(X)
    rules = jr.extract_rules(
        jr.default_forest(table, y, classification=False, n_trees=10, seed=1), table
    )
    penalty = 8.0
    fit = jr.rulefit.fit(X, y, l1_penalty=penalty, rules=rules, loss="squared", tolerance=1e-10)
    oracle = Lasso(alpha=penalty / 2, tol=1e-10, max_iter=100_000).fit(
        rules.satisfied(table).astype(float), y
    )
    predicted = oracle.predict(rules.satisfied(table).astype(float))
    theirs = ((y - predicted) ** 2).mean() + penalty * np.abs(oracle.coef_).sum()
    assert fit.objective == pytest.approx(theirs, rel=1e-7)
    np.testing.assert_allclose(jr.predict(fit.model, X), predicted, atol=1e-2)


def test_objective_is_that_of_the_model(cancer, cancer_rules):
    X, y = cancer
    fit = jr.rulefit.fit(X, y, l1_penalty=0.02, rules=cancer_rules, linear_terms=True)
    linear = fit.model.linear
    clipped_std = np.array([
        np.clip(X.columns[f], low, high).std()
        for f, low, high in zip(linear.feature, linear.lower, linear.upper, strict=True)
    ])  # fmt: skip
    norm = (
        np.abs(fit.model.weights).sum()
        + (np.abs(linear.coefficients[:, 0]) * clipped_std / 0.4).sum()
    )
    assert fit.objective == pytest.approx(jr.risk(fit.model, X, y) + 0.02 * norm, rel=1e-9)


def test_path_starts_empty_and_is_monotone(cancer, cancer_rules):
    X, y = cancer
    fits = jr.rulefit.path(X, y, rules=cancer_rules, n_penalties=8)
    penalties = [fit.details["l1_penalty"] for fit in fits]
    assert penalties == sorted(penalties, reverse=True)
    assert jr.support(fits[0].model) == 0
    assert [jr.support(fit.model) > 0 for fit in fits[1:]] == [True] * 7
    risks = [jr.risk(fit.model, X, y) for fit in fits]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(risks))
    alone = jr.rulefit.fit(X, y, l1_penalty=penalties[4], rules=cancer_rules)
    assert alone.objective == pytest.approx(fits[4].objective, rel=2e-6)


def test_largest_penalty_is_exact(cancer, cancer_rules):
    X, y = cancer
    largest = jr.rulefit.path(X, y, rules=cancer_rules, n_penalties=2)[0].details["l1_penalty"]
    just_below, at = jr.rulefit.path(
        X, y, rules=cancer_rules, l1_penalties=[largest, 0.999 * largest], tolerance=1e-10
    )[::-1]
    assert jr.support(at.model) == 0
    assert jr.support(just_below.model) >= 1


def test_cross_validation_chooses_and_is_reproducible(cancer, cancer_rules):
    X, y = cancer
    first, second = (jr.rulefit.fit(X, y, rules=cancer_rules, n_folds=3, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.model.weights, second.model.weights)
    found = first.details["cross_validation"]
    assert first.details["l1_penalty"] == found.settings[np.nanargmin(found.risk)]["l1_penalty"]
    sparser = jr.rulefit.fit(X, y, rules=cancer_rules, n_folds=3, seed=4, one_standard_error=True)
    assert sparser.details["l1_penalty"] >= first.details["l1_penalty"]
    assert jr.support(sparser.model) <= jr.support(first.model)


def test_cross_validation_ends_where_the_held_out_loss_has_stopped_falling(cancer, cancer_rules):
    X, y = cancer
    fit = jr.rulefit.fit(X, y, rules=cancer_rules, n_folds=3)
    risk = fit.details["cross_validation"].risk
    reached = np.flatnonzero(~np.isnan(risk))
    assert len(risk) == 50
    assert len(reached) == 50 or reached[-1] - np.nanargmin(risk) == 5
    # Folds and the way down are rough, the result is not: it is that of the penalty
    # alone, to the tolerance.
    alone = jr.rulefit.fit(X, y, rules=cancer_rules, l1_penalty=fit.details["l1_penalty"])
    assert fit.gap <= 1e-6
    assert fit.objective == pytest.approx(alone.objective, rel=2e-6)


def test_the_held_out_loss_is_that_of_the_models_on_held_out_rows(cancer, cancer_rules):
    X, y = cancer
    fit = jr.rulefit.fit(X, y, rules=cancer_rules, n_folds=2, linear_terms=True, seed=3)
    fold_of = folds(jr.learning.training.training_data(X, y, jr.losses.logistic), 2, 3)
    found = fit.details["cross_validation"]
    at = np.flatnonzero(~np.isnan(found.risk))[-3]
    penalty, risks = found.settings[at]["l1_penalty"], []
    for k in range(2):
        inside, outside = fold_of != k, fold_of == k
        model = jr.rulefit.fit(
            X[inside], y[inside], rules=cancer_rules, l1_penalty=penalty, linear_terms=True
        ).model
        risks.append(jr.risk(model, X[outside], y[outside]))
    assert found.risk[at] == pytest.approx(np.mean(risks), rel=1e-2)


def test_linear_terms_are_winsorised_and_win_on_a_linear_target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[0, 0] = 1e6  # an outlier that winsorising tames
    y = np.clip(X[:, 0], -2, 2) * 3 + 0.1 * rng.normal(size=300)
    fit = jr.rulefit.fit(X, y, l1_penalty=0.02, loss="squared", linear_terms=True)
    assert 0 in fit.model.linear.feature
    assert np.isfinite(fit.model.linear.upper).all()
    assert ((jr.predict(fit.model, X) - y) ** 2).mean() < 0.3
    assert "x0" in str(fit.model)
    unclipped = jr.rulefit.fit(
        X, y, l1_penalty=0.02, loss="squared", linear_terms=True, winsorise=0
    )
    assert np.isinf(unclipped.model.linear.upper).all()


@settings(max_examples=10)
@given(st.integers(0, 2**31 - 1))
def test_integer_weights_equal_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0).astype(int)
    y[:2] = 0, 1
    weights = rng.integers(1, 4, 40)
    table = jr.as_table(X)
    rules = Conjunctions.build(
        table.schema, [[Condition.above(j, c)] for j in range(3) for c in (-0.5, 0.0, 0.5)]
    )
    weighted = jr.rulefit.fit(
        X, y, l1_penalty=0.02, rules=rules, sample_weight=weights, tolerance=1e-9
    )
    repeated = jr.rulefit.fit(
        np.repeat(X, weights, 0),
        np.repeat(y, weights),
        l1_penalty=0.02,
        rules=rules,
        tolerance=1e-9,
    )
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)


def test_time_limit_returns_the_best_so_far(cancer, cancer_rules):
    X, y = cancer
    ticks = iter(range(10**9))
    limit = Deadline(30, clock=lambda: next(ticks))
    fits = jr.rulefit.path(X, y, rules=cancer_rules, n_penalties=50, time_limit=limit)
    assert 1 <= len(fits) < 50
    assert fits[-1].status is Status.TIME_LIMIT
    assert "time_limit" in fits[-1].status.advice
    chosen = jr.rulefit.fit(
        X, y, rules=cancer_rules, time_limit=Deadline(60, clock=lambda: next(ticks))
    )
    assert chosen.status is Status.TIME_LIMIT


@pytest.mark.full
@pytest.mark.parametrize("l1_penalty", [None, 0.01])
@pytest.mark.parametrize("linear_terms", [False, True])
def test_with_little_time_rules_are_found_and_nothing_is_compiled(
    cancer, l1_penalty, linear_terms, monkeypatch
):
    X, y = cancer
    monkeypatch.setattr(on_host, "FEW", 0)
    ticks = itertools.count()
    limit = Deadline(2.5, clock=lambda: 0.002 * next(ticks))
    options = {"l1_penalty": l1_penalty, "linear_terms": linear_terms, "time_limit": limit}
    with compilations() as compiled:
        fit = jr.rulefit.fit(X, y, **options)
    assert set(compiled) <= {"stage"}  # JAX's own copy of an array
    assert jr.support(fit.model) > 0
    assert fit.bound <= fit.objective < 0.5 * 0.66  # that of the constant


def test_time_that_ends_in_the_first_folds_is_not_taken_for_a_choice(cancer, cancer_rules):
    X, y = cancer
    for seconds in range(2, 40):
        limit = Deadline(seconds, clock=map(float, itertools.count()).__next__)
        fit = jr.rulefit.fit(X, y, rules=cancer_rules, time_limit=limit)
        largest = fit.details["cross_validation"].settings[0]["l1_penalty"]
        assert fit.details["l1_penalty"] < largest / 10


def test_progress_is_reported(cancer, cancer_rules):
    X, y = cancer
    seen = []
    jr.rulefit.path(X, y, rules=cancer_rules, n_penalties=4, progress=seen.append)
    assert [p.done for p in seen] == [1, 2, 3, 4]
    assert {p.total for p in seen} == {4}
    assert {p.phase for p in seen} == {"search"}
    assert [p.size > 0 for p in seen] == [False, True, True, True]


def test_ctrl_c_before_the_first_solution_returns_the_constant(cancer, cancer_rules):
    X, y = cancer
    ticks = itertools.count()

    def clock():
        if next(ticks) == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return 0.0

    fit = jr.rulefit.fit(
        X, y, rules=cancer_rules, l1_penalty=0.01, time_limit=Deadline(1, clock=clock)
    )
    assert fit.status is Status.INTERRUPTED
    assert jr.support(fit.model) == 0
    np.testing.assert_allclose(
        jr.predict_proba(fit.model, X)[:, 1], np.mean(y == "malignant"), rtol=1e-6
    )


def test_a_path_has_one_bar_from_first_to_last(cancer, cancer_rules, drawn):
    X, y = cancer
    jr.rulefit.path(X, y, rules=cancer_rules, n_penalties=4, progress=True)
    assert [bar.n for bar in drawn] == [4]
    assert drawn[0].disable  # closed


def test_regression_on_friedman1():
    X, y = make_friedman1(n_samples=400, noise=0.1, random_state=0)
    fit = jr.rulefit.fit(X[:300], y[:300], loss="squared", linear_terms=True, n_folds=3)
    assert ((jr.predict(fit.model, X[300:]) - y[300:]) ** 2).mean() < 0.4 * y.var()


def test_missing_values_are_refused_or_a_category_of_their_own():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    job = np.where(x > 0, "a", "b").astype(object)
    y = np.where((x > 0) ^ (rng.random(200) < 0.05), "yes", "no")
    x[::7], job[::5] = np.nan, None
    frame = pandas.DataFrame({"x": x, "job": job})
    with pytest.raises(ValueError, match=r"missing values in 'x', 'job'.*own_category"):
        jr.rulefit.fit(frame, y, l1_penalty=0.01)
    fit = jr.rulefit.fit(frame, y, l1_penalty=0.01, missing="own_category", linear_terms=True)
    assert jr.accuracy(fit.model, frame, y) > 0.85
    reordered = frame[["job", "x"]]
    np.testing.assert_array_equal(jr.predict(fit.model, reordered), jr.predict(fit.model, frame))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"l1_penalty": None, "n_folds": 570}, ValueError, "n_folds must be at most 569"),
        ({"l1_penalty": None, "y": np.arange(569) == 5}, ValueError, "y has only one row of class"),
    ],
)
def test_bad_input_names_the_argument(cancer, cancer_rules, change, error, message):
    X, y = cancer
    arguments = {"X": X, "y": y, "l1_penalty": 0.01, "rules": cancer_rules} | change
    with pytest.raises(error, match=message):
        jr.rulefit.fit(**arguments)


def test_rules_of_other_columns_and_empty_paths_are_refused(cancer, cancer_rules):
    X, y = cancer
    with pytest.raises(ValueError, match="different columns"):
        jr.rulefit.fit(np.eye(569, 2), y, l1_penalty=0.01, rules=cancer_rules)
    with pytest.raises(ValueError, match="l1_penalties must be a non-empty sequence"):
        jr.rulefit.path(X, y, rules=cancer_rules, l1_penalties=[])
    with pytest.raises(ValueError, match="monotone needs l1_penalties above 0"):
        jr.rulefit.path(X, y, rules=cancer_rules, l1_penalties=[0.1, 0.0], monotone={0: 1})


def test_the_old_name_of_the_penalties_warns(cancer, cancer_rules):
    X, y = cancer
    new = jr.rulefit.path(X, y, rules=cancer_rules, l1_penalties=[0.02, 0.1])
    with pytest.warns(FutureWarning, match="rulefit.path: penalties is now called l1_penalties"):
        old = jr.rulefit.path(X, y, rules=cancer_rules, penalties=[0.02, 0.1])
    assert [fit.details.l1_penalty for fit in old] == [0.1, 0.02]
    assert [fit.objective for fit in old] == [fit.objective for fit in new]
    with pytest.raises(TypeError, match="penalties is the old name of l1_penalties"):
        jr.rulefit.path(X, y, rules=cancer_rules, penalties=[0.1], l1_penalties=[0.1])


def test_every_model_keeps_the_settings_that_repeat_it(cancer, cancer_rules):
    X, y = cancer
    same = {"rules": cancer_rules, "tolerance": 1e-9, "linear_terms": True}
    fits = [
        jr.rulefit.path(X, y, l1_penalties=[0.1, 0.02], **same)[1],
        jr.rulefit.cross_validate(X, y, l1_penalties=[0.1, 0.02], n_folds=2, **same),
    ]
    for fit in fits:
        settings = dict(fit.model.options)
        assert settings.pop("learner") == "rulefit"
        assert "l1_penalties" not in settings
        again = jr.rulefit.fit(X, y, **{**settings, "rules": cancer_rules})
        assert again.objective == pytest.approx(fit.objective, rel=1e-8)


def test_classes_share_the_penalty_and_have_their_own_bounds(cancer, cancer_rules):
    X, _ = cancer
    y = np.digitize(X.columns[0], [12, 15])
    fit = jr.rulefit.fit(X, y, rules=cancer_rules, l1_penalty=0.02, multiclass="one_vs_rest")
    assert fit.details["l1_penalty"] == 0.02
    assert fit.objective == pytest.approx(np.mean(fit.details.objectives))
    assert fit.bound == pytest.approx(np.mean(fit.details.bounds))
    assert fit.details.statuses == (Status.CONVERGED,) * 3


@pytest.mark.filterwarnings("ignore:no column of X varies")
@pytest.mark.parametrize("multiclass", ["joint", "one_vs_rest"])
def test_columns_without_variation_give_the_constant(multiclass):
    fit = jr.rulefit.fit(np.zeros((9, 2)), ["a", "b", "c"] * 3, multiclass=multiclass)
    assert len(fit.model.conjunctions) == 0
    np.testing.assert_allclose(jr.predict_proba(fit.model, np.zeros((1, 2))), 1 / 3, rtol=1e-6)
