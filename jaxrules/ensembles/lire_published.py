"""The search of the LIRE paper as its authors' program runs it, in NumPy: the reference for our own.

Algorithm 1 of Kanamori (2023) with what the published program (kelicht/lire) adds to the paper:

- rules enter as -1 / +1, so that a weight moves all rows (``encoding="binary"`` is Theorem 1 to the letter);
- the intercept is a column of ones, penalised like a rule of coverage 1;
- the start is the L1-penalised logistic regression of liblinear with C = 1 / (gamma N);
- a deletion is judged with the other weights fixed; candidates come in ascending order, and the first
  strict improvement is taken; nothing is ever added, so that the support shrinks or swaps;
- the weights are then refitted cyclically, at most ten sweeps, until a sweep gains less than 1e-4.

It keeps every row and every rule, equal ones included. `jaxrules.lire.fit` finds lower objectives faster.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SHARE_CLIP = 1e-10
_REFIT_SWEEPS = 10
_REFIT_TOLERANCE = 1e-4


@dataclass(eq=False)
class PublishedSearch:
    """State of the search.

    Attributes:
        columns: encoded rules, shape (1 + rules, rows); the first is the intercept's column of ones.
        target: -1 or +1, shape (rows,).
        sample_weight: sums to 1, shape (rows,).
        coverage: share of rows that each column covers, shape (1 + rules,); 1 for the intercept.
        gamma, lam: global and local penalty.
        weights: shape (1 + rules,).
    """

    columns: Floats
    target: Floats
    sample_weight: Floats
    coverage: Floats
    gamma: float
    lam: float
    weights: Floats

    def __post_init__(self) -> None:
        self.row_loss = self.sample_weight * np.exp(-self.target * (self.weights @ self.columns))

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
        """One iteration of Algorithm 1; whether the support changed."""
        before = self.support
        if not self._reoptimise_or_delete(before):
            self._replace(before, stopped)
        changed = not np.array_equal(before, self.support)
        if changed:
            self._refit()
        return changed

    def _reoptimise_or_delete(self, support: NDArray[np.int64]) -> bool:
        """Step 1; whether a rule was deleted."""
        for m in support:
            self._set_weight(m, 0.0)
            others = self.support
            increase = self.gamma + self.lam * (self.coverage[m] - self.local_ratio(others)) / (1 + len(others))
            helped, harmed = self._split(m)
            weight, decrease = _best_weight(helped, harmed)
            if decrease <= increase:
                return True
            self._set_weight(m, float(weight))
        return False

    def _replace(self, support: NDArray[np.int64], stopped: Callable[[], bool]) -> None:
        """Step 2: every rule of the support, once, by the first outside rule that improves G."""
        for m in support:
            if stopped():
                return
            current, weight = self.objective(), self.weights[m]
            self._set_weight(m, 0.0)
            helped, harmed = self._split_all()
            best, decrease = _best_weight(helped, harmed)
            others = self.support
            total = self.coverage[others].sum() + self.coverage
            replaced = self.row_loss.sum() - decrease + self.gamma * len(support)
            replaced += self.lam * total / len(support)
            better = np.flatnonzero((replaced < current) & (self.weights == 0) & (best != 0))
            better = better[better != m]
            if len(better):
                self._set_weight(better[0], float(best[better[0]]))
            else:
                self._set_weight(m, weight)

    def _refit(self) -> None:
        """Step 3: cyclic coordinate descent on the loss over the support."""
        for _ in range(_REFIT_SWEEPS):
            before = self.row_loss.sum()
            for m in self.support:
                self._set_weight(m, 0.0)
                weight, _ = _best_weight(*self._split(m))
                self._set_weight(m, float(weight))
            if before - self.row_loss.sum() < _REFIT_TOLERANCE:
                return

    def _set_weight(self, m: int | np.int64, weight: float) -> None:
        change = weight - self.weights[m]
        if change:
            self.row_loss = self.row_loss * np.exp(-change * self.target * self.columns[m])
            self.weights[m] = weight

    def _split(self, m: int | np.int64) -> tuple[float, float]:
        """Loss on the rows that column m, with a positive weight, helps and harms."""
        signs = self.target * self.columns[m]
        return float(self.row_loss @ (signs > 0)), float(self.row_loss @ (signs < 0))

    def _split_all(self) -> tuple[Floats, Floats]:
        """`_split` for all columns: (sum |z| w +- sum z y w) / 2."""
        pull = self.columns @ (self.target * self.row_loss)
        moved = np.full(len(pull), self.row_loss.sum()) if self._signed else self.columns @ self.row_loss
        return (moved + pull) / 2, (moved - pull) / 2

    @property
    def _signed(self) -> bool:
        return bool((self.columns[:, 0] != 0).all())


def _best_weight(helped: Floats | float, harmed: Floats | float) -> tuple[Floats, Floats]:
    """Theorem 1: the weight 1/2 ln((1 - eps-) / eps-) and how much the loss falls."""
    total = np.maximum(np.asarray(helped) + harmed, 0.0)
    share = np.clip(harmed / np.where(total > 0, total, 1.0), _SHARE_CLIP, 1 - _SHARE_CLIP)
    return 0.5 * np.log((1 - share) / share), total * (1 - 2 * np.sqrt(share * (1 - share)))


def encode(satisfied: NDArray[np.bool_], encoding: Literal["signed", "binary"]) -> Floats:
    """The column of ones and the encoded rules, shape (1 + rules, rows)."""
    columns = np.ones((1 + satisfied.shape[1], satisfied.shape[0]))
    columns[1:] = satisfied.T
    if encoding == "signed":
        columns[1:] = 2 * columns[1:] - 1
    return columns


def rulefit_start(columns: Floats, target: Floats, sample_weight: Floats, gamma: float, seed: int) -> Floats:
    """Weights of the L1-penalised logistic regression, halved: its score is the log-odds, ours half of it.

    Args:
        columns, target, sample_weight: as in `PublishedSearch`.
        gamma: the global penalty; liblinear's C is 1 / (gamma N). Without a penalty C is 1e6.
        seed: of liblinear's coordinate order.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=1 / gamma if gamma else 1e6, fit_intercept=False, max_iter=100,
        random_state=seed,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 100 iterations, converged or not: as published
        model.fit(columns.T, target, sample_weight=sample_weight)
    return np.asarray(model.coef_[0] / 2, np.float64)
