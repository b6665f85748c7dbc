"""What every learner promises, for every search and loss of the catalogue."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import math
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numba.core.event
import numpy as np
import pytest

import jaxrules as jr
from catalogue import CASES, LEARNERS, Case, Learner
from problems import CLASSES, N_ROWS, NOISY, PERFECT, WEIGHTS, X, pool, size

# Contracts that are not kept yet, by test. Whoever mends one deletes its line.
PENDING = {
    "test_claims_are_true[lire-published-*]": "the last refit is not in the history",
    "test_claims_are_true[paths-local-logistic]": "the history mixes the cost with that of its quadratic models",
    "test_claims_are_true[paths-exact-squared]": "a search that closes at once records no step",
    "test_claims_are_true[paths-any-*]": "a search that closes at once records no step",
    "test_claims_are_true[paths-unit-*]": "a search that closes at once records no step",
    "test_ctrl_c_in_a_callback[*-paths-exact-*]": "as above; Ctrl-C between the quadratic models is not taken",
    "test_ctrl_c_in_a_callback[*-paths-local-logistic]": "Ctrl-C between the quadratic models is not taken",
    "test_ctrl_c_in_a_callback[*-paths-any-*]": "a search that closes at once reports nothing",
    "test_ctrl_c_in_a_callback[*-paths-unit-*]": "a search that closes at once reports nothing",
    "test_ctrl_c_at_any_time[paths-*-logistic]": "Ctrl-C between the quadratic models is not taken",
    "test_integer_weights_are_repeated_rows[boosting-orthogonal-optimal-logistic]": "||q_perp|| knows no weights",
    "test_integer_weights_are_repeated_rows[boosting-orthogonal-*-squared]": "||q_perp|| knows no weights",
    "test_the_signature_is_the_common_one[paths]": "arguments by position",
    "test_many_classes_*[lire-*": "two classes only",
    "test_a_fit_can_be_repeated_*[lire-*": "some settings are not kept",
    "test_a_fit_can_be_repeated_*[paths-*": "some settings are not kept",
    **{
        f"test_bad_arguments_are_refused_by_name[{argument}]": "unlike checks of arguments"
        for argument in (
            "lire-penalise_intercept", "lire-seed",
            "paths-seed",
        )
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def pending(request: pytest.FixtureRequest) -> None:
    name = request.node.name.replace("[", "<")  # fnmatch reads brackets as sets
    for pattern, reason in PENDING.items():
        if fnmatch.fnmatch(name, pattern.replace("[", "<")):
            request.applymarker(pytest.mark.xfail(strict=True, reason=reason))


each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


@functools.cache
def fitted(case: Case) -> jr.Fit[Any]:
    """The fit that several contracts look at."""
    return case.fit()


class Clock:
    """Every look at it takes a second."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return float(self.reads)


def same(one: Any, other: Any) -> bool:
    """Whether two models are equal in every number and every name."""
    ours, theirs = jax.tree.flatten(one), jax.tree.flatten(other)
    return ours[1] == theirs[1] and all(map(np.array_equal, ours[0], theirs[0]))


def check(case: Case, fit: jr.Fit[Any]) -> None:
    """A valid model, and claims that hold whether or not the search came to its end."""
    fit.model.validate()
    assert np.isfinite(np.asarray(jr.decision_function(fit.model, X))).all()
    for claim in case.claims(fit):
        assert claim.stated == pytest.approx(claim.recomputed, rel=1e-9, abs=1e-12)
        sign = 1 if claim.sense == "min" else -1
        tolerance = 1e-6 * abs(claim.stated) + 1e-9
        if claim.bound is not None:
            assert sign * claim.bound <= sign * claim.stated + 1e-12
        if claim.optimum is not None:
            assert sign * claim.optimum <= sign * claim.stated + tolerance
            if claim.bound is not None:
                assert sign * claim.bound <= sign * claim.optimum + tolerance


