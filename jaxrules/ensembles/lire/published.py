"""The algorithm of the LIRE paper as its author's program runs it, in NumPy, as the reference for
our own search.

Algorithm 1 of Kanamori (2023) with what the published program (kelicht/lire) adds to the paper:

- rules enter as -1 / +1, so that a weight moves all rows (``encoding="binary"`` is Theorem 1 to the
  letter);
- the intercept is a column of ones, after the rules, penalised like a rule of coverage 1;
- the start is the L1-penalised logistic regression of liblinear with C = 1 / (gamma N);
- each move is followed by a refit. Rules of the support are tried in order of the number of their
  earlier failures, then of their column. A rule is deleted if that pays with the other weights
  fixed; otherwise it is replaced with the first outside rule, in ascending order, that is strictly
  better than its own best weight; otherwise it gets that weight. Nothing is ever added;
- outside rules are excluded by the interval of Theorem 1 as printed, even where that is wrong (C_m
  < 0);
- the refit is cyclic: at most ten sweeps, until the loss is within 1e-4 of that before the refit.
  As it only falls, it ends after the first sweep or not before the tenth;
- a weight of at most 1e-8 is 0. A refit that sets one to 0 leaves the mean coverage that later
  moves reckon with as it was.

It keeps every rule, equal ones included. Rows that no rule and no class distinguishes are one, and
the outside rules are evaluated in blocks, which changes sums by rounding only.
`jaxrules.lire.fit` finds lower objectives faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import TableLike
from jaxrules.ensembles.extraction import RulePool, RuleSource, depends_on_labels, rule_pool
from jaxrules.ensembles.in_time import FORESTS, model_in_time
from jaxrules.ensembles.lire.moves import Encoding
from jaxrules.ensembles.lire.objective import PUBLISHED
from jaxrules.ensembles.lire.options import LirePrices
from jaxrules.ensembles.lire.solution import LireSolution, PublishedDetails
from jaxrules.ensembles.lire.start import liblinear
from jaxrules.learning.in_time import rows_for_rules
from jaxrules.learning.options import FitOptions, learner, option, options, or_none
from jaxrules.learning.training import TrainingData, one_against_rest
from jaxrules.losses import exponential
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.constraints import Constraints
from jaxrules.rules.rows import check_memory
from jaxrules.tools import checks
from jaxrules.tools.fits import Fit, Status
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]

_SHARE_CLIP = 1e-10
_REFIT_SWEEPS = 10
_REFIT_TOLERANCE = 1e-4
_LEAST_WEIGHT = 1e-8
"""Smaller weights count as 0."""
_TIE = 1e-12
"""Rules that hold for the same rows are equally good in the author's sums, which have one order;
with sums in blocks they differ by rounding, some 1e-16.
"""
_BLOCK = 64
"""Outside rules that are evaluated together: few enough to stop early."""
_LIBLINEAR = 2e-7
"""Seconds that liblinear takes per entry of the matrix. It cannot be interrupted, so with less time
than that the search starts without it.
"""
_LINEAR = "sklearn.linear_model"
_LEAST = 3
"""Rules of a sample, or an intercept, that enter even if time has run out."""


@options
class PublishedLireOptions(FitOptions):
    """The options of `published`.

    Attributes:
        global_penalty: gamma, the penalty on a rule, at least 0. None: that of `jaxrules.lire.fit`.
        local_penalty: lambda, the penalty on mean coverage, at least 0. None: 2 gamma, as in the
            paper's experiments.
        rules: where candidate rules come from, as for `jaxrules.lire.fit`; "forest" is the paper's
            pool, None means "boosted_trees". Rules that hold for the same rows are all kept.
        forbidden: columns, by name or position, that no rule may use.
        encoding: how a rule enters: "signed" (-1 / +1, the author's program) or "binary" (0 / 1,
            the letter of Theorem 1).
        max_iterations: the paper's I, the most moves, each with a refit.
        seed: for the trees that rules come from, and for liblinear.
        time_limit: seconds; the best model so far is returned when they run out, see
            `jaxrules.Deadline`. With too little time for the L1 start, rules first enter one by
            one, the best first. With less than about a microsecond per entry of `X`, half of the
            time is spent on a model for a sample of the rows (``details["sample"]``), whose rules
            are the candidates on all rows.
    """

    learner = PUBLISHED

    global_penalty: float | None = option(or_none(checks.penalty), default=None)
    local_penalty: float | None = option(or_none(checks.penalty), default=None)
    rules: RuleSource | None = "forest"
    forbidden: Iterable[str | int] = ()
    encoding: Encoding = option(checks.choice, default="signed", known=get_args(Encoding))
    max_iterations: int = option(checks.integer, default=5000, at_least=1)


@learner(PublishedLireOptions)
def published(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: PublishedLireOptions
) -> Fit[RuleEnsemble]:
    """Fit a locally interpretable rule ensemble by the paper's algorithm, for comparison with
    `jaxrules.lire.fit`.

    It minimises the paper's G, the exponential loss without a ridge (see `jaxrules.lire`), from
    RuleFit's solution by deleting and replacing rules. The intercept counts as a rule that holds
    for every row, unless it is 0.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> result = published(X, X[:, 0] > 0, global_penalty=0.02)
    >>> result.model.conjunctions.describe(0)
    'x0 <= 0'

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, shape (rows,). More than two are fitted one-vs-rest, from one pool of rules: an
            ensemble with one output per class.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit without a bound, with `jaxrules.lire.PublishedDetails`. Its objective is G with the
        intercept counted, as computed by `jaxrules.lire.objective`. Weights of 0/1 rules stay below
        23.1. For more than two classes see `jaxrules.learning.training.one_against_rest`; the
        objective is the mean over the classes.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for an invalid value of an argument, rules built for other columns, or a pool of
            rules that does not fit in memory.

    References:
        Kanamori, "Learning locally interpretable rule ensemble", ECML PKDD 2023, Algorithm 1.
    """
    run = options.run()
    data = options.training_data(X, y, sample_weight, exponential)
    constraints = Constraints.of(data.table.schema, options.forbidden)
    constraints.warn_of_constants(data.table)
    prices = LirePrices.of(data, options.global_penalty, options.local_penalty, 0.0)

    rules = options.rules
    makes_rules, needs = depends_on_labels(rules), (FORESTS, _LINEAR)
    sample = rows_for_rules(data, run, options.seed, needs) if makes_rules else None
    if sample is not None:
        gamma, lam, _ = prices
        own = replace(options, global_penalty=gamma, local_penalty=lam)
        model, _ = model_in_time(sample, published, own, run, needs=needs)
        rules = model.conjunctions if len(model.conjunctions) else rules
    pool = rule_pool(rules, data, options.seed, run, constraints=constraints)
    size = None if sample is None else len(sample.weights)
    fit_output = partial(_fit_output, pool=pool, prices=prices, options=options, sample=size)
    return one_against_rest(data, run, fit_output)


def _fit_output(
    data: TrainingData,
    run: Run,
    *,
    pool: RulePool,
    prices: LirePrices,
    options: PublishedLireOptions,
    sample: int | None,
) -> Fit[RuleEnsemble]:
    """The author's algorithm for one output, until no move improves."""
    least = 0 if sample is None else _LEAST
    best, status = _searched(data, run, pool, prices, options, least)
    rules = best.weights[:-1]
    chosen = np.flatnonzero(rules)
    encoded = LireSolution(chosen, rules[chosen], float(best.weights[-1]))
    solution = encoded.in_zero_one(options.encoding)
    named = {"global_penalty": prices.global_penalty, "local_penalty": prices.local_penalty}
    details = PublishedDetails(
        paper_objective=best.objective, loss=solution.mean_loss(pool, data), **named,
        n_candidates=len(pool.rules), sample=sample,
    )  # fmt: skip
    model = solution.model(pool, data, options.settings(**named))
    return run.finish(model, best.objective, "min", status, details=details)


