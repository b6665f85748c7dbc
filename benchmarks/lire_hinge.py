"""Why LIRE has no hinge loss: where exact descent along single weights ends, on random supports.

    python benchmarks/lire_hinge.py

For random supports of rules of `jr.lire.fit`'s pool, minimises the mean hinge loss (plus a ridge)
over the weights of the rules and an intercept: by cyclic descent with exact one-dimensional minima
(by sorting the breakpoints), and by a linear or quadratic program. Prints how many descents end
above the minimum, by how much, and CPU milliseconds of both and of the logistic refit.
"""

import itertools
import time

import cvxpy as cp
import numpy as np

import jaxrules as jr
from jaxrules.ensembles.lire.refit import newton
from jaxrules.losses import logistic

Floats = np.ndarray
_SUPPORTS, _ENOUGH = 50, 1e-12


def best_step(scores: Floats, y: Floats, w: Floats, ridge: float, weight: float) -> float:
    """The b that minimises sum_i w_i max(0, 1 - y_i (s_i + b)) + ridge (weight + b)^2 / 2.

    The slope is piecewise linear: it starts at -sum of w where y is 1, and rises by w_i at y_i -
    s_i.
    """
    breaks = y - scores
    order = np.argsort(breaks)
    breaks, rises = np.append(breaks[order], np.inf), np.append(0.0, np.cumsum(w[order]))
    slopes = rises - w[y > 0].sum()  # before each break, without the ridge
    after = slopes[1:] + ridge * (weight + breaks[:-1])
    k = int(np.argmax(np.append(after, 1.0) >= -1e-12))
    inside = -slopes[k] / ridge - weight if ridge else np.inf
    return float(min(inside, breaks[k]))


def objective(A: Floats, y: Floats, w: Floats, ridges: Floats, b: Floats) -> float:
    return float(w @ np.maximum(0, 1 - y * (A @ b)) + ridges @ b**2 / 2)


def descend(A: Floats, y: Floats, w: Floats, ridges: Floats) -> Floats:
    """Cyclic descent from 0 until a sweep gains nothing."""
    b, scores, before = np.zeros(A.shape[1]), np.zeros(len(y)), np.inf
    while (now := objective(A, y, w, ridges, b)) < before - _ENOUGH:
        before = now
        for j in range(A.shape[1]):
            on = A[:, j] > 0
            step = best_step(scores[on], y[on], w[on], ridges[j], b[j])
            b[j] += step
            scores[on] += step
    return b


def exact(A: Floats, y: Floats, w: Floats, ridges: Floats) -> tuple[float, float]:
    """The minimum and the solver's seconds."""
    b, slack = cp.Variable(A.shape[1]), cp.Variable(len(y))
    paid = cp.sum_squares(cp.multiply(np.sqrt(ridges / 2), b)) if ridges.any() else 0.0
    limits = [slack >= 0, slack >= 1 - cp.multiply(y, A @ b)]
    problem = cp.Problem(cp.Minimize(w @ slack + paid), limits)
    problem.solve(solver=cp.CLARABEL if ridges.any() else cp.HIGHS)
    return objective(A, y, w, ridges, b.value), problem.solver_stats.solve_time


def main() -> None:
    print("data set, rules, ridge: stalled, mean excess of those, largest; ms: descent, LP, Newton")
    for name, size, ridge in itertools.product(
        ("breast_cancer", "heart", "banknote"), (3, 6, 12), (0.0, 8.0)
    ):
        data, rng = jr.datasets.load(name), np.random.default_rng(0)
        X, y = jr.as_table(data.X), np.where(np.asarray(data.y) == data.positive_class, 1.0, -1.0)
        forest = jr.default_forest(data.X, data.y)
        rules = jr.extract_rules(forest, data.X)
        held = rules.satisfied(X)
        excess, seconds = [], np.zeros((_SUPPORTS, 3))
        for one in range(_SUPPORTS):
            chosen = rng.choice(len(rules), size, replace=False)
            A, inverse = np.unique(
                np.column_stack([np.ones(len(y)), held[:, chosen], y]), axis=0, return_inverse=True
            )
            w, A, signs = np.bincount(inverse.ravel()) / len(y), A[:, :-1], A[:, -1]
            ridges = ridge / len(y) * np.append(0.0, np.ones(size))
            begun = time.process_time()
            ended = objective(A, signs, w, ridges, descend(A, signs, w, ridges))
            seconds[one, 0] = time.process_time() - begun
            least, seconds[one, 1] = exact(A, signs, w, ridges)
            begun = time.process_time()
            cap = np.full(size + 1, 46.0)
            newton(logistic, A, signs, w, np.zeros(size + 1), ridges, -cap, cap)
            seconds[one, 2] = time.process_time() - begun
            excess.append(ended / least - 1)
        above = np.array(excess)
        stalled = above > 1e-4
        mean = above[stalled].mean() if stalled.any() else 0.0
        times = " ".join(f"{1e3 * t:.2f}" for t in np.median(seconds, axis=0))
        print(
            f"{name} {size} {ridge:g}: {stalled.mean():.0%} {mean:.1%} {above.max():.1%}; {times}",
            flush=True,
        )


if __name__ == "__main__":
    main()
