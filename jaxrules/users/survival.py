"""Survival: rules for hazards that are constant within intervals of time, as Poisson rates.

The piecewise-exponential model (Holford, "The Analysis of Rates and of Survivorship Using
Log-Linear Models", 1980; Friedman, "Piecewise Exponential Models for Survival Data with
Covariates", 1982): every person gives one row for each interval in which he was at risk. The count
of the row is 1 if the event happened there, and its exposure is the time at risk. With the hazard h
of the row, the log-likelihood is sum (events log h - exposure h), that of Poisson counts with the
means exposure * h. Any learner with ``loss="poisson"`` and ``exposure=`` fits it::

    model = jr.survival.fit(X, time, event, max_rules=5)
    print(model)                         # rules with hazard ratios
    model.survival(X_new, [1, 2, 5])     # the probability of no event until then

The start of the interval is a column like the others, so that rules may say when a hazard is high,
and for whom.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.groups import group_codes
from jaxrules.data.table import (
    MissingRule,
    Schema,
    Table,
    TableLike,
    as_table,
    check_order,
    check_sample_weight,
    conform,
    numbers_of_rows,
    target_array,
)
from jaxrules.ensembles import boosting
from jaxrules.models.rule_models import RuleEnsemble, decision_function
from jaxrules.models.survival import (
    BLOCK,
    HazardRatio,
    SurvivalModel,
    design_of,
    moments,
    with_time,
)
from jaxrules.tools import checks
from jaxrules.tools.fits import Fit
from jaxrules.users import editing

__all__ = [
    "HazardRatio",
    "PersonPeriods",
    "SurvivalModel",
    "brier_score",
    "concordance",
    "fit",
    "integrated_brier_score",
    "refit",
    "split",
]

Floats = NDArray[np.float64]

_EVENTS_PER_INTERVAL, _MOST_INTERVALS = 10, 10
"""Ten events are a common least number for the rate of an interval."""
_SINGULAR = 1e-13
"""Of the curvature: rounding leaves no more of a direction without any."""


@dataclass(frozen=True, eq=False)
class PersonPeriods:
    """A row for every person and interval in which he was at risk, for any learner of counts.

    Attributes:
        X: the columns of the persons and, last, the start of the interval.
        events: 1 if the event happened in the interval, else 0, shape (rows,).
        exposure: the time at risk in the interval, positive, shape (rows,).
        weights: of the persons, shape (rows,).
        person: the person of each row, for ``groups=``, shape (rows,).
        cuts: the starts of the intervals, the first of which is 0, shape (intervals,). An interval
            contains its end, not its start.
        column: the name of the column of starts.
        schema: of the persons' own columns.
    """

    X: Table
    events: Floats
    exposure: Floats
    weights: Floats
    person: NDArray[np.intp]
    cuts: Floats
    column: str
    schema: Schema


def split(
    X: TableLike,
    time: ArrayLike,
    event: ArrayLike,
    *,
    entry: ArrayLike | None = None,
    cuts: int | Sequence[float] | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    column: str = "time",
    missing: MissingRule | None = None,
) -> PersonPeriods:
    """Split the time of every person at risk into intervals.

    >>> import numpy as np
    >>> rows = split(np.array([[1.0], [2.0]]), [5.0, 3.0], [1, 0], cuts=[3.0])
    >>> rows.events, rows.exposure, rows.person
    (array([0., 1., 0.]), array([3., 2., 3.]), array([0, 0, 1]))

    Args:
        X: array, dataframe or Table, a row per person, shape (persons, columns).
        time: of the event, or until which the person was observed, positive, in any unit, shape
            (persons,).
        event: whether the event happened at that time (True or 1) or the person was still without
            it (False or 0), shape (persons,).
        entry: the time from which the person was observed (delayed entry, left truncation), less
            than `time`; None for 0.
        cuts: the times at which intervals end, in (0, longest time); or the number of intervals,
            with equally many events in each as nearly as ties allow: all events at one time are in
            one interval. None for one interval per 10 events, at most 10.
        sample_weight: weight of every person, shape (persons,).
        groups: the person of every row, where columns change with time and a person has several
            rows, each from its `entry` to its `time`, with the event in the last one or in none;
            None if every row is a person.
        column: the name of the column with the start of the interval.
        missing: rule for missing values, see `jaxrules.as_table`.

    Raises:
        TypeError, ValueError: naming the argument.
    """
    check_order(X, time=time, event=event, entry=entry, sample_weight=sample_weight, groups=groups)
    table = as_table(X, missing=missing)
    checks.text("column", column, "a name")
    if column in table.names:
        raise ValueError(f"X has a column {column!r} already; pass another name as column=")
    known = _Times.of(time, event, entry, table.n_rows)
    weights = check_sample_weight(sample_weight, table.n_rows)
    return known.periods(table, weights, groups, _starts(cuts, known), column)


@dataclass(frozen=True, eq=False)
class _Times:
    """When every person entered, left and whether with an event, checked."""

    time: Floats
    event: NDArray[np.bool_]
    entry: Floats

    @classmethod
    def of(
        cls, time: ArrayLike, event: ArrayLike, entry: ArrayLike | None, n_rows: int | None = None
    ) -> _Times:
        if np.asarray(time).dtype == bool:
            raise TypeError("time must be numbers, got True and False; time comes before event")
        n = np.size(time) if n_rows is None else n_rows
        times = numbers_of_rows("time", time, n)
        checks.require(
            times.min(initial=1.0) > 0,
            "time must be positive; give events at time 0 a small time, or drop them",
        )
        events = target_array(event, n, "event")
        if events.dtype.kind == "U" or not np.isin(events, (0, 1)).all():
            raise ValueError(
                "event must be True or False, or 1 or 0, for every row, such as status == 'dead'"
            )
        entries = np.zeros(n) if entry is None else numbers_of_rows("entry", entry, n)
        checks.require((entries >= 0).all(), "entry has negative values; times start at 0")
        late = np.flatnonzero(entries >= times)
        checks.require(
            not len(late),
            f"entry must be less than time, but is not in row {late[0] if len(late) else 0}; drop "
            "rows that were never at risk",
        )
        return cls(times, events.astype(bool), entries)

    def periods(
        self, table: Table, weights: Floats, groups: ArrayLike | None, starts: Floats, column: str
    ) -> PersonPeriods:
        """The rows of these persons."""
        persons = np.arange(table.n_rows) if groups is None else self.persons(groups)
        ends = np.append(starts[1:], np.inf)
        # The time at risk in (start, end] is that in (start, time] without that in (start, entry].
        until, since = (np.clip(one[:, None], starts, ends) for one in (self.time, self.entry))
        at_risk = until - since
        person, interval = np.nonzero(at_risk > 0)
        last = self.time[person] <= ends[interval]
        events = (self.event[person] & last).astype(np.float64)
        return PersonPeriods(
            with_time(table[person], column, starts[interval]), events, at_risk[person, interval],
            weights[person], persons[person], starts, column, table.schema,
        )  # fmt: skip

    def persons(self, groups: ArrayLike) -> NDArray[np.intp]:
        """The person of every row; at no time is a person in two rows."""
        codes = group_codes(groups, len(self.time))
        order = np.lexsort((self.entry, codes))
        same = codes[order[1:]] == codes[order[:-1]]
        first, second = order[:-1][same], order[1:][same]
        twice = self.entry[second] < self.time[first]
        _refuse_pairs("has two rows at the same time", twice, first, second)
        _refuse_pairs("has an event before the last row", self.event[first], first, second)
        return codes


def _refuse_pairs(
    what: str, wrong: NDArray[np.bool_], first: NDArray[np.intp], second: NDArray[np.intp]
) -> None:
    """Refuse rows of a person that contradict each other."""
    if wrong.any():
        a, b = sorted((int(first[wrong][0]), int(second[wrong][0])))
        raise ValueError(f"a person of groups {what}: rows {a} and {b}; see `entry`")


def _starts(cuts: int | Sequence[float] | None, known: _Times) -> Floats:
    """The starts of the intervals, shape (intervals,)."""
    times = np.sort(known.time[known.event])
    checks.require(len(times) > 0, "event is 0 in every row; there is nothing to learn")
    if cuts is not None and np.ndim(cuts):
        given = checks.array("cuts", cuts)
        inside = given.ndim == 1 and (given > 0).all() and (given < known.time.max()).all()
        checks.require(
            bool(inside) and bool((np.diff(given) > 0).all()),
            f"cuts must ascend between 0 and the longest time, {known.time.max():g}",
        )
        return np.append(0.0, given)
    n = min(_MOST_INTERVALS, max(1, len(times) // _EVENTS_PER_INTERVAL))
    if cuts is not None:
        n = checks.integer("cuts", cuts, at_least=1, at_most=10_000)
    ends = np.unique(np.quantile(times, np.arange(1, n) / n, method="inverted_cdf"))
    # An interval that ends at the last event would leave none for the next.
    return np.append(0.0, ends[ends < times[-1]])


def fit(
    X: TableLike,
    time: ArrayLike,
    event: ArrayLike,
    *,
    learner: Callable[..., Fit[RuleEnsemble]] = boosting.fit,
    entry: ArrayLike | None = None,
    cuts: int | Sequence[float] | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    column: str = "time",
    missing: MissingRule | None = None,
    **options: Any,
) -> SurvivalModel:
    """Fit rules for hazards.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> time = rng.exponential(1 / np.where(X[:, 0] > 0, 1.5, 0.5))
    >>> model = fit(X, np.minimum(time, 2.0), time < 2.0, max_rules=1)
    >>> ratio = model.hazard_ratios()[0]
    >>> ratio.text[:2], 0.9 < abs(float(np.log(ratio.ratio))) < 1.3
    ('x0', True)

    Args:
        X, time, event, entry, cuts, sample_weight, groups, column, missing: as in `split`.
        learner: ``fit`` or ``cross_validate`` of boosting, RuleFit, GLRM, LLTBoost, LTRNet or LIRE,
            whose loss is Poisson's. The folds of those that choose a setting keep the rows of a
            person together.
        options: of the learner, such as `max_rules`, `seed` and `time_limit`.

    Raises:
        TypeError: for another learner, or an unknown option.
        ValueError: naming the argument.
    """
    for name in ("loss", "exposure", "offset"):
        checks.require(
            name not in options,
            f"{name} is set by survival.fit; split the rows with survival.split to choose it",
        )
    parameters = inspect.signature(learner).parameters if callable(learner) else {}
    if not {"exposure", "loss"} <= parameters.keys():
        raise TypeError(
            "learner must be fit or cross_validate of boosting, rulefit, glrm, lltboost, ltrnet or "
            "lire"
        )
    rows = split(
        X, time, event, entry=entry, cuts=cuts, sample_weight=sample_weight, groups=groups,
        column=column, missing=missing,
    )  # fmt: skip
    if "groups" in parameters and options.get("l1_penalty") is None:
        options["groups"] = rows.person
    found = learner(
        rows.X, rows.events, rows.weights, loss="poisson", exposure=rows.exposure, **options
    )
    checks.instance("learner's model", found.model, RuleEnsemble, "jaxrules.boosting.fit")
    # Rows of a person repeat values, so that quantiles fall on values and have all their digits.
    rules = found.model.conjunctions.with_short_thresholds(conform(rows.X, found.model.schema))
    model = replace(found.model, conjunctions=rules)
    return _model(model, rows, replace(found, model=model))


def refit(
    model: SurvivalModel,
    X: TableLike,
    time: ArrayLike,
    event: ArrayLike,
    *,
    entry: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    l2_penalty: float | None = None,
) -> SurvivalModel:
    """The same rules and intervals with the hazards of these persons, see `jaxrules.refit`.

    On persons who did not take part in the fit, the intervals of the hazard ratios are honest.

    Args:
        model: a survival model.
        X, time, event, entry, sample_weight, groups: as in `split`.
        l2_penalty: the ridge; None for that of the fit, 0 for maximum likelihood.

    Raises:
        TypeError, ValueError: naming the argument.
    """
    checks.instance("model", model, SurvivalModel, "jaxrules.survival.fit")
    check_order(X, time=time, event=event, entry=entry, sample_weight=sample_weight, groups=groups)
    table = conform(X, model.schema)
    known = _Times.of(time, event, entry, table.n_rows)
    weights = check_sample_weight(sample_weight, table.n_rows)
    rows = known.periods(table, weights, groups, model.cuts, model.column)
    rates = editing.refit(
        model.rates, rows.X, rows.events, sample_weight=rows.weights, exposure=rows.exposure,
        l2_penalty=l2_penalty,
    )  # fmt: skip
    return _model(rates, rows, None if model.fit is None else replace(model.fit, model=rates))


def _model(
    model: RuleEnsemble, rows: PersonPeriods, found: Fit[RuleEnsemble] | None
) -> SurvivalModel:
    periods = conform(rows.X, model.schema)
    design = design_of(model, periods)
    means = rows.exposure * np.exp(np.asarray(decision_function(model, periods), np.float64))
    # The log-likelihood sum w (events log h - exposure h) has the curvature sum w mean z z'.
    curvature = (design * (rows.weights * means)[:, None]).T @ design
    # What these rows do not determine, such as rules without events, has a variance that is huge.
    least = _SINGULAR * np.trace(curvature) * np.eye(len(curvature))
    covariance = inverse = np.linalg.inv(curvature + least)
    if np.ptp(rows.weights) > 0:
        # The sums over persons of the gradient, w (events - mean) z, are independent.
        scores = np.zeros((int(rows.person.max()) + 1, design.shape[1]))
        np.add.at(scores, rows.person, (rows.weights * (rows.events - means))[:, None] * design)
        robust = inverse @ (scores.T @ scores) @ inverse
        # Rules with hardly any event have hardly any score, so that this is too small. At least
        # the variance of as many equal rows as the weights are worth (Kish).
        equal = np.diag(inverse) * (rows.weights**2).sum() / rows.weights.sum()
        factor = np.sqrt(np.maximum(equal / np.maximum(np.diag(robust), 1e-300), 1.0))
        covariance = robust * factor * factor[:, None]
    return SurvivalModel(model, rows.cuts, rows.column, rows.schema, covariance, found)


# Measures


def concordance(
    time: ArrayLike,
    event: ArrayLike,
    risk: ArrayLike,
    *,
    entry: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Harrell's C: the share of comparable pairs in which the person of the earlier event has the
    higher risk (Harrell, Lee and Mark 1996, Sec. 5.5); equal risks count half.

    A pair is comparable if one has an event while the other is observed, and still without one: of
    equal times an event is before a censored time, and two events are not comparable.

    >>> concordance([1.0, 2.0, 3.0], [1, 1, 0], [0.9, 0.1, 0.2])
    0.6666666666666666

    Args:
        time, event, entry: as in `split`.
        risk: any number that rises with the risk, shape (persons,), such as a cumulative hazard.
        sample_weight: weight of every person; a pair has the product.

    Raises:
        TypeError, ValueError: naming the argument; if no pair is comparable.
    """
    known = _Times.of(time, event, entry)
    n = len(known.time)
    risks = checks.array("risk", risk)
    _check_measured("risk", risks, (n,))
    weights = check_sample_weight(sample_weight, n)
    right = comparable = 0.0
    events = np.flatnonzero(known.event)
    size = max(1, BLOCK // n)
    for some in np.split(events, range(size, len(events), size)):
        at, mine = known.time[some, None], risks[some, None]
        later = (known.time > at) | ((known.time == at) & ~known.event)
        pairs = (later & (known.entry < at)) * weights * weights[some, None]
        comparable += float(pairs.sum())
        right += float((pairs * ((mine > risks) + 0.5 * (mine == risks))).sum())
    checks.require(comparable > 0, "no pair of rows is comparable; event has too few 1s")
    return right / comparable


def brier_score(
    time: ArrayLike,
    event: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """The mean squared error of the probabilities of survival at each time, shape (times,), where
    censored persons are made up for by those like them (Graf, Schmoor, Sauerbrei and Schumacher
    1999): with the Kaplan-Meier estimate G of being uncensored, an event at t_i <= t has the weight
    1 / G(t_i -), and a person without one until t the weight 1 / G(t).

    Persons of delayed entry have no such score here: leave them out.

    >>> brier_score([1.0, 2.0, 3.0], [1, 1, 1], [[0.0], [1.0], [1.0]], [1.5]).tolist()
    [0.0]

    Args:
        time, event: as in `split`.
        survival: probabilities of no event until each time, shape (persons, times).
        times: less than the longest `time`, shape (times,).
        sample_weight: weight of every person, shape (persons,).

    Raises:
        TypeError, ValueError: naming the argument.
    """
    known, at = _Times.of(time, event, None), moments(times)
    n, said = len(known.time), checks.array("survival", survival)
    _check_measured("survival", said, (n, len(at)))
    weights = check_sample_weight(sample_weight, n)
    if not weights.all():
        used = weights > 0
        known = _Times(known.time[used], known.event[used], known.entry[used])
        said, weights = said[used], weights[used]
    checks.require(
        bool((said >= 0).all() and (said <= 1).all()), "survival must be probabilities, 0 to 1"
    )
    checks.require(
        bool((at < known.time.max()).all()),
        f"times must be less than the longest time, {known.time.max():g}, beyond which nobody was "
        "observed",
    )
    uncensored, before = _uncensored(known, weights)
    died = (known.time[:, None] <= at) & known.event[:, None]
    alive = known.time[:, None] > at
    inverse = died / before[:, None] + alive / uncensored(at)
    errors = (alive - said) ** 2 * inverse
    return np.asarray(np.average(errors, axis=0, weights=weights))


def integrated_brier_score(
    time: ArrayLike,
    event: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The mean of `brier_score` over the range of `times`, at least two and ascending, by the
    trapezoidal rule; a model without columns, the Kaplan-Meier curve, is the one to compare with.

    Args:
        time, event, survival, times, sample_weight: as in `brier_score`.

    Raises:
        TypeError, ValueError: naming the argument.
    """
    at = moments(times)
    checks.require(
        len(at) > 1 and bool((np.diff(at) > 0).all()), "times must be two or more, ascending"
    )
    scores = brier_score(time, event, survival, at, sample_weight=sample_weight)
    return float(np.trapezoid(scores, at) / (at[-1] - at[0]))


def _check_measured(name: str, values: Floats, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        raise ValueError(f"{name} has shape {values.shape}, but must have {shape}")
    checks.require(bool(np.isfinite(values).all()), f"{name} has NaN or infinite values")


def _uncensored(known: _Times, weights: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
    """The Kaplan-Meier estimate of being uncensored as a function of time, and just before the time
    of each person, shape (persons,). Of equal times, events come before censoring.
    """
    times, place = np.unique(known.time, return_inverse=True)
    left = np.bincount(place, weights)
    events = np.bincount(place, weights * known.event)
    at_risk = left[::-1].cumsum()[::-1] - events  # those of an event at the time are gone
    lost = left - events
    factors = 1.0 - np.divide(lost, at_risk, out=np.zeros_like(lost), where=lost > 0)
    steps = np.append(1.0, np.cumprod(factors))

    def until(at: Floats) -> Floats:
        return steps[np.searchsorted(times, at, side="right")]

    return until, steps[place]
