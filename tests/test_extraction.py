"""Extracted rules against the trees' own routing, on values and thresholds
that rounding would break.
"""

from typing import Any

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
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import jaxrules as jr
from jaxrules.data.table import UNSEEN, Table, conform
from jaxrules.ensembles.extraction import tree_rules
from jaxrules.ensembles.forests import float64_thresholds, read_forest

lightgbm = pytest.importorskip("lightgbm")
pandas = pytest.importorskip("pandas")

SMALL: dict[str, Any] = {"n_estimators": 3, "max_depth": 4, "random_state": 0}
SCIKIT_FORESTS = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeRegressor(max_leaf_nodes=6, random_state=0),
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(**SMALL),
    RandomForestRegressor(**SMALL),
    ExtraTreesClassifier(**SMALL),
    ExtraTreesRegressor(**SMALL),
    GradientBoostingClassifier(**SMALL),
    GradientBoostingRegressor(**SMALL),
]
WITH_MISSING = [forest for forest in SCIKIT_FORESTS if "Gradient" not in type(forest).__name__]
HIST: dict[str, Any] = {"max_iter": 3, "min_samples_leaf": 1, "early_stopping": False}
LIGHT: dict[str, Any] = {
    "n_estimators": 3,
    "num_leaves": 8,
    "min_child_samples": 1,
    "min_data_in_bin": 1,
    "min_data_per_group": 1,
    "cat_smooth": 0.1,
    "cat_l2": 0.1,
    "max_cat_to_onehot": 1,
    "min_sum_hessian_in_leaf": 0.0,
    "verbose": -1,
    "n_jobs": 1,
    "deterministic": True,
    "seed": 0,
}


def name_of(value: Any) -> str:
    return type(value).__name__ if not isinstance(value, type) else value.__name__


def leaves_of(forest: Any, X: Any) -> np.ndarray:
    """The leaf of every row in every tree, by the library itself, shape (rows, trees)."""
    if hasattr(forest, "booster_"):
        return np.asarray(forest.predict(X, pred_leaf=True)).reshape(len(X), -1)
    if hasattr(forest, "_predictors"):
        encoded = forest._preprocess_X(X, reset=False)
        known = forest._bin_mapper.make_known_categories_bitsets()
        trees = [tree for iteration in forest._predictors for tree in iteration]
        for tree in trees:  # the prediction of a tree becomes the number of its node
            tree.nodes["value"] = np.arange(len(tree.nodes))
        return np.stack([tree.predict(encoded, *known, 1) for tree in trees], axis=1)
    return np.asarray(forest.apply(X)).reshape(len(X), -1)


def assert_same_routing(forest: Any, X: Any, rows: Any = None, encoded: Any = None) -> None:
    """Of every tree, each row satisfies one leaf rule: that of the leaf where the library puts it.

    Args:
        X: what the rules are extracted with.
        rows: the rows to route, as the rules see them (those of `X` when None).
        encoded: the same rows as the forest sees them, where that is something else.
    """
    rules = tree_rules(forest, X, leaves_only=True)
    rows = X if rows is None else rows
    table = conform(rows, rules.conjunctions.schema)
    satisfied = rules.conjunctions.satisfied(table)
    assert rules.is_leaf.all()
    for tree, leaves in enumerate(leaves_of(forest, rows if encoded is None else encoded).T):
        of_tree = np.flatnonzero(rules.tree == tree)
        if not len(of_tree):  # a tree without a split
            assert len(set(leaves.tolist())) == 1
            continue
        np.testing.assert_array_equal(satisfied[:, of_tree].sum(axis=1), 1)
        np.testing.assert_array_equal(
            rules.node[of_tree][satisfied[:, of_tree].argmax(axis=1)], leaves
        )


