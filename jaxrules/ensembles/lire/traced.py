"""The local search of `jaxrules.ensembles.lire.search` as one traced program.

A descent is a `lax.while_loop` over arrays of fixed shape. Its body ranks all moves (one product
with the matrix), then tries the most promising ones in turn and takes every one that improves:

- with a refit of all weights, by Newton's method, as `SupportSearch` does;
- exponential loss only, in sweeps: the new column gets the weight of Theorem 1 while the others
  stay, and all weights are refitted after the last move of the sweep.

The two kinds take turns until neither improves. The scores of moves are those of
`jaxrules.ensembles.lire.moves`, here on JAX arrays.

A support occupies K slots. The matrix has an additional column of zeros, which empty slots hold: no
formula needs to know which slots are in use, and a drop is a swap for the column of zeros. When the
slots are full, the host continues with twice as many.

A `DescentLane` is one problem at one set of penalties. Lanes that share the matrix (penalties,
ridges, starts, and folds as weights of rows) run side by side under `vmap`.

Products with the matrix are float32 and only rank moves (float64 for the squared loss, whose
predictions are exact); margins, weights and the objectives of accepted moves are float64. The host
calls `stopped` between bounded chunks of trials, and refits in NumPy the supports that it reports:
the objective that a search returns does not rest on the program.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from jaxrules.ensembles.lire.moves import (
    ADDITIONS,
    ONES,
    Charges,
    Encoding,
    PatternData,
    Penalties,
    Support,
    closed_form_moves,
    rank_moves,
    sums,
)
from jaxrules.ensembles.lire.objective import best_weight, penalty
from jaxrules.ensembles.lire.problem import Floats, SupportProblem
from jaxrules.ensembles.lire.search import DROPPED_AT_ONCE, Incumbent, SupportSearch
from jaxrules.losses import Array, Loss, exponential
from jaxrules.rules.rows import Activations, available_memory
from jaxrules.solvers.linear.newton import (
    Evaluation,
    accepted,
    damped_hessian,
    evaluate,
    held,
    within,
)
from jaxrules.solvers.patience import Patient
from jaxrules.solvers.shapes import bucket
from jaxrules.tools import placement
from jaxrules.tools.float64 import on_device, our_settings, x64_kernel

_QUEUE = 128
"""The most moves of a ranking that may be tried; if no more than these are possible, all are."""
_SLOTS = 32
"""The smallest capacity for a support. L1 solutions start with up to 22 columns: with 16, most fits
compile the program twice, and the first fit to 2000 rows takes 8.6 CPU seconds instead of 5.6.
"""
_LANES = 16
"""The smallest number of lanes side by side; larger numbers are 4, 16, ... times this."""
_LARGE = 30
"""Starts with more columns than this are thinned out in NumPy first."""
_QUICK = 16
"""The number of trials after a ranking while a descent must show that it is promising."""
_NEWTON_STEPS = 60
_CONVERGED = 1e-2
"""Newton's method ends when it promises a decrease of less than this share of the tolerance."""
_SHORTEST = 1e-10
_MODEL = 0.2
"""If the decrease of a step differs from the promised one by more than this share, the Hessian is
computed again.
"""
_DAMPING = 1e-6  # for a Hessian whose entries are float32
_SECONDS = 0.2
"""The duration of a chunk; between chunks the host checks whether to stop."""
_PER_PATTERN, _PER_COLUMN = 32, 64
"""Bytes that a lane needs for every slot."""
_WIDE = 1 << 28
"""With at least this many entries, the matrix is stored as bytes: four times smaller, but slower on
a CPU.
"""


class DescentLane(NamedTuple):
    """One problem at one set of penalties, with C columns including that of zeros; several lanes
    have a leading axis.

    Attributes:
        target, mass: of the patterns, (P,); a pattern of mass 0 does not count.
        charges: of the columns.
        required: sets of columns, (sets, C); every support has a column of each.
        terms: gamma, lambda, and the largest size.
        tolerance: smaller decreases do not count.
        trials: the number of moves refitted after a ranking.
        exact: whether predictions of full-refit moves are exact.
        kinds: the number of kinds of moves, 1 or 2.
    """

    target: Array
    mass: Array
    charges: Charges
    required: Array
    terms: Penalties
    tolerance: Array
    trials: Array
    exact: Array
    kinds: Array


