"""Argument checks: which values every kind of argument may have, and the message for the others."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.tools import checks

NOT_NUMBERS = [True, False, np.True_, "1", None, [1.0], np.ones(1), 1j, np.complex128(1), object()]
NOT_FINITE = [math.nan, math.inf, -math.inf, np.float32("nan"), 10**400]


@pytest.mark.parametrize(
    "value", [2, 2.0, np.int8(2), np.uint64(2), np.float16(2), np.float32(2), Fraction(2)]
)
def test_numbers_of_every_kind(value: Any) -> None:
    found = checks.number("x", value, at_least=2, at_most=2)
    assert found == 2.0
    assert type(found) is float


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(TypeError, match="^l2_penalty must be a number, got"):
        checks.penalty("l2_penalty", value)


@pytest.mark.parametrize("value", NOT_FINITE)
def test_numbers_are_finite(value: Any) -> None:
    with pytest.raises(ValueError, match="^x must be finite, got"):
        checks.number("x", value)
    with pytest.raises(ValueError, match=r"^x must lie in \[0, 1\], got"):
        checks.number("x", value, at_least=0, at_most=1)


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "message"),
    [
        ({"at_least": 0}, [0, 0.0, 1e300], [-1e-300], "x must be finite and at least 0"),
        ({"above": 0}, [1e-300], [0, -1], "x must be finite and positive"),
        ({"above": -1}, [0], [-1], "x must be finite and above -1"),
        ({"at_most": 1}, [1, -5], [1.5], "x must be finite and at most 1"),
        ({"below": 1}, [0.5], [1], "x must be finite and below 1"),
        ({"above": 0, "at_most": 1}, [1, 0.5], [0, 1.5], r"x must lie in \(0, 1\]"),
        ({"at_least": 0, "below": 0.5}, [0, 0.4], [0.5, -0.1], r"x must lie in \[0, 0.5\)"),
    ],
)
def test_ranges(
    limits: dict[str, float], inside: list[float], outside: list[float], message: str
) -> None:
    for value in inside:
        assert checks.number("x", value, **limits) == value
    for value in outside:
        with pytest.raises(ValueError, match=f"^{message}, got"):
            checks.number("x", value, **limits)


@given(st.floats(), st.floats(-10, 10), st.floats(-10, 10))
def test_a_number_is_taken_exactly_where_it_lies_in_range(
    value: float, low: float, high: float
) -> None:
    for closed in (True, False):
        limits = {"at_least": low, "below": high} if closed else {"above": low, "at_most": high}
        inside = low <= value < high if closed else low < value <= high
        try:
            assert checks.number("x", value, **limits) == value
            assert inside
        except ValueError:
            assert not inside


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_integers(value: Any) -> None:
    found = checks.integer("steps", value, at_least=3, at_most=3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 1.0, 1.5, math.nan, np.float64(1), Fraction(1)])
def test_what_is_no_integer(value: Any) -> None:
    with pytest.raises(TypeError, match="^steps must be an integer, got"):
        checks.integer("steps", value)


def test_limits_of_integers_and_seeds() -> None:
    with pytest.raises(ValueError, match="^steps must be at least 1, got 0"):
        checks.integer("steps", 0, at_least=1)
    with pytest.raises(ValueError, match="^batch must be at most 3, got 4"):
        checks.integer("batch", 4, at_most=3)
    assert checks.seed(0) == 0
    assert checks.seed(np.uint32(2**32 - 1)) == 2**32 - 1
    for bad in (-1, 2**32):
        with pytest.raises(ValueError, match="^seed must be at"):
            checks.seed(bad)
    for bad in (None, 0.0, True, np.random.default_rng(0)):
        with pytest.raises(TypeError, match="^seed must be an integer"):
            checks.seed(bad)


def test_flags() -> None:
    for value in (True, False, np.True_, np.False_):
        found = checks.flag("corrective", value)
        assert found == value
        assert type(found) is bool
    for bad in (0, 1, "True", "", None, np.int64(1), np.array([True])):
        with pytest.raises(TypeError, match="^corrective must be True or False"):
            checks.flag("corrective", bad)


def test_choices() -> None:
    assert checks.choice("search", np.str_("beam"), ("optimal", "beam")) == "beam"
    assert checks.choice("integer_steps", None, (None, "any", "unit")) is None
    for bad in ("Beam", None, 1, True, np.array(["beam", "x"]), ["beam"]):
        with pytest.raises(ValueError, match='^search must be "optimal", "greedy" or "beam", got'):
            checks.choice("search", bad, ("optimal", "greedy", "beam"))
    with pytest.raises(ValueError, match='^integer_steps must be None, "any" or "unit", got'):
        checks.choice("integer_steps", "two", (None, "any", "unit"))
    with pytest.raises(ValueError, match='^cost must be "squared" or "logistic", got'):
        checks.choice("cost", "hinge", ("squared", "logistic"))
    with pytest.raises(ValueError, match='^search must be "combo", got'):
        checks.choice("search", "x", ("combo",))


def test_optional_arguments() -> None:
    assert checks.optional(checks.integer, "max_length", None, at_least=1) is None
    assert checks.optional(checks.integer, "max_length", 2, at_least=1) == 2
    with pytest.raises(ValueError, match="^max_length must be at least 1"):
        checks.optional(checks.integer, "max_length", 0, at_least=1)


@pytest.mark.parametrize(
    "values", [[1, 0.5], (1, 0.5), np.array([1, 0.5], np.float32), pd.Series([1, 0.5]), range(2)]
)
def test_sequences(values: Any) -> None:
    found = checks.sequence("penalties", values, at_least=0)
    assert found.dtype == np.float64
    assert found.tolist() == list(values)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([], ValueError, "must be a non-empty sequence of numbers"),
        (
            np.zeros((2, 2)),
            ValueError,
            r"must be a non-empty sequence of numbers, got shape \(2, 2\)",
        ),
        (np.float64(1), ValueError, "must be a non-empty sequence of numbers"),
        (1.0, TypeError, "must be a non-empty sequence of numbers, got float"),
        ("12", TypeError, "must be a non-empty sequence of numbers, got str"),
        (["1"], TypeError, "must be a number, got str"),
        ([1, True], TypeError, "must be a number, got bool"),
        ([1, -1], ValueError, "must be finite and at least 0, got -1"),
        ([1, math.nan], ValueError, "must be finite and at least 0, got nan"),
    ],
)
def test_bad_sequences(values: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^penalties {message}"):
        checks.sequence("penalties", values, at_least=0)


def test_instances() -> None:
    schema = jr.Schema((jr.Feature("x"),))
    assert checks.instance("schema", schema, jr.Schema, "jaxrules.as_table") is schema
    with pytest.raises(
        TypeError, match=r"^schema must be Schema \(see jaxrules.as_table\), got str"
    ):
        checks.instance("schema", "x", jr.Schema, "jaxrules.as_table")


SIZES = pd.DataFrame({"size": np.arange(12.0), "job": ["cook", "smith"] * 6})
LABELS = np.arange(12) % 4 > 0
FITTED = jr.boosting.fit(SIZES, LABELS, max_rules=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: jr.boosting.fit(SIZES, LABELS, max_rule=3),
            r"boosting.fit\(\) got .*; did you mean 'max_rules'",
        ),
        (lambda: jr.lire.fit(SIZES, LABELS, random_state=3), "'random_state'; did you mean 'seed'"),
        (
            lambda: jr.lire.fit(SIZES, LABELS, special_values={0: [-7]}),
            r"no argument 'special_values'; .* pass jaxrules\.as_table\(X, special_values",
        ),
        (
            lambda: jr.boosting.fit(SIZES, LABELS, monotone_constraints={}),
            "did you mean 'monotone'",
        ),
        (lambda: jr.boosting.fit(SIZES, LABELS, monotone=["a"]), r'as in {"age": 1}, got list'),
        (lambda: jr.lire.fit(SIZES, LABELS, n_rules=3), "'n_rules'; did you mean 'max_rules'"),
        (
            lambda: jr.lire.path(SIZES, LABELS, warm_start=FITTED),
            "'warm_start'; did you mean 'start'",
        ),
        (lambda: jr.boosting.fit(SIZES, LABELS, start=FITTED), "'start'; did you mean 'first'"),
        (
            lambda: jr.drnet.fit(SIZES, LABELS, unlike=1),
            r"'unlike'; see help\(jaxrules.drnet.fit\)",
        ),
        (
            lambda: jr.estimators.LIREClassifier(n_rules=3),
            r"LIREClassifier\(\) got .*; did you mean 'max_rules'",
        ),
        (
            lambda: jr.estimators.SSRLClassifier(C=3),
            r"'C'; see help\(jaxrules.estimators.SSRLClassifier\)",
        ),
        (
            lambda: jr.lire.optimal(SIZES, LABELS, local_penalty=0.1),
            r"'local_penalty': the proof .* jaxrules.lire.fit takes it",
        ),
        (
            lambda: jr.lire.near_optimal(SIZES, LABELS, local_penalty=0.1),
            r"'local_penalty': the proof .* jaxrules.lire.fit takes it",
        ),
        (lambda: jr.lire.fit(SIZES, LABELS, rules=FITTED), "got Fit; pass its model.conjunctions"),
        (
            lambda: jr.lire.fit(SIZES, LABELS, rules=FITTED.model),
            "got RuleEnsemble; pass its conjunctions",
        ),
        (
            lambda: jr.boosting.fit(SIZES, LABELS, first=FITTED),
            "first must be .* got Fit; pass its model.conjunctions",
        ),
        (
            lambda: jr.glrm.fit(SIZES, LABELS, start=True),
            'start must be "conditions" or "empty", or a Fit',
        ),
        (
            lambda: jr.boosting.fit(jr.datasets.load("breast_cancer"), LABELS),
            "X is a Dataset; pass its X",
        ),
        (
            lambda: jr.predict(FITTED.model, SIZES.iloc[0]),
            r"one row of a dataframe is frame.iloc\[\[0\]\]",
        ),
        (
            lambda: jr.predict(FITTED.model, {"size": 1.0, "job": "cook"}),
            "'size' of X must be a list of values, got one float; one row is a list of one dict",
        ),
        (lambda: jr.GLRMClassifier, "no attribute 'GLRMClassifier'; see jaxrules.estimators"),
    ],
)
def test_what_is_often_meant_is_named(call: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError), match=words):
        call()


@pytest.mark.parametrize("learner", [jr.boosting, jr.lire, jr.rulefit, jr.lltboost, jr.ltrnet])
def test_a_constant_is_not_fitted_without_a_word(learner: Any) -> None:
    options = {"time_limit": 1e-9}
    with pytest.warns(UserWarning, match="no column of X varies; the model is a constant"):
        learner.fit(np.ones((12, 2)), LABELS, **options)
    with pytest.warns(UserWarning, match="no column of X that rules may use varies"):
        learner.fit(
            np.column_stack([SIZES["size"], np.ones(12)]), LABELS, forbidden=["x0"], **options
        )


def test_penalties_may_be_below_one() -> None:
    assert checks.penalties("l1_penalties", [0.5, 0]) == (0.5, 0.0)


@pytest.mark.full
def test_errors_for_arguments_of_verbs_name_them() -> None:
    X = np.arange(12.0)[:, None]
    models = [learner.fit(X, X[:, 0] > 5).model for learner in (jr.boosting, jr.ssrl)]
    models.append(jr.paths.fit(X, X[:, 0] > 5, steps=1).model)
    for model in models:
        for verb in (
            jr.predict, jr.predict_proba, jr.decision_function, jr.explain, jr.importance,
            jr.complexity, jr.to_latex,
        ):  # fmt: skip
            name, rows = verb.__name__, {"X": X} if verb not in (jr.complexity, jr.to_latex) else {}
            unknown = (
                rf"^jaxrules\.{name}\(\) got an unexpected keyword argument 'unlike'; see help"
            )
            with pytest.raises(TypeError, match=unknown):
                verb(model, **rows, unlike=3)
            with pytest.raises(TypeError, match=rf"^{name}\(\) missing .*: 'model'"):
                verb()
            if rows:
                with pytest.raises(TypeError, match=rf"^{name}\(\) missing .*: 'X'"):
                    verb(model)
        assert (jr.predict(model=model, X=X) == jr.predict(model, X)).all()
    with pytest.raises(TypeError, match="did you mean 'offset'"):
        jr.predict(models[0], X, offsets=3)
    assert jr.predict(models[2], X, step=1).shape == (12,)


LEARNERS = ["boosting", "drnet", "exact_list", "glrm", "lire", "lltboost", "ltrnet"]
LEARNERS += ["paths", "regression_list", "rulefit", "ssrl"]


@pytest.mark.parametrize("learner", LEARNERS)
def test_an_unknown_argument_is_told_with_the_public_name_of_the_function(learner: str) -> None:
    module = getattr(jr, learner)
    for name in {"fit", "path", "cross_validate"} & set(dir(module)):
        with pytest.raises(TypeError, match=rf"^jaxrules\.{learner}\.{name}\(\) got an unexpected"):
            getattr(module, name)(SIZES, LABELS, unlike=3)


def test_an_unknown_column_names_the_one_that_may_be_meant() -> None:
    names = [f"column {k}" for k in range(40)]
    with pytest.raises(ValueError, match="'column 29' and 10 more; did you mean 'column 3'"):
        checks.column("forbidden", "colum 3", names)
    with pytest.raises(ValueError, match=r"the columns are 'size'$"):
        checks.column("forbidden", "age", ["size"])
