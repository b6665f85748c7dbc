"""The bound of supports: duality against brute force, and branch-and-bound from poor incumbents."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import jaxrules as jr
from jaxrules.ensembles.lire.bound import TOLERANCE, BranchAndBound, Node, Relaxation
from jaxrules.ensembles.lire.problem import make_problem
from jaxrules.ensembles.lire.search import SupportSearch
from jaxrules.losses import Loss, loss_by_name
from jaxrules.rules.rows import Activations

LOSSES = ("exponential", "logistic", "squared")


def small_search(
    seed: int, loss: str, encoding: Any = "signed", rules: int = 5, **options: Any
) -> SupportSearch:
    """A noisy target on a few 0/1 columns, with penalties that leave some of them out."""
    rng = np.random.default_rng(seed)
    satisfied = rng.random((40, rules)) < rng.uniform(0.15, 0.8, rules)
    score = satisfied @ rng.normal(size=rules) + rng.logistic(size=40)
    target = score if loss == "squared" else np.where(score > np.median(score), 1.0, -1.0)
    weight = rng.integers(1, 4, 40).astype(float)
    problem = make_problem(
        Activations.of_matrix(satisfied), target, weight, loss_by_name(loss), encoding
    )
    return SupportSearch(
        problem,
        *rng.choice([0.0, 0.005, 0.03, 0.1], 2),
        **{"l2_penalty": float(rng.choice([0.1, 1.0, 5.0]))} | options,
    )


def brute_force(search: SupportSearch) -> dict[tuple[int, ...], float]:
    """The objective of every support, of indices into the columns that may
    enter, by a general solver.
    """
    problem = search.problem
    columns = np.flatnonzero(problem.origin >= 0)
    target, mass = problem.target, problem.mass
    loss: Loss = problem.loss
    objectives = {}
    for size in range(len(columns) + 1):
        for support in itertools.combinations(range(len(columns)), size):
            chosen = columns[list(support)]
            entries = problem.entries(np.append(0, chosen), np.arange(len(mass)))
            ridge = np.append(0.0, search.ridge[chosen])

            def value(b: Any, entries: Any = entries, ridge: Any = ridge) -> Any:
                scores = entries @ b
                slope = (mass * loss.gradient(target, scores)) @ entries + ridge * b
                return mass @ loss.value(target, scores) + ridge @ b**2 / 2, slope

            bounds = (
                [(None, None)] + [(-problem.cap, problem.cap)] * size
                if np.isfinite(problem.cap)
                else None
            )
            found = minimize(
                value,
                np.zeros(size + 1),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"ftol": 0, "gtol": 1e-9},
            )
            objectives[support] = (
                float(found.fun)
                + problem.constant
                + problem.penalty(chosen, search.gamma, search.lam)
            )
    return objectives


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.sampled_from(LOSSES),
    st.sampled_from(["signed", "binary"]),
    st.booleans(),
)
@example(seed=187, loss="exponential", encoding="signed", ridge=False)
def test_every_dual_point_bounds_every_support(
    seed: int, loss: str, encoding: str, ridge: bool
) -> None:
    """Also far from the solution, by size, with and without every column; the relaxation's own
    point does best.
    """
    ridge = ridge or loss == "squared"
    search = small_search(seed, loss, encoding, rules=4, **({} if ridge else {"l2_penalty": 0.0}))
    relaxation, objectives = Relaxation(search), brute_force(search)
    rng = np.random.default_rng(seed)
    n = len(relaxation.columns)
    state = rng.integers(0, 3, n)  # out, in, free
    node = Node(0.0, 0, state.astype(np.int8), (0, n), np.zeros(n), 0.0)
    within = {
        s: v
        for s, v in objectives.items()
        if all(state[j] for j in s) and set(np.flatnonzero(state == 1)) <= set(s)
    }
    solution = relaxation.solve(node, 1e-10)
    own = relaxation.bounds(node, solution.weights, solution.intercept)
    for weights, intercept in (
        (solution.weights, solution.intercept),
        (rng.normal(size=n), rng.normal()),
    ):
        found = relaxation.bounds(node, weights, float(intercept))
        assert found.least <= own.least + (1e-6 if ridge else 1e-4)
        sizes = np.arange((state == 1).sum(), (state != 0).sum() + 1)
        assert np.array_equal(np.flatnonzero(np.isfinite(found.of_size)), sizes)
        for size in sizes.tolist():
            assert found.of_size[size] <= min(v for s, v in within.items() if len(s) == size) + 1e-8
        for column in np.flatnonzero(state == 2).tolist():
            assert found.entering[column] <= min(v for s, v in within.items() if column in s) + 1e-8
            assert (
                found.leaving[column] <= min(v for s, v in within.items() if column not in s) + 1e-8
            )
    if not (state == 2).any():  # nothing is relaxed
        assert own.least == pytest.approx(min(within.values()), rel=1e-5, abs=1e-7)


@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.sampled_from(LOSSES),
    st.sampled_from(["signed", "binary"]),
    st.sampled_from([None, 2]),
)
@example(296612, "logistic", "binary", 2)  # the bound of a node without free columns decides
def test_branch_and_bound_finds_the_optimum_from_the_empty_model(
    seed: int, loss: str, encoding: str, most: int | None
) -> None:
    search = small_search(seed, loss, encoding, most=most)
    best = min(v for s, v in brute_force(search).items() if most is None or len(s) <= most)
    search.moves = 0  # no local search: what the relaxations suggest is all there is
    tree = BranchAndBound(search, search.start_empty())
    bounds = []
    while not tree.closed:
        tree = BranchAndBound(search, search.start_empty())
        tree.run(len(bounds) + 1)
        bounds.append(tree.bound)
        assert tree.bound <= best + 1e-8 <= tree.best.objective + 2e-8
    assert bounds == sorted(bounds)
    assert tree.best.objective == pytest.approx(best, rel=2 * TOLERANCE, abs=1e-8)
    assert tree.bound >= tree.best.objective * (1 - 1e-5) - 1e-8


def test_a_part_without_columns_is_bounded() -> None:
    search = small_search(0, "logistic", rules=4)
    search.lam = 0.0
    relaxation = Relaxation(search)
    n = len(relaxation.columns)
    node = Node(0.0, 0, np.zeros(n, np.int8), (0, 0), np.zeros(n), 0.0)
    solution = relaxation.solve(node, 1e-10)
    found = relaxation.bounds(node, solution.weights, solution.intercept)
    assert found.least == pytest.approx(search.start_empty().objective, rel=1e-7)


@pytest.mark.parametrize("seconds", [0.0, 1e-7, 2e-7])
def test_bounds_hold_where_steps_would_take_too_long(seconds: float) -> None:
    search = small_search(3, "logistic")
    best = min(brute_force(search).values())
    tree = BranchAndBound(search, search.start_empty(), seconds_left=lambda: seconds)
    tree.run(30)
    assert tree.bound <= best + 1e-8 <= tree.best.objective + 2e-8


def test_a_stopped_search_keeps_what_it_has_proved() -> None:
    search = small_search(3, "logistic", rules=12)
    looks = itertools.count()
    search.stopped = lambda: next(looks) > 4
    tree = BranchAndBound(search, search.start_empty())
    tree.run()
    assert not tree.closed
    assert 0 < tree.bound < tree.best.objective
    search.stopped = lambda: True
    tree = BranchAndBound(search, search.start_empty())
    tree.run()
    assert (tree.bound, tree.nodes) == (0.0, 0)


# The facade


def data(seed: int = 0, rules: int = 10) -> tuple[np.ndarray, np.ndarray, jr.Conjunctions]:
    rng = np.random.default_rng(seed)
    X = (rng.random((80, rules)) < rng.uniform(0.2, 0.7, rules)).astype(float)
    y = (X @ rng.normal(size=rules) + rng.logistic(size=80) > 0).astype(int)
    schema = jr.as_table(X).schema
    return X, y, jr.Conjunctions.build(schema, [[jr.Condition.above(j, 0.5)] for j in range(rules)])


def test_a_fit_is_proved_or_says_how_far_it_is() -> None:
    X, y, rules = data()
    options = {"rules": rules, "restarts": 0, "global_penalty": 0.005, "search": "optimal"}
    whole = jr.lire.fit(X, y, **options)
    told = [step.bound for step in whole.history if step.bound is not None]
    assert told == sorted(told)
    assert len(told) > 1
    assert told[-1] <= whole.bound <= whole.objective
    assert whole.status == "optimal"
    assert whole.gap is not None
    assert whole.gap < 1e-5
    assert whole.details["nodes"] > 1
    assert "Nothing is proved" not in whole.advice
    first = jr.lire.fit(X, y, max_nodes=1, **options)
    assert first.status == "max_iterations"
    assert first.bound is not None
    assert first.bound < whole.objective <= first.objective + 1e-12
    assert jr.lire.fit(X, y, **options | {"search": "combo"}).bound is None


def test_each_class_is_proved() -> None:
    X, y, rules = data(1, rules=6)
    y = y + 2 * (X[:, 0] > 0) * (X[:, 1] > 0)
    fit = jr.lire.fit(X, np.minimum(y, 2), rules=rules, restarts=0, search="optimal")
    assert fit.status == "optimal"
    assert fit.bound == pytest.approx(np.mean(fit.details["bounds"]))
    assert fit.gap is not None
    assert fit.gap < 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_nodes": 5}, 'max_nodes needs search="optimal"'),
        ({"search": "optimal", "penalise_intercept": True}, "penalise_intercept"),
        (
            {"search": "optimal", "loss": "squared", "l2_penalty": 0.0},
            "l2_penalty must be positive",
        ),
    ],
)
def test_what_cannot_be_proved_is_refused(options: dict[str, Any], message: str) -> None:
    X, y, rules = data()
    with pytest.raises(ValueError, match=message):
        jr.lire.fit(X, y.astype(float) if options.get("loss") else y, rules=rules, **options)
