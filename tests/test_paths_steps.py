"""`jaxrules.paths.path` and `cross_validate`: the number of steps, and the options of paths."""

import itertools
import json
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import jaxrules as jr
from jaxrules import paths
from jaxrules.learning.cross_validation import CrossValidation, folds
from jaxrules.learning.training import training_data
from jaxrules.losses import logistic, squared
from jaxrules.tools.runs import Deadline

N = 60


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Two numbers, one of them missing in a single row, and a category with a single row."""
    frame = pd.DataFrame(
        {
            "a": rng.normal(5, 2, N),
            "kind": ["rare", *rng.choice(["x", "y"], N - 1)],
            "b": rng.normal(10, 3, N),
        }
    )
    y = frame["a"] + 2.0 * (frame["kind"] == "y") - 0.5 * frame["b"] + rng.normal(size=N)
    frame.loc[1, "b"] = np.nan
    return frame, y.fillna(0.0).to_numpy()


def same(one: Any, other: Any) -> bool:
    ours, theirs = jax.tree.flatten(one), jax.tree.flatten(other)
    return ours[1] == theirs[1] and all(map(np.array_equal, ours[0], theirs[0]))


def table_of(fit: jr.Fit[Any]) -> CrossValidation:
    found = fit.details["cross_validation"]
    assert isinstance(found, CrossValidation)
    return found


# One path for every number of steps


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"step_weights": [0.5, 0.3, 0.2], "standardise": True, "l2_penalty": 0.1},
        {"method": "local", "restarts": 3, "seed": 1},
        {"integer_steps": "unit", "upper": 2.0},
        {"cost": "logistic", "standardise": True},
    ],
    ids=str,
)
def test_a_path_is_the_fits_of_every_number_of_steps(
    options: dict[str, Any], rng: np.random.Generator
) -> None:
    X = rng.normal(size=(N, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=N)
    y = y > 0 if "cost" in options else y
    weights = rng.random(N)
    found = paths.path(X, y, weights, steps=3, **options)
    assert [len(fit.model) for fit in found] == [1, 2, 3]
    for steps, fit in enumerate(found, start=1):
        alpha = options.get("step_weights", [1.0] * 3)[:steps]
        alone = paths.fit(
            X, y, sample_weight=weights, **{**options, "steps": steps, "step_weights": alpha}
        )
        ours, theirs = dict(fit.model.options), dict(alone.model.options)
        if "step_weights" not in options:
            ours.pop("step_weights"), theirs.pop("step_weights")
        assert ours == theirs
        np.testing.assert_array_equal(fit.model.models, alone.model.models)
        assert (fit.objective, fit.bound, fit.status) == (
            alone.objective,
            alone.bound,
            alone.status,
        )
        assert dict(fit.details) == dict(alone.details)


def test_a_path_to_an_end_starts_with_the_fewest_steps(rng: np.random.Generator) -> None:
    X = rng.normal(size=(N, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=N)
    found = paths.path(X, y, steps=4, end=[1.0, -1.0, 0.0])
    assert [len(fit.model) for fit in found] == [2, 3, 4]
    assert all((fit.model.models[-1] == [1.0, -1.0, 0.0]).all() for fit in found)
    losses = paths.interpretability(X, y, [1.0, -1.0, 0.0], max_steps=4).details.losses
    assert 2 in losses
    for steps, loss in losses.items():
        assert found[steps - 2].objective == pytest.approx(loss)
    integers = paths.path(X, y, steps=4, end=[2.0, -1.0, 0.0], integer_steps="unit")
    assert [len(fit.model) for fit in integers] == [3, 4]


def test_a_path_without_time_has_its_first_fit(data: Any) -> None:
    X, y = data
    found = paths.path(
        X, y, steps=4, missing="own_category", time_limit=Deadline(0.0, clock=lambda: 0.0)
    )
    assert [len(fit.model) for fit in found] == [1]
    assert found[0].status == "time_limit"


@pytest.mark.parametrize("learner", [paths.path, paths.cross_validate])
def test_shorter_paths_need_positive_step_weights(learner: Any, data: Any) -> None:
    X, y = data
    options = {"steps": 3, "missing": "own_category"}
    with pytest.raises(ValueError, match="step_weights must all be positive: shorter paths"):
        learner(X, y, step_weights=[1.0, 0.0, 1.0], **options)
    with pytest.raises(ValueError, match="step_weights must have 3 values"):
        learner(X, y, step_weights=[1.0, 1.0], **options)
    with pytest.raises(ValueError, match="cannot be combined with lower or upper"):
        learner(X, y, method="local", lower=-1.0, **options)


# Cross-validation


@pytest.mark.parametrize("cost", ["squared", "logistic"])
def test_risks_are_those_of_plain_fits(cost: Any, rng: np.random.Generator) -> None:
    X = rng.normal(size=(N, 4))
    y: Any = X @ [2.0, -1.0, 0.0, 0.0] + rng.normal(size=N)
    if cost == "logistic":
        y = np.where(y > 0, "yes", "no")
    weights = rng.integers(0, 3, N).astype(float)
    options: dict[str, Any] = {"standardise": True, "method": "local", "restarts": 2}
    fit = paths.cross_validate(X, y, weights, steps=3, n_folds=3, seed=5, **options)
    found = table_of(fit)
    assert [dict(setting) for setting in found.settings] == [{"steps": k} for k in (1, 2, 3)]
    np.testing.assert_array_equal(found.sizes, np.tile([1.0, 2.0, 3.0], (3, 1)))
    rows = np.flatnonzero(weights)
    loss = logistic if cost == "logistic" else squared
    fold_of = folds(training_data(X, y, loss, sample_weight=weights), 3, 5)
    for k, steps in itertools.product(range(3), (1, 2, 3)):
        inside, outside = rows[fold_of != k], rows[fold_of == k]
        model = paths.fit(
            X[inside], y[inside], weights[inside], steps=steps, seed=5, **options
        ).model
        scores = jr.decision_function(model, X[outside])
        losses = (
            np.logaddexp(0, -np.where(y[outside] == "yes", 1, -1) * scores)
            if cost == "logistic"
            else (y[outside] - scores) ** 2
        )
        expected = np.average(losses, weights=weights[outside])
        assert found.risks[k, steps - 1] == pytest.approx(expected, rel=1e-6)
    chosen = found.setting["steps"]
    alone = paths.fit(X, y, weights, steps=int(chosen), seed=5, **options)
    assert same(fit.model, alone.model)
    assert (fit.objective, fit.status) == (alone.objective, alone.status)
    assert fit.details.nodes == alone.details.nodes


def test_one_standard_error_chooses_fewer_steps(rng: np.random.Generator) -> None:
    X = rng.normal(size=(N, 5))
    y = X @ [2.0, -1.0, 0.1, 0.0, 0.0] + rng.normal(size=N)
    few, best = (
        paths.cross_validate(X, y, steps=6, one_standard_error=rule) for rule in (True, False)
    )
    np.testing.assert_array_equal(table_of(few).risks, table_of(best).risks)
    assert table_of(best).chosen == table_of(best).risk.argmin()
    assert len(few.model) == 2
    assert len(few.model) <= len(best.model)
    assert str(table_of(few)).splitlines()[0].split() == ["steps", "risk", "s.e.", "steps"]


@pytest.mark.parametrize("standardise", [False, True])
def test_folds_without_a_category_or_a_missing_value(data: Any, standardise: bool) -> None:
    """The columns are those of all rows; one that is constant in a fold does not change there."""
    X, y = data
    fit = paths.cross_validate(
        X, y, steps=3, n_folds=4, missing="own_category", standardise=standardise
    )
    assert np.isfinite(table_of(fit).risks).all()
    assert fit.model.names == ("a", "kind=rare", "kind=x", "kind=y", "b", "b is missing")


def test_cross_validation_keeps_side_conditions(data: Any) -> None:
    X, y = data
    fit = paths.cross_validate(
        X, y, steps=3, n_folds=3, missing="own_category", lower=0.0, forbidden=["kind"],
        start={"a": 0.5}, step_weights=[3.0, 2.0, 1.0],
    )  # fmt: skip
    steps = len(fit.model)
    assert not fit.model.models[:, 1:4].any()
    assert fit.model.models.min() >= -1e-12
    np.testing.assert_array_equal(fit.model.step_weights, [3.0, 2.0, 1.0][:steps])
    assert dict(fit.model.options)["steps"] == steps


def test_without_time_nothing_is_measured(data: Any) -> None:
    X, y = data
    fit = paths.cross_validate(
        X, y, steps=3, missing="own_category", time_limit=Deadline(0.0, clock=lambda: 0.0)
    )
    assert fit.status == "time_limit"
    assert np.isnan(table_of(fit).risks).all()
    assert len(fit.model) == 3


def test_progress_has_two_parts(data: Any) -> None:
    X, y = data
    seen: list[jr.Progress] = []
    paths.cross_validate(X, y, steps=2, n_folds=2, missing="own_category", progress=seen.append)
    assert [p.done for p in seen if p.task == "paths cross-validation"] == [1, 2, 3, 4]
    assert {p.task for p in seen} == {"paths cross-validation", "paths"}


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"n_folds": 1}, ValueError, "n_folds must be at least 2"),
        ({"n_folds": 999}, ValueError, "n_folds must be at most 60"),
        ({"one_standard_error": 1}, TypeError, "one_standard_error must be True or False"),
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"end": [1.0]}, TypeError, "unexpected keyword argument 'end'"),
        ({"method": "magic"}, ValueError, "method must be"),
        ({"forbidden": ["zzz"]}, ValueError, "forbidden names 'zzz'"),
        ({"missing": "refuse"}, ValueError, "missing"),
        ({"y": ["p", "q", "r"] * 20, "cost": "logistic"}, ValueError, "y "),
        ({"y": ["p"] + ["q"] * 59}, ValueError, "only one row of class"),
    ],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], match: str, data: Any) -> None:
    X, y = data
    options = {"y": y, "steps": 2, "missing": "own_category"} | change
    with pytest.raises(error, match=match):
        paths.cross_validate(X, **options)


# Options


def test_options_are_written_once(data: Any) -> None:
    X, y = data
    options = paths.Options(steps=2, missing="own_category", start={"a": 0.5})
    fit = paths.fit.with_options(X, y, None, options)
    assert same(fit.model, paths.fit(X, y, steps=2, missing="own_category", start={"a": 0.5}).model)
    kept = dict(fit.model.options)
    assert kept["cost"] == "squared"
    assert kept["start"] == (("a", 0.5),)
    assert json.loads(json.dumps(fit.model.options))
    assert hash(fit.model.options)


def test_the_model_to_explain_is_given_by_position_or_name(rng: np.random.Generator) -> None:
    X = rng.normal(size=(N, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=N)
    weights = rng.random(N)
    one = paths.interpretability(X, y, [1.0, -1.0], weights, max_steps=3)
    other = paths.interpretability(
        X, y=y, model={"x0": 1.0, "x1": -1.0}, sample_weight=weights, max_steps=3
    )
    assert same(one.model, other.model)
    assert dict(one.details) == dict(other.details)
    with pytest.raises(TypeError, match="missing a required argument: 'model'"):
        paths.interpretability(X, y)
    with pytest.raises(TypeError, match="did you mean 'max_steps'"):
        paths.interpretability(X, y, [1.0, -1.0], steps=3)


def test_details_are_attributes_and_keys(rng: np.random.Generator) -> None:
    X = rng.normal(size=(N, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=N)
    details = paths.fit(X, y, steps=2).details
    assert isinstance(details, paths.PathDetails)
    assert details.nodes == details["nodes"] > 0
