"""The user's data: named columns, numeric or categorical, with an explicit rule for missing values.

`as_table` turns a 2-D array, any dataframe or records (dicts) into a `Table`; `conform` fits new
data to the `Schema` of a model: dataframe columns and keys are matched by name, arrays by position.
Numbers are float64. Categories are strings and become integer codes in the order of
`Feature.categories`. Booleans and ordered categories are the numbers 0, 1, ... with names, their
`Feature.levels`: learners compare them as numbers, and conditions print the names.

Missing values (NaN, None, null) are refused unless ``missing="own_category"``: then "is missing" is
a category of its own, every threshold states whether a missing value satisfies it, and nothing is
imputed. Infinite numbers are always refused. A category that was not seen in fit equals none of the
known ones: it satisfies ``!=`` and fails ``==``. A column with only unseen categories causes a
warning. Numeric categories have one text whatever their type: 1, 1.0 and "1" are the same category.

A number can have special values, codes such as -9 for "no record". The table then holds two
columns for the one of X: the numbers, missing where X has a special value; and, after all columns
of X, a categorical *companion*, which has a category per special value and one for all numbers.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.few_rows import Reader, columns_of
from jaxrules.tools import checks, display
from jaxrules.tools.kept import Keeps, kept
from jaxrules.tools.sorting import ascending

MissingRule = Literal["refuse", "own_category"]
Label = str | int | float | bool

MISSING = -1
"""Code of a missing category."""
UNSEEN = -2
"""Code of a category that is not in the schema."""

# 2^53 itself is refused too: 2^53 + 1 rounds to it.
_LARGEST_EXACT_INTEGER = 2**53
MANY_CATEGORIES = 1000
"""Learners compare a column of more categories with the most frequent ones only."""
COMPARED = 500
"""That many."""


BOOLEAN = (False, True)
"""The levels of a column of True and False."""
A_NUMBER = "a number"
"""The last category of a companion."""


@dataclass(frozen=True)
class Feature:
    """One column.

    Attributes:
        name: of the column.
        categories: None for a numeric column.
        levels: what the numbers 0, 1, ... of a numeric column stand for: (False, True), or the
            texts of an ordered categorical column in their order; None if they are just numbers.
        special_values: of a number, ascending: here it is missing, see the module; None without.
        source: of a companion, the column of X whose special values are the categories.
    """

    name: str
    categories: tuple[str, ...] | None = None
    levels: tuple[str | bool, ...] | None = None
    special_values: tuple[float, ...] | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        checks.text("name of a feature", self.name)
        if self.levels is not None:
            self._check_levels(self.levels)
        if self.special_values is not None:
            self._check_special_values(self.special_values)
        given = self.categories
        if given is None:
            return
        if not isinstance(given, tuple) or not all(isinstance(one, str) for one in given):
            raise TypeError(
                f"categories of feature {self.name!r} must be a tuple of text, got {given!r}"
            )
        if not given or len(set(given)) < len(given):
            raise ValueError(
                f"categories of feature {self.name!r} must be at least one, all distinct"
            )

    def _check_levels(self, given: object) -> None:
        kinds = {type(one) for one in given} if isinstance(given, tuple) else set()
        if self.categories is not None or not (
            kinds == {str} or (kinds == {bool} and given == BOOLEAN)
        ):
            raise TypeError(
                f"levels of feature {self.name!r} must be (False, True) or a tuple of text, "
                f"without categories, got {given!r}"
            )
        if kinds == {bool} or not isinstance(given, tuple):
            return
        if len(set(given)) < len(given):
            raise ValueError(f"levels of feature {self.name!r} must all be distinct")

    def _check_special_values(self, given: object) -> None:
        if self.kind != "number" or not (
            isinstance(given, tuple) and all(isinstance(one, float) for one in given)
        ):
            raise TypeError(
                f"special_values of feature {self.name!r} must be a tuple of numbers, without "
                f"categories and levels, got {given!r}"
            )
        if not given or list(given) != sorted(set(given)) or not np.isfinite(given).all():
            raise ValueError(
                f"special_values of feature {self.name!r} must be at least one, finite, distinct "
                "and ascending"
            )

    @property
    def is_numeric(self) -> bool:
        return self.categories is None

    @property
    def is_boolean(self) -> bool:
        return self.levels is not None and self.levels[0] is False

    @property
    def kind(self) -> str:
        """The kind of the column, for display."""
        if self.categories is not None:
            return "text" if self.source is None else "special"
        return "number" if self.levels is None else "True / False" if self.is_boolean else "ordered"

    @property
    def shown(self) -> str:
        """The name of the column of X as rules show it."""
        return display.name_text(self.source or self.name)

    @property
    def as_number(self) -> str:
        """The column as a term of a sum: the name; ``number(x)`` if x has special values;
        ``[flag]`` for 1 if True; ``rank(size)`` for the place of an ordered category, from 0.
        """
        if self.levels is None:
            return self.shown if self.special_values is None else f"number({self.shown})"
        return f"[{self.shown}]" if self.is_boolean else f"rank({self.shown})"

    def set_text(self, codes: Iterable[int], unseen: bool, missing: bool | None) -> str:
        """A set of its categories as text; `missing`: None if missing values are refused. See
        `display.set_text`.
        """
        categories = self.categories or ()
        if self.source is not None:
            return display.special_text(self.shown, categories[:-1], codes, missing)
        # The texts of `unseen` conditions imply missing values.
        missing = unseen if missing is None else missing
        return display.set_text(self.shown, categories, codes, unseen, missing)

    def companion(self) -> Feature:
        """The companion of a number with special values."""
        texts = map(category_text, self.special_values or ())
        return Feature(f"{self.name} (special)", (*texts, A_NUMBER), source=self.name)


@dataclass(frozen=True)
class Schema(Keeps):
    """The columns and classes of a model's data. Hashable: the static part of every model.

    Attributes:
        features: the columns in order.
        missing: the rule for missing values given to fit.
        classes: the class labels, in the order that the target declares (see `label_order`), else
            sorted; of two the positive one last. None for regression and counts.
        target: name of the target, for display.
        never_missing: the numbers with special values, and their companions, that were not missing
            in fit. Conditions on them do not mention missing values, which count as special.
    """

    features: tuple[Feature, ...]
    missing: MissingRule = "refuse"
    classes: tuple[Label, ...] | None = None
    target: str = "target"
    never_missing: tuple[int, ...] = ()

    @kept
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @kept
    def readers(self) -> tuple[Reader, ...]:
        """How rows of Python values become the columns of X, see `jaxrules.data.few_rows`."""
        return tuple(_reader(feature) for feature in self.sources)

    @kept
    def sources(self) -> tuple[Feature, ...]:
        """The columns of X, in order: all but companions, which come last."""
        return tuple(feature for feature in self.features if feature.source is None)

    @kept
    def companions(self) -> dict[int, int]:
        """The places of the companions, ascending, by those of their numbers."""
        place: dict[str | None, int] = {name: index for index, name in enumerate(self.names)}
        return {
            place[feature.source]: index
            for index, feature in enumerate(self.features)
            if feature.source is not None
        }

    def absent(self, features: Collection[int], in_text: bool = False) -> str | None:
        """What a row without a value in one of these columns is: "missing", "special",
        "special or missing"; None if every row has one. `in_text`: as far as rules mention it.
        """
        special = any(self.features[f].special_values is not None for f in features)
        missing = self.mentions_missing(features) if in_text else self.missing != "refuse"
        return " or ".join(["special"] * special + ["missing"] * missing) or None

    def mentions_missing(self, features: Collection[int]) -> bool:
        """Whether conditions on these columns say if a missing value satisfies them."""
        return self.missing != "refuse" and not set(features) <= set(self.never_missing)

    def __post_init__(self) -> None:
        if not isinstance(self.features, tuple) or not all(
            isinstance(feature, Feature) for feature in self.features
        ):
            raise TypeError(f"features must be a tuple of Feature, got {self.features!r}")
        if not self.features:
            raise ValueError("a schema needs at least one feature; features is empty")
        if len(set(self.names)) < len(self.names):
            raise ValueError("features have names that repeat; they must be distinct")
        # Companions come last, so that the columns of X keep their positions with and without them.
        special = {f.companion() for f in self.features if f.special_values is not None}
        if set(self.features[len(self.sources) :]) != special:
            raise ValueError(
                "features must end in the companions of the numbers with special values; use "
                "jaxrules.as_table"
            )
        checks.choice("missing", self.missing, get_args(MissingRule))
        checks.text("target", self.target, "a name")
        if self.classes is not None:
            if not isinstance(self.classes, tuple) or not all(
                isinstance(label, (str, int, float, bool)) for label in self.classes
            ):
                raise TypeError(f"classes must be a tuple of labels or None, got {self.classes!r}")
            if len(set(self.classes)) < max(2, len(self.classes)):
                raise ValueError("classes must be at least two, all distinct")
            # `predict` indexes an array of the labels, in which NumPy would give mixed ones a
            # common type.
            if len({type(label) for label in self.classes}) > 1:
                raise ValueError("classes must be of one type")
            if any(
                isinstance(label, int) and not -(2**63) <= label < 2**63 for label in self.classes
            ):
                raise ValueError("integer classes must fit in 64 bits; write larger ones as text")
            if any(isinstance(label, float) and not np.isfinite(label) for label in self.classes):
                raise ValueError("numeric classes must be finite")

    def with_classes(self, classes: tuple[Label, ...] | None) -> Schema:
        """The same schema for a target with these classes."""
        return dataclasses.replace(self, classes=classes)


def _reader(feature: Feature) -> Reader:
    """How plain values of a column are read; `_conformed` reads all others."""
    if feature.categories is not None:
        codes = {category: code for code, category in enumerate(feature.categories)}
        return Reader(feature.name, np.int32, MISSING, codes, (str,))
    if feature.levels is None:
        return Reader(feature.name, np.float64, np.nan, None, ())
    places: dict[Any, int] = {level: place for place, level in enumerate(feature.levels)}
    # The numbers 0 and 1 stand for False and True, which equal them.
    types = (bool, int, float) if feature.is_boolean else (str,)
    return Reader(feature.name, np.float64, np.nan, places, types)


class EncodedColumn(NamedTuple):
    """A column of `Table.one_hot`: the feature, and the category code of an indicator (None: the
    number itself).
    """

    feature: int
    category: int | None


@dataclass(frozen=True, repr=False)
class Description(display.Tabulated):
    """The columns of a table as text; see `Table.describe`.

    Attributes:
        title: the size of the table.
        rows: name, kind, missing values, range or number of categories, and quartiles or most
            frequent categories, of every column.
    """

    title: str
    rows: tuple[tuple[str, str, str, str, str], ...]

    def tabulated(self) -> tuple[str, Sequence[str], Sequence[Sequence[str]]]:
        return self.title, _DESCRIBED, self.rows


_DESCRIBED = ("column", "kind", "missing", "range", "quartiles or most frequent")
_SHOWN_COLUMNS = 8
"""Columns of a printed table."""


@dataclass(frozen=True, eq=False)
class Table(Keeps):
    """Rows of named columns. Create one with `as_table`; ``table[rows]`` selects rows.

    Attributes:
        schema: names, categories and the rule for missing values.
        columns: one array per feature, shape (rows,): float64 with NaN for missing, or int32
            category codes with `MISSING` and `UNSEEN`.
    """

    schema: Schema
    columns: tuple[NDArray[Any], ...]

    def __post_init__(self) -> None:
        checks.instance("schema", self.schema, Schema, "jaxrules.as_table(X).schema")
        checks.instance("columns of a Table", self.columns, tuple, "jaxrules.as_table")
        if len(self.columns) != len(self.schema.features):
            raise ValueError(
                f"columns of a Table must be {len(self.schema.features)}, one per feature, got "
                f"{len(self.columns)}; use jaxrules.as_table"
            )
        shape = getattr(self.columns[0], "shape", None)
        for feature, column in self._pairs:
            kind = "f" if feature.categories is None else "i"
            if not isinstance(column, np.ndarray) or column.dtype.kind != kind:
                raise TypeError(
                    f"columns of a Table: {feature.name!r} must be an array of "
                    f"{'numbers, float64' if kind == 'f' else 'category codes, int32'}; use "
                    "jaxrules.as_table"
                )
            if column.ndim != 1 or column.shape != shape:
                raise ValueError(
                    f"columns of a Table must have one length, got the shapes {shape} and "
                    f"{column.shape} ({feature.name!r})"
                )

    @classmethod
    def of_checked(cls, schema: Schema, columns: tuple[NDArray[Any], ...]) -> Table:
        """A table of columns that are known to fit the schema."""
        table = object.__new__(cls)
        object.__setattr__(table, "schema", schema)
        object.__setattr__(table, "columns", columns)
        return table

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def _pairs(self) -> Iterable[tuple[Feature, NDArray[Any]]]:
        return zip(self.schema.features, self.columns, strict=True)

    @property
    def n_rows(self) -> int:
        return len(self.columns[0])

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, len(self.columns)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: slice | NDArray[Any] | Sequence[int]) -> Table:
        """The selected rows: a slice, a boolean mask or an integer array."""
        if isinstance(rows, (int, np.integer)):
            raise TypeError(
                f"select rows of a Table with a slice or an array, e.g. table[{rows}:{rows + 1}]"
            )
        return Table(self.schema, tuple(column[rows] for column in self.columns))

    def __repr__(self) -> str:
        sources = self.schema.sources
        categorical = sum(not feature.is_numeric for feature in sources)
        special = len(self.columns) - len(sources)
        return (
            f"Table({self.n_rows} rows, {len(sources)} columns, {categorical} of them categorical"
            f"{f', {special} with special values' if special else ''})"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{display.text_table(*self._shown())}"

    def _repr_html_(self) -> str:
        return display.html_table(repr(self), *self._shown())

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """The first columns, and the first rows of them, as text."""

        def text(value: Any) -> str:
            if _is_missing(value):
                return ""
            return str(value) if isinstance(value, (str, bool)) else display.number(value)

        names, more = list(self.to_columns()), len(self.schema.sources) > _SHOWN_COLUMNS
        shown = list(self.head().to_columns().values())[:_SHOWN_COLUMNS]
        columns = [list(map(text, one)) for one in shown]
        rows = [[*row, *["..."] * more] for row in zip(*columns, strict=True)]
        return [*names[:_SHOWN_COLUMNS], *["..."] * more], rows

    def head(self, n: int = 5) -> Table:
        """The first n rows."""
        return self[: checks.integer("n", n, at_least=0)]

    def to_columns(self) -> dict[str, list[Any] | NDArray[np.float64]]:
        """The values by column of X: numbers with NaN, and lists of text or booleans with None, for
        missing ones.
        """
        sources = self.schema.sources
        pairs = zip(sources, _joined(self), strict=True)
        return {feature.name: _decoded(feature, column) for feature, column in pairs}

    def to_pandas(self) -> Any:
        """The rows as a pandas dataframe; `jaxrules.to_dataframe` makes those of other packages.

        Raises:
            ImportError: if pandas is not installed.
        """
        import narwhals as nw

        return nw.from_dict(dict(self.to_columns()), backend="pandas").to_native()

    def describe(self) -> Description:
        """Every column: missing values, and its quantiles or its most frequent categories."""
        rows = []
        for index, (feature, column) in enumerate(self._pairs):
            known = column[~self.missing_mask(index)]
            # A number is NaN for a special value as well; its companion tells which are missing.
            absent = int(self.missing_mask(self.schema.companions.get(index, index)).sum())
            if not len(known):
                rows.append((feature.name, "", str(absent), "", ""))
            elif feature.categories is None and feature.levels is None:
                low, quarter, half, three, high = np.quantile(known, [0, 0.25, 0.5, 0.75, 1])
                middle = " ".join(display.number(float(v), 4) for v in (quarter, half, three))
                ends = f"{display.number(float(low), 4)} to {display.number(float(high), 4)}"
                rows.append((feature.name, feature.kind, str(absent), ends, middle))
            else:
                if feature.source is not None:
                    # The last category, "a number", is left to the row of the number.
                    known = known[known < len(feature.categories or ()) - 1]
                often = Counter(_decoded(feature, known)).most_common(3)
                top = ", ".join(f"{text} ({count})" for text, count in often)
                n = display.counted(len(np.unique(known)), "category").replace("ys", "ies")
                if levels := feature.levels:
                    n = f"{levels[int(known.min())]} to {levels[int(known.max())]}"
                rows.append((feature.name, feature.kind, str(absent), n, top))
        return Description(repr(self), tuple(rows))

    def missing_mask(self, feature: int) -> NDArray[np.bool_]:
        """Which rows have no value of this feature, shape (rows,)."""
        column = self.columns[feature]
        return np.isnan(column) if self.schema.features[feature].is_numeric else column == MISSING

    def ascending(self, feature: int) -> NDArray[np.int32]:
        """The rows by ascending value of a numeric feature, equal ones in their order, missing ones
        last, shape (rows,); sorted once and kept.
        """
        order = self.sorted_before(feature)
        if order is None:
            order = self.keep(f"order{feature}", ascending(self.columns[feature]))
        return order

    def sorted_before(self, feature: int) -> NDArray[np.int32] | None:
        """`ascending`, if it is known already."""
        order: NDArray[np.int32] | None = self.recall(f"order{feature}")
        return order

    def columns_with_missing(self) -> tuple[str, ...]:
        """Names of the columns of X that have missing values."""
        companions = self.schema.companions
        return tuple(
            feature.name
            for index, feature in enumerate(self.schema.sources)
            if self.missing_mask(companions.get(index, index)).any()
        )

    def numeric_matrix(self) -> NDArray[np.float64]:
        """All columns as one float64 matrix, shape (rows, features).

        Raises:
            ValueError: if a column is categorical or has missing values.
        """
        categorical = [feature.name for feature in self.schema.features if not feature.is_numeric]
        if categorical:
            raise ValueError(
                f"X has categorical columns {_listed(categorical)}; encode them as numbers first"
            )
        if self.columns_with_missing():
            raise ValueError(
                f"X has missing values in {_listed(self.columns_with_missing())}; fill or drop them"
            )
        return np.stack(self.columns, axis=1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The numbers of X as NumPy and estimators of other packages read them, shape (rows,
        columns of X), NaN for missing.

        Raises:
            TypeError: if a column is categorical.
        """
        if categorical := [one.name for one in self.schema.sources if not one.is_numeric]:
            raise TypeError(
                f"the Table has categorical columns {_listed(categorical)}, which an array of "
                "numbers cannot hold; use jaxrules.to_dataframe(table) for a dataframe, or "
                "table.one_hot()[0] for indicators"
            )
        return np.stack(_joined(self), axis=1).astype(dtype or np.float64)

    def compared_categories(self, index: int, most: int | None = None) -> list[int]:
        """The codes of the categories that learners compare a column with: all that occur or, of
        more than a thousand, the 500 most frequent, ascending; the `most` frequent of these.
        """
        column = self.columns[index]
        counts = np.bincount(column[column >= 0])
        codes = np.flatnonzero(counts)
        compared = COMPARED if len(codes) > MANY_CATEGORIES else len(codes)
        if most is not None:
            compared = min(compared, most)
        if len(codes) > compared:
            # Of equally frequent categories, the stable sort prefers those of lower code.
            codes = np.sort(codes[np.argsort(-counts[codes], kind="stable")[:compared]])
        return codes.tolist()

    def one_hot(
        self, only_compared: bool = False
    ) -> tuple[NDArray[np.float64], tuple[EncodedColumn, ...]]:
        """Numbers unchanged (NaN for missing), one 0/1 column per category and one for missing
        ones; `only_compared`: of columns with more than a thousand categories, see
        `compared_categories`.
        """
        matrix: list[NDArray[np.float64]] = []
        encoded: list[EncodedColumn] = []
        for index, (feature, column) in enumerate(self._pairs):
            if feature.categories is None:
                matrix.append(column)
                encoded.append(EncodedColumn(index, None))
                continue
            codes = list(range(len(feature.categories)))
            if only_compared and len(codes) > MANY_CATEGORIES:
                codes = self.compared_categories(index)
            # An unseen category has no indicator: it is 0 in all of them.
            codes += [MISSING] * bool((column == MISSING).any())
            matrix.extend((column == code).astype(np.float64) for code in codes)
            encoded.extend(EncodedColumn(index, code) for code in codes)
        return np.stack(matrix).T, tuple(encoded)  # column by column: three times as fast


