"""How much noise a list leaves, and the penalty that follows: see docs/defaults.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

Floats = NDArray[np.float64]

SMALL_PENALTY, LARGE_PENALTY = 1.0, 4.0
"""The default penalties of a literal: with little noise, and with more."""
LITTLE = 0.2
"""The share of the errors that a list with the small penalty leaves if there is little noise."""
_MOST_BY_CHANCE = 0.15
"""A literal corrects about one error by chance; at most this share counts as noise, so that a list
without errors is never called noisy.
"""
_MOST_WORDS = 0.5
"""A list whose literals take this share of what it explains, both in nats, is called noisy, however
few errors it leaves: noise of hundreds of columns has lists almost without errors.
"""
_ROWS_OF_ALL = 20.0
"""If there is noise, this weight of rows, with the class shares of all rows, is added to the rows
of every rule.
"""
_ROUNDS = 4
"""The most searches with falling penalties."""

FoundT = TypeVar("FoundT")


class Left(NamedTuple):
    """What a list leaves.

    Attributes:
        errors: the weight of misclassified rows.
        literals: their number.
        of: the errors of predicting the heaviest class.
        right: the weight of the rows that the learned rules and the default classify correctly.
        second: the weight of the heaviest other class of each of these, summed.
        rows: the weight of all rows that they decide.
        explained: by how many nats the rules shorten the description of the classes of these rows.
    """

    errors: float
    literals: float
    of: float
    right: float
    second: float
    rows: float
    explained: float = 0.0

    @classmethod
    def of_list(
        cls, decided: Floats, labels: NDArray[np.integer], literals: float, first: int = 0
    ) -> Left:
        """What a list leaves.

        Args:
            decided: the weight of every class among the rows that each rule, and the default,
                decides, (rules + 1, classes).
            labels: of these, (rules + 1,).
            literals: the number of the learned rules'.
            first: the number of rules before the learned ones.
        """
        at = np.arange(len(labels)), labels
        right, others, totals = decided[at], decided.copy(), decided.sum(axis=0)
        others[at] = 0.0
        return cls(
            float(totals.sum() - right.sum()),
            literals,
            float(totals.sum() - totals.max()),
            float(right[first:].sum()),
            float(others[first:].max(axis=1).sum()),
            float(decided[first:].sum()),
            float(_nats(decided[first:].sum(axis=0)) - _nats(decided[first:]).sum()),
        )

    def words(self, literals: int) -> float:
        """The nats that name the list's literals among so many, over those that it explains
        (minimum description length, Rissanen 1978).
        """
        return self.literals * math.log(literals) / self.explained if self.explained > 0 else 0.0

    def by_chance(self, literals: int) -> float:
        """What the best of so many literals without effect gains.

        A rule that relabels w rows of which shares p1 and p2 have the old and the new label gains
        w (p2 - p1) on average, with a variance of w v, v = p1 + p2 - (p1 - p2)^2. The best of m
        such rules lies sqrt(2 log m) deviations higher, and w is at most half of the rows.
        """
        p1, p2 = self.right / self.rows, self.second / self.rows
        lost, variance = max(p1 - p2, 0.0), p1 + p2 - (p1 - p2) ** 2
        squared = 2 * math.log(literals) * variance
        most = self.rows / 2
        if lost > 0 and squared < 4 * lost**2 * most:
            return squared / (4 * lost)
        return math.sqrt(squared * most) - lost * most


def _nats(counts: Floats) -> NDArray[np.float64]:
    """What the classes of so many rows of each class take, (..., classes)."""
    return np.asarray(
        xlogy(counts.sum(axis=-1), counts.sum(axis=-1)) - xlogy(counts, counts).sum(-1)
    )


class Penalty(NamedTuple):
    """The penalty on a literal.

    Attributes:
        value: the weight of rows that a literal must gain.
        chosen: why it was chosen from the data; empty if it was given.
        noisy: whether it was chosen for much noise.
    """

    value: float
    chosen: str = ""
    noisy: bool = False

    @classmethod
    def by_noise(cls, left: Left, literals: int = 1, stopped: bool = False) -> Penalty:
        """The penalty chosen after a list with the small one.

        Args:
            left: what that list leaves.
            literals: that it was made of, 1 if their number is unknown.
            stopped: whether there is no time for another list.
        """
        share = left.errors / left.of
        noisy = share + min(left.literals / left.of, _MOST_BY_CHANCE) >= LITTLE
        noisy = (noisy or left.words(literals) >= _MOST_WORDS) and not stopped
        value = LARGE_PENALTY if noisy else SMALL_PENALTY
        why = (
            f"a list with penalty {SMALL_PENALTY:g} leaves {share:.0%} of the errors of predicting"
        )
        return cls(
            value,
            f"literal_penalty={value:g}: {why} the majority class (literals: {left.literals:g})",
            noisy,
        )

    def search(
        self,
        search: Callable[[float], FoundT],
        left: Callable[[FoundT], Left],
        none: Left,
        trial: Left,
        literals: int,
        stopped: Callable[[], bool],
    ) -> tuple[Penalty, FoundT]:
        """Search with what the best of so many literals gains by chance, but at least this penalty:
        first beside no rule, then beside the list before, while that is less. If no rule is found,
        literals may gain only together, as in a parity: then beside the list of the small penalty,
        and the list before, while that is more.

        Args:
            search: what it finds with a penalty.
            left: what that leaves.
            none: what no rule leaves.
            trial: what the list with the small penalty leaves.
            literals: to choose from.
            stopped: whether there is no time for another search.
        """

        def beside(rest: Left) -> Penalty:
            value = float(f"{rest.by_chance(literals):.2g}")
            if value <= self.value:
                return self
            return Penalty(
                value,
                f"literal_penalty={value:g}: as much as the best of {literals} literals gains by "
                f"chance where {rest.errors / rest.of:.0%} of the errors of predicting the "
                "majority class are left",
                self.noisy,
            )

        penalty = beside(none)
        found = search(penalty.value)
        for _ in range(_ROUNDS - 1):
            lower = beside(left(found))
            if stopped() or lower.value > 0.9 * penalty.value:
                break
            penalty, found = lower, search(lower.value)
        if left(found).literals:
            return penalty, found
        higher, rest = beside(trial), trial
        for _ in range(_ROUNDS):
            if stopped() or not rest.literals or higher.value >= penalty.value:
                break
            other = search(higher.value)
            rest = left(other)
            if beside(rest).value <= higher.value and rest.words(literals) < _MOST_WORDS:
                return higher, other
            higher = beside(rest)
        return penalty, found

    @property
    def shrinkage(self) -> float | None:
        """The weight of rows with the shares of all rows that joins the rows of every rule; None
        for one row of each class, see `jaxrules.lists.first_rules.FirstRules.before`.
        """
        return _ROWS_OF_ALL if self.noisy else None
