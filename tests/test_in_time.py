"""Fits whose limit is too short for all rows, or that are interrupted before they have a rule:
rules come from a sample, figures from all rows.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxrules as jr
from jaxrules.ensembles import growing
from jaxrules.ensembles.boosting import fitting
from jaxrules.ensembles.boosting.fitting import few_rules
from jaxrules.ensembles.boosting.options import BoostingOptions
from jaxrules.learning.training import (
    columns_of_categories,
    model_loss,
    sample_in_time,
    sample_limit,
    some_rows,
    training_data,
)
from jaxrules.lists import literals
from jaxrules.losses import squared
from jaxrules.tools.runs import Run

LEARNERS: dict[str, Callable[..., jr.Fit[Any]]] = {
    "boosting": jr.boosting.fit,
    "lire": jr.lire.fit,
    "rulefit": jr.rulefit.fit,
    "glrm": jr.glrm.fit,
    "lltboost": jr.lltboost.fit,
    "ltrnet": jr.ltrnet.fit,
    "ssrl": jr.ssrl.fit,
    "exact_list": jr.exact_list.fit,
    "lire.published": jr.lire.published,
    "boosting.published": jr.boosting.published,
}
ENSEMBLES = ("boosting", "lire", "rulefit", "glrm", "lltboost", "ltrnet")
N = 6000


class Late:
    """A clock on which the limit has passed as soon as the deadline is created."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        now, self.now = self.now, 100.0
        return now


class Ticks:
    """A clock that advances by one whenever it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def problem(n_classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4)).round(1)
    score = np.stack([2.0 * (X[:, k % 4] > 0.2) + (X[:, 1] < 0) * k for k in range(n_classes)])
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=0)
    return X, y


def limited(name: str, X: Any, y: Any, **options: Any) -> jr.Fit[Any]:
    return LEARNERS[name](X, y, time_limit=jr.Deadline(0.01, Late()), **options)


@pytest.mark.parametrize("name", LEARNERS)
def test_there_is_a_rule_when_the_time_is_over_after_reading(name: str) -> None:
    X, y = problem()
    fit = limited(name, X, y)
    assert fit.status == "time_limit"
    assert len(fit.model.conjunctions) > 0
    assert 0 < fit.details["sample"] < N / 2
    right = float((jr.predict(fit.model, X) == y).mean())
    assert right > max(y.mean(), 1 - y.mean()) + 0.05
    again = limited(name, X, y)
    assert str(again.model) == str(fit.model)
    assert again.objective == fit.objective
    if fit.bound is not None:
        best = fit.bound if fit.sense == "max" else -fit.bound
        assert best >= (fit.objective if fit.sense == "max" else -fit.objective) - 1e-9


@pytest.mark.parametrize("name", LEARNERS)
def test_several_classes(name: str) -> None:
    X, y = problem(3)
    fit = limited(name, X, y)
    assert len(fit.model.conjunctions) > 0
    assert (jr.predict(fit.model, X) == y).mean() > np.bincount(y).max() / N


class Ticking:
    """A clock on which every look takes a while."""

    def __init__(self, tick: float) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


@pytest.mark.full
def test_of_many_classes_some_have_rules() -> None:
    """Three rules of every class would take as long as there are classes."""
    X, _ = problem()
    y = np.array([f"class {k}" for k in (X[:, 0] > 0.2) + 2 * (np.arange(N) % 30)])
    counts = []
    for tick in (1e-7, 5e-4):
        clock = Ticking(tick)
        fit = jr.lltboost.fit(X, y, multiclass="one_vs_rest", time_limit=jr.Deadline(0.02, clock))
        counts.append(np.count_nonzero(fit.model.weights.any(axis=0)))
    assert 0 < counts[1] < 20 < counts[0]


@pytest.mark.full
@pytest.mark.parametrize("name", ["rulefit", "glrm", "lire", "ssrl", "exact_list"])
def test_many_classes_share_their_first_rules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = problem()
    y = np.array([f"class {k}" for k in (X[:, 0] > 0.2) + 2 * (np.arange(N) % 30)])
    fitted = []
    real = jr.boosting.fit.with_options

    def watched(X: Any, y: Any, weights: Any, options: Any) -> Any:
        fit = real(X, y, weights, options)
        fitted.append((fit.model.link, len(fit.model.conjunctions)))
        return fit

    monkeypatch.setattr(jr.boosting.fit, "with_options", watched)
    limited(name, X, y)
    assert fitted == [("softmax", 3)]


@pytest.mark.parametrize("name", ENSEMBLES)
def test_numbers(name: str) -> None:
    X, y = problem(3)
    fit = limited(name, X, 10.0 + y)
    assert len(fit.model.conjunctions) > 0
    assert np.mean((jr.predict(fit.model, X) - 10 - y) ** 2) < np.var(y)


def test_the_first_model_of_boosting_is_small() -> None:
    X, _ = problem()
    y = (X[:, 0] > 0) == (X[:, 1] > 0)
    for max_rules, size in ((10, 3), (2, 2)):
        rules = limited("boosting", X, y, max_rules=max_rules).model.conjunctions
        assert rules.propositions.tolist() == [2] * size
    rules = limited("boosting", X, X.sum(axis=1) > 0, max_length=1).model.conjunctions
    assert rules.propositions.tolist() == [1] * 3


@pytest.mark.full
def test_many_cut_points_take_longer_than_their_columns() -> None:
    """10 000 values of 2 columns are 40 000 propositions, in a matrix of 400 million bits."""
    X = np.random.default_rng(0).normal(size=(10_000, 2))
    y, clock = X[:, 0] > 0.2, Ticking(1e-4)
    every, few = (
        jr.boosting.fit(X, y, max_cut_points=most, time_limit=jr.Deadline(1.0, clock))
        for most in (None, 20)
    )
    assert every.details["sample"] == 2000
    assert few.details["sample"] is None
    assert (jr.predict(every.model, X) == y).mean() > 0.99


class Soon:
    """A clock on which the time is over after some looks."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return 0.0 if self.looks < 8 else 100.0


