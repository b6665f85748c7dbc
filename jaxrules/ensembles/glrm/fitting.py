"""`fit`, `path` and `cross_validate`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import TableLike
from jaxrules.ensembles.glrm.details import GLRMDetails
from jaxrules.ensembles.glrm.options import GlrmGrid, GlrmOptions, GlrmPathOptions, GlrmShared
from jaxrules.ensembles.glrm.outputs import CERTIFICATE
from jaxrules.ensembles.glrm.task import GlrmTask, least_for, noise
from jaxrules.ensembles.in_time import model_in_time
from jaxrules.learning.cross_validation import (
    fit_of_best_setting,
    fits_along,
    fits_in_turn,
    unfinished,
)
from jaxrules.learning.in_time import MANY_COLUMNS, on_all_rows, rows_for_rules
from jaxrules.learning.options import learner
from jaxrules.learning.training import TrainingData, by_content, loss_for, some_rows
from jaxrules.losses import require
from jaxrules.models.rule_models import RuleEnsemble, decision_function
from jaxrules.tools.fits import Fit
from jaxrules.tools.runs import Run

SharedT = TypeVar("SharedT", bound=GlrmShared)

_NEEDS = ("jaxrules.solvers.rule_search.kernels.extensions",)
"""The modules that take long to import."""
_FEW_ROWS = 2000
"""The number of rows for rules if there was no time for one."""
_SECONDS_PER_ENTRY = 3e-8
"""Roughly the time per distinct row and proposition until the first weights are known."""


@learner(GlrmOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: GlrmOptions
) -> Fit[RuleEnsemble]:
    """Fit a generalised linear rule model.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, numbers or counts, according to the loss, shape (rows,). For more than two
            classes see `multiclass`: an ensemble with one output per class.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit with `GLRMDetails`. Its status is "optimal" when the exact search has proved that no
        rule (of at most `max_length` propositions) can lower the objective, "converged" when the
        beam finds none, "max_iterations" at `max_rules`. The bound is None without an exact search.
        For classes one-vs-rest see `jaxrules.learning.training.one_against_rest`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument is out of range, or the data cannot be fitted; names it.
    """
    run = options.run()
    data, options = _read(X, y, sample_weight, options)
    # A model of a sample has none of what these ask for: given rules, other weights, or terms.
    free = isinstance(options.start, str) and options.first is None
    free = free and not (options.debias or options.linear_terms)
    sample = rows_for_rules(data, run, options.seed, _NEEDS) if free else None
    if sample is not None:
        return _in_time(data, sample, options, run)
    task = GlrmTask.of(data, options, run)
    few = None
    if free and (len(data.weights) > _FEW_ROWS or len(data.table.columns) > MANY_COLUMNS):
        few = some_rows(data, _FEW_ROWS, options.seed)
    space = task.candidates.space
    # No time for a first master problem on all rows, or the search ended without a rule: a few rows
    # have a model that is more than a constant.
    seconds = _SECONDS_PER_ENTRY * space.activations.n_patterns * len(space)
    if few is not None and (run.stopped() or seconds > run.deadline.work_left()):
        return _in_time(data, few, options, run)
    if options.rule_penalty is None:
        found = task.fit_by_noise(run)
    else:
        found = task.fit(options.rule_penalty, task.starts, run)[0]
    if few is not None and run.stopped() and not len(found.model.conjunctions):
        return _in_time(data, few, options, run)
    return found


@learner(GlrmPathOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: GlrmPathOptions
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
    task = GlrmTask.of(*_read(X, y, sample_weight, options), run)
    penalties = options.rule_penalties or task.default_penalties()
    starts = task.starts

    def fit_at(penalty: float, run: Run) -> Fit[RuleEnsemble]:
        nonlocal starts
        run.task = f"glrm, rule_penalty={penalty:.3g}"
        found, starts = task.fit(penalty, starts, run)
        return found

    return fits_along(penalties, run, fit_at)


@learner(GlrmGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: GlrmGrid
) -> Fit[RuleEnsemble]:
    """Choose the rule penalty by cross-validation (see `jaxrules.learning.cross_validation`); fit
    on all rows.

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
    data, options = _read(X, y, sample_weight, options)
    penalties = options.rule_penalties
    if penalties is None:
        penalties = GlrmTask.of(data, options, run).default_penalties()

    # Starts are those of `fit`, not of the penalty before: a fold measures the fit that is
    # returned.
    def walk(_: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
        quiet = Run(run.task, run.deadline)
        task = GlrmTask.of(inside, options, quiet)
        fits = fits_in_turn(penalties, quiet, lambda at, run: task.fit(at, task.starts, run)[0])
        return (found.model for found in takewhile(lambda one: not unfinished(one), fits))

    grid = [{"rule_penalty": penalty} for penalty in penalties]
    return fit_of_best_setting(
        fit, (X, y, sample_weight), options, data, grid, walk, run, otherwise=len(penalties) // 2
    )


def _read(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: SharedT
) -> tuple[TrainingData, SharedT]:
    """The data, for a loss with a conjugate, and the options that say how classes are fitted."""
    loss = loss_for(y, options.loss)
    require(loss, "conjugate", CERTIFICATE)
    data = by_content(options.training_data(X, y, sample_weight, loss))
    joint = options.joins(data)
    if data.target.ndim > 1:
        options = replace(options, multiclass="joint" if joint else "one_vs_rest")
    return data, options


def _in_time(
    data: TrainingData, sample: TrainingData, options: GlrmOptions, run: Run
) -> Fit[RuleEnsemble]:
    """The model found on a sample of the rows, with its weights there, evaluated on all rows."""
    joint = options.joins(data)
    model, details = model_in_time(
        sample, fit, options, run, needs=_NEEDS, max_length=options.max_length,
        one_vs_rest=not joint,
    )  # fmt: skip
    if joint:  # the log-odds of few classes, one-vs-rest, then serve as scores
        model = replace(model, link="softmax")
    penalty, why = options.rule_penalty, ""
    if penalty is None and details is not None:
        penalty = float(np.mean(details["rule_penalty"]))
    elif penalty is None:
        scores = np.asarray(decision_function(model, data.table)).reshape(len(data.target), -1)
        each = [(data, scores)]
        if not joint:
            pairs = zip(data.outputs, scores.T, strict=True)
            each = [(replace(data, target=y), score[:, None]) for y, score in pairs]
        penalty = max(float(np.mean([noise(*one, options) for one in each])), least_for(data))
    if options.rule_penalty is None:
        why = f"rule_penalty={penalty:.3g}: chosen on a sample of {len(sample.weights)} rows"
    prices = options.prices(penalty)
    # The norm of the weights of a rule for classes together; one-vs-rest, the mean over the
    # outputs, as its objective is the mean of theirs.
    sizes = np.linalg.norm(model.weights, axis=1) if joint else np.abs(model.weights).mean(axis=1)
    costs = prices.of(model.conjunctions.propositions.astype(np.float64))
    details = GLRMDetails(
        rounds=0, n_candidates=len(model.conjunctions),
        n_propositions=int(model.conjunctions.propositions.sum()), rule_penalty=prices.rule,
        condition_penalty=prices.condition, chosen=why, sample=len(sample.weights),
    )  # fmt: skip
    settings = options.settings(loss=data.loss)
    return on_all_rows(model, data, float(costs @ sizes), run, settings, details)
