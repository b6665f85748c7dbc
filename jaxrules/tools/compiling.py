"""How numba compiles the library's kernels. It loads numba, so import it on first use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

import numba
from numba.core.caching import FunctionCache

FROM_KERNELS: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
"""Options of a function that only compiled functions call.

For every function, numba compiles two ways in, from Python and from C, which takes about as long as
a short function itself, and longer for arguments of many arrays. Few functions need both.
"""


class _Cache(FunctionCache):
    """A full disk or a damaged file costs the time to compile again, never a fit."""

    def load_overload(self, *arguments: Any) -> Any:
        try:
            return super().load_overload(*arguments)
        except Exception:  # unpickling damaged files raises many kinds
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *arguments: Any) -> None:
        with suppress(OSError):
            super().save_overload(*arguments)


def from_python(*signatures: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """The decorator of a function that Python calls: compiled once per machine and kept on disk.

    numba keeps it beside the source, in the user's folder of caches or in NUMBA_CACHE_DIR. If it
    may write to none of them, every process compiles the function again.

    Args:
        signatures: all that there are, compiled with the first call; without any, those of its
            calls.
        options: of numba.njit.
    """
    njit: Any = numba.njit

    def compiled(function: Callable[..., Any]) -> Any:
        kernel = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
        if not hasattr(kernel, "signatures"):  # NUMBA_DISABLE_JIT
            return kernel
        with suppress(RuntimeError):  # no folder to write to
            kernel._cache = _Cache(function)
        return _declared(kernel, signatures) if signatures else kernel

    return compiled


def _declared(kernel: Any, signatures: tuple[Any, ...]) -> Any:
    """A kernel that is compiled for these signatures only."""
    waiting, one_at_a_time = list(signatures), Lock()

    @functools.wraps(kernel.py_func)
    def call(*arguments: Any) -> Any:
        if waiting:
            with one_at_a_time:
                while waiting:
                    kernel.compile(waiting[-1])
                    waiting.pop()
                kernel.disable_compile()
        return kernel(*arguments)

    declared: Any = call  # mypy knows no attributes of functions
    declared.kernel = kernel
    return declared
