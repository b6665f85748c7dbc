"""Targets that declare an order, and what monotone columns mean with several classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jaxrules as jr
from jaxrules import estimators

ORDER = ("low", "medium", "high")
_random = np.random.default_rng(0)
X = pd.DataFrame(_random.normal(size=(240, 2)), columns=["x", "z"])
LABELS = np.array(ORDER)[(X["x"] > -0.5).astype(int) + (X["x"] > 0.6)]
Y = pd.Categorical(LABELS, [*ORDER, "never"], ordered=True)
FORMS: dict[str, Any] = {
    "pandas": Y,
    "a series": pd.Series(Y),
    "polars": pl.Series(LABELS.tolist(), dtype=pl.Enum(ORDER)),
    "numbers": pd.Categorical(LABELS, ORDER).codes,
}
QUICK: dict[str, dict[str, Any]] = {
    "boosting": {"max_rules": 4},
    "glrm": {},
    "rulefit": {},
    "lire": {"restarts": 2},
    "lltboost": {"max_rules": 3},
    "ltrnet": {"max_rules": 4, "restarts": 2, "iterations": 200},
    "drnet": {"restarts": 2},
    "ssrl": {},
    "exact_list": {"max_rules": 2},
}


@pytest.mark.parametrize(
    ("name", "form"),
    [*((name, "pandas") for name in QUICK), ("boosting", "polars"), ("ssrl", "numbers")],
)
def test_a_monotone_column_raises_the_probability_of_every_upper_part(name: str, form: str) -> None:
    y = FORMS[form]
    model = getattr(jr, name).fit(X, y, monotone={"x": 1}, **QUICK[name]).model
    assert model.schema.classes == ((0, 1, 2) if form == "numbers" else ORDER)
    assert jr.accuracy(model, X, y) > 0.85
    rising = pd.DataFrame({"x": np.linspace(-4, 4, 300), "z": 0.3})
    codes = [model.schema.classes.index(label) for label in jr.predict(model, rising).tolist()]
    assert (np.diff(codes) >= 0).all()
    if isinstance(model, jr.RuleEnsemble):
        at_least = np.asarray(jr.predict_proba(model, rising))[:, ::-1].cumsum(axis=1)
        assert (np.diff(at_least, axis=0) >= -1e-12).all()


@pytest.mark.parametrize("name", QUICK)
def test_the_alphabet_is_no_order(name: str) -> None:
    learner = getattr(jr, name)
    for verb in {"fit", "path", "cross_validate"} & set(dir(learner)):
        for y in (LABELS, pd.Categorical(LABELS, ORDER), LABELS.tolist()):
            with pytest.raises(ValueError, match="monotone needs an order .*pandas.Categorical"):
                getattr(learner, verb)(X, y, monotone={"x": 1})
    two = np.where(LABELS == "low", "low", "high")
    assert learner.fit(X, two, monotone={"x": -1}, **QUICK[name]).model.schema.classes[1] == "low"


def test_everything_keeps_the_order() -> None:
    few: dict[str, Any] = {"max_rules": 2}
    monotone: dict[str, Any] = {**few, "monotone": {"x": 1}}
    model = jr.boosting.fit(X, Y, **few).model
    bounded = jr.boosting.fit(X, Y, **monotone).model
    sampled = jr.fit_on_sample(jr.boosting.fit, X.assign(y=Y), "y", rows=100, **monotone)
    blocks = pl.DataFrame({**X.to_dict("list"), "y": FORMS["polars"]}).lazy()
    models = [
        model,
        bounded,
        *(fit.model for fit in jr.boosting.path(X, Y, **monotone)),
        jr.boosting.cross_validate(X, Y, n_folds=2, **monotone).model,
        sampled.model,
        jr.fit_on_sample(jr.boosting.fit, blocks, "y", block_rows=50, **monotone).model,
        jr.refit(model, X, LABELS),
        jr.finetune(model, X, LABELS, iterations=5).model,
        jr.finetune(bounded, X, LABELS, iterations=5, monotone={"x": 1}).model,
        jr.lire.fit(X, Y, start=jr.lire.fit(X, Y).model).model,
    ]
    assert {one.schema.classes for one in models} == {ORDER}
    assert list(sampled.details["class_counts"]) == list(ORDER)
    assert str(model).splitlines()[2].split() == list(ORDER)
    page = jr.report(model, X, Y, None).html.replace(" ", "")
    assert '"classes":["low","medium","high"]' in page


@pytest.mark.parametrize("form", ["pandas", "a series", "polars"])
def test_groups_and_confusion_matrices_keep_the_order(form: str) -> None:
    model = jr.boosting.fit(X, FORMS[form], max_rules=1).model
    said = np.asarray(jr.predict(model, X))
    groups = jr.scores_by_group(model, X, FORMS[form], FORMS[form])
    assert [one.group for one in groups] == list(ORDER)
    assert [one.rows for one in groups] == [int((name == LABELS).sum()) for name in ORDER]
    page = jr.report(model, X, FORMS[form], None, groups=FORMS[form]).html.replace(" ", "")
    counts = [[int(((a == LABELS) & (said == b)).sum()) for b in ORDER] for a in ORDER]
    assert f'"confusion":{counts}'.replace(" ", "") in page
    named = [[one.group, one.rows] for one in groups]
    assert f'"groups":{named}'.replace(" ", "").replace("'", '"') in page


def test_a_column_with_an_order_gives_groups_in_it() -> None:
    both = X.assign(level=pd.Categorical(LABELS, ORDER, ordered=True))
    both.loc[0, "level"] = None
    model = jr.boosting.fit(both, LABELS == "low", max_rules=1, missing="own_category").model
    groups = jr.scores_by_group(model, both, LABELS == "low", "level")
    assert [one.group for one in groups] == [*ORDER, "(missing)"]


def test_the_last_of_two_is_positive() -> None:
    y = pd.Categorical(np.where(X["x"] > 0, "bad", "good"), ["good", "bad"], ordered=True)
    model = jr.boosting.fit(X, y, max_rules=1).model
    assert "(positive class: bad)" in str(model)
    assert jr.risk(model, X, y) < 0.2
    other = jr.boosting.fit(X, y, max_rules=1, positive="good").model
    assert other.schema.classes == ("bad", "good")


@pytest.mark.parametrize("name", ["RuleBoosting", "SSRL"])
def test_estimators_sort_their_classes_and_keep_the_order_in_the_model(name: str) -> None:
    classifier = getattr(estimators, f"{name}Classifier")(max_rules=4, monotone={"x": 1}).fit(X, Y)
    assert classifier.model_.schema.classes == ORDER
    assert classifier.classes_.tolist() == sorted(ORDER)
    labels = classifier.classes_[classifier.predict_proba(X).argmax(axis=1)]
    assert (labels == classifier.predict(X)).all()
    if name == "RuleBoosting":
        assert classifier.decision_function(X).shape == (240, 3)
        best = classifier.decision_function(X).argmax(axis=1)
        assert (classifier.classes_[best] == labels).all()


def test_own_methods_of_a_comparison_get_the_order() -> None:
    def own(X: Any, y: Any) -> Any:
        assert isinstance(y, np.ndarray)
        return jr.boosting.fit(X, y, max_rules=3, monotone={"x": 1})

    found = jr.compare(X, Y, methods={"own": own, "boosting": "boosting"}, folds=2)
    assert not any(one.failures for one in found.contestants)
    assert all(np.nanmin(one.risks.mean(axis=0)) < 0.1 for one in found.contestants)
