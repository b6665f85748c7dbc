"""Comparisons against scikit-learn's cross-validation written out, and on data that
would show a dishonest choice.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import jaxrules as jr
from jaxrules.estimators import RuleBoostingClassifier
from jaxrules.users.comparison import (
    METHODS,
    Contestant,
    corrected_t_test,
    holm,
    signed_rank_test,
    size_of,
)
from jaxrules.users.comparison.methods import Method, MethodSample
from jaxrules.users.comparison.nested import Choice


class Says:
    """A model whose predictions are a function of X."""

    def __init__(self, predict: Callable[[Any], NDArray[Any]]) -> None:
        self.predict = predict


@pytest.fixture
def noise(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Row numbers, and labels that nothing predicts."""
    return np.arange(120.0)[:, None], rng.integers(0, 2, 120)


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    X = rng.normal(size=(90, 3))
    return X, (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=90) > 0).astype(int)


def trees(X: Any, y: Any, sample_weight: Any = None) -> dict[str, Any]:
    return {
        str(m): DecisionTreeClassifier(max_leaf_nodes=m, random_state=0).fit(X, y, sample_weight)
        for m in (2, 4, 8)
    }


def majority(X: Any, y: Any) -> Says:
    label = np.bincount(y).argmax()
    return Says(lambda X: np.full(len(X), label))


# The choice of a setting


def test_a_choice_among_many_bad_models_is_not_rewarded(
    noise: tuple[NDArray[Any], NDArray[Any]],
) -> None:
    X, y = noise

    def guesses(X: Any, y: Any) -> dict[str, Says]:
        # Equal for all samples: the best of them on the rows held out is far better than chance.
        draws = np.random.default_rng(1).integers(0, 2, (300, 120))
        return {
            str(k): Says(lambda X, draw=draw: draw[X[:, 0].astype(int)])
            for k, draw in enumerate(draws)
        }

    found = jr.compare(X, y, methods={"guesses": guesses})
    assert min(point.risk for point in found["guesses"].front) < 0.4
    (row,) = found.rows
    assert row.risk is not None
    assert row.risk > 0.42


def test_held_out_rows_are_never_fitted_nor_used_for_the_choice(
    noise: tuple[NDArray[Any], NDArray[Any]],
) -> None:
    X, y = noise
    seen: list[tuple[str, set[int]]] = []

    def spy(X: Any, y: Any) -> dict[str, Says]:
        seen.append(("fit", set(X[:, 0].astype(int).tolist())))

        def predict(X: Any) -> NDArray[Any]:
            seen.append(("ask", set(X[:, 0].astype(int).tolist())))
            return np.zeros(len(X), int)

        return {"a": Says(predict), "b": Says(predict)}

    found = jr.compare(X, y, methods={"spy": spy}, folds=3, inner_folds=2)
    calls = iter(seen)
    for fold in range(3):
        held = set(np.flatnonzero(found.folds[0] == fold).tolist())
        inside = [
            next(calls) for _ in range(1 + 2 * 3)
        ]  # on all training rows; per inner fold a fit and two questions
        assert [what for what, _ in inside] == ["fit", "fit", "ask", "ask", "fit", "ask", "ask"]
        assert inside[0][1] == set(range(120)) - held
        assert all(rows < inside[0][1] for _, rows in inside[1:])
        assert inside[1][1].isdisjoint(inside[2][1])
        assert [next(calls)[1] for _ in range(2)] == [held, held]
    assert next(calls, None) is None


def test_figures_are_those_of_nested_cross_validation(
    data: tuple[NDArray[Any], NDArray[Any]],
) -> None:
    X, y = data
    weights = np.where(np.arange(90) % 3, 1.0, 2.5)
    found = jr.compare(
        X, y, methods={"trees": trees}, folds=4, inner_folds=3, sample_weight=weights, seed=3
    )
    one = found["trees"]
    assert one.settings == ("2", "4", "8")
    for fold in range(4):
        train, test = np.flatnonzero(found.folds[0] != fold), np.flatnonzero(found.folds[0] == fold)
        fits = trees(X[train], y[train], weights[train])
        for s, tree in enumerate(fits.values()):
            risk = 1 - tree.score(X[test], y[test], weights[test])
            assert one.risks[fold, s] == pytest.approx(risk, abs=1e-12)
            assert one.complexities[fold, s] == 3 * tree.get_n_leaves() - 2
    chosen = one.risks[np.arange(4), one.chosen]
    (row,) = found.rows
    assert row.risk == pytest.approx(chosen.mean())
    assert row.standard_error == pytest.approx(chosen.std(ddof=1) / 2)
    np.testing.assert_allclose(found.fronts["trees"][:, 1], one.risks.mean(axis=0))
    shares = [np.bincount(y[found.folds[0] == fold])[1] for fold in range(4)]
    assert max(shares) - min(shares) <= 1


