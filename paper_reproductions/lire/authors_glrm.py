"""GLRM by AIX360, which the author runs: with the grid of his program (Table 3 leaves out 1e-5), and at
the lambda that his accuracy and AUC tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.peers import said
from paper_reproductions.framework import Cell, Experiment, Row, Settings
from paper_reproductions.lire import protocol, published

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
    parts = {"": fitting, "_choose": choosing, "_all": fold.train, "_test": fold.test}
    return list(said("aix360", PROGRAM, _arrays(fold, parts), *GRID))


def _arrays(fold: protocol.Fold, parts: Mapping[str, protocol.Split]) -> dict[str, Any]:
    columns = protocol.Scikit(None)
    columns.columns = fold.train.X.one_hot()[1]
    arrays: dict[str, Any] = {}
    for name, part in parts.items():
        arrays |= {f"X{name}": columns._matrix(part.X), f"y{name}": part.y}
    return arrays


authors_glrm = Experiment("aix360", cells, measure, protocol.files, lambda cell: True)


LARGE = (0.1, 0.05, 0.01, 0.005, 0.001, 0.0005)
"""Of the grid, from the largest: what takes seconds to minutes."""
LARGE_SETS = ("compas", "fico", "bank", "heart")


def measure_by_lambda(cell: Cell, settings: Settings) -> list[Row]:
    """A row per lambda; the last has `same` 1 if its accuracy and AUC are the author's."""
    fold = protocol.fold_of(cell["data"], cell["fold"], settings.seed)
    (row,) = published.comparison().where(data=cell["data"], method="GLRM", fold=cell["fold"])
    arrays = _arrays(fold, {"_all": fold.train, "_test": fold.test})
    arrays["paper"] = [row["accuracy"], row["auc"]]
    return list(said("aix360_0.2", PROGRAM, arrays, *LARGE))


by_lambda = Experiment(
    "aix360 by lambda",
    lambda settings: [
        Cell.of(method="GLRM, AIX360 0.2.1", data=data, fold=fold)
        for data in LARGE_SETS
        for fold in (() if settings.quick else settings.first_folds(10))
    ],
    measure_by_lambda,
    protocol.files,
    lambda cell: True,
)
"""With the version of that time: of a binary column it begins with one condition, later ones with both."""
