"""Sparse linear separators: the path of L1-penalised weighted logistic regression, by number of
non-zeros.

Minimises, over coefficients w (one per column) and an unpenalised intercept b,

    F(w, b) = sum_i c_i log(1 + exp(-z_i f_i)) + penalty ||w||_1,     f_i = b + sum_j w_j x_ij,

with row weights c and targets z of -1 or +1, and returns for every support size the solution at the
smallest penalty with this size. With s_j = sum_i x_ij r_i, where r_i is the derivative of row i's
loss by its score f_i, the optimality conditions are

    (1)  sum_i r_i = 0;    s_j + penalty sign(w_j) = 0 for j in the support;
         |s_j| <= penalty for all others.

As the penalty falls, the solution moves along a smooth curve while its support stays; an event ends
the piece:

    (2)  a column enters the support, where |s_j| = penalty;   or
    (3)  a coefficient reaches 0 and leaves it.

On a piece, Newton's method on the support keeps (1) (the corrector). The tangent of the curve
predicts the next event, and the next step goes there (the predictor), so that penalty and
coefficients converge to the event together (Rosset 2004, "Following curved regularized optimization
solution paths"; Park and Hastie 2007, "L1-regularization path algorithm for generalized linear
models"). Both solve with H, the Hessian of the support:

    (4)  H newton = -(the residual of (1)),    H tangent = -(0, signs).

A path with supports of up to five columns takes some twenty steps with a 6 x 6 system each, and the
smallest penalty of a support size needs no search over penalties. `_step` is one such step.

A coefficient may be restricted to one sign. Its column then enters on that side only, and outside
the support only that side has an optimality condition. Nothing else changes, since a coefficient
that reaches zero leaves in any case.

The path ends when a column would enter the largest support, or at `FLOOR`: if the classes are
separable, the coefficients would grow without end. Every returned solution was checked: (1) holds,
for the columns in the support and for the others.

Everything here may be called inside jit and vmap; the dtype of `columns` rules. Columns come first,
as (columns, rows).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxrules.losses import logistic

TOLERANCE = 1e-6
"""The largest violation of the optimality conditions in a support, relative to the penalty."""
EVENT = 1e-4
"""The smallest penalty of a support size is met to this accuracy, relative."""
FLOOR = 1e-3
"""The smallest penalty, as a share of the largest one."""
MAX_STEPS = 200

_RIDGE = 1e-11
"""Added to the Hessian, relative to its diagonal."""
_COLLINEAR = 1e-8
"""A column stays out if the support leaves no larger share of it unexplained."""
_LARGEST_DROP = 0.7
"""Of the penalty in one step, relative."""
_LONGEST_STEP = 4.0
"""Of a score. Newton's model is not trusted farther: a curvature falls by e per unit."""
_NOTHING = 1e-10
"""Slopes below this, in columns of unit scale and for weights of sum one, are rounding."""


class Separators(NamedTuple):
    """Solutions by support size: row s - 1 has s non-zero coefficients, or zeros if the size was
    not found.

    Attributes:
        coefficients: (sizes, columns).
        intercepts: (sizes,).
        penalties: (sizes,) the smallest penalty with this support size on the path walked.
        found: (sizes,) bool. A size does not occur if two columns enter together, for example.
        largest_penalty: scalar, the smallest penalty of the empty support.
        steps: scalar int, Newton steps.
    """

    coefficients: Array
    intercepts: Array
    penalties: Array
    found: Array
    largest_penalty: Array
    steps: Array


class _PathProblem(NamedTuple):
    """The arguments of `l1_path`."""

    columns: Array
    weights: Array
    target: Array
    sides: Array | None

    def derivatives(self, score: Array) -> tuple[Array, Array]:
        """First and second derivative of the rows' losses by the score."""
        slope = logistic.gradient(self.target, score)
        return self.weights * slope, self.weights * logistic.curvature(self.target, score)

    def pull(self, slope: Array) -> Array:
        """The force with which slopes draw coefficients off zero to an allowed side, (columns,)."""
        if self.sides is None:
            return jnp.abs(slope)
        return jnp.where(self.sides * slope > 0, 0, jnp.abs(slope))


