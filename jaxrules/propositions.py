"""Propositions: yes/no questions about a row, and pools of them as a struct of arrays.

A `Threshold` compares a number with a value, a `Category` asks whether a column has a category, `Missing`
whether a value is missing, a `Halfspace` whether a sparse linear combination of numbers reaches a value. A
`PropositionPool` evaluates many of them on a table, as booleans (rows, propositions) or as the integer
cell codes that the rule search works on. A missing value satisfies no threshold and no half-space,
every ``!=`` and "is missing".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules import display
from jaxrules.conjunctions import Condition
from jaxrules.table import MISSING, Schema, Table

_MOST_CELLS = 2**16 - 4  # cell codes are uint16


@dataclass(frozen=True)
class Threshold:
    """feature <= value, feature >= value, feature < value or feature > value."""

    feature: int
    operator: Literal["<=", ">=", "<", ">"]
    value: float

    def holds(self, table: Table) -> NDArray[np.bool_]:
        """Whether it holds per row; False where the value is missing."""
        column = table.columns[self.feature]
        if self.operator == "<=":
            return column <= self.value
        if self.operator == ">=":
            return column >= self.value
        return column < self.value if self.operator == "<" else column > self.value

    def condition(self, schema: Schema) -> Condition:
        """The same as a condition of a rule."""
        makers = {"<=": Condition.at_most, ">=": Condition.at_least, "<": Condition.below, ">": Condition.above}
        return makers[self.operator](self.feature, self.value)

    def describe(self, schema: Schema) -> str:
        return f"{schema.features[self.feature].name} {self.operator} {display.number(self.value)}"


@dataclass(frozen=True)
class Category:
    """feature == category or feature != category; `code` is the category's place in the schema."""

    feature: int
    operator: Literal["==", "!="]
    code: int

    def holds(self, table: Table) -> NDArray[np.bool_]:
        """Whether it holds per row; a missing value satisfies ``!=``."""
        equal: NDArray[np.bool_] = table.columns[self.feature] == self.code
        return equal if self.operator == "==" else ~equal

    def condition(self, schema: Schema) -> Condition:
        """The same as a condition of a rule."""
        if self.operator == "==":
            return Condition.one_of(self.feature, [self.code])
        return Condition.none_of(self.feature, [self.code], len(schema.features[self.feature].categories or ()))

    def describe(self, schema: Schema) -> str:
        feature = schema.features[self.feature]
        return f"{feature.name} {self.operator} {(feature.categories or ())[self.code]}"


@dataclass(frozen=True)
class Missing:
    """feature is missing, or (``present=True``) feature is not missing."""

    feature: int
    present: bool = False

    def holds(self, table: Table) -> NDArray[np.bool_]:
        """Whether it holds per row."""
        missing = table.missing_mask(self.feature)
        return ~missing if self.present else missing

    def condition(self, schema: Schema) -> Condition:
        """The same as a condition of a rule."""
        categories = schema.features[self.feature].categories
        if self.present:
            return Condition.is_present(self.feature, None if categories is None else len(categories))
        return Condition.is_missing(self.feature, numeric=categories is None)

    def describe(self, schema: Schema) -> str:
        return f"{schema.features[self.feature].name} is {'not ' if self.present else ''}missing"


@dataclass(frozen=True)
class Halfspace:
    """sum of weight * feature >= value, over numeric features in ascending order.

    Evaluated in float64, terms added in the order of the features, so that every evaluation agrees.
    """

    features: tuple[int, ...]
    weights: tuple[float, ...]
    value: float

    def __post_init__(self) -> None:
        if not self.features or len(self.features) != len(self.weights):
            raise ValueError("a half-space needs as many weights as features, at least one")
        if list(self.features) != sorted(set(self.features)):
            raise ValueError("features of a half-space must be distinct and ascending")

    def holds(self, table: Table) -> NDArray[np.bool_]:
        """Whether it holds per row; False where a value is missing."""
        total = np.zeros(table.n_rows)
        for feature, weight in zip(self.features, self.weights, strict=True):
            total += weight * table.columns[feature]
        return total >= self.value

    def condition(self, schema: Schema) -> Condition:
        """Refuses: a condition of a rule speaks of one feature."""
        raise TypeError(f"{self.describe(schema)} cannot be a condition: conditions restrict one feature each")

    def describe(self, schema: Schema) -> str:
        terms = (
            f"{display.number(weight)} * {schema.features[feature].name}"
            for feature, weight in zip(self.features, self.weights, strict=True)
        )
        return f"{' + '.join(terms)} >= {display.number(self.value)}"


Proposition = Threshold | Category | Missing | Halfspace


class CellCodes(NamedTuple):
    """Propositions as comparisons of integer codes: proposition a holds where codes[:, column[a]] >= cell[a]
    if above[a], else where codes[:, column[a]] <= cell[a].

    The K values that thresholds on a feature use cut it into 2 K + 1 cells, the values and the
    gaps between them. Thresholds share their feature's code column (two columns where values are
    missing: a missing value lies above all "<=" and below all ">="); all others have their own.
    """

    codes: NDArray[np.uint16]  # (rows, code columns)
    column: NDArray[np.int32]
    above: NDArray[np.bool_]
    cell: NDArray[np.uint16]


