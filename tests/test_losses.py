"""Losses: derivatives against jax.grad and differences, stability, custom functions, refusals."""

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules import losses
from jaxrules.ensembles.lire import bound_kernels
from jaxrules.ensembles.lire.objective import loss_terms
from jaxrules.ensembles.lire.problem import make_problem
from jaxrules.ensembles.lire.search import SupportSearch
from jaxrules.rules.rows import Activations
from jaxrules.solvers.linear import sparse_glm

SMOOTHED = ["quantile(level=0.9, width=0.5)", "absolute(width=0.3)", "huber(width=2.0)"]
NAMES = ["squared", "logistic", "exponential", "poisson", "gamma", "tweedie(power=1.3)", *SMOOTHED]


def a_target(loss: losses.Loss, number: float) -> float:
    return {
        "real": number,
        "sign": 1.0 if number > 0 else -1.0,
        "count": abs(number),
        "positive": abs(number) + 0.1,
    }[loss.target]


FORMULAS = {
    "squared": lambda y, f: (y - f) ** 2,
    "logistic": lambda y, f: jnp.log(1 + jnp.exp(-y * f)),
    "exponential": lambda y, f: jnp.exp(-y * f),
    "poisson": lambda y, f: jnp.exp(f) - y * f,
    "gamma": lambda y, f: y * jnp.exp(-f) + f,
    "tweedie(power=1.3)": lambda y, f: y * jnp.exp(-0.3 * f) / 0.3 + jnp.exp(0.7 * f) / 0.7,
    SMOOTHED[0]: lambda y, f: -0.1 * (y - f) + 0.5 * jnp.logaddexp(0.0, (y - f) / 0.5),
    SMOOTHED[1]: lambda y, f: f - y + 0.6 * jnp.logaddexp(0.0, (y - f) / 0.3),
    SMOOTHED[2]: lambda y, f: 4 * (jnp.sqrt(1 + (y - f) ** 2 / 4) - 1),
}


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)
@given(number=st.floats(-5, 5), score=st.floats(-8, 8))
def test_derivatives_are_those_of_the_formula(name: str, number: float, score: float) -> None:
    loss, oracle = losses.loss_by_name(name), losses.custom(FORMULAS[name])
    y, f = np.array([a_target(loss, number)]), np.array([score])
    for part in ("value", "gradient", "curvature"):
        mine = getattr(loss, part)(y, f)
        assert mine.dtype == np.float64
        assert mine.shape == (1,)
        np.testing.assert_allclose(mine, getattr(oracle, part)(y, f), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_jax_arrays_stay_jax_arrays_and_trace(name: str) -> None:
    loss = losses.loss_by_name(name)
    y, f = jnp.array([1.0, 1.0]), jnp.array([0.3, -0.2])
    for function in (loss.value, loss.gradient, loss.curvature):
        traced = jax.jit(function)(y, f)
        assert isinstance(traced, jax.Array)
        np.testing.assert_allclose(traced, function(np.asarray(y), np.asarray(f)), rtol=1e-5)


def test_extreme_scores_do_not_overflow() -> None:
    y, f = np.array([1.0, -1.0, 1.0, -1.0]), np.array([800.0, 800.0, -800.0, -800.0])
    np.testing.assert_array_equal(losses.logistic.value(y, f), [0.0, 800.0, 800.0, 0.0])
    np.testing.assert_array_equal(losses.logistic.gradient(y, f), [0.0, 1.0, -1.0, 0.0])
    np.testing.assert_array_equal(losses.exponential.gradient(y[[0, 3]], f[[0, 3]]), [0.0, 0.0])
    assert np.all(losses.logistic.curvature(y, f) >= 0)
    assert losses.logistic.gradient(np.array([1.0]), np.array([40.0]))[0] == -np.exp(-40.0)


@pytest.mark.parametrize("name", NAMES)
def test_curvature_bound_holds(name: str) -> None:
    loss = losses.loss_by_name(name)
    if loss.curvature_bound is not None:
        scores = np.linspace(-30, 30, 1001)
        assert np.max(loss.curvature(np.ones_like(scores), scores)) <= loss.curvature_bound


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SMOOTHED])
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), far=st.booleans())
def test_merged_rows_have_the_loss_of_the_rows(name: str, seed: int, far: bool) -> None:
    """Value, gradient and curvature at any scores, with weights, empty and weightless groups."""
    loss, rng = losses.loss_by_name(name), np.random.default_rng(seed)
    y = np.array(
        [
            a_target(loss, number)
            for number in 3 * rng.normal(size=30) + 1000.0 * (far and name == "squared")
        ]
    )
    weight, group = rng.integers(0, 3, 30) * rng.random(30), rng.integers(0, 8, 30)
    score = rng.uniform(-6, 6, 9)
    merged = losses.merge_rows(loss, y, weight, group, 9)
    assert merged.target.shape == merged.weight.shape == (9,)
    losses.check_target(loss, merged.target[merged.weight > 0], means=True)
    value = merged.weight @ loss.value(merged.target, score) + merged.constant
    assert value == pytest.approx(weight @ loss.value(y, score[group]), rel=1e-10)
    for part in (loss.gradient, loss.curvature):
        rows = np.bincount(group, weight * part(y, score[group]), 9)
        np.testing.assert_allclose(
            merged.weight * part(merged.target, score), rows, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_conjugate_is_the_largest_difference_of_line_and_loss(name: str, seed: int) -> None:
    """Fenchel and Young: equality at the gradient, a bound anywhere else;
    also for means of classes.
    """
    loss, rng = losses.loss_by_name(name), np.random.default_rng(seed)
    y = np.array([a_target(loss, number) for number in rng.normal(size=20)])
    if loss.target == "sign":
        y[:10] = rng.uniform(-1, 1, 10)
    score, other = rng.uniform(-5, 5, (2, 20))
    dual = loss.gradient(y, score)
    conjugate = losses.require(loss, "conjugate", "this test")
    at_dual = conjugate(y, dual)
    np.testing.assert_allclose(at_dual, dual * score - loss.value(y, score), rtol=1e-9, atol=1e-9)
    assert (at_dual >= dual * other - loss.value(y, other) - 1e-9).all()
    assert (
        -conjugate(y, np.zeros(20)) <= loss.value(y, other) + 1e-9
    ).all()  # the least value of the loss
    traced = jax.jit(conjugate)(jnp.asarray(y), jnp.asarray(dual))
    np.testing.assert_allclose(traced, at_dual, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "y", "inside", "outside"),
    [
        ("logistic", 1.0, (-1.0, -0.3, 0.0), (-1.1, 0.1)),
        ("logistic", 1.0, (-1.0 - 2e-15, 2e-15), (-1.0 - 1e-13, 1e-13)),  # up to rounding
        ("logistic", -1.0, (0.0, 0.3, 1.0), (-0.1, 1.1)),
        ("logistic", 0.0, (-0.5, 0.5), (-0.6, 0.6)),
        ("exponential", 1.0, (-7.0, 0.0), (0.1,)),
        ("exponential", -1.0, (0.0, 7.0), (-0.1,)),
        ("exponential", 0.5, (-7.0, 7.0), ()),
        ("poisson", 2.0, (-2.0, 5.0), (-2.1,)),
        ("poisson", 0.0, (0.0, 5.0), (-0.1,)),
        ("squared", 2.0, (-9.0, 9.0), ()),
    ],
)
def test_domains_of_conjugates(name: str, y: float, inside: tuple, outside: tuple) -> None:
    conjugate = losses.require(losses.loss_by_name(name), "conjugate", "this test")
    assert np.isfinite(conjugate(np.full(len(inside), y), np.array(inside))).all()
    assert (conjugate(np.full(len(outside), y), np.array(outside)) == np.inf).all()


