"""Local improvement of index sequences (Section 4.1 and appendix C), without solving any
candidate's problem.

Choose q steps, keep the others, and try all d^q ways to assign features to the chosen ones. The
objective of a sequence is s - h'H^-1 h (see `problem`), so with the kept steps factored once
every candidate is a q x q Schur complement in closed form: for q = 1, J_i = J - (h_i - H_i'H^-1
h)^2 / (H_ii - H_i'H^-1 H_i). The kernel runs one descent per start (vmap) until no choice of
steps improves its sequence.

The quadratic models of the cost may differ between steps (logistic and Poisson cost), and a step
may change several coefficients of a feature together (softmax cost): then the entries of the Schur
complement are blocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from jaxrules.paths.costs import Array, QuadraticCost, Sequence
from jaxrules.paths.problem import Changes, PathProblem, weighted_sums
from jaxrules.solvers.layered import LayeredCertificate, never
from jaxrules.solvers.patience import Patient
from jaxrules.solvers.shapes import bucket
from jaxrules.tools.float64 import x64_kernel

JITTER = 1e-12
LARGEST_COUNT = np.iinfo(np.int32).max
MAX_CANDIDATES = 2**13
"""Candidates evaluated at once, which limits the starts in a batch; more is no faster."""


def search(
    problem: PathProblem,
    certificate: LayeredCertificate[Changes] | None = None,
    stopped: Callable[[], bool] = never,
    *,
    batch: int = 2,
    iterations: int | None = None,
    first: Sequence | None = None,
    restarts: int = 20,
    seed: int = 0,
) -> LayeredCertificate[Changes]:
    """The best of local improvement from `first` (i0) or else the greedy sequence, and from random
    ones, without a proof; see `exact.search`.
    """
    certificate = certificate or problem.certificate()
    random = random_sequences(problem.n_features, problem.steps, restarts, seed)
    first = certificate.solution.features if first is None else first
    found = improve(
        problem.cost, problem.step_weights, np.concatenate([first[None], random]),
        batch=batch, iterations=iterations, seed=seed, stopped=stopped, width=problem.width,
    )  # fmt: skip
    certificate.offer(problem.along(found[0]))
    return certificate


def random_sequences(n_features: int, steps: int, restarts: int, seed: int) -> Sequence:
    """Starting points, uniform and independent, shape (restarts, steps)."""
    return np.random.default_rng(seed).integers(0, n_features, (restarts, steps))


def improve(
    cost: QuadraticCost,
    step_weights: Array,
    starts: Sequence,
    *,
    batch: int = 2,
    iterations: int | None = None,
    seed: int = 0,
    stopped: Callable[[], bool] = never,
    width: int = 1,
) -> Sequence:
    """Descend from every start; the improved sequences, best first, shape (starts, steps).

    Args:
        cost: the cost of the change from the starting model, or a stack of one per step.
        step_weights: alpha, shape (steps,).
        starts: feature sequences, shape (starts, steps).
        batch: q, the number of steps reassigned at once (at most `steps`); the work grows as
            features^q.
        iterations: T, the most choices of q steps per start; None to go on until none improves.
        seed: of the orders in which steps are chosen.
        stopped: if true, the remaining starts are not improved.
        width: the number of coefficients of a feature.
    """
    curvatures, slopes, constant = weighted_sums(cost, step_weights)
    steps, d = len(slopes), slopes.shape[1] // width
    choices = np.array(list(itertools.combinations(range(steps), batch)), np.int32)
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(len(choices)) for _ in starts])
    # Padding changes nothing: a step without weight has P = G = 0, and a feature without curvature
    # gains nothing. In ties the first feature is taken, and padding comes last.
    padded_steps, padded_d = bucket(steps, 4), bucket(d, 4)
    P = np.zeros((padded_steps, padded_d * width, padded_d * width))
    P[:steps, : d * width, : d * width] = curvatures
    G = np.zeros((padded_steps, padded_d * width))
    G[:steps, : d * width] = slopes
    sequences = np.zeros((len(starts), padded_steps), np.int32)
    sequences[:, :steps] = starts
    objectives = np.full(len(starts), np.inf)
    lanes = max(1, min(len(starts), MAX_CANDIDATES // (padded_d**batch * width**2)))
    for first in range(0, len(starts), lanes):
        if stopped():
            break
        # The last batch repeats its last start, to keep the shape.
        at = np.minimum(np.arange(first, first + lanes), len(starts) - 1)
        found = _compiled_in_time(
            stopped, P, G, constant, sequences[at], _pad(choices[orders[at]]),
            np.int32(len(choices)), np.int32(LARGEST_COUNT if iterations is None else iterations),
            batch=batch, width=width,
        )  # fmt: skip
        if found is None:
            break
        sequences[at], objectives[at] = found
    return sequences[np.argsort(objectives, kind="stable"), :steps].astype(np.int64)


def _pad(choices: NDArray[np.int32]) -> NDArray[np.int32]:
    """Pad the choices of steps, shape (starts, choices, q), to a power of two."""
    more = bucket(choices.shape[1], digits=1) - choices.shape[1]
    return np.pad(choices, ((0, 0), (0, more), (0, 0)))


# of a descent: the sequence, its objective, the next choice, choices since the last improvement
_State = tuple[jax.Array, jax.Array, jax.Array, jax.Array]


@x64_kernel(static=("batch", "width"))
def _descend(
    P: jax.Array,
    G: jax.Array,
    constant: jax.Array,
    sequences: jax.Array,
    choices: jax.Array,
    n_choices: jax.Array,
    iterations: jax.Array,
    batch: int,
    width: int,
) -> tuple[jax.Array, jax.Array]:
    # Of a loss near 0, rounding may make the constant negative: an improvement must remain one.
    tolerance = 1e-11 * jnp.abs(constant)

    def descend(sequence: jax.Array, order: jax.Array) -> tuple[jax.Array, jax.Array]:
        def advance(state: _State) -> _State:
            sequence, objective, cursor, stale = state
            chosen = order[cursor % n_choices]
            candidates = _candidates(P, G, constant, sequence, chosen, batch, width)
            features, value = _least(candidates)
            better = value < objective - tolerance
            features = features.astype(sequence.dtype)
            sequence = jnp.where(better, sequence.at[chosen].set(features), sequence)
            stale = jnp.where(better, 0, stale + 1)
            return sequence, jnp.where(better, value, objective), cursor + 1, stale

        # The first choice always counts as better than infinity. A descent ends after all choices
        # in turn have failed since the last improvement, or after the iterations that are allowed.
        start = (sequence, jnp.array(jnp.inf), jnp.int32(0), jnp.int32(-1))
        sequence, objective, _, _ = jax.lax.while_loop(
            lambda state: (state[3] < n_choices) & (state[2] < iterations), advance, start
        )
        return sequence, objective

    return jax.vmap(descend)(sequences, choices)


_compiled_in_time = Patient(_descend)


def _least(candidates: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The position and value of a table's minimum, row by row: this vectorises better than one
    argmin.
    """
    if candidates.ndim == 1:
        best = jnp.argmin(candidates)
        return best[None], candidates[best]
    first = jnp.argmin(candidates.min(axis=tuple(range(1, candidates.ndim))))
    rest, value = _least(candidates[first])
    return jnp.concatenate([first[None], rest]), value


