"""Rule search against brute force over all conjunctions, and the guarantees of its certificate."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jaxrules.data.table import as_table
from jaxrules.rules import rows as rows_by_rules
from jaxrules.rules.conditions import all_propositions
from jaxrules.solvers import rule_search
from jaxrules.solvers.rule_search import (
    CorrectiveDecrease,
    Found,
    GradientSum,
    Objective,
    Orthogonal,
    SearchSpace,
    SecondOrder,
    SignedWeights,
    SumOverClasses,
    depth_first,
    interactions,
    ranking,
    search_beams,
    search_best_first,
    search_depth_first,
    shortest,
    shortest_equivalent,
)
from jaxrules.solvers.rule_search import space as rule_space
from jaxrules.solvers.rule_search.compiled_pairs import CompiledPairs
from jaxrules.solvers.rule_search.interactions import strongest_interactions
from jaxrules.solvers.rule_search.space import Partition, best_first
from jaxrules.tools.fits import Status
from jaxrules.tools.kernels import Kernels

Problem = tuple[SearchSpace, np.ndarray, np.ndarray, float]


# Second order, the objective of "Better Short than Greedy", by the numbers per row


def search_optimal(
    space: SearchSpace, g: np.ndarray, h: np.ndarray, *, ridge: float, **limits: Any
) -> Found:
    return search_depth_first(space, SecondOrder(g, h, ridge), **limits)


def search_published(
    space: SearchSpace, g: np.ndarray, h: np.ndarray, *, ridge: float, **limits: Any
) -> Found:
    return rule_search.search_published(space, SecondOrder(g, h, ridge), **limits)


def search_beam(
    space: SearchSpace, g: np.ndarray, h: np.ndarray, *, ridge: float, **limits: Any
) -> Found:
    return rule_search.search_beam(space, SecondOrder(g, h, ridge), **limits)


def search_greedy(
    space: SearchSpace, g: np.ndarray, h: np.ndarray, *, ridge: float, **limits: Any
) -> Found:
    return search_beam(space, g, h, ridge=ridge, width=1, **limits)


def objective(
    space: SearchSpace, g: np.ndarray, h: np.ndarray, ridge: float, conjunction: Any
) -> float:
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
    """Tiny problems with ties, equal gradients, zero curvature, constant and
    repeated columns and rows.
    """
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 24))
    if draw(st.booleans()):
        masks = random.random((n, draw(st.integers(1, most_propositions)))) < draw(
            st.sampled_from([0.2, 0.5, 0.9])
        )
        if draw(st.booleans()):
            masks[:, 0] = masks[:, -1]
        space = SearchSpace.of(masks)
    else:
        codes = 2 * random.integers(0, 4, (n, 2)) + 1
        column, cell, above = zip(
            *((f, 2 * v + 1, up) for f in range(2) for v in range(4) for up in (False, True)),
            strict=True,
        )
        chosen = random.permutation(16)[:most_propositions]
        space = SearchSpace.of_codes(
            codes.astype(np.uint16),
            np.array(column)[chosen],
            np.array(above)[chosen],
            np.array(cell)[chosen],
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


@settings(max_examples=300)
@given(problem=problems())
def test_optimal_is_optimal(problem: Problem) -> None:
    space, g, h, ridge = problem
    best = brute_force(problem)
    found = search_optimal(space, g, h, ridge=ridge)
    assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert objective(*problem, found.propositions) == pytest.approx(
        found.objective, rel=1e-12, abs=1e-15
    )
    assert found.status == Status.OPTIMAL
    assert found.bound is not None
    assert found.objective <= found.bound <= found.objective * (1 + 2e-10)


@settings(max_examples=150)
@given(problem=problems(most_propositions=14))
def test_the_published_algorithm_agrees(problem: Problem) -> None:
    space, g, h, ridge = problem
    ours, theirs = (
        search_optimal(space, g, h, ridge=ridge),
        search_published(space, g, h, ridge=ridge),
    )
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-9, abs=1e-12)
    assert theirs.status == Status.OPTIMAL
    assert theirs.bound == pytest.approx(theirs.objective, rel=1e-9, abs=1e-12)
    if theirs.propositions:  # line 17: the shortest conjunction for the same rows
        rows = space.selected_groups(theirs.propositions)
        assert len(theirs.propositions) == len(shortest_equivalent(space, rows))


@settings(max_examples=150)
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


@settings(max_examples=100)
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


@settings(max_examples=100)
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


@settings(max_examples=60)
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


@settings(max_examples=150)
@given(problem=problems(most_propositions=10), seed=st.integers(0, 1000))
def test_shortest_equivalent(problem: Problem, seed: int) -> None:
    space = problem[0]
    d = len(space)
    conjunction = np.flatnonzero(np.random.default_rng(seed).random(d) < 0.4).tolist()
    rows = space.selected_groups(conjunction)
    short = shortest_equivalent(space, rows)
    np.testing.assert_array_equal(space.selected_groups(short), rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxrules.solvers.rule_search.shortest._SOME_WORDS", 1)
        assert shortest_equivalent(space, rows) == short
    if rows.any():
        shorter = (c for k in range(len(short)) for c in itertools.combinations(range(d), k))
        assert not any(np.array_equal(space.selected_groups(c), rows) for c in shorter)


def a_long_problem(seed: int = 0, n: int = 300, columns: int = 7, cuts: int = 5) -> Problem:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, columns))
    edges = np.quantile(x, np.arange(1, cuts + 1) / (cuts + 1))
    codes = (np.searchsorted(edges, x, "left") + np.searchsorted(edges, x, "right")).astype(
        np.uint16
    )
    column, cell, above = zip(
        *((f, 2 * v + 1, up) for f in range(columns) for v in range(cuts) for up in (False, True)),
        strict=True,
    )
    space = SearchSpace.of_codes(codes, np.array(column), np.array(above), np.array(cell))
    return space, random.normal(size=n), np.full(n, 2.0), 2.0


def test_two_threads_find_the_rule_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        space, g, h, ridge = a_long_problem(seed)
        g = np.round(2 * g) if seed else g  # with many ties
        one = search_optimal(space, g, h, ridge=ridge, threads=1)
        monkeypatch.setattr(depth_first, "THREADS_FROM", 0)
        monkeypatch.setattr(depth_first, "SLICE", 2000)
        for _ in range(3):
            two = search_optimal(space, g, h, ridge=ridge, threads=2)
            assert two.propositions == one.propositions
            assert two.objective == one.objective
            assert two.status == Status.OPTIMAL
            assert two.bound == pytest.approx(one.bound, rel=1e-9)
        monkeypatch.undo()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("looks", [0, 1, 5])
def test_stopped_search_is_anytime(
    monkeypatch: pytest.MonkeyPatch, threads: int, looks: int
) -> None:
    space, g, h, ridge = a_long_problem()
    best = search_optimal(space, g, h, ridge=ridge).objective
    monkeypatch.setattr(depth_first, "SLICE", 2000)
    monkeypatch.setattr(depth_first, "THREADS_FROM", 4000)
    count = itertools.count()
    found = search_optimal(
        space, g, h, ridge=ridge, threads=threads, stopped=lambda: next(count) >= looks
    )
    assert found.bound is not None
    assert found.objective <= best * (1 + 1e-9)
    assert found.bound >= best * (1 - 1e-9)
    assert found.status in (Status.TIME_LIMIT, Status.OPTIMAL)


def test_the_stack_grows() -> None:
    """A chain of nested thresholds makes the search as deep as there are propositions."""
    n = 60
    x = np.arange(n)
    masks = np.stack([x != i for i in range(n)], axis=1)
    g = np.where(x % 2 == 0, 1.0, -1.0) + 0.001 * x
    space = SearchSpace.of(masks)
    found = search_optimal(space, g, np.full(n, 2.0), ridge=1.0, max_evaluations=200_000)
    keep_one_sign = max(
        g[g > 0].sum() ** 2 / (1 + 2 * (g > 0).sum()), g[g < 0].sum() ** 2 / (1 + 2 * (g < 0).sum())
    )
    assert found.objective == pytest.approx(keep_one_sign, rel=1e-9)


def test_counts_and_evaluations() -> None:
    space, g, h, ridge = a_long_problem(n=60, columns=5, cuts=4)
    ours, theirs = (
        search_optimal(space, g, h, ridge=ridge),
        search_published(space, g, h, ridge=ridge),
    )
    assert ours.counts["nodes"] < theirs.counts["nodes"]
    assert {"bound", "mandatory_rows", "redundant", "implied", "rebounds"} <= ours.counts.keys()
    assert min(ours.counts.values()) > 0
    assert all(
        theirs.counts[name] > 0
        for name in ("immediate_bound", "immediate_equivalence", "propagated_bound")
    )
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


def test_too_many_propositions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_by_rules, "available_memory", lambda: 1000)
    with pytest.raises(ValueError, match="20 propositions on 10 .* set max_cut_points"):
        SearchSpace.of(np.zeros((10, 20), bool))


def test_numba_is_loaded_on_first_use() -> None:
    code = "import sys, jaxrules.solvers.rule_search; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_fresh_process_compiles_nothing() -> None:
    search_optimal(
        *a_long_problem(n=10)[:3], ridge=1.0
    )  # this process has compiled the search, or found it on disk
    code = """
