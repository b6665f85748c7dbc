"""A few rows for a model, as a service gets them: read in microseconds.

`jaxrules.data.table.conform` reads any data column by column, which takes 3 us a column of an
array, 10 of a record and 50 of a dataframe. What is plain (finite numbers; Python's own numbers,
booleans and known categories, in dicts or in a dataframe of pandas) needs no such care. Everything
else is left to `conform`, with its conversions, warnings and errors.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MOST_ROWS = 64
_MANY_FURTHER = 8
_LARGEST = float(2**53)
"""Integers from here on are refused, by `conform`."""


class _NotPlain(Exception):
    """What is left to `conform`."""


class Reader(NamedTuple):
    """How the values of a column are read.

    Attributes:
        name: of the column.
        dtype: of the column of a `Table`.
        missing: what stands there for a missing value.
        codes: by category or level; None for plain numbers.
        types: of the values that are looked up there.
    """

    name: str
    dtype: type
    missing: float
    codes: dict[Any, int] | None
    types: tuple[type, ...]

    def column(self, values: Sequence[Any], missing: bool) -> NDArray[Any]:
        """The values as a column of a `Table`.

        Args:
            values: of any type, one per row.
            missing: whether a value may be missing.

        Raises:
            _NotPlain: if one is not plain.
        """
        read: list[float] = []
        for value in values:
            kind = type(value)
            if value is None or (kind is float and value != value):
                if not missing:
                    raise _NotPlain
                value = self.missing
            elif self.codes is None:
                # An infinite number is none of these.
                if not ((kind is float or kind is int) and -_LARGEST < value < _LARGEST):
                    raise _NotPlain
            elif kind not in self.types or (value := self.codes.get(value)) is None:
                raise _NotPlain
            read.append(value)
        return np.array(read, self.dtype)


def columns_of(X: object, readers: Sequence[Reader], missing: bool) -> list[NDArray[Any]] | None:
    """The columns of a few plain rows; None for all other data.

    Args:
        X: data of any kind.
        readers: of the columns, in order.
        missing: whether values may be missing.
    """
    with contextlib.suppress(_NotPlain, KeyError):  # of a column that a row lacks
        if type(X) is np.ndarray:
            return _of_array(X, readers, missing)
        if type(X) is list and 0 < len(X) <= _MOST_ROWS and all(type(row) is dict for row in X):
            return _of_records(X, readers, missing)
        if type(X).__name__ == "DataFrame" and type(X).__module__.partition(".")[0] == "pandas":
            return _of_frame(X, readers, missing)
    return None


def _of_array(
    X: NDArray[Any], readers: Sequence[Reader], missing: bool
) -> list[NDArray[Any]] | None:
    if X.ndim != 2 or X.shape[1] != len(readers) or not 0 < len(X) <= _MOST_ROWS:
        return None
    if X.dtype.kind not in "iuf" or any(reader.codes is not None for reader in readers):
        return None
    columns = np.array(X.T, np.float64, order="C")  # a copy: the table must not follow the array
    # Rounding is monotone, so that no integer beyond 2^53 returns below it.
    largest = _LARGEST if X.dtype.kind in "iu" else math.inf
    plain = np.abs(columns) < largest
    if missing:
        plain |= np.isnan(columns)
    return list(columns) if plain.all() else None


def _of_records(
    X: list[dict[Any, Any]], readers: Sequence[Reader], missing: bool
) -> list[NDArray[Any]] | None:
    for row in X:
        # The names of further columns are read as text, and may then be those of others.
        if len(row) > len(readers) and not all(type(name) is str for name in row):
            return None
    return [reader.column([row[reader.name] for row in X], missing) for reader in readers]


def _of_frame(X: Any, readers: Sequence[Reader], missing: bool) -> list[NDArray[Any]] | None:
    names = X.columns.tolist()
    place = {name: index for index, name in enumerate(names)}
    if not 0 < len(X) <= _MOST_ROWS or len(place) < len(names):
        return None
    if len(names) > len(readers) and not all(type(name) is str for name in names):
        return None
    if len(names) > _MANY_FURTHER * len(readers):
        return None  # further columns are not read
    kinds, rows = X.dtypes.tolist(), X.to_numpy().tolist()
    columns = []
    for reader in readers:
        index = place[reader.name]
        # Numbers and booleans of other types (of categories, of objects) are text, or refused.
        plain = isinstance(kinds[index], np.dtype) and kinds[index].kind in "biuf"
        if not (plain or reader.types == (str,)):
            return None
        columns.append(reader.column([row[index] for row in rows], missing))
    return columns
