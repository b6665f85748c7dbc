"""How low the objective of a support can be: perspective relaxation, convex dual, branch-and-bound.

Primal. Over supports S of at most K columns, weights b and a free intercept b_0, as in `search`:

    minimise  L(b_0 + X b) + sum_{j in S} r_j b_j^2 / 2 + gamma |S| + lambda P(S) / |S|,    |b_j| <= B_j, 0 outside S

L is the mean loss, P(S) the sum of the coverages p_j over S, r_j the ridge and B_j the cap on weights.

Relaxation. Where |S| <= u and no coverage is below p, lambda P(S) / |S| >= lambda p + lambda sum_S (p_j - p) / u.
So column j has a price of its own, c_j = gamma + lambda (p_j - p) / u. The largest convex function below
c_j [b != 0] + r_j b^2 / 2 is the perspective min_z c_j z + r_j b^2 / 2z, 0 <= z <= 1 (Frangioni and Gentile 2006,
Guenluek and Linderoth 2010). Its best z is |b| / t_j, t_j = sqrt(2 c_j / r_j), which leaves the reverse Huber penalty

    sqrt(2 c_j r_j) |b|  up to |b| = t_j,     c_j + r_j b^2 / 2  beyond

(Dong, Chen and Linderoth 2015, Pilanci et al. 2015); with a cap below t_j it is the line from 0 to the cap. The more
ridge, the closer it comes. Proximal Newton steps minimise loss plus penalty (`Relaxation.solve`).

Dual. The solution only suggests a dual point; what is proved follows from the dual point alone. For every theta (a
number per row pattern, of sum 0: the intercept is free) L(f) >= theta'f - L*(theta) by Fenchel's inequality, so that

    objective >= -L*(theta) + min_S { gamma |S| + lambda P(S) / |S| - sum_{j in S} w_j },
    w_j = max_{|b| <= B_j} g_j b - r_j b^2 / 2,     g = X'theta.

The minimum over supports is exact, mean coverage included: for every size k it takes the k columns of the smallest
lambda p_j / k - w_j (`Relaxation.bounds`). theta is the gradient of the loss at the relaxation's solution, its positive
or its negative part scaled down so that it sums to 0. There the bound is no lower than the relaxation.

Branching. A node has columns that are in, columns that are out, and a range of sizes. The bounds by size narrow the
range; the same sorted sums tell what it costs each free column to enter, or to stay out, and columns for which one of
the two exceeds the incumbent are fixed. The node of the least bound is split where both halves promise to rise, by a
second-order estimate of what it costs the relaxation to drop a column, and to pay its whole price. The supports that
relaxations suggest are refitted; one that is better is improved by the local search, and is the new incumbent.

Rounding. All is float64. Sums over patterns err by some 1e-15 of the loss; bounds are lowered by 1e-9 of the loss of
the best constant, far more than that.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.rows import check_memory
from jaxrules.solvers.support.objective import loss_terms
from jaxrules.solvers.support.search import Incumbent, Search

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

TOLERANCE = 5e-6
"""Relative gap at which the incumbent counts as proved optimal."""
_ROUNDING = 1e-9  # of the loss of the best constant, off every bound
_ACCURACY = 1e-7  # predicted decrease, relative to the incumbent, at which a relaxation is solved
_NEWTON_STEPS = 40
_SWEEPS = 200  # of coordinate descent in a Newton step
_LEAST_RISE = 1e-4  # of the node's gap: estimates below that count as this
_PASSES = 3  # solutions of one node, while it fixes columns


class Node(NamedTuple):
    """A part of all supports: those with every column of `inside`, others of `free` alone, of sizes from..to."""

    bound: float
    number: int  # orders nodes of one bound
    inside: Mask
    free: Mask
    sizes: tuple[int, int]
    weights: Floats  # a first guess
    intercept: float


class Penalty(NamedTuple):
    """The reverse Huber penalty of every column, each (columns,): slope |b| up to |b| = turn, price + r b^2 / 2 beyond.

    Where the cap comes first, the turn is infinite. A cap of 0 keeps a column out.
    """

    price: Floats
    slope: Floats
    turn: Floats
    cap: Floats


class Solution(NamedTuple):
    """The minimum of a relaxation.

    Attributes:
        weights, intercept: (columns,), and a number.
        share: z, (columns,).
        rise: estimates of how much it rises where a column is left out, and where it must enter, (columns, 2).
    """

    weights: Floats
    intercept: float
    share: Floats
    rise: Floats


class Bounds(NamedTuple):
    """What one dual point proves about the supports of a node."""

    sizes: Integers
    of_size: Floats  # lower bounds, (sizes,)
    entering: Floats  # with this column in the support, (free columns,)
    leaving: Floats  # without it, (free columns,)
    value: float  # the dual's value but for what depends on the support
    worth: Floats  # what each column of a support takes off, (columns,)

    @property
    def least(self) -> float:
        return float(self.of_size.min(initial=np.inf))


class Relaxation:
    """The relaxation of one problem and its dual; columns are those that may enter a support."""

    def __init__(self, search: Search) -> None:
        problem = search.problem
        self.loss, self.gamma, self.lam, self.stopped = problem.loss, search.gamma, search.lam, search.stopped
        self.columns = np.flatnonzero(problem.origin >= 0)
        n_patterns = problem.activations.n_patterns
        check_memory(n_patterns, len(self.columns), 24.0)
        self.entries = problem.entries(self.columns, np.arange(n_patterns))
        self.target, self.mass = problem.of_patterns()
        self.constant = problem.constant
        self.ridge, self.coverage = search.ridge[self.columns], problem.coverage[self.columns]
        self.cap = np.full(len(self.columns), problem.cap)
        self.rounding = 0.0
        self._gram: tuple[Floats, Floats] | None = None

    # Primal

    def penalty_of(self, node: Node) -> Penalty:
        """What stands for the price of a column in this node; nothing where it is in the support anyway."""
        allowed = node.inside | node.free
        price = self.coverage - self.coverage[allowed].min(initial=1.0)
        price = np.where(node.free, self.gamma + self.lam * price / max(node.sizes[1], 1), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = np.where(price > 0, np.sqrt(2 * price / self.ridge), 0.0)
            to_the_cap = price / self.cap + self.ridge * self.cap / 2
        slope = np.sqrt(2 * price * self.ridge)
        capped = turn > self.cap
        slope[capped], turn[capped] = to_the_cap[capped], np.inf
        return Penalty(price, slope, turn, np.where(allowed, self.cap, 0.0))

    def solve(self, node: Node, accuracy: float) -> Solution:
        """The relaxation's minimum, by proximal Newton steps on the columns that move."""
        from jaxrules.solvers.linear.coordinate_descent import reverse_huber_sweep  # numba loads when it is needed

        penalty = self.penalty_of(node)
        _, slope, turn, cap = penalty
        weights, intercept = np.clip(node.weights, -cap, cap), node.intercept
        scores = self.entries @ weights + intercept

        def paid(weights: Floats, chosen: Integers) -> float:
            size = np.abs(weights)
            beyond = slope[chosen] * np.minimum(turn[chosen], size) / 2 + self.ridge[chosen] * size**2 / 2
            return float(np.where(size > turn[chosen], beyond, slope[chosen] * size).sum())

        value, downhill, curvature = loss_terms(self.loss, self.target, self.mass, scores)
        for _ in range(_NEWTON_STEPS):
            pull, tilt = downhill @ self.entries, float(downhill.sum())
            chosen = np.flatnonzero((weights != 0) | ((np.abs(pull) > slope) & (cap > 0)))
            hessian, along, total = self._second_order(chosen, curvature)
            moved = weights[chosen]
            gradient = along * (tilt / total) - pull[chosen]
            reverse_huber_sweep(
                hessian, slope[chosen], turn[chosen], self.ridge[chosen], cap[chosen], moved, gradient, _SWEEPS
            )
            change = moved - weights[chosen]
            shift = (tilt - float(along @ change)) / total
            before = paid(weights[chosen], chosen)
            predicted = float(pull[chosen] @ change) + tilt * shift + before - paid(moved, chosen)
            if not predicted > accuracy or self.stopped():
                weights[chosen], intercept = moved, intercept + shift
                break
            scale = 1.0
            step: Floats = self.entries[:, chosen] @ change + shift
            while True:
                there = weights[chosen] + scale * change
                new, downhill, curvature = loss_terms(self.loss, self.target, self.mass, scores + scale * step)
                if new + paid(there, chosen) <= value + before - 0.01 * scale * predicted or scale < 1e-6:
                    break
                scale /= 2
            weights[chosen], value = there, new
            intercept, scores = intercept + scale * shift, scores + scale * step
        whole = np.where(np.isinf(turn), self.cap, turn)
        share = np.divide(np.abs(weights), whole, out=np.ones_like(weights), where=whole > 0)
        share = np.where(node.free, np.minimum(share, 1.0), node.inside)
        rise = self._rise(chosen, hessian, np.abs(weights), penalty)
        return Solution(weights, float(intercept), share, rise)

    def _rise(self, chosen: Integers, hessian: Floats, size: Floats, penalty: Penalty) -> Floats:
        """Of every column: what dropping it costs, and its whole price, to second order once the others follow."""
        rise, ridge, size = np.zeros((len(size), 2)), self.ridge[chosen], size[chosen]
        price, slope, turn, _ = (values[chosen] for values in penalty)
        flat = size <= turn
        curved = hessian + np.diag(np.where(flat, 1e-9 * np.diagonal(hessian), ridge))
        spread = np.maximum(np.diagonal(np.linalg.pinv(curved, hermitian=True)), 1e-300)
        rise[chosen, 0] = size**2 / (2 * spread)
        uphill = np.maximum(slope - ridge * size, 0.0)
        more = price + ridge * size**2 / 2 - slope * size - uphill**2 / 2 / (1 / spread + ridge)
        rise[chosen, 1] = np.where(flat, np.maximum(more, 0.0), 0.0)
        return rise

    def _second_order(self, chosen: Integers, curvature: Floats) -> tuple[Floats, Floats, float]:
        """The Hessian of these columns once the intercept follows, their products with the intercept, and its own."""
        total = float(curvature.sum())
        if self.loss.quadratic:
            if self._gram is None:
                weighted = self.entries * curvature[:, None]
                self._gram = self.entries.T @ weighted, weighted.sum(axis=0)
            hessian, along = self._gram[0][np.ix_(chosen, chosen)], self._gram[1][chosen]
        else:
            columns = self.entries[:, chosen]
            weighted = columns * curvature[:, None]
            hessian, along = columns.T @ weighted, weighted.sum(axis=0)
        own = np.diagonal(hessian).copy()
        hessian -= np.outer(along, along / total)
        hessian.ravel()[:: len(chosen) + 1] += 1e-9 * own + 1e-300
        return np.ascontiguousarray(hessian), along, total

    # Dual

    def dual_point(self, weights: Floats, intercept: float) -> Floats:
        """The gradient of the loss, (patterns,), scaled so that it sums to 0."""
        scores = self.entries @ weights + intercept
        for _ in range(20):  # the best intercept, so that little is left to scale
            _, downhill, curvature = loss_terms(self.loss, self.target, self.mass, scores)
            tilt = float(downhill.sum())
            if abs(tilt) <= 1e-13 * float(np.abs(downhill).sum()):
                break
            scores = scores + np.clip(tilt / float(curvature.sum()), -1.0, 1.0)
        theta = -downhill
        up, down = float(theta[theta > 0].sum()), -float(theta[theta < 0].sum())
        if min(up, down) <= 0:
            return np.zeros_like(theta)
        return np.where(theta > 0, theta * min(1.0, down / up), theta * min(1.0, up / down))

    def bounds(self, node: Node, theta: Floats) -> Bounds:
        """The dual's value on the supports of a node, by size, and with and without every free column."""
        pull = np.abs(theta @ self.entries)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.minimum(np.where(self.ridge > 0, pull / self.ridge, self.cap), self.cap)
        worth = pull * best - self.ridge * best**2 / 2
        inside, free = np.flatnonzero(node.inside), np.flatnonzero(node.free)
        conjugate = self.loss.conjugate(self.target, theta / self.mass)  # type: ignore[misc]  # all three have one
        whole = self.constant - self.rounding - float(self.mass @ conjugate)
        value = whole - float(worth[inside].sum())
        smallest, largest = max(node.sizes[0], len(inside)), min(node.sizes[1], len(inside) + len(free))
        sizes = np.arange(smallest, largest + 1)
        per_unit = self.lam / np.maximum(sizes, 1)
        costs = per_unit[:, None] * self.coverage[free] - worth[free]
        ordered = np.sort(costs, axis=1)
        sums = np.concatenate([np.zeros((len(sizes), 1)), np.cumsum(ordered, axis=1)], axis=1)
        edge = np.full((len(sizes), 1), np.inf)
        ordered = np.concatenate([-edge, ordered, edge], axis=1)
        row, taken = np.arange(len(sizes)), sizes - len(inside)
        of_size = value + self.gamma * sizes + per_unit * float(self.coverage[inside].sum()) + sums[row, taken]
        last, following = ordered[row, taken][:, None], ordered[row, taken + 1][:, None]
        entering = of_size[:, None] + np.maximum(costs - last, 0.0)
        leaving = of_size[:, None] + np.maximum(following - costs, 0.0)
        entering, leaving = (cost.min(axis=0, initial=np.inf) for cost in (entering, leaving))
        return Bounds(sizes, of_size, entering, leaving, whole, worth)


