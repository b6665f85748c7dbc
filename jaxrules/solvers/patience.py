"""Kernels that compile for seconds at their first use. Compilation cannot be interrupted, so it
runs in a thread that is abandoned when time runs out.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import jax

from jaxrules.tools.float64 import our_settings

_LISTENING = 0.02
"""Seconds between two calls of `stopped`."""


class Patient:
    """A jitted kernel that compiles in a thread of its own, so that its caller can stop waiting.

    An abandoned compilation continues in the background for later calls; the interpreter waits for
    it before it exits.
    """

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel
        self._compiled: dict[Any, threading.Event] = {}
        self._lock = threading.Lock()

    def __call__(self, stopped: Callable[[], bool], *args: Any, **static: Any) -> Any:
        """The kernel's result for these arguments; None if it was stopped while it compiled."""
        leaves, structure = jax.tree.flatten(args)
        key = structure, *map(_kind, leaves), *static.items()
        with self._lock:
            # One thread compiles for each kind of arguments; later calls wait for the same event.
            first = key not in self._compiled
            compiled = self._compiled.setdefault(key, threading.Event())
        answer: list[Any] = []  # empty after an error: this thread repeats the call
        if first:
            config: Any = jax.config  # JAX adds its options at run time
            device = config.jax_default_device

            def call() -> None:  # every thread has its own settings of JAX
                try:
                    with contextlib.suppress(Exception), our_settings(), jax.default_device(device):
                        answer.append(self.kernel(*args, **static))
                finally:
                    compiled.set()

            threading.Thread(target=call).start()
        while not compiled.wait(_LISTENING):
            if stopped():
                return None
        return answer[0] if answer else self.kernel(*args, **static)


def _kind(leaf: Any) -> Any:
    """The part of an argument that a kernel is compiled for."""
    if hasattr(leaf, "dtype"):
        return leaf.shape, leaf.dtype, getattr(leaf, "sharding", None)
    return type(leaf) if isinstance(leaf, (bool, int, float)) else leaf
