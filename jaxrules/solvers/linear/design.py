"""A matrix in the form of the solvers of linear models: columns first; as bits with equal rows
merged, or as padded float32.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.rules.rows import distinct_rows, is_binary
from jaxrules.solvers.linear.bit_columns import BitColumns
from jaxrules.tools.float64 import our_settings, worth_an_accelerator

Floats = NDArray[np.float64]
Parts = tuple[jax.Array, jax.Array]
"""High and low parts of columns, (columns, rows) float32 each; their sum holds 48 bits."""
_BLOCK = 1 << 12  # rows that NumPy casts at once


@dataclass(frozen=True)
class Design:
    """The matrix as the solver stores it. Create it once with `Design.of`; every function accepts
    it as X.

    In binary matrices, equal rows are merged and zeros and ones become bits; if JAX has an
    accelerator, matrices of more than a million entries are stored there as float32. Columns of
    other matrices are centred (an exact change of variables when there is an intercept), scaled,
    and kept as the sum of two float32 numbers, which hold 48 bits. One copy on the device serves
    all kernels.

    Attributes:
        n_columns: columns of the original matrix.
        n_patterns: the number of stored rows, fewer than the original ones if equal rows were
            merged.
        inverse: (rows,) the stored row that represents each original row.
        centre: (n_columns,) the number subtracted from each column; unless all are 0, the design
            serves only fits with an intercept.
        scale: (n_columns,) the number each column was then divided by.
        storage: (stored columns, padded rows): bits; or float32: the high parts, columns of zeros,
            and the low parts.
        low: (padded_columns,) where the low part of each column is stored; a column of zeros if it
            has none.
    """

    n_columns: int
    n_patterns: int
    inverse: NDArray[np.integer]
    centre: Floats
    scale: Floats
    storage: jax.Array | BitColumns
    low: NDArray[np.int32]

    @classmethod
    @our_settings()
    def of(
        cls,
        X: ArrayLike | tuple[ArrayLike, ...] | BitColumns | Design,
        *,
        intercept: bool = True,
        inverse: NDArray[np.integer] | None = None,
        room: tuple[int, int] = (0, 0),
    ) -> Design:
        """Prepare a matrix.

        Args:
            X: (rows, columns) of finite numbers or booleans; or a tuple of such matrices side by
                side, of which the binary ones are not copied to floats on the host; or bits, with
                `inverse`; or a Design, returned as it is.
            intercept: False if no intercept will be fitted; columns are then not centred.
            inverse: if rows are already merged, the row of X that represents each original row.
                arange keeps all rows separate, so that matrices that differ only in their columns
                have the same shape and share compiled kernels. None merges equal rows of a binary
                matrix.

        Raises:
            TypeError: if X is not numeric.
            ValueError: if X is not two-dimensional, has no rows, or holds NaN or infinite values.
        """
        if isinstance(X, Design):
            return X
        if isinstance(X, BitColumns):
            if inverse is None:
                raise ValueError(
                    "X is given as bits, so inverse must name the row of bits of each original row"
                )
            return cls._of_bits(X, inverse)
        blocks = [_matrix(block) for block in (X if isinstance(X, tuple) else (X,))]
        if len({len(block) for block in blocks}) > 1:
            raise ValueError("X is a tuple of matrices with different numbers of rows")
        n_columns = sum(block.shape[1] for block in blocks)
        if inverse is None:
            inverse = np.arange(len(blocks[0]))
            if n_columns > 0 and all(is_binary(block) for block in blocks):
                first, inverse = distinct_rows(np.hstack(blocks) if len(blocks) > 1 else blocks[0])
                blocks = [block[first] for block in blocks]
        if all(is_binary(block) for block in blocks) and not worth_an_accelerator(
            len(blocks[0]) * n_columns
        ):
            columns = [np.ascontiguousarray(block.astype(bool, copy=False).T) for block in blocks]
            return cls._of_bits(BitColumns.of(np.concatenate(columns)), inverse)
        parts = [_columns(block, intercept) for block in blocks]
        low_parts = np.flatnonzero(np.concatenate([part.has_low for part in parts]))
        padded = padded_size(max(n_columns, room[1]) + 1)  # at least one zero column, the last
        stored = padded + (padded_size(len(low_parts)) if len(low_parts) else 0)
        kept = len(blocks[0])
        storage = np.zeros((stored, padded_size(max(kept, room[0]))), np.float32)
        column, low_column = 0, padded
        for part in parts:
            storage[column : column + len(part.high), :kept] = part.high
            storage[low_column : low_column + len(part.low), :kept] = part.low
            column, low_column = column + len(part.high), low_column + len(part.low)
        low = np.full(padded, padded - 1, np.int32)
        low[low_parts] = np.arange(padded, padded + len(low_parts))
        centre = np.concatenate([part.centre for part in parts])
        scale = np.concatenate([part.scale for part in parts])
        return cls(n_columns, kept, inverse, centre, scale, jnp.asarray(storage), low)

    @classmethod
    def _of_bits(cls, columns: BitColumns, inverse: NDArray[np.integer]) -> Design:
        k = len(columns)
        return cls(
            k,
            int(inverse.max()) + 1,
            inverse,
            np.zeros(k),
            np.ones(k),
            columns,
            np.arange(k, dtype=np.int32),
        )

    @property
    def n_rows(self) -> int:
        """The number of rows of the original matrix."""
        return len(self.inverse)

    @property
    def padded_columns(self) -> int:
        """The number of columns that the solver sees: those of the matrix and, for kernels, columns
        of zeros.
        """
        return len(self.low)

    @functools.cached_property
    def on_host(self) -> NDArray[np.float32]:
        """`storage` in float32 as a NumPy array; on a CPU this copies nothing."""
        return np.asarray(self.storage)

    def columns_on_host(self, columns: NDArray[np.integer]) -> Floats | BitColumns:
        """Columns as bits or a float64 array of NumPy, (columns, padded rows)."""
        if isinstance(self.storage, BitColumns):
            return self.storage.take(columns)
        storage = self.on_host
        return storage[columns].astype(np.float64) + storage[self.low[columns]]

    def sums(self, rows: Floats) -> Floats:
        """sum_i rows_i x_ij for all columns, (padded columns,), on the host."""
        if isinstance(self.storage, BitColumns):
            return self.storage @ rows
        storage, stored = self.on_host, np.zeros(self.storage.shape[0])
        for start in range(0, len(rows), _BLOCK):
            block = storage[:, start : start + _BLOCK].astype(np.float64)
            stored += block @ rows[start : start + _BLOCK]
        return stored[: len(self.low)] + stored[self.low]

    @our_settings()
    def take(self, columns: NDArray[np.integer], size: int) -> tuple[jax.Array, jax.Array]:
        """The high and low parts of some columns, (size, padded rows), padded with zeros."""
        return _take(self.storage, self.low, self.pad(columns, size))

    def pad(self, columns: NDArray[np.integer], size: int) -> NDArray[np.int32]:
        """Indices of columns, padded with the index of a column of zeros."""
        padded = np.full(size, self.padded_columns - 1, np.int32)
        padded[: len(columns)] = columns
        return padded


class _Columns(NamedTuple):
    high: NDArray[Any]  # (columns, rows), exact in float32
    low: NDArray[np.float32]  # (columns with a low part, rows)
    has_low: NDArray[np.bool_]
    centre: Floats
    scale: Floats


def _matrix(block: ArrayLike) -> NDArray[Any]:
    array = np.asarray(block)
    if array.dtype.kind not in "buif":
        raise TypeError(
            f"X must be numeric or boolean, got dtype {array.dtype}; encode other columns first"
        )
    if array.ndim != 2:
        raise ValueError(f"X must be two-dimensional (rows, columns), got shape {array.shape}")
    if len(array) == 0:
        raise ValueError("X has no rows")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("X has NaN or infinite values; remove or encode them first")
    return array


def _columns(block: NDArray[Any], centred: bool) -> _Columns:
    """The columns of one block as float32 high and low parts."""
    n_columns = block.shape[1]
    centre, scale = np.zeros(n_columns), np.ones(n_columns)
    if is_binary(block):
        no_low = np.zeros((0, len(block)), np.float32)
        return _Columns(
            block.T.astype(bool, copy=False), no_low, np.zeros(n_columns, bool), centre, scale
        )
    values = block.T.astype(np.float64)
    magnitude = np.abs(values).max(axis=1)
    spread = values.max(axis=1) - values.min(axis=1)
    # Columns like -1 and 1 need no change: exact in float32, well scaled, not far from zero.
    exact = np.all(values == values.astype(np.float32), axis=1)
    plain = exact & (magnitude > 1 / 16) & (magnitude < 16) & (magnitude <= 4 * spread)
    if centred:
        centre = np.where(plain, 0.0, values.mean(axis=1))
        values -= centre[:, None]
    largest = np.abs(values).max(axis=1)
    # Of a constant column, centring leaves only rounding.
    constant = ~plain & (largest <= 1e-14 * magnitude)
    values[constant] = 0.0
    scale = np.where(plain | constant, 1.0, largest)
    values /= scale[:, None]
    high = values.astype(np.float32)
    low = (values - high).astype(np.float32)
    has_low = np.asarray(low.any(axis=1))
    return _Columns(high, low[has_low], has_low, centre, scale)


def padded_size(size: int) -> int:
    """The size rounded up to a multiple of 64, above 1024 by at most 1/16, so that similar shapes
    share compiled kernels.
    """
    step = max(64, 2 ** ((size - 1).bit_length() - 5))
    return -(-size // step) * step


@jax.jit
def _take(storage: jax.Array, low: jax.Array, columns: jax.Array) -> Parts:
    """The high and the low parts of some columns."""
    return storage[columns], storage[low[columns]]


def whole(parts: Parts) -> jax.Array:
    """The columns in float64; called inside float64 kernels."""
    return parts[0].astype(jnp.float64) + parts[1]
