"""The trees that candidate rules come from: boosted trees, a random forest, or both.

"forest" is the random forest of the experiments in the LIRE paper (Kanamori 2023, Sec. 5): 100
trees of depth at most 3. "boosted_trees" is stochastic gradient boosting as in RuleFit (Friedman
and Popescu 2008, Sec. 3.3), also 100 trees of depth at most 3: each is fitted to the slopes of the
loss at the scores of the earlier trees, so that later trees correct earlier ones, on its own random
sample of min(n / 2, 100 + 6 sqrt(n)) rows. Rows are sorted by content before they are drawn, so
their order in X has no effect, except for "forest". The loss is the logistic loss for classes and
the squared error for numbers, whatever the learner: with equal data, weights and seeds, all
learners get equal trees, and so equal rules.

Trees see categories as indicators (`Table.one_hot`), and missing values unchanged. Numbers too
close together for scikit-learn's trees are spread apart (`jaxrules.ensembles.forests.Spread`), and
thresholds that are numbers of the column but for rounding are moved to them (`_move_ties`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import (
    MANY_CATEGORIES,
    EncodedColumn,
    Table,
    TableLike,
    as_table,
    check_order,
    check_sample_weight,
    class_target,
    refuse_large,
    regression_target,
    target_array,
)
from jaxrules.ensembles.forests import Spread, estimators_of
from jaxrules.ensembles.oblique import FEWER_COLUMNS, n_encoded
from jaxrules.learning.training import content_order
from jaxrules.rules.rows import check_memory
from jaxrules.tools import checks
from jaxrules.tools.sorting import places_of_equals

TreeKind = Literal["boosted_trees", "forest", "both"]
DEFAULT_KIND: TreeKind = "boosted_trees"
N_TREES = 100
MAX_DEPTH = 3
_FEWER_TREES = (2, 8, 32)
_FIRST_TREES = 2
"""The numbers of trees that may remain after a stop, and the first number of trees of a forest,
which then doubles.
"""
_LEARNING_RATE = 0.1
_SHARE_OF_COLUMNS = 0.5
"""The share of columns that are candidates for a split of a boosted tree."""
_LEAF = 5
"""The fewest rows of a leaf of a boosted tree."""
_LONGEST_STEP = 4.0
"""The largest step in log-odds, before the learning rate: in a leaf of one class, no finite step is
best.
"""


@dataclass(frozen=True)
class GrownTrees:
    """Fitted decision trees of scikit-learn, for `extract_rules`.

    Attributes:
        estimators_: the trees.
        n_features_in_: the number of training columns.
        spreads: by column, the numbers that the trees read as others.
        encoded: what the columns are, if not those of ``one_hot()``.
    """

    estimators_: tuple[Any, ...]
    n_features_in_: int
    spreads: Mapping[int, Spread] = field(default_factory=dict)
    encoded: tuple[EncodedColumn, ...] | None = None


@checks.known_arguments
def default_forest(
    X: TableLike,
    y: ArrayLike,
    *,
    kind: TreeKind = "forest",
    classification: bool = True,
    n_trees: int = N_TREES,
    max_depth: int = MAX_DEPTH,
    sample_weight: ArrayLike | None = None,
    seed: int = 0,
) -> Any:
    """The trees behind ``rules=kind``. Categories are one-hot encoded.

    Args:
        X: the data, as `as_table` takes them; missing values are allowed.
        y: labels or numbers, shape (rows,).
        kind: "forest", the random forest of the LIRE paper; "boosted_trees"; or "both", half
            of the trees of each kind.
        classification: False fits numbers.
        n_trees, max_depth: the number and the largest depth of the trees.
        sample_weight: weight of every row, shape (rows,); rows of weight 0 are ignored.
        seed: seed of the sampled rows and columns.

    Returns:
        Trees, for "forest" a fitted random forest of scikit-learn (its trees alone if a column has
        numbers too close together for it); pass them to `extract_rules` with the same `X`.

    Raises:
        ValueError: for a target or weights that do not fit the rows, an unknown kind, or "both"
            with fewer than two trees.
    """
    kind = checks.choice("kind", kind, get_args(TreeKind))
    classification, seed = checks.flag("classification", classification), checks.seed(seed)
    n_trees, max_depth = (
        checks.integer(name, number, at_least=1, at_most=2**31 - 1)
        for name, number in {"n_trees": n_trees, "max_depth": max_depth}.items()
    )
    checks.require(
        kind != "both" or n_trees > 1, "n_trees must be at least 2 for both kinds of trees"
    )
    check_order(X, y=y, sample_weight=sample_weight)
    table = as_table(X, missing="own_category")
    target = target_array(y, table.n_rows)
    if classification:
        codes, _ = class_target(target)
        # scikit-learn refuses fractions as labels
        target = codes if target.dtype.kind == "f" else target
    else:
        target = regression_target(target)
    weight = check_sample_weight(sample_weight, table.n_rows)
    return grow(kind, table, target, weight, classification, n_trees, max_depth, seed)


def grow(
    kind: TreeKind,
    table: Table,
    target: NDArray[Any],
    weight: NDArray[np.float64],
    classification: bool,
    n_trees: int = N_TREES,
    max_depth: int = MAX_DEPTH,
    seed: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> Any:
    """`default_forest`; only the first trees if stopped, None if there was no time for any."""
    refuse_large(table, float(np.finfo(np.float32).max), "which decision trees cannot read")
    if not (used := weight > 0).all():
        table, target, weight = table[used], target[used], weight[used]
    columns = TreeColumns.of(table)
    if kind == "forest":  # scikit-learn draws rows by position, as in the LIRE paper's experiments
        data = columns.matrix, target, weight
        forest = _forest(*data, classification, n_trees, max_depth, seed, stopped)
        return columns.read(forest) if forest is not None else None
    codes = np.unique(target, return_inverse=True)[1]
    # Rows are drawn by place: sorted by content, equal data in another order give equal trees.
    order = content_order(table, codes, weight)
    data = columns.matrix[order], target[order], weight[order]
    # Boosted trees come one by one and so can be stopped after any; the forest follows if there is
    # time left.
    boosted, trees = n_trees // 2 if kind == "both" else n_trees, []
    for tree in _boosted(*data, classification, max_depth, seed):
        trees.append(tree)
        if len(trees) == boosted or stopped():
            break
    if len(trees) == boosted and boosted < n_trees and not stopped():
        forest = _forest(*data, classification, n_trees - boosted, max_depth, seed, stopped)
        trees += [] if forest is None else forest.estimators_
    return columns.trees(trees[: _rounded(len(trees), n_trees)]) if trees else None


class TreeColumns(NamedTuple):
    """The columns of a table as scikit-learn's trees read them.

    Attributes:
        matrix: (rows, columns).
        spreads, encoded: see `GrownTrees`.
    """

    matrix: NDArray[np.float32]
    spreads: dict[int, Spread]
    encoded: tuple[EncodedColumn, ...] | None

    @classmethod
    def of(cls, table: Table) -> TreeColumns:
        """Those of the table.

        Raises:
            ValueError: if they do not fit in memory.
        """
        check_memory(table.n_rows, n_encoded(table), 20.0, what="columns", remedy=FEWER_COLUMNS)
        columns, spread_of = list(table.columns), {}
        for index, feature in enumerate(table.schema.features):
            if feature.categories is None and (spread := Spread.of(columns[index])) is not None:
                columns[index], spread_of[index] = spread.read(columns[index]), spread
        spaced = replace(table, columns=tuple(columns))
        matrix, encoded = spaced.one_hot(only_compared=True)
        spreads = {k: spread_of[f] for k, (f, _) in enumerate(encoded) if f in spread_of}
        sizes = [len(feature.categories or ()) for feature in table.schema.features]
        # Of many categories only the frequent ones are indicators: the trees must then say which
        # columns they saw, as `one_hot()` would have others.
        own = encoded if max(sizes) > MANY_CATEGORIES else None
        with np.errstate(under="ignore"):
            return cls(matrix.astype(np.float32), spreads, own)

    def trees(self, estimators: Sequence[Any]) -> GrownTrees:
        """Trees fitted to the matrix."""
        return GrownTrees(tuple(estimators), self.matrix.shape[1], self.spreads, self.encoded)

    def read(self, model: Any) -> Any:
        """A model fitted to the matrix: its trees alone if its columns are not those of the
        table.
        """
        return self.trees(estimators_of(model)) if self.spreads or self.encoded else model


def _rounded(n: int, whole: int) -> int:
    """Round down to one of a few sizes, so that fits with the same time limit share compiled
    kernels.
    """
    return n if n == whole else max((size for size in _FEWER_TREES if size <= n), default=0)


def _forest(
    X: NDArray[np.float32],
    y: NDArray[Any],
    weight: NDArray[np.float64],
    classification: bool,
    n_trees: int,
    max_depth: int,
    seed: int,
    stopped: Callable[[], bool],
) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if classification else RandomForestRegressor
    forest = kind(
        n_estimators=0, max_depth=max_depth, random_state=seed, n_jobs=-1, warm_start=True
    )
    given: dict[str, Any] = {"X": X, "y": y}
    # Equal weights change nothing, but scikit-learn would draw other rows with them.
    if (weight != weight[0]).any():
        given["sample_weight"] = weight
    # Twice as many trees per call, with a look at the clock in between. With `warm_start`
    # scikit-learn skips the seeds of the earlier trees, so the trees are those of a single fit.
    while forest.n_estimators < n_trees and not stopped():
        forest.set_params(n_estimators=min(n_trees, max(_FIRST_TREES, 2 * forest.n_estimators)))
        forest.fit(**given)
    if forest.n_estimators:
        values = _values(X)
        for tree in forest.estimators_:
            _move_ties(tree, values)
    if forest.n_estimators < n_trees:
        forest.n_estimators = _rounded(forest.n_estimators, n_trees)
        forest.estimators_ = getattr(forest, "estimators_", [])[: forest.n_estimators]
    return forest.set_params(warm_start=False) if forest.n_estimators else None


def _boosted(
    X: NDArray[np.float32],
    y: NDArray[Any],
    weight: NDArray[np.float64],
    classification: bool,
    max_depth: int,
    seed: int,
) -> Iterator[Any]:
    """An endless sequence of trees. With several classes, a tree has a column of slopes per class,
    and its splits serve all of them.
    """
    from sklearn.tree import DecisionTreeRegressor

    target, scores = _targets(y, weight, classification)
    rng, weight = np.random.default_rng(seed), weight / weight.max()
    check = bool(np.isnan(X).any())  # scikit-learn's check takes longer than small splits
    groups = places_of_equals(y) if classification else [np.arange(len(y))]
    values = _values(X)
    while True:
        if classification:
            p = 1 / (1 + np.exp(-scores))
            slopes, curvature = target - p, p * (1 - p)
        else:
            slopes, curvature = target - scores, np.ones_like(scores)
        rows, times = _drawn(groups, len(y), rng)
        # Fewer than ten leaves of this size: with so few rows, any leaf is allowed.
        leaf = _LEAF if len(rows) >= 10 * _LEAF else 1
        tree = DecisionTreeRegressor(
            max_depth=max_depth, max_features=_SHARE_OF_COLUMNS, min_samples_leaf=leaf,
            random_state=int(rng.integers(2**31)),
        ).fit(X[rows], slopes[rows], weight[rows] * times, check_input=check)  # fmt: skip
        _move_ties(tree, values)
        # The tree's own values are means of slopes on the sample. Its steps here use the curvature
        # and all rows: sum g / sum h, as in boosting by second derivatives.
        at, n_nodes = tree.tree_.apply(X), tree.tree_.node_count
        for k in range(scores.shape[1]):  # Newton's step in every leaf, on all rows
            up, down = (np.bincount(at, weight * one[:, k], n_nodes) for one in (slopes, curvature))
            step = np.clip(up / np.maximum(down, 1e-12), -_LONGEST_STEP, _LONGEST_STEP)
            scores[:, k] += _LEARNING_RATE * step[at]
        yield tree


def _values(X: NDArray[np.float32]) -> list[NDArray[np.float64]]:
    """The distinct numbers of each column, ascending."""
    return [np.unique(column[~np.isnan(column)]).astype(np.float64) for column in X.T]


def _move_ties(tree: Any, values: list[NDArray[np.float64]]) -> None:
    """Raise thresholds that differ by rounding from a number above them to that number.

    A threshold halfway between the numbers of a node may be one of other rows: 2 between 1 and 3.
    In float32, .002 is above the middle of .001 and .003, so that the unit would decide its side.
    """
    split, thresholds = tree.tree_.feature, tree.tree_.threshold  # a view
    for column in np.unique(split[split >= 0]):
        # The neighbours of each threshold among the numbers of its column; thresholds beyond all
        # numbers have only one and stay.
        own, on = values[column], np.flatnonzero(split == column)
        k = np.searchsorted(own, thresholds[on])
        inner = (k > 0) & (k < len(own))
        on, above, below = on[inner], own[k[inner]], own[k[inner] - 1]
        up, down = above - thresholds[on], thresholds[on] - below
        tied = (up <= 2.0**-23 * np.abs(above)) & (2 * up <= down)
        thresholds[on[tied]] = above[tied]


def _drawn(
    groups: list[NDArray[np.intp]], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Rows drawn for a tree, ascending, and the number of rows that each represents.

    Every class has its share. A rare class has at least half of an equal share, but at most half of
    its rows.
    """
    # RuleFit's sample size. `times` makes up for the larger share that is drawn of rare classes: a
    # drawn row stands for len(rows) / size rows of its class.
    some = max(min(n / 2, 100 + 6 * n**0.5), 1.0)
    drawn, times = [], []
    for rows in groups:
        share = max(some * len(rows) / n, min(some / (2 * len(groups)), len(rows) / 2))
        size = min(max(round(share), 1), len(rows))
        drawn.append(rng.choice(rows, size, replace=False))
        times.append(np.full(size, len(rows) / size))
    rows = np.concatenate(drawn)
    order = np.argsort(rows)
    return rows[order], np.concatenate(times)[order]


def _targets(
    y: NDArray[Any], weight: NDArray[np.float64], classification: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The target, with one output per class if there are more than two, and the best constant
    scores, (rows, outputs) each.

    Numbers are standardised, so that no step is too long and no square overflows.
    """
    if classification:
        classes, codes = np.unique(y, return_inverse=True)
        target = (codes[:, None] == np.arange(len(classes))).astype(np.float64)
        target = target[:, 1:] if len(classes) == 2 else target
        # The log-odds of the shares, as the boosted scores start there; a share of 0 or 1 has none.
        share = np.clip(np.average(target, axis=0, weights=weight), 1e-12, 1 - 1e-12)
        return target, np.tile(np.log(share / (1 - share)), (len(y), 1))
    # First by the largest size: the squares of large numbers overflow.
    target = y.astype(np.float64) / (np.abs(y).max() or 1.0)
    target -= np.average(target, weights=weight)
    deviation = np.average(target**2, weights=weight) ** 0.5
    return (target / (deviation or 1.0))[:, None], np.zeros((len(y), 1))
