"""The searches for coordinate paths against brute force over all index
sequences on stacked rows.
"""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from compiling import compilations
from jaxrules import paths
from jaxrules.paths import (
    bounded,
    costs,
    depth_first,
    exact,
    given_end,
    integer,
    local,
    mip,
    subsets,
    supports,
)
from jaxrules.paths.costs import QuadraticCost
from jaxrules.paths.problem import PathProblem, best_path, constrained_path, geometric_weights
from jaxrules.paths.supports import Supports
from jaxrules.solvers import layered
from jaxrules.solvers.layered import never
from jaxrules.tools.runs import Deadline, Run


def stacked_best(
    X: np.ndarray, y: np.ndarray, start: np.ndarray, weights: np.ndarray, sequence: Any
) -> float:
    """The least sum_k alpha_k |y - X b_k|^2 / n along a sequence, by least squares on the rows of
    all steps at once.
    """
    n = len(y)
    design = np.zeros((len(sequence), n, len(sequence)))
    for step, feature in enumerate(sequence):
        design[step:, :, step] = X[:, feature]
    scale = np.sqrt(weights / n)
    rows = (design * scale[:, None, None]).reshape(-1, len(sequence))
    target = (scale[:, None] * (y - X @ start)).ravel()
    changes = np.linalg.lstsq(rows, target, rcond=1e-12)[0]
    return float(((target - rows @ changes) ** 2).sum())


def path_objective(cost: costs.QuadraticCost, weights: np.ndarray, models: np.ndarray) -> float:
    return float(weights @ cost(models))


def brute_force(X: np.ndarray, y: np.ndarray, start: np.ndarray, weights: np.ndarray) -> float:
    return min(
        stacked_best(X, y, start, weights, sequence)
        for sequence in itertools.product(range(X.shape[1]), repeat=len(weights))
    )


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y, start, weights: now and then few rows, repeated or empty columns, zero
    weights, a nonzero start.
    """
    rng = np.random.default_rng(seed)
    rows, features, steps = rng.integers(2, 12), rng.integers(1, 5), rng.integers(1, 5)
    X = rng.normal(size=(rows, features)) @ (np.eye(features) + 0.5 * rng.random())
    if features > 1 and rng.random() < 0.3:
        X[:, 0] = 2 * X[:, 1]
    if rng.random() < 0.1:
        X[:, 0] = 0
    y = rng.normal(size=rows)
    weights = rng.random(steps) * (rng.random(steps) < 0.8)
    weights[-1] += 0.1
    if rng.random() < 0.3:
        weights = np.ones(steps)
    start = rng.normal(size=features) * (rng.random() < 0.5)
    return X, y, start, weights


def quadratic(X: np.ndarray, y: np.ndarray, start: np.ndarray) -> costs.QuadraticCost:
    return costs.mean_squared_error(X, y, np.ones(len(y))).around(start)


def correlated(features: int, seed: int = 0, rows: int = 150) -> costs.QuadraticCost:
    """Equicorrelated columns (0.8), a sparse model and noise, standardised."""
    rng = np.random.default_rng(seed)
    covariance = np.full((features, features), 0.8) + 0.2 * np.eye(features)
    X = (
        rng.normal(size=(rows, features)) @ np.linalg.cholesky(covariance).T
    )  # the same with every LAPACK
    y = X @ (rng.normal(size=features) * (rng.random(features) < 0.7))
    y = y + rng.normal(size=rows) * 0.5 * y.std()
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    return costs.mean_squared_error(X, y, np.ones(rows))


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep one sequence per layer, so that the depth-first search has to prove everything."""
    monkeypatch.setattr(exact, "WIDTH", 1)
    monkeypatch.setattr(exact, "RUNGS", ((1, 5), (2, 2)))
    monkeypatch.setattr(exact, "EFFORT", 0)
    monkeypatch.setattr(exact, "SLICE", 7)


