"""Compiled kernels for the relaxation and its dual bound (`jaxrules.ensembles.lire.bound`);
imported on first use, as they load numba. A node of some hundred patterns and forty columns takes a
fraction of a millisecond.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from jaxrules.tools.compiling import FROM_KERNELS, from_python

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
States = NDArray[np.int8]

LOSSES = ("exponential", "logistic", "squared", "poisson")
OUT, IN, FREE = 0, 1, 2
"""The state of a column in a node."""
_FEW = 16  # columns that are sorted by insertion from the start
_SWEEPS = 20_000  # the most sweeps in a Newton step; nearly equal columns need many
# The slope along the intercept may lower the bound by this share of the loss of the best constant.
_CENTRED = 1e-10
_CENTRING_STEPS = 20
_SUMS = {"reassoc", "contract", "nsz"}  # sums may be reordered, nothing else

_compiled: Any = from_python()
_part: Any = numba.njit(**FROM_KERNELS)
_summing: Any = numba.njit(**FROM_KERNELS, fastmath=_SUMS)


class Data(NamedTuple):
    """What the relaxations of one problem share.

    Attributes:
        loss: index into `LOSSES`.
        target, mass: of every pattern, (patterns,).
        columns: encoded, (columns, patterns).
        gram, along: for the squared loss, its Hessian, (columns, columns), and its products with
            the intercept, (columns,); else empty.
        ridge, coverage, cap: (columns,).
        gamma, lam: the penalties.
    """

    loss: int
    target: Floats
    mass: Floats
    columns: Floats
    gram: Floats
    along: Floats
    ridge: Floats
    coverage: Floats
    cap: Floats
    gamma: float
    lam: float


@_summing
def _dot(one: Floats, other: Floats) -> float:
    total = 0.0
    for i in range(len(one)):
        total += one[i] * other[i]
    return total


@_summing
def _add(scores: Floats, weight: float, column: Floats) -> None:
    for i in range(len(scores)):
        scores[i] += weight * column[i]


# In place of NumPy's functions and expressions of arrays, which numba compiles slowly:


@_part
def _filled(size: int, value: float) -> Floats:
    filled = np.empty(size)
    for i in range(size):
        filled[i] = value
    return filled


@_part
def _total(values: Floats) -> float:
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total


@_part
def _taken(values: Floats, places: Ints) -> Floats:
    taken = np.empty(len(places))
    for i in range(len(places)):
        taken[i] = values[places[i]]
    return taken


@_part
def _terms(
    loss: int, target: Floats, mass: Floats, scores: Floats, downhill: Floats, curvature: Floats
) -> float:
    """As `jaxrules.lire.objective.loss_terms`, written into arrays."""
    value = 0.0
    for i in range(len(target)):
        if loss == 0:
            power = math.exp(min(max(scores[i], -600.0), 600.0))
            right = mass[i] * (1 + target[i]) / 2 / power
            wrong = mass[i] * (1 - target[i]) / 2 * power
            value += right + wrong
            downhill[i], curvature[i] = right - wrong, right + wrong
        elif loss == 1:
            tail, positive = math.exp(-abs(scores[i])), (1 + target[i]) / 2
            value += mass[i] * (
                math.log1p(tail) + max((1 - positive) * scores[i], -positive * scores[i])
            )
            chance = (1.0 if scores[i] > 0 else tail) / (1 + tail)
            downhill[i] = mass[i] * (positive - chance)
            curvature[i] = mass[i] * chance * (1 - chance)
        elif loss == 3:
            mean = math.exp(min(scores[i], 600.0))
            value += mass[i] * (mean - target[i] * scores[i])
            downhill[i], curvature[i] = mass[i] * (target[i] - mean), mass[i] * mean
        else:
            residual = target[i] - scores[i]
            value += mass[i] * residual**2
            downhill[i], curvature[i] = 2 * mass[i] * residual, 2 * mass[i]
    return value


@_summing
def _second_order(data: Data, chosen: Ints, curvature: Floats) -> tuple[Floats, Floats, float]:
    """The Hessian of these columns once the intercept follows, their products with the intercept,
    and the curvature of the intercept.
    """
    size, total = len(chosen), _total(curvature)
    hessian, along, weighted = np.empty((size, size)), np.empty(size), np.empty(len(curvature))
    for a in range(size):
        if len(data.gram):
            along[a] = data.along[chosen[a]]
            for b in range(size):
                hessian[a, b] = data.gram[chosen[a], chosen[b]]
            continue
        column = data.columns[chosen[a]]
        for i in range(len(curvature)):
            weighted[i] = column[i] * curvature[i]
        along[a] = _total(weighted)
        for b in range(a + 1):
            hessian[a, b] = hessian[b, a] = _dot(data.columns[chosen[b]], weighted)
    for a in range(size):
        own = hessian[a, a]
        for b in range(size):
            hessian[a, b] -= along[a] * along[b] / total
        hessian[a, a] += 1e-9 * own + 1e-300
    return hessian, along, total


@_part
def _reverse_huber(
    data: Data, state: States, largest: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """The reverse Huber penalty of every column in a node: price, slope, turn and cap, each
    (columns,).

    It is slope |b| up to |b| = turn, and price + ridge b^2 / 2 beyond. If the cap is below the
    turn, it is the line to the cap, and the turn is set to infinity. Columns that are in cost only
    their ridge; a cap of 0 keeps a column out.
    """
    n = len(state)
    price, slope, turn, cap = _filled(n, 0.0), _filled(n, 0.0), _filled(n, 0.0), _filled(n, 0.0)
    least = 1.0
    for j in range(n):
        if state[j] != OUT:
            least, cap[j] = min(least, data.coverage[j]), data.cap[j]
    for j in range(n):
        if state[j] != FREE:
            continue
        ridge = data.ridge[j]
        # c_j, the column's own price: lambda P(S) / |S| is at least lambda times the least coverage
        # plus this surplus of every column, as |S| is at most `largest` (`bound`, "Relaxation")
        price[j] = data.gamma + data.lam * (data.coverage[j] - least) / max(largest, 1)
        if price[j] > 0:
            turn[j] = math.sqrt(2 * price[j] / ridge) if ridge > 0 else math.inf
            slope[j] = math.sqrt(2 * price[j] * ridge)
            if turn[j] > cap[j]:
                # The cap ends the line from the origin before it touches the parabola.
                slope[j], turn[j] = price[j] / cap[j] + ridge * cap[j] / 2, math.inf
    return price, slope, turn, cap


@_part
def _paid(weight: float, slope: float, turn: float, ridge: float) -> float:
    size = abs(weight)
    return slope * size if size <= turn else slope * turn / 2 + ridge * size * size / 2


@_part
def _spread(matrix: Floats) -> Floats:
    """The diagonal of the inverse, from the Cholesky factor; pivots are kept above 0 for equal
    columns.
    """
    n = len(matrix)
    # Only lower triangles are read.
    factor, inverse, spread = np.empty((n, n)), np.empty((n, n)), _filled(n, 0.0)
    for i in range(n):
        for j in range(i + 1):
            left = matrix[i, j]
            for k in range(j):
                left -= factor[i, k] * factor[j, k]
            factor[i, j] = (
                left / factor[j, j]
                if j < i
                else math.sqrt(max(left, 1e-12 * matrix[i, i] + 1e-300))
            )
    for j in range(n):
        inverse[j, j] = 1 / factor[j, j]
        for i in range(j + 1, n):
            left = 0.0
            for k in range(j, i):
                left -= factor[i, k] * inverse[k, j]
            inverse[i, j] = left / factor[i, i]
        for i in range(j, n):
            spread[j] += inverse[i, j] ** 2
    return spread


@_part
def _moving(
    data: Data, weights: Floats, downhill: Floats, slope: Floats, cap: Floats
) -> tuple[Ints, Floats]:
    """The columns that move, those with a weight or with a pull of the loss beyond their slope; and
    the pull of every column.
    """
    n, size = len(weights), 0
    chosen, pull = np.empty(n, np.int64), _filled(n, 0.0)
    for j in range(n):
        if cap[j] > 0:
            pull[j] = _dot(data.columns[j], downhill)
            if weights[j] != 0 or abs(pull[j]) > slope[j]:
                chosen[size] = j
                size += 1
    return chosen[:size], pull


@_part
def _line_search(
    data: Data,
    scores: Floats,
    step: Floats,
    weights: Floats,
    chosen: Ints,
    change: Floats,
    slope: Floats,
    turn: Floats,
    now: float,
    predicted: float,
    downhill: Floats,
    curvature: Floats,
) -> tuple[float, float]:
    """The first of 1, 1/2, 1/4, ... of a Newton step at which loss plus penalty, `now` before it,
    falls by a hundredth of what the model predicts (Armijo); and the loss there, with its
    derivatives in `downhill` and `curvature`.
    """
    scale, moved = 1.0, np.empty(len(scores))
    while True:
        paid = 0.0
        for a, j in enumerate(chosen):
            paid += _paid(weights[j] + scale * change[a], slope[j], turn[j], data.ridge[j])
        for i in range(len(scores)):
            moved[i] = scores[i] + scale * step[i]
        loss = _terms(data.loss, data.target, data.mass, moved, downhill, curvature)
        if loss + paid <= now - 0.01 * scale * predicted or scale < 1e-6:
            return scale, loss
        scale /= 2


@_compiled
def step_work(n_moving: int, n_patterns: int) -> float:
    """The operations of a Newton step on these columns: their Hessian, and its inverse."""
    return float(n_moving) ** 2 * (n_patterns + n_moving)


@_part
def _reverse_huber_sweep(
    hessian: Floats,
    slope: Floats,
    turn: Floats,
    ridge: Floats,
    cap: Floats,
    b: Floats,
    gradient: Floats,
    sweeps: int,
) -> None:
    """As `coordinate_descent.sweep`, for |b| <= cap and reverse Huber penalties: slope |b| up to
    |b| = turn, with curvature ridge beyond.

    It ends early once no change lowers the function by more than about 1e-14.
    """
    for _ in range(sweeps):
        largest = 0.0
        for j in range(len(b)):
            curvature = hessian[j, j]
            alone = curvature * b[j] - gradient[j]
            size = max(abs(alone) - slope[j], 0.0) / curvature
            # Beyond the turn the penalty is quadratic, with the derivative ridge |b|.
            if size > turn[j]:
                size = abs(alone) / (curvature + ridge[j])
            size = min(size, cap[j])
            change = (size if alone > 0 else -size) - b[j]
            if change != 0.0:
                b[j] += change
                for i in range(len(b)):
                    gradient[i] += hessian[j, i] * change
                largest = max(largest, curvature * change * change)
        if largest < 1e-14:
            break


@_part
def _newton(
    hessian: Floats, along: Floats, shift: float, pull: Floats, chosen: Ints, slope: Floats,
    turn: Floats, ridge: Floats, cap: Floats, moved: Floats,
) -> None:  # fmt: skip
    """The Newton step: the second-order model with the reverse Huber penalty, by coordinate
    descent, which changes the weights of the chosen columns in place.
    """
    gradient = np.empty(len(chosen))
    for a, k in enumerate(chosen):
        gradient[a] = along[a] * shift - pull[k]
    _reverse_huber_sweep(
        hessian, _taken(slope, chosen), _taken(turn, chosen), _taken(ridge, chosen),
        _taken(cap, chosen), moved, gradient, _SWEEPS,
    )  # fmt: skip


@_compiled
def relax(
    data: Data,
    state: States,
    largest: int,
    weights: Floats,
    intercept: float,
    accuracy: float,
    steps: int,
    work: float,
) -> tuple[float, Floats, Floats, bool]:
    """Proximal Newton steps on the relaxation of a node.

    Args:
        state: OUT, IN or FREE, (columns,).
        largest: the largest size of a support in this node.
        weights: a first guess, (columns,), changed in place.
        intercept: a first guess.
        accuracy: the steps end at this predicted decrease.
        steps: the most steps.
        work: the most operations of a step (`step_work`); they end before a larger one.

    Returns:
        The intercept, z of every column, estimates of how much the minimum rises if a column is
        left out, and if it must enter, (columns, 2), to second order once the others follow, and
        whether the accuracy was reached.
    """
    n, ridge = len(state), data.ridge
    price, slope, turn, cap = _reverse_huber(data, state, largest)
    scores = _filled(len(data.target), intercept)
    for j in range(n):
        weights[j] = min(max(weights[j], -cap[j]), cap[j])
        if weights[j] != 0:
            _add(scores, weights[j], data.columns[j])
    downhill, curvature = np.empty(len(scores)), np.empty(len(scores))
    value = _terms(data.loss, data.target, data.mass, scores, downhill, curvature)
    chosen, hessian, done = np.empty(0, np.int64), np.empty((0, 0)), False
    for _ in range(steps):
        tilt = _total(downhill)
        chosen, pull = _moving(data, weights, downhill, slope, cap)
        if step_work(len(chosen), len(scores)) > work:
            chosen, hessian = chosen[:0], np.empty((0, 0))  # a slice would be of another type
            break
        hessian, along, total = _second_order(data, chosen, curvature)
        moved, change = _taken(weights, chosen), _taken(weights, chosen)
        _newton(hessian, along, tilt / total, pull, chosen, slope, turn, ridge, cap, moved)
        for a in range(len(chosen)):
            change[a] = moved[a] - change[a]
        shift = (tilt - _dot(along, change)) / total
        # The predicted decrease: the slope of the loss along the step, and the fall of the penalty.
        # The Armijo condition of `_line_search` refers to it.
        before, predicted = 0.0, tilt * shift
        for a, k in enumerate(chosen):
            paid = _paid(weights[k], slope[k], turn[k], ridge[k])
            before += paid
            predicted += pull[k] * change[a] + paid - _paid(moved[a], slope[k], turn[k], ridge[k])
        if not predicted > accuracy:
            for a, k in enumerate(chosen):
                weights[k] = moved[a]
            intercept += shift
            done = True
            break
        step = _filled(len(scores), shift)  # along this step, loss plus penalty must fall
        for a, k in enumerate(chosen):
            if change[a] != 0:
                _add(step, change[a], data.columns[k])
        scale, value = _line_search(
            data, scores, step, weights, chosen, change, slope, turn, value + before, predicted,
            downhill, curvature,
        )  # fmt: skip
        for a, k in enumerate(chosen):
            weights[k] += scale * change[a]
        intercept += scale * shift
        _add(scores, scale, step)
    share, rise = _share_and_rise(data, state, weights, chosen, hessian, price, slope, turn, cap)
    return intercept, share, rise, done


@_part
def _share_and_rise(
    data: Data,
    state: States,
    weights: Floats,
    chosen: Ints,
    hessian: Floats,
    price: Floats,
    slope: Floats,
    turn: Floats,
    cap: Floats,
) -> tuple[Floats, Floats]:
    """z of every column, and the estimates of `relax`; `hessian` is that of the chosen columns,
    changed in place.
    """
    n, ridge = len(state), data.ridge
    share, rise = _filled(n, 0.0), np.zeros((n, 2))
    # Of the columns that the relaxation leaves undecided, `bound` splits the one whose two rises
    # are largest. Both are taken from the second-order model of loss and penalty at the
    # relaxation's minimum, with the other weights following; columns that do not move (not in
    # `chosen`) keep 0.
    for j in range(n):  # z = |b| / t, or |b| / cap on the line to the cap
        whole = cap[j] if turn[j] == math.inf else turn[j]
        if state[j] == IN:
            share[j] = 1.0
        elif state[j] == FREE:
            share[j] = min(abs(weights[j]) / whole, 1.0) if whole > 0 else 1.0
    # The Hessian of loss and penalty: up to t the penalty is a line, without curvature (the little
    # that is added keeps equal columns apart); beyond t it is the ridge's parabola.
    for a in range(len(chosen)):
        j = chosen[a]
        hessian[a, a] += 1e-9 * hessian[a, a] if abs(weights[j]) <= turn[j] else ridge[j]
    # (H^-1)_jj: its inverse is the curvature along column j once the others follow.
    spread = _spread(hessian)
    for a in range(len(chosen)):
        j = chosen[a]
        size_of = abs(weights[j])
        # Left out: the model's least rise with b_j = 0 (as for a drop in `moves`)
        rise[j, 0] = size_of**2 / (2 * spread[a])
        # In: price and ridge in place of the line, c + r b^2 / 2 - slope |b|. Then the weight
        # grows: at the minimum the loss pulls as hard as the line, and the ridge, of slope r |b|
        # there, resists less; half the square of the difference over the curvature is won back.
        # Beyond t the column has paid its full price already, and nothing rises.
        if size_of <= turn[j]:
            uphill = max(slope[j] - ridge[j] * size_of, 0.0)
            more = price[j] + ridge[j] * size_of**2 / 2 - slope[j] * size_of
            rise[j, 1] = max(more - uphill**2 / 2 / (1 / spread[a] + ridge[j]), 0.0)
    return share, rise


@_part
def _dual_point(
    data: Data, state: States, weights: Floats, intercept: float, centre: float, loss: float
) -> tuple[float, Floats]:
    """-L*(theta), less what a nonzero sum of theta may subtract, and -theta, the downhill slope of
    the loss at these scores with the best intercept.
    """
    scores, reach = _filled(len(data.target), intercept), abs(centre)
    for j in range(len(state)):
        if state[j] != OUT:
            reach += data.cap[j]
            if weights[j] != 0:
                _add(scores, weights[j], data.columns[j])
    downhill, curvature = np.empty(len(scores)), np.empty(len(scores))
    value = _terms(data.loss, data.target, data.mass, scores, downhill, curvature)
    for _ in range(_CENTRING_STEPS):  # the best intercept
        tilt = _total(downhill)
        if abs(tilt) * reach <= _CENTRED * loss:
            break
        shift = min(max(tilt / max(_total(curvature), 1e-300), -1.0), 1.0)
        for i in range(len(scores)):
            scores[i] += shift
        value = _terms(data.loss, data.target, data.mass, scores, downhill, curvature)
    # -L*(theta) = L(f) - theta'f with theta = -downhill
    return value + _dot(downhill, scores) - abs(_total(downhill)) * reach, downhill


@_compiled
def dual(
    data: Data,
    state: States,
    least: int,
    largest: int,
    weights: Floats,
    intercept: float,
    centre: float,
    loss: float,
) -> tuple[float, Floats, Floats, Floats, Floats]:
    """What the gradient of the loss at these scores proves about the supports of a node.

    Args:
        state, weights, intercept: as in `relax`; any weights prove a bound.
        least, largest: the range of sizes of supports in this node.
        centre, loss: intercept and loss of the best constant.

    Returns:
        The dual's value without what depends on the support; what each column of a support
        subtracts, (columns,); lower bounds for every size, (columns + 1,), infinite outside the
        range; and with and without every free column.
    """
    value, downhill = _dual_point(data, state, weights, intercept, centre, loss)
    n = len(state)

    # w_j = max of g_j b - r_j b^2 / 2 within the cap: b = g_j / r_j, or the cap
    worth, free, inside, covered = _filled(n, 0.0), np.empty(n, np.int64), 0, 0.0
    taken_off, n_free = 0.0, 0
    for j in range(n):
        if state[j] == OUT:
            continue
        pull, ridge = abs(_dot(data.columns[j], downhill)), data.ridge[j]
        best = data.cap[j] if pull >= ridge * data.cap[j] else pull / ridge
        worth[j] = pull * best - ridge * best**2 / 2
        if state[j] == IN:
            inside += 1
            covered += data.coverage[j]
            taken_off += worth[j]
        else:
            free[n_free] = j
            n_free += 1
    # For every size k: the columns in, and the free columns with the smallest lambda p_j / k - w_j
    of_size, entering, leaving = _filled(n + 1, np.inf), _filled(n, np.inf), _filled(n, np.inf)
    cost = np.empty(n_free)
    for size in range(max(least, inside), min(largest, inside + n_free) + 1):
        per_unit = data.lam / max(size, 1)
        for a in range(n_free):
            cost[a] = per_unit * data.coverage[free[a]] - worth[free[a]]
        # Insertion sort: the order of the last size is nearly right. The first time, of thousands,
        # with falling gaps (Shell), for which equal costs come by column.
        gap = 1
        while size == max(least, inside) and n_free > _FEW * gap:
            gap = 3 * gap + 1
        while gap:
            for a in range(gap, n_free):
                b, one, of_it = a, free[a], cost[a]
                while b >= gap and (
                    cost[b - gap] > of_it or (cost[b - gap] == of_it and free[b - gap] > one)
                ):
                    cost[b], free[b] = cost[b - gap], free[b - gap]
                    b -= gap
                cost[b], free[b] = of_it, one
            gap //= 3
        taken = size - inside
        bound = value - taken_off + data.gamma * size + per_unit * covered + _total(cost[:taken])
        of_size[size] = bound
        # A column forced in replaces the last one taken; one forced out is replaced by the next
        last = cost[taken - 1] if taken > 0 else -np.inf
        following = cost[taken] if taken < n_free else np.inf
        for a in range(n_free):
            j = free[a]
            entering[j] = min(entering[j], bound + max(cost[a] - last, 0.0))
            leaving[j] = min(leaving[j], bound + max(following - cost[a], 0.0))
    return value, worth, of_size, entering, leaving
