"""Exact rule lists: the best list over all conditions of a pool, with a certificate.

The objective is that of SSRL (Eq. 14): the weight of the correctly classified rows, minus
literal_penalty per literal. A beam search gives a first list; branch-and-bound over prefixes
(`jaxrules.lists.prefixes`), of growing width, improves it and proves it. Whenever the search ends,
the bound says how far from the optimum the list may be.

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
>>> best = fit(X, X[:, 0] & X[:, 1])
>>> print(best.model, best.status, best.objective, best.bound)
IF x0 >= 1 AND x1 >= 1 THEN target = 1 (p = 0.857, 5 of 5 rows)
ELSE target = 0 (p = 0.941, 15 of 15 rows) optimal 18.0 18.0

Express other aims by row weights. Balanced accuracy: equal total weight per class. False positives
that cost four times as much as false negatives: weight four for rows of the negative class. The
penalty is then in these weights too.

>>> y = np.array([0, 0, 1, 1] * 5)
>>> balanced = np.where(y == 1, 1 / (y == 1).sum(), 1 / (y == 0).sum()) * len(y) / 2
>>> careful = np.where(y == 1, 1.0, 4.0)
>>> [fit(X, y, sample_weight=weight).objective for weight in (balanced, careful)]
[19.0, 49.0]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import TableLike
from jaxrules.learning.cross_validation import by_size, fit_of_best_setting, fits_along
from jaxrules.learning.in_time import Stage, with_rules
from jaxrules.learning.options import Folds, learner, option, options
from jaxrules.learning.training import TrainingData, sample_in_time
from jaxrules.lists import ssrl
from jaxrules.lists.exact_problem import ListProblem, PoolOptions, ProblemOptions
from jaxrules.lists.in_time import RatedList, list_in_time, rows_for_lists, run_to_prepare
from jaxrules.lists.near_optimal import Enumeration, NearOptimal
from jaxrules.lists.noise import SMALL_PENALTY, Left, Penalty
from jaxrules.lists.prefixes import LAYERS, Choice, Prefixes
from jaxrules.lists.reading import list_data
from jaxrules.models.rule_models import RuleList
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import Constraints, rules_for
from jaxrules.solvers.layered import LayeredCertificate
from jaxrules.tools import checks, display
from jaxrules.tools.fits import Details, Fit, Status
from jaxrules.tools.runs import Run

_NEEDS = (*ssrl.NEEDS, "jaxrules.lists.prefix_kernels")
"""The modules that take long to import."""
_BEFORE_SSRL = 5
"""Number of these searches before SSRL provides a list."""
_CONDITIONS_SHARE = 0.5
"""Share of the time limit for the pool of conditions; if it is too short,
longer ones are left out.
"""
_BEFORE_PAIRS = 3
"""Number of these searches before rows are paired."""
_SHORT = 8
"""A search that only chooses a setting has this fraction of the evaluations."""
_SSRL_SHARE = 0.3
"""SSRL's share of the remaining time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactListDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        conditions: the number of conditions that the lists are made of.
        groups: the number of groups of rows that they distinguish.
        evaluations: the number of conditions tried after prefixes; 16 that are only compared with
            bounds count as one.
        nodes: the states of the search, or the nodes of the program's tree.
        literal_penalty: lambda.
        max_cut_points: the most quantiles of a numeric column; None for every value, for given
            conditions, and with a `sample`.
        left_out: the number of literals that the pool has no room for: those that tell the classes
            apart least, see `max_cut_points`.
        chosen: why the data chose this penalty; empty if it was given.
        sample: the number of rows that the rules come from; None for all.
    """

    conditions: int
    groups: int
    evaluations: int
    nodes: int
    literal_penalty: float
    max_cut_points: int | None = None
    left_out: int = 0
    chosen: str = ""
    sample: int | None = None

    @property
    def told_of_pool(self) -> str:
        if not self.left_out:
            return super().told_of_pool
        return (
            f"The pool has no room for {display.counted(self.left_out, 'literal')}, which tell the "
            "classes apart least: nothing is proved about lists with them."
        )


@options
class ExactListPathOptions(ProblemOptions):
    """The options of `path`.

    Attributes:
        method: "search", branch-and-bound; "mip", a mixed-integer program (CVXPY and HiGHS), for
            small problems and as a check. "auto" searches.
    """

    method: Literal["auto", "search", "mip"] = option(
        checks.choice, default="auto", known=("auto", "search", "mip")
    )


@options
class ExactListOptions(ExactListPathOptions):
    """The options of `fit`.

    Attributes:
        start: a Fit, or its model, a list of any learner on the same columns and for the same
            classes: the search starts from it, after the rules of `first`, and returns nothing
            worse. All its rules must be in the pool.
    """

    start: Fit[RuleList] | RuleList | None = None


@options
class NearOptions(ProblemOptions):
    """The options of `near_optimal`; they mean what they mean for `fit`.

    Attributes:
        within: the share of the optimum, at least 0, that a list may lose.
        limit: the most lists that are returned, the best. If there are more, all above the
            objective `NearOptimal.floor` are returned, and `at_most` bounds their number.
        max_evaluations: as in `fit`, once for the best list and once for all others.
        time_limit: seconds; half of them are for the pool, and half of the rest for the best list.
            What is found by then is returned, with the status.
    """

    within: float = option(checks.number, default=0.01, at_least=0)
    limit: int = option(checks.integer, default=10_000, at_least=1)
    max_rules: int = option(checks.integer, default=3, at_least=1, at_most=10_000)


@options
class ExactListGrid(Folds, PoolOptions):
    """The options of `cross_validate`.

    Attributes:
        max_rules: the most rules; every number from 1 on is tried.
        literal_penalties: values of the penalty.
        max_evaluations: as in `fit`; every list of a fold has an eighth of them.
        seed: of the folds.
    """

    max_rules: int = option(checks.integer, default=3, at_least=1, at_most=10_000)
    literal_penalties: Sequence[float] = option(checks.penalties, default=(1.0, 5.0))


@learner(ExactListOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: ExactListOptions
) -> Fit[RuleList]:
    """The best rule list, for two classes or many.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> fit(X, X.sum(axis=1), max_rules=2).bound
    16.0

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: class labels, shape (rows,).
        sample_weight: weight of every row, shape (rows,); the objective then counts weights.

    Returns:
        A Fit with the objective, to be maximised, a proved bound on it, and `ExactListDetails`;
        "optimal" if they meet. The probabilities of the model are those of `jaxrules.ssrl.fit`. The
        history has a step per better list.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for a bad value of an argument, a single class, columns without variation, a
            pool that does not fit in memory, or more rows than can be counted exactly (2^24).
    """
    run = options.run()
    data = list_data(X, y, sample_weight, options)

    def rows(stage: Stage) -> TrainingData | None:
        return rows_for_lists(data, options, run, stage, _NEEDS)

    def best(problem: ListProblem) -> Fit[RuleList]:
        start = problem.begin(options.start)
        penalty, trial = _penalty(problem, options, run, start)
        problem = problem.priced(penalty.value)
        evaluations = options.evaluations(problem.words)
        found = _best(problem, run, evaluations, options.method, start, trial)
        return _finished(problem, options, run, penalty, found)

    return with_rules(
        rows,
        lambda: _read(data, options, run),
        best,
        lambda sample: _in_time(data, sample, options, run),
        run_to_prepare(options, run),
    )


def _in_time(
    data: TrainingData, sample: TrainingData, options: ExactListOptions, run: Run
) -> Fit[RuleList]:
    """The list found on a sample of the rows, evaluated on all rows; its bound is their weight."""
    total = float(data.weights.sum())

    def details(found: RatedList, rules: Conjunctions, penalty: Penalty) -> ExactListDetails:
        return ExactListDetails(
            conditions=len(rules),
            groups=len(found.decided),
            evaluations=0,
            nodes=0,
            literal_penalty=penalty.value,
            chosen=penalty.chosen,
            sample=len(sample.weights),
        )

    return list_in_time(
        fit, data, sample, options, run, details, needs=_NEEDS,
        least=options.min_support * total, local_penalty=options.local_penalty, bound=total,
    )  # fmt: skip


@learner(ExactListPathOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: ExactListPathOptions
) -> list[Fit[RuleList]]:
    """One Fit for each number of rules from 1 to `max_rules`, each started from the list before:
    what `fit` returns with that limit, that start and the same `literal_penalty`. With noise, one
    that was chosen from the data shrinks the probabilities, as in `fit`; a given one does not. No
    list is worse than a shorter one.

    The pool of conditions is made once. Where a fit is optimal, `fit` finds no better list.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> [one.objective for one in path(X, X.sum(axis=1), max_rules=3)]
    [13.0, 16.0, 16.0]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits. The sizes begin with the smallest in which the rules of `first`, a rule to learn
        and the columns of `required` have room. Every size has an equal share of the remaining time
        and its own `max_evaluations`; the list is shorter if time runs out.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    run = options.run()
    problem = _read(list_data(X, y, sample_weight, options), options, run)
    penalty, _ = _penalty(problem, options, run.child(0.5))
    return _along(problem, options, run, penalty, options.evaluations(problem.words))