def test_a_given_sequence_has_the_least_squares_path() -> None:
    for seed in range(40):
        X, y, start, weights = random_problem(seed)
        rng = np.random.default_rng(seed)
        cost = quadratic(X, y, start)
        sequence = rng.integers(0, X.shape[1], len(weights))
        models = best_path(cost, weights, sequence)
        assert (np.count_nonzero(np.diff(models, axis=0, prepend=0), axis=1) <= 1).all()
        expected = stacked_best(X, y, start, weights, sequence)
        assert path_objective(cost, weights, models) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        by_rows = [np.mean((y - X @ (start + model)) ** 2) for model in models]
        np.testing.assert_allclose(cost(models), by_rows, rtol=1e-9, atol=1e-12)
        free = constrained_path(PathProblem(cost, weights), sequence)
        assert path_objective(cost, weights, free) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_exact_is_brute_force(seed: int) -> None:
    X, y, start, weights = random_problem(seed)
    best = brute_force(X, y, start, weights)
    found = exact.search(PathProblem(quadratic(X, y, start), weights))
    assert found.closed
    assert found.objective == pytest.approx(best, rel=1e-8, abs=1e-11)
    assert found.bound <= best + 1e-11


@pytest.mark.parametrize("few", [exact.FEW, 0])
@pytest.mark.parametrize("seed", range(40))
def test_depth_first_is_brute_force(
    seed: int, few: int, narrow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "FEW", few)  # 0: tables of the supports that can be reached
    X, y, start, weights = random_problem(seed)
    best = brute_force(X, y, start, weights)
    found = exact.search(PathProblem(quadratic(X, y, start), weights))
    assert found.closed
    assert found.objective == pytest.approx(best, rel=1e-8, abs=1e-11)
    assert found.bound <= best + 1e-11


def test_truncated_tables_change_nothing_but_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.ones(5)
    full = exact.search(PathProblem(correlated(8), weights))
    for limit in (1, 40, 100):
        monkeypatch.setattr(supports, "MAX_SUPPORTS", limit)
        for width, few in ((1, exact.FEW), (1, 0), (256, 0)):
            monkeypatch.setattr(exact, "WIDTH", width)
            monkeypatch.setattr(exact, "FEW", few)
            found = exact.search(PathProblem(correlated(8), weights))
            assert found.closed
            assert found.objective == pytest.approx(full.objective, rel=1e-9)


def test_more_features_than_bits() -> None:
    cost = correlated(70, rows=300)
    found = exact.search(PathProblem(cost, np.ones(2)))
    best = min(
        path_objective(cost, np.ones(2), best_path(cost, np.ones(2), np.array(pair)))
        for pair in itertools.permutations(range(70), 2)
    )
    assert found.closed
    assert found.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("budget", [0, 7, 40, 10**6])
def test_the_least_cost_of_k_features_is_brute_force(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subsets, "BUDGET", budget)
    for seed in (0, 29, 31, 39, 49):  # backward elimination is best for the first alone
        cost = correlated(9, seed)
        every = Supports.of(cost, 9)
        best = [every.least[:-2][every.sizes == k].min() for k in range(10)]
        np.testing.assert_allclose(every.by_size, best, rtol=1e-12)
        for smallest, largest in ((1, 8), (3, 5), (8, 8)):
            found = subsets.least_by_size(cost, smallest, largest)
            assert (found <= best[smallest : largest + 1]).all()
            if budget == 10**6:
                np.testing.assert_allclose(found, best[smallest : largest + 1], rtol=1e-8)


def test_supports_beyond_the_table_cost_what_their_size_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cost = correlated(9)
    best = Supports.of(cost, 9).by_size
    monkeypatch.setattr(supports, "MAX_SUPPORTS", 60)
    table = Supports.of(cost, 6)
    assert table.sizes.max() == 2
    np.testing.assert_allclose(table.by_size[:7], best[:7], rtol=1e-8)
    assert table.least[-2] == table.by_size[3]
    singular = costs.QuadraticCost(np.ones((9, 9)), np.ones(9), 2.0)
    table = Supports.of(singular, 6)
    np.testing.assert_allclose(table.by_size, [2.0, *[1.0] * 9], rtol=1e-12)


