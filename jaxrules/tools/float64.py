"""float64 kernels without the global flag.

Objectives and certificates need float64; the user's global JAX configuration stays as it is. A
kernel decorated with `x64_kernel` is jitted once at module level, runs inside the `jax.enable_x64`
context (which keys the jit cache), and returns NumPy arrays: no float64 jax.Array leaves this
module, because outside the context JAX would quietly truncate it. A host function that calls
several kernels in turn is decorated with `in_x64` and calls their ``.jitted``, so that the arrays
between them stay on the device.

JAX 0.10's `jax_explicit_x64_dtypes` cannot replace the context: it allows 64 bits only for explicit
dtypes, while NumPy arguments of a jitted function still arrive as float32, `zeros` and `where`
default to float32, and reductions such as `argmax` over float64 fail. It is also a global flag
without a public context manager, and arrays that outlive it are truncated with the same warning.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrules.tools import placement


@contextlib.contextmanager
def our_settings() -> Iterator[None]:
    """JAX as the library needs it, whatever the user's configuration: dtypes promoted, NumPy arrays
    accepted, kernels compiled, products of full precision. Also a decorator.
    """
    with (
        jax.numpy_dtype_promotion("standard"),
        jax.transfer_guard("allow"),
        jax.disable_jit(False),
        full_precision(),
    ):
        yield


def full_precision() -> contextlib.AbstractContextManager[None]:
    """Products traced in this block, and their derivatives, have the precision of their dtype: by
    default, accelerators round the operands of float32 products to ten bits or less. Kernels are
    inside it by `our_settings`; code that the user's own `jit` or `grad` traces enters it itself.
    """
    return jax.default_matmul_precision("highest")


@contextlib.contextmanager
def x64() -> Iterator[None]:
    """The float64 context, with `our_settings`."""
    with our_settings(), jax.enable_x64(True):
        yield


def in_x64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run `function` in the float64 context; arrays that it returns become NumPy arrays."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with x64():
            # Inside of the context: outside, JAX would truncate the float64 results.
            return jax.tree.map(placement.to_host, function(*args, **kwargs))

    return call


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
    call = functools.wraps(function)(in_x64(jitted))
    call.jitted = jitted  # type: ignore[attr-defined]  # functions accept attributes
    return call


def numpy_of(*arrays: Any) -> Any:
    """`jax.numpy` if an array is JAX's, else NumPy: for formulas of both."""
    for array in arrays:  # a loop, as small problems ask very often
        if isinstance(array, jax.Array):
            return jnp
    return np


_WORTH_IT = 1 << 20


def worth_an_accelerator(entries: int) -> bool:
    """Whether a matrix of this many entries belongs on an accelerator: it is large, and JAX has
    one. A small matrix does not start JAX's backend.
    """
    return entries > _WORTH_IT and placement.device().platform != "cpu"


def on_device(arrays: Any, rows: int | None = None) -> Any:
    """The arrays in the memory of the devices, with float64 kept; only for kernels, which would
    otherwise copy them at every call.

    Args:
        arrays: a pytree.
        rows: their axis of rows, which `placement.rows_over` splits; see `placement.place`.
    """
    with x64():
        return jax.tree.map(lambda array: placement.place(array, rows), arrays)
