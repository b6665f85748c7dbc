"""Near-optimal models in a report: how many there are, what they share, and on which rows they
disagree, in words that need no knowledge of statistics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jaxrules.models.near_optimal import NearOptimalModels
from jaxrules.models.persistence import Json
from jaxrules.models.rule_models import predict
from jaxrules.tools import display
from jaxrules.users.reporting.figures import FigureRows
from jaxrules.users.reporting.subject import Entry, Model

_SHARE = 0.05
"""Probabilities that differ by more are said to differ."""
_SPREAD = 0.1
"""Numbers that differ by more of the target's standard deviation are said to differ."""
_NAMED = 5
"""The most rules that a sentence names."""


def near_optimal_json(found: NearOptimalModels, entries: Sequence[Entry], rows: FigureRows) -> Json:
    """Sentences about the models, and figures of their rules and of those shown.

    Args:
        found: all of them.
        entries: those that the page shows, the best.
        rows: the rows that they are compared on.
    """
    both = " AND " if found.part == "condition" else " & "
    texts = [found.rules.describe(r, both) for r in range(len(found.rules))]
    amount = _SPREAD * float(rows.truth.std()) if rows.classes is None else 0.0
    result: Json = {
        "noun": found.noun, "part": found.part, "count": len(found),
        "said": [*_count(found), *_shared(found, texts), *_agreement(found, rows, amount)],
        "notes": found.notes,
        "objectives": found.objectives[: len(entries)].tolist(),
        "differs": _differs([entry.model for entry in entries], rows, amount),
        "rules": _rules(found, texts),
    }  # fmt: skip
    if rows.classes is None:
        result["amount"] = amount
    return result


def _count(found: NearOptimalModels) -> list[str]:
    best, share = display.number(found.optimum), display.number(100 * found.within, 3)
    side = "less" if found.sense == "min" else "more"
    one = len(found) == 1
    said = (
        f"{display.counted(len(found), f'rule {found.noun}')} "
        f"{'has' if one else 'have'} an objective within {share} % of the best known, {best} "
        f"({side} is better). The objective is about the training rows: how well a model "
        "fits them, with a penalty on its size."
    )
    if found.complete:
        also = (
            f"It is proved that no other {found.noun} of the same candidates comes as close; "
            f"{found.part}s that divide the training rows alike count as one."
        )
    else:
        also = f"It is not proved that these are all. {found.unlisted}"
    return [said, also]


def _shared(found: NearOptimalModels, texts: Sequence[str]) -> list[str]:
    """Which rules all of them have, and how many only one has."""
    n, part = len(found), found.part
    if n == 1 or not texts:
        return []
    everywhere = np.flatnonzero(found.occurrences == n).tolist()
    alone, m = int((found.occurrences == 1).sum()), len(texts)
    said = f"No {part} is in all of them."
    if everywhere:
        named = "; ".join(texts[r] for r in everywhere[:_NAMED])
        more = f"; and {len(everywhere) - _NAMED} more" if len(everywhere) > _NAMED else ""
        said = (
            f"All of them have {display.counted(len(everywhere), part)} in common: {named}{more}."
        )
    verb = "is" if alone < 2 else "are"
    only = f"{alone or 'None'} of the {m} {part}s that occur {verb} in only one {found.noun}."
    return [said, only]


def _agreement(found: NearOptimalModels, rows: FigureRows, amount: float) -> list[str]:
    """On which share of the rows the models agree."""
    n, said = rows.table.n_rows, []
    if len(found) == 1:
        return []
    if rows.classes is not None:
        same = float((found.possible(rows.table).sum(axis=1) == 1).mean())
        said.append(
            f"All of them predict the same class for {_percent(same)} of the {n} rows of this "
            "report."
        )
        if same < 1:
            said.append(
                f"For the other {_percent(1 - same)} the class depends on which {found.noun} is "
                "used, and the training rows hardly tell which is right."
            )
    ranges = found.ranges(rows.table)
    if ranges is not None:
        least, text = amount, f"{display.number(amount, 3)} ({_SPREAD:g} standard deviations)"
        what = f"their predictions of {display.plain(rows.table.schema.target)}"
        if rows.classes is not None:
            least, text = _SHARE, display.number(_SHARE)
            what = f"their probabilities of {display.plain(rows.classes[1])}"
        apart = ranges[:, 1] - ranges[:, 0]
        said.append(
            f"For {_percent(float((apart > least).mean()))} of the rows {what} differ by more than "
            f"{text}; the most by which they differ is {display.number(float(apart.max()), 3)}."
        )
    return said


def _percent(share: float) -> str:
    """A share in percent; only 0 and 1 show as 0 % and 100 %."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return "less than 0.1 %" if share < 0.5 else "more than 99.9 %"
    return f"{100 * share:.1f} %"


def _differs(models: Sequence[Model], rows: FigureRows, amount: float) -> list[float]:
    """The share of rows for which each model predicts something else than the first: another class,
    or a number that differs by more than an amount.
    """
    said = [np.asarray(predict(model, rows.table)) for model in models]

    def other(one: NDArray[np.generic]) -> float:
        if rows.classes is None:
            return float((np.abs(one - said[0]) > amount).mean())
        return float((one != said[0]).mean())

    return [other(one) for one in said]


def _rules(found: NearOptimalModels, texts: Sequence[str]) -> list[Json]:
    """Every rule, in how many models it is, and where; the most frequent first."""
    n, ranges = len(found), found.weight_ranges
    first: dict[int, int] = {}
    for place, support in enumerate(found.supports):
        for rule in support:
            first.setdefault(rule, place + 1)
    result = []
    for r in np.argsort(-found.occurrences, kind="stable").tolist():
        count = int(found.occurrences[r])
        only = f"only {found.noun} {first[r]}" if count == 1 and n > 1 else ""
        weights = [None, None] if ranges is None else ranges[r].tolist()
        where = "all" if count == n else only
        result.append({"text": texts[r], "count": count, "weights": weights, "where": where})
    return result