@contextmanager
def compilations() -> Iterator[list[str]]:
    """Names of the functions that JAX traces and numba compiles, kernels and single operations alike."""
    names: list[str] = []

    def listen(event: str, seconds: float, **about: Any) -> None:
        if event == "/jax/core/compile/jaxpr_trace_duration":
            names.append(str(about.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        with numba.core.event.install_recorder("numba:compile") as recorder:
            yield names
        names += [str(event.data["dispatcher"]) for _, event in recorder.buffer if event.is_start]
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


# What a fit says is true


@each_case
def test_claims_are_true(case: Case) -> None:
    fit = fitted(case)
    check(case, fit)
    assert fit.status in ("converged", "optimal")
    assert (fit.status == "optimal") <= case.exact
    for claim in case.claims(fit):
        if case.exact and claim.optimum is not None:
            assert claim.bound is not None
            assert claim.stated == pytest.approx(claim.optimum, rel=1e-6)
            assert claim.bound == pytest.approx(claim.stated, rel=1e-5)
    assert fit.gap is None or fit.gap < 1e-5
    assert len(fit.history) > 0
    assert fit.history[-1].objective == pytest.approx(fit.objective, rel=1e-9)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.target == "labels" or not case.learner.linear], ids=str
)
def test_a_rule_that_explains_everything_is_found(case: Case) -> None:
    y = PERFECT[case.target]
    model = case.fit(y).model
    if case.target == "labels":
        assert jr.accuracy(model, X, y) == 1.0
    else:
        assert np.corrcoef(jr.predict(model, X), y)[0, 1] > 0.9


@each_case
def test_equal_fits_are_equal_and_the_second_compiles_nothing(case: Case) -> None:
    first = fitted(case)
    with compilations() as compiled:
        second = case.fit()
        if not case.draws_rows:  # another forest has another number of rules
            case.fit(np.roll(NOISY[case.target], 3))
    assert compiled == []
    assert same(first.model, second.model)
    assert (first.objective, first.bound, first.status) == (second.objective, second.bound, second.status)
    assert [step.objective for step in first.history] == [step.objective for step in second.history]


@each_case
def test_the_global_precision_changes_nothing(case: Case) -> None:
    first, before = fitted(case), dict(jax.config.values)
    jax.config.update("jax_enable_x64", True)
    try:
        second = case.fit()
        jax.config.update("jax_enable_x64", before["jax_enable_x64"])
        assert dict(jax.config.values) == before
    finally:
        jax.config.update("jax_enable_x64", before["jax_enable_x64"])
    assert first.status == second.status
    assert first.objective == pytest.approx(second.objective, rel=1e-6)
    np.testing.assert_allclose(
        jr.decision_function(first.model, X), jr.decision_function(second.model, X), rtol=1e-3, atol=1e-4
    )
    if case.target == "labels":
        np.testing.assert_array_equal(jr.predict(first.model, X), jr.predict(second.model, X))
    for leaf in jax.tree.leaves((first.model, second.model)):
        assert isinstance(leaf, np.ndarray)
        assert leaf.dtype in (np.float64, np.int32, np.int64, np.bool_)


@each_case
def test_a_saved_model_is_the_same_model(case: Case, tmp_path: Any) -> None:
    model = fitted(case).model
    jr.save(model, tmp_path / "model.json")
    loaded = jr.load(tmp_path / "model.json")
    assert same(model, loaded)
    assert str(loaded) == str(model)
    np.testing.assert_array_equal(jr.predict(loaded, X), jr.predict(model, X))
    if case.target == "labels":
        assert set(jr.predict(model, X)) <= {"yes", "no"}
        np.testing.assert_array_equal(jr.predict_proba(loaded, X), jr.predict_proba(model, X))


@each_case
def test_a_fit_can_be_repeated_from_its_options(case: Case) -> None:
    model = fitted(case).model
    options = dict(model.options)
    assert options.pop("learner") == case.learner.name
    assert (options.pop("chosen_l1_penalty", None) is not None) == (
        "l1_penalty" in options and not options["l1_penalty"]
    )
    arguments = set(inspect.signature(case.learner.fit).parameters) - {"X", "y", "sample_weight", "progress"}
    assert set(options) == arguments
    # What is not text or a number (rules, dictionaries) has to be given again.
    repeated = {name: case.settings[name] if value == "given" else value for name, value in options.items()}
    assert same(case.learner.fit(X, NOISY[case.target], **repeated).model, model)


# Many classes

many_classes = pytest.mark.parametrize(
    "case", [case for case in CASES if case.target == "labels" and not case.learner.linear], ids=str
)


