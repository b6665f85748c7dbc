"""Fitting LIRE: one model, models along falling penalties, penalties chosen by cross-validation.

Every fit takes the same steps: X and y are read (`training_data`), rules become columns
(`LireCandidates`), the search descends from several starts (`minimise`), branch-and-bound follows
if asked for (`BranchAndBound`), and the chosen columns become a model (`LireSolution`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import TableLike
from jaxrules.ensembles.extraction import depends_on_labels, rule_pool
from jaxrules.ensembles.in_time import FORESTS, model_in_time
from jaxrules.ensembles.lire.batches import Member, minimise_all, side_by_side
from jaxrules.ensembles.lire.bound import BranchAndBound
from jaxrules.ensembles.lire.candidates import LireCandidates
from jaxrules.ensembles.lire.descents import Watch, in_turn
from jaxrules.ensembles.lire.joint_search import JointSearch
from jaxrules.ensembles.lire.options import (
    LireGrid,
    LireOptions,
    LirePathOptions,
    LirePrices,
    deviance,
)
from jaxrules.ensembles.lire.search import Incumbent, SupportSearch
from jaxrules.ensembles.lire.solution import LireDetails, LireSolution
from jaxrules.ensembles.lire.traced import TracedSearch
from jaxrules.learning.cross_validation import (
    SHARE,
    Walk,
    along_paths,
    cross_validated,
    folds,
    last_fit,
    of_finished,
    unfinished,
)
from jaxrules.learning.in_time import Stage, rows_for_rules, with_rules
from jaxrules.learning.options import learner
from jaxrules.learning.training import TrainingData, loss_for, one_against_rest
from jaxrules.losses import poisson
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.constraints import Constraints
from jaxrules.tools.fits import Fit, Status
from jaxrules.tools.runs import Deadline, Run

SharedT = TypeVar("SharedT", LireOptions, LirePathOptions, LireGrid)

_SEARCHING = 0.9
"""Share of the time of the folds for the searches, made side by side; the rest is for
evaluation.
"""
_ROUNDS = 6
"""The most penalties that models ask for in turn."""


@learner(LireOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LireOptions
) -> Fit[RuleEnsemble]:
    """Fit a locally interpretable rule ensemble: minimise G over rules and weights by local search.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> result = fit(X, X[:, 0] > 0, global_penalty=0.1)
    >>> result.model.conjunctions.describe(0), result.details.swap_optimal
    ('x0 <= 0', True)

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, numbers for the squared loss or counts for the Poisson loss, shape (rows,). For
            more than two classes see `multiclass`: an ensemble with one output per class.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is G plus the ridge, with `jaxrules.lire.LireDetails`. With
        ``search="optimal"`` its bound holds for all models of these rules, of which one takes part
        if several hold for the same rows or for exactly the others, and the status is OPTIMAL if
        the two agree within 5e-6. Without a ridge, weights of rules are capped at 23.1
        (exponential) and 46.1 (logistic, Poisson); with one, they stay far below. For classes
        one-vs-rest see `jaxrules.learning.training.one_against_rest`; objective and bound are means
        over the classes. With classes fitted together, the ridge in the objective is mu / n sum_m
        |a_m|^2, with which two classes are the binary problem; without a ridge, weights on
        separable data end where the loss is negligible.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for an invalid value of an argument, rules or a start built for other columns,
            or a pool of rules that does not fit in memory.
    """
    run = options.run()
    data, options, constraints = _read(X, y, sample_weight, options)
    prices = options.prices(data)

    makes_rules = depends_on_labels(options.rules) and not constraints.required

    def rows(stage: Stage) -> TrainingData | None:
        needs = (FORESTS,)
        return rows_for_rules(data, run, options.seed, needs, stage=stage) if makes_rules else None

    def task() -> _LireTask:
        candidates = LireCandidates.of(data, options.rules, constraints, options, run)
        return _LireTask(data, candidates, options)

    def fit_of_sample(sample: TrainingData) -> Fit[RuleEnsemble]:
        """The fit on all rows with the rules of a sample as candidates."""
        own, most = replace(options, **prices._asdict()), options.max_rules
        model, _ = model_in_time(sample, fit, own, run, needs=(FORESTS,), max_rules=most)
        rules = model.conjunctions if len(model.conjunctions) else options.rules
        begun = options if options.start is not None else replace(options, start=model)
        candidates = LireCandidates.of(data, rules, constraints, begun, run)
        return _LireTask(data, candidates, options, len(sample.weights)).fit(prices, run)

    return with_rules(rows, task, lambda task: task.fit(prices, run), fit_of_sample)


@learner(LirePathOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LirePathOptions
) -> tuple[Fit[RuleEnsemble], ...]:
    """LIRE at several penalties: rules are evaluated once, and each fit starts from the one before.

    Because each model is also a start for the next, smaller penalties, the objective never rises
    along a path on which both penalties fall. The search is that of ``fit(X, y, search="combo")``.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> fits = path(X, X[:, 0] > 0, global_penalties=[0.1, 1.0])
    >>> [len(one.model.conjunctions) for one in fits]
    [0, 1]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        One Fit per penalty, largest gamma first. If the time limit ends the path early, the fits so
        far are returned, and the status of the last one says so.

    Raises:
        TypeError, ValueError: as `fit`; also if there are no penalties, or different numbers of
            gammas and lambdas.
    """
    run = options.run("lire path")
    data, options, constraints = _read(X, y, sample_weight, options)
    same, pairs = options.to(LireOptions), options.pairs(data)
    same = replace(same, l2_penalty=same.prices(data).l2_penalty)
    candidates = LireCandidates.of(data, same.rules, constraints, same, run)
    if options.traced:
        task = _LireTask(data, candidates, same)
        return tuple(one.fitted(run.child()) for one in _searched([task.along(pairs)], run)[0])
    fits: list[Fit[RuleEnsemble]] = []
    with run, ThreadPoolExecutor(1) as ahead:  # L1 solutions, one penalty ahead of the search
        for k, (gamma, lam) in enumerate(pairs):
            step = run.child()
            if run.deadline.seconds is None and not (data.loss.quadratic or options.joint):
                for coming, _ in pairs[k + 1 if k else 0 : k + 2]:
                    ahead.submit(candidates.solve_ahead, coming, run)
            (task,) = _LireTask(data, candidates, same).along([(gamma, lam)])
            fits.append(task.fitted(step))
            if step.limit is not None:
                break
    return tuple(fits)


@learner(LireGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: LireGrid
) -> Fit[RuleEnsemble]:
    """Choose both penalties and the ridge by cross-validation (see
    `jaxrules.learning.cross_validation`); fit on all rows.

    In every fold, rules are extracted again from trees grown on its rows, and every setting has its
    own search: with a fixed pool or support, too small a ridge would be chosen. Given rules, and
    those of a fitted tree ensemble, are the same in every fold: if they come from the same rows,
    the risk is optimistic. The search is that of ``fit(X, y, search="combo")``.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> grid = {"global_penalties": [0.01, 1.0], "l2_penalties": [0.25]}
    >>> chosen = cross_validate(X, X[:, 0] > 0, n_folds=2, **grid)
    >>> chosen.details.cross_validation.setting["global_penalty"]
    0.01

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`: mean risk,
        standard error and size of every setting. Its status is TIME_LIMIT if the folds were cut
        short.

    Raises:
        TypeError, ValueError: as `path`; for more folds than rows, or a class with a single row.
    """
    run = options.run()
    data, options, _ = _read(X, y, sample_weight, options)
    pairs, ridges = options.pairs(data), options.ridges(data)  # the same in all folds
    gammas, lambdas = zip(*pairs, strict=True)
    options = replace(
        options, global_penalties=gammas, local_penalties=lambdas, l2_penalties=ridges
    )
    grid = [
        {"global_penalty": gamma, "local_penalty": lam, "l2_penalty": ridge}
        for ridge in ridges
        for gamma, lam in pairs
    ]
    fold_of = folds(data, options.n_folds, options.seed, options.coded_groups)
    part = run.child(SHARE, "lire cross-validation")
    walk = _traced_walk(data, options, fold_of, part) if options.traced else _walk(options)
    found = cross_validated(
        data, grid, walk, fold_of, part, one_standard_error=options.one_standard_error,
        n_jobs=1 if options.traced else options.n_jobs,  # folds are lanes of one program
        otherwise=len(pairs) // 2,
    )  # fmt: skip
    chosen = options.to(LireOptions, **found.setting)

    def in_time(left: Deadline) -> Fit[RuleEnsemble]:
        return fit.with_options(X, y, sample_weight, replace(chosen, time_limit=left))

    return last_fit(found, run, in_time)


def _read(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: SharedT
) -> tuple[TrainingData, SharedT, Constraints]:
    """The data, the options for their loss and classes, and the constraints."""
    loss = loss_for(y, options.loss)
    data = options.training_data(X, y, sample_weight, loss)
    constraints = options.constraints(data.table.schema)
    constraints.warn_of_constants(data.table)
    return data, replace(options, loss=loss).for_classes(data), constraints


def _walk(options: LireGrid) -> Walk[RuleEnsemble]:
    """The models of a fold, for every ridge and all pairs of penalties, until time runs out."""

    def walk(k: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
        constraints = options.constraints(inside.table.schema)
        pool = rule_pool(options.rules, inside, options.seed, run, constraints=constraints)
        same = options.to(LirePathOptions, rules=pool, restarts=options.restarts or 0)
        each = [replace(same, l2_penalty=ridge) for ridge in options.ridges(inside)]
        return along_paths(path, each, of_finished)(k, inside, run)

    return walk


def _traced_walk(
    data: TrainingData, options: LireGrid, fold_of: NDArray[np.int64], run: Run
) -> Walk[RuleEnsemble]:
    """The same models, those of a fold side by side. If the rules do not depend on labels, neither
    does the matrix: folds then differ only in the weights of rows, and all are searched side by
    side.
    """
    constraints = options.constraints(data.table.schema)
    same = options.to(LireOptions, restarts=options.restarts or 0, progress=False)
    pairs = options.pairs(data)

    def paths(data: TrainingData, candidates: LireCandidates) -> list[list[_LireTask]]:
        for_ridge = [replace(same, l2_penalty=ridge) for ridge in options.ridges(data)]
        return [_LireTask(data, candidates, one).along(pairs) for one in for_ridge]

    def models(paths: Sequence[Sequence[_LireTask]], run: Run) -> Iterator[RuleEnsemble]:
        for task in itertools.chain(*paths):
            fit = task.fitted(run.child())
            if unfinished(fit):
                return
            yield fit.model

    if depends_on_labels(options.rules):

        def walk(_: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
            candidates = LireCandidates.of(inside, options.rules, constraints, same, run)
            yield from models(_searched(paths(inside, candidates), run), run)

        return walk
    whole = LireCandidates.of(data, options.rules, constraints, same, run)
    weights = [data.weights * (fold_of != k) for k in range(options.n_folds)]
    inside = [replace(data, weights=weights) for weights in weights]
    of_fold = [paths(part, whole.weighted(part, options.seed)) for part in inside]
    found = iter(_searched(list(itertools.chain(*of_fold)), run.child(_SEARCHING)))
    of_fold = [list(itertools.islice(found, len(options.ridges(data)))) for _ in of_fold]
    return lambda k, _, run: models(of_fold[k], run)


@dataclass(frozen=True, eq=False)
class _LireTask:
    """What the fits of one pool share.

    Attributes:
        sample: the number of rows that the rules come from; None for all.
        members: the searches, one per output, if they were made already.
    """

    data: TrainingData
    candidates: LireCandidates
    options: LireOptions
    sample: int | None = None
    members: Sequence[Member] = ()

    def along(self, pairs: Sequence[tuple[float, float]]) -> list[_LireTask]:
        """One task for each of these values of gamma and lambda."""
        at = [replace(self.options, global_penalty=g, local_penalty=lam) for g, lam in pairs]
        return [replace(self, options=options) for options in at]

    def fitted(self, run: Run) -> Fit[RuleEnsemble]:
        """`fit` with the penalties of the options."""
        return self.fit(self.options.prices(self.data), run)

    def member(self, output: int, prices: LirePrices, run: Run) -> Member:
        """A search that reports to the run."""
        ours = self.candidates.outputs[output]
        watch = Watch(run, ours.problem)
        make = TracedSearch if self.options.traced else SupportSearch
        if self.options.joint:
            make = JointSearch
        scaled = prices.in_units(ours.problem.unit)
        search = make(ours.problem, *scaled, self.options.max_rules, run.stopped, watch)
        return Member(ours, search, watch, self.options)

    def fit(self, prices: LirePrices, run: Run) -> Fit[RuleEnsemble]:
        """The best models found at these penalties, one per output; if the noise decides about one
        of them, the search continues with others as long as the model indicates less, or more.
        """
        fit_one = self._fit_by_noise if self.options.chosen_by_noise else self._fit_output
        return one_against_rest(
            self.data, run, lambda part, run: fit_one(part, prices, run), joint=self.options.joint
        )

    def _fit_by_noise(self, data: TrainingData, prices: LirePrices, run: Run) -> Fit[RuleEnsemble]:
        """One fit per ridge or gamma, each started from the model before; only the last uses the
        requested search.
        """
        proves = self.options.search == "optimal"
        local = replace(self, options=replace(self.options, max_nodes=1)) if proves else self
        said, other, joint, names = "", prices, self.options.joint, self.options.chosen_by_noise
        constant = deviance(data, joint=joint)
        for _ in range(_ROUNDS):
            prices, fit = other, local._fit_output(data, other, run)
            left = deviance(data, fit.details["loss"], joint) / constant
            tried = " and ".join(f"{getattr(prices, name):.4g}" for name in names)
            verb = "leaves" if len(names) == 1 else "leave"
            said += f"{',' if said else ':'} {tried} {verb} {left:.0%}"
            other = self.options.prices_for_noise(self.data, prices, left)
            if other == prices or run.stopped():
                break
        if proves and not run.stopped():
            fit = self._fit_output(data, prices, run)
        what = "deviance" if self.data.loss == poisson else "loss"
        chosen = " and ".join(f"{name}={getattr(prices, name):.4g}" for name in names)
        why = f"{chosen}{said} of the constant's {what}"
        return replace(fit, details=LireDetails(**{**fit.details, "chosen": why}))

    def _fit_output(self, data: TrainingData, prices: LirePrices, run: Run) -> Fit[RuleEnsemble]:
        """Local search, a proof if asked for, and the model."""
        candidates, options = self.candidates, self.options
        made = self.members[data.output] if self.members else None
        member = made or self.member(data.output, prices, run)
        search, watch, run, tree = member.search, member.watch, member.watch.run, None
        with run:
            if options.traced and not made:
                side_by_side([member.descents()])
            elif not made:
                in_turn(member.descents())
            if options.search == "optimal" and watch.best is not None:
                run.phase, watch.start, search.moves = "bound", "branches", options.max_iterations
                tree = BranchAndBound(search, watch.best, watch.proved)
                tree.run(options.max_nodes)
        best = watch.best or search.complete(search.start_empty())
        member.output.previous = best
        status = Status.MAX_ITERATIONS if member.exhausted else Status.CONVERGED
        if tree is not None:
            status = Status.OPTIMAL if tree.closed else Status.MAX_ITERATIONS

        solution = _solution(best, search).in_zero_one(options.encoding)
        objective = float(search.problem.stated(best.objective))
        squares = (2.0 if options.joint else 1.0) * float((solution.weights**2).sum())
        ridge = prices.l2_penalty / (2 * float(data.weights.sum())) * squares
        settings = options.settings(**prices._asdict())
        details = LireDetails(
            paper_objective=objective - ridge, loss=solution.mean_loss(candidates.pool, data),
            **prices._asdict(), n_candidates=len(candidates.pool.rules), sample=self.sample,
            start=watch.best_start, swap_optimal=watch.certified,
            nodes=0 if tree is None else tree.nodes, engine="jax" if options.traced else "numpy",
        )  # fmt: skip
        model = solution.model(candidates.pool, data, settings, candidates.n_first)
        bound = None if tree is None else min(search.problem.stated(tree.bound), objective)
        return run.finish(model, objective, "min", status, bound, details=details)


def _searched(paths: Sequence[Sequence[_LireTask]], run: Run) -> list[list[_LireTask]]:
    """The tasks with their searches, all made side by side; penalties fall along each path."""

    def begun(task: _LireTask) -> _LireTask:
        prices, outputs = task.options.prices(task.data), range(len(task.data.outputs))
        return replace(task, members=[task.member(k, prices, run.child()) for k in outputs])

    tasks = [[begun(task) for task in path] for path in paths]
    outputs = range(len(tasks[0][0].members))
    with run:
        minimise_all([[task.members[k] for task in path] for path in tasks for k in outputs])
    return tasks


def _solution(best: Incumbent, search: SupportSearch) -> LireSolution:
    """The columns that count as rules of the pool; the others join the intercept."""
    problem = search.problem
    rule = problem.origin[best.columns] >= 0
    intercept = best.weights[~rule].sum(axis=0) + problem.shift
    rule &= search.needed(best.columns, best.weights)
    return LireSolution(problem.origin[best.columns[rule]], best.weights[rule], intercept)
