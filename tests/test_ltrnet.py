"""LTRNet: its formulas against plain code, its rules against the network row by row,
what it finds, bad input.

Most problems have 80 rows and 4 columns, so that few programs are compiled.
"""

import dataclasses
import math
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import jaxrules as jr
from compiling import compilations
from jaxrules.ensembles import ltrnet
from jaxrules.ensembles.ltrnet import Net, forward, modified_sigmoid, penalty, w_shaped
from jaxrules.learning.cross_validation import folds
from jaxrules.learning.training import training_data
from jaxrules.losses import logistic
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import needed
from jaxrules.solvers.linear.refit import refit_softmax
from jaxrules.tools.float64 import full_precision

Floats = NDArray[np.float64]
SIZE: dict[str, Any] = {"max_rules": 3, "max_length": 2, "restarts": 3}
SMALL: dict[str, Any] = {**SIZE, "l1_penalty": 1e-3}


def data(seed: int = 0, n: int = 80, d: int = 4) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = 2.0 * (X[:, 0] + 0.8 * X[:, 1] > 0.2) - 1.0 * (X[:, 2] > 0.5) + 0.3 * rng.normal(size=n)
    return X, y


def labels(y: Floats) -> NDArray[Any]:
    return np.where(y > np.median(y), "yes", "no")


def three(y: Floats) -> NDArray[Any]:
    return np.array(["high", "low", "middle"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]


def sigmoid(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-z))


# Formulas


@pytest.mark.parametrize("steepness", [0.5, 3.0, 12.0])
def test_the_modified_sigmoid_and_its_gradient(steepness: float) -> None:
    z = np.linspace(-2, 1, 31)
    value = sigmoid(steepness * (2 * z + 1))
    np.testing.assert_allclose(
        modified_sigmoid(jnp.asarray(z), steepness), value, rtol=1e-5, atol=1e-7
    )
    assert modified_sigmoid(jnp.float32(-0.5), steepness) == 0.5
    slopes = jax.vmap(jax.grad(modified_sigmoid), (0, None))(jnp.asarray(z), steepness)
    np.testing.assert_allclose(slopes, 2 * steepness * value * (1 - value), rtol=1e-4, atol=1e-5)
    beside = (
        sigmoid(steepness * (2 * (z + 1e-6) + 1)) - sigmoid(steepness * (2 * (z - 1e-6) + 1))
    ) / 2e-6
    np.testing.assert_allclose(slopes, beside, rtol=1e-4, atol=1e-5)


def test_the_w_shaped_penalty_by_hand() -> None:
    v = jnp.array([-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5])
    np.testing.assert_allclose(w_shaped(v), [0.5, 0, 0.25, 0.5, 0.25, 0, 0.5])
    np.testing.assert_allclose(
        jax.vmap(jax.grad(w_shaped))(jnp.array([-0.5, 0.25, 0.75, 1.5])), [-1, 1, -1, 1]
    )


def network(
    seed: int = 0, rules: int = 3, length: int = 2, columns: int = 4, outputs: int = 2
) -> Net:
    rng = np.random.default_rng(seed)
    shapes = (
        (rules, length, columns),
        (rules, length),
        (rules, length),
        (outputs, rules),
        (outputs,),
    )
    return Net(*(rng.normal(size=shape) for shape in shapes))


@pytest.mark.parametrize("straight_through", [False, True])
def test_the_layers_by_hand(straight_through: bool) -> None:
    net, X = network(), data()[0]
    scores = np.tile(net.b0, (len(X), 1))
    for n, x in enumerate(X):
        for i in range(3):
            s = 0.0
            for j in range(2):
                z = net.w[i, j] @ x - net.t[i, j]
                s += net.v[i, j] * (float(z >= 0) if straight_through else sigmoid(z)) - abs(
                    net.v[i, j]
                )
            q = float(2 * s + 1 >= 0) if straight_through else sigmoid(3 * (2 * s + 1))
            scores[n] += net.b[:, i] * q
    with full_precision():
        found = forward(net, X.T, 3.0, straight_through)
    np.testing.assert_allclose(found, scores.T, rtol=1e-5, atol=1e-5)


