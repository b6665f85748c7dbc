"""Options of numba that make a first fit shorter.

For every function, numba compiles two ways in, from Python and from C, which takes about as long as
a short function itself, and longer for arguments of many arrays. Few functions need both.
"""

from __future__ import annotations

from typing import Any

FROM_PYTHON: dict[str, Any] = {"no_cfunc_wrapper": True}
"""Of a function that Python calls."""
FROM_KERNELS: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
"""Of a function that only compiled functions call."""
