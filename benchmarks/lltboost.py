"""LLTBoost: a whole path of ten rules, against the loop of scikit-learn solver calls
that it replaces; scaling.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/lltboost.py [--quick]

- warm: `jr.lltboost.path` with ten rules on 500 rows, including refits of every candidate on the
  training part; medians and minima over `--repeats` bootstrap samples, which share one compiled
  program.
- first: the first path of a shape in a fresh process, with an empty and with a filled compilation
  cache.
- scikit-learn: the same Algorithm 1 with LogisticRegression (l1_ratio=1; saga with warm starts, and
  liblinear, which has none and penalises the intercept, here scaled by 100) and a bisection of the
  penalty for every number of non-zeros, a refit on the support, and a refit of all weights per
  candidate. By how much the solutions violate the optimality conditions is printed for each.
- growth: seconds per rule and memory, for more rows and more columns.

CPU time is printed beside wall time: other programs on the machine disturb it less.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from memory import peak_memory
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules.ensembles.lltboost.l1_path import TOLERANCE

Floats = NDArray[np.float64]
SETS = {
    "banknote": ("banknote", 4),
    "friedman": ("", 10),
    "wine": ("red_wine_quality", 11),
    "cancer": ("", 30),
}
NONZEROS, PROPOSITIONS, RULES = 5, 5, 10
SOLVERS = (("liblinear", 1e-4), ("liblinear", 1e-6), ("saga", 1e-4), ("saga", 1e-6))
"""Of the loop, with their tolerances."""


def load(name: str) -> tuple[Floats, NDArray[Any], str]:
    """Columns, target and loss."""
    from sklearn import datasets

    if name == "friedman":
        return *datasets.make_friedman1(
            n_samples=2000, n_features=10, noise=1.0, random_state=0
        ), "squared"
    if name == "cancer":
        return *datasets.load_breast_cancer(return_X_y=True), "logistic"
    data = jr.datasets.load(SETS[name][0])
    return (
        np.column_stack(jr.as_table(data.X).columns),
        np.asarray(data.y),
        "squared" if name == "wine" else "logistic",
    )


def sample(name: str, seed: int) -> tuple[Floats, NDArray[Any], str]:
    """500 rows, drawn with replacement."""
    X, y, loss = load(name)
    drawn = np.random.default_rng(seed).integers(0, len(X), 500)
    return X[drawn], y[drawn], loss


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, wall seconds, CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def warm(repeats: int) -> None:
    print("\nwarm: a path of ten rules, 500 rows (milliseconds)")
    for name, (_, d) in SETS.items():
        samples = [sample(name, seed) for seed in range(repeats)]
        jr.lltboost.path(*samples[0][:2], loss=samples[0][2])
        times = [timed(lambda s=s: jr.lltboost.path(*s[:2], loss=s[2]))[1:] for s in samples]
        walls, cpus = ([1e3 * pair[i] for pair in times] for i in (0, 1))
        print(
            f"  {name:9s} d = {d:2d}: wall {statistics.median(walls):4.0f} (least "
            f"{min(walls):3.0f}), processor {statistics.median(cpus):4.0f} (least {min(cpus):3.0f})"
        )


FIRST = """
import sys, time, numpy as np
import jaxrules as jr
X = np.random.default_rng(0).normal(size=(500, int(sys.argv[1])))
y = X[:, 0] * X[:, 1] + X[:, 2]
wall, cpu = time.perf_counter(), time.process_time()
jr.lltboost.path(X, y)
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def first() -> None:
    print("\nfirst path of a shape in a fresh process (seconds)")
    with tempfile.TemporaryDirectory() as cache:
        settings = {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        for d in (10, 30):
            for what in ("empty", "filled"):
                command = [sys.executable, "-c", FIRST, str(d)]
                run = subprocess.run(
                    command, env=os.environ | settings, capture_output=True, text=True, check=True
                )
                wall, cpu = map(float, run.stdout.split())
                print(f"  d = {d}, {what} cache: wall {wall:.1f}, processor {cpu:.1f}")


# The loop of scikit-learn solver calls


class Loop:
    """Algorithm 1 for classes -1 and +1 or for a real target, one solver call at a time."""

    def __init__(
        self,
        X: Floats,
        y: Floats,
        loss: str,
        trains: NDArray[np.bool_],
        solver: str,
        tolerance: float,
    ) -> None:
        self.X, self.y, self.loss, self.trains = X, y, loss, trains
        self.solver, self.tolerance = solver, tolerance
        self.calls = 0
        self.violations: list[float] = []

    def lasso(self, C: float, start: Any, on: NDArray[np.bool_], z: Floats, c: Floats) -> Any:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            l1_ratio=1,
            C=C,
            solver=self.solver,
            tol=self.tolerance,
            max_iter=5000,
            warm_start=self.solver == "saga",
            intercept_scaling=100.0 if self.solver == "liblinear" else 1.0,
            random_state=0,
        )
        if start is not None:
            model.coef_, model.intercept_, model.classes_ = (
                start.coef_.copy(),
                start.intercept_.copy(),
                start.classes_,
            )
        self.calls += 1
        model.fit(self.X[on], z, sample_weight=c)
        w, b = model.coef_[0], model.intercept_[0]
        slope = self.X[on].T @ (-c * z / (1 + np.exp(z * (self.X[on] @ w + b))))
        violation = np.where(
            w != 0, np.abs(slope + np.sign(w) / C), np.maximum(np.abs(slope) - 1 / C, 0)
        ).max()
        self.violations.append(violation * C)
        return model

    def separators(self, on: NDArray[np.bool_], gains: Floats) -> list[tuple[Floats, float]]:
        """For 1, ..., NONZEROS non-zeros, the solution at the smallest
        penalty, refitted on its support.
        """
        from sklearn.linear_model import LogisticRegression

        z, c = np.where(gains >= 0, 1.0, -1.0), np.abs(gains) / np.abs(gains).sum()
        if len(set(z)) < 2:
            return []
        share = c[z > 0].sum()
        largest = np.abs(self.X[on].T @ (c * ((z > 0) - share))).max()
        high, found, start = largest, [], None
        for s in range(1, NONZEROS + 1):
            low, best = 1e-3 * largest, None
            for _ in range(12):
                middle = np.sqrt(low * high)
                model = self.lasso(1 / middle, start, on, z, c)
                size = np.count_nonzero(model.coef_)
                if size > s:
                    low = middle
                else:
                    high = middle
                    start = model
                    best = model if size == s else best
            if best is None:
                continue
            support = np.flatnonzero(best.coef_[0])
            self.calls += 1
            refit = LogisticRegression(C=1e3, tol=1e-6, max_iter=200).fit(
                self.X[on][:, support], z, sample_weight=c
            )
            w = np.zeros(self.X.shape[1])
            w[support] = refit.coef_[0]
            found.append((w, float(refit.intercept_[0])))
        return found

    def refitted(self, design: Floats) -> Floats:
        """The score of every row after a refit of all weights on the training part."""
        from sklearn.linear_model import LogisticRegression, Ridge

        self.calls += 1
        n = self.trains.sum()
        if self.loss == "squared":
            model: Any = Ridge(alpha=1e-3 * n / 2).fit(design[self.trains], self.y[self.trains])
            return np.asarray(model.predict(design))
        model = LogisticRegression(C=1e3 / n, max_iter=200).fit(
            design[self.trains], self.y[self.trains]
        )
        return np.asarray(model.decision_function(design))

    def losses(self, score: Floats) -> Floats:
        return (self.y - score) ** 2 if self.loss == "squared" else np.logaddexp(0, -self.y * score)

    def path(self, rules: int) -> float:
        """The risk on the training part after each number of rules."""
        trains, design = self.trains, np.zeros((len(self.y), 0))
        score = np.full(len(self.y), self.y[trains].mean())
        for _ in range(rules):
            g = (
                2 * (score - self.y)
                if self.loss == "squared"
                else -self.y / (1 + np.exp(self.y * score))
            )
            results = []
            for sign in (1.0, -1.0):
                q, reached = np.ones(len(self.y), bool), 0.0
                for _ in range(PROPOSITIONS):
                    on, best, chosen = q & trains, np.inf, None
                    for w, b in self.separators(on, sign * g[on]):
                        rows = q & (self.X @ w + b >= 0)
                        risk = self.losses(self.refitted(np.column_stack([design, rows])))[
                            ~trains
                        ].mean()
                        if chosen is None or (risk - best) / best <= -0.1:
                            best, chosen = risk, rows
                    if chosen is None or abs(g[trains & chosen].sum()) <= 1.3 * reached:
                        break
                    q, reached = chosen, abs(g[trains & chosen].sum())
                results.append((reached, q))
            design = np.column_stack([design, max(results, key=lambda result: result[0])[1]])
            score = self.refitted(design)
        return float(self.losses(score)[trains].mean())


