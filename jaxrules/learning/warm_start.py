"""``start=``: warm starts of learners from an earlier fit, and the propositions of its rules.

``start`` means the same in all learners: a Fit, or its model, on the same columns and for the same
classes. The search starts from it, and its result is at least as good. Unlike an expert's rules
(``first``), the rules of a start may be dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Table
from jaxrules.learning.training import TrainingData
from jaxrules.models.rule_models import RegressionList, RuleEnsemble, RuleList
from jaxrules.rules.conditions import Conjunctions, PropositionPool
from jaxrules.rules.constraints import Constraints
from jaxrules.tools.bits import Words, pack
from jaxrules.tools.fits import Fit

ModelT = TypeVar("ModelT", RuleEnsemble, RuleList, RegressionList)


def given_start(
    start: Any,
    kind: type[ModelT],
    data: TrainingData,
    constraints: Constraints,
    linear_terms: bool = False,
) -> ModelT | None:
    """The model of the argument ``start``; None for None.

    Args:
        start: the argument.
        kind: the type of model that the learner makes.
        data: the data of the fit.
        constraints: the constraints that the rules of the start must meet, except for required
            columns.
        linear_terms: whether the fit may have linear terms.

    Raises:
        TypeError: for anything but a Fit or model of this kind.
        ValueError: if it is for other columns or classes, or has parts that the fit does not allow.
    """
    if start is None:
        return None
    model = start.model if isinstance(start, Fit) else start
    if not isinstance(model, kind):
        what = ("a Fit of " if isinstance(start, Fit) else "") + type(model).__name__
        raise TypeError(f"start must be a {kind.__name__} or a Fit of one, got {what}")
    if model.schema.features != data.table.schema.features:
        raise ValueError(
            f"start was fitted on the columns {list(model.schema.names)}, but X has "
            f"{list(data.table.schema.names)}; fit it on the same columns"
        )
    if isinstance(model, RuleEnsemble):
        if model.n_outputs != len(data.outputs):
            raise ValueError(
                f"start has {model.n_outputs} outputs, but y needs {len(data.outputs)}"
            )
        if model.linear is not None and not linear_terms:
            raise ValueError("start has linear terms, which this fit does not allow; drop them")
    if model.schema.classes != data.classes:
        raise ValueError(
            f"start is for the classes {model.schema.classes}, but y has {data.classes}"
        )
    of_list = isinstance(model, RuleList)
    n_labels = len(data.classes or ()) if of_list else max(len(data.outputs), 2)
    barred = np.flatnonzero(~constraints.allows(model.conjunctions, n_labels).any(axis=1)).tolist()
    if barred:
        raise ValueError(
            f"start has the rule {model.conjunctions.describe(barred[0])!r}, which has no "
            "admissible weight under forbidden and monotone; relax them, or drop the rule"
        )
    return model


def propositions_in(rules: Conjunctions) -> PropositionPool:
    """The propositions of rules, condition by condition; an interval is two, as in its penalty."""
    parts = [part for rule in rules for condition in rule for part in condition.parts(rules.schema)]
    return PropositionPool.build(rules.schema, [[part] for part in parts])


def made_of(
    pool: PropositionPool,
    bits: Words,
    rules: Conjunctions,
    table: Table,
    tags: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None,
) -> list[tuple[int, ...] | None]:
    """Rules as propositions of a pool that hold for the same rows; None for a rule that holds for
    no row, or has a proposition that the pool lacks. Conditions that hold for all rows are left
    out.

    Args:
        pool: distinct propositions.
        bits: the rows of `table` on which each holds, (propositions, words).
        rules: the rules.
        table: one row of every kind that the pool distinguishes.
        tags: tags of the pool, and of `propositions_in(rules)`; propositions with different tags
            are distinct.
    """
    parts = propositions_in(rules)
    of_pool, of_parts = tags or (np.zeros((len(of), 0), bool) for of in (pool, parts))
    held = parts.satisfied(table)
    place: dict[tuple[bytes, bytes], int] = {}
    for i, key in enumerate(_keys(bits, of_pool)):
        place.setdefault(key, i)  # of equal propositions, the first
    found = [place.get(key) for key in _keys(pack(held.T), of_parts)]
    # What holds on all rows constrains nothing.
    needed: NDArray[np.bool_] = ~np.asarray(held.all(axis=0))
    sizes = [sum(len(condition.parts(rules.schema)) for condition in rule) for rule in rules]
    ends = np.cumsum([0, *sizes])
    made: list[tuple[int, ...] | None] = []
    for first, last in pairwise(ends.tolist()):
        those = [found[part] for part in range(first, last) if needed[part]]
        known = [one for one in those if one is not None]
        holds = np.any(np.all(held[:, first:last], axis=1))
        made.append(tuple(sorted(set(known))) if holds and len(known) == len(those) else None)
    return made


def check_lengths(rules: Sequence[tuple[int, ...] | None], longest: int | None, name: str) -> None:
    """Refuse rules of a start that are longer than the fit allows.

    Raises:
        ValueError: naming the argument that limits them.
    """
    length = max((len(rule) for rule in rules if rule is not None), default=0)
    if longest is not None and length > longest:
        raise ValueError(
            f"start has a rule of {length} propositions, but {name}={longest}; raise {name} to at "
            f"least {length}"
        )


def _keys(bits: Words, tags: NDArray[np.bool_]) -> list[tuple[bytes, bytes]]:
    """By what propositions are distinct."""
    return [(row.tobytes(), tag.tobytes()) for row, tag in zip(bits, tags, strict=True)]
