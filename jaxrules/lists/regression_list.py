"""Regression lists: IF .. THEN y = 12.3, ELSE IF .. THEN y = 7.1, ELSE y = 4.5.

A list predicts for a row the number of the first rule that the row satisfies, else a default. The
list minimises

    sum_k L(rows that rule k decides) / L(all rows)  +  literal_penalty * literals
    +  local_penalty * mean number of rules that a row reads before its prediction,

where L is the weighted loss of rows around their best common value: squared errors around the mean,
or absolute errors around the median. For squared errors the first part is 1 - R^2, so that the
penalty is the R^2 that a literal must bring. A row reads the rules up to the one that decides it.

The search is that of `jaxrules.ssrl` (Yang, Yang and Sun, KDD 2024), with this objective in place
of theirs: rules are inserted at any position while that helps; then a local search deletes,
exchanges, replaces and inserts rules. Both are repeated from the next best first rules. A beam
search finds the rule to insert. Of a conjunction it needs the sums of weights and targets by rule
that decides the rows now: they tell what the rule saves at every position
(`jaxrules.lists.regression_kernels`). For the absolute loss the sums are those of 16 bins of the
target, and the best conjunctions are compared by all rows.

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
>>> print(fit(X, 2.0 * X[:, 0] + X[:, 0] * X[:, 1]).model)
IF x0 < 1 THEN target = 0 (20 rows, off by 0)
ELSE IF x1 < 1 THEN target = 2 (10 rows, off by 0)
ELSE target = 3 (10 rows, off by 0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import TableLike, effective_row
from jaxrules.learning.cross_validation import along_paths, fit_of_best_setting, fits_along, of_all
from jaxrules.learning.in_time import fit_in_half, with_rules
from jaxrules.learning.options import FitOptions, Folds, learner, option, options, or_none
from jaxrules.learning.training import TrainingData, by_content
from jaxrules.learning.warm_start import check_lengths, given_start, made_of, propositions_in
from jaxrules.lists.candidates import rules_read
from jaxrules.lists.first_rules import ExpertRules
from jaxrules.lists.in_time import rows_for_lists, rules_of, run_to_prepare
from jaxrules.lists.literals import literals_for
from jaxrules.lists.reading import limit
from jaxrules.losses import squared
from jaxrules.models.rule_models import ListLoss, RegressionList, first_satisfied
from jaxrules.rules.conditions import Conjunctions, PropositionPool
from jaxrules.rules.constraints import Constraints, rules_for
from jaxrules.rules.rows import Activations
from jaxrules.solvers.rule_search.space import best_first
from jaxrules.tools import checks
from jaxrules.tools.bits import distinct, pack, unpack
from jaxrules.tools.fits import Details, Fit, Status
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Rule = tuple[int, ...]
"""Its literals."""

_TIE = 1e-10
"""A list is better only if its objective is lower by more than this; the constant has 1."""
_BINS = 16
_COMPARED = 8
"""The conjunctions that all rows compare, of those that the bins find best."""
_STARTS = 4
"""The number of first rules from which a search begins."""
_ROUNDS = 4
"""The most rounds of estimating the noise and searching."""
_CAUTION = 8
"""The best of m literals without effect saves more than 2 log m rows of noise in about one case of
four; of 8 m, in one of thirty.
"""
_WORTH_READING = 0.005
"""The least default penalty: a literal that brings less is not worth a reader's time."""
_NEEDS = ("jaxrules.lists.regression_kernels",)
"""The modules that take long to import."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionListDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        n_literals: the number of literals that rules are built from.
        insertions: the number of searches for a rule to insert.
        greedy_objective: the objective before the last local search.
        literal_penalty: the penalty.
        constant_loss: the mean loss of the best constant, to which the objective is relative.
        chosen: why the data chose this penalty; empty if it was given.
        sample: the number of rows that the rules come from; None for all.
    """

    n_literals: int
    insertions: int
    greedy_objective: float
    literal_penalty: float
    constant_loss: float
    chosen: str = ""
    sample: int | None = None


def _loss(name: str, value: Any) -> Any:
    return checks.choice(name, value, ("squared", "absolute"))


