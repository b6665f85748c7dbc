"""The options of LIRE's functions, and the default penalties, which depend on the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np

from jaxrules.data.table import Schema
from jaxrules.ensembles.extraction import RuleSource
from jaxrules.ensembles.lire.moves import Encoding
from jaxrules.ensembles.noise import rarity, share_of, unit
from jaxrules.ensembles.size import nats_among
from jaxrules.learning.options import (
    Folds,
    Multiclass,
    ScoreOptions,
    against_joint,
    how_classes,
    joins,
    option,
    options,
    or_none,
)
from jaxrules.learning.training import TrainingData
from jaxrules.losses import Loss, least_loss, poisson, squared
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.conditions import Conjunctions
from jaxrules.rules.constraints import Constraints, asks
from jaxrules.tools import checks, placement
from jaxrules.tools.fits import Fit

LossName = Literal["exponential", "logistic", "squared", "poisson"]
LossOption = LossName | Loss | None
SearchName = Literal["combo", "optimal"]
EngineOption = Literal["auto", "numpy", "jax"]

PAPER: Mapping[str, Any] = MappingProxyType(
    {"loss": "exponential", "l2_penalty": 0.0, "rules": "forest"}
)
"""The problem of the paper, ``fit(X, y, **PAPER)``; `jaxrules.lire.published` has its algorithm."""

RIDGES = {"logistic": 8.0, "squared": 8.0, "exponential": 1.0, "poisson": 8.0}
"""The default ridge of each loss, in units of the mean for counts."""
_GRID_OF_RIDGES = (0.25, 2.5, 25.0)
"""Those of cross-validation, in the same units."""
_SHARE = 0.005
"""The default gamma is at least this share of the mean loss of the best constant."""
_NOISE = 6.0
"""For classes it is also at least this number divided by the number of rows, as a share of the same
loss: the best of many rules without effect lowers the sum of the losses by about the logarithm of
their number (Foster and George, "The Risk Inflation Criterion", 1994).
"""
_RARITY = 0.7
"""Of rare classes, a nat is a larger share of the loss, see `rarity`. A penalty of all of it (power
1) leaves noise without rules, and finds less where there is signal; this power does both, nearly.
"""
_LESS_NOISE, _LITTLE_NOISE = (0.4, 1.0), (0.15, 0.15)
"""Shares and ridges: a model that leaves less than this share of the constant's loss indicates so
little noise that this ridge suffices. See docs/defaults.md.
"""
_CHANCE = 8.0
"""For numbers and counts that logarithm is times the scale of the likelihood, which falls with the
loss that a model leaves. The default gamma is at least this number of scales, divided by the number
of rows.
"""
_CONDITIONS, _ENOUGH_ROWS = 4, 500
"""Among more than 40 columns, a rule gains more by chance: as one of so many conditions would, on
so many rows or more. On fewer the addition is in proportion, as weak rules under a ridge lower the
risk.
"""
_FIRST = 0.5
"""The share of the loss of numbers that the first gamma takes for noise: if it took all of it, few
rows would hide a strong effect.
"""
_QUIETER, _NOISIER = 0.8, 1.1
"""If gamma would fall below the first share, or rise above the second, after a model, the search
continues with it.
"""
_GRID = np.geomspace(4, 0.2, 5)
"""Default values of gamma for paths and cross-validation, times the default of `fit`."""


# The penalties


class LirePrices(NamedTuple):
    """gamma, lambda and mu: the penalties on a rule, on mean coverage, and on half the squared
    weights.
    """

    global_penalty: float
    local_penalty: float
    l2_penalty: float

    def in_units(self, unit: float) -> LirePrices:
        """The same penalties on losses in this unit."""
        return LirePrices(*(price / unit for price in self))

    @classmethod
    def of(
        cls,
        data: TrainingData,
        gamma: float | None,
        lam: float | None,
        ridge: float,
        joint: bool = False,
    ) -> LirePrices:
        """The given penalties; by default gamma is `default_penalty` and lambda is 2 gamma."""
        gamma = default_penalty(data, joint) if gamma is None else gamma
        return cls(gamma, 2 * gamma if lam is None else lam, ridge)


def default_penalty(data: TrainingData, joint: bool = False, left: float | None = None) -> float:
    """The default gamma: more than a rule without effect explains by chance.

    Args:
        left: for numbers and counts, the share of the constant's deviance that a model leaves; None
            for the first gamma.
    """
    if not _follows(data.loss):
        return default_share(data) * data.constant_loss_of(joint)
    if left is None:
        left = _FIRST if data.loss == squared else 1.0
    shares = data.weights / data.weights.sum()
    mean = float(shares @ data.target)
    # The scale as sum g^2 / sum h, with slopes g and curvatures h, divided by the rows. Pearson's
    # statistic would be that of the rows of least exposure.
    scale = left * float(shares**2 @ (data.target - mean) ** 2)
    scale *= 2.0 if data.loss == squared else 1 / mean
    return max(_SHARE * deviance(data), (_CHANCE + _more_by_chance(data)) * scale)


def _follows(loss: Loss) -> bool:
    """Whether the default gamma follows what a model leaves."""
    return loss in (squared, poisson)


def default_share(data: TrainingData) -> float:
    """The default gamma as a share of the loss of the best constant."""
    shares = data.weights / data.weights.sum()
    noise = _NOISE + share_of(_more_by_chance(data))
    rare = rarity(data.loss, data.target, data.weights)
    return max(_SHARE, float(rare**_RARITY * noise * (shares @ shares)))


def _more_by_chance(data: TrainingData) -> float:
    """The nats that a rule gains by chance beyond one that is chosen among a few columns."""
    shares = data.weights / data.weights.sum()
    enough = min(1.0, 1 / (_ENOUGH_ROWS * float(shares @ shares)))
    return enough * nats_among(len(data.table.columns), _CONDITIONS)


def deviance(data: TrainingData, loss: float | None = None, joint: bool = False) -> float:
    """A mean loss, or that of the best constant, less the least one of any scores (half of the
    deviance of counts).
    """
    loss = data.constant_loss_of(joint) if loss is None else loss
    return loss - least_loss(data.loss, data.target, data.weights)


def default_ridge(data: TrainingData) -> float:
    """The ridge for noisy data."""
    return RIDGES[data.loss.name] * _unit(data)


def _unit(data: TrainingData) -> float:
    """The unit of ridges: for counts, their mean."""
    return unit(data.loss, data.target, data.weights)


# The options


def _loss(name: str, value: Any) -> Any:
    """A loss by its name; None for that of the target."""
    known = (*get_args(LossName), None)
    return checks.choice(name, value.name if isinstance(value, Loss) else value, known)


def _search(name: str, value: Any) -> Any:
    if isinstance(value, str) and value == "published":  # its former name
        raise ValueError(
            'search="published" is a separate function: jaxrules.lire.published(X, y, ...), the '
            "paper's algorithm for the paper's problem"
        )
    return checks.choice(name, value, get_args(SearchName))


@options
class _LireShared(ScoreOptions):
    """What `fit`, `path` and `cross_validate` have in common.

    Attributes:
        loss: None for "logistic" if y holds classes (see `jaxrules.data.table.holds_classes`), else
            "squared"; or "logistic", "exponential" (the paper's; p(y = 1) = sigmoid(2 f)), or
            "squared" for regression: the penalties are then in units of the squared target. With
            "poisson" for counts, they are in the unit of the counts.
        rules: where candidate rules come from: "boosted_trees" (None), "forest" or "both", see
            `jaxrules.default_forest`; rules, e.g. of `jaxrules.extract_rules` (with
            ``activations=True``, they are already evaluated on `X`); or a tree ensemble that
            `extract_rules` reads, which is fitted to the data if it is unfitted. Of rules that hold
            for the same rows, or for exactly the other rows, only one is a candidate.
        forbidden: columns, by name or position, that no rule may use.
        required: columns that some rule must use. If the search would select none of their rules,
            the best rule of the column joins, and may be exchanged for others of the column as long
            as that improves the objective. It is penalised like the others, even with a weight of
            0. If no rule of trees grown here uses the column, conditions on it at nine quantiles
            become candidates. With several classes, each class uses the required columns that its
            other constraints allow.
        monotone: 1 or -1 for some numeric columns: the score may only rise, or only fall, with the
            column; see `jaxrules.rules.constraints`. The signs of weights are then restricted, and
            rules that bound the column on both sides are not candidates.
        first: an expert's rules. The model starts from them and keeps them; their weights are
            fitted, and they are penalised like the others. One whose weight is 0 is not penalised:
            a rule that holds for the same rows as another of them, or for exactly the other rows,
            for all rows or for none, or whose only helpful sign `monotone` forbids.
        multiclass: for more than two classes. "joint" fits one problem with the softmax loss, in
            which a rule has a weight per class and is penalised once. It needs the logistic loss,
            and cannot be combined with `monotone`, `penalise_intercept`, ``search="optimal"`` and
            ``engine="jax"``. "one_vs_rest" fits one model per class against the rest, from one pool
            of rules. None: "joint" if it can, else "one_vs_rest".
        encoding: how a rule enters while the others stay fixed: "signed" (-1 / +1, as in the
            author's program) or "binary" (0 / 1, as in Theorem 1). With a free intercept, models
            and objective are the same; only the path of the search differs.
        penalise_intercept: penalise the intercept like a rule that holds for every row, unless it
            is 0.
        max_rules: the most rules, of each class for classes one-vs-rest; None for any number.
        restarts: the number of searches from the best model after two to five of its rules were
            dropped, or exchanged, at random. A restart makes its most promising moves first, and
            continues if they lead within a tenth of the best objective; after eight in a row that
            do not, there are no more. None: 20 for small data (up to a million entries of distinct
            rows and rules), where they are cheap and lower the objective, unless ``swap_optimal``
            holds; else none. With restarts and without a ridge, the search on small data starts
            with two descents along falling ridges, whose results hardly depend on the order of
            rows; other starts must then be as promising. With ``engine="jax"`` it makes up to 80
            restarts, 16 at a time from the best model so far until none of them is better, and 16
            descents along ridges: side by side on an accelerator, one after another on a CPU.
        max_iterations: the most moves of the search from each start.
        engine: what computes the search: "numpy", or "jax", which makes a whole descent one
            compiled program. "auto" is "jax" inside `jaxrules.rows_over`, or if JAX's default
            device is an accelerator; on a CPU it is "numpy", which compiles nothing. The two may
            end in different local optima, see `restarts`. With "jax", `path` searches all penalties
            together, `cross_validate` those of a fold or, if rules are given, those of all folds:
            side by side, on a CPU one after another. A time limit or Ctrl-C then ends them all, and
            each fit has its own status. On its first use the program takes some seconds to compile.
            A fit under a time limit waits for it as long as time allows, and then returns the best
            of the L1 solutions, which need no compilation.
        seed: for the trees that rules come from, restarts and liblinear.
    """

    learner = "lire"
    renamed: ClassVar[Mapping[str, str]] = {"max_support": "max_rules"}

    loss: LossOption = option(_loss, default=None)
    rules: RuleSource | None = None
    forbidden: Iterable[str | int] = ()
    required: Iterable[str | int] = ()
    monotone: Mapping[str | int, int] | None = None
    first: Conjunctions | None = None
    multiclass: Multiclass | None = option(how_classes, default=None)
    encoding: Encoding = option(checks.choice, default="signed", known=get_args(Encoding))
    penalise_intercept: bool = option(checks.flag, default=False)
    max_rules: int | None = option(or_none(checks.integer), default=None, at_least=1)
    restarts: int | None = option(or_none(checks.integer), default=None, at_least=0)
    max_iterations: int = option(checks.integer, default=5000, at_least=1)
    engine: EngineOption = option(checks.choice, default="auto", known=get_args(EngineOption))

    @property
    def traced(self) -> bool:
        """Whether the search is the traced program."""
        if self.engine != "auto":
            return self.engine == "jax"
        return placement.mesh() is not None or placement.device().platform != "cpu"

    @property
    def joint(self) -> bool:
        """Whether several classes are fitted together, once `for_classes` has decided."""
        return self.multiclass == "joint"

    def for_classes(self, data: TrainingData) -> Self:
        """The same options with what `multiclass` means for these data: None for two classes.

        Raises:
            ValueError: if the classes must be fitted together and cannot.
        """
        if data.target.ndim == 1:
            return replace(self, multiclass=None)
        search = getattr(self, "search", "combo")  # an option of `fit` alone
        against = against_joint(
            data.loss.name, asks(self.monotone), ("penalise_intercept", self.penalise_intercept),
            (f'search="{search}"', search != "combo"), ('engine="jax"', self.engine == "jax"),
        )  # fmt: skip
        if not joins(self.multiclass, True, against):
            return replace(self, multiclass="one_vs_rest")
        return replace(self, multiclass="joint", engine="numpy")

    def constraints(self, schema: Schema) -> Constraints:
        """The constraints on rules of these columns."""
        return Constraints.of(schema, self.forbidden, self.required, self.monotone)


@options
class _Single(_LireShared):
    """What `fit` and `path` have in common.

    Attributes:
        l2_penalty: mu, the ridge on the weights of the rules, relative to the sum of the losses as
            in `jaxrules.boosting`, at least 0. It shrinks large weights, most of all those of rules
            that hold for few rows. 0 is the paper's problem. None: 8, 1 for the exponential loss,
            or 8 times the mean for Poisson's. If the loss is logistic or Poisson's and the model
            leaves less than 40 % of the constant's loss (for counts, of its deviance), there is
            less noise: the search continues with 1 (times the mean); below 15 %, with .15.
            ``details["chosen"]`` says why; each class one-vs-rest has its own. K classes fitted
            together start with 16 / K, at least 1. `path` stays at the first ridge.
        start: a Fit, or its model, of any learner, on the same columns: its rules join the
            candidates, and the search also starts from them. The result is at least as good as
            these rules with their best weights.
    """

    l2_penalty: float | None = option(or_none(checks.penalty), default=None)
    start: Fit[RuleEnsemble] | RuleEnsemble | None = None


@options
class LireOptions(_Single):
    """The options of `fit`.

    Attributes:
        global_penalty: gamma, the penalty on a rule, at least 0. None: half a percent of the mean
            loss of the best constant, which a rule must then explain; below 1200 rows, 6/n of it,
            because the best of some hundred rules explains that much by chance (n is the effective
            number of rows, (sum w)^2 / sum w^2), more if one of two classes is rare. With p > 40
            columns, 6 becomes 6 + 6 log(p / 40), and 8 below 8 + 4 log(p / 40); with n < 500, the
            additions are times n / 500. If
            `l2_penalty` is None and becomes .15, it is half a percent for any number of rows.
            Numbers and counts: at least half a percent of the mean loss (for counts, deviance) of
            the constant, and 8 s / n, because a rule may explain that by chance; s is twice the
            variance of numbers, and the variance of counts over their mean, times the share of the
            loss that a model leaves, at first half of it for numbers: the search continues with
            another gamma if that falls below .8, or rises above 1.1, of the one before, and
            ``details["chosen"]`` says so. With gamma = 0, every rule joins that lowers the loss, or
            that holds for fewer rows than the average rule of the model; only `max_rules`,
            `max_iterations` and `time_limit` then end the fit.
        local_penalty: lambda, the penalty on mean coverage, at least 0. None: 2 gamma, as in the
            paper's experiments. With lambda = 0, this is L0-penalised selection.
        search: "combo": closed-form moves and full-refit moves in turn, from the empty model, from
            the L1 solution and after `restarts`; the best result counts. "optimal": the same, and
            then branch-and-bound, which proves a bound and improves the model if it can. Most pools
            of 40 rules take less than a minute; with larger ones a gap remains, and without
            `time_limit` or `max_nodes` the fit takes hours. It cannot be combined with `monotone`
            and `penalise_intercept`. The author's algorithm is `jaxrules.lire.published`.
        max_nodes: the most nodes of branch-and-bound (for "optimal"); None for no limit.
        time_limit: seconds; the best model so far is returned when they run out, see
            `jaxrules.Deadline`. With less than about a microsecond per entry of `X`, half of the
            time fits a model to a sample of the rows (``details["sample"]``); its rules are the
            candidates on all rows.
    """

    global_penalty: float | None = option(or_none(checks.penalty), default=None)
    local_penalty: float | None = option(or_none(checks.penalty), default=None)
    search: SearchName = option(_search, default="combo")
    max_nodes: int | None = option(or_none(checks.integer), default=None, at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        proves = self.search == "optimal"
        checks.require(proves or self.max_nodes is None, 'max_nodes needs search="optimal"')
        checks.require(
            not (proves and asks(self.monotone)),
            'monotone needs search="combo": the bound of search="optimal" ignores signs',
        )
        checks.require(
            not (proves and self.penalise_intercept),
            'penalise_intercept needs search="combo": the bound of search="optimal" is for a free '
            "intercept",
        )
        checks.require(
            not (proves and self.loss == "squared" and self.l2_penalty == 0),
            'l2_penalty must be positive for search="optimal" with the squared loss, because '
            "nothing else bounds the weights",
        )

    def prices(self, data: TrainingData) -> LirePrices:
        """The penalties; for those that are None, the defaults for noisy data."""
        ridge = self.l2_penalty
        if ridge is None:
            ridge = default_ridge(data)
            if self.joint:  # a class of K has 2 / K of the rows that a class of two has
                ridge = max(2.0 / data.target.shape[1] * ridge, _LESS_NOISE[1])
        return LirePrices.of(data, self.global_penalty, self.local_penalty, ridge, self.joint)

    @property
    def chosen_by_noise(self) -> list[str]:
        """The penalties about which a model decides: the ridge of classes, gamma of numbers, and
        both of counts.
        """
        follow = {"global_penalty": ("squared", "poisson"), "l2_penalty": ("logistic", "poisson")}
        asked = [name for name in follow if getattr(self, name) is None]
        return [name for name in asked if self.loss in follow[name]]

    def prices_for_noise(self, data: TrainingData, prices: LirePrices, left: float) -> LirePrices:
        """The penalties after a model that leaves this share of the constant's loss (for counts, of
        its deviance).
        """
        if not self.chosen_by_noise:
            return prices
        (share, less), (little, small) = _LESS_NOISE, _LITTLE_NOISE
        unit, gamma = _unit(data), prices.global_penalty
        ridge = prices.l2_penalty
        if self.l2_penalty is None and data.loss != squared:
            if left < little and ridge == less * unit:
                ridge = small * unit
            elif left < share and ridge > less * unit:
                ridge = less * unit
        if self.global_penalty is None and _follows(data.loss):
            other = default_penalty(data, left=left)
            gamma = gamma if _QUIETER <= other / gamma <= _NOISIER else other
        elif self.global_penalty is None and ridge == small * unit:
            gamma = _SHARE * data.constant_loss_of(self.joint)
        return LirePrices.of(data, gamma, self.local_penalty, ridge, self.joint)


@options
class _LirePenalties(_LireShared):
    """Pairs of penalties.

    Attributes:
        global_penalties: values of gamma, in any order. None: five from 4 to 1/5 times the first
            gamma of `fit`; of numbers, times what it is for classes.
        local_penalties: one lambda for each of them, in the order given; None for lambda = 2 gamma.
    """

    global_penalties: Sequence[float] | None = option(or_none(checks.penalties), default=None)
    local_penalties: Sequence[float] | None = option(or_none(checks.penalties), default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        n = len(_GRID if self.global_penalties is None else self.global_penalties)
        m = n if self.local_penalties is None else len(self.local_penalties)
        checks.require(m == n, f"local_penalties has {m} values for {n} global_penalties")

    def pairs(self, data: TrainingData) -> list[tuple[float, float]]:
        """gamma and lambda, from the largest gamma to the smallest."""
        middle = default_penalty(data, self.joint)
        if data.loss == squared:  # the default is for more noise
            middle = default_share(data) * deviance(data)
        gammas = self.global_penalties or (_GRID * middle).tolist()
        lambdas = self.local_penalties or [2 * gamma for gamma in gammas]
        return sorted(zip(gammas, lambdas, strict=True), reverse=True)


@options
class LirePathOptions(_LirePenalties, _Single):
    """The options of `path`."""


@options
class LireGrid(Folds, _LirePenalties):
    """The options of `cross_validate`.

    Attributes:
        l2_penalties: values of mu, each tried with every pair of the other penalties. None: 0.25,
            2.5 and 25, for the Poisson loss times the mean of y.
        restarts: as for `fit`; None: none in the folds, and the default of `fit` at the end.
    """

    l2_penalties: Sequence[float] | None = option(or_none(checks.penalties), default=None)

    def ridges(self, data: TrainingData) -> Sequence[float]:
        """The values of mu."""
        if self.l2_penalties is not None:
            return self.l2_penalties
        return [ridge * _unit(data) for ridge in _GRID_OF_RIDGES]