@many_classes
def test_many_classes_are_each_against_the_rest(case: Case, tmp_path: Any) -> None:
    fit = case.fit(CLASSES)
    model = fit.model
    model.validate()
    assert model.schema.classes == ("high", "low", "middle")
    assert model.n_outputs == 3
    assert jr.accuracy(model, X, CLASSES) == 1.0
    probabilities = jr.predict_proba(model, X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.array(model.schema.classes)[probabilities.argmax(axis=1)] == jr.predict(model, X)).all()
    assert len(set(map(frozenset, model.conjunctions))) == jr.support(model)  # shared rules count once
    jr.save(model, tmp_path / "model.json")
    assert same(jr.load(tmp_path / "model.json"), model)
    if not case.draws_rows:
        alone = [case.fit(name == CLASSES) for name in model.schema.classes]
        assert fit.objective == pytest.approx(np.mean([one.objective for one in alone]), rel=1e-9)
        scores = np.stack([jr.decision_function(one.model, X) for one in alone], axis=1)
        np.testing.assert_allclose(jr.decision_function(model, X), scores, rtol=1e-9, atol=1e-12)
        if fit.bound is not None:
            assert fit.bound == pytest.approx(np.mean([one.bound for one in alone]), rel=1e-9)


@many_classes
def test_many_classes_within_limits(case: Case) -> None:
    def interrupt(progress: jr.Progress) -> None:
        raise KeyboardInterrupt

    for status, limit in (
        ("time_limit", {"time_limit": jr.Deadline(0.0, Clock())}), ("interrupted", {"progress": interrupt})
    ):  # fmt: skip
        fit = case.fit(CLASSES, **limit)
        fit.model.validate()
        assert fit.model.n_outputs == 3
        assert fit.status == status
        assert np.isfinite(np.asarray(jr.decision_function(fit.model, X))).all()


# Limits


@each_case
def test_no_time(case: Case) -> None:
    clock = Clock()
    fit = case.fit(time_limit=jr.Deadline(0.0, clock))
    assert fit.status == "time_limit" or (fit.status == "optimal" and case.exact)
    check(case, fit)
    assert len(fit.history) <= 1
    assert clock.reads < 50
    if isinstance(fit.model, jr.RuleEnsemble):
        assert jr.support(fit.model) <= 1


@each_case
def test_half_of_the_time(case: Case) -> None:
    clock = Clock()
    case.fit(time_limit=jr.Deadline(1e9, clock))
    whole, clock = clock.reads, Clock()
    fit = case.fit(time_limit=jr.Deadline(whole / 2, clock))
    assert fit.status == "time_limit" or same(fit.model, fitted(case).model)
    assert clock.reads < whole / 2 + 20
    check(case, fit)


def check_interrupted(case: Case, **arguments: Any) -> None:
    handler = signal.getsignal(signal.SIGINT)
    try:
        fit = case.fit(**arguments)
    except KeyboardInterrupt:
        pytest.fail("the fit raised KeyboardInterrupt")
    assert signal.getsignal(signal.SIGINT) is handler
    assert fit.status == "interrupted" or (fit.status == "optimal" and case.exact)
    check(case, fit)


@each_case
@pytest.mark.parametrize("how", ["raised", "signal"])
def test_ctrl_c_in_a_callback(case: Case, how: str) -> None:
    seen: list[jr.Progress] = []

    def stop(progress: jr.Progress) -> None:
        seen.append(progress)
        if how == "raised":
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    check_interrupted(case, progress=stop)
    assert 1 <= len(seen) <= 2  # what is over may still be told


@each_case
def test_ctrl_c_at_any_time(case: Case) -> None:
    class Impatient(Clock):
        def __call__(self) -> float:
            if self.reads == stop_at:
                signal.raise_signal(signal.SIGINT)
            return super().__call__()

    stop_at = -1
    clock = Impatient()
    case.fit(time_limit=jr.Deadline(1e9, clock))
    stop_at = clock.reads // 2
    check_interrupted(case, time_limit=jr.Deadline(1e9, Impatient()))


# Weights


@each_case
def test_weights_of_one_are_no_weights(case: Case) -> None:
    ones = np.ones(N_ROWS)
    ones.setflags(write=False)
    assert case.fit(sample_weight=ones).objective == pytest.approx(fitted(case).objective, rel=1e-9)


@pytest.mark.parametrize("case", [case for case in CASES if not case.draws_rows], ids=str)
def test_integer_weights_are_repeated_rows(case: Case) -> None:
    weighted = case.fit(sample_weight=WEIGHTS)
    repeated = case.learner.fit(
        X.loc[np.repeat(X.index, WEIGHTS)], np.repeat(NOISY[case.target], WEIGHTS), **case.settings
    )
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-6)
    np.testing.assert_allclose(
        jr.decision_function(weighted.model, X), jr.decision_function(repeated.model, X), atol=1e-3
    )


# Input


