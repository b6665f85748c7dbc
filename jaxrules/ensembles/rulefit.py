"""RuleFit: an L1-penalised linear model on rules, and on linear terms if asked for.

Friedman and Popescu, "Predictive learning via rule ensembles" (2008), and Problem 1 of the LIRE paper:

    minimise  mean_n l(y_n, f(x_n)) + l1_penalty (sum_m |a_m| + sum_j |b_j|)
    f(x) = a_0 + sum_m a_m r_m(x) + sum_j b_j l_j(x)

The intercept a_0 is not penalised. The rules r_m come from a tree ensemble; l_j(x) is the winsorised
column min(upper_j, max(lower_j, x_j)), penalised on the scale 0.4 / std(l_j), so that a linear term has
the influence of a typical rule (Sec. 5 of the paper). With scikit-learn's ``LogisticRegression``,
C = 1 / (n l1_penalty); with its ``Lasso`` (which halves the squared error), alpha = l1_penalty / 2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.conditions import Conjunctions
from jaxrules.ensembles.extraction import RulePool, rule_pool
from jaxrules.losses import Loss, mean_loss, require
from jaxrules.models import LinearTerms, RuleEnsemble
from jaxrules.results import Deadline, Fit, ProgressOption, Run, Status, guarded
from jaxrules.solvers.linear import sparse_glm
from jaxrules.table import MissingRule
from jaxrules.training import FIGURES, TrainingData, linear_terms_of, loss_for, settings, training_data

_STEPS = 50
"""Penalties of a path."""
_SMALLEST_PENALTY = 1e-3
"""Where a path ends, relative to the largest penalty, at which no rule has a weight."""

_ROUGH = 1e-3
"""Relative duality gap of what is solved on the way: in folds, and before the last penalty of a warm-started path."""

_PATIENCE = 5
"""Penalties, each 13 % below the one before, over which the held-out loss may fail to fall before the path ends."""

_WITHOUT_FOLDS = 0.05
"""The penalty, relative to the largest, where time ends cross-validation before it has compared any."""

_SHARE_OF_TIME = 0.8
"""The share of the time limit that cross-validation may take; the rest is for the final fit."""


@guarded
def fit(
    X: Any,
    y: ArrayLike,
    *,
    l1_penalty: float | None = None,
    rules: Conjunctions | RulePool | None = None,
    loss: Literal["logistic", "squared", "poisson", "exponential"] | Loss | None = None,
    linear_terms: bool = False,
    winsorise: float = 0.025,
    n_folds: int = 5,
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
        y: classes, numbers or counts, as the loss has it, shape (rows,). More than two classes are fitted one
            against the rest, at one penalty, on one pool of rules: an ensemble of an output per class.
        l1_penalty: the paper's lambda (gamma in the LIRE paper), against the mean loss. None chooses it by
            cross-validation of the mean loss, from the largest one that leaves any rule a weight downwards until the
            held-out loss has stopped falling; the rules of a fold are extracted from the fold's training rows, unless
            `rules` are given.
        rules: candidate rules, e.g. from `jaxrules.extract_rules`; None extracts them from a random forest
            of 100 trees of depth at most 3.
        loss: None for "logistic" where y holds classes (see `jaxrules.table.holds_classes`), else "squared";
            "logistic", "squared", "poisson", "exponential", or a `jaxrules.losses.Loss` with a conjugate.
        linear_terms: add one winsorised linear term per numeric column.
        winsorise: share of values that is clipped at either end of a column, in [0, 0.5).
        n_folds: folds of the cross-validation.
        one_standard_error: choose the largest penalty within one standard error of the best.
        sample_weight: weight of every row, shape (rows,).
        missing: rule for missing values, see `jaxrules.as_table`.
        tolerance: the fit has converged when duality gap <= tolerance * objective.
        seed: of the default forest and the folds.
        time_limit: seconds; the best model so far is returned when they are over, see `jaxrules.Deadline`.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit whose bound is the dual objective; with several outputs objective and bound are means over them.
        ``details``: l1_penalty, n_candidates (rules in the pool), with cross-validation cv_penalties, cv_loss,
        cv_standard_error, each of shape (penalties,), and with more than two classes objectives, bounds and statuses,
        one per class.

    Raises:
        ValueError: for bad values in any argument, an empty rule pool, or rules of other columns.
    """
    loss = loss_for(y, loss)
    options = settings("rulefit", locals())
    run = Run("rulefit", time_limit, progress)
    l1_penalty = checks.optional(checks.penalty, "l1_penalty", l1_penalty)
    n_folds = checks.integer("n_folds", n_folds, at_least=2)
    one_standard_error = checks.flag("one_standard_error", one_standard_error)
    data, pool = _prepare(X, y, loss, rules, sample_weight, options, run)
    if l1_penalty is not None:
        return _walk(_Problem.of(data, pool, options), [l1_penalty], run)[0]
    fold_of = _folds(data, n_folds, options["seed"])
    share = 1e-9 if run.shortened else _SHARE_OF_TIME  # no time for a whole forest: none for folds
    search = run.child(share, "rulefit cross-validation")
    pools = _fold_pools(data, pool, fold_of, None if rules is not None else options["seed"], search)
    problem = _Problem.of(data, pool, options, pools)
    penalties = _penalties(problem, _STEPS)
    search.phase, search.total = "search", len(penalties)
    scores = np.full((n_folds, len(penalties)), np.nan)  # NaN: not reached
    with run:
        if not search.stopped():
            _cross_validate(_made_folds(problem, pools, fold_of), penalties, search, scores)
    chosen, curve = _choose(penalties, scores, one_standard_error, search.limit is not None)
    # Warm starts down the path make the last fit fast; without the time for them it begins where it ends.
    first = 0 if search.limit is None else chosen
    result = _walk(problem, penalties[first : chosen + 1], run, _ROUGH, **curve)[-1]
    return result if search.limit is None else dataclasses.replace(result, status=search.limit)


