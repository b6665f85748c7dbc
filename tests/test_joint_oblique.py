"""Rules with conditions on combinations of columns, and linear terms, for classes fitted together:
two classes are the binary problem, gains against linear algebra, risks, pruning, exports, limits.
"""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import softmax
from test_joint import rows_of
from test_linear_terms import columns
from test_oblique_search import table, target

import jaxrules as jr
from jaxrules.ensembles import boosting
from jaxrules.ensembles.boosting.directions import PRICE, ObliqueSpace, best_rule
from jaxrules.ensembles.boosting.ensemble import BoostedEnsemble
from jaxrules.ensembles.boosting.fitting import task_of
from jaxrules.ensembles.boosting.objective import objective_of
from jaxrules.ensembles.boosting.search import joint_rule
from jaxrules.ensembles.boosting.stages import boosted
from jaxrules.rules.conditions import Direction
from jaxrules.solvers.rule_search.space import never
from jaxrules.tools.fits import Status

fit = partial(jr.boosting.fit, max_nonzeros=3, missing="own_category")
NAMES = np.array(["ash", "birch", "cedar"])
X = table()
Y = NAMES[np.digitize(target(X), [-1, 1])]


def slanted(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes between parallel lines."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, NAMES[np.digitize(2 * X[:, 0] - X[:, 1], [-1, 1])]


@pytest.mark.parametrize("linear_terms", [False, True])
def test_two_classes_are_the_binary_problem(
    linear_terms: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # two outputs for two classes: no model that users can make
    monkeypatch.setattr(jr.RuleEnsemble, "__post_init__", lambda self: None)
    X, y = slanted(150)
    given: dict[str, Any] = {
        "max_rules": 3, "max_nonzeros": 3, "l2_penalty": 1.0, "linear_terms": linear_terms
    }  # fmt: skip
    options = boosting.Options(**given)
    task = task_of(X, y == "cedar", None, options)
    both = np.column_stack([-task.data.target, task.data.target])
    as_one = dataclasses.replace(task, joint=True, find=joint_rule)
    data = dataclasses.replace(task.data, target=both)
    joint = boosted(data, as_one, options.run(), [options.most_rules]).fits()[-1]
    binary = jr.boosting.fit(X, y == "cedar", **given)
    assert len(binary.model.conjunctions.directions) > 0 or linear_terms
    assert list(joint.model.conjunctions) == list(binary.model.conjunctions)
    np.testing.assert_allclose(joint.details.risks, binary.details.risks, rtol=1e-6)
    scores = joint.model.intercept + rows_of(joint.model, X) @ joint.model.weights
    if linear_terms:
        scores += joint.model.linear.values(jr.as_table(X)) @ joint.model.linear.coefficients
    half = np.asarray(jr.decision_function(binary.model, X)) / 2
    np.testing.assert_allclose(scores, np.column_stack([-half, half]), atol=1e-4)


def joint_state(seed: int, n: int = 60) -> tuple[BoostedEnsemble, Any]:
    """Classes fitted together, with one rule and one linear term."""
    X = table(seed, n)
    y = NAMES[np.random.default_rng(seed).integers(0, 3, n)]
    options = boosting.Options(
        l2_penalty=1.0, max_nonzeros=3, linear_terms=True, missing="own_category"
    )
    task = task_of(X, y, None, options)
    columns = boosting.stages.LinearColumns.of(task.data, 0.025, task.constraints, 3)
    state = BoostedEnsemble(task.data, task.candidates, options, columns)
    state.add((0,), task.candidates.selected([0]))
    state.add_term(boosting.stages.LinearColumnTerm(0, 1.0))
    return state, task


def gain(state: BoostedEnsemble, q: np.ndarray) -> float:
    """The decrease of the risk by a column, by linear algebra on whole matrices."""
    n, ridge = len(q), 2.0
    assert state.columns is not None
    p = softmax(state.scores, axis=1)
    z = np.column_stack([np.ones(n), *state.extents, state.columns.values[:, state.terms]])
    total = 0.0
    for k in range(3):
        g, h = p[:, k] - (state.y[:, k] > 0), 1.5 * p[:, k] * (1 - p[:, k])
        m = (z.T * h) @ z + np.diag([0.0, ridge, ridge])
        c = z.T @ (h * q)
        total += (g @ q) ** 2 / (ridge + h @ q**2 - c @ np.linalg.solve(m, c))
    return total / (2 * n)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), size=st.integers(2, 3))
