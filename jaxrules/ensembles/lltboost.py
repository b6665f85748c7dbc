"""LLTBoost: boosting of rules on sparse linear combinations of columns.

Behzadimanesh, Le Bodic, Webb and Boley, "Interpretable Representation Learning for Additive Rule
Ensembles". A rule is a conjunction of propositions 1{x'w >= t} with sparse w. The ensemble
f = b_0 + sum_i b_i q_i (Eq. 1) grows by fully corrective boosting (Eq. 7 to 9): with g_i the
derivative of the loss by the score of row i, rule m maximises |g'q| (Eq. 10); then all weights are
refitted.

A rule grows by one proposition at a time, for each sign of g'q (Algorithm 1). Among the rows that
satisfy the rule so far, a proposition raises the sum of the selected gradients if it classifies
their signs, with weights |g_i| (Eq. 19). The surrogate is L1-penalised logistic regression
(Eq. 21) with 1, 2, ... non-zeros, each at the smallest penalty with so many (Eq. 5,
`jaxrules.solvers.linear.l1_path`). A further non-zero is accepted if it lowers the ensemble's risk
on held-out rows, all weights refitted, by a tolerance; a further proposition if it raises |g'q| by
another. `_grow` is Algorithm 1. Its loop over s is `propose`, which answers for all s in one
compiled program.

The paper leaves some choices open. The defaults are those that did best on its data sets: a quarter
of the rows is held out; w and t are refitted without the L1 penalty on the chosen columns; the
final weights are refitted on all rows. The paper to the letter is refit_propositions=False and
refit_on_all_rows=False; l2_penalty=1e-4, risk_tolerance=-0.05 and objective_tolerance=0.1 then
come close to its tables.

Under `monotone` a rule's weight will have the sign of -g'q, which restricts the signs of the
coefficients in its propositions. Logistic regression is solved within these signs, with the
penalties and the support sizes of that problem, and refits keep the signs of the weights of rules
that use constrained columns. The proof is in `jaxrules.constraints`.

>>> import numpy as np
>>> X = np.random.default_rng(0).normal(size=(200, 3))
>>> y = np.where(2 * X[:, 0] - X[:, 1] > 0.5, 3.0, -1.0)
>>> fit(X, y, max_rules=1).model.conjunctions.describe(0)
'2 x0 - x1 <= 0.4'
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.conditions import Condition, Conjunctions
from jaxrules.constraints import Constraints
from jaxrules.cross_validation import (
    SHARE,
    arguments_of,
    by_size,
    cross_validated,
    folds,
    last_fit,
    sizes_to_try,
)
from jaxrules.ensembles.in_time import model_in_time
from jaxrules.ensembles.oblique import Standardised, readable
from jaxrules.fits import Details, Fit, Settings, Status
from jaxrules.float64 import on_device, x64_kernel
from jaxrules.losses import Loss, LossOption, best_constant, logistic, mean_loss
from jaxrules.models import RuleEnsemble
from jaxrules.options import Folds, ScoreOptions, learner, option, options
from jaxrules.placement import padded
from jaxrules.runs import Run
from jaxrules.solvers.linear.l1_path import Separators, l1_path
from jaxrules.solvers.linear.newton import newton
from jaxrules.solvers.linear.refit import refit_weights
from jaxrules.solvers.patience import Patient
from jaxrules.solvers.shapes import bucket
from jaxrules.table import TableLike
from jaxrules.training import (
    TrainingData,
    held_out,
    loss_for,
    model_loss,
    one_against_rest,
    paths_against_rest,
    sample_in_time,
)

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

_FEW_RULES = 10
_NOTHING = 1e-9
"""Sums of gradients below this share of the sum of their sizes are rounding."""
_SEPARATOR_PENALTY = 1e-3
"""Ridge on refitted propositions, in standardised columns and for weights of sum one: the
coefficients stay finite if the rows are separable.
"""
_ROUGHLY = 1e-5
"""Newton's method stops once its model promises a smaller relative decrease: candidates differ by
per cents.
"""
_SMALLEST_SHAPE = (64, 4)
"""Rows and columns of the smallest problem that is compiled; smaller ones are padded."""
_FEWEST_SLOTS = 16
"""For the constant and the rules: one compiled program serves all ensembles of up to 15 rules."""
_MANY_ROWS = 1 << 16
"""From here on, candidates are evaluated one after the other, which needs less memory."""


@dataclass(frozen=True)
class Part:
    """How one proposition of a rule was found.

    Attributes:
        coefficients: w in standardised columns, by name of the column. The scale of w and t
            together is arbitrary.
        threshold: t, in standardised columns.
        penalty: the smallest penalty with this support, as a share of the penalty of the empty
            support; NaN if `cut_from_one_column`.
        skipped: support sizes up to the largest allowed that do not occur on the path of penalties.
    """

    coefficients: Mapping[str, float]
    threshold: float
    penalty: float
    skipped: tuple[int, ...]

    @property
    def cut_from_one_column(self) -> bool:
        """Whether it is the best cut of a single column, not of logistic regression: by
        `axis_parallel`, or for lack of time to compile the search.
        """
        return math.isnan(self.penalty)


@dataclass(frozen=True)
class Stage:
    """How one rule was found.

    Attributes:
        sign: of the sum of gradients that the rule selects; its weight, when added, has the
            opposite sign.
        objective: |g'q| (Eq. 10), with weights of the training part that sum to one.
        risk: mean loss of the ensemble on the held-out rows, less its smallest possible value; NaN
            for a rule on a single column, made because there was no time to compile the search.
        parts: the propositions.
        seconds: of the search.
    """

    sign: int
    objective: float
    risk: float
    parts: tuple[Part, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class LLTBoostDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        stages: one per rule that was found.
        validation_rows: which rows of positive weight were held out, shape (rows,).
        reason: why there are no more rules.
        sample: the number of rows that the rules come from; None for all. There are then no stages.
    """

    stages: tuple[Stage, ...]
    validation_rows: Rows
    reason: str
    sample: int | None = None

    @property
    def cut_from_one_column(self) -> tuple[int, ...]:
        """The stages with a proposition that is the best cut of a single column, see `Part`."""
        return tuple(
            k
            for k, stage in enumerate(self.stages)
            if any(part.cut_from_one_column for part in stage.parts)
        )


