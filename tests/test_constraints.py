"""Constraints of rule ensembles: what they mean, that fits keep them, and that exact
searches prove under them.
"""

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone

import jaxrules as jr
from jaxrules.estimators import (
    DRNetClassifier,
    GLRMClassifier,
    LLTBoostClassifier,
    LTRNetClassifier,
    RuleBoostingClassifier,
    RuleFitClassifier,
)
from jaxrules.rules.conditions import propositions_of
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.linear import sparse_glm

COLUMNS = ("x0", "x1", "x2")


def problem(seed, rows=60, loss="squared", classes=2):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (rows, 3)).astype(float)
    score = X[:, 0] - 1.5 * (X[:, 1] == 1) + X[:, 2] * (X[:, 0] - 1) + rng.normal(0, 0.7, rows)
    if loss == "squared":
        return X, score
    return X, np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)


def grid(values=(-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0), columns=3):
    return np.array(list(itertools.product(values, repeat=columns)))


def steps(scores, column, size=7, columns=3):
    """By how much scores on the grid rise where a column does."""
    return np.diff(
        np.asarray(scores).reshape(*[size] * columns, *np.shape(scores)[1:]), axis=column
    )


def columns_of(rules):
    return [{condition.feature for condition in rule} for rule in rules]


# The vocabulary


def test_which_signs_a_weight_may_have():
    schema = jr.as_table(
        pd.DataFrame({"age": [1.0, 2.0], "job": ["a", "b"], "pay": [1.0, 2.0]})
    ).schema
    c = jr.Condition
    with_age, against_age = jr.Direction((0, 2), (1.0, 2.0)), jr.Direction((0, 2), (-1.0, 2.0))
    rules = jr.Conjunctions.build(
        schema,
        [
            [c.at_least(0, 3)],
            [c.below(0, 3)],
            [c.at_least(0, 3), c.below(0, 5)],
            [c.at_least(2, 3)],
            [c.at_least(with_age, 0.5)],
            [c.at_least(against_age, 0.5)],
            [c.is_missing(0, numeric=True)],
            [c.at_least(0, 1), c.at_least(against_age, 0.5)],
            [c.one_of(1, [0]), c.below(against_age, 0.5)],
            [],
        ],
    )
    none, down, up, both = [False, False], [True, False], [False, True], [True, True]
    rising = Constraints.of(schema, monotone={"age": 1})
    expected = [up, down, none, both, up, down, both, none, up, both]
    assert rising.signs(rules).tolist() == expected
    falling = Constraints.of(schema, monotone={"age": -1})
    assert falling.signs(rules).tolist() == [signs[::-1] for signs in expected]
    assert rising.signs(rules, output=2, n_outputs=3).tolist() == expected
    assert rising.signs(rules, output=0, n_outputs=3).tolist() == [
        signs[::-1] for signs in expected
    ]
    assert rising.signs(rules, output=1, n_outputs=3).tolist() == [
        both if s == both else none for s in expected
    ]


@pytest.mark.parametrize("direction", [0, 2, "1", None, True, np.array([1, -1]), [1], np.nan])
def test_a_direction_is_plus_or_minus_one(schema, direction):
    with pytest.raises(ValueError, match="monotone must be 1 .rising. or -1 .falling. for 'age'"):
        Constraints.of(schema, monotone={"age": direction})


# Boosting


def best_worth(fit_before, X, y, loss, sign_table, pool, **options):
    """The greatest worth of a conjunction, by brute force: (of all, by the propositions
    that it must use one of).
    """
    rows = pool.satisfied(jr.as_table(X)).astype(float)
    model, n = fit_before, len(y)
    weights = model.weights[:, 0]
    score = np.asarray(jr.decision_function(model, X))
    if loss == "squared":
        g, h = 2 * (score - y), np.full(n, 2.0)
    else:
        target = 2 * y - 1
        g, h = -target / (1 + np.exp(target * score)), 1 / (2 + np.exp(score) + np.exp(-score))
    found = model.conjunctions.satisfied(jr.as_table(X))[:, weights != 0]
    earlier = np.column_stack([np.ones(n), found]).astype(float)
    m = (earlier.T * h) @ earlier + np.diag([0.0] + [1.0] * found.shape[1])
    best = -np.inf
    must = options.get("must")
    for length in range(options["max_length"] + 1):
        for rule in map(list, itertools.combinations(range(len(pool)), length)):
            if must is not None and not must[rule].any():
                continue
            q, signs = rows[:, rule].all(axis=1), sign_table[rule].all(axis=0)
            if options["objective"] == "corrective_decrease" and any(
                (q == one).all() or (q != one).all() for one in found.T
            ):
                continue  # no second rule for the same rows
            total = g @ q
            if not signs[0 if total > 0 else 1]:
                continue
            c = (earlier.T * h) @ q
            curvature = 1.0 + h @ q
            if options["objective"] == "corrective_decrease":
                curvature -= c @ np.linalg.solve(m, c)
            best = max(best, total**2 / (2 * n * curvature) / (1 + length))
    return best


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    ("objective", "max_length"),
    [("second_order", 2), ("corrective_decrease", 2), ("corrective_decrease", 3)],
)
@pytest.mark.parametrize("seed", range(2))
def test_every_stage_is_the_best_that_the_constraints_leave(loss, objective, max_length, seed):
    X, y = problem(seed, loss=loss)
    options = {
        "max_rules": 4,
        "max_length": max_length,
        "loss": loss,
        "objective": objective,
        "l2_penalty": 1.0,
        "max_evaluations": None,
        "monotone": {"x0": 1, "x2": -1},
        "forbidden": ["x1"] if seed else [],
    }
    fits = jr.boosting.path(X, y, **options)
    pool, table = propositions_of(jr.as_table(X)), jr.as_table(X)
    constraints = Constraints.of(table.schema, options["forbidden"], (), options["monotone"])
    signs = constraints.signs(pool)
    constant = jr.with_weights(fits[0].model, 0 * fits[0].model.weights)
    target = y if loss == "squared" else 2 * y - 1
    start = (
        target.mean() if loss == "squared" else np.log((target > 0).mean() / (target < 0).mean())
    )
    assert len(fits) == 4
    before = constant.__class__(**{**vars(constant), "intercept": np.array([start])})
    for m, fit in enumerate(fits):
        stage = fit.details["stages"][m]
        expected = best_worth(
            before, X, y, loss, signs, pool, max_length=max_length, objective=objective
        )
        assert stage.objective == pytest.approx(expected, rel=1e-5)
        assert stage.objective * (1 - 1e-9) <= stage.bound <= stage.objective * (1 + 1e-9)
        assert stage.status is jr.Status.OPTIMAL
        before = fit.model
    kept = constraints.signs(fits[-1].model.conjunctions)
    weights = fits[-1].model.weights[:, 0]
    assert (kept[:, 0] | (weights >= 0)).all()
    assert (kept[:, 1] | (weights <= 0)).all()
    scores = jr.decision_function(fits[-1].model, grid())
    assert (steps(scores, 0) >= 0).all()
    assert (steps(scores, 2) <= 0).all()


