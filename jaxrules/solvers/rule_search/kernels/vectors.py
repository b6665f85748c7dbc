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

from jaxrules.tools.compiling import FROM_KERNELS, from_python

Floats = NDArray[np.float64]
_compiled: Any = from_python(error_model="numpy")
_part: Any = numba.njit(error_model="numpy", **FROM_KERNELS)
_intrinsic: Any = intrinsic
LANES = 4
"""Rows are padded to a multiple of this."""
_IN_CACHE = 262_144
"""How many bytes of terms are read at a time."""


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
    """into[at : at + width] += numbers[start : start + width], for a constant width; float64 to
    float64, or int16 to int32.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places, loaded = [], []
        for k in (0, 2):
            kind = context.get_value_type(signature.args[k].dtype)
            array = context.make_array(signature.args[k])(context, builder, arguments[k])
            vector = ir.VectorType(kind, width.literal_value)
            place = builder.gep(array.data, [arguments[k + 1]])
            places.append(builder.bitcast(place, vector.as_pointer()))
            # Rows are no multiples of a whole vector: only numbers are aligned.
            size = signature.args[k].dtype.bitwidth // 8
            loaded.append(builder.load(places[-1], align=size))
        held, more = loaded
        if isinstance(signature.args[0].dtype, types.Float):
            total = builder.fadd(held, more)
        else:
            total = builder.add(held, builder.sext(more, held.type))
        builder.store(total, places[0], align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(into, types.uintp, numbers, types.uintp, width), code


@_part
def add_by_pair(
    terms: Floats | NDArray[np.int16],
    width: int,
    first: NDArray[np.unsignedinteger],
    second: NDArray[np.unsignedinteger],
    n_second: int,
    sums: Floats | NDArray[np.int32],
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
    eight = np.uintp(8)
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
    elif width == 16:
        for i in range(len(first)):
            at = (np.uintp(first[i]) * across + np.uintp(second[i])) * size
            _add_vector(sums, at, terms, row, 16)
            row += size
    else:
        for i in range(len(first)):
            at = (np.uintp(first[i]) * across + np.uintp(second[i])) * size
            place = row
            for _ in range(width // 8):
                _add_vector(sums, at, terms, place, 8)
                at += eight
                place += eight
            if width % 8:
                _add_vector(sums, at, terms, place, 4)
            row += size


@_compiled
def add_by_group(terms: Floats, groups: NDArray[np.unsignedinteger], sums: Floats) -> None:
    """Add the terms of rows, (rows, width), to the sums of their groups, (groups, width)."""
    n_rows, width = terms.shape
    alone = np.zeros(n_rows, np.uint8)
    add_by_pair(terms.reshape(n_rows * width), width, groups, alone, 1, sums.reshape(sums.size))


@_compiled
def add_by_groups(terms: Floats, groups: NDArray[np.uint8], sums: Floats) -> None:
    """`add_by_group` for several groupings of the rows, (groupings, rows), with sums of (groupings,
    groups, width).
    """
    n_rows, width = terms.shape
    flat, alone = terms.reshape(n_rows * width), np.zeros(n_rows, np.uint8)
    block = max(1, _IN_CACHE // (width * terms.itemsize))
    for row in range(0, n_rows, block):
        stop = min(row + block, n_rows)
        for k in range(len(groups)):
            add_by_pair(
                flat[row * width : stop * width], width, groups[k, row:stop], alone[row:stop], 1,
                sums[k].reshape(sums[k].size),
            )  # fmt: skip
