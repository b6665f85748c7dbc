"""Rule search against brute force over all conjunctions, and the promises of its certificate."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrules.results import Status
from jaxrules.solvers.rule_search import depth_first as rule_search
from jaxrules.solvers.rule_search.best_first import search_published
from jaxrules.solvers.rule_search.depth_first import (
    SearchSpace,
    search_beam,
    search_greedy,
    search_optimal,
    shortest_equivalent,
)

Problem = tuple[SearchSpace, np.ndarray, np.ndarray, float]


def objective(space: SearchSpace, g: np.ndarray, h: np.ndarray, ridge: float, conjunction: Any) -> float:
    rows = space.selected(conjunction)
    return float(g[rows].sum() ** 2 / (ridge + h[rows].sum()))


def brute_force(problem: Problem, max_length: int | None = None) -> float:
    """The best objective over all conjunctions, the empty one included."""
    space = problem[0]
    longest = len(space) if max_length is None else min(max_length, len(space))
    return max(
        objective(*problem, conjunction)
        for length in range(longest + 1)
        for conjunction in itertools.combinations(range(len(space)), length)
    )


@st.composite
def problems(draw: st.DrawFn, most_propositions: int = 9) -> Problem:
    """Tiny problems with ties, equal gradients, zero curvature, constant and repeated columns and rows."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 24))
    if draw(st.booleans()):
        masks = random.random((n, draw(st.integers(1, most_propositions)))) < draw(st.sampled_from([0.2, 0.5, 0.9]))
        if draw(st.booleans()):
            masks[:, 0] = masks[:, -1]
        space = SearchSpace.of(masks)
    else:
        codes = 2 * random.integers(0, 4, (n, 2)) + 1
        column, cell, above = zip(
            *((f, 2 * v + 1, up) for f in range(2) for v in range(4) for up in (False, True)), strict=True
        )
        chosen = random.permutation(16)[:most_propositions]
        space = SearchSpace.of_codes(
            codes.astype(np.uint16), np.array(column)[chosen], np.array(above)[chosen], np.array(cell)[chosen]
        )
    kind = draw(st.sampled_from(["normal", "integer", "sign", "zero"]))
    g = {
        "normal": random.normal(size=n),
        "integer": random.integers(-3, 4, n).astype(float),
        "sign": random.choice([-0.5, 0.5], n),
        "zero": np.zeros(n),
    }[kind]
    h = {0: np.full(n, 2.0), 1: random.random(n), 2: random.choice([0.0, 1.0], n), 3: np.zeros(n)}[
        draw(st.integers(0, 3))
    ]
    return space, g, h, draw(st.sampled_from([0.01, 1.0, 10.0]))


@settings(deadline=None, max_examples=300)
@given(problem=problems())
def test_optimal_is_optimal(problem: Problem) -> None:
    space, g, h, ridge = problem
    best = brute_force(problem)
    found = search_optimal(space, g, h, ridge=ridge)
    assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert objective(*problem, found.propositions) == pytest.approx(found.objective, rel=1e-12, abs=1e-15)
    assert found.status == Status.OPTIMAL
    assert found.bound is not None
    assert found.objective <= found.bound <= found.objective * (1 + 2e-10)


@settings(deadline=None, max_examples=150)
@given(problem=problems(most_propositions=14))
def test_the_published_algorithm_agrees(problem: Problem) -> None:
    space, g, h, ridge = problem
    ours, theirs = search_optimal(space, g, h, ridge=ridge), search_published(space, g, h, ridge=ridge)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-9, abs=1e-12)
    assert theirs.status == Status.OPTIMAL
    assert theirs.bound == pytest.approx(theirs.objective, rel=1e-9, abs=1e-12)


@settings(deadline=None, max_examples=150)
@given(problem=problems(), max_length=st.integers(0, 4))
def test_length_limit(problem: Problem, max_length: int) -> None:
    space, g, h, ridge = problem
    best = brute_force(problem, max_length)
    found = search_optimal(space, g, h, ridge=ridge, max_length=max_length)
    assert len(found.propositions) <= max_length
    assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    for heuristic in (search_greedy, search_beam):
        limited = heuristic(space, g, h, ridge=ridge, max_length=max_length)
        assert len(limited.propositions) <= max_length
        assert limited.objective <= best * (1 + 1e-12) + 1e-15


