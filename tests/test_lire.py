"""LIRE: the paper's lemma and theorem, the objective, the search against
brute force, and the facade.
"""

import dataclasses
import functools
import importlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import expit

import jaxrules as jr
from jaxrules import lire, losses
from jaxrules.ensembles.lire import moves as moves_module
from jaxrules.ensembles.lire import problem as problem_module
from jaxrules.ensembles.lire import search as search_module
from jaxrules.ensembles.lire import start as start_module
from jaxrules.ensembles.lire.objective import WEIGHT_CAP as CAP
from jaxrules.ensembles.lire.objective import least_loss
from jaxrules.ensembles.lire.problem import make_problem
from jaxrules.ensembles.lire.published import PublishedSearch, encode, rulefit_start
from jaxrules.ensembles.lire.start import liblinear
from jaxrules.losses import exponential
from jaxrules.rules import rows as row_module
from jaxrules.rules.rows import Activations
from jaxrules.tools.float64 import x64_kernel

PENALTIES = {"global_penalty": 0.01, "local_penalty": 0.02}


def pool(satisfied: np.ndarray) -> jr.Conjunctions:
    """One rule per 0/1 column: the column is 1."""
    schema = jr.as_table(satisfied.astype(float)).schema
    return jr.Conjunctions.build(
        schema, [[jr.Condition.above(j, 0.5)] for j in range(satisfied.shape[1])]
    )


def noisy(
    seed: int, rows: int, rules: int, signal: int = 3, noise: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """0/1 columns of mixed coverage, and a 0/1 target that depends on
    the first `signal` of them.
    """
    rng = np.random.default_rng(seed)
    satisfied = rng.random((rows, rules)) < rng.uniform(0.15, 0.7, rules)
    score = (satisfied[:, :signal] * 2 - 1) @ rng.choice([-1.0, 1.0, 1.5], signal)
    target = (score + noise * rng.logistic(size=rows) > 0).astype(int)
    target[:2] = [0, 1]
    return satisfied, target


def fit_pool(satisfied: np.ndarray, target: np.ndarray, **options: Any) -> jr.Fit[jr.RuleEnsemble]:
    return lire.fit(
        satisfied.astype(float), target, **{"rules": pool(satisfied), **PENALTIES, **options}
    )


def chosen_rules(model: jr.RuleEnsemble) -> list[int]:
    return model.conjunctions.feature.tolist()


def best_loss(
    satisfied: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    support: tuple[int, ...],
    loss: str,
    encoding: str = "signed",
    l2_penalty: float = 0.0,
) -> float:
    """The smallest mean loss, with the ridge, over a support with a free intercept, by SciPy."""
    ridge = np.full(
        1 + len(support), (4.0 if encoding == "signed" else 1.0) * l2_penalty / weight.sum()
    )
    ridge[0] = 0.0
    columns = (
        satisfied[:, support] * 2.0 - 1 if encoding == "signed" else satisfied[:, support] * 1.0
    )
    columns = np.concatenate([np.ones((len(target), 1)), columns], axis=1)
    weight = weight / weight.sum()
    if loss == "squared":
        root = np.sqrt(weight)
        rows = np.concatenate(
            [columns * root[:, None], np.diag(np.sqrt(ridge / 2))]
        )  # the ridge as rows of target 0
        weights, *_ = np.linalg.lstsq(rows, np.append(target * root, 0 * ridge), rcond=None)
        return float(weight @ (target - columns @ weights) ** 2 + ridge @ weights**2 / 2)
    signs = 2.0 * target - 1

    def value(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (columns @ weights)
        if loss == "exponential":
            losses = slopes = np.exp(-margins)
        else:
            losses, slopes = np.logaddexp(0, -margins), expit(-margins)
        value = float(weight @ losses + ridge @ weights**2 / 2)
        return value, ridge * weights - (weight * signs * slopes) @ columns

    cap = CAP * (2 if loss == "logistic" else 1) * (2 if encoding == "binary" else 1)
    bounds = [(None, None)] + [(-cap, cap)] * len(support)
    options = {"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-10}
    point = np.zeros(columns.shape[1])
    for _ in range(4):  # on nearly separable data one run ends early
        found = optimize.minimize(value, point, jac=True, bounds=bounds, options=options)
        point = found.x
    return float(found.fun)


def exact_objective(
    satisfied: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    support: tuple[int, ...],
    loss: str,
    gamma: float,
    lam: float,
    encoding: str,
    l2_penalty: float,
) -> float:
    """The smallest objective over a support with a free intercept."""
    coverage = np.average(satisfied, axis=0, weights=weight)
    local = coverage[list(support)].mean() if support else 0.0
    least = best_loss(satisfied, target, weight, support, loss, encoding, l2_penalty)
    return least + gamma * len(support) + lam * local


# The paper's mathematics


@settings(max_examples=100)
@given(st.integers(0, 10_000), st.floats(0, 2), st.floats(0, 2))
def test_lemma_1(seed: int, gamma: float, lam: float) -> None:
    """C_m is the difference of the penalties, taken row by row from their definition."""
    rng = np.random.default_rng(seed)
    satisfied = rng.random((int(rng.integers(1, 30)), 6)) < rng.random(6)
    weights = rng.normal(size=6) * (rng.random(6) < 0.5)
    weights[5] = 0.0

    def penalty(weights: np.ndarray) -> float:
        support = weights != 0
        rows = [
            (satisfied[n] & support).sum() / support.sum() if support.any() else 0.0
            for n in range(len(satisfied))
        ]
        return gamma * support.sum() + lam * float(np.mean(rows))

    with_rule = weights.copy()
    with_rule[5] = 0.7
    size = int((weights != 0).sum())
    ratio = satisfied[:, weights != 0].mean() if size else 0.0
    increase = lire.penalty_increase(size, ratio, satisfied[:, 5].mean(), gamma, lam)
    assert increase == pytest.approx(penalty(with_rule) - penalty(weights), abs=1e-12)


@settings(max_examples=200)
@given(
    st.one_of(st.just(0.0), st.floats(1e-6, 3)),
    st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)),
    st.floats(-2, 4),
    st.one_of(st.just(0.0), st.floats(1e-6, 10)),
)
def test_theorem_1_corrected(loss: float, share: float, increase: float, ridge: float) -> None:
    """The closed form is at least as good as a fine grid and a bounded scalar minimiser,
    with a ridge and without.
    """

    def value(weight: np.ndarray | float) -> np.ndarray:
        weight = np.asarray(weight)
        lost = (
            loss * ((1 - share) * np.exp(-weight) + share * np.exp(weight)) + ridge * weight**2 / 2
        )
        return lost + increase * (weight != 0)

    weight = float(lire.best_weight(loss, share, increase, ridge))
    grid = np.concatenate([[0.0], np.linspace(-CAP, CAP, 4001)])
    found = optimize.minimize_scalar(value, bounds=(-CAP, CAP), method="bounded").fun
    unattained = increase < 0 and (loss == 0 or np.isclose(share, 0.5, atol=1e-6))
    if unattained:  # by definition the rule stays out, or its weight is as good as 0
        assert value(weight) <= loss + 1e-9
    else:
        assert value(weight) <= min(value(grid).min(), found) + 1e-9 * (1 + loss)
    assert np.isfinite(weight)
    assert abs(weight) <= CAP + 1e-9


@pytest.mark.parametrize(
    ("loss", "share", "increase", "kept"),
    [
        (1.0, 0.01, 1.5, False),  # the decrease is 0.80; the printed interval keeps the rule
        (1.0, 0.01, 0.5, True),
        (1.0, 0.5, 0.0, False),
        (1.0, 0.5, -0.1, False),  # the infimum is not attained
        (0.0, 0.0, -0.1, False),
        (1.0, 0.4, -0.1, True),  # the printed interval is not real
        (0.3, 0.0, 0.1, True),
        (0.3, 1.0, 0.1, True),
    ],
)
def test_theorem_1_cases(loss: float, share: float, increase: float, kept: bool) -> None:
    assert (lire.best_weight(loss, share, increase) != 0) == kept


def test_the_kernels_call_lemma_1_and_theorem_1() -> None:
    assert moves_module.penalty_increase is lire.penalty_increase
    assert moves_module.best_weight is lire.best_weight
    share = np.array([0.0, 1e-12, 0.2, 0.5, 0.9, 1.0, 0.5])
    loss = np.array([1.0, 1.0, 2.0, 1.0, 0.1, 0.4, 0.0])
    weight = x64_kernel(lire.best_weight)(loss, share, -np.inf)
    np.testing.assert_allclose(weight, lire.best_weight(loss, share, -np.inf), atol=1e-12)
    after = x64_kernel(least_loss)(loss * (1 - share), loss * share)
    np.testing.assert_allclose(after, least_loss(loss * (1 - share), loss * share), atol=1e-12)
    reached = loss * ((1 - share) * np.exp(-weight) + share * np.exp(weight))
    np.testing.assert_allclose(after[2:5], reached[2:5], atol=1e-15)  # the others are clipped
    np.testing.assert_allclose(after, reached, atol=2.1e-5)


@settings(max_examples=50)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["signed", "binary"]),
    st.floats(0, 0.3),
    st.floats(0, 2),
    st.sampled_from([0.0, 0.01, 0.5]),
)
def test_a_closed_form_move_minimises_the_objective(
    seed: int, encoding: str, gamma: float, lam: float, l2_penalty: float
) -> None:
    """From the empty model, its intercept fixed, against a scalar minimiser."""
    satisfied, target = noisy(seed, 40, 1, signal=1)
    satisfied[:2] = [[False], [True]]
    weight, signs = np.random.default_rng(seed).dirichlet(np.ones(40)), 2.0 * target - 1
    problem = make_problem(Activations.of_matrix(satisfied), signs, weight, exponential, encoding)
    search = search_module.SupportSearch(problem, gamma, lam, l2_penalty)
    ridge = l2_penalty * (4.0 if encoding == "signed" else 1.0)  # the weights sum to 1
    start = search.start_empty()
    support = moves_module.Support(start.columns, start.weights)
    margins = np.full(problem.activations.n_patterns, start.weights[0])
    sums = moves_module.sums(search.data, start.columns, margins, exponential, encoding)
    found, taken = moves_module.sweep(
        search.data, sums, search.charges, support, margins, search.terms, 0.0, encoding
    )
    column = satisfied[:, 0] * 2.0 - 1 if encoding == "signed" else satisfied[:, 0] * 1.0

    def value(move: float) -> float:
        kept = gamma + lam * weight @ satisfied[:, 0] if move else 0.0
        return (
            float(
                weight @ np.exp(-signs * (start.weights[0] + move * column)) + ridge * move**2 / 2
            )
            + kept
        )

    move = float(found.weights[1:].sum())
    assert taken == (move != 0)
    best = optimize.minimize_scalar(value, bounds=(-problem.cap, problem.cap), method="bounded").fun
    assert value(move) <= min(value(0.0), best) + 1e-9
    assert value(move) == pytest.approx(min(value(0.0), best), abs=1e-7)


