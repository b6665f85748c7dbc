"""LIRE: locally interpretable rule ensembles (Kanamori, ECML PKDD 2023).

From candidate rules r_m choose few, such that few of them hold for any one row (Problem 2):

    minimise  G(a) + mu / (2 n) sum_m a_m^2,                         f(x) = a_0 + sum_m a_m r_m(x)
    G(a) = L(a) + gamma |supp(a)| + lambda Omega_L(a),     Omega_L(a) = mean_n |lsupp(a | x_n)| / |supp(a)|

where lsupp(a | x) are the rules of the support that hold for x. Summed the other way round, Omega_L is
the mean coverage p_m = mean_n r_m(x_n) over the support (0 when it is empty): G depends on the data only
through the mean loss L and the coverages. L is the logistic loss, or the exponential loss of the paper,
or the squared loss for regression. Here the intercept a_0 is free: not penalised, not in the support. The ridge mu is
ours: without it rules fit noise, and their weights on separable data run to the cap, and say nothing. The paper's own
problem is ``fit(X, y, **PAPER)``.

The search (`_minimise`) descends by local moves (`jaxrules.solvers.support.search`) from several starts. What a move
costs is Lemma 1, `penalty_increase`; the weight of a rule that enters alone is Theorem 1, `best_weight`: the
kernels call these functions. search="optimal" goes on by branch-and-bound until the result is proved
(`jaxrules.solvers.support.bound`); search="published" is the authors' program (`jaxrules.ensembles.lire_published`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.conditions import Conjunctions
from jaxrules.constraints import Constraints, asks
from jaxrules.cross_validation import SHARE, cross_validated, folds, last_fit, options_of_fit, rows_of, unfinished
from jaxrules.ensembles.extraction import RulePool, RuleSource, depends_on_labels, rule_pool
from jaxrules.losses import Loss, logistic, loss_by_name, mean_loss
from jaxrules.models import RuleEnsemble, decision_function
from jaxrules.results import Deadline, Fit, ProgressOption, Run, Status, guarded
from jaxrules.rows import Activations, check_memory
from jaxrules.solvers.support.bound import BranchAndBound
from jaxrules.solvers.support.kernels import ONES, Encoding
from jaxrules.solvers.support.objective import best_weight as best_weight
from jaxrules.solvers.support.objective import penalty
from jaxrules.solvers.support.objective import penalty_increase as penalty_increase
from jaxrules.solvers.support.problem import SMALL, Problem, make_problem
from jaxrules.solvers.support.search import Incumbent, Search
from jaxrules.solvers.support.start import L1Start
from jaxrules.table import MissingRule, check_sample_weight, conform, regression_target
from jaxrules.training import TrainingData, loss_for, one_against_rest, sample_in_time, settings, training_data
from jaxrules.warm_start import given_start

Floats = NDArray[np.float64]
LossName = Literal["exponential", "logistic", "squared"]
SearchName = Literal["combo", "optimal", "published"]

_LIBLINEAR = 2e-7
"""Seconds that liblinear takes per entry of the matrix, which cannot be cut in two: with less time left the published
search does without this start."""
_RESTARTS = 20
_PROMISING = 1.1
"""Times the best objective: a descent that has to show promise is given up unless its first moves lead below."""
_IDLE = 8
"""Restarts in a row that are given up: more of them are not worth their time."""
_RIDGE = 1.0
_LITTLE, _SMALL_RIDGE = 0.25, 0.15
"""A model that leaves less than this share of the constant's loss tells of little noise: such a ridge is enough."""
_RIDGES = np.geomspace(1, 1e-3, 7), np.geomspace(1, 1e-3, 13)
"""Ridges that fall to none, in long steps and in short ones: neither ends lower on all problems."""
_PRICE = 0.005
"""The default price of a rule, at least: this share of the mean loss of the best constant."""
_NOISE = 6.0
"""Over the number of rows, the same for few of them: the best of many rules without effect lowers the sum of the losses
by about the logarithm of their number (Foster and George, "The Risk Inflation Criterion", 1994)."""
_GRID = np.geomspace(4, 0.2, 5)
"""The prices that cross-validation tries, times the default."""

PAPER: Mapping[str, Any] = MappingProxyType({"loss": "exponential", "l2_penalty": 0.0, "rules": "forest"})
"""The problem of the paper: ``fit(X, y, **PAPER)``, and ``search="published"`` for its algorithm."""


