"""Constraints that both learners of rule lists accept: what they mean, and that SSRL's lists
satisfy them.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from test_exact_list import objective_of, random_problem

import jaxrules as jr
from jaxrules.rules.constraints import Constraints

SUBPROBLEMS = ("beam", "exact", "published")


def fitted(X, y, subproblem, **options):
    """By `ssrl.fit` with this sub-problem, or by `ssrl.published`."""
    if subproblem == "published":
        return jr.ssrl.published(X, y, max_rounds=2, **options)
    return jr.ssrl.fit(X, y, subproblem=subproblem, **options)


def exact(X, y, **options):
    return jr.exact_list.fit(X, y, min_support=0.0, **options)


def columns_of(model):
    return [{condition.feature for condition in rule} for rule in model.conjunctions]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("subproblem", SUBPROBLEMS)
def test_ssrl_keeps_its_constraints(seed, subproblem):
    X, y = random_problem(seed, 2 + seed % 2, rows=80, features=4)
    options = {"max_rules": 3, "max_length": 2, "literal_penalty": 0.5}
    free = fitted(X, y, subproblem, **options)
    ones = np.ones(len(y))

    fit = fitted(X, y, subproblem, forbidden=["x0"], **options)
    assert all(0 not in columns for columns in columns_of(fit.model))
    assert fit.objective == pytest.approx(objective_of(fit.model, X, y, ones, 0.5))

    noise = np.random.default_rng(seed).integers(0, 2, (len(y), 2))
    wide = np.column_stack([X, noise])
    fit = fitted(wide, y, subproblem, required=[4, "x5"], **options)
    assert {4, 5} <= set.union(*columns_of(fit.model))
    assert fit.objective == pytest.approx(objective_of(fit.model, wide, y, ones, 0.5))
    assert fit.history[-1].objective == fit.objective
    assert len(fit.model.conjunctions) <= 3
    tight = fitted(wide, y, subproblem, required=[4], **options | {"max_rules": 1, "max_length": 1})
    assert columns_of(tight.model) == [{4}]

    fit = fitted(X, y, subproblem, monotone={"x0": 1, 1: -1}, **options)
    low, high = X.copy(), X.copy()
    low[:, :2], high[:, :2] = (0, 1), (1, 0)
    assert (jr.predict(fit.model, low) <= jr.predict(fit.model, high)).all()
    assert fit.objective == pytest.approx(objective_of(fit.model, X, y, ones, 0.5))
    best = jr.exact_list.fit(
        X,
        y,
        max_rules=3,
        min_support=0.0,
        literal_penalty=0.5,
        monotone={"x0": 1, "x1": -1},
        max_evaluations=None,
    )
    assert fit.objective <= best.objective + 1e-9
    unbound = fitted(X, y, subproblem, monotone={}, forbidden=[], required=[], **options)
    assert unbound.objective == free.objective


@pytest.mark.parametrize("fit", [*(partial(fitted, subproblem=it) for it in SUBPROBLEMS), exact])
def test_a_column_of_an_experts_rules_is_used(fit):
    X, y = random_problem(5, rows=80, features=5)
    above = jr.Condition.at_least(2, 1.0)
    first = jr.Conjunctions.build(jr.as_table(X).schema, [[above]])
    options = {"first": first, "max_rules": 3, "max_length": 2, "literal_penalty": 0.5}
    free, used = fit(X, y, **options).model, fit(X, y, required=["x2"], **options).model
    assert list(used.conjunctions) == list(free.conjunctions)
    both = fit(X, y, required=[2, "x4"], **options | {"max_rules": 2}).model
    assert [4 in columns for columns in columns_of(both)] == [False, True]


@pytest.mark.parametrize("subproblem", SUBPROBLEMS)
def test_ssrl_learns_what_an_experts_rule_leaves(subproblem):
    X, y = random_problem(4, rows=80, features=4)
    first = jr.Conjunctions.build(
        jr.as_table(X).schema, [[jr.Condition.at_least(2, 1.0), jr.Condition.below(3, 1.0)]]
    )
    got = (X[:, 2] == 1) & (X[:, 3] == 0)
    options = {"literal_penalty": 0.5, "max_length": 2}
    for label in (0, 1):
        fit = fitted(X, y, subproblem, first=first, first_labels=[label], max_rules=3, **options)
        rest = fitted(
            X[~got],
            y[~got],
            subproblem,
            max_rules=2,
            default=int(np.bincount(y).argmax()),
            **options,
        )
        assert fit.objective == pytest.approx(rest.objective + (y[got] == label).sum() - 1.0)
        assert fit.objective == pytest.approx(objective_of(fit.model, X, y, np.ones(len(y)), 0.5))
        assert fit.model.conjunctions.rule(0) == first.rule(0)
        assert (jr.predict(fit.model, X[got]) == label).all()
        assert fit.history[-1].size <= 3


LEARNERS = {"exact_list": jr.exact_list.fit} | {
    name: partial(fitted, subproblem=name) for name in SUBPROBLEMS
}


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_an_experts_rule_gets_a_label_that_monotone_allows(learner):
    X = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]] * 4)
    y = list("bbaaab") * 4
    c, table = jr.Condition, jr.as_table(X)
    first = jr.Conjunctions.build(table.schema, [[c.at_least(1, 1.0)]])
    model = learner(X, y, max_rules=2, monotone={1: 1}, first=first).model
    assert model.conjunctions.rule(0) == first.rule(0)
    assert model.labels[0] == 1  # though all of its rows have the other class
    low, high = X * [1, 0], X * [1, 0] + [0, 1]
    assert (jr.predict(model, low) <= jr.predict(model, high)).all()
    interval = jr.Conjunctions.build(table.schema, [[c.at_least(1, 1.0), c.at_most(1, 2.0)]])
    for options, words in (
        ({"first": first, "first_labels": ["a"]}, "'x1 >= 1', whose label must be 'b'"),
        ({"first": interval}, "has no admissible label"),
        ({"first": first, "monotone": {}, "forbidden": [1]}, "has no admissible label"),
    ):
        with pytest.raises(ValueError, match=words):
            learner(X, y, **{"max_rules": 2, "monotone": {1: 1}} | options)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_lists_that_continue_an_experts_stay_monotone(learner, seed):
    rng = np.random.default_rng(seed)
    X, n_classes = rng.integers(0, 3, (40, 3)), int(rng.integers(2, 4))
    y = rng.integers(0, n_classes, 40)
    c = jr.Condition
    rules = [
        [make(int(rng.integers(0, 3)), float(rng.integers(1, 3))) for make in makes]
        for makes in ([c.at_least], [c.below, c.at_least])
    ]
    rules[1] = rules[1][: 1 if rules[1][0].feature == rules[1][1].feature else 2]
    first = jr.Conjunctions.build(jr.as_table(X).schema, rules[: int(rng.integers(1, 3))])
    monotone = {0: int(rng.choice([-1, 1])), 2: 1}
    options = {"max_length": 2, "literal_penalty": 0.5, "max_rules": 4}
    try:
        model = learner(X, y, first=first, monotone=monotone, **options).model
    except ValueError as error:
        assert "no admissible label" in str(error)  # noqa: PT017
        return
    grid = np.array(np.meshgrid(*[range(4)] * 3, indexing="ij")).reshape(3, -1).T
    label = jr.predict(model, grid).reshape(4, 4, 4)
    for column, direction in monotone.items():
        assert (direction * np.diff(label, axis=column) >= 0).all()


def test_a_start_with_a_label_that_monotone_excludes_is_refused():
    X = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]] * 4)
    y = list("bbaaab") * 4
    start = jr.ssrl.fit(X, y, max_rules=2)
    with pytest.raises(ValueError, match="start has the rule 'x1 < 1', whose label must be 'a'"):
        jr.ssrl.fit(X, y, max_rules=2, start=start, monotone={1: 1})


def test_which_labels_a_condition_may_have():
    schema = jr.as_table(
        pd.DataFrame({"age": [1.0, 2.0], "job": ["a", "b"], "pay": [1.0, 2.0]})
    ).schema
    c = jr.Condition
    slant = jr.Direction((0, 2), (1.0, 2.0))
    rules = jr.Conjunctions.build(
        schema,
        [
            [c.at_least(0, 3)],
            [c.below(0, 3)],
            [c.at_least(0, 3), c.below(0, 5)],
            [c.at_least(2, 3)],
            [c.at_least(0, 3), c.one_of(1, [0])],
            [c.at_least(slant, 0.5)],
            [c.is_missing(0, numeric=True)],
        ],
    )
    none, low, high, every = [False] * 3, [True, False, False], [False, False, True], [True] * 3
    rising = Constraints.of(schema, monotone={"age": 1}).allows(rules, 3)
    assert rising.tolist() == [high, low, none, every, high, high, every]
    falling = Constraints.of(schema, monotone={0: -1}).allows(rules, 3)
    assert falling.tolist() == [low, high, none, every, low, low, every]
    banned = Constraints.of(schema, forbidden=["age"]).allows(rules, 3)
    assert banned.tolist() == [none, none, none, every, none, none, none]
    both = Constraints.of(schema, required=["pay", "job"])
    assert both.uses(rules).tolist() == [0, 0, 0, 1, 2, 1, 0]


def test_what_cannot_be_kept_is_refused():
    X, y = random_problem(0)
    X = np.column_stack([X, np.ones(len(y))])
    for arguments, words in (
        ({"forbidden": [0, 1, 2]}, "exclude every literal"),
        ({"required": ["x3"]}, "required names 'x3'"),
        ({"required": [0], "forbidden": [0]}, "required and forbidden both name"),
    ):
        with pytest.raises(ValueError, match=words):
            jr.ssrl.fit(X, y, **arguments)


@pytest.mark.parametrize("name", ["default", "first", "required", "start"])
@pytest.mark.parametrize(
    "value", [np.array("x0"), np.ones(3), object()], ids=["text", "array", "object"]
)
def test_values_of_other_types_are_named(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        jr.ssrl.fit(*random_problem(0), **{name: value})


@pytest.mark.filterwarnings("ignore:no rule uses the monotone")
@pytest.mark.parametrize("options", [{"forbidden": ["x0"]}, {"monotone": {"x0": -1}}], ids=str)
@pytest.mark.parametrize("other", [lambda x: x, lambda x: 1 - x], ids=["copy", "complement"])
@pytest.mark.parametrize("learner", [jr.ssrl, jr.exact_list, jr.regression_list, jr.boosting])
def test_a_column_is_free_beside_its_constrained_twin(learner, other, options):
    """Its literals are not those of the column that came first."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 200).astype(float)
    X = np.column_stack([x, other(x), rng.normal(size=200)])
    y = (x > 0) ^ (rng.random(200) < 0.1)
    given = {"l2_penalty": 1.0} if learner is jr.boosting else {"literal_penalty": 1.0}
    if learner is jr.regression_list:
        y, given = y.astype(float), {"literal_penalty": 0.02}
    fit = learner.fit(X, y, max_rules=1, **given, **options)
    alone = learner.fit(X[:, 1:], y, max_rules=1, **given)
    assert fit.objective == pytest.approx(alone.objective)
    assert columns_of(fit.model) == [{1}]
    assert columns_of(learner.fit(X, y, max_rules=1, required=["x1"], **given).model) == [{1}]