class Readable(Protocol):
    """An object that NumPy reads as an array."""

    def __array__(self) -> NDArray[Any]: ...


TableLike = (
    Table
    | Readable
    | Sequence[Sequence[float | np.generic] | Readable | Mapping[Any, object]]
    | Mapping[Any, Sequence[object] | Readable]
)
"""The X of every function, as `as_table` reads it: a `Table`; an array of NumPy or JAX, or a
dataframe (`Readable`); a list of rows, each of numbers or a dict; a dict of columns.
"""


def as_table(
    X: TableLike,
    *,
    missing: MissingRule | None = None,
    feature_names: Sequence[str] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
) -> Table:
    """Read `X` as a table.

    Args:
        X: a 2-D numeric array, any dataframe that narwhals reads (pandas, polars, ...), a Table, or
            records without a dataframe: a dict of columns, a list of dicts (a key that a dict lacks
            is a missing value) or a 2-D array of objects. Text and categorical columns are
            categorical; an ordered categorical (of pandas or pyarrow, or a polars Enum) keeps the
            order of its declared categories: rules compare it, as in ``size <= M``. Columns of
            True and False (with or without missing ones) are such: rules say ``flag`` or
            ``not flag``. Dates and durations are refused: convert them to numbers, such as days.
        missing: "refuse", or "own_category" to let "is missing" be a category of its own. None for
            the rule that a Table was read with, and for "refuse" otherwise.
        feature_names: names for the columns of an array (default x0, x1, ...).
        special_values: codes among the numbers of some columns, by name or position:
            ``{"months": [-7, -8]}``. They are categories beside the numbers: thresholds are learned
            from the other numbers and hold only for them, unless they say ``or special``; rules can
            say ``months == -7`` and ``months is special``.

    Raises:
        TypeError: if `X` or one of its columns has a type that a table cannot hold; for special
            values that are not lists of numbers, or of a column that is not numeric.
        ValueError: for a wrong shape, no rows, no columns, repeated names, infinite or refused
            missing values; for special values of a column that does not exist or has no other
            values.
    """
    rule: MissingRule = checks.choice("missing", missing_rule(X, missing), get_args(MissingRule))
    if isinstance(X, Table):
        if feature_names is not None:
            raise ValueError("feature_names is only for arrays; a Table has its own names")
        table = Table(dataclasses.replace(X.schema, missing=rule, classes=None), X.columns)
        # The least code is `MISSING`: a category that is `UNSEEN` has no place in training data.
        _check_codes(table, MISSING)
    else:
        names, raw, _ = _read(X, feature_names)
        if not len(raw[0]):
            raise ValueError("X has no rows")
        columns, features = zip(*map(_factorise, names, raw), strict=True)
        table = Table(Schema(features, rule), columns)
    table = _with_special_values(table, special_values)
    _check_values(table)
    # A companion without missing codes: whatever its number lacks is special. Then "missing" need
    # not be said of either.
    pairs = table.schema.companions.items()
    never = [pair for pair in pairs if not table.missing_mask(pair[1]).any()]
    never_missing = tuple(sorted(column for pair in never for column in pair))
    return Table(dataclasses.replace(table.schema, never_missing=never_missing), table.columns)


