"""Units change only the numbers that have them: units of the exposure, of the target, of the
columns and of the weights of rows, for every learner, search and loss with default penalties.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jaxrules as jr
from catalogue import CASES, LEARNERS, Case
from problems import N_ROWS, NOISY, WEIGHTS, X

LOG = ("poisson", "gamma", "tweedie(power=1.5)")
RESIDUALS = ("huber(width={})", "quantile(level=0.8, width={})", "absolute(width={})")
WIDTH = 0.5
MORE = tuple(
    Case(LEARNERS[name], search, loss)
    for name, searches in {
        "rulefit": ("",),
        "glrm": ("beam",),
        "boosting": ("corrective", "linear"),
        "lltboost": ("",),
        "ltrnet": ("soft",),
    }.items()
    for search in searches
    for loss in (*LOG, *RESIDUALS)
)
EVERY = tuple({str(case): case for case in (*CASES, *MORE)}.values())
EXPOSURE = np.random.default_rng(5).uniform(0.2, 3, N_ROWS)
FACTORS = (2.0**10, 2.0**-10, 365.25)


def settings_of(case: Case) -> dict[str, Any]:
    """Those of the catalogue with default penalties."""
    search = case.learner.searches[case.search].settings
    given = {"missing": "own_category", **case.learner.settings, **search}
    return {name: value for name, value in given.items() if not name.endswith("_penalty")}


def target_of(case: Case) -> Any:
    if case.loss in LOG[1:]:
        return np.exp(0.3 * NOISY["numbers"])
    return NOISY["numbers" if case.loss in RESIDUALS else case.target]


def fitted(case: Case, rows: Any = X, y: Any = None, width: float = WIDTH, **given: Any) -> Any:
    y = target_of(case) if y is None else y
    loss = {} if case.learner.loss is None else {case.learner.loss: case.loss.format(width)}
    return case.learner.fit(rows, y, **settings_of(case) | loss | given).model


def predicted(model: Any, rows: Any) -> Any:
    verb = jr.predict if model.schema.classes is None else jr.predict_proba
    return np.asarray(verb(model, rows))


def held(model: Any, rows: Any) -> set[bytes]:
    """On which rows its rules hold; a rule and its complement count as equal."""
    if not hasattr(model, "conjunctions"):
        return set()
    held = model.conjunctions.satisfied(jr.as_table(rows, missing="own_category"))
    return {(column ^ column[0]).tobytes() for column in held.T}


def check(one: Any, other: Any, factor: float = 1.0, rows: Any = X, rtol: float = 1e-6) -> None:
    """The same rules, and predictions that differ by the factor."""
    if math.frexp(factor)[0] == 0.5 or "rules" not in dict(one.options):
        # RuleFit's optimum is not unique: rounding of other factors decides between equal rules.
        assert held(one, X) == held(other, rows)
    np.testing.assert_allclose(factor * predicted(one, X), predicted(other, rows), rtol=rtol)


def with_log_link() -> Iterator[Case]:
    """Those with an intercept: without one, a score of 0 is a mean of 1 in the unit of y."""
    for case in EVERY:
        starts = case.learner.fit is not jr.boosting.published
        exposed = case.learner.name != "paths"  # without the argument exposure
        if exposed and case.loss in LOG and settings_of(case).get("intercept", starts):
            yield case


@pytest.mark.parametrize("case", list(with_log_link()), ids=str)
def test_the_unit_of_exposure_changes_the_intercept_alone(case: Case) -> None:
    one = fitted(case, exposure=EXPOSURE)
    first, second, third = FACTORS
    for factor, unit in {
        first: {"exposure": EXPOSURE * first},
        second: {"offset": np.log(EXPOSURE) + np.log(second)},
        third: {"exposure": EXPOSURE, "offset": np.full(N_ROWS, np.log(third))},
    }.items():
        other = fitted(case, **unit)
        check(one, other, 1 / factor)
        shift = float(other.intercept[0] - one.intercept[0])
        assert shift == pytest.approx(-np.log(factor), abs=1e-6)


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in EVERY
        if case.loss in RESIDUALS or case.loss == "squared" or case in tuple(with_log_link())
        # The network is trained on y as it is, but for the squared loss: see docs/targets.md
        if case.learner.name != "ltrnet" or case.loss == "squared"
        # Steps and ends of paths have the unit of y; a complement ties with its rule in float32
        if case.search not in ("any", "unit", "end") and str(case) != "boosting-directions-poisson"
    ],
    ids=str,
)
def test_the_unit_of_the_target_changes_predictions_by_a_factor(case: Case) -> None:
    one = fitted(case)
    # Solvers stop at a share of the objective, which is moved by the unit under a log link.
    rtol = 1e-3 if case.loss in LOG else 1e-6
    for factor in FACTORS:
        other = fitted(case, y=target_of(case) * factor, width=WIDTH * factor)
        check(one, other, factor, rtol=rtol)


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in EVERY
        # y - offset rounds, which decides between equal splits of trees
        if case.loss in ("squared", *RESIDUALS) and not case.draws_rows
    ],
    ids=str,
)
def test_a_constant_offset_of_numbers_changes_the_intercept_alone(case: Case) -> None:
    if case.learner.models != "ensembles" or not settings_of(case).get(
        "intercept", case.learner.fit is not jr.boosting.published
    ):
        pytest.skip("paths and lists take no offset; without an intercept nothing absorbs it")
    one, offset = fitted(case), 64.0 + 0.0 * EXPOSURE
    other = fitted(case, y=target_of(case) + offset, offset=offset)
    check(one, other)


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if not hasattr(case.settings.get("rules"), "schema")
        # Steps and ends of paths have the units of y over those of columns
        and case.search not in ("any", "unit", "end")
    ],
    ids=str,
)
def test_units_of_columns_change_thresholds_alone(case: Case) -> None:
    one = fitted(case)
    shifts = [(1.0, 5.0), (1.0, 1e6)]
    if "linear" in case.search or case.learner.models == "linear":
        shifts = []  # a term counts a missing value as 0: see docs/columns.md
    for factor, shift in [(2.0**10, 0.0), (2.0**-10, 0.0), (1e3, 0.0), (1e-3, 0.0), *shifts]:
        rows = X.assign(size=factor * X["size"] + shift, age=factor * X["age"] + shift)
        check(one, fitted(case, rows), rows=rows)


AGAINST_SUMS = {
    "boosting": {"l2_penalty": 4.0},
    "boosting.published": {"l2_penalty": 4.0},
    "lire": {"l2_penalty": 4.0, "global_penalty": 0.01, "local_penalty": 0.02},
    "lire.optimal": {"l2_penalty": 4.0, "global_penalty": 0.03},
    "ssrl": {"literal_penalty": 0.5},
    "ssrl.published": {"literal_penalty": 0.5},
    "exact_list": {"literal_penalty": 0.5},
}
"""Penalties against sums over the rows; a factor of the weights is one of them."""
AGAINST_MEANS = {
    "rulefit": {"l1_penalty": 0.02},
    "glrm": {"rule_penalty": 0.02},
    "lltboost": {"l2_penalty": 0.01},
    "ltrnet": {"l2_penalty": 0.01},
}


# HiGHS chooses among equal optima
@pytest.mark.parametrize("case", [case for case in CASES if case.search != "mip"], ids=str)
def test_a_factor_of_all_weights_is_one_of_penalties_against_sums(case: Case) -> None:
    name, weights = case.learner.name, 1.0 + WEIGHTS
    given, sums = AGAINST_MEANS.get(name, {}), AGAINST_SUMS.get(name, {})
    if case.search == "cross-validation":
        given = {"l1_penalty": None}
    one = fitted(case, sample_weight=weights, **given, **sums)
    for factor in (4.0, 365.25):
        scaled = {
            name: penalty * (factor if name in ("l2_penalty", "literal_penalty") else 1.0)
            for name, penalty in sums.items()
        }
        check(one, fitted(case, sample_weight=weights * factor, **given, **scaled))


@pytest.mark.parametrize("seed", range(3))
def test_lire_starts_alike_in_any_unit(seed: int) -> None:
    r = np.random.default_rng(seed)
    X = r.normal(size=(400, 4))
    y = 2 * (X[:, 0] > 0.3) + X[:, 1] + 0.7 * r.normal(size=400)
    one = jr.lire.fit(X, y)
    for factor in (2.0**-20, 1024.0):
        other = jr.lire.fit(X, factor * y)
        assert other.objective == pytest.approx(factor**2 * one.objective)
        assert held(other.model, X) == held(one.model, X)
