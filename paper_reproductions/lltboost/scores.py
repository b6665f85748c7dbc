"""From models to the numbers of Tables 2 and 3: complexity at a risk target,
risk at a complexity target.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from paper_reproductions.framework import Rows
from paper_reproductions.lltboost.published import Interval

Floats = NDArray[np.float64]


def interval(values: Sequence[float] | Floats, share: float) -> Interval:
    """Median, and the order statistics at this share of the sample from either end:
    0.4 of ten are 4th and 7th.
    """
    ordered = np.sort(values)
    k = max(0, round(share * len(ordered)) - 1)
    return float(ordered[k]), float(np.median(ordered)), float(ordered[len(ordered) - 1 - k])


def half_width(found: Interval) -> float:
    """Of an interval without an end: from its other end to the median; 0
    if the median is infinite.
    """
    low, median, high = found
    if math.isinf(median):
        return 0.0
    return median - low if math.isinf(high) else (high - low) / 2


@functools.cache
def _median_error(share: float, size: int) -> float:
    """The standard deviation of the median of a normal sample, over half the expected distance
    between these order statistics; from random samples.
    """
    samples = np.sort(np.random.default_rng(0).standard_normal((100_000, size)), axis=1)
    k = max(0, round(share * size) - 1)
    half = (samples[:, size - 1 - k] - samples[:, k]).mean() / 2
    return float(np.median(samples, axis=1).std() / half)


def z_of(
    ours: Interval, paper: Interval, share: float, size: int, paper_size: int
) -> tuple[float, float]:
    """The difference of two medians in standard errors, and that error; `size` and `paper_size` are
    numbers of repetitions. A median's error is taken from its order statistics.
    """
    error = math.hypot(
        _median_error(share, size) * half_width(ours),
        _median_error(share, paper_size) * half_width(paper),
    )
    difference = ours[1] - paper[1]
    if difference == 0:
        return 0.0, error
    return (difference / error if error else math.copysign(math.inf, difference)), error


def complexity_at(models: Rows, risk: float, measure: str) -> float:
    """The smallest complexity of a model that is no worse than this risk; infinity if none is."""
    reached = [row["complexity"] for row in models if row[measure] <= risk]
    return float(min(reached, default=math.inf))


def risk_at(models: Rows, complexity: float, measure: str) -> float:
    """The risk of the largest model that is no more complex; infinity if none is."""
    small = [(row["complexity"], row[measure]) for row in models if row["complexity"] <= complexity]
    return float(max(small)[1]) if small else math.inf


def per_repetition(rows: Rows, score: Callable[[Rows], float]) -> list[float]:
    """The score of a method's models in every repetition, at the oracle's choice:
    that of the smallest median.

    Choices without all repetitions do not count.
    """
    repeats = rows.values("repeat")
    found = []
    for oracle in rows.values("oracle"):
        chosen = rows.where(oracle=oracle)
        if chosen.values("repeat") == repeats:
            found.append([score(chosen.where(repeat=repeat)) for repeat in repeats])
    return min(
        found, key=lambda values: (np.median(values), np.mean(np.minimum(values, 1e9))), default=[]
    )


def mean_risk(rows: Rows, measure: str) -> float | None:
    """The risk target that a method sets: its mean over all repetitions and
    sizes, at the oracle's choice.
    """
    means = [rows.where(oracle=oracle).mean(measure) for oracle in rows.values("oracle")]
    return min((mean for mean in means if mean is not None), default=None)


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(np.mean(np.log(ratios)))


def chance_of_median(
    values: Sequence[float], size: int, limit: float, draws: int = 20_000
) -> float:
    """How often the median of `size` values drawn from these is above the limit."""
    drawn = np.random.default_rng(0).choice(np.asarray(values, np.float64), (draws, size))
    return float(np.mean(np.median(drawn, axis=1) > limit))
