"""The solution of one output as a model, and the details that a fit reports with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxrules.ensembles.extraction import RulePool
from jaxrules.ensembles.lire.moves import Encoding
from jaxrules.learning.training import TrainingData
from jaxrules.losses import mean_loss
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.tools.fits import Details, Settings

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedDetails(Details):
    """What `jaxrules.lire.published` reports beside its model.

    Attributes:
        paper_objective: G, without a ridge.
        loss: the mean loss, without any penalty.
        global_penalty: gamma.
        local_penalty: lambda.
        n_candidates: the number of rules in the pool.
        sample: the number of rows that the rules come from; None for all.
    """

    paper_objective: float
    loss: float
    global_penalty: float
    local_penalty: float
    n_candidates: int
    sample: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class LireDetails(PublishedDetails):
    """What `jaxrules.lire.fit` reports beside its model.

    Attributes:
        paper_objective, loss, global_penalty, local_penalty, n_candidates, sample: as in
            `PublishedDetails`.
        l2_penalty: mu.
        start: the start that led to the result: "empty", "given", "l1", "sample" (of the rows of
            large data), "previous" (on a path), "ridge", "signed", "restart" or "branches" (of
            branch-and-bound).
        swap_optimal: True if every single addition, drop and swap was tried with all weights
            refitted and none improves, as for small pools and the squared loss; False if only the
            most promising moves were tried.
        nodes: the number of nodes of branch-and-bound.
        engine: what computed the search, "numpy" or "jax". The objective is recomputed in float64
            by NumPy in either case.
        chosen: why the data chose this ridge; empty if it was given.
    """

    l2_penalty: float
    start: str
    swap_optimal: bool
    nodes: int
    engine: str = "numpy"
    chosen: str = ""


@dataclass(frozen=True, eq=False)
class LireSolution:
    """Chosen rules and their weights.

    Attributes:
        rules: indices into the pool, shape (size,).
        weights: of the encoded rules, shape (size,), or (size, classes) of classes fitted together.
        intercept: the intercept for the encoded rules, or those of the classes.
    """

    rules: NDArray[np.int64]
    weights: Floats
    intercept: float | Floats

    def in_zero_one(self, encoding: Encoding) -> LireSolution:
        """The same scores with 0/1 rules: b (2 r - 1) = 2 b r - b."""
        if encoding == "binary":
            return self
        return LireSolution(self.rules, 2 * self.weights, self.intercept - self.weights.sum(axis=0))

    def mean_loss(self, pool: RulePool, data: TrainingData) -> float:
        """The mean loss with 0/1 rules, without penalties."""
        of_pattern = self.intercept + pool.activations.holds(self.rules).T @ self.weights
        scores = of_pattern[pool.activations.pattern]
        return mean_loss(data.row_loss, data.target, scores, data.weights)

    def model(
        self, pool: RulePool, data: TrainingData, settings: Settings, n_first: int = 0
    ) -> RuleEnsemble:
        """The ensemble of 0/1 rules.

        Args:
            settings: the settings that the model keeps.
            n_first: the number of an expert's rules, the first of the pool, which are in the model
                whatever their weights.
        """
        chosen = np.union1d(np.arange(n_first), self.rules)
        joint = self.weights.ndim > 1
        weights = np.zeros((len(pool.rules), data.target.shape[1] if joint else 1))
        weights[self.rules] = self.weights if joint else self.weights[:, None]
        rules = pool.rules.take(chosen).with_schema(data.schema)
        centre = np.mean(self.intercept) if joint else 0.0
        return RuleEnsemble(
            rules, weights[chosen], np.atleast_1d(self.intercept - centre), None,
            data.row_loss.link, settings, data.loss.name,
        )  # fmt: skip