def test_straight_through_has_the_gradient_of_the_sigmoids() -> None:
    net, X = network(outputs=1), data()[0]

    def score(t: Any, hard: bool) -> Any:
        return forward(net._replace(t=t), X[:1].T, 3.0, hard)[0, 0]

    slope = jax.grad(score)(net.t, True)
    z = np.einsum("rkd,d->rk", net.w, X[0]) - net.t
    p, holds = sigmoid(z), (z >= 0).astype(float)
    s = (net.v * holds).sum(axis=1) - np.abs(net.v).sum(axis=1)  # forward everything is a step
    q = sigmoid(3 * (2 * s + 1))
    by_hand = -(net.b[0] * 6 * q * (1 - q))[:, None] * net.v * p * (1 - p)
    np.testing.assert_allclose(slope, by_hand, rtol=1e-4, atol=1e-5)


def test_penalties_by_hand() -> None:
    net = Net(*map(np.array, ([[[3.0, -1.0]]], [[9.0]], [[0.25]], [[-2.0]], [7.0])))
    assert float(penalty(net, 0.5, 10.0)) == pytest.approx(0.5 * (4 + 2) + 10 * 0.25)


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), max_size=5), st.randoms())
def test_needed_conditions_say_the_same_and_none_can_go(
    rows: list[list[bool]], random: Any
) -> None:
    holds = np.array(rows, bool).reshape(-1, 6)
    kept = needed(holds, [random.random() for _ in rows])
    np.testing.assert_array_equal(holds[kept].all(axis=0), holds.all(axis=0))
    for one in kept:
        rest = holds[[other for other in kept if other != one]]
        assert (rest.all(axis=0) != holds.all(axis=0)).any()


# The rules are the network


def stepped(soft: Any, X: Floats) -> Floats:
    """The scores of the discretised network, row by row."""
    scores = []
    for x in (X - soft.centre) / soft.scale:
        score = soft.net.b0.copy()
        for w, t, v, b in zip(soft.net.w, soft.net.t, soft.net.v, soft.net.b.T, strict=True):
            holds = True
            for wj, tj, vj in zip(w, t, v, strict=True):
                if vj >= 0.5:
                    wj = np.where(np.abs(wj) >= 0.1 * np.abs(wj).max(), wj, 0)
                    holds &= bool(wj @ x >= tj)
            score = score + b * holds
        scores.append(score)
    return np.array(scores)


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("training", ["soft", "straight_through"])
@pytest.mark.parametrize("what", ["squared", "logistic", "softmax"])
def test_the_model_is_the_network_with_steps(what: str, training: Any, prune: bool) -> None:
    X, y = data()
    target = {"squared": y, "logistic": labels(y), "softmax": three(y)}[what]
    loss: Any = "squared" if what == "squared" else "logistic"
    fit = jr.ltrnet.fit(X, target, loss=loss, training=training, prune=prune, refit=False, **SMALL)
    scores = np.asarray(jr.decision_function(fit.model, X)).reshape(len(X), -1)
    np.testing.assert_allclose(scores, stepped(fit.details["soft_model"], X), rtol=1e-9, atol=1e-9)
    soft = np.asarray(fit.details["soft_model"](X)).reshape(len(X), -1)
    assert np.abs(soft - scores).max() < 10
    assert np.abs(soft - scores).max() > 0 or training == "straight_through"
    if what == "logistic":
        assert fit.objective == pytest.approx(
            log_loss(target, jr.predict_proba(fit.model, X)) + 5e-4 * (fit.model.weights**2).sum(),
            rel=1e-9,
        )