def _along(
    problem: ListProblem,
    options: ExactListPathOptions,
    run: Run,
    penalty: Penalty,
    evaluations: float,
) -> list[Fit[RuleList]]:
    """The fits of a path, each with so many evaluations."""
    problem = problem.priced(penalty.value)
    best: Choice = ()

    def fit_at(size: int, run: Run) -> Fit[RuleList]:
        nonlocal best
        one = replace(options, max_rules=len(problem.first.rules) + size)
        smaller = replace(problem, max_rules=size)
        found = _best(smaller, run, evaluations, options.method, best)
        best = found.certificate.solution
        return _finished(smaller, one, run, penalty, found)

    sizes = range(max(1, len(problem.start())), problem.max_rules + 1)
    return fits_along(sizes, run, fit_at)


@learner(ExactListGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: ExactListGrid
) -> Fit[RuleList]:
    """Choose the number of rules and the penalty by cross-validation (see
    `jaxrules.learning.cross_validation`); fit on all rows.

    The risk is the share of the held-out weight that is classified wrongly. Each fold has its own
    cut points and one pool of conditions, for a `path` per penalty. With `required` columns, sizes
    that may have no room for them are left out.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    >>> chosen = cross_validate(X, X.sum(axis=1), n_folds=2)
    >>> chosen.details.cross_validation.setting
    {'max_rules': 2, 'literal_penalty': 1.0}

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    run = options.run()
    data = list_data(X, y, sample_weight, options)
    least = Constraints.of(  # in which lists of all folds have room
        data.schema, options.forbidden, options.required, options.monotone
    ).fewest(rules_for(data.schema, "first", options.first))
    sizes = range(min(least, options.max_rules), options.max_rules + 1)
    penalties = options.literal_penalties

    def walk(_: int, inside: TrainingData, run: Run) -> Iterator[RuleList]:
        each = [options.to(ExactListPathOptions, literal_penalty=it) for it in penalties]
        problem = _read(inside, each[0], run)
        few = options.evaluations(problem.words) / _SHORT
        for i, one in enumerate(each):
            part = run.child(1 / (len(each) - i))
            fits = _along(problem, one, part, Penalty(penalties[i]), few)
            for model in by_size(sizes)(fits, part.stopped()):
                if model is None:
                    return
                yield model

    return fit_of_best_setting(
        fit,
        (X, y, sample_weight),
        options,
        data,
        [{"max_rules": size, "literal_penalty": it} for it in penalties for size in sizes],
        walk,
        run,
        otherwise=0,
    )


@learner(NearOptions)
def near_optimal(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: NearOptions
) -> NearOptimal:
    """All rule lists that are nearly as good as the best: which conditions do they share, on
    which rows do they agree?

    Finds every list whose objective is at least optimum - within |optimum|: every sequence of at
    most `max_rules` conditions of the pool, each of which captures some rows, with the best label
    for these rows. **Equal captures are merged**: of conditions that cover the same rows, the
    shortest stays; of lists whose rules capture the same sets of rows, in any order, the best
    stays: the one with the fewest literals or, with a `local_penalty`, the lowest price of literals
    and reading.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> found = near_optimal(X, X[:, 0] & X[:, 1], literal_penalty=1.0, within=0.06)
    >>> print(found)
    7 rule lists with an objective of at least 16.92; the best: 18
    Share of the lists in which a condition occurs:
      0.571  x0 >= 1
      0.429  x0 < 1
      0.429  x1 >= 1
      0.429  x0 >= 1 & x1 >= 1
      0.286  x1 < 1
    The best:
    IF x0 >= 1 AND x1 >= 1 THEN target = 1 (p = 0.857, 5 of 5 rows)
    ELSE target = 0 (p = 0.941, 15 of 15 rows)
    >>> print(found[1])
    IF x0 < 1 THEN target = 0 (p = 0.917, 10 of 10 rows)
    ELSE IF x1 >= 1 THEN target = 1 (p = 0.857, 5 of 5 rows)
    ELSE target = 0 (p = 0.857, 5 of 5 rows)
    >>> print((found.possible(X).sum(axis=1) == 1).all())  # all lists agree, on every row
    True

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The lists, the best first, as a `NearOptimal`; indexing gives models.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    run = options.run()
    problem = _read(list_data(X, y, sample_weight, options), options, run)
    evaluations = options.evaluations(problem.words)
    half = run.child(0.5)
    penalty, trial = _penalty(problem, options, half)
    problem = problem.priced(penalty.value)
    found = _best(problem, half, evaluations, trial=trial)
    others = Enumeration(
        problem, found.objective, found.bound, options.within, options.limit,
        found.certificate.solution,
    )  # fmt: skip
    with run:
        others.run(lambda: run.stopped() or others.search.evaluations >= evaluations)
    short = run.shortened or not problem.candidates.complete
    limit = run.limit or (Status.TIME_LIMIT if short else None)
    return others.result(options.settings(), penalty, limit)