def against_scikit_learn(names: list[str], rules: int) -> None:
    print(
        f"\nagainst the loop of scikit-learn solver calls: {rules} rules, 500 rows, one after the "
        "other (seconds)"
    )
    for name in names:
        X, y, loss = sample(name, 0)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        target = y.astype(float) if loss == "squared" else np.where(y == np.unique(y)[1], 1.0, -1.0)
        trains = ~jr.lltboost.path(X, y, loss=loss, max_rules=rules)[0].details[
            "validation_rows"
        ]  # and compiles
        fits, wall, cpu = timed(
            functools.partial(jr.lltboost.path, X, y, loss=loss, max_rules=rules)
        )
        ours = np.mean(jr.risk(fits[-1].model, X[trains], y[trains]))
        for solver, tolerance in SOLVERS:
            loop = Loop(X, target, loss, trains, solver, tolerance)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                risk, their_wall, their_cpu = timed(functools.partial(loop.path, rules))
            print(
                f"  {name}: jaxrules {wall:.3f} (processor {cpu:.3f}, risk {ours:.3f}, violation "
                f"<= {TOLERANCE:.0e}); {solver} with tol={tolerance:g} {their_wall:.1f} (processor "
                f"{their_cpu:.1f}, risk {risk:.3f}, violation "
                f"{statistics.median(loop.violations):.0e} in the median, {loop.calls} calls): "
                f"{their_cpu / cpu:.0f} times the processor time"
            )