def test_what_a_loss_lacks_is_named() -> None:
    log_cosh = losses.custom(lambda y, score: jnp.logaddexp(y - score, score - y))
    with pytest.raises(
        ValueError,
        match=r"loss '<lambda>' has no conjugate; the certificate of x needs one; use 'squ",
    ):
        losses.require(log_cosh, "conjugate", "the certificate of x")
    with pytest.raises(
        ValueError,
        match="loss 'poisson' has no curvature bound; y needs one; use 'squared', 'logist",
    ):
        losses.require(losses.poisson, "curvature_bound", "y")
    with pytest.raises(ValueError, match="'<lambda>' is not mergeable"):
        losses.merge_rows(log_cosh, np.zeros(2), np.ones(2), np.zeros(2, int), 1)


def test_custom_loss_is_float64_cached_and_traces_once() -> None:
    traces = 0

    def log_cosh(y: losses.Array, score: losses.Array) -> losses.Array:
        nonlocal traces
        traces += 1
        return jnp.logaddexp(y - score, score - y) - jnp.log(2.0)

    loss = losses.loss_by_name(log_cosh)
    assert loss is losses.loss_by_name(log_cosh)
    assert loss.name == "log_cosh"
    y, f = np.zeros(6), np.linspace(-1, 1, 6) + 1e-9
    gradient, curvature = losses.derivatives(loss, y, f)
    np.testing.assert_allclose(gradient, np.tanh(f), rtol=1e-12)
    np.testing.assert_allclose(curvature, 1 - np.tanh(f) ** 2, rtol=1e-12)
    before = traces
    losses.derivatives(loss, y + 1.0, f)
    assert traces == before
    assert isinstance(loss.gradient(jnp.zeros(5), jnp.zeros(5)), jax.Array)


