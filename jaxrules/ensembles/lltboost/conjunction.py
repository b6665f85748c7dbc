"""An unfinished conjunction, with what is known of its propositions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.lltboost.proposals import Proposals

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]


class Proposition(NamedTuple):
    """w'x + b >= 0, in standardised columns.

    Attributes:
        w: (columns,), padded with zeros.
        admits: whether a row with a missing number satisfies it.
        penalty, skipped: see `Part`.
    """

    w: Floats
    b: float
    admits: bool
    penalty: float
    skipped: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Conjunction:
    """An unfinished conjunction.

    Attributes:
        sign: zeta.
        rows: which rows satisfy it.
        objective: |g'q|.
        risk: held-out risk of the ensemble with it.
        of_class: the class whose gradient is g, for classes fitted together.
    """

    sign: int
    rows: Rows
    objective: float
    risk: float
    parts: tuple[Proposition, ...] = ()
    of_class: int = 0

    def extended(self, answer: Proposals, s: int) -> Conjunction:
        """This conjunction with the answered proposition of support size s + 1."""
        part = Proposition(
            answer.coefficients[s],
            float(answer.intercepts[s]),
            bool(answer.admits[s]),
            float(answer.penalties[s]),
            tuple((np.flatnonzero(~answer.found) + 1).tolist()),
        )
        return Conjunction(
            self.sign, answer.rows[s], float(answer.objective[s]), float(answer.risk[s]),
            (*self.parts, part), self.of_class,
        )  # fmt: skip

    def price(self, risk_tolerance: float) -> float:
        """The risk, with every column in a proposition priced at `risk_tolerance`."""
        nonzeros = sum(np.count_nonzero(part.w) for part in self.parts)
        # A step of Algorithm 1 accepts R' <= (1 + eps_s) R. Over several columns these factors
        # multiply, so that R (1 + eps_s)^-nonzeros is what each step compares. With eps_s = -1
        # nothing would be left to compare: -0.999.
        return self.risk * (1 + max(risk_tolerance, -0.999)) ** -nonzeros
