"""Paths by mixed-integer programming: the lifted outer approximation, in CVXPY with HiGHS.

For small problems with side conditions that the dedicated searches lack (bounds on coefficients, a
given last model), and as their independent oracle. HiGHS has no mixed-integer quadratic objective,
so the cost is lifted: with Q = R'R and w_k = R (b_k - bhat), c(b_k) = c* + |w_k|^2, and t_kj >= 2 v
w_kj - v^2 are tangents of w_kj^2. Minimise sum_k alpha_k (c* + sum_j t_kj) with binaries z_ki for
the coefficient that step k changes. Every round solves the linear program with integers (a lower
bound), then the exact path along its sequence (an upper bound), and adds tangents at both.

Constants that are valid for every path better than an incumbent of objective U: c(b_k) - c* <= R_k
with R_k = (U - sum_j alpha_j m_j) / alpha_k + m_k - c*, where m_k is the least cost of k
coefficients; and |b_ki - b_(k-1)i| <= (sqrt(R_k) + sqrt(R_(k-1))) / sqrt(Q_ii).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from jaxrules.paths.costs import Array
from jaxrules.paths.problem import Changes, PathProblem, constrained_path
from jaxrules.paths.supports import Supports
from jaxrules.solvers import mip
from jaxrules.solvers.layered import Certificate, never

GAP = 1e-8
"""Relative tolerance of the certificate: what the solver's feasibility tolerance resolves."""
TANGENTS = 9
MAX_ROUNDS = 100
_OPTIONS = {
    "mip_rel_gap": 1e-9,
    "mip_abs_gap": 0.0,
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}


def search(
    problem: PathProblem,
    certificate: Certificate[Changes] | None = None,
    stopped: Callable[[], bool] = never,
    remaining: Callable[[], float] = lambda: math.inf,
) -> Certificate[Changes]:
    """The least-cost path under side conditions, proved to a relative 1e-8 when
    the certificate is closed.

    The step weights are all positive. See `exact.search`; `remaining` says
    how many seconds are left.
    """
    certificate = certificate or problem.certificate()
    certificate.relative = GAP
    tangents: list[Array] = []
    for _ in range(MAX_ROUNDS):
        if stopped() or certificate.closed:
            break
        relaxed = _solve_relaxation(problem, certificate, tangents, stopped, remaining)
        if relaxed is None:
            break
        _offer_relaxed(problem, certificate, relaxed)
        tangents += [relaxed, certificate.solution.models]
    return certificate


def _offer_relaxed(problem: PathProblem, certificate: Certificate[Changes], relaxed: Array) -> None:
    """Offer the exact path along the sequence of a relaxed solution;
    only the sequence is trusted.
    """
    end = problem.end
    steps = np.diff(relaxed, axis=0, prepend=0.0)
    sequence = np.abs(steps).argmax(axis=1)
    if problem.kind is None:
        if end is not None and not np.isin(np.flatnonzero(end), sequence).all():
            return
        models = constrained_path(problem, sequence)
    else:
        changes = np.zeros_like(relaxed)
        order = np.arange(len(sequence))
        changes[order, sequence] = np.round(steps[order, sequence])
        if problem.kind == "unit":
            changes = np.clip(changes, -1, 1)
        models = changes.cumsum(axis=0)
        if end is not None and (models[-1] != end).any():
            return
    lower, upper = problem.bounds
    if (models >= lower - 1e-12).all() and (models <= upper + 1e-12).all():
        certificate.offer(Changes(sequence, models))


def _radii(problem: PathProblem, objective: float) -> tuple[Array, Array]:
    """sqrt(R_k), and m_k - c*, shape (steps,)."""
    steps, weights = problem.steps, problem.step_weights
    supports = Supports.of(problem.cost, steps)
    least = supports.by_size[-1]
    excess = np.maximum(
        supports.by_size[np.minimum(np.arange(1, steps + 1), problem.n_features)] - least, 0.0
    )
    incumbent = objective + 1e-7 * abs(objective)
    room = np.maximum(incumbent - weights @ (least + excess), 0.0) / weights + excess
    return np.sqrt(room), excess


def _solve_relaxation(
    problem: PathProblem,
    certificate: Certificate[Changes],
    tangents: list[Array],
    stopped: Callable[[], bool],
    remaining: Callable[[], float],
) -> Array | None:
    """One mixed-integer linear program; raises the bound and returns its
    path, shape (steps, features).
    """
    import cvxpy as cp

    cost, weights, end = problem.cost, problem.step_weights, problem.end
    steps, d = problem.steps, problem.n_features
    lower, upper = problem.bounds
    root = cost.square_root()
    centre = cost.minimiser()
    least = float(cost(centre))
    radius, excess = _radii(problem, certificate.objective)
    start_radius = np.sqrt(max(cost.constant - least, 0.0))
    diagonal = np.sqrt(np.diag(cost.curvature))
    reach = radius + np.append(start_radius, radius[:-1])
    largest = reach[:, None] / np.where(diagonal > 0, diagonal, np.inf)
    if end is not None:  # coefficients without effect on the cost move only to the end
        largest = np.where(diagonal > 0, largest, np.abs(end))
    largest = np.minimum(largest, upper - lower)

    models = cp.Variable((steps, d))
    chosen = cp.Variable((steps, d), boolean=True)
    squares = cp.Variable((steps, len(root)))
    steps_taken = models - cp.vstack([np.zeros((1, d)), models[:-1]]) if steps > 1 else models
    lifted = (models - np.repeat(centre[None], steps, axis=0)) @ root.T
    constraints = [
        cp.sum(chosen, axis=1) <= 1,
        steps_taken <= cp.multiply(largest, chosen),
        steps_taken >= -cp.multiply(largest, chosen),
        cp.sum(squares, axis=1) >= excess,
    ]
    for sign, bound in ((1, lower), (-1, upper)):
        bounded = np.isfinite(bound)
        if bounded.any():
            constraints.append(
                sign * models[:, bounded] >= np.repeat(sign * bound[None, bounded], steps, axis=0)
            )
    if problem.kind is not None:
        whole = cp.Variable((steps, d), integer=True)
        constraints.append(steps_taken == whole)
        if problem.kind == "unit":
            constraints += [whole <= chosen, whole >= -chosen]
    if end is not None:
        constraints.append(models[-1] == end)
    grid = [
        np.repeat(fraction * radius[:, None], len(root), axis=1)
        for fraction in np.linspace(-1, 1, TANGENTS)
    ]
    for at in (*grid, *((path - centre) @ root.T for path in tangents)):
        constraints.append(squares >= 2 * cp.multiply(at, lifted) - at**2)
    objective = cp.sum(cp.multiply(np.repeat(weights[:, None], len(root), axis=1), squares))
    program = cp.Problem(cp.Minimize(objective), constraints)
    proof = mip.solve(program, stopped, remaining, **_OPTIONS)
    if proof.bound is not None:
        certificate.prove(proof.bound + least * float(weights.sum()))
    certificate.nodes += proof.nodes
    return None if models.value is None else np.asarray(models.value, np.float64)
