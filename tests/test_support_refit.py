"""Refits of one support: groups of equal patterns, and Newton's method with capped weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import expit
from threadpoolctl import threadpool_info, threadpool_limits

from jaxrules.ensembles.lire import search
from jaxrules.ensembles.lire.problem import make_problem
from jaxrules.ensembles.lire.refit import CONVERGED, Groups, group_patterns, regroup
from jaxrules.losses import loss_by_name
from jaxrules.rules.rows import Activations
from jaxrules.solvers.blas import one_blas_thread
from jaxrules.solvers.linear.newton import newton_on_host


def same_groups(groups: Groups, patterns: np.ndarray) -> bool:
    """Equal patterns share a group, different ones do not, and every member lies in its group."""
    distinct, truth = np.unique(patterns.T, axis=0, return_inverse=True)
    pairs = np.unique(np.stack([truth.ravel(), groups.group]), axis=1).shape[1]
    members = (groups.group[groups.member] == np.arange(len(groups.member))).all()
    return bool(members) and pairs == len(distinct) == len(groups.member)


@given(st.integers(0, 10_000), st.integers(0, 6), st.integers(0, 3), st.integers(0, 3))
def test_groups_after_a_move_are_those_of_the_columns(
    seed: int, size: int, leaving: int, entering: int
) -> None:
    rng = np.random.default_rng(seed)
    before, added = rng.random((size, 40)) < 0.4, rng.random((entering, 40)) < 0.4
    groups = group_patterns(before)
    if size:
        assert same_groups(groups, before)
    stay = before[leaving:]
    after = regroup(groups, stay[:, groups.member] if leaving else None, added)
    patterns = np.concatenate([stay, added])
    assert same_groups(after, patterns) if len(patterns) else len(after.member) == 1


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(["exponential", "logistic"]))
def test_capped_weights_are_the_best_also_on_nearly_separable_data(seed: int, loss: str) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    columns = np.concatenate([np.ones((24, 1)), rng.choice([-1.0, 1.0], (24, size))], axis=1)
    sign = np.where(columns @ rng.normal(size=size + 1) + 0.1 * rng.normal(size=24) > 0, 1.0, -1.0)
    mass = rng.dirichlet(np.ones(24))
    cap = np.append(np.inf, np.full(size, 4.0))
    start = rng.uniform(-4, 4, size + 1)

    def value(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins = sign * (columns @ weights)
        if loss == "exponential":
            slopes = mass * np.exp(-margins)
            return float(slopes.sum()), -(sign * slopes) @ columns
        return float(mass @ np.logaddexp(0, -margins)), -(sign * mass * expit(-margins)) @ columns

    weights, reached = newton_on_host(
        loss_by_name(loss), columns.T, sign, mass, np.zeros(size + 1), start, ends=(-cap, cap),
        relative=0.0, absolute=CONVERGED,
    )  # fmt: skip
    assert (np.abs(weights) <= cap).all()
    assert value(weights)[0] == pytest.approx(reached, abs=1e-12)
    bounds = [(None, None)] + [(-4.0, 4.0)] * size
    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 2000}
    oracle = optimize.minimize(
        value, np.zeros(size + 1), jac=True, bounds=bounds, options=options
    ).fun
    assert reached <= oracle + 1e-7


def blas_threads() -> set[int]:
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_refits_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads spin while they wait for a core: on a busy machine a fit took seven times as long."""
    seen: list[set[int]] = []

    def refit(*given: Any, **how: Any) -> tuple[np.ndarray, float]:
        seen.append(blas_threads())
        return newton_on_host(*given, **how)

    monkeypatch.setattr(search, "newton_on_host", refit)
    rng = np.random.default_rng(0)
    holds, sign = rng.random((30, 4)) < 0.5, rng.choice([-1.0, 1.0], 30)
    problem = make_problem(
        Activations.of_matrix(holds), sign, np.ones(30), loss_by_name("logistic")
    )
    with threadpool_limits(2, "blas"):
        before = blas_threads()  # a library without threads may be loaded beside NumPy's
        search.SupportSearch(problem, 0.01, 0.01).start_from(np.arange(3), np.zeros(3))
        assert blas_threads() == before
    assert 2 in before
    assert seen[-1] == {1}


def test_one_thread_ends_with_the_last_that_needs_it() -> None:
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        first, second, inner = one_blas_thread(), one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        with inner:
            first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
