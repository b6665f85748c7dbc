"""Frozen dataclasses as JAX pytrees: arrays are leaves, the other fields are static."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import jax
import numpy as np

ValueType = TypeVar("ValueType", bound=type)


def pytree(cls: ValueType) -> ValueType:
    """Register a frozen dataclass; fields with ``metadata={"static": True}`` are not leaves.

    Like `jax.tree_util.register_dataclass`, but JAX rebuilds objects without ``__init__``: leaves
    may then be anything, and ``__post_init__`` checks only what users give.
    """
    fields = dataclasses.fields(cls)
    leaves = tuple(field.name for field in fields if not field.metadata.get("static"))
    static = tuple(field.name for field in fields if field.metadata.get("static"))
    keys = tuple(map(jax.tree_util.GetAttrKey, leaves))

    def flatten(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        arrays, others = ([getattr(node, name) for name in names] for names in (leaves, static))
        return tuple(arrays), tuple(others)

    def flatten_with_keys(node: Any) -> tuple[tuple[tuple[Any, Any], ...], tuple[Any, ...]]:
        children, rest = flatten(node)
        return tuple(zip(keys, children, strict=True)), rest

    def unflatten(rest: tuple[Any, ...], children: Any) -> Any:
        node: Any = object.__new__(cls)
        for name, value in (*zip(leaves, children, strict=True), *zip(static, rest, strict=True)):
            object.__setattr__(node, name, value)
        return node

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


_KINDS = {"b": "b", "i": "iu", "f": "fiu"}
"""The kinds of NumPy arrays that a field takes, by the kind of its declared dtype."""


def check_arrays(node: Any) -> None:
    """Check that the array fields hold arrays of their kind (NumPy's, or JAX's, also traced), or
    None if that is their default.

    Raises:
        TypeError: naming the class and the field.
    """
    for field in dataclasses.fields(node):
        if "dtype" not in field.metadata:
            continue
        value, wanted = getattr(node, field.name), np.dtype(field.metadata["dtype"])
        if value is None and field.default is None:
            continue
        if isinstance(value, np.ndarray):
            if value.dtype.kind in _KINDS[wanted.kind]:
                continue
        # Of any dtype: without 64 bits, JAX has float32 in place of float64.
        elif isinstance(value, jax.Array):
            continue
        got = f"{value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise TypeError(
            f"{field.name} of a {type(node).__name__} must be an array of {wanted}, got {got}; "
            f"pass numpy.asarray({field.name}, {wanted})"
        )


def check_options(options: object) -> None:
    """Check that the options of a model are pairs of a name and a value.

    Raises:
        TypeError: if not.
    """
    pairs = isinstance(options, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in options
    )
    if not pairs:
        raise TypeError(f"options must be a tuple of (name, value) pairs, got {options!r}")


def concrete_arrays(*arrays: Any) -> bool:
    """Whether all are NumPy arrays, whose values can be checked without waiting for a device."""
    return all(isinstance(array, np.ndarray) for array in arrays)