class Queue(NamedTuple):
    """The T best moves of one ranking, the most promising first, and what refits need from the
    ranking.

    Attributes:
        slots, entering: which slot gets which column; slot K is any empty one.
        predicted: the objective after the move.
        untried: which moves are still to be tried.
        order, together: the rank of each slot by the promise of a drop, (K,), and the number of
            slots to drop at once, which is tried first.
        ranked: the columns of the support that was ranked, (K,).
        products, own: X_S diag(v) X' (K, C), and the curvature of every column alone (C,).
        inverse: of the Hessian on the support, (K, K).
        goal: after the first accepted move, only moves predicted to fall below this are tried.
        taken: whether a move was accepted.
        unsettled: whether weights must still be refitted after a sweep.
        certain: whether a queue without an improving move proves that no move improves.
    """

    slots: Array
    entering: Array
    predicted: Array
    untried: Array
    order: Array
    together: Array
    ranked: Array
    products: Array
    own: Array
    inverse: Array
    goal: Array
    taken: Array
    unsettled: Array
    certain: Array


class TracedState(NamedTuple):
    """A descent between two trials.

    Attributes:
        support: columns (K,), the column of zeros in empty slots, and their weights.
        objective: of the support.
        queue: moves to be tried.
        sweeping: whether they are closed-form moves.
        idle: rankings in a row without a move that improves.
        certified: whether no move improves: all were refitted in vain, or their predictions are
            exact.
        full: whether no slot is left for an addition.
        moves: the remaining number of moves.
        work: the number of rankings and trials in this chunk.
    """

    support: Support
    objective: Array
    queue: Queue
    sweeping: Array
    idle: Array
    certified: Array
    full: Array
    moves: Array
    work: Array


def _exhausted(queue: Queue) -> Array:
    return ~(queue.untried.any() | queue.unsettled | (queue.together > 1))


# Newton's method on a support


class _Newton(NamedTuple):
    point: Array
    now: Evaluation
    following: Array  # the next point
    length: Array
    promised: Array
    hessian: Array
    fresh: Array  # whether the Hessian is that of the point
    stay: Array  # which weights are held at a bound
    crossed: Array  # whether the step would cross a bound: more weights are held, from this point
    finished: Array
    steps: Array


def _refit(
    evaluated: Callable[[Array], Evaluation],
    renewed: Callable[[Evaluation], Array],
    ends: tuple[Array, Array],
    start: Array,
    hessian: Array,
    stale: Array,
    goal: Array,
    least: Array,
    most_steps: Array,
) -> tuple[Array, Evaluation]:
    """Refitted weights from a start, and the evaluation there; with one step, the evaluation of the
    start.

    A Hessian is kept as long as its model predicts the decrease of steps.

    Args:
        evaluated: returns loss plus ridge, and their derivatives.
        renewed: returns the Hessian at a point.
        hessian: a first guess, not used if `stale`.
        goal: it ends early once the loss cannot be expected to fall below this.
        least: it ends when a step promises a smaller decrease.
    """

    def step(state: _Newton) -> _Newton:
        trial, length, promised = evaluated(state.following), state.length, state.promised
        first = state.steps == 0
        # 1. Judge the trial. By the model, a step of length t along the Newton direction lowers the
        # loss by t (2 - t) p, where the full step lowers it by p = `promised`: a partial step keeps
        # all but (1 - t)^2 of the promise. A trial that crossed a bound is the same point again (p
        # = 0): it moves nothing and only passes on which weights are held.
        better = first | accepted(state.now.value, trial.value, length, promised)
        point, now = jax.tree.map(
            partial(jnp.where, better), (state.following, trial), (state.point, state.now)
        )
        moved = better & ~state.crossed
        missed = jnp.abs(state.now.value - trial.value - length * (2 - length) * promised)
        # 2. A new Hessian costs a product of the patterns with the support twice over, so the old
        # one stays while it predicts the decrease, and is never computed twice at one point.
        poor = jnp.where(first, stale, ~(better & (missed <= _MODEL * promised)))
        renew = poor & (moved | ~state.fresh)
        hessian = lax.cond(renew, renewed, lambda _: state.hessian, now)
        # 3. The length: doubled after a success, cut to a quarter after a failure, but whole again
        # if the failure is blamed on the old Hessian.
        cut = jnp.where(renew, 1.0, length / 4)
        length = jnp.where(moved, jnp.minimum(2 * length, 1), jnp.where(better, length, cut))

        # 4. The next direction, by projected Newton: weights at a bound that the gradient pushes
        # outwards are held, then those that the step of the others would (`crossing`). Each such
        # round holds at least one weight more, so the rounds at a point end.
        stay = held(point, now.gradient, *ends) | (state.stay & ~moved)
        gradient, eye = jnp.where(stay, 0, now.gradient), jnp.eye(len(stay), dtype=bool)
        # Rows and columns of held weights become those of a diagonal matrix: the shape stays fixed.
        free = jnp.where(eye | ~(stay[:, None] | stay[None]), hessian, 0)
        factor = jnp.linalg.cholesky(free, symmetrize_input=False)
        direction = -jax.scipy.linalg.cho_solve((factor, True), gradient)
        crossing = ~stay & held(point, -direction, *ends)
        crossed, expected = crossing.any(), -gradient @ direction / 2
        fresh = renew | (state.fresh & ~moved)
        # 5. The end: too little is promised, or not even twice the model's decrease reaches the
        # goal (only a Hessian of this very point may say so), or steps have become too short.
        hopeless = fresh & (now.value - 2 * expected >= goal)
        reached = ~(expected > least) | hopeless | (length < _SHORTEST)
        return _Newton(
            point,
            now,
            jnp.where(crossed, point, within(point + length * direction, *ends)),
            length,
            jnp.where(crossed, 0, expected),
            hessian,
            fresh,
            stay | crossing,
            crossed,
            reached & ~crossed,
            state.steps + 1,
        )

    nothing, one = jnp.zeros_like(start), jnp.ones_like(goal)
    now = jax.tree.map(jnp.zeros_like, jax.eval_shape(evaluated, start))
    no = jnp.bool_(False)
    none, first = jnp.zeros(len(start), bool), within(start, *ends)
    begun = _Newton(nothing, now, first, one, one, hessian, no, none, no, no, jnp.int32(0))
    found = lax.while_loop(lambda s: ~s.finished & (s.steps < most_steps), step, begun)
    return found.point, found.now


