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
