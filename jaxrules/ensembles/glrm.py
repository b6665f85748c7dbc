"""Generalised linear rule models, by column generation (Wei, Dash, Gao and Günlük, ICML 2019).

A linear model over all conjunctions of propositions:

    minimise  mean_n l(y_n, f(x_n)) + sum_k (lambda_0 + lambda_1 length_k) |w_k|       (Eq. 3 and 8)
    f(x) = w_0 + sum_k w_k r_k(x) + sum_j b_j x_j

Propositions are thresholds at quantiles, both sides, and category == or !=. Only few rules are ever
examined. The restricted master problem over the candidates so far is a sparse generalised linear
model (`jaxrules.solvers.linear.sparse_glm`); its loss has a slope g_n at every row. Another rule
lowers the objective if and only if it violates the optimality condition

    |mean slope of the rule|  =  |sum_n g_n r_k(x_n)|  <=  lambda_0 + lambda_1 length_k,

and the pricing problem is to find the rules that violate it most: by a beam search over
conjunctions, or exactly, by branch and bound (`jaxrules.solvers.rule_search`). When the exact
search finds none, the model is optimal over ALL conjunctions, and `Fit.bound` proves it.

The loss l is one of `jaxrules.losses`; the paper halves the squared one. Optional terms b_j x_j are
numeric columns scaled to the standard deviation 0.4 of a typical rule, each with penalty lambda_0.

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
>>> y = 3.0 * X[:, 0] * X[:, 1]
>>> result = fit(X, y, rule_penalty=0.01, pricing="exact")
>>> result.model.conjunctions.describe(0), result.status.value
('x0 >= 1 & x1 >= 1', 'optimal')
>>> [len(one.model.conjunctions) for one in path(X, y, rule_penalties=[2.0, 0.01])]
[0, 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.conditions import Condition, Conjunctions, PropositionPool, all_propositions
from jaxrules.constraints import Constraints
from jaxrules.cross_validation import fit_of_best_setting
from jaxrules.ensembles.candidates import Candidates
from jaxrules.ensembles.in_time import model_in_time
from jaxrules.fits import Details, Fit, Settings, Status
from jaxrules.losses import Loss, MergedRows, best_constant, merge_rows, require
from jaxrules.models import LinearTerms, RuleEnsemble, decision_function
from jaxrules.options import Folds, ScoreOptions, learner, option, options
from jaxrules.runs import Run
from jaxrules.solvers.linear import sparse_glm
from jaxrules.solvers.linear.design import Design
from jaxrules.solvers.linear.quadratic import pull
from jaxrules.solvers.rule_search import (
    Found,
    GradientSum,
    SearchSpace,
    Side,
    SignedWeights,
    search_beams,
    search_depth_first,
)
from jaxrules.solvers.rule_search.space import check_cut_points, never
from jaxrules.table import TableLike
from jaxrules.training import (
    TrainingData,
    linear_terms_of,
    loss_for,
    model_loss,
    one_against_rest,
    sample_in_time,
)
from jaxrules.warm_start import check_lengths, given_start, made_of, propositions_in

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Rule = tuple[int, ...]
"""The propositions of a rule, ascending."""
LossOption = Literal["logistic", "squared", "poisson", "exponential"] | Loss | None
FirstCandidates = Literal["conditions", "empty"]

_DEBIASED_PENALTY = 1e-6
"""A refit "without" penalty keeps this one, relative to the scale of the loss: separable classes
stay finite.
"""
_CERTIFICATE = "the certificate of generalised linear rule models"
_ERRORS = 1.6
"""The default rule penalty, in standard errors of the mean slope of a rule on half of the rows."""
_LEAST_SHARE = 0.01
"""The least default rule penalty, as a share of the one that excludes every proposition."""
_MOST_TRIALS = 6
_TRIAL_TOLERANCE = 1e-2
_SETTLED = 0.95
"""The default penalty falls from trial to trial, until it stays above this share of the last."""
_SHARES = np.geomspace(0.3, _LEAST_SHARE, 6)
"""The default rule penalties of a path and of cross-validation, as such shares."""
_LEAST_FOR_CLASSES = 1e-6
"""The least default penalty for classes: a class with less than some millionths
of the weight gets no rule.
"""
_LEAST_PENALTY = 1e-30
"""The ratio of a slope to a smaller one may overflow."""
_SMALLEST_CAPACITY = 127
"""Columns of the first master problem; see `_State`."""
_FIRST_TOLERANCE = 1e-2
"""Relative duality gap of the first master problems: rough slopes suffice to find rules."""
_MASTER_TOLERANCE = 1e-3
"""Relative duality gap of the last master problems, as a share of the tolerance of the fit."""
_SOLVED = (Status.CONVERGED, Status.STALLED)
"""Of a master problem: rounding allows no further decrease in the second case."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GLRMDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        rounds: solutions of the master problem.
        n_candidates: rules in the last master problem.
        n_propositions: the propositions that rules are built from.
        rule_penalty, condition_penalty: lambda_0 and lambda_1 of the fit.
        chosen: why the data chose this rule penalty; empty if it was given.
        sample: the number of rows that the rules come from; None for all.
    """

    rounds: int
    n_candidates: int
    n_propositions: int
    rule_penalty: float
    condition_penalty: float
    chosen: str = ""
    sample: int | None = None


def _penalty(name: str, value: Any) -> float | None:
    """None, or a rule penalty."""
    found = checks.optional(checks.number, name, value, above=0)
    checks.require(
        found is None or found >= _LEAST_PENALTY,
        f"{name} must be at least {_LEAST_PENALTY:g}, got {found}",
    )
    return found


def _penalties(name: str, values: Any) -> tuple[float, ...] | None:
    """None, or rule penalties, the largest first."""
    found = checks.descending(name, values, above=0)
    _penalty(name, None if found is None else found[-1])
    return found


def _start(name: str, value: Any) -> FirstCandidates | Fit[Any] | RuleEnsemble:
    """One of two words, a Fit or a model."""
    if isinstance(value, (Fit, RuleEnsemble)):
        return value
    if not isinstance(value, str):
        raise ValueError(
            f'{name} must be "conditions" or "empty", or a Fit or its model, got '
            f"{type(value).__name__}"
        )
    return checks.choice(name, value, ("conditions", "empty"))


class _Prices(NamedTuple):
    """The penalties of a fit, lambda_0 and lambda_1."""

    rule: float
    condition: float

    def of(self, lengths: Floats) -> Floats:
        """lambda_0 + lambda_1 length."""
        return self.rule + self.condition * lengths


@options
class _Shared(ScoreOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        loss: None for "logistic" if y holds classes (see `jaxrules.table.holds_classes`), else
            "squared"; a name; or a `jaxrules.losses.Loss` with a conjugate.
        condition_penalty: lambda_1 >= 0, the penalty of each proposition in a rule; None for a
            fifth of the rule penalty, as in the paper's experiments. An interval counts as two
            propositions.
        pricing: "beam" looks for violating rules with a beam search; "exact" also searches exactly
            whenever the beam finds none, and so ends with a certificate. The branch and bound may
            take long: on large data, set `max_length`, few cut points or a time limit.
        max_length: the most propositions of a rule, None for any number.
        max_rules: the most candidate rules that column generation may add.
        max_cut_points: the most cut points per numeric column, at quantiles; None for all values.
        linear_terms: add the numeric columns themselves.
        forbidden: columns, by name or position, that no rule and no linear term uses.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with
            the column; see `jaxrules.constraints`. It fixes signs of weights; rules of each sign
            are searched for separately.
        first: an expert's rules. The model starts with them and keeps them, even with weight 0;
            they are penalised like the others.
        beam_width: partial rules that the beam keeps, for each sign of the weight.
        rules_per_round: the most rules added between two solutions of the master problem.
        start: the first candidates: all rules of one proposition ("conditions", as the authors do),
            none ("empty"), or "conditions" and the rules of a Fit or its model, of any learner,
            with its weights (0 if `monotone` forbids them). The objective is then at most that of
            the start, under these penalties; its conditions are extra cut points.
        debias: refit the weights of the chosen rules (almost) without a penalty, as the authors'
            program does by default. The objective and the bound are those of the penalised model.
        tolerance: a rule is added while it violates its optimality condition by more than this
            share of its penalty; the certificate of "exact" states the remaining gap.
        seed: unused, since nothing is random; every learner takes it.
    """

    learner = "glrm"

    loss: LossOption = None
    condition_penalty: float | None = option(partial(checks.optional, checks.penalty), default=None)
    pricing: Literal["beam", "exact"] = option(
        checks.choice, default="beam", known=("beam", "exact")
    )
    max_length: int | None = option(
        partial(checks.optional, checks.integer), default=None, at_least=1
    )
    max_rules: int = option(checks.integer, default=1000, at_least=0)
    max_cut_points: int | None = option(
        partial(checks.optional, checks.integer), default=9, at_least=1
    )
    linear_terms: bool = option(checks.flag, default=False)
    forbidden: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None
    first: Conjunctions | None = None
    beam_width: int = option(checks.integer, default=10, at_least=1)
    rules_per_round: int = option(checks.integer, default=10, at_least=1)
    start: FirstCandidates | Fit[RuleEnsemble] | RuleEnsemble = option(_start, default="conditions")
    debias: bool = option(checks.flag, default=False)
    tolerance: float = option(checks.number, default=1e-6, above=0)

    def prices(self, rule_penalty: float) -> _Prices:
        """The penalties of a fit with this lambda_0."""
        condition = self.condition_penalty
        return _Prices(rule_penalty, rule_penalty / 5 if condition is None else condition)


