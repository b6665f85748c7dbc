"""LIRE for several classes as one problem: against brute force and, with two classes, the binary
problem.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_joint import CODES, NAMES, SIGNS, X, Y, rows_of, three

import jaxrules as jr
from jaxrules.ensembles.lire.joint_search import JointSearch
from jaxrules.ensembles.lire.problem import make_problem
from jaxrules.ensembles.lire.search import SupportSearch
from jaxrules.losses import logistic
from jaxrules.rules.rows import Activations
from jaxrules.solvers.linear.refit import refit_softmax
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Deadline
from joint_models import check_files_and_exports

RULES = jr.extract_rules(jr.default_forest(X, Y, n_trees=5, seed=0), X)
HOLDS = RULES.satisfied(jr.as_table(X))
GIVEN = {"global_penalty": 0.03, "local_penalty": 0.06, "l2_penalty": 1.0, "multiclass": "joint"}
PENALTIES = {name: value for name, value in GIVEN.items() if name != "multiclass"}


def objective(
    holds: np.ndarray, signs: np.ndarray, weight: np.ndarray, gamma: float, lam: float, ridge: float
) -> float:
    """G of a support with its best weights."""
    k, shares = holds.shape[1], weight / weight.sum()
    w, b = refit_softmax(
        signs, holds.astype(float), l2_penalty=2 * ridge, sample_weight=weight,
        start=(np.zeros((k, signs.shape[1])), np.zeros(signs.shape[1])),
    )  # fmt: skip
    scores = b + holds @ w
    loss = np.logaddexp.reduce(scores, axis=1) - ((1 + signs) / 2 * scores).sum(axis=1)
    covered = (shares @ holds).mean() if k else 0.0
    return float(shares @ loss + gamma * k + lam * covered + ridge / weight.sum() * (w**2).sum())


@pytest.mark.parametrize("encoding", ["signed", "binary"])
def test_two_classes_are_the_binary_problem(encoding: Any) -> None:
    sign, weight = np.where(CODES > 0, 1.0, -1.0), np.random.default_rng(0).uniform(0.5, 2, len(X))
    pool = Activations.of_matrix(HOLDS)
    binary = make_problem(pool, sign, weight, logistic, encoding)
    joint = make_problem(pool, np.stack([-sign, sign], axis=1), weight, logistic, encoding)
    one, both = SupportSearch(binary, 0.01, 0.02, 2.0), JointSearch(joint, 0.01, 0.02, 2.0)
    some = np.arange(1, 6)
    ours, theirs = both.start_from(some, np.zeros(5)), one.start_from(some, np.zeros(5))
    assert ours.objective == pytest.approx(theirs.objective, abs=1e-8)
    np.testing.assert_allclose(2 * ours.weights[:, 1], theirs.weights, atol=1e-3)
    np.testing.assert_allclose(ours.weights.sum(axis=1), 0, atol=1e-12)
    for mine, its in zip(both._rank(ours)[:3], one._rank(theirs)[:3], strict=True):
        np.testing.assert_allclose(mine, its, rtol=2e-4)
    ours, theirs = both.descend(both.start_empty()), one.descend(one.start_empty())
    assert len(ours.columns) > 2
    assert ours.objective == pytest.approx(theirs.objective, abs=1e-7)
    np.testing.assert_allclose(both.gains_alone(some, np.zeros(joint.target.shape)),
                               one.gains_alone(some, np.zeros(len(binary.target))))  # fmt: skip


def test_no_support_of_a_small_pool_is_better() -> None:
    reached = []
    for seed in range(12):
        X, y = three(seed, 60)
        weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(X))
        rules = jr.extract_rules(jr.default_forest(X, y, n_trees=5, seed=seed), X)
        rules = rules.take(np.random.default_rng(seed).permutation(len(rules))[:7])
        penalties = {"global_penalty": 0.01, "local_penalty": 0.03, "l2_penalty": 0.5}
        fit = jr.lire.fit(X, y, weight, rules=rules, multiclass="joint", restarts=2, **penalties)
        assert fit.details.swap_optimal
        again = jr.lire.objective(fit.model, X, y, sample_weight=weight, **penalties)
        assert fit.objective == pytest.approx(again, abs=1e-12)
        holds, signs = rules.satisfied(jr.as_table(X)), 2.0 * (y[:, None] == NAMES) - 1
        best = min(
            objective(holds[:, chosen], signs, weight, *penalties.values())
            for size in range(8)
            for chosen in itertools.combinations(range(7), size)
        )
        assert fit.objective >= best - 1e-8
        reached.append(fit.objective <= best + 1e-6)
    assert sum(reached) >= 10


def test_the_fit_is_what_its_model_is_worth() -> None:
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    fit = jr.lire.fit(X, Y, weight, rules=RULES, **GIVEN)
    model, details = fit.model, fit.details
    assert model.link == "softmax"
    assert dict(model.options)["multiclass"] == "joint"
    np.testing.assert_allclose(model.weights.sum(axis=1), 0, atol=1e-9)
    n, holds = weight.sum(), rows_of(model, X)
    ridge = PENALTIES["l2_penalty"] / n * (model.weights**2).sum()
    loss = jr.risk(model, X, Y, sample_weight=weight)
    assert details.loss == pytest.approx(loss, abs=1e-9)
    assert fit.objective - details.paper_objective == pytest.approx(ridge)
    covered = (weight @ holds / n).mean()
    assert details.paper_objective == pytest.approx(loss + 0.03 * holds.shape[1] + 0.06 * covered)
    rest = weight[:, None] * (np.asarray(jr.predict_proba(model, X)) - (Y[:, None] == NAMES))
    np.testing.assert_allclose(holds.T @ rest, -2 * model.weights, atol=0.02)
    repeated = jr.lire.fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight), rules=RULES, **GIVEN)
    assert repeated.objective == pytest.approx(fit.objective, abs=1e-8)
    again = jr.lire.fit(X, Y, weight, rules=RULES, **GIVEN)
    np.testing.assert_array_equal(again.model.weights, model.weights)


@pytest.mark.parametrize("encoding", ["signed", "binary"])
def test_defaults_follow_the_noise(encoding: str) -> None:
    fit = jr.lire.fit(X, Y, multiclass="joint", encoding=encoding, restarts=0)
    details = fit.details
    assert "of the constant's loss" in details.chosen
    assert details.l2_penalty in [pytest.approx(2 / 3 * ridge) for ridge in (8, 1, 0.15)]
    shares = np.bincount(CODES) / len(Y)
    share = details.global_penalty / -(shares @ np.log(shares))
    assert share in [pytest.approx(6 / len(Y)), pytest.approx(0.005)]
    assert details.local_penalty == 2 * details.global_penalty
    assert jr.risk(fit.model, X, Y) < -(shares @ np.log(shares))


def test_paths_folds_starts_and_sizes() -> None:
    path = jr.lire.path(X, Y, rules=RULES, multiclass="joint", l2_penalty=1.0, restarts=0)
    sizes = [len(fit.model.conjunctions) for fit in path]
    assert len(path) == 5
    assert sizes[0] < sizes[-1]
    assert {fit.model.link for fit in path} == {"softmax"}
    objectives = [fit.objective for fit in path]
    assert objectives == sorted(objectives, reverse=True)
    few = jr.lire.fit(X, Y, rules=RULES, max_rules=2, **GIVEN | {"global_penalty": 0.0})
    assert len(few.model.conjunctions) == 2
    start = jr.rulefit.fit(X, Y, l1_penalty=0.05)
    warm = jr.lire.fit(X, Y, rules=RULES, start=start, restarts=0, **GIVEN)
    holds = rows_of(start.model, X)
    assert warm.objective <= objective(holds, SIGNS, np.ones(len(X)), 0.03, 0.06, 1.0) + 1e-8
    chosen = jr.lire.cross_validate(
        X, Y, n_folds=2, global_penalties=[0.1, 0.02], l2_penalties=[1.0], multiclass="joint"
    )
    measured = chosen.details.cross_validation
    assert chosen.model.link == "softmax"
    assert chosen.details.global_penalty == measured.setting["global_penalty"]
    assert np.nanmin(measured.risk) < np.log(3)


def test_experts_rules_and_constraints() -> None:
    first = RULES.take(np.array([0]))
    model = jr.lire.fit(X, Y, rules=RULES, first=first, **GIVEN | {"global_penalty": 1.0}).model
    assert [frozenset(rule) for rule in model.conjunctions] == [frozenset(rule) for rule in first]
    assert np.abs(model.weights).min() > 0
    model = jr.lire.fit(X, Y, required=[3], **GIVEN | {"global_penalty": 1.0}).model
    assert [3 in {one.feature for one in rule} for rule in model.conjunctions] == [True]
    model = jr.lire.fit(X, Y, forbidden=[0], **GIVEN).model
    assert len(model.conjunctions)
    assert 0 not in {condition.feature for rule in model.conjunctions for condition in rule}


def test_limits() -> None:
    ticks = iter(range(10**9))
    limit = Deadline(300, clock=lambda: next(ticks))
    cut = jr.lire.fit(X, Y, rules=RULES, time_limit=limit, restarts=50, **GIVEN)
    assert cut.status is Status.TIME_LIMIT
    assert len(cut.model.conjunctions)
    assert jr.lire.fit(X, Y, time_limit=0, multiclass="joint").model.link == "softmax"
    once = jr.lire.fit(X, Y, rules=RULES, max_iterations=1, **GIVEN)
    assert once.status is Status.MAX_ITERATIONS


def test_ctrl_c_returns_the_best_model(monkeypatch: pytest.MonkeyPatch) -> None:
    import _thread

    refit, calls = JointSearch.refit, itertools.count()

    def interrupted(self: JointSearch, *args: Any, **kwargs: Any) -> Any:
        if next(calls) == 60:
            _thread.interrupt_main()
        return refit(self, *args, **kwargs)

    monkeypatch.setattr(JointSearch, "refit", interrupted)
    fit = jr.lire.fit(X, Y, rules=RULES, restarts=50, **GIVEN)
    assert fit.status is Status.INTERRUPTED
    assert len(fit.model.conjunctions)


def test_many_rows_are_searched_on_a_sample_first(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = jr.lire.fit(X, Y, rules=RULES, restarts=0, **GIVEN)
    monkeypatch.setattr("jaxrules.ensembles.lire.problem.SAMPLED", 1)
    monkeypatch.setattr("jaxrules.ensembles.lire.problem._FEWEST_SAMPLED", 8)
    monkeypatch.setattr("jaxrules.ensembles.lire.start.SAMPLED", 20 * len(RULES))
    fit = jr.lire.fit(X, Y, rules=RULES, restarts=0, **GIVEN)
    assert fit.details.start == "sample"
    assert fit.objective == pytest.approx(whole.objective, rel=0.05)
    assert fit.details.paper_objective < fit.objective


def test_separable_data_without_a_ridge() -> None:
    x = np.repeat([0.0, 1.0, 2.0], 20)[:, None]
    fit = jr.lire.fit(x, x[:, 0], multiclass="joint", **PENALTIES | {"l2_penalty": 0.0})
    assert np.isfinite(fit.model.weights).all()
    assert fit.details.loss < 1e-5


def test_categories_and_missing_values() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "kind": np.array(["p", "q", "r"])[CODES]})
    frame.loc[::7, "size"] = np.nan
    model = jr.lire.fit(frame, Y, missing="own_category", **GIVEN).model
    assert model.link == "softmax"
    assert (np.asarray(jr.predict(model, frame)) == Y).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"monotone": {0: 1}}, "monotone"),
        ({"loss": "exponential"}, 'loss="exponential"'),
        ({"penalise_intercept": True}, "penalise_intercept"),
        ({"search": "optimal", "rules": RULES.take(np.arange(4))}, 'search="optimal"'),
        ({"engine": "jax", "rules": RULES.take(np.arange(4))}, 'engine="jax"'),
    ],
)
def test_what_cannot_be_joint(given: dict[str, Any], message: str) -> None:
    options = {**PENALTIES, "restarts": 0, **given}
    y = np.unique(Y, return_inverse=True)[1]  # numbers have an order, which monotone needs
    with pytest.raises(ValueError, match=message + ' cannot .*set multiclass="one_vs_rest"'):
        jr.lire.fit(X, y, multiclass="joint", **options)
    fit = jr.lire.fit(X, y, **options)
    assert fit.model.link != "softmax"
    assert dict(fit.model.options)["multiclass"] == "one_vs_rest"
    assert len(fit.details.objectives) == 3


def test_bad_options() -> None:
    with pytest.raises(ValueError, match="multiclass must be"):
        jr.lire.fit(X, Y, multiclass="both")
    two = jr.lire.fit(X, CODES > 0, multiclass="joint", rules=RULES, restarts=0)
    assert two.model.n_outputs == 1


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxrules.rules.rows.available_memory", lambda: 1_000)
    with pytest.raises(ValueError, match='3 classes on .*set multiclass="one_vs_rest"'):
        jr.lire.fit(X, Y, rules=RULES.take(np.arange(3)), **GIVEN)


def test_exports_and_files_hold_the_model(tmp_path: Any) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = jr.lire.fit(frame, Y, **GIVEN).model
    check_files_and_exports(model, frame, tmp_path)
    refitted = jr.refit(model, frame, Y)  # with the ridge of the fit
    np.testing.assert_allclose(refitted.weights, model.weights, atol=2e-3)


def test_the_classifier_is_the_fit() -> None:
    from jaxrules.estimators import LIREClassifier

    model = LIREClassifier(rules=RULES, **GIVEN).fit(X, Y)
    expected = jr.lire.fit(X, Y, rules=RULES, **GIVEN).model
    np.testing.assert_allclose(model.predict_proba(X), jr.predict_proba(expected, X))
