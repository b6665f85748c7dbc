"""When compiled kernels are worth the wait.

numba loads a kernel in a second, and compiles it first if this machine has not called it before,
which takes ten. What NumPy can do as well, it does until that wait would have paid: nobody who fits
one small table waits for a compiler, nobody who fits many works without it, and no time limit is
spent on it. Models do not depend on it.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from jaxrules.tools.contexts import within

_PER_STEP = 4e-9
"""Seconds that compiled code saves per step of NumPy's work."""
_MORE_SEARCHES = 10
"""About so many searches make a fit."""
_TO_IMPORT = 2.5
"""Seconds that an import of a large package may take in a fresh process."""
_TO_LOAD, _TO_COMPILE = 0.8, 10.0
"""Seconds until kernels work that are on disk, and that are not, on a busy machine; a module whose
kernels are compiled sooner has its own TO_COMPILE."""
_REPAYS = 0.4
"""The share of that wait that work must save to be worth it, as later work is saved it, too."""

_left: ContextVar[tuple[Callable[[], float], ...]] = ContextVar("left", default=())


def limiting(seconds_left: Callable[[], float]) -> AbstractContextManager[None]:
    """The context in which kernels take at most as long to load as this function says."""
    return within(_left, (*_left.get(), seconds_left))


class Kernels:
    """Compiled functions in the place of NumPy.

    Args:
        module: that has them; it loads numba.
        functions: those that are used.
    """

    def __init__(self, module: str, *functions: str) -> None:
        self.module, self.functions = module, functions
        self.asked = 0.0

    def pay(self, steps: int) -> bool:
        """Whether to use them for so many steps of NumPy's work; later work may then be worth the
        wait.
        """
        saved = _PER_STEP * steps
        self.asked += saved
        worth = max(self.asked, _MORE_SEARCHES * saved)
        if worth < _REPAYS * _TO_LOAD:
            return False
        left = min((seconds() for seconds in _left.get()), default=math.inf)
        wait = seconds_to_load(self.module, left, self.functions)
        return worth >= _REPAYS * wait and left >= wait


def seconds_to_load(module: str, left: float, functions: tuple[str, ...] = ()) -> float:
    """About how many seconds it takes until a module can be used.

    Args:
        module: compiled if its name says "kernels".
        left: no more seconds are spent to find out.
        functions: the kernels that are needed; without names, any that Python calls.
    """
    if "kernels" not in module:
        return 0.0 if module in sys.modules else _TO_IMPORT
    if "numba" not in sys.modules and left < _TO_LOAD:
        return _TO_LOAD
    loaded = vars(importlib.import_module(module))
    found = [loaded[name] for name in functions] or list(loaded.values())
    kernels = [getattr(one, "kernel", one) for one in found]
    kernels = [one for one in kernels if _is_called_from_python(one)]
    if any(kernel.signatures for kernel in kernels):
        return 0.0
    if any(map(_is_on_disk, kernels)):
        return _TO_LOAD
    return float(loaded.get("TO_COMPILE", _TO_COMPILE))


def _is_called_from_python(one: Any) -> bool:
    options = getattr(one, "targetoptions", {"no_cpython_wrapper": True})
    return not options.get("no_cpython_wrapper", False)


def _is_on_disk(kernel: Any) -> bool:
    """Whether numba has compiled a kernel on this machine before."""
    if kernel.stats.cache_path is None:
        return False
    code, module = kernel.py_func.__code__, kernel.py_func.__module__.rpartition(".")[2]
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    name = f"{module}.{kernel.py_func.__qualname__}-{code.co_firstlineno}.{version}*.nbi"
    written = Path(code.co_filename).stat().st_mtime
    return any(one.stat().st_mtime >= written for one in Path(kernel.stats.cache_path).glob(name))
