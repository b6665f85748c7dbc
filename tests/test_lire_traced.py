"""LIRE's search as a traced program: closed forms against brute force, and descents against those
of the NumPy search.
"""

import dataclasses
import itertools
import signal
import threading
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import jaxrules as jr
from jaxrules import lire
from jaxrules.ensembles.lire import batches, moves, traced
from jaxrules.ensembles.lire.problem import SupportProblem, make_problem
from jaxrules.ensembles.lire.search import SupportSearch
from jaxrules.ensembles.lire.traced import TracedSearch, descend_all
from jaxrules.losses import exponential, loss_by_name
from jaxrules.rules.rows import Activations
from jaxrules.solvers.patience import Patient
from jaxrules.tools import placement

ROWS, RULES = 64, 9
LOSSES = ["logistic", "exponential", "squared"]
ENCODINGS = ["signed", "binary"]
Data = tuple[np.ndarray, np.ndarray, np.ndarray]


def data_of(seed: int, loss: str = "logistic", noise: float = 1.0) -> Data:
    """0/1 columns, a target in the loss's coding, and weights of the rows."""
    rng = np.random.default_rng(seed)
    satisfied = rng.random((ROWS, RULES)) < rng.uniform(0.15, 0.7, RULES)
    score = (satisfied * 2.0 - 1) @ rng.normal(size=RULES) + noise * rng.logistic(size=ROWS)
    target = score if loss == "squared" else np.where(score > 0, 1.0, -1.0)
    return satisfied, target, rng.choice([0.5, 1.0, 2.0], ROWS)


def problem_of(seed: int, loss: str, encoding: Any = "signed", **options: Any) -> SupportProblem:
    satisfied, target, weight = data_of(seed, loss)
    activations = Activations.of_matrix(satisfied)
    return make_problem(activations, target, weight, loss_by_name(loss), encoding, **options)


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Descents are made side by side, as on an accelerator."""
    monkeypatch.setattr(traced, "lanes_pay", lambda: True)


def both(
    problem: SupportProblem, *prices: float, most: int | None = None
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The NumPy search and the traced one, and what they find from the empty model."""
    searches = [make(problem, *prices, most=most) for make in (SupportSearch, TracedSearch)]
    first, second = ((one, one.descend(one.start_empty())) for one in searches)
    return first, second


# Scores of moves


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_closed_form_moves_against_a_scalar_minimiser(encoding: Any, ridge: float) -> None:
    """Every drop, addition and swap from a support in a buffer with empty slots."""
    problem = problem_of(0, "exponential", encoding)
    search = TracedSearch(problem, 0.01, 0.02, ridge)
    start = search.start_from(np.array([2, 5, 7]), np.zeros(3))
    X = np.zeros((len(problem.origin) + 1, len(problem.mass)), np.float32)
    X[:-1] = problem.columns
    none = len(X) - 1
    lane, slots = search.lane(X.shape, quick=False, kinds=2), 6
    state = search.state(start, len(X), slots, True)

    def scored(
        columns: Any, weights: Any, data: moves.PatternData, lane: traced.DescentLane
    ) -> Any:
        support, margins = moves.Support(columns, weights), weights @ data.columns[columns]
        summed = moves.sums(data, columns, margins, exponential, encoding)
        return moves.closed_form_moves(
            data, summed, lane.charges, support, margins, lane.terms, encoding
        )

    with traced.as_numpy():
        found = jax.jit(scored)(*state.support, moves.PatternData(X, lane.target, lane.mass), lane)
    drop, add, swap = map(np.asarray, found)
    assert np.isinf(drop[state.support.columns == none]).all()
    assert np.isinf(swap[state.support.columns == none]).all()
    assert np.isinf(add[start.columns]).all()
    columns, weights, cap = start.columns, start.weights, problem.cap

    def objective(kept: np.ndarray, new: int) -> float:
        margins = weights[kept] @ problem.columns[columns[kept]]
        paid = (search.ridge[columns[kept]] * weights[kept] ** 2).sum() / 2
        price = problem.penalty(np.append(columns[kept], new), 0.01, 0.02)

        def value(weight: float) -> float:
            score = margins + weight * problem.columns[new]
            loss = problem.mass @ exponential.value(problem.target, score)
            return float(loss + paid + search.ridge[new] * weight**2 / 2)

        best = optimize.minimize_scalar(value, bounds=(-cap, cap), options={"xatol": 1e-9})
        return float(best.fun) + price

    everything = np.arange(len(columns))
    for new in np.setdiff1d(np.arange(1, none), columns):
        assert add[new] == pytest.approx(objective(everything, new), rel=2e-5)
        for slot in np.flatnonzero(columns != moves.ONES):
            expected = objective(np.delete(everything, slot), new)
            assert swap[slot, new] == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize(("loss", "encoding"), [("logistic", "signed"), ("squared", "binary")])
