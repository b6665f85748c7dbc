"""The sparse generalised linear model solver against scikit-learn (liblinear, saga)
and skglm on rules of Adult.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/sparse_glm.py [--set
    adult_train] [--repeats 5]

One matrix: rules of a forest of 100 trees of depth 3 on nine tenths of the rows, L1-penalised
logistic loss. For several penalties, every solver runs in turn, `--repeats` times; the script
prints medians. The first call of ours (which compiles) and of skglm (numba) is timed separately. A
solver whose second call takes longer than `--patience` seconds does not run again at this penalty,
and not at all at the smaller ones. The same NumPy code judges every coefficient vector: the
objective above the best that was found, relative to it. Liblinear penalises the intercept and so
solves another problem: its seconds count, its objective does not. Ours is timed with the matrix
prepared once (a separate line gives those seconds), as in a path or a cross-validation. The script
also times preparing the matrix, and a path of 50 penalties.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules import datasets
from jaxrules.ensembles.growing import default_forest
from jaxrules.solvers.linear import sparse_glm
from jaxrules.solvers.linear.design import Design

RESULTS = Path(__file__).parent / "results"
PENALTIES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
Fitted = tuple[NDArray[np.float64], float]  # coefficients, intercept


def rule_matrix(name: str) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    data = datasets.load(name)
    rows = np.sort(np.random.default_rng(0).permutation(len(data))[len(data) // 10 :])
    data = data[rows]
    rules = jr.extract_rules(default_forest(data.X, data.y, seed=0), data.X)
    y = np.where(np.asarray(data.y) == np.unique(data.y)[1], 1.0, -1.0)
    return rules.satisfied(data.X).astype(np.uint8), y


def objective(X: NDArray[Any], y: NDArray[np.float64], fitted: Fitted, penalty: float) -> float:
    """Mean loss plus penalty, from the non-zero coefficients alone."""
    coefficients, intercept = fitted
    used = np.flatnonzero(coefficients)
    score = intercept + X[:, used].astype(np.float64) @ coefficients[used]
    return float(np.mean(np.logaddexp(0, -y * score)) + penalty * np.abs(coefficients).sum())


def solvers(X: NDArray[Any], y: NDArray[np.float64]) -> dict[str, Callable[[float], Fitted]]:
    """Name -> a function of the penalty. Every peer gets the matrix in
    the form that suits it best.
    """
    from scipy import sparse
    from skglm import SparseLogisticRegression
    from sklearn.linear_model import LogisticRegression

    design = Design.of(X)
    columns = sparse.csc_matrix(X.astype(np.float64))
    rows = columns.tocsr()

    def ours(tolerance: float) -> Callable[[float], Fitted]:
        def fit(penalty: float) -> Fitted:
            solution = sparse_glm.solve(design, y, penalty, loss="logistic", tolerance=tolerance)
            assert solution.converged
            return solution.coefficients, solution.intercept

        return fit

    def logistic(solver: str, **options: Any) -> Callable[[float], Fitted]:
        def fit(penalty: float) -> Fitted:
            model = LogisticRegression(
                solver=solver, C=1 / (len(y) * penalty), l1_ratio=1.0, **options
            ).fit(rows, y)
            return model.coef_[0], float(model.intercept_[0])

        return fit

    def skglm(penalty: float) -> Fitted:
        model = SparseLogisticRegression(
            alpha=penalty, tol=1e-6, max_iter=200, max_epochs=50_000
        ).fit(columns, y)
        return model.coef_.ravel(), float(np.squeeze(model.intercept_))

    return {
        "jaxrules, gap 1e-6": ours(1e-6),
        "jaxrules, gap 1e-9": ours(1e-9),
        "liblinear, tol 1e-4": logistic("liblinear", tol=1e-4),
        "liblinear, tol 1e-6": logistic("liblinear", tol=1e-6, max_iter=1000),
        "saga, tol 1e-4": logistic("saga", tol=1e-4, max_iter=300),
        "skglm, tol 1e-6": skglm,
    }


def seconds(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def single_penalties(
    X: NDArray[Any], y: NDArray[np.float64], repeats: int, patience: float
) -> list[dict[str, Any]]:
    rows = []
    competitors = solvers(X, y)
    slow: set[str] = set()
    for penalty in PENALTIES:
        first: dict[str, float] = {}
        times: dict[str, list[float]] = {name: [] for name in competitors}
        fitted: dict[str, Fitted] = {}
        for _ in range(repeats + 1):  # paired: all solvers in every round; the first round compiles
            for name, fit in competitors.items():
                if name in slow:
                    continue
                fitted[name], spent = seconds(lambda fit=fit, penalty=penalty: fit(penalty))
                if name not in first:
                    first[name] = spent
                else:
                    times[name].append(spent)
                    if spent > patience:
                        slow.add(name)
        values = {name: objective(X, y, fit, penalty) for name, fit in fitted.items()}
        best = min(values.values())
        print(
            f"\npenalty {penalty:g}, support {np.count_nonzero(fitted['jaxrules, gap 1e-9'][0])}",
            flush=True,
        )
        for name, value in values.items():
            median = statistics.median(times[name])
            print(
                f"  {name:20s} {median:8.3f} s   first call {first[name]:7.3f} s   "
                f"above the best {(value - best) / best:8.1e}   "
                f"non-zero {np.count_nonzero(fitted[name][0]):5d}   runs {len(times[name])}"
            )
            rows.append(
                {
                    "penalty": penalty,
                    "solver": name,
                    "seconds": median,
                    "first": first[name],
                    "objective": value,
                }
            )
        for name in sorted(slow - set(values)):
            print(f"  {name:20s} not run: took longer than {patience:g} s at a larger penalty")
    return rows


def path(problem: sparse_glm.SparseProblem) -> None:
    solution = None
    for penalty in problem.max_penalty() * np.geomspace(1.0, 1e-3, 50):
        solution = problem.solve(penalty, start=solution)


def rest(X: NDArray[Any], y: NDArray[np.float64], repeats: int) -> list[dict[str, Any]]:
    """The matrix and the path, for ours alone."""
    design = Design.of(X)
    tasks: dict[str, Callable[[], Any]] = {
        "preparing the matrix": lambda: Design.of(X),
        "path of 50 penalties": lambda: path(sparse_glm.SparseProblem.of(design, y, "logistic")),
    }
    rows = []
    print()
    for name, task in tasks.items():
        _, first = seconds(task)
        median = statistics.median(seconds(task)[1] for _ in range(repeats))
        print(f"{name:32s} {median:8.3f} s   first call {first:7.3f} s")
        rows.append(
            {"penalty": "", "solver": name, "seconds": median, "first": first, "objective": ""}
        )
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--set", default="adult_train")
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--patience", type=float, default=10.0, help="seconds, see above")
    options = arguments.parse_args()
    import jax
    import skglm
    import sklearn

    warnings.simplefilter(
        "ignore"
    )  # peers that stop at their iteration limit say so; the objective shows it
    X, y = rule_matrix(options.set)
    patterns = Design.of(X).n_patterns
    versions = (
        f"jax {jax.__version__}, scikit-learn {sklearn.__version__}, skglm {skglm.__version__}"
    )
    print(
        f"{options.set}: {X.shape[0]} rows, {X.shape[1]} rules, {patterns} patterns; "
        f"{os.cpu_count()} cores; {versions}"
    )
    print(f"medians of {options.repeats} runs; the first call apart", flush=True)
    rows = single_penalties(X, y, options.repeats, options.patience) + rest(X, y, options.repeats)
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"sparse_glm_{options.set}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
