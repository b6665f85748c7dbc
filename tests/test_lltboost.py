"""LLTBoost: its compiled program and Algorithm 1 against plain code, what it finds, and bad input.

Most problems have 80 rows and 4 columns, so that few programs are compiled.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import jaxrules as jr
from compiling import compilations
from jaxrules.ensembles import lltboost
from jaxrules.ensembles.lltboost.proposals import (
    Arrays,
    Fitted,
    Lanes,
    ProposalProgram,
    Proposals,
    best_cuts,
    propose,
)
from jaxrules.learning.cross_validation import folds
from jaxrules.learning.training import held_out, searched_rows, training_data
from jaxrules.losses import logistic, loss_by_name, squared
from jaxrules.solvers.shapes import bucket
from jaxrules.tools.float64 import x64_kernel

Floats = NDArray[np.float64]

_best_cuts = x64_kernel(best_cuts)
LITERAL = {
    "refit_propositions": False,
    "refit_on_all_rows": False,
    "l2_penalty": 1e-4,
    "risk_tolerance": -0.05,
}


def data(seed: int = 0, n: int = 80, d: int = 4) -> tuple[Floats, Floats]:
    """Standardised columns, and a real target that one oblique rule and one
    plain rule explain in part.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = 2.0 * (X[:, 0] + 0.8 * X[:, 1] > 0.2) - 1.0 * (X[:, 2] > 0.5) + 0.3 * rng.normal(size=n)
    return X, y


def labels(y: Floats) -> NDArray[Any]:
    return np.where(y > np.median(y), "yes", "no")


def same_rules(one: jr.Fit[Any], other: jr.Fit[Any]) -> bool:
    return list(one.model.conjunctions) == list(other.model.conjunctions)


# The compiled program


def ask(
    X: Floats,
    y: Floats,
    loss: Any,
    held: NDArray[np.bool_],
    trains: NDArray[np.bool_],
    **options: bool,
) -> Any:
    """`propose` for a sign of +1, an ensemble of the best constant and one
    rule, and one conjunction.
    """
    n = len(X)
    arrays = Arrays(
        np.ascontiguousarray(X.T),
        np.zeros((0, n), bool),
        y,
        trains / trains.sum(),
        ~trains / (~trains).sum(),
    )
    design = np.zeros((4, n))
    design[0], design[1] = 1.0, X[:, 3] > 0
    weights = np.array([0.3, -0.5, 0.0, 0.0])
    lanes = Lanes(np.ones(2), np.stack([held, np.zeros(n, bool)]))
    answer = propose(
        arrays, Fitted(design, weights, 2, 0.01), lanes, program=ProposalProgram(loss, 4, **options)
    )
    assert not answer.found[1].any()
    gradient = arrays.fit_weights * loss.gradient(y, weights @ design)
    return Proposals(*(field[0] for field in answer)), arrays, design, gradient


@pytest.mark.parametrize("name", ["squared", "logistic", "poisson"])
def test_proposals_are_what_plain_code_says(name: str) -> None:
    X, y = data()
    loss = loss_by_name(name)
    y = {"squared": y, "logistic": np.where(y > 0, 1.0, -1.0), "poisson": np.round(np.exp(y / 2))}[
        name
    ]
    trains, held = np.arange(80) % 4 > 0, X[:, 2] < 0.8
    answer, arrays, design, gradient = ask(X, y, loss, held, trains)
    on = held & trains
    separable = np.where(gradient >= 0, 1.0, -1.0)
    row_weights = np.abs(gradient[on]) / np.abs(gradient[on]).sum()
    start = (
        LogisticRegression(C=np.inf)
        .fit(0 * X[on], separable[on], sample_weight=row_weights)
        .intercept_[0]
    )
    slope = X[on].T @ (row_weights * separable[on] / (1 + np.exp(separable[on] * start)))
    for s in np.flatnonzero(answer.found):
        w, b = answer.coefficients[s], answer.intercepts[s]
        saga = LogisticRegression(
            l1_ratio=1,
            C=1 / (answer.penalties[s] * np.abs(slope).max()),
            solver="saga",
            tol=1e-10,
            max_iter=10**6,
        ).fit(X[on], separable[on], sample_weight=row_weights)
        np.testing.assert_allclose(
            np.append(w, b), np.append(saga.coef_[0], saga.intercept_), atol=1e-3
        )
        rows = held & (X @ w + b >= 0)
        np.testing.assert_array_equal(answer.rows[s], rows)
        assert answer.objective[s] == pytest.approx(abs(gradient @ rows), rel=1e-9)
        full = np.vstack([design[:2], rows])

        def objective(b: Floats, full: Floats = full) -> Any:
            return arrays.fit_weights @ loss.value(y, b @ full) + 0.005 * b[1:] @ b[1:]

        best = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-7}).x
        assert answer.risk[s] == pytest.approx(
            arrays.check_weights @ loss.value(y, best @ full), rel=1e-4
        )
    assert answer.found[:2].all()


