"""The problem at one penalty, of one output or of all classes together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.candidates import Candidates
from jaxrules.ensembles.glrm.options import Options, Prices, Shared
from jaxrules.ensembles.glrm.outputs import Outputs, outputs_of
from jaxrules.learning.training import TrainingData, linear_terms_of
from jaxrules.models.rule_models import LinearTerms, RuleEnsemble
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.linear.design import Design
from jaxrules.solvers.rule_search import SearchSpace, Side
from jaxrules.tools.fits import Settings

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Rule = tuple[int, ...]
"""The propositions of a rule, ascending."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where a search starts: rules, and weights of rules and terms.

    Attributes:
        rules: as propositions of the candidates.
        weights: of the rules, shape (rules, outputs).
        intercept: shape (outputs,).
        terms: coefficients of linear terms, (outputs,), by column.
    """

    rules: tuple[Rule, ...]
    weights: Floats
    intercept: Floats
    terms: Mapping[int, Floats]


@dataclass(frozen=True, eq=False)
class Problem:
    """The master problem at one penalty.

    Without linear terms, rows that no proposition distinguishes are merged.

    Attributes:
        options: of the fits.
        settings: which the model keeps.
        prices: the penalties.
        data: the original rows, with the target of what is fitted as one problem.
        candidates: the propositions.
        space: the propositions on these rows.
        sides: the searches on it.
        rows: bool, shape (rows, propositions).
        group: the row of every original row.
        outputs: the loss on the rows.
        linear: the linear terms with coefficient 1, or None.
        linear_values: their columns, shape (rows, terms).
        linear_price: their penalties, shape (terms,).
        linear_signs: whether their coefficients may be negative, and positive, shape (terms, 2).
    """

    options: Shared
    settings: Settings
    prices: Prices
    data: TrainingData
    candidates: Candidates
    space: SearchSpace
    sides: tuple[Side, ...]
    rows: NDArray[np.bool_]
    group: NDArray[np.integer]
    outputs: Outputs
    linear: LinearTerms | None
    linear_values: Floats
    linear_price: Floats
    linear_signs: Bools

    def signs(self, rules: list[Rule], n_columns: int) -> Bools | None:
        """The admissible signs of rules, padded to `n_columns`, and of linear
        terms; None if all are free.
        """
        table = self.candidates.signs[self.data.output]
        if table.all() and self.linear_signs.all():
            return None
        signs = np.ones((n_columns, 2), bool)
        signs[: len(rules)] = np.array([table[list(rule)].all(axis=0) for rule in rules]).reshape(
            -1, 2
        )
        return np.concatenate([signs, self.linear_signs])

    def satisfied(self, rule: Rule) -> NDArray[np.bool_]:
        """The rows that a rule holds for."""
        return np.asarray(self.rows[:, list(rule)].all(axis=1))

    def design(self, columns: NDArray[np.bool_], values: Floats) -> Design:
        """Columns of rules and linear terms for the solver."""
        return Design.of((columns, values) if values.shape[1] else columns, inverse=self.group)

    def model(
        self, rules: Sequence[Rule], weights: Floats, coefficients: Floats, intercept: Floats
    ) -> RuleEnsemble:
        """The rules and terms with nonzero weight, and the expert's.

        Args:
            rules: the candidates.
            weights, coefficients: of the candidates and the linear terms, (..., outputs).
            intercept: (outputs,).
        """
        used = np.flatnonzero(
            weights.any(axis=1) | (np.arange(len(weights)) < len(self.candidates.first))
        )
        linear = None
        if self.linear is not None:
            kept = np.flatnonzero(coefficients.any(axis=1))
            linear = replace(self.linear.take(kept), coefficients=coefficients[kept])
        return RuleEnsemble(
            self.candidates.pool.conjunctions([rules[r] for r in used.tolist()], self.data.schema),
            weights[used],
            intercept,
            linear,
            self.outputs.link,
            self.settings,
            self.data.loss.name,
        )

    @classmethod
    def of(
        cls,
        data: TrainingData,
        options: Shared,
        candidates: Candidates,
        constraints: Constraints,
        rule_penalty: float,
    ) -> Problem:
        """The problem of a target of one output, or of all classes."""
        own = options
        if not isinstance(options, Options):
            own = options.to(Options, rule_penalty=rule_penalty)
        settings = own.settings(loss=data.loss)
        prices = options.prices(rule_penalty)
        space = candidates.space
        rows, group, linear = space.activations.dense, space.activations.pattern, None
        if options.linear_terms or not data.loss.mergeable:  # every row by itself
            rows, group = rows[group], np.arange(len(group))
        else:
            space = space.groups
        values, linear_prices = np.zeros((len(rows), 0)), np.zeros(0)
        if options.linear_terms:
            linear, factors = linear_terms_of(data)
            used = np.flatnonzero(~np.isin(linear.feature, list(constraints.forbidden)))
            linear, linear_prices = linear.take(used), prices.rule * factors[used]
            values = linear.values(data.table)
        rising = [
            [Condition.above(int(f), 0.0)] for f in ([] if linear is None else linear.feature)
        ]
        signs = constraints.signs(
            Conjunctions.build(data.table.schema, rising), data.output, len(candidates.signs)
        )
        outputs, sides = outputs_of(data, group, len(rows)), candidates.sides(data.output, space)
        return cls(
            options, settings, prices, data, candidates, space, sides, rows, group, outputs,
            linear, values, linear_prices, signs,
        )  # fmt: skip
