"""All moves at once, for `search`: full-refit moves are ranked, closed-form moves swept.

Shapes: P patterns (distinct rows), C columns, K columns of the support. The matrix has a byte per
entry and is read as float32 for predictions; margins, weights and the objectives of accepted moves
are float64. Nearly all of the time goes to one product with the matrix. In NumPy, BLAS computes it,
and nothing is compiled for any shape of the data or size of the support. `traced` calls the same
formulas with JAX arrays.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from jaxrules.ensembles.lire.objective import (
    best_weight,
    least_loss,
    loss_terms,
    penalty,
    penalty_increase,
)
from jaxrules.losses import Array, Loss, exponential
from jaxrules.tools.float64 import numpy_of

Encoding = Literal["signed", "binary"]
Floats = NDArray[np.float64]
Reals = NDArray[Any]  # float32, or float64 for the squared loss
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

ADDITIONS = 8
"""The most columns that a closed-form sweep may add."""
_BLOCK = 192, 1024
"""The numbers of columns and patterns cast to float32 at once: the result fits in the cache."""
_FEW = 1 << 20
"""With at most this many entries, threads are not worthwhile."""
ONES = 0
"""The index of the column of ones, the intercept."""

_quiet = np.errstate(all="ignore")  # predictions may overflow or vanish; refits decide


def _put(array: Array, index: Array, values: Array) -> Array:
    """A copy of the array with other values at an index."""
    if isinstance(array, jax.Array):
        return array.at[index].set(values)
    array = array.copy()
    array[index] = values
    return array


def _inverse(hessian: Array) -> Array:
    """The inverse of a positive definite matrix, float64."""
    if isinstance(hessian, jax.Array):
        factor = jnp.linalg.cholesky(hessian)
        return jax.scipy.linalg.cho_solve((factor, True), jnp.eye(len(hessian)))
    return np.linalg.inv(hessian)


class PatternData(NamedTuple):
    """The matrix (C, P), int8, and the mean target and the weight of every pattern, (P,)
    float64.
    """

    columns: NDArray[np.int8]
    target: Floats
    weight: Floats


class Charges(NamedTuple):
    """What is charged for every column, (C,) each: its coverage, whether it counts (1 or 0), its
    ridge; the bounds on its weight; and whether it may enter, and leave, the support.
    """

    coverage: Floats
    counted: Floats
    ridge: Floats
    least: Floats
    most: Floats
    addable: Bools
    removable: Bools


class Support(NamedTuple):
    """Columns and their weights (K,)."""

    columns: Array
    weights: Array


class Penalties(NamedTuple):
    """The penalties gamma and lambda, and the largest size of a support (infinite for no limit)."""

    gamma: float
    lam: float
    most: float


class Sums(NamedTuple):
    """Sums over the patterns at some margins: the loss, X d (C,), the curvature of every column
    alone (C,), and X_S diag(v) X' (K, C), where d is the downhill slope and v the curvature of
    every pattern.
    """

    value: Array
    slope: Reals
    own: Reals
    products: Reals


def _product(rows: Array, data: PatternData) -> Array:
    """rows @ columns.T in float32, (R, C); traced rows keep their dtype. Rounding does not depend
    on the number of threads.
    """
    if isinstance(rows, jax.Array):
        matrix = data.columns.astype(rows.dtype)
        return lax.dot_general(rows, matrix, (((1,), (1,)), ((), ())), precision="highest")
    columns, (height, width) = data.columns, _BLOCK
    result = np.zeros((len(columns), len(rows)), np.float32)

    @_quiet  # in every thread
    def fill(start: int) -> None:
        part = slice(start, start + height)
        for first in range(0, columns.shape[1], width):
            block = slice(first, first + width)
            result[part] += columns[part, block].astype(np.float32) @ rows[:, block].T

    parts = range(0, len(columns), height)
    if columns.size <= _FEW:
        for start in parts:
            fill(start)
    else:
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(fill, parts))
    return np.ascontiguousarray(result.T)


@_quiet
def sums(
    data: PatternData, columns: Integers, margins: Floats, loss: Loss, encoding: Encoding
) -> Sums:
    """The sums of all columns, by one product of shapes (K, P) and (P, C)."""
    xp = numpy_of(margins)
    value, slope, curvature = loss_terms(loss, data.target, data.weight, margins)
    # For the quadratic loss, traced, predictions in float64 are exact, as by its Gram matrix.
    single = xp.stack([slope, curvature]).astype(np.float64 if loss.quadratic else np.float32)
    # sum v x_j^2, where x_j^2 is 1 (signed) or x_j (binary)
    sides = single if encoding == "binary" else single[:1]
    products = _product(xp.concatenate([data.columns[columns] * single[1], sides]), data)
    own, size = products[-1], len(columns)
    if encoding == "signed":
        own = xp.full(len(data.columns), curvature.sum(), single.dtype)
    return Sums(value, products[size], own, products[:size])


# The penalties after moves, and which moves are allowed


def _size_and_coverage(charges: Charges, columns: Integers) -> tuple[Array, Array]:
    return charges.counted[columns].sum(), charges.coverage[columns].sum()


def _move_penalties(
    charges: Charges, columns: Integers, terms: Penalties
) -> tuple[Reals, Reals, Reals]:
    """The penalty after every drop (K,), addition (C,) and swap (K, C), by Lemma 1."""
    prices = terms.gamma, terms.lam
    size, covered = _size_and_coverage(charges, columns)
    fewer, less = size - charges.counted[columns], covered - charges.coverage[columns]
    drop, xp = penalty(fewer, less, *prices), numpy_of(columns)
    ratio, ratios = covered / xp.maximum(size, 1), less / xp.maximum(fewer, 1)
    add = penalty(size, covered, *prices) + penalty_increase(size, ratio, charges.coverage, *prices)
    rises = penalty_increase(fewer[:, None], ratios[:, None], charges.coverage[None, :], *prices)
    return drop, add, drop[:, None] + rises


def _paid(charges: Charges, support: Support) -> Array:
    """The ridge on the weights."""
    return charges.ridge[support.columns] @ support.weights**2 / 2


def _allowed(
    charges: Charges, columns: Integers, terms: Penalties, moves: tuple[Reals, Reals, Reals]
) -> tuple[Reals, Reals, Reals]:
    """The objectives of drops (K,), additions (C,) and swaps (K, C), set to infinity if a column
    may not leave or enter the support.
    """
    xp, (drop, add, swap) = numpy_of(columns), moves
    size, _ = _size_and_coverage(charges, columns)
    removable = charges.removable[columns]
    outside = _put(charges.addable, columns, False)
    return (
        xp.where(removable, drop, np.inf),
        xp.where(outside & (size < terms.most), add, np.inf),
        xp.where(removable[:, None] & outside[None], swap, np.inf),
    )


# Moves with a refit of all weights


@_quiet
def rank_moves(
    sums: Sums, charges: Charges, support: Support, terms: Penalties, loss: Loss
) -> tuple[Reals, Reals, Reals, Floats]:
    """`_rank` from sums over the patterns; the ridge is added to the Hessian's diagonal and to the
    slope.
    """
    columns, weights, products = support.columns, support.weights, sums.products
    ridge, own = charges.ridge.astype(products.dtype), (np.arange(len(columns)), columns)
    drawn = (charges.ridge[columns] * weights).astype(products.dtype)
    products = _put(products, own, products[own] + ridge[columns])
    slope = _put(sums.slope, columns, sums.slope[columns] - drawn)
    value = sums.value + _paid(charges, support)
    curved = sums.value if loss == exponential else None
    return _rank(products, slope, sums.own + ridge, value, charges, support, terms, curved)


@_quiet
def rank_moves_by_gram(
    gram: Floats,
    moment: Floats,
    squares: float,
    charges: Charges,
    support: Support,
    terms: Penalties,
) -> tuple[Reals, Reals, Reals, Floats]:
    """`_rank` for the squared loss, where predictions are exact and need no rows.

    Args:
        gram: with the ridge on its diagonal.
    """
    columns, weights = support
    products = gram[columns]
    fitted = weights @ products
    value = squares - weights @ moment[columns] + weights @ fitted[columns] / 2
    return _rank(products, moment - fitted, np.diagonal(gram), value, charges, support, terms, None)


def _rank(
    products: Reals,
    slope: Reals,
    own: Reals,
    value: Array,
    charges: Charges,
    support: Support,
    terms: Penalties,
    curved: Array,
) -> tuple[Reals, Reals, Reals, Floats]:
    """Predicted objective of every move, all weights refitted, by the second-order model of loss
    and ridge.

    Let H be the Hessian on the support and g_j its products with column j. Once the support
    follows, column j has the curvature s_j = h_jj - g_j' H^-1 g_j (a Schur complement) and gains
    slope^2 / 2 s_j; dropping column k costs b_k^2 / (2 (H^-1)_kk); a swap does both.

    Args:
        products: X_S diag(v) X' (K, C); its dtype is that of the predictions.
        slope: X d (C,).
        own: h_jj (C,).
        value: the loss with the ridge.
        curved: for the exponential loss, its value without the ridge, as its gains exceed the
            quadratic ones; None for other losses.

    Returns:
        drop (K,), add (C,), swap (K, C), infinite where not allowed, and H^-1 (K, K).
    """
    changes, inverse = _changes(products, slope, own, charges, support, curved)
    return *_ranked(value, changes, charges, support.columns, terms), inverse


class _Changes(NamedTuple):
    """What drops cost (K,), and additions and the new columns of swaps gain, (C,) and (K, C)."""

    drop: Reals
    add: Reals
    swap: Reals


def _changes(
    products: Reals, slope: Reals, own: Reals, charges: Charges, support: Support, curved: Array
) -> tuple[_Changes, Floats]:
    """The second-order changes of loss and ridge by every move, and H^-1; see `_rank`."""
    # Notation of `_rank`: H = X_S diag(v) X_S' is `hessian`, g_j the column j of `products`, u = X
    # d `slope` (downhill), b `weights`.
    dtype, columns, xp = products.dtype, support.columns, numpy_of(products)
    # Sibling rules are nearly collinear: the ridge keeps H positive definite, and the floor keeps a
    # Schur complement that is zero but for rounding from promising any gain.
    ridge, floor = (1e-6, 1e-4) if dtype == np.float32 else (1e-10, 1e-9)
    scale = xp.maximum(own.max(), xp.asarray(1e-30, dtype))
    hessian = products[:, columns].astype(np.float64)
    inverse = _inverse((hessian + hessian.T) / 2 + ridge * scale * np.eye(len(columns)))
    spread = xp.diagonal(inverse).astype(dtype)
    # H^-1 g_j, for all columns at once: how the weights of the support answer to column j
    along = inverse.astype(dtype) @ products
    # s_j = h_jj - g_j' H^-1 g_j, what is left of the curvature once the support follows
    curvature = xp.maximum(own - xp.einsum("kc,kc->c", products, along), floor * scale)
    # u_j - g_j' H^-1 u_S: the support first takes the Newton step that its own slope still asks
    # for. After a full refit u_S is zero, but incumbents are refitted to a tolerance only.
    slope = slope - slope[columns] @ along
    weights = support.weights.astype(dtype)

    def gain(slope: Reals, curvature: Reals) -> Reals:
        helps = xp.where(slope > 0, charges.most > 0, charges.least < 0)
        square = xp.where(helps, slope * slope / curvature, 0)
        if curved is not None:
            # A signed column alone changes the exponential loss T to sqrt(T^2 - u^2), not to
            # T - u^2 / 2T as the quadratic model has it: with e = u / T its best weight is
            # atanh(e), which leaves T sqrt(1 - e^2). Here square / T is e^2; it is kept below 1
            # because u and T are rounded.
            total = xp.asarray(curved, dtype)
            return total * (1 - xp.sqrt(1 - xp.minimum(square / total, dtype.type(1 - 1e-6))))
        return square / 2

    # A swap is a drop and an addition. Dropping column k with a refit moves the others by -b_k /
    # (H^-1)_kk times column k of H^-1 (the surgeon's step: it minimises the model where b_k is 0,
    # at a cost of b_k^2 / 2 (H^-1)_kk). The slope of j falls by its curvature along this step, -b_k
    # / (H^-1)_kk (H^-1 g_j)_k, and j regains the curvature that k had taken from it. Nearly equal k
    # and j make both terms huge and inexact; no curvature exceeds the largest h_jj.
    swap_slope = slope[None, :] + (weights / spread)[:, None] * along
    swap_curvature = xp.minimum(curvature[None, :] + along**2 / spread[:, None], scale)
    gains = gain(slope, curvature), gain(swap_slope, swap_curvature)
    return _Changes(weights**2 / (2 * spread), *gains), inverse


def _ranked(
    value: Array, changes: _Changes, charges: Charges, columns: Integers, terms: Penalties
) -> tuple[Reals, Reals, Reals]:
    """The objective after every move, infinite where not allowed."""
    dtype, xp = changes.add.dtype, numpy_of(changes.add)
    numbers: list[Array] = [part if part.dtype == bool else part.astype(dtype) for part in charges]
    single, prices = Charges(*numbers), Penalties(*(xp.asarray(term, dtype) for term in terms))
    drop_penalty, add_penalty, swap_penalty = _move_penalties(single, columns, prices)
    value = xp.asarray(value, dtype)
    drop = value + changes.drop + drop_penalty
    add = value - changes.add + add_penalty
    swap = value + changes.drop[:, None] - changes.swap + swap_penalty
    return _allowed(charges, columns, terms, (drop, add, swap))


@_quiet
def rank_joint_moves(
    data: PatternData,
    value: float,
    slopes: Floats,
    curvatures: Floats,
    charges: Charges,
    support: Support,
    terms: Penalties,
    encoding: Encoding,
) -> tuple[Reals, Reals, Reals, Floats]:
    """`_rank` for L classes fitted together: the model of the loss has no terms across classes, so
    that their changes add up.

    Args:
        data: its target is not read.
        value: the loss with the ridge.
        slopes, curvatures: of every class and pattern, (L, P); slopes downhill.
        support: weights (K, L).

    Returns:
        drop (K,), add (C,), swap (K, C), infinite where not allowed, and H^-1 (L, K, K).
    """
    columns, n_classes = support.columns, len(slopes)
    size, single = len(columns), np.stack([slopes, curvatures]).astype(np.float32)
    supported = data.columns[columns].astype(np.float32)
    rows = (single[1][:, None] * supported[None]).reshape(n_classes * size, -1)
    sides = single if encoding == "binary" else single[:1]
    found = _product(np.concatenate([rows, *sides]), data)
    products = found[: len(rows)].reshape(n_classes, size, -1)
    slope = found[len(rows) : len(rows) + n_classes]
    own = found[-n_classes:]
    if encoding == "signed":
        own = np.tile(curvatures.sum(axis=1)[:, None], len(data.columns)).astype(np.float32)
    ridge, supports = charges.ridge.astype(np.float32), (np.arange(size), columns)
    products[:, *supports] += ridge[columns]
    slope[:, columns] -= charges.ridge[columns] * support.weights.T
    each = zip(products, slope, own + ridge, support.weights.T, strict=True)
    of_classes = [
        _changes(product, downhill, curved, charges, Support(columns, weights), None)
        for product, downhill, curved, weights in each
    ]
    changes = _Changes(*(sum(part) for part in zip(*(one for one, _ in of_classes), strict=True)))
    inverse = np.stack([one for _, one in of_classes])
    return *_ranked(value, changes, charges, columns, terms), inverse


# Closed-form moves under the exponential loss


@_quiet
def sweep(
    data: PatternData,
    sums: Sums,
    charges: Charges,
    support: Support,
    margins: Floats,
    terms: Penalties,
    tolerance: float,
    encoding: Encoding,
) -> tuple[Support, int]:
    """Evaluate every move in closed form, the other weights fixed; then take the good ones in turn.

    The best move of every column (a drop or a swap) and the best additions are sorted by objective.
    Each is evaluated again in float64, given the moves already taken, and taken if it improves.

    Args:
        sums: at these margins.

    Returns:
        The new support, and the number of moves taken.
    """
    # One move per slot (the better of its drop and its best swap) and a few additions: the moves of
    # one slot exclude each other, and each taken move costs a pass over the patterns.
    columns = support.columns
    drop, add, swap = closed_form_moves(data, sums, charges, support, margins, terms, encoding)
    swapped = swap.argmin(axis=1)
    least = swap[np.arange(len(columns)), swapped]
    added = np.argsort(add, kind="stable")[:ADDITIONS]
    slots = np.concatenate([np.arange(len(columns)), np.full(len(added), -1)])
    entering = np.concatenate([np.where(drop <= least, -1, swapped), added])
    predicted = np.concatenate([np.minimum(drop, least), add[added]])
    size, covered = _size_and_coverage(charges, columns)
    paid = float(_paid(charges, support))
    objective = float(sums.value + paid + penalty(size, covered, terms.gamma, terms.lam))
    sizes = objective, paid, float(size), float(covered)
    state = _Sweep(list(columns), list(support.weights), margins, *sizes)
    good = np.count_nonzero(predicted < objective - tolerance)
    for move in np.argsort(predicted, kind="stable")[:good]:
        place = int(slots[move]), int(entering[move])
        state = _take_if_better(state, *place, data, charges, terms, tolerance)
    kept = [slot for slot, column in enumerate(state.columns) if column >= 0]
    chosen = Support(np.array(state.columns, np.int64)[kept], np.array(state.weights)[kept])
    return chosen, state.taken


class _Sweep(NamedTuple):
    columns: list[int]  # -1 for a column that has left
    weights: list[float]
    margins: Floats
    objective: float
    paid: float  # the ridge on the weights
    size: float
    covered: float
    taken: int = 0


def _take_if_better(
    state: _Sweep,
    slot: int,
    new: int,
    data: PatternData,
    charges: Charges,
    terms: Penalties,
    tolerance: float,
) -> _Sweep:
    """Evaluate one move exactly: the column of the slot leaves (-1: none does), and another enters
    (-1: none does).
    """
    columns, weights, margins, _, paid, size, covered, _ = state
    if (new >= 0 and new in columns) or (slot < 0 and size >= terms.most):
        return state
    columns, weights = columns.copy(), weights.copy()
    if slot >= 0:  # without the column that leaves
        old, weight = columns[slot], weights[slot]
        margins = margins - weight * data.columns[old]
        size, covered = size - charges.counted[old], covered - charges.coverage[old]
        paid -= charges.ridge[old] * weight**2 / 2
        columns[slot] = -1
    else:
        slot = len(columns)
        columns, weights = [*columns, -1], [*weights, 0.0]
    value, slope, mass = loss_terms(exponential, data.target, data.weight, margins)
    prices = terms.gamma, terms.lam
    # What the new column must win back for the move to improve on the state
    lost = value + paid + penalty(size, covered, *prices) - (state.objective - tolerance)
    if new < 0:
        if lost >= 0:
            return state
    else:  # with the one that enters, if that gains more than its penalty and what was lost
        # Theorem 1 on the margins without the old column: eps is the mass of the rows that the new
        # one moves, eps- the share of them that it moves the wrong way.
        entry = data.columns[new].astype(np.float64)
        moved, helping = float((mass * np.abs(entry)).sum()), float((slope * entry).sum())
        helped, harmed = max(moved + helping, 0.0) / 2, max(moved - helping, 0.0) / 2
        increase = penalty_increase(size, covered / max(size, 1.0), charges.coverage[new], *prices)
        share = harmed / moved if moved > 0 else 0.0
        ends = charges.least[new], charges.most[new]
        weight = float(best_weight(moved, share, increase + lost, charges.ridge[new], *ends))
        if weight == 0:
            return state
        margins = margins + weight * entry
        value += helped * np.expm1(-weight) + harmed * np.expm1(weight)
        paid += charges.ridge[new] * weight**2 / 2
        size, covered = size + charges.counted[new], covered + charges.coverage[new]
        columns[slot], weights[slot] = new, weight
    objective = float(value + paid + penalty(size, covered, *prices))
    return _Sweep(columns, weights, margins, objective, paid, size, covered, state.taken + 1)


def closed_form_moves(
    data: PatternData,
    sums: Sums,
    charges: Charges,
    support: Support,
    margins: Floats,
    terms: Penalties,
    encoding: Encoding,
) -> tuple[Reals, Reals, Reals]:
    """The objective after every drop (K,), addition (C,) and swap (K, C), the other weights fixed;
    infinite where not allowed.
    """
    losses = _closed_form_losses(data, sums, charges, support, margins, encoding)
    penalties = _move_penalties(charges, support.columns, terms)
    drop, add, swap = (loss + penalty for loss, penalty in zip(losses, penalties, strict=True))
    return _allowed(charges, support.columns, terms, (drop, add, swap))


def _closed_form_losses(
    data: PatternData,
    sums: Sums,
    charges: Charges,
    support: Support,
    margins: Floats,
    encoding: Encoding,
) -> tuple[Reals, Reals, Reals]:
    """Loss and ridge after every drop (K,), addition (C,) and swap (K, C), the other weights fixed.

    Removing a weight b multiplies the loss of a row by e^(+-b x). For a signed column x^2 = 1, so
    e^(b x) = cosh b + x sinh b, and one product suffices; a binary column needs one product for
    each sign of the target.
    """
    columns = support.columns
    weights = support.weights.astype(np.float32)
    ridge = charges.ridge.astype(np.float32)
    charged = ridge, charges.least.astype(np.float32), charges.most.astype(np.float32)
    xp = numpy_of(margins)
    value, paid = (xp.asarray(part, np.float32) for part in (sums.value, _paid(charges, support)))
    slopes = sums.slope
    left = paid - ridge[columns] * weights**2 / 2
    if encoding == "signed":
        # T_k = cosh(b) T + sinh(b) u_k and U_kj = cosh(b) u_j + sinh(b) (X_S diag(v) X')_kj: the
        # loss and the slopes without column k
        grow, tilt = xp.cosh(weights), xp.sinh(weights)
        drop = grow * value + tilt * slopes[columns]
        swap_slopes = grow[:, None] * slopes[None, :] + tilt[:, None] * sums.products

        def least(moved: Array, slope: Reals) -> Reals:
            return least_loss((moved + slope) / 2, (moved - slope) / 2, *charged)

        swap = left[:, None] + least(drop[:, None], swap_slopes)
        return left + drop, paid + least(value, slopes), swap

    _, slope, _ = loss_terms(exponential, data.target, data.weight, margins)
    tilted = _product(data.columns[columns] * slope.astype(np.float32), data)
    helped, harmed = (sums.own + slopes) / 2, (sums.own - slopes) / 2
    # Removing weight b multiplies the loss of its helped rows (y x > 0) by e^b, of harmed ones by
    # e^-b, and leaves the others as they are: hence expm1. For rows of columns k and j together,
    # half of X_k diag(v) X_j' plus or minus X_k diag(d) X_j' is their helped and their harmed mass.
    up, down = xp.expm1(weights), xp.expm1(-weights)
    drop = value + up * helped[columns] + down * harmed[columns]

    def best(value: Array, helped: Reals, harmed: Reals) -> Reals:
        return value - helped - harmed + least_loss(helped, harmed, *charged)

    swap_helped = helped[None, :] + up[:, None] * (sums.products + tilted) / 2
    swap_harmed = harmed[None, :] + down[:, None] * (sums.products - tilted) / 2
    swap = left[:, None] + best(drop[:, None], swap_helped, swap_harmed)
    return left + drop, paid + best(value, helped, harmed), swap
