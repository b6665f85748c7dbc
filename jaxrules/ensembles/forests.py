"""The trees of scikit-learn and LightGBM in one form: nodes, and the condition on the edge to each.

The conditions route every float64 value exactly as the library does:

- Scikit-learn's trees round a value to float32 and compare it with a float64 threshold.
  `float64_thresholds` gives the float64 threshold that separates the same values without rounding.
  They do not split between values that differ by at most 1e-7, or only in float64: the trees that
  jaxrules fits read such columns with their neighbours spread apart (`Spread`).
- HistGradientBoosting compares in float64. The node says where a missing value goes; an unknown
  category goes the same way.
- LightGBM compares in float64 after it has read every number of size at most 1e-35 (in
  float32) as zero. The node says whether a missing value counts as zero or has its own
  direction; with ``zero_as_missing=True`` zero has that direction too. Unknown and missing
  categories go to the right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import EncodedColumn

_SUPPORTED = (
    "DecisionTree, ExtraTree, RandomForest, ExtraTrees, GradientBoosting and HistGradientBoosting "
    "of scikit-learn, LGBMClassifier, LGBMRegressor, LGBMRanker and Booster of LightGBM"
)
NO_NODE = -1
NO_SET = -1


@dataclass(frozen=True)
class Trees:
    """The nodes of all trees, each with the condition on the edge that leads to it.

    Attributes:
        parent: shape (nodes,); `NO_NODE` for the roots.
        is_leaf: shape (nodes,).
        tree, node: index of the tree, and the library's own number of the node.
        column: column of the forest that the edge tests.
        lower, upper: a numeric edge tests whether lower < x <= upper.
        missing: whether a missing value or an unknown category passes the edge.
        category_set: a categorical edge tests whether the code is in
            ``sets[category_set]``; `NO_SET` for others.
        sets: bool, shape (sets, codes); codes beyond are unknown to the forest.
    """

    parent: NDArray[np.int64]
    is_leaf: NDArray[np.bool_]
    tree: NDArray[np.int64]
    node: NDArray[np.int64]
    column: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    missing: NDArray[np.bool_]
    category_set: NDArray[np.int64]
    sets: NDArray[np.bool_]


@dataclass(frozen=True)
class Forest:
    """A forest as read from its library.

    Attributes:
        trees: its nodes.
        n_columns: number of training columns.
        names: names of the columns, None if it was trained on an array.
        categories: for every categorical column its values (text, numbers, or
            None for missing) by code.
        category_lists: LightGBM's values by code for its dataframe columns of type
            category, which it does not name.
        constant_columns: columns that LightGBM dropped, categorical or not.
        encoded: what the columns are; None for those of X, or of ``one_hot()``.
    """

    trees: Trees
    n_columns: int
    names: tuple[str, ...] | None
    categories: Mapping[int, Mapping[int, Any]]
    category_lists: Sequence[Sequence[Any]] = ()
    constant_columns: Sequence[int] = ()
    encoded: tuple[EncodedColumn, ...] | None = None


def read_forest(forest: Any) -> Forest:
    """The nodes and columns of a fitted forest of any supported kind.

    Raises:
        TypeError: for a model that is not a tree ensemble.
        ValueError: for an unfitted forest.
    """
    reader = _reader(forest)
    if reader is None:
        raise TypeError(f"forest must be one of {_SUPPORTED}; got {type(forest).__name__}")
    if not is_fitted(forest):
        raise ValueError(
            f"forest is an unfitted {type(forest).__name__}; call forest.fit(X, y) first"
        )
    return reader[1](forest)


def holds_trees(model: Any) -> bool:
    """Whether `read_forest` can read the model."""
    return _reader(model) is not None


def reads_float32(model: Any) -> bool:
    """Whether the model's trees are those of scikit-learn that round to float32."""
    reader = _reader(model)
    return reader is not None and reader[1] is _read_sklearn


def is_fitted(forest: Any) -> bool:
    """Whether a forest of a supported kind is fitted."""
    reader = _reader(forest)
    return reader is not None and hasattr(forest, reader[0])


def _reader(model: Any) -> tuple[str, Callable[[Any], Forest]] | None:
    kinds = ((kind.__module__.split(".")[0], kind.__name__) for kind in type(model).__mro__)
    return next((_READERS[kind] for kind in kinds if kind in _READERS), None)


