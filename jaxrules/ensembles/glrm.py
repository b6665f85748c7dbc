"""Generalised linear rule models, by column generation (Wei, Dash, Gao and Günlük, ICML 2019).

A linear model over all conjunctions of propositions:

    minimise  mean_n l(y_n, f(x_n)) + sum_k (lambda_0 + lambda_1 length_k) |w_k|     (their Eq. 3 and 8)
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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.conditions import Condition, Conjunctions, PropositionPool, all_propositions
from jaxrules.constraints import Constraints
from jaxrules.cross_validation import (
    SHARE,
    cross_validated,
    folds,
    last_fit,
    options_of_fit,
    rows_of,
)
from jaxrules.ensembles.candidates import Candidates
from jaxrules.fits import Fit, Status
from jaxrules.guard import guarded
from jaxrules.losses import Loss, MergedRows, best_constant, merge_rows, require
from jaxrules.models import LinearTerms, RuleEnsemble
from jaxrules.runs import Deadline, ProgressOption, Run
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
from jaxrules.table import MissingRule
from jaxrules.training import (
    TrainingData,
    linear_terms_of,
    loss_for,
    one_against_rest,
    settings,
    training_data,
)
from jaxrules.warm_start import check_lengths, given_start, made_of, propositions_in

Floats = NDArray[np.float64]
Rule = tuple[int, ...]
"""The propositions of a rule, ascending."""

_DEBIASED_PENALTY = 1e-6
"""A refit "without" penalty keeps this ridge, relative to the scale of the loss:
separable classes stay finite.
"""
_CERTIFICATE = "the certificate of generalised linear rule models"
_PRICE = 0.05
"""The default rule penalty, as a share of the one that excludes every single proposition."""
_GRID = _PRICE * np.geomspace(6, 0.2, 6)
"""The penalties that cross-validation tries, as such shares."""
_LEAST_PRICE = 1e-6
"""The least default penalty for classes: a class with less than some millionths
of the weight gets no rule.
"""
_SMALLEST_CAPACITY = 127
"""Columns of the first master problem; see `_State`."""
_FIRST_TOLERANCE = 1e-2
"""Relative duality gap of the first master problems: rough slopes suffice to find rules."""
_MASTER_TOLERANCE = 1e-3
"""Relative duality gap of the last master problems, as a share of the tolerance of the fit."""


@guarded
def fit(
    X: Any,
    y: ArrayLike,
    *,
    loss: Literal["logistic", "squared", "poisson", "exponential"] | Loss | None = None,
    rule_penalty: float | None = None,
    condition_penalty: float | None = None,
    pricing: Literal["beam", "exact"] = "beam",
    max_length: int | None = None,
    max_rules: int = 1000,
    max_cut_points: int | None = 9,
    linear_terms: bool = False,
    forbidden: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    beam_width: int = 10,
    rules_per_round: int = 10,
    start: Literal["conditions", "empty"] | Fit[RuleEnsemble] | RuleEnsemble = "conditions",
    debias: bool = False,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    tolerance: float = 1e-6,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleEnsemble]:
    """Fit a generalised linear rule model.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, numbers or counts, according to the loss, shape (rows,). More than two classes
            are fitted one against the rest: an ensemble with one output per class.
        loss: None for "logistic" if y holds classes (see `jaxrules.table.holds_classes`), else
            "squared"; "logistic", "squared", "poisson", "exponential", or a
            `jaxrules.losses.Loss` with a conjugate.
        rule_penalty: lambda_0 > 0, the penalty of a rule's weight, against the mean
            loss. None: a twentieth of the one that excludes every single proposition,
            and for classes at least 1e-6.
        condition_penalty: lambda_1 >= 0, the penalty of each proposition in a rule; None
            takes a fifth of `rule_penalty`, as in the paper's experiments. An interval
            counts as two propositions.
        pricing: "beam" looks for violating rules with a beam search; "exact" also searches exactly
            whenever the beam finds none, and so ends with a certificate. The branch and bound may
            take long: on large data, set `max_length`, few cut points or a time limit.
        max_length: the most propositions of a rule, None for no limit.
        max_rules: the most candidate rules that column generation may add.
        max_cut_points: thresholds per numeric column, at quantiles; None for all.
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
            none ("empty"), or those of a Fit or its model, of any learner, with its weights (0 if
            `monotone` forbids them). The objective is then at most that of the start, under these
            penalties; its conditions are extra cut points.
        debias: refit the weights of the chosen rules (almost) without a penalty, as the authors'
            program does by default. The objective and the bound are those of the penalised model.
        sample_weight: weight of every row, shape (rows,).
        missing: rule for missing values, see `jaxrules.as_table`.
        tolerance: a rule is added while it violates its optimality condition by more than this
            share of its penalty; the certificate of "exact" says what gap is left.
        seed: unused, since nothing is random; every learner takes it.
        time_limit: seconds; the best model so far is returned when they run
            out, see `jaxrules.Deadline`.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit. Its status is "optimal" when the exact search has proved that no rule (of at most
        `max_length` propositions) can lower the objective, "converged" when the beam finds none,
        "max_iterations" at `max_rules`. The bound is None without an exact search. ``details``:
        rounds, n_candidates (rules in the last master problem), n_propositions, rule_penalty,
        condition_penalty. With more than two classes see `jaxrules.training.one_against_rest`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument is out of range, or the data cannot be fitted; names it.
    """
    loss = loss_for(y, loss)
    options = _Options.of(locals())
    require(loss, "conjugate", _CERTIFICATE)
    max_cut_points = checks.optional(checks.integer, "max_cut_points", max_cut_points, at_least=1)
    linear_terms = checks.flag("linear_terms", linear_terms)
    run = Run("glrm", time_limit, progress)
    data = training_data(X, y, loss, sample_weight=sample_weight, missing=missing)
    constraints = Constraints.of(data.table.schema, forbidden, (), monotone)
    known = (
        None
        if isinstance(start, str)
        else given_start(start, RuleEnsemble, data, constraints, linear_terms)
    )
    candidates = _propositions(data, max_cut_points, constraints, first, run, known)
    given = (
        None
        if known is None
        else _Start.of(known, candidates, constraints, data, options.max_length)
    )
    space = candidates.space
    if not len(space) and not run.stopped():
        raise ValueError("no column of X varies; nothing can be learned")
    if rule_penalty is None:
        price = _PRICE * _largest_slope(data, space)
        options = options.with_price(price if data.classes is None else max(price, _LEAST_PRICE))
    if condition_penalty is None:
        options = replace(options, condition_price=options.rule_price / 5)
    return one_against_rest(
        data,
        run,
        lambda part, run: _generate(
            _Problem.of(part, candidates, constraints, linear_terms, options, given), run
        ),
    )


@guarded
def cross_validate(
    X: Any,
    y: ArrayLike,
    *,
    rule_penalties: Sequence[float] | None = None,
    n_folds: int = 5,
    one_standard_error: bool = True,
    loss: Literal["logistic", "squared", "poisson", "exponential"] | Loss | None = None,
    condition_penalty: float | None = None,
    pricing: Literal["beam", "exact"] = "beam",
    max_length: int | None = None,
    max_rules: int = 1000,
    max_cut_points: int | None = 9,
    linear_terms: bool = False,
    forbidden: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    beam_width: int = 10,
    rules_per_round: int = 10,
    start: Literal["conditions", "empty"] = "conditions",
    debias: bool = False,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    tolerance: float = 1e-6,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleEnsemble]:
    """Choose the rule penalty by cross-validation (see `jaxrules.cross_validation`),
    and fit with it on all rows.

    Each fold has its own cut points.

    Args:
        rule_penalties: values of lambda_0, positive. None: six from 6 to 1/5
            times the default of `fit`.
        n_folds: how many folds.
        one_standard_error: choose the smallest model within one standard error
            of the best, not the best.
        seed: of the folds.
        time_limit: seconds for everything; four fifths are for the folds.

    The other arguments are those of `fit`.

    Returns:
        The Fit on all rows; ``details`` also hold cross_validation, a `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    checks.choice("start", start, ("conditions", "empty"))
    same = options_of_fit(locals(), fit)
    same["loss"] = known = loss_for(y, loss)
    require(known, "conjugate", _CERTIFICATE)
    one_standard_error = checks.flag("one_standard_error", one_standard_error)
    prices = (
        None
        if rule_penalties is None
        else checks.sequence("rule_penalties", rule_penalties, above=0)
    )
    run = Run("glrm", time_limit, progress)
    data = training_data(X, y, known, sample_weight=sample_weight, missing=missing)
    fold_of = folds(data, n_folds, seed)
    if prices is None:
        checks.optional(checks.integer, "max_cut_points", max_cut_points, at_least=1)
        constraints = Constraints.of(data.table.schema, forbidden, (), monotone)
        largest = _largest_slope(
            data, _propositions(data, max_cut_points, constraints, first, run).space
        )
        prices = np.maximum(_GRID * largest, _LEAST_PRICE if data.classes is not None else 0.0)
    prices = np.sort(prices)[::-1]

    def walk(k: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
        for i, price in enumerate(prices.tolist()):
            part = run.child(1 / (len(prices) - i))
            found = fit(**rows_of(inside), **same, rule_penalty=price, time_limit=part.deadline)
            if part.stopped():
                return
            yield found.model

    part = run.child(SHARE, "glrm cross-validation")
    found = cross_validated(
        data, [{"rule_penalty": price} for price in prices.tolist()], walk, fold_of, part,
        one_standard_error=one_standard_error, otherwise=len(prices) // 2,
    )  # fmt: skip
    everything = {**same, **found.setting, "sample_weight": sample_weight}
    return last_fit(
        found, run, lambda left: fit(X, y, **everything, time_limit=left, progress=progress)
    )


def _propositions(
    data: TrainingData, max_cut_points: int | None, constraints: Constraints, first: Any, run: Run,
    start: RuleEnsemble | None = None,
) -> Candidates:  # fmt: skip
    """The propositions on the rows, with those of a start; only these if
    the run is stopped early.
    """
    check_cut_points(data.table, max_cut_points)
    schema, n_outputs = data.table.schema, len(data.outputs)
    own = constraints.first(schema, first, n_outputs)
    begun = (
        PropositionPool.of(schema, ())
        if start is None
        else propositions_in(start.conjunctions.with_schema(schema))
    )

    def candidates(found: PropositionPool) -> Candidates:
        pool = PropositionPool.concatenate([found, begun])
        return Candidates.of(constraints.pool(pool, data.table, n_outputs), own, constraints, data)

    run.preparing("propositions")
    return run.prepared(
        lambda: candidates(all_propositions(data.table, max_cut_points=max_cut_points)),
        lambda: candidates(PropositionPool.of(schema, ())),
    )


def _largest_slope(data: TrainingData, space: SearchSpace) -> float:
    """The fall of the mean loss at the best constant per unit of weight of the best proposition."""
    slopes = []
    for y in data.outputs:
        constant = np.full(len(y), best_constant(data.loss, y, data.weights))
        totals = space.activations.totals(data.weights * data.loss.gradient(y, constant))
        slopes.append(np.abs(space.activations.by_rule @ totals).max(initial=np.finfo(float).tiny))
    return float(max(slopes) / data.weights.sum())


def _generate(problem: _Problem, run: Run) -> Fit[RuleEnsemble]:
    """Column generation, for a target of one output."""
    options, state = problem.options, _State(problem)
    status = Status.MAX_ITERATIONS
    with run:
        run.phase = "start"
        state.solve(run)
        run.step(state.objective, state.size, bound=state.proved_bound)
        run.phase = "search"
        while not run.stopped():
            found = _price(problem, state, run)
            state.note(found)
            if run.stopped():
                break
            new = [rule for rule in found.rules if rule not in state.known][
                : options.max_rules - state.generated
            ]
            if not new and state.tolerance <= _MASTER_TOLERANCE * options.tolerance:
                status = _why_no_rule(options, found, state)
                break
            state.add(new)
            if not new:
                state.tolerance = max(0.01 * state.tolerance, _MASTER_TOLERANCE * options.tolerance)
            state.solve(run)
            run.step(state.objective, state.size, bound=state.proved_bound)
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
        rounds=state.rounds,
        n_candidates=len(state.rules),
        n_propositions=problem.candidates.n_searched,
        rule_penalty=options.rule_price,
        condition_penalty=options.condition_price,
    )


def _why_no_rule(options: _Options, found: _Priced, state: _State) -> Status:
    """The status when pricing has nothing to add."""
    if found.rules and state.generated >= options.max_rules:
        return Status.MAX_ITERATIONS
    return Status.CONVERGED


# The problem


@dataclass(frozen=True)
class _Options:
    """The checked options that do not depend on the data, and all settings for the model."""

    rule_price: float  # lambda_0
    condition_price: float  # lambda_1
    pricing: str
    max_length: int | None
    max_rules: int
    beam_width: int
    rules_per_round: int
    start: str
    debias: bool
    tolerance: float
    made: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> _Options:
        """From the arguments of `fit`; prices that are None are 0."""
        made = settings("glrm", given)
        price = checks.optional(checks.number, "rule_penalty", given["rule_penalty"], above=0)
        checks.require(
            price is None or price >= 1e-30, f"rule_penalty must be at least 1e-30, got {price}"
        )
        start = "conditions" if isinstance(given["start"], (Fit, RuleEnsemble)) else given["start"]
        if not isinstance(start, str):
            kind = type(start).__name__
            raise ValueError(
                f'start must be "conditions" or "empty", or a Fit or its model, got {kind}'
            )
        checks.seed(given["seed"])
        return cls(
            price or 0.0,
            checks.optional(checks.penalty, "condition_penalty", given["condition_penalty"]) or 0.0,
            checks.choice("pricing", given["pricing"], ("beam", "exact")),
            checks.optional(checks.integer, "max_length", given["max_length"], at_least=1),
            checks.integer("max_rules", given["max_rules"], at_least=0),
            checks.integer("beam_width", given["beam_width"], at_least=1),
            checks.integer("rules_per_round", given["rules_per_round"], at_least=1),
            checks.choice("start", start, ("conditions", "empty")),
            checks.flag("debias", given["debias"]),
            checks.number("tolerance", given["tolerance"], above=0),
            tuple(made.items()),
        )

    def with_price(self, rule_price: float) -> _Options:
        """With a lambda_0 that was chosen, and is to be known as a setting."""
        return replace(
            self,
            rule_price=rule_price,
            made=tuple({**dict(self.made), "rule_penalty": rule_price}.items()),
        )

    def price(self, length: Any) -> Any:
        """lambda_0 + lambda_1 length."""
        return self.rule_price + self.condition_price * length


@dataclass(frozen=True)
class _Start:
    """A given model: its rules in terms of the candidates, and its weights, by output."""

    rules: tuple[Rule, ...]
    weights: Floats  # (rules, outputs)
    intercept: Floats  # (outputs,)
    linear: LinearTerms | None

    @classmethod
    def of(
        cls,
        model: RuleEnsemble,
        candidates: Candidates,
        constraints: Constraints,
        data: TrainingData,
        max_length: int | None,
    ) -> _Start:
        """Rules that hold on no row are dropped; one that holds on all joins the intercept."""
        rules, n_labels = (
            model.conjunctions.with_schema(candidates.pool.schema),
            max(len(data.outputs), 2),
        )
        one_each = data.table[np.unique(candidates.space.activations.pattern, return_index=True)[1]]
        tags = (
            constraints.allows(candidates.pool, n_labels),
            constraints.allows(propositions_in(rules), n_labels),
        )
        made = made_of(candidates.pool, candidates.space.activations.bits, rules, one_each, tags)
        check_lengths(made, max_length, "max_length")
        found: dict[Rule, Floats] = {}
        for rule, weights in zip(made, np.asarray(model.weights, np.float64), strict=True):
            if rule is not None:
                found[rule] = found.get(rule, np.zeros(len(weights))) + weights
        intercept = np.asarray(model.intercept, np.float64) + found.pop((), np.zeros(1))
        kept = np.stack(list(found.values())) if found else np.zeros((0, len(intercept)))
        for k, signs in enumerate(candidates.signs):
            may = np.array([signs[list(rule)].all(axis=0) for rule in found], bool).reshape(-1, 2)
            kept[:, k] = np.clip(
                kept[:, k], np.where(may[:, 0], -np.inf, 0.0), np.where(may[:, 1], np.inf, 0.0)
            )
        return cls(tuple(found), kept, intercept, model.linear)


@dataclass(frozen=True)
class _Problem:
    """The data of the master problem.

    Without linear terms, rows that no proposition distinguishes are merged.

    Attributes:
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
        start: of the given model.
    """

    options: _Options
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
    linear_signs: NDArray[np.bool_]
    start: _Start | None

    def signs(self, rules: list[Rule], n_columns: int) -> NDArray[np.bool_] | None:
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
            self.options.made,
            self.data.loss.name,
        )

    @classmethod
    def of(
        cls,
        data: TrainingData,
        candidates: Candidates,
        constraints: Constraints,
        linear_terms: bool,
        options: _Options,
        start: _Start | None,
    ) -> _Problem:
        """The problem of a target of one output."""
        space = candidates.space
        rows, group, linear = space.activations.dense, space.activations.pattern, None
        if linear_terms or not data.loss.mergeable:  # every row by itself
            rows, group = rows[group], np.arange(len(group))
        else:
            space = space.groups
        values, prices = np.zeros((len(rows), 0)), np.zeros(0)
        if linear_terms:
            linear, factors = linear_terms_of(data)
            used = np.flatnonzero(~np.isin(linear.feature, list(constraints.forbidden)))
            linear, prices = linear.take(used), options.rule_price * factors[used]
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
            options,
            data,
            candidates,
            space,
            sides,
            rows,
            group,
            merged,
            linear,
            values,
            prices,
            signs,
            start,
        )


# The restricted master problem


@dataclass
class _State:
    """The candidates so far and the solution over them.

    Attributes:
        rules: the candidates.
        columns: bool, shape (rows, capacity): where they hold; then columns of zeros, so that
            shapes, and with them compiled kernels, change only when the capacity doubles.
        solution: of the last master problem: candidates, columns of zeros, linear terms.
        solved: how many candidates it had.
        tolerance: relative duality gap that the master problem is solved to.
        generated: how many candidates pricing has added.
        bound: the best proved lower bound on the objective over all rules.
        debiased: the weights that a refit without penalty gives the rules of the solution.
    """

    problem: _Problem
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
        if self.problem.start is not None:
            self._extend([rule for rule in self.problem.start.rules if rule not in self.known])
        if self.problem.options.start == "conditions":
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
        prices = np.full(self.columns.shape[1], problem.options.rule_price)
        prices[: len(self.rules)] = problem.options.price(
            np.array([len(rule) for rule in self.rules], np.float64)
        )
        start = None
        if self.solution is not None:
            weights = np.zeros(self.columns.shape[1])
            weights[: self.solved] = self.solution.coefficients[: self.solved]
            start = (np.concatenate([weights, self.coefficients]), self.solution.intercept)
        elif problem.start is not None:
            start = self._begun(problem.start)
        self.solution = sparse_glm.solve(
            problem.design(self.columns, problem.linear_values),
            problem.data.target,
            1.0,
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
        """The given model as coefficients of the columns, and the intercept."""
        output, columns = self.problem.data.output, self.columns.shape[1]
        coefficients = np.zeros(columns + self.problem.linear_values.shape[1])
        coefficients[[self.rules.index(rule) for rule in start.rules]] = start.weights[:, output]
        if start.linear is not None and self.problem.linear is not None:
            known = dict(
                zip(
                    start.linear.feature.tolist(), start.linear.coefficients[:, output], strict=True
                )
            )
            may_fall, may_rise = self.problem.linear_signs.T
            terms = np.array(
                [known.get(feature, 0.0) for feature in self.problem.linear.feature.tolist()]
            )
            coefficients[columns:] = np.where(np.where(terms > 0, may_rise, may_fall), terms, 0.0)
        return coefficients, float(start.intercept[output])

    def score(self) -> Floats:
        """f of every row."""
        assert self.solution is not None
        used = np.flatnonzero(self.rule_weights)
        rules = self.columns[:, used] @ self.rule_weights[used]
        return np.asarray(
            self.solution.intercept + rules + self.problem.linear_values @ self.coefficients
        )

    def note(self, found: _Priced) -> None:
        """Keep the best proved bound."""
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
        one of the smallest of the many best solutions, which differ on new rows.
        """
        if self.solution is None:
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
        scale = problem.linear_price[terms] / problem.options.rule_price
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
    while True:
        weights = np.where((np.abs(weights) > rounding) & columns.any(axis=0), weights, 0.0)
        on = np.flatnonzero(weights)
        design = np.column_stack([columns[:, on], np.ones(len(columns))]).astype(np.float64)
        scale = np.sqrt((design**2).sum(axis=0))
        values, vectors = np.linalg.eigh((design / scale).T @ (design / scale))
        if values[0] > 1e-12 * values[-1]:
            break
        way = vectors[:, 0] / scale
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
    return weights, float(shift)


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
    limits: dict[str, Any] = {
        "max_length": options.max_length, "tolerance": options.tolerance, "stopped": run.stopped,
    }  # fmt: skip
    prices = options.rule_price, options.condition_price
    searches = [
        side.whole(one)
        for side in problem.sides
        for one in _by_beam(
            side.space,
            slopes,
            *prices,
            side.sign,
            options.beam_width,
            options.rules_per_round,
            **limits,
        )
    ]
    new = [rule for rule in _worst(searches, options.rules_per_round) if rule not in state.known]
    if new or options.pricing == "beam":
        return _Priced(new)
    rules: list[Rule] = []
    ratio = 1.0
    for side in problem.sides:
        found, most = price_exactly(side.space, slopes, *prices, sign=side.sign, **limits)
        rules += [tuple(side.propositions[list(rule)].tolist()) for rule in found]
        ratio = max(ratio, most)
    if problem.linear is not None:
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
    limits: dict[str, Any] = {"max_length": max_length, "tolerance": tolerance, "stopped": stopped}
    return _worst(
        _by_beam(space, slopes, rule_penalty, condition_penalty, 0, width, count, **limits), count
    )


def _by_beam(
    space: SearchSpace,
    slopes: Floats,
    rule_penalty: float,
    condition_penalty: float,
    sign: int,
    width: int,
    count: int,
    *,
    max_length: int | None,
    tolerance: float,
    stopped: Callable[[], bool],
) -> list[Found]:
    """The rules that `price_by_beam` chooses from, for weights of one sign (0: of either)."""
    gains = np.stack([slopes, -slopes]) if sign == 0 else -sign * slopes[None]
    signs = SignedWeights(gains, rule_price=rule_penalty, condition_price=condition_penalty)
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
        ratio: a proved upper bound on |slope| / (lambda_0 + lambda_1 length) over all rules of at least one
            proposition; 1 if none violates its optimality condition.
    """
    prices: dict[str, Any] = {"rule_price": rule_penalty, "condition_price": condition_penalty}
    objective = GradientSum(-slopes if sign > 0 else slopes, one_sided=sign != 0, **prices)
    found = search_depth_first(space, objective, max_length=max_length, stopped=stopped)
    assert found.bound is not None  # the exact search always has one
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
    return constant - float(share @ conjugate(target, u))
