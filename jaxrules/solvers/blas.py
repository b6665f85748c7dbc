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
"""The limit, once per context that holds it. It applies to the whole process and ends with the last
context.
"""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context or decorator in which BLAS uses one thread. It may be nested, and several threads
    may enter it.
    """
    with _LOCK:
        # Only the first context sets the limit: a second one would save one thread as the original
        # number.
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
    import scipy.linalg  # noqa: F401  the controller sees only libraries that are loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