class _Splits(NamedTuple):
    """Binary trees by node: children (`NO_NODE` for leaves) and the
    split, all of shape (nodes,).
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    column: NDArray[np.int64]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left_set: NDArray[np.int64]


def _binary_trees(splits: Sequence[_Splits], left_sets: NDArray[np.bool_]) -> Trees:
    """The trees with these splits; ``x <= threshold``, or a code in
    ``left_sets[left_set]``, goes to the left.
    """
    sizes = [len(one.left) for one in splits]
    # Children are numbered within their tree; in the joint arrays they follow all earlier trees.
    offset = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    n = len(offset)
    left, right, column, threshold, missing_left, left_set = (
        np.concatenate(parts) for parts in zip(*splits, strict=True)
    )
    inner = np.flatnonzero(left != NO_NODE)
    to_left, to_right = (left + offset)[inner], (right + offset)[inner]
    parent = np.full(n, NO_NODE, np.int64)
    parent[to_left] = parent[to_right] = inner
    goes_left = np.zeros(n, bool)
    goes_left[to_left] = True
    # A root has no split above it: node 0 stands in, so that the lookups below need no mask. What
    # they yield for roots is never read as a condition.
    above = np.where(parent == NO_NODE, 0, parent)
    numeric = left_set[above] == NO_SET
    # The sets of the right-hand sides follow those of the left-hand sides.
    category_set = np.where(
        numeric, NO_SET, left_set[above] + np.where(goes_left, 0, len(left_sets))
    )
    return Trees(
        parent=parent,
        is_leaf=left == NO_NODE,
        tree=np.repeat(np.arange(len(splits)), sizes),
        node=np.arange(n) - offset,
        column=column[above],
        lower=np.where(goes_left | ~numeric, -np.inf, threshold[above]),
        upper=np.where(goes_left & numeric, threshold[above], np.inf),
        # A left child takes missing values if they go left, a right child if they do not.
        missing=missing_left[above] == goes_left,
        category_set=category_set,
        sets=np.concatenate([left_sets, ~left_sets]),
    )


def _own_names(forest: Any) -> tuple[str, ...] | None:
    names = getattr(forest, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


# Scikit-learn's trees


def float64_thresholds(thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The float64 numbers t' with x <= t' exactly where float32(x) <= threshold, shape as given.

    Let a be the largest float32 number that does not exceed the threshold, and b the next one. The
    float64 numbers between them round to the nearer, and their midpoint to the one whose last bit
    is 0: it is t' itself if that is a, else t' is the float64 number before it.
    """
    with np.errstate(over="ignore"):  # beyond the range of float32 lies infinity
        nearest = thresholds.astype(np.float32)
        a = np.where(nearest <= thresholds, nearest, np.nextafter(nearest, np.float32(-np.inf)))
        b = np.nextafter(a, np.float32(np.inf))
        # For rounding, the number after the largest one is 2**128.
        low, high = (np.clip(end.astype(np.float64), -(2.0**128), 2.0**128) for end in (a, b))
        midpoint = (low + high) / 2
        exact = np.where(
            midpoint.astype(np.float32) == a, midpoint, np.nextafter(midpoint, -np.inf)
        )
    return np.where(thresholds == np.inf, np.inf, exact)


_APART = 2.0**-22
"""Scikit-learn's trees separate places this far apart, relative to their size or 1."""


