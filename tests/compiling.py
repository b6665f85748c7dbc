"""What is compiled while a test runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numba


@contextmanager
def compilations() -> Iterator[list[str]]:
    """Names of the functions that JAX traces and numba compiles, kernels and single operations
    alike.
    """
    names: list[str] = []

    def listen(event: str, seconds: float, **about: Any) -> None:
        if event == "/jax/core/compile/jaxpr_trace_duration":
            names.append(str(about.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        with numba.core.event.install_recorder("numba:compile") as recorder:
            yield names
        names += [str(event.data["dispatcher"]) for _, event in recorder.buffer if event.is_start]
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