# The objective


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared"])
@pytest.mark.parametrize("encoding", ["signed", "binary"])
@pytest.mark.parametrize("penalise_intercept", [False, True])
@pytest.mark.parametrize("l2_penalty", [0.0, 5.0])
def test_objective_is_that_of_the_model(
    loss: str, encoding: str, penalise_intercept: bool, l2_penalty: float
) -> None:
    satisfied, target = noisy(1, 250, 25)
    weight = np.random.default_rng(5).random(250)
    fit = fit_pool(
        satisfied,
        target,
        loss=loss,
        encoding=encoding,
        penalise_intercept=penalise_intercept,
        sample_weight=weight,
        l2_penalty=l2_penalty,
    )
    model = fit.model
    model.validate()
    again = lire.objective(
        model, satisfied.astype(float), target, sample_weight=weight, **PENALTIES
    )
    assert fit.details["paper_objective"] == pytest.approx(again, abs=1e-10)
    ridge = l2_penalty / (2 * weight.sum()) * float((model.weights**2).sum())
    assert fit.objective == pytest.approx(again + ridge, abs=1e-10)
    regularised = {"sample_weight": weight, "l2_penalty": l2_penalty, **PENALTIES}
    assert fit.objective == pytest.approx(
        lire.objective(model, satisfied.astype(float), target, **regularised)
    )
    # and by hand
    scores = model.intercept[0] + satisfied[:, chosen_rules(model)] @ model.weights[:, 0]
    margins = (2 * target - 1) * scores
    losses = {
        "exponential": np.exp(-margins),
        "logistic": np.log1p(np.exp(-margins)),
        "squared": (target - scores) ** 2,
    }
    own = model.intercept[0] + (model.weights.sum() / 2 if encoding == "signed" else 0.0)
    counts = int(penalise_intercept and abs(own) > 1e-9)
    size = len(model.weights) + counts
    local = (
        np.average(satisfied[:, chosen_rules(model)].sum(axis=1), weights=weight) + counts
    ) / size
    assert again == pytest.approx(
        np.average(losses[loss], weights=weight) + 0.01 * size + 0.02 * local, abs=1e-10
    )
    assert fit.history[-1].objective == fit.objective
    assert jr.support(model) >= 1


def test_objective_of_models_of_other_learners() -> None:
    satisfied, target = noisy(1, 100, 4)
    model = jr.RuleEnsemble(
        pool(satisfied)
        .take([0, 1])
        .with_schema(jr.as_table(satisfied.astype(float)).schema.with_classes((0, 1))),
        np.array([[1.0], [0.0]]),
        np.array([0.2]),
        link="logistic",
    )
    scores = (0.2 + satisfied[:, 0]) * (2 * target - 1)
    expected = np.log1p(np.exp(-scores)).mean() + 0.01 + 0.02 * satisfied[:, 0].mean()
    X = satisfied.astype(float)
    assert lire.objective(model, X, target, **PENALTIES) == pytest.approx(expected)
    with_intercept = lire.objective(model, X, target, penalise_intercept=True, **PENALTIES)
    expected = np.log1p(np.exp(-scores)).mean() + 0.02 + 0.02 * (1 + satisfied[:, 0].mean()) / 2
    assert with_intercept == pytest.approx(expected)


# The search


@settings(max_examples=20)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["exponential", "logistic", "squared"]),
    st.sampled_from(["signed", "binary"]),
    st.sampled_from([0.0, 0.25, 5.0]),
)
@example(1372, "squared", "signed", 0.0)  # a rule that holds for no row
def test_no_single_move_improves_and_brute_force_is_near(
    seed: int, loss: str, encoding: str, l2_penalty: float
) -> None:
    """Over all supports of a tiny pool: a certificate of swap optimality,
    and a bound on what is lost.
    """
    rng = np.random.default_rng(seed)
    rules = int(rng.integers(2, 7))
    satisfied, target = noisy(seed, int(rng.integers(12, 60)), rules, signal=2)
    satisfied[:, -1] = ~satisfied[:, 0]  # complementary rules
    assume((satisfied != satisfied[0]).any())  # `fit` warns if no column varies
    weight = rng.choice([1.0, 2.0, 0.5], len(target))
    gamma, lam = float(rng.choice([0.003, 0.01, 0.03])), float(rng.choice([0.0, 0.02, 0.1]))
    fit = fit_pool(
        satisfied,
        target,
        loss=loss,
        encoding=encoding,
        sample_weight=weight,
        global_penalty=gamma,
        local_penalty=lam,
        l2_penalty=l2_penalty,
    )
    varied = np.flatnonzero(satisfied.any(axis=0) & ~satisfied.all(axis=0)).tolist()
    everything = {
        support: exact_objective(
            satisfied, target, weight, support, loss, gamma, lam, encoding, l2_penalty
        )
        for size in range(rules + 1)
        for support in itertools.combinations(varied, size)
        if not {0, rules - 1} <= set(support)  # one of two complementary rules is a candidate
    }
    best = min(everything.values())
    assert best - 1e-6 <= fit.objective <= best + 0.05 * abs(best)
    assert fit.details["swap_optimal"]
    support = set(chosen_rules(fit.model))
    assert everything[tuple(sorted(support))] == pytest.approx(fit.objective, abs=1e-5)
    outside = set(range(rules)) - support
    drops = [support - {m} for m in support]
    adds = [support | {j} for j in outside]
    swaps = [support - {m} | {j} for m in support for j in outside]
    for neighbour in drops + adds + swaps:
        assert everything.get(tuple(sorted(neighbour)), np.inf) >= fit.objective - 2e-6


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared"])
def test_predictions_of_moves_know_the_ridge(loss: str) -> None:
    """They are exact for the squared loss, and nearly exact for the others near the minimum with a
    strong ridge.
    """
    satisfied, target = noisy(2, 200, 12, noise=4.0)
    target = 2.0 * target - 1
    for encoding in ("signed", "binary"):
        problem = make_problem(
            Activations.of_matrix(satisfied),
            target,
            np.ones(200),
            losses.loss_by_name(loss),
            encoding,
        )
        search = search_module.SupportSearch(problem, 0.01, 0.02, l2_penalty=200.0)
        best = search.start_from(np.array([1, 2, 3]), np.zeros(3))
        ranked = search._rank(best)
        add = search.start_from(np.append(best.columns, 7), np.zeros(5)).objective
        drop = search.start_from(np.delete(best.columns, 2), np.zeros(3)).objective
        swap = search.start_from(np.append(np.delete(best.columns, 2), 7), np.zeros(4)).objective
        predicted = [ranked.add[7], ranked.drop[2], ranked.swap[2, 7]]
        np.testing.assert_allclose(
            predicted, [add, drop, swap], rtol=1e-8 if loss == "squared" else 2e-3
        )