@pytest.mark.parametrize("limit", [2**18, 20])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_tables_bound_what_they_say(
    gamma: float, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rest_p(U) against the remainder of random paths, and beginnings against their prefixes."""
    monkeypatch.setattr(supports, "MAX_SUPPORTS", limit)
    rng = np.random.default_rng(1)
    cost = correlated(5)
    steps = 5
    weights = geometric_weights(gamma, steps)
    shares = np.append(np.full(steps, 0.5), 0.0)
    table = Supports.of(cost, steps)
    rest, before = table.remainders(weights, shares), table.beginnings(weights, shares)
    for _ in range(300):
        sequence = rng.integers(0, 5, steps)
        models = best_path(cost, weights * rng.random(steps), sequence)
        paid = weights * cost(models)
        for p in range(1, steps + 1):
            at = table.positions(np.array([np.bitwise_or.reduce(1 << sequence[:p])]))[0]
            assert rest[p, at] <= shares[p] * paid[p - 1] + paid[p:].sum() + 1e-9
            if at < len(table.masks):  # beyond the table nobody asks for it
                assert before[p, at] <= paid[: p - 1].sum() + (1 - shares[p]) * paid[p - 1] + 1e-9


@given(st.integers(0, 1000), st.floats(0, 0.5), st.sampled_from([0.0, 0.7, 1.0, 2.0]))
@settings(max_examples=30)
def test_tables_hold_what_paths_below_an_objective_reach(
    seed: int, above: float, gamma: float
) -> None:
    rng, steps = np.random.default_rng(seed), 4
    X = rng.normal(size=(20, 5)) + rng.normal(size=(20, 1))
    cost = quadratic(X, rng.normal(size=20), np.zeros(5))
    weights = geometric_weights(gamma, steps) if gamma else np.array([0.0, 1.0, 0.0, 0.5])
    sequences = list(itertools.product(range(5), repeat=steps))
    objectives = [
        path_objective(cost, weights, best_path(cost, weights, np.array(s))) for s in sequences
    ]
    limit = min(objectives) * (1 + above) + 1e-9
    table = Supports.reachable(cost, weights, limit, never)
    shares = np.append(np.full(steps, 0.5), 0.0)
    rest, before = table.remainders(weights, shares), table.beginnings(weights, shares)
    for sequence, value in zip(sequences, objectives, strict=True):
        if value < limit:
            at = 0
            for p in range(steps):
                at = table.larger[sequence[p], at]
                assert at < len(table.masks)
                assert table.masks[at] == np.bitwise_or.reduce(1 << np.array(sequence[: p + 1]))
                assert before[p + 1, at] + rest[p + 1, at] <= value + 1e-9


def test_tables_lack_what_no_path_reaches_and_bound_what_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cost, weights = correlated(9), np.ones(6)
    best = exact.search(PathProblem(cost, weights)).objective
    table = Supports.reachable(cost, weights, best * 1.01, never)
    every = Supports.of(cost, 6)
    assert len(table.masks) < len(every.masks) / 4
    np.testing.assert_allclose(table.by_size[:7], every.by_size[:7], rtol=1e-8)
    assert (table.larger[:, :-2][:, table.sizes < 6] != len(table.masks)).all()
    monkeypatch.setattr(supports, "MAX_SUPPORTS", 30)
    small = Supports.reachable(cost, weights, best * 1.01, never)
    largest = small.sizes.max()
    assert set(small.masks) == set(table.masks[table.sizes <= largest])
    assert (small.larger[:, :-2][:, small.sizes < largest] != len(small.masks)).all()
    assert (small.larger[:, :-2][:, small.sizes == largest] == len(small.masks)).any()
    assert small.least[-2] == small.by_size[largest + 1]
    stopped = Supports.reachable(cost, weights, best * 1.01, lambda: True)
    assert list(stopped.masks) == [0]
    assert (stopped.larger[:, 0] == 1).all()


def test_layers_and_depth_first_agree_on_values() -> None:
    """The batched closed form and the incremental quadratic forms are two
    ways to the same numbers.
    """
    cost = correlated(6)
    rng = np.random.default_rng(0)
    weights = rng.random(4)
    prefix = np.array([2, 0, 2])
    batched = exact.extension_values(cost, weights, 1.0, prefix[None])[0]
    for feature in range(6):
        sequence = np.append(prefix, feature)
        value = path_objective(cost, weights, best_path(cost, weights, sequence))
        assert batched[feature] == pytest.approx(value, rel=1e-9)
    stack = depth_first.workspace(6, 4)
    given = given_of(cost, weights)
    level, value, _ = depth_first.search(tuple(given), tuple(stack), 0, 0, 4, np.inf, 0.0, 10**6)
    assert level < 0
    best = path_objective(cost, weights, best_path(cost, weights, stack.best))
    assert value == pytest.approx(best, rel=1e-9)


def given_of(cost: costs.QuadraticCost, weights: np.ndarray) -> depth_first.GivenTables:
    """The input of the kernels for the first four steps, without bounds on what follows."""
    table = Supports.of(cost, 4)
    nothing = np.zeros((5, len(table.masks) + 2))
    return depth_first.GivenTables(
        cost.curvature, cost.linear, cost.constant, weights, np.zeros(5), nothing,
        table.masks, table.larger, False,
    )  # fmt: skip


def test_the_cost_to_come_is_that_of_every_prefix() -> None:
    """Appending a feature again minimises out its old coefficient, whether or not steps of other
    features lie between.
    """
    cost = correlated(3)
    weights = np.random.default_rng(1).random(4)
    given = given_of(cost, weights)
    for prefix in itertools.product(range(3), repeat=3):
        stack, values = depth_first.workspace(3, 4), np.empty(3)
        for level, feature in enumerate(prefix):
            depth_first._append.py_func(given, stack, level, feature)
        depth_first._children.py_func(given, stack, 3, weights[3], values)
        for feature in range(3):
            models = best_path(cost, weights, np.append(prefix, feature))
            assert values[feature] == pytest.approx(path_objective(cost, weights, models), rel=1e-9)


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 5, 8, 13, 21])
def test_any_deadline_leaves_a_valid_certificate(limit: int, narrow: None) -> None:
    """The clock moves one second per look, so that the searches are cut at every stage."""
    cost, weights = correlated(6), np.ones(6)
    best = exact.search(PathProblem(cost, weights)).objective
    end = np.where(np.arange(6) < 4, cost.minimiser(), 0.0)
    best_to_end = given_end.search(PathProblem(cost, weights, end=end)).objective
    whole = integer.search(PathProblem(cost, weights, "unit", -9.0, 9.0)).objective

    def stopped() -> Any:
        ticks = itertools.count()
        return Run("test", Deadline(float(limit), clock=lambda: float(next(ticks)))).stopped

    cut = exact.search(PathProblem(cost, weights), stopped=stopped())
    assert cut.bound <= best * (1 + 1e-9) <= cut.objective * (1 + 2e-9)
    cut = given_end.search(PathProblem(cost, weights, end=end), stopped=stopped())
    assert cut.bound <= best_to_end * (1 + 1e-9) <= cut.objective * (1 + 2e-9)
    np.testing.assert_array_equal(cut.solution.models[-1], end)
    cut = integer.search(PathProblem(cost, weights, "unit", -9.0, 9.0), stopped=stopped())
    assert cut.bound <= whole * (1 + 1e-9) <= cut.objective * (1 + 2e-9)


def test_interrupt_returns_the_incumbent(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(layered, "search", interrupt)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) @ (np.eye(6) + 0.5)
    fit = paths.fit(X, X @ rng.normal(size=6) + rng.normal(size=40), steps=4)
    assert fit.status == "interrupted"
    assert fit.bound is not None
    assert fit.bound <= fit.objective < np.inf


@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_the_hard_size_is_proved(gamma: float) -> None:
    cost, weights = correlated(12), geometric_weights(gamma, 12)
    found = exact.search(PathProblem(cost, weights))
    assert found.closed
    assert (found.objective - found.bound) / found.objective < 2e-9


# Bounds


@pytest.mark.parametrize("pivots", [1, 2, 40])
def test_the_least_cost_in_a_box_is_a_lower_bound(
    pivots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against SciPy's solver: stopped early it is still a bound, at the end it is the minimum."""
    monkeypatch.setattr(bounded, "PIVOTS", pivots)
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(200, 12, 5)), rng.normal(size=(200, 12))
    lower = np.where(rng.random((200, 5)) < 0.3, -np.inf, -0.2 * rng.random((200, 5)))
    upper = np.where(rng.random((200, 5)) < 0.3, np.inf, 0.2 * rng.random((200, 5)))
    best = [lsq_linear(A[i], y[i], (lower[i], upper[i]), "bvls").cost * 2 for i in range(200)]
    H, h = np.einsum("bri,brj->bij", A, A), np.einsum("bri,br->bi", A, y)
    found = bounded.least_in_box(H, h, lower, upper) + (y**2).sum(axis=1)
    assert (found <= np.array(best) + 1e-10).all()
    if pivots == 40:
        np.testing.assert_allclose(found, best, rtol=1e-10)


