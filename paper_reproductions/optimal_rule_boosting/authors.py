"""realkd, the authors' own program, and rulefit, the package that they compare it with, on the same
rows at the same settings: areas of Table 1 and counts of Table 2.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import NotRun, python_of, said
from jaxrules.data.datasets import Dataset
from paper_reproductions.framework import Cell, Experiment, Row, Rows, Settings
from paper_reproductions.optimal_rule_boosting import data, scores

PROGRAM = Path(__file__).with_name("authors_program.py")
SECONDS = 600
"""What one run of the program may take."""


def run(
    name: str, train: Dataset, test: Dataset, search: str, penalty: float, stop: bool = False
) -> dict[str, Any]:
    """What the program says of ten rules.

    Raises:
        NotRun: if it is not there, fails or takes too long.
    """
    source, regression = data.SETS[name], train.task == "regression"
    columns = _columns(name, train)
    task = {
        "X": columns,
        "X_test": _columns(name, test),
        "y": (train.y if regression else 2.0 * train.y - 1.0).tolist(),
        "loss": "squared" if regression else "logistic",
        "search": search,
        "penalty": penalty,
        "stop": stop,
        "attributes": {column: source.most_of.get(column, source.most) for column in columns},
        "rules": scores.SIZES[-1],
    }
    command = [str(python_of("realkd")), "-I", str(PROGRAM)]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(task),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as late:
        raise NotRun(f"realkd takes more than {SECONDS} seconds") from late
    if done.returncode:
        raise NotRun(f"realkd ended with code {done.returncode}: {done.stderr.strip()[-200:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _columns(name: str, part: Dataset) -> dict[str, list[Any]]:
    """Columns by name; of tic-tac-toe 27 of 0 and 1, as in the authors' program, of which
    each makes two attributes.
    """
    columns: dict[str, list[Any]] = {}
    for feature, column in zip(part.X.schema.features, part.X.columns, strict=True):
        if feature.categories is None:
            columns[feature.name] = column.tolist()
        elif name == "tic-tac-toe":
            columns |= {
                f"{feature.name}_{c}": (column == k).astype(int).tolist()
                for k, c in enumerate(feature.categories)
            }
        else:
            columns[feature.name] = [feature.categories[code] for code in column]
    return columns


# Table 1

AREAS = (("world happiness", "greedy", 0.001), ("used cars", "optimal", 10.0))
"""The values of Table 1 that neither descriptions of rules nor lambda explain."""


def measure_area(cell: Cell, settings: Settings) -> list[Row]:
    """A row per number of rules."""
    name, search = cell["data"], cell["search"]
    train, test = data.split(name, cell["split"], settings.seed)
    began = time.perf_counter()
    found = run(
        name, train, test, "greedy" if search == "greedy" else "exhaustive", cell["penalty"]
    )
    seconds = time.perf_counter() - began
    return [
        {
            "rules": k,
            "score": scores.score(test.y, prediction, train.task == "binary"),
            "seconds": seconds,
            "version": found["version"],
        }
        for k, prediction in zip(scores.SIZES, found["predictions"], strict=True)
    ]


areas = Experiment(
    "realkd",
    lambda settings: [] if settings.quick else [
        Cell.of(data=name, method="realkd", search=search, penalty=penalty, split=split)
        for name, search, penalty in AREAS
        for split in settings.first_folds(5)
    ],
    measure_area,
    data.files,
    lambda cell: True,
)  # fmt: skip


RULEFIT, RULEFIT_PROGRAM = "rulefit 0.3.1", PROGRAM.with_name("authors_rulefit_program.py")
ORDERS = {"classify": 5, "regress": 1}
"""Of its rules: the package's own depends on the process. With numbers the areas hardly do."""
PACKAGE_SETS = (
    "iris (1)",
    "titanic",
    "boston",
    "insurance",
    "friedman2",
    "mobile prices",
    "used cars",
    "world happiness",
)
"""The sets of at most 2000 rows where single differences of the package do not suffice."""


def measure_package(cell: Cell, settings: Settings) -> list[Row]:
    """RuleFit's area by the authors' package, seeded as they seed it, by order of its rules."""
    name, split = cell["data"], cell["split"]
    train, test = data.split(name, split, settings.seed)
    classes, source = train.task == "binary", data.SETS[name]
    arrays = {
        "X": _dummies(train),
        "X_test": _dummies(test),
        "y": 2.0 * train.y - 1.0 if classes else train.y,
    }
    task, all_C = "classify" if classes else "regress", np.linspace(*source.rulefit_C, 50)
    orders = ORDERS[task]
    lines = said("rulefit", RULEFIT_PROGRAM, arrays, task, source.seeds[split], orders, *all_C)
    rows = Rows(
        {**line, "label_score": scores.score(test.y, np.array(line["says"]), classes)}
        for line in lines
    )
    return [
        {"order": order, "area": scores.rulefit_area(rows.where(order=order), "label_score", classes)}
        for order in range(orders)
    ]  # fmt: skip


def _dummies(part: Dataset) -> np.ndarray:
    """As pandas has them: columns of numbers first, then one of 0 and 1 per category."""
    features = list(zip(part.X.schema.features, part.X.columns, strict=True))
    numbers = [column for feature, column in features if feature.categories is None]
    classes = [
        column == code
        for feature, column in features
        if feature.categories is not None
        for code in np.argsort(feature.categories)
    ]
    return np.column_stack([*numbers, *classes]).astype(float)


package = Experiment(
    "rulefit package",
    lambda settings: [] if settings.quick else [
        Cell.of(data=name, split=split, method=RULEFIT)
        for name in PACKAGE_SETS
        for split in settings.first_folds(5)
    ],
    measure_package,
    data.files,
    lambda cell: True,
)  # fmt: skip


# Table 2

FINISHED = ("iris (1)", "tic-tac-toe", "used cars")
"""Sets whose ten searches end in seconds, ours and theirs."""
ALL_ROWS = "all"


def count_cells(settings: Settings) -> list[Cell]:
    """The five splits of small sets; and all rows of tic-tac-toe at lambda 5,
    with the stop and without.
    """
    if settings.quick:
        return []
    splits = [
        Cell.of(
            data=name, method="realkd", rows=str(split), penalty=data.SETS[name].penalty, stop=0
        )
        for name in FINISHED
        for split in settings.first_folds(5)
    ]
    whole = [
        Cell.of(data="tic-tac-toe", method="realkd", rows=ALL_ROWS, penalty=5.0, stop=stop)
        for stop in (0, 1)
    ]
    return [*splits, *whole]


def measure_counts(cell: Cell, settings: Settings) -> Row:
    """What the program's exhaustive search prunes for ten rules, by the names of Table 2.

    Equivalence: augmentations that hold on all rows already, and children that are no core queries.
    """
    name, rows = cell["data"], cell["rows"]
    train = (
        data.load(name, settings.seed)
        if rows == ALL_ROWS
        else data.split(name, int(rows), settings.seed)[0]
    )
    found = run(name, train, train, "exhaustive", cell["penalty"], bool(cell["stop"]))
    hits = found["counts"]
    return {
        "immediate_bound": hits["bnd_immediate_hits"] + hits["bnd_post_children_hits"],
        "immediate_equivalence": hits["clo_hits"] + hits["non_lexmin_hits"],
        "propagated_bound": hits["del_bnd_hits"], "propagated_equivalence": hits["rec_crit_hits"],
        "n_rows": len(train), "version": found["version"],
    }  # fmt: skip


counts = Experiment("realkd_counts", count_cells, measure_counts, data.files, lambda cell: True)
