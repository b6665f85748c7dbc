"""Rules from tree ensembles: every node but the root is the conjunction of the splits above it.

The rules route every row exactly as the trees do (see `jaxrules.ensembles.forests`), without casts
at prediction.

A forest splits on columns; a rule uses features of a `Table`. The columns are those of the table
or, if the table has categories and the forest none, those of `Table.one_hot`: a split on an
indicator then becomes "category == value" or "category != value".
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args, overload

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import (
    MISSING,
    EncodedColumn,
    Feature,
    Schema,
    Table,
    TableLike,
    as_table,
    category_text,
)
from jaxrules.ensembles.forests import (
    NO_NODE,
    NO_SET,
    Forest,
    holds_trees,
    is_fitted,
    read_forest,
    reads_float32,
)
from jaxrules.ensembles.growing import DEFAULT_KIND, N_TREES, TreeColumns, TreeKind, grow
from jaxrules.ensembles.in_time import FORESTS, short_rules
from jaxrules.learning.in_time import rows_for_rules
from jaxrules.learning.training import TrainingData
from jaxrules.rules.conditions import Conjunctions, all_propositions
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import Activations
from jaxrules.tools import checks
from jaxrules.tools.runs import Run

_NOT_KNOWN = -1
_RULES_PER_BLOCK = 1 << 16
_CUT_POINTS = 9
"""The number of cut points for a required column that no tree splits on."""
_ROWS_COMPARED = 16
"""The number of rows on which given activations are checked against the rules."""
_FOREST_SHARE = 0.4
"""Share of the time limit for growing trees."""


class RulePool(NamedTuple):
    """Candidate rules and the training rows for which they hold. Learners accept it as
    ``rules=``.
    """

    rules: Conjunctions
    activations: Activations

    def with_rules(self, rules: Conjunctions, table: Table) -> RulePool:
        """These rules and additional ones, on the rows of `table`."""
        joint = Conjunctions.concatenate([self.rules, rules])
        return RulePool(joint, self.activations.extended(rules.satisfied(table)))


@overload
def extract_rules(
    forest: Any, X: TableLike | None = None, *, drop_duplicates: bool = True,
    drop_complements: bool = False, leaves_only: bool = False, activations: Literal[False] = False,
) -> Conjunctions: ...  # fmt: skip
@overload
def extract_rules(
    forest: Any, X: TableLike | None = None, *, drop_duplicates: bool = True,
    drop_complements: bool = False, leaves_only: bool = False, activations: Literal[True],
) -> RulePool: ...  # fmt: skip
def extract_rules(
    forest: Any,
    X: TableLike | None = None,
    *,
    drop_duplicates: bool = True,
    drop_complements: bool = False,
    leaves_only: bool = False,
    activations: bool = False,
) -> Conjunctions | RulePool:
    """The rules of a fitted tree ensemble, with conditions on one feature merged.

    Args:
        forest: a fitted decision tree, RandomForest, ExtraTrees, GradientBoosting or
            HistGradientBoosting of scikit-learn (classifier or regressor), or a LightGBM model
            (scikit-learn interface or Booster).
        X: the training data, as `as_table` takes them; missing values are allowed. The forest must
            have been trained on these columns, or on ``as_table(X).one_hot()[0]`` if X has
            categories that the forest does not know. None takes names and categories from the
            forest (names are x0, x1, ... if it has none).
        drop_duplicates: of rules that hold for the same rows of `X`, keep one (with the fewest
            conditions, then the first); drop rules that hold for all rows or for none, which carry
            no information. Without `X`, only rules with the same conditions are duplicates.
        drop_complements: of two rules that are complements on the rows of `X`, keep only the one
            with lower coverage.
        leaves_only: only the rules of the leaves, which partition the rows in each tree.
        activations: return a `RulePool`, the rules and the rows of `X` for which they hold, so that
            a learner given this as ``rules=``, with the same `X`, need not evaluate them again.

    Returns:
        The rules in the order of the trees, and within a tree in the forest's order of nodes.

        In a numeric column without missing values in `X`, a missing value satisfies no condition,
        because the forest has not learned where to send it. Elsewhere it follows the routing of the
        forest.

        Thresholds are exact, such as 0.5000000298023224 for the numbers that scikit-learn's float32
        rounds to 0.5. ``rules.with_short_thresholds(table)`` keeps the rows of the table only.

        The number of propositions of a rule is the number of splits that lead to its node, and the
        smallest such number for rules with the same conditions.

    Raises:
        TypeError: for a model that is not a tree ensemble.
        ValueError: for a forest that is unfitted, has no split that separates rows, or was trained
            on other columns; for `drop_complements` without `X` and `drop_duplicates`; for
            `activations` without `X`; or if the bits of all rules on all rows do not fit in memory.

    References:
        Friedman and Popescu, "Predictive learning via rule ensembles", 2008, Sec. 3.
    """
    drop_duplicates = checks.flag("drop_duplicates", drop_duplicates)
    drop_complements = checks.flag("drop_complements", drop_complements)
    activations = checks.flag("activations", activations)
    if drop_complements and (X is None or not drop_duplicates):
        raise ValueError(
            "drop_complements compares rules on the rows of X; pass X and drop_duplicates=True"
        )
    if activations and X is None:
        raise ValueError("activations evaluates the rules on the rows of X; pass X")
    found, table = _read_rules(forest, X, leaves_only)
    rules = found.conjunctions
    if drop_duplicates:
        rules = _distinct_conditions(rules)
        if table is not None:
            pool = _without_copies(rules, table, drop_complements)
            rules = pool.rules
        if not len(rules):
            raise ValueError(
                "forest has no rule that holds for some rows of X but not for all; train it on "
                "columns that vary, and pass its training data"
            )
    if not activations or table is None:
        return rules
    return pool if drop_duplicates else RulePool(rules, Activations.of(rules, table))


class TreeRules(NamedTuple):
    """The rules of a forest and their nodes.

    Attributes:
        conjunctions: one rule for every node but the roots, duplicates included. A node of a
            LightGBM tree with ``zero_as_missing=True`` may allow several intervals; it and the
            nodes below it then have one rule for each.
        tree: index of the tree, shape (rules,): the column of ``forest.apply`` or of ``pred_leaf``.
        node: index of the node in its tree, as scikit-learn numbers nodes; LightGBM numbers
            splits and leaves separately.
        is_leaf: shape (rules,).
    """

    conjunctions: Conjunctions
    tree: NDArray[np.int64]
    node: NDArray[np.int64]
    is_leaf: NDArray[np.bool_]


def tree_rules(forest: Any, X: TableLike | None = None, *, leaves_only: bool = False) -> TreeRules:
    """Every rule of a fitted tree ensemble, and the node that it comes from; arguments as in
    `extract_rules`.

    Raises:
        TypeError, ValueError: as `extract_rules`.
    """
    return _read_rules(forest, X, leaves_only)[0]


RuleSource = TreeKind | Conjunctions | RulePool | Any
"""What learners accept as ``rules=``: "boosted_trees", "forest" or "both", grown on the training
rows (see `jaxrules.ensembles.growing`); rules, with or without their activations; or a model that
`extract_rules` reads, fitted or unfitted. None is the default kind.
"""


def rule_pool(
    rules: RuleSource | None,
    data: TrainingData,
    seed: int,
    run: Run,
    may_be_empty: bool = False,
    constraints: Constraints | None = None,
) -> RulePool:
    """The candidates that a learner's ``rules=`` means, see `RuleSource`; the default kinds get the
    shortest thresholds with which the rules hold for the same rows.

    A time limit reduces the number of trees, so that the search has most of the time. If there is
    no time to import scikit-learn, rules boosted on some rows replace the trees. If no time
    remains, or no tree finds a useful split, the pool is empty. Rules without an admissible weight
    under the constraints are dropped. Trees grown here do not split on forbidden columns. If no
    rule uses a required column, conditions on it are added.

    Raises:
        TypeError: if `rules` are neither rules nor trees.
        ValueError: for rules built for other columns or with activations on other rows, for an
            empty pool, or if the constraints exclude every rule.
    """
    grown_on, grown = data, depends_on_labels(rules)
    if constraints is not None:
        grown_on = dataclasses.replace(data, table=constraints.blanked(data.table))
    if rules is None or isinstance(rules, str):
        kind = checks.choice("rules", DEFAULT_KIND if rules is None else rules, get_args(TreeKind))
        rules, activations = _grown(kind, grown_on, seed, run)
    elif isinstance(rules, RulePool):
        rules, activations = rules
        # Given activations are trusted after a look at a few rows: comparing all would cost as much
        # as evaluating the rules again.
        some = data.rows[:_ROWS_COMPARED]
        first = data.table[np.arange(len(some))]
        checks.require(
            activations.n_rows > data.rows.max()
            and np.array_equal(activations.at(some), rules.satisfied(first)),
            "rules has activations on rows other than those of X; extract them from the same data",
        )
        if activations.n_rows > len(data.rows):
            activations = activations.take_rows(data.rows)
    elif isinstance(rules, Conjunctions):
        checks.require(
            len(rules) > 0 or may_be_empty,
            "rules is empty; extract rules from deeper or more trees",
        )
        activations = Activations.of(rules, data.table)
    else:
        run.preparing("rules")
        rules, activations = extract_rules(_fitted(rules, grown_on), data.table, activations=True)
    pool = RulePool(rules.with_schema(data.schema), activations)
    if constraints is None:
        return pool
    if constraints.forbidden or constraints.monotone:
        # A rule is of use if it may speak for some class, or for more or less of a number.
        kept = np.flatnonzero(constraints.allows(pool.rules, max(len(data.outputs), 2)).any(axis=1))
        if len(pool.rules) and not len(kept) and not may_be_empty:
            raise ValueError(
                "forbidden and monotone exclude every rule; pass other rules, or constrain fewer "
                "columns"
            )
        activations = Activations(activations.bits[kept], activations.pattern)
        pool = RulePool(pool.rules.take(kept), activations)
    return _with_required(pool, data, constraints) if grown else pool


def _with_required(pool: RulePool, data: TrainingData, constraints: Constraints) -> RulePool:
    """Add conditions, at a few quantiles, on the required columns that no rule uses."""
    using = zip(constraints.required, constraints.using(pool.rules), strict=True)
    unused = {column for column, rules in using if not rules.any()}
    if not unused:
        return pool
    # Blanking all other columns leaves conditions on the unused ones alone.
    others = frozenset(range(len(data.table.schema.names))) - unused
    alone = dataclasses.replace(constraints, forbidden=others)
    conditions = all_propositions(alone.blanked(data.table), max_cut_points=_CUT_POINTS)
    kept = np.flatnonzero(alone.allows(conditions, max(len(data.outputs), 2)).any(axis=1))
    return pool.with_rules(conditions.take(kept).with_schema(data.schema), data.table)


def depends_on_labels(rules: RuleSource | None) -> bool:
    """Whether each fold must make its own rules, from trees grown on its rows."""
    return rules is None or isinstance(rules, str) or (holds_trees(rules) and not is_fitted(rules))


def _grown(kind: TreeKind, data: TrainingData, seed: int, run: Run) -> RulePool:
    """The rules of `growing.default_forest`, within the time limit."""
    run.preparing("rules")
    if run.stopped() or (run.deadline.seconds and not run.may_import("sklearn.ensemble")):
        run.shortened = True
        return _boosted(data, seed, run)
    importlib.import_module("sklearn.ensemble")  # may take seconds, which the trees do not pay for
    part = run.child(_FOREST_SHARE)
    is_class = data.classes is not None
    forest = grow(
        kind, data.table, data.labels, data.weights, is_class, seed=seed, stopped=part.stopped
    )
    run.shortened |= forest is None or len(forest.estimators_) < N_TREES
    if forest is None:
        return _boosted(data, seed, run)
    # No time to extract rules, or single leaves only, which have none
    if run.stopped() or all(tree.tree_.node_count == 1 for tree in forest.estimators_):
        return _no_rules(data)
    rules, activations = extract_rules(forest, data.table, activations=True)
    return RulePool(rules.with_short_thresholds(data.table), activations)


def _boosted(data: TrainingData, seed: int, run: Run) -> RulePool:
    """The rules of `short_rules` on some rows, instead of trees."""
    sample = None if run.stopped() else rows_for_rules(data, run, seed, (FORESTS,))
    if sample is None:
        return _no_rules(data)
    rules = short_rules(sample, run).conjunctions.with_schema(data.table.schema)
    return RulePool(rules, Activations.of(rules, data.table))


def _no_rules(data: TrainingData) -> RulePool:
    none = Conjunctions.build(data.table.schema, [])
    return RulePool(none, Activations.of(none, data.table))


def _fitted(model: Any, data: TrainingData) -> Any:
    """A fitted tree model; an unfitted one is copied and fitted to the data as in `grow`."""
    if not holds_trees(model):
        raise TypeError(
            "rules must be Conjunctions (see jaxrules.extract_rules), one of "
            f"{', '.join(map(repr, get_args(TreeKind)))}, or an ensemble of trees, got "
            f"{type(model).__name__}"
            f"{checks.its_conjunctions(model)}"
        )
    if is_fitted(model):
        return model
    from sklearn.base import clone

    # Equal weights change nothing, but scikit-learn would draw other rows with them.
    given = {} if (data.weights == data.weights[0]).all() else {"sample_weight": data.weights}
    if not reads_float32(model):
        return clone(model).fit(data.table.one_hot()[0], data.labels, **given)
    columns = TreeColumns.of(data.table)
    return columns.read(clone(model).fit(columns.matrix, data.labels, **given))


# Trees of any library


def _read_rules(
    forest: Any, X: TableLike | None, leaves_only: bool
) -> tuple[TreeRules, Table | None]:
    """The rules of the nodes, and `X` as a table."""
    leaves_only, read = checks.flag("leaves_only", leaves_only), read_forest(forest)
    table = None if X is None else as_table(X, missing="own_category")
    if not (read.trees.parent != NO_NODE).any():
        raise ValueError(
            "forest has no split, so no rules; train deeper trees on columns that vary"
        )
    if table is None:
        read = _with_listed_categories(read, None)
        schema = _own_schema(read)
        columns: Sequence[EncodedColumn] = [EncodedColumn(f, None) for f in range(read.n_columns)]
        complete = np.zeros(len(schema.features), bool)
    else:
        schema = table.schema
        read, columns = _match_columns(read, table)
        complete = np.array([not table.missing_mask(f).any() for f in range(len(schema.features))])
    edges = _edges(read, columns, schema, complete)
    trees = read.trees
    nodes = np.flatnonzero((trees.parent != NO_NODE) & (trees.is_leaf | (not leaves_only)))
    conjunctions = _merged(edges, nodes)
    conjunctions.validate()
    tags = trees.tree[nodes], trees.node[nodes], trees.is_leaf[nodes]
    return TreeRules(conjunctions, *tags), table


# Columns of the forest, and features of the table


def _own_schema(forest: Forest) -> Schema:
    """The schema that the forest itself records."""
    names = forest.names or tuple(f"x{i}" for i in range(forest.n_columns))
    features = []
    for column, name in enumerate(names):
        values = forest.categories.get(column, {}).values()
        known = tuple(sorted(category_text(v) for v in values if v is not None))
        features.append(Feature(name, known or None))
    return Schema(tuple(features), "own_category")


def _match_columns(forest: Forest, table: Table) -> tuple[Forest, Sequence[EncodedColumn]]:
    """The table's column for every column of the forest."""
    schema = table.schema
    categorical = [feature.name for feature in schema.features if not feature.is_numeric]
    # The columns are those of the table, one each, unless only the table has categories: then the
    # forest saw indicators.
    if forest.categories or not categorical:
        features = _match_names(forest, schema)
        kinds = [schema.features[f].kind for f in features]
        # LightGBM lists the categories of its dataframe columns without their names. They are as
        # many as the text and ordered columns of the table, or as the text ones.
        listed = [column for column, kind in enumerate(kinds) if kind in ("text", "ordered")]
        if len(listed) != len(forest.category_lists or ()):
            listed = [column for column in listed if kinds[column] == "text"]
        return _with_listed_categories(forest, listed), [EncodedColumn(f, None) for f in features]
    encoded = _encoding(table) if forest.encoded is None else forest.encoded
    if forest.names is None and forest.n_columns == len(encoded):
        return forest, encoded
    raise ValueError(
        f"forest was trained on {forest.n_columns} numeric columns, but X has the categorical "
        f"columns {', '.join(map(repr, categorical[:8]))}: {len(encoded)} columns when one-hot "
        "encoded; train the forest on jaxrules.as_table(X).one_hot()[0], and pass the same X"
    )


