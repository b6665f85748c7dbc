"""The search of the LIRE paper as its authors' program runs it, in NumPy: the reference for our own.

Algorithm 1 of Kanamori (2023) with what the published program (kelicht/lire) adds to the paper:

- rules enter as -1 / +1, so that a weight moves all rows (``encoding="binary"`` is Theorem 1 to the letter);
- the intercept is a column of ones, penalised like a rule of coverage 1;
- the start is the L1-penalised logistic regression of liblinear with C = 1 / (gamma N);
- one move, then a refit: rules of the support are tried in the order of how often they failed before. A rule is
  deleted if that pays with the other weights fixed, else its weight is set to the best, else it is replaced by
  the first outside rule, in ascending order, that is strictly better; nothing is ever added;
- an outside rule is left out by the printed interval of Theorem 1, also where that is wrong (C_m < 0);
- the refit is cyclic: at most ten sweeps, until a sweep changes the loss by less than 1e-4.

It keeps every row and every rule, equal ones included, and looks at the outside rules one by one.
`jaxrules.lire.fit` finds lower objectives faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.support.start import liblinear

Floats = NDArray[np.float64]

_SHARE_CLIP = 1e-10
_REFIT_SWEEPS = 10
_REFIT_TOLERANCE = 1e-4


@dataclass(eq=False)
class PublishedSearch:
    """State of the search.

    Attributes:
        signs: encoded rules times the target (-1 or +1), shape (1 + rules, rows); first the intercept's column of ones.
        sample_weight: sums to 1, shape (rows,).
        coverage: share of rows that each column covers, shape (1 + rules,); 1 for the intercept.
        gamma, lam: global and local penalty.
        weights: shape (1 + rules,).
    """

    signs: Floats
    sample_weight: Floats
    coverage: Floats
    gamma: float
    lam: float
    weights: Floats

    def __post_init__(self) -> None:
        self.row_loss = self.sample_weight * np.exp(-(self.weights @ self.signs))
        self.failures = np.zeros(len(self.weights), np.int64)

    @property
    def support(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.weights)

    def local_ratio(self, support: NDArray[np.int64]) -> float:
        """Omega_L: the mean coverage of the support; 0 when it is empty."""
        return float(self.coverage[support].mean()) if len(support) else 0.0

    def objective(self) -> float:
        """G: mean loss + gamma |supp| + lambda Omega_L."""
        support = self.support
        return float(self.row_loss.sum() + self.gamma * len(support) + self.lam * self.local_ratio(support))

    def iterate(self, stopped: Callable[[], bool]) -> bool:
        """One iteration of Algorithm 1: the first move that improves, and a refit; whether there was one."""
        support = self.support
        for m in support[np.argsort(self.failures[support], kind="stable")].tolist():
            if stopped():
                return False
            if self._delete_or_replace(m, support):
                self.refit()
                return True
            self.failures[m] += 1
        return False

    def add(self) -> bool:
        """Add the column, with its best weight, that lowers the objective most; whether one does.

        No part of the algorithm: what a fit without the time for its start has instead.
        """
        slopes = self.signs @ self.row_loss
        moved = np.array([np.abs(column) @ self.row_loss for column in self.signs])
        sides = np.stack([moved + slopes, moved - slopes], axis=1) / 2
        weights, decreases = np.transpose([_best_weight(helped, harmed) for helped, harmed in sides.tolist()])
        support = self.support
        gains = decreases - self.gamma
        gains -= self.lam * (self.coverage - self.local_ratio(support)) / (len(support) + 1)
        gains[support] = 0.0
        best = int(gains.argmax())
        if gains[best] <= 0:
            return False
        self._set_weight(best, float(weights[best]))
        return True

    def refit(self) -> None:
        """Cyclic coordinate descent on the loss over the support."""
        for _ in range(_REFIT_SWEEPS):
            before = self.row_loss.sum()
            for m in self.support.tolist():
                self._set_weight(m, 0.0)
                weight, _ = _best_weight(*self._split(m))
                self._set_weight(m, weight)
            if abs(before - self.row_loss.sum()) < _REFIT_TOLERANCE:
                return

    def _delete_or_replace(self, m: int, support: NDArray[np.int64]) -> bool:
        """Delete rule m, or replace it, or give it its best weight; whether the support changed."""
        self._set_weight(m, 0.0)
        others = support[support != m]
        local = self.local_ratio(others)
        increase = self.gamma + self.lam * (self.coverage - local) / len(support)
        weight, decrease = _best_weight(*self._split(m))
        if decrease <= increase[m]:
            return True
        for j in np.setdiff1d(np.arange(len(self.weights)), support).tolist():
            helped, harmed = self._split(j)
            if _inside_interval(helped, harmed, float(increase[j])):
                continue
            best, saved = _best_weight(helped, harmed)
            if saved - increase[j] > decrease - increase[m]:
                self._set_weight(j, best)
                return True
        self._set_weight(m, weight)
        return False

    def _set_weight(self, m: int, weight: float) -> None:
        change = weight - self.weights[m]
        if change:
            self.row_loss = self.row_loss * np.exp(-change * self.signs[m])
            self.weights[m] = weight

    def _split(self, m: int) -> tuple[float, float]:
        """Loss on the rows that column m, with a positive weight, helps and harms."""
        moved, slope = float(self.row_loss @ np.abs(self.signs[m])), float(self.row_loss @ self.signs[m])
        return (moved + slope) / 2, (moved - slope) / 2


def _best_weight(helped: float, harmed: float) -> tuple[float, float]:
    """Theorem 1: the weight 1/2 ln((1 - eps-) / eps-) and how much the loss falls."""
    total = helped + harmed
    share = min(max(harmed / total, _SHARE_CLIP), 1 - _SHARE_CLIP) if total > 0 else 0.5
    return 0.5 * math.log((1 - share) / share), total * (1 - 2 * math.sqrt(share * (1 - share)))


def _inside_interval(helped: float, harmed: float, increase: float) -> bool:
    """Whether Theorem 1 as printed leaves the rule out: also where its interval has no real ends (C_m < 0)."""
    total = helped + harmed
    square = increase * (2 * total - increase)
    if total <= 0 or square < 0:
        return True
    return abs(harmed / total - 0.5) <= math.sqrt(square) / (2 * total)


def encode(satisfied: NDArray[np.bool_], encoding: Literal["signed", "binary"]) -> Floats:
    """The column of ones and the encoded rules, shape (1 + rules, rows)."""
    columns = np.ones((1 + satisfied.shape[1], satisfied.shape[0]))
    columns[1:] = satisfied.T
    if encoding == "signed":
        columns[1:] *= 2
        columns[1:] -= 1
    return columns


def rulefit_start(columns: Floats, target: Floats, sample_weight: Floats, gamma: float, seed: int) -> Floats:
    """Weights of the L1-penalised logistic regression, as they are: the log-odds are twice LIRE's score, but no matter.

    Args:
        columns: encoded rules, shape (1 + rules, rows).
        target: -1 or +1, shape (rows,).
        sample_weight: sums to 1, shape (rows,).
        gamma: the global penalty; liblinear's C is 1 / (gamma N). Without a penalty C is 1e6.
        seed: of liblinear's coordinate order.
    """
    return liblinear(
        columns.T, target, sample_weight, 1 / gamma if gamma else 1e6, seed=seed, fit_intercept=False, max_iter=100
    )
