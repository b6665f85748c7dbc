"""A model of a few rules for a fit whose time limit is too short for its own work on all rows, or
that was interrupted before it had a rule.

It is boosted on a sample of the rows, which needs neither scikit-learn nor, for few classes,
compiled code. The learner evaluates it on all rows, or starts from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from jaxrules.ensembles import boosting
from jaxrules.ensembles.boosting.fitting import MANY_CLASSES
from jaxrules.ensembles.oblique import n_encoded
from jaxrules.learning.in_time import fit_in_half
from jaxrules.learning.training import TrainingData
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.tools.fits import Details, Status
from jaxrules.tools.runs import Run

_MOST = 10
_CUT_SHORT = 3
"""If the limit cuts a model short at fewer rules than this, boosted rules are at least as good."""
_MANY_COLUMNS = 500
"""With more columns and categories, all pairs of conditions would take seconds."""
FORESTS = "sklearn.ensemble"
"""Takes a second to import."""


def short_rules(
    sample: TrainingData,
    run: Run,
    *,
    forbidden: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    max_rules: int | None = None,
    max_length: int | None = None,
    one_vs_rest: bool = False,
) -> RuleEnsemble:
    """An ensemble of at most ten rules per class, in half of the remaining time. With too little
    time, or after Ctrl-C, it has at most three, by a fixed amount of work. With hundreds of columns
    or categories, rules are single conditions.

    More than `MANY_CLASSES` classes share the rules, as one problem with the softmax loss, unless
    `one_vs_rest`.

    Args:
        sample: the rows, see `jaxrules.learning.training.sample_in_time`.
        forbidden, monotone, max_rules, max_length: options of the learner.
    """
    longest: int | Literal["auto"] = "auto" if max_length is None else min(max_length, 2)
    if n_encoded(sample.table) > _MANY_COLUMNS:
        longest = 1
    joint = len(sample.outputs) > MANY_CLASSES and not (one_vs_rest or run.interrupt.pressed)
    own = boosting.Options(
        loss=sample.loss, multiclass=None if joint else "one_vs_rest", forbidden=forbidden,
        monotone=monotone,
        max_rules=_MOST if max_rules is None else min(max_rules, _MOST), max_length=longest,
        missing="own_category", positive=sample.positive,
    )  # fmt: skip
    return boosting.model_in_time(sample, own, run)


def model_in_time(
    sample: TrainingData,
    fit: Any,
    options: Any,
    run: Run,
    *,
    needs: Sequence[str] = (),
    max_rules: int | None = None,
    max_length: int | None = None,
    one_vs_rest: bool = False,
) -> tuple[RuleEnsemble, Details | None]:
    """The model and details of `fit` on a sample, in half of the time; short rules without details
    if that is too little for more than a rule or two.

    Args:
        fit: a learner of ensembles.
        options: the options of that learner.
        needs: the modules that take long to import.
        max_rules, max_length: limits on short rules.
        one_vs_rest: whether the weights of short rules must be those of one-vs-rest.
    """
    found = fit_in_half(fit, sample, options, run, outputs=len(sample.outputs), needs=needs)
    if found is not None:
        # A model with few rules is only replaced if the limit was the reason for its size.
        few = len(found.model.conjunctions) < _CUT_SHORT
        if not (few and found.status is Status.TIME_LIMIT):
            return found.model, found.details
    model = short_rules(
        sample, run, forbidden=options.forbidden, monotone=getattr(options, "monotone", None),
        max_rules=max_rules, max_length=max_length, one_vs_rest=one_vs_rest,
    )  # fmt: skip
    return model, None
