"""``start=``: searches begin with a given fit, return nothing worse and need less work; an
unsuitable fit is an error.
"""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.estimators import GLRMClassifier, SSRLClassifier
from jaxrules.learning.warm_start import made_of, propositions_in
from jaxrules.rules.conditions import Condition, Conjunctions, PropositionPool, all_propositions
from jaxrules.rules.rows import Activations

RULES = Conjunctions.build(
    jr.as_table(np.zeros((1, 4))).schema,
    [[Condition.above(f, 0.5)] for f in range(4)]
    + [[Condition.above(0, 0.5), Condition.below(1, 1.5)]],
)
ENSEMBLES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "lire": (jr.lire.fit, {"rules": RULES, "restarts": 0, "local_penalty": 0.0}, "global_penalty"),
    "glrm": (jr.glrm.fit, {}, "rule_penalty"),
    "glrm, proved": (jr.glrm.fit, {"pricing": "exact", "max_length": 2}, "rule_penalty"),
    "glrm, linear terms": (jr.glrm.fit, {"linear_terms": True, "monotone": {0: 1}}, "rule_penalty"),
    "rulefit": (jr.rulefit.fit, {"rules": RULES}, "l1_penalty"),
    "rulefit, linear terms": (
        jr.rulefit.fit,
        {"rules": RULES, "linear_terms": True, "monotone": {0: 1}},
        "l1_penalty",
    ),
}


def problem(seed: int, target: str = "labels", rows: int = 80) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (rows, 4)).astype(float)
    score = X[:, 0] - 1.5 * (X[:, 1] == 1) + X[:, 2] * (X[:, 0] - 1) + rng.normal(0, 0.7, rows)
    cuts = {"numbers": None, "labels": [0.5], "classes": [1 / 3, 2 / 3]}[target]
    return X, score if cuts is None else np.searchsorted(np.quantile(score, cuts), score)


@pytest.mark.parametrize("target", ["numbers", "labels", "classes"])
@pytest.mark.parametrize("name", ENSEMBLES)
def test_nothing_is_worse_than_the_start(name: str, target: str) -> None:
    fit, options, price = ENSEMBLES[name]
    X, y = problem(3, target)
    start = fit(X, y, **options, **{price: 0.02})
    again, at_once = (
        fit(X, y, start=start, **options, **{price: 0.02}, **more)
        for more in ({}, {"time_limit": 1e-9})
    )
    assert max(again.objective, at_once.objective) <= start.objective * (1 + 1e-6)
    assert dict(again.model.options)["start"] == "given"
    if start.bound is not None:
        assert again.bound == pytest.approx(start.bound, rel=1e-5)
    lower = fit(X, y, start=start.model, **options, **{price: 0.005})
    cold = fit(X, y, **options, **{price: 0.005})
    assert lower.objective <= start.objective
    if price != "global_penalty":  # convex, but for what a beam overlooks
        assert lower.objective <= cold.objective * (1 + 2e-3)


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.booleans())
def test_column_generation_begins_with_rules_and_weights(seed: int, numbers: bool) -> None:
    X, y = problem(seed % 997, "numbers" if numbers else "labels")
    start = jr.lire.fit(X, y, restarts=0)
    prices = {"rule_penalty": 0.01, "condition_penalty": 0.002}
    model = start.model
    score = np.asarray(jr.decision_function(model, X))
    loss = (score - y) ** 2 if numbers else np.log1p(np.exp(-(2 * y - 1) * score))
    pays = 0.01 + 0.002 * np.array(
        [sum(len(c.parts(model.schema)) for c in rule) for rule in model.conjunctions]
    )
    fit = jr.glrm.fit(X, y, start=start, time_limit=1e-9, **prices)
    assert fit.objective <= loss.mean() + pays @ np.abs(model.weights[:, 0]) + 1e-9
    assert jr.glrm.fit(X, y, start=start, **prices).objective <= fit.objective + 1e-9


