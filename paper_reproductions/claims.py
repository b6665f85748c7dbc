"""What a paper claims against what was measured: numbers with intervals, and one rule that makes
a verdict of them.

A sentence of a paper becomes `Comparison` s: a number (a difference, a ratio, a share) with its
95 % interval, and where the sentence says that the number lies. The verdict follows from how many
of these intervals lie there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Verdict = Literal["confirmed", "in part", "not confirmed", "not measured"]
Outcome = Literal["shown", "against", "undecided"]

LEVEL = 0.95
"""Of the intervals; nothing is corrected for their number."""
FEW = 10
"""Comparisons that are listed one by one; of more, those that are not shown."""

RULE = f"""
Each sentence is made into comparisons: a number of ours and the side of a bound on which the
sentence places it. A comparison is shown if its whole {LEVEL:.0%} interval, in square brackets,
lies on that side, against if the whole interval lies elsewhere, and undecided otherwise. A claim is
confirmed if as many comparisons are shown as its words ask for (all, unless they say "most" or a
number); in part if fewer are shown, but more than are against; and not confirmed otherwise. Numbers
without brackets have no sampling error here. No interval is corrected for the number of comparisons.
"""


@dataclass(frozen=True)
class Estimate:
    """A number and the ends of its 95 % interval, all equal for one without sampling error."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Estimate:
        """The estimate of a positive multiple, such as per cent of a share."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)


def exactly(value: float) -> Estimate:
    """A number that no sample enters, such as a certified optimum on the paper's rows."""
    return Estimate(value, value, value)


def mean(values: Sequence[float] | NDArray[np.float64]) -> Estimate:
    """The mean and its t interval; of fewer than two values it is not bounded."""
    from scipy import stats

    array = np.asarray(values, np.float64)
    if len(array) < 2:
        return Estimate(float(array.mean()) if len(array) else math.nan, -math.inf, math.inf)
    centre, error = float(array.mean()), float(array.std(ddof=1) / math.sqrt(len(array)))
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(array) - 1)) * error
    return Estimate(centre, centre - half, centre + half)


def geometric_mean(values: Sequence[float] | NDArray[np.float64]) -> Estimate:
    """Of positive ratios, with the t interval of their logarithms."""
    found = mean(np.log(values))
    return Estimate(math.exp(found.value), math.exp(found.low), math.exp(found.high))


def median(values: Sequence[float] | NDArray[np.float64]) -> Estimate:
    """The median between the closest order statistics that bound it with 95 %: of ten values the
    2nd and the 9th (98 %). Values may be infinite. Of fewer than six values it is not bounded.
    """
    from scipy import stats

    ordered = np.sort(np.asarray(values, np.float64))
    n = len(ordered)
    # P(x_(k) < median < x_(n + 1 - k)) = 1 - 2 P(Binomial(n, 1/2) < k): ppf is the largest such k.
    k = int(stats.binom.ppf((1 - LEVEL) / 2, n, 0.5)) if n else 0
    centre = float(np.median(ordered)) if n else math.nan
    if k < 1:
        return Estimate(centre, -math.inf, math.inf)
    return Estimate(centre, float(ordered[k - 1]), float(ordered[n - k]))


def share(hits: int, total: int) -> Estimate:
    """A share with the interval of Clopper and Pearson."""
    from scipy import stats

    if not total:
        return Estimate(math.nan, 0.0, 1.0)
    tail = (1 - LEVEL) / 2
    low = float(stats.beta.ppf(tail, hits, total - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - tail, hits + 1, total - hits)) if hits < total else 1.0
    return Estimate(hits / total, low, high)


def against_printed(
    values: Sequence[float] | NDArray[np.float64], printed: float, spread: float, folds: int
) -> Estimate:
    """Our mean minus a printed one with its standard deviation over `folds`, with Welch's
    interval: the two are of other folds.
    """
    from scipy import stats

    array = np.asarray(values, np.float64)
    if len(array) < 2:
        return Estimate(
            float(array.mean() - printed) if len(array) else math.nan, -math.inf, math.inf
        )
    ours, theirs = float(array.var(ddof=1)) / len(array), spread**2 / folds
    difference = float(array.mean()) - printed
    if ours + theirs == 0:
        return exactly(difference)
    freedom = (ours + theirs) ** 2 / (ours**2 / (len(array) - 1) + theirs**2 / (folds - 1))
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * math.sqrt(ours + theirs)
    return Estimate(difference, difference - half, difference + half)


@dataclass(frozen=True)
class Comparison:
    """One number that a sentence speaks of.

    Attributes:
        what: the data set, the method or the size that it is of.
        estimate: the number.
        above, below: the open interval in which the sentence places it.
        form: how the number is printed, for `format`.
    """

    what: str
    estimate: Estimate
    above: float = -math.inf
    below: float = math.inf
    form: str = "+.3f"

    @property
    def outcome(self) -> Outcome:
        """Where the interval lies."""
        found = self.estimate
        inside = self.above < found.low or self.above == -math.inf
        if inside and (found.high < self.below or self.below == math.inf):
            return "shown"
        if found.high <= self.above or found.low >= self.below:
            return "against"
        return "undecided"

    def __str__(self) -> str:
        found = self.estimate
        text = f"{self.what} {found.value:{self.form}}"
        if found.low == found.high:
            return text
        return f"{text} [{found.low:{self.form}}, {found.high:{self.form}}]"


def counts(comparisons: Sequence[Comparison]) -> dict[Outcome, int]:
    """How many comparisons came out in each way."""
    outcomes = [one.outcome for one in comparisons]
    kinds: tuple[Outcome, ...] = ("shown", "against", "undecided")
    return {kind: outcomes.count(kind) for kind in kinds}


def verdict(comparisons: Sequence[Comparison], needed: int | None = None) -> Verdict:
    """See `RULE`.

    Args:
        comparisons: what the sentence says.
        needed: how many of them have to be shown; None: all.
    """
    found = counts(comparisons)
    if not comparisons:
        return "not measured"
    if found["shown"] >= (len(comparisons) if needed is None else needed):
        return "confirmed"
    return "in part" if found["shown"] > found["against"] else "not confirmed"


def in_words(comparisons: Sequence[Comparison], needed: int | None = None) -> str:
    """The numbers behind a verdict, exceptions first; arguments as for `verdict`."""
    if not comparisons:
        return "No cell is finished."
    found = counts(comparisons)
    asked = "" if needed is None else f" ({needed} are claimed)"
    parts = [f"Shown in {found['shown']} of {len(comparisons)}{asked}."]
    for outcome, said in (("against", "Against"), ("undecided", "Undecided"), ("shown", "Shown")):
        there = [one for one in comparisons if one.outcome == outcome]
        if there and (outcome != "shown" or len(comparisons) <= FEW):
            parts.append(f"{said}: {'; '.join(map(str, there))}.")
        elif there:
            parts.append(f"{said}: {_ranges(there)}.")
    return " ".join(parts)


def _ranges(comparisons: Sequence[Comparison]) -> str:
    """The least and the largest number of many comparisons, by how they are printed."""
    forms = dict.fromkeys(one.form for one in comparisons)
    parts = [sorted((o for o in comparisons if o.form == f), key=_value) for f in forms]
    return "; ".join(f"from {part[0]} to {part[-1]}" for part in parts)


def _value(comparison: Comparison) -> float:
    return comparison.estimate.value
