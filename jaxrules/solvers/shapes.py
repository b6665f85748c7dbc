"""Few shapes of arrays: kernels are compiled once for each."""

from __future__ import annotations


def bucket(count: int) -> int:
    """The next number with three leading binary digits: shapes are padded to it, by a fifth at
    most.
    """
    unit = 1 << max(0, count.bit_length() - 3)
    return -(-count // unit) * unit