@pytest.mark.parametrize("positive", [False, True])
def test_a_move_against_its_sign_promises_nothing(
    positive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    satisfied, target = noisy(2, 200, 12, noise=4.0)
    signs = np.tile([not positive, positive], (12, 1))
    problem = make_problem(
        Activations.of_matrix(satisfied), 2.0 * target - 1, np.ones(200), losses.logistic
    ).within(signs)
    found = []

    def rank(*arguments: Any) -> Any:
        found.append(moves_module.rank_moves(*arguments))
        return found[-1]

    monkeypatch.setattr(search_module, "rank_moves", rank)
    search = search_module.SupportSearch(problem, 0.0, 0.0, l2_penalty=1.0)
    start = search.start_empty()
    search.descend(start)
    promised = found[0][1] < start.objective - 1e-7
    helping = [
        search.start_from(np.array([column]), np.zeros(1)).loss < start.loss - 1e-7
        for column in range(1, len(promised))
    ]
    assert promised[1:].tolist() == helping
    assert 0 < sum(helping) < len(helping)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_a_local_optimum_is_ranked_once(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    satisfied, target = noisy(3, 150, 20)
    problem = make_problem(
        Activations.of_matrix(satisfied), 2.0 * target - 1, np.ones(150), losses.loss_by_name(loss)
    )
    search, ranked = search_module.SupportSearch(problem, 0.01, 0.02, l2_penalty=1.0), []

    def rank(summed: Any, charges: Any, support: Any, *others: Any) -> Any:
        ranked.append(tuple(np.sort(support.columns)))
        return moves_module.rank_moves(summed, charges, support, *others)

    monkeypatch.setattr(search_module, "rank_moves", rank)
    reached = search.descend(search.start_empty())
    certified, supports = search.certified, list(ranked)
    assert len(set(supports)) == len(supports) >= 1
    again = search.descend(search.start_from(reached.columns[::-1], np.zeros(len(reached.columns))))
    assert again.objective == pytest.approx(reached.objective, abs=1e-9)
    assert len(ranked) == len(supports)
    assert search.certified == certified


@settings(max_examples=8)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["exponential", "logistic", "squared"]),
    st.sampled_from(["signed", "binary"]),
    st.sampled_from([0.0, 0.25, 20.0]),
)
def test_the_objective_never_rises(seed: int, loss: str, encoding: str, l2_penalty: float) -> None:
    satisfied, target = noisy(seed, 120, 30, signal=6)
    fit = fit_pool(
        satisfied, target, loss=loss, encoding=encoding, l2_penalty=l2_penalty, restarts=2
    )
    objectives = [step.objective for step in fit.history]
    assert objectives == sorted(objectives, reverse=True)
    assert fit.objective == pytest.approx(objectives[-1], abs=1e-12)
    again = lire.objective(
        fit.model, satisfied.astype(float), target, l2_penalty=l2_penalty, **PENALTIES
    )
    assert fit.objective == pytest.approx(again, abs=1e-9)


@pytest.mark.parametrize("l2_penalty", [0.0, 0.25])
def test_both_encodings_are_one_problem(l2_penalty: float) -> None:
    """One minimum on every support, also where weights run to the cap."""
    rng = np.random.default_rng(3)
    satisfied = rng.random((80, 6)) < 0.5
    signs = np.where(satisfied[:, 0] | satisfied[:, 3], 1.0, -1.0)  # separable
    least = []
    for encoding in ("signed", "binary"):
        problem = make_problem(
            Activations.of_matrix(satisfied), signs, np.ones(80), exponential, encoding
        )
        search = search_module.SupportSearch(problem, 0.01, 0.02, l2_penalty)
        column = {int(rule): c for c, rule in enumerate(problem.origin) if rule >= 0}
        supports = [np.array([column[0], column[3]]), np.array(sorted(column.values()))]
        least.append(
            [search.start_from(support, np.zeros(len(support))).objective for support in supports]
        )
    np.testing.assert_allclose(least[0], least[1], rtol=0, atol=1e-7)


def test_restarts_lower_the_objective() -> None:
    found = {}
    for restarts in (0, 3):
        options = {"loss": "exponential", "l2_penalty": 0.0, "restarts": restarts}
        fits = [fit_pool(*noisy(seed, 100, 40, signal=8), **options) for seed in (2, 3)]
        found[restarts] = np.array([fit.objective for fit in fits])
    assert (found[3] <= found[0] + 1e-9).all()
    assert (found[3] < found[0] - 1e-4).any()


def test_useless_rules_change_nothing() -> None:
    """Equal rules, complements that cover more, and rules of all or no rows."""
    satisfied, target = noisy(3, 200, 8)
    satisfied = np.where(satisfied.mean(axis=0) > 0.5, ~satisfied, satisfied)
    ones = np.ones((200, 1), bool)
    more = np.concatenate([satisfied, satisfied[:, :4], ~satisfied, ones, ~ones], axis=1)
    for options in ({}, {"encoding": "binary"}, {"loss": "squared"}):
        plain, padded = fit_pool(satisfied, target, **options), fit_pool(more, target, **options)
        assert plain.objective == pytest.approx(padded.objective, abs=1e-9)
        assert chosen_rules(plain.model) == chosen_rules(padded.model)


@pytest.mark.filterwarnings("ignore:no column of X varies")
def test_a_pool_of_useless_rules_gives_the_constant_model() -> None:
    target = np.array([0, 1, 1, 1])
    for loss, least in (
        ("logistic", -0.25 * np.log(0.25) - 0.75 * np.log(0.75)),
        ("exponential", 2 * np.sqrt(3 / 16)),
    ):
        fit = fit_pool(np.ones((4, 3), bool), target, loss=loss)
        assert jr.support(fit.model) == 0
        assert fit.objective == pytest.approx(least, abs=1e-8)
        np.testing.assert_allclose(
            jr.predict_proba(fit.model, np.ones((1, 3))), [[0.25, 0.75]], atol=1e-4
        )


def test_little_noise_has_a_small_ridge() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (300, 3)).astype(float)
    clear = (X[:, 0] > 1) & (X[:, 1] < 3)
    blurred = clear ^ (rng.random(300) < 0.3)
    fits = [jr.lire.fit(X, y) for y in (clear, blurred)]
    ridges = [fit.details["l2_penalty"] for fit in fits]
    assert ridges == [0.15, 8.0] == [dict(fit.model.options)["l2_penalty"] for fit in fits]
    share = clear.mean()
    constant = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert fits[0].details["global_penalty"] == pytest.approx(0.005 * constant)
    assert fits[0].details["loss"] < fits[0].details["paper_objective"] < fits[0].objective
    names = ("global_penalty", "local_penalty", "l2_penalty")
    given = {name: fits[0].details[name] for name in names}
    assert jr.lire.objective(fits[0].model, X, clear, **given) == pytest.approx(
        fits[0].objective, rel=1e-9
    )
    assert jr.lire.fit(X, clear, l2_penalty=1.0).details["l2_penalty"] == 1.0
    assert all(a.objective >= b.objective for a, b in itertools.pairwise(fits[0].history))
    proved = jr.lire.fit(X, clear, rules=fits[0].model.conjunctions, search="optimal")
    assert (proved.status, proved.details["l2_penalty"]) == ("optimal", 0.15)


@pytest.mark.parametrize("classes", [True, False])
def test_many_columns_raise_the_default_price(classes: bool) -> None:
    """With a price of 6/n, noise of classes of this size had 12 to 15 rules."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 100))
    y = rng.random(500) < 0.4 if classes else X[:, 0] + rng.normal(size=500)
    fit = jr.lire.fit(X, y)
    if classes:
        assert jr.support(fit.model) <= 2
        # On few rows the addition is in proportion to these.
        for n, more in ((500, 6), (50, 0.6)):
            price = jr.lire.fit(X[:n], y[:n]).details["global_penalty"]
            loss = -np.log(np.where(y[:n], y[:n].mean(), 1 - y[:n].mean())).mean()
            rarity = (np.log(2) / loss) ** 0.7  # rows of a rare class tell less
            assert price == pytest.approx((6 + more * np.log(100 / 40)) / n * rarity * loss)
    else:
        assert jr.support(fit.model) <= 5


def test_the_default_price_is_half_a_percent_and_above_noise() -> None:
    """Of the best constant's loss; rules without effect stay out of small data."""
    for n_rows in (100, 2400):
        satisfied, target = noisy(31, n_rows, 8)
        share = target.mean()
        entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
        for weight in (None, np.full(n_rows, 7.0), np.full(n_rows, 1e-3)):
            fit = lire.fit(
                satisfied.astype(float),
                target,
                rules=pool(satisfied),
                sample_weight=weight,
                restarts=0,
            )
            expected = max(0.005, 6 / n_rows * (np.log(2) / entropy) ** 0.7) * entropy
            assert fit.details["global_penalty"] == pytest.approx(expected, rel=1e-12)
            assert fit.details["local_penalty"] == pytest.approx(2 * expected, rel=1e-12)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        satisfied, target = rng.random((120, 40)) < 0.4, rng.permutation(120) % 2
        assert (
            jr.support(
                lire.fit(satisfied.astype(float), target, rules=pool(satisfied), restarts=0).model
            )
            == 0
        )


