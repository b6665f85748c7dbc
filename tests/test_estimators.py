"""The scikit-learn classes: scikit-learn's own checks for all of them, and what those do not
check.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import jaxrules as jr
from jaxrules import estimators
from jaxrules.estimators import (
    GLRMClassifier,
    LIREClassifier,
    RuleBoostingClassifier,
    RuleBoostingRegressor,
)

CLASSES = [getattr(estimators, name) for name in estimators.__all__ if name != "RuleFeatures"]
QUICK = [estimators.CoordinatePathRegressor, GLRMClassifier, RuleBoostingRegressor]
DRAWS_ROWS = {
    **dict.fromkeys(
        ("LIRE", "RuleFit"), "a forest draws rows: a repeated row is not a row of weight two"
    ),
    "LLTBoost": "rows are drawn for validation: a repeated row is not a row of weight two",
    **dict.fromkeys(
        ("LTRNet", "DRNet"), "rows are drawn for batches: a repeated row is not a row of weight two"
    ),
}


def of(table: dict[str, Any], estimator: Any) -> Any:
    return next(
        (value for name, value in table.items() if type(estimator).__name__.startswith(name)), None
    )


def exceptions(estimator: Any) -> dict[str, str]:
    reason = of(DRAWS_ROWS, estimator)
    return {} if reason is None else {"check_sample_weight_equivalence_on_dense_data": reason}


@pytest.mark.full
@parametrize_with_checks([kind() for kind in QUICK], expected_failed_checks=exceptions)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [kind() for kind in CLASSES if kind not in QUICK], expected_failed_checks=exceptions
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_of_the_others(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_parameters_are_those_of_the_learner(kind: Any) -> None:
    parameters = inspect.signature(kind._learner).parameters.values()
    given = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    for of_rows in ("sample_weight", "offset", "exposure", "groups"):
        given.pop(of_rows, None)
    own = kind().get_params()
    added = {"class_weight"} if is_classifier(kind()) else set()
    if not is_classifier(kind()):
        given.pop("positive")
    assert own.keys() - given.keys() == added | {"penalty"}
    assert {
        name for name in given if own[name] is not given[name] and own[name] != given[name]
    } <= {"loss", "cost"}
    assert repr(kind(time_limit=5.0)) == f"{kind.__name__}(time_limit=5.0)"
    with pytest.raises(TypeError, match="unexpected keyword argument 'rulez'"):
        kind(rulez=1)


def test_old_names_of_parameters_warn_and_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jr.boosting.Options, "renamed", {"n_rules": "max_rules"})
    with pytest.warns(FutureWarning, match="RuleBoostingClassifier: n_rules is now called max_ru"):
        model = RuleBoostingClassifier(n_rules=2)
    with pytest.warns(FutureWarning, match="n_rules is now called max_rules"):
        assert model.set_params(n_rules=4, seed=1) is model
    assert (model.max_rules, model.seed) == (4, 1)
    assert "n_rules" not in clone(model).get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'rulez'"):
        model.set_params(rulez=1)


def people(rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, rows), "job": rng.choice(["clerk", "cook", "smith"], rows)}
    )
    return frame, np.where((frame["age"] > 40) ^ (frame["job"] == "cook"), "yes", "no")


@pytest.mark.parametrize(
    "convert",
    [lambda X: X, lambda X: pl.DataFrame(X.to_dict("list")), jr.as_table],
    ids=["pandas", "polars", "table"],
)
def test_dataframes_with_text(convert: Callable[[pd.DataFrame], Any]) -> None:
    frame, y = people()
    X = convert(frame)
    model = RuleBoostingClassifier().fit(X, y)
    assert model.feature_names_in_.tolist() == ["age", "job"]
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, y) > 0.9
    assert {"age", "job"} == set(model.model_.schema.names)
    np.testing.assert_array_equal(model.predict(X), jr.predict(model.model_, X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["job", "age"]])


def test_what_fit_returns_is_kept() -> None:
    frame, y = people()
    model = RuleBoostingClassifier(max_rules=2).fit(frame, y)
    direct = jr.boosting.fit(frame, y, loss="logistic", max_rules=2)
    assert (model.fit_.objective, model.fit_.status) == (direct.objective, direct.status)
    assert str(model.model_) == str(direct.model)
    assert len(jr.explain(model.model_, frame[:1])) == 1


@pytest.mark.full
def test_columns_of_probabilities_follow_the_classes() -> None:
    frame, y = people()
    X, y = frame[["age"]], np.array(["b", "c", "a"])[np.digitize(frame["age"], [35, 55])]
    for model in (RuleBoostingClassifier(), estimators.SSRLClassifier()):
        model.fit(X, y)
        assert model.classes_.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(
            model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X)
        )


def test_pipelines_and_searches() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=["a", "b", "c"])
    y = (X["a"] + X["b"] > 0).astype(int)
    scaled = make_pipeline(
        StandardScaler().set_output(transform="pandas"), RuleBoostingClassifier()
    )
    grid = GridSearchCV(scaled, {"ruleboostingclassifier__max_rules": [1, 5]}, cv=3).fit(X, y)
    assert grid.best_params_ == {"ruleboostingclassifier__max_rules": 5}
    assert grid.best_estimator_[-1].model_.schema.names == ("a", "b", "c")
    assert cross_val_score(clone(scaled), X, y, cv=3).mean() > 0.8


def test_class_weights_are_row_weights() -> None:
    frame, y = people()
    weights = np.where(y == "yes", 3.0, 1.0)
    half = np.where(np.arange(len(y)) < 60, 0.5, 1.0)
    by_class = GLRMClassifier(class_weight={"no": 1, "yes": 3}).fit(frame, y, sample_weight=half)
    by_row = GLRMClassifier().fit(frame, y, sample_weight=weights * half)
    np.testing.assert_array_equal(by_class.predict_proba(frame), by_row.predict_proba(frame))


def test_missing_values_by_rule() -> None:
    X = np.array([[1.0, np.nan], [2.0, 1.0], [np.nan, 3.0], [4.0, 0.0]] * 10)
    y = np.array([0, 0, 1, 1] * 10)
    with pytest.raises(ValueError, match='values .NaN.; fill.* missing="own_category"'):
        RuleBoostingClassifier().fit(X, y)
    assert RuleBoostingClassifier(missing="own_category").fit(X, y).score(X, y) == 1.0


def test_labels_that_are_no_text_and_no_integers() -> None:
    X = np.repeat([0.0, 1.0], 20)[:, None]
    for labels in ([False, True], [1.0, 2.0], [-1, 7]):
        y = np.repeat(labels, 20)
        model = RuleBoostingClassifier(max_rules=2).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), y)
        assert model.predict(X).dtype == y.dtype
    intervals = pd.cut(pd.Series(X[:, 0]), 2)
    assert RuleBoostingClassifier(max_rules=1).fit(X, intervals).score(X, intervals) == 1.0


def test_what_scikit_learn_would_take_for_something_else() -> None:
    X, y = np.arange(8.0).reshape(4, 2), ["a", "b", "a", "b"]
    model = RuleBoostingClassifier(max_rules=1)
    with pytest.raises(TypeError, match="X is a masked array"):
        model.fit(np.ma.masked_equal(X, 3.0), y)
    with pytest.raises(TypeError, match="y is a masked array"):
        model.fit(X, np.ma.masked_equal([0, 1, 0, 1], 1))
    with pytest.raises(TypeError, match="y has values of type int, str"):
        model.fit(X, ["a", 1, "a", 1])
    with pytest.raises(ValueError, match="y is empty"):
        model.fit(X, [])
    with pytest.raises(ValueError, match="X has no rows"):
        model.fit(pd.DataFrame(X)[:0], np.array([], bool))
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(X, np.array([0, 1, 0, np.nan]))
    with pytest.raises(ValueError, match="X has columns of the same name"):
        model.fit(pd.DataFrame(X, columns=["a", "a"]), y)
    with pytest.raises(ValueError, match="missing must be"):
        RuleBoostingClassifier(missing=np.ones(2)).fit(X, y)


def test_losses_of_the_other_kind_are_refused() -> None:
    X, y = np.arange(40.0)[:, None], np.repeat([0, 1], 20)
    with pytest.raises(ValueError, match="loss='squared' does not suit a classifier"):
        LIREClassifier(loss="squared").fit(X, y)
    with pytest.raises(ValueError, match="loss='logistic' does not suit a regressor"):
        RuleBoostingRegressor(loss="logistic").fit(X, y)
    assert (RuleBoostingRegressor(loss="poisson").fit(X, y + 1).predict(X) > 0).all()


def test_penalties_are_chosen_by_cross_validation() -> None:
    frame, y = people()
    model = RuleBoostingClassifier(penalty="cv", max_rules=2).fit(frame, y)
    direct = jr.boosting.cross_validate(frame, y, loss="logistic", max_rules=2)
    assert str(model.model_) == str(direct.model)
    assert len(model.fit_.details["cross_validation"].risk) == 4  # two sizes, two ridges
    assert jr.support(estimators.LLTBoostClassifier(penalty="cv").fit(frame, y).model_) > 0
    plain = RuleBoostingClassifier(penalty="cv").fit(frame, y)
    assert str(plain.model_) == str(jr.boosting.cross_validate(frame, y, loss="logistic").model)
    with pytest.raises(ValueError, match="global_penalty cannot be set with penalty"):
        LIREClassifier(penalty="cv", global_penalty=0.1).fit(frame, y)
    with pytest.raises(ValueError, match='penalty must be "fit" or "cv"'):
        GLRMClassifier(penalty="best").fit(frame, y)


def test_fitted_estimators_are_pickled_and_cloned() -> None:
    frame, y = people()
    for estimator in (RuleBoostingClassifier(max_rules=2), estimators.SSRLClassifier(max_rules=2)):
        model = estimator.fit(frame, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
        assert again.get_params() == clone(model).get_params() == model.get_params()
        assert not hasattr(clone(model), "model_")


def test_one_row_no_rows_and_sparse_matrices() -> None:
    """A table of one row is a table; without rows there are no predictions, and estimators refuse
    it as scikit-learn's do; sparse matrices are refused everywhere.
    """
    X, y = np.repeat(np.arange(4.0), 10)[:, None], np.repeat(["a", "a", "b", "b"], 10)
    for estimator in (RuleBoostingClassifier(max_rules=2), estimators.SSRLClassifier(max_rules=2)):
        estimator.fit(X, y)
        model = estimator.model_
        assert estimator.predict(X[:1]).tolist() == jr.predict(model, X[:1]).tolist() == ["a"]
        assert len(jr.explain(model, X[:1])) == 1
        assert jr.predict(model, X[:0]).shape == (0,)
        assert jr.predict_proba(model, X[:0]).shape == (0, 2)
        assert jr.explain(model, X[:0]) == []
        with pytest.raises(ValueError, match="0 sample"):
            estimator.predict(X[:0])
        with pytest.raises(ValueError, match="X has no rows"):
            jr.accuracy(model, X[:0], y[:0])
        sparse = scipy.sparse.csr_matrix(X)
        for ask in (jr.predict, jr.predict_proba, jr.explain):
            with pytest.raises(TypeError, match=r"pass X\.toarray\(\)"):
                ask(model, sparse)
        with pytest.raises(TypeError, match="(?i)sparse"):
            estimator.fit(sparse, y)
        with pytest.raises(TypeError, match="(?i)sparse"):
            estimator.predict(sparse)
        with pytest.raises(ValueError, match=r"X\.reshape\(1, -1\)"):
            jr.predict(model, X[0])


# Pickles and workers


@pytest.mark.parametrize("kind", CLASSES)
def test_estimators_are_pickled(kind: Any) -> None:
    unfitted = pickle.loads(pickle.dumps(kind()))
    assert unfitted.get_params().keys() == kind().get_params().keys()


@pytest.mark.parametrize("name", ["RuleBoostingClassifier", "LIREClassifier", "RuleFeatures"])
def test_fitted_estimators_are_pickled(name: str) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": rng.choice(["u", "v"], 80)})
    y = np.where((X["a"] > 0) & (X["b"] == "u"), "yes", "no")
    kind = getattr(estimators, name)
    estimator = kind(RuleBoostingClassifier(max_rules=2)) if name == "RuleFeatures" else kind()
    estimator.fit(X, y)
    again = pickle.loads(pickle.dumps(estimator))
    if name == "RuleFeatures":
        np.testing.assert_array_equal(again.transform(X), estimator.transform(X))
        return
    np.testing.assert_array_equal(again.predict_proba(X), estimator.predict_proba(X))
    assert str(again.model_) == str(estimator.model_)
    assert again.fit_.status is estimator.fit_.status
    np.testing.assert_array_equal(again.feature_importances_, estimator.feature_importances_)


@pytest.mark.full
def test_a_search_over_settings_in_workers() -> None:
    """loky's workers are new processes: estimators and their settings are pickled."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] > 0) & (X[:, 1] > -0.5)
    settings = {"max_rules": [1, 3], "max_cut_points": [3]}
    found = {
        jobs: GridSearchCV(
            RuleBoostingClassifier(), settings, cv=2, n_jobs=jobs, error_score="raise"
        ).fit(X, y)
        for jobs in (1, 2)
    }
    scores = [one.cv_results_["mean_test_score"] for one in found.values()]
    np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(*(one.predict(X) for one in found.values()))


@pytest.mark.parametrize("name", ["RuleBoostingClassifier", "SSRLClassifier"])
def test_missing_labels_are_named(name: str) -> None:
    labels = ["a", "b"] * 10
    X = np.arange(20.0)[:, None]
    for y in (
        [*labels[:-1], None],
        np.array([*labels[:-1], np.nan], object),
        pd.Series([*labels[:-1], None]),
        pd.Series([*labels[:-1], None], dtype="category"),
        pd.Categorical([*labels[:-1], None], ["b", "a"], ordered=True),
    ):
        with pytest.raises(ValueError, match="y has missing values; drop those rows"):
            getattr(estimators, name)().fit(X, y)
