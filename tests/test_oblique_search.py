"""The search for rules with conditions on linear combinations of columns, and the lasso's paths,
against brute force and scikit-learn.
"""

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import lars_path

import jaxrules as jr
from claims import check_elsewhere
from jaxrules.ensembles.boosting.combinations import Combinations
from jaxrules.ensembles.boosting.directions import (
    PRICE,
    ObliqueProposition,
    ObliqueSpace,
    ObliqueStage,
    best_rule,
    improved,
)
from jaxrules.ensembles.boosting.ensemble import BoostedEnsemble
from jaxrules.losses import loss_by_name
from jaxrules.rules.conditions import propositions_of
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.linear.lars import lasso_subsets
from jaxrules.solvers.rule_search import CorrectiveDecrease
from jaxrules.solvers.rule_search.space import never

fit = partial(jr.boosting.fit, max_nonzeros=3)


def table(seed: int = 0, n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": 100 + 20 * rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "c": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )


def target(X: pd.DataFrame, seed: int = 0) -> np.ndarray:
    score = 2 * X.a + (X.b - 100) / 15 - 1.5 * (X.colour == "red") + X.c.fillna(0)
    return np.asarray(score + 0.3 * np.random.default_rng(seed).normal(size=len(X)))


# The paths of the lasso


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), n_columns=st.integers(1, 9))
@example(seed=26, n_columns=3)  # a column enters at a penalty of 7.9e-8
@example(seed=204, n_columns=6)  # a column leaves with 1.4e-17, beside 7.6
def test_supports_are_those_of_scikit_learn(seed: int, n_columns: int) -> None:
    rng = np.random.default_rng(seed)
    columns, weights = rng.normal(size=(n_columns, 60)), rng.random((3, 60))
    columns[-1] += columns[0]
    response = rng.normal(size=(3, 60)) + columns[0]
    found = lasso_subsets(columns, weights, weights * response, largest=4, steps=7)
    for subsets, w, t in zip(found, weights, response, strict=True):
        roots = np.sqrt(w)
        design = (columns - (columns @ w / w.sum())[:, None]) * roots
        t = (t - t @ w / w.sum()) * roots
        lengths = np.linalg.norm(design, axis=1)
        prices, _, path = lars_path((design / lengths[:, None]).T, t, method="lasso", max_iter=7)
        left = 1e-15 * np.abs(path).max()  # scikit-learn's rounding of what left
        knots = [tuple(np.flatnonzero(np.abs(one) > left).tolist()) for one in path.T]
        expected = list(dict.fromkeys(one for one in knots if 0 < len(one) <= 4))
        supports = [tuple(one.columns.tolist()) for one in subsets]
        common = min(len(supports), len(expected))
        assert supports[:common] == expected[:common]
        assert len(supports) >= min(len(expected), 4)
        # scikit-learn leaves out what enters at a penalty of nearly 0.
        assert len(supports) <= len(expected) or prices[-1] < 1e-6
        for one in subsets:
            np.testing.assert_allclose(one.gram, design[one.columns] @ design[one.columns].T)
            np.testing.assert_allclose(one.slope, design[one.columns] @ t, atol=1e-9)


def test_dependent_and_constant_columns_stay_out_and_signs_are_kept() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 50))
    columns = np.stack([x[0], -x[0], np.ones(50), x[1], np.zeros(50)])
    weights = np.ones((2, 50))
    weights[1] = 0  # no rows at all
    moments = weights * (x[0] + x[1])
    some, none = lasso_subsets(columns, weights, moments, largest=4, steps=6)
    assert [one.columns.tolist() for one in some] in ([[0], [0, 3]], [[3], [0, 3]])
    assert none == []
    sides = np.array([-1, -1, 0, 1, 0])
    signed, _ = lasso_subsets(columns, weights, moments, largest=4, steps=6, sides=sides)
    assert set().union(*(one.columns.tolist() for one in signed)) == {1, 3}


# One direction and one condition, against brute force


def stage(
    seed: int, monotone: dict[str, int] | None = None, n_cuts: int | None = None, n: int = 60
) -> tuple[ObliqueSpace, CorrectiveDecrease, np.ndarray, np.ndarray]:
    X = jr.as_table(table(seed, n), missing="own_category")
    rng = np.random.default_rng(seed)
    g, h = rng.normal(size=n), 0.1 + rng.random(n)
    found = np.column_stack([np.ones(n, bool), rng.random(n) < 0.4])
    objective = CorrectiveDecrease(g, h, 1.0, found, np.array([0.0, 1.0]), per_unit=True, **PRICE)
    constraints = Constraints.of(X.schema, monotone=monotone)
    return ObliqueSpace(X, np.ones(n), constraints, 3, n_cuts, 0), objective, g, h