def _read(data: TrainingData, options: ProblemOptions, run: Run) -> ListProblem:
    """The problem; a part of the time is for its pool, with the cut points of a sample of the rows
    if it is too short for those of all.
    """
    pooling = run.child(_CONDITIONS_SHARE)
    sample = sample_in_time(data, run, options.seed) if options.rules is None else None
    run.shortened |= sample is not None
    return ListProblem.of(data, options, run, pooling.stopped, sample)


def _penalty(
    problem: ListProblem, options: ProblemOptions, run: Run, start: Choice = ()
) -> tuple[Penalty, _Best | None]:
    """The penalty on a literal and, if the data choose it, a short search with it. Every search
    takes at most half of the time that is left.
    """
    if options.literal_penalty is not None:
        return Penalty(options.literal_penalty), None
    method = options.method if isinstance(options, ExactListPathOptions) else "search"
    starts = [start]

    def search(penalty: float) -> _Best:
        limit = options.evaluations(problem.words) / _SHORT
        found = _searched(problem.priced(penalty), run.child(0.5), limit, method, starts, False)
        starts.append(found.certificate.solution)
        return found

    def left(found: _Best) -> Left:
        return problem.left(found.certificate.solution)

    trial = search(SMALL_PENALTY)
    n_literals = len(problem.candidates.parts)
    rest = left(trial)
    penalty = Penalty.by_noise(rest, n_literals, run.stopped())
    if not penalty.noisy:
        return penalty, trial
    return penalty.search(search, left, problem.left(()), rest, n_literals, run.stopped)


