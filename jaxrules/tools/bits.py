"""Rows of bits, 64 to a word: packing, transposing, and finding equal rows.

Bit i of a row is bit i % 64 of its word i // 64; bits beyond the last are 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
"""Rows of bits, shape (rows, words)."""

_SQUARES = 1 << 15
"""The number of squares of eight by eight bits transposed at once, which stay in the cache."""
_SWAPS = tuple(
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0xF0F0F0F0))
)
_BLOCK = 1 << 24
"""The number of bits unpacked at once: 16 MiB."""
_HASHED = 1 << 16
"""The number of words hashed at once, roughly: half a MiB."""
_HASHED_ROWS = 512
"""The least number of rows hashed at once."""


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
    eights, used = -(-len(words) // 8), -(-n_bits // 8)
    result = np.zeros((n_bits, 8 * n_words(len(words))), np.uint8)
    octets, wide = words.view(np.uint8)[:, :used], max(1, _SQUARES // max(1, eights))
    for start in range(0, used, wide):
        part = octets[:, start : start + wide]
        tile = np.zeros((eights, part.shape[1], 8), np.uint8)
        for k in range(8):
            some = part[k::8]
            tile[: len(some), :, k] = some
        # Eight rows of eight bits are a word. The three swaps exchange bits, pairs and fours of
        # bits across its diagonal (Warren, "Hacker's Delight", section 7-3).
        squares = tile.view("<u8")[:, :, 0]
        for shift, mask in _SWAPS:
            swap = squares >> shift
            swap ^= squares
            swap &= mask
            squares ^= swap
            squares ^= swap << shift
        into = result[8 * start : 8 * (start + wide), :eights]
        into[:] = tile.transpose(1, 2, 0).reshape(8 * tile.shape[1], eights)[: len(into)]
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
    size = max(_HASHED_ROWS, _HASHED // words.shape[1])
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