def _searched(
    data: TrainingData,
    run: Run,
    pool: RulePool,
    prices: LirePrices,
    options: PublishedLireOptions,
    least: int,
) -> tuple[PublishedIncumbent, Status]:
    """The last state, and the status that says why the algorithm ended.

    Args:
        least: the number of rules that enter even if time has run out.
    """
    activations = pool.activations
    # float64: encoded, with signs, and liblinear's two copies
    check_memory(activations.n_rows, activations.n_rules, 33.0)
    weight = data.weights / data.weights.sum()
    satisfied = activations.dense[activations.pattern]
    columns = encode(satisfied, options.encoding)
    coverage = np.append(weight @ satisfied, 1.0)
    short = run.deadline.work_left() < _LIBLINEAR * columns.size or not run.may_import(_LINEAR)
    different, mass = _different_rows(activations.pattern, data.target, weight)
    signs = columns[:, different]
    signs *= data.target[different]
    gamma, lam, _ = prices
    begin = partial(PublishedSearch, signs, mass, coverage, gamma, lam)
    state, status = begin(np.zeros(len(columns))), Status.MAX_ITERATIONS
    kept = _Kept(run, state)
    with run:
        run.phase = "start"
        if short:
            run.shortened = True
            while (len(state.support) < least or not run.stopped()) and state.add():
                pass
        elif not run.stopped():
            state = begin(rulefit_start(columns, data.target, weight, gamma, options.seed))
        if state.weights.any():
            kept(state)
        run.phase = "search"
        for _ in range(options.max_iterations):
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
    return kept.best, status


