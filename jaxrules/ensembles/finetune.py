"""Fine-tuning: the thresholds, directions and weights of a fitted rule ensemble, by gradient
descent.

Conditions keep their columns: each end of an interval keeps its column, or the columns of its
direction. A condition on numbers becomes soft, with z = w'x on standardised columns and |w| = 1,

    p = sigmoid(a (z - lower)) sigmoid(a (upper - z)),  q_i = prod_j p_ij,  f = b_0 + sum_i b_i q_i,

and gradient descent on the loss changes w, lower, upper and b. In the forward pass p is the step;
only the gradient is that of the sigmoids (straight-through). Conditions on categories and missing
values, and linear terms, stay fixed. At the end, steps replace the sigmoids, and the weights are
refitted.

Under `monotone` every rule of the start must be monotone (`jaxrules.rules.constraints`). A
projection after every step keeps the signs of constrained columns in its directions, and of the
weights of the rules that use them.

A guard keeps only what held-out rows confirm. Of the rules at the start and after every chunk of
steps, it chooses those with the least held-out risk. It accepts them if such a choice pays on other
rows: each half of the held-out rows chooses for the other, and the mean gain per row over the rules
of the start must exceed its standard error.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import EncodedColumn, TableLike
from jaxrules.ensembles.oblique import Standardised, readable
from jaxrules.learning.options import RunOptions, learner, option, options, or_none
from jaxrules.learning.training import TrainingData, data_for, held_out, location_and_scale
from jaxrules.losses import Array, Loss, LossOption, loss_by_name, of_rows, softmax
from jaxrules.models.metrics import loss_of
from jaxrules.models.rule_models import RuleEnsemble, warn_of_threshold
from jaxrules.rules.conditions import Condition, Conjunctions
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.lowered import Direction, Directions
from jaxrules.solvers.adam import adam
from jaxrules.solvers.linear.refit import refit_outputs
from jaxrules.solvers.shapes import bucket
from jaxrules.tools import checks
from jaxrules.tools.fits import Details, Fit, Status, Step
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

_LEAST_WEIGHT = 1e-3
"""The least absolute weight of a constrained column in a direction of length 1, so that no
direction vanishes.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class FinetuneDetails(Details):
    """What fine-tuning reports with the model.

    Attributes:
        accepted: whether the model differs from the start.
        start_risk, risk: the risks of the rules of the start and of the model on the held-out rows,
            with weights refitted on the others; NaN without the guard.
        gain, gain_error: the decrease of the held-out risk if each half of the held-out rows is
            predicted by the rules that the other half chooses, and its standard error, which the
            gain must exceed. NaN without the guard.
        validation_rows: which rows of positive weight were held out, shape (rows,).
        first_half: which of these are in the first half, shape (rows,).
    """

    accepted: bool
    start_risk: float
    risk: float
    gain: float
    gain_error: float
    validation_rows: Rows
    first_half: Rows


@options
class FinetuneOptions(RunOptions):
    """The options of `finetune`.

    Attributes:
        loss: None for the loss of the fit; a user's loss must be passed again.
        guard: keep the start unless held-out rows confirm a gain of at least a standard error.
            False keeps the last rules.
        validation_fraction: share of the rows, in (0, 1), that the guard holds out.
        iterations: steps of Adam.
        learning_rate: the rate of the first step, on standardised columns; it falls to 0 along a
            cosine.
        sharpness: a of the sigmoids.
        batch_size: the most rows drawn for each step; None for all.
        l2_penalty: ridge on the refitted weights, relative to the mean loss, as in
            `jaxrules.lltboost`.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with the
            column, as in the start; see `jaxrules.rules.constraints`.
        seed: seed of the held-out rows and of the batches.
        time_limit: seconds from call to return, None for no limit. If time runs out, the guard
            judges the rules tuned so far.
    """

    learner = "finetune"

    loss: LossOption = None
    guard: bool = option(checks.flag, default=True)
    validation_fraction: float = option(checks.number, default=0.25, above=0, below=1)
    iterations: int = option(checks.integer, default=250, at_least=1)
    learning_rate: float = option(checks.number, default=0.01, above=0, at_most=1000)
    sharpness: float = option(checks.number, default=4.0, above=0)
    batch_size: int | None = option(or_none(checks.integer), default=1024, at_least=1)
    l2_penalty: float = option(checks.penalty, default=1e-3)
    monotone: Mapping[str | int, int] | None = None

    @property
    def held_out(self) -> float:
        """The share of the rows that is held out."""
        return self.validation_fraction if self.guard else 0.0


