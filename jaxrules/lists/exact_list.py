"""Exact rule lists: the best list over all conditions of a pool, with a certificate.

The objective is that of SSRL (Eq. 14): the weight of the correctly classified rows, minus
literal_penalty per literal. A beam search gives a first list; branch-and-bound over prefixes
(`jaxrules.lists.prefixes`), of growing width, improves it and proves it. Whenever the search ends,
the bound says how far from the optimum the list may be.

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
>>> best = fit(X, X[:, 0] & X[:, 1])
>>> print(best.model, best.status, best.objective, best.bound)
IF x0 >= 1 AND x1 >= 1 THEN target = 1 (p = 0.857)
ELSE target = 0 (p = 0.941) optimal 18.0 18.0

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

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxrules import checks
from jaxrules.conditions import Conjunctions
from jaxrules.fits import Fit, Status
from jaxrules.guard import guarded
from jaxrules.lists import ssrl
from jaxrules.lists.exact_problem import ListProblem
from jaxrules.lists.near_optimal import Enumeration, NearOptimal
from jaxrules.lists.prefixes import Choice, Prefixes
from jaxrules.models import RuleList
from jaxrules.runs import Deadline, ProgressOption, Run
from jaxrules.solvers import layered
from jaxrules.solvers.layered import Certificate
from jaxrules.table import Label, MissingRule
from jaxrules.training import settings

_LAYERS = tuple(4**k for k in range(7, 17))
"""Conditions examined per layer by successive searches, which sets the number of prefixes."""
_BEFORE_SSRL = 5
"""Number of these searches before SSRL provides a list."""
_CONDITIONS_SHARE = 0.5
"""Share of the time limit for the pool of conditions; if it is too short,
longer ones are left out.
"""
_SSRL_SHARE = 0.3
"""SSRL's share of the remaining time."""
_SOME_SECONDS = 13_000_000, 16
"""Conditions that can be examined in some seconds if their bits take at most this many words."""


@guarded
def fit(
    X: Any,
    y: ArrayLike,
    *,
    max_rules: int = 4,
    literal_penalty: float = 1.0,
    max_literals: int = 2,
    min_support: float = 0.01,
    conditions: Conjunctions | None = None,
    quantiles: int | Sequence[float] = 9,
    cut_points: Mapping[str, Sequence[float]] | None = None,
    default: Label | Literal["majority", "free"] = "majority",
    forbidden: Iterable[str | int] = (),
    required: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    first_labels: Sequence[Label] | None = None,
    start: Fit[RuleList] | RuleList | None = None,
    method: Literal["auto", "search", "mip"] = "auto",
    max_evaluations: int | Literal["auto"] | None = "auto",
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleList]:
    """The best rule list, for two classes or many.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: class labels, shape (rows,).
        max_rules: the most rules, without the default.
        literal_penalty: lambda >= 0, the weight of rows that a literal must gain.
        max_literals: the most literals of a rule. The pool of conditions
            grows exponentially with it.
        min_support: the least share of the row weight, in [0, 1), that a
            condition of the pool covers.
        conditions: the conditions to choose from, instead of that pool; their
            ``propositions`` count as literals.
        quantiles, cut_points: cut points of numbers, see `jaxrules.lists.literals.literals_of`.
        default: the label of rows that no rule covers; "majority" takes the heaviest
            class of all, "free" the best.
        forbidden: columns, by name or position, that no rule may use.
        required: columns that the list must use.
        monotone: 1 or -1 for some numeric columns: as the column rises, the prediction may only
            move towards the last class, or the first; see `jaxrules.constraints`.
        first: an expert's rules, which come first; they count among `max_rules` and
            their literals are penalised.
        first_labels: their labels; None for the heaviest class among the rows that each captures.
        start: a Fit, or its model, a list of any learner on the same columns and for the same
            classes: the search starts from it, after the rules of `first`, and returns nothing
            worse. All its rules must be in the pool.
        method: "search", branch-and-bound; "mip", a mixed-integer program (CVXPY and HiGHS), for
            small problems and as a check. "auto" searches.
        max_evaluations: how many conditions may be tried after prefixes before the best list so far
            is returned: "auto" for some seconds, None for no limit. Unlike time limits, this does
            not depend on the machine.
        sample_weight: weight of every row, shape (rows,); the objective then counts weights.
        missing: rule for missing values, see `jaxrules.as_table`.
        seed: unused, since the search is deterministic; every learner takes it.
        time_limit: seconds; the best list so far is returned when they run
            out, see `jaxrules.Deadline`.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit with the objective, to be maximised, and a proved bound on it; "optimal" if they meet.
        The probabilities of the model are the weights of the classes among the training rows that
        each rule captures, one row of each class added. The history has a step per better list.
        ``details``: conditions, their number; groups, the number of groups of rows that they
        distinguish; evaluations, how many conditions were tried after prefixes; nodes, the states
        of the search (or the nodes of the program's tree).

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for a bad value of an argument, a single class, columns without variation, a
            pool that does not fit in memory, or more rows than can be counted exactly (2^24).
    """
    arguments = dict(locals())
    options = settings("exact_list", arguments)
    checks.choice("method", method, ("auto", "search", "mip"))
    limit = _limit(max_evaluations)
    run = Run("exact_list", time_limit, progress)
    problem = ListProblem.read(X, y, arguments, run, run.child(_CONDITIONS_SHARE).stopped)
    found = _best(problem, run, limit or _some_seconds(problem), method, problem.begin(start))
    certificate = found.certificate
    return run.finish(
        problem.model(certificate.solution, tuple(options.items())),
        found.objective,
        "max",
        found.status,
        found.bound,
        conditions=len(problem.candidates),
        groups=problem.candidates.n_groups,
        evaluations=found.evaluations,
        nodes=certificate.nodes,
    )


