"""Linear terms among the candidates of boosting, for `jaxrules.boosting`.

A stage of boosting adds the rule with the largest objective per unit of complexity. With
``linear_terms=True`` it compares that rule with the winsorised numeric columns of RuleFit,
b min(upper, max(lower, x)) (Friedman and Popescu, "Predictive Learning via Rule Ensembles", Annals
of Applied Statistics 2008, Sec. 5). A term has complexity 1, for its coefficient; a rule of one
condition has 2. All terms are tried, so if the rule is proved to be the best, so is the better of
rule and term.

Let z be the column, centred and divided by std / .4 as in RuleFit, so that the ridge treats its
coefficient like the weight of a typical rule. The gain is that of a rule with z in the place of its
0/1 column q (`jaxrules.solvers.rule_search.CorrectiveDecrease`):

    (g'z)^2 / (2 n (l2_penalty + z'Hz - c'M^-1 c)),    c = Q'Hz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Schema, Table
from jaxrules.ensembles.boosting.directions import row_terms
from jaxrules.learning.training import TrainingData, linear_terms_of
from jaxrules.models.rule_models import LinearTerms
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import check_memory
from jaxrules.solvers.rule_search import Objective

Floats = NDArray[np.float64]

UNITS = 1
"""The complexity of a linear term."""
_SECONDS_PER_ENTRY = 5e-7
"""Time to winsorise a column, per row."""


class LinearColumnTerm(NamedTuple):
    """A candidate linear term: its place, and its objective per unit of complexity."""

    place: int
    worth: float


@dataclass(frozen=True, eq=False)
class LinearColumns:
    """The numeric columns as candidates for linear terms of one output, or of classes fitted
    together.

    Attributes:
        terms: with coefficients of 1.
        values: of the terms, centred and scaled, (rows, terms).
        centre, factors: of the terms, (terms,).
        signs: whether a coefficient may be negative, and positive, (terms, 2).
    """

    terms: LinearTerms
    values: Floats
    centre: Floats
    factors: Floats
    signs: NDArray[np.bool_]

    @classmethod
    def of(
        cls, data: TrainingData, winsorise: float, constraints: Constraints, n_outputs: int
    ) -> LinearColumns:
        """The columns that vary and that the constraints allow.

        Raises:
            ValueError: if they do not fit in memory.
        """
        bound = constraints.of_output(data.output, n_outputs)
        terms, factors = linear_terms_of(replace(data, table=bound.blanked(data.table)), winsorise)
        check_memory(
            data.table.n_rows, len(factors), 16.0, what="columns", remedy="set linear_terms=False"
        )
        values = terms.values(data.table)
        centre = np.average(values, axis=0, weights=data.weights)
        directions = dict(bound.monotone)
        side = np.array([directions.get(f, 0) for f in terms.feature.tolist()], int)
        return cls(
            terms, (values - centre) / factors, centre, factors, np.stack([side <= 0, side >= 0], 1)
        )  # fmt: skip

    @property
    def sides(self) -> NDArray[np.int_]:
        """The required signs of the coefficients, 0 for any, (terms,)."""
        either = self.signs.astype(int)
        return either[:, 1] - either[:, 0]

    def name(self, term: LinearColumnTerm, schema: Schema) -> str:
        """The name of its column."""
        return schema.names[int(self.terms.feature[term.place])]

    def best(self, objective: Objective, used: Sequence[int]) -> LinearColumnTerm | None:
        """The unused term with the largest objective; None if no objective is positive.

        Args:
            objective: of a rule of any sign.
            used: the terms already in the ensemble.
        """
        if not len(self.factors):
            return None
        terms = row_terms(objective, len(self.values))
        sums = objective.sums_of_columns(terms, self.values)
        # A term has no conditions: length 0, so no growth, and complexity 1.
        gains = objective.value(sums) / objective.divisor(0, UNITS)
        # A positive slope needs a negative coefficient. Classes together have no required signs.
        gains = np.where(sums[0] > 0, self.signs[:, 0], self.signs[:, 1]) * gains
        gains[list(used)] = 0.0
        best = int(gains.argmax())
        return LinearColumnTerm(best, float(gains[best])) if gains[best] > 0 else None

    def weighed(
        self, used: Sequence[int], coefficients: Floats
    ) -> tuple[LinearTerms | None, Floats]:
        """The terms of the model, on the original columns, for these coefficients of `values`,
        (terms, outputs), and the change of the intercepts, (outputs,); terms without coefficients
        are left out.
        """
        nonzero = coefficients.any(axis=1)
        kept = np.array(used, int)[nonzero]
        # coefficient x (x - centre) / factor = b x - b centre; the last is a shift of the
        # intercept.
        b = coefficients[nonzero] / self.factors[kept, None]
        terms = replace(self.terms.take(kept), coefficients=b) if len(kept) else None
        return terms, -(self.centre[kept] @ b)


def seconds_to_make(table: Table) -> float:
    """Roughly how long it takes to make `LinearColumns`."""
    return _SECONDS_PER_ENTRY * table.n_rows * len(table.columns)