def _match_names(forest: Forest, schema: Schema) -> list[int]:
    """The feature for every column: by name if both sides have names, else by position."""
    if forest.names is not None:
        of_lightgbm = tuple(name.replace(" ", "_") for name in schema.names)
        for names in (schema.names, of_lightgbm):
            if set(names) == set(forest.names):
                return [names.index(name) for name in forest.names]
    unnamed = schema.names == tuple(f"x{i}" for i in range(len(schema.names)))
    # Names that differ are a mistake, unless the table has none of its own: then positions decide.
    if forest.n_columns == len(schema.features) and (forest.names is None or unnamed):
        return list(range(forest.n_columns))
    n = len(schema.features)
    if forest.names is None or forest.n_columns != n:
        detail = f"{forest.n_columns} columns that are not those of X, which has {n}"
    else:
        absent = [name for name in forest.names if name not in schema.names]
        detail = f"columns that X lacks: {', '.join(map(repr, absent[:8]))}"
    raise ValueError(f"forest was trained on {detail}; pass its training data")


def _encoding(table: Table) -> tuple[EncodedColumn, ...]:
    """The columns of ``table.one_hot()`` without its matrix, computed from one row per feature,
    with a missing value if it has any.
    """
    masks = [table.missing_mask(f) for f in range(len(table.schema.features))]
    return table[np.array([int(mask.argmax()) for mask in masks])].one_hot()[1]


