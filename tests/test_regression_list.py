"""Regression lists: the objective against brute force, default penalties, and what reads them."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sqlite3
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules import plots
from jaxrules.estimators import RegressionListRegressor
from jaxrules.lists import regression_list
from jaxrules.losses import squared
from jaxrules.models.rule_models import best_value
from pmml import Document

RNG = np.random.default_rng(0)
N = 300
FRAME = pd.DataFrame(
    {
        "size": RNG.integers(0, 10, N).astype(float),
        "age": RNG.normal(size=N).round(2),
        "colour": RNG.choice(["a", "b", "c"], N),
    }
)
FRAME.loc[::17, "age"] = np.nan
Y = (
    3.0 * (FRAME["size"] > 4)
    - 2.0 * (FRAME["colour"] == "b")
    + FRAME["age"].fillna(4.0)
    + 0.1 * RNG.normal(size=N)
).to_numpy()
OWN = {"missing": "own_category"}
FIT = jr.regression_list.fit(FRAME, Y, **OWN, max_rules=6)
MODEL = FIT.model
FIRST = jr.Conjunctions.build(MODEL.schema, [[jr.Condition.above(1, 1.0)]])


def loss_of(y: Any, weights: Any, loss: str) -> float:
    """The loss of rows around their best value, by trying all values of the rows."""
    if not weights.sum():
        return 0.0
    if loss == "absolute":
        return float(min(weights @ np.abs(y - value) for value in y))
    return float(weights @ (y - np.average(y, weights=weights)) ** 2)


def small(seed: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    X = random.integers(0, 2, (24, 3)).astype(float)
    y = np.round(2 * X[:, 0] * X[:, 1] + X[:, 2] + random.normal(size=24), 1)
    return X, y, random.integers(1, 4, 24).astype(float)


def least_objective(
    X: Any, y: Any, weights: Any, penalty: float, loss: str, length: int, local: float = 0.0
) -> float:
    """Over all lists of at most two rules of at most so many literals; every rule and the default
    decide a row.
    """
    literals = np.stack([X[:, j] == v for j in range(X.shape[1]) for v in (0, 1)])
    rules = {}
    for n in range(1, length + 1):
        for some in itertools.combinations(literals, n):
            rules.setdefault(np.all(some, axis=0).tobytes(), n)
    sets = [(np.frombuffer(key, bool), n) for key, n in rules.items()]
    whole = loss_of(y, weights, loss)
    best = whole

    def value(parts: list[Any], n_literals: int) -> float:
        if not all(part.any() for part in parts):
            return np.inf
        left = sum(loss_of(y[part], weights[part], loss) for part in parts)
        shares = [weights[part].sum() / weights.sum() for part in parts]
        read = shares[0] + (len(parts) - 1) * sum(shares[1:])
        return left + (penalty * n_literals + local * read) * whole

    for one, n in sets:
        best = min(best, value([one, ~one], n))
        for two, m in sets:
            best = min(best, value([one, two & ~one, ~two & ~one], n + m))
    return best / whole


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("local", [0.0, 0.02, 0.1])
def test_the_best_small_list_is_nearly_always_found(loss: Any, length: int, local: float) -> None:
    found = 0
    for seed in range(12):
        X, y, weights = small(seed)
        options: dict[str, Any] = {"max_rules": 2, "max_length": length, "loss": loss}
        fit = jr.regression_list.fit(
            X, y, weights, literal_penalty=0.03, local_penalty=local, min_support=0.0, **options
        )
        least = least_objective(X, y, weights, 0.03, loss, length, local)
        assert fit.objective >= least - 1e-9
        found += fit.objective <= least + 1e-9
    assert found >= 11


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["squared", "absolute"]), st.floats(0.0, 0.2))
def test_the_objective_is_that_of_the_model(seed: int, loss: Any, penalty: float) -> None:
    X, y, weights = small(seed)
    if np.ptp(y) == 0 or not (np.ptp(X, axis=0) > 0).any():
        return
    options: dict[str, Any] = {"literal_penalty": penalty, "loss": loss, "max_rules": 4}
    fit = jr.regression_list.fit(X, y, weights, **options)
    model, rows = fit.model, jr.as_table(X)
    place = model.position(rows)
    parts = [place == k for k in range(len(model.values))]
    left = sum(loss_of(y[part], weights[part], loss) for part in parts)
    whole = loss_of(y, weights, loss)
    literals = model.conjunctions.propositions.sum()
    assert fit.objective == pytest.approx(left / whole + penalty * literals, abs=1e-9)
    assert fit.details.constant_loss == pytest.approx(whole / weights.sum())
    away = np.abs(y - jr.predict(model, X))
    assert weights @ (away if loss == "absolute" else away**2) == pytest.approx(left, abs=1e-9)
    assert jr.risk(model, X, y, weights) * weights.sum() == pytest.approx(left, abs=1e-9)
    np.testing.assert_allclose(model.counts, [weights[part].sum() for part in parts])
    greedy = jr.regression_list.fit(X, y, weights, local_search=False, **options)
    assert fit.objective <= greedy.objective + 1e-12
    assert fit.details.greedy_objective == pytest.approx(greedy.objective)
    steps = [step.objective for step in fit.history]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] == fit.objective
    scaled = jr.regression_list.fit(X, 1e6 + 1e3 * y, 7 * weights, **options)
    assert scaled.objective == pytest.approx(fit.objective, abs=1e-6)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=9),
)
def test_best_values(rows: list[tuple[int, int]]) -> None:
    y, weights = (np.array(column, float) for column in zip(*rows, strict=True))
    repeated = np.repeat(y, weights.astype(int))
    assert best_value(y, weights, "squared") == pytest.approx(repeated.mean())
    assert best_value(y, weights, "absolute") == np.median(repeated)
    assert best_value(y, weights / 7, "absolute") == np.median(repeated)


def test_noise_has_no_rule_and_a_step_has_one() -> None:
    for seed, n in itertools.product(range(5), (100, 1000)):
        random = np.random.default_rng(seed)
        X = random.integers(0, 9, (n, 8)).astype(float)
        noise = random.normal(size=n)
        for loss in ("squared", "absolute"):
            assert not len(jr.regression_list.fit(X, noise, loss=loss).model.conjunctions)
            step = jr.regression_list.fit(X, (X[:, 0] > 4) + 0.1 * noise, loss=loss)
            (rule,) = step.model.conjunctions
            assert [condition.feature for condition in rule] == [0]
            assert "rows of the noise" in step.chosen


def test_support_and_limits() -> None:
    assert len(MODEL.conjunctions) <= 6
    assert (MODEL.counts >= 0.01 * N).all()
    fit = jr.regression_list.fit(
        FRAME, Y, **OWN, min_support=0.2, max_length=1, forbidden=["colour"], literal_penalty=0.001
    )
    assert (fit.model.counts >= 0.2 * N).all()
    assert (fit.model.conjunctions.propositions == 1).all()
    assert 2 not in fit.model.conjunctions.feature
    own = jr.regression_list.fit(FRAME[["size"]], Y, cut_points={"size": [3.5]})
    assert set(own.model.conjunctions.lower) | set(own.model.conjunctions.upper) <= {
        3.5, np.inf, -np.inf,
    }  # fmt: skip


def test_a_path_never_gets_worse() -> None:
    path = jr.regression_list.path(FRAME, Y, **OWN, max_rules=4)
    assert [len(one.model.conjunctions) for one in path] == [1, 2, 3, 4]
    objectives = [one.objective for one in path]
    assert objectives == sorted(objectives, reverse=True)
    assert len({one.details.literal_penalty for one in path}) == 1


def recomputed(fit: Any, X: Any, y: Any, weights: Any) -> float:
    """The objective of a fit from its model's rows alone."""
    model = fit.model
    place = model.position(jr.as_table(X))
    parts = [place == k for k in range(len(model.values))]
    left = sum(loss_of(y[part], weights[part], model.loss) for part in parts)
    price = fit.details.literal_penalty * model.conjunctions.propositions.sum()
    read = jr.local_supports(model, X) @ weights / weights.sum()
    price += dict(model.options)["local_penalty"] * read
    return float(left / loss_of(y, weights, model.loss) + price)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000), st.sampled_from(["squared", "absolute"]), st.booleans(),
    st.sampled_from([0.0, 0.02]),
)  # fmt: skip
@example(69, "squared", True, 0.0)  # a start has a rule for all rows that are left
def test_a_list_behind_an_experts_rules_and_from_a_start(
    seed: int, loss: Any, two: bool, local: float
) -> None:
    X, y, weights = small(seed)
    c, schema = jr.Condition, jr.as_table(X).schema
    rules = [[c.at_least(0, 1.0), c.below(2, 1.0)], [c.at_least(1, 1.0)]]
    first = jr.Conjunctions.build(schema, rules[: 1 + two])
    options: dict[str, Any] = {
        "first": first, "loss": loss, "max_rules": 4, "min_support": 0.0, "literal_penalty": 0.02,
        "local_penalty": local,
    }  # fmt: skip
    fit = jr.regression_list.fit(X, y, weights, **options)
    n = len(first)
    assert [fit.model.conjunctions.rule(k) for k in range(n)] == [first.rule(k) for k in range(n)]
    assert len(fit.model.conjunctions) <= 4
    assert fit.history[-1].size == len(fit.model.conjunctions)
    assert fit.objective == pytest.approx(recomputed(fit, X, y, weights))
    # The list behind them is the one that is learned of the rows that they leave.
    left = ~first.satisfied(jr.as_table(X)).any(axis=1)
    varies = np.ptp(y[left]) > 0 and np.ptp(X[left], axis=0).any()
    if two and not local and varies:
        rest, whole = loss_of(y[left], weights[left], loss), loss_of(y, weights, loss)
        alone = jr.regression_list.fit(
            X[left], y[left], weights[left],
            **options | {"first": None, "max_rules": 2, "literal_penalty": 0.02 * whole / rest},
        )  # fmt: skip
        taken = np.array([first.satisfied(jr.as_table(X))[:, 0], left])
        parts = [taken[0], ~taken.any(axis=0)]
        before = sum(loss_of(y[part], weights[part], loss) for part in parts)
        assert fit.objective == pytest.approx(
            (before + alone.objective * rest) / whole + 0.02 * first.propositions.sum()
        )
    for limit in (None, 1e-9):
        again = jr.regression_list.fit(X, y, weights, start=fit, time_limit=limit, **options)
        assert again.objective <= fit.objective + 1e-12
    assert dict(again.model.options)["start"] == "given"
    # A start of other data need not be good, and is improved; its own cut points come along.
    other = jr.regression_list.fit(X, y[::-1], weights, **options).model
    cut = jr.Conjunctions.build(schema, [[c.above(0, 0.25)]])
    own = jr.RegressionList(cut, np.zeros(2))
    for start in (other, own):
        more = jr.regression_list.fit(X, y, weights, start=start, **options)
        assert more.objective <= fit.objective + 1e-12


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 2**20), st.sampled_from(["squared", "absolute"]))
def test_what_an_insertion_saves_is_the_fall_of_the_objective(
    seed: int, drawn: int, loss: Any
) -> None:
    """At the best of all positions, with the price of reading."""
    X, y, weights = small(seed)
    y = np.round(y)  # few values, so that the bins are exact
    options = regression_list.RegressionListOptions(
        loss=loss, literal_penalty=0.0, local_penalty=0.05, min_support=0.0
    )
    data = options.training_data(X, y, weights, squared)
    run = options.run()
    task = regression_list._Task.of(data, options, run)
    search = regression_list._ListSearch(task, options, run, 0.0)
    random = np.random.default_rng(drawn)
    now = search.list_of([(int(a),) for a in random.permutation(len(task.literals))[:2]])
    if not np.isfinite(now.objective):
        return
    saved, place = np.empty(len(task.literals)), np.zeros(len(task.literals), np.int64)
    search.rate(now)((), np.arange(24), saved, place)
    for a in range(len(task.literals)):
        lists = [search.list_of((*now.rules[:k], (a,), *now.rules[k:])) for k in range(3)]
        falls = np.array([now.objective - one.objective for one in lists]) * task.rows.constant
        assert saved[a] == pytest.approx(falls.max())
        if np.isfinite(saved[a]):
            assert falls[place[a]] == pytest.approx(falls.max())


