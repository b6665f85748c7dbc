"""Importances of columns, by hand and by bootstrap; rules as columns in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import jaxrules as jr
from jaxrules.estimators import (
    CoordinatePathRegressor,
    ExactRuleListClassifier,
    RuleBoostingClassifier,
    RuleBoostingRegressor,
    RuleFeatures,
    RuleFitRegressor,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.integers(0, 4, (120, 3)).astype(float), columns=["a", "b", "c"])
Y = np.where(((X["a"] > 1) & (X["b"] > 0)) ^ (RNG.random(120) < 0.1), "yes", "no")
C = jr.Condition
SCHEMA = jr.as_table(X).schema
RULES = [[C.above(0, 1.0), C.above(1, 0.0)], [C.above(2, 2.0)]]


def model(linear: bool = False) -> jr.RuleEnsemble:
    terms = jr.LinearTerms(
        np.array([2], np.int32), np.array([[0.5]]), np.array([-np.inf]), np.array([2.0])
    )
    return jr.RuleEnsemble(
        jr.Conjunctions.build(SCHEMA.with_classes(("no", "yes")), RULES),
        np.array([[2.0], [-1.0]]),
        np.array([0.3]),
        terms if linear else None,
        "logistic",
    )


def values(found: tuple[jr.ColumnImportance, ...]) -> np.ndarray:
    assert [one.name for one in found] == ["a", "b", "c"]
    return np.array([one.value for one in found])


@pytest.mark.parametrize("linear", [False, True])
def test_columns_share_their_rules(linear: bool) -> None:
    first, second = (X["a"] > 1) & (X["b"] > 0), X["c"] > 2
    expected = np.array([first.std(ddof=0), first.std(ddof=0), second.std(ddof=0)])
    expected[2] += 0.5 * X["c"].clip(upper=2).std(ddof=0) * linear
    found = values(jr.feature_importance(model(linear), X))
    np.testing.assert_allclose(found, expected / expected.sum())


@pytest.mark.parametrize("linear", [False, True])
def test_local_importances_sum_to_the_score(linear: bool) -> None:
    one = model(linear)
    for i in range(8):
        found = values(jr.local_importance(one, X, X.iloc[[i]]))
        scores = jr.decision_function(one, X)
        assert found.sum() == pytest.approx(scores[i] - scores.mean())
    fit = jr.paths.fit(X, X["a"] - 2 * X["c"], steps=3, method="local", restarts=1)
    scores = jr.decision_function(fit.model, X)
    found = values(jr.local_importance(fit.model, X, X.iloc[[3]]))
    assert found.sum() == pytest.approx(scores[3] - scores.mean())
    assert values(jr.feature_importance(fit.model, X))[2] > 0.5


def test_rule_lists() -> None:
    listed = jr.RuleList(
        model().conjunctions,
        np.array([1, 0, 1], np.int32),
        np.array([[0.2, 0.8], [0.9, 0.1], [0.4, 0.6]]),
    )
    decided = np.bincount(listed.position(jr.as_table(X)), minlength=3)
    expected = np.array([decided[0] / 2, decided[0] / 2, decided[1]])
    np.testing.assert_allclose(values(jr.feature_importance(listed, X)), expected / expected.sum())
    p = jr.predict_proba(listed, X)[:, 1]
    found = values(jr.local_importance(listed, X, X.iloc[[0]]))
    assert found.sum() == pytest.approx(p[0] - p.mean())


def test_bootstrap_fits_give_standard_errors() -> None:
    found = jr.stability(
        lambda X, y: jr.boosting.fit(X, y, max_rules=2, max_cut_points=3), X, Y, replicates=4
    )
    assert len(found.models) == 4
    columns = jr.feature_importance(found, X)
    each = [values(jr.feature_importance(one, X)) for one in found.models]
    np.testing.assert_allclose([one.error for one in columns], np.std(each, axis=0, ddof=1))
    assert all(one.error is not None for one in jr.local_importance(found, X, X[:1]))


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="row must be a table of one row, got 2"):
        jr.local_importance(model(), X, X[:2])
    with pytest.raises(ValueError, match="X has no rows"):
        jr.feature_importance(model(), X[:0])
    with pytest.raises(TypeError, match="model must be a jaxrules model"):
        jr.feature_importance(X, X)
    with pytest.raises(TypeError, match="estimator must be one of"):
        RuleFeatures(LogisticRegression()).fit(X, Y)


def test_selection_by_importance() -> None:
    estimator = RuleBoostingClassifier(max_rules=2).fit(X, Y)
    assert estimator.feature_importances_.shape == (3,)
    assert estimator.feature_importances_.sum() == pytest.approx(1.0)
    chosen = SelectFromModel(RuleBoostingClassifier(max_rules=2), threshold=0.2).fit(X, Y)
    assert chosen.get_feature_names_out().tolist() == ["a", "b"]
    assert RFE(RuleBoostingClassifier(max_rules=2), n_features_to_select=2).fit(
        X, Y
    ).get_support().tolist() == [True, True, False]
    for kind in (ExactRuleListClassifier(max_rules=1), CoordinatePathRegressor(steps=2)):
        y = Y if isinstance(kind, ExactRuleListClassifier) else X["a"].to_numpy()
        assert kind.fit(X, y).feature_importances_.sum() == pytest.approx(1.0)


def test_logarithms_of_probabilities() -> None:
    estimator = RuleBoostingClassifier(max_rules=2).fit(X, Y)
    np.testing.assert_allclose(
        estimator.predict_log_proba(X), np.log(estimator.predict_proba(X)), rtol=1e-12
    )


@pytest.mark.full
def test_rules_as_columns() -> None:
    features = RuleFeatures(RuleBoostingClassifier(max_rules=3))
    matrix = features.fit_transform(X, Y)
    rules = features.estimator_.model_.conjunctions
    names = list(dict.fromkeys(rules.describe(r) for r in range(len(rules))))  # equal ones once
    assert features.get_feature_names_out().tolist() == names
    for name, column in zip(names, matrix.T, strict=True):
        place = [rules.describe(r) for r in range(len(rules))].index(name)
        np.testing.assert_array_equal(column, rules.satisfied(jr.as_table(X))[:, place])
    frame = features.set_output(transform="pandas").transform(X)
    assert frame.columns.tolist() == features.get_feature_names_out().tolist()
    whole = make_pipeline(clone(features), LogisticRegression()).fit(X, Y)
    assert whole.score(X, Y) > 0.8
    searched = GridSearchCV(
        make_pipeline(clone(features), LogisticRegression()),
        {"rulefeatures__estimator__max_rules": [1, 2]},
        cv=2,
    ).fit(X, Y)
    assert searched.best_score_ > 0.7
    numbers = RuleFeatures(RuleBoostingRegressor(max_rules=2)).fit(X.to_numpy(), X["c"].to_numpy())
    assert numbers.transform(X.to_numpy()).shape == (120, 2)


@pytest.mark.full
def test_the_default_estimator_follows_the_target() -> None:
    y = X["a"] + 0.01 * RNG.normal(size=120)
    assert isinstance(RuleFeatures().fit(X, y).estimator_, RuleFitRegressor)


@pytest.mark.full
def test_plots() -> None:
    plt: Any = pytest.importorskip("matplotlib.pyplot")
    found = jr.stability(
        lambda X, y: jr.boosting.fit(X, y, max_rules=2, max_cut_points=3), X, Y, replicates=3
    )
    ax = jr.plots.feature_importance(found, X)
    best = max(jr.feature_importance(found, X), key=lambda one: one.value)
    assert ax.patches[0].get_width() == pytest.approx(best.value)
    assert len(ax.containers) == 2  # bars and their errors
    assert jr.plots.local_importance(model(), X, X[:1]).get_xlabel() == "score against the mean row"
    sequence = jr.paths.fit(X, X["a"] - 2 * X["c"], steps=3, method="local", restarts=1).model
    ax, first = jr.plots.coefficient_path(sequence), min(sequence.moved)
    line = ax.get_lines()[[text.get_text() for text in ax.texts].index(sequence.names[first])]
    np.testing.assert_allclose(line.get_ydata(), [sequence.slopes(k)[first] for k in range(4)])
    path = jr.rulefit.path(X, Y, rules=model().conjunctions, n_penalties=4)
    ax = jr.plots.coefficient_path(path)
    assert {text.get_text() for text in ax.texts} <= {"a > 1 & b > 0", "c > 2"}
    with pytest.raises(TypeError, match="path must be a coordinate path"):
        jr.plots.coefficient_path([1])
    plt.close("all")


def test_labels_of_a_path_are_apart_and_few() -> None:
    values, gap = np.sort(np.random.default_rng(0).normal(size=12)), 0.3
    heights = np.array(jr.plots._apart(values, gap))
    assert (np.diff(heights) >= gap - 1e-12).all()
    assert heights.mean() == pytest.approx(values.mean())
    assert jr.plots._apart(np.array([0.0, 1.0]), gap) == [0.0, 1.0]
    X, y = jr.datasets.load("diabetes").X, jr.datasets.load("diabetes").y
    fits = jr.rulefit.path(X, y, l1_penalties=[20.0, 5.0])
    ax = jr.plots.coefficient_path(fits, most=3)
    assert len(ax.texts) == 3
    assert len(ax.get_lines()) > 4