def test_predictions_are_those_of_the_numpy_search(loss: str, encoding: Any) -> None:
    """Empty slots change nothing."""
    problem = problem_of(1, loss, encoding)
    search = TracedSearch(problem, 0.01, 0.02, 1.0)
    start = search.start_from(np.array([2, 5, 7]), np.zeros(3))
    expected = search._rank(start)
    X = np.zeros((len(problem.origin) + 1, len(problem.mass)), np.float32)
    X[:-1] = problem.columns
    lane, state = search.lane(X.shape, False, 1), search.state(start, len(X), 6, False)

    def scored(
        columns: Any, weights: Any, data: moves.PatternData, lane: traced.DescentLane
    ) -> Any:
        margins = weights @ data.columns[columns]
        summed = moves.sums(data, columns, margins, problem.loss, encoding)
        support = moves.Support(columns, weights)
        return moves.rank_moves(summed, lane.charges, support, lane.terms, problem.loss)

    with traced.as_numpy():
        found = jax.jit(scored)(*state.support, moves.PatternData(X, lane.target, lane.mass), lane)
    drop, add, swap = (np.asarray(part) + problem.constant for part in found[:3])
    size = len(start.columns)
    np.testing.assert_allclose(drop[:size], expected.drop, rtol=1e-5)
    np.testing.assert_allclose(add[:-1], expected.add, rtol=1e-5)
    np.testing.assert_allclose(swap[:size, :-1], expected.swap, rtol=1e-5)


# Descents


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_descents_end_where_those_of_numpy_do(loss: str, encoding: Any) -> None:
    for seed, ridge in itertools.product(range(3), (0.0, 1.0)):
        problem = problem_of(seed, loss, encoding)
        (ours, expected), (search, found) = both(problem, 0.01, 0.02, ridge)
        assert found.objective == pytest.approx(expected.objective, rel=1e-6)
        assert search.certified == ours.certified
        assert set(found.columns) == set(expected.columns)
        again = search.refit(found.columns, np.zeros(len(found.columns)))
        assert found.objective == pytest.approx(again.objective, abs=1e-7)


def test_a_descent_ends_near_the_best_support() -> None:
    problem = problem_of(4, "logistic")
    _, (search, found) = both(problem, 0.02, 0.02, 1.0)
    rules = range(1, len(problem.origin))
    best = min(
        search.start_from(np.array(support, np.int64), np.zeros(size)).objective
        for size in range(len(rules) + 1)
        for support in itertools.combinations(rules, size)
    )
    assert best - 1e-7 <= found.objective <= 1.01 * best


@pytest.mark.parametrize(("loss", "encoding"), [("logistic", "signed"), ("exponential", "binary")])
def test_signs_and_required_and_given_rules_are_kept(loss: str, encoding: Any) -> None:
    signs = np.ones((RULES, 2), bool)
    signs[::2, 0] = signs[1::4, 1] = False  # never negative, never positive
    sets = [np.isin(np.arange(RULES), (6, 7)), np.isin(np.arange(RULES), (7, 8))]
    for seed in range(4):
        problem = problem_of(seed, loss, encoding, signs=signs, n_fixed=1, required=sets)
        problem = problem.within(signs)
        (_, expected), (search, found) = both(problem, 0.03, 0.02, 0.5, most=5)
        assert found.objective <= expected.objective * (1 + 1e-3)
        assert search.keeps(found.columns)
        assert search.fits(found)
        assert 0 in problem.origin[found.columns]
        least, most = problem.ends
        assert (found.weights >= least[found.columns]).all()
        assert (found.weights <= most[found.columns]).all()


def test_a_penalised_intercept_may_leave() -> None:
    problem = problem_of(2, "exponential", penalise_intercept=True)
    (_, expected), (_, found) = both(problem, 0.05, 0.02, 0.0)
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


