"""Rule boosting end to end: stages against the formulas, limits, losses,
missing values, refusals.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import jaxrules as jr
from jaxrules import losses
from jaxrules.ensembles import boosting, glrm
from jaxrules.rules import rows
from jaxrules.rules.conditions import PropositionPool, propositions_of
from jaxrules.solvers.linear.refit import refit_weights
from jaxrules.solvers.rule_search import depth_first
from jaxrules.tools.fits import Status
from jaxrules.tools.runs import Deadline

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4)).round(1)
Y = 2.0 * (X[:, 0] > 0) * (X[:, 1] < 0.5) - (X[:, 2] > 1) + 0.3 * RNG.normal(size=150)
LABEL = np.where(Y > 0.5, "yes", "no")
PAPER: dict[str, Any] = {**boosting.PAPER, "max_cut_points": 5}


def paper_fit(X: Any, y: Any, **given: Any) -> jr.Fit[jr.RuleEnsemble]:
    """A fit with the settings of "Better Short than Greedy", except those given."""
    return boosting.fit(X, y, **PAPER | given)


def risk(
    fit: jr.Fit[jr.RuleEnsemble], loss: losses.Loss, y: np.ndarray, l2_penalty: float, data: Any = X
) -> float:
    """The regularised risk (2.1) from the model alone."""
    scores = jr.decision_function(fit.model, data)
    weights = np.asarray(fit.model.weights)
    return float(np.mean(loss.value(y, scores)) + l2_penalty / (2 * len(y)) * np.sum(weights**2))


@pytest.mark.parametrize("name", ["squared", "logistic", "poisson", "exponential"])
@pytest.mark.parametrize("search", ["optimal", "greedy", "beam", "published"])
def test_stages_follow_the_paper(name: str, search: str) -> None:
    loss = losses.loss_by_name(name)
    y: Any = {"real": Y, "count": np.round(np.abs(Y) * 2), "sign": LABEL}[loss.target]
    coded = np.where(LABEL == "yes", 1.0, -1.0) if loss.target == "sign" else y
    options: dict[str, Any] = {"loss": name, "max_rules": 4, "l2_penalty": 2.0, "max_cut_points": 3}
    published = search == "published"
    fit = (
        boosting.published(X, y, **options)
        if published
        else paper_fit(X, y, search=search, **options)
    )
    satisfied = fit.model.conjunctions.satisfied(jr.as_table(X))
    scores = np.zeros(len(X))
    assert len(fit.details["stages"]) == len(fit.model.conjunctions) == 4
    for rule, stage in enumerate(fit.details["stages"]):
        g, h = losses.derivatives(loss, coded, scores)
        rows = satisfied[:, rule]
        assert stage.objective == pytest.approx(
            g[rows].sum() ** 2 / (2 * len(X) * (2 + h[rows].sum())), rel=1e-10
        )
        weight, wanted = fit.model.weights[rule, 0], -g[rows].sum() / (2 + h[rows].sum())
        if (
            loss.value(coded, scores + wanted * rows).sum() + wanted**2
            > loss.value(coded, scores).sum()
        ):
            covered = (coded[rows], scores[rows])
            wanted = minimize_scalar(
                lambda b, y, f, loss=loss: loss.value(y, f + b).sum() + b**2,
                args=covered,
                tol=1e-12,
            ).x
            assert weight == pytest.approx(wanted, rel=1e-6)
        else:
            assert weight == pytest.approx(wanted, rel=1e-10)
        scores += weight * rows
        if search in ("greedy", "beam"):
            assert stage.bound is None
            assert stage.gap is None
        else:
            assert stage.status == Status.OPTIMAL
            assert stage.gap is not None
            assert stage.gap < 1e-9
    np.testing.assert_allclose(jr.decision_function(fit.model, X), scores, atol=1e-12)
    assert fit.objective == pytest.approx(risk(fit, loss, coded, 2.0), rel=1e-12)
    assert fit.details["risks"][-1] == pytest.approx(fit.objective, rel=1e-12)
    assert fit.status == Status.CONVERGED
    assert [step.size for step in fit.history] == [1, 2, 3, 4]


def brute_force(
    objective: str, masks: np.ndarray, g: np.ndarray, h: np.ndarray, l2_penalty: float
) -> float:
    best = 0.0
    for length in range(masks.shape[1] + 1):
        for conjunction in itertools.combinations(range(masks.shape[1]), length):
            q = masks[:, conjunction].all(axis=1)
            if objective == "second_order":
                best = max(
                    best,
                    g[q].sum() ** 2 / (2 * len(g) * (l2_penalty + h[q].sum())) if q.any() else 0.0,
                )
            else:
                best = max(best, abs(g[q].sum()))
    return best


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    objective=st.sampled_from(["second_order", "gradient_sum"]),
    name=st.sampled_from(["squared", "logistic"]),
    l2_penalty=st.sampled_from([0.0, 0.5, 4.0]),
)
def test_every_stage_is_optimal(seed: int, objective: Any, name: Any, l2_penalty: float) -> None:
    random = np.random.default_rng(seed)
    data = random.integers(0, 3, (20, 3)).astype(float)
    data[:, 2] = data[:, 1] if seed % 3 else 1.0  # a repeated or a constant column
    coded = (
        random.choice([-1.0, 1.0], 20)
        if name == "logistic"
        else random.integers(-2, 3, 20).astype(float)
    )
    coded[:2] = [-1.0, 1.0]
    loss = losses.loss_by_name(name)
    table = jr.as_table(data)
    masks = propositions_of(table).satisfied(table)
    fit = paper_fit(data, coded, loss=name, objective=objective, l2_penalty=l2_penalty, max_rules=3)
    scores = np.zeros(20)
    satisfied = fit.model.conjunctions.satisfied(table)
    for rule, stage in enumerate(fit.details["stages"]):
        g, h = losses.derivatives(loss, coded, scores)
        if l2_penalty == 0:
            h = np.maximum(h, 1e-8 * h.max())
        assert stage.objective == pytest.approx(
            brute_force(objective, masks, g, h, l2_penalty), rel=1e-9
        )
        scores += fit.model.weights[rule, 0] * satisfied[:, rule]


@pytest.mark.parametrize("search", ["optimal", "greedy", "beam"])
@pytest.mark.parametrize("intercept", [False, True])
def test_orthogonal_objective(search: Any, intercept: bool) -> None:
    small, y = X[:40, :2].round(), Y[:40]
    fit = paper_fit(
        small,
        y,
        objective="orthogonal",
        corrective=True,
        search=search,
        intercept=intercept,
        max_rules=3,
    )
    table = jr.as_table(small)
    masks = propositions_of(table).satisfied(table)
    satisfied = fit.model.conjunctions.satisfied(table)
    first = [np.ones(40)] if intercept else []
    for rule, stage in enumerate(fit.details["stages"]):
        earlier = (
            np.stack([*first, *satisfied[:, :rule].T.astype(float)], axis=1)
            if first or rule
            else None
        )
        weights, constant = np.zeros(rule), float(np.mean(y)) if intercept else 0.0
        if rule:
            weights, constant = refit_weights(
                losses.squared, y, satisfied[:, :rule], l2_penalty=1.0, intercept=intercept,
                sample_weight=np.ones(40), start=(weights, constant),
            )  # fmt: skip
        g = losses.squared.gradient(y, constant + satisfied[:, :rule] @ weights)
        basis = np.zeros((40, 0)) if earlier is None else np.linalg.qr(earlier)[0]
        g = g - basis @ (basis.T @ g)

        def value(q: np.ndarray, g: np.ndarray = g, basis: np.ndarray = basis) -> float:
            rest = q - basis @ (basis.T @ q)
            return (
                abs(g @ q) / (np.linalg.norm(rest) + 1e-6)
                if rest @ rest > 1e-9 * max(q.sum(), 1)
                else 0.0
            )

        assert stage.objective == pytest.approx(value(satisfied[:, rule].astype(float)), rel=1e-6)
        if search == "optimal":
            every = itertools.chain.from_iterable(
                itertools.combinations(range(masks.shape[1]), k) for k in range(5)
            )
            best = max(value(masks[:, c].all(axis=1).astype(float)) for c in every)
            assert stage.objective >= best * (1 - 1e-6)


def test_optimal_is_never_worse_than_greedy_in_the_first_stage() -> None:
    for penalty in (0.1, 1.0, 10.0):
        stages = [
            paper_fit(X, Y, search=s, max_rules=1, l2_penalty=penalty).details["stages"][0]
            for s in ("optimal", "beam", "greedy")
        ]
        assert stages[0].objective >= stages[1].objective >= stages[2].objective


@pytest.mark.parametrize("name", ["squared", "logistic", "poisson"])
@pytest.mark.parametrize("intercept", [False, True])
def test_corrective_refit_is_stationary(name: str, intercept: bool) -> None:
    loss = losses.loss_by_name(name)
    y: Any = {"real": Y, "count": np.round(np.abs(Y) * 2), "sign": LABEL}[loss.target]
    coded = np.where(LABEL == "yes", 1.0, -1.0) if loss.target == "sign" else y
    options: Any = {"loss": name, "max_rules": 4, "intercept": intercept, "max_cut_points": 4}
    fit = paper_fit(X, y, corrective=True, **options)
    g, _ = losses.derivatives(loss, coded, jr.decision_function(fit.model, X))
    satisfied = fit.model.conjunctions.satisfied(jr.as_table(X))
    np.testing.assert_allclose(satisfied.T @ g + fit.model.weights[:, 0], 0.0, atol=1e-5)
    if intercept:
        assert abs(g.sum()) < 1e-5
    else:
        assert fit.model.intercept[0] == 0.0
    assert fit.objective == pytest.approx(risk(fit, loss, coded, 1.0), rel=1e-12)
    assert list(fit.details["risks"]) == sorted(fit.details["risks"], reverse=True)


def test_weights_are_repetitions_and_zero_weights_are_absent_rows() -> None:
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    options: Any = {"max_rules": 3, "max_length": 2, "max_cut_points": None}
    weighted = paper_fit(X, Y, sample_weight=weight, **options)
    repeated = paper_fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight), **options)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-10)
    for ours, theirs in zip(weighted.details["stages"], repeated.details["stages"], strict=True):
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-10)


def test_user_loss_matches_the_built_in_one() -> None:
    own = paper_fit(X, Y, loss=lambda y, score: (y - score) ** 2, max_rules=3)
    named = paper_fit(X, Y, loss="squared", max_rules=3)
    assert str(own.model.conjunctions) == str(named.model.conjunctions)
    np.testing.assert_allclose(own.model.weights, named.model.weights, rtol=1e-12)


def test_categories_and_missing_values() -> None:
    import pandas as pd

    frame = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
    frame.loc[:19, "size"] = np.nan
    y = np.where(frame["size"].isna(), 5.0, 0.0) + (frame["colour"] == "red")
    fit = paper_fit(frame, y, missing="own_category", max_rules=3, l2_penalty=0.01)
    words = [fit.model.conjunctions.describe(r) for r in range(len(fit.model.conjunctions))]
    assert words[0] == "size is missing"
    assert any("colour" in text for text in words)
    np.testing.assert_allclose(jr.predict(fit.model, frame), y, atol=0.2)
    with pytest.raises(ValueError, match="missing values"):
        paper_fit(frame, y)


def grown(
    masks: np.ndarray, g: np.ndarray, tolerance: float, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, int]]:
    """The rows and the length of the rules at which greedy growth under the tolerance ends; all
    ties, such as complements, are followed.
    """
    selected = masks & rows[:, None]
    gains = np.abs(g @ selected)
    if gains.max() <= (1 + tolerance) * abs(g @ rows):
        yield rows, 0
        return
    for tied in np.unique(selected[:, gains >= gains.max() * (1 - 1e-9)], axis=1).T:
        for end, length in grown(masks, g, tolerance, tied):
            yield end, length + 1


@pytest.mark.parametrize("corrective", [False, True])
@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_threshold_boosting_with_the_tolerance_of_lltboost(name: Any, corrective: bool) -> None:
    """A further proposition must raise |g'q| by more than 30 %. The rule is at least as good as the
    one in which greedy growth ends.
    """
    y, coded = (LABEL, np.where(LABEL == "yes", 1.0, -1.0)) if name == "logistic" else (Y, Y)
    loss, table = losses.loss_by_name(name), jr.as_table(X)
    options: Any = {
        "loss": name,
        "objective": "gradient_sum",
        "search": "greedy",
        "intercept": True,
        "max_rules": 4,
        "max_cut_points": None,
    }
    settings: Any = {**PAPER, "corrective": corrective, "l2_penalty": 0.1, **options}
    path = boosting.path(X, y, **settings, objective_tolerance=0.3)
    masks = propositions_of(table).satisfied(table)
    scores = np.full(len(X), losses.best_constant(loss, coded, np.ones(len(X))))
    assert len(path) == 4
    for m, fit in enumerate(path):
        g, _ = losses.derivatives(loss, coded, scores)
        stage, rows = fit.details["stages"][-1], fit.model.conjunctions.satisfied(table)[:, m]
        assert stage.objective == pytest.approx(abs(g @ rows) / 1.3**stage.length)
        ends = list(grown(masks, g, 0.3, np.ones(len(X), bool)))
        assert stage.objective >= min(abs(g @ end) / 1.3**length for end, length in ends) * (
            1 - 1e-9
        )
        assert abs(g @ rows) >= 1.3**stage.length * abs(g.sum()) * (1 - 1e-9)
        scores = jr.decision_function(fit.model, X)
    free = boosting.fit(X, y, **settings)
    assert path[-1].model.conjunctions.lengths.sum() < free.model.conjunctions.lengths.sum()


def test_stops_when_nothing_is_left() -> None:
    y = 3.0 * (X[:, 0] > 0)
    fit = paper_fit(X, y, loss="squared", max_rules=10, l2_penalty=0.0, max_cut_points=None)
    assert len(fit.model.conjunctions) == 1
    assert fit.objective == pytest.approx(0.0, abs=1e-20)
    nothing = paper_fit(X, np.zeros(len(X)))
    assert len(nothing.model.conjunctions) == 0
    np.testing.assert_array_equal(jr.predict(nothing.model, X), 0.0)


def test_time_limit_with_an_injected_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth_first, "SLICE", 500)
    ticks = itertools.count()
    fit = paper_fit(X, Y, max_rules=4, time_limit=Deadline(48.0, clock=lambda: float(next(ticks))))
    assert fit.status == Status.TIME_LIMIT
    assert len(fit.details["stages"]) == 4  # later stages go on
    limited = [stage for stage in fit.details["stages"] if stage.status == Status.TIME_LIMIT]
    assert limited
    assert all(stage.gap is not None and stage.gap >= 0 for stage in fit.details["stages"])
    optimum = paper_fit(X, Y, max_rules=1).details["stages"][0].objective
    assert fit.details["stages"][0].bound >= optimum * (1 - 1e-9)


def test_interrupt_keeps_the_rules_so_far() -> None:
    def ctrl_c(progress: jr.Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    fit = paper_fit(X, Y, max_rules=5, progress=ctrl_c)
    assert fit.status == Status.INTERRUPTED
    assert len(fit.model.conjunctions) == 2


def test_interrupt_in_the_search_keeps_its_best_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes in the second search, when it asks for the time."""
    asked = 0

    def clock() -> float:
        nonlocal asked
        if seen and seen[-1].done == 1:
            asked += 1
            if asked == 4:
                signal.raise_signal(signal.SIGINT)
        return 0.0

    seen: list[jr.Progress] = []
    monkeypatch.setattr(depth_first, "SLICE", 500)
    options: Any = {"max_rules": 5, "max_cut_points": None}
    fit = paper_fit(X, Y, time_limit=Deadline(1.0, clock), progress=seen.append, **options)
    assert fit.status == Status.INTERRUPTED
    assert [stage.status for stage in fit.details["stages"]] == [Status.OPTIMAL, Status.INTERRUPTED]
    assert len(fit.model.conjunctions) == 2


