"""`fit`, `path` and `cross_validate`: the best coordinate path for data, by the search that suits
the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.data.table import EncodedColumn, TableLike, holds_classes, target_array
from jaxrules.learning.cross_validation import (
    arguments_of,
    fit_of_best_setting,
    fits_along,
    fits_in_turn,
    unfinished,
)
from jaxrules.learning.options import Folds, learner, option, options, or_none
from jaxrules.learning.training import TrainingData
from jaxrules.losses import loss_by_name
from jaxrules.paths import bounded, convex, exact, given_end, integer, local, logistic, mip
from jaxrules.paths.costs import Array, LossCost, Sequence
from jaxrules.paths.data import (
    MOST_STEPS,
    ByColumn,
    Coefficients,
    CostName,
    ModelOptions,
    ModelSpace,
    check_step_weights,
)
from jaxrules.paths.logistic import SequentialCertificate
from jaxrules.paths.model import CoordinatePath, complexity_loss, encoded_columns
from jaxrules.paths.problem import Changes, IntegerSteps, PathProblem
from jaxrules.solvers.layered import LayeredCertificate
from jaxrules.tools import checks
from jaxrules.tools.fits import Details, Fit, Status
from jaxrules.tools.runs import Run

Method = Literal["exact", "mip", "local"]

_MOST_RESTARTS = 100_000
"""Their orders are drawn at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PathDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        nodes: the number of states that the search examined.
    """

    nodes: int


@options
class _PathShared(ModelOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        steps: K, the number of steps.
        step_weights: alpha_1, ..., alpha_K, at least 0 and the last one positive (a distribution
            over where the reader stops, Section 5.2); or a number gamma for alpha_k = gamma^k
            (Definition 1).
        method: "exact" proves optimality by a dedicated search (integer steps with any side
            condition, real ones with an end or with bounds); "mip" solves small problems with any
            side conditions by mixed-integer programming; "local" improves random sequences, for
            hundreds of columns, without a certificate.
        cost: "squared", the mean squared error, "logistic", the mean of log(1 + exp(-y f)) of two
            classes, "softmax", the mean log-loss of more classes, or "poisson", half of the mean
            deviance of counts with the log link; None for "logistic" or "softmax" if y holds
            classes (see `jaxrules.data.table.holds_classes`), else for "squared".
        integer_steps: steps of "any" integer size (S_SLIM, Section 5.1) or of one point ("unit",
            S'_SLIM); None for real ones.
        lower: lower bounds on the coefficients of all models: one number, by column name, or an
            array.
        upper: upper bounds, likewise.
        batch: q, the number of steps that local improvement reassigns at once (appendix C), at most
            3.
        iterations: T, the most choices of `batch` steps that local improvement reassigns per start;
            None to go on until no choice improves the sequence.
        first_sequence: i0, where local improvement starts: the column of every step, by name or
            position; None for the greedy sequence. A shorter path starts at its first columns.
        restarts: random starts of local improvement, at most 100 000, besides the first sequence.
            With method="exact" and more than 12 columns, or a cost other than the squared one,
            local improvement precedes the proof, so that a fit cut short is no worse than a local
            one.
        seed: of the random starts.
    """

    learner = "paths"

    steps: int = option(checks.integer, default=10, at_least=1, at_most=MOST_STEPS)
    step_weights: float | ArrayLike = 1.0
    method: Method = option(checks.choice, default="exact", known=("exact", "mip", "local"))
    cost: CostName | None = option(checks.choice, default=None, known=(*get_args(CostName), None))
    integer_steps: IntegerSteps | None = option(
        checks.choice, default=None, known=(None, "any", "unit")
    )
    lower: ByColumn = None
    upper: ByColumn = None
    batch: int = option(checks.integer, default=2, at_least=1, at_most=3)
    iterations: int | None = option(
        or_none(checks.integer), default=None, at_least=1, at_most=local.LARGEST_COUNT
    )
    first_sequence: Iterable[str | int] | None = None
    restarts: int = option(checks.integer, default=20, at_least=0, at_most=_MOST_RESTARTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_step_weights(self.step_weights, self.steps)

    @cached_property
    def alpha(self) -> Array:
        """The weights of the steps, shape (steps,)."""
        return check_step_weights(self.step_weights, self.steps)

    @property
    def reassigned(self) -> int:
        """The number of steps that local improvement reassigns at once."""
        return min(self.batch, self.steps)

    def for_target(self, y: ArrayLike) -> Self:
        """The same, with the cost for y."""
        if self.cost is not None:
            return self
        if not holds_classes(y):
            return replace(self, cost="squared")
        several = len(np.unique(target_array(y))) > 2
        return replace(self, cost="softmax" if several else "logistic")

    @property
    def known_cost(self) -> CostName:
        """The cost of `for_target`."""
        assert self.cost is not None
        return self.cost


@options
class PathFitOptions(_PathShared):
    """The options of `fit` and `path`.

    Attributes:
        end: a given b_K to explain, in the forms of `start` (Eq. 2).
    """

    end: Coefficients = None

    def shorter(self, steps: int) -> PathFitOptions:
        """The same for paths of fewer steps, with the first of the step weights.

        Raises:
            ValueError: if a path of these steps would end in a step of weight 0.
        """
        weights = self.step_weights
        if np.ndim(weights):
            checks.require(
                self.alpha.all(),
                "step_weights must all be positive: shorter paths use the first of them",
            )
            weights = self.alpha[:steps]
        return replace(self, steps=steps, step_weights=weights)


@options
class StepsGrid(Folds, _PathShared):
    """The options of `cross_validate`.

    Attributes:
        steps: the most steps; every number from 1 on is tried.
        step_weights: alpha_1, ..., alpha_K, all positive, of which shorter paths use the first; or
            a number gamma for alpha_k = gamma^k.
        time_limit: seconds for everything; four fifths are for the folds.
    """


@learner(PathFitOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: PathFitOptions
) -> Fit[CoordinatePath]:
    """The coordinate path b_1, ..., b_K with the least sum_k alpha_k c(b_k), Eq. (7) and (9).

    Every step changes one coefficient. Models are lists of coefficients in column order: a numeric
    column has one, a categorical column one for the 0/1 indicator of each category. With the
    softmax cost, each of these has a row of coefficients, one per class, which a step changes
    together.

    >>> import numpy as np
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float), np.array([0, 1, 3, 5.0] * 5)
    >>> print(fit(X, y, steps=2).model)
    Coordinate path of 2 steps for target
         x0   x1    cost
    b0             3.688
    b1  3.5        0.625
    b2       1.5  0.0625

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: the target, shape (rows,): numbers, two classes for the logistic cost, more for the
            softmax cost, or counts (numbers of at least 0) for the Poisson cost.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is sum_k alpha_k c(b_k), computed from the models, with `PathDetails`;
        "exact" and "mip" have a bound.

    Raises:
        TypeError, ValueError: for bad values in any argument, or arguments that cannot be combined.
    """
    options = options.for_target(y)
    run = options.run()
    space = ModelSpace.of(X, y, sample_weight, options, options.known_cost)
    return _best_path(space, options, run)


@learner(PathFitOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: PathFitOptions
) -> list[Fit[CoordinatePath]]:
    """One Fit for each number of steps from 1 to `steps`: what `fit` with that number returns.

    The best path of k steps need not begin as that of k + 1 steps does. With an `end`, the first
    path has as many steps as it takes to get there.

    >>> import numpy as np
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float), np.array([0, 1, 3, 5.0] * 5)
    >>> [round(found.objective, 4) for found in path(X, y, steps=3)]
    [0.625, 0.6875, 0.75]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits, each with an equal share of the remaining time; fewer if time runs out.

    Raises:
        TypeError, ValueError: as `fit`; for a step weight of 0.
    """
    options = options.for_target(y)
    run = options.run()
    space = ModelSpace.of(X, y, sample_weight, options, options.known_cost)
    return fits_along(*_each(space, options, run))


@learner(StepsGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: StepsGrid
) -> Fit[CoordinatePath]:
    """Choose the number of steps by cross-validation (see `jaxrules.learning.cross_validation`);
    fit on all rows.

    The risk of k steps is the mean loss of the last model of the best path of k steps. A fold that
    standardises columns does so by its own rows; a column that is constant there does not change.

    >>> import numpy as np
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float), np.array([0, 1, 3, 5.0] * 5)
    >>> chosen = cross_validate(X, y, steps=3)
    >>> len(chosen.model), chosen.details.cross_validation.setting
    (2, {'steps': 2})

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for a step weight of 0, more folds than rows, or a class
            with a single row.
    """
    options = options.for_target(y)
    run = options.run()
    longest, cost = options.to(PathFitOptions), options.known_cost
    several = cost == "softmax"
    loss = loss_by_name("logistic" if several else cost)
    data = options.training_data(X, y, sample_weight, loss, binary=not several, constant=True)
    columns = encoded_columns(data.table)
    grid = [{"steps": steps} for steps in range(1, options.steps + 1)]
    return fit_of_best_setting(
        fit, (X, y, sample_weight), options, data, grid,
        lambda _, inside, run: _walk(inside, columns, longest, run), run,
        otherwise=options.steps - 1, chosen=longest.shorter, size=complexity_loss, measure="steps",
    )  # fmt: skip


def _walk(
    inside: TrainingData, columns: tuple[EncodedColumn, ...], options: PathFitOptions, run: Run
) -> Iterator[CoordinatePath]:
    """The paths of 1, 2, ... steps of a fold, until time runs out."""
    silent = replace(options, time_limit=run.deadline, progress=False)
    space = ModelSpace.of(*arguments_of(inside), silent, silent.known_cost, columns)
    fits = fits_in_turn(*_each(space, silent, silent.run()))
    return (found.model for found in takewhile(lambda one: not unfinished(one), fits))


def _each(
    space: ModelSpace, options: PathFitOptions, run: Run
) -> tuple[range, Run, Callable[[int, Run], Fit[CoordinatePath]]]:
    """The numbers of steps that a path may have, the run, and the best path of each of them."""

    def fit_at(steps: int, part: Run) -> Fit[CoordinatePath]:
        part.task = f"{run.task}, {steps} steps"
        return _best_path(space, options.shorter(steps), part)

    # Made once for all lengths, this also refuses side conditions that contradict each other.
    fewest = max(_problem(space, options).fewest_steps, 1)
    return range(fewest, options.steps + 1), run, fit_at


def _problem(space: ModelSpace, options: PathFitOptions) -> PathProblem:
    """The problem of the searches.

    Raises:
        ValueError: for side conditions that contradict each other, or that the method lacks.
    """
    if options.cost == "softmax":  # whose coefficients have other shapes than bounds and ends
        given = {
            "integer_steps": options.integer_steps is not None,
            "end": options.end is not None,
            "lower or upper": options.lower is not None or options.upper is not None,
        }
        _refuse_for_cost(options.cost, given, options.method)
    problem = space.problem(
        options.alpha, kind=options.integer_steps, lower=options.lower, upper=options.upper,
        end=options.end,
    )  # fmt: skip
    check_method(problem, options.method, options.cost)
    return problem


def _best_path(space: ModelSpace, options: PathFitOptions, run: Run) -> Fit[CoordinatePath]:
    """The best path that the method finds."""
    problem, cost = _problem(space, options), space.cost_of_changes
    search = _PathSearch(options, _first_sequence(space, problem, options), run)
    if isinstance(cost, LossCost):
        certificate: LayeredCertificate[Changes] = SequentialCertificate.of(cost, problem)
    else:
        certificate = problem.certificate()
    status = Status.INTERRUPTED
    with run:
        status = search.path(problem, certificate)
    found = space.path(certificate.solution, options.alpha, options.settings())
    # No cost is negative, and the loss of the models may lie below the search's by rounding.
    bound = None if options.method == "local" else min(max(certificate.bound, 0.0), found.loss)
    details = PathDetails(nodes=certificate.nodes)
    return run.finish(found, found.loss, "min", status, bound, details)


class _PathSearch(NamedTuple):
    """The search that the user named, with its settings; `first` is the sequence i0."""

    options: PathFitOptions
    first: Sequence | None
    run: Run

    def path(self, problem: PathProblem, certificate: LayeredCertificate[Changes]) -> Status:
        """Improve the certificate: for a cost that is not quadratic, on successive quadratic models
        of it, before the proof.
        """
        options, run, proves = self.options, self.run, self.options.method != "local"

        def record(objective: float) -> None:
            bound = max(certificate.bound, 0.0) if proves else None
            run.step(objective, problem.steps, bound=bound)

        run.phase = "start"
        record(certificate.objective)
        run.phase = "search"
        certificate.improved = record
        if not isinstance(certificate, SequentialCertificate):
            return self.quadratic(problem, certificate)
        if self.first is not None:
            along = logistic.newton_path(certificate.cost, options.alpha, self.first, run.stopped)
            certificate.offer(along)
        status = logistic.search(
            problem, certificate, self.improve, run.stopped, batch=options.reassigned,
            iterations=options.iterations, seed=options.seed,
        )  # fmt: skip
        if not proves:
            return status
        run.phase = "proof"
        convex.search(problem, certificate, certificate.cost, run.stopped)
        return certificate.status

    def quadratic(self, problem: PathProblem, certificate: LayeredCertificate[Changes]) -> Status:
        """Improve the certificate of a quadratic cost."""
        options = self.options
        if options.method == "local":
            self.improve(problem, certificate)
            return Status.CONVERGED
        prove(
            problem, certificate, options.method, self.run, batch=options.reassigned,
            iterations=options.iterations, first=self.first, restarts=options.restarts,
            seed=options.seed,
        )  # fmt: skip
        return certificate.status

    def improve(self, problem: PathProblem, certificate: LayeredCertificate[Changes]) -> None:
        """Local improvement."""
        options = self.options
        local.search(
            problem, certificate, self.run.stopped, batch=options.reassigned,
            iterations=options.iterations, first=self.first, restarts=options.restarts,
            seed=options.seed,
        )  # fmt: skip


def _first_sequence(
    space: ModelSpace, problem: PathProblem, options: PathFitOptions
) -> Sequence | None:
    """The user's i0 among the allowed columns, shape (steps,), or None.

    Raises:
        TypeError, ValueError: for anything but a list of one allowed column per step, and for side
            conditions, whose searches start from no sequence.
    """
    given: Any = options.first_sequence
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or np.ndim(given) != 1:
        raise TypeError(
            "first_sequence must be a list of column names or positions, one per step, got "
            f"{type(given).__name__}"
        )
    if problem.kind is not None or problem.end is not None or problem.bounded or (
        options.method == "mip"
    ):  # fmt: skip
        raise ValueError(
            "first_sequence is the start of local improvement, which takes no integer_steps, end, "
            'lower or upper, and not method="mip"; omit one of them'
        )
    columns = [space.column(key, "first_sequence") for key in given]
    if len(columns) < options.steps:
        raise ValueError(
            f"first_sequence must have {options.steps} columns, one per step, got {len(columns)}"
        )
    refused = [space.names[j] for j in columns if j not in space.allowed]
    if refused:
        raise ValueError(f"first_sequence has the columns {refused}, which no step may change")
    return np.searchsorted(space.allowed, columns[: options.steps]).astype(np.int64)


def prove(
    problem: PathProblem,
    certificate: LayeredCertificate[Changes],
    method: Literal["exact", "mip"],
    run: Run,
    *,
    batch: int = 2,
    iterations: int | None = None,
    first: Sequence | None = None,
    restarts: int = 0,
    seed: int = 0,
) -> None:
    """The exact search for the problem's side conditions; options as in `exact.search`."""
    if method == "mip":
        mip.search(problem, certificate, run.stopped, run.deadline.remaining)
    elif problem.kind is not None:
        integer.search(problem, certificate, run.stopped)
    elif problem.end is not None:
        given_end.search(problem, certificate, run.stopped)
    elif problem.bounded:
        bounded.search(problem, certificate, run.stopped)
    else:
        exact.search(
            problem, certificate, run.stopped, () if first is None else (first,), batch=batch,
            iterations=iterations, restarts=restarts, seed=seed,
        )  # fmt: skip


def _refuse_for_cost(cost: CostName | None, present: Mapping[str, bool], method: Method) -> None:
    """Refuse side conditions, and mixed-integer programming, for all costs but the squared one."""
    given = [name for name, is_given in present.items() if is_given]
    if cost not in (None, "squared") and (given or method == "mip"):
        what = given[0] if given else 'method="mip"'
        raise ValueError(
            f'cost="{cost}" cannot be combined with {what}; use cost="squared", or omit it'
        )


def check_method(problem: PathProblem, method: Method, cost: CostName | None) -> None:
    """Refuse what the method does not support.

    Raises:
        ValueError: naming the arguments, and a method that supports them.
    """
    present = {
        "integer_steps": problem.kind is not None,
        "end": problem.end is not None,
        "lower or upper": problem.bounded,
    }
    given = [name for name, is_given in present.items() if is_given]
    _refuse_for_cost(cost, present, method)
    if method == "local" and given:
        raise ValueError(f'method="local" cannot be combined with {given[0]}; use method="mip"')
    if method == "exact" and problem.kind is None:
        if problem.bounded and problem.end is not None:
            raise ValueError(
                'method="exact" takes end, or lower and upper, not both; use method="mip"'
            )
        largest = {"end": given_end.MAX_FEATURES, "lower or upper": bounded.MAX_FEATURES}
        for name in given:
            if problem.n_features > largest[name]:
                raise ValueError(
                    f'method="exact" takes {name} for at most {largest[name]} columns that may '
                    f"change, got {problem.n_features}; name others in forbidden, or use "
                    'method="mip"'
                )
    if (method == "mip" or problem.kind == "any") and not (problem.step_weights > 0).all():
        raise ValueError(
            'step_weights must all be positive for method="mip" and for integer_steps="any"; a '
            "weight of 0 leaves the size of its step unbounded"
        )
