"""Lower bounds on the objective of all supports: perspective relaxation, dual, branch-and-bound.

Primal. Over supports S of at most K columns, weights b and a free intercept b_0, as in `search`:

    minimise  L(b_0 + X b) + sum_{j in S} r_j b_j^2 / 2 + gamma |S| + lambda P(S) / |S|,
    |b_j| <= B_j, 0 outside S

L is the mean loss, P(S) the sum of the coverages p_j over S, r_j the ridge and B_j the cap on
weights.

Relaxation. If |S| <= u and no coverage is below p, lambda P(S) / |S| >= lambda p + lambda sum_S
(p_j - p) / u. So each column has its own price, c_j = gamma + lambda (p_j - p) / u. The largest
convex function below c_j [b != 0] + r_j b^2 / 2 is the perspective min_z c_j z + r_j b^2 / 2z, 0 <=
z <= 1 (Frangioni and Gentile 2006, Guenluek and Linderoth 2010). Its best z is |b| / t_j, t_j =
sqrt(2 c_j / r_j), which leaves the reverse Huber penalty

    sqrt(2 c_j r_j) |b|  up to |b| = t_j,     c_j + r_j b^2 / 2  beyond

(Dong, Chen and Linderoth 2015, Pilanci et al. 2015); with a cap below t_j it is the line from 0 to
the cap. The larger the ridge, the tighter the relaxation. Proximal Newton steps minimise loss plus
penalty (`Relaxation.solve`).

Dual. The solution only suggests a dual point; the proof rests on the dual point alone. For every
theta (a number per row pattern, with sum 0, because the intercept is free) L(f) >= theta'f -
L*(theta) by Fenchel's inequality, so that

    objective >= -L*(theta) + min_S { gamma |S| + lambda P(S) / |S| - sum_{j in S} w_j },
    w_j = max_{|b| <= B_j} g_j b - r_j b^2 / 2,     g = X'theta.

The minimum over supports is exact, mean coverage included: for every size k it takes the k columns
with the smallest lambda p_j / k - w_j (`Relaxation.bounds`). theta is the gradient of the loss at
the relaxation's solution f, where -L*(theta) = L(f) - theta'f, and the bound is at least the
minimum of the relaxation. Without a ridge, on nearly separable rows, Newton's steps may end before
the solution; the bound is then lower, but still valid. The intercept of f makes theta sum to nearly
0. The remainder is subtracted: the best intercept of any model within the caps is at most sum_j B_j
away from that of the best constant.

Branching. A node has columns that are in, columns that are out, and a range of sizes. If no column
of a required set is in, one of its free columns must enter, which costs at least as much as the
cheapest. The bounds by size narrow the range; the same sorted sums bound the supports with, and
without, each free column, and columns for which one of these bounds exceeds the incumbent are
fixed. The node with the least bound is split at the column that promises to raise the bounds of
both halves, by second-order estimates of what dropping the column, and paying its full price, add
to the relaxation. The supports that relaxations suggest are refitted; a better one is improved by
local search and becomes the new incumbent.

Rounding. All numbers are float64. Sums over patterns, in any order, have errors of some 1e-14 of
the loss; bounds are lowered by 1e-9 of the loss of the best constant, far more than that.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.lire.search import Incumbent, SupportSearch
from jaxrules.rules.rows import check_memory

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
States = NDArray[np.int8]

TOLERANCE = 5e-6
"""Relative gap at which the incumbent counts as proved optimal."""
_ROUNDING = 1e-9  # subtracted from every bound, relative to the loss of the best constant
_ACCURACY = 1e-7  # predicted decrease, relative to the incumbent, at which a relaxation is solved
_ACCURACY_OF_GAP = 0.01  # or relative to the gap of the node
_NEWTON_STEPS = 40
_ENTRIES = 20_000_000  # entries of the matrix read between two checks of the clock
_MANY = 500  # columns, of which some hundreds may move at once
_SECONDS_PER_OPERATION = 5e-10  # of a Newton step
_LEAST_RISE = 1e-4  # estimates of a rise are at least this share of the node's gap
_PASSES = 3  # the most solutions of one node, repeated while it fixes columns
_LARGEST = 3.4e38  # nodes keep first guesses of their weights, in float32


class Node(NamedTuple):
    """A subset of all supports: those with all columns that are IN, any that are FREE and no
    others, of sizes from..to.
    """

    bound: float
    number: int  # orders nodes of one bound
    state: States
    sizes: tuple[int, int]
    weights: NDArray[Any]  # a first guess
    intercept: float


class RelaxedSolution(NamedTuple):
    """The minimum of a relaxation.

    Attributes:
        weights, intercept: (columns,), and a number.
        share: z, (columns,).
        rise: estimates of how much it rises if a column is left out, and if it must enter,
            (columns, 2).
    """

    weights: Floats
    intercept: float
    share: Floats
    rise: Floats


class NodeBounds(NamedTuple):
    """What one dual point proves about the supports of a node (the second display in the
    module).
    """

    value: float  # the dual's value without what depends on the support
    worth: Floats  # what each column of a support subtracts, (columns,)
    of_size: Floats  # lower bounds, (columns + 1,); infinite outside the node's sizes
    entering: Floats  # with this column in the support, (columns,); infinite where it is not free
    leaving: Floats  # without it

    @property
    def least(self) -> float:
        return float(self.of_size.min())


class Relaxation:
    """The relaxation of one problem and its dual, on the columns that may enter a support.

    Args:
        surcharge: is added to gamma where the relaxation is solved, not where its dual bounds. If
            the largest size binds, the relaxation does not know it; with the multiplier of that
            limit as a surcharge it suggests a better dual point.
        seconds_left: steps that would take longer are left out; the bound holds without them.
    """

    def __init__(
        self,
        search: SupportSearch,
        surcharge: float = 0.0,
        seconds_left: Callable[[], float] = lambda: np.inf,
    ) -> None:
        from jaxrules.ensembles.lire import bound_kernels  # numba loads when it is needed

        problem = search.problem
        unfixed = dataclasses.replace(problem, fixed=problem.fixed[:0])
        empty = dataclasses.replace(search, problem=unfixed).start_empty()
        self.kernels, self.stopped = bound_kernels, search.stopped
        self.seconds_left = seconds_left
        self.columns = np.flatnonzero(problem.origin >= 0)
        n, n_patterns = len(self.columns), problem.activations.n_patterns
        check_memory(n_patterns, n, 24.0)
        entries = problem.entries(self.columns, np.arange(n_patterns))
        target, mass = problem.target, problem.mass
        gram, along = np.zeros((0, 0)), np.zeros(0)
        if problem.loss.quadratic:
            weighted = 2 * mass[:, None] * entries
            gram, along = entries.T @ weighted, weighted.sum(axis=0)
        # The constant, with all weights 0, is a model of every support: no best weight has a ridge
        # above its loss.
        ridge = search.ridge[self.columns]
        with np.errstate(divide="ignore", over="ignore"):
            cap = np.minimum(problem.cap, np.sqrt(2 * empty.loss / ridge))
        self.constant, self.loss = problem.constant, empty.loss
        self.centre = float(empty.weights[0])
        self.data = bound_kernels.Data(
            bound_kernels.LOSSES.index(problem.loss.name), target.copy(), mass.copy(),
            np.ascontiguousarray(entries.T), gram, along, ridge, problem.coverage[self.columns],
            cap, float(search.gamma), float(search.lam),
        )  # fmt: skip
        self.charged = self.data._replace(gamma=self.data.gamma + surcharge)

    def solve(self, node: Node, accuracy: float) -> RelaxedSolution:
        """The relaxation's minimum, by proximal Newton steps on the columns that move."""
        weights, intercept = node.weights.astype(np.float64), node.intercept
        size = self.data.columns.size
        # A step reads the entries once, and the squares of the columns that move.
        at_once = max(1, _ENTRIES // (size * (1 + len(weights) // _MANY)))
        for _ in range(0, _NEWTON_STEPS, at_once):
            intercept, share, rise, done = self.kernels.relax(
                self.charged, node.state, node.sizes[1], weights, intercept, accuracy,
                min(at_once, _NEWTON_STEPS), self.seconds_left() / _SECONDS_PER_OPERATION,
            )  # fmt: skip
            if done or self.stopped():
                break
        return RelaxedSolution(weights, intercept, share, rise)

    def bounds(self, node: Node, weights: Floats, intercept: float) -> NodeBounds:
        """The bounds that the gradient of the loss at these weights proves: by size, and with and
        without every free column.
        """
        value, *found = self.kernels.dual(
            self.data, node.state, *node.sizes, weights, intercept, self.centre, self.loss
        )
        lowered = self.constant - _ROUNDING * self.loss
        worth, *bounds = found
        return NodeBounds(value + lowered, worth, *(bound + lowered for bound in bounds))


class BranchAndBound:
    """The search for a proof that no support is better than an incumbent, or for one that is.

    Attributes:
        surcharge, seconds_left: of its `Relaxation`.
        guess: weights of the relaxation's columns and an intercept, where the first relaxation
            starts; None for the constant. From there, thousands of columns would move at once.
        bound: the proved lower bound on all supports so far; it never falls.
        best: the incumbent.
        nodes: the number of nodes explored.
        proved: called with every better bound.
        closed: whether bound and incumbent agree within `TOLERANCE`.
    """

    def __init__(
        self,
        search: SupportSearch,
        best: Incumbent,
        proved: Callable[[float], None] = lambda bound: None,
        surcharge: float = 0.0,
        guess: tuple[Floats, float] | None = None,
        seconds_left: Callable[[], float] = lambda: np.inf,
    ) -> None:
        self.surcharge, self.guess, self.passes = surcharge, guess, _PASSES
        self.seconds_left = seconds_left
        self.search, self.best, self.proved = search, best, proved
        self.bound, self.nodes, self.closed = 0.0, 0, False
        self._finished = np.inf  # the least bound of the nodes that are done
        self._tried: set[bytes] = set()

    def run(self, max_nodes: int | None = None) -> None:
        """Split the node of the least bound until the gap is closed, `max_nodes` are split, or the
        search is stopped.
        """
        search = self.search
        self._relaxation = relaxation = Relaxation(search, self.surcharge, self.seconds_left)
        n, self._required = len(relaxation.columns), search.problem.required[:, relaxation.columns]
        largest = n if search.most is None else min(n, search.most)
        fixed = np.isin(relaxation.columns, search.problem.fixed)
        state = np.where(fixed, relaxation.kernels.IN, relaxation.kernels.FREE).astype(np.int8)
        weights, intercept = self.guess or (np.zeros(n), relaxation.centre)
        root = Node(0.0, 0, state, (int(fixed.sum()), largest), weights, intercept)
        # Waiting nodes have the bound of the node that they were split from.
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
        """Bound a node; returns its two halves, or nothing if it has no better support."""
        relaxation, objective = self._relaxation, self.best.objective
        out, inside, free = relaxation.kernels.OUT, relaxation.kernels.IN, relaxation.kernels.FREE
        for _ in range(self.passes):
            accuracy = _ACCURACY * abs(objective)
            if (node.state == free).any():  # else this bound is the last
                accuracy = max(accuracy, _ACCURACY_OF_GAP * (objective - node.bound))
            solution = relaxation.solve(node, accuracy)
            weights, intercept = solution.weights, solution.intercept
            found = relaxation.bounds(node, weights, intercept)
            self._try(solution.share > 0.5, weights, found)
            # The dual bound of the node, and the sizes that it leaves open
            bound, open_ = max(node.bound, found.least), np.flatnonzero(found.of_size < self._goal)
            is_free, last = node.state == free, np.zeros(len(node.state), bool)
            for serves in self._required:  # one of the set must enter: at best the cheapest
                if not (node.state[serves] == inside).any():
                    choices = serves & is_free
                    bound = max(bound, found.entering[choices].min(initial=np.inf))
                    last |= choices & (choices.sum() == 1)
            if bound >= self._goal or not len(open_) or not is_free.any():
                self._finished = min(self._finished, bound)
                return []
            # Fix the columns without which, or with which, the bound exceeds the incumbent
            enters = last | is_free & (found.leaving >= self._goal)
            leaves = is_free & (found.entering >= self._goal)
            fixed, sizes = bool(enters.any() or leaves.any()), (int(open_[0]), int(open_[-1]))
            # The supports cut off here are no better than the goal.
            if fixed or sizes != node.sizes:
                self._finished = min(self._finished, self._goal)
            state = node.state
            if fixed:
                state = np.where(enters, inside, np.where(leaves, out, state)).astype(np.int8)
            smaller = fixed or sizes[1] < 0.8 * node.sizes[1]
            guess = np.clip(weights, -_LARGEST, _LARGEST).astype(np.float32)
            node = Node(bound, 0, state, sizes, guess, intercept)
            if not smaller:
                break
        still = np.flatnonzero(node.state == free)
        if not len(still):
            return [node]
        # Split where both halves promise to rise, by the product of the estimates
        missing = max(self.best.objective - bound, 1e-300)
        promise = np.clip(solution.rise[still] / missing, _LEAST_RISE, 1).prod(axis=1)
        column = still[np.argmax(promise + 1e-9 * solution.share[still])]
        split = np.arange(len(node.state)) == column
        halves = (np.where(split, choice, node.state).astype(np.int8) for choice in (inside, out))
        return [node._replace(state=state) for state in halves]

    def _try(self, chosen: Mask, weights: Floats, found: NodeBounds) -> None:
        """Refit a support that may be better than the incumbent; if it is, continue the local
        search from it.
        """
        search, key = self.search, np.packbits(chosen).tobytes()
        columns = np.append(0, self._relaxation.columns[chosen])
        price = search.problem.penalty(columns, search.gamma, search.lam)
        least = found.value - found.worth[chosen].sum() + price
        too_large = search.most is not None and np.count_nonzero(chosen) > search.most
        if least >= self._goal or too_large or key in self._tried or not search.keeps(columns):
            return
        self._tried.add(key)
        goal = self.best.objective - 1e-9 * abs(self.best.objective)
        refitted = search.refit(columns, np.append(0.0, weights[chosen]), goal)
        if refitted.objective < goal:
            search.observe(refitted)
            refitted = search.descend(refitted)
            self.best = refitted if refitted.objective < self.best.objective else self.best
