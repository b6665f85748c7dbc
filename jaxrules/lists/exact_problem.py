"""The problem of an exact rule list, from options and data; and the model of a solution."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Label
from jaxrules.learning.options import option, options
from jaxrules.learning.training import TrainingData
from jaxrules.learning.warm_start import given_start
from jaxrules.lists.candidates import ListCandidates, candidates_of
from jaxrules.lists.first_rules import FirstRules
from jaxrules.lists.literals import CUT_POINTS, at_cut_points, split_literals
from jaxrules.lists.noise import SMALL_PENALTY, Left
from jaxrules.lists.prefixes import in_some_seconds
from jaxrules.lists.reading import PricedListOptions, default_label
from jaxrules.models.rule_models import RuleList
from jaxrules.rules.conditions import Conjunctions, PropositionPool
from jaxrules.rules.constraints import Constraints, rules_for
from jaxrules.rules.rows import Activations
from jaxrules.solvers.layered import never
from jaxrules.tools import checks
from jaxrules.tools.bits import pack, unpack
from jaxrules.tools.fits import Fit, Settings
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]

_MOST_ENTRIES, _OVERHEAD = 1 << 33, 1 << 13
"""The most conditions of the default pool x distinct rows, and as many rows as a condition costs
beside its bits: about 4 GiB of memory."""
_AT_ONCE = 1 << 18
"""Literals times rows that become numbers at once."""


@options
class PoolOptions(PricedListOptions):
    """What all functions of `jaxrules.exact_list` have in common.

    Attributes:
        max_cut_points: the most cut points of a numeric column, at evenly spaced quantiles; None
            for every value. "auto": 9, the deciles, and the splits of a few boosted trees,
            thresholds that the data choose. If literals and pairs x (distinct rows + 8192) then
            exceed 2^33 (some hundred columns), the literals with the largest decrease of Gini's
            impurity have a place; `fit.details["left_out"]` counts the others. See
            `jaxrules.lists.literals.literals_of`.
        max_length: the most literals of a rule. The pool of conditions grows exponentially with it.
        min_support: the least share of the row weight, in [0, 1), that a condition of the pool
            covers.
        rules: the conditions to choose from, instead of that pool; their ``propositions`` count as
            literals.
        default: the label of rows that no rule covers; "majority" takes the heaviest class of all,
            "free" the best.
        max_evaluations: the most conditions to try after prefixes; then the best list so far is
            returned. "auto" for some seconds, None for no limit. Unlike a time limit, this does
            not depend on the machine.
    """

    learner = "exact_list"
    renamed: ClassVar[Mapping[str, str]] = {
        **PricedListOptions.renamed,
        "max_literals": "max_length",
        "conditions": "rules",
    }

    max_cut_points: int | Literal["auto"] | None = option(checks.size, default="auto")
    max_length: int = option(checks.integer, default=2, at_least=1)
    min_support: float = option(checks.number, default=0.01, at_least=0, below=1)
    rules: Conjunctions | None = None
    default: Label | Literal["majority", "free"] = "majority"
    max_evaluations: int | Literal["auto"] | None = option(checks.size, default="auto")

    def evaluations(self, words: int) -> float:
        """The most conditions to try whose bits take so many words."""
        if self.max_evaluations == "auto":
            return in_some_seconds(words)
        return math.inf if self.max_evaluations is None else self.max_evaluations


@options
class ProblemOptions(PoolOptions):
    """The options of a single problem.

    Attributes:
        max_rules: the most rules, without the default.
        literal_penalty: lambda >= 0, the weight of rows that a literal must gain. None: 1 or, if
            there is noise, 4 or more, as for `jaxrules.ssrl.fit`; short searches choose it.
    """

    max_rules: int = option(checks.integer, default=4, at_least=1, at_most=10_000)
    literal_penalty: float | None = option(partial(checks.optional, checks.penalty), default=None)


@dataclass(frozen=True, eq=False)
class ListProblem:
    """The lists that a fit chooses from: the expert's rules, then at most `max_rules` candidates,
    then the default.

    Attributes:
        data: the rows that the expert's rules do not cover, without those of weight zero.
        literals: that the candidates are made of, None if candidates are given.
        max_cut_points: the most quantiles of a numeric column.
        left_out: the number of literals that the pool has no room for.
        candidates: the conditions, on the rows that the expert's rules leave.
        max_rules: the most rules to choose.
        max_length: the most literals of a candidate.
        first: the expert's rules.
        constraints: that the candidates meet.
    """

    data: TrainingData
    literals: PropositionPool | None
    max_cut_points: int | None
    left_out: int
    candidates: ListCandidates
    max_rules: int
    max_length: int
    first: FirstRules
    constraints: Constraints

    @property
    def words(self) -> int:
        """The words that the bits of a candidate take."""
        return self.candidates.covers.shape[1]

    @property
    def n_possible(self) -> int:
        """The number of lists of all conjunctions of the literals, with or without enough rows."""
        literals = len(self.candidates.parts)
        pool = sum(math.comb(literals, length) for length in range(1, self.max_length + 1))
        return sum(pool**rules for rules in range(self.max_rules + 1))

    @property
    def offset(self) -> float:
        """The contribution of the expert's rules to the objective: all other rows read them,
        too.
        """
        candidates = self.candidates
        left = float(candidates.counts.sum())
        return self.first.objective(candidates.penalty, candidates.local_penalty, left)

    def model(
        self, choice: tuple[int, ...], options: Settings, shrinkage: float | None
    ) -> RuleList:
        """The rule list of some candidates; `shrinkage` as in `FirstRules.before`."""
        candidates = self.candidates
        rules, labels = candidates.rules(choice, self.data.schema), candidates.labelled(choice)[0]
        return self.first.before(rules, labels, candidates.decided(choice), options, shrinkage)

    def priced(self, penalty: float) -> ListProblem:
        """The problem with another penalty on a literal."""
        return replace(self, candidates=replace(self.candidates, penalty=penalty))

    def left(self, choice: tuple[int, ...]) -> Left:
        """What a list leaves."""
        decided = np.concatenate([self.first.decided, self.candidates.decided(choice)])
        labels = np.append(self.first.labels, self.candidates.labelled(choice)[0])
        literals = float(self.candidates.lengths[list(choice)].sum())
        return Left.of_list(decided, labels, literals, len(self.first.rules))

    def start(self) -> tuple[int, ...]:
        """A list that uses all required columns: greedily, the condition that uses the most of the
        unused ones.

        Raises:
            ValueError: if no such list has at most `max_rules` rules.
        """
        uses, wanted = self.candidates.uses, self.candidates.required
        start: list[int] = []
        while wanted:
            best = int(np.bitwise_count(uses & wanted).argmax())
            if not uses[best] & wanted or len(start) == self.max_rules:
                raise ValueError(
                    "no list of max_rules conditions uses every column in required; raise max_rules"
                )
            start.append(best)
            wanted &= ~uses[best]
        return tuple(start)

    def begin(self, start: Fit[RuleList] | RuleList | None) -> tuple[int, ...]:
        """The candidates of a list given as ``start``, without rules that hold on no row, or whose
        candidates there was no time to make.

        Raises:
            TypeError, ValueError: if it does not fit the data or the constraints, or has a rule
                that is not a candidate.
        """
        model = given_start(start, RuleList, self.data, self.constraints)
        if model is None:
            return ()
        model = self.first.behind(model, self.max_rules + len(self.first.rules))
        rules, group = model.conjunctions.with_schema(self.data.table.schema), self.candidates.group
        held = rules.satisfied(self.data.table)
        of_group = held[np.unique(group, return_index=True)[1]]
        found, labels, uses = [], self.candidates.labels, self.candidates.uses
        for k in np.flatnonzero(held.any(axis=0)).tolist():
            # Candidates with the rule's rows on one row of every group; they are the rule's if it
            # does not tell rows of a group apart. Of several, one that may have the rule's label is
            # taken.
            equal = np.flatnonzero(
                (self.candidates.covers == pack(of_group[None, :, k])).all(axis=1)
            ).tolist()
            if len(equal) and (of_group[group, k] == held[:, k]).all():
                may_say = labels[:, model.labels[k]]
                found.append(max(equal, key=lambda i: (may_say[i], int(uses[i]).bit_count())))
            elif self.candidates.complete:
                raise ValueError(
                    f"start has the rule {rules.describe(k)!r}, which is not a candidate; admit "
                    "its length (max_length), support (min_support) and cut points, or pass rules"
                )
        return tuple(found)

    def find(self, rules: Conjunctions) -> tuple[int, ...]:
        """The candidates that cover the same rows as some rules; rules without such
        a candidate are left out.
        """
        return self.candidates.find(rules, self.data.table)

    @classmethod
    def of(
        cls,
        data: TrainingData,
        options: ProblemOptions,
        run: Run,
        stopped: Callable[[], bool] = never,
        sample: TrainingData | None = None,
    ) -> ListProblem:
        """The problem that the options pose; if stopped, it lacks the longest conditions.

        Args:
            sample: rows whose cut points are used, instead of those of all rows.

        Raises:
            TypeError, ValueError: naming the argument.
        """
        table, n_classes = data.table, len(data.classes or ())
        class_weights = data.weights[:, None] * (data.codes[:, None] == np.arange(n_classes))
        defaults = _defaults(options.default, data, class_weights.sum(axis=0))
        constraints = Constraints.of(
            table.schema, options.forbidden, options.required, options.monotone
        )
        first = FirstRules.of(data, class_weights, options, options.max_rules, constraints)
        constraints = constraints.behind(first.rules)
        literals, most, left_out = None, None, 0
        parts = rules_for(table.schema, "rules", options.rules)
        if options.rules is None:
            some = data if sample is None else sample
            most = CUT_POINTS if options.max_cut_points == "auto" else options.max_cut_points
            literals, left_out = _literals(some, table.n_rows, most, constraints, options)
            parts = literals
        elif not len(parts):
            raise ValueError("rules is empty; pass at least one")
        run.preparing("rules")
        candidates = candidates_of(
            parts,
            table[first.rest],
            class_weights[first.rest],
            constraints=constraints,
            penalty=SMALL_PENALTY if options.literal_penalty is None else options.literal_penalty,
            defaults=defaults,
            max_length=options.max_length if options.rules is None else None,
            least=options.min_support * float(data.weights.sum()),
            stopped=stopped,
        )
        return cls(
            data=data[first.rest],
            literals=literals,
            max_cut_points=most,
            left_out=left_out,
            candidates=replace(candidates, local_penalty=options.local_penalty),
            max_rules=options.max_rules - len(first.rules),
            max_length=options.max_length,
            first=first,
            constraints=constraints,
        )


def _literals(
    data: TrainingData,
    n_rows: int,
    max_cut_points: int | None,
    constraints: Constraints,
    options: PoolOptions,
) -> tuple[PropositionPool, int]:
    """The literals that some rule may have, and how many are left out.

    Args:
        data: all rows, or some of them.
        n_rows: the number of all rows.
    """
    table, n_classes, given = data.table, len(data.classes or ()), options.cut_points
    literals = at_cut_points(table, max_cut_points, given)
    literals = constraints.distinct(constraints.usable(literals, n_classes), table, n_classes)
    if options.max_cut_points != "auto":
        return literals, 0
    splits = split_literals(data, constraints, given or (), options.seed)
    literals = PropositionPool.concatenate([literals, constraints.usable(splits, n_classes)])
    literals = constraints.distinct(literals, table, n_classes)
    room = _most_literals(n_rows, options.max_length)
    if len(literals) <= room:
        return literals, 0
    rows = Activations.of(literals, table)
    if table.n_rows == n_rows:  # equal rows count once, if we have all
        room = _most_literals(rows.n_patterns, options.max_length)
    weights = rows.class_weights(data.codes, n_classes, data.weights)
    return literals.take(_best(rows, weights, room)), max(0, len(literals) - room)


def _most_literals(rows: int, max_length: int) -> int:
    """So many literals, and their pairs, fit in `_MOST_ENTRIES`."""
    conditions = _MOST_ENTRIES // (rows + _OVERHEAD)
    return conditions if max_length == 1 else math.isqrt(2 * conditions)


def _best(literals: Activations, weights: Floats, room: int) -> NDArray[np.intp]:
    """The literals with the largest decrease of Gini's impurity, in their order.

    Args:
        weights: of the classes in each pattern, (patterns, classes).
    """
    totals, inside = weights.sum(axis=0), np.zeros((literals.n_rules, weights.shape[1]))
    words = -(-_AT_ONCE // (64 * max(1, literals.n_rules)))
    for start in range(0, literals.bits.shape[1], words):
        rows = weights[64 * start : 64 * (start + words)]
        holds = unpack(literals.bits[:, start : start + words], len(rows))
        inside += holds.astype(np.float64) @ rows
    worth = sum(
        (side**2).sum(axis=1) / np.maximum(side.sum(axis=1), np.finfo(np.float64).tiny)
        for side in (inside, totals - inside)
    )
    # A literal and its negation are equally good but for rounding, and stay together.
    ranked = np.argsort(-np.round(worth / totals.sum(), 12), kind="stable")
    return np.sort(ranked[:room])


def _defaults(default: Any, data: TrainingData, totals: Floats) -> NDArray[np.bool_]:
    """Which labels the default may be."""
    label = default_label(default, data, ("majority", "free"))
    if label == "free":
        return np.ones(len(totals), bool)
    return np.arange(len(totals)) == (totals.argmax() if label == "majority" else label)
