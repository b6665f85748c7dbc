"""The side on which rules are written.

A rule of one condition and its complement give the same model: w [c] = w - w [not c], and the
intercept takes the constant. ``-3.86 capital-gain <= 5013`` is ``+3.86 capital-gain > 5013``. One
side tells a reader more than the other: the one that holds for few rows, or the one that raises the
score, which gives an alarm its reasons.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import TableLike
from jaxrules.models.rule_models import RuleEnsemble, rows_for
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.tools import checks


def complements(rules: Conjunctions) -> list[Condition | None]:
    """For every rule the condition that holds where it does not; None if that is none, as for rules
    of several conditions.
    """
    return [rule[0].complement(rules.schema) if len(rule) == 1 else None for rule in rules]


def reason_words(rules: Conjunctions) -> list[tuple[str, str]]:
    """For every rule, the reason that it does not hold, and that it holds."""
    words = rules.texts(range(len(rules)))
    return [
        (f"not ({words[r]})" if other is None else other.describe(rules.schema), words[r])
        for r, other in enumerate(complements(rules))
    ]


def oriented(
    model: RuleEnsemble,
    side: Literal["positive", "smaller"] = "positive",
    X: TableLike | None = None,
) -> RuleEnsemble:
    """The same model with rules of one condition written on the other side where that is better.

    Scores, probabilities and predictions stay the same, up to the rounding of sums. Rules of
    several conditions, and intervals with two ends, have no complement that is a rule; they stay.

    Args:
        model: a rule ensemble.
        side: "positive" for rules that raise the score, that is the log-odds of the second class
            (or the number), so that every alarm has rules as reasons; "smaller" for rules that hold
            on at most half of the rows of `X`.
        X: rows, for "smaller".

    Raises:
        TypeError: for another model.
        ValueError: for "positive" and more than two classes, "smaller" without `X` or with an `X`
            that does not fit the model or has no rows.

    Example:
        >>> import numpy as np
        >>> import jaxrules as jr
        >>> schema = jr.Schema((jr.Feature("income"),), classes=("repaid", "default"))
        >>> rules = jr.Conjunctions.build(schema, [[jr.Condition.above(0, 30)]])
        >>> model = jr.RuleEnsemble(rules, np.array([[-2.0]]), np.array([0.5]), link="logistic")
        >>> print(jr.oriented(model))
        Rule ensemble of 1 rule (positive class: default)
        log-odds of target == default: -1.5000 + the weights of the rules that hold
          +2.0000  income <= 30
    """
    checks.instance("model", model, RuleEnsemble, "jaxrules.boosting.fit")
    weights = np.array(model.weights, np.float64)
    checks.choice("side", side, ("positive", "smaller"))
    checks.require(side == "positive" or X is not None, "side 'smaller' needs rows: pass X")
    share = np.zeros(len(weights))
    if X is not None:
        share = model.conjunctions.satisfied(rows_for(model, X)).mean(axis=0)
    checks.require(
        side == "smaller" or model.n_outputs == 1,
        "side 'positive' is for models of two classes or numbers; use 'smaller' for several",
    )
    turned: NDArray[np.bool_] = weights[:, 0] < 0 if side == "positive" else share > 0.5
    others = complements(model.conjunctions)
    turned &= np.array([one is not None for one in others], bool)
    rules: list[Sequence[Condition]] = list(model.conjunctions)
    counts = model.conjunctions.propositions.tolist()
    for r in np.flatnonzero(turned).tolist():
        if (other := others[r]) is not None:
            rules[r], counts[r] = (other,), other.n_propositions(model.schema)
    intercept = np.array(model.intercept, np.float64)
    for weight in weights[turned]:  # rule order: a defined sum
        intercept += weight
    weights[turned] *= -1
    built = Conjunctions.build(model.schema, rules, counts)
    return dataclasses.replace(model, conjunctions=built, weights=weights, intercept=intercept)
