"""What a search found for one output, and the model that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.extraction import RulePool
from jaxrules.lire.moves import Encoding
from jaxrules.losses import mean_loss
from jaxrules.models import RuleEnsemble
from jaxrules.training import TrainingData

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Solution:
    """Chosen rules and their weights.

    Attributes:
        rules: indices into the pool, shape (size,).
        weights: of the encoded rules, shape (size,).
        intercept: beside the encoded rules.
    """

    rules: NDArray[np.int64]
    weights: Floats
    intercept: float

    def in_zero_one(self, encoding: Encoding) -> Solution:
        """The same scores by 0/1 rules: b (2 r - 1) = 2 b r - b."""
        if encoding == "binary":
            return self
        return Solution(self.rules, 2 * self.weights, self.intercept - float(self.weights.sum()))

    def mean_loss(self, pool: RulePool, data: TrainingData) -> float:
        """Without any price, by 0/1 rules."""
        of_pattern = self.intercept + self.weights @ pool.activations.holds(self.rules)
        return mean_loss(data.loss, data.target, of_pattern[pool.activations.pattern], data.weights)

    def model(
        self, pool: RulePool, data: TrainingData, options: Mapping[str, Any], n_first: int = 0
    ) -> RuleEnsemble:
        """The ensemble of 0/1 rules.

        Args:
            options: what the model keeps.
            n_first: the first rules of the pool, an expert's, which are in it
                whatever their weights are.
        """
        chosen = np.union1d(np.arange(n_first), self.rules)
        weights = np.zeros(len(pool.rules))
        weights[self.rules] = self.weights
        return RuleEnsemble(
            pool.rules.take(chosen).with_schema(data.schema),
            weights[chosen, None],
            np.array([self.intercept]),
            None,
            data.loss.link,
            tuple(options.items()),
            data.loss.name,
        )
