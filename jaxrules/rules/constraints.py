"""Constraints: forbidden, required and monotone features; an expert's rules.

``forbidden``, ``required``, ``monotone`` and ``first`` mean the same in all learners that take
them.

**Lists.** A list is monotone in a numeric feature if raising the feature, all else equal, never
moves the label to an earlier class. This holds if conditions with only a lower end ("x >= t")
occur only in rules of the last class, and conditions with only an upper end ("x < t") only in rules
of the first class: as the feature rises, the row starts to satisfy only rules of the last class and
stops satisfying only rules of the first. The probabilities of a list are the shares among the rows
that each rule decides, so they may move the other way: from one rule of the last class to an
earlier one with more exceptions.

**Ensembles.** A score b + sum_k w_k r_k(x) never falls when x_j rises, all else equal, if for every
rule with conditions on x_j, these have only lower ends and w_k >= 0, or only upper ends and w_k <=
0. Proof: with the other columns fixed, the rule's other conditions are constant, and each condition
on x_j is a step from 0 to 1 (a lower end) or from 1 to 0 (an upper end). A product of steps of one
kind is 0 everywhere or a step of that kind. Hence w_k r_k never falls, with w_k >= 0 in the first
case and w_k <= 0 in the second, and neither does a sum of such terms. Floating-point addition in a
fixed order is monotone in its terms, so computed scores are monotone as well. A condition on a
linear combination of columns counts as one on x_j, reversed if the weight of x_j is negative; "x_j
is missing" does not constrain present values. Links are increasing, so predicted means,
probabilities of the second of two classes, and labels are monotone too. With direction -1 the two
signs are exchanged.

With K > 2 classes, one score each, the score of the last class never falls and that of the first
never rises in x_j; the others do not depend on it. The label, the class of the greatest score, then
never moves to an earlier class: only the last can overtake another, and only the first can be
overtaken. Nor does P(y >= k) fall for any k: probabilities are positive increasing functions of the
scores divided by their sum, in which a rise of the last part, or a fall of the first, raises every
upper share. The order is that of numbers, or the one that y declares
(`jaxrules.data.table.label_order`); `jaxrules.learning.training.require_ordered` refuses other
labels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Label, Schema, Table
from jaxrules.rules.conditions import Conjunctions, PropositionPool
from jaxrules.tools import checks
from jaxrules.tools.checks import require

Bools = NDArray[np.bool_]
Given = TypeVar("Given")

KEPT_BY = {
    "required": "boosting, lire, ssrl, exact_list and regression_list",
    "monotone": "boosting, glrm, rulefit, lire, lltboost, ltrnet, drnet, ssrl, exact_list and "
    "regression_list",
    "first": "boosting, glrm, rulefit, lire, lltboost, ssrl, exact_list and regression_list",
}
"""The learners that enforce a constraint; the errors of the other learners name them."""


@dataclass(frozen=True)
class Constraints:
    """Restrictions on the rules of a model.

    Attributes:
        forbidden: columns that no rule may use.
        required: columns that some rule must use, at most 63.
        monotone: the direction, 1 or -1, of some numeric columns.
    """

    forbidden: frozenset[int] = frozenset()
    required: tuple[int, ...] = ()
    monotone: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls, schema: Schema, forbidden: Iterable[object] = (), required: Iterable[object] = (),
        monotone: Mapping[Any, int] | None = None,
    ) -> Constraints:  # fmt: skip
        """The constraints from arguments of these names, with columns by name or position.

        Raises:
            TypeError, ValueError: naming the argument.
        """
        if not (monotone is None or isinstance(monotone, Mapping)):
            raise TypeError(
                'monotone must map columns to 1 or -1, as in {"age": 1}, got '
                f"{type(monotone).__name__}"
            )
        directions = {}
        for key, direction in (monotone or {}).items():
            column = checks.column("monotone", key, schema.names)
            name = schema.names[column]
            require(
                schema.features[column].is_numeric,
                f"monotone names the categorical column {name!r}",
            )
            if isinstance(direction, bool) or np.ndim(direction) or direction not in (1, -1):
                raise ValueError(
                    f"monotone must be 1 (rising) or -1 (falling) for {name!r}, got {direction!r}"
                )
            directions[column] = int(direction)
        banned = frozenset(_columns(schema, "forbidden", forbidden))
        # A companion reveals its column's special values, so it is forbidden with it.
        banned |= {companion for f, companion in schema.companions.items() if f in banned}
        wanted = tuple(dict.fromkeys(_columns(schema, "required", required)))
        both = [schema.names[column] for column in wanted if column in banned]
        require(not both, f"required and forbidden both name {both}")
        require(
            len(banned) < len(schema.names),
            "forbidden names every column; leave at least one that rules may use",
        )
        # `uses` has a bit for each in a 64-bit word.
        require(len(wanted) < 64, f"required names {len(wanted)} columns; at most 63 are allowed")
        return cls(banned, wanted, tuple(directions.items()))

    def blanked(self, table: Table) -> Table:
        """The table with the forbidden columns constant, so that nothing is learned from them."""
        if not self.forbidden:
            return table
        return replace(
            table,
            columns=tuple(
                np.zeros_like(c) if f in self.forbidden else c for f, c in enumerate(table.columns)
            ),
        )

    def warn_of_constants(self, table: Table) -> None:
        """Warn if no column that rules may use varies."""
        columns = [column for f, column in enumerate(table.columns) if f not in self.forbidden]
        if table.n_rows > 1 and all((column == column[0]).all() for column in columns):
            which = " that rules may use" if self.forbidden else ""
            checks.warn(f"no column of X{which} varies; the model is a constant")

    def allows(self, rules: Conjunctions, n_classes: int) -> Bools:
        """The labels that each rule may have, (rules, classes); none if it uses a forbidden
        column.
        """
        rule_of = np.repeat(np.arange(len(rules)), rules.lengths)
        allowed = np.ones((len(rules), n_classes), bool)
        for column in self.forbidden:
            allowed[rule_of[_weights_of(rules, column) != 0]] = False
        low, high = np.isfinite(rules.lower), np.isfinite(rules.upper)  # "is missing" has neither
        for column, direction in self.monotone:
            along = direction * _weights_of(rules, column)
            for condition in np.flatnonzero((along != 0) & (low | high)):
                # Both ends: as x_j rises, the row enters the interval and leaves it, so no label is
                # monotone. With one end it is a step: only the last class may enter by a step up (a
                # lower end along the direction), only the first by a step down.
                labels = np.zeros(n_classes, bool)
                if low[condition] != high[condition]:
                    labels[-1 if low[condition] == (along[condition] > 0) else 0] = True
                allowed[rule_of[condition]] &= labels
        return allowed

    def check_labels(
        self,
        name: str,
        rules: Conjunctions,
        labels: NDArray[Any],
        classes: tuple[Label, ...],
        remedy: str,
    ) -> None:
        """Refuse the rules of a list, the argument of this name, with labels that they may not
        have.

        Raises:
            ValueError: naming the first such rule.
        """
        allowed = self.allows(rules, len(classes))
        for k in np.flatnonzero(~allowed[np.arange(len(rules)), labels]).tolist():
            may = " or ".join(repr(classes[c]) for c in np.flatnonzero(allowed[k]))
            why = "which has no admissible label under forbidden and monotone; drop it"
            if may:
                why = f"whose label must be {may} under monotone, not {classes[labels[k]]!r}; "
                why += remedy
            raise ValueError(f"{name} has the rule {rules.describe(k)!r}, {why}")

    def signs(self, rules: Conjunctions, output: int = 0, n_outputs: int = 1) -> Bools:
        """Whether the weight of each rule may be negative, and positive, in a score of an ensemble:
        (rules, 2).

        Args:
            rules: the rules.
            output: the index of the score.
            n_outputs: K for K > 2 classes, one score each; 1 for numbers and two classes.
        """
        if n_outputs == 1:
            return self.allows(rules, 2)
        labels = self.allows(rules, n_outputs)
        # Rules on monotone columns are allowed the first and the last class only. For an output
        # between them both columns are its own class, so they may have no weight of either sign.
        against = {0: -1, n_outputs - 1: 0}.get(
            output, output
        )  # the class favoured by a negative weight
        return labels[:, [against, output]]

    def of_output(self, output: int, n_outputs: int) -> Constraints:
        """The constraints on the score of one output: with more than two classes, the first falls
        when the last rises, and the others do not use monotone columns.
        """
        if n_outputs == 1 or output == n_outputs - 1:
            return self
        if output == 0:
            return replace(
                self, monotone=tuple((column, -direction) for column, direction in self.monotone)
            )
        return replace(
            self, forbidden=self.forbidden | {column for column, _ in self.monotone}, monotone=()
        )

    def usable(self, pool: PropositionPool, n_classes: int) -> PropositionPool:
        """The propositions of a pool that some rule may use."""
        return pool.take(np.flatnonzero(self.allows(pool, n_classes).any(axis=1)))

    def pool(self, pool: PropositionPool, table: Table, n_outputs: int) -> PropositionPool:
        """The propositions of a pool that some rule may use, `distinct`.

        Raises:
            ValueError: if forbidden and monotone exclude every proposition.
        """
        n_classes = max(n_outputs, 2)
        some = self.usable(pool, n_classes)
        require(len(some) > 0 or not len(pool), "forbidden and monotone exclude every proposition")
        return self.distinct(some, table, n_classes)

    def distinct(self, pool: PropositionPool, table: Table, n_classes: int) -> PropositionPool:
        """Of the propositions that hold for the same rows, may have the same labels and use the
        same required columns, only the first; none that hold for all rows or for none.
        """
        tags = [self.allows(pool, n_classes), *self.using(pool)]
        return pool.distinct(table, np.column_stack(tags))

    def first(self, table: Table, given: object, n_outputs: int) -> Conjunctions:
        """An expert's rules, the argument `first` of an ensemble, which must meet the other
        constraints. Warns of a rule that holds for all rows or for none, perhaps given in other
        units.

        Raises:
            TypeError, ValueError: naming the argument.
        """
        rules = rules_for(table.schema, "first", given)
        barred = np.flatnonzero(~self.allows(rules, max(n_outputs, 2)).any(axis=1)).tolist()
        if barred:
            text = rules.describe(barred[0])
            raise ValueError(
                f"first has the rule {text!r}, which has no admissible weight under forbidden and "
                "monotone"
            )
        for rule, rows in enumerate(rules.satisfied(table).T if table.n_rows > 1 else ()):
            if rules.lengths[rule] and (rows.all() or not rows.any()):
                held = "every row" if rows.all() else "no row"
                checks.warn(
                    f"first has the rule {rules.describe(rule)!r}, which holds for {held} of X; "
                    "check its units"
                )
        return rules

    def check_room(self, first: Conjunctions, max_rules: int) -> None:
        """Refuse more expert rules and required columns than `max_rules` allows.

        Raises:
            ValueError: naming the argument.
        """
        n, fewest = len(first), self.fewest(first)
        require(
            n < max_rules,
            f"first has {n} rules, but max_rules={max_rules} leaves none to learn; raise max_rules",
        )
        require(
            fewest <= max_rules,
            f"required names {fewest - n} columns that first does not use, but "
            f"max_rules={max_rules}; raise max_rules",
        )

    def fewest(self, first: Conjunctions) -> int:
        """The least `max_rules` with room for the expert's rules, a learned one and the required
        columns.
        """
        return len(first) + max(1, len(self.behind(first).required))

    def behind(self, first: Conjunctions) -> Constraints:
        """Those of rules that follow an expert's: what these use is no longer required."""
        unused = [not using.any() for using in self.using(first)]
        return replace(self, required=tuple(itertools.compress(self.required, unused)))

    def require_spoken(self, rules: Conjunctions, what: str) -> None:
        """Refuse a required column that no rule or proposition uses.

        Raises:
            ValueError: naming it.
        """
        for column, spoken in zip(self.required, self.using(rules), strict=True):
            name = rules.schema.names[column]
            require(spoken.any(), f"required names {name!r}, which has no {what}")

    def using(self, rules: Conjunctions) -> list[Bools]:
        """For each required column, which rules use it, (rules,)."""
        rule_of = np.repeat(np.arange(len(rules)), rules.lengths)
        every = np.arange(len(rules))
        return [
            np.isin(every, rule_of[_weights_of(rules, column) != 0]) for column in self.required
        ]

    def uses(self, rules: Conjunctions) -> NDArray[np.uint64]:
        """Which of the required columns each rule uses, as bits, (rules,)."""
        bits = np.zeros(len(rules), np.uint64)
        for place, using in enumerate(self.using(rules)):
            bits |= using.astype(np.uint64) << np.uint64(place)
        return bits


