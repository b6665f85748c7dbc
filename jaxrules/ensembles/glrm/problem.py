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
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.solvers.linear.design import Design
from jaxrules.solvers.rule_search import SearchSpace, Side
from jaxrules.tools.bits import Words, pack, unpack
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
        bits: where the propositions hold, shape (propositions, words).
        n_rows: the number of rows.
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
    bits: Words
    n_rows: int
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

    def satisfied(self, rule: Rule) -> Words:
        """The rows that a rule holds for."""
        return np.asarray(np.bitwise_and.reduce(self.bits[list(rule)], axis=0))

    def design(self, rules: BitColumns, values: Floats) -> Design:
        """Columns of rules and linear terms for the solver."""
        if not values.shape[1]:
            return Design.of(rules, inverse=self.group)
        return Design.of((unpack(rules.words, self.n_rows).T, values), inverse=self.group)

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
        bits, group = space.activations.bits, space.activations.pattern
        # Rows with the same propositions have the same score, and for a mergeable loss their mean
        # target is enough. A linear term tells them apart.
        if options.linear_terms or not data.loss.mergeable:  # every row by itself
            bits, group = pack(space.activations.dense[group].T), np.arange(len(group))
        else:
            space = space.groups
        n_rows = len(space.activations.pattern)
        # Terms have the penalty lambda_0 on the scale of a rule: times their standard deviation /
        # 0.4.
        terms, values = Terms.of(data, constraints, options.linear_terms), np.zeros((n_rows, 0))
        if terms.linear is not None:
            values = terms.linear.values(data.table)
        rising = terms.rising(data.table.schema)
        signs = constraints.signs(rising, data.output, len(candidates.signs))
        outputs, sides = outputs_of(data, group, n_rows), candidates.sides(data.output, space)
        return cls(
            options, settings, prices, data, candidates, space, sides, bits, n_rows, group, outputs,
            terms, values, prices.rule * terms.factors, signs,
        )  # fmt: skip