def test_no_time_leaves_the_best_constant() -> None:
    fit = paper_fit(X, Y, max_rules=40, time_limit=0, intercept=True)
    np.testing.assert_allclose(jr.predict(fit.model, X), Y.mean())


def test_the_published_search_without_time_takes_the_best_proposition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at_once(space: Any, objective: Any, **limits: Any) -> Any:
        return published(space, objective, **limits | {"stopped": lambda: True})

    module = importlib.import_module("jaxrules.ensembles.boosting.published")
    published = module.search_published
    monkeypatch.setattr(module, "search_published", at_once)
    fit = boosting.published(X, Y, max_rules=2, max_cut_points=5)
    greedy = paper_fit(X, Y, search="greedy", max_length=1, max_rules=2)
    assert fit.objective == pytest.approx(greedy.objective, rel=1e-12)
    assert [stage.status for stage in fit.details["stages"]] == [Status.TIME_LIMIT] * 2
    assert all(stage.bound >= stage.objective for stage in fit.details["stages"])


def test_approximation_evaluations_and_length() -> None:
    best = paper_fit(X, Y, max_rules=1).details["stages"][0]
    rough = paper_fit(X, Y, max_rules=1, approximation=0.5).details["stages"][0]
    assert rough.objective >= 0.5 * best.objective
    assert rough.evaluations <= best.evaluations
    few = paper_fit(X, Y, max_rules=2, max_evaluations=10)
    assert few.status == Status.MAX_ITERATIONS
    short = paper_fit(X, Y, max_rules=3, max_length=1)
    assert max(short.model.conjunctions.lengths) <= 1


