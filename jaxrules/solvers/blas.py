"""NumPy's and SciPy's linear algebra on one thread: for small systems, and for sums that must not
depend on threads.

Threads of OpenBLAS spin while they wait for a core: on a busy machine, 0.2 ms on one thread become
30 ms on two. They also round differently.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.Lock()
_held: list[Any] = []
"""The limit, once for each context that holds it: it applies to the whole process, and ends with
the last of them.
"""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context or a decorator in which BLAS has one thread; may be nested, and entered by several
    threads.
    """
    with _LOCK:
        _held.append(_held[0] if _held else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            limit = _held.pop()
            if not _held:
                limit.restore_original_limits()


@functools.cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  the controller knows the libraries that are loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