GROWTH = """
import sys, time, numpy as np
sys.path.insert(0, sys.argv[1])
from memory import peak_memory
import jaxrules as jr
n, d = int(float(sys.argv[2])), int(sys.argv[3])
rng = np.random.default_rng(0)
X = rng.normal(size=(n, d))
y = 2.0 * (X[:, 0] + X[:, 1] > 0.3) + (X[:, 2] > 0) * (X[:, -1] > 0) + 0.5 * rng.normal(size=n)
before = peak_memory()
cpu = time.process_time()
fit = jr.lltboost.fit(X, y, max_rules=3)
stages = fit.details["stages"]
print(n, d, stages[0].seconds, np.mean([stage.seconds for stage in stages[1:]]),
      time.process_time() - cpu, before, peak_memory())
"""


def growth(shapes: list[tuple[float, int]]) -> None:
    print("\ngrowth: three rules; data are n d float64 numbers")
    print("      rows columns  first rule  further rules  processor  GiB before  GiB at most")
    for n, d in shapes:
        command = [
            sys.executable,
            "-c",
            GROWTH,
            os.path.dirname(os.path.abspath(__file__)),
            str(n),
            str(d),
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        rows, columns, one, more, cpu, before, peak = run.stdout.split()
        print(
            f"{rows:>10s} {columns:>7s} {float(one):9.1f} s {float(more):12.2f} s "
            f"{float(cpu):8.1f} s {float(before):11.2f} {float(peak):12.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats, rules and rows")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", choices=("warm", "first", "scikit-learn", "growth"))
    options = parser.parse_args()
    chosen = (options.only,) if options.only else ("warm", "first", "scikit-learn", "growth")
    print(
        f"jaxrules {jr.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        f"{peak_memory():.2f} GiB"
    )
    if "warm" in chosen:
        warm(3 if options.quick else options.repeats)
    if "first" in chosen:
        first()
    if "scikit-learn" in chosen:
        against_scikit_learn(
            ["friedman"] if options.quick else ["friedman", "banknote"],
            2 if options.quick else RULES,
        )
    if "growth" in chosen:
        shapes = [(1e3, 10), (1e4, 10), (1e5, 10), (1e4, 50), (1e4, 200)]
        growth(shapes if options.quick else [*shapes, (1e6, 10), (1e5, 200)])


if __name__ == "__main__":
    main()
