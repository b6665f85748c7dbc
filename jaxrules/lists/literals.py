"""Literals of rule lists: the columns of a table as yes / no questions at few cut points."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Table
from jaxrules.ensembles.split_points import MOST_ROWS, sorted_columns, split_points
from jaxrules.learning.training import TrainingData, at_most
from jaxrules.rules.conditions import (
    Condition,
    PropositionPool,
    about_category,
    about_missing,
    readable_quantiles,
    whole_thresholds,
)
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.rule_search.space import check_cut_points
from jaxrules.tools import checks
from jaxrules.tools.runs import checkpoint

CUT_POINTS = 9
"""The default number of cut points of a numeric column: the deciles."""


def literals_of(
    table: Table,
    *,
    max_cut_points: int | None = CUT_POINTS,
    cut_points: Mapping[str, Sequence[float]] | None = None,
) -> PropositionPool:
    """The literals of the paper's experiments: ``x < t`` and ``x >= t``, ``c == v`` and ``c != v``.

    A number is cut at evenly spaced quantiles, see `readable_quantiles`, or at every value if it
    has no more distinct values than `max_cut_points`; a column of integers at integers. A column
    with missing values also gets "is missing" and its negation. A missing value satisfies no
    comparison but every ``!=``, as does a category first seen at prediction. Literals that hold for
    all rows or for none, and duplicates, are left out.

    Args:
        table: the columns.
        max_cut_points: the number of quantiles (9: the deciles); None for every value.
        cut_points: the cut points of some numeric columns by name, instead of quantiles.

    Raises:
        TypeError, ValueError: for invalid numbers, cut points of unknown or non-numeric columns, or
            more literals than memory allows.
    """
    # "x < t" at the smallest value holds for no row: `distinct` drops it, as it does duplicates.
    return at_cut_points(table, max_cut_points, cut_points).distinct(table)


def literals_for(
    data: TrainingData,
    constraints: Constraints,
    *,
    max_cut_points: int | Literal["auto"] | None,
    cut_points: Mapping[str, Sequence[float]] | None,
    seed: int,
) -> PropositionPool:
    """`literals_of` the rows of a fit, distinct under constraints; "auto": at the deciles, and
    where the data choose (`split_literals`).
    """
    most = CUT_POINTS if max_cut_points == "auto" else max_cut_points
    pool = at_cut_points(data.table, most, cut_points)
    if max_cut_points == "auto":
        chosen = split_literals(data, constraints, cut_points or (), seed)
        pool = PropositionPool.concatenate([pool, chosen])
    return constraints.distinct(pool, data.table, max(2, len(data.classes or ())))


def split_literals(
    data: TrainingData, constraints: Constraints, given: Container[str], seed: int
) -> PropositionPool:
    """Both literals at every split of a few boosted trees, see `jaxrules.ensembles.split_points`.
    Columns whose cut points are given have none.
    """
    some, features = at_most(data, MOST_ROWS, seed), data.table.schema.features
    without = {f for f, one in enumerate(features) if one.name in given} | {*constraints.forbidden}
    columns = sorted_columns(some.table, without)
    literals = []
    for split in split_points(some, columns):
        at = split.column, columns[split.column].between_values(split, low_belongs=False)
        literals += [Condition.below(*at), Condition.at_least(*at)]
    return PropositionPool.of(data.table.schema, literals)


def at_cut_points(
    table: Table,
    max_cut_points: int | None,
    cut_points: Mapping[str, Sequence[float]] | None = None,
) -> PropositionPool:
    """See `literals_of`; also literals that hold for all rows or for none, and duplicates."""
    most = checks.optional(checks.integer, "max_cut_points", max_cut_points, at_least=1)
    check_cut_points(table, most)
    if cut_points is not None and not isinstance(cut_points, Mapping):
        raise TypeError(
            f"cut_points must map names of columns to numbers, got {type(cut_points).__name__}"
        )
    given = {
        name: checks.sequence(f"cut_points[{name!r}]", cuts)
        for name, cuts in (cut_points or {}).items()
    }
    numeric = {feature.name for feature in table.schema.features if feature.is_numeric}
    for name in given:
        if name not in numeric:
            raise ValueError(
                f"cut_points names {name!r}, which is not a numeric column; the numeric columns "
                f"are {sorted(numeric)}"
            )
    literals: list[tuple[Sequence[Condition], NDArray[Any]]] = []
    for index, feature in enumerate(table.schema.features):
        checkpoint()
        missing = table.missing_mask(index)
        if feature.is_numeric:
            values = np.unique(table.columns[index][~missing])
            if feature.name in given:
                values = np.unique(given[feature.name])
            elif most is not None and len(values) > most:
                shares = np.arange(1, most + 1) / (most + 1)
                known = table.columns[index][~missing]
                values = np.unique(
                    whole_thresholds(readable_quantiles(known, shares), known, below=False)
                )
            literals.append(([Condition.below(index, 0.0), Condition.at_least(index, 0.0)], values))
        else:
            codes = np.array(table.compared_categories(index), np.intp)
            literals.append((about_category(table.schema, index), codes))
        if missing.any():
            literals.append((about_missing(table.schema, index), np.zeros(1)))
    return PropositionPool.of_values(table.schema, literals)