@pytest.mark.parametrize("objective", ["second_order", "corrective_decrease"])
def test_the_default_limit_leaves_a_true_certificate(
    objective: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = boosting.fit(X, Y, objective=objective, max_length=None, max_rules=1).details["stages"][
        0
    ]
    assert whole.status == Status.OPTIMAL
    monkeypatch.setattr(boosting.options, "_SOME_VISITS", 20 * len(X))
    fit = boosting.fit(X, Y, objective=objective, max_length=None, max_rules=3)
    limited = fit.details["stages"][0]
    assert fit.status == limited.status == Status.MAX_ITERATIONS
    assert limited.counts["nodes"] < whole.counts["nodes"]
    assert limited.objective <= whole.objective * (1 + 1e-9) <= limited.bound * (1 + 2e-9)
    again = boosting.fit(X, Y, objective=objective, max_length=None, max_rules=3)
    assert (str(again.model), again.objective) == (str(fit.model), fit.objective)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]), st.sampled_from([{}, {"x0": 1}]))
def test_rules_of_three_of_few_conditions_are_those_of_branch_and_bound(
    seed: int, classes: int, monotone: dict[str, int]
) -> None:
    """Products of matrices, and the search that a number of evaluations chooses."""
    r = np.random.default_rng(seed)
    X = (r.random((60, 7)) < 0.4).astype(int)
    y = r.integers(0, classes, 60) * (X[:, 0] | (X[:, 1] & X[:, 2]))
    y[:classes] = range(classes)
    options: dict[str, Any] = {"max_rules": 3, "l2_penalty": 1.0}
    if classes == 2:
        options["monotone"] = monotone
    products = boosting.fit(X, y, **options)
    searched = boosting.fit(X, y, max_evaluations=10**9, **options)
    assert all(stage.status == Status.OPTIMAL for stage in products.details["stages"])
    first, other = (fit.details["stages"][0] for fit in (products, searched))
    assert first.objective == pytest.approx(other.objective, rel=1e-9)