def missing_rule(X: object, given: MissingRule | None) -> MissingRule:
    """The rule for missing values: None means that of a Table, and "refuse" for other data."""
    if given is not None:
        return given
    return X.schema.missing if isinstance(X, Table) else "refuse"


def _with_special_values(table: Table, given: object) -> Table:
    """The table with special values in some columns, by name or position."""
    if given is None:
        return table
    if not isinstance(given, Mapping):
        raise TypeError(
            "special_values must map columns to lists of numbers, as in "
            f'{{"months": [-7, -8]}}, got {type(given).__name__}'
        )
    features, columns = list(table.schema.features), list(table.columns)
    names = [source.name for source in table.schema.sources]
    for key, values in given.items():
        index = checks.column("special_values", key, names)
        feature, name = features[index], f"special_values[{key!r}]"
        if feature.kind != "number":
            raise TypeError(
                f"{name}: column {feature.name!r} is of the kind {feature.kind!r}, but special "
                "values stand beside numbers; leave it out"
            )
        if feature.special_values is not None:
            raise ValueError(
                f"{name}: column {feature.name!r} has special values already; name all at once"
            )
        listed = np.unique(checks.sequence(name, values) + 0.0)  # no negative zero
        feature = dataclasses.replace(feature, special_values=tuple(listed.tolist()))
        companion = feature.companion()
        if companion.name in table.names:
            raise ValueError(f"{name} needs the name {companion.name!r}, which X has; rename it")
        numbers, codes = _separated(feature, columns[index])
        if np.isnan(numbers).all():
            raise ValueError(
                f"{name}: column {feature.name!r} of X has no other values; make it text, or drop "
                "it"
            )
        features[index], columns[index] = feature, numbers
        features.append(companion)
        columns.append(codes)
    return Table(dataclasses.replace(table.schema, features=tuple(features)), tuple(columns))