def test_choice_prefers_small_models_within_an_error_and_keeps_the_cap() -> None:
    risks = np.array([[0.30, 0.20, 0.19], [0.32, 0.22, 0.19], [0.31, 0.21, 0.22]])
    sizes = np.array([1.0, 4.0, 9.0])
    assert Choice(False, None)(risks, sizes) == 2
    assert Choice(True, None)(risks, sizes) == 1
    assert Choice(False, 5)(risks, sizes) == 1
    assert (
        Choice(False, None)(np.full((2, 3), 0.5), sizes[::-1]) == 2
    )  # of equal ones the least complex
    risks[1, 2] = np.nan
    assert Choice(False, None)(risks, sizes) == 1
    two_folds = np.array([[0.1, 0.12], [0.3, 0.31]])  # a standard error of 0.1
    assert Choice(True, None)(two_folds, np.array([5.0, 1.0])) == 1
    with pytest.raises(ValueError, match="max_complexity = 0"):
        Choice(False, 0)(risks, sizes)


def test_one_standard_error_is_that_of_the_mean_of_the_best() -> None:
    best = np.array([0.0, 0.2, 0.0, 0.2])  # standard error of the mean: 0.0577
    risks = np.column_stack([best, best + 0.056, best + 0.06])
    assert Choice(True, None)(risks, np.array([3.0, 2.0, 1.0])) == 1
    assert Choice(True, None)(risks, np.array([3.0, 3.0, 1.0])) == 0  # of equal sizes, the best
    spread = np.column_stack([[0.0, 0.0, 0.0, 0.1], best])  # standard error: 0.025
    assert Choice(True, None)(spread, np.array([2.0, 1.0])) == 0
    capped = np.column_stack([3 * best - 0.5, spread])  # the best is too complex
    assert Choice(True, 2.0)(capped, np.array([3.0, 2.0, 1.0])) == 1


def test_a_single_fold_has_no_standard_error() -> None:
    risks, sizes = np.array([[0.2, 0.1, 0.1]]), np.array([1.0, 3.0, 2.0])
    assert Choice(True, None)(risks, sizes) == 2


def test_a_setting_has_its_share_of_the_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, costs, shares = [0.0], itertools.cycle([1.0, 4.0, 2.5, 2.5]), []

    def slow(X: Any, y: Any, *, time_limit: float | None, **options: Any) -> None:
        shares.append(time_limit)
        now[0] += next(costs)

    monkeypatch.setattr(jr.Deadline.__init__, "__defaults__", (lambda: now[0],))
    monkeypatch.setattr(jr.ssrl, "fit", slow)
    path = partial(METHODS["ssrl"].path, None, np.zeros(2), target="two classes")
    assert len(path(time_limit=10.0)) == 4
    assert shares == [10 / 4, 9 / 3, 5 / 2, 2.5]
    assert list(path(time_limit=0.0)) == ["max_rules=1"]  # the first is always fitted
    assert len(path(time_limit=None)) == 4
    assert shares[5:] == [None] * 4


# The methods


@pytest.mark.parametrize("name", ["boosting", "linear", "cart", "gradient_boosting"])
def test_paths_of_the_library_and_baselines(
    name: str, data: tuple[NDArray[Any], NDArray[Any]]
) -> None:
    X, y = data
    found = jr.compare(X, y, methods=[name], folds=2, inner_folds=2, risk="brier")
    one = found[name]
    assert not one.failures
    assert len(one.front) > 2
    assert found.rows[0].risk is not None
    assert found.rows[0].risk < 0.25  # better than no model


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("target", ["two classes", "classes", "numbers"])
def test_every_method(name: str, target: str, rng: np.random.Generator) -> None:
    X = pd.DataFrame(
        {
            "a": rng.normal(size=150),
            "b": rng.normal(size=150),
            "c": rng.choice(["u", "v", "w"], 150),
        }
    )
    X.loc[::5, "b"] = np.nan
    score = X["a"] + (X["c"] == "u") + 0.1 * rng.normal(size=150)
    y = (
        score
        if target == "numbers"
        else np.digitize(score, [0.3] if target == "two classes" else [-0.3, 0.8])
    )
    options = {"methods": [name], "folds": 2, "inner_folds": 2, "missing": "own_category"}
    found = jr.compare(X, y, **options, sample_weight=np.ones(150))
    if target not in METHODS[name].targets:
        assert "does not learn" in found[name].notes
        return
    assert not found[name].failures
    row = found.rows[0]
    assert row.risk is not None
    assert row.risk < (np.var(score) if target == "numbers" else 0.4)
    assert row.complexity is not None
    assert jr.compare(X, y, **options, sample_weight=np.ones(150)).rows[0].risk == row.risk
    refitted = found.refit(name, X, y)
    assert size_of(refitted, "nonzeros") >= 0


