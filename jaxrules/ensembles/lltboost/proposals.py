"""The loop over s in Algorithm 1, compiled: the propositions of 1, 2, ... non-zeros that extend a
conjunction, with the objective and the held-out risk of the ensemble with each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxrules.ensembles.lltboost.l1_path import Separators, l1_path
from jaxrules.ensembles.lltboost.softmax import refitted
from jaxrules.losses import Array, Loss, logistic, softmax
from jaxrules.solvers.linear.newton import newton
from jaxrules.tools.float64 import x64_kernel

_SEPARATOR_PENALTY = 1e-3
"""Ridge on refitted propositions, in standardised columns and for weights of sum one: the
coefficients stay finite if the rows are separable.
"""
_ROUGHLY = 1e-5
"""Newton's method stops once its model promises a smaller relative decrease: candidates differ by
several per cent.
"""
_JOINT_STEPS = 4
"""Of a refit under the softmax loss, which converges slowly towards weights that are large. The
order of the candidates is clear before: on five data sets, 30 steps chose the same rules.
"""
_MANY_ROWS = 1 << 16
"""From this many rows on, candidates are evaluated one after another, which needs less memory."""


class Arrays(NamedTuple):
    """The training rows; those that pad a bucket have no weight.

    Attributes:
        columns: (columns, rows) of mean 0 and standard deviation 1; 0 where a number is missing.
        missing: (columns, rows) bool, where a number is missing; or (0, rows).
        target: (rows,) in the coding of the loss; (classes, rows) of +1 and -1 for classes fitted
            together.
        fit_weights, check_weights: (rows,) of the training part and of the held-out part; each
            sums to 1.
    """

    columns: Array
    missing: Array
    target: Array
    fit_weights: Array
    check_weights: Array


class Fitted(NamedTuple):
    """The ensemble so far (Eq. 1), with room for more rules.

    Attributes:
        design: (slots, rows) the constant, the rules so far, zeros.
        weights: (slots,) of these; (classes, slots) for classes fitted together.
        new: the slot of the new rule.
        l2_penalty: ridge on the weights of the rules.
    """

    design: Array
    weights: Array
    new: Array
    l2_penalty: Array

    def with_rule(self, rule: Array) -> tuple[Array, Array]:
        """The design with a new rule of these rows, and the ridge on each of its weights."""
        design = self.design.at[self.new].set(rule.astype(self.design.dtype))
        return design, jnp.where(jnp.arange(len(design)) == 0, 0, self.l2_penalty)


class Lanes(NamedTuple):
    """Unfinished conjunctions, one lane each; `lax.map` passes them on one by one, without the
    first axis.

    Attributes:
        sign: (lanes,) zeta.
        held: (lanes, rows) bool, the rows that a conjunction selects. Lanes without rows cost no
            time.
        constrained: (lanes,) bool, whether it uses a constrained column; None without `Bounds`.
        of_class: (lanes,) int, the class whose gradient is g, for classes fitted together.
    """

    sign: Array
    held: Array
    constrained: Array = None
    of_class: Array = None


class Bounds(NamedTuple):
    """The signs that `monotone` requires.

    Attributes:
        directions: (columns,) of a coefficient in a rule of positive weight, 0 for any.
        signs: (slots,) of the weights of the rules so far, 0 for any.
    """

    directions: Array
    signs: Array


class ProposalProgram(NamedTuple):
    """The options that `propose` is compiled for (see `Options`); `sizes` is k_s."""

    loss: Loss
    sizes: int
    refit_propositions: bool = False
    refine_thresholds: bool = False
    axis_parallel: bool = False


class Proposals(NamedTuple):
    """Extensions of conjunctions: one for every lane and support size s + 1.

    Attributes:
        coefficients, intercepts: the proposition w'x + b >= 0, shapes (lanes, sizes,
            columns) and (lanes, sizes).
        admits: whether a row with a missing number satisfies it.
        penalties: see `Part`.
        found: whether there is a proposition of this size.
        rows: which rows satisfy the conjunction and it, (lanes, sizes, rows).
        objective: |g'q|.
        risk: held-out risk of the ensemble with the new rule, all weights refitted.
    """

    coefficients: Array
    intercepts: Array
    admits: Array
    penalties: Array
    found: Array
    rows: Array
    objective: Array
    risk: Array


@x64_kernel(static=("program",))
def propose(
    arrays: Arrays,
    fitted: Fitted,
    lanes: Lanes,
    bounds: Bounds | None = None,
    *,
    program: ProposalProgram,
) -> Proposals:
    """The propositions of 1, ..., `sizes` non-zeros for every conjunction, and the ensemble's
    objective and risk with them.
    """
    # Rows that are held out, or pad the bucket, have fit_weights of 0 and so g_i = 0: they neither
    # teach a proposition nor count in |g'q|.
    score = fitted.weights @ fitted.design
    slopes = program.loss.gradient(arrays.target.T, score.T).T
    gradient = jnp.broadcast_to(arrays.fit_weights, slopes.shape) * slopes  # g, Eq. 12
    answer = functools.partial(_answer, arrays, fitted, bounds, program, gradient)
    nothing = functools.partial(_no_answer, arrays, program)
    # One lane after another: a CPU gains nothing from two at once, but saves the lanes that need
    # no answer.
    return lax.map(lambda lane: lax.cond(jnp.any(lane.held), answer, nothing, lane), lanes)


def _answer(
    arrays: Arrays,
    fitted: Fitted,
    bounds: Bounds | None,
    program: ProposalProgram,
    gradient: Array,
    lane: Lanes,
) -> Proposals:
    """The loop over s in Algorithm 1, all s side by side; the host chooses among them."""
    if lane.of_class is not None:
        gradient = gradient[lane.of_class]
    task = _classification(gradient, lane, bounds)
    # w_s, t_s <- L1LogReg; b is -t
    parts = _l1_logistic(arrays.columns, task, program)
    if program.axis_parallel:
        parts = _with_best_column(arrays, task, parts)
    w, found = parts.coefficients, parts.found
    # `columns` holds 0, the mean, for a missing number, to find w. On which side these rows are is
    # decided below, for all of them together.
    lost = _lost(arrays, w)
    b = parts.intercepts
    if program.refine_thresholds:
        b = _best_intercepts(arrays, task, parts, lost)
    # p_s and q_s, the conjunction with it
    # Eq. 17 is a sum: rows with a missing number join if their own gains sum to more than 0.
    admits = jnp.sum(jnp.where(lost, task.gains[None], 0), axis=1) > 0
    holds = jnp.where(lost, admits[:, None], w @ arrays.columns + b[:, None] >= 0)
    rows = lane.held[None] & holds
    # R_s
    weight_signs = None
    if task.sides is not None:
        found &= jnp.any(w != 0, axis=1)  # refitted to nothing
        # zeta g'q > 0, so that the rule's weight wants the sign of -zeta, which `sides` assumes. A
        # rule that uses a constrained column is held to it in this and all later refits.
        constrained = lane.constrained | jnp.any(w * task.sides[None] != 0, axis=1)
        weight_signs = jnp.where(constrained, -lane.sign, 0)
    if lane.of_class is not None:
        risks = _joint_risks(arrays, fitted, rows, found)
    else:
        risk = functools.partial(_held_out_risk, arrays, fitted, bounds, program.loss)
        risks = _over_sizes(risk, arrays.columns)(rows, weight_signs)
    return Proposals(w, b, admits, parts.penalties, found, rows, jnp.abs(rows @ task.gains), risks)


def _no_answer(arrays: Arrays, program: ProposalProgram, _: Lanes) -> Proposals:
    """The answer for a lane without rows, written out: to ask `_answer` for its shapes would trace
    it twice.
    """
    n_columns, n_rows = arrays.columns.shape
    w = jnp.zeros((program.sizes, n_columns))
    rows = jnp.zeros((program.sizes, n_rows), bool)
    zero, no = w[:, 0], rows[:, 0]
    return Proposals(w, zero, no, zero, no, rows, zero, zero)


class _Classification(NamedTuple):
    """The classification that finds another proposition (Eq. 19). Rows that do not count have
    gain and weight 0.

    Attributes:
        gains: (rows,) zeta g_i, the terms of Eq. 17.
        weights: (rows,) |g_i|, scaled to a sum of 1.
        signs: (rows,) -1 or 1, the classes: those of the gains.
        sides: (columns,) the signs that coefficients may have, 0 for any; None without
            `monotone`.
    """

    gains: Array
    weights: Array
    signs: Array
    sides: Array | None

    @property
    def used(self) -> Array:
        """Which rows count, (1, rows) bool: rows of the training part that satisfy the conjunction
        and have a gradient.
        """
        return (self.gains != 0)[None]


def _classification(gradient: Array, lane: Lanes, bounds: Bounds | None) -> _Classification:
    """Eq. 17 to 19 on the rows that the conjunction selects."""
    gains = jnp.where(lane.held, lane.sign * gradient, 0)
    # sum_i gain_i p(x_i) = sum of the positive gains - sum_i |g_i| [p(x_i) errs on the class of i]
    # The first term is fixed, so the best p is the best classifier of the signs (Eq. 18, 19).
    size = jnp.abs(gains)
    # `tiny`: without any gradient the weights are 0 instead of NaN, and `l1_path` finds nothing.
    weights = size / (jnp.sum(size) + jnp.finfo(size.dtype).tiny)
    # The rule's weight has the sign of -g.
    sides = None if bounds is None else -lane.sign * bounds.directions
    return _Classification(gains, weights, jnp.where(gains >= 0, 1.0, -1.0), sides)


def _l1_logistic(columns: Array, task: _Classification, program: ProposalProgram) -> Separators:
    """Eq. 21 with 1, ..., k_s non-zeros, each at its smallest penalty (Eq. 5), as a share of the
    largest.
    """
    found = l1_path(columns, task.weights, task.signs, sizes=program.sizes, sides=task.sides)
    found = found._replace(penalties=found.penalties / found.largest_penalty)
    if not program.refit_propositions:
        return found
    refit = _over_sizes(functools.partial(_refitted, columns, task, program.sizes), columns)
    w, b = refit(found.coefficients, found.intercepts, found.found)
    return found._replace(coefficients=w, intercepts=b)


def _refitted(
    columns: Array, task: _Classification, sizes: int, w: Array, b: Array, found: Array
) -> tuple[Array, Array]:
    """Logistic regression on the support of w alone, under a small ridge and within the signs."""
    # All support sizes share one shape: beyond s the entries are 0 and their columns zeros, so that
    # their coefficients stay 0. A size that was not found has row weights of 0 and nothing to fit.
    size, support = lax.top_k(jnp.abs(w), sizes)
    basis = jnp.concatenate(
        [jnp.ones_like(task.signs)[None], jnp.where(size[:, None] > 0, columns[support], 0)]
    )
    start = jnp.append(b, w[support])
    ridge = jnp.where(jnp.arange(len(start)) == 0, 0, _SEPARATOR_PENALTY)
    signs = None if task.sides is None else jnp.append(0, task.sides[support])
    point = newton(
        logistic, basis, task.signs, task.weights * found, ridge, start, signs=signs,
        tolerance=_ROUGHLY, max_steps=30,
    )  # fmt: skip
    return jnp.zeros_like(w).at[support].set(point[1:]), point[0]


def _with_best_column(arrays: Arrays, task: _Classification, parts: Separators) -> Separators:
    """With the column and cut of largest objective as the proposition of one non-zero: Eq. 20 for
    s = 1, exact.
    """
    columns, missing = arrays.columns, arrays.missing
    # Cuts x_j >= t and, as -x_j >= t, x_j <= -t.
    both = jnp.concatenate([columns, -columns])
    absent = jnp.concatenate([missing, missing]) if len(missing) else jnp.zeros_like(both, bool)
    gain, cut = best_cuts(both, task.gains, task.used & ~absent)
    if task.sides is not None:
        gain = jnp.where(jnp.concatenate([task.sides, -task.sides]) < 0, -jnp.inf, gain)
    best = jnp.argmax(gain)
    # The position of the best row in `both` says which sign its column has in w.
    unit = jnp.where(jnp.arange(len(both)) == best, 1.0, 0.0)
    return parts._replace(
        coefficients=parts.coefficients.at[0].set(unit[: len(columns)] - unit[len(columns) :]),
        intercepts=parts.intercepts.at[0].set(-cut[best]),
        # Not from the path: NaN is how `Part.cut_from_one_column` knows.
        penalties=parts.penalties.at[0].set(jnp.nan),
        found=parts.found.at[0].set(jnp.isfinite(gain[best])),
    )


def _lost(arrays: Arrays, w: Array) -> Array:
    """The rows in which a proposition meets a missing number, (sizes, rows) bool."""
    uses = (w != 0).astype(w.dtype)[:, : len(arrays.missing)]
    return uses @ arrays.missing.astype(w.dtype) > 0


def _best_intercepts(
    arrays: Arrays, task: _Classification, parts: Separators, lost: Array
) -> Array:
    """Given w, the thresholds of largest objective, Eq. 17; exact."""
    # No cut is finite if all projections are equal, as they are for a size that was not found.
    _, cut = best_cuts(parts.coefficients @ arrays.columns, task.gains, task.used & ~lost)
    return jnp.where(jnp.isfinite(cut), -cut, parts.intercepts)


def _held_out_risk(
    arrays: Arrays,
    fitted: Fitted,
    bounds: Bounds | None,
    loss: Loss,
    rule: Array,
    sign: Array | None,
) -> Array:
    """R_s: the held-out risk with another rule, all weights refitted on the training part
    (Eq. 9).
    """
    design, ridge = fitted.with_rule(rule)
    signs = None if bounds is None else bounds.signs.at[fitted.new].set(sign)
    weights = newton(
        loss, design, arrays.target, arrays.fit_weights, ridge, fitted.weights, signs=signs,
        tolerance=_ROUGHLY, max_steps=30,
    )  # fmt: skip
    # `where`: scores of rows without weight may overflow, and 0 times infinity is NaN.
    losses = arrays.check_weights * loss.value(arrays.target, weights @ design)
    return jnp.sum(jnp.where(arrays.check_weights > 0, losses, 0))


def _joint_risks(arrays: Arrays, fitted: Fitted, rows: Array, found: Array) -> Array:
    """R_s of classes fitted together, (sizes,); 0 for sizes that were not found.

    One size after another: the Hessian's blocks of one fit in the cache.
    """

    def risk(rule: Array) -> Array:
        design, ridge = fitted.with_rule(rule)
        weights = refitted(
            design, arrays.target, arrays.fit_weights, ridge, fitted.weights, tolerance=_ROUGHLY,
            max_steps=_JOINT_STEPS,
        )  # fmt: skip
        return arrays.check_weights @ softmax.value(arrays.target.T, (weights @ design).T)

    def one(size: tuple[Array, Array]) -> Array:
        rule, is_found = size
        return lax.cond(is_found, risk, lambda rule: jnp.zeros_like(fitted.l2_penalty), rule)

    return lax.map(one, (rows, found))


def _over_sizes(function: Callable[..., Any], columns: Array) -> Callable[..., Any]:
    """A function of one proposition for all of a lane: side by side, or one by one if there are
    many rows.
    """
    if columns.shape[1] < _MANY_ROWS:
        return jax.vmap(function)
    return lambda *each: lax.map(lambda one: function(*one), each)


def best_cuts(values: Array, gains: Array, used: Array) -> tuple[Array, Array]:
    """For every row of `values`, the cut of largest sum of gains over used ``value >= cut``; exact,
    by sorting.

    Args:
        values: (k, rows).
        gains: (rows,).
        used: (k, rows) bool; cuts lie midway between used values.

    Returns:
        The sums and the cuts, (k,); minus infinity where all used values are equal.
    """
    # Unused rows sort to the end, with gains of 0.
    keys = jnp.where(used, values, jnp.inf)
    order = jnp.argsort(keys, axis=1)
    keys = jnp.take_along_axis(keys, order, axis=1)
    sorted_gains = jnp.take_along_axis(jnp.where(used, gains[None], 0), order, axis=1)
    # above[i] sums the gains after place i: those that a cut between i and i + 1 selects.
    above = jnp.sum(sorted_gains, axis=1, keepdims=True) - jnp.cumsum(sorted_gains, axis=1)[:, :-1]
    # A cut lies between different values of used rows; infinity marks the unused ones.
    between = (keys[:, 1:] > keys[:, :-1]) & jnp.isfinite(keys[:, 1:])
    above = jnp.where(between, above, -jnp.inf)
    best = jnp.argmax(above, axis=1)[:, None]
    sums, low, high = (
        jnp.take_along_axis(array, at, axis=1)[:, 0]
        for array, at in ((above, best), (keys, best), (keys, best + 1))
    )
    return sums, jnp.where(jnp.isfinite(sums), (low + high) / 2, -jnp.inf)
