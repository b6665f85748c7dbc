"""Risk, accuracy, complexity and support against their definitions."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import jaxrules as jr

C = jr.Condition
X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def model(link: str, classes: Any, n_outputs: int = 1) -> jr.RuleEnsemble:
    schema = jr.Schema((jr.Feature("a"), jr.Feature("b")), classes=classes)
    rules = [[C.above(0, 0.5)], [C.above(0, 0.5), C.above(1, 0.5)], [], [C.at_most(1, 0.5)]]
    weights = np.array([1.0, -2.0, 0.25, 0.0])[:, None] * np.arange(1, n_outputs + 1)
    result = jr.RuleEnsemble(jr.Conjunctions.build(schema, rules), weights, np.full(n_outputs, 0.5), link=link)  # type: ignore[arg-type]
    result.validate()
    return result


def test_complexity_and_support_count_the_rules_in_use() -> None:
    binary = model("logistic", (0, 1))
    assert jr.support(binary) == 3  # the last weight is zero
    assert jr.complexity(binary) == 3 + (1 + 2 + 0)
    linear = jr.LinearTerms(np.array([0, 1], np.int32), np.array([[1.0], [0.0]]), np.zeros(2), np.ones(2))
    with_terms = jr.RuleEnsemble(binary.conjunctions, binary.weights, binary.intercept, linear, "logistic")
    assert jr.support(with_terms) == 3
    assert jr.complexity(with_terms) == 3 + 3 + 1
    assert jr.support(model("logistic", ("a", "b", "c"), 3)) == 3


def test_local_support_is_the_mean_of_satisfied_rules() -> None:
    binary = model("logistic", (0, 1))
    assert jr.local_supports(binary, X).tolist() == [1, 2, 1, 3]
    assert jr.local_support(binary, X) == 1.75


def test_rule_lists(rule_list: jr.RuleList, table: jr.Table) -> None:
    assert jr.support(rule_list) == 3
    assert jr.complexity(rule_list) == 3 + 1 + 1 + 2
    reads = np.minimum(rule_list.position(table) + 1, 3)
    assert jr.local_supports(rule_list, table).tolist() == reads.tolist()


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.0, 0.5]])
@pytest.mark.parametrize("link", ["identity", "log", "logistic", "exponential"])
def test_risk_is_the_weighted_mean_loss(link: str, weights: list[float] | None) -> None:
    of_classes = link in ("logistic", "exponential")
    m = model(link, ("no", "yes") if of_classes else None)
    y: list[Any] = ["no", "yes", "yes", "no"] if of_classes else [0, 3, 1, 2]
    losses = []
    for target, score in zip(y, np.asarray(jr.decision_function(m, X)).tolist(), strict=True):
        sign = 1 if target == "yes" else -1
        losses.append(
            {
                "identity": lambda t=target, f=score: (t - f) ** 2,
                "log": lambda t=target, f=score: np.exp(f) - t * f,
                "logistic": lambda s=sign, f=score: np.log(1 + np.exp(-s * f)),
                "exponential": lambda s=sign, f=score: np.exp(-s * f),
            }[link]()
        )
    share = np.ones(4) if weights is None else np.array(weights)
    expected = (share * losses).sum() / share.sum()
    assert jr.risk(m, X, y, weights) == pytest.approx(expected, rel=1e-12)
    assert jr.risk(m, X, pd.Series(y), weights) == pytest.approx(expected, rel=1e-12)


def test_one_vs_rest_risk_is_the_mean_over_outputs() -> None:
    m = model("logistic", ("a", "b", "c"), 3)
    y = ["a", "b", "c", "b"]
    scores = np.asarray(jr.decision_function(m, X))
    signs = np.array([[1.0 if label == c else -1.0 for c in "abc"] for label in y])
    assert jr.risk(m, X, y) == pytest.approx(np.log1p(np.exp(-signs * scores)).mean(), rel=1e-12)


def test_accuracy_is_the_weighted_share() -> None:
    m = model("logistic", ("no", "yes"))
    y = jr.predict(m, X).tolist()
    assert jr.accuracy(m, X, y) == 1.0
    y[0] = "no" if y[0] == "yes" else "yes"
    assert jr.accuracy(m, X, y) == 0.75
    assert jr.accuracy(m, X, pd.Series(y), [2.0, 1.0, 1.0, 1.0]) == 0.6


def test_labels_of_another_type_that_are_equal_are_the_same() -> None:
    m = model("logistic", (0, 1))
    y = np.asarray(jr.predict(m, X))
    assert jr.accuracy(m, X, y.astype(bool)) == jr.accuracy(m, X, y.astype(float)) == 1.0
    assert jr.risk(m, X, y.astype(bool)) == jr.risk(m, X, y)


def test_bad_targets_are_refused() -> None:
    m = model("logistic", ("no", "yes"))
    for metric in (jr.accuracy, jr.risk):
        with pytest.raises(ValueError, match="does not know: 0, 1"):
            metric(m, X, [0, 1, 1, 0])
        with pytest.raises(ValueError, match="'Yes'"):
            metric(m, X, ["Yes", "no", "no", "no"])
        with pytest.raises(ValueError, match="y has 2 values, but X has 4 rows"):
            metric(m, X, ["yes", "no"])
        with pytest.raises(ValueError, match="sample_weight has 1 values"):
            metric(m, X, ["no"] * 4, [1.0])
    with pytest.raises(ValueError, match="predicts numbers"):
        jr.accuracy(model("identity", None), X, [1, 2, 3, 4])
    with pytest.raises(TypeError, match="text"):
        jr.risk(model("identity", None), X, ["a"] * 4)


def test_what_is_not_a_model_is_refused() -> None:
    for metric in (jr.complexity, jr.support):
        with pytest.raises(TypeError, match="got str"):
            metric("model")  # type: ignore[arg-type]
