"""A matrix of zeros and ones as bits, and its products.

Eight columns and eight rows are 64 bits, which are transposed in a register. A row's eight entries
are then one octet, which serves as an index: into the 256 possible sums of eight coefficients (for
scores), or into 256 sums over rows (for sums). A product with a vector thus takes an eighth of the
additions, and an eighth of the memory that bytes would take.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.blas import one_blas_thread
from jaxrules.tools.bits import Words, pack, unpack

Floats = NDArray[np.float64]

_BLOCK = 512
"""Octets of a column, eight rows each, that are converted at once to numbers for BLAS."""
_ENTRIES = (np.arange(256)[:, None] >> np.arange(8) & 1).astype(np.float64)
"""The eight bits of every octet, (256, 8)."""
_WEIGHTED = 512
"""Columns times outputs of a block that are multiplied at once."""
_STRANDS = 2
"""Threads that share the blocks; sums do not depend on the number of cores."""


@dataclass(frozen=True, eq=False)
class BitColumns:
    """A binary matrix, columns first, with float64 products ``columns @ rows`` and
    ``coefficients @ columns``.

    Attributes:
        words: (columns, words) uint64, see `jaxrules.tools.bits.Words`. Every bit counts as a row;
            the bits that pad the last word are zeros.
        compiled: False uses NumPy alone, for few columns if there is no time to load numba.
    """

    words: Words
    compiled: bool = True

    __array_ufunc__ = None  # NumPy leaves products to this class

    @classmethod
    def of(cls, columns: NDArray[np.bool_]) -> BitColumns:
        """Of a boolean matrix (columns, rows)."""
        return cls(pack(columns))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.words), 64 * self.words.shape[1]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return len(self.words)

    def take(self, columns: NDArray[np.integer] | slice) -> BitColumns:
        return BitColumns(self.words[columns], self.compiled)

    def __matmul__(self, rows: Floats) -> Floats:
        """sum_i x_ij rows_i, (columns,); or (columns, classes) for rows (rows, classes)."""
        if not self.compiled:
            sums = np.array([self._numbers(j) @ rows for j in range(len(self))])
            return sums.reshape(len(self), *rows.shape[1:])
        if rows.ndim == 2 and rows.shape[1] == 1:
            return (self @ rows[:, 0])[:, None]
        if rows.ndim == 2:
            from jaxrules.solvers.linear.kernels.bit_products_of_classes import add_sums_of_classes

            fours = _in_fours(rows)
            classes = fours.shape[1]
            by_class = np.zeros((-(-len(self) // 8), 256 * classes))
            add_sums_of_classes(self._octets, fours.ravel(), classes, by_class)
            sums = _ENTRIES.T @ by_class.reshape(-1, 256, classes)
            return sums.reshape(-1, classes)[: len(self), : rows.shape[1]]
        from jaxrules.solvers.linear.kernels.bit_products import add_sums

        by_octet = np.zeros((-(-len(self) // 8), 4, 256))
        add_sums(self._octets, np.ascontiguousarray(rows, np.float64), by_octet)
        # A column's sum is that over all octets in which its bit is set.
        return (by_octet.sum(axis=1) @ _ENTRIES).ravel()[: len(self)]

    def __rmatmul__(self, coefficients: Floats) -> Floats:
        """sum_j x_ij coefficients_j, (rows,), or (classes, rows) for coefficients (classes,
        columns); columns with coefficient 0 take no time.
        """
        if not self.compiled:
            total = np.zeros((*coefficients.shape[:-1], self.shape[1]))
            for j in np.flatnonzero(np.atleast_2d(coefficients).any(axis=0)).tolist():
                total += coefficients[..., j, None] * self._numbers(j)
            return total
        if coefficients.ndim == 2 and len(coefficients) == 1:
            return self.__rmatmul__(coefficients[0])[None]
        if coefficients.ndim == 2:
            from jaxrules.solvers.linear.kernels import bit_products_of_classes as of_classes

            used = np.flatnonzero(coefficients.any(axis=0))
            fours = _in_fours(coefficients[:, used].T)
            classes, groups = fours.shape[1], -(-len(used) // 8)
            eights = np.zeros((8 * groups, classes))
            eights[: len(used)] = fours
            by_class = _ENTRIES @ eights.reshape(groups, 8, classes)
            scores = np.zeros(self.shape[1] * classes)
            of_classes.add_scores_of_classes(
                self.take(used)._octets, by_class.reshape(groups, 256 * classes), classes, scores
            )
            return np.ascontiguousarray(scores.reshape(-1, classes)[:, : len(coefficients)].T)
        from jaxrules.solvers.linear.kernels.bit_products import add_scores

        used = np.flatnonzero(coefficients)
        # All 256 sums of each eight coefficients at once; a row then looks its own one up.
        eights = np.zeros((-(-len(used) // 8), 8))
        eights.ravel()[: len(used)] = coefficients[used]
        by_octet = eights @ _ENTRIES.T
        scores = np.zeros(self.shape[1])
        add_scores(self.take(used)._octets, by_octet, scores)
        return scores

    def gram(
        self,
        weights: Floats,
        left: NDArray[np.intp] | None = None,
        dtype: type[np.floating] | np.dtype[np.floating] = np.float32,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Floats | None:
        """sum_i weights_i x_ij x_ik, for j in `left` (None for all) and all k; None if it was
        stopped.

        Args:
            weights: (rows,), at least 0.
            left: indices of columns.
            dtype: the precision of products within blocks of rows; blocks are summed in float64.
        """
        if not self.compiled:
            numbers = np.array([self._numbers(j) for j in range(len(self))])
            some = numbers if left is None else numbers[left]
            return None if stopped() else np.asarray((some * weights) @ numbers.T)
        # Half of the weight on either side: a matrix times its own transpose, of which BLAS
        # computes one triangle.
        root = np.sqrt(weights).astype(dtype)
        size = len(self) if left is None else len(left)

        def product(block: Floats, rows: slice) -> Floats:
            return (block if left is None else block[left]) @ block.T

        return self._summed(product, root, (size, len(self)), stopped)

    def grams(
        self,
        weights: Floats,
        left: NDArray[np.intp] | None = None,
        dtype: type[np.floating] | np.dtype[np.floating] = np.float32,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Floats | None:
        """`gram` for each of several weights, (outputs, rows); (outputs, columns in `left`,
        columns).
        """
        if left is None or len(weights) == 1 or not self.compiled:
            each = [self.gram(one, left, dtype, stopped) for one in weights]
            known = [one for one in each if one is not None]
            return np.stack(known) if len(known) == len(each) else None
        weights, at_once = weights.astype(dtype), max(1, _WEIGHTED // max(1, len(left)))
        groups = [weights[k : k + at_once] for k in range(0, len(weights), at_once)]

        def product(block: Floats, rows: slice) -> Floats:
            # The bits become numbers once for all outputs.
            some, width = block[left], block.shape[1]
            weighted = ((group[:, None, rows] * some).reshape(-1, width) for group in groups)
            return np.concatenate([one @ block.T for one in weighted])

        ones = np.ones(weights.shape[1], dtype)
        total = self._summed(product, ones, (len(weights) * len(left), len(self)), stopped)
        return None if total is None else total.reshape(len(weights), len(left), len(self))

    def _summed(
        self,
        product: Callable[[Floats, slice], Floats],
        factors: NDArray[np.floating],
        shape: tuple[int, int],
        stopped: Callable[[], bool],
    ) -> Floats | None:
        """The sum over blocks of rows of a product, which takes the entries of the block times the
        factors of their rows, and these rows; None if it was stopped.
        """
        from jaxrules.solvers.linear.kernels.bit_products import scaled

        octets, entries = self._octets, _ENTRIES.astype(factors.dtype)

        def strand(first: int) -> Floats:
            total = np.zeros(shape)
            for start in range(first * _BLOCK, octets.shape[1], _STRANDS * _BLOCK):
                if stopped():
                    break
                width = 8 * min(_BLOCK, octets.shape[1] - start)
                block = np.empty((len(self), width), factors.dtype)
                scaled(octets, start, entries, factors, block)
                total += product(block, slice(8 * start, 8 * start + width))
            return total

        if octets.shape[1] <= _BLOCK:
            total = strand(0)
        else:
            with one_blas_thread(), ThreadPoolExecutor(_STRANDS) as pool:
                # In the order of the strands, whichever ends first: sums round the same way in
                # every run.
                total = functools.reduce(np.add, pool.map(strand, range(_STRANDS)))
        return None if stopped() else total

    def _numbers(self, column: int) -> Floats:
        """A column as zeros and ones, (rows,)."""
        return unpack(self.words[[column]], self.shape[1])[0].astype(np.float64)

    @property
    def _octets(self) -> NDArray[np.uint8]:
        return np.ascontiguousarray(self.words).view(np.uint8)


def _in_fours(numbers: Floats) -> Floats:
    """A copy with columns of zeros that make their number a multiple of 4."""
    padded = np.zeros((len(numbers), -(-numbers.shape[1] // 4) * 4))
    padded[:, : numbers.shape[1]] = numbers
    return padded