@pytest.mark.parametrize("share", [1e-4, 1e-9])
def test_the_constant_of_a_rare_class_is_the_best(share: float) -> None:
    X = np.arange(6.0)[:, None] % 2
    y = np.array(list("aaabab"))
    weights = np.where(y == "a", 1, share)
    given: dict[str, Any] = {"global_penalty": 0.1, "l2_penalty": 1.0}
    fit = jr.lire.fit(X, y, weights, **given)
    assert fit.model.intercept[0] == pytest.approx(np.log(share / 2), abs=1e-3)
    assert jr.lire.optimal(X, y, weights, max_length=1, **given).status == "optimal"


def test_the_problem_of_the_paper_is_one_call_away() -> None:
    satisfied, target = noisy(5, 120, 6)
    options = dict(
        lire.fit(
            satisfied.astype(float), target, **{**lire.PAPER, **PENALTIES}, restarts=0
        ).model.options
    )
    assert (options["loss"], options["l2_penalty"], options["rules"]) == (
        "exponential",
        0.0,
        "forest",
    )
    with pytest.raises(
        ValueError, match=r'search="published" is a separate function: jaxrules\.lire\.published'
    ):
        lire.fit(satisfied.astype(float), target, search="published")


def test_sample_weights_mean_repeated_rows() -> None:
    satisfied, target = noisy(4, 120, 12)
    weight = np.random.default_rng(0).integers(0, 4, 120)
    repeated = np.repeat(np.arange(120), weight)
    for loss in ("exponential", "squared"):
        weighted = fit_pool(satisfied, target, loss=loss, sample_weight=weight)
        plain = fit_pool(satisfied[repeated], target[repeated], loss=loss)
        assert weighted.objective == pytest.approx(plain.objective, abs=1e-9)
        assert chosen_rules(weighted.model) == chosen_rules(plain.model)
        np.testing.assert_allclose(weighted.model.weights, plain.model.weights, atol=1e-4)


def test_separable_data_have_finite_weights() -> None:
    rng = np.random.default_rng(0)
    satisfied = rng.random((80, 10)) < 0.5
    target = satisfied[:, 0].astype(int)
    half = {"loss": "exponential"}
    for options, cap in ((half, 2 * CAP), (half | {"encoding": "binary"}, 2 * CAP), ({}, 4 * CAP)):
        for penalty in (0.0, 1e-3):
            common = {"global_penalty": penalty, "local_penalty": 0.0, "max_rules": 3, **options}
            fit = fit_pool(satisfied, target, l2_penalty=0.0, **common)
            assert np.abs(fit.model.weights).max() <= cap + 1e-6
            assert fit.objective < 0.01
            assert (jr.predict(fit.model, satisfied.astype(float)) == target).all()
            readable = fit_pool(satisfied, target, **common)
            assert np.abs(readable.model.weights).max() < 8
            assert (jr.predict(readable.model, satisfied.astype(float)) == target).all()


def test_free_rules_lower_the_loss_as_far_as_they_can() -> None:
    satisfied, target = noisy(6, 150, 10)
    options = {
        "global_penalty": 0.0,
        "local_penalty": 0.0,
        "l2_penalty": 1.0,
        "loss": "exponential",
    }
    fit = fit_pool(satisfied, target, **options)
    every = best_loss(
        satisfied, target, np.ones(150), tuple(range(10)), "exponential", l2_penalty=1.0
    )
    assert fit.objective == pytest.approx(every, abs=1e-4)
    limited = fit_pool(satisfied, target, **options, max_rules=4)
    assert jr.support(limited.model) <= 4
    assert limited.objective >= fit.objective