def _candidates(
    P: jax.Array,
    G: jax.Array,
    constant: jax.Array,
    sequence: jax.Array,
    chosen: jax.Array,
    batch: int,
    width: int,
) -> jax.Array:
    """Objectives of all assignments of features, of `width` coefficients each, to the chosen steps,
    shape (features,) * batch.

    The kept steps are factored once, H = L L'. What they leave of the chosen steps is the Schur
    complement in `schur` (with right side `linear`), a table per entry, with an axis per chosen
    step.
    """
    order = jnp.repeat(jnp.arange(len(sequence)), width)
    sequence = (sequence[:, None] * width + jnp.arange(width)[None]).reshape(-1)
    kept = (order[:, None] != chosen[None]).all(axis=1)
    # H_jk = P_max(j, k) [i_j, i_k] of the kept steps; the others get rows of the identity.
    later = jnp.maximum(order[:, None], order[None])
    H = P[later, sequence[:, None], sequence[None]]
    diagonal = jnp.where(kept & (jnp.diagonal(H) > 0), jnp.diagonal(H), 1.0)
    H = jnp.where(kept[:, None] & kept[None], H, 0.0)
    every = jnp.arange(len(sequence))
    H = H.at[every, every].set(diagonal * (1 + JITTER))
    right = [
        jnp.where(kept[:, None], P[jnp.maximum(order, chosen[a]), sequence], 0.0)
        for a in range(batch)
    ]
    right.append(jnp.where(kept, G[order, sequence], 0.0)[:, None])
    inverse_factor = jax.scipy.linalg.solve_triangular(
        jnp.linalg.cholesky(H), jnp.eye(len(sequence)), lower=True
    )
    solved = inverse_factor @ jnp.concatenate(right, axis=1)
    columns, last = jnp.split(solved[:, :-1], batch, axis=1), solved[:, -1]
    if width > 1:
        return constant - last @ last - _gains(P, G, chosen, columns, last, width)

    def on_axes(array: jax.Array, *axes: int) -> jax.Array:
        return array.reshape([array.shape[axes.index(a)] if a in axes else 1 for a in range(batch)])

    linear = [on_axes(G[chosen[a]] - columns[a].T @ last, a) for a in range(batch)]
    scale = [on_axes(jnp.diagonal(P[chosen[a]]), a) for a in range(batch)]
    schur = {
        (a, b): on_axes(P[jnp.maximum(chosen[a], chosen[b])] - columns[a].T @ columns[b], a, b)
        for a in range(batch)
        for b in range(a + 1, batch)
    }
    for a in range(batch):
        schur[a, a] = on_axes(jnp.diagonal(P[chosen[a]]) - (columns[a] ** 2).sum(axis=0), a)
    objective = constant - last @ last
    for a in range(batch):  # eliminate the chosen steps one by one
        # s - h'H^-1 h falls by linear^2 / pivot for each step, as in appendix C.
        pivot = schur[a, a]
        inverse = jnp.where(pivot > 1e-10 * scale[a], 1 / jnp.where(pivot > 0, pivot, 1.0), 0.0)
        objective = objective - linear[a] ** 2 * inverse
        for b in range(a + 1, batch):
            factor = schur[a, b] * inverse
            linear[b] = linear[b] - factor * linear[a]
            for c in range(b, batch):
                schur[b, c] = schur[b, c] - factor * schur[a, c]
    return jnp.broadcast_to(objective, (P.shape[1],) * batch)


