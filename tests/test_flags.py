"""Prediction and gradients of hand-made models with JAX's global float64 flag off and on
(learners: test_contracts).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxrules as jr


@pytest.mark.full
@pytest.mark.parametrize("x64", [False, True])
def test_traced_models_under_both_settings(x64: bool) -> None:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", x64)
    try:
        check_traced_model()
    finally:
        jax.config.update("jax_enable_x64", before)


def check_traced_model() -> None:
    schema = jr.Schema(
        (jr.Feature("a"), jr.Feature("k", ("x", "y"))), "own_category", ("no", "yes")
    )
    C = jr.Condition
    rules = jr.Conjunctions.build(
        schema, [[C.above(0, 0.1)], [C.one_of(1, [1]), C.at_most(0, 1e300)], []]
    )
    terms = jr.LinearTerms(
        np.array([0], np.int32), np.ones((1, 1)), np.array([-np.inf]), np.array([0.3])
    )
    model = jr.RuleEnsemble(
        rules, np.array([[0.1], [0.2], [0.3]]), np.array([0.4]), terms, "logistic"
    )
    X = np.array([[0.05, 0.0], [0.1, 1.0], [0.5, -1.0], [np.nan, -2.0]])
    table = jr.Table(schema, (X[:, 0], X[:, 1].astype(np.int32)))
    host = jr.decision_function(model, table)
    x = X if jax.config.jax_enable_x64 else X.astype(np.float32)
    precision = 1e-12 if jax.config.jax_enable_x64 else 1e-6
    traced = jax.jit(lambda x: jr.decision_function(model, x))(x)
    assert traced.dtype == x.dtype
    np.testing.assert_allclose(traced[jnp.array([0, 2, 3])], host[[0, 2, 3]], rtol=precision)
    weights = jnp.asarray(model.weights)
    gradient = jax.grad(lambda w: jr.decision_function(jr.with_weights(model, w), table).sum())(
        weights
    )
    np.testing.assert_array_equal(gradient[:, 0], rules.satisfied(table).sum(axis=0))
    assert jr.decision_function(jr.with_weights(model, weights), table).dtype == np.float64