@pytest.mark.parametrize("seed", range(30))
def test_paths_within_bounds_are_brute_force(seed: int) -> None:
    X, y, start, weights = random_problem(seed)
    rng = np.random.default_rng(seed)
    features = X.shape[1]
    lower = np.where(rng.random(features) < 0.3, -np.inf, -0.5 * rng.random(features))
    upper = np.where(
        rng.random(features) < 0.3,
        np.inf,
        0.5 * rng.random(features) * (rng.random(features) < 0.8),
    )
    problem = PathProblem(quadratic(X, y, start), weights, lower=lower, upper=upper)
    best = min(
        path_objective(problem.cost, weights, constrained_path(problem, np.array(sequence)))
        for sequence in itertools.product(range(features), repeat=len(weights))
    )
    found = bounded.search(problem)
    assert found.closed
    assert found.objective == pytest.approx(best, rel=1e-7, abs=1e-10)
    assert found.bound <= best + 1e-10
    assert (
        (found.solution.models >= lower - 1e-12) & (found.solution.models <= upper + 1e-12)
    ).all()


# Given ends


def brute_force_to(cost: costs.QuadraticCost, weights: np.ndarray, end: np.ndarray) -> float:
    best = np.inf
    for sequence in itertools.product(range(len(end)), repeat=len(weights)):
        if set(np.flatnonzero(end)) <= set(sequence):
            models = constrained_path(PathProblem(cost, weights, end=end), np.array(sequence))
            np.testing.assert_allclose(models[-1], end)
            best = min(best, path_objective(cost, weights, models))
    return best


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("widths", [given_end.WIDTHS, (1, 3, 10**6)])
def test_given_end_is_brute_force(
    seed: int, widths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given_end, "WIDTHS", widths)
    X, y, start, weights = random_problem(seed)
    X, start = X[:, :3], start[:3]
    rng = np.random.default_rng(seed)
    end = rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.6)
    if np.count_nonzero(end) > len(weights):
        end[:] = 0
    cost = quadratic(X, y, start)
    best = brute_force_to(cost, weights, end)
    found = given_end.search(PathProblem(cost, weights, end=end))
    assert found.closed
    assert found.objective == pytest.approx(best, rel=1e-8, abs=1e-11)
    assert found.bound <= best + 1e-11
    np.testing.assert_allclose(found.solution.models[-1], end)


