"""Column generation: the master problem and the pricing problem in turn."""

from __future__ import annotations

from collections.abc import Callable

from jaxrules.ensembles.glrm.details import GLRMDetails
from jaxrules.ensembles.glrm.master import Master
from jaxrules.ensembles.glrm.pricing import price
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.tools.fits import Fit, Status
from jaxrules.tools.runs import Run

_MASTER_TOLERANCE = 1e-3
"""Relative duality gap of the last master problems, as a share of the tolerance of the fit."""


def grow(state: Master, run: Run) -> Status:
    """Column generation, inside of ``with run``."""
    problem, options = state.problem, state.problem.options
    run.phase = "start"
    state.solve(run)
    run.step(state.objective, state.size, bound=state.proved_bound)
    run.phase = "search"
    while not run.stopped():
        found = price(problem, state, run)  # the pricing problem
        # Slopes of a rough master problem have a bound, too: scaled down, they are feasible.
        state.note(found.bound)
        if run.stopped():
            break
        # Violated rules that are candidates already have to wait for a more exact master problem.
        left = options.max_rules - state.generated
        new = [rule for rule in found.rules if rule not in state.known][:left]
        last = _MASTER_TOLERANCE * options.tolerance
        # Slopes of a rough master problem may hide a violation: only the last ones end it.
        if not new and state.tolerance <= last:
            if not found.rules or left > 0:  # otherwise max_rules leaves rules out
                return Status.CONVERGED
            break
        state.add(new)
        # Nothing new at this tolerance: the next slopes are a hundred times as exact.
        if not new:
            state.tolerance = max(0.01 * state.tolerance, last)
        state.solve(run)
        run.step(state.objective, state.size, bound=state.proved_bound)
    return Status.MAX_ITERATIONS


def weigh(state: Master, run: Run) -> Status:
    """The best weights of the candidates alone, inside of ``with run``."""
    run.phase = "weights"
    state.tolerance = _MASTER_TOLERANCE * state.problem.options.tolerance
    state.solve(run)
    run.step(state.objective, state.size)
    return Status.CONVERGED


def generate(
    state: Master, run: Run, work: Callable[[Master, Run], Status] = grow, *, whole: bool = True
) -> Fit[RuleEnsemble]:
    """The fit at one penalty, by column generation or by `weigh`.

    Args:
        whole: False keeps rules of little worth: on more rows they may be worth more.
    """
    options, status = state.problem.options, Status.MAX_ITERATIONS
    dropped, relaxed = 0, False
    with run:
        # Rules that replace each other go before the refit: without a penalty it could not tell how
        # to share a weight among them.
        status = work(state, run)
        state.thin_out()
        if whole and options.eliminates:
            dropped = state.eliminate(run)
        relaxed = bool(dropped) and options.by_noise and not run.stopped()
        if relaxed:
            state.relax(run)
        if options.debias:
            state.debias()
    if state.solution is None:  # the run is stopped: this returns the constant
        state.solve(run)
    assert state.solution is not None
    problem, why = state.problem, ""
    if dropped:
        why = f"{dropped} rules were too little worth to keep"
        if relaxed:
            why += f"; the others are weighed with rule_penalty={problem.prices.rule:.3g}"
    # The last master problem may have ended before it converged.
    status = Status.worst([status, state.solution.status])
    if state.proved(options.tolerance):
        status = Status.OPTIMAL
    details = GLRMDetails(
        rounds=state.rounds, n_candidates=len(state.rules), chosen=why, dropped=dropped,
        n_propositions=problem.candidates.n_searched, rule_penalty=problem.prices.rule,
        condition_penalty=problem.prices.condition,
    )  # fmt: skip
    model = problem.model(state.rules[: state.solved], *state.weights)
    return run.finish(model, state.objective, "min", status, state.proved_bound, details)