@pytest.mark.parametrize(
    "objective", ["second_order", "corrective_decrease", "gradient_sum", "orthogonal"]
)
@pytest.mark.parametrize("search", ["optimal", "greedy", "beam"])
def test_all_searches_keep_the_constraints(objective, search):
    X, y = problem(3)
    noise = np.random.default_rng(0).integers(0, 2, (len(y), 2))
    wide = np.column_stack([X, noise])
    fit = jr.boosting.fit(
        wide,
        y,
        objective=objective,
        search=search,
        max_rules=4,
        max_length=3,
        monotone={0: 1, 2: 1},
        required=["x3", 4],
        forbidden=["x1"],
    )
    used = set.union(*columns_of(fit.model.conjunctions))
    assert used >= {3, 4}
    assert 1 not in used
    scores = jr.decision_function(fit.model, grid((0.0, 0.5, 1.0, 2.0), 5))
    assert (steps(scores, 0, 4, 5) >= 0).all()
    assert (steps(scores, 2, 4, 5) >= 0).all()


def test_the_published_search_keeps_them_too():
    X, y = problem(3)
    options = {"max_rules": 3, "forbidden": [0], "required": [1]}
    published = jr.boosting.published(X, y, **options)
    exact = jr.boosting.fit(X, y, **options, **jr.boosting.PAPER)
    found, best = (
        [stage.objective for stage in fit.details["stages"]] for fit in (published, exact)
    )
    assert found == pytest.approx(best)
    assert found == pytest.approx([stage.bound for stage in published.details["stages"]])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_required_column_gets_the_best_rule_that_uses_it(loss):
    X, y = problem(1, loss=loss)
    X = np.column_stack([X[:, :2], np.random.default_rng(5).integers(0, 3, len(y))])
    options = {
        "loss": loss,
        "max_rules": 2,
        "max_length": 2,
        "l2_penalty": 1.0,
        "max_evaluations": None,
        "monotone": {"x0": 1},
    }
    free = jr.boosting.path(X, y, **options)
    fits = [free[0], jr.boosting.fit(X, y, required=["x2"], **options)]
    pool = propositions_of(jr.as_table(X))
    constraints = Constraints.of(jr.as_table(X).schema, (), ["x2"], {"x0": 1})
    signs, must = constraints.signs(pool), constraints.using(pool)[0]
    stage = fits[1].details["stages"][1]
    assert columns_of(fits[0].model.conjunctions)[0] <= {0, 1}
    assert 2 in columns_of(fits[1].model.conjunctions)[1]
    expected = best_worth(
        fits[0].model,
        X,
        y,
        loss,
        signs,
        pool,
        max_length=2,
        objective="corrective_decrease",
        must=must,
    )
    assert stage.objective == pytest.approx(expected, rel=1e-5)
    assert stage.bound == pytest.approx(expected, rel=1e-5)
    assert free[1].details["stages"][1].objective >= stage.objective


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "squared", "l2_penalty": 1.0},
        {"loss": "squared"},
        {"loss": "logistic", "eliminate": True, "required": [3]},
        {"loss": "squared", "max_nonzeros": 2, "l2_penalty": 4.0},
        {"loss": "squared", "first": [[jr.Condition.above(3, 0.0)], [jr.Condition.above(0, 0.5)]]},
        {"loss": "logistic", "n_classes": 3},
        {"loss": "logistic", "n_classes": 3, "multiclass": "one_vs_rest", "monotone": {0: 1}},
    ],
)
def test_every_size_of_a_path_uses_the_required_columns_as_fit_does(options):
    X, y = problem(4, loss=options["loss"])
    X = np.column_stack([X, np.random.default_rng(0).integers(0, 3, (len(y), 2))])
    X = np.round(X + np.random.default_rng(1).normal(size=X.shape) / 8, 2)
    if n := options.pop("n_classes", None):
        y = (X[:, 0] + X[:, 2] > 1).astype(int) + (X[:, 1] > 0.5) * (n - 2)
    options = {"required": [3, 4], "max_cut_points": 5, "max_rules": 5} | options
    if "first" in options:
        options["first"] = jr.Conjunctions.build(jr.as_table(X).schema, options["first"])
    fits = jr.boosting.path(X, y, **options)
    sizes = [dict(fit.model.options)["max_rules"] for fit in fits]
    assert sizes[0] == len(options.get("first", ())) + len(
        set(options["required"]) - ({3} if "first" in options else set())
    )
    assert sizes == list(range(sizes[0], sizes[-1] + 1))
    for fit, size in zip(fits, sizes, strict=True):
        alone = jr.boosting.fit(X, y, **options | {"max_rules": size})
        assert list(fit.model.conjunctions) == list(alone.model.conjunctions)
        np.testing.assert_array_equal(fit.model.weights, alone.model.weights)
        assert fit.objective == alone.objective
        assert len(fit.history) == len(alone.history)
        assert set.union(*columns_of(fit.model.conjunctions)) >= set(options["required"])
    if "multiclass" not in options:
        options.pop("l2_penalty", None)
        chosen = jr.boosting.cross_validate(X, y, n_folds=2, l2_penalties=[1.0], **options)
        tried = [setting["max_rules"] for setting in chosen.details.cross_validation.settings]
        assert tried == list(range(sizes[0], 6))


def test_a_fit_of_few_rules_by_the_first_ridge_uses_the_required_columns():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = 3.0 * (X[:, 0] > 0) + (X[:, 1] > 0)  # without noise: the ridge of the first fit stays
    fit = jr.boosting.fit(X, y, max_rules=2, required=[2], max_cut_points=4)
    assert 2 in fit.model.conjunctions.feature


def test_an_experts_rules_stay():
    X, y = problem(2)
    table = jr.as_table(X)
    first = jr.Conjunctions.build(
        table.schema, [[jr.Condition.above(2, 0.5), jr.Condition.below(1, 1.5)], []]
    )
    fits = jr.boosting.path(X, y, first=first, max_rules=5, eliminate=True, monotone={1: -1})
    for m, fit in enumerate(fits, start=3):
        assert [fit.model.conjunctions.rule(r) for r in range(2)] == [
            first.rule(r) for r in range(2)
        ]
        assert len(fit.model.conjunctions) <= m
        assert dict(fit.model.options)["max_rules"] == m
    alone = jr.boosting.fit(
        X, y, first=first, max_rules=3, corrective=False, objective="second_order", l2_penalty=1.0
    )
    rows = first.satisfied(table).astype(float)
    best = np.linalg.lstsq(
        np.vstack([np.column_stack([rows, np.ones(len(y))]), np.eye(3)[:2] / np.sqrt(2)]),
        np.append(y, [0.0, 0.0]), rcond=None,
    )[0]  # fmt: skip
    np.testing.assert_allclose(
        alone.model.weights[:2, 0], best[:2], atol=1e-8
    )  # l2_penalty halves: 2 (y - f)^2 ...
    with pytest.raises(ValueError, match="first has the rule 'x2 > 0.5 & x1 < 1.5'"):
        jr.boosting.fit(X, y, first=first, forbidden=[1])
    with pytest.raises(ValueError, match="first has the rule"):
        jr.boosting.fit(X, y, first=first, monotone={1: 1, 2: 1})


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("seed", range(2))
def test_boosting_goes_on_from_a_fitted_ensemble(loss, seed):
    X, y = problem(seed, loss=loss)
    options = {"loss": loss, "max_evaluations": None, "max_length": 2, "l2_penalty": 1.0}
    part = jr.boosting.fit(X, y, max_rules=2, **options)
    more = jr.boosting.fit(X, y, max_rules=5, first=part.model.conjunctions, **options)
    assert more.objective == pytest.approx(
        jr.boosting.fit(X, y, max_rules=5, **options).objective, rel=1e-9
    )
    assert more.objective < part.objective
    with pytest.raises(
        TypeError, match="first must be Conjunctions, got RuleEnsemble; pass its conjunctions"
    ):
        jr.boosting.fit(X, y, first=part.model)


