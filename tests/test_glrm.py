"""Generalised linear rule models: optimality conditions, pricing against brute
force, certificates, bad input.
"""

from __future__ import annotations

import itertools
import signal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import jaxrules as jr
from jaxrules.ensembles import glrm
from jaxrules.rules.conditions import propositions_of
from jaxrules.solvers.linear import sparse_glm
from jaxrules.solvers.rule_search import SearchSpace
from jaxrules.tools.runs import Deadline


def make_data(seed, rows=120, loss="logistic"):
    """Three features on few values; the target depends on two conjunctions."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(rows, 3)).astype(float)
    score = 1.5 * ((X[:, 0] > 1) & (X[:, 1] <= 2)) - 2.0 * ((X[:, 2] > 2) & (X[:, 0] <= 2)) + 0.3
    if loss == "squared":
        return X, score + 0.3 * rng.normal(size=rows)
    return X, (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(int)


def slopes_of(fit, X, y, loss, weight=None):
    """Derivative of the mean loss by the score of every row."""
    score = np.asarray(jr.decision_function(fit.model, X)).ravel()
    share = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    share = share / share.sum()
    return share * (1 / (1 + np.exp(-score)) - y) if loss == "logistic" else share * 2 * (score - y)


def every_rule(space, longest):
    """All conjunctions of up to `longest` propositions, with the rows they hold for."""
    for length in range(1, longest + 1):
        for rule in itertools.combinations(range(len(space)), length):
            yield rule, space.selected(rule)


def worst_ratio(space, slopes, rule_penalty, condition_penalty, longest):
    return max(
        abs(slopes[rows].sum()) / (rule_penalty + condition_penalty * len(rule))
        for rule, rows in every_rule(space, longest)
    )


def space_of(X, max_cut_points=9):
    table = jr.as_table(X)
    return SearchSpace.of_codes(
        *propositions_of(table, max_cut_points=max_cut_points).cell_codes(table)
    )


# Optimality


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("start", ["conditions", "empty"])
def test_no_rule_of_bounded_length_is_left_at_exact_convergence(loss, start):
    X, y = make_data(1, loss=loss)
    fit = glrm.fit(X, y, loss=loss, rule_penalty=0.01, pricing="exact", max_length=3, start=start)
    assert fit.status == "optimal"
    assert fit.gap < 1e-5
    ratio = worst_ratio(space_of(X), slopes_of(fit, X, y, loss), 0.01, 0.002, 3)
    assert ratio == pytest.approx(
        1.0, abs=1e-4
    )  # rules in the model meet their condition with equality


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_model_is_the_optimum_over_all_rules_solved_at_once(loss):
    X, y = make_data(2, rows=60, loss=loss)
    fit = glrm.fit(
        X, y, loss=loss, rule_penalty=0.02, condition_penalty=0.005, pricing="exact", max_length=2
    )
    space = space_of(X)
    rules = list(every_rule(space, 2))
    whole = sparse_glm.solve(
        np.stack([rows for _, rows in rules], axis=1),
        2 * y - 1 if loss == "logistic" else y,
        1.0,
        loss=loss,
        penalty_factors=np.array([0.02 + 0.005 * len(rule) for rule, _ in rules]),
        tolerance=1e-9,
    )
    assert fit.objective == pytest.approx(whole.objective, abs=1e-6)
    assert fit.bound <= whole.objective + 1e-9


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_generated_rules_meet_their_optimality_conditions(loss):
    X, y = make_data(3, rows=300, loss=loss)
    fit = glrm.fit(X, y, loss=loss, rule_penalty=0.005, condition_penalty=0.001)
    slopes = slopes_of(fit, X, y, loss)
    assert abs(slopes.sum()) < 1e-9  # the intercept has no penalty
    satisfied = fit.model.conjunctions.satisfied(jr.as_table(X))
    lengths = (
        np.abs(slopes @ satisfied) / 0.001 - 5
    )  # the number of propositions that the condition implies
    np.testing.assert_allclose(lengths, np.round(lengths), atol=1e-2)
    assert (np.sign(slopes @ satisfied) == -np.sign(fit.model.weights[:, 0])).all()
    assert (np.round(lengths) >= fit.model.conjunctions.lengths).all()  # intervals count twice


def test_the_objective_is_that_of_the_model_and_falls():
    X, y = make_data(4, rows=300)
    fit = glrm.fit(X, y, rule_penalty=0.01, condition_penalty=0.0, rules_per_round=1, start="empty")
    objective = jr.risk(fit.model, X, y) + 0.01 * np.abs(fit.model.weights).sum()
    assert fit.objective == pytest.approx(objective, abs=1e-8)
    steps = [step.objective for step in fit.history]
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(steps))
    assert len(steps) > 3


def test_an_exact_search_is_at_least_as_good_as_a_beam_and_bounded_below():
    X, y = make_data(5, rows=200)
    beam = glrm.fit(X, y, rule_penalty=0.004, beam_width=1)
    exact = glrm.fit(X, y, rule_penalty=0.004, pricing="exact")
    assert beam.bound is None
    assert beam.status == "converged"
    assert exact.objective <= beam.objective + 1e-9
    assert exact.bound <= exact.objective
    assert exact.bound <= beam.objective


def test_a_penalty_that_no_rule_can_pay_gives_the_constant():
    X, y = make_data(6)
    fit = glrm.fit(X, y, rule_penalty=1.0, pricing="exact")
    assert fit.status == "optimal"
    assert jr.support(fit.model) == 0
    assert jr.predict_proba(fit.model, X)[:, 1] == pytest.approx(y.mean())


# Pricing


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6), propositions=st.integers(2, 6), rule_penalty=st.floats(0.001, 0.3),
    condition_penalty=st.sampled_from([0.0, 0.01, 0.1]), longest=st.integers(1, 4),
)  # fmt: skip
def test_exact_pricing_is_brute_force(seed, propositions, rule_penalty, condition_penalty, longest):
    rng = np.random.default_rng(seed)
    space = SearchSpace.of(rng.random((30, propositions)) < 0.5)
    slopes = rng.normal(size=30) / 30
    slopes -= slopes.mean()  # the intercept sees to that
    rules, ratio = glrm.price_exactly(
        space, slopes, rule_penalty, condition_penalty, max_length=longest
    )
    worst = worst_ratio(space, slopes, rule_penalty, condition_penalty, min(longest, propositions))
    assert ratio >= worst * (1 - 1e-9)
    if worst > 1:
        assert ratio >= 1
    excess = {
        rule: abs(slopes[rows].sum()) - rule_penalty - condition_penalty * len(rule)
        for rule, rows in every_rule(space, min(longest, propositions))
    }
    best = max(excess.values())
    assert bool(rules) == (best > 1e-12)
    if rules:
        assert excess[rules[0]] == pytest.approx(best, abs=1e-12)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 6))
def test_beam_pricing_finds_violating_rules_of_different_rows(seed, count):
    rng = np.random.default_rng(seed)
    space = SearchSpace.of(rng.random((40, 6)) < 0.5)
    slopes = rng.normal(size=40) / 40
    rules = glrm.price_by_beam(space, slopes, 0.02, 0.005, width=4, max_length=3, count=count)
    assert len(rules) <= count
    rows = [space.selected(rule) for rule in rules]
    excess = [
        abs(slopes[r].sum()) - 0.02 - 0.005 * len(rule) for rule, r in zip(rules, rows, strict=True)
    ]
    assert all(e > -1e-7 for e in excess)
    assert excess == sorted(excess, reverse=True) or np.allclose(
        excess, sorted(excess, reverse=True), atol=1e-6
    )
    assert all(len(rule) <= 3 for rule in rules)
    assert len({r.tobytes() for r in rows}) == len(rows)


def test_beam_pricing_tells_rules_of_equal_slopes_apart():
    space = SearchSpace.of(np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]], bool).T)
    slopes = np.array([1.0, 1.0, 1.0, 1.0, -2.0, -2.0]) / 10
    assert glrm.price_by_beam(space, slopes, 0.01, 0.001, width=4, max_length=2, count=4) == [
        (0,),
        (1,),
    ]


def test_a_wide_beam_finds_the_best_rule():
    rng = np.random.default_rng(0)
    space = SearchSpace.of(rng.random((60, 8)) < 0.6)
    slopes = np.where(space.selected((1, 4)), -1.0, 0.3) / 60
    slopes -= slopes.mean()
    best, _ = glrm.price_exactly(space, slopes, 0.01, 0.002, max_length=3)
    assert (
        glrm.price_by_beam(space, slopes, 0.01, 0.002, width=50, max_length=3, count=1)[0]
        == best[0]
        == (1, 4)
    )


# Options


def test_linear_terms():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), 1000 * rng.normal(size=200), np.ones(200)])
    y = 2 * X[:, 0] - 0.003 * X[:, 1] + 0.01 * rng.normal(size=200)
    fit = glrm.fit(
        X, y, loss="squared", rule_penalty=0.05, linear_terms=True, pricing="exact", max_length=2
    )
    assert fit.model.linear is not None
    np.testing.assert_array_equal(
        fit.model.linear.feature, [0, 1]
    )  # the constant column has no term
    slopes = slopes_of(fit, X, y, "squared")
    values = fit.model.linear.values(jr.as_table(X))
    np.testing.assert_allclose(
        np.abs(slopes @ values), 0.05 * X[:, :2].std(axis=0) / 0.4, rtol=1e-4
    )
    assert fit.gap < 1e-4
    without = glrm.fit(X, y, loss="squared", rule_penalty=0.05)
    assert fit.objective < without.objective
    assert without.model.linear is None


def test_debiased_weights_lower_the_loss_and_leave_the_rules():
    X, y = make_data(7, rows=300)
    fit = glrm.fit(X, y, rule_penalty=0.01)
    debiased = glrm.fit(X, y, rule_penalty=0.01, debias=True)
    assert jr.risk(debiased.model, X, y) < jr.risk(fit.model, X, y)
    assert debiased.objective == fit.objective
    assert jr.support(debiased.model) <= jr.support(fit.model)


def test_weights_count_as_repeated_rows():
    X, y = make_data(8)
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"rule_penalty": 0.01, "max_cut_points": None, "pricing": "exact", "max_length": 3}
    weighted = glrm.fit(X, y, sample_weight=counts, **options)
    repeated = glrm.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts), **options)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-5)


def test_categories_and_missing_values():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 200)
    size = np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200))
    y = (colour == "red") ^ np.isnan(size)
    X = pandas.DataFrame({"colour": colour, "size": size})
    with pytest.raises(ValueError, match="missing"):
        glrm.fit(X, y)
    fit = glrm.fit(X, y, missing="own_category", rule_penalty=0.002)
    assert jr.accuracy(fit.model, X, y) == 1.0


def test_most_rules_and_length():
    X, y = make_data(9, rows=400)
    fit = glrm.fit(X, y, rule_penalty=1e-3, max_rules=3, rules_per_round=2)
    assert fit.status == "max_iterations"
    assert fit.details["n_candidates"] <= 12 + 3
    single = glrm.fit(X, y, rule_penalty=1e-3, max_length=1)
    assert (single.model.conjunctions.lengths == 1).all()
    assert fit.objective < single.objective


def test_time_limit_by_an_injected_clock():
    X, y = make_data(11, rows=300)
    ticks = itertools.count()
    fit = glrm.fit(
        X,
        y,
        rule_penalty=1e-3,
        rules_per_round=1,
        time_limit=Deadline(20, clock=lambda: next(ticks)),
    )
    assert fit.status == "time_limit"
    whole = glrm.fit(X, y, rule_penalty=1e-3, rules_per_round=1)
    assert fit.details["rounds"] < whole.details["rounds"]
    assert fit.objective > whole.objective


def test_progress_and_interrupt():
    X, y = make_data(12, rows=200)
    seen = []

    def stop_after_three(progress):
        seen.append(progress)
        if len(seen) == 3:
            raise KeyboardInterrupt

    fit = glrm.fit(X, y, rule_penalty=1e-3, rules_per_round=1, progress=stop_after_three)
    assert fit.status == "interrupted"
    assert [p.done for p in seen] == [0, 1, 2]  # the first tells that propositions are made
    assert jr.support(fit.model) > 0


def test_ctrl_c_before_the_first_solution_returns_the_constant():
    X, y = make_data(12, rows=200)
    ticks = itertools.count()

    def clock():
        if next(ticks) == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return 0.0

    fit = glrm.fit(X, y, time_limit=Deadline(1, clock=clock))
    assert fit.status == "interrupted"
    assert jr.support(fit.model) == 0
    np.testing.assert_allclose(jr.predict_proba(fit.model, X)[:, 1], y.mean(), rtol=1e-6)


# Bad input


def test_rows_that_are_all_alike_are_refused():
    _, y = make_data(0)
    with pytest.raises(ValueError, match="no column of X varies"):
        glrm.fit(np.ones((len(y), 2)), y)


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_dependent_columns_leave_at_the_same_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.random((8, 12)) < 0.5
    weights = rng.normal(size=12) * (rng.random(12) < 0.8)
    found, shift = glrm.independent(columns, weights)
    np.testing.assert_allclose(columns @ found + shift, columns @ weights, atol=1e-8)
    on = np.flatnonzero(found)
    assert set(on) <= set(np.flatnonzero(weights))
    assert np.linalg.matrix_rank(np.column_stack([columns[:, on], np.ones(8)])) == len(on) + 1
    assert (np.sign(found[on]) == np.sign(weights[on])).all()


def test_rounding_and_columns_of_zeros_have_no_weight() -> None:
    columns = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]], bool)
    found, shift = glrm.independent(columns, np.array([2.0, 1e-11, 3.0]))
    assert found.tolist() == [2.0, 0.0, 0.0]
    assert shift == 0.0


def test_a_best_solution_is_thinned_out_to_a_smaller_one() -> None:
    """Rows of weight two are two rows: of many best solutions, both fits take one of the least
    size. Which of the rules that hold on the same rows of weight it has is open.
    """
    rng = np.random.default_rng(0)
    X, y, weight = rng.random((15, 30)), rng.integers(0, 3, 15), rng.integers(0, 5, 15)
    options = {"loss": "squared", "rule_penalty": 0.0422}
    weighted = jr.glrm.fit(X, y, sample_weight=weight, **options)
    repeated = jr.glrm.fit(X.repeat(weight, axis=0), y.repeat(weight), **options)
    said, told = (np.asarray(jr.predict(fit.model, X))[weight > 0] for fit in (weighted, repeated))
    np.testing.assert_allclose(said, told, rtol=1e-7)
    assert jr.support(weighted.model) == jr.support(repeated.model)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-12)


# Paths


@pytest.mark.parametrize("options", [{}, {"linear_terms": True, "monotone": {0: 1}}], ids=str)
@pytest.mark.parametrize("target", ["labels", "numbers", "classes"])
def test_a_path_is_its_fits(target, options):
    X, y = make_data(13, rows=90, loss="squared" if target == "numbers" else "logistic")
    if target == "classes":
        y = y + (X[:, 1] > 2)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"pricing": "exact", "max_length": 2, "sample_weight": weights, **options}
    fits = glrm.path(X, y, rule_penalties=[0.005, 0.05, 0.02], **options)
    penalties = [np.unique(fit.details["rule_penalty"]).tolist() for fit in fits]
    assert penalties == [[0.05], [0.02], [0.005]]
    for fit, (penalty,) in zip(fits, penalties, strict=True):
        alone = glrm.fit(X, y, rule_penalty=penalty, **options)
        assert fit.status == alone.status == "optimal"
        assert fit.objective == pytest.approx(alone.objective, rel=1e-5)
        assert fit.bound == pytest.approx(alone.bound, rel=1e-4)
        assert dict(fit.model.options) == dict(alone.model.options)


def test_a_fit_of_a_path_starts_from_the_one_before():
    X, y = make_data(14, rows=300)
    penalties = [0.01, 0.009]
    second = glrm.path(X, y, rule_penalties=penalties, start="empty")[1]
    alone = glrm.fit(X, y, rule_penalty=penalties[1], start="empty")
    assert second.details.rounds < alone.details.rounds
    assert second.objective == pytest.approx(alone.objective, rel=1e-3)
    debiased = glrm.path(X, y, rule_penalties=penalties, start="empty", debias=True)[1]
    assert debiased.objective == second.objective  # the weights before the refit are the start


def test_the_default_path_is_below_the_penalty_that_excludes_every_proposition():
    X, y = make_data(15)
    penalties = [fit.details.rule_penalty for fit in glrm.path(X, y)]
    largest = penalties[0] / 0.3
    np.testing.assert_allclose(penalties, np.geomspace(0.3, 0.01, 6) * largest)
    one = {"max_length": 1, "condition_penalty": 0.0}
    assert jr.support(glrm.fit(X, y, rule_penalty=1.001 * largest, **one).model) == 0
    assert jr.support(glrm.fit(X, y, rule_penalty=0.999 * largest, **one).model) > 0


# The default penalty


def standard_errors(fit, X, y, weights):
    """1.6 standard errors of the mean slope of a rule on half of the rows, by the definition."""
    score = np.asarray(jr.decision_function(fit.model, X), float)
    slopes = 1 / (1 + np.exp(-score)) - y if fit.model.loss == "logistic" else 2 * (score - y)
    rows = np.repeat(slopes, weights)
    return 1.6 * np.sqrt((rows**2).mean() / len(rows)) / 2


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_default_penalty_follows_the_noise(loss):
    X, y = make_data(3, rows=300, loss=loss)
    weights = np.random.default_rng(0).integers(1, 3, len(y))
    fit = glrm.fit(X, y, sample_weight=weights, eliminate=False)
    penalty = fit.details.rule_penalty
    why = f"rule_penalty={penalty:.3g}: " + (
        "1.6 standard errors of the mean slope of a rule on half of the rows"
    )
    assert fit.chosen == why
    fewer = glrm.fit(X, y, sample_weight=weights)
    relaxed, dropped = fewer.details.rule_penalty, fewer.details.dropped
    assert relaxed == pytest.approx(0.6 * penalty)
    assert fewer.chosen == (
        f"{why}; {dropped} rules were too little worth to keep; "
        f"the others are weighed with rule_penalty={relaxed:.3g}"
    )
    # The last penalty is within 5 % of that of its own model, as fits stop there.
    assert 0.95 * penalty <= standard_errors(fit, X, y, weights) <= penalty * (1 + 1e-9)
    # A given penalty is that of the problem: no rule is dropped by default.
    again = glrm.fit(X, y, sample_weight=weights, rule_penalty=penalty)
    assert fit.objective == pytest.approx(again.objective, rel=1e-4)
    assert not again.chosen
    assert again.details.rule_penalty == penalty
    assert dict(fit.model.options)["rule_penalty"] is None
    assert dict(again.model.options)["rule_penalty"] == penalty


def test_noise_alone_pays_for_few_rules():
    rng = np.random.default_rng(0)
    X, other = rng.normal(size=(2, 400, 10))
    for y, new in [rng.normal(size=(2, 400)), rng.random((2, 400)) < 0.3]:
        model = glrm.fit(X, y).model
        said = (
            jr.predict(model, other) if y.dtype == float else jr.predict_proba(model, other)[:, 1]
        )
        risk = np.mean((np.asarray(said) - new) ** 2)
        assert risk <= 1.02 * np.mean((np.mean(y) - new) ** 2)


def test_more_columns_raise_the_default_penalty() -> None:
    """With 2 log k for k times as many columns, noise in 60 columns pays for hardly any rule."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 60)), rng.normal(size=500)
    fit, few = glrm.fit(X, y, max_length=1), glrm.fit(X[:, :10], y, max_length=1)
    assert "1.6 standard errors" in few.chosen
    assert f"{(1.6**2 + 2 * np.log(6)) ** 0.5:.3g} standard errors" in fit.chosen
    assert len(fit.model.conjunctions) <= 1
    given = glrm.fit(X, y, max_length=1, standard_errors=2, eliminate=False)
    assert "2 standard errors" in given.chosen
    assert len(given.model.conjunctions) > 1
    three = glrm.fit(X[:, :20], np.digitize(y, [-0.5, 0.5]), max_length=1)
    level = chi2.cdf(1.6**2 + 2 * np.log(2), 1)
    assert f"{(chi2.ppf(level, 2) / 2) ** 0.5:.3g} standard errors" in three.chosen