def test_what_users_bring(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = data
    found = jr.compare(
        X, y, folds=2, inner_folds=2, seed=5,
        methods={
            "fit": partial(jr.boosting.fit, max_rules=1),
            "path": partial(jr.boosting.path, max_rules=2),
            "estimator": RuleBoostingClassifier(max_rules=2),
            "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
            "forest": RandomForestClassifier(3),
            "neighbours": KNeighborsClassifier(3),
            "renamed": "cart",
        },
    )  # fmt: skip
    assert not any(one.failures for one in found.contestants)
    assert found["path"].settings == ("1", "2")
    np.testing.assert_array_equal(found["path"].risks[:, 1], found["estimator"].risks[:, 0])
    np.testing.assert_array_equal(found["path"].risks[:, 0], found["fit"].risks[:, 0])
    assert found["pipeline"].complexities.tolist() == [[3.0], [3.0]]
    assert np.isnan(found["neighbours"].complexities).all()
    assert "neighbours" not in found.fronts
    assert "?" in repr(found)
    again = jr.compare(
        X, y, folds=2, inner_folds=2, seed=5, methods={"forest": RandomForestClassifier(3)}
    )
    np.testing.assert_array_equal(
        again["forest"].risks, found["forest"].risks
    )  # the seed went into random_state


def test_estimators_of_others_read_tables(rng: np.random.Generator) -> None:
    """As arrays, or with categories as dataframes; functions that fit them, too."""
    size = rng.normal(size=60)
    frame = pd.DataFrame({"size": size, "kind": np.where(size > 0, "b", "a")})
    encoded = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["kind"])), DecisionTreeClassifier()
    )

    def forest(X: Any, y: Any) -> Any:
        return RandomForestClassifier(3, random_state=0).fit(X, y)

    for X, brought in (
        (jr.as_table(frame[["size"]]), {"forest": RandomForestClassifier(3), "function": forest}),
        (jr.as_table(frame), {"pipeline": encoded}),
    ):
        found = jr.compare(X, size > 0, methods=brought, folds=2, inner_folds=2)
        assert [one.failures for one in found.contestants] == [{}] * len(brought)
        assert max(one.risk for one in found.rows) < 0.2


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_dataframes_with_text_and_labels_of_text(kind: Any, rng: np.random.Generator) -> None:
    job = rng.choice(["cook", "smith", "clerk"], 80)
    frame = kind({"job": job.tolist(), "age": rng.integers(20, 60, 80).tolist()})
    y = np.where(job == "cook", "yes", "no")
    seen = []

    def own(X: Any, y: Any) -> jr.Fit[Any]:
        seen.append(type(X))
        return jr.boosting.fit(X, y, max_rules=1)

    found = jr.compare(
        frame, y, methods={"own": own, "cart": "cart", "linear": "linear"}, folds=2, inner_folds=2
    )
    assert {row.risk for row in found.rows} == {0.0}
    assert set(seen) == {kind}


def test_numbers_and_missing_values(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 2))
    y = 3 * X[:, 0] + 0.1 * rng.normal(size=60)
    X[::7, 1] = np.nan
    found = jr.compare(
        X,
        y,
        missing="own_category",
        folds=3,
        inner_folds=2,
        methods={"linear": "linear", "tree": DecisionTreeRegressor()},
    )
    assert found.risk == "squared"
    assert found.rows[0].method == "linear"
    assert found.rows[0].risk is not None
    assert found.rows[0].risk < 0.1
    assert found.rows[1].difference is not None
    assert found.rows[1].difference > 0


