"""Rules from tree ensembles: every node but the root is the conjunction of the splits above it.

The rules reproduce the routing of the trees exactly on float64 data. Scikit-learn's forests and boosted
trees cast a value to float32 before they compare it; `_float64_threshold` turns their threshold into the
float64 number that divides the same values without a cast. HistGradientBoosting and LightGBM compare in
float64.

Forests are trained on the columns of a table as they are, or, where it has categories and the forest knows
none, on `Table.one_hot`; a split on an indicator becomes "category == value" or "category != value".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.conjunctions import Condition, Conjunctions
from jaxrules.table import EncodedColumn, Feature, Schema, Table, as_table

_SUPPORTED = (
    "scikit-learn's decision trees, RandomForest, ExtraTrees, GradientBoosting and HistGradientBoosting, and LightGBM"
)
_NO_CHILD = -1


def extract_rules(
    forest: Any,
    X: Any = None,
    *,
    drop_duplicates: bool = True,
    drop_complements: bool = False,
    leaves_only: bool = False,
) -> Conjunctions:
    """The rules of a fitted tree ensemble, conditions on one feature merged.

    Args:
        forest: a fitted decision tree, RandomForest, ExtraTrees, GradientBoosting or HistGradientBoosting of
            scikit-learn, or a LightGBM model (scikit-learn interface or Booster).
        X: the data that the forest was trained on (or `as_table` of it: forests that know no categories are
            trained on ``as_table(X).one_hot()``). Missing values are allowed. None takes the column names from
            the forest.
        drop_duplicates: keep one of several rules that the same rows of `X` satisfy, the one with the fewest
            conditions, and no rule that all rows or no row satisfies. Without `X`, only rules with the same
            conditions are duplicates.
        drop_complements: of two rules that divide the rows of `X` between them, keep the one of lower coverage.
        leaves_only: only the rules of the leaves, which divide the rows between them tree by tree.

    Returns:
        The rules in the order of the trees and, within a tree, of a walk from the root to the left.

    Raises:
        TypeError: for a model that is no tree ensemble.
        ValueError: for a forest without fit or without a split, or one that was trained on other columns.
    """
    if drop_complements and X is None:
        raise ValueError("drop_complements compares rules on rows; pass X")
    read = _reader(forest)
    table = None if X is None else as_table(X, missing="own_category")
    schema = _schema_of(forest) if table is None else table.schema
    trees = read(forest, _columns(forest, table, schema), schema)
    rules = [rule for tree in trees for rule in _rules_of(tree, leaves_only)]
    if not rules:
        raise ValueError("forest has no split, so it holds no rules; train deeper trees on more informative data")
    conjunctions = Conjunctions.build(schema, rules)
    if not drop_duplicates:
        return conjunctions
    first = {_key(rule): index for index, rule in reversed(list(enumerate(conjunctions)))}
    conjunctions = conjunctions.take(sorted(first.values()))
    return conjunctions if table is None else _distinct(conjunctions, table, drop_complements)


def default_forest(
    X: Any,
    y: ArrayLike,
    *,
    classification: bool = True,
    n_trees: int = 100,
    max_depth: int = 3,
    sample_weight: ArrayLike | None = None,
    seed: int = 0,
) -> Any:
    """The random forest that candidate rules come from by default: 100 trees of depth at most 3.

    These are the forests of the experiments in the LIRE paper (Sec. 5). Categories are one-hot encoded.

    Args:
        X, y: the data, shape (rows, features) and (rows,). Missing values are allowed.
        classification: False fits a regression forest.
        n_trees, max_depth: size of the forest.
        sample_weight: weight of every row.
        seed: of the bootstrap and the columns tried.

    Returns:
        A fitted scikit-learn forest; pass it to `extract_rules` with the same `X`.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if classification else RandomForestRegressor
    forest = kind(n_estimators=n_trees, max_depth=max_depth, random_state=seed, n_jobs=-1)
    return forest.fit(as_table(X, missing="own_category").one_hot()[0], y, sample_weight=sample_weight)


def default_rules(
    table: Table, y: ArrayLike, *, classification: bool, seed: int, sample_weight: ArrayLike | None = None
) -> Conjunctions:
    """The candidate rules of ``rules=None``: those of `default_forest`."""
    forest = default_forest(table, y, classification=classification, sample_weight=sample_weight, seed=seed)
    return extract_rules(forest, table)


