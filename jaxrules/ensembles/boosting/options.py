"""The options of rule boosting: each once, with its type, default, check and documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from jaxrules.learning.options import (
    Folds,
    Multiclass,
    ScoreOptions,
    against_joint,
    joins,
    option,
    options,
)
from jaxrules.learning.training import TrainingData
from jaxrules.losses import LossOption
from jaxrules.rules.conditions import Conjunctions, PropositionPool
from jaxrules.rules.constraints import asks
from jaxrules.solvers.rule_search import Objective as RuleObjective
from jaxrules.solvers.rule_search import SearchSpace
from jaxrules.tools import checks, placement

Objective = Literal["second_order", "corrective_decrease", "gradient_sum", "orthogonal"]
Search = Literal["optimal", "greedy", "beam"]
Engine = Literal["auto", "numpy", "jax"]
CUT_POINTS = 20
"""The default number of cut points per column."""
_SOME_VISITS = 50_000_000
"""Default limit on rows times evaluations of the search for one rule: a fraction of a second."""
_SOME_PRODUCTS = 4_000_000_000
"""The same for rows times triples of propositions that products of matrices compare."""
_MOST_PAIRS, _MOST_PAIRED = 2500, 400_000_000
"""By default, limits per rule on the number of pairs of columns examined, and on pairs times rows.
"""
_WORTH_A_DEVICE = 100_000_000
"""From this many rows times columns squared on, an accelerator repays compiling its program."""
FEW_RULES, _MOST_RULES = 10, 40
"""The most rules of `max_rules="auto"` and of `max_rules=None`."""
_FEW = 64
"""With at most this many propositions, rules may by default have three of them, otherwise two."""

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


_penalty = partial(checks.optional, checks.penalty)


def _known_search(name: str, value: Any) -> Any:
    if isinstance(value, str) and value == "published":
        raise ValueError(
            'search="published" is a separate function: jaxrules.boosting.published(X, y, ...)'
        )
    return checks.choice(name, value, get_args(Search))


def _check_prune(name: str, value: object) -> float | int | None:
    """A share of the weights in (0, 1], or their number: 1.0 means all, the integer 1 a single
    weight.

    Raises:
        TypeError, ValueError: naming the argument.
    """
    if value is None:
        return None
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return checks.integer(name, value, at_least=1)
    if isinstance(value, (float, np.floating)) and value > 1:
        raise ValueError(
            f"{name} must be a share of the weights in (0, 1], or a whole number of weights, "
            f"got {value}"
        )
    return checks.number(name, value, above=0, at_most=1)


@options
class _BoostingShared(ScoreOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        loss: None for "logistic" if y holds classes (see `jaxrules.data.table.holds_classes`), else
            "squared"; a name; or a function of (y, score) made of JAX operations, convex and twice
            differentiable in the score.
        objective: what a rule maximises, see `jaxrules.ensembles.boosting`.
        search: "optimal"; "greedy", the paper's baseline; or "beam" (width 10). The paper's own
            Algorithm 1 is `published`.
        per_unit: a rule maximises its objective divided by 1 + its length, the gain per unit of
            complexity.
        corrective: refit all weights after every rule, instead of keeping the earlier ones.
        intercept: start from the best constant. The paper starts from 0; there the empty
            conjunction, which holds for every row, is a candidate rule.
        multiclass: for more than two classes. "joint" fits one problem with the softmax loss, a
            weight per class and rule, see `jaxrules.ensembles.boosting.ensemble`; it needs the
            logistic loss and the default `objective`, `corrective`, `intercept`, `eliminate` and
            `monotone`. "one_vs_rest" fits one model per class against the rest. None: "joint" if it
            can, else "one_vs_rest".
        prune: for classes fitted together, the number (an int) or share (a float) of the weights to
            keep, for readability; each rule keeps at least one, and the remaining weights are
            refitted. ``details.pruning`` reports the cost. None keeps all.
        eliminate: after every rule, remove rules and conditions, the least useful first, while a
            removal raises the risk by less than half of what that rule gained, both per unit of
            complexity. Weights are refitted. The model may have fewer rules than stages.
        objective_tolerance: the relative gain of the objective that every further proposition must
            exceed.
        max_nonzeros: the most columns in a condition. With 2 or more, a rule may use conditions on
            linear combinations of columns, `2 variance + skewness >= -0.3`, if the gain justifies
            their complexity; see `jaxrules.ensembles.boosting.directions`. Nothing is proved about
            these, except with ``max_length=1, max_nonzeros=2``: then each stage tries all
            half-planes of all pairs of columns, up to a few thousand rows. That takes up to 4 CPU
            seconds a stage; a `time_limit` shortens it, and unfinished stages have no bound.
        linear_terms: a stage may add a winsorised numeric column instead of a rule if its gain per
            unit of complexity is larger; see `jaxrules.ensembles.boosting.linear_terms`. The ridge
            applies to its coefficient times std / .4, as in RuleFit. It needs the default
            `objective`, `corrective` and `intercept`.
        winsorise: share of values clipped at each end of a column of a linear term, in [0, 0.5).
        propositions: the propositions to build rules from; None takes
            `jaxrules.rules.conditions.propositions_of`.
        forbidden: columns, by name or position, that no rule and no linear term may use.
        required: columns that some rule must use: once only as many rules remain as there are
            unused required columns, each must use one of them.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with the
            column; see `jaxrules.rules.constraints`. Rules of positive and of negative weight are
            then searched for separately, and refits keep the signs; a rule whose weight becomes 0
            is dropped.
        first: an expert's rules. The model starts from them and keeps them; they count towards
            `max_rules`. Their weights are fitted at the start and at every refit, under
            `l2_penalty`.
        max_length: the most propositions of a rule, None for any number. "auto": 2, or 3 with at
            most 64 propositions, as in tables of a few categories, where one condition says less
            than a threshold does. Up to 2, every rule is proved optimal, in about rows x columns^2
            / 2 steps; docs/measured/boosting.md has a table of what is proved when.
        max_cut_points: the most cut points per numeric column, at quantiles of the unweighted rows.
            "auto": 20, or as many as memory allows, and thresholds that the data choose among all
            values, see `jaxrules.ensembles.boosting.thresholds`; with search="optimal", no
            `propositions`, and the default `objective`, `corrective` and `intercept`. None takes
            every value.
        approximation: alpha in (0, 1]: each rule's objective is at least alpha times the optimum.
        max_evaluations: limit on objective evaluations per rule, after which the best rule so far
            is added and its gap reported. "auto" is 5e7 divided by the rows (a fraction of a
            second) if rules may be longer than 2, and 4e9 for three of at most 64 propositions,
            which products of matrices compare; None for no limit. The rule is at least as good as
            that of a beam search, or the best pair. All pairs of conditions are examined, by
            histograms, for up to 2500 pairs of columns (70 columns) and 4e8 pairs times rows.
            Beyond that, "auto" pairs the columns of the best single conditions with all others, and
            takes as many pairs with the strongest interactions; the status of the stage is then
            "max_iterations", its bound holds for all rules but is loose, and its counts report the
            number of pairs left out. Unlike time limits, this limit does not depend on the machine.
        engine: what examines the pairs of conditions: "numpy", the host's histograms (NumPy and
            numba), or "jax", JAX's device: products of matrices rank all pairs, whatever their
            number, and the host evaluates those that may be the best. Rules and bounds are the
            same; of three conditions, "jax" proves the best. "auto" is "jax" on an accelerator,
            from 10^8 rows times columns squared on. "jax" needs search="optimal", rules of at most
            two or three conditions, no number of `max_evaluations` and at most 256 cells per
            column.
        seed: of the sample of rows (see `time_limit`); the search is deterministic.
        time_limit: seconds for the whole fit. Each stage gets an equal share of the remaining time;
            one that runs out of time adds its best rule so far, reports its gap, and the next stage
            begins. With less than about a microsecond per entry of `X`, half of the time is spent
            on a fit to a sample of the rows (``details["sample"]``), and the rules on all rows are
            built from its propositions.
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
    prune: float | int | None = option(_check_prune, default=None)
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
    engine: Engine = option(checks.choice, default="auto", known=get_args(Engine))

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting, other in (
            (f'search="{self.search}"', self.search != "optimal"),
            (f"max_length={self.max_length}", self.max_length not in ("auto", 2, 3)),
            (f"max_evaluations={self.max_evaluations}", self.max_evaluations not in ("auto", None)),
        ):
            if self.engine == "jax" and other:
                raise ValueError(
                    f'engine="jax" examines all pairs or triples of conditions, which {setting} '
                    'does not; leave that out, or set engine="auto"'
                )
        # Both compare models whose weights are all refitted: an ensemble that keeps its earlier
        # weights would not have the gains that they predict.
        for name, refits in (
            ('objective="corrective_decrease"', self.objective == "corrective_decrease"),
            ("eliminate", self.eliminate),
        ):
            if refits and not self.corrective:
                raise ValueError(
                    f'{name} refits all weights; set corrective=True, or objective="second_order"'
                )
        if self.linear_terms and not self.refits_all:
            raise ValueError(
                "linear_terms=True refits all weights and an intercept; leave objective, "
                "corrective and intercept at their defaults, or drop linear_terms"
            )
        if self.max_nonzeros > 1 and self.propositions is not None:
            raise ValueError(
                "max_nonzeros above 1 cannot be combined with propositions, which fix all "
                "conditions; set only one of them"
            )

    def joins(self, data: TrainingData) -> bool:
        """Whether the classes of these data are fitted together.

        Raises:
            ValueError: if they must be and cannot.
        """
        several = data.target.ndim > 1
        against = against_joint(
            data.loss.name, asks(self.monotone),
            (f'objective="{self.objective}"', self.objective != "corrective_decrease"),
            ("intercept=False", not self.intercept), ("eliminate=True", self.eliminate),
        )  # fmt: skip
        joint = joins(self.multiclass, several, against)
        if self.prune is not None and not joint:
            remedy = f"; leave out {' and '.join(against)}" if several and against else ""
            raise ValueError(
                "prune needs more than two classes that are fitted together "
                f'(multiclass="joint"){remedy or "; leave it out"}'
            )
        return joint

    @property
    def refits_all(self) -> bool:
        """Whether all weights and an intercept are refitted, and the objective accounts for it."""
        return self.objective == "corrective_decrease" and self.corrective and self.intercept

    @property
    def all_thresholds(self) -> bool:
        """Whether rules may use thresholds between all values of a column."""
        if self.search != "optimal" or self.propositions is not None or not self.refits_all:
            return False
        # Single conditions over all values come from sorted columns, in time linear in the rows; a
        # search among propositions at all values takes quadratic time.
        return self.max_cut_points == "auto" or (
            self.max_cut_points is None and self.max_length == 1
        )

    def longest(self, propositions: int) -> int | None:
        """The most propositions of a rule, given the number of candidates; None for any number."""
        if self.max_length == "auto":
            return 3 if propositions <= _FEW else 2
        return self.max_length

    def evaluations(self, rows: int, share: int = 1) -> int | None:
        """The limit on evaluations of one of `share` searches over `rows` merged rows."""
        if self.max_evaluations is None:
            return None
        # An evaluation visits up to all rows: with a fixed number of visits, time stays about the
        # same.
        auto = self.max_evaluations == "auto"
        limit = max(1, _SOME_VISITS // rows) if auto else self.max_evaluations
        return max(1, int(limit) // share)

    def on_device(self, space: SearchSpace, objective: RuleObjective) -> bool:
        """Whether a device ranks the pairs of these propositions."""
        if self.engine == "numpy" or not objective.formula or space.partitions is None:
            return False
        work = space.activations.n_patterns * len(space.partitions) ** 2
        return self.engine == "jax" or (
            work >= _WORTH_A_DEVICE and placement.device().platform != "cpu"
        )

    def by_products(self, space: SearchSpace, objective: RuleObjective) -> bool:
        """Whether the host compares all triples of propositions by products of matrices."""
        few = len(space) <= _FEW and space.partitions is not None
        return few and objective.formula == "square" and self.max_evaluations in ("auto", None)

    def triples(self, space: SearchSpace, objective: RuleObjective, share: int) -> int | None:
        """The limit on evaluations of one of `share` searches for three propositions."""
        rows = space.activations.n_patterns
        if self.max_evaluations is None or not self.by_products(space, objective):
            return self.evaluations(rows, share)
        return max(1, _SOME_PRODUCTS // (rows * objective.classes * share))

    def pairs(self, rows: int) -> int | None:
        """The most pairs of columns to examine for one rule on this many merged rows."""
        return None if self.max_evaluations is None else min(_MOST_PAIRS, _MOST_PAIRED // rows)


@options
class BoostingOptions(_BoostingShared):
    """The options of `fit` and `path`.

    Attributes:
        max_rules: the number of rules and linear terms (with multiclass="one_vs_rest", per class);
            fewer if no further rule reduces the risk. "auto": as many as gain more in likelihood
            than a smaller ridge would, at most ten; `jaxrules.ensembles.size` has the
            criterion, by which the less is left to explain, the less a rule must gain. Ten for
            losses other than the logistic, squared and Poisson one, and without refits. None: the
            same, at most 40, for these losses only. ``details["chosen"]`` reports the number, and
            `path` returns the fits of all sizes.
        l2_penalty: the paper's lambda >= 0, relative to sums over rows. None: a first fit of ten
            rules with a small ridge leaves a share q of the constant's loss (to which 30 / rows is
            added, at most .2, as ten rules explain that much by chance; on few rows, rules for a
            permuted target tell how much it is, see docs/defaults.md). The ridge is then 32 q /
            (1 - q), but at least 4, times the mean curvature of the loss at the constant: 1 to 72
            for two equal classes, 8 to 576 for the squared loss. If one of two classes is rare,
            rules explain more by chance, and the 32 count curvatures between the mean and that of
            equal classes. Rules are found with it, whatever
            `max_rules` is; refitted weights of more than ten rules have a larger ridge where there
            is noise, for 40 rules up to 4.6 times as large. Those of fewer rules by choice of the
            data may have a smaller one. ``details["chosen"]`` says why it was chosen. Several
            classes fitted together have twice this ridge, with which two classes are the binary
            problem; 30 / rows is not added then, and l2_penalty is at least 1. Fitted one-vs-rest,
            each class has its own. With 0, curvatures are raised to 1e-8 of the largest, because
            saturated rows of the logistic loss have almost none.
    """

    max_rules: int | Literal["auto"] | None = option(checks.size, default="auto")
    l2_penalty: float | None = option(_penalty, default=None)

    @property
    def most_rules(self) -> int:
        """The most rules and linear terms."""
        if isinstance(self.max_rules, int):
            return self.max_rules
        return _MOST_RULES if self.max_rules is None else FEW_RULES


@options
class BoostingGrid(Folds, _BoostingShared):
    """The options of `cross_validate`.

    Attributes:
        max_rules: the most rules; every number from 1 on is tried.
        l2_penalties: values of the ridge.
    """

    max_rules: int = option(checks.integer, default=20, at_least=1, at_most=10_000)
    l2_penalties: Sequence[float] = option(checks.penalties, default=(1.0, 8.0))


@options
class PublishedBoostingOptions(ScoreOptions):
    """The options of `published`; they mean what they mean for `fit`, with the paper's defaults.

    Attributes:
        loss: None for "logistic" if y holds classes, else "squared"; a name; or a function.
        objective: what a rule maximises: (2.3), or |sum g|.
        max_rules: the number of rules; fewer if no further rule reduces the risk.
        l2_penalty: the paper's lambda >= 0, relative to sums over rows.
        corrective: refit all weights after every rule.
        intercept: start from the best constant, not from 0.
        propositions: the propositions to build rules from; None takes
            `jaxrules.rules.conditions.propositions_of`.
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