class _PathState(NamedTuple):
    """The state of a path. A slot of the support holds a column while its sign is not 0."""

    slots: Array  # (sizes,) int, columns
    signs: Array  # (sizes,) -1, 0 or 1
    point: Array  # (1 + sizes,) intercept and coefficients
    score: Array  # (rows,)
    penalty: Array
    ceiling: Array  # the penalty of the last event, where the piece begins
    barred: Array  # (columns,) bool, collinear with the support
    finished: Array
    kept: Separators

    @property
    def used(self) -> Array:
        """Which slots hold a column, (sizes,) bool."""
        return self.signs != 0

    @property
    def supported(self) -> Array:
        """Which columns are in the support, (columns,) bool."""
        return jnp.zeros_like(self.barred).at[self.slots].max(self.used)

    @property
    def floor(self) -> Array:
        """The penalty at which the path ends."""
        return FLOOR * self.kept.largest_penalty


class _Moves(NamedTuple):
    """Both moves of a step, (4): to first order, `point + newton + change * tangent` is stationary
    at the penalty `penalty + change`. Shapes are (1 + sizes,), intercept and slots, if not stated.
    """

    newton: Array
    tangent: Array
    basis: Array  # (1 + sizes, rows), the columns of the support
    of_score: Array  # (2, rows), the change of the score by both moves
    residual: Array  # of (1) in the support
    repeated: Array  # (sizes,) bool, columns that are collinear with those before them
    slope: Array  # (columns,) s_j
    ahead: Array  # (columns,) s_j after Newton's step ...
    drift: Array  # ... and its change per unit of penalty from there


class _Event(NamedTuple):
    """The next change of the support."""

    change: Array  # of the penalty until then
    is_entry: Array  # a column enters; else one leaves
    column: Array  # that enters,
    sign: Array  # with this sign of its coefficient
    slot: Array  # that leaves


class _Place(NamedTuple):
    """What kind of state it is; all are bool scalars."""

    at_event: Array  # (1) holds in the support, and the next event is here
    at_floor: Array  # (1) holds in the support, and the path ends here
    collinear: Array  # the support must lose a column first


def l1_path(
    columns: Array, weights: Array, target: Array, *, sizes: int, sides: Array | None = None
) -> Separators:
    """The solutions with 1, ..., `sizes` non-zero coefficients, each at its smallest penalty.
    Traceable.

    Args:
        columns: (columns, rows), of about unit scale.
        weights: (rows,), at least 0, of sum 1 (or all 0: then nothing is found).
        target: (rows,) of -1 and +1.
        sizes: static, the largest support.
        sides: (columns,) 1 for coefficients that must not be negative, -1 for those that must not
            be positive, 0 for others; None if all are 0.
    """
    problem = _PathProblem(columns, weights, target, sides)
    step = functools.partial(_step, problem)
    return lax.while_loop(_unfinished, step, _start(problem, sizes)).kept


def _start(problem: _PathProblem, sizes: int) -> _PathState:
    """The empty support, at the smallest penalty that leaves it empty; finished if there is nothing
    to separate.
    """
    columns, weights, target, _ = problem
    n_columns, tiny = len(columns), jnp.finfo(columns.dtype).tiny
    positive = jnp.sum(jnp.where(target > 0, weights, 0))
    negative = jnp.sum(jnp.where(target > 0, 0, weights))
    one_class = jnp.minimum(positive, negative) <= _NOTHING * (positive + negative)
    # (1) for w = 0: sum_i r_i = 0 at b = log(weight of +1 / weight of -1).
    constant = jnp.where(one_class, 0, jnp.log(positive + tiny) - jnp.log(negative + tiny))
    score = jnp.full_like(target, constant)
    # Above max |s_j| no column may enter, so that the empty support solves the problem.
    largest = jnp.max(problem.pull(columns @ problem.derivatives(score)[0]))
    nothing = jnp.zeros(sizes, columns.dtype)
    return _PathState(
        slots=jnp.zeros(sizes, jnp.int32),
        signs=nothing,
        point=jnp.append(constant, nothing),
        score=score,
        penalty=largest,
        ceiling=largest,
        barred=jnp.zeros(n_columns, bool),
        finished=one_class | (largest <= _NOTHING),
        kept=Separators(
            coefficients=jnp.zeros((sizes, n_columns), columns.dtype),
            intercepts=nothing,
            penalties=nothing,
            found=nothing > 0,
            largest_penalty=largest,
            steps=jnp.int32(0),
        ),
    )