def near_thresholds(forest: Any, X: Any, n: int = 60) -> np.ndarray:
    """Rows at the thresholds of the rules and at their float64 neighbours."""
    rules = tree_rules(forest, X).conjunctions
    columns = []
    for f in range(len(rules.schema.features)):
        ends = np.concatenate(
            [rules.lower[rules.feature == f], rules.upper[rules.feature == f], [0.0]]
        )
        ends = np.unique(ends[np.isfinite(ends) & (np.abs(ends) < 3e38)])
        around = np.concatenate([ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
        columns.append(np.random.default_rng(f).permutation(np.resize(around, n)))
    return np.stack(columns, axis=1)


# Numbers that rounding moves across thresholds


def test_thresholds_at_the_ends_of_the_range():
    largest = float(np.finfo(np.float32).max)
    thresholds = np.array([np.inf, largest, 1e300, -largest, -1e300, 0.0, -0.0, 5e-324])
    exact = float64_thresholds(thresholds)
    tiny = 2.0**-150  # half of the smallest float32 number: rounds to zero
    beyond = np.nextafter(2.0**128 - 2.0**103, 0)  # the last number that rounds to the largest one
    np.testing.assert_array_equal(
        exact[[0, 1, 2, 5, 6, 7]], [np.inf, beyond, beyond, tiny, tiny, tiny]
    )
    np.testing.assert_array_equal(exact[4], -(2.0**128 - 2.0**103))


@settings(max_examples=500)
@given(st.floats(allow_nan=False), st.integers(-3, 3))
def test_float64_thresholds_divide_as_the_cast_does(threshold, steps):
    exact = float64_thresholds(np.array([threshold]))[0]
    with np.errstate(over="ignore"):
        nearest = float(np.float32(threshold))
        for x in (threshold, exact, nearest):
            for _ in range(abs(steps)):
                x = np.nextafter(x, np.copysign(np.inf, steps))
            assert (float(np.float32(x)) <= threshold) == (x <= exact)


BASES = np.array(
    [0.0, 1.0, 0.1, 16777216.0, 2.0**-149, 1e-40, 3e30, -2.5, -1e-35, 1e-35], np.float32
)
PLACES = st.tuples(
    st.integers(0, len(BASES) - 1), st.integers(-2, 2), st.sampled_from([-1, 0, 1]), st.booleans()
)


def hard_value(place: tuple[int, int, int, bool]) -> float:
    """A float32 number near a base, the midpoint between it and its neighbour, or a float64
    neighbour of one of these.
    """
    base, steps, nudge, midpoint = place
    number = BASES[base]
    for _ in range(abs(steps)):
        number = np.nextafter(number, np.float32(np.copysign(np.inf, steps)))
    value = float(number)
    if midpoint:
        value = (value + float(np.nextafter(number, np.float32(np.inf)))) / 2
    return float(np.nextafter(value, nudge * np.inf)) if nudge else value


@st.composite
def hard_data(draw, missing: bool):
    """A matrix of few distinct hard values, with or without missing ones, and labels."""
    n = draw(st.integers(12, 30))
    value = st.builds(hard_value, PLACES) | st.sampled_from([0.0, -0.0])
    pool = draw(st.lists(value, min_size=3, max_size=10))
    if missing:
        pool.append(np.nan)
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.choice(pool, size=(n, 2))
    y = rng.integers(0, 2, n)
    X[0], y[0] = 1.0, 0
    X[1], y[1] = -2.5, 1
    return X, y


@pytest.mark.parametrize("forest", SCIKIT_FORESTS, ids=name_of)
@settings(max_examples=12)
@given(data=hard_data(missing=False))
def test_scikit_learn_trees(forest, data):
    X, y = data
    forest.fit(X, y)
    assert_same_routing(forest, X)
    assert_same_routing(forest, X, near_thresholds(forest, X))


@pytest.mark.parametrize("forest", WITH_MISSING, ids=name_of)
@settings(max_examples=12)
@given(data=hard_data(missing=True))
def test_scikit_learn_trees_with_missing_values(forest, data):
    X, y = data
    forest.fit(X, y)
    # Without X, missing values go where the trees send them, in every column.
    if has_split(forest):
        assert tree_rules(forest).conjunctions.schema.missing == "own_category"
        assert_same_routing(forest, X)
        assert_same_routing(forest, None, X)


def has_split(forest: Any) -> bool:
    """Whether there is a rule; else the refusal says so."""
    try:
        return len(tree_rules(forest).conjunctions) > 0
    except ValueError as error:
        if "no split" not in str(error):
            raise
        return False


@pytest.mark.parametrize(
    "kind", [HistGradientBoostingClassifier, HistGradientBoostingRegressor], ids=name_of
)
@settings(max_examples=12)
@given(data=hard_data(missing=True))
def test_hist_gradient_boosting(kind, data):
    X, y = data
    forest = kind(**HIST).fit(X, y)
    if has_split(forest):
        assert_same_routing(forest, X)
        assert_same_routing(forest, None, X)
        assert_same_routing(forest, X, near_thresholds(forest, X))


@pytest.mark.parametrize(
    "options", [{}, {"use_missing": False}, {"zero_as_missing": True}], ids=str
)
@settings(max_examples=25)
@given(data=hard_data(missing=True))
def test_lightgbm(options, data):
    X, y = data
    forest = lightgbm.LGBMClassifier(**LIGHT, **options).fit(X, y)
    if has_split(forest):
        assert_same_routing(forest, X)
        assert_same_routing(forest, None, X)
        assert_same_routing(forest, X, near_thresholds(forest, X))


def test_lightgbm_sends_zeros_apart_from_their_neighbours():
    """With zero_as_missing a node may accept two intervals; each becomes a rule."""
    rng = np.random.default_rng(0)
    X = rng.choice([-2.0, -1.0, 0.0, -0.0, 1e-36, 1.0, 2.0], size=(400, 2))
    y = (np.abs(X[:, 0]) < 1e-35).astype(int) + X[:, 1]
    forest = lightgbm.LGBMRegressor(**LIGHT, zero_as_missing=True).fit(X, y)
    rules = tree_rules(forest, X, leaves_only=True)
    nodes = set(zip(rules.tree.tolist(), rules.node.tolist(), strict=True))
    assert len(rules.conjunctions) > len(nodes)
    assert_same_routing(forest, X)
    zeros = np.array(
        [
            0.0,
            -0.0,
            1e-35,
            np.float32(1e-35),
            np.nextafter(float(np.float32(1e-35)), 1),
            np.nan,
            5e-324,
        ]
    )
    both = np.concatenate([zeros, -zeros])
    rows = np.stack([both, both[::-1]], axis=1)
    assert_same_routing(forest, None, rows)


# Categories


def mixed_frame(rng: np.random.Generator, n: int) -> Any:
    job = rng.choice(["cook", "smith", "clerk", "pilot", "judge"], size=n)
    town = rng.choice(["A", "B"], size=n)
    columns = {
        "x y": rng.normal(size=n),
        "job": job,
        "z": rng.normal(size=n).round(1),
        "town": town,
    }
    frame = pandas.DataFrame(columns)
    frame.loc[rng.random(n) < 0.2, "x y"] = np.nan
    frame.loc[rng.random(n) < 0.2, "job"] = None
    return frame.astype({"job": "category", "town": "category"})


def mixed_target(frame: Any) -> np.ndarray:
    odd = (
        frame["job"].isin(["cook", "judge"])
        ^ (frame["x y"] > 0)
        ^ frame["x y"].isna()
        ^ (frame["town"] == "A")
    )
    return (odd ^ frame["job"].isna()).to_numpy().astype(int)


FRAME_FORESTS = [
    HistGradientBoostingClassifier(**HIST),
    HistGradientBoostingRegressor(**HIST),
    lightgbm.LGBMClassifier(**LIGHT),
    lightgbm.LGBMRegressor(**LIGHT, use_missing=False),
]


@pytest.mark.parametrize("forest", FRAME_FORESTS, ids=name_of)
@pytest.mark.parametrize("seed", range(3))
def test_categorical_splits_of_dataframes(forest, seed):
    rng = np.random.default_rng(seed)
    frame = mixed_frame(rng, 200)
    forest.fit(frame, mixed_target(frame))
    assert_same_routing(forest, frame)
    assert_same_routing(forest, frame[["town", "z", "x y", "job"]], frame)  # matched by name
    new = mixed_frame(rng, 80)
    assert_same_routing(forest, frame, new)
    strange = new.assign(job=pandas.Categorical(rng.choice(["cook", "robot"], 80)))
    assert_same_routing(forest, frame, strange)
    rules = tree_rules(forest, frame).conjunctions
    assert rules.allowed.any()
    assert UNSEEN in conform(strange, rules.schema).columns[1]


@pytest.mark.parametrize("forest", FRAME_FORESTS, ids=name_of)
def test_categories_that_the_forest_did_not_see(forest):
    """The forest was trained on some of the rows: the table knows more
    categories than the forest.
    """
    rng = np.random.default_rng(5)
    frame = mixed_frame(rng, 300)
    some = frame[frame["job"].isna() | frame["job"].isin(["cook", "smith", "clerk"])]
    some = some.assign(job=some["job"].cat.remove_unused_categories())
    forest.fit(some, mixed_target(some))
    assert_same_routing(forest, frame)


@pytest.mark.parametrize("forest", FRAME_FORESTS, ids=name_of)
def test_categories_come_from_the_forest_where_there_is_no_data(forest):
    frame = mixed_frame(np.random.default_rng(1), 200).rename(columns={"x y": "x"})
    forest.fit(frame, mixed_target(frame.rename(columns={"x": "x y"})))
    assert (
        jr.extract_rules(forest).schema.features
        == jr.as_table(frame, missing="own_category").schema.features
    )
    assert_same_routing(forest, None, frame)


def test_none_in_a_text_column_is_a_category_of_hist_gradient_boosting():
    rng = np.random.default_rng(2)
    frame = pandas.DataFrame(
        {"job": np.array(rng.choice(["a", "b", "c", None], 100), object), "x": rng.normal(size=100)}
    )
    frame["job"] = frame["job"].astype(object).where(frame["job"].notna(), None)
    forest = HistGradientBoostingClassifier(**HIST, categorical_features=["job"])
    forest.fit(frame, frame["job"].isna() ^ (frame["x"] > 0))
    assert_same_routing(forest, frame)


def codes_of(table: Table) -> np.ndarray:
    return np.stack([column.astype(float) for column in table.columns], axis=1)


@pytest.mark.parametrize(
    "forest",
    [
        HistGradientBoostingClassifier(**HIST, categorical_features=[1, 3]),
        lightgbm.LGBMClassifier(**LIGHT, categorical_feature=[1, 3]),
    ],
    ids=name_of,
)
@pytest.mark.filterwarnings("ignore:categorical_feature")
@pytest.mark.filterwarnings("ignore:.*(categorical_feature keyword|negative value)")
def test_categories_as_codes_of_a_table(forest):
    rng = np.random.default_rng(3)
    frame = mixed_frame(rng, 200)
    table = jr.as_table(frame, missing="own_category")
    forest.fit(codes_of(table), mixed_target(frame))
    assert_same_routing(forest, table, encoded=codes_of(table))


@pytest.mark.filterwarnings("ignore:column .k. of X is text")
def test_numbers_as_categories():
    rng = np.random.default_rng(4)
    frame = pandas.DataFrame({"k": rng.choice([10, 20, 30], 120), "x": rng.normal(size=120)})
    y = (frame["k"] == 20) ^ (frame["x"] > 0)
    category = frame.astype({"k": "category"})
    for forest in (HistGradientBoostingClassifier(**HIST), lightgbm.LGBMClassifier(**LIGHT)):
        assert_same_routing(forest.fit(category, y), category)
    array = HistGradientBoostingClassifier(**HIST, categorical_features=[0]).fit(
        frame.to_numpy(float), y
    )
    assert_same_routing(array, frame.astype({"k": str}), encoded=frame.to_numpy(float))
    with pytest.raises(ValueError, match="column 'k' as categorical.*astype"):
        jr.extract_rules(array, frame)
    codes = np.stack([rng.integers(0, 12, 300), rng.normal(size=300)], axis=1)
    array.fit(codes, np.isin(codes[:, 0], [1, 5, 11]))
    text = pandas.DataFrame({"k": codes[:, 0].astype(int).astype(str), "x": codes[:, 1]})
    with pytest.raises(
        ValueError, match="column 'k' are numbers as text"
    ):  # "10" comes before "2" in a table
        jr.extract_rules(array, text)


ONE_HOT_FORESTS = [
    RandomForestClassifier(**SMALL),
    ExtraTreesClassifier(**SMALL),
    HistGradientBoostingClassifier(**HIST),
    lightgbm.LGBMClassifier(**LIGHT),
    lightgbm.LGBMClassifier(**LIGHT, zero_as_missing=True),
]


@pytest.mark.parametrize("forest", ONE_HOT_FORESTS, ids=name_of)
@pytest.mark.parametrize("seed", range(3))
def test_indicators_become_categories(forest, seed):
    frame = mixed_frame(np.random.default_rng(seed), 200)
    table = jr.as_table(frame, missing="own_category")
    encoded = table.one_hot()[0]
    forest.fit(encoded, mixed_target(frame))
    assert_same_routing(forest, frame, encoded=encoded)
    assert_same_routing(forest, table, encoded=encoded)


# Rules


def test_every_node_but_the_roots_is_a_rule_in_the_order_of_the_nodes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    rules = tree_rules(forest, X)
    assert len(rules.conjunctions) == sum(tree.tree_.node_count - 1 for tree in forest.estimators_)
    satisfied = rules.conjunctions.satisfied(jr.as_table(X))
    for t, tree in enumerate(forest.estimators_):
        of_tree = rules.tree == t
        np.testing.assert_array_equal(rules.node[of_tree], np.arange(1, tree.tree_.node_count))
        np.testing.assert_array_equal(rules.is_leaf[of_tree], tree.tree_.children_left[1:] == -1)
        passed = tree.decision_path(X.astype(np.float32)).toarray()[:, 1:].astype(bool)
        np.testing.assert_array_equal(satisfied[:, of_tree], passed)
    for rule in rules.conjunctions:  # merged
        assert len({condition.feature for condition in rule}) == len(rule) <= 4


def test_conditions_stand_in_the_order_of_the_path():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 5)
    forest = DecisionTreeClassifier(random_state=0).fit(X, 2 * X[:, 1] + (X[:, 1] == 1) * X[:, 0])
    rules = jr.extract_rules(forest, X, leaves_only=True)
    assert rules.describe(0) == "x1 <= 0.5000000298023224"  # the numbers that float32 rounds to 0.5
    rules = rules.with_short_thresholds(jr.as_table(X))
    assert [rules.describe(r) for r in range(3)] == [
        "x1 <= 0",
        "x1 > 0 & x0 <= 0",
        "x1 > 0 & x0 > 0",
    ]


def test_rules_are_made_of_the_splits_above_their_nodes():
    X = np.random.default_rng(2).normal(size=(300, 2)).round(1)
    forest = RandomForestRegressor(4, max_depth=5, random_state=0).fit(X, X[:, 0] * X[:, 1])
    found = tree_rules(forest, X)
    for tree, estimator in enumerate(forest.estimators_):
        left, right = estimator.tree_.children_left, estimator.tree_.children_right
        depth = {0: 0}
        for node in range(len(left)):  # children come behind their parents
            depth |= {
                int(child): depth[node] + 1 for child in (left[node], right[node]) if child >= 0
            }
        of_tree = found.tree == tree
        assert found.conjunctions.propositions[of_tree].tolist() == [
            depth[n] for n in found.node[of_tree].tolist()
        ]
    assert (found.conjunctions.propositions > found.conjunctions.lengths).any()


def test_of_equal_rules_the_fewest_splits_count():
    X = np.arange(8.0)[:, None]
    # One tree asks x <= 5.5 and then x <= 2.5, the other x <= 2.5 at once.
    nested = DecisionTreeRegressor(max_depth=2).fit(X, np.array([3.0, 3, 3, 2, 2, 2, 9, 9]))
    direct = DecisionTreeRegressor(max_depth=1).fit(X, np.array([1.0, 1, 1, 0, 0, 0, 0, 0]))
    forest = RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, X[:, 0])
    for trees in ([nested, direct], [direct, nested]):
        forest.estimators_ = trees
        rules = jr.extract_rules(forest, drop_duplicates=True)
        texts = [rules.describe(r) for r in range(len(rules))]
        assert rules.propositions[texts.index("x0 <= 2.5000001192092896")] == 1
        between = ["2.5000001192092896 < x0 <= 5.5" in text for text in texts]
        assert rules.propositions[between].tolist() == [2]