@learner(FinetuneOptions)
def finetune(
    model: RuleEnsemble,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    options: FinetuneOptions,
) -> Fit[RuleEnsemble]:
    """Tune all thresholds, directions and weights of a rule ensemble; its complexity does not grow.

    >>> import numpy as np
    >>> import jaxrules as jr
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = 2.0 * (X[:, 0] > 0.35)
    >>> start = jr.boosting.fit(X, y, max_rules=1, max_cut_points=2).model
    >>> result = finetune(start, X, y, guard=False)
    >>> result.objective < jr.risk(start, X, y)
    True

    Args:
        model: a rule ensemble of any learner: LIRE, RuleFit, boosting, GLRM, LLTBoost, LTRNet.
        X: data with the columns of the model.
        y: the target, with the classes of the model if it has any, shape (rows,).
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is the mean loss of the model plus l2_penalty / 2 sum b^2, with
        `FinetuneDetails`. The steps of the history are chunks of training, their objective the
        loss; the last is that of the model.

    Raises:
        ValueError: for an invalid value of any argument, data that do not fit the model, or a model
            that is not monotone.
        TypeError: for arguments of the wrong type.
    """
    checks.instance("model", model, RuleEnsemble, "fit.model")
    loss = loss_of(model) if options.loss is None else loss_by_name(options.loss)
    run = options.run(total=options.iterations)
    data = data_for(model, X, y, loss, sample_weight)
    constraints = Constraints.of(model.schema, monotone=options.monotone)
    _require_monotone(model, constraints)
    warn_of_threshold(model)
    return _Tuning(model, data, constraints, options, run).fit()


def _require_monotone(model: RuleEnsemble, constraints: Constraints) -> None:
    """Refuse a start that violates the constraints, naming the rule or term."""
    weights = np.asarray(model.weights)
    remedy = "which monotone forbids; start from a model that was fitted with it"
    for k in range(weights.shape[1]):
        may_be = constraints.signs(model.conjunctions, k, weights.shape[1])
        own = weights[:, k]
        barred = np.flatnonzero(((own < 0) & ~may_be[:, 0]) | ((own > 0) & ~may_be[:, 1]))
        if len(barred):
            rule = model.conjunctions.describe(int(barred[0]))
            raise ValueError(
                f"model has the rule {rule!r} with weight {own[barred[0]]:.4g}, {remedy}"
            )
        if model.linear is None:
            continue
        bound = constraints.of_output(k, weights.shape[1])
        coefficients = np.asarray(model.linear.coefficients)[:, k]
        for feature, b in zip(model.linear.feature.tolist(), coefficients, strict=True):
            if dict(bound.monotone).get(feature, 0) * b < 0 or (feature in bound.forbidden and b):
                name = model.schema.names[feature]
                raise ValueError(
                    f"model has a linear term of {name!r} with coefficient {b:.4g}, {remedy}"
                )


class Soft(NamedTuple):
    """The tuned parameters, padded to the same number of conditions per rule, with a leading axis
    of length 1.

    Attributes:
        w: (rules, conditions, columns), of any length except 0.
        lower, upper: (rules, conditions), for w of length 1.
        b, b0: (outputs, rules) and (outputs,).
    """

    w: Array
    lower: Array
    upper: Array
    b: Array
    b0: Array


class Fixed(NamedTuple):
    """The fixed parameters.

    Attributes:
        supports: (rules, conditions, columns) of 0 and 1, the columns of w.
        has_lower, has_upper: (rules, conditions) bool.
        admits: (rules, conditions) bool, whether a row with a missing number satisfies the
            condition.
        used: (outputs, rules) bool, which weights are not 0.
        sharpness: a of the sigmoids.
    """

    supports: Array
    has_lower: Array
    has_upper: Array
    admits: Array
    used: Array
    sharpness: Array