def _unfinished(state: _PathState) -> Array:
    """Whether the path continues."""
    return ~state.finished & (state.kept.steps < MAX_STEPS)


def _step(problem: _PathProblem, state: _PathState) -> _PathState:
    """One step: both moves, the event that they lead to, the solution if there is one here, and the
    next state.
    """
    moves = _moves(problem, state)
    event = _next_event(problem, state, moves)
    place = _place(state, moves, event)
    kept = _kept(problem, state, moves, place)
    return _moved(problem, state, moves, event, place)._replace(kept=kept)


def _moves(problem: _PathProblem, state: _PathState) -> _Moves:
    """Newton's step on the support and the tangent, (4), with their effect on score and slopes."""
    columns, used = problem.columns, state.used
    row_slope, curvature = problem.derivatives(state.score)
    slope = columns @ row_slope
    basis = jnp.where(used[:, None], columns[state.slots], 0)
    basis = jnp.concatenate([jnp.ones_like(row_slope)[None], basis])
    # r = (sum_i r_i, s_j + penalty sign_j for j in the support), which (1) sets to 0
    left = jnp.where(used, slope[state.slots] + state.penalty * state.signs, 0)
    residual = jnp.append(jnp.sum(row_slope), left)
    hessian = (basis * curvature[None]) @ basis.T
    diagonal = jnp.diagonal(hessian)
    tiny = jnp.finfo(columns.dtype).tiny
    # An empty slot has a row and a column of zeros: the 1 on its diagonal makes its moves 0.
    ridge = jnp.where(jnp.append(True, used), _RIDGE * diagonal + tiny, 1)
    factor = jnp.linalg.cholesky(hessian + jnp.diag(ridge))
    both = -jnp.stack([residual, jnp.append(0, state.signs)], axis=1)
    both = jax.scipy.linalg.cho_solve((factor, True), both).T
    of_score = both @ basis
    # d s_j = sum_i x_ij v_i d f_i, with v the curvatures, for both changes of the scores
    newton_ahead, drift = (curvature[None] * of_score) @ columns.T
    return _Moves(
        newton=both[0],
        tangent=both[1],
        basis=basis,
        of_score=of_score,
        residual=residual,
        # The square of a pivot is the curvature that the columns before leave to this one.
        repeated=used & (jnp.diagonal(factor)[1:] ** 2 <= _COLLINEAR * diagonal[1:]),
        slope=slope,
        ahead=slope + newton_ahead,
        drift=drift,
    )


def _next_event(problem: _PathProblem, state: _PathState, moves: _Moves) -> _Event:
    """The next event: the least fall of the penalty to an entry (2) or an exit (3)."""
    sides, signs, penalty = problem.sides, state.signs, state.penalty

    def meeting(side: int) -> Array:
        """(2): where ahead + change drift = side (penalty + change)."""
        # The equation is change (1 - side drift) = side ahead - penalty, at most 0 once (1) holds.
        # Only if pace > 0 do slope and bound meet on the way down. The column enters with the sign
        # -side, because s_j + penalty sign(w_j) = 0.
        pace = 1 - side * moves.drift
        meets = pace > _NOTHING if sides is None else (pace > _NOTHING) & (side * sides <= 0)
        change = (side * moves.ahead - penalty) / jnp.where(meets, pace, 1)
        return jnp.where(meets, change, -jnp.inf)

    stays_out = state.supported | state.barred
    enters = jnp.where(stays_out, -jnp.inf, jnp.maximum(meeting(1), meeting(-1)))
    # (3): where point + newton + change tangent = 0.
    # The penalty falls (change < 0): a coefficient shrinks if its tangent has its own sign.
    shrinks = signs * moves.tangent[1:] > 0
    leaves = -(state.point + moves.newton)[1:] / jnp.where(shrinks, moves.tangent[1:], 1)
    leaves = jnp.where(shrinks, leaves, -jnp.inf)
    column, slot = jnp.argmax(enters), jnp.argmax(leaves)
    sign = -jnp.sign(moves.ahead[column])
    if sides is not None:
        sign = jnp.where(sides[column] == 0, sign, sides[column])
    # Changes are negative: the largest is the first event on the way down.
    change = jnp.maximum(enters[column], leaves[slot])
    return _Event(change, enters[column] >= leaves[slot], column, sign, slot)


