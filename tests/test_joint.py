"""Boosting several classes as one problem: two classes are the binary problem, stages against
brute force, refits against their optimality condition, pruning, printing, exports.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy.special import softmax

import jaxrules as jr
from jaxrules.ensembles import boosting
from jaxrules.ensembles.boosting.fitting import task_of
from jaxrules.ensembles.boosting.search import joint_rule
from jaxrules.ensembles.boosting.stages import boosted
from jaxrules.solvers.linear.refit import refit_softmax
from jaxrules.tools.fits import Status
from joint_models import check_files_and_exports

NAMES = np.array(["ash", "birch", "cedar"])


def three(seed: int = 0, n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)).round(1)
    noise = 0.4 * random.normal(size=n)
    return X, NAMES[np.where(X[:, 0] + noise > 0.5, 2, np.where(X[:, 1] * X[:, 2] > noise, 1, 0))]


X, Y = three()
CODES = np.searchsorted(NAMES, Y)
SIGNS = np.where(CODES[:, None] == np.arange(3), 1.0, -1.0)


def rows_of(model: jr.RuleEnsemble, X: Any) -> np.ndarray:
    return model.conjunctions.satisfied(jr.as_table(X)).astype(float)


@pytest.mark.parametrize("l2_penalty", [0.3, 2.0])
def test_two_classes_are_the_binary_problem(
    l2_penalty: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # two outputs for two classes: no model that users can make
    monkeypatch.setattr(jr.RuleEnsemble, "__post_init__", lambda self: None)
    y = CODES > 0
    options = boosting.Options(max_rules=4, max_length=2, l2_penalty=l2_penalty)
    task = task_of(X, y, None, options)
    both = np.column_stack([-task.data.target, task.data.target])
    as_one = dataclasses.replace(task, joint=True, find=joint_rule)
    data = dataclasses.replace(task.data, target=both)
    joint = boosted(data, as_one, options.run(), [options.most_rules]).fits()[-1]
    binary = jr.boosting.fit(X, y, max_rules=4, max_length=2, l2_penalty=l2_penalty)
    np.testing.assert_allclose(joint.details.risks, binary.details.risks, rtol=1e-8)
    halves = np.abs(binary.model.weights / 2)  # a rule and its complement tie
    np.testing.assert_allclose(np.abs(joint.model.weights), np.hstack([halves] * 2), atol=1e-4)
    scores = joint.model.intercept + rows_of(joint.model, X) @ joint.model.weights
    half = np.asarray(jr.decision_function(binary.model, X)) / 2
    np.testing.assert_allclose(scores, np.column_stack([-half, half]), atol=1e-4)
    for ours, theirs in zip(joint.details.stages, binary.details.stages, strict=True):
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-5)


def best_worth(fit: Any, stage: int, holds: np.ndarray, longest: int, l2_penalty: float) -> float:
    """The greatest decrease per unit of complexity over all conjunctions, by the formula."""
    n, ridge = len(X), 2 * l2_penalty
    earlier = rows_of(fit.model, X)[:, :stage]
    b, b0 = refit_softmax(
        SIGNS, earlier, l2_penalty=ridge, sample_weight=np.ones(n),
        start=(np.zeros((stage, 3)), np.zeros(3)),
    )  # fmt: skip
    p = softmax(b0 + earlier @ b, axis=1)
    g, h = p - (SIGNS > 0), 1.5 * p * (1 - p)
    z = np.column_stack([np.ones(n), earlier])
    best = 0.0
    for length in range(1, longest + 1):
        for rule in itertools.combinations(range(holds.shape[1]), length):
            q = holds[:, rule].all(axis=1)
            if any((q == one).all() or (q != one).all() for one in earlier.T):
                continue  # no second rule for the same rows
            value = 0.0
            for k in range(3):
                m = (z.T * h[:, k]) @ z + np.diag([0.0] + [ridge] * stage)
                c = z.T @ (h[:, k] * q)
                rest = ridge + h[q, k].sum() - c @ np.linalg.solve(m, c)
                value += g[q, k].sum() ** 2 / rest
            best = max(best, value / (2 * n) / (1 + length))
    return best


@pytest.mark.parametrize("longest", [1, 2, 3, None])
def test_stages_against_brute_force(longest: int | None) -> None:
    fit = jr.boosting.fit(
        X, Y, max_rules=3, l2_penalty=1.0, max_length=longest, max_cut_points=2, forbidden=[3]
    )
    pool = jr.rules.conditions.all_propositions(jr.as_table(X[:, :3]), max_cut_points=2)
    holds = pool.satisfied(jr.as_table(X[:, :3]))
    assert fit.model.link == "softmax"
    assert fit.model.weights.shape == (3, 3)
    for m, stage in enumerate(fit.details.stages):
        best = best_worth(fit, m, holds, longest or 4, 1.0)
        assert stage.objective == pytest.approx(best, rel=1e-5)
        assert stage.bound >= best * (1 - 1e-5)
        assert stage.status is Status.OPTIMAL
        assert stage.gap < 1e-8
        assert len(stage.weight) == 3


@pytest.mark.parametrize("longest", [2, 3, None])
def test_a_limited_search_states_a_true_bound(longest: int | None) -> None:
    options: dict[str, Any] = {
        "max_rules": 1, "max_length": longest, "max_cut_points": 3, "l2_penalty": 1.0
    }  # fmt: skip
    proved = jr.boosting.fit(X, Y, **options, max_evaluations=None).details.stages[0]
    limited = jr.boosting.fit(X, Y, **options, max_evaluations=1).details.stages[0]
    assert limited.bound >= proved.objective * (1 - 1e-9) >= limited.objective * (1 - 1e-8)
    for search in ("greedy", "beam"):
        rough = jr.boosting.fit(X, Y, **options, search=search).details.stages[0]
        assert rough.bound is None
        assert rough.objective <= proved.objective * (1 + 1e-9)


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), l2_penalty=st.sampled_from([0.0, 0.1, 5.0]))
def test_weights_are_optimal(seed: int, l2_penalty: float) -> None:
    X, y = three(seed, 60)
    weight = np.random.default_rng(seed).integers(1, 4, 60)
    codes = np.searchsorted(NAMES, y)
    fit = jr.boosting.fit(X, y, weight, max_rules=3, max_cut_points=3, l2_penalty=l2_penalty)
    model, rows = fit.model, rows_of(fit.model, X)
    p = np.asarray(jr.predict_proba(model, X))
    rest = weight[:, None] * (p - np.eye(3)[codes])
    tolerance = 1e-4 * weight.sum()
    np.testing.assert_allclose(rest.sum(axis=0), 0, atol=tolerance)
    np.testing.assert_allclose(rows.T @ rest + 2 * l2_penalty * model.weights, 0, atol=tolerance)
    assert abs(model.intercept.sum()) < 1e-9
    log_loss = -weight @ np.log(p[np.arange(60), codes]) / weight.sum()
    ridge = l2_penalty / weight.sum() * float((model.weights**2).sum())
    assert fit.objective == pytest.approx(log_loss + ridge, rel=1e-8)
    if l2_penalty:
        repeated = jr.boosting.fit(
            np.repeat(X, weight, axis=0), np.repeat(y, weight), max_rules=3, l2_penalty=l2_penalty,
            propositions=jr.rules.conditions.all_propositions(jr.as_table(X), max_cut_points=3),
        )  # fmt: skip
        assert repeated.objective == pytest.approx(fit.objective, rel=1e-6)


def test_paths_limits_and_constraints() -> None:
    path = jr.boosting.path(X, Y, max_rules=4, l2_penalty=1.0, prune=0.5)
    assert [len(fit.model.conjunctions) for fit in path] == [1, 2, 3, 4]
    whole = jr.boosting.fit(X, Y, max_rules=3, l2_penalty=1.0, prune=0.5)
    np.testing.assert_array_equal(path[2].model.weights, whole.model.weights)
    assert dict(path[2].model.options)["max_rules"] == 3
    assert dict(whole.model.options)["multiclass"] == "joint"
    part = jr.boosting.fit(X, Y, max_rules=2, l2_penalty=1.0).model.conjunctions
    assert jr.boosting.fit(
        X, Y, max_rules=4, l2_penalty=1.0, first=part
    ).objective == pytest.approx(
        jr.boosting.fit(X, Y, max_rules=4, l2_penalty=1.0).objective, rel=1e-8
    )
    fit = jr.boosting.fit(X, Y, max_rules=3, l2_penalty=1.0, forbidden=[0], required=[3])
    used = {condition.feature for rule in fit.model.conjunctions for condition in rule}
    assert 3 in used
    assert 0 not in used
    stopped = jr.boosting.fit(X, Y, time_limit=0)
    assert stopped.status is Status.TIME_LIMIT
    assert stopped.model.link == "softmax"
    found = jr.boosting.cross_validate(X, Y, max_rules=3, n_folds=3, l2_penalties=(0.5, 2.0))
    assert found.model.link == "softmax"
    assert found.details.cross_validation.risks.shape == (3, 6)


def test_categories_and_missing_values() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "kind": np.array(["p", "q", "r"])[CODES]})
    frame.loc[::7, "size"] = np.nan
    model = jr.boosting.fit(frame, Y, max_rules=3, missing="own_category").model
    assert (np.asarray(jr.predict(model, frame)) == Y).all()


def test_pruned_weights() -> None:
    whole, fit = (
        jr.boosting.fit(X, Y, max_rules=4, l2_penalty=1.0, prune=prune) for prune in (None, 6)
    )
    cost, model = fit.details.pruning, fit.model
    assert whole.details.pruning is None
    assert cost.kept == np.count_nonzero(model.weights) == 6
    assert cost.weights == 12
    assert (model.weights != 0).any(axis=1).all()
    codes, p = CODES, np.asarray(jr.predict_proba(model, X))
    assert cost.log_loss[1] == pytest.approx(-np.log(p[np.arange(len(X)), codes]).mean())
    assert cost.error[1] == pytest.approx((jr.predict(model, X) != Y).mean())
    before = np.asarray(jr.predict_proba(whole.model, X))
    assert cost.log_loss[0] == pytest.approx(-np.log(before[np.arange(len(X)), codes]).mean())
    slope = rows_of(model, X).T @ (p - np.eye(3)[codes]) + 2 * model.weights
    assert np.abs(slope[model.weights != 0]).max() < 1e-3
    least = jr.boosting.fit(X, Y, max_rules=4, l2_penalty=1.0, prune=1)
    assert least.details.pruning.kept == 4
    assert jr.boosting.fit(X, Y, max_rules=4, l2_penalty=1.0, prune=1.0).details.pruning.kept == 12
    again = jr.refit(model, X, Y)
    np.testing.assert_allclose(again.weights, model.weights, atol=1e-3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"monotone": {0: 1}}, "monotone cannot be combined"),
        ({"loss": "exponential"}, 'loss="exponential" cannot be combined'),
        ({"objective": "second_order"}, 'objective="second_order" cannot'),
        ({"intercept": False, "eliminate": True}, "intercept=False and eliminate=True cannot"),
    ],
)
def test_what_cannot_be_joint(given: dict[str, Any], message: str) -> None:
    y = CODES if "monotone" in given else Y  # numbers have an order
    with pytest.raises(ValueError, match=message + '.*set multiclass="one_vs_rest"'):
        jr.boosting.fit(X, y, multiclass="joint", **given)
    if "eliminate" not in given:
        fit = jr.boosting.fit(X, y, max_rules=1, **given)
        assert fit.model.link != "softmax"
        assert dict(fit.model.options)["multiclass"] == "one_vs_rest"
    with pytest.raises(ValueError, match="prune needs .* leave out"):
        jr.boosting.fit(X, y, prune=3, **given)


def test_bad_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    for prune, error in ((0, ValueError), (1.5, ValueError), (-0.1, ValueError), ("a", TypeError)):
        with pytest.raises(error, match="prune"):
            jr.boosting.fit(X, Y, prune=prune)
    with pytest.raises(ValueError, match="prune needs more than two classes"):
        jr.boosting.fit(X, CODES > 0, prune=3)
    with pytest.raises(ValueError, match='multiclass must be None, "joint" or "one_vs_rest"'):
        jr.boosting.fit(X, Y, multiclass="ovr")  # type: ignore[arg-type]
    monkeypatch.setattr("jaxrules.rules.rows.available_memory", lambda: 50_000)
    with pytest.raises(ValueError, match='set multiclass="one_vs_rest"'):
        jr.boosting.fit(X, Y, max_rules=10, max_cut_points=2)


def handmade() -> jr.RuleEnsemble:
    schema = jr.Schema((jr.Feature("a"), jr.Feature("b")), "refuse", ("x", "y", "z"), "kind")
    rules = jr.Conjunctions.build(
        schema, [[jr.Condition.above(0, 1.0)], [jr.Condition.at_most(1, 2.0)], []]
    )
    weights = np.array([[1.5, -0.5, 0.0], [0.0, 0.0, -2.0], [0.0, 3.0, 1e-6]])
    return jr.RuleEnsemble(rules, weights, np.array([0.25, 0.0, -1.0]), None, "softmax")


def test_models_print_class_by_class() -> None:
    assert str(handmade()).splitlines()[2:] == [
        "      x      y       z",
        "  +0.25      .   -1.00  always",
        "  +1.50  -0.50       .  a > 1",
        "      .  +3.00  +1e-06  always",
        "      .      .   -2.00  b <= 2",
    ]
    assert "<th style='text-align:left'>y</th>" in handmade()._repr_html_()
    latex = jr.to_latex(handmade())
    assert r"$+1.50$ & $-0.50$ & $\cdot$ & a $>$ 1 \\" in latex
    assert r"\begin{tabular}{rrrl}" in latex


def test_explanations_compare_with_the_runner_up() -> None:
    one = jr.explain(handmade(), [[2.0, 1.0]])[0]
    assert (one.prediction, one.runner_up) == ("y", "x")
    assert str(one).splitlines()[1:] == [
        "        y        x  difference  not x because",
        "  +0.0000  +0.2500     -0.2500  intercept",
        "  +3.0000  +0.0000     +3.0000  always",
        "  -0.5000  +1.5000     -2.0000  a > 1",
        "  +2.5000  +1.7500     +0.7500  sum",
    ]


def test_exports_and_files_hold_the_model(tmp_path: Any) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = jr.boosting.fit(frame, Y, max_rules=4, prune=7).model
    check_files_and_exports(model, frame, tmp_path)


def test_a_rule_for_every_row_belongs_to_the_intercept() -> None:
    y, loss = X[:, 0] + 50.0, jr.losses.quantile(0.9, width=0.01)
    fit = jr.boosting.fit(X, y, loss=loss, max_rules=3)
    assert all(len(rule) for rule in fit.model.conjunctions)
    assert fit.objective < loss.value(y, np.quantile(y, 0.9)).mean()
