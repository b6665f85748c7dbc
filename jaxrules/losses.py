"""Losses of a target y and a real-valued score f: the one definition that every solver reads.

    squared      (y - f)^2                 y real           scikit-learn's squared error, not halved
    logistic     log(1 + exp(-y f))        y in {-1, +1}    f is the log-odds of +1
    exponential  exp(-y f)                 y in {-1, +1}    f is half the log-odds of +1
    poisson      exp(f) - y f              y >= 0           f is the log of the mean count

Rows that have one score in common (equal rows of a binary matrix) can be merged. As functions of
the score all four losses are a(f) + y b(f) + c(y), so that their weighted sum over such rows is, up
to a constant, the loss of the mean target times the summed weight: `merge_rows`. The mean target of
classes lies between -1 and +1, and its loss is the mean of the two classes' losses, (1 + y) / 2
l(+1, f) + (1 - y) / 2 l(-1, f).

Every function works element by element on NumPy arrays (float64 in, float64 out) and on jax arrays,
traced ones included. A learner turns ``loss="logistic"`` or a user's own function into a `Loss`
with `loss_by_name`, takes checked derivatives with `derivatives`, and refuses a loss that lacks a
piece with `require`. Objectives are means over rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from numpy.typing import NDArray

from jaxrules.float64 import our_settings, x64_kernel

Array = Any  # a NumPy array or a jax array
Floats = NDArray[np.float64]
LossFunction = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Loss:
    """A loss that is convex and twice differentiable in the score. Hashable: a static argument for
    jit. Losses are equal if all their functions are; copies and pickles of the library's are
    these losses themselves.

    Attributes:
        name: what errors and printed models call it.
        value: (y, score) -> loss per row.
        gradient: (y, score) -> first derivative by the score.
        curvature: (y, score) -> second derivative by the score.
        target: what y must be: "real", "sign" (-1 or +1) or "count" (non-negative).
        link: how a score becomes a prediction: "identity", "logistic" (probability of +1),
            "exponential" (probability of +1 from twice the score), "log" (mean count exp(f)).
        curvature_bound: an upper bound on the curvature over all scores, or None if there is none.
        conjugate: (y, dual) -> the largest dual * score - value(y, score) over all scores, infinite
            outside of its domain; or None. Certificates (bounds by Fenchel duality) need it.
        mergeable: whether rows of one score can be replaced by their mean target, see `merge_rows`.
        quadratic: whether the curvature is the same at every score.
        together: (y, score) -> value, gradient and curvature, if they share work; see `terms`.
    """

    name: str
    value: LossFunction
    gradient: LossFunction
    curvature: LossFunction
    target: Literal["real", "sign", "count"] = "real"
    link: Literal["identity", "logistic", "exponential", "log"] = "identity"
    curvature_bound: float | None = None
    conjugate: LossFunction | None = None
    mergeable: bool = False
    quadratic: bool = False
    together: Callable[[Array, Array], tuple[Array, Array, Array]] | None = None

    def __repr__(self) -> str:
        return f"Loss({self.name})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A string names a variable of this module: solvers compare losses with the library's.
        return self.name if _BY_NAME.get(self.name) is self else super().__reduce_ex__(protocol)

    def terms(self, y: Array, score: Array) -> tuple[Array, Array, Array]:
        """Value, gradient and curvature of every row."""
        if self.together is not None:
            return self.together(y, score)
        return self.value(y, score), self.gradient(y, score), self.curvature(y, score)


# The formulas. NumPy and SciPy compute for NumPy arrays, JAX for its own.


def _is_jax(*arrays: Array) -> bool:
    return any(isinstance(array, jax.Array) for array in arrays)


def _numpy(*arrays: Array) -> ModuleType:
    return jnp if _is_jax(*arrays) else np


def _special(*arrays: Array) -> ModuleType:
    if _is_jax(*arrays):
        return jax.scipy.special
    import scipy.special  # here, because a prediction needs none

    module: ModuleType = scipy.special
    return module


def _entropy(share: Array) -> Array:
    """share log(share)."""
    return _special(share).xlogy(share, share)


def _inside(values: Array, low: float, high: float, conjugate: Callable[[Array], Array]) -> Array:
    """The conjugate where its argument lies in [low, high] up to rounding, infinite elsewhere."""
    xp = _numpy(values)
    rounding = 64 * xp.finfo(values.dtype).eps * xp.maximum(1, xp.abs(values))
    outside = (values < low - rounding) | (values > high + rounding)
    return xp.where(outside, xp.inf, conjugate(xp.clip(values, low, high)))


# The logistic loss through exp(-|f|), the odds of the less likely class: no overflow, no
# cancellation.


def _odds(score: Array) -> Array:
    return _numpy(score).exp(-abs(score))


def _logistic_value(y: Array, score: Array, odds: Array = None) -> Array:
    odds = _odds(score) if odds is None else odds
    return _numpy(odds).log1p(odds) + (abs(score) - y * score) / 2


def _logistic_gradient(y: Array, score: Array, odds: Array = None) -> Array:
    odds = _odds(score) if odds is None else odds
    positive, negative = (1 + y) / 2, (1 - y) / 2
    return _numpy(odds).where(
        score >= 0, negative - positive * odds, negative * odds - positive
    ) / (1 + odds)


def _logistic_curvature(y: Array, score: Array, odds: Array = None) -> Array:
    odds = _odds(score) if odds is None else odds
    return odds / (1 + odds) ** 2 + 0 * y


def _logistic_terms(y: Array, score: Array) -> tuple[Array, Array, Array]:
    odds = _odds(score)
    return (
        _logistic_value(y, score, odds),
        _logistic_gradient(y, score, odds),
        _logistic_curvature(y, score, odds),
    )


def _logistic_conjugate(y: Array, dual: Array) -> Array:
    return _inside(dual + (1 + y) / 2, 0, 1, lambda share: _entropy(share) + _entropy(1 - share))


_BEYOND = 1e30


def _exponential_sides(y: Array, score: Array) -> tuple[Array, Array]:
    """(1 + y) / 2 exp(-f) and (1 - y) / 2 exp(f): 0 for a class that is
    absent, whatever the score.
    """
    xp = _numpy(y, score)
    positive, negative = (1 + y) / 2, (1 - y) / 2
    # An exponent of an absent class is at most 0; sooner than `where`, and no exponent of
    # another reaches the limit.
    return (
        positive * xp.exp(xp.minimum(-score, _BEYOND * positive)),
        negative * xp.exp(xp.minimum(score, _BEYOND * negative)),
    )


def _exponential_value(y: Array, score: Array) -> Array:
    positive, negative = _exponential_sides(y, score)
    return positive + negative


def _exponential_gradient(y: Array, score: Array) -> Array:
    positive, negative = _exponential_sides(y, score)
    return negative - positive


def _exponential_terms(y: Array, score: Array) -> tuple[Array, Array, Array]:
    positive, negative = _exponential_sides(y, score)
    return positive + negative, negative - positive, positive + negative


def _exponential_conjugate(y: Array, dual: Array) -> Array:
    # The maximum is where dual = q e^f - p e^-f, with p = (1 + y) / 2 and q = (1 - y) / 2; without
    # one of the classes the dual must have the sign of the other.
    xp = _numpy(y, dual)
    size, least = xp.abs(dual), xp.sqrt(dual**2 + (1 - y) * (1 + y))
    share = xp.where(dual >= 0, 1 - y, 1 + y) / 2
    present = share > 0
    conjugate = _special(dual).xlogy(size, (size + least) / xp.where(present, 2 * share, 1)) - least
    return xp.where(present | (size == 0), conjugate, xp.inf)


squared = Loss(
    "squared",
    value=lambda y, score: (y - score) ** 2,
    gradient=lambda y, score: -2.0 * (y - score),
    curvature=lambda y, score: 2.0 + 0.0 * (y + score),
    curvature_bound=2.0,
    conjugate=lambda y, dual: dual * y + dual**2 / 4,
    mergeable=True,
    quadratic=True,
)
logistic = Loss(
    "logistic",
    value=_logistic_value,
    gradient=_logistic_gradient,
    curvature=_logistic_curvature,
    target="sign",
    link="logistic",
    curvature_bound=0.25,
    conjugate=_logistic_conjugate,  # the domain: dual + (1 + y) / 2 in [0, 1]
    mergeable=True,
    together=_logistic_terms,
)
exponential = Loss(
    "exponential",
    value=_exponential_value,
    gradient=_exponential_gradient,
    curvature=_exponential_value,
    target="sign",
    link="exponential",
    # the domain: y dual <= 0 for a class, everything between the classes
    conjugate=_exponential_conjugate,
    mergeable=True,
    together=_exponential_terms,
)
poisson = Loss(
    "poisson",
    value=lambda y, score: _numpy(score).exp(score) - y * score,
    gradient=lambda y, score: _numpy(score).exp(score) - y,
    curvature=lambda y, score: _numpy(score).exp(score) + 0.0 * y,
    target="count",
    link="log",
    conjugate=lambda y, dual: _inside(dual + y, 0, np.inf, lambda mean: _entropy(mean) - mean),
    mergeable=True,
)


def softmax(target: Array, scores: Array) -> Array:
    """The logistic loss of more than two classes together, log sum_k exp(f_k) - f_y per row.

    Args:
        target: +1 for the row's class, -1 for the others, (..., classes).
        scores: (..., classes).
    """
    return _special(scores).logsumexp(scores, axis=-1) - ((1 + target) / 2 * scores).sum(axis=-1)


_BY_NAME = {loss.name: loss for loss in (squared, logistic, exponential, poisson)}
LossOption = Literal["squared", "logistic", "poisson", "exponential"] | Loss | LossFunction | None
"""``loss=`` of a learner of any loss; None decides by y, see `jaxrules.training.loss_for`."""


def loss_by_name(loss: str | Loss | LossFunction) -> Loss:
    """The `Loss` that a learner's ``loss=`` argument means.

    Args:
        loss: "squared", "logistic", "exponential", "poisson", a `Loss`, or a function of (y, score)
            made of JAX operations, convex and twice differentiable in the score; see `custom`.

    Raises:
        ValueError: for an unknown name.
        TypeError: for anything that is neither a name, a `Loss` nor a function that `custom` takes.
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss not in _BY_NAME:
            raise ValueError(
                f"loss must be one of {', '.join(map(repr, _BY_NAME))} or a function, got {loss!r}"
            )
        return _BY_NAME[loss]
    if callable(loss) and isinstance(loss, Hashable):
        return custom(loss)
    raise TypeError(f"loss must be a name or a function of (y, score), got {type(loss).__name__}")


