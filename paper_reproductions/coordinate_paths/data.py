"""The data of the paper's problems, prepared: the toy problem, Prestige,
California schools, shared bikes.

Columns and target of the real problems are centred and divided by their sample standard deviations
(n - 1 in the denominator). With the mean squared error halved, this gives the digits that the paper
prints for the schools; dividing by n does not (Fig. 3: .1226 instead of .1223, printed .122).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr
from paper_reproductions.coordinate_paths import published
from paper_reproductions.framework import Cell

Array = NDArray[np.float64]

SCHOOL_FEATURES = {
    "enrltot": "EnrlTot",
    "teachers": "Teachers",
    "calwpct": "CalWPct",
    "mealpct": "MealPct",
    "computer": "Computer",
    "compstu": "CompStu",
    "expnstu": "ExpnStu",
    "str": "STR",
    "avginc": "AvgInc",
    "elpct": "ELPct",
}
"""The columns of the file, and their names in the style of the paper."""

# Codes of the UCI file. The last level of each is the one that is left out
# where levels are dropped.
SEASONS = {1: "Spring", 2: "Summer", 3: "Fall", 4: "Winter"}
WEEKDAYS = {
    0: "Sunday",
    1: "Monday",
    2: "Tuesday",
    3: "Wednesday",
    4: "Thursday",
    5: "Friday",
    6: "Saturday",
}
WEATHERS = {1: "Clear", 2: "Mist", 3: "Rain"}

PRESTIGE_COLUMNS = {
    "3 numbers, 3 types, 102 rows": (("education", "income", "women"), ("bc", "prof", "wc"), False),
    "3 numbers, 3 types, 98 rows": (("education", "income", "women"), ("bc", "prof", "wc"), True),
    "4 numbers, 2 types, 102 rows": (
        ("education", "income", "women", "census"),
        ("bc", "prof"),
        False,
    ),
    "4 numbers, 2 types, 98 rows": (
        ("education", "income", "women", "census"),
        ("bc", "prof"),
        True,
    ),
}
"""Six columns each: the numbers, the levels of the type, and whether the 4 rows
without a type are left out.
"""


def loads(name: str) -> Callable[[Cell], tuple[str, ...]]:
    """What every cell of an experiment loads."""
    return lambda cell: (name,)


@lru_cache
def toy() -> tuple[jr.Table, Array]:
    """Four rows with exactly the moments of the toy problem (1), so that its
    costs are population values.
    """
    first, second, error = np.array(
        [[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]], np.float64
    )  # orthogonal
    height = first
    weight = published.CORRELATION * first + np.sqrt(1 - published.CORRELATION**2) * second
    age = np.array(published.OPTIMUM) @ [height, weight] + np.sqrt(published.OPTIMAL_COST) * error
    return jr.as_table(np.column_stack([height, weight]), feature_names=["height", "weight"]), age


@lru_cache
def prestige(columns: str) -> tuple[jr.Table, Array]:
    """The prestige of occupations; `columns` is a key of PRESTIGE_COLUMNS. A missing
    type is 0 in every indicator.
    """
    numbers, types, complete = PRESTIGE_COLUMNS[columns]
    data = jr.datasets.load("prestige")
    given = dict(zip(data.X.names, data.X.columns, strict=True))
    levels = data.X.schema.features[data.X.names.index("type")].categories
    assert levels is not None
    prepared = {name: given[name] for name in numbers}
    prepared |= {f"type={level}": given["type"] == levels.index(level) for level in types}
    rows = np.asarray(given["type"]) >= 0 if complete else np.full(len(data), True)
    return standardised({name: values[rows] for name, values in prepared.items()}, data.y[rows])


@lru_cache
def schools() -> tuple[jr.Table, Array]:
    """The test scores of California's school districts and their ten continuous features."""
    data = jr.datasets.load("caschool")
    given = dict(zip(data.X.names, data.X.columns, strict=True))
    return standardised({name: given[column] for column, name in SCHOOL_FEATURES.items()}, data.y)


@lru_cache
def bikes(all_levels: bool = False) -> tuple[jr.Table, Array]:
    """Rides per day: feeling temperature, day number, humidity, wind, and levels of
    season, weekday and weather.
    """
    columns, rides = bike_columns(all_levels)
    return standardised(columns, rides)


def bike_columns(all_levels: bool = False) -> tuple[dict[str, Array], Array]:
    """The columns of `bikes` before they are standardised."""
    data = jr.datasets.load("bike_day")
    given = dict(zip(data.X.names, data.X.columns, strict=True))
    columns = {"Ftemp": given["atemp"], "Day": np.arange(1.0, len(data) + 1), "Hum": given["hum"]}
    columns["Wind"] = given["windspeed"]
    for name, levels in (("season", SEASONS), ("weekday", WEEKDAYS), ("weathersit", WEATHERS)):
        for code in list(levels)[: None if all_levels else -1]:
            columns[levels[code]] = (given[name] == code).astype(np.float64)
    return columns, np.asarray(data.y, np.float64)


def bike_extras() -> dict[str, Array]:
    """All columns of the file, as they are."""
    data = jr.datasets.load("bike_day")
    return dict(zip(data.X.names, data.X.columns, strict=True))


def standardised(columns: dict[str, Array], target: Array) -> tuple[jr.Table, Array]:
    """Mean 0 and sample variance 1 of every column and of the target."""
    scaled = np.column_stack([_scaled(values) for values in columns.values()])
    return jr.as_table(scaled, feature_names=list(columns)), _scaled(target)


def _scaled(values: Array) -> Array:
    values = np.asarray(values, np.float64)
    return (values - values.mean()) / values.std(ddof=1)
