"""How many rows of every class are in each pair of cells, by compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules.tools.compiling import from_python

Indices = NDArray[np.intp]
_compiled: Any = from_python(error_model="numpy")


@_compiled
def count_pairs(
    cells: NDArray[np.uint8], ends: Indices, n_cells: Indices, counts: NDArray[np.uint32]
) -> None:
    """Count rows by class and pair of cells.

    Args:
        cells: of every row in every partition, the rows of one class after another, (partitions,
            rows).
        ends: where each class starts, and where the last one ends, (classes + 1,).
        n_cells: of every partition.
        counts: 0, (classes, pairs of cells): of partition 0 with 0, 1, 2, ..., then of 1 with 1, 2,
            ...; changed in place.
    """
    first = 0
    for a in range(len(cells)):
        for b in range(a, len(cells)):
            across = np.uintp(n_cells[b])
            size = n_cells[a] * n_cells[b]
            for c in range(len(ends) - 1):
                into = counts[c, first : first + size]
                of_a, of_b = cells[a, ends[c] : ends[c + 1]], cells[b, ends[c] : ends[c + 1]]
                for i in range(len(of_a)):
                    into[np.uintp(of_a[i]) * across + np.uintp(of_b[i])] += np.uint32(1)
            first += size