@guarded
def near_optimal(
    X: Any,
    y: ArrayLike,
    *,
    within: float = 0.01,
    limit: int = 10_000,
    max_rules: int = 3,
    literal_penalty: float = 1.0,
    max_literals: int = 2,
    min_support: float = 0.01,
    conditions: Conjunctions | None = None,
    quantiles: int | Sequence[float] = 9,
    cut_points: Mapping[str, Sequence[float]] | None = None,
    default: Label | Literal["majority", "free"] = "majority",
    forbidden: Iterable[str | int] = (),
    required: Iterable[str | int] = (),
    monotone: Mapping[str | int, int] | None = None,
    first: Conjunctions | None = None,
    first_labels: Sequence[Label] | None = None,
    max_evaluations: int | Literal["auto"] | None = "auto",
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> NearOptimal:
    """All rule lists that are nearly as good as the best: which conditions do they share, on
    which rows do they agree?

    Finds every list whose objective is at least optimum - within |optimum|: every sequence of at
    most `max_rules` conditions of the pool, each of which captures some rows, with the best label
    for these rows. **Equal captures are merged**: of conditions that cover the same rows, the
    shortest stays; of lists whose rules capture the same sets of rows, in any order, the one with
    the fewest literals stays.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> found = near_optimal(X, X[:, 0] & X[:, 1], within=0.06)
    >>> print(found)
    7 rule lists with an objective of at least 16.92; the best: 18
    Share of the lists in which a condition occurs:
      0.571  x0 >= 1
      0.429  x0 < 1
      0.429  x1 >= 1
      0.429  x0 >= 1 & x1 >= 1
      0.286  x1 < 1
    The best:
    IF x0 >= 1 AND x1 >= 1 THEN target = 1 (p = 0.857)
    ELSE target = 0 (p = 0.941)
    >>> print(found[1])
    IF x0 < 1 THEN target = 0 (p = 0.917)
    ELSE IF x1 >= 1 THEN target = 1 (p = 0.857)
    ELSE target = 0 (p = 0.857)
    >>> print((found.possible(X).sum(axis=1) == 1).all())  # all lists agree, on every row
    True

    Args:
        within: the share of the optimum, at least 0, that a list may lose.
        limit: the most lists that are returned, the best. If there are more, all above the
            objective `NearOptimal.floor` are returned, and `at_most` bounds their number.
        X, y, max_rules, literal_penalty, max_literals, min_support, conditions,
        quantiles, cut_points, default,
            forbidden, required, monotone, first, first_labels, sample_weight, missing,
            seed, progress: as in `fit`.
        max_evaluations: as in `fit`, once for the best list and once for all others.
        time_limit: seconds; half of them are for the best list. What is found by then is returned.

    Returns:
        The lists, the best first, as a `NearOptimal`; indexing gives models.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    arguments = dict(locals())
    options = settings(
        "exact_list",
        {name: value for name, value in arguments.items() if name not in ("within", "limit")},
    )
    within = checks.number("within", within, at_least=0)
    limit = checks.integer("limit", limit, at_least=1)
    evaluations = _limit(max_evaluations)
    run = Run("exact_list", time_limit, progress)
    problem = ListProblem.read(X, y, arguments, run)
    evaluations = evaluations or _some_seconds(problem)
    found = _best(problem, run.child(0.5), evaluations)
    others = Enumeration(problem, found.objective, found.bound, within, limit)
    with run:
        others.run(lambda: run.stopped() or others.search.evaluations >= evaluations)
    return others.result(tuple(options.items()))


def _limit(max_evaluations: Any) -> float | None:
    """The most conditions to try; None for as many as some seconds allow."""
    if isinstance(max_evaluations, str) and max_evaluations == "auto":
        return None
    return (
        checks.optional(checks.integer, "max_evaluations", max_evaluations, at_least=1) or math.inf
    )


def _some_seconds(problem: ListProblem) -> float:
    evaluations, words = _SOME_SECONDS
    return evaluations * min(1.0, words / problem.candidates.covers.shape[1])


class _Best(NamedTuple):
    """What a search for the best list found."""

    certificate: Certificate[Choice]
    objective: float  # with the expert's rules
    bound: float
    status: Status
    evaluations: int


def _best(
    problem: ListProblem, run: Run, limit: float, method: str = "search", start: Choice = ()
) -> _Best:
    """The best list of candidates, as far as the run and the limit allow."""
    prefixes = Prefixes(problem.candidates, problem.max_rules)
    certificate = prefixes.certificate(problem.start())
    certificate.offer(start)

    def tell(objective: float) -> None:
        size = len(problem.first.rules) + len(certificate.solution)
        run.step(problem.offset + objective, size, bound=problem.offset + proved())

    def proved() -> float:
        if not problem.candidates.complete:  # a missing condition might be better
            return float(problem.candidates.counts.sum())
        return certificate.objective if certificate.closed else certificate.bound

    def stopped() -> bool:
        return run.stopped() or prefixes.evaluations >= limit

    with run:
        run.phase = "start"
        tell(certificate.objective)
        run.phase, certificate.improved = "search", tell
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
            for k, evaluations in enumerate(_LAYERS):
                if k == _BEFORE_SSRL or (k < _BEFORE_SSRL and stopped()):
                    _offer_ssrl(problem, certificate, run)
                if certificate.closed or stopped():
                    break
                width = max(1, evaluations // len(problem.candidates))
                prefixes.listed = 8 * width
                layered.search(prefixes, certificate, (width,), stopped)
    status = certificate.status
    if status is Status.STALLED and prefixes.evaluations >= limit:
        status = Status.MAX_ITERATIONS
    if status is Status.STALLED and method == "mip" and run.deadline.seconds is not None:
        status = Status.TIME_LIMIT
    if not problem.candidates.complete:
        status = Status.TIME_LIMIT
    return _Best(
        certificate,
        problem.offset + certificate.objective,
        problem.offset + proved(),
        status,
        prefixes.evaluations,
    )


def _offer_ssrl(problem: ListProblem, certificate: Certificate[Choice], run: Run) -> None:
    """Offer SSRL's list, restricted to conditions in the pool, if it may
    still help and there is time.
    """
    if certificate.closed or run.stopped():
        return
    classes, codes = np.asarray(problem.data.classes), problem.codes
    label = classes[(problem.candidates.defaults * problem.candidates.counts.sum(axis=0)).argmax()]
    left = classes[np.unique(codes)]
    if problem.literals is not None and len(left) > 1 and label in left:
        fitted = ssrl.fit(
            problem.data.table,
            classes[codes],
            max_rules=problem.max_rules,
            max_length=problem.max_literals,
            literal_penalty=problem.candidates.penalty,
            literals=problem.literals,
            default=label.item(),
            sample_weight=problem.data.weights,
            missing="own_category",
            time_limit=run.child(_SSRL_SHARE).deadline,
        )
        certificate.offer(problem.find(fitted.model.conjunctions))