import numpy as np
from jaxrules.solvers import rule_search
from jaxrules.solvers.rule_search.kernels import depth_first, problems
space = rule_search.SearchSpace.of(np.eye(3) > 0)
rule_search.search_depth_first(space, rule_search.SecondOrder(np.arange(3.0), np.ones(3), 1.0))
stats = depth_first.advance[problems.SecondOrder].stats
assert stats.cache_hits and not stats.cache_misses
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Every objective by every search


def worths(objective: Objective, rows: np.ndarray, length: np.ndarray) -> np.ndarray:
    """What conjunctions are worth, from the formulas: rows (conjunctions, rows) that they
    select, and their lengths.
    """
    q = rows.astype(float)
    if isinstance(objective, SecondOrder):
        value = (q @ objective.gradient) ** 2 / (objective.ridge + q @ objective.curvature)
    elif isinstance(objective, GradientSum):
        value = np.abs(q @ objective.gradient)
    elif isinstance(objective, SignedWeights):
        value = q @ objective.weights
    elif isinstance(objective, SumOverClasses):
        value = np.asarray(sum(worths(part, rows, 0 * length) for part in objective.parts))
    elif isinstance(objective, CorrectiveDecrease):
        # distances to the rules found, a row more per penalty: normal equations lose
        # digits where rules are equal
        root = np.sqrt(objective.curvature)
        span = np.concatenate(
            [objective.found * root[:, None], np.diag(np.sqrt(objective.penalties))]
        )
        scaled = np.concatenate([q * root, np.zeros((len(q), len(objective.penalties)))], axis=1)
        outside = scaled - (scaled @ np.linalg.pinv(span, rcond=1e-9).T) @ span.T
        whole = objective.ridge + q @ objective.curvature
        rest = objective.ridge + np.sum(outside**2, axis=1)
        value = np.where(
            rest > 1e-9 * whole, (q @ objective.gradient) ** 2 / np.maximum(rest, 1e-9 * whole), 0.0
        )
    else:
        assert isinstance(objective, Orthogonal)
        root = np.ones(q.shape[1]) if objective.weights is None else np.sqrt(objective.weights)
        span = objective.found * root[:, None]
        vectors = (objective.gradient / root, q * root)
        g, outside = (v - v @ np.linalg.pinv(span).T @ span.T for v in vectors)
        square = np.sum(outside**2, axis=1)
        inside = square <= 1e-9 * (q @ root**2)
        q = q * root
        value = np.where(inside, 0.0, np.abs(q @ g) / (np.sqrt(square) + 1e-6))
    priced = (
        objective.rule_price or objective.condition_price or isinstance(objective, SignedWeights)
    )
    value = np.where(
        length > 0,
        value - objective.rule_price - objective.condition_price * length,
        0 if priced else value,
    )
    return value / (1 + length if objective.per_unit else 1) / (1 + objective.growth) ** length


