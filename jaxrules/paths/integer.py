"""Certified paths of integer steps: S_SLIM and S'_SLIM of Section 5.1.

Every model is a point of the lattice start + Z^d, so two prefixes of equal length that arrive at the same
point are interchangeable but for their cost so far: the cheaper one serves. The search grows all points
layer by layer, with that dominance and the remainder bounds of `exact`, which hold for real coefficients and
so for integers. Bounds on the coefficients and a given end are conditions on points.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from jaxrules.paths.certificate import Certificate
from jaxrules.paths.costs import Array, Quadratic, Sequence, greedy_path
from jaxrules.paths.exact import Supports, bits
from jaxrules.results import Run

IntegerSteps = Literal["any", "unit"]

WIDTHS = (100, 2_000, 40_000, 400_000)
"""Points kept per layer; the next width is tried where points were dropped."""
MAX_CHILDREN = 4_000_000


def search(
    cost: Quadratic,
    step_weights: Array,
    kind: IntegerSteps,
    lower: Array,
    upper: Array,
    end: Array | None,
    run: Run,
) -> Certificate:
    """The least-cost path of integer steps from zero, with a certificate.

    Args:
        cost: the cost of the change from the starting model.
        step_weights: alpha, shape (steps,); all positive for "any".
        kind: "any" integer, or "unit": -1, 0 or 1.
        lower, upper: bounds on the change, shape (features,).
        end: the change that the last model must have (integers), or None.
        run: clock, deadline and progress.
    """
    certificate = Certificate.of(cost, step_weights)
    certificate.offer(*greedy_path(cost, len(step_weights), kind, lower, upper, end))
    with run:
        supports = Supports.of(cost, len(step_weights))
        rest = supports.remainders(step_weights, np.zeros(len(step_weights) + 1))
        for width in WIDTHS:
            if run.stopped() or certificate.closed:
                break
            _grow(certificate, supports, rest, kind, lower, upper, end, width, run)
    return certificate


def _grow(
    certificate: Certificate,
    supports: Supports,
    rest: Array,
    kind: IntegerSteps,
    lower: Array,
    upper: Array,
    end: Array | None,
    width: int,
    run: Run,
) -> None:
    """One search that keeps at most `width` points per layer; what is dropped goes into the bound."""
    cost, weights = certificate.cost, certificate.step_weights
    steps, d = certificate.models.shape
    points = np.zeros((1, d))
    spent = np.zeros(1)
    bounds = np.full(1, -np.inf)
    trail: list[tuple[Sequence, Sequence, Array]] = []  # parent, feature and point of every kept child
    dropped = np.inf
    for p in range(steps):
        if run.stopped():
            certificate.raise_bound(min(dropped, bounds.min()))
            return
        parents, features, values, cut = _children(certificate, points, spent, rest[p + 1], p, kind, lower, upper, end)
        dropped = min(dropped, cut)
        grown = points[parents]
        grown[np.arange(len(parents)), features] = values
        if end is not None:
            away = np.abs(grown - end)
            needed = away.sum(axis=1) if kind == "unit" else (away > 0.5).sum(axis=1)
            reachable = needed <= steps - 1 - p
            parents, features, grown = parents[reachable], features[reachable], grown[reachable]
        total = spent[parents] + weights[p] * cost(grown)
        masks = np.bitwise_or.reduce(np.where(grown != 0, bits(d), 0), axis=1)
        bound = np.maximum(total + rest[p + 1, supports.positions(masks)], bounds[parents])
        kept = np.flatnonzero(bound < certificate.objective - certificate.tolerance)
        kept = kept[np.argsort(total[kept], kind="stable")]
        _, first = np.unique(grown[kept], axis=0, return_index=True)  # the cheapest way to every point
        kept = kept[first]
        kept = kept[np.argsort(bound[kept], kind="stable")]
        certificate.nodes += len(parents)
        if len(kept) > width:
            dropped = min(dropped, bound[kept[width]])
            kept = kept[:width]
        if not len(kept):
            break
        trail.append((parents[kept], features[kept], grown[kept]))
        points, spent, bounds = grown[kept], total[kept], bound[kept]
    else:
        _offer_best(certificate, trail, int(spent.argmin()))
        run.step(certificate.objective, steps)
    certificate.raise_bound(min(dropped, certificate.objective - certificate.tolerance))


def _offer_best(certificate: Certificate, trail: list[tuple[Sequence, Sequence, Array]], last: int) -> None:
    sequence, models = [], []
    for parents, features, points in reversed(trail):
        sequence.append(features[last])
        models.append(points[last])
        last = parents[last]
    certificate.offer(np.array(sequence[::-1], np.int64), np.array(models[::-1]))


def _children(
    certificate: Certificate,
    points: Array,
    spent: Array,
    rest: Array,
    step: int,
    kind: IntegerSteps,
    lower: Array,
    upper: Array,
    end: Array | None,
) -> tuple[Sequence, Sequence, Array, float]:
    """All points one step away that can lead below the incumbent: parents, features, new coefficients.

    The last result is a bound on those that were left out because there were too many, else infinity.
    """
    cost, weights = certificate.cost, certificate.step_weights
    count, d = points.shape
    curvature = np.diag(cost.curvature)
    slope = cost.linear - points @ cost.curvature  # minus half the gradient
    here = cost(points)
    if kind == "unit":
        low, high = np.full((count, d), -1.0), np.full((count, d), 1.0)
    else:
        # alpha c(b + t e_i) = alpha (c(b) - 2 slope t + Q_ii t^2) must leave room below the incumbent
        usable = curvature > 0
        room = (certificate.objective - spent - rest.min()) / weights[step]
        safe = np.where(curvature > 0, curvature, 1.0)
        best = slope / safe
        radius = np.sqrt(np.maximum(room[:, None] - here[:, None] + slope * best, 0) / safe)
        radius = np.where(usable, radius, 0.0)
        best = np.where(usable, best, 0.0 if end is None else end - points)  # without effect: only for the end
        low, high = np.ceil(best - radius), np.floor(best + radius)
    low = np.maximum(low, np.ceil(lower - 1e-9) - points)
    high = np.minimum(high, np.floor(upper + 1e-9) - points)
    numbers = np.maximum(high - low + 1, 0).astype(np.int64)
    cut = np.inf
    excess = numbers.sum(axis=1).cumsum() > MAX_CHILDREN
    if excess.any():
        cut = float((spent[excess] + weights[step] * float(cost(cost.minimiser())) + rest.min()).min())
        numbers[excess] = 0
    parents, features = np.nonzero(numbers)
    repeats = numbers[parents, features]
    offsets = np.arange(repeats.sum()) - np.repeat(repeats.cumsum() - repeats, repeats)
    parents, features = np.repeat(parents, repeats), np.repeat(features, repeats)
    values = points[parents, features] + low[parents, features] + offsets
    # standing still is a step of size zero, and always allowed
    stay = np.arange(count)
    parents = np.concatenate([parents, stay])
    features = np.concatenate([features, np.zeros(count, np.int64)])
    values = np.concatenate([values, points[:, 0]])
    return parents, features, values, cut
