"""Rule ensembles and rule lists: scores, predictions, probabilities,
explanations, transformations.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.data.table import MISSING
from jaxrules.models import persistence
from jaxrules.models import rule_models as models

Oracle = Callable[[Any, jr.Table], np.ndarray]
C = jr.Condition


def numeric_ensemble(
    link: str, n_outputs: int = 1, linear: bool = False, classes: Any = "default"
) -> jr.RuleEnsemble:
    """Rules on three numeric columns, one of which may be missing."""
    if classes == "default":
        classes = None if link in ("identity", "log") else tuple("abcd"[: max(2, n_outputs)])
    schema = jr.Schema(tuple(jr.Feature(name) for name in "xyz"), "own_category", classes)
    rules = [
        [C.above(0, 0.25), C.at_most(1, 0.5)],
        [],
        [C.below(2, 0.0, missing=True)],
        [C.at_least(1, -0.25)],
    ]
    rng = np.random.default_rng(3)
    terms = None
    if linear:
        terms = jr.LinearTerms(
            np.array([2, 0], np.int32),
            rng.normal(size=(2, n_outputs)),
            np.array([-0.5, -np.inf]),
            np.array([0.75, np.inf]),
        )
    model = jr.RuleEnsemble(
        jr.Conjunctions.build(schema, rules),
        rng.normal(size=(4, n_outputs)),
        rng.normal(size=n_outputs),
        terms,
        link,
    )
    model.validate()
    return model


def data(n: int = 40) -> np.ndarray:
    rng = np.random.default_rng(4)
    X = (
        np.round(rng.normal(size=(n, 3)) * 4) / 4
    )  # quarters are exact in float32, and meet the cut points
    X[::7, 2] = np.nan
    return X


def scores_by_hand(model: jr.RuleEnsemble, X: np.ndarray, oracle: Oracle) -> np.ndarray:
    table = jr.Table(model.schema, tuple(X.T))
    satisfied = oracle(model.conjunctions, table)
    scores = np.zeros((len(X), model.n_outputs))
    for i in range(len(X)):
        for k in range(model.n_outputs):
            total = float(model.intercept[k])
            for r in range(satisfied.shape[1]):
                if satisfied[i, r]:
                    total += float(model.weights[r, k])
            if model.linear is not None:
                for t, f in enumerate(model.linear.feature):
                    x = X[i, f]
                    if x == x:
                        clipped = min(model.linear.upper[t], max(model.linear.lower[t], x))
                        total += float(model.linear.coefficients[t, k]) * clipped
            scores[i, k] = total
    return scores


ENSEMBLES = pytest.mark.parametrize(
    "model",
    [
        pytest.param(
            numeric_ensemble(link, k, linear), id=f"{link}-{k}-{'linear' if linear else 'rules'}"
        )
        for link, k in [
            ("identity", 1),
            ("log", 1),
            ("logistic", 1),
            ("exponential", 1),
            ("logistic", 3),
            ("exponential", 4),
        ]
        for linear in (False, True)
    ],
)


# Scores and predictions


@ENSEMBLES
def test_scores_are_sums_in_rule_order(model: jr.RuleEnsemble, oracle: Oracle) -> None:
    X = data()
    expected = scores_by_hand(model, X, oracle)
    scores = jr.decision_function(model, X)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(scores, expected[:, 0] if model.n_outputs == 1 else expected)


@ENSEMBLES
def test_predictions_follow_the_link(model: jr.RuleEnsemble) -> None:
    X = data()
    scores = np.asarray(jr.decision_function(model, X)).reshape(len(X), -1)
    predicted = jr.predict(model, X)
    if model.link == "identity":
        np.testing.assert_array_equal(predicted, scores[:, 0])
    elif model.link == "log":
        np.testing.assert_array_equal(predicted, np.exp(scores[:, 0]))
    elif model.n_outputs == 1:
        assert predicted.tolist() == ["b" if score > 0 else "a" for score in scores[:, 0]]
    else:
        assert predicted.tolist() == ["abcd"[k] for k in scores.argmax(axis=1)]


@ENSEMBLES
def test_probabilities_follow_the_link(model: jr.RuleEnsemble) -> None:
    X = data()
    if model.schema.classes is None:
        with pytest.raises(ValueError, match="no classes"):
            jr.predict_proba(model, X)
        return
    scores = np.asarray(jr.decision_function(model, X)).reshape(len(X), -1)
    p = 1 / (1 + np.exp(-scores * (2 if model.link == "exponential" else 1)))
    shares = (
        np.concatenate([1 - p, p], axis=1)
        if model.n_outputs == 1
        else p / p.sum(axis=1, keepdims=True)
    )
    found = jr.predict_proba(model, X)
    np.testing.assert_allclose(found, shares, rtol=1e-12)
    assert found.shape == (len(X), len(model.schema.classes))
    best = np.asarray(model.schema.classes)[found.argmax(axis=1)]
    assert best.tolist() == jr.predict(model, X).tolist()


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("score", [-1000.0, -40.0, 40.0, 1000.0])
def test_extreme_scores_keep_both_tails(n_outputs: int, score: float) -> None:
    model = numeric_ensemble("logistic", n_outputs)
    model = jr.with_weights(model, np.zeros_like(model.weights), np.full(n_outputs, score))
    shares = jr.predict_proba(model, np.zeros((1, 3)))
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(), 1.0)
    if n_outputs == 1:
        np.testing.assert_allclose(shares.min(), math.exp(-abs(score)), rtol=1e-12)
    traced = jax.jit(lambda x: jr.predict_proba(model, x))(jnp.zeros((1, 3)))
    np.testing.assert_allclose(traced, shares, atol=1e-6)


@pytest.mark.parametrize(
    "classes",
    [("no", "yes"), (False, True), (0, 1), (-1.5, 2.5), ("a", "b", "c")],
    ids=lambda c: type(c[0]).__name__,
)
def test_predictions_are_the_labels_that_were_given(classes: tuple[Any, ...]) -> None:
    model = numeric_ensemble("logistic", 1 if len(classes) == 2 else 3, classes=classes)
    predicted = jr.predict(model, data())
    assert set(predicted.tolist()) <= set(classes)
    assert {type(label) for label in predicted.tolist()} == {type(classes[0])}
    assert [type(e.prediction) for e in jr.explain(model, data(2))] == [type(classes[0])] * 2


def test_no_rules_is_a_constant() -> None:
    schema = jr.Schema((jr.Feature("a"),))
    model = jr.RuleEnsemble(jr.Conjunctions.build(schema, []), np.zeros((0, 1)), np.array([2.5]))
    model.validate()
    np.testing.assert_array_equal(jr.predict(model, [[1.0], [2.0]]), [2.5, 2.5])
    assert [len(e.parts) for e in jr.explain(model, [[1.0]])] == [1]
    assert jr.complexity(model) == 0
    assert "Rule ensemble of 0 rules" in str(model)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_dataframes_are_matched_by_name(
    frame: Any, ensemble: jr.RuleEnsemble, table: jr.Table
) -> None:
    job = [
        *ensemble.schema.features[1].categories,
        "pilot",
        None,
    ]  # codes -2 and -1 are the last two
    columns = {
        "income": table.columns[2],
        "age": table.columns[0],
        "job": [job[code] for code in table.columns[1]],
    }
    expected = jr.decision_function(ensemble, table)
    np.testing.assert_array_equal(jr.decision_function(ensemble, frame(columns)), expected)
    assert jr.predict(ensemble, frame(columns)).tolist() == jr.predict(ensemble, table).tolist()


def test_data_that_do_not_fit_are_refused(
    ensemble: jr.RuleEnsemble, rule_list: jr.RuleList
) -> None:
    for model in (ensemble, rule_list):
        for function in (jr.predict, jr.predict_proba, jr.explain):
            with pytest.raises(ValueError, match="lacks the columns 'job'"):
                function(model, pd.DataFrame({"age": [1.0], "income": [1.0]}))
            with pytest.raises(ValueError, match="2 columns, but the model was fitted on 3"):
                function(model, np.ones((1, 2)))


def test_what_is_not_a_model_is_refused(ensemble: jr.RuleEnsemble) -> None:
    fit = jr.Fit(ensemble, 0.0, "min", jr.Status.CONVERGED)
    for function in (jr.predict, jr.predict_proba, jr.decision_function, jr.explain):
        with pytest.raises(TypeError, match=r"got Fit; pass fit\.model"):
            function(fit, [[1.0]])
        with pytest.raises(TypeError, match="got str"):
            function("model", [[1.0]])
    with pytest.raises(TypeError, match="got Fit"):
        jr.with_weights(fit, [1.0])


# Explanations


@ENSEMBLES
def test_explanations_add_up_to_the_score(model: jr.RuleEnsemble) -> None:
    X = data(12)
    scores = np.asarray(jr.decision_function(model, X)).reshape(len(X), -1)
    predictions = np.asarray(jr.predict(model, X)).tolist()
    for i, explanation in enumerate(jr.explain(model, X)):
        np.testing.assert_allclose(
            sum(part.weight for part in explanation.parts), scores[i], rtol=1e-12, atol=1e-12
        )
        np.testing.assert_array_equal(explanation.score, scores[i])
        assert explanation.prediction == predictions[i]
        assert explanation.parts[0].text == "intercept"
        assert all(part.weight.shape == (model.n_outputs,) for part in explanation.parts)
        if model.schema.classes is None:
            assert explanation.probabilities is None
        else:
            shares = np.asarray(jr.predict_proba(model, X[i : i + 1]))[0].tolist()
            assert explanation.probabilities == dict(zip(model.schema.classes, shares, strict=True))


def test_an_explanation_names_the_rules_that_hold(
    ensemble: jr.RuleEnsemble, table: jr.Table, oracle: Oracle
) -> None:
    satisfied = oracle(ensemble.conjunctions, table)
    for i, explanation in enumerate(jr.explain(ensemble, table)):
        expected = {
            ensemble.conjunctions.describe(r)
            for r in np.flatnonzero(satisfied[i])
            if ensemble.weights[r].any()
        }
        assert {part.text for part in explanation.parts[1:]} == expected
        sizes = [abs(part.weight[0]) for part in explanation.parts[1:]]
        assert sizes == sorted(sizes, reverse=True)


# Validation


def test_validate_names_what_is_wrong() -> None:
    good = numeric_ensemble("logistic", 1, linear=True)
    assert good.linear is not None

    def broken(linear: dict[str, Any] | None = None, **changes: Any) -> jr.RuleEnsemble:
        terms = (
            good.linear if linear is None else models.LinearTerms(**{**vars(good.linear), **linear})
        )
        return models.RuleEnsemble(**{**vars(good), "linear": terms, **changes})

    categorical = jr.Schema(
        (jr.Feature("x"), jr.Feature("y"), jr.Feature("z", ("a",))), "refuse", ("a", "b")
    )
    on_categories = jr.Conjunctions.build(categorical, [[]] * 4)
    cases = {
        "weights must have shape": lambda: broken(weights=good.weights[1:]),
        "must be finite": lambda: broken(intercept=np.array([np.nan])),
        "intercept must have shape": lambda: broken(intercept=np.array(1.0)),
        "link must be": lambda: broken(link="probit"),
        "does not fit classes": lambda: broken(link="identity"),
        "outputs do not fit": lambda: numeric_many(),
        "have the shapes": lambda: broken(linear={"lower": np.zeros(3)}),
        "names feature 7": lambda: broken(linear={"feature": np.array([7, 0], np.int32)}),
        "categorical feature 'z'": lambda: broken(conjunctions=on_categories),
        "coefficients must be finite": lambda: broken(
            linear={"coefficients": np.full((2, 1), np.inf)}
        ),
        "must be at most its upper": lambda: broken(linear={"lower": np.array([2.0, 0.0])}),
        "must have shape \\(terms,\\)": lambda: broken(linear={"feature": np.array(0, np.int32)}),
    }
    for message, make in cases.items():
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.ones(4)}, r"weights must have shape \(rules, outputs\), got \(4,\)"),
        ({"weights": np.ones((1, 1))}, "weights must have shape"),
        ({"intercept": np.zeros(2)}, "weights must have shape"),
        ({"link": "logit"}, "link must be"),
        ({"link": "identity"}, "the link 'identity' does not fit classes"),
    ],
)
def test_models_made_by_hand_are_checked(changes: dict[str, Any], message: str) -> None:
    good = numeric_ensemble("logistic", 1, linear=False)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(good, **changes)
    model = jax.tree.map(lambda leaf: leaf, good)  # JAX puts models together unchecked
    for name, value in changes.items():
        object.__setattr__(model, name, value)
    for ask in (jr.predict, jr.decision_function, jr.explain):
        with pytest.raises(ValueError, match=message):
            ask(model, np.zeros((2, len(model.schema.features))))


def numeric_many() -> jr.RuleEnsemble:
    """Two outputs without classes."""
    schema = jr.Schema((jr.Feature("a"),))
    return jr.RuleEnsemble(jr.Conjunctions.build(schema, [[]]), np.zeros((1, 2)), np.zeros(2))


def test_validate_rule_lists(rule_list: jr.RuleList) -> None:
    rule_list.validate()

    def broken(**changes: Any) -> jr.RuleList:
        return models.RuleList(**{**vars(rule_list), **changes})

    without_classes = rule_list.conjunctions.with_schema(rule_list.schema.with_classes(None))
    cases = {
        "needs classes": lambda: broken(conjunctions=without_classes),
        "must have shapes": lambda: broken(labels=rule_list.labels[1:]),
        "class codes": lambda: broken(labels=np.full(4, 2, np.int32)),
        "sum to 1": lambda: broken(probabilities=rule_list.probabilities / 2),
        "at least 0": lambda: broken(probabilities=np.tile([[-1.0, 2.0]], (4, 1))),
    }
    for message, make in cases.items():
        with pytest.raises(ValueError, match=message):
            make()


# Under JAX


@ENSEMBLES
@pytest.mark.full
def test_the_traced_route_agrees(model: jr.RuleEnsemble) -> None:
    X = data()
    for function in (jr.decision_function, jr.predict, jr.predict_proba):
        if function is jr.predict_proba and model.schema.classes is None:
            continue
        host = np.asarray(function(model, X))
        if (
            function is jr.predict and model.schema.classes is not None
        ):  # traced predictions are class codes
            host = np.array([model.schema.classes.index(label) for label in host.tolist()])
        traced = jax.jit(lambda x, function=function: function(model, x))(X.astype(np.float32))
        np.testing.assert_allclose(traced, host, rtol=1e-4, atol=1e-5)
        as_argument = jax.jit(lambda m, x, function=function: function(m, x))(
            model, X.astype(np.float32)
        )
        np.testing.assert_array_equal(as_argument, traced)
        by_row = jax.vmap(lambda x, function=function: function(model, x[None, :])[0])(
            X.astype(np.float32)
        )
        np.testing.assert_allclose(by_row, traced, rtol=1e-5, atol=1e-6)


@pytest.mark.full
def test_oblique_rules_take_every_route() -> None:
    schema = jr.Schema(
        (jr.Feature("x"), jr.Feature("k", ("a", "b")), jr.Feature("z")),
        "own_category",
        ("no", "yes"),
    )
    half = C.at_least(jr.Direction((0, 1, 2), (0.5, 2.0, -1.25), (MISSING, 1, MISSING)), 0.25)
    rules = [
        [half, C.at_most(half.feature, 3.0), C.above(0, -1.0)],
        [half],
        [C.below(half.feature, 0.25, True)],
    ]
    model = jr.RuleEnsemble(
        jr.Conjunctions.build(schema, rules),
        np.array([[0.5], [-1.0], [2.0]]),
        np.array([0.25]),
        link="logistic",
    )
    model.validate()
    X = data(24)
    X[:, 1] = np.arange(24) % 4 - 2  # unseen, missing, a, b
    table = jr.Table(schema, (X[:, 0], X[:, 1].astype(np.int32), X[:, 2]))
    total = 0.5 * X[:, 0] + 2.0 * (X[:, 1] == 1) - 1.25 * X[:, 2]
    held = np.stack(
        [(total >= 0.25) & (total <= 3) & (X[:, 0] > -1), total >= 0.25, ~(total >= 0.25)], axis=1
    )
    expected = 0.25 + held @ np.array([0.5, -1.0, 2.0])
    np.testing.assert_array_equal(jr.decision_function(model, table), expected)
    x = jnp.asarray(X, jnp.float32)
    np.testing.assert_allclose(jax.jit(lambda x: jr.decision_function(model, x))(x), expected)
    np.testing.assert_allclose(jax.jit(jr.decision_function)(model, x), expected)
    np.testing.assert_allclose(
        jax.vmap(lambda row: jr.decision_function(model, row[None])[0])(x), expected
    )
    by_weight = jax.grad(lambda w, x: jr.decision_function(jr.with_weights(model, w), x).sum())
    np.testing.assert_allclose(
        by_weight(jnp.ones(3), table), held.sum(axis=0)
    )  # rules are checked on the host
    np.testing.assert_allclose(jax.jit(by_weight)(jnp.ones(3), x), held.sum(axis=0))
    shown = [part.text for part in jr.explain(model, table[:1])[0].parts[1:]]
    assert set(shown) == {model.conjunctions.describe(r) for r in np.flatnonzero(held[0])}
    assert "0.25 <= 0.5 x + 2 [k == b] - 1.25 z <= 3 & x > -1" in str(model)
    assert jr.local_supports(model, table).tolist() == held.sum(axis=1).tolist()


def test_a_traced_model_takes_host_data(ensemble: jr.RuleEnsemble, table: jr.Table) -> None:
    rows = table[[0, 1, 3, 4, 5]]
    traced = jax.jit(lambda m: jr.decision_function(m, rows))(ensemble)
    np.testing.assert_allclose(traced, jr.decision_function(ensemble, rows), rtol=1e-6)


@ENSEMBLES
def test_gradients_agree_with_differences(model: jr.RuleEnsemble) -> None:
    X = data(15)
    y = np.linspace(-1, 1, 15)[:, None] * np.ones((1, model.n_outputs))

    def loss(weights: Any, intercept: Any, on_host: bool) -> Any:
        xp = np if on_host else jnp
        scores = jr.decision_function(jr.with_weights(model, weights, intercept), X).reshape(15, -1)
        return xp.mean((scores - xp.asarray(y)) ** 2)

    gradients = jax.grad(loss, argnums=(0, 1))(
        jnp.asarray(model.weights), jnp.asarray(model.intercept), False
    )
    start = [np.asarray(model.weights), np.asarray(model.intercept)]
    for which, gradient in enumerate(gradients):
        for index in np.ndindex(start[which].shape):
            ends = []
            for sign in (-1, 1):
                moved = [array.copy() for array in start]
                moved[which][index] += sign * 1e-5
                ends.append(loss(*moved, True))
            np.testing.assert_allclose(
                gradient[index], (ends[1] - ends[0]) / 2e-5, rtol=1e-4, atol=1e-5
            )


def test_gradients_through_a_jit_with_traced_data() -> None:
    model, X = numeric_ensemble("logistic", 1), data().astype(np.float32)

    @jax.jit
    def gradient(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jax.grad(lambda w: jr.predict_proba(jr.with_weights(model, w), x)[:, 1].sum())(
            weights
        )

    p = np.asarray(jr.predict_proba(model, X))[:, 1]
    satisfied = model.conjunctions.satisfied(
        jr.as_table(X, missing="own_category", feature_names=list("xyz"))
    )
    expected = satisfied.T @ (p * (1 - p))
    np.testing.assert_allclose(gradient(jnp.asarray(model.weights[:, 0]), X), expected, rtol=1e-4)


def test_concrete_jax_weights_take_the_exact_route(
    ensemble: jr.RuleEnsemble, table: jr.Table
) -> None:
    float32 = jr.with_weights(
        ensemble, jnp.asarray(ensemble.weights), jnp.asarray(ensemble.intercept)
    )
    scores = jr.decision_function(float32, table)
    assert isinstance(scores, np.ndarray)
    np.testing.assert_array_equal(
        scores, jr.decision_function(ensemble, table)
    )  # these weights are exact in float32
    assert set(jr.predict(float32, table).tolist()) <= {"no", "yes"}


def test_with_weights_checks_shapes(ensemble: jr.RuleEnsemble) -> None:
    assert jr.with_weights(ensemble, np.zeros(5)).weights.shape == (5, 1)
    assert jr.with_weights(ensemble, np.zeros((5, 1)), 2).intercept.tolist() == [2.0]
    with pytest.raises(ValueError, match=r"shape \(5, 1\), got \(4,\)"):
        jr.with_weights(ensemble, np.zeros(4))
    with pytest.raises(ValueError, match=r"intercept must have shape \(1,\)"):
        jr.with_weights(ensemble, np.zeros(5), np.zeros(2))
    three = numeric_ensemble("logistic", 3)
    with pytest.raises(ValueError, match=r"shape \(4, 3\)"):
        jr.with_weights(three, np.zeros(4))


@pytest.mark.parametrize("which", ["ensemble", "rule_list"])
def test_models_are_pytrees(which: str, request: pytest.FixtureRequest, table: jr.Table) -> None:
    model = request.getfixturevalue(which)
    leaves, structure = jax.tree.flatten(model)
    assert all(isinstance(leaf, np.ndarray) for leaf in leaves)
    assert hash(structure) == hash(jax.tree.structure(model))
    again = jax.tree.unflatten(structure, leaves)
    assert jr.predict(again, table).tolist() == jr.predict(model, table).tolist()
    assert (
        jax.tree.map(lambda leaf: None, model).schema is model.schema
    )  # unflattening validates nothing
    copied = jax.tree.map(np.copy, model)
    assert str(copied) == str(model)


def test_the_same_shapes_do_not_trace_twice() -> None:
    traces = 0

    @jax.jit
    def score(model: jr.RuleEnsemble, X: jax.Array) -> Any:
        nonlocal traces
        traces += 1
        return jr.decision_function(model, X)

    model, X = numeric_ensemble("logistic", 1), jnp.asarray(data(), jnp.float32)
    score(model, X)
    score(jr.with_weights(model, np.ones(4)), X + 1)
    assert traces == 1


# Rule lists


def test_the_first_rule_decides(rule_list: jr.RuleList, table: jr.Table, oracle: Oracle) -> None:
    satisfied = oracle(rule_list.conjunctions, table)
    positions = [next((r for r in range(3) if row[r]), 3) for row in satisfied]
    assert rule_list.position(table).tolist() == positions
    classes = ("no", "yes")
    assert jr.predict(rule_list, table).tolist() == [
        classes[rule_list.labels[p]] for p in positions
    ]
    np.testing.assert_array_equal(
        jr.predict_proba(rule_list, table), rule_list.probabilities[positions]
    )
    for position, explanation in zip(positions, jr.explain(rule_list, table), strict=True):
        assert explanation.prediction == classes[rule_list.labels[position]]
        assert explanation.score is None
        assert len(explanation.parts) == 1 + position
        expected = "the default" if position == 3 else f"rule {position + 1}"
        assert expected in explanation.parts[0].text
    with pytest.raises(TypeError, match="no scores"):
        jr.decision_function(rule_list, table)


def test_a_rule_list_without_rules_is_its_default(schema: jr.Schema, table: jr.Table) -> None:
    empty = jr.RuleList(
        jr.Conjunctions.build(schema, []), np.array([1], np.int32), np.array([[0.25, 0.75]])
    )
    empty.validate()
    assert jr.predict(empty, table).tolist() == ["yes"] * 8
    assert jr.local_support(empty, table) == 0.0
    assert str(empty) == "ALWAYS buys = yes (p = 0.750)"


def test_rule_lists_trace(rule_list: jr.RuleList, table: jr.Table) -> None:
    X = np.clip(np.stack(table.columns, axis=1), -1e30, 1e30).astype(np.float32)
    host = jr.Table(table.schema, (X[:, 0].astype(float), table.columns[1], X[:, 2].astype(float)))
    codes = [("no", "yes").index(label) for label in jr.predict(rule_list, host).tolist()]
    assert jax.jit(lambda x: jr.predict(rule_list, x))(X).tolist() == codes
    assert jax.jit(jr.predict)(rule_list, X).tolist() == codes
    assert jax.jit(lambda m: jr.predict(m, host))(rule_list).tolist() == codes
    shares = jax.jit(jr.predict_proba)(rule_list, X)
    np.testing.assert_allclose(shares, jr.predict_proba(rule_list, host))


@settings(max_examples=30)
@given(n_rows=st.integers(1, 40), n_rules=st.integers(0, 70), seed=st.integers(0, 999))
def test_random_ensembles_agree_with_loops(
    oracle: Oracle, n_rows: int, n_rules: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    schema = jr.Schema((jr.Feature("a"), jr.Feature("b")))
    rules = [
        [C.above(int(f), float(c))]
        for f, c in zip(rng.integers(0, 2, n_rules), rng.integers(-2, 3, n_rules), strict=True)
    ]
    model = jr.RuleEnsemble(
        jr.Conjunctions.build(schema, rules), rng.normal(size=(n_rules, 1)), rng.normal(size=1)
    )
    X = rng.integers(-3, 4, (n_rows, 2)).astype(float)
    np.testing.assert_array_equal(
        jr.decision_function(model, X), scores_by_hand(model, X, oracle)[:, 0]
    )


# Memory


@pytest.mark.parametrize(
    ("n_rows", "n_rules"), [(100_000, 100), pytest.param(1_000_000, 100, marks=pytest.mark.slow)]
)
def test_prediction_needs_little_memory(n_rows: int, n_rules: int) -> None:
    import tracemalloc

    rng = np.random.default_rng(0)
    schema = jr.Schema(tuple(jr.Feature(f"x{f}") for f in range(5)))
    rules = [[C.above(int(f), float(c)), C.at_most(int(f), float(c) + 1)] for f, c in zip(
        rng.integers(0, 5, n_rules), rng.normal(size=n_rules), strict=True)]  # fmt: skip
    model = jr.RuleEnsemble(
        jr.Conjunctions.build(schema, rules), rng.normal(size=(n_rules, 1)), np.zeros(1)
    )
    X = rng.normal(size=(n_rows, 5))
    tracemalloc.start()
    jr.predict(model, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Two float64 copies of X while it is read, a few columns, and a few batches of at most 16 MiB.
    assert peak < 3 * X.nbytes + 80e6
    assert peak < n_rows * n_rules * 8  # far from a matrix of rows x rules in float64


def test_many_rules_need_little_memory() -> None:
    import tracemalloc

    rng = np.random.default_rng(0)
    schema = jr.Schema((jr.Feature("a"), jr.Feature("b")))
    rules = [[C.above(0, float(a)), C.at_most(1, float(b))] for a, b in rng.normal(size=(5000, 2))]
    conjunctions = jr.Conjunctions.build(schema, rules)
    table = jr.as_table(rng.normal(size=(20_000, 2)), feature_names=["a", "b"])
    tracemalloc.start()
    count = sum(int(batch.sum()) for _, batch in conjunctions.batches(table))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count > 0
    assert peak < 150e6  # the full matrix alone has 100 MB, the cells x rules of one feature 50 MB


def test_models_are_named_after_their_target(rng: np.random.Generator) -> None:
    """By a Series of pandas or polars; saved files and pytrees keep it."""
    import jaxrules.estimators as estimators

    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    good = pd.Series(np.where(frame["a"] > 0, "yes", "no"), name="repaid")
    counts = pd.Series(rng.poisson(np.exp(frame["a"])), name="claims")
    fits = [
        jr.boosting.fit(frame, good, max_rules=1),
        jr.ssrl.fit(frame, pl.Series("repaid", good.tolist()), max_rules=1),
        jr.boosting.cross_validate(frame, good, max_rules=1, n_folds=2),
    ]
    for fit in fits:
        assert "repaid =" in str(fit.model)
    rates = jr.boosting.fit(frame, counts, loss="poisson", exposure=np.ones(60), max_rules=1).model
    assert "log expected claims = " in str(rates)
    assert "for claims" in str(jr.paths.fit(frame, counts.astype(float), steps=1).model)
    made = estimators.RuleBoostingClassifier(max_rules=1).fit(frame, good)
    assert made.model_.schema.target == "repaid"
    assert jr.boosting.fit(frame, good.to_numpy(), max_rules=1).model.schema.target == "target"
    assert jr.boosting.fit(frame, good.rename(3), max_rules=1).model.schema.target == "target"
    for model in (fits[0].model, rates):
        again = persistence.from_json(persistence.to_json(model))
        leaves, tree = jax.tree.flatten(again)
        assert jax.tree.unflatten(tree, leaves).schema.target == model.schema.target
