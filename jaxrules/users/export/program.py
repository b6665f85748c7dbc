"""The common form of models for all exports: tests of columns (from the lowered form) and
consequents.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import MISSING, Feature, Label, Schema
from jaxrules.models.rule_models import (
    Link,
    OrderedRules,
    RegressionList,
    RuleEnsemble,
    RuleList,
    Threshold,
    not_a_model,
)
from jaxrules.paths.model import ModelSequence
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.lowered import Axis
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Settings


class Test(NamedTuple):
    """A rule's test of one column or direction.

    Attributes:
        feature: the column; at least the number of columns for a direction.
        asked: the comparisons that a value must all pass: ``(">", 30.0)``, ``("in", ("cook",
            "smith"))``, ``("not in", ...)``, ``("in", (True,))``; of a companion, on the special
            values: ``("in", (-7.0,))``. None: no value passes.
        missing: whether a missing value passes; if neither a value nor a missing one does, the rule
            never holds.
    """

    feature: int
    asked: Settings | None
    missing: bool

    @property
    def fails(self) -> bool:
        return self.asked is None and not self.missing


class Rule(NamedTuple):
    """The tests that a row must pass, the rule as text, its position in the model, and its weight
    per output (none in a rule list).
    """

    tests: tuple[Test, ...]
    text: str
    position: int
    weights: tuple[float, ...] = ()


class Term(NamedTuple):
    """weight * value: a number (or the place of a level) clipped to [lower, upper], or the 0/1
    indicator of a category.

    Attributes:
        feature: the column.
        category: None for the number, else the code of the category, `MISSING` for "is missing".
        weights: per output.
        lower, upper: infinite if the number is not clipped.
        text: its description.
        origin: subtracted from a number in a direction.
    """

    feature: int
    category: int | None
    weights: tuple[float, ...]
    lower: float = -np.inf
    upper: float = np.inf
    text: str = ""
    origin: float = 0.0


@dataclass(frozen=True)
class Program:
    """What the programs of all models have.

    Attributes:
        schema: the columns and classes.
        directions: sums of terms, missing if a number is missing.
        rules: the rules in order.
        terms: the terms added to the weights of the rules; 0 if a number is missing.
        refused: the columns in which the model refuses missing values.
    """

    schema: Schema
    directions: tuple[tuple[Term, ...], ...]
    rules: tuple[Rule, ...]
    terms: tuple[Term, ...]
    refused: frozenset[int]

    @property
    def reads(self) -> tuple[int, ...]:
        """The columns of the schema that the model uses, ascending."""
        n_columns = len(self.schema.features)
        tested = {test.feature for rule in self.rules for test in rule.tests}
        summed = [self.directions[d - n_columns] for d in tested if d >= n_columns]
        columns = {term.feature for terms in (self.terms, *summed) for term in terms}
        return tuple(sorted(columns | {f for f in tested if f < n_columns}))

    @property
    def asks(self) -> dict[int, bool]:
        """The columns of X that the model uses, ascending, and whether it refuses missing values
        there: one for a number and its companion.
        """
        companions = self.schema.companions
        numbers = {companion: number for number, companion in companions.items()}
        columns = sorted({numbers.get(column, column) for column in self.reads})
        return {column: companions.get(column, column) in self.refused for column in columns}


@dataclass(frozen=True)
class Sum(Program):
    """intercept + the weights of the rules that hold + the terms, in this order, under a
    link; see `RuleEnsemble`.

    Rules and terms without weight, and rules that never hold, are left out.
    """

    intercept: tuple[float, ...]
    link: Link
    threshold: float = 0.0
    """Of two classes, the second is predicted for scores above it."""
    cut: Threshold | None = None
    """The threshold and its probability; None if it is 0."""

    @property
    def scored(self) -> tuple[Label | None, ...]:
        """The class whose score each output is; None for a number."""
        classes = self.schema.classes
        return (None,) if classes is None else classes[1:] if len(self.intercept) == 1 else classes


@dataclass(frozen=True)
class FirstMatch(Program):
    """The label and the class shares of the first rule that holds; the last label and shares are
    the default; see `RuleList`. Of a `RegressionList`, numbers take the place of the labels, and
    there are no shares.
    """

    labels: tuple[Label, ...]
    shares: tuple[tuple[float, ...], ...]
    counts: tuple[tuple[float, ...], ...] | None = None
    """The number, or the weight, of the training rows of each class that each rule decides; None if
    unknown.
    """
    cut: Threshold | None = None
    """The threshold that gave the labels; None if there is none."""


@functools.singledispatch
def program_of(model: Any) -> Program:
    """The program of a model; for a path, of its last model.

    Raises:
        TypeError: for anything but a model.
        ValueError: for a model that is not valid.
    """
    not_a_model(model)


@program_of.register
def _(model: RuleEnsemble) -> Sum:
    model.validate()
    schema, linear, weights = model.schema, model.linear, np.asarray(model.weights, np.float64)
    used = np.flatnonzero(weights.any(axis=1))
    rules = model.conjunctions.take(used)
    tested = list(_tests(rules))
    able = np.array([not any(test.fails for test in tests) for tests in tested], bool)
    if not able.all():  # again, without the directions that only rules that never hold read
        used, rules = used[able], rules.take(able)
        tested = list(_tests(rules))
    kept = tuple(
        Rule(tests, rules.describe(r), int(used[r]), tuple(weights[used[r]].tolist()))
        for r, tests in enumerate(tested)
    )
    terms = []
    if linear is not None:
        coefficients = np.asarray(linear.coefficients, np.float64)
        for t in linear.used:
            feature, ends = int(linear.feature[t]), (float(linear.lower[t]), float(linear.upper[t]))
            name = f"linear term of {display.plain(schema.features[feature].as_number)}"
            terms.append(Term(feature, None, tuple(coefficients[t].tolist()), *ends, name))
    intercept = tuple(np.asarray(model.intercept, np.float64).tolist())
    parts = schema, _directions(rules), kept, tuple(terms), _refused(schema)
    return Sum(*parts, intercept, model.link, model.threshold, model.cut)


@program_of.register
def _(model: RuleList) -> FirstMatch:
    classes = model.schema.classes or ()
    labels = tuple(classes[code] for code in model.labels.tolist())
    shares = tuple(map(tuple, model.probabilities.tolist()))
    counts = None if model.counts is None else tuple(map(tuple, model.counts.tolist()))
    return _first_match(model, labels, shares, counts, model.cut)


@program_of.register
def _(model: RegressionList) -> FirstMatch:
    values = np.asarray(model.values, np.float64).tolist()
    return _first_match(model, tuple(values), ((),) * len(values))


def _first_match(model: OrderedRules, *says: Any) -> FirstMatch:
    """The program of a list, with what its rules say."""
    model.validate()
    schema, rules = model.schema, model.conjunctions
    listed = tuple(
        Rule(tests, rules.describe(r, " AND "), r) for r, tests in enumerate(_tests(rules))
    )
    return FirstMatch(schema, _directions(rules), listed, (), _refused(schema), *says)


@program_of.register
def _(model: ModelSequence) -> Sum:
    model.validate()
    slopes = model.slopes().reshape(len(model.columns), -1).tolist()
    terms = [
        Term(index, code, tuple(own), text=display.plain(name))
        for (index, code), own, name in zip(model.columns, slopes, model.names, strict=True)
        if any(own)
    ]
    indicated = {index for index, code in model.columns if code == MISSING}
    features = enumerate(model.schema.features)
    # A path reads a column with missing values by an indicator of them; without one, it refuses
    # them.
    complete = {f for f, one in features if one.special_values is None} - indicated
    refused, intercept = _refused(model.schema) | complete, np.ravel(model.intercepts[-1]).tolist()
    two = model.schema.classes is not None and not model.by_class
    link: Link = "logistic" if two else model.link
    return Sum(model.schema, (), (), tuple(terms), refused, tuple(intercept), link)


def _refused(schema: Schema) -> frozenset[int]:
    return frozenset(f for f in range(len(schema.features)) if schema.absent([f]) is None)


def _directions(rules: Conjunctions) -> tuple[tuple[Term, ...], ...]:
    numeric = [feature.is_numeric for feature in rules.schema.features]
    return tuple(
        tuple(
            Term(f, None if numeric[f] else code, (weight,), origin=origin)
            for f, weight, code, origin in zip(*direction.terms, strict=True)
        )
        for direction in rules.directions
    )


def _tests(rules: Conjunctions) -> Iterator[tuple[Test, ...]]:
    """The tests of every rule, without those that every row passes."""
    lowered, schema = rules.lowered(), rules.schema
    n_columns = len(schema.features)
    columns = {n_columns + d: one.features for d, one in enumerate(rules.directions)}
    gaps = {
        axis.feature: schema.absent(columns.get(axis.feature, (axis.feature,))) is not None
        for axis in lowered.axes
    }
    for rule in range(len(rules)):
        allowed = lowered.allowed(rule)
        tests = (_test(axis, cells, schema, gaps[axis.feature]) for axis, cells in allowed)
        # A test that every value passes says something only where a row may have no value and then
        # fails.
        yield tuple(
            test for test in tests if test.asked != () or (gaps[test.feature] and not test.missing)
        )


def _test(axis: Axis, cells: NDArray[np.bool_], schema: Schema, gaps: bool) -> Test:
    """`gaps`: whether a row can have no value there."""
    *values, missing = cells.tolist()
    missing = missing and gaps
    is_column = axis.feature < len(schema.features)
    if axis.cuts is not None and is_column and (levels := schema.features[axis.feature].levels):
        # The cells of the places 0, 1, ... tell which levels pass.
        passing = cells[axis.cells_of(np.arange(len(levels), dtype=np.float64))].tolist()
        if all(passing):
            return Test(axis.feature, (), missing)
        listed = tuple(level for level, holds in zip(levels, passing, strict=True) if holds)
        return Test(axis.feature, (("in", listed),) if listed else None, missing)
    if axis.cuts is not None:
        return Test(axis.feature, axis.comparisons(cells[:-1]) if any(values) else None, missing)
    # Cells are codes, up to the most categories of any column, then "unseen", then "missing".
    feature, others = schema.features[axis.feature], values[-1]
    named: tuple[Any, ...] = feature.categories or ()
    if feature.source is not None:  # the others are the numbers
        named, others = tuple(map(float, named[:-1])), values[len(named) - 1]
    # A set that unseen categories satisfy is written by those that it excludes.
    listed = tuple(name for name, holds in zip(named, values, strict=False) if holds != others)
    if others:
        return Test(axis.feature, (("not in", listed),) if listed else (), missing)
    return Test(axis.feature, (("in", listed),) if listed else None, missing)


def one_of(feature: Feature, code: int) -> tuple[str, tuple[Any, ...]]:
    """That a value has this category, as in `Test`."""
    categories = feature.categories or ()
    if feature.source is None:
        return "in", (categories[code],)
    special = tuple(map(float, categories[:-1]))
    return ("in", (special[code],)) if code < len(special) else ("not in", special)


def class_of(program: Program, label: Label | None) -> Label | None:
    """The class of `label`; for None, the second of two, or None if the model predicts numbers.

    Raises:
        ValueError: for an unknown class, or None among more than two.
    """
    classes = program.schema.classes
    if classes is None:
        checks.require(label is None, f"label is {label!r}, but the model predicts numbers")
        return None
    if label is None:
        checks.require(
            len(classes) == 2,
            f"label must be one of the classes {classes}, because an expression is for one class",
        )
        return classes[1]
    checks.require(label in classes, f"label must be one of the classes {classes}, got {label!r}")
    return classes[classes.index(label)]
