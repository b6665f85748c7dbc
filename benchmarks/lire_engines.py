"""LIRE's search in NumPy and as a traced program, paired: objectives and seconds.

    JAXRULES_DATA=/with/manifest.json python benchmarks/lire_engines.py [--parts fits descents]
    [--sets heart ...] [--gammas .005 ...]

fits: whole fits (all starts) on the same rules, in both problems: the default loss with its ridge,
    and the paper's, the exponential loss without a ridge. The first fit of a program compiles;
    its seconds are those of compilation, the others are CPU seconds of a second fit.
descents: one descent from the empty model, warm, in CPU and wall seconds.
samples: the paper's problem, where the two end in different local optima, for ten random samples of
    the rows and of the rules, with one restart: how far apart the objectives are, and how often
    that of JAX is lower.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxrules as jr
from jaxrules import datasets
from jaxrules.ensembles.growing import default_forest
from jaxrules.ensembles.lire import traced
from jaxrules.ensembles.lire.problem import SupportProblem, make_problem
from jaxrules.ensembles.lire.search import SupportSearch
from jaxrules.learning.training import training_data
from jaxrules.losses import loss_by_name
from jaxrules.rules.rows import Activations

RESULTS = Path(__file__).parent / "results"
SETS = {
    "heart": "heart",
    "breast_cancer": "breast_cancer",
    "compas": "compas_lire",
    "bank": "bank",
    "adult": "adult_train",
    "fico": "fico_lire",
}
PROBLEMS: dict[str, dict[str, Any]] = {
    "default": {"loss": "logistic", "l2_penalty": 1.0},
    "paper": {"loss": "exponential", "l2_penalty": 0.0},
}
ENGINES = {"numpy": SupportSearch, "jax": traced.TracedSearch}


def pool(name: str) -> tuple[jr.Table, Any, jr.Conjunctions]:
    data = datasets.load(SETS[name])
    X = jr.as_table(data.X, missing="own_category")
    rules = jr.extract_rules(default_forest(X, data.y, seed=0), X)
    return X, data.y, rules


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, and CPU and wall seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def fitted(
    X: jr.Table,
    y: Any,
    rules: jr.Conjunctions,
    problem: str,
    gamma: float,
    engine: str,
    **options: Any,
) -> jr.Fit[jr.RuleEnsemble]:
    given: dict[str, Any] = {"rules": rules, "global_penalty": gamma, "missing": "own_category"}
    return jr.lire.fit(X, y, **PROBLEMS[problem], **given, engine=engine, **options)


def fits(names: list[str], gammas: list[float]) -> Iterator[dict[str, Any]]:
    for name in names:
        X, y, rules = pool(name)
        for problem, gamma in ((p, g) for p in PROBLEMS for g in gammas):
            row: dict[str, Any] = {"set": name, "problem": problem, "gamma": gamma}
            for engine in ENGINES:
                fit = partial(fitted, X, y, rules, problem, gamma, engine)
                _, _, first = timed(fit)
                found, cpu, _ = timed(fit)
                row |= {
                    f"{engine} G": found.objective,
                    f"{engine} rules": jr.support(found.model),
                    f"{engine} first s": round(first, 2),
                    f"{engine} CPU s": round(cpu, 2),
                }
            row["jax above numpy, %"] = round(100 * (row["jax G"] / row["numpy G"] - 1), 3)
            yield row


def problem_of(name: str, loss: str) -> SupportProblem:
    X, y, rules = pool(name)
    data = training_data(X, y, loss_by_name(loss), missing="own_category")
    activations = Activations.of(rules, data.table)
    return make_problem(activations, data.outputs[0], data.weights, data.loss)


def descend(make: Any, problem: Any, gamma: float, ridge: float) -> Any:
    search = make(problem, gamma, 2 * gamma, ridge)
    return search.descend(search.start_empty())


def descents(names: list[str], gammas: list[float]) -> Iterator[dict[str, Any]]:
    for name in names:
        for label, options in PROBLEMS.items():
            problem = problem_of(name, options["loss"])
            for gamma in gammas:
                row: dict[str, Any] = {"set": name, "problem": label, "gamma": gamma}
                row |= {"patterns": len(problem.mass), "columns": len(problem.origin)}
                for engine, make in ENGINES.items():
                    one = partial(descend, make, problem, gamma, options["l2_penalty"])
                    if engine == "jax":
                        row["first s"] = round(timed(one)[2], 2)
                    found, cpu, wall = timed(one)
                    row |= {f"{engine} G": found.objective, f"{engine} rules": len(found.columns)}
                    row |= {f"{engine} CPU s": round(cpu, 3), f"{engine} wall s": round(wall, 3)}
                row["jax above numpy, %"] = round(100 * (row["jax G"] / row["numpy G"] - 1), 3)
                yield row


def samples(names: list[str], gammas: list[float]) -> Iterator[dict[str, Any]]:
    for name in names:
        X, y, rules = pool(name)
        for gamma in gammas:
            ratios = []
            for seed in range(10):
                random = np.random.default_rng(seed)
                rows = np.sort(random.choice(len(y), 2 * len(y) // 3, replace=False))
                some = rules.take(np.sort(random.choice(len(rules), 300, replace=False)))
                of_rows = X[rows], np.asarray(y)[rows], some
                ours, theirs = (
                    fitted(*of_rows, "paper", gamma, engine, seed=seed, restarts=1).objective
                    for engine in ("jax", "numpy")
                )
                ratios.append(100 * (ours / theirs - 1))
                print(f"{name} {gamma} {seed}: {ratios[-1]:+.2f} %", flush=True)
            error = np.std(ratios, ddof=1) / len(ratios) ** 0.5
            row = {
                "set": name,
                "gamma": gamma,
                "jax above numpy, mean %": round(float(np.mean(ratios)), 2),
            }
            yield row | {
                "s.e.": round(float(error), 2),
                "lower": int(np.sum(np.less(ratios, -0.01))),
            }


PARTS = {"fits": fits, "descents": descents, "samples": samples}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", default=["fits", "descents"], choices=list(PARTS))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--gammas", nargs="+", type=float, default=[0.005, 0.001])
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {jax.devices()[0].device_kind}")
    for part in arguments.parts:
        rows = []
        for row in PARTS[part](arguments.sets, arguments.gammas):
            print(row, flush=True)
            rows.append(row)
        RESULTS.mkdir(exist_ok=True)
        with (RESULTS / f"lire_engines_{part}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
