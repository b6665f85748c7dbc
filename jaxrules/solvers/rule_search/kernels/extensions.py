"""Sums of the extensions of a beam."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from jaxrules.solvers.rule_search.kernels.problems import Floats, compiled


@functools.partial(compiled, entry_point=True)
def extension_sums(
    masks: NDArray[np.uint8],
    terms: Floats,
    owners: NDArray[np.intp],
    rows: NDArray[np.bool_],
    sums: Floats,
) -> None:
    """Sums of terms over those of some rows on which each proposition holds.

    Args:
        masks: (rows, propositions).
        terms: (owners, terms, rows).
        owners: which terms to sum, (sets,).
        rows: (sets, rows).
        sums: the result, (terms, sets, propositions).
    """
    sums[:] = 0.0
    for s in range(len(owners)):
        for r in range(len(masks)):
            if rows[s, r]:
                mask = masks[r]
                for t in range(len(sums)):
                    value, total = terms[owners[s], t, r], sums[t, s]
                    for a in range(len(mask)):
                        total[a] += mask[a] * value


@functools.partial(compiled, entry_point=True)
def sums_by_cells(
    cells: NDArray[np.uint32],
    ends: NDArray[np.intp],
    parts: NDArray[np.uint32],
    terms: Floats,
    owners: NDArray[np.intp],
    rows: NDArray[np.bool_],
    of_cells: Floats,
    sums: Floats,
) -> None:
    """The same sums, from those of cells: a row has one cell per column, but as many propositions
    as thresholds.

    Args:
        cells: of every row, one per partition, (rows, partitions).
        ends, parts: the cells of proposition a are parts[ends[a] : ends[a + 1]].
        terms, owners, rows, sums: as of `extension_sums`.
        of_cells: for the sums of cells, (terms, cells).
    """
    for s in range(len(owners)):
        of_cells[:] = 0.0
        for r in range(len(cells)):
            if rows[s, r]:
                for t in range(len(sums)):
                    value, total = terms[owners[s], t, r], of_cells[t]
                    for cell in cells[r]:
                        total[cell] += value
        for t in range(len(sums)):
            for a in range(sums.shape[2]):
                total_of_parts = 0.0
                for k in range(ends[a], ends[a + 1]):
                    total_of_parts += of_cells[t, parts[k]]
                sums[t, s, a] = total_of_parts
