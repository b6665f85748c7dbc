"""The vocabulary of rules: conditions, conjunctions, and the pools of propositions that they are
built from.

A `Condition` restricts one column or one `Direction` (a linear combination of columns): a number to
an interval, a category to a set. `Conjunctions` hold many rules as a struct of arrays, a pytree;
conditions of a rule on the same column are merged. A proposition is a condition that a learner may
put into a rule, one yes/no question about a row. A `PropositionPool` is the struct of the rules
with one condition per rule. It also gives a rule search its answers on a table, and conjunctions of
chosen propositions.

`jaxrules.rules.lowered` evaluates the rules.
"""

from __future__ import annotations

import math
import numbers
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import MISSING, Feature, Schema, Table
from jaxrules.rules.lowered import (
    Axis,
    Direction,
    Directions,
    Lowered,
    cell_range,
    interval_holds,
    like,
    rises,
)
from jaxrules.tools import checks, display
from jaxrules.tools.bits import Words, distinct, n_words, pack
from jaxrules.tools.checks import require
from jaxrules.tools.kept import Keeps
from jaxrules.tools.pytrees import check_arrays, concrete_arrays, pytree
from jaxrules.tools.runs import checkpoint
from jaxrules.tools.sorting import places_of_equals

_MOST_ROWS_PER_BATCH = 1 << 15
_CELLS_PER_BATCH = 1 << 24
"""Rows x rules of one batch: 16 MiB of booleans."""
_WORDS_PER_BLOCK = 16
"""Bit vectors of an axis are built for 64 times this many rules at once."""
_RULES_PER_PART = 1024
"""A multiple of 64: bits of parts stand side by side."""
_MOST_CELLS = 2**16 - 4  # cell codes are uint16
_MOST_KEPT_NUMBERS = 100_000
"""Rules of more conditions, or categories, take longer to compare than to prepare for one call."""
_SOME_VALUES = 1000
_MOST_CATEGORIES = 2**24


