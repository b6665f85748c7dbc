"""How much noise a first list leaves, and what follows for the list: see docs/defaults.md."""

from __future__ import annotations

from typing import NamedTuple

SMALL_PENALTY, LARGE_PENALTY = 1.0, 4.0
"""The default penalties of a literal: with little noise, and with more."""
LITTLE = 0.2
"""The share of the errors that a list with the small penalty leaves if there is little noise."""
_MOST_BY_CHANCE = 0.15
"""A literal corrects about one error by chance; at most this share counts as noise, so that a list
without errors is never called noisy.
"""
_ROWS_OF_ALL = 20.0
"""If there is noise, this weight of rows, with the class shares of all rows, is added to the rows
of every rule.
"""


class Left(NamedTuple):
    """What a list leaves.

    Attributes:
        errors: the weight of misclassified rows.
        literals: their number.
        of: the errors of predicting the heaviest class.
    """

    errors: float
    literals: float
    of: float


class Penalty(NamedTuple):
    """The penalty on a literal.

    Attributes:
        value: the weight of rows that a literal must gain.
        chosen: why it was chosen from the data; empty if it was given.
    """

    value: float
    chosen: str = ""

    @classmethod
    def by_noise(cls, left: Left, stopped: bool = False) -> Penalty:
        """The penalty chosen after a list with the small one.

        Args:
            left: what that list leaves.
            stopped: whether there is no time for another list.
        """
        share = left.errors / left.of
        noise = share + min(left.literals / left.of, _MOST_BY_CHANCE)
        value = SMALL_PENALTY if noise < LITTLE or stopped else LARGE_PENALTY
        why = (
            f"a list with penalty {SMALL_PENALTY:g} leaves {share:.0%} of the errors of predicting"
        )
        return cls(
            value,
            f"literal_penalty={value:g}: {why} the majority class (literals: {left.literals:g})",
        )

    @property
    def shrinkage(self) -> float | None:
        """The weight of rows with the shares of all rows that joins the rows of every rule; None
        for one row of each class, see `jaxrules.lists.first_rules.FirstRules.before`.
        """
        return _ROWS_OF_ALL if self.chosen and self.value == LARGE_PENALTY else None
