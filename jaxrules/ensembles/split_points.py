"""Thresholds that the data choose: the splits of a few boosted trees of depth two.

A grid of quantiles misses a step between two quantiles, and a rare event beyond the last one. These
splits join the cut points before conjunctions are searched: in boosting, and in lists.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
from numpy.typing import NDArray

from jaxrules.data.table import Table
from jaxrules.ensembles.noise import curvature
from jaxrules.learning.training import TrainingData
from jaxrules.losses import Loss, best_constant, derivatives, logistic, poisson
from jaxrules.solvers.rule_search import CorrectiveDecrease, SumOverClasses
from jaxrules.solvers.rule_search.thresholds import SortedColumn, Split, best_threshold
from jaxrules.tools.runs import checkpoint

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Columns = Mapping[int, SortedColumn]
"""Numeric columns, sorted, by their position in the table."""

MOST_ROWS = 20_000
"""The most rows on which learners choose splits."""
_TREES, _STEP, _WORTH_A_SPLIT = 15, 0.5, 3.0
"""The number of trees, their learning rate, and the least gain of a split in log-likelihood."""
_LONGEST_STEP = 4.0
"""Of logarithms of means, in a tree: e^4 is 55. A longer step may leave the numbers."""
_RIDGE = 4.0
"""The ridge, in units of the mean curvature of a row, if none is given: boosting's least."""


def sorted_columns(table: Table, without: Container[int] = ()) -> dict[int, SortedColumn]:
    """The numeric columns, `without` some; `checkpoint` may interrupt it."""
    return {
        f: SortedColumn.of(table.columns[f], table.ascending(f))
        for f, feature in enumerate(table.schema.features)
        if feature.is_numeric and f not in without
    }


def dispersion(loss: Loss, g: Floats, h: Floats, weights: Floats) -> float:
    """By how much the sum of the losses falls if the log-likelihood rises by one: 1 for a negative
    log-likelihood, twice the variance for squares; in general Pearson's estimate.

    Args:
        g, h: weighted derivatives, (rows,) or (outputs, rows).
    """
    if loss in (logistic, poisson):
        return 1.0
    # g and h contain the weights: sum w g_i^2 / sum w h_i. For squares, 4 sum w r^2 / 2 sum w.
    return float(np.sum(g**2 / weights) / np.sum(h))


def split_points(data: TrainingData, columns: Columns, ridge: float | None = None) -> list[Split]:
    """The splits of a few boosted trees, at the root and on both sides of its split, once each;
    `checkpoint` may interrupt it.

    Args:
        columns: of the rows of `data`.
        ridge: on the constants of the leaves; None for the least default of boosting.
    """
    loss, weights, y = data.loss, data.weights, data.outputs
    if ridge is None:
        constant = best_constant(data.row_loss, data.target, weights)
        ridge = _RIDGE * curvature(data.row_loss, data.target, weights, constant)
    scores = np.stack([np.full(len(one), best_constant(loss, one, weights)) for one in y])
    found: dict[tuple[int, float], Split] = {}
    for _ in range(_TREES):
        both = [derivatives(loss, *one, majorant=True) for one in zip(y, scores, strict=True)]
        g, h = (weights * np.stack(part) for part in zip(*both, strict=True))
        # Twice, as the value of a split is G^2 / (ridge + H - B^2), twice the decrease of the loss.
        least = 2 * _WORTH_A_SPLIT * dispersion(loss, g, h, weights)
        leaves: list[Bools] = [np.ones(len(weights), bool)]
        splits: list[Split] = []
        for _ in range(3):  # the root, then both of its sides
            checkpoint()
            leaf = leaves.pop(0)
            split = _split_of(leaf, columns, g, h, ridge, least)
            if split is None:
                # To the end of the queue: the next round takes the other side of the root.
                leaves.append(leaf)
                if not splits:
                    break
                continue
            below = columns[split.column].below(split)
            leaves += [leaf & below, leaf & ~below]
            splits.append(split)
        if not splits:
            break
        found |= {(split.column, split.low): split for split in splits}
        for leaf in leaves:
            # The Newton step (2.2) of a leaf for every output, shortened by the learning rate.
            step = -g[:, leaf].sum(axis=1) / (ridge + h[:, leaf].sum(axis=1))
            if loss.link == "log":  # rare counts, of which a leaf may have all
                step = np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
            scores[:, leaf] += _STEP * step[:, None]
    return list(found.values())


def _split_of(
    leaf: Bools, columns: Columns, g: Floats, h: Floats, ridge: float, least: float
) -> Split | None:
    """The split of a leaf that decreases the loss most, its constant refitted, if its value
    exceeds the least one.
    """
    parts, terms, nothing = [], [], (np.zeros((len(leaf), 0)), np.zeros(0))
    for gradient, curve in zip(g * leaf, h * leaf, strict=True):
        # The leaf's constant is refitted with the split: g without its part along h sums to 0, and
        # the last term has B^2 = (sum of h on a side)^2 / (sum of h), what the constant takes over
        # of H.
        whole = max(float(curve.sum()), float(np.finfo(np.float64).tiny))
        gradient = gradient - curve * (gradient.sum() / whole)
        parts.append(CorrectiveDecrease(gradient, curve, ridge, *nothing))
        terms += [gradient, curve, curve / np.sqrt(whole)]
    # Both sides are new leaves, so one side of each threshold is enough to try.
    tried = {f: (column, (True, False)) for f, column in columns.items()}
    return best_threshold(tried, SumOverClasses(tuple(parts)), np.stack(terms), least)
