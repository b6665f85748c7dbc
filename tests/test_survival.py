"""`jaxrules.survival`: splits and likelihood by hand, measures against brute force and against
figures of lifelines 0.30.3 and scikit-survival 0.28.0, intervals by simulation, bad input.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules import survival


def people(seed: int, n: int = 300) -> tuple[Any, Any, Any]:
    """X, time and event; the hazard is three times as high above .5 in x."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(n), "place": rng.choice(["a", "b"], n)})
    time = rng.exponential(1 / np.where(X["x"] > 0.5, 1.5, 0.5))
    end = rng.uniform(0.5, 3, n)
    return X, np.minimum(time, end), time <= end


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), delayed=st.booleans())
def test_a_split_is_the_time_at_risk(seed: int, delayed: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    time, event = rng.integers(2, 9, n) / 2, rng.integers(0, 2, n)
    event[0] = 1
    entry = rng.integers(0, 2, n) / 2 if delayed else None
    cuts = np.unique(rng.integers(1, int(2 * time.max()), 3) / 2) if time.max() > 0.5 else []
    weight = rng.random(n) + 0.1
    rows = survival.split(
        np.arange(n)[:, None], time, event, entry=entry, cuts=cuts, sample_weight=weight
    )
    starts = [0.0, *cuts]
    expected = []
    for i in range(n):
        for start, end in zip(starts, [*cuts, np.inf], strict=True):
            begin = max(start, 0.0 if entry is None else entry[i])
            if min(time[i], end) > begin:
                died = float(event[i] and start < time[i] <= end)
                expected.append((i, start, died, min(time[i], end) - begin, weight[i]))
    found = zip(
        rows.person, rows.X.columns[1], rows.events, rows.exposure, rows.weights, strict=True
    )
    np.testing.assert_allclose(np.array([*found], float), np.array(expected, float))
    assert rows.events.sum() == event.sum()


def test_intervals_have_equally_many_events_and_keep_ties_together() -> None:
    time = np.repeat([1.0, 2.0, 3.0, 4.0], 25)
    rows = survival.split(np.zeros((100, 1)), time, np.ones(100), cuts=4)
    assert rows.cuts.tolist() == [0, 1, 2, 3]
    assert [rows.events[rows.X.columns[1] == start].sum() for start in rows.cuts] == [25] * 4
    assert len(survival.split(np.zeros((100, 1)), time, time == 1, cuts=3).cuts) == 1
    default = survival.split(np.zeros((100, 1)), np.arange(1, 101), np.ones(100))
    assert len(default.cuts) == 10


def test_a_table_with_special_values_gets_the_column() -> None:
    X, time, event = people(0)
    X["special"] = np.where(X["x"] > 0.9, -99.0, X["x"])
    table = jr.as_table(X, special_values={"special": [-99.0]})
    model = survival.fit(table, time, event, max_rules=2, cuts=3)
    assert model.survival(table, [1.0]).shape == (300, 1)
    np.testing.assert_allclose(model.survival(X, [1.0]), model.survival(table, [1.0]))


def test_hazards_are_events_per_time_at_risk() -> None:
    X, time, event = people(1, 2000)
    high = (X["x"] > 0.5).to_numpy()
    weight = np.random.default_rng(0).uniform(0.5, 2, 2000)
    model = survival.fit(X[["x"]], time, event, cuts=1, max_rules=1, sample_weight=weight)
    exact = survival.refit(model, X[["x"]], time, event, l2_penalty=0.0, sample_weight=weight)
    rule = exact.rates.conjunctions.satisfied(jr.as_table(X[["x"]].assign(time=0.0)))[:, 0]
    assert (rule == high).mean() > 0.95 or (rule != high).mean() > 0.95
    rates = [(weight * event)[held].sum() / (weight * time)[held].sum() for held in (rule, ~rule)]
    expected = np.where(rule, *rates)
    np.testing.assert_allclose(exact.hazard(X[["x"]], [0.7])[:, 0], expected, rtol=1e-5)
    chances = np.exp(-expected[:, None] * [0.7, 2.0])
    np.testing.assert_allclose(exact.survival(X[["x"]], [0.7, 2.0]), chances, rtol=1e-5)
    ratio = exact.hazard_ratios()[0]
    assert ratio.ratio == pytest.approx(rates[0] / rates[1], rel=1e-4)
    # Of unweighted rows, the variance of a log rate is about 1 / events.
    plain = survival.refit(model, X[["x"]], time, event, l2_penalty=0.0)
    counts = [event[held].sum() for held in (rule, ~rule)]
    width = np.log(plain.hazard_ratios()[0].upper / plain.hazard_ratios()[0].ratio) / 1.959964
    assert width == pytest.approx((1 / counts[0] + 1 / counts[1]) ** 0.5, rel=0.1)


def test_curves_follow_the_intervals() -> None:
    X, time, event = people(2, 500)
    model = survival.fit(X, time, event, cuts=[0.5, 1.0], max_rules=3)
    at = np.array([0.2, 0.5, 0.8, 1.7])
    hazards = model.hazard(X, [0.5, 1.0, 2.0])
    total = hazards @ np.array([at.clip(0, 0.5), (at - 0.5).clip(0, 0.5), (at - 1.0).clip(0, None)])
    np.testing.assert_allclose(model.cumulative_hazard(X, at), total)
    lower, upper = model.survival_interval(X, at)
    chances = model.survival(X, at)
    assert (lower < chances).all()
    assert (chances < upper).all()
    narrow = model.survival_interval(X, at, level=0.5)
    assert (narrow[0] > lower).all()
    assert (narrow[1] < upper).all()
    exposed = survival.split(X, time, event, cuts=[0.5, 1.0])
    means = jr.predict(model.rates, exposed.X, exposure=exposed.exposure)
    assert means.sum() == pytest.approx(event.sum(), rel=0.02)


def test_intervals_of_known_rules_hold_the_truth_as_often_as_they_say() -> None:
    X, time, event = people(0, 400)
    model = survival.fit(X[["x"]], time, event, cuts=1, max_rules=1)
    covered = []
    for seed in range(1, 120):
        X, time, event = people(seed, 400)
        exact = survival.refit(model, X[["x"]], time, event, l2_penalty=0.0)
        rule = exact.rates.conjunctions.satisfied(jr.as_table(X[["x"]].assign(time=0.0)))[:, 0]
        high = (X["x"] > 0.5).to_numpy()
        rates = [(0.5 + 1.0 * high[held].mean()) for held in (rule, ~rule)]
        one = exact.hazard_ratios(0.8)[0]
        covered.append(one.lower < rates[0] / rates[1] < one.upper)
    assert 0.65 < np.mean(covered) < 0.92


def measured(k: int) -> dict[str, Any]:
    rng = np.random.default_rng(k)
    time, end = rng.exponential(size=200), rng.exponential(1.5, size=200)
    event, time = time <= end, np.minimum(time, end)
    if k == 1:
        time = np.ceil(time * 4)
    risk = np.round(rng.normal(size=200) - time * 0.3, 1)
    at = np.linspace(np.quantile(time, 0.05), np.quantile(time, 0.9), 7)
    return {
        "time": time, "event": event, "risk": risk, "times": at, "survival": rng.random((200, 7)),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("k", "c"), [(0, 0.6028808380619817), (1, 0.6840632364493323), (2, 0.5749540561827251)]
)
def test_concordance_is_that_of_lifelines(k: int, c: float) -> None:
    d = measured(k)
    assert survival.concordance(d["time"], d["event"], d["risk"]) == pytest.approx(c, rel=1e-12)


@pytest.mark.parametrize(
    ("k", "first", "integral"),
    [(0, 0.3486969, 0.3471450966954401), (2, 0.32745576, 0.3220881578013171)],
)
def test_brier_scores_are_those_of_scikit_survival(k: int, first: float, integral: float) -> None:
    """Without ties of events and censoring, which it weighs in another way."""
    d = {name: value for name, value in measured(k).items() if name != "risk"}
    assert survival.brier_score(**d)[0] == pytest.approx(first, rel=1e-6)
    assert survival.integrated_brier_score(**d) == pytest.approx(integral, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_measures_are_those_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 25))
    time, event = rng.integers(2, 9, n).astype(float), rng.integers(0, 2, n)
    event[time.argmin()], risk = 1, rng.integers(0, 4, n)
    time[time.argmax()] += 1
    entry, weight = rng.integers(0, 2, n).astype(float), rng.random(n) + 0.1
    right = total = 0.0
    for i in range(n):
        for j in range(n):
            after = time[j] > time[i] or (time[j] == time[i] and not event[j])
            if event[i] and after and entry[j] < time[i]:
                pair = weight[i] * weight[j]
                total += pair
                right += pair * (risk[i] > risk[j]) + pair * (risk[i] == risk[j]) / 2
    given: Any = {"entry": entry, "sample_weight": weight}
    if total:
        found = survival.concordance(time, event, risk, **given)
        assert found == pytest.approx(right / total)

    def uncensored(at: float, before: bool) -> float:
        chance = 1.0
        for t in np.unique(time[event == 0]):
            if t < at or (t == at and not before):
                here = (time > t) | ((time == t) & (event == 0))
                chance *= 1 - weight[(time == t) & (event == 0)].sum() / weight[here].sum()
        return chance

    at, said = 4.0, rng.random(n)
    if at >= time.max():
        return
    errors = [
        said[i] ** 2 / uncensored(time[i], True)
        if time[i] <= at and event[i]
        else (1 - said[i]) ** 2 / uncensored(at, False)
        if time[i] > at
        else 0.0
        for i in range(n)
    ]
    found = survival.brier_score(time, event, said[:, None], [at], sample_weight=weight)[0]
    assert found == pytest.approx(np.average(errors, weights=weight))


