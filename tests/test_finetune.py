"""Fine-tuning: the soft ensemble against the hard one, the guard, what stays fixed,
what it finds, bad input.
"""

import inspect
import re
import signal
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

import jaxrules as jr
from compiling import compilations
from jaxrules.ensembles.finetune import FinetuneOptions, _Candidate, _FinetuneObjective, _Tuning
from jaxrules.learning.training import training_data
from jaxrules.losses import logistic, squared
from jaxrules.models.metrics import loss_of
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.linear.refit import refit_weights
from jaxrules.tools.float64 import in_x64
from jaxrules.tools.runs import Run

Floats = NDArray[np.float64]
c = jr.Condition
OPTIONS = FinetuneOptions(guard=False, iterations=50, batch_size=None)


def table(seed: int = 0, n: int = 96) -> tuple[pd.DataFrame, Floats]:
    """Numbers, one of them with missing values, and a category."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(np.round(rng.normal(size=(n, 3)), 1), columns=["a", "b", "c"])
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    X["kind"] = rng.choice(["x", "y", "z"], n)
    y = (
        2.0 * ((X["a"] > 0.2) & (X["kind"] != "x"))
        - (X["c"] + X["a"] > 0.4)
        + 0.2 * rng.normal(size=n)
    )
    return X, y.to_numpy()


SLANT = jr.Direction((0, 2, 3), (1.0, -0.5, 0.3), (-1, -1, 1), (0.5, 0.0, 0.0))
RULES = [
    [c.above(0, 0.0), c.at_most(0, 1.0)],
    [c.at_least(1, -0.3, missing=True), c.one_of(3, [0, 2])],
    [c.is_missing(1, numeric=True)],
    [c.at_least(SLANT, -0.2), c.below(SLANT, 0.9), c.below(2, 0.5)],
    [c.none_of(3, [1], 3), c.below(jr.Direction((0, 1), (0.7, 2.0)), 0.1)],
    [],
]


def ensemble(
    X: Any,
    outputs: int = 1,
    link: Any = "identity",
    classes: Any = None,
    linear: bool = False,
    seed: int = 0,
) -> jr.RuleEnsemble:
    """Random weights for `RULES`."""
    rng = np.random.default_rng(seed)
    schema = jr.as_table(X, missing="own_category").schema.with_classes(classes)
    ends = np.array([1.0, 2.0])
    terms = (
        jr.LinearTerms(np.array([0, 1], np.int32), rng.normal(size=(2, outputs)), -ends, ends)
        if linear
        else None
    )
    weights, intercept = rng.normal(size=(len(RULES), outputs)), rng.normal(size=outputs)
    model = jr.RuleEnsemble(jr.Conjunctions.build(schema, RULES), weights, intercept, terms, link)
    model.validate()
    return model


KINDS = {
    "numbers": {},
    "linear": {"linear": True},
    "labels": {"link": "logistic", "classes": ("no", "yes")},
    "one against the rest": {
        "link": "logistic",
        "classes": ("p", "q", "r"),
        "outputs": 3,
        "linear": True,
    },
    "softmax": {"link": "softmax", "classes": ("p", "q", "r"), "outputs": 3},
    "counts": {"link": "log"},
}


def target(kind: str, y: Floats) -> NDArray[Any]:
    if kind in ("numbers", "linear"):
        return y
    if kind == "counts":
        return np.round(np.exp(y))
    names = KINDS[kind]["classes"]
    return np.array(names)[np.digitize(y, np.quantile(y, np.linspace(0, 1, len(names) + 1)[1:-1]))]


# The soft ensemble


@pytest.mark.parametrize("kind", KINDS)
def test_the_soft_ensemble_begins_as_the_model(kind: str) -> None:
    X, y = table()
    model = ensemble(X, **KINDS[kind])
    data = training_data(X, target(kind, y), loss_of(model), missing="own_category")
    tuning = _Tuning(model, data, Constraints(), OPTIONS, Run("finetune"))
    lanes, rows, fixed = tuning.arrays(data.weights / data.weights.sum())
    value = in_x64(_FinetuneObjective(tuning.loss))(lanes, rows, fixed, 0)
    assert float(value[0]) * tuning.scale**2 == pytest.approx(
        jr.risk(model, X, target(kind, y)), rel=1e-9
    )
    soft = jax.tree.map(lambda array: array[0], lanes)
    conditions, held = tuning.hardened(soft)
    assert conditions == [list(rule) for rule in model.conjunctions]
    np.testing.assert_array_equal(held.T, model.conjunctions.satisfied(data.table))


def test_the_gradient_by_hand() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    schema = jr.as_table(X).schema
    direction = jr.Direction((0, 1), (0.6, 0.8))
    rules = jr.Conjunctions.build(schema, [[c.at_least(direction, 0.1), c.at_most(1, 0.5)]])
    model = jr.RuleEnsemble(rules, np.array([[2.0]]), np.array([0.5]))
    data = training_data(X, y, squared)
    tuning = _Tuning(model, data, Constraints(), OPTIONS, Run("finetune"))
    lanes, rows, fixed = tuning.arrays(data.weights / data.weights.sum())
    slopes = in_x64(jax.grad(lambda lanes: _FinetuneObjective(squared)(lanes, rows, fixed, 0)[0]))(
        lanes
    )
    x, w = tuning.columns.values, lanes.w[0, 0, :2, :2]
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1)
    gaps = np.stack([w[0] @ x - lanes.lower[0, 0, 0], lanes.upper[0, 0, 1] - w[1] @ x])
    holds, smooth = gaps >= 0, 1 / (1 + np.exp(-4 * gaps))
    np.testing.assert_array_equal(holds.all(axis=0), rules.satisfied(jr.as_table(X))[:, 0])
    b, b0 = lanes.b[0, 0, 0], lanes.b0[0, 0]
    of_q = -2 * (tuning.target[0] - b0 - b * holds.all(axis=0)) * b / 20
    of_gap = of_q * 4 * smooth * (1 - smooth) * holds[::-1]
    assert slopes.lower[0, 0, 0] == pytest.approx(-of_gap[0].sum(), rel=1e-9)
    assert slopes.upper[0, 0, 1] == pytest.approx(of_gap[1].sum(), rel=1e-9)
    free = x @ of_gap[0]
    np.testing.assert_allclose(
        slopes.w[0, 0, 0, :2], free - (free @ w[0]) * w[0], rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(
        slopes.w[0, 0, 1], 0, atol=1e-15
    )  # one column: there is no other direction


def test_refitted_weights_respect_what_stays() -> None:
    rng = np.random.default_rng(0)
    Q, y, offset = rng.random((50, 3)) < 0.5, rng.normal(size=50), rng.normal(size=50)
    signs, weights = np.sign(y), rng.random(50)
    for loss, goal in ((squared, y), (logistic, signs)):
        b, b0 = refit_weights(
            loss,
            goal,
            Q,
            l2_penalty=0.1,
            intercept=True,
            sample_weight=weights,
            start=(np.zeros(3), 0.0),
            offset=offset,
        )

        def objective(at: Floats, loss: Any = loss, goal: Floats = goal) -> float:
            return float(
                weights @ loss.value(goal, Q @ at[:3] + at[3] + offset) + 0.05 * at[:3] @ at[:3]
            )

        best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
        np.testing.assert_allclose(np.append(b, b0), best, atol=1e-5)


# What stays


@pytest.mark.parametrize("kind", KINDS)
def test_support_and_complexity_stay(kind: str) -> None:
    X, y = table()
    model = ensemble(X, **KINDS[kind])
    fit = jr.finetune(model, X, target(kind, y), guard=False, iterations=60)
    tuned = fit.model
    tuned.validate()
    assert fit.details["accepted"]
    for measure in ("propositions", "nonzeros"):
        assert jr.complexity(tuned, measure) == jr.complexity(model, measure)
    changed = 0
    for before, after in zip(model.conjunctions, tuned.conjunctions, strict=True):
        assert [one for one in before if one.categories is not None] == [
            one for one in after if one.categories is not None
        ]
        for features in {
            one.feature if isinstance(one.feature, int) else one.feature.features for one in before
        }:
            named = [
                one.feature if isinstance(one.feature, int) else one.feature.features
                for one in after
            ]
            assert features in named
        changed += before != after
    assert changed >= 2
    assert tuned.conjunctions.rule(2) == model.conjunctions.rule(2)  # it is about a missing value
    if model.linear is not None:
        np.testing.assert_array_equal(tuned.linear.coefficients, model.linear.coefficients)
    ridge = 5e-4 * (tuned.weights**2).sum() / (3 if kind == "one against the rest" else 1)
    assert fit.objective == pytest.approx(jr.risk(tuned, X, target(kind, y)) + ridge, rel=1e-9)
    assert fit.objective < jr.risk(model, X, target(kind, y))


def test_weights_of_zero_stay() -> None:
    X, y = table()
    model = ensemble(X, **KINDS["one against the rest"])
    weights = np.asarray(model.weights).copy()
    weights[[0, 3], 1], weights[4] = 0.0, 0.0
    model = jr.with_weights(model, weights)
    tuned = jr.finetune(
        model, X, target("one against the rest", y), guard=False, iterations=50
    ).model
    assert len(tuned.conjunctions) == 5  # a rule without any weight is none
    np.testing.assert_array_equal(tuned.weights == 0, weights[[0, 1, 2, 3, 5]] == 0)


@pytest.mark.parametrize("learner", ["lire", "rulefit", "boosting", "glrm", "lltboost", "ltrnet"])
def test_every_learner_can_be_tuned(learner: str) -> None:
    X, y = table()
    given = {
        "rules": jr.Conjunctions.build(jr.as_table(X, missing="own_category").schema, RULES[:5])
    }
    options: dict[str, Any] = {
        "lire": {"global_penalty": 0.01, "local_penalty": 0.01, "restarts": 1, **given},
        "rulefit": {"l1_penalty": 0.01, "linear_terms": True, **given},
        "boosting": {"max_rules": 3, "search": "greedy"},
        "glrm": {"rule_penalty": 0.05},
        "lltboost": {"max_rules": 2},
        "ltrnet": {"max_rules": 3, "restarts": 1},
    }[learner]
    model = getattr(jr, learner).fit(X, y, loss="squared", missing="own_category", **options).model
    fit = jr.finetune(model, X, y, iterations=50)
    fit.model.validate()
    assert jr.complexity(fit.model, "nonzeros") <= jr.complexity(model, "nonzeros")
    assert fit.details["risk"] < fit.details["start_risk"] or not fit.details["accepted"]


# The guard


def criterion(
    rules: jr.Conjunctions, X: pd.DataFrame, goal: Floats, validation: NDArray[np.bool_], loss: Any
) -> Floats:
    """The loss of every row, with weights refitted on those not held out."""
    rows = rules.satisfied(jr.as_table(X, missing="own_category"))
    weights = ~validation / (~validation).sum()
    b, b0 = refit_weights(
        loss,
        goal,
        rows,
        l2_penalty=1e-3,
        intercept=True,
        sample_weight=weights,
        start=(np.zeros(rows.shape[1]), 0.0),
    )
    return np.asarray(loss.value(goal, rows @ b + b0))


@given(
    st.integers(0, 10**6), st.sampled_from(["numbers", "labels"]), st.sampled_from([0.0, 0.5, 20.0])
)
@settings(max_examples=15)
def test_the_result_is_never_worse_by_the_guards_criterion(
    seed: int, kind: str, noise: float
) -> None:
    X, y = table(seed)
    y = target(kind, y + noise * np.random.default_rng(seed).normal(size=len(y)))
    model = ensemble(X, seed=seed, **KINDS[kind])
    fit = jr.finetune(model, X, y, iterations=50, learning_rate=0.05, seed=seed % 7)
    goal = y if kind == "numbers" else np.where(y == "yes", 1.0, -1.0)
    held, first = fit.details["validation_rows"], fit.details["first_half"]
    assert 0 < held.sum() < 48
    assert abs(first.sum() - held.sum() / 2) < 4
    assert held[first].all()
    start, found = (
        criterion(
            one.conjunctions,
            X,
            goal.astype(float),
            held,
            squared if kind == "numbers" else logistic,
        )
        for one in (model, fit.model)
    )
    assert start[held].mean() == pytest.approx(fit.details["start_risk"], rel=1e-4)
    assert found[held].mean() == pytest.approx(fit.details["risk"], rel=1e-4)
    assert found[held].mean() <= start[held].mean() * (1 + 1e-9)
    assert jr.complexity(fit.model, "nonzeros") <= jr.complexity(model, "nonzeros")
    if fit.details["accepted"]:
        assert fit.details["gain"] > fit.details["gain_error"] > 0
        assert fit.details["risk"] < fit.details["start_risk"]
    else:
        assert fit.model is model


def test_half_of_the_held_out_rows_chooses_for_the_other() -> None:
    X, y = table()
    model = ensemble(X)
    data = training_data(X, y, squared, missing="own_category")
    tuning = _Tuning(model, data, Constraints(), FinetuneOptions(), Run("finetune"))
    rng = np.random.default_rng(0)
    n, (first, second) = len(y), tuning.halves
    soft: Any = None
    kept = [_Candidate([], tuning.rows, soft, np.ones(n))]
    for losses in (np.where(first, 0.5, 2.0), np.where(second, 0.5, 2.0)):
        kept.append(_Candidate([], ~tuning.rows, soft, losses))
    best, (gain, _) = tuning.accepted(kept)  # each is best only where it was chosen
    assert best is kept[0]
    assert gain == pytest.approx(-1)
    better = _Candidate([], ~tuning.rows, soft, 0.9 + 0.2 * rng.normal(size=n))
    best, (gain, error) = tuning.accepted([kept[0], better])
    gains = (1 - better.losses)[tuning.validation]
    if gains[first[tuning.validation]].mean() > 0 < gains[second[tuning.validation]].mean():
        assert gain == pytest.approx(gains.mean())
        assert error == pytest.approx(gains.std(ddof=1) / np.sqrt(len(gains)))
    assert (best is better) == (gain > error)


def test_noise_is_refused_and_can_be_forced() -> None:
    X, y = table()
    model = ensemble(X)
    noise = np.random.default_rng(1).permutation(y)
    fits = [jr.finetune(model, X, noise, seed=seed) for seed in range(4)]
    assert not all(fit.details["accepted"] for fit in fits)
    forced = jr.finetune(model, X, noise, guard=False)
    assert forced.details["accepted"]
    assert not forced.details["validation_rows"].any()
    assert np.isnan(forced.details["risk"])


# What it finds


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_planted_thresholds_and_directions_are_found(loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    truth = 3.0 * (X[:, 0] > 0.3) - 2.0 * ((X[:, 1] + X[:, 2] < 0.4) & (X[:, 2] < 0.8))
    y = (
        truth + 0.1 * rng.normal(size=600)
        if loss == "squared"
        else rng.random(600) < 1 / (1 + np.exp(-2 * truth))
    )
    schema = jr.as_table(X).schema.with_classes(None if loss == "squared" else (False, True))
    slant = jr.Direction((1, 2), (1.0, 0.4))
    rules = jr.Conjunctions.build(
        schema, [[c.above(0, 0.0)], [c.below(slant, 0.1), c.below(2, 1.1)]]
    )
    model = jr.RuleEnsemble(
        rules,
        np.array([[1.0], [-1.0]]),
        np.zeros(1),
        link="identity" if loss == "squared" else "logistic",
    )
    fit = jr.finetune(model, X, y)
    assert fit.details["accepted"]
    (one,), (two, three) = fit.model.conjunctions
    assert one.lower == pytest.approx(0.3, abs=0.15)
    weights = (
        np.array(two.feature.weights) if isinstance(two.feature, jr.Direction) else np.zeros(2)
    )
    if loss == "squared":
        assert weights[1] / weights[0] == pytest.approx(1.0, abs=0.25)
        assert two.upper / weights[0] == pytest.approx(0.4, abs=0.15)
        assert three.upper == pytest.approx(0.8, abs=0.2)
        assert fit.objective < 0.4 * jr.finetune(model, X, y, iterations=1).objective


def test_it_is_the_same_door() -> None:
    X, y = table()
    model = jr.boosting.fit(X, y, max_rules=3, missing="own_category").model
    one = jr.finetune(model, X, y, iterations=60, seed=3)
    other = jr.ltrnet.fit(X, y, init=model, iterations=60, seed=3)
    assert str(one.model) == str(other.model)
    assert (one.objective, one.details["risk"]) == (other.objective, other.details["risk"])


def test_equal_fits_are_equal_and_compile_nothing() -> None:
    X, y = table()
    model = ensemble(X)
    first = jr.finetune(model, X, y, guard=False)
    with compilations() as compiled:
        second = jr.finetune(model, X, y, guard=False)
        jr.finetune(model, X, y + 1, iterations=30, sharpness=2.0, learning_rate=0.1, seed=5)
    assert compiled == []
    assert str(first.model) == str(second.model)
    np.testing.assert_array_equal(first.model.weights, second.model.weights)


def test_weights_are_repeated_rows() -> None:
    X, y = table()
    times = np.random.default_rng(0).integers(0, 3, len(y))
    model = ensemble(X)
    weighted = jr.finetune(model, X, y, sample_weight=times, guard=False)
    repeated = jr.finetune(
        model, X.loc[np.repeat(X.index, times)], np.repeat(y, times), guard=False
    )
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scales_do_not_matter(scale: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(96, 3)), rng.normal(size=96)
    y += X[:, 0] > 0.3
    model = jr.lltboost.fit(X, y, max_rules=2).model
    scaled = jr.lltboost.fit(scale * X, scale * y, max_rules=2).model
    one, other = (
        jr.finetune(model, X, y, guard=False),
        jr.finetune(scaled, scale * X, scale * y, guard=False),
    )
    np.testing.assert_allclose(
        jr.predict(other.model, scale * X) / scale, jr.predict(one.model, X), rtol=1e-6
    )


@pytest.mark.parametrize("scale", [1e160, 1e-160])
def test_squares_of_columns_may_overflow(scale: float) -> None:
    X, y = np.arange(40.0)[:, None], np.repeat([0.0, 1.0], 20)
    start = jr.Conjunctions.build(jr.as_table(X).schema, [[c.above(0, scale * 15)]])
    fit = jr.finetune(
        jr.RuleEnsemble(start, np.array([[1.0]]), np.array([0.0])), scale * X, y, guard=False
    )
    assert fit.objective < 0.1


def test_a_column_that_spreads_by_next_to_nothing_is_refused() -> None:
    X, y = np.arange(40.0)[:, None], np.repeat([0.0, 1.0], 20)
    with pytest.raises(
        ValueError, match="column 'x0' of X varies by only 1e-307; multiply it by a constant"
    ):
        jr.lltboost.fit(1e-308 * X, y, max_rules=1)


# Limits and bad input


def test_without_time_the_start_comes_back() -> None:
    X, y = table()
    model = ensemble(X)
    fit = jr.finetune(model, X, y, time_limit=0.0)
    assert fit.status == "time_limit"
    assert fit.model is model
    assert len(fit.history) == 1


def test_ctrl_c_keeps_what_is_tuned() -> None:
    X, y = table()
    seen: list[jr.Progress] = []

    def stop(progress: jr.Progress) -> None:
        seen.append(progress)
        signal.raise_signal(signal.SIGINT)

    fit = jr.finetune(ensemble(X), X, y, progress=stop, guard=False)
    assert fit.status == "interrupted"
    assert len(seen) == 1
    fit.model.validate()


def test_constant_columns_stay_as_they_are() -> None:
    X, y = table()
    model = ensemble(X)
    tuned = jr.finetune(model, X.assign(a=0.5), y, guard=False).model
    assert tuned.conjunctions.rule(0) == model.conjunctions.rule(0)


def test_a_model_without_rules_comes_back() -> None:
    X, y = table()
    empty = jr.with_weights(ensemble(X), np.zeros((6, 1)))
    fit = jr.finetune(empty, X, y)
    assert fit.model is empty
    assert not fit.details["accepted"]


def test_a_perfect_fit_stays() -> None:
    X, _ = table()
    rules = jr.Conjunctions.build(
        jr.as_table(X, missing="own_category").schema, [[c.above(0, 0.25)]]
    )
    model = jr.RuleEnsemble(rules, np.array([[2.0]]), np.array([1.0]))
    fit = jr.finetune(model, X, 1.0 + 2.0 * (X["a"] > 0.25))
    assert fit.model is model
    assert fit.objective == pytest.approx(5e-4 * 4)


def test_rows_that_cannot_be_shared_are_refused() -> None:
    X, y = table()
    with pytest.raises(ValueError, match="validation_fraction holds out fewer than two"):
        jr.finetune(ensemble(X), X[:3], y[:3])


def test_help_shows_every_option() -> None:
    parameters = inspect.signature(jr.finetune).parameters
    assert list(parameters)[:4] == ["model", "X", "y", "sample_weight"]
    assert "missing" not in parameters  # the model has the rule
    documented = inspect.getdoc(jr.finetune) or ""
    for name in parameters:
        assert re.search(rf"^    (\w+, )*{name}(, \w+)*: ", documented, re.MULTILINE), name
    X, y = table()
    with pytest.raises(TypeError, match="did you mean 'l2_penalty'"):
        jr.finetune(ensemble(X), X, y, l2_penality=0.1)


def test_bad_arguments_are_refused_by_name() -> None:
    X, y = table()
    model = ensemble(X)
    for name, value, error in (
        ("guard", 1, TypeError),
        ("validation_fraction", 0.0, ValueError),
        ("validation_fraction", 1.0, ValueError),
        ("iterations", 0, ValueError),
        ("learning_rate", 0.0, ValueError),
        ("sharpness", -1.0, ValueError),
        ("batch_size", 0, ValueError),
        ("l2_penalty", -1.0, ValueError),
        ("seed", -1, ValueError),
        ("loss", "hinge", ValueError),
        ("time_limit", -1.0, ValueError),
        ("progress", 3, TypeError),
        ("sample_weight", -np.ones(96), ValueError),
    ):
        with pytest.raises(error, match=name):
            jr.finetune(model, X, y, **{name: value})
    with pytest.raises(TypeError, match="model must be RuleEnsemble"):
        jr.finetune(jr.boosting.fit(X, y, max_rules=1, missing="own_category"), X, y)  # type: ignore[arg-type]  # a Fit
    with pytest.raises(ValueError, match="lacks the columns"):
        jr.finetune(model, X[["a", "b"]], y)
    with pytest.raises(ValueError, match="y has NaN"):
        jr.finetune(model, X, np.where(y > 1, np.nan, y))
    labels = ensemble(X, **KINDS["labels"])
    with pytest.raises(ValueError, match=r"y has the classes .*'maybe'.*fitted on .*'no'"):
        jr.finetune(labels, X, np.where(y > 0, "yes", "maybe"))
    with pytest.raises(ValueError, match="only one class"):
        jr.finetune(labels, X, ["yes"] * 96)
    own = jr.RuleEnsemble(model.conjunctions, model.weights, model.intercept, loss="mine")
    with pytest.raises(ValueError, match="pass it as loss"):
        jr.finetune(own, X, y)
