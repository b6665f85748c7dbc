"""Paths for costs that are not quadratic (logistic, Poisson, softmax): sequential quadratic models.

Local improvement searches the quadratic model of the cost around the end of the last path for a
sequence of features. Damped Newton steps then make the path along it optimal for the cost itself,
and local improvement follows on the quadratic models around every step's own model. `convex` proves
a bound on all paths.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from jaxrules.paths import local
from jaxrules.paths.costs import Array, LossCost, QuadraticCost, Sequence
from jaxrules.paths.problem import Changes, PathProblem, best_path
from jaxrules.solvers.layered import LayeredCertificate, never
from jaxrules.tools.fits import Status

ROUNDS = 10
PROGRESS = 1e-9
"""Relative improvement below which a round counts as the last."""
NEWTON_STEPS = 50


@dataclass
class SequentialCertificate(LayeredCertificate[Changes]):
    """The best path by its true cost, and the certificate of the last quadratic model; no cost is
    negative.
    """

    cost: LossCost = field(kw_only=True)
    model: LayeredCertificate[Changes] = field(kw_only=True)

    @classmethod
    def of(cls, cost: LossCost, problem: PathProblem) -> SequentialCertificate:
        """Before any search: the path that stays at the start. The problem has the cost's quadratic
        model there.
        """
        steps, weights = problem.steps, problem.step_weights
        first = Changes(np.zeros(steps, np.int64), np.zeros((steps, cost.n_coefficients)))

        def objective(path: Changes) -> float:
            return float(weights @ cost(path.models))

        return cls(first, objective, 0.0, cost=cost, model=problem.certificate())


def search(
    problem: PathProblem,
    certificate: SequentialCertificate,
    solve: Callable[[PathProblem, LayeredCertificate[Changes]], object],
    stopped: Callable[[], bool],
    *,
    batch: int,
    iterations: int | None,
    seed: int,
) -> Status:
    """Improve the certificate's path until no round improves it; returns why it ended.

    Args:
        problem: with the quadratic model of the cost at the start.
        certificate: of the cost.
        solve: a search for quadratic costs.
        stopped: the search ends early when this is true.
        batch, iterations, seed: as in `local.improve`.
    """
    cost, weights = certificate.cost, problem.step_weights
    for number in range(ROUNDS):
        if stopped():
            break
        if number:
            model = cost.quadratic(certificate.solution.models[-1])
            problem = dataclasses.replace(problem, cost=model)
            certificate.model = problem.certificate()
        # Only the sequence is taken from the quadratic model; Newton's method finds its changes.
        solve(problem, certificate.model)
        before = certificate.objective
        path = newton_path(cost, weights, certificate.model.solution.features, stopped)
        value = certificate.offer(path)
        if stopped():  # within a Newton step, perhaps the first
            certificate.offer(certificate.model.solution)
            break
        for _ in range(ROUNDS):  # while the true cost falls
            models = _models(cost, path.models, stopped)
            if models is None:
                break
            found = local.improve(
                models, weights, path.features[None], batch=batch, iterations=iterations,
                seed=seed, stopped=stopped, width=cost.width,
            )  # fmt: skip
            path, last = newton_path(cost, weights, found[0], stopped), value
            value = certificate.offer(path)
            if value >= last - PROGRESS * abs(last):
                break
        if certificate.objective >= before - PROGRESS * abs(before):
            return Status.CONVERGED
    return Status.MAX_ITERATIONS


def _models(cost: LossCost, models: Array, stopped: Callable[[], bool]) -> QuadraticCost | None:
    """The quadratic models of the cost around every step's own model; None if that is stopped."""
    found: list[QuadraticCost] = []
    # Those of several classes take more steps than arithmetic: all models at once
    intercepts = cost.intercepts(models) if cost.width > 1 else [None] * len(models)
    for model, best in zip(models, intercepts, strict=True):
        if stopped():
            return None
        found.append(cost.quadratic(model, best))
    return QuadraticCost.stack(found)


def newton_path(
    cost: LossCost, step_weights: Array, sequence: Sequence, stopped: Callable[[], bool] = never
) -> Changes:
    """The least-cost path from zero along a sequence of features, by damped Newton steps on the
    changes; if stopped, the best so far.
    """
    models = np.zeros((len(sequence), cost.n_coefficients))
    objective = float(step_weights @ cost(models))
    for _ in range(NEWTON_STEPS):
        quadratic = _models(cost, models, stopped)
        if quadratic is None:
            break
        # The quadratic models share value and slope with the costs at the current path: unless it
        # is a minimum, short steps towards their optimum lower the cost.
        target = best_path(quadratic, step_weights, sequence, cost.width)
        size = 1.0  # halved until the cost falls
        while size > 1e-10 and not stopped():
            candidate = models + size * (target - models)
            value = float(step_weights @ cost(candidate))
            if value < objective:
                break
            size /= 2
        else:
            break
        improved = objective - value
        models, objective = candidate, value
        if improved <= 1e-12 * abs(objective):
            break
    return Changes(sequence, models)
