"""Sparse linear separators: the path of L1-penalised weighted logistic regression, by number of non-zeros.

Minimises, over coefficients w (one per column) and an unpenalised intercept b,

    F(w, b) = sum_i c_i log(1 + exp(-z_i f_i)) + penalty ||w||_1,     f_i = b + sum_j w_j x_ij,

with row weights c and targets z of -1 or +1, and returns for every support size the solution at the smallest
penalty that has this size. As the penalty falls, the solution moves along a smooth curve while its support stays;
an event ends the piece: a column enters the support, or a coefficient reaches zero and leaves it. On a piece, Newton's
method on the support keeps the solution; its tangent says where the next event is to be expected, and the next step
goes there, so that penalty and coefficients converge to the event together (Rosset 2004, "Following curved
regularized optimization solution paths"; Park and Hastie 2007, "L1-regularization path algorithm for generalized
linear models"). A path with supports of up to five columns takes some twenty steps with a 6 x 6 system each, and the
smallest penalty of a support size needs no search over penalties.

Coefficients may be bound to a sign: such a column enters on that side alone, and its optimality condition outside of
the support is the one of that side. Nothing else changes, for a coefficient that reaches zero leaves in any case.

The path ends when a column would enter the largest support, or at `FLOOR`: where the classes are separable the
coefficients would grow without end. What is returned was checked: the optimality conditions hold, for the
columns in the support and for those outside of it.

Everything here may be called inside jit and vmap; the dtype of `columns` rules. Columns come first, as (columns, rows).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

TOLERANCE = 1e-6
"""The largest violation of the optimality conditions in a support, relative to the penalty."""
EVENT = 1e-4
"""The smallest penalty of a support size is met to this accuracy, relative."""
FLOOR = 1e-3
"""The smallest penalty, as a share of the largest one."""
MAX_STEPS = 200

_RIDGE = 1e-11  # added to the Hessian, relative to its diagonal
_COLLINEAR = 1e-8  # a column of which the support leaves no larger share unexplained stays out
_LARGEST_DROP = 0.7  # of the penalty in one step, relative
_LONGEST_STEP = (
    4.0  # largest change of a score: Newton's method is not trusted farther (a curvature falls by e per unit)
)
_NOTHING = 1e-10  # slopes below this, in columns of unit scale and for weights of sum one, are rounding


class Separators(NamedTuple):
    """Solutions by support size: row s - 1 has s non-zero coefficients. Zeros where a size was not found.

    Attributes:
        coefficients: (sizes, columns).
        intercepts: (sizes,).
        penalties: (sizes,) the smallest penalty with this support size on the path walked.
        found: (sizes,) bool. A size does not occur where two columns enter together, say.
        largest_penalty: scalar, the smallest penalty of the empty support.
        steps: scalar int, Newton steps.
    """

    coefficients: Array
    intercepts: Array
    penalties: Array
    found: Array
    largest_penalty: Array
    steps: Array


class _State(NamedTuple):
    """Where a path stands. A slot of the support holds a column while its sign is not 0."""

    slots: Array  # (sizes,) int, columns
    signs: Array  # (sizes,) -1, 0 or 1
    point: Array  # (1 + sizes,) intercept and coefficients
    score: Array  # (rows,)
    penalty: Array
    ceiling: Array  # the penalty of the last event: the piece does not reach above it
    barred: Array  # (columns,) bool, collinear with the support
    finished: Array
    kept: Separators


def l1_path(columns: Array, weights: Array, target: Array, *, sizes: int, sides: Array | None = None) -> Separators:
    """The solutions with 1, ..., `sizes` non-zero coefficients, each at its smallest penalty. Traceable.

    Args:
        columns: (columns, rows), of about unit scale.
        weights: (rows,), at least 0, of sum 1 (or all 0: then nothing is found).
        target: (rows,) of -1 and +1.
        sizes: static, the largest support.
        sides: (columns,) 1 for coefficients that must not be negative, -1 for those that must not be positive, 0 for
            others; None if there are only others.
    """
    n_columns = columns.shape[0]
    dtype = columns.dtype
    tiny = jnp.finfo(dtype).tiny
    slot = jnp.arange(sizes)

    def derivatives(score: Array) -> tuple[Array, Array]:
        """First and second derivative of the rows' losses by the score."""
        wrong = jax.nn.sigmoid(-target * score)
        return -weights * target * wrong, weights * wrong * (1 - wrong)

    def pull(slope: Array) -> Array:
        """With what force slopes draw coefficients off zero, to a side where they may be; (columns,)."""
        return jnp.abs(slope) if sides is None else jnp.where(sides * slope > 0, 0, jnp.abs(slope))

    positive = jnp.sum(jnp.where(target > 0, weights, 0))
    negative = jnp.sum(jnp.where(target > 0, 0, weights))
    one_class = jnp.minimum(positive, negative) <= _NOTHING * (positive + negative)
    constant = jnp.where(one_class, 0, jnp.log(positive + tiny) - jnp.log(negative + tiny))
    largest = jnp.max(pull(columns @ derivatives(jnp.full_like(target, constant))[0]))
    floor = FLOOR * largest

    def unfinished(state: _State) -> Array:
        return ~state.finished & (state.kept.steps < MAX_STEPS)

    def step(state: _State) -> _State:
        slots, signs, point, score, penalty, ceiling, barred, _, kept = state
        used = signs != 0
        size = jnp.sum(used)
        supported = jnp.zeros(n_columns, bool).at[slots].max(used)

        # Newton's step on the support, and the tangent: `point + newton + change * tangent` is, to first order,
        # stationary at `penalty + change`.
        row_slope, curvature = derivatives(score)
        slope = columns @ row_slope
        basis = jnp.concatenate([jnp.ones_like(score)[None], jnp.where(used[:, None], columns[slots], 0)])
        residual = jnp.append(jnp.sum(row_slope), jnp.where(used, slope[slots] + penalty * signs, 0))
        hessian = (basis * curvature[None]) @ basis.T
        diagonal = jnp.diagonal(hessian)
        hessian = hessian + jnp.diag(jnp.where(jnp.append(True, used), _RIDGE * diagonal + tiny, 1))
        factor = jnp.linalg.cholesky(hessian)
        moves = jax.scipy.linalg.cho_solve((factor, True), -jnp.stack([residual, jnp.append(0, signs)], axis=1)).T
        newton, tangent = moves[0], moves[1]
        score_moves = moves @ basis
        ahead, drift = (curvature[None] * score_moves) @ columns.T  # of the slopes
        ahead = slope + ahead

        # The next event. A column enters where |ahead + change * drift| = penalty + change.
        def meeting(side: int) -> Array:
            pace = 1 - side * drift
            meets = pace > _NOTHING if sides is None else (pace > _NOTHING) & (side * sides <= 0)
            return jnp.where(meets, (side * ahead - penalty) / jnp.where(meets, pace, 1), -jnp.inf)

        enters = jnp.where(supported | barred, -jnp.inf, jnp.maximum(meeting(1), meeting(-1)))
        shrinks = signs * tangent[1:] > 0
        leaves = jnp.where(shrinks, -(point + newton)[1:] / jnp.where(shrinks, tangent[1:], 1), -jnp.inf)
        entering, leaving = jnp.argmax(enters), jnp.argmax(leaves)
        next_event = jnp.maximum(enters[entering], leaves[leaving])

        # Where it stands: at an event or at the end of the path the solution is kept, if it is one.
        stationary = jnp.max(jnp.abs(residual)) <= TOLERANCE * penalty
        repeated = used & (jnp.diagonal(factor)[1:] ** 2 <= _COLLINEAR * diagonal[1:])
        collinear = jnp.any(repeated)
        event = stationary & ~collinear & (jnp.abs(next_event) <= EVENT * penalty)
        at_floor = stationary & ~collinear & (penalty <= floor)
        outside = jnp.where(supported, 0, pull(slope))
        optimal = jnp.all(~used | (signs * point[1:] > 0)) & (jnp.max(outside) <= (1 + 2 * EVENT) * penalty)
        here = (event | at_floor) & optimal & (slot + 1 == size)
        solution = jnp.zeros(n_columns, dtype).at[slots].add(jnp.where(used, point[1:], 0))
        kept = Separators(
            jnp.where(here[:, None], solution[None], kept.coefficients),
            jnp.where(here, point[0], kept.intercepts),
            jnp.where(here, penalty, kept.penalties),
            kept.found | here,
            kept.largest_penalty,
            kept.steps + 1,
        )

        # At an event the support changes; elsewhere the solution moves on.
        enter = event & (enters[entering] >= leaves[leaving])
        added = (slot == jnp.argmin(used)) & enter & ~jnp.all(used)
        dropped = jnp.where(collinear, slot == jnp.argmax(repeated), (slot == leaving) & event & ~enter)
        change = jnp.clip(next_event, jnp.maximum(-_LARGEST_DROP * penalty, floor - penalty), ceiling - penalty)
        score_move = score_moves[0] + change * score_moves[1]
        longest = jnp.max(jnp.where(weights > 0, jnp.abs(score_move), 0))
        length = jnp.where(event | collinear, 0, jnp.minimum(1, _LONGEST_STEP / (longest + tiny)))
        sign = -jnp.sign(ahead[entering])
        if sides is not None:
            sign = jnp.where(sides[entering] == 0, sign, sides[entering])
        gone = jnp.append(False, dropped)
        return _State(
            jnp.where(added, entering.astype(slots.dtype), slots),
            jnp.where(added, sign, jnp.where(dropped, 0, signs)),
            jnp.where(gone, 0, point + length * (newton + change * tangent)),
            score + length * score_move - jnp.where(gone, point, 0) @ basis,
            penalty + length * change,
            jnp.where(event, penalty, ceiling),
            (barred & ~(event & ~enter)).at[slots].max(dropped & collinear),
            at_floor | (enter & jnp.all(used)),
            kept,
        )

    nothing = jnp.zeros(sizes, dtype)
    kept = Separators(jnp.zeros((sizes, n_columns), dtype), nothing, nothing, nothing > 0, largest, jnp.int32(0))
    start = _State(
        jnp.zeros(sizes, jnp.int32),
        nothing,
        jnp.append(constant, nothing),
        jnp.full_like(target, constant),
        largest,
        largest,
        jnp.zeros(n_columns, bool),
        one_class | (largest <= _NOTHING),
        kept,
    )
    return lax.while_loop(unfinished, step, start).kept