def test_without_noise_the_default_penalty_ends_at_a_hundredth():
    X = np.arange(40.0)[:, None]
    fit = glrm.fit(X, (X[:, 0] > 19) * 1.0, loss="squared", max_cut_points=9)
    assert "the least default" in fit.chosen
    assert jr.support(fit.model) == 1


def test_every_class_has_its_default_penalty():
    X, y = make_data(4, rows=300, loss="squared")
    classes = np.searchsorted(np.quantile(y, [0.2, 0.9]), y)
    fit = glrm.fit(X, classes, multiclass="one_vs_rest")
    for k, penalty in enumerate(fit.details["rule_penalty"]):
        alone = glrm.fit(X, classes == k)
        assert penalty == pytest.approx(alone.details.rule_penalty, rel=1e-12)
    assert len(set(fit.details["rule_penalty"])) == 3


def test_default_penalty_without_time_and_after_a_start():
    X, y = make_data(5, rows=200)
    clock = itertools.count()
    whole = glrm.fit(X, y, time_limit=Deadline(1e9, lambda: float(next(clock))))
    ticks, limit = itertools.count(), next(clock) / 5
    cut = glrm.fit(X, y, time_limit=Deadline(limit, lambda: float(next(ticks))))
    assert whole.status == "converged"
    assert cut.status == "time_limit"
    assert "stopped before it could fall" in cut.chosen
    assert cut.details.rule_penalty > whole.details.rule_penalty
    started = glrm.fit(X, y, start=whole, eliminate=False)
    at_once = glrm.fit(X, y, start=whole, rule_penalty=started.details.rule_penalty)
    assert started.objective == pytest.approx(at_once.objective, rel=1e-9)


