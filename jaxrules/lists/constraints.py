"""Constraints of rule lists: features that rules may not, must, or may use in one direction only; an expert's rules.

A list is monotone in a numeric feature if raising the feature, all else equal, never moves the prediction to a class
that comes earlier among the classes. It is so when conditions with a lower end alone ("x >= t") stand in rules of the
last class only, and conditions with an upper end alone ("x < t") in rules of the first class only: a row that rises
meets only new rules of the last class, and loses only rules of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules import checks
from jaxrules.checks import require
from jaxrules.conditions import Conjunctions
from jaxrules.models import RuleList
from jaxrules.table import Schema
from jaxrules.training import TrainingData

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

    def using(self, rules: Conjunctions) -> list[Bools]:
        """For each required column, which rules use it, (rules,)."""
        rule_of = np.repeat(np.arange(len(rules)), rules.lengths)
        return [np.isin(np.arange(len(rules)), rule_of[_speaks_of(rules, column)]) for column in self.required]

    def uses(self, rules: Conjunctions) -> NDArray[np.uint64]:
        """Which of the required columns each rule uses, as bits, (rules,)."""
        bits = np.zeros(len(rules), np.uint64)
        for place, using in enumerate(self.using(rules)):
            bits |= using.astype(np.uint64) << np.uint64(place)
        return bits


@dataclass(frozen=True, eq=False)
class FirstRules:
    """An expert's rules, which come first in a list: what is left to learn are the rows that none of them covers.

    Attributes:
        rules: in order.
        labels: what they say, (rules,).
        decided: the weight of every class among the rows that each captures, (rules, classes).
        rest: which rows they leave, bool (rows,).
        right: which rows they get right, bool (rows,).
    """

    rules: Conjunctions
    labels: NDArray[np.int32]
    decided: NDArray[np.float64]
    rest: Bools
    right: Bools

    @classmethod
    def of(
        cls, data: TrainingData, class_weights: NDArray[np.float64], first: Any, first_labels: Any, max_rules: int
    ) -> FirstRules:
        """The rules that arguments of these names mean; without `first_labels` they say the heaviest classes.

        Raises:
            TypeError, ValueError: naming the argument; also if no row or no rule is left to learn.
        """
        classes = data.classes or ()
        rules = rules_for(data, "first", first)
        position = RuleList(rules, np.zeros(0, np.int32), np.zeros(0)).position(data.table)
        decided = np.zeros((len(rules) + 1, len(classes)))
        np.add.at(decided, position, class_weights)
        labels = decided[:-1].argmax(axis=1).astype(np.int32)
        if first_labels is not None:
            if isinstance(first_labels, (str, bytes)) or not isinstance(first_labels, Sequence):
                raise TypeError(f"first_labels must be a list of labels, got {type(first_labels).__name__}")
            if len(first_labels) != len(rules) or not set(first_labels) <= set(classes):
                raise ValueError(f"first_labels must hold one of {classes} for each of {len(rules)} rules of first")
            labels = np.array([classes.index(label) for label in first_labels], np.int32)
        rest = position == len(rules)
        require(rest.any(), "first has rules that cover every row: there is nothing left to learn")
        require(len(rules) < max_rules, f"first has {len(rules)} rules, of {max_rules} in all: none is left to learn")
        said = np.append(labels, -1)[position]
        right = ~rest & (class_weights[np.arange(len(said)), said] > 0)
        return cls(rules, labels, decided[:-1], rest, right)

    def objective(self, penalty: float) -> float:
        """What they add to the objective: the weight that is right minus the price of the literals."""
        right = self.decided[np.arange(len(self.rules)), self.labels].sum()
        return float(right - penalty * self.rules.propositions.sum())

    def before(
        self, rules: Conjunctions, labels: NDArray[np.int32], decided: NDArray[np.float64],
        options: tuple[tuple[str, Any], ...],
    ) -> RuleList:  # fmt: skip
        """The model of these rules and those learned on the rest; one row of each class is added to what is decided."""
        decided = np.concatenate([self.decided, decided]) + 1
        return RuleList(
            Conjunctions.concatenate([self.rules.with_schema(rules.schema), rules]),
            np.concatenate([self.labels, labels]).astype(np.int32),
            decided / decided.sum(axis=1, keepdims=True),
            options,
        )


def rules_for(data: TrainingData, name: str, given: Any) -> Conjunctions:
    """The rules of an argument, on the columns of the data; none for None.

    Raises:
        TypeError, ValueError: naming the argument.
    """
    if given is None:
        return Conjunctions.build(data.table.schema, [])
    rules = checks.instance(name, given, Conjunctions, "jaxrules.Conjunctions.build")
    if rules.schema.features != data.table.schema.features:
        raise ValueError(f"{name} speaks of other columns than X has; build it from the same table")
    return rules.with_schema(data.table.schema)


def _speaks_of(rules: Conjunctions, column: int) -> Bools:
    """Which conditions do, (conditions,); directions that weigh the column too."""
    n_columns = len(rules.schema.features)
    oblique = [n_columns + d for d, direction in enumerate(rules.directions) if column in direction.features]
    return np.isin(rules.feature, [column, *oblique])


def _columns(schema: Schema, name: str, keys: Iterable[Any]) -> list[int]:
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable) or (hasattr(keys, "ndim") and keys.ndim != 1):
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
