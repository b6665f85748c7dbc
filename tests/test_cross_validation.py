"""Cross-validation against plain refits, one way for all learners; its limits,
its choice, its bad input.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.ensembles import extraction
from jaxrules.ensembles.lire import candidates, fitting
from jaxrules.learning import cross_validation
from jaxrules.learning.cross_validation import CrossValidation, folds
from jaxrules.learning.training import training_data
from jaxrules.losses import logistic, squared
from problems import CLASSES, NOISY, WEIGHTS, X, pool

RULES = pool()
Chooser = Callable[..., jr.Fit[Any]]
LEARNERS: dict[
    str, tuple[Chooser, Chooser, dict[str, Any], dict[str, Any]]
] = {  # options of both, and the grid
    "lire": (
        jr.lire.cross_validate,
        jr.lire.fit,
        {"rules": RULES, "restarts": 0},
        {"global_penalties": [0.01, 0.05], "l2_penalties": [0.25, 2.0]},
    ),
    "rulefit": (
        jr.rulefit.cross_validate,
        jr.rulefit.fit,
        {"rules": RULES, "tolerance": 1e-9},
        {"l1_penalties": [0.01, 0.05]},
    ),
    "glrm": (jr.glrm.cross_validate, jr.glrm.fit, {}, {"rule_penalties": [0.01, 0.05]}),
    "boosting": (
        jr.boosting.cross_validate,
        jr.boosting.fit,
        {"search": "greedy"},
        {"max_rules": 3},
    ),
    "lltboost": (
        jr.lltboost.cross_validate,
        jr.lltboost.fit,
        {"max_length": 2, "max_nonzeros": 2},
        {"max_rules": 3},
    ),
    "ltrnet": (
        jr.ltrnet.cross_validate,
        jr.ltrnet.fit,
        {"max_rules": 3, "max_length": 2, "iterations": 50, "restarts": 2},
        {"l1_penalties": [1e-3, 1e-2], "binary_penalties": [1e-2, 1e-1]},
    ),
}
each = pytest.mark.parametrize("name", LEARNERS)


def chosen(name: str, y: Any = NOISY["labels"], **changes: Any) -> jr.Fit[Any]:
    choose, _, options, grid = LEARNERS[name]
    return choose(X, y, **{"n_folds": 2, "missing": "own_category", **options, **grid, **changes})


def table_of(fit: jr.Fit[Any]) -> CrossValidation:
    found = fit.details["cross_validation"]
    assert isinstance(found, jr.CrossValidation)
    return found


def same(one: Any, other: Any) -> bool:
    ours, theirs = jax.tree.flatten(one), jax.tree.flatten(other)
    return ours[1] == theirs[1] and all(map(np.array_equal, ours[0], theirs[0]))


@each
@pytest.mark.parametrize(
    "target", ["labels", pytest.param("numbers", marks=pytest.mark.slow), "classes"]
)
def test_risks_are_those_of_plain_fits(name: str, target: str) -> None:
    """Every setting in every fold, with weights of which some are zero."""
    y = CLASSES if target == "classes" else NOISY[target]
    weights = WEIGHTS + (WEIGHTS > 0)
    half = (
        {"loss": "exponential"} if name == "lire" and target == "labels" else {}
    )  # whose scores are half log-odds
    fit = chosen(name, y, sample_weight=weights, **half)
    found = table_of(fit)
    plain, options = LEARNERS[name][1], LEARNERS[name][2] | half
    rows = np.flatnonzero(weights)
    loss = squared if target == "numbers" else logistic
    fold_of = folds(training_data(X, y, loss, sample_weight=weights, missing="own_category"), 2, 0)
    scale = 2.0 if half else 1.0
    for k in range(2):
        inside, outside = rows[fold_of != k], rows[fold_of == k]
        for i, setting in list(enumerate(found.settings))[:: 1 if target == "labels" else 3]:
            known = {
                **options,
                **setting,
                "missing": "own_category",
                "sample_weight": weights[inside],
            }
            model = plain(X.iloc[inside], y[inside], **known).model
            scores = scale * np.asarray(jr.decision_function(model, X.iloc[outside])).reshape(
                len(outside), -1
            )
            if target == "numbers":
                losses = (y[outside][:, None] - scores) ** 2
            elif model.link == "softmax":
                own = np.searchsorted(model.schema.classes, y[outside])
                shares = jr.predict_proba(model, X.iloc[outside])
                losses = -np.log(shares[np.arange(len(own)), own])[:, None]
            else:
                of = np.asarray(model.schema.classes)[-scores.shape[1] :]
                losses = np.logaddexp(0, -np.where(y[outside][:, None] == of, 1, -1) * scores)
            risk = np.average(losses.mean(axis=1), weights=weights[outside])
            assert found.risks[k, i] == pytest.approx(risk, rel=2e-2)
            assert found.sizes[k, i] == pytest.approx(jr.support(model), abs=1)


@each
def test_equal_seeds_choose_equally_and_the_result_is_a_plain_fit(name: str) -> None:
    first, again = chosen(name, seed=3), chosen(name, seed=3)
    assert same(first.model, again.model)
    np.testing.assert_array_equal(table_of(first).risks, table_of(again).risks)
    assert not np.array_equal(table_of(first).risks, table_of(chosen(name, seed=4)).risks)
    options = dict(first.model.options)
    assert options["learner"] == name
    repeated = {
        argument: options[argument]
        for argument in options
        if argument not in ("learner", "time_limit", "chosen_l2_penalty")
    }
    repeated = {
        argument: RULES if value == "given" else value for argument, value in repeated.items()
    }
    plain = LEARNERS[name][1](X, NOISY["labels"], **repeated)
    assert plain.objective == pytest.approx(first.objective, rel=1e-7)
    assert same(plain.model, first.model) or name == "rulefit"  # which walks there down a path
    for argument, value in table_of(first).setting.items():
        assert options[argument] == value


@each
def test_one_standard_error_makes_smaller_models(name: str) -> None:
    small, best = (table_of(chosen(name, one_standard_error=rule)) for rule in (True, False))
    np.testing.assert_array_equal(small.risks, best.risks)
    assert best.chosen == np.lexsort((best.size, best.risk))[0]
    assert small.size[small.chosen] <= best.size[best.chosen]
    assert small.risk[small.chosen] <= best.risk[best.chosen] + best.standard_error[best.chosen]


@each
@pytest.mark.slow
def test_the_default_grid(name: str) -> None:
    choose, _, options, _ = LEARNERS[name]
    found = table_of(choose(X, NOISY["labels"], n_folds=2, missing="own_category", **options))
    assert len(found.settings) >= 5
    text = str(found).splitlines()
    assert len(text) == 1 + len(found.settings)
    assert [line.endswith("<- chosen") for line in text[1:]].index(True) == found.chosen
    assert all(argument in text[0] for argument in (*found.setting, "risk", "s.e.", "rules"))


@each
def test_limits(name: str) -> None:
    class Clock:
        reads = 0

        def __call__(self) -> float:
            self.reads += 1
            return float(self.reads)

    chosen(name)  # compiles, which asks for the time now and then
    fit = chosen(name, time_limit=jr.Deadline(0.0, Clock()))
    assert fit.status == "time_limit"
    assert np.isnan(table_of(fit).risks).all()
    clock = Clock()
    whole = chosen(name, time_limit=jr.Deadline(1e9, clock))
    assert not np.isnan(table_of(whole).risks).any()
    half = chosen(name, time_limit=jr.Deadline(clock.reads / 2, Clock()))
    assert half.status == "time_limit"
    half.model.validate()
    reached = ~np.isnan(table_of(half).risks)
    np.testing.assert_array_equal(table_of(half).risks[reached], table_of(whole).risks[reached])


@each
@pytest.mark.parametrize("how", ["raised", "signal"])
def test_ctrl_c(name: str, how: str) -> None:
    seen: list[jr.Progress] = []

    def stop(progress: jr.Progress) -> None:
        seen.append(progress)
        if len(seen) == 2:
            if how == "raised":
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    fit = chosen(name, progress=stop)
    assert fit.status == "interrupted"
    assert signal.getsignal(signal.SIGINT) is handler
    fit.model.validate()


# Rules of the folds


def test_rules_are_taken_anew_from_the_rows_of_every_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def watched(rules: Any, data: Any, *rest: Any, **options: Any) -> Any:
        asked.append((rules, data.rows))
        return made(RULES if rules is None else rules, data, *rest, **options)

    made = extraction.rule_pool
    for module in (candidates, fitting):
        monkeypatch.setattr(module, "rule_pool", watched)
    chosen("lire", rules=None, n_folds=3)
    fold_of = folds(training_data(X, NOISY["labels"], logistic, missing="own_category"), 3, 0)
    grown = [rows for rules, rows in asked if rules is None]
    for k in range(3):
        np.testing.assert_array_equal(grown[k], np.flatnonzero(fold_of != k))
    assert [len(rows) for rows in grown] == [32, 32, 32, 48]


# What is chosen


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_choice_is_within_a_standard_error_and_the_smallest(seed: int, rule: bool) -> None:
    rng = np.random.default_rng(seed)
    risks, sizes = rng.integers(1, 5, (4, 7)) / 4, rng.integers(0, 4, (4, 7)).astype(float)
    unreached = int(rng.integers(0, 7))
    risks[3, unreached:] = sizes[3, unreached:] = np.nan
    at = cross_validation.choose(risks, sizes, rule, 5)
    folds_used, competing = (4, np.arange(unreached)) if unreached else (3, np.arange(7))
    mean, size = (
        risks[:folds_used, competing].mean(axis=0),
        sizes[:folds_used, competing].mean(axis=0),
    )
    assert at in competing
    least = mean.argmin()
    if not rule:
        assert mean[at] == mean.min()
        return
    errors = [
        risks[:folds_used, i].std(ddof=1) / folds_used**0.5
        for i in np.flatnonzero(mean == mean[least])
    ]
    assert mean[at] <= mean[least] + max(errors)
    assert size[at] <= size[least]
    assert size[at] <= size[mean <= mean[least] + min(errors)].min()


@pytest.mark.parametrize("exponent", [-500, 620])
def test_the_choice_does_not_depend_on_the_scale(exponent: int) -> None:
    risks, sizes = np.array([[1.0, 3.0, 2.0], [1.25, 1.0, 3.5]]), np.array([[3.0, 2.0, 1.0]] * 2)
    assert cross_validation.choose(2.0**exponent * risks, sizes, True, 0) == 0
    risks[1, 0] = 3.0
    assert cross_validation.choose(2.0**exponent * risks, sizes, True, 0) == 2


def test_nothing_measured_takes_the_other_choice() -> None:
    assert cross_validation.choose(np.full((2, 3), np.nan), np.full((2, 3), np.nan), True, 2) == 2


def test_folds_spread_classes_evenly() -> None:
    y = np.repeat(["a", "b", "c"], [50, 20, 4])
    data = training_data(np.arange(74.0)[:, None], y, logistic)
    fold_of = folds(data, 5, 0)
    for label in "abc":
        counts = np.bincount(fold_of[y == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert not np.array_equal(fold_of, folds(data, 5, 1))


# Bad input


@each
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_folds": 1}, ValueError, "n_folds must be at least 2"),
        (
            {"n_folds": 49},
            ValueError,
            "n_folds must be at most 48, the number of rows .* fit with given penalties",
        ),
        ({"n_folds": "two"}, TypeError, "n_folds"),
        ({"one_standard_error": "yes"}, TypeError, "one_standard_error"),
        ({"seed": -1}, ValueError, "seed must be"),
        ({"y": np.arange(48) == 5}, ValueError, "y has only one row of class True,"),
        ({"time_limit": -1}, ValueError, "time_limit"),
        ({"missing": "perhaps"}, ValueError, "missing"),
    ],
)
def test_bad_input_names_the_argument(
    name: str, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        chosen(name, **change)


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("lire", "global_penalties"), ("lire", "local_penalties"), ("lire", "l2_penalties"),
        ("rulefit", "l1_penalties"), ("glrm", "rule_penalties"), ("boosting", "l2_penalties"),
        ("ltrnet", "l1_penalties"), ("ltrnet", "binary_penalties"),
    ],
)  # fmt: skip
def test_bad_grids_are_refused(name: str, argument: str) -> None:
    for wrong, error in (
        ([], ValueError),
        ([-1.0], ValueError),
        ("0.1", TypeError),
        ([np.nan], ValueError),
    ):
        with pytest.raises(error, match=argument):
            chosen(name, **{argument: wrong})


def test_pairs_of_penalties_have_one_length() -> None:
    with pytest.raises(ValueError, match="local_penalties has 1 values for 2 global_penalties"):
        chosen("lire", local_penalties=[0.1])


@pytest.mark.parametrize("name", ["boosting", "lltboost"])
def test_as_many_rules_as_can_be_tried(name: str) -> None:
    with pytest.raises(ValueError, match="max_rules must be at most 10000"):
        chosen(name, max_rules=2**40)


@pytest.mark.parametrize("name", ["boosting", "lltboost"])
def test_sizes_start_behind_the_rules_of_an_expert(name: str) -> None:
    found = table_of(chosen(name, first=RULES.take([0]), max_rules=3))
    assert [setting["max_rules"] for setting in found.settings[:2]] == [2, 3]
    with pytest.raises(ValueError, match="first has 3 rules, but max_rules=3 leaves none"):
        chosen(name, first=RULES.take([0, 1, 2]), max_rules=3)


def test_several_classes_of_a_network_need_the_logistic_loss() -> None:
    with pytest.raises(ValueError, match="y has 3 classes"):
        chosen("ltrnet", CLASSES, loss="exponential")
