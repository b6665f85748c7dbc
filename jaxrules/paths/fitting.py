"""`fit`: the best coordinate path for data, by the search that fits the problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from jaxrules.paths import exact, given_end, integer, local, mip
from jaxrules.paths.certificate import Certificate
from jaxrules.paths.costs import Array, Quadratic, best_path, greedy_path
from jaxrules.paths.logistic import LogisticCost
from jaxrules.paths.model import CoordinatePath
from jaxrules.paths.problem import CostName, Problem, check_step_weights, check_steps
from jaxrules.results import Deadline, Fit, ProgressOption, Run, Status
from jaxrules.table import MissingRule

Method = Literal["exact", "mip", "local"]
LOGISTIC_ROUNDS = 10


def fit(
    X: Any,
    y: ArrayLike,
    steps: int = 10,
    step_weights: float | ArrayLike = 1.0,
    start: Any = None,
    end: Any = None,
    method: Method = "exact",
    cost: CostName = "squared",
    l2_penalty: float = 0.0,
    intercept: bool = True,
    standardise: bool = False,
    integer_steps: Literal["any", "unit"] | None = None,
    lower: Any = None,
    upper: Any = None,
    forbidden: Iterable[Any] = (),
    batch: int = 2,
    restarts: int = 20,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    progress: ProgressOption = False,
    missing: MissingRule = "refuse",
) -> Fit[CoordinatePath]:
    """The coordinate path b_1, ..., b_K with the least sum_k alpha_k c(b_k), Eq. (7) and (9).

    Every step changes one coefficient. Models are lists of coefficients in column order: numbers first come
    as they are, categories as 0/1 columns of their own (all of them).

    Args:
        X: rows of features.
        y: the target, shape (rows,); two classes for the logistic cost.
        steps: K.
        step_weights: alpha_1, ..., alpha_K, at least 0 and the last one positive (a distribution over where
            the reader stops, Section 5.2); or a number gamma for alpha_k = gamma^k (Definition 1).
        start: b_0, an old model to be updated (Fig. 3): coefficients by column name, as an array, or a path,
            whose last model is taken. Default: all zero.
        end: a given b_K to be explained, in the same forms (Eq. 2).
        method: "exact" proves optimality by a dedicated search (integer steps with any side condition, real ones
            with all but bounds); "mip" takes every side condition, by mixed-integer programming, for small problems;
            "local" improves random sequences, for hundreds of features, without certificate.
        cost: "squared", the mean squared error, or "logistic", the mean of log(1 + exp(-y f)).
        l2_penalty: added to the cost, times |b|^2.
        intercept: let every model have its best intercept; it is not a step.
        standardise: divide the columns, and the target of the squared cost, by their standard deviations;
            coefficients, bounds and costs are then in these units.
        integer_steps: steps of "any" integer size (S_SLIM, Section 5.1) or of one point ("unit", S'_SLIM).
        lower, upper: bounds on the coefficients of all models: one number, by column name, or an array.
        forbidden: names or positions of columns that no step may change.
        batch: q, the number of steps that local improvement reassigns at once (appendix C).
        restarts: random starts of local improvement, beside the greedy one.
        seed: of the random starts.
        time_limit: seconds, or a `Deadline`; the best path so far is returned with the gap that is proved.
        sample_weight: weights of the rows, shape (rows,).
        progress: False, True for a bar, or a function of one `Progress`.
        missing: "refuse", or "own_category": a column that says where values are missing.

    Returns:
        A Fit whose model is a `CoordinatePath`; objective sum_k alpha_k c(b_k) computed from the models; bound
        for "exact" and "mip". Details: `nodes` (states examined), and for the logistic cost `model_objective` and
        `model_bound`, which certify the last quadratic model only, not the logistic problem itself.

    Raises:
        TypeError, ValueError: for arguments that are wrong or do not fit together.
    """
    steps = check_steps(steps)
    weights = check_step_weights(step_weights, steps)
    if method not in ("exact", "mip", "local"):
        raise ValueError(f'method must be "exact", "mip" or "local", got {method!r}')
    if integer_steps not in (None, "any", "unit"):
        raise ValueError(f'integer_steps must be None, "any" or "unit", got {integer_steps!r}')
    batch, restarts = check_steps(batch, "batch"), check_steps(restarts, "restarts")
    if batch > 3:
        raise ValueError(f"batch must be 1, 2 or 3, got {batch}: the work grows as columns^batch")
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed must be an integer of at least 0, got {seed!r}")
    problem = Problem.of(
        X, y, cost=cost, l2_penalty=l2_penalty, intercept=intercept, standardise=standardise,
        sample_weight=sample_weight, missing=missing,
    )  # fmt: skip
    first = problem.coefficients(start, "start")
    columns = problem.allowed(forbidden)
    conditions = Conditions.of(problem, first, end, integer_steps, lower, upper, columns, weights)
    conditions.check_method(method, cost)
    run = Run("paths", time_limit, progress)

    def solve(quadratic: Quadratic) -> Certificate:
        reduced = quadratic.around(first).restricted(columns)
        if method == "mip":
            return mip.search(reduced, weights, *conditions.arguments, run)
        if integer_steps is not None:
            return integer.search(reduced, weights, integer_steps, *conditions.arguments[1:], run)
        if method == "exact" and conditions.end is not None:
            return given_end.search(reduced, weights, conditions.end, run)
        if method == "exact":
            return exact.search(reduced, weights, run)
        return _improve(reduced, weights, batch, restarts, seed, run)

    if isinstance(problem.cost, LogisticCost):
        return _fit_logistic(problem, problem.cost, solve, first, columns, weights, batch, seed, run)
    certificate = solve(problem.cost)
    models = with_start(certificate.models, first, columns)
    path = problem.path(columns[certificate.sequence], models, weights)
    objective = path.loss
    if method == "local":
        return run.finish(path, objective, "min", Status.CONVERGED, nodes=certificate.nodes)
    proved = mip.closed(certificate) if method == "mip" else certificate.closed
    bound = min(max(certificate.bound, 0.0), objective)
    return run.finish(
        path, objective, "min", Status.OPTIMAL if proved else Status.STALLED, bound, nodes=certificate.nodes
    )


def with_start(changes: Array, first: Array, columns: Any) -> Array:
    """b_0, ..., b_K from the changes of the allowed columns, shape (steps + 1, all columns)."""
    models = np.repeat(first[None], len(changes) + 1, axis=0)
    models[1:, columns] += changes
    return models


def _improve(cost: Quadratic, step_weights: Array, batch: int, restarts: int, seed: int, run: Run) -> Certificate:
    """Local improvement of the greedy sequence and of random ones."""
    steps, d = len(step_weights), len(cost.linear)
    certificate = Certificate.of(cost, step_weights)
    starts = np.concatenate([greedy_path(cost, steps)[0][None], local.random_sequences(d, steps, restarts, seed)])
    certificate.offer(starts[0], best_path(cost, step_weights, starts[0]))
    limited = np.isfinite(run.deadline.remaining())
    with run:
        for some in np.array_split(starts, -(-len(starts) // 4) if limited else 1):
            if run.stopped():
                break
            found = local.improve(cost, step_weights, some, batch=min(batch, steps), seed=seed)[0]
            certificate.offer(found, best_path(cost, step_weights, found))
            run.step(certificate.objective, steps)
    return certificate


def _fit_logistic(
    problem: Problem,
    cost: LogisticCost,
    solve: Callable[[Quadratic], Certificate],
    first: Array,
    columns: Any,
    step_weights: Array,
    batch: int,
    seed: int,
    run: Run,
) -> Fit[CoordinatePath]:
    """Sequential quadratic models: search a sequence on the model around the last path's end, refit it, improve it."""
    reference = first
    best = np.repeat(first[None], len(step_weights), axis=0)
    features = np.full(len(step_weights), columns[0])
    objective = np.inf
    status = Status.MAX_ITERATIONS
    for _ in range(LOGISTIC_ROUNDS):
        certificate = solve(cost.quadratic(reference))
        sequence = columns[certificate.sequence]
        models = cost.best_path(step_weights, sequence, first)
        with run:
            if not run.stopped():
                sequence, models = _improve_logistic(cost, step_weights, sequence, models, first, columns, batch, seed)
        value = float(step_weights @ cost(models))
        if value >= objective - 1e-9 * abs(objective) and np.isfinite(objective):
            status = Status.CONVERGED
            break
        features, best, objective = sequence, models, value
        reference = models[-1]
        run.step(objective, len(step_weights))
        if run.stopped():
            break
    path = problem.path(features, np.concatenate([first[None], best]), step_weights)
    return run.finish(
        path, path.loss, "min", status, nodes=certificate.nodes,
        model_objective=certificate.objective, model_bound=certificate.bound,
    )  # fmt: skip


def _improve_logistic(
    cost: LogisticCost,
    step_weights: Array,
    sequence: Any,
    models: Array,
    first: Array,
    columns: Any,
    batch: int,
    seed: int,
) -> tuple[Any, Array]:
    """Local improvement on the quadratic models around every step's own model, while the true cost falls."""
    objective = float(step_weights @ cost(models))
    for _ in range(LOGISTIC_ROUNDS):
        P, G, constant = cost.system(step_weights, models, first)
        start = np.searchsorted(columns, sequence)[None]
        found = local.improve_weighted(
            P[:, columns[:, None], columns], G[:, columns], constant, start,
            batch=min(batch, len(step_weights)), seed=seed,
        )[0]  # fmt: skip
        candidate = cost.best_path(step_weights, columns[found], first)
        value = float(step_weights @ cost(candidate))
        if value >= objective - 1e-9 * abs(objective):
            break
        sequence, models, objective = columns[found], candidate, value
    return sequence, models


@dataclass(frozen=True)
class Conditions:
    """Side conditions on the change of the allowed columns from the start."""

    kind: Literal["any", "unit"] | None
    lower: Array
    upper: Array
    end: Array | None
    positive_weights: bool

    @classmethod
    def of(
        cls,
        problem: Problem,
        first: Array,
        end: Any,
        kind: Literal["any", "unit"] | None,
        lower: Any,
        upper: Any,
        columns: Any,
        step_weights: Array,
    ) -> Conditions:
        """Read and check them.

        Raises:
            ValueError: for bounds that exclude each other or the start, and an end that no path reaches.
        """
        low = problem.by_column(-np.inf if lower is None else lower, "lower", -np.inf)
        high = problem.by_column(np.inf if upper is None else upper, "upper", np.inf)
        if np.isnan(low).any() or np.isnan(high).any():
            raise ValueError("lower and upper must not be NaN; use -inf and inf for no bound")
        if (low > high).any():
            raise ValueError("lower exceeds upper for some column; no coefficient lies between them")
        if ((first < low) | (first > high)).any():
            raise ValueError("start violates lower or upper; every model of the path must keep them")
        change = None
        if end is not None:
            last = problem.coefficients(end, "end")
            if ((last < low) | (last > high)).any():
                raise ValueError("end violates lower or upper; every model of the path must keep them")
            change = last - first
            frozen = np.setdiff1d(np.flatnonzero(change), columns)
            if len(frozen):
                names = [problem.names[j] for j in frozen]
                raise ValueError(f"end differs from start in the forbidden columns {names}")
            if kind is not None:
                whole = np.round(change)
                if (np.abs(change - whole) > 1e-9).any():
                    raise ValueError("end is not reachable by integer steps: it differs from start by fractions")
                change = whole
            needed = int(np.abs(change).sum()) if kind == "unit" else int((change != 0).sum())
            if needed > len(step_weights):
                raise ValueError(
                    f"end is not reachable in {len(step_weights)} steps: it takes at least {needed}; raise steps"
                )
            change = change[columns]
        low, high = low[columns] - first[columns], high[columns] - first[columns]
        return cls(kind, low, high, change, bool((step_weights > 0).all()))

    @property
    def arguments(self) -> tuple[Literal["any", "unit"] | None, Array, Array, Array | None]:
        return self.kind, self.lower, self.upper, self.end

    def check_method(self, method: Method, cost: CostName) -> None:
        """Refuse what the method cannot do.

        Raises:
            ValueError: naming the arguments, and the method that can.
        """
        bounded = bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())
        given = [
            name
            for name, present in (
                ("integer_steps", self.kind is not None),
                ("end", self.end is not None),
                ("lower or upper", bounded),
            )
            if present
        ]
        if cost == "logistic" and (given or method == "mip"):
            what = given[0] if given else 'method="mip"'
            raise ValueError(f'cost="logistic" does not take {what}; use cost="squared", or leave it out')
        if method == "local" and given:
            raise ValueError(f'method="local" does not take {given[0]}; use method="mip"')
        if method == "exact" and self.kind is None and bounded:
            raise ValueError('method="exact" takes lower or upper with integer_steps only; use method="mip"')
        if method == "exact" and self.kind is None and self.end is not None and len(self.end) > given_end.MAX_FEATURES:
            raise ValueError(
                f'method="exact" takes end for at most {given_end.MAX_FEATURES} columns that may change, got '
                f'{len(self.end)}; name others in forbidden, or use method="mip"'
            )
        if (method == "mip" or self.kind == "any") and not self.positive_weights:
            raise ValueError(
                'step_weights must all be positive for method="mip" and for integer_steps="any": '
                "the others would leave steps unbounded"
            )
