"""One coordinate-path problem solved by a general solver, in the peers' own
environment (see paths.py).

    PYTHON benchmarks/paths_peers.py gurobi|scip problem.npz SECONDS

Eq. (9): steps with SOS-1 constraints, the sum of costs as a convex quadratic objective. Prints one
line of JSON.
"""

import json
import sys
import time
from typing import Any

import numpy as np


def features(models: np.ndarray) -> list[int]:
    """The coefficient that every step changes."""
    return [int(i) for i in np.abs(np.diff(models, axis=0, prepend=0.0)).argmax(axis=1)]


def gurobi(
    Q: np.ndarray, g: np.ndarray, s: float, weights: np.ndarray, limit: float
) -> dict[str, Any]:
    import gurobipy as gp

    steps, d = len(weights), len(g)
    with gp.Env(params={"OutputFlag": 0}) as environment, gp.Model(env=environment) as model:
        b = model.addMVar((steps, d), lb=-gp.GRB.INFINITY)
        change = model.addMVar((steps, d), lb=-gp.GRB.INFINITY)
        model.addConstr(change[0] == b[0])
        for k in range(1, steps):
            model.addConstr(change[k] == b[k] - b[k - 1])
        for k in range(steps):
            model.addSOS(gp.GRB.SOS_TYPE1, change[k].tolist())
        model.setObjective(sum(weights[k] * (b[k] @ Q @ b[k] - 2 * g @ b[k]) for k in range(steps)))
        model.Params.MIPGap, model.Params.MIPGapAbs, model.Params.TimeLimit = 1e-9, 0.0, limit
        start = time.perf_counter()
        model.optimize()
        seconds = time.perf_counter() - start
        version = "Gurobi " + ".".join(map(str, gp.gurobi.version()))
        finished = model.Status == gp.GRB.OPTIMAL
        return {
            "version": version,
            "seconds": seconds,
            "finished": finished,
            "sequence": features(change.X.cumsum(axis=0)),
        }


def scip(
    Q: np.ndarray, g: np.ndarray, s: float, weights: np.ndarray, limit: float
) -> dict[str, Any]:
    import pyscipopt as ps

    steps, d = len(weights), len(g)
    model = ps.Model()
    model.hideOutput()
    b = [[model.addVar(lb=None) for _ in range(d)] for _ in range(steps)]
    change = [[model.addVar(lb=None) for _ in range(d)] for _ in range(steps)]
    cost = [model.addVar(lb=0.0) for _ in range(steps)]
    for k in range(steps):
        for i in range(d):
            model.addCons(change[k][i] == b[k][i] - (b[k - 1][i] if k else 0.0))
        model.addConsSOS1(change[k])
        quadratic = ps.quicksum(Q[i, j] * b[k][i] * b[k][j] for i in range(d) for j in range(d))
        model.addCons(quadratic - 2 * ps.quicksum(g[i] * b[k][i] for i in range(d)) + s <= cost[k])
    model.setObjective(ps.quicksum(weights[k] * cost[k] for k in range(steps)))
    model.setParam("limits/gap", 1e-9)
    model.setParam("limits/time", limit)
    start = time.perf_counter()
    model.optimize()
    seconds = time.perf_counter() - start
    values = np.array([[model.getVal(variable) for variable in row] for row in b])
    finished = model.getStatus() in ("optimal", "gaplimit")
    return {
        "version": f"SCIP {model.version()}",
        "seconds": seconds,
        "finished": finished,
        "sequence": features(values),
    }


if __name__ == "__main__":
    solver, file, limit = sys.argv[1:]
    problem = np.load(file)
    arguments = problem["Q"], problem["g"], float(problem["s"]), problem["weights"], float(limit)
    print(json.dumps({"gurobi": gurobi, "scip": scip}[solver](*arguments)))