def worth(space: SearchSpace, objective: Objective, rule: tuple[int, ...]) -> float:
    return float(worths(objective, space.selected(rule)[None], np.array([len(rule)]))[0])


def best_worth(space: SearchSpace, objective: Objective, max_length: int | None = None) -> float:
    """Over all conjunctions."""
    holds = space.activations.by_rule[:, space.activations.pattern]
    rows, length = np.ones((1, holds.shape[1]), bool), np.zeros(1, int)
    for proposition in holds:
        rows, length = (
            np.concatenate([rows, rows & proposition]),
            np.concatenate([length, length + 1]),
        )
    few = length <= (len(space) if max_length is None else max_length)
    return float(worths(objective, rows[few], length[few]).max())


@st.composite
def objectives(draw: st.DrawFn, most_propositions: int = 12) -> tuple[SearchSpace, Objective]:
    """Tiny problems in every objective, with prices of different kinds."""
    space, g, h, ridge = draw(problems(most_propositions))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    prices: dict[str, Any] = {
        "rule_price": draw(st.sampled_from([0.0, 0.0, 0.5, 2.0])),
        "condition_price": draw(st.sampled_from([0.0, 0.0, 0.01, 0.3, 1.0, 5.0])),
        "per_unit": draw(st.booleans()),
        "growth": draw(st.sampled_from([0.0, 0.0, 0.2])),
    }
    kind = draw(
        st.sampled_from(
            ["second order", "corrective", "gradient sum", "signed", "orthogonal", "classes"]
        )
    )
    if kind == "second order":
        return space, SecondOrder(g, h, ridge, **prices)
    if kind == "gradient sum":
        return space, GradientSum(g, **prices)
    if kind == "signed":
        return space, SignedWeights(g, **prices)
    rules = [
        space.selected(random.permutation(len(space))[: 1 + k % 2])
        for k in range(draw(st.integers(0, 3)))
    ]
    found = np.array(rules, bool).T.reshape(len(g), len(rules))
    if kind == "corrective":
        penalties = np.array([ridge] * len(rules))
        penalties[:1] = draw(st.sampled_from([0.0, ridge]))
        return space, CorrectiveDecrease(g, h, ridge, found, penalties, **prices)
    if kind == "classes":
        classes = [(g, h), (random.normal(size=len(g)), random.random(len(g))), (-g, h)]
        span = np.column_stack([np.ones(len(g), bool), found])
        penalties = np.array([0.0] + [ridge] * len(rules))
        parts = tuple(CorrectiveDecrease(*one, ridge, span, penalties) for one in classes)
        return space, SumOverClasses(parts, **prices)
    weights = random.integers(1, 5, len(g)) / 2.0 if draw(st.booleans()) else None
    return space, Orthogonal(g, found, weights, **prices)


