"""Where the arrays of kernels live: on JAX's default device, or rows over the devices of a mesh.

JAX's own mechanisms decide. Without a mesh, arrays go to the default device (`jax.default_device`).
In `rows_over`, arrays with an axis of rows are split along it over the mesh, and all others are
copied to every device; jitted kernels run where their arguments are, and XLA inserts the
collectives. The number of rows need not be a multiple of the number of devices: `place` appends
rows, to which kernels must give the weight 0.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from numpy.typing import ArrayLike, NDArray

from jaxrules.tools import checks
from jaxrules.tools.contexts import within

_mesh: ContextVar[Mesh | None] = ContextVar("rows_over", default=None)


def rows_over(mesh: Mesh) -> AbstractContextManager[None]:
    """Split the rows of the fits in this block over the devices of a mesh.

    The model is the one that a single device gives: counts are equal, and sums of floats differ
    only in the last bits. The block affects this thread alone; joblib's workers do not inherit it.
    Code in NumPy or numba still runs on the host. docs/scale.md says which learner runs where.

    Args:
        mesh: one-dimensional, with devices of one kind, for example ``jax.make_mesh((4,),
            ("rows",))``. It may span the processes of `jax.distributed`, if each of them makes the
            same calls with the same data.

    Raises:
        TypeError: for anything but a `jax.sharding.Mesh`.
        ValueError: for a mesh of several dimensions or of different devices. A fit with fewer rows
            than devices raises one, too.

    Example:
        >>> import jax, numpy as np, jaxrules as jr
        >>> X = np.arange(8.0)[:, None]
        >>> with jr.rows_over(jax.make_mesh((1,), ("rows",))):
        ...     fit = jr.lltboost.fit(X, X[:, 0] > 3, max_rules=1)
        >>> jr.support(fit.model)
        1
    """
    return within(_mesh, _checked(mesh))


def _checked(mesh: Any) -> Mesh:
    mesh = checks.instance("mesh", mesh, Mesh, 'jax.make_mesh((4,), ("rows",))')
    if mesh.devices.ndim != 1:
        raise ValueError(
            f"mesh must have one dimension, over which rows are split, got {dict(mesh.shape)}; "
            f"pass jax.make_mesh(({mesh.devices.size},), ('rows',))"
        )
    kinds = sorted({f"{device.platform} ({device.device_kind})" for device in mesh.devices})
    if len(kinds) > 1:
        raise ValueError(
            f"mesh must have devices of one kind, got {', '.join(kinds)}; use those of one kind"
        )
    # Kernels leave the placement of their results to the compiler, so the axes are not explicit.
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,))


def mesh() -> Mesh | None:
    """The mesh of `rows_over`, None outside."""
    return _mesh.get()


def device() -> jax.Device:
    """A device on which kernels run: one of the mesh, else JAX's default device. This starts JAX's
    backend.
    """
    over = _mesh.get()
    if over is not None:
        return over.local_devices[0]
    # The option is a device, the name of a platform, or None.
    config: Any = jax.config  # JAX adds its options at run time
    default = config.jax_default_device
    return default if isinstance(default, jax.Device) else jax.local_devices(backend=default)[0]


def check_limit(seconds: float | None) -> None:
    """Refuse a time limit on a mesh of several processes, because they would not stop at the same
    step.

    Raises:
        ValueError: for such a limit.
    """
    over = _mesh.get()
    if over is None or seconds is None:
        return
    if len({device.process_index for device in over.devices}) > 1:
        raise ValueError(
            "time_limit cannot be combined with a mesh of several processes, whose clocks differ; "
            "leave it out, and limit iterations or rules instead"
        )


def check_rows(n_rows: int) -> None:
    """Refuse fewer rows than the mesh has devices.

    Raises:
        ValueError: naming both numbers.
    """
    over = _mesh.get()
    if over is not None and n_rows < over.size:
        raise ValueError(
            f"mesh has {over.size} devices, but there are only {n_rows} rows; use a mesh of at "
            f"most {max(1, n_rows)} devices"
        )


def padded(n_rows: int) -> int:
    """The number of rows including those that `place` appends: a multiple of the number of
    devices.
    """
    over = _mesh.get()
    return n_rows if over is None else -(-n_rows // over.size) * over.size


def place(array: ArrayLike, rows: int | None = None) -> jax.Array:
    """The array in the memory of the devices, with the same dtype. Call it in the float64 context.

    Args:
        array: any array. If the mesh spans several processes, all must pass the same one.
        rows: the axis of rows, which is split over the mesh after zeros have been appended up to
            `padded`; None copies the array to every device.
    """
    over = _mesh.get()
    if over is None:
        return jax.device_put(array)
    values: NDArray[Any] | jax.Array
    values = array if isinstance(array, jax.Array) and rows is None else np.asarray(array)
    axes: list[str | None] = [None] * values.ndim
    if rows is not None:
        behind = [(0, 0)] * values.ndim
        behind[rows] = (0, padded(values.shape[rows]) - values.shape[rows])
        values, axes[rows] = np.pad(values, behind), over.axis_names[0]
    sharding = NamedSharding(over, PartitionSpec(*axes))
    if isinstance(values, jax.Array):
        return jax.device_put(values, sharding)
    # Every process copies only the parts that its own devices hold.
    return jax.make_array_from_callback(values.shape, sharding, values.__getitem__)


def to_host(array: Any) -> NDArray[Any]:
    """The array as a NumPy array, even if other processes hold parts of it (this is then a
    collective call).
    """
    if isinstance(array, jax.Array) and not (
        array.is_fully_addressable or array.is_fully_replicated
    ):
        sharding: Any = array.sharding
        # An identity whose result is whole on every device: XLA gathers the parts.
        copied = NamedSharding(sharding.mesh, PartitionSpec())
        array = jax.jit(lambda whole: whole, out_shardings=copied)(array)
    return np.asarray(array)