@pytest.mark.parametrize(
    "objective", ["second_order", "corrective_decrease", "gradient_sum", "orthogonal"]
)
def test_rules_of_two_conditions_are_proved_by_default(objective: Any) -> None:
    """Histograms prove what branch and bound proves pair by pair."""
    options: Any = {"objective": objective, "max_rules": 4, "max_cut_points": 8}
    fit = boosting.fit(X, Y, **options)
    assert len(fit.details["stages"]) == 4
    assert all(
        stage.status == Status.OPTIMAL and stage.gap < 1e-9 for stage in fit.details["stages"]
    )
    assert max(fit.model.conjunctions.lengths) == 2
    one_by_one = boosting.fit(X, Y, max_length=2, max_evaluations=10**9, **options)
    assert one_by_one.objective == pytest.approx(fit.objective, rel=1e-9)
    assert str(boosting.fit(X, Y, max_length=2, **options).model) == str(fit.model)


def test_few_propositions_make_rules_of_three_conditions_by_default() -> None:
    data = np.array(list(itertools.product([0.0, 1.0], repeat=4)) * 5)
    y = data[:, 0] * data[:, 1] * data[:, 2]
    fit = boosting.fit(data, y, max_rules=1, l2_penalty=0.0)
    assert fit.details["stages"][0].length == 3
    np.testing.assert_allclose(jr.predict(fit.model, data), y, atol=1e-9)
    assert boosting.fit(data, y, max_rules=1, max_length=2).details["stages"][0].length == 2