def test_duplicates_complements_and_constant_rules():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(203, 4)).round(1)
    forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    some = X[:150]  # so that some rules are constant
    table = jr.as_table(some)
    every = jr.extract_rules(forest, some, drop_duplicates=False)
    columns = [column.tobytes() for column in every.satisfied(table).T]
    constant = {np.zeros(150, bool).tobytes(), np.ones(150, bool).tobytes()}
    assert constant & set(columns)
    best = {}  # the shortest, then first
    for index in np.lexsort((np.arange(len(every)), every.lengths)).tolist():
        best.setdefault(columns[index], index)
    kept = sorted(index for key, index in best.items() if key not in constant)
    distinct = jr.extract_rules(forest, some)
    assert [distinct.describe(r) for r in range(len(distinct))] == [every.describe(r) for r in kept]
    satisfied = distinct.satisfied(table)
    groups: dict[bytes, list[int]] = {}
    for index, column in enumerate(satisfied.T):
        groups.setdefault(min(column.tobytes(), (~column).tobytes()), []).append(index)
    one_each = sorted(
        min(g, key=lambda r: (satisfied[:, r].sum(), distinct.lengths[r], r))
        for g in groups.values()
    )
    halved = jr.extract_rules(forest, some, drop_complements=True)
    assert [halved.describe(r) for r in range(len(halved))] == [
        distinct.describe(r) for r in one_each
    ]
    assert len(halved) < len(distinct) < len(every)


