"""What immutable objects keep of what was computed from them.

A model answers for one row in the time of a few operations of NumPy, so it must not prepare its
rules anew at every call. What it keeps is no field: it is not compared, pickled or copied, and no
part of a pytree, so that an object rebuilt by JAX starts with nothing.

Two threads may compute the same value at once; one of the equal results stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

Value = TypeVar("Value")


class Keeps:
    """Base class of immutable objects that keep what was computed from them."""

    # A slot is in no `vars`, from which models are built and their parts are listed.
    __slots__ = ("_kept",)
    _kept: dict[str, Any]

    def recall(self, name: str) -> Any:
        """What was kept under this name; None for nothing."""
        try:
            return self._kept.get(name)
        except AttributeError:  # nothing was kept yet
            return None

    def keep(self, name: str, value: Value) -> Value:
        """Keep a value, and return it."""
        try:
            self._kept[name] = value
        except AttributeError:
            # The classes are frozen.
            object.__setattr__(self, "_kept", {name: value})
        return value

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__


if TYPE_CHECKING:
    kept = property
else:

    def kept(compute: Callable[[Keeps], Any]) -> property:
        """A property that is computed once; it must not be None."""
        name = compute.__name__

        def get(owner: Keeps) -> Any:
            value = owner.recall(name)
            return owner.keep(name, compute(owner)) if value is None else value

        return property(get, doc=compute.__doc__)
