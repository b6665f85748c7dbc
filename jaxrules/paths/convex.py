"""Certified paths for convex costs that are not quadratic (logistic, Poisson, softmax): branch and
bound over the sequence of features.

**Least costs.** For a prefix of a sequence, the least cost V of its models is a convex problem in
the changes and in the intercepts of the models. Damped Newton steps solve it. They also prove a
lower bound: every row's loss lies above its tangents, l(s) >= theta s - l*(theta). With the slopes
theta = l'(s) + l''(s) d linearised along the Newton step d, the tangents sum to a function whose
gradient vanishes at s + d, because that is the Newton equation. So its value there is a lower bound
on V (Fenchel duality), which differs from V by the square of the Newton decrement. For a quadratic
loss it is V itself.

**Remainders.** Every model after step p costs at least m(U), the least cost on its support U, which
grows by at most one feature per step. So the models after a prefix with support S cost at least

    rest_p(S) = min_i { alpha_{p+1} m(S+i) + rest_{p+1}(S+i) },   rest_K = 0,

and every path with the prefix costs at least V + rest_p(S). The table has the supports that a path
below the incumbent can reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.paths.costs import RANK_TOLERANCE, Array, LossCost, Sequence, inverses
from jaxrules.paths.logistic import newton_path
from jaxrules.paths.problem import Changes, PathProblem
from jaxrules.paths.supports import LARGEST_BIT, bits
from jaxrules.solvers import layered
from jaxrules.solvers.layered import Children, LayeredCertificate

WIDTHS = (64, 2_000, 64_000)
MAX_SUPPORTS = 2**15
"""Each takes a Newton iteration over all rows."""
GAP = 1e-8
"""Relative tolerance of the certificate."""
EXACT = 1e-11
"""Newton steps end where value and bound agree to this share of the value."""
NEWTON_STEPS = 60
CELLS = 1_000_000
"""Numbers in the largest array of a batch (prefixes x models x steps x rows), 8 MB."""
CHUNK_CELLS = 20_000_000
HALVINGS = 2.0**-40
"""Of a Newton step; then rounding ends the descent."""


def search(
    problem: PathProblem,
    certificate: LayeredCertificate[Changes],
    cost: LossCost,
    stopped: Callable[[], bool],
) -> None:
    """The least-cost path without side conditions, for any loss with a conjugate; see
    `exact.search`.

    Args:
        problem: with any quadratic model of the cost; its step weights count.
        certificate: of the cost; valid at any time.
        cost: of the changes.
        stopped: the search ends early when this is true.
    """
    certificate.relative = GAP
    # The cost of standing still sets the scale of rounding where the optimum is 0.
    start = float(cost(np.zeros((1, cost.n_coefficients)))[0]) * problem.step_weights.sum()
    certificate.absolute = max(certificate.absolute, 1e-10 * abs(start))
    if certificate.closed or stopped():
        return
    prefixes = _ConvexPrefixes(problem, cost, certificate, stopped)
    certificate.prove(float(prefixes.rest[0, 0]))
    if not stopped():
        layered.search(prefixes, certificate, WIDTHS, stopped)


class _LeastCosts(NamedTuple):
    changes: Array  # shape (prefixes, width, steps)
    intercepts: Array  # of the models, shape (prefixes, width, models)
    lower: Array  # lower bounds on the least costs, shape (prefixes,)


class _Solver:
    """Least costs of models that are linear in a few changes, many problems at once.

    A row has a score, slope and change for each of the coefficients of a feature, `width` in all,
    on the axis after that of the problems, and a matrix of curvatures.
    """

    def __init__(self, cost: LossCost) -> None:
        self.cost = cost
        self.rows = np.ascontiguousarray(cost.X.T)  # shape (features, rows)
        centre = np.broadcast_to(np.asarray(cost.centre, np.float64), cost.n_coefficients)
        self.centre = centre.reshape(-1, cost.width).T  # shape (width, features)
        self.offset = np.broadcast_to(cost.offset, (cost.width, len(cost.y)))[:, None]
        # With the slope 0 the tangents are the losses' least values: the bound of any model.
        none = np.zeros((1, cost.width, len(cost.y)))
        self.floor = cost.constant - float(cost.conjugates(none)[0] @ cost.shares)
        # The best intercepts of the model that stands still, shape (width, 1)
        still = cost.intercepts(np.zeros((1, cost.n_coefficients)))
        self.intercept = still.reshape(cost.width, 1)

    def models(
        self,
        columns: Sequence,
        activation: Array,
        weights: Array,
        start: _LeastCosts | None,
        enough: Array,
    ) -> _LeastCosts:
        """The least sum_k weights_k c(b_k), b_k = sum_j activation_kj change_j e_(columns_j).

        Args:
            columns: shape (prefixes, steps).
            activation: shape (models, steps).
            weights: of the models, shape (models,).
            start: changes and intercepts to start from; None for standing still.
            enough: a prefix whose bound reaches this is left, shape (prefixes,).
        """  # fmt: skip
        count, steps = columns.shape
        models, n, width = len(weights), len(self.cost.y), self.cost.width
        found = start or _LeastCosts(
            np.zeros((count, width, steps)), np.zeros((count, width, models)) + self.intercept,
            np.full(count, -np.inf),
        )  # fmt: skip
        found = _LeastCosts(*(part.copy() for part in found))
        size = max(1, CELLS // max(models * steps * width**2 * n, 1))
        for first in range(0, count, size):
            some = slice(first, first + size)
            self._solve(columns[some], activation, weights, found, some, enough[some])
        np.maximum(found.lower, weights.sum() * self.floor, out=found.lower)
        return found

    def _solve(
        self,
        columns: Sequence,
        activation: Array,
        weights: Array,
        found: _LeastCosts,
        some: slice,
        enough: Array,
    ) -> None:
        """`models` for a batch, written into `found`."""  # fmt: skip
        x, u, lower = (part[some] for part in found)
        steps = np.zeros_like(x), np.zeros_like(u)
        value, size = np.full(len(x), np.inf), np.ones(len(x))
        todo = np.arange(len(x))
        for _ in range(NEWTON_STEPS):
            # What is tried now: the last point plus a part of its Newton step
            share = np.where(np.isfinite(value[todo]), size[todo], 0.0)[:, None, None]
            at = x[todo] + share * steps[0][todo], u[todo] + share * steps[1][todo]
            tried, bound, further = self._newton(columns[todo], activation, weights, *at)
            lower[todo] = np.fmax(lower[todo], bound)
            # Rounding of a value near its minimum must not look like a step that fails.
            better = tried <= value[todo] + 1e-14 * np.abs(value[todo])
            accepted = todo[better]
            x[accepted], u[accepted], value[accepted] = at[0][better], at[1][better], tried[better]
            steps[0][accepted], steps[1][accepted] = further[0][better], further[1][better]
            size[accepted] = 1.0
            size[todo[~better]] /= 2
            apart = value[todo] - lower[todo] > EXACT * np.abs(value[todo])
            todo = todo[apart & (lower[todo] < enough[todo]) & (size[todo] > HALVINGS)]
            if not len(todo):
                return

    def _newton(
        self, columns: Sequence, activation: Array, weights: Array, x: Array, u: Array
    ) -> tuple[Array, Array, tuple[Array, Array]]:
        """The value, a lower bound and the Newton step at the changes x and the intercepts u."""
        cost, width = self.cost, x.shape[1]
        Z = self.rows[columns]  # (prefixes, steps, rows)
        scores = self._linear(activation, x, Z) + u[..., None] + self.offset
        with np.errstate(over="ignore", invalid="ignore"):
            values, slopes, curvatures = cost.terms(scores)
            total = (values @ cost.shares) @ weights
            by_row = weights[:, None] * cost.shares
            g, h = by_row * slopes, by_row * curvatures
            gradient, hessian = _derivatives(activation, Z, g, h)
            if cost.intercept:
                # The intercepts are eliminated: u moves by -(g'1 + h'Z v) / h'1 for a change v.
                # Models come first; of a model's matrix, rows are intercepts, columns changes.
                crossed = (h @ Z.transpose(0, 2, 1)[:, None, None]).transpose(0, 3, 1, 2, 4)
                crossed = crossed * activation[:, None, None]
                crossed = crossed.reshape(*crossed.shape[:3], -1)
                mass = h.sum(axis=-1).transpose(0, 3, 1, 2)
                pull = g.sum(axis=-1).transpose(0, 2, 1)[..., None]
                inverse = inverses(np.where(np.isfinite(mass), mass, 0.0))
                across = crossed.swapaxes(-1, -2) @ inverse
                gradient -= (across @ pull).sum(axis=1).reshape(gradient.shape)
                hessian -= (across @ crossed).sum(axis=1)
            same = (columns[:, :, None] == columns[:, None]).astype(np.float64)
            if cost.l2_penalty:
                active = activation * x[:, :, None]
                by_ridge = weights @ activation * self._centre(columns)
                by_ridge += (weights[:, None] * activation * (active @ same[:, None])).sum(axis=2)
                gradient += 2 * cost.l2_penalty * by_ridge
                of_one = same * ((activation.T * weights) @ activation)
                hessian += 2 * cost.l2_penalty * np.kron(np.eye(width), of_one)
        dx, usable = _newton_step(gradient, hessian)
        du = np.zeros_like(u)
        with np.errstate(over="ignore", invalid="ignore"):
            if cost.intercept:
                moved = crossed @ dx.reshape(len(x), 1, -1, 1)
                du = -(inverse @ (pull + moved))[..., 0].swapaxes(1, 2)
            change = self._linear(activation, dx, Z) + du[..., None]
            bent = (curvatures * change[:, None]).sum(axis=2)
            bound = self._tangents(scores + change, slopes + bent) @ weights
            bound = bound + self._ridge(columns, activation, weights, same, x + dx)
            total = total + self._ridge(columns, activation, weights, same, x)
        good = usable & np.isfinite(bound)
        usable = usable[:, None, None]
        return (
            np.where(np.isfinite(total), total, np.inf),
            np.where(good, bound, -np.inf),
            (np.where(usable, dx, 0.0), np.where(usable, du, 0.0)),
        )

    def _centre(self, columns: Sequence) -> Array:
        """a at the columns of the changes, shape (prefixes, width, steps)."""
        return self.centre[:, columns].swapaxes(0, 1)

    def _linear(self, activation: Array, changes: Array, Z: Array) -> Array:
        """The scores of the models with these changes, shape (prefixes, width, models, rows)."""
        active = activation * changes[:, :, None]
        count, width, models, length = active.shape
        scores = active.reshape(count, width * models, length) @ Z
        return np.asarray(scores.reshape(count, width, models, -1))

    def _tangents(self, scores: Array, theta: Array) -> Array:
        """The mean over the rows of the tangents to the losses with the slopes theta, at scores."""
        inside = (theta * scores).sum(axis=1) - self.cost.conjugates(theta)
        tangents: Array = inside @ self.cost.shares
        return tangents

    def _ridge(
        self, columns: Sequence, activation: Array, weights: Array, same: Array, x: Array
    ) -> Array:
        """sum_k weights_k (l2 |a + b_k|^2 + constant)."""
        cost = self.cost
        fixed = weights.sum() * (cost.constant + cost.l2_penalty * float((self.centre**2).sum()))
        if not cost.l2_penalty:
            return np.full(len(x), fixed)
        active = activation * x[:, :, None]
        # |a + b|^2 = |a|^2 + sum_j x_j (2 a_j + b_j), a_j and b_j at the column of change j
        parts = active * (2 * self._centre(columns)[:, :, None] + active @ same[:, None])
        ridge: Array = cost.l2_penalty * (parts.sum(axis=(1, 3)) @ weights) + fixed
        return ridge


def _derivatives(activation: Array, Z: Array, g: Array, h: Array) -> tuple[Array, Array]:
    """By the changes: the gradient, shape (prefixes, width, steps), and the Hessian, a matrix per
    prefix, from the slopes g and curvatures h of the rows Z.
    """
    transposed = Z.transpose(0, 2, 1)
    gradient = (activation * (g @ transposed[:, None])).sum(axis=2)
    gram = (h[..., None, :] * Z[:, None, None, None]) @ transposed[:, None, None, None]
    gram *= activation[:, :, None] * activation[:, None]
    count, width, steps = gradient.shape
    hessian = gram.sum(axis=3).transpose(0, 1, 3, 2, 4)
    return gradient, hessian.reshape(count, width * steps, width * steps)


def _newton_step(gradient: Array, hessian: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The step, of the shape of the gradient, and for which prefixes it is one. Changes the Hessian
    in place.
    """
    flat, order = gradient.reshape(len(gradient), -1), np.arange(hessian.shape[1])
    diagonal = hessian[:, order, order]
    # Regular systems for dependent columns, below the tolerance of the certificate
    hessian[:, order, order] += np.where(diagonal > 0, 1e-13 * diagonal, 1.0)
    usable = np.isfinite(hessian).all(axis=(1, 2)) & np.isfinite(flat).all(axis=1)
    hessian[~usable], flat[~usable] = np.eye(len(order)), 0.0
    return -np.linalg.solve(hessian, flat[..., None]).reshape(gradient.shape), usable


