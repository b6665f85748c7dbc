"""Few shapes of arrays: kernels are compiled once per shape."""

from __future__ import annotations


def bucket(count: int) -> int:
    """The next number with three leading binary digits: shapes are padded to it, by at most a
    fifth.
    """
    unit = 1 << max(0, count.bit_length() - 3)
    return -(-count // unit) * unit