def test_delayed_entry_and_weights_count_as_they_should() -> None:
    """A person observed from 1 on is the rest of one observed from 0 who survived until 1."""
    X, time, event = people(3, 400)
    late = time > 1.0
    model: Any = {"cuts": [1.0], "max_rules": 2, "l2_penalty": 1.0}
    entry = np.where(late, 1.0, 0.0)
    rows = survival.split(X, time, event, entry=entry, cuts=[1.0])
    after = rows.X.columns[-1] == 1.0
    assert rows.exposure[after].sum() == pytest.approx((time[late] - 1).sum())
    twice = survival.fit(
        pd.concat([X, X], ignore_index=True), np.tile(time, 2), np.tile(event, 2), **model
    )
    doubled = survival.fit(X, time, event, sample_weight=np.full(400, 2.0), **model)
    np.testing.assert_allclose(
        twice.survival(X, [0.5, 1.5]), doubled.survival(X, [0.5, 1.5]), rtol=1e-6
    )


@pytest.mark.full
@pytest.mark.parametrize("name", ["rulefit", "glrm", "lltboost", "ltrnet"])
def test_other_learners_fit_hazards(name: str) -> None:
    X, time, event = people(4)
    options: dict[str, Any] = {
        "rulefit": {"linear_terms": True, "n_folds": 2},
        "ltrnet": {"iterations": 20, "restarts": 1},
        "lltboost": {"max_rules": 1, "max_nonzeros": 1, "max_length": 1},
    }.get(name, {})  # fmt: skip
    learner = getattr(jr, name).fit
    model = survival.fit(X[["x"]], time, event, learner=learner, cuts=2, **options)
    chances = model.survival(X[["x"]], [1.0])
    lower, upper = model.survival_interval(X[["x"]], [1.0])
    assert ((lower <= chances) & (chances <= upper)).all()
    assert len(str(model).splitlines()) == 2 + len(model.hazard_ratios())
    assert "95 %" in model._repr_html_()


