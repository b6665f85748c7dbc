"""The propositions from which a search builds the rules of an ensemble, under constraints."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jaxrules.learning.training import TrainingData
from jaxrules.rules.conditions import Condition, Conjunctions, PropositionPool
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.rule_search import SearchSpace, Side, sides_of
from jaxrules.tools.bits import pack, unpack


@dataclass(frozen=True, eq=False)
class Candidates:
    """The propositions from which rules are built.

    Attributes:
        pool: the searched propositions, then those of the expert's rules, then additional ones.
        n_searched: the number of searched propositions.
        space: all but the additional ones, on the rows.
        first: the propositions of each of the expert's rules.
        using: for each required column, which propositions use it.
        signs: for every output whether a rule with the proposition may have a negative, and a
            positive weight, (outputs, propositions, 2).
        further: the rows of each additional proposition, (rows,) each; see `extended`.
    """

    pool: PropositionPool
    n_searched: int
    space: SearchSpace
    first: tuple[tuple[int, ...], ...]
    using: tuple[NDArray[np.bool_], ...]
    signs: NDArray[np.bool_]
    further: tuple[NDArray[np.bool_], ...] = ()

    @classmethod
    def of(
        cls,
        pool: PropositionPool,
        first: Conjunctions,
        constraints: Constraints,
        data: TrainingData,
    ) -> Candidates:
        # The conditions of the expert's rules follow the searched propositions; `n_searched` keeps
        # them out of the search.
        n_outputs, ends = len(data.outputs), len(pool) + first.offsets
        alone = [[condition] for rule in first for condition in rule]
        conditions = PropositionPool.build(data.table.schema, alone)
        every = PropositionPool.concatenate([pool, conditions])
        return cls(
            every, len(pool), SearchSpace.of_codes(*every.cell_codes(data.table)),
            tuple(tuple(range(start, end)) for start, end in pairwise(ends.tolist())),
            tuple(constraints.using(every)),
            np.stack([constraints.signs(every, output, n_outputs) for output in range(n_outputs)]),
        )  # fmt: skip

    @functools.cached_property
    def n_columns(self) -> int:
        """The number of columns that the search chooses from."""
        return len(np.unique(self.pool.feature[: self.n_searched]))

    def on(self, data: TrainingData) -> Candidates:
        """The same propositions on other rows."""
        return replace(self, space=SearchSpace.of_codes(*self.pool.cell_codes(data.table)))

    def sides(self, output: int, space: SearchSpace | None = None) -> tuple[Side, ...]:
        """The sides of the search for the rules of an output, on another space of the same
        propositions if given.
        """
        # Signs of False for the others: propositions that allow no sign are on no side.
        searched = np.arange(len(self.pool)) < self.n_searched
        signs = self.signs[output] & searched[:, None]
        return sides_of(self.space if space is None else space, signs)

    def unused(
        self, rules: Sequence[Sequence[int]], sides: Sequence[Side]
    ) -> list[NDArray[np.bool_]]:
        """For each required column on these sides that no rule uses: the propositions on it."""
        searched = np.zeros(len(self.pool), bool)
        for side in sides:
            searched[side.propositions] = True
        # A column that the search cannot use is not asked for.
        used = [place for rule in rules for place in rule]
        return [on for on in self.using if (on & searched).any() and not on[used].any()]

    def extended(
        self, condition: Condition, rows: NDArray[np.bool_], constraints: Constraints
    ) -> Candidates:
        """A copy with an additional proposition, given the rows that satisfy it; searches do not
        see it.
        """
        one = PropositionPool.build(self.pool.schema, [[condition]])
        n = len(self.signs)
        signs = np.stack([constraints.signs(one, output, n) for output in range(n)])
        using = zip(self.using, constraints.using(one), strict=True)
        return replace(
            self, pool=PropositionPool.concatenate([self.pool, one]),
            using=tuple(np.concatenate(both) for both in using),
            signs=np.concatenate([self.signs, signs], axis=1), further=(*self.further, rows),
        )  # fmt: skip

    def lighter(self, place: int, output: int, weights: NDArray[np.float64]) -> int:
        """A searched proposition, or one that holds for exactly the other rows if these weigh less.

        With an intercept both give the same model; a rule that holds for fewer rows is a reason for
        fewer predictions.
        """
        rows = self.selected([place])
        if 2 * weights[rows].sum() <= weights.sum():
            return place
        # Compared by groups of rows, as bits. The complement must be a searched proposition itself,
        # whose weight may have the opposite signs.
        groups, words = self.space.activations.n_patterns, self.space.activations.bits
        others = pack(~unpack(words[place : place + 1], groups))[0]
        same = (words[: self.n_searched] == others).all(axis=1)
        opposite = self.signs[output, : self.n_searched, ::-1]
        same &= (opposite >= self.signs[output, place]).all(axis=1)
        return int(np.argmax(same)) if same.any() else place

    def selected(self, rule: Sequence[int]) -> NDArray[np.bool_]:
        """The rows on which all propositions of a rule hold, (rows,)."""
        n = len(self.space)
        rows = self.space.selected([one for one in rule if one < n])
        for one in rule:
            if one >= n:
                rows = rows & self.further[one - n]
        return rows