def _finished(
    problem: ListProblem,
    options: ExactListPathOptions,
    run: Run,
    penalty: Penalty,
    found: _Best,
) -> Fit[RuleList]:
    """The best list found as a fit."""
    certificate, candidates = found.certificate, problem.candidates
    return run.finish(
        problem.model(certificate.solution, options.settings(), penalty.shrinkage),
        found.objective,
        "max",
        found.status,
        found.bound,
        details=ExactListDetails(
            conditions=len(candidates),
            groups=candidates.n_groups,
            evaluations=found.evaluations,
            nodes=certificate.nodes,
            literal_penalty=penalty.value,
            max_cut_points=problem.max_cut_points,
            left_out=problem.left_out,
            chosen=penalty.chosen,
        ),
    )


class _Best(NamedTuple):
    """What a search for the best list found."""

    run: Run
    certificate: LayeredCertificate[Choice]
    objective: float  # with the expert's rules
    bound: float
    status: Status
    evaluations: int


def _best(
    problem: ListProblem,
    run: Run,
    limit: float,
    method: str = "search",
    start: Choice = (),
    trial: _Best | None = None,
) -> _Best:
    """The best list of candidates, as far as the run and the limit allow.

    Args:
        start: a list to start from.
        trial: a short search with this penalty. It is the result if it proved that, or if no time
            is left.
    """
    if trial is not None and (trial.status is Status.OPTIMAL or run.stopped()):
        run.include(trial.run)
        return trial
    starts = (start,) if trial is None else (start, trial.certificate.solution)
    return _searched(problem, run, limit, method, starts)


