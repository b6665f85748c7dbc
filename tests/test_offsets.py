"""Offsets and exposures: the loss that they mean, rates, other libraries, bad input; factors of
all weights.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

import jaxrules as jr
from jaxrules import estimators, losses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
EXPOSURE = RNG.uniform(0.1, 3, 400)
RATE = np.exp(0.3 + 0.8 * (X[:, 0] > 0) - 0.5 * (X[:, 1] > 0.5))
COUNTS = RNG.poisson(EXPOSURE * RATE)
SMALL: dict[str, Any] = {"max_rules": 2, "l2_penalty": 1.0}
FEW: dict[str, Any] = {"max_length": 1, "max_cut_points": 2}


@pytest.mark.parametrize(
    "name",
    [
        "poisson",
        "gamma",
        "tweedie(power=1.3)",
        "squared",
        "huber(width=2.0)",
        "quantile(level=0.9, width=0.5)",
    ],
)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_relative_target_has_the_loss_of_the_shifted_score(name: str, seed: int) -> None:
    """The two differ by a number that does not depend on the score."""
    loss, rng = losses.loss_by_name(name), np.random.default_rng(seed)
    y, weight, offset = rng.uniform(0.1, 5, 9), rng.random(9), rng.uniform(-3, 3, 9)
    rates, weights = losses.relative(loss, y, weight, offset)
    one, other = rng.uniform(-4, 4, (2, 9))
    np.testing.assert_allclose(
        weight * (loss.value(y, one + offset) - loss.value(y, other + offset)),
        weights * (loss.value(rates, one) - loss.value(rates, other)),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize(
    "fit",
    [
        lambda **given: jr.boosting.fit(X, COUNTS, **SMALL, **given),
        lambda **given: jr.rulefit.fit(X, COUNTS, l1_penalty=0.05, **given),
        lambda **given: jr.glrm.fit(X, COUNTS, **given),
        lambda **given: jr.lltboost.fit(X, COUNTS, time_limit=0, **given),
        lambda **given: jr.ltrnet.fit(X, COUNTS, time_limit=0, **given),
        lambda **given: jr.lire.optimal(X, COUNTS, **FEW, **given),
        lambda **given: SimpleNamespace(model=jr.lire.near_optimal(X, COUNTS, **FEW, **given)[0]),
    ],
    ids=["boosting", "rulefit", "glrm", "lltboost", "ltrnet", "optimal", "near_optimal"],
)
def test_every_learner_of_counts_has_the_unit_of_exposure_in_its_intercept(fit: Any) -> None:
    model = fit(loss="poisson", exposure=EXPOSURE).model
    mean = jr.predict(model, X, exposure=EXPOSURE)
    assert mean.sum() == pytest.approx(COUNTS.sum(), rel=0.1)
    np.testing.assert_allclose(mean, EXPOSURE * jr.predict(model, X))
    of_means = jr.losses.poisson.value(COUNTS, np.log(mean)).mean()
    assert jr.risk(model, X, COUNTS, exposure=EXPOSURE) == pytest.approx(of_means)
    with pytest.raises(ValueError, match=r"fitted with exposure; pass exposure= .*numpy.ones"):
        jr.risk(model, X, COUNTS)
    shifted = fit(loss="poisson", offset=np.log(EXPOSURE))
    assert jr.risk(shifted.model, X, COUNTS, exposure=EXPOSURE) == pytest.approx(
        jr.risk(model, X, COUNTS, offset=np.log(EXPOSURE)), rel=1e-6
    )
    assert not {"offset", "exposure"} & dict(model.options).keys()


def test_refitted_rates_are_those_of_scikit_learn() -> None:
    from sklearn.linear_model import PoissonRegressor

    model = jr.boosting.fit(X, COUNTS, loss="poisson", exposure=EXPOSURE, **SMALL).model
    ours = jr.refit(model, X, COUNTS, exposure=EXPOSURE, l2_penalty=0.0)
    columns = model.conjunctions.satisfied(jr.as_table(X)).astype(float)
    theirs = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(
        columns, COUNTS / EXPOSURE, sample_weight=EXPOSURE
    )
    np.testing.assert_allclose(jr.predict(ours, X), theirs.predict(columns), rtol=1e-4)


def test_offsets_of_numbers_are_subtracted() -> None:
    offset = 100 * X[:, 2]
    y = 3.0 * (X[:, 0] > 0) + offset
    fit = jr.boosting.fit(X, y, loss="squared", offset=offset, max_rules=1, l2_penalty=0.0)
    error = jr.predict(fit.model, X, offset=offset) - y
    assert np.abs(error).mean() < 0.2


def test_cross_validation_and_estimators_take_them() -> None:
    fit = jr.boosting.cross_validate(
        X, COUNTS, loss="poisson", exposure=EXPOSURE, max_rules=2, n_folds=2
    )
    assert fit.details.cross_validation.risks.shape == (2, 4)
    one = estimators.RuleBoostingRegressor(loss="poisson", max_rules=2)
    assert "exposure" not in one.get_params()
    one.fit(X, COUNTS, exposure=EXPOSURE)
    predicted = one.predict(X, exposure=EXPOSURE)
    assert predicted.sum() == pytest.approx(COUNTS.sum(), rel=0.1)
    assert one.score(X, COUNTS, exposure=EXPOSURE) == r2_score(COUNTS, predicted)
    with pytest.raises(ValueError, match="fitted with exposure; pass exposure="):
        one.score(X, COUNTS)
    with sklearn.config_context(enable_metadata_routing=True):
        one.set_fit_request(exposure=True).set_score_request(exposure=True)
        assert cross_val_score(one, X, COUNTS, params={"exposure": EXPOSURE}).min() > 0


BAD = np.where(np.arange(400) == 5, np.nan, 1.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"offset": BAD}, "offset has NaN or infinite"),
        ({"exposure": np.where(np.isnan(BAD), 0.0, 1.0)}, "exposure must be positive"),
        ({"exposure": EXPOSURE[:-1]}, "exposure has shape .* 400 rows"),
        ({"offset": 1e3 * np.ones(400)}, "offset has logarithms beyond 300"),
        ({"offset": np.ones(400), "loss": "logistic"}, "offset and exposure are for the losses"),
        ({"exposure": np.ones(400), "loss": "squared"}, "exposure is for losses with the log"),
        ({"offset": np.ones(400), "loss": "exponential"}, "offset and exposure are for"),
    ],
)
def test_bad_offsets_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        jr.boosting.fit(X, COUNTS, **{"loss": "poisson"} | given)


def test_rows_in_another_order_are_refused() -> None:
    frame, counts, years = pd.DataFrame(X), pd.Series(COUNTS), pd.Series(EXPOSURE)
    counts_back, years_back = counts[::-1], years[::-1]
    poisson: dict[str, Any] = {"loss": "poisson", "exposure": years}
    model = jr.boosting.fit(frame, counts, max_rules=1, **poisson).model
    estimator = estimators.RuleBoostingRegressor(loss="poisson", max_rules=1)
    for back, call in (
        ("y", lambda: jr.boosting.fit(frame, counts_back, **poisson)),
        ("y", lambda: jr.refit(model, frame, counts_back, exposure=years)),
        ("y", lambda: jr.compare(frame, counts_back, **poisson)),
        ("sample_weight", lambda: jr.rulefit.fit(frame, counts, years_back, **poisson)),
        ("exposure", lambda: jr.lire.fit(frame, counts, loss="poisson", exposure=years_back)),
        ("exposure", lambda: jr.glrm.path(frame, counts, loss="poisson", exposure=years_back)),
        ("offset", lambda: jr.boosting.cross_validate(frame, counts + 0.5, offset=years_back)),
        ("exposure", lambda: jr.predict(model, frame, exposure=years_back)),
        ("exposure", lambda: jr.explain(model, frame, exposure=years_back)),
        ("exposure", lambda: jr.risk(model, frame, counts, exposure=years_back)),
        ("exposure", lambda: jr.refit(model, frame, counts, exposure=years_back)),
        ("exposure", lambda: estimator.fit(frame, counts, exposure=years_back)),
        ("ids", lambda: jr.report(model, frame, counts, path=None, ids=years_back)),
    ):
        with pytest.raises(ValueError, match=f"{back} has the index of X in another order"):
            call()


def test_negative_counts_and_models_of_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="y must be non-negative for the poisson loss"):
        jr.boosting.fit(X, COUNTS - 1, loss="poisson", exposure=EXPOSURE)
    model = jr.boosting.fit(X, COUNTS > 1, max_rules=1).model
    with pytest.raises(ValueError, match="models that predict numbers"):
        jr.predict(model, X, exposure=EXPOSURE)


@pytest.mark.parametrize("factor", [0.01, 400.0])
def test_a_factor_of_weights_and_penalties_does_not_change_probabilities(factor: float) -> None:
    labels, weight = (
        np.where(X[:, 0] + RNG.normal(size=400) > 0, "b", "a"),
        RNG.uniform(0.5, 2, 400),
    )
    # A threshold between cut points has a price in likelihood.
    lists: dict[str, Any] = {"max_rules": 2, "max_cut_points": 9}
    fits: list[Any] = [
        lambda w, c: jr.exact_list.fit(X, labels, w, literal_penalty=4.0 * c, **lists),
        lambda w, c: jr.ssrl.fit(X, labels, w, literal_penalty=4.0 * c, **lists),
        lambda w, c: jr.boosting.fit(
            X, labels, w, max_rules=2, l2_penalty=4.0 * c, max_cut_points=20
        ),
    ]
    for fit in fits:
        one, other = (fit(weight * c, c).model for c in (1.0, factor))
        np.testing.assert_allclose(jr.predict_proba(one, X), jr.predict_proba(other, X), rtol=1e-6)
    listed = jr.ssrl.fit(X, labels, max_rules=2).model
    for change in (jr.refit, jr.calibrate):
        one, other = (change(listed, X, labels, sample_weight=weight * c) for c in (1.0, factor))
        np.testing.assert_allclose(one.probabilities, other.probabilities)


def _page_of(result: Any, y: Any, **given: Any) -> Any:
    """The data of a report, from the page."""
    import json
    import re

    page = jr.report(result, X, y, None, **given).html
    (text,) = re.findall(
        r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL
    )
    return json.loads(text)


@pytest.mark.parametrize("unit", [1.0, 365.25])
def test_a_report_shows_events_per_exposure(unit: float) -> None:
    exposure = unit * EXPOSURE
    fit = jr.boosting.fit(X, COUNTS, loss="poisson", exposure=exposure, **SMALL)
    group = np.where(X[:, 2] > 0, "b", "a")
    data = _page_of(fit, COUNTS, exposure=exposure, groups=group)
    assert data["target"] == "target per unit of exposure"
    (model,) = data["models"]
    holds = fit.model.conjunctions.satisfied(jr.as_table(X))
    everywhere = COUNTS.sum() / exposure.sum()
    rates = [COUNTS[held].sum() / exposure[held].sum() for held in holds.T]
    # Rules of the page stand in another order.
    assert sorted(rule["rate"] for rule in model["rules"]) == pytest.approx(sorted(rates))
    lifts = [rate - everywhere for rate in rates]
    assert sorted(rule["lift"] for rule in model["rules"]) == pytest.approx(sorted(lifts))
    quality = model["quality"]
    assert quality["risk"][1] == pytest.approx(jr.risk(fit.model, X, COUNTS, exposure=exposure))
    said = np.asarray(jr.predict(fit.model, X))
    for (mean, observed, n), rate in zip(quality["calibration"], np.unique(said), strict=True):
        held = said == rate
        assert (mean, observed, n) == pytest.approx(
            (rate, COUNTS[held].sum() / exposure[held].sum(), held.sum())
        )
    for (n, observed, mean, _), name in zip(quality["groups"], "ab", strict=True):
        held = group == name
        expected = jr.predict(fit.model, X, exposure=exposure)[held].sum()
        assert (n, observed, mean) == pytest.approx(
            (
                held.sum(),
                COUNTS[held].sum() / exposure[held].sum(),
                expected / exposure[held].sum(),
            )
        )
    assert data["truth"] == pytest.approx((COUNTS / exposure).tolist())


def test_a_report_of_numbers_is_without_their_offset() -> None:
    offset = 100 * X[:, 2]
    y = 3.0 * (X[:, 0] > 0) + offset
    fit = jr.boosting.fit(X, y, loss="squared", offset=offset, max_rules=1, l2_penalty=0.0)
    data = _page_of(fit, y, offset=offset)
    assert data["target"] == "target without the offset"
    assert data["models"][0]["quality"]["figures"]["mean squared loss"] < 0.1
    assert data["truth"] == pytest.approx((y - offset).tolist())


def test_a_report_asks_for_the_exposure_of_the_fit(tmp_path: Path) -> None:
    fit = jr.boosting.fit(X, COUNTS, loss="poisson", exposure=EXPOSURE, **SMALL)
    with pytest.raises(ValueError, match=r"fitted with exposure; pass exposure= .*numpy\.ones"):
        jr.report(fit, X, COUNTS, None)
    jr.save(fit.model, tmp_path / "model.json")
    with pytest.raises(ValueError, match="fitted with exposure"):
        jr.report(jr.load(tmp_path / "model.json"), X, COUNTS, None)
    classes = jr.boosting.fit(X, COUNTS > 1, max_rules=1)
    with pytest.raises(ValueError, match="offset and exposure are for rule ensembles"):
        jr.report(classes, X, COUNTS > 1, None, exposure=EXPOSURE)


def test_explanations_have_the_exposure_as_a_part() -> None:
    fit = jr.boosting.fit(X, COUNTS, loss="poisson", exposure=EXPOSURE, **SMALL)
    means = np.asarray(jr.predict(fit.model, X, exposure=EXPOSURE))
    for i, one in enumerate(jr.explain(fit.model, X[:5], exposure=EXPOSURE[:5])):
        assert one.prediction == pytest.approx(means[i])
        assert one.score is not None
        assert one.score[0] == pytest.approx(sum(part.weight[0] for part in one.parts))
        assert one.parts[-1].text == "log(exposure)"
        assert one.parts[-1].weight[0] == pytest.approx(np.log(EXPOSURE[i]))
    listed = jr.ssrl.fit(X, COUNTS > 1, max_rules=1).model
    with pytest.raises(ValueError, match="offset and exposure are for rule ensembles"):
        jr.explain(listed, X[:1], exposure=[1.0])
    with pytest.raises(ValueError, match=r"no probabilities to calibrate; jaxrules\.refit"):
        jr.calibrate(fit.model, X, COUNTS)
    with pytest.raises(ValueError, match="two classes"):
        jr.scorecard(fit.model, X, COUNTS)


def test_functions_without_exposure_say_what_to_pass() -> None:
    call: Any = jr.stability
    with pytest.raises(TypeError, match="no argument 'offset'; pass y - offset as y"):
        call("boosting", X, COUNTS, offset=EXPOSURE)
    call = jr.ssrl.fit
    with pytest.raises(TypeError, match=r"ssrl.fit has no argument 'exposure'; boosting, "):
        call(X, COUNTS > 1, exposure=EXPOSURE)
    call = jr.boosting.fit
    with pytest.raises(TypeError, match=r"boosting.fit has no argument 'groups'; it is for folds"):
        call(X, COUNTS > 1, groups=EXPOSURE)
    call = jr.importance
    with pytest.raises(TypeError, match="does not depend on it; omit it"):
        call(jr.boosting.fit(X, COUNTS > 1, max_rules=1).model, X, exposure=EXPOSURE)


def test_comparisons_take_exposure_and_loss() -> None:
    """All methods, those of scikit-learn too, fit rates with the exposure as weight, and are rated
    on them.
    """
    from sklearn.linear_model import PoissonRegressor

    methods = {"boosting": "boosting", "cart": "cart", "glm": PoissonRegressor(), "lire": "linear"}
    options: dict[str, Any] = {"methods": methods, "folds": 2, "inner_folds": 2, "seed": 1}
    found = jr.compare(X, COUNTS, loss="poisson", exposure=EXPOSURE, **options)
    rates = COUNTS / EXPOSURE
    same = jr.compare(X, rates, loss="poisson", sample_weight=EXPOSURE, **options)
    assert found.risk == "loss"
    for one, other in zip(found.contestants, same.contestants, strict=True):
        np.testing.assert_allclose(one.risks, other.risks, rtol=1e-12)
    assert "does not minimise the loss 'poisson'" in found["lire"].notes
    held, means = found.folds[0], np.zeros(len(X))
    for k in (0, 1):
        glm = PoissonRegressor().fit(X[held != k], rates[held != k], EXPOSURE[held != k])
        means[held == k] = glm.predict(X[held == k])
    losses = means - rates * np.log(means)
    expected = [np.average(losses[held == k], weights=EXPOSURE[held == k]) for k in (0, 1)]
    np.testing.assert_allclose(found["glm"].chosen_risks, expected)
    fit = found.refit("boosting", X, COUNTS, exposure=EXPOSURE)
    total = jr.predict(fit.model, X, exposure=EXPOSURE).sum()
    assert total == pytest.approx(COUNTS.sum(), rel=0.05)
    page = _page_of(found, COUNTS, exposure=EXPOSURE)
    assert page["target"] == "target per unit of exposure"
    (model,) = page["models"]
    assert model["quality"]["risk"][1] == pytest.approx(
        jr.risk(fit.model, X, COUNTS, exposure=EXPOSURE)
    )
    for without in (found.refit, lambda _, *rows: jr.report(found, *rows, None)):
        with pytest.raises(ValueError, match="comparison has exposure; pass exposure="):
            without("boosting", X, COUNTS)
    with pytest.raises(ValueError, match="fitted with exposure"):
        jr.risk(fit.model, X, COUNTS)


def test_comparisons_name_losses_that_do_not_fit() -> None:
    for wrong, options in [
        ('exposure is for losses .* pass loss="poisson"', {"exposure": EXPOSURE}),
        ("pass loss=, too", {"risk": "loss"}),
        (
            "risk='error' does not fit loss='poisson', of numbers",
            {"risk": "error", "loss": "poisson"},
        ),
        ("loss must be one of", {"loss": "deviance"}),
        ("exposure has shape", {"loss": "poisson", "exposure": EXPOSURE[1:]}),
    ]:
        with pytest.raises(ValueError, match=wrong):
            jr.compare(X, COUNTS, methods=["cart"], **options)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_a_loss_of_classes_rates_probabilities(loss: str) -> None:
    y = COUNTS > 1
    found = jr.compare(X, y, methods=["boosting", "cart"], loss=loss, folds=2, inner_folds=2)
    usual = jr.compare(X, y, methods=["cart"], risk="log_loss", folds=2, inner_folds=2)
    assert (found.risk, np.isfinite(found["boosting"].chosen_risks).all()) == ("loss", True)
    if loss == "logistic":
        np.testing.assert_allclose(found["cart"].risks, usual["cart"].risks)


def test_rates_with_weights_are_compared() -> None:

    def poisson(X: Any, y: Any, sample_weight: Any) -> Any:
        return jr.boosting.fit(X, y, sample_weight, loss="poisson", **SMALL)

    found = jr.compare(
        X, COUNTS / EXPOSURE, methods={"poisson": poisson}, sample_weight=EXPOSURE, folds=2,
        inner_folds=2, risk="squared",
    )  # fmt: skip
    total = 0.0
    for k in (0, 1):
        held = found.folds[0] == k
        model = poisson(X[~held], (COUNTS / EXPOSURE)[~held], EXPOSURE[~held]).model
        wrong = (np.asarray(jr.predict(model, X[held])) - (COUNTS / EXPOSURE)[held]) ** 2
        total += np.average(wrong, weights=EXPOSURE[held]) / 2
    assert found.rows[0].risk == pytest.approx(total)
