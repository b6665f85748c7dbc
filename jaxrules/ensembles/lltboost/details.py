"""What a fit reports with its model: how each rule was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.tools.fits import Details

Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """How one proposition of a rule was found.

    Attributes:
        coefficients: w in standardised columns, by name of the column. The scale of w and t
            together is arbitrary.
        threshold: t, in standardised columns.
        penalty: the smallest penalty with this support, as a share of the penalty of the empty
            support; NaN if `cut_from_one_column`.
        skipped: support sizes up to the largest allowed that do not occur on the path of penalties.
    """

    coefficients: Mapping[str, float]
    threshold: float
    penalty: float
    skipped: tuple[int, ...]

    @property
    def cut_from_one_column(self) -> bool:
        """Whether it is the best cut of a single column, not of logistic regression: by
        `axis_parallel`, or because there was no time to compile the search.
        """
        return math.isnan(self.penalty)


@dataclass(frozen=True)
class Stage:
    """How one rule was found.

    Attributes:
        sign: sign of the sum of gradients that the rule selects; its weight, when added, has the
            opposite sign.
        objective: |g'q| (Eq. 10), with weights of the training part that sum to one; |G'q| for
            classes fitted together.
        risk: mean loss of the ensemble on the held-out rows, less its smallest possible value; NaN
            for a rule on a single column, made because there was no time to compile the search.
        parts: the propositions.
        seconds: seconds of the search.
        of_class: for classes fitted together, the class for whose gradient the rule was grown, and
            to which `sign` refers.
    """

    sign: int
    objective: float
    risk: float
    parts: tuple[Part, ...]
    seconds: float
    of_class: Any = None


@dataclass(frozen=True, kw_only=True, eq=False)
class LLTBoostDetails(Details):
    """What a fit reports with its model.

    Attributes:
        stages: one per rule that was found.
        validation_rows: which rows of positive weight were held out, shape (rows,).
        reason: why there are no more rules.
        gains: what each found rule raised the log-likelihood by beyond what a smaller ridge of the
            rules before would have raised it, see `jaxrules.ensembles.size`; empty unless
            `max_rules` is "auto".
        l2_penalty: the ridge of the last refit.
        chosen: why the data chose this ridge; empty if it was given.
        sample: the number of rows that the rules come from; None for all. There are no stages if
            the time limit was too short for all rows.
    """

    stages: tuple[Stage, ...]
    validation_rows: Rows
    reason: str
    gains: tuple[float, ...] = ()
    l2_penalty: float
    chosen: str = ""
    sample: int | None = None

    @property
    def cut_from_one_column(self) -> tuple[int, ...]:
        """The stages with a proposition that is the best cut of a single column, see `Part`."""
        return tuple(
            k
            for k, stage in enumerate(self.stages)
            if any(part.cut_from_one_column for part in stage.parts)
        )
