"""Learners on more than two classes, one against the rest: real data, and everything that a model
offers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

import jaxrules as jr
from jaxrules import losses
from jaxrules.learning.training import one_against_rest, training_data
from jaxrules.rules.conditions import propositions_of
from jaxrules.tools.runs import Run

Learner = Callable[..., jr.Fit[jr.RuleEnsemble]]


def thresholds(X: Any) -> jr.Conjunctions:
    pool = propositions_of(jr.as_table(X), max_cut_points=3)
    return pool.conjunctions([(p,) for p in range(len(pool))])


def rulefit(X: Any, y: Any, **arguments: Any) -> jr.Fit[jr.RuleEnsemble]:
    given: dict[str, Any] = {"rules": thresholds(X), "l1_penalty": 0.003} | arguments
    return jr.rulefit.fit(X, y, multiclass="one_vs_rest", **given)


def boosting(X: Any, y: Any, **arguments: Any) -> jr.Fit[jr.RuleEnsemble]:
    return jr.boosting.fit(
        X,
        y,
        loss="logistic",
        search="greedy",
        max_rules=4,
        max_cut_points=4,
        **jr.boosting.PAPER | {"l2_penalty": 0.1},
        **arguments,
    )


def glrm(X: Any, y: Any, **arguments: Any) -> jr.Fit[jr.RuleEnsemble]:
    return jr.glrm.fit(
        X, y, multiclass="one_vs_rest", rule_penalty=5e-3, max_length=2, max_cut_points=3,
        tolerance=1e-3, **arguments,
    )  # fmt: skip


LEARNERS = [rulefit, boosting, glrm]


def rows_of(load: Callable[..., Any], step: int) -> tuple[Any, Any]:
    X, y = load(return_X_y=True)
    return X[::step], y[::step]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    ("load", "step", "names", "accuracy"),
    [
        (load_iris, 1, ("setosa", "versicolor", "virginica"), 0.94),
        (load_wine, 1, (1, 2, 3), 0.94),
        (load_digits, 15, tuple(range(10)), 0.6),
    ],
    ids=["iris", "wine", "digits"],
)
def test_a_model_of_many_classes(
    learner: Learner, load: Any, step: int, names: tuple[Any, ...], accuracy: float, tmp_path: Any
) -> None:
    X, codes = rows_of(load, step)
    y = np.array(names)[codes]
    fit = learner(X, y)
    model, n = fit.model, len(names)
    model.validate()
    assert model.schema.classes == names
    assert model.weights.shape == (len(model.conjunctions), n)
    assert jr.accuracy(model, X, y) >= accuracy
    scores, shares = jr.decision_function(model, X), jr.predict_proba(model, X)
    assert scores.shape == shares.shape == (len(X), n)
    np.testing.assert_array_equal(np.array(names)[scores.argmax(axis=1)], jr.predict(model, X))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    for row, explanation in enumerate(jr.explain(model, X[:3])):
        np.testing.assert_allclose(
            sum(part.weight for part in explanation.parts), scores[row], atol=1e-9
        )
        assert explanation.prediction in names
    # The means over the classes of the binary problems, from the model alone
    signs = np.where(y[:, None] == np.array(names), 1.0, -1.0)
    assert jr.risk(model, X, y) == pytest.approx(np.logaddexp(0, -signs * scores).mean())
    assert fit.objective == pytest.approx(np.mean(fit.details["objectives"]))
    assert fit.objective >= jr.risk(model, X, y)
    # Every rule once, though several classes use it
    assert (
        len({frozenset(rule) for rule in model.conjunctions})
        == len(model.conjunctions)
        == jr.support(model)
    )
    assert jr.complexity(model) == jr.support(model) + model.conjunctions.propositions.sum()
    jr.save(model, tmp_path / "model.json")
    np.testing.assert_array_equal(jr.decision_function(jr.load(tmp_path / "model.json"), X), scores)


@pytest.mark.parametrize("learner", LEARNERS)
def test_classes_share_rules(learner: Learner) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (200, 2)).astype(float)
    fit = learner(X, np.where(X[:, 0] > 0, rng.choice(["a", "b"], 200), "c"))
    assert (np.count_nonzero(fit.model.weights, axis=1) > 1).any()


@pytest.mark.parametrize("learner", LEARNERS)
def test_two_classes_as_many_equal_two_classes(
    learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    # two outputs for two classes: no model that users can make
    monkeypatch.setattr(jr.RuleEnsemble, "__post_init__", lambda self: None)
    X, codes = rows_of(load_iris, 2)
    y = codes == 1
    data = training_data(X, y, losses.logistic)
    both = dataclasses.replace(data, target=np.stack([-data.target, data.target], axis=1))
    fit = one_against_rest(both, Run("two"), lambda part, run: learner(X, part.target > 0))
    binary = learner(X, y)
    assert fit.details["objectives"][1] == binary.objective
    np.testing.assert_allclose(
        jr.decision_function(fit.model, X)[:, 1],
        jr.decision_function(binary.model, X),
        rtol=1e-12,
        atol=1e-12,
    )
    assert fit.objective == pytest.approx((binary.objective + learner(X, ~y).objective) / 2)


def test_rulefit_chooses_one_penalty_for_all_classes() -> None:
    X, y = rows_of(load_iris, 2)
    rules = thresholds(X)
    fit = jr.rulefit.fit(X, y, rules=rules, n_folds=3, multiclass="one_vs_rest")
    found = fit.details["cross_validation"]
    assert fit.details["l1_penalty"] == found.setting["l1_penalty"]
    assert found.chosen == np.nanargmin(found.risk)
    assert dict(fit.model.options)["chosen_l1_penalty"] == fit.details["l1_penalty"]
    for k, objective in enumerate(fit.details["objectives"]):
        alone = jr.rulefit.fit(X, y == k, rules=rules, l1_penalty=fit.details["l1_penalty"])
        assert alone.objective == pytest.approx(objective, rel=1e-5)
    assert fit.bound == pytest.approx(np.mean(fit.details["bounds"]))
    path = jr.rulefit.path(X, y, rules=rules, n_penalties=3)
    assert [one.model.n_outputs for one in path] == [3, 3, 3]
    assert jr.support(path[0].model) == 0


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_class_without_weight_is_refused(learner: Learner) -> None:
    X, y = rows_of(load_iris, 3)
    with pytest.raises(
        ValueError, match="sample_weight is zero or negligible for every row of class 2"
    ):
        learner(X, y, sample_weight=(y < 2).astype(float))


@pytest.mark.parametrize("learner", LEARNERS)
def test_rows_without_weight_are_absent(learner: Learner) -> None:
    X, y = rows_of(load_iris, 2)
    kept = np.arange(len(y)) % 4 > 0
    rules = {"rules": thresholds(X[kept])} if learner is rulefit else {}
    absent = learner(X[kept], y[kept], **rules)
    weighted = learner(np.where(kept[:, None], X, 99.0), y, sample_weight=kept, **rules)
    assert weighted.objective == absent.objective
    np.testing.assert_array_equal(
        jr.decision_function(weighted.model, X), jr.decision_function(absent.model, X)
    )
