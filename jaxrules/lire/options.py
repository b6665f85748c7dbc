"""The choices of a fit that do not depend on the data, checked, and the
prices that follow the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from jaxrules import checks
from jaxrules.lire.moves import Encoding
from jaxrules.losses import Loss, loss_by_name
from jaxrules.training import TrainingData

LossName = Literal["exponential", "logistic", "squared"]
SearchName = Literal["combo", "optimal"]

PAPER: Mapping[str, Any] = MappingProxyType(
    {"loss": "exponential", "l2_penalty": 0.0, "rules": "forest"}
)
"""The problem of the paper, ``fit(X, y, **PAPER)``; see
`jaxrules.lire.published` for its algorithm.
"""

_RIDGE = 1.0
_PRICE = 0.005
"""The default price of a rule, at least: this share of the mean loss of the best constant."""
_NOISE = 6.0
"""Over the number of rows, the same for few of them: the best of many rules without effect lowers
the sum of the losses by about the logarithm of their number (Foster and George, "The Risk
Inflation Criterion", 1994).
"""
_LITTLE, _SMALL_RIDGE = 0.25, 0.15
"""A model that leaves less than this share of the constant's loss tells of little
noise: such a ridge is enough.
"""


class Prices(NamedTuple):
    """gamma, lambda and mu: of a rule, of mean coverage, and of half the squared weights."""

    global_penalty: float
    local_penalty: float
    l2_penalty: float

    @classmethod
    def of(cls, data: TrainingData, gamma: float | None, lam: float | None, ridge: float) -> Prices:
        """The given ones; where gamma is None it is the default, and lambda is 2 gamma."""
        gamma = default_price(data) if gamma is None else gamma
        return cls(float(gamma), float(2 * gamma if lam is None else lam), ridge)

    @classmethod
    def for_little_noise(cls, data: TrainingData, loss: float) -> Prices | None:
        """What is enough where a model leaves so little of the mean loss;
        None where it leaves more.
        """
        if loss >= _LITTLE * data.constant_loss:
            return None
        return cls.of(data, _PRICE * data.constant_loss, None, _SMALL_RIDGE)


def default_price(data: TrainingData) -> float:
    """gamma, unless it is given: above what a rule explains by chance."""
    shares = data.weights / data.weights.sum()
    return max(_PRICE, float(_NOISE * (shares @ shares))) * data.constant_loss


@dataclass(frozen=True)
class Options:
    """The arguments of `jaxrules.lire.fit` of these names; `made` are all
    settings, which the model keeps.
    """

    loss: Loss
    l2_penalty: float
    encoding: Encoding
    penalise_intercept: bool
    search: SearchName
    max_support: int | None
    restarts: int | None
    max_iterations: int
    max_nodes: int | None
    seed: int
    made: Mapping[str, Any]

    @classmethod
    def of(cls, made: Mapping[str, Any]) -> Options:
        """From the settings of a fit.

        Raises:
            TypeError, ValueError: for bad values, and for options that do not go together.
        """
        if made["search"] == "published":
            raise ValueError(
                'search="published" is a function of its own, jaxrules.lire.published(X, y, ...): '
                "the paper's algorithm, for the paper's problem"
            )
        ridge = checks.optional(checks.penalty, "l2_penalty", made["l2_penalty"])
        ridge = _RIDGE if ridge is None else ridge
        penalise_intercept = checks.flag("penalise_intercept", made["penalise_intercept"])
        options = cls(
            loss_by_name(checks.choice("loss", made["loss"], get_args(LossName))),
            ridge,
            checks.choice("encoding", made["encoding"], get_args(Encoding)),
            penalise_intercept,
            checks.choice("search", made["search"], get_args(SearchName)),
            checks.optional(checks.integer, "max_support", made["max_support"], at_least=1),
            checks.optional(checks.integer, "restarts", made["restarts"], at_least=0),
            checks.integer("max_iterations", made["max_iterations"], at_least=1),
            checks.optional(checks.integer, "max_nodes", made.get("max_nodes"), at_least=1),
            checks.seed(made["seed"]),
            {**made, "penalise_intercept": penalise_intercept, "l2_penalty": ridge},
        )
        options._go_together()
        return options

    def _go_together(self) -> None:
        if self.search != "optimal":
            if self.max_nodes is not None:
                raise ValueError('max_nodes needs search="optimal"')
            return
        if self.penalise_intercept:
            raise ValueError(
                'penalise_intercept needs search="combo": what search="optimal" proves is for a '
                "free one"
            )
        if self.loss.quadratic and not self.l2_penalty:
            raise ValueError(
                'l2_penalty must be positive for search="optimal" and the squared loss: without a '
                "ridge nothing bounds "
                "the weights"
            )