@dataclass(frozen=True)
class _FinetuneObjective:
    """The training loss of the tuned ensemble."""

    loss: Loss

    def __call__(self, lanes: Soft, rows: Array, fixed: Fixed, step: Array) -> Array:
        weights, columns, target, held, lost, offset = rows
        soft = jax.tree.map(lambda array: array[0], lanes)
        # Without a fixed length, |w| would act as the sharpness.
        w = soft.w * fixed.supports
        w = w / jnp.sqrt((w**2).sum(axis=-1, keepdims=True))  # |w| = 1
        z = jnp.einsum("rkd,dn->rkn", w, columns)

        def end(distance: Array, exists: Array) -> Array:
            smooth = jax.nn.sigmoid(fixed.sharpness * distance)
            # Straight-through: the value of the step, but the gradient of the sigmoid.
            step = smooth + jax.lax.stop_gradient((distance >= 0) - smooth)
            return jnp.where(exists[..., None], step, 1)

        p = end(z - soft.lower[..., None], fixed.has_lower)
        p = p * end(soft.upper[..., None] - z, fixed.has_upper)
        # A missing number: the condition answers by its own rule, which is not tuned.
        if lost.shape[0]:
            p = jnp.where(lost, fixed.admits[..., None], p)
        # q = prod_j p_j over the tuned conditions, on rows where the fixed ones hold.
        parts = [p[:, j] for j in range(p.shape[1])]
        q = functools.reduce(operator.mul, parts, held.astype(p.dtype))
        scores = (soft.b * fixed.used) @ q + soft.b0[:, None] + offset
        losses = of_rows(self.loss, target.T, scores.T)
        return jnp.sum(jnp.where(weights > 0, weights * losses, 0))[None]


@dataclass(frozen=True, eq=False)
class _Candidate:
    """The rules after a chunk of steps, as conditions and as the rows where they hold; the loss of
    every row with weights refitted on the rows that are not held out.
    """

    conditions: list[list[Condition]]
    rows: Rows
    soft: Soft
    losses: Floats


