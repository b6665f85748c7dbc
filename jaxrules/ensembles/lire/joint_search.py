"""Local search for several classes as one problem: every rule has a weight per class and pays once.

    G = sum_i v_i (log sum_k exp f_ik - f_iy) + gamma |S| + lambda mean_{j in S} p_j
        + sum_{j in S} r_j |b_j|^2 / 2,      f_ik = b_0k + sum_{j in S} b_jk x_ij

with the softmax loss, K weights b_j per column and free intercepts; the rest is as in `search`,
whose moves and starts it shares. With twice the ridge of the binary problem, two classes are that
problem, with b_j = (-v_j / 2, v_j / 2) for its weight v_j.

Moves are ranked by a quadratic model without terms across classes, with the curvature K / (K - 1)
p_k (1 - p_k) for class k. The most promising ones are refitted (`refit.lbfgs`), and those that
improve the objective itself are accepted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax as shares

from jaxrules.ensembles.lire.moves import ONES, Support, rank_joint_moves
from jaxrules.ensembles.lire.problem import Floats, Integers, merge_targets
from jaxrules.ensembles.lire.refit import lbfgs
from jaxrules.ensembles.lire.search import FEW_PATTERNS, Incumbent, Moves, SupportSearch, gain_alone
from jaxrules.losses import uncoupled
from jaxrules.solvers.blas import one_blas_thread

_TRIALS = 16
"""The number of moves refitted after a ranking: a refit costs more than with two classes."""


class JointSearch(SupportSearch):
    """`SupportSearch` for a problem with a target per class; weights have the shape (size,
    classes).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._trials = min(self._trials, _TRIALS)

    def needed(self, columns: Integers, weights: Floats) -> NDArray[np.bool_]:
        """As `SupportSearch.needed`: a column counts if any class has a weight."""
        return super().needed(columns, np.abs(weights).sum(axis=1))

    def gains_alone(self, joining: Integers, margins: Floats) -> Floats:
        """As `SupportSearch.gains_alone`, summed over the classes."""
        slopes, curved = self._derivatives(margins)
        pairs = zip(slopes, curved, strict=True)
        gains = [gain_alone(self.problem, joining, *one, 2 * self.l2_penalty)[0] for one in pairs]
        return np.asarray(np.sum(gains, axis=0))

    @one_blas_thread()
    def refit(
        self,
        columns: Integers,
        weights: Floats,
        goal: float = -np.inf,
        near: Incumbent | None = None,
    ) -> Incumbent:
        """As `SupportSearch.refit`; weights of shape (size,) are zeros to start from."""
        problem, member = self.problem, None
        absent = np.setdiff1d(problem.fixed, columns)
        guess = np.zeros((len(columns) + len(absent), problem.target.shape[1]))
        if weights.ndim > 1:
            guess[: len(columns)] = weights
        columns = np.append(columns, absent)
        price = problem.penalty(columns, self.gamma, self.lam)
        groups = self._groups(columns, near)
        target, mass = problem.target, problem.mass
        if len(mass) > FEW_PATTERNS:
            member = groups.member
            target, mass, _ = merge_targets(problem.loss, target, mass, groups.group, len(member))
        out_of_reach = np.inf if goal == -np.inf else goal - price
        entries, ridge = problem.entries(columns, member), self.ridge[columns]
        weights, loss = lbfgs(entries, target, mass, guess, ridge, out_of_reach)
        needed = self.needed(columns, weights) | (columns == ONES)
        price = problem.penalty(columns[needed], self.gamma, self.lam)
        return Incumbent(columns, weights, loss, loss + price, groups)

    def _rank(self, best: Incumbent) -> Moves:
        assert best.groups is not None
        member, group = best.groups
        margins = (self.problem.entries(best.columns, member) @ best.weights)[group]
        ranked = rank_joint_moves(
            self.data, best.loss, *self._derivatives(margins), self.charges,
            Support(best.columns, best.weights), self.terms, self.problem.encoding,
        )  # fmt: skip
        return self._keeping(best, Moves(*ranked))

    def _derivatives(self, margins: Floats) -> tuple[Floats, Floats]:
        """The downhill slopes and the curvatures of the classes, (classes, patterns) each."""
        problem, p = self.problem, shares(margins, axis=1).T
        downhill = (1.0 + problem.target.T) / 2.0 - p
        return problem.mass * downhill, problem.mass * uncoupled(p, len(p))