# Trials


def _needed(lane: DescentLane, columns: Array, weights: Array) -> Array:
    """Which slots count: those with a weight and, for required sets without one, the first."""
    used = (weights != 0) | (columns == ONES)
    serves = lane.required[:, columns]
    lacking = serves & ~(serves & used).any(1, keepdims=True)
    return used | (lacking & (jnp.cumsum(lacking, axis=1) == 1)).any(0)


def _possible(lane: DescentLane, columns: Array, queue: Queue) -> Array:
    """Which moves of the queue can still be made."""
    K, none = len(columns), len(lane.charges.counted) - 1
    slots, entering, counted = queue.slots, queue.entering, lane.charges.counted
    leaving = columns.at[slots].get(mode="fill", fill_value=none)
    still = queue.ranked.at[slots].get(mode="fill", fill_value=none) == leaving
    outside = (entering == none) | ~(entering[:, None] == columns[None]).any(1)
    room = (slots < K) | (columns == none).any()
    size = counted[columns].sum() - counted[leaving] + counted[entering]
    small = (size <= lane.terms.most) | (entering == none)
    required = lane.required
    serving = required[:, columns].sum(1, keepdims=True)
    serving = serving - required[:, leaving].astype(int) + required[:, entering]
    return still & outside & room & small & (serving > 0).all(0)