def _with_listed_categories(forest: Forest, categorical: Sequence[int] | None) -> Forest:
    """LightGBM's lists of categories, one per dataframe column of type category,
    assigned to their columns.
    """
    lists = forest.category_lists
    if not lists:
        return forest
    known = sorted(forest.categories)
    # The columns that LightGBM dropped as constant may have a list as well: take the first set of
    # columns that is as many as the lists.
    for columns in (categorical or (), known, sorted([*known, *forest.constant_columns])):
        if len(columns) == len(lists):
            listed = {
                column: dict(enumerate(values))
                for column, values in zip(columns, lists, strict=True)
            }
            categories = {**forest.categories, **listed}
            return Forest(forest.trees, forest.n_columns, forest.names, categories)
    raise ValueError(
        f"forest was trained on {len(lists)} columns of type category, but X has "
        f"{len(categorical or known)}; pass its training dataframe"
    )


@dataclass(frozen=True)
class _Edges:
    """The conditions of `Trees` on features of a table; all are (nodes,) except `allowed`, (nodes,
    categories), and `complete`, the features without missing values.
    """

    schema: Schema
    complete: NDArray[np.bool_]
    parent: NDArray[np.int64]
    feature: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    missing: NDArray[np.bool_]
    unseen: NDArray[np.bool_]
    allowed: NDArray[np.bool_]


