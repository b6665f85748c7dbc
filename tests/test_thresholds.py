"""Thresholds over all values of a column: the search, and what boosting makes of it."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.metrics import average_precision_score

import jaxrules as jr
from jaxrules.solvers.rule_search import CorrectiveDecrease, SecondOrder, SumOverClasses, thresholds
from jaxrules.solvers.rule_search.thresholds import SortedColumn, best_threshold
from jaxrules.tools.kernels import Kernels


def draw(seed: int, n: int, classes: int = 1, found: int = 2):
    """An objective with its terms for every row, and columns with ties and missing values."""
    r = np.random.default_rng(seed)
    q = np.column_stack([np.ones(n, bool), r.random((n, found)) < 0.4])
    penalties = np.array([0.0, *[1.5] * found])
    parts, terms = [], []
    for _ in range(classes):
        h = r.uniform(0.1, 0.3, n)
        g = r.normal(size=n) * np.sqrt(h)
        g -= g.mean()
        parts.append(CorrectiveDecrease(g, h, 1.5, q, penalties, per_unit=True))
        values, vectors = np.linalg.eigh((q.T * h) @ q + np.diag(penalties))
        terms += [g, h, *(h[:, None] * (q @ (vectors / np.sqrt(values)))).T]
    objective = parts[0] if classes == 1 else SumOverClasses(tuple(parts), per_unit=True)
    columns = [r.normal(size=n), r.integers(0, 4, n).astype(float), np.round(r.normal(size=n), 1)]
    columns[0][r.random(n) < 0.2] = np.nan
    return objective, np.stack(terms), columns


def by_hand(objective, terms, columns, sides=(True, True)):
    """The best value of all single conditions, from the rows of every one."""
    best = 0.0
    for column in columns:
        for value in np.unique(column[~np.isnan(column)])[1:]:
            for rows, allowed in zip((column < value, column >= value), sides, strict=True):
                if allowed:
                    best = max(best, float(objective.value(terms[:, rows].sum(axis=1))))
    return best


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 60), st.sampled_from([1, 3]))
def test_best_threshold_is_that_of_all_conditions(seed: int, n: int, classes: int) -> None:
    objective, terms, columns = draw(seed, n, classes)
    for sides in ((True, True), (True, False), (False, True)):
        some = {f: (SortedColumn.of(c), sides) for f, c in enumerate(columns)}
        split, best = (
            best_threshold(some, objective, terms),
            by_hand(objective, terms, columns, sides),
        )
        if split is None:
            assert best == 0
            continue
        assert split.value == pytest.approx(best, rel=1e-9)
        column = columns[split.column]
        rows = column > split.low if split.above else column <= split.low
        assert float(objective.value(terms[:, rows].sum(axis=1))) == pytest.approx(best, rel=1e-9)
        assert split.low < split.high


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.sampled_from([0.0, 0.3, 3.0]))
def test_blocks_find_what_a_full_pass_finds(seed: int, classes: int, signal: float) -> None:
    objective, terms, columns = draw(seed, 2000, classes)
    terms[0] += signal * terms[1] * (np.nan_to_num(columns[0]) > 1.0)
    some = {f: (SortedColumn.of(c), (True, True)) for f, c in enumerate(columns)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernels, "pay", lambda *_: False)
        full = best_threshold(some, objective, terms)
        patch.setattr(Kernels, "pay", lambda *_: True)
        patch.setattr(thresholds, "_BLOCKS", 16)
        patch.setattr(thresholds, "_AT_ONCE", 700)
        some = {f: (SortedColumn.of(c), (True, True)) for f, c in enumerate(columns)}
        blocks = best_threshold(some, objective, terms)
    assert full is not None
    assert blocks is not None
    assert blocks.value == pytest.approx(full.value, rel=1e-9)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.integers(2, 12))
def test_rounding_does_not_choose_between_equal_splits(seed: int, classes: int, n: int) -> None:
    r = np.random.default_rng(seed)
    objective, terms, (_, coarse, fine) = draw(seed, 40 * n, classes)
    # Columns that split the rows alike, in either direction, in another order of their rows.
    columns = [fine, r.normal(size=len(fine)), -coarse, coarse, np.exp(fine), -fine]
    found = []
    for order in (range(6), range(5, -1, -1)):
        for pays in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Kernels, "pay", lambda *_, pays=pays: pays)
                some = {f: (SortedColumn.of(columns[f]), (True, True)) for f in order}
                split = best_threshold(some, objective, terms)
            assert split is not None
            found.append(split[1:])
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert {found[0][0], found[2][0]} in ({0, 5}, {1}, {2, 3})


def test_other_objectives_pass_over_all_prefixes() -> None:
    r = np.random.default_rng(0)
    g, h, x = r.normal(size=300), np.ones(300), r.normal(size=300)
    objective, terms = SecondOrder(g, h, 1.0), np.stack([g, h])
    split = best_threshold({0: (SortedColumn.of(x), (True, True))}, objective, terms)
    assert split is not None
    assert split.value == pytest.approx(by_hand(objective, terms, [x]))


# In boosting


@pytest.mark.parametrize("events", [1, 3])
def test_splits_of_rare_counts_stay_finite(events: int) -> None:
    X = np.random.default_rng(0).normal(size=(8000, 2))
    y = np.zeros(8000)
    y[np.argsort(X[:, 0])[-events:]] = 1
    fit = jr.boosting.fit(X, y, loss="poisson")
    assert np.isfinite(jr.predict(fit.model, X)).all()


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def test_step_is_one_rule_at_the_gap() -> None:
    X = normal(400, 4)
    fit = jr.boosting.fit(X, X[:, 0] > 0)
    assert len(fit.model.conjunctions) == 1
    assert jr.accuracy(fit.model, X, X[:, 0] > 0) == 1.0
    assert "smaller ridge" in str(fit)


def test_noise_is_one_rule() -> None:
    X = normal(400, 4)
    fit = jr.boosting.fit(X, np.random.default_rng(1).random(400) < 0.5)
    assert len(fit.model.conjunctions) <= 1
    assert len(jr.boosting.fit(X, X[:, 0] > 0, max_rules=10).details["stages"]) == 10


@pytest.mark.parametrize("tail", [0.99, 0.999])
def test_tail_beyond_the_last_quantile(tail: float) -> None:
    X = normal(5000, 5)
    y = X[:, 0] > np.quantile(X[:, 0], tail)
    fit = jr.boosting.fit(X, y)
    scores = jr.predict_proba(fit.model, X)[:, 1]
    assert average_precision_score(y, scores) == 1.0
    assert len(fit.model.conjunctions) <= 2


def test_rare_corner_of_two_columns() -> None:
    X = normal(5000, 4)
    y = (X[:, 0] > 1.88) & (X[:, 1] < -1.2)
    model = jr.boosting.fit(X, y).model
    assert average_precision_score(y, jr.predict_proba(model, X)[:, 1]) == 1.0


def test_number_is_kept_and_all_singles_are_proved() -> None:
    X = normal(200, 3)
    y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * normal(200, 1, 2)[:, 0]
    fit = jr.boosting.fit(
        X, y, max_rules=3, max_length=1, max_cut_points=None, l2_penalty=1.0, per_unit=False
    )
    assert len(fit.model.conjunctions) == 3
    # the first stage, by hand: the decrease of the mean squared error by every single condition
    g, n = 2 * (y.mean() - y), len(y)
    best = 0.0
    for column in X.T:
        for value in np.sort(column)[:-1]:
            q = (column <= value).astype(float)
            rest = 1.0 + 2 * q.sum() - (2 * q.sum()) ** 2 / (2 * n)
            best = max(best, (g @ q) ** 2 / (2 * n * rest))
    stage = fit.details["stages"][0]
    assert stage.objective == pytest.approx(best)
    assert stage.bound >= best * (1 - 1e-9)


def test_single_conditions_are_on_the_smaller_side() -> None:
    r = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"x": r.normal(size=600), "c": r.choice(list("abc"), 600, p=[0.7, 0.2, 0.1])}
    )
    y = 2 * (frame["x"] > 1.2) + (frame["c"] != "a") + 0.1 * r.normal(size=600)
    model = jr.boosting.fit(frame, y).model
    held = model.conjunctions.satisfied(jr.as_table(frame))
    single = model.conjunctions.lengths == 1
    assert single.any()
    assert held[:, single].mean(axis=0).max() <= 0.5


def test_monotone_thresholds_keep_their_signs() -> None:
    X = normal(800, 3)
    y = X[:, 0] - X[:, 1] + 0.5 * normal(800, 1, 4)[:, 0]
    model = jr.boosting.fit(X, y, monotone={0: 1, 1: -1}, max_rules=10).model
    step = np.zeros((2, 3))
    for column, sign in ((0, 1), (1, -1)):
        grid = np.repeat(step[:1], 200, axis=0)
        grid[:, column] = np.linspace(-3, 3, 200)
        assert (sign * np.diff(jr.predict(model, grid)) >= -1e-12).all()


def test_forbidden_columns_have_no_threshold() -> None:
    X = normal(500, 3)
    model = jr.boosting.fit(X, X[:, 0] > 0, forbidden=[0]).model
    assert 0 not in model.conjunctions.feature


def test_noise_is_measured_on_some_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxrules.ensembles.boosting import fitting

    X = normal(3000, 3)
    y = X[:, 0] + normal(3000, 1, 5)[:, 0] > 0
    whole = jr.boosting.fit(X, y)
    monkeypatch.setattr(fitting, "_ROWS_OF_TRIAL", 1000)
    some = jr.boosting.fit(X, y)
    assert some.details["l2_penalty"] == pytest.approx(whole.details["l2_penalty"], rel=0.35)
    assert abs(some.objective - whole.objective) < 0.01
