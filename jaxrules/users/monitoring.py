"""Monitoring: how far the scores and the rules of a model have moved between two tables.

The population stability index compares the shares p and q of the rows in the same bins:
PSI = sum (q - p) log(q / p). Below .1 counts as stable, from .25 on as a change that calls for
action (Siddiqi, Credit Risk Scorecards, 2006).
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import Schema, Table, TableLike, check_order, check_sample_weight, conform
from jaxrules.models.metrics import codes_of
from jaxrules.models.rule_models import (
    OrderedRules,
    RuleEnsemble,
    decision_function,
    not_a_model,
    predict,
)
from jaxrules.tools import checks, display
from jaxrules.users.scorecards import ScaledScorecard, Scorecard

_STABLE, _ACTION = 0.1, 0.25
_COLUMNS_SHOWN = 5


class Moved(NamedTuple):
    """The shares of the rows before and after, of one bin of scores or of one rule.

    Attributes:
        text: the bin or rule.
        before, after: the shares.
        psi: of a rule, for the two bins "holds" and "does not"; of a bin of scores, its summand.
    """

    text: str
    before: float
    after: float
    psi: float


class MovedColumn(NamedTuple):
    """The stability index of a column of X, in bins of its values, codes and gaps."""

    text: str
    psi: float


@dataclass(frozen=True, eq=False)
class Drift:
    """What has moved between two tables; prints as a table.

    Attributes:
        psi: of the scores; of a rule list of the rules that decide.
        scores: the bins of the scores, ascending.
        rules: the rules, those that moved most first.
        columns: the columns of X, those that moved most first.
        rows: of the two tables.
    """

    psi: float
    scores: tuple[Moved, ...]
    rules: tuple[Moved, ...]
    columns: tuple[MovedColumn, ...]
    rows: tuple[int, int]

    def __str__(self) -> str:
        tables = [display.text_table(*table) for table in self._tables()]
        shown = tables if self.rules else tables[:1]
        return "\n".join([self._caption(), *shown, self._of_columns()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        titled = zip((self._caption(), ""), self._tables(), strict=True)
        tables = [display.html_table(title, *table) for title, table in titled]
        return "".join(tables) + f"<p>{html.escape(self._of_columns())}</p>"

    def _of_columns(self) -> str:
        shown = [f"{one.text} {one.psi:.3f}" for one in self.columns[:_COLUMNS_SHOWN]]
        of = f", the largest of {len(self.columns)}" if len(shown) < len(self.columns) else ""
        return f"PSI of the columns: {', '.join(shown)}{of}"

    def _tables(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """The headings and rows of the scores and of the rules."""
        return [
            (
                (what, "before", "after", "PSI"),
                [(m.text, f"{m.before:.1%}", f"{m.after:.1%}", f"{m.psi:.3f}") for m in moved],
            )
            for what, moved in (("scores", self.scores), ("rule", self.rules))
        ]

    def _caption(self) -> str:
        grade = "stable" if self.psi < _STABLE else "moved" if self.psi < _ACTION else "act"
        before, after = self.rows
        counts = f"{display.counted(before, 'row')} before, {after} after"
        return f"PSI of the scores {self.psi:.3f} ({grade}); {counts}"


def drift(
    model: Any,
    before: TableLike,
    after: TableLike,
    *,
    n_bins: int = 10,
    weight_before: ArrayLike | None = None,
    weight_after: ArrayLike | None = None,
) -> Drift:
    """The population stability indices of the scores, of every rule and of every column between two
    tables.

    Bins of the scores are the values themselves if there are no more than `n_bins` in `before`,
    else its quantiles; of a rule list the rules that decide, of several classes the predicted
    class. To every bin half a row is added, so that an empty one gives no infinite index.

    Args:
        model: any model, or a scorecard, whose scores are in points.
        before: rows to compare with, such as those of fit.
        after: later rows.
        n_bins: the most bins of scores, and of the numbers of a column, its quantiles in `before`.
        weight_before, weight_after: of every row, which counts as so many rows, shape (rows,).

    Raises:
        TypeError: for anything but a model.
        ValueError: if rows do not fit the model, or there are none.

    Example:
        >>> import numpy as np
        >>> import jaxrules as jr
        >>> schema = jr.Schema((jr.Feature("income"),), classes=("repaid", "default"))
        >>> rules = jr.Conjunctions.build(schema, [[jr.Condition.at_most(0, 30)]])
        >>> model = jr.RuleEnsemble(rules, np.array([[2.0]]), np.array([-1.0]), link="logistic")
        >>> before, after = np.arange(100)[:, None], np.arange(10, 90)[:, None]
        >>> print(jr.drift(model, before, after))
        PSI of the scores 0.011 (stable); 100 rows before, 80 after
        scores  before  after  PSI
        -1      69.0%   73.8%  0.003
        1       31.0%   26.2%  0.007
        rule          before  after  PSI
        income <= 30  31.0%   26.2%  0.011
        PSI of the columns: income 0.573
    """
    if isinstance(model, (Scorecard, ScaledScorecard)):
        model = model.in_points
    if not isinstance(getattr(model, "schema", None), Schema):
        not_a_model(model)
    n_bins = checks.integer("n_bins", n_bins, at_least=2, at_most=1000)
    check_order(before, weight_before=weight_before)
    check_order(after, weight_after=weight_after)
    tables = _table("before", before, model), _table("after", after, model)
    weights = [
        _weights("weight_before", weight_before, tables[0]),
        _weights("weight_after", weight_after, tables[1]),
    ]
    names, codes = _bins(model, tables, n_bins)
    pairs, sizes = zip(codes, weights, strict=True), [float(weight.sum()) for weight in weights]
    counts = [np.bincount(code, weight, len(names)) for code, weight in pairs]
    scores = _moved(names, counts, sizes, _summands(*counts))
    rules: tuple[Moved, ...] = ()
    if isinstance(model, (RuleEnsemble, OrderedRules)):
        holding = model.conjunctions
        held = [w @ holding.satisfied(table) for w, table in zip(weights, tables, strict=True)]
        both = [np.stack([size - holds, holds]) for size, holds in zip(sizes, held, strict=True)]
        texts = [holding.describe(r) for r in range(len(holding))]
        listed = _moved(texts, held, sizes, _summands(*both).sum(axis=0))
        rules = tuple(sorted(listed, key=lambda one: -one.psi))
    total = float(sum(one.psi for one in scores))
    columns = _columns(tables, weights, n_bins)
    return Drift(total, scores, rules, columns, (tables[0].n_rows, tables[1].n_rows))


def _columns(
    tables: tuple[Table, Table], weights: list[NDArray[np.float64]], n_bins: int
) -> tuple[MovedColumn, ...]:
    """The index of every column: in quantiles before, or categories; special values, gaps and
    categories that fit did not see are bins of their own.
    """
    schema, found = tables[0].schema, []
    for place, feature in enumerate(schema.sources):
        columns = [table.columns[place] for table in tables]
        if feature.categories is None:
            known = columns[0][~np.isnan(columns[0])]
            shares = np.arange(1, n_bins) / n_bins
            edges = np.unique(np.quantile(known, shares, method="lower")) if len(known) else known
            if feature.levels is not None:
                edges = np.arange(len(feature.levels), dtype=np.float64)
            special = schema.companions.get(place)
            absent = [-1 if special is None else table.columns[special] for table in tables]
            first = len(feature.special_values or ())
            binned = [first + np.searchsorted(edges, one) for one in columns]
            parts = zip(columns, absent, binned, strict=True)
            codes = [np.where(np.isnan(one), gap, bins) for one, gap, bins in parts]
        else:
            codes = columns  # from -2 on
        _, bins = np.unique(np.concatenate(codes), return_inverse=True)
        pairs = zip(np.split(bins, [len(codes[0])]), weights, strict=True)
        counts = [np.bincount(b, w, bins.max() + 1) for b, w in pairs]
        found.append(MovedColumn(display.plain(feature.name), float(_summands(*counts).sum())))
    return tuple(sorted(found, key=lambda one: -one.psi))


def _table(name: str, X: TableLike, model: Any) -> Table:
    checks.concrete(name, X)
    with checks.spoken_of_as(name, "an X"):
        table = conform(X, model.schema)
    checks.require(table.n_rows > 0, f"{name} has no rows")
    return table


def _weights(name: str, given: ArrayLike | None, table: Table) -> NDArray[np.float64]:
    with checks.spoken_of_as(name, "a sample_weight"):
        return check_sample_weight(given, table.n_rows)


def _moved(
    texts: list[str], counts: list[Any], sizes: list[float], psi: NDArray[np.float64]
) -> tuple[Moved, ...]:
    before, after = ((count / n).tolist() for count, n in zip(counts, sizes, strict=True))
    return tuple(map(Moved, texts, before, after, psi.tolist()))


def _summands(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """(q - p) log(q / p) of counts in bins along the first axis, half a row added to each."""
    p, q = ((one + 0.5) / (one + 0.5).sum(axis=0) for one in (p, q))
    return np.asarray((q - p) * np.log(q / p))


def _bins(
    model: Any, tables: tuple[Table, Table], n_bins: int
) -> tuple[list[str], list[NDArray[np.intp]]]:
    """The bins as text, and the bin of every row."""
    if isinstance(model, OrderedRules):
        n = len(model.conjunctions)
        names = [f"{r + 1}: {model.conjunctions.describe(r, ' AND ')}" for r in range(n)]
        return [*names, "otherwise"], [model.position(table) for table in tables]
    if isinstance(model, RuleEnsemble) and model.n_outputs > 1:
        classes = model.schema.classes or ()
        codes = [codes_of(np.asarray(predict(model, table)), classes) for table in tables]
        return list(map(display.plain, classes)), codes
    # Sums that differ by rounding alone are one score.
    scores = [np.asarray(decision_function(model, table), np.float64) for table in tables]
    scale = max(float(np.abs(one).max(initial=0.0)) for one in scores) or 1.0
    scores = [np.round(one / scale, 12) * scale for one in scores]
    values = np.unique(scores[0])
    if len(values) <= n_bins:
        # A later score belongs to the nearest of these.
        edges = (values[:-1] + values[1:]) / 2
        names = [display.number(float(value)) for value in values]
    else:
        shares = np.arange(1, n_bins) / n_bins
        edges = np.unique(np.quantile(scores[0], shares, method="lower"))
        words = [display.number(float(edge)) for edge in edges]
        names = [*(f"to {word}" for word in words), f"above {words[-1]}"]
    return names, [np.searchsorted(edges, one, side="left") for one in scores]