@options
class _Shared(FitOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        loss: "squared": rules predict means; "absolute": medians, for targets with outliers.
        max_length: the most literals of a rule; None for no limit.
        min_support: the least share of the row weight, in [0, 1), that every rule and the default
            decide.
        max_cut_points: the most cut points of a numeric column, at evenly spaced quantiles (9: the
            deciles); None for every value; "auto": the deciles, and the splits of a few boosted
            trees, thresholds that the data choose. See `jaxrules.lists.literals.literals_of`.
        cut_points: the cut points of some numeric columns by name, instead of quantiles.
        propositions: the literals to build rules from; None takes them at the cut points.
        forbidden: columns, by name or position, that no rule may use.
        required: columns that the list must use; if the search leaves one out, the literal on it
            that costs least is added.
        monotone: 1 or -1 for some numeric columns: as the column rises, the prediction never falls,
            or never rises: a rule that it makes true has no lower value than any behind it, one
            that it makes false no greater value (the reverse for -1).
        first: an expert's rules, which come first, however many rows they decide; they count
            towards `max_rules`, and their literals are penalised.
        local_penalty: at least 0, what the objective loses for every rule that a row reads before
            its prediction, on average: .01 if one rule less to read is worth .01 of R^2.
            `jaxrules.local_support` is their mean number.
        local_search: delete, exchange, replace and insert rules after the greedy insertions, until
            nothing helps.
        beam_width: the number of conditions that the beam refines at once.
        seed: seed of drawn rows, if time is short; the search itself draws nothing.
        time_limit: seconds; the best list so far is returned when they run out, see
            `jaxrules.Deadline`.
    """

    learner = "regression_list"

    loss: ListLoss = option(_loss, default="squared")
    max_length: int | None = option(limit, default=None, at_least=1)
    min_support: float = option(checks.number, default=0.01, at_least=0, below=1)
    max_cut_points: int | Literal["auto"] | None = option(checks.size, default="auto")
    cut_points: Mapping[str, Sequence[float]] | None = None
    propositions: PropositionPool | None = None
    forbidden: Iterable[str | int] = ()
    required: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None
    first: Conjunctions | None = None
    local_penalty: float = option(checks.penalty, default=0.0)
    local_search: bool = option(checks.flag, default=True)
    beam_width: int = option(checks.integer, default=10, at_least=1, at_most=10_000)


@options
class RegressionListPathOptions(_Shared):
    """The options of `path`.

    Attributes:
        max_rules: the most rules.
        literal_penalty: the share of the loss of a constant that a literal must save, at least 0.
            None: what m literals hardly save by chance, 2 log 8m rows of the noise that the list
            leaves, but at least 0.005.
    """

    max_rules: int = option(checks.integer, default=10, at_least=1, at_most=10_000)
    literal_penalty: float | None = option(or_none(checks.number), default=None, at_least=0)


@options
class RegressionListOptions(RegressionListPathOptions):
    """The options of `fit`.

    Attributes:
        start: a list, as a Fit or its model, with the same columns. The search starts from its
            rules, too, after those of `first`; its conditions become additional literals. The
            result is at least as good as that list with values for these rows.
    """

    start: Fit[RegressionList] | RegressionList | None = None


def _penalties(name: str, values: Any) -> tuple[float, ...]:
    return tuple(checks.sequence(name, values, at_least=0).tolist())


@options
class RegressionListGrid(Folds, _Shared):
    """The options of `cross_validate`.

    Attributes:
        literal_penalties: the penalties to choose from.
        max_rules: the most rules; every number up to it is tried with every penalty.
    """

    literal_penalties: Sequence[float] = option(_penalties, default=(0.001, 0.003, 0.01, 0.03))
    max_rules: int = option(checks.integer, default=10, at_least=1, at_most=10_000)


@learner(RegressionListOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: RegressionListOptions
) -> Fit[RegressionList]:
    """Learn a list of rules that predict numbers.

    >>> import numpy as np
    >>> X = np.arange(100.0)[:, None]
    >>> round(fit(X, X[:, 0] >= 50.0, literal_penalty=0.1).objective, 6)
    0.1

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: numbers, shape (rows,).
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is to be minimised, and `RegressionListDetails`; "converged" is a
        local optimum. The history has a step per list that is better than the one before.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for an invalid value of an argument, a single value of y, or columns without
            variation.
    """
    run = options.run()
    data = _data(X, y, sample_weight, options)
    return with_rules(
        lambda stage: rows_for_lists(data, options, run, stage, _NEEDS),
        lambda: _Task.of(data, options, run), lambda task: task.fit(options, run),
        lambda sample: _in_time(data, sample, options, run), run_to_prepare(options, run),
    )  # fmt: skip


@learner(RegressionListPathOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: RegressionListPathOptions
) -> list[Fit[RegressionList]]:
    """One Fit for each number of rules from 1 to `max_rules`, each started from the list before. A
    penalty of None is the one that `fit` chooses for `max_rules`. No list is worse than the one
    before.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    >>> [round(one.objective, 3) for one in path(X, X.sum(axis=1), literal_penalty=0.1)][:2]
    [0.533, 0.4]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits. The sizes begin with the smallest in which the rules of `first`, a rule to learn
        and the columns of `required` have room. Every size has an equal share of the remaining
        time; there are fewer fits if time runs out.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    run = options.run()
    task = _Task.of(_data(X, y, sample_weight, options), options, run)
    penalty, chosen = options.literal_penalty, ""
    if penalty is None:
        part = run.child(0.3)
        found = task.fit(options, part).details
        penalty, chosen = found["literal_penalty"], found["chosen"]
    start: tuple[Rule, ...] = ()

    def fit_at(size: int, run: Run) -> Fit[RegressionList]:
        nonlocal start
        own = replace(options, max_rules=size)
        search = _ListSearch(task, own, run, penalty)
        search.run(start)
        start = search.best.rules
        return task.finished(search, run, chosen)

    return fits_along(range(task.fewest, options.max_rules + 1), run, fit_at)


@learner(RegressionListGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: RegressionListGrid
) -> Fit[RegressionList]:
    """Choose the penalty and the number of rules by cross-validation (see
    `jaxrules.learning.cross_validation`); fit with them on all rows. The risk is the loss.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    >>> chosen = cross_validate(X, X.sum(axis=1), literal_penalties=[0.01], max_rules=3, n_folds=2)
    >>> chosen.details.cross_validation.setting
    {'literal_penalty': 0.01, 'max_rules': 2}

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows.
    """
    run = options.run()
    data = _data(X, y, sample_weight, options)
    first = rules_for(data.table.schema, "first", options.first)
    sizes = range(_constraints(data, options).fewest(first), options.max_rules + 1)
    penalties = options.literal_penalties
    each = [options.to(RegressionListPathOptions, literal_penalty=one) for one in penalties]
    grid = [{"literal_penalty": one, "max_rules": m} for one in penalties for m in sizes]
    walk = along_paths(path, each, of_all)
    return fit_of_best_setting(
        fit, (X, y, sample_weight), options, data, grid, walk, run, otherwise=0,
        size=lambda model: int(model.conjunctions.propositions.sum()), measure="literals",
    )  # fmt: skip


def _data(
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    options: RegressionListPathOptions | RegressionListGrid,
) -> TrainingData:
    """The rows, in an order that does not depend on the given one."""
    data = by_content(options.training_data(X, y, sample_weight, squared))
    # A fit without time asks for no literals.
    _constraints(data, options).check_room(
        rules_for(data.table.schema, "first", options.first), options.max_rules
    )
    return data


def _constraints(data: TrainingData, options: _Shared) -> Constraints:
    return Constraints.of(data.schema, options.forbidden, options.required, options.monotone)


def _in_time(
    data: TrainingData, sample: TrainingData, options: RegressionListOptions, run: Run
) -> Fit[RegressionList]:
    """The list found on a sample of the rows, as far as it is good on all rows."""
    found = fit_in_half(fit, sample, options, run, needs=_NEEDS)
    rows = _Rows.of(data, options.loss)
    if found is not None and found.details["sample"] is None:
        rules = found.model.conjunctions
        penalty, chosen = found.details["literal_penalty"], found.details["chosen"]
        n_literals = found.details["n_literals"]
    else:  # boosted rules
        rules, given = rules_of(sample, options, run), options.literal_penalty
        chosen, penalty, n_literals = "", _WORTH_READING if given is None else given, 0
    rules = rules.with_schema(data.table.schema)
    position = first_satisfied(rules, data.table)[rows.order]
    best, objective = 0, 1.0
    for m in range(1, len(rules) + 1):  # what a rule decides does not depend on later ones
        part = rows.parts(np.minimum(position, m), m + 1)
        value = part.losses.sum() + penalty * float(rules.propositions[:m].sum())
        value += options.local_penalty * rules_read(part.weights[:, None])
        if part.weights.min() < rows.least(options.min_support):
            break
        if value < objective - _TIE:
            best, objective = m, float(value)
    with run:
        run.step(objective, best)
    decided = np.empty(len(position), np.int64)
    decided[rows.order] = np.minimum(position, best)
    rules = rules.take(np.arange(best)).with_schema(data.schema)
    model = RegressionList.of_rows(
        rules, decided, data.target, data.weights, options.loss, options.settings()
    )
    details = RegressionListDetails(
        n_literals=n_literals, insertions=0, greedy_objective=objective, literal_penalty=penalty,
        constant_loss=rows.constant_loss, chosen=chosen, sample=len(sample.weights),
    )  # fmt: skip
    return run.finish(model, objective, "min", Status.TIME_LIMIT, details=details)


# The rows


@dataclass(frozen=True, eq=False)
class _Decided:
    """The rows that each rule decides: their loss relative to that of all rows, weight, and best
    value.
    """

    losses: Floats
    weights: Floats
    values: Floats


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a fit by ascending target.

    Attributes:
        order: the rows in the data.
        target: centred, in units of its range.
        weights: the sum of those of all rows is 1.
        loss: the loss.
        constant: the loss of all rows.
        constant_loss: the same in the units of the target.
        effective: the number of rows, see `jaxrules.data.table.effective_row`.
    """

    order: NDArray[np.intp]
    target: Floats
    weights: Floats
    loss: ListLoss
    constant: float
    constant_loss: float
    effective: float

    @classmethod
    def of(cls, data: TrainingData, loss: ListLoss) -> _Rows:
        """The rows of the data."""
        order = np.argsort(data.target, kind="stable")
        target, weights = data.target[order], data.weights[order] / data.weights.sum()
        # Differences of large numbers lose digits; the scale keeps squares finite.
        scale = float(np.abs(target - target[0]).max())
        target = (target - target[0]) / scale
        target = target - weights @ target
        rows = cls(order, target, weights, loss, 1.0, 1.0, 1 / effective_row(weights))
        constant = float(rows.parts(np.zeros(len(target), np.int64), 1).losses[0])
        constant_loss = constant * (scale**2 if loss == "squared" else scale)
        return replace(rows, constant=constant, constant_loss=constant_loss)

    def take(self, some: Bools) -> _Rows:
        """Some of the rows."""
        parts = {name: getattr(self, name)[some] for name in ("order", "target", "weights")}
        return replace(self, **parts)

    def parts(self, position: Ints, n: int) -> _Decided:
        """The rows by what decides them, a number below n."""
        weights = np.bincount(position, self.weights, n)
        some = np.maximum(weights, 1e-300)
        sums = np.bincount(position, self.weights * self.target, n)
        if self.loss == "squared":
            values = sums / some
            away = self.target - values[position]
            losses = np.bincount(position, self.weights * away**2, n)
        else:
            order = np.argsort(position, kind="stable")  # each part by ascending target
            below = np.cumsum(self.weights[order])
            ends = np.cumsum(weights)
            half = ends - weights / 2
            middle = np.searchsorted(below, half * (1 - 1e-12))
            middle = np.minimum([middle, middle + 1], len(order) - 1)
            low, high = self.target[order[middle]]
            tied = (below[middle[0]] <= half * (1 + 1e-12)) & (weights > 0)
            values = np.where(tied, (low + high) / 2, low)  # as `best_value`
            away = np.abs(self.target - values[position])
            losses = np.bincount(position, self.weights * away, n)
        return _Decided(losses / self.constant, weights, values)

    def least(self, share: float) -> float:
        """The least weight that a rule decides, of which rounding takes nothing: that of the share,
        or of one row.
        """
        return max(share, float(self.weights.min())) * (1 - 1e-9)

    @cached_property
    def bins(self) -> Ints:
        """The bin of every target, by quantiles: equal targets share one."""
        if self.loss == "squared":
            return np.zeros(len(self.target), np.int64)
        _, first, place = np.unique(self.target, return_index=True, return_inverse=True)
        if len(first) <= _BINS:
            return place.astype(np.int64)
        before = np.cumsum(self.weights) - self.weights
        cut = np.minimum((_BINS * before[first]).astype(np.int64), _BINS - 1)
        return np.unique(cut[place], return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Literals:
    """The literals as runs of cells: within a column, rows with the same literals share a cell. The
    fields are those of `regression_kernels.savings`; rows by ascending target.
    """

    bits: NDArray[np.uint64]
    pattern: NDArray[np.intp]
    cells: NDArray[np.int32]
    firsts: Ints
    runs: Ints
    ends: Ints
    columns: Ints

    @classmethod
    def of(cls, pool: PropositionPool, activations: Activations, order: Any) -> _Literals:
        """The literals of a pool whose columns ascend."""
        _, columns = np.unique(pool.feature, return_inverse=True)
        cells, firsts, runs, ends = [], [0], [], [0]
        for f in range(int(columns.max()) + 1):
            some = np.flatnonzero(columns == f)
            holds = unpack(activations.bits[some], activations.n_patterns).T
            first, cell = distinct(pack(np.ascontiguousarray(holds)))
            # In lexical order, the cells of a threshold or of a category are one run or two.
            known, place = np.unique(holds[first], axis=0, return_inverse=True)
            cells.append((firsts[-1] + place.ravel()[cell]).astype(np.int32))
            padded = np.pad(known.T.astype(np.int8), ((0, 0), (1, 1)))
            for steps in np.diff(padded, axis=1):
                pairs = zip(np.flatnonzero(steps > 0), np.flatnonzero(steps < 0), strict=True)
                runs += [(firsts[-1] + a, firsts[-1] + b) for a, b in pairs]
                ends.append(len(runs))
            firsts.append(firsts[-1] + len(known))
        pattern = activations.pattern[order]
        return cls(
            activations.bits, pattern, np.stack(cells)[:, pattern],
            np.array(firsts, np.int64), np.array(runs, np.int64).reshape(-1, 2),
            np.array(ends, np.int64), columns.astype(np.int64),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.columns)

    def holds(self, rule: Rule) -> Bools:
        """The rows on which all literals of a rule hold."""
        words = np.bitwise_and.reduce(self.bits[list(rule)], axis=0)
        return unpack(words[None], int(self.pattern.max()) + 1)[0][self.pattern]


def _sides(constraints: Constraints, rules: Conjunctions) -> Ints:
    """1 for rules that may only be above those behind them, -1 for those that may only be below."""
    falls, rises = constraints.allows(rules, 2).T.astype(np.int64)
    return rises - falls


def _monotone(sides: NDArray[Any], values: Floats) -> bool:
    """Whether no rule of side 1 has a lower value than one behind it, and none of side -1 a
    greater.
    """
    top = np.maximum.accumulate(values[::-1])[::-1][1:]
    bottom = np.minimum.accumulate(values[::-1])[::-1][1:]
    up, down = sides[:-1] > 0, sides[:-1] < 0
    return not ((up & (values[:-1] < top)) | (down & (values[:-1] > bottom))).any()


@dataclass(frozen=True, eq=False)
class _Task:
    """The data of a fit, and the literals on its rows.

    Attributes:
        first: the expert's rules.
        fixed: what these decide; and the other rows, as one.
        rows: that they leave.
        sides: of the literals, empty without `monotone`, see `regression_kernels.savings`.
        required: for each required column that they do not use, the literals on it.
        start: the list to start from.
    """

    data: TrainingData
    pool: PropositionPool
    constraints: Constraints
    first: ExpertRules
    fixed: _Decided
    rows: _Rows
    literals: _Literals
    sides: Ints
    required: Sequence[Bools]
    start: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, data: TrainingData, options: RegressionListPathOptions, run: Run) -> _Task:
        """Make the literals."""
        table = data.table
        constraints = _constraints(data, options)
        first = ExpertRules.given(table, options.first, options.max_rules)
        model = given_start(getattr(options, "start", None), RegressionList, data, constraints)
        if options.propositions is None:
            run.preparing("literals")
            pool = literals_for(
                data, constraints, max_cut_points=options.max_cut_points,
                cut_points=options.cut_points, seed=options.seed,
            )  # fmt: skip
        else:
            given = options.propositions
            checks.instance("propositions", given, PropositionPool, "PropositionPool.of")
            pool = given.with_schema(table.schema)
            pool = constraints.distinct(pool, table, 2)
        checks.require(len(pool) > 0, "X has no column that varies: nothing can be learned")
        begun = None if model is None else first.behind(model, options.max_rules).conjunctions
        if begun is not None:
            # The search only knows rules made of its literals: those of the start join the pool.
            parts = propositions_in(begun.with_schema(pool.schema))
            pool = PropositionPool.concatenate([pool, parts])
            pool = constraints.distinct(pool, table, 2)
        pool = constraints.usable(pool, 2)
        checks.require(len(pool) > 0, "forbidden and monotone exclude every literal")
        constraints.require_spoken(pool, "literal")
        pool = pool.take(np.argsort(pool.feature, kind="stable"))
        rows, held = _Rows.of(data, options.loss), Activations.of(pool, table)
        fixed = rows.parts(first.position[rows.order], len(first.rules) + 1)
        fixed.values[fixed.weights == 0] = rows.parts(np.zeros_like(rows.order), 1).values
        rows = rows.take(first.rest[rows.order])
        required = constraints.behind(first.rules).using(pool)
        literals = _Literals.of(pool, held, rows.order)
        task = cls(
            data, pool, constraints, first, fixed, rows, literals,
            _sides(constraints, pool) if constraints.monotone else np.zeros(0, np.int64), required,
        )  # fmt: skip
        task.check_first()
        return task if begun is None else replace(task, start=task.begin(begun, held, options))

    @property
    def fewest(self) -> int:
        """The least number of rules."""
        return self.constraints.fewest(self.first.rules)

    def check_first(self) -> None:
        """Refuse expert rules whose values break `monotone`.

        Raises:
            ValueError: naming such a rule.
        """
        rules = self.first.rules
        barred = ~self.constraints.allows(rules, 2).any(axis=1)
        for k in np.flatnonzero(barred).tolist():
            raise ValueError(
                f"first has the rule {rules.describe(k)!r}, which has no admissible value under "
                "forbidden and monotone; drop it"
            )
        sides = _sides(self.constraints, rules)
        for k in range(len(sides)):
            alone = np.zeros(len(sides) + 1 - k)
            alone[0] = sides[k]
            # Whatever rules come behind them, some value is as great, and some as small, as that of
            # all the other rows.
            if not _monotone(alone, self.fixed.values[k:]):
                raise ValueError(
                    f"first has the rule {rules.describe(k)!r}, whose value is on the wrong side "
                    "of one behind it under monotone; drop it, or move it back"
                )

    def begin(
        self, rules: Conjunctions, held: Activations, options: RegressionListPathOptions
    ) -> tuple[Rule, ...]:
        """The rules of a start that decide a row, in terms of the literals.

        Raises:
            ValueError: if one is too long, or decides too few rows.
        """
        table, least = self.data.table, self.rows.least(options.min_support)
        one_each = table[np.unique(held.pattern, return_index=True)[1]]
        rules = rules.with_schema(table.schema)
        of_pool = self.constraints.allows(self.pool, 2)
        tags = of_pool, self.constraints.allows(propositions_in(rules), 2)
        made = made_of(self.pool, held.bits, rules, one_each, tags)
        check_lengths(made, options.max_length, "max_length")
        left, kept = np.ones(len(self.rows.order), bool), list[Rule]()

        def check(decided: Bools, what: str) -> None:
            weight = float(self.rows.weights[decided].sum())
            checks.require(
                weight >= least or not kept,
                f"start has {what}, which decides {weight:.2g} of the weight, but "
                f"min_support={options.min_support}; lower it, or drop rules",
            )

        for k, rule in enumerate(made):
            decided = left if rule is None else left & self.literals.holds(rule)
            if rule is not None and not (left & ~decided).any():
                break  # what holds for all rows that are left is the default
            if rule is not None and decided.any():
                kept.append(rule)
                check(decided, f"the rule {rules.describe(k)!r}")
                left = left & ~decided
        check(left, "a default")
        return tuple(kept)

    def fit(self, options: RegressionListPathOptions, run: Run) -> Fit[RegressionList]:
        """The list; a penalty of None follows from the noise that the list before leaves."""
        if options.literal_penalty is not None:
            search = _ListSearch(self, options, run, options.literal_penalty)
            search.run()
            return self.finished(search, run)
        price = 2 * math.log(_CAUTION * len(self.literals)) / self.rows.effective
        noise, start = 1.0, tuple[Rule, ...]()
        for _ in range(_ROUNDS):
            search = _ListSearch(self, options, run.child(), max(price * noise, _WORTH_READING))
            search.run(start)
            # Every rule and the default have taken one row's worth of noise.
            n_parts = len(self.first.rules) + len(search.best.rules) + 1
            rest = max(1 - n_parts / self.rows.effective, 0.1)
            lost = float(self.fixed.losses[:-1].sum() + search.best.parts.losses.sum())
            left, start = lost / rest, search.best.rules
            least = search.penalty == _WORTH_READING
            if run.stopped() or least or left > 0.9 * noise:
                break
            noise = left
        run.include(search.watch)
        less = " are less" if search.penalty == _WORTH_READING else ""
        chosen = (
            f"literal_penalty={search.penalty:.4g}: 2 log {_CAUTION * len(self.literals)} rows of "
            f"the noise{less} (noise: {noise:.0%} of the loss of a constant)"
        )
        return self.finished(search, run, chosen)

    def finished(self, search: _ListSearch, run: Run, chosen: str = "") -> Fit[RegressionList]:
        """The Fit of a search."""
        best, data, first = search.best, self.data, self.first
        position = first.position.copy()
        position[self.rows.order] = len(first.rules) + best.position
        learned = self.pool.conjunctions(best.rules, data.schema)
        rules = Conjunctions.concatenate([first.rules.with_schema(data.schema), learned])
        model = RegressionList.of_rows(
            rules, position, data.target, data.weights, self.rows.loss, search.options.settings()
        )
        details = RegressionListDetails(
            n_literals=len(self.literals), insertions=search.insertions,
            greedy_objective=search.greedy_objective, literal_penalty=search.penalty,
            constant_loss=self.rows.constant_loss, chosen=chosen,
        )  # fmt: skip
        return run.finish(model, best.objective, "min", Status.CONVERGED, details=details)


# The search


@dataclass(frozen=True, eq=False)
class _List:
    """A list during the search.

    Attributes:
        rules: their literals.
        position: of the first rule that holds for each row, or the number of rules.
        parts: the rows that each rule and the default decide.
        objective: to be minimised; infinite if a rule or the default decides too few rows, or has
            a value that `monotone` excludes.
    """

    rules: tuple[Rule, ...]
    position: Ints
    parts: _Decided
    objective: float


class _Conjunction(NamedTuple):
    """A conjunction: its literals, its rows, and what it saves at its best position."""

    rule: Rule
    rows: Ints
    saved: float
    place: int


@dataclass(eq=False)
class _ListSearch:
    """Greedy insertions, then a local search; again from each of the next best first rules.

    `now` is the list that the search changes, `best` the best so far.
    """

    task: _Task
    options: RegressionListPathOptions
    watch: Run
    penalty: float
    now: _List = field(init=False)
    best: _List = field(init=False)
    insertions: int = field(default=0, init=False)
    greedy_objective: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        self.rows, self.literals = self.task.rows, self.task.literals
        first = self.task.first.rules
        self.before, self.max_rules = len(first), self.options.max_rules - len(first)
        # What the expert's rules add to the objective
        fixed, self.local = self.task.fixed, self.options.local_penalty
        self.offset = float(
            fixed.losses[:-1].sum()
            + self.penalty * first.propositions.sum()
            + self.local * rules_read(fixed.weights[:, None])
        )
        self.first_sides = _sides(self.task.constraints, first)
        self.least = self.rows.least(self.options.min_support)
        weights = self.rows.weights
        self.terms = np.column_stack([weights, weights * self.rows.target])
        self.replaced: set[tuple[Rule, ...]] = set()
        self.now = self.best = self.list_of(())

    def list_of(self, rules: Sequence[Rule]) -> _List:
        """The list of these rules."""
        position = np.full(len(self.rows.target), len(rules))
        for place in range(len(rules) - 1, -1, -1):
            position[self.literals.holds(rules[place])] = place
        parts = self.rows.parts(position, len(rules) + 1)
        enough = parts.weights.min() >= self.least or not rules
        enough = enough and self.is_monotone(rules, parts.values)
        price = self.offset + self.penalty * sum(map(len, rules))
        price += self.local * rules_read(parts.weights[:, None])
        objective = float(parts.losses.sum()) + price if enough else math.inf
        return _List(tuple(rules), position, parts, objective)

    def side(self, rule: Rule) -> int:
        """That of its literals, see `_sides`."""
        return int(np.sign(self.task.sides[list(rule)].sum())) if len(self.task.sides) else 0

    def is_monotone(self, rules: Sequence[Rule], values: Floats) -> bool:
        """Whether the values of these rules and the default keep `monotone`, behind the expert's
        rules.
        """
        if not len(self.task.sides):
            return True
        sides = [*self.first_sides, *map(self.side, rules), 0]
        return _monotone(np.array(sides), np.append(self.task.fixed.values[:-1], values))

    def keep(self, found: _List) -> bool:
        """Take a list if it is better."""
        if not found.objective < self.now.objective - _TIE:
            return False
        self.now = found
        if found.objective < self.best.objective - _TIE:
            self.best = found
            self.report()
        return True

    def report(self) -> None:
        """A step of the history: the best list."""
        self.watch.step(self.best.objective, self.before + len(self.best.rules))

    def run(self, start: Sequence[Rule] = ()) -> None:
        """Search from a list, then from that of the task; Ctrl-C and the limit leave the best so
        far, to which the required columns are added.
        """
        given = self.list_of(self.task.start)
        checks.require(
            math.isfinite(given.objective),
            "start has values for these rows that monotone excludes; fit it with monotone",
        )
        with self.watch:
            self.watch.phase = "search"
            self.now = self.list_of(start)
            self.best = min(self.now, given, key=lambda one: one.objective)
            self.report()
            again = self.options.local_search and not start
            others = self.beam(self.now, _STARTS) if again else []
            # The first is inserted below, unless the price of reading is more than it saves alone.
            others = others if self.local else others[1:]
            firsts = [self.list_of((rule,)) for rule, _ in others]
            self.insert()
            self.greedy_objective = self.now.objective
            self.watch.phase = "local search"
            self.improve()
            self.watch.phase = "restarts"
            for begun in [*([given] if given.rules else []), *firsts]:
                if self.watch.stopped():
                    break
                self.now = begun
                self.insert()
                self.improve()
        found = self.with_required(self.best)
        if self.n_used(given) == len(self.task.required) and given.objective < found.objective:
            found = given  # the added literals may have made the list worse than the start
        if found is not self.best:
            self.best = found
            with self.watch:
                self.report()

    def n_used(self, found: _List) -> int:
        """The number of required columns that a list uses."""
        used = np.zeros(len(self.literals), bool)
        used[[literal for rule in found.rules for literal in rule]] = True
        return sum(bool(used[literals].any()) for literals in self.task.required)

    def with_required(self, best: _List) -> _List:
        """A list with literals on the required columns that it lacks, where they cost least: in a
        rule, in the place of one, or in one more.

        Raises:
            ValueError: if none is found that keeps `min_support` and `monotone`.
        """
        required = self.task.required
        for found in (best, self.list_of(())):
            for literals in required:
                if not any(literals[list(rule)].any() for rule in found.rules):
                    lists = [found, *self.grown(found, literals)]
                    # A rule in another's place may cost a different required column: their number
                    # comes first.
                    found = max(lists, key=lambda one: (self.n_used(one), -one.objective))
            if self.n_used(found) == len(required):
                return found
        names = [self.task.data.schema.names[column] for column in self.task.constraints.required]
        raise ValueError(
            f"no list was found that uses the columns {names} in required under min_support="
            f"{self.options.min_support} and monotone; relax them, or require fewer"
        )

    def grown(self, found: _List, literals: Bools) -> Iterator[_List]:
        """Lists with one of these literals more, the best in each rule, in its place and as one
        more rule, but those whose rules decide too few rows.
        """
        longest, rules = self.options.max_length or len(self.literals), found.rules
        room = len(rules) < self.max_rules
        cases: list[tuple[_List, Rule]] = [(found, ())] if room else []
        for k, rule in enumerate(rules):
            rest = self.list_of((*rules[:k], *rules[k + 1 :]))
            cases += [(rest, base) for base in ((), rule) if len(base) < longest]
        saved, place = np.empty(len(self.literals)), np.zeros(len(self.literals), np.int64)
        for rest, base in cases:
            self.rate(rest)(base, np.flatnonzero(self.literals.holds(base)), saved, place)
            best = int(np.where(literals, saved, -np.inf).argmax())
            at = int(place[best])
            longer = self.list_of((*rest.rules[:at], (*base, best), *rest.rules[at:]))
            if math.isfinite(longer.objective) and literals[best]:
                yield longer

    def improve(self) -> None:
        """The local search."""
        before = math.inf
        while self.options.local_search and self.now.objective < before - _TIE:
            if self.watch.stopped():
                break
            before = self.now.objective
            self.reorder()
            self.replace()
            self.insert()

    def insert(self) -> None:
        """Insert rules while that helps and there is room."""
        while len(self.now.rules) < self.max_rules and not self.watch.stopped():
            if not self.keep(self.with_best_rule(self.now)):
                break

    def reorder(self) -> None:
        """Delete every useless rule, and exchange every pair of rules if that helps."""
        place = 0
        while place < len(self.now.rules) and not self.watch.stopped():
            rules = self.now.rules
            shorter = self.list_of(rules[:place] + rules[place + 1 :])
            place += not self.keep(shorter)
        n = len(self.now.rules)
        for a in range(n):
            for b in range(a + 1, n):
                if self.watch.stopped():
                    return
                order = list(self.now.rules)
                order[a], order[b] = order[b], order[a]
                self.keep(self.list_of(order))

    def replace(self) -> None:
        """Replace each rule in turn with the best one."""
        for place in range(self.max_rules):
            rules = self.now.rules
            if place >= len(rules) or self.watch.stopped():
                return
            rest = rules[:place] + rules[place + 1 :]
            if rest not in self.replaced:
                # A second try finds the same list, which an earlier one had or has surpassed.
                self.replaced.add(rest)
                self.keep(self.with_best_rule(self.list_of(rest)))

    def with_best_rule(self, found: _List) -> _List:
        """The list with the best rule that a beam search finds, at its best position; the same list
        if it finds none, or if time runs out.
        """
        if not math.isfinite(found.objective):
            return found
        self.insertions += 1
        best = found
        # The sums of bins are not the loss of the rows, which chooses among the best.
        bins = self.rows.loss == "absolute"
        count = _COMPARED if bins or len(self.task.sides) else 1
        for rule, place in self.beam(found, count):
            longer = self.list_of((*found.rules[:place], rule, *found.rules[place:]))
            if longer.objective < best.objective - _TIE:
                best = longer
        return best

    def rate(self, found: _List) -> Callable[[Rule, Ints, Floats, Ints], None]:
        """`regression_kernels.savings` for this list, a function of a condition, its rows, `saved`
        and `place`.
        """
        from jaxrules.lists.regression_kernels import rooms, savings

        rows, literals = self.rows, self.literals
        totals = np.zeros((len(found.rules) + 1, int(rows.bins.max()) + 1, 2))
        np.add.at(totals, (found.position, rows.bins), self.terms)

        sides, limits = np.zeros(0, np.int64), np.zeros((0, 2))
        if len(self.task.sides):
            sides, limits = np.array([*map(self.side, found.rules), 0]), self.limits(found)
        room = rooms(literals.firsts, totals)

        def rate(rule: Rule, some: Ints, saved: Floats, place: Ints) -> None:
            savings(
                some, literals.cells, literals.firsts, literals.runs, literals.ends,
                literals.columns, self.terms, rows.bins, found.position, totals, self.least,
                self.task.sides, self.side(rule), sides, limits, self.local * rows.constant,
                saved, place, *room,
            )  # fmt: skip

        return rate

    def limits(self, found: _List) -> Floats:
        """The least and the greatest value that rules from each place of a list on may have under
        `monotone`, (rules + 1, 2).
        """
        sides = np.array([*self.first_sides, *map(self.side, found.rules)])
        values = np.append(self.task.fixed.values[:-1], found.parts.values[:-1])
        least = np.where(sides < 0, values, -math.inf)
        most = np.where(sides > 0, values, math.inf)
        limits = [np.maximum.accumulate(least), np.minimum.accumulate(most)]
        return np.array([[-math.inf, math.inf], *np.transpose(limits)])[self.before :]

    def beam(self, found: _List, count: int) -> list[tuple[Rule, int]]:
        """The best conjunctions and their positions, the best first."""
        literals, penalty, rate = self.literals, self.penalty * self.rows.constant, self.rate(found)
        beam = [_Conjunction((), np.arange(len(self.rows.target)), -math.inf, 0)]
        best: list[tuple[float, _Conjunction]] = []
        for length in range(1, (self.options.max_length or len(literals)) + 1):
            saved = np.full((len(beam), len(literals)), -math.inf)
            place = np.zeros(saved.shape, np.int64)
            for k, one in enumerate(beam):
                if length > 1 and self.watch.stopped():
                    break
                rate(one.rule, one.rows, saved[k], place[k])
            beam = self.extended(beam, saved, place, penalty)
            best += [(one.saved - penalty * length, one) for one in beam]
            if not beam:
                break
        order = best_first(np.array([worth for worth, _ in best]))
        chosen = (best[at][1] for at in order[:count].tolist())
        return [(one.rule, one.place) for one in chosen]

    def extended(
        self, beam: list[_Conjunction], saved: Floats, place: Ints, penalty: float
    ) -> list[_Conjunction]:
        """The best conjunctions with one more literal that hold for different rows; the literal
        must earn its price.
        """
        before = np.array([one.saved for one in beam])[:, None]
        tie, reading = _TIE * self.rows.constant, self.local * self.rows.constant
        # All rows may have to read a rule that only pays with more literals, or more rules.
        pays = np.flatnonzero(saved > np.maximum(before + penalty, -reading) + tie)
        found: dict[bytes, _Conjunction] = {}
        for at in pays[best_first(saved.ravel()[pays])].tolist():
            if len(found) == self.options.beam_width:
                break
            parent, literal = beam[at // len(self.literals)], at % len(self.literals)
            rows = parent.rows[self.literals.holds((literal,))[parent.rows]]
            one = _Conjunction((*parent.rule, literal), rows, saved.flat[at], int(place.flat[at]))
            found.setdefault(rows.tobytes(), one)
        return list(found.values())