def test_elimination_takes_back_what_later_rules_say() -> None:
    """The best rules for a weighted sum are conjunctions first; its terms alone
    then make them superfluous.
    """
    data = np.array(list(itertools.product([0.0, 1.0], repeat=2)) * 10)
    y = data @ [3.0, 2.0]
    options: Any = {
        "objective": "second_order",
        "per_unit": False,
        "max_rules": 5,
        "l2_penalty": 1e-6,
    }
    forward = boosting.fit(data, y, **options)
    fit = boosting.fit(data, y, eliminate=True, **options)
    assert fit.details["stages"][0].length == 2
    assert jr.complexity(fit.model) == 4 < jr.complexity(forward.model)
    np.testing.assert_allclose(jr.predict(fit.model, data), y, atol=1e-5)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from(["squared", "logistic"]))
def test_elimination_pays_half_of_the_gain_at_most(seed: int, loss: Any) -> None:
    """The regularised risk falls at every stage: an elimination costs less than the rule gains."""
    random = np.random.default_rng(seed)
    y = random.normal(size=60) + 2 * (X[:60, 0] > 0)
    given: dict[str, Any] = {
        "loss": loss,
        "search": "beam",
        "max_rules": 5,
        "max_cut_points": 4,
        "eliminate": True,
    }
    path = boosting.path(X[:60], y > 0 if loss == "logistic" else y, **given)
    risks = path[-1].details["risks"]
    assert (np.diff(risks) < 0).all()
    assert [fit.objective for fit in path] == list(risks[1:])
    for fit in path:
        assert len(fit.model.conjunctions) == len(fit.model.weights) <= len(fit.details["stages"])


@pytest.mark.parametrize(
    "name",
    [
        "breast_cancer",
        *(
            pytest.param(n, marks=pytest.mark.needs_data)
            for n in ("banknote", "tic_tac_toe", "heart")
        ),
    ],
)
def test_weights_on_separable_data_can_be_read(name: str) -> None:
    """A ridge of 1 keeps the log-odds of a rule within 8; without a ridge they diverge."""
    train, test = jr.datasets.train_test_split(jr.datasets.load(name), seed=0)
    fit = boosting.fit(train.X, train.y, search="beam", max_length=None, l2_penalty=1.0)
    without = boosting.fit(train.X, train.y, search="beam", max_length=None, l2_penalty=0.0)
    assert np.abs(fit.model.weights).max() < 8 < np.abs(without.model.weights).max()
    assert jr.risk(fit.model, test.X, test.y) < 0.5
    assert (
        jr.accuracy(fit.model, test.X, test.y) > jr.accuracy(without.model, test.X, test.y) - 0.01
    )