@pytest.mark.parametrize("rule", [[jr.Condition.above(0, 0.3)], [jr.Condition.below(0, 1.2)]])
def test_an_experts_rule_whose_sign_is_wrong_stays_with_weight_zero(rule):
    X, y = problem(2)
    y = y * (1 if rule[0].upper == np.inf else -1)
    first = jr.Conjunctions.build(jr.as_table(X).schema, [rule])
    sign = -1 if rule[0].upper == np.inf else 1
    fit = jr.boosting.fit(
        X, -sign * 0 + np.asarray(X[:, 0]) * (-sign), first=first, max_rules=3, monotone={0: sign}
    )
    assert fit.model.conjunctions.rule(0) == first.rule(0)
    assert (steps(jr.decision_function(fit.model, grid()), 0) * sign >= 0).all()


@pytest.mark.parametrize("rows", [90, 150])
def test_many_classes_are_monotone_from_the_first_to_the_last(rows):
    X, y = problem(4, rows, "logistic", classes=3)
    fit = jr.boosting.fit(X, y, max_rules=4, monotone={"x0": 1})
    scores = np.asarray(jr.decision_function(fit.model, grid()))
    rises = steps(scores, 0)
    assert (rises[..., 0] <= 0).all()
    assert (rises[..., 1] == 0).all()
    assert (rises[..., 2] >= 0).all()
    assert (steps(jr.predict(fit.model, grid()), 0) >= 0).all()


@settings(max_examples=15)
@given(
    st.integers(0, 10**6), st.sampled_from(["squared", "logistic"]), st.booleans(), st.booleans()
)
def test_boosted_scores_are_monotone(seed, loss, corrective, per_unit):
    rng = np.random.default_rng(seed)
    X, y = problem(seed % 97, 40, loss)
    directions = {
        int(c): int(rng.choice([-1, 1])) for c in rng.choice(3, rng.integers(1, 4), replace=False)
    }
    fit = jr.boosting.fit(
        X,
        y,
        loss=loss,
        corrective=corrective,
        per_unit=per_unit,
        max_rules=6,
        search="beam",
        monotone=directions,
        objective="corrective_decrease" if corrective else "second_order",
        l2_penalty=float(rng.choice([0.0, 1.0])),
        missing="own_category",
    )
    scores = jr.decision_function(fit.model, grid())
    for column, direction in directions.items():
        assert (direction * steps(scores, column) >= 0).all()


# Learners with a penalty


LEARNERS = {
    "lire": (jr.lire.fit, {"global_penalty": 0.01, "restarts": 2}),
    "lire, binary": (jr.lire.fit, {"global_penalty": 0.01, "restarts": 2, "encoding": "binary"}),
    "rulefit": (jr.rulefit.fit, {"l1_penalty": 0.01}),
    "rulefit, linear terms": (jr.rulefit.fit, {"l1_penalty": 0.01, "linear_terms": True}),
    "glrm": (jr.glrm.fit, {"rule_penalty": 0.01}),
    "glrm, proved": (jr.glrm.fit, {"rule_penalty": 0.01, "pricing": "exact", "max_length": 2}),
    "glrm, linear terms": (
        jr.glrm.fit,
        {"rule_penalty": 0.01, "linear_terms": True, "debias": True},
    ),
}


def few_rules(X, y, classification):
    forest = jr.default_forest(X, y, classification=classification, n_trees=8)
    return jr.extract_rules(forest, X)


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("name", LEARNERS)
def test_penalised_learners_keep_the_constraints(name, classes):
    fit, options = LEARNERS[name]
    X, y = problem(6, 120, "logistic" if classes else "squared", classes)
    X = np.column_stack([X, np.random.default_rng(1).integers(0, 3, len(y))])
    c = jr.Condition
    first = jr.Conjunctions.build(
        jr.as_table(X).schema, [[c.above(3, 1.5)], [c.above(0, 1.5), c.above(3, 0.5)]]
    )
    if fit is not jr.glrm.fit:
        options = {**options, "rules": few_rules(X, y, classes > 0)}
    result = fit(X, y, monotone={0: 1, "x2": -1}, forbidden=["x1"], first=first, **options)
    model = result.model
    assert [model.conjunctions.rule(r) for r in range(2)] == [first.rule(r) for r in range(2)]
    assert 1 not in set.union(*columns_of(model.conjunctions))
    assert model.linear is None or 1 not in model.linear.feature
    scores = np.asarray(jr.decision_function(model, grid((-1.0, 0.0, 0.5, 1.0, 2.0), 4)))
    rising, falling = steps(scores, 0, 5, 4), steps(scores, 2, 5, 4)
    if classes == 3:
        np.testing.assert_array_equal(rising[..., 1], 0.0)
        rising, falling = rising * [-1, 0, 1], falling * [-1, 0, 1]
    assert (rising >= -1e-12).all()  # linear terms are rounded
    assert (falling <= 1e-12).all()
    if result.bound is not None:
        assert result.objective - result.bound <= 1e-5 * result.objective


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_bound_of_a_sparse_model_is_one_within_the_signs(loss, seed):
    rng = np.random.default_rng(seed)
    n, k = 70, 12
    columns, signs, factors = (
        rng.random((n, k)) < 0.4,
        rng.random((k, 2)) < 0.6,
        rng.random(k) + 0.1,
    )
    y = (
        rng.normal(size=n) + columns[:, 0]
        if loss == "squared"
        else np.where(rng.random(n) < 0.5, 1.0, -1.0)
    )
    found = sparse_glm.solve(columns, y, 0.01, loss=loss, signs=signs, penalty_factors=factors)
    assert (signs[:, 0] | (found.coefficients >= 0)).all()
    assert (signs[:, 1] | (found.coefficients <= 0)).all()
    parts, prices = np.hstack([columns, -1.0 * columns]), 0.01 * np.tile(factors, 2)

    def objective(at):
        score = parts @ at[:-1] + at[-1]
        slope = 2 * (score - y) if loss == "squared" else -y / (1 + np.exp(y * score))
        value = (score - y) ** 2 if loss == "squared" else np.log1p(np.exp(-y * score))
        gradient = np.append(parts.T @ slope / n + prices, slope.mean())
        return value.mean() + prices @ at[:-1], gradient

    ends = [
        (0.0, None if allowed else 0.0) for allowed in np.concatenate([signs[:, 1], signs[:, 0]])
    ]
    best = minimize(
        objective,
        np.zeros(2 * k + 1),
        jac=True,
        bounds=[*ends, (None, None)],
        options={"ftol": 1e-14},
    )
    assert found.objective <= best.fun + 1e-9
    assert found.bound <= best.fun + 1e-9
    assert found.gap <= 1e-6 * found.objective


def test_cross_validation_and_paths_keep_them():
    X, y = problem(8, 100)
    options = {"monotone": {0: 1}, "rules": few_rules(X, y, False)}
    fits = [
        jr.rulefit.fit(X, y, n_folds=2, **options),
        *jr.rulefit.path(X, y, n_penalties=3, **options),
    ]
    first = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.above(2, 0.5)]])
    options = {"monotone": {0: 1}, "first": first, "n_folds": 2}
    fits.append(jr.boosting.cross_validate(X, y, max_rules=3, **options))
    assert fits[-1].model.conjunctions.rule(0) == first.rule(0)
    fits.append(jr.glrm.cross_validate(X, y, rule_penalties=[0.1], **options))
    for fit in fits:
        assert (steps(jr.decision_function(fit.model, grid()), 0) >= 0).all()
    with pytest.raises(ValueError, match="monotone needs an l1_penalty above 0"):
        jr.rulefit.fit(X, y, monotone={0: 1}, l1_penalty=0.0)


