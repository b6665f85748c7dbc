"""Checks of arguments, the same for every learner: each returns the plain Python value or refuses
the given one.

Numbers may be Python's or NumPy's. A flag is not a number, a number is not a flag, and NaN and
infinity are neither. Messages name the argument and the values that it may have.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import numbers
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import jax
import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value")
Function = TypeVar("Function", bound=Callable[..., Any])

LARGEST = 2**62
"""The largest integer allowed: kernels count in 64 bits."""

_ALSO_CALLED = {
    "random_state": ("seed",),
    "verbose": ("progress",),
    "timeout": ("time_limit",),
    "max_depth": ("max_length",),
    "n_rules": ("max_rules",),
    "warm_start": ("start", "first"),
    "start": ("first",),
    "monotone_constraints": ("monotone",),
    "monotone_cst": ("monotone",),
    "metric": ("risk",),
    "scoring": ("risk",),
    "cv": ("folds", "n_folds"),
    "n_splits": ("folds", "n_folds"),
}
"""Names that other libraries give to arguments, and what they are called here."""


_COLUMNS_NAMED = 30
"""Columns that an error names."""
_QUESTIONS = ("predict", "predict_proba", "decision_function", "explain")


def unknown_attribute(owner: object, name: str, model: str) -> AttributeError:
    """The error for an attribute that an object lacks; what is asked of a model is a function of
    this library.
    """
    hint = f"; use jaxrules.{name}({model}, X)" if name in _QUESTIONS else ""
    return AttributeError(
        f"{type(owner).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=owner
    )


def unknown_argument(function: str, name: str, known: Collection[str]) -> TypeError:
    """The error for an unknown argument, which suggests the one that may be meant.

    Args:
        function: the full name, for ``help``.
        name: of the argument.
        known: the function's arguments.
    """
    if name in ("special_values", "special_codes"):
        remedy = "they belong to the table: pass jaxrules.as_table(X, special_values=...) as X"
        return TypeError(f"{function}() has no argument {name!r}; {remedy}")
    if name in ("exposure", "offset"):
        # Names like them would mislead: "measure".
        remedy = "its result does not depend on it; omit it"
        if "sample_weight" in known:
            without = "y / exposure as y, with sample_weight=exposure"
            remedy = f"pass {without if name == 'exposure' else 'y - offset as y'}"
        return TypeError(f"{function}() has no argument {name!r}; {remedy}")
    close = [one for one in _ALSO_CALLED.get(name, ()) if one in known] or _alike(name, known)
    remedy = f"did you mean {close[0]!r}?" if close else f"see help({function})"
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}; {remedy}")


def known_arguments(function: Function) -> Function:
    """Decorate a public function, so that the error for an unknown keyword suggests the one that
    may be meant.

    Raises:
        TypeError: from the function, as `unknown_argument`.
    """
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                module = function.__module__.removesuffix(".comparisons").replace(".users.", ".")
                raise unknown_argument(f"{module}.{function.__name__}", name, known)
        return function(*args, **kwargs)

    return cast(Function, call)


_signature = functools.cache(inspect.signature)


@functools.cache
def _takes(function: Callable[..., Any], n: int) -> bool:
    """Whether a function can be called with n arguments by position and no others."""
    try:
        _signature(function).bind(*[None] * n)
    except TypeError:
        return False
    return True


if TYPE_CHECKING:
    from functools import singledispatch as verb
else:

    def verb(function: Function) -> Function:
        """`functools.singledispatch` of a public function on its first argument, the model, which
        may also be a keyword. Errors for arguments that its method lacks name the function.

        Raises:
            TypeError: from the function, as `unknown_argument`; for a missing argument.
        """
        generic = functools.singledispatch(function)
        name, first = function.__name__, next(iter(_signature(function).parameters))

        @functools.wraps(generic)
        def call(*args: Any, **kwargs: Any) -> Any:
            # `singledispatch` looks at positional arguments only.
            if not args and first in kwargs:
                args = (kwargs.pop(first),)
            # The method's signature, not the function's: a model may lack arguments that others
            # have.
            method = generic.dispatch(type(args[0])) if args else function
            if not kwargs and _takes(method, len(args)):
                return method(*args)
            signature = _signature(method)
            for one in kwargs:
                if one not in signature.parameters:
                    raise unknown_argument(f"jaxrules.{name}", one, list(signature.parameters))
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{name}() {error}") from None
            return method(*args, **kwargs)

        return call


def its_conjunctions(value: object) -> str:
    """The remedy for a Fit or a model passed as rules; empty for other objects."""
    if hasattr(value, "conjunctions"):
        return "; pass its conjunctions"
    model = getattr(value, "model", None)
    return "; pass its model.conjunctions" if hasattr(model, "conjunctions") else ""


@contextlib.contextmanager
def spoken_of_as(name: str, other: str) -> Iterator[None]:
    """A context whose errors speak of another argument: they get the name of this one in front."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}, read as {other}: {error}") from error


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the code that called the library."""
    level, frame = 2, sys._getframe(1)
    between = ("jaxrules", "functools")  # singledispatch stands between the two
    # The first frame outside of the library is the user's.
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in between:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)


def require(holds: bool | np.bool_, message: str) -> None:
    """Refuse an argument unless the condition holds.

    Raises:
        ValueError: with this message.
    """
    if not holds:
        raise ValueError(message)


def optional(
    check: Callable[..., Value], name: str, value: object, **limits: float
) -> Value | None:
    """None, or the result of `check`."""
    return None if value is None else check(name, value, **limits)


def number(
    name: str,
    value: object,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> float:
    """A finite number within limits that are included (`at_least`, `at_most`) or excluded (`above`,
    `below`).

    Raises:
        TypeError: if it is not a number.
        ValueError: if it is NaN, infinite or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        given = float(value)
    except OverflowError:
        # A larger integer than float64 holds: refused below, since infinity is.
        given = math.inf
    low, high = at_least if above is None else above, at_most if below is None else below
    inside = (low is None or (given >= low if above is None else given > low)) and (
        high is None or (given <= high if below is None else given < high)
    )
    if inside and math.isfinite(given):
        return given
    if low is not None and high is not None:
        left, right = "[" if above is None else "(", "]" if below is None else ")"
        wanted = f"lie in {left}{low:g}, {high:g}{right}"
    elif low is not None:
        least = f"at least {low:g}" if above is None else f"above {low:g}" if low else "positive"
        wanted = f"be finite and {least}"
    elif high is not None:
        wanted = f"be finite and {'at most' if below is None else 'below'} {high:g}"
    else:
        wanted = "be finite"
    raise ValueError(f"{name} must {wanted}, got {value}")