@settings(deadline=None, max_examples=100)
@given(problem=problems(most_propositions=12), approximation=st.sampled_from([0.3, 0.7, 0.95]))
def test_approximation_keeps_its_promise(problem: Problem, approximation: float) -> None:
    space, g, h, ridge = problem
    best = search_optimal(space, g, h, ridge=ridge).objective
    for search in (search_optimal, search_published):
        found = search(space, g, h, ridge=ridge, approximation=approximation)
        assert found.objective >= approximation * best * (1 - 1e-9)
        assert found.bound is not None
        assert found.bound >= best * (1 - 1e-9)
        assert found.bound <= found.objective / approximation * (1 + 1e-9) + 1e-15


@settings(deadline=None, max_examples=100)
@given(problem=problems(most_propositions=14), max_evaluations=st.integers(0, 60))
def test_limited_search_has_a_valid_bound(problem: Problem, max_evaluations: int) -> None:
    space, g, h, ridge = problem
    best = search_optimal(space, g, h, ridge=ridge).objective
    for search in (search_optimal, search_published):
        found = search(space, g, h, ridge=ridge, max_evaluations=max_evaluations)
        assert found.bound is not None
        assert found.objective <= best * (1 + 1e-9) + 1e-15
        assert found.bound >= best * (1 - 1e-9)
        assert found.status in (Status.OPTIMAL, Status.MAX_ITERATIONS)


@settings(deadline=None, max_examples=60)
@given(problem=problems(most_propositions=14))
def test_greedy_is_the_textbook_loop(problem: Problem) -> None:
    space, g, h, ridge = problem
    conjunction: list[int] = []
    value = objective(*problem, conjunction)
    while True:
        values = [objective(*problem, [*conjunction, a]) for a in range(len(space))]
        if not values or max(values) <= value * (1 + 1e-12):
            break
        conjunction.append(int(np.argmax(values)))
        value = max(values)
    greedy = search_greedy(space, g, h, ridge=ridge)
    assert greedy.bound is None
    optimum = search_optimal(space, g, h, ridge=ridge).objective
    assert greedy.objective <= optimum * (1 + 1e-9) + 1e-15
    if len({round(v, 9) for v in values}) == len(values):  # without ties the path is unique
        assert greedy.objective == pytest.approx(value, rel=1e-9, abs=1e-12)


@settings(deadline=None, max_examples=150)
@given(problem=problems(most_propositions=10), seed=st.integers(0, 1000))
def test_shortest_equivalent(problem: Problem, seed: int) -> None:
    space = problem[0]
    d = len(space)
    conjunction = np.flatnonzero(np.random.default_rng(seed).random(d) < 0.4).tolist()
    rows = space.selected_groups(conjunction)
    short = shortest_equivalent(space, rows)
    np.testing.assert_array_equal(space.selected_groups(short), rows)
    if rows.any():
        shorter = (c for k in range(len(short)) for c in itertools.combinations(range(d), k))
        assert not any(np.array_equal(space.selected_groups(c), rows) for c in shorter)


def a_long_problem(seed: int = 0, n: int = 300, columns: int = 7, cuts: int = 5) -> Problem:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, columns))
    edges = np.quantile(x, np.arange(1, cuts + 1) / (cuts + 1))
    codes = (np.searchsorted(edges, x, "left") + np.searchsorted(edges, x, "right")).astype(np.uint16)
    column, cell, above = zip(
        *((f, 2 * v + 1, up) for f in range(columns) for v in range(cuts) for up in (False, True)), strict=True
    )
    space = SearchSpace.of_codes(codes, np.array(column), np.array(above), np.array(cell))
    return space, random.normal(size=n), np.full(n, 2.0), 2.0