def best_support(every, X, y, loss, supports, monotone=None):
    """The least objective of LIRE over supports, at the prices 0.02 and 0.04 and a ridge of 1."""
    held, target = (
        every.satisfied(jr.as_table(X)).astype(float),
        y if loss == "squared" else 2 * y - 1,
    )
    signs, n = Constraints.of(every.schema, (), (), monotone).signs(every), len(y)

    def best(support):
        columns = np.column_stack([held[:, support], np.ones(n)])

        def objective(at):
            score = columns @ at
            value, slope = {
                "squared": lambda: ((score - target) ** 2, 2 * (score - target)),
                "logistic": lambda: (
                    np.log1p(np.exp(-target * score)),
                    -target / (1 + np.exp(target * score)),
                ),
                "exponential": lambda: (np.exp(-target * score), -target * np.exp(-target * score)),
            }[loss]()
            ridge = np.append(at[:-1], 0.0) / n
            return value.mean() + ridge @ at / 2, columns.T @ slope / n + ridge

        ends = [
            (None if negative else 0.0, None if positive else 0.0)
            for negative, positive in signs[support]
        ]
        found = minimize(
            objective, np.zeros(columns.shape[1]), jac=True, bounds=[*ends, (None, None)], tol=1e-10
        )
        return found.fun + 0.02 * len(support) + 0.04 * held[:, support].mean()

    return min(best(list(support)) for support in supports)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("loss", ["squared", "logistic", "exponential"])
def test_lire_finds_the_best_support_within_the_signs(loss, seed):
    X, y = problem(seed, 50, loss)
    X = np.column_stack([X, X[:, 0]])  # what x0 may say upwards alone, x3 says freely
    c, schema = jr.Condition, jr.as_table(X).schema
    conditions = [
        [c.above(0, 0.5)],
        [c.below(0, 1.5)],
        [c.above(3, 0.5)],
        [c.above(2, 0.5)],
        [c.below(2, 1.5)],
        [c.above(2, 1.5), c.above(1, 0.5)],
        [c.above(1, 0.5)],
        [c.below(1, 0.5), c.above(0, 0.5)],
    ]
    rules, first = (
        jr.Conjunctions.build(schema, conditions),
        jr.Conjunctions.build(schema, [[c.above(1, 1.5)]]),
    )
    prices = {"global_penalty": 0.02, "local_penalty": 0.04, "l2_penalty": 1.0}
    bound = {"monotone": {0: 1, 2: -1}, "first": first}
    fit = jr.lire.fit(X, y, loss=loss, rules=rules, **prices, **bound)
    every = jr.Conjunctions.concatenate([first, rules])
    supports = [
        (0, *others)
        for size in range(len(every))
        for others in itertools.combinations(range(1, 9), size)
    ]
    least = best_support(every, X, y, loss, supports, bound["monotone"])
    assert fit.objective == pytest.approx(least, rel=1e-5)
    assert fit.model.conjunctions.rule(0) == first.rule(0)
    weights, kept = (
        fit.model.weights[:, 0],
        Constraints.of(schema, (), (), bound["monotone"]).signs(fit.model.conjunctions),
    )
    assert (kept[:, 0] | (weights >= 0)).all()
    assert (kept[:, 1] | (weights <= 0)).all()
    assert jr.lire.objective(fit.model, X, y, **prices) == pytest.approx(fit.objective, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic", "exponential"])
def test_lire_finds_and_proves_the_best_support_that_uses_required_columns(loss):
    X, y = problem(3, 50, loss)
    y = y / 4 if loss == "squared" else y
    X = np.column_stack(
        [X, np.random.default_rng(2).integers(0, 3, (len(y), 2))]
    )  # noise: not worth a rule
    c, schema = jr.Condition, jr.as_table(X).schema
    conditions = [
        [c.above(0, 0.5)],
        [c.above(1, 0.5)],
        [c.above(2, 0.5)],
        [c.above(3, 0.5)],
        [c.below(3, 1.5), c.above(0, 0.5)],
        [c.above(4, 0.5)],
        [c.above(4, 1.5), c.above(1, 0.5)],
        [c.below(4, 1.5), c.below(3, 1.5)],
    ]
    rules = jr.Conjunctions.build(schema, conditions)
    supports = [s for size in range(1, 9) for s in itertools.combinations(range(8), size)]
    kept = [s for s in supports if {3, 4, 7} & set(s) and {5, 6, 7} & set(s)]
    least, free = (best_support(rules, X, y, loss, some) for some in (kept, supports))
    options = {
        "rules": rules,
        "global_penalty": 0.02,
        "local_penalty": 0.04,
        "l2_penalty": 1.0,
        "loss": loss,
    }
    fits = {
        search: jr.lire.fit(X, y, required=["x3", 4], search=search, **options)
        for search in ("combo", "optimal")
    }
    fits["binary"] = jr.lire.fit(X, y, required=["x3", 4], encoding="binary", restarts=0, **options)
    assert least > free + 0.005
    for fit in fits.values():
        assert {3, 4} <= set.union(*columns_of(fit.model.conjunctions))
        assert fit.objective == pytest.approx(least, rel=1e-5)
        prices = {name: options[name] for name in ("global_penalty", "local_penalty", "l2_penalty")}
        assert jr.lire.objective(fit.model, X, y, **prices) == pytest.approx(
            fit.objective, rel=1e-9
        )
    assert fits["optimal"].status is jr.Status.OPTIMAL
    assert fits["optimal"].bound <= least + 1e-9


@settings(max_examples=10)
@given(
    st.integers(0, 10**6), st.sampled_from(["squared", "logistic", "exponential"]), st.booleans()
)
def test_lire_uses_what_it_has_to(seed, loss, bound):
    rng = np.random.default_rng(seed)
    X, y = problem(seed % 97, 40, loss)
    X = np.column_stack([X, rng.integers(0, 3, (len(y), 2))])
    rules = few_rules(X, y, loss != "squared")
    monotone = {0: int(rng.choice([-1, 1]))} if bound else None
    left = Constraints.of(rules.schema, monotone=monotone).allows(rules, 2).any(axis=1)
    every = set.union(*columns_of(rules.take(np.flatnonzero(left))))
    required = rng.choice(
        sorted(every), min(len(every), int(rng.integers(1, 4))), replace=False
    ).tolist()
    options = {
        "loss": loss,
        "rules": rules,
        "restarts": 1,
        "global_penalty": 0.03,
        "max_rules": len(required),
    }
    fit = jr.lire.fit(X, y, required=required, monotone=monotone, **options)
    assert set(required) <= set.union(set(), *columns_of(fit.model.conjunctions))
    assert len(fit.model.conjunctions) <= len(required)
    prices = {"global_penalty": 0.03, "local_penalty": 0.06, "l2_penalty": 1.0}
    assert fit.objective >= jr.lire.objective(fit.model, X, y, **prices) - 1e-9
    if monotone:
        assert (
            monotone[0] * steps(jr.decision_function(fit.model, grid((0.0, 1.0, 2.0), 5)), 0, 3, 5)
            >= 0
        ).all()


def test_required_columns_of_lire_in_folds_paths_classes_and_little_time():
    X, y = problem(2, 150, "logistic", classes=3)
    X = np.column_stack([X, np.zeros(len(y))])
    X[::7, 3] = 1.0  # few trees split on it
    options = {"required": ["x3"], "global_penalty": 0.02}
    first = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.above(3, 0.5)]])
    fits = [
        jr.lire.fit(X, y, **options),
        jr.lire.fit(X, y, time_limit=1e-9, **options),
        *jr.lire.path(X, y, required=[3], global_penalties=[0.1, 0.02]),
        jr.lire.cross_validate(
            X, y > 0, required=[3], n_folds=2, global_penalties=[0.02], l2_penalties=[1.0]
        ),
        jr.lire.fit(X, y, first=first, max_rules=1, **options),
        jr.lire.fit(
            X, y > 0, start=jr.lire.fit(X, y > 0, global_penalty=0.02).model, restarts=0, **options
        ),
        jr.lire.fit(X, y, monotone={"x3": 1}, **options),  # the middle class may not look at it
    ]
    for fit in fits:
        assert 3 in set.union(*columns_of(fit.model.conjunctions))
    for arguments, words in (
        (
            {"rules": jr.Conjunctions.build(first.schema, [[jr.Condition.above(0, 0.5)]])},
            "no rule; add one to rules",
        ),
        (
            {"rules": jr.Conjunctions.build(first.schema, [[jr.Condition.above(3, 7.0)]])},
            "all hold for every row, or for none",
        ),
        (
            {"required": [0, 1], "max_rules": 1},
            "required names 2 columns that first does not use, but max_rules=1",
        ),
        ({"forbidden": [3]}, "required and forbidden both name"),
    ):
        with pytest.raises(ValueError, match=words):
            jr.lire.fit(X, y, **{**options, **arguments})


