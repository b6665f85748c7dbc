"""GLRM for several classes as one problem: against a general convex solver over all conjunctions,
brute force over rules and subsets of rows and, with two classes, the binary problem.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from test_joint import CODES, NAMES, SIGNS, X, Y, rows_of, three

import jaxrules as jr
from jaxrules.ensembles import glrm
from jaxrules.ensembles.glrm.generation import generate
from jaxrules.ensembles.glrm.master import Master
from jaxrules.ensembles.glrm.outputs import Classes
from jaxrules.ensembles.glrm.task import GlrmTask
from jaxrules.rules.conditions import propositions_of
from jaxrules.solvers.rule_search import NormOfSums, SearchSpace
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Deadline
from joint_models import check_files_and_exports

FEW = X[:, :2]
SMALL = {"max_cut_points": 3, "max_length": 3}
"""Few enough rules for all of them."""


def all_rules(X: np.ndarray, longest: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Where each conjunction holds, (rows, rules), and its number of propositions."""
    table = jr.as_table(X)
    codes = propositions_of(table, max_cut_points=3).cell_codes(table)
    space = SearchSpace.of_codes(*codes)
    rules = [
        rule
        for length in range(1, longest + 1)
        for rule in itertools.combinations(range(len(space)), length)
    ]
    holds = np.stack([space.selected(rule) for rule in rules], axis=1)
    return holds, np.array([len(rule) for rule in rules], float)


def slopes_of(model: Any, X: Any, y: Any, weight: Any = None) -> np.ndarray:
    """Derivative of the mean loss by the scores of every row, (rows, classes)."""
    weight = np.ones(len(y)) if weight is None else weight
    p = np.asarray(jr.predict_proba(model, X))
    return weight[:, None] * (p - (y[:, None] == NAMES)) / weight.sum()


def prices_of(model: Any, fit: Any) -> np.ndarray:
    lengths = model.conjunctions.propositions
    return fit.details.rule_penalty + fit.details.condition_penalty * lengths


@pytest.mark.parametrize(("rule_penalty", "weighted"), [(0.1, False), (0.02, True)])
def test_the_optimum_over_all_conjunctions_is_that_of_a_convex_solver(
    rule_penalty: float, weighted: bool
) -> None:
    cp = pytest.importorskip("cvxpy")
    holds, lengths = all_rules(FEW)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(Y)) if weighted else np.ones(len(Y))
    fit = glrm.fit(
        FEW, Y, sample_weight=weight, rule_penalty=rule_penalty, pricing="exact", **SMALL
    )
    b, b0 = cp.Variable((holds.shape[1], 3)), cp.Variable((1, 3))
    scores = holds.astype(float) @ b + np.ones((len(Y), 1)) @ b0
    of_class = cp.sum(cp.multiply(scores, (1 + SIGNS) / 2), axis=1)
    loss = weight / weight.sum() @ (cp.log_sum_exp(scores, axis=1) - of_class)
    paid = rule_penalty * (1 + lengths / 5) @ cp.norm(b, axis=1)
    value = cp.Problem(cp.Minimize(loss + paid)).solve(solver=cp.CLARABEL)
    assert fit.status is Status.OPTIMAL
    assert fit.model.link == "softmax"
    assert fit.objective == pytest.approx(value, rel=1e-6)
    assert fit.objective * (1 - 2e-5) <= fit.bound <= value * (1 + 1e-6)