def _trial(X: Array, loss: Loss, lane: DescentLane, state: TracedState) -> TracedState:
    """Make one trial: drop several columns at once, try the next move of the queue or, after the
    last move of a sweep, refit all weights.
    """
    queue, charges, none = state.queue, lane.charges, X.shape[0] - 1
    dropping = queue.together > 1
    settling = ~dropping & ~queue.untried.any()
    closed, move = state.sweeping & ~settling, jnp.argmax(queue.untried)
    columns, weights = state.support
    K, entering = len(columns), queue.entering[move]
    slot = jnp.where(queue.slots[move] < K, queue.slots[move], jnp.argmax(columns == none))
    slot = jnp.where(settling | dropping, K, slot)

    # The other weights, refitted to second order without that of the slot.
    # The surgeon's step, as `swap_slope` in `moves._changes`. It holds for the support that was
    # ranked with its own weights; after an accepted move the weights as they are serve as the
    # guess.
    spread = queue.inverse[:, slot] / queue.inverse[slot, slot]
    stale = queue.taken | state.sweeping | dropping
    guess = jnp.where(stale, weights, weights - spread * weights[slot])
    leaving = dropping & (queue.order < queue.together)
    start = jnp.where(leaving, 0.0, guess.at[slot].set(0.0))
    columns = jnp.where(leaving, none, columns.at[slot].set(entering))
    ridge = charges.ridge[columns]
    # The Hessian after the move is that of the ranking with the row and the column of one slot
    # exchanged. This saves a product per trial, but it is only a first guess (see `stale`).
    hessian, across = queue.products[:, queue.ranked], queue.products[:, entering]
    hessian = hessian.at[slot].set(across).at[:, slot].set(across)
    hessian = hessian.at[slot, slot].set(queue.own[entering]).astype(ridge.dtype)
    damped = hessian + jnp.diag(ridge + _DAMPING * jnp.max(queue.own))

    entries = X[columns].astype(lane.mass.dtype)

    def evaluated(point: Array) -> Evaluation:
        score = jnp.where(lane.mass > 0, point @ entries, 0)  # scores of other rows may overflow
        return evaluate(loss, entries, lane.target, lane.mass, ridge, point, score)

    def renewed(now: Evaluation) -> Array:
        return damped_hessian(entries, now.curvature, ridge)

    ends = charges.least[columns], charges.most[columns]
    goal = state.objective - lane.tolerance - _price(lane, columns, columns != none)
    goal, least = jnp.where(settling, jnp.inf, goal), _CONVERGED * lane.tolerance
    steps = jnp.where(closed, 1, _NEWTON_STEPS)
    # A closed-form move needs no step: Newton's loop then runs once, to evaluate the start without
    # the slot's weight, and Theorem 1 gives that weight from the slope there.
    weights, now = _refit(evaluated, renewed, ends, start, damped, stale, goal, least, steps)
    value = now.value
    if loss == exponential:
        slot_ends = ends[0][slot], ends[1][slot]
        moved, helping = now.curvature @ jnp.abs(entries[slot]), -now.gradient[slot]
        weight, left = _theorem_1(moved, helping, charges.ridge[entering], *slot_ends)
        weights = jnp.where(closed, weights.at[slot].set(weight), weights)
        value = jnp.where(closed, value + left, value)
    return _decided(lane, state, Support(columns, weights), value, settling)


def _theorem_1(
    moved: Array, helping: Array, ridge: Array, least: Array, most: Array
) -> tuple[Array, Array]:
    """The best weight of one column, the others fixed (Theorem 1), and the change of loss plus
    ridge.
    """
    helped, harmed = (jnp.maximum(moved + side * helping, 0.0) / 2 for side in (1, -1))
    share = jnp.where(moved > 0, harmed / moved, 0.0)
    weight = best_weight(moved, share, jnp.full_like(moved, -jnp.inf), ridge, least, most)
    change = helped * jnp.expm1(-weight) + harmed * jnp.expm1(weight)
    return weight, change + ridge * weight * weight / 2


def _price(lane: DescentLane, columns: Array, needed: Array) -> Array:
    charges, terms = lane.charges, lane.terms
    size, covered = charges.counted[columns] @ needed, charges.coverage[columns] @ needed
    return penalty(size, covered, terms.gamma, terms.lam)


