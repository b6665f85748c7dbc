"""A rule list for a fit whose time limit is too short for its own search on all rows, or that was
interrupted before it had a rule.

Its rules come from a sample of the rows; all rows decide their labels, their number and f.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.in_time import short_rules
from jaxrules.learning.in_time import Stage, fit_in_half, rows_for_rules
from jaxrules.learning.training import TrainingData, columns_in_work
from jaxrules.lists.candidates import rules_read
from jaxrules.lists.first_rules import FirstRules
from jaxrules.lists.noise import SMALL_PENALTY, Left, Penalty
from jaxrules.lists.reading import ListOptions
from jaxrules.models.rule_models import RuleList
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import Activations
from jaxrules.tools.fits import Details, Fit, Status
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]

_TO_PREPARE = 0.75
"""Share of the time limit for the literals of all rows; a list of some of the rows comes after."""


def rows_for_lists(
    data: TrainingData, options: Any, run: Run, stage: Stage = "start", needs: Sequence[str] = ()
) -> TrainingData | None:
    """A sample of the rows, from which to learn the rules of a list, if there is no time for all,
    or after Ctrl-C. None if there is, or if it could not replace all rows.
    """
    if not _replaceable(options):
        return None
    timed = stage == "start" and run.deadline.seconds
    columns = columns_in_work(data.table, options.max_cut_points) if timed else None
    return rows_for_rules(data, run, options.seed, needs, stage=stage, columns=columns)


def run_to_prepare(options: Any, run: Run) -> Run | None:
    """The run that ends the preparation of a list; None if a list of some rows could not replace
    that of all.
    """
    return run.child(_TO_PREPARE) if _replaceable(options) and run.deadline.seconds != 0 else None


def _replaceable(options: Any) -> bool:
    """Whether no conditions are given, and no option sets a constraint that only the search can
    satisfy.
    """
    given = getattr(options, "rules", None), getattr(options, "propositions", None)
    default = getattr(options, "default", "majority")
    plain = isinstance(default, str) and default == "majority"
    return plain and all(one is None for one in given) and not constrained(options)


def constrained(options: Any) -> bool:
    """Whether an option sets a constraint that only the search can satisfy."""
    names = ("required", "first", "monotone", "start", "cut_points")
    given = [getattr(options, name, None) for name in names]
    return not all(value is None or _is_empty(value) for value in given)


def _is_empty(value: Any) -> bool:
    """Values of any type, which the search checks."""
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0 and len(value) == 0


def rules_of(sample: TrainingData, options: Any, run: Run) -> Conjunctions:
    """The rules of a boosted model, as rules of a list: those with the largest weights come
    first.
    """
    model = short_rules(
        sample, run, forbidden=options.forbidden, max_rules=options.max_rules,
        max_length=options.max_length,
    )  # fmt: skip
    weights = np.abs(model.weights).max(axis=1)
    return model.conjunctions.take(np.argsort(-weights, kind="stable"))


def _away_from_default(rules: Conjunctions, data: TrainingData) -> Conjunctions:
    """Rules of one condition with the default's label, which gain nothing, on their other side."""
    rows = Activations.of(rules, data.table)
    weights = rows.class_weights(data.codes, len(data.classes or ()), data.weights)
    useless = (rows.by_rule @ weights).argmax(axis=1) == weights.sum(axis=0).argmax()
    written = []
    for rule, turn in zip(rules, useless, strict=True):
        other = rule[0].complement(rules.schema) if turn and len(rule) == 1 else None
        written.append(rule if other is None else [other])
    return Conjunctions.build(rules.schema, written)


