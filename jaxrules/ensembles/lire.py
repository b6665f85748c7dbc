"""LIRE: locally interpretable rule ensembles (Kanamori, ECML PKDD 2023).

From candidate rules r_m choose few, such that few of them hold for any one row (Problem 2):

    minimise  G(a) = L(a) + gamma |supp(a)| + lambda Omega_L(a),     f(x) = a_0 + sum_m a_m r_m(x)
    Omega_L(a) = mean_n |lsupp(a | x_n)| / |supp(a)|

where lsupp(a | x) are the rules of the support that hold for x. Summed the other way round, Omega_L is
the mean coverage p_m = mean_n r_m(x_n) over the support (0 when it is empty): G depends on the data only
through the mean loss L and the coverages. L is the exponential loss of the paper, or the logistic loss,
or the squared loss for regression.

Here the intercept a_0 is free: not penalised, not in the support. ``penalise_intercept=True`` counts it as
a rule that covers every row, as the authors' program does.

Two searches: "combo" is ours (`jaxrules.solvers.support.search`); "published" is the authors' program
(`jaxrules.ensembles.lire_published`), kept for comparison.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.conditions import Conjunctions
from jaxrules.ensembles.extraction import default_rules
from jaxrules.losses import exponential, logistic, loss_by_name, mean_loss, squared
from jaxrules.metrics import local_supports, support
from jaxrules.models import RuleEnsemble, decision_function
from jaxrules.results import Deadline, Fit, ProgressOption, Run, Status
from jaxrules.rows import Activations, check_memory
from jaxrules.solvers.linear import sparse_glm
from jaxrules.solvers.support.kernels import ONES, Encoding
from jaxrules.solvers.support.objective import best_weight as best_weight
from jaxrules.solvers.support.objective import penalty
from jaxrules.solvers.support.objective import penalty_increase as penalty_increase
from jaxrules.solvers.support.problem import Problem, make_problem
from jaxrules.solvers.support.search import Incumbent, Search
from jaxrules.table import MissingRule, Table, as_table, binary_target, check_sample_weight, regression_target

Floats = NDArray[np.float64]
LossName = Literal["exponential", "logistic", "squared"]

_START_SIZES = (22, 86)
"""Largest numbers of rules of the L1 solution to start from: the largest supports that fit the kernels' shapes."""
_SMALL_PROBLEM = 1_000_000
"""Entries of the matrix of distinct rows up to which both sizes are tried, and restarts are made."""
_RESTARTS = 20
_L1_TOLERANCE = 1e-2
"""The L1 solution is only a start, and need not be exact."""
_SMALLEST_L1_PENALTY = 2e-4


# The mathematics of the paper


