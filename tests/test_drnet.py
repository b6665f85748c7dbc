"""DRNet: layers and gates against plain code, its rules against the network row by row,
what it finds, bad input.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules.learning.cross_validation import folds
from jaxrules.learning.training import training_data
from jaxrules.lists import drnet
from jaxrules.lists.drnet import (
    Layers,
    _ListObjective,
    _one_sided,
    conjunction,
    negated,
    open_gate,
    probability_open,
)
from jaxrules.lists.literals import literals_of
from jaxrules.losses import logistic
from jaxrules.tools.float64 import in_x64
from jaxrules.tools.runs import Run

c = jr.Condition


def data(seed: int = 0, n: int = 200) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Numbers, one with missing values, and a category; two planted rules."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(np.round(rng.normal(size=(n, 3)), 1), columns=["a", "b", "c"])
    X["kind"] = rng.choice(["x", "y", "z"], n)
    y = ((X["a"] > 0.3) & (X["b"] < 0.2)) | ((X["kind"] == "x") & (X["c"] > 0.0))
    return X, np.where(y, "yes", "no")


# The network


def test_gates_are_hard_concrete() -> None:
    log_odds, noise = np.array([-3.0, -0.5, 0.0, 2.0]), np.array([0.1, 0.5, 0.9, 0.3])
    smooth = 1 / (1 + np.exp(-(np.log(noise / (1 - noise)) + log_odds) * 1.5))
    drawn = np.clip(1.2 * smooth - 0.1, 0, 1)
    np.testing.assert_allclose(in_x64(open_gate)(log_odds, noise), drawn, rtol=1e-9)
    most_likely = np.clip(1.2 / (1 + np.exp(-log_odds)) - 0.1, 0, 1)
    np.testing.assert_allclose(in_x64(open_gate)(log_odds), most_likely, rtol=1e-9)
    grid = np.linspace(5e-5, 1 - 5e-5, 10**4)
    for one in log_odds:
        share = np.mean(in_x64(open_gate)(np.full(10**4, one), grid) > 0)
        assert float(in_x64(probability_open)(one)) == pytest.approx(share, abs=1e-3)


def test_a_conjunction_has_the_gradient_of_its_sum_where_that_can_matter() -> None:
    s = jnp.array([-0.5, 0.5, 1.0])
    np.testing.assert_array_equal(conjunction(s), [0, 0, 1])
    np.testing.assert_array_equal(jax.grad(lambda s: conjunction(s).sum())(s), [0, 1, 1])
    np.testing.assert_array_equal(jax.grad(lambda s: -conjunction(s).sum())(s), [0, -1, 0])


@given(
    st.lists(st.sampled_from([-2.0, -0.3, 0.0, 0.1, 5.0]), min_size=4, max_size=4),
    st.integers(0, 15),
)
def test_a_rule_asks_for_what_its_weights_say(w: list[float], row: int) -> None:
    x = np.array([row >> i & 1 for i in range(4)])
    wanted = all(value == (weight > 0) for weight, value in zip(w, x, strict=True) if weight)
    score = in_x64(drnet.scores)(np.array([w, [1.0] * 4]), np.array([0.7, 0.0]), x[:, None] * 1.0)
    assert float(score[0]) == pytest.approx(float(wanted) - 0.5)  # the second rule's gate is shut


def test_the_loss_and_the_penalty_by_hand() -> None:
    rng = np.random.default_rng(0)
    w, gates, rule_gates = (
        rng.normal(size=(1, 2, 3)),
        np.full((1, 2, 3), 30.0),
        np.array([[30.0, -30.0]]),
    )
    literals = (rng.random((3, 10)) < 0.7) * 1.0
    target, weights = np.where(rng.random(10) < 0.5, 1.0, -1.0), np.full(10, 0.1)
    draws = np.full((2, 1, 2, 4), 0.5)
    for of_and_layer in (True, False):
        trained, fixed = (
            ((w, gates), (rule_gates,)) if of_and_layer else ((rule_gates,), (w, gates))
        )
        value = in_x64(_ListObjective(of_and_layer))(
            trained, (weights, literals, target), (fixed, draws, 0.25, 3.0), 4
        )
        holds = np.all(
            literals == (w[0, 0] > 0)[:, None], axis=0
        )  # all gates are open, but that of the second rule
        loss = np.log1p(np.exp(-target * (holds - 0.5))).mean()
        assert float(value[0]) == pytest.approx(loss + 0.25 * (1 + 1) / 2, rel=1e-6)


# Rules


def test_the_model_is_the_network() -> None:
    X, y = data()
    table = training_data(X, y, logistic)
    pool = _one_sided(literals_of(table.table))
    options = drnet.DRNetOptions(max_rules=4, iterations=50, batch_size=None, restarts=2)
    any_sign = np.ones((2, len(pool)), bool)
    training = drnet._ListTraining(table, pool, any_sign, options, Run("drnet"))
    rng = np.random.default_rng(1)
    shape = (2, 4, training.start().w.shape[2])
    layers = Layers(rng.normal(size=shape), rng.normal(-3.2, 0.8, shape), rng.normal(size=(2, 4)))
    for lane in range(2):
        one = Layers(*(array[lane] for array in layers))
        rules, rows = training.rules(one)
        w = one.w * np.clip(1.2 / (1 + np.exp(-one.literal_gates)) - 0.1, 0, 1)
        is_open = np.clip(1.2 / (1 + np.exp(-one.rule_gates)) - 0.1, 0, 1)
        literals = np.zeros((shape[2], len(y)))
        literals[: len(pool)] = pool.satisfied(table.table).T
        positive = in_x64(drnet.scores)(w, is_open, literals) > 0
        np.testing.assert_array_equal(rows.any(axis=0), positive)
        again = jr.Conjunctions.build(table.table.schema, rules).satisfied(table.table)
        np.testing.assert_array_equal(again.T, rows)
        assert 0 < positive.mean() < 1


def test_opposites_hold_where_literals_do_not() -> None:
    X, _ = data()
    X.loc[::7, "b"], X.loc[::9, "kind"] = np.nan, None
    table = jr.as_table(X, missing="own_category")
    both = literals_of(table)
    pool = _one_sided(both)
    assert len(both) == 2 * len(pool)
    opposites = jr.Conjunctions.build(
        table.schema, [[negated(pool.rule(i)[0], table)] for i in range(len(pool))]
    )
    np.testing.assert_array_equal(opposites.satisfied(table), ~pool.satisfied(table))


@given(st.integers(0, 10**6))
@settings(max_examples=8)
def test_no_rule_and_no_literal_is_idle(seed: int) -> None:
    X, y = data(seed)
    fit = jr.drnet.fit(X, y, iterations=600, restarts=1, seed=seed % 5)
    rows = fit.model.conjunctions.satisfied(jr.as_table(X))
    predicted = rows.any(axis=1)
    np.testing.assert_array_equal(predicted, jr.predict(fit.model, X) == "yes")
    assert fit.objective == pytest.approx(np.mean(predicted != (y == "yes")))
    for r in range(rows.shape[1]):
        assert (np.delete(rows, r, axis=1).any(axis=1) != predicted).any()
    first = np.argmax(np.column_stack([rows, np.ones(len(y), bool)]), axis=1)
    for r, shares in enumerate(fit.model.probabilities):
        at = y[first == r]
        np.testing.assert_allclose(
            shares, [(1 + np.sum(at == k)) / (2 + len(at)) for k in ("no", "yes")]
        )


def test_planted_rules_are_found() -> None:
    X, y = data(n=400)
    fit = jr.drnet.fit(X, y)
    assert fit.objective < 0.06
    assert list(fit.model.labels) == [1] * len(fit.model.conjunctions) + [0]
    assert jr.accuracy(fit.model, *data(1, n=400)) > 0.9
    assert fit.objective == min(fit.details["errors"])


def test_penalties_shorten_the_rules() -> None:
    X, y = data()
    sizes = [
        jr.complexity(
            jr.drnet.fit(X, y, literal_penalty=penalty, iterations=2000, restarts=1).model
        )
        for penalty in (1e-3, 100.0)
    ]
    assert sizes[0] > sizes[1]


def test_more_classes_have_a_set_each_the_rarest_first() -> None:
    """Every set is learned on the rows not covered by the sets before it; the default is the most
    frequent label of the remaining rows.
    """
    X, _ = data()
    y = np.where((X["kind"] == "x") & (X["a"] > 0), "rare", np.where(X["b"] > 0, "some", "many"))
    fit = jr.drnet.fit(X, y, iterations=2000, restarts=1)
    fit.model.validate()
    assert fit.model.schema.classes == ("many", "rare", "some")
    assert fit.details["order"] == ("rare", "some")
    assert len(fit.details["errors"]) == 2
    labels = fit.model.labels.tolist()
    assert labels == sorted(labels, key=[1, 2, 0].index)
    assert fit.objective == pytest.approx(np.mean(jr.predict(fit.model, X) != y))
    assert fit.objective < 0.1
    left = fit.model.position(jr.as_table(X)) == len(labels) - 1
    assert (y[left] == "many").mean() > 0.8
    np.testing.assert_allclose(
        fit.model.probabilities[-1],
        [(1 + np.sum(y[left] == k)) / (3 + left.sum()) for k in fit.model.schema.classes],
    )
    stopped = jr.drnet.fit(X, y, time_limit=0.0)
    assert (len(stopped.model.conjunctions), stopped.status) == (0, jr.Status.TIME_LIMIT)
    assert jr.predict(stopped.model, X[:1]).tolist() == ["many"]


def test_without_time_a_literal_that_helps_nothing_is_no_rule() -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 4)
    nothing: Any = None  # neither options nor run are asked
    for y, n_rules in ((X[:, 0] != X[:, 1], 0), (X[:, 0] > 0, 1)):  # first every literal is a coin
        part = training_data(X, y, logistic)
        pool = _one_sided(literals_of(part.table))
        training = drnet._ListTraining(part, pool, np.ones((2, len(pool)), bool), nothing, nothing)
        assert len(training.one_literal().rules) == n_rules


# Paths and cross-validation


def test_without_a_rule_the_more_frequent_class_is_predicted() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 3)), np.repeat([0, 1], [80, 120])
    fit = drnet.fit(X, y, literal_penalty=10.0, iterations=200)
    assert len(fit.model.conjunctions) == 0
    assert (jr.predict(fit.model, X) == 1).all()
    assert fit.objective == pytest.approx(0.4)


@pytest.mark.parametrize("target", ["two classes", "three classes"])
def test_a_path_is_the_fits_with_every_penalty(target: str) -> None:
    X, y = data()
    if target == "three classes":
        y = np.where(X["a"] > 1, "rare", y)
        y = pd.Categorical(y, np.unique(y), ordered=True)
    options: dict[str, Any] = {"iterations": 400, "restarts": 2, "monotone": {"b": -1}}
    path = jr.drnet.path(X, y, literal_penalties=[0.1, 0.001], **options)
    for fit, penalty in zip(path, (0.1, 0.001), strict=True):
        alone = jr.drnet.fit(X, y, literal_penalty=penalty, **options)
        assert (str(fit.model), fit.objective) == (str(alone.model), alone.objective)
        assert fit.model.options == alone.model.options
        assert fit.details == alone.details


def test_a_path_within_limits() -> None:
    X, y = data()
    assert [fit.status for fit in jr.drnet.path(X, y, time_limit=0)] == [jr.Status.TIME_LIMIT]
    with pytest.raises(ValueError, match="literal_penalties must be finite and at least 0"):
        jr.drnet.path(X, y, literal_penalties=[-1.0])
    with pytest.raises(ValueError, match="literal_penalties must be a non-empty"):
        jr.drnet.path(X, y, literal_penalties=[])


def test_cross_validation_measures_held_out_rows() -> None:
    X, y = data()
    options: dict[str, Any] = {"iterations": 400, "restarts": 1}
    fit = jr.drnet.cross_validate(
        X, y, literal_penalties=[10.0, 0.01], n_folds=2, seed=1, **options
    )
    found = fit.details["cross_validation"]
    assert found.settings == ({"literal_penalty": 10.0}, {"literal_penalty": 0.01})
    fold = folds(training_data(X, y, logistic), 2, 1)
    for k in range(2):
        inside, outside = fold != k, fold == k
        for i, setting in enumerate(found.settings):
            alone = jr.drnet.fit(X[inside], y[inside], seed=1, **setting, **options)
            risk = np.mean(jr.predict(alone.model, X[outside]) != y[outside])
            assert found.risks[k, i] == pytest.approx(risk)
            assert found.sizes[k, i] == len(alone.model.conjunctions)
    last = jr.drnet.fit(X, y, seed=1, **found.setting, **options)
    assert (str(fit.model), fit.objective) == (str(last.model), last.objective)
    stopped = jr.drnet.cross_validate(X, y, time_limit=0)
    assert stopped.status is jr.Status.TIME_LIMIT
    assert np.isnan(stopped.details.cross_validation.risks).all()


def test_old_names_warn_and_work() -> None:
    X, y = data()
    options: dict[str, Any] = {"iterations": 100, "restarts": 1}
    new = jr.drnet.fit(X, y, max_cut_points=3, **options)
    with pytest.warns(FutureWarning, match="drnet.fit: quantiles is now called max_cut_points"):
        old = jr.drnet.fit(X, y, **(options | {"quantiles": 3}))
    assert str(old.model) == str(new.model)


# Bad input


def test_bad_data_are_refused() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="only one class"):
        jr.drnet.fit(X, ["yes"] * 200)
    with pytest.raises(ValueError, match="no column of X varies"):
        jr.drnet.fit(np.ones((200, 2)), y)
    with pytest.raises(ValueError, match="restarts must be at most 1000"):
        jr.drnet.fit(X, y, restarts=2**40)
    with pytest.raises(ValueError, match="missing values"):
        jr.drnet.fit(X.assign(a=np.where(X["a"] > 1, np.nan, X["a"])), y)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scales_do_not_matter(scale: float) -> None:
    X, y = data()
    X = X[["a", "b", "c"]]
    one, other = (jr.drnet.fit(Z, y, iterations=400, restarts=1) for Z in (X, scale * X))
    np.testing.assert_array_equal(jr.predict(one.model, X), jr.predict(other.model, scale * X))


def test_separable_data_and_few_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 20))
    fit = jr.drnet.fit(X, X[:, 0] > 0)
    fit.model.validate()
    assert fit.objective <= 0.5