def _minimise(problem: _Output, search: Search, watch: _Watch, options: _Options) -> bool:
    """Descend from every start; whether the limit on moves ended one of them."""
    exhausted, run, begun, idle = False, watch.run, None, 0
    if problem.previous is not None:
        watch.start = "previous"
        watch(search.complete(search.start_from(problem.previous.columns, problem.previous.weights)))
    if problem.given is not None:
        begun, watch.start = search.complete(search.start_from(*problem.given)), "given"
        if search.fits(begun):
            watch(begun)
    if run.deadline.seconds is not None and not run.stopped():  # something at once: L1 solutions need no kernel
        watch.start = "l1"
        for columns, weights in problem.l1_start.starts(search.gamma, run):
            watch(search.thin_out(search.start_from(columns, weights)))
    for start, incumbent, has_to_promise in _starts(problem, search, watch, options, begun):
        watch.start, watch.run.phase = start, "restarts" if start == "restart" else "search"
        search.moves = options.max_iterations
        promising = _PROMISING * watch.best.objective if has_to_promise and watch.best is not None else np.inf
        reached = search.descend(incumbent, promising)
        exhausted |= search.moves <= 0
        if reached is watch.best:
            watch.certified = search.certified
        idle = idle + 1 if start == "restart" and reached.objective >= promising else 0
        if watch.run.stopped() or idle == _IDLE:
            break
    return exhausted


def _starts(
    problem: _Output, search: Search, watch: _Watch, options: _Options, begun: Incumbent | None
) -> Iterator[tuple[str, Incumbent, bool]]:
    """The previous model of a path, what falling ridges lead to, the empty model, the given one, the L1 solution, what
    signed rules found, the best one perturbed, and whether a descent from it has to show promise; each is made when the
    descent before it is over. On large data the previous model stands for the empty one."""
    small, restarts = search.problem.size <= SMALL, options.restarts
    ridges = small and not search.l2_penalty and problem.signed is None and restarts != 0
    if problem.previous is not None:
        yield "previous", search.start_from(problem.previous.columns, problem.previous.weights), False
    if ridges:
        yield from (("ridge", start, False) for start in _falling(search))
    if problem.previous is None or small:
        yield "empty", search.start_empty(), ridges
    if begun is not None:
        yield "given", begun, False
    watch.run.phase = "start"
    for columns, weights in problem.l1_start.starts(search.gamma, watch.run):
        yield "l1", search.start_from(columns, weights), ridges
    if problem.signed is not None:
        inner = _Watch(watch.run.child(), problem.signed.problem)
        signed = dataclasses.replace(search, problem=inner.problem, observe=inner)
        _minimise(problem.signed, signed, inner, options)
        if inner.best is not None:  # signed weights are half as large
            yield "signed", search.start_from(inner.best.columns, 2 * inner.best.weights), False
    rng = np.random.default_rng(options.seed)
    if restarts is None:
        restarts = _RESTARTS if small and not watch.certified else 0
    for restart in range(restarts):
        if watch.best is None or not (watch.best.columns != ONES).any():
            return
        yield "restart", search.perturb(watch.best, rng, exchange=restart % 2 == 0), True


def _falling(search: Search) -> Iterator[Incumbent]:
    """What descents lead to whose ridge falls: with a ridge there are fewer local optima."""
    start = begun = search.start_empty()
    for ridges in _RIDGES:
        best = begun
        for ridge in ridges if begun is start else ridges[1:]:  # the first is the same
            with_ridge = dataclasses.replace(search, l2_penalty=ridge, observe=lambda incumbent: None)
            best = with_ridge.descend(with_ridge.start_from(best.columns, best.weights))
            begun = best if begun is start else begun
        yield search.start_from(best.columns, best.weights)