class Spread(NamedTuple):
    """A column as scikit-learn's trees can split it anywhere.

    Attributes:
        values: its distinct numbers, ascending, shape (values,).
        places: what the trees read instead: a value itself, unless it is too close to the place
            before.
    """

    values: NDArray[np.float64]
    places: NDArray[np.float64]

    @classmethod
    def of(cls, column: NDArray[np.float64]) -> Spread | None:
        """The spread of a column (NaN for missing); None if the trees can read it as it is."""
        values = np.unique(column[~np.isnan(column)])
        close = np.flatnonzero(np.diff(values) < _APART * np.maximum(np.abs(values[:-1]), 1))
        if not len(close):
            return None
        places = values.tolist()
        # A place that is pushed up may come too close to the next one: push on until there is room.
        for i in close.tolist():
            while i + 1 < len(places):
                least = places[i] + _APART * max(abs(places[i]), 1.0)
                if places[i + 1] >= least:
                    break
                places[i + 1] = least
                i += 1
        # Pushed beyond float32: trees see only the order of the places, for which ranks will do.
        if places[-1] > np.finfo(np.float32).max:
            places = list(range(len(places)))
        return cls(values, np.array(places, np.float64))

    def read(self, column: NDArray[np.float64]) -> NDArray[np.float64]:
        """The places of numbers of the column; NaN stays."""
        at = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
        return np.where(np.isnan(column), column, self.places[at])

    def thresholds(self, of_places: NDArray[np.float64]) -> NDArray[np.float64]:
        """The thresholds of values that separate as those of places do in the trees: midpoints
        where a place is not the value.
        """
        # The number of places below the threshold, compared in float32 as the trees do
        k = np.searchsorted(self.places.astype(np.float32), of_places, side="right")
        inner = (k > 0) & (k < len(self.values))
        below, above = np.where(inner, k - 1, 0), np.where(inner, k, 0)
        low, high = self.values[below], self.values[above]
        moved = inner & ((low != self.places[below]) | (high != self.places[above]))
        # Halves first, as the sum of two large numbers may overflow; the middle of two neighbouring
        # float64 numbers may round to the upper one, which would then go left.
        middle = low / 2 + high / 2
        middle = np.where((low <= middle) & (middle < high), middle, low)
        return np.where(moved, middle, float64_thresholds(of_places))


def estimators_of(forest: Any) -> list[Any]:
    """The single trees of a fitted model of scikit-learn."""
    return list(np.ravel(forest.estimators_)) if hasattr(forest, "estimators_") else [forest]


def _read_sklearn(forest: Any) -> Forest:
    splits = []
    for tree in (estimator.tree_ for estimator in estimators_of(forest)):
        no_set = np.full(tree.node_count, NO_SET)
        missing_left = np.asarray(tree.missing_go_to_left, bool)
        thresholds = float64_thresholds(tree.threshold)
        for column, spread in getattr(forest, "spreads", {}).items():
            on = tree.feature == column
            thresholds[on] = spread.thresholds(tree.threshold[on])
        split = tree.children_left, tree.children_right, tree.feature
        splits.append(_Splits(*split, thresholds, missing_left, no_set))
    trees = _binary_trees(splits, np.empty((0, 0), bool))
    encoded = getattr(forest, "encoded", None)
    return Forest(trees, forest.n_features_in_, _own_names(forest), {}, encoded=encoded)


# HistGradientBoosting


def _read_hist(forest: Any) -> Forest:
    # Internally, the categorical columns come first, as codes of an ordinal
    # encoder; the others follow.
    columns = np.arange(forest.n_features_in_)
    categories: dict[int, dict[int, Any]] = {}
    if (of_codes := forest.is_categorical_) is not None:
        columns = np.concatenate([columns[of_codes], columns[~of_codes]])
        encoder = forest._preprocessor.named_transformers_["encoder"]
        known = zip(np.flatnonzero(of_codes).tolist(), encoder.categories_, strict=True)
        for column, values in known:  # NaN has no code
            categories[column] = {code: v for code, v in enumerate(values.tolist()) if v == v}
    splits, left_sets, n_sets = [], [np.zeros((0, 256), bool)], 0
    for predictor in (predictor for iteration in forest._predictors for predictor in iteration):
        nodes = predictor.nodes
        is_leaf = nodes["is_leaf"].astype(bool)
        is_categorical = nodes["is_categorical"].astype(bool)
        left_sets.append(_bits(predictor.raw_left_cat_bitsets))
        splits.append(
            _Splits(
                np.where(is_leaf, NO_NODE, nodes["left"].astype(np.int64)),
                np.where(is_leaf, NO_NODE, nodes["right"].astype(np.int64)),
                columns[np.where(is_leaf, 0, nodes["feature_idx"])],
                nodes["num_threshold"].astype(np.float64),
                nodes["missing_go_to_left"].astype(bool),
                np.where(is_categorical, nodes["bitset_idx"].astype(np.int64) + n_sets, NO_SET),
            )
        )
        n_sets += len(predictor.raw_left_cat_bitsets)
    trees = _binary_trees(splits, np.concatenate(left_sets))
    return Forest(trees, forest.n_features_in_, _own_names(forest), categories)