def exact_searches(objective: Objective, max_length: int | None) -> list[Any]:
    limit = {} if max_length is None else {"max_length": max_length}
    searches = [functools.partial(search_best_first, **limit)]
    if objective.compiled:
        searches.append(functools.partial(search_depth_first, **limit))
        unpriced = objective.any_length and not objective.rule_price and max_length is None
        if unpriced and not isinstance(objective, CorrectiveDecrease):
            searches.append(rule_search.search_published)
    return searches


@settings(max_examples=250)
@given(problem=objectives(), max_length=st.sampled_from([None, None, 0, 1, 2, 3]))
def test_every_search_is_exact_for_every_objective(
    problem: tuple[SearchSpace, Objective], max_length: int | None
) -> None:
    space, objective = problem
    best = best_worth(space, objective, max_length)
    scale = 1e-9 * max(1.0, abs(best))
    for search in exact_searches(objective, max_length):
        found = search(space, objective)
        assert found.objective == pytest.approx(best, rel=1e-7, abs=scale)
        assert worth(space, objective, found.propositions) == pytest.approx(
            found.objective, rel=1e-7, abs=scale
        )
        assert found.status == Status.OPTIMAL
        assert found.objective <= found.bound <= found.objective * (1 + 2e-9) + scale
        assert max_length is None or len(found.propositions) <= max_length
        limited = search(space, objective, max_evaluations=3)
        assert limited.bound >= best - scale
        rough = search(space, objective, approximation=0.6)
        assert rough.objective >= 0.6 * best - scale
        assert rough.bound >= best - scale
        stopped = search(space, objective, stopped=lambda: True)
        assert stopped.objective >= worth(space, objective, ()) - scale
        assert stopped.bound >= best - scale


@settings(max_examples=200)
@given(
    problem=objectives(),
    max_length=st.integers(0, 2),
    looks=st.integers(0, 2),
    cells=st.sampled_from([2, 4, 64]),
    at_once=st.sampled_from([8, 1 << 20]),
)
def test_pairs_are_exact_for_every_objective(
    problem: tuple[SearchSpace, Objective], max_length: int, looks: int, cells: int, at_once: int
) -> None:
    """However the propositions share partitions, with a true bound when it is stopped, and the same
    with a device's ranking, in one part or in several.
    """
    space, objective = problem
    best = best_worth(space, objective, max_length)
    scale = 1e-9 * max(1.0, abs(best))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_space, "_TOGETHER", (cells, 256))
        parts = space.partitions
    assert parts is not None
    assert sorted(np.concatenate([part.propositions for part in parts])) == list(range(len(space)))
    for part in parts:
        np.testing.assert_array_equal(part.members[part.cell], space.masks[:, part.propositions])
    found = rule_search.search_pairs(space, objective, max_length=max_length)
    assert found.objective == pytest.approx(best, rel=1e-7, abs=scale)
    assert worth(space, objective, found.propositions) == pytest.approx(
        found.objective, rel=1e-7, abs=scale
    )
    assert found.status == Status.OPTIMAL
    assert found.objective <= found.bound <= found.objective * (1 + 2e-9) + scale
    assert len(found.propositions) <= max_length
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_PAIRS_AT_ONCE", at_once)
        ranked = rule_search.search_pairs(space, objective, max_length=max_length, on_device=True)
    assert ranked == found
    for on_device in (False, True):
        left = iter(range(looks))
        stopped = rule_search.search_pairs(
            space, objective, max_length=max_length, on_device=on_device,
            stopped=lambda left=left: next(left, -1) < 0,
        )  # fmt: skip
        assert stopped.objective >= best_worth(space, objective, min(max_length, 1)) - scale
        assert stopped.bound >= best - scale
    for most in (1, 3):  # the best single propositions are paired with all others
        some = rule_search.search_pairs(space, objective, max_length=max_length, max_pairs=most)
        single = best_worth(space, objective, min(max_length, 1))
        assert single - scale <= some.objective <= best + scale
        assert some.bound >= best - scale
        left_out = some.counts.get("pairs_left_out", 0) > 0
        assert some.status == (Status.MAX_ITERATIONS if left_out else Status.OPTIMAL)
        assert left_out or some.objective == pytest.approx(best, rel=1e-7, abs=scale)


def test_compiled_and_plain_histograms_of_pairs_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    space = SearchSpace.of(rng.random((200, 12)) < 0.5)
    g, h = rng.normal(size=200), rng.uniform(0.1, 1, 200)
    found = np.column_stack([np.ones(200, bool), space.selected([0, 1])])
    objective = CorrectiveDecrease(g, h, 1.0, found, np.array([0.0, 1.0]))
    monkeypatch.setattr(Kernels, "pay", lambda *_: False)
    plain = rule_search.search_pairs(space, objective)
    monkeypatch.setattr(Kernels, "pay", lambda *_: True)
    compiled = rule_search.search_pairs(space, objective)
    assert compiled.propositions == plain.propositions
    assert compiled.objective == pytest.approx(plain.objective, rel=1e-12)


