"""From candidate rules to one search problem per output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.extraction import RulePool, RuleSource, rule_pool
from jaxrules.ensembles.lire.descents import GivenStart, Output
from jaxrules.ensembles.lire.moves import Encoding
from jaxrules.ensembles.lire.options import LireOptions
from jaxrules.ensembles.lire.problem import SMALL, SupportProblem, make_problem
from jaxrules.ensembles.lire.start import L1Start
from jaxrules.learning.options import ONE_VS_REST
from jaxrules.learning.training import TrainingData
from jaxrules.learning.warm_start import given_start
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import Activations, check_memory
from jaxrules.tools.checks import require
from jaxrules.tools.runs import Run

_JOINT_BYTES = 400.0
"""Per row and class of classes fitted together."""


@dataclass(frozen=True, eq=False)
class LireCandidates:
    """The pool of rules on the training rows, which all outputs and penalties share.

    Attributes:
        pool: the rules, an expert's first and those of a start last.
        n_first: the number of the expert's rules.
        outputs: one per output of the model, or one for classes fitted together.
    """

    pool: RulePool
    n_first: int
    outputs: Sequence[Output]

    @classmethod
    def of(
        cls,
        data: TrainingData,
        rules: RuleSource | None,
        constraints: Constraints,
        options: LireOptions,
        run: Run,
    ) -> LireCandidates:
        """The rules of the source, of the expert and of the start, and the problems on them.

        Args:
            rules: the option of this name.

        Raises:
            TypeError, ValueError: as `jaxrules.lire.fit` for the options about rules.
        """
        start = given_start(options.start, RuleEnsemble, data, constraints)
        experts = constraints.first(data.table, options.first, len(data.outputs))
        n_first, most = len(experts), options.max_rules
        require(
            most is None or n_first <= most,
            f"first has {n_first} rules, but max_rules={most}; raise max_rules",
        )
        if options.joint:
            size = data.table.n_rows, data.target.shape[1]
            check_memory(*size, _JOINT_BYTES, what="classes", remedy=ONE_VS_REST)
        pool = rule_pool(rules, data, options.seed, run, n_first > 0, constraints)
        if n_first:
            experts = experts.with_schema(data.schema)
            first = RulePool(experts, Activations.of(experts, data.table))
            pool = first.with_rules(pool.rules, data.table)
        n_rules = len(pool.rules)
        if start is not None:
            pool = pool.with_rules(start.conjunctions.with_schema(data.schema), data.table)
        required = _required(constraints, pool.rules, n_first, most)

        def outputs(encoding: Encoding) -> list[Output]:
            problems = _problems(
                pool, data, constraints, options, encoding, n_first, required, run.stopped
            )
            return [Output(problem, L1Start(problem, options.seed)) for problem in problems]

        found = outputs(options.encoding)
        if not (options.traced or data.loss.quadratic):
            for output in found:
                if (sample := output.problem.sampled(options.seed)) is not None:
                    output.sample = Output(sample, L1Start(sample, options.seed))
        # Both encodings have the same models if the intercept is free. (With a Gram matrix, the
        # search is exact anyway.)
        one_problem = not (options.penalise_intercept or data.loss.quadratic)
        if options.encoding == "binary" and one_problem and found[0].problem.size <= SMALL:
            for output, signed in zip(found, outputs("signed"), strict=True):
                output.signed = signed
        if start is not None:
            weights_of = np.asarray(start.weights).T
            if options.joint:  # the rules matter: all weights are refitted
                weights_of = weights_of.any(axis=0)[None].astype(np.float64)
            for output, weights in zip(found, weights_of, strict=True):
                used = np.flatnonzero(weights)
                bits = pool.activations.bits[n_rules + used]
                output.given = GivenStart(*output.problem.columns_of(bits, weights[used]))
        return cls(pool, n_first, found)

    def weighted(self, data: TrainingData, seed: int) -> LireCandidates:
        """The same rules on the same rows with other weights, some of which may be 0: a fold."""

        def output(of: Output, target: NDArray[np.float64]) -> Output:
            problem = of.problem.with_weights(target, data.weights)
            signed = None if of.signed is None else output(of.signed, target)
            return Output(problem, L1Start(problem, seed), signed=signed)

        outputs = [output(*pair) for pair in zip(self.outputs, data.outputs, strict=True)]
        return LireCandidates(self.pool, self.n_first, outputs)

    def solve_ahead(self, gamma: float, run: Run) -> None:
        """Compute the L1 solutions that a search with this penalty starts from."""
        for output in self.outputs:
            output.l1_start.starts(gamma / output.problem.unit, run)


def _problems(
    pool: RulePool,
    data: TrainingData,
    constraints: Constraints,
    options: LireOptions,
    encoding: Encoding,
    n_first: int,
    required: Sequence[NDArray[np.bool_]],
    stopped: Callable[[], bool],
) -> list[SupportProblem]:
    """One problem per output, on the same columns, or one for classes fitted together."""
    n_outputs, targets = len(data.outputs), data.outputs
    if options.joint:
        targets = data.target[None]
    signs = constraints.allows(pool.rules, 2) if constraints.monotone else None
    problem = make_problem(
        pool.activations, targets[0], data.weights, data.loss, encoding,
        options.penalise_intercept, signs, n_first, required, stopped,
    )  # fmt: skip
    require(
        bool(problem.required.any(axis=1).all()),
        "required names a column whose rules all hold for every row, or for none; add other rules "
        "on it",
    )
    problems = [problem, *(problem.with_target(one, stopped) for one in targets[1:])]
    if not constraints.monotone:
        return problems
    signs_of = [constraints.signs(pool.rules, k, n_outputs) for k in range(len(problems))]
    return [one.within(signs) for one, signs in zip(problems, signs_of, strict=True)]


def _required(
    constraints: Constraints, rules: Conjunctions, n_first: int, most: int | None
) -> list[NDArray[np.bool_]]:
    """For each required column that no expert's rule uses, the rules that use it."""
    constraints.require_spoken(rules, "rule; add one to rules")
    missing = [using for using in constraints.using(rules) if not using[:n_first].any()]
    require(
        most is None or len(missing) <= most - n_first,
        f"required names {len(missing)} columns that first does not use, but max_rules={most}; "
        "raise max_rules",
    )
    return missing
