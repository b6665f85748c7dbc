"""Constraints of rule lists: features that rules may not, must, or may use in one direction only; an expert's rules.

A list is monotone in a numeric feature if raising the feature, all else equal, never moves the prediction to a class
that comes earlier among the classes. It is so when conditions with a lower end alone ("x >= t") stand in rules of the
last class only, and conditions with an upper end alone ("x < t") in rules of the first class only: a row that rises
meets only new rules of the last class, and loses only rules of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.checks import require
from jaxrules.conditions import Conjunctions
from jaxrules.table import Schema

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Constraints:
    """What the rules of a list may say, beside what the data say.

    Attributes:
        forbidden: columns that no rule may use.
        required: columns that some rule must use, at most 63.
        monotone: the direction, 1 or -1, of some numeric columns.
    """

    forbidden: frozenset[int] = frozenset()
    required: tuple[int, ...] = ()
    monotone: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls, schema: Schema, forbidden: Iterable[Any] = (), required: Iterable[Any] = (),
        monotone: Mapping[Any, int] | None = None,
    ) -> Constraints:  # fmt: skip
        """The constraints that arguments of these names mean: columns by name or position.

        Raises:
            TypeError, ValueError: naming the argument.
        """
        if not (monotone is None or isinstance(monotone, Mapping)):
            raise TypeError(f"monotone must map columns to 1 or -1, got {type(monotone).__name__}")
        directions = {}
        for key, direction in (monotone or {}).items():
            column = _column(schema, "monotone", key)
            name = schema.names[column]
            require(schema.features[column].is_numeric, f"monotone names the categorical column {name!r}")
            if isinstance(direction, bool) or direction not in (1, -1):
                raise ValueError(f"monotone must be 1 (rising) or -1 (falling) for {name!r}, got {direction!r}")
            directions[column] = int(direction)
        banned = frozenset(_columns(schema, "forbidden", forbidden))
        wanted = tuple(dict.fromkeys(_columns(schema, "required", required)))
        both = [schema.names[column] for column in wanted if column in banned]
        require(not both, f"required and forbidden both name {both}")
        require(len(wanted) < 64, f"required names {len(wanted)} columns; 63 are the most")
        return cls(banned, wanted, tuple(directions.items()))

    def allows(self, rules: Conjunctions, n_classes: int) -> Bools:
        """Which labels each rule may have, (rules, classes); none where it uses what is forbidden."""
        rule_of = np.repeat(np.arange(len(rules)), rules.lengths)
        allowed = np.ones((len(rules), n_classes), bool)
        for column in self.forbidden:
            allowed[rule_of[_speaks_of(rules, column)]] = False
        for column, direction in self.monotone:
            low, high = np.isfinite(rules.lower), np.isfinite(rules.upper)  # "is missing" has neither
            oblique = rules.feature != column
            for condition in np.flatnonzero(_speaks_of(rules, column) & (low | high | oblique)):
                labels = np.zeros(n_classes, bool)
                if low[condition] != high[condition] and not oblique[condition]:
                    labels[-1 if low[condition] == (direction == 1) else 0] = True
                allowed[rule_of[condition]] &= labels
        return allowed

    def uses(self, rules: Conjunctions) -> NDArray[np.uint64]:
        """Which of the required columns each rule uses, as bits, (rules,)."""
        rule_of, bits = np.repeat(np.arange(len(rules)), rules.lengths), np.zeros(len(rules), np.uint64)
        for place, column in enumerate(self.required):
            bits[rule_of[_speaks_of(rules, column)]] |= np.uint64(1 << place)
        return bits


def _speaks_of(rules: Conjunctions, column: int) -> Bools:
    """Which conditions do, (conditions,); directions that weigh the column too."""
    n_columns = len(rules.schema.features)
    oblique = [n_columns + d for d, direction in enumerate(rules.directions) if column in direction.features]
    return np.isin(rules.feature, [column, *oblique])


def _columns(schema: Schema, name: str, keys: Iterable[Any]) -> list[int]:
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        raise TypeError(f"{name} must be a list of column names or positions, got {type(keys).__name__}")
    return [_column(schema, name, key) for key in keys]


def _column(schema: Schema, name: str, key: Any) -> int:
    """A column by name or position."""
    n = len(schema.names)
    if isinstance(key, str):
        require(key in schema.names, f"{name} names {key!r}, which is no column; those are {list(schema.names)}")
        return schema.names.index(key)
    if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
        raise TypeError(f"{name} must name columns by name or position, got {key!r}")
    require(0 <= key < n, f"{name} names column {key}; there are {n}")
    return int(key)