def test_folds_keep_persons_together(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxrules.learning import cross_validation

    drawn: list[Any] = []
    draw = cross_validation.spread_groups

    def spread_and_keep(group: Any, *rest: Any) -> Any:
        drawn.append((group, draw(group, *rest)))
        return drawn[-1][1]

    monkeypatch.setattr(cross_validation, "spread_groups", spread_and_keep)
    X, time, event = people(5)
    survival.fit(X, time, event, learner=jr.boosting.cross_validate, max_rules=1, cuts=3)
    ((group, fold_of),) = drawn
    assert len(group) > 300
    assert len(set(zip(group.tolist(), fold_of.tolist(), strict=True))) == 300
    # Several rows of a person, whose columns change half-way
    middle, names = time / 2, np.repeat([f"person {k}" for k in range(300)], 2)
    survival.fit(
        X.loc[X.index.repeat(2)], np.stack([middle, time], 1).ravel(),
        np.stack([0 * event, event], 1).ravel(), groups=names, max_rules=1, cuts=3,
        entry=np.stack([0 * middle, middle], 1).ravel(), learner=jr.boosting.cross_validate,
    )  # fmt: skip
    group, fold_of = drawn[1]
    assert len(set(zip(group.tolist(), fold_of.tolist(), strict=True))) == 300


def test_rows_of_a_person_are_the_person() -> None:
    X, time, event = people(6)
    usual = survival.split(X, time, event, cuts=[0.5, 1.0])
    middle, twice = time / 2, X.index.repeat(2)
    halves = {
        "time": np.stack([middle, time], 1).ravel(),
        "event": np.stack([0 * event, event], 1).ravel(),
        "entry": np.stack([0 * middle, middle], 1).ravel(), "groups": twice,
    }  # fmt: skip
    rows = survival.split(X.loc[twice], cuts=[0.5, 1.0], **halves)
    for one in ("events", "exposure"):
        sums = [np.bincount(part.person, getattr(part, one)) for part in (rows, usual)]
        np.testing.assert_allclose(*sums)
    weights = np.linspace(1, 2, len(X))
    model = survival.fit(X, time, event, sample_weight=weights, cuts=[0.5, 1.0], max_rules=2)
    one = survival.refit(model, X, time, event, sample_weight=weights, l2_penalty=0.0)
    other = survival.refit(
        model, X.loc[twice], sample_weight=np.repeat(weights, 2), l2_penalty=0.0, **halves
    )
    assert [ratio.ratio for ratio in other.hazard_ratios()] == pytest.approx(
        [ratio.ratio for ratio in one.hazard_ratios()]
    )


@pytest.mark.parametrize("level", [0.1, 0.5, 0.97])
def test_quantiles_are_where_curves_fall_to_them(level: float) -> None:
    X, time, event = people(0)
    model = survival.fit(X, time, event, cuts=4, max_rules=3)
    found = model.quantile(X[:20], level)
    assert found.shape == (20,)
    at = [model.survival(X[k : k + 1], [moment])[0, 0] for k, moment in enumerate(found.tolist())]
    np.testing.assert_allclose(at, level)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        model.quantile(X, 1.0)
    with pytest.raises(TypeError, match=r"got SurvivalModel; pass model\.rates"):
        jr.predict(model, X)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"time": [1.0, 2.0]}, ValueError, r"time has shape \(2,\), but X has 3 rows"),
    ({"time": [1.0, np.nan, 2.0]}, ValueError, "time has NaN .*drop those rows"),
    ({"time": [0.0, 1.0, 2.0]}, ValueError, "time must be positive; give events"),
    ({"time": ["a", "b", "c"]}, TypeError, "time has type"),
    ({"event": [0, 1, 2]}, ValueError, "event must be True or False"),
    ({"event": ["dead", "alive", "dead"]}, ValueError, "such as status == 'dead'"),
    ({"time": [True, False, True]}, TypeError, "time comes before event"),
    ({"groups": ["a", "a"]}, ValueError, "groups has 2 values, but X has 3 rows"),
    ({"groups": ["a", "b", "a"]}, ValueError, "two rows at the same time: rows 0 and 2"),
    (
        {"groups": ["a", "b", "a"], "entry": [0.0, 0.0, 1.0]},
        ValueError,
        "an event before the last row: rows 0 and 2",
    ),
    ({"event": [0, 0, 0]}, ValueError, "event is 0 in every row"),
    ({"event": [1, 0]}, ValueError, "event has 2 values, but X has 3 rows"),
    ({"entry": [0.0, 2.0, 0.0]}, ValueError, "entry must be less than time, but is not in row 1"),
    ({"entry": [-1.0, 0.0, 0.0]}, ValueError, "entry has negative values"),
    ({"cuts": [2.0, 1.0]}, ValueError, "cuts must ascend between 0 and the longest time, 3"),
    ({"cuts": [3.0]}, ValueError, "cuts must ascend"),
    ({"cuts": 0}, ValueError, "cuts must be"),
    ({"column": "x"}, ValueError, "X has a column 'x' already"),
    ({"column": 3}, TypeError, "column must be a name"),
    ({"loss": "poisson"}, ValueError, "loss is set by survival.fit"),
    ({"learner": jr.lire.published}, TypeError, "learner must be fit"),
    ({"learner": 3}, TypeError, "learner must be fit"),
]


