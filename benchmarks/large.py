"""Large data: LIRE and RuleFit on up to a million rows and a thousand rules;
time, memory and quality.

    python benchmarks/large.py [--tasks lire rulefit path chosen wide] [--rows 100000
    300000 1000000] [--rules 980]

20 normal columns; classes by a logistic model of steps, an interaction and one linear term; random
rules of one to three conditions at normal cut points. Every task runs in its own process:

- lire: `jr.lire.fit` at its defaults; rulefit: `jr.rulefit.fit` at one penalty, 0.001; path: 20
  penalties down to a thousandth of the largest; chosen: `jr.rulefit.fit` at its defaults, which
  cross-validates;
- wide: the path of 20 penalties on 100 000 rows and 2000 rules.

Seconds are those of the call alone; CPU seconds cover all threads. Memory is the peak of the
process and what it held before the call, shown beside the size of the matrix of rules, one bit per
row and rule. The gap of RuleFit is its certificate. The largest violation of the optimality
conditions, relative to the penalty, is recomputed from the model.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Any

import numpy as np
from memory import peak_memory

import jaxrules as jr

TASKS = ("lire", "rulefit", "path", "chosen", "wide")
PENALTY = 1e-3


def problem(
    n_rows: int, n_rules: int, seed: int = 0, n_columns: int = 20
) -> tuple[np.ndarray, np.ndarray, jr.Conjunctions]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32)
    steps = 1.5 * (X[:, 0] > 0.3) + (X[:, 1] * X[:, 2] > 0) - 1.5 * (X[:, 3] > 0.5) * (X[:, 4] < 0)
    y = (steps + X[:, 5] / 2 - 0.6 + rng.logistic(size=n_rows) > 0).astype(int)
    rules = []
    for _ in range(n_rules):
        columns = rng.choice(n_columns, rng.integers(1, 4), replace=False)
        sides = [
            jr.Condition.above if rng.random() < 0.5 else jr.Condition.at_most for _ in columns
        ]
        rules.append(
            [
                side(int(j), 0.7 * float(rng.normal()))
                for side, j in zip(sides, columns, strict=True)
            ]
        )
    return X, y, jr.Conjunctions.build(jr.as_table(X[:1]).schema, rules)


def violation(fit: Any, X: np.ndarray, y: np.ndarray, rules: jr.Conjunctions) -> float:
    """The largest violation of RuleFit's optimality conditions, relative to the penalty."""
    penalty, weight = fit.details["l1_penalty"], dict.fromkeys(map(frozenset, rules), 0.0)
    weight.update(
        (frozenset(rule), w)
        for rule, w in zip(fit.model.conjunctions, fit.model.weights[:, 0], strict=True)
    )
    b = np.array([weight[frozenset(rule)] for rule in rules])
    slope = np.zeros(len(rules))
    for start in range(0, len(y), 10_000):
        part = slice(start, start + 10_000)
        holds = rules.satisfied(jr.as_table(X[part])).astype(np.float64)
        score = fit.model.intercept[0] + holds @ b
        slope += holds.T @ (1 / (1 + np.exp(-score)) - y[part]) / len(y)
    off = np.where(
        b != 0, np.abs(slope + penalty * np.sign(b)), np.maximum(np.abs(slope) - penalty, 0)
    )
    return float(off.max() / penalty)


def run(task: str, n_rows: int, n_rules: int) -> None:
    X, y, rules = problem(n_rows, n_rules)
    before, cpu, wall = peak_memory(), time.process_time(), time.perf_counter()
    if task == "lire":
        fit = jr.lire.fit(X, y, rules=rules)
    elif task in ("path", "wide"):
        fit = jr.rulefit.path(X, y, rules=rules, n_penalties=20)[-1]
    else:
        fit = jr.rulefit.fit(X, y, rules=rules, l1_penalty=PENALTY if task == "rulefit" else None)
    cpu, wall, peak = time.process_time() - cpu, time.perf_counter() - wall, peak_memory()
    reached = f"objective {fit.objective:.6g}, {jr.support(fit.model)} rules, {fit.status}"
    if task != "lire":
        reached += f", gap {fit.gap:.1e}, violation {violation(fit, X, y, rules):.1e}"
    packed = n_rows * n_rules / 8 / 2**30
    print(
        f"{task:8s}{n_rows:8d} rows x {n_rules:4d} rules: {cpu:6.1f} CPU s, {wall:6.1f} s; "
        f"peak {peak:.2f} GiB ({before:.2f} before, bits {packed:.2f}); {reached}", flush=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--rules", type=int, default=980)
    parser.add_argument(
        "--here", action="store_true", help="one task, one number of rows, in this process"
    )
    asked = parser.parse_args()
    if asked.here:
        run(asked.tasks[0], asked.rows[0], asked.rules)
        return
    for task in asked.tasks:
        sizes = (
            [(100_000, 2000)] if task == "wide" else [(rows, asked.rules) for rows in asked.rows]
        )
        for rows, rules in sizes:
            command = [
                sys.executable,
                __file__,
                "--here",
                "--tasks",
                task,
                "--rows",
                str(rows),
                "--rules",
                str(rules),
            ]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
