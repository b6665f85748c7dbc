"""`max_rules="auto"` and `None` of boosting: the number of rules is chosen by the data."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss

import jaxrules as jr
from jaxrules.ensembles.noise import by_chance
from jaxrules.ensembles.size import nats, nats_among

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4)).round(1)
SMALL: dict[str, Any] = {"max_length": 2, "max_cut_points": 4}
SIGNAL = 2.0 * (X[:, 0] > 0) * (X[:, 1] < 0.5) - (X[:, 2] > 1)
TARGETS = {
    "squared": SIGNAL + 0.5 * RNG.normal(size=200),
    "logistic": np.where(SIGNAL + RNG.normal(size=200) > 0.5, "yes", "no"),
    "poisson": RNG.poisson(np.exp(SIGNAL / 2)),
    "softmax": np.digitize(SIGNAL + 0.5 * RNG.normal(size=200), [-0.5, 0.8]),
}


def negative_log_likelihood(kind: str, fit: jr.Fit, weights: np.ndarray, ridge: float) -> float:
    """Of the rules of a fit, refitted with this ridge; up to a constant, and of normal errors with
    the variance that fits best.
    """
    y = TARGETS[kind]
    model = jr.refit(fit.model, X, y, sample_weight=weights, l2_penalty=ridge)
    if kind in ("logistic", "softmax"):
        p = jr.predict_proba(model, X)
        return float(-weights @ np.log(p[np.arange(200), np.searchsorted(model.schema.classes, y)]))
    score = jr.decision_function(model, X).ravel()
    if kind == "poisson":
        return float(weights @ (np.exp(score) - y * score))
    return float(weights.sum() / 2 * np.log(np.average((y - score) ** 2, weights=weights)))


def price(kind: str, fit: jr.Fit, weights: np.ndarray) -> float:
    """1.25 (on few rows) times the scale: the squared slopes of the loss over its curvature."""
    more = 2.5 * max(0.0, np.log(weights.sum() / 250))
    if kind == "squared":
        return 1.25 + more
    if kind == "poisson":
        expected = np.asarray(jr.predict(fit.model, X))
        slopes, curvatures = expected - TARGETS[kind], expected
    else:
        p = np.asarray(jr.predict_proba(fit.model, X))
        truth = np.asarray(fit.model.schema.classes) == TARGETS[kind][:, None]
        slopes, curvatures = p - truth, p * (1 - p)
    scale = float(np.sum(weights @ slopes**2) / np.sum(weights @ curvatures))
    return (1.25 + more * min(scale, 1.0)) * scale


@pytest.mark.parametrize("kind", TARGETS)
def test_a_rule_must_gain_more_than_a_smaller_ridge(kind: str) -> None:
    y, weights, ridge = TARGETS[kind], RNG.uniform(0.5, 2.0, 200), 3.0
    given = SMALL | {"sample_weight": weights, "loss": "logistic" if kind == "softmax" else kind}
    fits = jr.boosting.path(X, y, max_rules=10, l2_penalty=ridge, **given)
    unit = 2.0 if kind == "softmax" else 1.0
    gains = [
        negative_log_likelihood(kind, before, weights, unit * ridge * m / (m + 1))
        - negative_log_likelihood(kind, after, weights, unit * ridge)
        for m, (before, after) in enumerate(pairwise(fits), start=1)
    ]
    np.testing.assert_allclose(fits[-1].details["gains"][1:], gains, atol=1e-4)
    prices = [price(kind, fit, weights) for fit in fits]
    np.testing.assert_allclose(fits[-1].details["prices"], prices, rtol=1e-6)
    best = int(np.argmax(np.cumsum([0.0, *np.subtract(gains, prices[1:])]))) + 1
    chosen = jr.boosting.fit(X, y, l2_penalty=ridge, **given)
    assert len(chosen.details["stages"]) == best
    assert chosen.details["l2_penalty"] == ridge
    asked = jr.boosting.fit(
        X, y, max_rules=len(chosen.details["stages"]), l2_penalty=ridge, **given
    )
    assert chosen.objective == pytest.approx(asked.objective, rel=1e-9)


@pytest.mark.parametrize("most", ["auto", None])
def test_the_ridge_takes_the_place_of_copies(most: Any) -> None:
    """Without noise, ten rules would be copies of two: the weights of the two are as large."""
    y = np.where((X[:, 0] > 0) & (X[:, 1] < 0.5), "yes", "no")
    ten = jr.boosting.fit(X, y, max_rules=10)
    chosen = jr.boosting.fit(X, y, max_rules=most)
    assert len(chosen.model.conjunctions) < 5
    assert chosen.details["l2_penalty"] < ten.details["l2_penalty"]
    assert "further rules gain less than a smaller ridge" in str(chosen)
    assert dict(chosen.model.options)["max_rules"] == most
    again = jr.refit(chosen.model, X, y)
    np.testing.assert_allclose(chosen.model.weights, again.weights, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {}) for kind in TARGETS),
        *((kind, {"linear_terms": True}) for kind in ("squared", "softmax")),
        ("softmax", {"prune": 0.5}),
        ("logistic", {"max_nonzeros": 2}),
        ("logistic", {"monotone": {0: 1, 1: -1}}),
    ],
)
def test_the_ridge_of_the_weights_grows_with_their_number(
    kind: str, options: dict[str, Any]
) -> None:
    """Those of ten rules have the ridge of the search; later ones are the optimum under their own,
    with which `fit` agrees.
    """
    loss = "logistic" if kind == "softmax" else kind
    y, given = TARGETS[kind], SMALL | {"loss": loss, "max_length": 1} | options
    fits = jr.boosting.path(X, y, max_rules=18, **given)
    ridges = [fit.details["l2_penalty"] for fit in fits]
    assert len(set(ridges[:10])) == 1
    assert ridges[9] < ridges[13] < ridges[-1]
    same = jr.boosting.path(X, y, max_rules=18, l2_penalty=ridges[0], **given)
    assert [fit.objective for fit in same[:10]] == [fit.objective for fit in fits[:10]]
    assert same[-1].details["risks"] == fits[-1].details["risks"]
    assert {fit.details["l2_penalty"] for fit in same} == {ridges[0]}
    for size in (12, 18):
        one, search = fits[size - 1], same[size - 1]
        asked = jr.boosting.fit(X, y, max_rules=size, **given)
        assert asked.objective == one.objective
        assert str(asked.model) == str(one.model)
        assert list(one.model.conjunctions) == list(search.model.conjunctions)
        assert one.chosen.endswith(f"rules were found with {ridges[0]:g}")
        assert f"l2_penalty={ridges[size - 1]:g}" in str(one)
        if "prune" not in options:
            ridge = ridges[size - 1] * (2.0 if kind == "softmax" else 1.0)
            best = jr.refit(search.model, X, y, l2_penalty=ridge)
            np.testing.assert_allclose(one.model.weights, best.weights, atol=1e-6)
        again = jr.refit(one.model, X, y)
        np.testing.assert_allclose(one.model.weights, again.weights, atol=1e-6)


def test_the_ridge_of_each_class_against_the_rest_grows() -> None:
    given = SMALL | {"multiclass": "one_vs_rest", "max_length": 1}
    fits = jr.boosting.path(X, TARGETS["softmax"], max_rules=14, **given)
    asked = jr.boosting.fit(X, TARGETS["softmax"], max_rules=14, **given)
    assert str(asked.model) == str(fits[-1].model)
    few, many = fits[9].details["l2_penalty"], asked.details["l2_penalty"]
    assert all(a < b for a, b in zip(few, many, strict=True))


def test_the_ridge_of_weights_that_are_not_refitted_does_not_grow() -> None:
    paper = jr.boosting.PAPER | {"l2_penalty": None, "max_length": 2}
    fits = jr.boosting.path(X, TARGETS["logistic"], max_rules=15, max_cut_points=4, **paper)
    assert len({fit.details["l2_penalty"] for fit in fits}) == 1
    assert fits[0].chosen


@pytest.mark.parametrize(("rows", "least"), [(10, 1.25), (250, 1.25), (800, 4.158), (9000, 8.0)])
def test_many_rows_ask_more_of_a_rule(rows: int, least: float) -> None:
    assert nats(np.full(2 * rows, 0.5)) == pytest.approx(least, abs=1e-3)


@pytest.mark.parametrize("rows", [500, 1000, 3000])
@pytest.mark.parametrize("learner", [jr.boosting, jr.lltboost])
@pytest.mark.parametrize("classes", [True, False])
def test_noise_has_one_or_two_rules(rows: int, learner: Any, classes: bool) -> None:
    """At a price of 1.25 for any number of rows, 3000 had ten."""
    random = np.random.default_rng(rows)
    Z = random.normal(size=(rows, 8))
    y = random.integers(0, 2, rows) if classes else random.normal(size=rows)
    assert jr.support(learner.fit(Z, y).model) <= 2


@pytest.mark.parametrize("rows", [500, 1000, 3000])
def test_a_noisy_step_of_numbers_has_one_rule(rows: int) -> None:
    """At a price of 1.25 it had ten: near-copies, and rules of the noise that it leaves."""
    random = np.random.default_rng(rows)
    Z = random.normal(size=(rows, 8))
    y = (Z[:, 0] > 0.1234) + 0.1 * random.normal(size=rows)
    assert jr.support(jr.boosting.fit(Z, y).model) == 1


def test_a_rule_that_is_one_of_many_is_dearer() -> None:
    assert nats_among(40, 2) == nats_among(0, 2) == 0.0
    assert nats_among(400, 2) == pytest.approx(2 * np.log(10)) == 2 * nats_among(400, 1)
    assert nats(np.ones(100), 0.5, more=3.0) == pytest.approx(1.25 + 1.5)
    assert by_chance(10, np.ones(1000), more=2.0) == pytest.approx(10 * (3 + 1.5 * 2) / 1000)
    assert by_chance(10, np.ones(10), more=2.0) == 0.2


@pytest.mark.parametrize(("columns", "length"), [(40, 2), (120, 2), (120, 1)])
def test_many_columns_raise_the_price_and_the_ridge(columns: int, length: int) -> None:
    rng = np.random.default_rng(1)
    some = rng.normal(size=(600, columns))
    y = some[:, 0] + rng.logistic(size=600) > 0
    fit = jr.boosting.fit(some, y, max_length=length)
    p = np.asarray(jr.predict_proba(jr.boosting.path(some, y, max_length=length)[1].model, some))[
        :, 1
    ]
    scale = np.sum((p - y) ** 2) / np.sum(p * (1 - p))
    more = nats_among(columns, length)
    grown = 2.5 * np.log(600 / 250) + more
    assert more == pytest.approx(length * max(0.0, np.log(columns / 40)))
    expected = scale * (1.25 + grown * min(scale, 1.0))
    assert fit.details["prices"][0] == pytest.approx(expected, rel=0.02)


def test_noise_of_many_columns_has_few_rules() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2000, 200))
    assert len(jr.boosting.fit(noise, rng.random(2000) < 0.4).model.weights) <= 2


@pytest.mark.parametrize("columns", [20, 300])
@pytest.mark.parametrize("classes", [None, 2, 3])
def test_noise_of_few_rows_is_told_from_signal_by_a_permuted_target(
    columns: int, classes: int | None
) -> None:
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(100, columns))
    noise = rng.normal(size=100) if classes is None else rng.integers(0, classes, 100)
    fit = jr.boosting.fit(X, noise)
    assert len(fit.model.weights) <= 2
    assert "of that of a permuted target" in fit.details.chosen
    # Weights so small that predictions are nearly the constant's
    scores = np.asarray(jr.decision_function(fit.model, rng.normal(size=(500, columns))))
    assert scores.std(axis=0).max() < 0.3
    signal = X[:, 0] if classes is None else np.digitize(X[:, 0], [0.0, 0.7][: classes - 1])
    step = jr.boosting.fit(X, signal)
    assert "permuted" not in step.details.chosen


def test_a_permuted_target_takes_weights_as_repeated_rows() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 9, (120, 6)).astype(float), rng.integers(0, 2, 120)
    weights = np.where(np.arange(120) < 12, 2, 1)
    weighted = jr.boosting.fit(X, y, sample_weight=weights)
    repeated = jr.boosting.fit(X.repeat(weights, axis=0), y.repeat(weights))
    assert "permuted" in weighted.details.chosen
    assert weighted.details.chosen == repeated.details.chosen
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-6)
    # Rows that are nearly all repeated say nothing about chance among as many rows.
    tenfold = jr.boosting.fit(X, y, sample_weight=np.full(120, 10))
    assert "permuted" not in tenfold.details.chosen


def test_noise_has_few_rules() -> None:
    y = RNG.integers(0, 2, 200)
    assert jr.support(jr.boosting.fit(X, y, max_rules=None, **SMALL).model) <= 5


@pytest.mark.parametrize("seed", range(3))
def test_noise_of_a_larger_variance_has_few_rules(seed: int) -> None:
    """Counts vary by four times their mean, and every rule gains four times as much by chance; at
    a price of 1.25 there were ten rules.
    """
    random = np.random.default_rng(seed)
    y = random.negative_binomial(1, 0.25, 200)
    assert jr.support(jr.boosting.fit(X, y, loss="poisson", **SMALL).model) <= 4


def test_rules_without_noise_are_not_copied() -> None:
    """Three rules leave hardly any loss, but nor are there any others."""
    Z = np.random.default_rng(0).normal(size=(600, 5))
    y = ((Z[:, 0] > 0) & (Z[:, 1] > 0)) | ((Z[:, 2] > 0.5) & (Z[:, 3] > 0)) | (Z[:, 4] > 1)
    fit = jr.boosting.fit(Z, y)
    assert jr.support(fit.model) == 3
    assert fit.details["prices"][-1] < 0.15


def test_few_positives_have_more_rules_than_nats_pay_for() -> None:
    """Ten nearly separated positives: at a price of 1.25 there were two rules."""
    data = jr.datasets.load("wine")
    rows = np.append(np.flatnonzero(data.y == "class_0")[::6], np.flatnonzero(data.y != "class_0"))
    few = data[rows]
    fit = jr.boosting.fit(few.X, few.y == "class_0", seed=0)
    gains = np.array(jr.boosting.path(few.X, few.y == "class_0", max_rules=10)[-1].details["gains"])
    assert jr.support(fit.model) > int(np.argmax(np.cumsum(gains - 1.25))) + 1


@pytest.mark.parametrize("learner", [jr.boosting, jr.lire], ids=["boosting", "lire"])
def test_rare_positives_are_told_from_noise(learner: Any) -> None:
    """Boosting was worse than the constant on both; LIRE had a dozen rules of noise."""
    r = np.random.default_rng(50)
    X = r.normal(size=(11_000, 6))
    p = np.where((X[:, 0] > 1.2) & (X[:, 1] > 0.5), 0.3, 0.004)
    for share, most, worst in ((p, 5, 0.8), (0.02, 2, 1.05)):
        y = r.random(11_000) < share
        fit = learner.fit(X[:1000], y[:1000])
        assert len(fit.model.conjunctions) <= most
        constant = np.full(10_000, np.mean(y[:1000]))
        said = jr.predict_proba(fit.model, X[1000:])[:, 1]
        assert log_loss(y[1000:], said) < worst * log_loss(y[1000:], constant)


def test_required_columns_are_used() -> None:
    y = X[:, 0] + X[:, 1] > 0
    found = jr.boosting.fit(X, y, max_rules=None, required=[3], **SMALL)
    assert 3 in found.model.conjunctions.feature


def test_classes_one_against_the_rest_have_their_own_sizes() -> None:
    y = TARGETS["softmax"]
    found = jr.boosting.fit(X, y, max_rules=None, multiclass="one_vs_rest", **SMALL)
    assert all("max_rules=" in why for why in found.details["chosen"])


def test_an_estimator_takes_it() -> None:
    from jaxrules.estimators import RuleBoostingClassifier

    y = TARGETS["logistic"]
    found = RuleBoostingClassifier(max_rules=None, **SMALL).fit(X, y).model_
    assert str(found) == str(jr.boosting.fit(X, y, max_rules=None, **SMALL).model)


@pytest.mark.parametrize("loss", ["exponential", "gamma"])
def test_other_losses_are_refused(loss: str) -> None:
    y = TARGETS["logistic"] if loss == "exponential" else np.exp(SIGNAL)
    with pytest.raises(ValueError, match="max_rules=None needs .* set max_rules, or use cross"):
        jr.boosting.fit(X, y, loss=loss, max_rules=None)


def test_a_path_without_end_stops_in_time():
    X = np.random.default_rng(0).normal(size=(60, 2))
    fits = jr.boosting.path(X, X[:, 0] > 0, max_rules=2**40, time_limit=0.2)
    assert 1 <= len(fits) < 100


@pytest.mark.parametrize(
    "options",
    [
        {"max_nonzeros": 2},
        {"linear_terms": True},
        {"monotone": {0: 1}},
        {"required": [3]},
        {"sample_weight": np.linspace(0.5, 2.0, 120)},
        {"missing": "own_category"},
    ],
)
@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_all_thresholds_and_a_chosen_size_go_with_other_options(
    kind: str, options: dict[str, Any]
) -> None:
    Z, y = X[:120].copy(), TARGETS[kind][:120]
    if "missing" in options:
        Z[::7, 0] = np.nan
    given: dict[str, Any] = {"max_cut_points": None, "max_length": 1, "l2_penalty": 3.0} | options
    fit = jr.boosting.fit(Z, y, **given)
    each = fit.details["gains"], fit.details["prices"]
    if not isinstance(fit.details["l2_penalty"], float):  # monotone: a model per class
        assert all(len(gains) == len(prices) > 0 for gains, prices in zip(*each, strict=True))
        return
    if "required" in options:
        assert 3 in fit.model.conjunctions.feature
        return
    whole = jr.boosting.path(Z, y, max_rules=10, **given)[-1]
    worth = np.subtract(whole.details["gains"], whole.details["prices"])
    assert len(each[0]) == int(np.argmax(np.cumsum(worth))) + 1
