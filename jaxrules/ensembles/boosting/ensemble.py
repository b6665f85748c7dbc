"""The rules so far, with the corrective weights of a model of one output."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.boosting.linear_terms import UNITS, LinearColumns, LinearColumnTerm
from jaxrules.ensembles.boosting.options import Options
from jaxrules.ensembles.candidates import Candidates
from jaxrules.learning.training import TrainingData
from jaxrules.losses import best_constant, best_shift, derivatives
from jaxrules.models.rule_models import LinearTerms
from jaxrules.solvers.linear.refit import refit_weights

Floats = NDArray[np.float64]
NOTHING_LEFT = 1e-14
"""By (2.3), a rule must reduce the risk by more than this share; less is rounding."""
SMALLEST_CURVATURE = 1e-8
"""Without a ridge, curvatures are raised to this share of the largest one, so that a stage's
objective stays finite.
"""


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
    """

    def __init__(
        self,
        data: TrainingData,
        candidates: Candidates,
        options: Options,
        columns: LinearColumns | None = None,
    ) -> None:
        self.loss, self.y, self.sample_weight = data.loss, data.target, data.weights
        self.l2_penalty: float = 0.0 if options.l2_penalty is None else options.l2_penalty
        self.corrective, self.has_intercept = options.corrective, options.intercept
        self.total_weight = float(self.sample_weight.sum())
        self.intercept = (
            best_constant(self.loss, self.y, self.sample_weight) if self.has_intercept else 0.0
        )
        self.candidates, self.output = candidates, data.output
        self.sides, self.n_searched = candidates.sides(data.output), candidates.n_searched
        self.by_nonzeros = options.max_nonzeros > 1
        self.rules = [
            rule for rule in candidates.first if self.signs_of[list(rule)].all(axis=0).any()
        ]
        self.extents: list[NDArray[np.bool_]] = [candidates.selected(rule) for rule in self.rules]
        self.weights = [0.0] * len(self.rules)
        self.n_first = len(self.rules)
        self.columns = columns
        self.terms: list[int] = []  # linear terms: places among the columns
        self.coefficients: list[float] = []
        self.scores = np.full(len(self.y), self.intercept)
        self.gain = 0.0  # the predicted gain of the last rule, (2.3)
        self._derivatives: tuple[Floats, Floats, Floats] | None = (
            None  # the scores they belong to, g, h
        )
        if self.rules:
            self._refit()

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
        """Weighted gradient and curvature per row; with l2_penalty = 0, the curvature is bounded
        away from 0.
        """
        if self._derivatives is not None and self._derivatives[0] is self.scores:
            return self._derivatives[1:]
        g, h = derivatives(self.loss, self.y, self.scores, majorant=True)
        if self.l2_penalty == 0.0:
            largest = float(h.max())
            if largest == 0.0:
                raise ValueError(
                    "l2_penalty must be positive, because the loss has zero curvature at every row"
                )
            h = np.maximum(h, SMALLEST_CURVATURE * largest)
        self._derivatives = (self.scores, self.sample_weight * g, self.sample_weight * h)
        return self._derivatives[1:]

    def span(self) -> NDArray[np.bool_] | Floats:
        """The extents of the rules, and of the intercept: bool (rows, rules); with linear terms
        also their columns, as numbers.

        A rule whose required sign holds its weight at 0 is left out: small changes of the other
        weights do not move it.
        """
        everything = [np.ones(len(self.y), bool)] if self.has_intercept else []
        held = (self.signs != 0) & (np.array(self.weights) == 0)
        columns = everything + [
            extent for extent, absent in zip(self.extents, held, strict=True) if not absent
        ]
        rows = np.stack(columns, axis=1) if columns else np.zeros((len(self.y), 0), bool)
        moving = [t for t, b in zip(self.terms, self.coefficients, strict=True) if b]
        return (
            rows
            if self.columns is None or not moving
            else np.column_stack([rows, self.columns.values[:, moving]])
        )

    def add_term(self, term: LinearColumnTerm) -> float:
        """Append a linear term and refit all weights; returns its coefficient, for the column
        divided by its scale.
        """
        before = self.step().risk
        self.terms, self.coefficients = [*self.terms, term.place], [*self.coefficients, 0.0]
        self._refit()
        self.gain = before - self.step().risk
        return self.coefficients[-1]

    def add(self, rule: tuple[int, ...], rows: NDArray[np.bool_]) -> float:
        """Append a rule with the weight (2.2), and refit all weights if corrective; returns the
        rule's weight.

        (2.2) is a Newton step, which may raise the regularised risk (2.1) if the curvature of the
        loss is unbounded; the rule then gets its best weight instead.
        """
        g, h = self.derivatives()
        denominator = self.l2_penalty + float(h[rows].sum())
        weight = -float(g[rows].sum()) / denominator if denominator > 0 else 0.0
        self.gain = 0.5 * weight**2 * denominator / self.total_weight
        if not self._rise(weight, rows) <= 0.0:
            covered = (self.y[rows], self.scores[rows], self.sample_weight[rows])
            weight = best_shift(self.loss, *covered, self.l2_penalty)
        self.rules = [*self.rules, rule]
        if weight * self.signs[-1] < 0:
            weight = self.gain = 0.0
        self.extents = [*self.extents, rows]
        self.weights = [*self.weights, weight]
        self.scores = self.scores + weight * rows
        if self.corrective and weight != 0.0:
            self._refit()
        return self.weights[-1]

    def shifted(self) -> bool:
        """Move the intercept to its best value, in the place of a rule that holds for every row.
        False if it is there already.
        """
        before, risk = (self.intercept, self.scores), self.step().risk
        change = best_shift(self.loss, self.y, self.scores, self.sample_weight)
        self.intercept, self.scores = self.intercept + change, self.scores + change
        if self.step().risk < risk - NOTHING_LEFT * abs(risk):
            return True
        self.intercept, self.scores = before
        return False

    def _refit(self) -> None:
        """Refit all weights at once: minimise (2.1) over them."""
        features: NDArray[Any] = np.zeros((len(self.y), len(self.extents)), bool)
        for r, rows in enumerate(self.extents):
            features[:, r] = rows
        n, signs = len(self.extents), self.signs
        if self.columns is not None and self.terms:
            features = np.column_stack([features, self.columns.values[:, self.terms]])
            signs = np.append(signs, self.columns.sides[self.terms])
        weights, self.intercept = refit_weights(
            self.loss,
            self.y,
            features,
            l2_penalty=self.l2_penalty,
            intercept=self.has_intercept,
            sample_weight=self.sample_weight,
            start=(np.array([*self.weights, *self.coefficients]), self.intercept),
            signs=signs,
        )
        self.weights, self.coefficients = weights[:n].tolist(), weights[n:].tolist()
        self.scores = self.intercept + features @ weights

    def units(self, rule: tuple[int, ...]) -> int:
        """The complexity of a rule: 1 plus 1 per condition; with directions, 1 plus (1 + nonzeros)
        per condition.
        """
        if not self.by_nonzeros:
            return 1 + len(rule)
        pool = self.candidates.pool
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
        ensemble.weights = [
            *self.weights[:r],
            *(self.weights[r] for _ in others),
            *self.weights[r + 1 :],
        ]
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
        missing = len(self.unused())
        for k in range(len(self.terms)):
            ensemble = copy.copy(self)
            ensemble.terms = [*self.terms[:k], *self.terms[k + 1 :]]
            ensemble.coefficients = [*self.coefficients[:k], *self.coefficients[k + 1 :]]
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
        losses = float(self.sample_weight @ np.asarray(self.loss.value(self.y, self.scores)))
        if not self.loss.quadratic:
            return losses
        mean = max(losses / self.total_weight, float(np.finfo(np.float64).tiny))
        return self.total_weight / 2 * math.log(mean)

    def step(self) -> EnsembleStep:
        """The current ensemble and risk."""
        penalty = (
            self.l2_penalty
            / (2.0 * self.total_weight)
            * sum(weight**2 for weight in [*self.weights, *self.coefficients])
        )
        losses = np.asarray(self.loss.value(self.y, self.scores))
        risk = float(self.sample_weight @ losses) / self.total_weight + penalty
        kept = [r for r in range(len(self.rules)) if self._counts(r)]
        linear, shift = None, np.zeros(1)
        if self.columns is not None:
            coefficients = np.array(self.coefficients).reshape(-1, 1)
            linear, shift = self.columns.weighed(self.terms, coefficients)
        return EnsembleStep(
            tuple(self.rules[r] for r in kept),
            np.array(self.weights)[np.array(kept, int)][:, None],
            self.intercept + shift,
            risk,
            linear,
        )

    def _counts(self, r: int) -> bool:
        """Whether the model keeps a rule: not if its required sign made its weight 0, unless a
        constraint requires the rule.
        """
        wanted = r < self.n_first or any(
            speaking[list(self.rules[r])].any() for speaking in self.using
        )
        return wanted or self.weights[r] != 0 or self.any_sign or self.signs[r] == 0


def repeated(rows: NDArray[np.bool_], extents: Sequence[NDArray[np.bool_]]) -> bool:
    """Whether these rows, or all others, are those of an earlier rule."""
    return any(((rows ^ earlier) == (rows[0] ^ earlier[0])).all() for earlier in extents)
