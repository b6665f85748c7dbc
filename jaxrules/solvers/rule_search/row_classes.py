"""Rows with equal terms.

The terms of a row follow from its target and the rules that hold for it. With two targets, a
million rows have only some dozens of different terms after a few rules. The sums over any set of
rows then follow from the number of rows of each class in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.tools.bits import distinct, pack

Floats = NDArray[np.float64]
_ROWS_PER_CLASS = 500
"""With fewer rows per class, on average, terms row by row are as fast."""
_SAMPLE = 1000
"""The number of rows whose slopes are looked at first."""


class RowTerms(NamedTuple):
    """The terms of all rows.

    Attributes:
        terms: (sums, rows), or of classes of rows with equal terms, (sums, classes).
        of_rows: the class of every row, (rows,); None for terms of rows.
    """

    terms: Floats
    of_rows: NDArray[np.uint16] | None = None

    def over(self, rows: NDArray[np.bool_]) -> Floats:
        """The sums over some rows, (sums,)."""
        if self.of_rows is None:
            return np.asarray(self.terms[:, rows].sum(axis=1))
        return self.terms @ np.bincount(self.of_rows[rows], minlength=self.terms.shape[1])

    def inside(self, rows: NDArray[np.bool_]) -> RowTerms:
        """Those of some rows; 0 for all others."""
        if self.of_rows is None:
            return RowTerms(self.terms * rows)
        none = self.terms.shape[1]
        nothing = np.zeros((len(self.terms), 1))
        of_rows = np.where(rows, self.of_rows, np.uint16(none))
        return RowTerms(np.append(self.terms, nothing, axis=1), of_rows)


def classes_of(
    gradient: Floats, curvature: Floats, found: NDArray[np.bool_]
) -> tuple[NDArray[np.uint16], NDArray[np.intp]] | None:
    """The class of every row, and a row of each class: rows of a class have the same numbers and
    rules. None if there are more than a few classes.

    Args:
        gradient, curvature: (rows,).
        found: the rules on the rows, (rows, rules).
    """
    n = len(gradient)
    if n < _ROWS_PER_CLASS or len(np.unique(gradient[:_SAMPLE])) > _SAMPLE // 2:
        return None
    first, pattern = distinct(pack(found))
    if 2 * len(first) > min(n // _ROWS_PER_CLASS, np.iinfo(np.uint16).max):
        return None
    # Two targets: rows of a pattern differ in the sign of the slope.
    code = 2 * pattern + (gradient > 0.0)
    of_code = np.full(2 * len(first), -1)
    of_code[code] = np.arange(n)
    occurs = of_code >= 0
    rows = of_code[occurs]
    of_rows = (np.cumsum(occurs) - 1).astype(np.uint16)[code]
    same = (gradient[rows][of_rows] == gradient).all() and (
        curvature[rows][of_rows] == curvature
    ).all()
    return (of_rows, rows) if same else None
