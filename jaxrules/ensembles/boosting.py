"""Rule boosting with an exact base learner.

Boley, Teshuva, Le Bodic and Webb, "Better Short than Greedy: Interpretable Models through Optimal Rule
Boosting" (SIAM SDM 2021). The regularised risk (2.1) of an ensemble f = sum_t w_t q_t,

    mean_i l(y_i, f(x_i)) + l2_penalty / (2 n) sum_t w_t^2,

is reduced one rule at a time. With g and h the first and second derivatives of the loss at the current scores, rule t
maximises over conjunctions q of propositions (sums run over the rows that q selects)

    "second_order"   (sum g)^2 / (2 n (l2_penalty + sum h))                    (2.3)
    "gradient_sum"   |sum g|
    "orthogonal"     |sum g| / (||q_perp|| + epsilon)          Yang et al., AISTATS 2024 (arXiv 2402.15691)

and gets the weight w = -sum g / (l2_penalty + sum h) (2.2), or all weights are refitted (``corrective=True``, which
the orthogonal objective is made for: its gradient is projected off the rules that were found). With sample
weights, g and h are multiplied by them and n is their sum.

The exact search is a compiled branch and bound with a bound that is tighter and cheaper than the paper's; the
mandatory-rows bound is stated and proved in docs/mandatory-rows-bound.md. Every stage states its proved
optimality gap. XGBoost's ``reg_lambda`` is l2_penalty for the logistic loss and half of it for squared error, which
XGBoost halves.

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
>>> y = 3.0 * X[:, 0] * X[:, 1]
>>> result = fit(X, y, max_rules=1, l2_penalty=0.0)
>>> result.model.conjunctions.describe(0), float(result.model.weights[0, 0]), round(result.details["stages"][0].gap, 6)
('x0 >= 1 & x1 >= 1', 3.0, 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.conditions import PropositionPool, propositions_of
from jaxrules.losses import Loss, LossFunction, best_constant, check_target, derivatives, loss_by_name
from jaxrules.models import RuleEnsemble
from jaxrules.results import Deadline, Fit, ProgressOption, Run, Status
from jaxrules.solvers.linear.refit import refit_weights
from jaxrules.solvers.rule_search import depth_first as rule_search
from jaxrules.solvers.rule_search.depth_first import Found, SearchSpace
from jaxrules.table import MissingRule, Table, as_table, binary_target, check_sample_weight, regression_target

Objective = Literal["second_order", "gradient_sum", "orthogonal"]
Search = Literal["optimal", "greedy", "beam", "published"]
Floats = NDArray[np.float64]

_SMALLEST_CURVATURE = 1e-8
"""With l2_penalty = 0 curvatures are raised to this share of the largest one, so that (2.3) stays finite."""
_NOTHING_LEFT = 1e-14
"""A rule must promise to reduce the risk, by (2.3), by more than this share of it; less is rounding."""


@dataclass(frozen=True)
class Stage:
    """How one rule was found.

    Attributes:
        objective: the value of the stage's objective; the rule's gain.
        bound: proved upper bound over all conjunctions, None for greedy and beam search. A finished search
            states its tolerance: objectives within 1e-10 relative are ties.
        status: OPTIMAL, CONVERGED (greedy, beam, or an approximation below 1), TIME_LIMIT, MAX_ITERATIONS
            (max_evaluations) or INTERRUPTED.
        weight: the rule's weight when it was added.
        length: number of propositions.
        evaluations: objective evaluations of the search.
        counts: search nodes and pruning activations by mechanism.
        seconds: of the search.
    """

    objective: float
    bound: float | None
    status: Status
    weight: float
    length: int
    evaluations: int
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """(bound - objective) / objective, or None without a certificate."""
        if self.bound is None:
            return None
        return abs(self.bound - self.objective) / max(self.objective, 1e-12)


def fit(
    X: Any,
    y: ArrayLike,
    *,
    loss: Literal["squared", "logistic", "poisson", "exponential"] | Loss | LossFunction = "squared",
    objective: Objective = "second_order",
    search: Search = "optimal",
    max_rules: int = 10,
    l2_penalty: float = 1.0,
    corrective: bool = False,
    intercept: bool = False,
    propositions: PropositionPool | None = None,
    max_length: int | None = None,
    max_cut_points: int | None = None,
    time_limit: float | Deadline | None = None,
    approximation: float = 1.0,
    max_evaluations: int | None = None,
    sample_weight: ArrayLike | None = None,
    missing: MissingRule = "refuse",
    seed: int = 0,
    progress: ProgressOption = False,
) -> Fit[RuleEnsemble]:
    """Boost rules, each of them best possible.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: numbers for "squared" and user losses, counts for "poisson", two classes for "logistic" and
            "exponential", shape (rows,). For more classes fit one against the rest.
        loss: a name, or a function of (y, score) made of JAX operations, convex and twice differentiable in
            the score.
        objective: what a rule maximises, see the module.
        search: "optimal"; "greedy", the paper's comparison; "beam" (width 10); or "published", the paper's
            own Algorithm 1, slow, with the pruning counts of its Table 2.
        max_rules: the number of rules; fewer when no rule reduces the risk any more.
        l2_penalty: the paper's lambda >= 0, against sums over rows. With 0, curvatures are raised to 1e-8 of
            the largest, because saturated rows of the logistic loss have almost none.
        corrective: refit all weights after every rule, instead of keeping those found before.
        intercept: start from the best constant. The paper starts from 0, the default; there the empty
            conjunction, true everywhere, is a candidate rule.
        propositions: the propositions to build rules from; None takes `jaxrules.conditions.propositions_of`.
        max_length: the most propositions of a rule.
        max_cut_points: the most cut points per numeric column, quantiles; None takes every value.
        time_limit: seconds for the whole fit. Every stage may take an equal share of what is left; one that
            runs out of time adds its best rule so far, states its gap, and the next stage begins.
        approximation: alpha in (0, 1]: each rule's objective is at least alpha times the optimum.
        max_evaluations: limit per rule on objective evaluations.
        sample_weight: weight of every row, shape (rows,).
        missing: rule for missing values, see `jaxrules.as_table`.
        seed: unused, the search is deterministic; every learner takes it.
        progress: True for a bar, or a function of one `jaxrules.Progress`.

    Returns:
        A Fit whose objective is the regularised risk (2.1). ``details``: "stages", one `Stage` per rule
        (objective, bound, gap, evaluations, pruning counts); "propositions", their number; "risks", the
        regularised risk after 0, 1, ... rules.

    Raises:
        ValueError: for bad values in any argument, a target that the loss is not defined for, more
            propositions than memory allows, a loss with negative curvature or non-finite derivatives.
        TypeError: for arguments of the wrong type.
    """
    run = Run("boosting", time_limit, progress, total=max_rules)
    options = _Options(objective, search, max_length, approximation, max_evaluations)
    _check(options, max_rules, l2_penalty, corrective, intercept)
    chosen = loss_by_name(loss)
    table = as_table(X, missing=missing)
    target, classes = _target(chosen, y, table.n_rows)
    weight = check_sample_weight(sample_weight, table.n_rows)
    used = weight > 0
    table, target, weight = table[used], target[used], weight[used]
    if propositions is None:
        _check_size(table, max_cut_points)
        pool = propositions_of(table, max_cut_points=max_cut_points)
    else:
        pool = _given(propositions, table)
    space = SearchSpace.of_codes(*pool.cell_codes(table))
    state = _Ensemble(chosen, target, weight, float(l2_penalty), corrective, intercept)
    risks = [state.risk()]
    stages: list[Stage] = []
    with run:
        for rule in range(max_rules):
            if run.stopped():
                break
            stage = run.child(1 / (max_rules - rule))
            found = _search(space, state, options, stage.stopped)
            seconds = stage.seconds()
            rows = space.selected(found.propositions)
            rule_weight = state.add(found.propositions, rows)
            if not state.gain > _NOTHING_LEFT * abs(risks[0]):
                state.drop()
                break
            why = stage.limit or found.status if found.status is Status.TIME_LIMIT else found.status
            length = len(found.propositions)
            stages.append(
                Stage(found.objective, found.bound, why, rule_weight, length, found.evaluations, seconds, found.counts)
            )
            risks.append(state.risk())
            run.step(risks[-1], len(stages))
    conjunctions = pool.conjunctions(state.rules, table.schema.with_classes(classes))
    described = (("learner", "boosting"), ("loss", chosen.name), ("l2_penalty", float(l2_penalty)))
    model = RuleEnsemble(
        conjunctions,
        np.array(state.weights).reshape(-1, 1),
        np.array([state.intercept]),
        None,
        chosen.link,
        described,
        chosen.name,
    )
    limits = [s for s in (Status.TIME_LIMIT, Status.MAX_ITERATIONS) if any(stage.status is s for stage in stages)]
    status = limits[0] if limits else Status.CONVERGED
    return run.finish(model, risks[-1], "min", status, stages=tuple(stages), propositions=len(pool), risks=tuple(risks))


@dataclass(frozen=True)
class _Options:
    objective: str
    search: str
    max_length: int | None
    approximation: float
    max_evaluations: int | None


def _check(options: _Options, max_rules: int, l2_penalty: float, corrective: bool, intercept: bool) -> None:
    if options.objective not in ("second_order", "gradient_sum", "orthogonal"):
        raise ValueError(f'objective must be "second_order", "gradient_sum" or "orthogonal", got {options.objective!r}')
    if options.search not in ("optimal", "greedy", "beam", "published"):
        raise ValueError(f'search must be "optimal", "greedy", "beam" or "published", got {options.search!r}')
    counts = {"max_rules": max_rules, "max_length": options.max_length, "max_evaluations": options.max_evaluations}
    for name, value in counts.items():
        if value is None and name != "max_rules":
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if not (isinstance(l2_penalty, (int, float, np.number)) and math.isfinite(l2_penalty) and l2_penalty >= 0):
        raise ValueError(f"l2_penalty must be a finite number of at least 0, got {l2_penalty!r}")
    if not (isinstance(options.approximation, (int, float, np.number)) and 0 < options.approximation <= 1):
        raise ValueError(f"approximation must lie in (0, 1], got {options.approximation!r}")
    for name, flag in {"corrective": corrective, "intercept": intercept}.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be True or False, got {type(flag).__name__}")
    if options.search == "published":
        if options.max_length is not None:
            raise ValueError(
                'max_length does not go with search="published": its core queries are not the shortest; '
                'use search="optimal"'
            )
        if options.objective == "orthogonal":
            raise ValueError('objective="orthogonal" does not go with search="published"; use search="optimal"')


def _target(loss: Loss, y: ArrayLike, n_rows: int) -> tuple[Floats, tuple[Any, ...] | None]:
    """y in the loss's coding, and the classes (None for numbers)."""
    if loss.target == "sign":
        target, classes = binary_target(y, n_rows)
        return 2.0 * target - 1.0, classes
    target = regression_target(y, n_rows)
    check_target(loss, target)
    return target, None


