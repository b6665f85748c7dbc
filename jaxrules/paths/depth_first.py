"""The compiled part of the exact search: depth-first over index sequences. Imported on first use
(numba).

A state is a prefix i_1, ..., i_p of the sequence. Its cost-to-come is a quadratic form of the
current coefficients, Phi(v) = v'Av - 2 h'v + phi: the least cost of the first p steps that ends
in v. Appending feature i minimises out the old v_i, frees it, and adds alpha c(v). The least values
of all children come from one Cholesky factor of their common part: bordered by a new feature, or
corrected by the rank-one term of an old one. Bounds on the remaining steps come from a table by
support (see `exact`).

Functions that Python calls take `GivenTables` and `PathStack` as plain tuples: numba needs far
longer to recognise named ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from jaxrules.tools.compiling import from_python

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_jit = from_python(error_model="numpy")

# A call with so many arrays is expensive.
_inline = numba.njit(inline="always", nogil=True, error_model="numpy")

DEPENDENT = 1e-12  # the same rank tolerance as costs.RANK_TOLERANCE; numba freezes globals


class GivenTables(NamedTuple):
    """The problem and the tables of its bounds."""

    Q: Floats  # curvature of the cost, (features, features)
    g: Floats  # its linear part, (features,)
    s: float  # its constant
    weights: Floats  # alpha, (steps,)
    shares: Floats  # of the weights that the remainder owns, (steps + 1,)
    rest: Floats  # bounds on what follows, by step and support; `tighten` raises them
    masks: Ints  # the supports of the table
    larger: Ints  # positions of the supports that one more feature makes, (features, supports + 2)
    no_repeats: bool  # whether a feature may not change twice in a row


class PathStack(NamedTuple):
    """The states on the way to the current one, a level per step."""

    A: Floats  # curvature of the cost-to-come, (levels, features, features)
    h: Floats  # its slope, (levels, features)
    phi: Floats  # its constant, (levels,)
    support: Ints  # the support as a list ...
    size: Ints  # ... of this length
    member: Flags  # ... and as flags
    position: Ints  # ... and as a position in the table
    bounds: Floats  # bounds of the open children, ascending, (levels, features)
    features: Ints  # the features they change
    n_open: Ints  # how many children are open
    following: Ints  # the next child; -1 where the state is not expanded yet
    own: Floats  # the state's own bound
    sequence: Ints  # the features of the current state, (steps,)
    best: Ints  # the best complete sequence, (steps,)


def workspace(n_features: int, steps: int) -> PathStack:
    """A stack with the empty prefix at its bottom."""
    d, levels = n_features, steps + 1
    return PathStack(
        A=np.zeros((levels, d, d)),
        h=np.zeros((levels, d)),
        phi=np.zeros(levels),
        support=np.zeros((levels, d), np.int64),
        size=np.zeros(levels, np.int64),
        member=np.zeros((levels, d), np.bool_),
        position=np.zeros(levels, np.int64),
        bounds=np.zeros((levels, d)),
        features=np.zeros((levels, d), np.int64),
        n_open=np.zeros(levels, np.int64),
        following=np.full(levels, -1, np.int64),
        own=np.full(levels, -np.inf),
        sequence=np.zeros(steps, np.int64),
        best=np.zeros(steps, np.int64),
    )


@_inline
def _children(given: GivenTables, stack: PathStack, level: int, weight: float, out: Floats) -> None:
    """Least values of all children of a state whose new step has this weight, into `out`."""
    Q, g = given.Q, given.g
    A, h = stack.A[level], stack.h[level]
    support, size, member = stack.support[level], stack.size[level], stack.member[level]
    d = len(g)
    # With M = A + w Q on the support, M = L L', and m = h + w g, a new feature c borders M with the
    # column w Q_c and the diagonal w Q_cc: the value falls by (w g_c - u'f)^2 / (w Q_cc - u'u),
    # where f = L^-1 m (`forward`) and u = L^-1 of its column (`columns`).
    factor = np.empty((size, size))
    inverse_pivot = np.empty(size)
    forward = np.empty(size)  # the factor's solution of the linear part
    columns = np.empty((size, d))  # ... and of every child's own column
    base = stack.phi[level] + weight * given.s
    reduction = 0.0
    for r in range(size):
        i = support[r]
        for c in range(r + 1):
            entry = A[i, support[c]] + weight * Q[i, support[c]]
            diagonal = entry
            for k in range(c):
                entry -= factor[r, k] * factor[c, k]
            if c < r:
                factor[r, c] = entry * inverse_pivot[c]
            elif entry > DEPENDENT * diagonal:
                factor[r, r] = np.sqrt(entry)
                inverse_pivot[r] = 1 / factor[r, r]
            else:
                factor[r, r] = 0.0
                inverse_pivot[r] = 0.0
        entry = h[i] + weight * g[i]
        for k in range(r):
            entry -= factor[r, k] * forward[k]
        forward[r] = entry * inverse_pivot[r]
        reduction += forward[r] * forward[r]
        for c in range(d):
            columns[r, c] = A[i, c] if member[c] else weight * Q[i, c]
        for k in range(r):
            for c in range(d):
                columns[r, c] -= factor[r, k] * columns[k, c]
        for c in range(d):
            columns[r, c] *= inverse_pivot[r]
    for c in range(d):
        squares = 0.0
        product = 0.0
        for r in range(size):
            squares += columns[r, c] * columns[r, c]
            product += columns[r, c] * forward[r]
        value = base - reduction
        # An old one has a column a = A_c: the form is M - a a' / A_cc, its slope m - a h_c / A_cc.
        # By Sherman and Morrison, its inverse is M^-1 + M^-1 a a' M^-1 / (A_cc - a'M^-1 a); here
        # a'M^-1 a is u'u (`squares`) and a'M^-1 m is u'f (`product`).
        if member[c]:  # minimise out the old coefficient: A and h lose a rank-one term
            old = A[c, c]
            if old > 0:
                ratio = h[c] / old
                remaining = old - squares
                value += ratio * (2 * product - ratio * (old + squares))
                if remaining > DEPENDENT * old:
                    value -= (product - ratio * squares) ** 2 / remaining
        else:
            remaining = weight * Q[c, c] - squares
            if remaining > DEPENDENT * weight * Q[c, c]:
                value -= (weight * g[c] - product) ** 2 / remaining
        out[c] = value


@_inline
def _append(given: GivenTables, stack: PathStack, level: int, feature: int) -> None:
    """Write the child that changes `feature` to the next level."""
    Q, g, weight = given.Q, given.g, given.weights[level]
    A, h, phi, support, member = stack.A, stack.h, stack.phi, stack.support, stack.member
    # Phi - Phi_i Phi_i' / Phi_ii leaves the old coefficient at its best; then alpha c is added.
    # Only entries on the support are written, and ever read: others are left from other branches.
    below, above = A[level], A[level + 1]
    n = stack.size[level]
    member[level + 1] = member[level]
    support[level + 1] = support[level]
    old = below[feature, feature]
    inverse = 1 / old if member[level, feature] and old > 0 else 0.0
    slope = h[level, feature] * inverse  # both are 0 for a new feature
    for r in range(n):
        i = support[level, r]
        for c in range(n):
            j = support[level, c]
            above[i, j] = below[i, j] - below[i, feature] * below[feature, j] * inverse
        h[level + 1, i] = h[level, i] - below[i, feature] * slope
    phi[level + 1] = phi[level] - h[level, feature] * slope + weight * given.s
    if not member[level, feature]:
        support[level + 1, n] = feature
        member[level + 1, feature] = True
        n += 1
    stack.size[level + 1] = n
    stack.position[level + 1] = given.larger[feature, stack.position[level]]
    for r in range(n):
        above[support[level + 1, r], feature] = 0.0
        above[feature, support[level + 1, r]] = 0.0
    h[level + 1, feature] = 0.0
    for r in range(n):
        i = support[level + 1, r]
        for c in range(n):
            above[i, support[level + 1, c]] += weight * Q[i, support[level + 1, c]]
        h[level + 1, i] += weight * g[i]


@_inline
def _open(
    given: GivenTables, stack: PathStack, level: int, first: int, limit: float, values: Floats
) -> None:
    """List the children of a state whose bounds are below the limit, ascending."""
    bounds, features = stack.bounds, stack.features
    n = 0
    for i in range(len(values)):
        # What `tighten` searches begins at `first`, and the feature before it is not known.
        repeats = level > first and stack.sequence[level - 1] == i
        if not (given.no_repeats and repeats):
            rest = given.rest[level + 1, given.larger[i, stack.position[level]]]
            # Bounds never fall along a branch: the parent's holds for the child, too.
            bound = max(values[i] + rest, stack.own[level])
            if bound < limit:
                j = n
                while j > 0 and bounds[level, j - 1] > bound:
                    bounds[level, j] = bounds[level, j - 1]
                    features[level, j] = features[level, j - 1]
                    j -= 1
                bounds[level, j] = bound
                features[level, j] = i
                n += 1
    stack.n_open[level] = n
    stack.following[level] = 0


@_jit
def search(
    given: tuple[Any, ...],
    stack: tuple[Any, ...],
    level: int,
    first: int,
    last: int,
    incumbent: float,
    tolerance: float,
    budget: int,
) -> tuple[int, float, int]:
    """Depth-first from `level` (the state at `first`, prepared or interrupted) to the states at
    `last`.

    Returns:
        the level where it stopped (below `first`: finished), the least value found (`incumbent` if
        nothing is better by `tolerance`), and the number of states expanded.
    """
    given, stack = GivenTables(*given), PathStack(*stack)
    bounds, features, following = stack.bounds, stack.features, stack.following
    values = np.empty(len(given.g))
    expanded = 0
    while level >= first:
        if following[level] < 0:
            if expanded >= budget:
                return level, incumbent, expanded
            expanded += 1
            own_share = 1 - given.shares[level + 1]
            _children(given, stack, level, given.weights[level] * own_share, values)
            _open(given, stack, level, first, incumbent - tolerance, values)
            # Before the end of the path, bounds include the table's for the steps beyond `last`.
            # They ascend: the first is the best.
            if level == last - 1:
                if stack.n_open[level] > 0:
                    incumbent = bounds[level, 0]
                    stack.sequence[level] = features[level, 0]
                    stack.best[:] = stack.sequence
                level -= 1
                continue
        # Children ascend: once one cannot win, none of its siblings can.
        child = following[level]
        if child >= stack.n_open[level] or bounds[level, child] >= incumbent - tolerance:
            level -= 1
            continue
        following[level] += 1
        stack.sequence[level] = features[level, child]
        stack.own[level + 1] = bounds[level, child]
        _append(given, stack, level, features[level, child])
        level += 1
        following[level] = -1
    return level, incumbent, expanded


@_jit
def open_bound(stack: tuple[Any, ...], first: int, level: int, incumbent: float) -> float:
    """The least bound among the open states of an interrupted search."""
    stack = PathStack(*stack)
    bounds, n_open, following, own = stack.bounds, stack.n_open, stack.following, stack.own
    least = incumbent
    for k in range(first, level + 1):
        # Not expanded yet; otherwise the next child has the least bound of those open.
        if following[k] < 0:
            least = min(least, own[k])
        elif following[k] < n_open[k]:
            least = min(least, bounds[k, following[k]])
    return least


@_jit
def tighten(
    given: tuple[Any, ...],
    stack: tuple[Any, ...],
    step: int,
    last: int,
    positions: Ints,
    before: Floats,
    incumbent: float,
    budget: int,
) -> int:
    """Raise the table's bounds after `step` for the supports at `positions`, by searching up to
    `last`; returns the number of states expanded.

    The remainder of a path that has reached support U after `step` steps is itself a path
    problem, whose first model is free on U and has the weight's share that the table owns.
    Russian dolls: the table bounds the steps beyond `last`. Values that cannot matter below the
    incumbent are cut off there.
    """
    problem, states = GivenTables(*given), PathStack(*stack)
    A, h, support, member = states.A, states.h, states.support, states.member
    expanded = 0
    weight = problem.shares[step] * problem.weights[step - 1]
    for position in positions:
        # A path through this support costs at least `before` up to here: beyond the cutoff it
        # loses.
        cutoff = incumbent - before[position]
        if problem.rest[step, position] >= cutoff:
            continue
        chosen = problem.masks[position]
        n = 0
        for i in range(len(problem.g)):
            # Features from `supports.LARGEST_BIT` = 62 on share a bit and are in no table.
            member[step, i] = i < 62 and (chosen >> i) & 1 == 1
            if member[step, i]:
                support[step, n] = i
                n += 1
        states.size[step] = n
        states.position[step] = position
        for r in range(n):
            i = support[step, r]
            for c in range(n):
                A[step, i, support[step, c]] = weight * problem.Q[i, support[step, c]]
            h[step, i] = weight * problem.g[i]
        states.phi[step] = weight * problem.s
        states.own[step] = problem.rest[step, position]
        states.following[step] = -1
        level, value, nodes = search(given, stack, step, step, last, cutoff, 0.0, budget)
        expanded += nodes
        problem.rest[step, position] = max(
            problem.rest[step, position], open_bound(stack, step, level, value)
        )
    return expanded
