"""What tests of paths with costs that are not quadratic have in common: the proof, brute force over
all sequences, and the check of a cost's quadratic model.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jaxrules.paths import convex, logistic
from jaxrules.paths.costs import LossCost
from jaxrules.paths.problem import PathProblem
from jaxrules.solvers.layered import never


def proved(cost: LossCost, weights: np.ndarray, stopped: Any = never) -> Any:
    """The certificate of the search for the best path."""
    problem = PathProblem(cost.quadratic(np.zeros(cost.n_coefficients)), weights, width=cost.width)
    certificate = logistic.SequentialCertificate.of(cost, problem)
    convex.search(problem, certificate, cost, stopped)
    return certificate


def brute_force(cost: LossCost, weights: np.ndarray) -> float:
    """The least objective, by Newton's method along every sequence."""
    return min(
        float(weights @ cost(logistic.newton_path(cost, weights, np.array(sequence)).models))
        for sequence in itertools.product(range(cost.X.shape[1]), repeat=len(weights))
    )


def check_quadratic(
    cost: LossCost,
    value: Callable[[np.ndarray], float],
    rng: np.random.Generator,
    lengths: tuple[float, float],
    ratio: float,
) -> None:
    """Check a cost and its quadratic model at a random point against its value by other means.

    Args:
        lengths: of two steps in random directions: the model's error is of third order.
        ratio: of these errors, at least.
    """
    size = cost.n_coefficients
    reference = rng.normal(size=size)
    assert cost(reference[None])[0] == pytest.approx(value(reference), rel=1e-9)
    model = cost.quadratic(reference)
    assert model(reference) == pytest.approx(value(reference), rel=1e-9)
    for _ in range(3):
        direction = rng.normal(size=size)
        long, short = (
            abs(model(reference + h * direction) - cost(reference + h * direction)) for h in lengths
        )
        assert short <= long / ratio
    assert np.isfinite(cost(50 * np.eye(size))).all()
