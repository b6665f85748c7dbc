"""The kernels of `support_search`: rank all full-refit moves, and sweep closed-form moves.

Shapes: P patterns (distinct rows), C columns, K slots. A support sits in K slots, of which some are in
use, so that its size can change without a new shape. The matrix is float32 (a byte per entry where it is large) and
serves predictions; margins, weights and what is accepted are float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxrules.float64 import x64_kernel
from jaxrules.losses import Loss, exponential
from jaxrules.solvers.support.objective import (
    best_weight,
    least_loss,
    loss_terms,
    penalty,
    penalty_increase,
)

Encoding = Literal["signed", "binary"]
Array = Any  # a jax array inside the kernels, a NumPy array outside
Number = Any

ADDITIONS = 8
"""Columns that one closed-form sweep may add."""
_BLOCK = 8192
"""Patterns of a matrix of bytes that are cast at once."""
ONES = 0
"""The column of ones, the intercept."""


class Data(NamedTuple):
    """The matrix (C, P), float32 or int8, and the mean target and the weight of every pattern (P,), float64."""

    columns: Array
    target: Array
    weight: Array


class Charges(NamedTuple):
    """What every column costs (C,): its coverage, whether it counts (1 or 0), the price of half its squared weight; the
    ends of its weight; and whether it may enter, and leave."""

    coverage: Array
    counted: Array
    ridge: Array
    least: Array
    most: Array
    addable: Array
    removable: Array


class Slots(NamedTuple):
    """A support (K,): the column of every slot, whether the slot is in use, and the weight."""

    column: Array
    active: Array
    weights: Array


class Terms(NamedTuple):
    """The penalties gamma and lambda, and the largest size of a support (infinite: no limit)."""

    gamma: Number
    lam: Number
    most: Number


def _product(left: Array, right: Array) -> Array:
    """left @ right.T in full precision, also on an accelerator. On a CPU it is best to have the larger one first.

    A matrix of bytes is cast by blocks of patterns: a float32 copy of all would be four times as large.
    """
    if right.dtype == jnp.int8:
        width = math.gcd(right.shape[1], _BLOCK)

        def add(block: Array, total: Array) -> Array:
            parts = (lax.dynamic_slice_in_dim(side, block * width, width, axis=1) for side in (left, right))
            return total + _product(*(part.astype(jnp.float32) for part in parts))

        zeros = jnp.zeros((len(left), len(right)), jnp.float32)
        return lax.fori_loop(0, right.shape[1] // width, add, zeros)
    return lax.dot_general(right, left, (((1,), (1,)), ((), ())), precision=lax.Precision.HIGHEST).T


def _inverse(matrix: Array) -> Array:
    """The inverse of a positive definite matrix, by Gauss-Jordan elimination in place.

    For these sizes it beats LAPACK, whose threads wait for each other on a busy machine.
    """

    def eliminate(k: Array, matrix: Array) -> Array:
        row, column, pivot = matrix[k] / matrix[k, k], matrix[:, k], matrix[k, k]
        reduced = matrix - column[:, None] * row[None, :]
        return reduced.at[k].set(row).at[:, k].set(-column / pivot).at[k, k].set(1 / pivot)

    return lax.fori_loop(0, len(matrix), eliminate, matrix)


def _loss_terms(loss: Loss, data: Data, margins: Array) -> tuple[Array, Array, Array]:
    return loss_terms(loss, jnp.asarray(data.target), jnp.asarray(data.weight), margins)


def _chosen(data: Data, slots: Slots) -> Array:
    """The columns of the support, 0 in unused slots, float32 (K, P)."""
    return data.columns[slots.column].astype(jnp.float32) * slots.active[:, None].astype(jnp.float32)


def _margins(data: Data, slots: Slots, chosen: Array) -> Array:
    """The scores (P,), float64."""
    if data.columns.dtype == jnp.int8:  # a fused sum: a product would first write a float64 copy of the columns
        return jnp.sum(chosen.astype(jnp.float64) * slots.weights[:, None], axis=0)
    return slots.weights @ chosen.astype(jnp.float64)


# What moves cost, and which are allowed


def _size_and_coverage(charges: Charges, slots: Slots) -> tuple[Array, Array]:
    counted = jnp.where(slots.active, charges.counted[slots.column], 0.0).sum()
    return counted, jnp.where(slots.active, charges.coverage[slots.column], 0.0).sum()


def _move_penalties(charges: Charges, slots: Slots, terms: Terms) -> tuple[Array, Array, Array]:
    """The penalty after every drop (K,), addition (C,) and swap (K, C)."""
    prices = terms.gamma, terms.lam
    size, covered = _size_and_coverage(charges, slots)
    fewer, less = size - charges.counted[slots.column], covered - charges.coverage[slots.column]
    drop = penalty(fewer, less, *prices)
    ratio, ratios = covered / jnp.maximum(size, 1.0), less / jnp.maximum(fewer, 1.0)
    add = penalty(size, covered, *prices) + penalty_increase(size, ratio, charges.coverage, *prices)
    rises = penalty_increase(fewer[:, None], ratios[:, None], charges.coverage[None, :], *prices)
    return drop, add, drop[:, None] + rises


def _paid(charges: Charges, slots: Slots) -> Array:
    """What the ridge takes for the weights."""
    return jnp.where(slots.active, charges.ridge[slots.column] * slots.weights**2 / 2, 0.0).sum()


def _inside(charges: Charges, slots: Slots) -> Array:
    """Which columns are in the support (C,)."""
    nowhere = len(charges.addable)
    return jnp.zeros(nowhere, bool).at[jnp.where(slots.active, slots.column, nowhere)].set(True, mode="drop")


def _allowed(charges: Charges, slots: Slots, terms: Terms) -> tuple[Array, Array, Array]:
    """Which slots may lose their column (K,), and which columns may enter by a swap or an addition (C,)."""
    size, _ = _size_and_coverage(charges, slots)
    outside = charges.addable & ~_inside(charges, slots)
    return slots.active & charges.removable[slots.column], outside, outside & (size < terms.most)


# Moves with a refit of all weights


@x64_kernel(static=("loss", "encoding"))
def rank_moves(
    data: Data, charges: Charges, slots: Slots, terms: Terms, *, loss: Loss, encoding: Encoding
) -> tuple[Array, Array, Array, Array]:
    """`_rank` from the rows: one product of shapes (K, P) and (P, C)."""
    chosen = _chosen(data, slots)
    value, slope, curvature = _loss_terms(loss, data, _margins(data, slots, chosen))
    ridge, paid = charges.ridge.astype(jnp.float32), _paid(charges, slots)
    slope, curvature = slope.astype(jnp.float32)[None, :], curvature.astype(jnp.float32)[None, :]
    products = _product(jnp.concatenate([chosen * curvature, slope, curvature]), data.columns)
    # sum v x_j^2, where x_j^2 is 1 (signed) or x_j (binary)
    own = products[-1] if encoding == "binary" else jnp.full(len(data.columns), products[-1, ONES])
    # the ridge joins the Hessian's diagonal and the slope
    hessian, slopes = products[:-2], products[-2]
    hessian = hessian.at[jnp.arange(len(hessian)), slots.column].add(jnp.where(slots.active, ridge[slots.column], 0.0))
    pull = jnp.where(slots.active, charges.ridge[slots.column] * slots.weights, 0.0)
    slopes = slopes.at[slots.column].add(-pull.astype(jnp.float32))
    curved = value if loss is exponential else None
    return _rank(hessian, slopes, own + ridge, value + paid, charges, slots, terms, curved)


@x64_kernel
def rank_moves_by_gram(
    gram: Array, moment: Array, squares: Number, charges: Charges, slots: Slots, terms: Terms
) -> tuple[Array, Array, Array, Array]:
    """`_rank` for the squared loss, where the prediction is exact and the rows are not needed.

    Args:
        gram: with the ridge on its diagonal.
    """
    products = jnp.where(slots.active[:, None], gram[slots.column], 0.0)
    fitted = slots.weights @ products
    value = squares - slots.weights @ moment[slots.column] + slots.weights @ fitted[slots.column] / 2
    own = jnp.diagonal(gram)
    return _rank(products, moment - fitted, own, value, charges, slots, terms, None)


def _rank(
    products: Array,
    slope: Array,
    own: Array,
    value: Array,
    charges: Charges,
    slots: Slots,
    terms: Terms,
    curved: Array | None,
) -> tuple[Array, Array, Array, Array]:
    """Predicted objective of every move, all weights refitted, by the second-order model of loss and ridge.

    With H the Hessian on the support and g_j its products with column j, the curvature of j once the
    support follows is s_j = h_jj - g_j' H^-1 g_j; dropping slot k costs b_k^2 / (2 (H^-1)_kk); a swap does both.

    Args:
        products: X_S diag(v) X' (K, C), 0 in unused slots; its dtype is that of the predictions.
        slope: X d (C,).
        own: h_jj (C,).
        value: the loss with the ridge.
        curved: the exponential loss alone, whose gains are more than quadratic; None for other losses.

    Returns:
        drop (K,), add (C,), swap (K, C), infinite where not allowed, and H^-1 (K, K).
    """
    dtype = products.dtype
    ridge, floor = (1e-6, 1e-4) if dtype == jnp.float32 else (1e-10, 1e-9)
    scale = jnp.maximum(own.max(), 1e-30)
    hessian = jnp.where(slots.active[None, :], products[:, slots.column], 0.0).astype(jnp.float64)
    hessian = (hessian + hessian.T) / 2 + jnp.diag(jnp.where(slots.active, ridge * scale, 1.0))
    inverse = _inverse(hessian)
    spread = jnp.diagonal(inverse).astype(dtype)
    along = jnp.matmul(inverse.astype(dtype), products, precision=lax.Precision.HIGHEST)
    curvature = jnp.maximum(own - (products * along).sum(axis=0), floor * scale)
    slope = slope - jnp.where(slots.active, slope[slots.column], 0.0) @ along
    weights, value = jnp.where(slots.active, slots.weights, 0.0).astype(dtype), value.astype(dtype)

    def gain(slope: Array, curvature: Array) -> Array:
        square = jnp.where(jnp.where(slope > 0, charges.most > 0, charges.least < 0), slope * slope / curvature, 0)
        if curved is not None:  # exact for a signed column alone, without a ridge: T - sqrt(T^2 - u^2)
            total = curved.astype(dtype)
            return total * (1 - jnp.sqrt(1 - jnp.minimum(square / total, 1 - 1e-6)))
        return square / 2

    charges = jax.tree.map(lambda a: a.astype(dtype) if a.dtype != bool else a, charges)
    drop_penalty, add_penalty, swap_penalty = _move_penalties(
        charges, slots, Terms(*(jnp.asarray(term).astype(dtype) for term in terms))
    )
    removable, swappable, enterable = _allowed(charges, slots, terms)
    drop_cost = weights**2 / (2 * spread)
    swap_slope = slope[None, :] + (weights / spread)[:, None] * along
    swap_curvature = jnp.minimum(curvature[None, :] + along**2 / spread[:, None], scale)
    swap = value + drop_cost[:, None] - gain(swap_slope, swap_curvature) + swap_penalty
    return (
        jnp.where(removable, value + drop_cost + drop_penalty, jnp.inf),
        jnp.where(enterable, value - gain(slope, curvature) + add_penalty, jnp.inf),
        jnp.where(removable[:, None] & swappable[None, :], swap, jnp.inf),
        inverse,
    )


# Closed-form moves under the exponential loss


@x64_kernel(static=("encoding",))
def sweep(
    data: Data, charges: Charges, slots: Slots, terms: Terms, tolerance: Number, *, encoding: Encoding
) -> tuple[Array, Array, Array, Array]:
    """Score every move in closed form, the other weights fixed; then take the good ones in turn.

    The best move of every slot (a drop or a swap) and the best additions are sorted by their objective;
    each is evaluated afresh in float64 after those taken before it, and taken if it improves.

    Returns:
        columns, active, weights of the new support (K,), and the number of moves taken.
    """
    chosen = _chosen(data, slots)
    margins = _margins(data, slots, chosen)
    value, _, _ = _loss_terms(exponential, data, margins)
    drop, add, swap = _closed_form_losses(data, charges, slots, chosen, margins, encoding)
    removable, swappable, enterable = _allowed(charges, slots, terms)
    drop_penalty, add_penalty, swap_penalty = _move_penalties(charges, slots, terms)
    drop = jnp.where(removable, drop + drop_penalty, jnp.inf)
    add = jnp.where(enterable, add + add_penalty, jnp.inf)
    swap = jnp.where(removable[:, None] & swappable[None, :], swap + swap_penalty, jnp.inf)

    best_swap, swapped = jnp.argmin(swap, axis=1), swap.min(axis=1)
    _, added = lax.top_k(-add, ADDITIONS)
    slot = jnp.concatenate([jnp.arange(len(drop)), jnp.full(ADDITIONS, -1)])
    column = jnp.concatenate([jnp.where(drop <= swapped, -1, best_swap), added])
    predicted = jnp.concatenate([jnp.minimum(drop, swapped), add[added]])
    order = jnp.argsort(predicted)
    size, covered = _size_and_coverage(charges, slots)
    paid = _paid(charges, slots)
    objective = value + paid + penalty(size, covered, terms.gamma, terms.lam)
    state = _Sweep(slots, margins, _inside(charges, slots), objective, paid, size, covered, jnp.asarray(0))

    def consider(step: Array, state: _Sweep) -> _Sweep:
        return _take_if_better(state, slot[order[step]], column[order[step]], data, charges, terms, tolerance)

    state = lax.fori_loop(0, (predicted < objective - tolerance).sum(), consider, state)
    return *state.slots, state.taken


class _Sweep(NamedTuple):
    slots: Slots
    margins: Array
    inside: Array
    objective: Array
    paid: Array  # for the ridge
    size: Array
    covered: Array
    taken: Array


def _take_if_better(
    state: _Sweep,
    slot: Array,
    column: Array,
    data: Data,
    charges: Charges,
    terms: Terms,
    tolerance: Number,
) -> _Sweep:
    """One move, exactly: empty the slot (-1: take a free one) and put the column in (-1: leave it empty)."""
    columns, active, weights = state.slots
    is_add, is_drop = slot < 0, column < 0
    place = jnp.where(is_add, jnp.argmin(active), slot)
    old, new = columns[place], jnp.where(is_drop, ONES, column)
    possible = (active[place] != is_add) & (is_drop | ~state.inside[new]) & (~is_add | (state.size < terms.most))

    # without the column that leaves
    margins = state.margins - jnp.where(is_add, 0.0, weights[place]) * data.columns[old].astype(jnp.float64)
    value, slope, mass = _loss_terms(exponential, data, margins)
    size = state.size - jnp.where(is_add, 0.0, charges.counted[old])
    covered = state.covered - jnp.where(is_add, 0.0, charges.coverage[old])
    paid = state.paid - jnp.where(is_add, 0.0, charges.ridge[old] * weights[place] ** 2 / 2)
    prices = terms.gamma, terms.lam
    lost = value + paid + penalty(size, covered, *prices) - (state.objective - tolerance)
    # and with the one that enters, if that is worth more than it costs and what was lost
    entry = data.columns[new].astype(jnp.float64)
    moved, helping = (mass * jnp.abs(entry)).sum(), (slope * entry).sum()
    helped, harmed = jnp.maximum(moved + helping, 0.0) / 2, jnp.maximum(moved - helping, 0.0) / 2
    increase = penalty_increase(size, covered / jnp.maximum(size, 1.0), charges.coverage[new], *prices)
    share = harmed / jnp.where(moved > 0, moved, 1.0)
    ends = charges.least[new], charges.most[new]
    weight = best_weight(moved, share, increase + lost, charges.ridge[new], *ends)
    weight = jnp.where(is_drop, 0.0, weight)
    take = possible & jnp.where(is_drop, lost < 0, weight != 0)
    value += helped * jnp.expm1(-weight) + harmed * jnp.expm1(weight)
    paid += charges.ridge[new] * weight**2 / 2
    size = size + jnp.where(is_drop, 0.0, charges.counted[new])
    covered = covered + jnp.where(is_drop, 0.0, charges.coverage[new])
    objective = value + paid + penalty(size, covered, *prices)

    nowhere = len(state.inside)
    inside = state.inside.at[jnp.where(is_add, nowhere, old)].set(False, mode="drop")
    inside = inside.at[jnp.where(is_drop, nowhere, new)].set(True, mode="drop")
    slots = Slots(columns.at[place].set(new), active.at[place].set(~is_drop), weights.at[place].set(weight))
    changed = _Sweep(slots, margins + weight * entry, inside, objective, paid, size, covered, state.taken + 1)
    pick: Callable[[Array, Array], Array] = lambda new, old: jnp.where(take, new, old)  # noqa: E731
    return jax.tree.map(pick, changed, state)


def _closed_form_losses(
    data: Data, charges: Charges, slots: Slots, chosen: Array, margins: Array, encoding: Encoding
) -> tuple[Array, Array, Array]:
    """Loss and ridge after every drop (K,), addition (C,) and swap (K, C), the other weights fixed.

    Removing a weight b multiplies the loss of a row by e^(+-b x). A signed column has x^2 = 1, so that
    e^(b x) = cosh b + x sinh b, and one product does; a binary one needs a product for each sign of the target.
    """
    _, slope, mass = _loss_terms(exponential, data, margins)
    slope, mass = slope.astype(jnp.float32)[None, :], mass.astype(jnp.float32)[None, :]
    weights, ridge = slots.weights.astype(jnp.float32), charges.ridge.astype(jnp.float32)
    ends = charges.least.astype(jnp.float32), charges.most.astype(jnp.float32)
    paid = _paid(charges, slots).astype(jnp.float32)
    left = paid - ridge[slots.column] * weights**2 / 2
    if encoding == "signed":
        products = _product(jnp.concatenate([chosen * mass, slope]), data.columns)
        value, slopes = mass.sum(), products[-1]
        grow, tilt = jnp.cosh(weights), jnp.sinh(weights)
        drop = grow * value + tilt * slopes[slots.column]
        swap_slopes = grow[:, None] * slopes[None, :] + tilt[:, None] * products[:-1]

        def least(moved: Array, slope: Array, *charged: Array) -> Array:
            return least_loss((moved + slope) / 2, (moved - slope) / 2, *charged)

        swap = left[:, None] + least(drop[:, None], swap_slopes, *(part[None, :] for part in (ridge, *ends)))
        return left + drop, paid + least(value, slopes, ridge, *ends), swap

    right, wrong = (mass + slope) / 2, (mass - slope) / 2
    products = _product(jnp.concatenate([chosen * right, chosen * wrong, right, wrong]), data.columns)
    helped, harmed, n_slots = products[-2], products[-1], len(weights)
    up, down = jnp.expm1(weights), jnp.expm1(-weights)
    drop = mass.sum() + up * helped[slots.column] + down * harmed[slots.column]

    def best(value: Array, helped: Array, harmed: Array, *charged: Array) -> Array:
        return value - helped - harmed + least_loss(helped, harmed, *charged)

    swap_helped = helped[None, :] + up[:, None] * products[:n_slots]
    swap_harmed = harmed[None, :] + down[:, None] * products[n_slots:-2]
    swap = left[:, None] + best(drop[:, None], swap_helped, swap_harmed, *(part[None, :] for part in (ridge, *ends)))
    return left + drop, paid + best(mass.sum(), helped, harmed, ridge, *ends), swap