@guarded
def path(
    X: Any,
    y: ArrayLike,
    *,
    penalties: Sequence[float] | None = None,
    n_penalties: int = 50,
    rules: Conjunctions | RulePool | None = None,
    loss: Literal["logistic", "squared", "poisson", "exponential"] | Loss | None = None,
    linear_terms: bool = False,
    winsorise: float = 0.025,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    tolerance: float = 1e-6,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> tuple[Fit[RuleEnsemble], ...]:
    """RuleFit at descending penalties, each warm-started from the one before.

    Args:
        penalties: the l1_penalty values; sorted from large to small. None takes `n_penalties` values spaced
            evenly on a log scale from the smallest penalty at which every weight is zero (computed exactly)
            down to a thousandth of it.
        n_penalties: length of that default path.

    The other arguments are those of `fit`.

    Returns:
        One Fit per penalty, largest penalty first; ``details["l1_penalty"]`` tells which. When the time limit
        ends the path early, the fits so far are returned and the last one says so.

    Raises:
        ValueError: as `fit`.
    """
    loss = loss_for(y, loss)
    options = settings("rulefit", locals())
    del options["penalties"], options["n_penalties"]  # every model keeps its own
    run = Run("rulefit path", time_limit, progress)
    n_penalties = checks.integer("n_penalties", n_penalties, at_least=2, at_most=10_000)
    given = penalties if penalties is None else np.sort(checks.sequence("penalties", penalties, at_least=0))[::-1]
    problem = _Problem.of(*_prepare(X, y, loss, rules, sample_weight, options, run), options)
    return _walk(problem, _penalties(problem, n_penalties) if given is None else given, run)


# The problem: which columns, which rows


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
class _Problem:
    data: TrainingData
    pool: RulePool
    linear: LinearTerms | None  # with coefficients of 1
    factors: NDArray[np.float64]  # of the penalties of rules and terms
    design: sparse_glm.Design
    options: Mapping[str, Any]  # the settings of the fit

    @classmethod
    def of(
        cls, data: TrainingData, pool: RulePool, options: Mapping[str, Any], others: Sequence[RulePool] = ()
    ) -> _Problem:
        """With room for other pools on about as many rows: all of them then share compiled kernels."""
        linear, factors, row = None, np.ones(len(pool.rules)), pool.activations.pattern
        columns: tuple[NDArray[Any], ...] = (pool.activations.holds().T,)
        if options["linear_terms"] or not data.loss.mergeable:  # every row by itself
            columns, row = (columns[0][row],), np.arange(len(row))
        if options["linear_terms"]:
            linear, more = linear_terms_of(data, options["winsorise"])
            columns, factors = (*columns, linear.values(data.table)), np.concatenate([factors, more])
        patterns = [len(columns[0]), *(other.activations.n_patterns for other in others)]
        rules = [sum(block.shape[1] for block in columns), *(len(other.rules) for other in others)]
        design = sparse_glm.Design.of(columns, inverse=row, room=(max(patterns), max(rules)))
        return cls(data, pool, linear, factors, design, options)

    @property
    def masters(self) -> list[dict[str, Any]]:
        """What the solver is asked, for every output."""
        same = {"X": self.design, "loss": self.data.loss, "sample_weight": self.data.weights}
        return [{**same, "y": target, "penalty_factors": self.factors} for target in self.data.outputs]

    def solve(self, l1_penalty: float, start: _Solved | None, run: Run, tolerance: float = 0.0) -> _Solved:
        """The solution at a penalty, at this tolerance or that of the fit; if the run is stopped, `start`, or the one
        without rules."""
        masters, solutions = self.masters, []
        tolerance = max(tolerance, self.options["tolerance"])
        for k, master in enumerate(masters):
            solutions.append(
                sparse_glm.solve(
                    **master, l1_penalty=l1_penalty, start=None if start is None else start.outputs[k],
                    tolerance=tolerance, run=run.child(1 / (len(masters) - k)),
                )
            )  # fmt: skip
        return _Solved(l1_penalty, tuple(solutions))

    def model(self, solved: _Solved) -> RuleEnsemble:
        """The rules and terms with a weight other than zero."""
        weights, coefficients = np.split(solved.coefficients, [len(self.pool.rules)])
        used = np.flatnonzero(weights.any(axis=1))
        linear = None
        if self.linear is not None:
            kept = np.flatnonzero(coefficients.any(axis=1))
            linear = dataclasses.replace(self.linear.take(kept), coefficients=coefficients[kept])
        options = dict(self.options)
        if options.setdefault("l1_penalty", solved.l1_penalty) is None:
            options["chosen_l1_penalty"] = solved.l1_penalty
        loss, intercept = self.data.loss, np.array(solved.each("intercept"))
        made = tuple(options.items())
        return RuleEnsemble(self.pool.rules.take(used), weights[used], intercept, linear, loss.link, made, loss.name)


def _prepare(
    X: Any,
    y: ArrayLike,
    loss: Loss,
    rules: Conjunctions | RulePool | None,
    sample_weight: ArrayLike | None,
    options: Mapping[str, Any],
    run: Run,
) -> tuple[TrainingData, RulePool]:
    """Check every argument, then read the data and make the rules."""
    require(loss, "conjugate", "the certificate of rulefit")
    checks.flag("linear_terms", options["linear_terms"])
    checks.number("winsorise", options["winsorise"], at_least=0, below=0.5)
    checks.number("tolerance", options["tolerance"], above=0, below=1)
    checks.seed(options["seed"])
    data = training_data(X, y, loss, sample_weight=sample_weight, missing=options["missing"])
    return data, rule_pool(rules, data, options["seed"], run, may_be_empty=options["linear_terms"])


# Fits along a path


def _penalties(problem: _Problem, n: int) -> NDArray[np.float64]:
    largest = max(sparse_glm.max_penalty(**master) for master in problem.masters)
    return largest * np.geomspace(1.0, _SMALLEST_PENALTY, n)


def _walk(
    problem: _Problem, penalties: Sequence[float] | NDArray[np.float64], run: Run, rough: float = 0.0, **details: Any
) -> tuple[Fit[RuleEnsemble], ...]:
    """Warm-started fits until the run is stopped; at least one. `rough`: tolerance of all but the last, at least."""
    path: list[_Solved] = []
    run.phase, run.total = "search", len(penalties)
    with run:
        for penalty in penalties:
            tolerance = rough if len(path) < len(penalties) - 1 else 0.0
            path.append(problem.solve(float(penalty), path[-1] if path else None, run, tolerance))
            run.step(path[-1].objective, int(path[-1].coefficients.any(axis=1).sum()))
            if run.stopped():
                break
    if not path:  # interrupted: the model without rules
        path.append(problem.solve(float(penalties[0]), None, run))
    fits = [
        Fit(
            problem.model(solved), solved.objective, "min", Status.worst(solved.each("status")),
            float(np.mean(solved.each("bound"))), run.history[: i + 1],
            run.history[i].seconds if i < len(run.history) else run.seconds(),
            {"l1_penalty": solved.l1_penalty, "n_candidates": len(problem.pool.rules), **details}
            | ({name: solved.each(figure) for name, figure in FIGURES.items()} if len(solved.outputs) > 1 else {}),
        )
        for i, solved in enumerate(path)
    ]  # fmt: skip
    if run.limit is Status.INTERRUPTED or run.shortened or (run.limit is not None and len(fits) < len(penalties)):
        fits[-1] = dataclasses.replace(fits[-1], status=run.limit or Status.TIME_LIMIT)
    return tuple(fits)


# Cross-validation


class _Fold(NamedTuple):
    """The problem of the rows of all other folds, and the held-out rows with the values of its columns there."""

    problem: _Problem
    outside: TrainingData
    columns: NDArray[Any]

    def risk(self, solved: _Solved) -> float:
        """Mean loss on the held-out rows, over the outputs."""
        used = np.flatnonzero(solved.coefficients.any(axis=1))
        scores = self.columns[:, used] @ solved.coefficients[used] + np.array(solved.each("intercept"))
        pairs = zip(self.outside.outputs, scores.T, strict=True)
        return float(np.mean([mean_loss(self.outside.loss, y, f, self.outside.weights) for y, f in pairs]))


def _fold_pools(
    data: TrainingData, pool: RulePool, fold_of: NDArray[np.int64], seed: int | None, run: Run
) -> list[RulePool]:
    """The rules of every fold on the rows of all others, until the run is stopped. A seed extracts them anew."""
    pools: list[RulePool] = []
    for k in range(fold_of.max() + 1):
        if run.stopped():
            break
        known = RulePool(pool.rules, pool.activations.take_rows(fold_of != k))
        pools.append(rule_pool(None, data[fold_of != k], seed, run) if seed is not None else known)
    return pools


def _made_folds(problem: _Problem, pools: Sequence[RulePool], fold_of: NDArray[np.int64]) -> list[_Fold]:
    folds = []
    for k, pool in enumerate(pools):
        inside, outside = problem.data[fold_of != k], problem.data[fold_of == k]
        fold = _Problem.of(inside, pool, problem.options, [problem.pool, *pools])
        columns = pool.rules.satisfied(outside.table)
        if fold.linear is not None:
            columns = np.concatenate([columns, fold.linear.values(outside.table)], axis=1)
        folds.append(_Fold(fold, outside, columns))
    return folds


def _cross_validate(
    folds: Sequence[_Fold], penalties: NDArray[np.float64], run: Run, scores: NDArray[np.float64]
) -> None:
    """Fill `scores`, shape (folds, penalties), with held-out mean losses, penalty by penalty, until their mean has
    stopped falling or the run is stopped."""
    solved: list[_Solved | None] = [None] * len(folds)
    for i, penalty in enumerate(penalties.tolist()):
        for k, fold in enumerate(folds):
            if run.stopped():
                return
            solved[k] = found = fold.problem.solve(penalty, solved[k], run, _ROUGH)
            scores[k, i] = fold.risk(found)
        mean = scores[:, : i + 1].mean(axis=0)
        run.report(i + 1, float(mean[i]), int(np.mean([one.coefficients.any(axis=1).sum() for one in solved if one])))
        if i - mean.argmin() >= _PATIENCE:
            return


def _folds(data: TrainingData, n_folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of every row; each class is spread evenly."""
    checks.integer("n_folds", n_folds, at_most=len(data.target))
    order = np.random.default_rng(seed).permutation(len(data.target))
    if data.classes is not None:
        if np.unique(data.labels, return_counts=True)[1].min() < 2:
            raise ValueError("y has a class with one row only, which cross-validation cannot spread; give l1_penalty")
        order = order[np.argsort(data.labels[order], kind="stable")]
    fold_of = np.empty(len(order), np.int64)
    fold_of[order] = np.arange(len(order)) % n_folds
    return fold_of


def _choose(
    penalties: NDArray[np.float64], scores: NDArray[np.float64], one_standard_error: bool, cut: bool
) -> tuple[int, dict[str, NDArray[np.float64]]]:
    """Index of the chosen penalty, and the curve as far as it goes; penalties that some folds did not reach do not
    compete. Where the search was cut while the curve still fell, it is at least the one without folds."""
    reached = ~np.isnan(scores).any(axis=0)
    penalties, scores = penalties[reached], scores[:, reached]
    mean, error = scores.mean(axis=0), scores.std(axis=0, ddof=1) / len(scores) ** 0.5
    curve = {"cv_penalties": penalties, "cv_loss": mean, "cv_standard_error": error}
    without_folds = int(np.sum(np.geomspace(1.0, _SMALLEST_PENALTY, _STEPS) > _WITHOUT_FOLDS))
    if not len(penalties) or (cut and mean.argmin() == len(mean) - 1):
        return max(without_folds, len(penalties) - 1), curve
    chosen = int(np.argmin(mean))
    if one_standard_error:
        chosen = int(np.flatnonzero(mean <= mean[chosen] + error[chosen])[0])  # penalties fall: the first is largest
    return chosen, curve
