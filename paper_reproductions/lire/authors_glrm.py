"""GLRM by AIX360, which the author runs, with the grid of his program: Table 3 leaves out 1e-5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers import said
from paper_reproductions.framework import Cell, Experiment, Row, Settings
from paper_reproductions.lire import protocol

PROGRAM = Path(__file__).with_name("authors_glrm_program.py")
GRID = (0.00001, *protocol.PENALTIES["GLRM"])
SETS = ("heart",)
"""The smallest; a fold of it takes some two minutes, one of COMPAS more than five."""
FOLDS = 2


def cells(settings: Settings) -> list[Cell]:
    """The first folds; none in small."""
    return [
        Cell.of(method="GLRM, AIX360", data=data, fold=fold)
        for data in SETS
        for fold in (() if settings.quick else settings.first_folds(FOLDS))
    ]


def measure(cell: Cell, settings: Settings) -> list[Row]:
    """What `authors_glrm_program` prints: a row with 1e-5 and one without."""
    fold = protocol.fold_of(cell["data"], cell["fold"], settings.seed)
    fitting, choosing = fold.tuning()
    columns = protocol.Scikit(None)
    columns.columns = fold.train.X.one_hot()[1]
    parts = {"": fitting, "_choose": choosing, "_all": fold.train, "_test": fold.test}
    arrays: dict[str, Any] = {}
    for name, part in parts.items():
        arrays |= {f"X{name}": columns._matrix(part.X), f"y{name}": part.y}
    return list(said("aix360", PROGRAM, arrays, *GRID))


authors_glrm = Experiment("aix360", cells, measure, protocol.files, lambda cell: True)