def gain(objective: CorrectiveDecrease, rows: np.ndarray) -> float:
    """By linear algebra on whole matrices."""
    q, h = objective.found.astype(float), objective.curvature
    c = (q.T * h) @ rows
    inverse = np.linalg.inv((q.T * h) @ q + np.diag(objective.penalties))
    total = float(objective.gradient @ rows)
    return total**2 / float(objective.ridge + h @ rows - c @ inverse @ c)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), size=st.integers(2, 3), falls=st.booleans())
def test_the_best_cut_of_a_direction_is_the_best_of_all(seed: int, size: int, falls: bool) -> None:
    space, objective, g, h = stage(seed, {"a": -1} if falls else None)
    rng = np.random.default_rng(seed)
    w = np.where(rng.permutation(len(space.values)) < size, rng.normal(size=len(space.values)), 0)
    found = best_rule(space, objective, g, h, [w / np.linalg.norm(w)], 1, never)
    assert found is not None
    (one,) = found.propositions
    rows = space.holds(one)
    units = 2 + np.count_nonzero(one.w)
    assert found.worth == pytest.approx(gain(objective, rows) / units ** PRICE["power"])
    best, values = 0.0, w @ space.values
    lost = space.missing[w != 0].any(axis=0) if len(space.missing) else np.zeros(len(g), bool)
    for cut, missing, above in itertools.product(np.unique(values[~lost])[1:], (0, 1), (1, -1)):
        rows = np.where(lost, missing, values >= cut if above > 0 else values < cut)
        along = above * w[0] * (-1 if falls else 0)  # a must fall: weight and -w_a have one sign
        if along * -np.sign(g @ rows) >= 0:
            best = max(best, gain(objective, rows) / (2 + np.count_nonzero(w)) ** PRICE["power"])
    assert found.worth >= best * (1 - 1e-5)
    if falls:
        assert one.w[0] * np.sign(g @ space.holds(one)) >= 0


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 3))
def test_an_improved_condition_is_better_and_uses_the_same_columns(seed: int, size: int) -> None:
    space, objective, g, h = stage(seed, n_cuts=10)
    rng = np.random.default_rng(seed)
    w = np.where(rng.permutation(len(space.values)) < size, rng.normal(size=len(space.values)), 0)
    before, others = ObliqueProposition(w, 0.1, False), rng.random(len(g)) < 0.8
    after = improved(ObliqueStage(space, objective, g, h, never), before, others, np.ones(2, bool))
    if after is not None:
        assert ((after.w != 0) == (w != 0)).all()
        values = [gain(objective, space.holds(one) & others) for one in (before, after)]
        assert values[1] > values[0]


def test_a_condition_that_cannot_be_improved_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[int, int]] = []  # rules at the time, and the proposition
    plain = Combinations._improved

    def counted(self: Any, state: Any, r: int, k: int, stage: Any) -> Any:
        tried.append((len(state.rules), state.rules[r][k]))
        return plain(self, state, r, k, stage)

    monkeypatch.setattr(Combinations, "_improved", counted)
    monkeypatch.setattr("jaxrules.ensembles.boosting.combinations.improved", lambda *_: None)
    monkeypatch.setattr("jaxrules.ensembles.boosting.combinations._ALL_TRIED", 0)
    X = np.random.default_rng(0).normal(size=(200, 4))
    y = (X[:, 0] + X[:, 1] > 0) + 0.5 * X[:, 2]
    jr.boosting.fit(X, y, max_rules=8, max_nonzeros=2, l2_penalty=1.0)
    sweeps = [size for size, place in tried if place == tried[0][1]]
    assert sweeps == [1, 3, 7]  # it rests for one sweep, then for three


def test_cuts_lie_between_distinct_values() -> None:
    space, *_ = stage(0, n_cuts=5)
    values = np.array(
        [[0.0, 0, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1, 1, 1], [3, 1, 2, 7, 6, 5, 4, 8]]
    )
    cuts = space.cuts(values, np.zeros((0, 8), bool), 5)
    assert cuts[0].tolist() == [0.5] + [np.inf] * 4
    assert np.isinf(cuts[1]).all()
    assert set(cuts[2]) <= {k + 0.5 for k in range(1, 8)}
    assert space.cuts(values[2:], np.zeros((0, 8), bool), None)[0].tolist() == [
        k + 0.5 for k in range(1, 8)
    ]


# Fits


def test_one_nonzero_is_the_default() -> None:
    X = table()
    y = target(X)
    one, default = (
        jr.boosting.fit(X, y, max_rules=4, missing="own_category", **given)
        for given in ({"max_nonzeros": 1}, {})
    )
    assert list(one.model.conjunctions) == list(default.model.conjunctions)
    assert one.details.stages[0].bound == one.details.stages[0].axis_parallel_bound