@pytest.mark.parametrize(("name", "best"), [("squared", 2.75), ("poisson", np.log(2.75))])
def test_best_constant_of_reals_and_counts(name: str, best: float) -> None:
    y, weight = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0])
    assert losses.best_constant(losses.loss_by_name(name), y, weight) == pytest.approx(
        best, rel=1e-12
    )


def test_best_constant_of_classes() -> None:
    y = np.array([1.0, 1.0, 1.0, -1.0])
    assert losses.best_constant(losses.logistic, y) == pytest.approx(np.log(3), rel=1e-10)
    assert losses.best_constant(losses.exponential, y) == pytest.approx(np.log(3) / 2, rel=1e-10)
    with pytest.raises(ValueError, match="no finite best constant"):
        losses.best_constant(losses.logistic, np.ones(4))
    with pytest.raises(ValueError, match="no finite best constant"):
        losses.best_constant(losses.poisson, np.zeros(4))


def test_bad_losses_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="loss must be one of 'squared'"):
        losses.loss_by_name("hinge")
    with pytest.raises(TypeError, match="loss must be a name"):
        losses.loss_by_name(3)
    concave = losses.loss_by_name(lambda y, score: -((y - score) ** 2))
    with pytest.raises(ValueError, match="not convex"):
        losses.derivatives(concave, np.zeros(3), np.ones(3))
    broken = losses.loss_by_name(lambda y, score: jnp.log(score))
    with pytest.raises(ValueError, match="non-finite derivative"):
        losses.derivatives(broken, np.zeros(3), np.zeros(3))
    no_losses: list[Any] = [
        int,
        len,
        Exception,
        lambda y: y,
        lambda y, score: (y, score),
        lambda y, score: score > y,
    ]
    for no_loss in no_losses:
        with pytest.raises(
            TypeError, match=r"loss must be a function of \(y, score\) that JAX can differentiate"
        ):
            losses.loss_by_name(no_loss)


def test_bad_targets_are_refused() -> None:
    with pytest.raises(ValueError, match=r"-1 or \+1 for the logistic loss"):
        losses.check_target(losses.logistic, np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="non-negative for the poisson loss"):
        losses.check_target(losses.poisson, np.array([-1.0, 1.0]))
    with pytest.raises(ValueError, match="missing or infinite"):
        losses.check_target(losses.squared, np.array([np.nan, 1.0]))
    with pytest.raises(ValueError, match=r"for labels 0 and 1 pass 2 \* y - 1"):
        losses.check_target(losses.logistic, np.array([0.0, 1.0]), means=True)
    with pytest.raises(ValueError, match=r"-1 or \+1"):
        losses.check_target(losses.logistic, np.array([0.5, 1.0]))
    losses.check_target(losses.logistic, np.array([0.5, 1.0]), means=True)
    losses.check_target(losses.squared, np.array([-1.5, 2.0]))


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_pickles_of_the_librarys_losses_are_these_losses(name: str) -> None:
    """Solvers choose formulas by the identity of the loss, so a copy must be the same loss."""
    loss = losses.loss_by_name(name)
    for again in (pickle.loads(pickle.dumps(loss)), copy.copy(loss), copy.deepcopy(loss)):
        assert again is loss
    assert dataclasses.replace(loss) == loss
    assert dataclasses.replace(loss, value=abs) != loss