@settings(max_examples=10)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["squared", "logistic", "exponential"]),
    st.sampled_from([0.0, 1.0]),
)
def test_scores_of_lire_are_monotone(seed, loss, ridge):
    rng = np.random.default_rng(seed)
    X, y = problem(seed % 97, 40, loss)
    directions = {
        int(c): int(rng.choice([-1, 1])) for c in rng.choice(3, rng.integers(1, 4), replace=False)
    }
    fit = jr.lire.fit(
        X,
        y,
        loss=loss,
        rules=few_rules(X, y, loss != "squared"),
        monotone=directions,
        restarts=1,
        l2_penalty=ridge,
        global_penalty=0.005,
        max_rules=5,
    )
    assert len(fit.model.conjunctions) <= 5
    for column, direction in directions.items():
        assert (direction * steps(jr.decision_function(fit.model, grid()), column) >= 0).all()


# Rule sets from a network


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(2, 3), st.booleans(), st.sampled_from([0, 1, 200]))
def test_labels_of_drnet_are_monotone(seed, classes, missing, iterations):
    rng = np.random.default_rng(seed)
    X, y = problem(seed % 97, 60, "logistic", classes)
    if missing:
        X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    directions = {
        int(c): int(rng.choice([-1, 1])) for c in rng.choice(3, rng.integers(1, 4), replace=False)
    }
    fit = jr.drnet.fit(
        X, y, monotone=directions, missing="own_category", max_rules=3, restarts=2, seed=seed,
        iterations=max(iterations, 1), time_limit=None if iterations else 0.0,
    )  # fmt: skip
    labels = jr.predict(fit.model, grid())
    for column, direction in directions.items():
        assert (direction * steps(labels, column) >= 0).all()
    assert (
        Constraints.of(fit.model.schema, (), (), directions)
        .allows(fit.model.conjunctions, classes)
        .any(axis=1)
        .all()
    )


def test_drnet_learns_within_the_constraint():
    """A constraint that agrees with the target costs nothing; under one that does not, the rules
    use other columns.
    """
    X = np.random.default_rng(0).integers(0, 3, (200, 4)).astype(float)
    y = (X[:, 0] >= 1) & (X[:, 1] < 1.5)
    free, right, wrong = (
        jr.drnet.fit(X, y, monotone=monotone, iterations=1500, restarts=1)
        for monotone in (None, {0: 1, 1: -1}, {0: -1})
    )
    assert free.objective == right.objective == 0
    assert wrong.objective > 0
    assert 1 in set.union(*columns_of(wrong.model.conjunctions))


# Oblique rules


OBLIQUE = {"max_rules": 4, "max_length": 2, "max_nonzeros": 3}


@settings(max_examples=16)
@given(
    st.integers(0, 10**6),
    st.sampled_from(  # few programs
        [
            ("squared", True, False, False),
            ("logistic", False, False, True),
            ("exponential", True, True, True),
            ("poisson", True, False, False),
        ]
    ),
)
def test_scores_of_lltboost_are_monotone(seed, case):
    loss, refit, exact, missing = case
    rng = np.random.default_rng(seed)
    X, y = problem(
        seed % 97, 60, "logistic" if loss == "exponential" else loss.replace("poisson", "squared")
    )
    y = np.round(np.exp(y / 2)) if loss == "poisson" else y
    if missing:
        X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    directions = {
        int(c): int(rng.choice([-1, 1])) for c in rng.choice(3, rng.integers(1, 4), replace=False)
    }
    fit = jr.lltboost.fit(
        X,
        y,
        loss=loss,
        monotone=directions,
        missing="own_category",
        refit_propositions=refit,
        axis_parallel=exact,
        refine_thresholds=exact,
        l2_penalty=float(rng.choice([0.0, 1e-3])),
        **OBLIQUE,
    )
    scores = jr.decision_function(fit.model, grid())
    for column, direction in directions.items():
        assert (direction * steps(scores, column) >= 0).all()
    assert all(np.isfinite(stage.objective) for stage in fit.details["stages"])


def test_a_rule_of_lltboost_whose_sign_forbids_its_weight_is_left_out():
    """Where y falls, from 1 to 2, no rule may have its weight."""
    rng = np.random.default_rng(17)
    X = rng.integers(0, 4, (60, 2)).astype(float)
    y = X[:, 0] - 1.5 * (X[:, 0] == 2) + 0.3 * rng.normal(size=60) + rng.normal() * X[:, 1]
    options = {"max_rules": 4, "max_length": 1, "max_nonzeros": 1, "l2_penalty": 0.0}
    fit = jr.lltboost.fit(X, y, monotone={0: 1, 1: 1}, **options)
    assert len(fit.details.stages) > len(fit.model.conjunctions) > 0
    assert fit.model.weights.all()


