"""Sums of rows of numbers by group, in vector registers: numba compiles a loop over a few numbers,
such as the terms of a row, to scalar code.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")
_intrinsic: Any = intrinsic
LANES = 4
"""Rows are padded to a multiple of this."""


def padded(terms: Floats, extra: int = 0) -> Floats:
    """The columns of terms (..., terms, rows) as rows, with room for so many extra numbers, filled
    with zeros to whole vectors, (..., rows, width).
    """
    *shape, n_terms, n_rows = terms.shape
    wide = np.zeros((*shape, n_rows, -(-(n_terms + extra) // LANES) * LANES))
    wide[..., :n_terms] = np.moveaxis(terms, -1, -2)
    return wide


@_intrinsic
def _add_vector(context: Any, into: Any, at: Any, numbers: Any, start: Any, width: Any) -> Any:
    """into[at : at + width] += numbers[start : start + width], for a constant width."""
    if not isinstance(width, types.IntegerLiteral):
        return None
    vector = ir.VectorType(ir.DoubleType(), width.literal_value).as_pointer()

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places = []
        for k in (0, 2):
            array = context.make_array(signature.args[k])(context, builder, arguments[k])
            place = builder.gep(array.data, [arguments[k + 1]])
            places.append(builder.bitcast(place, vector))
        held, more = (builder.load(place, align=8) for place in places)
        builder.store(builder.fadd(held, more), places[0], align=8)
        return context.get_dummy_value()

    return types.none(into, types.uintp, numbers, types.uintp, width), code


@_compiled
def add_by_pair(
    terms: Floats,
    width: int,
    first: NDArray[np.unsignedinteger],
    second: NDArray[np.unsignedinteger],
    n_second: int,
    sums: Floats,
) -> None:
    """Add the terms of rows to the sums of the pairs of groups that they belong to.

    Args:
        terms: one row after another, (rows x width,).
        width: a multiple of `LANES`.
        first, second: the group of every row in both groupings, (rows,).
        n_second: the number of groups of the second.
        sums: (groups of the first x groups of the second x width,), changed in place.
    """
    # Unsigned places, which numba does not test for being negative.
    size, row, across = np.uintp(width), np.uintp(0), np.uintp(n_second)
    four, eight = np.uintp(4), np.uintp(8)
    if width == 4:
        for i in range(len(first)):
            at = (np.uintp(first[i]) * across + np.uintp(second[i])) * size
            _add_vector(sums, at, terms, row, 4)
            row += size
    elif width == 8:
        for i in range(len(first)):
            at = (np.uintp(first[i]) * across + np.uintp(second[i])) * size
            _add_vector(sums, at, terms, row, 8)
            row += size
    elif width == 12:
        for i in range(len(first)):
            at = (np.uintp(first[i]) * across + np.uintp(second[i])) * size
            _add_vector(sums, at, terms, row, 8)
            _add_vector(sums, at + eight, terms, row + eight, 4)
            row += size
    else:
        for i in range(len(first)):
            at = (np.uintp(first[i]) * across + np.uintp(second[i])) * size
            for _ in range(width // 4):
                _add_vector(sums, at, terms, row, 4)
                at += four
                row += four


@_compiled
def add_by_group(terms: Floats, groups: NDArray[np.unsignedinteger], sums: Floats) -> None:
    """Add the terms of rows, (rows, width), to the sums of their groups, (groups, width)."""
    n_rows, width = terms.shape
    alone = np.zeros(n_rows, np.uint8)
    add_by_pair(terms.reshape(n_rows * width), width, groups, alone, 1, sums.reshape(sums.size))