@pytest.mark.full
@pytest.mark.parametrize("name", ["ssrl", "lire", "exact_list"])
def test_a_limit_that_ends_the_first_search_leaves_a_rule(name: str) -> None:
    X, y = problem()
    fit = LEARNERS[name](X, y, time_limit=jr.Deadline(1.0, Soon()))
    assert fit.status == "time_limit"
    assert len(fit.model.conjunctions) > 0


@pytest.mark.parametrize("target", ["two classes", "three classes", "numbers"])
def test_a_limit_that_ends_the_search_of_all_rows_leaves_a_rule(target: str) -> None:
    """The sample is drawn at the start, when the time still seems to suffice."""
    X, y = problem(2 if target == "two classes" else 3)
    given = y + 0.5 if target == "numbers" else y
    limit = jr.Deadline(1.0, Soon())
    fit = jr.boosting.fit(X, given, multiclass="one_vs_rest", time_limit=limit)
    assert fit.status == "time_limit"
    assert len(fit.model.conjunctions) > 0
    assert np.all(np.equal(fit.details["sample"], 2000))


def test_the_penalty_of_rulefit_has_the_scale_of_the_target() -> None:
    X, y = problem(3)
    one, other = (limited("rulefit", X, scale * y) for scale in (1.0, 64.0))
    assert other.details.l1_penalty == pytest.approx(64 * one.details.l1_penalty)
    np.testing.assert_allclose(other.model.weights, 64 * one.model.weights, atol=1e-3)


