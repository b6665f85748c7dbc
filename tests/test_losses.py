"""Losses: derivatives against jax.grad and differences, stability, custom functions, refusals."""

import copy
import dataclasses
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrules import losses
from jaxrules.lire import bound_kernels
from jaxrules.lire.objective import loss_terms
from jaxrules.lire.problem import make_problem
from jaxrules.lire.search import Search
from jaxrules.rows import Activations
from jaxrules.solvers.linear import sparse_glm

NAMES = ["squared", "logistic", "exponential", "poisson"]


def a_target(loss: losses.Loss, number: float) -> float:
    return {"real": number, "sign": 1.0 if number > 0 else -1.0, "count": abs(number)}[loss.target]


FORMULAS = {
    "squared": lambda y, f: (y - f) ** 2,
    "logistic": lambda y, f: jnp.log(1 + jnp.exp(-y * f)),
    "exponential": lambda y, f: jnp.exp(-y * f),
    "poisson": lambda y, f: jnp.exp(f) - y * f,
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


@pytest.mark.parametrize("name", NAMES)
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
    """Solvers ask which loss one is: a copy that was another one would be
    solved by other formulas.
    """
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
    sparse = sparse_glm.Problem.of(rows, y, name, None, True, None)
    again, sparse_again = pickle.loads(pickle.dumps((problem, sparse)))
    found = [
        Search(one, 0.01, 0.01).start_from(np.arange(1, 4), np.zeros(3)).objective
        for one in (problem, again)
    ]
    assert found[0] == found[1]
    assert sparse.solve(0.02).objective == sparse_again.solve(0.02).objective


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_compiled_search_has_the_same_losses(seed: int) -> None:
    """Its kernels cannot call a `Loss`: they hold the formulas once more."""
    rng = np.random.default_rng(seed)
    target, mass, score = (
        rng.choice([-1.0, -0.3, 0.6, 1.0], 20),
        rng.random(20),
        rng.uniform(-600, 600, 20),
    )
    for code, name in enumerate(bound_kernels.LOSSES):
        loss, (downhill, curvature) = losses.loss_by_name(name), np.empty((2, 20))
        value = bound_kernels._terms(code, target, mass, score, downhill, curvature)
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