def rules_for(schema: Schema, name: str, given: object) -> Conjunctions:
    """The rules given as an argument, on the columns of the data; none for None.

    Raises:
        TypeError, ValueError: naming the argument.
    """
    if given is None:
        return Conjunctions.build(schema, [])
    if remedy := checks.its_conjunctions(given):
        raise TypeError(f"{name} must be Conjunctions, got {type(given).__name__}{remedy}")
    rules = checks.instance(name, given, Conjunctions, "jaxrules.Conjunctions.build")
    if rules.schema.features != schema.features:
        raise ValueError(
            f"{name} was built for columns other than those of X; build it from the same table"
        )
    return rules.with_schema(schema)


def _weights_of(rules: Conjunctions, column: int) -> NDArray[np.float64]:
    """The weight of a column in each condition, (conditions,): 1 for a condition on the column
    itself, its weight in a direction (that of its first category), else 0.
    """
    axes = np.zeros(len(rules.schema.features) + len(rules.directions))
    axes[column] = 1.0
    for d, direction in enumerate(rules.directions, start=len(rules.schema.features)):
        if column in direction.features:
            axes[d] = direction.weights[direction.features.index(column)]
    return axes[rules.feature]


def _columns(schema: Schema, name: str, keys: Iterable[object]) -> list[int]:
    """Columns by name or position. Iterators are refused, because only the first of several fits
    could read them.
    """
    nested = hasattr(keys, "ndim") and keys.ndim != 1
    if isinstance(keys, (str, bytes, Iterator)) or not isinstance(keys, Iterable) or nested:
        raise TypeError(
            f"{name} must be a list of column names or positions, got {type(keys).__name__}"
        )
    return [checks.column(name, key, schema.names) for key in keys]


def asks(monotone: object) -> bool:
    """Whether the argument names a column; `Constraints.of` checks its type."""
    return isinstance(monotone, Mapping) and len(monotone) > 0