@each_learner
def test_the_signature_is_the_common_one(learner: Learner) -> None:
    parameters = inspect.signature(learner.fit).parameters
    assert list(parameters)[:2] == ["X", "y"]
    common = {"sample_weight": None, "missing": "refuse", "seed": 0, "time_limit": None, "progress": False}
    assert common.items() <= {name: parameter.default for name, parameter in parameters.items()}.items()
    for name in list(parameters)[2:]:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, name
        assert re.search(rf"^        (\w+, )*{name}(, \w+)*: ", learner.fit.__doc__ or "", re.MULTILINE), name
    for heading in ("Args:", "Returns:", "Raises:"):
        assert f"    {heading}\n" in (learner.fit.__doc__ or "")


Bad = tuple[Any, type[Exception]]
NUMBER: tuple[Bad, ...] = (("0.1", TypeError), (True, TypeError), ([1.0], TypeError), (math.nan, ValueError))
PENALTY = (*NUMBER, (-0.5, ValueError), (math.inf, ValueError))
POSITIVE = (*PENALTY, (0.0, ValueError))
INTEGER: tuple[Bad, ...] = (("2", TypeError), (True, TypeError), (2.5, TypeError), (-1, ValueError))
COUNT = (*INTEGER, (0, ValueError))
FLAG: tuple[Bad, ...] = ((1, TypeError), ("yes", TypeError), (None, TypeError))
CHOICE: tuple[Bad, ...] = (("none such", ValueError), (3, ValueError))
COEFFICIENTS: tuple[Bad, ...] = (([0.0], ValueError), ([math.nan] * 6, ValueError), ({"weight": 1.0}, ValueError))

BAD: dict[str, tuple[Bad, ...]] = {
    "approximation": (*POSITIVE, (1.5, ValueError)),
    "batch": (*COUNT, (4, ValueError)),
    "beam_width": COUNT,
    "condition_penalty": PENALTY,
    "corrective": FLAG,
    "cost": (*CHOICE, (None, ValueError)),
    "debias": FLAG,
    "encoding": (*CHOICE, (None, ValueError)),
    "end": COEFFICIENTS,
    "forbidden": (("size", TypeError), (["weight"], ValueError), ([7], ValueError), (range(6), ValueError)),
    "global_penalty": (*PENALTY, (None, TypeError)),
    "integer_steps": CHOICE,
    "intercept": FLAG,
    "l1_penalty": PENALTY,
    "l2_penalty": (*PENALTY, (None, TypeError)),
    "linear_terms": FLAG,
    "local_penalty": (*PENALTY, (None, TypeError)),
    "loss": (("hinge", ValueError),),
    "lower": (([0.0], ValueError), ([math.nan] * 6, ValueError), (0.5, ValueError)),
    "max_cut_points": COUNT,
    "max_evaluations": COUNT,
    "max_iterations": (*COUNT, (None, TypeError)),
    "max_length": COUNT,
    "max_rules": (*INTEGER, (None, TypeError)),
    "max_support": COUNT,
    "method": (*CHOICE, (None, ValueError)),
    "missing": (*CHOICE, (None, ValueError)),
    "n_folds": (*COUNT, (1, ValueError), (None, TypeError)),
    "objective": (*CHOICE, (None, ValueError)),
    "one_standard_error": FLAG,
    "penalise_intercept": FLAG,
    "pricing": (*CHOICE, (None, ValueError)),
    "progress": (("bar", TypeError), (1, TypeError), (None, TypeError)),
    "propositions": (([], TypeError), ("size > 1", TypeError)),
    "restarts": INTEGER,
    "rule_penalty": (*POSITIVE, (None, TypeError)),
    "rules": (("forest", TypeError), ([], TypeError), (pool().take([]), ValueError)),
    "rules_per_round": COUNT,
    "search": (*CHOICE, (None, ValueError)),
    "seed": INTEGER,
    "standardise": FLAG,
    "glrm.start": (*CHOICE, (None, ValueError)),
    "paths.start": COEFFICIENTS,
    "step_weights": (
        ("fast", TypeError), ([1, 1], ValueError), ([1, -1, 1], ValueError), ([1, math.nan, 1], ValueError),
        ([1, math.inf, 1], ValueError), ([1, 1, 0], ValueError),
    ),
    "steps": (*COUNT, (None, TypeError)),
    "time_limit": (("5", TypeError), (True, TypeError), (-1.0, ValueError), (math.nan, ValueError)),
    "tolerance": (*POSITIVE, (None, TypeError)),
    "upper": (([0.0], ValueError), ([math.nan] * 6, ValueError), (-0.5, ValueError)),
    "winsorise": (*PENALTY, (0.5, ValueError)),
}  # fmt: skip
"""What every learner that has the argument refuses. `learner.argument` where the name means something of its own."""


