"""CLASSY and SBRL on the binary features of Figure 4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import OutOfTime, said
from paper_reproductions.framework import Cell, Experiment, Row, Settings
from paper_reproductions.ssrl import protocol

ENVIRONMENTS = {"CLASSY": "rulelist", "SBRL": "sbrl"}
PROGRAM = Path(__file__).with_name("peer_programs.py")
SECONDS = 600
"""The CPU seconds that a program may take."""
MOST_GIGABYTES = 2.0
"""pysbrl writes the rows of every candidate rule to a file, two characters a row; the largest
file that is tried.
"""


def cells(settings: Settings) -> list[Cell]:
    """The first repetition, of gas with the fewest features; with ``--slow`` everything. Nothing
    in small.
    """
    if settings.quick:
        return []
    return [
        Cell.of(data=data, features=features, repeat=repeat, method=method)
        for data, all_sizes in sorted(protocol.FEATURES.items())
        for method in ENVIRONMENTS
        for repeat in settings.first_folds(protocol.REPEATS if settings.slow else 1)
        for features in (all_sizes if settings.slow or data != "gas" else all_sizes[:1])
    ]


def measure(cell: Cell, settings: Settings) -> Row:
    """What `peer_programs` prints. `more_than` is there instead if the time ran out; of SBRL on too
    many candidate rules, `candidates` and `gigabytes` alone.
    """
    method = cell["method"]
    data, y, pool = protocol.drawn(cell, settings)
    X, classes = pool.satisfied(data.X), np.unique(y, return_inverse=True)[1]
    found: dict[str, Any] = {}
    if method == "SBRL":
        found["candidates"] = candidates(X, classes)
        found["gigabytes"] = found["candidates"] * 2 * len(X) / 1e9
        if found["gigabytes"] > MOST_GIGABYTES:
            return found
    arrays = {"X": X.astype(np.uint8), "y": classes.astype(np.uint8)}
    try:
        (line,) = said(ENVIRONMENTS[method], PROGRAM, arrays, method, settings.seed + 1, SECONDS)
    except OutOfTime:
        return {**found, "more_than": SECONDS}
    return {**found, **line}


def candidates(X: NDArray[np.bool_], classes: NDArray[Any]) -> int:
    """SBRL's candidate rules: one or two items, column = 0 or column = 1, that some row of a class
    has. The support of 0.001 asks for no more, as pysbrl rounds it down to whole per cents.
    """
    items = np.column_stack([X, ~X]).astype(np.float32)
    together = np.zeros((items.shape[1], items.shape[1]), bool)
    for label in np.unique(classes):
        rows = items[classes == label]
        together |= rows.T @ rows > 0
    return int(np.triu(together).sum())


peers = Experiment("peers", cells, measure, protocol.files, lambda cell: True)
