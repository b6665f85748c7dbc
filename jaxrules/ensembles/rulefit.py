"""RuleFit: an L1-penalised linear model on rules and, optionally, linear terms.

Friedman and Popescu, "Predictive learning via rule ensembles" (2008), and
Problem 1 of the LIRE paper:

    minimise  mean_n l(y_n, f(x_n)) + l1_penalty (sum_m |a_m| + sum_j |b_j|)
    f(x) = a_0 + sum_m a_m r_m(x) + sum_j b_j l_j(x)

The intercept a_0 is not penalised. The rules r_m come from a tree ensemble; l_j(x) is the
winsorised column min(upper_j, max(lower_j, x_j)), penalised on the scale 0.4 / std(l_j), so that a
linear term has the influence of a typical rule (Sec. 5 of the paper). With scikit-learn's
``LogisticRegression``, C = 1 / (n l1_penalty); with its ``Lasso`` (which halves the squared
error), alpha = l1_penalty / 2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.bits import take_columns
from jaxrules.conditions import Condition, Conjunctions
from jaxrules.constraints import Constraints, asks
from jaxrules.cross_validation import SHARE, cross_validated, folds
from jaxrules.ensembles.extraction import RulePool, RuleSource, depends_on_labels, rule_pool
from jaxrules.fits import Fit, Status
from jaxrules.guard import guarded
from jaxrules.losses import Loss, require
from jaxrules.models import LinearTerms, RuleEnsemble
from jaxrules.rows import Activations
from jaxrules.runs import Deadline, ProgressOption, Run
from jaxrules.solvers.linear import sparse_glm
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.table import MissingRule
from jaxrules.training import (
    FIGURES,
    TrainingData,
    linear_terms_of,
    loss_for,
    settings,
    training_data,
)
from jaxrules.warm_start import given_start

_STEPS = 50
"""Default number of penalties of a path."""
_SMALLEST_PENALTY = 1e-3
"""The last penalty of a path, relative to the first, at which no rule has a weight."""

_ROUGH = 1e-3
"""Relative duality gap of intermediate solutions: in folds, and before the last
penalty of a warm-started path.
"""

_PATIENCE = 5
"""Penalties, each 13 % below the one before, over which the held-out loss may fail to
fall before the path ends.
"""

_WITHOUT_FOLDS = 0.05
"""The penalty, relative to the largest, if time ends cross-validation
before it has compared any.
"""


@guarded
def fit(
    X: Any,
    y: ArrayLike,
    *,
    l1_penalty: float | None = None,
    rules: RuleSource | None = None,
    loss: Literal["logistic", "squared", "poisson", "exponential"] | Loss | None = None,
    linear_terms: bool = False,
    winsorise: float = 0.025,
    forbidden: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    start: Fit[RuleEnsemble] | RuleEnsemble | None = None,
    n_folds: int = 3,
    one_standard_error: bool = False,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    tolerance: float = 1e-6,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleEnsemble]:
    """Fit a rule ensemble under an L1 penalty.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, numbers or counts, according to the loss, shape (rows,). More than two classes
            are fitted one against the rest, with one penalty and one pool of rules: an ensemble
            with one output per class.
        l1_penalty: the paper's lambda (gamma in the LIRE paper), against the mean loss. None
            chooses it by cross-validation of the mean loss, from the largest one at which a rule
            has a weight downwards until the held-out loss stops falling. Each fold extracts its
            rules from its own training rows, unless `rules` are given.
        rules: the source of candidate rules: "boosted_trees" (None), "forest" or "both", see
            `jaxrules.default_forest`; rules, e.g. of `jaxrules.extract_rules`, which with
            ``activations=True`` are already evaluated on `X`; or a tree ensemble that it reads,
            fitted to the data if it is not yet.
        loss: None for "logistic" if y holds classes (see `jaxrules.table.holds_classes`), else
            "squared"; "logistic", "squared", "poisson", "exponential", or a
            `jaxrules.losses.Loss` with a conjugate.
        linear_terms: add one winsorised linear term per numeric column.
        winsorise: share of values clipped at each end of a column, in [0, 0.5).
        forbidden: columns, by name or position, that no rule and no linear term uses.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with the
            column; see `jaxrules.constraints`. It fixes signs of weights and coefficients; rules
            that bound the column on both sides, or have the wrong sign, are not candidates.
        first: an expert's rules. The model starts with them and keeps them, without a
            penalty. Those whose sign `monotone` fixes are penalised like the others,
            but stay even with weight 0.
        start: a Fit, or its model, of any learner, on the same columns: its rules join the
            candidates, and the solver starts from its weights (0 if
            `monotone` forbids them). It needs an `l1_penalty`: cross-validation starts
            from the previous penalty.
        n_folds: folds of the cross-validation; more took longer and chose no better
            penalty on 24 000 rows of Adult.
        one_standard_error: choose the largest penalty within one standard error of the best.
        sample_weight: weight of every row, shape (rows,).
        missing: rule for missing values, see `jaxrules.as_table`.
        tolerance: the fit has converged when duality gap <= tolerance * objective.
        seed: of the trees and the folds.
        time_limit: seconds; the best model so far is returned when they run
            out, see `jaxrules.Deadline`.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit whose bound is the dual objective; with several outputs objective and bound are means
        over them. ``details``: l1_penalty, n_candidates (rules in the pool), after cross-validation
        cross_validation (a `jaxrules.CrossValidation`), and with more than two classes objectives,
        bounds and statuses, one per class.

    Raises:
        ValueError: for bad values in any argument, an empty rule pool, or rules of other columns.
    """
    loss = loss_for(y, loss)
    options = settings("rulefit", locals())
    run = Run("rulefit", time_limit, progress)
    l1_penalty = checks.optional(checks.penalty, "l1_penalty", l1_penalty)
    checks.require(not asks(monotone) or l1_penalty != 0, "monotone needs an l1_penalty above 0")
    n_folds = checks.integer("n_folds", n_folds, at_least=2)
    one_standard_error = checks.flag("one_standard_error", one_standard_error)
    checks.require(start is None or l1_penalty is not None, "start needs an l1_penalty")
    data, bounds = _prepare(X, y, loss, sample_weight, options, forbidden, monotone, first)
    begun = given_start(start, RuleEnsemble, data, bounds.constraints, bool(linear_terms))
    pool = bounds.pool(rules, data, run)
    if begun is not None:
        known = {frozenset(rule) for rule in pool.rules}
        others = [k for k, rule in enumerate(begun.conjunctions) if frozenset(rule) not in known]
        pool = pool.with_rules(begun.conjunctions.take(others).with_schema(data.schema), data.table)
    if l1_penalty is not None:
        problem = _Problem.of(data, pool, bounds)
        return _walk(
            problem, [l1_penalty], run, start=None if begun is None else problem.begun(begun)
        )[0]
    return _cross_validated(data, pool, rules, bounds, None, n_folds, one_standard_error, run)


@guarded
def cross_validate(
    X: Any,
    y: ArrayLike,
    *,
    l1_penalties: Sequence[float] | None = None,
    n_folds: int = 5,
    one_standard_error: bool = True,
    rules: RuleSource | None = None,
    loss: Literal["logistic", "squared", "poisson", "exponential"] | Loss | None = None,
    linear_terms: bool = False,
    winsorise: float = 0.025,
    forbidden: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    tolerance: float = 1e-6,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleEnsemble]:
    """Choose the penalty by cross-validation (see `jaxrules.cross_validation`),
    and fit with it on all rows.

    Args:
        l1_penalties: the values to choose from; None for those that `fit` tries.
        one_standard_error: choose the smallest model within one standard error
            of the best, not the best.

    The other arguments are those of `fit`.

    Returns:
        The Fit on all rows; ``details`` also hold cross_validation, the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    loss = loss_for(y, loss)
    options = settings("rulefit", locals())
    del options["l1_penalties"]  # the model keeps its own
    run = Run("rulefit", time_limit, progress)
    n_folds = checks.integer("n_folds", n_folds, at_least=2)
    one_standard_error = checks.flag("one_standard_error", one_standard_error)
    tried = None
    if l1_penalties is not None:
        tried = np.sort(checks.sequence("l1_penalties", l1_penalties, at_least=0))[::-1]
    checks.require(
        not asks(monotone) or tried is None or tried[-1] > 0, "monotone needs l1_penalties above 0"
    )
    data, bounds = _prepare(X, y, loss, sample_weight, options, forbidden, monotone, first)
    pool = bounds.pool(rules, data, run)
    return _cross_validated(data, pool, rules, bounds, tried, n_folds, one_standard_error, run)