def test_a_start_is_what_the_search_cannot_find() -> None:
    X = FRAME[["size"]].to_numpy()
    y = (X[:, 0] == 3.0) + 0.0
    exact = jr.regression_list.fit(X, y, max_rules=2, literal_penalty=0.01)
    coarse: dict[str, Any] = {"cut_points": {"x0": [5.0]}, "max_rules": 2, "literal_penalty": 0.01}
    without = jr.regression_list.fit(X, y, **coarse)
    again = jr.regression_list.fit(X, y, start=exact, **coarse)
    assert again.objective <= exact.objective + 1e-12 < without.objective
    # What holds for all rows, or for none, is the default.
    c = jr.Condition
    everything = jr.Conjunctions.build(
        exact.model.schema, [[c.above(0, 99.0)], [c.above(0, -1.0)], [c.above(0, 5.0)]]
    )
    start = jr.RegressionList(everything, np.zeros(4))
    coarse["max_rules"] = 3
    assert jr.regression_list.fit(X, y, start=start, **coarse).objective == without.objective
    most = jr.Conjunctions.build(exact.model.schema, [[c.below(0, 6.0)]])
    with pytest.raises(ValueError, match=r"start has a default, which decides .* min_support=0.5"):
        jr.regression_list.fit(X, y, start=jr.RegressionList(most, np.zeros(2)), min_support=0.5)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("length", [1, None])
