"""Importance is tested beside its picture; here: overlap and redundancy,
groups, operating points.
"""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from scipy.stats.contingency import relative_risk

import jaxrules as jr

C = jr.Condition
SCHEMA = jr.Schema((jr.Feature("a"), jr.Feature("b")), classes=("no", "yes"))


def model_of(rules: list[Any], weights: list[float], intercept: float = 0.0) -> jr.RuleEnsemble:
    built = jr.Conjunctions.build(SCHEMA, rules)
    return jr.RuleEnsemble(
        built, np.array(weights)[:, None], np.array([intercept]), link="logistic"
    )


# Overlap


def test_a_report_counts_rows() -> None:
    rules = [
        [C.above(0, 0.0)],
        [C.above(0, 1.0), C.above(1, -9.0)],
        [C.above(1, 2.0)],
        [C.below(0, 9.0)],
    ]
    report = jr.rule_report(
        model_of(rules, [1.0, 1.0, 1.0, 0.0]), [[0.5, 0], [2, 0], [3, 0], [-1, 3], [-1, 0]]
    )
    first, second, third = report.rules  # the last is not in use
    assert [rule.text for rule in report.rules] == ["a > 0", "a > 1 & b > -9", "b > 2"]
    assert [rule.rows for rule in report.rules] == [0.6, 0.4, 0.2]
    assert [rule.alone for rule in report.rules] == [0.2, 0.0, 0.2]
    assert (first.like, first.overlap, second.like) == (1, 2 / 3, 0)
    assert (first.idle, second.idle, third.idle) == ((), ("b > -9",), ())
    np.testing.assert_allclose(report.overlap, [[1, 2 / 3, 0], [2 / 3, 1, 0], [0, 0, 1]])
    assert (
        str(report)
        .splitlines()[2]
        .endswith("2  40.0%  0.0%   67% with 1  a > 1 & b > -9   (idle: b > -9)")
    )
    assert "3 rules in use" in report._repr_html_()


def test_a_report_of_lists_and_of_few_rules(rule_list: jr.RuleList, table: jr.Table) -> None:
    report = jr.rule_report(rule_list, table)
    np.testing.assert_allclose(
        [rule.rows for rule in report.rules], rule_list.conjunctions.satisfied(table).mean(axis=0)
    )
    (only,) = jr.rule_report(model_of([[C.above(0, 0.0)]], [1.0]), np.ones((3, 2))).rules
    assert (only.rows, only.alone, only.like, only.overlap, only.idle) == (
        1.0,
        1.0,
        None,
        0.0,
        ("a > 0",),
    )
    assert jr.rule_report(model_of([], [1.0][:0]), np.ones((3, 2))).rules == ()
    for wrong in ("model", jr.Fit(rule_list, 0.0, "min", jr.Status.CONVERGED)):
        with pytest.raises(TypeError, match="must be a rule ensemble or list"):
            jr.rule_report(wrong, table)


# Groups


def test_groups_are_scored_apart() -> None:
    model = model_of([[C.above(0, 0.0)]], [2.0], -1.0)
    X = pd.DataFrame({"a": [1.0, 1, -1, -1, 1], "b": [0.0, 0, 0, 1, 1]})
    y, weight = ["yes", "no", "yes", "no", "yes"], [1.0, 3.0, 1.0, 1.0, 0.0]
    found = jr.scores_by_group(model, X, y, ["f", "f", "f", "m", "m"], weight)
    assert found == (("f", 3, 0.2, 0.8, 1.0, 0.5), ("m", 2, 1.0, 0.0, 0.0, None))
    assert [(one.group, *one[1:]) for one in jr.scores_by_group(model, X, y, "b", weight)] == [
        (0.0, 3, 0.2, 0.8, 1.0, 0.5), (1.0, 2, 1.0, 0.0, 0.0, None)
    ]  # fmt: skip


def test_groups_of_categories_and_of_more_classes(rule_list: jr.RuleList, table: jr.Table) -> None:
    y = jr.predict(rule_list, table)
    found = jr.scores_by_group(rule_list, table, y, "job")
    assert {one.group: one.rows for one in found} == {
        "clerk": 2,
        "cook": 2,
        "smith": 2,
        "(missing)": 1,
        "(unseen)": 1,
    }
    assert all(one.accuracy == 1.0 for one in found)
    assert (
        sum(one.rows for one in jr.scores_by_group(rule_list, table, y, "age")) == 8
    )  # a missing number is a group
    three = jr.RuleList(
        rule_list.conjunctions.with_schema(rule_list.schema.with_classes(("a", "b", "c"))),
        rule_list.labels,
        np.full((4, 3), 1 / 3),
    )
    assert jr.scores_by_group(three, table, ["a"] * 8, ["g"] * 8)[0][3:] == (None, None, None)
    with pytest.raises(ValueError, match="which has no 'colour'"):
        jr.scores_by_group(rule_list, table, y, "colour")
    numbers = jr.RuleEnsemble(
        jr.Conjunctions.build(SCHEMA.with_classes(None), []), np.zeros((0, 1)), np.zeros(1)
    )
    with pytest.raises(ValueError, match="predicts numbers"):
        jr.scores_by_group(numbers, np.ones((2, 2)), [0, 1], [0, 1])