@pytest.mark.parametrize(
    ("rows", "classes", "one_large"),
    [(60, 1, False), (400, 3, False), (20_000, 1, False), (20_000, 1, True)],
)
def test_bounds_of_pairs_are_those_of_their_values(
    rows: int, classes: int, one_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(rows)
    partitions = []
    for cells in (7, 2, 5, 80):  # thresholds from both sides, and categories
        member = np.tril(np.ones((cells, cells)))[:, :-1] if cells != 5 else np.eye(5)
        partitions.append(
            Partition(
                rng.integers(0, cells, rows).astype(np.uint8), np.arange(2 * member.shape[1]),
                np.hstack([member, 1 - member]),
            )
        )  # fmt: skip
    h = rng.uniform(0.1, 0.3, (classes, rows))
    q = np.column_stack([np.ones(rows), partitions[0].cell > 2])
    terms = np.empty((classes, 4, rows))
    for one, curvature in zip(terms, h, strict=True):
        root = np.linalg.inv(np.linalg.cholesky((q.T * curvature) @ q + np.diag([0.0, 2.0])))
        one[0] = rng.normal(size=rows) * np.sqrt(curvature)
        one[0] -= curvature * (q @ np.linalg.solve((q.T * curvature) @ q, q.T @ one[0]))
        one[1:] = curvature, *(curvature * (root @ q.T))
    if one_large:  # too large for 16-bit integers
        terms[0, 0, 5] = 300.0
    pairs = np.array([(a, b) for a in range(4) for b in range(a, 4)])
    compiled = CompiledPairs(terms, 2.0)
    bounds = compiled.bounds(partitions)
    assert bounds is not None
    found = bounds(pairs)
    best = np.array([compiled.values(partitions[a], partitions[b]).max() for a, b in pairs])
    assert (found >= best).all()
    # Sums of 16-bit integers are off by up to half a unit per row.
    assert (found <= best * 1.05 + 0.1 * best.max()).all()
    monkeypatch.setattr("jaxrules.solvers.rule_search.kernels.pair_bounds._LARGEST_SHARE", 0)
    as_they_are = CompiledPairs(terms, 2.0).bounds(partitions)
    assert as_they_are is not None
    assert (as_they_are(pairs) >= best).all()
    assert as_they_are(pairs) == pytest.approx(best, rel=1e-4)
    assert not one_large or found == pytest.approx(best, rel=1e-4)
    # Rounding might exceed a ridge close to 0: then there is no bound.
    assert CompiledPairs(terms, 1e-300).bounds(partitions) is None


@settings(max_examples=60)
@given(problem=objectives(), most=st.integers(1, 4), data=st.data())
def test_likely_pairs_are_examined(
    problem: tuple[SearchSpace, Objective], most: int, data: st.DataObject
) -> None:
    space, objective = problem
    parts = space.partitions or []
    places = list(itertools.combinations(range(len(parts)), 2))
    likely = data.draw(st.lists(st.sampled_from(places), unique=True, max_size=2)) if places else []
    found = rule_search.search_pairs(space, objective, max_pairs=most, likely=likely)
    for a, b in likely:
        for pair in itertools.product(parts[a].propositions, parts[b].propositions):
            one = worth(space, objective, tuple(map(int, pair)))
            assert found.objective >= one - 1e-9 * max(1.0, abs(one))
    n_pairs = len(parts) * (len(parts) + 1) // 2
    left_out = found.counts.get("pairs_left_out", 0)
    assert left_out <= max(0, n_pairs - len(likely) - 1)
    assert left_out > 0 or found.status == Status.OPTIMAL


@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("columns", [90, 800])
def test_interactions_are_found_that_no_single_column_shows(n_classes: int, columns: int) -> None:
    """In y = (a > 0) != (b > 0), beside columns with effects of their own."""
    rng = np.random.default_rng(columns)
    x = rng.integers(0, 8, (3000, columns)).astype(np.uint8)
    members = np.tril(np.ones((8, 8)))[:, :-1]
    parts = [Partition(one, np.arange(14), np.hstack([members, 1 - members])) for one in x.T]
    h = np.full((n_classes, 3000), 0.25)
    g = rng.normal(size=(n_classes, 3000)) / 2 + np.where(x[:, 5] > 2, 1.0, -0.5)
    g[-1] += np.where((x[:, 7] > 3) != (x[:, 40] > 3), 0.25, -0.25)
    g -= g.mean(axis=1, keepdims=True)
    found = strongest_interactions(parts, g, h, 20, lambda: False)
    assert len(set(found)) == 20
    assert found[0] == (7, 40)
    assert all(a < b for a, b in found)
    assert strongest_interactions(parts, g, h, 10**6, lambda: False)[:20] == found
    assert strongest_interactions(parts, g, h, 20, lambda: True) == []


def test_interactions_of_too_many_columns_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Partition(np.zeros(600, np.uint8), np.arange(1), np.ones((1, 1)))] * 3
    g = h = np.ones((1, 600))
    assert strongest_interactions(parts, g, h, 2, lambda: False) == [(0, 1), (0, 2)]
    monkeypatch.setattr(interactions, "_MOST_PRODUCTS", 9 * 499)
    assert strongest_interactions(parts, g, h, 2, lambda: False) == []


