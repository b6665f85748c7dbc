"""Rules and linear terms under an L1 penalty: what RuleFit, whose rules are given, and generalised
linear rule models, which generate them, have in common.

Columns are the rules, then the terms; coefficients have a column per output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Schema
from jaxrules.learning.training import TrainingData, linear_terms_of
from jaxrules.models.rule_models import LinearTerms, Link, RuleEnsemble
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.tools.fits import Settings

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Terms:
    """The linear terms among the columns.

    Attributes:
        linear: with coefficients of 1; None without any.
        factors: on their penalties, std / 0.4, so that a term has the influence of a typical rule;
            (terms,).
    """

    linear: LinearTerms | None
    factors: Floats

    @classmethod
    def of(
        cls, data: TrainingData, constraints: Constraints, wanted: bool, winsorise: float = 0.0
    ) -> Terms:
        """The terms that the constraints allow; none unless `wanted`."""
        if not wanted:
            return cls(None, np.zeros(0))
        linear, factors = linear_terms_of(data, winsorise)
        used = np.flatnonzero(~np.isin(linear.feature, list(constraints.forbidden)))
        return cls(linear.take(used), factors[used])

    @property
    def features(self) -> list[int]:
        """The column of each term."""
        return [] if self.linear is None else self.linear.feature.tolist()

    def rising(self, schema: Schema) -> Conjunctions:
        """A condition for each term that may have a weight of a sign if the term may."""
        return Conjunctions.build(schema, [[Condition.above(f, 0.0)] for f in self.features])

    def start(self, known: Mapping[int, Floats], n_outputs: int) -> Floats:
        """Coefficients to start from, (terms, outputs), given some by column."""
        found = np.zeros((len(self.features), n_outputs))
        for k, feature in enumerate(self.features):
            found[k] = known.get(feature, 0.0)
        return found

    def model(self, coefficients: Floats) -> LinearTerms | None:
        """The terms with a coefficient."""
        if self.linear is None:
            return None
        kept = np.flatnonzero(coefficients.any(axis=1))
        return replace(self.linear.take(kept), coefficients=coefficients[kept])


def coefficients_of(linear: LinearTerms | None) -> dict[int, Floats]:
    """The coefficients of a model's terms, (outputs,), by column."""
    if linear is None:
        return {}
    coefficients = np.asarray(linear.coefficients, np.float64)
    return dict(zip(linear.feature.tolist(), coefficients, strict=True))


def permitted(coefficients: Floats, signs: Bools) -> Floats:
    """Coefficients with 0 for those of a forbidden sign.

    Args:
        signs: whether they may be negative, and positive, (..., 2).
    """
    may_fall, may_rise = signs[..., 0], signs[..., 1]
    return np.where(np.where(coefficients > 0, may_rise, may_fall), coefficients, 0.0)


def ensemble(
    rules: Callable[[NDArray[np.intp]], Conjunctions],
    n_first: int,
    weights: Floats,
    terms: Terms,
    coefficients: Floats,
    intercept: Floats,
    link: Link,
    settings: Settings,
    loss: str,
) -> RuleEnsemble:
    """The model of the rules and terms with a weight, and of the first rules, an expert's.

    Args:
        rules: those with some numbers.
        weights: of all rules, (rules, outputs).
    """
    used = np.flatnonzero(weights.any(axis=1) | (np.arange(len(weights)) < n_first))
    return RuleEnsemble(
        rules(used), weights[used], intercept, terms.model(coefficients), link, settings, loss
    )
