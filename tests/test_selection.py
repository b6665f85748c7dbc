"""Forward selection among rules: gains and stopping against plain code."""

from typing import Any

import numpy as np
import pytest

import jaxrules as jr
from jaxrules.ensembles.selection import close_to_best, gains
from jaxrules.losses import derivatives, squared
from jaxrules.solvers.linear.refit import refit_weights


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.random((6, 50)) < rng.uniform(0.2, 0.8, (6, 1))
    weights = rng.random(50)
    return rows, rng.normal(size=50) + rows[0] - 2 * rows[3], weights / weights.sum()


@pytest.mark.parametrize("chosen", [[], [3], [3, 0, 5]])
def test_gains_of_the_squared_loss_are_the_decrease_by_a_refit(chosen: list[int]) -> None:
    rows, y, weights = problem(1)
    ridge = 0.01

    def refitted(rules: list[int]) -> tuple[np.ndarray, float]:
        held = rows[rules].T.astype(float)
        b, b0 = refit_weights(
            squared, y, held, l2_penalty=ridge, intercept=True, sample_weight=weights,
            start=(np.zeros(len(rules)), 0.0),
        )  # fmt: skip
        scores = held @ b + b0
        return scores, float(weights @ squared.value(y, scores)) + ridge / 2 * float(b @ b)

    scores, risk = refitted(chosen)
    first, second = (one[None] for one in derivatives(squared, y, scores))
    found = gains(rows, chosen, weights * first, weights * second, ridge, np.zeros((6, 1), int))
    expected = [0.0 if r in chosen else risk - refitted([*chosen, r])[1] for r in range(6)]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_chosen_rules_and_wrong_signs_have_no_gain() -> None:
    rows, y, weights = problem(2)
    first, second = (one[None] for one in derivatives(squared, y, np.zeros(50)))
    slope = rows @ (weights * first[0])
    signs = np.array([np.sign(slope[0]), 0, 2, 0, 0, -np.sign(slope[5])])[:, None]
    found = gains(rows, [3], weights * first, weights * second, 1e-3, signs)
    assert (found > 0).tolist() == [False, True, False, False, True, True]


def test_the_models_close_to_the_best_by_hand() -> None:
    weights, best = np.full(4, 0.25), np.zeros(4)
    rows = (weights, weights**2, 4)
    # The excess of 0.1 has an error of 0; that of a mean of 0.25 one of 0.25.
    assert close_to_best(np.stack([best + 0.1, best]), *rows).tolist() == [1]
    assert close_to_best(np.array([[1, 0, 0, 0], best]), *rows).tolist() == [0, 1]
    assert close_to_best(np.array([[1.01, 0.01, 0.01, 0.01], best]), *rows).tolist() == [1]
    assert close_to_best(np.full((2, 4), np.nan), *rows).tolist() == [0]


def data() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(120, 4))
    y = 2.0 * (X[:, 0] + X[:, 1] > 0.2) - 1.0 * (X[:, 2] > 0.5) + 0.5 * (X[:, 3] < 0)
    return X, y + 0.3 * np.random.default_rng(1).normal(size=120)


@pytest.mark.parametrize("what", ["numbers", "labels", "classes"])
def test_rules_of_several_starts_are_one_network(what: str) -> None:
    X, y = data()
    target: Any = {
        "numbers": y, "labels": np.where(y > 0.5, "yes", "no"),
        "classes": np.digitize(y, [0.0, 1.5]),
    }[what]  # fmt: skip
    size: dict[str, Any] = {"max_rules": 3, "max_length": 2, "restarts": 6, "iterations": 100}
    size["loss"] = "squared" if what == "numbers" else "logistic"
    fit = jr.ltrnet.fit(X, target, **size)
    one = jr.ltrnet.fit(X, target, combine_starts=False, **size)
    assert str(fit.model) != str(one.model)
    np.testing.assert_array_equal(one.details.risks, fit.details.risks)
    assert 0 < len(fit.model.conjunctions) <= 3
    held = np.asarray(fit.model.conjunctions.satisfied(jr.as_table(X))).T
    assert len({(one ^ one[0]).tobytes() for one in held}) == len(held)
    assert len(fit.details.soft_model.net.w) == len(fit.model.conjunctions)
    # The network says what the rules say, up to its rounding to float32.
    soft = np.asarray(fit.details.soft_model(X)).reshape(len(X), -1)
    rules = np.asarray(jr.decision_function(fit.model, X)).reshape(len(X), -1)
    assert np.mean(np.abs(soft - rules) < 1e-4) > 0.95
    assert jr.risk(fit.model, X, target) < 1.1 * jr.risk(one.model, X, target)


def test_the_papers_settings_take_the_rules_of_one_start() -> None:
    X, y = data()
    size: dict[str, Any] = {"max_rules": 3, "max_length": 2, "restarts": 3, "iterations": 50}
    for given in ({"training": "soft"}, {"refit": False}):
        fits = [jr.ltrnet.fit(X, y, combine_starts=c, **size, **given) for c in (True, False)]
        assert str(fits[0].model) == str(fits[1].model)


def test_a_class_with_one_row_takes_the_rules_of_one_start() -> None:
    X, _ = data()
    y = np.arange(120) == 7
    fits = [jr.ltrnet.fit(X, y, restarts=2, iterations=50, combine_starts=c) for c in (True, False)]
    assert str(fits[0].model) == str(fits[1].model)