def test_the_best_cut_of_a_direction_is_the_best_of_all(seed: int, size: int) -> None:
    state, task = joint_state(seed)
    space = ObliqueSpace(task.data.table, task.data.weights, task.constraints, 3, None, 0)
    rng, d = np.random.default_rng(seed), len(space.values)
    w = np.where(rng.permutation(d) < size, rng.normal(size=d), 0)
    objective = objective_of(state, task.options)
    found = best_rule(space, objective, *state.derivatives(), [w / np.linalg.norm(w)], 1, never)
    assert found is not None
    (one,) = found.propositions
    units = 2 + np.count_nonzero(one.w)
    own = gain(state, 1.0 * space.holds(one)) / units ** PRICE["power"]
    assert found.worth == pytest.approx(own, rel=1e-6)
    values, lost = w @ space.values, space.missing[w != 0].any(axis=0)
    best = max(
        gain(state, 1.0 * np.where(lost, missing, (values >= cut) == above))
        for cut, missing, above in itertools.product(
            np.unique(values[~lost])[1:], (False, True), (False, True)
        )
    )
    assert found.worth >= best / (2 + np.count_nonzero(w)) ** PRICE["power"] * (1 - 1e-5)


@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_the_best_linear_term_is_the_best_of_all(seed: int) -> None:
    state, task = joint_state(seed)
    assert state.columns is not None
    best = state.columns.best(objective_of(state, task.options), state.terms)
    gains = [gain(state, column) for column in state.columns.values.T[1:]]
    assert best is not None
    assert best.place == 1 + int(np.argmax(gains))
    assert best.worth == pytest.approx(max(gains) / boosting.linear_terms.UNITS, rel=1e-6)


@settings(max_examples=6)
@given(
    seed=st.integers(0, 1000),
    length=st.sampled_from([1, 2, None]),
    linear_terms=st.booleans(),
)
def test_risk_and_weights_are_those_of_the_model(
    seed: int, length: Any, linear_terms: bool
) -> None:
    X = table(seed)
    y, weight = np.digitize(target(X, seed), [-1, 1]), np.random.default_rng(seed).random(len(X))
    given: dict[str, Any] = {
        "max_length": length, "l2_penalty": 2.0, "linear_terms": linear_terms,
        "missing": "own_category", "max_nonzeros": 3, "max_cut_points": 4,
    }  # fmt: skip
    fits = jr.boosting.path(X, y, weight, max_rules=4, multiclass="joint", **given)
    risks = [found.objective for found in fits]
    assert risks == sorted(risks, reverse=True)
    for found in fits:
        model, n = found.model, weight.sum()
        assert model.link == "softmax"
        assert (model.conjunctions.directions.nonzeros <= 3).all()
        p = np.asarray(jr.predict_proba(model, X))
        squares = float((model.weights**2).sum())
        if model.linear is not None:  # in units of .4 standard deviations
            on = [(0, 1, None, 2)[f] for f in model.linear.feature]
            units = columns(X, weight)[1][on]
            squares += float(((model.linear.coefficients * units[:, None]) ** 2).sum())
        risk = -weight @ np.log(p[np.arange(len(y)), y]) / n + 2.0 * squares / n
        assert found.objective == pytest.approx(risk, rel=1e-6)
        rest = weight[:, None] * (p - np.eye(3)[y])
        rows = model.conjunctions.satisfied(jr.as_table(X, missing="own_category")).astype(float)
        np.testing.assert_allclose(rows.T @ rest + 4.0 * model.weights, 0, atol=1e-4 * n)
    last = jr.boosting.fit(X, y, weight, max_rules=4, **given)
    assert list(last.model.conjunctions) == list(fits[-1].model.conjunctions)
    if not linear_terms:
        again = jr.refit(fits[-1].model, X, y, sample_weight=weight)
        np.testing.assert_allclose(again.weights, fits[-1].model.weights, atol=1e-3)


def test_slanted_classes_take_two_readable_rules() -> None:
    X, y = slanted()
    found = jr.boosting.fit(X, y, max_rules=2, max_nonzeros=2, max_length=1, l2_penalty=0.1)
    assert dict(found.model.options)["multiclass"] == "joint"
    for rule in found.model.conjunctions:
        (condition,) = rule
        assert isinstance(condition.feature, Direction)
        assert condition.feature.features == (0, 1)
    assert np.mean(jr.predict(found.model, X) == y) > 0.95
    last = found.details.stages[-1]
    assert found.bound is None
    assert last.axis_parallel_bound > 0
    assert last.status == "optimal"  # all half-planes of the two columns were tried
    assert last.bound == pytest.approx(last.objective)
    longer = jr.boosting.fit(X, y, max_rules=1, max_nonzeros=2, max_length=2, l2_penalty=0.1)
    (stage,) = longer.details.stages
    assert longer.bound is stage.bound is stage.gap is None
    assert stage.status != "optimal"
    apart = jr.boosting.fit(
        X, y, max_rules=2, max_nonzeros=2, max_length=1, multiclass="one_vs_rest"
    )
    assert apart.model.link != "softmax"