def test_ratios_of_groups_have_the_intervals_of_scipy() -> None:
    income = np.array([10.0] * 30 + [40.0] * 70 + [10.0] * 45 + [40.0] * 25 + [40.0] * 10)
    group = np.array(["f"] * 100 + ["m"] * 70 + ["x"] * 10)
    schema = jr.Schema((jr.Feature("income"),), classes=("repaid", "default"))
    rules = jr.Conjunctions.build(schema, [[jr.Condition.at_most(0, 30)]])
    model = jr.RuleEnsemble(rules, np.array([[2.0]]), np.array([-1.0]), link="logistic")
    y = np.where(income > 20, "repaid", "default")
    found = jr.scores_by_group(model, income[:, None], y, group)
    assert found.favourable == "repaid"
    well = {"f": (70, 100), "m": (25, 70), "x": (10, 10)}
    for one, ratio in zip(found, found.ratios, strict=True):
        assert ratio is not None
        k, n = well[one.group]
        ends = binomtest(k, n).proportion_ci(method="wilson")
        assert (ratio.share, ratio.low, ratio.high) == pytest.approx((k / n, ends.low, ends.high))
        assert ratio.ratio == pytest.approx(k / n)
        assert ratio.four_fifths == (k / n >= 0.8)
        if one.group == "x":
            assert (ratio.ratio_low, ratio.ratio_high) == (None, None)
            continue
        katz = relative_risk(k, n, 10, 10).confidence_interval(0.95)
        assert (ratio.ratio_low, ratio.ratio_high) == pytest.approx((katz.low, katz.high))
    assert str(found).startswith(
        "3 groups; favourable: repaid; 2 below 4/5 of the largest share, 2 of them beyond chance"
    )
    assert "70.0%" in str(found)
    assert found._repr_html_().count("<tr") >= 4
    assert pickle.loads(pickle.dumps(found)).ratios == found.ratios
    # Weights that multiply all rows change nothing.
    double = jr.scores_by_group(model, income[:, None], y, group, np.full(180, 2.0))
    assert double.ratios == found.ratios
    other = jr.scores_by_group(model, income[:, None], y, group, favourable="default")
    assert [one and one.ratio for one in other.ratios] == pytest.approx([0.3 / (45 / 70), 1, 0])
    assert other.ratios[2] is not None
    assert other.ratios[2].ratio_low is None  # no such row
    with pytest.raises(ValueError, match="favourable must be one of the classes"):
        jr.scores_by_group(model, income[:, None], y, group, favourable="hired")
    weight = np.where(group == "m", 0.0, 1.0)
    assert jr.scores_by_group(model, income[:, None], y, group, weight).ratios[1] is None


# Operating points


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.sampled_from([0.5, 1.0, 3.0]), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([0.0, 0.1, 0.25, 0.5, 1 / 3, 1.0]),
)
def test_the_lowest_threshold_within_the_limit(
    rows: list[tuple[int, float, bool]], limit: float
) -> None:
    """No score that occurs would raise more alarms and stay within the limit."""
    model = model_of(
        [[C.above(0, float(cut))] for cut in range(-3, 3)], [1.0, 0.5, 0.25, 1.0, 2.0, 0.1]
    )
    X = np.array([[value, 0.0] for value, _, _ in rows])
    weights = np.array([weight for _, weight, _ in rows])
    y = np.where([positive for *_, positive in rows], "yes", "no")
    point = jr.operating_point(model, X, y, max_alarms=limit, sample_weight=weights)
    score = np.asarray(jr.decision_function(model, X))
    alarm, total = score > point.threshold, weights.sum()
    np.testing.assert_allclose(point.alarms, weights[alarm].sum() / total)
    assert point.alarms <= limit * (1 + 1e-9)
    for lower in np.unique(score[~alarm]):
        assert weights[score >= lower].sum() / total > limit
    for rate, label in ((point.true_positive_rate, "yes"), (point.false_positive_rate, "no")):
        inside = y == label
        assert rate == (
            pytest.approx(weights[alarm & inside].sum() / weights[inside].sum())
            if inside.any()
            else None
        )


def test_thresholds_of_lists_and_bad_input(rule_list: jr.RuleList, table: jr.Table) -> None:
    point = jr.operating_point(rule_list, table, max_alarms=0.5)
    share = jr.predict_proba(rule_list, table)[:, 1]
    assert point.alarms == np.mean(share > point.threshold) <= 0.5
    assert point[2:4] == (None, None)
    assert point.alarms + point.tied == np.mean(share >= share[share <= point.threshold].max())
    with pytest.raises(ValueError, match="max_alarms must lie in"):
        jr.operating_point(rule_list, table, max_alarms=2)
    with pytest.raises(TypeError, match=r"pass fit\.model"):
        jr.operating_point(
            jr.Fit(rule_list, 0.0, "min", jr.Status.CONVERGED), table, max_alarms=0.1
        )
    numbers = jr.RuleEnsemble(
        jr.Conjunctions.build(SCHEMA.with_classes(None), []), np.zeros((0, 1)), np.zeros(1)
    )
    with pytest.raises(ValueError, match="two classes"):
        jr.operating_point(numbers, np.ones((2, 2)), max_alarms=0.1)
