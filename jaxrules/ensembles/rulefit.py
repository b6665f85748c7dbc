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
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.conditions import Conjunctions
from jaxrules.ensembles.extraction import default_rules
from jaxrules.losses import loss_by_name, mean_loss
from jaxrules.models import LinearTerms, RuleEnsemble, decision_function
from jaxrules.results import Deadline, Fit, ProgressOption, Run, Status
from jaxrules.solvers.linear import sparse_glm
from jaxrules.table import MissingRule, Table, as_table, binary_target, check_sample_weight, regression_target

_RULE_SCALE = 0.4
"""About the average standard deviation of a rule (Friedman and Popescu, Sec. 5)."""
_SMALLEST_PENALTY = 1e-3
"""Where a path ends, relative to the largest penalty, at which no rule has a weight."""

_SHARE_OF_TIME = 0.8
"""The share of the time limit that cross-validation may take; the rest is for the final fit."""


def fit(
    X: Any,
    y: ArrayLike,
    *,
    l1_penalty: float | None = None,
    rules: Conjunctions | None = None,
    loss: Literal["logistic", "squared"] = "logistic",
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
        y: two classes for the logistic loss, numbers for the squared loss, shape (rows,).
        l1_penalty: the paper's lambda (gamma in the LIRE paper), against the mean loss. None chooses it by
            cross-validation of the mean loss; the rules of a fold are then extracted from the fold's
            training rows, unless `rules` are given.
        rules: candidate rules, e.g. from `jaxrules.extract_rules`; None extracts them from a random forest
            of 100 trees of depth at most 3.
        loss: "logistic" or "squared".
        linear_terms: add one winsorised linear term per numeric column.
        winsorise: share of values that is clipped at either end of a column, in [0, 0.5).
        n_folds: folds of the cross-validation.
        one_standard_error: choose the largest penalty within one standard error of the best.
        sample_weight: weight of every row, shape (rows,).
        missing: rule for missing values, see `jaxrules.as_table`.
        tolerance: the fit has converged when duality gap <= tolerance * objective.
        seed: of the default forest and the folds.
        time_limit: seconds; the best model so far is returned when they are over.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit whose bound is the dual objective. ``details``: l1_penalty, n_candidates (rules in the pool),
        and with cross-validation cv_penalties, cv_loss, cv_standard_error, each of shape (penalties,).

    Raises:
        ValueError: for bad values in any argument, an empty rule pool, or rules of other columns.
    """
    run = Run("rulefit", time_limit, progress)
    problem = _prepare(X, y, rules, loss, linear_terms, winsorise, sample_weight, missing, seed)
    if l1_penalty is not None:
        _check_penalty("l1_penalty", l1_penalty)
        return _path(problem, [float(l1_penalty)], tolerance, run)[-1]
    if not 2 <= n_folds <= len(problem.target):
        raise ValueError(f"n_folds must lie between 2 and the number of rows, got {n_folds}")
    penalties = _penalties(problem, 50)
    search = run.child(_SHARE_OF_TIME, "rulefit cross-validation", n_folds * len(penalties))
    scores = np.full((n_folds, len(penalties)), np.nan)  # NaN: not reached before the time limit
    with run:
        _cross_validate(problem, penalties, rules is None, tolerance, seed, search, scores)
    chosen, curve = _choose(penalties, scores, one_standard_error)
    # Warm starts down the path make the last fit fast.
    result = _path(problem, penalties[: chosen + 1], tolerance, run, **curve)[-1]
    result = dataclasses.replace(result, seconds=run.seconds())
    return result if search.limit is None else dataclasses.replace(result, status=search.limit)


def path(
    X: Any,
    y: ArrayLike,
    *,
    penalties: Sequence[float] | None = None,
    n_penalties: int = 50,
    rules: Conjunctions | None = None,
    loss: Literal["logistic", "squared"] = "logistic",
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
    run = Run("rulefit path", time_limit, progress)
    problem = _prepare(X, y, rules, loss, linear_terms, winsorise, sample_weight, missing, seed)
    if penalties is None:
        if n_penalties < 2:
            raise ValueError(f"n_penalties must be at least 2, got {n_penalties}")
        chosen = _penalties(problem, n_penalties)
    else:
        if not len(penalties):
            raise ValueError("penalties is empty")
        for penalty in penalties:
            _check_penalty("penalties", penalty)
        chosen = np.sort(np.asarray(penalties, np.float64))[::-1]
    return _path(problem, chosen, tolerance, run)


# The problem: which columns, which rows


@dataclass(frozen=True)
class _LinearColumns:
    """Winsorised columns with the penalty factors that put them on the scale of a rule."""

    terms: LinearTerms  # with coefficients of 1
    factors: NDArray[np.float64]


@dataclass(frozen=True)
class _Problem:
    table: Table
    rules: Conjunctions
    linear: _LinearColumns | None
    winsorise: float | None
    design: sparse_glm.Design
    target: NDArray[np.float64]  # 0 and 1 for the logistic loss
    weights: NDArray[np.float64]
    loss: Literal["logistic", "squared"]

    @property
    def factors(self) -> NDArray[np.float64]:
        ones = np.ones(len(self.rules))
        return ones if self.linear is None else np.concatenate([ones, self.linear.factors])

    def model(self, solution: sparse_glm.Solution) -> RuleEnsemble:
        """The rules and terms with a weight other than zero."""
        weights, coefficients = np.split(solution.coefficients, [len(self.rules)])
        used = np.flatnonzero(weights)
        linear = None
        if self.linear is not None:
            kept = np.flatnonzero(coefficients)
            terms = self.linear.terms
            linear = LinearTerms(terms.feature[kept], coefficients[kept, None], terms.lower[kept], terms.upper[kept])
        link = loss_by_name(self.loss).link
        options = (("learner", "rulefit"), ("l1_penalty", solution.l1_penalty))
        return RuleEnsemble(
            self.rules.take(used),
            weights[used, None],
            np.array([solution.intercept]),
            linear,
            link,
            options,
            self.loss,
        )


def _prepare(
    X: Any,
    y: ArrayLike,
    rules: Conjunctions | None,
    loss: Literal["logistic", "squared"],
    linear_terms: bool,
    winsorise: float,
    sample_weight: ArrayLike | None,
    missing: MissingRule,
    seed: int,
) -> _Problem:
    """Check every argument, then build the design."""
    if loss not in ("logistic", "squared"):
        raise ValueError(f'loss must be "logistic" or "squared", got {loss!r}')
    if not 0 <= winsorise < 0.5:
        raise ValueError(f"winsorise must lie in [0, 0.5), got {winsorise}")
    table = as_table(X, missing=missing)
    classes = None
    if loss == "logistic":
        target, classes = binary_target(y, table.n_rows)
    else:
        target = regression_target(y, table.n_rows)
    weights = check_sample_weight(sample_weight, table.n_rows)
    if len(np.unique(target[weights > 0])) < 2:
        raise ValueError("y has one value only among the rows of positive sample_weight; nothing can be learned")
    if rules is None:
        rules = default_rules(table, target, classification=loss == "logistic", seed=seed, sample_weight=sample_weight)
    if not len(rules) and not linear_terms:
        raise ValueError("rules is empty; extract rules from deeper or more trees, or pass linear_terms=True")
    rules = rules.with_schema(table.schema.with_classes(classes))
    return _problem(table, rules, target, weights, loss, winsorise if linear_terms else None)


def _problem(
    table: Table,
    rules: Conjunctions,
    target: NDArray[np.float64],
    weights: NDArray[np.float64],
    loss: Literal["logistic", "squared"],
    winsorise: float | None,
) -> _Problem:
    linear = None if winsorise is None else _linear_columns(table, winsorise)
    satisfied = rules.satisfied(table)
    design = sparse_glm.Design.of(satisfied if linear is None else (satisfied, linear.terms.values(table)))
    return _Problem(table, rules, linear, winsorise, design, target, weights, loss)


def _linear_columns(table: Table, winsorise: float) -> _LinearColumns:
    """Quantiles and scales of the numeric columns; a column that is constant once clipped has no term."""
    features, lower, upper, scales = [], [], [], []
    for f, feature in enumerate(table.schema.features):
        if not feature.is_numeric:
            continue
        values = table.columns[f][~np.isnan(table.columns[f])]
        low, high = np.quantile(values, [winsorise, 1 - winsorise]) if winsorise else (-math.inf, math.inf)
        scale = float(np.clip(values, low, high).std())
        if scale > 0:
            features.append(f)
            lower.append(low)
            upper.append(high)
            scales.append(scale)
    ones = np.ones((len(features), 1))
    terms = LinearTerms(np.array(features, np.int32), ones, np.array(lower), np.array(upper))
    return _LinearColumns(terms, np.array(scales) / _RULE_SCALE)


def _check_penalty(name: str, penalty: float) -> None:
    if not (isinstance(penalty, (int, float, np.number)) and math.isfinite(penalty) and penalty >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {penalty!r}")


# Fits along a path


def _penalties(problem: _Problem, n: int) -> NDArray[np.float64]:
    largest = sparse_glm.max_penalty(
        problem.design,
        problem.target,
        loss=problem.loss,
        sample_weight=problem.weights,
        penalty_factors=problem.factors,
    )
    return largest * np.geomspace(1.0, _SMALLEST_PENALTY, n)


def _solve(
    problem: _Problem, penalty: float, start: sparse_glm.Solution | None, tolerance: float, run: Run
) -> sparse_glm.Solution:
    """The solution at a penalty; of a run that is stopped, the one without rules, or `start`."""
    return sparse_glm.solve(
        problem.design,
        problem.target,
        float(penalty),
        loss=problem.loss,
        sample_weight=problem.weights,
        penalty_factors=problem.factors,
        start=start,
        tolerance=tolerance,
        run=run,
    )


def _path(
    problem: _Problem,
    penalties: Sequence[float] | NDArray[np.float64],
    tolerance: float,
    run: Run,
    **details: Any,
) -> tuple[Fit[RuleEnsemble], ...]:
    """Warm-started fits until the run is stopped; at least one."""
    fits: list[Fit[RuleEnsemble]] = []
    solution = None

    def add(penalty: float) -> sparse_glm.Solution:
        step = run.child(total=len(penalties))
        found = _solve(problem, penalty, solution, tolerance, step)
        try:
            step.step(found.objective, len(found.support), len(fits) + 1)
        finally:  # a progress callback may end the path: the solution belongs to it
            fits.append(
                step.finish(
                    problem.model(found), found.objective, "min", found.status, found.bound,
                    l1_penalty=found.l1_penalty, n_candidates=len(problem.rules), **details,
                )
            )  # fmt: skip
        return found

    with run:
        for penalty in penalties:
            solution = add(penalty)
            if run.stopped():
                break
    if not fits:
        with run:
            add(penalties[0])
    if run.limit is not None and (run.limit is Status.INTERRUPTED or len(fits) < len(penalties)):
        fits[-1] = dataclasses.replace(fits[-1], status=run.limit)
    return tuple(fits)


# Cross-validation


def _cross_validate(
    problem: _Problem,
    penalties: NDArray[np.float64],
    extract: bool,
    tolerance: float,
    seed: int,
    run: Run,
    scores: NDArray[np.float64],
) -> None:
    """Fill `scores`, shape (folds, penalties), with held-out mean losses until the run is stopped."""
    loss = loss_by_name(problem.loss)
    classification = problem.loss == "logistic"
    signed = 2 * problem.target - 1 if classification else problem.target
    fold_of = _folds(problem.target, len(scores), classification, seed)
    for k in range(len(scores)):
        inside, outside = np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)
        table, target, weights = problem.table[inside], problem.target[inside], problem.weights[inside]
        rules = problem.rules
        if extract:
            rules = default_rules(table, target, classification=classification, seed=seed, sample_weight=weights)
            rules = rules.with_schema(problem.rules.schema)
        fold = _problem(table, rules, target, weights, problem.loss, problem.winsorise)
        held_out = problem.table[outside]
        solution = None
        for i, penalty in enumerate(penalties):
            solution = _solve(fold, penalty, solution, tolerance, run)
            score = np.asarray(decision_function(fold.model(solution), held_out))
            scores[k, i] = mean_loss(loss, signed[outside], score, problem.weights[outside])
            run.report(k * len(penalties) + i + 1, solution.objective)
            if run.stopped():
                return


def _folds(target: NDArray[np.float64], n_folds: int, stratify: bool, seed: int) -> NDArray[np.int64]:
    """The fold of every row; each class is spread evenly."""
    order = np.random.default_rng(seed).permutation(len(target))
    if stratify:
        order = order[np.argsort(target[order], kind="stable")]
    fold_of = np.empty(len(target), np.int64)
    fold_of[order] = np.arange(len(target)) % n_folds
    return fold_of


def _choose(
    penalties: NDArray[np.float64], scores: NDArray[np.float64], one_standard_error: bool
) -> tuple[int, dict[str, NDArray[np.float64]]]:
    """Index of the chosen penalty, and the curve; penalties that no fold reached do not compete."""
    folds = (~np.isnan(scores)).sum(axis=0)
    filled = np.where(np.isnan(scores), 0.0, scores)
    mean = np.where(folds > 0, filled.sum(axis=0) / np.maximum(folds, 1), np.inf)
    squares = np.where(np.isnan(scores), 0.0, (scores - mean) ** 2).sum(axis=0)
    error = np.sqrt(squares / np.maximum(folds - 1, 1) / np.maximum(folds, 1))
    chosen = int(np.argmin(mean))
    if one_standard_error:
        chosen = int(np.flatnonzero(mean <= mean[chosen] + error[chosen])[0])  # penalties fall: the first is largest
    return chosen, {"cv_penalties": penalties, "cv_loss": mean, "cv_standard_error": error}
