"""The kernels of `support_search`: rank all full-refit moves, and sweep closed-form moves.

Shapes: P patterns (distinct rows), C columns, K slots. A support sits in K slots, of which some are in
use, so that its size can change without a new shape. The matrix is float32 and serves predictions;
margins, weights and what is accepted are float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxrules.float64 import x64_kernel

LossName = Literal["exponential", "logistic", "squared"]
Encoding = Literal["signed", "binary"]
Array = Any  # a jax array inside the kernels, a NumPy array outside
Number = Any

SHARE_CLIP = 1e-10
"""The share of wrongly signed loss is clipped to [1e-10, 1 - 1e-10], so that separable data have finite weights."""
ADDITIONS = 8
"""Columns that one closed-form sweep may add."""
ONES = 0
"""The column of ones, the intercept."""


class Data(NamedTuple):
    """The matrix (C, P), float32, and what the loss needs of every pattern (P,), float64.

    Classification: the weight of the positive and of the negative rows. Squared loss: weight and mean target.
    """

    columns: Array
    first: Array
    second: Array


class Charges(NamedTuple):
    """What every column costs (C,): its coverage, whether it counts (1 or 0), and whether it may enter."""

    coverage: Array
    counted: Array
    addable: Array


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


def coordinate_minimum(helped: Array, harmed: Array) -> tuple[Array, Array]:
    """The best weight of one column under the exponential loss, the others fixed (Theorem 1 of LIRE).

    Args:
        helped, harmed: loss on the rows that a positive weight helps and harms: (1 - eps-) eps and eps- eps.

    Returns:
        weight: 1/2 ln((1 - eps-) / eps-), with eps- clipped; 0 where eps is 0.
        loss: what `helped + harmed` becomes.
    """
    total = helped + harmed
    share = jnp.clip(harmed / jnp.where(total > 0, total, 1.0), SHARE_CLIP, 1 - SHARE_CLIP)
    weight = jnp.where(total > 0, 0.5 * jnp.log((1 - share) / share), 0.0)
    return weight, helped * jnp.exp(-weight) + harmed * jnp.exp(weight)


def _product(left: Array, right: Array) -> Array:
    """left @ right.T in full precision, also on an accelerator. On a CPU it is best to have the larger one first."""
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


def _loss_terms(loss: LossName, data: Data, margins: Array) -> tuple[Array, Array, Array]:
    """The loss (summed), and downhill slope and curvature of every pattern, at these margins (P,)."""
    first, second = jnp.asarray(data.first), jnp.asarray(data.second)
    if loss == "exponential":
        margins = jnp.clip(margins, -600.0, 600.0)  # the exponential stays finite: 0 * inf would be NaN
        right, wrong = first * jnp.exp(-margins), second * jnp.exp(margins)
        return (right + wrong).sum(), right - wrong, right + wrong
    if loss == "logistic":
        value = first * jax.nn.softplus(-margins) + second * jax.nn.softplus(margins)
        chance, other = jax.nn.sigmoid(margins), jax.nn.sigmoid(-margins)
        return value.sum(), first * other - second * chance, (first + second) * chance * other
    residual = second - margins
    return (first * residual**2).sum(), 2 * first * residual, 2 * first


def _chosen(data: Data, slots: Slots) -> Array:
    """The columns of the support, 0 in unused slots, float32 (K, P)."""
    return data.columns[slots.column] * slots.active[:, None].astype(jnp.float32)


# What moves cost, and which are allowed


def _penalty(size: Array, total: Array, gamma: Number, lam: Number) -> Array:
    """gamma |S| + lambda (total coverage) / |S|; 0 for an empty support."""
    return gamma * size + lam * total / jnp.maximum(size, 1.0)


def _size_and_coverage(charges: Charges, slots: Slots) -> tuple[Array, Array]:
    counted = jnp.where(slots.active, charges.counted[slots.column], 0.0).sum()
    return counted, jnp.where(slots.active, charges.coverage[slots.column], 0.0).sum()


def _move_penalties(charges: Charges, slots: Slots, terms: Terms) -> tuple[Array, Array, Array]:
    """The penalty after every drop (K,), addition (C,) and swap (K, C)."""
    gamma, lam, _ = terms
    size, total = _size_and_coverage(charges, slots)
    fewer, less = size - charges.counted[slots.column], total - charges.coverage[slots.column]
    drop = _penalty(fewer, less, gamma, lam)
    add = _penalty(size + charges.counted, total + charges.coverage, gamma, lam)
    sizes = fewer[:, None] + charges.counted[None, :]
    swap = _penalty(sizes, less[:, None] + charges.coverage[None, :], gamma, lam)
    return drop, add, swap


def _inside(charges: Charges, slots: Slots) -> Array:
    """Which columns are in the support (C,)."""
    nowhere = len(charges.addable)
    return jnp.zeros(nowhere, bool).at[jnp.where(slots.active, slots.column, nowhere)].set(True, mode="drop")


def _allowed(charges: Charges, slots: Slots, terms: Terms) -> tuple[Array, Array, Array]:
    """Which slots may lose their column (K,), and which columns may enter by a swap or an addition (C,)."""
    size, _ = _size_and_coverage(charges, slots)
    outside = charges.addable & ~_inside(charges, slots)
    return slots.active & (charges.counted[slots.column] > 0), outside, outside & (size < terms.most)


# Moves with a refit of all weights


@x64_kernel(static=("loss", "encoding"))
def rank_moves(
    data: Data, charges: Charges, slots: Slots, terms: Terms, *, loss: LossName, encoding: Encoding
) -> tuple[Array, Array, Array, Array]:
    """`_rank` from the rows: one product of shapes (K, P) and (P, C)."""
    chosen = _chosen(data, slots)
    value, slope, curvature = _loss_terms(loss, data, slots.weights @ chosen.astype(jnp.float64))
    curvature = curvature.astype(jnp.float32)[None, :]
    slope = slope.astype(jnp.float32)[None, :]
    products = _product(jnp.concatenate([chosen * curvature, slope, curvature]), data.columns)
    # sum v x_j^2, where x_j^2 is 1 (signed) or x_j (binary)
    own = products[-1] if encoding == "binary" else jnp.full(len(data.columns), products[-1, ONES])
    return _rank(products[:-2], products[-2], own, value, charges, slots, terms, loss == "exponential")


@x64_kernel
def rank_moves_by_gram(
    gram: Array, moment: Array, squares: Number, charges: Charges, slots: Slots, terms: Terms
) -> tuple[Array, Array, Array, Array]:
    """`_rank` for the squared loss, where the prediction is exact and the rows are not needed."""
    products = jnp.where(slots.active[:, None], gram[slots.column], 0.0)
    fitted = slots.weights @ products
    value = squares - slots.weights @ moment[slots.column] + slots.weights @ fitted[slots.column] / 2
    own = jnp.diagonal(gram)
    return _rank(products, moment - fitted, own, value, charges, slots, terms, exponential=False)


def _rank(
    products: Array,
    slope: Array,
    own: Array,
    value: Array,
    charges: Charges,
    slots: Slots,
    terms: Terms,
    exponential: bool,
) -> tuple[Array, Array, Array, Array]:
    """Predicted objective of every move, all weights refitted, by the second-order model of the loss.

    With H the Hessian on the support and g_j its products with column j, the curvature of j once the
    support follows is s_j = h_jj - g_j' H^-1 g_j; dropping slot k costs b_k^2 / (2 (H^-1)_kk); a swap does both.

    Args:
        products: X_S diag(v) X' (K, C), 0 in unused slots; its dtype is that of the predictions.
        slope: X d (C,).
        own: h_jj (C,).
        value: the loss.

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
    left = jnp.maximum(own - (products * along).sum(axis=0), floor * scale)
    reduced = slope - jnp.where(slots.active, slope[slots.column], 0.0) @ along
    weights, value = jnp.where(slots.active, slots.weights, 0.0).astype(dtype), value.astype(dtype)

    def gain(reduced: Array, left: Array) -> Array:
        square = reduced * reduced / left
        if exponential:  # exact for a signed column alone: T - sqrt(T^2 - u^2)
            return value * (1 - jnp.sqrt(1 - jnp.minimum(square / value, 1 - 1e-6)))
        return square / 2

    charges = jax.tree.map(lambda a: a.astype(dtype) if a.dtype != bool else a, charges)
    drop_penalty, add_penalty, swap_penalty = _move_penalties(
        charges, slots, Terms(*(jnp.asarray(term).astype(dtype) for term in terms))
    )
    removable, swappable, enterable = _allowed(charges, slots, terms)
    drop_cost = weights**2 / (2 * spread)
    swap_slope = reduced[None, :] + (weights / spread)[:, None] * along
    swap_left = jnp.minimum(left[None, :] + along**2 / spread[:, None], scale)
    swap = value + drop_cost[:, None] - gain(swap_slope, swap_left) + swap_penalty
    return (
        jnp.where(removable, value + drop_cost + drop_penalty, jnp.inf),
        jnp.where(enterable, value - gain(reduced, left) + add_penalty, jnp.inf),
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
    margins = slots.weights @ chosen.astype(jnp.float64)
    value, _, _ = _loss_terms("exponential", data, margins)
    drop, add, swap = _closed_form_losses(data, slots, chosen, margins, encoding)
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
    size, total = _size_and_coverage(charges, slots)
    objective = value + _penalty(size, total, terms.gamma, terms.lam)
    state = _Sweep(slots, margins, _inside(charges, slots), objective, size, total, jnp.asarray(0))

    def consider(step: Array, state: _Sweep) -> _Sweep:
        return _take_if_better(state, slot[order[step]], column[order[step]], data, charges, terms, tolerance)

    state = lax.fori_loop(0, (predicted < objective - tolerance).sum(), consider, state)
    return *state.slots, state.taken


class _Sweep(NamedTuple):
    slots: Slots
    margins: Array
    inside: Array
    objective: Array
    size: Array
    total: Array  # coverage
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

    margins = state.margins - jnp.where(is_add, 0.0, weights[place]) * data.columns[old].astype(jnp.float64)
    value, slope, mass = _loss_terms("exponential", data, margins)
    entry = data.columns[new].astype(jnp.float64)
    moved = (mass * jnp.abs(entry)).sum()
    helped, harmed = (moved + (slope * entry).sum()) / 2, (moved - (slope * entry).sum()) / 2
    weight, covered = coordinate_minimum(jnp.maximum(helped, 0.0), jnp.maximum(harmed, 0.0))
    weight = jnp.where(is_drop, 0.0, weight)
    value = jnp.where(is_drop, value, value - moved + covered)

    def after(charge: Array, before: Array) -> Array:
        return before - jnp.where(is_add, 0.0, charge[old]) + jnp.where(is_drop, 0.0, charge[new])

    size, total = after(charges.counted, state.size), after(charges.coverage, state.total)
    objective = value + _penalty(size, total, terms.gamma, terms.lam)
    # A weight of 0 is no member of the support, even where its penalty is negative.
    take = possible & (objective < state.objective - tolerance) & (is_drop | (weight != 0))

    nowhere = len(state.inside)
    inside = state.inside.at[jnp.where(is_add, nowhere, old)].set(False, mode="drop")
    inside = inside.at[jnp.where(is_drop, nowhere, new)].set(True, mode="drop")
    slots = Slots(columns.at[place].set(new), active.at[place].set(~is_drop), weights.at[place].set(weight))
    changed = _Sweep(slots, margins + weight * entry, inside, objective, size, total, state.taken + 1)
    pick: Callable[[Array, Array], Array] = lambda new, old: jnp.where(take, new, old)  # noqa: E731
    return jax.tree.map(pick, changed, state)


def _closed_form_losses(
    data: Data, slots: Slots, chosen: Array, margins: Array, encoding: Encoding
) -> tuple[Array, Array, Array]:
    """The loss after every drop (K,), addition (C,) and swap (K, C), the other weights fixed.

    Removing a weight b multiplies the loss of a row by e^(+-b x). A signed column has x^2 = 1, so that
    e^(b x) = cosh b + x sinh b, and one product does; a binary one needs a product for each sign of the target.
    """
    _, slope, mass = _loss_terms("exponential", data, margins)
    slope, mass = slope.astype(jnp.float32)[None, :], mass.astype(jnp.float32)[None, :]
    weights = slots.weights.astype(jnp.float32)
    if encoding == "signed":
        products = _product(jnp.concatenate([chosen * mass, slope]), data.columns)
        value, column_slope = mass.sum(), products[-1]
        grow, tilt = jnp.cosh(weights), jnp.sinh(weights)
        drop = grow * value + tilt * column_slope[slots.column]
        after = grow[:, None] * column_slope[None, :] + tilt[:, None] * products[:-1]

        def lowest(moved: Array, column_slope: Array) -> Array:
            return jnp.sqrt(jnp.maximum((moved + column_slope) * (moved - column_slope), 0.0))

        return drop, lowest(value, column_slope), lowest(drop[:, None], after)

    right, wrong = (mass + slope) / 2, (mass - slope) / 2
    products = _product(jnp.concatenate([chosen * right, chosen * wrong, right, wrong]), data.columns)
    helped, harmed, slots_used = products[-2], products[-1], len(weights)
    up, down = jnp.expm1(weights), jnp.expm1(-weights)
    drop = mass.sum() + up * helped[slots.column] + down * harmed[slots.column]

    def best(total: Array, helped: Array, harmed: Array) -> Array:
        return total - helped - harmed + 2 * jnp.sqrt(jnp.maximum(helped, 0.0) * jnp.maximum(harmed, 0.0))

    swap_helped = helped[None, :] + up[:, None] * products[:slots_used]
    swap_harmed = harmed[None, :] + down[:, None] * products[slots_used:-2]
    return drop, best(mass.sum(), helped, harmed), best(drop[:, None], swap_helped, swap_harmed)