def _searched(
    problem: ListProblem, run: Run, limit: float, method: str, starts: Iterable[Choice],
    proof: bool = True,
) -> _Best:  # fmt: skip
    """What a search from some lists finds; a short one needs no `proof`."""
    prefixes = Prefixes(problem.candidates, problem.max_rules)
    certificate = prefixes.certificate(problem.start())
    for start in starts:
        certificate.offer(start)

    def report(objective: float) -> None:
        size = len(problem.first.rules) + len(certificate.solution)
        run.step(problem.offset + objective, size, bound=problem.offset + proved())

    def proved() -> float:
        if not problem.candidates.complete:  # a list of a missing condition might be better
            return float(problem.candidates.counts.sum())
        return certificate.objective if certificate.closed else certificate.bound

    def stopped() -> bool:
        return run.stopped() or prefixes.evaluations >= limit

    with run:
        run.phase = "start"
        report(certificate.objective)
        run.phase, certificate.improved = "search", report
        if method == "mip":
            from jaxrules.lists import list_mip

            list_mip.search(
                problem.candidates,
                problem.max_rules,
                certificate,
                run.stopped,
                run.deadline.remaining,
            )
        else:
            for k, evaluations in enumerate(LAYERS):
                # Once each: after some narrow searches, or before the evaluations end the search
                due = k == _BEFORE_PAIRS or (k < _BEFORE_PAIRS and stopped())
                if due and proof and not (certificate.closed or run.stopped()):
                    prefixes.pair_rows(certificate, run.stopped)
                if k == _BEFORE_SSRL or (k < _BEFORE_SSRL and stopped()):
                    _offer_ssrl(problem, certificate, run)
                if certificate.closed or stopped():
                    break
                prefixes.search(certificate, evaluations, stopped)
    status = certificate.status
    if status is Status.STALLED and prefixes.evaluations >= limit:
        status = Status.MAX_ITERATIONS
    if status is Status.STALLED and method == "mip" and run.deadline.seconds is not None:
        status = Status.TIME_LIMIT
    # Last, as it outranks the others: even a closed certificate covers only the conditions made.
    if not problem.candidates.complete:
        status = Status.TIME_LIMIT
    return _Best(
        run,
        certificate,
        problem.offset + certificate.objective,
        problem.offset + proved(),
        status,
        prefixes.evaluations,
    )


def _offer_ssrl(problem: ListProblem, certificate: LayeredCertificate[Choice], run: Run) -> None:
    """Offer SSRL's list, restricted to conditions in the pool, if it may
    still help and there is time.
    """
    if certificate.closed or run.stopped():
        return
    classes, codes = np.asarray(problem.data.classes), problem.data.codes
    candidates = problem.candidates
    # SSRL has one default label: of those allowed, the heaviest among the rows that are left
    label = classes[(candidates.defaults * candidates.counts.sum(axis=0)).argmax()]
    left = classes[np.unique(codes)]
    # SSRL refuses data of a single class, and a default that is not a class of the data.
    if problem.literals is None or len(left) < 2 or label not in left:
        return
    own = ssrl.SSRLOptions(
        max_rules=problem.max_rules,
        max_length=problem.max_length,
        literal_penalty=candidates.penalty,
        propositions=problem.literals,
        default=label.item(),
        missing="own_category",
        positive=problem.data.positive,
        time_limit=run.child(_SSRL_SHARE).deadline,
    )
    rows = problem.data
    fitted = ssrl.fit.with_options(rows.table, classes[codes], rows.weights, own)
    # Only conditions are taken: the certificate finds their labels and the objective itself.
    certificate.offer(problem.find(fitted.model.conjunctions))
