"""Settings, training data, and one class against the rest, without a learner."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules import losses
from jaxrules.learning.training import (
    TrainingData,
    by_content,
    content_order,
    equal_rows,
    joined,
    one_against_rest,
    plain,
    searched_rows,
    training_data,
)
from jaxrules.rules.lowered import Direction
from jaxrules.tools.fits import Details, Status
from jaxrules.tools.runs import Run

X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.0], [4.0, 5.0], [5.0, 5.0]])
NAMES = ["b", "a", "c", "a", "b", "c"]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 1.0, 2.0, float("nan")]),
            st.integers(0, 2),
            st.integers(0, 1),
            st.sampled_from([0.5, 1.0]),
        ),
        min_size=1,
    )
)
def test_the_order_of_contents_sorts_by_the_columns_then_target_and_weight(rows: list[Any]) -> None:
    rows = [*rows, (0.0, 0, 0, 1.0)]  # no column of missing values alone
    first, second, target, weight = (np.array(column) for column in zip(*rows, strict=True))
    table = jr.as_table(np.column_stack([first, second]), missing="own_category")
    expected = np.lexsort((weight, target, second, first))
    np.testing.assert_array_equal(content_order(table, target, weight), expected)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, -0.0, 1.0, 2.0]),
            st.sampled_from([0.0, 1.0, float("nan")]),
            st.integers(0, 2),
        ),
        min_size=1,
    )
)
def test_equal_rows_are_the_same_in_any_order(rows: list[Any]) -> None:
    rows = [*rows, (0.0, 0.0, 0), (1.0, 1.0, 1)]
    first, second, target = (np.array(column) for column in zip(*rows, strict=True))
    X = np.column_stack([first, second])
    data = training_data(X, target.astype(float), losses.squared, missing="own_category")
    numbers: dict[str, int] = {}
    for one in (data, by_content(data)):
        earliest, group = equal_rows(one)
        told = [
            str((a + 0.0, b, c)) for a, b, c in zip(*one.table.columns, one.target, strict=True)
        ]
        assert [told.index(row) for row in told] == earliest[group].tolist()
        numbers = numbers or dict(zip(told, group.tolist(), strict=True))
        assert [numbers[row] for row in told] == group.tolist()


# Settings


@dataclass(frozen=True, kw_only=True, eq=False)
class Done(Details):
    done: int


def test_settings_are_plain_and_complete() -> None:
    table = jr.as_table(X)
    rules = jr.Conjunctions.build(table.schema, [])
    arguments = {
        "flag": np.True_,
        "count": np.int64(3),
        "share": np.float32(0.5),
        "nothing": None,
        "text": "beam",
        "rules": rules,
        "weights": np.array([1.0, 2.0]),
        "nested": [(1, "a"), [np.float64(2)]],
        "own": lambda y, f: (y - f) ** 2,
        "known": losses.poisson,
        "columns": {"b", "a"},
        "monotone": {"b": np.int64(-1), 0: 1},
    }
    options = {name: plain(value) for name, value in arguments.items()}
    assert options == {
        "flag": True,
        "count": 3,
        "share": 0.5,
        "nothing": None,
        "text": "beam",
        "rules": "given",
        "weights": (1.0, 2.0),
        "columns": ("a", "b"),
        "nested": ((1, "a"), (2.0,)),
        "own": "<lambda>",
        "known": "poisson",
        "monotone": (("b", -1), (0, 1)),
    }
    hash(tuple(options.items()))
    json.dumps(options)
    assert [type(options[name]) for name in ("flag", "count", "share")] == [bool, int, float]


# Data


def data_of(y: Any, loss: losses.Loss = losses.logistic, **arguments: Any) -> TrainingData:
    return training_data(X, y, loss, **arguments)


def test_two_classes_are_signs() -> None:
    data = data_of(["no", "yes", "no", "no", "yes", "no"])
    assert data.classes == data.schema.classes == ("no", "yes")
    assert data.table.schema.classes is None
    assert data.target.tolist() == data.labels.tolist() == [-1, 1, -1, -1, 1, -1]
    assert data.outputs.shape == (1, 6)
    assert data.weights.tolist() == [1.0] * 6


def test_more_classes_are_a_column_of_signs_each() -> None:
    data = data_of(NAMES, losses.exponential)
    assert data.classes == ("a", "b", "c")
    assert data.target.shape == (6, 3)
    assert data.labels.tolist() == [1, 0, 2, 0, 1, 2]
    for k, name in enumerate(data.classes):
        assert data.outputs[k].tolist() == [1.0 if label == name else -1.0 for label in NAMES]
    with pytest.raises(ValueError, match="y has 3 classes.*binary"):
        data_of(NAMES, binary=True)


def test_numbers_and_counts() -> None:
    assert data_of([1, 2, 3, 4, 5, 6], losses.squared).target.tolist() == [1, 2, 3, 4, 5, 6]
    assert data_of([1, 2, 3, 4, 5, 6], losses.squared).classes is None
    with pytest.raises(ValueError, match="y must be non-negative for the poisson loss"):
        data_of([1, 2, 3, 4, 5, -6], losses.poisson)
    with pytest.raises(TypeError, match="y holds text labels"):
        data_of(NAMES, losses.squared)
    with pytest.raises(ValueError, match="y has only one value"):
        data_of(np.ones(6), losses.squared)
    assert data_of(np.ones(6), losses.squared, constant=True).target.tolist() == [1.0] * 6


def test_rows_without_weight_are_absent() -> None:
    data = data_of([*NAMES[:5], "c"], sample_weight=[1, 2, 3, 0, 5, 6])
    kept = [0, 1, 2, 4, 5]
    np.testing.assert_array_equal(np.stack(data.table.columns, 1), X[kept])
    assert data.weights.tolist() == [1, 2, 3, 5, 6]
    np.testing.assert_array_equal(data.labels, [1, 0, 2, 1, 2])
    with pytest.raises(
        ValueError, match="sample_weight is zero or negligible for every row of class 'a'"
    ):
        data_of(NAMES, sample_weight=[1, 0, 3, 0, 5, 6])
    with pytest.raises(
        ValueError, match="y has only one value among the rows of positive sample_weight"
    ):
        data_of([1, 1, 1, 1, 1, 2], losses.squared, sample_weight=[1, 1, 1, 1, 1, 0])


def test_rows_are_selected() -> None:
    data = data_of(NAMES, sample_weight=np.arange(1, 7))
    for rows in (np.array([0, 2]), np.array([True, False, True, False, False, False])):
        part = data[rows]
        assert part.labels.tolist() == [1, 2]
        assert part.weights.tolist() == [1, 3]
        assert part.table.n_rows == 2
        assert part.schema is data.schema


# Ensembles of one output, joined


def ensemble(
    rules: list[list[jr.Condition]], weights: list[float], intercept: float, **parts: Any
) -> jr.RuleEnsemble:
    schema = jr.as_table(X).schema.with_classes((False, True))
    conjunctions = jr.Conjunctions.build(schema, rules)
    return jr.RuleEnsemble(
        conjunctions,
        np.array(weights).reshape(-1, 1),
        np.array([intercept]),
        link="logistic",
        **parts,
    )


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(range(4)), st.floats(-2, 2)), max_size=6).map(
            lambda rules: (rules, float(len(rules)))
        ),
        min_size=3, max_size=4,
    )
)  # fmt: skip
def test_joined_ensembles_have_the_scores_of_their_parts_and_every_rule_once(
    parts: list[Any],
) -> None:
    c = jr.Condition
    oblique = Direction((0, 1), (1.0, -2.0))  # the parts number their directions apart
    pool = [
        [c.above(0, 2.0)],
        [c.at_least(oblique, 0.5), c.above(0, 1.0)],
        [],
        [c.below(Direction((1,), (3.0,)), 9.0)],
    ]
    models = [
        ensemble([pool[r] for r, _ in rules], [w for _, w in rules], start)
        for rules, start in parts
    ]
    schema = jr.as_table(X).schema.with_classes(tuple(range(len(models))))
    whole = joined(models, schema)
    whole.validate()
    assert len(whole.conjunctions) == len({r for rules, _ in parts for r, _ in rules})
    separate = np.stack([jr.decision_function(model, X) for model in models], axis=1)
    np.testing.assert_allclose(jr.decision_function(whole, X), separate, atol=1e-12)


def test_linear_terms_are_joined() -> None:
    def terms(features: list[int], upper: list[float]) -> jr.LinearTerms:
        n = len(features)
        return jr.LinearTerms(
            np.array(features, np.int32),
            1.0 + np.arange(n).reshape(-1, 1),
            np.zeros(n),
            np.array(upper),
        )

    models = [
        ensemble([], [], 1.0, linear=terms([0, 1], [4.0, 3.0])),
        ensemble([], [], 2.0),
        ensemble([], [], 3.0, linear=terms([1, 0], [3.0, 2.0])),
    ]
    whole = joined(models, jr.as_table(X).schema.with_classes(("a", "b", "c")))
    whole.validate()
    assert whole.linear is not None
    assert whole.linear.feature.tolist() == [0, 1, 0]
    assert whole.linear.upper.tolist() == [4.0, 3.0, 2.0]
    assert np.asarray(whole.linear.coefficients).tolist() == [[1, 0, 0], [2, 0, 1], [0, 0, 2]]
    separate = np.stack([jr.decision_function(model, X) for model in models], axis=1)
    np.testing.assert_allclose(jr.decision_function(whole, X), separate)


# One class against the rest


def learner(times: dict[str, float], clock: Clock, seen: list[Any]) -> Any:
    """A fit that takes as long as the class says, or until it is stopped; the model is one rule."""

    def fit(data: TrainingData, run: Run) -> jr.Fit[jr.RuleEnsemble]:
        assert data.target.ndim == 1
        name = run.task.split()[-1]
        limit = run.deadline.seconds
        seen.append((name, limit, run.limit))
        done = 0
        with run:
            while done < times.get(name, 0) and not run.stopped():
                clock.now += 1
                done += 1
                run.step(float(done), 1)
        size = float(data.target.sum())
        model = ensemble([[jr.Condition.above(0, 2.0)]], [size], 0.0)
        return run.finish(
            model,
            size,
            "min",
            Status.OPTIMAL if name == "a" else Status.CONVERGED,
            size - 1,
            details=Done(done=done),
        )

    return fit


def test_every_class_has_its_share_of_the_time() -> None:
    clock, seen, reports = Clock(), [], []
    data = data_of(NAMES)
    run = Run("task", jr.Deadline(12, clock), reports.append, total=7)
    fit = one_against_rest(data, run, learner({"a": 1, "b": 99, "c": 2}, clock, seen))
    assert [name for name, _, _ in seen] == ["a", "b", "c"]
    assert [limit for _, limit, _ in seen] == pytest.approx([4, 5.5, 5])
    assert fit.details["done"] == (1, 6, 2)
    assert fit.details["statuses"] == (Status.OPTIMAL, Status.TIME_LIMIT, Status.CONVERGED)
    assert fit.status is Status.TIME_LIMIT
    assert fit.objective == np.mean(fit.details["objectives"]) == -2
    assert fit.bound == np.mean(fit.details["bounds"]) == -3
    assert [len(history) for history in fit.details["histories"]] == [1, 6, 2]
    assert [step.seconds for step in fit.history] == [1, 7, 9]
    assert fit.seconds == 9
    assert fit.model.weights.tolist() == [[-2.0, -2.0, -2.0]]
    assert fit.model.schema.classes == ("a", "b", "c")
    assert {(r.task, r.total) for r in reports} == {
        ("task", 3),
        *((f"task, class {name}", 7) for name in "abc"),
    }


def test_two_classes_are_one_fit() -> None:
    clock, seen = Clock(), []
    fit = one_against_rest(data_of([1, 0, 1, 0, 0, 0]), Run("task"), learner({}, clock, seen))
    assert len(seen) == 1
    assert fit.details["done"] == fit.details.done == 0
    assert fit.model.n_outputs == 1


@pytest.mark.parametrize("presses", [1, 2])
def test_after_ctrl_c_the_other_classes_have_their_first_incumbents(presses: int) -> None:
    clock, seen = Clock(), []

    def ctrl_c(progress: jr.Progress) -> None:
        if progress.task.endswith("class a"):
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)

    fit = one_against_rest(
        data_of(NAMES), Run("task", None, ctrl_c), learner({"a": 3, "b": 3, "c": 3}, clock, seen)
    )
    assert [limit for _, _, limit in seen] == [None, Status.INTERRUPTED, Status.INTERRUPTED]
    assert fit.details["done"][1:] == (0, 0)
    assert fit.status is Status.INTERRUPTED
    assert fit.model.n_outputs == 3


def test_a_callback_that_interrupts_at_every_report_does_no_harm() -> None:
    def ctrl_c(progress: jr.Progress) -> None:
        raise KeyboardInterrupt

    fit = one_against_rest(
        data_of(NAMES), Run("task", None, ctrl_c), learner({"a": 3}, Clock(), [])
    )
    assert fit.status is Status.INTERRUPTED
    assert fit.model.n_outputs == 3


def test_the_worst_status_speaks_for_all() -> None:
    assert Status.worst([Status.OPTIMAL, Status.OPTIMAL]) is Status.OPTIMAL
    assert Status.worst([Status.OPTIMAL, Status.CONVERGED]) is Status.CONVERGED
    assert Status.worst(Status) is Status.INTERRUPTED


def test_drawn_rows_follow_what_they_hold() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (300, 2)).astype(float), rng.normal(size=300)
    order = rng.permutation(300)
    data, other = (
        training_data(X, y, losses.squared),
        training_data(X[order], y[order], losses.squared),
    )
    rows, others = searched_rows(data, 100, 0), searched_rows(other, 100, 0)
    assert rows is not None
    assert others is not None
    assert (y[rows] == y[order][others]).all()
    assert len(np.unique(rows)) == 100
    assert (searched_rows(data, 100, 1) != rows).any()
    assert searched_rows(data, 300, 0) is None
    assert searched_rows(data, None, 0) is None
    rare = np.where(np.arange(300) == 7, "rare", "common")
    few = searched_rows(training_data(X, rare, losses.logistic), 5, 0)
    assert few is not None
    assert 7 in few
    assert searched_rows(training_data(X, (rare == "rare") * 1.0, losses.squared), 5, 0) is None
