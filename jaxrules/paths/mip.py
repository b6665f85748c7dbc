"""Paths by mixed-integer programming: the lifted outer approximation, in CVXPY with HiGHS.

For small problems with side conditions that the dedicated searches lack (bounds on coefficients, a
given last model), and as their independent oracle. HiGHS has no mixed-integer quadratic objective,
so the cost is lifted: with Q = R'R and w_k = R (b_k - bhat), c(b_k) = c* + |w_k|^2, and t_kj >= 2 v
w_kj - v^2 are tangents of w_kj^2. Minimise sum_k alpha_k (c* + sum_j t_kj) with binaries z_ki for
the coefficient that step k changes. Every round solves the mixed-integer linear program (a lower
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
from jaxrules.solvers.layered import LayeredCertificate, never

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
    certificate: LayeredCertificate[Changes] | None = None,
    stopped: Callable[[], bool] = never,
    remaining: Callable[[], float] = lambda: math.inf,
) -> LayeredCertificate[Changes]:
    """The least-cost path under side conditions, proved to a relative 1e-8 if the certificate is
    closed.

    The step weights are all positive. See `exact.search`; `remaining` returns the remaining
    seconds.
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
        # With tangents there, the next relaxation is exact at both paths.
        tangents += [relaxed, certificate.solution.models]
    return certificate


def _offer_relaxed(
    problem: PathProblem, certificate: LayeredCertificate[Changes], relaxed: Array
) -> None:
    """Offer the exact path along the sequence of a relaxed solution; nothing else is trusted."""
    end = problem.end
    steps = np.diff(relaxed, axis=0, prepend=0.0)
    # Within the solver's tolerance several coefficients may move: the largest change counts.
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
    sizes = np.minimum(np.arange(1, steps + 1), problem.n_features)
    excess = np.maximum(supports.by_size[sizes] - least, 0.0)
    # A little more than the incumbent, so that rounding cuts off no path as good as it
    incumbent = objective + 1e-7 * abs(objective)
    # R_k = (U - sum_j alpha_j m_j) / alpha_k + m_k - c*
    room = np.maximum(incumbent - weights @ (least + excess), 0.0) / weights + excess
    return np.sqrt(room), excess


def _largest_changes(problem: PathProblem, radius: Array) -> Array:
    """Bounds on |b_ki - b_(k-1)i|, shape (steps, features)."""
    cost, (lower, upper) = problem.cost, problem.bounds
    # |b_k - b_(k-1)| <= |b_k - bhat| + |b_(k-1) - bhat| in the metric of Q, where a single
    # coefficient changes it by sqrt(Q_ii). b_0 = 0 has its known distance.
    at_start = np.sqrt(max(cost.constant - float(cost(cost.minimiser())), 0.0))
    reach = radius + np.append(at_start, radius[:-1])
    diagonal = np.sqrt(np.diag(cost.curvature))
    largest = reach[:, None] / np.where(diagonal > 0, diagonal, np.inf)
    if problem.end is not None:  # coefficients without effect on the cost move only to the end
        largest = np.where(diagonal > 0, largest, np.abs(problem.end))
    return np.minimum(largest, upper - lower)


def _solve_relaxation(
    problem: PathProblem,
    certificate: LayeredCertificate[Changes],
    tangents: list[Array],
    stopped: Callable[[], bool],
    remaining: Callable[[], float],
) -> Array | None:
    """One mixed-integer linear program; raises the bound and returns its path, shape
    (steps, features), None if HiGHS found none.
    """
    import cvxpy as cp

    cost, steps, d = problem.cost, problem.steps, problem.n_features
    root, centre = cost.square_root(), cost.minimiser()
    radius, excess = _radii(problem, certificate.objective)
    largest = _largest_changes(problem, radius)

    models = cp.Variable((steps, d))
    chosen = cp.Variable((steps, d), boolean=True)
    squares = cp.Variable((steps, len(root)))
    steps_taken = models - cp.vstack([np.zeros((1, d)), models[:-1]]) if steps > 1 else models
    lifted = (models - np.repeat(centre[None], steps, axis=0)) @ root.T
    constraints = [
        cp.sum(chosen, axis=1) <= 1,  # one coefficient per step
        steps_taken <= cp.multiply(largest, chosen),
        steps_taken >= -cp.multiply(largest, chosen),
        cp.sum(squares, axis=1) >= excess,  # c(b_k) - c* >= m_k - c*
    ]
    for sign, bound in zip((1, -1), problem.bounds, strict=True):
        bounded = np.isfinite(bound)
        if bounded.any():
            ends = np.repeat(sign * bound[None, bounded], steps, axis=0)
            constraints.append(sign * models[:, bounded] >= ends)
    if problem.kind is not None:
        whole = cp.Variable((steps, d), integer=True)
        constraints.append(steps_taken == whole)
        if problem.kind == "unit":
            constraints += [whole <= chosen, whole >= -chosen]
    if problem.end is not None:
        constraints.append(models[-1] == problem.end)
    grid = [
        np.repeat(fraction * radius[:, None], len(root), axis=1)
        for fraction in np.linspace(-1, 1, TANGENTS)
    ]
    # Tangents of w_kj^2: on a grid over |w_kj| <= sqrt(R_k), and at the paths so far.
    for at in (*grid, *((path - centre) @ root.T for path in tangents)):
        constraints.append(squares >= 2 * cp.multiply(at, lifted) - at**2)
    weights = np.repeat(problem.step_weights[:, None], len(root), axis=1)
    program = cp.Problem(cp.Minimize(cp.sum(cp.multiply(weights, squares))), constraints)
    proof = mip.solve(program, stopped, remaining, **_OPTIONS)
    if proof.bound is not None:
        least = float(cost(centre))
        certificate.prove(proof.bound + least * float(problem.step_weights.sum()))
    certificate.nodes += proof.nodes
    return None if models.value is None else np.asarray(models.value, np.float64)