@pytest.mark.parametrize("name", ["ssrl", "exact_list"])
def test_the_objective_of_a_list_is_that_on_all_rows(name: str) -> None:
    X, y = problem(3)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N)
    fit = limited(name, X, y, sample_weight=weights, literal_penalty=2.0)
    right = weights @ (jr.predict(fit.model, X) == y)
    assert fit.objective == pytest.approx(right - 2 * fit.model.conjunctions.propositions.sum())
    scaled = limited(name, X, y, sample_weight=10 * weights, literal_penalty=20.0)
    assert scaled.objective == pytest.approx(10 * fit.objective)
    np.testing.assert_allclose(scaled.model.probabilities, fit.model.probabilities)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_the_objective_of_an_ensemble_is_that_on_all_rows(name: str) -> None:
    X, y = problem()
    settings: dict[str, Any] = {
        "boosting": {"l2_penalty": 3.0},
        "lire": {"l2_penalty": 3.0, "global_penalty": 0.002, "local_penalty": 0.0},
        "rulefit": {"l1_penalty": 0.003},
        "glrm": {"rule_penalty": 0.003, "condition_penalty": 0.001},
        "lltboost": {"l2_penalty": 0.01},
        "ltrnet": {"l2_penalty": 0.01},
    }[name]
    fit = limited(name, X, y, **settings)
    data = training_data(X, y, jr.losses.logistic)
    w, lengths = np.abs(fit.model.weights[:, 0]), fit.model.conjunctions.propositions
    penalty = {
        "boosting": 1.5 * w @ w / N,
        "lire": 1.5 * w @ w / N + 0.002 * len(w),
        "rulefit": 0.003 * w.sum(),
        "glrm": (0.003 + 0.001 * lengths) @ w,
        "lltboost": 0.005 * w @ w,
        "ltrnet": 0.005 * w @ w,
    }[name]
    assert fit.objective == pytest.approx(model_loss(fit.model, data) + penalty)


def test_constraints_hold() -> None:
    X, y = problem()
    for name in LEARNERS:
        fit = limited(name, X, y, forbidden=[0, 1])
        used = {condition.feature for rule in fit.model.conjunctions for condition in rule}
        assert used <= {2, 3}, name


@pytest.mark.parametrize("limit", [None, jr.Deadline(0.01, Late())])
def test_the_objective_of_classes_fitted_together_has_their_ridge(limit: Any) -> None:
    X, y = problem(3)
    fit = jr.boosting.fit(X, y, max_rules=2, multiclass="joint", l2_penalty=50.0, time_limit=limit)
    assert len(fit.model.conjunctions) > 0
    ridge = 50.0 / N * float(np.sum(np.asarray(fit.model.weights) ** 2))
    loss = model_loss(fit.model, training_data(X, y, jr.losses.logistic))
    assert fit.objective == pytest.approx(loss + ridge, rel=1e-6)