def test_files_keep_the_whole_model(tmp_path: Path) -> None:
    X, time, event = people(0)
    model = survival.fit(X, time, event, cuts=3, max_rules=2)
    jr.save(model, tmp_path / "hazards.json")
    again = jr.load(tmp_path / "hazards.json")
    assert again.fit is None
    assert str(again) == str(model)
    assert again.hazard_ratios() == model.hazard_ratios()
    at = [0.3, 2.0]
    for kept, made in zip(
        again.survival_interval(X, at), model.survival_interval(X, at), strict=True
    ):
        np.testing.assert_array_equal(kept, made)
    fresh = survival.refit(again, X, time, event)
    assert (fresh.fit, str(fresh)) == (None, str(survival.refit(model, X, time, event)))
    for change in (
        {"cuts": np.array([0.0, 2.0, 1.0])}, {"covariance": np.eye(2)}, {"column": "x"},
        {"rates": dataclasses.replace(model.rates, link="identity")},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="cannot be saved: .*(cuts|covariance|column|link)"):
            jr.save(dataclasses.replace(model, **change), tmp_path / "wrong.json")


@pytest.mark.parametrize(("given", "error", "words"), BAD)
def test_bad_input_is_refused_by_name(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    usual = {"time": [1.0, 2.0, 3.0], "event": [1, 0, 1]}
    with pytest.raises(error, match=words):
        survival.fit(pd.DataFrame({"x": [1.0, 2.0, 3.0]}), **{**usual, **given})


def test_bad_measures_are_refused_by_name() -> None:
    time, event, said = [1.0, 2.0, 3.0], [1, 0, 1], np.full((3, 1), 0.5)
    for call, words in (
        (lambda: survival.concordance(time, event, [1.0]), "risk has shape"),
        (lambda: survival.concordance(time, [0, 0, 0], time), "no pair of rows is comparable"),
        (lambda: survival.brier_score(time, event, said, [3.0]), "times must be less than"),
        (lambda: survival.brier_score(time, event, said + 1, [1.0]), "survival must be prob"),
        (lambda: survival.brier_score(time, event, said, [1.0, 2.0]), "survival has shape"),
        (lambda: survival.integrated_brier_score(time, event, said, [1.0]), "two or more"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_rule_without_events_has_an_open_interval() -> None:
    X, time, event = people(6)
    model = survival.fit(X[["x"]], time, event, cuts=1, max_rules=1)
    rule = model.rates.conjunctions.satisfied(jr.as_table(X[["x"]].assign(time=0.0)))[:, 0]
    for weight in (None, np.random.default_rng(0).uniform(0.5, 2, 300)):
        never: Any = {"l2_penalty": 1e-6, "sample_weight": weight}
        found = survival.refit(model, X[["x"]], time, event & ~rule, **never)
        (ratio,) = found.hazard_ratios()
        assert ratio.ratio < 1e-3
        assert ratio.lower < 1e-6
        assert ratio.upper > 1e3
        assert "over 1000" in str(found)