class _Output:
    """One output's problem, and what one pair of penalties leaves for the next."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.l1_start = problem, L1Start(problem, seed)
        self.previous: Incumbent | None = None
        self.given: tuple[NDArray[np.int64], Floats] | None = None
        self.signed: _Output | None = None
        """For binary rules on small data: the same columns with signs, whose search ends lower."""


class _Watch:
    """Keeps the best incumbent, so that a deadline or Ctrl-C loses nothing, and tells the run."""

    def __init__(self, run: Run, problem: Problem) -> None:
        self.run, self.problem = run, problem
        self.best: Incumbent | None = None
        self.bound: float | None = None
        self.start = self.best_start = "empty"
        self.certified = False

    def __call__(self, incumbent: Incumbent) -> None:
        if self.best is None or incumbent.objective < self.best.objective:
            self.best, self.best_start = incumbent, self.start
        self.run.step(self.best.objective, int(self.problem.counted[self.best.columns].sum()), bound=self.bound)

    def proved(self, bound: float) -> None:
        """Tell of a bound that closes a hundredth of the gap."""
        assert self.best is not None  # no proof begins without
        if self.bound is None or self.best.objective - bound < 0.99 * (self.best.objective - self.bound):
            self.bound = bound
            self(self.best)


# Fitting


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
        y: classes, or numbers for the squared loss, shape (rows,). More than two classes are fitted one against the
            rest: an ensemble of an output per class, from one pool of rules.
        global_penalty: gamma, the price of a rule, at least 0. None: half a percent of the mean loss of the best
            constant, so that a rule has to explain as much; below 1200 rows 6/n of it, because the best of some hundred
            rules explains as much by chance (n is the effective number of rows, (sum w)^2 / sum w^2). With gamma = 0
            rules are free: every rule that lowers the loss, or covers less than the average rule of the support, joins
            it, and the fit takes as long as `max_support`, `max_iterations` and `time_limit` let it.
        local_penalty: lambda, the price of mean coverage, at least 0. None: 2 gamma, as in the paper's experiments.
            With lambda = 0 it is plain L0-penalised selection.
        l2_penalty: mu, the ridge on the weights of the rules, against the sum of the losses as in `jaxrules.boosting`,
            at least 0: larger weights are drawn to 0 by more, those of rules that cover few rows most of all. 0 is
            the paper's problem. None: 1, or 0 for ``search="published"``. Where all penalties are None, the loss is
            logistic and a model at these leaves less than a quarter of the constant's loss, there is little noise:
            the search goes on from it with a ridge of .15 and a price of half a percent.
        loss: None for "logistic" where y holds classes (see `jaxrules.table.holds_classes`), or "exponential" for
            ``search="published"``, else "squared"; or "logistic", "exponential" (the paper's; p(y = 1) = sigmoid(2 f)),
            or "squared" for regression: the penalties are then in units of the squared target.
        rules: where candidate rules come from: "boosted_trees" (None), "forest" or "both", see
            `jaxrules.default_forest`; rules, e.g. of `jaxrules.extract_rules`, with ``activations=True`` checked on `X`
            already; or a tree ensemble that it reads, which is fitted to the data if it is not yet. Of rules that hold
            on the same rows, or on the opposite ones, one is a candidate.
        forbidden: columns, by name or position, that no rule uses.
        required: columns that some rule uses: where the search would do without, the best rule for it, exchanged for
            others of the column as long as that improves. It pays as others do, even with a weight of 0. Where no rule
            of trees that are grown here speaks of the column, its own conditions at nine quantiles are candidates. Of
            several classes each uses them that may. Not for "published".
        monotone: 1 or -1 for some numeric columns: whether a score may only rise, or only fall, with the column; see
            `jaxrules.constraints`. Weights then have signs; rules between two values of the column are no candidates.
            Not for ``search="optimal"`` and "published".
        first: an expert's rules, which the model begins with and keeps, at the price of any other: their weights are
            fitted. One whose weight is 0 has no price: one that holds on the same rows as another of them, or on the
            opposite ones, or on all or none, or that `monotone` leaves no sign that helps. Not for "published".
        encoding: how a rule enters while the others stay fixed: "signed" (-1 / +1, the authors' program) or
            "binary" (0 / 1, the letter of Theorem 1). With a free intercept both have the same models and
            the same objective, and only the path of the search differs.
        penalise_intercept: count the intercept as a rule that covers every row while it is not 0; implied
            by ``search="published"``.
        search: "combo": closed-form moves and full-refit moves in turn, from the empty model, from the
            L1 solution and after `restarts`, the best result; "optimal": the same, and then branch-and-bound, which
            proves a bound and improves the model where it can. Most pools of 40 rules close in a minute; larger ones
            leave a gap: give them a `time_limit` or `max_nodes`, otherwise they go on for hours. Or "published": the
            authors' algorithm.
        max_support: largest number of rules (not for "published"); None for no limit.
        restarts: how often to search again from the best model with two to five of its rules dropped, or exchanged, at
            random (not for "published"). A restart begins with its most promising moves, and goes on if they lead
            within a tenth of the best objective; when eight in a row do not, there are no more. None: 20 times on small
            data (a million entries of distinct rows and rules) unless ``swap_optimal`` holds, where it is cheap and
            lowers the objective; else never. Small data without a ridge, and with restarts, begin with two descents
            along falling ridges, to which the order of rows hardly matters; other starts then have to promise as much.
        start: a Fit, or its model, of any learner, on the same columns: its rules join the candidates, and the search
            starts from them, too. The result is at least as good as they are with the best weights.
        max_iterations: largest number of moves from each start, or the paper's I ("published").
        max_nodes: of branch-and-bound ("optimal" only); None for no limit.
        sample_weight: weight of every row, shape (rows,).
        missing: rule for missing values, see `jaxrules.as_table`.
        seed: of the trees that rules come from, the restarts, and liblinear.
        time_limit: seconds; the best model so far is returned when they are over, see `jaxrules.Deadline`. With less
            than about a microsecond per entry of `X` the rules are those of a model that is fitted, in half of the
            time, to a sample of the rows (``details["sample"]``); which of them, and weights, are chosen on all rows.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit whose objective is G and the ridge. With ``search="optimal"`` its bound holds for all models of these
        rules, and the status is OPTIMAL when the two agree within 5e-6. Weights of rules stay below 23.1 (exponential)
        and 46.1 (logistic) without a ridge, far below with one. ``details``: paper_objective (G alone), loss (without
        any price), n_candidates (rules in the pool), start ("empty", "given", "l1", "restart", "branches", ...: where
        the result was reached from), swap_optimal (True when every single addition, drop and swap was refitted and none
        improves, as it is for small pools and for the squared loss; False when only the most promising were), nodes (of
        branch-and-bound), sample (rows that the rules come from, None for all), global_penalty, local_penalty,
        l2_penalty. With more than two classes see `jaxrules.training.one_against_rest`; objective and bound are the
        means over the classes.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for a bad value of an argument, rules or a start of other columns, or a pool of rules that does not
            fit into memory.
    """
    made = settings(
        "lire", locals() | {"loss": loss_for(y, loss, "exponential" if search == "published" else "logistic")}
    )
    same, options = options_of_fit(locals(), fit), _Options.of(made)
    if asks(monotone) and search != "combo":
        raise ValueError(f'monotone needs search="combo": search={search!r} knows no signs of weights')
    if first is not None and search == "published":
        raise ValueError('first needs search="combo" or "optimal": the published search may drop any rule')
    gamma = checks.optional(checks.penalty, "global_penalty", global_penalty)
    lam = checks.optional(checks.penalty, "local_penalty", local_penalty)
    run = Run("lire", time_limit, progress)
    data = training_data(X, y, options.loss, sample_weight=sample_weight, missing=missing)
    settles = options.loss == logistic and gamma is None and lam is None and l2_penalty is None
    gamma = _default_price(data) if gamma is None else gamma
    lam = 2 * gamma if lam is None else lam
    constraints = Constraints.of(data.table.schema, forbidden, required, monotone)
    constraints.warn_of_constants(data.table)
    if constraints.required and search == "published":
        raise ValueError('required needs search="combo" or "optimal": the published search may drop any rule')
    begun = given_start(start, RuleEnsemble, data, constraints)
    makes_rules = depends_on_labels(rules) and not constraints.required
    some = sample_in_time(data, run, options.seed) if makes_rules else None
    if some is not None:
        same |= {"loss": made["loss"], "global_penalty": gamma, "local_penalty": lam}
        same |= {"forbidden": tuple(constraints.forbidden)}
        found_there = fit(**rows_of(some), **same, time_limit=run.child(0.5).deadline).model.conjunctions
        rules, run.shortened = found_there if len(found_there) else rules, True
    candidates = _Candidates(rules, first, constraints, data, run, options, begun)
    found = candidates.fit_all(data, run, gamma, lam, settles)
    return dataclasses.replace(found, details={**found.details, "sample": None if some is None else len(some.weights)})


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
    """LIRE at several penalties: rules, aggregation and kernels once, every fit started from the one before.

    Because each model is also a start at the next, smaller penalties, the objective never rises along the path where
    both penalties fall.

    Args:
        global_penalties: values of gamma; sorted from large to small.
        local_penalties: one lambda for each of them, in the order given; None takes lambda = 2 gamma.

    The other arguments are those of `fit`; the search is "combo".

    Returns:
        One Fit per penalty, largest gamma first; ``details`` also hold global_penalty and local_penalty.
        When the time limit ends the path early, the fits so far are returned and the last one says so.

    Raises:
        TypeError, ValueError: as `fit`; also if there are no penalties, or not as many of one as of the other.
    """
    made = settings("lire", locals() | {"loss": loss_for(y, loss)})
    del made["global_penalties"], made["local_penalties"]  # every model keeps its own
    options = _Options.of(made | {"search": "combo"})
    gammas, lambdas = _pairs(global_penalties, local_penalties)
    run = Run("lire path", time_limit, progress)
    data = training_data(X, y, options.loss, sample_weight=sample_weight, missing=missing)
    constraints = Constraints.of(data.table.schema, forbidden, required, monotone)
    constraints.warn_of_constants(data.table)
    begun = given_start(start, RuleEnsemble, data, constraints)
    candidates = _Candidates(rules, first, constraints, data, run, options, begun)
    fits: list[Fit[RuleEnsemble]] = []
    with run, ThreadPoolExecutor(1) as ahead:  # L1 solutions in a thread, one penalty ahead of the search
        for k, (gamma, lam) in enumerate(zip(gammas, lambdas, strict=True)):
            step = run.child()
            if run.deadline.seconds is None and not options.loss.quadratic:
                for coming in gammas[k + 1 if k else 0 : k + 2].tolist():
                    ahead.submit(candidates.solve_ahead, coming, run)
            fits.append(one_against_rest(data, step, partial(candidates.fit, gamma=gamma, lam=lam)))
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
    """Choose both penalties and the ridge by cross-validation (see `jaxrules.cross_validation`); fit on all rows.

    Rules from trees are taken anew from the rows of every fold, and searched anew for every setting: a fixed pool or
    support would choose too small a ridge. Given rules, and those of a fitted model, are the same in every fold: where
    they come from the same rows, the risk is told too low.

    Args:
        global_penalties: values of gamma. None: five from 4 to 1/5 times the default of `fit`.
        local_penalties: one lambda for each of them, in the order given; None takes lambda = 2 gamma.
        l2_penalties: values of mu, each tried with all pairs of penalties.
        n_folds: how many folds.
        one_standard_error: choose the smallest model within one standard error of the best, not the best.
        restarts: as in `fit`; None: none in the folds, and the default of `fit` at the end.
        seed: of the folds too.
        time_limit: seconds for everything; four fifths are for the folds.

    The other arguments are those of `fit`; the search is "combo".

    Returns:
        The Fit on all rows; ``details`` also hold cross_validation, a `jaxrules.CrossValidation`: mean risk, standard
        error and size of every setting. Its status is "time_limit" if the folds were cut short.

    Raises:
        TypeError, ValueError: as `path`; for more folds than rows, or a class with a single row.
    """
    seed, one_standard_error = checks.seed(seed), checks.flag("one_standard_error", one_standard_error)
    same = options_of_fit(locals(), fit)
    del same["rules"], same["restarts"]
    known = loss_for(y, loss)
    same["loss"] = known.name
    _Options.of({**same, "search": "combo", "restarts": restarts, "l2_penalty": None})  # checks them
    ridges = checks.sequence("l2_penalties", l2_penalties, at_least=0)
    run = Run("lire", time_limit, progress)
    data = training_data(X, y, known, sample_weight=sample_weight, missing=missing)
    gammas, lambdas = _pairs(
        _GRID * _default_price(data) if global_penalties is None else global_penalties, local_penalties
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
    everything = {**same, **found.setting, "rules": rules, "restarts": restarts, "sample_weight": sample_weight}
    return last_fit(found, run, lambda left: fit(X, y, **everything, time_limit=left, progress=progress))


def _default_price(data: TrainingData) -> float:
    shares = data.weights / data.weights.sum()
    return float(max(_PRICE, _NOISE * (shares @ shares)) * data.constant_loss)


def _pairs(global_penalties: Any, local_penalties: Any) -> tuple[Floats, Floats]:
    """gammas and lambdas, from the largest gamma to the smallest."""
    gammas = checks.sequence("global_penalties", global_penalties, at_least=0)
    lambdas = 2 * gammas
    if local_penalties is not None:
        lambdas = checks.sequence("local_penalties", local_penalties, at_least=0)
    if len(gammas) != len(lambdas):
        raise ValueError(f"local_penalties has {len(lambdas)} values for {len(gammas)} global_penalties")
    order = np.lexsort((-lambdas, -gammas))
    return gammas[order], lambdas[order]


@dataclass(frozen=True)
class _Options:
    """The choices that do not depend on the data, checked."""

    loss: Loss
    l2_penalty: float
    encoding: Encoding
    penalise_intercept: bool
    search: SearchName
    max_support: int | None
    restarts: int | None
    max_iterations: int
    max_nodes: int | None
    seed: int
    made: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, made: dict[str, Any]) -> _Options:
        """From the settings of a fit, which the model keeps."""
        ridge = checks.optional(checks.penalty, "l2_penalty", made["l2_penalty"])
        published = made["search"] == "published"
        if ridge is None:
            ridge = 0.0 if published else _RIDGE
        penalise_intercept = checks.flag("penalise_intercept", made["penalise_intercept"])
        options = cls(
            loss_by_name(checks.choice("loss", made["loss"], get_args(LossName))),
            ridge,
            checks.choice("encoding", made["encoding"], get_args(Encoding)),
            penalise_intercept,
            checks.choice("search", made["search"], get_args(SearchName)),
            checks.optional(checks.integer, "max_support", made["max_support"], at_least=1),
            checks.optional(checks.integer, "restarts", made["restarts"], at_least=0),
            checks.integer("max_iterations", made["max_iterations"], at_least=1),
            checks.optional(checks.integer, "max_nodes", made.get("max_nodes"), at_least=1),
            checks.seed(made["seed"]),
            tuple((made | {"penalise_intercept": penalise_intercept or published, "l2_penalty": ridge}).items()),
        )
        if made["search"] == "optimal":
            if options.penalise_intercept:
                raise ValueError(
                    'penalise_intercept needs search="combo": what search="optimal" proves is for a free one'
                )
            if options.loss.quadratic and not options.l2_penalty:
                raise ValueError(
                    'l2_penalty must be positive for search="optimal" and the squared loss: without a '
                    "ridge nothing bounds the weights"
                )
        elif options.max_nodes is not None:
            raise ValueError('max_nodes needs search="optimal"')
        if published:
            if options.loss.name != "exponential":
                raise ValueError(f'search="published" is for loss="exponential"; use "combo" for {made["loss"]!r}')
            if options.max_support is not None:
                raise ValueError('max_support needs search="combo": the published search knows no limit')
            if made.get("start") is not None:
                raise ValueError('start needs search="combo": the published search has its own')
            if options.l2_penalty:
                raise ValueError('l2_penalty needs search="combo": the published search knows no ridge')
            if options.restarts is not None:
                raise ValueError('restarts needs search="combo": the published search has one start')
        return options