def _edges(
    forest: Forest, columns: Sequence[EncodedColumn], schema: Schema, complete: NDArray[np.bool_]
) -> _Edges:
    """Conditions on features; a missing value satisfies none on a `complete` numeric feature."""
    trees = forest.trees
    of_column = np.array([column.feature for column in columns], np.int64)
    feature = of_column[np.maximum(trees.column, 0)]  # leaves have no column, and no edge
    width = max((len(f.categories) for f in schema.features if f.categories is not None), default=0)
    allowed = np.zeros((len(feature), width), bool)
    numeric = np.array([f.is_numeric for f in schema.features])
    # A column without missing values has taught the forest nothing about them.
    missing = trees.missing & ~(complete & numeric)[feature]
    unseen = np.zeros(len(feature), bool)
    lower, upper = trees.lower.copy(), trees.upper.copy()
    is_edge = trees.parent != NO_NODE
    for column in np.unique(trees.column[is_edge]).tolist():
        f, category = columns[column]
        on = np.flatnonzero(is_edge & (trees.column == column))
        categories = schema.features[f].categories
        splits_codes = trees.category_set[on[0]] != NO_SET
        if category is None and splits_codes != (categories is not None):
            raise ValueError(_wrong_kind(schema.features[f].name, splits_codes))
        if categories is None:
            continue
        n = len(categories)
        if category is None:
            in_set = trees.sets[trees.category_set[on]]
            # For each category of the table, whether the edge's set has its code. One that the
            # forest never saw goes where missing and unknown values go.
            codes, missing_code = _forest_codes(
                schema.features[f], forest.categories[column], forest.names is not None
            )
            known = (codes != _NOT_KNOWN) & (codes < in_set.shape[1])
            allowed[on, :n] = np.where(
                known, in_set[:, np.where(known, codes, 0)], trees.missing[on, None]
            )
            unseen[on] = trees.missing[on]
            if missing_code is not None:
                missing[on] = in_set[:, missing_code]
        else:  # an indicator: 0 for all categories but one
            # A row of another category has 0 in this column, one of the category has 1: the
            # interval of the edge says which of the two pass.
            has_zero = (trees.lower[on] < 0) & (trees.upper[on] >= 0)
            has_one = (trees.lower[on] < 1) & (trees.upper[on] >= 1)
            allowed[on, :n] = has_zero[:, None]
            unseen[on] = missing[on] = has_zero
            if category == MISSING:
                missing[on] = has_one
            else:
                allowed[on, category] = has_one
            lower[on], upper[on] = -np.inf, np.inf
    return _Edges(schema, complete, trees.parent, feature, lower, upper, missing, unseen, allowed)