@functools.lru_cache(maxsize=64)
def custom(function: LossFunction) -> Loss:
    """A loss from a user's scalar function of (y, score); its derivatives come from jax.grad.

    The same function gives the same `Loss`, so that a second fit compiles nothing. NumPy arguments
    are evaluated in float64 whatever the global precision; jax arrays in their own dtype.

    Raises:
        TypeError: if JAX cannot differentiate it twice: it is not a function of two numbers, or
            uses other operations.

    >>> import jax.numpy as jnp, numpy as np
    >>> log_cosh = custom(lambda y, score: jnp.log(jnp.cosh(y - score)))
    >>> log_cosh.gradient(np.array([0.0]), np.array([1.0])).round(4).tolist()
    [0.7616]
    """
    name = getattr(function, "__name__", type(function).__name__)
    gradient = jax.grad(function, argnums=1)
    curvature = jax.grad(gradient, argnums=1)
    with our_settings(), jax.enable_x64(True):
        number = jax.ShapeDtypeStruct((), jnp.float64)
        try:
            jax.eval_shape(curvature, number, number)
        except Exception as error:
            raise TypeError(
                f"loss must be a function of (y, score) that JAX can differentiate twice; {name} "
                f"is not: {error}"
            ) from error
    return Loss(
        f"custom {name}" if name in _BY_NAME else name,  # models keep it: never another loss's name
        value=_elementwise(function),
        gradient=_elementwise(gradient),
        curvature=_elementwise(curvature),
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


def require(loss: Loss, piece: Literal["conjugate", "curvature_bound"], purpose: str) -> Any:
    """A piece of the loss; not every loss has it.

    Raises:
        ValueError: names the loss, the piece that it lacks, what needs it, and the losses that have
            one.
    """
    found = getattr(loss, piece)
    if found is None:
        others = ", ".join(
            repr(other.name) for other in _BY_NAME.values() if getattr(other, piece) is not None
        )
        raise ValueError(
            f"loss {loss.name!r} has no {piece.replace('_', ' ')}; {purpose} needs one; "
            f"use {others}, or a jaxrules.losses.Loss that has one"
        )
    return found


class MergedRows(NamedTuple):
    """Rows of one score as one row.

    Attributes:
        target: (groups,) the weighted mean target of each group; 0 for a group without weight.
        weight: (groups,) the summed weight.
        constant: the weighted sum of the losses of the original rows minus that of the merged ones,
            whatever the scores; 0 except for real targets.
    """

    target: Floats
    weight: Floats
    constant: float


def merge_rows(
    loss: Loss, y: Floats, sample_weight: Floats, group: NDArray[np.integer], n_groups: int
) -> MergedRows:
    """Merge rows that have one score in common.

    Args:
        y: (rows,) in the loss's coding, or means of it.
        sample_weight: (rows,) at least 0.
        group: (rows,) which group each row belongs to, from 0 to n_groups - 1.

    Raises:
        ValueError: if rows of a loss that is not mergeable are to be merged.
    """
    if not loss.mergeable and len(np.unique(group)) < len(group):
        raise ValueError(
            f"loss {loss.name!r} is not mergeable: the mean target of rows does not give their loss"
        )
    weight = np.bincount(group, sample_weight, n_groups).astype(np.float64)
    target = np.bincount(group, sample_weight * y, n_groups).astype(np.float64)
    np.divide(target, weight, out=target, where=weight > 0)
    if loss.target == "sign":
        np.clip(target, -1.0, 1.0, out=target)  # a quotient of equal sums may round to above 1
        return MergedRows(target, weight, 0.0)
    if loss.target == "count":
        return MergedRows(target, weight, 0.0)
    mean = target[group]
    return MergedRows(
        target, weight, float(sample_weight @ (loss.value(y, mean) - loss.value(mean, mean)))
    )


def check_target(loss: Loss, y: np.ndarray, *, means: bool = False) -> None:
    """Refuse a target that the loss is not defined for.

    Args:
        means: whether y may hold the mean targets of merged rows.

    Raises:
        ValueError: names `y`, the loss and what it needs.
    """
    if not np.all(np.isfinite(y)):
        raise ValueError("y has missing or infinite values; remove those rows")
    if loss.target == "sign":
        zeros_and_ones = np.any(y == 0.0) and np.all((y == 0.0) | (y == 1.0))
        if zeros_and_ones or np.any(np.abs(y) > 1.0) or not (means or np.all(np.abs(y) == 1.0)):
            raise ValueError(
                f"y must be -1 or +1 for the {loss.name} loss; for labels 0 and 1 pass 2 * y - 1"
            )
    if loss.target == "count" and np.any(y < 0):
        raise ValueError(
            f"y must be non-negative for the {loss.name} loss, its smallest value is {np.min(y):g}"
        )


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
            f"loss {loss.name!r} has a non-finite derivative at scores between {np.min(score):.3g} "
            f"and {np.max(score):.3g}; a larger l2_penalty keeps scores moderate"
        )
    if np.any(curvature < 0):
        raise ValueError(
            f"loss {loss.name!r} is not convex in the score: its second derivative is negative"
        )
    return gradient, curvature


