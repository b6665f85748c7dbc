"""What happens at every call of a fit, before its own work: `guarded`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from jaxrules import checks
from jaxrules.constraints import KEPT_BY
from jaxrules.interrupts import Interrupt, refuse_forks
from jaxrules.runs import Deadline

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def guarded(fit: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A function of `time_limit` that keeps it from call to return, and never
    lets KeyboardInterrupt out.

    The clock starts with the call. Until the return Ctrl-C is deferred (see `Interrupt`),
    while data are prepared too.

    Raises:
        TypeError: for a constraint that it does not know, naming the learners that do,
            and for any other argument.
        RuntimeError: in a process forked off one that has used JAX, where a fit would wait for
            ever.
    """
    known = list(inspect.signature(fit).parameters)

    @functools.wraps(fit)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        refuse_forks()
        for name in kwargs.keys() - known:
            of = fit.__module__.rpartition(".")[2]
            if name in KEPT_BY:
                raise TypeError(
                    f"{of}.{fit.__name__} cannot keep {name}; {KEPT_BY[name]} can "
                    "(docs/constraints.md)"
                )
            raise checks.unknown_argument(f"jaxrules.{of}.{fit.__name__}", name, known)
        with Interrupt().deferred():
            kwargs["time_limit"] = Deadline.of(kwargs.get("time_limit"))  # type: ignore[arg-type]  # it checks
            return fit(*args, **kwargs)

    return call
