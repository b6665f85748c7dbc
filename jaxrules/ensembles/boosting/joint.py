"""Boosting for several classes as one problem: every rule has a weight per class.

With Y the classes as 0/1 columns, Z the rules on the rows, b one intercept and w_m the weights of
rule m, each with an entry per class, the regularised risk is the mean of the softmax loss

    -log p_iy,   p_i = softmax(b + sum_m z_im w_m),

plus l2_penalty / n sum_m |w_m|^2. With two classes this is the problem of `jaxrules.boosting` (2.1)
for the weights v = 2 w_2 = -2 w_1. In the usual form, ridge / (2 n) |w|^2, the ridge is 2
l2_penalty.

**A stage** adds the rule q that decreases a quadratic model of the risk most, per unit of
complexity, if all weights are refitted. The Hessian couples the classes; the model keeps only its
diagonal blocks. For class k with G_k = P_k - Y_k and h_k = K / (K - 1) p_k (1 - p_k), which for two
classes sum to twice the binary curvature,

    sum_k (sum G_k)^2 / (2 n (2 l2_penalty + sum h_k - c_k' M_k^-1 c_k))

where the inner sums run over the rows of q, and c_k and M_k are those of
`jaxrules.solvers.rule_search.CorrectiveDecrease` for h_k; `SumOverClasses` adds the classes. Rules
of at most two conditions are searched exhaustively by histograms of all classes, rules of three by
such a search within the rows of each proposition in turn. The bound of longer rules, the sum of the
best prefixes of the classes, is valid but often loose.

**The refit** of all weights and b is convex: L-BFGS under Boehning's bound on the Hessian
(Böhning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical
Mathematics 1992).

**Pruning** for readability drops the least useful weights. The cost of w_mk is w_mk^2
qbar (1 - qbar) mean_i p_k (1 - p_k), with qbar the share of the rows of rule m (for a linear term,
the variance of its column): the change of the scores of class k in the metric of the loss. Every
rule keeps its costliest weight; the remaining weights are refitted.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax as shares

from jaxrules.ensembles.boosting.ensemble import SMALLEST_CURVATURE, EnsembleStep
from jaxrules.ensembles.boosting.linear_terms import LinearColumns, LinearColumnTerm
from jaxrules.ensembles.boosting.options import Options
from jaxrules.ensembles.candidates import Candidates
from jaxrules.learning.options import ONE_VS_REST
from jaxrules.learning.training import TrainingData
from jaxrules.losses import softmax
from jaxrules.rules.rows import check_memory
from jaxrules.solvers.linear.refit import refit_softmax
from jaxrules.solvers.rule_search import CorrectiveDecrease, SumOverClasses

Floats = NDArray[np.float64]
_COPIES = 4
"""The number of copies of the data of a search in memory at the same time."""


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


class JointEnsemble:
    """The rules so far with their weights, and the probabilities of the training rows."""

    def __init__(
        self,
        data: TrainingData,
        candidates: Candidates,
        options: Options,
        columns: LinearColumns | None = None,
    ) -> None:
        n, self.n_classes = data.target.shape
        check_memory(
            n * self.n_classes, options.most_rules + 3, 8.0 * _COPIES, what="rules",
            remedy=f"lower max_rules, or {ONE_VS_REST}",
        )  # fmt: skip
        self.signs, self.sample_weight = data.target, data.weights
        self.classes = (1.0 + data.target) / 2.0
        self.ridge = 2.0 * (options.l2_penalty or 0.0)
        self.total_weight = float(self.sample_weight.sum())
        self.candidates, self.output = candidates, data.output
        self.sides, self.n_searched = candidates.sides(data.output), candidates.n_searched
        self.rules = list(candidates.first)
        self.extents = [candidates.space.selected(rule) for rule in self.rules]
        self.n_first = len(self.rules)
        self.weights = np.zeros((self.n_first, self.n_classes))
        self.columns = columns
        self.terms: list[int] = []  # linear terms: places among the columns
        self.coefficients = np.zeros((0, self.n_classes))
        log_shares = np.log(self.sample_weight @ self.classes / self.total_weight)
        self.intercept: Floats = log_shares - log_shares.mean()
        self.scores: Floats = np.tile(self.intercept, (n, 1))
        self.gain = 0.0  # the predicted gain of the last rule
        if self.rules:
            self._refit()

    @property
    def signs_of(self) -> NDArray[np.bool_]:
        """The signs that weights may have, (propositions, 2); see `Candidates`."""
        return self.candidates.signs[self.output]

    def unused(self) -> list[NDArray[np.bool_]]:
        """For each required column that rules may use but none uses: the propositions on it."""
        return self.candidates.unused(self.rules, self.sides)

    def derivatives(self) -> tuple[Floats, Floats]:
        """Weighted gradient and curvature per row and class, (rows, classes)."""
        p = shares(self.scores, axis=1)
        h = self.n_classes / (self.n_classes - 1) * p * (1.0 - p)
        if self.ridge == 0.0:
            h = np.maximum(h, SMALLEST_CURVATURE * float(h.max()))
        weight = self.sample_weight[:, None]
        return weight * (p - self.classes), weight * h

    def objective(self, prices: Mapping[str, Any]) -> SumOverClasses:
        """What the next rule maximises: the decrease of the risk, with penalties on its length."""
        g, h = self.derivatives()
        ridge = self.ridge or float(np.finfo(np.float64).tiny)
        span = np.column_stack([np.ones(len(g), bool), self._features(self.extents, self.terms)])
        penalties = np.array([0.0] + [ridge] * (span.shape[1] - 1))
        g = g / math.sqrt(2.0 * self.total_weight)
        parts = (
            CorrectiveDecrease(*one, ridge, span, penalties) for one in zip(g.T, h.T, strict=True)
        )
        return SumOverClasses(tuple(parts), **prices)

    def add(self, rule: tuple[int, ...], rows: NDArray[np.bool_]) -> tuple[float, ...]:
        """Append a rule and refit all weights; returns the rule's weights."""
        g, h = (one[rows].sum(axis=0) for one in self.derivatives())
        whole = self.ridge + h
        weight = np.divide(-g, whole, out=np.zeros_like(g), where=whole > 0)
        self.gain = 0.5 * float(weight**2 @ whole) / self.total_weight
        self.rules, self.extents = [*self.rules, rule], [*self.extents, rows]
        self.weights = np.concatenate([self.weights, (weight - weight.mean())[None]])
        self._refit()
        return tuple(self.weights[-1].tolist())

    def add_term(self, term: LinearColumnTerm) -> tuple[float, ...]:
        """Append a linear term and refit all weights; returns its coefficients, for the column
        divided by its scale.
        """
        before = self.step().risk
        self.terms = [*self.terms, term.place]
        self.coefficients = np.append(self.coefficients, np.zeros((1, self.n_classes)), axis=0)
        self._refit()
        self.gain = before - self.step().risk
        return tuple(self.coefficients[-1].tolist())

    def replaced(self, r: int, others: Sequence[tuple[int, ...]]) -> JointEnsemble:
        """A copy with other rules in the place of rule r, each with its weights; not refitted."""
        ensemble = copy.copy(self)
        rows = map(self.candidates.selected, others)
        ensemble.rules = [*self.rules[:r], *others, *self.rules[r + 1 :]]
        ensemble.extents = [*self.extents[:r], *rows, *self.extents[r + 1 :]]
        ensemble.weights = np.repeat(
            self.weights, np.where(np.arange(len(self.rules)) == r, len(others), 1), axis=0
        )
        return ensemble

    def under(self, l2_penalty: float) -> JointEnsemble:
        """A copy with another ridge; not refitted."""
        ensemble = copy.copy(self)
        ensemble.ridge = 2.0 * l2_penalty
        return ensemble

    def refitted(self) -> JointEnsemble:
        """Itself, with all weights refitted."""
        self._refit()
        return self

    def shifted(self) -> bool:
        """False: after a refit, no other intercept is better."""
        return False

    def _refit(self) -> None:
        """Refit all weights at once."""
        features, n = self._features(self.extents, self.terms), len(self.rules)
        start = np.concatenate([self.weights, self.coefficients])
        weights, self.intercept = self._refitted(features, start, self.intercept)
        self.weights, self.coefficients = weights[:n], weights[n:]
        self.scores = self.intercept + features @ weights

    def _features(
        self, extents: Sequence[NDArray[np.bool_]], terms: Sequence[int]
    ) -> NDArray[np.bool_] | Floats:
        """The rules as columns, and the linear terms, (rows, rules + terms)."""
        rules = np.array(extents, bool).reshape(-1, len(self.signs)).T
        if self.columns is None or not terms:
            return rules
        return np.column_stack([rules, self.columns.values[:, terms]])

    def _refitted(
        self,
        features: NDArray[np.bool_] | Floats,
        weights: Floats,
        intercept: Floats,
        free: NDArray[np.bool_] | None = None,
    ) -> tuple[Floats, Floats]:
        weights, intercept = refit_softmax(
            self.signs, features, l2_penalty=self.ridge, sample_weight=self.sample_weight,
            start=(weights, intercept), free=free,
        )  # fmt: skip
        return weights, intercept - intercept.mean()

    @property
    def l2_penalty(self) -> float:
        """The ridge as users give it."""
        return self.ridge / 2.0

    def negative_log_likelihood(self) -> float:
        """The sum of the losses."""
        return self.total_weight * self._log_loss(self.scores)

    def step(self) -> EnsembleStep:
        """The current ensemble and risk."""
        weights = np.concatenate([self.weights, self.coefficients])
        return self._step(self.rules, self.terms, weights, self.intercept, self.scores)

    def _step(
        self,
        rules: Sequence[tuple[int, ...]],
        terms: Sequence[int],
        weights: Floats,
        intercept: Floats,
        scores: Floats,
    ) -> EnsembleStep:
        n, linear = len(rules), None
        if self.columns is not None:
            linear, shift = self.columns.weighed(terms, weights[n:])
            intercept = intercept + shift
        return EnsembleStep(
            tuple(rules), weights[:n], intercept, self._risk(weights, scores), linear
        )

    def _risk(self, weights: Floats, scores: Floats) -> float:
        ridge = self.ridge / (2.0 * self.total_weight) * float((weights**2).sum())
        return self._log_loss(scores) + ridge

    def _log_loss(self, scores: Floats) -> float:
        return float(self.sample_weight @ softmax.value(self.signs, scores)) / self.total_weight

    def _error(self, scores: Floats) -> float:
        wrong = scores.argmax(axis=1) != self.classes.argmax(axis=1)
        return float(self.sample_weight @ wrong) / self.total_weight

    def pruned(self, step: EnsembleStep, prune: float | int) -> tuple[EnsembleStep, Pruning]:
        """The ensemble of a step with only this number or share of its weights, and what that
        cost.
        """
        terms: list[int] = []
        start, intercept = step.weights, step.intercept
        if self.columns is not None and step.linear is not None:  # back to the columns of the fit
            terms = self.terms[: len(step.linear.feature)]
            b = np.asarray(step.linear.coefficients)
            start = np.concatenate([start, b * self.columns.factors[terms, None]])
            intercept = intercept + self.columns.centre[terms] @ b
        n = len(start)
        if not n:
            return step, Pruning(0, 0, (step.risk,) * 2, (self._error(self.scores),) * 2)
        features = self._features([self.candidates.selected(rule) for rule in step.rules], terms)
        before = intercept + features @ start
        number = prune if isinstance(prune, int) else round(prune * start.size)
        p = shares(before, axis=1)
        share = self.sample_weight / self.total_weight
        variance = share @ np.square(features - share @ features)
        costs = start**2 * variance[:, None] * (share @ (p * (1.0 - p)))
        costs[np.arange(n), costs.argmax(axis=1)] = np.inf
        kept = np.zeros(costs.size, bool)
        kept[np.argsort(-costs, axis=None, kind="stable")[: max(n, number)]] = True
        free = kept.reshape(costs.shape)
        weights, intercept = self._refitted(features, np.where(free, start, 0.0), intercept, free)
        after = intercept + features @ weights
        cost = Pruning(
            int(np.count_nonzero(weights)), weights.size,
            (self._log_loss(before), self._log_loss(after)),
            (self._error(before), self._error(after)),
        )  # fmt: skip
        return self._step(step.rules, terms, weights, intercept, after), cost