def _wrong_kind(name: str, in_forest: bool) -> str:
    if in_forest:
        return (
            f"forest treats column {name!r} as categorical, but it is numeric in X; pass X as a "
            f"dataframe in which it is text, e.g. frame.astype({{{name!r}: str}})"
        )
    return (
        f"column {name!r} of X is categorical, but the forest compares it with thresholds; train "
        "the forest on a categorical column, or on jaxrules.as_table(X).one_hot()[0]"
    )


def _forest_codes(
    feature: Feature, values: Mapping[int, Any], named: bool
) -> tuple[NDArray[np.int64], int | None]:
    """The forest's code of every category of the feature, and its code for a missing value, if any.

    Text values are the names of the categories. Numbers are also names ("3") or, if the forest was
    trained on an array, the codes of the `Table` itself.
    """
    n = len(feature.categories or ())
    known = {code: value for code, value in values.items() if value is not None}
    missing_code = next((code for code, value in values.items() if value is None), None)
    by_name = {
        text: code for code, value in known.items() for text in (category_text(value), str(value))
    }
    names = np.array(
        [by_name.get(category, _NOT_KNOWN) for category in feature.categories or ()], np.int64
    )
    # Of a dataframe, values are names. Of an array, whole numbers may be codes of the table; if
    # they could be either and the two readings differ, nothing can decide.
    has_names = bool((names != _NOT_KNOWN).any())
    if has_names and named:
        return names, missing_code
    if all(not isinstance(value, str) and value in range(MISSING, n) for value in known.values()):
        by_number = {int(value): code for code, value in known.items()}
        codes = np.array([by_number.get(code, _NOT_KNOWN) for code in range(n)], np.int64)
        if has_names and (codes != names).any():
            raise ValueError(
                f"the categories of column {feature.name!r} are numbers as text, and the forest "
                "was trained on an array of numbers, which could be these or the codes of a Table; "
                "train it on a dataframe with that column as a category"
            )
        return codes, by_number.get(MISSING, missing_code)
    if not has_names:
        raise ValueError(
            f"forest has the categories {', '.join(map(str, list(known.values())[:5]))} in column "
            f"{feature.name!r}, but X has none of them; pass the training data of the forest"
        )
    return names, missing_code