def test_own_propositions() -> None:
    table = jr.as_table(X)
    pool = PropositionPool.of(
        table.schema, [jr.Condition.above(0, 0.0), jr.Condition.below(1, 0.5)]
    )
    fit = paper_fit(X, Y, propositions=pool, max_rules=2)
    assert fit.details["propositions"] == 2
    assert set(fit.model.conjunctions.feature) <= {0, 1}
    terms = jr.Direction((0, 1), (1.0, 1.0)), 2
    half = PropositionPool.of(table.schema, [jr.Condition.at_least(x, 0.0) for x in terms])
    oblique = paper_fit(X, Y, propositions=half, max_rules=2).model
    assert len(oblique.conjunctions.directions) == 1
    assert any("x0 + x1 >= 0" in oblique.conjunctions.describe(r) for r in range(2))
    scores = np.zeros(len(X))
    for weight, rule in zip(oblique.weights[:, 0], oblique.conjunctions, strict=True):
        says = [
            X[:, 0] + X[:, 1] >= 0.0 if not isinstance(c.feature, int) else X[:, 2] >= 0.0
            for c in rule
        ]
        scores += weight * np.all(says, axis=0)
    np.testing.assert_array_equal(jr.predict(oblique, X), scores)
    with pytest.raises(ValueError, match="columns other than"):
        paper_fit(X[:, :2], Y, propositions=pool)
    with pytest.raises(TypeError, match="PropositionPool"):
        paper_fit(X, Y, propositions=[jr.Condition.above(0, 0.0)])


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"loss": lambda y, score: -((y - score) ** 2)}, ValueError, "not convex"),
    ({"loss": lambda y, score: jnp.log(score)}, ValueError, "non-finite derivative"),
    (
        {"loss": lambda y, score: y * score, "l2_penalty": 0.0},
        ValueError,
        "no curvature",
    ),
    ({"search": "published"}, ValueError, r"separate function: jaxrules\.boosting\.published"),
    ({"objective": "corrective_decrease"}, ValueError, "refits all weights; set corrective=True"),
    ({"eliminate": True}, ValueError, "refits all weights; set corrective=True"),
    ({"max_length": "any"}, TypeError, "max_length must be an integer"),
    ({"max_evaluations": "many"}, TypeError, "max_evaluations must be an integer"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_bad_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        paper_fit(X, Y, **arguments)


def test_too_many_propositions_are_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        rows, "available_memory", lambda: 6 * len(X) * 4 * 4 * 2
    )  # of two cut points in four columns
    for learner, module in ((boosting, boosting.fitting), (glrm, glrm.task)):
        monkeypatch.setattr(
            module, "all_propositions", lambda *args, **kwargs: pytest.fail("work was done")
        )
        with pytest.raises(
            ValueError, match=r"propositions on .* set max_cut_points=2, the most that fit$"
        ):
            learner.fit(X, Y, max_cut_points=3)
    monkeypatch.setattr(rows, "available_memory", lambda: 1)
    with pytest.raises(ValueError, match="use fewer rows or columns$"):
        boosting.fit(X, Y)


def test_the_default_number_of_cut_points_is_what_memory_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        rows, "available_memory", lambda: 6 * len(X) * 4 * 4 * 2
    )  # of two cut points in four columns
    with pytest.raises(ValueError, match="set max_cut_points=2"):
        boosting.fit(X, Y, max_cut_points=20)
    fewer, two = boosting.fit(X, Y, max_rules=2), boosting.fit(X, Y, max_rules=2, max_cut_points=2)
    assert fewer.details["propositions"] >= two.details["propositions"]  # and thresholds of trees
    assert fewer.objective <= two.objective


@pytest.mark.parametrize("learner", ["boosting", "lire"])
def test_many_rows_in_little_time_have_rules_of_a_sample(learner: str) -> None:
    """On a clock that stands still: time enough for the sample, not for all rows."""
    rng = np.random.default_rng(0)
    many = rng.normal(size=(20_000, 5))
    y = (1.5 * (many[:, 0] > 0.3) - (many[:, 1] > 0) + rng.logistic(size=20_000) > 0).astype(int)
    fit = getattr(jr, learner).fit
    short = fit(many, y, time_limit=jr.Deadline(0.06, lambda: 0.0))
    assert short.details["sample"] == 3000
    assert short.status is Status.TIME_LIMIT
    assert len(short.model.conjunctions) >= 1
    assert np.mean(np.asarray(jr.predict(short.model, many)) == y) > 0.6
    again = fit(many, y, time_limit=jr.Deadline(0.06, lambda: 0.0))
    assert again.objective == short.objective
    loss = losses.loss_by_name(short.model.loss)
    score = np.asarray(jr.decision_function(short.model, many)).ravel()
    mean = float(np.mean(loss.value(np.where(y, 1.0, -1.0), score)))
    assert mean < short.objective < 1.2 * mean  # of all rows, and the penalties
    assert fit(many[:100], y[:100], time_limit=60.0).details["sample"] is None


