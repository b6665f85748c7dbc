"""The propositions that a search builds rules of an ensemble from, under constraints."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jaxrules.conditions import Conjunctions, PropositionPool
from jaxrules.constraints import Constraints
from jaxrules.solvers.rule_search import SearchSpace, Side, sides_of
from jaxrules.training import TrainingData


@dataclass(frozen=True, eq=False)
class Candidates:
    """The propositions that rules are built from.

    Attributes:
        pool: the searched propositions, then those of the expert's rules.
        n_searched: the number of searched propositions.
        space: all of them, on the rows.
        first: the propositions of each of the expert's rules.
        using: for each required column, which propositions use it.
        signs: for every output whether a rule with the proposition may have a negative, and a
            positive weight, (outputs, propositions, 2).
    """

    pool: PropositionPool
    n_searched: int
    space: SearchSpace
    first: tuple[tuple[int, ...], ...]
    using: tuple[NDArray[np.bool_], ...]
    signs: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        pool: PropositionPool,
        first: Conjunctions,
        constraints: Constraints,
        data: TrainingData,
    ) -> Candidates:
        n_outputs, ends = len(data.outputs), len(pool) + first.offsets
        conditions = PropositionPool.build(
            data.table.schema, [[condition] for rule in first for condition in rule]
        )
        every = PropositionPool.concatenate([pool, conditions])
        return cls(
            every, len(pool), SearchSpace.of_codes(*every.cell_codes(data.table)),
            tuple(tuple(range(start, end)) for start, end in pairwise(ends.tolist())),
            tuple(constraints.using(every)),
            np.stack([constraints.signs(every, output, n_outputs) for output in range(n_outputs)]),
        )  # fmt: skip

    def sides(self, output: int, space: SearchSpace | None = None) -> tuple[Side, ...]:
        """The searches for the rules of an output; on another space of the
        same propositions if given.
        """
        searched = np.arange(len(self.pool)) < self.n_searched
        return sides_of(
            self.space if space is None else space, self.signs[output] & searched[:, None]
        )