def mean_loss(
    loss: Loss, y: np.ndarray, score: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """The (weighted) mean of the loss over rows."""
    return float(np.average(loss.value(y, score), weights=sample_weight))


def best_constant(loss: Loss, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
    """The constant score of least (weighted) mean loss.

    Raises:
        ValueError: if no finite constant is best (for example only one class, or no positive
            count); as `derivatives`, at the scores 0 and the best.
    """
    nothing = np.zeros_like(y)
    derivatives(loss, y, nothing)
    score = best_shift(
        loss, y, nothing, np.ones_like(y) if sample_weight is None else sample_weight
    )
    derivatives(loss, y, nothing + score)
    if abs(score) > 30.0 and loss.link != "identity":
        raise ValueError(
            f"y has no finite best constant under the {loss.name} loss; use intercept=False"
        )
    return score


def best_shift(
    loss: Loss,
    y: np.ndarray,
    scores: np.ndarray,
    sample_weight: np.ndarray,
    l2_penalty: float = 0.0,
) -> float:
    """The b of least sum_i w_i loss(y_i, scores_i + b) + l2_penalty b^2 / 2: `shift_step`s until
    the gradient is rounding.
    """
    b, low, high, rounding = 0.0, -np.inf, np.inf, SHIFT_ROUNDING * np.finfo(np.float64).eps
    with np.errstate(all="ignore"):
        for step in range(SHIFT_STEPS):
            rows = sample_weight * np.asarray(loss.gradient(y, scores + b))
            gradient = float(rows.sum()) + l2_penalty * b
            size = float(np.abs(rows).sum()) + abs(l2_penalty * b)
            if abs(gradient) <= rounding * size or not low < high:
                break
            curvature = (
                float(sample_weight @ np.asarray(loss.curvature(y, scores + b))) + l2_penalty
            )
            b, low, high = map(float, shift_step(loss, b, low, high, gradient, curvature, step))
    return b


SHIFT_STEPS = 60
"""Bound on the steps towards the best shift."""
SHIFT_ROUNDING = 4.0
"""Gradients up to this many units of rounding, relative to the sum of their rows' sizes, are 0."""
_LONGEST_SHIFT = 3.0  # of a logarithm in one step


def shift_step(
    loss: Loss,
    shift: Array,
    low: Array,
    high: Array,
    gradient: Array,
    curvature: Array,
    step: Array,
) -> tuple[Array, Array, Array]:
    """One step of Newton's method in one dimension, inside the bracket that the signs of the
    gradient give.

    Args:
        shift: the present one.
        low, high: the bracket, at first infinite.
        gradient, curvature: of the sum over the rows, at `shift`.
        step: the steps before.

    Returns:
        The next shift, and the bracket; it is empty if the shift stays, because the
        gradient is rounding.
    """
    xp = _numpy(gradient)
    low, high = xp.where(gradient < 0, shift, low), xp.where(gradient > 0, shift, high)
    change = -gradient / (curvature + xp.finfo(xp.result_type(gradient, 1.0)).tiny)
    if not loss.quadratic:  # far from the minimum the curvature may vanish, or overflow
        limit = _LONGEST_SHIFT * (2.0**step if loss.link == "identity" else 1.0)
        change = xp.where(
            xp.isnan(change), -xp.sign(gradient) * limit, xp.clip(change, -limit, limit)
        )
    newton, middle = shift + change, (low + high) / 2
    # Without both ends of the bracket there is no middle.
    outside = ((newton < low) | (newton > high)) & xp.isfinite(middle)
    following = xp.where(outside, middle, newton)
    return following, low, xp.where(following == shift, low, high)
