"""What happens at every call of a fit, before its own work: `guarded` and `deferred`."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from jaxrules import checks
from jaxrules.constraints import KEPT_BY
from jaxrules.interrupts import Interrupt, refuse_forks
from jaxrules.runs import Deadline

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@contextlib.contextmanager
def deferred(
    fit: Callable[..., Any], given: Mapping[str, Any] | None = None, known: Collection[str] = ()
) -> Iterator[None]:
    """The time of a call of `fit`: Ctrl-C is deferred until it ends (see `Interrupt`).

    Raises:
        TypeError: for a constraint in `given` that is not known, naming the learners that keep it,
            and for any other argument.
        RuntimeError: in a process forked off one that has used JAX, where a fit would wait for
            ever.
    """
    refuse_forks()
    for name in given or ():
        if name not in known:
            called = _public_name(fit)
            if name in KEPT_BY:
                raise TypeError(
                    f"{called} cannot keep {name}; {KEPT_BY[name]} can (docs/constraints.md)"
                )
            raise checks.unknown_argument(f"jaxrules.{called}", name, known)
    with Interrupt().deferred():
        yield


def _public_name(fit: Callable[..., Any]) -> str:
    """What users call a function: ``boosting.fit``, ``paths.pareto``, ``compare``."""
    parts = fit.__module__.removeprefix("jaxrules.").removeprefix("ensembles.").split(".")
    room, module = parts[0], parts[-1]
    if room in ("boosting", "lire", "paths"):
        return f"{room}.{fit.__name__}"
    whole = room == "comparison" or module == fit.__name__
    return fit.__name__ if whole else f"{module}.{fit.__name__}"


def guarded(fit: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A function of `time_limit` that keeps it from call to return, and never lets
    KeyboardInterrupt out. The clock starts with the call.

    Raises:
        TypeError, RuntimeError: as `deferred`.
    """
    known = list(inspect.signature(fit).parameters)

    @functools.wraps(fit)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with deferred(fit, kwargs, known):
            limit: Any = kwargs.get("time_limit")
            kwargs["time_limit"] = Deadline.of(limit)
            return fit(*args, **kwargs)

    return call