def _gains(
    P: jax.Array,
    G: jax.Array,
    chosen: jax.Array,
    columns: list[jax.Array],
    last: jax.Array,
    width: int,
) -> jax.Array:
    """By how much the chosen steps lower the objective if every feature has `width` coefficients,
    shape (features,) * batch: `_candidates` with a matrix per candidate.
    """
    batch, d = len(columns), G.shape[1] // width
    shape, own = (d,) * batch, jnp.arange(d)

    def on_axes(array: jax.Array, *axes: int) -> jax.Array:
        """An array with a leading axis per axis of the table, spread over the others."""
        inner = array.shape[len(axes) :]
        leading = [d if a in axes else 1 for a in range(batch)]
        return jnp.broadcast_to(array.reshape(*leading, *inner), (*shape, *inner))

    def block(a: int, b: int) -> jax.Array:
        table = P[jnp.maximum(chosen[a], chosen[b])] - columns[a].T @ columns[b]
        parts = table.reshape(d, width, d, width).transpose(0, 2, 1, 3)
        if a == b:
            return on_axes(parts[own, own], a)
        return on_axes(parts if a < b else parts.swapaxes(0, 1), *sorted((a, b)))

    schur = jnp.concatenate(
        [jnp.concatenate([block(a, b) for b in range(batch)], axis=-1) for a in range(batch)],
        axis=-2,
    )
    linear = jnp.concatenate(
        [on_axes((G[chosen[a]] - columns[a].T @ last).reshape(d, width), a) for a in range(batch)],
        axis=-1,
    )
    scale = jnp.concatenate(
        [on_axes(jnp.diagonal(P[chosen[a]]).reshape(d, width), a) for a in range(batch)], axis=-1
    )

    def eliminate(
        p: int, state: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        gain, linear, schur = state
        row, pivot, right = schur[..., p, :], schur[..., p, p], linear[..., p]
        inverse = jnp.where(
            pivot > 1e-10 * scale[..., p], 1 / jnp.where(pivot > 0, pivot, 1.0), 0.0
        )
        factor = row * inverse[..., None]
        schur = schur - factor[..., :, None] * row[..., None, :]
        return gain + right**2 * inverse, linear - factor * right[..., None], schur

    gain, _, _ = jax.lax.fori_loop(0, batch * width, eliminate, (jnp.zeros(shape), linear, schur))
    return gain
