"""CLASSY and SBRL on the binary features of Figure 4; they, CORELS and RIPPER on the ten folds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from benchmarks.peers import OutOfTime, said
from jaxrules.lists.literals import literals_of
from jaxrules.tools.bits import distinct, pack
from paper_reproductions.framework import Cell, Experiment, Row, Settings
from paper_reproductions.ssrl import protocol, published

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
    data, y, pool = protocol.drawn(cell, settings)
    arrays = {"X": pool.satisfied(data.X), "y": np.unique(y, return_inverse=True)[1]}
    return _told(cell["method"], arrays, settings.seed + 1, SECONDS)


def _told(method: str, arrays: Mapping[str, NDArray[Any]], seed: int, seconds: int) -> Row:
    found: dict[str, Any] = {}
    if method == "SBRL":
        found["candidates"] = candidates(arrays["X"], arrays["y"])
        found["gigabytes"] = found["candidates"] * 2 * len(arrays["X"]) / 1e9
        if found["gigabytes"] > MOST_GIGABYTES:
            return found
    small = {name: array.astype(np.uint8) for name, array in arrays.items()}
    try:
        (line,) = said(ON_FOLDS[method], PROGRAM, small, method, seed, seconds)
    except OutOfTime:
        return {**found, "more_than": seconds}
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


# Tables 4 to 7

ON_FOLDS = {**ENVIRONMENTS, "CORELS": "corels", "RIPPER": "wittgenstein"}
FOLD_SECONDS = 60
MOST_COLUMNS = 30
"""For CORELS, the most important ones of a random forest of depth ten, as in the paper."""


def fold_cells(settings: Settings) -> list[Cell]:
    """Every fold, on large sets the first; with ``--slow`` all. Of several classes CLASSY alone.
    Nothing in small.
    """
    if settings.quick:
        return []
    return [
        Cell.of(data=name, fold=fold, method=method)
        for name in protocol.sets(settings)
        for fold in settings.first_folds(
            protocol.FOLDS if settings.slow or name not in protocol.LARGE else 1
        )
        for method in (ON_FOLDS if "CORELS*" in published.ACCURACY[name] else ("CLASSY",))
    ]


def measure_fold(cell: Cell, settings: Settings) -> Row:
    """Test accuracy and size of a program on SSRL's binary features, one of each and its
    complement; otherwise as `measure`.
    """
    name = cell["data"]
    part = protocol.split(protocol.load(protocol.SETS[name]), cell["fold"], settings.seed)
    cuts = protocol.closed(part.train.X, protocol.NINTHS)
    pool = literals_of(part.train.X, cut_points=cuts, max_cut_points=9)
    first = firsts(pool.satisfied(part.train.X))
    classes = np.unique(part.train.y)
    if cell["method"] == "CORELS":
        forest = RandomForestClassifier(max_depth=10, random_state=settings.seed)
        forest.fit(pool.satisfied(part.train.X)[:, first], part.train.y)
        first = np.sort(first[np.argsort(-forest.feature_importances_)[:MOST_COLUMNS]])
    arrays = {}
    for suffix, rows in (("", part.train), ("_test", part.test)):
        arrays[f"X{suffix}"] = pool.satisfied(rows.X)[:, first]
        arrays[f"y{suffix}"] = np.searchsorted(classes, rows.y)
    return _told(cell["method"], arrays, settings.seed + 1, FOLD_SECONDS)


def firsts(holds: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The first of the columns that are equal or complements; none of constant ones."""
    words = pack((holds ^ holds[:1]).T)  # the form that does not hold in the first row
    first, _ = distinct(words)
    return np.sort(first[words[first].any(axis=1)])


folds = Experiment("programs", fold_cells, measure_fold, protocol.files, lambda cell: True)