@settings(max_examples=6)
@given(seed=st.integers(0, 1000), rule_penalty=st.sampled_from([0.08, 0.02]))
def test_optimality_conditions(seed: int, rule_penalty: float) -> None:
    X, y = three(seed, 80)
    X = np.clip(X[:, :3].round(), -1, 1)  # equal cut points of weighted and repeated rows
    weight = np.random.default_rng(seed).integers(1, 4, 80)
    options: dict[str, Any] = {"rule_penalty": rule_penalty, "pricing": "exact", **SMALL}
    fit = glrm.fit(X, y, sample_weight=weight, **options)
    slopes = slopes_of(fit.model, X, y, weight)
    np.testing.assert_allclose(slopes.sum(axis=0), 0, atol=1e-7)
    holds, lengths = all_rules(X)
    violation = np.linalg.norm(holds.T @ slopes, axis=1) / (rule_penalty * (1 + lengths / 5))
    assert violation.max() <= 1 + 1e-4
    prices, sizes = prices_of(fit.model, fit), np.linalg.norm(fit.model.weights, axis=1)
    np.testing.assert_allclose(
        rows_of(fit.model, X).T @ slopes,
        -fit.model.weights * (prices / sizes)[:, None],
        atol=1e-3 * rule_penalty,
    )
    risk = jr.risk(fit.model, X, y, sample_weight=weight)
    assert fit.objective == pytest.approx(risk + prices @ sizes, rel=1e-9)
    repeated = glrm.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight), **options)
    assert repeated.objective == pytest.approx(fit.objective, rel=2e-6)


@pytest.mark.parametrize("linear_terms", [False, True])
def test_two_classes_are_the_binary_problem(
    linear_terms: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # two outputs for two classes: no model that users can make
    monkeypatch.setattr(jr.RuleEnsemble, "__post_init__", lambda self: None)
    y = CODES > 0
    shared: dict[str, Any] = {"pricing": "exact", "linear_terms": linear_terms, **SMALL}
    binary = glrm.fit(X, y, rule_penalty=0.02, **shared)
    options = glrm.Options(rule_penalty=2**0.5 * 0.02, **shared)
    run = options.run()
    data = options.training_data(X, y, None, jr.losses.logistic)
    task = GlrmTask.of(data, options, run)
    both = dataclasses.replace(data, target=np.column_stack([-data.target, data.target]))
    joint = generate(Master(task.problem(both, 2**0.5 * 0.02), None), run)
    assert joint.status is binary.status is Status.OPTIMAL
    assert joint.objective == pytest.approx(binary.objective, rel=1e-7)
    half = np.asarray(jr.decision_function(binary.model, X)) / 2
    scores = joint.model.intercept + rows_of(joint.model, X) @ joint.model.weights
    if linear_terms:
        scores += joint.model.linear.values(jr.as_table(X)) @ joint.model.linear.coefficients
    np.testing.assert_allclose(scores, np.column_stack([-half, half]), atol=1e-3)
    alone = dataclasses.replace(task, joint=True).largest_penalty(both)
    assert alone == pytest.approx(2**0.5 * task.largest_penalty(data))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    classes=st.integers(2, 4),
    rule_penalty=st.sampled_from([0.02, 0.1]),
    condition_penalty=st.sampled_from([0.0, 0.02]),
)
def test_exact_pricing_is_brute_force(
    seed: int, classes: int, rule_penalty: float, condition_penalty: float
) -> None:
    rng = np.random.default_rng(seed)
    space = SearchSpace.of(rng.random((20, 6)) < 0.6)
    slopes = rng.normal(size=(20, classes)) / 20
    slopes -= slopes.mean(axis=1, keepdims=True)
    rules, ratio = glrm.price_exactly(
        space, slopes, rule_penalty, condition_penalty, max_length=None
    )
    every = [
        (np.linalg.norm(slopes[space.selected(rule)].sum(axis=0)), len(rule))
        for length in range(1, 7)
        for rule in itertools.combinations(range(6), length)
    ]
    excess = max(norm - rule_penalty - condition_penalty * length for norm, length in every)
    worst = max(norm / (rule_penalty + condition_penalty * length) for norm, length in every)
    assert ratio >= worst - 1e-9
    assert bool(rules) == (excess > 0)
    for rule in rules:
        norm = np.linalg.norm(slopes[space.selected(rule)].sum(axis=0))
        assert norm - rule_penalty - condition_penalty * len(rule) == pytest.approx(excess)
    by_beam = glrm.price_by_beam(
        space, slopes, rule_penalty, condition_penalty, width=100, max_length=None, count=3
    )
    assert bool(by_beam) == bool(rules)
    gains = [
        np.linalg.norm(slopes[space.selected(rule)].sum(axis=0))
        - rule_penalty
        - condition_penalty * len(rule)
        for rule in by_beam
    ]
    assert gains == sorted(gains, reverse=True)
    assert all(gain > 0 for gain in gains)


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 5))
def test_the_bound_holds_for_every_subset_of_the_rows(seed: int, classes: int) -> None:
    gradient = np.random.default_rng(seed).normal(size=(classes, 8))
    gradient -= gradient.mean(axis=0)
    space = SearchSpace.of(np.eye(8, dtype=bool))
    objective = NormOfSums(gradient)
    subsets = np.array(list(itertools.product([0.0, 1.0], repeat=8))).T
    values = objective.value(objective.terms(space)[0] @ subsets)
    np.testing.assert_allclose(values, np.linalg.norm(gradient @ subsets, axis=0))
    bound = objective.bounds(objective.terms(space)[0], np.ones((8, 1)))[0]
    assert values.max() <= bound * (1 + 1e-12)
    assert bound <= np.sqrt(classes) * values.max() * (1 + 1e-12)