_count = functools.partial(checks.integer, at_least=1, at_most=10**6)


@options
class _Shared(ScoreOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        loss: None for "logistic" if y holds classes (see `jaxrules.table.holds_classes`), else
            "squared"; a name; or a function of (y, score) made of JAX operations, convex and twice
            differentiable in the score.
        max_length: the most propositions of a rule, k_r.
        max_nonzeros: the most columns in a proposition, k_s.
        validation_fraction: share of the rows, in [0, 1), held out to choose the number of columns.
            Equal rows stay together, and classes keep their shares. With 0 the training rows
            themselves decide.
        risk_tolerance: eps_s, relative change of the held-out risk: by default a further column
            must lower it by 10 %.
        objective_tolerance: eps_p, the relative gain of |g'q| that every further proposition must
            exceed.
        l2_penalty: ridge on the weights of the rules, against the mean loss: mean_i l + l2_penalty
            / 2 sum_j b_j^2. It keeps the weights of rules that separate classes finite.
            `l2_penalty` of `jaxrules.boosting` is this times the number of rows.
        refit_propositions: refit w and t on the columns that the L1 penalty chose, under a ridge of
            1e-3 alone. False keeps the shrunken solution.
        refit_on_all_rows: at the end, refit the weights on all rows; False keeps those of the
            training part.
        refine_thresholds: given w, take the threshold of largest |g'q| (exact, by sorting).
        axis_parallel: for propositions on one column, take the column and threshold of largest
            |g'q| (exact) instead of logistic regression.
        beam_width: the number of unfinished conjunctions to keep, per sign; 1 is Algorithm 1.
            Several are ranked by held-out risk, with every column priced at `risk_tolerance`.
        forbidden: columns, by name or position, that no rule may use.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with the
            column; see `jaxrules.constraints`. A rule whose weight becomes 0 by that is dropped.
        first: an expert's rules, or those of a fitted model. The model starts with them and keeps
            them; they count among `max_rules`. Their weights are fitted at the start and at every
            refit, under `l2_penalty`.
        missing: rule for missing values, see `jaxrules.as_table`. With "own_category" a row with a
            missing number in a proposition satisfies it or not, whichever raises the objective; the
            choice is part of the rule. A missing category is an indicator like others.
        seed: of the held-out rows.
    """

    learner = "lltboost"
    renamed: ClassVar[Mapping[str, str]] = {"max_propositions": "max_length"}

    loss: LossOption = None
    max_length: int = option(_count, default=5)
    max_nonzeros: int = option(_count, default=5)
    validation_fraction: float = option(checks.number, default=0.25, at_least=0, below=1)
    risk_tolerance: float = option(checks.number, default=-0.1, at_least=-1)
    objective_tolerance: float = option(checks.penalty, default=0.3)
    l2_penalty: float = option(checks.penalty, default=1e-3)
    refit_propositions: bool = option(checks.flag, default=True)
    refit_on_all_rows: bool = option(checks.flag, default=True)
    refine_thresholds: bool = option(checks.flag, default=False)
    axis_parallel: bool = option(checks.flag, default=False)
    beam_width: int = option(_count, default=1)
    forbidden: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None
    first: Conjunctions | None = None


@options
class Options(_Shared):
    """The options of `fit` and `path`.

    Attributes:
        max_rules: the number of rules, r; fewer if no further rule changes the risk.
    """

    max_rules: int = option(_count, default=10)


@options
class Grid(Folds, _Shared):
    """The options of `cross_validate`.

    Attributes:
        max_rules: the most rules; every number from 1 on is tried.
    """

    max_rules: int = option(checks.integer, default=20, at_least=1, at_most=10_000)


@learner(Options)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: Options
) -> Fit[RuleEnsemble]:
    """Boost rules whose propositions combine several columns.

    Numbers are standardised, and every category is an indicator; a proposition may combine both. A
    proposition on one column becomes a plain condition on it. Weights and thresholds are given on
    the user's own scale, with the fewest digits that change the rule on no training row.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> result = fit(X, np.where(X[:, 0] + X[:, 2] > 0, "yes", "no"), max_rules=1, max_nonzeros=2)
    >>> len(result.model.conjunctions), sorted(result.details.stages[0].parts[0].coefficients)
    (1, ['x0', 'x2'])

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: numbers for "squared" and user losses, counts for "poisson", classes for "logistic" and
            "exponential", shape (rows,). More than two classes are fitted one-vs-rest.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is the mean loss plus ridge over the rows that the weights were fitted
        on, with `LLTBoostDetails`. For more than two classes see
        `jaxrules.training.one_against_rest`.

    Raises:
        ValueError: for bad values in any argument, or a target that the loss is not defined for.
        TypeError: for arguments of the wrong type.
    """
    task = _Task.of(X, y, sample_weight, options)
    sample = None if len(task.first) else sample_in_time(task.data, task.run, options.seed)
    if sample is not None:
        return _in_time(task, sample)
    return one_against_rest(task.data, task.run, lambda part, run: _boost(part, task, run)[-1])


def _in_time(task: _Task, sample: TrainingData) -> Fit[RuleEnsemble]:
    """The model that a sample of the rows shows, with its weights there, rated on all rows."""
    data, options, run = task.data, task.options, task.run
    model, _ = model_in_time(
        sample, fit, options, run, max_rules=options.max_rules, max_length=options.max_length
    )
    squares = float(np.sum(np.square(model.weights))) / len(data.outputs)
    objective = model_loss(model, data) + options.l2_penalty / 2 * squares
    with run:
        run.step(objective, len(model.conjunctions))
    held = np.zeros(len(data.rows), bool)
    details = LLTBoostDetails(
        stages=(), validation_rows=held, reason=Status.TIME_LIMIT.advice,
        sample=len(sample.weights),
    )  # fmt: skip
    return run.finish(
        replace(model, options=task.settings), objective, "min", Status.TIME_LIMIT, details=details
    )


@learner(Options)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: Options
) -> list[Fit[RuleEnsemble]]:
    """One Fit for each number of rules from 1 to `max_rules`, from one run: what `fit` with that
    limit returns.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> fits = path(X, X[:, 0] + np.maximum(X[:, 1], 0), max_rules=3)
    >>> [len(one.model.conjunctions) for one in fits]
    [1, 2, 3]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits. The list is shorter if `fit` stops early, and holds the constant model if there is
        no rule.

    Raises:
        ValueError, TypeError: as `fit`.
    """
    task = _Task.of(X, y, sample_weight, options)
    return paths_against_rest(
        task.data, task.run, lambda part, run: _boost(part, task, run), len(task.first)
    )


@learner(Grid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: Grid
) -> Fit[RuleEnsemble]:
    """Choose the number of rules by cross-validation (see `jaxrules.cross_validation`); fit on all
    rows.

    There is one `path` per fold, which holds out rows of its own.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> y = np.where(X[:, 0] - X[:, 1] > 0, 1.0, 0.0)
    >>> result = cross_validate(X, y, loss="squared", max_rules=3, n_folds=2)
    >>> result.details.cross_validation.risks.shape
    (2, 3)

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    loss = loss_for(y, options.loss)
    options = replace(options, loss=loss)  # the same in all folds
    run = options.run()
    data = options.training_data(X, y, sample_weight, loss)
    sizes = sizes_to_try(options.first, options.max_rules)

    def walk(_: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
        own = options.to(Options, time_limit=run.deadline, progress=False)
        return by_size(path.with_options(*arguments_of(inside), own), sizes, run)

    found = cross_validated(
        data,
        [{"max_rules": size} for size in sizes],
        walk,
        folds(data, options.n_folds, options.seed),
        run.child(SHARE, "lltboost cross-validation"),
        one_standard_error=options.one_standard_error,
        n_jobs=options.n_jobs,
        otherwise=min(_FEW_RULES, len(sizes)) - 1,
    )
    chosen = options.to(Options, **found.setting)
    return last_fit(
        found,
        run,
        lambda left: fit.with_options(X, y, sample_weight, replace(chosen, time_limit=left)),
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """The data of a fit, and the restrictions on its rules.

    Attributes:
        settings: which the model keeps.
        first: an expert's rules.
        n_outputs: of the model.
    """

    data: TrainingData
    options: Options
    run: Run
    settings: Settings
    constraints: Constraints
    first: Conjunctions
    n_outputs: int

    @classmethod
    def of(
        cls, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: Options
    ) -> _Task:
        """Read the data and the constraints."""
        run = options.run(total=options.max_rules)
        data = options.training_data(X, y, sample_weight, loss_for(y, options.loss))
        schema, n_outputs = data.table.schema, len(data.outputs)
        constraints = Constraints.of(schema, options.forbidden, (), options.monotone)
        constraints.warn_of_constants(data.table)
        first = constraints.first(schema, options.first, n_outputs)
        constraints.check_room(first, options.max_rules)
        data = replace(data, table=constraints.blanked(data.table))
        settings = options.settings(loss=data.loss)
        return cls(data, options, run, settings, constraints, first, n_outputs)


# Boosting


def _boost(data: TrainingData, task: _Task, run: Run) -> list[Fit[RuleEnsemble]]:
    """The fits with 1, 2, ... rules of one output; that without rules if there is none."""
    ensemble = _Ensemble(data, task)
    stages: list[Stage] = []
    reason = None
    with run:
        run.phase = "search"
        while ensemble.n_rules < task.options.max_rules and reason is None and not run.stopped():
            began = time.perf_counter()
            grown = None if ensemble.is_perfect else _grow(ensemble, task.options, run)
            if grown is not None and not ensemble.repeats(grown.rows):
                parts = ensemble.add(grown)
                seconds = time.perf_counter() - began
                stages.append(Stage(grown.sign, grown.objective, grown.risk, parts, seconds))
                run.step(ensemble.steps[-1].objective, ensemble.n_rules)
            elif ensemble.is_perfect:
                reason = "all gradients are zero: the ensemble fits the training rows perfectly"
            elif grown is not None:
                reason = (
                    "the best rule selects the same training rows as an earlier one, or all others"
                )
            elif not run.stopped():
                reason = "no proposition raises the objective"
    reason = reason or (run.limit.advice if run.limit else "max_rules is reached")
    found = Conjunctions.build(data.schema, ensemble.rules, [len(rule) for rule in ensemble.rules])
    rules = Conjunctions.concatenate([ensemble.first.with_schema(data.schema), found])

    def finished(m: int) -> Fit[RuleEnsemble]:
        last = m == len(stages)
        weights, intercept, objective = ensemble.steps[m]
        kept = [
            r
            for r in range(len(weights))
            if r < len(ensemble.first) or weights[r] or not ensemble.signs[1 + r]
        ]
        model = RuleEnsemble(
            rules.take(kept),
            weights[kept, None],
            np.array([intercept]),
            None,
            data.loss.link,
            task.settings,
            data.loss.name,
        )
        details = LLTBoostDetails(
            stages=tuple(stages[:m]),
            validation_rows=ensemble.held_out,
            reason=reason if last else "max_rules is reached",
        )
        fit = run.finish(model, objective, "min", Status.CONVERGED, details=details)
        return fit if last else run.earlier(fit, m, Status.CONVERGED)

    return [finished(m) for m in range(min(1, len(stages)), len(stages) + 1)]


class _Step(NamedTuple):
    """The weights of an ensemble and the objective at them."""

    weights: Floats
    intercept: float
    objective: float


class _Ensemble:
    """The rules so far, in the arrays of `propose`: rows are padded to a bucket, so that few shapes
    are compiled.
    """

    def __init__(self, data: TrainingData, task: _Task) -> None:
        self.data, self.task = data, task
        n, options = data.table.n_rows, task.options
        self.held_out = held_out(data, options.validation_fraction, options.seed)
        trains = data.weights * ~self.held_out
        decides = data.weights * self.held_out if self.held_out.any() else trains
        self.fit_weights, self.check_weights = trains / trains.sum(), decides / decides.sum()
        self.final_weights = (
            data.weights / data.weights.sum() if options.refit_on_all_rows else self.fit_weights
        )
        bound = task.constraints.of_output(data.output, task.n_outputs)
        self.columns = Standardised.of(bound.blanked(data.table), data.weights)
        self.names = self.columns.names(data.table)
        self.directions = self.columns.directions(bound) if task.constraints.monotone else None
        self.n_rows, size = n, padded(bucket(max(n, _SMALLEST_SHAPE[0])))
        width = bucket(max(len(self.columns.values), _SMALLEST_SHAPE[1]))
        target = np.ones(size)
        target[:n] = data.target
        self.arrays = on_device(
            Arrays(
                _padded(self.columns.values, width, size),
                _padded(self.columns.missing, width if len(self.columns.missing) else 0, size),
                target,
                _padded(self.fit_weights[None], 1, size)[0],
                _padded(self.check_weights[None], 1, size)[0],
            ),
            rows=-1,
        )
        # Relative changes are of the risk above its smallest value: of the deviance for Poisson
        # counts. This least loss of a row is -loss*(0), with the conjugate loss*.
        conjugate = data.loss.conjugate
        least = 0.0 if conjugate is None else -conjugate(data.target, np.zeros(n))
        self.least_risk = float(np.sum(self.check_weights * least))
        slots = bucket(max(options.max_rules + 1, _FEWEST_SLOTS))
        self.design = np.zeros((slots, size))  # the constant, then the rules
        self.design[0] = 1.0
        self.signs = np.zeros(len(self.design), int)  # of their weights, 0 for any
        self.first = task.first.take(np.flatnonzero(self._may_be(task.first).any(axis=1)))
        self.rules: list[tuple[Condition, ...]] = []  # that were found
        self.fitted = np.zeros(len(self.design))  # on the training part
        self.fitted[0] = best_constant(data.loss, data.target, self.fit_weights)
        if len(self.first):
            self.design[1 : 1 + len(self.first), :n] = self.first.satisfied(data.table).T
            self._bind(1, self.first)
            self.fitted = self._refit(self.fit_weights, self.fitted)
        self.steps = [self._refitted()]
        self.first_gradient = self.total_gradient

    @property
    def n_rules(self) -> int:
        """The number of rules: the expert's, and those that were found."""
        return len(self.first) + len(self.rules)

    def _may_be(self, rules: Conjunctions) -> NDArray[np.bool_]:
        """Whether their weights may be negative, and positive, (rules, 2)."""
        return self.task.constraints.signs(rules, self.data.output, self.task.n_outputs)

    def _bind(self, slot: int, rules: Conjunctions) -> None:
        """Restrict the weights of rules, from this slot on, to their signs."""
        may_be = self._may_be(rules).astype(int)
        self.signs[slot : slot + len(rules)] = may_be[:, 1] - may_be[:, 0]

    @property
    def gradient(self) -> Floats:
        """Derivatives of the training part's mean loss by the scores of its rows, shape (rows,)."""
        score = self.fitted @ self.design[:, : self.n_rows]
        return np.asarray(self.fit_weights * self.data.loss.gradient(self.data.target, score))

    @property
    def total_gradient(self) -> float:
        return float(np.abs(self.gradient).sum())

    @property
    def is_perfect(self) -> bool:
        return not self.total_gradient > _NOTHING * self.first_gradient

    def ask(self, asked: list[_Conjunction], run: Run) -> list[Proposals] | None:
        """The answers of `propose` for conjunctions, one lane each; None if there is no time to
        compile it.
        """
        options, count = self.task.options, 2 * self.task.options.beam_width
        lanes = Lanes(np.ones(count), np.zeros((count, self.design.shape[1]), bool))
        for lane, one in enumerate(asked):
            lanes.sign[lane], lanes.held[lane, : self.n_rows] = one.sign, one.rows
        bounds = None
        if self.directions is not None:
            directions = np.zeros(len(self.arrays.columns))
            directions[: len(self.directions)] = self.directions
            constrained = np.zeros(count, bool)
            constrained[: len(asked)] = [
                any((w * directions).any() for w, *_ in one.parts) for one in asked
            ]
            lanes = lanes._replace(constrained=constrained)
            bounds = Bounds(directions, self.signs.astype(np.float64))
        program = Program(
            self.data.loss,
            min(options.max_nonzeros, self.arrays.columns.shape[0]),
            options.refit_propositions,
            options.refine_thresholds,
            options.axis_parallel,
        )
        design, held = on_device((self.design, lanes.held), rows=-1)
        fitted = Fitted(design, self.fitted, self.n_rules + 1, options.l2_penalty)
        lanes = lanes._replace(held=held)
        answers = _propose_in_time(run.stopped, self.arrays, fitted, lanes, bounds, program=program)
        if answers is None:
            return None
        answers = answers._replace(
            rows=answers.rows[..., : self.n_rows],
            risk=np.where(answers.found, answers.risk - self.least_risk, math.inf),
        )
        return [Proposals(*(field[lane] for field in answers)) for lane in range(len(asked))]

    def repeats(self, rows: Rows) -> bool:
        """Whether a rule that selects these rows of the training part adds nothing to the rules
        so far.
        """
        used = self.fit_weights > 0
        absent = (self.signs != 0) & (self.fitted == 0)  # its sign holds its weight at 0
        before = (
            self.design[: self.n_rules + 1, : self.n_rows][~absent[: self.n_rules + 1]][:, used] > 0
        )
        same = (before == rows[used]).mean(axis=1)
        return bool(((same == 0) | (same == 1)).any())

    def add(self, found: _Conjunction) -> tuple[Part, ...]:
        """Append a rule in its readable form, and refit all weights."""
        conditions: list[Condition] = []
        among, table = np.ones(self.n_rows, bool), self.data.table
        for w, b, admits, _, _ in found.parts:
            condition, rows = readable(self.columns, table, w[: len(self.names)], b, admits, among)
            conditions.append(condition)
            among = among & rows
        self.rules.append(tuple(conditions))
        self.design[self.n_rules, : self.n_rows] = among
        if self.directions is not None:
            self._bind(self.n_rules, Conjunctions.build(self.data.schema, [conditions]))
        self.fitted = self._refit(self.fit_weights, self.fitted)
        self.steps.append(self._refitted())
        return tuple(
            Part({self.names[j]: float(w[j]) for j in np.flatnonzero(w)}, -b, penalty, skipped)
            for w, b, _, penalty, skipped in found.parts
        )

    def _refit(self, weights: Floats, start: Floats) -> Floats:
        """The best weights under these row weights; those of rules to come stay 0."""
        m = self.n_rules
        result = np.zeros_like(start)
        result[1 : m + 1], result[0] = refit_weights(
            self.data.loss,
            self.data.target,
            self.design[1 : m + 1, : self.n_rows].T,
            l2_penalty=self.task.options.l2_penalty,
            intercept=True,
            sample_weight=weights,
            start=(start[1 : m + 1], float(start[0])),
            signs=self.signs[1 : m + 1],
        )
        return result

    def _refitted(self) -> _Step:
        """The weights to be reported."""
        options, m, b = self.task.options, self.n_rules, self.fitted
        if options.refit_on_all_rows:
            b = self._refit(self.final_weights, b)
        risk = mean_loss(
            self.data.loss, self.data.target, b @ self.design[:, : self.n_rows], self.final_weights
        )
        ridge = options.l2_penalty / 2 * float(b[1:] @ b[1:])
        return _Step(b[1 : m + 1].copy(), float(b[0]), risk + ridge)


def _padded(values: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """With rows and columns of zeros behind."""
    result = np.zeros((height, width), values.dtype)
    result[: values.shape[0], : values.shape[1]] = values
    return result


# Algorithm 1


@dataclass(frozen=True, eq=False)
class _Conjunction:
    """A conjunction under way.

    Attributes:
        sign: zeta.
        rows: which rows satisfy it.
        objective: |g'q|.
        risk: held-out risk of the ensemble with it.
        parts: per proposition w, b, whether missing numbers satisfy it, penalty,
            and skipped support sizes.
    """

    sign: int
    rows: Rows
    objective: float
    risk: float
    parts: tuple[tuple[Floats, float, bool, float, tuple[int, ...]], ...] = ()

    def extended(self, answer: Proposals, s: int) -> _Conjunction:
        """With the answered proposition of support size s + 1."""
        part = (
            answer.coefficients[s],
            float(answer.intercepts[s]),
            bool(answer.admits[s]),
            float(answer.penalties[s]),
            tuple((np.flatnonzero(~answer.found) + 1).tolist()),
        )
        return _Conjunction(
            self.sign,
            answer.rows[s],
            float(answer.objective[s]),
            float(answer.risk[s]),
            (*self.parts, part),
        )

    def price(self, risk_tolerance: float) -> float:
        """The risk, with every column in a proposition priced at `risk_tolerance`."""
        nonzeros = sum(np.count_nonzero(w) for w, *_ in self.parts)
        return self.risk * (1 + max(risk_tolerance, -0.999)) ** -nonzeros


def _grow(ensemble: _Ensemble, options: Options, run: Run) -> _Conjunction | None:
    """Algorithm 1: the conjunction of largest objective, as far as it has grown when the run is
    stopped; None if there is none.

    The loop over zeta is inside that over p: one call of `propose` answers for both signs.
    """
    gradient = ensemble.gradient
    least = _NOTHING * float(np.abs(gradient).sum())
    everything = np.ones(ensemble.n_rows, bool)
    beams = {
        sign: [_Conjunction(sign, everything, abs(float(gradient.sum())), math.inf)]
        for sign in (1, -1)
    }
    finished: dict[int, list[_Conjunction]] = {1: [], -1: []}
    for p in range(options.max_length):
        if run.stopped():
            break
        asked = [one for sign in (1, -1) for one in beams[sign]]
        # At p = 0 the two signs are one problem, with -w for w.
        answers = ensemble.ask(asked if p else beams[1], run)
        if answers is None:
            if p == 0:
                return _one_column(ensemble)
            break
        if p == 0:
            answers.append(_mirrored(answers[0]))
        beams = {1: [], -1: []}
        for one, answer in zip(asked, answers, strict=True):
            needed = max(
                (1 + options.objective_tolerance) * one.objective, least
            )  # (obj_p - obj_p-1) / obj_p-1 > eps_p
            longer = [
                one.extended(answer, s)
                for s in _sizes(answer, options)
                if answer.objective[s] > needed
            ]
            beams[one.sign] += longer
            if not longer:
                finished[one.sign].append(one)
        for sign, beam in beams.items():
            beams[sign] = sorted(beam, key=lambda one: one.price(options.risk_tolerance))[
                : options.beam_width
            ]
        if not any(beams.values()):
            break
    ended = ([one for one in finished[sign] + beams[sign] if one.parts] for sign in (1, -1))
    best = [min(ones, key=lambda one: one.price(options.risk_tolerance)) for ones in ended if ones]
    return max(best, key=lambda one: one.objective) if best else None


def _sizes(answer: Proposals, options: Options) -> list[int]:
    """The support sizes to continue with, less one: at most one in Algorithm 1, all in a wider
    beam.
    """
    found: list[int] = np.flatnonzero(answer.found).tolist()
    return found if options.beam_width > 1 else _sparsest(answer, found, options.risk_tolerance)


def _one_column(ensemble: _Ensemble) -> _Conjunction | None:
    """The best cut of a single column, for lack of time to compile `propose`."""
    columns, gradient = ensemble.columns, ensemble.gradient
    found = columns.best_cut(
        gradient[None], None if ensemble.directions is None else -ensemble.directions[None]
    )
    if found is None:
        return None
    j, cut = found
    rows = columns.values[j] >= cut
    if len(columns.missing):
        rows &= ~columns.missing[j]
    gained = float(gradient @ rows)
    # `best_cut` may have seen only a sample of the rows, with the other sign.
    if ensemble.directions is not None and gained * ensemble.directions[j] > 0:
        return None
    part = np.where(np.arange(len(columns.values)) == j, 1.0, 0.0), -cut, False, math.nan, ()
    return _Conjunction(1 if gained >= 0 else -1, rows, abs(gained), math.nan, (part,))


def _sparsest(answer: Proposals, found: list[int], risk_tolerance: float) -> list[int]:
    """The first, replaced with every later one that lowers the risk by the tolerance:
    (R_s - R_p) / R_p <= eps_s.
    """
    chosen = found[:1]
    for s in found[1:]:
        best = answer.risk[chosen[0]]
        if answer.risk[s] - best <= risk_tolerance * abs(best):
            chosen = [s]
    return chosen


def _mirrored(answer: Proposals) -> Proposals:
    """The complements of first propositions: since the gradients sum to 0, they are best for the
    other sign.
    """
    return answer._replace(
        coefficients=-answer.coefficients,
        intercepts=-answer.intercepts,
        admits=~answer.admits,
        rows=~answer.rows,
    )


# The compiled part


class Arrays(NamedTuple):
    """The training rows; those that pad a bucket have no weight.

    Attributes:
        columns: (columns, rows) of mean 0 and standard deviation 1; 0 where a number is missing.
        missing: (columns, rows) bool, where a number is missing; or (0, rows).
        target: (rows,) in the coding of the loss.
        fit_weights, check_weights: (rows,) of the training part and of the held-out part; each
            sums to 1.
    """

    columns: Any
    missing: Any
    target: Any
    fit_weights: Any
    check_weights: Any


class Fitted(NamedTuple):
    """The ensemble so far (Eq. 1), with room for further rules.

    Attributes:
        design: (slots, rows) the constant, the rules so far, zeros.
        weights: (slots,) of these.
        new: the slot of the new rule.
        l2_penalty: ridge on the weights of the rules.
    """

    design: Any
    weights: Any
    new: Any
    l2_penalty: Any


class Lanes(NamedTuple):
    """Conjunctions under way, one lane each; `lax.map` passes them on one by one, without the first
    axis.

    Attributes:
        sign: (lanes,) zeta.
        held: (lanes, rows) bool, the rows that a conjunction selects. Lanes without rows cost no
            time.
        constrained: (lanes,) bool, whether it uses a constrained column; None without `Bounds`.
    """

    sign: Any
    held: Any
    constrained: Any = None


class Bounds(NamedTuple):
    """The signs that `monotone` requires.

    Attributes:
        directions: (columns,) of a coefficient in a rule of positive weight, 0 for any.
        signs: (slots,) of the weights of the rules so far, 0 for any.
    """

    directions: Any
    signs: Any


class Program(NamedTuple):
    """The options that `propose` is compiled for (see `Options`); `sizes` is k_s."""

    loss: Loss
    sizes: int
    refit_propositions: bool = False
    refine_thresholds: bool = False
    axis_parallel: bool = False


class Proposals(NamedTuple):
    """Extensions of conjunctions: one for every lane and support size s + 1.

    Attributes:
        coefficients, intercepts: the proposition w'x + b >= 0, shapes (lanes, sizes,
            columns) and (lanes, sizes).
        admits: whether a row with a missing number satisfies it.
        penalties: see `Part`.
        found: whether there is a proposition of this size.
        rows: which rows satisfy the conjunction and it, (lanes, sizes, rows).
        objective: |g'q|.
        risk: held-out risk of the ensemble with the new rule, all weights refitted.
    """

    coefficients: Any
    intercepts: Any
    admits: Any
    penalties: Any
    found: Any
    rows: Any
    objective: Any
    risk: Any


@x64_kernel(static=("program",))
def propose(
    arrays: Arrays, fitted: Fitted, lanes: Lanes, bounds: Bounds | None = None, *, program: Program
) -> Proposals:
    """The propositions of 1, ..., `sizes` non-zeros for every conjunction, and the ensemble's
    objective and risk with them.
    """
    score = fitted.weights @ fitted.design
    gradient = arrays.fit_weights * program.loss.gradient(arrays.target, score)  # g, Eq. 10
    answer = functools.partial(_answer, arrays, fitted, bounds, program, gradient)
    nothing = functools.partial(_no_answer, arrays, program)
    # One lane after the other: a CPU gains nothing from two at once, but saves the lanes that need
    # no answer.
    return lax.map(lambda lane: lax.cond(jnp.any(lane.held), answer, nothing, lane), lanes)


_propose_in_time = Patient(propose)


def _answer(
    arrays: Arrays,
    fitted: Fitted,
    bounds: Bounds | None,
    program: Program,
    gradient: Array,
    lane: Lanes,
) -> Proposals:
    """The loop over s in Algorithm 1, all s side by side; the host chooses among them."""
    task = _classification(gradient, lane, bounds)
    # w_s, t_s <- L1LogReg; b is -t
    parts = _l1_logistic(arrays.columns, task, program)
    if program.axis_parallel:
        parts = _with_best_column(arrays, task, parts)
    w, found = parts.coefficients, parts.found
    lost = _lost(arrays, w)
    b = (
        _best_intercepts(arrays, task, parts, lost)
        if program.refine_thresholds
        else parts.intercepts
    )
    # p_s and q_s, the conjunction with it
    admits = jnp.sum(jnp.where(lost, task.gains[None], 0), axis=1) > 0
    holds = jnp.where(lost, admits[:, None], w @ arrays.columns + b[:, None] >= 0)
    rows = lane.held[None] & holds
    # R_s
    weight_signs = None
    if task.sides is not None:
        found &= jnp.any(w != 0, axis=1)  # refitted to nothing
        constrained = lane.constrained | jnp.any(w * task.sides[None] != 0, axis=1)
        weight_signs = jnp.where(constrained, -lane.sign, 0)
    risk = functools.partial(_held_out_risk, arrays, fitted, bounds, program.loss)
    risks = _over_sizes(risk, arrays.columns)(rows, weight_signs)
    return Proposals(w, b, admits, parts.penalties, found, rows, jnp.abs(rows @ task.gains), risks)


def _no_answer(arrays: Arrays, program: Program, _: Lanes) -> Proposals:
    """The answer for a lane without rows, written out: to ask `_answer` for its shapes would trace
    it twice.
    """
    n_columns, n_rows = arrays.columns.shape
    w = jnp.zeros((program.sizes, n_columns))
    rows = jnp.zeros((program.sizes, n_rows), bool)
    zero, no = w[:, 0], rows[:, 0]
    return Proposals(w, zero, no, zero, no, rows, zero, zero)


class _Classification(NamedTuple):
    """The classification that finds a further proposition (Eq. 19). Rows that do not count have
    gain and weight 0.

    Attributes:
        gains: (rows,) zeta g_i, the terms of Eq. 17.
        weights: (rows,) |g_i|, scaled to a sum of 1.
        signs: (rows,) -1 or 1, the classes: those of the gains.
        sides: (columns,) the signs that coefficients may have, 0 for any; None without
            `monotone`.
    """

    gains: Array
    weights: Array
    signs: Array
    sides: Array | None

    @property
    def used(self) -> Array:
        """Which rows count, (1, rows) bool: rows of the training part that satisfy the conjunction
        and have a gradient.
        """
        return (self.gains != 0)[None]


def _classification(gradient: Array, lane: Lanes, bounds: Bounds | None) -> _Classification:
    """Eq. 17 to 19 on the rows that the conjunction selects."""
    gains = jnp.where(lane.held, lane.sign * gradient, 0)
    size = jnp.abs(gains)
    weights = size / (jnp.sum(size) + jnp.finfo(size.dtype).tiny)
    # The rule's weight has the sign of -g.
    sides = None if bounds is None else -lane.sign * bounds.directions
    return _Classification(gains, weights, jnp.where(gains >= 0, 1.0, -1.0), sides)


def _l1_logistic(columns: Array, task: _Classification, program: Program) -> Separators:
    """Eq. 21 with 1, ..., k_s non-zeros, each at its smallest penalty (Eq. 5), as a share of the
    largest.
    """
    found = l1_path(columns, task.weights, task.signs, sizes=program.sizes, sides=task.sides)
    found = found._replace(penalties=found.penalties / found.largest_penalty)
    if not program.refit_propositions:
        return found
    refit = _over_sizes(functools.partial(_refitted, columns, task, program.sizes), columns)
    w, b = refit(found.coefficients, found.intercepts, found.found)
    return found._replace(coefficients=w, intercepts=b)


def _refitted(
    columns: Array, task: _Classification, sizes: int, w: Array, b: Array, found: Array
) -> tuple[Array, Array]:
    """Logistic regression on the support of w alone, under a small ridge and within the signs."""
    size, support = lax.top_k(jnp.abs(w), sizes)
    basis = jnp.concatenate(
        [jnp.ones_like(task.signs)[None], jnp.where(size[:, None] > 0, columns[support], 0)]
    )
    start = jnp.append(b, w[support])
    ridge = jnp.where(jnp.arange(len(start)) == 0, 0, _SEPARATOR_PENALTY)
    signs = None if task.sides is None else jnp.append(0, task.sides[support])
    point = newton(
        logistic,
        basis,
        task.signs,
        task.weights * found,
        ridge,
        start,
        signs=signs,
        tolerance=_ROUGHLY,
        max_steps=30,
    )
    return jnp.zeros_like(w).at[support].set(point[1:]), point[0]


def _with_best_column(arrays: Arrays, task: _Classification, parts: Separators) -> Separators:
    """With the column and cut of largest objective as the proposition of one non-zero: Eq. 20 for
    s = 1, exact.
    """
    columns, missing = arrays.columns, arrays.missing
    both = jnp.concatenate([columns, -columns])
    absent = jnp.concatenate([missing, missing]) if len(missing) else jnp.zeros_like(both, bool)
    gain, cut = best_cuts(both, task.gains, task.used & ~absent)
    if task.sides is not None:
        gain = jnp.where(jnp.concatenate([task.sides, -task.sides]) < 0, -jnp.inf, gain)
    best = jnp.argmax(gain)
    unit = jnp.where(jnp.arange(len(both)) == best, 1.0, 0.0)
    return parts._replace(
        coefficients=parts.coefficients.at[0].set(unit[: len(columns)] - unit[len(columns) :]),
        intercepts=parts.intercepts.at[0].set(-cut[best]),
        penalties=parts.penalties.at[0].set(jnp.nan),
        found=parts.found.at[0].set(jnp.isfinite(gain[best])),
    )


def _lost(arrays: Arrays, w: Array) -> Array:
    """The rows in which a proposition meets a missing number, (sizes, rows) bool."""
    uses = (w != 0).astype(w.dtype)[:, : len(arrays.missing)]
    return uses @ arrays.missing.astype(w.dtype) > 0


def _best_intercepts(
    arrays: Arrays, task: _Classification, parts: Separators, lost: Array
) -> Array:
    """Given w, the thresholds of largest objective, Eq. 17; exact."""
    _, cut = best_cuts(parts.coefficients @ arrays.columns, task.gains, task.used & ~lost)
    return jnp.where(jnp.isfinite(cut), -cut, parts.intercepts)


def _held_out_risk(
    arrays: Arrays,
    fitted: Fitted,
    bounds: Bounds | None,
    loss: Loss,
    rule: Array,
    sign: Array | None,
) -> Array:
    """R_s: the held-out risk with a further rule, all weights refitted on the training part
    (Eq. 9).
    """
    design = fitted.design.at[fitted.new].set(rule.astype(fitted.design.dtype))
    ridge = jnp.where(jnp.arange(len(fitted.weights)) == 0, 0, fitted.l2_penalty)
    signs = None if bounds is None else bounds.signs.at[fitted.new].set(sign)
    weights = newton(
        loss,
        design,
        arrays.target,
        arrays.fit_weights,
        ridge,
        fitted.weights,
        signs=signs,
        tolerance=_ROUGHLY,
        max_steps=30,
    )
    losses = arrays.check_weights * loss.value(arrays.target, weights @ design)
    return jnp.sum(jnp.where(arrays.check_weights > 0, losses, 0))


def _over_sizes(function: Callable[..., Any], columns: Array) -> Callable[..., Any]:
    """A function of one proposition for all of a lane: side by side, or one by one if there are
    many rows.
    """
    if columns.shape[1] < _MANY_ROWS:
        return jax.vmap(function)
    return lambda *each: lax.map(lambda one: function(*one), each)


def best_cuts(values: Array, gains: Array, used: Array) -> tuple[Array, Array]:
    """For every row of `values`, the cut of largest sum of gains over used ``value >= cut``; exact,
    by sorting.

    Args:
        values: (k, rows).
        gains: (rows,).
        used: (k, rows) bool; cuts lie midway between used values.

    Returns:
        The sums and the cuts, (k,); minus infinity where all used values are equal.
    """
    keys = jnp.where(used, values, jnp.inf)
    order = jnp.argsort(keys, axis=1)
    keys = jnp.take_along_axis(keys, order, axis=1)
    sorted_gains = jnp.take_along_axis(jnp.where(used, gains[None], 0), order, axis=1)
    above = jnp.sum(sorted_gains, axis=1, keepdims=True) - jnp.cumsum(sorted_gains, axis=1)[:, :-1]
    between = (keys[:, 1:] > keys[:, :-1]) & jnp.isfinite(keys[:, 1:])
    above = jnp.where(between, above, -jnp.inf)
    best = jnp.argmax(above, axis=1)[:, None]
    sums, low, high = (
        jnp.take_along_axis(array, at, axis=1)[:, 0]
        for array, at in ((above, best), (keys, best), (keys, best + 1))
    )
    return sums, jnp.where(jnp.isfinite(sums), (low + high) / 2, -jnp.inf)
