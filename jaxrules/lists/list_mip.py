"""Exact rule lists by mixed-integer programming (CVXPY and HiGHS): for small problems, and as an
independent check.

z_rlp: position p of the list has condition r with label l. w_glp: group g is captured there with
that label. u_gp: it is free after position p. Maximise the correctly classified weight minus the
penalties of the conditions,

    sum_p sum_g (sum_l n_gl w_glp) + sum_g,d n_gd v_gd - sum z_rlp price_r,

less the local penalty times n_g times the number of rules that group g reads, sum_p s_gp, where
s_gp >= u_g(p-1) + sum_rl z_rlp - 1 is 1 if it is free at a position that is taken,
with at most one condition per position, empty positions last, w_glp <= sum of z_rlp over the r that
cover g, sum_l w_glp + u_gp = u_g(p-1), u_gp <= 1 - sum of z_rlp over the r that cover g, and the
groups free at the end get the one default label that t chooses, v_gd <= t_d and sum_d v_gd = u_gm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxrules.lists.candidates import ListCandidates
from jaxrules.lists.prefixes import Choice
from jaxrules.solvers import mip
from jaxrules.solvers.layered import LayeredCertificate, never

GAP = 1e-6
"""Absolute tolerance of the certificate: what the solver's feasibility tolerance resolves."""


def search(
    candidates: ListCandidates,
    max_rules: int,
    certificate: LayeredCertificate[Choice],
    stopped: Callable[[], bool] = never,
    remaining: Callable[[], float] = lambda: math.inf,
) -> None:
    """Improve and prove a certificate by one program. Only the conditions of its solution are taken
    from it.

    Args:
        candidates: the conditions and groups.
        max_rules: the most rules.
        certificate: of the problem; see `Prefixes.certificate`.
        stopped: checked before the program is built, and while it is solved.
        remaining: the remaining seconds.
    """
    import cvxpy as cp

    if stopped():
        return
    certificate.absolute = max(certificate.absolute, GAP)
    n, K = candidates.counts, candidates.n_classes
    G, R = candidates.n_groups, len(candidates)
    covers = candidates.covered(slice(None)).T.astype(np.float64)
    places = range(max_rules)
    z = [cp.Variable((R, K), boolean=True) for _ in places]
    w = [cp.Variable((G, K), nonneg=True) for _ in places]
    free: list[Any] = [np.ones(G), *(cp.Variable(G, nonneg=True) for _ in places)]
    v, t = cp.Variable((G, K), nonneg=True), cp.Variable(K, boolean=True)
    # One default label decides the groups that are free at the end.
    constraints = [cp.sum(t) == 1, t <= candidates.defaults, cp.sum(v, axis=1) == free[-1]]
    constraints += [v[:, d] <= t[d] for d in range(K)]
    objective = cp.sum(cp.multiply(n, v))
    for p in places:
        chosen = cp.sum(z[p], axis=1)
        constraints += [
            z[p] <= candidates.labels,
            w[p] <= covers @ z[p],  # captured only by a rule that covers the group ...
            cp.sum(w[p], axis=1) + free[p + 1] == free[p],  # ... and only once ...
            free[p + 1] <= 1 - covers @ chosen,  # ... by the first that does
            cp.sum(chosen) <= (1 if p == 0 else cp.sum(z[p - 1])),  # empty positions last
        ]
        objective += cp.sum(cp.multiply(n, w[p])) - candidates.prices @ chosen
        if candidates.local_penalty:
            reads = cp.Variable(G, nonneg=True)
            constraints.append(reads >= free[p] + cp.sum(chosen) - 1)
            objective -= candidates.local_penalty * (n.sum(axis=1) @ reads)
    used = sum(cp.sum(chosen, axis=1) for chosen in z)
    constraints.append(used <= 1)
    for bit in range(int(candidates.required).bit_count()):  # every required column is used
        constraints.append(
            (candidates.uses >> np.uint64(bit) & np.uint64(1)).astype(float) @ used >= 1
        )
    program = cp.Problem(cp.Maximize(objective), constraints)
    # The solver's gap takes half of GAP; the other half is left for its rounding.
    tolerances = {"mip_rel_gap": 0.0, "mip_abs_gap": GAP / 2, "mip_feasibility_tolerance": 1e-9}
    proof = mip.solve(program, stopped, remaining, **tolerances)
    if all(place.value is not None for place in z):
        picked = [np.asarray(place.value).sum(axis=1) for place in z]
        # No value of the solver is trusted: the certificate evaluates the conditions.
        certificate.offer(tuple(int(some.argmax()) for some in picked if some.max() > 0.5))
    if proof.bound is not None:
        certificate.prove(proof.bound)
    certificate.nodes += proof.nodes