def test_required_columns_are_used(loss: Any, length: Any) -> None:
    for seed in range(10):
        X, y, weights = small(seed)
        wide = np.column_stack([X, np.random.default_rng(seed).integers(0, 2, (24, 2))])
        options: dict[str, Any] = {"loss": loss, "max_length": length, "literal_penalty": 0.05}
        for size in (2, 3):
            fit = jr.regression_list.fit(
                wide, y, weights, required=[3, "x4"], max_rules=size, **options
            )
            assert {3, 4} <= set(fit.model.conjunctions.feature)
            assert len(fit.model.conjunctions) <= size
            assert fit.objective == pytest.approx(recomputed(fit, wide, y, weights))
            assert fit.history[-1].objective == fit.objective
            again = jr.regression_list.fit(
                wide, y, weights, required=[3, 4], max_rules=size, start=fit, **options
            )
            assert again.objective <= fit.objective + 1e-12
        first = jr.Conjunctions.build(jr.as_table(wide).schema, [[jr.Condition.at_least(4, 1.0)]])
        path = jr.regression_list.path(
            wide, y, weights, required=[3, 4], first=first, max_rules=3, **options
        )
        assert [dict(one.model.options)["max_rules"] for one in path] == [2, 3]
        assert all(3 in one.model.conjunctions.feature for one in path)
    wide, y = np.tile(wide, (10, 1)), np.tile(y, 10)
    chosen = jr.regression_list.cross_validate(
        wide, y, required=[3], first=first, max_rules=3, n_folds=2
    )
    assert chosen.details.cross_validation.risks.shape == (2, 8)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["squared", "absolute"]), st.booleans())