def _cross_validated(
    data: TrainingData, pool: RulePool, rules: RuleSource | None, choices: _Choices,
    tried: NDArray[np.float64] | None, n_folds: int, one_standard_error: bool, run: Run,
) -> Fit[RuleEnsemble]:  # fmt: skip
    """The fit at the penalty that predicts best, from a list or along a path."""
    fold_of = folds(data, n_folds, choices.options["seed"])
    share = 1e-9 if run.shortened else SHARE  # no time for a whole pool: none for folds
    search = run.child(share, "rulefit cross-validation")
    pools = _fold_pools(data, pool, rules, fold_of, choices, search)
    problem = _Problem.of(data, pool, choices, pools)
    penalties = _penalties(problem, _STEPS, search) if tried is None else tried

    def walk(k: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
        if k >= len(pools):
            return
        fold, solved = _Problem.of(inside, pools[k], choices, [pool, *pools]), None
        for penalty in penalties.tolist():
            solved = fold.solve(penalty, solved and solved.outputs, run, _ROUGH)
            if run.stopped():
                return
            yield fold.model(solved)

    grid = [{"l1_penalty": penalty} for penalty in penalties.tolist()]
    without_folds = int(np.sum(penalties > _WITHOUT_FOLDS * penalties[0]))
    found = cross_validated(
        data,
        grid,
        walk,
        fold_of,
        search,
        one_standard_error=one_standard_error,
        otherwise=min(without_folds, len(grid) - 1),
        patience=_PATIENCE if tried is None else len(grid),
    )
    # Warm starts down the path make the last fit fast; without time for them,
    # start at the chosen penalty.
    chosen = found.chosen
    measured = np.sum(~np.isnan(found.risks), axis=0)
    reached = found.risks[
        :, (measured > 0) & (measured == measured.max())
    ]  # by only some folds if time ended early
    if (
        search.limit is not None
        and reached.size
        and np.nanmean(reached, axis=0).argmin() == reached.shape[1] - 1
    ):
        chosen = min(max(without_folds, chosen), len(grid) - 1)  # the risk was still falling
        found = dataclasses.replace(found, chosen=chosen)
    begin = 0 if search.limit is None else chosen
    result = _walk(problem, penalties[begin : chosen + 1], run, _ROUGH, cross_validation=found)[-1]
    return result if search.limit is None else dataclasses.replace(result, status=search.limit)


@guarded
def path(
    X: Any,
    y: ArrayLike,
    *,
    penalties: Sequence[float] | None = None,
    n_penalties: int = 50,
    rules: RuleSource | None = None,
    loss: Literal["logistic", "squared", "poisson", "exponential"] | Loss | None = None,
    linear_terms: bool = False,
    winsorise: float = 0.025,
    forbidden: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    tolerance: float = 1e-6,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> tuple[Fit[RuleEnsemble], ...]:
    """RuleFit at descending penalties, each warm-started from the previous one.

    Args:
        penalties: the l1_penalty values; sorted from large to small. None takes `n_penalties`
            values spaced evenly on a log scale from the smallest penalty at which every weight is
            zero (computed exactly) down to a thousandth of it.
        n_penalties: length of that default path.

    The other arguments are those of `fit`.

    Returns:
        One Fit per penalty, largest penalty first; ``details["l1_penalty"]`` is its
        penalty. If the time limit ends the path early, the fits so far are returned, and
        the status of the last one says so.

    Raises:
        ValueError: as `fit`.
    """
    loss = loss_for(y, loss)
    options = settings("rulefit", locals())
    del options["penalties"], options["n_penalties"]  # every model keeps its own
    run = Run("rulefit path", time_limit, progress)
    n_penalties = checks.integer("n_penalties", n_penalties, at_least=2, at_most=10_000)
    given = (
        penalties
        if penalties is None
        else np.sort(checks.sequence("penalties", penalties, at_least=0))[::-1]
    )
    checks.require(
        not asks(monotone) or given is None or given[-1] > 0, "monotone needs penalties above 0"
    )
    data, bounds = _prepare(X, y, loss, sample_weight, options, forbidden, monotone, first)
    problem = _Problem.of(data, bounds.pool(rules, data, run), bounds)
    return _walk(problem, _penalties(problem, n_penalties, run) if given is None else given, run)


# The problem: which columns, which rows


_Positions = tuple[sparse_glm.Solution | tuple[NDArray[np.float64], float], ...]
"""Where the solver starts: for each output, a solution, or coefficients and intercept."""


class _Solved(NamedTuple):
    """The solution at one penalty: one of the solver's per output."""

    l1_penalty: float
    outputs: tuple[sparse_glm.Solution, ...]

    def each(self, figure: str) -> tuple[Any, ...]:
        """A figure of every output."""
        return tuple(getattr(solution, figure) for solution in self.outputs)

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """Shape (rules and terms, outputs)."""
        return np.stack(self.each("coefficients"), axis=1) + 0.0  # no -0.0

    @property
    def objective(self) -> float:
        return float(np.mean(self.each("objective")))


@dataclass(frozen=True, eq=False)
class _Choices:
    """The settings and constraints of a fit.

    Attributes:
        options: the settings of the fit.
        constraints: on rules and terms.
        first: the rules that come first and stay.
    """

    options: Mapping[str, Any]
    constraints: Constraints
    first: Conjunctions

    def pool(self, rules: RuleSource | None, data: TrainingData, run: Run) -> RulePool:
        """The candidates on some data: the first rules, then the others."""
        may_be_empty = self.options["linear_terms"] or len(self.first) > 0
        pool = rule_pool(rules, data, self.options["seed"], run, may_be_empty, self.constraints)
        if not len(self.first):
            return pool
        first = self.first.with_schema(data.schema)
        return RulePool(first, Activations.of(first, data.table)).with_rules(pool.rules, data.table)

    def signs(
        self, rules: Conjunctions, linear: LinearTerms | None, n_outputs: int
    ) -> list[NDArray[np.bool_]] | None:
        """For every output, whether the weight of a rule or term may be negative,
        and positive, (columns, 2).
        """
        if not self.constraints.monotone:
            return None
        rising = [Condition.above(int(f), 0.0) for f in ([] if linear is None else linear.feature)]
        every = Conjunctions.concatenate(
            [rules, Conjunctions.build(rules.schema, [[one] for one in rising])]
        )
        return [self.constraints.signs(every, output, n_outputs) for output in range(n_outputs)]


@dataclass(frozen=True, eq=False)
class _Problem:
    data: TrainingData
    pool: RulePool
    linear: LinearTerms | None  # with coefficients of 1
    factors: NDArray[np.float64]  # of the penalties of rules and terms
    design: sparse_glm.Design
    choices: _Choices
    signs: list[NDArray[np.bool_]] | None  # of every output, as of `_Choices.signs`

    @property
    def options(self) -> Mapping[str, Any]:
        return self.choices.options

    @classmethod
    def of(
        cls, data: TrainingData, pool: RulePool, choices: _Choices, others: Sequence[RulePool] = ()
    ) -> _Problem:
        """With room for other pools on as many rows: with linear terms, all of
        them share compiled kernels.
        """
        options, linear, factors, row = (
            choices.options,
            None,
            np.ones(len(pool.rules)),
            pool.activations.pattern,
        )
        columns: Any = BitColumns(pool.activations.bits)
        if options["linear_terms"]:
            linear, more = linear_terms_of(data, options["winsorise"])
            used = np.flatnonzero(~np.isin(linear.feature, list(choices.constraints.forbidden)))
            linear, more = linear.take(used), more[used]
            columns, factors = (
                (pool.activations.holds().T[row], linear.values(data.table)),
                np.append(factors, more),
            )
        elif not data.loss.mergeable:
            columns = BitColumns(
                take_columns(pool.activations.bits, pool.activations.n_patterns, row)
            )
        if options["linear_terms"] or not data.loss.mergeable:  # every row by itself
            row = np.arange(len(row))
        size = len(factors) - len(pool.rules)
        room = (len(row), max(len(other.rules) + size for other in (pool, *others)))
        design = sparse_glm.Design.of(columns, inverse=row, room=room)
        signs = choices.signs(pool.rules, linear, len(data.outputs))
        free = np.arange(len(factors)) < len(choices.first)
        factors[free if signs is None else free & np.all(signs, axis=(0, 2))] = 0.0
        return cls(data, pool, linear, factors, design, choices, signs)

    @cached_property
    def masters(self) -> list[sparse_glm.Problem]:
        """What the solver is asked, for every output."""
        data, signs = (
            self.data,
            [None] * len(self.data.outputs) if self.signs is None else self.signs,
        )
        return [
            sparse_glm.Problem.of(
                self.design, target, data.loss, data.weights, True, self.factors, own
            )
            for target, own in zip(data.outputs, signs, strict=True)
        ]

    def begun(self, model: RuleEnsemble) -> _Positions:
        """A model whose rules are in the pool as coefficients and intercept, an output each."""
        place = {frozenset(rule): k for k, rule in reversed(list(enumerate(self.pool.rules)))}
        coefficients = np.zeros((len(self.factors), model.n_outputs))
        np.add.at(
            coefficients, [place[frozenset(rule)] for rule in model.conjunctions], model.weights
        )
        if model.linear is not None and self.linear is not None:
            known = dict(zip(model.linear.feature.tolist(), model.linear.coefficients, strict=True))
            for k, feature in enumerate(self.linear.feature.tolist(), start=len(self.pool.rules)):
                coefficients[k] = known.get(feature, 0.0)
        for k, signs in enumerate(self.signs or []):
            may_fall, may_rise = signs.T
            coefficients[:, k] *= np.where(coefficients[:, k] > 0, may_rise, may_fall)
        return tuple(
            zip(coefficients.T, np.asarray(model.intercept, np.float64).tolist(), strict=True)
        )

    def solve(
        self, l1_penalty: float, start: _Positions | None, run: Run, tolerance: float = 0.0
    ) -> _Solved:
        """The solution at a penalty, to this tolerance or that of the fit; if the run is stopped,
        `start` or the constant model.
        """
        solutions: list[sparse_glm.Solution] = []
        tolerance = max(tolerance, self.options["tolerance"])
        for k, master in enumerate(self.masters):
            begin, part = (
                None if start is None else start[k],
                run.child(1 / (len(self.masters) - k)),
            )
            solutions.append(master.solve(l1_penalty, start=begin, tolerance=tolerance, run=part))
        return _Solved(l1_penalty, tuple(solutions))

    def model(self, solved: _Solved) -> RuleEnsemble:
        """The rules and terms with nonzero weight."""
        weights, coefficients = np.split(solved.coefficients, [len(self.pool.rules)])
        used = np.flatnonzero(
            weights.any(axis=1) | (np.arange(len(weights)) < len(self.choices.first))
        )
        linear = None
        if self.linear is not None:
            kept = np.flatnonzero(coefficients.any(axis=1))
            linear = dataclasses.replace(self.linear.take(kept), coefficients=coefficients[kept])
        options = dict(self.options)
        if options.setdefault("l1_penalty", solved.l1_penalty) is None:
            options["chosen_l1_penalty"] = solved.l1_penalty
        loss, intercept = self.data.loss, np.array(solved.each("intercept"))
        made = tuple(options.items())
        return RuleEnsemble(
            self.pool.rules.take(used), weights[used], intercept, linear, loss.link, made, loss.name
        )


def _prepare(
    X: Any,
    y: ArrayLike,
    loss: Loss,
    sample_weight: ArrayLike | None,
    options: Mapping[str, Any],
    forbidden: Any,
    monotone: Any,
    first: Any,
) -> tuple[TrainingData, _Choices]:
    """Check every argument, then read the data."""
    require(loss, "conjugate", "the certificate of rulefit")
    checks.flag("linear_terms", options["linear_terms"])
    checks.number("winsorise", options["winsorise"], at_least=0, below=0.5)
    checks.number("tolerance", options["tolerance"], above=0, below=1)
    checks.seed(options["seed"])
    data = training_data(X, y, loss, sample_weight=sample_weight, missing=options["missing"])
    constraints = Constraints.of(data.table.schema, forbidden, (), monotone)
    constraints.warn_of_constants(data.table)
    return data, _Choices(
        options, constraints, constraints.first(data.table.schema, first, len(data.outputs))
    )


# Fits along a path


def _penalties(problem: _Problem, n: int, run: Run) -> NDArray[np.float64]:
    largest = max(master.max_penalty(run) for master in problem.masters)
    return largest * np.geomspace(1.0, _SMALLEST_PENALTY, n)


def _walk(
    problem: _Problem,
    penalties: Sequence[float] | NDArray[np.float64],
    run: Run,
    rough: float = 0.0,
    start: _Positions | None = None,
    **details: Any,
) -> tuple[Fit[RuleEnsemble], ...]:
    """Warm-started fits until the run is stopped; at least one. `rough`: least
    tolerance of all but the last.
    """
    path: list[_Solved] = []
    run.phase, run.total = "search", len(penalties)
    with run:
        for penalty in penalties:
            tolerance = rough if len(path) < len(penalties) - 1 else 0.0
            path.append(
                problem.solve(float(penalty), path[-1].outputs if path else start, run, tolerance)
            )
            run.step(path[-1].objective, int(path[-1].coefficients.any(axis=1).sum()))
            if run.stopped():
                break
    if not path:  # interrupted: the start, or the model without rules
        path.append(problem.solve(float(penalties[0]), start, run))
    fits = [
        Fit(
            problem.model(solved),
            solved.objective,
            "min",
            Status.worst(solved.each("status")),
            float(np.mean(solved.each("bound"))),
            run.history[: i + 1],
            run.history[i].seconds if i < len(run.history) else run.seconds(),
            {"l1_penalty": solved.l1_penalty, "n_candidates": len(problem.pool.rules), **details}
            | (
                {name: solved.each(figure) for name, figure in FIGURES.items()}
                if len(solved.outputs) > 1
                else {}
            ),
        )
        for i, solved in enumerate(path)
    ]
    if (
        run.limit is Status.INTERRUPTED
        or run.shortened
        or (run.limit is not None and len(fits) < len(penalties))
    ):
        fits[-1] = dataclasses.replace(fits[-1], status=run.limit or Status.TIME_LIMIT)
    return tuple(fits)


# Cross-validation


def _fold_pools(
    data: TrainingData,
    pool: RulePool,
    rules: RuleSource | None,
    fold_of: NDArray[np.int64],
    choices: _Choices,
    run: Run,
) -> list[RulePool]:
    """The given or newly made rules of each fold on its training rows, until the run is stopped."""
    pools: list[RulePool] = []
    for k in range(fold_of.max() + 1):
        if run.stopped():
            break
        inside = data[fold_of != k]
        known = RulePool(pool.rules, pool.activations.take_rows(fold_of != k))
        pools.append(choices.pool(rules, inside, run) if depends_on_labels(rules) else known)
    return pools