def test_linear_terms_have_a_coefficient_per_class() -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    scores = np.column_stack([2 * X[:, 0], -X[:, 0] + X[:, 1], np.zeros(300)])
    y = scores.argmax(axis=1)
    found = jr.boosting.fit(X, y, max_rules=2, linear_terms=True, winsorise=0.0)
    assert [stage.linear_term for stage in found.details.stages] == ["x0", "x1"]
    assert len(found.details.stages[0].weight) == 3
    assert len(found.model.conjunctions) == 0
    assert found.model.linear.coefficients.shape == (2, 3)
    assert np.mean(jr.predict(found.model, X) == y) > 0.9


def test_constraints_hold_and_monotone_is_refused() -> None:
    schema = jr.as_table(X, missing="own_category").schema
    first = jr.Conjunctions.build(schema, [[jr.Condition.above(0, 1.0)]])
    found = fit(X, Y, max_rules=5, forbidden=["c"], required=["colour"], first=first)
    rules = found.model.conjunctions
    assert found.model.link == "softmax"
    assert rules.rule(0) == first.rule(0)
    columns = [
        (c.feature,) if isinstance(c.feature, int) else c.feature.features
        for rule in rules
        for c in rule
    ]
    assert not any(3 in one for one in columns)
    assert any(2 in one for one in columns)
    with pytest.raises(ValueError, match="monotone cannot be combined with"):
        fit(X, np.digitize(target(X), [-1, 1]), monotone={"a": 1}, multiclass="joint")


@pytest.mark.parametrize("linear_terms", [False, True])
def test_pruned_weights(linear_terms: bool) -> None:
    given: dict[str, Any] = {"max_rules": 4, "l2_penalty": 1.0, "linear_terms": linear_terms}
    whole = fit(X, Y, **given).model
    path = jr.boosting.path(X, Y, prune=6, max_nonzeros=3, missing="own_category", **given)
    codes, n = np.searchsorted(NAMES, Y), len(Y)
    for found in path:
        model, cost = found.model, found.details.pruning
        p = np.asarray(jr.predict_proba(model, X))
        assert cost.log_loss[1] == pytest.approx(-np.log(p[np.arange(n), codes]).mean())
        assert cost.error[1] == pytest.approx((jr.predict(model, X) != Y).mean())
    kept = np.count_nonzero(model.weights)
    if model.linear is not None:
        kept += np.count_nonzero(model.linear.coefficients)
    assert linear_terms == (model.linear is not None)
    assert cost.kept == kept == 6
    before = np.asarray(jr.predict_proba(whole, X))
    assert cost.log_loss[0] == pytest.approx(-np.log(before[np.arange(n), codes]).mean())
    assert list(model.conjunctions) == list(whole.conjunctions)


def test_printing_explanations_exports_and_files(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    model = fit(X, Y, max_rules=4, linear_terms=True, l2_penalty=1.0).model
    assert len(model.conjunctions.directions) > 0
    assert model.linear is not None
    text = str(model)
    assert "ash" in text
    assert all(model.conjunctions.describe(r) in text for r in range(len(model.conjunctions)))
    labels, p = np.asarray(jr.predict(model, X)), np.asarray(jr.predict_proba(model, X))
    assert jr.explain(model, X[:3])[0].prediction == labels[0]
    jr.save(model, tmp_path / "model.json")
    loaded = jr.load(tmp_path / "model.json")
    np.testing.assert_array_equal(jr.predict_proba(loaded, X), p)
    assert str(loaded) == text
    frame = X  # named in the query
    asked = [jr.to_sql(model, "probability", label=name) for name in NAMES]
    found = duckdb.sql(f"SELECT {', '.join(asked)} FROM frame").fetchall()
    np.testing.assert_allclose(found, p, rtol=1e-9)
    code: dict[str, Any] = {}
    exec(jr.to_python(model), code)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    assert [code["predict"](row) for row in rows] == labels.tolist()


def test_cross_validation_estimators_and_sizes() -> None:
    X, y = slanted(60)
    found = jr.boosting.cross_validate(
        X, y, max_rules=2, max_nonzeros=2, linear_terms=True, n_folds=2, multiclass="joint"
    )
    assert found.model.link == "softmax"
    assert dict(found.model.options)["max_nonzeros"] == 2
    from jaxrules.estimators import RuleBoostingClassifier

    model = RuleBoostingClassifier(max_rules=3, max_nonzeros=2).fit(X, y)
    assert model.score(X, y) > 0.8
    chosen = jr.boosting.fit(X, y, max_rules=None, linear_terms=True, max_length=1)
    assert "max_rules=" in chosen.details.chosen


def test_time_limits() -> None:
    X, y = slanted(12_000)
    quick = jr.boosting.fit(X, y, max_nonzeros=3, linear_terms=True, time_limit=1e-3)
    assert quick.status is Status.TIME_LIMIT
    assert quick.model.link == "softmax"
    few = jr.boosting.fit(X, y, max_nonzeros=2, max_rules=2, l2_penalty=1.0)
    assert np.mean(jr.predict(few.model, X) == y) > 0.95
