"""Few distinct shapes of arrays, because kernels are compiled once per shape."""

from __future__ import annotations


def bucket(count: int, unit: int = 1, digits: int = 3) -> int:
    """The next multiple of `unit`, a power of two, with at most this many significant binary
    digits (more if the unit needs them); with d of them, padding adds less than a share 2^(1 - d).
    """
    unit = max(unit, 1 << max(0, count.bit_length() - digits))
    return -(-count // unit) * unit
