"""The trees from which rules are extracted by default, and everything that ``rules=`` accepts."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import jaxrules as jr
from jaxrules.ensembles import growing
from jaxrules.ensembles.extraction import rule_pool, tree_rules
from jaxrules.ensembles.forests import Spread
from jaxrules.learning.training import training_data
from jaxrules.losses import logistic, squared
from jaxrules.tools.runs import Run

pandas = pytest.importorskip("pandas")

KINDS = ("boosted_trees", "forest", "both")
each_kind = pytest.mark.parametrize("kind", KINDS)


def frame_of(n: int, seed: int = 0) -> Any:
    """Numbers and categories with missing values, and labels that ask for both."""
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame(
        {"size": rng.normal(size=n), "job": rng.choice(["cook", "smith", "clerk"], n)}
    )
    frame.loc[rng.random(n) < 0.2, "size"] = np.nan
    frame.loc[rng.random(n) < 0.2, "job"] = None
    y = (frame["job"].eq("cook") & ~(frame["size"] > 0)) | frame["job"].isna()
    return frame, np.where(y, "yes", "no")


def extracted(X: Any, y: Any, **options: Any) -> Any:
    return jr.extract_rules(jr.default_forest(X, y, n_trees=6, **options), X)


def same(one: Any, other: Any) -> bool:
    return list(map(str, one)) == list(map(str, other))


@each_kind
def test_trees_are_seeded_and_weighted(kind):
    data = jr.datasets.load("breast_cancer")
    first, again = (extracted(data.X, data.y, kind=kind, seed=1) for _ in range(2))
    assert same(first, again)
    assert not same(first, extracted(data.X, data.y, kind=kind, seed=2))
    assert (first.lengths <= 3).all()
    weight = np.where(np.arange(569) % 2, 1.0, 0.0)
    half = extracted(data.X[weight > 0], data.y[weight > 0], kind=kind, sample_weight=np.ones(284))
    weighted = jr.default_forest(data.X, data.y, kind=kind, n_trees=6, sample_weight=weight)
    assert same(
        jr.extract_rules(weighted, data.X[weight > 0]), half
    )  # rows of weight 0 take no part


@each_kind
def test_weights_say_which_rows_count(kind):
    x = np.random.default_rng(0).uniform(size=400)
    contradicted = np.concatenate([x, x])[:, None]  # every row once cut at 0.25 and once at 0.75
    y = np.concatenate([x > 0.25, x > 0.75])
    for half, cut in enumerate((0.25, 0.75)):
        weight = np.where(np.arange(800) // 400 == half, 1.0, 0.01)
        rules = extracted(contradicted, y, kind=kind, max_depth=1, sample_weight=weight)
        cuts = np.where(np.isfinite(rules.lower), rules.lower, rules.upper)
        assert np.abs(cuts - cut).max() < 0.05


@pytest.mark.parametrize("target", ["classes", "numbers", "many"])
def test_rules_of_boosted_trees_route_as_the_trees_do(target):
    frame, y = frame_of(300)
    y = {
        "classes": y,
        "many": frame["job"].fillna("none").to_numpy(),
        "numbers": frame["size"].fillna(5).to_numpy(),
    }[target]
    trees = jr.default_forest(
        frame, y, kind="boosted_trees", classification=target != "numbers", n_trees=8
    )
    table = jr.as_table(frame, missing="own_category")
    rules = tree_rules(trees, table, leaves_only=True)
    satisfied = rules.conjunctions.satisfied(table)
    matrix = table.one_hot()[0].astype(np.float32)
    for k, tree in enumerate(trees.estimators_):
        of_tree = np.flatnonzero(rules.tree == k)
        np.testing.assert_array_equal(satisfied[:, of_tree].sum(axis=1), 1)
        np.testing.assert_array_equal(
            rules.node[of_tree][satisfied[:, of_tree].argmax(axis=1)], tree.apply(matrix)
        )
    assert {"size", "job"} == {table.schema.names[f] for f in rules.conjunctions.feature}


def test_boosted_trees_ask_what_is_left_open():
    """The loss of a boosted model falls with every tree; the slopes are those of the loss in every
    leaf.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)).astype(np.float32)
    y = np.where(rng.random(500) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1])), 1, 0)
    trees = jr.default_forest(X, y, kind="boosted_trees", n_trees=30).estimators_
    scores, losses = np.full(500, np.log(y.mean() / (1 - y.mean()))), []
    for tree in trees:
        at, slopes = tree.apply(X), y - 1 / (1 + np.exp(-scores))
        curvature = (y - slopes) * (1 - y + slopes)
        for leaf in np.unique(at):
            here = at == leaf
            scores[here] += 0.1 * slopes[here].sum() / curvature[here].sum()
        losses.append(np.mean(np.logaddexp(0, -(2 * y - 1) * scores)))
    assert (np.diff(losses) < 0).all()
    last = tree_rules(
        growing.GrownTrees((trees[-1],), 3), X, leaves_only=True
    ).conjunctions.satisfied(jr.as_table(X))
    slopes = y - 1 / (1 + np.exp(-scores))
    assert (
        np.abs(satisfied_means(last, slopes)).max()
        < np.abs(satisfied_means(last, y - y.mean())).max()
    )