@pytest.mark.parametrize(("loss", "encoding"), [("exponential", "signed"), ("logistic", "binary")])
def test_blocks_threads_and_sampled_starts_give_the_same(
    loss: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large data: columns are cast by blocks, on several threads, and L1 starts are
    fitted on some of the rows.
    """
    satisfied, target = noisy(5, 400, 8)
    options = {"loss": loss, "encoding": encoding, "restarts": 0}
    whole = fit_pool(satisfied, target, **options)
    monkeypatch.setattr(moves_module, "_BLOCK", (3, 50))
    monkeypatch.setattr(moves_module, "_FEW", 0)
    monkeypatch.setattr(start_module, "SAMPLED", 8 * 60)
    blocks = fit_pool(satisfied, target, **options)
    assert chosen_rules(blocks.model) == chosen_rules(whole.model)
    assert blocks.objective == pytest.approx(whole.objective, rel=1e-9)


@pytest.mark.parametrize(("loss", "encoding"), [("exponential", "signed"), ("logistic", "binary")])
def test_on_very_large_data_the_search_goes_on_from_the_best_of_a_sample(
    loss: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    satisfied, target = noisy(5, 2000, 16)
    options: dict[str, Any] = {"loss": loss, "encoding": encoding, "restarts": 0}
    options |= {"l2_penalty": 1.0, "required": ["x15"], "first": pool(satisfied).take([3])}
    whole = fit_pool(satisfied, target, **options)
    monkeypatch.setattr(problem_module, "SAMPLED", 1)
    monkeypatch.setattr(problem_module, "_FEWEST_SAMPLED", 100)
    reported: list[float] = []
    fit = fit_pool(
        satisfied, target, **options, progress=lambda step: reported.append(step.objective)
    )
    assert fit.details.start == "sample"
    assert fit.details.paper_objective == pytest.approx(whole.details.paper_objective, rel=1e-3)
    assert min(reported) >= fit.objective - 1e-9  # never the objective on the sample
    again = fit_pool(satisfied, target, **options)
    assert again.objective == fit.objective


@pytest.mark.parametrize(("size", "some"), [(128, True), (129, False)])
def test_a_sample_has_distinct_patterns_and_at_most_a_quarter(
    size: int, some: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = np.arange(512)[:, None] >> np.arange(9) & 1 == 1
    target = np.where(every.sum(axis=1) > 4, 1.0, -1.0)
    problem = make_problem(Activations.of_matrix(every), target, np.ones(512), losses.logistic)
    monkeypatch.setattr(problem_module, "SAMPLED", 9 * size)
    monkeypatch.setattr(problem_module, "_FEWEST_SAMPLED", 1)
    sample = problem.sampled(0)
    assert (sample is not None) == some
    if sample is not None:
        assert np.unique(sample.columns, axis=1).shape == sample.columns.shape == (10, size)
        assert sample.mass.sum() == pytest.approx(1.0)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 70), st.integers(1, 40))
def test_the_product_is_that_of_the_matrices(
    seed: int, height: int, n_patterns: int, n_columns: int
) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.choice(np.array([-1, 1], np.int8), (n_columns, n_patterns))
    rows = rng.normal(size=(height, n_patterns)).astype(np.float32)
    data = moves_module.PatternData(columns, np.zeros(n_patterns), np.zeros(n_patterns))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moves_module, "_FEW", 0)
        patch.setattr(moves_module, "_BLOCK", (7, 16))
        np.testing.assert_allclose(moves_module._product(rows, data), rows @ columns.T, atol=1e-4)


def test_a_large_start_is_cut_to_the_largest_support() -> None:
    satisfied, target = noisy(7, 250, 60, signal=20, noise=3.0)
    problem = make_problem(
        Activations.of_matrix(satisfied), 2.0 * target - 1, np.ones(250), exponential
    )
    search = search_module.SupportSearch(problem, 1e-4, 1e-4, most=5)
    kept = np.flatnonzero(problem.origin >= 0)
    reached = search.descend(search.start_from(kept, np.zeros(len(kept))))
    assert problem.counted[reached.columns].sum() <= 5


def test_penalties_act_in_their_own_way() -> None:
    satisfied, target = noisy(8, 250, 40, signal=6)
    X = satisfied.astype(float)
    sparse = fit_pool(satisfied, target, global_penalty=0.02, local_penalty=0.0)
    rich = fit_pool(satisfied, target, global_penalty=0.001, local_penalty=0.0)
    local = fit_pool(satisfied, target, global_penalty=0.001, local_penalty=0.1)
    assert jr.support(sparse.model) < jr.support(rich.model)
    ratio = lambda fit: jr.local_support(fit.model, X) / jr.support(fit.model)  # noqa: E731
    assert ratio(local) < ratio(rich)


def test_regression_finds_the_rules_of_a_step_function() -> None:
    rng = np.random.default_rng(2)
    satisfied = rng.random((250, 30)) < 0.4
    y = 1000.0 + 3.0 * satisfied[:, 4] - 2.0 * satisfied[:, 17] + 0.1 * rng.normal(size=250)
    fit = fit_pool(satisfied, y, loss="squared", l2_penalty=1.0)
    assert chosen_rules(fit.model) == [4, 17]
    np.testing.assert_allclose(fit.model.weights[:, 0], [3.0, -2.0], atol=0.05)
    assert fit.model.intercept[0] == pytest.approx(1000.0, abs=0.05)
    assert fit.details["swap_optimal"]
    assert fit.model.schema.classes is None


def test_the_optimum_is_stable() -> None:
    """It does not depend on encodings, the order of rows and rules, seeds, or whether it was
    reached along a path.
    """
    satisfied, target = noisy(19, 120, 24, signal=6)
    common = {"global_penalty": 0.005, "local_penalty": 0.01, "restarts": 3}
    signed = fit_pool(satisfied, target, **common)
    binary = fit_pool(satisfied, target, encoding="binary", **common)
    assert binary.objective <= signed.objective + 1e-7
    rows, rules = (
        np.random.default_rng(0).permutation(120),
        np.random.default_rng(1).permutation(24),
    )
    shuffled = fit_pool(satisfied[rows][:, rules], target[rows], seed=4, **common)
    gammas = [0.02, 0.01, 0.005]
    path = lire.path(
        satisfied.astype(float), target, global_penalties=gammas, rules=pool(satisfied), restarts=3
    )
    objectives = [signed.objective, binary.objective, shuffled.objective, path[-1].objective]
    assert max(objectives) <= 1.02 * min(objectives)


def test_falling_ridges_lead_to_a_stable_optimum() -> None:
    satisfied, target = noisy(20, 120, 60, signal=10, noise=0.3)
    common = {"l2_penalty": 0.0, "global_penalty": 0.002, "local_penalty": 0.004}
    objectives = []
    for seed in range(3):
        rows, rules = (
            np.random.default_rng(seed).permutation(120),
            np.random.default_rng(seed).permutation(60),
        )
        data = satisfied[rows][:, rules], target[rows]
        fit = fit_pool(*data, restarts=1, **common)
        assert fit.objective <= fit_pool(*data, restarts=0, **common).objective
        objectives.append(fit.objective)
    assert max(objectives) <= 1.01 * min(objectives)


def test_a_model_as_start() -> None:
    satisfied, target = noisy(18, 250, 30, signal=8)
    X, rules = satisfied.astype(float), pool(satisfied)
    good = fit_pool(satisfied, target, restarts=10)
    for encoding in ("signed", "binary"):
        again = fit_pool(
            satisfied, target, start=good.model, encoding=encoding, max_iterations=1, restarts=0
        )
        assert again.objective <= good.objective + 1e-7
    # its rules need not be candidates, and it may come from another learner
    few = fit_pool(satisfied, target, start=good.model, rules=rules.take([20, 21]))
    assert few.objective <= good.objective + 1e-7
    assert few.details["n_candidates"] == 2 + jr.support(good.model)
    other = jr.rulefit.fit(X, target, rules=rules, l1_penalty=0.05).model
    refitted = fit_pool(satisfied, target, start=other, max_iterations=1, restarts=0)
    support = tuple(chosen_rules(other))
    bound = exact_objective(
        satisfied, target, np.ones(250), support, "exponential", 0.01, 0.02, "signed", 0.25
    )
    assert refitted.objective <= bound + 1e-7
    classes = np.arange(250) % 3
    for start, error, message in (
        (good.model.conjunctions, TypeError, "start must be a RuleEnsemble"),
        (fit_pool(satisfied, classes).model, ValueError, "start has 3 outputs, but y needs 1"),
        (fit_pool(satisfied[:, :4], target).model, ValueError, "start was fitted on the columns"),
    ):
        with pytest.raises(error, match=message):
            fit_pool(satisfied, target, start=start)


def test_equal_columns_of_a_start_are_distinguished_by_their_signs() -> None:
    """Two rules hold for the same rows; only the second admits a negative weight."""
    rng = np.random.default_rng(0)
    satisfied = np.repeat(rng.random((80, 1)) < 0.5, 2, axis=1)
    X, rules = satisfied.astype(float), pool(satisfied)
    y = satisfied[:, 0] ^ (rng.random(80) < 0.1)
    for column, target in enumerate((y, ~y)):
        alone = lire.fit(X, target, rules=rules.take([column]), **PENALTIES)
        fit = fit_pool(satisfied, target, start=alone, monotone={0: 1, 1: -1}, time_limit=0.0)
        assert fit.details["start"] == "given"
        assert chosen_rules(fit.model) == [column]
        np.testing.assert_allclose(fit.model.weights, alone.model.weights, rtol=1e-4)
        assert np.sign(fit.model.weights) == 1 - 2 * column


# The published search


def published(satisfied: np.ndarray, target: np.ndarray, **options: Any) -> jr.Fit[jr.RuleEnsemble]:
    return lire.published(
        satisfied.astype(float), target, **{"rules": pool(satisfied), **PENALTIES, **options}
    )


@pytest.mark.parametrize("encoding", ["signed", "binary"])
def test_published_search(encoding: str) -> None:
    satisfied, target = noisy(9, 250, 40, signal=6)
    weight = np.random.default_rng(1).random(250)
    options = {
        "encoding": encoding,
        "sample_weight": weight,
        "global_penalty": 0.002,
        "local_penalty": 0.004,
    }
    found = published(satisfied, target, **options)
    X = satisfied.astype(float)
    prices = {"global_penalty": 0.002, "local_penalty": 0.004}
    again = lire.objective(found.model, X, target, sample_weight=weight, **prices)
    assert found.objective == pytest.approx(again, abs=1e-9)
    assert (
        again
        == lire.objective(
            found.model, X, target, sample_weight=weight, penalise_intercept=True, **prices
        )
        != lire.objective(
            found.model, X, target, sample_weight=weight, penalise_intercept=False, **prices
        )
    )
    assert (found.model.loss, found.status) == ("exponential", "converged")
    objectives = [step.objective for step in found.history]
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(objectives))
    ours = fit_pool(satisfied, target, penalise_intercept=True, l2_penalty=0.0, **options)
    assert ours.objective <= found.objective + 1e-6
    short = published(satisfied, target, max_iterations=1, **options)
    assert short.status == "max_iterations"


def test_models_of_the_published_search_when_it_was_an_option_still_load(tmp_path: Any) -> None:
    """Their options record the search, and that the intercept counts."""
    satisfied, target = noisy(9, 250, 40, signal=6)
    X, found = satisfied.astype(float), published(satisfied, target)
    options = {
        "learner": "lire",
        "loss": "exponential",
        "encoding": "signed",
        "search": "published",
    }
    options |= {"penalise_intercept": True, "l2_penalty": 0.0, **PENALTIES}
    old = dataclasses.replace(found.model, options=tuple(options.items()))
    jr.save(old, tmp_path / "old.json")
    loaded = jr.load(tmp_path / "old.json")
    assert dict(loaded.options)["search"] == "published"
    np.testing.assert_array_equal(jr.predict_proba(loaded, X), jr.predict_proba(found.model, X))
    assert lire.objective(loaded, X, target, **PENALTIES) == pytest.approx(
        found.objective, abs=1e-9
    )


def described_moves(
    columns: np.ndarray, signs: np.ndarray, gamma: float, lam: float, weights: np.ndarray
) -> list[tuple[list[int], float]]:
    """Support and objective after each move, by the steps that `lire.published` describes, every
    loss and every penalty computed anew; the intercept is the last column.
    """
    weights, failures = weights.copy(), np.zeros(len(columns), int)
    coverage = (columns > 0).mean(axis=1)

    def loss(weights: np.ndarray) -> float:
        return float(np.exp(-signs * (weights @ columns)).mean())

    def value(weights: np.ndarray) -> float:
        chosen = weights != 0
        return loss(weights) + gamma * chosen.sum() + lam * coverage[chosen].sum() / chosen.sum()

    def best(weights: np.ndarray, j: int) -> tuple[np.ndarray, float]:
        """With the best weight of j; and the share of the loss where j and the class disagree."""
        without = np.where(np.arange(len(weights)) == j, 0.0, weights)
        each = np.exp(-signs * (without @ columns))
        wrong = np.clip(each[columns[j] != signs].sum() / each.sum(), 1e-10, 1 - 1e-10)
        found = without.copy()
        found[j] = np.log((1 - wrong) / wrong) / 2
        return found, wrong

    def refitted(weights: np.ndarray) -> np.ndarray:
        before = loss(weights)
        for _ in range(10):
            for j in np.flatnonzero(weights):
                weights, _ = best(weights, j)
            if abs(before - loss(weights)) < 1e-4:  # before the refit, not before the sweep
                break
        return weights

    def moved(weights: np.ndarray) -> tuple[np.ndarray, bool]:
        support = np.flatnonzero(weights)
        for m in support[np.argsort(failures[support], kind="stable")]:
            without = weights.copy()
            without[m] = 0.0
            kept, _ = best(weights, m)
            if value(without) <= value(kept):
                return without, True
            others = support[support != m]
            for j in np.setdiff1d(np.arange(len(weights)), support):
                swapped, wrong = best(without, j)
                rise = gamma + lam * (coverage[j] - coverage[others].mean()) / len(support)
                square = rise * (2 * loss(without) - rise)
                if square < 0 or abs(wrong - 0.5) <= np.sqrt(square) / (2 * loss(without)):
                    continue
                if value(swapped) < value(kept):
                    return swapped, True
            weights = kept
            failures[m] += 1
        return weights, False

    moves = []
    for _ in range(200):
        weights, changed = moved(weights)
        weights = refitted(weights)
        moves.append((np.flatnonzero(weights).tolist(), value(weights)))
        if not changed:
            break
    return moves


@pytest.mark.parametrize("seed", range(3))
def test_published_search_makes_the_described_moves(seed: int) -> None:
    satisfied, target = noisy(20 + seed, 250, 40, signal=6)
    columns, signs = encode(satisfied, "signed"), 2.0 * target - 1
    weight, coverage = np.full(250, 1 / 250), (columns > 0).mean(axis=1)
    start = np.where(np.arange(41) % 3 == seed, 0.1, 0.0)
    search = PublishedSearch(columns * signs, weight, coverage, 0.00113, 0.05, start.copy())
    # a penalty for which no C_m is 0 up to rounding, which would decide
    expected = described_moves(columns, signs, 0.00113, 0.05, start)
    found, going = [], True
    while going:
        going = search.iterate(lambda: False)
        if not going:
            search.refit()
        found.append((search.support.tolist(), search.objective()))
    supports = [set(support) for support, _ in found]
    assert any(len(after) < len(before) for before, after in itertools.pairwise(supports))
    assert any(after - before for before, after in itertools.pairwise(supports))
    assert [support for support, _ in found] == [support for support, _ in expected]
    np.testing.assert_allclose([g for _, g in found], [g for _, g in expected], rtol=1e-9)


def test_published_search_starts_from_the_l1_solution_and_makes_the_described_moves() -> None:
    satisfied, target = noisy(20, 120, 20, signal=6)
    columns, signs = encode(satisfied, "signed"), 2.0 * target - 1
    start = rulefit_start(columns, signs, np.full(120, 1 / 120), 0.0041, 0)
    moves = described_moves(columns, signs, 0.0041, 0.05, start)
    fit = published(satisfied, target, global_penalty=0.0041, local_penalty=0.05)
    assert fit.objective == pytest.approx(moves[-1][1], abs=1e-9)
    assert chosen_rules(fit.model) == [j for j in moves[-1][0] if j < 20]


def test_a_refit_of_the_published_search_stops_after_one_sweep_or_ten() -> None:
    """Its loss only falls, so that after the first sweep it departs further from the loss before
    the refit.
    """
    satisfied, target = noisy(9, 250, 40, signal=6)
    columns, signs = encode(satisfied, "signed"), 2.0 * target - 1
    weight, coverage = np.full(250, 1 / 250), (columns > 0).mean(axis=1)
    start = np.where(np.arange(41) % 3 == 0, 0.1, 0.0)
    search = PublishedSearch(columns * signs, weight, coverage, 0.002, 0.004, start.copy())
    search.refit()
    swept = np.exp(-signs * (start @ columns)) / 250
    weights = start.copy()
    for _ in range(10):
        for j in np.flatnonzero(weights):
            swept = swept * np.exp(weights[j] * signs * columns[j])
            helped, harmed = swept[columns[j] == signs].sum(), swept[columns[j] != signs].sum()
            weights[j] = np.log(helped / harmed) / 2
            swept = swept * np.exp(-weights[j] * signs * columns[j])
    np.testing.assert_allclose(search.weights, weights, atol=1e-12)
    done = search.weights.copy()
    search.refit()  # changes the loss by less than the tolerance: one sweep
    assert 0 < np.abs(search.weights - done).max() < 0.01
    once = done.copy()
    each = np.exp(-signs * (done @ columns))
    for j in np.flatnonzero(once):
        each = each * np.exp(once[j] * signs * columns[j])
        once[j] = np.log(each[columns[j] == signs].sum() / each[columns[j] != signs].sum()) / 2
        each = each * np.exp(-once[j] * signs * columns[j])
    np.testing.assert_allclose(search.weights, once, atol=1e-12)


def test_a_weight_that_a_refit_sets_to_zero_leaves_the_mean_coverage_of_the_moves() -> None:
    """As in the author's program, which carries that mean from move to move."""
    column = np.repeat([1.0, -1.0], 20)
    balanced, signs = np.tile([1.0, -1.0], 20), np.repeat([1.0, -1.0], 20)
    signs[[0, 1, 20, 21]] *= -1  # balanced is right and wrong equally often, whatever column is
    columns = np.stack([column, balanced, np.ones(40)])
    coverage = np.array([0.25, 0.75, 1.0])
    search = PublishedSearch(
        columns * signs, np.full(40, 1 / 40), coverage, 0.01, 0.1, np.array([0.5, 0.5, 0.0])
    )
    search.refit()
    assert search.support.tolist() == [0]
    assert (search.local, search.local_ratio(search.support)) == (0.5, 0.25)


@pytest.mark.parametrize("encoding", ["signed", "binary"])
def test_published_search_without_the_time_for_its_start(encoding: str) -> None:
    """Columns enter one by one; the first is that of the best model of
    one column, by trying all.
    """
    satisfied, target = noisy(9, 250, 40, signal=6)
    columns, signs = encode(satisfied, encoding), 2.0 * target - 1
    coverage = np.append(satisfied.mean(axis=0), 1.0)
    search = PublishedSearch(
        columns * signs, np.full(250, 1 / 250), coverage, 0.002, 0.004, np.zeros(41)
    )
    assert search.add()
    alone = [
        optimize.minimize_scalar(
            lambda b, column=column: np.exp(-b * signs * column).mean(), bounds=(-15, 15)
        ).fun
        + 0.004 * cover
        for column, cover in zip(columns, coverage, strict=True)
    ]
    assert search.objective() == pytest.approx(min(alone) + 0.002, abs=1e-6)
    objectives = [search.objective()]
    while search.add():
        objectives.append(search.objective())
    assert len(objectives) > 3
    assert (np.diff(objectives) < 0).all()
    limited = published(
        satisfied, target, time_limit=jr.Deadline(1.0, clock=lambda: 0.0), encoding=encoding,
        global_penalty=0.002, local_penalty=0.004,
    )  # fmt: skip
    assert limited.status == "converged"  # a second is enough for the start


def test_published_search_in_little_time_still_has_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        importlib.import_module("jaxrules.ensembles.lire.published"), "_LIBLINEAR", 1.0
    )
    satisfied, target = noisy(9, 250, 40, signal=6)
    limited = published(satisfied, target, time_limit=jr.Deadline(100.0, clock=counting_clock()))
    assert limited.status == "time_limit"
    assert jr.support(limited.model) > 0


