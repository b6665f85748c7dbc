"""Search for the conjunction that maximises the objective of orthogonal gradient boosting.

    obj(q) = |g'q| / (||q_perp|| + epsilon)                     Yang et al., AISTATS 2024, arXiv 2402.15691

q is the 0/1 vector of the selected rows, g the gradient and q_perp the part of q that are orthogonal to the span of
the rules found so far. ||q_perp||^2 = |q| - ||B'q||^2 for an orthonormal basis B of the span.

A node of the exact search is a conjunction with extent E; two bounds hold for every q inside E, with the
positive part of g (and likewise the negative part), S = sum over E of b b' and rho its largest eigenvalue:

1. ||B'q||^2 <= rho |q|, so obj(q)^2 <= max over prefixes in descending g of G^2 / ((1 - rho) |prefix|).
2. If y is orthogonal to the span and y >= g on E, then g'q <= y'q = y'q_perp <= ||y|| ||q_perp||. With y =
   max(g, 0) on E and the smallest correction outside that makes it orthogonal,
   ||y||^2 = ||max(g, 0)||_E^2 + v'(I - S)^-1 v, v = B'max(g, 0) over E. And y = g gives ||g||.

Both are loose while E contains whole rules found before, so this search is for small problems or limited ones (it
returns its best rule and the proved gap); best-first order makes the gap as small as it can be.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxrules.results import Status
from jaxrules.solvers.rule_search.depth_first import Found, SearchSpace, never, shortest_equivalent

TIE = 1e-10
EPSILON = 1e-6
_IN_SPAN = 1e-9  # ||q_perp||^2 / |q| below this is rounding: q lies in the span, and g'q is zero


class OrthogonalObjective:
    """The objective on the merged rows of a search space.

    Args:
        space: the propositions.
        gradient: float64 (rows,); its part in the span is removed.
        found: bool (rows, rules): the extents of the rules found so far, and all rows for an intercept;
            they must be unions of the merged rows.
    """

    def __init__(self, space: SearchSpace, gradient: np.ndarray, found: np.ndarray) -> None:
        self.space = space
        self.count = space.sum_rows(np.ones(len(gradient)))
        left, values, _ = np.linalg.svd(found.astype(np.float64), full_matrices=False)
        basis = left[:, values > 1e-9 * max(values, default=0.0)]
        perpendicular = gradient - basis @ (basis.T @ gradient)
        self.g = space.sum_rows(perpendicular)
        self.norm = math.sqrt(float(np.sum(self.g**2 / self.count)))
        # every merged row's sum of b: rules do not tell its rows apart
        self.b = np.stack([space.sum_rows(column) for column in basis.T], axis=1) if basis.shape[1] else (
            np.zeros((len(self.count), 0))
        )  # fmt: skip

    def __call__(self, members: np.ndarray) -> np.ndarray:
        """obj of sets of merged rows given as the columns of a 0/1 matrix (groups, sets)."""
        members = members.astype(np.float64)
        total, count, inside = self.g @ members, self.count @ members, self.b.T @ members
        distance = count - np.sum(inside**2, axis=0)
        value = np.abs(total) / (np.sqrt(np.maximum(distance, 0.0)) + EPSILON)
        return np.where(distance > _IN_SPAN * np.maximum(count, 1.0), value, 0.0)

    def bounds(self, members: np.ndarray) -> np.ndarray:
        """An upper bound on obj over all subsets of each set."""
        members = members.astype(np.float64)
        outer = self.b[:, :, None] * self.b[:, None, :] / self.count[:, None, None]
        s = np.einsum("ra,rij->aij", members, outer)
        k = s.shape[1]
        rho = np.linalg.eigvalsh(s)[:, -1] if k else np.zeros(members.shape[1])
        slack = np.maximum(1.0 - rho - 1e-12 * (k + 1), 0.0)
        bound = np.zeros(members.shape[1])
        for sign in (1.0, -1.0):
            g = np.maximum(sign * self.g, 0.0)
            order = np.argsort(-g / self.count, kind="stable")
            order = order[g[order] > 0]
            sums, counts = np.cumsum(g[order, None] * members[order], axis=0), np.cumsum(
                self.count[order, None] * members[order], axis=0
            )  # fmt: skip
            square = np.max(sums**2 / np.maximum(counts, 1.0), axis=0, initial=0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                by_prefix = np.where(square > 0, square / slack, 0.0)
            by_dual = np.full(len(bound), np.inf)
            safe = np.flatnonzero(slack > 1e-6)
            v = ((g / self.count)[:, None] * self.b).T @ members
            if k and len(safe):
                solved = np.linalg.solve(np.eye(k) - s[safe], v.T[safe][:, :, None])[:, :, 0]
                by_dual[safe] = (g**2 / self.count) @ members[:, safe] + np.sum(v.T[safe] * solved, axis=1)
            bound = np.maximum(bound, np.sqrt(np.minimum(by_prefix, by_dual)))
        return np.minimum(bound, self.norm) * (1.0 + 1e-9)  # the solve and the eigenvalues are rounded


def search_orthogonal(
    space: SearchSpace,
    gradient: np.ndarray,
    found: np.ndarray,
    *,
    max_length: int | None = None,
    approximation: float = 1.0,
    max_evaluations: int | None = None,
    stopped: Callable[[], bool] = never,
    width: int = 4,
    exact: bool = True,
) -> Found:
    """A best conjunction under the orthogonal objective; arguments as of `search_optimal` and `OrthogonalObjective`.

    Args:
        width: of the beam that comes first; 1 is greedy search.
        exact: go on with the exact search; otherwise the result has no bound.
    """
    objective = OrthogonalObjective(space, gradient, found)
    longest = len(space) if max_length is None else min(max_length, len(space))
    best, value, evaluations = _beam(space, objective, longest, width)
    if not exact:
        return _result(space, objective, best, None, Status.CONVERGED, evaluations, {})
    counts = {"nodes": 0, "bound": 0, "redundant": 0, "implied": 0}
    groups = np.arange(len(space.masks))
    nothing = np.zeros(space.bits.shape[1], np.uint64)
    boundary: list[tuple[Any, ...]] = [(-math.inf, 0, (), groups, np.arange(len(space)), nothing)]
    pushed, dropped, open_bound = 0, 0.0, 0.0
    status = Status.OPTIMAL if approximation == 1.0 else Status.CONVERGED
    bit = np.zeros((len(space), len(nothing)), np.uint64)
    for a in range(len(space)):
        bit[a, a // 64] = np.uint64(1) << np.uint64(a % 64)
    try:
        while boundary and longest:
            negative, _, path, rows, available, behind = boundary[0]
            if approximation * -negative <= value * (1.0 + TIE):
                break
            if max_evaluations is not None and evaluations >= max_evaluations:
                status = Status.MAX_ITERATIONS
                break
            if stopped():
                status = Status.TIME_LIMIT
                break
            heapq.heappop(boundary)
            counts["nodes"] += 1
            children = np.zeros((len(groups), len(available)), np.uint8)
            children[rows] = space.masks[np.ix_(rows, available)]
            values = objective(children)
            evaluations += len(available)
            top = int(np.argmax(values))
            if values[top] > value * (1.0 + TIE):
                best, value = (*path, int(available[top])), float(values[top])
            if len(path) + 1 >= longest:
                continue
            bounds = np.minimum(objective.bounds(children), -negative)
            alive = approximation * bounds > value * (1.0 + TIE)
            counts["bound"] += int(np.sum(~alive))
            dropped = max(dropped, float(np.max(bounds[~alive], initial=0.0)))
            ranked = np.flatnonzero(alive)[np.argsort(bounds[alive], kind="stable")]
            for position, child in enumerate(ranked):
                extent = np.flatnonzero(children[:, child])
                closure = np.bitwise_and.reduce(space.bits[extent], axis=0)
                hidden = behind | np.bitwise_or.reduce(bit[available[ranked[:position]]], axis=0, initial=0)
                if max_length is None and np.any(closure & hidden):
                    counts["redundant"] += 1
                    continue
                later = available[ranked[position + 1 :]]
                implied = np.any(bit[later] & closure, axis=1)
                counts["implied"] += int(np.sum(implied))
                if not np.all(implied):
                    pushed += 1
                    step = (*path, int(available[child]))
                    entry = (-float(bounds[child]), pushed, step, extent, later[~implied], hidden)
                    heapq.heappush(boundary, entry)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if boundary and longest:
        open_bound = -boundary[0][0]
    bound = max(value * (1.0 + TIE), min(max(open_bound, dropped), objective.norm * (1.0 + 1e-9)))
    return _result(space, objective, best, bound, status, evaluations, counts)


def _beam(
    space: SearchSpace, objective: OrthogonalObjective, longest: int, width: int
) -> tuple[tuple[int, ...], float, int]:
    everything = np.ones(len(space.masks), np.uint8)
    best: tuple[int, ...] = ()
    value = float(objective(everything[:, None])[0])
    beam = [(value, best, everything)]
    evaluations = 0
    for _ in range(longest):
        extensions: dict[bytes, tuple[float, tuple[int, ...], np.ndarray]] = {}
        for parent, path, members in beam:
            children = members[:, None] & space.masks
            values = objective(children)
            evaluations += len(space)
            for a in np.argsort(-values, kind="stable")[:width]:
                if values[a] > parent * (1.0 + 1e-12):
                    entry = (float(values[a]), (*path, int(a)), children[:, a])
                    extensions.setdefault(children[:, a].tobytes(), entry)
        beam = sorted(extensions.values(), key=lambda entry: -entry[0])[:width]
        if not beam:
            break
        if beam[0][0] > value:
            value, best = beam[0][:2]
    return best, value, evaluations


def _result(
    space: SearchSpace,
    objective: OrthogonalObjective,
    best: Sequence[int],
    bound: float | None,
    status: Status,
    evaluations: int,
    counts: dict[str, int],
) -> Found:
    rows = space.selected_groups(best)
    value = float(objective(rows[:, None])[0])
    return Found(shortest_equivalent(space, rows), value, bound, status, evaluations, counts)