@pytest.mark.parametrize("beam_width", [1, 3])
def test_lltboost_of_many_classes_is_monotone_and_keeps_first_rules(beam_width):
    X, y = problem(4, 60, "logistic", classes=3)
    X = np.column_stack([X, np.random.default_rng(1).integers(0, 3, len(y))])
    c = jr.Condition
    first = jr.Conjunctions.build(
        jr.as_table(X).schema, [[c.above(3, 1.5)], [c.above(0, 1.5), c.above(3, 0.5)]]
    )
    options = {"monotone": {"x0": 1, "x2": -1}, "first": first, "beam_width": beam_width, **OBLIQUE}
    for fit in (jr.lltboost.path(X, y, **options)[0], jr.lltboost.fit(X, y, **options)):
        assert [fit.model.conjunctions.rule(r) for r in range(2)] == [
            first.rule(r) for r in range(2)
        ]
        scores = np.asarray(jr.decision_function(fit.model, grid((-1.0, 0.5, 1.5, 3.0), 4)))
        for column, direction in ((0, 1), (2, -1)):
            rises = direction * steps(scores, column, 4, 4)
            assert (rises[..., 0] <= 0).all()
            assert (rises[..., 1] == 0).all()
            assert (rises[..., 2] >= 0).all()
    assert len(fit.model.conjunctions) > 2


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_direction_that_the_data_have_anyway_changes_no_rule_of_lltboost(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = 2 * (X[:, 0] + 0.5 * X[:, 1] > 0.3) - 1.5 * (X[:, 2] > 0) + 0.2 * rng.normal(size=60)
    y = y if loss == "squared" else y > 0.2
    options = {**OBLIQUE, "max_rules": 1}
    free, bound, wrong = (
        jr.lltboost.fit(X, y, monotone=monotone, **options)
        for monotone in (None, {0: 1, 1: 1, 2: -1}, {0: -1, 1: -1, 2: 1})
    )
    assert list(bound.model.conjunctions) == list(free.model.conjunctions)
    assert bound.objective == pytest.approx(free.objective, rel=1e-9)
    assert bound.details["stages"][0].risk == pytest.approx(
        free.details["stages"][0].risk, rel=1e-4
    )
    assert wrong.objective > free.objective  # what is left is noise
    assert (steps(jr.decision_function(wrong.model, grid()), 0) <= 0).all()


def test_held_out_risks_of_lltboost_are_those_within_the_signs():
    """Compared with a general solver: the rules of the model, with weights fitted on the rows that
    were not held out.
    """
    X, y = problem(5, 60)
    options = {"monotone": {0: 1, 1: 1, 2: -1}, "refit_on_all_rows": False, "l2_penalty": 1e-3}
    fit = jr.lltboost.fit(X, y, **options, **OBLIQUE)
    held, last = fit.details["validation_rows"], fit.details["stages"][-1]
    rows = np.column_stack([np.ones(len(y)), fit.model.conjunctions.satisfied(jr.as_table(X))])
    signs = Constraints.of(fit.model.schema, (), (), {0: 1, 1: 1, 2: -1}).signs(
        fit.model.conjunctions
    )
    assert len(signs) == len(fit.details["stages"]) > 1

    def objective(b):
        residual = (rows @ b - y)[~held]
        slope = 2 * rows[~held].T @ residual / len(residual) + 1e-3 * np.append(0, b[1:])
        return (residual**2).mean() + 1e-3 / 2 * b[1:] @ b[1:], slope

    ends = [(None, None), *((None if down else 0.0, None if up else 0.0) for down, up in signs)]
    best = minimize(
        objective,
        np.zeros(len(ends)),
        jac=True,
        bounds=ends,
        options={"ftol": 1e-14, "gtol": 1e-10},
    )
    assert fit.objective == pytest.approx(best.fun, rel=1e-8)
    assert last.risk == pytest.approx(((rows @ best.x - y)[held] ** 2).mean(), rel=1e-4)


def test_lltboost_goes_on_from_rules():
    X, y = problem(2)
    options = {"max_rules": 5, "max_nonzeros": 3}
    part = jr.lltboost.fit(X, y, max_nonzeros=3, max_rules=2)
    more = jr.lltboost.fit(X, y, first=part.model.conjunctions, **options)
    whole = jr.lltboost.fit(X, y, **options)
    assert list(more.model.conjunctions) == list(whole.model.conjunctions)
    assert more.objective == pytest.approx(whole.objective, rel=1e-9)
    assert len(more.details["stages"]) == len(more.model.conjunctions) - 2
    own = jr.Conjunctions.build(
        jr.as_table(X).schema, [[jr.Condition.above(2, 0.5), jr.Condition.below(1, 1.5)], []]
    )
    fits = jr.lltboost.path(X, y, first=own, monotone={1: -1}, **options)
    assert [len(fit.model.conjunctions) for fit in fits] == [3, 4, 5]
    assert [dict(fit.model.options)["max_rules"] for fit in fits] == [3, 4, 5]
    assert all(
        [fit.model.conjunctions.rule(r) for r in range(2)] == [own.rule(0), own.rule(1)]
        for fit in fits
    )
    with pytest.raises(ValueError, match="first has the rule 'x2 > 0.5 & x1 < 1.5'"):
        jr.lltboost.fit(X, y, first=own, monotone={1: 1, 2: 1})
    with pytest.raises(ValueError, match="first has 2 rules, but max_rules=2"):
        jr.lltboost.fit(X, y, first=own, max_rules=2)


def test_lltboost_keeps_the_signs_without_time_to_compile():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(70, 5))
    y = 3.0 * (X[:, 0] > 0) + 2.0 * (X[:, 1] > 0)
    reads = itertools.count()
    for monotone, column in (({0: -1}, 1), ({0: 1}, 0), (dict.fromkeys(range(5), -1), None)):
        limit = jr.Deadline(6.0, lambda reads=reads: float(next(reads)))
        fit = jr.lltboost.fit(X, y, monotone=monotone, max_nonzeros=4, time_limit=limit)
        used = set.union(set(), *columns_of(fit.model.conjunctions))
        assert fit.status is jr.Status.TIME_LIMIT
        assert not used or column is None or used == {column}
        for bound, direction in monotone.items():
            score = jr.decision_function(
                fit.model, np.eye(5)[[bound] * 9] * np.linspace(-3, 3, 9)[:, None]
            )
            assert (direction * np.diff(score) >= 0).all()


# Networks and fine-tuning


@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["squared", "logistic", "poisson"]),
    st.booleans(),
    st.booleans(),
)
def test_tuned_scores_are_monotone(seed, loss, oblique, guard):
    rng = np.random.default_rng(seed)
    X, y = problem(seed % 97, 60, loss.replace("poisson", "squared"))
    y = np.round(np.exp(y / 2)) if loss == "poisson" else y
    directions = {
        int(c): int(rng.choice([-1, 1])) for c in rng.choice(3, rng.integers(1, 4), replace=False)
    }
    if oblique:
        start = jr.lltboost.fit(X, y, loss=loss, monotone=directions, **OBLIQUE).model
    else:
        start = jr.boosting.fit(
            X, y, loss=loss, max_rules=4, max_length=2, monotone=directions
        ).model
    other = rng.permutation(y)  # what the start says is wrong of these
    fit = jr.finetune(
        start,
        X,
        other,
        monotone=directions,
        guard=guard,
        iterations=75,
        learning_rate=float(rng.choice([0.01, 1.0])),
        seed=seed,
    )
    assert fit.details["accepted"] or guard
    scores = jr.decision_function(fit.model, grid())
    assert np.isfinite(scores).all()
    for column, direction in directions.items():
        assert (direction * steps(scores, column) >= 0).all()


