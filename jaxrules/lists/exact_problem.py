"""The problem of an exact rule list, from checked arguments, data and candidates;
and the model of a solution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules import checks, losses
from jaxrules.bits import pack
from jaxrules.conditions import Conjunctions, PropositionPool
from jaxrules.constraints import Constraints, rules_for
from jaxrules.lists.candidates import Candidates, candidates_of
from jaxrules.lists.first_rules import FirstRules
from jaxrules.lists.literals import literals_of
from jaxrules.models import RuleList
from jaxrules.runs import Run
from jaxrules.solvers.layered import never
from jaxrules.table import Label
from jaxrules.training import TrainingData, training_data
from jaxrules.warm_start import given_start

Floats = NDArray[np.float64]

MOST_ROWS = 2**24
"""The most rows that every kernel counts exactly."""


@dataclass(frozen=True, eq=False)
class ListProblem:
    """The lists that a fit chooses from: the expert's rules, then at most `max_rules`
    candidates, then the default.

    Attributes:
        data: the rows that the expert's rules do not cover, without those of weight zero.
        literals: that the candidates are made of, None if candidates are given.
        candidates: the conditions, on the rows that the expert's rules leave.
        max_rules: the most rules to choose.
        max_literals: the most literals of a candidate.
        first: the expert's rules.
        constraints: that the candidates meet.
    """

    data: TrainingData
    literals: PropositionPool | None
    candidates: Candidates
    max_rules: int
    max_literals: int
    first: FirstRules
    constraints: Constraints

    @property
    def codes(self) -> NDArray[np.intp]:
        """The class of every row, (rows,)."""
        return _codes(self.data)

    @property
    def offset(self) -> float:
        """The contribution of the expert's rules to the objective."""
        return self.first.objective(self.candidates.penalty)

    def model(self, choice: tuple[int, ...], options: tuple[tuple[str, Any], ...]) -> RuleList:
        """The rule list of some candidates."""
        candidates = self.candidates
        rules, labels = candidates.rules(choice, self.data.schema), candidates.labelled(choice)[0]
        return self.first.before(rules, labels, candidates.decided(choice), options)

    def start(self) -> tuple[int, ...]:
        """A list that uses all required columns: greedily, the condition that uses
        most of the missing ones.

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

    def begin(self, start: Any) -> tuple[int, ...]:
        """The candidates of a list given as ``start``, without rules that hold on none of the rows,
        or for which there was no time to make a candidate.

        Raises:
            TypeError, ValueError: if it does not fit, or has a rule that is not a candidate.
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
            equal = np.flatnonzero(
                (self.candidates.covers == pack(of_group[None, :, k])).all(axis=1)
            ).tolist()
            if len(equal) and (of_group[group, k] == held[:, k]).all():
                may_say = labels[:, model.labels[k]]
                found.append(max(equal, key=lambda i: (may_say[i], int(uses[i]).bit_count())))
            elif self.candidates.complete:
                raise ValueError(
                    f"start has the rule {rules.describe(k)!r}, which is not a candidate; admit "
                    "its length "
                    "(max_literals), support (min_support) and cut points, or pass the rules as "
                    "conditions"
                )
        return tuple(found)

    def find(self, rules: Conjunctions) -> tuple[int, ...]:
        """The candidates that cover the same rows as some rules; rules without such
        a candidate are left out.
        """
        some_row = np.unique(self.candidates.group, return_index=True)[1]
        covers = pack(rules.satisfied(self.data.table[some_row]).T)
        place = {
            cover.tobytes(): i for i, cover in reversed(list(enumerate(self.candidates.covers)))
        }
        return tuple(place[cover.tobytes()] for cover in covers if cover.tobytes() in place)

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        arguments: Mapping[str, Any],
        run: Run,
        stopped: Callable[[], bool] = never,
    ) -> ListProblem:
        """The problem from the arguments of `exact_list.fit`; long conditions are
        left out when it is stopped.

        Raises:
            TypeError, ValueError: naming the argument.
        """
        max_rules = checks.integer("max_rules", arguments["max_rules"], at_least=1, at_most=10_000)
        penalty = checks.penalty("literal_penalty", arguments["literal_penalty"])
        most_literals = checks.integer("max_literals", arguments["max_literals"], at_least=1)
        min_support = checks.number("min_support", arguments["min_support"], at_least=0, below=1)
        checks.seed(arguments["seed"])
        data = training_data(
            X,
            y,
            losses.logistic,
            sample_weight=arguments["sample_weight"],
            missing=arguments["missing"],
        )
        table, classes = data.table, data.classes or ()
        if table.n_rows > MOST_ROWS:
            raise ValueError(
                f"X has {table.n_rows} rows; at most {MOST_ROWS} can be counted exactly; fit a "
                "sample"
            )
        class_weights = data.weights[:, None] * (_codes(data)[:, None] == np.arange(len(classes)))
        defaults = _defaults(arguments["default"], classes, class_weights.sum(axis=0))
        constraints = Constraints.of(
            table.schema, arguments["forbidden"], arguments["required"], arguments["monotone"]
        )
        first = FirstRules.of(
            data, class_weights, arguments["first"], arguments["first_labels"], max_rules
        )
        given, literals = arguments["conditions"], None
        parts = rules_for(table.schema, "conditions", given)
        if given is None:
            literals = literals_of(
                table, quantiles=arguments["quantiles"], cut_points=arguments["cut_points"]
            )
            parts = literals = literals.take(
                np.flatnonzero(constraints.allows(literals, len(classes)).any(axis=1))
            )
        if given is not None and not len(parts):
            raise ValueError("conditions is empty; pass at least one")
        run.preparing("rules")
        candidates = candidates_of(
            parts,
            table[first.rest],
            class_weights[first.rest],
            constraints=constraints,
            penalty=penalty,
            defaults=defaults,
            max_literals=most_literals if given is None else None,
            least=min_support * float(data.weights.sum()),
            stopped=stopped,
        )
        left = max_rules - len(first.rules)
        return cls(data[first.rest], literals, candidates, left, most_literals, first, constraints)


def _codes(data: TrainingData) -> NDArray[np.intp]:
    return data.target.argmax(axis=1) if data.target.ndim > 1 else (data.target > 0).astype(np.intp)


def _defaults(default: Any, classes: tuple[Label, ...], totals: Floats) -> NDArray[np.bool_]:
    """Which labels the default may be."""
    if isinstance(default, str) and default not in classes and default in ("majority", "free"):
        return np.full(len(classes), default == "free") | (
            np.arange(len(classes)) == totals.argmax()
        )
    if np.ndim(default) or default not in classes:
        raise ValueError(
            f'default must be "majority", "free" or one of the classes {classes}, got {default!r}'
        )
    return np.arange(len(classes)) == classes.index(default)