def list_in_time(
    fit: Any,
    data: TrainingData,
    sample: TrainingData,
    options: Any,
    run: Run,
    details: Callable[[RatedList, Conjunctions, Penalty], Details],
    *,
    needs: Sequence[str] = (),
    least: float = 0.0,
    local_penalty: float = 0.0,
    bound: float | None = None,
) -> Fit[RuleList]:
    """The list of the rules found on a sample of the rows, evaluated on all rows.

    Args:
        fit: the learner, which gets half of the time if that is enough for a search.
        details: makes them of the list, the rules of the sample and the penalty.
        needs: the modules that take long to import.
        least: the least weight that a rule must cover.
        local_penalty: of a rule that a row reads, times the weight of the row.
        bound: of the objective.
    """
    given, of_sample = options.literal_penalty, fit_in_half(fit, sample, options, run, needs=needs)
    rules = Conjunctions.build(data.table.schema, [])
    if of_sample is not None and of_sample.details["sample"] is None:  # else, boosted rules as well
        rules = of_sample.model.conjunctions
    choices = [rules]
    if not len(rules):
        boosted = rules_of(sample, options, run)
        choices = [boosted, _away_from_default(boosted, data)]
    small = SMALL_PENALTY if given is None else given
    rated = [RatedList.of(some, data, small, least, local_penalty) for some in choices]
    best = int(np.argmax([one.objective(small, local_penalty) for one in rated]))
    found, rules = rated[best], choices[best]
    penalty = Penalty.by_noise(found.left()) if given is None else Penalty(given)
    objective = found.objective(penalty.value, local_penalty)
    with run:
        run.step(objective, len(found.rules), bound=bound)
    return run.finish(
        found.model(data, options, options.settings(), penalty.shrinkage),
        objective,
        "max",
        Status.TIME_LIMIT,
        bound,
        details(found, rules, penalty),
    )


@dataclass(frozen=True, eq=False)
class RatedList:
    """A list on all rows.

    Attributes:
        rules: in order.
        labels: of the rules and the default, (rules + 1,).
        decided: the weight of every class among the rows that each decides, (rules + 1, classes).
        right: the weight that is classified correctly.
    """

    rules: Conjunctions
    labels: NDArray[np.int32]
    decided: Floats
    right: float

    @classmethod
    def of(
        cls,
        rules: Conjunctions,
        data: TrainingData,
        penalty: float,
        least: float = 0.0,
        local_penalty: float = 0.0,
    ) -> RatedList:
        """The best of the lists of the first m rules, each with its heaviest class.

        Args:
            penalty: of a literal.
            least: the least weight that a rule must cover; other rules are dropped.
            local_penalty: of a rule that a row reads, times the weight of the row.
        """
        n_classes = len(data.classes or ())
        rows = Activations.of(rules, data.table)
        kept = np.flatnonzero(rows.covered(rows.totals(data.weights)) >= least)
        rules, holds = rules.take(kept), rows.by_rule[kept]
        first = np.concatenate([holds, np.ones((1, rows.n_patterns), bool)]).argmax(axis=0)
        decided = np.zeros((len(rules) + 1, n_classes))
        np.add.at(decided, first, rows.class_weights(data.codes, n_classes, data.weights))
        # What a rule decides does not depend on later ones, and rows go to the default without it:
        # f of the first m rules is that of the default plus the sum of their gains.
        default = int(decided.sum(axis=0).argmax())
        gains = decided[:-1].max(axis=1) - decided[:-1, default] - penalty * rules.propositions
        # A rule is read by the rows that it decides and those behind it.
        gains -= local_penalty * np.cumsum(decided[::-1].sum(axis=1))[:0:-1]
        m = int(np.argmax(np.append(0.0, np.cumsum(gains))))
        decided = np.concatenate([decided[:m], decided[m:].sum(axis=0, keepdims=True)])
        labels = np.append(decided[:m].argmax(axis=1), default).astype(np.int32)
        right = float(decided[np.arange(m + 1), labels].sum())
        return cls(rules.take(np.arange(m)), labels, decided, right)

    def objective(self, penalty: float, local_penalty: float = 0.0) -> float:
        """f, Eq. 14 of SSRL, less the price of reading the list."""
        read = local_penalty * rules_read(self.decided)
        return self.right - penalty * float(self.rules.propositions.sum()) - read

    def left(self) -> Left:
        """What the list leaves."""
        return Left.of_list(self.decided, self.labels, float(self.rules.propositions.sum()))

    def model(
        self, data: TrainingData, options: ListOptions, settings: Any, shrinkage: float | None
    ) -> RuleList:
        """The list with the frequencies of all rows; see `FirstRules.before`."""
        of_class = data.codes[:, None] == np.arange(self.decided.shape[1])
        none = FirstRules.of(data, data.weights[:, None] * of_class, options, 1, Constraints())
        return none.before(
            self.rules.with_schema(data.schema), self.labels, self.decided, settings, shrinkage
        )