def test_blocks_of_rules_and_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1501, 4))
    forest = RandomForestClassifier(30, max_depth=6, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    whole = jr.extract_rules(forest, X, drop_complements=True)
    monkeypatch.setattr("jaxrules.ensembles.extraction._RULES_PER_BLOCK", 50)
    monkeypatch.setattr("jaxrules.rules.conditions._CELLS_PER_BATCH", 64 * 501)
    blocks = jr.extract_rules(forest, X, drop_complements=True)
    for name in ("offsets", "feature", "lower", "upper", "missing"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(blocks, name))


def test_without_data_only_equal_conditions_are_duplicates():
    X = np.array([[0.0], [1.0], [2.0]] * 10)
    forest = RandomForestClassifier(20, max_depth=2, bootstrap=False, random_state=0).fit(
        X, X[:, 0].astype(int)
    )
    rules = jr.extract_rules(forest)
    assert rules.schema.names == ("x0",)
    assert len({tuple(rule) for rule in rules}) == len(rules) == len(jr.extract_rules(forest, X))


def test_missing_values_satisfy_no_condition_where_the_forest_saw_none():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    X[:20, 1] = np.nan
    forest = RandomForestClassifier(**SMALL).fit(X, (X[:, 0] > 0) ^ np.isnan(X[:, 1]))
    rules = jr.extract_rules(forest, X)
    assert not rules.missing[rules.feature == 0].any()
    assert rules.missing[rules.feature == 1].any()
    complete = jr.extract_rules(forest, X[20:])
    assert not complete.missing.any()


def test_columns_are_matched_by_name():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(100, 3)), columns=["a a", "b", "c"])
    y = frame["b"] > frame["c"]
    for forest in (
        RandomForestClassifier(**SMALL).fit(frame, y),
        lightgbm.LGBMClassifier(**LIGHT).fit(frame, y),
    ):
        straight, turned = (
            jr.extract_rules(forest, frame),
            jr.extract_rules(forest, frame[["c", "b", "a a"]]),
        )
        assert straight.schema.names == ("a a", "b", "c")
        assert turned.schema.names == ("c", "b", "a a")
        assert [straight.describe(r) for r in range(len(straight))] == [
            turned.describe(r) for r in range(len(turned))
        ]
        by_position = jr.extract_rules(forest, frame.to_numpy())
        np.testing.assert_array_equal(by_position.feature, straight.feature)
    assert jr.extract_rules(RandomForestClassifier(**SMALL).fit(frame, y)).schema.names == (
        "a a",
        "b",
        "c",
    )


