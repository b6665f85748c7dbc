"""Fitting LIRE: one model, models along falling penalties, and penalties
chosen by cross-validation.

Every fit goes the same way: the arguments are checked (`Options`), X and y read (`training_data`),
rules become columns (`Candidates`), the search descends from several starts (`minimise`),
branch-and-bound goes on where it was asked for
(`BranchAndBound`), and the chosen columns become a model (`Solution`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.conditions import Conjunctions
from jaxrules.constraints import Constraints, asks
from jaxrules.cross_validation import (
    SHARE,
    cross_validated,
    folds,
    last_fit,
    options_of_fit,
    rows_of,
    unfinished,
)
from jaxrules.ensembles.extraction import RuleSource, depends_on_labels, rule_pool
from jaxrules.fits import Fit, Status
from jaxrules.guard import guarded
from jaxrules.lire.bound import BranchAndBound
from jaxrules.lire.candidates import Candidates
from jaxrules.lire.descents import Watch, minimise
from jaxrules.lire.moves import Encoding
from jaxrules.lire.options import LossName, Options, Prices, SearchName, default_price
from jaxrules.lire.search import Incumbent, Search
from jaxrules.lire.solution import Solution
from jaxrules.losses import logistic
from jaxrules.models import RuleEnsemble
from jaxrules.runs import Deadline, ProgressOption, Run
from jaxrules.table import MissingRule
from jaxrules.training import (
    TrainingData,
    loss_for,
    one_against_rest,
    sample_in_time,
    settings,
    training_data,
)
from jaxrules.warm_start import given_start

Floats = NDArray[np.float64]

_GRID = np.geomspace(4, 0.2, 5)
"""The prices that cross-validation tries, times the default."""


@guarded
def fit(
    X: Any,
    y: ArrayLike,
    *,
    global_penalty: float | None = None,
    local_penalty: float | None = None,
    l2_penalty: float | None = None,
    loss: LossName | None = None,
    rules: RuleSource | None = None,
    forbidden: Iterable[str | int] = (),
    required: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    encoding: Encoding = "signed",
    penalise_intercept: bool = False,
    search: SearchName = "combo",
    max_support: int | None = None,
    restarts: int | None = None,
    start: Fit[RuleEnsemble] | RuleEnsemble | None = None,
    max_iterations: int = 5000,
    max_nodes: int | None = None,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleEnsemble]:
    """Fit a locally interpretable rule ensemble: minimise G over rules and weights by local search.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, or numbers for the squared loss, shape (rows,). More than two classes are fitted
            one against the rest: an ensemble of an output per class, from one pool of rules.
        global_penalty: gamma, the price of a rule, at least 0. None: half a percent of the
            mean loss of the best constant, so that a rule has to explain as much; below 1200
            rows 6/n of it, because the best of some hundred rules explains as much by chance
            (n is the effective number of rows, (sum w)^2 / sum w^2). With gamma = 0 rules
            are free: every rule that lowers the loss, or covers less than the average rule
            of the support, joins it, and the fit takes as long as
            `max_support`, `max_iterations` and `time_limit` let it.
        local_penalty: lambda, the price of mean coverage, at least 0. None: 2 gamma, as in the
            paper's experiments. With lambda = 0 it is plain L0-penalised selection.
        l2_penalty: mu, the ridge on the weights of the rules, against the sum of the losses as in
            `jaxrules.boosting`, at least 0: larger weights are drawn to 0 by more, those of rules
            that cover few rows most of all. 0 is the paper's problem. None: 1. Where all penalties
            are None, the loss is logistic and a model at these leaves less than a quarter of the
            constant's loss, there is little noise: the search goes on from it with a ridge of .15
            and a price of half a percent.
        loss: None for "logistic" where y holds classes (see `jaxrules.table.holds_classes`), else
            "squared"; or "logistic", "exponential" (the paper's; p(y = 1) = sigmoid(2 f)), or
            "squared" for regression: the penalties are then in units of the squared target.
        rules: where candidate rules come from: "boosted_trees" (None), "forest" or "both", see
            `jaxrules.default_forest`; rules, e.g. of `jaxrules.extract_rules`, with
            ``activations=True`` checked on `X` already; or a tree ensemble that it reads, which is
            fitted to the data if it is not yet. Of rules that hold on the same rows, or on the
            opposite ones, one is a candidate.
        forbidden: columns, by name or position, that no rule uses.
        required: columns that some rule uses: where the search would do without, the best rule
            for it, exchanged for others of the column as long as that improves. It pays as
            others do, even with a weight of 0. Where no rule of trees that are grown here speaks
            of the column, its own conditions at nine quantiles are candidates. Of several
            classes each uses them that may.
        monotone: 1 or -1 for some numeric columns: whether a score may only rise, or only fall,
            with the column; see `jaxrules.constraints`. Weights then have signs; rules between two
            values of the column are no candidates. Not for ``search="optimal"``.
        first: an expert's rules, which the model begins with and keeps, at the price of any other:
            their weights are fitted. One whose weight is 0 has no price: one that holds on the same
            rows as another of them, or on the opposite ones, or on all or none, or that `monotone`
            leaves no sign that helps.
        encoding: how a rule enters while the others stay fixed: "signed" (-1 / +1, the authors'
            program) or "binary" (0 / 1, the letter of Theorem 1). With a free intercept both have
            the same models and the same objective, and only the path of the search differs.
        penalise_intercept: count the intercept as a rule that covers every row while it is not 0.
        search: "combo": closed-form moves and full-refit moves in turn, from the empty model, from
            the L1 solution and after `restarts`, the best result; "optimal": the same, and then
            branch-and-bound, which proves a bound and improves the model where it can. Most pools
            of 40 rules close in a minute; larger ones leave a gap: give them a
            `time_limit` or `max_nodes`, otherwise they go on for hours. The authors' algorithm is
            `jaxrules.lire.published`.
        max_support: largest number of rules; None for no limit.
        restarts: how often to search again from the best model with two to five of its rules
            dropped, or exchanged, at random. A restart begins with its most promising moves, and
            goes on if they lead within a tenth of the best objective; when eight in a row do
            not, there are no more. None: 20 times on small data (a million entries of distinct
            rows and rules) unless ``swap_optimal`` holds, where it is cheap and lowers the
            objective; else never. Small data without a ridge, and with restarts, begin with two
            descents along falling ridges, to which the order of rows hardly matters; other
            starts then have to promise as much.
        start: a Fit, or its model, of any learner, on the same columns: its rules join the
            candidates, and the search starts from them, too. The result is at least as good as they
            are with the best weights.
        max_iterations: largest number of moves from each start.
        max_nodes: of branch-and-bound ("optimal" only); None for no limit.
        sample_weight: weight of every row, shape (rows,).
        missing: rule for missing values, see `jaxrules.as_table`.
        seed: of the trees that rules come from, the restarts, and liblinear.
        time_limit: seconds; the best model so far is returned when they are over, see
            `jaxrules.Deadline`. With less than about a microsecond per entry of `X` the rules are
            those of a model that is fitted, in half of the time, to a sample of the rows
            (``details["sample"]``); which of them, and weights, are chosen on all rows.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit whose objective is G and the ridge. With ``search="optimal"`` its bound holds for all
        models of these rules, and the status is OPTIMAL when the two agree within 5e-6. Weights of
        rules stay below 23.1 (exponential) and 46.1 (logistic) without a ridge, far below with one.
        ``details``: paper_objective (G alone), loss (without any price), n_candidates (rules in the
        pool), start ("empty", "given", "l1", "restart", "branches", ...: where the result was
        reached from), swap_optimal (True when every single addition, drop and swap was refitted and
        none improves, as it is for small pools and for the squared loss; False when only the most
        promising were), nodes (of branch-and-bound), sample (rows that the rules come from, None
        for all), global_penalty, local_penalty, l2_penalty. With more than two classes see
        `jaxrules.training.one_against_rest`; objective and bound are the means over the classes.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for a bad value of an argument, rules or a start of other columns, or a pool of
            rules that does not fit into memory.
    """
    made = settings("lire", locals() | {"loss": loss_for(y, loss)})
    same, options = options_of_fit(locals(), fit), Options.of(made)
    if asks(monotone) and search != "combo":
        raise ValueError(
            f'monotone needs search="combo": search={search!r} knows no signs of weights'
        )
    gamma = checks.optional(checks.penalty, "global_penalty", global_penalty)
    lam = checks.optional(checks.penalty, "local_penalty", local_penalty)
    run = Run("lire", time_limit, progress)
    data = training_data(X, y, options.loss, sample_weight=sample_weight, missing=missing)
    constraints = Constraints.of(data.table.schema, forbidden, required, monotone)
    constraints.warn_of_constants(data.table)
    begun = given_start(start, RuleEnsemble, data, constraints)
    prices = Prices.of(data, gamma, lam, options.l2_penalty)

    # In little time the rules are those of a model of some rows
    makes_rules = depends_on_labels(rules) and not constraints.required
    some = sample_in_time(data, run, options.seed) if makes_rules else None
    if some is not None:
        same |= {
            "loss": made["loss"],
            "global_penalty": prices.global_penalty,
            "local_penalty": prices.local_penalty,
        }
        same |= {"forbidden": tuple(constraints.forbidden)}
        found_there = fit(
            **rows_of(some), **same, time_limit=run.child(0.5).deadline
        ).model.conjunctions
        rules, run.shortened = found_there if len(found_there) else rules, True

    candidates = Candidates.of(rules, first, constraints, data, run, options, begun)
    follow_noise = options.loss == logistic and gamma is None and lam is None and l2_penalty is None
    if follow_noise:
        found = _fit_outputs(
            candidates, data, run, prices, dataclasses.replace(options, search="combo")
        )
        lower = Prices.for_little_noise(data, float(np.mean(found.details["loss"])))
        if lower is not None or options.search == "optimal":
            found = _fit_outputs(candidates, data, run, lower or prices, options)
    else:
        found = _fit_outputs(candidates, data, run, prices, options)
    return dataclasses.replace(
        found, details={**found.details, "sample": None if some is None else len(some.weights)}
    )


@guarded
def path(
    X: Any,
    y: ArrayLike,
    *,
    global_penalties: Sequence[float],
    local_penalties: Sequence[float] | None = None,
    l2_penalty: float | None = None,
    loss: LossName | None = None,
    rules: RuleSource | None = None,
    forbidden: Iterable[str | int] = (),
    required: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    encoding: Encoding = "signed",
    penalise_intercept: bool = False,
    max_support: int | None = None,
    restarts: int | None = None,
    start: Fit[RuleEnsemble] | RuleEnsemble | None = None,
    max_iterations: int = 5000,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> tuple[Fit[RuleEnsemble], ...]:
    """LIRE at several penalties: rules, aggregation and kernels once, every fit
    started from the one before.

    Because each model is also a start at the next, smaller penalties, the objective never rises
    along the path where both penalties fall.

    Args:
        global_penalties: values of gamma; sorted from large to small.
        local_penalties: one lambda for each of them, in the order given;
            None takes lambda = 2 gamma.

    The other arguments are those of `fit`; the search is "combo".

    Returns:
        One Fit per penalty, largest gamma first; ``details`` also hold global_penalty and
        local_penalty. When the time limit ends the path early, the fits so far are returned
        and the last one says so.

    Raises:
        TypeError, ValueError: as `fit`; also if there are no penalties, or not as
            many of one as of the other.
    """
    made = settings("lire", locals() | {"loss": loss_for(y, loss)})
    del made["global_penalties"], made["local_penalties"]  # every model keeps its own
    options = Options.of(made | {"search": "combo"})
    gammas, lambdas = _pairs(global_penalties, local_penalties)
    run = Run("lire path", time_limit, progress)
    data = training_data(X, y, options.loss, sample_weight=sample_weight, missing=missing)
    constraints = Constraints.of(data.table.schema, forbidden, required, monotone)
    constraints.warn_of_constants(data.table)
    begun = given_start(start, RuleEnsemble, data, constraints)
    candidates = Candidates.of(rules, first, constraints, data, run, options, begun)
    fits: list[Fit[RuleEnsemble]] = []
    with (
        run,
        ThreadPoolExecutor(1) as ahead,
    ):  # L1 solutions in a thread, one penalty ahead of the search
        for k, (gamma, lam) in enumerate(zip(gammas.tolist(), lambdas.tolist(), strict=True)):
            step = run.child()
            if run.deadline.seconds is None and not options.loss.quadratic:
                for coming in gammas[k + 1 if k else 0 : k + 2].tolist():
                    ahead.submit(candidates.solve_ahead, coming, run)
            fits.append(
                _fit_outputs(
                    candidates, data, step, Prices(gamma, lam, options.l2_penalty), options
                )
            )
            if step.limit is not None:
                break
    return tuple(fits)


@guarded
def cross_validate(
    X: Any,
    y: ArrayLike,
    *,
    global_penalties: Sequence[float] | None = None,
    local_penalties: Sequence[float] | None = None,
    l2_penalties: Sequence[float] = (0.25, 2.5, 25.0),
    n_folds: int = 5,
    one_standard_error: bool = True,
    loss: LossName | None = None,
    rules: RuleSource | None = None,
    forbidden: Iterable[str | int] = (),
    required: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    encoding: Encoding = "signed",
    penalise_intercept: bool = False,
    max_support: int | None = None,
    restarts: int | None = None,
    max_iterations: int = 5000,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleEnsemble]:
    """Choose both penalties and the ridge by cross-validation (see
    `jaxrules.cross_validation`); fit on all rows.

    Rules from trees are taken anew from the rows of every fold, and searched anew for
    every setting: a fixed pool or support would choose too small a ridge. Given rules, and
    those of a fitted model, are the same in every fold: where they come from the same
    rows, the risk is told too low.

    Args:
        global_penalties: values of gamma. None: five from 4 to 1/5 times the default of `fit`.
        local_penalties: one lambda for each of them, in the order given;
            None takes lambda = 2 gamma.
        l2_penalties: values of mu, each tried with all pairs of penalties.
        n_folds: how many folds.
        one_standard_error: choose the smallest model within one standard error
            of the best, not the best.
        restarts: as in `fit`; None: none in the folds, and the default of `fit` at the end.
        seed: of the folds too.
        time_limit: seconds for everything; four fifths are for the folds.

    The other arguments are those of `fit`; the search is "combo".

    Returns:
        The Fit on all rows; ``details`` also hold cross_validation, a
        `jaxrules.CrossValidation`: mean risk, standard error and size of every setting. Its
        status is "time_limit" if the folds were cut short.

    Raises:
        TypeError, ValueError: as `path`; for more folds than rows, or a class with a single row.
    """
    seed, one_standard_error = (
        checks.seed(seed),
        checks.flag("one_standard_error", one_standard_error),
    )
    same = options_of_fit(locals(), fit)
    del same["rules"], same["restarts"]
    known = loss_for(y, loss)
    same["loss"] = known.name
    Options.of({**same, "search": "combo", "restarts": restarts, "l2_penalty": None})  # checks them
    ridges = checks.sequence("l2_penalties", l2_penalties, at_least=0)
    run = Run("lire", time_limit, progress)
    data = training_data(X, y, known, sample_weight=sample_weight, missing=missing)
    gammas, lambdas = _pairs(
        _GRID * default_price(data) if global_penalties is None else global_penalties,
        local_penalties,
    )
    grid = [
        {"global_penalty": gamma, "local_penalty": lam, "l2_penalty": ridge}
        for ridge in ridges.tolist()
        for gamma, lam in zip(gammas.tolist(), lambdas.tolist(), strict=True)
    ]

    constraints = Constraints.of(data.table.schema, forbidden, required, monotone)
    constraints.warn_of_constants(data.table)

    def walk(k: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
        pool = rule_pool(rules, inside, seed, run, constraints=constraints)
        for i, ridge in enumerate(ridges.tolist()):
            if run.stopped():
                return
            fits = path(
                **rows_of(inside), **same, rules=pool, global_penalties=gammas.tolist(),
                local_penalties=lambdas.tolist(), l2_penalty=ridge, restarts=restarts or 0,
                time_limit=run.child(1 / (len(ridges) - i)).deadline,
            )  # fmt: skip
            yield from (fit.model for fit in fits if not unfinished(fit))
            if len(fits) < len(gammas) or unfinished(fits[-1]):
                return

    part = run.child(SHARE, "lire cross-validation")
    found = cross_validated(
        data, grid, walk, folds(data, n_folds, seed), part,
        one_standard_error=one_standard_error, otherwise=len(gammas) // 2,
    )  # fmt: skip
    everything = {
        **same,
        **found.setting,
        "rules": rules,
        "restarts": restarts,
        "sample_weight": sample_weight,
    }
    return last_fit(
        found, run, lambda left: fit(X, y, **everything, time_limit=left, progress=progress)
    )


def _pairs(global_penalties: Any, local_penalties: Any) -> tuple[Floats, Floats]:
    """gammas and lambdas, from the largest gamma to the smallest."""
    gammas = checks.sequence("global_penalties", global_penalties, at_least=0)
    lambdas = 2 * gammas
    if local_penalties is not None:
        lambdas = checks.sequence("local_penalties", local_penalties, at_least=0)
    if len(gammas) != len(lambdas):
        raise ValueError(
            f"local_penalties has {len(lambdas)} values for {len(gammas)} global_penalties"
        )
    order = np.lexsort((-lambdas, -gammas))
    return gammas[order], lambdas[order]


# One model


def _fit_outputs(
    candidates: Candidates, data: TrainingData, run: Run, prices: Prices, options: Options
) -> Fit[RuleEnsemble]:
    return one_against_rest(
        data, run, partial(_fit_output, candidates=candidates, prices=prices, options=options)
    )


def _fit_output(
    data: TrainingData, run: Run, *, candidates: Candidates, prices: Prices, options: Options
) -> Fit[RuleEnsemble]:
    """The best model found for one output: local search, a proof where it
    was asked for, the model.
    """
    output = candidates.outputs[data.output]
    problem, watch = output.problem, Watch(run, output.problem)
    search = Search(problem, *prices, options.max_support, run.stopped, watch)
    status, tree = Status.CONVERGED, None
    with run:
        if minimise(output, search, watch, options):
            status = Status.MAX_ITERATIONS
        if options.search == "optimal" and watch.best is not None:
            run.phase, watch.start, search.moves = "bound", "branches", options.max_iterations
            tree = BranchAndBound(search, watch.best, watch.proved)
            tree.run(options.max_nodes)
    best = output.previous = (
        watch.best if watch.best is not None else search.complete(search.start_empty())
    )
    if tree is not None:
        status = Status.OPTIMAL if tree.closed else Status.MAX_ITERATIONS

    solution = _solution(best, search).in_zero_one(options.encoding)
    ridge = (
        prices.l2_penalty
        / (2 * float(data.weights.sum()))
        * float(solution.weights @ solution.weights)
    )
    return run.finish(
        solution.model(
            candidates.pool, data, {**options.made, **prices._asdict()}, candidates.n_first
        ),
        best.objective,
        "min",
        status,
        None if tree is None else min(tree.bound, best.objective),
        start=watch.best_start,
        swap_optimal=watch.certified,
        nodes=0 if tree is None else tree.nodes,
        n_candidates=len(candidates.pool.rules),
        **prices._asdict(),
        loss=solution.mean_loss(candidates.pool, data),
        paper_objective=float(best.objective) - ridge,
    )


def _solution(best: Incumbent, search: Search) -> Solution:
    """The columns that count as rules of the pool, the others as intercept."""
    problem = search.problem
    rule = problem.origin[best.columns] >= 0
    intercept = float(best.weights[~rule].sum()) + problem.shift
    rule &= search.needed(best.columns, best.weights)
    return Solution(problem.origin[best.columns[rule]], best.weights[rule], intercept)