def test_monotone_lists_never_fall(seed: int, loss: Any, expert: bool) -> None:
    random = np.random.default_rng(seed)
    X = random.integers(0, 3, (60, 3)).astype(float)
    y = np.round(X[:, 0] * random.choice([-1, 1]) + X[:, 1] * (X[:, 2] > 0), 1)
    y += np.round(random.normal(size=60), 1)
    monotone = {0: int(random.choice([-1, 1])), "x1": 1}
    options: dict[str, Any] = {"loss": loss, "monotone": monotone, "literal_penalty": 0.01}
    if expert:
        ends = [jr.Condition.at_least, jr.Condition.below]
        rule = [ends[int(random.integers(2))](int(random.integers(2)), 1.0)]
        options["first"] = jr.Conjunctions.build(jr.as_table(X).schema, [rule])
    try:
        fit = jr.regression_list.fit(X, y, **options, required=[] if expert else [2])
    except ValueError as error:
        assert "first has the rule" in str(error)  # noqa: PT017  only some draws break monotone
        return
    grid = np.array(np.meshgrid(*[np.arange(-1.0, 4.0)] * 3, indexing="ij")).reshape(3, -1).T
    for one in (fit, jr.regression_list.fit(X, y, **options, start=fit)):
        said = jr.predict(one.model, grid).reshape(5, 5, 5)
        assert (monotone[0] * np.diff(said, axis=0) >= -1e-12).all()
        assert (np.diff(said, axis=1) >= -1e-12).all()
        assert one.objective == pytest.approx(recomputed(one, X, y, np.ones(60)))
    assert one.objective <= fit.objective + 1e-12


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_best_small_monotone_list_is_nearly_always_found(loss: Any) -> None:
    found = tried = 0
    for seed in range(30):
        X, y, weights = small(seed)
        least = 1.0
        whole = loss_of(y, weights, loss)
        literals = [(X[:, j] == v, j, v) for j in range(3) for v in (0, 1)]

        for (one, j, v), (two, k, w) in itertools.product(literals, literals):
            for parts, sides in (
                ([one, ~one], [(j, v)]), ([one, two & ~one, ~two & ~one], [(j, v), (k, w)])
            ):  # fmt: skip
                if not all(part.any() for part in parts):
                    continue
                values = [best_value(y[part], weights[part], loss) for part in parts]
                if all(
                    column == 2 or all((values[at] - later) * (2 * side - 1) >= 0 for later in rest)
                    for at, (column, side) in enumerate(sides)
                    for rest in [values[at + 1 :]]
                ):
                    left = sum(loss_of(y[part], weights[part], loss) for part in parts)
                    least = min(least, left / whole + 0.03 * len(sides))
        fit = jr.regression_list.fit(
            X, y, weights, literal_penalty=0.03, min_support=0.0, max_rules=2, max_length=1,
            loss=loss, monotone={0: 1, 1: 1},
        )  # fmt: skip
        assert fit.objective >= least - 1e-9
        found += fit.objective <= least + 1e-9
        tried += 1
    assert found >= tried - 3


