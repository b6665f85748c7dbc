"""What an option refuses, read off the check that it is declared with (`learning.options.option`).

Options whose check is their learner's own have their bad values in test_contracts.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from jaxrules.tools import checks


class Bad(NamedTuple):
    """A value, the error that it raises, and what follows the option's name in its message."""

    value: Any
    error: type[Exception]
    words: str


def numbers(wanted: str, *outside: float) -> tuple[Bad, ...]:
    return (
        *(Bad(value, TypeError, "must be a number") for value in ("0.1", True, [1.0])),
        *(Bad(value, ValueError, wanted) for value in (math.nan, math.inf, *outside)),
    )


def integers(least: int) -> tuple[Bad, ...]:
    return (
        *(Bad(value, TypeError, "must be an integer") for value in ("2", True, 2.5)),
        *(Bad(value, ValueError, f"must be at least {least}") for value in range(-1, least)),
    )


def one_of(first: str, *others: Any) -> tuple[Bad, ...]:
    return tuple(
        Bad(value, ValueError, rf"must be {first}.*got {value!r}")
        for value in ("none such", 3, *others)
    )


NEVER_NONE = Bad(None, TypeError, "must be a")


def _outside(limits: dict[str, float]) -> Iterator[float]:
    """The first number beyond each limit."""
    for name, limit in limits.items():
        beyond = {"at_least": -math.inf, "above": limit, "at_most": math.inf, "below": limit}
        yield math.nextafter(limit, beyond[name])


def _numbers(limits: dict[str, float]) -> tuple[Bad, ...]:
    return numbers("must (be finite|lie in)", *_outside(limits))


def _flags(limits: dict[str, Any]) -> tuple[Bad, ...]:
    return tuple(Bad(value, TypeError, "must be True or False") for value in (1, "yes", None))


def _integers(limits: dict[str, Any]) -> tuple[Bad, ...]:
    most = (Bad(limits["at_most"] + 1, ValueError, "must be"),) if "at_most" in limits else ()
    return (*integers(limits["at_least"]), *most)


def _sequences(limits: dict[str, float]) -> tuple[Bad, ...]:
    return (
        Bad("1", TypeError, "must be a non-empty sequence"),
        Bad(2.0, TypeError, "must be a non-empty sequence"),
        Bad([], ValueError, "must be a non-empty sequence"),
        Bad([1.0, math.nan], ValueError, "must (be finite|lie in)"),
        *(Bad([outside], ValueError, "must (be finite|lie in)") for outside in _outside(limits)),
    )


def _choices(known: Sequence[Any]) -> tuple[Bad, ...]:
    first = "None" if known[0] is None else f'"{known[0]}"'
    return one_of(first, *(() if None in known else (None,)))


_BY_CHECK: dict[Callable[..., Any], Callable[[dict[str, Any]], tuple[Bad, ...]]] = {
    checks.flag: _flags,
    checks.number: _numbers,
    checks.penalty: lambda limits: _numbers({"at_least": 0}),
    checks.penalties: lambda limits: _sequences({"at_least": 0}),
    checks.descending: _sequences,
    checks.integer: _integers,
    checks.size: lambda limits: integers(1),
    checks.choice: lambda limits: _choices(limits["known"]),
}
_NONE_MEANS_SOMETHING = (
    checks.optional,
    checks.size,
    checks.descending,
    checks.choice,
    checks.flag,
)


def refused(check: Any) -> tuple[Bad, ...]:
    """Bad values of an option with this check; none if it is the learner's own, or there is
    none.
    """
    if check is None:
        return ()
    function, limits = check.func, check.keywords
    if function is checks.optional:
        function = check.args[0]
    if function not in _BY_CHECK:
        return ()
    found = _BY_CHECK[function](limits)
    if check.func is checks.optional:
        found = tuple(bad for bad in found if bad.value is not None)
    return found if check.func in _NONE_MEANS_SOMETHING else (*found, NEVER_NONE)
