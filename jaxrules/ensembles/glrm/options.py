"""The options of `fit`, `path` and `cross_validate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.learning.options import (
    Folds,
    Multiclass,
    ScoreOptions,
    against_joint,
    how_classes,
    joins,
    option,
    options,
    or_none,
)
from jaxrules.learning.training import TrainingData
from jaxrules.losses import Loss
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import asks
from jaxrules.tools import checks
from jaxrules.tools.fits import Fit

Floats = NDArray[np.float64]
LossOption = Literal["logistic", "squared", "poisson", "exponential"] | Loss | None
FirstCandidates = Literal["conditions", "empty"]
_LEAST_PENALTY = 1e-30
"""The ratio of a slope to a smaller one may overflow."""


def _penalty(name: str, value: Any) -> float | None:
    """None, or a rule penalty."""
    found = checks.optional(checks.number, name, value, above=0)
    checks.require(
        found is None or found >= _LEAST_PENALTY,
        f"{name} must be at least {_LEAST_PENALTY:g}, got {found}",
    )
    return found


def _penalties(name: str, values: Any) -> tuple[float, ...] | None:
    """None, or rule penalties, the largest first."""
    found = checks.descending(name, values, above=0)
    _penalty(name, None if found is None else found[-1])
    return found


def _start(name: str, value: Any) -> FirstCandidates | Fit[Any] | RuleEnsemble:
    """One of two words, a Fit or a model."""
    if isinstance(value, (Fit, RuleEnsemble)):
        return value
    if not isinstance(value, str):
        raise ValueError(
            f'{name} must be "conditions" or "empty", or a Fit or its model, got '
            f"{type(value).__name__}"
        )
    return checks.choice(name, value, ("conditions", "empty"))


class GlrmPrices(NamedTuple):
    """The penalties of a fit, lambda_0 and lambda_1."""

    rule: float
    condition: float

    def of(self, lengths: Floats) -> Floats:
        """lambda_0 + lambda_1 length."""
        return self.rule + self.condition * lengths


@options
class GlrmShared(ScoreOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        loss: None for "logistic" if y holds classes (see `jaxrules.data.table.holds_classes`), else
            "squared"; a name; or a `jaxrules.losses.Loss` with a conjugate.
        multiclass: for more than two classes. "joint" fits one problem with the softmax loss, in
            which a rule has a weight per class and the penalty is on their Euclidean norm. It needs
            the logistic loss and cannot be combined with `monotone`. "one_vs_rest" fits one model
            per class against the rest. None: "joint" if it can, else "one_vs_rest".
        condition_penalty: lambda_1 >= 0, the penalty of each proposition in a rule; None for a
            fifth of the rule penalty, as in the paper's experiments. An interval counts as two
            propositions.
        pricing: "beam" looks for violating rules with a beam search; "exact" also searches exactly
            whenever the beam finds none, and so ends with a certificate. The branch and bound may
            take long, and longer for joint classes, where it runs in NumPy: on large data, set
            `max_length`, few cut points or a time limit.
        max_length: the most propositions of a rule, None for any number.
        max_rules: the most candidate rules that column generation may add.
        max_cut_points: the most cut points per numeric column, at quantiles; None for all values.
            The paper takes 9.
        search_rows: the most rows that rules are searched on. Of more rows, this number is drawn at
            random, and ``details["sample"]`` reports it; all rows decide the weights and the
            default penalty. A rule of `start` that holds for no drawn row is dropped. None, or
            ``pricing="exact"``, searches on all rows.
        linear_terms: add the numeric columns themselves.
        forbidden: columns, by name or position, that no rule and no linear term uses.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with
            the column; see `jaxrules.rules.constraints`. It fixes signs of weights; rules of each
            sign are searched for separately.
        first: an expert's rules. The model starts with them and keeps them, even with weight 0;
            they are penalised like the others.
        beam_width: partial rules that the beam keeps, for each sign of the weight; of joint
            classes, in all.
        rules_per_round: the most rules added between two solutions of the master problem.
        start: the first candidates: all rules of one proposition ("conditions", as the authors do),
            none ("empty"), or "conditions" and the rules of a Fit or its model, of any learner,
            with its weights (0 if `monotone` forbids them). The objective is then at most that of
            the start, under these penalties; its conditions are extra cut points.
        debias: refit the weights of the chosen rules (almost) without a penalty, as the authors'
            program does by default. The objective and the bound are those of the penalised model.
        eliminate: at the end, drop rules, the least useful first, while each raises the objective
            by less than a rule is worth in likelihood (1.25, see `jaxrules.ensembles.size`); the
            others are weighed anew. It does nothing for losses other than the logistic, squared
            and Poisson one. The bound stays that over all rules. None: where the noise chooses
            `rule_penalty` and the beam searches, but for classes fitted together; of a given
            penalty, the result is the solution itself.
        tolerance: a rule is added while it violates its optimality condition by more than this
            share of its penalty; the certificate of "exact" states the remaining gap.
        seed: of the rows that are drawn if there are more than `search_rows`.
    """

    learner = "glrm"

    loss: LossOption = None
    multiclass: Multiclass | None = option(how_classes, default=None)
    condition_penalty: float | None = option(or_none(checks.penalty), default=None)
    pricing: Literal["beam", "exact"] = option(
        checks.choice, default="beam", known=("beam", "exact")
    )
    max_length: int | None = option(or_none(checks.integer), default=None, at_least=1)
    max_rules: int = option(checks.integer, default=1000, at_least=0)
    max_cut_points: int | None = option(or_none(checks.integer), default=20, at_least=1)
    search_rows: int | None = option(or_none(checks.integer), default=50_000, at_least=1)
    linear_terms: bool = option(checks.flag, default=False)
    forbidden: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None
    first: Conjunctions | None = None
    beam_width: int = option(checks.integer, default=10, at_least=1)
    rules_per_round: int = option(checks.integer, default=10, at_least=1)
    start: FirstCandidates | Fit[RuleEnsemble] | RuleEnsemble = option(_start, default="conditions")
    debias: bool = option(checks.flag, default=False)
    eliminate: bool | None = option(or_none(checks.flag), default=None)
    tolerance: float = option(checks.number, default=1e-6, above=0)

    @property
    def by_noise(self) -> bool:
        """Whether the noise chooses the penalty of rules that a beam finds."""
        return False

    @property
    def eliminates(self) -> bool:
        """Whether rules of little worth are dropped."""
        return self.by_noise if self.eliminate is None else self.eliminate

    def joins(self, data: TrainingData) -> bool:
        """Whether the classes of these data are fitted together.

        Raises:
            ValueError: if they must be and cannot.
        """
        against = against_joint(data.loss.name, asks(self.monotone))
        return joins(self.multiclass, data.target.ndim > 1, against)

    def prices(self, rule_penalty: float) -> GlrmPrices:
        """The penalties of a fit with this lambda_0."""
        condition = self.condition_penalty
        return GlrmPrices(rule_penalty, rule_penalty / 5 if condition is None else condition)