@pytest.mark.parametrize("how", ["fit", "cross_validate", "given penalty"])
@pytest.mark.parametrize("name", ["lire", "rulefit"])
@pytest.mark.parametrize("target", ["two classes", "three classes", "numbers"])
def test_ctrl_c_while_trees_grow(
    name: str, how: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = problem(2 if target == "two classes" else 3)
    y = y + 0.5 if target == "numbers" else y
    drawn, real = [], growing._drawn

    def interrupted(*arguments: Any) -> Any:
        drawn.append(1)
        if len(drawn) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(growing, "_drawn", interrupted)
    learner = getattr(jr, name)
    if how == "given penalty":
        penalty = "l1_penalty" if name == "rulefit" else "global_penalty"
        fit = learner.fit(X, y, **{penalty: 0.001}, forbidden=[0])
        assert fit.details[penalty] == 0.001
        assert 0 not in {one.feature for rule in fit.model.conjunctions for one in rule}
    else:
        fit = getattr(learner, how)(X, y)
    assert len(drawn) == 3
    assert fit.status == "interrupted"
    assert len(fit.model.conjunctions) > 0
    assert fit.details.sample == 5000
    if how == "cross_validate":
        assert np.isnan(fit.details.cross_validation.risks).all()
    if target == "numbers":
        assert np.mean((jr.predict(fit.model, X) - y) ** 2) < np.var(y)
    else:
        assert (jr.predict(fit.model, X) == y).mean() > np.bincount(y).max() / N


@pytest.mark.parametrize("rules", [None, "given"])
def test_ctrl_c_in_the_folds_of_rulefit(rules: Any) -> None:
    """The rules and weights of a fold are the best so far."""
    X, y = problem()
    if rules is not None:
        rules = jr.extract_rules(jr.default_forest(X, y, n_trees=10), X)

    def stop(progress: jr.Progress) -> None:
        if progress.phase == "folds" and progress.done == 30:
            signal.raise_signal(signal.SIGINT)

    fit = jr.rulefit.fit(X, y, rules=rules, progress=stop)
    found = fit.details.cross_validation
    assert fit.status == "interrupted"
    assert np.isfinite(found.risks).sum() == 30
    assert fit.details.l1_penalty == found.setting["l1_penalty"]
    assert len(fit.model.conjunctions) > 3
    loss = model_loss(fit.model, training_data(X, y, jr.losses.logistic))
    penalty = fit.details.l1_penalty * np.abs(fit.model.weights).sum()
    assert fit.objective == pytest.approx(loss + penalty)
    assert fit.bound <= fit.objective


def test_ctrl_c_before_ssrl_has_a_rule() -> None:
    X, y = problem(3)

    def stop(progress: jr.Progress) -> None:
        if progress.phase == "literals":
            signal.raise_signal(signal.SIGINT)

    fit = jr.ssrl.fit(X, y, progress=stop)
    assert fit.status == "interrupted"
    assert len(fit.model.conjunctions) > 0
    assert fit.details.sample == 5000
    assert fit.objective > np.bincount(y).max()


@pytest.mark.parametrize("target", ["two classes", "three classes", "joint", "numbers"])
@pytest.mark.parametrize("phase", ["thresholds", "propositions"])
def test_ctrl_c_while_boosting_prepares(phase: str, target: str) -> None:
    X, y = problem(2 if target == "two classes" else 3)
    given = y + 0.5 if target == "numbers" else y

    def stop(progress: jr.Progress) -> None:
        if progress.phase == phase:
            signal.raise_signal(signal.SIGINT)

    multiclass = "joint" if target == "joint" else "one_vs_rest"
    fit = jr.boosting.fit(X, given, multiclass=multiclass, progress=stop)
    assert fit.status == "interrupted"
    assert len(fit.model.conjunctions) > 0
    assert fit.details["sample"] in (2000, (2000,) * 3)
    predicted = jr.predict(fit.model, X)
    if target == "numbers":
        assert np.mean((predicted - given) ** 2) < 0.9 * np.var(given)
    else:
        assert (predicted == y).mean() > np.bincount(y).max() / N


def test_ctrl_c_while_a_small_fit_prepares() -> None:
    X, y = problem()

    def stop(progress: jr.Progress) -> None:
        if progress.phase == "propositions":
            signal.raise_signal(signal.SIGINT)

    fit = jr.boosting.fit(X[:60], y[:60], progress=stop)
    assert fit.status == "interrupted"
    assert len(fit.model.conjunctions) > 0
    # Given propositions, and required columns, are promises that a few rules might break.
    pool = jr.rules.conditions.propositions_of(jr.as_table(X))
    for options in ({"propositions": pool}, {"required": [0]}):
        fit = jr.boosting.fit(X[:60], y[:60], progress=stop, **options)
        assert fit.status == "interrupted"
        assert len(fit.model.conjunctions) == 0


def test_ctrl_c_while_exact_lists_prepare() -> None:
    X, y = problem(3)

    def stop(progress: jr.Progress) -> None:
        if progress.phase == "rules":
            signal.raise_signal(signal.SIGINT)

    fit = jr.exact_list.fit(X, y, progress=stop)
    assert fit.status == "interrupted"
    assert len(fit.model.conjunctions) > 0
    assert fit.details.sample == 5000
    assert np.bincount(y).max() < fit.objective < fit.bound == N


@pytest.mark.parametrize("name", ["ssrl", "exact_list"])
@pytest.mark.parametrize("majority", [0, 1])
def test_boosted_rules_of_a_list_do_not_all_say_the_default(name: str, majority: int) -> None:
    X = np.random.default_rng(0).normal(size=(N, 3))
    y = X[:, 0] > np.quantile(X[:, 0], 0.49 + 0.02 * (majority == 0))
    fit = limited(name, X, y, max_length=1)
    assert int(np.bincount(y).argmax()) == majority
    assert len(fit.model.conjunctions) > 0
    assert (jr.predict(fit.model, X) == y).mean() > 0.9


@pytest.mark.parametrize("name", ["ssrl", "exact_list", "regression_list"])
@pytest.mark.parametrize(
    ("most", "where"), [("auto", "sorted_columns"), (None, "check_cut_points")]
)
def test_a_limit_ends_the_literals_of_a_list(
    name: str, most: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = problem()
    now, made = 0.0, list[int]()
    step, distinct = getattr(literals, where), literals.PropositionPool.distinct

    def late(*arguments: Any) -> Any:
        nonlocal now
        now = 100.0
        return step(*arguments)

    def finished(pool: Any, table: Any, *tags: Any) -> Any:
        found = distinct(pool, table, *tags)
        made.append(table.n_rows)
        return found

    monkeypatch.setattr(literals, where, late)
    monkeypatch.setattr(literals.PropositionPool, "distinct", finished)
    limit = jr.Deadline(50.0, lambda: now)
    fit = getattr(jr, name).fit(X, y, max_cut_points=most, time_limit=limit)
    assert fit.status == "time_limit"
    assert fit.details.sample == 5000
    assert len(fit.model.conjunctions) > 0
    # Exact lists have their deciles first.
    assert made.count(N) == (name == "exact_list" and most == "auto")


def test_categories_take_the_time_of_columns() -> None:
    """900 categories take as long as 60 columns of numbers: 6000 rows a third of a second."""
    X, y = problem()
    category = [f"c{i}" for i in np.arange(N) % 900]
    table = {"x": X[:, 0], "c": category}
    for seconds, drawn in ((0.5, False), (0.3, True)):
        run = jr.tools.runs.Run("task", jr.Deadline(seconds, lambda: 0.0))
        sample = sample_in_time(training_data(table, y, jr.losses.logistic), run, 0)
        assert (sample is not None) is drawn
    assert columns_of_categories(jr.as_table(table)) == 60
    assert columns_of_categories(jr.as_table({"c": ["a", "b"], "x": [1.0, 2.0]})) == 1
    assert columns_of_categories(jr.as_table(X)) == 0
    sampled = jr.boosting.fit(table, y, time_limit=jr.Deadline(0.3, Ticking(1e-4)))
    assert sampled.details["sample"] == 2000
    assert len(sampled.model.conjunctions) > 0


def test_a_few_rules_name_frequent_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    city = np.where(rng.random(N) < 0.3, 7, rng.integers(0, 900, N))
    y = (city == 7) ^ (rng.random(N) < 0.05)
    X = {"city": [f"c{i:03}" for i in city], "x": rng.normal(size=N)}
    made, real = [], fitting.all_propositions

    def counted(table: Any, **options: Any) -> Any:
        made.append(real(table, **options))
        return made[-1]

    monkeypatch.setattr(fitting, "all_propositions", counted)
    fit = limited("boosting", X, y)
    assert fit.model.conjunctions.describe(0) == "city == c007"
    # both sides of 20 categories, and all four of 5 cut points
    assert [len(pool) for pool in made] == [2 * 20 + 4 * 5]


def test_samples() -> None:
    X, y = problem()
    y[:] = 0
    y[17] = 1  # a class with a single row is in every sample
    data = training_data(X, y, jr.losses.logistic)
    some = some_rows(data, 100, 0)
    assert some is not None
    assert len(some.weights) in (100, 101)
    assert 17 in some.rows
    assert some_rows(training_data(X, np.r_[5.0, np.ones(N - 1)], jr.losses.squared), 9, 3) is None

    class Still:
        def __call__(self) -> float:
            return 0.0

    def run(seconds: float | None) -> jr.tools.runs.Run:
        return jr.tools.runs.Run("task", jr.Deadline(seconds, Still()))

    for seconds in (None, 0.0, 1.0):  # no limit, the first incumbent, time for all rows
        assert sample_in_time(data, run(seconds), 0) is None
    assert sample_in_time(data, run(0.01), 0) is not None
    assert sample_limit(run(0.01)) is None
    limit = sample_limit(run(2.0))
    assert limit is not None
    assert limit.seconds == 1.0


@pytest.mark.parametrize("name", [*LEARNERS, "drnet"])
@pytest.mark.filterwarnings("ignore::UserWarning")  # most categories are not compared
@pytest.mark.full
def test_many_categories_leave_a_rule(name: str) -> None:
    rng = np.random.default_rng(0)
    b = rng.integers(0, 20, N)
    X = {"a": [f"a{i}" for i in rng.permutation(N) // 2], "b": [f"b{i}" for i in b]}
    y = np.where((b < 1) ^ (rng.random(N) < 0.02), "yes", "no")
    fit = {**LEARNERS, "drnet": jr.drnet.fit}[name](X, y, time_limit=jr.Deadline(100.0, Ticks()))
    model: Any = fit.model
    assert len(getattr(model, "conjunctions", getattr(model, "rules", ())))


def test_training_that_is_cut_short_is_not_worse_than_one_rule() -> None:
    X, y = problem()
    X, y = X[:500], y[:500]  # too few rows for a sample

    def fitted(seconds: float | None) -> tuple[jr.Fit[Any], float]:
        limit = jr.Deadline(seconds, Ticks())
        fit = jr.ltrnet.fit(X, y, max_rules=4, restarts=1, iterations=500, time_limit=limit)
        return fit, model_loss(fit.model, training_data(X, y, jr.losses.logistic))

    fitted(None)  # compiles
    one, loss = fitted(1.0)
    assert len(one.model.conjunctions) == 1
    trained = []
    for seconds in (10.0, 20.0, 30.0, 40.0):
        fit, reached = fitted(seconds)
        assert fit.status is jr.Status.TIME_LIMIT
        assert reached <= loss + 1e-3  # the risk also has a penalty
        trained.append(len(fit.history) > 2)
    assert any(trained)


@pytest.mark.parametrize(("given", "ridge"), [(0.0, 0.0), (None, 4.0), (2.5, 2.5)])
def test_the_few_rules_of_boosting_have_the_ridge_of_the_user(
    given: float | None, ridge: float
) -> None:
    X, _ = problem()
    y = 3.0 * (X[:, 0] > 0.2) + X[:, 1]
    options = BoostingOptions(l2_penalty=given, max_rules=1, loss="squared")
    data = training_data(X, y, squared)
    model = few_rules(data, options, options.run())
    held = model.conjunctions.satisfied(data.table)[:, 0]
    rest = y - np.asarray(model.intercept)[0]
    assert model.weights[0, 0] == pytest.approx(
        rest[held].sum() / (held.sum() + ridge / 2), rel=1e-3
    )


@pytest.mark.parametrize("name", ["boosting", "glrm", "ssrl", "exact_list"])
def test_wide_tables_have_rules_in_no_time(name: str) -> None:
    """About the columns that tell most about the target, numbers with gaps or categories."""
    rng = np.random.default_rng(0)
    X: dict[str, Any] = {f"x{j}": rng.normal(size=80) for j in range(300)}
    X["x270"] *= 1e300
    X["x270"][::9] = np.nan
    X["x5"] *= 1e-300
    X["x6"][:] = 3.0
    X["colour"] = rng.choice(["red", "green", "blue"], 80)
    for y in (np.nan_to_num(X["x270"]) > 0, X["colour"] == "red"):
        options = {"missing": "own_category", "time_limit": jr.Deadline(1.0, clock=Late())}
        model = LEARNERS[name](X, y, **options).model
        assert "x270" in str(model) or "colour" in str(model)
        assert jr.accuracy(model, X, y) > 0.85


@pytest.mark.parametrize("name", ["ssrl", "exact_list", "regression_list"])
def test_given_cut_points_are_kept_in_no_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boosted rules, which would take the place of a list's own, have other thresholds."""
    monkeypatch.setattr(Run, "may_import", lambda *_: False)
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = x[:, 0] if name == "regression_list" else x[:, 0] > 0
    fit = getattr(jr, name).fit
    options = {"time_limit": jr.Deadline(100.0, clock=lambda: 0.0)}
    model = fit(x, y, cut_points={"x0": [0.25], "x1": [0.5]}, **options).model
    ends = {end for rule in model.conjunctions for c in rule for end in (c.lower, c.upper)}
    assert ends <= {0.25, 0.5, -np.inf, np.inf}
    with pytest.raises(TypeError, match="cut_points must map"):
        fit(x, y, cut_points=[0.25], **options)
