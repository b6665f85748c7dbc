"""How much each column matters, over many rows or for one row, with bootstrap standard errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Table, TableLike, conform
from jaxrules.models.rule_models import (
    OrderedRules,
    RegressionList,
    RuleEnsemble,
    not_a_model,
    predict,
    predict_proba,
)
from jaxrules.paths.model import ModelSequence, design_matrix
from jaxrules.rules.conditions import Conjunctions
from jaxrules.tools import checks
from jaxrules.users.comparison.bootstrap import Stability
from jaxrules.users.inspection import decided_shares, importances_of_parts

Floats = NDArray[np.float64]


class ColumnImportance(NamedTuple):
    """A column, its importance, and the standard error, None without bootstrap fits."""

    name: str
    value: float
    error: float | None = None


def feature_importance(model: Any, X: TableLike) -> tuple[ColumnImportance, ...]:
    """The importance of every column, in the order of the columns; they sum to 1.

    The importance of a rule (see `jaxrules.importance`) is shared equally by its columns, and that
    of a linear term belongs to its column (Friedman and Popescu 2008, Eq. 35, over all rows). In a
    coordinate path it is the standard deviation of the column's contribution to the score, the mean
    over the classes if each has a score.

    Args:
        model: any model; or the result of `jaxrules.stability`, whose bootstrap fits give the
            standard errors.
        X: rows.

    Raises:
        TypeError: for anything but a model or a `Stability`.
        ValueError: if `X` does not fit the model's columns, or has no rows.
    """
    return _with_errors(model, lambda one: _global(one, _rows(one, X)))


def local_importance(model: Any, X: TableLike, row: Any) -> tuple[ColumnImportance, ...]:
    """What each column adds to the score of one row, relative to the mean over the rows of `X`.

    The contribution of a rule is its weight times (1 if it holds, else 0, minus its share of the
    rows of X), shared equally by its columns; that of a linear term is its coefficient times (value
    - mean). They sum to the score of the row minus the mean score. For a rule list the score is the
    probability of the second class, and the difference is shared by the columns of the rules that
    were read.

    Args:
        model: a model with one score; or the result of `jaxrules.stability`, for standard errors.
        X: rows to compare with.
        row: a table of one row.

    Raises:
        TypeError: for anything but a model or a `Stability`.
        ValueError: for data that do not fit the model, more than one row, or several scores.
    """
    return _with_errors(model, lambda one: _local(one, _rows(one, X), _rows(one, row, "row")))


def _with_errors(model: Any, measure: Any) -> tuple[ColumnImportance, ...]:
    found = model.model if isinstance(model, Stability) else model
    values = measure(found)
    names = found.schema.names
    if not isinstance(model, Stability):
        return tuple(map(ColumnImportance, names, values.tolist()))
    checks.require(
        len(model.models) > 1, "model has fewer than two bootstrap fits; raise replicates"
    )
    errors = np.std([measure(one) for one in model.models], axis=0, ddof=1)
    return tuple(map(ColumnImportance, names, values.tolist(), errors.tolist()))


def _rows(model: Any, X: TableLike, name: str = "X") -> Table:
    if not isinstance(model, (RuleEnsemble, OrderedRules, ModelSequence)):
        not_a_model(model)
    checks.concrete(name, X)
    try:
        table = conform(X, model.schema)
    except (TypeError, ValueError) as error:
        if name == "X":
            raise
        raise type(error)(f"{name} must be a row like those of X: {error}") from None
    checks.require(table.n_rows > 0, f"{name} has no rows")
    return table


def _shares(rules: Conjunctions) -> Floats:
    """The share of every rule that belongs to each column, shape (rules, columns)."""
    uses = np.zeros((len(rules), len(rules.schema.features)))
    for r, rule in enumerate(rules):
        for condition in rule:
            uses[r, list(condition.columns)] = 1.0
    return uses / np.maximum(uses.sum(axis=1, keepdims=True), 1.0)


def _global(model: Any, table: Table) -> Floats:
    """The importance of every column, shape (columns,)."""
    if isinstance(model, OrderedRules):
        # The default, last, has no column.
        return _scaled(decided_shares(model, table)[:-1] @ _shares(model.conjunctions))
    if isinstance(model, ModelSequence):
        total = np.zeros(len(model.schema.features))
        # The mean absolute slope over the scores, as of ensembles
        slopes = np.abs(model.slopes()).reshape(len(model.columns), -1).mean(axis=1)
        spread = design_matrix(table, model.columns).std(axis=0) * slopes
        np.add.at(total, [index for index, _ in model.columns], spread)
        return _scaled(total)
    of_rules, of_terms = importances_of_parts(model, table)
    total = of_rules @ _shares(model.conjunctions)
    if model.linear is not None:
        np.add.at(total, model.linear.feature, of_terms)
    return _scaled(total)


def _scaled(total: Floats) -> Floats:
    """The importances scaled to sum to 1, unless all are 0."""
    return total / (total.sum() or 1.0)


def _local(model: Any, table: Table, row: Table) -> Floats:
    """The contribution of every column to the score of the row, shape (columns,)."""
    checks.require(row.n_rows == 1, f"row must be a table of one row, got {row.n_rows}")
    if isinstance(model, OrderedRules):
        if isinstance(model, RegressionList):
            said, usual = predict(model, row)[0], predict(model, table).mean()
        else:
            checks.require(len(model.schema.classes or ()) == 2, "model must have two classes")
            said, usual = predict_proba(model, row)[0, 1], predict_proba(model, table)[:, 1].mean()
        read = min(int(model.position(row)[0]) + 1, len(model.conjunctions))
        total = _shares(model.conjunctions)[:read].sum(axis=0)
        return np.asarray((said - usual) * _scaled(total), np.float64)
    if isinstance(model, ModelSequence):
        checks.require(not model.by_class, "model must have a single score, not one per class")
        total, columns = np.zeros(len(model.schema.features)), model.columns
        moved = design_matrix(row, columns)[0] - design_matrix(table, columns).mean(axis=0)
        np.add.at(total, [index for index, _ in columns], moved * model.slopes())
        return total
    checks.require(model.n_outputs == 1, "model must have a single score, not one per class")
    rules = model.conjunctions
    holds = rules.satisfied(row)[0] - rules.satisfied(table).mean(axis=0)
    total = (np.asarray(model.weights, np.float64)[:, 0] * holds) @ _shares(rules)
    if model.linear is not None:
        moved = model.linear.values(row)[0] - model.linear.values(table).mean(axis=0)
        slopes = np.asarray(model.linear.coefficients, np.float64)[:, 0]
        np.add.at(total, model.linear.feature, slopes * moved)
    return np.asarray(total, np.float64)