@dataclass(frozen=True)
class Condition:
    """A restriction of one column or direction: ``lower < x <= upper`` (ends open or closed), or
    ``x in categories``.

    Attributes:
        feature: index of the column, or the direction, whose value is then x; see `Direction`.
        lower, upper: ends of the interval; infinite for none.
        lower_closed, upper_closed: whether the ends belong to the interval.
        missing: whether a missing value satisfies the condition.
        categories: the category codes that satisfy it; None for a numeric feature.
        unseen: whether a category unseen in fit satisfies it (``!=`` conditions).
    """

    feature: int | Direction
    lower: float = -math.inf
    upper: float = math.inf
    lower_closed: bool = False
    upper_closed: bool = True
    missing: bool = False
    categories: frozenset[int] | None = None
    unseen: bool = False

    def __post_init__(self) -> None:
        # Quick for Python's own numbers, which need no conversion.
        ends = type(self.lower) is float and type(self.upper) is float
        if not (ends and type(self.feature) is int and self.categories is None):
            self._make_plain()
        if self.lower != self.lower or self.upper != self.upper:
            raise ValueError(
                "lower and upper, each a value of a condition, must not be NaN; use "
                "Condition.is_missing"
            )
        negative = isinstance(self.feature, int) and self.feature < 0
        require(not negative, f"a condition names feature {self.feature}; columns count from 0")
        for name in _FLAGS:
            if type(getattr(self, name)) is not bool:
                object.__setattr__(self, name, checks.flag(name, getattr(self, name)))

    def _make_plain(self) -> None:
        """Python's own numbers in place of NumPy's; anything else is refused."""
        if not isinstance(self.feature, Direction):
            object.__setattr__(self, "feature", _position(self.feature))
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _end(name, getattr(self, name)))
        if self.categories is not None:
            object.__setattr__(self, "categories", _codes("categories", self.categories))

    @classmethod
    def at_most(cls, feature: int | Direction, value: float, missing: bool = False) -> Condition:
        """x <= value."""
        return cls(feature, upper=value, missing=missing)

    @classmethod
    def above(cls, feature: int | Direction, value: float, missing: bool = False) -> Condition:
        """x > value."""
        return cls(feature, lower=value, missing=missing)

    @classmethod
    def at_least(cls, feature: int | Direction, value: float, missing: bool = False) -> Condition:
        """x >= value."""
        return cls(feature, lower=value, lower_closed=True, missing=missing)

    @classmethod
    def below(cls, feature: int | Direction, value: float, missing: bool = False) -> Condition:
        """x < value."""
        return cls(feature, upper=value, upper_closed=False, missing=missing)

    @classmethod
    def one_of(cls, feature: int, codes: Sequence[int], missing: bool = False) -> Condition:
        """x in codes; the code `MISSING` stands for a missing value."""
        given = _codes("codes", codes)
        absent = checks.flag("missing", missing) or MISSING in given
        return cls(feature, missing=absent, categories=given - {MISSING})

    @classmethod
    def none_of(cls, feature: int, codes: Sequence[int], n_categories: int) -> Condition:
        """x not in codes; satisfied by unseen categories, and by missing values unless `MISSING` is
        a code.
        """
        given = _codes("codes", codes)
        n = checks.integer("n_categories", n_categories, at_least=1, at_most=_MOST_CATEGORIES)
        require(
            max(given, default=MISSING) < n,
            f"codes must be below n_categories={n}, got {max(given, default=MISSING)}",
        )
        others = frozenset(range(n)) - given
        return cls(feature, missing=MISSING not in given, categories=others, unseen=True)

    @classmethod
    def is_missing(cls, feature: int, numeric: bool) -> Condition:
        """x is missing."""
        if checks.flag("numeric", numeric):
            # An empty interval: no number satisfies the condition.
            return cls(feature, lower=math.inf, upper=-math.inf, missing=True)
        return cls(feature, categories=frozenset(), missing=True)

    @classmethod
    def is_present(cls, feature: int, n_categories: int | None) -> Condition:
        """x is not missing; `n_categories` is None for a numeric feature."""
        if n_categories is None:
            return cls(feature)
        n = checks.integer("n_categories", n_categories, at_least=1, at_most=_MOST_CATEGORIES)
        return cls(feature, categories=frozenset(range(n)), unseen=True)

    def __and__(self, other: Condition) -> Condition:
        """The conjunction of two conditions on the same feature, as one condition."""
        if self.feature != other.feature:
            raise ValueError(
                f"conditions on features {self.feature} and {other.feature} cannot be merged"
            )
        if (self.categories is None) != (other.categories is None):
            raise ValueError(
                f"feature {self.feature} has both an interval and a set of categories as conditions"
            )
        missing, unseen = self.missing and other.missing, self.unseen and other.unseen
        if self.categories is not None and other.categories is not None:
            both = self.categories & other.categories
            return Condition(self.feature, missing=missing, categories=both, unseen=unseen)
        # An open end is tighter than a closed one at the same value.
        lower, lower_open = max(
            (self.lower, not self.lower_closed), (other.lower, not other.lower_closed)
        )
        upper, upper_closed = min(
            (self.upper, self.upper_closed), (other.upper, other.upper_closed)
        )
        return Condition(self.feature, lower, upper, not lower_open, upper_closed, missing)

    @property
    def admits_no_number(self) -> bool:
        """Whether the interval is empty: at most a missing value satisfies the condition."""
        both_closed = self.lower_closed and self.upper_closed
        return self.lower > self.upper or (self.lower == self.upper and not both_closed)

    def levels_of(self, feature: Feature) -> list[int]:
        """The places of the levels of a column that satisfy the condition; see `Feature`."""
        return [place for place in range(len(feature.levels or ())) if self.admits(place)]

    def admits(self, number: float) -> bool:
        """Whether a number lies in the interval."""
        above = self.lower < number or (self.lower == number and self.lower_closed)
        return above and (number < self.upper or (number == self.upper and self.upper_closed))

    def checked(self, schema: Schema) -> Condition:
        """The condition itself.

        Raises:
            ValueError: if the condition does not fit the schema (feature, kind, category).
        """
        if isinstance(self.feature, Direction):
            require(
                self.categories is None,
                "a direction is numeric; give it an interval, not categories",
            )
            return self
        name, categories = (feature := _feature(schema, self.feature)).name, feature.categories
        if self.categories is None:
            require(
                categories is None,
                f"feature {name!r} is categorical; give it categories, not an interval",
            )
            return self
        require(
            categories is not None,
            f"feature {name!r} is numeric; give it an interval, not categories",
        )
        known = self.categories <= set(range(len(categories or ())))
        require(known, f"a condition on {name!r} has codes beyond its categories {categories}")
        return self

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return self.feature.features if isinstance(self.feature, Direction) else (self.feature,)

    def complement(self, schema: Schema) -> Condition | None:
        """The condition that holds where this one does not; None if that is none, as outside of an
        interval with two ends.
        """
        if self.categories is not None:
            n = len(_feature(schema, self.feature).categories or ())
            others = frozenset(range(n)) - self.categories
            return replace(
                self, categories=others, unseen=not self.unseen, missing=not self.missing
            )
        gaps = schema.absent(self.columns) is not None
        missing = gaps and not self.missing
        if self.admits_no_number or self.lower == math.inf or self.upper == -math.inf:
            return Condition(self.feature, missing=missing)
        below, above = math.isfinite(self.upper), math.isfinite(self.lower)
        if below and above:
            return None
        if below:
            closed = not self.upper_closed
            return Condition(self.feature, self.upper, lower_closed=closed, missing=missing)
        if above:
            closed = not self.lower_closed
            return Condition(self.feature, upper=self.lower, upper_closed=closed, missing=missing)
        # Every number satisfies it: what is left is a missing value.
        empty = Condition(self.feature, math.inf, -math.inf, missing=True)
        return empty if missing else None

    def n_propositions(self, schema: Schema) -> int:
        """The fewest propositions that make it: one per finite end or per excluded category, else
        one.
        """
        if self.categories is None:
            return max(1, math.isfinite(self.lower) + math.isfinite(self.upper))
        if not self.unseen:
            return 1
        # One per excluded category, and "is not missing" if a missing value does not satisfy it.
        return max(
            1,
            len(_feature(schema, self.feature).categories or ())
            - len(self.categories)
            + (not self.missing),
        )

    def parts(self, schema: Schema) -> list[Condition]:
        """The propositions that make it, as `n_propositions` counts them."""
        if self.categories is None:
            if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
                return [self]
            # An infinite end has the flag that it has by default, so that equal conditions compare
            # equal. Both parts keep `missing`: their conjunction is this condition.
            above = replace(self, upper=math.inf, upper_closed=True)
            return [above, replace(self, lower=-math.inf, lower_closed=False)]
        n = len(_feature(schema, self.feature).categories or ())
        if not self.unseen or not isinstance(self.feature, int):
            return [self]
        excluded = sorted(frozenset(range(n)) - self.categories)
        parts = [Condition.none_of(self.feature, [code], n) for code in excluded]
        return parts + ([] if self.missing else [Condition.is_present(self.feature, n)]) or [self]

    def describe(self, schema: Schema) -> str:
        """As text, e.g. ``31 < Age <= 45``, ``Sex == Male``; mentions missing values if the schema
        admits them, and special values if the text would mislead about them.
        """
        levels, special = None, cast(tuple[float, ...], ())
        if isinstance(self.feature, Direction):  # the name says that it adds numbers
            name, columns = self.feature.describe(schema), self.feature.features
        else:
            feature, columns = schema.features[self.feature], (self.feature,)
            if feature.categories is not None:
                missing = self.missing if schema.mentions_missing(columns) else None
                return feature.set_text(self.categories or (), self.unseen, missing)
            name, levels, special = feature.shown, feature.levels, feature.special_values or ()
        absent = schema.absent(columns, in_text=True)
        missing = self.missing and absent is not None
        if levels is not None:
            return display.levels_text(name, levels, self.levels_of(feature), missing)
        if self.admits_no_number:
            return f"{name} is {absent}" if missing else f"{name} never"
        text = display.interval_text(
            name, self.lower, self.upper, self.lower_closed, self.upper_closed, missing,
            absent or "missing",
        )  # fmt: skip
        bounded = math.isfinite(self.lower) or math.isfinite(self.upper)
        # A special value that lies in the interval as a number, -9 in x <= 3, would seem to satisfy
        # it.
        unlike = bounded and not missing and any(map(self.admits, special))
        return f"({text} and not special)" if unlike else text

    def describe_with(self, companion: Condition, schema: Schema) -> str:
        """A condition on a number with special values and one on its companion as one text, e.g.
        ``(months > 1 or months == -8)``.
        """
        assert isinstance(self.feature, int)
        assert isinstance(companion.feature, int)
        feature, allowed = schema.features[self.feature], companion.categories or frozenset()
        if math.isinf(self.lower) and math.isinf(self.upper) and not self.admits_no_number:
            # No ends: either every value passes here and the companion decides, or all special ones
            # fail.
            return (companion if self.missing else self).describe(schema)
        *values, _ = schema.features[companion.feature].categories or ("",)
        # A special value is a missing number: it satisfies both conditions only if `missing` lets
        # it.
        codes = allowed & set(range(len(values))) if self.missing else frozenset()
        missing = self.missing and companion.missing and schema.mentions_missing((self.feature,))
        if len(values) not in allowed or self.admits_no_number:
            return display.special_text(feature.shown, values, codes, missing)
        interval = display.interval_text(
            feature.shown, self.lower, self.upper, self.lower_closed, self.upper_closed, False
        )
        special = enumerate(feature.special_values or ())
        # Special values that the text of the interval seems to admit.
        covered = [code for code, value in special if self.admits(value)]
        return display.number_or_special_text(
            interval, covered, feature.shown, values, codes, missing
        )


