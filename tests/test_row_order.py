"""Equal rows in another order, and weights in place of repeated rows, give the same rules: on
columns of few values, where many rules are worth the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxrules as jr
from jaxrules.rules.conditions import propositions_of

Fit = Callable[..., Any]


def rulefit(X: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> Any:
    rules = propositions_of(jr.as_table(X))
    return jr.rulefit.fit(X, y, sample_weight=w, rules=rules, l1_penalty=0.02)


def glrm(X: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> Any:
    return jr.glrm.fit(X, y, sample_weight=w, rule_penalty=0.01)


def boosting(**options: Any) -> Fit:
    options = {"max_rules": 4, "l2_penalty": 1.0} | options
    return lambda X, y, w: jr.boosting.fit(X, y, sample_weight=w, **options)


LEARNERS: dict[str, tuple[Fit, int, range]] = {
    # the fit, the number of classes (0 for numbers), and seeds of which some failed before
    "boosting joint": (boosting(), 3, range(30, 44)),
    "boosting oblique": (boosting(max_rules=2, max_nonzeros=2, max_cut_points=None), 0, range(16)),
    "glrm": (glrm, 2, range(13, 16)),
    "rulefit": (rulefit, 2, range(12)),
    "rulefit numbers": (rulefit, 0, range(8)),
    "rulefit joint": (rulefit, 3, range(6)),
}


def problem(seed: int, n_classes: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 60)), int(rng.integers(2, 5))
    X = rng.integers(0, 2 + 2 * (seed % 2), (n, d)).astype(float)
    score = X @ rng.normal(size=d) + rng.normal(size=n)
    ends = np.quantile(score, np.arange(1, n_classes) / n_classes) if n_classes else []
    return rng, X, np.digitize(score, ends) if n_classes else np.round(score, 3)


def rules_of(fit: Any) -> list[str]:
    return [fit.model.conjunctions.describe(i) for i in range(len(fit.model.conjunctions))]


@pytest.mark.parametrize(("fit", "n_classes", "seeds"), LEARNERS.values(), ids=LEARNERS)
@pytest.mark.full
def test_ties_do_not_depend_on_the_rows_order_or_on_weights(
    fit: Fit, n_classes: int, seeds: range
) -> None:
    for seed in seeds:
        rng, X, y = problem(seed, n_classes)
        times, order = rng.integers(1, 4, len(y)), rng.permutation(len(y))
        plain, moved = fit(X, y, None), fit(X[order], y[order], None)
        assert rules_of(plain) == rules_of(moved)
        np.testing.assert_array_equal(plain.model.weights, moved.model.weights)
        weighted = fit(X, y, times.astype(float))
        repeated = fit(np.repeat(X, times, axis=0), np.repeat(y, times), None)
        assert rules_of(weighted) == rules_of(repeated)
        np.testing.assert_allclose(weighted.model.weights, repeated.model.weights, atol=1e-4)


def test_rulefit_has_one_rule_of_a_rule_and_its_complement() -> None:
    for seed in range(8):
        _, X, y = problem(2 * seed, 2)  # columns of 0 and 1
        for joint in (False, True):
            found = rulefit(X, y + (joint and X[:, 0] * (y > 0)), None)
            columns = found.model.conjunctions.feature.tolist()
            assert len(set(columns)) == len(columns)
            sizes = np.abs(found.model.weights)
            assert (sizes.max(axis=1) > 1e-12 * sizes.max(initial=0.0)).all()
            scores = np.asarray(jr.decision_function(found.model, X)).reshape(len(y), -1)
            again = found.model.intercept + found.model.conjunctions.satisfied(
                jr.as_table(X)
            ) @ np.asarray(found.model.weights)
            np.testing.assert_allclose(scores, again)
            assert found.gap <= 1e-4 * abs(found.objective)