# Integer steps


def brute_force_integer(
    cost: costs.QuadraticCost,
    weights: np.ndarray,
    sizes: range,
    lower: float,
    upper: float,
    end: np.ndarray | None,
) -> float:
    d = len(cost.linear)
    best = np.inf
    moves = [(i, s) for i in range(d) for s in sizes]
    for path in itertools.product(moves, repeat=len(weights)):
        changes = np.zeros((len(weights), d))
        for step, (feature, size) in enumerate(path):
            changes[step, feature] = size
        models = changes.cumsum(axis=0)
        if (
            (models < lower).any()
            or (models > upper).any()
            or (end is not None and (models[-1] != end).any())
        ):
            continue
        best = min(best, path_objective(cost, weights, models))
    return best


@pytest.mark.parametrize("kind", ["any", "unit"])
@pytest.mark.parametrize("seed", range(12))
def test_integer_steps_are_brute_force(
    kind: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(integer, "WIDTHS", (1, 10**6))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 2)) @ (np.eye(2) + 0.4)
    y = X @ [1.6, -2.3] + rng.normal(size=20)
    cost = quadratic(X, y, rng.normal(size=2) * (seed % 2))
    weights = rng.random(3) + 0.1
    lower, upper = (-1.0, 2.0) if seed % 3 == 0 else (-np.inf, np.inf)
    end = np.array([1.0, -1.0]) if seed % 4 == 0 else None
    bounds = np.full(2, lower), np.full(2, upper)
    found = integer.search(PathProblem(cost, weights, kind, *bounds, end))
    sizes = range(-6, 7) if kind == "any" else range(-1, 2)
    best = brute_force_integer(cost, weights, sizes, lower, upper, end)
    assert found.closed
    assert found.objective == pytest.approx(best, rel=1e-9)
    assert (found.solution.models == np.round(found.solution.models)).all()