def test_two_threads_find_the_rule_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        space, g, h, ridge = a_long_problem(seed)
        g = np.round(2 * g) if seed else g  # with many ties
        one = search_optimal(space, g, h, ridge=ridge, threads=1)
        monkeypatch.setattr(rule_search, "THREADS_FROM", 0)
        monkeypatch.setattr(rule_search, "SLICE", 2000)
        for _ in range(3):
            two = search_optimal(space, g, h, ridge=ridge, threads=2)
            assert two.propositions == one.propositions
            assert two.objective == one.objective
            assert two.status == Status.OPTIMAL
            assert two.bound == pytest.approx(one.bound, rel=1e-9)
        monkeypatch.undo()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("looks", [0, 1, 5])
def test_stopped_search_is_anytime(monkeypatch: pytest.MonkeyPatch, threads: int, looks: int) -> None:
    space, g, h, ridge = a_long_problem()
    best = search_optimal(space, g, h, ridge=ridge).objective
    monkeypatch.setattr(rule_search, "SLICE", 2000)
    monkeypatch.setattr(rule_search, "THREADS_FROM", 4000)
    count = itertools.count()
    found = search_optimal(space, g, h, ridge=ridge, threads=threads, stopped=lambda: next(count) >= looks)
    assert found.bound is not None
    assert found.objective <= best * (1 + 1e-9)
    assert found.bound >= best * (1 - 1e-9)
    assert found.status in (Status.TIME_LIMIT, Status.OPTIMAL)


def test_interrupted_search_returns_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    space, g, h, ridge = a_long_problem()
    best = search_optimal(space, g, h, ridge=ridge).objective
    monkeypatch.setattr(rule_search, "SLICE", 2000)

    def ctrl_c() -> bool:
        raise KeyboardInterrupt

    for search in (search_optimal, search_published):
        found = search(space, g, h, ridge=ridge, stopped=ctrl_c)
        assert found.status == Status.INTERRUPTED
        assert found.bound is not None
        assert found.bound >= best * (1 - 1e-9)


def test_the_stack_grows() -> None:
    """A chain of nested thresholds makes the search as deep as there are propositions."""
    n = 60
    x = np.arange(n)
    masks = np.stack([x != i for i in range(n)], axis=1)
    g = np.where(x % 2 == 0, 1.0, -1.0) + 0.001 * x
    space = SearchSpace.of(masks)
    found = search_optimal(space, g, np.full(n, 2.0), ridge=1.0, max_evaluations=200_000)
    keep_one_sign = max(g[g > 0].sum() ** 2 / (1 + 2 * (g > 0).sum()), g[g < 0].sum() ** 2 / (1 + 2 * (g < 0).sum()))
    assert found.objective == pytest.approx(keep_one_sign, rel=1e-9)


def test_counts_and_evaluations() -> None:
    space, g, h, ridge = a_long_problem(n=100, columns=4, cuts=3)
    ours, theirs = search_optimal(space, g, h, ridge=ridge), search_published(space, g, h, ridge=ridge)
    assert ours.counts["nodes"] < theirs.counts["nodes"]
    assert {"bound", "mandatory_rows", "redundant", "implied", "rebounds"} <= ours.counts.keys()
    assert all(theirs.counts[name] > 0 for name in ("immediate_bound", "immediate_equivalence", "propagated_bound"))
    assert ours.evaluations > 0


def test_no_propositions() -> None:
    space = SearchSpace.of(np.zeros((4, 0), bool))
    g, h = np.array([1.0, -2.0, 0.5, 3.0]), np.ones(4)
    for found in (
        search_optimal(space, g, h, ridge=1.0),
        search_published(space, g, h, ridge=1.0),
        search_greedy(space, g, h, ridge=1.0),
    ):
        assert found.propositions == ()
        assert found.objective == pytest.approx(2.5**2 / 5)


def test_too_many_propositions_are_refused() -> None:
    with pytest.raises(ValueError, match="max_cut_points"):
        rule_search.check_memory(100_000, 100_000)


def test_numba_is_loaded_on_first_use() -> None:
    code = "import sys, jaxrules.solvers.rule_search.depth_first; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
