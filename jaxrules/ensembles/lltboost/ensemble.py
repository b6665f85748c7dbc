"""The rules so far: their rows, their weights, and the gradient that the next rule is to select.

Several classes are one problem under the softmax loss, in which a rule has a weight per class. With
G the derivatives of the mean loss by the scores, (rows, classes), a rule then maximises |G'q|, the
slope along its weights, in the place of |g'q| (Eq. 10). The four classes with the largest gradients
each grow a conjunction for their own column of G, for each sign; the one of largest |G'q| is added,
and all weights are refitted. The ridge is twice `l2_penalty`, see `ridges`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles import noise as noises
from jaxrules.ensembles.lltboost.conjunction import Conjunction
from jaxrules.ensembles.lltboost.details import Part
from jaxrules.ensembles.lltboost.proposals import (
    Arrays,
    Bounds,
    Fitted,
    Lanes,
    ProposalProgram,
    Proposals,
    propose,
)
from jaxrules.ensembles.lltboost.task import LLTBoostTask
from jaxrules.ensembles.noise import Ridge, first_ridge, ridges
from jaxrules.ensembles.oblique import Standardised, readable
from jaxrules.ensembles.size import Worth, has_likelihood, negative_log_likelihood, price_of_rule
from jaxrules.learning.training import TrainingData, held_out
from jaxrules.losses import best_constant, mean_loss, softmax
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.solvers.linear.refit import refit_outputs
from jaxrules.solvers.patience import Patient
from jaxrules.solvers.shapes import bucket
from jaxrules.tools.float64 import on_device
from jaxrules.tools.placement import padded
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

NOTHING = 1e-9
"""Sums of gradients below this share of the sum of their absolute values are rounding."""
MOST_CLASSES = 4
"""Of classes fitted together, at most this many grow a rule: those with the largest gradients."""
_SMALLEST_SHAPE = (64, 4)
"""Rows and columns of the smallest problem that is compiled; smaller ones are padded."""
_FEWEST_SLOTS = 16
"""For the constant and the rules: one compiled program serves all ensembles of up to 15 rules."""

_propose_in_time = Patient(propose)


class Refitted(NamedTuple):
    """The weights of an ensemble, (rules, outputs) and (outputs,), and the objective at them.

    Attributes:
        worth: of the last rule; unknown unless `max_rules` is "auto".
    """

    weights: Floats
    intercept: Floats
    objective: float
    ridge: Ridge
    worth: Worth = Worth()


class TrainedRows(NamedTuple):
    """Rows that the weights are fitted to.

    Attributes:
        weights: of the rows.
        holds: bool (rows, slots - 1), where the rules hold; merging equal rows makes refits fast.
    """

    data: TrainingData
    weights: Floats
    holds: Rows

    @property
    def shares(self) -> Floats:
        """The weights, scaled to a sum of 1."""
        return self.weights / self.weights.sum()


class Ensemble:
    """The rules so far, in the arrays of `propose`: rows are padded to a bucket, so that few shapes
    are compiled.

    Attributes:
        data: the rows that rules are searched on.
        training: its training part.
        final: the rows of the weights to report.
        loss: of a row.
    """

    def __init__(self, data: TrainingData, task: LLTBoostTask) -> None:
        options, whole = task.options, data
        self.task, self.data = task, data if task.searched is None else data[task.searched]
        self.loss = data.row_loss
        data, n = self.data, self.data.table.n_rows
        self.held_out = held_out(data, options.validation_fraction, options.seed)
        trains = data.weights * ~self.held_out
        decides = data.weights * self.held_out if self.held_out.any() else trains
        self.fit_weights, self.check_weights = trains / trains.sum(), decides / decides.sum()
        self.ridge = first_ridge(options.l2_penalty, data)
        bound = task.constraints.of_output(data.output, task.n_outputs)
        self.columns = Standardised.of(bound.blanked(data.table), data.weights)
        self.names = self.columns.names(data.table)
        self.directions = self.columns.directions(bound) if task.constraints.monotone else None
        self.n_rows, size = n, padded(bucket(max(n, _SMALLEST_SHAPE[0])))
        width = bucket(max(len(self.columns.values), _SMALLEST_SHAPE[1]))
        # Padding has the target 1, at which every loss is defined.
        target = np.ones((*data.target.shape[1:], size))
        target[..., :n] = data.target.T
        values, missing = self.columns.values, self.columns.missing
        both = (np.pad(part, (0, size - n)) for part in (self.fit_weights, self.check_weights))
        missing = _padded(missing, width if len(missing) else 0, size)
        arrays = Arrays(_padded(values, width, size), missing, target, *both)
        self.arrays = on_device(arrays, rows=-1)
        self.least_risk = self._least_risk()
        slots = bucket(max(options.most_rules + 1, _FEWEST_SLOTS))
        self.design = np.zeros((slots, size))  # the constant, then the rules
        self.design[0] = 1.0
        # Rules fill one column after another.
        holds = np.zeros((n, slots - 1), bool, order="F")
        # With all rows searched, both are the same rows under other weights, and share `holds`.
        self.training = self.final = TrainedRows(data, trains, holds)
        if options.refit_on_all_rows and whole is not data:
            holds = np.zeros((len(whole.weights), slots - 1), bool, order="F")
        if options.refit_on_all_rows:
            self.final = TrainedRows(whole, whole.weights, holds)
        self.signs = np.zeros(len(self.design), int)  # of their weights, 0 for any
        self.first = task.first.take(np.flatnonzero(self._may_be(task.first).any(axis=1)))
        self.rules: list[tuple[Condition, ...]] = []  # that were found
        self.fitted = np.zeros((*data.target.shape[1:], slots))  # on the training part
        self.fitted[..., 0] = self._constant()
        if len(self.first):
            self._note(0, self.first)
            self.fitted = self._refit(self.training, self.fitted, self.ridge)
        self.steps = [self._refitted()]
        self.first_gradient = self.total_gradient

    @property
    def n_rules(self) -> int:
        """The number of rules: the expert's, and those that were found."""
        return len(self.first) + len(self.rules)

    def _may_be(self, rules: Conjunctions) -> NDArray[np.bool_]:
        """Whether their weights may be negative, and positive, (rules, 2)."""
        return self.task.constraints.signs(rules, self.data.output, self.task.n_outputs)

    def _note(self, before: int, rules: Conjunctions) -> None:
        """Note where rules hold, and the signs of their weights; `before` rules come first."""
        to = before + len(rules)
        for rows in (self.training, self.final):
            rows.holds[:, before:to] = rules.satisfied(rows.data.table)
            if self.final.data is self.training.data:
                break
        self.design[1 + before : 1 + to, : self.n_rows] = self.training.holds[:, before:to].T
        may_be = self._may_be(rules).astype(int)
        self.signs[1 + before : 1 + to] = may_be[:, 1] - may_be[:, 0]

    def _constant(self) -> Floats | float:
        """The best scores without rules, of each output."""
        found = best_constant(self.loss, self.data.target, self.fit_weights)
        return np.asarray(found - np.mean(found)) if self.loss == softmax else found

    def _least_risk(self) -> float:
        """The smallest value of the held-out risk, to which relative changes refer: for Poisson
        counts they are those of the deviance. The least loss of a row is -loss*(0), with the
        conjugate loss*.
        """
        # loss*(0) = max_f (0 f - loss(f)) = -min_f loss(f).
        conjugate = self.loss.conjugate
        least = 0.0 if conjugate is None else -conjugate(self.data.target, np.zeros(self.n_rows))
        return float(np.sum(self.check_weights * least))

    @property
    def gradient(self) -> Floats:
        """g (Eq. 12): derivatives of the training part's mean loss by its scores, (rows,), or
        (classes, rows) for classes fitted together.
        """
        scores = self.fitted @ self.design[:, : self.n_rows]
        slopes = np.asarray(self.loss.gradient(self.data.target, scores.T))
        return self.fit_weights * np.ascontiguousarray(slopes.T)

    def worth(self, one: Conjunction) -> float:
        """What the next rule maximises."""
        if self.loss != softmax:
            return one.objective
        return float(np.linalg.norm(self.gradient @ one.rows))

    @property
    def total_gradient(self) -> float:
        return float(np.abs(self.gradient).sum())

    @property
    def is_perfect(self) -> bool:
        return not self.total_gradient > NOTHING * self.first_gradient

    def ask(self, asked: list[Conjunction], run: Run) -> list[Proposals] | None:
        """The answers of `propose` for conjunctions; None if there is no time to compile it, or the
        run is stopped between two calls.
        """
        answers: list[Proposals] = []
        width = 2 * self.task.options.beam_width
        for start in range(0, len(asked), width):  # a class per call, to notice Ctrl-C in between
            if start and run.stopped():
                return None
            these = self._ask(asked[start : start + width], run, width)
            if these is None:
                return None
            answers += these
        return answers

    def _ask(self, asked: list[Conjunction], run: Run, count: int) -> list[Proposals] | None:
        """The answers for at most `count` conjunctions, one lane each."""
        options, targets = self.task.options, self.data.target.shape[1:]
        # Always `count` lanes, for one program; those without rows are skipped.
        lanes = Lanes(np.ones(count), np.zeros((count, self.design.shape[1]), bool))
        if targets:
            lanes = lanes._replace(of_class=np.zeros(count, np.int32))
        for lane, one in enumerate(asked):
            lanes.sign[lane], lanes.held[lane, : self.n_rows] = one.sign, one.rows
            if targets:
                lanes.of_class[lane] = one.of_class
        bounds = None
        if self.directions is not None:
            directions = np.zeros(len(self.arrays.columns))
            directions[: len(self.directions)] = self.directions
            constrained = np.zeros(count, bool)
            for lane, one in enumerate(asked):
                constrained[lane] = any((part.w * directions).any() for part in one.parts)
            lanes = lanes._replace(constrained=constrained)
            bounds = Bounds(directions, self.signs.astype(np.float64))
        program = ProposalProgram(
            self.loss, min(options.max_nonzeros, self.arrays.columns.shape[0]),
            options.refit_propositions, options.refine_thresholds, options.axis_parallel,
        )  # fmt: skip
        design, held = on_device((self.design, lanes.held), rows=-1)
        fitted = Fitted(design, self.fitted, self.n_rules + 1, ridges(self.loss) * self.ridge)
        lanes = lanes._replace(held=held)
        answers = _propose_in_time(run.stopped, self.arrays, fitted, lanes, bounds, program=program)
        if answers is None:
            return None
        answers = answers._replace(
            rows=answers.rows[..., : self.n_rows],
            risk=np.where(answers.found, answers.risk - self.least_risk, math.inf),
        )
        return [Proposals(*(field[lane] for field in answers)) for lane in range(len(asked))]

    def repeats(self, rows: Rows) -> bool:
        """Whether a rule that selects these rows of the training part adds nothing to the rules
        so far.
        """
        # On the training part the refit would get a repeated column; held-out rows have no say.
        used = self.fit_weights > 0
        weighs = np.atleast_2d(self.fitted).any(axis=0)
        absent = (self.signs != 0) & ~weighs  # its sign holds its weight at 0
        m = self.n_rules + 1
        before = self.design[:m, : self.n_rows][~absent[:m]][:, used] > 0
        # 1 is the same rule, 0 its complement, which with the constant spans the same scores. The
        # constant is among them: a rule that holds everywhere or nowhere adds nothing.
        same = (before == rows[used]).mean(axis=1)
        return bool(((same == 0) | (same == 1)).any())

    def add(self, found: Conjunction) -> tuple[Part, ...]:
        """Append a rule in its readable form, and refit all weights."""
        conditions: list[Condition] = []
        among, table = np.ones(self.n_rows, bool), self.data.table
        for part in found.parts:
            w = part.w[: len(self.names)]
            condition, rows = readable(self.columns, table, w, part.b, part.admits, among)
            conditions.append(condition)
            # Rows that an earlier proposition excludes need not stay on their side of the next one,
            # which leaves more room for short numbers.
            among = among & rows
        self._note(self.n_rules, Conjunctions.build(self.data.schema, [conditions]))
        self.rules.append(tuple(conditions))
        self.fitted = self._refit(self.training, self.fitted, self.ridge)
        step = self._refitted()
        if self.chooses_size:
            step = step._replace(worth=self._worth(step.ridge.value))
        self.steps.append(step)
        parts = []
        for part in found.parts:
            named = {self.names[j]: float(part.w[j]) for j in np.flatnonzero(part.w)}
            parts.append(Part(named, -part.b, part.penalty, part.skipped))
        return tuple(parts)

    @property
    def chooses_size(self) -> bool:
        """Whether the data choose the number of rules."""
        return self.task.options.max_rules == "auto" and has_likelihood(self.data.loss)

    def _worth(self, ridge: float) -> Worth:
        """What the last rule is worth under this ridge, on the rows of the weights to report."""
        m, weights, target = self.n_rules, self.final.weights, self.final.data.target

        def scores(rules: int, ridge: float) -> Floats:
            return self._scores(self._refit(self.final, self.fitted, ridge, rules), rules)

        def nll(scores: Floats) -> float:
            return negative_log_likelihood(self.loss, target, scores, weights)

        whole = scores(m, ridge)
        after = nll(whole)
        return Worth(
            nll(scores(m - 1, ridge * (m - 1) / m)) - after,
            nll(scores(m - 1, ridge)) - after,
            price_of_rule(self.loss, target, whole, weights),
        )

    def relaxed(self, m: int, share: float) -> Refitted:
        """The weights of the first m rules to report under a share of the ridge that the data
        chose; under a given ridge, as they are.
        """
        step = self.steps[m - len(self.first)]
        if not step.ridge.chosen:
            return step
        unit = noises.unit(self.data.loss, self.final.data.target, self.final.weights)
        value = noises.rounded(step.ridge.value * share, unit)
        told = step.ridge.chosen.partition(": ")[2]
        ridge = Ridge(value, f"l2_penalty={value:g}: {told}")
        b = self._refit(self.final, self.fitted, value, m)
        return self._step(b, m, ridge)

    def _refit(
        self, rows: TrainedRows, start: Floats, ridge: float, m: int | None = None
    ) -> Floats:
        """The best weights (Eq. 9) on these rows of the first m rules, by default of all; those of
        rules to come stay 0.
        """
        m = self.n_rules if m is None else m
        result = np.zeros_like(start)
        before, after = np.atleast_2d(start), np.atleast_2d(result)  # (outputs, slots)
        weights, constants = refit_outputs(
            self.loss, rows.data.outputs.T, rows.holds[:, :m], sample_weight=rows.shares,
            l2_penalty=ridges(self.loss) * ridge, signs=self.signs[1 : m + 1, None],
            start=(before[:, 1 : m + 1].T, before[:, 0]),
        )  # fmt: skip
        if self.loss == softmax:  # a common constant changes no probability
            constants = constants - constants.mean()
        after[:, 1 : m + 1], after[:, 0] = weights.T, constants
        return result

    def _scores(self, b: Floats, m: int) -> Floats:
        """The scores of m rules with these weights, (rows,) or (rows, outputs)."""
        return np.asarray((b[..., 1 : m + 1] @ self.final.holds[:, :m].T + b[..., :1]).T)

    def _risk(self, b: Floats, m: int) -> float:
        rows = self.final
        return mean_loss(self.loss, rows.data.target, self._scores(b, m), rows.weights)

    def _refitted(self) -> Refitted:
        """The weights to report."""
        options, m, b, ridge = self.task.options, self.n_rules, self.fitted, Ridge(self.ridge)
        rows, target = self.final, self.final.data.target
        if options.refit_on_all_rows:
            b = self._refit(self.final, b, self.ridge)
        # The loss that the rules leave under the small ridge says how much noise there is, and so
        # the last ridge. `self.fitted`, from which the search goes on, keeps the small one.
        if options.l2_penalty is None:
            ridge = Ridge.of_rules(self.loss, target, rows.weights, self._risk(b, m), m)
            b = self._refit(self.final, b, ridge.value)
        return self._step(b, m, ridge)

    def _step(self, b: Floats, m: int, ridge: Ridge) -> Refitted:
        """Weights to report of the first m rules, with their objective."""
        squares = float(np.sum(b[..., 1:] ** 2))
        objective = self._risk(b, m) + ridges(self.loss) * ridge.value / 2 * squares
        by_output = np.atleast_2d(b).T
        return Refitted(by_output[1 : m + 1].copy(), by_output[0].copy(), objective, ridge)


def _padded(values: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """The array, followed by rows and columns of zeros."""
    result = np.zeros((height, width), values.dtype)
    result[: values.shape[0], : values.shape[1]] = values
    return result