def test_published_deletion_is_the_corrected_theorem() -> None:
    """Every rule that survives pays for itself: the decrease of the loss is above C_m."""
    satisfied, target = noisy(10, 250, 15)
    fit = published(satisfied, target, encoding="binary")
    model, signs = fit.model, 2.0 * target - 1
    columns = np.concatenate([np.ones((250, 1)), satisfied[:, chosen_rules(model)]], axis=1)
    weights = np.concatenate([model.intercept, model.weights[:, 0]])
    support = np.flatnonzero(weights)
    for m in support:
        others = support[support != m]
        loss = np.exp(-signs * (columns[:, others] @ weights[others])) / 250
        covered = columns[:, m] == 1
        total, wrong = loss[covered].sum(), loss[covered & (signs < 0)].sum()
        ratio = columns[:, others].mean() if len(others) else 0.0
        increase = lire.penalty_increase(len(others), ratio, covered.mean(), 0.01, 0.02)
        assert lire.best_weight(total, wrong / total, increase) != 0


# Paths, limits, progress


def test_path_is_warm_started_and_monotone() -> None:
    satisfied, target = noisy(11, 250, 40, signal=8)
    X, rules = satisfied.astype(float), pool(satisfied)
    gammas = [0.001, 0.05, 0.005, 0.02]
    fits = lire.path(X, target, global_penalties=gammas, rules=rules)
    assert [fit.details["global_penalty"] for fit in fits] == sorted(gammas, reverse=True)
    assert [fit.details["local_penalty"] for fit in fits] == [
        2 * g for g in sorted(gammas, reverse=True)
    ]
    assert all(before.objective >= after.objective for before, after in itertools.pairwise(fits))
    for fit in fits:
        gamma = fit.details["global_penalty"]
        again = lire.objective(fit.model, X, target, global_penalty=gamma, local_penalty=2 * gamma)
        assert fit.details["paper_objective"] == pytest.approx(again, abs=1e-10)
    pairs = lire.path(
        X, target, global_penalties=[0.01, 0.02], local_penalties=[0.5, 0.1], rules=rules
    )
    assert [(f.details["global_penalty"], f.details["local_penalty"]) for f in pairs] == [
        (0.02, 0.1),
        (0.01, 0.5),
    ]