@options
class GlrmOptions(GlrmShared):
    """The options of `fit`.

    Attributes:
        rule_penalty: lambda_0 > 0, the penalty of a rule's weight, against the mean loss. None:
            1.6 standard errors of the mean slope of a rule that holds for half of the rows, so that
            noise alone rarely pays for a rule, and more with over ten columns (2.7 with 100); for
            joint classes, as many of the norm of the slopes as noise exceeds as rarely. The slopes
            are those of the model itself: up to six rough fits lower the penalty from that of the
            constant, as in the scaled lasso (Sun and Zhang, Biometrika 2012). It is at least a
            hundredth of the one that excludes every single proposition, and 1e-6 for classes. If
            `eliminate` drops rules that a beam found, the others are weighed with .6 of it.
            ``details["chosen"]`` says what it came to.
        standard_errors: the number of these standard errors, whatever the number of columns; for
            joint classes, that of one output.
    """

    rule_penalty: float | None = option(_penalty, default=None)
    standard_errors: float | None = option(or_none(checks.number), default=None, above=0)

    @property
    def by_noise(self) -> bool:
        return self.rule_penalty is None and self.pricing == "beam"


@options
class GlrmPathOptions(GlrmShared):
    """The options of `path`.

    Attributes:
        rule_penalties: values of lambda_0, positive; sorted from large to small. None: six from
            30 % to 1 % of the one that excludes every single proposition.
        time_limit: seconds for the path; every fit gets an equal share of the rest.
    """

    rule_penalties: Sequence[float] | None = option(_penalties, default=None)


@options
class GlrmGrid(Folds, GlrmShared):
    """The options of `cross_validate`.

    Attributes:
        rule_penalties: values of lambda_0, positive. None: six from 30 % to 1 % of the one that
            excludes every single proposition.
        start: the first candidates: all rules of one proposition ("conditions", as the authors
            do), or none ("empty").
        seed: of the folds, and of the rows that are drawn.
    """

    rule_penalties: Sequence[float] | None = option(_penalties, default=None)
    start: FirstCandidates = option(
        checks.choice, default="conditions", known=("conditions", "empty")
    )
