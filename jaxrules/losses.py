"""Losses of a target y and a real-valued score f: value, first and second derivative by the score.

    squared      (y - f)^2                 y real           scikit-learn's squared error, not halved
    logistic     log(1 + exp(-y f))        y in {-1, +1}    f is the log-odds of +1
    exponential  exp(-y f)                 y in {-1, +1}    f is half the log-odds of +1
    poisson      exp(f) - y f              y >= 0           f is the log of the mean count

Every function works element by element on NumPy arrays (float64 in, float64 out) and on jax arrays,
traced ones included. A learner turns ``loss="logistic"`` or a user's own function into a `Loss` with
`loss_by_name`, and takes checked derivatives with `derivatives`. Objectives are means over rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxrules.float64 import x64_kernel

Array = Any  # a NumPy array or a jax array
LossFunction = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Loss:
    """A loss that is convex and twice differentiable in the score. Hashable: a static argument for jit.

    Attributes:
        name: what errors and printed models call it.
        value: (y, score) -> loss per row.
        gradient: (y, score) -> first derivative by the score.
        curvature: (y, score) -> second derivative by the score.
        target: what y must be: "real", "sign" (-1 or +1) or "count" (non-negative).
        link: how a score becomes a prediction: "identity", "logistic" (probability of +1),
            "exponential" (probability of +1 from twice the score), "log" (mean count exp(f)).
        curvature_bound: an upper bound on the curvature over all scores, or None if there is none.
    """

    name: str
    value: LossFunction
    gradient: LossFunction
    curvature: LossFunction
    target: Literal["real", "sign", "count"] = "real"
    link: Literal["identity", "logistic", "exponential", "log"] = "identity"
    curvature_bound: float | None = None

    def __repr__(self) -> str:
        return f"Loss({self.name})"


def _is_jax(array: Array) -> bool:
    return isinstance(array, jax.Array)


def _sigmoid(score: Array) -> Array:
    return jax.nn.sigmoid(score) if _is_jax(score) else special.expit(score)


def _exp(score: Array) -> Array:
    return jnp.exp(score) if _is_jax(score) else np.exp(score)


def _softplus(score: Array) -> Array:
    """log(1 + exp(score)) without overflow."""
    return jax.nn.softplus(score) if _is_jax(score) else np.logaddexp(0.0, score)


squared = Loss(
    "squared",
    value=lambda y, score: (y - score) ** 2,
    gradient=lambda y, score: -2.0 * (y - score),
    curvature=lambda y, score: 2.0 + 0.0 * (y + score),
    curvature_bound=2.0,
)
logistic = Loss(
    "logistic",
    value=lambda y, score: _softplus(-y * score),
    gradient=lambda y, score: -y * _sigmoid(-y * score),
    # y is -1 or +1, so the product of the two class probabilities does not depend on it
    curvature=lambda y, score: _sigmoid(y * score) * _sigmoid(-y * score),
    target="sign",
    link="logistic",
    curvature_bound=0.25,
)
exponential = Loss(
    "exponential",
    value=lambda y, score: _exp(-y * score),
    gradient=lambda y, score: -y * _exp(-y * score),
    curvature=lambda y, score: _exp(-y * score),
    target="sign",
    link="exponential",
)
poisson = Loss(
    "poisson",
    value=lambda y, score: _exp(score) - y * score,
    gradient=lambda y, score: _exp(score) - y,
    curvature=lambda y, score: _exp(score) + 0.0 * y,
    target="count",
    link="log",
)
_BY_NAME = {loss.name: loss for loss in (squared, logistic, exponential, poisson)}


def loss_by_name(loss: str | Loss | LossFunction) -> Loss:
    """The `Loss` that a learner's ``loss=`` argument means.

    Args:
        loss: "squared", "logistic", "exponential", "poisson", a `Loss`, or a function of (y, score) made of
            JAX operations, convex and twice differentiable in the score; see `custom`.

    Raises:
        ValueError: for an unknown name.
        TypeError: for anything that is neither a name, a `Loss` nor a function.
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss not in _BY_NAME:
            raise ValueError(f"loss must be one of {', '.join(map(repr, _BY_NAME))} or a function, got {loss!r}")
        return _BY_NAME[loss]
    if callable(loss):
        return custom(loss)
    raise TypeError(f"loss must be a name or a function of (y, score), got {type(loss).__name__}")


