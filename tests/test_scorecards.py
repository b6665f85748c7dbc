"""Scorecards against brute force with scikit-learn's logistic regression."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import minimize

import jaxrules as jr
from jaxrules.models.persistence import from_json, to_json
from jaxrules.users import scorecards

RNG = np.random.default_rng(1)
X = RNG.integers(0, 4, (150, 3)).astype(float)
P = 1 / (1 + np.exp(-(1.5 * (X[:, 0] > 1) - 1.0 * (X[:, 1] > 2) + 0.4 * (X[:, 2] > 0) - 0.5)))
Y = np.where(RNG.random(150) < P, "yes", "no")
C = jr.Condition
RULES = jr.Conjunctions.build(
    jr.as_table(X).schema, [[C.above(0, 1.0)], [C.above(1, 2.0)], [C.above(2, 0.0)]]
)


def model() -> jr.RuleEnsemble:
    rules = RULES.with_schema(RULES.schema.with_classes(("no", "yes")))
    start = jr.RuleEnsemble(rules, np.zeros((3, 1)), np.zeros(1), link="logistic")
    return jr.refit(start, X, Y)


def objective(points: np.ndarray, at: np.ndarray, ridge: float) -> float:
    """The sum of the losses and the penalty, over the rows."""
    total = RULES.satisfied(jr.as_table(X)) @ points
    margin = np.where(Y == "yes", 1, -1) * (at[0] * total + at[1])
    return float(np.logaddexp(0, -margin).sum() + ridge / 2 * (at[0] * points) @ (at[0] * points))


@pytest.mark.full
@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_the_best_of_all_points(ridge: float) -> None:
    card = jr.scorecard(model(), X, Y, max_points=2, l2_penalty=ridge)
    assert card.status is jr.Status.OPTIMAL
    values = {}
    for points in itertools.product(range(-2, 3), repeat=3):
        array = np.array(points)
        values[points] = minimize(lambda at, p=array: objective(p, at, ridge), np.zeros(2)).fun
    found = objective(card.points, np.array([card.scale, card.intercept]), ridge)
    assert found == pytest.approx(min(values.values()), abs=1e-6)
    assert values[tuple(card.points.tolist())] == pytest.approx(found, abs=1e-6)
    primitive = [points for points in values if np.gcd.reduce(points) == 1]
    assert card.tried == 1 + len(primitive) // 2  # another sign or size is another scale


def test_a_card_is_a_model() -> None:
    card = jr.scorecard(model(), X, Y)
    np.testing.assert_allclose(card.model.weights[:, 0], card.scale * card.points)
    assert jr.risk(card.model, X, Y) == pytest.approx(card.loss)
    assert jr.risk(model(), X, Y) == pytest.approx(card.loss_before)
    assert np.abs(card.points).max() <= 5
    assert card.scale > 0
    total = RULES.satisfied(jr.as_table(X)) @ card.points
    assert [one for one, _ in card.totals] == sorted(set(total.tolist()))
    assert sum(share for _, share in card.totals) == pytest.approx(1.0)
    assert "no better points exist" in str(card)
    assert card._repr_html_().count("<table>") == 2


def test_many_rules_are_rounded_and_improved(monkeypatch: pytest.MonkeyPatch) -> None:
    best = jr.scorecard(model(), X, Y)
    monkeypatch.setattr(scorecards, "_MOST_CARDS", 10)
    card = jr.scorecard(model(), X, Y)
    assert card.status is jr.Status.CONVERGED
    assert "rounded, improved" in str(card)
    assert card.tried < best.tried
    assert card.loss == pytest.approx(best.loss, abs=1e-3)


def test_weights_are_repeated_rows() -> None:
    weight = RNG.integers(0, 3, 150)
    rows = np.repeat(np.arange(150), weight)
    one = jr.scorecard(model(), X, Y, sample_weight=weight, l2_penalty=1.0)
    other = jr.scorecard(model(), X[rows], Y[rows], l2_penalty=1.0)
    np.testing.assert_array_equal(one.points, other.points)
    assert one.scale == pytest.approx(other.scale, rel=1e-5)


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="model must be RuleEnsemble"):
        jr.scorecard(X, X, Y)
    with pytest.raises(ValueError, match="two classes"):
        jr.scorecard(jr.rulefit.fit(X, X[:, 0], rules=RULES, l1_penalty=0.1).model, X, X[:, 0])
    with pytest.raises(ValueError, match="model has no rules"):
        jr.scorecard(jr.without_rules(model(), [0, 1, 2]), X, Y)
    with pytest.raises(ValueError, match="max_points"):
        jr.scorecard(model(), X, Y, max_points=0)


def test_points_double_the_odds() -> None:
    card = jr.scorecard(model(), X, Y)
    for good, positive in itertools.product(("no", "yes"), (True, False)):
        scale: dict[str, Any] = {
            "pdo": 40,
            "base_score": 500,
            "base_odds": 3,
            "good": good,
            "positive_points": positive,
        }
        scaled = jr.scaled_scorecard(card, **scale)
        # A saved card is its model: the same scale gives the same card.
        again = jr.scaled_scorecard(from_json(to_json(scaled.model)), **scale)
        assert (again.base, again.points.tolist()) == (scaled.base, scaled.points.tolist())
        # By hand: score = 500 + 40 log2(odds / 3).
        shares = jr.predict_proba(card.model, X)
        chance = shares[:, ["no", "yes"].index(good)]
        expected = 500 + 40 * np.log2(chance / (1 - chance) / 3)
        scores = scaled.score(X)
        assert scores.dtype.kind == "i"
        assert np.abs(scores - expected).max() <= 0.5 * (1 + len(RULES))
        held = RULES.satisfied(jr.as_table(X))
        by_hand = scaled.base + np.where(held, scaled.points[:, 1], scaled.points[:, 0]).sum(axis=1)
        assert scores.tolist() == by_hand.tolist()
        assert (scaled.points >= 0).all() or not positive
        # Its model predicts from the rounded points.
        sign = 1 if good == "yes" else -1
        odds = sign * jr.decision_function(scaled.model, X)
        np.testing.assert_allclose(scaled.offset + scaled.factor * odds, scores)
        assert f"40 points double the odds of {good}" in str(scaled)
        assert "<table" in scaled._repr_html_()


def test_an_ensemble_with_half_log_odds_gets_the_same_scale() -> None:
    plain = model()
    half = dataclasses.replace(
        plain, weights=plain.weights / 2, intercept=plain.intercept / 2, link="exponential"
    )
    one, other = jr.scaled_scorecard(plain, pdo=100), jr.scaled_scorecard(half, pdo=100)
    assert one.points.tolist() == other.points.tolist()
    assert one.base == other.base


def test_points_lost_on_the_scale() -> None:
    scaled = jr.scaled_scorecard(model(), pdo=50)
    scores = scaled.score(X)
    possible = scaled.base + scaled.points.max(axis=1).sum()
    for one, score in zip(jr.reasons(scaled, X, most=None), scores.tolist(), strict=True):
        assert one.score == score
        assert one.reference == pytest.approx(possible)
        lost = [reason.points for reason in one.reasons]
        assert sum(lost) == pytest.approx(possible - score)
        assert all(float(points).is_integer() for points in lost)
    good = jr.reasons(scaled, X[:1], label="no", most=None)[0]
    worst = scaled.base + scaled.points.min(axis=1).sum()
    assert good.reference == pytest.approx(worst)
    assert sum(reason.points for reason in good.reasons) == pytest.approx(scores[0] - worst)


def test_cards_in_points_are_models_to_export() -> None:
    card = jr.scorecard(model(), X, Y)
    total = RULES.satisfied(jr.as_table(X)) @ card.points
    assert jr.predict(card.in_points, X).tolist() == total.tolist()
    scaled = jr.scaled_scorecard(card)
    assert jr.predict(scaled.in_points, X).tolist() == scaled.score(X).tolist()
    answers: dict[str, Any] = {}
    exec(jr.to_python(scaled.in_points), answers)
    rows = [dict(zip(RULES.schema.names, row, strict=True)) for row in X.tolist()]
    assert [answers["predict"](row) for row in rows] == scaled.score(X).tolist()
    assert jr.drift(scaled, X, X).scores[0].text == str(scaled.score(X).min())
    with pytest.raises(TypeError, match=r"got ScaledScorecard; pass card\.model .*card\.in_points"):
        jr.to_sql(scaled)


@pytest.mark.parametrize("good", ["no", "yes"])
def test_cut_offs(good: str) -> None:
    scaled = jr.scaled_scorecard(model(), good=good)
    scores = scaled.score(X)
    bad = "yes" if good == "no" else "no"
    for cut in [*np.unique(scores).tolist(), scores.max() + 1]:
        card = scaled.with_cut_off(cut)
        assert card.cut_off == cut
        assert f"{good} is predicted from {cut} on" in str(card)
        assert jr.predict(card.model, X).tolist() == np.where(scores >= cut, good, bad).tolist()
    assert scaled.with_cut_off(500.5).cut_off == 501
    labels = jr.predict(scaled.model, X)
    assert scaled.cut_off is not None
    assert labels.tolist() == np.where(scores >= scaled.cut_off, good, bad).tolist()
    point = jr.operating_point(scaled, X, Y, max_alarms=0.4)
    assert point.alarms == jr.operating_point(scaled.model, X, Y, max_alarms=0.4).alarms
    alarms = jr.predict(scaled.with_cut_off(point.threshold).model, X) == "yes"
    assert alarms.mean() == pytest.approx(point.alarms)
    beyond = dataclasses.replace(scaled, model=jr.with_threshold(scaled.model, -1e308))
    assert beyond.cut_off is None
    with pytest.raises(ValueError, match="score must be"):
        scaled.with_cut_off(np.inf)
    with pytest.raises(TypeError, match="score must be a number"):
        scaled.with_cut_off(cast(Any, "high"))


def test_reports_take_cards() -> None:
    card = jr.scorecard(model(), X, Y)
    page = jr.report(card, X, Y, path=None).html
    assert "a point of the card is worth" in page
    assert "Scorecard of 3 rules" in page
    page = jr.report(jr.scaled_scorecard(card), X, Y, path=None).html
    assert "a point towards no is worth" in page


def test_bad_scales() -> None:
    with pytest.raises(ValueError, match="pdo must lie in"):
        jr.scaled_scorecard(model(), pdo=0)
    with pytest.raises(ValueError, match="base_odds must lie in"):
        jr.scaled_scorecard(model(), base_odds=-1)
    with pytest.raises(ValueError, match="good must be one of the classes"):
        jr.scaled_scorecard(model(), good="maybe")
    with pytest.raises(TypeError, match="positive_points must be True or False"):
        jr.scaled_scorecard(model(), positive_points=1)
    with pytest.raises(TypeError, match="model must be RuleEnsemble"):
        jr.scaled_scorecard("card")
    with pytest.raises(ValueError, match="model has no rules"):
        jr.scaled_scorecard(jr.without_rules(model(), [0, 1, 2]))
