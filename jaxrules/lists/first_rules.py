"""An expert's rules, which come first in a rule list; `jaxrules.rules.constraints` has the other
constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Label, Table, effective_row
from jaxrules.learning.training import TrainingData
from jaxrules.lists.candidates import rules_read
from jaxrules.lists.reading import ListOptions
from jaxrules.models.rule_models import OrderedRules, RuleList, first_satisfied
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import Constraints, rules_for
from jaxrules.tools.checks import require
from jaxrules.tools.fits import Settings

Bools = NDArray[np.bool_]


ListT = TypeVar("ListT", bound=OrderedRules)


@dataclass(frozen=True, eq=False)
class ExpertRules:
    """An expert's rules, which come first in a list; the other rules are learned on the rows that
    these do not cover.

    Attributes:
        rules: in order.
        position: the first of them that each row satisfies, or their number, (rows,).
    """

    rules: Conjunctions
    position: NDArray[np.int64]

    @property
    def rest(self) -> Bools:
        """Which rows none of them covers, bool (rows,)."""
        return self.position == len(self.rules)

    @classmethod
    def given(cls, table: Table, first: object, max_rules: int) -> ExpertRules:
        """The rules of the argument `first`.

        Raises:
            TypeError, ValueError: naming the argument; also if no row or no rule remains to be
                learned.
        """
        rules = rules_for(table.schema, "first", first)
        found = ExpertRules(rules, first_satisfied(rules, table))
        require(found.rest.any(), "the rules of first cover every row; nothing is left to learn")
        require(
            len(rules) < max_rules,
            f"first has {len(rules)} rules, but max_rules={max_rules} leaves none to learn; raise "
            "max_rules",
        )
        return found

    def behind(self, model: ListT, max_rules: int) -> ListT:
        """The list of ``start``, without these rules if it begins with them.

        Raises:
            ValueError: if there is no room for it.
        """
        n, rules = len(self.rules), model.conjunctions
        if n and [set(rule) for rule in rules][:n] == [set(rule) for rule in self.rules]:
            model = model.take(np.arange(n, len(rules)))
        left = len(model.conjunctions)
        require(
            n + left <= max_rules,
            f"start has {left} rules besides the {n} of first, but max_rules={max_rules}; raise "
            "max_rules",
        )
        return model


@dataclass(frozen=True, eq=False)
class FirstRules(ExpertRules):
    """An expert's rules with labels.

    Attributes:
        labels: of the rules, (rules,).
        decided: the weight of every class among the rows that each captures, (rules, classes).
        right: which rows they classify correctly, bool (rows,).
        unit: the weight of one row, see `jaxrules.data.table.effective_row`.
    """

    labels: NDArray[np.int32]
    decided: NDArray[np.float64]
    right: Bools
    unit: float

    @classmethod
    def of(
        cls,
        data: TrainingData,
        class_weights: NDArray[np.float64],
        options: ListOptions,
        max_rules: int,
        constraints: Constraints,
    ) -> FirstRules:
        """The rules of the options; without `first_labels` their labels are the heaviest classes
        among those that the constraints allow.

        Raises:
            TypeError, ValueError: naming the argument; also if no row or no rule remains to be
                learned.
        """
        found = cls.given(data.table, options.first, max_rules)
        rules, position = found.rules, found.position
        decided = np.zeros((len(rules) + 1, class_weights.shape[1]))
        np.add.at(decided, position, class_weights)
        labels = _labels(options.first_labels, len(rules), data.classes or ())
        if labels is None:
            allowed = constraints.allows(rules, class_weights.shape[1])
            labels = np.where(allowed, decided[:-1], -np.inf).argmax(axis=1).astype(np.int32)
        constraints.check_labels("first", rules, labels, data.classes or (), "change first_labels")
        # -1, for rows that no rule covers, looks up the last class; `~found.rest` leaves them out.
        said = np.append(labels, -1)[position]
        right = ~found.rest & (class_weights[np.arange(len(said)), said] > 0)
        unit = effective_row(class_weights)
        return cls(rules, position, labels, decided[:-1], right, unit)

    def objective(self, penalty: float, local_penalty: float = 0.0, left: float = 0.0) -> float:
        """Their part of the objective: the weight that they classify correctly minus the penalty of
        their literals, and of reading them, also by the weight that they have `left`.
        """
        right = self.decided[np.arange(len(self.rules)), self.labels].sum()
        read = rules_read(np.append(self.decided.sum(axis=1), left)[:, None])
        return float(right - penalty * self.rules.propositions.sum() - local_penalty * read)

    def before(
        self, rules: Conjunctions, labels: NDArray[np.int32], decided: NDArray[np.float64],
        options: Settings, shrinkage: float | None = None,
    ) -> RuleList:  # fmt: skip
        """The model of these rules and those learned on the other rows.

        Args:
            decided: the weight of every class among the rows that each rule decides.
            shrinkage: the number of rows, with the shares of all rows, that joins them in the
                frequencies; None for one row of each class. Rows weigh `unit`.
        """
        return list_of(
            Conjunctions.concatenate([self.rules.with_schema(rules.schema), rules]),
            np.concatenate([self.labels, labels]).astype(np.int32),
            np.concatenate([self.decided, decided]),
            self.unit, options, shrinkage,
        )  # fmt: skip


def list_of(
    rules: Conjunctions, labels: NDArray[np.int32], decided: NDArray[np.float64], unit: float,
    options: Settings, shrinkage: float | None,
) -> RuleList:  # fmt: skip
    """A rule list with the frequencies of the rows that each rule decides; the arguments are those
    of `FirstRules.before`.
    """
    rows = decided / unit
    rows = rows + 1 if shrinkage is None else shrunk(rows, labels, shrinkage)
    shares = rows / rows.sum(axis=1, keepdims=True)
    return RuleList(rules, labels, shares, options, decided, unit != 1.0)


def shrunk(
    decided: NDArray[np.float64], labels: NDArray[np.int32], most: float
) -> NDArray[np.float64]:
    """The weights of the classes, and rows of at most this weight with the shares of all rows:
    fewer if the label would not stay the heaviest class, and one if it was only tied with another.
    """
    # t rows with these shares keep label l ahead of class k while lead - t lag > 0, with lead = n_l
    # - n_k and lag = shares_k - shares_l. Only classes with lag > 0 can catch up.
    shares = decided.sum(axis=0) / decided.sum()
    lead = np.take_along_axis(decided, labels[:, None], axis=1) - decided
    lag = shares - shares[labels][:, None]
    rival = (lag > 0) & (lead >= 0) & decided.any(axis=1, keepdims=True)
    # Just less than lead / lag, so that rounding makes no tie
    room = np.where(lead > 0, (1 - 1e-9) * lead / np.where(rival, lag, 1.0), 1.0)
    return decided + np.where(rival, room, most).min(axis=1, initial=most, keepdims=True) * shares


def _labels(given: Any, n_rules: int, classes: tuple[Label, ...]) -> NDArray[np.int32] | None:
    """The codes of `first_labels`; None for None."""
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise TypeError(f"first_labels must be a list of labels, got {type(given).__name__}")
    if len(given) != n_rules or not set(given) <= set(classes):
        raise ValueError(
            f"first_labels must hold one of {classes} for each of the {n_rules} rules of first"
        )
    return np.array([classes.index(label) for label in given], np.int32)