class _Candidates:
    """The pool of rules on the training rows, an expert's first, which all outputs and penalties share."""

    def __init__(
        self, rules: RuleSource | None, first: Conjunctions | None, constraints: Constraints, data: TrainingData,
        run: Run, options: _Options, start: RuleEnsemble | None = None,
    ) -> None:  # fmt: skip
        experts = constraints.first(data.table.schema, first, len(data.outputs)).with_schema(data.schema)
        self.n_first = len(experts)
        if options.max_support is not None and self.n_first > options.max_support:
            raise ValueError(f"first has {self.n_first} rules, but max_support is {options.max_support}")
        pool = rule_pool(rules, data, options.seed, run, self.n_first > 0, constraints)
        if self.n_first:
            pool = RulePool(experts, Activations.of(experts, data.table)).with_rules(pool.rules, data.table)
        n_rules = len(pool.rules)
        if start is not None:
            pool = pool.with_rules(start.conjunctions.with_schema(data.schema), data.table)
        self.pool, self.options = pool, options
        using = _required(constraints, pool.rules, self.n_first, options.max_support)
        self.outputs: list[_Output] = []
        if options.search != "published":
            kinds, signs, n_outputs = None, None, len(data.outputs)
            if constraints.monotone:
                kinds = constraints.allows(pool.rules, 2)
                signs = [constraints.signs(pool.rules, k, n_outputs) for k in range(n_outputs)]
            make = partial(
                make_problem, pool.activations, data.outputs[0], data.weights, options.loss, signs=kinds,
                n_fixed=self.n_first, required=using,
            )  # fmt: skip

            def outputs(problem: Problem) -> list[_Output]:
                problems = [problem.with_target(target) for target in data.outputs]
                if signs is not None:
                    problems = [one.within(kept) for one, kept in zip(problems, signs, strict=True)]
                return [_Output(one, options.seed) for one in problems]

            problem = make(options.encoding, options.penalise_intercept)
            if not problem.required.any(axis=1).all():
                raise ValueError("required names a column of which every rule holds on all rows, or on none")
            self.outputs = outputs(problem)
            one_problem = not (options.penalise_intercept or options.loss.quadratic)
            if options.encoding == "binary" and one_problem and problem.size <= SMALL:
                for output, signed in zip(self.outputs, outputs(make("signed")), strict=True):
                    output.signed = signed
        if start is not None:
            for output, weights in zip(self.outputs, np.asarray(start.weights).T, strict=True):
                used = np.flatnonzero(weights)
                output.given = problem.columns_of(pool.activations.bits[n_rules + used], weights[used])

    def solve_ahead(self, gamma: float, run: Run) -> None:
        """The L1 solutions that a search at this penalty starts from."""
        for output in self.outputs:
            output.l1_start.starts(gamma, run)

    def fit_all(self, data: TrainingData, run: Run, gamma: float, lam: float, settles: bool) -> Fit[RuleEnsemble]:
        """The best model found; where its loss `settles` the penalties, it may be that of those for little noise."""

        def best(options: _Options) -> Fit[RuleEnsemble]:
            self.options = options
            return one_against_rest(data, run, partial(self.fit, gamma=gamma, lam=lam))

        asked = self.options
        if settles:
            found = best(dataclasses.replace(asked, search="combo"))
            if np.mean(found.details["loss"]) < _LITTLE * data.constant_loss:
                asked, gamma = dataclasses.replace(asked, l2_penalty=_SMALL_RIDGE), _PRICE * data.constant_loss
                lam = 2 * gamma
            elif asked.search == "combo":
                return found
        return best(asked)

    def fit(self, data: TrainingData, run: Run, *, gamma: float, lam: float) -> Fit[RuleEnsemble]:
        """The best model found for one output."""
        gamma, lam, ridge, total = float(gamma), float(lam), self.options.l2_penalty, float(data.weights.sum())
        prices = {"global_penalty": gamma, "local_penalty": lam, "l2_penalty": ridge}
        figures = {"n_candidates": len(self.pool.rules), **prices}
        fit = self._published if self.options.search == "published" else self._combo
        rules, weights, intercept, objective, status, bound, found = fit(data, gamma, lam, run)
        if self.options.encoding == "signed":  # in terms of 0/1 rules
            intercept, weights = intercept - float(weights.sum()), 2 * weights
        squares = float(weights @ weights)
        scores = (intercept + weights @ self.pool.activations.holds(rules))[self.pool.activations.pattern]
        figures["loss"] = mean_loss(data.loss, data.target, scores, data.weights)
        chosen = np.union1d(np.arange(self.n_first), rules)
        every = np.zeros(len(self.pool.rules))
        every[rules] = weights
        model = RuleEnsemble(
            self.pool.rules.take(chosen).with_schema(data.schema),
            every[chosen, None],
            np.array([intercept]),
            None,
            data.loss.link,
            tuple((dict(self.options.made) | prices).items()),
            data.loss.name,
        )
        figures["paper_objective"] = float(objective) - ridge / (2 * total) * squares
        return run.finish(model, objective, "min", status, bound, **found, **figures)

    def _combo(self, data: TrainingData, gamma: float, lam: float, run: Run) -> _Found:
        output = self.outputs[data.output]
        problem, watch = output.problem, _Watch(run, output.problem)
        options = self.options
        search = Search(problem, gamma, lam, options.l2_penalty, options.max_support, run.stopped, watch)
        exhausted, tree = False, None
        with run:
            exhausted = _minimise(output, search, watch, options)
            if options.search == "optimal" and watch.best is not None:
                run.phase, watch.start, search.moves = "bound", "branches", options.max_iterations
                tree = BranchAndBound(search, watch.best, watch.proved)
                tree.run(options.max_nodes)
        best = output.previous = watch.best if watch.best is not None else search.complete(search.start_empty())
        rule = problem.origin[best.columns] >= 0
        intercept = float(best.weights[~rule].sum()) + problem.shift
        status = Status.MAX_ITERATIONS if exhausted else Status.CONVERGED
        bound = None if tree is None else min(tree.bound, best.objective)
        if tree is not None:
            status = Status.OPTIMAL if tree.closed else Status.MAX_ITERATIONS
        nodes = 0 if tree is None else tree.nodes
        found = {"start": watch.best_start, "swap_optimal": watch.certified, "nodes": nodes}
        rule &= search.needed(best.columns, best.weights)
        return problem.origin[best.columns[rule]], best.weights[rule], intercept, best.objective, status, bound, found

    def _published(self, data: TrainingData, gamma: float, lam: float, run: Run) -> _Found:
        """The authors' algorithm until no move improves."""
        from jaxrules.ensembles.lire_published import PublishedSearch, encode, rulefit_start

        activations, options = self.pool.activations, self.options
        # float64: encoded, with signs, and liblinear's two copies
        check_memory(activations.n_rows, activations.n_rules, 33.0)
        weight = data.weights / data.weights.sum()
        satisfied = activations.dense[activations.pattern]
        columns = encode(satisfied, options.encoding)
        coverage = np.concatenate([[1.0], weight @ satisfied])
        short = run.deadline.remaining() < _LIBLINEAR * columns.size
        signs = np.multiply(columns, data.target, out=columns if short else None)
        state = PublishedSearch(signs, weight, coverage, gamma, lam, np.zeros(len(columns)))
        status = Status.MAX_ITERATIONS
        best, best_objective = state.weights.copy(), state.objective()
        with run:
            run.phase = "start"
            if short:
                run.shortened = True
                while not run.stopped() and state.add():
                    pass
            elif not run.stopped():
                start = rulefit_start(columns, data.target, weight, gamma, options.seed)
                state = PublishedSearch(signs, weight, coverage, gamma, lam, start)
            if state.weights.any():
                best, best_objective = state.weights.copy(), state.objective()
                run.step(best_objective, len(state.support))
            run.phase = "search"
            for _ in range(options.max_iterations):
                if run.stopped():
                    break
                changed = state.iterate(run.stopped)
                best, best_objective = state.weights.copy(), state.objective()
                run.step(best_objective, len(state.support))
                if not changed:
                    status = Status.CONVERGED
                    break
            if not run.stopped():
                state.refit()
                best, best_objective = state.weights.copy(), state.objective()
                run.step(best_objective, len(state.support))
        rules = np.flatnonzero(best[1:])
        found = {"start": "l1", "swap_optimal": False, "nodes": 0}
        return rules, best[1:][rules], float(best[0]), best_objective, status, None, found


