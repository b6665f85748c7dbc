"""Mixed-integer linear programs in CVXPY's form, solved by HiGHS under the limits of a fit.

CVXPY's own call of HiGHS hides Ctrl-C until HiGHS returns. Here HiGHS runs in a thread of its own
while this one polls. Once the fit is stopped, HiGHS stops at its next callback (every node, every
few steps of the simplex method) and keeps its best solution so far. The thread is our own because
highspy's `startSolve` allows only one per process, and its daemon thread aborts a process that ends
while it runs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import cvxpy as cp

_LISTENING = 0.05
"""Seconds between two checks of the limits."""
_PATIENCE = 0.3
"""Seconds to wait for HiGHS to stop. Only its preprocessing of large programs, which finds no
solution, takes longer.
"""
_FEASIBLE = 2
"""HiGHS's status of a solution that meets all constraints."""


class Proof(NamedTuple):
    """What HiGHS proved.

    Attributes:
        bound: no solution has a better objective; None if nothing was proved.
        nodes: the number of nodes that it examined.
    """

    bound: float | None
    nodes: int


def solve(
    program: cp.Problem,
    stopped: Callable[[], bool],
    remaining: Callable[[], float],
    **options: float,
) -> Proof:
    """Solve a program whose objective and constraints are linear, or stop with the best solution
    found by then.

    Args:
        program: its variables get the values of the best solution; if none is found, they keep
            their values (None in a new program).
        stopped: asked twenty times a second.
        remaining: returns the remaining seconds; asked once CVXPY has compiled the program.
        options: of HiGHS.
    """
    import cvxpy as cp
    import highspy

    if stopped():
        return Proof(None, 0)
    data, chain, inverse = program.get_problem_data(cp.HIGHS)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for name, value in options.items():
        solver.setOptionValue(name, value)
    # CVXPY's compilation has taken its part of the time by now.
    if math.isfinite(seconds := remaining()):
        solver.setOptionValue("time_limit", max(seconds, 0.01))
    solver.passModel(_linear_program(data))
    solver.HandleUserInterrupt = True
    thread = threading.Thread(target=solver.solve)  # no daemon: the process waits for it
    thread.start()
    try:
        while thread.is_alive() and not stopped():
            thread.join(_LISTENING)
    finally:  # a second Ctrl-C
        solver.cancelSolve()
        solver.setOptionValue("time_limit", 0.0)  # preprocessing checks only the clock
    thread.join(_PATIENCE)
    if thread.is_alive():
        return Proof(None, 0)  # it ends seconds later, with nothing found

    info, solution = solver.getInfo(), solver.getSolution()
    if info.primal_solution_status == _FEASIBLE:
        found = {
            "solution": solution,
            "info": info,
            "model_status": "kOptimal",  # with another status, CVXPY takes no values
            "run_time": solver.getRunTime(),
        }
        program.unpack_results(found, chain, inverse)
    # CVXPY takes constants out of the objective, and minimises minus a maximum.
    bound = info.mip_dual_bound + inverse[-1][cp.settings.OFFSET]
    sign = 1.0 if isinstance(program.objective, cp.Minimize) else -1.0
    return Proof(sign * bound if np.isfinite(bound) else None, max(int(info.mip_node_count), 0))


def _linear_program(data: dict[str, Any]) -> Any:
    """CVXPY's standard form for HiGHS: min c'x, with the rows of Ax = b before those of Ax <= b."""
    import highspy
    from cvxpy import settings as s

    A, b = data[s.A].tocsc(), data[s.B]
    rows, columns = A.shape
    whole = np.array([*data[s.BOOL_IDX], *data[s.INT_IDX]], int)
    low = _bounds(data.get(s.LOWER_BOUNDS), -np.inf, columns)
    high = _bounds(data.get(s.UPPER_BOUNDS), np.inf, columns)
    low[data[s.BOOL_IDX]] = np.maximum(low[data[s.BOOL_IDX]], 0)
    high[data[s.BOOL_IDX]] = np.minimum(high[data[s.BOOL_IDX]], 1)
    kinds = np.full(columns, highspy.HighsVarType.kContinuous)
    kinds[whole] = highspy.HighsVarType.kInteger

    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = columns, rows
    program.col_cost_, program.col_lower_, program.col_upper_ = data[s.C], low, high
    program.row_lower_ = np.where(np.arange(rows) < data[s.DIMS].zero, b, -np.inf)
    program.row_upper_ = b
    program.integrality_ = kinds.tolist()
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = A.indptr, A.indices
    program.a_matrix_.value_ = A.data
    return program


def _bounds(given: Any, otherwise: float, columns: int) -> NDArray[np.float64]:
    """Bounds of the variables; CVXPY before 1.7 puts them among the constraints instead."""
    return np.full(columns, otherwise) if given is None else np.array(given, float)