@options
class Options(_Shared):
    """The options of `fit`.

    Attributes:
        rule_penalty: lambda_0 > 0, the penalty of a rule's weight, against the mean loss. None:
            1.6 standard errors of the mean slope of a rule that holds for half of the rows, so that
            noise alone rarely pays for a rule. The slopes are those of the model itself: up to six
            rough fits lower the penalty from that of the constant, as in the scaled lasso (Sun and
            Zhang, Biometrika 2012). It is at least a hundredth of the one that excludes every
            single proposition, and 1e-6 for classes. ``details["chosen"]`` says what it came to.
    """

    rule_penalty: float | None = option(_penalty, default=None)


@options
class PathOptions(_Shared):
    """The options of `path`.

    Attributes:
        rule_penalties: values of lambda_0, positive; sorted from large to small. None: six from
            30 % to 1 % of the one that excludes every single proposition.
        time_limit: seconds for the path; every fit gets an equal share of the rest.
    """

    rule_penalties: Sequence[float] | None = option(_penalties, default=None)


@options
class Grid(Folds, _Shared):
    """The options of `cross_validate`.

    Attributes:
        rule_penalties: values of lambda_0, positive. None: six from 30 % to 1 % of the one that
            excludes every single proposition.
        start: the first candidates: all rules of one proposition ("conditions", as the authors
            do), or none ("empty").
        seed: of the folds.
    """

    rule_penalties: Sequence[float] | None = option(_penalties, default=None)
    start: FirstCandidates = option(
        checks.choice, default="conditions", known=("conditions", "empty")
    )


@learner(Options)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: Options
) -> Fit[RuleEnsemble]:
    """Fit a generalised linear rule model.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, numbers or counts, according to the loss, shape (rows,). More than two classes
            are fitted one-vs-rest: an ensemble with one output per class.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit with `GLRMDetails`. Its status is "optimal" when the exact search has proved that no
        rule (of at most `max_length` propositions) can lower the objective, "converged" when the
        beam finds none, "max_iterations" at `max_rules`. The bound is None without an exact search.
        For more than two classes see `jaxrules.training.one_against_rest`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument is out of range, or the data cannot be fitted; names it.
    """
    run, data = options.run(), _read(X, y, sample_weight, options)
    free = isinstance(options.start, str) and options.first is None
    free = free and not (options.debias or options.linear_terms)
    sample = sample_in_time(data, run, options.seed) if free else None
    if sample is not None:
        return _in_time(data, sample, options, run)
    task = _Task.of(data, options, run)
    if options.rule_penalty is None:
        return one_against_rest(task.data, run, task.fit_by_noise)
    return task.fit(options.rule_penalty, task.starts, run)[0]


