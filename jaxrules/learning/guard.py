"""What happens at every call of a fit before its own work: `guarded` and `deferred`."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from jaxrules.rules.constraints import KEPT_BY
from jaxrules.tools import checks
from jaxrules.tools.interrupts import Interrupt, refuse_forks
from jaxrules.tools.runs import Deadline

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@contextlib.contextmanager
def deferred(
    fit: Callable[..., Any], given: Mapping[str, Any] | None = None, known: Collection[str] = ()
) -> Iterator[None]:
    """The context of a call of `fit`, in which Ctrl-C is deferred (see `Interrupt`).

    Raises:
        TypeError: for a constraint in `given` that is not in `known`, naming the learners that
            enforce it; for any other argument that is not in `known`.
        RuntimeError: in a process forked from one that has used JAX, where a fit would hang.
    """
    refuse_forks()
    for name in given or ():
        if name not in known:
            called = _public_name(fit)
            if name in KEPT_BY:
                raise TypeError(
                    f"{called} cannot enforce {name}; {KEPT_BY[name]} can (docs/constraints.md)"
                )
            if "." in called and name in _OF_OTHERS:
                raise TypeError(f"{called} has no argument {name!r}; {_OF_OTHERS[name]}")
            raise checks.unknown_argument(f"jaxrules.{called}", name, known)
    with Interrupt().deferred():
        yield


_OF_RATES = "boosting, lltboost, ltrnet, rulefit, glrm and lire have it"
_OF_OTHERS = {
    "exposure": _OF_RATES,
    "offset": _OF_RATES,
    "groups": "it is for folds: use the cross_validate of the learner, or rulefit.fit",
}
"""What learners say of options that others have."""


def _public_name(fit: Callable[..., Any]) -> str:
    """What users call a function: ``boosting.fit``, ``paths.pareto``, ``compare``."""
    parts = (
        fit.__module__.removeprefix("jaxrules.")
        .removeprefix("ensembles.")
        .removeprefix("users.")
        .split(".")
    )
    room, module = parts[0], parts[-1]
    if room in ("boosting", "glrm", "lire", "lltboost", "paths"):
        return f"{room}.{fit.__name__}"
    whole = room == "comparison" or module == fit.__name__
    return fit.__name__ if whole else f"{module}.{fit.__name__}"


def guarded(fit: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function with a `time_limit`: the clock starts with the call, and
    KeyboardInterrupt never leaves the function.

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