def test_time_ends_a_path_with_a_whole_model():
    X, y = make_data(16, rows=200)
    options = {"rule_penalties": np.geomspace(0.05, 0.001, 5), "rules_per_round": 1}
    clock = itertools.count()
    whole = glrm.path(X, y, time_limit=Deadline(1e9, lambda: float(next(clock))), **options)
    assert len(whole) == 5
    ticks, limit = itertools.count(), next(clock) / 3
    cut = glrm.path(X, y, time_limit=Deadline(limit, lambda: float(next(ticks))), **options)
    assert 1 <= len(cut) <= 5
    assert cut[-1].status == "time_limit"
    assert cut[0].model.n_outputs == 1
    for fit in cut:
        fit.model.validate()
    (none,) = glrm.path(X, y, time_limit=0, **options)
    assert none.status == "time_limit"


@pytest.mark.parametrize("after", [1, 4])
def test_ctrl_c_ends_a_path(after):
    X, y = make_data(17, rows=200)
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == after:
            raise KeyboardInterrupt

    fits = glrm.path(X, y, progress=stop)
    assert 1 <= len(fits) < 6
    assert fits[-1].status == "interrupted"
    fits[-1].model.validate()


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"rule_penalties": []}, ValueError, "rule_penalties must be a non-empty sequence"),
        ({"rule_penalties": 0.1}, TypeError, "rule_penalties must be a non-empty sequence"),
        ({"rule_penalties": [0.1, 0.0]}, ValueError, "rule_penalties must be finite and positive"),
        ({"rule_penalties": [1e-31]}, ValueError, "rule_penalties must be at least 1e-30"),
        ({"rule_penalty": 0.1}, TypeError, "did you mean 'rule_penalties'"),
        ({"start": "rules"}, ValueError, "start must be"),
    ],
)
def test_bad_paths_are_refused(wrong, error, message):
    X, y = make_data(0)
    with pytest.raises(error, match=message):
        glrm.path(X, y, **wrong)