def test_log_loss_and_brier_are_those_of_the_definitions(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(60, 1)), rng.integers(0, 3, 60)
    shares = np.array([[0.2, 0.5, 0.3]])

    def constant(X: Any, y: Any) -> Any:
        model = Says(lambda X: np.zeros(len(X), int))
        model.classes_, model.predict_proba = (
            np.array([2, 0, 1]),
            lambda X: np.repeat(shares, len(X), axis=0),
        )
        return model

    for risk, losses in (("log_loss", -np.log([0.5, 0.3, 0.2])), ("brier", [0.19, 0.39, 0.49])):
        found = jr.compare(X, y, methods={"constant": constant}, folds=2, inner_folds=2, risk=risk)
        for fold in range(2):
            expected = np.mean(np.asarray(losses)[y[found.folds[0] == fold]])
            assert found["constant"].risks[fold, 0] == pytest.approx(expected)


def test_rows_without_weight_are_absent(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = data
    weights = np.ones(90)
    weights[::9] = 0
    kept = weights > 0
    full = jr.compare(X, y, methods={"trees": trees}, folds=3, inner_folds=2, sample_weight=weights)
    part = jr.compare(X[kept], y[kept], methods={"trees": trees}, folds=3, inner_folds=2)
    np.testing.assert_array_equal(full.folds, part.folds)
    np.testing.assert_allclose(full["trees"].risks, part["trees"].risks)


def test_folds_of_ones_own(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = data
    found = jr.compare(X, y, methods=["cart"], folds=np.arange(90) // 30 + 7, inner_folds=2)
    np.testing.assert_array_equal(found.folds, (np.arange(90) // 30)[None])
    assert jr.compare(X, y, methods=["cart"], folds=2, repeats=3).folds.shape == (3, 90)


@pytest.mark.parametrize(
    ("model", "propositions", "nonzeros"),
    [
        (DecisionTreeClassifier(max_leaf_nodes=4), 7, 10),
        (make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=1)), 3, 4),
        (DecisionTreeClassifier(max_leaf_nodes=2, min_samples_split=1000), 0, 0),
        (LogisticRegression(), 3, 3),
        (LinearRegression(), 3, 3),
    ],
)
def test_sizes_of_models_of_scikit_learn(
    model: Any, propositions: int, nonzeros: int, data: tuple[NDArray[Any], NDArray[Any]]
) -> None:
    fitted = model.fit(*data)
    assert (size_of(fitted, "propositions"), size_of(fitted, "nonzeros")) == (
        propositions,
        nonzeros,
    )


# Limits, failures, workers


def test_failures_are_lines_of_the_table(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    X, y = data
    calls = iter(range(1000))

    def once(X: Any, y: Any) -> Any:
        if next(calls) == 1:
            raise RuntimeError("not\ntoday")
        return majority(X, y)

    def strange(X: Any, y: Any) -> Any:
        return Says(lambda X: np.zeros((len(X), 2)))

    methods = {"once": once, "strange": strange, "never": lambda X, y: 1 / 0, "cart": "cart"}
    found = jr.compare(X, y, methods=methods, folds=3, inner_folds=2)
    assert found["once"].failures == {1: "RuntimeError: not today"}
    assert found["once"].done.tolist() == [True, False, True]
    assert [row.method for row in found.rows] == ["cart", "once", "strange", "never"]
    assert [row.folds for row in found.rows] == [3, 2, 0, 0]
    assert "failed in 3 folds: ZeroDivisionError" in repr(found)
    assert "predictions have shape" in found["strange"].notes
    assert found.status == "converged"
    assert "not today" in found._repr_html_()
    weighted = jr.compare(X, y, methods={"majority": majority}, sample_weight=np.ones(90))
    assert "does not take sample_weight" in weighted["majority"].notes


def test_warnings_are_told_in_the_table(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    import warnings

    def careless(X: Any, y: Any) -> Says:
        warnings.warn("mind the gap", stacklevel=1)
        return majority(X, y)

    assert (
        jr.compare(*data, methods={"careless": careless}, folds=2)["careless"].notes
        == "warned: mind the gap"
    )


def test_a_path_that_the_time_cuts_short_has_the_settings_it_reached(
    data: tuple[NDArray[Any], NDArray[Any]],
) -> None:
    X, y = data
    found = METHODS["lire"].path(
        jr.as_table(X), y, target="two classes", missing="refuse", time_limit=0.0
    )
    assert list(found) == ["global_penalty=0.1 constant_loss"]


def test_the_time_limit_ends_it_between_fits(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    now, shares = [0.0], []

    def slow(X: Any, y: Any, time_limit: float) -> Says:
        shares.append(time_limit)
        now[0] += 1.0
        return majority(X, y)

    found = jr.compare(
        *data, methods={"slow": slow}, folds=5, time_limit=jr.Deadline(2.5, lambda: now[0])
    )
    assert len(shares) == 3
    assert found["slow"].done.tolist() == [True, True, True, False, False]
    assert found["slow"].notes == "no time for 2 folds"
    assert found.status == "time_limit"
    assert "time limit" in repr(found)
    none = jr.compare(*data, methods={"slow": slow}, time_limit=0)
    assert none.rows[0].risk is None
    assert none.fronts == {}
    assert shares[3:] == []


def test_methods_that_the_limit_cuts_are_tried_again_and_not_ranked(
    data: tuple[NDArray[Any], NDArray[Any]],
) -> None:
    """`hungry` is whole with all that the others leave, `starving` never."""
    calls: dict[str, list[float]] = {"hungry": [], "starving": []}

    def method(name: str, needs: float) -> Any:
        def path(X: Any, y: Any, time_limit: float) -> Any:
            calls[name].append(time_limit)
            fit = jr.boosting.fit(X, y, max_rules=1)
            cut = time_limit < needs
            return dataclasses.replace(fit, status=jr.Status.TIME_LIMIT) if cut else fit

        return path

    limits = {"hungry": 2500.0, "starving": 1e9}
    methods: dict[str, Any] = {name: method(name, needs) for name, needs in limits.items()}
    found = jr.compare(
        *data, methods=methods | {"m": majority}, folds=3, inner_folds=2, time_limit=7200
    )
    # Its first share is a half of 7200 s, of which the path gets a half; then it gets all.
    assert calls["hungry"][0] == pytest.approx(1800, rel=0.1)
    assert calls["hungry"][1] == pytest.approx(3600, rel=0.1)
    assert len(calls["starving"]) == 2
    assert found["hungry"].done.any()
    assert not found["starving"].done.any()
    assert found["starving"].notes.startswith("no time for 2 folds; the time limit ended fits in 1")
    assert found.rows[-1].method == "starving"
    assert found.rows[-1].risk is None
    assert found.status == "time_limit"
    # A limit of the user's own is part of the method.
    own = jr.compare(*data, methods={"own": lambda X, y: method("hungry", 1e9)(X, y, 1.0)}, folds=2)
    assert own["own"].done.all()
    assert own["own"].cut == 2


def test_a_fold_that_would_not_end_in_time_is_not_begun(
    data: tuple[NDArray[Any], NDArray[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace

    from jaxrules.users.comparison import nested

    now, order = [0.0], []

    def lasting(name: str, seconds: float) -> Any:
        def path(X: Any, y: Any) -> Says:
            order.append(name)
            now[0] += seconds
            return majority(X, y)

        return path

    monkeypatch.setattr(nested, "time", SimpleNamespace(monotonic=lambda: now[0]))
    methods = {"slow": lasting("slow", 3.0), "quick": lasting("quick", 0.1)}
    found = jr.compare(
        *data, methods=methods, folds=5, time_limit=jr.Deadline(11.0, lambda: now[0])
    )
    assert order[:2] == ["slow", "quick"]  # of unknown methods the first comes first
    assert order[2:4] == ["quick", "slow"]
    assert found["quick"].done.all()
    assert found["slow"].done.tolist() == [True, True, True, False, False]
    assert found["slow"].notes == "no time for 2 folds"
    assert now[0] < 11.0


def test_the_ranking_is_by_common_folds() -> None:
    def contestant(method: str, risks: list[float]) -> Any:
        n = len(risks)
        return Contestant(
            method, ("",), np.array(risks)[:, None], np.ones((n, 1)),
            np.where(np.isnan(risks), -1, 0), np.array(risks), 0, {}, (),
        )  # fmt: skip

    nan = float("nan")
    one, two = contestant("all", [0.5, 0.1, 0.1]), contestant("first", [0.4, nan, nan])
    design: Any = None
    found = jr.Comparison(
        (one, two), "error", "nonzeros", np.array([[0, 1, 2]]), design, jr.Status.TIME_LIMIT, 1.0
    )
    assert [row.method for row in found.rows] == ["first", "all"]


def test_ctrl_c_keeps_what_is_finished(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    calls = iter(range(10))

    def pressed(X: Any, y: Any) -> Says:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return majority(X, y)

    found = jr.compare(*data, methods={"pressed": pressed})
    assert found.status == "interrupted"
    assert found["pressed"].done.tolist() == [True, True, False, False, False]


def test_workers_give_the_same_figures(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    reports: list[jr.Progress] = []
    options = {
        "methods": {"cart": "cart", "never": lambda X, y: 1 / 0},
        "folds": 2,
        "inner_folds": 2,
    }
    alone = jr.compare(*data, **options)
    together = jr.compare(*data, **options, n_jobs=2, progress=reports.append)
    np.testing.assert_array_equal(alone["cart"].risks, together["cart"].risks)
    np.testing.assert_array_equal(alone["cart"].chosen, together["cart"].chosen)
    assert together["never"].failures == alone["never"].failures
    assert [(report.done, report.total) for report in reports] == [(k, 4) for k in range(1, 5)]
    left = [report.left for report in reports]
    assert left[-1] == 0
    assert all(seconds is not None and seconds >= 0 for seconds in left)


def test_refit_takes_the_setting_that_all_folds_choose(
    data: tuple[NDArray[Any], NDArray[Any]],
) -> None:
    found = jr.compare(
        *data,
        methods={"trees": trees, "boosting": "boosting"},
        folds=3,
        inner_folds=2,
        max_complexity=10,
    )
    best = int(found["trees"].risks[:, :2].mean(axis=0).argmin())  # the third has more than ten
    assert found.refit("trees", *data).max_leaf_nodes == (2, 4)[best]
    fit = found.refit("boosting", *data)
    assert isinstance(fit, jr.Fit)
    assert jr.complexity(fit.model, "nonzeros") <= 10
    with pytest.raises(KeyError, match="was not compared"):
        found.refit("lire", *data)


# What is told


def test_dataframes_and_picture(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    found = jr.compare(*data, methods=["cart", "linear"], folds=3, inner_folds=2)
    assert list(found.to_dataframe()["method"]) == [row.method for row in found.rows]
    assert found.to_dataframe("settings", "polars").shape == (
        sum(len(one.front) for one in found.contestants),
        5,
    )
    models = found.to_dataframe("folds")
    assert models["chosen"].sum() == 6
    with pytest.raises(ValueError, match="rows must be"):
        found.to_dataframe("rows")
    ax = jr.plots.risk_complexity(found)
    assert ax.get_ylabel() == "share of wrong labels"
    rings = [
        c.get_offsets()[0].tolist()
        for c in ax.collections
        if getattr(c, "get_sizes", list)() == [70] and len(c.get_offsets())
    ]
    assert sorted(rings) == sorted([row.complexity, row.risk] for row in found.rows)
    plt.close("all")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": []}, "methods is empty"),
        ({"methods": "cart"}, "methods must be a list"),
        ({"methods": ["nothing"]}, "use one of boosting"),
        ({"methods": ["cart", "cart"]}, "duplicate name"),
        ({"methods": {"a": 1}}, r"methods\['a'\] must be"),
        ({"methods": {"a": DecisionTreeClassifier}}, r"methods\['a'\] must be"),
        ({"folds": 1}, "folds must be at least 2"),
        ({"folds": 91}, "folds is 91, but X has 90 rows"),
        ({"folds": [0, 1]}, "the fold of each of the 90 rows"),
        ({"folds": np.zeros(90, int)}, "at least two distinct values"),
        ({"folds": np.arange(90) % 2, "repeats": 2}, "repeats must be 1"),
        ({"inner_folds": 1}, "inner_folds must be at least 2"),
        ({"inner_folds": 40}, "too few rows for 40 inner_folds"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"risk": "accuracy"}, "risk must be"),
        ({"measure": "rules"}, "measure must be"),
        ({"max_complexity": -1}, "max_complexity must be"),
        ({"one_standard_error": 1}, "one_standard_error must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"seed": -1}, "seed must be"),
        ({"time_limit": -1}, "time_limit must be"),
        ({"progress": 3}, "progress must be"),
        ({"missing": "drop"}, "missing must be"),
        ({"sample_weight": np.ones(3)}, "sample_weight"),
        ({"X": np.full((90, 1), np.nan)}, "no values"),
        ({"y": np.zeros(90, int)}, "only one class"),
        ({"y": np.r_[np.zeros(88, int), 1, 2]}, "fewer than two training rows"),
        ({"y": np.zeros(89, int)}, "y has"),
    ],
)  # fmt: skip
def test_bad_input_is_named(
    change: dict[str, Any], message: str, data: tuple[NDArray[Any], NDArray[Any]]
) -> None:
    X, y = data
    with pytest.raises((TypeError, ValueError), match=message):
        jr.compare(**{"X": X, "y": y, "methods": ["cart"], **change})


# Paired tests


numbers = st.lists(st.floats(-1, 1).map(lambda x: round(x, 6)), min_size=2, max_size=12)


@settings(max_examples=60)
@given(numbers, st.floats(0.01, 0.9))
def test_corrected_t_test_is_a_t_test_with_a_larger_variance(
    differences: list[float], held_out: float
) -> None:
    n, test = len(differences), corrected_t_test(differences, held_out=held_out)
    assert 0 <= test.p_value <= 1
    assert corrected_t_test([-d for d in differences], held_out=held_out).p_value == pytest.approx(
        test.p_value
    )
    if np.std(differences) > 1e-9:
        plain = stats.ttest_1samp(differences, 0.0)
        ratio = (1 / n / (1 / n + held_out / (1 - held_out))) ** 0.5
        assert test.statistic == pytest.approx(plain.statistic * ratio, abs=1e-9)
        assert test.p_value >= plain.pvalue - 1e-12
    elif not any(differences):
        assert test.p_value == 1


def test_the_test_has_about_the_right_size() -> None:
    """Two equal learners, the mean of a sample, over five folds: false alarms near the
    level, which s^2 / k exceeds.
    """
    random, alarms = np.random.default_rng(0), []
    for _ in range(400):
        y, guess = (
            random.normal(size=50),
            random.normal(size=(50, 2)),
        )  # equally informative columns: y is independent
        fold = random.permutation(50) % 5
        slopes = [
            [
                (guess[fold != k, j] @ y[fold != k]) / (guess[fold != k, j] @ guess[fold != k, j])
                for k in range(5)
            ]
            for j in range(2)
        ]
        risks = [
            [np.mean((y - slopes[j][k] * guess[:, j])[fold == k] ** 2) for k in range(5)]
            for j in range(2)
        ]
        alarms.append(corrected_t_test(np.subtract(*risks), held_out=0.2).p_value < 0.1)
    assert np.mean(alarms) < 0.13


def test_paired_tests_of_a_comparison(data: tuple[NDArray[Any], NDArray[Any]]) -> None:
    found = jr.compare(
        *data, methods={"trees": trees, "majority": majority, "never": lambda X, y: 1 / 0}
    )
    test = found.paired_test("trees", "majority")
    differences = found["trees"].chosen_risks - found["majority"].chosen_risks
    assert test == corrected_t_test(differences, held_out=0.2)
    assert found.rows[1].difference == pytest.approx(-test.difference)
    assert found.rows[1].p_value == pytest.approx(test.p_value)  # one test alone
    ranks = found.signed_rank_test("trees", "majority", alternative="less")
    assert ranks == signed_rank_test(differences, alternative="less")
    assert found.rows[1].rank_p_value == signed_rank_test(differences).p_value
    assert "rank p" in str(found)
    with pytest.raises(ValueError, match="no fold in common"):
        found.signed_rank_test("trees", "never")
    with pytest.raises(ValueError, match="fewer than two folds in common"):
        found.paired_test("trees", "never")
    with pytest.raises(KeyError, match="was not compared"):
        found.paired_test("trees", "lire")


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.001, 0.999))
def test_holm_rejects_what_the_procedure_rejects(p_values: list[float], alpha: float) -> None:
    def rejected() -> Iterator[int]:
        for step, test in enumerate(np.argsort(p_values, kind="stable").tolist()):
            if p_values[test] * (len(p_values) - step) > alpha:
                return
            yield test

    assert {test for test, p in enumerate(holm(p_values)) if p <= alpha} == set(rejected())


def test_the_size_of_models_of_imodels_and_interpret() -> None:
    """By their public attributes, on stand-ins: neither package is needed here."""
    from types import SimpleNamespace as Model

    from jaxrules.users.comparison.methods import size_of

    listed = Model(rules_=["x > 1 and y <= 2", "x > 3"])
    assert size_of(listed, "propositions") == 2 + 3
    assert size_of(listed, "nonzeros") == 2 + 6
    linear = Model(rules_=["x > 1 and y <= 2", "x > 3"], coef=[0.5, 0.0, 1.0, 0.0])
    assert size_of(linear, "propositions") == 1 + 1 + 2
    assert size_of(Model(rules_=[{"col": "x", "cutoff": 1.5}]), "propositions") == 2
    leaf = Model(left=None, right=None)
    figs = Model(trees_=[Model(left=leaf, right=Model(left=leaf, right=leaf))])
    assert size_of(figs, "propositions") == 3 + 2
    steps = np.array([0.0, 1.0, 1.0, 2.0, 2.0, 0.0])  # missing, four bins, unknown
    pair = np.zeros((4, 4))
    pair[1, 2] = pair[3, 3] = 0.5
    assert size_of(Model(term_scores_=[steps, pair]), "propositions") == 2 + 3
    assert size_of(Model(estimator_=figs), "propositions") == 5
    assert size_of(Model(estimators_=[figs, figs]), "propositions") == 10
    assert np.isnan(size_of(Model(), "propositions"))


def test_a_comparison_as_latex() -> None:
    X = np.arange(24.0)[:, None] % 5
    methods = {"a_1": lambda X, y: jr.boosting.fit(X, y, max_rules=1)}
    found = jr.compare(X, X[:, 0] > 2, methods=methods, folds=2, inner_folds=2)
    text = found.to_latex()
    assert text.startswith(r"\begin{tabular}{l")
    assert r"a\_1" in text
    assert text.count(r"\\") == 2


def test_records_are_compared_as_their_table_is() -> None:
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=60).tolist(), "job": rng.choice(["cook", "smith"], 60).tolist()}
    y = np.where(np.array(X["a"]) > 0, "yes", "no")
    one, other = (
        jr.compare(data, y, methods=["boosting"], folds=2, inner_folds=2).rows[0].risk
        for data in (X, jr.as_table(X))
    )
    assert one == other


def test_paths_on_a_fold_in_which_a_column_is_constant(rng: np.random.Generator) -> None:
    X = {"x": rng.normal(size=40), "flag": np.arange(40) == 0, "kind": ["a"] * 39 + ["b"]}
    done = jr.compare(X, 2 * X["x"] + rng.normal(size=40), methods=["paths"], folds=3)
    assert "failed" not in str(done)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_signed_rank_test_is_exact(seed, alternative):
    """By all signs, with ties and zeros; by SciPy without."""
    from scipy import stats

    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    tied = rng.integers(-3, 4, n).astype(float)
    given = tied[tied != 0]
    ranks = stats.rankdata(np.abs(given))
    sums = [
        float(ranks[np.array(signs, bool)].sum())
        for signs in itertools.product([0, 1], repeat=len(given))
    ]
    found = signed_rank_test(tied, alternative=alternative)
    observed = float(ranks[given > 0].sum())
    less, greater = (np.mean(np.array(sums) <= observed), np.mean(np.array(sums) >= observed))
    tails = {"less": less, "greater": greater, "two-sided": min(1.0, 2 * min(less, greater))}
    assert (found.rank_sum, found.folds) == (observed, len(given))
    assert found.p_value == pytest.approx(tails[alternative])
    apart = rng.normal(size=12) + 0.3
    expected = stats.wilcoxon(apart, alternative=alternative, method="exact").pvalue
    assert signed_rank_test(apart, alternative=alternative).p_value == pytest.approx(expected)


def test_what_cannot_be_ranked_is_refused():
    with pytest.raises(ValueError, match="at most 1000 numbers, got 1001"):
        signed_rank_test(np.ones(1001))
    with pytest.raises(ValueError, match="differences must be a non-empty"):
        signed_rank_test([])
    with pytest.raises(ValueError, match="alternative"):
        signed_rank_test([1.0], alternative="smaller")
    with pytest.raises(ValueError, match="differences"):
        signed_rank_test([1.0, np.nan])


def test_options_of_inner_paths_are_for_inner_paths_alone() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    asked: list[int | None] = []

    def path(X: Any, y: Any, restarts: int | None = None) -> dict[str, Any]:
        asked.append(restarts)
        return {str(k): jr.boosting.fit(X, y, max_rules=k) for k in (1, 2)}

    method = Method(path, inside={"restarts": 0})
    sample = MethodSample.of(X, X[:, 0], None, None, classes=False)
    for inside in (False, True):
        method.fits(sample, 0, None, inside)
    assert asked == [None, 0]
    assert METHODS["lire"].inside == {"restarts": 0}