@pytest.mark.parametrize("name", ["logistic", "exponential", "squared"])
def test_an_unpickled_problem_has_the_same_solution(name: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((80, 6)) < 0.5
    y = rows @ rng.normal(size=6) + rng.normal(size=80)
    y = y if name == "squared" else np.sign(y)
    problem = make_problem(Activations.of_matrix(rows), y, np.ones(80), losses.loss_by_name(name))
    sparse = sparse_glm.SparseProblem.of(rows, y, name, None, True, None)
    again, sparse_again = pickle.loads(pickle.dumps((problem, sparse)))
    found = [
        SupportSearch(one, 0.01, 0.01).start_from(np.arange(1, 4), np.zeros(3)).objective
        for one in (problem, again)
    ]
    assert found[0] == found[1]
    assert sparse.solve(0.02).objective == sparse_again.solve(0.02).objective


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_compiled_search_has_the_same_losses(seed: int) -> None:
    """Its kernels cannot call a `Loss`, so they contain the formulas again."""
    rng = np.random.default_rng(seed)
    target, mass, score = (
        rng.choice([-1.0, -0.3, 0.6, 1.0], 20),
        rng.random(20),
        rng.uniform(-600, 600, 20),
    )
    for code, name in enumerate(bound_kernels.LOSSES):
        loss, (downhill, curvature) = losses.loss_by_name(name), np.empty((2, 20))
        value = bound_kernels._terms.py_func(code, target, mass, score, downhill, curvature)
        expected = loss_terms(loss, target, mass, score)
        assert value == pytest.approx(expected[0], rel=1e-10)
        np.testing.assert_allclose(downhill, expected[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(curvature, expected[2], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_terms_are_value_gradient_and_curvature(name: str) -> None:
    loss = losses.loss_by_name(name)
    y, score = np.array([1.0, 0.5, 0.0, 1.0]), np.array([-700.0, 0.3, 2.0, 700.0])
    for found, function in zip(
        loss.terms(y, score), (loss.value, loss.gradient, loss.curvature), strict=True
    ):
        np.testing.assert_array_equal(found, function(y, score))


# Losses with arguments, and those of users

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
MEAN = np.exp(0.5 + 1.0 * (X[:, 0] > 0))
TARGETS: dict[str, np.ndarray] = {
    "real": MEAN + RNG.normal(size=len(X)),
    "count": RNG.poisson(MEAN),
    "positive": RNG.gamma(2, MEAN / 2),
    "sign": np.where(X[:, 0] + RNG.normal(size=len(X)) > 0, "yes", "no"),
}


@pytest.mark.parametrize("name", SMOOTHED)
@settings(max_examples=60)
@given(y=st.floats(-9, 9), score=st.floats(-9, 9), other=st.floats(-9, 9))
def test_a_majorant_lies_above_the_loss(name: str, y: float, score: float, other: float) -> None:
    loss = losses.loss_by_name(name)
    assert loss.majorant is not None
    rows = np.array([y]), np.array([score])
    bent = loss.majorant(*rows) * (other - score) ** 2 / 2
    above = loss.value(*rows) + loss.gradient(*rows) * (other - score) + bent
    assert (above >= loss.value(rows[0], np.array([other])) - 1e-9).all()
    np.testing.assert_array_less(loss.curvature(*rows), loss.majorant(*rows) + 1e-9)
    traced = jax.jit(loss.majorant)(*map(jnp.asarray, rows))
    np.testing.assert_allclose(traced, loss.majorant(*rows), rtol=1e-4)


def test_losses_with_arguments_are_one_object_per_argument() -> None:
    loss = losses.quantile(0.9, width=2)
    assert loss is losses.quantile(level=0.9, width=2.0)
    assert loss is losses.loss_by_name("quantile(level=0.9, width=2.0)")
    assert loss is losses.loss_by_name(loss.name)
    assert pickle.loads(pickle.dumps(loss)) is loss
    assert copy.deepcopy(loss) is loss


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: losses.quantile(1.0, 1.0), "level must be finite and between 0 and 1"),
        (lambda: losses.huber(0.0), "width must be finite and above 0"),
        (lambda: losses.absolute(np.inf), "width must be finite"),
        (lambda: losses.tweedie(2.0), "power must be finite and between 1 and 2"),
        (lambda: losses.loss_by_name("quantile(level=0.9)"), "must be like one of"),
        (lambda: losses.loss_by_name("huber(width=wide)"), "must be like one of"),
        (lambda: losses.loss_by_name("pinball"), "quantile"),
    ],
)
def test_bad_arguments_of_losses(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles_cover_their_share(level: float) -> None:
    loss = losses.quantile(level, width=0.05)
    fit = jr.boosting.fit(X, TARGETS["real"], loss=loss, max_rules=2, l2_penalty=1.0)
    below = (TARGETS["real"] <= jr.predict(fit.model, X)).mean()
    assert below == pytest.approx(level, abs=0.03)
    assert jr.risk(fit.model, X, TARGETS["real"]) < losses.mean_loss(
        loss, TARGETS["real"], np.full(400, losses.best_constant(loss, TARGETS["real"]))
    )


def test_tails_of_the_target_do_not_move_robust_losses() -> None:
    y = TARGETS["real"].copy()
    y[:8] += 1e4
    for loss in (losses.huber(1.0), losses.absolute(0.2)):
        model = jr.boosting.fit(X, y, loss=loss, max_rules=2, l2_penalty=1.0).model
        error = np.abs(jr.predict(model, X) - MEAN)
        assert error.mean() < 0.5


@pytest.mark.parametrize("name", ["gamma", "tweedie(power=1.5)"])
def test_mean_of_gamma_and_tweedie_is_that_of_the_rows(name: str) -> None:
    """With the log link of these deviances, Tweedie's best constant is the mean; of gamma, too."""
    y = TARGETS["positive"]
    loss = losses.loss_by_name(name)
    assert np.exp(losses.best_constant(loss, y)) == pytest.approx(y.mean())
    with pytest.raises(ValueError, match="y must be"):
        jr.boosting.fit(X, -y, loss=loss)


def pinball(y: Any, score: Any) -> Any:
    return jnp.maximum(0.9 * (y - score), -0.1 * (y - score))


def focal(y: Any, score: Any) -> Any:
    p = 1 / (1 + jnp.exp(-y * score))
    return -((1 - p) ** 2) * jnp.log(p)


def hinge(y: Any, score: Any) -> Any:
    return jnp.maximum(0.0, 1 - y * score)


def squared_logistic(y: Any, score: Any) -> Any:
    return jnp.logaddexp(0.0, -y * score) ** 2


def for_classes(function: Any) -> losses.Loss:
    return jr.Loss(function.__name__, function, target="sign", link="logistic")


@pytest.mark.parametrize(
    ("loss", "target", "words"),
    [
        (pinball, "real", "kink.* quantile"),
        (lambda y, score: y * score, "real", "no curvature"),
        (lambda y, score: jnp.log(score - y), "real", "non-finite derivative"),
        (lambda y, score: -((y - score) ** 2), "real", "not convex"),
        (focal, "sign", "y holds classes, .* target=.sign."),
        (for_classes(focal), "sign", "not convex"),
        (for_classes(hinge), "sign", "kink"),
    ],
)
@pytest.mark.parametrize("fit", [jr.boosting.fit, jr.lltboost.fit, jr.ltrnet.fit])
def test_own_losses_are_checked_first(fit: Any, loss: Any, target: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fit(X, TARGETS[target], loss=loss)


def test_an_own_loss_of_classes() -> None:
    loss = for_classes(squared_logistic)
    assert loss == for_classes(squared_logistic)  # nothing compiles twice
    fit = jr.boosting.fit(X, TARGETS["sign"], loss=loss, max_rules=3)
    assert jr.accuracy(fit.model, X, TARGETS["sign"]) > 0.7
    assert fit.model.loss == "squared_logistic"
    assert jr.risk(fit.model, X, TARGETS["sign"], loss=loss) < np.log(2) ** 2


def test_a_target_of_classes_needs_a_probability() -> None:
    with pytest.raises(ValueError, match="link"):
        jr.Loss("hinge", hinge, target="sign")


def test_models_worse_than_the_constant_warn() -> None:
    with pytest.warns(UserWarning, match="worse than .* of the best constant"):
        jr.boosting.fit(X, X[:, 0] + 100.0, loss="squared", max_rules=1, intercept=False)


TABLE = Path(__file__).parents[1] / "docs" / "targets.md"


def lines_of_the_table() -> list[list[str]]:
    of_losses = TABLE.read_text().partition("| loss |")
    lines = "".join(of_losses[1:]).partition("\n\n")[0].splitlines()
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


HEAD, _, *LINES = lines_of_the_table()


@pytest.mark.parametrize("learner", HEAD[3:])
@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
@pytest.mark.full
def test_the_table_of_learners_and_losses(line: list[str], learner: str) -> None:
    fit: Any = getattr(jr, learner.lower()).fit
    own = line[0] == "your own"
    loss: Any = (lambda y, f: jnp.logaddexp(y - f, f - y)) if own else losses.loss_by_name(line[0])
    y = TARGETS["real" if own else loss.target]
    arguments = {"time_limit": 0} if learner in ("LLTBoost", "LTRNet") else {}  # uncompiled
    if line[HEAD.index(learner)] == "yes":
        model = fit(X, y, loss=loss, **arguments).model
        assert np.isfinite(jr.decision_function(model, X)).all()
    else:
        with pytest.raises((TypeError, ValueError), match="loss"):
            fit(X, y, loss=loss, **arguments)


def test_the_table_has_every_loss() -> None:
    families = {line[0].partition("(")[0] for line in LINES}
    assert families == {*losses.NAMES, "your own"}


def test_the_best_constant_of_classes_is_that_of_merged_rows() -> None:
    rng = np.random.default_rng(0)
    y, weights = np.where(rng.random(200) < 0.3, 1.0, -1.0), rng.uniform(0.5, 2.0, 200)
    for loss in (losses.logistic, losses.exponential):
        found = losses.best_constant(loss, y, weights)
        scale = 1.0 if loss is losses.logistic else 0.5
        assert found == pytest.approx(
            scale * np.log(weights[y > 0].sum() / weights[y < 0].sum()), rel=1e-12
        )
        assert found == pytest.approx(losses.best_shift(loss, y, np.zeros(200), weights), rel=1e-9)


def test_softmax_of_two_classes_is_the_logistic_loss_and_is_not_asked_for_by_itself() -> None:
    rng = np.random.default_rng(3)
    y, scores = np.sign(rng.normal(size=20)), rng.normal(size=20)
    both, pairs = np.stack([-y, y], 1), np.stack([np.zeros(20), scores], 1)
    softmax = losses.softmax
    np.testing.assert_allclose(softmax.value(both, pairs), losses.logistic.value(y, scores))
    np.testing.assert_allclose(
        softmax.gradient(both, pairs)[:, 1], losses.logistic.gradient(y, scores)
    )
    curvature = losses.logistic.curvature(y, scores)
    np.testing.assert_allclose(softmax.curvature(both, pairs)[:, 1], curvature)
    p = np.exp(pairs) / np.exp(pairs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(losses.uncoupled(p, 2), np.stack([2 * curvature] * 2, 1))
    np.testing.assert_allclose(np.exp(losses.best_constant(softmax, both)), (both > 0).mean(axis=0))
    merged = losses.merge_rows(softmax, both, np.ones(20), np.zeros(20, int), 1)
    np.testing.assert_allclose(merged.target, both.mean(axis=0)[None])
    assert pickle.loads(pickle.dumps(softmax)) is softmax
    with pytest.raises(ValueError, match='multiclass="joint"'):
        losses.loss_by_name(softmax)
