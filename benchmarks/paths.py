"""Coordinate paths: certified and local search against peers, and the sizes that can be proved.

    python benchmarks/paths.py [--peers PYTHON] [--limit 60]   # takes minutes, mostly for the peers
    python benchmarks/paths.py --restarts 600                  # renew paths_best.json, CPU seconds
    python benchmarks/paths.py --classes                       # softmax paths; scikit-learn's data

``PYTHON`` is the interpreter of an environment with numpy, gurobipy (its size-limited package) and
pyscipopt. Peers that it lacks are reported as not run. Both sides get the same float64 Gram
matrices, in one run. Prestige: 102 rows; education, income, women and the three types, standardised
(the 4 rows without a type are 0 in all three). Scale: n = 150, equicorrelated normal columns (0.8),
y = X b + e, b normal with 30 % zeros, e normal with half the standard deviation of X b, all
standardised. Every objective is computed from the models that a solver returns.
"""

import argparse
import csv
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jaxrules as jr
from jaxrules.paths import exact, local, mip
from jaxrules.paths.costs import QuadraticCost, mean_squared_error
from jaxrules.paths.problem import PathProblem, geometric_weights, greedy_path
from jaxrules.tools.runs import Run

HERE = Path(__file__).parent
RESULTS = HERE / "results"
BEST = HERE / "paths_best.json"


def prestige() -> tuple[np.ndarray, np.ndarray]:
    data = jr.datasets.load("prestige")
    columns = dict(zip(data.X.names, data.X.columns, strict=True))
    types = data.X.schema.features[data.X.names.index("type")].categories
    levels = [types.index(level) for level in ("bc", "prof", "wc")]
    X = np.column_stack(
        [columns[name] for name in ("education", "income", "women")]
        + [columns["type"] == level for level in levels]
    ).astype(float)
    return X, np.asarray(data.y, float)


def equicorrelated(features: int, rows: int, seed: int) -> QuadraticCost:
    rng = np.random.default_rng(seed)
    covariance = np.full((features, features), 0.8) + 0.2 * np.eye(features)
    X = rng.multivariate_normal(np.zeros(features), covariance, size=rows)
    y = X @ (rng.normal(size=features) * (rng.random(features) < 0.7))
    return standardised(X, y + rng.normal(size=rows) * 0.5 * y.std())


