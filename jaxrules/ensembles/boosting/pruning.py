"""Pruning the weights of classes fitted together, for readability: the least useful ones go.

The cost of w_mk is w_mk^2 qbar (1 - qbar) mean_i p_k (1 - p_k), with qbar the share of the rows of
rule m (for a linear term, the variance of its column): the change of the scores of class k in the
metric of the loss. Every rule keeps its costliest weight; the remaining weights are refitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax as probabilities

from jaxrules.ensembles.boosting.ensemble import BoostedEnsemble, EnsembleStep

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pruning:
    """What pruning the weights of a model cost, on the training rows.

    Attributes:
        kept: the number of weights that are not 0.
        weights: the number of weights before, rules x classes.
        log_loss, error: before and after; the mean loss without the ridge, and the weighted share
            of misclassified rows.
    """

    kept: int
    weights: int
    log_loss: tuple[float, float]
    error: tuple[float, float]


def pruned(
    state: BoostedEnsemble, step: EnsembleStep, prune: float | int
) -> tuple[EnsembleStep, Pruning]:
    """The ensemble of a step with only this number or share of its weights, and what that
    cost.
    """
    terms: list[int] = []
    start, intercept = step.weights, step.intercept
    if state.columns is not None and step.linear is not None:  # back to the columns of the fit
        # The model's b x + a is (b f) z + (a + b c) for the fit's column z = (x - c) / f.
        terms = state.terms[: len(step.linear.feature)]
        b = np.asarray(step.linear.coefficients)
        start = np.concatenate([start, b * state.columns.factors[terms, None]])
        intercept = intercept + state.columns.centre[terms] @ b
    n = len(start)
    if not n:
        return step, Pruning(0, 0, (step.risk,) * 2, (_error(state, state.scores),) * 2)
    features = state.features([state.candidates.selected(rule) for rule in step.rules], terms)
    before = intercept + features @ start
    number = prune if isinstance(prune, int) else round(prune * start.size)
    p = probabilities(before, axis=1)
    share = state.sample_weight / state.total_weight
    variance = share @ np.square(features - share @ features)
    # w_mk^2 qbar (1 - qbar) mean_i p_k (1 - p_k): the variance of a 0/1 column is qbar (1 - qbar).
    costs = start**2 * variance[:, None] * (share @ (p * (1.0 - p)))
    # Every rule keeps its costliest weight, hence `max(n, number)` below.
    costs[np.arange(n), costs.argmax(axis=1)] = np.inf
    kept = np.zeros(costs.size, bool)
    kept[np.argsort(-costs, axis=None, kind="stable")[: max(n, number)]] = True
    free = kept.reshape(costs.shape)
    # Weights that go start at 0 and do not move, so that the others take over what they can.
    weights, intercept = state.best(features, np.where(free, start, 0.0), intercept, free)
    after = intercept + features @ weights
    cost = Pruning(
        int(np.count_nonzero(weights)), weights.size,
        (state.mean_loss(before), state.mean_loss(after)),
        (_error(state, before), _error(state, after)),
    )  # fmt: skip
    return state.reported(step.rules, terms, weights, intercept, after), cost


def _error(state: BoostedEnsemble, scores: Floats) -> float:
    """The weighted share of misclassified rows."""
    wrong = scores.argmax(axis=1) != state.y.argmax(axis=1)
    return float(state.sample_weight @ wrong) / state.total_weight
