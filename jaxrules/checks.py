"""Checks of arguments, the same for every learner: each returns the plain
Python value, or refuses it.

Python's and NumPy's numbers are welcome. A flag is no number, a number no flag, and NaN and
infinity are neither. Messages name the argument and say what it may be.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value")

LARGEST = 2**62
"""No integer is larger: kernels count in 64 bits."""


_ALSO_CALLED = {
    "random_state": ("seed",),
    "verbose": ("progress",),
    "timeout": ("time_limit",),
    "max_depth": ("max_length",),
    "n_rules": ("max_rules",),
    "warm_start": ("start", "first"),
    "start": ("first",),
}
"""What arguments are called elsewhere."""


def unknown_argument(function: str, name: str, known: Collection[str]) -> TypeError:
    """The error of an argument that a function does not have: it names the one that may be meant.

    Args:
        function: the whole name, for ``help``.
        name: of the argument.
        known: the arguments that there are.
    """
    from difflib import get_close_matches

    close = [one for one in _ALSO_CALLED.get(name, ()) if one in known] or get_close_matches(
        name, known, 1
    )
    remedy = f"did you mean {close[0]!r}?" if close else f"see help({function})"
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}; {remedy}")


def its_conjunctions(value: Any) -> str:
    """What to pass instead of a Fit or a model, where rules are wanted;
    nothing for other objects.
    """
    if hasattr(value, "conjunctions"):
        return "; pass its conjunctions"
    return (
        "; pass its model.conjunctions"
        if hasattr(getattr(value, "model", None), "conjunctions")
        else ""
    )


def require(holds: bool | np.bool_, message: str) -> None:
    """Refuse what does not hold.

    Raises:
        ValueError: with this message.
    """
    if not holds:
        raise ValueError(message)


def optional(check: Callable[..., Value], name: str, value: Any, **limits: Any) -> Value | None:
    """None, or what `check` says."""
    return None if value is None else check(name, value, **limits)


def number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> float:
    """A finite number within limits, which belong to the range (`at_least`, `at_most`)
    or not (`above`, `below`).

    Raises:
        TypeError: if it is no number.
        ValueError: if it is NaN, infinite or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        given = float(value)
    except OverflowError:
        given = math.inf
    low, high = at_least if above is None else above, at_most if below is None else below
    inside = (low is None or (given >= low if above is None else given > low)) and (
        high is None or (given <= high if below is None else given < high)
    )
    if inside and math.isfinite(given):
        return given
    if low is not None and high is not None:
        wanted = f"lie in {'[' if above is None else '('}{low:g}, {high:g}{']' if below is None else ')'}"
    elif low is not None:
        least = f"at least {low:g}" if above is None else f"above {low:g}" if low else "positive"
        wanted = f"be finite and {least}"
    elif high is not None:
        wanted = f"be finite and {'at most' if below is None else 'below'} {high:g}"
    else:
        wanted = "be finite"
    raise ValueError(f"{name} must {wanted}, got {value}")


def penalty(name: str, value: Any) -> float:
    """A finite number of at least 0."""
    return number(name, value, at_least=0)


def penalties(name: str, values: Any) -> tuple[float, ...]:
    """Finite numbers of at least 0, at least one of them; errors as `sequence`."""
    return tuple(sequence(name, values, at_least=0).tolist())


def sequence(name: str, values: Any, **limits: float) -> NDArray[np.float64]:
    """Numbers within the limits of `number`, at least one: float64, shape (numbers,).

    Raises:
        TypeError: for anything but a sequence of numbers.
        ValueError: if it is empty, not one-dimensional, or one of them is NaN,
            infinite or out of range.
    """
    if isinstance(values, str) or not (
        isinstance(values, Sequence) or hasattr(values, "__array__")
    ):
        raise TypeError(
            f"{name} must be a non-empty sequence of numbers, got {type(values).__name__}"
        )
    plain = values if isinstance(values, Sequence) else np.asarray(values)
    if np.ndim(plain) != 1 or not len(plain):
        raise ValueError(
            f"{name} must be a non-empty sequence of numbers, got shape {np.shape(plain)}"
        )
    return np.array([number(name, value, **limits) for value in plain])


def descending(name: str, values: Any, **limits: float) -> tuple[float, ...] | None:
    """None, or numbers from large to small; errors as `sequence`."""
    if values is None:
        return None
    return tuple(np.sort(sequence(name, values, **limits))[::-1].tolist())


def array(name: str, values: Any) -> NDArray[np.float64]:
    """Numbers or booleans as an array of its own, float64; of any shape, NaN and infinity among
    them.

    Raises:
        TypeError: for anything else, or rows of different lengths.
    """
    concrete(name, values)
    try:
        given = np.asarray(values)
        if given.dtype.kind in "biufO":
            return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers: {error}") from error
    raise TypeError(f"{name} has type {given.dtype}; it must be numbers")


def concrete(name: str, value: Any) -> None:
    """Refuse what JAX traces.

    Raises:
        TypeError: naming the argument.
    """
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{name} is being traced by JAX, and has no values yet; call this outside jit, grad "
            "and vmap"
        )


def integer(name: str, value: Any, *, at_least: int | None = None, at_most: int = LARGEST) -> int:
    """An integer within limits.

    Raises:
        TypeError: if it is no integer; 1.0 is none.
        ValueError: if it is out of range.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    given = int(value)
    if at_least is not None and given < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {given}")
    if given > at_most:
        raise ValueError(f"{name} must be at most {at_most}, got {given}")
    return given


def size(name: str, value: Any) -> int | Literal["auto"] | None:
    """A number of at least 1, None for any number, or "auto".

    Raises:
        TypeError, ValueError: as `integer`.
    """
    if value is None:
        return None
    if isinstance(value, str) and value == "auto":
        return "auto"
    return integer(name, value, at_least=1)


def seed(value: Any) -> int:
    """The seed of a fit: an integer from 0 to 2**32 - 1, as scikit-learn takes it.

    Raises:
        TypeError, ValueError: as `integer`.
    """
    return integer("seed", value, at_least=0, at_most=2**32 - 1)


def flag(name: str, value: Any) -> bool:
    """True or False; NumPy's too.

    Raises:
        TypeError: for anything else, 0 and 1 among it.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: Any, known: Sequence[Value]) -> Value:
    """One of the known values: texts, or None.

    Raises:
        ValueError: naming them.
    """
    for one in known:
        if value is one or (isinstance(value, str) and value == one):
            return one
    shown = [str(one) if one is None else f'"{one}"' for one in known]
    listed = " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    raise ValueError(f"{name} must be {listed}, got {value!r}")


def instance(name: str, value: Any, kind: type[Value], source: str) -> Value:
    """An object of a type of this library; `source` names the function that makes it.

    Raises:
        TypeError: naming both.
    """
    if not isinstance(value, kind):
        raise TypeError(
            f"{name} must be {kind.__name__} (see {source}), got {type(value).__name__}"
        )
    return value