@functools.lru_cache(maxsize=64)
def custom(function: LossFunction) -> Loss:
    """A loss from a user's scalar function of (y, score); its derivatives come from jax.grad.

    The same function gives the same `Loss`, so that a second fit compiles nothing. NumPy arguments are
    evaluated in float64 whatever the global precision; jax arrays in their own dtype.

    >>> import jax.numpy as jnp, numpy as np
    >>> log_cosh = custom(lambda y, score: jnp.log(jnp.cosh(y - score)))
    >>> log_cosh.gradient(np.array([0.0]), np.array([1.0])).round(4).tolist()
    [0.7616]
    """
    gradient = jax.grad(function, argnums=1)
    return Loss(
        getattr(function, "__name__", type(function).__name__),
        value=_elementwise(function),
        gradient=_elementwise(gradient),
        curvature=_elementwise(jax.grad(gradient, argnums=1)),
    )


def _elementwise(scalar_function: LossFunction) -> LossFunction:
    rows = jax.vmap(scalar_function)
    in_float64 = x64_kernel(rows)

    def call(y: Array, score: Array) -> Array:
        if _is_jax(y) or _is_jax(score):
            return jax.vmap(scalar_function)(*jnp.broadcast_arrays(y, score))
        y, score = np.broadcast_arrays(np.asarray(y, np.float64), np.asarray(score, np.float64))
        return in_float64(y.ravel(), score.ravel()).reshape(y.shape)

    return call


def check_target(loss: Loss, y: np.ndarray) -> None:
    """Refuse a target that the loss is not defined for.

    Raises:
        ValueError: names `y`, the loss and what it needs.
    """
    if not np.all(np.isfinite(y)):
        raise ValueError("y has missing or infinite values; remove those rows")
    if loss.target == "sign" and not np.all(np.abs(y) == 1.0):
        raise ValueError(f"y must be -1 or +1 for the {loss.name} loss")
    if loss.target == "count" and np.any(y < 0):
        raise ValueError(f"y must be non-negative for the {loss.name} loss, its smallest value is {np.min(y):g}")


def derivatives(loss: Loss, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradient and curvature per row in float64, checked.

    Returns:
        gradient, curvature: float64 arrays of y's shape.

    Raises:
        ValueError: names `loss`, for a non-finite derivative or a negative curvature (not convex).
    """
    gradient = np.asarray(loss.gradient(y, score), np.float64)
    curvature = np.asarray(loss.curvature(y, score), np.float64)
    if not (np.all(np.isfinite(gradient)) and np.all(np.isfinite(curvature))):
        raise ValueError(
            f"loss {loss.name!r} has a non-finite derivative at scores between {np.min(score):.3g} and "
            f"{np.max(score):.3g}; a larger l2_penalty keeps scores moderate"
        )
    if np.any(curvature < 0):
        raise ValueError(f"loss {loss.name!r} is not convex in the score: its second derivative is negative")
    return gradient, curvature


def mean_loss(loss: Loss, y: np.ndarray, score: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
    """The (weighted) mean of the loss over rows."""
    return float(np.average(loss.value(y, score), weights=sample_weight))


def best_constant(loss: Loss, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
    """The constant score of least (weighted) mean loss, by Newton's method with halved steps.

    Raises:
        ValueError: if no finite constant is best (for example only one class, or no positive count).
    """
    weight = np.ones_like(y) if sample_weight is None else sample_weight
    score, value = 0.0, mean_loss(loss, y, np.zeros_like(y), weight)
    for _ in range(200):
        gradient, curvature = derivatives(loss, y, np.full_like(y, score))
        first, second = float(weight @ gradient), float(weight @ curvature)
        if first == 0.0 or second == 0.0:
            break
        step = -first / second
        trial = mean_loss(loss, y, np.full_like(y, score + step), weight)
        while not trial <= value and abs(step) > 1e-12 * max(1.0, abs(score)):
            step /= 2.0
            trial = mean_loss(loss, y, np.full_like(y, score + step), weight)
        if not trial <= value:
            break
        score, value = score + step, trial
        if abs(step) <= 1e-12 * max(1.0, abs(score)):
            break
    if abs(score) > 30.0 and loss.link != "identity":
        raise ValueError(f"y has no finite best constant under the {loss.name} loss; use intercept=False")
    return score
