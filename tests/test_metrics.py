"""Risk, accuracy, complexity and support against their definitions."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
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
    result = jr.RuleEnsemble(
        jr.Conjunctions.build(schema, rules), weights, np.full(n_outputs, 0.5), link=link
    )
    result.validate()
    return result


def test_complexity_and_support_count_the_rules_in_use() -> None:
    binary = model("logistic", (0, 1))
    assert jr.support(binary) == 3  # the last weight is zero
    assert jr.complexity(binary) == 3 + (1 + 2 + 0)
    linear = jr.LinearTerms(
        np.array([0, 1], np.int32), np.array([[1.0], [0.0]]), np.zeros(2), np.ones(2)
    )
    with_terms = jr.RuleEnsemble(
        binary.conjunctions, binary.weights, binary.intercept, linear, "logistic"
    )
    assert jr.support(with_terms) == 3
    assert jr.complexity(with_terms) == 3 + 3 + 1
    assert jr.support(model("logistic", ("a", "b", "c"), 3)) == 3


def test_an_interval_is_two_propositions_and_one_condition() -> None:
    schema = jr.Schema((jr.Feature("x"), jr.Feature("k", ("a", "b", "c"))))
    rules = [
        [C.at_least(0, 3.0), C.at_most(0, 7.0)],
        [C(0, 3.0, 7.0, True)],  # the same, given as one
        [C.at_most(0, 9.0), C.at_most(0, 7.0), C.one_of(1, [0, 1])],
        [C.none_of(1, [0, 1], 3), C.is_missing(0, numeric=True), C.is_present(1, 3)],
    ]
    conjunctions = jr.Conjunctions.build(schema, rules)
    assert conjunctions.lengths.tolist() == [1, 1, 2, 2]
    assert conjunctions.propositions.tolist() == [2, 2, 3, 4]
    assert conjunctions.take([2, 0]).propositions.tolist() == [3, 2]
    both = jr.Conjunctions.concatenate([conjunctions, conjunctions.take([2])])
    assert both.propositions.tolist() == [2, 2, 3, 4, 3]
    one = jr.RuleEnsemble(conjunctions.take([0]), np.ones((1, 1)), np.zeros(1))
    assert jr.complexity(one) == jr.complexity(one, "propositions") == 1 + 2
    assert jr.complexity(one, "conditions") == 1 + 1
    assert jr.complexity(one, "nonzeros") == 1 + 2 * 2
    with pytest.raises(ValueError, match="measure must be"):
        jr.complexity(one, "rules")


def test_nonzeros_count_the_columns_that_propositions_weigh() -> None:
    schema = jr.Schema(tuple(jr.Feature(name) for name in "abc"))
    half = C.at_least(jr.Direction((0, 1, 2), (1.0, -2.0, 0.5)), 0.0)
    rules = [
        [half, C.above(0, 0.5)],
        [half, C.at_most(half.feature, 1.0)],
        [C.above(0, 1.0), C.above(2, 1.0)],
    ]
    conjunctions = jr.Conjunctions.build(schema, rules)
    ensemble = jr.RuleEnsemble(conjunctions, np.ones((3, 1)), np.zeros(1))
    assert jr.complexity(ensemble) == 3 + 6
    assert jr.complexity(ensemble, "conditions") == 3 + 5
    assert jr.complexity(ensemble, "nonzeros") == 3 + (2 + 3 + 1) + (2 + 3 + 3) + (
        2 + 2
    )  # Eq. 6: r + sum c(q_i)
    unused = jr.with_weights(ensemble, np.array([0.0, 1.0, 0.0]))
    assert jr.complexity(unused, "nonzeros") == 1 + 2 + 6


def test_local_support_is_the_mean_of_satisfied_rules() -> None:
    binary = model("logistic", (0, 1))
    assert jr.local_supports(binary, X).tolist() == [1, 2, 1, 3]
    assert jr.local_support(binary, X) == 1.75
    assert jr.local_support(binary, X[:1]) == 1.0
    with pytest.raises(ValueError, match="X has no rows"):
        jr.local_support(binary, X[:0])


def test_rule_lists(rule_list: jr.RuleList, table: jr.Table) -> None:
    assert jr.support(rule_list) == 3
    assert jr.complexity(rule_list) == 3 + 1 + 2 + 2  # the second rule is an interval with two ends
    assert jr.complexity(rule_list, "conditions") == 3 + 1 + 1 + 2
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


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.0, 0.5]])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_risk_of_a_list_is_the_log_loss(n_classes: int, weights: list[float] | None) -> None:
    from sklearn.metrics import log_loss

    schema = jr.Schema((jr.Feature("a"), jr.Feature("b")), classes=("x", "y", "z")[:n_classes])
    rules = jr.Conjunctions.build(schema, [[C.above(0, 0.5)], [C.above(1, 0.5)]])
    shares = np.random.default_rng(0).dirichlet(np.ones(n_classes), 3)
    m = jr.RuleList(rules, shares.argmax(axis=1).astype(np.int32), shares)
    y = [schema.classes[k % n_classes] for k in (0, 1, 2, 1)] if schema.classes else []
    p = jr.predict_proba(m, X)
    expected = log_loss(y, p, sample_weight=weights, labels=list(schema.classes or ()))
    assert jr.risk(m, X, y, weights) == pytest.approx(expected, rel=1e-12)
    if n_classes > 2:
        with pytest.raises(
            ValueError, match="'exponential' of more than two classes .*use 'logistic'"
        ):
            jr.risk(m, X, y, loss="exponential")
    else:  # exp(-y f) with f half the log-odds is sqrt((1 - p) / p)
        own = np.where(np.array(y) == "y", p[:, 1], p[:, 0])
        expected = np.average(((1 - own) / own) ** 0.5, weights=weights)
        assert jr.risk(m, X, y, weights, loss="exponential") == pytest.approx(expected, rel=1e-12)
    impossible = np.zeros((3, n_classes))
    impossible[:, 0] = 1.0
    never = jr.RuleList(rules, np.zeros(3, np.int32), impossible)
    assert jr.risk(never, X, ["x"] * 4) == 0.0
    with pytest.raises(ValueError, match="gives their class the probability 0"):
        jr.risk(never, X, ["x", "y", "x", "x"])


def test_one_vs_rest_risk_is_the_mean_over_outputs() -> None:
    m = model("logistic", ("a", "b", "c"), 3)
    y = ["a", "b", "c", "b"]
    scores = np.asarray(jr.decision_function(m, X))
    signs = np.array([[1.0 if label == c else -1.0 for c in "abc"] for label in y])
    assert jr.risk(m, X, y) == pytest.approx(np.log1p(np.exp(-signs * scores)).mean(), rel=1e-12)


def absolute(y: Any, score: Any) -> Any:
    return jnp.sqrt(1.0 + (y - score) ** 2)


def test_risk_takes_the_loss_that_the_model_was_fitted_with() -> None:
    m = dataclasses.replace(model("identity", None), loss="absolute")
    y = np.array([0.0, 3.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="'absolute'.*pass it as loss="):
        jr.risk(m, X, y)
    scores = np.asarray(jr.decision_function(m, X))
    expected = np.sqrt(1 + (y - scores) ** 2).mean()
    assert jr.risk(m, X, y, loss=absolute) == pytest.approx(expected, rel=1e-12)
    assert jr.risk(m, X, y, loss="squared") == pytest.approx(((y - scores) ** 2).mean(), rel=1e-12)
    named = dataclasses.replace(m, loss="squared")
    assert jr.risk(named, X, y) == jr.risk(m, X, y, loss="squared")
    with pytest.raises(ValueError, match="-1 or \\+1"):
        jr.risk(m, X, y, loss="logistic")


def test_a_loss_of_ones_own_does_not_pass_for_another() -> None:
    def squared(y: Any, score: Any) -> Any:
        return (y - score) ** 4

    fit = jr.boosting.fit(
        X, np.array([0.0, 3.0, 1.0, 2.0]), loss=squared, max_rules=1, **jr.boosting.PAPER
    )
    with pytest.raises(ValueError, match="'custom squared'.*pass it as loss="):
        jr.risk(fit.model, X, np.zeros(4))


def test_learners_leave_the_name_of_their_loss() -> None:
    y = np.array([0.0, 3.0, 1.0, 2.0])
    fit = jr.boosting.fit(X, y, loss=absolute, max_rules=1, **jr.boosting.PAPER)
    assert fit.model.loss == "absolute"
    with pytest.raises(ValueError, match="pass it as loss="):  # not, as once, the squared loss
        jr.risk(fit.model, X, y)
    value = jr.risk(fit.model, X, y, loss=absolute)
    penalty = float((np.asarray(fit.model.weights) ** 2).sum()) / (2 * len(X))
    assert fit.objective == pytest.approx(value + penalty, rel=1e-9)


def test_accuracy_is_the_weighted_share() -> None:
    m = model("logistic", ("no", "yes"))
    y = jr.predict(m, X).tolist()
    assert jr.accuracy(m, X, y) == 1.0
    y[0] = "no" if y[0] == "yes" else "yes"
    assert jr.accuracy(m, X, y) == 0.75
    assert jr.accuracy(m, X, pd.Series(y), [2.0, 1.0, 1.0, 1.0]) == 0.6


def test_the_support_ratio_is_the_mean_share_of_rules(
    ensemble: jr.RuleEnsemble, rule_list: jr.RuleList, table: jr.Table
) -> None:
    for m in (ensemble, rule_list):
        expected = jr.local_support(m, table) / jr.support(m)
        assert jr.support_ratio(m, table) == pytest.approx(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_f1_is_that_of_scikit_learn(weighted: bool) -> None:
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    for classes in (["no", "yes"], ["a", "b", "c"]):
        k = len(classes)
        y = np.array(classes)[(np.digitize(X[:, 0], [0, 1]) + rng.integers(0, 2, 90)) % k]
        m = jr.ssrl.fit(X, y, max_rules=2, literal_penalty=0.5).model
        weight = rng.integers(0, 3, 90).astype(float) if weighted else None
        for label in classes:
            expected = f1_score(
                y, jr.predict(m, X), labels=[label], average="macro", sample_weight=weight,
                zero_division=0.0,
            )  # fmt: skip
            assert jr.f1(m, X, y, weight, positive=label) == pytest.approx(expected)
    with pytest.raises(ValueError, match="there are 3 classes; pass one of"):
        jr.f1(m, X, y)
    with pytest.raises(ValueError, match="positive must be one of .* got 'd'"):
        jr.f1(m, X, y, positive="d")


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
    with pytest.raises(ValueError, match="no F1 score; use risk"):
        jr.f1(model("identity", None), X, [1, 2, 3, 4])
    with pytest.raises(TypeError, match="text"):
        jr.risk(model("identity", None), X, ["a"] * 4)


def test_what_is_not_a_model_is_refused() -> None:
    for metric in (jr.complexity, jr.support):
        with pytest.raises(TypeError, match="got str"):
            metric("model")


def test_explanations_are_of_rows_that_have_values(ensemble: jr.RuleEnsemble) -> None:
    with pytest.raises(
        TypeError, match="^X is being traced by JAX, and has no values yet; call this outside jit"
    ):
        jax.jit(lambda X: jr.explain(ensemble, X)[0].score)(np.ones((2, 3)))


def test_one_row_has_a_risk() -> None:
    m = model("logistic", ("no", "yes"))
    y = jr.predict(m, X).tolist()
    risks = [jr.risk(m, X[i : i + 1], y[i : i + 1]) for i in range(len(y))]
    assert jr.risk(m, X, y) == pytest.approx(np.mean(risks))