def test_a_linear_boundary_takes_one_readable_rule() -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = np.where(2 * X[:, 0] - X[:, 1] > 0.5, 3.0, -1.0)
    found = fit(X, y, max_rules=1, l2_penalty=0.0)
    (rule,) = found.model.conjunctions
    (condition,) = rule
    ratio = condition.feature.weights[1] / condition.feature.weights[0]
    assert condition.feature.features == (0, 1)
    assert ratio == pytest.approx(-0.5, abs=0.07)
    assert np.mean(jr.predict(found.model, X) == y) > 0.95
    assert len(found.model.conjunctions.describe(0)) < 30


def test_only_single_columns_are_proved() -> None:
    X = table(n=60)[["a", "b"]]
    y = target(table(n=60))
    found = fit(X, y, max_rules=2, max_length=2, max_cut_points=4, l2_penalty=1.0)
    first = found.details.stages[0]
    assert found.bound is first.bound is first.gap is None
    assert all(stage.status != "optimal" for stage in found.details.stages)
    data = jr.as_table(X)
    masks = propositions_of(data, max_cut_points=4).satisfied(data)
    g = 2 * (y.mean() - y)
    objective = CorrectiveDecrease(
        g / np.sqrt(120), np.full(60, 2.0), 1.0, np.ones((60, 1), bool), np.zeros(1)
    )
    best = max(
        gain(objective, masks[:, i] & masks[:, j]) / (3 if i == j else 5) ** 1.25
        for i, j in itertools.combinations_with_replacement(range(masks.shape[1]), 2)
        if 0 < (masks[:, i] & masks[:, j]).sum() < 60
    )
    assert first.axis_parallel_bound == pytest.approx(best)
    assert first.objective >= best * (1 - 1e-9)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 1000),
    loss=st.sampled_from(["squared", "logistic", "exponential", "poisson"]),
    length=st.sampled_from([1, 2, 3, None]),
    cuts=st.sampled_from(["auto", None, 3]),
)
def test_risk_and_rows_are_those_of_the_model(seed: int, loss: str, length: Any, cuts: Any) -> None:
    X = table(seed)
    score, weights = target(X, seed), np.random.default_rng(seed).random(len(X))
    y = {"squared": score, "poisson": np.round(np.exp(score / 3))}.get(loss, score > 0)
    options = {"loss": loss, "max_length": length, "max_cut_points": cuts, "l2_penalty": 2.0}
    fits = jr.boosting.path(
        X, y, weights, max_nonzeros=3, max_rules=4, missing="own_category", **options
    )
    one, coded = loss_by_name(loss), np.where(y, 1.0, -1.0) if y.dtype == bool else y
    risks = [found.objective for found in fits]
    assert risks == sorted(risks, reverse=True)
    last = fits[-1].model
    assert (last.conjunctions.directions.nonzeros <= 3).all()
    ridge = float(np.sum(np.square(last.weights))) / weights.sum()
    scores = np.asarray(jr.decision_function(last, X)).ravel()
    assert fits[-1].objective == pytest.approx(
        float(np.average(one.value(coded, scores), weights=weights)) + ridge
    )
    again = fit(X, y, weights, max_rules=4, missing="own_category", **options)
    assert list(again.model.conjunctions) == list(last.conjunctions)


@settings(max_examples=8)
@given(seed=st.integers(0, 1000))
def test_constraints_hold(seed: int) -> None:
    X = table(seed)
    y = -target(X, seed)
    first = jr.Conjunctions.build(
        jr.as_table(X, missing="own_category").schema, [[jr.Condition.above(0, 1.0)]]
    )
    found = fit(
        X, y, max_rules=5, missing="own_category", monotone={"a": -1, "b": 1}, forbidden=["c"],
        required=["colour"], first=first,
    )  # fmt: skip
    rules = found.model.conjunctions
    assert rules.rule(0) == first.rule(0)
    schema = rules.schema
    names = " ".join(rules.describe(r) for r in range(len(rules)))
    assert "colour" in names
    assert not any(
        3 in ((c.feature,) if isinstance(c.feature, int) else c.feature.features)
        for rule in rules
        for c in rule
    ), schema
    grid = pd.concat([X.iloc[:20].assign(a=a, b=0.0) for a in np.linspace(-3, 3, 25)])
    steps = np.diff(jr.predict(found.model, grid).reshape(25, 20), axis=0)
    assert (steps <= 0).all()
    grid = pd.concat([X.iloc[:20].assign(b=b) for b in np.linspace(0, 200, 25)])
    assert (np.diff(jr.predict(found.model, grid).reshape(25, 20), axis=0) >= 0).all()