def test_tuning_turns_what_no_constraint_holds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    schema, c = jr.as_table(X).schema, jr.Condition
    rules = jr.Conjunctions.build(
        schema,
        [[c.at_least(jr.Direction((0, 1), (0.3, 1.0)), 0.2)], [c.above(0, 0.0)], [c.above(2, 0.0)]],
    )
    start = jr.RuleEnsemble(
        rules, np.array([[1.0], [0.1], [-0.1]]), np.zeros(1), None, "identity", (), "squared"
    )
    y = 2.0 * (X[:, 1] - 0.5 * X[:, 0] > 0.3) - (X[:, 0] > 0.1) + (X[:, 2] > 0)
    options = {"guard": False, "iterations": 400}
    free, bound = (
        jr.finetune(start, X, y, monotone=monotone, **options).model for monotone in (None, {0: 1})
    )
    rises = [steps(jr.decision_function(model, grid()), 0) for model in (free, bound)]
    assert rises[0].min() < 0 <= rises[1].min()
    assert (
        np.prod(bound.conjunctions.directions[0].weights)
        > 0
        > np.prod(free.conjunctions.directions[0].weights)
    )
    assert len(free.conjunctions) == 3
    assert columns_of(bound.conjunctions)[1:] == [{2}]  # x0 > 0 has lost its weight
    assert bound.weights[-1, 0] > 0.5
    with pytest.raises(
        ValueError,
        match=r"model has the rule '0.3 x0 \+ x1 >= 0.2' with weight 1, which monotone forbids",
    ):
        jr.finetune(start, X, y, monotone={2: -1, 0: -1, 1: 1})
    with pytest.raises(
        ValueError, match="model has the rule 'x0 > 0' with weight 0.1, which monotone forbids"
    ):
        jr.ltrnet.fit(X, y, init=jr.without_rules(start, [0]), monotone={0: -1})