# Mixed-integer programming


@pytest.mark.parametrize("seed", [0, 3, 7, 11])
def test_mip_is_brute_force(seed: int) -> None:
    X, y, start, weights = random_problem(seed)
    weights = weights[:3] + 0.1
    cost = quadratic(X, y, start)
    found = mip.search(PathProblem(cost, weights))
    best = brute_force(X, y, start, weights)
    assert found.objective == pytest.approx(best, rel=1e-8, abs=1e-11)
    assert found.bound <= best * (1 + 1e-9) + 1e-11
    assert found.objective - found.bound <= 1e-7 * found.objective + 1e-11


def test_mip_agrees_with_the_dedicated_searches() -> None:
    cost = correlated(4)
    weights = np.array([1.0, 0.5, 1.5])
    end = np.array([0.4, 0.0, -0.3, 0.0])
    to_end = mip.search(PathProblem(cost, weights, end=end))
    assert to_end.objective == pytest.approx(
        given_end.search(PathProblem(cost, weights, end=end)).objective, rel=1e-8
    )
    box = np.full(4, -1.0), np.full(4, 1.0)
    scaled = costs.QuadraticCost(
        cost.curvature / 9, cost.linear / 3, cost.constant
    )  # so that integers matter
    for kind in ("any", "unit"):
        whole = mip.search(PathProblem(scaled, weights, kind, *box))  # type: ignore[arg-type]  # a literal
        dedicated = integer.search(PathProblem(scaled, weights, kind, *box))  # type: ignore[arg-type]  # same
        assert whole.objective == pytest.approx(dedicated.objective, rel=1e-8)


def test_mip_keeps_bounds() -> None:
    cost = correlated(3)
    weights = np.ones(3)
    lower, upper = np.array([0.0, -0.1, 0.0]), np.array([0.3, 0.1, np.inf])
    found = mip.search(PathProblem(cost, weights, lower=lower, upper=upper))
    assert (found.solution.models >= lower - 1e-9).all()
    assert (found.solution.models <= upper + 1e-9).all()
    best = min(
        path_objective(
            cost,
            weights,
            constrained_path(PathProblem(cost, weights, None, lower, upper), np.array(q)),
        )
        for q in itertools.product(range(3), repeat=3)
    )
    assert found.objective == pytest.approx(best, rel=1e-7)
    assert found.bound <= best * (1 + 1e-8)