def test_less_is_needed() -> None:
    X, y = problem(5, rows=300)
    cold, exact = jr.glrm.fit(X, y, rule_penalty=0.004), {"max_rules": 3, "max_evaluations": None}
    assert (
        jr.glrm.fit(X, y, rule_penalty=0.004, start=cold).details["rounds"] < cold.details["rounds"]
    )
    best = jr.exact_list.fit(X, y, **exact)
    again = jr.exact_list.fit(X, y, start=best, **exact)
    assert (again.objective, again.bound, again.status) == (best.objective, best.bound, best.status)
    assert again.details["nodes"] <= best.details["nodes"]
    assert again.details["evaluations"] <= best.details["evaluations"]
    assert (
        jr.exact_list.fit(X, y, start=best, max_rules=3, max_evaluations=1).objective
        == best.objective
    )
    greedy = jr.ssrl.fit(X, y, max_rules=3)
    assert (
        jr.ssrl.fit(X, y, max_rules=3, start=greedy).details["insertions"]
        < greedy.details["insertions"]
    )


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from(["labels", "classes"]), st.booleans())
def test_lists_go_on_from_lists(seed: int, target: str, bound: bool) -> None:
    X, y = problem(seed % 997, target)
    options: dict[str, Any] = {"monotone": {0: 1}, "required": [3]} if bound else {}
    quick = {"max_length": 2, "max_rounds": 1, "local_search": False}
    start = jr.ssrl.fit(X, y, max_rules=3, literal_penalty=0.5, **quick, **options)
    for more in ({}, {"time_limit": 1e-9}):
        fit = jr.ssrl.fit(X, y, max_rules=3, start=start, literal_penalty=0.5, **options, **more)
        assert fit.objective >= start.objective
    best = jr.exact_list.fit(
        X,
        y,
        max_rules=3,
        start=start,
        literal_penalty=0.5,
        min_support=0.0,
        max_evaluations=500,
        **options,
    )
    assert start.objective <= best.objective <= best.bound
    assert (
        jr.ssrl.fit(X, y, max_rules=3, start=best, literal_penalty=0.5, **options).objective
        >= best.objective
    )


def test_a_start_that_ends_early_is_said() -> None:
    X, y = problem(3)
    start = jr.ssrl.fit(X, y, max_rules=2, literal_penalty=0.5).model
    schema = start.conjunctions.schema
    everything = Conjunctions.build(schema, [[Condition.at_least(0, -1e9)]])
    n = len(start.conjunctions)
    rules = Conjunctions.concatenate([start.conjunctions, everything, start.conjunctions.take([0])])
    labels = np.append(start.labels[:n], [0, 1, start.labels[n]]).astype(np.int32)
    shares = np.full((n + 3, start.probabilities.shape[1]), 1 / start.probabilities.shape[1])
    longer = jr.RuleList(rules, labels, shares)
    with pytest.warns(UserWarning, match="holds for all rows: it and the rules after it are left"):
        fit = jr.ssrl.fit(X, y, max_rules=n + 2, literal_penalty=0.5, start=longer)
    assert (
        fit.objective >= jr.ssrl.fit(X, y, max_rules=n, literal_penalty=0.5, start=start).objective
    )


def test_a_list_goes_on_behind_an_experts_rules() -> None:
    X, y = problem(2)
    first = RULES.take([3])
    options: dict[str, Any] = {
        "first": first,
        "first_labels": [1],
        "max_rules": 4,
        "literal_penalty": 0.1,
    }
    start = jr.ssrl.fit(X, y, **options)
    for learner in (jr.ssrl, jr.exact_list):
        fit = learner.fit(X, y, start=start, **options)
        assert fit.objective >= start.objective
        assert [set(rule) for rule in fit.model.conjunctions].count(set(first.rule(0))) == 1
    assert len(start.model.conjunctions) == 3
    with pytest.raises(
        ValueError, match="start has 2 rules besides the 1 of first, but max_rules=2"
    ):
        jr.ssrl.fit(X, y, start=start, **{**options, "max_rules": 2})


def frame_of(seed: int, rows: int = 60) -> Any:
    rng = np.random.default_rng(seed)
    job = rng.choice(np.array(["cook", "smith", "clerk", None], object), rows)
    size = np.where(rng.random(rows) < 0.2, np.nan, rng.integers(0, 5, rows))
    return pd.DataFrame({"size": size, "job": job})


@settings(max_examples=60)
@given(
    st.integers(0, 99),
    st.sets(st.integers(0, 2)),
    st.booleans(),
    st.booleans(),
    st.tuples(st.sampled_from([-np.inf, 0.5, 1.0, 2.5]), st.sampled_from([np.inf, 3.0, 2.5])),
    st.booleans(),
)
def test_rules_are_made_of_their_parts(
    seed: int, codes: set[int], unseen: bool, missing: bool, ends: Any, closed: bool
) -> None:
    table = jr.as_table(frame_of(seed), missing="own_category")
    rule = [
        Condition(0, *ends, lower_closed=closed, upper_closed=closed, missing=missing),
        Condition(1, categories=frozenset(codes), unseen=unseen, missing=missing),
    ]
    for condition in rule:
        parts = condition.parts(table.schema)
        whole = Conjunctions.build(table.schema, [[condition], parts]).satisfied(table)
        np.testing.assert_array_equal(whole[:, 0], whole[:, 1])
        assert len(parts) == condition.n_propositions(table.schema)
        assert all(part.n_propositions(table.schema) == 1 for part in parts)
    rules = Conjunctions.build(table.schema, [rule, rule[:1]])
    pool = PropositionPool.concatenate([all_propositions(table), propositions_in(rules)]).distinct(
        table
    )
    rows = Activations.of(pool, table)
    made = made_of(pool, rows.bits, rules, table[np.unique(rows.pattern, return_index=True)[1]])
    for held, one in zip(rules.satisfied(table).T, made, strict=True):
        if one is None:
            assert not held.any()
        else:
            np.testing.assert_array_equal(pool.satisfied(table)[:, list(one)].all(axis=1), held)