# Trees, whatever library they come from


@dataclass(frozen=True)
class _Tree:
    """Children by node (`_NO_CHILD` for leaves), and the two conditions of every split."""

    left: Sequence[int]
    right: Sequence[int]
    split: Callable[[int], tuple[Condition, Condition]]


def _rules_of(tree: _Tree, leaves_only: bool) -> Iterator[tuple[Condition, ...]]:
    """The conditions above every node but the root, depth first, left before right."""
    pending: list[tuple[int, tuple[Condition, ...]]] = [(0, ())]
    while pending:
        node, above = pending.pop()
        is_leaf = tree.left[node] == _NO_CHILD
        if above and (is_leaf or not leaves_only):
            yield above
        if not is_leaf:
            to_left, to_right = tree.split(node)
            pending.append((tree.right[node], (*above, to_right)))
            pending.append((tree.left[node], (*above, to_left)))


def _numeric_split(feature: int, threshold: float, missing_left: bool) -> tuple[Condition, Condition]:
    """x <= threshold and x > threshold; a threshold of infinity sends every number to the left."""
    return (
        Condition.at_most(feature, threshold, missing=missing_left),
        Condition.above(feature, threshold, missing=not missing_left)
        if threshold < np.inf
        else _missing_or_never(feature, missing=not missing_left),
    )


def _missing_or_never(feature: int, missing: bool) -> Condition:
    return Condition(feature, lower=np.inf, upper=-np.inf, missing=missing)


def _category_split(
    feature: int, left: frozenset[int], n_categories: int, missing_left: bool, unseen_left: bool
) -> tuple[Condition, Condition]:
    """x in left, and x in the other categories."""
    right = frozenset(range(n_categories)) - left
    return (
        Condition(feature, missing=missing_left, categories=left, unseen=unseen_left),
        Condition(feature, missing=not missing_left, categories=right, unseen=not unseen_left),
    )


def _reader(forest: Any) -> Callable[[Any, Sequence[EncodedColumn], Schema], list[_Tree]]:
    """The function that reads this kind of forest."""
    kind, module = type(forest).__name__, type(forest).__module__
    fitted_with, read = _READERS.get((module.split(".")[0], kind), (None, None))
    if fitted_with is None or read is None:
        raise TypeError(f"forest must be one of {_SUPPORTED}; got {kind}")
    if not hasattr(forest, fitted_with):
        raise ValueError(f"forest is a {kind} without fit; call forest.fit(X, y) first")
    return read


# Columns of the forest, and columns of the table


def _n_columns(forest: Any) -> int:
    return forest.num_feature() if type(forest).__name__ == "Booster" else int(forest.n_features_in_)


def _schema_of(forest: Any) -> Schema:
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        names = [f"x{i}" for i in range(_n_columns(forest))]
    return Schema(tuple(Feature(str(name)) for name in names), "own_category")


def _columns(forest: Any, table: Table | None, schema: Schema) -> tuple[EncodedColumn, ...]:
    """What every column of the forest is in the table."""
    n = _n_columns(forest)
    as_they_are = tuple(EncodedColumn(f, None) for f in range(len(schema.features)))
    if table is None:
        return as_they_are
    is_lightgbm = type(forest).__module__.startswith("lightgbm")
    names = [] if is_lightgbm else [str(name) for name in getattr(forest, "feature_names_in_", [])]
    if names and set(names) == set(schema.names):  # trained on this dataframe
        return tuple(EncodedColumn(schema.names.index(name), None) for name in names)
    if not names:
        knows_categories = is_lightgbm or type(forest).__name__.startswith("Hist")
        if n == len(as_they_are) and (knows_categories or all(feature.is_numeric for feature in schema.features)):
            return as_they_are
        encoded = table.one_hot()[1]
        if n == len(encoded):
            return encoded
    raise ValueError(
        f"forest was trained on {n} columns that are not those of X ({len(schema.features)} columns"
        + (", which make other one-hot columns" if any(not f.is_numeric for f in schema.features) else "")
        + "); pass the training data, and train on jaxrules.as_table(X).one_hot()[0] where X has categories"
    )


# scikit-learn's trees


