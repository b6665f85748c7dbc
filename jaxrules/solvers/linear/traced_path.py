"""Paths of L1-penalised linear models as one JAX program, for several problems on the same columns
at once: folds and classes are lanes of `jax.vmap`, penalties steps of `jax.lax.scan`.

Proximal Newton (`proximal_newton`) on working sets, as in `sparse_glm`, finds each solution from
the one before; working sets have a fixed size, which doubles when the support fills it. The
quadratic model plus the penalty is minimised by FISTA (Beck and Teboulle 2009, "A fast iterative
shrinkage-thresholding algorithm", with the restarts of O'Donoghue and Candès 2015), which finds the
support, and Newton steps on the support. Proximal steps are matrix products; coordinate descent,
which needs fewer steps on the host, would update one coefficient at a time.

`sparse_glm.SparseProblem.solve` starts from these solutions: it computes the certificate on the
host, and continues if a solution has not converged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike, NDArray

from jaxrules.losses import Loss
from jaxrules.rules.rows import check_memory
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.solvers.linear.penalties import L1
from jaxrules.solvers.linear.proximal_newton import (
    INEXACT,
    Iterate,
    NewtonData,
    SecondOrderModel,
    advance,
    derivatives,
    first_iterate,
    objective,
    second_order,
)
from jaxrules.solvers.linear.quadratic import NEWTON_RIDGE, best_along
from jaxrules.solvers.linear.sparse_glm import SparseProblem, SparseSolution
from jaxrules.solvers.linear.working_sets import NEARLY_PERFECT
from jaxrules.solvers.shapes import bucket
from jaxrules.tools.bits import unpack
from jaxrules.tools.float64 import on_device, x64_kernel

Floats = NDArray[np.float64]
Start = tuple[Floats, float]
"""Coefficients and intercept."""

_CHUNK = 10  # penalties of one call: between two, a path may end
_STEPS = 50  # Newton steps for one penalty
_ROUNDS = 40  # of proximal steps and a support Newton step, for one quadratic model
_PROXIMAL_STEPS = 50  # of FISTA in a round
_SHARE = 0.3  # of the gap that the violation may leave by its first-order bound
_VISITS = 20  # of working sets, for one penalty
_WIDTH = 128  # columns of the first working sets; doubled until they hold the support
_FILLED = 0.75  # share of a working set that the support may take


class Lane(NamedTuple):
    """What differs between problems on the same columns.

    Attributes:
        weights, target: (rows,) as in `proximal_newton.NewtonData`.
        signs: (2, k) as in `quadratic.Quadratic`.
        floor, least: scalars; the gap is relative to the objective minus `floor`, or to `least` if
            that is larger.
    """

    weights: Array
    target: Array
    signs: Array
    floor: Array
    least: Array


def minimum(
    model: SecondOrderModel[Array], at: Iterate[Array], penalty: L1, tolerance: Array
) -> Array:
    """The coefficients (k,) that minimise a quadratic model plus the penalty, up to this KKT
    violation or the most rounds; as `Quadratic.minimum`.
    """
    hessian, anchor = model.hessian, at.coefficients
    # The slope once the intercept follows, as `without_intercept` for the Hessian.
    linear = at.gradient - model.coupling * (at.intercept_gradient / model.total)
    sizes = jnp.abs(hessian)
    # Two bounds on the largest eigenvalue: the greatest row sum, and Frobenius' norm.
    steepest = jnp.minimum(sizes.sum(axis=1).max(), jnp.sqrt(jnp.sum(sizes**2)))
    rate = 1 / (steepest + jnp.finfo(anchor.dtype).tiny)
    ridge = NEWTON_RIDGE * jnp.diagonal(hessian).max() + jnp.finfo(anchor.dtype).tiny

    def gradient_at(b: Array) -> Array:
        return linear + hessian @ (b - anchor)

    def proximal_step(_: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        b, ahead, t = state
        free = ahead - rate * gradient_at(ahead)
        size = jnp.maximum(jnp.abs(free) - rate * penalty.prices, 0)
        new = penalty.allowed(jnp.sign(free) * size)
        t = jnp.where((ahead - new) @ (new - b) > 0, 1.0, t)  # restart where momentum climbs
        following = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
        return new, new + (t - 1) / following * (new - b), following

    def support_newton(b: Array) -> Array:
        gradient, on = gradient_at(b), (b != 0) | (penalty.prices == 0)
        # Off the support the matrix is the identity and the right side 0: the shape does not depend
        # on the support, and those coefficients stay.
        matrix = jnp.where(on[:, None] & on[None, :], hessian, 0)
        matrix = matrix + jnp.diag(jnp.where(on, ridge, 1.0))
        right = jnp.where(on, gradient + penalty.prices * jnp.sign(b), 0)
        step = -jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(matrix), True), right)
        step = jnp.where(jnp.isnan(step).any(), 0, step)
        return jnp.asarray(best_along(hessian, penalty, b, gradient, step, b[None]))

    def unfinished(state: tuple[Array, Array]) -> Array:
        b, rounds = state
        violation = penalty.violation(b, gradient_at(b)).max()
        return (violation > tolerance) & (rounds < _ROUNDS)

    def one_round(state: tuple[Array, Array]) -> tuple[Array, Array]:
        b, rounds = state
        # If the support of the start is right, one Newton step suffices.
        n = jnp.where(rounds == 0, 0, _PROXIMAL_STEPS)
        b, _, _ = lax.fori_loop(0, n, proximal_step, (b, b, jnp.ones((), b.dtype)))
        return support_newton(b), rounds + 1

    return lax.while_loop(unfinished, one_round, (anchor, jnp.int32(0)))[0]


class Place(NamedTuple):
    """The state of a lane: coefficients (k,), intercept, score (rows,), gradient of the loss (k,),
    the largest KKT violation and the objective.
    """

    coefficients: Array
    intercept: Array
    score: Array
    gradient: Array
    violation: Array
    objective: Array


class PathTask(NamedTuple):
    """A lane at one penalty."""

    data: NewtonData[Array]
    lane: Lane
    penalty: L1
    tolerance: Array

    def allowed(self, at: Place | Iterate[Array]) -> Array:
        """The KKT violation to stop at: a violation of v leaves a gap of about v sum |b|; see also
        `SparseProblem.converged`.
        """
        prices = self.penalty.prices
        tiny = jnp.finfo(prices.dtype).tiny
        gap = self.tolerance * jnp.maximum(at.objective - self.lane.floor, self.lane.least)
        size = jnp.abs(at.coefficients).sum() + tiny
        least = jnp.where(prices > 0, prices, jnp.inf).min()
        return jnp.minimum(_SHARE * gap / size, jnp.sqrt(self.tolerance) * least / 2)

    def place(self, loss: Loss, b: Array, intercept: Array, score: Array) -> Place:
        """The place with these scores."""
        gradient, _, violation = derivatives(loss, self.data, self.penalty, b, score)
        value = objective(loss, self.data, self.penalty, b, score)
        return Place(b, intercept, score, gradient, violation, value)


def visit(loss: Loss, task: PathTask, at: Place, width: int) -> Place:
    """Proximal Newton on the support and the columns closest to entering it."""
    data, penalty = task.data, task.penalty
    must = (at.coefficients != 0) | (penalty.prices == 0)
    closeness = jnp.where(must, jnp.inf, penalty.pull(at.gradient) / penalty.prices)
    _, working = lax.top_k(closeness, width)
    violation = penalty.violation(at.coefficients, at.gradient)
    # As on the host (`WorkingSets.minimise`): a working set is not solved far more accurately than
    # the columns outside it allow.
    outside = violation.at[working].set(0).max()
    inside = data._replace(columns=data.columns[working])
    some = penalty.take(working)

    def limit(step: Iterate[Array]) -> Array:
        return jnp.maximum(task.allowed(step), outside / 5)

    def unfinished(state: tuple[Iterate[Array], Array]) -> Array:
        step, _ = state
        return (step.violation > limit(step)) & (step.steps < _STEPS) & ~step.stalled

    def newton_step(state: tuple[Iterate[Array], Array]) -> tuple[Iterate[Array], Array]:
        step, score = state
        model = second_order(loss, inside, score)
        inner = jnp.maximum(INEXACT * step.violation, limit(step) / 2)
        goal = minimum(model, step, some, inner)
        step, score = advance(loss, inside, some, model, step, score, goal)
        return step._replace(stale=jnp.bool_(True)), score

    first = first_iterate(loss, inside, some, at.coefficients[working], at.intercept, at.score)
    step, score = lax.while_loop(unfinished, newton_step, first)
    # Columns outside the working set are 0: it holds the whole support, as long as `width` does.
    b = at.coefficients.at[working].set(step.coefficients)
    return task.place(loss, b, jnp.asarray(step.intercept), score)


def solve_one(
    loss: Loss, task: PathTask, start: tuple[Array, Array], width: int
) -> tuple[Array, Array]:
    """Coefficients and intercept of one lane at one penalty, from a start.

    Args:
        width: columns of a working set; it must hold the support.
    """

    def unsolved(state: tuple[Place, Array]) -> Array:
        at, visits = state
        return (at.violation > task.allowed(at)) & (visits < _VISITS)

    def next_set(state: tuple[Place, Array]) -> tuple[Place, Array]:
        at, visits = state
        return visit(loss, task, at, width), visits + 1

    b, intercept = start
    first = task.place(loss, b, intercept, intercept + b @ task.data.columns)
    at, _ = lax.while_loop(unsolved, next_set, (first, jnp.int32(0)))
    return at.coefficients, at.intercept


@x64_kernel(static=("loss", "width"))
def _chunk(
    loss: Loss,
    columns: Array,
    lanes: Lane,
    penalties: Array,
    starts: tuple[Array, Array],
    tolerance: Array,
    width: int,
) -> tuple[Array, Array]:
    """Coefficients (penalties, lanes, k) and intercepts (penalties, lanes)."""
    columns = columns.astype(lanes.weights.dtype)

    def lane_at(lane: Lane, start: tuple[Array, Array], prices: Array) -> tuple[Array, Array]:
        data = NewtonData(columns, lane.weights, lane.target, jnp.bool_(True))
        task = PathTask(data, lane, L1(prices, lane.signs), tolerance)
        return solve_one(loss, task, start, width)

    def at_penalty(
        found: tuple[Array, Array], prices: Array
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        found = jax.vmap(lane_at, in_axes=(0, 0, None))(lanes, found, prices)
        return found, found

    return lax.scan(at_penalty, starts, penalties)[1]


@dataclass(eq=False)
class TracedPath:
    """The solutions of some problems, which share their design and penalty factors and have an
    intercept, at descending penalties.

    They are computed when they are first asked for, some penalties at a time. The rows are split
    over the mesh of `jaxrules.rows_over`, if there is one.

    Attributes:
        problems: a lane each.
        penalties: descending.
        tolerance: of the gap, relative.
        begin: where each problem starts: a solution, or coefficients and intercept; None for the
            null model.
    """

    problems: Sequence[SparseProblem]
    penalties: Sequence[float]
    tolerance: float
    begin: Sequence[SparseSolution | tuple[ArrayLike, float] | None] | None = None
    _found: list[tuple[Start, ...]] = field(default_factory=list)
    _last: tuple[Floats, Floats] | None = None
    _arrays: tuple[Array, Lane] | None = None
    _width: int = _WIDTH

    def starts(self, i: int) -> tuple[Start, ...]:
        """Where every problem starts at penalty i."""
        while len(self._found) <= i:
            self._advance()
        return self._found[i]

    def _advance(self) -> None:
        """Solve at the next penalties; the last one is repeated up to the length of a chunk."""
        columns, lanes = self._on_device()
        problem, done = self.problems[0], len(self._found)
        # One shape, one program: the solutions at the repeated penalties are dropped.
        ahead = np.asarray(self.penalties[done : done + _CHUNK], np.float64)
        filled = np.append(ahead, np.full(_CHUNK - len(ahead), ahead[-1]))
        # Columns of padding are zeros; with a price they stay at zero.
        factors = np.ones(columns.shape[0])
        factors[: problem.design.n_columns] = problem.penalty.prices
        if self._last is None:
            self._last = self._begin(columns.shape[0])
        while True:
            weights, intercepts = _chunk(
                problem.loss, columns, lanes, filled[:, None] * factors, self._last,
                self.tolerance, width=min(self._width, len(factors)),
            )  # fmt: skip
            support = np.count_nonzero(weights, axis=2).max()
            # A support that nearly fills its set may lack columns: the whole chunk is solved again,
            # wider.
            if support <= _FILLED * self._width or self._width >= len(factors):
                break
            self._width *= 2
        self._last = weights[-1], intercepts[-1]
        for at, levels in zip(weights[: len(ahead)], intercepts, strict=False):
            pairs = zip(self.problems, at, levels.tolist(), strict=True)
            self._found.append(tuple(one.of_solver(b, level) for one, b, level in pairs))

    def _begin(self, size: int) -> tuple[Floats, Floats]:
        begin = self.begin or [None] * len(self.problems)
        positions = [one.start(at) for one, at in zip(self.problems, begin, strict=True)]
        coefficients = np.zeros((len(positions), size))
        for row, position in zip(coefficients, positions, strict=True):
            row[: len(position.coefficients)] = position.coefficients
        return coefficients, np.array([position.intercept for position in positions])

    def _on_device(self) -> tuple[Array, Lane]:
        """The columns, zeros and ones as bytes, padded so that similar problems share a program."""
        if self._arrays is None:
            design = self.problems[0].design
            k, n = design.n_columns, len(self.problems[0].data.weights)
            rows, size = bucket(n, 64, digits=5), bucket(k, 64, digits=5)
            copies = 1 + 2 * len(self.problems) * min(1.0, 4 * _WIDTH / size)  # of working sets
            check_memory(rows, size, 8 * copies, remedy='set engine="numpy", which keeps bits')
            matrix = design.storage
            dense = unpack(matrix.words, n) if isinstance(matrix, BitColumns) else matrix
            columns = np.pad(dense, ((0, size - k), (0, rows - n)))
            parts = [np.stack(part) for part in zip(*self._lanes(size, rows), strict=True)]
            lanes = Lane(*on_device(parts[:2], rows=1), *on_device(parts[2:]))
            self._arrays = on_device(columns, rows=1), lanes
        return self._arrays

    def _lanes(self, size: int, rows: int) -> list[tuple[Any, ...]]:
        """The parts of every lane."""
        lanes: list[tuple[Any, ...]] = []
        for problem in self.problems:
            signs, known = np.ones((2, size), bool), problem.penalty.signs
            if known is not None:
                signs[:, : known.shape[1]] = known
            behind = (0, rows - len(problem.data.weights))
            weights, target = (np.pad(part, behind) for part in problem.data[1:3])
            floor = np.float64(min(problem.least, 0.0) - problem.constant)
            least = np.float64(NEARLY_PERFECT * problem.worth)
            lanes.append((weights, target, signs, floor, least))
        return lanes