def objective(
    model: RuleEnsemble,
    X: Any,
    y: ArrayLike,
    *,
    global_penalty: float,
    local_penalty: float,
    penalise_intercept: bool | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """G of a model, recomputed in float64 from its predictions: mean loss + gamma |supp| + lambda Omega_L.

    Args:
        model: an ensemble of rules without linear terms. Its link says which loss is meant.
        X, y: the data, shape (rows, features) and (rows,).
        global_penalty, local_penalty: gamma and lambda.
        penalise_intercept: count the intercept as a rule of coverage 1 where it is not 0; None does as the
            model was fitted. With signed rules it is a_0 + sum_m a_m / 2 that counts.
        sample_weight: weight of every row; all means are weighted.

    Raises:
        ValueError: if the data do not fit the model, or the model has linear terms or several outputs.
    """
    if not isinstance(model, RuleEnsemble):
        raise TypeError(f"model must be a RuleEnsemble, got {type(model).__name__}")
    if model.linear is not None or model.n_outputs != 1:
        raise ValueError("model must have one output and no linear terms: the objective of LIRE knows only rules")
    _check_penalties(global_penalty, local_penalty)
    scores = np.asarray(decision_function(model, X), np.float64)
    weight = check_sample_weight(sample_weight, len(scores))
    classes = model.schema.classes
    if classes is None:
        loss, target = squared, regression_target(y, len(scores))
    else:
        loss = {"logistic": logistic, "exponential": exponential}[model.link]
        truth = np.asarray(y)
        if truth.shape != scores.shape or not np.isin(truth, classes).all():
            raise ValueError(f"y must hold one of the classes {classes} for every row of X")
        target = np.where(truth == classes[1], 1.0, -1.0)
    size = float(support(model))
    covered = float(np.average(local_supports(model, X), weights=weight))
    options = dict(model.options)
    if options.get("penalise_intercept", False) if penalise_intercept is None else penalise_intercept:
        own, rules = float(model.intercept[0]), np.asarray(model.weights)[:, 0]
        if options.get("encoding") == "signed":
            own += float(rules.sum()) / 2
        counts = abs(own) > 1e-12 * (1 + np.abs(rules).sum())
        size, covered = size + counts, covered + counts
    return mean_loss(loss, target, scores, weight) + penalty(size, covered, global_penalty, local_penalty)


# Fitting


def fit(
    X: Any,
    y: ArrayLike,
    *,
    global_penalty: float,
    local_penalty: float,
    loss: LossName = "exponential",
    rules: Conjunctions | None = None,
    encoding: Encoding = "signed",
    penalise_intercept: bool = False,
    search: Literal["combo", "published"] = "combo",
    max_support: int | None = None,
    restarts: int | None = None,
    max_iterations: int = 5000,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleEnsemble]:
    """Fit a locally interpretable rule ensemble: minimise G over rules and weights by local search.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: two classes, or numbers for the squared loss, shape (rows,).
        global_penalty: gamma, the price of a rule, at least 0. With gamma = 0 rules are free: every rule
            that lowers the loss, or covers less than the average rule of the support, joins it, and the
            fit takes as long as `max_support`, `max_iterations` and `time_limit` let it.
        local_penalty: lambda, the price of mean coverage, at least 0. The paper's experiments use 2 gamma.
            With lambda = 0 it is plain L0-penalised selection.
        loss: "exponential" (the paper's; p(y = 1) = sigmoid(2 f)), "logistic", or "squared" for regression:
            the penalties are then in units of the squared target.
        rules: candidate rules, e.g. from `jaxrules.extract_rules`; None extracts them from a random forest
            of 100 trees of depth at most 3.
        encoding: how a rule enters while the others stay fixed: "signed" (-1 / +1, the authors' program) or
            "binary" (0 / 1, the letter of Theorem 1). With a free intercept both have the same models and
            the same G, and only the path of the search differs.
        penalise_intercept: count the intercept as a rule that covers every row while it is not 0; implied
            by ``search="published"``.
        search: "combo": closed-form moves and full-refit moves in turn, from the empty model, from the
            L1 solution and after `restarts`, the best result; or "published": the authors' algorithm.
        max_support: largest number of rules ("combo" only); None for no limit.
        restarts: how often to search again from the best model with a third of its rules dropped, or half of them
            exchanged, at random ("combo" only). None: 20 times on small data (a million entries of distinct rows
            and rules) unless ``swap_optimal`` holds, where it is cheap and lowers G by up to a fifth; else never.
        max_iterations: largest number of moves from each start ("combo"), or the paper's I ("published").
        sample_weight: weight of every row, shape (rows,).
        missing: rule for missing values, see `jaxrules.as_table`.
        seed: of the default forest, the restarts, and liblinear.
        time_limit: seconds; the best model so far is returned when they are over.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit with G as objective. Weights of rules stay below 23.1 (exponential) and 46.1 (logistic), half of
        that for binary rules, also on separable data. ``details``: n_candidates (rules in the pool), start
        ("empty", "l1", "restart", ...: where the result was reached from), swap_optimal (True when every single
        addition, drop and swap was refitted and none improves G, as it is for small pools and for the
        squared loss; False when only the most promising were).

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for a bad value of an argument, more than two classes, rules of other columns, or a pool
            of rules that does not fit into memory.
    """
    _check_penalties(global_penalty, local_penalty)
    run = Run("lire", time_limit, progress)
    options = _Options(loss, encoding, penalise_intercept, search, max_support, restarts, max_iterations, seed)
    data = _prepare(X, y, rules, options, sample_weight, missing)
    penalties = (float(global_penalty), float(local_penalty))
    if search == "published":
        return _fit_published(data, *penalties, run)
    return _fit_combo(_Searcher(data), *penalties, run)


def path(
    X: Any,
    y: ArrayLike,
    *,
    global_penalties: Sequence[float],
    local_penalties: Sequence[float] | None = None,
    loss: LossName = "exponential",
    rules: Conjunctions | None = None,
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
) -> tuple[Fit[RuleEnsemble], ...]:
    """LIRE at several penalties: rules, aggregation and kernels once, every fit started from the one before.

    Because each model is also a start at the next, smaller penalties, G never rises along the path where both
    penalties fall.

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
    gammas = _penalty_array("global_penalties", global_penalties)
    if local_penalties is None:
        lambdas = 2 * gammas
    else:
        lambdas = _penalty_array("local_penalties", local_penalties)
    if len(gammas) != len(lambdas):
        raise ValueError(f"local_penalties has {len(lambdas)} values for {len(gammas)} global_penalties")
    order = np.lexsort((-lambdas, -gammas))
    run = Run("lire path", time_limit, progress)
    options = _Options(loss, encoding, penalise_intercept, "combo", max_support, restarts, max_iterations, seed)
    searcher = _Searcher(_prepare(X, y, rules, options, sample_weight, missing))
    fits: list[Fit[RuleEnsemble]] = []
    with run:
        for i in order.tolist():
            step = run.child()
            fits.append(_fit_combo(searcher, float(gammas[i]), float(lambdas[i]), step))
            if step.limit is not None:
                break
    return tuple(fits)


@dataclass(frozen=True)
class _Options:
    """The choices that do not depend on the data, checked."""

    loss: LossName
    encoding: Encoding
    penalise_intercept: bool
    search: Literal["combo", "published"]
    max_support: int | None
    restarts: int | None
    max_iterations: int
    seed: int

    def __post_init__(self) -> None:
        for name, known in (
            ("loss", ("exponential", "logistic", "squared")),
            ("encoding", ("signed", "binary")),
            ("search", ("combo", "published")),
        ):
            if getattr(self, name) not in known:
                choices = " or ".join(f'"{choice}"' for choice in known)
                raise ValueError(f"{name} must be {choices}, got {getattr(self, name)!r}")
        for name, least in (("max_support", 1), ("restarts", 0), ("max_iterations", 1)):
            value = getattr(self, name)
            if value is None and name != "max_iterations":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        if self.search == "published":
            if self.loss != "exponential":
                raise ValueError(f'search="published" is for the exponential loss; use "combo" for {self.loss!r}')
            if self.max_support is not None:
                raise ValueError('max_support needs search="combo": the published search knows no limit')
            if self.restarts is not None:
                raise ValueError('restarts needs search="combo": the published search has one start')


def _check_penalties(global_penalty: float, local_penalty: float) -> None:
    for name, value in (("global_penalty", global_penalty), ("local_penalty", local_penalty)):
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            raise TypeError(f"{name} must be a number, got {type(value).__name__}")
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be finite and at least 0, got {value}")


def _penalty_array(name: str, values: Sequence[float]) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} must be a non-empty sequence of numbers, got shape {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"{name} must be finite and at least 0, got {array[~(array >= 0)].tolist() or array.max()}")
    return array


@dataclass(frozen=True, eq=False)
class _Data:
    """What a fit needs, checked. Targets are -1 and +1, or real."""

    table: Table
    rules: Conjunctions
    target: Floats
    weights: Floats
    options: _Options

    def model(
        self, rules: NDArray[np.int64], weights: Floats, intercept: float, gamma: float, lam: float
    ) -> RuleEnsemble:
        """The ensemble of these encoded weights, in terms of 0/1 rules, in the order of the pool."""
        options = self.options
        if options.encoding == "signed":
            intercept, weights = intercept - float(weights.sum()), 2 * weights
        order = np.argsort(rules, kind="stable")
        order = order[weights[order] != 0]
        described = {
            "learner": "lire",
            "global_penalty": gamma,
            "local_penalty": lam,
            "encoding": options.encoding,
            "penalise_intercept": options.penalise_intercept or options.search == "published",
            "search": options.search,
        }
        return RuleEnsemble(
            self.rules.take(rules[order]),
            weights[order, None],
            np.array([intercept]),
            link=loss_by_name(options.loss).link,
            options=tuple(described.items()),
            loss=options.loss,
        )


def _prepare(
    X: Any,
    y: ArrayLike,
    rules: Conjunctions | None,
    options: _Options,
    sample_weight: ArrayLike | None,
    missing: MissingRule,
) -> _Data:
    """Check the data against each other and extract the rules."""
    if rules is not None and not isinstance(rules, Conjunctions):
        raise TypeError(f"rules must be Conjunctions (see jaxrules.extract_rules), got {type(rules).__name__}")
    table = as_table(X, missing=missing)
    classes = None
    if options.loss == "squared":
        target = regression_target(y, table.n_rows)
    else:
        target, classes = binary_target(y, table.n_rows)
    weights = check_sample_weight(sample_weight, table.n_rows)
    if len(np.unique(target[weights > 0])) < 2:
        raise ValueError("y has one value only among the rows of positive sample_weight; nothing can be learned")
    if rules is None:
        classification = options.loss != "squared"
        rules = default_rules(table, target, classification=classification, seed=options.seed, sample_weight=weights)
    if not len(rules):
        raise ValueError("rules is empty; extract rules from deeper or more trees")
    rules = rules.with_schema(table.schema.with_classes(classes))
    return _Data(table, rules, target if classes is None else 2 * target - 1, weights, options)


# search="combo"


class _Searcher:
    """One problem on the device, and what one pair of penalties leaves for the next."""

    def __init__(self, data: _Data) -> None:
        self.data = data
        options, used = data.options, data.weights > 0
        activations = Activations.of(data.rules, data.table if used.all() else data.table[used])
        self.problem = make_problem(
            activations, data.target[used], data.weights[used], loss_by_name(options.loss), options.encoding,
            options.penalise_intercept,
        )  # fmt: skip
        self.previous: Incumbent | None = None
        self._l1: _L1Logistic | _L1Squared | None = None

    def l1_starts(self, gamma: float, run: Run) -> list[tuple[NDArray[np.int64], Floats]]:
        """Columns and encoded weights of RuleFit's solution (Problem 1 at gamma, on signed rules), cut to size.

        On signed rules the L1 norm is half of that on 0/1 rules, which are what the solvers see.
        """
        problem = self.problem
        if not problem.size:  # no rule tells rows apart
            return []
        if self._l1 is None:
            self._l1 = _L1Squared(problem) if problem.loss is squared else _L1Logistic(problem, self.data.options.seed)
        rules = self._l1.solve(max(gamma, _SMALLEST_L1_PENALTY) / 2, run)
        coverage = problem.coverage[1 : 1 + len(rules)]
        influence = np.abs(rules) * np.sqrt(coverage * (1 - coverage))  # how far a rule moves the scores
        ranked = np.argsort(-influence, kind="stable")[: np.count_nonzero(influence)]
        halves = (2 if problem.loss is exponential else 1) * (2 if problem.encoding == "signed" else 1)
        starts = []
        for size in _START_SIZES:
            chosen = np.sort(ranked[:size])
            starts.append((1 + chosen, rules[chosen] / halves))
            if len(ranked) <= size or problem.size > _SMALL_PROBLEM:
                break
        return starts


class _L1Logistic:
    """L1-penalised logistic regression on the patterns by liblinear: no start is sooner at hand."""

    def __init__(self, problem: Problem, seed: int) -> None:
        n_patterns = problem.activations.n_patterns
        target, mass = problem.of_patterns()
        weights = np.concatenate([mass * (1 + target), mass * (1 - target)]) / 2
        used = np.flatnonzero(weights)  # every pattern once for each class that it has
        self.columns = problem.activations.sparse[used % n_patterns]
        self.target, self.weights, self.seed = used < n_patterns, weights[used], seed

    def solve(self, l1_penalty: float, run: Run) -> Floats:
        """Weights of the 0/1 rules: minimise the mean loss + l1_penalty * their L1 norm, roughly."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            l1_ratio=1.0, solver="liblinear", C=1 / l1_penalty, tol=_L1_TOLERANCE, random_state=self.seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(self.columns, self.target, sample_weight=self.weights)
        return np.asarray(model.coef_[0], np.float64)


class _L1Squared:
    """The lasso on the patterns, warm-started along a path."""

    def __init__(self, problem: Problem) -> None:
        self.design = sparse_glm.Design.of(problem.activations.dense)
        self.target, self.weights = problem.of_patterns()
        self.solution: sparse_glm.Solution | None = None

    def solve(self, l1_penalty: float, run: Run) -> Floats:
        """Weights of the 0/1 rules."""
        self.solution = sparse_glm.solve(
            self.design,
            self.target,
            l1_penalty,
            loss="squared",
            sample_weight=self.weights,
            start=self.solution,
            tolerance=_L1_TOLERANCE,
            run=run,
        )
        return self.solution.coefficients


class _Watch:
    """Keeps the best incumbent, so that a deadline or Ctrl-C loses nothing, and tells the run."""

    def __init__(self, run: Run, problem: Problem) -> None:
        self.run = run
        self.problem = problem
        self.start = "empty"
        self.best: Incumbent | None = None
        self.best_start = "empty"
        self.certified = False

    def __call__(self, incumbent: Incumbent) -> None:
        if self.best is None or incumbent.objective < self.best.objective:
            self.best, self.best_start = incumbent, self.start
        self.run.step(self.best.objective, int(self.problem.counted[self.best.columns].sum()))


def _starts(searcher: _Searcher, search: Search, watch: _Watch) -> Iterator[tuple[str, Incumbent]]:
    """Where to descend from; each is made when the descent before it is over."""
    if searcher.previous is None:
        yield "empty", search.start_empty()
    else:
        yield "previous", search.start_from(searcher.previous.columns, searcher.previous.weights)
    for columns, weights in searcher.l1_starts(search.gamma, watch.run):
        yield "l1", search.start_from(columns, weights)
    options, rng = searcher.data.options, np.random.default_rng(searcher.data.options.seed)
    restarts = options.restarts
    if restarts is None:
        restarts = _RESTARTS if search.problem.size <= _SMALL_PROBLEM and not watch.certified else 0
    for restart in range(restarts):
        if watch.best is None or not (watch.best.columns != ONES).any():
            return
        yield "restart", search.perturb(watch.best, rng, exchange=restart % 2 == 0)


def _fit_combo(searcher: _Searcher, gamma: float, lam: float, run: Run) -> Fit[RuleEnsemble]:
    """Descend from the empty model (or the previous one of a path), the L1 solution, and perturbed best models."""
    data, problem = searcher.data, searcher.problem
    options = data.options
    watch = _Watch(run, problem)
    search = Search(problem, gamma, lam, options.max_support, run.stopped, watch)
    exhausted = False
    with run:
        for start, incumbent in _starts(searcher, search, watch):
            watch.start = start
            search.moves = options.max_iterations
            reached = search.descend(incumbent)
            exhausted |= search.moves <= 0
            if reached is watch.best:
                watch.certified = search.certified
            if run.stopped():
                break
    best = watch.best if watch.best is not None else search.start_empty()
    searcher.previous = best
    rule = problem.origin[best.columns] >= 0
    intercept = float(best.weights[~rule].sum()) + problem.shift
    model = data.model(problem.origin[best.columns[rule]], best.weights[rule], intercept, gamma, lam)
    return run.finish(
        model, best.objective, "min", Status.MAX_ITERATIONS if exhausted else Status.CONVERGED,
        n_candidates=len(data.rules), start=watch.best_start, swap_optimal=watch.certified, global_penalty=gamma,
        local_penalty=lam,
    )  # fmt: skip


# search="published"


def _fit_published(data: _Data, gamma: float, lam: float, run: Run) -> Fit[RuleEnsemble]:
    """The authors' algorithm until no move improves."""
    from jaxrules.ensembles.lire_published import PublishedSearch, encode, rulefit_start

    options = data.options
    check_memory(data.table.n_rows, len(data.rules), 33.0)  # float64: encoded, with signs, and liblinear's two copies
    weight = data.weights / data.weights.sum()
    satisfied = data.rules.satisfied(data.table)
    columns = encode(satisfied, options.encoding)
    coverage = np.concatenate([[1.0], weight @ satisfied])
    signs = columns * data.target
    state = PublishedSearch(signs, weight, coverage, gamma, lam, np.zeros(len(columns)))
    status = Status.MAX_ITERATIONS
    best, best_objective = state.weights.copy(), state.objective()
    with run:
        if not run.stopped():
            start = rulefit_start(columns, data.target, weight, gamma, options.seed)
            state = PublishedSearch(signs, weight, coverage, gamma, lam, start)
            best, best_objective = state.weights.copy(), state.objective()
            run.step(best_objective, len(state.support))
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
    rules = np.flatnonzero(best[1:])
    model = data.model(rules, best[1:][rules], float(best[0]), gamma, lam)
    return run.finish(
        model, best_objective, "min", status, n_candidates=len(data.rules), start="l1", swap_optimal=False,
        global_penalty=gamma, local_penalty=lam,
    )  # fmt: skip
