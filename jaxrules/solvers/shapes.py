"""Few distinct shapes of arrays, because kernels are compiled once per shape."""

from __future__ import annotations


def bucket(count: int) -> int:
    """The next number with at most three significant binary digits; padding to it adds less
    than a quarter.
    """
    unit = 1 << max(0, count.bit_length() - 3)
    return -(-count // unit) * unit