def test_the_best_start_has_the_least_penalised_risk() -> None:
    X, y = data()
    fit = jr.ltrnet.fit(X, y, refit=False, prune=False, **SIZE, l1_penalty=0.01)
    risks, chosen = fit.details["risks"], fit.details["restart"]
    assert len(risks) == 3
    assert risks[chosen] == min(risks)
    soft = fit.details["soft_model"]
    size = np.abs(soft.net.w)
    kept = (size >= 0.1 * size.max(axis=2, keepdims=True)) & (soft.net.v >= 0.5)[..., None]
    used = (soft.net.v >= 0.5).any(axis=1)
    norm = size[kept].sum() + np.abs(soft.net.b[:, used]).sum() / y.std()
    assert risks[chosen] == pytest.approx(
        np.mean((y - stepped(soft, X)[:, 0]) ** 2) + 0.01 * norm * y.var(), rel=1e-6
    )


def test_pruning_changes_no_training_prediction_and_makes_rules_shorter() -> None:
    X, y = data(1)
    whole, pruned = (
        jr.ltrnet.fit(X, y, refit=False, prune=prune, restarts=1, l1_penalty=1e-4).model
        for prune in (False, True)
    )
    np.testing.assert_allclose(jr.predict(whole, X), jr.predict(pruned, X), rtol=1e-9)
    assert jr.complexity(pruned, "nonzeros") < jr.complexity(whole, "nonzeros")


def test_many_rules_are_told_apart_without_pruning() -> None:
    X, y = data(1)
    model = jr.ltrnet.fit(
        X, y, max_rules=300, iterations=1, restarts=1, prune=False, refit=False
    ).model
    assert 256 < len(model.conjunctions) <= 300


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_refitted_weights_are_the_best_for_the_rules(loss: Any) -> None:
    X, y = data()
    target: Any = {"squared": y, "logistic": labels(y), "poisson": np.round(np.exp(y / 2))}[loss]
    weights = np.random.default_rng(3).integers(1, 4, len(y)).astype(float)
    fit = jr.ltrnet.fit(X, target, loss=loss, sample_weight=weights, **SMALL)
    rows = fit.model.conjunctions.satisfied(jr.as_table(X))
    assert rows.shape[1] > 0
    values = {
        "squared": lambda f: (y - f) ** 2,
        "logistic": lambda f: np.log1p(np.exp(-np.where(target == "yes", 1, -1) * f)),
        "poisson": lambda f: np.exp(f) - target * f,
    }[loss]

    half = fit.details.l2_penalty / 2

    def objective(b: Floats) -> float:
        return float(
            np.average(values(b[0] + rows @ b[1:]), weights=weights) + half * b[1:] @ b[1:]
        )

    best = minimize(objective, np.zeros(1 + rows.shape[1]), method="BFGS", options={"gtol": 1e-8})
    assert fit.objective == pytest.approx(best.fun, rel=1e-6)
    assert fit.objective == pytest.approx(
        objective(np.append(fit.model.intercept, fit.model.weights)), rel=1e-9
    )


# Several classes


def test_softmax_weights_are_those_of_multinomial_regression() -> None:
    rng = np.random.default_rng(0)
    Q, codes, weights = rng.random((60, 4)) < 0.5, rng.integers(0, 3, 60), rng.random(60) + 0.5
    signs = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
    b, b0 = refit_softmax(
        signs,
        Q,
        l2_penalty=0.1,
        sample_weight=weights,
        start=(rng.normal(size=(4, 3)), np.zeros(3)),
    )
    oracle = LogisticRegression(C=10.0, tol=1e-12, max_iter=10**4).fit(
        Q, codes, sample_weight=weights
    )
    np.testing.assert_allclose(b, oracle.coef_.T, atol=1e-5)
    np.testing.assert_allclose(
        b0 - b0.mean(), oracle.intercept_ - oracle.intercept_.mean(), atol=1e-5
    )