def satisfied_means(satisfied: Any, values: Any) -> Any:
    return (satisfied * values[:, None]).sum(axis=0) / satisfied.sum(axis=0)


def test_a_rare_class_has_rows_in_every_tree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    y = np.zeros(20_000, bool)
    y[np.argsort(X[:, 2])[-40:]] = True
    rules = extracted(X, y, kind="boosted_trees")
    assert any(
        (rules.satisfied(jr.as_table(X))[:, m] == y).mean() > 0.9995 for m in range(len(rules))
    )
    some = 100 + 6 * 20_000**0.5
    for rare in (40, 4000):  # half of an equal share of the rows, but at most half of the class
        y = np.arange(20_000) < rare
        whole = jr.default_forest(X, y, kind="boosted_trees", n_trees=2).estimators_[0].tree_
        expected = round(some * (1 - rare / 20_000)) + round(min(some / 4, rare / 2))
        assert whole.n_node_samples[0] == expected
        assert whole.weighted_n_node_samples[0] == pytest.approx(20_000)


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_numbers_of_any_scale_have_the_same_trees(scale):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = X[:, 0] * X[:, 1]
    rules = extracted(X, scale * y, kind="boosted_trees", classification=False)
    assert same(rules, extracted(X, y, kind="boosted_trees", classification=False))


@each_kind
def test_trees_that_are_stopped_are_the_first(kind):
    data = jr.datasets.load("breast_cancer")
    arguments = kind, data.X, data.y, np.ones(569), True, 13
    whole = growing.grow(*arguments)
    asked = iter([False] * 2 + [True] * 9)
    part = growing.grow(*arguments, stopped=lambda: next(asked))
    assert len(whole.estimators_) == 13
    assert 0 < len(part.estimators_) < 13
    for one, other in zip(part.estimators_, whole.estimators_, strict=False):
        np.testing.assert_array_equal(one.tree_.threshold, other.tree_.threshold)
    assert kind != "forest" or growing.grow(*arguments, stopped=lambda: True) is None


def test_a_forest_is_that_of_scikit_learn():
    data = jr.datasets.load("breast_cancer")
    ours = jr.default_forest(data.X, data.y, n_trees=13)
    theirs = RandomForestClassifier(13, max_depth=3, random_state=0).fit(
        data.X.one_hot()[0], data.y
    )
    for one, other in zip(ours.estimators_, theirs.estimators_, strict=True):
        np.testing.assert_array_equal(one.tree_.threshold, other.tree_.threshold)


def test_a_target_or_weights_that_do_not_fit_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="y has 3 values, but X has 20 rows"):
        jr.default_forest(X, [0, 1, 1])
    with pytest.raises(ValueError, match="only one class"):
        jr.default_forest(X, np.ones(20, int))
    with pytest.raises(ValueError, match="sample_weight"):
        jr.default_forest(X, X[:, 0], classification=False, sample_weight=-np.ones(20))
    with pytest.raises(ValueError, match='kind must be "boosted_trees", "forest" or "both"'):
        jr.default_forest(X, X[:, 0] > 0, kind="stumps")
    with pytest.raises(ValueError, match="n_trees must be at least 2"):
        jr.default_forest(X, X[:, 0] > 0, kind="both", n_trees=1)