def _float64_threshold(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """The float64 t' with x <= t' exactly where float32(x) <= threshold.

    Let a be the largest float32 number that does not exceed the threshold and b the next one. Float64 numbers
    between them round to the nearer, at the midpoint to the one with an even mantissa.
    """
    nearest = threshold.astype(np.float32)
    a = np.where(nearest <= threshold, nearest, np.nextafter(nearest, np.float32(-np.inf)))
    b = np.nextafter(a, np.float32(np.inf))
    midpoint = (a.astype(np.float64) + b.astype(np.float64)) / 2
    with np.errstate(over="ignore"):  # the midpoint above the largest float32 number rounds to infinity
        belongs_to_a = midpoint.astype(np.float32) == a
    return np.where(belongs_to_a, midpoint, np.nextafter(midpoint, -np.inf))


def _sklearn_trees(forest: Any, columns: Sequence[EncodedColumn], schema: Schema) -> list[_Tree]:
    estimators = np.ravel(forest.estimators_) if hasattr(forest, "estimators_") else [forest]
    return [_sklearn_tree(estimator.tree_, columns, schema) for estimator in estimators]


def _sklearn_tree(tree: Any, columns: Sequence[EncodedColumn], schema: Schema) -> _Tree:
    thresholds = _float64_threshold(tree.threshold)
    missing_left = np.asarray(tree.missing_go_to_left, bool)

    def split(node: int) -> tuple[Condition, Condition]:
        feature, category = columns[tree.feature[node]]
        if category is None:
            return _numeric_split(feature, float(thresholds[node]), bool(missing_left[node]))
        n_categories = len(schema.features[feature].categories or ())
        return (  # indicator 0 to the left, 1 to the right
            Condition.none_of(feature, [category], n_categories),
            Condition.one_of(feature, [category]),
        )

    return _Tree(tree.children_left.tolist(), tree.children_right.tolist(), split)


# HistGradientBoosting


def _hist_trees(forest: Any, columns: Sequence[EncodedColumn], schema: Schema) -> list[_Tree]:
    # Inside, categorical columns come first, as codes of the encoder's categories.
    categorical = forest.is_categorical_
    inside = list(range(len(columns)))
    names: dict[int, list[str]] = {}
    if categorical is not None and getattr(forest, "_preprocessor", None) is not None:
        inside.sort(key=lambda column: not categorical[column])
        encoder = forest._preprocessor.named_transformers_["encoder"]
        for position, categories in enumerate(encoder.categories_):
            names[position] = ["" if category != category else str(category) for category in categories]
    return [
        _hist_tree(predictor, [columns[i] for i in inside], schema, names)
        for iteration in forest._predictors
        for predictor in iteration
    ]


def _hist_tree(predictor: Any, columns: Sequence[EncodedColumn], schema: Schema, names: dict[int, list[str]]) -> _Tree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)

    def split(node: int) -> tuple[Condition, Condition]:
        position = int(nodes["feature_idx"][node])
        feature = columns[position].feature
        missing_left = bool(nodes["missing_go_to_left"][node])
        if not nodes["is_categorical"][node]:
            return _numeric_split(feature, float(nodes["num_threshold"][node]), missing_left)
        bits = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]]
        codes = [code for code in range(256) if bits[code // 32] >> (code % 32) & 1]
        left, n = _codes_to_left(schema.features[feature], names.get(position), codes)
        return _category_split(feature, left, n, missing_left, unseen_left=missing_left)

    return _Tree(
        np.where(leaf, _NO_CHILD, nodes["left"].astype(np.int64)).tolist(),
        np.where(leaf, _NO_CHILD, nodes["right"].astype(np.int64)).tolist(),
        split,
    )


def _codes_to_left(feature: Feature, names: list[str] | None, codes: Sequence[int]) -> tuple[frozenset[int], int]:
    """The forest's category codes as those of the table."""
    if feature.categories is None or names is None:
        raise ValueError(
            f"forest treats column {feature.name!r} as categorical, but X has it as numbers; train the forest on a "
            "dataframe with a categorical column, and pass that dataframe as X"
        )
    known = {category: code for code, category in enumerate(feature.categories)}
    chosen = [names[code] for code in codes if code < len(names)]
    return frozenset(known[name] for name in chosen if name in known), len(known)


# LightGBM


def _lightgbm_trees(forest: Any, columns: Sequence[EncodedColumn], schema: Schema) -> list[_Tree]:
    booster = forest if type(forest).__name__ == "Booster" else forest.booster_
    model = booster.dump_model()
    # Category codes are positions in these lists, one list per categorical column in column order.
    lists = model.get("pandas_categorical") or []
    categorical = [c.feature for c in columns if not schema.features[c.feature].is_numeric]
    names = dict(zip(categorical, ([str(value) for value in values] for values in lists), strict=False))
    return [_lightgbm_tree(tree["tree_structure"], columns, schema, names) for tree in model["tree_info"]]


def _lightgbm_tree(
    root: dict[str, Any], columns: Sequence[EncodedColumn], schema: Schema, names: dict[int, list[str]]
) -> _Tree:
    nodes, left, right = [root], [_NO_CHILD], [_NO_CHILD]
    for index, node in enumerate(nodes):  # grows while it runs
        if "split_feature" in node:
            left[index], right[index] = len(nodes), len(nodes) + 1
            nodes += [node["left_child"], node["right_child"]]
            left += [_NO_CHILD] * 2
            right += [_NO_CHILD] * 2

    def split(index: int) -> tuple[Condition, Condition]:
        node = nodes[index]
        feature, category = columns[node["split_feature"]]
        if node["decision_type"] == "==":
            codes = [int(code) for code in node["threshold"].split("||")]
            chosen, n = _codes_to_left(schema.features[feature], names.get(feature), codes)
            return _category_split(feature, chosen, n, missing_left=False, unseen_left=False)
        threshold, default_left = float(node["threshold"]), bool(node["default_left"])
        if category is not None:
            n_categories = len(schema.features[feature].categories or ())
            return Condition.none_of(feature, [category], n_categories), Condition.one_of(feature, [category])
        zero_left = threshold >= 0
        if node["missing_type"] == "Zero" and default_left != zero_left:
            raise ValueError(
                "forest was trained with zero_as_missing=True and sends zeros apart from their neighbours, which no "
                "interval can say; train it with zero_as_missing=False"
            )
        # Without a missing type, LightGBM reads a missing value as zero.
        missing_left = zero_left if node["missing_type"] == "None" else default_left
        return _numeric_split(feature, threshold, missing_left)

    return _Tree(left, right, split)


# Duplicates


def _key(rule: tuple[Condition, ...]) -> frozenset[Condition]:
    return frozenset(rule)


def _distinct(rules: Conjunctions, table: Table, drop_complements: bool) -> Conjunctions:
    """One rule of those that the same rows satisfy; none that all rows or no row satisfies."""
    satisfied = rules.satisfied(table)
    coverage = satisfied.sum(axis=0)
    order = np.lexsort((rules.lengths, coverage)) if drop_complements else np.argsort(rules.lengths, kind="stable")
    if drop_complements:
        satisfied = satisfied ^ satisfied[:1]  # a rule and its complement become equal
    packed = np.ascontiguousarray(np.packbits(satisfied, axis=0).T)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first = np.unique(keys[order], return_index=True)
    kept = np.sort(order[first])
    return rules.take(kept[(coverage[kept] > 0) & (coverage[kept] < table.n_rows)])


_READERS: dict[tuple[str, str], tuple[str, Callable[[Any, Sequence[EncodedColumn], Schema], list[_Tree]]]] = {
    **{("sklearn", f"{name}{task}"): (fitted_with, read)
       for name, fitted_with, read in (
           ("DecisionTree", "tree_", _sklearn_trees),
           ("ExtraTree", "tree_", _sklearn_trees),
           ("RandomForest", "estimators_", _sklearn_trees),
           ("ExtraTrees", "estimators_", _sklearn_trees),
           ("GradientBoosting", "estimators_", _sklearn_trees),
           ("HistGradientBoosting", "_predictors", _hist_trees),
       )
       for task in ("Classifier", "Regressor")},
    **{("lightgbm", name): (fitted_with, _lightgbm_trees)
       for name, fitted_with in (
           ("LGBMClassifier", "n_features_"), ("LGBMRegressor", "n_features_"),
           ("LGBMRanker", "n_features_"), ("Booster", "dump_model"),
       )},
}  # fmt: skip
"""By library and class: the attribute that a fitted forest has, and the function that reads it."""
