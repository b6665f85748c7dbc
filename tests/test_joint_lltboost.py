"""LLTBoost for several classes as one problem: two classes are the binary problem, the compiled
refit against the host's, weights against their optimality condition, constraints, exports, limits.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from test_joint import rows_of
from test_joint_oblique import NAMES, slanted

import jaxrules as jr
from jaxrules.ensembles.lltboost import ensemble
from jaxrules.ensembles.lltboost.softmax import refitted
from jaxrules.ensembles.lltboost.stages import boosted
from jaxrules.ensembles.lltboost.task import LLTBoostTask
from jaxrules.losses import softmax
from jaxrules.solvers.linear.refit import refit_softmax
from jaxrules.tools.fits import Status
from jaxrules.tools.float64 import x64_kernel

X, Y = slanted(150)
CODES = np.searchsorted(NAMES, Y)
FEW: dict[str, Any] = {"max_rules": 3, "max_length": 2, "max_nonzeros": 2}


def test_two_classes_are_the_binary_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    # two outputs for two classes: no model that users can make
    monkeypatch.setattr(jr.RuleEnsemble, "__post_init__", lambda self: None)
    y = X[:, 0] + np.maximum(X[:, 1], 0) + np.random.default_rng(0).normal(size=len(X)) / 2 > 0.3
    given = jr.lltboost.Options(**FEW)
    task = LLTBoostTask.of(X, y, None, given)
    both = np.column_stack([-task.data.target, task.data.target])
    as_one = dataclasses.replace(task, joint=True)
    joint = boosted(dataclasses.replace(task.data, target=both), as_one, given.run()).fits()[-1]
    binary = jr.lltboost.fit(X, y, **FEW)
    assert joint.objective == pytest.approx(binary.objective, rel=1e-6)
    assert joint.details.l2_penalty == binary.details.l2_penalty
    halves = np.abs(binary.model.weights / 2)  # a rule and its complement tie
    np.testing.assert_allclose(np.abs(joint.model.weights), np.hstack([halves] * 2), atol=1e-4)
    scores = joint.model.intercept + rows_of(joint.model, X) @ joint.model.weights
    half = np.asarray(jr.decision_function(binary.model, X)) / 2
    np.testing.assert_allclose(scores, np.column_stack([-half, half]), atol=1e-4)
    for ours, theirs in zip(joint.details.stages, binary.details.stages, strict=True):
        assert ours.objective == pytest.approx(np.sqrt(2) * theirs.objective, rel=1e-5)
        assert ours.risk == pytest.approx(theirs.risk, rel=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_compiled_refit_is_that_of_the_host(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    design = np.vstack([np.ones(200), rng.random((4, 200)) < 0.4]).astype(float)
    noise = rng.integers(0, n_classes, 200)
    codes = np.where(rng.random(200) < 0.5, design[1], noise)
    target = np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)
    weights = rng.random(200)
    weights[:20] = 0.0
    weights /= weights.sum()
    penalties = np.array([0.0] + [0.01] * 4)

    @x64_kernel()
    def compiled(*arrays: Any) -> tuple[Any, Any]:
        found = refitted(*arrays, tolerance=1e-12, max_steps=500)
        return found, softmax.gradient(arrays[1].T, (found @ arrays[0]).T).T

    ours, slopes = compiled(design, target, weights, penalties, np.zeros((n_classes, 5)))
    theirs, constants = refit_softmax(
        target.T, design[1:].T > 0, l2_penalty=0.01, sample_weight=weights,
        start=(np.zeros((4, n_classes)), np.zeros(n_classes)),
    )  # fmt: skip
    ours = ours - np.where(np.arange(5) == 0, np.mean(ours, axis=0), 0)
    np.testing.assert_allclose(ours[:, 1:], theirs.T, atol=1e-4)
    np.testing.assert_allclose(ours[:, 0], constants - constants.mean(), atol=1e-4)
    gradient = np.array(slopes) * weights @ design.T + ours * penalties
    assert np.abs(gradient).max() < 1e-5
    by_difference = [
        (softmax.value(target.T, scores) - softmax.value(target.T, -scores)) / 2e-6
        for scores in 1e-6 * np.eye(n_classes)[:, None, :] * np.ones((1, 200, 1))
    ]
    at_zero = softmax.gradient(jnp.asarray(target.T), jnp.zeros_like(target.T)).T
    np.testing.assert_allclose(at_zero, by_difference, atol=1e-5)


@pytest.mark.parametrize("refit_on_all_rows", [False, True])
def test_weights_are_optimal(refit_on_all_rows: bool) -> None:
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    fit = jr.lltboost.fit(X, Y, weight, l2_penalty=0.01, refit_on_all_rows=refit_on_all_rows, **FEW)
    model, rows = fit.model, rows_of(fit.model, X)
    assert model.link == "softmax"
    assert dict(model.options)["multiclass"] == "joint"
    if not refit_on_all_rows:
        weight = weight * ~fit.details.validation_rows
    share = weight / weight.sum()
    p = np.asarray(jr.predict_proba(model, X))
    rest = share[:, None] * (p - np.eye(3)[CODES])
    np.testing.assert_allclose(rest.sum(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(rows.T @ rest + 0.02 * model.weights, 0, atol=1e-5)
    assert abs(model.intercept.sum()) < 1e-9
    log_loss = -share @ np.log(p[np.arange(len(X)), CODES])
    ridge = 0.01 * float((model.weights**2).sum())
    assert fit.objective == pytest.approx(log_loss + ridge, rel=1e-7)
    if refit_on_all_rows:
        again = jr.refit(model, X, Y, sample_weight=weight)
        np.testing.assert_allclose(again.weights, model.weights, atol=1e-3)


def test_stages_and_paths() -> None:
    path = jr.lltboost.path(X, Y, **FEW)
    assert [len(fit.model.conjunctions) for fit in path] == [1, 2, 3]
    fit = jr.lltboost.fit(X, Y, **FEW)
    assert list(fit.model.conjunctions) == list(path[-1].model.conjunctions)
    assert np.mean(jr.predict(fit.model, X) == Y) > 0.95
    training = ~fit.details.validation_rows
    for m, stage in enumerate(fit.details.stages):
        # before the stage: the weights of the training part, whose ridge is 1e-3
        earlier, rule = rows_of(fit.model, X)[:, :m], rows_of(fit.model, X)[:, m]
        weights, constants = refit_softmax(
            np.where(CODES[:, None] == np.arange(3), 1.0, -1.0), earlier, l2_penalty=2e-3,
            sample_weight=training / training.sum(), start=(np.zeros((m, 3)), np.zeros(3)),
        )  # fmt: skip
        p = np.exp(constants + earlier @ weights)
        g = (p / p.sum(axis=1, keepdims=True) - np.eye(3)[CODES])[training].T @ rule[training]
        assert stage.objective == pytest.approx(np.linalg.norm(g) / training.sum(), rel=1e-4)
        assert stage.of_class in NAMES
        assert np.sign(g[list(NAMES).index(stage.of_class)]) == stage.sign


def test_constraints_weights_and_missing_values() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(kind=np.where(X[:, 2] > 0, "p", "q"))
    frame.loc[::9, "a"] = np.nan
    first = jr.Conjunctions.build(
        jr.as_table(frame, missing="own_category").schema, [[jr.Condition.above(1, 0.0)]]
    )
    given: dict[str, Any] = {**FEW, "missing": "own_category", "forbidden": ["c"]}
    fit = jr.lltboost.fit(frame, Y, first=first, **given)
    rules = fit.model.conjunctions
    assert rules.rule(0) == first.rule(0)
    assert len(rules) <= 3
    columns = [
        (c.feature,) if isinstance(c.feature, int) else c.feature.features
        for rule in rules
        for c in rule
    ]
    assert not any(2 in one for one in columns)
    twice = jr.lltboost.fit(frame, Y, np.full(len(Y), 2.0), first=first, **given)
    assert list(twice.model.conjunctions) == list(rules)


def test_cross_validation_and_estimators() -> None:
    found = jr.lltboost.cross_validate(X, Y, n_folds=2, **FEW)
    assert found.model.link == "softmax"
    assert found.details.cross_validation.risks.shape == (2, 3)
    from jaxrules.estimators import LLTBoostClassifier

    model = LLTBoostClassifier(**FEW, multiclass="joint").fit(X, Y)
    assert model.score(X, Y) > 0.9


def test_exports_and_files_hold_the_model(tmp_path: Path) -> None:
    model = jr.lltboost.fit(X, Y, **FEW).model
    labels, p = np.asarray(jr.predict(model, X)), np.asarray(jr.predict_proba(model, X))
    jr.save(model, tmp_path / "model.json")
    loaded = jr.load(tmp_path / "model.json")
    np.testing.assert_array_equal(jr.predict_proba(loaded, X), p)
    assert str(loaded) == str(model)
    assert "ash" in str(model)
    assert jr.explain(model, X[:1])[0].prediction == labels[0]
    code: dict[str, Any] = {}
    exec(jr.to_python(model), code)
    rows = [dict(zip(model.schema.names, row, strict=True)) for row in X.tolist()]
    assert [code["predict"](row) for row in rows] == labels.tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"monotone": {0: 1}}, "monotone"),
        ({"loss": "exponential"}, 'loss="exponential"'),
    ],
)
def test_what_cannot_be_joint(given: dict[str, Any], message: str) -> None:
    y = np.unique(Y, return_inverse=True)[1]  # numbers have an order, which monotone needs
    with pytest.raises(ValueError, match=message + ' cannot .*set multiclass="one_vs_rest"'):
        jr.lltboost.fit(X, y, multiclass="joint", **FEW, **given)
    fit = jr.lltboost.fit(X, y, max_rules=1, time_limit=1e-3, **given)  # compiles nothing
    assert fit.model.link != "softmax"
    assert dict(fit.model.options)["multiclass"] == "one_vs_rest"


def test_bad_arguments_and_time_limits() -> None:
    with pytest.raises(ValueError, match='multiclass must be None, "joint" or "one_vs_rest"'):
        jr.lltboost.fit(X, Y, multiclass="ovr")
    quick = jr.lltboost.fit(X, Y, multiclass="joint", time_limit=0)
    assert quick.status is Status.TIME_LIMIT
    assert quick.model.link == "softmax"
    perfect = jr.lltboost.fit(X, np.where(Y == "ash", "ash", "birch"), multiclass="joint", **FEW)
    assert perfect.model.link != "softmax"  # two classes are one output


def test_the_limit_is_noticed_between_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[int] = []
    kernel = ensemble._propose_in_time

    def counted(*args: Any, **static: Any) -> Any:
        answered.append(1)
        return kernel(*args, **static)

    monkeypatch.setattr(ensemble, "_propose_in_time", counted)
    limit = jr.Deadline(1, clock=lambda: 2.0 * len(answered))
    fit = jr.lltboost.fit(X, Y, multiclass="joint", time_limit=limit, **FEW)
    assert len(answered) == 1
    assert (fit.status, len(fit.model.conjunctions)) == (Status.TIME_LIMIT, 1)