def test_boosters_are_read_as_their_models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    forest = lightgbm.LGBMClassifier(**LIGHT).fit(X, X[:, 0] * X[:, 1] > 0)
    one, other = jr.extract_rules(forest, X), jr.extract_rules(forest.booster_, X)
    np.testing.assert_array_equal(one.upper, other.upper)
    read = lightgbm.Booster(model_str=forest.booster_.model_to_string())
    np.testing.assert_array_equal(one.upper, jr.extract_rules(read, X).upper)


def test_several_classes_have_a_tree_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
    for forest in (
        GradientBoostingClassifier(**SMALL),
        HistGradientBoostingClassifier(**HIST),
        lightgbm.LGBMClassifier(**LIGHT),
    ):
        assert_same_routing(forest.fit(X, y), X)
        assert set(tree_rules(forest, X).tree.tolist()) == set(range(9))


def test_subclasses_are_known():
    class Mine(RandomForestClassifier):
        pass

    X = np.random.default_rng(0).normal(size=(50, 2))
    assert len(jr.extract_rules(Mine(3, random_state=0).fit(X, X[:, 0] > 0), X))


# Bad input


@pytest.mark.parametrize(
    ("forest", "error", "message"),
    [
        (
            LogisticRegression(),
            TypeError,
            "forest must be one of .*LightGBM; got LogisticRegression",
        ),
        (None, TypeError, "got NoneType"),
        (RandomForestClassifier(), ValueError, "unfitted"),
        (DecisionTreeRegressor(), ValueError, "unfitted"),
        (lightgbm.LGBMClassifier(), ValueError, "unfitted"),
        (HistGradientBoostingClassifier(), ValueError, "unfitted"),
    ],
    ids=str,
)
def test_models_that_hold_no_rules_are_refused(forest, error, message):
    with pytest.raises(error, match=message):
        jr.extract_rules(forest, np.ones((2, 2)))