def test_paths_folds_and_starts() -> None:
    path = glrm.path(X, Y, rule_penalties=[0.2, 0.08, 0.04])
    sizes = [jr.support(fit.model) for fit in path]
    assert sizes[0] < sizes[1] < sizes[2]
    for fit in path:
        assert fit.status is Status.CONVERGED
        assert dict(fit.model.options)["multiclass"] == "joint"
        alone = glrm.fit(X, Y, rule_penalty=fit.details.rule_penalty)
        assert alone.objective == pytest.approx(fit.objective, rel=1e-3)
    largest = glrm.path(X, Y)[0].details.rule_penalty / 0.3
    one: dict[str, Any] = {"max_length": 1, "condition_penalty": 0.0}
    assert jr.support(glrm.fit(X, Y, rule_penalty=1.001 * largest, **one).model) == 0
    assert jr.support(glrm.fit(X, Y, rule_penalty=0.999 * largest, **one).model) > 0
    chosen = glrm.cross_validate(X, Y, rule_penalties=[0.2, 0.04], n_folds=3)
    assert chosen.model.link == "softmax"
    assert chosen.details.cross_validation.setting == {"rule_penalty": 0.04}
    warm = glrm.fit(X, Y, rule_penalty=0.04, start=path[2])
    assert warm.objective <= path[2].objective * (1 + 1e-9)
    separate = glrm.fit(X, Y, rule_penalty=0.04, multiclass="one_vs_rest")
    assert separate.model.link == "logistic"
    assert dict(separate.model.options)["multiclass"] == "one_vs_rest"
    begun = glrm.fit(X, Y, rule_penalty=0.04, start=separate)
    assert begun.objective == pytest.approx(path[2].objective, rel=1e-2)


def test_the_default_penalty_follows_the_noise() -> None:
    fit = glrm.fit(X, Y)
    slopes = np.sqrt(len(Y)) * slopes_of(fit.model, X, Y)
    errors = 0.5 * np.sqrt((slopes**2).sum() / len(Y))
    as_rarely = chi2.ppf(chi2.cdf(1.6**2, 1), 2)
    assert "1.49 standard errors" in fit.details.chosen
    assert fit.details.rule_penalty == pytest.approx((as_rarely / 2) ** 0.5 * errors, rel=0.06)
    again = glrm.fit(X, Y, rule_penalty=fit.details.rule_penalty)
    assert again.objective == pytest.approx(fit.objective, rel=1e-2)  # by other candidates