def _place(state: _PathState, moves: _Moves, event: _Event) -> _Place:
    """Whether the state solves the problem of its support, (1), and is at an event or at the end of
    the path.
    """
    collinear = jnp.any(moves.repeated)
    # An event of a point that is not yet on the curve is only a prediction.
    solved = (jnp.max(jnp.abs(moves.residual)) <= TOLERANCE * state.penalty) & ~collinear
    return _Place(
        at_event=solved & (jnp.abs(event.change) <= EVENT * state.penalty),
        at_floor=solved & (state.penalty <= state.floor),
        collinear=collinear,
    )


def _kept(problem: _PathProblem, state: _PathState, moves: _Moves, place: _Place) -> Separators:
    """With the solution at the end of the piece, if all of (1) holds: so far the one of the
    smallest penalty with this support size.
    """
    used, kept = state.used, state.kept
    # The column whose entry ends the piece may exceed the penalty by the accuracy of the event.
    outside = jnp.where(state.supported, 0, problem.pull(moves.slope))
    signs_hold = jnp.all(~used | (state.signs * state.point[1:] > 0))
    optimal = signs_hold & (jnp.max(outside) <= (1 + 2 * EVENT) * state.penalty)
    has_size = jnp.arange(1, len(used) + 1) == jnp.sum(used)
    # No event lies above the one before (`ceiling`): of solutions of one size, the last has the
    # smallest penalty and replaces the others.
    here = (place.at_event | place.at_floor) & optimal & has_size
    w = jnp.zeros_like(outside).at[state.slots].add(jnp.where(used, state.point[1:], 0))
    return kept._replace(
        coefficients=jnp.where(here[:, None], w[None], kept.coefficients),
        intercepts=jnp.where(here, state.point[0], kept.intercepts),
        penalties=jnp.where(here, state.penalty, kept.penalties),
        found=kept.found | here,
        steps=kept.steps + 1,
    )


def _moved(
    problem: _PathProblem, state: _PathState, moves: _Moves, event: _Event, place: _Place
) -> _PathState:
    """At an event only the support changes; elsewhere the solution moves towards the next event."""
    used, penalty = state.used, state.penalty
    slot, full = jnp.arange(len(used)), jnp.all(used)
    enters, leaves = place.at_event & event.is_entry, place.at_event & ~event.is_entry
    # argmin: the first empty slot.
    added = (slot == jnp.argmin(used)) & enters & ~full
    repeated = slot == jnp.argmax(moves.repeated)
    dropped = jnp.where(place.collinear, repeated, (slot == event.slot) & leaves)
    gone = jnp.append(False, dropped)

    lowest = jnp.maximum(-_LARGEST_DROP * penalty, state.floor - penalty)
    # A prediction that went too far is taken back, but never above the event that began the piece.
    change = jnp.clip(event.change, lowest, state.ceiling - penalty)
    score_move = moves.of_score[0] + change * moves.of_score[1]
    # One length for both moves: the point stays near the curve of the penalty that it reaches.
    longest = jnp.max(jnp.where(problem.weights > 0, jnp.abs(score_move), 0))
    length = jnp.minimum(1, _LONGEST_STEP / (longest + jnp.finfo(longest.dtype).tiny))
    length = jnp.where(place.at_event | place.collinear, 0, length)
    moved = state.point + length * (moves.newton + change * moves.tangent)
    return state._replace(
        slots=jnp.where(added, event.column.astype(state.slots.dtype), state.slots),
        signs=jnp.where(added, event.sign, jnp.where(dropped, 0, state.signs)),
        point=jnp.where(gone, 0, moved),
        score=state.score + length * score_move - jnp.where(gone, state.point, 0) @ moves.basis,
        penalty=penalty + length * change,
        ceiling=jnp.where(place.at_event, penalty, state.ceiling),
        # A column was barred because of the support; if one leaves, it may enter again.
        barred=(state.barred & ~leaves).at[state.slots].max(dropped & place.collinear),
        finished=place.at_floor | (enters & full),
    )