@learner(PathOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: PathOptions
) -> list[Fit[RuleEnsemble]]:
    """One Fit for each of some rule penalties, the largest first.

    Each starts from the rules and weights of the one before, so that a path takes less time than
    its fits alone. With exact pricing the objectives are those of `fit`, up to the tolerance.

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits; ``details["rule_penalty"]`` is the penalty of each. One that runs out of its share
        of the time keeps its best model. If the time limit or Ctrl-C ends the path early, the fits
        so far are returned, and the status of the last one says so.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    run = options.run()
    task = _Task.of(_read(X, y, sample_weight, options), options, run)
    penalties = options.rule_penalties or task.default_penalties()
    fits: list[Fit[RuleEnsemble]] = []
    starts = task.starts
    with run:
        for i, penalty in enumerate(penalties):
            part = run.child(1 / (len(penalties) - i), f"glrm, rule_penalty={penalty:.3g}")
            found, starts = task.fit(penalty, starts, part)
            fits.append(found)
            if run.stopped():
                break
    return fits or [task.fit(penalties[0], task.starts, run)[0]]  # interrupted at once


@learner(Grid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: Grid
) -> Fit[RuleEnsemble]:
    """Choose the rule penalty by cross-validation (see `jaxrules.cross_validation`); fit on all
    rows.

    Each fold has its own cut points. Its fits start anew, as the fit on all rows does: on the same
    rows, a fit of a `path` may have other rules.

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    run = options.run()
    data = _read(X, y, sample_weight, options)
    penalties = options.rule_penalties
    if penalties is None:
        penalties = _Task.of(data, options, run).default_penalties()

    def walk(_: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
        quiet = Run(run.task, run.deadline)
        task = _Task.of(inside, options, quiet)
        for i, penalty in enumerate(penalties):
            part = quiet.child(1 / (len(penalties) - i))
            found, _ends = task.fit(penalty, task.starts, part)
            if part.stopped():
                return
            yield found.model

    return fit_of_best_setting(
        fit,
        (X, y, sample_weight),
        options,
        data,
        [{"rule_penalty": penalty} for penalty in penalties],
        walk,
        run,
        otherwise=len(penalties) // 2,
    )


# The problem


def _read(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: _Shared
) -> TrainingData:
    """The data, for a loss with a conjugate."""
    loss = loss_for(y, options.loss)
    require(loss, "conjugate", _CERTIFICATE)
    return options.training_data(X, y, sample_weight, loss)


@dataclass(frozen=True, eq=False)
class _Start:
    """Where the search for one output starts: rules, and weights of rules and terms.

    Attributes:
        rules: as propositions of the candidates.
        weights: of the rules, shape (rules,).
        intercept: of the output.
        terms: coefficients of linear terms, by column.
    """

    rules: tuple[Rule, ...]
    weights: Floats
    intercept: float
    terms: Mapping[int, float]


@dataclass(frozen=True, eq=False)
class _Task:
    """The data and the propositions of the fits at all penalties.

    Attributes:
        options: of the fits.
        data: with the target of every output.
        constraints: on rules and terms.
        candidates: the propositions.
        starts: for each output where its search starts: nowhere, or from a given model.
    """

    options: _Shared
    data: TrainingData
    constraints: Constraints
    candidates: Candidates
    starts: Sequence[_Start | None]

    @classmethod
    def of(cls, data: TrainingData, options: _Shared, run: Run) -> _Task:
        """Make the propositions; only those of a start if the run is stopped early.

        Raises:
            TypeError, ValueError: for constraints, a start or cut points that the data do not
                admit; if no column varies.
        """
        schema, n_outputs = data.table.schema, len(data.outputs)
        constraints = Constraints.of(schema, options.forbidden, (), options.monotone)
        start, begun = None, PropositionPool.of(schema, ())
        if not isinstance(options.start, str):
            start = given_start(
                options.start, RuleEnsemble, data, constraints, options.linear_terms
            )
        if start is not None:
            begun = propositions_in(start.conjunctions.with_schema(schema))
        check_cut_points(data.table, options.max_cut_points)
        first = constraints.first(data.table, options.first, n_outputs)

        def candidates(found: PropositionPool) -> Candidates:
            pool = constraints.pool(
                PropositionPool.concatenate([found, begun]), data.table, n_outputs
            )
            return Candidates.of(pool, first, constraints, data)

        run.preparing("propositions")
        made = run.prepared(
            lambda: candidates(all_propositions(data.table, max_cut_points=options.max_cut_points)),
            lambda: candidates(PropositionPool.of(schema, ())),
        )
        if not len(made.space) and not run.stopped():
            raise ValueError("no column of X varies; nothing can be learned")
        starts: Sequence[_Start | None] = [None] * n_outputs
        if start is not None:
            starts = _starts_of(start, made, constraints, data, options.max_length)
        return cls(options, data, constraints, made, starts)

    def largest_penalty(self, data: TrainingData) -> float:
        """The least penalty that excludes every single proposition: the largest fall of the mean
        loss at the best constant per unit of weight of a proposition, over the outputs.
        """
        activations, slopes = self.candidates.space.activations, [np.finfo(float).tiny]
        for y in data.outputs:
            # |mean slope| at the constant: at a penalty above, the optimality condition holds.
            constant = np.full(len(y), best_constant(data.loss, y, data.weights))
            totals = activations.totals(data.weights * data.loss.gradient(y, constant))
            slopes.append(np.abs(activations.by_rule @ totals).max(initial=0.0))
        return float(max(slopes) / data.weights.sum())

    def default_penalties(self) -> tuple[float, ...]:
        """Of a path and of cross-validation."""
        shares = _SHARES * self.largest_penalty(self.data)
        return tuple(np.maximum(shares, _least_for(self.data)).tolist())

    def fit(
        self, rule_penalty: float, starts: Sequence[_Start | None], run: Run
    ) -> tuple[Fit[RuleEnsemble], Sequence[_Start | None]]:
        """The fit at a penalty, and for each output where it ended."""
        ends = list(starts)

        def of_output(part: TrainingData, run: Run) -> Fit[RuleEnsemble]:
            state = _State(_Problem.of(part, self, rule_penalty), starts[part.output])
            fit = _generate(state, run)
            ends[part.output] = state.end
            return fit

        return one_against_rest(self.data, run, of_output), ends

    def fit_by_noise(self, data: TrainingData, run: Run) -> Fit[RuleEnsemble]:
        """The fit of one output at the default penalty, after rough ones that choose it."""
        tolerance = max(_TRIAL_TOLERANCE, self.options.tolerance)
        rough = replace(self.options, tolerance=tolerance, pricing="beam")
        task, begun = replace(self, options=rough), self.starts[data.output]
        least = max(_LEAST_SHARE * self.largest_penalty(data), _least_for(data))
        constant = best_constant(data.loss, data.target, data.weights)
        penalty = max(_noise(data, data.target, np.full(len(data.target), constant)), least)
        start = begun
        with run:
            for _ in range(_MOST_TRIALS):
                state = _State(_Problem.of(data, task, penalty), start)
                _grow(state, run.child())
                start = begun or state.end
                lower = max(_noise(data, data.target, state.score()[state.problem.group]), least)
                if run.stopped() or lower >= _SETTLED * penalty:
                    break
                penalty = lower
        why = f"{_ERRORS:g} standard errors of the mean slope of a rule on half of the rows"
        if run.stopped():
            why = "the fit was stopped before it could fall further"
        elif penalty == least:
            why = "the least default, whatever the noise"
        found = _generate(_State(_Problem.of(data, self, penalty), start), run)
        details = {**found.details, "chosen": f"rule_penalty={penalty:.3g}: {why}"}
        return replace(found, details=GLRMDetails(**details))


def _least_for(data: TrainingData) -> float:
    """The least default penalty."""
    return 0.0 if data.classes is None else _LEAST_FOR_CLASSES


def _noise(data: TrainingData, target: Floats, score: Floats) -> float:
    """1.6 standard errors of the mean slope of a rule that holds for half of the rows.

    Args:
        target, score: of one output, shape (rows,).
    """
    slopes = data.loss.gradient(target, score)
    # A share s of the rows: s (1 - s) of the variance, since the intercept takes the mean.
    error = 0.5 * np.sqrt(data.weights @ slopes**2) / data.weights.sum()
    return float(_ERRORS * error)


def _starts_of(
    model: RuleEnsemble,
    candidates: Candidates,
    constraints: Constraints,
    data: TrainingData,
    max_length: int | None,
) -> list[_Start]:
    """A given model in terms of the candidates, by output.

    Rules that hold on no row are dropped; one that holds on all joins the intercept.
    """
    rules, n_labels = (
        model.conjunctions.with_schema(candidates.pool.schema),
        max(len(data.outputs), 2),
    )
    activations = candidates.space.activations
    one_each = data.table[np.unique(activations.pattern, return_index=True)[1]]
    tags = (
        constraints.allows(candidates.pool, n_labels),
        constraints.allows(propositions_in(rules), n_labels),
    )
    made = made_of(candidates.pool, activations.bits, rules, one_each, tags)
    check_lengths(made, max_length, "max_length")
    found: dict[Rule, Floats] = {}
    for rule, weights in zip(made, np.asarray(model.weights, np.float64), strict=True):
        if rule is not None:
            found[rule] = found.get(rule, np.zeros(len(weights))) + weights
    intercepts = np.asarray(model.intercept, np.float64) + found.pop((), np.zeros(1))
    terms, coefficients = np.zeros(0, np.int32), np.zeros((0, len(intercepts)))
    if model.linear is not None:
        terms, coefficients = model.linear.feature, np.asarray(model.linear.coefficients)
    starts = []
    for k, signs in enumerate(candidates.signs):
        weights = np.array([weights[k] for weights in found.values()])
        may = np.array([signs[list(rule)].all(axis=0) for rule in found], bool).reshape(-1, 2)
        weights = np.clip(
            weights, np.where(may[:, 0], -np.inf, 0.0), np.where(may[:, 1], np.inf, 0.0)
        )
        of_terms = dict(zip(terms.tolist(), coefficients[:, k].tolist(), strict=True))
        starts.append(_Start(tuple(found), weights, float(intercepts[k]), of_terms))
    return starts


def _in_time(
    data: TrainingData, sample: TrainingData, options: Options, run: Run
) -> Fit[RuleEnsemble]:
    """The model found on a sample of the rows, with its weights there, evaluated on all rows."""
    model, details = model_in_time(
        sample, fit, options, run, max_length=options.max_length, one_vs_rest=True
    )
    penalty, why = options.rule_penalty, ""
    if penalty is None and details is not None:
        penalty = float(np.mean(details["rule_penalty"]))
    elif penalty is None:
        scores = np.asarray(decision_function(model, data.table)).reshape(len(data.target), -1)
        noise = [_noise(data, y, score) for y, score in zip(data.outputs, scores.T, strict=True)]
        penalty = max(float(np.mean(noise)), _least_for(data))
    if options.rule_penalty is None:
        why = f"rule_penalty={penalty:.3g}: chosen on a sample of {len(sample.weights)} rows"
    prices = options.prices(penalty)
    costs = prices.of(model.conjunctions.propositions.astype(np.float64))
    objective = model_loss(model, data)
    objective += float(costs @ np.abs(model.weights).sum(axis=1)) / len(data.outputs)
    with run:
        run.step(objective, len(model.conjunctions))
    settings = options.settings(loss=data.loss)
    return run.finish(
        replace(model, options=settings),
        objective,
        "min",
        Status.TIME_LIMIT,
        details=GLRMDetails(
            rounds=0,
            n_candidates=len(model.conjunctions),
            n_propositions=int(model.conjunctions.propositions.sum()),
            rule_penalty=prices.rule,
            condition_penalty=prices.condition,
            chosen=why,
            sample=len(sample.weights),
        ),
    )


def _grow(state: _State, run: Run) -> Status:
    """Column generation, for a target of one output, inside of ``with run``."""
    problem, options = state.problem, state.problem.options
    run.phase = "start"
    state.solve(run)
    run.step(state.objective, state.size, bound=state.proved_bound)
    run.phase = "search"
    while not run.stopped():
        found = _price(problem, state, run)  # the pricing problem
        state.note(found)
        if run.stopped():
            break
        left = options.max_rules - state.generated
        new = [rule for rule in found.rules if rule not in state.known][:left]
        last = _MASTER_TOLERANCE * options.tolerance
        # Slopes of a rough master problem may hide a violation: only the last ones end it.
        if not new and state.tolerance <= last:
            if not found.rules or left > 0:  # otherwise max_rules leaves rules out
                return Status.CONVERGED
            break
        state.add(new)
        if not new:
            state.tolerance = max(0.01 * state.tolerance, last)
        state.solve(run)
        run.step(state.objective, state.size, bound=state.proved_bound)
    return Status.MAX_ITERATIONS


def _generate(state: _State, run: Run) -> Fit[RuleEnsemble]:
    """The fit of a target of one output."""
    problem, options, status = state.problem, state.problem.options, Status.MAX_ITERATIONS
    with run:
        status = _grow(state, run)
        state.thin_out()
        if options.debias:
            state.debias()
    if state.solution is None:  # the run is stopped: this returns the constant
        state.solve(run)
    if state.proved(options.tolerance):
        status = Status.OPTIMAL
    return run.finish(
        problem.model(state),
        state.objective,
        "min",
        status,
        state.proved_bound,
        GLRMDetails(
            rounds=state.rounds,
            n_candidates=len(state.rules),
            n_propositions=problem.candidates.n_searched,
            rule_penalty=problem.prices.rule,
            condition_penalty=problem.prices.condition,
        ),
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """The master problem of one output at one penalty.

    Without linear terms, rows that no proposition distinguishes are merged.

    Attributes:
        options: of the fits.
        settings: which the model keeps.
        prices: the penalties.
        data: the original rows, with a target of one output.
        candidates: the propositions.
        space: the propositions on these rows.
        sides: the searches on it.
        rows: bool, shape (rows, propositions).
        group: the row of every original row.
        merged: mean target and weight of every row; the weights sum to 1.
        linear: the linear terms with coefficient 1, or None.
        linear_values: their columns, shape (rows, terms).
        linear_price: their penalties, shape (terms,).
        linear_signs: whether their coefficients may be negative, and positive, shape (terms, 2).
    """

    options: _Shared
    settings: Settings
    prices: _Prices
    data: TrainingData
    candidates: Candidates
    space: SearchSpace
    sides: tuple[Side, ...]
    rows: NDArray[np.bool_]
    group: NDArray[np.integer]
    merged: MergedRows
    linear: LinearTerms | None
    linear_values: Floats
    linear_price: Floats
    linear_signs: Bools

    def signs(self, rules: list[Rule], n_columns: int) -> Bools | None:
        """The admissible signs of rules, padded to `n_columns`, and of linear
        terms; None if all are free.
        """
        table = self.candidates.signs[self.data.output]
        if table.all() and self.linear_signs.all():
            return None
        signs = np.ones((n_columns, 2), bool)
        signs[: len(rules)] = np.array([table[list(rule)].all(axis=0) for rule in rules]).reshape(
            -1, 2
        )
        return np.concatenate([signs, self.linear_signs])

    def satisfied(self, rule: Rule) -> NDArray[np.bool_]:
        """The rows that a rule holds for."""
        return np.asarray(self.rows[:, list(rule)].all(axis=1))

    def design(self, columns: NDArray[np.bool_], values: Floats) -> Design:
        """Columns of rules and linear terms for the solver."""
        return Design.of((columns, values) if values.shape[1] else columns, inverse=self.group)

    def slopes(self, score: Floats) -> Floats:
        """Derivative of the mean loss by the score of every row."""
        return np.asarray(self.merged.weight * self.data.loss.gradient(self.merged.target, score))

    def model(self, state: _State) -> RuleEnsemble:
        """The rules and terms with nonzero weight."""
        weights, coefficients, intercept = state.weights
        used = np.flatnonzero(
            (weights != 0) | (np.arange(len(weights)) < len(self.candidates.first))
        )
        linear = None
        if self.linear is not None:
            kept = np.flatnonzero(coefficients)
            linear = replace(self.linear.take(kept), coefficients=coefficients[kept, None])
        return RuleEnsemble(
            self.candidates.pool.conjunctions(
                [state.rules[r] for r in used.tolist()], self.data.schema
            ),
            weights[used, None],
            np.array([intercept]),
            linear,
            self.data.loss.link,
            self.settings,
            self.data.loss.name,
        )

    @classmethod
    def of(cls, data: TrainingData, task: _Task, rule_penalty: float) -> _Problem:
        """The problem of a target of one output."""
        options, candidates, constraints = task.options, task.candidates, task.constraints
        own = options
        if not isinstance(options, Options):
            own = options.to(Options, rule_penalty=rule_penalty)
        settings = own.settings(loss=data.loss)
        prices = options.prices(rule_penalty)
        space = candidates.space
        rows, group, linear = space.activations.dense, space.activations.pattern, None
        if options.linear_terms or not data.loss.mergeable:  # every row by itself
            rows, group = rows[group], np.arange(len(group))
        else:
            space = space.groups
        values, linear_prices = np.zeros((len(rows), 0)), np.zeros(0)
        if options.linear_terms:
            linear, factors = linear_terms_of(data)
            used = np.flatnonzero(~np.isin(linear.feature, list(constraints.forbidden)))
            linear, linear_prices = linear.take(used), prices.rule * factors[used]
            values = linear.values(data.table)
        rising = [
            [Condition.above(int(f), 0.0)] for f in ([] if linear is None else linear.feature)
        ]
        signs = constraints.signs(
            Conjunctions.build(data.table.schema, rising), data.output, len(candidates.signs)
        )
        merged = merge_rows(
            data.loss, data.target, data.weights / data.weights.sum(), group, len(rows)
        )
        sides = candidates.sides(data.output, space)
        return cls(
            options, settings, prices, data, candidates, space, sides, rows, group, merged,
            linear, values, linear_prices, signs,
        )  # fmt: skip


# The restricted master problem


@dataclass
class _State:
    """The candidates so far and the solution over them.

    Attributes:
        start: rules and weights that it starts from.
        rules: the candidates.
        columns: bool, shape (rows, capacity): where they hold; then columns of zeros, so that
            shapes, and with them compiled kernels, change only when the capacity doubles.
        solution: of the last master problem: candidates, columns of zeros, linear terms.
        solved: the number of its candidates.
        tolerance: relative duality gap that the master problem is solved to.
        rounds: the number of master problems solved.
        generated: the number of candidates that pricing has added.
        bound: the best proved lower bound on the objective over all rules.
        debiased: the weights that a refit without penalty gives the rules of the solution.
    """

    problem: _Problem
    start: _Start | None
    rules: list[Rule] = field(default_factory=list)
    known: set[Rule] = field(default_factory=set)
    columns: NDArray[np.bool_] = field(init=False)
    solution: sparse_glm.Solution | None = None
    solved: int = 0
    tolerance: float = _FIRST_TOLERANCE
    rounds: int = 0
    generated: int = 0
    bound: float | None = None
    debiased: tuple[Floats, Floats, float] | None = None

    def __post_init__(self) -> None:
        self.columns = np.zeros((len(self.problem.rows), _SMALLEST_CAPACITY), bool)
        self._extend(list(self.problem.candidates.first))
        if self.start is not None:
            self._extend([rule for rule in self.start.rules if rule not in self.known])
        if self.problem.options.start != "empty":
            searched = np.unique(np.concatenate([side.propositions for side in self.problem.sides]))
            pairs = searched[_one_of_each_pair(self.problem.rows[:, searched])].tolist()
            self._extend([(p,) for p in pairs if (p,) not in self.known])

    @property
    def proved_bound(self) -> float | None:
        """The bound, clipped to the objective, which it exceeds only by rounding."""
        return None if self.bound is None else min(self.bound, self.objective)

    def add(self, rules: list[Rule]) -> None:
        """More candidates."""
        self.generated += len(rules)
        self._extend(rules)

    def _extend(self, rules: list[Rule]) -> None:
        while len(self.rules) + len(rules) > self.columns.shape[1]:
            # One less than a power of two: the solver pads with at least one column.
            larger = np.zeros((len(self.columns), 2 * self.columns.shape[1] + 1), bool)
            larger[:, : self.columns.shape[1]] = self.columns
            self.columns = larger
        for k, rule in enumerate(rules, start=len(self.rules)):
            self.columns[:, k] = self.problem.satisfied(rule)
        self.rules += rules
        self.known.update(rules)

    @property
    def objective(self) -> float:
        assert self.solution is not None
        return self.solution.objective

    @property
    def size(self) -> int:
        """Rules with a weight."""
        return int(np.count_nonzero(self.rule_weights))

    @property
    def rule_weights(self) -> Floats:
        """w_k of the candidates in the solution."""
        assert self.solution is not None
        return self.solution.coefficients[: self.solved]

    @property
    def coefficients(self) -> Floats:
        """b_j of the linear terms."""
        assert self.solution is not None
        terms = self.problem.linear_values.shape[1]
        return self.solution.coefficients[len(self.solution.coefficients) - terms :]

    def solve(self, run: Run) -> None:
        """Solve the master problem, from the solution before."""
        problem = self.problem
        prices = np.full(self.columns.shape[1], problem.prices.rule)
        prices[: len(self.rules)] = problem.prices.of(
            np.array([len(rule) for rule in self.rules], np.float64)
        )
        start = None
        if self.solution is not None:
            weights = np.zeros(self.columns.shape[1])
            weights[: self.solved] = self.solution.coefficients[: self.solved]
            start = (np.concatenate([weights, self.coefficients]), self.solution.intercept)
        elif self.start is not None:
            start = self._begun(self.start)
        self.solution = sparse_glm.solve(
            problem.design(self.columns, problem.linear_values),
            problem.data.target,
            1.0,  # lambda_0 + lambda_1 length is the factor of each column
            loss=problem.data.loss,
            sample_weight=problem.data.weights,
            penalty_factors=np.concatenate([prices, problem.linear_price]),
            signs=problem.signs(self.rules, len(prices)),
            start=start,
            tolerance=self.tolerance,
            run=run,
        )
        self.solved = len(self.rules)
        self.rounds += 1

    def _begun(self, start: _Start) -> tuple[Floats, float]:
        """A start as coefficients of the columns, and the intercept."""
        n_columns, linear = self.columns.shape[1], self.problem.linear
        coefficients = np.zeros(n_columns + self.problem.linear_values.shape[1])
        coefficients[[self.rules.index(rule) for rule in start.rules]] = start.weights
        if linear is not None:
            may_fall, may_rise = self.problem.linear_signs.T
            terms = np.array([start.terms.get(feature, 0.0) for feature in linear.feature.tolist()])
            coefficients[n_columns:] = np.where(np.where(terms > 0, may_rise, may_fall), terms, 0.0)
        return coefficients, start.intercept

    @property
    def end(self) -> _Start:
        """The rules of the solution and its weights, where a fit at another penalty may start."""
        assert self.solution is not None
        used = np.flatnonzero(self.rule_weights)
        linear = self.problem.linear
        return _Start(
            tuple(self.rules[k] for k in used.tolist()),
            self.rule_weights[used],
            self.solution.intercept,
            {}
            if linear is None
            else dict(zip(linear.feature.tolist(), self.coefficients.tolist(), strict=True)),
        )

    def score(self) -> Floats:
        """f of every row."""
        assert self.solution is not None
        used = np.flatnonzero(self.rule_weights)
        rules = self.columns[:, used] @ self.rule_weights[used]
        return np.asarray(
            self.solution.intercept + rules + self.problem.linear_values @ self.coefficients
        )

    def note(self, found: _Priced) -> None:
        """Keep the best proved bound: each is for the same problem over all rules."""
        if found.bound is not None:
            self.bound = found.bound if self.bound is None else max(self.bound, found.bound)

    def proved(self, tolerance: float) -> bool:
        """Whether the bound meets the objective."""
        return self.bound is not None and self.objective - self.bound <= 10 * tolerance * abs(
            self.objective
        )

    @property
    def weights(self) -> tuple[Floats, Floats, float]:
        """Weights of candidates, coefficients of linear terms, and the intercept."""
        assert self.solution is not None
        return self.debiased or (self.rule_weights, self.coefficients, self.solution.intercept)

    def thin_out(self) -> None:
        """Drop rules that others replace at the same objective. The rest is linearly independent:
        one of the smallest of the many optimal solutions, which differ on new rows. A solution that
        is not optimal stays, as its objective would change.
        """
        if self.solution is None or self.solution.status not in _SOLVED:
            return
        columns = np.concatenate([self.columns, self.problem.linear_values], axis=1)
        weights, shift = independent(columns, self.solution.coefficients)
        self.solution = replace(
            self.solution, coefficients=weights, intercept=self.solution.intercept + shift
        )

    def debias(self) -> None:
        """Refit the weights of the chosen rules and terms (almost) without a penalty."""
        weights, coefficients, intercept = (np.copy(part) for part in self.weights)
        rules, terms = np.flatnonzero(weights), np.flatnonzero(coefficients)
        if not len(rules) + len(terms):
            return
        problem = self.problem
        scale = problem.linear_price[terms] / problem.prices.rule
        signs = problem.signs(self.rules, len(self.rules))
        refitted = sparse_glm.solve(
            problem.design(self.columns[:, rules], problem.linear_values[:, terms]),
            problem.data.target,
            _DEBIASED_PENALTY,
            loss=problem.data.loss,
            sample_weight=problem.data.weights,
            penalty_factors=np.concatenate([np.ones(len(rules)), scale]),
            signs=None
            if signs is None
            else np.concatenate([signs[rules], problem.linear_signs[terms]]),
            start=(np.concatenate([weights[rules], coefficients[terms]]), float(intercept)),
        )
        weights[rules], coefficients[terms] = np.split(refitted.coefficients, [len(rules)])
        self.debiased = weights, coefficients, refitted.intercept


def independent(columns: Floats, weights: Floats) -> tuple[Floats, float]:
    """Weights of linearly independent columns with the same score, and the change of the intercept.

    If columns (and the intercept) are dependent, the weights move along the dependence until the
    first becomes 0, in the direction that removes the later column. Signs do not change, so an
    optimum under an L1 penalty stays one.

    Args:
        columns: shape (rows, columns).
        weights: shape (columns,); those below 1e-10 of the largest are rounding and are dropped.
    """
    shift, rounding = 0.0, 1e-10 * np.abs(weights).max(initial=0.0)
    some = np.flatnonzero((np.abs(weights) > rounding) & columns.any(axis=0))
    design = np.column_stack([columns[:, some], np.ones(len(columns))]).astype(np.float64)
    gram, kept, weights = design.T @ design, np.zeros(len(weights)), weights[some]
    while True:
        weights = np.where(np.abs(weights) > rounding, weights, 0.0)
        on = np.flatnonzero(weights)
        # The eigenvector of the least eigenvalue: no score changes along a dependence.
        part = gram[np.ix_([*on, -1], [*on, -1])]
        scale = np.sqrt(np.diag(part))
        values, vectors = np.linalg.eigh(part / np.outer(scale, scale))
        if values[0] > 1e-12 * values[-1]:
            break
        way = vectors[:, 0] / scale
        # In either direction, the step at which the first weight becomes 0.
        moving = np.abs(way[:-1]) > 1e-9 * np.abs(way).max()
        steps = np.divide(-weights[on], way[:-1], out=np.full(len(on), np.inf), where=moving)
        ends = [
            int(np.where(side, np.abs(steps), np.inf).argmin())
            for side in (steps > 0, steps < 0)
            if side.any()
        ]
        ends = [end for end in ends if np.isfinite(steps[end])]
        if not ends:
            break
        leaves = max(ends)
        shift += steps[leaves] * way[-1]
        weights[on] += steps[leaves] * way[:-1]
        weights[on[leaves]] = 0.0
    kept[some] = weights
    return kept, float(shift)


def _one_of_each_pair(rows: NDArray[np.bool_]) -> list[int]:
    """Propositions without constants, copies and negations of earlier ones, which an
    intercept makes redundant.
    """
    kept, seen = [], set()
    for p in range(rows.shape[1]):
        column = rows[:, p] ^ rows[0, p]  # equal for a proposition and its negation
        key = column.tobytes()
        if key not in seen and column.any():
            kept.append(p)
        seen.add(key)
    return kept


# Pricing


class _Priced(NamedTuple):
    """The result of pricing: violating rules, worst first, and a bound on
    the whole problem if proved.
    """

    rules: list[Rule]
    bound: float | None = None


def _price(problem: _Problem, state: _State, run: Run) -> _Priced:
    """Rules that violate their optimality condition: from the beam, else from the exact search."""
    options, slopes = problem.options, problem.slopes(state.score())
    searches = [
        side.whole(one)
        for side in problem.sides
        for one in _by_beam(
            side.space, slopes, problem.prices, sign=side.sign, width=options.beam_width,
            count=options.rules_per_round, max_length=options.max_length,
            tolerance=options.tolerance, stopped=run.stopped,
        )
    ]  # fmt: skip
    new = [rule for rule in _worst(searches, options.rules_per_round) if rule not in state.known]
    if new or options.pricing == "beam":
        return _Priced(new)
    rules: list[Rule] = []
    ratio = 1.0
    for side in problem.sides:
        found, most = price_exactly(
            side.space, slopes, *problem.prices, sign=side.sign, max_length=options.max_length,
            tolerance=options.tolerance, stopped=run.stopped,
        )  # fmt: skip
        rules += [tuple(side.propositions[list(rule)].tolist()) for rule in found]
        ratio = max(ratio, most)
    if problem.linear is not None:  # within its tolerance, the master problem may violate theirs
        linear = pull(slopes @ problem.linear_values, problem.linear_signs.T) / problem.linear_price
        ratio = max(ratio, float(linear.max(initial=0.0)))
    return _Priced(rules, _dual_bound(problem, slopes, ratio))


def price_by_beam(
    space: SearchSpace,
    slopes: Floats,
    rule_penalty: float,
    condition_penalty: float,
    *,
    width: int,
    max_length: int | None,
    count: int,
    tolerance: float = 0.0,
    stopped: Callable[[], bool] = never,
) -> list[Rule]:
    """Rules whose slope exceeds their penalty, the largest excess first.

    Two beams, one per sign. (The authors rank by the mean of the slope and its value if all rows of
    the wrong sign were excluded; that favours rules that hold for nearly all rows, and ended at an
    objective 1 % higher on COMPAS and twice as high on Heart.)

    Args:
        space: the propositions.
        slopes: derivative of the mean loss by the score of every row, shape (rows,).
        rule_penalty, condition_penalty: lambda_0, lambda_1.
        width: partial rules kept, for each sign.
        max_length: the most propositions of a rule, None for no limit.
        count: the most rules to return; no two of them hold on the same rows.
        tolerance: share of its penalty by which a rule's slope must exceed it.
        stopped: True ends the search with the rules so far.
    """
    found = _by_beam(
        space, slopes, _Prices(rule_penalty, condition_penalty), sign=0, width=width, count=count,
        max_length=max_length, tolerance=tolerance, stopped=stopped,
    )  # fmt: skip
    return _worst(found, count)


def _by_beam(
    space: SearchSpace,
    slopes: Floats,
    prices: _Prices,
    *,
    sign: int,
    width: int,
    count: int,
    max_length: int | None,
    tolerance: float,
    stopped: Callable[[], bool],
) -> list[Found]:
    """The rules that `price_by_beam` chooses from, for weights of one sign (0: of either)."""
    gains = np.stack([slopes, -slopes]) if sign == 0 else -sign * slopes[None]
    signs = SignedWeights(gains, rule_price=prices.rule, condition_price=prices.condition)
    beams = search_beams(
        space, signs, width=width, max_length=max_length, count=count, stopped=stopped
    )
    found = [one for beam in beams for one in beam]
    return [one for one in found if one.objective > tolerance * signs.price(len(one.propositions))]


def _worst(found: list[Found], count: int) -> list[Rule]:
    """The rules with the greatest excess."""
    return [one.propositions for one in sorted(found, key=lambda one: -one.objective)][:count]


def price_exactly(
    space: SearchSpace,
    slopes: Floats,
    rule_penalty: float,
    condition_penalty: float,
    *,
    max_length: int | None,
    tolerance: float = 0.0,
    stopped: Callable[[], bool] = never,
    sign: int = 0,
) -> tuple[list[Rule], float]:
    """The rule whose slope exceeds its penalty most, by branch and bound,
    and a bound for all rules.

    A weight of one sign (0: of either) descends on slopes of the other.

    Returns:
        rules: that rule, or none.
        ratio: a proved upper bound on |slope| / (lambda_0 + lambda_1 length) over all rules of at
            least one proposition; 1 if none violates its optimality condition.
    """
    objective = GradientSum(
        -slopes if sign > 0 else slopes, one_sided=sign != 0,
        rule_price=rule_penalty, condition_price=condition_penalty,
    )  # fmt: skip
    found = search_depth_first(space, objective, max_length=max_length, stopped=stopped)
    assert found.bound is not None  # the exact search always has one
    # |slope| <= price + bound for every rule, and one proposition has the least price.
    ratio = 1.0 + found.bound / float(objective.price(1))
    violates = found.objective > tolerance * objective.price(len(found.propositions))
    return [found.propositions] if violates else [], ratio


def _dual_bound(problem: _Problem, slopes: Floats, ratio: float) -> float:
    """A lower bound on the objective over all rules, by Fenchel duality.

    The slopes u_n of the loss per row, divided by the largest ratio of any rule's slope to its
    penalty, are feasible for the dual problem if they sum to 0 (the intercept). They do so up to
    rounding; the heavier sign is scaled down to make it exact.
    """
    target, share, constant = problem.merged
    conjugate = require(problem.data.loss, "conjugate", _CERTIFICATE)
    u = np.divide(slopes, share, out=np.zeros_like(slopes), where=share > 0) / max(1.0, ratio)
    positive, negative = float(share @ np.maximum(u, 0.0)), float(share @ np.maximum(-u, 0.0))
    if positive > negative:
        u = np.where(u > 0, u * (negative / positive), u)
    elif negative > positive:
        u = np.where(u < 0, u * (positive / negative), u)
    # The dual objective, and the part of the loss that merged rows leave out.
    return constant - float(share @ conjugate(target, u))