def test_no_status_is_better_than_the_master_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    X = [[1, 2], [0, 0], [0, 1], [0, 1], [2, 1], [0, 1], [1, 0], [0, 2], [1, 1], [0, 0], [2, 0]]
    X, y = np.array([*X, [1, 1]]), np.array([1, 1, 2, 2, 0, 0, 0, 1, 2, 2, 3, 2])
    given = {"rule_penalty": 1e-3, "condition_penalty": 0.0, "max_length": 2}
    found = glrm.fit(X, y, multiclass="joint", pricing="exact", **given)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(0.314607, abs=1e-6)
    solve = Classes.solve
    monkeypatch.setattr(
        Classes, "solve", lambda *given: solve(*given)._replace(status=Status.STALLED)
    )
    assert glrm.fit(X, y, multiclass="joint", **given).status is Status.STALLED


def test_limits() -> None:
    whole = glrm.fit(X, Y, rule_penalty=0.02)
    constant = np.log(np.bincount(CODES) / len(Y))
    at_once = glrm.fit(X, Y, time_limit=0)
    assert at_once.status is Status.TIME_LIMIT
    np.testing.assert_allclose(at_once.model.intercept, constant - constant.mean(), atol=1e-9)
    rounds: list[float] = []

    def interrupt(progress: Any) -> None:
        rounds.extend([] if progress.objective is None else [progress.objective])
        if len(rounds) == 3:
            raise KeyboardInterrupt

    cut = glrm.fit(X, Y, rule_penalty=0.02, rules_per_round=1, progress=interrupt)
    assert cut.status is Status.INTERRUPTED
    assert cut.objective == pytest.approx(min(rounds))
    assert cut.objective >= whole.objective
    ticks = iter(range(10**9))
    limit = Deadline(40, clock=lambda: next(ticks))
    late = glrm.fit(X, Y, rule_penalty=0.02, rules_per_round=1, time_limit=limit)
    assert late.status is Status.TIME_LIMIT
    few = glrm.fit(X, Y, rule_penalty=0.005, max_rules=2, rules_per_round=2)
    assert few.status is Status.MAX_ITERATIONS
    assert few.details.n_candidates <= whole.details.n_candidates + 2


def test_a_model_of_a_sample_if_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = np.arange(0, len(Y), 2)

    def half(data: Any, *_: Any) -> Any:
        return data[sample] if len(data.weights) == len(Y) else None

    monkeypatch.setattr("jaxrules.ensembles.glrm.fitting.rows_for_rules", half)
    for time_limit in (60.0, 1e-3):  # a fit of the sample, and short rules
        fit = glrm.fit(X, Y, time_limit=time_limit)
        model = fit.model
        assert (fit.status, model.link) == (Status.TIME_LIMIT, "softmax")
        sizes = np.linalg.norm(model.weights, axis=1)
        assert fit.objective == pytest.approx(jr.risk(model, X, Y) + prices_of(model, fit) @ sizes)
        assert fit.details.sample == len(sample)
        assert jr.risk(model, X, Y) < np.log(3)


def test_experts_rules_linear_terms_and_debiased_weights() -> None:
    first = glrm.fit(X, Y, rule_penalty=0.1).model.conjunctions.take(np.array([0]))
    kept = glrm.fit(X, Y, rule_penalty=1.0, first=first).model
    assert [frozenset(rule) for rule in kept.conjunctions] == [frozenset(rule) for rule in first]
    assert not kept.weights.any()
    fit = glrm.fit(
        X, Y, rule_penalty=0.03, forbidden=[0], linear_terms=True, pricing="exact", **SMALL
    )
    used = {condition.feature for rule in fit.model.conjunctions for condition in rule}
    assert 0 not in used | set(fit.model.linear.feature.tolist())
    values = fit.model.linear.values(jr.as_table(X))
    paid = 0.03 * np.linalg.norm(fit.model.linear.coefficients, axis=1) @ values.std(axis=0) / 0.4
    paid += prices_of(fit.model, fit) @ np.linalg.norm(fit.model.weights, axis=1)
    assert fit.objective == pytest.approx(jr.risk(fit.model, X, Y) + paid, rel=1e-7)
    assert fit.status is Status.OPTIMAL
    debiased = glrm.fit(X, Y, rule_penalty=0.05, debias=True).model
    shrunk = glrm.fit(X, Y, rule_penalty=0.05).model
    assert set(debiased.conjunctions) == set(shrunk.conjunctions)
    assert jr.risk(debiased, X, Y) < jr.risk(shrunk, X, Y)


