"""Rows of bits, 64 to a word: packing, transposing, and finding equal rows.

Bit i of a row is bit i % 64 of its word i // 64; bits beyond the last are 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
"""Rows of bits, shape (rows, words)."""

_TILE = 512
"""The number of rows transposed at once: a multiple of 64, small enough to stay in the cache."""
_BLOCK = 1 << 24
"""The number of bits unpacked at once: 16 MiB."""
_HASHED = 1 << 16
"""The number of words hashed at once, roughly: half a MiB."""


def n_words(n_bits: int) -> int:
    """Number of words in a row of bits; at least one."""
    return max(1, -(-n_bits // 64))


def pack(matrix: NDArray[np.bool_]) -> Words:
    """The rows of a boolean matrix as words."""
    if matrix.flags.f_contiguous and 0 < matrix.shape[1] <= 64:  # a few long columns
        # From the last column to the first: each shift makes room for one more lowest bit.
        words = matrix[:, -1].astype("<u8")
        for column in matrix.T[-2::-1]:
            words <<= np.uint64(1)
            words |= column
        return words[:, None]
    octets = np.zeros((len(matrix), 8 * n_words(matrix.shape[1])), np.uint8)
    # Little-endian bits in little-endian words: bit i is bit i % 8 of octet i // 8, and thereby
    # bit i % 64 of word i // 64.
    octets[:, : -(-matrix.shape[1] // 8)] = np.packbits(matrix, axis=1, bitorder="little")
    return octets.view("<u8")


def unpack(words: Words, n_bits: int) -> NDArray[np.bool_]:
    """The boolean matrix (rows, n_bits) of rows of words."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=n_bits, bitorder="little").view(bool)


def transposed(words: Words, n_bits: int) -> Words:
    """The transpose of rows of words, as rows of words, (n_bits, words)."""
    result = np.zeros((n_bits, 8 * n_words(len(words))), np.uint8)
    octets = words.view(np.uint8)
    for start in range(0, len(words), _TILE):
        for left in range(0, n_bits, 8 * _TILE):
            count = min(8 * _TILE, n_bits - left)
            # Tiles start at whole octets in both directions, so that no two share one.
            tile = octets[start : start + _TILE, left // 8 : (left + count + 7) // 8]
            columns = np.ascontiguousarray(
                np.unpackbits(tile, axis=1, count=count, bitorder="little").T
            )
            packed = np.packbits(columns, axis=1, bitorder="little")
            result[left : left + count, start // 8 : start // 8 + packed.shape[1]] = packed
    return result.view("<u8")


def distinct(words: Words) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first place of each distinct row of words, ascending, and for each row the number of its
    distinct row.
    """
    # Few rules give small numbers: a table of them spares the sorting.
    if words.shape[1] == 1 and len(words) and (size := int(words.max()) + 1) <= 4 * len(words):
        return _among(words[:, 0].astype(np.intp), size)
    key = np.zeros(len(words), np.uint64)
    # A hash of each row, so that one integer sort suffices; of some rows at a time, which stay in
    # the cache.
    size = max(_TILE, _HASHED // words.shape[1])
    for start in range(0, len(words), size):
        part = key[start : start + size]
        for word in np.ascontiguousarray(words[start : start + size].T):
            # Fibonacci hashing: 2^64 divided by the golden ratio. The shift brings high bits down,
            # which multiplication alone moves up only.
            part ^= word
            part *= np.uint64(0x9E3779B97F4A7C15)
            part ^= part >> np.uint64(29)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    later = np.flatnonzero(first[inverse] != np.arange(len(words)))
    blocks = (later[start : start + size] for start in range(0, len(later), size))
    # After a hash collision, the rows themselves are sorted.
    if not all(np.array_equal(words[some], words[first[inverse[some]]]) for some in blocks):
        _, first, inverse = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return numbered(first, inverse.ravel())


def _among(values: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """`distinct` of whole numbers below a small size, without sorting them."""
    first = np.full(size, len(values))
    first[values[::-1]] = np.arange(len(values))[::-1]  # the earliest place is written last
    found = np.flatnonzero(first < len(values))
    found = found[np.argsort(first[found])]
    number = np.empty(size, np.intp)
    number[found] = np.arange(len(found))
    return first[found], number[values]


def numbered(
    first: NDArray[np.intp], inverse: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Distinct values, numbered by first appearance."""
    order = np.argsort(first)
    # `order` lists the values by first appearance; its inverse gives each its number.
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


def take_columns(words: Words, n_bits: int, columns: NDArray[np.intp]) -> Words:
    """Some columns of rows of words."""
    size = max(1, _BLOCK // max(1, n_bits))
    blocks = (words[start : start + size] for start in range(0, len(words), size))
    none = np.zeros((0, n_words(len(columns))), np.uint64)
    return np.concatenate([none, *(pack(unpack(block, n_bits)[:, columns]) for block in blocks)])
