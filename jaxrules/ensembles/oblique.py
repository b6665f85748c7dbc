"""Propositions on linear combinations of columns: standardised columns for solvers, readable
conditions for people.

A solver works on `Standardised` columns: numbers and one indicator per category, with mean 0 and
standard deviation one. It finds w and b of the proposition w'x + b >= 0. `readable` writes the same
on the original columns, with one weight equal to 1 and the fewest digits that change the result for
no training row: ``2 variance + skewness >= -0.3``. A column whose numbers are far from 0 is
measured from a round number among them: ``47 (year - 2000) + power >= 850``, not ``47 year + power
>= 94850``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import COMPARED, MANY_CATEGORIES, MISSING, EncodedColumn, Table
from jaxrules.rules.conditions import Condition, whole_thresholds
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.lowered import Direction, Directions
from jaxrules.rules.rows import check_memory
from jaxrules.solvers.layered import never
from jaxrules.tools.display import shortest_number

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

FEWER_COLUMNS = "group categories, or use fewer rows or columns"
"""The remedy if the columns, with an indicator per category, do not fit in memory."""
_MOST_TERMS = 4096
"""Terms that are written with each number of digits, unless there are more in one."""
_ENOUGH_DIGITS = 17
"""Significant digits that distinguish all float64 numbers."""
_QUICK = 1 << 20
"""The most numbers to sort for a cut if there is no time for a search."""
_FAR = 10.0
"""A column is far from 0 if its median exceeds its typical deviation by this ratio."""
_NEAR = 4096
"""The rows next to a threshold that are tried first."""
_LEAST_SCALE = 1e-300
"""The least standard deviation of a column; below it, the weight on the original column would
overflow.
"""


@dataclass(frozen=True, eq=False)
class Standardised:
    """The columns of a table for linear models, without constant columns.

    Attributes:
        values: float64 (columns, rows): centred and scaled; 0, the mean, for a missing number.
        missing: (columns, rows) bool, whether a number is missing; (0, rows) if none is.
        encoded: the feature, or category of a feature, of each column.
        centre, scale: (columns,) weighted mean and standard deviation of the column.
    """

    values: Floats
    missing: Rows
    encoded: tuple[EncodedColumn, ...]
    centre: Floats
    scale: Floats

    def directions(self, constraints: Constraints) -> NDArray[np.int_]:
        """The `monotone` direction of each column: 1, -1, or 0 for none, (columns,)."""
        directions = dict(constraints.monotone)
        return np.array([directions.get(column.feature, 0) for column in self.encoded], int)

    def best_cut(
        self, gradients: Floats, signs: NDArray[np.int_] | None = None
    ) -> tuple[int, float] | None:
        """The column and cut point with the largest sum of gradients beyond the cut, if there is no
        time for a search; None if no column varies.

        Args:
            gradients: (outputs, rows). Large data are sampled.
            signs: the required sign of that sum, 1 or -1, or 0 for any, (outputs, columns).
        """
        step = 1 + self.values.size // _QUICK
        order = np.argsort(self.values[:, ::step], axis=1)
        values = np.take_along_axis(self.values[:, ::step], order, axis=1)
        some = gradients[:, ::step]
        # Centred, the sum beyond a cut is minus the sum below it, and their sizes are equal.
        below = np.cumsum((some - some.mean(axis=1, keepdims=True))[:, order], axis=2)[..., :-1]
        gains = np.abs(below).sum(axis=0)
        # Neither between equal values nor with a forbidden sign beyond is there a cut.
        gains[values[:, 1:] <= values[:, :-1]] = 0.0
        if signs is not None:
            gains[(signs[..., None] * below > 0).any(axis=0)] = 0.0
        if not gains.any():
            return None
        j, k = np.unravel_index(int(gains.argmax()), gains.shape)
        return int(j), float(values[j, k : k + 2].mean())

    @classmethod
    def of(cls, table: Table, weights: Floats) -> Standardised:
        """The standardised columns of a table under row weights.

        Raises:
            ValueError: for a column that varies too little.
        """
        check_memory(table.n_rows, n_encoded(table), 25.0, what="columns", remedy=FEWER_COLUMNS)
        matrix, encoded = table.one_hot(only_compared=True)
        values, missing = np.ascontiguousarray(matrix.T), np.isnan(matrix.T)
        centre, scale = np.zeros(len(values)), np.zeros(len(values))
        for column, absent, j in zip(values, missing, range(len(values)), strict=True):
            known = ~absent & (weights > 0)
            some = column if known.all() else column[known]
            low, high = some.min(initial=np.inf), some.max(initial=-np.inf)
            if low >= high:
                continue
            share = np.where(known, weights, 0.0) / weights[known].sum()
            largest = max(high, -low)  # so that no square overflows or vanishes
            column /= largest
            column[absent] = 0.0
            centre[j] = share @ column
            column -= centre[j]
            column[absent] = 0.0
            scale[j] = math.sqrt(share @ column**2)
            column /= scale[j]
            centre[j], scale[j] = centre[j] * largest, scale[j] * largest
            if scale[j] < _LEAST_SCALE:
                name = table.schema.names[encoded[j].feature]
                raise ValueError(
                    f"column {name!r} of X varies by only {scale[j]:.1g}; multiply it by a constant"
                )
        kept = np.flatnonzero(scale > 0)
        absent = missing[kept] if missing.any() else np.zeros((0, table.n_rows), bool)
        return cls(values[kept], absent, tuple(encoded[j] for j in kept), centre[kept], scale[kept])

    @cached_property
    def _origins(self) -> dict[int, float]:
        return {}

    def origins(self, on: NDArray[np.int_]) -> Floats:
        """For each of these columns whose numbers are far from 0 relative to their spread, a round
        number near their median, else 0, (len(on),). Percentiles take long on many rows, and rules
        use few of the columns.
        """
        for j in set(on.tolist()) - self._origins.keys():
            self._origins[j] = self._origin(j)
        return np.array([self._origins[j] for j in on.tolist()])

    def _origin(self, j: int) -> float:
        if self.encoded[j].category is not None:
            return 0.0
        z = self.values[j]
        if len(self.missing):
            z = z[~self.missing[j]]
        # With 0 between the percentiles below, the median is near it; counting is quicker.
        tail, zero = 0.05 * len(z) + 1, -self.centre[j] / self.scale[j]
        if np.count_nonzero(z < zero) > tail and np.count_nonzero(z > zero) > tail:
            return 0.0
        percentiles = self.centre[j] + self.scale[j] * np.percentile(z, [5, 50, 95])
        low, middle, high = percentiles.tolist()
        spread = (high - low) / 2
        if not 0 < _FAR * spread < abs(middle):
            return 0.0
        return shortest_number(middle, middle - spread, middle + spread)

    def names(self, table: Table) -> list[str]:
        """The names of the columns."""
        alone = [Direction((f,), (1.0,), (_code(c),)) for f, c in self.encoded]
        return [one.describe(table.schema) for one in alone]


def n_encoded(table: Table) -> int:
    """The number of numeric columns and of indicators of categories that learners compare with."""
    sizes = [len(f.categories or ()) for f in table.schema.features]
    return sum(1 + (size if size <= MANY_CATEGORIES else COMPARED) for size in sizes)


def readable(
    columns: Standardised,
    table: Table,
    w: Floats,
    b: float,
    missing: bool,
    among: Rows,
    stopped: Callable[[], bool] = never,
) -> tuple[Condition, Rows]:
    """The proposition w'x + b >= 0 as a condition on the original columns, with as few digits as
    the rows allow.

    A proposition on one number or one category becomes a plain condition. Otherwise one of the
    weights becomes 1, the others get the fewest significant digits for which some threshold keeps
    every row on its side, and the threshold then gets the fewest decimals. The weight that becomes
    1 is the one that gives the shortest text.

    Args:
        columns: the standardised columns of the table.
        table: the rows.
        w: (columns,) standardised coefficients, at least one not 0.
        b: the intercept.
        missing: whether a row with a missing number in the proposition satisfies it.
        among: the rows that must stay on their side, (rows,).
        stopped: checked between trials; if True, the weights keep their digits.

    Returns:
        The condition, and which rows satisfy it, (rows,).
    """
    terms = sorted((c.feature, _code(c.category), j) for j, c in enumerate(columns.encoded) if w[j])
    on = np.array([j for _, _, j in terms])
    encoded = [columns.encoded[j] for j in on]
    margin = w @ columns.values + b
    holds = margin >= 0
    # w'((x - centre) / scale) + b >= 0 is weights'(x - origin) >= weights'(centre - origin) - b.
    weights = w[on] / columns.scale[on]
    # The first weight is written as positive: otherwise both sides change sign, and >= becomes <=.
    side = 1.0 if weights[0] > 0 else -1.0
    if len(on) > 1:
        features = tuple(c.feature for c in encoded)
        codes = tuple(_code(c.category) for c in encoded)
        origins = columns.origins(on)
        threshold = float(weights @ (columns.centre[on] - origins)) - b
        made = partial(_direction, features, codes, tuple(origins.tolist()), side * weights)
        # Too few digits show in the rows next to the threshold.
        distance = np.where(among, np.abs(margin), np.inf)
        near = np.argpartition(distance, min(_NEAR, len(distance) - 1))[:_NEAR]
        few, near_holds, near_among = table[near], holds[near], among[near]
        units = _units(weights)
        for digits in range(_ENOUGH_DIGITS):
            directions = [made(unit, digits) for unit in units]
            lengths = [_length(direction) for direction in directions]
            found: tuple[int, int, Floats, float] | None = None
            for u in sorted(range(len(units)), key=lambda u: lengths[u]):
                # With its threshold, none of the rest is shorter than what was found.
                if stopped() or (found and lengths[u] > found[0]):
                    break
                pool = Directions.build([directions[u]])
                if _gap(side * pool.project(0, few), near_holds, near_among) is None:
                    continue
                values = pool.project(0, table)
                if (gap := _gap(side * values, holds, among)) is not None:
                    cut = shortest_number(threshold / units[u], *gap)
                    one = (_length(directions[u], cut), u, values, cut)
                    found = one if found is None or one[:2] < found[:2] else found
            if found:
                _, u, values, cut = found
                return _interval(directions[u], values, side, cut, missing)
        # Rows on the two sides of the threshold differ only by rounding, or time ran out.
        direction = made(units[0], _ENOUGH_DIGITS)
        values = Directions.build([direction]).project(0, table)
        return _interval(direction, values, side, threshold / units[0], missing)
    feature, code = encoded[0]
    values = table.columns[feature]
    if code is None:
        # side x >= (weight centre - b) / |weight|
        threshold = (float(weights[0] * columns.centre[on[0]]) - b) / abs(float(weights[0]))
        gap = _gap(side * values, holds, among) or (-math.inf, math.inf)
        short = np.array([shortest_number(threshold, *gap)])
        whole = float(whole_thresholds(short, values, below=False)[0])
        return _interval(feature, values, side, whole, missing)
    if side > 0:
        return Condition.one_of(feature, [code]), values == code
    n = len(table.schema.features[feature].categories or ())
    return Condition.none_of(feature, [code], n), values != code


def _units(weights: Floats) -> list[float]:
    """The absolute weights by which all weights can be divided without overflow; of many weights,
    some of all sizes.
    """
    sizes = np.unique(np.abs(weights))
    most = max(1, _MOST_TERMS // len(weights))
    if len(sizes) > most:
        sizes = sizes[np.linspace(0, len(sizes) - 1, most).astype(int)]
    with np.errstate(over="ignore", under="ignore"):
        kept = [u for u in sizes.tolist() if np.isfinite(weights / u).all() and (weights / u).all()]
    return kept or [1.0]


def _direction(
    features: tuple[int, ...],
    codes: tuple[int, ...],
    origins: tuple[float, ...],
    weights: Floats,
    unit: float,
    digits: int,
) -> Direction:
    """The direction with weights in this unit, rounded to this number of digits after the first."""
    rounded = tuple(float(f"{w:.{digits}e}") for w in weights / unit)
    return Direction(features, rounded, codes, origins)


def _length(direction: Direction, *cut: float) -> int:
    """The length of the numbers, written without exponents, so that very small and large ones are
    avoided.
    """
    numbers = [w for w in (*direction.weights, *cut) if abs(w) != 1]
    return sum(len(np.format_float_positional(abs(w), trim="-")) for w in numbers)


def _interval(
    feature: int | Direction, values: Floats, side: float, threshold: float, missing: bool
) -> tuple[Condition, Rows]:
    """side * values >= threshold, and the rows that satisfy it; if no value is missing, a missing
    one will not satisfy it.
    """
    missing = missing and bool(np.isnan(values).any())
    make = Condition.at_least if side > 0 else Condition.at_most
    condition = make(feature, side * threshold, missing)
    return condition, np.where(np.isnan(values), missing, side * values >= threshold)


def _code(category: int | None) -> int:
    """The code that `Direction` uses."""
    return MISSING if category is None else category


def _gap(values: Floats, holds: Rows, among: Rows) -> tuple[float, float] | None:
    """The thresholds t, ``low < t <= high``, for which ``values >= t`` equals `holds`; None if
    there is none.
    """
    known = among & ~np.isnan(values)
    low = values[known & ~holds].max(initial=-math.inf)
    high = values[known & holds].min(initial=math.inf)
    return (float(low), float(high)) if low < high else None
