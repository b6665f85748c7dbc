"""Losses of a target y and a real-valued score f: the one definition that every solver reads.

    squared      (y - f)^2                 y real           scikit-learn's squared error, not halved
    logistic     log(1 + exp(-y f))        y in {-1, +1}    f is the log-odds of +1
    exponential  exp(-y f)                 y in {-1, +1}    f is half the log-odds of +1
    poisson      exp(f) - y f              y >= 0           f is the log of the mean count
    gamma        y exp(-f) + f             y > 0            f is the log of the mean
    tweedie(power=p), 1 < p < 2            y >= 0           f is the log of the mean
                 y exp((1-p) f) / (p-1) + exp((2-p) f) / (2-p)
    huber(width=d)                         y real           d^2 (sqrt(1 + (y-f)^2 / d^2) - 1)
    quantile(level=q, width=w)             y real           (q-1) (y-f) + w log(1 + exp((y-f) / w))
    absolute(width=w)                      y real           twice the loss of the median

The last three smooth a kink over their width, in units of y, because a loss without curvature has
no Newton step. The gap to the loss with the kink is at most w log 2 for a quantile, 2 w log 2 for
the absolute error and d^2 for Huber's. The name of a loss with arguments includes them, also in the
model: ``loss="quantile(level=0.9, width=2.0)"`` or ``losses.quantile(0.9, width=2.0)``.

Rows with a common score (equal rows of a binary matrix) can be merged. `mergeable` losses have the
form a(f) + y b(f) + c(y), so that their weighted sum over such rows is, up to a constant, the loss
of the mean target times the summed weight: `merge_rows`. The mean target of classes lies between -1
and +1, and its loss is the mean of the two classes' losses, (1 + y) / 2 l(+1, f) + (1 - y) / 2
l(-1, f).

Every function works element by element on NumPy arrays (float64 in, float64 out) and on jax arrays,
traced ones included. Learners turn ``loss="logistic"`` or a user's function into a `Loss` with
`loss_by_name`, compute checked derivatives with `derivatives`, and refuse a loss that lacks a piece
with `require`. Objectives are means over rows.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, ParamSpec

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from numpy.typing import NDArray

from jaxrules.tools.float64 import numpy_of, our_settings, x64_kernel

Array = Any  # a number, a NumPy array or, in a traced program, a jax array
Floats = NDArray[np.float64]
LossFunction = Callable[[Array, Array], Array]


def _by_jax(y: Array, score: Array) -> Array:
    """The default derivative: `Loss` replaces it with that of its value."""
    raise NotImplementedError


@dataclass(frozen=True)
class Loss:
    """A loss that is convex and twice differentiable in the score. It is hashable, as a static
    argument of jit. Losses are equal if all their functions are; copying or unpickling one of the
    library's losses returns the same object.

    A loss of your own needs a name and a value, made of JAX operations on two numbers; JAX
    differentiates it. For classes it also needs a target and a link:

    >>> import jax.numpy as jnp, numpy as np
    >>> def squared_logistic(y, score):
    ...     return jnp.logaddexp(0.0, -y * score) ** 2
    >>> loss = Loss("squared logistic", squared_logistic, target="sign", link="logistic")
    >>> loss.gradient(np.array([1.0]), np.array([0.0])).round(4).tolist()
    [-0.6931]

    Attributes:
        name: its name in errors and printed models.
        value: (y, score) -> loss per row.
        gradient: (y, score) -> first derivative by the score. If it or `curvature` is not given,
            JAX computes both.
        curvature: (y, score) -> second derivative by the score.
        target: what y must be: "real", "sign" (-1 or +1), "count" (non-negative) or "positive".
        link: how a score becomes a prediction: "identity", "logistic" (probability of +1),
            "exponential" (probability of +1 from twice the score), "log" (mean exp(f)), "softmax"
            (probabilities of several classes, only for `softmax`).
        curvature_bound: an upper bound on the curvature over all scores, or None if there is none.
        conjugate: (y, dual) -> the maximum of dual * score - value(y, score) over all scores,
            infinite outside its domain; or None. Certificates (bounds by Fenchel duality) need it.
        mergeable: whether rows with a common score can be replaced with one row of their mean
            target, see `merge_rows`.
        quadratic: whether the curvature is the same at every score.
        together: (y, score) -> value, gradient and curvature, if they share work; see `terms`.
        power: of a Tweedie deviance with the log link (1 for `poisson`, 2 for `gamma`), which lets
            an offset become a rate and a weight, see `relative`; or None.
        majorant: (y, score) -> the curvature of a parabola that touches the loss at the score and
            lies above it everywhere, for losses whose own curvature vanishes far from y; or None.
            Boosting uses it for its steps, which then never raise the loss (de Leeuw and Lange,
            "Sharp Quadratic Majorization in One Dimension", 2009).
        wider: () -> the same loss, its kink smoothed over a larger width, for losses with a kink;
            or None. Where Newton's method stalls, solvers start it from the minimum of that loss;
            see `widened`.

    Raises:
        TypeError: if JAX cannot differentiate the value twice.
        ValueError: if target and link do not fit together.
    """

    name: str
    value: LossFunction
    gradient: LossFunction = _by_jax
    curvature: LossFunction = _by_jax
    target: Literal["real", "sign", "count", "positive"] = "real"
    link: Literal["identity", "logistic", "exponential", "log", "softmax"] = "identity"
    curvature_bound: float | None = None
    conjugate: LossFunction | None = None
    mergeable: bool = False
    quadratic: bool = False
    together: Callable[[Array, Array], tuple[Array, Array, Array]] | None = None
    majorant: LossFunction | None = None
    power: float | None = None
    wider: Callable[[], Loss] | None = None

    def __post_init__(self) -> None:
        if (self.target == "sign") != (self.link in ("logistic", "exponential", "softmax")):
            raise ValueError(
                f"link {self.link!r} does not fit target {self.target!r} of loss {self.name!r}; "
                'classes (target="sign") need link="logistic" or "exponential", numbers need '
                '"identity" or "log"'
            )
        if self.gradient is _by_jax or self.curvature is _by_jax:
            for part, function in zip(
                ("value", "gradient", "curvature"), _derived(self.value), strict=True
            ):
                object.__setattr__(self, part, function)  # as dataclasses do with frozen ones

    def __repr__(self) -> str:
        return f"Loss({self.name})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A string names a variable of this module, so that unpickling returns the library's own
        # loss.
        if self is softmax or _BY_NAME.get(self.name) is self:
            return self.name
        if _of_family(self.name) is self:
            return loss_by_name, (self.name,)
        return super().__reduce_ex__(protocol)

    def terms(self, y: Array, score: Array) -> tuple[Array, Array, Array]:
        """Value, gradient and curvature of every row."""
        if self.together is not None:
            return self.together(y, score)
        return self.value(y, score), self.gradient(y, score), self.curvature(y, score)


# The formulas: NumPy and SciPy for NumPy arrays, JAX for its own


def _special(*arrays: Array) -> Any:
    if numpy_of(*arrays) is jnp:
        return jax.scipy.special
    import scipy.special  # here: predictions do not need it

    return scipy.special


def _entropy(share: Array) -> Array:
    """share log(share)."""
    return _special(share).xlogy(share, share)


def _inside(values: Array, low: float, high: float, conjugate: Callable[[Array], Array]) -> Array:
    """The conjugate where its argument lies in [low, high] up to rounding, infinite elsewhere."""
    xp = numpy_of(values)
    rounding = 64 * xp.finfo(values.dtype).eps  # the ends are at most 1
    outside = (values < low - rounding) | (values > high + rounding)
    return xp.where(outside, xp.inf, conjugate(xp.clip(values, low, high)))


# The logistic loss through exp(-|f|), the odds of the less likely class: no overflow, no
# cancellation.


def _odds(score: Array) -> Array:
    return numpy_of(score).exp(-abs(score))


def _logistic_value(y: Array, score: Array, odds: Array = None) -> Array:
    odds = _odds(score) if odds is None else odds
    # log(1 + exp(-y f)) = log(1 + exp(-|f|)) + max(-y f, 0) for y = -1 and +1
    # The last term is (|f| - y f) / 2, which is linear in y and so right for mean targets, too.
    return numpy_of(odds).log1p(odds) + (abs(score) - y * score) / 2


def _logistic_gradient(y: Array, score: Array, odds: Array = None) -> Array:
    odds = _odds(score) if odds is None else odds
    positive, negative = (1 + y) / 2, (1 - y) / 2
    # sigmoid(f) - (1 + y) / 2, with sigmoid(f) = 1 / (1 + odds) for f >= 0, else odds / (1 + odds)
    return numpy_of(odds).where(
        score >= 0, negative - positive * odds, negative * odds - positive
    ) / (1 + odds)


def _logistic_curvature(y: Array, score: Array, odds: Array = None) -> Array:
    odds = _odds(score) if odds is None else odds
    # sigmoid(f) (1 - sigmoid(f)); 0 y gives it the shape of y
    return odds / (1 + odds) ** 2 + 0 * y


def _logistic_terms(y: Array, score: Array) -> tuple[Array, Array, Array]:
    odds = _odds(score)
    return (
        _logistic_value(y, score, odds),
        _logistic_gradient(y, score, odds),
        _logistic_curvature(y, score, odds),
    )


def _logistic_conjugate(y: Array, dual: Array) -> Array:
    # The maximum is where sigmoid(f) = dual + (1 + y) / 2, the share of +1; the value is minus its
    # entropy.
    return _inside(dual + (1 + y) / 2, 0, 1, lambda share: _entropy(share) + _entropy(1 - share))


_BEYOND = 1e30


def _exponential_sides(y: Array, score: Array) -> tuple[Array, Array]:
    """(1 + y) / 2 exp(-f) and (1 - y) / 2 exp(f); 0 for an absent class, whatever the score."""
    xp = numpy_of(y, score)
    positive, negative = (1 + y) / 2, (1 - y) / 2
    # This caps the exponent of an absent class at 0, faster than `where`; no exponent of a present
    # class reaches the cap.
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
    xp = numpy_of(y, dual)
    size, least = xp.abs(dual), xp.sqrt(dual**2 + (1 - y) * (1 + y))
    share = xp.where(dual >= 0, 1 - y, 1 + y) / 2
    present = share > 0
    # At the maximum e^f = (dual + least) / 2q, and the loss is least = sqrt(dual^2 + 4 p q). For a
    # negative dual, e^-f = (|dual| + least) / 2p keeps the digits.
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
    value=lambda y, score: numpy_of(score).exp(score) - y * score,
    gradient=lambda y, score: numpy_of(score).exp(score) - y,
    curvature=lambda y, score: numpy_of(score).exp(score) + 0.0 * y,
    target="count",
    link="log",
    # The maximum is where the mean exp(f) is dual + y.
    conjugate=lambda y, dual: _inside(dual + y, 0, np.inf, lambda mean: _entropy(mean) - mean),
    mergeable=True,
    power=1.0,
)


gamma = Loss(
    "gamma",
    value=lambda y, score: y * numpy_of(score).exp(-score) + score,
    gradient=lambda y, score: 1.0 - y * numpy_of(score).exp(-score),
    curvature=lambda y, score: y * numpy_of(score).exp(-score),
    target="positive",
    link="log",
    # With s = y exp(-f) = 1 - dual at the maximum, f = log(y / s).
    conjugate=lambda y, dual: _inside(
        1 - dual, 0, np.inf, lambda s: _entropy(s) - s - _special(y).xlogy(s, y)
    ),
    mergeable=True,
    power=2.0,
)


# Losses with arguments

_WIDER = 4.0
"""The width of the next wider loss, relative to that of a loss with a kink."""

Arguments = ParamSpec("Arguments")


def _family(make: Callable[Arguments, Loss]) -> Callable[Arguments, Loss]:
    """Equal arguments give the same `Loss`, so that nothing compiles twice."""
    cached, signature = functools.lru_cache(maxsize=256)(make), inspect.signature(make)

    @functools.wraps(make)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Loss:
        given: Any = signature.bind(*args, **kwargs).args
        return cached(*given)

    return call


@_family
def quantile(level: float, width: float) -> Loss:
    """The loss of a conditional quantile, its kink smoothed by a logistic kernel (Fernandes, Guerre
    and Horta, "Smoothing Quantile Regressions", 2021): a logistic loss of the residual.

    Args:
        level: level of the quantile, in (0, 1): the share of rows at or below the prediction, up to
            terms of width^2.
        width: width of the smoothing, positive, in units of y. A tenth of the spread of y changes
            little.

    Raises:
        ValueError: for arguments outside their range.

    >>> import numpy as np
    >>> quantile(0.9, width=0.01).value(np.array([1.0, -1.0]), np.zeros(2)).round(3).tolist()
    [0.9, 0.1]
    """
    _check("level", level, 0, 1)
    _check("width", width, 0)
    return _smoothed(
        f"quantile(level={float(level)}, width={float(width)})",
        level, width, 1.0, wider=lambda: quantile(level, _WIDER * width),
    )  # fmt: skip


@_family
def absolute(width: float) -> Loss:
    """The absolute error |y - f|, its kink smoothed as in `quantile`.

    Args:
        width: width of the smoothing, positive, in units of y.
    """
    _check("width", width, 0)
    return _smoothed(
        f"absolute(width={float(width)})", 0.5, width, 2.0, wider=lambda: absolute(_WIDER * width)
    )


def _smoothed(
    name: str, level: float, width: float, scale: float, wider: Callable[[], Loss]
) -> Loss:
    def share(y: Array, score: Array) -> Array:  # of the row at or above the score
        z = (y - score) / width
        odds = _odds(z)
        return numpy_of(z).where(z >= 0, 1.0, odds) / (1 + odds)

    def value(y: Array, score: Array) -> Array:
        z = (y - score) / width
        # w log(1 + e^z) + (q - 1) w z, because _logistic_value(0, z) = log(1 + e^z) - z / 2
        return scale * width * (_logistic_value(0.0, z) + (level - 0.5) * z)

    def conjugate(y: Array, dual: Array) -> Array:
        return dual * y + _inside(
            # The share above, where the gradient scale (1 - level - share) is the dual.
            1 - level - dual / scale,
            0,
            1,
            lambda s: scale * width * (_entropy(s) + _entropy(1 - s)),
        )

    def majorant(y: Array, score: Array) -> Array:  # Jaakkola and Jordan (2000)
        z = (y - score) / width
        xp = numpy_of(z)
        # (log(2 cosh(z / 2)))' / z = tanh(z / 2) / (2 z), which tends to 1/4 at z = 0
        far = abs(z) > 1e-4
        safe = xp.where(far, z, 1.0)
        return scale / width * xp.where(far, xp.tanh(safe / 2) / (2 * safe), 0.25)

    return Loss(
        name,
        value,
        gradient=lambda y, score: scale * (1 - level - share(y, score)),
        curvature=lambda y, score: scale / width * _logistic_curvature(0.0, (y - score) / width),
        curvature_bound=scale / (4 * width),
        conjugate=conjugate,
        majorant=majorant,
        wider=wider,
    )


@_family
def huber(width: float) -> Loss:
    """Huber's loss in its smooth form (Charbonnier et al., 1997): half the squared error near y,
    width times the absolute error far from y.

    Args:
        width: where the one turns into the other, positive, in units of y.
    """
    _check("width", width, 0)

    def root(y: Array, score: Array) -> Array:
        z = (y - score) / width
        return numpy_of(z).hypot(1.0, z)

    def value(y: Array, score: Array) -> Array:  # no cancellation near y
        return (y - score) ** 2 / (1 + root(y, score))

    return Loss(
        f"huber(width={float(width)})",
        value,
        gradient=lambda y, score: (score - y) / root(y, score),
        curvature=lambda y, score: root(y, score) ** -3,
        curvature_bound=1.0,
        # At the maximum |u| = |z| / sqrt(1 + z^2); (1 - u) (1 + u) keeps the digits near |u| = 1.
        conjugate=lambda y, dual: (
            dual * y
            + _inside(
                dual / width, -1, 1, lambda u: width**2 * (1 - numpy_of(u).sqrt((1 - u) * (1 + u)))
            )
        ),
        # The slope divided by the residual: it falls with the distance, as the majorant requires.
        majorant=lambda y, score: 1 / root(y, score),
        wider=lambda: huber(_WIDER * width),
    )


@_family
def tweedie(power: float) -> Loss:
    """Half the Tweedie deviance up to a constant, with the log link: for sums of a Poisson number
    of gamma amounts, which are often 0 (Jorgensen, "Exponential Dispersion Models", 1987).

    Args:
        power: the variance is proportional to the mean to this power, in (1, 2); near 1 for counts
            (`poisson`), near 2 for positive amounts (`gamma`).
    """
    _check("power", power, 1, 2)
    a, b = 2.0 - power, power - 1.0

    def parts(y: Array, score: Array) -> tuple[Array, Array]:
        exp = numpy_of(score).exp
        return exp(a * score), y * exp(-b * score)

    def value(y: Array, score: Array) -> Array:
        rising, falling = parts(y, score)
        return falling / b + rising / a

    def gradient(y: Array, score: Array) -> Array:
        rising, falling = parts(y, score)
        return rising - falling

    def curvature(y: Array, score: Array) -> Array:
        rising, falling = parts(y, score)
        return a * rising + b * falling

    def conjugate(y: Array, dual: Array) -> Array:
        # The score where the gradient is the dual: the root of the logarithm of rising over
        # falling + dual (or of falling over rising - dual), which is concave with a slope between
        # a (or b) and 1, so that Newton's method converges from everywhere.
        xp = numpy_of(y, dual)
        dual, y = xp.broadcast_arrays(dual, y)
        some = xp.where(y > 0, y, 1.0)
        up, size = dual >= 0, xp.abs(dual)
        log_y, log_size = xp.log(some), xp.log(xp.where(size > 0, size, 1e-300))
        score = xp.where(up, log_size / a, (log_y - log_size) / b)
        score = xp.where(size > 0, score, log_y)
        for _ in range(_NEWTON_STEPS):
            rising, falling = a * score, log_y - b * score
            other = xp.where(up, falling, rising)
            total = xp.logaddexp(other, log_size)
            held = xp.exp(other - total)
            slope = xp.where(up, a + b * held, -b - a * held)
            score = score - (xp.where(up, rising, falling) - total) / slope
        inside = dual * score - value(some, score)
        positive = xp.where(size > 0, size, 1.0)
        without = xp.where(size > 0, (dual * xp.log(positive) - dual) / a, 0.0)
        outside = dual < -64 * xp.finfo(dual.dtype).eps
        return xp.where(y > 0, inside, xp.where(outside, xp.inf, without))

    return Loss(
        f"tweedie(power={float(power)})",
        value,
        gradient,
        curvature,
        target="count",
        link="log",
        conjugate=conjugate,
        mergeable=True,
        power=power,
    )


_NEWTON_STEPS = 40


def _check(name: str, value: object, above: float, below: float = np.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    if not above < value < below:
        limit = f"between {above:g} and {below:g}" if np.isfinite(below) else f"above {above:g}"
        raise ValueError(f"{name} must be finite and {limit}, got {value}")


def _softmax_value(y: Array, scores: Array) -> Array:
    return _special(scores).logsumexp(scores, axis=-1) - ((1 + y) / 2 * scores).sum(axis=-1)


def _softmax_gradient(y: Array, scores: Array) -> Array:
    return _special(scores).softmax(scores, axis=-1) - (1 + y) / 2


def _softmax_curvature(y: Array, scores: Array) -> Array:
    p = _special(scores).softmax(scores, axis=-1)
    return p * (1 - p)


softmax = Loss(
    "softmax",
    _softmax_value,
    _softmax_gradient,
    _softmax_curvature,
    target="sign",
    link="softmax",
    mergeable=True,
)
"""The logistic loss for more than two classes together, log sum_k exp(f_k) - f_y per row.

