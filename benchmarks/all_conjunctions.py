"""The best rule ensemble over all conjunctions: how far the proof reaches, HiGHS on the same
problem, and what the optimum gains over boosting and LIRE.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/all_conjunctions.py
    [--only reach highs gains] [--seconds 20] [--splits 1]

- reach: seconds to the proof, or the gap after the limit, on at most 2000 rows of real data, by cut
  points, length and size.
- highs: outer approximation by HiGHS, for the squared loss on small problems: every distinct
  conjunction has a binary variable; tangents of loss and perspective are added until the gap is
  closed.
- gains: objective and test risk (log-loss; squared error in shares of the variance) of the optimum,
  of boosting with as many rules of the same propositions (per_unit=False, as conditions cost
  nothing here), and of LIRE with as many rules of its trees, longer ones with other thresholds. All
  have the same ridge.

Limits are CPU seconds too; one process.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr

Floats = NDArray[np.float64]

ROWS = 2000
REACH = (
    ("titanic", {}), ("titanic", {"max_cut_points": 10}), ("titanic", {"max_length": 3}),
    ("liver", {}), ("heart", {}), ("tic_tac_toe", {}), ("diabetes", {}), ("boston", {}),
    ("breast_cancer", {}), ("banknote", {}), ("compas_binary", {}), ("fico_binary", {}),
)  # fmt: skip
SIZES = (3, 5, None)
GAINS = (
    "titanic", "liver", "heart", "tic_tac_toe", "diabetes", "boston", "breast_cancer", "banknote",
    "insurance", "compas_binary", "telco_churn", "ibm_hr", "voice", "red_wine_quality", "bike_day",
    "friedman1", "friedman2", "friedman3", "small_chile", "world_happiness",
)  # fmt: skip


def rows_of(name: str, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Training and test rows, at most `ROWS` of each."""
    train, test = jr.datasets.train_test_split(jr.datasets.load(name), test_size=0.3, seed=seed)
    order = np.random.default_rng(seed).permutation(len(train.y))[:ROWS]
    return (
        jr.as_table(train.X, missing="own_category")[order], np.asarray(train.y)[order],
        test.X, np.asarray(test.y),
    )  # fmt: skip


def limit(seconds: float) -> jr.Deadline:
    """CPU seconds, which other programs on the machine do not shorten."""
    return jr.Deadline(seconds, clock=time.process_time)


def timed(function: Any, *args: Any, **options: Any) -> tuple[Any, float]:
    begun = time.process_time()
    return function(*args, **options), time.process_time() - begun


def reach(seconds: float) -> None:
    print(
        f"{'':18s} {'rows':>5s} {'prop.':>5s} {'length':>6s} {'limit':>5s} {'rules':>5s} "
        f"{'listed':>7s} {'nodes':>6s} {'CPU s':>6s} gap"
    )
    for name, how in REACH:
        X, y, *_ = rows_of(name)
        for size in SIZES:
            fit, spent = timed(
                jr.lire.optimal, X, y, max_rules=size, time_limit=limit(seconds), **how
            )
            details, gap = fit.details, (fit.objective - fit.bound) / abs(fit.objective)
            proved = "proved" if fit.status == "optimal" else f"{gap:.2%}"
            print(
                f"{name:18s} {len(y):5d} {details.n_propositions:5d} "
                f"{how.get('max_length', 2):6d} {size or '-':>5} "
                f"{len(fit.model.conjunctions):5d} {details.n_candidates:7d} {details.nodes:6d} "
                f"{spent:6.1f} {proved}",
                flush=True,
            )


# HiGHS


def conjunctions(X: NDArray[np.bool_], length: int) -> Floats:
    """The distinct conjunctions of columns and their negations, up to the complement."""
    literals = [*X.T, *~X.T]
    found = {}
    for size in range(1, length + 1):
        for chosen in itertools.combinations(literals, size):
            rows = np.logical_and.reduce(chosen)
            if rows.any() and not rows.all():
                found.setdefault((rows ^ rows[0]).tobytes(), rows)
    return np.array(list(found.values()), float).T