def _decided(
    lane: DescentLane, state: TracedState, tried: Support, value: Array, settling: Array
) -> TracedState:
    """The state after a trial: with the support that was tried if that is better, and without the
    trial in the queue.
    """
    queue, (columns, weights) = state.queue, tried
    dropping, none = queue.together > 1, len(lane.charges.counted) - 1
    needed = _needed(lane, columns, weights)
    objective = value + _price(lane, columns, needed)
    # If the refit after a sweep does not improve, its moves are kept: each of them improved
    better = objective < state.objective - jnp.where(settling, 0.0, lane.tolerance)
    better &= lane.required[:, columns].any(1).all()
    tried = Support(jnp.where(needed | ~lane.charges.removable[columns], columns, none), weights)
    support, objective = jax.tree.map(
        partial(jnp.where, better), (tried, objective), (state.support, state.objective)
    )
    taken = queue.taken | better
    # Moves left in the queue: later ones that are still possible and, once the support has changed,
    # only those whose prediction already improves on the objective at the ranking.
    later = dropping | (jnp.arange(len(queue.untried)) > jnp.argmax(queue.untried))
    untried = queue.untried & later & _possible(lane, support.columns, queue)
    untried &= ~taken | ((queue.predicted < queue.goal) & ~dropping)
    return state._replace(
        support=support,
        objective=objective,
        queue=queue._replace(
            untried=untried,
            together=jnp.where(better, 0, queue.together // 2),
            taken=taken,
            unsettled=state.sweeping & taken & ~settling,
        ),
        moves=state.moves - (better & (settling | ~state.sweeping)),
        work=state.work + 1,
    )


# Rankings


def _ranking(
    X: Array, loss: Loss, encoding: Encoding, lane: DescentLane, state: TracedState
) -> TracedState:
    """Rank all moves into a queue, which is empty if the slots are full."""
    support, (K, none) = state.support, (len(state.support.columns), X.shape[0] - 1)
    margins = support.weights @ X[support.columns].astype(lane.mass.dtype)
    data = PatternData(X, lane.target, lane.mass)
    summed = sums(data, support.columns, margins, loss, encoding)
    *moves, inverse = rank_moves(summed, lane.charges, support, lane.terms, loss)
    scores = _as_slots_and_columns(*moves)
    if loss == exponential:
        drop, add, swap = closed_form_moves(
            data, summed, lane.charges, support, margins, lane.terms, encoding
        )
        few = jnp.where(add <= -lax.top_k(-add, ADDITIONS)[0][-1], add, jnp.inf)
        closed = _as_slots_and_columns(drop, few, swap).astype(scores.dtype)
        best = closed.min(axis=1, keepdims=True).at[K].set(jnp.inf)  # one move per slot
        closed = jnp.where(closed <= best, closed, jnp.inf)
        scores = jnp.where(state.sweeping, closed, scores)

    in_use = support.columns != none
    top, index = lax.top_k(-scores.ravel(), min(_QUEUE, scores.size))
    slots, entering = jnp.divmod(index, none + 1)
    predicted, possible = -top.astype(state.objective.dtype), (scores < jnp.inf).sum()
    goal = state.objective - lane.tolerance
    near = state.objective + 0.25 * lane.terms.gamma + 1e3 * lane.tolerance
    exhaustive = (possible <= len(index)) & ~state.sweeping
    limit = jnp.where(exhaustive, jnp.inf, near)
    limit = jnp.where(state.sweeping | lane.exact, goal, limit)
    count = jnp.where(exhaustive | state.sweeping, len(index), lane.trials)
    # Dropping many at once first: starts have far too many columns, and each drop alone costs a
    # refit
    drop = scores[:K, none]
    together = jnp.minimum((drop < goal).sum(), (DROPPED_AT_ONCE * in_use.sum()).astype(int))
    size = lane.charges.counted[support.columns].sum()
    full = in_use.all() & (size < lane.terms.most)
    queue = state.queue._replace(
        slots=slots,
        entering=entering,
        predicted=predicted,
        order=jnp.argsort(jnp.argsort(drop)),
        together=jnp.where(state.sweeping | full, 0, together),
        ranked=support.columns,
        products=summed.products,
        own=summed.own,
        inverse=inverse,
        goal=goal,
        taken=jnp.bool_(False),
        certain=exhaustive | lane.exact,
    )
    untried = (jnp.arange(len(index)) < count) & (predicted < limit) & ~full
    queue = queue._replace(untried=untried & _possible(lane, support.columns, queue))
    return state._replace(queue=queue, full=full, work=state.work + 1)


def _as_slots_and_columns(drop: Array, add: Array, swap: Array) -> Array:
    """The objectives of moves, each read as putting a column into a slot, (K + 1, C)."""
    return jnp.concatenate([swap.at[:, -1].set(drop), add[None].astype(swap.dtype)])


def _concluded(lane: DescentLane, state: TracedState) -> TracedState:
    """What follows the last move of a queue: the same kind of moves again, the other kind, or the
    end.
    """
    taken, sweeping = state.queue.taken, state.sweeping
    over = _exhausted(state.queue) & ~state.full
    stuck = over & ~taken
    certified = jnp.where(sweeping, state.certified & ~taken, state.queue.certain & ~taken)
    return state._replace(
        sweeping=jnp.where(stuck, ~sweeping & (lane.kinds == 2), sweeping),
        idle=jnp.where(stuck, state.idle + 1, jnp.where(over, 0, state.idle)),
        certified=jnp.where(over, certified, state.certified),
    )


def _descend(
    X: Array, loss: Loss, encoding: Encoding, lane: DescentLane, state: TracedState, limit: Array
) -> TracedState:
    """Continue a descent for at most `limit` rankings and trials, or until its slots are full."""

    def going_on(state: TracedState) -> Array:
        return (state.moves > 0) & (state.work < limit)

    def step(state: TracedState) -> TracedState:
        rank = partial(_ranking, X, loss, encoding, lane)
        state = lax.cond(_exhausted(state.queue), rank, lambda state: state, state)
        state = lax.while_loop(
            lambda state: ~_exhausted(state.queue) & going_on(state),
            partial(_trial, X, loss, lane),
            state,
        )
        return _concluded(lane, state)

    def unfinished(state: TracedState) -> Array:
        return (state.idle < lane.kinds) & ~state.full & going_on(state)

    return lax.while_loop(unfinished, step, state)


@x64_kernel(static=("loss", "encoding", "many"))
def _chunk(
    X: Array,
    lanes: DescentLane,
    states: TracedState,
    limit: Array,
    *,
    loss: Loss,
    encoding: Encoding,
    many: bool,
) -> TracedState:
    program = partial(_descend, X, loss, encoding)
    return (jax.vmap(program, in_axes=(0, 0, None)) if many else program)(lanes, states, limit)


def _run_chunk(*arguments: Any, **program: Any) -> TracedState:
    with as_numpy():  # the state stays on the device
        return cast(TracedState, _chunk.jitted(*arguments, **program))


_chunk_in_time = Patient(_run_chunk)


# On the host


_matrices: WeakKeyDictionary[Activations, dict[Any, Array]] = WeakKeyDictionary()


def _matrix(problem: SupportProblem) -> Array:
    """The padded columns on the device, or split over the devices of a mesh; the last column is
    zero. Problems that differ only in targets and weights share them.
    """
    placed = _matrices.setdefault(problem.activations, {})
    place = problem.encoding, placement.mesh()
    if place not in placed:
        n_columns, n_patterns = problem.columns.shape
        wide = problem.columns.size >= _WIDE
        shape = [bucket(n, 16, digits=4) for n in (n_columns + 1, n_patterns)]
        X = np.zeros(shape, np.int8 if wide else np.float32)
        X[:n_columns, :n_patterns] = problem.columns
        placed[place] = on_device(X, rows=1)
    return placed[place]


@dataclass
class TracedSearch(SupportSearch):
    """`SupportSearch`, whose descents are traced programs.

    It rounds otherwise than NumPy and may end in other optima, which differ by percents on small
    data. So it makes more descents: on an accelerator, 16 lanes take the time of one. In the
    paper's problem on heart at gamma .005, sequences of 5 to 20 ridges end from .8 % below NumPy's
    search to 7.5 % above.
    """

    restarts: ClassVar[int] = 80
    falls: ClassVar[Sequence[int]] = range(5, 21)
    at_once: ClassVar[int] = 16

    def descend(self, start: Incumbent, promising: float = np.inf) -> Incumbent:
        """As `SupportSearch.descend`."""
        return descend_all([self], [start], [promising])[0]

    def begun(self, start: Incumbent) -> Incumbent:
        """The start as an incumbent: with a column of every required set, no larger than allowed
        and, if large, without columns that are not worth their penalty, so that few descents need
        many slots.
        """
        self.certified = False
        best: Incumbent | None = self._shrink(self.complete(start))
        while best is not None:
            begun = best
            self.observe(begun)
            large = len(begun.columns) > _LARGE and not self.stopped()
            best = self._drop_many(begun, self._rank(begun)) if large else None
        return begun

    def lane(self, shape: tuple[int, ...], quick: bool, kinds: int) -> DescentLane:
        """This problem as a lane, for a padded matrix of this shape."""

        def padded(part: NDArray[Any], size: int) -> NDArray[Any]:
            return np.pad(part, [(0, 0)] * (part.ndim - 1) + [(0, size - part.shape[-1])])

        problem, (n_columns, n_patterns) = self.problem, shape
        return DescentLane(
            padded(problem.target, n_patterns),
            padded(problem.mass, n_patterns),
            Charges(*(padded(part, n_columns) for part in self.charges)),
            padded(problem.required.reshape(-1, len(problem.origin)), n_columns),
            Penalties(*map(np.float64, self.terms)),
            np.float64(self._tolerance),
            np.int32(min(_QUICK, self._trials) if quick else self._trials),
            np.bool_(problem.loss.quadratic and problem.signs is None),
            np.int32(kinds),
        )

    def state(self, start: Incumbent, n_columns: int, slots: int, sweeping: bool) -> TracedState:
        """The state of a descent that starts with a ranking."""
        size, none = len(start.columns), n_columns - 1
        columns, weights = np.full(slots, none, np.int32), np.zeros(slots)
        columns[:size], weights[:size] = start.columns, start.weights
        T, no = min(_QUEUE, (slots + 1) * n_columns), np.bool_(False)
        quick = np.float64 if self.problem.loss.quadratic else np.float32
        queue = Queue(
            np.zeros(T, np.int32), np.zeros(T, np.int32), np.zeros(T), np.zeros(T, bool),
            np.zeros(slots, int), np.int64(0), columns, np.zeros((slots, n_columns), quick),
            np.zeros(n_columns, quick), np.zeros((slots, slots)), np.float64(0), no, no, no,
        )  # fmt: skip
        objective = np.float64(start.objective - self.problem.constant)
        zero, moves = np.int32(0), np.int32(self.moves)
        support = Support(columns, weights)
        return TracedState(support, objective, queue, np.bool_(sweeping), zero, no, no, moves, zero)

    def reported(self, best: Incumbent, columns: NDArray[np.integer], weights: Floats) -> Incumbent:
        """The better of the incumbent and a support refitted on the host; a better one is reported
        to `observe`.
        """
        if np.array_equal(columns, best.columns):
            return best
        found = self.refit(columns.astype(np.int64), weights, near=best)
        if found.objective >= best.objective:
            return best
        self.observe(found)
        return found


def _with_slots(states: TracedState, slots: int, none: int) -> TracedState:
    """The same descents with more slots; they continue with a ranking."""
    now = states.support.columns.shape[-1]

    def more(part: Any, axes: tuple[int, ...], value: int = 0) -> NDArray[Any]:
        part = np.asarray(part)
        padding = [(0, 0)] * part.ndim
        for axis in axes:
            padding[axis] = (0, slots - now)
        return np.pad(part, padding, constant_values=value)

    queue, (columns, weights) = states.queue, states.support
    return states._replace(
        support=Support(more(columns, (-1,), none), more(weights, (-1,))),
        queue=queue._replace(
            order=more(queue.order, (-1,)),
            together=np.zeros_like(queue.together),
            ranked=more(queue.ranked, (-1,), none),
            products=more(queue.products, (-2,)),
            inverse=more(queue.inverse, (-2, -1)),
            untried=np.zeros(queue.untried.shape, bool),
        ),
        idle=np.where(queue.taken, 0, states.idle).astype(np.int32),
        full=np.zeros(np.shape(states.full), bool),
    )


@contextlib.contextmanager
def as_numpy() -> Iterator[None]:
    """The settings for programs with formulas shared with NumPy: float64, and shapes that
    broadcast.
    """
    with our_settings(), jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        yield


def _together(parts: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *parts)


def descend_all(
    searches: Sequence[TracedSearch], starts: Sequence[Incumbent], promising: Sequence[float] = ()
) -> list[Incumbent]:
    """Make descents until all have ended or one is stopped: side by side, as many at once as fit in
    memory; on CPUs one after another.

    Args:
        searches: of problems with the same columns, loss and encoding.
        starts: one for each search.
        promising: as in `SupportSearch.descend`, one for each; () for none.
    """
    best = [search.begun(start) for search, start in zip(searches, starts, strict=True)]
    lanes, bars = list(range(len(best))), promising or [np.inf] * len(best)
    in_doubt = [lane for lane in lanes if bars[lane] < np.inf]
    for quick in (True, False):
        for batch, some in enumerate(_together_at(searches, best, in_doubt if quick else lanes)):
            if batch and any(search.stopped() for search in searches):
                break
            found = _in_chunks([searches[k] for k in some], [best[k] for k in some], quick)
            for lane, incumbent in zip(some, found, strict=True):
                best[lane] = incumbent
        if quick:
            lanes = [lane for lane in lanes if best[lane].objective < bars[lane]]
            for lane in set(in_doubt) - set(lanes):
                searches[lane].certified = False
    return best


def lanes_pay() -> bool:
    """Whether lanes side by side take less time than one after another. A CPU gains nothing from
    them, and every lane waits for the longest: 32 restarts on heart took 8 CPU seconds side by
    side, .8 in turn.
    """
    return bool(placement.device().platform != "cpu")


def _together_at(
    searches: Sequence[TracedSearch], starts: Sequence[Incumbent], lanes: Sequence[int]
) -> Iterator[Sequence[int]]:
    """The lanes in batches that are made at once: they take at most half of the memory."""
    if not lanes:
        return
    if not lanes_pay():
        yield from ([lane] for lane in lanes)
        return
    n_columns, n_patterns = searches[0].problem.columns.shape
    slots = _slots([starts[lane] for lane in lanes])
    # Per slot: entries and their products with weights; every move's slope, curvature, price, ...
    needed = slots * (_PER_PATTERN * n_patterns + _PER_COLUMN * n_columns)
    most = max(1, int(available_memory() / 2 / needed)) if len(lanes) > 1 else 1
    for first in range(0, len(lanes), most):
        yield lanes[first : first + most]


def _slots(starts: Sequence[Incumbent]) -> int:
    """A number of slots that holds each of the starts and two more columns."""
    slots = _SLOTS
    while slots < 2 + max(len(start.columns) for start in starts):
        slots *= 2
    return slots


def _begun(
    searches: Sequence[TracedSearch], starts: Sequence[Incumbent], quick: bool
) -> tuple[DescentLane, TracedState]:
    """Lanes and states on the devices, padded with idle lanes so that few shapes are compiled."""
    first, shape, slots = searches[0].problem, _matrix(searches[0].problem).shape, _slots(starts)
    sweeps = bool(first.loss == exponential and not quick)
    lanes = [search.lane(shape, quick, 1 + sweeps) for search in searches]
    states = [
        search.state(start, shape[0], slots, sweeps)
        for search, start in zip(searches, starts, strict=True)
    ]
    if len(lanes) == 1:
        return _placed(lanes[0]), on_device(states[0])
    width = _LANES
    while width < len(lanes):
        width *= 4
    idle = width - len(lanes)
    lanes, states = lanes + lanes[:1] * idle, states + [_idle(states[0])] * idle
    return _placed(_together(lanes)), on_device(_together(states))


def _placed(lanes: DescentLane) -> DescentLane:
    """The lanes on the devices, the numbers of patterns beside their columns."""
    target, mass = on_device((lanes.target, lanes.mass), rows=-1)
    others = on_device(lanes._replace(target=None, mass=None))
    return cast(DescentLane, others._replace(target=target, mass=mass))


def _idle(state: TracedState) -> TracedState:
    return state._replace(moves=np.zeros_like(state.moves))


def _in_chunks(
    searches: Sequence[TracedSearch], starts: Sequence[Incumbent], quick: bool
) -> list[Incumbent]:
    """Make descents from the starts; returns at once if one is stopped while the program
    compiles.

    Args:
        quick: whether to make only moves with a refit, of which few are tried.
    """
    problem, many, best = searches[0].problem, len(searches) > 1, list(starts)
    X, none = _matrix(problem), len(_matrix(problem)) - 1
    lanes, states = _begun(searches, starts, quick)
    limit, kinds = _QUICK, 1 + (problem.loss == exponential and not quick)
    program = {"loss": problem.loss, "encoding": problem.encoding, "many": many}

    def stopped() -> bool:
        return any(search.stopped() for search in searches)

    while True:
        begun = time.perf_counter()
        following = _chunk_in_time(stopped, X, lanes, states, limit, **program)
        if following is None:
            return best
        states = following
        now = jax.tree.map(np.asarray, states._replace(queue=states.queue.taken))
        seconds = time.perf_counter() - begun
        columns, weights = (np.atleast_2d(part) for part in now.support)
        ended = np.atleast_1d((now.idle >= kinds) | (now.moves <= 0))
        for lane, search in enumerate(searches):
            used = columns[lane] != none
            best[lane] = search.reported(best[lane], columns[lane][used], weights[lane][used])
            search.moves = int(np.atleast_1d(now.moves)[lane])
            search.certified = bool(np.atleast_1d(now.certified)[lane])
        if ended.all() or stopped():
            return best
        if now.full.any():
            states = _with_slots(states, 2 * columns.shape[1], none)
        # The next chunk should last `_SECONDS`; one slow chunk (a compilation) must not end in
        # chunks of one trial, nor a fast one in a chunk that nothing can interrupt.
        limit = int(np.clip(limit * _SECONDS / seconds, max(limit // 4, 1), 4 * limit))
        states = on_device(states._replace(work=np.zeros_like(now.work)))
