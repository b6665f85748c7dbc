"""Rule boosting with an exact base learner.

Boley, Teshuva, Le Bodic and Webb, "Better Short than Greedy: Interpretable Models through Optimal
Rule Boosting" (SIAM SDM 2021). The regularised risk (2.1) of an ensemble f = sum_t w_t q_t,

    mean_i l(y_i, f(x_i)) + l2_penalty / (2 n) sum_t w_t^2,

is reduced one rule at a time. With g and h the first and second derivatives of the loss
at the current scores, rule t maximises over conjunctions q of propositions (sums run
over the rows that q selects)

    "second_order"          (sum g)^2 / (2 n (l2_penalty + sum h))             (2.3)
    "corrective_decrease"   (sum g)^2 / (2 n (l2_penalty + sum h - c'M^-1 c))  (2.3), all refitted
    "gradient_sum"          |sum g|
    "orthogonal"            |sum g| / (||q_perp|| + epsilon)   Yang et al. (AISTATS 2024)

and gets the weight w = -sum g / (l2_penalty + sum h) (2.2), or all weights are refitted
(``corrective=True``, for which the orthogonal objective is made: its gradient is projected off the
rules found so far). With sample weights, g and h are multiplied by them and n is their sum. c and M
are of `jaxrules.solvers.rule_search.CorrectiveDecrease`.

The paper's own setting is ``fit(X, y, **PAPER)``. The defaults differ where that gave better models
of equal size (benchmarks/fronts.py): a rule maximises its objective divided by its complexity 1 +
length (``per_unit``); all weights are refitted, starting from the best constant; and the objective
accounts for the refit. Rules have at most two conditions, or three if there are few propositions:
longer rules did not predict better at equal size, and the best rule of two conditions is proved in
milliseconds (`jaxrules.solvers.rule_search.pairs`), while a search over rules of any length ends
without a useful bound. ``max_length=None`` allows any length; the search for a rule then stops
after a number of evaluations, with the bound proved by then. A rule for the rows of an earlier one,
or for all other rows, is no candidate: under a ridge, a second weight for them is worth something.

With ``objective_tolerance`` the rule maximises its objective over (1 + objective_tolerance)^length:
each further proposition has to raise it by this share, as in `jaxrules.lltboost`. Threshold-based
gradient boosting (TGB), the baseline of LLTBoost, is
``PAPER | {"objective": "gradient_sum", "search": "greedy", "intercept": True}``.

The exact search is a compiled branch and bound with a bound that is tighter and cheaper than the
paper's; the mandatory-rows bound is stated and proved in docs/mandatory-rows-bound.md. Every stage
states its proved optimality gap. XGBoost's ``reg_lambda`` is l2_penalty for the logistic loss and
half of it for squared error, which XGBoost halves.

>>> import numpy as np
>>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
>>> y = 3.0 * X[:, 0] * X[:, 1]
>>> result = fit(X, y, loss="squared", max_rules=1, l2_penalty=0.0)
>>> result.model.conjunctions.describe(0), float(result.model.weights[0, 0])
('x0 >= 1 & x1 >= 1', 3.0)
>>> round(result.details.stages[0].gap, 6)
0.0
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules import checks
from jaxrules.conditions import Condition, Conjunctions, PropositionPool, all_propositions
from jaxrules.constraints import Constraints, asks
from jaxrules.cross_validation import (
    SHARE,
    arguments_of,
    by_size,
    cross_validated,
    folds,
    last_fit,
    sizes_to_try,
)
from jaxrules.ensembles import oblique_boosting
from jaxrules.ensembles.candidates import Candidates
from jaxrules.ensembles.joint import (
    ONE_VS_REST,
    SMALLEST_CURVATURE,
    JointEnsemble,
    Pruning,
    Step,
    check_prune,
)
from jaxrules.ensembles.linear_terms import UNITS, LinearColumns, Term, seconds_to_make
from jaxrules.ensembles.oblique_boosting import ObliqueSpace, Proposition
from jaxrules.fits import Details, Fit, Status
from jaxrules.losses import LossOption, best_constant, best_shift, derivatives, mean_loss
from jaxrules.models import RuleEnsemble
from jaxrules.options import Folds, ScoreOptions, learner, option, options
from jaxrules.runs import Run
from jaxrules.solvers import rule_search
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.linear.refit import refit_weights
from jaxrules.solvers.rule_search import (
    Found,
    SearchSpace,
    best_of,
    search_beam,
    search_best_first,
    search_depth_first,
    search_pairs,
    search_published,
    search_triples,
    search_using,
)
from jaxrules.solvers.rule_search.space import TIE, check_cut_points
from jaxrules.table import Table
from jaxrules.training import (
    TrainingData,
    by_content,
    loss_for,
    model_loss,
    one_against_rest,
    paths_against_rest,
    sample_in_time,
    sample_limit,
    training_data,
)

Objective = Literal["second_order", "corrective_decrease", "gradient_sum", "orthogonal"]
Search = Literal["optimal", "greedy", "beam"]
Multiclass = Literal["joint", "one_vs_rest"]
Floats = NDArray[np.float64]

_NOTHING_LEFT = 1e-14
"""By (2.3), a rule must reduce the risk by more than this share of it; less is rounding."""
_FEW_RULES = 10
_SOME_VISITS = 50_000_000
"""Default limit on rows times evaluations of the search for one rule: a fraction of a second."""
_MOST_PAIRS, _MOST_PAIRED = 2500, 400_000_000
"""By default at most so many pairs of columns are examined for one rule, and pairs times rows."""
_FEW = 64
"""With at most this many propositions, rules may have three of them by default, else two."""
_CUT_POINTS = 20
_FEW_COLUMNS = 40
_ROWS, _FEWEST_ROWS, _MOST_NOISE = 32.0, 4.0, 0.9
"""The default ridge is this many rows if noise and signal are equal, and never fewer than four;
a larger share of noise counts as nine tenths. See docs/defaults.md.
"""
_BY_CHANCE, _MOST_CHANCE = 3.0, 0.2
"""A rule explains this number over the number of rows of the constant's loss by chance, and all
rules at most the second number.
"""
_WORTH_KEEPING = 0.5
"""Elimination removes what gains less than this share of the last rule's gain,
both per unit of complexity.
"""

_WORTH_CHANGING = 1e-4
"""A sweep keeps a change that lowers the risk by this share of it."""

PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "objective": "second_order",
        "per_unit": False,
        "corrective": False,
        "intercept": False,
        "max_length": None,
        "max_evaluations": None,
        "l2_penalty": 1.0,
    }
)
"""The settings of "Better Short than Greedy": ``fit(X, y, **PAPER)``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostingDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        stages: one per rule: objective, bound, gap, evaluations, pruning counts.
        propositions: the number of searched propositions; the bounds cover rules of these.
        risks: the regularised risk after 0, 1, ... stages.
        sample: the number of rows that the propositions come from; None for all.
        l2_penalty: the ridge.
        chosen: why the data chose this ridge; empty if it was given.
        pruning: what `prune` cost, None without it. The risks are those before.
    """

    stages: tuple[Stage, ...]
    propositions: int
    risks: tuple[float, ...]
    sample: int | None
    l2_penalty: float
    chosen: str = ""
    pruning: Pruning | None = None

    @property
    def proved_stages(self) -> tuple[int, int]:
        """The number of stages whose rule is proved the best, and of all."""
        return sum(stage.status is Status.OPTIMAL for stage in self.stages), len(self.stages)


@dataclass(frozen=True)
class Stage:
    """How one rule was found.

    Attributes:
        objective: the value of the stage's objective, the rule's gain; over 1 + length if
            `per_unit`, and over (1 + objective_tolerance)^length.
        bound: proved upper bound over all conjunctions, None for greedy and beam search, and with
            `max_nonzeros` above 1. A finished search states its tolerance: objectives within 1e-10
            relative are ties.
        axis_parallel_bound: proved upper bound over all conjunctions of conditions on single
            columns; None for greedy and beam search. A rule with a direction may exceed it.
        status: OPTIMAL, CONVERGED (greedy, beam, or an approximation below 1), TIME_LIMIT,
            MAX_ITERATIONS (max_evaluations) or INTERRUPTED.
        weight: the rule's weight when it was added; one per class for classes fitted together.
        length: number of propositions; 0 for a linear term.
        linear_term: the column of a linear term, empty for a rule.
        evaluations: objective evaluations of the search for conditions on single columns.
        counts: search nodes and pruning activations by mechanism.
        seconds: of the search.
    """

    objective: float
    bound: float | None
    status: Status
    weight: float | tuple[float, ...]
    length: int
    evaluations: int
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)
    axis_parallel_bound: float | None = None
    linear_term: str = ""

    @property
    def gap(self) -> float | None:
        """(bound - objective) / objective, or None without a certificate."""
        if self.bound is None:
            return None
        return abs(self.bound - self.objective) / max(self.objective, 1e-12)


_penalty = partial(checks.optional, checks.penalty)


def _known_search(name: str, value: Any) -> Any:
    if isinstance(value, str) and value == "published":
        raise ValueError(
            'search="published" is a function of its own, jaxrules.boosting.published(X, y, ...)'
        )
    return checks.choice(name, value, get_args(Search))


@options
class _Shared(ScoreOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        loss: None for "logistic" if y holds classes (see `jaxrules.table.holds_classes`), else
            "squared"; a name; or a function of (y, score) made of JAX operations, convex and twice
            differentiable in the score.
        objective: what a rule maximises, see the module.
        search: "optimal"; "greedy", the paper's comparison; or "beam" (width 10). The paper's own
            Algorithm 1 is `published`.
        per_unit: a rule maximises its objective divided by 1 + its length, the gain per unit of
            complexity.
        corrective: refit all weights after every rule, instead of keeping the earlier ones.
        intercept: start from the best constant. The paper starts from 0, with the empty
            conjunction, true everywhere, as a candidate rule.
        multiclass: for more than two classes. "joint" fits one problem with the softmax loss, a
            weight per class and rule, see `jaxrules.ensembles.joint`; it needs the logistic loss
            and the default `objective`, `corrective`, `intercept`, `eliminate` and `monotone`.
            "one_vs_rest" fits one model per class against the rest. None: "joint" if it
            can, else "one_vs_rest".
        prune: of the weights of classes fitted together, the number (an int) or share (a float)
            to keep for reading; each rule keeps at least one, and the rest is refitted.
            ``details.pruning`` states the cost. None keeps all.
        eliminate: after every rule, remove rules and conditions, the cheapest first, while one
            costs less than half of the gain of that rule, both per unit of complexity. Weights are
            refitted. The model may have fewer rules than stages.
        objective_tolerance: the relative gain of the objective that every further proposition must
            exceed.
        max_nonzeros: the most columns in a condition. With 2 or more, a rule may use conditions on
            linear combinations of columns, `2 variance + skewness >= -0.3`, where they pay
            their complexity; see `jaxrules.ensembles.oblique_boosting`. Nothing is proved of these.
        linear_terms: a stage may add a winsorised numeric column in the place of a rule, where its
            gain per unit of complexity is larger; see `jaxrules.ensembles.linear_terms`. The ridge
            holds for its coefficient times std / .4, as in RuleFit. It needs the default
            `objective`, `corrective` and `intercept`.
        winsorise: share of values clipped at each end of a column of a linear term, in [0, 0.5).
        propositions: the propositions to build rules from; None takes
            `jaxrules.conditions.propositions_of`.
        forbidden: columns, by name or position, that no rule and no linear term may use.
        required: columns that some rule must use: once only as many rules remain as there are
            unused required columns, each must use one of them.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with the
            column; see `jaxrules.constraints`. Rules of positive and of negative weight are then
            searched for separately, and refits keep the signs; a rule whose weight becomes 0 is
            dropped.
        first: an expert's rules. The model starts with them and keeps them; they count among
            `max_rules`. Their weights are fitted at the start and at every refit, under
            `l2_penalty`.
        max_length: the most propositions of a rule, None for any number. "auto": 2, or 3 with at
            most 64 propositions, as in tables of a few categories, whose conditions say less than
            thresholds do. Up to 2, every rule is proved optimal, in about rows x columns^2 / 2
            steps; docs/methods/boosting.md has a table of what is proved when.
        max_cut_points: the most cut points per numeric column, at quantiles of the unweighted rows.
            "auto": 20, or as many as memory allows. None takes every value.
        approximation: alpha in (0, 1]: each rule's objective is at least alpha times the optimum.
        max_evaluations: limit on objective evaluations per rule, after which the best rule so far
            is taken and its gap reported. "auto" is 5e7 divided by the rows (a fraction of a
            second) if rules may be longer than 2; None for no limit. The rule is no worse than that
            of a beam search. Pairs of conditions are all examined, by histograms, for at most 2500
            pairs of columns (70 columns) and 4e8 pairs times rows. With more, "auto" pairs the
            columns of the best single conditions with all others; the stage is then
            "max_iterations", its bound holds for all rules but is loose, and its counts say how
            many pairs were left out. Unlike time limits, this limit does not depend on the machine.
        seed: of the sample of rows (see `time_limit`); the search is deterministic.
        time_limit: seconds for the whole fit. Each stage gets an equal share of the rest; one that
            runs out of time adds its best rule so far, states its gap, and the next stage begins.
            With less than about a microsecond per entry of `X`, half of the time finds rules on a
            sample of the rows (``details["sample"]``), and the rules on all rows are built from
            their propositions.
    """

    learner = "boosting"

    loss: LossOption = None
    objective: Objective = option(
        checks.choice, default="corrective_decrease", known=get_args(Objective)
    )
    search: Search = option(_known_search, default="optimal")
    per_unit: bool = option(checks.flag, default=True)
    corrective: bool = option(checks.flag, default=True)
    intercept: bool = option(checks.flag, default=True)
    multiclass: Multiclass | None = option(
        checks.choice, default=None, known=(None, *get_args(Multiclass))
    )
    prune: float | int | None = option(check_prune, default=None)
    eliminate: bool = option(checks.flag, default=False)
    objective_tolerance: float = option(checks.number, default=0.0, at_least=0)
    max_nonzeros: int = option(checks.integer, default=1, at_least=1)
    linear_terms: bool = option(checks.flag, default=False)
    winsorise: float = option(checks.number, default=0.025, at_least=0, below=0.5)
    propositions: PropositionPool | None = None
    forbidden: Iterable[str | int] = ()
    required: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None
    first: Conjunctions | None = None
    max_length: int | Literal["auto"] | None = option(checks.size, default="auto")
    max_cut_points: int | Literal["auto"] | None = option(checks.size, default="auto")
    approximation: float = option(checks.number, default=1.0, above=0, at_most=1)
    max_evaluations: int | Literal["auto"] | None = option(checks.size, default="auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, refits in (
            ('objective="corrective_decrease"', self.objective == "corrective_decrease"),
            ("eliminate", self.eliminate),
        ):
            if refits and not self.corrective:
                raise ValueError(
                    f'{name} refits all weights; set corrective=True, or objective="second_order"'
                )
        if self.linear_terms and not (
            self.objective == "corrective_decrease" and self.corrective and self.intercept
        ):
            raise ValueError(
                "linear_terms=True refits all weights and an intercept; leave out objective, "
                "corrective and intercept, or linear_terms"
            )
        if self.max_nonzeros > 1 and self.propositions is not None:
            raise ValueError(
                "max_nonzeros above 1 cannot be combined with propositions, which fix all "
                "conditions; leave out one of them"
            )

    def joins(self, data: TrainingData) -> bool:
        """Whether the classes of these data are fitted together.

        Raises:
            ValueError: if they must be and cannot.
        """
        several = data.target.ndim > 1
        against = [
            name
            for name, differs in (
                (f'loss="{data.loss.name}"', data.loss.name != "logistic"),
                (f'objective="{self.objective}"', self.objective != "corrective_decrease"),
                ("intercept=False", not self.intercept),
                ("eliminate=True", self.eliminate),
                (f"max_nonzeros={self.max_nonzeros}", self.max_nonzeros > 1),
                ("linear_terms=True", self.linear_terms),
                ("monotone", asks(self.monotone)),
            )
            if differs
        ]
        joint = several and self.multiclass != "one_vs_rest" and not against
        if several and self.multiclass == "joint" and against:
            raise ValueError(
                f'{" and ".join(against)} cannot be combined with multiclass="joint"; {ONE_VS_REST}'
            )
        if self.prune is not None and not joint:
            remedy = f"; leave out {' and '.join(against)}" if several and against else ""
            raise ValueError(
                "prune drops weights of more than two classes fitted together "
                f'(multiclass="joint"){remedy or "; leave it out"}'
            )
        return joint

    def longest(self, propositions: int) -> int | None:
        """The most propositions of a rule, given their number; None for any number."""
        if self.max_length == "auto":
            return 3 if propositions <= _FEW else 2
        return self.max_length

    def evaluations(self, rows: int, share: int = 1) -> int | None:
        """The limit on evaluations of one of `share` searches over `rows` merged rows."""
        if self.max_evaluations is None:
            return None
        auto = self.max_evaluations == "auto"
        limit = max(1, _SOME_VISITS // rows) if auto else self.max_evaluations
        return max(1, int(limit) // share)

    def pairs(self, rows: int) -> int | None:
        """The most pairs of columns to examine for one rule on so many merged rows."""
        return None if self.max_evaluations is None else min(_MOST_PAIRS, _MOST_PAIRED // rows)


@options
class Options(_Shared):
    """The options of `fit` and `path`.

    Attributes:
        max_rules: the number of rules and linear terms, with multiclass="one_vs_rest" of each
            class; fewer if no further rule reduces the risk.
        l2_penalty: the paper's lambda >= 0, against sums over rows. None: a first fit of ten rules
            with a small ridge leaves a share q of the constant's loss (ten rules explain 30 / rows
            of it by chance, which is added, but at most .2); the ridge is 32 q / (1 - q) times the
            mean curvature of the loss at the constant, at least 4 times it: 1 to 72 for two equal
            classes, 8 to 576 for the squared loss. It does not depend on `max_rules`;
            ``details["chosen"]`` says why. For several classes fitted together nothing is added to
            q, and the ridge is at least 1; fitted one against the rest they have one each. With 0,
            curvatures are raised to 1e-8 of the largest, because saturated rows of the logistic
            loss have almost none.
    """

    max_rules: int = option(checks.integer, default=10, at_least=1)
    l2_penalty: float | None = option(_penalty, default=None)


@options
class Grid(Folds, _Shared):
    """The options of `cross_validate`.

    Attributes:
        max_rules: the most rules; every number from 1 on is tried.
        l2_penalties: values of the ridge.
    """

    max_rules: int = option(checks.integer, default=20, at_least=1, at_most=10_000)
    l2_penalties: Sequence[float] = option(checks.penalties, default=(1.0, 8.0))


@learner(Options)
def fit(
    X: Any, y: ArrayLike, sample_weight: ArrayLike | None, options: Options
) -> Fit[RuleEnsemble]:
    """Boost rules, each the best possible.

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: numbers for "squared" and user losses, counts for "poisson", classes for "logistic" and
            "exponential", shape (rows,). For more than two classes see `multiclass`: an ensemble
            with one output per class.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit whose objective is the regularised risk (2.1), with `BoostingDetails`. For one model
        per class see `jaxrules.training.one_against_rest`.

    Raises:
        ValueError: for bad values in any argument, a target that the loss is not defined for, more
            propositions than memory allows, a loss with negative curvature or non-finite
            derivatives.
        TypeError: for arguments of the wrong type.
    """
    task = _Task.of(X, y, sample_weight, options)
    found = one_against_rest(
        task.data, task.run, lambda part, run: _fits(part, task, run)[-1], joint=task.joint
    )
    return _or_sketch(found, task)


@learner(Options)
def path(
    X: Any, y: ArrayLike, sample_weight: ArrayLike | None, options: Options
) -> list[Fit[RuleEnsemble]]:
    """One Fit for each number of rules from 1 to `max_rules`, from one run: what `fit` with that
    limit returns.

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits. The list is shorter if `fit` stops early, and holds the constant model if there is
        no rule.

    Raises:
        ValueError, TypeError: as `fit`.
    """
    task = _Task.of(X, y, sample_weight, options)
    before = len(task.candidates.first)
    return paths_against_rest(
        task.data, task.run, lambda part, run: _fits(part, task, run), before, joint=task.joint
    )


@learner(Grid)
def cross_validate(
    X: Any, y: ArrayLike, sample_weight: ArrayLike | None, options: Grid
) -> Fit[RuleEnsemble]:
    """Choose the number of rules and the ridge by cross-validation (see
    `jaxrules.cross_validation`); fit on all rows.

    Each fold has its own cut points, unless `propositions` are given, and one `path` per ridge.

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    options = replace(options, loss=loss_for(y, options.loss))  # the same in all folds
    run = options.run()
    data = training_data(
        X, y, loss_for(y, options.loss), sample_weight=sample_weight, missing=options.missing
    )
    sizes = sizes_to_try(options.first, options.max_rules)
    grid = [
        {"max_rules": size, "l2_penalty": ridge} for ridge in options.l2_penalties for size in sizes
    ]
    found = cross_validated(
        data,
        grid,
        lambda _, inside, run: _walk(inside, sizes, options, run),
        folds(data, options.n_folds, options.seed),
        run.child(SHARE, "boosting cross-validation"),
        one_standard_error=options.one_standard_error,
        n_jobs=options.n_jobs,
        otherwise=min(_FEW_RULES, len(sizes)) - 1,
    )
    chosen = options.to(Options, **found.setting)
    return last_fit(
        found,
        run,
        lambda left: fit.with_options(X, y, sample_weight, replace(chosen, time_limit=left)),
    )


def _walk(inside: TrainingData, sizes: range, options: Grid, run: Run) -> Iterator[RuleEnsemble]:
    """The models of a fold, every ridge with all of these sizes, as far as the time goes."""
    ridges = options.l2_penalties
    for i, ridge in enumerate(ridges):
        part = run.child(1 / (len(ridges) - i))
        same = options.to(
            Options, max_rules=sizes[-1], l2_penalty=ridge, time_limit=part.deadline, progress=False
        )
        yield from by_size(path.with_options(*arguments_of(inside), same), sizes, part)
        if part.stopped():
            return


@options
class PublishedOptions(ScoreOptions):
    """The options of `published`; they mean what they mean for `fit`, with the paper's defaults.

    Attributes:
        loss: None for "logistic" if y holds classes, else "squared"; a name; or a function.
        objective: what a rule maximises: (2.3), or |sum g|.
        max_rules: the number of rules; fewer if no further rule reduces the risk.
        l2_penalty: the paper's lambda >= 0, against sums over rows.
        corrective: refit all weights after every rule.
        intercept: start from the best constant, not from 0.
        propositions: the propositions to build rules from; None takes
            `jaxrules.conditions.propositions_of`.
        forbidden: columns, by name or position, that no rule may use.
        required: columns that some rule must use.
        max_cut_points: the most cut points per numeric column; "auto": 20, or as many as memory
            allows. None takes every value.
        approximation: alpha in (0, 1]: each rule's objective is at least alpha times the optimum.
        max_evaluations: limit on objective evaluations per rule; None for no limit.
    """

    learner = "boosting.published"

    loss: LossOption = None
    objective: Literal["second_order", "gradient_sum"] = option(
        checks.choice, default="second_order", known=("second_order", "gradient_sum")
    )
    max_rules: int = option(checks.integer, default=10, at_least=1)
    l2_penalty: float = option(checks.penalty, default=1.0)
    corrective: bool = option(checks.flag, default=False)
    intercept: bool = option(checks.flag, default=False)
    propositions: PropositionPool | None = None
    forbidden: Iterable[str | int] = ()
    required: Iterable[str | int] = ()
    max_cut_points: int | Literal["auto"] | None = option(checks.size, default="auto")
    approximation: float = option(checks.number, default=1.0, above=0, at_most=1)
    max_evaluations: int | Literal["auto"] | None = option(checks.size, default=None)


@learner(PublishedOptions)
def published(
    X: Any, y: ArrayLike, sample_weight: ArrayLike | None, options: PublishedOptions
) -> Fit[RuleEnsemble]:
    """The paper's own Algorithm 1: a breadth-first search over core queries with its bound (2.4).

    It finds rules as good as those of ``fit(X, y, **PAPER)``, but not the shortest of them, and is
    slow. It is here for the pruning counts of the paper's Table 2, in ``details["stages"]``.

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit, as from `fit`.

    Raises:
        ValueError, TypeError: as `fit`.
    """
    own = options.to(Options, per_unit=False, max_length=None)
    task = _Task.of(X, y, sample_weight, own)
    made = options.settings(loss=task.data.loss)
    task = replace(task, settings=made, find=_published_rule)
    return one_against_rest(task.data, task.run, lambda part, run: _boost(part, task, run)[-1])


@dataclass(frozen=True)
class _Task:
    """The data and the propositions of a fit.

    Attributes:
        settings: which the model keeps.
        sample: the rows that the propositions come from, None for all.
        joint: whether more than two classes are fitted together.
        find: the search for one rule.
        constraints: on the rules.
        chosen: why the data chose the ridge.
        sketch: the model of a sample of the rows, None without one.
    """

    data: TrainingData
    candidates: Candidates
    options: Options
    run: Run
    settings: tuple[tuple[str, Any], ...]
    sample: int | None
    joint: bool
    find: Callable[..., Found]
    constraints: Constraints
    chosen: str = ""
    sketch: RuleEnsemble | None = None

    def with_ridge(self, ridge: float, max_rules: int, why: str = "") -> _Task:
        """The same, with a ridge that the data chose."""
        return replace(
            self,
            options=replace(self.options, l2_penalty=ridge, max_rules=max_rules),
            settings=tuple((dict(self.settings) | {"l2_penalty": ridge}).items()),
            chosen=why,
        )

    @classmethod
    def of(cls, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, options: Options) -> _Task:
        """Read the data and make the propositions."""
        run = options.run(total=options.max_rules)
        data = training_data(
            X, y, loss_for(y, options.loss), sample_weight=sample_weight, missing=options.missing,
            constant=True,
        )  # fmt: skip
        if options.max_nonzeros > 1:  # rows are drawn by position
            data = by_content(data)
        schema, n_outputs, joint = data.table.schema, len(data.outputs), options.joins(data)
        several = {"multiclass": "joint" if joint else "one_vs_rest"} if n_outputs > 1 else {}
        settings = options.settings(loss=data.loss, **several)
        constraints = Constraints.of(schema, options.forbidden, options.required, options.monotone)
        constraints.warn_of_constants(data.table)
        first = constraints.first(schema, options.first, n_outputs)
        constraints.check_room(first, options.max_rules)

        propositions, sample, sketch = options.propositions, None, None
        if propositions is None and not constraints.required:
            sample = sample_in_time(data, run, options.seed)
        if sample is not None:
            sketch = model_in_time(sample, replace(options, loss=data.loss, prune=None), run)
            propositions = _propositions_in(sketch)
            if options.max_length == "auto":
                options = replace(options, max_length=2)
            options = replace(options, max_nonzeros=1)  # directions are among the propositions

        def candidates() -> Candidates:
            pool = constraints.pool(_pool(data.table, propositions, options), data.table, n_outputs)
            constraints.require_spoken(Conjunctions.concatenate([pool, first]), "proposition")
            return Candidates.of(pool, first, constraints, data)

        nothing = PropositionPool.of(schema, ())
        run.preparing("propositions")
        found = run.prepared(candidates, lambda: Candidates.of(nothing, first, constraints, data))
        size = None if sample is None else len(sample.weights)
        find = _joint_rule if joint else _best_rule
        return cls(
            data, found, options, run, settings, size, joint, find, constraints, sketch=sketch
        )


def _pool(table: Table, given: PropositionPool | None, options: Options) -> PropositionPool:
    """The propositions to build rules from."""
    if given is None:
        asked, auto = options.max_cut_points, options.max_cut_points == "auto"
        most = check_cut_points(table, _CUT_POINTS if asked == "auto" else asked, fewer=auto)
        return all_propositions(table, max_cut_points=most)
    checks.instance("propositions", given, PropositionPool, "jaxrules.conditions.propositions_of")
    if given.schema.features != table.schema.features:
        raise ValueError(
            "propositions were built for columns other than those of X; build them from the same "
            "table"
        )
    return given


def model_in_time(sample: TrainingData, options: Options, run: Run) -> RuleEnsemble:
    """The model of a sample of the rows, in half of the time; with less, that of `few_rules`."""
    limit, few = sample_limit(run), few_rules(sample, options)
    if limit is None:
        return few
    own = replace(options, time_limit=limit, progress=False)
    found = fit.with_options(*arguments_of(sample), own).model
    return found if len(found.conjunctions) else few


def few_rules(sample: TrainingData, options: Options) -> RuleEnsemble:
    """A model of at most three rules at coarse cut points, of one condition if there are many
    columns: some hundredths of a second on some thousand rows, so no clock is asked.
    """
    short = len(sample.table.columns) > _FEW_COLUMNS or options.max_length == 1
    few = replace(
        options, max_rules=min(options.max_rules, 3), max_length=1 if short else 2,
        max_cut_points=5, max_nonzeros=1, linear_terms=False, search="optimal",
        l2_penalty=options.l2_penalty or _FEWEST_ROWS, max_evaluations="auto", time_limit=None,
        progress=False,
    )  # fmt: skip
    return fit.with_options(*arguments_of(sample), few).model


def _propositions_in(model: RuleEnsemble) -> PropositionPool:
    """The conditions of the rules."""
    found = dict.fromkeys(condition for rule in model.conjunctions for condition in rule)
    schema = model.schema.with_classes(None)
    return PropositionPool.build(schema, [[condition] for condition in found])


def _or_sketch(found: Fit[RuleEnsemble], task: _Task) -> Fit[RuleEnsemble]:
    """The model of the sample, rated on all rows, if time ended before it was matched there."""
    sketch = task.sketch
    if sketch is None or sketch.linear is not None:
        return found
    if len(found.model.conjunctions) >= len(sketch.conjunctions):
        return found
    ridge, weights = np.mean(found.details["l2_penalty"]), np.asarray(sketch.weights)
    outputs = 1 if task.joint else weights.shape[1]
    penalty = ridge / (2.0 * task.data.weights.sum()) * np.sum(weights**2) / outputs
    risk = model_loss(sketch, task.data) + float(penalty)
    if risk >= found.objective:
        return found
    model = replace(sketch, options=task.settings)
    task.run.step(risk, len(model.conjunctions))
    return task.run.finish(model, risk, found.sense, Status.TIME_LIMIT, details=found.details)


def _fits(data: TrainingData, task: _Task, run: Run) -> list[Fit[RuleEnsemble]]:
    """The fits with 1, 2, ... rules for a target of one output.

    If no ridge is given, a first fit of ten rules, in at most half of the time, shows how much
    noise there is. Its models are the result if its ridge is right, or if no time is left.
    """
    if task.options.l2_penalty is not None:
        return _boost(data, task, run)
    n_first = len(task.candidates.first)
    wanted, least = task.options.max_rules - n_first, _ridge(data, task.options, 0.0)
    trial = run.child(0.5, f"{run.task}, choice of l2_penalty", n_first + _FEW_RULES)
    found = _boost(data, task.with_ridge(least, n_first + _FEW_RULES), trial)
    run.shortened |= trial.stopped()
    left = _share_left(data, task.options, found[-1])
    rules = min(len(found), _FEW_RULES)
    chance = min(_BY_CHANCE * rules / float(data.weights.sum()), _MOST_CHANCE)
    chance = 0.0 if task.joint else chance
    ridge = _ridge(data, task.options, left + chance)
    why = f"l2_penalty={ridge:g}: ten rules with {least:g} leave {left:.0%} of the constant's loss"
    complete = len(found) >= wanted or (len(found) < _FEW_RULES and not trial.stopped())
    fits: list[Fit[RuleEnsemble]] = []
    if not run.stopped() and not (ridge == least and complete):
        fits = _boost(data, task.with_ridge(ridge, task.options.max_rules, why), run)
    if len(fits) >= min(len(found), wanted) or (fits and not run.stopped()):
        return fits
    if ridge != least:
        why = f"l2_penalty={least:g}: no time was left to fit again with {ridge:g}"
    few = [
        replace(fit, details=BoostingDetails(**{**fit.details, "chosen": why}))
        for fit in found[:wanted]
    ]
    return [*few[:-1], run.whole(few[-1])]


def _share_left(data: TrainingData, options: Options, fit: Fit[RuleEnsemble]) -> float:
    """What a model leaves of the constant's loss, above the least that any scores have."""
    loss, y, weights, model = data.loss, data.target, data.weights, fit.model
    ridge = fit.details["l2_penalty"] / (2 * weights.sum()) * np.sum(np.square(model.weights))
    floor = 0.0
    if y.ndim > 1:  # classes fitted together: the entropy of their shares, and twice the ridge
        shares = _shares(data)
        constant, ridge = -float(shares @ np.log(shares)), 2 * ridge
    else:
        nothing = np.zeros(len(y))
        if loss.conjugate is not None:
            floor = -float(np.average(loss.conjugate(y, nothing), weights=weights))
        constant = mean_loss(loss, y, nothing + _constant(data, options), weights) - floor
    return float((fit.objective - ridge - floor) / constant) if constant > 0 else 0.0


def _ridge(data: TrainingData, options: Options, noise: float) -> float:
    """The default ridge: as many rows of mean curvature as `_ROWS` times noise over signal.

    Hoerl, Kennard and Baldwin, "Ridge Regression: Some Simulations" (1975), set the ridge so.
    """
    noise = min(max(noise, 0.0), _MOST_NOISE)
    rows = max(_FEWEST_ROWS, _ROWS * noise / (1 - noise))
    if data.target.ndim > 1:
        ridge = max(1.0, rows * float(np.mean(_shares(data) * (1 - _shares(data)))))
    else:
        scores = np.full(len(data.target), _constant(data, options))
        curvature = derivatives(data.loss, data.target, scores)[1]
        ridge = rows * (float(np.average(curvature, weights=data.weights)) or 1.0)
    return float(f"{ridge:.2g}")


def _shares(data: TrainingData) -> Floats:
    """The share of each class, (classes,)."""
    return np.asarray(np.average(data.target > 0, axis=0, weights=data.weights))


def _constant(data: TrainingData, options: Options) -> float:
    """The score that boosting starts from."""
    return best_constant(data.loss, data.target, data.weights) if options.intercept else 0.0


def _start(data: TrainingData, task: _Task, run: Run) -> _Ensemble | JointEnsemble:
    """The ensemble before the first stage; without time to make linear terms it has none."""
    if task.joint:
        return JointEnsemble(
            data, task.candidates, task.options.l2_penalty or 0.0, task.options.max_rules
        )
    columns = None
    if task.options.linear_terms and seconds_to_make(data.table) > run.deadline.remaining() / 2:
        run.shortened = True
    elif task.options.linear_terms:
        n_outputs = len(task.candidates.signs)
        columns = LinearColumns.of(data, task.options.winsorise, task.constraints, n_outputs)
    return _Ensemble(data, task.candidates, task.options, columns)


def _boost(data: TrainingData, task: _Task, run: Run) -> list[Fit[RuleEnsemble]]:
    """The fits with 1, 2, ... rules, for one output or classes fitted together."""
    options = task.options
    state, steps, stages = _grown(data, task, run)
    pool = state.candidates.pool

    def finished(m: int) -> Fit[RuleEnsemble]:
        step, pruning = steps[m], None
        if options.prune is not None:
            step, pruning = state.pruned(step, options.prune)
        rules, weights, intercept, risk, linear = step
        model = RuleEnsemble(
            pool.conjunctions(rules, data.schema), weights, intercept, linear,
            "softmax" if task.joint else data.loss.link, task.settings, data.loss.name,
        )  # fmt: skip
        status = Status.worst((Status.CONVERGED, *(stage.status for stage in stages[:m])))
        details = BoostingDetails(
            stages=tuple(stages[:m]),
            propositions=task.candidates.n_searched,
            risks=tuple(step.risk for step in steps[: m + 1]),
            sample=task.sample,
            l2_penalty=options.l2_penalty or 0.0,
            chosen=task.chosen,
            pruning=pruning,
        )
        fit = run.finish(model, risk, "min", status, details=details)
        return fit if m == len(stages) else run.earlier(fit, m, status)

    return [finished(m) for m in range(min(1, len(stages)), len(stages) + 1)]


def _grown(data: TrainingData, task: _Task, run: Run) -> tuple[Any, list[Any], list[Stage]]:
    """One rule after the other, for one output or classes fitted together: the ensemble, its state
    after 0, 1, ... stages, and the stages.
    """
    options = task.options
    state: Any = _start(data, task, run)
    combinations: _Combinations | None = None
    steps = [state.step()]
    stages: list[Stage] = []
    to_find = options.max_rules - state.n_first
    nothing_else = False  # only rules for required columns are left
    with run:
        run.phase = "search"
        if options.max_nonzeros > 1:
            combinations = _Combinations.of(data, task, run)
        for rule in range(to_find):
            if run.stopped():
                break
            unused = state.unused()
            must = unused if nothing_else or to_find - rule <= len(unused) else []
            if nothing_else and not must:
                break
            stage = run.child(1 / (to_find - rule))
            before = copy.copy(state)
            found, bound, term = _next(state, task, combinations, must, stage)
            seconds = stage.seconds()
            rows = state.candidates.selected(found.propositions)
            everywhere = term is None and bool(rows.all())
            if everywhere and not must and options.intercept and options.corrective:
                nothing_else = not state.shifted()  # such a rule belongs to the intercept
                continue
            weight = state.add(found.propositions, rows) if term is None else state.add_term(term)
            if not (must or state.gain > _NOTHING_LEFT * abs(steps[0].risk)):
                run.shortened |= found.status is Status.TIME_LIMIT
                nothing_else, state = True, before
                continue
            if combinations is not None and options.corrective:
                state = combinations.swept(state, run.stopped)
            if options.eliminate:
                gain = (steps[-1].risk - state.step().risk) / state.units(found.propositions)
                state = state.eliminated(_WORTH_KEEPING * gain, run.stopped)
            steps.append(state.step())
            column = "" if term is None else state.columns.name(term, data.schema)
            stages.append(_stage(found, weight, stage.limit, seconds, bound, column))
            run.step(steps[-1].risk, len(steps[-1].rules))
    return state, steps, stages


def _next(
    state: Any,
    task: _Task,
    combinations: _Combinations | None,
    must: list[NDArray[np.bool_]],
    stage: Run,
) -> tuple[Found, float | None, Term | None]:
    """The next rule, the bound on those of single columns, and the linear term that is worth more,
    if there is one; the objective and the bound found are then those of terms and rules.
    """
    found = _search(state, task, must, stage)
    bound = found.bound
    if combinations is not None:
        found = replace(found, bound=None)
        if not must:
            found = combinations.better(state, found, stage)
    if must or not task.options.linear_terms or state.columns is None:
        return found, bound, None
    term = state.columns.best(_objective(state, task.options), state.terms)
    if term is None or not term.worth > found.objective * (1 + TIE):
        return found, bound, None
    proved = None if found.bound is None else max(found.bound, term.worth)
    return replace(found, propositions=(), objective=term.worth, bound=proved), bound, term


def _stage(
    found: Found,
    weight: float | tuple[float, ...],
    limit: Status | None,
    seconds: float,
    bound: float | None,
    linear_term: str,
) -> Stage:
    """What is kept of a search that ended after these seconds, perhaps at a limit of its run."""
    why = limit or found.status if found.status is Status.TIME_LIMIT else found.status
    return Stage(
        found.objective, found.bound, why, weight, len(found.propositions), found.evaluations,
        seconds, found.counts, bound, linear_term,
    )  # fmt: skip


class _Ensemble:
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
        """Whether no weight has a required sign."""
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
        if not self.using:
            return []
        searched = np.zeros(len(self.signs_of), bool)
        for side in self.sides:
            searched[side.propositions] = True
        used = [p for rule in self.rules for p in rule]
        return [
            speaking
            for speaking in self.using
            if (speaking & searched).any() and not speaking[used].any()
        ]

    def derivatives(self) -> tuple[Floats, Floats]:
        """Weighted gradient and curvature per row; the curvature is safe to
        divide by with l2_penalty = 0.
        """
        if self._derivatives is not None and self._derivatives[0] is self.scores:
            return self._derivatives[1:]
        g, h = derivatives(self.loss, self.y, self.scores, majorant=True)
        if self.l2_penalty == 0.0:
            largest = float(h.max())
            if largest == 0.0:
                raise ValueError(
                    "l2_penalty must be positive, since the loss has zero curvature at every row"
                )
            h = np.maximum(h, SMALLEST_CURVATURE * largest)
        self._derivatives = (self.scores, self.sample_weight * g, self.sample_weight * h)
        return self._derivatives[1:]

    def span(self) -> NDArray[np.bool_] | Floats:
        """The extents of the rules, and of the intercept: bool (rows, rules); with linear terms
        also their columns, as numbers.

        A rule whose sign holds its weight at 0 is left out: a small change of other
        weights does not move it.
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

    def add_term(self, term: Term) -> float:
        """Append a linear term and refit all weights; returns its coefficient, in units of the
        column's scale.
        """
        before = self.step().risk
        self.terms, self.coefficients = [*self.terms, term.place], [*self.coefficients, 0.0]
        self._refit()
        self.gain = before - self.step().risk
        return self.coefficients[-1]

    def add(self, rule: tuple[int, ...], rows: NDArray[np.bool_]) -> float:
        """Append a rule with the weight (2.2), refit all weights if corrective; returns its weight.

        If that weight raises the regularised risk, as Newton's step may for a loss of unbounded
        curvature, the rule gets the best weight instead.
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
        """Move the intercept to its best value: a rule for every row belongs to it. False if it is
        there.
        """
        before, risk = (self.intercept, self.scores), self.step().risk
        change = best_shift(self.loss, self.y, self.scores, self.sample_weight)
        self.intercept, self.scores = self.intercept + change, self.scores + change
        if self.step().risk < risk - _NOTHING_LEFT * abs(risk):
            return True
        self.intercept, self.scores = before
        return False

    def _refit(self) -> None:
        """All weights at once."""
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
        """The complexity of a rule: 1 for it, and for every condition 1, and with directions also
        its columns.
        """
        if not self.by_nonzeros:
            return 1 + len(rule)
        pool = self.candidates.pool
        on = pool.feature[list(rule)] - len(pool.schema.features)
        return 1 + 2 * len(rule) + int((pool.directions.nonzeros[on[on >= 0]] - 1).sum())

    def replaced(self, r: int, others: Sequence[tuple[int, ...]]) -> _Ensemble:
        """With other rules, which keep its weight, in the place of a rule; not refitted."""
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

    def refitted(self) -> _Ensemble:
        """Itself, with all weights refitted."""
        self._refit()
        return self

    def eliminated(self, allowed: float, stopped: Callable[[], bool]) -> _Ensemble:
        """Without the rules and conditions that reduce the risk by less than
        `allowed` per unit of complexity.

        Backward elimination: the cheapest goes first, and all weights are refitted.
        """
        kept, risk = self, self.step().risk
        while True:
            rises: list[tuple[float, _Ensemble]] = []
            for simpler, units in kept._simpler():
                if stopped():
                    return kept
                rises.append(((simpler.step().risk - risk) / units, simpler))
            rise, cheapest = min(rises, key=lambda entry: entry[0], default=(math.inf, kept))
            if rise >= allowed:
                return kept
            kept, risk = cheapest, cheapest.step().risk

    def _simpler(self) -> Iterator[tuple[_Ensemble, int]]:
        """Every ensemble with one rule, condition or linear term less, and the decrease in
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
        """By how much a new rule changes the regularised risk, times the rows'
        weight; rounding does not count.
        """
        y, scores = self.y[rows], self.scores[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            before, after = (
                np.asarray(self.loss.value(y, score)) for score in (scores, scores + weight)
            )
            rise = self.sample_weight[rows] @ (after - before) + self.l2_penalty * weight**2 / 2
        return float(rise) - 1e-12 * float(self.sample_weight[rows] @ np.abs(before))

    def step(self) -> Step:
        """The current ensemble and risk."""
        penalty = (
            self.l2_penalty
            / (2.0 * self.total_weight)
            * sum(weight**2 for weight in [*self.weights, *self.coefficients])
        )
        losses = np.asarray(self.loss.value(self.y, self.scores))
        risk = float(self.sample_weight @ losses) / self.total_weight + penalty
        kept = [r for r in range(len(self.rules)) if self._counts(r)]
        linear, shift = None, 0.0
        if self.columns is not None:
            linear, shift = self.columns.weighed(self.terms, self.coefficients)
        return Step(
            tuple(self.rules[r] for r in kept),
            np.array(self.weights)[np.array(kept, int)][:, None],
            np.array([self.intercept + shift]),
            risk,
            linear,
        )

    def _counts(self, r: int) -> bool:
        """Whether the model keeps a rule: not if its sign made its weight 0 and
        no constraint requires it.
        """
        wanted = r < self.n_first or any(
            speaking[list(self.rules[r])].any() for speaking in self.using
        )
        return wanted or self.weights[r] != 0 or self.any_sign or self.signs[r] == 0


def _search(
    state: _Ensemble | JointEnsemble, task: _Task, must: list[NDArray[np.bool_]], stage: Run
) -> Found:
    """The next rule; if it must use one of some columns, via the propositions on them."""
    options = task.options
    parts, longest = [], options.longest(state.n_searched)
    for place, side in enumerate(state.sides):
        run = (
            stage if place == len(state.sides) - 1 else stage.child(1 / (len(state.sides) - place))
        )
        objective = _objective(state, options, side.sign)
        exact = options.search == "optimal"
        if not must:
            found = task.find(
                side.space, objective, options, longest, len(state.sides), run.stopped
            )
            if options.objective == "corrective_decrease" and options.search == "optimal":
                found = _of_other_rows(found, state, side, objective, options, run.stopped)
            parts.append(side.whole(found))
            continue
        wanted = np.flatnonzero(np.stack(must)[:, side.propositions].any(axis=0)).tolist()
        search = partial(
            task.find, options=options, longest=None if longest is None else longest - 1,
            share=len(state.sides) * len(wanted), stopped=run.stopped,
        )  # fmt: skip
        using = search_using(
            side.space, objective, wanted, search, prunes=exact,
            approximation=options.approximation if exact else 1.0, stopped=run.stopped,
        )  # fmt: skip
        if using is not None:
            parts.append(side.whole(using))
    return best_of(parts)


def _of_other_rows(
    found: Found,
    state: _Ensemble | JointEnsemble,
    side: rule_search.Side,
    objective: rule_search.Objective,
    options: Options,
    stopped: Callable[[], bool],
) -> Found:
    """Another rule in the place of one for the rows of an earlier rule, or for all other rows:
    under a ridge a second weight for them is worth something, but tells a reader nothing. If rules
    may have more than three propositions, the best pair.
    """
    sizes = [(int(rows.sum()), rows) for rows in state.extents]

    def repeats(places: Sequence[int]) -> bool:
        rows = state.candidates.selected(side.propositions[list(places)].tolist())
        size = int(rows.sum())
        return any(
            (size == n and (rows == earlier).all())
            or (size == len(rows) - n and (rows != earlier).all())
            for n, earlier in sizes
        )

    space, length = side.space, side.space.longest(options.longest(state.n_searched))
    if space.partitions is None or not found.propositions or not repeats(found.propositions):
        return found
    if length == 3:
        limit = options.evaluations(space.activations.n_patterns, len(state.sides))
        return search_triples(
            space, objective, max_evaluations=limit, left_out=repeats, stopped=stopped
        )
    other = search_pairs(
        space, objective, max_length=min(length, 2), left_out=repeats, stopped=stopped,
        max_pairs=options.pairs(space.activations.n_patterns),
    )  # fmt: skip
    if length <= 2:
        return other
    return replace(other, bound=found.bound, status=Status.worst((Status.CONVERGED, found.status)))


def _best_rule(
    space: SearchSpace,
    objective: rule_search.Objective,
    options: Options,
    longest: int | None,
    share: int,
    stopped: Callable[[], bool],
) -> Found:
    """The best conjunction of at most `longest` propositions, with 1 / share of the evaluations."""
    if options.search in ("greedy", "beam"):
        width = 1 if options.search == "greedy" else 10
        return search_beam(space, objective, width=width, max_length=longest, stopped=stopped)
    if (
        space.longest(longest) <= 2
        and options.max_evaluations in ("auto", None)
        and space.partitions is not None
    ):
        most = options.pairs(space.activations.n_patterns)
        return search_pairs(space, objective, max_length=longest, max_pairs=most, stopped=stopped)
    exact = search_best_first if options.objective == "orthogonal" else search_depth_first
    return exact(
        space, objective, max_length=longest, approximation=options.approximation,
        max_evaluations=options.evaluations(space.activations.n_patterns, share), stopped=stopped,
    )  # fmt: skip


@one_blas_thread()
def _joint_rule(
    space: SearchSpace,
    objective: rule_search.Objective,
    options: Options,
    longest: int | None,
    share: int,
    stopped: Callable[[], bool],
) -> Found:
    """The best conjunction for several classes together, in `_best_rule`'s place.

    Rules of more than two conditions: all triples by histograms, or best-first search with the
    classes' bounds; a limit ends it with the better of what it has found and the best pair.
    """
    length, histograms = space.longest(longest), space.partitions is not None
    pairs = length <= 2 and histograms and options.max_evaluations in ("auto", None)
    if options.search != "optimal" or pairs:
        return _best_rule(space, objective, options, longest, share, stopped)
    terms = objective.one_row(space)
    if length == 3 and histograms:  # an evaluation reads sums, no rows
        limit = options.evaluations(len(terms), share)
        return search_triples(space, objective, max_evaluations=limit, stopped=stopped)
    limit = options.evaluations(terms.size, share)
    found = search_best_first(
        space, objective, max_length=longest, approximation=options.approximation,
        max_evaluations=limit, stopped=stopped,
    )  # fmt: skip
    if found.status is Status.OPTIMAL or not histograms:
        return found
    pair = search_pairs(space, objective, max_length=min(length, 2), stopped=stopped)
    return best_of([found, pair])


def _published_rule(
    space: SearchSpace,
    objective: rule_search.Objective,
    options: Options,
    longest: int | None,
    share: int,
    stopped: Callable[[], bool],
) -> Found:
    """The best conjunction by the paper's Algorithm 1, in `_best_rule`'s place."""
    found = search_published(
        space, objective, approximation=options.approximation,
        max_evaluations=options.evaluations(space.activations.n_patterns, share), stopped=stopped,
    )  # fmt: skip
    if found.status is Status.TIME_LIMIT:  # it may not have tried all single propositions
        single = search_beam(space, objective, width=1, max_length=1, stopped=stopped)
        if single.objective > found.objective:
            return replace(found, propositions=single.propositions, objective=single.objective)
    return found


def _objective(
    state: _Ensemble | JointEnsemble, options: Options, sign: int = 0
) -> rule_search.Objective:
    """What the next rule maximises, among those whose weight has this sign."""
    price: dict[str, Any] = {
        "per_unit": options.per_unit, "growth": options.objective_tolerance, "one_sided": sign != 0
    }  # fmt: skip
    if isinstance(state, JointEnsemble):
        return state.objective(price)
    g, h = state.derivatives()
    if options.max_nonzeros > 1:
        price |= oblique_boosting.PRICE
    if sign > 0:  # the weight has the sign of -g
        g = -g
    if options.objective == "orthogonal":
        return rule_search.Orthogonal(g, state.span(), state.sample_weight, **price)
    if options.objective == "gradient_sum":
        return rule_search.GradientSum(g, **price)
    ridge = state.l2_penalty if state.l2_penalty > 0 else float(np.finfo(np.float64).tiny)
    g = g / math.sqrt(2.0 * state.total_weight)  # (2.3) with its constant
    if options.objective == "corrective_decrease":
        span = state.span()
        free = int(state.has_intercept)
        penalties = np.array([0.0] * free + [ridge] * (span.shape[1] - free))
        return rule_search.CorrectiveDecrease(g, h, ridge, span, penalties, **price)
    return rule_search.SecondOrder(g, h, ridge, **price)


# Conditions on several columns


@dataclass(frozen=True, eq=False)
class _Combinations:
    """The search for rules with conditions on linear combinations of columns, for one output; see
    `jaxrules.ensembles.oblique_boosting`.

    Attributes:
        known: those in use, in standardised columns.
    """

    space: ObliqueSpace
    options: Options
    constraints: Constraints
    known: dict[Condition, Proposition] = field(default_factory=dict)

    @classmethod
    def of(cls, data: TrainingData, task: _Task, run: Run) -> _Combinations | None:
        """None if fewer than two columns vary, or without the time to standardise them."""
        if oblique_boosting.seconds_to_make(data.table) > run.deadline.remaining() / 2:
            run.shortened = True
            return None
        options, cuts = task.options, task.options.max_cut_points
        space = ObliqueSpace(
            data.table, data.weights,
            task.constraints.of_output(data.output, len(task.candidates.signs)),
            options.max_nonzeros, _CUT_POINTS if cuts == "auto" else cuts, options.seed,
        )  # fmt: skip
        return cls(space, options, task.constraints) if len(space.values) > 1 else None

    def better(self, state: _Ensemble, found: Found, stage: Run) -> Found:
        """The better one of the rule that the search on single columns found and of the best rule
        with a direction. What is found with directions around is not proved.
        """
        if found.status is Status.OPTIMAL:
            found = replace(found, status=Status.CONVERGED)
        if stage.stopped():
            return found
        known = [self._known(state, place) for rule in state.rules for place in rule]
        earlier = [one.w for one in known if one is not None and np.count_nonzero(one.w) > 1]
        rule = oblique_boosting.best_rule(
            self.space, _objective(state, self.options), *state.derivatives(), earlier,
            self.options.longest(state.n_searched), stage.stopped,
        )  # fmt: skip
        if rule is None or not rule.worth > found.objective * (1 + TIE):
            return found
        places: tuple[int, ...] = ()
        for one in rule.propositions:
            places = (*places, self._add(state, one, state.candidates.selected(places)))
        return replace(found, propositions=places, objective=rule.worth)

    def swept(self, state: _Ensemble, stopped: Callable[[], bool]) -> _Ensemble:
        """With every condition of the learned rules improved, the others fixed."""
        for r in range(state.n_first, len(state.rules)):
            for k in range(len(state.rules[r])):
                if stopped():
                    return state
                state = self._improved(state, r, k, stopped)
        return state

    def _improved(self, state: _Ensemble, r: int, k: int, stopped: Callable[[], bool]) -> _Ensemble:
        """With a better condition k in rule r, if there is one."""
        rule = state.rules[r]
        rest = (*rule[:k], *rule[k + 1 :])
        one, others = self._known(state, rule[k]), state.candidates.selected(rest)
        if one is None:
            return state
        without = state.replaced(r, []).refitted()
        better = oblique_boosting.improved(
            self.space, _objective(without, self.options), *without.derivatives(), one, others,
            state.signs_of[list(rest)].all(axis=0), stopped,
        )  # fmt: skip
        if better is None:
            return state
        trial = copy.copy(state)
        place = self._add(trial, better, others)
        trial = trial.replaced(r, [(*rule[:k], place, *rule[k + 1 :])]).refitted()
        before, after = state.step().risk, trial.step().risk
        return trial if after < before - _WORTH_CHANGING * abs(before) else state

    def _known(self, state: _Ensemble, place: int) -> Proposition | None:
        """A proposition of the pool in standardised columns, None if it cannot be moved."""
        (condition,) = state.candidates.pool.rule(place)
        return self.known.get(condition) or self.space.proposition(condition)

    def _add(self, state: _Ensemble, one: Proposition, among: NDArray[np.bool_]) -> int:
        """Add a proposition to those of the ensemble; returns its place."""
        condition, rows = self.space.condition(one, among)
        self.known[condition] = one
        state.candidates = state.candidates.extended(condition, rows, self.constraints)
        return len(state.candidates.pool) - 1