# Rules: the edges above a node, merged by feature


def _merged(edges: _Edges, nodes: NDArray[np.int64]) -> Conjunctions:
    """One rule per node; conditions in the order of their features on the path from the root."""
    blocks = [
        _merged_block(edges, nodes[start : start + _RULES_PER_BLOCK])
        for start in range(0, len(nodes), _RULES_PER_BLOCK)
    ]
    return blocks[0] if len(blocks) == 1 else Conjunctions.concatenate(blocks)


def _merged_block(edges: _Edges, nodes: NDArray[np.int64]) -> Conjunctions:
    # All edges above all nodes, sorted by rule and feature: each run of equal keys is one
    # condition, the intersection of its edges (maximum of lower ends, minimum of upper ends,
    # logical and).
    rule, edge, height = _paths(edges.parent, nodes)
    key = rule * len(edges.schema.features) + edges.feature[edge]
    order = np.argsort(key, kind="stable")
    rule, edge, height, key = rule[order], edge[order], height[order], key[order]
    # The edges of one rule on one feature form a group; their intersection is its condition.
    start = np.flatnonzero(np.diff(key, prepend=-1))
    feature = edges.feature[edge[start]]
    lower = np.maximum.reduceat(edges.lower[edge], start)
    upper = np.minimum.reduceat(edges.upper[edge], start)
    missing = np.logical_and.reduceat(edges.missing[edge], start)
    unseen = np.logical_and.reduceat(edges.unseen[edge], start)
    allowed = np.zeros((len(start), edges.allowed.shape[1]), bool)
    if allowed.size:
        allowed = np.logical_and.reduceat(edges.allowed[edge], start, axis=0)
    empty = lower >= upper
    lower[empty], upper[empty] = np.inf, -np.inf  # the canonical empty interval
    # What every value satisfies is no condition.
    sizes = np.array([len(f.categories or ()) for f in edges.schema.features])[feature]
    anything = (lower == -np.inf) & (upper == np.inf)
    anything = np.where(sizes == 0, anything, unseen & (allowed.sum(axis=1) == sizes))
    trivial = anything & (missing | edges.complete[feature])
    from_root = np.lexsort((-np.maximum.reduceat(height, start), rule[start]))
    kept = from_root[~trivial[from_root]]
    lengths = np.bincount(rule[start][kept], minlength=len(nodes))
    return Conjunctions(
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        feature=feature[kept].astype(np.int32),
        lower=lower[kept],
        upper=upper[kept],
        lower_closed=np.zeros(len(kept), bool),
        upper_closed=np.ones(len(kept), bool),
        missing=missing[kept],
        unseen=unseen[kept],
        allowed=allowed[kept],
        propositions=np.bincount(rule, minlength=len(nodes)).astype(np.int32),
        schema=edges.schema,
    )