def test_stage_gap() -> None:
    stage = boosting.Stage(2.0, 3.0, Status.TIME_LIMIT, 1.0, 1, 5, 0.1)
    assert stage.gap == 0.5


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["poisson", "exponential", "logistic", "squared"]),
    st.booleans(),
)
def test_no_rule_raises_the_regularised_risk(seed: int, loss: str, corrective: bool) -> None:
    """Also where Newton's step overshoots: counts far from the score's start, and losses
    without bounded curvature.
    """
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 3))
    y: Any = random.poisson(np.exp(random.uniform(0, 6)), 40) + (np.arange(40) < 2)
    if loss in ("exponential", "logistic"):
        y = y > np.median(y)
    if y.dtype == bool:
        y[:2] = False, True
    fit = paper_fit(
        X, y, loss=loss, search="greedy", max_rules=6, l2_penalty=10.0 ** random.integers(-3, 2),
        corrective=corrective, max_cut_points=4,
    )  # fmt: skip
    risks = np.array(fit.details["risks"])
    assert (np.diff(risks) <= 1e-9 * np.abs(risks[:-1])).all()


def test_counts_far_from_the_start_are_fitted() -> None:
    """Newton's first step goes from a rate of 1 to one of e^99."""
    y = np.random.default_rng(0).poisson(100, 50)
    X = np.arange(50.0)[:, None]
    fit = paper_fit(X, y, loss="poisson", max_rules=3, max_cut_points=4)
    assert jr.predict(fit.model, X).mean() == pytest.approx(y.mean(), rel=0.05)


def test_the_ridge_follows_the_noise() -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 4, (400, 4)).astype(float)
    clear = (data[:, 0] > 1) & (data[:, 1] < 3)
    noisy = clear ^ (rng.random(400) < 0.3)
    fits = [boosting.fit(data, y, max_rules=3) for y in (clear, noisy)]
    ridges = [fit.details["l2_penalty"] for fit in fits]
    assert ridges[0] < 4 < ridges[1]
    assert all(
        f"l2_penalty={ridge:g}" in repr(fit) for ridge, fit in zip(ridges, fits, strict=True)
    )
    again = boosting.fit(data, noisy, max_rules=3, l2_penalty=ridges[1])
    assert again.objective == fits[1].objective
    assert not again.chosen
    assert boosting.path(data, noisy, max_rules=5)[2].objective == fits[1].objective


@pytest.mark.parametrize("classes", [2, 3])
def test_many_columns_two_of_which_matter_only_together(classes: int) -> None:
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(1000, 90))
    y = ((X[:, 3] > 0) != (X[:, 70] > 0)).astype(int)
    if classes == 3:
        y = np.where(X[:, 20] > 0.5, 2, y)
    fit = boosting.fit(X, y)
    assert jr.accuracy(fit.model, X, y) > 0.97
    assert all(stage.counts["pairs_left_out"] > 0 for stage in fit.details["stages"])
    assert all(stage.status == Status.MAX_ITERATIONS for stage in fit.details["stages"])
    assert "pairs of columns; max_evaluations=None compares all." in repr(fit)
    if classes == 2:
        signed = boosting.fit(X, y, monotone={0: 1})
        assert jr.accuracy(signed.model, X, y) > 0.97


