"""`fit`: the best coordinate path for data, by the search that fits the problem."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Literal

from numpy.typing import ArrayLike

from jaxrules import checks
from jaxrules.fits import Fit, Status
from jaxrules.guard import guarded
from jaxrules.paths import bounded, exact, given_end, integer, local, logistic, mip
from jaxrules.paths.costs import LossCost
from jaxrules.paths.data import MOST_STEPS, CostName, ModelSpace, check_step_weights
from jaxrules.paths.logistic import SequentialCertificate
from jaxrules.paths.model import CoordinatePath
from jaxrules.paths.problem import Changes, IntegerSteps, PathProblem
from jaxrules.runs import Deadline, ProgressOption, Run
from jaxrules.solvers.layered import Certificate
from jaxrules.table import MissingRule, holds_classes
from jaxrules.training import settings

Method = Literal["exact", "mip", "local"]

_MODEL_SHARE = 0.3
"""Share of the remaining time for the search on each quadratic model of the logistic cost."""
_MOST_RESTARTS = 100_000
"""Their orders are drawn at once."""


@guarded
def fit(
    X: Any,
    y: ArrayLike,
    *,
    steps: int = 10,
    step_weights: float | ArrayLike = 1.0,
    start: Any = None,
    end: Any = None,
    method: Method = "exact",
    cost: CostName | None = None,
    l2_penalty: float = 0.0,
    intercept: bool = True,
    standardise: bool = False,
    integer_steps: IntegerSteps | None = None,
    lower: Any = None,
    upper: Any = None,
    forbidden: Iterable[Any] = (),
    batch: int = 2,
    restarts: int = 20,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    sample_weight: ArrayLike | None = None,
    progress: ProgressOption = False,
    missing: MissingRule = "refuse",
) -> Fit[CoordinatePath]:
    """The coordinate path b_1, ..., b_K with the least sum_k alpha_k c(b_k), Eq. (7) and (9).

    Every step changes one coefficient. Models are lists of coefficients in column order: a numeric
    column has one, a categorical column one for the 0/1 indicator of each category.

    Args:
        X: rows of features.
        y: the target, shape (rows,); two classes for the logistic cost.
        steps: K.
        step_weights: alpha_1, ..., alpha_K, at least 0 and the last one positive (a
            distribution over where the reader stops, Section 5.2); or a number gamma for
            alpha_k = gamma^k (Definition 1).
        start: b_0, an old model to update (Fig. 3): coefficients by column name, as an array, or a
            path, for its last model. Default: all zero.
        end: a given b_K to explain, in the same forms (Eq. 2).
        method: "exact" proves optimality by a dedicated search (integer steps with any side
            condition, real ones with an end or with bounds); "mip" solves small problems with any
            side conditions by mixed-integer programming; "local" improves random sequences, for
            hundreds of features, without a certificate.
        cost: "squared", the mean squared error, or "logistic", the mean of log(1 + exp(-y f)); None
            for the latter if y holds classes (see `jaxrules.table.holds_classes`).
        l2_penalty: added to the cost, times |b|^2.
        intercept: let every model have its best intercept; it is not a step.
        standardise: divide the columns, and the target of the squared cost, by their standard
            deviations; coefficients, bounds and costs are then in these units.
        integer_steps: steps of "any" integer size (S_SLIM, Section 5.1) or of
            one point ("unit", S'_SLIM).
        lower, upper: bounds on the coefficients of all models: one number, by
            column name, or an array.
        forbidden: names or positions of columns that no step may change.
        batch: q, the number of steps that local improvement reassigns at once (appendix C).
        restarts: random starts of local improvement, at most 100 000, besides the greedy one.
            With method="exact" local improvement precedes a long proof, so that a fit cut short
            is no worse than a local one.
        seed: of the random starts.
        time_limit: seconds, or a `jaxrules.Deadline`; the best path so far is
            returned with its proved gap.
        sample_weight: weights of the rows, shape (rows,).
        progress: False, True for a bar, or a function of one `Progress`.
        missing: "refuse", or "own_category": a column that says where values are missing.

    Returns:
        A Fit whose model is a `CoordinatePath`; objective sum_k alpha_k c(b_k) computed from the
        models; bound for "exact" and "mip". Details:
        `nodes` (states examined), and for the logistic cost `model_objective` and `model_bound`,
        which certify the last quadratic model only, not the logistic problem itself.

    Raises:
        TypeError, ValueError: for invalid or inconsistent arguments.
    """
    cost = ("logistic" if holds_classes(y) else "squared") if cost is None else cost
    options = settings("paths", locals())
    weights = check_step_weights(
        step_weights, checks.integer("steps", steps, at_least=1, at_most=MOST_STEPS)
    )
    checks.choice("method", method, ("exact", "mip", "local"))
    checks.choice("integer_steps", integer_steps, (None, "any", "unit"))
    batch = min(checks.integer("batch", batch, at_least=1, at_most=3), len(weights))
    restarts, seed = (
        checks.integer("restarts", restarts, at_least=1, at_most=_MOST_RESTARTS),
        checks.seed(seed),
    )
    run = Run("paths", time_limit, progress)

    space = ModelSpace.of(
        X,
        y,
        cost=cost,
        start=start,
        forbidden=forbidden,
        l2_penalty=l2_penalty,
        intercept=intercept,
        standardise=standardise,
        sample_weight=sample_weight,
        missing=missing,
    )
    problem = space.problem(weights, kind=integer_steps, lower=lower, upper=upper, end=end)
    check_method(problem, method, cost)
    changes = space.cost_of_changes
    certificate = (
        SequentialCertificate.of(changes, problem)
        if isinstance(changes, LossCost)
        else problem.certificate()
    )

    solve = functools.partial(_solve, method=method, batch=batch, restarts=restarts, seed=seed)
    proves = method != "local" and not isinstance(certificate, SequentialCertificate)
    status = Status.INTERRUPTED
    with run:
        status = _search(problem, certificate, solve, run, proves=proves, batch=batch, seed=seed)
    path = space.path(certificate.solution, weights, options)
    if isinstance(certificate, SequentialCertificate):
        model = certificate.model
        details = {"model_objective": model.objective, "model_bound": model.bound}
        return run.finish(path, path.loss, "min", status, nodes=model.nodes, **details)
    bound = min(max(certificate.bound, 0.0), path.loss) if proves else None
    return run.finish(path, path.loss, "min", status, bound, nodes=certificate.nodes)


def _search(
    problem: PathProblem,
    certificate: Certificate[Changes],
    solve: Callable[..., Status],
    run: Run,
    *,
    proves: bool,
    batch: int,
    seed: int,
) -> Status:
    """Improve the certificate by `solve`, or for the logistic cost by one after the
    other of its quadratic models.
    """

    def tell(objective: float) -> None:
        run.step(objective, problem.steps, bound=max(certificate.bound, 0.0) if proves else None)

    run.phase = "start"
    tell(certificate.objective)
    run.phase = "search"
    certificate.improved = tell
    if not isinstance(certificate, SequentialCertificate):
        return solve(problem, certificate, run)
    return logistic.search(
        problem,
        certificate,
        lambda model, known: solve(model, known, run.child(_MODEL_SHARE)),
        run.stopped,
        batch=batch,
        seed=seed,
    )


def _solve(
    problem: PathProblem,
    certificate: Certificate[Changes],
    run: Run,
    *,
    method: Method,
    batch: int,
    restarts: int,
    seed: int,
) -> Status:
    """Improve the certificate by the method that the user named."""
    if method == "local":
        local.search(problem, certificate, run.stopped, batch=batch, restarts=restarts, seed=seed)
        return Status.CONVERGED
    prove(problem, certificate, method, run, batch=batch, restarts=restarts, seed=seed)
    return certificate.status


def prove(
    problem: PathProblem,
    certificate: Certificate[Changes],
    method: Literal["exact", "mip"],
    run: Run,
    *,
    batch: int = 2,
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
        exact.search(problem, certificate, run.stopped, batch=batch, restarts=restarts, seed=seed)


def check_method(problem: PathProblem, method: Method, cost: CostName) -> None:
    """Refuse arguments that the method does not support.

    Raises:
        ValueError: naming the arguments, and a method that supports them.
    """
    present = {
        "integer_steps": problem.kind is not None,
        "end": problem.end is not None,
        "lower or upper": problem.bounded,
    }
    given = [name for name, is_given in present.items() if is_given]
    if cost == "logistic" and (given or method == "mip"):
        what = given[0] if given else 'method="mip"'
        raise ValueError(f'cost="logistic" does not take {what}; use cost="squared", or omit it')
    if method == "local" and given:
        raise ValueError(f'method="local" does not take {given[0]}; use method="mip"')
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
                    "change, got "
                    f'{problem.n_features}; name others in forbidden, or use method="mip"'
                )
    if (method == "mip" or problem.kind == "any") and not (problem.step_weights > 0).all():
        raise ValueError(
            'step_weights must all be positive for method="mip" and for integer_steps="any": '
            "the others would leave steps unbounded"
        )