def test_categories_and_missing_values_come_along() -> None:
    frame = frame_of(1, 200)
    y = ((frame["job"] == "cook") | (frame["size"] > 2)).to_numpy() ^ (np.arange(200) % 11 == 0)
    start = jr.rulefit.fit(frame, y, l1_penalty=0.01, missing="own_category")
    prices = {"rule_penalty": 0.003, "condition_penalty": 0.0, "missing": "own_category"}
    at_once = jr.glrm.fit(frame, y, start=start, time_limit=1e-9, **prices)
    score = np.asarray(jr.decision_function(start.model, frame))
    price = 0.003 * np.abs(start.model.weights).sum()
    assert at_once.objective <= np.log1p(np.exp(-(2 * y - 1) * score)).mean() + price + 1e-9


def test_estimators_carry_it() -> None:
    X, y = problem(4)
    start = jr.ssrl.fit(X, y)
    assert SSRLClassifier(start=start).fit(X, y).fit_.objective >= start.objective
    # A penalty that the data choose would differ in its seventh digit, and with it the objective.
    fit = jr.glrm.fit(X, y, rule_penalty=0.02)
    again = GLRMClassifier(start=fit, rule_penalty=0.02).fit(X, y).fit_
    assert again.objective <= fit.objective + 1e-9
    with pytest.raises(ValueError, match='start must be "conditions" or "empty"'):
        GLRMClassifier(start=fit, penalty="cv").fit(X, y)


def test_what_does_not_fit_is_refused() -> None:
    X, y = problem(1)
    ensembles = (
        jr.boosting.fit(X, y, max_rules=2),
        jr.boosting.fit(X, problem(1, "classes")[1], max_rules=2),
    )
    lists = jr.ssrl.fit(X, y), jr.ssrl.fit(X, problem(1, "classes")[1])
    oblique = jr.rulefit.fit(X, y, l1_penalty=0.05, linear_terms=True)
    named = np.where(y > 0, "yes", "no")
    learners = {
        "lire": jr.lire,
        "glrm": jr.glrm,
        "rulefit": jr.rulefit,
        "ssrl": jr.ssrl,
        "exact_list": jr.exact_list,
    }
    for name, learner in learners.items():
        is_list = name in ("ssrl", "exact_list")
        fine, other = lists if is_list else ensembles
        options: dict[str, Any] = {"l1_penalty": 0.05} if name == "rulefit" else {}
        wrong = lists[0] if not is_list else ensembles[0]
        kind = "RuleList" if is_list else "RuleEnsemble"
        bad: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
            (
                wrong,
                {},
                TypeError,
                f"start must be a {kind} or a Fit of one, got a Fit of",
            ),
            (
                wrong.model,
                {},
                TypeError,
                f"start must be a {kind} or a Fit of one, got Rule",
            ),
            (fine.model.conjunctions, {}, TypeError, f"start must be a {kind}"),
            (
                other,
                {},
                ValueError,
                "start is for the classes" if is_list else "start has 3 outputs, but y needs 1",
            ),
            (
                fine,
                {"y": named},
                ValueError,
                r"start is for the classes \(0, 1\), but y has \('no', 'yes'\)",
            ),
            (fine, {"X": X[:, :3]}, ValueError, "start was fitted on the columns"),
            (fine, {"forbidden": [0, 2]}, ValueError, "start has the rule .* no admissible weight"),
        ]
        if not is_list:
            bad.append((oblique, {}, ValueError, "start has linear terms"))
        for start, change, error, words in bad:
            if name == "glrm" and not isinstance(start, (jr.Fit, jr.RuleEnsemble)):
                error, words = ValueError, 'start must be "conditions"'
            with pytest.raises(error, match=words):
                learner.fit(**{"X": X, "y": y, "start": start} | options | change)
    with pytest.raises(ValueError, match="start needs an l1_penalty"):
        jr.rulefit.fit(X, y, start=ensembles[0])
    long = jr.ssrl.fit(X, y, literal_penalty=0.0, default=0, max_rules=3)
    length = max(itertools.chain([2], map(len, long.model.conjunctions)))
    with pytest.raises(
        ValueError, match=f"start has a rule of {length} propositions, but max_length=1"
    ):
        jr.ssrl.fit(X, y, start=long, max_length=1)
    with pytest.raises(
        ValueError, match=r"which is not a candidate; admit its length \(max_length\)"
    ):
        jr.exact_list.fit(X, y, start=long, max_length=1)
    with pytest.raises(ValueError, match="but max_length=1"):
        jr.glrm.fit(
            X, y, start=jr.lire.fit(X, y, rules=RULES.take([4]), global_penalty=1e-4), max_length=1
        )