@dataclass(frozen=True)
class PropositionPool:
    """Propositions on the columns of one schema."""

    propositions: tuple[Proposition, ...]
    schema: Schema

    def __post_init__(self) -> None:
        for proposition in self.propositions:
            _check(proposition, self.schema)

    def __len__(self) -> int:
        return len(self.propositions)

    def evaluate(self, table: Table) -> NDArray[np.bool_]:
        """Whether each proposition holds, shape (rows, propositions)."""
        columns = [proposition.holds(table) for proposition in self.propositions]
        return np.stack(columns, axis=1) if columns else np.zeros((table.n_rows, 0), bool)

    def take(self, indices: Iterable[int]) -> PropositionPool:
        """The propositions at these places."""
        return PropositionPool(tuple(self.propositions[i] for i in indices), self.schema)

    def conditions(self, indices: Iterable[int]) -> list[Condition]:
        """A set of propositions as the conditions of one rule, for `Conjunctions.build`."""
        return [self.propositions[i].condition(self.schema) for i in indices]

    def describe(self, index: int) -> str:
        """One proposition in words."""
        return self.propositions[index].describe(self.schema)

    def cell_codes(self, table: Table) -> CellCodes:
        """The propositions as comparisons of integer codes.

        Raises:
            ValueError: if a feature has more cut points than codes can tell apart.
        """
        columns: list[NDArray[Any]] = []
        place: dict[tuple[int, bool], int] = {}
        values: dict[int, NDArray[np.float64]] = {}
        for feature in {p.feature for p in self.propositions if isinstance(p, Threshold)}:
            cuts = np.unique([p.value for p in self.propositions if isinstance(p, Threshold) and p.feature == feature])
            if 2 * len(cuts) > _MOST_CELLS:
                name = self.schema.features[feature].name
                raise ValueError(f"column {name!r} has {len(cuts)} cut points; set max_cut_points to use fewer")
            values[feature] = cuts
            x = table.columns[feature]
            cells = 1 + np.searchsorted(cuts, x, "left") + np.searchsorted(cuts, x, "right")
            missing = table.missing_mask(feature)
            place[feature, False] = place[feature, True] = len(columns)
            columns.append(np.where(missing, 2 * len(cuts) + 2, cells))
            if missing.any():
                place[feature, True] = len(columns)
                columns.append(np.where(missing, 0, cells))
        column, above, cell = [], [], []
        for p in self.propositions:
            if isinstance(p, Threshold):
                at = 2 + 2 * int(np.searchsorted(values[p.feature], p.value))  # the cell of the value itself
                above.append(p.operator[0] == ">")
                column.append(place[p.feature, above[-1]])
                cell.append(at + {"<=": 0, ">=": 0, "<": -1, ">": 1}[p.operator])
            else:
                column.append(len(columns))
                above.append(True)
                cell.append(1)
                columns.append(p.holds(table).astype(np.uint16))
        codes = np.stack(columns, axis=1).astype(np.uint16) if columns else np.zeros((table.n_rows, 0), np.uint16)
        return CellCodes(codes, np.array(column, np.int32), np.array(above, bool), np.array(cell, np.uint16))

    def distinct(self, table: Table) -> PropositionPool:
        """Without the propositions that hold on all rows or on none, and of equal ones the first."""
        kept: dict[bytes, int] = {}
        for index, proposition in enumerate(self.propositions):
            holds = proposition.holds(table)
            if holds.any() and not holds.all():
                kept.setdefault(np.packbits(holds).tobytes(), index)
        return self.take(kept.values())


def _check(proposition: Proposition, schema: Schema) -> None:
    features = proposition.features if isinstance(proposition, Halfspace) else (proposition.feature,)
    for feature in features:
        if not 0 <= feature < len(schema.features):
            raise ValueError(f"a proposition names feature {feature}; there are {len(schema.features)}")
        categories = schema.features[feature].categories
        name = schema.features[feature].name
        if isinstance(proposition, (Threshold, Halfspace)) and categories is not None:
            raise ValueError(f"a {type(proposition).__name__} compares numbers; column {name!r} is categorical")
        if isinstance(proposition, Category) and not (
            categories is not None and 0 <= proposition.code < len(categories)
        ):
            raise ValueError(f"a Category asks for code {proposition.code} of column {name!r}, which it does not have")


def propositions_of(table: Table, *, max_cut_points: int | None = None) -> PropositionPool:
    """All propositions that tell the table's rows apart.

    A number is compared with each of its values from both sides, or with at most `max_cut_points` quantiles (at
    the shares i / (max_cut_points + 1), linearly interpolated), closed and open. A category is asked
    for with ``==`` and ``!=``, a column with missing values also with "is missing" and "is not missing".
    Propositions that hold on all rows or on none, and repetitions of the same rows, are left out.

    Raises:
        ValueError: if max_cut_points is not positive.
    """
    if max_cut_points is not None and (isinstance(max_cut_points, bool) or max_cut_points < 1):
        raise ValueError(f"max_cut_points must be a positive integer or None, got {max_cut_points!r}")
    pool: list[Proposition] = []
    for index, feature in enumerate(table.schema.features):
        missing = table.missing_mask(index)
        if feature.categories is None:
            pool += _thresholds(index, table.columns[index][~missing], max_cut_points)
        else:
            codes = [code for code in np.unique(table.columns[index]).tolist() if code != MISSING and code >= 0]
            pool += [Category(index, "==", code) for code in codes]
            pool += [Category(index, "!=", code) for code in codes]
        if missing.any():
            pool += [Missing(index), Missing(index, present=True)]
    return PropositionPool(tuple(pool), table.schema).distinct(table)


def _thresholds(feature: int, x: NDArray[np.float64], max_cut_points: int | None) -> Sequence[Threshold]:
    cuts = np.unique(x)
    if max_cut_points is not None and len(cuts) > max_cut_points + 1:
        cuts = np.unique(np.quantile(x, np.arange(1, max_cut_points + 1) / (max_cut_points + 1)))
        operators: tuple[Literal["<=", ">=", "<", ">"], ...] = ("<=", ">=", "<", ">")
    else:
        operators = ("<=", ">=")  # x < v is x <= the value before v
    return [Threshold(feature, operator, float(cut)) for operator in operators for cut in cuts]