def test_categories_and_missing_values() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "kind": np.array(["p", "q", "r"])[CODES]})
    frame.loc[::7, "size"] = np.nan
    model = glrm.fit(frame, Y, rule_penalty=0.02, missing="own_category").model
    assert model.link == "softmax"
    assert (np.asarray(jr.predict(model, frame)) == Y).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"monotone": {0: 1}}, "monotone"), ({"loss": "exponential"}, 'loss="exponential"')],
)
def test_what_cannot_be_joint(given: dict[str, Any], message: str) -> None:
    y = np.unique(Y, return_inverse=True)[1]  # numbers have an order, which monotone needs
    for call in (glrm.fit, glrm.path, glrm.cross_validate):
        with pytest.raises(ValueError, match=message + ' cannot .*set multiclass="one_vs_rest"'):
            call(X, y, multiclass="joint", **given)
    fit = glrm.fit(X, y, rule_penalty=0.1, **given)
    assert fit.model.link != "softmax"
    assert dict(fit.model.options)["multiclass"] == "one_vs_rest"


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxrules.rules.rows.available_memory", lambda: 20_000)
    with pytest.raises(ValueError, match='3 classes on .*set multiclass="one_vs_rest"'):
        glrm.fit(X, Y, rule_penalty=0.1, max_cut_points=2)


def test_exports_and_files_hold_the_model(tmp_path: Any) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = glrm.fit(frame, Y, rule_penalty=0.05, linear_terms=True).model
    check_files_and_exports(model, frame, tmp_path)
    refitted = jr.refit(model, frame, Y)
    assert jr.risk(refitted, frame, Y) < jr.risk(model, frame, Y)


def test_the_classifier_is_the_fit() -> None:
    from jaxrules.estimators import GLRMClassifier

    for multiclass in ("joint", "one_vs_rest"):
        model = GLRMClassifier(rule_penalty=0.05, multiclass=multiclass).fit(X, Y)
        expected = glrm.fit(X, Y, rule_penalty=0.05, multiclass=multiclass).model
        np.testing.assert_allclose(model.predict_proba(X), jr.predict_proba(expected, X))


def test_elimination_is_worth_its_price_at_every_rule() -> None:
    whole, default, fewer = (
        glrm.fit(X, Y, **SMALL, rule_penalty=0.01, eliminate=on) for on in (False, None, True)
    )
    assert list(whole.model.conjunctions) == list(default.model.conjunctions)
    dropped = fewer.details.dropped
    assert dropped == len(whole.model.conjunctions) - len(fewer.model.conjunctions) > 0
    p = np.asarray(jr.predict_proba(fewer.model, X))
    scale = np.sum((p - (Y[:, None] == NAMES)) ** 2) / np.sum(p * (1 - p))
    assert fewer.objective - whole.objective <= dropped * 1.25 / len(Y) * max(scale, 1.0) + 1e-9
    # The weights are the best of these rules: the objective is that of the model.
    penalty = prices_of(fewer.model, fewer) @ np.linalg.norm(fewer.model.weights, axis=1)
    assert fewer.objective == pytest.approx(jr.risk(fewer.model, X, Y) + penalty, rel=1e-6)
    first = whole.model.conjunctions.take([0])
    kept = glrm.fit(X, Y, **SMALL, rule_penalty=0.01, eliminate=True, first=first)
    assert kept.model.conjunctions.describe(0) == first.describe(0)