def test_cross_validation_measures_the_loss() -> None:
    fit = jr.regression_list.cross_validate(
        FRAME, Y, **OWN, literal_penalties=[0.005, 0.1], max_rules=3, n_folds=3, loss="absolute"
    )
    table = fit.details.cross_validation
    assert table.risks.shape == (3, 6)
    assert dict(fit.model.options)["literal_penalty"] == table.setting["literal_penalty"]
    # The error of a fold is that of its model on held-out rows: less than that of the median.
    assert table.risks.min() < np.abs(Y - np.median(Y)).mean()


def test_a_fit_on_some_rows_is_rated_on_all() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(30_000, 3))
    y = (X[:, 0] > 0) + 0.3 * random.normal(size=30_000)
    fit = jr.regression_list.fit(X, y, time_limit=jr.Deadline(100.0, _Ticks()))
    assert fit.status == "time_limit"
    assert fit.details.sample is None or fit.details.sample < 30_000
    left = jr.risk(fit.model, X, y) / y.var()
    price = fit.details.literal_penalty * fit.model.conjunctions.propositions.sum()
    assert fit.objective == pytest.approx(left + price)


class _Ticks:
    """A clock that each look moves by a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 20.0
        return self.now


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"loss": "huber"}, ValueError, "loss must be"),
        ({"literal_penalty": -1.0}, ValueError, "literal_penalty"),
        ({"min_support": 1.0}, ValueError, "min_support"),
        ({"max_rules": 0}, ValueError, "max_rules"),
        ({"beam_width": 0}, ValueError, "beam_width"),
        ({"propositions": [1]}, TypeError, "propositions"),
        ({"forbidden": ["weight"]}, ValueError, "names 'weight'"),
        ({"forbidden": ["size", "age", "colour"]}, ValueError, "names every column"),
        ({"monotone": {"colour": 1}}, ValueError, "monotone names the categorical column"),
        ({"monotone": {"size": -1}, "start": MODEL}, ValueError, "start has .* monotone"),
        ({"monotone": {"age": -1}, "first": FIRST}, ValueError, "first has the rule 'age > 1'"),
        ({"required": ["size", "age"], "max_rules": 1}, ValueError, "required names 2 columns"),
        ({"required": ["age"], "min_support": 0.9}, ValueError, "no list .*'age'.*min_support"),
        ({"first": FIRST, "max_rules": 1}, ValueError, "first has 1 rules, but max_rules=1"),
        ({"start": Y}, TypeError, "start must be a RegressionList"),
        ({"start": MODEL, "max_rules": 2}, ValueError, "start has 6 rules besides the 0 of first"),
        ({"start": MODEL, "forbidden": ["size"]}, ValueError, "start has the rule"),
        ({"start": MODEL, "min_support": 0.3}, ValueError, "start has the rule .* min_support"),
    ],
)
def test_bad_arguments(options: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        jr.regression_list.fit(FRAME, Y, **OWN, **options)


def test_bad_targets() -> None:
    for y in (np.where(Y > 0, "yes", "no"), np.append(np.nan, Y[1:]), np.append(np.inf, Y[1:])):
        with pytest.raises((TypeError, ValueError), match="y"):
            jr.regression_list.fit(FRAME, y, **OWN)
    with pytest.raises(ValueError, match="only one value"):
        jr.regression_list.fit(FRAME, np.ones(N), **OWN)


# The model


def by_hand(**changes: Any) -> jr.RegressionList:
    schema = jr.as_table(FRAME, **OWN).schema
    c = jr.Condition
    rules = jr.Conjunctions.build(schema, [[c.above(0, 4.0)], [c.one_of(2, [1])]])
    fields: dict[str, Any] = {"values": np.array([3.0, -1.5, 1e-3])}
    return jr.RegressionList(rules, **fields | changes)


def test_it_prints() -> None:
    assert str(by_hand()) == (
        "IF size > 4 THEN target = 3\nELSE IF colour == b THEN target = -1.5\nELSE target = 0.001"
    )
    counted = by_hand(counts=np.array([3.0, 1.0, 2.0]), errors=np.array([0.5, 0.0, 1.25]))
    assert "THEN target = 3 (3 rows, off by 0.5)" in str(counted)
    assert "weight 3" in str(by_hand(counts=np.array([3.0, 1.0, 2.0]), weighted=True))
    assert repr(counted) == "RegressionList(2 rules)"
    assert "<table" in counted._repr_html_()
    assert r"target = 3" in jr.to_latex(counted)
    first = jr.explain(counted, FRAME[:1])[0]
    assert first.prediction == jr.predict(counted, FRAME[:1])[0]
    assert "rows, off by" in str(first)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"values": np.zeros(2)}, "values must be finite, of shape"),
        ({"values": np.array([0.0, np.nan, 1.0])}, "values must be finite"),
        ({"counts": -np.ones(3)}, "counts must be finite and at least 0"),
        ({"errors": np.ones(2)}, "errors must be finite"),
        ({"loss": "huber"}, "loss must be"),
    ],
)
def test_bad_parts(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        by_hand(**changes)
    with_classes = by_hand().conjunctions.with_schema(by_hand().schema.with_classes(("no", "yes")))
    with pytest.raises(ValueError, match="not for the classes"):
        jr.RegressionList(with_classes, np.zeros(3))


def test_what_it_does_not_have_is_refused_by_name() -> None:
    for call, told in (
        (lambda: jr.decision_function(MODEL, FRAME), "RegressionList, which has no scores"),
        (lambda: jr.predict(MODEL, FRAME, offset=np.ones(N)), "a RegressionList"),
        (lambda: jr.to_sql(MODEL, "score"), "a RegressionList has no scores"),
        (lambda: jr.to_sql(MODEL, "reasons"), "RegressionList"),
        (lambda: jr.reasons(MODEL, FRAME), "RegressionList"),
        (lambda: jr.finetune(MODEL, FRAME, Y), "RegressionList"),
        (lambda: jr.scorecard(MODEL, FRAME, Y), "RegressionList"),
        (lambda: jr.ssrl.fit(FRAME, Y > 0, **OWN, start=MODEL), "RegressionList"),
        (lambda: jr.lire.fit(FRAME, Y, **OWN, start=MODEL), "RegressionList"),
    ):
        with pytest.raises((TypeError, ValueError), match=told):
            call()
    for call in (
        lambda: jr.predict_proba(MODEL, FRAME),
        lambda: jr.accuracy(MODEL, FRAME, Y),
        lambda: jr.calibrate(MODEL, FRAME, Y),
    ):
        with pytest.raises(ValueError, match="predicts numbers"):
            call()
    for call in (
        lambda: jr.with_threshold(MODEL, 0.5),
        lambda: jr.operating_point(MODEL, FRAME, max_alarms=0.1),
    ):
        with pytest.raises(ValueError, match="two classes"):
            call()
    with pytest.raises(ValueError, match="rates scores"):
        jr.risk(MODEL, FRAME, np.abs(Y), loss="poisson")


def test_it_is_saved_and_traced(tmp_path: Any) -> None:
    jr.save(MODEL, tmp_path / "model.json")
    loaded = jr.load(tmp_path / "model.json")
    assert str(loaded) == str(MODEL)
    assert loaded.loss == MODEL.loss
    np.testing.assert_array_equal(jr.predict(loaded, FRAME), jr.predict(MODEL, FRAME))
    X = FRAME[["size", "age"]].fillna(0.0).to_numpy()
    model = jr.regression_list.fit(X, Y).model
    traced = jax.jit(lambda model, X: jr.predict(model, X))(model, jnp.asarray(X))
    np.testing.assert_allclose(traced, jr.predict(model, X), rtol=1e-6)

    def total(values: Any) -> Any:
        return jr.predict(dataclasses.replace(model, values=values), X).sum()

    slopes = jax.grad(total)(jnp.asarray(model.values))
    np.testing.assert_allclose(slopes, model.counts)


def test_exports_say_the_same() -> None:
    said = jr.predict(MODEL, FRAME)
    code: dict[str, Any] = {}
    exec(jr.to_python(MODEL), code)
    rows = FRAME.astype(object).where(FRAME.notna(), None).to_dict("records")
    assert [code["predict"](row) for row in rows] == said.tolist()
    first = code["explain"](rows[0])
    assert first["prediction"] == said[0]
    assert first["parts"][0] == jr.explain(MODEL, FRAME[:1])[0].parts[0].text
    document = Document(jr.to_pmml(MODEL))
    assert [document.predict(row)[0] for row in FRAME.to_dict("records")] == said.tolist()
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        FRAME.to_sql("people", database)
        sql = jr.to_sql(MODEL, dialect="sqlite")
        answers = database.execute(f"SELECT {sql} FROM people").fetchall()
    assert [one for (one,) in answers] == said.tolist()
    frame = jr.to_dataframe(MODEL)
    assert list(frame) == ["rule", "conditions", "then"]
    np.testing.assert_array_equal(frame["then"], MODEL.values)


def test_it_is_edited() -> None:
    shorter = jr.without_rules(MODEL, [0])
    assert len(shorter.conjunctions) == len(MODEL.conjunctions) - 1
    assert shorter.counts is None
    assert shorter.errors is None
    assert jr.without_rules(MODEL, []) is MODEL
    refitted = jr.refit(shorter, FRAME, Y)
    assert jr.risk(refitted, FRAME, Y) <= jr.risk(shorter, FRAME, Y)
    assert refitted.counts.sum() == N
    same = jr.refit(MODEL, FRAME, Y)
    np.testing.assert_allclose(same.values, MODEL.values)
    np.testing.assert_allclose(same.errors, MODEL.errors)
    kept = jr.refit(MODEL, FRAME, 2 * Y, keep=[0])
    np.testing.assert_allclose(kept.values, np.append(MODEL.values[0], 2 * MODEL.values[1:]))
    assert kept.errors is None
    few = FRAME[MODEL.position(jr.as_table(FRAME, **OWN)) == 0]
    alone = jr.refit(MODEL, few, Y[few.index])  # other rules decide no row, and keep their values
    np.testing.assert_allclose(alone.values, MODEL.values)
    with pytest.raises(ValueError, match="without loss"):
        jr.refit(MODEL, FRAME, Y, loss="squared")
    simple = jr.simplify(MODEL, FRAME)
    np.testing.assert_array_equal(jr.predict(simple, FRAME), jr.predict(MODEL, FRAME))


def test_it_is_inspected() -> None:
    assert jr.complexity(MODEL) == len(MODEL.conjunctions) + MODEL.conjunctions.propositions.sum()
    assert jr.local_support(MODEL, FRAME) >= 1
    assert sum(one.value for one in jr.importance(MODEL, FRAME)) == pytest.approx(1.0)
    assert len(jr.rule_report(MODEL, FRAME).rules) == len(MODEL.conjunctions)
    assert sum(one.value for one in jr.feature_importance(MODEL, FRAME)) == pytest.approx(1.0)
    local = jr.local_importance(MODEL, FRAME, FRAME[:1])
    moved = jr.predict(MODEL, FRAME[:1])[0] - jr.predict(MODEL, FRAME).mean()
    assert sum(one.value for one in local) == pytest.approx(moved)
    assert jr.drift(MODEL, FRAME, FRAME).psi == pytest.approx(0.0)
    assert jr.drift(MODEL, FRAME, FRAME[FRAME["size"] > 4]).psi > 0.1


def test_it_is_drawn() -> None:
    import matplotlib.pyplot as plt

    ax = plots.list_flow(MODEL, FRAME, Y)
    assert "rows, off by" in ax.texts[0].get_text()
    assert "off by" not in plots.list_flow(MODEL, FRAME).texts[0].get_text()
    plots.rule_importance(MODEL, FRAME)
    plots.overlap(MODEL, FRAME)
    plots.effect(MODEL, FRAME, "size")
    plt.close("all")


def test_it_is_reported_and_compared(tmp_path: Any) -> None:
    report = jr.report(FIT, FRAME, Y, tmp_path / "report.html")
    text = str(report.html)
    assert "Regression list of 6 rules" in text
    assert "off by" in text
    found = jr.compare(FRAME, Y, methods=["regression_list", "cart"], folds=2, **OWN)
    assert not found["regression_list"].failures
    assert all(row.risk is not None for row in found.rows)
    stable = jr.stability("regression_list", FRAME, Y, replicates=2, **OWN)
    assert isinstance(stable.model, jr.RegressionList)
    sampled = jr.fit_on_sample(jr.regression_list.fit, FRAME, Y, rows=100, **OWN)
    assert isinstance(sampled.model, jr.RegressionList)


def test_the_estimator_fits_and_chooses() -> None:
    X = FRAME[["size"]].assign(colour=FRAME["colour"].astype("category"))
    fitted = RegressionListRegressor(max_rules=3).fit(X, Y)
    np.testing.assert_array_equal(fitted.predict(X), jr.predict(fitted.model_, X))
    assert fitted.score(X, Y) > 0.3
    chosen = RegressionListRegressor(max_rules=2, penalty="cv").fit(X, Y)
    assert len(chosen.model_.conjunctions) <= 2