def _different_rows(
    pattern: NDArray[np.int64], target: Floats, weight: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """One row of each pattern and class, and the weight of all of its kind."""
    kind = 2 * pattern + (target > 0)
    _, first, inverse = np.unique(kind, return_index=True, return_inverse=True)
    return first, np.bincount(inverse, weights=weight)


class PublishedIncumbent(NamedTuple):
    """Weights of the encoded rules, the intercept last, shape (rules + 1,), and G."""

    weights: Floats
    objective: float


class _Kept:
    """Keeps the last state between two moves, so that a deadline or Ctrl-C loses nothing, and
    reports to the run.
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
        signs: encoded rules times the target (-1 or +1), shape (rules + 1, rows); the last row is
            for the intercept's column of ones.
        sample_weight: sums to 1, shape (rows,).
        coverage: share of rows that each column covers, shape (rules + 1,); 1 for the intercept.
        gamma, lam: global and local penalty.
        weights: shape (rules + 1,).
    """

    signs: Floats
    sample_weight: Floats
    coverage: Floats
    gamma: float
    lam: float
    weights: Floats

    def __post_init__(self) -> None:
        self.row_loss = self.sample_weight * np.exp(-(self.weights @ self.signs))
        self.weights = np.where(np.abs(self.weights) > _LEAST_WEIGHT, self.weights, 0.0)
        self.failures = np.zeros(len(self.weights), np.int64)
        self._moves_all_rows = bool(self.signs.all())  # as -1 / +1 columns do
        self.local = self.local_ratio(self.support)
        """Omega_L as the moves reckon with it; a refit does not change it."""

    @property
    def support(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.weights)

    def local_ratio(self, support: NDArray[np.int64]) -> float:
        """Omega_L: the mean coverage of the support; 0 when it is empty."""
        return float(self.coverage[support].mean()) if len(support) else 0.0

    def objective(self) -> float:
        """G: mean loss + gamma |supp| + lambda Omega_L."""
        support = self.support
        penalty = self.gamma * len(support)
        return float(self.row_loss.sum() + penalty + self.lam * self.local_ratio(support))

    def incumbent(self) -> PublishedIncumbent:
        """The weights as they are now."""
        return PublishedIncumbent(self.weights.copy(), self.objective())

    def iterate(self, stopped: Callable[[], bool]) -> bool:
        """One iteration of Algorithm 1: the first move that improves, and a refit. Returns whether
        there was one.
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
        """Add the column that lowers the objective most, with its best weight. Returns whether one
        does.

        This is not part of the algorithm: it replaces the start if time is short.
        """
        slopes = self.signs @ self.row_loss
        moved = np.array([np.abs(column) @ self.row_loss for column in self.signs])
        sides = np.stack([moved + slopes, moved - slopes], axis=1) / 2
        weights, decreases = np.transpose([_best_weight(*pair) for pair in sides.tolist()])
        support = self.support
        gains = decreases - self.gamma
        gains -= self.lam * (self.coverage - self.local_ratio(support)) / (len(support) + 1)
        gains[support] = 0.0
        best = int(gains.argmax())
        if gains[best] <= 0:
            return False
        self._set_weight(best, float(weights[best]))
        self.local = self.local_ratio(self.support)
        return True

    def refit(self) -> None:
        """Cyclic coordinate descent on the loss over the support."""
        support, before = self.support.tolist(), self.row_loss.sum()
        for _ in range(_REFIT_SWEEPS):
            for m in support:
                self._set_weight(m, _best_weight(*self._split(m))[0])
            if abs(before - self.row_loss.sum()) < _REFIT_TOLERANCE:
                return

    def _delete_or_replace(self, m: int, support: NDArray[np.int64]) -> bool:
        """Delete rule m, replace it, or give it its best weight. Returns whether the support
        changed.
        """
        self._set_weight(m, 0.0)
        size = len(support)
        others = self.local * size - self.coverage[m]
        local = others / (size - 1) if size > 1 else 0.0
        # Lemma 1: C_j of every rule that could take m's place, and of m itself
        increase = self.gamma + self.lam * (self.coverage - local) / size
        weight, decrease = _best_weight(*self._split(m))
        if decrease <= increase[m]:  # Theorem 1: m does not pay for itself
            self.local = local
            return True
        replacement = self._first_better(decrease - increase[m], increase, support)
        if replacement is None:
            self._set_weight(m, weight)
            return False
        j, weight = replacement
        self._set_weight(j, weight)
        self.local = (others + self.coverage[j]) / size
        return True

    def _first_better(
        self, gain: float, increase: Floats, support: NDArray[np.int64]
    ) -> tuple[int, float] | None:
        """The first rule outside of the support that lowers the objective by more, and its weight.

        Args:
            gain: what the deleted rule is worth, with its best weight.
            increase: C_j, shape (rules + 1,).
        """
        outside = np.ones(len(self.weights), np.bool_)
        outside[support] = False
        for start in range(0, len(outside), _BLOCK):
            block = slice(start, start + _BLOCK)
            slopes = self.signs[block] @ self.row_loss
            moved = self._moved(block)
            better = _better(moved, slopes, increase[block], gain) & outside[block]
            if better.any():
                j = start + int(better.argmax())
                return j, _best_weight(*self._split(j))[0]
        return None

    def _set_weight(self, m: int, weight: float) -> None:
        weight = weight if abs(weight) > _LEAST_WEIGHT else 0.0
        change = weight - self.weights[m]
        if change:
            helped, harmed = np.exp([-change, change])
            factors = np.where(self.signs[m] > 0, helped, harmed)
            if not self._moves_all_rows:
                factors[self.signs[m] == 0] = 1.0
            self.row_loss = self.row_loss * factors
            self.weights[m] = weight

    def _moved(self, columns: slice) -> Floats:
        """Loss on the rows that these columns move, shape (columns,)."""
        if self._moves_all_rows:
            return np.full(len(self.weights[columns]), self.row_loss.sum())
        found: Floats = np.abs(self.signs[columns]) @ self.row_loss
        return found

    def _split(self, m: int) -> tuple[float, float]:
        """Loss on the rows that column m, with a positive weight, helps and harms; as if its weight
        were 0.
        """
        loss, signs, weight = self.row_loss, self.signs[m], float(self.weights[m])
        moved = float(loss.sum() if self._moves_all_rows else loss @ np.abs(signs))
        slope = float(loss @ signs)
        return (moved + slope) / 2 * math.exp(weight), (moved - slope) / 2 * math.exp(-weight)


def _best_weight(helped: float, harmed: float) -> tuple[float, float]:
    """Theorem 1: the weight 1/2 ln((1 - eps-) / eps-), and the decrease of the loss."""
    total = helped + harmed
    share = min(max(harmed / total, _SHARE_CLIP), 1 - _SHARE_CLIP) if total > 0 else 0.5
    return 0.5 * math.log((1 - share) / share), total * (1 - 2 * math.sqrt(share * (1 - share)))


def _better(moved: Floats, slopes: Floats, increase: Floats, gain: float) -> NDArray[np.bool_]:
    """Which rules lower the objective by more than `gain` and lie outside of the interval of
    Theorem 1 as printed; if its interval has no real ends (C_m < 0), none does.

    Args:
        moved, slopes: loss on the rows that a rule helps and harms, sum and difference.
        increase: C_m.
    """
    square = increase * (2 * moved - increase)
    real = (square >= 0) & (moved > 0)
    moved, square = np.where(real, moved, 1.0), np.where(real, square, 0.0)
    share = np.clip((moved - slopes) / (2 * moved), _SHARE_CLIP, 1 - _SHARE_CLIP)
    outside = np.abs(share - 0.5) > np.sqrt(square) / (2 * moved)
    saved = moved * (1 - 2 * np.sqrt(share * (1 - share)))
    better: NDArray[np.bool_] = real & outside & (saved - increase > gain + _TIE)
    return better


def encode(satisfied: NDArray[np.bool_], encoding: Encoding) -> Floats:
    """The encoded rules and the column of ones, shape (rules + 1, rows)."""
    columns = np.ones((satisfied.shape[1] + 1, satisfied.shape[0]))
    columns[:-1] = satisfied.T
    if encoding == "signed":
        columns[:-1] *= 2
        columns[:-1] -= 1
    return columns


def rulefit_start(
    columns: Floats, target: Floats, sample_weight: Floats, gamma: float, seed: int
) -> Floats:
    """Weights of the L1-penalised logistic regression. As in the author's program they are not
    rescaled, although its log-odds are twice LIRE's score.

    Args:
        columns: encoded rules, shape (rules + 1, rows).
        target: -1 or +1, shape (rows,).
        sample_weight: sums to 1, shape (rows,).
        gamma: the global penalty; liblinear's C is 1 / (gamma N). Without a penalty C is 1e6.
        seed: for liblinear's coordinate order.
    """
    strength = min(1 / gamma, float(np.finfo(float).max)) if gamma else 1e6
    return liblinear(
        columns.T, target, sample_weight, strength, seed=seed, fit_intercept=False, max_iter=100
    )