# Local improvement


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_local_candidates_are_closed_forms(batch: int) -> None:
    """Improving a sequence in all its steps at once is brute force."""
    cost = correlated(4)
    weights = np.array([0.7, 1.0, 0.4])[:batch]
    found = local.improve(cost, weights, np.zeros((1, batch), np.int64), batch=batch, seed=0)[0]
    best = min(
        path_objective(cost, weights, best_path(cost, weights, np.array(q)))
        for q in itertools.product(range(4), repeat=batch)
    )
    value = path_objective(cost, weights, best_path(cost, weights, found))
    assert value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("batch", [1, 2])
def test_local_optima_cannot_be_improved(batch: int) -> None:
    cost, weights = correlated(5), np.ones(5)
    starts = local.random_sequences(5, 5, 4, seed=1)
    for found in local.improve(cost, weights, starts, batch=batch, seed=1):
        value = path_objective(cost, weights, best_path(cost, weights, found))
        for steps in itertools.combinations(range(5), batch):
            for features in itertools.product(range(5), repeat=batch):
                other = found.copy()
                other[list(steps)] = features
                models = best_path(cost, weights, other)
                assert path_objective(cost, weights, models) >= value * (1 - 1e-9)


def test_local_is_deterministic_and_compiles_once() -> None:
    cost, weights = correlated(7), np.ones(6)
    starts = local.random_sequences(7, 6, 5, seed=3)
    first = local.improve(cost, weights, starts, batch=2, seed=3)
    other = correlated(6, seed=5)  # the same bucket
    with compilations() as compiled:
        np.testing.assert_array_equal(first, local.improve(cost, weights, starts, batch=2, seed=3))
        local.improve(other, np.arange(1.0, 7.0), starts % 6, batch=2, seed=4)
    assert compiled == []


def test_local_splits_many_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    cost, weights = correlated(5), np.ones(4)
    starts = local.random_sequences(5, 4, 4, seed=0)
    whole = local.improve(cost, weights, starts, batch=2, seed=0)
    monkeypatch.setattr(local, "MAX_CANDIDATES", 192)
    np.testing.assert_array_equal(whole, local.improve(cost, weights, starts, batch=2, seed=0))


# Properties


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_properties_of_the_optimum(seed: int) -> None:
    """Order of the columns, units of y, a vanishing last weight, and one step more."""
    X, y, start, weights = random_problem(seed)
    rng = np.random.default_rng(seed)

    def objective(X: np.ndarray, y: np.ndarray, start: np.ndarray, weights: np.ndarray) -> float:
        found = exact.search(PathProblem(quadratic(X, y, start), weights))
        assert found.bound <= found.objective
        return found.objective

    best = objective(X, y, start, weights)
    tolerance = {"rel": 1e-7, "abs": 1e-10}
    order = rng.permutation(X.shape[1])
    assert objective(X[:, order], y, start[order], weights) == pytest.approx(best, **tolerance)
    assert objective(X, 3 * y, 3 * start, weights) == pytest.approx(9 * best, **tolerance)
    assert objective(X, y, start, 5 * weights) == pytest.approx(5 * best, **tolerance)
    longer = objective(X, y, start, np.append(weights, 1e-9))
    assert longer == pytest.approx(best, rel=1e-6, abs=1e-8)
    if (
        np.diff(weights) == 0
    ).all():  # a step more of the same weight costs at least the least cost
        cost = quadratic(X, y, start)
        assert (
            objective(X, y, start, np.append(weights, 1.0))
            >= best + float(cost(cost.minimiser())) - 1e-9
        )


def test_a_descent_to_a_loss_near_zero_ends() -> None:
    """Rounding made the constant of its quadratic model negative, so that every step improved."""
    zero = np.array([[1e-300, 0.0], [0.0, 1e-300]])
    cost = QuadraticCost(zero, np.zeros(2), -1e-290)
    found = local.improve(cost, np.ones(2), np.zeros((1, 2), np.int64), batch=1)
    assert found.shape == (1, 2)