def test_without_a_ridge_a_rule_that_holds_nowhere_has_no_weight() -> None:
    X, y = data()
    goal = np.where(three(y)[:, None] == np.unique(three(y)), 1.0, -1.0)
    rows = np.column_stack([np.zeros(80, bool), X[:, 0] > 0])
    weights, _ = refit_softmax(
        goal, rows, l2_penalty=0.0, sample_weight=np.full(80, 1 / 80),
        start=(np.zeros((2, 3)), np.zeros(3)),
    )  # fmt: skip
    assert not weights[0].any()
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("classes", [None, 2, 3])
def test_noise_of_few_rows_is_harmless(
    classes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks of 100 rows explain noise in full: only rows that they have not seen tell."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2100, 20))
    y = rng.normal(size=2100) if classes is None else rng.integers(0, classes, 2100)
    (train, test), risks = ((X[:100], y[:100]), (X[100:], y[100:])), []
    constant = jr.risk(jr.ltrnet.fit(*train, time_limit=0).model, *test)
    for most in (ltrnet._FEW_ROWS, 0):
        monkeypatch.setattr(ltrnet, "_FEW_ROWS", most)
        risks.append(jr.risk(jr.ltrnet.fit(*train, restarts=3).model, *test) / constant)
    assert risks[0] < min(1.05, risks[1])


def training(X: Any, y: Any, sample_weight: Any = None, **given: Any) -> ltrnet._Training:
    options = dataclasses.replace(ltrnet.LTRNetOptions(), **SMALL, **given)
    read = options.data(X, y, sample_weight)
    constraints = Constraints.of(read.table.schema, (), (), None)
    return ltrnet._Training(read, constraints, options, options.run())


def test_networks_of_a_fold_do_not_see_its_rows() -> None:
    X, y = data()
    whole = training(X, y, iterations=30)
    assert whole.few_rows
    assert whole.folds is not None
    out, found = whole.folds.of == 0, []
    for shift in (0.0, 5.0):
        whole.target[:, out] += shift
        part = whole.without(out, 2, whole.run)
        assert len(part.weights) == 80
        assert part.weights.sum() == pytest.approx(1)
        weights = np.tile(part.weights, (2, 1))
        *_, last = part.descents(part.starts(1), [whole.options], weights, lambda: False)
        found.append(last.parameters)
    jax.tree.map(np.testing.assert_array_equal, *found)
    losses = whole.held_out([whole.options])
    assert losses is not None
    assert losses[0].shape == (4, 80)


def test_few_rows_are_distinct_ones_for_each_column() -> None:
    X, y = data()
    assert training(X, y).few_rows
    assert not training(X[:, :3], y).few_rows  # 80 rows and 3 columns
    assert not training(np.repeat(X, 2, axis=0), np.repeat(y, 2)).few_rows
    assert not training(X, y, np.full(80, 2.0)).few_rows
    for off in ({"refit": False}, {"combine_starts": False}, {"training": "soft"}):
        assert not training(X, y, **off).few_rows
    alone = np.append(np.zeros(79, int), 1)  # a class with one row, which no fold can hold out
    assert not training(X, alone).few_rows
    assert jr.ltrnet.fit(X, alone, **SMALL).status is jr.Status.CONVERGED


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_the_last_refit_has_a_ridge_by_the_noise(
    loss: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ltrnet, "_FEW_ROWS", 80 if few else 79)
    X, y = data()
    y = y + np.random.default_rng(0).normal(size=len(y))
    target = {"squared": y, "logistic": labels(y), "softmax": three(y)}[loss]
    given = jr.ltrnet.fit(X, target, l2_penalty=1e-3, **SMALL)
    fit = jr.ltrnet.fit(X, target, **SMALL)
    assert list(fit.model.conjunctions) == list(given.model.conjunctions)
    classes = np.unique(target) if loss != "squared" else ()
    shares = np.array([np.mean(target == one) for one in classes])
    constant = y.var() if loss == "squared" else -(shares @ np.log(shares))
    curvature = 2.0 if loss == "squared" else np.mean(shares * (1 - shares))
    left = jr.risk(given.model, X, target) / constant
    assert f"leave {left:.0%} of the constant's loss" in fit.chosen
    unseen = re.search(r"(\d+)% of that of rows that they have not seen", fit.chosen)
    assert (unseen is not None) == few
    if unseen is not None:
        left = math.sqrt(left * int(unseen[1]) / 100)
    q = min(left + 3 * len(given.model.conjunctions) / 80, 0.9)
    ridge = fit.details.l2_penalty
    assert ridge == pytest.approx(10 * q / (1 - q) * curvature / 80, rel=0.05)  # two digits
    assert (given.details.l2_penalty, given.chosen) == (1e-3, "")
    assert np.linalg.norm(fit.model.weights) < np.linalg.norm(given.model.weights)
    kept = jr.ltrnet.fit(X, target, refit=False, **SMALL)
    assert (kept.details.l2_penalty, kept.chosen) == (1e-3, "")


def test_several_classes_share_one_network(tmp_path: Any) -> None:
    X, y = data(n=160)
    fit = jr.ltrnet.fit(X, three(y), loss="logistic", l1_penalty=1e-3)
    model = fit.model
    assert model.link == "softmax"
    assert jr.accuracy(model, X, three(y)) > 0.8
    scores, probabilities = jr.decision_function(model, X), jr.predict_proba(model, X)
    np.testing.assert_allclose(
        probabilities, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), rtol=1e-9
    )
    np.testing.assert_allclose(
        jax.jit(lambda X: jr.predict_proba(model, X))(X), probabilities, rtol=1e-3, atol=1e-6
    )
    assert jr.risk(model, X, three(y)) == pytest.approx(log_loss(three(y), probabilities), rel=1e-9)
    assert fit.objective == pytest.approx(
        jr.risk(model, X, three(y)) + fit.details.l2_penalty / 2 * (model.weights**2).sum(),
        rel=1e-9,
    )
    assert "log-probability" in str(model)
    jr.save(model, tmp_path / "model.json")
    np.testing.assert_array_equal(
        jr.predict_proba(jr.load(tmp_path / "model.json"), X), probabilities
    )
    with pytest.raises(ValueError, match="more than two classes"):
        jr.RuleEnsemble(
            model.conjunctions.with_schema(model.schema.with_classes((0, 1))), model.weights[:, :1],
            model.intercept[:1], link="softmax",
        ).validate()  # fmt: skip