def _check_size(table: Table, max_cut_points: int | None) -> None:
    """Refuse more propositions than memory allows, before they are made."""
    total = 0
    for feature, column in zip(table.schema.features, table.columns, strict=True):
        if feature.categories is None:
            distinct = len(np.unique(column))
            total += 2 * distinct if max_cut_points is None else min(2 * distinct, 4 * max_cut_points)
        else:
            total += 2 * len(feature.categories)
    rule_search.check_memory(table.n_rows, total)


def _given(propositions: PropositionPool, table: Table) -> PropositionPool:
    if not isinstance(propositions, PropositionPool):
        raise TypeError(f"propositions must be a PropositionPool, got {type(propositions).__name__}")
    if propositions.schema.features != table.schema.features:
        raise ValueError("propositions speak of other columns than X has; build them from the same table")
    return propositions.distinct(table)


class _Ensemble:
    """The rules so far: their weights, the scores of the training rows, and the derivatives of the loss there."""

    def __init__(
        self, loss: Loss, y: Floats, sample_weight: Floats, l2_penalty: float, corrective: bool, intercept: bool
    ) -> None:
        self.loss, self.y, self.sample_weight = loss, y, sample_weight
        self.l2_penalty, self.corrective, self.has_intercept = l2_penalty, corrective, intercept
        self.total_weight = float(sample_weight.sum())
        self.intercept = best_constant(loss, y, sample_weight) if intercept else 0.0
        self.rules: list[tuple[int, ...]] = []
        self.extents: list[NDArray[np.bool_]] = []
        self.weights: list[float] = []
        self.scores = np.full(len(y), self.intercept)
        self.gain = 0.0  # what the last rule promised, (2.3)
        self._derivatives: tuple[Floats, Floats, Floats] | None = None  # the scores they belong to, g, h
        self._before: tuple[list[float], float, Floats] = ([], self.intercept, self.scores)

    def derivatives(self) -> tuple[Floats, Floats]:
        """Weighted gradient and curvature per row; the curvature is safe to divide by with l2_penalty = 0."""
        if self._derivatives is not None and self._derivatives[0] is self.scores:
            return self._derivatives[1:]
        g, h = derivatives(self.loss, self.y, self.scores)
        if self.l2_penalty == 0.0:
            largest = float(h.max())
            if largest == 0.0:
                raise ValueError("l2_penalty must be positive: the loss has no curvature at any row")
            h = np.maximum(h, _SMALLEST_CURVATURE * largest)
        self._derivatives = (self.scores, self.sample_weight * g, self.sample_weight * h)
        return self._derivatives[1:]

    def span(self) -> NDArray[np.bool_]:
        """The extents of the rules, and of the intercept: bool (rows, rules)."""
        everything = [np.ones(len(self.y), bool)] if self.has_intercept else []
        columns = everything + self.extents
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.y), 0), bool)

    def add(self, rule: tuple[int, ...], rows: NDArray[np.bool_]) -> float:
        """Append a rule, give it the weight (2.2), refit all weights if asked to; returns its weight."""
        g, h = self.derivatives()
        denominator = self.l2_penalty + float(h[rows].sum())
        weight = -float(g[rows].sum()) / denominator if denominator > 0 else 0.0
        self.gain = 0.5 * weight**2 * denominator / self.total_weight
        self._before = (list(self.weights), self.intercept, self.scores)
        self.rules.append(rule)
        self.extents.append(rows)
        self.weights.append(weight)
        self.scores = self.scores + weight * rows
        if self.corrective and weight != 0.0:
            extents = np.stack(self.extents, axis=1)
            weights, self.intercept = refit_weights(
                self.loss, self.y, extents, l2_penalty=self.l2_penalty, intercept=self.has_intercept,
                sample_weight=self.sample_weight, start=(np.array(self.weights), self.intercept),
            )  # fmt: skip
            self.weights = weights.tolist()
            self.scores = self.intercept + extents @ weights
        return self.weights[-1]

    def drop(self) -> None:
        """Take back the last `add`."""
        self.rules.pop()
        self.extents.pop()
        self.weights, self.intercept, self.scores = self._before

    def risk(self) -> float:
        """The regularised risk (2.1)."""
        penalty = self.l2_penalty / (2.0 * self.total_weight) * sum(weight**2 for weight in self.weights)
        losses = np.asarray(self.loss.value(self.y, self.scores))
        return float(self.sample_weight @ losses) / self.total_weight + penalty


