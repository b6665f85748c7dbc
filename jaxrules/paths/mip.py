"""Paths by mixed-integer programming: the lifted outer approximation, in CVXPY with HiGHS.

For small problems with conditions that the dedicated searches do not have (bounds on coefficients, a given last
model), and as their independent oracle. HiGHS takes no quadratic objective with integers, so the cost is lifted:
with Q = R'R and w_k = R (b_k - bhat), c(b_k) = c* + |w_k|^2, and t_kj >= 2 v w_kj - v^2 are tangents of
w_kj^2. Minimise sum_k alpha_k (c* + sum_j t_kj) with binaries z_ki that say which coefficient step k changes.
Every round solves the linear program with integers (a lower bound), then the exact path along its sequence (an
upper bound), and adds tangents at both.

Constants that are valid for every path better than an incumbent of objective U: c(b_k) - c* <= R_k with
R_k = (U - sum_j alpha_j m_j) / alpha_k + m_k - c*, where m_k is the least cost of k coefficients; and
|b_ki - b_(k-1)i| <= (sqrt(R_k) + sqrt(R_(k-1))) / sqrt(Q_ii).
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from jaxrules.paths.certificate import Certificate
from jaxrules.paths.costs import Array, Quadratic, Sequence, constrained_path, greedy_path, square_root
from jaxrules.paths.exact import Supports
from jaxrules.results import Run

GAP = 1e-8
"""Relative gap at which the search ends: what the solver's feasibility tolerance resolves."""
TANGENTS = 9
MAX_ROUNDS = 100


def search(
    cost: Quadratic,
    step_weights: Array,
    kind: Literal["any", "unit"] | None,
    lower: Array,
    upper: Array,
    end: Array | None,
    run: Run,
) -> Certificate:
    """The least-cost path from zero under side conditions, with a certificate.

    Args:
        cost: the cost of the change from the starting model.
        step_weights: alpha, all positive, shape (steps,).
        kind: steps of "any" integer size, "unit" steps, or None for real ones.
        lower, upper: bounds on the change, shape (features,), infinite for none; they contain 0.
        end: the change that the last model must have, or None.
        run: clock, deadline and progress.
    """
    certificate = Certificate.of(cost, step_weights)
    certificate.offer(*greedy_path(cost, len(step_weights), kind, lower, upper, end))
    with run:
        tangents: list[Array] = []
        for _ in range(MAX_ROUNDS):
            if run.stopped() or closed(certificate):
                break
            relaxed = _solve_relaxation(certificate, kind, lower, upper, end, tangents, run)
            if relaxed is None:
                break
            _offer_relaxed(certificate, relaxed, kind, lower, upper, end)
            run.step(certificate.objective, len(step_weights))
            tangents += [relaxed, certificate.models.copy()]
    return certificate


def closed(certificate: Certificate) -> bool:
    """Whether the bound meets the objective, up to what the solver resolves."""
    difference = certificate.objective - certificate.bound
    return difference <= max(GAP * abs(certificate.objective), certificate.tolerance)


def _offer_relaxed(
    certificate: Certificate, relaxed: Array, kind: str | None, lower: Array, upper: Array, end: Array | None
) -> None:
    """The exact path along the sequence of a relaxed solution; nothing of the solver's is trusted but the sequence."""
    steps = np.diff(relaxed, axis=0, prepend=0.0)
    sequence: Sequence = np.abs(steps).argmax(axis=1)
    if kind is None:
        if end is not None and not np.isin(np.flatnonzero(end), sequence).all():
            return
        models = constrained_path(certificate.cost, certificate.step_weights, sequence, lower, upper, end)
    else:
        changes = np.zeros_like(relaxed)
        order = np.arange(len(sequence))
        changes[order, sequence] = np.round(steps[order, sequence])
        if kind == "unit":
            changes = np.clip(changes, -1, 1)
        models = changes.cumsum(axis=0)
        if end is not None and (models[-1] != end).any():
            return
    if (models >= lower - 1e-12).all() and (models <= upper + 1e-12).all():
        certificate.offer(sequence, models)


def _radii(certificate: Certificate) -> tuple[Array, Array]:
    """sqrt(R_k), and m_k - c*, shape (steps,)."""
    cost, weights = certificate.cost, certificate.step_weights
    steps = len(weights)
    supports = Supports.of(cost, steps)
    least = supports.least[-1]
    sizes = np.array([supports.least[:-1][supports.sizes <= k].min() for k in range(1, supports.sizes.max() + 1)])
    known = np.full(steps, min(least, sizes.min(initial=np.inf)))
    known[: len(sizes)] = sizes[:steps]
    excess = np.maximum(known - least, 0.0)
    incumbent = certificate.objective + 1e-7 * abs(certificate.objective)
    room = np.maximum(incumbent - weights @ (least + excess), 0.0) / weights + excess
    return np.sqrt(room), excess


def _solve_relaxation(
    certificate: Certificate,
    kind: str | None,
    lower: Array,
    upper: Array,
    end: Array | None,
    tangents: list[Array],
    run: Run,
) -> Array | None:
    """One mixed-integer linear program; raises the bound and returns its path, shape (steps, features)."""
    import cvxpy as cp

    cost, weights = certificate.cost, certificate.step_weights
    steps, d = certificate.models.shape
    root = square_root(cost.curvature)
    centre = cost.minimiser()
    least = float(cost(centre))
    radius, excess = _radii(certificate)
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
    bounded = np.isfinite(lower)
    if bounded.any():
        constraints.append(models[:, bounded] >= np.repeat(lower[None, bounded], steps, axis=0))
    bounded = np.isfinite(upper)
    if bounded.any():
        constraints.append(models[:, bounded] <= np.repeat(upper[None, bounded], steps, axis=0))
    if kind is not None:
        whole = cp.Variable((steps, d), integer=True)
        constraints.append(steps_taken == whole)
        if kind == "unit":
            constraints += [whole <= chosen, whole >= -chosen]
    if end is not None:
        constraints.append(models[-1] == end)
    for fraction in np.linspace(-1, 1, TANGENTS):
        at = np.repeat(fraction * radius[:, None], len(root), axis=1)
        constraints.append(squares >= 2 * cp.multiply(at, lifted) - at**2)
    for path in tangents:
        at = (path - centre) @ root.T
        constraints.append(squares >= 2 * cp.multiply(at, lifted) - at**2)
    objective = cp.sum(cp.multiply(np.repeat(weights[:, None], len(root), axis=1), squares))
    problem = cp.Problem(cp.Minimize(objective), constraints)
    options: dict[str, Any] = {"mip_rel_gap": 1e-9, "mip_abs_gap": 0.0, "mip_feasibility_tolerance": 1e-9}
    options |= {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
    if np.isfinite(run.deadline.remaining()):
        options["time_limit"] = max(run.deadline.remaining(), 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CVXPY warns of inaccurate ends; the path is checked anew
        try:
            problem.solve(solver=cp.HIGHS, **options)
        except cp.error.SolverError:
            return None
    statistics = problem.solver_stats.extra_stats if problem.solver_stats is not None else None
    proved = getattr(statistics, "mip_dual_bound", None)
    if proved is not None and np.isfinite(proved):
        certificate.raise_bound(float(proved) + least * float(weights.sum()))
    certificate.nodes += int(getattr(statistics, "mip_node_count", 0) or 0)
    return None if models.value is None else np.asarray(models.value, np.float64)