# The soft model


@pytest.mark.parametrize("training", ["soft", "straight_through"])
@pytest.mark.parametrize("what", ["squared", "logistic", "softmax"])
def test_the_soft_model_is_the_model_that_was_trained(what: str, training: Any) -> None:
    X, y = data()
    target = {"squared": y, "logistic": labels(y), "softmax": three(y)}[what]
    loss: Any = "squared" if what == "squared" else "logistic"
    fit = jr.ltrnet.fit(X, target, loss=loss, training=training, **SMALL | {"restarts": 1})
    soft = fit.details.soft_model
    scores = np.asarray(soft(X)).reshape(len(X), -1)
    if what == "squared":
        scale, risk = y.std(), float(np.mean((y - scores[:, 0]) ** 2))
    else:
        both = scores if what == "softmax" else np.column_stack([0 * scores, scores])
        p = np.exp(both) / np.exp(both).sum(axis=1, keepdims=True)
        scale, risk = 1.0, float(log_loss(target, p))
    net = soft.net._replace(b=soft.net.b / scale)
    minimised = risk + scale**2 * float(penalty(net, 1e-3, 1e-2))
    # The last but one step of the history is the mean over the last 25 steps of training, among
    # which straight-through training jumps.
    rel = 0.1 if training == "straight_through" else 0.02
    assert minimised == pytest.approx(fit.history[-2].objective, rel=rel)
    if training == "straight_through":  # and the rules are the same but for the rounding of v and w
        unrefitted = jr.ltrnet.fit(
            X, target, loss=loss, training=training, refit=False, **SMALL | {"restarts": 1}
        )
        rules = np.asarray(jr.decision_function(unrefitted.model, X)).reshape(len(X), -1)
        assert np.mean(np.abs(scores - rules) < 1e-4) > 0.8


