"""`max_rules=None` of boosting: the number of rules is chosen by the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxrules as jr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4)).round(1)
SMALL: dict[str, Any] = {"max_length": 2, "max_cut_points": 4}
SIGNAL = 2.0 * (X[:, 0] > 0) * (X[:, 1] < 0.5) - (X[:, 2] > 1)
TARGETS = {
    "squared": SIGNAL + 0.5 * RNG.normal(size=200),
    "logistic": np.where(SIGNAL + RNG.normal(size=200) > 0.5, "yes", "no"),
    "poisson": RNG.poisson(np.exp(SIGNAL / 2)),
    "softmax": np.digitize(SIGNAL + 0.5 * RNG.normal(size=200), [-0.5, 0.8]),
}


def negative_log_likelihood(kind: str, objective: float, n: float) -> float:
    """Up to a constant; of normal errors with the variance that fits best."""
    return n / 2 * np.log(objective) if kind == "squared" else n * objective


@pytest.mark.parametrize("kind", TARGETS)
def test_the_size_has_the_least_penalised_loss(kind: str) -> None:
    y, weights = TARGETS[kind], RNG.uniform(0.5, 2.0, 200)
    given = SMALL | {"sample_weight": weights, "loss": "logistic" if kind == "softmax" else kind}
    fits = jr.boosting.path(X, y, max_rules=None, **given)
    assert len(fits) <= 40
    worth = [
        negative_log_likelihood(kind, fit.objective, weights.sum()) + 1.25 * size
        for size, fit in enumerate(fits, start=1)
    ]
    best = int(np.argmin(worth)) + 1
    assert 1 < best < len(fits)
    chosen = jr.boosting.fit(X, y, max_rules=None, **given)
    asked = jr.boosting.fit(X, y, max_rules=best, **given)
    assert chosen.objective == asked.objective
    assert str(chosen.model) == str(asked.model)
    assert f"max_rules={best}: least penalised loss of sizes up to 40" in str(chosen)
    assert dict(chosen.model.options)["max_rules"] is None


def test_noise_has_few_rules() -> None:
    y = RNG.integers(0, 2, 200)
    assert jr.support(jr.boosting.fit(X, y, max_rules=None, **SMALL).model) <= 5


def test_required_columns_are_used() -> None:
    y = X[:, 0] + X[:, 1] > 0
    found = jr.boosting.fit(X, y, max_rules=None, required=[3], **SMALL)
    assert 3 in found.model.conjunctions.feature


def test_classes_one_against_the_rest_have_their_own_sizes() -> None:
    y = TARGETS["softmax"]
    found = jr.boosting.fit(X, y, max_rules=None, multiclass="one_vs_rest", **SMALL)
    assert all("max_rules=" in why for why in found.details["chosen"])


def test_an_estimator_takes_it() -> None:
    from jaxrules.estimators import RuleBoostingClassifier

    y = TARGETS["logistic"]
    found = RuleBoostingClassifier(max_rules=None, **SMALL).fit(X, y).model_
    assert str(found) == str(jr.boosting.fit(X, y, max_rules=None, **SMALL).model)


@pytest.mark.parametrize("loss", ["exponential", "gamma"])
def test_other_losses_are_refused(loss: str) -> None:
    y = TARGETS["logistic"] if loss == "exponential" else np.exp(SIGNAL)
    with pytest.raises(ValueError, match="max_rules=None needs .* set max_rules, or use cross"):
        jr.boosting.fit(X, y, loss=loss, max_rules=None)