def test_refitted_propositions_have_no_l1_penalty() -> None:
    X, y = data(1)
    answer, _, _, gradient = ask(
        X, y, squared, np.ones(80, bool), np.arange(80) % 4 > 0, refit_propositions=True
    )
    size = np.abs(gradient)
    for s in np.flatnonzero(answer.found):
        on = answer.coefficients[s] != 0
        ridge = LogisticRegression(C=1e3, tol=1e-12, max_iter=1000).fit(
            X[:, on], gradient >= 0, sample_weight=size / size.sum()
        )
        np.testing.assert_allclose(answer.coefficients[s][on], ridge.coef_[0], rtol=1e-3)
        assert answer.intercepts[s] == pytest.approx(ridge.intercept_[0], abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_cuts_are_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, gains, used = (
        np.round(rng.normal(size=(3, 20)), 1),
        rng.normal(size=20),
        rng.random(20) < 0.8,
    )
    values[2] = 1.0
    gains = np.where(used, gains, 0)
    sums, cuts = _best_cuts(values, gains, np.stack([used] * 3))
    for row, total, cut in zip(values[:2], sums[:2], cuts[:2], strict=True):
        distinct = np.unique(row[used])
        brute = [
            gains[used & (row >= middle)].sum() for middle in (distinct[1:] + distinct[:-1]) / 2
        ]
        assert total == pytest.approx(max(brute))
        assert gains[used & (row >= cut)].sum() == pytest.approx(total)
    assert sums[2] == -np.inf
    assert cuts[2] == -np.inf


def test_options_beyond_the_paper_raise_the_objective() -> None:
    X, y = data(2)
    everything, trains = np.ones(80, bool), np.arange(80) % 4 > 0
    plain, _, _, gradient = ask(X, y, squared, everything, trains)
    refined, *_ = ask(X, y, squared, everything, trains, refine_thresholds=True)
    assert (refined.objective >= plain.objective - 1e-12).all()
    axis, *_ = ask(X, y, squared, everything, trains, axis_parallel=True)
    gains = np.where(trains, gradient, 0)
    sides = [X[:, j] * side >= cut * side for j in range(4) for side in (1, -1) for cut in X[:, j]]
    assert axis.objective[0] == pytest.approx(max(gains @ side for side in sides))
    assert np.count_nonzero(axis.coefficients[0]) == 1
    assert np.isnan(axis.penalties[0])


@pytest.mark.parametrize("option", ["axis_parallel", "refine_thresholds"])
def test_exact_cuts_lie_midway_between_training_rows_of_the_conjunction(option: str) -> None:
    X, y = data(2)
    held, trains = X[:, 3] < 0.5, np.arange(80) % 2 > 0
    answer, *_ = ask(X, y, squared, held, trains, **{option: True})
    for s in [0] if option == "axis_parallel" else np.flatnonzero(answer.found):
        values = np.unique(X[held & trains] @ answer.coefficients[s])
        cut = -answer.intercepts[s]
        assert cut == pytest.approx(
            (values[values < cut].max() + values[values > cut].min()) / 2, rel=1e-9
        )


def test_algorithm_1() -> None:
    """The choices among the proposals, in plain loops."""
    X, y = data(3)
    table = training_data(X, y, squared)
    for tolerance, gain in ((-0.05, 0.1), (-0.1, 0.3), (0.0, 0.0)):
        fit = lltboost.fit(
            X,
            y,
            max_rules=3,
            max_nonzeros=4,
            objective_tolerance=gain,
            **LITERAL | {"risk_tolerance": tolerance},
        )
        trains = ~fit.details.validation_rows
        np.testing.assert_array_equal(~trains, held_out(table, 0.25, 0))
        arrays = Arrays(
            X.T.copy(), np.zeros((0, 80), bool), y, trains / trains.sum(), ~trains / (~trains).sum()
        )
        design, weights = np.zeros((4, 80)), np.zeros(4)
        design[0], weights[0] = 1.0, y[trains].mean()
        for m in (1, 2, 3):
            g = arrays.fit_weights * squared.gradient(y, weights @ design)
            results = []
            for sign in (1.0, -1.0):
                q, objective = np.ones(80, bool), abs(g.sum())
                for _ in range(5):
                    lanes = Lanes(np.array([sign, 1.0]), np.stack([q, np.zeros(80, bool)]))
                    answer = propose(
                        arrays,
                        Fitted(design, weights, m, 1e-4),
                        lanes,
                        program=ProposalProgram(squared, 4),
                    )
                    risk, chosen = np.inf, None
                    for s in range(4):
                        if answer.found[0, s] and (
                            chosen is None or (answer.risk[0, s] - risk) / risk <= tolerance
                        ):
                            risk, chosen = answer.risk[0, s], s
                    if chosen is None or answer.objective[0, chosen] <= (1 + gain) * objective:
                        break
                    q, objective = answer.rows[0, chosen], answer.objective[0, chosen]
                results.append((objective, q))
            (one, q), (other, complement) = (
                results  # first propositions of the two signs may be complements: ties
            )
            q = complement if other > (1 + 1e-9) * one else q
            np.testing.assert_array_equal(
                fit.model.conjunctions.satisfied(jr.as_table(X))[:, m - 1], q
            )
            design[m] = q
            columns = design[: m + 1, trains]
            ridge = np.diag([0.0] + [1e-4 * trains.sum() / 2] * m)
            weights[: m + 1] = np.linalg.solve(columns @ columns.T + ridge, columns @ y[trains])
        assert fit.model.intercept[0] == pytest.approx(weights[0], rel=1e-6)
        np.testing.assert_allclose(fit.model.weights[:, 0], weights[1:4], rtol=1e-6)


# What it finds


def test_one_oblique_rule_separates_what_plain_rules_cannot() -> None:
    X, _ = data(4)
    frame = pd.DataFrame(X, columns=["variance", "skewness", "curtosis", "entropy"])
    y = np.where(2.81 * X[:, 0] + 1.5 * X[:, 1] >= -0.28, "genuine", "forged")
    fit = jr.lltboost.fit(frame, y, loss="logistic", max_rules=1)
    assert jr.accuracy(fit.model, frame, y) > 0.95
    ((condition,),) = fit.model.conjunctions
    assert condition.feature.features == (0, 1)
    assert condition.feature.weights[1] / condition.feature.weights[0] == pytest.approx(
        1.5 / 2.81, rel=0.3
    )
    assert jr.complexity(fit.model, measure="nonzeros") == 4
    (stage,) = fit.details.stages
    assert set(stage.parts[0].coefficients) == {"variance", "skewness"}
    assert "variance + " in str(fit.model)
    text = str(jr.explain(fit.model, frame[:1])[0])
    assert "variance" in text or "intercept" in text


def test_a_path_is_the_fits_with_every_number_of_rules() -> None:
    X, y = data()
    path = jr.lltboost.path(X, y, max_rules=3, l2_penalty=1e-3)
    assert [len(fit.model.conjunctions) for fit in path] == [1, 2, 3]
    for m, fit in enumerate(path, start=1):
        alone = jr.lltboost.fit(X, y, max_rules=m, l2_penalty=1e-3)
        assert same_rules(fit, alone)
        np.testing.assert_allclose(fit.model.weights, alone.model.weights, rtol=1e-9)
        assert fit.objective == pytest.approx(alone.objective)
        assert fit.history[-1].objective == fit.objective
        assert (fit.status, len(fit.history), len(fit.details.stages)) == ("converged", m, m)
    assert path[2].objective < path[1].objective < path[0].objective


def test_the_data_choose_the_number_of_rules() -> None:
    X = np.random.default_rng(0).normal(size=(400, 4))
    noise = np.random.default_rng(1).normal(size=400)
    nats = 1.25 * (1 + 2 * np.log(400 / 250))
    for y in (noise, np.where(noise > 0, "a", "b")):
        fit = jr.lltboost.fit(X, y)
        path = jr.lltboost.path(X, y)
        m, gains = len(fit.model.conjunctions), path[-1].details.gains
        assert m <= 2
        assert len(path) == 10 or path[-1].details.reason != "max_rules is reached"
        assert len(gains) == len(path)
        # The smallest size of the greatest sum of gains, less the price of each rule.
        assert m == max(1, int(np.argmax(np.cumsum([0.0, *(one - nats for one in gains)]))))
        assert same_rules(fit, path[m - 1])
        assert "further rules gain less than a smaller ridge" in str(fit)
        assert fit.details.l2_penalty <= path[m - 1].details.l2_penalty  # relaxed
        # A number is a number, and a given ridge stays.
        assert len(jr.lltboost.fit(X, y, max_rules=5).model.conjunctions) == 5
        assert jr.lltboost.fit(X, y, l2_penalty=0.1).details.l2_penalty == 0.1
    step = jr.lltboost.fit(X, X[:, 0] > 0)
    assert len(step.model.conjunctions) <= 3
    # A loss of the user has no likelihood to compare: ten rules.
    own = jr.lltboost.fit(X, noise, loss=_pseudo_huber)
    assert len(own.model.conjunctions) == 10
    assert own.details.gains == ()
    with pytest.raises(TypeError, match="max_rules"):
        jr.lltboost.fit(X, noise, max_rules="many")
    with pytest.raises(ValueError, match="max_rules"):
        jr.lltboost.fit(X, noise, max_rules=0)


def _pseudo_huber(y: Any, score: Any) -> Any:
    return jnp.sqrt(1 + (y - score) ** 2)


def test_cross_validation_measures_the_prefixes_of_one_path_per_fold() -> None:
    X, y = data()
    options: dict[str, Any] = {"max_length": 2, "max_nonzeros": 2, "seed": 1}
    fit = jr.lltboost.cross_validate(X, y, n_folds=2, max_rules=4, **options)
    found = fit.details.cross_validation
    fold_of = folds(training_data(X, y, squared), 2, 1)
    for k in range(2):
        inside, outside = fold_of != k, fold_of == k
        path = jr.lltboost.path(X[inside], y[inside], max_rules=4, **options)
        risks = [jr.risk(one.model, X[outside], y[outside]) for one in path]
        np.testing.assert_allclose(found.risks[k, : len(path)], risks)
        np.testing.assert_allclose(found.risks[k, len(path) :], risks[-1])  # no further rule
    assert fit.details.stages  # those of the fit on all rows
    assert same_rules(fit, jr.lltboost.fit(X, y, **found.setting, **options))


def test_the_old_name_of_max_length_warns() -> None:
    X, y = data()
    with pytest.warns(FutureWarning, match="max_propositions is now called max_length"):
        old = jr.lltboost.fit(X, y, max_rules=2, max_propositions=1)
    assert same_rules(old, jr.lltboost.fit(X, y, max_rules=2, max_length=1))
    assert dict(old.model.options)["max_length"] == 1
    with pytest.raises(TypeError, match="max_propositions is the old name of max_length"):
        jr.lltboost.path(X, y, max_propositions=1, max_length=2)


def test_several_classes_are_one_problem() -> None:
    X, y = data(5)
    classes = np.where(y > 1, "c", np.where(X[:, 2] > 0, "b", "a"))
    path = jr.lltboost.path(X, classes, loss="logistic", max_rules=3)
    fit = jr.lltboost.fit(X, classes, loss="logistic", max_rules=3)
    assert [one.model.n_outputs for one in path] == [3] * len(path)
    assert same_rules(path[-1], fit)
    assert jr.accuracy(fit.model, X, classes) > 0.85
    assert len(fit.details.stages) == 3


def test_no_training_prediction_depends_on_the_rounding() -> None:
    X, y = data(6)
    X = X * [1e-8, 1, 1e8, 3] + [0, 5, 1e9, -2]
    fit = jr.lltboost.fit(X, y, max_rules=3)
    table = jr.as_table(X)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    for rule, stage in zip(
        fit.model.conjunctions.satisfied(table).T, fit.details.stages, strict=True
    ):
        rows = np.ones(80, bool)
        for part in stage.parts:
            w = np.array([part.coefficients.get(f"x{j}", 0.0) for j in range(4)])
            rows &= (X - mean) / scale @ w >= part.threshold
        np.testing.assert_array_equal(rule, rows)


def test_categories_are_indicators_and_missing_numbers_take_a_side() -> None:
    rng = np.random.default_rng(7)
    n = 80
    job, age = rng.choice(["clerk", "cook", "smith"], n), rng.normal(size=n)
    age[rng.random(n) < 0.2] = np.nan
    frame = pd.DataFrame({"job": job, "age": age})
    for missing, text in ((2.0, "age <= 0.5"), (-2.0, "(age <= 0.5 or missing)")):
        y = 1.0 * (job == "cook") + 3.0 * (np.nan_to_num(age, nan=missing) > 0.5)
        fit = jr.lltboost.fit(
            frame, y, missing="own_category", max_rules=3, refine_thresholds=True,
            l2_penalty=1e-3, seed=1,
        )  # fmt: skip
        assert [fit.model.conjunctions.describe(r) for r in range(2)] == [text, "job != cook"]
        assert jr.risk(fit.model, frame, y) < 1e-3
    with pytest.raises(ValueError, match="missing"):
        jr.lltboost.fit(frame, y)


def test_nothing_is_compiled_for_more_stages_or_rows_of_one_bucket() -> None:
    X, y = data()
    jr.lltboost.fit(X, y, max_rules=2)
    with compilations() as compiled:  # for ten rules as for two
        assert len(jr.lltboost.fit(X, y, max_rules=10).details["stages"]) == 10
    assert compiled == []
    jr.lltboost.fit(X, y, max_rules=15)
    with compilations() as compiled:
        jr.lltboost.fit(X, y, max_rules=3)
        jr.lltboost.fit(X[:75], y[:75], max_rules=3, seed=1, sample_weight=np.arange(75.0) + 1)
    assert compiled == []
    assert [bucket(n) for n in (4, 10, 11, 30, 345, 500, 10**6)] == [
        4,
        10,
        12,
        32,
        384,
        512,
        1048576,
    ]


# Held-out rows


def test_equal_rows_stay_together_and_classes_keep_their_shares() -> None:
    rng = np.random.default_rng(8)
    X, y = data(8, n=200)
    drawn = rng.integers(0, 200, 500)
    part = training_data(X[drawn], np.where(y > 1.5, "rare", "often")[drawn], logistic)
    held = held_out(part, 0.25, 0)
    for row in np.unique(drawn):
        assert len(set(held[drawn == row])) == 1
    for label in (-1, 1):
        distinct = len(np.unique(drawn[part.target == label]))
        assert len(np.unique(drawn[held & (part.target == label)])) == int(0.25 * distinct)
    assert not held_out(part, 0.0, 0).any()
    assert (held_out(part, 0.25, 1) != held).any()


def test_weights_are_fitted_on_all_rows_or_on_the_training_part() -> None:
    X, y = data(9)
    for all_rows in (True, False):
        fit = jr.lltboost.fit(X, y, max_rules=2, refit_on_all_rows=all_rows)
        used = np.ones(80, bool) if all_rows else ~fit.details.validation_rows
        ridge = fit.details.l2_penalty / 2 * float((fit.model.weights**2).sum())
        assert fit.objective == pytest.approx(jr.risk(fit.model, X[used], y[used]) + ridge)
        residual = (y - jr.decision_function(fit.model, X))[used]
        assert residual.mean() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("kind", ["numbers", "labels", "joint", "one_vs_rest"])
def test_rules_are_searched_on_drawn_rows_and_all_rows_weigh_them(kind: str) -> None:
    X, y = data(9, n=400)
    options: dict[str, Any] = {"max_rules": 2, "max_length": 2}
    target = y if kind == "numbers" else labels(y)
    if kind in ("joint", "one_vs_rest"):
        target = np.digitize(y, np.quantile(y, [0.3, 0.7]))
        options["multiclass"] = kind
    fit = jr.lltboost.fit(X, target, **options, search_rows=80)
    each = fit.details.of_class if kind == "one_vs_rest" else [fit.details]
    assert {one.sample for one in each} == {80}
    assert all(0 < one.validation_rows.sum() <= 20 for one in each)
    if kind != "one_vs_rest":  # they are the best weights on all rows
        again = jr.refit(fit.model, X, target)
        np.testing.assert_allclose(again.weights, fit.model.weights, rtol=1e-4, atol=1e-6)
        assert jr.lltboost.path(X, target, **options, search_rows=80)[-1].objective == fit.objective
    assert same_rules(fit, jr.lltboost.fit(X, target, **options, search_rows=80))
    assert not same_rules(fit, jr.lltboost.fit(X, target, **options, search_rows=80, seed=1))
    whole = jr.lltboost.fit(X, target, **options, search_rows=400)
    assert whole.objective == jr.lltboost.fit(X, target, **options, search_rows=None).objective
    assert (whole.details.of_class[0] if kind == "one_vs_rest" else whole.details).sample is None


def test_drawn_rows_with_given_rules_constraints_and_the_training_part_alone() -> None:
    X, y = data(9, n=400)
    first = jr.Conjunctions.build(jr.as_table(X).schema, [[jr.Condition.above(0, 0.0)]])
    options: dict[str, Any] = {"max_rules": 3, "first": first, "monotone": {"x1": 1}}
    fit = jr.lltboost.fit(X, y, **options, search_rows=80)
    assert fit.model.conjunctions.describe(0) == "x0 > 0"
    assert len(fit.model.conjunctions) > 1
    higher = jr.predict(fit.model, X + np.eye(4)[1])
    assert (higher >= jr.predict(fit.model, X) - 1e-12).all()
    part = jr.lltboost.fit(X, y, max_rules=2, search_rows=80, refit_on_all_rows=False)
    table = training_data(X, y, squared)
    drawn = searched_rows(table, 80, 0)
    used = np.isin(np.arange(400), drawn) & ~part.details.validation_rows
    assert (y - jr.decision_function(part.model, X))[used].mean() == pytest.approx(0, abs=1e-9)


def test_the_last_refit_has_a_ridge_by_the_noise() -> None:
    X, y = data(9)
    noisy = y + 3 * np.random.default_rng(0).normal(size=len(y))
    given = jr.lltboost.fit(X, noisy, max_rules=2, l2_penalty=1e-3)
    fit = jr.lltboost.fit(X, noisy, max_rules=2)
    assert list(fit.model.conjunctions) == list(given.model.conjunctions)
    left = jr.risk(given.model, X, noisy) / noisy.var()
    q = left + 3 * 2 / 80
    ridge = fit.details.l2_penalty
    assert ridge == pytest.approx(10 * q / (1 - q) * 2 / 80, rel=0.05)  # two digits
    assert fit.chosen in str(fit)
    assert f"leave {left:.0%} of the constant's loss" in fit.chosen
    assert (given.details.l2_penalty, given.chosen) == (1e-3, "")
    assert np.linalg.norm(fit.model.weights) < np.linalg.norm(given.model.weights)
    again = jr.refit(fit.model, X, noisy)
    np.testing.assert_allclose(again.weights, fit.model.weights, rtol=1e-6)
    path = jr.lltboost.path(X, noisy, max_rules=2)
    assert (path[-1].objective, path[-1].chosen) == (fit.objective, fit.chosen)
    assert jr.lltboost.fit(X, X[:, 0] > 0, max_rules=1).details.l2_penalty < ridge


# Bad input


def test_constant_columns_are_left_out() -> None:
    X, y = data(10)
    with_constant = np.column_stack([X[:, :2], np.full(80, 7.0), X[:, 2:]])
    fit = jr.lltboost.fit(with_constant, y, max_rules=3)
    assert jr.risk(fit.model, with_constant, y) == pytest.approx(
        jr.risk(jr.lltboost.fit(X, y, max_rules=3).model, X, y)
    )
    with pytest.warns(UserWarning, match="the model is a constant"):
        nothing = jr.lltboost.fit(np.ones((80, 4)), y, max_rules=3)
    assert len(nothing.model.conjunctions) == 0
    assert nothing.details["reason"] == "no proposition raises the objective"
    assert nothing.model.intercept[0] == pytest.approx(y.mean())
    with pytest.warns(UserWarning, match="the model is a constant"):
        assert len(jr.lltboost.path(np.ones((80, 4)), y, max_rules=3)) == 1


@pytest.mark.parametrize("l2_penalty", [1e-3, 0.0])
def test_separable_classes_have_finite_weights(l2_penalty: float) -> None:
    X, _ = data(11)
    y = np.where(X[:, 0] > 0, "yes", "no")
    fit = jr.lltboost.fit(X, y, loss="logistic", max_rules=6, l2_penalty=l2_penalty)
    assert jr.accuracy(fit.model, X, y) == 1
    assert np.abs(fit.model.weights).max() < (20 if l2_penalty else 1000)
    assert "same training rows" in fit.details.reason or "perfectly" in fit.details.reason


def test_fewer_rows_than_columns() -> None:
    rng = np.random.default_rng(12)
    X = rng.normal(size=(12, 40))
    fit = jr.lltboost.fit(X, X[:, 3] - X[:, 5], max_rules=2)
    assert 1 <= len(fit.model.conjunctions) <= 2
    assert np.isfinite(jr.predict(fit.model, X)).all()


def test_a_validation_part_with_one_class() -> None:
    X, _ = data(13)
    y = np.where(np.arange(80) < 3, "rare", "often")  # a quarter of three rows is none
    fit = jr.lltboost.fit(X, y, loss="logistic", max_rules=3)
    assert not fit.details.validation_rows[:3].any()
    assert np.isfinite(jr.decision_function(fit.model, X)).all()
    two = jr.lltboost.fit(X[:2], ["a", "b"], loss="logistic", max_rules=1)  # no row can be held out
    assert not two.details["validation_rows"].any()


def test_a_perfect_fit_stops_and_says_so() -> None:
    X, _ = data(14)
    y = np.where(X[:, 1] > 0, 5.0, -1.0)
    fit = jr.lltboost.fit(X, y, max_rules=3, l2_penalty=0.0, validation_fraction=0.0)
    assert len(fit.model.conjunctions) == 1
    assert "perfectly" in fit.details.reason
    assert fit.objective == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("name", ["squared", "logistic", "poisson"])
def test_scales_change_nothing(scale: float, name: Any) -> None:
    X, y = data(15)
    target = {"squared": y, "logistic": labels(y), "poisson": np.round(np.exp(y / 2))}[name]
    unit = scale if name == "squared" else 1.0
    one = jr.lltboost.fit(X, target, loss=name, max_rules=3)
    other = jr.lltboost.fit(
        scale * X, target if name == "logistic" else unit * target, loss=name, max_rules=3
    )
    np.testing.assert_array_equal(
        one.model.conjunctions.satisfied(jr.as_table(X)),
        other.model.conjunctions.satisfied(jr.as_table(scale * X)),
    )
    scores, scaled = (
        jr.decision_function(one.model, X),
        jr.decision_function(other.model, scale * X),
    )
    np.testing.assert_allclose(unit * scores, scaled, rtol=1e-6)


def test_details_name_the_rules_that_are_cut_from_one_column() -> None:
    X, y = data()
    found = jr.lltboost.fit(X, y, max_rules=2, max_nonzeros=1, axis_parallel=True)
    assert found.details.cut_from_one_column == (0, 1)
    assert found.details.stages[0].parts[0].cut_from_one_column


def test_time_runs_out_within_a_rule() -> None:
    X, y = data()
    reads = 0

    def clock() -> float:
        nonlocal reads
        reads += 1
        return float(reads)

    whole = jr.lltboost.fit(X, y, max_rules=3)
    sizes = set()
    for limit in range(0, 40, 3):
        reads = 0
        fit = jr.lltboost.fit(X, y, max_rules=3, time_limit=jr.Deadline(float(limit), clock))
        sizes.add(len(fit.model.conjunctions))
        assert fit.details.cut_from_one_column == ()
        if fit.status == "time_limit":
            assert fit.details.reason == fit.status.advice
        *complete, last = [*fit.model.conjunctions] or [()]
        assert complete == list(whole.model.conjunctions)[: len(complete)]
        grown = [*list(whole.model.conjunctions), ()][len(complete)]
        assert tuple(last) == tuple(grown)[: len(last)]  # as far as it had grown
    assert {0, 1} <= sizes


def test_counts_and_own_losses() -> None:
    X, y = data(16)
    counts = np.random.default_rng(0).poisson(np.exp(y / 2))
    fit = jr.lltboost.fit(X, counts, loss="poisson", max_rules=3)
    assert fit.model.link == "log"
    assert jr.risk(fit.model, X, counts) < jr.risk(
        dataclasses.replace(fit.model, weights=0 * fit.model.weights), X, counts
    )
    assert all(
        stage.risk > 0 for stage in fit.details.stages
    )  # deviance: above the smallest possible loss
    zeros = np.where(np.arange(80) == 7, 2, 0)  # the only positive count trains
    assert not jr.lltboost.fit(X, zeros, loss="poisson", max_rules=1).details["validation_rows"][7]


def test_wide_beams_keep_several_conjunctions() -> None:
    X, y = data(17)
    narrow = jr.lltboost.fit(X, y, max_rules=2, objective_tolerance=0.0)
    wide = jr.lltboost.fit(X, y, max_rules=2, objective_tolerance=0.0, beam_width=3)
    assert wide.details["stages"][0].risk <= narrow.details["stages"][0].risk * 1.2
    assert np.isfinite(wide.objective)


def test_the_papers_setting_is_its_method_to_the_letter() -> None:
    """One more option undoes each part of it: with the refits the risk of the training rows is
    lower.
    """
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 4))
    y = (X[:, 0] + X[:, 1] > rng.normal(size=120)).astype(int)
    fits = [
        lltboost.fit(X, y, **lltboost.PAPER | given) for given in ({}, {"refit_on_all_rows": True})
    ]
    rules = [str(fit.model.conjunctions) for fit in fits]
    risks = [jr.risk(fit.model, X, y) for fit in fits]
    assert rules[0] == rules[1]
    assert risks[1] < risks[0], "weights of the training part alone"
    assert len(fits[0].model.conjunctions) <= lltboost.PAPER["max_rules"]
    with pytest.raises(TypeError, match="does not support item assignment"):
        lltboost.PAPER["max_rules"] = 3
