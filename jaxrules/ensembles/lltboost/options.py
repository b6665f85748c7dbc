"""The options of LLTBoost's functions."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

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
from jaxrules.losses import LossOption
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import asks
from jaxrules.tools import checks

_count = functools.partial(checks.integer, at_least=1, at_most=10**6)
FEW_RULES = 10
"""The most rules of `max_rules="auto"`."""


def _most_rules(name: str, value: Any) -> int | Literal["auto"]:
    """A number of rules, or "auto"."""
    if not isinstance(value, str):
        return _count(name, value)
    if value != "auto":
        raise TypeError(f'{name} must be an integer or "auto", got {value!r}')
    return "auto"


PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "max_rules": 10,
        "max_length": 5,
        "max_nonzeros": 5,
        "refit_propositions": False,
        "refit_on_all_rows": False,
        # What the paper names no number for; with these its tables are closest.
        "l2_penalty": 1e-4,
        "risk_tolerance": -0.05,
        "objective_tolerance": 0.1,
    }
)
"""The method of the paper to the letter, ``fit(X, y, **PAPER)``: the L1 solutions themselves, and
the weights of the training part.
"""


@options
class LLTBoostShared(ScoreOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        loss: None for "logistic" if y holds classes (see `jaxrules.data.table.holds_classes`), else
            "squared"; a name; or a function of (y, score) made of JAX operations, convex and twice
            differentiable in the score.
        multiclass: for more than two classes. "joint" fits one problem with the softmax loss, a
            weight per class and rule, see `jaxrules.ensembles.lltboost.ensemble`; it needs the
            logistic loss, and cannot be combined with `monotone`. "one_vs_rest" fits one model per
            class against the rest. None: "joint" if it can, else "one_vs_rest".
        max_length: the most propositions of a rule, k_r.
        max_nonzeros: the most columns in a proposition, k_s.
        validation_fraction: share of the rows, in [0, 1), held out to choose the number of columns.
            Equal rows stay together, and classes keep their shares. With 0 the training rows
            themselves decide.
        risk_tolerance: eps_s, relative change of the held-out risk: by default an additional
            column must lower it by 10 %.
        objective_tolerance: eps_p, the relative gain of |g'q| that every additional proposition
            must exceed.
        l2_penalty: ridge on the weights of the rules, relative to the mean loss: mean_i l +
            l2_penalty / 2 sum_j b_j^2; l2_penalty sum_jk b_jk^2 for classes fitted together, with
            which two classes are the binary problem. It keeps the weights of rules that separate
            classes finite.
            `l2_penalty` of `jaxrules.boosting` is this times the number of rows. None: the rules
            are found with 1e-3. If they leave a share q of the constant's loss (to which 3 / rows
            are added for each rule, at most .2), the last refit has 10 q / (1 - q), divided by the
            number of rows, times the mean curvature of the loss at the constant, and at least 1e-3.
        refit_propositions: refit w and t on the columns that the L1 penalty chose, under a ridge of
            1e-3 alone. False keeps the shrunken solution.
        refit_on_all_rows: at the end, refit the weights on all rows; False keeps those of the
            training part.
        refine_thresholds: given w, take the threshold of largest |g'q| (exact, by sorting).
        axis_parallel: for propositions on one column, take the column and threshold of largest
            |g'q| (exact) instead of logistic regression.
        beam_width: the number of unfinished conjunctions to keep, per sign; 1 is Algorithm 1.
            Several are ranked by held-out risk, with every column priced at `risk_tolerance`.
        search_rows: the most rows that rules are searched on. Of more rows, this number is drawn at
            random, and ``details["sample"]`` reports it; all rows decide the weights. None searches
            on all rows.
        forbidden: columns, by name or position, that no rule may use.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with the
            column; see `jaxrules.rules.constraints`. A rule whose weight this sets to 0 is dropped.
        first: an expert's rules, or those of a fitted model. The model starts from them and keeps
            them; they count towards `max_rules`. Their weights are fitted at the start and at every
            refit, under `l2_penalty`.
        missing: rule for missing values, see `jaxrules.as_table`. With "own_category" a row with a
            missing number in a proposition satisfies it or not, whichever raises the objective; the
            choice is part of the rule. A missing category is an indicator like the others.
        seed: seed of the held-out rows.
    """

    learner = "lltboost"
    renamed: ClassVar[Mapping[str, str]] = {"max_propositions": "max_length"}

    loss: LossOption = None
    multiclass: Multiclass | None = option(how_classes, default=None)
    max_length: int = option(_count, default=5)
    max_nonzeros: int = option(_count, default=5)
    validation_fraction: float = option(checks.number, default=0.25, at_least=0, below=1)
    risk_tolerance: float = option(checks.number, default=-0.1, at_least=-1)
    objective_tolerance: float = option(checks.penalty, default=0.3)
    l2_penalty: float | None = option(or_none(checks.penalty), default=None)
    refit_propositions: bool = option(checks.flag, default=True)
    refit_on_all_rows: bool = option(checks.flag, default=True)
    refine_thresholds: bool = option(checks.flag, default=False)
    axis_parallel: bool = option(checks.flag, default=False)
    beam_width: int = option(_count, default=1)
    search_rows: int | None = option(or_none(checks.integer), default=100_000, at_least=1)
    forbidden: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None
    first: Conjunctions | None = None

    def joins(self, data: TrainingData) -> bool:
        """Whether the classes of these data are fitted together.

        Raises:
            ValueError: if they must be and cannot.
        """
        against = against_joint(data.loss.name, asks(self.monotone))
        return joins(self.multiclass, data.target.ndim > 1, against)


@options
class LLTBoostOptions(LLTBoostShared):
    """The options of `fit` and `path`.

    Attributes:
        max_rules: the number of rules, r; fewer if no further rule changes the risk. "auto": as
            many as gain more in likelihood than a smaller ridge would, at most ten;
            `jaxrules.ensembles.size` has the criterion. Ten for losses other than the logistic,
            squared and Poisson one.
            ``details["chosen"]`` reports the number, and `path` returns the fits of all sizes.
    """

    max_rules: int | Literal["auto"] = option(_most_rules, default="auto")

    @property
    def most_rules(self) -> int:
        """The most rules."""
        return FEW_RULES if self.max_rules == "auto" else self.max_rules


@options
class LLTBoostGrid(Folds, LLTBoostShared):
    """The options of `cross_validate`.

    Attributes:
        max_rules: the most rules; every number from 1 on is tried.
    """

    max_rules: int = option(checks.integer, default=20, at_least=1, at_most=10_000)
