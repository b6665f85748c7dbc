"""Literals of rule lists: the columns of a table as yes / no questions at few cut points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxrules import checks
from jaxrules.conditions import (
    Category,
    Missing,
    Proposition,
    PropositionPool,
    Threshold,
    readable_quantiles,
)
from jaxrules.runs import checkpoint
from jaxrules.table import MISSING, Table


def literals_of(
    table: Table,
    *,
    quantiles: int | Sequence[float] = 9,
    cut_points: Mapping[str, Sequence[float]] | None = None,
) -> PropositionPool:
    """The literals of the paper's experiments: ``x < t`` and ``x >= t``, ``c == v`` and ``c != v``.

    A number is cut at quantiles, see `readable_quantiles`, or at every value if it has no more
    distinct values than quantiles. A column with missing values also gets "is missing" and its
    negation. A missing value satisfies no comparison but every ``!=``, as does a category first
    seen at prediction. Literals that hold on all rows or on none, and copies, are left out.

    Args:
        table: the columns.
        quantiles: how many evenly spaced quantiles (9: the deciles), or the shares of
            rows below them, in (0, 1).
        cut_points: the cut points of some numeric columns by name, instead of quantiles.

    Raises:
        TypeError, ValueError: for bad shares, or cut points of unknown or non-numeric columns.
    """
    if isinstance(quantiles, (int, np.integer)) and not isinstance(quantiles, bool):
        n = checks.integer("quantiles", quantiles, at_least=1, at_most=100_000)
        shares = np.arange(1, n + 1) / (n + 1)
    else:
        shares = checks.sequence("quantiles", quantiles, above=0, below=1)
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
                f"cut_points names {name!r}, which is not a numeric column; those are "
                f"{sorted(numeric)}"
            )
    literals: list[Proposition] = []
    for index, feature in enumerate(table.schema.features):
        checkpoint()
        missing = table.missing_mask(index)
        if feature.is_numeric:
            values = np.unique(table.columns[index][~missing])
            if feature.name in given:
                values = np.unique(given[feature.name])
            elif len(values) > len(shares):
                values = readable_quantiles(table.columns[index][~missing], shares)
            for cut in values.tolist():
                literals += [Threshold(index, "<", cut), Threshold(index, ">=", cut)]
        else:
            for code in np.unique(table.columns[index]).tolist():
                if code != MISSING and code >= 0:
                    literals += [Category(index, "==", code), Category(index, "!=", code)]
        if missing.any():
            literals += [Missing(index), Missing(index, present=True)]
    return PropositionPool.of(table.schema, literals).distinct(table)