The classes are the last axis of y (+1 for the row's class, -1 for the others), of the scores and of
the derivatives; the value has an entry per row. The curvature is the diagonal of the Hessian, see
also `uncoupled`. Users ask for it by ``multiclass="joint"``; models that learn with it keep the
name "logistic" and the link "softmax".
"""


def uncoupled(p: Array, classes: int) -> Array:
    """The curvatures with which solvers replace the Hessian of the softmax loss at probabilities
    p, without its terms across the K classes: K / (K - 1) p (1 - p). For two classes, Newton's
    step with them is that of the logistic loss.
    """
    return classes / (classes - 1) * p * (1.0 - p)


def of_rows(loss: Loss, y: Array, scores: Array) -> Array:
    """The loss per row, from y and scores (rows, outputs): the mean over the outputs, or that of
    classes together.
    """
    losses = loss.value(y, scores)
    return losses if loss == softmax else losses.mean(axis=-1)


_BY_NAME = {loss.name: loss for loss in (squared, logistic, exponential, poisson, gamma)}
_FAMILIES: dict[str, Callable[..., Loss]] = {
    "quantile": quantile,
    "absolute": absolute,
    "huber": huber,
    "tweedie": tweedie,
}
NAMES = (*_BY_NAME, *_FAMILIES)
"""The names of the losses, without arguments."""
_SMOOTH = "quantile(level=0.9, width=1.0), absolute(width=1.0), huber(width=1.0)"
_USES = f"{_SMOOTH}, tweedie(power=1.5)"


def _of_family(name: str) -> Loss | None:
    """The loss of a name such as "huber(width=2.0)"; None for other names."""
    found = re.fullmatch(r"(\w+)\((.*)\)", name.replace(" ", ""))
    if found is None or found[1] not in _FAMILIES:
        return None
    pairs = [part.partition("=") for part in found[2].split(",")]
    try:
        return _FAMILIES[found[1]](**{key: float(number) for key, _, number in pairs})
    except (TypeError, ValueError) as error:
        raise ValueError(f"loss {name!r} must be like one of {_USES}: {error}") from None


LossOption = str | Loss | LossFunction | None
"""The type of ``loss=`` of a learner that takes any loss; for None, y decides, see
`jaxrules.learning.training.loss_for`.
"""


def loss_by_name(loss: str | Loss | LossFunction) -> Loss:
    """The `Loss` that a learner's ``loss=`` argument means.

    Args:
        loss: "squared", "logistic", "exponential", "poisson", "gamma", a name with arguments such
            as "huber(width=2.0)", a `Loss`, or a function of (y, score) made of JAX operations,
            convex and twice differentiable in the score; see `custom`.

    Raises:
        ValueError: for an unknown name.
        TypeError: for anything that is neither a name, a `Loss` nor a function that `custom` takes.
    """
    if loss is softmax:
        raise ValueError('loss must not be softmax; pass loss="logistic", multiclass="joint"')
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        named = _BY_NAME.get(loss) or _of_family(loss)
        if named is None:
            raise ValueError(
                f"loss must be one of {', '.join(map(repr, _BY_NAME))}, one such as {_USES}, "
                f"or a function, got {loss!r}"
            )
        return named
    if callable(loss) and isinstance(loss, Hashable):
        return custom(loss)
    raise TypeError(f"loss must be a name or a function of (y, score), got {type(loss).__name__}")


@functools.lru_cache(maxsize=64)
def custom(function: LossFunction) -> Loss:
    """A loss from a user's scalar function of (y, score); its derivatives come from jax.grad.

    The same function gives the same `Loss`, so that a second fit compiles nothing. NumPy arguments
    are evaluated in float64 whatever the global precision; jax arrays in their own dtype.

    Raises:
        TypeError: if JAX cannot differentiate it twice, because it is not a function of two
            numbers, or uses other operations than JAX's.

    >>> import jax.numpy as jnp, numpy as np
    >>> log_cosh = custom(lambda y, score: jnp.log(jnp.cosh(y - score)))
    >>> log_cosh.gradient(np.array([0.0]), np.array([1.0])).round(4).tolist()
    [0.7616]
    """
    name = getattr(function, "__name__", type(function).__name__)
    # models keep the name, which must not be that of another loss
    return Loss(f"custom {name}" if name in _BY_NAME else name, function)


@functools.lru_cache(maxsize=64)
def _derived(function: LossFunction) -> tuple[LossFunction, LossFunction, LossFunction]:
    """A scalar function and its first two derivatives, element by element."""
    gradient = jax.grad(function, argnums=1)
    curvature = jax.grad(gradient, argnums=1)
    with our_settings(), jax.enable_x64(True):
        number = jax.ShapeDtypeStruct((), jnp.float64)
        try:
            jax.eval_shape(curvature, number, number)
        except Exception as error:
            name = getattr(function, "__name__", type(function).__name__)
            raise TypeError(
                f"loss must be a function of (y, score) that JAX can differentiate twice; {name} "
                f"is not: {error}"
            ) from error
    return _elementwise(function), _elementwise(gradient), _elementwise(curvature)


def _elementwise(scalar_function: LossFunction) -> LossFunction:
    rows = jax.vmap(scalar_function)
    in_float64 = x64_kernel(rows)

    def call(y: Array, score: Array) -> Array:
        if numpy_of(y, score) is jnp:
            return jax.vmap(scalar_function)(*jnp.broadcast_arrays(y, score))
        y, score = np.broadcast_arrays(np.asarray(y, np.float64), np.asarray(score, np.float64))
        return in_float64(y.ravel(), score.ravel()).reshape(y.shape)

    return call


def require(loss: Loss, piece: Literal["conjugate", "curvature_bound"], purpose: str) -> Any:
    """A piece of the loss, which not every loss has.

    Raises:
        ValueError: names the loss, the missing piece, its purpose, and the losses that have it.
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


def filler(loss: Loss) -> float:
    """A target that the loss is defined for, for rows without weight."""
    return float(loss.target == "positive")


class MergedRows(NamedTuple):
    """Rows with a common score, merged into one row per group.

    Attributes:
        target: (groups,), or (groups, classes), the weighted mean target of each group; `filler`
            for a group without weight.
        weight: (groups,) the summed weight.
        constant: the weighted sum of the losses of the original rows minus that of the merged rows,
            which is the same for all scores; 0 except for real targets.
    """

    target: Floats
    weight: Floats
    constant: float


def merge_rows(
    loss: Loss, y: Floats, sample_weight: Floats, group: NDArray[np.integer], n_groups: int
) -> MergedRows:
    """Merge rows with a common score.

    Args:
        y: (rows,) in the loss's coding, or means of it; (rows, classes) for `softmax`.
        sample_weight: (rows,) at least 0.
        group: (rows,) the group of each row, from 0 to n_groups - 1.

    Raises:
        ValueError: if rows are to be merged, but the loss is not mergeable.
    """
    if not loss.mergeable and len(np.unique(group)) < len(group):
        raise ValueError(
            f"loss {loss.name!r} is not mergeable: the mean target of rows does not determine "
            "their loss"
        )

    def totals(of_row: Floats) -> Floats:
        return np.bincount(group, of_row, n_groups).astype(np.float64)

    weight = totals(sample_weight)
    if y.ndim > 1:
        target = np.stack([totals(sample_weight * one) for one in y.T], axis=1)
    else:
        target = totals(sample_weight * y)
    np.divide(target.T, weight, out=target.T, where=weight > 0)
    target[~(weight > 0)] = filler(loss)
    if loss.target == "sign":
        np.clip(target, -1.0, 1.0, out=target)  # a quotient of equal sums may round to above 1
        return MergedRows(target, weight, 0.0)
    # These losses are a(f) + y b(f): no part of them depends on y alone.
    if loss.link == "log":
        return MergedRows(target, weight, 0.0)
    # l(y, f) - l(mean, f) summed over a group does not depend on f: any f gives it, also f = mean.
    mean = target[group]
    return MergedRows(
        target,
        weight,
        float((sample_weight @ (loss.value(y, mean) - loss.value(mean, mean))).sum()),
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
            f"y must be non-negative for the {loss.name} loss; its smallest value is {np.min(y):g}"
        )
    if loss.target == "positive" and np.any(y <= 0):
        raise ValueError(
            f"y must be positive for the {loss.name} loss; its smallest value is {np.min(y):g}; "
            'amounts that may be 0 need "tweedie(power=1.5)"'
        )


_TARGETS = np.linspace(0, 1, 65)
_SAME_SCORE = 1e-9
"""A share of the range of scores: if the gradient changes by a thousandth of its size over so short
a step, the loss has a kink there.
"""


def check_own(loss: Loss, y: np.ndarray) -> None:
    """Refuse a user's loss that no solver can minimise for this target.

    It is evaluated at quantiles of y, and at scores in their range (from -6 to 6 for classes).

    Raises:
        ValueError: names the loss, what fails where, and the remedy: for values or derivatives that
            are not finite, negative curvature, a kink, or scores without any curvature.
    """
    if is_ours(loss):
        return
    targets = np.unique(np.quantile(y.ravel(), _TARGETS, method="inverted_cdf"))
    if loss.target == "sign":
        tried = np.linspace(-6, 6, 25)
    else:
        tried = targets if loss.link == "identity" else np.log(targets[targets > 0])
        tried = tried if len(tried) else np.zeros(1)
    across, scores = (grid.ravel() for grid in np.meshgrid(targets, tried))
    value, gradient, curvature = (np.asarray(part) for part in loss.terms(across, scores))

    def refuse(where: np.ndarray, what: str, remedy: str) -> None:
        if where.any():
            at = f"y = {across[where][0]:.4g} and a score of {scores[where][0]:.4g}"
            raise ValueError(f"loss {loss.name!r} {what} at {at}; {remedy}")

    finite = np.isfinite(value) & np.isfinite(gradient) & np.isfinite(curvature)
    refuse(~finite, "has a non-finite derivative", "use a loss that is defined for this y")
    largest = float(np.abs(curvature).max())
    refuse(
        curvature < -1e-9 * largest,
        "is not convex in the score: its second derivative is negative",
        "use a convex loss (a sum of convex functions, or the logistic loss with sample_weight)",
    )
    step = _SAME_SCORE * float(np.ptp(tried) or 1.0)
    jump = np.asarray(loss.gradient(across, scores + step) - loss.gradient(across, scores - step))
    smooth = f"smooth it over a width, as in {_SMOOTH}"
    refuse(jump > 1e-3 * np.abs(gradient).max(), "has a kink", smooth)
    flat = np.isin(scores, tried[curvature.reshape(len(tried), -1).sum(axis=1) <= 0])
    refuse(flat, "has no curvature for any y", f"weights are Newton steps, so {smooth}")


def is_ours(loss: Loss) -> bool:
    """Whether the loss is one of this module."""
    return loss is softmax or _BY_NAME.get(loss.name) is loss or _of_family(loss.name) is loss


def mean_offset(loss: Loss, sample_weight: Floats, offset: Floats) -> float:
    """The offset from which those of a loss with the log link are measured, so that their unit
    changes nothing: the logarithm of the mean exposure, and for other powers the offset whose
    removal keeps the sum of the weights of `relative`; 0 for other links.
    """
    if loss.power is None:
        return 0.0
    shares = sample_weight / sample_weight.sum()
    # Weights of `relative` keep their sum if c = log(sum_i share_i exp(by o_i)) / by.
    # Relative to the largest offset no exponent overflows; the minimum is for rows without weight.
    largest, by = float(offset[shares > 0].max()), 2 - loss.power
    below = np.minimum(offset - largest, 0.0)
    if by == 0:  # the limit, for weights that do not depend on offsets
        return largest + float(shares @ below)
    return largest + float(np.log(shares @ np.exp(by * below))) / by


def relative(loss: Loss, y: Floats, sample_weight: Floats, offset: Floats) -> tuple[Floats, Floats]:
    """The target and weights with which the loss at a score f is, up to a constant, that of y at f
    + offset.

    For the identity link the target is y - offset. For the log link and the power p, with the
    exposure e = exp(offset), it is the rate y / e with the weight e^(2 - p), because l(y, f +
    offset) = e^(2 - p) l(y / e, f) + constant.

    Raises:
        ValueError: names `offset`, for a loss without such a form.
    """
    if loss.link == "identity" and is_ours(loss):
        return y - offset, sample_weight
    if loss.power is None:
        raise ValueError(
            f"offset and exposure are for the losses poisson, gamma and tweedie, and offset also "
            f"for squared, huber, absolute and quantile, not for {loss.name!r}; set loss to one "
            "of them"
        )
    exposure = np.exp(offset)
    return y / exposure, sample_weight * exposure ** (2 - loss.power)


def derivatives(
    loss: Loss, y: np.ndarray, score: np.ndarray, *, majorant: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient and curvature per row in float64, checked.

    Args:
        majorant: use the curvature of the loss's majorant, if it has one.

    Returns:
        gradient, curvature: float64 arrays of y's shape.

    Raises:
        ValueError: names the loss, for a non-finite derivative or a negative curvature (not
            convex).
    """
    gradient = np.asarray(loss.gradient(y, score), np.float64)
    above = loss.majorant if majorant else None
    curvature = np.asarray((above or loss.curvature)(y, score), np.float64)
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


_BENT = 0.1
"""Share of the largest curvature that rows near the kink have."""


def widened(loss: Loss, y: np.ndarray, score: np.ndarray) -> Loss | None:
    """The wider loss whose minimum is to be found first if Newton's method stalls from this score:
    far from a kink, a row has no curvature that would show where the kink is. None if every row is
    near its kink, or the loss has none.
    """
    if loss.wider is None or loss.curvature_bound is None:
        return None
    least = np.min(loss.curvature(y, score), initial=loss.curvature_bound)
    return None if least >= _BENT * loss.curvature_bound else loss.wider()


def mean_loss(
    loss: Loss, y: np.ndarray, score: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """The (weighted) mean of the loss over rows."""
    return float(np.average(loss.value(y, score), weights=sample_weight))


def least_loss(loss: Loss, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
    """The least (weighted) mean loss of any scores, -loss*(0), of a loss with a conjugate: below 0
    for large counts. Without a conjugate 0.
    """
    if loss.conjugate is None:
        return 0.0
    of_row = loss.conjugate(y, np.zeros(y.shape))
    return -float(np.mean(np.average(of_row, axis=0, weights=sample_weight)))


def best_constant(loss: Loss, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Any:
    """The constant score with the least (weighted) mean loss; one per class for `softmax`.

    Raises:
        ValueError: if no finite constant is best (for example with only one class, or no positive
            count); as `derivatives`, at the score 0 and at the best constant.
    """
    if loss == softmax:  # the logarithms of the shares
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        return np.log((1 + y.T) / 2 @ weights / weights.sum())
    weights = np.ones_like(y) if sample_weight is None else sample_weight
    if is_ours(loss) and loss.target == "sign" and np.all(np.abs(y) == 1):
        # two merged rows: a thousand classes ask for as many constants
        weights, y = np.bincount(y > 0, weights, 2), np.array([-1.0, 1.0])
    nothing = np.zeros_like(y)
    derivatives(loss, y, nothing)
    score = best_shift(loss, y, nothing, weights)
    derivatives(loss, y, nothing + score)
    # exp(-30) is 1e-13: towards a share or mean of 0, scores run away without end.
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
    """The b that minimises sum_i w_i loss(y_i, scores_i + b) + l2_penalty b^2 / 2, by `shift_step`
    until the gradient is rounding.
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
"""The most steps towards the best shift."""
SHIFT_ROUNDING = 4.0
"""A gradient of up to this many units of rounding, relative to the summed absolute values of its
rows, counts as 0.
"""
_LONGEST_SHIFT = 3.0  # in one step, for a score that is a logarithm


def shift_step(
    loss: Loss,
    shift: Array,
    low: Array,
    high: Array,
    gradient: Array,
    curvature: Array,
    step: Array,
) -> tuple[Array, Array, Array]:
    """One step of Newton's method in one dimension, safeguarded by a bracket from the signs of the
    gradient.

    Args:
        shift: the current shift.
        low, high: the bracket, infinite at first.
        gradient, curvature: of the sum over the rows, at `shift`.
        step: the number of steps before.

    Returns:
        The next shift, and the bracket, which is empty if the shift stays because the gradient is
        rounding.
    """
    xp = numpy_of(gradient)
    # By convexity, the minimum lies above a shift where the loss falls, below one where it rises.
    low, high = xp.where(gradient < 0, shift, low), xp.where(gradient > 0, shift, high)
    change = -gradient / (curvature + xp.finfo(xp.result_type(gradient, 1.0)).tiny)
    if not loss.quadratic:  # far from the minimum the curvature may vanish, or overflow
        # With the identity link a score has the unit of y, which may be anything.
        limit = _LONGEST_SHIFT * (2.0**step if loss.link == "identity" else 1.0)
        change = xp.where(
            xp.isnan(change), -xp.sign(gradient) * limit, xp.clip(change, -limit, limit)
        )
    newton, middle = shift + change, (low + high) / 2
    # Without both ends of the bracket there is no middle.
    outside = ((newton < low) | (newton > high)) & xp.isfinite(middle)
    following = xp.where(outside, middle, newton)
    # An empty bracket is the sign to stop: the change is less than the rounding of the shift.
    return following, low, xp.where(following == shift, low, high)