def penalty(name: str, value: object) -> float:
    """A finite number of at least 0."""
    return number(name, value, at_least=0)


def penalties(name: str, values: object) -> tuple[float, ...]:
    """Finite numbers of at least 0, at least one of them; errors as `sequence`."""
    return tuple(sequence(name, values, at_least=0).tolist())


def sequence(name: str, values: object, **limits: float) -> NDArray[np.float64]:
    """Numbers within the limits of `number`, at least one: float64, shape (numbers,).

    Raises:
        TypeError: for anything but a sequence of numbers.
        ValueError: if it is empty, not one-dimensional, or one of them is NaN, infinite or out of
            range.
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


def descending(name: str, values: object, **limits: float) -> tuple[float, ...] | None:
    """None, or numbers from large to small; errors as `sequence`."""
    if values is None:
        return None
    return tuple(np.sort(sequence(name, values, **limits))[::-1].tolist())


def array(name: str, values: object) -> NDArray[np.float64]:
    """Numbers or booleans as a new array, float64; of any shape, with NaN and infinity allowed.

    Raises:
        TypeError: for anything else, or rows of different lengths.
    """
    concrete(name, values)
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill or drop the masked values")
    try:
        given = np.asarray(values)
        if given.dtype.kind == "O" and any(isinstance(one, (str, bytes)) for one in given.flat):
            raise TypeError("text is among them")
        if given.dtype.kind in "biufO":
            return given.astype(np.float64)
    except OverflowError:
        raise ValueError(f"{name} has numbers that float64 cannot hold") from None
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers: {error}") from error
    raise TypeError(f"{name} has type {given.dtype}; it must be numbers")


def concrete(name: str, value: object) -> None:
    """Refuse a value that JAX traces.

    Raises:
        TypeError: naming the argument.
    """
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{name} is being traced by JAX, and has no values yet; call this outside jit, grad "
            "and vmap"
        )


def integer(
    name: str, value: object, *, at_least: int | None = None, at_most: int = LARGEST
) -> int:
    """An integer within limits.

    Raises:
        TypeError: if it is not an integer; 1.0 is not one.
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


