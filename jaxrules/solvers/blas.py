"""NumPy's and SciPy's linear algebra on one thread, for systems so small that threads only wait for one another.

Threads of OpenBLAS spin while they wait for a core: on a busy machine what takes .2 ms on one thread takes 30 on two.
"""

from __future__ import annotations

import functools
from typing import Any


def one_blas_thread() -> Any:
    """A context in which BLAS has one thread."""
    return _controller().limit(limits=1, user_api="blas")


@functools.cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  the controller knows the libraries that are loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