def test_separable_data_without_a_ridge() -> None:
    """The sweeps reach the minimum, as in NumPy; weights end at their cap."""
    rng = np.random.default_rng(0)
    satisfied = rng.random((ROWS, RULES)) < 0.5
    target = np.where(satisfied[:, 0] & satisfied[:, 1] | satisfied[:, 2], 1.0, -1.0)
    problem = make_problem(Activations.of_matrix(satisfied), target, np.ones(ROWS), exponential)
    (_, expected), (_, found) = both(problem, 0.001, 0.002)
    assert found.objective == pytest.approx(expected.objective, rel=1e-3)
    assert (np.abs(found.weights[found.columns != moves.ONES]) <= problem.cap).all()


def test_a_support_that_fills_its_slots_goes_on_with_more(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(3, "logistic")
    _, (_, expected) = both(problem, 1e-6, 0.0, 1.0)
    assert len(expected.columns) > 8
    monkeypatch.setattr(traced, "_SLOTS", 8)
    _, (_, found) = both(problem, 1e-6, 0.0, 1.0)
    assert set(found.columns) == set(expected.columns)
    assert found.objective == pytest.approx(expected.objective, abs=1e-9)


# Many at once


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_a_descent_goes_on_when_one_beside_it_fills_its_slots(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traced, "_SLOTS", 8)
    problem = problem_of(3, loss)
    searches = [TracedSearch(problem, gamma, 0.0, 1.0) for gamma in (1e-6, 3e-4, 1e-3, 3e-3, 1e-2)]
    starts = [search.start_empty() for search in searches]
    together = descend_all(searches, starts)
    assert len(together[0].columns) > 8
    for search, start, found in zip(searches, starts, together, strict=True):
        alone = dataclasses.replace(search).descend(start)
        assert found.objective == pytest.approx(alone.objective, abs=1e-9)


@pytest.mark.usefixtures("lanes")
def test_penalties_ridges_starts_and_folds_side_by_side() -> None:
    _, target, weight = data_of(5)
    whole = problem_of(5, "logistic")
    folds = np.arange(ROWS) % 3
    problems = [whole, *(whole.with_weights(target, weight * (folds != k)) for k in range(2))]
    prices = [(0.01, 0.02, 1.0), (0.003, 0.0, 1.0), (0.01, 0.02, 0.1)]
    searches = [TracedSearch(one, *price) for one in problems for price in prices]
    searches.append(TracedSearch(whole, *prices[0]))
    starts = [search.start_empty() for search in searches[:-1]]
    starts.append(searches[-1].start_from(np.array([3, 4]), np.zeros(2)))
    together = descend_all(searches, starts)
    for search, start, found in zip(searches, starts, together, strict=True):
        alone = dataclasses.replace(search).descend(start)
        np.testing.assert_array_equal(np.sort(found.columns), np.sort(alone.columns))
        assert found.objective == pytest.approx(alone.objective, abs=1e-9)
        expected = SupportSearch(search.problem, search.gamma, search.lam, search.l2_penalty)
        assert found.objective == pytest.approx(expected.descend(start).objective, rel=1e-6)
        assert search.certified


def test_a_fold_is_the_problem_of_its_rows() -> None:
    satisfied, target, weight = data_of(6)
    inside = np.arange(ROWS) % 4 != 0
    fold = problem_of(6, "logistic").with_weights(target, weight * inside)
    alone = make_problem(
        Activations.of_matrix(satisfied[inside]), target[inside], weight[inside], fold.loss
    )
    found = [
        search.start_from(np.array([1, 2, 3]), np.zeros(3)).objective
        for search in (SupportSearch(fold, 0.01, 0.02, 1.0), SupportSearch(alone, 0.01, 0.02, 1.0))
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-10)


# Limits


def test_chunks_change_nothing_and_descents_are_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(3, "logistic")
    found = []
    for seconds in (0.2, 0.0, 0.2):
        monkeypatch.setattr(traced, "_SECONDS", seconds)
        seen: list[float] = []
        search = TracedSearch(problem, 0.003, 0.006, 1.0)
        search.observe = lambda incumbent, seen=seen: seen.append(incumbent.objective)
        found.append(search.descend(search.start_empty()))
        assert seen == sorted(seen, reverse=True)
    assert len({one.objective for one in found}) == 1
    assert all(np.array_equal(one.columns, found[0].columns) for one in found)


def test_a_stopped_descent_returns_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(3, "logistic")
    monkeypatch.setattr(traced, "_QUICK", 2)  # a ranking and a trial
    search = TracedSearch(problem, 0.003, 0.006, 1.0, stopped=lambda: True)
    start = search.start_empty()
    dataclasses.replace(search, stopped=lambda: False).descend(start)  # compiles
    found = search.descend(start)
    assert found.objective < start.objective
    assert len(found.columns) == 2
    search = TracedSearch(problem, 0.003, 0.006, 1.0, moves=1)
    assert len(search.descend(start).columns) == 2
    assert search.moves == 0


def test_a_descent_without_promise_is_given_up() -> None:
    problem = problem_of(3, "logistic")
    search = TracedSearch(problem, 0.003, 0.006, 1.0)
    start = search.start_empty()
    assert search.descend(start, promising=0.0).objective < start.objective
    assert not search.certified
    full = search.descend(start, promising=start.objective)
    assert full.objective == pytest.approx(search.descend(start).objective, abs=1e-9)


# The option


def fitted(learn: Any = lire.fit, loss: str = "logistic", **options: Any) -> Any:
    """On the columns of `data_of` as rules."""
    satisfied, target, weight = data_of(7, loss)
    X = satisfied.astype(float)
    rules = jr.Conjunctions.build(
        jr.as_table(X).schema, [[jr.Condition.above(j, 0.5)] for j in range(RULES)]
    )
    return learn(X, target, sample_weight=weight, loss=loss, **{"rules": rules, **options})


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_of_either_engine(loss: str) -> None:
    options: dict[str, Any] = {"global_penalty": 0.01, "restarts": 2, "l2_penalty": 1.0}
    expected, found, again = (
        fitted(loss=loss, engine=engine, **options) for engine in ("numpy", "jax", "jax")
    )
    assert (expected.details.engine, found.details.engine) == ("numpy", "jax")
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    np.testing.assert_array_equal(found.model.weights, again.model.weights)
    satisfied, target, weight = data_of(7, loss)
    recomputed = lire.objective(
        found.model, satisfied.astype(float), target, sample_weight=weight,
        global_penalty=0.01, local_penalty=0.02, l2_penalty=1.0,
    )  # fmt: skip
    assert found.objective == pytest.approx(recomputed, abs=1e-12)


@pytest.mark.parametrize("side_by_side", [True, False])
def test_sequences_of_ridges_and_restarts_are_lanes(
    side_by_side: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made at once, and that it does not matter how."""
    widths = []

    def counted(
        searches: Any, starts: Any, promising: Any = (), descend_all: Any = descend_all
    ) -> Any:
        widths.append(len(searches))
        return descend_all(searches, starts, promising)

    monkeypatch.setattr(traced, "lanes_pay", lambda: side_by_side)
    monkeypatch.setattr(batches, "descend_all", counted)
    monkeypatch.setattr(TracedSearch, "falls", (2, 3, 4))
    options: dict[str, Any] = {"loss": "exponential", "l2_penalty": 0.0, "global_penalty": 0.01}
    found = fitted(engine="jax", restarts=20, seed=1, **options)
    # The ridge that all begin with, what follows, the ends (merged if equal), and restarts
    assert widths[:4] == [1, 3, 2, 1]
    assert widths[widths.index(16) :] in ([16], [16, 4])
    assert found.objective <= fitted(engine="numpy", seed=1, **options).objective * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_the_program_ends_no_higher_than_numpy(loss: str) -> None:
    """Where optima are many: correlated rules, few rows, and in the paper's problem no ridge."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150, :10], y[:150]
    rules = jr.extract_rules(RandomForestClassifier(6, max_depth=4, random_state=0).fit(X, y), X)
    options = {"l2_penalty": 0.0 if loss == "exponential" else 1.0, "global_penalty": 0.005}
    expected, found = (
        lire.fit(X, y, rules=rules, loss=loss, engine=engine, **options)
        for engine in ("numpy", "jax")
    )
    assert found.objective <= expected.objective * 1.001


def test_auto_is_jax_on_an_accelerator_and_on_a_mesh(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"global_penalty": 0.01, "restarts": 0}
    with jax.default_device("cpu"):
        assert fitted(**options).details.engine == "numpy"
    with jr.rows_over(jax.make_mesh((1,), ("rows",))):
        assert fitted(**options).details.engine == "jax"
        assert fitted(engine="numpy", **options).details.engine == "numpy"
    accelerator = SimpleNamespace(platform="gpu", memory_stats=lambda: None)
    monkeypatch.setattr(placement, "device", lambda: accelerator)
    assert fitted(**options).details.engine == "jax"


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("memory", [None, 1])
def test_a_path_side_by_side(memory: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in batches of one, where memory is short."""
    if memory is not None:
        monkeypatch.setattr(traced, "available_memory", lambda: memory)
    options: dict[str, Any] = {"global_penalties": [0.05, 0.02, 0.01], "restarts": 2}
    expected, found = (fitted(lire.path, engine=engine, **options) for engine in ("numpy", "jax"))
    assert len(found) == len(expected) == 3
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)
        assert ours.status is jr.Status.CONVERGED
        assert dict(ours.model.options)["global_penalty"] == theirs.details.global_penalty
    assert found[0].objective >= found[1].objective >= found[2].objective


def test_a_path_hands_its_models_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model is also a start with the next penalties."""
    monkeypatch.setattr(batches.Member, "descents", lambda self: self.descent_from(self))
    first = fitted(lire.path, engine="jax", global_penalties=[0.02, 0.01])
    assert [len(one.model.conjunctions) for one in first] == [0, 0]  # nobody has a start
    given = batches.Member.descent_from

    def from_empty(self: batches.Member) -> Any:
        if self.search.gamma == 0.02:
            self.watch(self.search.start_empty())
            yield from given(self, self)

    monkeypatch.setattr(batches.Member, "descents", from_empty)
    second = fitted(lire.path, engine="jax", global_penalties=[0.02, 0.01])
    assert second[1].details.start == "previous"
    assert second[0].objective >= second[1].objective
    assert len(second[1].model.conjunctions) > 0


@pytest.mark.usefixtures("lanes")
def test_a_path_of_several_classes_side_by_side() -> None:
    satisfied, _, _ = data_of(8)
    X, y = satisfied.astype(float), satisfied[:, 0].astype(int) + satisfied[:, 1]
    rules = jr.Conjunctions.build(
        jr.as_table(X).schema, [[jr.Condition.above(j, 0.5)] for j in range(RULES)]
    )
    options: dict[str, Any] = {"rules": rules, "restarts": 0, "global_penalties": [0.05, 0.02]}
    options["multiclass"] = "one_vs_rest"
    expected, found = (lire.path(X, y, engine=engine, **options) for engine in ("numpy", "jax"))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)
        assert ours.details.engine == ("jax",) * 3


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("given", [True, False])
def test_folds_side_by_side(given: bool) -> None:
    options: dict[str, Any] = {
        "global_penalties": [0.05, 0.02], "l2_penalties": [1.0, 4.0], "n_folds": 2,
    }  # fmt: skip
    if not given:
        options["rules"] = RandomForestClassifier(2, max_depth=2, random_state=0)
    expected, found = (
        fitted(lire.cross_validate, engine=engine, **options).details.cross_validation
        for engine in ("numpy", "jax")
    )
    np.testing.assert_allclose(found.risks, expected.risks, rtol=1e-4)
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    assert found.setting == expected.setting


@pytest.mark.parametrize("learn", [lire.fit, lire.path])
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_fit_does_not_wait_for_the_program(
    learn: Any, interrupted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If time runs out or Ctrl-C is pressed while it compiles, the model comes from the NumPy
    search.
    """
    compiling, over = threading.Event(), threading.Event()

    def compiles(*arguments: Any, **program: Any) -> None:
        compiling.set()
        if interrupted:
            signal.raise_signal(signal.SIGINT)
        over.wait()

    monkeypatch.setattr(traced, "_chunk_in_time", Patient(compiles))
    clock = Clock(compiling, interrupted)
    options: dict[str, Any] = {"global_penalty": 0.01}
    if learn is lire.path:
        options = {"global_penalties": [0.01, 0.005]}
    try:
        found = fitted(learn, engine="jax", time_limit=jr.Deadline(60.0, clock), **options)
    finally:
        over.set()
    fits = (found,) if learn is lire.fit else found
    for one in fits:
        assert one.status is (jr.Status.INTERRUPTED if interrupted else jr.Status.TIME_LIMIT)
        assert np.isfinite(one.objective)
        assert one.details.start == "l1"
        assert len(one.model.conjunctions) > 0


class Clock:
    """Time stands still until a program compiles; then the limit has passed, or Ctrl-C is pressed
    instead.
    """

    def __init__(self, compiling: threading.Event, interrupted: bool) -> None:
        self.compiling, self.interrupted = compiling, interrupted

    def __call__(self) -> float:
        return 100.0 if self.compiling.is_set() and not self.interrupted else 0.0