@pytest.mark.parametrize(
    ("learner", "name"),
    [(learner, name) for learner in LEARNERS for name in list(inspect.signature(LEARNERS[learner].fit).parameters)[2:]],
)
def test_bad_arguments_are_refused_by_name(learner: str, name: str) -> None:
    case = next(case for case in CASES if case.learner.name == learner)
    if name == "sample_weight":
        return  # below
    for value, error in BAD.get(name) or BAD[f"{learner}.{name}"]:
        with pytest.raises(error, match=rf"\b{name}\b"):
            case.fit(**{name: value})


NAN = np.where(np.arange(N_ROWS) == 5, np.nan, size)
BAD_DATA: dict[str, tuple[str, dict[str, Any], type[Exception]]] = {
    "X of one dimension": ("X", {"X": size}, ValueError),
    "X without rows": ("X", {"X": X[:0], "y": np.zeros(0)}, ValueError),
    "X without columns": ("X", {"X": X[[]]}, ValueError),
    "X of text": ("X", {"X": X.to_numpy().astype(str)}, TypeError),
    "X of objects": ("X", {"X": X.assign(size=[object()] * N_ROWS)}, TypeError),
    "X infinite": ("X", {"X": X.assign(size=np.where(np.arange(N_ROWS) == 5, np.inf, size))}, ValueError),
    "X missing": ("X", {"missing": "refuse"}, ValueError),
    "X empty column": ("X", {"X": X.assign(size=np.nan)}, ValueError),
    "no X": ("X", {"X": None}, ValueError),
    "y too short": ("y", {"y": size[1:]}, ValueError),
    "y of two dimensions": ("y", {"y": np.ones((N_ROWS, 2))}, ValueError),
    "y missing": ("y", {"y": NAN}, ValueError),
    "y infinite": ("y", {"y": np.where(np.isnan(NAN), np.inf, 0)}, ValueError),
    "y of objects": ("y", {"y": [object()] * N_ROWS}, TypeError),
    "y mixed": ("y", {"y": ["yes", 1] * (N_ROWS // 2)}, TypeError),
    "no y": ("y", {"y": None}, ValueError),
    "negative weights": ("sample_weight", {"sample_weight": -np.ones(N_ROWS)}, ValueError),
    "zero weights": ("sample_weight", {"sample_weight": np.zeros(N_ROWS)}, ValueError),
    "missing weights": ("sample_weight", {"sample_weight": NAN}, ValueError),
    "too few weights": ("sample_weight", {"sample_weight": [1.0]}, ValueError),
    "weights of two dimensions": ("sample_weight", {"sample_weight": np.ones((N_ROWS, 1))}, ValueError),
    "weights of text": ("sample_weight", {"sample_weight": ["1"] * N_ROWS}, TypeError),
}
BAD_TARGETS: dict[str, dict[str, tuple[Any, type[Exception]]]] = {
    "labels": {"one class": (["yes"] * N_ROWS, ValueError), "measurements": (size + np.arange(N_ROWS), ValueError)},
    "numbers": {"text": (["yes", "no"] * (N_ROWS // 2), TypeError)},
    "counts": {"text": (["yes", "no"] * (N_ROWS // 2), TypeError), "negative": (size - 1, ValueError)},
}


@each_learner
@pytest.mark.parametrize("what", BAD_DATA)
def test_bad_data_are_refused_by_name(learner: Learner, what: str) -> None:
    name, change, error = BAD_DATA[what]
    case = next(case for case in CASES if case.learner is learner)
    arguments = {"X": X, "y": NOISY[case.target]} | case.settings | change
    with pytest.raises(error, match=rf"\b{name}\b"):
        learner.fit(**arguments)


@pytest.mark.parametrize("case", {(case.learner, case.loss): case for case in CASES}.values(), ids=str)
def test_bad_targets_are_refused(case: Case) -> None:
    for y, error in BAD_TARGETS[case.target].values():
        with pytest.raises(error, match=r"\by\b"):
            case.learner.fit(X, y, **case.settings)
    if case.target == "labels":
        with pytest.raises(ValueError, match=r"\bsample_weight\b"):
            case.fit(sample_weight=(NOISY["labels"] == "yes").astype(float))
        if case.learner.linear:
            with pytest.raises(ValueError, match=r"y has 3 classes"):
                case.fit(CLASSES)