def test_labels_may_be_numbers_of_any_kind():
    X = np.random.default_rng(0).normal(size=(20, 2))
    whole = jr.default_forest(X, (X[:, 0] > 0).astype(int), n_trees=2)
    halves = jr.default_forest(X, np.where(X[:, 0] > 0, 1.5, -0.5), n_trees=2)
    assert list(jr.extract_rules(halves)) == list(jr.extract_rules(whole))


# What rules= means


def pool_of(rules: Any, X: Any, y: Any, loss: Any = logistic, **options: Any) -> Any:
    data = training_data(X, y, loss, missing="own_category", **options)
    return rule_pool(rules, data, 0, Run("rules"))


def test_the_pool_of_values_and_of_classes():
    frame, y = frame_of(200)
    for target, loss in ((y, logistic), (frame["size"].fillna(0).to_numpy(), squared)):
        for kind in KINDS:
            rules, activations = pool_of(kind, frame, target, loss)
            assert rules.schema == training_data(frame, target, loss, missing="own_category").schema
            assert activations.n_rows == 200
            assert len(rules) == activations.n_rules > 30


def test_no_rules_given_are_those_of_the_default_kind():
    frame, y = frame_of(150)
    assert same(pool_of(None, frame, y).rules, pool_of("boosted_trees", frame, y).rules)
    assert not same(pool_of(None, frame, y).rules, pool_of("forest", frame, y).rules)


def test_a_model_is_read_and_a_recipe_is_fitted():
    frame, y = frame_of(200)
    recipe = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5, early_stopping=False)
    weights = np.arange(200) % 3
    rules, activations = pool_of(recipe, frame, y, sample_weight=weights)
    assert not hasattr(recipe, "_predictors")  # the user's object is left alone
    used = jr.as_table(frame, missing="own_category")[weights > 0]
    fitted = recipe.fit(used.one_hot()[0], y[weights > 0], weights[weights > 0])
    assert same(rules, jr.extract_rules(fitted, used))
    assert same(rules, pool_of(fitted, frame, y, sample_weight=weights).rules)
    assert activations.n_rows == (weights > 0).sum()


def test_learners_take_a_recipe():
    frame, y = frame_of(150)
    trees = RandomForestClassifier(5, max_depth=2, random_state=0)
    n_rules = len(pool_of(trees, frame, y).rules)
    for fit, options in ((jr.rulefit.fit, {"l1_penalty": 0.02}), (jr.lire.fit, {"restarts": 0})):
        found = fit(frame, y, rules=trees, missing="own_category", **options)
        assert found.details["n_candidates"] == n_rules
        assert jr.accuracy(found.model, frame, y) > 0.9


@pytest.mark.parametrize("fit", [jr.rulefit.fit, jr.lire.fit], ids=["rulefit", "lire"])
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ("trees", ValueError, 'rules must be "boosted_trees", "forest" or "both", got'),
        (LogisticRegression(), TypeError, "rules must be Conjunctions.*got LogisticRegression"),
        (5, TypeError, "rules must be Conjunctions.*got int"),
    ],
)
def test_what_holds_no_rules_is_refused(fit, wrong, error, message):
    with pytest.raises(error, match=message):
        fit(np.arange(20.0)[:, None], np.arange(20) > 9, rules=wrong)


# Numbers that differ too little for scikit-learn's trees

NEIGHBOURS = np.cumsum(np.full(10, 2.0**-53)) * 2 + 0.4  # neighbouring float64 numbers
CLOSE = {
    "seconds": 1.7e9 + np.arange(30.0),
    "steps of 1e-7": 5 + 1e-7 * np.arange(30),
    "neighbours": NEIGHBOURS,
    "tiny": 1e-300 * np.arange(-5.0, 5.0),
    "largest": 3.4e38 * (1 - 1e-12 * np.arange(12.0)),
    "some close": np.concatenate([np.arange(-4.0, 4.0), [1 + 2e-9, 1 + 3e-9, 1e12, 1e12 + 1]]),
}


