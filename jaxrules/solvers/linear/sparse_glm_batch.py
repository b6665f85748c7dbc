"""Many small sparse linear models on the same matrix, solved in one compiled call.

The problems differ in target, row weights or penalty; the objective is that of `jaxrules.solvers.linear.sparse_glm`.
All columns enter every Newton step, so that this is for up to some hundred columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.float64 import x64_kernel
from jaxrules.results import Status
from jaxrules.solvers.linear.design import Design, Floats, Parts, whole
from jaxrules.solvers.linear.proximal_newton import (
    LossName,
    Supports,
    centring_shift,
    dual_bound,
    kkt_violation,
    loss_curvature,
    loss_slope,
    loss_value,
    project_out,
    proximal_newton,
    support_path,
)
from jaxrules.solvers.linear.sparse_glm import NEARLY_PERFECT, Problem, Solution, check_limits, check_penalty


@dataclass(frozen=True)
class Batch(Sequence[Solution]):
    """The solutions of many problems on one matrix; also a sequence of `Solution`.

    Attributes:
        coefficients: (problems, columns).
        intercepts, l1_penalties, objectives, bounds, kkt_residuals: (problems,), as in `Solution`.
        iterations: (problems,) Newton steps.
        converged: (problems,) whether the duality gap met the tolerance.
    """

    coefficients: Floats
    intercepts: Floats
    l1_penalties: Floats
    objectives: Floats
    bounds: Floats
    kkt_residuals: Floats
    iterations: NDArray[np.intp]
    converged: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.intercepts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return Solution(
            self.coefficients[index],
            float(self.intercepts[index]),
            float(self.l1_penalties[index]),
            float(self.objectives[index]),
            float(self.bounds[index]),
            float(self.kkt_residuals[index]),
            int(self.iterations[index]),
            Status.CONVERGED if self.converged[index] else Status.MAX_ITERATIONS,
        )


def solve_batch(
    X: ArrayLike | tuple[ArrayLike, ...] | Design,
    y: ArrayLike,
    l1_penalties: ArrayLike,
    *,
    loss: LossName,
    sample_weight: ArrayLike | None = None,
    intercept: bool = True,
    penalty_factors: ArrayLike | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> Batch:
    """Solve many small problems on the same matrix in one compiled call.

    All columns enter every Newton step: meant for up to some hundred columns; use `solve` for more.

    Args:
        X: as in `solve`.
        y: (rows,) or (problems, rows).
        l1_penalties: one number or (problems,).
        sample_weight: (rows,) or (problems, rows), or None.
        loss, intercept, penalty_factors, tolerance: as in `solve`, the same for all problems.
        max_iterations: bound on the Newton steps of each problem.

    Returns:
        One solution per problem; the number of problems is what y, l1_penalties and sample_weight broadcast to.

    Raises:
        TypeError, ValueError: as `solve`; also if the numbers of problems differ.
    """
    check_limits(tolerance, max_iterations)
    penalties = np.atleast_1d(np.asarray(l1_penalties, np.float64))
    if penalties.ndim != 1 or len(penalties) == 0:
        raise ValueError(f"l1_penalties must be a number or one per problem, got shape {penalties.shape}")
    for penalty in penalties:
        check_penalty("l1_penalties", penalty)
    problems = _problems(X, y, loss, sample_weight, intercept, penalty_factors, len(penalties))
    penalties = np.broadcast_to(penalties, len(problems))
    design, factors = problems[0].design, problems[0].factors
    size, padded = _batch_shape(design, problems)
    result = _solve_all(
        design.take(np.arange(design.n_columns), size),
        _stack([problem.weights for problem in problems], padded),
        _stack([problem.target for problem in problems], padded),
        _stack(penalties[:, None] * factors[:size], padded),
        tolerance,
        max_iterations,
        loss=loss,
        fit_intercept=intercept,
    )
    result = _AllSolved(*(field[: len(problems)] for field in result))
    coefficients = result.coefficients[:, : design.n_columns] / design.scale
    within = np.array([problem.within for problem in problems])
    worth = np.array([problem.worth for problem in problems])
    objectives, bounds = result.objective + within, result.bound + within
    shift = coefficients @ design.centre - [problem.level for problem in problems] if intercept else 0.0
    violation = result.violation[:, : design.n_columns] * design.scale
    return Batch(
        coefficients,
        result.intercept - shift,
        penalties,
        objectives,
        bounds,
        violation.max(axis=1, initial=0.0),
        result.steps.astype(np.intp),
        objectives - bounds <= tolerance * np.maximum(objectives, NEARLY_PERFECT * worth),
    )


@dataclass(frozen=True)
class SupportSizes:
    """Solutions of many problems with 1, 2, ..., max_size non-zero coefficients.

    Attributes:
        coefficients: (problems, max_size, columns); zero where not found.
        intercepts: (problems, max_size).
        l1_penalties: (problems, max_size), about the smallest penalty with this support size.
        found: (problems, max_size) whether the size occurs on the path that was walked.
    """

    coefficients: Floats
    intercepts: Floats
    l1_penalties: Floats
    found: NDArray[np.bool_]


def solve_support_sizes(
    X: ArrayLike | tuple[ArrayLike, ...] | Design,
    y: ArrayLike,
    max_size: int,
    *,
    loss: LossName,
    sample_weight: ArrayLike | None = None,
    intercept: bool = True,
    penalty_factors: ArrayLike | None = None,
    ratio: float = 0.85,
    n_penalties: int = 60,
    bisections: int = 10,
    tolerance: float = 1e-5,
) -> SupportSizes:
    """For many problems on one matrix, the solutions of every support size up to `max_size`, in one call.

    Each problem walks down a geometric path until the support exceeds `max_size`; every size it met is then
    refined by bisection to its smallest penalty. Sizes that the path skips (columns that enter together) are
    reported as not found; the next larger one is then the closest.

    Args:
        X, y, loss, sample_weight, intercept: as in `solve_batch`.
        penalty_factors: (columns,) positive, or None for ones.
        max_size: the largest support.
        ratio: between the penalties of the path, in (0, 1).
        n_penalties: length of the path.
        bisections: refinements of each penalty, each halves its (logarithmic) uncertainty.
        tolerance: of the optimality conditions, relative to the penalty.

    Raises:
        TypeError, ValueError: as `solve_batch`; also for options out of range.
    """
    check_limits(tolerance, n_penalties)
    if max_size < 1:
        raise ValueError(f"max_size must be at least 1, got {max_size}")
    if not 0 < ratio < 1:
        raise ValueError(f"ratio must lie between 0 and 1, got {ratio}")
    if bisections < 0:
        raise ValueError(f"bisections must be at least 0, got {bisections}")
    problems = _problems(X, y, loss, sample_weight, intercept, penalty_factors, 1)
    design = problems[0].design
    if (problems[0].factors == 0).any():
        raise ValueError("penalty_factors must be positive: columns without a penalty belong to every support")
    size, padded = _batch_shape(design, problems)
    walked = _walk_all(
        design.take(np.arange(design.n_columns), size),
        _stack([problem.weights for problem in problems], padded),
        _stack([problem.target for problem in problems], padded),
        problems[0].factors[:size],
        ratio,
        n_penalties,
        bisections,
        tolerance,
        loss=loss,
        fit_intercept=intercept,
        max_size=max_size,
    )
    coefficients = walked.coefficients[: len(problems), :, : design.n_columns] / design.scale
    shift = coefficients @ design.centre - np.array([[problem.level] for problem in problems]) if intercept else 0.0
    found = walked.found[: len(problems)]
    return SupportSizes(
        coefficients,
        np.where(found, walked.intercepts[: len(problems)] - shift, 0.0),
        walked.penalties[: len(problems)],
        found,
    )


class _AllSolved(NamedTuple):
    coefficients: Any
    intercept: Any
    objective: Any
    bound: Any
    violation: Any
    steps: Any


@x64_kernel(static=("loss",))
def _solve_all(
    parts: Parts,
    weights: jax.Array,
    target: jax.Array,
    penalties: jax.Array,
    tolerance: jax.Array,
    max_steps: jax.Array,
    *,
    loss: LossName,
    fit_intercept: jax.Array,
) -> _AllSolved:
    columns = whole(parts)

    def one(weights: jax.Array, target: jax.Array, penalties: jax.Array) -> _AllSolved:
        nothing = jnp.zeros_like(target)
        start = centring_shift(loss, weights, target, nothing, fit_intercept)
        # With violations of at most half a tolerance of the smallest penalty the gap is within the tolerance,
        # as the penalty term is part of the objective.
        first = jnp.max(jnp.abs(columns @ (weights * loss_slope(loss, target, nothing + start))))
        smallest = jnp.min(jnp.where(penalties > 0, penalties, jnp.inf))
        accuracy = tolerance / 2 * jnp.minimum(smallest, first)
        at = proximal_newton(
            columns,
            weights,
            target,
            penalties,
            jnp.zeros_like(penalties),
            start,
            loss=loss,
            fit_intercept=fit_intercept,
            tolerance=accuracy,
            max_steps=max_steps,
        )
        shift = centring_shift(loss, weights, target, at.score, fit_intercept)
        score = at.score + shift
        row_slope = loss_slope(loss, target, score)
        slope = columns @ (weights * row_slope)
        curvature = loss_curvature(loss, score)
        dual = project_out(columns, penalties == 0, weights, row_slope, curvature, fit_intercept)
        objective = weights @ loss_value(loss, target, score) + penalties @ jnp.abs(at.coefficients)
        bound = dual_bound(loss, weights, target, dual, columns @ (weights * dual), penalties)
        violation = kkt_violation(at.coefficients, slope, penalties)
        return _AllSolved(at.coefficients, at.intercept + shift, objective, bound, violation, at.steps)

    return jax.vmap(one)(weights, target, penalties)


@x64_kernel(static=("loss", "max_size"))
def _walk_all(
    parts: Parts,
    weights: jax.Array,
    target: jax.Array,
    factors: jax.Array,
    ratio: jax.Array,
    n_penalties: jax.Array,
    bisections: jax.Array,
    tolerance: jax.Array,
    *,
    loss: LossName,
    fit_intercept: jax.Array,
    max_size: int,
) -> Supports:
    columns = whole(parts)

    def one(weights: jax.Array, target: jax.Array) -> Supports:
        return support_path(
            columns,
            weights,
            target,
            factors,
            loss=loss,
            fit_intercept=fit_intercept,
            max_size=max_size,
            ratio=ratio,
            n_penalties=n_penalties,
            bisections=bisections,
            tolerance=tolerance,
        )

    return jax.vmap(one)(weights, target)


def _problems(
    X: ArrayLike | tuple[ArrayLike, ...] | Design,
    y: ArrayLike,
    loss: LossName,
    sample_weight: ArrayLike | None,
    intercept: bool,
    penalty_factors: ArrayLike | None,
    at_least: int,
) -> list[Problem]:
    """One problem per row of y or sample_weight, all on one design."""
    design = Design.of(X, intercept=intercept)
    targets = np.atleast_2d(np.asarray(y))
    weights = None if sample_weight is None else np.atleast_2d(np.asarray(sample_weight, np.float64))
    counts = {len(targets), 1 if weights is None else len(weights), at_least} - {1}
    if len(counts) > 1 or targets.ndim != 2 or (weights is not None and weights.ndim != 2):
        raise ValueError(
            "y, sample_weight and the penalties must be for one problem or for the same number of problems, "
            f"got {len(targets)}, {1 if weights is None else len(weights)} and {at_least}"
        )
    count = counts.pop() if counts else 1
    return [
        Problem.of(
            design,
            targets[i % len(targets)],
            loss,
            None if weights is None else weights[i % len(weights)],
            intercept,
            penalty_factors,
        )
        for i in range(count)
    ]


def _batch_shape(design: Design, problems: Sequence[Problem]) -> tuple[int, int]:
    """The padded numbers of columns and of problems."""
    return -(-max(design.n_columns, 1) // 8) * 8, 1 << (len(problems) - 1).bit_length()


def _stack(rows: Sequence[Floats] | Floats, count: int) -> Floats:
    """Rows stacked and padded with rows of zeros, which make problems that are solved at once."""
    stacked = np.asarray(rows)
    return np.concatenate([stacked, np.zeros((count - len(stacked), stacked.shape[1]))])