def by_highs(
    R: Floats, y: Floats, gamma: float, ridge: float, seconds: float
) -> tuple[float, float]:
    """Objective and bound by outer approximation: variables a, z, b, the loss and the ridge of each
    column.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    n, m = R.shape
    constant = float(((y - y.mean()) ** 2).mean())
    cap = float(np.sqrt(2 * constant / ridge))
    # (a, z, b, loss, s): minimise loss + sum s + gamma sum z
    size, cost = 3 * m + 2, np.concatenate([np.zeros(m), np.full(m, gamma), [0, 1], np.ones(m)])
    eye, none = np.eye(m), np.zeros((m, m + 2))
    linked = np.concatenate(
        [np.hstack([eye, -cap * eye, none]), np.hstack([-eye, -cap * eye, none])]
    )
    low = np.concatenate([np.full(m, -cap), np.zeros(m), [y.min() - m * cap, 0], np.zeros(m)])
    high = np.concatenate(
        [np.full(m, cap), np.ones(m), [y.max() + m * cap], np.full(m + 1, np.inf)]
    )
    whole = np.concatenate([np.zeros(m), np.ones(m), np.zeros(m + 2)])
    cuts: list[Floats] = []
    least: list[float] = []
    best, bound, begun = np.inf, 0.0, time.process_time()
    a, b, used = np.zeros(m), float(y.mean()), np.zeros(m, bool)
    while time.process_time() - begun < seconds:
        e = y - b - R @ a  # the loss is above its tangent at these weights
        row = np.zeros(size)
        row[:m], row[2 * m], row[2 * m + 1] = 2 * R.T @ e / n, 2 * e.mean(), 1
        cuts.append(row)
        least.append(float((e**2).mean() + 2 * e @ (R @ a + b) / n))
        for j in np.flatnonzero(a):  # r a^2 / 2z is above r (c a - c^2 z / 2) at c = a / z
            row = np.zeros(size)
            row[j], row[m + j], row[2 * m + 2 + j] = -ridge * a[j], ridge * a[j] ** 2 / 2, 1
            cuts.append(row)
            least.append(0.0)
        limits = [
            LinearConstraint(linked, ub=0),
            LinearConstraint(np.array(cuts), lb=np.array(least)),
        ]
        left = max(seconds - (time.process_time() - begun), 0.1)
        found = milp(
            cost, constraints=limits, bounds=Bounds(low, high), integrality=whole,
            options={"time_limit": left, "mip_rel_gap": 1e-6},
        )  # fmt: skip
        if found.mip_dual_bound is not None:
            bound = max(bound, float(found.mip_dual_bound))
        if found.x is None:
            break
        used = found.x[m : 2 * m] > 0.5
        A = np.column_stack([np.ones(n), R[:, used]])
        P = np.diag([0.0] + [ridge / 2 * n] * int(used.sum()))
        w = np.linalg.solve(A.T @ A + P, A.T @ y)
        a, b = np.zeros(m), float(w[0])
        a[used] = w[1:]
        value = ((y - b - R @ a) ** 2).mean() + ridge / 2 * a @ a + gamma * used.sum()
        best = min(best, float(value))
        if best - bound <= 5e-6 * best:
            break
    return best, bound


def highs(seconds: float) -> None:
    print("distinct conjunctions of 60 rows: CPU s of jr.lire.optimal and of HiGHS")
    for columns, length in ((4, 2), (5, 2), (4, 3)):
        rng = np.random.default_rng(columns)
        X = rng.random((60, columns)) < 0.5
        y = 1.5 * (X[:, 0] & X[:, 1]) - (X[:, 2] & ~X[:, 3]) + 0.4 * rng.normal(size=60)
        R = conjunctions(X, length)
        jr.lire.optimal(X, y, max_length=1)  # compiled
        fit, ours = timed(
            jr.lire.optimal, X, y, max_length=length, global_penalty=0.03, l2_penalty=4.0,
            time_limit=limit(seconds),
        )  # fmt: skip
        (best, bound), theirs = timed(by_highs, R, y, 0.03, 4.0 / 60, seconds)
        gap = (best - bound) / best
        print(
            f"{R.shape[1]:6d}: {ours:7.2f} s, {fit.objective:.6f} ({fit.status}); "
            f"{theirs:7.2f} s, {best:.6f}, gap {gap:.2%}",
            flush=True,
        )


# Gains


def gain(name: str, seed: int, seconds: float) -> list[float]:
    """One split: rules, both objectives over the optimum's, the three test risks, the gap."""
    X, y, X_test, y_test = rows_of(name, seed)
    best = jr.lire.optimal(X, y, max_rules=5, time_limit=limit(seconds))
    gamma, ridge = best.details.global_penalty, best.details.l2_penalty
    size = max(1, len(best.model.conjunctions))
    boosted = jr.boosting.fit(
        X, y, max_rules=size, max_length=2, max_cut_points=5, l2_penalty=ridge,
        per_unit=False,
    )  # fmt: skip
    lire = jr.lire.fit(
        X, y, max_rules=size, global_penalty=gamma, local_penalty=0.0, l2_penalty=ridge
    )
    prices = {"global_penalty": gamma, "local_penalty": 0.0, "l2_penalty": ridge}
    over = [
        jr.lire.objective(one.model, X, y, **prices) / best.objective - 1 for one in (boosted, lire)
    ]
    scale = 1.0 if best.model.schema.classes else float(np.var(np.asarray(y_test, float)))
    risks = [jr.risk(one.model, X_test, y_test) / scale for one in (best, boosted, lire)]
    gap = (best.objective - best.bound) / abs(best.objective)
    return [size, *over, *risks, 0.0 if best.status == "optimal" else gap]


def gains(seconds: float, splits: int) -> None:
    print(
        f"{'':18s} split rules  objective over the optimum's: boosting, LIRE; test risk: optimum, "
        "boosting, LIRE; gap"
    )
    table = []
    for name in GAINS:
        found = [gain(name, seed, seconds) for seed in range(splits)]
        table.append(np.mean(found, axis=0))
        for split, row in (*enumerate(found), ("mean", table[-1])):
            gap = f"{row[6]:.2%}" if row[6] else "proved"
            print(
                f"{name:18s} {split:>5} {row[0]:5.3g}  {row[1]:+7.2%} {row[2]:+7.2%}   "
                f"{row[3]:.4f} {row[4]:.4f} {row[5]:.4f}   {gap}",
                flush=True,
            )
    numbers = np.array(table)
    for k, what in ((4, "boosting"), (5, "LIRE")):
        ratio = numbers[:, k] / numbers[:, 3]
        print(
            f"test risk of {what} over the optimum's, means of splits: geometric mean "
            f"{np.exp(np.log(ratio).mean()):.4f}, above 1 on {np.mean(ratio > 1):.0%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=["reach", "highs", "gains"])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--splits", type=int, default=1)
    args = parser.parse_args()
    for y in (np.arange(40) % 3, np.arange(40) % 2 > 0):  # kernels compile before the clock starts
        jr.lire.optimal(
            np.arange(80.0).reshape(40, 2) % 7, y, loss=None if y.dtype == bool else "squared"
        )
    if "reach" in args.only:
        reach(args.seconds)
    if "highs" in args.only:
        highs(args.seconds)
    if "gains" in args.only:
        gains(args.seconds, args.splits)


if __name__ == "__main__":
    main()
