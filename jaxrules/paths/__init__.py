"""Coordinate paths: optimal explanations of linear models (Bertsimas, Delarue, Jaillet, Martin).

A sequence of models that changes one coefficient at a time explains a linear model. `fit` finds the
sequence with the least weighted sum of costs along the way, with a certificate; `path` does so for
every number of steps, and `cross_validate` chooses that number. `pareto` trades the cost of the
last model against the sum, and `interpretability` computes the least sum for a given last model.
`greedy`, `direct` and `lasso_sequence` are baselines for optimal paths.
"""

from jaxrules.paths.comparisons import direct, greedy, lasso_sequence
from jaxrules.paths.fitting import PathDetails, cross_validate, fit, path
from jaxrules.paths.fitting import PathFitOptions as Options
from jaxrules.paths.fitting import StepsGrid as Grid
from jaxrules.paths.model import (
    CoordinatePath,
    ModelSequence,
    complexity_loss,
    dominates,
    geometric_loss,
    is_coherent,
    weighted_loss,
)
from jaxrules.paths.pareto import (
    Box,
    Front,
    FrontPoint,
    InterpretabilityDetails,
    interpretability,
    pareto,
)

__all__ = [
    "Box",
    "CoordinatePath",
    "Front",
    "FrontPoint",
    "Grid",
    "InterpretabilityDetails",
    "ModelSequence",
    "Options",
    "PathDetails",
    "complexity_loss",
    "cross_validate",
    "direct",
    "dominates",
    "fit",
    "geometric_loss",
    "greedy",
    "interpretability",
    "is_coherent",
    "lasso_sequence",
    "pareto",
    "path",
    "weighted_loss",
]