def _search(space: SearchSpace, state: _Ensemble, options: _Options, stopped: Callable[[], bool]) -> Found:
    """The next rule; objective and bound on the scale of the stage's objective."""
    g, h = state.derivatives()
    if options.objective == "orthogonal":
        from jaxrules.solvers.rule_search.orthogonal import search_orthogonal

        return search_orthogonal(
            space, g, state.span(), max_length=options.max_length, approximation=options.approximation,
            max_evaluations=options.max_evaluations, stopped=stopped, exact=options.search == "optimal",
            width={"optimal": 4, "greedy": 1, "beam": 10}[options.search],
        )  # fmt: skip
    if options.objective == "gradient_sum":  # (sum g)^2 is the objective with h = 0 and ridge = 1
        found = _second_order(space, g, np.zeros_like(h), 1.0, options, options.approximation**2, stopped)
        return _rescaled(found, math.sqrt)
    ridge = state.l2_penalty if state.l2_penalty > 0 else float(np.finfo(np.float64).tiny)
    found = _second_order(space, g, h, ridge, options, options.approximation, stopped)
    return _rescaled(found, lambda value: value / (2.0 * state.total_weight))


def _second_order(
    space: SearchSpace,
    g: Floats,
    h: Floats,
    ridge: float,
    options: _Options,
    approximation: float,
    stopped: Callable[[], bool],
) -> Found:
    if options.search == "greedy":
        return rule_search.search_greedy(space, g, h, ridge=ridge, max_length=options.max_length)
    if options.search == "beam":
        return rule_search.search_beam(space, g, h, ridge=ridge, max_length=options.max_length)
    if options.search == "published":
        from jaxrules.solvers.rule_search.best_first import search_published

        return search_published(
            space, g, h, ridge=ridge, approximation=approximation, max_evaluations=options.max_evaluations,
            stopped=stopped,
        )  # fmt: skip
    return rule_search.search_optimal(
        space, g, h, ridge=ridge, max_length=options.max_length, approximation=approximation,
        max_evaluations=options.max_evaluations, stopped=stopped,
    )  # fmt: skip


def _rescaled(found: Found, scale: Callable[[float], float]) -> Found:
    bound = None if found.bound is None else scale(found.bound)
    return Found(found.propositions, scale(found.objective), bound, found.status, found.evaluations, found.counts)
