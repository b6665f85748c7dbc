"""Kernels that compile for seconds at their first use. Compilation cannot be interrupted, so it
runs in a thread that is abandoned when time runs out.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import jax

from jaxrules.tools.float64 import our_settings

_LISTENING = 0.02
"""Seconds between two calls of `stopped`, while a kernel compiles."""


class Patient:
    """A jitted kernel that compiles in a thread of its own, so that its caller can stop waiting.

    An abandoned compilation continues in the background for later calls; the interpreter waits for
    it before it exits.
    """

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel
        # Not events: Ctrl-C inside of one can leave it locked, and later calls would wait for ever.
        self._begun: set[Any] = set()
        self._done: set[Any] = set()
        self._lock = threading.Lock()

    def __call__(self, stopped: Callable[[], bool], *args: Any, **static: Any) -> Any:
        """The kernel's result for these arguments; None if it was stopped while it compiled."""
        leaves, structure = jax.tree.flatten(args)
        key = structure, *map(_kind, leaves), *static.items()
        answer: list[Any] = []  # empty after an error: this thread repeats the call
        with self._lock:
            # One thread compiles for each kind of arguments; later calls wait for it.
            first = key not in self._begun
            self._begun.add(key)
        if first:
            try:
                self._compile(key, answer, args, static)
            except BaseException:  # Ctrl-C, perhaps before the thread began
                self._done.add(key)
                raise
        while key not in self._done:
            time.sleep(_LISTENING)
            if key not in self._done and stopped():
                return None
        return answer[0] if answer else self.kernel(*args, **static)

    def _compile(self, key: Any, answer: list[Any], args: Any, static: Any) -> None:
        """Put the kernel's result into `answer`, in a thread."""
        config: Any = jax.config  # JAX adds its options at run time
        device = config.jax_default_device

        def call() -> None:  # every thread has its own settings of JAX
            try:
                with contextlib.suppress(Exception), our_settings(), jax.default_device(device):
                    answer.append(self.kernel(*args, **static))
            finally:
                self._done.add(key)

        threading.Thread(target=call).start()


def _kind(leaf: Any) -> Any:
    """The part of an argument that a kernel is compiled for."""
    if hasattr(leaf, "dtype"):
        return leaf.shape, leaf.dtype, getattr(leaf, "sharding", None)
    return type(leaf) if isinstance(leaf, (bool, int, float)) else leaf
