"""The positive class of two: `positive=` in learners and estimators, and who reads the models."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest
from sklearn.base import clone

import jaxrules as jr
from catalogue import CASES, LEARNERS, Case
from jaxrules import estimators
from jaxrules.learning.training import data_for
from problems import CLASSES, NOISY, X

Y = NOISY["labels"]  # "no" and "yes"
TURNED = np.where(Y == "no", "z", "a")
OF_CLASSES = [case for case in CASES if case.target == "labels"]
TAKE_CLASSES = {case.learner.name: case.learner for case in OF_CLASSES}
# Exactly symmetric: neither rows nor starts are drawn, and no tie goes to the first class.
SYMMETRIC = [
    case
    for case in OF_CLASSES
    if case.learner.models != "lists"
    and case.learner.name not in ("lltboost", "ltrnet")
    and not case.draws_rows
]
DATA = np.arange(40.0)[:, None] % 8
LABELS = np.where(DATA[:, 0] > 4, "Good", "Bad")


@pytest.mark.parametrize("case", OF_CLASSES, ids=str)
def test_it_is_the_label_that_would_be_last(case: Case) -> None:
    model, other = case.fit(Y, positive="no").model, case.fit(TURNED).model
    assert model.schema.classes == ("yes", "no")
    ours, theirs = jax.tree.leaves(model), jax.tree.leaves(other)
    assert all(map(np.array_equal, ours, theirs))
    assert ((jr.predict(model, X) == "no") == (jr.predict(other, X) == "z")).all()
    assert dict(model.options)["positive"] == "no"


@pytest.mark.parametrize("case", SYMMETRIC, ids=str)
def test_the_other_class_turns_the_signs(case: Case) -> None:
    one, other = (case.fit(Y, positive=label).model for label in ("yes", "no"))
    scores = [np.asarray(jr.decision_function(model, X)) for model in (one, other)]
    np.testing.assert_allclose(scores[0], -scores[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        jr.predict_proba(one, X), np.asarray(jr.predict_proba(other, X))[:, ::-1], atol=1e-6
    )


MONOTONE = sorted({"boosting", "glrm", "rulefit", "lire", "lltboost", "ltrnet", "drnet", "ssrl"})


@pytest.mark.parametrize("name", [*MONOTONE, "exact_list"])
@pytest.mark.parametrize("direction", [1, -1])
def test_monotone_columns_refer_to_it(name: str, direction: int) -> None:
    learner = LEARNERS[name]
    settings = {k: v for k, v in learner.settings.items() if k not in ("rules", "max_length")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of unused columns, see below
        model = learner.fit(
            DATA, LABELS, positive="Bad", monotone={"x0": direction}, **settings
        ).model
    ends = np.asarray(jr.predict_proba(model, [[0.0], [7.0]]))[:, 1]
    assert model.schema.classes == ("Good", "Bad")
    assert direction * (ends[1] - ends[0]) >= 0
    assert (direction == -1) == bool(abs(ends[1] - ends[0]) > 0.1)


@pytest.mark.parametrize("name", [*MONOTONE, "exact_list"])
def test_an_unused_monotone_column_is_said(name: str) -> None:
    learner = LEARNERS[name]
    settings = {k: v for k, v in learner.settings.items() if k not in ("rules", "max_length")}
    with pytest.warns(UserWarning, match="no rule uses the monotone") as caught:
        learner.fit(DATA, LABELS, monotone={"x0": -1}, **settings)
    said = [str(one.message) for one in caught if "no rule uses" in str(one.message)]
    assert said == [
        "no rule uses the monotone columns {'x0': -1}: along these directions the positive class "
        "'Good' becomes rarer; reverse them, or pass positive='Bad'"
    ]


def test_of_numbers_it_is_said_too() -> None:
    with pytest.warns(UserWarning, match=r"columns \{'x0': -1\}: along .* y falls; reverse"):
        jr.boosting.fit(DATA, 3.0 * DATA[:, 0], max_rules=2, monotone={"x0": -1})


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_a_column_that_is_used_or_has_no_trend() -> None:
    rng = np.random.default_rng(0)
    table = np.column_stack([DATA[:, 0], rng.normal(size=40)])
    both = {"x0": 1, "x1": 1}
    jr.boosting.fit(table, LABELS, max_rules=1, monotone=both)
    jr.boosting.fit(table, LABELS, max_rules=1, monotone={"x1": -1})
    jr.boosting.fit(table, LABELS, max_rules=1, monotone={"x0": -1}, time_limit=0)


@pytest.mark.parametrize("learner", TAKE_CLASSES.values(), ids=TAKE_CLASSES)
@pytest.mark.parametrize(
    ("positive", "y", "error", "said"),
    [
        ("maybe", Y, ValueError, r"positive='maybe' is not a class of y; they are 'no' and 'yes'"),
        (1, Y, ValueError, r"positive=1 is not a class of y"),
        (["yes"], Y, TypeError, "positive must be a label of y or None, got list"),
        ("high", CLASSES, ValueError, "y has 3 classes|is for two classes, but y has 3"),
    ],
)
def test_bad_labels_are_refused(
    learner: Any, positive: Any, y: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        learner.fit(X, y, missing="own_category", positive=positive)


@pytest.mark.parametrize(
    "fit", [jr.boosting.fit, jr.lire.fit, jr.paths.fit, jr.glrm.fit, jr.regression_list.fit]
)
def test_numbers_have_none(fit: Any) -> None:
    with pytest.raises(ValueError, match=r"positive=1\.0 is for two classes, but .* for numbers"):
        fit(DATA, 2.5 * DATA[:, 0], positive=1.0)


def test_labels_of_any_type() -> None:
    for y, positive in (
        (LABELS == "Bad", False), (np.where(LABELS == "Bad", 1, 2), np.int64(1)),
        (np.where(LABELS == "Bad", 0.5, 1.5), 0.5),
    ):  # fmt: skip
        model = jr.boosting.fit(DATA, y, loss="logistic", max_rules=1, positive=positive).model
        assert model.schema.classes == (np.unique(y)[1].item(), np.unique(y)[0].item())
        assert (jr.predict(model, DATA) == y).mean() > 0.9


def test_paths_and_cross_validation() -> None:
    for model in (
        jr.boosting.path(DATA, LABELS, max_rules=2, positive="Bad")[0].model,
        jr.boosting.cross_validate(DATA, LABELS, max_rules=2, n_folds=2, positive="Bad").model,
        jr.lire.cross_validate(DATA, LABELS, n_folds=2, positive="Bad").model,
        jr.ssrl.cross_validate(DATA, LABELS, n_folds=2, positive="Bad").model,
        jr.paths.cross_validate(DATA, LABELS, steps=1, n_folds=2, positive="Bad").model,
    ):
        assert model.schema.classes == ("Good", "Bad")
        assert (jr.predict(model, DATA) == LABELS).mean() > 0.9


# What reads the model


@pytest.fixture(scope="module")
def model() -> jr.RuleEnsemble:
    noisy = np.where(np.arange(40) % 11 == 0, "Bad", LABELS)
    return jr.boosting.fit(DATA, noisy, max_rules=1, positive="Bad").model


def test_the_first_line_says_it(model: jr.RuleEnsemble) -> None:
    assert str(model).splitlines()[:2] == [
        "Rule ensemble of 1 rule (positive class: Bad)", f"{model.heading}",
    ]  # fmt: skip
    assert "target == Bad" in model.heading


def test_further_work_keeps_it(model: jr.RuleEnsemble, tmp_path: Any) -> None:
    data = data_for(model, DATA, LABELS, jr.losses.logistic)
    assert data.positive == "Bad"
    assert ((data.target > 0) == (LABELS == "Bad")).all()
    jr.save(model, tmp_path / "model.json")
    point = jr.operating_point(model, DATA, LABELS, max_alarms=0.7)
    for other in (
        jr.load(tmp_path / "model.json"),
        jr.refit(model, DATA, LABELS, l2_penalty=1.0),
        jr.calibrate(model, DATA, LABELS),
        jr.simplify(model, DATA),
        jr.with_threshold(model, point),
        jr.finetune(model, DATA, LABELS, iterations=10, guard=False).model,
        jr.scorecard(model, DATA, LABELS).model,
        jr.boosting.fit(DATA, LABELS, max_rules=2, positive="Bad", first=model.conjunctions).model,
    ):
        assert other.schema.classes == ("Good", "Bad")
        alarms = jr.predict(other, DATA) == "Bad"
        assert ((jr.predict_proba(other, DATA)[:, 1] > 0.5) == alarms).all()
        assert alarms[LABELS == "Bad"].all()
        assert not alarms.all()
        assert jr.risk(other, DATA, LABELS) < 0.6
    assert point.true_positive_rate == 1.0  # alarms are on the bad ones


def test_a_start_of_the_other_order_is_refused(model: jr.RuleEnsemble) -> None:
    with pytest.raises(ValueError, match=r"start is for the classes \('Good', 'Bad'\)"):
        jr.lire.fit(DATA, LABELS, start=model)


def test_exports_name_it(model: jr.RuleEnsemble) -> None:
    space: dict[str, Any] = {}
    exec(jr.to_python(model), space)
    probabilities = np.asarray(jr.predict_proba(model, DATA))
    for i in (0, 7):
        row = {"x0": DATA[i, 0]}
        assert space["predict"](row) == jr.predict(model, DATA)[i]
        assert space["probabilities"](row)["Bad"] == pytest.approx(probabilities[i, 1])
    assert jr.to_sql(model, what="score") == jr.to_sql(model, what="score", label="Bad")


# Estimators


@pytest.mark.parametrize(
    "kind",
    [getattr(estimators, name) for name in estimators.__all__ if name.endswith("Classifier")],
)
def test_classifiers_keep_the_order_of_scikit_learn(kind: Any) -> None:
    fast = {"iterations": 300, "max_rules": 2, "rules": jr.boosting.fit(
        DATA, LABELS, max_rules=1).model.conjunctions}  # fmt: skip
    known = kind().get_params()
    own = {name: value for name, value in fast.items() if name in known}
    estimator = clone(kind(positive="Bad", **own)).fit(DATA, LABELS)
    assert estimator.classes_.tolist() == ["Bad", "Good"]
    assert estimator.model_.schema.classes == ("Good", "Bad")
    probabilities = estimator.predict_proba(DATA)
    likely = estimator.classes_[probabilities.argmax(axis=1)]
    decided = np.abs(probabilities[:, 0] - 0.5) > 1e-9
    assert (likely == estimator.predict(DATA))[decided].all()
    if hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(DATA)
        assert ((scores > 0) == (probabilities[:, 1] > 0.5)).all()
        np.testing.assert_allclose(scores, -jr.decision_function(estimator.model_, DATA))


def test_regressors_have_none() -> None:
    assert "positive" not in estimators.RuleBoostingRegressor().get_params()
    assert "positive:" not in (estimators.RuleBoostingRegressor.__init__.__doc__ or "")
    assert "positive:" in (estimators.RuleBoostingClassifier.__init__.__doc__ or "")
    with pytest.raises(TypeError, match="positive"):
        estimators.CoordinatePathRegressor(positive=1)  # type: ignore[call-arg]  # it has none


# A class of few rows

FEW = np.where(np.arange(40) < 2, "Rare", LABELS)
CHOOSERS: dict[str, Any] = {
    "boosting": lambda y: jr.boosting.cross_validate(DATA, y, max_rules=1),
    "glrm": lambda y: jr.glrm.cross_validate(DATA, y, rule_penalties=[0.05]),
    "rulefit": lambda y: jr.rulefit.cross_validate(DATA, y, rules=RULES, l1_penalties=[0.05]),
    "lire": lambda y: jr.lire.cross_validate(DATA, y, rules=RULES, global_penalties=[0.01]),
    "exact_list": lambda y: jr.exact_list.cross_validate(
        DATA, y, max_rules=1, literal_penalties=[1.0]
    ),
}
RULES = jr.boosting.fit(DATA, LABELS, max_rules=1).model.conjunctions


@pytest.mark.parametrize("name", CHOOSERS)
def test_folds_of_a_rare_class(name: str) -> None:
    model = CHOOSERS[name](FEW).model
    assert set(model.schema.classes) == {"Bad", "Good", "Rare"}
    with pytest.raises(ValueError, match="y has only one row of class 'Rare', too few"):
        CHOOSERS[name](np.where(np.arange(40) < 1, "Rare", LABELS))


def test_ssrl_wants_a_row_in_every_fold() -> None:
    with pytest.raises(ValueError, match="fewer rows than n_folds = 5: 2 of class 'Rare'"):
        jr.ssrl.cross_validate(DATA, FEW)
