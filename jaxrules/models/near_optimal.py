"""All models that are nearly as good as the best one (a Rashomon set), whichever learner lists
them: how many there are, what they consist of, and how they print.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Schema, TableLike
from jaxrules.rules.conditions import Conjunctions
from jaxrules.tools import display
from jaxrules.tools.fits import Status, relative_gap

Floats = NDArray[np.float64]

_SHOWN = 10
"""Rules shown in the text."""


@dataclass(frozen=True, eq=False)
class NearOptimalModels(ABC):
    """The models whose objective is within a share of the optimum, the best first. Indexing gives
    them.

    Attributes:
        rules: the rules that occur in them.
        supports: those of each model, as positions in `rules`.
        objectives: (models,), the best first.
        optimum: the best objective known; `bound` is proved for all models.
        threshold: models beyond it are not near-optimal.
        status: OPTIMAL if all are listed; else what ended the search.
        noun, part, sense: what a model and a rule of it are called, and whether the objective is
            minimised.
    """

    rules: Conjunctions
    supports: tuple[tuple[int, ...], ...]
    objectives: Floats
    optimum: float
    bound: float
    threshold: float
    status: Status

    noun: ClassVar[str]
    part: ClassVar[str]
    sense: ClassVar[Literal["min", "max"]]

    @property
    def schema(self) -> Schema:
        return self.rules.schema

    @property
    def complete(self) -> bool:
        """Whether all near-optimal models are listed."""
        return self.status is Status.OPTIMAL

    @property
    def within(self) -> float:
        """The share of the optimum that an objective may miss it by."""
        return relative_gap(self.optimum, self.threshold) or 0.0

    def __len__(self) -> int:
        return len(self.supports)

    @abstractmethod
    def __getitem__(self, index: int) -> Any:
        """One of them as a model."""

    @cached_property
    def occurrences(self) -> NDArray[np.int64]:
        """The number of models in which each rule occurs, (rules,)."""
        return np.bincount(
            [rule for support in self.supports for rule in support], minlength=len(self.rules)
        )

    @property
    def in_all(self) -> Conjunctions:
        """The rules that every listed model has."""
        return self.rules.take(np.flatnonzero(self.occurrences == len(self)))

    @abstractmethod
    def possible(self, X: TableLike) -> NDArray[np.bool_]:
        """Which classes the models predict for each row, bool (rows, classes); if only one, all
        models agree.

        Args:
            X: data with the columns of fit, the training data or others.

        Raises:
            ValueError: if `X` does not fit the columns, or the models predict numbers.
        """

    def ranges(self, X: TableLike) -> Floats | None:
        """The least and the greatest number that the models predict for each row, (rows, 2); of
        classes, the probability of the second. None for lists, whose labels decide.
        """
        return None

    @cached_property
    def weight_ranges(self) -> Floats | None:
        """The least and the greatest weight of each rule where it occurs, (rules, 2); None for
        lists, whose rules have no weights.
        """
        return None

    @property
    def unlisted(self) -> str:
        """A sentence: what may be missing; empty if nothing is."""
        return "" if self.complete else "There may be more."

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: settings that were chosen from the data."""
        return ()

    @property
    def summary(self) -> tuple[str, ...]:
        """Sentences: the number of models, and whether these are all."""
        worst, side = ("most", "least") if self.sense == "min" else ("least", "most")
        threshold, best, bound = map(display.number, (self.threshold, self.optimum, self.bound))
        proved = "" if self.complete or bound == best else f" (at {side} {bound})"
        found = display.counted(len(self), f"rule {self.noun}")
        lines = [f"{found} with an objective of at {worst} {threshold}; the best: {best}{proved}"]
        if not self.complete:
            more = f"{self.unlisted} Raise the limits, or lower `within`."
            return (*lines, *self.notes, more)
        return (*lines, *self.notes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} {self.noun}s, complete={self.complete})"

    def __str__(self) -> str:
        lines, rows = list(self.summary), self._rows()
        if rows:
            also = "" if self.weight_ranges is None else ", and its weights"
            lines.append(f"Share of the {self.noun}s in which a {self.part} occurs{also}:")
            lines += display.aligned(rows)
        if len(self.rules) > _SHOWN:
            lines.append(f"and {len(self.rules) - _SHOWN} more {self.part}s")
        return "\n".join([*lines, "The best:", str(self[0])])

    def _repr_html_(self) -> str:
        weights = () if self.weight_ranges is None else ("weights",)
        heads = (f"share of the {self.noun}s", *weights, f"{self.part}, of {len(self.rules)}")
        table = display.html_table(" ".join(self.summary), heads, self._rows())
        return table + str(self[0]._repr_html_())

    def _rows(self) -> list[tuple[str, ...]]:
        """The rules that occur most, and in which share of the models."""
        rows = []
        for r in np.argsort(-self.occurrences, kind="stable")[:_SHOWN].tolist():
            figures = [display.share_text(float(self.occurrences[r] / len(self)))]
            if self.weight_ranges is not None:
                ends = [display.weight_text([end]) for end in self.weight_ranges[r].tolist()]
                figures.append(" to ".join(dict.fromkeys(ends)))
            rows.append((*figures, self.rules.describe(r)))
        return rows
