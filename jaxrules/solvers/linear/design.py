"""A matrix in the form of the solvers of linear models: columns first; as bits with equal rows
merged, or as centred and scaled float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxrules.rules.rows import distinct_rows, is_binary
from jaxrules.solvers.linear.bit_columns import BitColumns

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """The matrix as the solver stores it. Create it once with `Design.of`; every function accepts
    it as X.

    In binary matrices, equal rows are merged and zeros and ones become bits. Columns of other
    matrices are centred (an exact change of variables when there is an intercept) and scaled.

    Attributes:
        n_patterns: the number of stored rows, fewer than the original ones if equal rows were
            merged.
        inverse: (rows,) the stored row that represents each original row.
        centre: (columns,) the number subtracted from each column; unless all are 0, the design
            serves only fits with an intercept.
        scale: (columns,) the number each column was then divided by.
        storage: (columns, stored rows) bits, with more rows that pad the last word, or float64.
    """

    n_patterns: int
    inverse: NDArray[np.integer]
    centre: Floats
    scale: Floats
    storage: Floats | BitColumns

    @classmethod
    def of(
        cls,
        X: ArrayLike | tuple[ArrayLike, ...] | BitColumns | Design,
        *,
        intercept: bool = True,
        inverse: NDArray[np.integer] | None = None,
    ) -> Design:
        """Prepare a matrix.

        Args:
            X: (rows, columns) of finite numbers or booleans; or a tuple of such matrices side by
                side; or bits, with `inverse`; or a Design, returned as it is.
            intercept: False if no intercept will be fitted; columns are then not centred.
            inverse: if rows are already merged, the row of X that represents each original row.
                None merges equal rows of a binary matrix.

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
        binary = all(is_binary(block) for block in blocks)
        if inverse is None:
            inverse = np.arange(len(blocks[0]))
            if binary and any(block.shape[1] for block in blocks):
                # Equal rows have equal scores at any coefficients, so that one of them can stand
                # for all.
                first, inverse = distinct_rows(np.hstack(blocks) if len(blocks) > 1 else blocks[0])
                blocks = [block[first] for block in blocks]
        if binary:
            columns = [np.ascontiguousarray(block.astype(bool, copy=False).T) for block in blocks]
            return cls._of_bits(BitColumns.of(np.concatenate(columns)), inverse)
        storage = np.empty((sum(block.shape[1] for block in blocks), len(blocks[0])))
        done, centres, scales = 0, list[Floats](), list[Floats]()
        for block in blocks:
            into = storage[done : done + block.shape[1]]
            into[:] = block.T
            centre, scale = np.zeros(len(into)), np.ones(len(into))
            if not is_binary(block):
                centre, scale = _standardise(into, intercept)
            centres, scales, done = [*centres, centre], [*scales, scale], done + len(into)
        centre, scale = np.concatenate(centres), np.concatenate(scales)
        return cls(len(blocks[0]), inverse, centre, scale, storage)

    @classmethod
    def _of_bits(cls, columns: BitColumns, inverse: NDArray[np.integer]) -> Design:
        k = len(columns)
        return cls(int(inverse.max()) + 1, inverse, np.zeros(k), np.ones(k), columns)

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.centre)

    @property
    def n_rows(self) -> int:
        """The number of rows of the original matrix."""
        return len(self.inverse)

    def take(self, columns: NDArray[np.integer]) -> Floats | BitColumns:
        """Some columns, ascending, as bits or float64, (columns, stored rows)."""
        if len(columns) == self.n_columns:
            return self.storage  # spares a copy of a large matrix
        if isinstance(self.storage, BitColumns):
            return self.storage.take(columns)
        return np.asarray(self.storage[columns])


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


def _standardise(columns: Floats, centred: bool) -> tuple[Floats, Floats]:
    """Centre and scale float64 columns, (columns, rows), in place; returns centres and scales."""
    magnitude = np.abs(columns).max(axis=1)
    spread = columns.max(axis=1) - columns.min(axis=1)
    # Columns like -1 and 1 need no change: well scaled, not far from zero, few binary digits.
    exact = np.all(columns == columns.astype(np.float32), axis=1)
    plain = exact & (magnitude > 1 / 16) & (magnitude < 16) & (magnitude <= 4 * spread)
    centre = np.zeros(len(columns))
    if centred:
        centre = np.where(plain, 0.0, columns.mean(axis=1))
        columns -= centre[:, None]
    largest = np.abs(columns).max(axis=1)
    # Of a constant column, centring leaves only rounding.
    constant = ~plain & (largest <= 1e-14 * magnitude)
    columns[constant] = 0.0
    scale = np.where(plain | constant, 1.0, largest)
    columns /= scale[:, None]
    return centre, scale