@pytest.mark.parametrize("max_length", [2, 3, None])
@pytest.mark.parametrize("classes", [2, 3])
def test_no_two_rules_for_the_same_rows(max_length: int | None, classes: int) -> None:
    """Under a large ridge a second weight for the same rows would be worth more than another rule;
    x1 says the same as x0, and its opposite says no more.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [-0.5, 0.5][: classes - 1])
    X[:, 1] = -np.sign(X[:, 0] - 0.3)
    result = jr.boosting.fit(
        X, y, max_rules=6, max_cut_points=3, max_length=max_length, l2_penalty=40.0
    )
    extents = result.model.conjunctions.satisfied(jr.as_table(X))
    assert len(result.model.conjunctions) == 6
    for a, b in itertools.combinations(extents.T, 2):
        assert (a != b).any()
        assert (a == b).any()
    assert all(s.objective <= s.bound * (1 + 1e-9) for s in result.details.stages)


# Pairs ranked on a device


def _device_data() -> dict[str, Any]:
    random = np.random.default_rng(1)
    X = random.normal(size=(300, 4)).round(1)
    X[:, 3] = random.integers(0, 3, 300)
    number = X[:, 0] * (X[:, 1] > 0) + X[:, 2] / 2 + random.normal(size=300) * 0.3
    counts = np.maximum(np.round(2 * number), 0)
    return {"X": X, "two": number > 0, "number": number, "counts": counts,
            "three": np.digitize(number, [-0.5, 0.5]),
            "weights": random.integers(1, 4, 300) / 2}  # fmt: skip


@pytest.mark.parametrize(
    ("target", "settings"),
    [
        ("two", {}),
        ("two", {"per_unit": False, "objective_tolerance": 0.1}),
        ("two", {"sample_weight": "weights", "l2_penalty": 2.0}),
        ("two", {"monotone": {0: 1, 2: -1}}),
        ("two", {"required": [3], "forbidden": [0], "max_rules": 2}),
        ("two", {"max_length": 3, "max_cut_points": 3, "required": [3], "max_rules": 2}),
        ("two", {"max_length": 3, "max_cut_points": 3}),
        ("two", {"objective": "second_order", "corrective": False, "intercept": False}),
        ("two", {"objective": "gradient_sum"}),
        ("two", {"objective": "orthogonal"}),
        ("two", {"linear_terms": True, "eliminate": True}),
        ("two", {"max_nonzeros": 2, "max_rules": 2}),
        ("number", {"l2_penalty": 0.0}),
        ("counts", {"loss": "poisson"}),
        ("three", {}),
        ("three", {"max_length": 3, "max_cut_points": 2}),
        ("three", {"monotone": {0: 1}, "multiclass": "one_vs_rest"}),
    ],
)
@pytest.mark.full
def test_a_device_finds_the_rules_of_the_host(target: str, settings: dict[str, Any]) -> None:
    """Model, bounds and counts, in every setting; of three conditions, counts and the rounding of
    bounds are those of another search.
    """
    data = _device_data()
    given = {name: data["weights"] if value == "weights" else value
             for name, value in settings.items()}  # fmt: skip
    host, device = (
        jr.boosting.fit(
            data["X"], data[target], **{"max_rules": 4, "max_cut_points": 8} | given, engine=engine
        )
        for engine in ("numpy", "jax")
    )
    assert str(device.model) == str(host.model)
    assert device.objective == host.objective
    untimed = functools.partial(replace, seconds=0.0)
    if settings.get("max_length") == 3:
        untimed = functools.partial(untimed, evaluations=0, counts={}, bound=0.0)
        untimed = functools.partial(untimed, axis_parallel_bound=0.0)
    kind = boosting.Stage
    one, other = (
        jax.tree.map(untimed, fit.details.stages, is_leaf=lambda stage: isinstance(stage, kind))
        for fit in (device, host)
    )
    assert one == other


@pytest.mark.full
def test_a_device_ranks_again_until_nothing_better_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair at a time; and so many that the host's histograms take over."""
    data, few_cuts = _device_data(), {"max_rules": 3, "max_cut_points": 4, "max_length": 2}
    host = jr.boosting.fit(data["X"], data["two"], **few_cuts, engine="numpy")
    for few, most in ((1, 1024), (2, 0)):
        monkeypatch.setattr("jaxrules.solvers.rule_search.pairs._RANKED", few)
        monkeypatch.setattr("jaxrules.solvers.rule_search.pairs._MOST_RANKED", most)
        found = jr.boosting.fit(data["X"], data["two"], **few_cuts, engine="jax")
        assert str(found.model) == str(host.model)
        assert found.details.risks == host.details.risks


@pytest.mark.parametrize(
    "settings",
    [{"search": "beam"}, {"max_length": None}, {"max_length": 1}, {"max_evaluations": 100}],
)
def test_what_a_device_does_not_search(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(ValueError, match=f'engine="jax" examines all pairs.*{name}.*engine="auto"'):
        jr.boosting.fit(np.eye(4), np.arange(4.0), engine="jax", **settings)


def test_a_device_needs_few_cells() -> None:
    X = np.arange(600.0)[:, None]
    with pytest.raises(ValueError, match="at most 256 cells; lower max_cut_points"):
        jr.boosting.fit(X, X[:, 0] ** 2, engine="jax", max_cut_points=None)


@pytest.mark.filterwarnings("ignore:column .* categories")
def test_hundreds_of_categories() -> None:
    """The frequent one is found, and a category that fit did not see is none of those of the rules,
    like one that is rare.
    """
    random = np.random.default_rng(0)
    names = np.where(random.random(1500) < 0.1, "common", random.integers(0, 700, 1500).astype(str))
    frame = pd.DataFrame({"a": pd.Categorical(names), "u": random.normal(size=1500)})
    y = 2.5 * (names == "common") + frame["u"].to_numpy() + random.normal(size=1500) > 0.5
    model = boosting.fit(frame, y, max_rules=2, max_length=1).model
    assert "a == common" in {model.conjunctions.describe(r) for r in range(2)}
    new = pd.DataFrame({"a": ["unseen", "7", "common"], "u": [0.0, 0.0, 0.0]})
    p = np.asarray(jr.predict_proba(model, new))[:, 1]
    assert p[0] == p[1] < p[2]