def size(name: str, value: object) -> int | Literal["auto"] | None:
    """A number of at least 1, None for any number, or "auto".

    Raises:
        TypeError, ValueError: as `integer`.
    """
    if value is None:
        return None
    if isinstance(value, str):
        if value != "auto":
            raise TypeError(f'{name} must be an integer, "auto" or None, got {value!r}')
        return "auto"
    return integer(name, value, at_least=1)


def seed(value: object) -> int:
    """The seed of a fit: an integer from 0 to 2**32 - 1, as in scikit-learn.

    Raises:
        TypeError, ValueError: as `integer`.
    """
    return integer("seed", value, at_least=0, at_most=2**32 - 1)


def _alike(name: str, known: Collection[str]) -> list[str]:
    """The known name that may be meant, if there is one."""
    from difflib import get_close_matches

    return get_close_matches(name, known, 1)


def column(name: str, key: object, names: Sequence[str]) -> int:
    """The position of a column, given by name or position.

    Raises:
        TypeError: if the key is neither text nor an integer.
        ValueError: if there is no such column.
    """
    if isinstance(key, str):
        if key not in names:
            shown = ", ".join(map(repr, names[:_COLUMNS_NAMED]))
            more = f" and {len(names) - _COLUMNS_NAMED} more" * (len(names) > _COLUMNS_NAMED)
            meant = "".join(f"; did you mean {one!r}?" for one in _alike(key, names))
            raise ValueError(
                f"{name} names {key!r}, which is not a column; the columns are {shown}{more}{meant}"
            )
        return names.index(key)
    if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
        raise TypeError(f"{name} must name columns by name or position, got {key!r}")
    meant = str(key)
    if meant in names and names.index(meant) != key:
        raise ValueError(
            f"{name} names column {key}, the position of one column and the name of another; write "
            f"{meant!r} for the column of that name, or the name of the other"
        )
    require(0 <= key < len(names), f"{name} names column {key}; there are {len(names)}")
    return int(key)


def text(name: str, value: object, what: str = "text") -> str:
    """Text; `what` says what it is.

    Raises:
        TypeError: for anything else.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {what}, got {type(value).__name__}")
    return value


def flag(name: str, value: object) -> bool:
    """True or False, also NumPy's.

    Raises:
        TypeError: for anything else, including 0 and 1.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: object, known: Sequence[Value]) -> Value:
    """One of the known values, each text or None.

    Raises:
        ValueError: naming them.
    """
    for one in known:
        # Not `value in known`: an array would be compared entry by entry.
        if value is one or (isinstance(value, str) and value == one):
            return one
    shown = [str(one) if one is None else f'"{one}"' for one in known]
    listed = " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    raise ValueError(f"{name} must be {listed}, got {value!r}")


def instance(name: str, value: object, kind: type[Value], source: str) -> Value:
    """An object of a type of this library; `source` names the function that creates it.

    Raises:
        TypeError: naming both.
    """
    if not isinstance(value, kind):
        hint = f"; pass its {name}" if isinstance(getattr(value, name, None), kind) else ""
        raise TypeError(
            f"{name} must be {kind.__name__} (see {source}), got {type(value).__name__}{hint}"
        )
    return value