# Rules from drawn rows


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_all_rows_weigh_the_rules_of_drawn_rows(loss):
    X, y = make_data(4, rows=600, loss=loss)
    options = {"loss": loss, "rule_penalty": 0.005}
    fit = glrm.fit(X, y, **options, search_rows=120)
    assert (fit.details.sample, fit.status, fit.bound) == (120, "converged", None)
    assert "Rules found on 120 rows." in str(fit)
    rules, weights = fit.model.conjunctions, np.asarray(fit.model.weights)[:, 0]
    price = 0.005 + 0.001 * rules.propositions
    assert fit.objective == pytest.approx(jr.risk(fit.model, X, y) + price @ np.abs(weights))
    slopes = slopes_of(fit, X, y, loss) @ rules.satisfied(jr.as_table(X))
    np.testing.assert_allclose(slopes, -np.sign(weights) * price, rtol=1e-3)
    again = glrm.fit(X, y, **options, search_rows=120)
    assert list(again.model.conjunctions) == list(rules)
    assert again.objective == fit.objective
    other = glrm.fit(X, y, **options, search_rows=120, seed=1)
    assert other.objective != fit.objective
    exact = glrm.fit(X, y, **options, search_rows=120, pricing="exact", max_length=2)
    assert (exact.details.sample, exact.status) == (None, "optimal")
    whole = glrm.fit(X, y, **options, search_rows=600)
    assert whole.objective == glrm.fit(X, y, **options, search_rows=None).objective <= fit.objective
    found = glrm.path(X, y, loss=loss, rule_penalties=[0.02, 0.005], search_rows=120)
    assert [one.details.sample for one in found] == [120, 120]
    assert found[-1].objective == pytest.approx(fit.objective, rel=0.03)


