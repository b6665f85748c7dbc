"""Two working trees of this project, paired in one run: is a change slower
than the commit before it?

    git worktree add ../before <commit>
    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/before_after.py ../before \
        [--only lire paths]

Each measurement runs in its own process, which imports one of the trees; the trees take turns. The
script prints medians over the rounds: the first call (which compiles), the warm call, its CPU
seconds, the peak memory, and after / before for each. It calls only public functions that both
trees have.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from memory import peak_memory

HERE = Path(__file__).parent

Job = Callable[[], Any]


def forest_rules(name: str) -> tuple[Any, Any, Any]:
    import jaxrules as jr
    from jaxrules.ensembles.growing import default_forest

    data = jr.datasets.load(name)
    return data.X, data.y, jr.extract_rules(default_forest(data.X, data.y, seed=0), data.X)


def lire(name: str, gamma: float, path: bool = False) -> Job:
    import jaxrules as jr

    X, y, rules = forest_rules(name)
    common: dict[str, Any] = {
        "loss": "exponential",
        "l2_penalty": 0.25,
        "rules": rules,
        "missing": "own_category",
    }
    if path:
        gammas = np.geomspace(0.01, 0.0005, 10)
        return lambda: jr.lire.path(X, y, global_penalties=gammas, **common)[-1].objective
    return lambda: (
        jr.lire.fit(X, y, global_penalty=gamma, local_penalty=2 * gamma, **common).objective
    )


def rulefit(name: str) -> Job:
    import jaxrules as jr

    X, y, rules = forest_rules(name)
    return lambda: (
        jr.rulefit.path(X, y, loss="logistic", rules=rules, missing="own_category")[-1].objective
    )


def boosting(name: str, loss: str, penalty: float, cuts: int) -> Job:
    import jaxrules as jr

    data = jr.datasets.load(name)
    y = np.asarray(data.y)
    if loss == "logistic":
        y = np.where(y == np.unique(y)[-1], 1.0, -1.0)
    options: dict[str, Any] = {
        "loss": loss,
        "l2_penalty": penalty,
        "max_rules": 10,
        "max_cut_points": cuts,
    }
    options = {**getattr(jr.boosting, "PAPER", {}), **options}  # once the default
    return lambda: jr.boosting.fit(data.X, y, missing="own_category", **options).objective


def glrm(name: str) -> Job:
    import jaxrules as jr

    data = jr.datasets.load(name)
    return lambda: (
        jr.glrm.fit(
            data.X, data.y, loss="logistic", rule_penalty=0.005, missing="own_category"
        ).objective
    )


def paths(features: int, steps: int) -> Job:
    import jaxrules as jr

    if features == 6:
        data = jr.datasets.load("prestige")
        columns = dict(zip(data.X.names, data.X.columns, strict=True))
        numbers = [columns[name] for name in ("education", "income", "women")]
        X = np.column_stack(numbers + [columns["type"] == code for code in range(3)])
        y = np.asarray(data.y, float)
    else:
        rng = np.random.default_rng(0)
        X = np.sqrt(0.8) * rng.normal(size=(150, 1)) + np.sqrt(0.2) * rng.normal(
            size=(150, features)
        )
        y = X @ rng.normal(size=features) + rng.normal(size=150)
    return lambda: jr.paths.fit(X.astype(float), y, steps=steps, standardise=True).objective


def predict(n_rules: int) -> Job:
    from predict import random_model

    import jaxrules as jr

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 20))
    model = random_model(n_rules, 20, rng)
    return lambda: float(np.sum(jr.predict(model, X)))


def default_boosting(rows: int, columns: int) -> Job:
    import jaxrules as jr

    random = np.random.default_rng(0)
    X = random.normal(size=(rows, columns))
    steps = (X[:, 0] > 0.3) + 0.8 * (X[:, 1] * X[:, 2] > 0) - (X[:, 3] < -0.5)
    y = steps + 0.5 * random.logistic(size=rows) > 0.4
    return lambda: jr.boosting.fit(X, y).objective


def default_rulefit(rows: int, classes: int) -> Job:
    import jaxrules as jr

    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 20))
    scores = 1.5 * X[:, :classes] + 1.2 * (X[:, classes : 2 * classes] > 0.3)
    y = (scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    return lambda: jr.rulefit.fit(X, y).objective


JOBS: dict[str, Callable[[], Job]] = {
    "lire adult": lambda: lire("adult_train", 0.001),
    "lire heart": lambda: lire("heart", 0.001),
    "lire path adult": lambda: lire("adult_train", 0.0, path=True),
    "rulefit path compas": lambda: rulefit("compas_lire"),
    "rulefit path heart": lambda: rulefit("heart"),
    "rulefit path fico": lambda: rulefit("fico_lire"),
    "rulefit path magic": lambda: rulefit("magic"),
    "rulefit default 1e4 x 20": lambda: default_rulefit(10_000, 2),
    "rulefit default 1e5 x 20": lambda: default_rulefit(100_000, 2),
    "rulefit five classes 1e4 x 20": lambda: default_rulefit(10_000, 5),
    "rulefit five classes 3e4 x 20": lambda: default_rulefit(30_000, 5),
    "boosting wine": lambda: boosting("wine", "logistic", 1.0, 10),
    "boosting titanic": lambda: boosting("titanic_orb", "logistic", 1.0, 10),
    "boosting diabetes": lambda: boosting("diabetes", "squared", 2.0, 4),
    "boosting friedman": lambda: boosting("friedman1", "squared", 2.0, 4),
    "boosting default 1e4 x 20": lambda: default_boosting(10_000, 20),
    "boosting default 1e4 x 300": lambda: default_boosting(10_000, 300),
    "boosting default 1e5 x 20": lambda: default_boosting(100_000, 20),
    "boosting default 1e6 x 20": lambda: default_boosting(1_000_000, 20),
    "glrm heart": lambda: glrm("heart"),
    "paths d=15 K=15": lambda: paths(15, 15),
    "paths d=6 K=5": lambda: paths(6, 5),
    "paths d=6 K=10": lambda: paths(6, 10),
    "predict 10 rules": lambda: predict(10),
    "predict 100 rules": lambda: predict(100),
    "predict 1000 rules": lambda: predict(1000),
}


def measure(name: str) -> dict[str, float]:
    """In the measured process: prepare, call once, then repeat for at least 2 s and 3 calls."""
    job = JOBS[name]()
    start = time.perf_counter()
    result = job()
    first = time.perf_counter() - start
    wall: list[float] = []
    cpu: list[float] = []
    while len(wall) < 3 or (sum(wall) < 2.0 and len(wall) < 50):
        start, used = time.perf_counter(), time.process_time()
        job()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return {
        "first": first,
        "warm": statistics.median(wall),
        "cpu": statistics.median(cpu),
        "memory": peak_memory(),
        "result": result,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", nargs="?", type=Path, help="the other working tree")
    parser.add_argument("--only", nargs="*", default=[""], help="jobs whose name begins so")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return
    if arguments.before is None:
        parser.error("name the working tree to compare with")
    trees = {"before": arguments.before.resolve(), "after": HERE.parent}
    print(f"{'':22}{'first s':>22}{'warm s':>24}{'CPU s':>24}{'peak GiB':>22}   result")
    for name in [n for n in JOBS if n.startswith(tuple(arguments.only))]:
        found: dict[str, list[dict[str, float]]] = {"before": [], "after": []}
        for _ in range(arguments.rounds):
            for side, tree in trees.items():
                told = subprocess.run(
                    [sys.executable, __file__, "--measure", name],
                    env={**os.environ, "PYTHONPATH": str(tree)},
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
                found[side].append(json.loads(told.splitlines()[-1]))
        line = f"{name:22}"
        for key in ("first", "warm", "cpu", "memory"):
            before, after = (statistics.median(m[key] for m in found[side]) for side in trees)
            line += f"{before:9.4f} {after:8.4f} {after / before:5.2f}"
        results = [statistics.median(m["result"] for m in found[side]) for side in trees]
        print(f"{line}   {results[0]:.6g} {results[1]:.6g}", flush=True)


if __name__ == "__main__":
    main()
