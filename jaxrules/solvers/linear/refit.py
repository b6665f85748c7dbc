"""Fully corrective refit: all weights of a rule ensemble at once, for any convex loss of the score.

    minimise  sum_i s_i l(y_i, f_i) / sum_i s_i + l2_penalty / (2 sum_i s_i) sum_j w_j^2,
    f = b + Q w

by Newton's method (`jaxrules.solvers.linear.newton`), for tens of rules: the Hessian is dense and
small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.losses import Loss, merge_rows, softmax
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.linear.newton import ends_of, newton_on_host
from jaxrules.tools.bits import distinct, pack

Floats = NDArray[np.float64]
_MANY_ROWS = 1000
"""Above this many rows, equal ones are merged."""


def refit_weights(
    loss: Loss,
    y: Floats,
    features: NDArray[np.bool_] | Floats,
    *,
    l2_penalty: float,
    intercept: bool,
    sample_weight: Floats,
    start: tuple[Floats, float],
    offset: Floats | float = 0.0,
    signs: NDArray[np.int_] | None = None,
    max_steps: int = 100,
) -> tuple[Floats, float]:
    """The best weights and intercept (0 and fixed if `intercept` is False), from a start.

    Args:
        loss: convex in the score.
        y: float64 (rows,), in the loss's coding.
        features: (rows, rules), e.g. 0/1 for rules.
        l2_penalty: >= 0; the intercept is not penalised.
        intercept: whether there is one.
        sample_weight: float64 (rows,).
        start: weights (rules,) and the intercept.
        offset: a fixed part of the scores, (rows,).
        signs: 1 for weights that must not be negative, -1 for those that must not be positive, 0
            for others, (rules,); the start must satisfy them.
        max_steps: of Newton's method.

    Raises:
        ValueError: for non-finite derivatives or negative curvature of the loss.
    """
    if len(y) > _MANY_ROWS and features.dtype == bool and loss.mergeable and not np.any(offset):
        # Equal rows have equal scores.
        first, pattern = distinct(pack(features.astype(bool, copy=False)))
        y, sample_weight, _ = merge_rows(loss, y, sample_weight, pattern, len(first))
        features, offset = features[first], 0.0
    columns: Floats = np.ones((features.shape[1] + intercept, len(y)))
    columns[: features.shape[1]] = features.T
    point = np.append(start[0], start[1]) if intercept else np.asarray(start[0], np.float64)
    penalty = np.full(len(point), float(l2_penalty))
    if intercept:
        penalty[-1] = 0.0
    ends = None
    if signs is not None and np.any(signs):
        ends = ends_of(np.append(signs, np.zeros(int(intercept))))
    point, _ = newton_on_host(
        loss, columns, y, sample_weight, penalty, point, offset=offset, ends=ends,
        max_steps=max_steps,
    )  # fmt: skip
    return (point[:-1], float(point[-1])) if intercept else (point, 0.0)


def refit_outputs(
    loss: Loss,
    y: Floats,
    features: NDArray[np.bool_] | Floats,
    *,
    l2_penalty: float,
    sample_weight: Floats,
    start: tuple[Floats, Floats],
    intercept: bool = True,
    offset: Floats | float = 0.0,
    free: NDArray[np.bool_] | None = None,
    signs: NDArray[np.int_] | None = None,
) -> tuple[Floats, Floats]:
    """The best weights (rules, outputs) and intercepts (outputs,) of a model: of each output for
    itself, or of the classes of `softmax` together.

    Args:
        loss, features, l2_penalty, sample_weight: as in `refit_weights`.
        y: (rows, outputs).
        start: weights and intercepts.
        intercept: whether the intercepts move; those of `softmax` do.
        offset: a fixed part of the scores, (rows, outputs); 0 for `softmax`.
        free: which weights move, (rules, outputs); None for all.
        signs: as in `refit_weights`, (rules, outputs).
    """
    if loss == softmax:
        return refit_softmax(
            y, features, l2_penalty=l2_penalty, sample_weight=sample_weight, start=start,
            free=free, signs=signs,
        )  # fmt: skip
    weights, constants = start[0].copy(), np.array(start[1], np.float64)
    offsets = np.broadcast_to(offset, y.shape)
    moves: Any
    for k in range(y.shape[1]):
        fixed, moves = offsets[:, k], slice(None)
        if free is not None:
            moves = free[:, k]
            # What does not move is a fixed part of the scores.
            fixed = fixed + features[:, ~moves] @ weights[~moves, k]
        weights[moves, k], found = refit_weights(
            loss, y[:, k], features[:, moves], l2_penalty=l2_penalty, intercept=intercept,
            sample_weight=sample_weight, start=(weights[moves, k], float(constants[k])),
            offset=fixed if intercept else fixed + constants[k],
            signs=None if signs is None else signs[moves, k],
        )  # fmt: skip
        constants[k] = found if intercept else constants[k]
    return weights, constants


def step_within(hessian: Floats, slope: Floats, ends: Floats) -> Floats:
    """The step d between its ends that minimises slope'd + d'Hd / 2, by bounded least squares: with
    H = R'R it minimises |R d + R'^-1 slope|^2 / 2.
    """
    from scipy.optimize import lsq_linear

    # R = diag(root) V' of the eigenvectors V. Directions without curvature, in which no score
    # changes, are left out: R'^-1 does not exist there.
    values, vectors = np.linalg.eigh(hessian)
    kept = values > 1e-12 * values.max(initial=0.0)
    root = np.sqrt(values[kept])
    matrix, right = root[:, None] * vectors[:, kept].T, -(vectors[:, kept].T @ slope) / root
    found = lsq_linear(matrix, right, ends, method="bvls")
    return np.clip(found.x, *ends)


@one_blas_thread()
def refit_softmax(
    y: Floats,
    features: NDArray[np.bool_] | Floats,
    *,
    l2_penalty: float,
    sample_weight: Floats,
    start: tuple[Floats, Floats],
    free: NDArray[np.bool_] | None = None,
    signs: NDArray[np.int_] | None = None,
    max_steps: int = 1000,
) -> tuple[Floats, Floats]:
    """The best weights of K classes fitted together under `jaxrules.losses.softmax`, by L-BFGS.

    It works in coordinates in which Böhning's bound on the Hessian (1992), 1/2 F'SF + penalty for
    every class, is the identity; if some weights are fixed or bounded, only its diagonal is. F has
    the rules and the intercept as columns, S the row weights.

    Args:
        y: +1 for the row's class, -1 for the others, (rows, K).
        features, l2_penalty, sample_weight: as in `refit_weights`.
        start: weights (rules, K) and intercepts (K,).
        free: which weights move, (rules, K); None for all.
        signs: as in `refit_weights`, (rules, K).
        max_steps: of L-BFGS.
    """
    from scipy.optimize import minimize

    target = (1 + y) / 2
    if len(y) > _MANY_ROWS and features.dtype == bool:  # equal rows have equal scores
        first, pattern = distinct(pack(features.astype(bool, copy=False)))
        merged, sample_weight, _ = merge_rows(softmax, y, sample_weight, pattern, len(first))
        target, features = (1 + merged) / 2, features[first]
    design: Floats = np.column_stack([features, np.ones(len(target))]).astype(np.float64)
    penalty = np.full(design.shape[1], float(l2_penalty))
    penalty[-1] = 0.0
    held = free is not None and not free.all()
    bounded = signs is not None and bool(np.any(signs))
    metric = 0.5 * (design.T * sample_weight) @ design + np.diag(penalty)
    # With fixed or bounded weights the coordinates must remain those of single weights, so that
    # zeros and bounds carry over: hence only the diagonal.
    back = _to_weights(metric, diagonal=held or bounded)
    moves = np.ones((len(penalty), y.shape[1]), bool)
    if free is not None:
        moves[:-1] = free

    def objective(flat: Floats) -> tuple[float, Floats]:
        at = back @ flat.reshape(moves.shape)
        value, gradient, _ = softmax_terms(design, target, sample_weight, penalty, at)
        return value, (back.T @ gradient * moves).ravel()

    begin = np.concatenate([start[0], start[1][None]])
    ends = None
    if bounded and signs is not None:
        ends = np.stack(ends_of(np.append(signs, np.zeros((1, y.shape[1]), int), 0).ravel()), 1)
    # A slope of this size promises a decrease by its square, which is rounding.
    options = {
        "maxiter": max_steps, "maxfun": 2 * max_steps, "maxcor": 20, "ftol": 1e-15,
        "gtol": 1e-9 * float(np.sqrt(sample_weight.sum())),
    }  # fmt: skip
    at = np.linalg.solve(back, begin).ravel()
    found = minimize(objective, at, jac=True, method="L-BFGS-B", bounds=ends, options=options)
    best = np.where(moves, back @ found.x.reshape(moves.shape), begin)
    # After a Newton step of the intercepts, the slopes of each class cancel up to rounding, and a
    # rule and its complement are worth the same.
    value, gradient, p = softmax_terms(design, target, sample_weight, penalty, best)
    hessian = np.diag(sample_weight @ p) - (p.T * sample_weight) @ p
    moved = best.copy()
    moved[-1] -= np.linalg.lstsq(hessian, gradient[-1])[0]
    after, *_ = softmax_terms(design, target, sample_weight, penalty, moved)
    best = moved if after <= value + 1e-12 * abs(value) else best
    return best[:-1], best[-1]


def softmax_terms(
    design: Floats, target: Floats, mass: Floats, ridge: Floats, weights: Floats
) -> tuple[float, Floats, Floats]:
    """The softmax loss with the ridge, its gradient, and the probabilities, (rows, K).

    Args:
        design: (rows, columns).
        target: the shares of the classes, (rows, K).
        mass: the weight of every row, (rows,).
        ridge: of every column, (columns,).
        weights: (columns, K).
    """
    scores = design @ weights
    # The largest score of a row becomes 0: no exponential overflows, and none of the sums is 0.
    scores -= scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    total = odds.sum(axis=1)
    p = odds / total[:, None]
    loss = mass @ (np.log(total) - (target * scores).sum(axis=1))
    gradient = design.T @ (mass[:, None] * (p - target)) + ridge[:, None] * weights
    return float(loss + 0.5 * (ridge[:, None] * weights**2).sum()), gradient, p


def _to_weights(metric: Floats, diagonal: bool) -> Floats:
    """The map to weights from coordinates in which a metric is the identity, or its diagonal
    is 1.
    """
    scale = np.sqrt(np.diag(metric))
    scale[scale == 0] = 1.0  # a rule that holds nowhere, without a ridge
    if diagonal:
        return np.diag(1.0 / scale)
    # With M / (scale scale') = L L', the map T = diag(1 / scale) L'^-1 has T'MT = I.
    relative = metric / scale / scale[:, None]
    relative[np.diag_indices_from(relative)] += 1e-12  # equal rules without a ridge
    return np.asarray(np.linalg.inv(np.linalg.cholesky(relative)).T / scale[:, None])