def test_the_soft_model_is_a_differentiable_pytree() -> None:
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        kind=np.where(np.arange(80) % 3 == 0, "x", "z")
    )
    frame.loc[::9, "a"] = np.nan
    fit = jr.ltrnet.fit(frame, y, missing="own_category", training="soft", **SMALL)
    soft = fit.details["soft_model"]
    by_hand = np.column_stack([X, np.arange(80) % 3 == 0, np.arange(80) % 3 != 0]).astype(float)
    by_hand[::9, 0] = soft.centre[0]  # a missing number is the mean
    z = np.einsum("rkd,nd->nrk", soft.net.w, (by_hand - soft.centre) / soft.scale) - soft.net.t
    s = (soft.net.v * sigmoid(z)).sum(axis=2) - np.abs(soft.net.v).sum(axis=1)
    expected = soft.net.b0 + sigmoid(3 * (2 * s + 1)) @ soft.net.b.T
    np.testing.assert_allclose(soft(frame), expected[:, 0], rtol=1e-4, atol=1e-4)

    codes = jnp.asarray(np.column_stack([frame[list("abcd")], frame["kind"] == "z"]).astype(float))
    np.testing.assert_allclose(
        jax.jit(lambda X: soft(X))(codes), expected[:, 0], rtol=1e-4, atol=1e-4
    )
    slopes = jax.grad(lambda soft: jnp.mean((jnp.asarray(y) - soft(frame)) ** 2))(soft)
    assert isinstance(slopes, ltrnet.SoftModel)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))
    moved = dataclasses.replace(soft, net=soft.net._replace(b0=soft.net.b0 + 1e-2))
    beside = float((np.mean((y - soft(frame)) ** 2) - np.mean((y - moved(frame)) ** 2)) / -1e-2)
    assert float(slopes.net.b0[0]) == pytest.approx(beside, abs=0.02)
    of_rows = jax.grad(lambda X: soft(X).sum())(codes)
    assert np.isfinite(of_rows).all()
    assert (of_rows[1] != 0).any()


# What it finds


def test_an_oblique_rule_is_found() -> None:
    X, _ = data(n=400)
    y = np.where((X[:, 0] - X[:, 1] > 0.3) & (X[:, 2] < 0.5), "yes", "no")
    for training in ("soft", "straight_through"):
        fit = jr.ltrnet.fit(X, y, loss="logistic", training=training, l1_penalty=1e-3)
        assert jr.accuracy(fit.model, X, y) > 0.95, training


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_step_has_no_near_copies(kind: str) -> None:
    """Cross-fitted weights alone took eight rules for classes: under a ridge, copies of a step
    lower the risk of held-out rows, too.
    """
    X = np.random.default_rng(1).normal(size=(400, 4))
    y = X[:, 0] > 0
    fit = ltrnet.fit(X, y * 1, loss="logistic" if kind == "classes" else "squared")
    assert 1 <= jr.support(fit.model) <= 2
    assert fit.objective < 0.05


def test_the_l1_penalty_trades_risk_for_complexity() -> None:
    X, y = data(n=160)
    fits = jr.ltrnet.path(X, y, l1_penalties=(1e-4, 1e-2, 0.1), iterations=150)
    sizes = [jr.complexity(fit.model, "nonzeros") for fit in fits]
    assert sizes[0] > sizes[1] > sizes[2]
    assert [fit.objective for fit in fits] == sorted(fit.objective for fit in fits)
    assert [dict(fit.model.options)["l1_penalty"] for fit in fits] == [1e-4, 1e-2, 0.1]


def test_a_path_is_made_of_fits() -> None:
    X, y = data()
    pairs = [(l1, binary) for l1 in (1e-3, 1e-2) for binary in (1e-2, 0.1)]
    fits = jr.ltrnet.path(X, y, l1_penalties=(1e-3, 1e-2), binary_penalties=(1e-2, 0.1), **SIZE)
    for (l1, binary), one in zip(pairs, fits, strict=True):
        alone = jr.ltrnet.fit(X, y, l1_penalty=l1, binary_penalty=binary, **SIZE)
        assert one.objective == pytest.approx(alone.objective, rel=1e-6)
        assert one.history[-1].objective == one.objective
        assert sorted(one.model.options) == sorted(alone.model.options)