@settings(max_examples=100)
@given(problem=objectives(8), looks=st.integers(0, 2), limit=st.integers(1, 60))
def test_triples_are_exact_for_every_objective(
    problem: tuple[SearchSpace, Objective], looks: int, limit: int
) -> None:
    space, objective = problem
    best = best_worth(space, objective, 3)
    scale = 1e-9 * max(1.0, abs(best))
    found = rule_search.search_triples(space, objective)
    ranked = rule_search.search_triples(space, objective, on_device=True)
    assert ranked.propositions == found.propositions
    assert ranked.bound == found.bound
    with pytest.MonkeyPatch.context() as patch:  # in small steps
        patch.setattr("jaxrules.solvers.rule_search.triples._ENTRIES", 3)
        patch.setattr("jaxrules.solvers.rule_search.triples._FIRST", 1)
        patch.setattr("jaxrules.solvers.rule_search.objectives._ENTRIES", 2)
        steps = rule_search.search_triples(space, objective)
    assert steps.objective == pytest.approx(found.objective, rel=1e-9)
    assert steps.status == Status.OPTIMAL
    assert found.objective == pytest.approx(best, rel=1e-7, abs=scale)
    assert found.status == Status.OPTIMAL
    assert len(found.propositions) <= 3
    assert found.objective <= found.bound <= found.objective * (1 + 2e-9) + scale
    left = iter(range(looks))
    for limits in ({"max_evaluations": limit}, {"stopped": lambda: next(left, -1) < 0}):
        limited = rule_search.search_triples(space, objective, **limits)
        assert limited.bound >= best - scale
        assert limited.objective <= best + scale


@settings(max_examples=60)
@given(problem=objectives(6), max_length=st.integers(2, 3), on_device=st.booleans())
def test_conjunctions_that_are_left_out(
    problem: tuple[SearchSpace, Objective], max_length: int, on_device: bool
) -> None:
    """Without the rows of the best conjunction: the best of all others, by enumeration."""
    space, objective = problem
    search = rule_search.search_pairs if max_length == 2 else rule_search.search_triples
    taken = space.selected_groups(search(space, objective).propositions)
    found = search(
        space, objective, on_device=on_device,
        left_out=lambda rule: bool((space.selected_groups(rule) == taken).all()),
    )  # fmt: skip
    others = [
        rule
        for size in range(max_length + 1)
        for rule in itertools.combinations(range(len(space)), size)
        if (space.selected_groups(rule) != taken).any()
    ]
    best = max((worth(space, objective, rule) for rule in others), default=0.0)
    assume(best > 0)
    scale = 1e-9 * max(1.0, abs(best))
    assert found.objective == pytest.approx(best, rel=1e-7, abs=scale)
    assert found.bound >= best - scale
    assert (space.selected_groups(found.propositions) != taken).any()


def test_pairs_need_few_cells_and_short_rules() -> None:
    codes = np.arange(300, dtype=np.uint16)[:, None]
    wide = SearchSpace.of_codes(codes, np.zeros(300, np.int32), np.ones(300, bool), codes[:, 0])
    assert wide.partitions is None
    for space, max_length in ((wide, 2), (SearchSpace.of(np.eye(4, dtype=bool)), 3)):
        with pytest.raises(
            ValueError, match="need max_length of at most 2, and columns of few cells"
        ):
            rule_search.search_pairs(
                space, GradientSum(np.ones(space.activations.n_rows)), max_length=max_length
            )


@settings(max_examples=300)
@given(
    problem=objectives(),
    width=st.sampled_from([1, 2, 5, 40]),
    max_length=st.sampled_from([None, None, 0, 1, 2]),
    count=st.integers(1, 4),
)
def test_beams_keep_what_they_say(
    problem: tuple[SearchSpace, Objective], width: int, max_length: int | None, count: int
) -> None:
    space, objective = problem
    best, nothing = best_worth(space, objective, max_length), worth(space, objective, ())
    (found,) = search_beams(space, objective, width=width, max_length=max_length, count=count)
    assert 1 <= len(found) <= count
    scale = 1e-9 * max(1.0, abs(best))
    for one in found:
        assert one.bound is None
        assert one.status == Status.CONVERGED
        assert one.objective == pytest.approx(
            worth(space, objective, one.propositions), rel=1e-7, abs=scale
        )
        assert nothing - scale <= one.objective <= best + scale
    if max_length == 1 and width > len(space):  # one level, nothing lost
        assert found[0].objective == pytest.approx(best, rel=1e-7, abs=scale)
    assert [one.objective for one in found] == sorted(
        [one.objective for one in found], reverse=True
    )
    assert len({space.selected(one.propositions).tobytes() for one in found}) == len(found)
    stopped = search_beams(
        space, objective, width=width, max_length=max_length, stopped=lambda: True
    )[0][0]
    if max_length != 0:
        assert (
            stopped.objective
            >= max(nothing, *(worth(space, objective, (a,)) for a in range(len(space)))) - scale
        )


