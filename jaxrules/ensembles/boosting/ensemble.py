"""The rules so far, with their corrective weights.

**Several classes** are one problem, in which every rule has a weight per class. With Y the classes
as 0/1 columns, Z the rules on the rows, b one intercept and w_m the weights of rule m, each with an
entry per class, the regularised risk is the mean of the softmax loss

    -log p_iy,   p_i = softmax(b + sum_m z_im w_m),

plus l2_penalty / n sum_m |w_m|^2. With two classes this is the problem of `jaxrules.boosting` (2.1)
for the weights v = 2 w_2 = -2 w_1. In the usual form, ridge / (2 n) |w|^2, the ridge is 2
l2_penalty.

A stage adds the rule q that decreases a quadratic model of the risk most, per unit of complexity,
if all weights are refitted. The Hessian couples the classes; the model keeps only its diagonal
blocks. For class k with G_k = P_k - Y_k and h_k = K / (K - 1) p_k (1 - p_k), which for two classes
sum to twice the binary curvature,

    sum_k (sum G_k)^2 / (2 n (2 l2_penalty + sum h_k - c_k' M_k^-1 c_k))

where the inner sums run over the rows of q, and c_k and M_k are those of
`jaxrules.solvers.rule_search.CorrectiveDecrease` for h_k; `SumOverClasses` adds the classes. Rules
of at most two conditions are searched exhaustively by histograms of all classes, rules of three by
such a search within the rows of each proposition in turn. The bound of longer rules, the sum of the
best prefixes of the classes, is valid but often loose.

The refit of all weights and b is convex: L-BFGS under Boehning's bound on the Hessian (Böhning,
"Multinomial logistic regression algorithm", Annals of the Institute of Statistical Mathematics
1992).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax as probabilities

from jaxrules.ensembles.boosting.linear_terms import UNITS, LinearColumns, LinearColumnTerm
from jaxrules.ensembles.boosting.options import BoostingOptions
from jaxrules.ensembles.candidates import Candidates
from jaxrules.ensembles.noise import ridges
from jaxrules.ensembles.size import negative_log_likelihood
from jaxrules.learning.options import ONE_VS_REST
from jaxrules.learning.training import TrainingData
from jaxrules.losses import best_constant, best_shift, derivatives, softmax, uncoupled
from jaxrules.models.rule_models import LinearTerms
from jaxrules.rules.rows import check_memory
from jaxrules.solvers.linear.refit import refit_outputs

Floats = NDArray[np.float64]
NOTHING_LEFT = 1e-14
"""By (2.3), a rule must reduce the risk by more than this share; less is rounding."""
SMALLEST_CURVATURE = 1e-8
"""Without a ridge, curvatures are raised to this share of the largest one, so that a stage's
objective stays finite.
"""
_COPIES = 4
"""The number of copies of the data of a search of several classes in memory at the same time."""


class EnsembleStep(NamedTuple):
    """An ensemble and its regularised risk; weights (rules, outputs), intercept (outputs,), and
    the linear terms, if any.
    """

    rules: tuple[tuple[int, ...], ...]
    weights: Floats
    intercept: Floats
    risk: float
    linear: LinearTerms | None = None


class BoostedEnsemble:
    """The rules so far: their weights, the scores of the training rows, and the
    derivatives of the loss there.

    Attributes:
        y, scores: (rows,), or (rows, classes) for classes fitted together.
        weights, coefficients: of the rules and of the linear terms, (rules, outputs) and (terms,
            outputs).
        intercept: (outputs,).
        resting: for how many more sweeps a condition is left alone, and for how many it was when it
            could not be improved last; see `Combinations.swept`.
    """

    def __init__(
        self,
        data: TrainingData,
        candidates: Candidates,
        options: BoostingOptions,
        columns: LinearColumns | None = None,
    ) -> None:
        self.loss, self.y, self.sample_weight = data.row_loss, data.target, data.weights
        if self.loss == softmax:
            check_memory(
                self.y.size, options.most_rules + 3, 8.0 * _COPIES, what="rules",
                remedy=f"lower max_rules, or {ONE_VS_REST}",
            )  # fmt: skip
        self.l2_penalty: float = 0.0 if options.l2_penalty is None else options.l2_penalty
        self.corrective, self.has_intercept = options.corrective, options.intercept
        self.total_weight = float(self.sample_weight.sum())
        outputs = self.y.shape[1] if self.y.ndim > 1 else 1
        self.intercept: Floats = np.zeros(outputs)
        if self.has_intercept:
            constant = best_constant(self.loss, self.y, self.sample_weight)
            self.intercept = self._centred(np.atleast_1d(constant))
        self.candidates, self.output = candidates, data.output
        self.sides, self.n_searched = candidates.sides(data.output), candidates.n_searched
        self.by_nonzeros = options.max_nonzeros > 1
        # A rule may have a weight of a sign only if each of its propositions allows that sign. An
        # expert's rule that may have none for this output is left out.
        self.rules = [
            rule for rule in candidates.first if self.signs_of[list(rule)].all(axis=0).any()
        ]
        self.extents: list[NDArray[np.bool_]] = [candidates.selected(rule) for rule in self.rules]
        self.weights = np.zeros((len(self.rules), outputs))
        self.n_first = len(self.rules)
        self.columns = columns
        self.terms: list[int] = []  # linear terms: places among the columns
        self.coefficients = np.zeros((0, outputs))
        self.scores = np.zeros(self.y.shape) + self.intercept
        self.gain = 0.0  # the predicted gain of the last rule, (2.3)
        self.resting: dict[int, tuple[int, int]] = {}
        self._derivatives: tuple[Floats, Floats, Floats] | None = (
            None  # the scores they belong to, g, h
        )
        if self.rules:
            self._refit()

    def _centred(self, intercept: Floats) -> Floats:
        """Of classes together, the intercept with the mean 0: a common constant changes no
        probability.
        """
        return intercept - intercept.mean() if self.loss == softmax else intercept

    @property
    def ridge(self) -> float:
        """The ridge on a weight."""
        return ridges(self.loss) * self.l2_penalty

    @property
    def signs_of(self) -> NDArray[np.bool_]:
        """The signs that weights may have, (propositions, 2); see `Candidates`."""
        return self.candidates.signs[self.output]

    @property
    def using(self) -> tuple[NDArray[np.bool_], ...]:
        """Which propositions use each required column."""
        return self.candidates.using

    @property
    def any_sign(self) -> bool:
        """Whether all weights may have any sign."""
        return bool(self.signs_of.all())

    @property
    def signs(self) -> NDArray[np.int_]:
        """The required signs of the weights, 0 for any, (rules,)."""
        if self.any_sign:
            return np.zeros(len(self.rules), int)
        either = np.array(
            [self.signs_of[list(rule)].all(axis=0) for rule in self.rules], int
        ).reshape(-1, 2)
        return either[:, 1] - either[:, 0]

    def unused(self) -> list[NDArray[np.bool_]]:
        """For each required column that rules may use but none uses: the propositions on it."""
        return self.candidates.unused(self.rules, self.sides)

    def derivatives(self) -> tuple[Floats, Floats]:
        """Weighted gradient and curvature per row, or per row and class; with l2_penalty = 0, the
        curvature is bounded away from 0.
        """
        # Every change of the scores makes a new array, so that identity tells whether these belong
        # to them.
        if self._derivatives is not None and self._derivatives[0] is self.scores:
            return self._derivatives[1:]
        if self.loss == softmax:
            p = probabilities(self.scores, axis=1)
            # G_k = P_k - Y_k with the target -1 or 1; h_k as in the module's docstring
            g, h = p - (1.0 + self.y) / 2.0, uncoupled(p, p.shape[1])
        else:
            # The curvature of the majorant, where a loss has one: far from its kink a loss has
            # almost none of its own, and the Newton step (2.2) would be far too long.
            g, h = derivatives(self.loss, self.y, self.scores, majorant=True)
        if self.l2_penalty == 0.0:
            largest = float(h.max())
            if largest == 0.0:
                raise ValueError(
                    "l2_penalty must be positive, because the loss has zero curvature at every row"
                )
            h = np.maximum(h, SMALLEST_CURVATURE * largest)
        weight = self.sample_weight[:, None] if self.y.ndim > 1 else self.sample_weight
        self._derivatives = (self.scores, weight * g, weight * h)
        return self._derivatives[1:]

    def span(self) -> NDArray[np.bool_] | Floats:
        """The extents of the rules, and of the intercept: bool (rows, rules); with linear terms
        also their columns, as numbers.

        A rule whose required sign holds its weight at 0 is left out: small changes of the other
        weights do not move it.
        """
        everything = [np.ones(len(self.y), bool)] if self.has_intercept else []
        held = (self.signs != 0) & ~self.weights.any(axis=1)
        columns = everything + [
            extent for extent, absent in zip(self.extents, held, strict=True) if not absent
        ]
        rows = np.stack(columns, axis=1) if columns else np.zeros((len(self.y), 0), bool)
        moving = [t for t, b in zip(self.terms, self.coefficients, strict=True) if b.any()]
        return (
            rows
            if self.columns is None or not moving
            else np.column_stack([rows, self.columns.values[:, moving]])
        )

    def add_term(self, term: LinearColumnTerm) -> float | tuple[float, ...]:
        """Append a linear term and refit all weights; returns its coefficient, or those of the
        classes, for the column divided by its scale.
        """
        # A term has no step like (2.2): its gain is the decrease of the risk by the refit itself.
        before = self.step().risk
        self.terms = [*self.terms, term.place]
        self.coefficients = np.append(self.coefficients, np.zeros((1, len(self.intercept))), axis=0)
        self._refit()
        self.gain = before - self.step().risk
        return self._of_outputs(self.coefficients[-1])

    def add(self, rule: tuple[int, ...], rows: NDArray[np.bool_]) -> float | tuple[float, ...]:
        """Append a rule with the weight (2.2), and refit all weights if corrective; returns the
        rule's weight, or those of the classes.

        (2.2) is a Newton step, which may raise the regularised risk (2.1) if the curvature of the
        loss is unbounded; the rule then gets its best weight instead.
        """
        g, h = (np.atleast_1d(one[rows].sum(axis=0)) for one in self.derivatives())
        # w = -sum g / (ridge + sum h), (2.2), for each class. `whole` is 0 only without a ridge and
        # for a rule that holds for no row; its weight is 0.
        whole = self.ridge + h
        weight = np.divide(-g, whole, out=np.zeros_like(g), where=whole > 0)
        # (2.3): with w from (2.2), (sum g)^2 / (2n (ridge + sum h)) = w^2 (ridge + sum h) / 2n.
        self.gain = 0.5 * float(weight**2 @ whole) / self.total_weight
        self.rules, self.extents = [*self.rules, rule], [*self.extents, rows]
        weight = self._centred(weight) if self.loss == softmax else self._allowed(weight, rows)
        self.weights = np.append(self.weights, weight[None], axis=0)
        # The refit starts from (2.2). A rule of weight 0 moves no score: nothing is to be refitted.
        if self.corrective and weight.any():
            self._refit()
        else:
            self.scores = self.scores + np.multiply.outer(rows, weight).reshape(self.y.shape)
        return self._of_outputs(self.weights[-1])

    def _allowed(self, weight: Floats, rows: NDArray[np.bool_]) -> Floats:
        """The weight of the last rule, one output: a better one if it raises the risk, and 0
        against the required sign.
        """
        # Written as `not <=`, because a step so long that the loss overflows gives NaN: that is a
        # rise.
        if not self._rise(float(weight[0]), rows) <= 0.0:
            covered = (self.y[rows], self.scores[rows], self.sample_weight[rows])
            weight = np.array([best_shift(self.loss, *covered, self.l2_penalty)])
        if weight[0] * self.signs[-1] < 0:
            self.gain, weight = 0.0, np.zeros(1)
        return weight

    def _of_outputs(self, weights: Floats) -> float | tuple[float, ...]:
        """As a stage reports them: a number for one output."""
        return tuple(weights.tolist()) if self.loss == softmax else float(weights[0])

    def shifted(self) -> bool:
        """Move the intercept to its best value, in the place of a rule that holds for every row.
        False if it is there already, as after a refit of classes together.
        """
        if self.loss == softmax:
            return False
        before, risk = (self.intercept, self.scores), self.step().risk
        change = best_shift(self.loss, self.y, self.scores, self.sample_weight)
        self.intercept, self.scores = self.intercept + change, self.scores + change
        if self.step().risk < risk - NOTHING_LEFT * abs(risk):
            return True
        self.intercept, self.scores = before
        return False

    def _refit(self) -> None:
        """Refit all weights at once: minimise (2.1) over them."""
        features, n = self.features(self.extents, self.terms), len(self.rules)
        start = np.concatenate([self.weights, self.coefficients])
        weights, self.intercept = self.best(features, start, self.intercept)
        self.weights, self.coefficients = weights[:n], weights[n:]
        self.scores = (self.intercept + features @ weights).reshape(self.y.shape)

    def features(
        self, extents: Sequence[NDArray[np.bool_]], terms: Sequence[int]
    ) -> NDArray[np.bool_] | Floats:
        """Rules as columns, and linear terms, (rows, rules + terms)."""
        rules = np.zeros((len(self.y), len(extents)), bool)
        for r, rows in enumerate(extents):
            rules[:, r] = rows
        if self.columns is None or not terms:
            return rules
        return np.column_stack([rules, self.columns.values[:, terms]])

    def best(
        self,
        features: NDArray[np.bool_] | Floats,
        weights: Floats,
        intercept: Floats,
        free: NDArray[np.bool_] | None = None,
    ) -> tuple[Floats, Floats]:
        """The best weights of columns and the intercept, from a start; only those that are `free`
        move, if given.
        """
        signs = None
        if self.loss != softmax:  # whose weights may have any
            signs = self.signs
            if self.columns is not None:
                signs = np.append(signs, self.columns.sides[self.terms])
            signs = signs[:, None]
        weights, intercept = refit_outputs(
            self.loss, self.y.reshape(len(self.y), -1), features, l2_penalty=self.ridge,
            sample_weight=self.sample_weight, start=(weights, intercept),
            intercept=self.has_intercept, free=free, signs=signs,
        )  # fmt: skip
        return weights, self._centred(intercept)

    def units(self, rule: tuple[int, ...]) -> int:
        """The complexity of a rule: 1 plus 1 per condition; with directions, 1 plus (1 + nonzeros)
        per condition.
        """
        if not self.by_nonzeros:
            return 1 + len(rule)
        pool = self.candidates.pool
        # Features beyond those of the table are directions. A condition on one column is 1 + 1
        # units, and each further column of a direction adds one.
        on = pool.feature[list(rule)] - len(pool.schema.features)
        return 1 + 2 * len(rule) + int((pool.directions.nonzeros[on[on >= 0]] - 1).sum())

    def replaced(self, r: int, others: Sequence[tuple[int, ...]]) -> BoostedEnsemble:
        """A copy with other rules in the place of rule r, each with its weight; not refitted."""
        ensemble = copy.copy(self)
        ensemble.rules = [*self.rules[:r], *others, *self.rules[r + 1 :]]
        ensemble.extents = [
            *self.extents[:r],
            *map(self.candidates.selected, others),
            *self.extents[r + 1 :],
        ]
        ensemble.weights = np.repeat(
            self.weights, np.where(np.arange(len(self.rules)) == r, len(others), 1), axis=0
        )
        return ensemble

    def under(self, l2_penalty: float) -> BoostedEnsemble:
        """A copy with another ridge; not refitted."""
        ensemble = copy.copy(self)
        ensemble.l2_penalty = l2_penalty
        return ensemble

    def refitted(self) -> BoostedEnsemble:
        """Itself, with all weights refitted."""
        self._refit()
        return self

    def eliminated(self, allowed: float, stopped: Callable[[], bool]) -> BoostedEnsemble:
        """A copy without the rules and conditions that reduce the risk by less than `allowed` per
        unit of complexity.

        Backward elimination: the least useful is removed first, and all weights are refitted.
        """
        # Each removal is judged by its own rise, against the ensemble before it: `allowed` is no
        # budget for all of them together.
        kept, risk = self, self.step().risk
        while True:
            rises: list[tuple[float, BoostedEnsemble]] = []
            for simpler, units in kept._simpler():
                if stopped():
                    return kept
                rises.append(((simpler.step().risk - risk) / units, simpler))
            rise, cheapest = min(rises, key=lambda entry: entry[0], default=(math.inf, kept))
            if rise >= allowed:
                return kept
            kept, risk = cheapest, cheapest.step().risk

    def _simpler(self) -> Iterator[tuple[BoostedEnsemble, int]]:
        """Every ensemble with one rule, condition or linear term fewer, and the decrease in
        complexity.
        """
        # A required column that some rule uses must not lose its last one.
        missing = len(self.unused())
        for k in range(len(self.terms)):
            ensemble = copy.copy(self)
            ensemble.terms = [*self.terms[:k], *self.terms[k + 1 :]]
            ensemble.coefficients = np.delete(self.coefficients, k, axis=0)
            yield ensemble.refitted(), UNITS
        for r, rule in enumerate(self.rules[self.n_first :], start=self.n_first):
            shorter = (
                [(*rule[:k], *rule[k + 1 :]) for k in range(len(rule))] if len(rule) > 1 else []
            )
            for other in ([], *([one] for one in shorter)):
                if len(self.rules) + len(self.terms) > 1 or other:
                    ensemble = self.replaced(r, other)
                    if len(ensemble.unused()) > missing:
                        continue
                    fewer = self.units(rule) - sum(map(self.units, other))
                    yield ensemble.refitted(), fewer

    def _rise(self, weight: float, rows: NDArray[np.bool_]) -> float:
        """The change of the regularised risk (2.1) by a new rule, times the total weight, less an
        allowance for rounding.
        """
        y, scores = self.y[rows], self.scores[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            before, after = (
                np.asarray(self.loss.value(y, score)) for score in (scores, scores + weight)
            )
            rise = self.sample_weight[rows] @ (after - before) + self.l2_penalty * weight**2 / 2
        return float(rise) - 1e-12 * float(self.sample_weight[rows] @ np.abs(before))

    def negative_log_likelihood(self) -> float:
        """The sum of the losses; for squares, with the variance estimated."""
        return negative_log_likelihood(self.loss, self.y, self.scores, self.sample_weight)

    def step(self) -> EnsembleStep:
        """The current ensemble and risk."""
        kept = [r for r in range(len(self.rules)) if self._counts(r)]
        weights = np.concatenate([self.weights, self.coefficients])
        step = self.reported(self.rules, self.terms, weights, self.intercept, self.scores)
        rules = tuple(self.rules[r] for r in kept)
        return step._replace(rules=rules, weights=self.weights[kept])

    def reported(
        self,
        rules: Sequence[tuple[int, ...]],
        terms: Sequence[int],
        weights: Floats,
        intercept: Floats,
        scores: Floats,
    ) -> EnsembleStep:
        """Rules and linear terms with these weights, and their risk at these scores."""
        n, linear = len(rules), None
        penalty = self.ridge / (2.0 * self.total_weight) * float((weights**2).sum())
        if self.columns is not None:
            linear, shift = self.columns.weighed(terms, weights[n:])
            intercept = intercept + shift
        risk = self.mean_loss(scores) + penalty
        return EnsembleStep(tuple(rules), weights[:n], intercept, risk, linear)

    def mean_loss(self, scores: Floats) -> float:
        """Without the ridge."""
        losses = np.asarray(self.loss.value(self.y, scores))
        return float(self.sample_weight @ losses) / self.total_weight

    def _counts(self, r: int) -> bool:
        """Whether the model keeps a rule: not if its required sign made its weight 0, unless a
        constraint requires the rule.
        """
        wanted = r < self.n_first or any(
            speaking[list(self.rules[r])].any() for speaking in self.using
        )
        return wanted or bool(self.weights[r].any()) or self.any_sign or self.signs[r] == 0


def repeated(rows: NDArray[np.bool_], extents: Sequence[NDArray[np.bool_]]) -> bool:
    """Whether these rows, or all others, are those of an earlier rule."""
    # The XOR of two sets is constant if they are equal (False) or complements (True).
    return any(((rows ^ earlier) == (rows[0] ^ earlier[0])).all() for earlier in extents)
