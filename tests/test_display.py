"""Models in words: numbers that are never rounded to something false, conditions, escaping."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.data.table import MISSING
from jaxrules.rules.lowered import Direction
from jaxrules.tools import display
from jaxrules.tools.display import (
    factor_digits,
    html_table,
    largest_of,
    number,
    share_text,
    weight_text,
)

C = jr.Condition
AGE = jr.Feature("age")
JOB = jr.Feature("job", ("clerk", "cook", "smith"))
finite = st.floats(-1e300, 1e300)


def condition_text(condition: jr.Condition, feature: jr.Feature) -> str:
    return replace(condition, feature=0).describe(jr.Schema((feature,), "own_category"))


def rule_text(rule: list[jr.Condition], schema: jr.Schema) -> str:
    return jr.Conjunctions.build(schema, [rule]).describe(0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (3.0, "3"),
        (-250000.0, "-250000"),
        (2.450000047683716, "2.45"),
        (0.1 + 0.2, "0.3"),
        (1 / 3, "0.33333"),
        (12345.5, "12345.5"),
        (1234567.25, "1234567.2"),
        (1e-7, "1e-07"),
        (1.23456e300, "1.2346e+300"),
        (99999.96, "100000"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
    ],
)
def test_numbers_to_read(value: float, text: str) -> None:
    assert number(value) == text


@given(value=finite)
def test_numbers_are_close_and_zero_only_for_zero(value: float) -> None:
    shown = float(number(value))
    assert (shown == 0) == (value == 0)
    assert math.isclose(shown, value, rel_tol=5.1e-5)
    if value == round(value) and abs(value) < 1e15:
        assert shown == value


@given(a=finite, b=finite)
def test_the_ends_of_an_interval_stay_distinct(a: float, b: float) -> None:
    lower, upper = min(a, b), max(a, b)
    if lower == upper:
        return
    text = condition_text(C(0, lower, upper), AGE)
    low, _, name, _, high = text.split()
    assert name == "age"
    assert low != high
    assert float(low) <= float(high)


@given(value=st.floats(1e-6, 1e14))
def test_neighbouring_ends_stay_distinct(value: float) -> None:
    low, _, _, _, high = condition_text(
        C(0, value, float(np.nextafter(value, np.inf))), AGE
    ).split()
    assert low != high


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (C.at_most(0, 45), "age <= 45"),
        (C.below(0, 45), "age < 45"),
        (C.above(0, 45), "age > 45"),
        (C.at_least(0, 45), "age >= 45"),
        (C(0, 31, 45), "31 < age <= 45"),
        (C(0, 31, 45, True, False), "31 <= age < 45"),
        (C(0, 31, 45, missing=True), "(31 < age <= 45 or missing)"),
        (C.at_least(0, 31) & C.at_most(0, 31), "age == 31"),
        (C.above(0, 31) & C.at_most(0, 31), "age never"),
        (C.above(0, 45) & C.at_most(0, 31), "age never"),
        (C.above(0, 45, missing=True) & C.at_most(0, 31, missing=True), "age is missing"),
        (C.is_missing(0, numeric=True), "age is missing"),
        (C.is_present(0, None), "age is not missing"),
        (C(0, missing=True), "any age"),
        (C(0, 1e8 + 0.25, 1e8 + 0.75), "100000000.25 < age <= 100000000.75"),
        (C(0, 0.99999999, 1.0), "0.99999999 < age <= 1"),
    ],
)
def test_intervals_in_words(condition: jr.Condition, text: str) -> None:
    assert condition_text(condition, AGE) == text


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (C.one_of(1, [1]), "job == cook"),
        (C.one_of(1, [2, 0]), "job in {clerk, smith}"),
        (C.one_of(1, [1, MISSING]), "(job == cook or missing)"),
        (C.none_of(1, [1], 3), "job != cook"),
        (C.none_of(1, [1, 2], 3), "job not in {cook, smith}"),
        (C.none_of(1, [1, MISSING], 3), "job != cook and not missing"),
        (C.none_of(1, [MISSING], 3), "job is not missing"),
        (C.none_of(1, [], 3), "any job"),
        (C.is_missing(1, numeric=False), "job is missing"),
        (C.is_present(1, 3), "job is not missing"),
        (C.one_of(1, []), "job never"),
    ],
)
def test_sets_in_words(condition: jr.Condition, text: str) -> None:
    assert condition_text(condition, JOB) == text


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (C.at_least(Direction((0, 2), (2.81, 1.5)), -0.28), "2.81 age + 1.5 income >= -0.28"),
        (C.below(Direction((0, 2), (-1.0, -1.5)), 3), "-age - 1.5 income < 3"),
        (C(Direction((0, 2), (1.0, -1.0)), -0.5, 2), "-0.5 < age - income <= 2"),
        (C.above(Direction((0, 1), (0.1, -1.0), (MISSING, 1)), 1), "0.1 age - [job == cook] > 1"),
        (C.above(Direction((1, 2), (2.0, 0.5)), 1), "2 [job is missing] + 0.5 income > 1"),
        (C.at_most(Direction((2,), (1e-7,)), 1.0, missing=True), "(1e-07 income <= 1 or missing)"),
        (C(Direction((0, 2), (1.0, 2.0)), 1, -1), "age + 2 income never"),
        (C.above(Direction((0, 2), (-1.0, 3.0), (), (40.0, -0.5)), 1),
         "-(age - 40) + 3 (income + 0.5) > 1"),
        (C.at_most(Direction((0, 2), (1.0, 0.1 + 0.2)), 1 / 3),
         "age + 0.30000000000000004 income <= 0.3333333333333333"),
    ],
)  # fmt: skip
def test_directions_in_words(condition: jr.Condition, text: str) -> None:
    schema = jr.Schema((AGE, JOB, jr.Feature("income")), "own_category")
    assert (
        condition.describe(schema)
        == jr.Conjunctions.build(schema, [[condition]]).describe(0)
        == text
    )


@pytest.mark.parametrize("name", ["a, b", "x & y", "{x", "", " ", "x ", "it's", "(x or missing)"])
def test_ambiguous_categories_are_quoted(name: str) -> None:
    assert (
        condition_text(C.one_of(0, [0]), jr.Feature("f", (name, "plain one"))) == f"f == {name!r}"
    )
    assert (
        condition_text(C.one_of(0, [1]), jr.Feature("f", (name, "plain one"))) == "f == plain one"
    )


def test_rules_in_words(schema: jr.Schema) -> None:
    assert rule_text([C.above(0, 31), C.one_of(1, [1])], schema) == "age > 31 & job == cook"
    assert rule_text([], schema) == "always"


@pytest.mark.parametrize(
    ("missing", "text"), [("refuse", "age <= 31 & job != cook"), ("own_category", None)]
)
def test_missing_values_are_mentioned_only_where_they_are_admitted(missing, text):
    schema = jr.Schema((AGE, JOB), missing=missing)
    code = JOB.categories.index("cook")
    rule = [C.at_most(0, 31, missing=True), C.none_of(1, [code], len(JOB.categories))]
    assert rule_text(rule, schema) == (text or "(age <= 31 or missing) & job != cook")


@given(weight=finite)
def test_weights_are_zero_only_for_zero(weight: float) -> None:
    shown = weight_text(weight)
    assert shown[0] in "+-"
    assert (float(shown) == 0) == (weight == 0)
    assert math.isclose(float(shown), weight, rel_tol=0.011)


def unit_of(shown: str) -> Decimal:
    """One of its last digit."""
    return Decimal(1).scaleb(int(Decimal(shown).as_tuple().exponent))


def adds_up(parts: Sequence[str], total: str) -> bool:
    """Whether printed numbers have the printed sum, up to half a unit of the last digit of each."""
    allowed = sum(map(unit_of, [*parts, total]), Decimal(0)) / 2
    with localcontext(prec=1000):
        return abs(sum(map(Decimal, parts), Decimal(0)) - Decimal(total)) <= allowed


@given(parts=st.lists(finite, min_size=1, max_size=6), digits=st.integers(2, 6))
def test_printed_numbers_add_up(parts: list[float], digits: int) -> None:
    total = math.fsum(parts)
    assume(math.isfinite(total))
    largest = largest_of(parts, total)
    *shown, sum_ = (weight_text(one, largest, digits) for one in [*parts, total])
    assert adds_up(shown, sum_)
    for value, text in zip(parts, shown, strict=True):
        assert (float(text) == 0) == (value == 0)
        finest = max(Decimal(10) ** -digits, Decimal(largest).scaleb(-13))
        assert unit_of(text) <= max(finest, Decimal(abs(value)).scaleb(-3))


@pytest.mark.parametrize("start", [0.0, 1.2e7, 5e10, 3e15, 1e-4])
def test_a_model_and_its_explanations_add_up_as_printed(start: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    size = 921.0415 if start >= 1 else 0.3 * (start or 1.0)
    y = start + size * ((X[:, 0] > 0) + 0.3 * (X[:, 1] > 0) + 0.1 * rng.normal(size=200))
    model = jr.boosting.fit(X, y, max_rules=3).model
    weight = re.compile(r"[-+]\d+(?:\.\d+)?(?:e[-+]\d+)?")
    heading, *rules = str(model).splitlines()[1:]
    intercept, weights = weight.findall(heading)[0], [line.split()[0] for line in rules]
    assert {intercept, *weights} <= set(weight.findall(model._repr_html_()))
    assert all(display.latex_number(one) in jr.to_latex(model) for one in (intercept, *weights))
    for explanation in jr.explain(model, X):
        *parts, total = (line.split()[0] for line in str(explanation).splitlines()[1:])
        assert parts[0] == intercept
        assert set(parts[1:]) <= set(weights)
        assert adds_up(parts, total)
        assert {*parts, total} <= set(weight.findall(explanation._repr_html_()))


@given(
    coefficient=st.floats(-1e5, 1e5),
    ends=st.tuples(st.floats(-1e8, 1e8), st.floats(-1e8, 1e8)).map(sorted),
)
def test_the_product_of_a_column_and_its_printed_coefficient_has_four_decimals(
    coefficient: float, ends: list[float]
) -> None:
    size = max(map(abs, ends))
    shown = weight_text(coefficient, digits=4 + factor_digits(*ends))
    wrong = abs(float(shown) - coefficient) * size
    assert wrong <= 0.51e-4 + 1e-13 * size * abs(coefficient)


@given(share=st.floats(0, 1))
def test_shares_are_certain_only_if_they_are(share: float) -> None:
    shown = share_text(share)
    assert (shown == "0.000") == (share == 0)
    assert (shown == "1.000") == (share == 1)
    assert abs(float(shown.strip("<>")) - share) <= 0.001


def test_an_ensemble_in_words(ensemble: jr.RuleEnsemble) -> None:
    assert str(ensemble).splitlines() == [
        "Rule ensemble of 5 rules (positive class: yes)",
        "log-odds of buys == yes: -0.3750 + the weights of the rules that hold",
        "  +4.0000  age never",
        "  -1.2500  job != clerk & (income >= 0 or missing)",
        "  +0.5000  30 < age <= 45",
        "  +0.1250  always",
        "  +0.0000  income is missing",
    ]
    assert repr(ensemble) == "RuleEnsemble(5 rules, link='logistic')"


def test_headings_name_the_link_and_the_classes() -> None:
    schema = jr.Schema((jr.Feature("a"),), target="price")
    rules = jr.Conjunctions.build(schema, [[]])
    one = (np.ones((1, 1)), np.zeros(1))
    assert "price = +0.0000" in str(jr.RuleEnsemble(rules, *one))
    assert "log expected price =" in str(jr.RuleEnsemble(rules, *one, link="log"))
    binary = rules.with_schema(schema.with_classes((0, 1)))
    assert "half the log-odds of price == 1:" in str(
        jr.RuleEnsemble(binary, *one, link="exponential")
    )
    many = rules.with_schema(schema.with_classes(("x", "y", "z")))
    text = str(jr.RuleEnsemble(many, np.array([[1.0, 2.0, -3.0]]), np.zeros(3), link="logistic"))
    assert "log-odds of each price: the sum of its column over the rules that hold" in text
    assert "      x      y      z\n      .      .      .  always\n  +1.00  +2.00  -3.00" in text


def test_linear_terms_in_words() -> None:
    schema = jr.Schema((jr.Feature("a"), jr.Feature("b")))
    linear = jr.LinearTerms(
        np.array([0, 1], np.int32),
        np.array([[0.5], [-0.25]]),
        np.array([-np.inf, 0.5]),
        np.array([np.inf, 2.0]),
    )
    model = jr.RuleEnsemble(
        jr.Conjunctions.build(schema, []), np.zeros((0, 1)), np.zeros(1), linear
    )
    assert str(model).splitlines()[2:] == [
        "   +0.5000  times a",
        "  -0.25000  times b, clipped to [0.5, 2]",  # twice this has four decimals
    ]
    explanation = jr.explain(model, [[2.0, 9.0]])[0]
    assert [part.text for part in explanation.parts] == [
        "intercept",
        "linear term of a at 2",
        "linear term of b at 2",
    ]


def test_a_rule_list_in_words(rule_list: jr.RuleList) -> None:
    assert str(rule_list).splitlines() == [
        "IF income is missing THEN buys = yes (p = 0.750)",
        "ELSE IF 30 < age <= 45 THEN buys = no (p = 1.000)",
        "ELSE IF job != clerk AND (income >= 0 or missing) THEN buys = yes (p = 0.500)",
        "ELSE buys = no (p = 0.625)",
    ]
    assert jr.to_latex(rule_list).splitlines() == [
        r"\begin{tabular}{lll}",
        r"IF & income is missing & buys = yes (p = 0.750) \\",
        r"ELSE IF & 30 $<$ age $\le$ 45 & buys = no (p = 1.000) \\",
        r"ELSE IF & job $\ne$ clerk AND (income $\ge$ 0 or missing) & buys = yes (p = 0.500) \\",
        r"ELSE &  & buys = no (p = 0.625) \\",
        r"\end{tabular}",
    ]
    assert repr(rule_list) == "RuleList(3 rules)"
    one = jr.RuleList(
        rule_list.conjunctions.take([0]), rule_list.labels[:2], rule_list.probabilities[:2]
    )
    assert "Rule list of 1 rule<" in one._repr_html_()


def test_explanations_in_words(
    ensemble: jr.RuleEnsemble, rule_list: jr.RuleList, table: jr.Table
) -> None:
    explanation = jr.explain(ensemble, table)[1]
    lines = str(explanation).splitlines()
    assert lines[0].startswith("prediction: no   (no: 0.")
    assert "intercept" in lines[1]
    assert lines[-1].endswith("sum")
    assert repr(explanation) == str(explanation)
    decided = [
        [part.text for part in explanation.parts] for explanation in jr.explain(rule_list, table)
    ]
    assert decided[2] == ["rule 1: income is missing"]
    for (fired, *passed), position in zip(decided, rule_list.position(table), strict=True):
        assert fired.startswith(
            f"rule {position + 1}: " if position < 3 else "no rule holds: the default"
        )
        assert [text.split(": ")[0] for text in passed] == [
            f"passed over rule {r + 1}" for r in range(position)
        ]
    weights = jr.to_latex(ensemble).splitlines()
    assert weights[1:4] == [r"weight & rule \\", r"\hline", r"$-0.3750$ & always \\"]
    assert len(weights) == 5 + len(ensemble.conjunctions)


def test_html_is_escaped() -> None:
    nasty = "<script>alert('x')</script>"
    schema = jr.Schema(
        (jr.Feature(nasty), jr.Feature("k", (nasty, "b"))), classes=(nasty, "zz"), target=nasty
    )
    rules = jr.Conjunctions.build(schema, [[C.above(0, 1.0), C.one_of(1, [0])]])
    ensemble = jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1), link="logistic")
    rule_list = jr.RuleList(rules, np.array([0, 1], np.int32), np.full((2, 2), 0.5))
    X = jr.Table(schema, (np.array([2.0]), np.array([0], np.int32)))
    shown = [
        m._repr_html_()
        for m in (ensemble, rule_list, *jr.explain(ensemble, X), *jr.explain(rule_list, X))
    ]
    for html in (*shown, html_table(nasty, [nasty], [[nasty]])):
        assert "<script" not in html
        assert html.count("<table>") == html.count("</table>") == 1
    assert "&lt;script&gt;" in shown[0]


def test_control_characters_are_escaped() -> None:
    nasty = "red\x1b[31m\r\x00\n"
    schema = jr.Schema(
        (jr.Feature(nasty), jr.Feature("k", (nasty, "b"))), classes=(nasty, "zz"), target=nasty
    )
    terms = jr.LinearTerms(
        np.array([0], np.int32), np.ones((1, 1)), np.array([0.0]), np.array([3.0])
    )
    direction = Direction((0, 1), (1.0, 2.0), (MISSING, 0))
    rules = jr.Conjunctions.build(
        schema, [[C.above(0, 1.0), C.one_of(1, [0]), C.above(direction, 0.0)]]
    )
    ensemble = jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1), terms, "logistic")
    several = jr.RuleEnsemble(
        rules.with_schema(schema.with_classes(None)), np.ones((1, 1)), np.zeros(1), link="log"
    )
    rule_list = jr.RuleList(rules, np.array([0, 1], np.int32), np.full((2, 2), 0.5))
    frame = pd.DataFrame({nasty: [1.0, 2.0, 3.0], "k": [nasty, "b", "b"]})
    path = jr.paths.fit(frame, [nasty, "b", nasty], steps=1, method="local", forbidden=["k"]).model
    X = jr.Table(schema, (np.array([2.0]), np.array([0], np.int32)))
    models = ensemble, several, rule_list, path
    for one in (*models, *(reason for model in models for reason in jr.explain(model, X))):
        for text in (str(one), one._repr_html_()):
            assert text.replace("\n", "").isprintable()
    for one in models:
        assert r"red\x1b[31m\r\x00\n" in str(one)


# Thresholds


@given(
    st.floats(-1e6, 1e6, allow_nan=False), st.floats(1e-9, 10.0), st.floats(0.0, 1.0), st.booleans()
)
def test_a_shortest_number_is_inside_and_near(
    low: float, width: float, share: float, low_belongs: bool
) -> None:
    high, near = low + width, low + share * width
    found = display.shortest_number(near, low, high, low_belongs)
    if low < high:
        assert low <= found < high if low_belongs else low < found <= high
        if low < near < high:
            assert len(repr(abs(found))) <= max(len(repr(abs(near))), len(f"{abs(near):.17g}"))


def test_thresholds_are_printed_in_full() -> None:
    assert display.interval_text("x", 1234.5678, np.inf, False, True, False) == "x > 1234.5678"
    assert (
        display.interval_text("x", 0.048919999599456787, np.inf, False, True, False)
        == "x > 0.04891999959945679"
    )
    assert (
        display.interval_text("x", -np.inf, 699.0499877929688, False, True, False)
        == "x <= 699.0499877929688"
    )