@settings(max_examples=100)
@given(
    problem=problems(most_propositions=9),
    rows=st.integers(1, 7),
    seed=st.integers(0, 1000),
    price=st.sampled_from([0.0, 0.1, 1.0]),
    width=st.sampled_from([1, 3, 10]),
    count=st.integers(1, 3),
)
def test_many_rows_of_weights_are_searched_as_one_by_one(
    problem: Problem, rows: int, seed: int, price: float, width: int, count: int
) -> None:
    space, g = problem[:2]
    weights = np.random.default_rng(seed).normal(size=(rows, len(g))).round(1)
    weights[0] = g
    together = search_beams(
        space, SignedWeights(weights, condition_price=price), width=width, count=count
    )
    for row, found in zip(weights, together, strict=True):
        (alone,) = search_beams(
            space, SignedWeights(row, condition_price=price), width=width, count=count
        )
        assert [one.propositions for one in found] == [one.propositions for one in alone]
        assert [one.objective for one in found] == [one.objective for one in alone]
    with pytest.raises(ValueError, match="one row of weights, got 2; use search_beams"):
        search_depth_first(space, SignedWeights(np.stack([g, g])))


def test_a_ridge_bounds_the_worth_of_a_rule_in_the_span_of_others() -> None:
    """Its share of h is 0, and counts as next to nothing in the bound."""
    space, every = SearchSpace.of(np.ones((1, 1), bool)), np.ones((1, 1), bool)
    objective = CorrectiveDecrease(
        np.array([-0.21879166]), np.array([2.0]), 1e-5, every, np.zeros(1)
    )
    (terms,) = objective.terms(space)
    assert objective.value(terms @ np.ones((1, 1))) <= objective.bounds(terms, np.ones((1, 1)))


@settings(max_examples=200)
@given(problem=objectives(), seed=st.integers(0, 1000))
def test_bounds_are_bounds(problem: tuple[SearchSpace, Objective], seed: int) -> None:
    """On random sets of merged rows: no subset has a greater value."""
    space, objective = problem
    random = np.random.default_rng(seed)
    terms, n = objective.terms(space)[0], len(space.masks)
    members = (random.random((n, 5)) < 0.7).astype(float)
    subsets = (random.random((40, n, 5)) < 0.5) * members
    values = np.stack([objective.value(terms @ subset) for subset in subsets])
    for bound in (objective.bounds(terms, members), objective.potential(terms @ members)):
        assert (values <= bound * (1 + 1e-9) + 1e-9).all()


def test_rules_with_equal_sums_are_different_rules() -> None:
    """Two propositions select different rows with the same sums; only the second
    one leads to the best rule.
    """
    first, second, decoy = [1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0, 0]
    third = [1, 1, 1, 1, 1, 0, 1]
    masks = np.array([first, second, third, decoy], bool).T
    g, h = np.array([2.0, 2.0, 2.0, 4.0, 4.0, -2.0, -10.0]), np.full(7, 2.0)
    assert (g @ masks).tolist() == [6.0, 6.0, 4.0, 4.0]
    for objective in (SecondOrder(g, h, 1.0), GradientSum(g), SignedWeights(g)):
        found = rule_search.search_beam(SearchSpace.of(masks), objective, width=2)
        assert found.propositions == (1, 2)
        assert found.objective == best_worth(SearchSpace.of(masks), objective)


def test_objectives_that_a_search_does_not_know_are_refused() -> None:
    space, g, h, _ = a_long_problem(n=20)
    with pytest.raises(
        TypeError, match="no compiled search maximises Orthogonal; use search_best_first"
    ):
        search_depth_first(space, Orthogonal(g, np.zeros((20, 0), bool)))
    with pytest.raises(ValueError, match="prices or limits on length"):
        rule_search.search_published(space, SecondOrder(g, h, 1.0, condition_price=0.1))


def test_the_shortest_description_can_be_stopped() -> None:
    random = np.random.default_rng(0)
    space = SearchSpace.of(random.random((6000, 40)) < 0.93)
    rows = space.selected_groups(range(0, 40, 3))
    looks = itertools.count()
    hurried = shortest_equivalent(space, rows, lambda: next(looks) > 1)
    np.testing.assert_array_equal(space.selected_groups(hurried), rows)
    short = shortest_equivalent(space, rows)
    np.testing.assert_array_equal(space.selected_groups(short), rows)
    assert len(short) <= len(hurried)


@pytest.mark.parametrize("seed", range(4))
def test_a_search_that_is_stopped_is_not_worse_than_a_wide_beam(seed: int) -> None:
    random = np.random.default_rng(seed)
    space = SearchSpace.of(random.random((400, 120)) < 0.8)
    wanted = space.selected(random.permutation(120)[:6])
    problem = SecondOrder(random.normal(size=400) - 0.4 * wanted, np.ones(400), 1.0)
    looks = itertools.count()
    hurried = search_depth_first(space, problem, stopped=lambda: next(looks) > 60)
    assert hurried.status is Status.TIME_LIMIT
    limited = search_depth_first(space, problem, max_evaluations=1000)
    assert limited.status is Status.MAX_ITERATIONS
    assert min(limited.objective, hurried.objective) >= rule_search.search_beam(
        space, problem, width=10
    ).objective * (1 - 1e-9)


