"""The best half-plane of two columns against all subsets that linear programs can separate."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import jaxrules as jr
from jaxrules.solvers import half_planes
from jaxrules.solvers.half_planes import MOST_WORK, HalfPlaneSearch, work


def value(sums: np.ndarray) -> np.ndarray:
    """The decrease of a second-order model."""
    result: np.ndarray = sums[0] ** 2 / (sums[1] + 0.5)
    return result


def separable(points: np.ndarray, inside: np.ndarray) -> bool:
    """Whether a line has these points on one side: a linear program with margin 1."""
    signs = np.where(inside, -1.0, 1.0)
    system = np.column_stack([signs[:, None] * points.T, -signs])
    found = linprog(np.zeros(3), system, -np.ones(len(signs)), bounds=[(None, None)] * 3)
    return bool(found.status == 0)


def brute_force(columns: np.ndarray, terms: np.ndarray) -> float:
    """The greatest value over all subsets of the rows that a line separates, with and without those
    with a missing number.
    """
    best = -np.inf
    for i, j in itertools.combinations(range(len(columns)), 2):
        pair = columns[[i, j]]
        lost = np.isnan(pair).any(axis=0)
        points, at = np.unique(pair[:, ~lost], axis=1, return_inverse=True)
        for inside in itertools.product([False, True], repeat=points.shape[1]):
            if not separable(points, np.array(inside)):
                continue
            for missing in (False, True):
                holds = np.full(len(lost), missing)
                holds[~lost] = np.array(inside)[at.ravel()]
                best = max(best, float(value(terms @ holds)))
    return best


def problem_of(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in general position, or on a small grid, where many lie on a line; some missing."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 8)), int(rng.integers(2, 4))
    columns = rng.normal(size=(d, n)) if seed % 2 else rng.integers(0, 3, (d, n)).astype(float)
    if seed % 3 == 0:
        columns[0, rng.random(n) < 0.2] = np.nan
    return columns, np.stack([rng.normal(size=n), rng.random(n)])


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_the_best_half_plane_is_brute_force(seed: int) -> None:
    columns, terms = problem_of(seed)
    found, best = HalfPlaneSearch(columns).best(terms, value), brute_force(columns, terms)
    assert found.best is not None
    assert found.best.value == pytest.approx(best, rel=1e-9)
    assert found.bound == pytest.approx(best, rel=1e-9)
    holds = np.array(found.best.w) @ columns[list(found.best.columns)] >= found.best.threshold
    lost = np.isnan(columns[list(found.best.columns)]).any(axis=0)
    holds = np.where(lost, found.best.missing, holds)
    assert float(value(terms @ holds)) == pytest.approx(best, rel=1e-9)
    assert np.hypot(*found.best.w) == pytest.approx(1.0)


@pytest.mark.parametrize("grid", [False, True])
def test_no_direction_does_better(grid: bool) -> None:
    """200 rows, 2000 directions, all thresholds."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 9, (2, 200)).astype(float) if grid else rng.normal(size=(2, 200))
    terms = np.stack([rng.normal(size=200) + (columns[0] - columns[1] > 0.3), rng.random(200)])
    found = HalfPlaneSearch(columns).best(terms, value)
    assert found.best is not None
    assert found.bound is not None
    assert found.best.value == pytest.approx(found.bound, rel=1e-9)
    for angle in np.linspace(0, 2 * np.pi, 2000):
        heights = np.array([np.cos(angle), np.sin(angle)]) @ columns
        order = np.argsort(heights)
        sums = np.cumsum(terms[:, order], axis=1)[:, :-1]
        ends = np.diff(heights[order]) > 1e-9
        assert value(sums)[ends].max() <= found.bound * (1 + 1e-9)


@pytest.mark.parametrize("seed", [1, 6])
@pytest.mark.parametrize(("at_once", "kept"), [(1, 1 << 20), (20, 0), (20, 1 << 20)])
def test_orders_are_kept(
    monkeypatch: pytest.MonkeyPatch, seed: int, at_once: int, kept: int
) -> None:
    """Another objective has the half-plane of a search of its own, to the last bit."""
    monkeypatch.setattr(half_planes, "_AT_ONCE", at_once)
    monkeypatch.setattr(half_planes, "_MOST_KEPT", kept)
    columns, terms = problem_of(seed)
    search = HalfPlaneSearch(columns)
    looks = itertools.count()
    search.best(terms, value, lambda: next(looks) > 1)  # knows some orders
    for sign in (1.0, -1.0, 1.0):
        own = terms * [[sign], [1.0]] + [[0.1], [0.0]]
        assert search.best(own, value) == HalfPlaneSearch(columns).best(own, value)