class BranchAndBound:
    """The search for a proof that no support is better than an incumbent, or for one that is.

    Attributes:
        bound: what is proved so far of every support; it only rises.
        best: the incumbent.
        nodes: relaxations solved and split.
        proved: called with every better bound.
        closed: whether bound and incumbent agree within `TOLERANCE`.
    """

    def __init__(self, search: Search, best: Incumbent, proved: Callable[[float], None] = lambda bound: None) -> None:
        self.search, self.best, self.proved = search, best, proved
        self.bound, self.nodes, self.closed = 0.0, 0, False
        self._finished = np.inf  # the least bound of the nodes that are done
        self._tried: set[bytes] = set()

    def run(self, max_nodes: int | None = None) -> None:
        """Split the node of the least bound until the gap is closed, `max_nodes` are, or the search is stopped."""
        search = self.search
        self._relaxation = relaxation = Relaxation(search)
        relaxation.rounding = _ROUNDING * search.start_empty().loss
        n = len(relaxation.columns)
        largest = n if search.most is None else min(n, search.most)
        nothing = np.zeros(n, bool)
        root = Node(0.0, 0, nothing, ~nothing, (0, largest), np.zeros(n), float(search.start_empty().weights[0]))
        # Parts that wait to be bounded, or split, have the bound of the part that they were split from.
        waiting, number = [root], 0
        while waiting and waiting[0].bound < self._goal:
            known, self.bound = self.bound, max(self.bound, min(waiting[0].bound, self._finished))
            if self.bound > known:
                self.proved(self.bound)
            if search.stopped() or (max_nodes is not None and self.nodes >= max_nodes):
                return
            node = heapq.heappop(waiting)
            self.nodes += 1
            for part in self._explore(node):
                number += 1
                heapq.heappush(waiting, part._replace(number=number))
        least = min([self._finished, self.best.objective, *(node.bound for node in waiting[:1])])
        self.bound, self.closed = max(self.bound, least), True

    @property
    def _goal(self) -> float:
        return self.best.objective - TOLERANCE * abs(self.best.objective)

    def _explore(self, node: Node) -> list[Node]:
        """Bound a node; its two halves, or nothing when it holds no better support."""
        relaxation = self._relaxation
        for _ in range(_PASSES):
            solution = relaxation.solve(node, _ACCURACY * abs(self.best.objective))
            weights, intercept = solution.weights, solution.intercept
            found = relaxation.bounds(node, relaxation.dual_point(weights, intercept))
            self._try(solution.share > 0.5, weights, found)
            bound, open_ = max(node.bound, found.least), found.of_size < self._goal
            if bound >= self._goal or not open_.any() or not node.free.any():
                self._finished = min(self._finished, bound)
                return []
            free = np.flatnonzero(node.free)
            enters, leaves = free[found.leaving >= self._goal], free[found.entering >= self._goal]
            sizes = int(found.sizes[open_][0]), int(found.sizes[open_][-1])
            # What is cut off here is no better than the goal.
            if len(enters) or len(leaves) or sizes != node.sizes:
                self._finished = min(self._finished, self._goal)
            inside, still = node.inside.copy(), node.free.copy()
            inside[enters], still[enters], still[leaves] = True, False, False
            smaller = len(enters) + len(leaves) > 0 or sizes[1] < 0.8 * node.sizes[1]
            node = Node(bound, 0, inside, still, sizes, np.where(inside | still, weights, 0.0), intercept)
            if not smaller:
                break
        if not node.free.any():
            return [node]
        free = np.flatnonzero(node.free)
        missing = max(self.best.objective - bound, 1e-300)
        promise = np.clip(solution.rise[free], _LEAST_RISE * missing, missing).prod(axis=1)
        column = free[np.argmax(promise + 1e-9 * missing**2 * solution.share[free])]
        inside, still, weights = node.inside.copy(), node.free.copy(), node.weights.copy()
        inside[column], still[column], weights[column] = True, False, 0.0
        return [node._replace(inside=inside, free=still), node._replace(free=still, weights=weights)]

    def _try(self, chosen: Mask, weights: Floats, found: Bounds) -> None:
        """Refit a support that may be better than the incumbent; where it is, search on from it."""
        search, key = self.search, np.packbits(chosen).tobytes()
        columns = np.append(0, self._relaxation.columns[chosen])
        least = found.value - found.worth[chosen].sum() + search.problem.penalty(columns, search.gamma, search.lam)
        too_large = search.most is not None and np.count_nonzero(chosen) > search.most
        if least >= self._goal or too_large or key in self._tried:
            return
        self._tried.add(key)
        goal = self.best.objective - 1e-9 * abs(self.best.objective)
        refitted = search.refit(columns, np.append(0.0, weights[chosen]), goal)
        if refitted.objective < goal:
            search.observe(refitted)
            refitted = search.descend(refitted)
            self.best = refitted if refitted.objective < self.best.objective else self.best
