"""What rules contribute, how much they overlap, how groups fare, and where to set the threshold."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from jaxrules.models import RuleEnsemble, RuleList, not_a_model
from jaxrules.table import conform


class Importance(NamedTuple):
    """A rule or linear term in words, how important it is, and what it adds to the score where it holds (or per unit).

    `weight` is None where there is none: in rule lists, and for more than one output.
    """

    text: str
    value: float
    weight: float | None


@functools.singledispatch
def importance(model: Any, X: Any) -> tuple[Importance, ...]:
    """How important rules and linear terms are, the most important first, and none that makes no difference.

    In an ensemble it is the standard deviation over the rows of `X` of what it adds to the score, for a
    rule |weight| sqrt(s (1 - s)) with its share of rows s (Friedman and Popescu 2008, Eq. 28 and 29); the mean over
    several outputs. In a rule list it is the share of rows that a rule decides, "otherwise" for the default.

    Raises:
        TypeError: for something else than a rule ensemble or list.
        ValueError: if `X` does not fit the model's columns.
    """
    not_a_model(model)


@importance.register
def _(model: RuleEnsemble, X: Any) -> tuple[Importance, ...]:
    table, weights = conform(X, model.schema), np.asarray(model.weights, np.float64)
    held = np.zeros(len(weights))
    for _, satisfied in model.conjunctions.batches(table):
        held += satisfied.sum(axis=0)
    share = held / table.n_rows
    parts = [
        (model.conjunctions.describe(r), weights[r], spread) for r, spread in enumerate(np.sqrt(share * (1 - share)))
    ]
    if model.linear is not None:
        coefficients = np.asarray(model.linear.coefficients, np.float64)
        spreads = model.linear.values(table).std(axis=0)
        parts += [(model.linear.describe(t, model.schema), coefficients[t], spread) for t, spread in enumerate(spreads)]
    found = [
        Importance(text, float(np.abs(weight).mean() * spread), float(weight[0]) if len(weight) == 1 else None)
        for text, weight, spread in parts
    ]
    return _ranked(found)


@importance.register
def _(model: RuleList, X: Any) -> tuple[Importance, ...]:
    table = conform(X, model.schema)
    shares = np.bincount(model.position(table), minlength=len(model.labels)) / table.n_rows
    texts = [*(model.conjunctions.describe(r, " AND ") for r in range(len(model.conjunctions))), "otherwise"]
    return _ranked(Importance(text, float(share), None) for text, share in zip(texts, shares, strict=True))


def _ranked(found: Iterable[Importance]) -> tuple[Importance, ...]:
    return tuple(sorted((one for one in found if one.value), key=lambda one: -one.value))
