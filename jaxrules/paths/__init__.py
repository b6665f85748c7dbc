"""Coordinate paths: optimal explanations of linear models (Bertsimas, Delarue, Jaillet, Martin).

A linear model is explained by a sequence of models that changes one coefficient at a time; `fit`
finds the sequence with the least weighted sum of costs along the way, with a certificate;
`pareto` trades the cost of the last model against it, and `interpretability` prices a given model.
`greedy`, `direct` and `lasso_sequence` are baselines for optimal paths.
"""

from jaxrules.paths.comparisons import direct, greedy, lasso_sequence
from jaxrules.paths.fitting import fit
from jaxrules.paths.model import (
    CoordinatePath,
    ModelSequence,
    complexity_loss,
    dominates,
    geometric_loss,
    is_coherent,
    weighted_loss,
)
from jaxrules.paths.pareto import Box, Front, FrontPoint, interpretability, pareto

__all__ = [
    "Box",
    "CoordinatePath",
    "Front",
    "FrontPoint",
    "ModelSequence",
    "complexity_loss",
    "direct",
    "dominates",
    "fit",
    "geometric_loss",
    "greedy",
    "interpretability",
    "is_coherent",
    "lasso_sequence",
    "pareto",
    "weighted_loss",
]
