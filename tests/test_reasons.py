"""Reason codes and the side of rules, against sums by hand."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.rules.conditions import Condition
from jaxrules.tools.fits import Status
from jaxrules.users.scorecards import Scorecard

C = jr.Condition
FEATURES = (
    jr.Feature("income"),
    jr.Feature("job", ("cook", "vet", "nurse")),
    jr.Feature("member", levels=(False, True)),
)
SCHEMA = jr.Schema(FEATURES, "own_category", ("repaid", "default"))


def rows(n: int = 80, gaps: bool = True) -> jr.Table:
    rng = np.random.default_rng(0)
    values = [10.0, 20.0, 25.0, 30.0] + [np.nan] * gaps
    schema = SCHEMA if gaps else dataclasses.replace(SCHEMA, missing="refuse")
    return jr.Table(
        schema,
        (
            rng.choice(values, n),
            rng.integers(-2 if gaps else 0, 3, n).astype(np.int32),
            rng.choice([0.0, 1.0], n),
        ),
    )


_ends = st.sampled_from([-np.inf, 10.0, 20.0, 22.0, 30.0, np.inf])
_direction = jr.Direction((0, 1), (1.0, 10.0), (-1, 1))


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([0, 2, _direction]),
    _ends,
    _ends,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_a_complement_holds_where_the_condition_does_not(
    feature: Any, low: float, high: float, left: bool, right: bool, missing: bool, gaps: bool
) -> None:
    table = rows(gaps=gaps)
    one = Condition(feature, low, high, left, right, missing)
    other = one.complement(table.schema)
    if np.isfinite(low) and np.isfinite(high) and not one.admits_no_number:
        assert other is None
    if other is not None:
        held = jr.Conjunctions.build(table.schema, [[one], [other]]).satisfied(table)
        assert (held.sum(axis=1) == 1).all()


@given(st.sets(st.integers(0, 2)), st.booleans(), st.booleans())
def test_a_complement_of_categories(codes: set[int], missing: bool, unseen: bool) -> None:
    one = Condition(1, categories=frozenset(codes), missing=missing, unseen=unseen)
    other = one.complement(SCHEMA)
    assert other is not None
    assert other.complement(SCHEMA) == one
    held = jr.Conjunctions.build(SCHEMA, [[one], [other]]).satisfied(rows())
    assert (held.sum(axis=1) == 1).all()


def ensemble(weights: Any, linear: bool = False, classes: Any = SCHEMA.classes) -> jr.RuleEnsemble:
    schema = SCHEMA.with_classes(classes)
    rules = jr.Conjunctions.build(
        schema,
        [
            [C.above(0, 20)],
            [C.one_of(1, [0])],
            [C.above(0, 10), C.at_least(2, 1)],
            [C(0, 10.0, 30.0)],
        ],
    )
    weights = np.array(weights, float).reshape(4, -1)
    start = np.full(weights.shape[1], 0.25)
    term = jr.LinearTerms(
        np.array([0], np.int32),
        np.full((1, weights.shape[1]), -0.1),
        np.array([5.0]),
        np.array([25.0]),
    )
    link = "identity" if classes is None else "softmax" if len(classes) > 2 else "logistic"
    return jr.RuleEnsemble(rules, weights, start, term if linear else None, link)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("classes", [SCHEMA.classes, None])
def test_the_side_of_a_rule_changes_no_score(linear: bool, classes: Any) -> None:
    model = ensemble([-2, 1, -0.5, -0.25], linear, classes)
    table = jr.Table(model.schema, rows().columns)
    turned = jr.oriented(model)
    turned.validate()
    np.testing.assert_allclose(
        jr.decision_function(turned, table), jr.decision_function(model, table), atol=1e-12
    )
    assert turned.weights[:, 0].tolist() == [2, 1, -0.5, -0.25]  # the last two have no complement
    assert turned.conjunctions.describe(0) == "(income <= 20 or missing)"
    assert turned.intercept.tolist() == [0.25 - 2]
    smaller = jr.oriented(model, "smaller", table)
    np.testing.assert_allclose(
        jr.decision_function(smaller, table), jr.decision_function(model, table), atol=1e-12
    )
    share = smaller.conjunctions.satisfied(table).mean(axis=0)
    assert (share[:2] <= 0.5).all()


def test_several_classes_have_smaller_sides_only() -> None:
    model = ensemble(np.arange(12), classes=("a", "b", "c"))
    table = jr.Table(model.schema, rows().columns)
    smaller = jr.oriented(model, "smaller", table)
    np.testing.assert_allclose(
        jr.predict_proba(smaller, table), jr.predict_proba(model, table), atol=1e-12
    )
    with pytest.raises(ValueError, match="side 'positive' is for models of two classes"):
        jr.oriented(model)


def test_points_lost_against_the_best_add_up() -> None:
    for linear in (False, True):
        model = ensemble([-2, 1, -0.5, 0.25], linear)
        found = jr.reasons(model, rows(), most=None)
        scores = jr.decision_function(model, rows())
        held = model.conjunctions.satisfied(rows())
        # The income between 5 and 25 lowers the score by at most 2.5; a missing one by nothing.
        best = 0.25 - 2 - 0.5 - (2.5 if linear else 0.0)
        for one, score, holds in zip(found, scores, held, strict=True):
            assert one.reference == pytest.approx(best)
            assert one.score == pytest.approx(score)
            points = [reason.points for reason in one.reasons]
            assert sum(points) == pytest.approx(score - best)
            assert points == sorted(points, reverse=True)
            assert min(points, default=1) > 0
            texts = {reason.rule: reason.text for reason in one.reasons}
            assert (0 in texts) == (not holds[0])
            assert texts.get(0, "(income <= 20 or missing)") == "(income <= 20 or missing)"
            assert (1 in texts) == holds[1]
            assert (2 in texts) == (not holds[2])
            rule = model.conjunctions.describe(2)
            assert texts.get(2, f"not ({rule})") == f"not ({rule})"


def test_points_against_the_mean_of_other_rows() -> None:
    model = ensemble([-2, 1, -0.5, 0.25])
    share = model.conjunctions.satisfied(rows()).mean(axis=0)
    row = [{"income": 30, "job": "cook", "member": True}]
    (found,) = jr.reasons(model, row, against=rows(), most=1)
    mean = float(jr.decision_function(model, rows()).mean())
    assert found.reference == pytest.approx(mean)
    (reason,) = found.reasons
    assert reason.rule == 1
    assert reason.text == "job == cook"
    assert reason.points == pytest.approx(1 - share[1])
    # Towards the first class, signs turn: the high income speaks for it most.
    (other,) = jr.reasons(model, row, against=rows(), label="repaid", most=1)
    assert other.reasons[0].rule == 0
    assert other.reasons[0].points == pytest.approx(2 * (1 - share[0]))
    assert other.score == pytest.approx(-found.score)


def test_an_alarm_of_a_card_of_protective_rules_has_reasons() -> None:
    points = np.array([-3, -1, -2, 0])
    model = ensemble(0.5 * points)
    card = Scorecard(model, points, 0.5, 0.25, ((0, 1.0),), 0.5, 0.5, Status.OPTIMAL, 1)
    (found,) = jr.reasons(card, [{"income": 5, "job": "vet", "member": False}])
    assert found.prediction == "default"
    assert [(one.points, one.rule) for one in found.reasons] == [(3, 0), (2, 2), (1, 1)]
    assert (found.score, found.reference) == (0, -6)
    assert "+3  (income <= 20 or missing)" in str(found)
    assert "income" in found._repr_html_()


def test_a_class_of_several() -> None:
    model = ensemble(np.arange(12) - 5, classes=("a", "b", "c"))
    table = jr.Table(model.schema, rows().columns)
    scores = jr.decision_function(model, table)
    for k, label in enumerate("abc"):
        found = jr.reasons(model, table, label=label, most=None)
        for i, one in enumerate(found):
            assert one.label == label
            total = one.reference + sum(reason.points for reason in one.reasons)
            assert total == pytest.approx(scores[i, k])


@pytest.mark.parametrize("several", [False, True])
def test_sql_lists_the_reasons(several: bool) -> None:
    weights = np.arange(12) - 5.5 if several else [-2, 1, -0.5, 0.25]
    model = ensemble(weights, classes=("a", "b", "c") if several else SCHEMA.classes)
    table = jr.Table(model.schema, rows(40).columns)
    columns = table.to_columns()
    # A category that fit did not see has no name in the table.
    given = [
        tuple(None if value != value else value for value in row)
        for row in zip(*columns.values(), strict=True)
    ]
    for label in model.schema.classes or ():
        sql = jr.to_sql(model, "reasons", label=label)
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            database.execute("CREATE TABLE people (income REAL, job TEXT, member BOOLEAN)")
            database.executemany("INSERT INTO people VALUES (?, ?, ?)", given)
            found = database.execute(f"SELECT {sql} FROM people ORDER BY rowid").fetchall()
        expected = jr.reasons(model, table, label=label, most=None)
        texts = ["; ".join(reason.text for reason in one.reasons) for one in expected]
        assert [text for (text,) in found] == texts
        assert any("; " in text for text in texts)


@pytest.mark.parametrize("classes", [("a", "b", "c"), SCHEMA.classes, None])
def test_a_python_module_lists_the_reasons(classes: Any) -> None:
    weights = np.arange(12) - 5.5 if classes and len(classes) == 3 else [-2, 1, -0.5, 0.25]
    model = ensemble(weights, classes=classes)
    table = jr.Table(model.schema, rows(40).columns)
    module: dict[str, Any] = {}
    exec(jr.to_python(model), module)
    columns = table.to_columns()
    given = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for label in classes or (None,):
        expected = jr.reasons(model, table, label=label, most=None)
        for row, one in zip(given, expected, strict=True):
            assert module["reasons"](row, label) == [(r.text, r.points) for r in one.reasons]
    if classes == SCHEMA.classes:
        assert module["reasons"](given[0]) == module["reasons"](given[0], "default")
    with pytest.raises(ValueError, match="label must be one of"):
        module["reasons"](given[0], "declined")
    linear = jr.to_python(ensemble([-2, 1, -0.5, 0.25], linear=True))
    assert "def reasons" not in linear


def test_sql_has_no_reasons_of_other_models() -> None:
    with pytest.raises(ValueError, match="what='reasons' is for models without linear terms"):
        jr.to_sql(ensemble([-2, 1, -0.5, 0.25], linear=True), "reasons")
    shares = np.array([[0.5, 0.5], [0.2, 0.8]])
    listed = jr.RuleList(
        ensemble([1, 1, 1, 1]).conjunctions.take([0]), np.array([0, 1], np.int32), shares
    )
    with pytest.raises(TypeError, match="model is a RuleList, but what='reasons'"):
        jr.to_sql(listed, "reasons")
    with pytest.raises(ValueError, match="label must be one of the classes"):
        jr.to_sql(ensemble(np.zeros(12), classes=("a", "b", "c")), "reasons")


def test_bad_input() -> None:
    model = ensemble([-2, 1, -0.5, 0.25])
    with pytest.raises(ValueError, match="label must be one of the classes"):
        jr.reasons(model, rows(), label="declined")
    with pytest.raises(ValueError, match="label must be one of the classes"):
        jr.reasons(ensemble(np.zeros(12), classes=("a", "b", "c")), rows())
    with pytest.raises(ValueError, match="model predicts numbers"):
        jr.reasons(ensemble(np.zeros(4), classes=None), rows(), label="default")
    with pytest.raises(ValueError, match="most must be at least 1"):
        jr.reasons(model, rows(), most=0)
    with pytest.raises(ValueError, match="against has no rows"):
        jr.reasons(model, rows(), against=rows()[:0])
    for other in ("model", jr.ssrl.fit(np.arange(8.0)[:, None], [0, 1] * 4).model):
        with pytest.raises(TypeError, match="model must be a rule ensemble or a scorecard, got"):
            jr.reasons(other, rows())
    free = dataclasses.replace(
        model,
        linear=jr.LinearTerms(
            np.array([0], np.int32), np.ones((1, 1)), np.array([-np.inf]), np.array([np.inf])
        ),
    )
    with pytest.raises(ValueError, match="no best case exists; pass rows as against"):
        jr.reasons(free, rows())
    assert jr.reasons(free, rows(), against=rows())
    with pytest.raises(ValueError, match="side 'smaller' needs rows: pass X"):
        jr.oriented(model, "smaller")
    with pytest.raises(ValueError, match='side must be "positive" or "smaller"'):
        jr.oriented(model, "left")
    with pytest.raises(TypeError, match="model must be RuleEnsemble"):
        jr.oriented("model")
    with pytest.raises(ValueError, match="X has no rows"):
        jr.oriented(model, "smaller", rows()[:0])


# Explanations with what does not hold


@settings(max_examples=40)
@given(st.lists(st.integers(-3, 3).filter(bool), min_size=1, max_size=3), st.integers(-3, 3))
def test_absent_rules_are_those_that_do_not_hold(weights: list[int], start: int) -> None:
    schema = jr.Schema((jr.Feature("a"), jr.Feature("b"), jr.Feature("c")), classes=("no", "yes"))
    rules = jr.Conjunctions.build(
        schema, [[jr.Condition.above(k, 0.5)] for k in range(len(weights))]
    )
    values = np.array(weights, float)[:, None]
    model = jr.RuleEnsemble(rules, values, np.array([float(start)]), link="logistic")
    rows = np.array(np.meshgrid([0.0, 1.0], [0.0, 1.0], [0.0, 1.0])).reshape(3, -1).T
    for row, plain, full in zip(
        rows, jr.explain(model, rows), jr.explain(model, rows, absent=True), strict=True
    ):
        assert plain.absent == ()
        assert [p.text for p in plain.parts] == [p.text for p in full.parts]
        total = sum(float(part.weight[0]) for part in (*full.parts, *full.absent))
        assert total == start + sum(weights)  # all rules, whether they hold or not
        assert len(full.absent) == sum(row[k] == 0 for k in range(len(weights)))
        assert str(full).count("if it held: ") == len(full.absent)


def test_several_classes_show_absent_rules() -> None:
    schema = jr.Schema((jr.Feature("a"),), classes=("x", "y", "z"))
    rules = jr.Conjunctions.build(schema, [[jr.Condition.above(0, 0.5)]])
    model = jr.RuleEnsemble(rules, np.array([[1.0, -2.0, 0.0]]), np.zeros(3), link="softmax")
    told = str(jr.explain(model, [[0.0]], absent=True)[0])
    assert told.splitlines()[-1].split() == [
        *("+1.0000", "-2.0000", "+3.0000"),
        *("if", "it", "held:", "a", ">", "0.5"),
    ]


@pytest.mark.parametrize("positive_points", [True, False])
def test_cards_are_explained_in_points(positive_points: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + X[:, 1] > rng.normal(size=200) / 2, "good", "bad")
    model = jr.boosting.fit(X, y, max_rules=3).model
    card = jr.scorecard(model, X, y)
    held = card.model.conjunctions.satisfied(jr.as_table(X))
    for one, row, said in zip(
        jr.explain(card, X, absent=True), held, jr.predict(card.model, X), strict=True
    ):
        assert one.score[0] == row @ card.points
        assert one.prediction == said
        assert sum(p.weight[0] for p in (*one.parts, *one.absent)) == card.points.sum()
        assert "." not in str(one).splitlines()[1].split()[0]
    scaled = jr.scaled_scorecard(card, positive_points=positive_points)
    for one, score in zip(jr.explain(scaled, X), scaled.score(X).tolist(), strict=True):
        assert one.score[0] == score
        assert f"{score:+d}  sum" in str(one)
        assert not one.absent
    assert jr.plots.waterfall(jr.explain(scaled, X[:1])[0]).get_xlabel() == "points"


def test_bad_input_of_explain() -> None:
    model = jr.boosting.fit(np.arange(20.0)[:, None], np.arange(20) > 9, max_rules=1).model
    with pytest.raises(TypeError, match="absent must be"):
        jr.explain(model, [[1.0]], absent=3)