def _paths(
    parent: NDArray[np.int64], nodes: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The edges above every node: index of the node in `nodes`, edge, and
    its height above the node.
    """
    # All nodes climb one edge per round, and leave the loop below their root.
    rule, edge = np.arange(len(nodes)), nodes
    rules, edges = [], []
    while len(rule):
        rules.append(rule)
        edges.append(edge)
        above = parent[edge]
        inner = parent[above] != NO_NODE
        rule, edge = rule[inner], above[inner]
    heights = [np.full(len(one), height) for height, one in enumerate(rules)]
    return np.concatenate(rules), np.concatenate(edges), np.concatenate(heights)


# Duplicates


def _distinct_conditions(rules: Conjunctions) -> Conjunctions:
    """The first of the rules with equal conditions, with the smallest number of splits of any;
    rules that always or never hold are dropped.
    """
    arrays = (
        rules.feature, rules.lower, rules.upper, rules.lower_closed, rules.upper_closed,
        rules.missing, rules.unseen, rules.allowed,
    )  # fmt: skip
    n = len(rules.feature)
    # Negative zero equals zero: adding zero makes it so.
    texts = [
        np.ascontiguousarray(one + 0.0 if one.dtype.kind == "f" else one).view(np.uint8)
        for one in arrays
    ]
    octets = np.concatenate([one.reshape(n, -1) for one in texts], axis=1)
    of_categories = rules.allowed.any(axis=1) | rules.unseen
    some = np.where(rules.is_numeric, rules.lower < rules.upper, of_categories) | rules.missing
    # Rules with equal conditions may have met the features in another order.
    by_feature = np.lexsort((rules.feature, np.repeat(np.arange(len(rules)), rules.lengths)))
    octets, never = octets[by_feature], ~some
    first: dict[bytes, int] = {}
    fewest: dict[bytes, int] = {}
    splits = rules.propositions.tolist()
    for index, (start, stop) in enumerate(pairwise(rules.offsets.tolist())):
        if stop > start and not never[start:stop].any():
            # The rule is known by the bytes of its conditions. Both dictionaries get their keys in
            # the same order.
            key = octets[start:stop].tobytes()
            first.setdefault(key, index)
            fewest[key] = min(fewest.get(key, splits[index]), splits[index])
    kept = rules.take(list(first.values()))
    return dataclasses.replace(kept, propositions=np.array(list(fewest.values()), np.int32))


def _without_copies(rules: Conjunctions, table: Table, complements: bool) -> RulePool:
    """The shortest, then first, of rules that hold on the same rows; none that
    holds on all rows or on none.

    Among complements, lower coverage comes before length.
    """
    activations = Activations.of(rules, table)
    # `lexsort` is stable: of rules of equal length, the first stays first.
    order = np.lexsort((rules.lengths, *((activations.covered(),) if complements else ())))
    kept, activations = activations.without_copies(order, complements=complements)
    return RulePool(rules.take(kept), activations)