def test_a_stopped_search_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_planes, "_AT_ONCE", 1)
    columns, terms = problem_of(1)
    looks = itertools.count()
    found = HalfPlaneSearch(columns).best(terms, value, lambda: next(looks) > 2)
    assert found.bound is None
    assert HalfPlaneSearch(columns[:1]).best(terms, value).best is None


def test_work_counts_lines_through_distinct_points() -> None:
    few: Any = np.tile([0.0, 1.0], (3, 500))
    assert work(few) == 3 * 4 * (4 + 200)
    assert work(np.random.default_rng(0).normal(size=(2, 3000))) == 3000 * 3200 < MOST_WORK


# In a stage of boosting


def pairs_of(X: Any, y: Any, **options: Any) -> jr.Fit[jr.RuleEnsemble]:
    return jr.boosting.fit(
        X, y, **({"max_rules": 1, "max_length": 1, "max_nonzeros": 2, "l2_penalty": 1.0} | options)
    )


def test_a_stage_of_pairs_is_proved(rng: np.random.Generator) -> None:
    """The best rule of all directions of two columns, by the risk that it leaves."""
    X = rng.normal(size=(60, 3))
    X[:, 2] = rng.integers(0, 3, 60)
    y = (X[:, 0] + X[:, 1] > 0.3) + 0.3 * rng.normal(size=60)
    fit = pairs_of(X, y)
    (stage,) = fit.details.stages
    assert stage.status == "optimal"
    assert stage.bound == pytest.approx(stage.objective, rel=1e-6)
    centred = y - y.mean()
    best = 0.0  # (sum g)^2 / (ridge + |q - mean|^2), up to its constant
    for i, j in itertools.combinations(range(3), 2):
        for angle in np.linspace(0, np.pi, 720, endpoint=False) + 1e-3:
            order = np.argsort(np.array([np.cos(angle), np.sin(angle)]) @ X[:, [i, j]].T)
            sums, m = np.cumsum(centred[order])[:-1], np.arange(1, 60)
            best = max(best, float((sums**2 / (0.5 + m * (60 - m) / 60)).max()))
    rows = fit.model.conjunctions.satisfied(jr.as_table(X))[:, 0]
    m = rows.sum()
    assert centred[rows].sum() ** 2 / (0.5 + m * (60 - m) / 60) >= best * (1 - 1e-9)


def test_what_is_not_proved_says_so(rng: np.random.Generator) -> None:
    X = rng.normal(size=(50, 3))
    y = X[:, 0] + X[:, 1] > 0
    for options in ({"max_nonzeros": 3}, {"max_length": 2}, {"monotone": {0: 1}}):
        (stage,) = pairs_of(X, y, **options).details.stages
        assert stage.bound is None
        assert stage.status == "converged"


def test_pairs_with_missing_numbers_categories_and_classes(rng: np.random.Generator) -> None:
    X = pd.DataFrame(
        {
            "a": np.where(rng.random(80) < 0.2, np.nan, rng.normal(size=80)),
            "b": rng.normal(size=80),
            "c": rng.choice(["u", "v", "w"], 80),
        }
    )
    y = np.where(X.a.fillna(1.0) + X.b > 0, "p", np.where(X.c == "u", "q", "r"))
    options = {"max_rules": 3, "missing": "own_category"}
    for target in (y, y == "p", X.b + (X.c == "u")):
        stages = pairs_of(X, target, **options).details.stages
        assert all(stage.status == "optimal" for stage in stages)
        assert all(stage.gap < 1e-6 for stage in stages)


def test_pairs_of_many_rows_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_planes, "MOST_WORK", 100)
    X = np.random.default_rng(0).normal(size=(50, 3))
    (stage,) = pairs_of(X, X[:, 0] + X[:, 1]).details.stages
    assert stage.bound is None