def test_several_classes_have_directions_of_their_own() -> None:
    X = table()
    y = np.digitize(target(X), [-1, 1])
    found = fit(X, y, max_rules=2, missing="own_category", monotone={"a": 1})
    assert dict(found.model.options)["multiclass"] == "one_vs_rest"
    assert len(found.model.conjunctions.directions) > 0
    assert np.mean(jr.predict(found.model, X) == y) > 0.6


@pytest.mark.parametrize(
    "options",
    [
        {"corrective": False, "objective": "second_order", "intercept": False},
        {"objective": "gradient_sum", "per_unit": False},
        {"objective": "orthogonal", "max_length": 2, "per_unit": False},
        {"search": "greedy", "objective_tolerance": 0.3},
        {"eliminate": True},
    ],
)
def test_other_settings_find_directions(options: dict[str, Any]) -> None:
    X = table()
    found = fit(X, target(X), max_rules=4, missing="own_category", **options)
    assert len(found.model.conjunctions.directions) > 0
    assert np.mean((jr.predict(found.model, X) - target(X)) ** 2) < 0.6 * np.var(target(X))


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_a_swept_condition_starts_with_its_own_rows(seed: int) -> None:
    X = jr.as_table(table(seed), missing="own_category")
    space = ObliqueSpace(X, np.ones(X.n_rows), Constraints(), 2, None, 0)
    C, known = jr.Condition, X.columns[3][~np.isnan(X.columns[3])]
    for column, end in itertools.product((0, 1, 3), range(1, 11)):
        value = float(np.sort(known if column == 3 else X.columns[column])[8 * end])
        for make in (C.at_most, C.above, C.at_least, C.below):  # the threshold is itself a value
            condition = make(column, value, seed % 2 == 0)
            one = space.proposition(condition)
            assert one is not None
            held = jr.Conjunctions.build(X.schema, [[condition]]).satisfied(X)[:, 0]
            np.testing.assert_array_equal(space.holds(one), held)
    assert space.proposition(C.above(0, 99.0)) is space.proposition(C.one_of(2, [0])) is None


def test_a_sweep_sees_weights_as_repeated_rows() -> None:
    r = np.random.default_rng(185)
    n = int(r.integers(15, 60))
    X = r.normal(size=(n, 2))
    w = r.integers(1, 4, n)
    y = X @ [2, 1] + r.normal(size=n)
    options = {"max_rules": 2, "max_nonzeros": 2, "l2_penalty": 2.0, "max_cut_points": None}
    weighted = fit(X, y, sample_weight=w, **options)
    repeated = fit(np.repeat(X, w, axis=0), np.repeat(y, w), **options)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)
    np.testing.assert_allclose(
        jr.predict(weighted.model, X), jr.predict(repeated.model, X), rtol=1e-6
    )


def test_a_rule_has_as_many_units_as_the_model_has_nonzeros(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    units, seen = BoostedEnsemble.units, []

    def heard(self: BoostedEnsemble, rule: tuple[int, ...]) -> int:
        rules = self.candidates.pool.conjunctions([rule])
        model = jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1))
        seen.append((jr.complexity(model, "nonzeros"), units(self, rule)))
        return seen[-1][1]

    monkeypatch.setattr(BoostedEnsemble, "units", heard)
    X = table()
    fit(X, target(X), max_rules=4, max_length=2, missing="own_category", eliminate=True)
    assert all(one == other for one, other in seen)
    assert len(set(seen)) > 1


def test_choice_by_cross_validation_and_estimators() -> None:
    X = table()[["a", "b"]]
    y = target(table())
    chosen = jr.boosting.cross_validate(X, y, max_rules=3, max_nonzeros=2, n_folds=2)
    assert dict(chosen.model.options)["max_nonzeros"] == 2
    from jaxrules.estimators import RuleBoostingRegressor

    estimator = RuleBoostingRegressor(max_rules=3, max_nonzeros=2).fit(X, y)
    assert estimator.score(X, y) > 0.5


def test_time_limits_and_a_single_column() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 6))
    y = X[:, 0] + X[:, 1] > 0
    quick = fit(X, y, time_limit=1e-3)
    assert quick.status == "time_limit"
    few = fit(X, y, max_rules=1)  # cuts are screened on a sample of the rows
    assert np.mean(jr.predict(few.model, X) == y) > 0.97
    one = fit(X[:200, :1], y[:200], max_rules=2)
    assert len(one.model.conjunctions.directions) == 0


def test_saved_and_exported_models_say_the_same(tmp_path: Path) -> None:
    X = table()
    found = fit(X, target(X) > 0, max_rules=4, missing="own_category")
    check_elsewhere(found.model, X, tmp_path)


def test_bad_input() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="max_nonzeros must be"):
        fit(X, X[:, 0], max_nonzeros=0)
    with pytest.raises(ValueError, match="max_nonzeros above 1 cannot be combined with propos"):
        fit(X, X[:, 0], propositions=propositions_of(jr.as_table(X)))