def _separated(
    feature: Feature, column: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """The numbers, NaN where a value is special or missing, and the codes of the companion."""
    special = feature.special_values or ()
    # The last category, "a number", is the one of all rows that are neither special nor missing.
    codes = np.full(len(column), len(special), np.int32)
    for code, value in enumerate(special):
        codes[column == value] = code
    codes[np.isnan(column)] = MISSING
    return np.where(codes == len(special), column, np.nan), codes


def _joined(table: Table) -> list[NDArray[Any]]:
    """The columns of X, with their special values."""
    columns = list(table.columns[: len(table.schema.sources)])
    for index, companion in table.schema.companions.items():
        # By code: the special values; NaN for "a number", which `where` does not read; NaN at the
        # end for -1, `MISSING`.
        values = np.array([*(table.schema.features[index].special_values or ()), np.nan, np.nan])
        numbers = columns[index]
        columns[index] = np.where(np.isnan(numbers), values[table.columns[companion]], numbers)
    return columns


def conform(X: TableLike, schema: Schema, exact: bool = False) -> Table:
    """New data in the columns of a model's schema.

    Columns of dataframes, records and Tables are matched by name: they may come in any order, and
    further ones, such as the target, are left out unread. Arrays are matched by position.
    Categories that fit did not see become `UNSEEN`; a column with no known category causes a
    warning. Special values are those of the schema, and another code is a number. Where fit had
    booleans, the numbers 0 and 1 count as False and True, and the other way round. The text of an
    ordered category is enough. `X` may have no rows.

    Args:
        X: the data.
        schema: of the model.
        exact: refuse further columns.

    Raises:
        ValueError: for missing columns, an array with another number of columns, a column whose
            kind changed, infinite values, missing values where fit refused them, or an ordered
            category without a place in the order.
    """
    # The same features number their categories alike, so the columns can stay as they are.
    if isinstance(X, Table) and X.schema.features == schema.features:
        table = Table(schema, X.columns)
        _check_codes(table, UNSEEN)
        _check_values(table)
        return table
    few = None if exact else columns_of(X, schema.readers, schema.missing != "refuse")
    sources = schema.sources
    if few is not None:
        return Table.of_checked(schema, _with_companions(schema, few))
    known = [source.name for source in sources]
    names, raw, named = _read(X, None, None if exact else known)
    if named:
        _chosen(names, known)
        place = {name: index for index, name in enumerate(names)}
        if further := sorted(place.keys() - set(known)):
            raise ValueError(f"X has further columns {_listed(further)}; drop them first")
        raw = [raw[place[name]] for name in known]
    elif len(raw) != len(sources):
        raise ValueError(
            f"X has {len(raw)} columns, but the model was fitted on {len(sources)}; an array has "
            f"the columns of the model in order: {_listed(known)}"
        )
    table = Table(schema, _with_companions(schema, list(map(_conformed, sources, raw))))
    _check_values(table)
    return table


def _with_companions(schema: Schema, columns: list[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    """The columns of X, and companions, made anew by the special values of fit."""
    if len(columns) < len(schema.features):
        for index in schema.companions:
            columns[index], codes = _separated(schema.features[index], columns[index])
            columns.append(codes)
    return tuple(columns)


def with_categories_of(X: TableLike, schema: Schema) -> Schema:
    """The schema with the categories of further rows of the same columns."""
    if not any(feature.categories for feature in schema.sources):
        return schema
    if isinstance(X, Table) and X.schema.features == schema.features:
        return schema
    names, raw, named = _read(X, None)
    columns = dict(zip(names if named else schema.names, raw, strict=False))
    features = [
        dataclasses.replace(feature, categories=_categories([*feature.categories, *values]))
        if feature.categories and isinstance(values := columns.get(feature.name), list)
        else feature
        for feature in schema.features
    ]
    return dataclasses.replace(schema, features=tuple(features))


def _conformed(feature: Feature, values: _Column) -> NDArray[Any]:
    """A raw column as numbers or codes of the feature."""
    if _all_missing(values):  # the kind is unknown, e.g. in a frame of one row
        if feature.is_numeric:
            return np.full(len(values), np.nan)
        values = [None] * len(values)
    if isinstance(values, Levelled):
        if values.levels == feature.levels or (feature.kind == "number" and values.is_boolean):
            return values.codes
        # Declared categories "False" and "True" may now come as booleans.
        words = set(feature.categories or ["other"]) <= {"False", "True"}
        numbers = values.is_boolean and not words
        values = values.codes if numbers else _texts(values.values(), feature.name, any_type=True)
    # Categories such as "1" and "2" may now come as numbers; their texts are the same.
    if isinstance(values, np.ndarray) and are_numbers(feature):
        values = _texts(values.tolist(), feature.name, any_type=True)
    is_text = not isinstance(values, np.ndarray)
    if is_text != (feature.kind in ("text", "ordered")):
        now, shown = "numeric", ""
        if is_text:
            texts = dict.fromkeys(one for one in values if one is not None)
            strays = [text for text in texts if not _NUMBER.fullmatch(text)]
            now, shown = "categorical", f" (it has {_listed(strays or list(texts), 3)})"
        of_kind = {"number": "numeric", "text": "categorical", "ordered": "an ordered category"}
        was = of_kind.get(feature.kind, feature.kind)
        raise ValueError(
            f"column {feature.name!r} of X is {now}, but was {was} in fit{shown}; convert it first"
        )
    if feature.levels is not None:
        return _known_levels(feature, values)
    return _known_codes(feature, values) if is_text else np.asarray(values)


def are_numbers(feature: Feature) -> bool:
    """Whether a feature has categories or ordered ones, and all are numbers, written as
    `category_text` does.
    """
    texts = feature.categories or (() if feature.is_boolean else feature.levels) or ()
    try:
        return bool(texts) and all(category_text(float(text)) == text for text in texts)
    except ValueError:
        return False


def _known_levels(feature: Feature, values: Iterable[str | float | None]) -> NDArray[np.float64]:
    """The places of these values among the levels; NaN where missing.

    Raises:
        ValueError: for a value that is not a level.
    """
    levels = feature.levels or ()
    places: dict[object, float] = {level: float(k) for k, level in enumerate(levels)}
    values = values.tolist() if isinstance(values, np.ndarray) else list(values)
    codes = [np.nan if _is_missing(value) else places.get(value) for value in values]
    if None in codes:
        new = values[codes.index(None)]
        shown = f"column {feature.name!r} of X has the value {new!r}"
        order = " < ".join(map(str, levels))
        raise ValueError(
            f"{shown}, but in fit it was True or False; convert it to booleans, or to 0 and 1"
            if feature.is_boolean
            else f"{shown}, which has no place in the order of fit, {order}: "
            "replace it with one of these, or declare it in the ordered type before fit"
        )
    return np.array(codes, np.float64)


def _known_codes(feature: Feature, values: Iterable[str | None]) -> NDArray[np.int32]:
    """The codes of the categories; warns if none of them was seen in fit."""
    categories = feature.categories or ()
    # Old models have "1.0" where `category_text` now gives "1". Exact texts are set last, since
    # they prevail.
    codes: dict[str | None, int] = {None: MISSING}
    codes |= {one[:-2]: k for k, one in enumerate(categories) if re.fullmatch(r"-?\d+\.0", one)}
    codes |= {category: code for code, category in enumerate(categories)}
    values = list(values)
    found = np.fromiter((codes.get(value, UNSEEN) for value in values), np.int32, len(values))
    if (found == UNSEEN).any() and not (found >= 0).any():
        new = _listed([*dict.fromkeys(value for value in values if value is not None)])
        checks.warn(
            f"column {feature.name!r} of X has none of the categories in fit: it has {new}, "
            f"the model {_listed(categories)}; check their spelling"
        )
    return found


# Reading: every input becomes a list of columns, each a float64 array, a list of strings and None,
# or numbers with levels.


class Levelled(NamedTuple):
    """A column of booleans or ordered categories: their places among the levels, NaN where missing;
    see `Feature.levels`.
    """

    codes: NDArray[np.float64]
    levels: tuple[str | bool, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def is_boolean(self) -> bool:
        return self.levels[:1] == (False,)

    def values(self) -> list[Any]:
        """The levels, None where missing."""
        listed = self.codes.tolist()
        # NaN alone differs from itself.
        return [None if code != code else self.levels[int(code)] for code in listed]


class _Declared(list[str | None]):
    """The texts of a column whose type declares that they are categories."""


_Column = NDArray[np.float64] | list[str | None] | Levelled
_Raw = tuple[list[str], list[_Column], bool]
"""Names, columns, and whether the names came with the data."""


def declares_categories(values: Any) -> bool:
    """Whether the type of a column is that of categories, of pandas, polars or pyarrow."""
    kind = getattr(values, "dtype", getattr(values, "type", None))
    return hasattr(kind, "categories") or type(kind).__name__ in ("Categorical", "DictionaryType")


def _are_booleans(values: Sequence[object]) -> bool:
    """Whether all values that are not missing, at least one, are booleans."""
    known = [value for value in values if not _is_missing(value)]
    return bool(known) and all(isinstance(value, (bool, np.bool_)) for value in known)


def _booleans(values: Iterable[Any]) -> Levelled:
    """Booleans of Python or NumPy, and missing values."""
    codes = [np.nan if _is_missing(value) else float(value) for value in values]
    return Levelled(np.array(codes, np.float64), BOOLEAN)


def _read(
    X: object, feature_names: Sequence[str] | None, wanted: Sequence[str] | None = None
) -> _Raw:
    """The columns of data of any kind.

    Args:
        X: as in `as_table`.
        feature_names: of an array.
        wanted: the columns to read from data with names, which must have them; None for all.
    """
    checks.concrete("X", X)
    if isinstance(X, Table):
        pairs = dict(zip(X.schema.sources, _joined(X), strict=True))
        names = _chosen([source.name for source in pairs], wanted)
        there = set(names)
        raw = [_raw(f, c) for f, c in pairs.items() if f.name in there]
        named = True
    else:
        # The order matters: NumPy would read a dataframe, or dicts, as an array of objects.
        names, raw, named = _read_dataframe(X, wanted) or _read_records(X, wanted) or _read_array(X)
    if feature_names is not None:
        is_text = isinstance(feature_names, (str, bytes))
        if is_text or not hasattr(feature_names, "__len__") or np.ndim(feature_names) != 1:
            raise TypeError(
                f"feature_names must be a list of names, got {type(feature_names).__name__}"
            )
        if len(feature_names) != len(names):
            raise ValueError(
                f"feature_names has {len(feature_names)} names for {len(names)} columns of X"
            )
        if named:
            raise ValueError(
                "feature_names is only for arrays; rename the columns of the dataframe instead"
            )
        names = [str(name) for name in feature_names]
        if repeated := _repeated(names):
            raise ValueError(
                f"feature_names repeats {_listed(repeated)}; give every column its own name"
            )
    if not names:
        raise ValueError("X has no columns")
    if repeated := _repeated(names):
        raise ValueError(
            f"X has several columns named {_listed(repeated)}; give every column its own name"
        )
    return names, raw, named


def _chosen(names: list[str], wanted: Sequence[str] | None) -> list[str]:
    """The wanted names in their order here.

    Raises:
        ValueError: if one is not among the names.
    """
    if wanted is None:
        return names
    there, chosen = set(names), set(wanted)
    if absent := [name for name in wanted if name not in there]:
        others = [name for name in names if name not in chosen]
        has = f"; of the others, it has {_listed(others)}" if others else ""
        raise ValueError(f"X lacks the columns {_listed(absent)} that the model was fitted on{has}")
    return [name for name in names if name in chosen]


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _raw(feature: Feature, column: NDArray[Any]) -> _Column:
    """The raw values of a table's column."""
    if feature.levels is not None:
        return Levelled(column, feature.levels)
    if feature.categories is None:
        return column
    # The codes -1, `MISSING`, and -2, `UNSEEN`, count from the end of this list.
    texts: list[str | None] = [*feature.categories, "(a category not seen in fit)", None]
    return [texts[code] for code in column]


def _decoded(feature: Feature, column: NDArray[Any]) -> NDArray[np.float64] | list[Any]:
    """The values of a table's column: numbers, or text or booleans and None."""
    raw = _raw(feature, column)
    return raw.values() if isinstance(raw, Levelled) else raw


def as_dataframe(X: object) -> Any:
    """The narwhals dataframe of one of any package, or of a record batch of pyarrow; None if `X` is
    not one.
    """
    import narwhals as nw

    if type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow"):
        X = sys.modules["pyarrow"].Table.from_batches([X])
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(
            f"X has columns of the same name; give every column its own name. {error}"
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            "X is a lazy frame, whose rows are not in memory; read them first, with collect() of "
            "polars, df() of duckdb or compute() of dask"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _read_dataframe(X: object, wanted: Sequence[str] | None) -> _Raw | None:
    """The columns of a dataframe, or None if `X` is not one."""
    frame = as_dataframe(X)
    if frame is None:
        return None
    if not frame.columns:
        raise ValueError("X has no columns")
    chosen = _chosen([str(name) for name in frame.columns], wanted)
    there = set(chosen)
    kept = [name for name in frame.columns if str(name) in there]
    return chosen, [_frame_column(str(name), frame.get_column(name)) for name in kept], True


def _frame_column(name: str, column: Any) -> _Column:
    """A column of a dataframe, a narwhals Series."""
    import narwhals as nw

    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        if column.dtype.is_integer():
            _refuse_large(name, (column.min(), column.max()))
        # A copy: the table must not follow the frame.
        values = np.array(column.cast(nw.Float64).to_numpy(), np.float64)
        return Levelled(values, BOOLEAN) if column.dtype == nw.Boolean else values
    if ordered := _declared_order(column.to_native()):
        return _in_order(name, column.to_list(), ordered)
    if column.dtype in (nw.String, nw.Categorical, nw.Enum):
        texts = _texts(column.to_list(), name, any_type=True)
        return texts if column.dtype == nw.String else _Declared(texts)
    if column.dtype == nw.Object:
        values = column.to_list()
        # pandas holds True and False with None among them as objects.
        return _booleans(values) if _are_booleans(values) else _texts(values, name, any_type=False)
    if not column.is_null().all():  # as of polars' Null type
        # narwhals lacks some of pandas' types
        _refuse_type(name, getattr(column.to_native(), "dtype", column.dtype))
    return [None] * len(column)


def _in_order(name: str, values: Iterable[object], order: Sequence[object]) -> Levelled:
    """A column of ordered categories."""
    feature = Feature(name, levels=tuple(map(category_text, order)))
    texts = _texts(values, name, any_type=True)
    return Levelled(_known_levels(feature, texts), feature.levels or ())


def _declared_order(values: Any) -> list[Any]:
    """The categories of an ordered categorical column in order, all that its type declares; none
    for anything else.
    """
    kind: Any = getattr(values, "dtype", getattr(values, "type", None))
    if hasattr(kind, "pyarrow_dtype"):  # in pandas
        values, kind = getattr(values, "array", values).__arrow_array__(), kind.pyarrow_dtype
    if type(kind).__name__ == "Enum":  # polars
        return list(getattr(kind, "categories", ()))
    if not getattr(kind, "ordered", False):
        return []
    if hasattr(kind, "categories"):  # pandas
        return list(kind.categories)
    # Every chunk may have a dictionary of its own; unified, the first has that of all.
    one = values.unify_dictionaries().chunk(0) if hasattr(values, "chunk") else values
    return list(one.dictionary.to_pylist())  # pyarrow


_DATES_TO_NUMBERS = (
    "convert it to a number, such as the days since a fixed date or up to the prediction, the "
    "month or the hour"
)
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def _refuse_type(name: str, kind: object) -> NoReturn:
    """Refuse a column of another type; dates with what to make of them."""
    words = str(kind).lower()
    if any(word in words for word in ("date", "time", "duration", "period", "timestamp")):
        raise TypeError(f"column {name!r} of X holds dates or times ({kind}); {_DATES_TO_NUMBERS}")
    raise TypeError(
        f"column {name!r} of X has type {kind}, not numbers, booleans or text; convert it to "
        "numbers or to text"
    )


def _read_records(X: object, wanted: Sequence[str] | None) -> _Raw | None:
    """The columns of a dict of columns, of a list of dicts or of a 2-D array of objects."""
    columns: dict[Any, Any]
    if isinstance(X, Mapping) and not hasattr(X, "toarray"):  # a sparse matrix may be one
        columns, named = dict(X), True
    elif isinstance(X, (list, tuple)) and len(X) and all(isinstance(row, Mapping) for row in X):
        # A dict as an ordered set: columns in the order in which keys first appear.
        names = dict.fromkeys(name for row in X for name in row)
        columns, named = {name: [row.get(name) for row in X] for name in names}, True
    elif isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 2:
        columns, named = {f"x{i}": column for i, column in enumerate(X.T)}, False
    else:
        return None
    if not columns:
        raise ValueError("X has no columns")
    if named:
        chosen = set(_chosen([str(name) for name in columns], wanted))
        columns = {name: values for name, values in columns.items() if str(name) in chosen}
    raw = [_record_column(str(name), values) for name, values in columns.items()]
    if len({len(column) for column in raw}) > 1:
        lengths = {str(name): len(column) for name, column in zip(columns, raw, strict=True)}
        raise ValueError(f"X has columns of different lengths {lengths}; a table is rectangular")
    return [str(name) for name in columns], raw, named


def _record_column(name: str, values: Any) -> _Column:
    """A column of Python values: numbers (NaN where missing) or text."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"column {name!r} of X is a masked array; pass filled(numpy.nan) of it")
    listing = hasattr(values, "__array__") or isinstance(values, Sequence)
    if not listing or isinstance(values, (str, bytes)) or getattr(values, "ndim", 1) != 1:
        raise ValueError(
            f"column {name!r} of X must be a list of values, got {_named(values)}; one row is a "
            "list of one dict"
        )
    listed: list[Any] = np.asarray(values).tolist() if hasattr(values, "__array__") else [*values]
    known = [value for value in listed if not _is_missing(value)]
    if not known:
        return [None] * len(listed)
    if ordered := _declared_order(values):
        return _in_order(name, listed, ordered)
    if declares_categories(values):
        return _Declared(_texts(listed, name, any_type=True))
    if _are_booleans(known):
        return _booleans(listed)
    if not all(isinstance(value, (int, float, np.number, np.bool_)) for value in known):
        return _texts(listed, name, any_type=False)
    _refuse_large(name, (value for value in known if isinstance(value, (int, np.integer))))
    if any(isinstance(value, np.complexfloating) for value in known):
        raise TypeError(f"column {name!r} of X has complex numbers; pass real ones")
    return np.array([np.nan if _is_missing(value) else float(value) for value in listed])


def _refuse_large(name: str, integers: Iterable[Any]) -> None:
    """Refuse integers that float64 cannot hold; missing ones do not count."""
    if any(abs(int(one)) >= _LARGEST_EXACT_INTEGER for one in integers if not _is_missing(one)):
        raise ValueError(
            f"column {name!r} of X has integers beyond 2**53, which float64 cannot distinguish; "
            "convert identifiers to text, or drop them"
        )


def _texts(values: Iterable[object], name: str, any_type: bool) -> list[str | None]:
    """Category values as text; None where missing. Python objects other than text are refused."""
    texts: dict[object, str | None] = {}
    try:
        distinct: Iterable[object] = set(values)  # few
    except TypeError:  # unhashable objects: refused below
        distinct = values
    for value in distinct:
        if _is_missing(value):
            texts[value] = None
        elif any_type or isinstance(value, str):
            texts[value] = category_text(value)
        elif isinstance(value, _TIMES):
            _refuse_type(name, type(value).__name__)
        elif isinstance(value, (int, float, np.number)) and (
            words := sorted(one for one in distinct if isinstance(one, str))
        ):
            raise TypeError(
                f"column {name!r} of X holds text ({_listed(words, 3)}) among values of type "
                f"{type(value).__name__}; convert it to numbers, {_TO_NUMBERS}, or to text, with "
                "astype(str)"
            )
        else:
            raise TypeError(
                f"column {name!r} of X holds Python objects ({type(value).__name__} among them); "
                "convert it to numbers, with astype(float), or to text, with astype(str)"
            )
    # NaN is found although it differs from itself: a dict compares identities first, and the set
    # holds the objects of `values`.
    return [texts[value] for value in values]


def category_text(value: object) -> str:
    """A category as text: whole numbers without a decimal point, whatever their type."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_missing(value: object) -> bool:
    """None, NaN and NaT differ from themselves; comparing pandas' NA gives NA."""
    if value is None:
        return True
    differs = value != value
    return bool(differs) if isinstance(differs, (bool, np.bool_)) else differs is value


def _all_missing(values: _Column) -> bool:
    if isinstance(values, Levelled):
        values = values.codes
    if isinstance(values, np.ndarray):
        return bool(np.isnan(values).all())
    return all(value is None for value in values)


def _read_array(X: object) -> _Raw:
    if hasattr(X, "X") and hasattr(X, "y"):
        raise TypeError(f"X is a {type(X).__name__}; pass its X, and its y as y")
    if hasattr(X, "toarray"):
        raise TypeError("X is a sparse matrix; pass X.toarray()")
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError("X is a masked array; pass X.filled(numpy.nan)")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError("X has rows of different lengths; a table is rectangular") from error
    except TypeError as error:
        raise TypeError(f"X is not an array of numbers: {error}") from error
    if array.dtype.names:
        raise TypeError("X is a structured array; pass pandas.DataFrame(X)")
    if array.ndim != 2:
        raise ValueError(f"X must be 2-D (rows, columns), got {_not_rows(X, array)}")
    if array.dtype.kind in "mM":
        raise TypeError(
            f"X is an array of dates or times ({array.dtype}); convert it to numbers, such as the "
            "days since a fixed date: (X - date) / numpy.timedelta64(1, 'D')"
        )
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"X is an array of type {array.dtype}; an array must be numeric: convert it with "
            "astype(float), or pass a dataframe, dicts or an array of objects, whose text columns "
            "become categories"
        )
    whole = array.dtype.kind in "iu" and array.size
    if whole and max(-int(array.min()), int(array.max())) >= _LARGEST_EXACT_INTEGER:
        raise ValueError(
            "X has integers beyond 2**53, which float64 cannot tell apart; pass identifiers as "
            "text in a dataframe, or drop them"
        )
    # A copy: the table must not follow the array.
    columns = np.array(array.T, np.float64, order="C")
    names = [f"x{i}" for i in range(len(columns))]
    if array.dtype.kind == "b":
        return names, [Levelled(column, BOOLEAN) for column in columns], False
    return names, list(columns), False


def _not_rows(X: object, array: NDArray[Any]) -> str:
    """The shape of X that is not a table, and the remedy."""
    if array.ndim and hasattr(X, "to_frame"):
        return (
            f"one {type(X).__name__}; one row of a dataframe is frame.iloc[[0]], one column "
            "frame[[name]]"
        )
    if array.ndim:
        return f"shape {array.shape}; one row is X.reshape(1, -1), one column X.reshape(-1, 1)"
    if isinstance(X, (str, bytes, os.PathLike)):
        return "text; read the file first, e.g. with pandas.read_csv"
    return f"{_named(X)}; pass a 2-D array, a dataframe or a Table"


def _named(value: object) -> str:
    """An object by its type."""
    return "None" if value is None else f"one {type(value).__name__}"


def _factorise(name: str, values: _Column) -> tuple[NDArray[Any], Feature]:
    """A raw column as a table holds it, and its feature."""
    if _all_missing(values):
        raise ValueError(f"column {name!r} of X has no values; drop it")
    if isinstance(values, Levelled):
        return values.codes, Feature(name, levels=values.levels)
    if isinstance(values, np.ndarray):
        return values, Feature(name)
    _check_texts(name, values)
    categories = _categories(values)
    codes: dict[str | None, int] = {None: MISSING}
    codes |= {category: code for code, category in enumerate(categories)}
    column = np.fromiter(map(codes.__getitem__, values), np.int32, len(values))
    return column, Feature(name, categories)


_FEWEST_NUMBERS, _NEARLY_ALL = 10, 0.9
_FEWEST_CATEGORIES, _FEWEST_ROWS_EACH = 20, 2
# Currency, sign, then digits with a decimal point or comma, or grouped in thousands; exponent; a
# percent sign.
_NUMBER = re.compile(
    r"[$€£]?[-+]?(\d+([.,]\d*)?|[.,]\d+|\d{1,3}(,\d{3})+(\.\d*)?)([eE][-+]?\d+)?\s?%?", re.ASCII
)
# A date from the year or from the day (or month) on, perhaps with a time; or a time alone.
_DATE = re.compile(
    r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4}|\d\d?/\d\d?/\d\d)([T ].*)?"
    r"|\d\d?:\d\d(:\d\d(\.\d+)?)?",
    re.ASCII,
)
_TO_NUMBERS = 'with pandas.to_numeric(column, errors="coerce") and missing="own_category"'


def _check_texts(name: str, values: list[str | None]) -> None:
    """Refuse numbers and dates written as text; warn of a column with nearly a category per row.

    A column is one of numbers if at least ten of its categories are, and nearly all of its rows, or
    nearly all of its categories and half of its rows: fewer may be codes. Columns with leading
    zeros or whole numbers beyond 2^53 are identifiers; those of whole numbers only may be, and
    cause a warning. A type that declares categories is believed.

    A category with a single row says what that row was. With fewer than two rows per category, on
    average and without the most frequent one, there is little else.
    """
    rows = Counter(value for value in values if value is not None)
    if len(rows) < _FEWEST_NUMBERS:
        return
    if not isinstance(values, _Declared):
        numbers = [one for one in rows if _NUMBER.fullmatch(one)]
        strays = sorted(rows.keys() - set(numbers))
        if _are_most(numbers, rows) and not any(map(_is_code, numbers)):
            which = f"most of its values are numbers; others are {_listed(strays, 5)}"
            if not strays:
                which = f"its values are numbers, such as {numbers[0]!r}"
            signs = sorted(set("".join(numbers)) & set("$€£%,"))
            first = f"remove {' '.join(signs)} and " if signs else ""
            said = (
                f"column {name!r} of X is text, but {which}: {first}convert it to numbers, "
                f'{_TO_NUMBERS}; if they are categories, declare them, with astype("category")'
            )
            if strays or not all(map(str.isdigit, numbers)):
                raise ValueError(said)
            checks.warn(said)
            return
        dates = [one for one in rows if _DATE.fullmatch(one)]
        if _are_most(dates, rows):
            raise ValueError(
                f"column {name!r} of X holds dates or times as text, such as {dates[0]!r}; "
                f"{_DATES_TO_NUMBERS}; if the values are categories, declare them, with "
                'astype("category")'
            )
    n_rows, often = rows.total(), max(rows.values())
    if len(rows) >= _FEWEST_CATEGORIES and n_rows - often < _FEWEST_ROWS_EACH * (len(rows) - 1):
        checks.warn(
            f"column {name!r} of X has {len(rows)} categories in {n_rows} rows, so that a rule on "
            "one of them is about a row or two and does not generalise; drop the column, group its "
            "categories, or convert it to numbers if it holds some"
        )


def _is_code(text: str) -> bool:
    """Whether a number as text is an identifier: with leading zeros, or beyond 2^53."""
    digits = text.lstrip("+-")
    whole = digits.isascii() and digits.isdigit()
    return whole and (digits[0] == "0" != digits or int(digits) >= _LARGEST_EXACT_INTEGER)


def _are_most(some: Sequence[str], rows: Counter[str]) -> bool:
    """Whether these categories are most of a column, see `_check_texts`."""
    share = sum(rows[one] for one in some) / rows.total()
    of_categories = len(some) / len(rows)
    return len(some) >= _FEWEST_NUMBERS and (
        share >= _NEARLY_ALL or (of_categories >= _NEARLY_ALL and share >= 0.5)
    )


def _categories(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted(value for value in set(values) if value is not None))


def _check_codes(table: Table, least: int) -> None:
    """Refuse category codes below `least` or beyond the schema, and numbers that are not the place
    of a level: the table may be handmade.
    """
    for feature, column in table._pairs:
        if feature.levels is not None:
            places = np.arange(len(feature.levels), dtype=np.float64)
            if not np.isin(column[~np.isnan(column)], places).all():
                raise ValueError(
                    f"column {feature.name!r} of X has numbers that are not places of its levels"
                )
        if feature.categories is None or not len(column):
            continue
        if feature.source is not None:
            number = table.columns[table.names.index(feature.source)]
            # Exactly one is true of every row: its code is "a number", or the number is NaN.
            if ((column == len(feature.categories) - 1) == np.isnan(number)).any():
                raise ValueError(
                    f"column {feature.source!r} of X has a number where {feature.name!r} says a "
                    "special value, or none where it says a number"
                )
        if column.min() < least or column.max() >= len(feature.categories):
            raise ValueError(
                f"column {feature.name!r} of X has categories (codes) that its schema lacks"
            )


def _check_values(table: Table) -> None:
    """Refuse infinite values, and missing ones if the schema does."""
    incomplete = []
    for index, (feature, column) in enumerate(table._pairs):
        if feature.is_numeric:
            if np.isfinite(column).all():
                continue
            if np.isinf(column).any():
                raise ValueError(
                    f"column {feature.name!r} of X has infinite values; replace them with finite "
                    "numbers"
                )
        # A number with special values is NaN for these; what it lacks shows in its companion.
        if feature.special_values is None and table.missing_mask(index).any():
            incomplete.append(feature.source or feature.name)
    if incomplete and table.schema.missing == "refuse":
        raise ValueError(
            f"X has missing values in {_listed(incomplete)}; fill them, drop the rows, or fit with "
            'missing="own_category", which makes "is missing" a condition of its own'
        )


def refuse_large(table: Table, largest: float, why: str) -> None:
    """Refuse numbers that a computation cannot hold.

    Raises:
        ValueError: naming the column.
    """
    for feature, column in table._pairs:
        if feature.is_numeric and np.nanmax(np.abs(column), initial=0.0) > largest:
            raise ValueError(
                f"column {feature.name!r} of X has values beyond {largest:.3g}, {why}; divide it "
                "by a constant"
            )


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


# Targets and weights


_LEAST = 1e-100
"""Weights and targets stay between this and its reciprocal, so that products fit in float64."""


def target_array(y: object, n_rows: int | None = None, name: str = "y") -> NDArray[Any]:
    """`y` as a one-dimensional array of numbers, booleans or text without missing values, shape
    (rows,).

    Ordered categories of other types, such as the intervals of `pandas.cut`, become text. Errors
    refer to it as `name`.

    Raises:
        ValueError: for a wrong shape or length, or missing or infinite values.
        TypeError: for labels of other or of mixed types.
    """
    checks.concrete(name, y)
    if isinstance(y, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; drop the masked rows")
    # Make a list an array of objects first: NumPy would silently turn [1, "a"] into text.
    array = np.array(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        label = next(iter(getattr(y, "columns", ())), None)
        column = f"{name}.ravel()" if hasattr(y, "ravel") else f"numpy.ravel({name})"
        column = f"{name}[{label!r}]" if isinstance(label, str | int) else column
        raise ValueError(f"{name} must be one-dimensional, got one column; pass {column}")
    if array.ndim != 1:
        shown = f"shape {array.shape}" if array.ndim else _named(y)
        raise ValueError(
            f"{name} must be one-dimensional, one label or number per row, got {shown}"
        )
    if not len(array):
        raise ValueError(f"{name} is empty")
    # O: Python objects; T: NumPy's text of variable width.
    if array.dtype.kind in "OT":
        if not _are_labels(_declared_order(y)):
            array = _each_text(array)
        array = _plain(array, name)
    if array.dtype.kind not in "biufU":
        raise TypeError(
            f"{name} has type {array.dtype}; it must be numbers, booleans or text labels"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} has NaN or infinite values; drop those rows")
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"{name} has {len(array)} values, but X has {n_rows} rows")
    return array


def _are_labels(values: Iterable[object]) -> bool:
    return all(isinstance(value, (str, int, float, np.number, np.bool_)) for value in values)


def _each_text(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Categories as text, missing ones as they are, in an array of objects."""
    texts = np.empty(len(values), object)
    texts[:] = [value if _is_missing(value) else category_text(value) for value in values]
    return texts


def _plain(objects: NDArray[Any], name: str) -> NDArray[Any]:
    """An array of Python objects as text, booleans, integers or floats."""
    if any(_is_missing(value) for value in objects):
        raise ValueError(f"{name} has missing values; drop those rows")
    kinds = {type(value) for value in objects}
    booleans = {kind for kind in kinds if issubclass(kind, (bool, np.bool_))}
    if all(issubclass(kind, str) for kind in kinds):
        texts = np.array(objects.tolist(), np.str_)
        if (texts != objects).any():
            raise ValueError(
                f"{name} has labels that end in a NUL character, which NumPy drops; rename them"
            )
        return texts
    if booleans == kinds:
        return objects.astype(bool)
    if booleans or not all(
        issubclass(kind, (int, float, np.integer, np.floating)) for kind in kinds
    ):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(
            f"{name} has values of type {names}; it must be all text, all booleans or all numbers: "
            "convert it with astype(float) or astype(str)"
        )
    real = any(issubclass(kind, (float, np.floating)) for kind in kinds)
    try:
        return objects.astype(np.float64 if real else np.int64)
    except OverflowError:
        raise ValueError(
            f"{name} has integers that 64 bits cannot hold; convert labels to text"
        ) from None


def regression_target(y: ArrayLike, n_rows: int | None = None) -> NDArray[np.float64]:
    """A numeric target as float64, shape (rows,).

    Raises:
        ValueError: for a wrong shape or length, NaN or infinite values, or squares that overflow or
            vanish.
        TypeError: for text labels.
    """
    array = target_array(y, n_rows)
    if array.dtype.kind == "U":
        raise TypeError(
            "y holds text labels, but this loss needs numbers; use a classification loss"
        )
    values = array.astype(np.float64)
    if array.dtype.kind in "iu" and np.abs(values).max() >= _LARGEST_EXACT_INTEGER:
        raise ValueError(
            "y has integers beyond 2**53, which float64 cannot distinguish; subtract a constant, "
            "or pass them as floats"
        )
    if np.abs(values).max() > 1 / _LEAST:
        raise ValueError(
            f"y has values beyond {1 / _LEAST}, whose squares overflow; divide y by a constant"
        )
    if 0 < np.ptp(values) < _LEAST:
        raise ValueError(
            f"y has values that differ by less than {_LEAST}; multiply y by a constant"
        )
    return values


_FEWEST_COUNTS = 4
_LARGEST_TAIL = 0.1


def integer_classes(y: ArrayLike) -> list[int]:
    """The values of a target of integers that `holds_classes` takes for more than two classes,
    though it may hold numbers; empty for other targets.
    """
    array = target_array(y)
    values = np.unique(array).tolist()
    declared = declares_categories(y) or label_order(y)
    return values if 2 < len(values) <= 10 and array.dtype.kind in "iu" and not declared else []


def look_like_counts(y: ArrayLike) -> bool:
    """Whether `integer_classes` look like counts: 0, 1, 2, ... up to at least 3, ever rarer from
    the most frequent one on (up to two standard errors), the largest with less than a tenth of its
    rows.

    Codes of classes rarely are: their frequencies follow no order, or all are of one size.
    """
    values = integer_classes(y)
    if len(values) < _FEWEST_COUNTS or values[0]:
        return False
    rows = np.bincount(target_array(y).astype(np.int64))
    falling = rows[rows.argmax() :]
    # A count n has the standard error sqrt(n); + 1 keeps that of an empty value above 0.
    rises = np.diff(falling) > 2 * np.sqrt(falling[:-1] + 1)
    return bool(not rises.any() and falling[-1] < _LARGEST_TAIL * falling[0])


class OrderedLabels(np.ndarray):
    """A target that keeps its name and the declared order of its labels when it is sliced, copied
    or pickled.

    Attributes:
        order: the labels from first to last; empty for none.
        name: of the target; None for none.
    """

    order: tuple[Label, ...]
    name: str | None

    @classmethod
    def of(
        cls, labels: NDArray[Any], order: tuple[Label, ...], name: str | None = None
    ) -> NDArray[Any]:
        """The labels, in an array of this type if there is an order or a name."""
        if not order and not name:
            return labels
        made = np.asarray(labels).view(cls)
        made.order, made.name = order, name
        return made

    def __array_finalize__(self, source: Any) -> None:
        # NumPy calls this for every view, slice and copy of the labels.
        self.order, self.name = getattr(source, "order", ()), getattr(source, "name", None)

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedLabels.of, (np.asarray(self), self.order, self.name)


def target_name(y: object) -> str | None:
    """The name of a target that is a named column, such as a pandas or polars Series; else None."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def with_target(table: Table, y: object) -> Table:
    """The table, in whose schema the target has the name of `y`, if it has one: printed models and
    reports show it.
    """
    name = target_name(y)
    if name is None or name == table.schema.target:
        return table
    return Table.of_checked(dataclasses.replace(table.schema, target=name), table.columns)


def label_order(y: object) -> tuple[Label, ...]:
    """The labels that a target declares, in order: the categories of an ordered categorical
    (pandas, pyarrow), or of an Enum of polars; empty for other targets. Rows need not have all.
    """
    if isinstance(y, OrderedLabels):
        return y.order
    given = _declared_order(y)
    if not given:
        return ()
    labels = np.empty(len(given), object)
    labels[:] = given
    return tuple(_plain(labels if _are_labels(given) else _each_text(given), "y").tolist())


def holds_classes(y: ArrayLike) -> bool:
    """Whether a target looks like classes: text, booleans, categories of any type, at most ten
    distinct integers, or any two values.

    Raises:
        TypeError, ValueError: as `target_array`.
    """
    array = target_array(y)
    values = np.unique(array)
    return (
        array.dtype.kind in "bU"
        or declares_categories(y)
        or bool(label_order(y))
        or len(values) == 2
        or (array.dtype.kind in "iu" and len(values) <= 10)
    )


def class_target(
    y: ArrayLike, n_rows: int | None = None, positive: Label | None = None
) -> tuple[NDArray[np.int64], tuple[Label, ...]]:
    """Class codes, shape (rows,), and the labels, in the order that y declares (see `label_order`),
    else sorted; of two, `positive` is the last. Declared labels that no row has are left out.

    Raises:
        ValueError: for a wrong shape or length, missing values or a single class; for labels that
            look like numbers or identifiers; for a `positive` that is not one of two classes.
    """
    array = target_array(y, n_rows)
    labels, codes = in_order(array, label_order(y))
    if len(labels) < 2:
        raise ValueError(f"y has only one class ({labels[0]!s}); classification needs at least two")
    if array.dtype.kind == "f" and len(labels) > 20 and len(labels) > len(array) // 10:
        raise ValueError(
            f"y has {len(labels)} distinct numbers, which look like a regression target; "
            "use a regression loss, or convert class labels to integers or text"
        )
    if array.dtype.kind == "U" and len(labels) > max(20, len(array) // 2):
        if all(map(_NUMBER.fullmatch, labels.tolist())):
            raise ValueError("y holds numbers written as text; pass pandas.to_numeric(y)")
        raise ValueError(
            f"y has {len(labels)} distinct labels in {len(array)} rows, which look like names or "
            "identifiers; pass the column of classes"
        )
    classes = tuple(label.item() for label in labels)
    if positive is not None and _is_first(positive, classes):
        codes, classes = 1 - codes, classes[::-1]
    return codes.astype(np.int64), classes


def in_order(
    array: NDArray[Any], order: tuple[Label, ...]
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The distinct labels, in this order or, if there is none, sorted; the code of every row."""
    labels, codes = np.unique(array, return_inverse=True)
    if order:
        place = np.argsort([order.index(label) for label in labels.tolist()])
        # `place` lists the sorted labels in the declared order; its inverse renumbers the codes.
        labels, codes = labels[place], np.argsort(place)[codes]
    return labels, codes


def _is_first(positive: Label, classes: tuple[Label, ...]) -> bool:
    """Whether `positive` is the first of two classes, and not the second."""
    if len(classes) > 2:
        raise ValueError(
            f"positive={positive!r} is for two classes, but y has {len(classes)}; for one class "
            "against the rest, fit y == label"
        )
    if positive not in classes:
        raise ValueError(
            f"positive={positive!r} is not a class of y; they are {classes[0]!r} and {classes[1]!r}"
        )
    return positive == classes[0]


def binary_target(
    y: ArrayLike, n_rows: int | None = None, positive: Label | None = None
) -> tuple[NDArray[np.float64], tuple[Label, ...]]:
    """1.0 for the positive class (`positive`, None for the second label, see `class_target`), 0.0
    for the other; and both labels, the positive one last.

    Raises:
        ValueError: as `class_target`, and for more than two classes.
    """
    codes, classes = class_target(y, n_rows, positive)
    if len(classes) > 2:
        raise ValueError(
            f"y has {len(classes)} classes {_listed([str(c) for c in classes])}; this learner is "
            "binary: fit one class against the rest, e.g. y == label; if y holds numbers, choose "
            'the loss or cost "squared"'
        )
    return codes.astype(np.float64), classes


def check_order(X: object, **others: object) -> None:
    """Refuse columns with the index of X (pandas) in another order: rows are paired by position.

    Raises:
        ValueError: naming the argument.
    """
    first: tuple[str, Any] | None = None
    for name, value in {"X": X, **others}.items():
        index: Any = getattr(value, "index", None)
        if not hasattr(index, "equals") or not hasattr(index, "sort_values"):
            continue  # a list has a method of that name
        if first is None:
            first = name, index
        elif (
            len(index) == len(first[1])
            and not index.equals(first[1])
            # The same labels in another order are a slip; other labels are no claim about the
            # order.
            and Counter(index) == Counter(first[1])
        ):
            remedy = f"pass {name}.loc[{first[0]}.index], or"
            if not index.is_unique:
                remedy = "its labels repeat, so match the rows by other columns, or pass"
            raise ValueError(
                f"{name} has the index of {first[0]} in another order, but rows are paired by "
                f"position; {remedy} {name}.to_numpy() if the order is right"
            )


def effective_row(weights: NDArray[np.float64]) -> float:
    """The weight of one row: sum w^2 / sum w, the total over Kish's effective number of rows.

    It is 1 without weights, and a factor of all weights is one of it.
    """
    return float((weights**2).sum() / weights.sum())


def numbers_of_rows(name: str, given: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """A finite number for every row, shape (rows,).

    Raises:
        TypeError, ValueError: naming the argument.
    """
    values = checks.array(name, given)
    if values.shape != (n_rows,):
        raise ValueError(f"{name} has shape {values.shape}, but X has {n_rows} rows")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has NaN or infinite values; drop those rows")
    return values


_LARGEST_OFFSET = 300.0


def total_offset(
    offset: ArrayLike | None, exposure: ArrayLike | None, n_rows: int, log_link: bool
) -> NDArray[np.float64]:
    """offset + log(exposure) as float64, shape (rows,); 0 for None.

    Raises:
        ValueError: for a wrong length, values that are not finite, an exposure that is not
            positive or belongs to a loss without the log link, or logarithms beyond 300.
        TypeError: if they are not numbers.
    """
    total = np.zeros(n_rows)
    for name, given in (("offset", offset), ("exposure", exposure)):
        if given is None:
            continue
        values = numbers_of_rows(name, given, n_rows)
        if name == "exposure":
            if not (values > 0).all():
                raise ValueError("exposure must be positive; drop the rows without exposure")
            if not log_link:
                raise ValueError(
                    "exposure is for losses with the log link, such as loss='poisson'; for others "
                    "use offset"
                )
            values = np.log(values)
        # exp(300) is about 2e130, whose square still fits in float64.
        if log_link and np.abs(values).max(initial=0) > _LARGEST_OFFSET:
            raise ValueError(
                f"{name} has logarithms beyond {_LARGEST_OFFSET:g}; give it in other units"
            )
        if not log_link and np.abs(values).max(initial=0) > 1 / _LEAST:
            raise ValueError(
                f"{name} has values beyond {1 / _LEAST}, whose squares overflow; divide it and y "
                "by a constant"
            )
        total += values
    return total


def check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """The weights as float64, shape (rows,); all 1 for None.

    Raises:
        ValueError: for a wrong length, NaN, infinite or negative weights, or if all are zero.
        TypeError: if they are not numbers.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    weights = checks.array("sample_weight", sample_weight)
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must be one-dimensional, got shape {weights.shape}")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight has {len(weights)} values, but X has {n_rows} rows")
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight has NaN or infinite values")
    if (weights < 0).any():
        raise ValueError("sample_weight has negative values; weights must be at least 0")
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for every row; at least one row needs a positive weight"
        )
    least, largest = weights[weights > 0].min(), weights.max()
    if least / largest < _LEAST:
        raise ValueError(
            f"sample_weight has positive values below {_LEAST} times its maximum ({least} against "
            f"{largest}); set them to 0"
        )
    if not _LEAST <= least <= largest <= 1 / _LEAST:
        raise ValueError(
            f"sample_weight has positive values below {_LEAST} or above {1 / _LEAST}; divide it by "
            "its maximum"
        )
    return weights