def _position(feature: object) -> int:
    """The position of a column."""
    if isinstance(feature, bool) or not isinstance(feature, (int, np.integer)):
        raise TypeError(
            f"a condition must name its feature by column position or Direction, got {feature!r}; "
            "the position of a name is X.names.index(name), X a Table (see jaxrules.as_table)"
        )
    return int(feature)


def _end(name: str, value: object) -> float:
    """An end of an interval; it may be infinite."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        given = type(value).__name__
        raise TypeError(f"{name}, the value of a condition, must be a number, got {given}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}, the value of a condition, is too large for float64") from None


def _codes(name: str, codes: object) -> frozenset[int]:
    """A set of category codes, `MISSING` among them or not."""
    whole = isinstance(codes, (str, bytes)) or (isinstance(codes, np.ndarray) and not codes.ndim)
    if whole or not isinstance(codes, Iterable):
        raise TypeError(f"{name} must be a list of category codes, got {codes!r}")
    codes = frozenset(codes)
    if set(map(type, codes)) == {int} and min(codes) >= MISSING:  # quick, there may be thousands
        return codes
    return frozenset(checks.integer(name, code, at_least=MISSING) for code in codes)


def _counts(propositions: object) -> NDArray[np.int32]:
    """The numbers of propositions of rules."""
    counts = np.asarray(propositions) if np.ndim(cast(Any, propositions)) == 1 else None
    if counts is None or (len(counts) and counts.dtype.kind not in "iu"):
        raise TypeError(f"propositions must be one integer per rule, got {propositions!r}")
    require(
        counts.max(initial=0) < 2**31, "propositions must be numbers of propositions, below 2**31"
    )
    return counts.astype(np.int32)


def _checked(rules: Iterable[Iterable[Condition]]) -> Iterator[list[Condition]]:
    """The rules as lists of conditions, checked."""
    for rule in _iterated(rules, "rules must be a list of rules, each a list of conditions"):
        conditions = list(_iterated(rule, "rules must hold lists of conditions"))
        for one in conditions:
            if not isinstance(one, Condition):
                raise TypeError(
                    f"rules must be made of conditions (see jaxrules.Condition), got {one!r}"
                )
        yield conditions


def _iterated(given: Any, wanted: str) -> Iterable[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{wanted}, got {type(given).__name__}")
    return given


def _feature(schema: Schema, index: object) -> Feature:
    n = len(schema.features)
    if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
        raise TypeError(f"a condition must name its feature by column position, got {index!r}")
    require(0 <= index < n, f"a condition names feature {index}; there are {n}")
    return schema.features[index]


@pytree
@dataclass(frozen=True, eq=False)
class Conjunctions(Keeps):
    """Rules as a struct of arrays. Rule r has the conditions ``offsets[r]:offsets[r + 1]``.

    Attributes:
        offsets: int32, shape (rules + 1,).
        feature: int32, shape (conditions,): a column, or a direction if at least the number of
            columns.
        lower, upper: float64, shape (conditions,); infinite for no end.
        lower_closed, upper_closed, missing, unseen: bool, shape (conditions,); see `Condition`.
        allowed: bool, shape (conditions, most categories of a feature); all False for numeric
            features.
        propositions: int32, shape (rules,): the number of propositions (e.g. splits of a tree) in
            each rule before conditions on the same column were merged.
        schema: the columns of the rules (static).
        directions: the linear combinations of columns that conditions use, all distinct.
    """

    offsets: NDArray[np.int32] = field(metadata={"dtype": np.int32})
    feature: NDArray[np.int32] = field(metadata={"dtype": np.int32})
    lower: NDArray[np.float64] = field(metadata={"dtype": np.float64})
    upper: NDArray[np.float64] = field(metadata={"dtype": np.float64})
    lower_closed: NDArray[np.bool_] = field(metadata={"dtype": np.bool_})
    upper_closed: NDArray[np.bool_] = field(metadata={"dtype": np.bool_})
    missing: NDArray[np.bool_] = field(metadata={"dtype": np.bool_})
    unseen: NDArray[np.bool_] = field(metadata={"dtype": np.bool_})
    allowed: NDArray[np.bool_] = field(metadata={"dtype": np.bool_})
    propositions: NDArray[np.int32] = field(metadata={"dtype": np.int32})
    schema: Schema = field(metadata={"static": True})
    directions: Directions = field(default_factory=Directions.build)

    def __post_init__(self) -> None:
        checks.instance("schema", self.schema, Schema, "jaxrules.as_table(X).schema")
        checks.instance("directions", self.directions, Directions, "Directions.build")
        check_arrays(self)
        if concrete_arrays(self.offsets, self.feature, self.lower, self.upper, self.allowed):
            self._check_shapes()

    @classmethod
    def build(
        cls,
        schema: Schema,
        rules: Iterable[Iterable[Condition]],
        propositions: Sequence[int] | None = None,
    ) -> Self:
        """The conjunctions of these conditions; those of a rule on the same column or direction are
        merged.

        Args:
            schema: the columns.
            rules: the conditions of every rule.
            propositions: the number of propositions in every rule; None counts them, an interval
                with two ends as two.

        Raises:
            TypeError: if `schema` is not a schema, or `rules` not lists of conditions.
            ValueError: if a condition does not fit the schema (feature, kind, category).
        """
        checks.instance("schema", schema, Schema, "jaxrules.as_table(X).schema")
        given = [[condition.checked(schema) for condition in rule] for rule in _checked(rules)]
        # Counted before merging: two splits of a tree on one column are two propositions.
        if propositions is None:
            propositions = [
                sum(condition.n_propositions(schema) for condition in rule) for rule in given
            ]
        merged = [_merge(rule) for rule in given]
        flat = [condition for rule in merged for condition in rule]
        directions = [
            condition.feature for condition in flat if isinstance(condition.feature, Direction)
        ]
        # Directions are numbered after the columns, equal ones once, in order of first use.
        place = {
            direction: len(schema.features) + d
            for d, direction in enumerate(dict.fromkeys(directions))
        }
        allowed = np.zeros((len(flat), _most_categories(schema)), bool)
        for i, condition in enumerate(flat):
            if condition.categories:
                allowed[i, sorted(condition.categories)] = True
        offsets = np.cumsum([0] + [len(rule) for rule in merged])
        feature = np.array(
            [c.feature if isinstance(c.feature, int) else place[c.feature] for c in flat], np.int32
        )
        arrays: dict[str, Any] = {
            name: np.array([getattr(c, name) for c in flat], bool) for name in _FLAGS
        }
        arrays |= {
            name: np.array([getattr(c, name) for c in flat], np.float64)
            for name in ("lower", "upper")
        }
        conjunctions = cls(
            offsets.astype(np.int32),
            feature,
            **arrays,
            allowed=allowed,
            propositions=_counts(propositions),
            schema=schema,
            directions=Directions.build(place),
        )
        conjunctions.validate()
        return conjunctions

    def validate(self) -> None:
        """Check shapes, ranges and kinds; a ValueError names what is wrong."""
        self.directions.validate(self.schema)
        self._check_shapes()
        feature, width = self.feature, _most_categories(self.schema)
        n, n_axes = len(feature), len(self.schema.features) + len(self.directions)
        # One number per rule and axis, so that a repetition shows two conditions of a rule on one
        # axis.
        places = np.repeat(np.arange(len(self)), self.lengths) * n_axes + feature
        require(len(np.unique(places)) == n, "a rule has two conditions on one feature; merge them")
        sizes = [len(f.categories or ()) for f in self.schema.features] + [0] * len(self.directions)
        size, infinite = np.array(sizes)[feature], np.isinf(self.lower) & np.isinf(self.upper)
        beyond = self.allowed & (np.arange(width) >= size[:, None])
        require(not beyond.any(), "allowed names a category that its feature does not have")
        require(
            np.where(size > 0, infinite, ~self.unseen).all(),
            "an interval is for numeric features, unseen for categorical ones",
        )

    def _check_shapes(self) -> None:
        """Check shapes and ranges."""
        feature, width = self.feature, _most_categories(self.schema)
        require(feature.ndim == 1, f"feature must have shape (conditions,), got {feature.shape}")
        n, n_axes = len(feature), len(self.schema.features) + len(self.directions)
        require(
            rises(self.offsets, n), f"offsets must rise from 0 to the {n} conditions of feature"
        )
        require((np.diff(self.offsets) >= 0).all(), "offsets must not fall")
        for name in _CONDITION_ARRAYS:
            given, shape = getattr(self, name).shape, (n, width) if name == "allowed" else (n,)
            require(given == shape, f"{name} must have shape {shape}, got {given}")
        require(((feature >= 0) & (feature < n_axes)).all(), f"feature must lie in 0..{n_axes - 1}")
        require(
            not np.isnan([self.lower, self.upper]).any(),
            "lower and upper, the ends of intervals, must not be NaN",
        )
        counted = self.propositions.shape == (len(self),) and (self.propositions >= 0).all()
        require(
            counted,
            f"propositions must hold one number of at least 0 for each of {len(self)} rules",
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of conditions of every rule, shape (rules,)."""
        return np.diff(self.offsets)

    @property
    def is_numeric(self) -> NDArray[np.bool_]:
        """Whether a condition is an interval, shape (conditions,)."""
        return np.array(
            [f.is_numeric for f in self.schema.features] + [True] * len(self.directions)
        )[self.feature]

    def rule(self, index: int) -> tuple[Condition, ...]:
        """The conditions of one rule."""
        return tuple(
            self._condition(i) for i in range(self.offsets[index], self.offsets[index + 1])
        )

    def __iter__(self) -> Iterator[tuple[Condition, ...]]:
        return (self.rule(index) for index in range(len(self)))

    def _condition(self, i: int) -> Condition:
        feature, n_columns = int(self.feature[i]), len(self.schema.features)
        numeric = feature >= n_columns or self.schema.features[feature].is_numeric
        return Condition(
            self.directions[feature - n_columns] if feature >= n_columns else feature,
            float(self.lower[i]),
            float(self.upper[i]),
            bool(self.lower_closed[i]),
            bool(self.upper_closed[i]),
            bool(self.missing[i]),
            None if numeric else frozenset(np.flatnonzero(self.allowed[i]).tolist()),
            bool(self.unseen[i]),
        )

    def take(self, rules: NDArray[Any] | Sequence[int]) -> Self:
        """The rules with these indices (or of this boolean mask), in this order."""
        chosen = np.arange(len(self))[np.asarray(rules, dtype=None if len(rules) else np.int64)]
        lengths = self.lengths[chosen]
        # Per condition of the result, what to add to its place there to get its place here.
        starts = np.repeat(
            self.offsets[chosen] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths
        )
        conditions = (starts + np.arange(lengths.sum())).astype(np.int64)
        arrays = {name: getattr(self, name)[conditions] for name in _CONDITION_ARRAYS}
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        taken = replace(self, offsets=offsets, propositions=self.propositions[chosen], **arrays)
        return taken._compact(self.directions)

    @classmethod
    def concatenate(cls, parts: Sequence[Conjunctions]) -> Self:
        """All rules of the parts (at least one) in order; the parts must have the same columns."""
        require(len(parts) > 0, "there is nothing to concatenate")
        columns, n_columns = parts[0].schema.features, len(parts[0].schema.features)
        same = all(part.schema.features == columns for part in parts)
        require(same, "the conjunctions are for different columns; build them from the same data")
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in _CONDITION_ARRAYS
        }
        # The directions of a part are numbered after those of all parts before it.
        before = np.cumsum([0] + [len(part.directions) for part in parts])
        shifts = np.repeat(before[:-1], [len(part.feature) for part in parts]) * (
            arrays["feature"] >= n_columns
        )
        arrays["feature"] = (arrays["feature"] + shifts).astype(np.int32)
        offsets = np.cumsum(np.concatenate([[0], *(part.lengths for part in parts)])).astype(
            np.int32
        )
        propositions = np.concatenate([part.propositions for part in parts])
        directions = [direction for part in parts for direction in part.directions]
        whole = cls(
            offsets,
            **arrays,
            propositions=propositions,
            schema=parts[0].schema,
            directions=Directions.build(directions),
        )
        return whole._compact(directions)

    def _compact(self, directions: Iterable[Direction]) -> Self:
        """Without unused or duplicate directions; the rest in order of first use."""
        listed, n_columns = list(directions), len(self.schema.features)
        place: dict[Direction, int] = {}
        feature = self.feature.copy()
        for i in np.flatnonzero(feature >= n_columns).tolist():
            feature[i] = n_columns + place.setdefault(listed[feature[i] - n_columns], len(place))
        return replace(self, feature=feature, directions=Directions.build(place))

    def with_short_thresholds(self, table: Table) -> Self:
        """With the shortest thresholds that leave every rule true on the same rows of the table.

        A threshold moves to the nearest number with the fewest decimals between the two values of
        its column (or direction) that it separates. Thresholds beyond the table's values stay. In
        a column of integers they become integers, see `whole_thresholds`.
        """
        ends: dict[str, Any] = {"lower": self.lower.copy(), "upper": self.upper.copy()}
        for index in np.unique(self.feature[self.is_numeric]).tolist():
            on = np.flatnonzero(self.feature == index)
            values = self._values(index, table)
            known = np.unique(values[~np.isnan(values)])
            for name, new in ends.items():
                is_open = (
                    ~self.lower_closed[on] if name == "lower" else self.upper_closed[on]
                )  # "x > t" or "x <= t"
                for below in (
                    False,
                    True,
                ):  # whether a value that equals the threshold lies below it
                    some = on[(is_open == below) & np.isfinite(new[on])]
                    new[some] = whole_thresholds(_shortened(new[some], known, below), known, below)
        # Both ends of an interval may move to one number, if no value of the table lies inside. It
        # must not become empty for other rows: such an interval keeps its ends.
        admits = (ends["lower"] < ends["upper"]) | ~(self.lower < self.upper)
        lower, upper = (np.where(admits, new, getattr(self, name)) for name, new in ends.items())
        return replace(self, lower=lower, upper=upper)

    def _values(self, index: int, table: Table) -> NDArray[np.float64]:
        """A numeric column of the table, or the values of a direction, shape (rows,)."""
        n_columns = len(self.schema.features)
        return (
            table.columns[index]
            if index < n_columns
            else self.directions.project(index - n_columns, table)
        )

    def with_schema(self, schema: Schema) -> Self:
        """The same rules with a schema of the same columns (e.g. with other classes)."""
        same = schema.features == self.schema.features
        require(
            same,
            "rules were built for columns other than those of X; build them from the same data",
        )
        return replace(self, schema=schema)

    def describe(self, index: int, both: str = " & ") -> str:
        """One rule as text, e.g. ``Age > 31 & Sex == Male``; "always" for the empty one."""
        rule, texts = {condition.feature: condition for condition in self.rule(index)}, []
        # Conditions on a number and on its companion are one text, at the place of the number.
        pairs = {f: c for f, c in self.schema.companions.items() if f in rule and c in rule}
        for feature, condition in rule.items():
            if feature in pairs:
                texts.append(condition.describe_with(rule[pairs[feature]], self.schema))
            elif feature not in pairs.values():
                texts.append(condition.describe(self.schema))
        return both.join(texts) or "always"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rules, {len(self.feature)} conditions)"

    # Evaluating rules, see `jaxrules.rules.lowered`

    def satisfied(self, table: Table) -> NDArray[np.bool_]:
        """Which rules each row satisfies, shape (rows, rules)."""
        result = np.empty((table.n_rows, len(self)), bool)
        for rows, batch in self.batches(table):
            result[rows] = batch
        return result

    def batches(self, table: Table) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """`satisfied` in blocks of rows, to save memory on large tables.

        Raises:
            ValueError: if the table does not have the columns of the rules.
        """
        return self._batches(table, Lowered.satisfied)

    def batches_by_rule(self, table: Table) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """`batches` rule by rule, shape (rules, rows)."""
        return self._batches(table, Lowered.by_rule, axis=0)

    def packed_batches(self, table: Table) -> Iterator[tuple[slice, Words]]:
        """`batches` as bits, uint64, shape (rows, words); see `jaxrules.tools.bits`."""
        return self._batches(table, Lowered.packed)

    def _batches(
        self, table: Table, check: Callable[[Lowered, Table], Any], axis: int = 1
    ) -> Iterator[tuple[slice, Any]]:
        same = table.schema.features == self.schema.features
        require(
            same,
            "the table and the rules have different columns; use "
            "jaxrules.data.table.conform(X, schema)",
        )
        parts = [part.lowered() for part in self._parts()]

        def checked(rows: Table) -> Any:
            found = [check(part, rows) for part in parts]
            return found[0] if len(found) == 1 else np.concatenate(found, axis=axis)

        size = min(_MOST_ROWS_PER_BATCH, max(1, _CELLS_PER_BATCH // max(1, len(self))))
        blocks = [slice(i, min(i + size, table.n_rows)) for i in range(0, table.n_rows, size)]
        if len(blocks) == 1:
            yield blocks[0], checked(table)
            return
        pending: deque[tuple[slice, Future[Any]]] = deque()
        with ThreadPoolExecutor(2) as pool:  # NumPy releases the interpreter lock
            for rows in blocks:
                checkpoint()
                # Blocks come out in order, and only two are computed ahead, which bounds the
                # memory.
                pending.append((rows, pool.submit(lambda rows: checked(table[rows]), rows)))
                if len(pending) > 2:
                    done, batch = pending.popleft()
                    yield done, batch.result()
            for done, batch in pending:
                yield done, batch.result()

    def _parts(self) -> list[Self]:
        """Consecutive rules that are evaluated on their own, if they then use few columns each:
        time and memory are in proportion to rules times columns.
        """
        if len(self) <= _RULES_PER_PART:
            return [self]
        starts = range(0, len(self), _RULES_PER_PART)
        uses = np.zeros((len(starts), int(self.feature.max(initial=-1)) + 1), bool)
        uses[np.repeat(np.arange(len(self)) // _RULES_PER_PART, self.lengths), self.feature] = True
        if len(starts) * uses.any(axis=0).sum() <= 2 * uses.sum():
            return [self]
        return [self.take(np.arange(i, min(i + _RULES_PER_PART, len(self)))) for i in starts]

    def satisfied_traced(self, X: jax.Array) -> jax.Array:
        """`satisfied` for use under jit, vmap and grad; comparisons use the dtype of `X`.

        Args:
            X: shape (rows, features); NaN is missing; a categorical column holds codes, including
                `MISSING` and `UNSEEN`.
        """
        n_rules, n_conditions, shape = (
            len(self),
            self.feature.shape[0],
            ("rows", len(self.schema.features)),
        )
        fit = X.ndim == 2 and X.shape[1] == shape[1]
        require(
            fit,
            f"X must have shape (rows, {shape[1]}) under jit or vmap, got {X.shape}; one row is "
            "X[None, :]",
        )
        if len(self.directions):
            X = jnp.concatenate([X, self.directions.project_traced(X, self.schema)], axis=1)
        x = X[:, self.feature]
        lower, upper = like(self.lower, X)[None], like(self.upper, X)[None]
        holds = interval_holds(
            x, lower, upper, self.lower_closed[None], self.upper_closed[None], self.missing[None]
        )
        if self.allowed.shape[1]:
            # Columns of the look-up: the categories, then unseen (code -2), then missing (code -1).
            lookup = jnp.concatenate(
                [self.allowed, self.unseen[:, None], self.missing[:, None]], axis=1
            )
            # The modulus turns -2 and -1 into the last two columns. Numeric columns look up an
            # arbitrary one, which the `where` below discards.
            codes = jnp.where(jnp.isnan(x), MISSING, x).astype(jnp.int32) % lookup.shape[1]
            in_set = lookup[jnp.arange(n_conditions)[None], codes]
            numeric = jnp.array(
                [f.is_numeric for f in self.schema.features] + [True] * len(self.directions)
            )
            holds = jnp.where(numeric[self.feature][None], holds, in_set)
        rule = jnp.searchsorted(self.offsets[1:], jnp.arange(n_conditions), side="right")
        # A rule holds where none of its conditions fails; one without conditions sums to 0, so it
        # always holds.
        violations = jax.ops.segment_sum((~holds).T.astype(jnp.int32), rule, num_segments=n_rules)
        return violations.T == 0

    def lowered(self) -> Lowered:
        """The rules in the form in which they are evaluated; kept, unless there are many."""
        if self.feature.size + self.allowed.size > _MOST_KEPT_NUMBERS:
            return self._lower()
        known = self._derived()
        lowered: Lowered | None = known.get("lowered")
        if lowered is None:
            lowered = self._lower()
            if lowered.is_small:
                known["lowered"] = lowered
        return lowered

    def texts(self, rules: Iterable[int], both: str = " & ") -> dict[int, str]:
        """`describe` of some rules of a model, kept."""
        known = self._derived().setdefault(f"texts{both}", {})
        for rule in rules:
            if rule not in known:
                known[rule] = self.describe(rule, both)
        return known

    def _derived(self) -> dict[str, Any]:
        """What was computed from the rules as they are now: arrays can be changed in place."""
        parts = [getattr(self, name) for name in _EVALUATED]
        if len(directions := self.directions):
            parts += [getattr(directions, one.name) for one in fields(directions)]
        # Arrays of JAX cannot be changed.
        now = [part.tobytes() for part in parts if isinstance(part, np.ndarray)]
        kept: tuple[list[bytes], dict[str, Any]] | None = self.recall("derived")
        if kept is None or kept[0] != now:
            kept = self.keep("derived", (now, {}))
        return kept[1]

    def _lower(self) -> Lowered:
        rule_of = np.repeat(np.arange(len(self)), self.lengths)
        words = n_words(len(self))
        axes, tables = [], []
        for axis, on in self._axes():
            bits = np.empty((axis.n_cells, words), np.uint64)
            for word in range(0, words, _WORDS_PER_BLOCK):
                checkpoint()
                end = min(word + _WORDS_PER_BLOCK, words)
                block = on[(rule_of[on] >= 64 * word) & (rule_of[on] < 64 * end)]
                # A rule without a condition on this axis is violated in none of its cells.
                ok = np.ones((axis.n_cells, 64 * (end - word)), bool)
                ok[:, rule_of[block] - 64 * word] = self._cells(
                    axis, block
                ).T  # one condition per rule and axis
                bits[:, word:end] = pack(ok)
            axes.append(axis)
            tables.append(bits)
        return Lowered(len(self), self.directions, tuple(axes), tuple(tables))

    def _axes(
        self, chosen: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[Axis, NDArray[np.int64]]]:
        """The axes of the (chosen) conditions, cut at the ends of their intervals, each with its
        conditions.
        """
        places = np.arange(len(self.feature)) if chosen is None else np.flatnonzero(chosen)
        for some in places_of_equals(self.feature[places]):
            on = places[some]
            index = int(self.feature[on[0]])
            if index < len(self.schema.features) and not self.schema.features[index].is_numeric:
                # As many cells as the feature with most categories has, then "unseen" and
                # "missing".
                yield Axis(index, None, self.allowed.shape[1] + 2), on
                continue
            ends = np.unique([self.lower[on], self.upper[on]])
            cuts = ends[np.isfinite(ends)]
            # K cut points, the K + 1 intervals around them, and "missing".
            yield Axis(index, cuts, 2 * len(cuts) + 2), on

    def _range(self, axis: Axis, on: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and last cell of these intervals."""
        assert axis.cuts is not None
        return cell_range(
            self.lower[on], self.upper[on], self.lower_closed[on], self.upper_closed[on], axis.cuts
        )

    def _cells(self, axis: Axis, on: NDArray[Any]) -> NDArray[np.bool_]:
        """Which cells satisfy these conditions, shape (conditions, cells)."""
        if axis.cuts is None:
            return np.concatenate(
                [self.allowed[on], self.unseen[on, None], self.missing[on, None]], axis=1
            )
        first, last = self._range(axis, on)
        cells = np.arange(axis.n_cells - 1)
        holds = (cells >= first[:, None]) & (cells <= last[:, None])
        return np.concatenate([holds, self.missing[on, None]], axis=1)


_FLAGS = ("lower_closed", "upper_closed", "missing", "unseen")
_CONDITION_ARRAYS = ("feature", "lower", "upper", *_FLAGS, "allowed")
_EVALUATED = ("offsets", *_CONDITION_ARRAYS)


def _most_categories(schema: Schema) -> int:
    return max((len(f.categories) for f in schema.features if f.categories is not None), default=0)


def _shortened(
    thresholds: NDArray[np.float64], values: NDArray[np.float64], below: bool
) -> NDArray[np.float64]:
    """The shortest numbers that separate the same `values`, which are distinct and sorted.

    `below`: a value equal to a threshold lies below it.
    """
    distinct, place = np.unique(thresholds, return_inverse=True)
    after = np.searchsorted(values, distinct, side="right" if below else "left")
    for i, k in enumerate(after.tolist()):
        if 0 < k < len(values):
            distinct[i] = display.shortest_number(
                float(distinct[i]), float(values[k - 1]), float(values[k]), below
            )
    return distinct[place]


def whole_thresholds(
    thresholds: NDArray[np.float64], values: NDArray[np.float64], below: bool
) -> NDArray[np.float64]:
    """Thresholds for a column with these values (NaN for missing): if all are integers, the
    integers for which every condition holds on the same integers; else as given.

    ``x <= 41.5`` becomes ``x <= 41``, and ``x >= 41.5`` becomes ``x >= 42``.

    Args:
        below: whether a value equal to a threshold lies below it, as for ``<=`` and ``>``.
    """
    for some in (values[:_SOME_VALUES], values):  # a few usually suffice
        known = some[~np.isnan(some)]
        if (known != np.rint(known)).any():
            return thresholds
    return (np.floor(thresholds) if below else np.ceil(thresholds)) + 0.0  # no negative zero


def _merge(rule: Sequence[Condition]) -> list[Condition]:
    """One condition per column or direction, in order of first use."""
    merged: dict[int | Direction, Condition] = {}
    for condition in rule:
        earlier = merged.get(condition.feature)
        merged[condition.feature] = condition if earlier is None else earlier & condition
    return list(merged.values())


# Pools of propositions


class CellCodes(NamedTuple):
    """Propositions as comparisons of integer codes: proposition a holds where codes[:, column[a]]
    >= cell[a] if above[a], else where codes[:, column[a]] <= cell[a].

    K thresholds on a column or direction cut it into 2 K + 1 cells: the values and the gaps between
    them. Thresholds on a feature share a code column (two if values are missing: a missing value
    lies above all "<=" and below all ">="). Every other proposition has its own.
    """

    codes: NDArray[np.uint16]  # (rows, code columns), column by column in memory
    column: NDArray[np.int32]
    above: NDArray[np.bool_]
    cell: NDArray[np.uint16]


@pytree
@dataclass(frozen=True, eq=False)
class PropositionPool(Conjunctions):
    """Propositions to build rules from: conjunctions of one condition each. Made by `of` or
    `propositions_of`.
    """

    @classmethod
    def of(cls, schema: Schema, propositions: Iterable[Condition]) -> PropositionPool:
        """The pool of these propositions.

        Raises:
            ValueError: if a proposition does not fit the schema (feature, kind, category).
        """
        return cls.build(schema, [[proposition] for proposition in propositions])

    @classmethod
    def of_values(
        cls, schema: Schema, given: Iterable[tuple[Sequence[Condition], NDArray[Any]]]
    ) -> PropositionPool:
        """Some propositions for each of many values, which replace the 0 of a threshold or of a
        category. "Is missing" and "is not missing" have one value of any size.

        A set of all categories but one, a Python object for each, would take too long to make.
        """
        templates, index, number = list[Condition](), [np.zeros(0, np.intp)], [np.zeros(0)]
        for some, values in given:
            index.append(np.tile(len(templates) + np.arange(len(some)), len(values)))
            number.append(np.repeat(values, len(some)))
            templates += some
        pool, values = cls.of(schema, templates).take(np.concatenate(index)), np.concatenate(number)
        lower = np.where(pool.lower == 0, values, pool.lower)
        upper = np.where(pool.upper == 0, values, pool.upper)
        # Neither flag is set for "==", both for "!=", and one for "is missing" and "is not
        # missing".
        category = np.flatnonzero(~pool.is_numeric & (pool.missing == pool.unseen))  # "==" or "!="
        allowed = pool.allowed
        # The templates are about category 0. Two flips move its bit, set by "==" and cleared by
        # "!=", to the category of the value; for category 0 they cancel.
        for code in (0, values[category].astype(np.intp)) if len(category) else ():
            allowed[category, code] ^= True
        return replace(pool, lower=lower, upper=upper, allowed=allowed)

    def validate(self) -> None:
        """Check shapes, ranges and kinds, and that every rule has one condition; a ValueError names
        what is wrong.
        """
        super().validate()
        require((self.lengths == 1).all(), "every proposition of a pool must be one condition")

    def conjunctions(
        self, rules: Iterable[Iterable[int]], schema: Schema | None = None
    ) -> Conjunctions:
        """The conjunctions of propositions of this pool, given by their indices.

        Args:
            rules: the propositions of every rule.
            schema: of the result, with the same columns; None takes the pool's own.
        """
        chosen = [list(rule) for rule in rules]
        return Conjunctions.build(
            self.schema if schema is None else schema,
            [[self._condition(i) for i in rule] for rule in chosen],
            [int(self.propositions[rule].sum()) for rule in chosen],
        )

    def distinct(self, table: Table, tags: NDArray[np.bool_] | None = None) -> Self:
        """Without propositions that hold on all rows or on none; of those true on the same rows,
        the first.

        Propositions with different tags, shape (propositions, tags), are distinct. Sets of rows are
        compared by their sizes and by three sums of random integers, one integer per row (exact in
        float64).
        """
        n_rows = table.n_rows
        # Every sum of these is an integer below 2^52: exact in float64 whatever the order, so that
        # equal sets of rows have equal sums.
        marks = np.random.default_rng(0).integers(0, 2**52 // n_rows, (3, n_rows))
        sums = np.empty((len(self), 4))
        for axis, on in self._axes():
            checkpoint()
            cells = axis.cells(table, self.directions)
            of_cell = np.stack(
                [np.bincount(cells, mark, axis.n_cells) for mark in (np.ones(n_rows), *marks)],
                axis=1,
            )
            if axis.cuts is None:
                sums[on] = self._cells(axis, on) @ of_cell
            else:
                first, last = self._range(axis, on)
                # An interval is a run of cells: its sums are differences of running sums, exact as
                # integers. The `maximum` makes the run of an empty interval empty.
                below = np.concatenate([np.zeros((1, 4)), np.cumsum(of_cell, axis=0)])
                sums[on] = (
                    below[np.maximum(first, last + 1)]
                    - below[first]
                    + self.missing[on, None] * of_cell[-1]
                )
        some = np.flatnonzero((sums[:, 0] > 0) & (sums[:, 0] < n_rows))
        if tags is not None:
            sums = np.concatenate([sums, tags], axis=1)
        first, _ = distinct(sums[some].view(np.uint64))
        return self.take(some[first])

    def cell_codes(self, table: Table) -> CellCodes:
        """The propositions as comparisons of integer codes.

        Raises:
            ValueError: if a feature has more cut points than there are codes.
        """
        n = len(self)
        codes: list[NDArray[Any]] = []
        column, above, cell = np.zeros(n, np.int32), np.ones(n, bool), np.ones(n, np.uint16)
        from_below, from_above = np.isneginf(self.lower), np.isposinf(self.upper)
        # A threshold has exactly one finite end, and a missing value does not satisfy it.
        threshold = self.is_numeric & ~self.missing & (from_below ^ from_above)
        threshold &= np.isfinite(np.where(from_below, self.upper, self.lower))
        for axis, on in self._axes(threshold):
            checkpoint()
            if axis.n_cells > _MOST_CELLS:
                n_cuts, n_columns = axis.n_cells // 2 - 1, len(self.schema.features)
                name = (
                    f"column {self.schema.names[axis.feature]!r}"
                    if axis.feature < n_columns
                    else "a direction"
                )
                raise ValueError(f"{name} has {n_cuts} cut points; set max_cut_points to use fewer")
            # Codes start at 1. In the column for "<=", a missing value has the highest code, so it
            # fails all of them; a second column, for ">=", gives it the code 0.
            cells = axis.cells(table, self.directions) + 1
            missing = cells == axis.n_cells
            first, last = self._range(axis, on)
            above[on] = from_above[on]
            cell[on] = np.where(above[on], first, last) + 1
            column[on] = len(codes)
            codes.append(cells)
            if missing.any():
                column[on] += above[on]
                codes.append(np.where(missing, 0, cells))
        # All others have a column of zeros and ones; `above` and `cell` say ">= 1" by default.
        rest = np.flatnonzero(~threshold)
        column[rest] = len(codes) + np.arange(len(rest))
        matrix = np.empty((table.n_rows, len(codes) + len(rest)), np.uint16, "F")
        for place, cells in enumerate(codes):
            matrix[:, place] = cells
        for rows, batch in self.take(rest).batches(table):
            matrix[rows, len(codes) :] = batch
        return CellCodes(matrix, column, above, cell)


def propositions_of(table: Table, *, max_cut_points: int | None = None) -> PropositionPool:
    """All propositions that distinguish rows of the table.

    A numeric column is compared with each of its values from both sides, or with at most
    `max_cut_points` quantiles (at the shares i / (max_cut_points + 1), see `readable_quantiles`),
    open and closed; a column of integers with integers (`whole_thresholds`). Categories are
    compared by ``==`` and ``!=``. A column with missing values also gets "is missing" and "is not
    missing". Propositions that hold on all rows or on none, and those true on the same rows as an
    earlier one, are left out.

    Raises:
        TypeError, ValueError: if max_cut_points is not a positive integer.
    """
    return all_propositions(table, max_cut_points=max_cut_points).distinct(table)


def all_propositions(
    table: Table,
    *,
    max_cut_points: int | None = None,
    max_categories: int | None = None,
    columns: Container[int] | None = None,
) -> PropositionPool:
    """`propositions_of`, but with propositions that hold on all rows or on none, and with
    duplicates; of some columns, if they are given; of the categories of a column, the
    `max_categories` most frequent.

    Raises:
        TypeError, ValueError: if max_cut_points is not a positive integer.
    """
    max_cut_points = checks.optional(checks.integer, "max_cut_points", max_cut_points, at_least=1)
    given: list[tuple[Sequence[Condition], NDArray[Any]]] = []
    for index, feature in enumerate(table.schema.features):
        checkpoint()
        if columns is not None and index not in columns:
            continue
        missing = table.missing_mask(index)
        if feature.categories is None:
            order = table.ascending(index)[: table.n_rows - np.count_nonzero(missing)]
            known = table.columns[index][order]
            cuts, thresholds = _cut_points(known, max_cut_points)
            for threshold in thresholds:
                one = threshold(index, 0.0)
                below = one.upper_closed and not one.lower_closed  # "<=" and ">"
                given.append(([one], whole_thresholds(cuts, known, below)))
        else:
            codes = np.array(table.compared_categories(index, max_categories), np.intp)
            given += [([one], codes) for one in about_category(table.schema, index)]
        if missing.any():
            given.append((about_missing(table.schema, index), np.zeros(1)))
    return PropositionPool.of_values(table.schema, given)


def about_category(schema: Schema, index: int) -> list[Condition]:
    """A column is of the first category, and it is of any other."""
    n = len(schema.features[index].categories or ())
    return [Condition.one_of(index, [0]), Condition.none_of(index, [0], n)]


def about_missing(schema: Schema, index: int) -> list[Condition]:
    """A column is missing, and it is not."""
    categories = schema.features[index].categories
    n = None if categories is None else len(categories)
    return [Condition.is_missing(index, numeric=n is None), Condition.is_present(index, n)]


def _cut_points(
    x: NDArray[np.float64], max_cut_points: int | None
) -> tuple[NDArray[np.float64], tuple[Callable[[int, float], Condition], ...]]:
    """The values to compare a sorted column with, and how."""
    cuts = _values(x)
    if max_cut_points is None or len(cuts) <= max_cut_points + 1:
        # x < v is x <= the value before v.
        return cuts, (Condition.at_most, Condition.at_least)
    shares = np.arange(1, max_cut_points + 1) / (max_cut_points + 1)
    thresholds = Condition.at_most, Condition.at_least, Condition.below, Condition.above
    return _readable(x, cuts, shares), thresholds


def _values(ascending: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each value once."""
    # An empty column has no first value, hence the slice.
    return ascending[np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]]


def readable_quantiles(x: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Linearly interpolated quantiles; one between two values is rounded to the fewest decimals
    that keep it there.
    """
    x = np.sort(x)
    return _readable(x, _values(x), shares)


def _readable(
    ascending: NDArray[np.float64], values: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`readable_quantiles` of a sorted column, which are quick, and of each of its values once."""
    cuts = _values(np.sort(np.quantile(ascending, shares)))
    for i, k in enumerate(np.minimum(np.searchsorted(values, cuts), len(values) - 1).tolist()):
        low, high = float(values[max(k - 1, 0)]), float(values[k])
        rounding = 1e-12 * max(abs(low), abs(high))
        if min(cuts[i] - low, high - cuts[i]) <= rounding:  # a value that occurs
            cuts[i] = low if cuts[i] - low < high - cuts[i] else high
            continue
        cuts[i] = display.shortest_number(float(cuts[i]), low, math.nextafter(high, low))
    return _values(np.sort(cuts))
