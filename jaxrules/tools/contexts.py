"""Variables that have a value within a block of code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeVar

Value = TypeVar("Value")


@contextlib.contextmanager
def within(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """The context in which the variable has this value, in this thread."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
