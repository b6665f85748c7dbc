"""float64 kernels without the global flag.

Objectives and certificates need float64; the user's global JAX configuration stays as it is. A kernel
decorated with `x64_kernel` is jitted once at module level, runs inside the `jax.enable_x64` context
(which keys the jit cache), and returns NumPy arrays: no float64 jax.Array leaves this module, because
outside the context JAX would quietly truncate it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np


def x64_kernel(function: Callable[..., Any] | None = None, *, static: tuple[str, ...] = ()) -> Any:
    """Jit `function` in float64; arguments are NumPy or float32/integer jax arrays, results NumPy.

    Args:
        function: the kernel, a function of arrays.
        static: names of the arguments that are compile-time constants.

    The jitted function is `kernel.jitted`, so that tests can count its traces with
    ``kernel.jitted._cache_size()``.
    """
    if function is None:
        return functools.partial(x64_kernel, static=static)
    jitted = jax.jit(function, static_argnames=static)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, jitted(*args, **kwargs))

    call.jitted = jitted  # type: ignore[attr-defined]  # functions take attributes; mypy does not know which
    return call


def on_device(arrays: Any) -> Any:
    """The arrays in the memory of the device, float64 kept: for kernels alone, which else copy them at every call."""
    with jax.enable_x64(True):
        return jax.device_put(arrays)
