"""The model of survival: rules for hazards that are constant within intervals of time; for its
fits see `jaxrules.survival`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Feature, Schema, Table, TableLike
from jaxrules.models.persistence import register_model
from jaxrules.models.rule_models import RuleEnsemble, decision_function, rows_for
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Fit

Floats = NDArray[np.float64]

_LARGEST_RATIO = 1000.0
"""Larger ratios are printed as such: rows do not determine them."""
BLOCK = 2**17
"""Rows, or pairs of rows, that are held in memory at a time."""


def with_time(table: Table, column: str, values: Floats) -> Table:
    """The table with a further column of numbers."""
    schema, at = table.schema, len(table.schema.sources)  # before companions, which come last
    features = (*schema.features[:at], Feature(column), *schema.features[at:])
    never_missing = (*(f + (f >= at) for f in schema.never_missing), at)
    wider = replace(schema, features=features, never_missing=never_missing)
    return Table(wider, (*table.columns[:at], values, *table.columns[at:]))


class HazardRatio(NamedTuple):
    """By which factor the hazard changes where a rule holds, or per unit of a linear term.

    Attributes:
        text: the rule or column.
        ratio: exp(weight).
        lower, upper: its interval, see `SurvivalModel.hazard_ratios`.
    """

    text: str
    ratio: float
    lower: float
    upper: float


@register_model
@dataclass(frozen=True, eq=False, repr=False)
class SurvivalModel(display.Tabulated):
    """Hazards by rules; prints with hazard ratios.

    Attributes:
        rates: the ensemble of rules for log hazards, on the columns of `PersonPeriods.X`, for
            `jaxrules.explain`, `jaxrules.report` and exports.
        cuts: the starts of the intervals, shape (intervals,).
        column: the name of the column of starts.
        schema: of the persons' columns.
        covariance: of the intercept, the weights and the coefficients of linear terms, shape
            (1 + rules + terms, 1 + rules + terms), for these rules.
        fit: of the learner; None for a model from a file, which `jaxrules.save` writes without it.
    """

    rates: RuleEnsemble
    cuts: Floats = field(metadata={"dtype": np.float64})
    column: str
    schema: Schema
    covariance: Floats = field(metadata={"dtype": np.float64})
    fit: Fit[RuleEnsemble] | None = field(default=None, metadata={"saved": False})

    def validate(self) -> None:
        """Check shapes and ranges; a ValueError names what is wrong."""
        self.rates.validate()
        checks.require(self.rates.link == "log", "the link of survival rates must be 'log'")
        starts, n = self.cuts, 1 + len(self.rates.conjunctions)
        n += 0 if self.rates.linear is None else len(self.rates.linear.feature)
        ascending = starts.ndim == 1 and starts.size > 0 and starts[0] == 0
        ascending = ascending and bool(np.isfinite(starts).all() and (np.diff(starts) > 0).all())
        checks.require(ascending, "cuts must be finite and ascend from 0")
        fits = self.covariance.shape == (n, n) and bool(np.isfinite(self.covariance).all())
        checks.require(fits, f"covariance must be finite, of shape {(n, n)}")
        own = [feature.name for feature in self.schema.sources]
        rates = [feature.name for feature in self.rates.schema.sources]
        checks.require(
            rates == [*own, self.column],
            "the columns of the rates must be those of schema, and column",
        )

    def hazard(self, X: TableLike, times: ArrayLike) -> Floats:
        """The hazard at the end of (start, time], events per unit of time, shape (persons, times).

        Args:
            X: persons, with the columns of fit.
            times: positive, shape (times,).

        Raises:
            ValueError: if `X` or `times` does not fit.
        """
        interval = np.searchsorted(self.cuts, moments(times), side="left") - 1
        return np.concatenate([rates[:, interval] for rates, _ in self._blocks(X)])

    def cumulative_hazard(self, X: TableLike, times: ArrayLike) -> Floats:
        """The expected number of events from 0 until each time, shape (persons, times), as in
        `hazard`; a risk for `concordance`.
        """
        lengths = self._lengths(times)
        return np.concatenate([rates @ lengths for rates, _ in self._blocks(X)])

    def survival(self, X: TableLike, times: ArrayLike) -> Floats:
        """The probability of no event until each time, exp(-cumulative hazard), shape (persons,
        times), as in `hazard`.
        """
        return np.exp(-self.cumulative_hazard(X, times))

    def quantile(self, X: TableLike, level: float = 0.5) -> Floats:
        """The time until which a share `level` is without the event (0.5: the median), shape
        (persons,). Beyond the longest time of fit it is a guess, as the curve is.
        """
        share = checks.number("level", level)
        checks.require(0 < share < 1, f"level must be between 0 and 1, got {share}")
        found, total = [], -np.log(share)
        for rates, _ in self._blocks(X):
            at_start = np.cumsum(rates[:, :-1] * np.diff(self.cuts), axis=1)
            at_start = np.insert(at_start, 0, 0.0, axis=1)
            place = (at_start < total).sum(axis=1, keepdims=True) - 1
            begun, rate = (np.take_along_axis(one, place, 1)[:, 0] for one in (at_start, rates))
            found.append(self.cuts[place[:, 0]] + (total - begun) / rate)
        return np.concatenate(found)

    def survival_interval(
        self, X: TableLike, times: ArrayLike, *, level: float = 0.95
    ) -> tuple[Floats, Floats]:
        """Pointwise intervals of `survival`, two arrays of shape (persons, times).

        They are symmetric for the logarithm of the cumulative hazard, whose variance is that of the
        weights (the delta method). As those of `hazard_ratios` they take the rules as given.

        Args:
            X, times: as in `hazard`.
            level: of confidence, between 0 and 1.
        """
        z, lengths = _quantile(level), self._lengths(times)
        found: list[tuple[Floats, Floats]] = []
        for rates, design in self._blocks(X):
            total = rates @ lengths
            # d log H / d beta = sum_k h_k l_k z_k / H
            slopes = np.einsum("pk,kt,pkj->ptj", rates, lengths, design) / total[:, :, None]
            variance = np.einsum("ptj,jl,ptl->pt", slopes, self.covariance, slopes)
            width = z * np.sqrt(np.maximum(variance, 0.0))
            with np.errstate(over="ignore"):
                found.append((np.exp(-total * np.exp(width)), np.exp(-total * np.exp(-width))))
        lower, upper = zip(*found, strict=True)
        return np.concatenate(lower), np.concatenate(upper)

    def hazard_ratios(self, level: float = 0.95) -> tuple[HazardRatio, ...]:
        """The factors on the hazard, in the order of the rules, then of the linear terms; without
        those of weight 0.

        The intervals have the variance of maximum likelihood, or with weights that differ the
        robust one over persons (Lin and Wei 1989). They are those of a model whose rules were
        known: the same rows found the rules, so that they are too narrow, and a ratio far from 1
        may still be noise. Held-out persons give honest ones: `refit`.

        Args:
            level: of confidence, between 0 and 1.
        """
        z, model = _quantile(level), self.rates
        texts = [model.conjunctions.describe(r) for r in range(len(model.conjunctions))]
        weights = np.asarray(model.weights, np.float64)[:, 0]
        if model.linear is not None:
            names = model.conjunctions.schema.names
            texts += [display.plain(names[f]) for f in model.linear.feature.tolist()]
            weights = np.append(weights, np.asarray(model.linear.coefficients, np.float64)[:, 0])
        errors = np.sqrt(np.maximum(np.diag(self.covariance)[1:], 0.0))
        with np.errstate(over="ignore"):  # of what the rows do not determine: 0 to infinity
            ratios = np.exp(weights[:, None] + z * errors[:, None] * [0.0, -1.0, 1.0])
        return tuple(
            HazardRatio(text, *ratio)
            for text, w, ratio in zip(texts, weights.tolist(), ratios.tolist(), strict=True)
            if w
        )

    def tabulated(self) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
        base = display.number(float(np.exp(np.asarray(self.rates.intercept)[0])), 4)
        n = len(self.rates.conjunctions)
        title = (
            f"Survival model of {display.counted(n, 'rule')}: hazard = {base} * the ratios of the "
            f"rules that hold; {self.column} is the start of one of "
            f"{display.counted(len(self.cuts), 'interval')}"
        )
        rows: list[tuple[str, ...]] = [
            (_ratio(one.ratio), f"{_ratio(one.lower)} to {_ratio(one.upper)}", one.text)
            for one in self.hazard_ratios()
        ]
        return title, ("ratio", "95 %", "where"), rows

    def _lengths(self, times: ArrayLike) -> Floats:
        """The time in each interval until each of the times, shape (intervals, times)."""
        ends = np.append(self.cuts[1:], np.inf)
        return np.clip(moments(times), self.cuts[:, None], ends[:, None]) - self.cuts[:, None]

    def _blocks(self, X: TableLike) -> Any:
        """Of some persons at a time the hazards, shape (persons, intervals), and the design of the
        weights, shape (persons, intervals, 1 + rules + terms).
        """
        table, n = rows_for(self, X), len(self.cuts)
        width = n * (1 + len(self.rates.conjunctions))
        size = max(1, BLOCK // width)
        for start in range(0, table.n_rows, size):
            some = np.arange(start, min(start + size, table.n_rows))
            starts = np.tile(self.cuts, len(some))
            periods = with_time(table[np.repeat(some, n)], self.column, starts)
            scores = np.asarray(decision_function(self.rates, periods), np.float64)
            shape = (len(some), n)
            yield np.exp(scores.reshape(shape)), design_of(self.rates, periods).reshape(*shape, -1)


def design_of(model: RuleEnsemble, table: Table) -> Floats:
    """1, the rules that hold and the linear terms, shape (rows, 1 + rules + terms)."""
    parts = [np.ones((table.n_rows, 1)), model.conjunctions.satisfied(table).astype(np.float64)]
    if model.linear is not None:
        parts.append(model.linear.values(table))
    return np.concatenate(parts, axis=1)


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < _LARGEST_RATIO else f"over {_LARGEST_RATIO:g}"


def moments(times: ArrayLike) -> Floats:
    values = np.atleast_1d(checks.array("times", times))
    checks.require(
        values.ndim == 1 and bool(np.isfinite(values).all() and (values > 0).all()),
        "times must be positive and finite, shape (times,)",
    )
    return values


def _quantile(level: float) -> float:
    share = checks.number("level", level)
    checks.require(0 < share < 1, f"level must be between 0 and 1, got {share}")
    from statistics import NormalDist  # loads a dozen modules

    return NormalDist().inv_cdf((1 + share) / 2)