def test_a_path_of_one_penalty_is_a_fit() -> None:
    satisfied, target = noisy(11, 200, 20)
    X, rules = satisfied.astype(float), pool(satisfied)
    (one,) = lire.path(X, target, global_penalties=[0.02], local_penalties=[0.01], rules=rules)
    fit = lire.fit(X, target, global_penalty=0.02, local_penalty=0.01, rules=rules)
    np.testing.assert_array_equal(one.model.weights, fit.model.weights)
    assert (one.model.options, one.objective) == (fit.model.options, fit.objective)


def test_penalties_of_a_path_follow_the_data() -> None:
    satisfied, target = noisy(11, 120, 10)
    X, options = satisfied.astype(float), {"rules": pool(satisfied), "restarts": 0}
    default = lire.fit(X, target, l2_penalty=1.0, **options).details["global_penalty"]
    fits = lire.path(X, target, **options)
    gammas = [fit.details["global_penalty"] for fit in fits]
    np.testing.assert_allclose(gammas, default * np.geomspace(4, 0.2, 5))


@pytest.mark.parametrize("learner", [lire.fit, lire.path, lire.cross_validate])
def test_the_old_name_of_the_size_warns_and_works(learner: Any) -> None:
    satisfied, target = noisy(12, 60, 6)
    folds = {"n_folds": 2} if learner is lire.cross_validate else {}
    options = {"rules": pool(satisfied), "restarts": 0, **folds}
    with pytest.warns(FutureWarning, match="max_support is now called max_rules"):
        old = learner(satisfied.astype(float), target, max_support=1, **options)
    new = learner(satisfied.astype(float), target, max_rules=1, **options)
    for one, other in zip(*(f if isinstance(f, tuple) else (f,) for f in (old, new)), strict=True):
        np.testing.assert_array_equal(one.model.weights, other.model.weights)
        assert jr.support(one.model) <= 1
        assert dict(one.model.options)["max_rules"] == 1


def counting_clock() -> Any:
    ticks = itertools.count()
    return lambda: float(next(ticks))


def test_with_little_time_there_are_the_rules_of_the_l1_solution() -> None:
    satisfied, target = noisy(31, 900, 150, signal=8)
    found = [
        fit_pool(
            satisfied,
            target,
            global_penalty=0.005,
            time_limit=jr.Deadline(seconds, clock=counting_clock()),
        )
        for seconds in (0.0, 14.0)
    ]
    assert [fit.status for fit in found] == ["time_limit"] * 2
    assert 0 < jr.support(found[1].model) < 22
    assert found[1].details["start"] == "l1"
    assert (
        fit_pool(satisfied, target, global_penalty=0.005).objective
        <= found[1].objective
        < found[0].objective
    )


def test_time_limits_return_the_best_so_far() -> None:
    satisfied, target = noisy(12, 250, 40, signal=8)
    done = fit_pool(satisfied, target, global_penalty=0.001)
    objectives = []
    for seconds in (0.0, 30.0, 60.0):
        fit = fit_pool(
            satisfied,
            target,
            global_penalty=0.001,
            time_limit=jr.Deadline(seconds, clock=counting_clock()),
        )
        assert fit.status == "time_limit"
        objectives.append(fit.objective)
    assert objectives[0] >= objectives[1] >= objectives[2] >= done.objective
    X = satisfied.astype(float)
    empty = published(satisfied, target, time_limit=0.0)
    assert empty.status == "time_limit"
    assert jr.support(empty.model) == 0
    path = lire.path(
        X, target, global_penalties=[0.1, 0.01, 0.001], rules=pool(satisfied),
        time_limit=jr.Deadline(40.0, clock=counting_clock()),
    )  # fmt: skip
    assert 1 <= len(path) <= 3
    assert path[-1].status == "time_limit"


def test_ctrl_c_and_progress() -> None:
    satisfied, target = noisy(13, 200, 20)
    seen: list[jr.Progress] = []

    def interrupt(progress: jr.Progress) -> None:
        seen.append(progress)
        if len(seen) == 2:
            raise KeyboardInterrupt

    fit = fit_pool(satisfied, target, global_penalty=0.001, progress=interrupt)
    assert fit.status == "interrupted"
    assert seen[0].task == "lire"
    again = lire.objective(
        fit.model,
        satisfied.astype(float),
        target,
        global_penalty=0.001,
        local_penalty=PENALTIES["local_penalty"],
    )
    assert fit.details["paper_objective"] == pytest.approx(again)


def test_iteration_limit_and_history() -> None:
    satisfied, target = noisy(14, 250, 30, signal=8)
    short = fit_pool(satisfied, target, global_penalty=0.001, max_iterations=1)
    assert short.status == "max_iterations"
    fit = fit_pool(satisfied, target, global_penalty=0.001)
    assert fit.status == "converged"
    objectives = [step.objective for step in fit.history]
    assert objectives == sorted(objectives, reverse=True)
    assert fit.history[-1].size == jr.support(fit.model)
    assert fit.objective <= short.objective


def test_equal_seeds_give_equal_models() -> None:
    satisfied, target = noisy(15, 250, 30, signal=8)
    first, second = fit_pool(satisfied, target, seed=3), fit_pool(satisfied, target, seed=3)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(first.model), jax.tree.leaves(second.model), strict=True)
    )
    assert first.objective == second.objective


def test_the_global_precision_flag_does_not_matter() -> None:
    satisfied, target = noisy(16, 200, 20)
    without = fit_pool(satisfied, target)
    with jax.enable_x64(True):
        flagged = fit_pool(satisfied, target)
    assert without.objective == pytest.approx(flagged.objective, abs=1e-9)
    assert isinstance(without.model.weights, np.ndarray)
    assert without.model.weights.dtype == np.float64


def test_labels_rules_and_schema() -> None:
    satisfied, target = noisy(17, 200, 10)
    labels = np.where(target == 1, "yes", "no")
    model = fit_pool(satisfied, labels).model
    assert model.link == "logistic"
    assert model.schema.classes == ("no", "yes")
    assert set(jr.predict(model, satisfied.astype(float))) <= {"no", "yes"}
    assert "x0" in str(model)
    assert fit_pool(satisfied, labels, loss="exponential").model.link == "exponential"


# Many classes, and rules that were checked before


def three_classes(seed: int, rows: int = 150, rules: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    satisfied, _ = noisy(seed, rows, rules)
    scores = satisfied[:, :3] * 3.0 + satisfied[:, [3, 3, 4]] + rng.gumbel(size=(rows, 3))
    return satisfied, np.array(["a", "b", "c"])[scores.argmax(axis=1)]


ONE_VS_REST = {"multiclass": "one_vs_rest"}


@pytest.mark.parametrize(
    "learner",
    [
        functools.partial(fit_pool, **ONE_VS_REST),
        functools.partial(fit_pool, loss="exponential"),
        published,
    ],
)
def test_classes_are_fitted_one_against_the_rest(learner: Any) -> None:
    satisfied, y = three_classes(20)
    weight = np.random.default_rng(1).random(150)
    fit = learner(satisfied, y, sample_weight=weight)
    X, model = satisfied.astype(float), fit.model
    model.validate()
    assert model.n_outputs == 3
    assert model.schema.classes == ("a", "b", "c")
    assert len(set(chosen_rules(model))) == len(model.conjunctions) == jr.support(model)
    objectives = []
    for k, label in enumerate("abc"):
        alone = learner(satisfied, y == label, sample_weight=weight)
        used = sorted(np.flatnonzero(model.weights[:, k]), key=lambda r: chosen_rules(model)[r])
        assert [chosen_rules(model)[r] for r in used] == chosen_rules(alone.model)
        np.testing.assert_array_equal(model.weights[used, k], alone.model.weights[:, 0])
        assert model.intercept[k] == alone.model.intercept[0]
        objectives.append(alone.objective)
    assert fit.details["objectives"] == tuple(objectives)
    assert fit.objective == pytest.approx(np.mean(objectives))
    again = lire.objective(model, X, y, sample_weight=weight, **PENALTIES)
    assert again == pytest.approx(np.mean(fit.details["paper_objective"]), abs=1e-10)
    assert jr.accuracy(model, X, y) > 0.6


def test_a_path_of_many_classes_is_warm_started_per_class() -> None:
    satisfied, y = three_classes(21)
    X, rules = satisfied.astype(float), pool(satisfied)
    fits = lire.path(X, y, global_penalties=[0.02, 0.005], rules=rules, **ONE_VS_REST)
    assert [fit.details["global_penalty"] for fit in fits] == [(0.02,) * 3, (0.005,) * 3]
    for fit, gamma in zip(fits, (0.02, 0.005), strict=True):
        assert fit.model.n_outputs == 3
        again = lire.objective(fit.model, X, y, global_penalty=gamma, local_penalty=2 * gamma)
        assert np.mean(fit.details["paper_objective"]) == pytest.approx(again, abs=1e-10)
        assert dict(fit.model.options)["global_penalty"] == gamma
    assert all(
        a >= b
        for a, b in zip(fits[0].details["objectives"], fits[1].details["objectives"], strict=True)
    )
    for k, label in enumerate("abc"):
        alone = lire.path(X, y == label, global_penalties=[0.02, 0.005], rules=rules)
        assert [fit.details["objectives"][k] for fit in fits] == [fit.objective for fit in alone]


@pytest.mark.parametrize(
    "learner",
    [functools.partial(lire.fit, restarts=0), functools.partial(lire.published, max_iterations=50)],
)
def test_rules_are_not_checked_again_where_they_hold_already(
    monkeypatch: pytest.MonkeyPatch, learner: Any
) -> None:
    rng = np.random.default_rng(22)
    X = rng.normal(size=(200, 4)).round(1)
    y = (X[:, 0] + X[:, 1] + rng.normal(size=200) > 0).astype(int)
    weight = rng.integers(0, 3, 200)
    forest = jr.default_forest(X, y, n_trees=15, seed=0)
    candidates = jr.extract_rules(forest, X, activations=True)
    plain = learner(X, y, rules=candidates.rules, sample_weight=weight, **PENALTIES)
    checked = jr.Conjunctions.packed_batches
    calls = []
    monkeypatch.setattr(
        jr.Conjunctions, "packed_batches", lambda *args: calls.append(args) or checked(*args)
    )
    fit = learner(X, y, rules=candidates, sample_weight=weight, **PENALTIES)
    assert not calls
    assert fit.objective == plain.objective
    np.testing.assert_array_equal(fit.model.weights, plain.model.weights)
    learner(X, y, **PENALTIES, max_iterations=5)
    assert len(calls) == 1  # the default pool: the extraction alone checks
    for rows in (slice(100), slice(None, None, -1)):
        with pytest.raises(ValueError, match="rows other than those of X"):
            lire.fit(X, y, rules=jr.extract_rules(forest, X[rows], activations=True), **PENALTIES)


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_the_scale_of_numbers_changes_nothing(scale: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 3)), rng.normal(size=60)
    y += 3.0 * (X[:, 0] > 0)
    rules = jr.Conjunctions.build(
        jr.as_table(X).schema, [[jr.Condition.above(f, v)] for f in range(3) for v in (0, 1)]
    )
    one = lire.fit(X, y, loss="squared", rules=rules)
    other = lire.fit(X, scale * y, loss="squared", rules=rules)
    assert jr.support(one.model) == jr.support(other.model) > 0
    np.testing.assert_allclose(
        jr.predict(other.model, X) / scale, jr.predict(one.model, X), rtol=1e-9
    )


