"""Extracted rules against the trees' own routing, on thresholds that float32 rounding would break."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import jaxrules as jr
from jaxrules.ensembles.extraction import _float64_threshold
from jaxrules.table import conform

lightgbm = pytest.importorskip("lightgbm")
pandas = pytest.importorskip("pandas")

SMALL = {"n_estimators": 6, "max_depth": 4, "random_state": 0}
FORESTS = [
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(**SMALL),
    RandomForestRegressor(**SMALL),
    ExtraTreesClassifier(**SMALL),
    ExtraTreesRegressor(**SMALL),
    GradientBoostingClassifier(**SMALL),
    GradientBoostingRegressor(**SMALL),
]
QUIET = {"verbose": -1, "min_child_samples": 2, "min_data_in_bin": 1, "n_estimators": 6, "max_depth": 4, "n_jobs": 1}


def name_of(forest):
    return type(forest).__name__


def leaves_of(forest, X):
    """The leaf of every row in every tree, by the forest itself, shape (rows, trees)."""
    if name_of(forest).startswith("LGBM"):
        return np.asarray(forest.predict(X, pred_leaf=True)).reshape(len(X), -1)
    if name_of(forest).startswith("Hist"):
        encoded = forest._preprocess_X(X, reset=False)
        known = forest._bin_mapper.make_known_categories_bitsets()
        trees = [tree for iteration in forest._predictors for tree in iteration]
        for tree in trees:  # leaves of equal value must differ: number them
            leaf = tree.nodes["is_leaf"].astype(bool)
            tree.nodes["value"][leaf] = np.arange(leaf.sum())
        return np.stack([tree.predict(encoded, *known, 1) for tree in trees], axis=1)
    return np.asarray(forest.apply(X)).reshape(len(X), -1)


def assert_same_routing(forest, X, encoded=None):
    """The leaf rules of every tree divide the rows between them, as the tree does."""
    table = jr.as_table(X, missing="own_category")
    rules = jr.extract_rules(forest, X, drop_duplicates=False, leaves_only=True)
    satisfied = rules.satisfied(table)
    leaves = leaves_of(forest, X if encoded is None else encoded)
    start = 0
    for tree in leaves.T:
        # The rules of one tree cover every row once: take rules until they do.
        stop = start
        while satisfied[:, start:stop].sum() < len(leaves):
            stop += 1
        block = satisfied[:, start:stop]
        assert (block.sum(axis=1) == 1).all()
        pairs = set(zip(block.argmax(axis=1).tolist(), tree.tolist(), strict=True))
        assert len(pairs) == len({rule for rule, _ in pairs}) == len({leaf for _, leaf in pairs})
        while stop < len(rules) and not satisfied[:, stop].any() and start + 1 < stop:
            stop += 1  # leaves that no row reaches
        start = stop
    assert start == len(rules)


def hard_values(rng, n):
    """Numbers that float32 rounding moves across thresholds: neighbours, midpoints, tiny, huge, signed zeros."""
    base = rng.choice([0.0, -0.0, 1.0, 0.1, 16777216.0, 1e-40, 3e30, -2.5], size=n).astype(np.float32)
    steps = rng.integers(-2, 3, n)
    near = base.copy()
    for _ in range(2):
        near = np.where(steps > 0, np.nextafter(near, np.float32(np.inf)), near)
        near = np.where(steps < 0, np.nextafter(near, np.float32(-np.inf)), near)
    midpoint = (base.astype(float) + near.astype(float)) / 2
    values = np.where(rng.random(n) < 0.5, midpoint, near.astype(float))
    return np.where(rng.random(n) < 0.3, np.nextafter(values, rng.choice([-np.inf, np.inf], size=n)), values)


@settings(deadline=None, max_examples=300)
@given(st.floats(width=64, allow_nan=False, allow_infinity=False, min_value=-3e38, max_value=3e38), st.integers(-3, 3))
def test_float64_threshold_divides_as_the_cast_does(threshold, steps):
    exact = _float64_threshold(np.array([threshold]))[0]
    for start in (threshold, exact):
        x = start
        for _ in range(abs(steps)):
            x = np.nextafter(x, np.copysign(np.inf, steps))
        with np.errstate(over="ignore"):
            assert (float(np.float32(x)) <= threshold) == (x <= exact)


@pytest.mark.parametrize("forest", FORESTS, ids=name_of)
@pytest.mark.parametrize("seed", range(3))
def test_leaf_rules_route_as_the_trees_do(forest, seed):
    rng = np.random.default_rng(seed)
    X = np.stack([hard_values(rng, 80) for _ in range(3)], axis=1)
    y = rng.integers(0, 2, 80)
    assert_same_routing(forest.fit(X.astype(np.float32), y), X)


@pytest.mark.parametrize("forest", [RandomForestClassifier(**SMALL), ExtraTreesClassifier(**SMALL)], ids=name_of)
def test_missing_values_and_categories_through_one_hot_columns(forest):
    rng = np.random.default_rng(0)
    frame = mixed_frame(rng, 200)
    encoded, _ = jr.as_table(frame, missing="own_category").one_hot()
    assert_same_routing(forest.fit(encoded, frame["x"].notna() & (frame["job"] == "cook")), frame, encoded)


def mixed_frame(rng, n):
    job = rng.choice(["cook", "smith", "clerk"], size=n)
    frame = pandas.DataFrame({"x": rng.normal(size=n), "job": job, "z": rng.normal(size=n).round(1)})
    frame.loc[rng.random(n) < 0.2, "x"] = np.nan
    frame.loc[rng.random(n) < 0.2, "job"] = None
    return frame.astype({"job": "category"})


@pytest.mark.parametrize(
    "kind", [HistGradientBoostingClassifier, HistGradientBoostingRegressor], ids=lambda k: k.__name__
)
def test_hist_gradient_boosting_with_missing_values_and_categories(kind):
    rng = np.random.default_rng(1)
    frame = mixed_frame(rng, 300)
    y = ((frame["job"] == "cook") ^ (frame["x"] > 0) ^ frame["x"].isna()).to_numpy().astype(int)
    forest = kind(max_iter=8, max_depth=4, min_samples_leaf=3, categorical_features="from_dtype").fit(frame, y)
    assert_same_routing(forest, frame)
    unseen = frame.assign(job=pandas.Categorical(["pilot"] * 300))
    rules = jr.extract_rules(forest, frame, drop_duplicates=False, leaves_only=True)
    # An unseen category goes where a missing one goes.
    table = conform(unseen, rules.schema)
    missing = conform(frame.assign(job=pandas.Categorical([None] * 300, categories=["cook"])), rules.schema)
    np.testing.assert_array_equal(rules.satisfied(table), rules.satisfied(missing))


@pytest.mark.parametrize("kind", [lightgbm.LGBMClassifier, lightgbm.LGBMRegressor], ids=lambda k: k.__name__)
@pytest.mark.parametrize("options", [{}, {"use_missing": False}], ids=["missing", "no missing type"])
def test_lightgbm_with_missing_values_and_categories(kind, options):
    rng = np.random.default_rng(2)
    frame = mixed_frame(rng, 300)
    y = ((frame["job"] == "cook") ^ (frame["x"] > 0) ^ frame["x"].isna()).to_numpy().astype(int)
    forest = kind(**QUIET, **options, min_data_per_group=1, cat_smooth=1, max_cat_to_onehot=1).fit(frame, y)
    assert_same_routing(forest, frame)
    booster = jr.extract_rules(forest.booster_, frame)
    assert len(booster) == len(jr.extract_rules(forest, frame))


def test_lightgbm_zero_as_missing_is_refused_where_no_interval_can_say_it():
    rng = np.random.default_rng(0)
    X = rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0], size=(400, 2))
    y = (X[:, 0] == 0).astype(int)
    forest = lightgbm.LGBMClassifier(**QUIET, zero_as_missing=True).fit(X, y)
    with pytest.raises(ValueError, match="zero_as_missing=False"):
        jr.extract_rules(forest, X)


def test_duplicates_complements_and_constant_rules():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    forest = RandomForestClassifier(20, max_depth=3, random_state=0).fit(X, y)
    table = jr.as_table(X)
    every = jr.extract_rules(forest, X, drop_duplicates=False)
    assert len(every) == sum(tree.tree_.node_count - 1 for tree in forest.estimators_)
    distinct = jr.extract_rules(forest, X)
    columns = {column.tobytes() for column in every.satisfied(table).T}
    constant = {np.zeros(200, bool).tobytes(), np.ones(200, bool).tobytes()}
    kept = [column.tobytes() for column in distinct.satisfied(table).T]
    assert len(kept) == len(set(kept))
    assert set(kept) == columns - constant
    shortest = {}
    for column, length in zip(every.satisfied(table).T, every.lengths, strict=True):
        shortest[column.tobytes()] = min(length, shortest.get(column.tobytes(), 99))
    assert [shortest[key] for key in kept] == distinct.lengths.tolist()
    halved = jr.extract_rules(forest, X, drop_complements=True).satisfied(table)
    assert len({min(c.tobytes(), (~c).tobytes()) for c in halved.T}) == halved.shape[1] < len(distinct)
    assert len({min(c.tobytes(), (~c).tobytes()) for c in distinct.satisfied(table).T}) == halved.shape[1]


def test_columns_are_matched_by_name_and_rules_without_data_take_the_names():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "c"])
    forest = RandomForestClassifier(**SMALL).fit(frame, frame["b"] > 0)
    straight, turned = jr.extract_rules(forest, frame), jr.extract_rules(forest, frame[["c", "b", "a"]])
    assert sorted(straight.describe(r) for r in range(len(straight))) == sorted(
        turned.describe(r) for r in range(len(turned))
    )
    assert jr.extract_rules(forest).schema.names == ("a", "b", "c")


def test_default_rules_are_seeded_and_weighted():
    data = jr.datasets.load("breast_cancer")
    first, second = (jr.extract_rules(jr.default_forest(data.X, data.y, n_trees=5, seed=1), data.X) for _ in range(2))
    np.testing.assert_array_equal(first.lower, second.lower)
    assert (first.lengths <= 3).all()


@pytest.mark.parametrize(
    ("forest", "X", "error", "message"),
    [
        (LogisticRegression(), np.ones((2, 2)), TypeError, "forest must be one of .*LogisticRegression"),
        (RandomForestClassifier(), np.ones((2, 2)), ValueError, "without fit"),
        (lightgbm.LGBMClassifier(), np.ones((2, 2)), ValueError, "without fit"),
        (HistGradientBoostingClassifier(), np.ones((2, 2)), ValueError, "without fit"),
    ],
)
def test_models_that_hold_no_rules_are_refused(forest, X, error, message):
    with pytest.raises(error, match=message):
        jr.extract_rules(forest, X)


def test_a_forest_of_other_columns_or_without_splits_is_refused():
    X = np.random.default_rng(0).normal(size=(50, 3))
    forest = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="3 columns that are not those of X"):
        jr.extract_rules(forest, X[:, :2])
    with pytest.raises(ValueError, match="drop_complements.*pass X"):
        jr.extract_rules(forest, drop_complements=True)
    with pytest.raises(ValueError, match="no split"):
        jr.extract_rules(RandomForestRegressor(3).fit(X, np.ones(50)), X)
    hist = HistGradientBoostingClassifier(categorical_features=[0], min_samples_leaf=2, max_iter=3)
    hist.fit(np.abs(X).round(), X[:, 1] > 0)
    with pytest.raises(ValueError, match="column 'x0' as categorical"):
        jr.extract_rules(hist, np.abs(X).round())