class _Tuning:
    """A model, its data, and the arrays for tuning."""

    def __init__(
        self,
        model: RuleEnsemble,
        data: TrainingData,
        constraints: Constraints,
        options: FinetuneOptions,
        run: Run,
    ) -> None:
        self.start, self.data, self.options, self.run = model, data, options, run
        self.loss = softmax if model.link == "softmax" else data.loss
        self.columns = Standardised.of(data.table, data.weights)
        self.centre, self.scale = location_and_scale(data)
        self.target = (data.outputs - self.centre) / self.scale
        # A rule without a weight changes no score: its conditions have no gradient.
        in_use = np.flatnonzero(np.asarray(model.weights).any(axis=1))
        self.rules = model.conjunctions.take(in_use)
        self.rows = self.rules.satisfied(data.table).T
        self.b = np.asarray(model.weights, np.float64)[in_use].T / self.scale
        self.b0 = (np.asarray(model.intercept, np.float64) - self.centre) / self.scale
        n = len(self.b)
        may_be = np.array([constraints.signs(self.rules, k, n) for k in range(n)], int)
        self.signs = may_be[..., 1] - may_be[..., 0]  # of b, 0 for any
        self.directions = self.columns.directions(constraints)
        self.offset = np.zeros_like(self.target)
        if model.linear is not None:
            terms = model.linear.values(data.table) @ np.asarray(model.linear.coefficients)
            self.offset = terms.T / self.scale
        # Both come from one random order, so that the first half is part of the whole.
        self.validation = held_out(data, options.held_out, options.seed)
        first = held_out(data, options.held_out / 2, options.seed)
        self.halves = first, self.validation & ~first
        if options.held_out and not all(half.any() for half in self.halves):
            raise ValueError(
                "validation_fraction holds out fewer than two distinct rows of X; raise it, give "
                "more distinct rows, or pass guard=False"
            )
        self.place = {one: j for j, one in enumerate(self.columns.encoded)}
        # Of every rule: the tuned conditions with their columns, and the others.
        weighed = [[(c, self.weighs(c)) for c in rule] for rule in self.rules]
        self.soft = [[(c, parts) for c, parts in rule if parts is not None] for rule in weighed]
        self.stay = [[c for c, parts in rule if parts is None] for rule in weighed]

    def fit(self) -> Fit[RuleEnsemble]:
        """Tune, judge, and finish."""
        options, run = self.options, self.run
        fits = self.shares(~self.validation)
        lanes, rows, fixed = self.arrays(fits)
        history = []

        def judged(soft: Soft, conditions: list[list[Condition]], holds: Rows) -> _Candidate:
            losses = self.losses(holds, *self.refitted(holds, soft, fits))
            return _Candidate(conditions, holds, soft, losses)

        # The start too gets refitted weights, so that candidates differ by their rules alone.
        found = [judged(jax.tree.map(lambda array: array[0], lanes), [], self.rows)]
        with run:
            run.phase = "search"
            descents = adam(
                _FinetuneObjective(self.loss), lanes, rows, fixed, n_rows=len(fits),
                iterations=options.iterations, learning_rate=options.learning_rate,
                batch_size=options.batch_size, seed=options.seed, ends=self.ends(lanes),
                stopped=run.stopped,
            )  # fmt: skip
            for descent in descents:
                soft: Soft = jax.tree.map(lambda array: array[0], descent.parameters)
                found.append(judged(soft, *self.hardened(soft)))
                risk = self.scale**2 * float(descent.values[0])
                history.append(Step(risk, len(self.rules), run.seconds()))
                run.report(descent.steps, risk, len(self.rules))
        best, gain = self.accepted(found)
        return self.finished(found[0], best, gain, history)

    def accepted(self, found: list[_Candidate]) -> tuple[_Candidate, tuple[float, float]]:
        """The rules to keep, from the start and all chunks, and their gain with its standard error;
        without the guard, the last rules.
        """
        if not self.options.guard:
            return found[-1], (math.nan, math.nan)

        def chosen(rows: Rows) -> _Candidate:
            shares = self.shares(rows)
            # Of equal risks the first, so that a tie keeps the start.
            return min(found, key=lambda one: float(shares @ one.losses))

        # Each half chooses for the other; the paired differences must exceed their standard error.
        gains, (first, second) = np.zeros(len(self.validation)), self.halves
        for chooses, other in ((first, second), (second, first)):
            gains[other] = (found[0].losses - chosen(chooses).losses)[other]
        gain, error = _mean(gains, self.shares(self.validation))
        best = chosen(self.validation) if gain > error else found[0]
        # With the rows of the start only weights could differ, and the guard did not judge these.
        return found[0] if (best.rows == found[0].rows).all() else best, (gain, error)

    def finished(
        self, start: _Candidate, best: _Candidate, gain: tuple[float, float], history: list[Step]
    ) -> Fit[RuleEnsemble]:
        """The start itself, or the model of the best rules, with weights refitted on all rows."""
        model, b, b0, data = self.start, self.b, self.b0, self.data
        everything, held = self.shares(np.ones_like(self.validation)), self.shares(self.validation)
        if best is not start:
            b, b0 = self.refitted(best.rows, best.soft, everything)
            used = np.flatnonzero(b.any(axis=0))  # a rule that now holds nowhere has weight 0
            sizes = self.rules.propositions.tolist()
            rules = Conjunctions.build(model.schema, best.conditions, sizes)
            model = replace(
                model, conjunctions=rules.take(used), weights=self.scale * b[:, used].T,
                intercept=self.scale * b0 + self.centre, loss=data.loss.name,
                options=self.options.settings(model=model),
            )  # fmt: skip
        unit = self.scale**2
        norm = float((b**2).sum()) / (1 if self.loss == softmax else len(b0))
        risk = float(everything @ self.losses(best.rows, b, b0))
        objective = unit * (risk + self.options.l2_penalty / 2 * norm)
        details = FinetuneDetails(
            accepted=best is not start, start_risk=unit * float(held @ start.losses),
            risk=unit * float(held @ best.losses), gain=unit * gain[0], gain_error=unit * gain[1],
            validation_rows=self.validation, first_half=self.halves[0],
        )  # fmt: skip
        fit = self.run.finish(model, objective, "min", Status.CONVERGED, details=details)
        last = Step(objective, len(model.conjunctions), fit.seconds)
        return replace(fit, history=(*history, last))

    def weighs(self, condition: Condition) -> tuple[NDArray[np.intp], Floats, Floats] | None:
        """The standardised columns of a condition on numbers, their weights and origins; None for
        a condition that stays fixed.
        """
        ends = math.isfinite(condition.lower) or math.isfinite(condition.upper)
        if condition.categories is not None or condition.admits_no_number or not ends:
            return None
        one = condition.feature
        direction = one if isinstance(one, Direction) else Direction((one,), (1.0,))
        terms = zip(direction.features, direction.categories, strict=True)
        is_numeric = [self.data.table.schema.features[f].is_numeric for f in direction.features]
        keys = [
            EncodedColumn(f, None if number else code)
            for (f, code), number in zip(terms, is_numeric, strict=True)
        ]
        if not all(key in self.place for key in keys):
            return None  # a constant column
        columns = np.array([self.place[key] for key in keys])
        return columns, np.array(direction.weights), np.array(direction.origins)

    def arrays(self, weights: Floats) -> tuple[Soft, tuple[Any, ...], Fixed]:
        """The arguments of `adam`; rows, rules and columns are padded to buckets."""
        table, columns, n = self.data.table, self.columns, len(weights)
        most = max(map(len, self.soft), default=1)
        shape = (_power_of_two(max(len(self.rules), 8)), _power_of_two(max(most, 2)))
        width, size = bucket(max(len(columns.values), 4)), bucket(max(n, 64))
        w, supports = np.zeros((*shape, width)), np.zeros((*shape, width))
        w[..., 0] = supports[..., 0] = 1.0  # padding uses some column, without effect
        ends, exists = np.zeros((2, *shape)), np.zeros((2, *shape), bool)
        admits = np.zeros(shape, bool)
        lost = np.zeros((*shape, size) if len(columns.missing) else (0, 0, size), bool)
        for r, rule in enumerate(self.soft):
            for j, (condition, (on, raw, origins)) in enumerate(rule):
                # lower < w'(x - origin): with x = centre + scale z, it is
                # (lower - shift) / length < w'z, |w| = 1.
                scaled = raw * columns.scale[on]
                shift = float(raw @ (columns.centre[on] - origins))
                largest = np.abs(scaled).max()  # so that no square overflows or vanishes
                length = float(largest * np.sqrt(((scaled / largest) ** 2).sum()))
                w[r, j], supports[r, j] = 0.0, 0.0
                w[r, j, on], supports[r, j, on] = scaled / length, 1.0
                admits[r, j] = condition.missing
                values = self.values(condition.feature)
                # Halfway between two rows, a step is equally far from both at the start.
                lower = _between(values, condition.lower, condition.lower_closed)
                # The upper end of x is the lower end of -x.
                upper = -_between(-values, -condition.upper, condition.upper_closed)
                exists[:, r, j] = np.isfinite([lower, upper])
                ends[:, r, j] = (np.where(exists[:, r, j], [lower, upper], shift) - shift) / length
                if len(columns.missing):
                    lost[r, j, :n] = columns.missing[on].any(axis=0)
        rules = shape[0] - len(self.rules)
        held = Conjunctions.build(table.schema, self.stay).satisfied(table).T
        b = np.pad(self.b, [(0, 0), (0, rules)])
        soft = Soft(w, ends[0], ends[1], b, self.b0)
        more = [(0, 0), (0, size - n)]
        rows = (
            np.pad(weights, more[1:]),
            np.pad(columns.values, [(0, width - len(columns.values)), more[1]]),
            np.pad(self.target, more, constant_values=1.0),
            np.pad(held, [(0, rules), more[1]]),
            lost,
            np.pad(self.offset, more),
        )
        fixed = Fixed(supports, exists[0], exists[1], admits, b != 0, self.options.sharpness)
        return jax.tree.map(lambda array: array[None], soft), rows, fixed

    def ends(self, lanes: Soft) -> tuple[Soft, Soft] | None:
        """Lower and upper bounds of the parameters, for `adam`; None if there are none."""
        if not self.signs.any():
            return None
        # Entries of constrained columns keep their signs, and do not vanish.
        constrained = np.pad(self.directions != 0, (0, lanes.w.shape[-1] - len(self.directions)))
        signs = np.pad(self.signs, [(0, 0), (0, lanes.b.shape[-1] - self.signs.shape[1])])[None]
        # `adam` needs bounds that the start satisfies, also with a smaller entry.
        least = np.minimum(np.abs(lanes.w), _LEAST_WEIGHT)
        any_end, any_intercept = np.full((1, 1, 1), np.inf), np.full((1, 1), np.inf)

        def below(side: int) -> Soft:
            w = np.where(constrained & (side * lanes.w > 0), least, -np.inf)
            b = np.where(side * signs > 0, 0.0, -np.inf)
            return Soft(w, -any_end, -any_end, b, -any_intercept)

        return below(1), jax.tree.map(np.negative, below(-1))

    def values(self, feature: int | Direction) -> Floats:
        """The values of a column or a direction, (rows,)."""
        if isinstance(feature, int):
            return self.data.table.columns[feature]
        return Directions.build([feature]).project(0, self.data.table)

    def hardened(self, soft: Soft) -> tuple[list[list[Condition]], Rows]:
        """The rules for tuned parameters, and the rows for which they hold; rules that hold for the
        same rows stay unchanged.
        """
        conditions, rows = [list(rule) for rule in self.rules], self.rows.copy()
        held = Conjunctions.build(self.data.table.schema, self.stay).satisfied(self.data.table).T
        for r, rule in enumerate(self.soft):
            tuned, among = list(self.stay[r]), held[r].copy()
            for j, (condition, (on, *_)) in enumerate(rule):
                w = np.zeros(len(self.columns.values))
                w[on] = soft.w[r, j, on] / np.sqrt((soft.w[r, j, on] ** 2).sum())
                for sign, end, exists in (
                    (1.0, soft.lower[r, j], math.isfinite(condition.lower)),
                    (-1.0, soft.upper[r, j], math.isfinite(condition.upper)),
                ):
                    if exists and w.any():
                        one, holds = readable(
                            self.columns, self.data.table, sign * w, -sign * end, condition.missing,
                            among,
                        )  # fmt: skip
                        tuned.append(one)
                        among &= holds
            # Otherwise the start's text stays: a threshold only moved in the gap between two rows.
            if (among != rows[r]).any():
                conditions[r], rows[r] = tuned, among
        return conditions, rows

    def refitted(self, rows: Rows, soft: Soft, weights: Floats) -> tuple[Floats, Floats]:
        """The best weights of rules that hold for these rows, (outputs, rules), under row weights;
        zeros and constrained signs are kept.
        """
        ridge = self.options.l2_penalty
        b, b0 = soft.b[:, : len(rows)] * (self.b != 0), soft.b0.copy()
        weights, b0 = refit_outputs(
            self.loss, self.target.T, rows.T, l2_penalty=ridge, sample_weight=weights,
            start=(b.T, b0), offset=self.offset.T, free=(self.b != 0).T, signs=self.signs.T,
        )  # fmt: skip
        return weights.T, b0

    def losses(self, rows: Rows, b: Floats, b0: Floats) -> Floats:
        """The loss of every row, with rules that hold for these rows."""
        scores = b @ rows + b0[:, None] + self.offset
        return np.asarray(of_rows(self.loss, self.target.T, scores.T))

    def shares(self, some: Rows) -> Floats:
        """The weights of some rows, with a sum of one; NaN if there are none."""
        weights = self.data.weights * some
        return np.asarray(weights / (weights.sum() or np.nan))


def _mean(values: Floats, weights: Floats) -> tuple[float, float]:
    """The weighted mean, and its standard error; infinite for a single row."""
    n = np.count_nonzero(weights)
    mean = float(weights @ values)
    square = float(weights**2 @ (values - mean) ** 2)  # n / (n - 1): unbiased if equal
    return mean, math.sqrt(square * n / (n - 1)) if n > 1 else math.inf


def _power_of_two(count: int) -> int:
    """The next power of two, so that models of many sizes share few compiled programs."""
    return 1 << (count - 1).bit_length()


def _between(values: Floats, end: float, closed: bool) -> float:
    """The midpoint of the values on either side of the lower end of an interval; the end itself if
    a side has no values.
    """
    inside = values >= end if closed else values > end
    low = values[~inside].max(initial=-math.inf, where=~np.isnan(values[~inside]))
    high = values[inside].min(initial=math.inf)
    return float((low + high) / 2) if math.isfinite(low) and math.isfinite(high) else end