@pytest.mark.parametrize("multiclass", [None, "joint", "one_vs_rest"])
def test_all_rows_choose_the_default_penalty_of_drawn_rows(multiclass):
    X, y = make_data(4, rows=600)
    if multiclass:
        y = np.digitize(X[:, 0] + y, [1.5, 3.5])
    fit = glrm.fit(X, y, search_rows=150, multiclass=multiclass, eliminate=False)
    parts = fit.details.of_class if multiclass == "one_vs_rest" else [fit.details]
    whole = glrm.fit(X, y, multiclass=multiclass, eliminate=False)
    wholes = whole.details.of_class if multiclass == "one_vs_rest" else [whole.details]
    for part, one in zip(parts, wholes, strict=True):
        assert (part.sample, one.sample) == (150, None)
        assert part.n_propositions == one.n_propositions
        # drawn rows alone would have twice the standard errors of all
        assert part.rule_penalty == pytest.approx(one.rule_penalty, rel=0.25)
    assert fit.chosen.count("standard errors") in (1, len(parts))
    assert fit.objective == pytest.approx(whole.objective, rel=0.1)


def test_drawn_rows_with_given_rules_a_start_terms_and_directions():
    X, y = make_data(4, rows=600)
    first = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.above(0, 1.0)]])
    options = {"linear_terms": True, "monotone": {"x0": 1}, "rule_penalty": 0.005}
    begun = glrm.fit(X, y, **options)
    fit = glrm.fit(X, y, **options, first=first, start=begun, search_rows=120)
    kept = list(fit.model.conjunctions)
    (expert,) = first
    assert kept[0] == expert
    assert kept.count(expert) == 1
    assert fit.objective <= begun.objective * (1 + 1e-6)
    higher = jr.decision_function(fit.model, X + np.eye(3)[0])
    assert (higher >= jr.decision_function(fit.model, X) - 1e-9).all()
    assert glrm.fit(X, y, search_rows=120, debias=True).details.sample == 120


