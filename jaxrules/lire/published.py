"""The algorithm of the LIRE paper as its author's program runs it, in NumPy: the
reference for our own search.

Algorithm 1 of Kanamori (2023) with what the published program (kelicht/lire) adds to the paper:

- rules enter as -1 / +1, so that a weight moves all rows (``encoding="binary"`` is
  Theorem 1 to the letter);
- the intercept is a column of ones, penalised like a rule of coverage 1;
- the start is the L1-penalised logistic regression of liblinear with C = 1 / (gamma N);
- one move, then a refit: rules of the support are tried in the order of how often they failed
  before. A rule is deleted if that pays with the other weights fixed, else its weight is set to
  the best, else it is replaced by the first outside rule, in ascending order, that is strictly
  better; nothing is ever added;
- an outside rule is left out by the printed interval of Theorem 1, also
  where that is wrong (C_m < 0);
- the refit is cyclic: at most ten sweeps, until a sweep changes the loss by less than 1e-4.

It keeps every row and every rule, equal ones included, and looks at the outside rules one by one.
`jaxrules.lire.fit` finds lower objectives faster.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.constraints import Constraints
from jaxrules.cross_validation import options_of_fit, rows_of
from jaxrules.ensembles.extraction import RulePool, RuleSource, depends_on_labels, rule_pool
from jaxrules.fits import Fit, Status
from jaxrules.guard import guarded
from jaxrules.lire.moves import Encoding
from jaxrules.lire.objective import PUBLISHED
from jaxrules.lire.options import Prices
from jaxrules.lire.solution import Solution
from jaxrules.lire.start import liblinear
from jaxrules.losses import exponential
from jaxrules.models import RuleEnsemble
from jaxrules.rows import check_memory
from jaxrules.runs import Deadline, ProgressOption, Run
from jaxrules.table import MissingRule
from jaxrules.training import (
    TrainingData,
    one_against_rest,
    sample_in_time,
    settings,
    training_data,
)

Floats = NDArray[np.float64]

_SHARE_CLIP = 1e-10
_REFIT_SWEEPS = 10
_REFIT_TOLERANCE = 1e-4
_LIBLINEAR = 2e-7
"""Seconds that liblinear takes per entry of the matrix, which cannot be cut in two: with less time
left the search does without this start.
"""


@guarded
def published(
    X: Any,
    y: ArrayLike,
    *,
    global_penalty: float | None = None,
    local_penalty: float | None = None,
    rules: RuleSource | None = "forest",
    forbidden: Iterable[str | int] = (),
    encoding: Encoding = "signed",
    max_iterations: int = 5000,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: ProgressOption = False,
) -> Fit[RuleEnsemble]:
    """Fit a locally interpretable rule ensemble by the paper's algorithm: for comparisons
    with `jaxrules.lire.fit`.

    It minimises the paper's G, the exponential loss without a ridge (see `jaxrules.lire`), from
    RuleFit's solution by deleting and replacing rules. The intercept counts as a rule that covers
    every row while it is not 0.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, shape (rows,). More than two are fitted one against the rest: an ensemble of an
            output per class, from one pool of rules.
        global_penalty: gamma, the price of a rule, at least 0. None: that of `jaxrules.lire.fit`.
        local_penalty: lambda, the price of mean coverage, at least 0. None: 2 gamma, as
            in the paper's experiments.
        rules: where candidate rules come from, as in `jaxrules.lire.fit`; "forest" is the
            paper's pool, None stands for "boosted_trees". None of them is left out because
            another holds on the same rows.
        forbidden: columns, by name or position, that no rule uses.
        encoding: how a rule enters: "signed" (-1 / +1, the author's program) or "binary" (0 / 1,
            the letter of Theorem 1).
        max_iterations: the paper's I: moves, each with a refit.
        sample_weight: weight of every row, shape (rows,).
        missing: rule for missing values, see `jaxrules.as_table`.
        seed: of the trees that rules come from, and of liblinear.
        time_limit: seconds; the best model so far is returned when they are over, see
            `jaxrules.Deadline`. With too little for the start rules enter one by one, the best
            first, before the algorithm begins. With less than about a microsecond per entry of `X`
            the rules are those of a model that is fitted, in half of the time, to a sample of the
            rows (``details["sample"]``).
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit whose objective is G with the intercept counted, as `jaxrules.lire.objective` has it;
        without a bound. Weights of 0/1 rules stay below 23.1. ``details``: paper_objective (G),
        loss (without any price), n_candidates (rules in the pool), sample (rows that the rules come
        from, None for all), global_penalty, local_penalty. With more than two classes see
        `jaxrules.training.one_against_rest`; the objective is the mean over the classes.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for a bad value of an argument, rules of other columns, or a pool of rules that
            does not fit into memory.

    References:
        Kanamori, "Learning locally interpretable rule ensemble", ECML PKDD 2023, Algorithm 1.
    """
    made = settings(PUBLISHED, locals())
    same = options_of_fit(locals(), published)
    gamma = checks.optional(checks.penalty, "global_penalty", global_penalty)
    lam = checks.optional(checks.penalty, "local_penalty", local_penalty)
    encoding = checks.choice("encoding", encoding, get_args(Encoding))
    max_iterations = checks.integer("max_iterations", max_iterations, at_least=1)
    seed = checks.seed(seed)
    run = Run(PUBLISHED, time_limit, progress)
    data = training_data(X, y, exponential, sample_weight=sample_weight, missing=missing)
    constraints = Constraints.of(data.table.schema, forbidden)
    constraints.warn_of_constants(data.table)
    prices = Prices.of(data, gamma, lam, 0.0)

    # In little time the rules are those of a model of some rows
    some = sample_in_time(data, run, seed) if depends_on_labels(rules) else None
    if some is not None:
        same |= {"global_penalty": prices.global_penalty, "local_penalty": prices.local_penalty}
        same |= {"forbidden": tuple(constraints.forbidden)}
        found_there = published(
            **rows_of(some), **same, time_limit=run.child(0.5).deadline
        ).model.conjunctions
        rules, run.shortened = found_there if len(found_there) else rules, True

    pool = rule_pool(rules, data, seed, run, constraints=constraints)
    fit_output = partial(
        _fit_output,
        pool=pool,
        prices=prices,
        encoding=encoding,
        max_iterations=max_iterations,
        seed=seed,
        options=made,
    )
    found = one_against_rest(data, run, fit_output)
    return dataclasses.replace(
        found, details={**found.details, "sample": None if some is None else len(some.weights)}
    )


def _fit_output(
    data: TrainingData,
    run: Run,
    *,
    pool: RulePool,
    prices: Prices,
    encoding: Encoding,
    max_iterations: int,
    seed: int,
    options: dict[str, Any],
) -> Fit[RuleEnsemble]:
    """The author's algorithm for one output, until no move improves."""
    activations = pool.activations
    # float64: encoded, with signs, and liblinear's two copies
    check_memory(activations.n_rows, activations.n_rules, 33.0)
    weight = data.weights / data.weights.sum()
    satisfied = activations.dense[activations.pattern]
    columns = encode(satisfied, encoding)
    coverage = np.concatenate([[1.0], weight @ satisfied])
    short = run.deadline.remaining() < _LIBLINEAR * columns.size
    signs = np.multiply(columns, data.target, out=columns if short else None)
    begin = partial(
        PublishedSearch, signs, weight, coverage, prices.global_penalty, prices.local_penalty
    )
    state, status = begin(np.zeros(len(columns))), Status.MAX_ITERATIONS
    kept = _Kept(run, state)
    with run:
        run.phase = "start"
        if short:
            run.shortened = True
            while not run.stopped() and state.add():
                pass
        elif not run.stopped():
            state = begin(rulefit_start(columns, data.target, weight, prices.global_penalty, seed))
        if state.weights.any():
            kept(state)
        run.phase = "search"
        for _ in range(max_iterations):
            if run.stopped():
                break
            changed = state.iterate(run.stopped)
            kept(state)
            if not changed:
                status = Status.CONVERGED
                break
        if not run.stopped():
            state.refit()
            kept(state)
    best = kept.best
    rules = np.flatnonzero(best.weights[1:])
    solution = Solution(rules, best.weights[1:][rules], float(best.weights[0])).in_zero_one(
        encoding
    )
    named = {"global_penalty": prices.global_penalty, "local_penalty": prices.local_penalty}
    return run.finish(
        solution.model(pool, data, {**options, **named}),
        best.objective,
        "min",
        status,
        n_candidates=len(pool.rules),
        **named,
        loss=solution.mean_loss(pool, data),
        paper_objective=best.objective,
    )