def _required(
    constraints: Constraints, rules: Conjunctions, n_first: int, max_support: int | None
) -> list[NDArray[np.bool_]]:
    """For each required column that no expert's rule uses, which rules do."""
    constraints.require_spoken(rules, "rule; add one to rules")
    left = [using for using in constraints.using(rules) if not using[:n_first].any()]
    if max_support is not None and len(left) > max_support - n_first:
        raise ValueError(
            f"required names {len(left)} columns more than first uses, but max_support={max_support} leaves "
            f"{max_support - n_first} rules"
        )
    return left


_Found = tuple[NDArray[np.int64], Floats, float, float, Status, float | None, dict[str, Any]]
"""Indices and encoded weights of rules, the intercept, G, the status, a bound, and details."""


# The objective of a model


def objective(
    model: RuleEnsemble,
    X: Any,
    y: ArrayLike,
    *,
    global_penalty: float,
    local_penalty: float,
    l2_penalty: float = 0.0,
    penalise_intercept: bool | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """G of a model, recomputed in float64 from its predictions: mean loss + gamma |supp| + lambda Omega_L, and a ridge.

    Rules of weight 0 are not in the support, an expert's neither. (A fit charges for one that `required` alone keeps.)

    Args:
        model: an ensemble of rules without linear terms; of several outputs, G is the mean over the classes.
        X, y: the data, shape (rows, features) and (rows,).
        global_penalty, local_penalty: gamma and lambda.
        l2_penalty: mu: with that of a fit it is its objective, with 0 the paper's.
        penalise_intercept: count the intercept as a rule of coverage 1 where it is not 0; None does as the
            model was fitted. With signed rules it is a_0 + sum_m a_m / 2 that counts.
        sample_weight: weight of every row; all means are weighted.

    Raises:
        ValueError: if the data do not fit the model, or the model has linear terms.
    """
    if not isinstance(model, RuleEnsemble):
        raise TypeError(f"model must be a RuleEnsemble, got {type(model).__name__}")
    if model.linear is not None:
        raise ValueError("model must have no linear terms: the objective of LIRE knows only rules")
    gamma = checks.penalty("global_penalty", global_penalty)
    lam = checks.penalty("local_penalty", local_penalty)
    ridge = checks.penalty("l2_penalty", l2_penalty)
    checks.concrete("X", X)
    options = dict(model.options)
    penalise_intercept = checks.optional(checks.flag, "penalise_intercept", penalise_intercept)
    if penalise_intercept is None:
        penalise_intercept = bool(options.get("penalise_intercept", False))
    scores = np.asarray(decision_function(model, X), np.float64).reshape(-1, model.n_outputs)
    checks.require(len(scores) > 0, "X has no rows")
    weight = check_sample_weight(sample_weight, len(scores))
    satisfied = model.conjunctions.satisfied(conform(X, model.schema))
    coverage, classes = np.average(satisfied, axis=0, weights=weight), model.schema.classes
    if classes is None:
        target = regression_target(y, len(scores))[:, None]
    else:
        truth = np.asarray(y)
        if truth.shape != scores.shape[:1] or not np.isin(truth, classes).all():
            raise ValueError(f"y must hold one of the classes {classes} for every row of X")
        target = np.where(truth[:, None] == np.asarray(classes[-model.n_outputs :]), 1.0, -1.0)
    total, loss = 0.0, loss_by_name(model.loss or {"identity": "squared"}.get(model.link, model.link))
    for k, weights in enumerate(np.asarray(model.weights).T):
        size, covered = float(np.count_nonzero(weights)), float(coverage[weights != 0].sum())
        if penalise_intercept:
            own = float(model.intercept[k]) + (float(weights.sum()) / 2 if options.get("encoding") == "signed" else 0.0)
            counts = abs(own) > 1e-12 * (1 + np.abs(weights).sum())
            size, covered = size + counts, covered + counts
        total += mean_loss(loss, target[:, k], scores[:, k], weight)
        total += penalty(size, covered, gamma, lam) + ridge / (2 * float(weight.sum())) * float(weights @ weights)
    return total / model.n_outputs