@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.sampled_from([("squared", 0, True), ("logistic", 2, False), ("logistic", 3, True)]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_scores_of_ltrnet_are_monotone(seed, case, refit, prune, soft):
    rng = np.random.default_rng(seed)
    loss, classes, missing = case
    X, y = problem(seed % 97, 60, loss, classes)
    if missing:
        X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    directions = {
        int(c): int(rng.choice([-1, 1])) for c in rng.choice(3, rng.integers(1, 4), replace=False)
    }
    fit = jr.ltrnet.fit(
        X,
        y,
        loss=loss,
        monotone=directions,
        missing="own_category",
        max_rules=4,
        max_length=2,
        iterations=60,
        restarts=2,
        learning_rate=0.1,
        refit=refit,
        prune=prune,
        l2_penalty=float(rng.choice([0.0, 1e-3])),
        training="soft" if soft else "straight_through",
        seed=seed,
        time_limit=None,
    )
    scores, network = (
        np.asarray(jr.decision_function(fit.model, grid())),
        np.asarray(fit.details["soft_model"](grid())),
    )
    for column, direction in directions.items():
        rises, soft_rises = (direction * steps(one, column) for one in (scores, network))
        if classes == 3:
            assert (rises[..., 1] == 0).all()
            rises, soft_rises = rises * [-1, 0, 1], soft_rises * [-1, 0, 1]
        assert (rises >= 0).all()
        assert (soft_rises >= -1e-5).all()  # of float32


def test_ltrnet_learns_within_the_directions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = 2.0 * (X[:, 0] + 0.5 * X[:, 1] > 0.3) - 1.5 * (X[:, 2] > 0)
    options = {"max_rules": 2, "max_length": 2, "restarts": 4}
    free, right, wrong = (
        jr.ltrnet.path(X, y, monotone=monotone, l1_penalties=[1e-4, 1e-3], **options)[1].objective
        for monotone in (None, {0: 1, 1: 1, 2: -1}, {0: -1, 1: -1, 2: 1})
    )
    assert right <= 1.5 * free
    assert wrong > 5 * free
    clock = itertools.count()
    limit = jr.Deadline(4.0, lambda: float(next(clock)))
    early = jr.ltrnet.fit(X, y, monotone={0: -1, 1: -1, 2: -1}, time_limit=limit, **options)
    assert columns_of(early.model.conjunctions) == [{2}]


@pytest.mark.parametrize("learner", ["boosting", "ltrnet"])
def test_tuned_models_of_many_classes_stay_monotone(learner):
    X, y = problem(4, 60, "logistic", classes=3)
    monotone = {"x0": 1, "x2": -1}
    if learner == "boosting":
        start = jr.boosting.fit(X, y, max_rules=3, monotone=monotone).model
    else:
        start = jr.ltrnet.fit(
            X, y, max_rules=6, max_length=2, iterations=50, restarts=2, monotone=monotone
        ).model
    other = np.random.default_rng(0).permutation(y)
    fit = jr.finetune(
        start, X, other, monotone=monotone, guard=False, iterations=75, learning_rate=0.3
    )
    scores = np.asarray(jr.decision_function(fit.model, grid()))
    for column, direction in ((0, 1), (2, -1)):
        rises = direction * steps(scores, column)
        assert (rises[..., 0] <= 0).all()
        assert (rises[..., 1] == 0).all()
        assert (rises[..., 2] >= 0).all()


def test_linear_terms_of_a_start_have_to_be_monotone():
    X, y = problem(6, 120)
    start = jr.rulefit.fit(
        X, y, l1_penalty=0.01, linear_terms=True, rules=few_rules(X, y, False), monotone={0: 1}
    ).model
    assert (start.linear.coefficients[start.linear.feature == 0] > 0).all()
    assert jr.finetune(start, X, y, monotone={0: 1}, iterations=25).model.linear is start.linear
    only_linear = jr.without_rules(start, range(len(start.conjunctions)))
    with pytest.raises(
        ValueError,
        match="model has a linear term of 'x0' with coefficient .*, which monotone forbids",
    ):
        jr.finetune(only_linear, X, y, monotone={0: -1})


def test_lire_proves_under_an_experts_rules():
    X, y = problem(1, loss="logistic")
    first = jr.Conjunctions.build(
        jr.as_table(X).schema, [[jr.Condition.above(2, 1.5)], [jr.Condition.above(1, 0.5)]]
    )
    rules = few_rules(X, y, True).take(range(12))
    fit = jr.lire.fit(X, y, rules=rules, first=first, search="optimal", global_penalty=0.02)
    free = jr.lire.fit(
        X,
        y,
        rules=jr.Conjunctions.concatenate([first, rules]),
        search="optimal",
        global_penalty=0.02,
    )
    assert fit.status is free.status is jr.Status.OPTIMAL
    assert [fit.model.conjunctions.rule(r) for r in range(2)] == [first.rule(r) for r in range(2)]
    assert fit.objective >= free.objective - 1e-9
    path = jr.lire.path(
        X, y, rules=rules, first=first, monotone={2: 1}, global_penalties=[0.1, 0.01]
    )
    path += (
        jr.lire.cross_validate(
            X, y, rules=rules, first=first, monotone={2: 1}, n_folds=2, l2_penalties=[1.0]
        ),
    )
    for one in path:
        assert [one.model.conjunctions.rule(r) for r in range(2)] == [
            first.rule(r) for r in range(2)
        ]
        assert (steps(jr.decision_function(one.model, grid()), 2) >= 0).all()
    for arguments, words in (
        ({"monotone": {2: 1}, "search": "optimal"}, "monotone needs search"),
        ({"first": first, "max_rules": 1}, "first has 2 rules, but max_rules=1"),
        ({"start": free.model, "first": "x > 1"}, "first must be"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=words):
            jr.lire.fit(X, y, rules=rules, **arguments)


def test_lire_leaves_forbidden_columns_out():
    X, y = problem(1, loss="logistic")
    fit = jr.lire.fit(X, y, forbidden=["x0"], rules="forest", restarts=0)
    assert 0 not in set.union(set(), *columns_of(fit.model.conjunctions))
    free = jr.lire.fit(X, y, rules=few_rules(X, y, True), restarts=0, l2_penalty=1.0)
    with pytest.raises(ValueError, match="start has the rule .* no admissible weight"):
        jr.lire.fit(X, y, forbidden=[0], start=free.model)


LEFT_OUT = {
    "lltboost": (jr.lltboost.fit, {"max_rules": 2, "max_length": 2, "max_nonzeros": 2}),
    "ltrnet": (  # small rules, which other batches change, have weight under a large ridge
        jr.ltrnet.fit,
        {"max_rules": 3, "max_length": 2, "iterations": 20, "restarts": 2, "l2_penalty": 1e-3},
    ),
    "drnet": (jr.drnet.fit, {"max_rules": 3, "iterations": 80, "restarts": 1}),
    "regression_list": (
        lambda X, y, **o: jr.regression_list.fit(X, y > 0, literal_penalty=0.01, **o),
        {},
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_forbidden_column_is_as_good_as_constant(name):
    fit, options = LEFT_OUT[name]
    X, y = problem(5, 80, "logistic")
    frame = pd.DataFrame(
        {"x0": X[:, 0], "job": np.array(["a", "b", "c"])[X[:, 1].astype(int)], "x2": X[:, 2]}
    )
    for column in frame:
        model = fit(frame, y, forbidden=[column], **options).model
        constant = fit(frame.assign(**{column: frame[column].iloc[0]}), y, **options).model
        assert Constraints.of(model.schema, [column]).allows(model.conjunctions, 2).all()
        assert len(model.conjunctions) > 0
        np.testing.assert_array_equal(jr.predict(model, frame), jr.predict(constant, frame))
    with pytest.raises(ValueError, match="forbidden names 'x9'"):
        fit(frame, y, forbidden=["x9"], **options)
    if name == "ltrnet":
        start = jr.boosting.fit(frame, y, max_rules=2, forbidden=["x0", "x2"]).model
        with pytest.raises(ValueError, match="init uses a forbidden column"):
            fit(frame, y, init=start, forbidden=["job"])


def test_models_are_saved_with_their_constraints(tmp_path):
    X, y = problem(1)
    model = jr.boosting.fit(
        X, y, max_rules=3, monotone={"x0": 1}, forbidden=["x1"], required=["x2"]
    ).model
    jr.save(model, tmp_path / "model.json")
    loaded = jr.load(tmp_path / "model.json")
    np.testing.assert_array_equal(
        jr.decision_function(loaded, grid()), jr.decision_function(model, grid())
    )
    assert dict(loaded.options)["forbidden"] == ("x1",)


def test_estimators_take_them():
    X, y = problem(1, loss="logistic")
    rules = few_rules(X, y, True)
    for estimator in (
        RuleBoostingClassifier(),
        RuleFitClassifier(l1_penalty=0.01, rules=rules),
        GLRMClassifier(),
    ):
        classifier = estimator.set_params(monotone={0: 1}, forbidden=[1]).fit(X, y)
        assert (steps(classifier.predict_proba(grid())[:, 1], 0) >= 0).all()
    few = {"max_rules": 3, "monotone": {0: -1, 2: 1}}
    for classifier in (
        LLTBoostClassifier(max_nonzeros=3, max_length=2, **few),
        LTRNetClassifier(max_length=2, iterations=60, restarts=2, **few),
        DRNetClassifier(iterations=80, **few),
    ):
        assert (steps(clone(classifier).fit(X, y).predict(grid()), 0) <= 0).all()
        assert (steps(classifier.fit(X, y).predict(grid()), 2) >= 0).all()


FITS = {
    name: getattr(jr, name).fit
    for name in (
        "boosting",
        "glrm",
        "rulefit",
        "lire",
        "lltboost",
        "ltrnet",
        "drnet",
        "ssrl",
        "exact_list",
        "paths",
        "regression_list",
    )
}


@pytest.mark.parametrize("constraint", ["monotone", "required", "first"])
def test_who_cannot_keep_a_constraint_names_those_who_can(constraint):
    keeps = {name for name, fit in FITS.items() if constraint in inspect.signature(fit).parameters}
    for name in FITS.keys() - keeps:
        with pytest.raises(
            TypeError, match=rf"fit cannot enforce {constraint}; .* can .docs"
        ) as refused:
            FITS[name](np.eye(4), [0, 1, 0, 1], **{constraint: None})
        named = str(refused.value).partition("; ")[2].partition(" can ")[0]
        assert set(named.replace(" and ", ", ").split(", ")) == keeps
    with pytest.raises(TypeError, match="unexpected keyword argument 'requires'"):
        jr.lire.fit(np.eye(4), [0, 1, 0, 1], requires=[0])


def test_columns_that_can_be_read_once_are_refused():
    """A generator would constrain only the first fold."""
    X, y = problem(0)
    for learner in (jr.boosting.cross_validate, jr.lire.fit, jr.ssrl.fit, jr.paths.fit):
        with pytest.raises(
            TypeError, match="forbidden must be a list of column names or positions, got generator"
        ):
            learner(
                X, y > 0 if learner is jr.ssrl.fit else y, forbidden=(column for column in ["x1"])
            )
    fit = jr.boosting.fit(X, y, max_rules=2, forbidden={"x2", "x1"}, required={"x0": 1}.keys())
    assert (dict(fit.model.options)["forbidden"], dict(fit.model.options)["required"]) == (
        ("x1", "x2"),
        ("x0",),
    )


@pytest.mark.parametrize("loss", ["squared", "logistic", "exponential"])
def test_an_experts_rule_of_weight_zero_has_no_price(loss):
    X, y = problem(3, loss=loss)
    c = jr.Condition
    first = jr.Conjunctions.build(jr.as_table(X).schema, [[c.above(0, 1.5)], [c.above(2, 0.5)]])
    prices = {"global_penalty": 0.02, "local_penalty": 0.04, "l2_penalty": 0.25}
    bound = {"loss": loss, "monotone": {0: -1}, "rules": first.take([])}
    fit = jr.lire.fit(X, y, first=first, **bound, **prices)
    assert fit.model.weights[0, 0] == 0
    assert fit.objective == pytest.approx(
        jr.lire.fit(X, y, first=first.take([1]), **bound, **prices).objective
    )
    assert fit.objective == pytest.approx(jr.lire.objective(fit.model, X, y, **prices), rel=1e-9)


def test_what_cannot_be_kept_is_refused():
    X, y = problem(0)
    X = np.column_stack([X, np.ones(len(y))])
    for arguments, words in (
        ({"forbidden": [0, 1, 2, 3]}, "forbidden names every column"),
        ({"required": ["x3"]}, "required names 'x3'"),
        ({"required": [0], "forbidden": [0]}, "required and forbidden both name"),
        ({"required": [0, 1], "max_rules": 1}, "required names 2 columns that first does not use"),
    ):
        with pytest.raises(ValueError, match=words):
            jr.boosting.fit(X, y, **arguments)
    frame = pd.DataFrame({"a": [0.0, 1.0] * 5, "b": ["u", "v"] * 5})
    with pytest.raises(ValueError, match="monotone names the categorical column 'b'"):
        jr.boosting.fit(frame, np.arange(10.0), monotone={"b": 1})


def test_an_experts_rule_that_holds_for_all_rows_or_for_none_is_named() -> None:
    X = {"age": [20.0, 30.0, 40.0, 50.0] * 5}
    schema = jr.as_table(X).schema
    for threshold, held in ((2.0, "every row"), (500.0, "no row")):
        rules = jr.Conjunctions.build(schema, [[jr.Condition.above(0, threshold)]])
        with pytest.warns(UserWarning, match=f"holds for {held} of X; check its units"):
            jr.boosting.fit(X, [0, 0, 1, 1] * 5, first=rules, max_rules=2)
