"""RuleFit for several classes as one problem: against a general convex solver, its optimality
conditions and, with two classes, the binary problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax
from test_joint import CODES, NAMES, SIGNS, X, Y, rows_of, three

import jaxrules as jr
from jaxrules.solvers.linear import sparse_glm, sparse_softmax
from jaxrules.solvers.linear.design import Design
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Deadline, Run
from joint_models import check_files_and_exports

RULES = jr.extract_rules(jr.default_forest(X, Y, n_trees=5, seed=0), X)
HOLDS = RULES.satisfied(jr.as_table(X))


def softmax_problem(
    holds: np.ndarray, signs: np.ndarray, weight: Any = None, factors: Any = None
) -> sparse_softmax.SoftmaxProblem:
    n, k = holds.shape
    return sparse_softmax.SoftmaxProblem.of(
        Design.of(holds),
        signs,
        np.ones(n) if weight is None else weight,
        np.ones(k) if factors is None else factors,
    )


@pytest.mark.parametrize("share", [0.5, 0.05, 0.01])
def test_the_optimum_is_that_of_a_convex_solver(share: float) -> None:
    cp = pytest.importorskip("cvxpy")
    holds = HOLDS[:, :12]
    random = np.random.default_rng(0)
    weight, factors = random.uniform(0.5, 2.0, len(X)), random.uniform(0.5, 2.0, 12)
    factors[3] = 0.0
    problem = softmax_problem(holds, SIGNS, weight, factors)
    penalty = share * problem.max_penalty()
    found = problem.solve(penalty, tolerance=1e-9)
    b, b0 = cp.Variable((12, 3)), cp.Variable((1, 3))
    scores = holds.astype(float) @ b + np.ones((len(X), 1)) @ b0
    of_class = cp.sum(cp.multiply(scores, (1 + SIGNS) / 2), axis=1)
    loss = weight / weight.sum() @ (cp.log_sum_exp(scores, axis=1) - of_class)
    value = cp.Problem(cp.Minimize(loss + penalty * factors @ cp.norm(b, axis=1))).solve()
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(value, rel=1e-6)
    assert found.bound <= value * (1 + 1e-7)
    assert found.objective - found.bound <= 1e-8
    np.testing.assert_allclose(found.coefficients.sum(axis=1), 0, atol=1e-9)


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), share=st.sampled_from([0.3, 0.05, 0.01]))
def test_optimality_conditions(seed: int, share: float) -> None:
    X, y = three(seed, 80)
    weight = np.random.default_rng(seed).integers(1, 4, 80)
    rules = jr.extract_rules(jr.default_forest(X, y, n_trees=4, seed=0), X)
    largest = jr.rulefit.path(X, y, weight, rules=rules, n_penalties=2)[0].details.l1_penalty
    penalty = share * largest
    fit = jr.rulefit.fit(X, y, weight, rules=rules, l1_penalty=penalty, tolerance=1e-9)
    model, holds = fit.model, rules.satisfied(jr.as_table(X)).astype(float)
    assert model.link == "softmax"
    p = np.asarray(jr.predict_proba(model, X))
    rest = weight[:, None] * (p - (y[:, None] == NAMES)) / weight.sum()
    np.testing.assert_allclose(rest.sum(axis=0), 0, atol=1e-7)
    assert np.linalg.norm(holds.T @ rest, axis=1).max() <= penalty * (1 + 1e-3)
    slope = rows_of(model, X).T @ rest
    sizes = np.linalg.norm(model.weights, axis=1)
    np.testing.assert_allclose(
        slope, -penalty * model.weights / sizes[:, None], atol=1e-3 * penalty
    )
    risk = jr.risk(model, X, y, sample_weight=weight)
    assert fit.objective == pytest.approx(risk + penalty * sizes.sum(), rel=1e-9)
    repeated = jr.rulefit.fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight), rules=rules, l1_penalty=penalty
    )
    assert repeated.objective == pytest.approx(fit.objective, rel=2e-6)


def test_two_classes_are_the_binary_problem() -> None:
    random = np.random.default_rng(1)
    columns = (HOLDS, 100 + 5 * random.normal(size=(len(X), 1)))
    factors = random.uniform(0.5, 2.0, HOLDS.shape[1] + 1)
    factors[:2] = 0.0
    weight, sign = random.uniform(0.5, 2.0, len(X)), np.where(CODES > 0, 1.0, -1.0)
    design = Design.of(columns)
    joint = sparse_softmax.SoftmaxProblem.of(
        design, np.stack([-sign, sign], axis=1), weight, factors
    )
    binary = sparse_glm.SparseProblem.of(design, sign, "logistic", weight, True, factors)
    assert joint.max_penalty() / 2**0.5 == pytest.approx(binary.max_penalty())
    for share in (0.5, 0.05):
        penalty = share * binary.max_penalty()
        ours = joint.solve(2**0.5 * penalty, tolerance=1e-9)
        theirs = binary.solve(penalty, tolerance=1e-9)
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
        np.testing.assert_allclose(2 * ours.coefficients[:, 1], theirs.coefficients, atol=1e-3)
        assert ours.intercept.sum() == pytest.approx(0)


def test_limits_of_the_solver() -> None:
    problem = softmax_problem(HOLDS, SIGNS)
    penalty = 0.01 * problem.max_penalty()
    few = problem.solve(penalty, max_iterations=3, tolerance=1e-12)
    assert (few.status, few.iterations) == (Status.MAX_ITERATIONS, 3)
    whole = problem.solve(penalty)
    assert few.bound <= whole.objective <= few.objective
    again = problem.solve(penalty, start=(whole.coefficients + 1.0, whole.intercept))
    assert again.iterations == 0
    ended = softmax_problem(HOLDS, SIGNS).solve(penalty, run=Run("test", 0))
    assert ended.status is Status.TIME_LIMIT
    assert not ended.coefficients.any()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_solution_in_other_coefficients_is_a_start_without_evaluation(classes: int) -> None:
    holds = np.column_stack([HOLDS[:, :6], ~HOLDS[:, 0]])
    ones = np.ones(len(X)), np.ones(7)
    problem: Any = softmax_problem(holds, SIGNS)
    if classes == 2:
        logistic = jr.losses.logistic
        problem = sparse_glm.SparseProblem.of(
            Design.of(holds), SIGNS[:, 0], logistic, ones[0], True, ones[1]
        )
    found = problem.solve(0.05 * problem.max_penalty())
    # Half of a rule's weight moves to its complement.
    b, half = found.coefficients.copy(), found.coefficients[0] / 2
    assert np.any(half != 0)
    b[0], b[6] = half, b[6] - half
    renamed = problem.renamed(found, b, found.intercept + half)
    kept = problem.start(renamed)
    assert kept is problem.latest.position
    again = problem.start((b, renamed.intercept))
    np.testing.assert_allclose(kept.coefficients, again.coefficients, atol=1e-12)
    n = problem.design.n_patterns  # the rows stored beyond them have no weight
    scores = kept.point.score[..., :n], again.point.score[..., :n]
    for one, other in ((kept.intercept, again.intercept), scores):
        difference = np.asarray(one - other)  # a number added to all classes changes nothing
        np.testing.assert_allclose(difference, difference.mean(), atol=1e-9)
    assert kept.point.loss == pytest.approx(again.point.loss)
    lower = 0.01 * problem.max_penalty()
    value = problem.solve(lower, start=renamed).objective
    assert value == pytest.approx(problem.solve(lower).objective, rel=1e-5)


def test_the_best_intercepts_end_where_rounding_hides_what_is_gained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n, random = 3000, np.random.default_rng(0)
    target = random.dirichlet(np.ones(5), n).T
    weights, score = random.dirichlet(np.ones(n)), random.normal(size=(5, n))
    near = sparse_softmax._best_shift(weights, target, score) + 1e-8 * random.normal(size=5)
    calls: list[int] = []
    log_loss = sparse_softmax._log_loss
    monkeypatch.setattr(
        sparse_softmax, "_log_loss", lambda *given: calls.append(1) or log_loss(*given)
    )
    shift = sparse_softmax._best_shift(weights, target, score + near[:, None])
    p = softmax(score + (near + shift)[:, None], axis=0)
    assert np.abs((weights * (p - target)).sum(axis=1)).max() <= 1e-14
    assert len(calls) == 1  # no step is compared
    expected = weights @ (logsumexp(score, axis=0) - (target * score).sum(axis=0))
    assert log_loss(weights, target, score) == pytest.approx(expected, rel=1e-13)


def test_paths_folds_starts_and_limits() -> None:
    path = jr.rulefit.path(X, Y, rules=RULES, n_penalties=6)
    sizes = [len(fit.model.conjunctions) for fit in path]
    assert sizes[0] == 0 < sizes[1]
    for fit in path:
        assert fit.status is Status.CONVERGED
        assert fit.gap <= 1e-6 * fit.objective
        assert dict(fit.model.options)["multiclass"] == "joint"
    just_below = 0.999 * path[0].details.l1_penalty
    assert jr.support(jr.rulefit.fit(X, Y, rules=RULES, l1_penalty=just_below).model) > 0
    penalty = path[3].details.l1_penalty
    alone = jr.rulefit.fit(X, Y, rules=RULES, l1_penalty=penalty)
    assert alone.objective == pytest.approx(path[3].objective, rel=2e-6)
    warm = jr.rulefit.fit(X, Y, rules=RULES, l1_penalty=penalty, start=alone)
    np.testing.assert_allclose(warm.model.weights, alone.model.weights)
    for found in (
        jr.rulefit.fit(X, Y, rules=RULES),
        jr.rulefit.cross_validate(X, Y, n_folds=3, l1_penalties=[0.1, 0.05]),
    ):
        measured = found.details.cross_validation
        assert found.model.link == "softmax"
        assert found.details.l1_penalty == measured.setting["l1_penalty"]
        assert np.nanmin(measured.risk) < np.log(3)
    ticks = iter(range(10**9))
    limit = Deadline(30, clock=lambda: next(ticks))
    cut = jr.rulefit.path(X, Y, rules=RULES, n_penalties=50, time_limit=limit)
    assert len(cut) < 50
    assert cut[-1].status is Status.TIME_LIMIT
    assert jr.rulefit.fit(X, Y, time_limit=0).model.link == "softmax"


def test_experts_rules_and_constraints() -> None:
    first = RULES.take(np.array([0]))
    empty = jr.rulefit.path(X, Y, rules=RULES, first=first, n_penalties=2)[0].model
    assert [frozenset(rule) for rule in empty.conjunctions] == [frozenset(rule) for rule in first]
    p = np.asarray(jr.predict_proba(empty, X))
    for rows in (HOLDS[:, 0], ~HOLDS[:, 0]):  # without a penalty: the shares of the classes
        np.testing.assert_allclose(p[rows].mean(axis=0), np.bincount(CODES[rows]) / rows.sum())
    fit = jr.rulefit.fit(X, Y, l1_penalty=0.02, forbidden=[0], linear_terms=True)
    used = {condition.feature for rule in fit.model.conjunctions for condition in rule}
    assert 0 not in used | set(fit.model.linear.feature.tolist())
    values = fit.model.linear.values(jr.as_table(X))
    sizes = np.linalg.norm(fit.model.linear.coefficients, axis=1) @ values.std(axis=0) / 0.4
    sizes += np.linalg.norm(fit.model.weights, axis=1).sum()
    assert fit.objective == pytest.approx(jr.risk(fit.model, X, Y) + 0.02 * sizes, rel=1e-7)


def test_categories_and_missing_values() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "kind": np.array(["p", "q", "r"])[CODES]})
    frame.loc[::7, "size"] = np.nan
    model = jr.rulefit.fit(frame, Y, l1_penalty=0.02, missing="own_category").model
    assert model.link == "softmax"
    assert (np.asarray(jr.predict(model, frame)) == Y).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"monotone": {0: 1}, "l1_penalty": 0.1}, "monotone"),
        ({"loss": "exponential", "l1_penalty": 0.1}, 'loss="exponential"'),
        ({"l1_penalty": 0.0, "rules": RULES.take(np.arange(3))}, "a penalty of 0"),
        ({"engine": "jax", "l1_penalty": 0.1}, 'engine="jax"'),
    ],
)
def test_what_cannot_be_joint(given: dict[str, Any], message: str) -> None:
    y = np.unique(Y, return_inverse=True)[1]  # numbers have an order, which monotone needs
    with pytest.raises(ValueError, match=message + ' cannot .*set multiclass="one_vs_rest"'):
        jr.rulefit.fit(X, y, multiclass="joint", **given)
    fit = jr.rulefit.fit(X, y, **given)
    assert fit.model.link != "softmax"
    assert dict(fit.model.options)["multiclass"] == "one_vs_rest"
    assert len(fit.details.objectives) == 3


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxrules.rules.rows.available_memory", lambda: 1_000)
    with pytest.raises(ValueError, match='3 classes on .*set multiclass="one_vs_rest"'):
        jr.rulefit.fit(X, Y, rules=RULES.take(np.arange(3)), l1_penalty=0.1)


def test_exports_and_files_hold_the_model(tmp_path: Any) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = jr.rulefit.fit(frame, Y, l1_penalty=0.02, linear_terms=True).model
    check_files_and_exports(model, frame, tmp_path)
    refitted = jr.refit(model, frame, Y)
    assert jr.risk(refitted, frame, Y) < jr.risk(model, frame, Y)


def test_the_classifier_is_the_fit() -> None:
    from jaxrules.estimators import RuleFitClassifier

    model = RuleFitClassifier(l1_penalty=0.05, multiclass="joint").fit(X, Y)
    expected = jr.rulefit.fit(X, Y, l1_penalty=0.05).model
    np.testing.assert_allclose(model.predict_proba(X), jr.predict_proba(expected, X))