@pytest.mark.parametrize("presses", [1, 3])
def test_ctrl_c_on_drawn_rows_returns_their_rules(presses):
    X, y = make_data(4, rows=600)
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == presses + 2:
            signal.raise_signal(signal.SIGINT)

    fit = glrm.fit(X, y, search_rows=120, progress=stop)
    assert fit.status == "interrupted"
    assert len(fit.model.conjunctions)
    limited = glrm.fit(X, y, search_rows=120, time_limit=Deadline(4, itertools.count().__next__))
    assert limited.status == "time_limit"
    price = limited.details.rule_penalty + limited.details.condition_penalty * (
        limited.model.conjunctions.propositions
    )
    weights = np.abs(np.asarray(limited.model.weights)[:, 0])
    assert limited.objective == pytest.approx(jr.risk(limited.model, X, y) + price @ weights)


def test_elimination_leaves_few_rules_for_a_step_and_none_for_noise() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 4))
    for y in (np.where(X[:, 0] > 0, "a", "b"), (X[:, 0] > 0) + random.normal(0, 0.01, 400)):
        whole, fewer = jr.glrm.fit(X, y, eliminate=False), jr.glrm.fit(X, y)
        n, left = len(whole.model.conjunctions), len(fewer.model.conjunctions)
        assert left <= 3 < n
        assert fewer.details.dropped == n - left
        assert f"{n - left} rules were too little worth to keep" in str(fewer)
        asked = jr.glrm.fit(X, y, eliminate=True, rule_penalty=whole.details.rule_penalty)
        assert len(asked.model.conjunctions) <= 5
        assert asked.objective >= whole.objective - 1e-9
        assert asked.details.rule_penalty == whole.details.rule_penalty
    for y in (random.normal(size=400), random.integers(0, 2, 400)):
        assert not len(jr.glrm.fit(X, y).model.conjunctions)


