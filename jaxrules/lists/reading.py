"""What the learners of rule lists share: their options, and how they read data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import Label, TableLike
from jaxrules.learning.options import FitOptions, option, options
from jaxrules.learning.training import TrainingData
from jaxrules.losses import logistic
from jaxrules.rules.conditions import Conjunctions
from jaxrules.tools import checks

MOST_ROWS = 2**24
"""The most rows that every kernel counts exactly: float32 represents every integer up to this
one.
"""

limit = partial(checks.optional, checks.integer)
"""The check of an option that is an integer, or None for no limit."""


@options
class ListOptions(FitOptions):
    """What `jaxrules.ssrl` and `jaxrules.exact_list` have in common.

    Attributes:
        cut_points: the cut points of some numeric columns by name, instead of quantiles.
        forbidden: columns, by name or position, that no rule may use.
        required: columns that the list must use.
        monotone: 1 or -1 for some numeric columns: as the column rises, the label may only move
            towards the last class, or the first; probabilities may also move the other way. See
            `jaxrules.rules.constraints`.
        first: an expert's rules, which come first; they count towards `max_rules`, and their
            literals are penalised.
        first_labels: their labels; None for the heaviest class among the rows that each captures,
            of those that `monotone` allows.
        seed: seed of drawn rows, on large data or if time is short; the search itself draws
            nothing.
        time_limit: seconds; the best list so far is returned when they run out, see
            `jaxrules.Deadline`.
    """

    renamed: ClassVar[Mapping[str, str]] = {"quantiles": "max_cut_points"}

    cut_points: Mapping[str, Sequence[float]] | None = None
    forbidden: Iterable[str | int] = ()
    required: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None
    first: Conjunctions | None = None
    first_labels: Sequence[Label] | None = None


@options
class PricedListOptions(ListOptions):
    """The options of lists whose rules have a price for every row that reads them.

    Attributes:
        local_penalty: at least 0, what the objective loses for every rule that a row reads before
            its prediction, as a share of the row's weight: .01 if one rule less to read, on
            average, is worth one percent of the accuracy. `jaxrules.local_support` is their mean
            number.
    """

    local_penalty: float = option(checks.penalty, default=0.0)


def list_data(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: FitOptions
) -> TrainingData:
    """The data of a fit, with classes.

    Raises:
        TypeError, ValueError: as `training_data`; for more rows than can be counted exactly.
    """
    data = options.training_data(X, y, sample_weight, logistic)
    checks.require(
        data.table.n_rows <= MOST_ROWS,
        f"X has {data.table.n_rows} rows; at most {MOST_ROWS} can be counted exactly; fit a sample",
    )
    return data


def default_label(default: Any, data: TrainingData, words: Sequence[str]) -> int | str:
    """The code of the default label, or the word that says how to choose it.

    Raises:
        ValueError: if it is neither a class nor one of the words.
    """
    classes = data.classes or ()
    if isinstance(default, str) and default in words and default not in classes:
        return default
    if np.ndim(default) or default not in classes:
        known = ", ".join(f'"{word}"' for word in words)
        raise ValueError(
            f"default must be {known} or one of the classes {classes}, got {default!r}"
        )
    return classes.index(default)
