"""Conjunctions of conditions: the "if" part of every rule.

A `Condition` restricts one feature: a number to an interval, a category to a set; conditions on the
same feature merge into one. `Conjunctions` holds many rules as a struct of arrays, a pytree.

Rules are checked exactly and fast without a matrix of rows x conditions. The cut points of a feature
divide its axis into cells: the points themselves and the open intervals between them. A value is
mapped to its cell by a float64 binary search; for every cell a bit vector says which rules it does
not violate; a row satisfies the rules that survive the bitwise AND over the features. The cost of a
row is (features x rules / 64) word operations.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from jaxrules.table import MISSING, Schema, Table

_MOST_ROWS_PER_BATCH = 1 << 15
_CELLS_PER_BATCH = 1 << 24
"""Rows x rules of one batch: 16 MiB of booleans."""
_WORDS_PER_BLOCK = 16
"""The bit vectors of a feature are built for 64 times so many rules at once."""


@dataclass(frozen=True)
class Condition:
    """One feature restricted: ``lower < x <= upper`` (ends open or closed), or ``x in categories``.

    Attributes:
        feature: index of the column.
        lower, upper: ends of the interval; infinite where there is none.
        lower_closed, upper_closed: whether the ends belong to the interval.
        missing: whether a missing value satisfies the condition.
        categories: the category codes that satisfy it; None for a numeric feature.
        unseen: whether a category that fit did not see satisfies it (``!=`` conditions).
    """

    feature: int
    lower: float = -math.inf
    upper: float = math.inf
    lower_closed: bool = False
    upper_closed: bool = True
    missing: bool = False
    categories: frozenset[int] | None = None
    unseen: bool = False

    @classmethod
    def at_most(cls, feature: int, value: float, missing: bool = False) -> Condition:
        """x <= value."""
        return cls(feature, upper=value, missing=missing)

    @classmethod
    def above(cls, feature: int, value: float, missing: bool = False) -> Condition:
        """x > value."""
        return cls(feature, lower=value, missing=missing)

    @classmethod
    def at_least(cls, feature: int, value: float, missing: bool = False) -> Condition:
        """x >= value."""
        return cls(feature, lower=value, lower_closed=True, missing=missing)

    @classmethod
    def below(cls, feature: int, value: float, missing: bool = False) -> Condition:
        """x < value."""
        return cls(feature, upper=value, upper_closed=False, missing=missing)

    @classmethod
    def one_of(cls, feature: int, codes: Sequence[int], missing: bool = False) -> Condition:
        """x in codes; the code `MISSING` stands for a missing value."""
        return cls(
            feature,
            categories=frozenset(codes) - {MISSING},
            missing=missing or MISSING in codes,
        )

    @classmethod
    def none_of(cls, feature: int, codes: Sequence[int], n_categories: int) -> Condition:
        """x not in codes; satisfied by unseen categories, and by missing values unless `MISSING` is a code."""
        return cls(
            feature,
            categories=frozenset(range(n_categories)) - frozenset(codes),
            missing=MISSING not in codes,
            unseen=True,
        )

    @classmethod
    def is_missing(cls, feature: int, numeric: bool) -> Condition:
        """x is missing."""
        if numeric:
            return cls(feature, lower=math.inf, upper=-math.inf, missing=True)
        return cls(feature, categories=frozenset(), missing=True)

    @classmethod
    def is_present(cls, feature: int, n_categories: int | None) -> Condition:
        """x is not missing; `n_categories` is None for a numeric feature."""
        if n_categories is None:
            return cls(feature)
        return cls(feature, categories=frozenset(range(n_categories)), unseen=True)

    def __and__(self, other: Condition) -> Condition:
        """Both conditions on the same feature, as one."""
        if self.feature != other.feature:
            raise ValueError(f"conditions on features {self.feature} and {other.feature} do not merge")
        if (self.categories is None) != (other.categories is None):
            raise ValueError(f"feature {self.feature} has both an interval and a set of categories as conditions")
        missing, unseen = self.missing and other.missing, self.unseen and other.unseen
        if self.categories is not None and other.categories is not None:
            both = self.categories & other.categories
            return Condition(self.feature, missing=missing, categories=both, unseen=unseen)
        # An open end is tighter than a closed one at the same value.
        lower, lower_open = max((self.lower, not self.lower_closed), (other.lower, not other.lower_closed))
        upper, upper_closed = min((self.upper, self.upper_closed), (other.upper, other.upper_closed))
        return Condition(self.feature, lower, upper, not lower_open, upper_closed, missing)

    @property
    def admits_no_number(self) -> bool:
        """Whether the interval is empty: only a missing value can satisfy the condition, if any."""
        both_closed = self.lower_closed and self.upper_closed
        return self.lower > self.upper or (self.lower == self.upper and not both_closed)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Conjunctions:
    """Rules as a struct of arrays. Rule r has the conditions ``offsets[r]:offsets[r + 1]``.

    Attributes:
        offsets: int32, shape (rules + 1,).
        feature: int32, shape (conditions,).
        lower, upper: float64, shape (conditions,); infinite where the interval has no end.
        lower_closed, upper_closed, missing, unseen: bool, shape (conditions,); see `Condition`.
        allowed: bool, shape (conditions, most categories of a feature); all False for numeric features.
        schema: the columns that the rules speak of (static).
    """

    offsets: NDArray[np.int32]
    feature: NDArray[np.int32]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    lower_closed: NDArray[np.bool_]
    upper_closed: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    unseen: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    schema: Schema = field(metadata={"static": True})

    @classmethod
    def build(cls, schema: Schema, rules: Sequence[Sequence[Condition]]) -> Conjunctions:
        """The conjunctions of these conditions; conditions of a rule on the same feature are merged.

        Raises:
            ValueError: if a condition does not fit the schema (feature, kind, category).
        """
        merged = [_merge(rule) for rule in rules]
        for rule in merged:
            for condition in rule:
                _check_condition(condition, schema)
        flat = [condition for rule in merged for condition in rule]
        width = max((len(f.categories) for f in schema.features if f.categories is not None), default=0)
        allowed = np.zeros((len(flat), width), bool)
        for i, condition in enumerate(flat):
            if condition.categories:
                allowed[i, sorted(condition.categories)] = True
        conjunctions = cls(
            offsets=np.cumsum([0] + [len(rule) for rule in merged]).astype(np.int32),
            feature=np.array([c.feature for c in flat], np.int32),
            lower=np.array([c.lower for c in flat], np.float64),
            upper=np.array([c.upper for c in flat], np.float64),
            lower_closed=np.array([c.lower_closed for c in flat], bool),
            upper_closed=np.array([c.upper_closed for c in flat], bool),
            missing=np.array([c.missing for c in flat], bool),
            unseen=np.array([c.unseen for c in flat], bool),
            allowed=allowed,
            schema=schema,
        )
        conjunctions.validate()
        return conjunctions

    def validate(self) -> None:
        """Check shapes, ranges and kinds.

        Raises:
            ValueError: naming what is wrong.
        """
        self.schema.validate()
        if self.feature.ndim != 1:
            raise ValueError(f"feature must have shape (conditions,), got {self.feature.shape}")
        n = len(self.feature)
        features = self.schema.features
        width = max((len(f.categories) for f in features if f.categories is not None), default=0)
        if self.offsets.ndim != 1 or not len(self.offsets) or self.offsets[0] != 0 or self.offsets[-1] != n:
            raise ValueError("offsets must rise from 0 to the number of conditions")
        if (np.diff(self.offsets) < 0).any():
            raise ValueError("offsets must not fall")
        for name in ("feature", "lower", "upper", "lower_closed", "upper_closed", "missing", "unseen"):
            if getattr(self, name).shape != (n,):
                raise ValueError(f"{name} must have shape ({n},), got {getattr(self, name).shape}")
        if self.allowed.shape != (n, width):
            raise ValueError(f"allowed must have shape ({n}, {width}), got {self.allowed.shape}")
        if n and not (self.feature.min() >= 0 and self.feature.max() < len(features)):
            raise ValueError(f"feature must lie in 0..{len(features) - 1}")
        if np.isnan(self.lower).any() or np.isnan(self.upper).any():
            raise ValueError("the ends of an interval must not be NaN")
        owner = np.repeat(np.arange(len(self)), self.lengths)
        if len(np.unique(owner * len(features) + self.feature)) < n:
            raise ValueError("a rule has two conditions on one feature; merge them")
        sizes = np.array([len(f.categories) if f.categories is not None else 0 for f in features])
        beyond = np.arange(width) >= sizes[self.feature][:, None]
        if (self.allowed & beyond).any():
            raise ValueError("allowed names a category that its feature does not have")
        categorical = sizes[self.feature] > 0
        if (self.unseen & ~categorical).any() or not np.isinf([self.lower[categorical], self.upper[categorical]]).all():
            raise ValueError("an interval is for numeric features, unseen for categorical ones")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of conditions of every rule, shape (rules,)."""
        return np.diff(self.offsets)

    def rule(self, index: int) -> tuple[Condition, ...]:
        """The conditions of one rule."""
        return tuple(self._condition(i) for i in range(self.offsets[index], self.offsets[index + 1]))

    def __iter__(self) -> Iterator[tuple[Condition, ...]]:
        return (self.rule(index) for index in range(len(self)))

    def _condition(self, i: int) -> Condition:
        numeric = self.schema.features[self.feature[i]].is_numeric
        return Condition(
            int(self.feature[i]), float(self.lower[i]), float(self.upper[i]), bool(self.lower_closed[i]),
            bool(self.upper_closed[i]), bool(self.missing[i]),
            None if numeric else frozenset(np.flatnonzero(self.allowed[i]).tolist()), bool(self.unseen[i]),
        )  # fmt: skip

    def take(self, rules: NDArray[Any] | Sequence[int]) -> Conjunctions:
        """The rules with these indices (or of this boolean mask), in this order."""
        chosen = np.arange(len(self))[np.asarray(rules, dtype=None if len(rules) else np.int64)]
        lengths = self.lengths[chosen]
        starts = np.repeat(self.offsets[chosen] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        conditions = (starts + np.arange(lengths.sum())).astype(np.int64)
        return Conjunctions(
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
            **{
                name: getattr(self, name)[conditions]
                for name in _CONDITION_ARRAYS
            },
            schema=self.schema,
        )  # fmt: skip

    @classmethod
    def concatenate(cls, parts: Sequence[Conjunctions]) -> Conjunctions:
        """All rules of the parts (at least one), which must speak of the same columns, in order."""
        if not parts:
            raise ValueError("there is nothing to concatenate")
        if any(part.schema.features != parts[0].schema.features for part in parts):
            raise ValueError("the conjunctions speak of different columns; extract them from the same data")
        return cls(
            offsets=np.cumsum(np.concatenate([[0], *(part.lengths for part in parts)])).astype(np.int32),
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _CONDITION_ARRAYS},
            schema=parts[0].schema,
        )

    def with_schema(self, schema: Schema) -> Conjunctions:
        """The same rules under a schema with the same columns (other classes, say)."""
        if schema.features != self.schema.features:
            raise ValueError("rules were extracted from other columns than those of X; extract them from the same data")
        arrays = {name: getattr(self, name) for name in _CONDITION_ARRAYS}
        return Conjunctions(offsets=self.offsets, **arrays, schema=schema)

    def describe(self, index: int) -> str:
        """One rule in words, e.g. ``Age > 31 & Sex == Male``."""
        from jaxrules.display import rule_text

        return rule_text(self.rule(index), self.schema)

    def __repr__(self) -> str:
        return f"Conjunctions({len(self)} rules, {len(self.feature)} conditions)"

    # Checking rules

    def satisfied(self, table: Table) -> NDArray[np.bool_]:
        """Which rules every row satisfies, shape (rows, rules)."""
        result = np.empty((table.n_rows, len(self)), bool)
        for rows, batch in self.batches(table):
            result[rows] = batch
        return result

    def batches(self, table: Table) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """`satisfied` by blocks of rows, so that large tables need little memory.

        Raises:
            ValueError: if the table has other columns than the rules speak of.
        """
        if table.schema.features != self.schema.features:
            raise ValueError(
                "the table has other columns than the rules; jaxrules.table.conform(X, schema) matches them"
            )
        checker = _Checker(self)
        size = min(_MOST_ROWS_PER_BATCH, max(1, _CELLS_PER_BATCH // max(1, len(self))))
        blocks = [slice(i, min(i + size, table.n_rows)) for i in range(0, table.n_rows, size)]
        if len(blocks) == 1:
            yield blocks[0], checker(table)
            return
        pending: deque[tuple[slice, Future[NDArray[np.bool_]]]] = deque()
        with ThreadPoolExecutor(2) as pool:  # NumPy releases the interpreter lock
            for rows in blocks:
                pending.append((rows, pool.submit(lambda rows: checker(table[rows]), rows)))
                if len(pending) > 2:
                    done, batch = pending.popleft()
                    yield done, batch.result()
            for done, batch in pending:
                yield done, batch.result()

    def satisfied_traced(self, X: jax.Array) -> jax.Array:
        """`satisfied` for use under jit, vmap and grad: comparisons happen in the dtype of `X`.

        Args:
            X: shape (rows, features); NaN is missing; a categorical column holds codes, `MISSING` and
                `UNSEEN` among them.
        """
        if X.ndim != 2 or X.shape[1] != len(self.schema.features):
            raise ValueError(
                f"X must have shape (rows, {len(self.schema.features)}) under jit or vmap, got {X.shape}; "
                "one row is X[None, :]"
            )
        n_rules, n_conditions = len(self), self.feature.shape[0]
        x = X[:, self.feature]
        lower, upper = _like(self.lower, X)[None], _like(self.upper, X)[None]
        above = (x > lower) | (self.lower_closed[None] & (x == lower))
        below = (x < upper) | (self.upper_closed[None] & (x == upper))
        holds = jnp.where(jnp.isnan(x), self.missing[None], above & below)
        if self.allowed.shape[1]:
            # Columns of the look-up: the categories, then unseen (code -2), then missing (code -1).
            lookup = jnp.concatenate([self.allowed, self.unseen[:, None], self.missing[:, None]], axis=1)
            codes = jnp.where(jnp.isnan(x), MISSING, x).astype(jnp.int32) % lookup.shape[1]
            in_set = lookup[jnp.arange(n_conditions)[None], codes]
            numeric = jnp.array([feature.is_numeric for feature in self.schema.features])[self.feature]
            holds = jnp.where(numeric[None], holds, in_set)
        rule = jnp.searchsorted(self.offsets[1:], jnp.arange(n_conditions), side="right")
        violations = jax.ops.segment_sum((~holds).T.astype(jnp.int32), rule, num_segments=n_rules)
        return violations.T == 0


def _like(ends: Any, X: jax.Array) -> jax.Array:
    """Ends of intervals in the dtype of `X`: beyond its range they are infinite."""
    dtype = X.dtype if jnp.issubdtype(X.dtype, jnp.floating) else jnp.result_type(float)
    with np.errstate(over="ignore"):
        return jnp.asarray(ends, dtype)


_CONDITION_ARRAYS = (
    "feature", "lower", "upper", "lower_closed", "upper_closed", "missing", "unseen", "allowed",
)  # fmt: skip


def _check_condition(condition: Condition, schema: Schema) -> None:
    if not 0 <= condition.feature < len(schema.features):
        raise ValueError(f"a condition names feature {condition.feature}; there are {len(schema.features)}")
    feature = schema.features[condition.feature]
    if feature.is_numeric != (condition.categories is None):
        kind = "numeric: give it an interval" if feature.is_numeric else "categorical: give it a set of categories"
        raise ValueError(f"feature {feature.name!r} is {kind}")
    if condition.categories and not condition.categories <= set(range(len(feature.categories or ()))):
        raise ValueError(f"a condition on {feature.name!r} names a category code beyond its {feature.categories}")


def _merge(rule: Sequence[Condition]) -> list[Condition]:
    """One condition per feature, in the order of first mention."""
    by_feature: dict[int, Condition] = {}
    for condition in rule:
        earlier = by_feature.get(condition.feature)
        by_feature[condition.feature] = condition if earlier is None else earlier & condition
    return list(by_feature.values())


class _Checker:
    """The bit vectors of the cells of every feature that the rules use."""

    def __init__(self, rules: Conjunctions) -> None:
        self.n_rules = len(rules)
        self.words = max(1, -(-self.n_rules // 64))
        self.cuts: dict[int, NDArray[np.float64] | None] = {}
        self.bits: dict[int, NDArray[np.uint64]] = {}
        rule_of = np.repeat(np.arange(self.n_rules), rules.lengths)
        for f in np.unique(rules.feature).tolist():
            on_f = np.flatnonzero(rules.feature == f)
            cuts = _cut_points(rules, on_f) if rules.schema.features[f].is_numeric else None
            n_cells = rules.allowed.shape[1] + 2 if cuts is None else 2 * len(cuts) + 2
            bits = np.empty((n_cells, self.words), np.uint64)
            for word in range(0, self.words, _WORDS_PER_BLOCK):
                words = min(_WORDS_PER_BLOCK, self.words - word)
                block = on_f[(rule_of[on_f] >= 64 * word) & (rule_of[on_f] < 64 * (word + words))]
                holds = _category_cells(rules, block) if cuts is None else _interval_cells(rules, block, cuts)
                ok = np.ones((n_cells, 64 * words), bool)
                ok[:, rule_of[block] - 64 * word] = holds.T  # conditions are merged: one per rule and feature
                bits[:, word : word + words] = np.packbits(ok, axis=1).view(np.uint64)
            self.cuts[f], self.bits[f] = cuts, bits

    def __call__(self, table: Table) -> NDArray[np.bool_]:
        alive = np.full((table.n_rows, self.words), np.iinfo(np.uint64).max, np.uint64)
        for f, cuts in self.cuts.items():
            column = table.columns[f]
            if cuts is None:
                cells = column % len(self.bits[f])  # the codes -2 and -1 are the last two cells
            else:
                before = np.searchsorted(cuts, column)
                at_cut = np.append(cuts, np.nan)[before] == column
                cells = np.where(np.isnan(column), 2 * len(cuts) + 1, 2 * before + at_cut)
            alive &= self.bits[f][cells]
        return np.unpackbits(alive.view(np.uint8), axis=1, count=self.n_rules).view(bool)


def _cut_points(rules: Conjunctions, on: NDArray[Any]) -> NDArray[np.float64]:
    """The finite ends of the intervals of these conditions, sorted."""
    ends = np.unique(np.concatenate([rules.lower[on], rules.upper[on]]))
    return ends[np.isfinite(ends)]


def _interval_cells(rules: Conjunctions, on: NDArray[Any], cuts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which cells satisfy these conditions, shape (conditions, 2 cuts + 2).

    Cell 2i + 1 is the i-th cut point, cell 2i the open interval before it; the last cell is "missing".
    """
    lower, upper = rules.lower[on], rules.upper[on]
    first = np.searchsorted(cuts, lower) * 2 + np.where(rules.lower_closed[on], 1, 2)
    first = np.where(lower == -np.inf, 0, first)
    first = np.where(lower == np.inf, 2 * len(cuts) + 1, first)
    last = np.searchsorted(cuts, upper) * 2 + np.where(rules.upper_closed[on], 1, 0)
    last = np.where(upper == np.inf, 2 * len(cuts), last)
    last = np.where(upper == -np.inf, -1, last)
    cells = np.arange(2 * len(cuts) + 1)
    holds = (cells >= first[:, None]) & (cells <= last[:, None])
    return np.concatenate([holds, rules.missing[on, None]], axis=1)


def _category_cells(rules: Conjunctions, on: NDArray[Any]) -> NDArray[np.bool_]:
    """Which codes satisfy these conditions: the categories, then unseen, then missing."""
    return np.concatenate([rules.allowed[on], rules.unseen[on, None], rules.missing[on, None]], axis=1)