def test_elimination_is_a_default_where_the_noise_chooses_the_penalty() -> None:
    assert glrm.Options().eliminates
    assert glrm.Options().by_noise
    for options in ({"rule_penalty": 0.1}, {"pricing": "exact"}):
        assert not glrm.Options(**options).eliminates
        assert glrm.Options(**options, eliminate=True).eliminates
        assert not glrm.Options(**options, eliminate=True).by_noise
    assert not glrm.Options(eliminate=False).eliminates
    assert not glrm.PathOptions().eliminates
    assert not glrm.Grid().eliminates


def test_rules_of_drawn_rows_stay_until_all_rows_say_what_they_are_worth(monkeypatch) -> None:
    random = np.random.default_rng(3)
    X = random.normal(size=(3000, 3))
    y = (X[:, 0] > 0) + 0.2 * (X[:, 1] > 0) + random.normal(0, 0.4, 3000)
    monkeypatch.setattr("jaxrules.ensembles.glrm.master._BLOCK", 64)  # many blocks
    fit = jr.glrm.fit(X, y, search_rows=1500)
    assert fit.details.sample == 1500
    assert fit.details.dropped
    assert {c.feature for rule in fit.model.conjunctions for c in rule} >= {0, 1}


def test_elimination_is_worth_its_price_at_every_rule() -> None:
    random = np.random.default_rng(1)
    X = random.normal(size=(300, 5))
    y = X[:, 0] - (X[:, 1] > 0.5) + random.normal(size=300)
    options: dict[str, Any] = {"rule_penalty": 0.02, "monotone": {"x0": 1}}
    whole = jr.glrm.fit(X, y, **options)
    fewer = jr.glrm.fit(X, y, eliminate=True, **options)
    dropped = fewer.details.dropped
    assert dropped > 0
    # 1.25 of n / 2 log(mean square) is 2 x 1.25 / n of the mean square, at most that of the result.
    most = float(np.mean((y - jr.predict(fewer.model, X)) ** 2))
    assert fewer.objective - whole.objective <= dropped * 2.5 / 300 * most + 1e-9
    # The weights are the best of these rules: the objective is that of the model.
    lengths = fewer.model.conjunctions.propositions  # an interval has two
    prices = fewer.details.rule_penalty + fewer.details.condition_penalty * lengths
    penalty = float(prices @ np.abs(np.asarray(fewer.model.weights)[:, 0]))
    assert fewer.objective == pytest.approx(most + penalty, rel=1e-6)
    # An expert's rules and linear terms stay.
    first = whole.model.conjunctions.take([0])
    kept = jr.glrm.fit(X, y, eliminate=True, first=first, linear_terms=True, **options)
    assert kept.model.conjunctions.describe(0) == first.describe(0)
    assert kept.model.linear is not None


def test_elimination_leaves_other_losses_alone() -> None:
    random = np.random.default_rng(2)
    X = random.normal(size=(150, 3))
    y = X[:, 0] + random.normal(size=150) > 0.5
    one, other = (jr.glrm.fit(X, y, loss="exponential", eliminate=on) for on in (None, True))
    assert list(one.model.conjunctions) == list(other.model.conjunctions)
    assert other.details.dropped == 0


def test_ctrl_c_before_the_first_rule_leaves_short_rules() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))

    def press(progress: jr.Progress) -> None:
        raise KeyboardInterrupt

    fit = jr.glrm.fit(X, X[:, 0] * X[:, 1] > 0, progress=press)
    assert fit.status == "interrupted"
    assert len(fit.model.conjunctions) > 0