class Incumbent(NamedTuple):
    """Weights of the encoded rules, the intercept first, shape (1 + rules,), and G."""

    weights: Floats
    objective: float


class _Kept:
    """Keeps the last state between two moves, so that a deadline or Ctrl-C loses
    nothing, and tells the run.
    """

    def __init__(self, run: Run, state: PublishedSearch) -> None:
        self.run, self.best = run, state.incumbent()

    def __call__(self, state: PublishedSearch) -> None:
        self.best = state.incumbent()
        self.run.step(self.best.objective, len(state.support))


@dataclass(eq=False)
class PublishedSearch:
    """State of the algorithm.

    Attributes:
        signs: encoded rules times the target (-1 or +1), shape (1 + rules, rows); first the
            intercept's column of ones.
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
        return float(
            self.row_loss.sum() + self.gamma * len(support) + self.lam * self.local_ratio(support)
        )

    def incumbent(self) -> Incumbent:
        """The weights as they are now."""
        return Incumbent(self.weights.copy(), self.objective())

    def iterate(self, stopped: Callable[[], bool]) -> bool:
        """One iteration of Algorithm 1: the first move that improves, and a
        refit; whether there was one.
        """
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
        weights, decreases = np.transpose(
            [_best_weight(helped, harmed) for helped, harmed in sides.tolist()]
        )
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
        # Lemma 1: C_j of every rule that would take m's place, and of m itself
        increase = self.gamma + self.lam * (self.coverage - local) / len(support)
        weight, decrease = _best_weight(*self._split(m))
        if decrease <= increase[m]:  # Theorem 1: m does not pay for itself
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
        moved, slope = (
            float(self.row_loss @ np.abs(self.signs[m])),
            float(self.row_loss @ self.signs[m]),
        )
        return (moved + slope) / 2, (moved - slope) / 2


def _best_weight(helped: float, harmed: float) -> tuple[float, float]:
    """Theorem 1: the weight 1/2 ln((1 - eps-) / eps-) and how much the loss falls."""
    total = helped + harmed
    share = min(max(harmed / total, _SHARE_CLIP), 1 - _SHARE_CLIP) if total > 0 else 0.5
    return 0.5 * math.log((1 - share) / share), total * (1 - 2 * math.sqrt(share * (1 - share)))


def _inside_interval(helped: float, harmed: float, increase: float) -> bool:
    """Whether Theorem 1 as printed leaves the rule out: also where its interval
    has no real ends (C_m < 0).
    """
    total = helped + harmed
    square = increase * (2 * total - increase)
    if total <= 0 or square < 0:
        return True
    return abs(harmed / total - 0.5) <= math.sqrt(square) / (2 * total)


def encode(satisfied: NDArray[np.bool_], encoding: Encoding) -> Floats:
    """The column of ones and the encoded rules, shape (1 + rules, rows)."""
    columns = np.ones((1 + satisfied.shape[1], satisfied.shape[0]))
    columns[1:] = satisfied.T
    if encoding == "signed":
        columns[1:] *= 2
        columns[1:] -= 1
    return columns


def rulefit_start(
    columns: Floats, target: Floats, sample_weight: Floats, gamma: float, seed: int
) -> Floats:
    """Weights of the L1-penalised logistic regression, as they are: the log-odds are twice
    LIRE's score, but no matter.

    Args:
        columns: encoded rules, shape (1 + rules, rows).
        target: -1 or +1, shape (rows,).
        sample_weight: sums to 1, shape (rows,).
        gamma: the global penalty; liblinear's C is 1 / (gamma N). Without a penalty C is 1e6.
        seed: of liblinear's coordinate order.
    """
    return liblinear(
        columns.T,
        target,
        sample_weight,
        1 / gamma if gamma else 1e6,
        seed=seed,
        fit_intercept=False,
        max_iter=100,
    )