def test_rounding_breaks_no_ties_between_extensions() -> None:
    near = np.array([1.0, 2.0, 2.0 - 1e-15, 2.0 + 1e-15, 0.5, 1.0 + 1e-15])
    assert best_first(near).tolist() == [1, 2, 3, 0, 5, 4]
    assert best_first(-near).tolist() == [4, 0, 5, 1, 2, 3]
    assert best_first(np.empty(0)).tolist() == []


def test_greedy_goes_on_with_both_of_two_equal_beginnings() -> None:
    """The first two columns select rows of sum 4; only one of them leads on, with the third."""
    masks = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 1], [0, 1, 1], [0, 1, 0], [0, 0, 1]], bool)
    g = np.array([2.0, 2.0, 2.5, 2.5, -1.0, -5.0])
    for order in ([0, 1, 2], [1, 0, 2]):
        space = SearchSpace.of(masks[:, order])
        found = search_beams(space, GradientSum(g), width=1)[0][0]
        assert found.objective == pytest.approx(5.0)


def test_a_beam_per_unit_of_complexity_ends_when_length_no_longer_pays() -> None:
    """Every condition excludes a bad row: the value rises up to all forty conditions, but the value
    per unit never does.
    """
    masks = np.concatenate([~np.eye(40, dtype=bool), np.ones((160, 40), bool)])
    g = np.where(np.arange(200) < 40, -0.01, 1.0)
    space, alone = SearchSpace.of(masks), {"gradient": g, "curvature": np.ones(200), "ridge": 1.0}
    found = rule_search.search_beam(space, SecondOrder(**alone, per_unit=True), width=10)
    assert found.propositions == ()
    assert found.evaluations <= 5 * 10 * 40
    assert len(rule_search.search_beam(space, SecondOrder(**alone), width=10).propositions) == 40


def test_a_description_that_may_be_longer_than_needed_proves_nothing() -> None:
    """Two propositions exclude what the greedy search excludes with three, but there is no time
    left to find out.
    """
    excluded = [range(7), range(7, 14), [*range(4), *range(7, 11)], [4, 5, 11, 12], [6, 13]]
    excluded += [[row] for row in range(14)]  # which keeps the rows apart
    holds = np.array([[row not in rows for rows in excluded] for row in range(16)])
    space = SearchSpace.of(holds)
    problem = GradientSum(np.where(holds.all(axis=1), -30.0, 1.0), condition_price=0.01)
    best, terms = 60 - 0.02, problem.terms(space)[0]
    hurried = shortest.conclude(
        space, problem, terms, (2, 3, 4), Status.OPTIMAL, 1, -np.inf, stopped=lambda: True
    )
    assert hurried.objective < best - 0.005
    assert hurried.bound == pytest.approx(best)
    assert hurried.status == Status.TIME_LIMIT
    known = shortest.conclude(
        space, problem, terms, (0, 1), Status.OPTIMAL, 1, -np.inf, stopped=lambda: True
    )
    patient = shortest.conclude(space, problem, terms, (2, 3, 4), Status.OPTIMAL, 1, -np.inf)
    assert known.propositions == patient.propositions == (0, 1)
    assert known.status == patient.status == Status.OPTIMAL


@given(
    st.integers(0, 20),
    st.lists(st.tuples(st.booleans(), st.integers(0, 22)), min_size=1, max_size=12),
)
def test_cells_of_nested_thresholds_are_those_that_their_matrix_distinguishes(largest, thresholds):
    above, cell = (np.array(part) for part in zip(*thresholds, strict=True))
    values = np.arange(largest + 1)[:, None]
    holds = np.where(above, values >= cell, values <= cell)
    found = rule_space._cells(largest, above, cell.astype(np.uint16))
    same = (holds[:, None] == holds).all(axis=2)
    np.testing.assert_array_equal(found[:, None] == found, same)


@given(st.integers(0, 2**31), st.integers(2, 200), st.integers(1, 6))
@settings(max_examples=30)
def test_sums_by_cells_are_those_of_extensions(seed: int, n: int, columns: int) -> None:
    from jaxrules.solvers.rule_search.kernels.extensions import extension_sums, sums_by_cells

    random = np.random.default_rng(seed)
    X = random.integers(0, random.integers(2, 12), (n, columns)).astype(float)
    X[0], X[-1] = -1.0, 20.0
    table = as_table(X)
    pool = all_propositions(table, max_cut_points=9)
    space = SearchSpace.of_codes(*pool.cell_codes(table))
    terms = random.normal(size=(2, 3, space.activations.n_patterns))
    rows = random.random((4, space.activations.n_patterns)) < 0.5
    owners = random.integers(0, 2, 4)
    expected = np.empty((3, 4, len(space)))
    extension_sums(space.masks, terms, owners, rows, expected)
    cells = space.cells
    if cells is None:
        assert len(space) < 4 * len(space.partitions or [])
        return
    sums = np.empty_like(expected)
    of_cells = np.empty((3, cells.number))
    sums_by_cells(cells.of_rows, cells.ends, cells.parts, terms, owners, rows, of_cells, sums)
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)