def _bits(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Sets of codes from 32-bit words, lowest bit first, shape (sets, 32 words)."""
    octets = np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
    octets = octets.reshape(len(words), 4 * words.shape[1])
    return np.unpackbits(octets, axis=1, bitorder="little").view(bool)


# LightGBM

_ZERO = float(np.float32(1e-35))
"""LightGBM reads numbers of at most this size as zero."""
_BELOW_ZERO = float(np.nextafter(-_ZERO, -np.inf))
_ZERO_IS_MISSING, _NAN_IS_MISSING = 1, 2
"""Missing types of a node; with the third, 0, NaN is read as zero."""


class _Edge(NamedTuple):
    """lower < x <= upper, or x in a set of codes; and whether a missing value passes."""

    lower: float
    upper: float
    missing: bool
    category_set: int = NO_SET


def _read_lightgbm(forest: Any) -> Forest:
    booster = forest if not hasattr(forest, "booster_") else forest.booster_
    head, *sections = booster.model_to_string().split("\nTree=")
    described = _fields(head)
    builder = _LightGBMTrees()
    for index, section in enumerate(sections):
        builder.add(index, _fields(section.split("\n\n", 1)[0]))
    names: tuple[str, ...] | None = tuple(booster.feature_name())
    n_columns = booster.num_feature()
    if names == tuple(f"Column_{i}" for i in range(n_columns)):
        names = None
    # A numeric column is described by its range, a categorical one by its codes, -1
    # for missing among them.
    infos = described["feature_infos"].split()
    categories = {
        column: {code: code for code in map(int, info.split(":")) if code >= 0}
        for column, info in enumerate(infos)
        if info != "none" and not info.startswith("[")
    }
    constant = [column for column, info in enumerate(infos) if info == "none"]
    return Forest(
        builder.trees(), n_columns, names, categories, booster.pandas_categorical or (), constant
    )


def _fields(text: str) -> dict[str, str]:
    """The lines of the form name=value."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


class _LightGBMTrees:
    """Collects the nodes of trees in a walk from the roots, left before right."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, bool, int, int, int, float, float, bool, int]] = []
        self._sets: list[NDArray[np.bool_]] = []

    @property
    def n_codes(self) -> int:
        return max((len(one) for one in self._sets), default=0)

    def add(self, index: int, fields: dict[str, str]) -> None:
        """One tree, from its fields in LightGBM's text format."""
        # A tree of one leaf has no split fields.
        if int(fields["num_leaves"]) == 1:
            self._rows.append((NO_NODE, True, index, 0, 0, -np.inf, np.inf, True, NO_SET))
            return
        column, left, right, kind = (
            [int(value) for value in fields[name].split()]
            for name in ("split_feature", "left_child", "right_child", "decision_type")
        )
        threshold = [float(value) for value in fields["threshold"].split()]
        first_set = len(self._sets)
        if int(fields["num_cat"]):
            # A set is as many 32-bit words as its boundaries say, a bit per code. Trailing zeros
            # can go: codes beyond a set go to the right, as unknown ones do.
            words = np.array(fields["cat_threshold"].split(), np.uint32)
            bounds = [int(value) for value in fields["cat_boundaries"].split()]
            for start, stop in pairwise(bounds):
                self._sets.append(np.trim_zeros(_bits(words[None, start:stop])[0], "b"))
        # (node, parent among the rows, column and edge that lead to it); leaves
        # are numbered -1, -2, ...
        root = _Edge(-np.inf, np.inf, True)
        pending: list[tuple[int, int, int, _Edge]] = [(0, NO_NODE, 0, root)]
        while pending:
            node, parent, above, edge = pending.pop()
            here, is_leaf = len(self._rows), node < 0
            own_number = ~node if is_leaf else node
            self._rows.append((parent, is_leaf, index, own_number, above, *edge))
            if is_leaf:
                continue
            # Bit 0 of `decision_type`: categorical, whose threshold is then the number of its set.
            # Bit 1: missing values go left. Bits 2 and 3: the missing type.
            if kind[node] & 1:
                to_left, to_right = _categorical_edges(first_set + int(threshold[node]))
            else:
                to_left, to_right = _lightgbm_intervals(
                    threshold[node], kind[node] >> 2 & 3, bool(kind[node] & 2)
                )
            sides = (left[node], to_left), (right[node], to_right)
            children = [(child, one) for child, some in sides for one in some]
            # The last entry of the stack is the next one: reversed, so that left comes before
            # right. A side of several intervals occurs once for each, with all nodes below.
            pending += [(child, here, column[node], one) for child, one in reversed(children)]

    def trees(self) -> Trees:
        kinds = (int, bool, int, int, int, float, float, bool, int)
        columns = zip(zip(*self._rows, strict=True), kinds, strict=True)
        sets = np.zeros((len(self._sets), self.n_codes), bool)
        for row, one in zip(sets, self._sets, strict=True):
            row[: len(one)] = one
        # `_categorical_edges` numbers the two sides of a split 2 i and 2 i + 1.
        sides = np.stack([sets, ~sets], axis=1).reshape(2 * len(sets), self.n_codes)
        return Trees(*[*(np.array(values, kind) for values, kind in columns), sides])


def _categorical_edges(split_set: int) -> tuple[list[_Edge], list[_Edge]]:
    """The edges of a categorical split; missing and unknown categories go to the right."""
    to_left = _Edge(-np.inf, np.inf, False, 2 * split_set)
    return [to_left], [_Edge(-np.inf, np.inf, True, 2 * split_set + 1)]


def _lightgbm_intervals(
    threshold: float, missing_type: int, default_left: bool
) -> tuple[list[_Edge], list[_Edge]]:
    """The intervals that go left, and those that go right, in float64, with tiny
    numbers no longer read as zero.
    """
    # Numbers from -1e-35 to 1e-35 are read as 0, so they all go to one side: left of a threshold of
    # at least 0, right of a negative one. The threshold moves to the end of this range that keeps
    # them together.
    if -_ZERO <= threshold < 0:
        threshold = _BELOW_ZERO
    elif 0 <= threshold <= _ZERO:
        threshold = _ZERO
    if missing_type != _ZERO_IS_MISSING:
        # Without a missing type NaN is read as zero, which goes left of a threshold of at least 0;
        # that is now positive.
        missing_left = default_left if missing_type == _NAN_IS_MISSING else threshold > 0
        to_right = _Edge(threshold, np.inf, not missing_left)
        return [_Edge(-np.inf, threshold, missing_left)], [to_right]
    # The pieces into which threshold and zero cut the line, and their directions;
    # merge neighbours that agree.
    ends = sorted({-np.inf, _BELOW_ZERO, _ZERO, threshold, np.inf})
    sides: tuple[list[_Edge], list[_Edge]] = ([], [])
    before: list[_Edge] | None = None
    for lower, upper in pairwise(ends):
        is_zero = lower == _BELOW_ZERO
        goes_left = default_left if is_zero else upper <= threshold
        side = sides[0] if goes_left else sides[1]
        if side is before:
            last = side.pop()
            lower, is_zero = last.lower, is_zero or last.missing
        side.append(_Edge(lower, upper, is_zero))
        before = side
    return sides


_READERS: dict[tuple[str, str], tuple[str, Callable[[Any], Forest]]] = {
    **{
        ("sklearn", f"{name}{task}"): (fitted_with, read)
        for name, fitted_with, read in (
            ("DecisionTree", "tree_", _read_sklearn),
            ("ExtraTree", "tree_", _read_sklearn),
            ("RandomForest", "estimators_", _read_sklearn),
            ("ExtraTrees", "estimators_", _read_sklearn),
            ("GradientBoosting", "estimators_", _read_sklearn),
            ("HistGradientBoosting", "_predictors", _read_hist),
        )
        for task in ("Classifier", "Regressor")
    },
    **{
        ("lightgbm", name): ("booster_", _read_lightgbm)
        for name in ("LGBMClassifier", "LGBMRegressor", "LGBMRanker")
    },
    ("lightgbm", "Booster"): ("model_to_string", _read_lightgbm),
    ("jaxrules", "GrownTrees"): ("estimators_", _read_sklearn),
}
"""By library and class: the attribute of a fitted forest, and the function that reads it."""