def standardised(X: np.ndarray, y: np.ndarray) -> QuadraticCost:
    return mean_squared_error((X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std(), np.ones(len(y)))


def objective(cost: QuadraticCost, weights: np.ndarray, sequence: np.ndarray) -> float:
    problem = PathProblem(cost, weights)
    return problem.objective(problem.along(np.asarray(sequence)))


def timed(function: Callable[[], Any], repeats: int = 15) -> tuple[float, float, float, Any]:
    """Seconds of the first call (with compilation), median and minimum of
    further calls; the result.
    """
    start = time.perf_counter()
    result = function()
    first = time.perf_counter() - start
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return first, statistics.median(seconds), min(seconds), result


def peer(
    python: str | None, name: str, cost: QuadraticCost, weights: np.ndarray, limit: float
) -> dict[str, Any]:
    """What the peer reports: seconds, finished, sequence; or why it was not run."""
    if python is None:
        return {"not_run": "no --peers interpreter was given"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.npz"
        np.savez(file, Q=cost.curvature, g=cost.linear, s=cost.constant, weights=weights)
        command = [python, str(HERE / "paths_peers.py"), name, str(file), str(limit)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=limit + 120
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return {"not_run": str(error)}
        if done.returncode:
            return {
                "not_run": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed"
            }
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def against_peers(python: str | None, limit: float, rows: list[dict[str, Any]]) -> None:
    X, y = prestige()
    cost = standardised(X, y)
    for steps in (5, 7, 10, 20):
        weights = np.ones(steps)
        first, warm, least, found = timed(
            lambda k=steps: jr.paths.fit(X, y, steps=k, standardise=True)
        )
        value = objective(cost, weights, found.model.features)
        speed = f"{1e3 * warm:.1f} ms warm (least {1e3 * least:.1f}, first call {1e3 * first:.0f})"
        print(f"Prestige K={steps}: {found.status}, gap {found.gap:.1e}, {speed}")
        row = {
            "case": f"prestige K={steps}",
            "objective": value,
            "proved": found.status == "optimal",
            "seconds": warm,
        }
        rows.append(row | {"method": "exact", "first_call": first, "nodes": found.details["nodes"]})
        if steps > 10:
            continue
        for name in ("gurobi", "scip"):
            report = peer(python, name, cost, weights, limit)
            if "not_run" in report:
                print(f"  {name}: not run: {report['not_run']}")
                continue
            theirs = objective(cost, weights, report["sequence"])
            sign = "" if report["finished"] else "> "
            ratio = (
                f"{sign}{report['seconds']:.3f} s, {sign}{report['seconds'] / warm:.0f} times ours"
            )
            print(f"  {report['version']}: {ratio}, objective {theirs / value - 1:+.1e}")
            rows.append(
                row
                | {
                    "method": report["version"],
                    "objective": theirs,
                    "seconds": report["seconds"],
                    "proved": report["finished"],
                }
            )
        start = time.perf_counter()
        run = Run("benchmark", limit)
        outer = mip.search(
            PathProblem(cost, weights), stopped=run.stopped, remaining=run.deadline.remaining
        )
        seconds = time.perf_counter() - start
        finished = outer.objective - outer.bound <= 1e-7 * outer.objective
        sign = "" if finished else "> "
        print(
            f"  HiGHS outer approximation: {sign}{seconds:.2f} s, {sign}{seconds / warm:.0f} times "
            "ours"
        )
        rows.append(
            row
            | {
                "method": "highs",
                "objective": outer.objective,
                "seconds": seconds,
                "proved": finished,
            }
        )


def scale(rows: list[dict[str, Any]]) -> None:
    for gamma in (1.0, 2.0):
        for seed in range(5):
            cost, weights = equicorrelated(15, 150, seed), geometric_weights(gamma, 15)
            _, seconds, _, found = timed(
                lambda c=cost, w=weights: exact.search(
                    PathProblem(c, w), stopped=Run("", 120.0).stopped
                ),
                repeats=1,
            )
            gap = 1 - found.bound / found.objective
            print(
                f"d=15 K=15 gamma={gamma:.0f} seed={seed}: proved {found.closed}, gap {gap:.1e}, "
                f"{seconds:.2f} s, {found.nodes} nodes"
            )
            rows.append(
                {
                    "case": f"d=15 K=15 gamma={gamma} seed={seed}",
                    "method": "exact",
                    "seconds": seconds,
                    "objective": found.objective,
                    "proved": found.closed,
                    "nodes": found.nodes,
                }
            )


def local_search(rows: list[dict[str, Any]]) -> None:
    cost, weights = standardised(*prestige()), np.ones(10)
    optimum = exact.search(PathProblem(cost, weights)).objective
    starts = local.random_sequences(6, 10, 20, seed=0)
    for batch in (1, 2, 3):
        first, warm, least, found = timed(
            lambda q=batch: local.improve(cost, weights, starts, batch=q, seed=0)
        )
        gaps = [objective(cost, weights, s) / optimum - 1 for s in found]
        speed = f"{1e3 * warm:.1f} ms warm (least {1e3 * least:.1f}, first call {1e3 * first:.0f})"
        quality = f"best gap {min(gaps):.1e}, median {statistics.median(gaps):.1e}"
        print(f"Prestige K=10, q={batch}, 20 random starts: {speed}, {quality}")
        rows.append(
            {
                "case": f"prestige K=10 local q={batch}",
                "method": "local",
                "seconds": warm,
                "first_call": first,
                "objective": optimum * (1 + min(gaps)),
            }
        )
    cost, weights = equicorrelated(100, 400, 0), np.ones(30)
    greedy = greedy_path(PathProblem(cost, weights)).features[None]
    first, warm, least, found = timed(
        lambda: local.improve(cost, weights, greedy, batch=2, seed=0), repeats=5
    )
    value = objective(cost, weights, found[0])
    stored = (
        json.loads(BEST.read_text())
        if BEST.exists()
        else {"objective": float("nan"), "cpu_seconds": 0}
    )
    behind = (
        f"{value / stored['objective'] - 1:+.1e} from the best of {stored['cpu_seconds']:.0f} "
        "CPU seconds of restarts"
    )
    print(
        f"d=100 K=30, q=2 from greedy: {warm:.3f} s warm (least {least:.3f}, first {first:.2f}), "
        f"{behind}"
    )
    rows.append(
        {
            "case": "d=100 K=30 local q=2",
            "method": "local",
            "seconds": warm,
            "first_call": first,
            "objective": value,
        }
    )


def restart(cpu_seconds: float) -> None:
    """Local improvement (q = 2) from the greedy and random sequences until
    time is up; stores the best.
    """
    cost, weights = equicorrelated(100, 400, 0), np.ones(30)
    best, seed, start = np.inf, 0, time.process_time()
    starts = np.concatenate(
        [
            greedy_path(PathProblem(cost, weights)).features[None],
            local.random_sequences(100, 30, 7, 0),
        ]
    )
    while time.process_time() - start < cpu_seconds:
        best = min(
            best,
            objective(cost, weights, local.improve(cost, weights, starts, batch=2, seed=seed)[0]),
        )
        seed += 1
        starts = local.random_sequences(100, 30, 8, seed)
        spent = time.process_time() - start
        BEST.write_text(
            json.dumps(
                {
                    "case": "d=100 K=30 seed=0",
                    "objective": best,
                    "cpu_seconds": round(spent),
                    "starts": 8 * seed,
                }
            )
            + "\n"
        )
    print(BEST.read_text())


def several_classes() -> None:
    """Softmax paths of ten steps, in CPU seconds after one fit that compiles."""
    from sklearn.datasets import load_iris, load_wine

    for load in (load_iris, load_wine):
        X, y = load(return_X_y=True)
        for ridge in (0.01, 0.001, 0.0):
            for method in ("local", "local", "exact"):
                start = time.process_time()
                fit = jr.paths.fit(
                    X, y, steps=10, standardise=True, l2_penalty=ridge, method=method,
                    time_limit=300,
                )  # fmt: skip
                spent = time.process_time() - start
            print(
                f"{load.__name__}, ridge {ridge:g}: {fit.status}, gap {fit.gap:.1e}, "
                f"{fit.details.nodes} states, {spent:.1f} CPU seconds"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", metavar="PYTHON")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per peer and problem")
    parser.add_argument("--restarts", type=float, metavar="SECONDS")
    parser.add_argument("--classes", action="store_true")
    arguments = parser.parse_args()
    if arguments.classes:
        several_classes()
        return
    if arguments.restarts is not None:
        restart(arguments.restarts)
        return
    rows: list[dict[str, Any]] = []
    local_search(rows)
    scale(rows)
    against_peers(arguments.peers, arguments.limit, rows)
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "paths.csv", "w", newline="") as file:
        writer = csv.DictWriter(
            file, ["case", "method", "seconds", "first_call", "objective", "proved", "nodes"]
        )
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