@pytest.mark.parametrize(
    "forest",
    [RandomForestRegressor(3), HistGradientBoostingRegressor(), lightgbm.LGBMRegressor(**LIGHT)],
    ids=name_of,
)
def test_forests_without_splits_are_refused(forest):
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match="forest has no split"):
        jr.extract_rules(forest.fit(X, np.ones(50)), X)


def test_forests_of_other_columns_are_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    forest = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="3 columns that are not those of X, which has 2"):
        jr.extract_rules(forest, X[:, :2])
    wide = pandas.DataFrame(X, columns=["a", "b", "c"])
    of_wide = RandomForestClassifier(3, random_state=0).fit(wide, X[:, 0] > 0)
    with pytest.raises(ValueError, match="3 columns that are not those of X, which has 2"):
        jr.extract_rules(of_wide, wide[["a", "b"]])
    with pytest.raises(ValueError, match="no rule that holds for some rows of X"):
        jr.extract_rules(forest, np.ones((5, 3)))
    frame = mixed_frame(rng, 100)
    named = RandomForestClassifier(3, random_state=0).fit(frame[["z"]], frame["z"] > 0)
    with pytest.raises(ValueError, match="columns that X lacks: 'z'"):
        jr.extract_rules(named, frame[["z"]].rename(columns={"z": "u"}))
    with pytest.raises(ValueError, match=r"categorical columns 'job', 'town'.*one_hot\(\)\[0\]"):
        jr.extract_rules(named, frame)
    dummies = pandas.get_dummies(
        frame, dummy_na=True
    )  # as many columns as one_hot might make, but others
    with pytest.raises(ValueError, match="one_hot"):
        jr.extract_rules(RandomForestClassifier(3).fit(dummies, frame["z"] > 0), frame)
    half = HistGradientBoostingClassifier(**HIST, categorical_features=[3])
    table = jr.as_table(frame, missing="own_category")
    half.fit(codes_of(table), mixed_target(frame))
    with pytest.raises(
        ValueError, match=r"column 'job' of X is categorical.* thresholds.*one_hot\(\)\[0\]"
    ):
        jr.extract_rules(half, frame)


