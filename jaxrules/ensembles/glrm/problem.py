"""The problem at one penalty, of one output or of all classes together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.candidates import Candidates
from jaxrules.ensembles.glrm.options import GlrmOptions, GlrmPrices, GlrmShared
from jaxrules.ensembles.glrm.outputs import Outputs, outputs_of
from jaxrules.ensembles.l1_ensemble import Terms, ensemble
from jaxrules.learning.training import TrainingData
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Conjunctions
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
class GlrmProblem:
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
        terms: the linear terms.
        linear_values: their columns, shape (rows, terms).
        linear_price: their penalties, shape (terms,).
        linear_signs: whether their coefficients may be negative, and positive, shape (terms, 2).
    """

    options: GlrmShared
    settings: Settings
    prices: GlrmPrices
    data: TrainingData
    candidates: Candidates
    space: SearchSpace
    sides: tuple[Side, ...]
    rows: NDArray[np.bool_]
    group: NDArray[np.integer]
    outputs: Outputs
    terms: Terms
    linear_values: Floats
    linear_price: Floats
    linear_signs: Bools

    def signs(self, rules: list[Rule]) -> Bools | None:
        """The admissible signs of rules and of linear terms; None if all are free."""
        # A rule may have a weight of a sign only if each of its propositions may.
        table = self.candidates.signs[self.data.output]
        if table.all() and self.linear_signs.all():
            return None
        of_rules = [table[list(rule)].all(axis=0) for rule in rules]
        return np.concatenate([np.array(of_rules, bool).reshape(-1, 2), self.linear_signs])

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

        def chosen(used: NDArray[np.intp]) -> Conjunctions:
            found = [rules[r] for r in used.tolist()]
            return self.candidates.pool.conjunctions(found, self.data.schema)

        return ensemble(
            chosen, len(self.candidates.first), weights, self.terms, coefficients, intercept,
            self.outputs.link, self.settings, self.data.loss.name,
        )  # fmt: skip

    @classmethod
    def of(
        cls,
        data: TrainingData,
        options: GlrmShared,
        candidates: Candidates,
        constraints: Constraints,
        rule_penalty: float,
    ) -> GlrmProblem:
        """The problem of a target of one output, or of all classes."""
        own = options
        if not isinstance(options, GlrmOptions):
            own = options.to(GlrmOptions, rule_penalty=rule_penalty)
        settings = own.settings(loss=data.loss)
        prices = options.prices(rule_penalty)
        space = candidates.space
        rows, group = space.activations.dense, space.activations.pattern
        # Rows with the same propositions have the same score, and for a mergeable loss their mean
        # target is enough. A linear term tells them apart.
        if options.linear_terms or not data.loss.mergeable:  # every row by itself
            rows, group = rows[group], np.arange(len(group))
        else:
            space = space.groups
        # Terms have the penalty lambda_0 on the scale of a rule: times their standard deviation /
        # 0.4.
        terms, values = Terms.of(data, constraints, options.linear_terms), np.zeros((len(rows), 0))
        if terms.linear is not None:
            values = terms.linear.values(data.table)
        signs = constraints.signs(
            terms.rising(data.table.schema), data.output, len(candidates.signs)
        )
        outputs, sides = outputs_of(data, group, len(rows)), candidates.sides(data.output, space)
        return cls(
            options, settings, prices, data, candidates, space, sides, rows, group, outputs,
            terms, values, prices.rule * terms.factors, signs,
        )  # fmt: skip