def test_cross_validation_measures_one_path_per_fold() -> None:
    X, y = data(n=160)
    options: dict[str, Any] = {**SIZE, "iterations": 50, "seed": 1}
    grid = {"l1_penalties": (1e-3, 0.1), "binary_penalties": (1e-2, 0.1)}
    classes = three(y)
    fit = jr.ltrnet.cross_validate(X, classes, n_folds=2, **grid, **options)
    found = fit.details.cross_validation
    assert [tuple(setting.values()) for setting in found.settings] == [
        (l1, binary) for l1 in (1e-3, 0.1) for binary in (1e-2, 0.1)
    ]
    fold_of = folds(training_data(X, classes, logistic), 2, 1)
    for k in range(2):
        inside, outside = fold_of != k, fold_of == k
        path = jr.ltrnet.path(X[inside], classes[inside], **grid, **options)
        risks = [
            log_loss(classes[outside], jr.predict_proba(one.model, X[outside])) for one in path
        ]
        np.testing.assert_allclose(found.risks[k], risks, rtol=1e-9)
    alone = jr.ltrnet.fit(X, classes, **found.setting, **options)
    assert str(fit.model) == str(alone.model)
    assert isinstance(fit.details, ltrnet.LTRNetDetails)
    assert fit.details.restart == alone.details.restart


def test_cross_validation_without_time_has_no_unfinished_risks() -> None:
    X, y = data()
    clock = Hurried()

    def jump(progress: jr.Progress) -> None:
        clock.now += 1.0

    fit = jr.ltrnet.cross_validate(
        X,
        y,
        n_folds=2,
        l1_penalties=(1e-3, 1e-2),
        time_limit=jr.Deadline(1.5, clock),
        progress=jump,
        **SIZE,
    )
    assert fit.status == "time_limit"
    risks = fit.details.cross_validation.risks
    assert np.isfinite(risks[0]).all()
    assert np.isnan(risks[1]).all()
    fit.model.validate()


def test_options_compile_nothing() -> None:
    X, y = data()
    jr.ltrnet.fit(X, y, **SMALL)
    others = {"learning_rate": 0.1, "steepness": 5.0, "l1_penalty": 0.1, "binary_penalty": 0.5}
    with compilations() as compiled:
        jr.ltrnet.fit(X[:75, :3], y[:75], iterations=60, seed=4, refit=False, **others, **SIZE)
    assert compiled == []


def test_batches_find_as_much() -> None:
    X, y = data(n=1200)
    fit = jr.ltrnet.fit(X, y, batch_size=200)
    assert fit.objective < 0.3
    assert jr.ltrnet.fit(X, y, batch_size=200).objective == fit.objective