def test_other_categories_are_refused():
    frame = mixed_frame(np.random.default_rng(0), 100)
    other = frame.assign(job=frame["job"].astype(str) + "!")
    for forest in (HistGradientBoostingClassifier(**HIST), lightgbm.LGBMClassifier(**LIGHT)):
        forest.fit(frame, frame["job"] == "cook")
        with pytest.raises(ValueError, match="in column 'job', but X has none of them"):
            jr.extract_rules(forest, other)


def test_complements_need_data_and_duplicates_dropped():
    X = np.random.default_rng(0).normal(size=(50, 3))
    forest = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="drop_complements.*pass X"):
        jr.extract_rules(forest, drop_complements=True)
    with pytest.raises(ValueError, match="drop_duplicates=True"):
        jr.extract_rules(forest, X, drop_duplicates=False, drop_complements=True)


@pytest.mark.parametrize(
    "options", [{}, {"drop_complements": True}, {"drop_duplicates": False}, {"leaves_only": True}]
)
def test_activations_come_beside_the_rules(options: dict[str, bool]) -> None:
    X = np.random.default_rng(0).normal(size=(300, 4)).round(1)
    forest = jr.default_forest(X, X[:, 0] > X[:, 1], n_trees=20, seed=0)
    alone = jr.extract_rules(forest, X, **options)
    rules, activations = jr.extract_rules(forest, X, activations=True, **options)
    assert [tuple(rule) for rule in rules] == [tuple(rule) for rule in alone]
    satisfied = rules.satisfied(jr.as_table(X))
    np.testing.assert_array_equal(activations.dense[activations.pattern], satisfied)
    assert activations.n_patterns == len(np.unique(satisfied, axis=0))
    with pytest.raises(ValueError, match="pass X"):
        jr.extract_rules(forest, activations=True)


@pytest.mark.parametrize("learner", [jr.lire, jr.rulefit])
def test_without_a_split_the_model_is_the_best_constant(learner):
    with pytest.warns(UserWarning, match="the model is a constant"):
        fit = learner.fit(np.ones((20, 1)), np.arange(20) < 5)
    assert not len(fit.model.conjunctions)
    np.testing.assert_allclose(
        jr.predict_proba(fit.model, np.ones((1, 1))), [[0.75, 0.25]], atol=1e-4
    )


def test_trees_without_categories_have_no_sets() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    trees = read_forest(RandomForestClassifier(**SMALL).fit(X, X[:, 0] > 0)).trees
    assert trees.sets.shape == (0, 0)


def test_a_tree_without_splits_on_one_column() -> None:
    X = (np.arange(100) < 2)[:, None] * 1.0
    for y in (np.arange(100) % 3 == 0, np.arange(100) % 7 / 3):
        assert not len(jr.rulefit.fit(X, y).model.conjunctions)
    jr.lire.fit(X[::40], [0.3, -1.3, 0.9])
    jr.rulefit.fit(X[::40], [0.3, -1.3, 0.9], l1_penalty=0.05)
