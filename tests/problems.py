"""Small problems whose optima are known: one table of 48 rows, a target of
every kind, all conjunctions.

All problems share the table (a number, a number with missing values, a category), so that
kernels are compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import jaxrules as jr

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

# The table

_random = np.random.default_rng(0)
N_ROWS = 48
size = _random.integers(0, 4, N_ROWS).astype(float)
age = _random.integers(0, 3, N_ROWS).astype(float)
age[::8] = np.nan
colour = _random.choice(["a", "b", "c"], N_ROWS)
X = pd.DataFrame({"size": size, "age": age, "colour": colour})
DESIGN = np.column_stack(
    [size, np.nan_to_num(age), np.isnan(age), *(colour == value for value in "abc")]
).astype(float)
"""What linear models see: numbers, where they are missing, categories."""
WEIGHTS = _random.integers(0, 3, N_ROWS)


def _propositions() -> Rows:
    """Rows x propositions: everything that can be asked about one column."""
    asked = [
        *(side for cut in range(3) for side in (size <= cut, size > cut)),
        *(side for cut in range(2) for side in (age <= cut, age > cut)),
        *(side for value in "abc" for side in (colour == value, colour != value)),
        np.isnan(age),
        ~np.isnan(age),
    ]
    return np.stack(asked, axis=1)


def _conjunctions() -> tuple[Rows, Floats]:
    """Every set of rows for which some conjunction holds, rows x sets, and the fewest propositions
    that describe each.
    """
    lengths = {np.ones(N_ROWS, bool).tobytes(): 0}
    newest = list(lengths)
    while newest:
        grown = {
            (np.frombuffer(rows, bool) & proposition).tobytes(): lengths[rows] + 1
            for rows in newest
            for proposition in _propositions().T
        }
        newest = [rows for rows in grown if rows not in lengths]
        lengths |= {rows: grown[rows] for rows in newest}
    return np.stack([np.frombuffer(rows, bool) for rows in lengths], axis=1), np.array(
        list(lengths.values()), float
    )


CONJUNCTIONS, LENGTHS = _conjunctions()


def pool() -> jr.Conjunctions:
    """Six rules to choose from; the first is `RULE`."""
    c, schema = jr.Condition, jr.as_table(X, missing="own_category").schema
    return jr.Conjunctions.build(
        schema,
        [
            [c.above(0, 1.0), c.none_of(2, [0], 3)],
            [c.above(0, 1.0)],
            [c.one_of(2, [0])],
            [c.is_missing(1, numeric=True)],
            [c.at_most(1, 0.0), c.one_of(2, [1])],
            [c.above(0, 0.0), c.at_most(0, 2.0)],
        ],
    )


POOL = np.stack(
    [
        (size > 1) & (colour != "a"),
        size > 1,
        colour == "a",
        np.isnan(age),
        (age <= 0) & (colour == "b"),
        (size > 0) & (size <= 2),
    ],
    axis=1,
)

# The targets


RULE = POOL[:, 0]
_flipped = _random.random(N_ROWS) < 0.15
NOISY = {
    "labels": np.where(RULE ^ _flipped, "yes", "no"),
    "numbers": 1 + 0.5 * size + 3 * RULE - (colour == "b") + 0.3 * _random.normal(size=N_ROWS),
    "counts": _random.poisson(1 + 3 * RULE),
}
PERFECT = {"labels": np.where(RULE, "yes", "no"), "numbers": 1.0 + 3 * RULE, "counts": 1 + 3 * RULE}
"""One rule says it all."""
CLASSES = np.where(RULE, "high", np.where(colour == "a", "low", "middle"))
"""Three classes, each of which some rules of the pool tell from the rest."""
for _y in (*NOISY.values(), *PERFECT.values(), CLASSES):
    _y.setflags(write=False)  # a learner that changes its input raises


def coded(target: str) -> Floats:
    """The noisy target as losses see it: -1 and +1, or numbers."""
    y = NOISY[target]
    return np.where(y == "yes", 1.0, -1.0) if target == "labels" else y.astype(float)


# The losses, without the library


@dataclass(frozen=True)
class Loss:
    """A loss: value, first and second derivative by the score; the kind of target it takes."""

    target: str
    value: Callable[[Floats, Floats], Floats]
    gradient: Callable[[Floats, Floats], Floats]
    curvature: Callable[[Floats, Floats], Floats]


LOSSES = {
    "squared": Loss(
        "numbers",
        lambda y, f: (y - f) ** 2,
        lambda y, f: 2 * (f - y),
        lambda y, f: np.full(len(y), 2.0),
    ),
    "logistic": Loss(
        "labels",
        lambda y, f: np.log1p(np.exp(-y * f)),
        lambda y, f: -y / (1 + np.exp(y * f)),
        lambda y, f: 1 / (2 + np.exp(f) + np.exp(-f)),
    ),
    "exponential": Loss(
        "labels",
        lambda y, f: np.exp(-y * f),
        lambda y, f: -y * np.exp(-y * f),
        lambda y, f: np.exp(-y * f),
    ),
    "zero-one": Loss(
        "labels", lambda y, f: (y * f <= 0) * 1.0, lambda y, f: 0 * y, lambda y, f: 0 * y
    ),
    "poisson": Loss(
        "counts", lambda y, f: np.exp(f) - y * f, lambda y, f: np.exp(f) - y, lambda y, f: np.exp(f)
    ),
}