class Hurried:
    """A clock that stands still until it is told to jump."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_time_left_the_best_network_alone_is_discretised() -> None:
    X, y = data()
    clock = Hurried()

    def jump(progress: jr.Progress) -> None:
        if progress.done == 250:
            clock.now = 2.0

    fit = jr.ltrnet.fit(X, y, time_limit=jr.Deadline(1.0, clock), progress=jump, **SMALL)
    assert fit.status == "time_limit"
    assert np.isfinite(fit.details["risks"]).sum() == 1
    assert np.isfinite(fit.details["risks"][fit.details["restart"]])
    assert len(fit.model.conjunctions) > 0


# Bad input


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scales_do_not_matter(scale: float) -> None:
    X, y = data()
    plain, scaled = jr.ltrnet.fit(X, y, **SMALL), jr.ltrnet.fit(scale * X, scale * y, **SMALL)
    np.testing.assert_allclose(
        jr.predict(scaled.model, scale * X) / scale, jr.predict(plain.model, X), rtol=1e-6
    )
    assert scaled.objective == pytest.approx(scale**2 * plain.objective, rel=1e-6)


def test_constant_columns_are_left_out() -> None:
    X, y = data()
    wide = np.column_stack([np.ones(80), X, np.full(80, 1e8)])
    model = jr.ltrnet.fit(wide, y, **SMALL).model
    assert {f for d in model.conjunctions.directions for f in d.features} <= {1, 2, 3, 4}
    with pytest.warns(UserWarning, match="the model is a constant"):
        nothing = jr.ltrnet.fit(np.ones((80, 2)), y, **SMALL)
    assert len(nothing.model.conjunctions) == 0
    assert nothing.objective == pytest.approx(y.var())


def test_separable_classes_have_finite_weights() -> None:
    X, _ = data()
    X[:, 0] += np.sign(X[:, 0])
    fit = jr.ltrnet.fit(X, X[:, 0] > 0, loss="logistic", **SMALL)
    assert jr.accuracy(fit.model, X, X[:, 0] > 0) == 1.0
    assert np.abs(fit.model.weights).max() < 50


def test_fewer_rows_than_columns() -> None:
    rng = np.random.default_rng(0)
    fit = jr.ltrnet.fit(rng.normal(size=(8, 30)), rng.normal(size=8), **SMALL)
    assert np.isfinite(fit.objective)
    fit.model.validate()


def test_missing_numbers_take_one_side_together() -> None:
    X, y = data()
    X[::5, 0] = np.nan
    fit = jr.ltrnet.fit(X, y, missing="own_category", **SMALL)
    on_first = [
        c for rule in fit.model.conjunctions for c in rule
        if c.feature == 0 or (isinstance(c.feature, jr.Direction) and 0 in c.feature.features)
    ]  # fmt: skip
    assert on_first
    assert np.isfinite(jr.predict(fit.model, X)).all()
    assert fit.objective < y.var()


def test_bad_data_are_refused() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="y has only one class"):
        jr.ltrnet.fit(X, ["a"] * 80, loss="logistic")
    with pytest.raises(ValueError, match="missing values"):
        jr.ltrnet.fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="y has 3 classes"):
        jr.ltrnet.fit(X, three(y), loss="exponential")
    with pytest.raises(ValueError, match="l1_penalties"):
        jr.ltrnet.path(X, y, l1_penalties=[-1.0])
    with pytest.raises(TypeError, match="binary_penalties"):
        jr.ltrnet.path(X, y, binary_penalties=0.1)  # type: ignore[arg-type]  # a number where a sequence belongs


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_are_merged_once_for_all_folds(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = np.clip((X[:, 0] > 0).astype(int) + (X[:, 1] > 0.4), 0, classes - 1)
    losses: list[Any] = []
    original = ltrnet._Training.cross_fitted

    def kept(self: Any, *arguments: Any) -> Any:
        found: Any = original(self, *arguments)
        losses.append(found[:, arguments[1].of])  # of rows
        return found

    def fit() -> str:
        return str(jr.ltrnet.fit(X, y, max_rules=3, iterations=50, restarts=2).model)

    monkeypatch.setattr(ltrnet._Training, "cross_fitted", kept)
    text, every = fit(), np.arange(1200)
    monkeypatch.setattr(
        ltrnet._Training,
        "groups",
        lambda self, *_: ltrnet._Groups(every, every, self.target, self.weights),
    )
    monkeypatch.setattr(
        ltrnet._Training, "merged", lambda self, *_: (every, every, self.target, self.weights)
    )
    monkeypatch.setattr(ltrnet, "_BLOCK", 7)
    assert fit() == text
    np.testing.assert_allclose(*losses, rtol=1e-7)


def test_the_papers_setting_trains_softly_and_keeps_the_trained_weights() -> None:
    X = np.random.default_rng(3).normal(size=(120, 4))
    y = (X[:, 0] + X[:, 1] > 0.3).astype(int)
    fit = ltrnet.fit(X, y, **ltrnet.PAPER | {"iterations": 60, "restarts": 2})
    kept, trained = fit.model.weights[:, 0], np.asarray(fit.details.soft_model.net.b)
    assert all(np.isclose(weight, trained).any() for weight in kept), "no weight is refitted"
    assert ltrnet.PAPER["iterations"] == 250
