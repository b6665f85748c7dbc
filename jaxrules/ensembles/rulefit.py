"""RuleFit: an L1-penalised linear model on rules and, optionally, linear terms.

Friedman and Popescu, "Predictive learning via rule ensembles" (2008), and Problem 1 of the LIRE
paper:

    minimise  mean_n l(y_n, f(x_n)) + l1_penalty (sum_m |a_m| + sum_j |b_j|)
    f(x) = a_0 + sum_m a_m r_m(x) + sum_j b_j l_j(x)

More than two classes are one problem: l is the softmax loss, a_m and b_j have a weight per class,
and the penalty is on their Euclidean norms, so that a rule enters or leaves for all classes at once
(`jaxrules.solvers.linear.sparse_softmax`). With two classes, its penalty times sqrt(1/2) is the
l1_penalty above.

The intercept a_0 is not penalised. The rules r_m come from a tree ensemble; l_j(x) is the
winsorised column min(upper_j, max(lower_j, x_j)), penalised by the factor std(l_j) / 0.4, so that a
linear term has the influence of a typical rule (Sec. 5 of the paper). With scikit-learn's
``LogisticRegression``, C = 1 / (n l1_penalty); with its ``Lasso`` (which halves the squared
error), alpha = l1_penalty / 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.data.table import TableLike
from jaxrules.ensembles.extraction import RulePool, RuleSource, depends_on_labels, rule_pool
from jaxrules.ensembles.in_time import FORESTS, model_in_time
from jaxrules.ensembles.l1_ensemble import Terms, coefficients_of, ensemble, permitted
from jaxrules.learning.cross_validation import SHARE, CrossValidation, cross_validated, folds
from jaxrules.learning.in_time import rows_for_rules
from jaxrules.learning.options import (
    ONE_VS_REST,
    Folds,
    GroupOptions,
    Multiclass,
    ScoreOptions,
    against_joint,
    how_classes,
    joins,
    learner,
    option,
    options,
    or_none,
)
from jaxrules.learning.training import TrainingData, by_content, loss_for
from jaxrules.learning.warm_start import given_start
from jaxrules.losses import Loss, require
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import Constraints, asks
from jaxrules.rules.rows import Activations, check_memory
from jaxrules.solvers.linear import sparse_glm, sparse_softmax
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.solvers.linear.traced_path import TracedPath
from jaxrules.tools import checks, placement
from jaxrules.tools.bits import distinct, pack, take_columns
from jaxrules.tools.fits import Details, Fit, Settings, Status
from jaxrules.tools.float64 import worth_an_accelerator
from jaxrules.tools.runs import Deadline, Run

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
LossOption = Literal["logistic", "squared", "poisson", "exponential"] | Loss | None

_JOINT_BYTES = 100.0
"""Per row and class of classes fitted together."""
_JOINT_COLUMNS = 500
"""Of their Gram matrices, for the check of memory."""
_NEGLIGIBLE = 1e-12
"""Weights below this share of the largest are rounding."""
_STEPS = 50
"""Default number of penalties of a path."""
_SMALLEST_PENALTY = 1e-3
"""The last penalty of a path, relative to the first, at which no rule has a weight."""
_ROUGH = 1e-3
"""Relative duality gap of intermediate solutions: in folds, and before the last penalty of a
warm-started path.
"""
_PATIENCE = 5
"""Penalties, each 13 % below the one before, over which the held-out loss may fail to fall before
the path ends.
"""
_PRODUCTS = "jaxrules.solvers.linear.kernels.bit_products"
"""What takes long to import."""
_WITHOUT_FOLDS = 0.05
"""The penalty, relative to the largest, if time ends cross-validation before it has compared any.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleFitDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        l1_penalty: of the fit; given, or chosen by cross-validation.
        n_candidates: the number of rules in the pool.
        engine: "numpy" or "jax", which made the steps.
        sample: the number of rows that the rules come from; None for all.
    """

    l1_penalty: float
    n_candidates: int
    engine: Literal["numpy", "jax"]
    sample: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ManyClassesDetails(RuleFitDetails):
    """The details of classes one-vs-rest, which share the penalty and the pool.

    Attributes:
        objectives, bounds, statuses: of each class against the rest.
    """

    objectives: tuple[float, ...]
    bounds: tuple[float, ...]
    statuses: tuple[Status, ...]


@options
class _RuleFitShared(ScoreOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        rules: the source of candidate rules: "boosted_trees" (None), "forest" or "both", see
            `jaxrules.default_forest`; rules, e.g. of `jaxrules.extract_rules`, which with
            ``activations=True`` are already evaluated on `X`; or a tree ensemble that it reads,
            fitted to the data if it is not yet.
        loss: None for "logistic" if y holds classes (see `jaxrules.data.table.holds_classes`), else
            "squared"; a name; or a `jaxrules.losses.Loss` with a conjugate.
        multiclass: for more than two classes. "joint" fits one problem with the softmax loss, in
            which a rule has a weight per class and the penalty is on their Euclidean norm. It needs
            the logistic loss and an `l1_penalty` above 0, and cannot be combined with `monotone`
            and ``engine="jax"``. "one_vs_rest" fits one model per class against the rest, with one
            penalty and one pool of rules. None: "joint" if it can, else "one_vs_rest".
        linear_terms: add one winsorised linear term per numeric column.
        winsorise: share of values clipped at each end of a column, in [0, 0.5).
        forbidden: columns, by name or position, that no rule and no linear term uses.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with the
            column; see `jaxrules.rules.constraints`. It fixes signs of weights and coefficients;
            rules that bound the column on both sides, or have the wrong sign, are not candidates.
        first: an expert's rules. The model starts with them and keeps them, without a penalty.
            Those whose sign `monotone` fixes are penalised like the others, but stay even with
            weight 0.
        tolerance: the fit has converged when duality gap <= tolerance * objective.
        engine: what makes the steps: "numpy", or "jax", where a path with its classes, and with all
            folds of given rules, is one compiled program. "auto" is "jax" inside
            `jaxrules.rows_over`, or for more than a million entries if JAX's default device is an
            accelerator, and "numpy" on a CPU, where it is faster. The host computes objective and
            bound for both. The program cannot be stopped between its steps: "jax" cannot be
            combined with a time limit, under which "auto" is "numpy".
        seed: of the trees and the folds.
    """

    learner = "rulefit"

    rules: RuleSource | None = None
    loss: LossOption = None
    multiclass: Multiclass | None = option(how_classes, default=None)
    linear_terms: bool = option(checks.flag, default=False)
    winsorise: float = option(checks.number, default=0.025, at_least=0, below=0.5)
    forbidden: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None
    first: Conjunctions | None = None
    tolerance: float = option(checks.number, default=1e-6, above=0, below=1)
    engine: Literal["auto", "numpy", "jax"] = option(
        checks.choice, default="auto", known=("auto", "numpy", "jax")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.require(
            self.engine != "jax" or not self.limited,
            'engine="jax" cannot be combined with time_limit; set engine="auto"',
        )

    @property
    def limited(self) -> bool:
        """Whether there is a time limit."""
        return Deadline.of(self.time_limit).seconds is not None

    @property
    def least_penalty(self) -> float | None:
        """The smallest given penalty; None for penalties that are computed."""
        raise NotImplementedError  # `fit` and `path` have their own

    def joins(self, data: TrainingData) -> bool:
        """Whether the classes of these data are fitted together.

        Raises:
            ValueError: if they must be and cannot.
        """
        against = against_joint(
            data.loss.name, asks(self.monotone),
            ("a penalty of 0", self.least_penalty == 0), ('engine="jax"', self.engine == "jax"),
        )  # fmt: skip
        return joins(self.multiclass, data.target.ndim > 1, against)

    def settings_at(self, l1_penalty: float, loss: Loss) -> Settings:
        """The settings of a model: those of the `fit` that repeats it."""
        return self.to(RuleFitOptions, l1_penalty=l1_penalty, groups=None).settings(loss=loss)


@options
class RuleFitOptions(GroupOptions, _RuleFitShared):
    """The options of `fit`.

    Attributes:
        l1_penalty: the paper's lambda (gamma in the LIRE paper), against the mean loss. None
            chooses it by cross-validation of the mean loss, from the largest one at which a rule
            has a weight downwards until the held-out loss stops falling. Each fold extracts its
            rules from its own training rows, unless `rules` are given.
        start: a Fit, or its model, of any learner, on the same columns: its rules join the
            candidates, and the solver starts from its weights (0 if `monotone` forbids them). It
            needs an `l1_penalty`: cross-validation starts from the previous penalty.
        n_folds: folds of the cross-validation; more took longer and chose no better penalty on
            24 000 rows of Adult.
        one_standard_error: choose the largest penalty within one standard error of the best.
    """

    l1_penalty: float | None = option(or_none(checks.penalty), default=None)
    start: Fit[RuleEnsemble] | RuleEnsemble | None = None
    n_folds: int = option(checks.integer, default=3, at_least=2)
    one_standard_error: bool = option(checks.flag, default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.require(
            not asks(self.monotone) or self.l1_penalty != 0, "monotone needs an l1_penalty above 0"
        )
        checks.require(
            self.start is None or self.l1_penalty is not None, "start needs an l1_penalty"
        )
        checks.require(
            self.groups is None or self.l1_penalty is None,
            "groups is for the folds that choose the penalty; leave l1_penalty at None, or omit "
            "groups",
        )

    @property
    def least_penalty(self) -> float | None:
        return self.l1_penalty

    def settings_at(self, l1_penalty: float, loss: Loss) -> Settings:
        """The settings of a model; a chosen penalty is recorded beside the given None."""
        chosen = {"chosen_l1_penalty": l1_penalty} if self.l1_penalty is None else {}
        return self.settings(loss=loss, **chosen)


@options
class _Penalties(_RuleFitShared):
    """What `path` and `cross_validate` have in common."""

    l1_penalties: Sequence[float] | None = option(checks.descending, default=None, at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.require(
            not asks(self.monotone) or self.l1_penalties is None or self.l1_penalties[-1] > 0,
            "monotone needs l1_penalties above 0",
        )

    @property
    def least_penalty(self) -> float | None:
        return None if self.l1_penalties is None else self.l1_penalties[-1]


@options
class RuleFitPathOptions(_Penalties):
    """The options of `path`.

    Attributes:
        l1_penalties: values of `l1_penalty`; sorted from large to small. None takes `n_penalties`
            values spaced evenly on a log scale from the smallest penalty at which every weight is
            zero (computed exactly) down to a thousandth of it.
        n_penalties: length of that default path.
    """

    renamed: ClassVar[Mapping[str, str]] = {"penalties": "l1_penalties"}

    n_penalties: int = option(checks.integer, default=_STEPS, at_least=2, at_most=10_000)


@options
class RuleFitGrid(Folds, _Penalties):
    """The options of `cross_validate`.

    Attributes:
        l1_penalties: the values to choose from; None for those that `fit` tries.
    """


@learner(RuleFitOptions)
def fit(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: RuleFitOptions
) -> Fit[RuleEnsemble]:
    """Fit a rule ensemble under an L1 penalty.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
    >>> result = fit(X, 3.0 * X[:, 0], l1_penalty=0.1)
    >>> result.model.conjunctions.describe(0), result.status.value
    ('x0 <= 0', 'converged')

    Args:
        X: array, dataframe or Table, shape (rows, features).
        y: classes, numbers or counts, according to the loss, shape (rows,). For more than two
            classes see `multiclass`: an ensemble with one output per class.
        sample_weight: weight of every row, shape (rows,).

    Returns:
        A Fit with `RuleFitDetails`; its bound is the dual objective. Classes one-vs-rest have
        `ManyClassesDetails`, and objective and bound are means over them. After
        cross-validation the details have the `jaxrules.CrossValidation`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for bad values in any argument, an empty rule pool, or rules of other columns.
    """
    run = options.run()
    task = _RuleFitTask.of(X, y, sample_weight, options)
    data = task.data
    start = given_start(options.start, RuleEnsemble, data, task.constraints, options.linear_terms)
    makes_rules = task.makes_rules and start is None
    sample = rows_for_rules(data, run, options.seed, task.needs) if makes_rules else None
    if sample is not None:
        return _in_time(task, sample, options.l1_penalty, run)
    pool = task.pool(data, run)
    if options.l1_penalty is None:
        return _cross_validated(task, pool, options, None, run)
    if start is None:
        few = _few_rules(task, options.l1_penalty, run)
        if few is not None:
            return few
        found = _walk(_RuleFitProblem.of(task, data, pool), [options.l1_penalty], run)[0]
        # Ctrl-C during the solve may leave no rule with a weight.
        few = None if len(found.model.conjunctions) else _few_rules(task, options.l1_penalty, run)
        return few or found
    known = {frozenset(rule) for rule in pool.rules}
    others = [k for k, rule in enumerate(start.conjunctions) if frozenset(rule) not in known]
    pool = pool.with_rules(start.conjunctions.take(others).with_schema(data.schema), data.table)
    problem = _RuleFitProblem.of(task, data, pool)
    return _walk(problem, [options.l1_penalty], run, start=problem.begun(start))[0]


def _in_time(
    task: _RuleFitTask, sample: TrainingData, l1_penalty: float | None, run: Run
) -> Fit[RuleEnsemble]:
    """The fit on all rows with the rules found on a sample, from their weights there."""
    model, shown = model_in_time(sample, fit, task.options, run, needs=task.needs)
    found = _with_rules_of(model, task, l1_penalty if shown is None else shown["l1_penalty"], run)
    details: Any = found.details
    return replace(found, details=replace(details, sample=len(sample.weights)))


def _few_rules(task: _RuleFitTask, l1_penalty: float | None, run: Run) -> Fit[RuleEnsemble] | None:
    """After Ctrl-C, a fit of a few rules to return if there are none yet; else None."""
    if not (task.makes_rules and run.interrupt.pressed):
        return None
    sample = rows_for_rules(task.data, run, task.options.seed, task.needs)
    return None if sample is None else _in_time(task, sample, l1_penalty, run)


def _with_rules_of(
    model: RuleEnsemble, task: _RuleFitTask, l1_penalty: float | None, run: Run
) -> Fit[RuleEnsemble]:
    """The fit on all rows with the rules of a model, from its weights."""
    seed = task.options.seed
    pool = rule_pool(model.conjunctions, task.data, seed, run, True, task.constraints)
    problem = _RuleFitProblem.of(task, task.data, pool, compiled=run.may_import(task.needs[1]))
    if l1_penalty is None:
        l1_penalty = _WITHOUT_FOLDS * max(master.max_penalty() for master in problem.masters)
    return _walk(problem, [l1_penalty], run, start=problem.begun(model))[0]


@learner(RuleFitPathOptions)
def path(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: RuleFitPathOptions
) -> list[Fit[RuleEnsemble]]:
    """One Fit for each of some penalties, the largest first, each starting from the one before.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
    >>> [len(one.model.conjunctions) for one in path(X, 3.0 * X[:, 0], l1_penalties=[5.0, 0.1])]
    [0, 1]

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The fits; ``details["l1_penalty"]`` is the penalty of each. If the time limit or Ctrl-C
        ends the path early, the fits so far are returned, and the status of the last one says so.

    Raises:
        TypeError, ValueError: as `fit`.
    """
    run = options.run("rulefit path")
    task = _RuleFitTask.of(X, y, sample_weight, options)
    problem = _RuleFitProblem.of(task, task.data, task.pool(task.data, run))
    penalties = options.l1_penalties or _default_penalties(problem, options.n_penalties)
    return _walk(problem, penalties, run)


@learner(RuleFitGrid)
def cross_validate(
    X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: RuleFitGrid
) -> Fit[RuleEnsemble]:
    """Choose the penalty by cross-validation (see `jaxrules.learning.cross_validation`); fit on
    all rows.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
    >>> result = cross_validate(X, 3.0 * X[:, 0], l1_penalties=[5.0, 0.1], n_folds=2)
    >>> result.details.cross_validation.setting
    {'l1_penalty': 0.1}

    Args:
        X, y, sample_weight: as for `fit`.

    Returns:
        The Fit on all rows; its details also have the `jaxrules.CrossValidation`.

    Raises:
        TypeError, ValueError: as `fit`; for more folds than rows, or a class with a single row.
    """
    run = options.run()
    task = _RuleFitTask.of(X, y, sample_weight, options)
    return _cross_validated(task, task.pool(task.data, run), options, options.l1_penalties, run)


# The problem: which columns, which rows


@dataclass(frozen=True, eq=False)
class _RuleFitTask:
    """The data of a fit, and what its rules may be.

    Attributes:
        options: of the fit.
        data: all rows.
        constraints: on rules and terms.
        first: the rules that come first and stay.
        joint: whether several classes are fitted together.
    """

    options: _RuleFitShared
    data: TrainingData
    constraints: Constraints
    first: Conjunctions
    joint: bool

    @property
    def needs(self) -> tuple[str, str]:
        """What takes long to load: trees and products."""
        return FORESTS, f"{_PRODUCTS}_of_classes" if self.joint else _PRODUCTS

    @property
    def makes_rules(self) -> bool:
        """Whether all rules come from the labels."""
        return depends_on_labels(self.options.rules) and not len(self.first)

    @classmethod
    def of(
        cls, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None, options: _RuleFitShared
    ) -> _RuleFitTask:
        loss = loss_for(y, options.loss)
        require(loss, "conjugate", "the certificate of rulefit")
        data = options.training_data(X, y, sample_weight, loss)
        if options.rules is None or isinstance(options.rules, Conjunctions):
            data = by_content(data)  # other forests and pools have the order of X
        joint = options.joins(data)
        if data.target.ndim > 1:
            options = replace(options, multiclass="joint" if joint else "one_vs_rest")
        schema = data.table.schema
        constraints = Constraints.of(schema, options.forbidden, (), options.monotone)
        constraints.warn_of_constants(data.table)
        first = constraints.first(data.table, options.first, len(data.outputs))
        return cls(options, data, constraints, first, joint)

    def pool(self, data: TrainingData, run: Run) -> RulePool:
        """The candidates on some rows: the first rules, then the others."""
        pool = rule_pool(
            self.options.rules, data, self.options.seed, run,
            self.options.linear_terms or len(self.first) > 0, self.constraints,
        )  # fmt: skip
        if not len(self.first):
            return pool
        first = self.first.with_schema(data.schema)
        return RulePool(first, Activations.of(first, data.table)).with_rules(pool.rules, data.table)

    def pools_of_folds(
        self, pool: RulePool, fold_of: NDArray[np.int64], run: Run
    ) -> list[RulePool]:
        """The given or newly made rules of each fold on its training rows, until the run is
        stopped.
        """
        pools: list[RulePool] = []
        for k in range(fold_of.max() + 1):
            if run.stopped():
                break
            inside = fold_of != k
            if depends_on_labels(self.options.rules):
                pools.append(self.pool(self.data[inside], run))
            else:
                pools.append(RulePool(pool.rules, pool.activations.take_rows(inside)))
        return pools

    def signs(self, rules: Conjunctions, terms: Terms) -> list[Bools] | None:
        """For every output, whether the weight of a rule or term may be negative, and positive,
        (columns, 2); None if all may be both.
        """
        if not self.constraints.monotone:
            return None
        n_outputs = len(self.data.outputs)
        every = Conjunctions.concatenate([rules, terms.rising(rules.schema)])
        return [self.constraints.signs(every, output, n_outputs) for output in range(n_outputs)]


_Positions = tuple[Any, ...]
"""Where the solver starts: for each of its problems, a solution, or coefficients and intercept."""


class _Solved(NamedTuple):
    """The solution at one penalty: one of the solver's per output, or one for all."""

    l1_penalty: float
    outputs: tuple[sparse_glm.SparseSolution, ...]

    @property
    def coefficients(self) -> Floats:
        """Shape (rules and terms, outputs)."""
        return np.column_stack([one.coefficients for one in self.outputs]) + 0.0  # no -0.0

    @property
    def intercept(self) -> Floats:
        """Shape (outputs,)."""
        return np.hstack([one.intercept for one in self.outputs])

    @property
    def objectives(self) -> tuple[float, ...]:
        return tuple(one.objective for one in self.outputs)

    @property
    def objective(self) -> float:
        return float(np.mean(self.objectives))

    @property
    def bounds(self) -> tuple[float, ...]:
        return tuple(min(one.bound, one.objective) for one in self.outputs)  # but for rounding

    @property
    def statuses(self) -> tuple[Status, ...]:
        return tuple(one.status for one in self.outputs)


@dataclass(frozen=True, eq=False)
class _RuleFitProblem:
    """The L1-penalised problem on some rows, with the candidates of these rows.

    Attributes:
        task: the options and constraints.
        data: the rows.
        pool: the candidates on them.
        terms: the linear terms.
        factors: of the penalties of rules and terms, shape (rules and terms,).
        design: rules and terms as the solver's columns.
        signs: as `_RuleFitTask.signs`.
    """

    task: _RuleFitTask
    data: TrainingData
    pool: RulePool
    terms: Terms
    factors: Floats
    design: sparse_glm.Design
    signs: list[Bools] | None

    @classmethod
    def of(
        cls, task: _RuleFitTask, data: TrainingData, pool: RulePool, compiled: bool = True
    ) -> _RuleFitProblem:
        """See `BitColumns` for `compiled`."""
        options = task.options
        terms = Terms.of(data, task.constraints, options.linear_terms, options.winsorise)
        factors = np.append(np.ones(len(pool.rules)), terms.factors)
        row = pool.activations.pattern
        # The design has a row per pattern of rules, under summed weights. Linear terms and losses
        # that are not mergeable tell rows of one pattern apart, and need them all.
        matrix: BitColumns | tuple[Bools, Floats] = BitColumns(pool.activations.bits, compiled)
        if terms.linear is not None:
            matrix = pool.activations.holds().T[row], terms.linear.values(data.table)
        elif not data.loss.mergeable:
            bits = take_columns(pool.activations.bits, pool.activations.n_patterns, row)
            matrix = BitColumns(bits, compiled)
        if terms.linear is not None or not data.loss.mergeable:  # no rows are merged
            row = np.arange(len(row))
        design = sparse_glm.Design.of(matrix, inverse=row)
        signs = task.signs(pool.rules, terms)
        # An expert's rules have no penalty, except where monotone fixes their signs.
        free = np.arange(len(factors)) < len(task.first)
        factors[free if signs is None else free & np.all(signs, axis=(0, 2))] = 0.0
        return cls(task, data, pool, terms, factors, design, signs)

    @cached_property
    def masters(self) -> Sequence[sparse_glm.SparseProblem | sparse_softmax.SoftmaxProblem]:
        """The solver's problem of every output, or of all together."""
        if self.task.joint:
            data = self.data
            check_memory(
                self.design.n_patterns, data.target.shape[1], _JOINT_BYTES, what="classes",
                extra=8.0 * data.target.shape[1] * min(_JOINT_COLUMNS, len(self.factors)) ** 2,
                remedy=ONE_VS_REST,
            )  # fmt: skip
            together = self.design, data.target, data.weights, self.factors
            return [sparse_softmax.SoftmaxProblem.of(*together)]
        return self._masters(self.data.weights)

    def _masters(self, sample_weight: Floats) -> list[sparse_glm.SparseProblem]:
        signs: Sequence[Bools | None] = self.signs or [None] * len(self.data.outputs)
        given = self.data.loss, sample_weight, True, self.factors
        pairs = zip(self.data.outputs, signs, strict=True)
        return [sparse_glm.SparseProblem.of(self.design, y, *given, own) for y, own in pairs]

    @property
    def traced(self) -> bool:
        """Whether paths are one JAX program."""
        options = self.task.options
        if self.task.joint or options.engine != "auto":
            return options.engine == "jax"
        rows, columns = self.design.n_patterns, self.design.n_columns
        on_devices = placement.mesh() is not None or worth_an_accelerator(rows * columns)
        return on_devices and not options.limited

    def ahead(
        self,
        penalties: Sequence[float],
        tolerance: float,
        start: _Positions | None = None,
        fold_of: NDArray[np.int64] | None = None,
    ) -> TracedPath | None:
        """Where the solver starts at every penalty, on all rows or on those of every fold; None for
        an engine that starts from the solution before.
        """
        if not self.traced:
            return None
        weights = self.data.weights
        each = [weights]
        if fold_of is not None:
            # The folds share one design; their held-out rows have weight 0.
            each = [weights * (fold_of != k) for k in range(int(fold_of.max()) + 1)]
        problems = [one for of_rows in each for one in self._masters(of_rows)]
        return TracedPath(problems, penalties, max(tolerance, self.task.options.tolerance), start)

    def begun(self, model: RuleEnsemble) -> _Positions:
        """A model whose rules are in the pool as coefficients and intercept, an output each."""
        place = {frozenset(rule): k for k, rule in reversed(list(enumerate(self.pool.rules)))}
        weights = np.zeros((len(self.pool.rules), model.n_outputs))
        # Equal rules of the model share a place, where their weights add up.
        np.add.at(weights, [place[frozenset(rule)] for rule in model.conjunctions], model.weights)
        begun = self.terms.start(coefficients_of(model.linear), model.n_outputs)
        coefficients = np.concatenate([weights, begun])
        for k, signs in enumerate(self.signs or []):
            coefficients[:, k] = permitted(coefficients[:, k], signs)
        intercept = np.asarray(model.intercept, np.float64)
        if self.task.joint:
            return ((coefficients, intercept),)
        return tuple(zip(coefficients.T, intercept.tolist(), strict=True))

    def solve(
        self, l1_penalty: float, start: _Positions | None, run: Run, tolerance: float = 0.0
    ) -> _Solved:
        """The solution at a penalty, to this tolerance or that of the fit; if the run is stopped,
        `start` or the constant model.
        """
        solutions: list[sparse_glm.SparseSolution] = []
        tolerance = max(tolerance, self.task.options.tolerance)
        starts = start or [None] * len(self.masters)
        for k, (master, begin) in enumerate(zip(self.masters, starts, strict=True)):
            part = run.child(1 / (len(self.masters) - k))
            found = master.solve(l1_penalty, start=begin, tolerance=tolerance, run=part)
            solutions.append(self._named(master, found))
        return _Solved(l1_penalty, tuple(solutions))

    @cached_property
    def twins(self) -> tuple[NDArray[np.intp], Floats] | None:
        """For each rule the first with the same penalty that holds for the same rows, or for
        exactly the other rows, and 1 or -1 accordingly; None under signs.
        """
        if self.signs is not None:
            return None
        bits, n = self.pool.activations.bits, self.pool.activations.n_patterns
        other = (bits[:, 0] & np.uint64(1)).astype(bool)  # rules that hold for the first row
        # Of a rule and its complement, the form that does not hold for the first row.
        keys = np.where(other[:, None], bits ^ pack(np.ones((1, n), bool)), bits)
        # Rules without a penalty are no twins of those with one: moving weight changes the
        # objective.
        free = (np.arange(len(bits)) < len(self.task.first)).astype(np.uint64)
        first, number = distinct(np.column_stack([keys, free]))
        twin = first[number]
        return twin, np.where(other[twin] == other, 1.0, -1.0)

    def _named(
        self,
        master: sparse_glm.SparseProblem | sparse_softmax.SoftmaxProblem,
        solution: sparse_glm.SparseSolution,
    ) -> sparse_glm.SparseSolution:
        """The same solution, or the one with the same scores and objective that has, of rules with
        the same or exactly the other rows, only the first; without negligible weights.
        """
        b, intercept = solution.coefficients.copy(), solution.intercept
        first, side = self.twins or (np.zeros(0, np.intp), np.zeros(0))
        for k in np.flatnonzero(first != np.arange(len(first))).tolist():
            j, moved = first[k], side[k] * b[k]
            # b_k r_k = b_k (1 - r_j) for a complement: -b_k moves to r_j, and b_k to the intercept.
            # With opposite signs, weights would pay the penalty twice for a part that cancels.
            if np.all(b[j] * moved >= 0):  # as in every optimum
                b[j], b[k] = b[j] + moved, 0.0
                if side[k] < 0:
                    intercept = intercept - moved
        size = np.abs(b).max(axis=tuple(range(1, b.ndim)))
        # Factors take the unit out of the weights of linear terms, as rules have none.
        size *= np.where(self.factors > 0, self.factors, 1.0)
        b[size <= _NEGLIGIBLE * size.max(initial=0.0)] = 0.0
        return master.renamed(solution, b, intercept)

    def model(self, solved: _Solved) -> RuleEnsemble:
        """The rules and terms with nonzero weight."""
        weights, coefficients = np.split(solved.coefficients, [len(self.pool.rules)])
        loss = self.data.loss
        settings = self.task.options.settings_at(solved.l1_penalty, loss)
        return ensemble(
            self.pool.rules.take, len(self.task.first), weights, self.terms, coefficients,
            solved.intercept, "softmax" if self.task.joint else loss.link, settings, loss.name,
        )  # fmt: skip

    def details(self, solved: _Solved) -> RuleFitDetails:
        """What a fit reports; by class, if they are one-vs-rest."""
        common: dict[str, Any] = {
            "l1_penalty": solved.l1_penalty,
            "n_candidates": len(self.pool.rules),
            "engine": "jax" if self.traced else "numpy",
        }
        if len(solved.outputs) == 1:
            return RuleFitDetails(**common)
        return ManyClassesDetails(
            **common, objectives=solved.objectives, bounds=solved.bounds, statuses=solved.statuses
        )


# Fits along a path


def _default_penalties(problem: _RuleFitProblem, n: int) -> tuple[float, ...]:
    """From the least penalty at which every weight is zero, downwards."""
    largest = max(master.max_penalty() for master in problem.masters)
    return tuple((largest * np.geomspace(1.0, _SMALLEST_PENALTY, n)).tolist())


def _walk(
    problem: _RuleFitProblem,
    penalties: Sequence[float],
    run: Run,
    rough: float = 0.0,
    start: _Positions | None = None,
) -> list[Fit[RuleEnsemble]]:
    """Warm-started fits until the run is stopped; at least one.

    Args:
        rough: the least tolerance of all but the last.
        start: of the first.
    """
    path: list[_Solved] = []
    run.phase, run.total = "search", len(penalties)
    ahead = problem.ahead(penalties, 0.0, start)
    with run:
        for i, penalty in enumerate(penalties):
            tolerance = rough if i < len(penalties) - 1 else 0.0
            begin = path[-1].outputs if path else start
            if ahead is not None and not run.stopped():
                begin = ahead.starts(i)
            path.append(problem.solve(penalty, begin, run, tolerance))
            run.step(path[-1].objective, int(path[-1].coefficients.any(axis=1).sum()))
            if run.stopped():
                break
    if not path:  # interrupted: the start, or the model without rules
        path.append(problem.solve(penalties[0], start, run))
    fits = []
    for i, solved in enumerate(path):
        seconds = run.history[i].seconds if i < len(run.history) else run.seconds()
        status, bound = Status.worst(solved.statuses), float(np.mean(solved.bounds))
        fits.append(Fit(
            problem.model(solved), solved.objective, "min", status, bound, run.history[: i + 1],
            seconds, problem.details(solved),
        ))  # fmt: skip
    early = run.limit is not None and len(fits) < len(penalties)
    if early or run.limit is Status.INTERRUPTED or run.shortened:
        fits[-1] = replace(fits[-1], status=run.limit or Status.TIME_LIMIT)
    return fits


# Cross-validation


def _reached(found: CrossValidation, search: Run, otherwise: int, n_models: int) -> CrossValidation:
    """The choice among penalties that a search cut short has reached."""
    # Time ended while the loss still fell: no larger penalty than the one without folds.
    if search.limit is not None and _was_falling(found):
        found = replace(found, chosen=max(otherwise, found.chosen))
    # The model of a fold may become the result: the penalty must be one that the fold has reached.
    if search.interrupt.pressed and n_models:
        found = replace(found, chosen=min(found.chosen, n_models - 1))
    return found


def _cross_validated(
    task: _RuleFitTask,
    pool: RulePool,
    options: RuleFitOptions | RuleFitGrid,
    tried: Sequence[float] | None,
    run: Run,
) -> Fit[RuleEnsemble]:
    """The fit at the penalty that predicts best, from a list or along a path."""
    data = task.data
    fold_of = folds(data, options.n_folds, options.seed, options.coded_groups)
    # No time for a whole pool: none for folds.
    search = run.child(1e-9 if run.shortened else SHARE, "rulefit cross-validation")
    pools = task.pools_of_folds(pool, fold_of, search)
    if (few := _before_folds(task, tried, options.n_folds, run)) is not None:
        return few
    problem = _RuleFitProblem.of(task, data, pool)
    penalties = _default_penalties(problem, _STEPS) if tried is None else tried
    models: list[list[RuleEnsemble]] = [[] for _ in range(options.n_folds)]
    shared = None  # linear terms of a fold are winsorised on its own rows
    if not depends_on_labels(options.rules) and not options.linear_terms:
        shared = problem.ahead(penalties, _ROUGH, fold_of=fold_of)

    def walk(k: int, inside: TrainingData, run: Run) -> Iterator[RuleEnsemble]:
        if k >= len(pools):
            return
        fold, solved = _RuleFitProblem.of(task, inside, pools[k]), None
        n_outputs = len(data.outputs)
        # In the shared program a fold has as many problems as there are outputs, one after another.
        own = slice(k * n_outputs, (k + 1) * n_outputs)
        ahead = shared or fold.ahead(penalties, _ROUGH)
        for i, penalty in enumerate(penalties):
            begin: _Positions | None = solved and solved.outputs
            if ahead is not None:
                begin = ahead.starts(i)[own] if shared else ahead.starts(i)
            solved = fold.solve(penalty, begin, run, _ROUGH)
            if run.stopped():
                return
            models[k].append(fold.model(solved))
            yield models[k][-1]

    otherwise = _without_folds(penalties)
    found = cross_validated(
        data, [{"l1_penalty": penalty} for penalty in penalties], walk, fold_of, search,
        one_standard_error=options.one_standard_error, otherwise=otherwise,
        n_jobs=options.n_jobs if isinstance(options, RuleFitGrid) else 1,
        patience=_PATIENCE if tried is None else len(penalties),
    )  # fmt: skip
    found = _reached(found, search, otherwise, len(models[0]))
    # Warm starts down the path make the last fit fast; without time for them, it starts at the
    # chosen penalty.
    path = penalties[0 if search.limit is None else found.chosen : found.chosen + 1]
    last = _last(problem, path, models[0][found.chosen : found.chosen + 1], run)
    details = replace(last.details, cross_validation=found)
    return replace(last, status=search.limit or last.status, details=details)


def _last(
    problem: _RuleFitProblem, penalties: Sequence[float], of_fold: Sequence[RuleEnsemble], run: Run
) -> Fit[RuleEnsemble]:
    """The fit on all rows at the last of these penalties.

    Args:
        of_fold: the model of a fold at the last penalty, or nothing: after Ctrl-C, its rules and
            weights are the best so far.
    """
    task, penalty = problem.task, penalties[-1]

    def interrupted() -> Fit[RuleEnsemble] | None:
        known = [model for model in of_fold if len(model.conjunctions)]
        if not (known and run.interrupt.pressed):
            return None
        return _with_rules_of(known[0], task, penalty, run)

    fit = interrupted() or _few_rules(task, penalty, run)
    if fit is None:
        fit = _walk(problem, penalties, run, _ROUGH)[-1]
        fit = interrupted() or fit
    return fit


def _before_folds(
    task: _RuleFitTask, tried: Sequence[float] | None, n_folds: int, run: Run
) -> Fit[RuleEnsemble] | None:
    """`_few_rules` with an empty table of cross-validation, of its penalty alone."""
    few = _few_rules(task, None if tried is None else tried[_without_folds(tried)], run)
    if few is None:
        return None
    none = np.full((n_folds, 1), np.nan)
    table = CrossValidation(({"l1_penalty": few.details["l1_penalty"]},), none, none, 0)
    return replace(few, details=replace(few.details, cross_validation=table))


def _without_folds(penalties: Sequence[float]) -> int:
    """The choice if time runs out first: the largest penalty of at most `_WITHOUT_FOLDS` of the
    first.
    """
    larger = sum(penalty > _WITHOUT_FOLDS * penalties[0] for penalty in penalties)
    return min(larger, len(penalties) - 1)


def _was_falling(found: CrossValidation) -> bool:
    """Whether the held-out loss was least at the last penalty that was measured, by only some folds
    if time ended early.
    """
    measured = np.sum(~np.isnan(found.risks), axis=0)
    reached = found.risks[:, (measured > 0) & (measured == measured.max())]
    return reached.size > 0 and bool(np.nanmean(reached, axis=0).argmin() == reached.shape[1] - 1)