class _ConvexLayer(NamedTuple):
    sequences: Sequence  # shape (states, steps so far)
    masks: NDArray[np.int64]  # their supports as bit masks


class _ConvexPrefixes(layered.LayeredProblem[_ConvexLayer, Changes]):
    """Prefixes of sequences of the features that have an effect; a move is a feature."""

    def __init__(
        self,
        problem: PathProblem,
        cost: LossCost,
        certificate: LayeredCertificate[Changes],
        stopped: Callable[[], bool],
    ) -> None:
        self.cost, self.weights, self.depth = cost, problem.step_weights, problem.steps
        self.stopped = stopped
        shares = cost.shares
        centred = cost.X - shares @ cost.X if cost.intercept else cost.X
        moments = shares @ cost.X**2
        effective = (shares @ centred**2 > RANK_TOLERANCE * moments) | (cost.l2_penalty > 0)
        self.features = np.flatnonzero(effective)
        self.solver = _Solver(cost.restricted(self.features))
        # As in `exact`. The proof, by Abel summation, holds for any cost; a step that stands still
        # counts as one of another feature.
        self.no_repeats = len(self.features) > 1 and bool((np.diff(self.weights) >= 0).all())
        # States between two looks at the clock: each has a problem per feature.
        work = max(len(self.features), 1) * (self.depth * cost.width) ** 2 * len(cost.y)
        self.chunk = int(np.clip(CHUNK_CELLS // work, 1, 100))
        self.masks, self.rest, self.least = self._table(certificate)

    def _table(self, certificate: LayeredCertificate[Changes]) -> tuple[Sequence, Array, Array]:
        """The supports, ascending; rest_p(U), shape (steps + 1, supports + 1); and m(U)."""
        d, steps, weights = len(self.features), self.depth, self.weights
        largest = min(steps, d)
        everything = np.arange(d)[None]
        # No model costs less than the best one on all features.
        least_of_all = self._least(everything)[0] if d else self.solver.floor
        certificate.prove(float(least_of_all * weights.sum()))
        after = np.append(np.cumsum(weights[::-1])[::-1], 0.0) * least_of_all
        layers, costs = [np.zeros(1, np.int64)], [self._least(np.zeros((1, 0), np.int64))]
        spent = np.append(0.0, np.full(steps, np.inf))[:, None]  # by step and support
        spent[1:, 0] = np.cumsum(weights) * costs[0][0]
        complete = d <= LARGEST_BIT
        for size in range(1, largest + 1 if complete else 1):
            before = layers[-1]
            grown = before[:, None] | bits(d)
            parents, features = np.nonzero(grown != before[:, None])
            masks, to = np.unique(grown[parents, features], return_inverse=True)
            if sum(map(len, layers)) + len(masks) > MAX_SUPPORTS or self.stopped():
                complete = False
                break
            chosen = np.nonzero(masks[:, None] & bits(d))[1].reshape(len(masks), size)
            least = np.maximum(self._least(chosen), least_of_all)
            if self.stopped():  # then some bounds are those of no iteration
                complete = False
                break
            smaller, spent = spent, np.full((steps + 1, len(masks)), np.inf)
            needed = np.zeros(len(masks), bool)
            for p in range(size, steps + 1):
                # Step p adds a feature, or changes one of the support.
                np.minimum.at(spent[p], to, smaller[p - 1, parents])
                spent[p] = np.minimum(spent[p], spent[p - 1]) + weights[p - 1] * least
                needed |= spent[p] + after[p] < certificate.settled
            layers.append(masks[needed])
            costs.append(least[needed])
            spent = spent[:, needed]
            if not needed.any():
                break
        masks, least = np.concatenate(layers), np.concatenate(costs)
        order = np.argsort(masks)
        masks, least = masks[order], least[order]
        # Supports outside of the table are reached by no better path; or, where the table is cut,
        # only the least cost of all is known.
        rest = np.zeros((steps + 1, len(masks) + 1))
        rest[:, -1] = np.inf if complete else after
        costs_of_all = np.append(least, least_of_all)  # finite: a weight may be 0
        larger = self._positions(masks, masks[:, None] | bits(d)) if d <= LARGEST_BIT else (
            np.full((1, max(d, 1)), 1)
        )  # fmt: skip
        for p in range(steps - 1, -1, -1):
            following = weights[p] * costs_of_all + rest[p + 1]
            rest[p, :-1] = following[larger].min(axis=1, initial=np.inf)
        return masks, rest, costs_of_all

    def _least(self, chosen: Sequence) -> Array:
        """m(U) of supports of one size, shape (supports, size) -> (supports,)."""
        lower = np.full(len(chosen), self.solver.floor)
        one, all_ = np.ones(1), np.ones((1, chosen.shape[1]))
        for first in range(0, len(chosen), 256):
            if first and self.stopped():
                break
            some = chosen[first : first + 256]
            lower[first : first + 256] = self.solver.models(
                some, all_, one, None, np.full(len(some), np.inf)
            ).lower
        return lower

    @staticmethod
    def _positions(masks: Sequence, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        at = np.minimum(np.searchsorted(masks, wanted), len(masks) - 1)
        return np.where(masks[at] == wanted, at, len(masks))

    def root(self) -> _ConvexLayer:
        return _ConvexLayer(np.zeros((1, 0), np.int64), np.zeros(1, np.int64))

    def expand(self, states: _ConvexLayer, some: slice, step: int, incumbent: float) -> Children:
        sequences, masks = states.sequences[some], states.masks[some]
        count, d = len(sequences), len(self.features)
        settled = incumbent - GAP * abs(incumbent)
        weights = self.weights[: step + 1]
        none = np.zeros((count, self.cost.width, 0))
        before = _LeastCosts(none, none, np.zeros(count))
        if step:
            before = self.solver.models(
                sequences, np.tri(step), weights[:-1], None, np.full(count, np.inf)
            )
        parents, moves = np.divmod(np.arange(count * d), d)
        to = self._positions(self.masks, masks[:, None] | bits(d)).ravel()
        if d > LARGEST_BIT:
            to[:] = len(self.masks)
        rest = self.rest[step + 1, to]
        # The new model costs at least m(U): most children need no more.
        bounds = before.lower[parents] + weights[-1] * self.least[to] + rest
        if self.no_repeats and step:
            bounds[moves == sequences[parents, -1]] = np.inf
        open_ = np.flatnonzero(bounds < settled)
        if len(open_):
            at = parents[open_]
            at_rest = np.zeros((len(at), self.cost.width, 1))
            last = before.intercepts[at][..., -1:] if step else at_rest + self.solver.intercept
            start = _LeastCosts(
                np.concatenate([before.changes[at], at_rest], axis=-1),
                np.concatenate([before.intercepts[at], last], axis=-1),
                np.full(len(at), -np.inf),
            )
            solved = self.solver.models(
                np.column_stack([sequences[at], moves[open_]]), np.tri(step + 1), weights, start,
                settled - rest[open_],
            )  # fmt: skip
            bounds[open_] = np.maximum(bounds[open_], solved.lower + rest[open_])
        # The bound of a complete sequence is its objective only up to the accuracy of its Newton
        # steps: the certificate takes the bound.
        last_layer = step == self.depth - 1
        left_out = float(bounds.min(initial=np.inf)) if last_layer else None
        return Children(parents, moves, bounds, bounds, left_out=left_out)

    def grow(self, states: _ConvexLayer, children: Children, step: int) -> _ConvexLayer:
        parents, moves = children.parents, children.moves
        masks = states.masks[parents] | bits(len(self.features))[moves]
        return _ConvexLayer(np.column_stack([states.sequences[parents], moves]), masks)

    def solution(self, moves: Sequence) -> Changes:
        return newton_path(self.cost, self.weights, self.features[moves], self.stopped)