def test_an_l1_solution_that_a_thread_asks_ahead_for_is_solved_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    satisfied, target = noisy(5, 400, 30)
    solved: list[float] = []
    solve = start_module.L1Start._solved

    def counted(self: Any, penalty: float, run: Any) -> Any:
        solved.append(penalty)
        return solve(self, penalty, run)

    monkeypatch.setattr(start_module.L1Start, "_solved", counted)
    gammas, X = [0.05, 0.02, 0.01, 0.005], satisfied.astype(float)
    ahead = lire.path(X, target, global_penalties=gammas, rules=pool(satisfied))
    assert sorted(solved, reverse=True) == gammas
    in_turn = lire.path(
        X, target, global_penalties=gammas, rules=pool(satisfied), time_limit=1000.0
    )
    assert [fit.objective for fit in in_turn] == pytest.approx(
        [fit.objective for fit in ahead], rel=1e-9
    )
    assert chosen_rules(in_turn[0].model) == chosen_rules(ahead[0].model)


def test_fits_in_two_threads_do_not_disturb_each_other() -> None:
    """liblinear draws from one generator of the whole process."""
    rng = np.random.default_rng(0)
    columns, target = rng.random((2000, 150)) < 0.3, rng.random(2000) < 0.5

    def weights(seed: int) -> np.ndarray:
        return liblinear(columns.astype(float), target, np.ones(2000), 0.5, seed=seed, tol=0.1)

    alone = [weights(seed) for seed in (1, 2) * 4]
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(weights, (1, 2) * 4))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


# Bad input


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"global_penalty": -1.0}, ValueError, "global_penalty must be finite and at least 0"),
        ({"local_penalty": np.nan}, ValueError, "local_penalty must be finite"),
        ({"global_penalty": "0.1"}, TypeError, "global_penalty must be a number"),
        ({"loss": "hinge"}, ValueError, "loss must be"),
        ({"encoding": "ternary"}, ValueError, "encoding must be"),
        ({"search": "best"}, ValueError, "search must be"),
        ({"max_rules": 0}, ValueError, "max_rules must be at least 1"),
        ({"max_rules": 2.5}, TypeError, "max_rules must be an integer"),
        ({"restarts": -1}, ValueError, "restarts must be at least 0"),
        ({"max_iterations": 0}, ValueError, "max_iterations must be at least 1"),
        ({"max_iterations": None}, TypeError, "max_iterations must be an integer"),
        ({"l2_penalty": -1.0}, ValueError, "l2_penalty must be finite and at least 0"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight"),
        ({"rules": "stumps"}, ValueError, 'rules must be "boosted_trees"'),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    satisfied, target = noisy(0, 50, 5)
    arguments = {"rules": pool(satisfied), **PENALTIES, **options}
    with pytest.raises(error, match=message):
        lire.fit(satisfied.astype(float), target, **arguments)


def test_bad_targets_and_rules() -> None:
    satisfied, target = noisy(0, 60, 5)
    X, rules = satisfied.astype(float), pool(satisfied)
    with pytest.raises(ValueError, match="one class"):
        lire.fit(X, np.zeros(60, int), rules=rules, **PENALTIES)
    with pytest.raises(
        ValueError, match="sample_weight is zero or negligible for every row of class"
    ):
        lire.fit(X, target, rules=rules, sample_weight=target.astype(float), **PENALTIES)
    with pytest.raises(ValueError, match="different columns"):
        lire.fit(X[:, :4], target, rules=rules, **PENALTIES)
    with pytest.raises(ValueError, match="rules is empty"):
        lire.fit(X, target, rules=rules.take([]), **PENALTIES)
    with pytest.raises(ValueError, match="values"):
        lire.fit(X, target[:-1], rules=rules, **PENALTIES)


@pytest.mark.parametrize("learner", [fit_pool, published])
def test_a_pool_larger_than_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, learner: Any
) -> None:
    satisfied, target = noisy(0, 60, 5)
    monkeypatch.setattr(row_module, "available_memory", lambda: 100)
    with pytest.raises(ValueError, match=r"5 rules on .* rows need .* GiB .* pass fewer rules"):
        learner(satisfied, target)


def test_bad_paths_and_objectives() -> None:
    satisfied, target = noisy(0, 60, 5)
    X, rules = satisfied.astype(float), pool(satisfied)
    with pytest.raises(ValueError, match="global_penalties must be a non-empty"):
        lire.path(X, target, global_penalties=[], rules=rules)
    with pytest.raises(ValueError, match="global_penalties must be finite"):
        lire.path(X, target, global_penalties=[0.1, -0.1], rules=rules)
    with pytest.raises(ValueError, match="local_penalties has 1 values for 2"):
        lire.path(X, target, global_penalties=[0.1, 0.2], local_penalties=[0.1], rules=rules)
    model = fit_pool(satisfied, target).model
    with pytest.raises(TypeError, match="model must be a RuleEnsemble"):
        lire.objective(rules, X, target, **PENALTIES)
    with pytest.raises(ValueError, match="labels that the model does not know"):
        lire.objective(model, X, target + 5, **PENALTIES)
    terms = jr.LinearTerms(
        np.array([0], np.int32), np.ones((1, 1)), np.array([0.0]), np.array([1.0])
    )
    linear = jr.RuleEnsemble(
        model.conjunctions, model.weights, model.intercept, terms, "exponential"
    )
    with pytest.raises(ValueError, match="has linear terms"):
        lire.objective(linear, X, target, **PENALTIES)


def test_memory_that_the_system_reports() -> None:
    assert row_module.available_memory() > 1 << 20


def test_default_rules_categories_and_missing_values() -> None:
    rng = np.random.default_rng(0)
    age, job = rng.normal(40, 10, 200).round(), rng.choice(["cook", "smith", "clerk"], 200)
    target = np.where((age > 40) & (job != "cook"), "yes", "no")
    age[:5] = np.nan
    frame = {"age": age, "job": job}
    with pytest.raises(ValueError, match="missing"):
        lire.fit(pd.DataFrame(frame), target, **PENALTIES)
    fit = lire.fit(pd.DataFrame(frame), target, missing="own_category", seed=1, **PENALTIES)
    assert jr.accuracy(fit.model, pd.DataFrame(frame), target) > 0.95
    assert fit.details["n_candidates"] > 20
    again = lire.fit(pd.DataFrame(frame), target, missing="own_category", seed=1, **PENALTIES)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(fit.model), jax.tree.leaves(again.model), strict=True)
    )