@pytest.mark.parametrize("name", CLOSE)
def test_trees_split_between_any_two_numbers(name):
    values = np.sort(CLOSE[name])
    assert (np.diff(values) > 0).all()
    spread = Spread.of(np.append(values, np.nan))
    places = spread.read(values).astype(np.float32)[:, None]
    assert np.isnan(spread.read(np.array([np.nan]))).all()
    tree = DecisionTreeRegressor().fit(places, np.arange(len(values)))
    assert tree.get_n_leaves() == len(values)
    inner = tree.tree_.feature == 0
    cuts = np.sort(spread.thresholds(tree.tree_.threshold[inner]))
    assert ((values[:-1] <= cuts) & (cuts < values[1:])).all()


def test_only_close_numbers_are_spread():
    assert Spread.of(np.random.default_rng(0).normal(size=100)) is None
    values = np.sort(CLOSE["some close"])
    places = Spread.of(values).places
    moved = places != values
    np.testing.assert_array_equal(values[moved], [1 + 2e-9, 1 + 3e-9, 1e12 + 1])


@pytest.mark.parametrize("rules", [*KINDS, RandomForestClassifier(20, max_depth=3)])
@pytest.mark.parametrize("name", ["seconds", "steps of 1e-7", "neighbours"])
def test_rules_separate_close_numbers(name, rules):
    rng = np.random.default_rng(0)
    values = np.sort(CLOSE[name])
    X = np.column_stack([rng.choice(values, 400), rng.normal(size=400)])
    y = np.where(X[:, 0] > values[5], "late", "early")
    for fitted in (jr.lire.fit(X, y, rules=rules), jr.rulefit.fit(X, y, rules=rules)):
        assert (jr.predict(fitted.model, X) == y).all()
    weight = np.where(np.arange(400) < 300, 1.0, 0.0)
    if rules in KINDS:
        some = extracted(X, y, kind=rules, sample_weight=weight)
        assert same(some, extracted(X[:300], y[:300], kind=rules))


# Columns of very many categories


@pytest.mark.filterwarnings("ignore:.*town")  # a category for nearly every row
def test_columns_of_many_categories_are_compared_with_the_most_frequent():
    rng = np.random.default_rng(0)
    town = np.concatenate([np.repeat(np.arange(20), 50), np.arange(20, 1220)])
    X = pandas.DataFrame({"town": [f"t{k}" for k in town], "age": rng.normal(size=2200)})
    y = np.where(town < 3, "yes", "no")
    table = jr.as_table(X)
    codes = table.compared_categories(0)
    assert len(codes) == 500
    frequent = {table.schema.features[0].categories.index(f"t{k}") for k in range(20)}
    assert frequent <= set(codes)
    assert table.one_hot()[0].shape == (2200, 1221)
    assert table.one_hot(only_compared=True)[0].shape == (2200, 501)
    some = jr.as_table(X[:1500])
    assert len(some.compared_categories(0)) == len(set(town[:1500]))  # few enough to name all
    with pytest.warns(UserWarning, match=r"'town' of X has 1220 categories.* 500 most frequent"):
        fitted = jr.rulefit.fit(X, y)
    assert (jr.predict(fitted.model, X) == y).mean() > 0.99
    with pytest.warns(UserWarning, match="500 most frequent"):
        fitted = jr.boosting.fit(X, y, max_rules=3)
    assert (jr.predict(fitted.model, X) == y).all()
    for kind in KINDS:
        trees = jr.default_forest(X, y, kind=kind, n_trees=4)
        assert trees.n_features_in_ == 501
        rules = tree_rules(trees, X, leaves_only=True)
        assert (rules.conjunctions.satisfied(table).sum(axis=1) == 4).all()


def test_columns_that_do_not_fit_in_memory_are_refused(monkeypatch):
    X, y = frame_of(200)
    monkeypatch.setattr("jaxrules.rules.rows.available_memory", lambda: 1000)
    with pytest.raises(ValueError, match="columns on 200 distinct rows.*group categories"):
        jr.default_forest(X, y)
