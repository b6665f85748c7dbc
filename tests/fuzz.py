"""Wrong, odd and extreme values for every argument of every public function.

A call must return a model (with finite numbers) or raise a clear error: a ValueError or TypeError
that this library raises and that names the argument. Anything else is a defect: a raw error (one
from other code, or without the argument's name) or silent nonsense (numbers that are not finite, or
a meaningless value that is accepted).

``python tests/fuzz.py [name ...]`` prints how many calls of each function end in which way, the
defects, and the CPU time.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import jax
import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse

import jaxrules as jr
from jaxrules import estimators

matplotlib.use("Agg")

Outcome = Literal["model", "clear error", "raw error", "silent nonsense"]
SECONDS_PER_CALL = 20
_HOME = str(Path(jr.__file__).parent)

# Data that work

_random = np.random.default_rng(0)
N_ROWS = 48
X = _random.integers(0, 4, (N_ROWS, 3)).astype(float)
_signal = (X[:, 0] > 1) & (X[:, 1] < 3)
LABELS = np.where(_signal ^ (_random.random(N_ROWS) < 0.1), "yes", "no")
NUMBERS = 2.0 * _signal + X[:, 2] + 0.1 * _random.normal(size=N_ROWS)


def _pool() -> jr.Conjunctions:
    c = jr.Condition
    return jr.Conjunctions.build(
        jr.as_table(X).schema, [[c.above(0, 1.0)], [c.below(1, 3.0), c.above(2, 0.0)]]
    )


RULES = _pool()
FOREST = jr.default_forest(X, LABELS, n_trees=3)
ENSEMBLE = jr.RuleEnsemble(
    RULES.with_schema(RULES.schema.with_classes(("no", "yes"))),
    np.array([[1.0], [2.0]]),
    np.array([-1.0]),
    link="logistic",
)
LIST = jr.RuleList(
    ENSEMBLE.conjunctions,
    np.array([1, 1, 0], np.int32),
    np.array([[0.2, 0.8], [0.4, 0.6], [0.7, 0.3]]),
)
NUMBER_LIST = jr.RegressionList(RULES, np.array([1.5, -2.0, 0.25]))
PATH_FIT = jr.paths.fit(X, NUMBERS, steps=3, method="local", restarts=1)
PATH = PATH_FIT.model
CAREFUL = jr.with_threshold(ENSEMBLE, 9.0)


def _with_schema(**changes: Any) -> jr.RuleEnsemble:
    """The ensemble, with other columns."""
    schema = replace(ENSEMBLE.schema, **changes)
    return replace(ENSEMBLE, conjunctions=replace(ENSEMBLE.conjunctions, schema=schema))


OWN_CATEGORY = _with_schema(missing="own_category")
FOLDED = _with_schema(features=tuple(map(jr.Feature, ("age", "AGE", "x2"))))
"""One name where case is ignored."""
OTHER = jr.RuleEnsemble(
    jr.Conjunctions.build(jr.Schema((jr.Feature("elsewhere"),)), []),
    np.zeros((0, 1)),
    np.array([0.0]),
)


@dataclass(frozen=True, eq=False)
class Traced:
    """A value that JAX traces."""

    value: Any


@dataclass(frozen=True, eq=False)
class Bad:
    """A value that must be refused."""

    value: Any


def bad(*values: Any) -> tuple[Bad, ...]:
    """Values that must be refused."""
    return tuple(map(Bad, values))


# What is tried

HUGE = 10**30
VALUES: tuple[Any, ...] = (
    None, True, np.True_, -1, 0, 3, HUGE, 2**40, -HUGE, np.int32(3), np.int64(-1), np.uint8(2),
    1.5, -0.5, 1e-320, 1e300, np.nan, np.inf, -np.inf, np.float32(0.5), np.float64("nan"), 1j,
    "0", "", (), [], [1.0], [np.nan], [0.5, 0.25], (1, 2, 3), {}, {"x0": 1}, {"x0": "1"},
    {0: [1.0]}, np.zeros(0), np.zeros((2, 2)), np.ones(3), ["x0"], [0], X, FOREST, ENSEMBLE, PATH,
    PATH_FIT, jr.Status.OPTIMAL, np.array(["x0", "x1"]), pd.Series([1.0, 2.0]),
    *bad(
        "no such value", b"1", object(), Exception, np.array(object()), {"no": "meaning"},
        10**400, lambda: 1,
    ),
)  # fmt: skip
"""For options; some are right for some of them."""


def _column(values: Any) -> Any:
    return np.column_stack([values, X[:, 1:]])


SEVERAL = pd.DataFrame(X, columns=["x0", "x1", "x1"])
FRAME = pd.DataFrame(X, columns=["x0", "x1", "x2"])
STRAY = ["unknown", *(f"{i / 7:.3f}" for i in range(1, N_ROWS))]
UNITS: tuple[Any, ...] = (
    1e-7 * X, 1e7 * X, 1e7 + 1e-3 * X, _column(1.7e9 + np.arange(N_ROWS)), 365.25 * FRAME,
    _column((1_700_000_000 + X[:, 0]).astype(int)), pl.from_pandas(1e-7 * FRAME),
)  # fmt: skip
"""Tables in other units, and with large offsets."""
GAP = X[:, 0] == 1
NAN = np.where(GAP, np.nan, X[:, 0])
MISSING: tuple[Any, ...] = (
    _column(NAN), _column(np.full(N_ROWS, np.nan)), np.where(GAP[:, None], np.nan, X),
    np.where(GAP[:, None], None, X), FRAME.assign(x0=NAN), FRAME.where(X != 1).convert_dtypes(),
    FRAME.assign(x0=np.where(GAP, None, X[:, 0])), FRAME.assign(x0=pd.array(NAN, "Float64")),
    pl.from_pandas(FRAME).with_columns(x0=pl.Series(NAN)),
    pl.from_pandas(FRAME).with_columns(x0=pl.Series(NAN, nan_to_null=True)),
    {"x0": NAN, "x1": [None, *X[1:, 1]], "x2": X[:, 2]}, 1e7 * FRAME.assign(x0=NAN),
)  # fmt: skip
"""Tables with missing values, in every form."""
TABLES: tuple[Any, ...] = (
    *bad(
        *MISSING, FRAME.assign(x0=STRAY), pl.from_pandas(FRAME).with_columns(x0=pl.Series(STRAY)),
        FRAME.assign(x0=["n/a", *X[1:, 0].astype(object)]),
        {"x0": STRAY, "x1": X[:, 1], "x2": X[:, 2]},
    ),
    *bad(
        None, "file.csv", b"file.csv", 3.0, True, {}, {"x0": X[0, 0]},
        {"x0": [[1.0], [2.0, 3.0]]}, {"x0": [1.0, "a"]}, {"x0": [1.0], "x1": [1.0, 2.0]},
        [{"x0": object()}] * N_ROWS, [{"x0": None, "x1": 1.0, "x2": 2.0}] * N_ROWS, [], [[]],
        X[:, 0], X[None], X[:, :0], X[0], [[1.0, 2.0], [3.0]], X.astype(str), X + 1j,
        X.astype("datetime64[s]"), _column(np.where(X[:, 0] == 1, np.inf, X[:, 0])),
        scipy.sparse.csr_matrix(X), np.ma.masked_equal(X, 1), SEVERAL,
        FRAME.assign(x0=pd.Timestamp(0)), FRAME.assign(x0=None),
        FRAME.assign(x0=[object()] * N_ROWS), FRAME.assign(x0=1j), pl.from_pandas(FRAME).lazy(),
        _column(np.full(N_ROWS, 2**60)).astype(np.int64), FRAME["x0"], PATH_FIT, ENSEMBLE, FOREST,
        object(), len, iter([]), range(3), FRAME.rename(columns={"x0": "x1"}),
    ),
    *UNITS, FRAME.assign(target=LABELS), X[:0], FRAME[:0], X[:1], X[:2], X[1:], np.zeros_like(X),
    _column(1e39 * X[:, 0]), _column(1e160 * X[:, 0]), _column(X[:, 0] * 5e307),
    _column(1e-320 * X[:, 0]), _column(X[:, 0] + 1e15), -1e300 * X, X.astype(bool),
    X.astype(np.float16), X.astype(np.uint8), X.tolist(), X.astype(object),
    dict(zip(("x0", "x1", "x2"), X.T, strict=True)),
    [dict(zip(("x2", "x1", "x0"), row, strict=True)) for row in X[:, ::-1].tolist()], FRAME,
    FRAME.astype(str), FRAME.assign(x0="same"), FRAME.assign(x0=[str(i) for i in range(N_ROWS)]),
    FRAME.astype({"x0": "category"}), FRAME.assign(x0=X[:, 0] > 1),
    FRAME.rename(columns={"x0": "\x1b[31m"}), FRAME.convert_dtypes(), pl.from_pandas(FRAME),
    jr.as_table(X), jr.as_table(_column(NAN), missing="own_category"), jax.numpy.asarray(X),
    Traced(X), np.asfortranarray(X), X[:, [0, 0, 0]], FRAME[["x2", "x1", "x0"]],
)  # fmt: skip
ORDER = ["yes", "maybe", "no"]
LEVELS = (
    pd.Categorical(LABELS, ORDER, ordered=True),
    pd.Series(pd.Categorical(np.where(GAP, "maybe", LABELS), ORDER, ordered=True)),
    pl.Series(np.where(GAP, "maybe", LABELS), dtype=pl.Enum(ORDER)),
    pd.Categorical(X[:, 0].astype(int), [3, 2, 1, 0], ordered=True),
)
"""Targets with an order."""
TARGETS: tuple[Any, ...] = (
    *bad(
        None, "target", b"target", 3.0, True, {}, {"y": 1}, [], X, LABELS[:, None], LABELS[None],
        LABELS[1:], [LABELS], np.where(X[:, 0] == 1, np.nan, NUMBERS),
        np.where(X[:, 0] == 1, np.inf, NUMBERS), NUMBERS + 1j, np.full(N_ROWS, "same"),
        np.zeros(N_ROWS), [object()] * N_ROWS, ["yes", 1] * (N_ROWS // 2),
        [None, 1] * (N_ROWS // 2), [1, True] * (N_ROWS // 2), LABELS.astype(bytes),
        np.full(N_ROWS, np.datetime64(0, "s")), [2**70, 1] * (N_ROWS // 2),
        [10**400, 1.5] * (N_ROWS // 2), np.ma.masked_equal(X[:, 0], 1), PATH_FIT, object(), len,
        NUMBERS * 1e200, pd.Series([None, *LABELS[1:]]),
        pd.Categorical(np.where(LABELS == "no", None, LABELS), ["yes", "no"], ordered=True),
        pl.Series([None, *LABELS[1:]], dtype=pl.Enum(ORDER)), FRAME,
    ),
    1e-320 * NUMBERS, 1e90 * NUMBERS, -NUMBERS, NUMBERS + 1e15, 1e-90 * NUMBERS,
    NUMBERS.astype(np.float16), np.arange(N_ROWS), X[:, 0], X[:, 0].astype(int),
    X[:, 0].astype(bool), LABELS.tolist(), pd.Series(LABELS), pd.Series(LABELS, dtype="category"),
    pl.Series(LABELS), pd.Categorical(LABELS, np.unique(LABELS)[::-1], ordered=True),
    pl.Series(LABELS, dtype=pl.Enum(np.unique(LABELS)[::-1])), pd.cut(X[:, 0], 3), *LEVELS,
    *(factor * NUMBERS for factor in (1e-7, 1e7)), 1e7 + 1e-3 * NUMBERS,
    1_700_000_000 + X[:, 0].astype(int), np.where(np.arange(N_ROWS) == 3, "yes", "no"),
    np.where(_signal, 2**62, -(2**62)), np.where(_signal, "\x1b[31m", "\n"),
    np.where(_signal, "", "no"), LABELS.astype(object), jax.numpy.asarray(_signal),
    Traced(NUMBERS), NUMBERS > 1, (_signal * 1).tolist(),
)  # fmt: skip
ONES = np.ones(N_ROWS)
FIRST = np.arange(N_ROWS) == 0
WEIGHTS: tuple[Any, ...] = (
    *bad(
        "ones", 1.0, 3, {}, [], [1.0], ONES[1:], ONES[:, None], -ONES, 0 * ONES, np.nan * ONES,
        np.inf * ONES, np.where(FIRST, np.nan, 1), np.where(FIRST, -1e-320, 1), ONES.astype(str),
        ONES + 1j, np.ma.masked_equal(X[:, 0], 1), [10**400] * N_ROWS, [None] * N_ROWS,
        [object()] * N_ROWS, len, PATH_FIT, {"x0": ONES}, np.where(LABELS == "yes", 0.0, 1.0), X,
    ),
    ONES, 1e308 * ONES, 1e-320 * ONES, np.where(FIRST, 1e-320, 1), np.where(FIRST, 1e-90, 1),
    np.where(FIRST, 1e90, 1), 1e-12 * ONES, 1e7 * ONES, np.where(FIRST, 0.0, 1), ONES.astype(int),
    ONES.astype(bool), ONES.tolist(), pd.Series(ONES), 1 + X[:, 1], ONES.astype(np.float16),
    jax.numpy.asarray(ONES), [1] * N_ROWS, Traced(ONES), FIRST * 1.0, ONES.astype(object),
)  # fmt: skip
COUNTS_OF_ROWS = X[:, 0].astype(int)
OF_ROWS: tuple[Any, ...] = (
    *bad(
        "ones", 1.0, True, [], {}, [1.0], ONES[1:], ONES[:, None], np.nan * ONES, np.inf * ONES,
        -np.inf * ONES, np.where(FIRST, np.nan, 1), np.where(FIRST, np.inf, 1), 1e4 * ONES,
        1e308 * ONES, ONES.astype(str), ONES + 1j, [10**400] * N_ROWS, [None] * N_ROWS,
        np.ma.masked_equal(X[:, 0], 1), len, PATH_FIT, {"x0": ONES}, X,
    ),
    None, ONES, 1 + X[:, 1], ONES.astype(int), ONES.tolist(), pd.Series(ONES),
    pl.Series("ones", ONES.tolist()), jax.numpy.asarray(ONES), ONES.astype(np.float16),
    np.where(FIRST, 100.0, 1.0), np.where(FIRST, 1e-90, 1), ONES.astype(bool),
    pd.DataFrame({"ones": ONES}), 1e-12 * ONES,
)  # fmt: skip
OFFSETS = (*OF_ROWS, 0 * ONES, -ONES, np.where(FIRST, -300.0, 0.0), Bad(np.where(FIRST, -301.0, 0)))
EXPOSURES: tuple[Any, ...] = (
    *(one for one in OF_ROWS if not isinstance(one, Bad) or np.ndim(one.value) < 1), 1e4 * ONES,
    *map(Bad, (0 * ONES, -ONES, np.where(FIRST, 0.0, 1), np.where(FIRST, -1e-320, 1))),
    *map(Bad, (1e308 * ONES, 1e-320 * ONES, np.where(FIRST, np.nan, 1), ONES[1:], X, ONES + 1j)),
    np.where(FIRST, 1e100, 1), 365.25 * ONES, 1e-7 * ONES,
)  # fmt: skip
"""Offsets and exposures of losses with a log link."""
DIFFERENCES = (
    *(one for one in OF_ROWS if np.ndim(getattr(one, "value", 0)) != 1),
    1e4 * ONES,
    Bad(1e308 * ONES),
    Bad(np.nan * ONES),
    Bad(ONES[1:]),
)
"""Offsets of the squared loss."""
COUNTED: tuple[Any, ...] = (
    *map(Bad, (-COUNTS_OF_ROWS, COUNTS_OF_ROWS - 1, np.where(FIRST, -1, 2), 0 * COUNTS_OF_ROWS,
               np.where(FIRST, np.nan, 1), np.where(FIRST, np.inf, 1), LABELS, "counts", None)),
    COUNTS_OF_ROWS, COUNTS_OF_ROWS + 0.5, 1e6 * COUNTS_OF_ROWS, X[:, 0] > 1,
    COUNTS_OF_ROWS.astype(np.uint8), COUNTS_OF_ROWS.tolist(), np.where(FIRST, 1, 0),
)  # fmt: skip
POSITIVE: tuple[Any, ...] = (
    *bad(
        "maybe", "", "YES", "yes ", 1, 0, True, 1.5, HUGE, np.nan, np.inf, b"yes", ["yes"],
        ("no", "yes"), {"yes"}, {}, [], LABELS, np.array(["yes"]), object(), len, np.int64(1),
        np.True_, pd.NA, pd.NaT, X, PATH_FIT, slice(None), 1j,
    ),
    None, "no", "yes", np.str_("no"),
)  # fmt: skip
GROUPS: tuple[Any, ...] = (
    *bad(
        None, 1.0, 3, {}, [], [1.0], ONES[1:], ONES[:, None], np.nan * ONES, ONES + 1j,
        [None] * N_ROWS, [object()] * N_ROWS, len, PATH_FIT, {"x0": ONES}, X, "no column",
    ),
    "x0", X[:, 1], ONES, LABELS, LABELS.tolist(), pd.Series(LABELS), *LEVELS, Traced(ONES),
)  # fmt: skip
MODELS: tuple[Any, ...] = (
    *bad(
        None, PATH_FIT, "model.json", 3, {}, [], FOREST, X, object(), jr.RuleEnsemble, RULES,
        [ENSEMBLE],
    ),
    ENSEMBLE, LIST, NUMBER_LIST, PATH, OTHER, CAREFUL, jr.with_threshold(ENSEMBLE, 0.25),
    jr.with_threshold(LIST, 0.7), OWN_CATEGORY, FOLDED,
)  # fmt: skip
FITS: tuple[Any, ...] = (
    *map(Bad, (None, ENSEMBLE, "fit", 3, {}, [], X, object(), jr.Fit)),
    PATH_FIT,
    [PATH_FIT],
)
SEQUENCES: tuple[Any, ...] = (
    *map(Bad, (None, PATH_FIT, "path", 3, {}, [], X, object(), {"a": ENSEMBLE}, {"a": 1}, [PATH])),
    {"a": PATH}, {1: PATH},
)  # fmt: skip
POINTS: tuple[Any, ...] = (
    *bad(
        None, "points", 3, {}, [], object(), {"a": 1}, {"a": [[1.0]]}, {"a": "text"}, {"a": []},
        {"a": [None]},
    ),
    {"a": [[1.0, 0.5]]}, {1: [[1.0, 0.5, 0.1]]}, {"a": [[np.nan, np.inf]]}, {"a": X[:, :2]},
)  # fmt: skip
FORESTS: tuple[Any, ...] = (
    *bad(
        None, PATH_FIT, "forest", 3, {}, [], ENSEMBLE, X, object(), type(FOREST), type(FOREST)(),
        [FOREST],
    ),
    FOREST, FOREST.estimators_[0],
)  # fmt: skip
COLUMNS: tuple[Any, ...] = (
    *bad(
        "x0", b"x0", 3, 1.5, True, ["x9"], [3], [-1], [1.5], [True], [None], [["x0"]], [object()],
        X, len, object(), FOREST, ENSEMBLE, np.array("x0"),
    ),
    ["x0"], ("x2",), [0, "x0"], {"x0"}, np.array([0]), np.array(["x1"]), pd.Index(["x0"]),
    iter([]), [],
)  # fmt: skip
"""For `forbidden` and `required`."""
DIRECTIONS: tuple[Any, ...] = (
    *bad(
        "x0", 3, True, ["x0"], {"x0": 2}, {"x0": 0}, {"x0": True}, {"x0": "1"}, {"x0": None},
        {"x0": np.nan}, {"x0": [1]}, {"x0": np.array([1, 2])}, {"x9": 1}, {9: 1}, {-1: 1},
        {1.5: 1}, {None: 1}, {True: 1}, X, len,
    ),
    None, {}, {"x0": 1}, {"x0": np.int64(-1)}, {"x0": 1.0}, {0: 1, "x1": -1}, {np.int32(2): 1},
)  # fmt: skip
"""For `monotone`."""
PLACES: tuple[Any, ...] = (
    *bad(
        None, "x0 > 1", 0, 1.5, True, [-1], [2], [1.0], [True], [None], ["no rule"], [[0]],
        {"x0": 1}, X, RULES, len, object(),
    ),
    [], (), [0], [0, 1], [0, 0], (1,), [np.int64(0)], np.array([1]), [RULES.describe(0)],
    [0, RULES.describe(0)],
)  # fmt: skip
"""For rules by place or words."""
FILES: tuple[Any, ...] = tuple(
    map(Bad, (None, "", "/nowhere/at.all", ".", b"\0", "\0", 3.5, [], {}, object(), ENSEMBLE))
)
BY_NAME: Mapping[str, tuple[Any, ...]] = {
    "X": TABLES,
    "y": TARGETS,
    "sample_weight": WEIGHTS,
    "model": MODELS,
    "forest": FORESTS,
    "path": FILES,
    "data_home": FILES,
    "data": (*map(Bad, (None, X, "iris", 3, {}, object())),),
    "sequences": SEQUENCES,
    "methods": POINTS,
    "fit": FITS,
    "groups": GROUPS,
    "forbidden": COLUMNS,
    "required": COLUMNS,
    "monotone": DIRECTIONS,
    "keep": PLACES,
    "positive": POSITIVE,
}

# Parts of value types

SCHEMA = ENSEMBLE.schema
COLOURS = jr.Schema((jr.Feature("x0"), jr.Feature("colour", ("a", "b"))))
NO_ARRAYS: tuple[Any, ...] = (
    *bad(
        None, True, 3, 1.5, "text", b"1", [], [1.0], {}, object(), len, np.array("text"),
        np.array([object()]), np.array(["a", "b"]), np.array([1j, 2j]), np.zeros(0),
        np.ones((2, 2, 2)), np.full((2, 1), np.nan), np.full((2, 1), np.inf), np.ones(7),
        np.datetime64(0, "s"), X, FRAME, ENSEMBLE, RULES,
    ),
)  # fmt: skip
"""For the arrays of models; none is right."""
WHOLE = [Bad(np.full(n, value, np.int32)) for n in (1, 2, 3, 4) for value in (99, -7)]
POSITIONS: tuple[Any, ...] = (
    *map(
        Bad,
        (None, True, -1, 1.0, 7, 10**400, np.nan, "x0", b"0", [0], (0,), {}, object(), X, FRAME),
    ),
    0,
    np.int64(1),
)
"""For a column of two, whose first is a number."""
ENDS: tuple[Any, ...] = (
    *bad(
        None, True, "1", b"1", 1j, np.nan, 10**400, -(10**400), [1.0], np.ones(1), {}, object(),
        X,
    ),
    0, -1.5, np.float32(0.5), np.int64(3), np.inf, 1e-320,
)  # fmt: skip
COUNTS: tuple[Any, ...] = (
    *map(Bad, (True, 0, -1, 2.0, "2", [2], {}, object(), 10**400, X)),
    2,
    np.int64(2),
)
CODES: tuple[Any, ...] = (
    *bad(
        None, True, 3, "abc", "01", b"01", ["a"], [0.0], [None], [-2], [9], [[0]], [True],
        [10**400], [np.nan], np.array([0.5]), np.array(0), {"a": 1}, object(),
    ),
    [], [0], (0, 1), {1}, frozenset({0}), np.array([0, 1]), [-1], [0, 0],
)  # fmt: skip
OBJECTS: tuple[Any, ...] = (
    *map(
        Bad,
        (None, True, 3, "text", b"1", [], [1], {}, (), object(), len, X, FRAME, FOREST, PATH_FIT),
    ),
)
"""For parts that must be of one type of this library."""
WORDS: tuple[Any, ...] = (
    *bad(
        True, 3, 1.5, "zz", "", b"refuse", ["refuse"], ("refuse",), {}, object(), len,
        np.array("refuse"), np.array(["refuse"]), X,
    ),
)  # fmt: skip
PAIRS: tuple[Any, ...] = (
    *map(Bad, (None, True, 3, "ab", ["ab"], {}, ("a",), (("a",),), ((1, 2),), object(), X)),
    (),
    (("a", 1),),
)
NAMES: tuple[Any, ...] = (
    *map(Bad, (None, True, 3, 1.5, b"x", ["x"], ("x",), {}, object(), np.array("x"), X)),
    "",
    "x",
    "\x1b[31m",
)
TUPLES: tuple[Any, ...] = (
    *bad(
        True, 3, "ab", b"ab", ["a", "b"], {"a": 1}, (1, None), (None,), ((),), (object(),),
        object(), (np.array([1]),), ("a", "a"), X, FRAME, len,
    ),
)  # fmt: skip
FLAGS: tuple[Any, ...] = (
    *map(Bad, (None, 0, 1, 1.0, "True", b"1", [], [True], {}, object(), np.ones(2), X)),
    True,
    np.False_,
)
WEIGHTS_OF_TERMS: tuple[Any, ...] = (
    *bad(
        None, 1.0, "1", [1.0], (), (0.0,), (np.nan,), (np.inf,), ("1",), (True,), (1j,), (None,),
        (1.0, 2.0), (10**400,), np.ones(1), {}, object(), X,
    ),
    (2,), (np.float64(0.5),),
)  # fmt: skip
OF_TERMS: tuple[Any, ...] = (
    *bad(
        None, 1.0, 0, "0", [0], (), (-1,), (0.0,), ("x0",), (True,), (None,), (0, 1), (10**400,),
        np.zeros(1, int), {}, object(), X,
    ),
    (0,), (np.int64(0),),
)  # fmt: skip


# What is called


@dataclass(frozen=True, eq=False)
class Entry:
    """A public function with arguments that work.

    Attributes:
        skip: arguments that are not tried.
        checks_elsewhere: part of the path of files whose errors are as good as ours, in
            words that its users know.
        of: what is tried for each argument, if not `VALUES` and `BY_NAME`.
    """

    name: str
    call: Callable[..., Any]
    arguments: Mapping[str, Any]
    skip: tuple[str, ...] = ()
    checks_elsewhere: str | None = None
    of: Mapping[str, tuple[Any, ...]] | None = None

    @property
    def tried(self) -> list[str]:
        names = inspect.signature(self.call).parameters if self.of is None else self.of
        return [name for name in names if name not in self.skip]


def _always(X: Any, y: Any, sample_weight: Any = None) -> jr.RuleEnsemble:
    """Accept any X, and y as numbers or labels; learn nothing."""
    table = jr.as_table(X, missing="own_category")
    classes = tuple(np.unique(np.asarray(y)).tolist())[:2]
    schema = table.schema.with_classes(classes if jr.data.table.holds_classes(y) else None)
    return jr.RuleEnsemble(
        jr.Conjunctions.build(schema, [[]]),
        np.ones((1, 1)),
        np.zeros(1),
        link="logistic" if schema.classes else "identity",
    )


def value_types() -> list[Entry]:
    """The types that users put together by hand; ``of`` says what is tried for their parts."""
    c, schema = jr.Condition, {"schema": COLOURS}
    ends = {"feature": POSITIONS, "value": ENDS, "missing": FLAGS}
    rules: dict[str, Any] = {f.name: getattr(ENSEMBLE.conjunctions, f.name) for f in fields(RULES)}
    ensemble: dict[str, Any] = {f.name: getattr(ENSEMBLE, f.name) for f in fields(ENSEMBLE)}
    listed: dict[str, Any] = {f.name: getattr(LIST, f.name) for f in fields(LIST)}
    of_numbers: dict[str, Any] = {f.name: getattr(NUMBER_LIST, f.name) for f in fields(NUMBER_LIST)}
    sequence: dict[str, Any] = {
        f.name: getattr(PATH, f.name) for f in fields(jr.paths.ModelSequence)
    }
    linear = jr.LinearTerms(np.zeros(1, np.int32), np.ones((1, 1)), np.zeros(1), np.ones(1))
    terms: dict[str, Any] = {f.name: getattr(linear, f.name) for f in fields(linear)}
    parts = {"schema": OBJECTS, "conjunctions": OBJECTS, "options": PAIRS, "columns": TUPLES}

    def arrays(of: Any, **others: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
        """What is tried for the fields of a class of arrays."""
        found = {f.name: parts[f.name] for f in fields(of) if f.name in parts}
        for field in fields(of):
            if "dtype" in field.metadata:  # integers are good numbers, and no codes of three
                real = np.dtype(field.metadata["dtype"]).kind == "f" or field.name == "propositions"
                whole = [one.value if real else one for one in WHOLE]
                found[field.name] = (*NO_ARRAYS, *whole)
        return {**found, **others}

    return [
        *(
            Entry(f"Condition.{maker.__name__}", used(maker), {"feature": 0, "value": 1.0}, of=ends)
            for maker in (c.at_most, c.above, c.at_least, c.below)
        ),
        Entry(
            "Condition.one_of",
            used(c.one_of),
            {"feature": 1, "codes": [0]},
            of={"feature": (*POSITIONS[:-2], Bad(0)), "codes": CODES, "missing": FLAGS},
        ),
        Entry(
            "Condition.none_of",
            used(c.none_of),
            {"feature": 1, "codes": [0], "n_categories": 2},
            of={"feature": (*POSITIONS[:-2], Bad(0)), "codes": CODES, "n_categories": COUNTS},
        ),
        Entry(
            "Condition.is_missing",
            used(c.is_missing),
            {"feature": 0, "numeric": True},
            of={"feature": (*POSITIONS[:-1], Bad(1)), "numeric": (*FLAGS[:-1], Bad(False))},
        ),
        Entry(
            "Condition.is_present",
            used(c.is_present),
            {"feature": 1, "n_categories": 2},
            of={"feature": (*POSITIONS[:-2], Bad(0)), "n_categories": COUNTS},
        ),
        Entry(
            "Condition",
            used(c),
            {"feature": 0, "lower": 0.0, "upper": 2.0},
            of={
                **dict.fromkeys(("lower", "upper"), ENDS),
                **dict.fromkeys(("lower_closed", "upper_closed", "missing"), FLAGS),
                "feature": (*POSITIONS[:-1], Bad(1)),
                "categories": CODES[2:],
                "unseen": (*FLAGS[:-2], np.False_),
            },
        ),
        Entry(
            "Direction",
            used_direction,
            {"features": (0,), "weights": (1.0,)},
            of={
                "features": OF_TERMS,
                "weights": WEIGHTS_OF_TERMS,
                "categories": OF_TERMS[1:5],
                "origins": WEIGHTS_OF_TERMS[:4] + WEIGHTS_OF_TERMS[6:],
            },
        ),
        Entry("Feature", jr.Feature, {"name": "x"}, of={"name": NAMES, "categories": TUPLES}),
        Entry(
            "Schema",
            jr.Schema,
            {"features": (jr.Feature("x"),)},
            of={
                "features": (Bad(()), Bad(None), *TUPLES),
                "missing": (Bad(None), *WORDS),
                "classes": (Bad((1,)), Bad((1, "a")), Bad((np.nan, 1.0)), *TUPLES),
                "target": NAMES,
            },
        ),
        Entry(
            "Table",
            predicted_table,
            {"schema": SCHEMA, "columns": tuple(X.T.copy())},
            of={
                "schema": OBJECTS,
                "columns": (
                    *TUPLES,
                    *map(
                        Bad,
                        (
                            None,
                            tuple(X.T[:2]),
                            (X[:, 0], X[:, 1], X[1:, 2]),
                            (X[:, 0], X[:, 1], 1.0),
                            (X[:, :1], X[:, :1], X[:, :1]),
                            tuple(X.T.astype(int)),
                            tuple(X.T.astype(str)),
                            tuple(X.T.tolist()),
                        ),
                    ),
                ),
            },
        ),
        Entry("LinearTerms", with_terms, terms, of=arrays(linear)),
        Entry(
            "Conjunctions.build",
            jr.Conjunctions.build,
            {**schema, "rules": [[c.above(0, 1.0)]]},
            of={
                "schema": OBJECTS,
                "rules": (*map(Bad, (None, 3, "ab", [3], [[3]], [["x0 > 1"]], c, len, X, FRAME)),),
                "propositions": (
                    *map(Bad, ("a", 3, [], ["a"], [None], [-1], [1.5], [1, 2], [10**400], {}, X)),
                    [1],
                    np.array([2]),
                ),
            },
        ),
        Entry(
            "Conjunctions",
            used_rules,
            rules,
            of=arrays(RULES, directions=(*OBJECTS, Bad(RULES))),
        ),
        Entry(
            "RuleEnsemble",
            predicted(jr.RuleEnsemble),
            ensemble,
            of=arrays(
                ENSEMBLE,
                linear=OBJECTS[1:],
                link=(Bad(None), Bad("identity"), *WORDS),
                loss=tuple(word for word in WORDS if not isinstance(word.value, str)),
            ),
        ),
        Entry("RuleList", predicted(jr.RuleList), listed, of=arrays(LIST, counts=NO_ARRAYS[1:])),
        Entry(
            "RegressionList",
            predicted(jr.RegressionList),
            of_numbers,
            of=arrays(NUMBER_LIST, counts=NO_ARRAYS[1:], errors=NO_ARRAYS[1:]),
        ),
        Entry(
            "ModelSequence",
            predicted(jr.paths.ModelSequence),
            sequence,
            of=arrays(jr.paths.ModelSequence),
        ),
        Entry(
            "CoordinatePath",
            predicted(jr.paths.CoordinatePath),
            {f.name: getattr(PATH, f.name) for f in fields(PATH)},
            of=arrays(PATH),
        ),
        Entry(
            "Deadline",
            jr.Deadline,
            {"seconds": 1.0},
            of={
                "seconds": (
                    *map(Bad, (True, -1, np.nan, "1", [1], {}, X, 1j, object())),
                    None,
                    10**400,
                ),
                "clock": (*map(Bad, (None, 3, "now", [], {}, object())), lambda: 0.0),
            },
        ),
    ]


def used(maker: Callable[..., Any]) -> Callable[..., Any]:
    """Make a condition or proposition, and a rule of it."""

    @functools.wraps(maker)
    def call(*args: Any, **options: Any) -> Any:
        return jr.Conjunctions.build(COLOURS, [[maker(*args, **options)]])

    call.__signature__ = inspect.signature(maker)
    return call


def used_direction(features: Any, weights: Any, categories: Any = (), origins: Any = ()) -> Any:
    """A direction in a rule."""
    slant = jr.Direction(features, weights, categories, origins)
    return jr.Conjunctions.build(COLOURS, [[jr.Condition.above(slant, 1.0)]])


def used_rules(*fields_: Any, **parts: Any) -> Any:
    """Conjunctions in a model that predicts."""
    rules = jr.Conjunctions(*fields_, **parts)
    return predicted(jr.RuleEnsemble)(
        conjunctions=rules, weights=np.ones((2, 1)), intercept=np.zeros(1), link="logistic"
    )


def with_terms(*fields_: Any, **parts: Any) -> Any:
    """Linear terms in a model that predicts."""
    return predicted(jr.RuleEnsemble)(
        **{f.name: getattr(ENSEMBLE, f.name) for f in fields(ENSEMBLE)}
        | {"linear": jr.LinearTerms(*fields_, **parts)}
    )


def predicted(kind: Any) -> Callable[..., Any]:
    """Make a model, and predict with it."""

    def call(*fields_: Any, **parts: Any) -> Any:
        model = kind(*fields_, **parts)
        jr.predict(model, X)
        return model

    call.__signature__ = inspect.signature(kind)
    return call


def predicted_table(schema: Any, columns: Any) -> Any:
    """Make a table, and predict on it."""
    return jr.predict(ENSEMBLE, jr.Table(schema, columns))


for _function, _kind in ((used_rules, jr.Conjunctions), (with_terms, jr.LinearTerms)):
    _function.__signature__ = inspect.signature(_kind)  # type: ignore[attr-defined]
del _function, _kind


def entries() -> list[Entry]:
    """All of them."""
    called = functions()
    return [*value_types(), *called, *rates(), *gaps(called), *outputs()]


def gaps(called: list[Entry]) -> list[Entry]:
    """The functions that may keep missing values, with such tables."""
    found = []
    for entry in called:
        if not {"missing", "X"} - set(inspect.signature(entry.call).parameters):
            options = {name: value for name, value in entry.arguments.items() if name != "rules"}
            options["missing"] = "own_category"
            of, name = {"X": MISSING}, f"{entry.name}, gaps"
            found.append(replace(entry, name=name, arguments=options, of=of))
    return found


def outputs() -> list[Entry]:
    """Exports, next to predictions, and what people read, of models with thresholds."""
    models = tuple(one for one in MODELS if not isinstance(one, Bad) and one is not OTHER)
    refused = tuple(map(Bad, MISSING))
    row = {"model": OWN_CATEGORY, "X": X}
    data = {"result": ENSEMBLE, "X": X, "y": LABELS, "path": None}
    return [
        Entry("exports", exported, {"model": ENSEMBLE, "X": X}, of={"X": (*UNITS, *refused)}),
        Entry(
            "exports, a threshold",
            exported,
            {"model": CAREFUL, "X": X},
            of={"model": (*models[:-1], Bad(FOLDED)), "X": UNITS},
        ),
        Entry("exports, gaps", exported, row, of={"X": (*UNITS, *MISSING)}),
        *(
            Entry(f"{one.__name__}, gaps", one, row, of={"X": (*UNITS, *MISSING)})
            for one in (jr.explain, jr.predict_proba, jr.rule_report, jr.simplify)
        ),
        Entry("report, a threshold", jr.report, data, of={"result": (*models[:2], *models[4:])}),
        Entry(
            "report, gaps",
            jr.report,
            {**data, "result": OWN_CATEGORY},
            of={"X": (*UNITS, *MISSING)},
        ),
    ]


def exported(model: Any, X: Any) -> Any:
    """Predictions; NaN if Python or SQL predicts something else."""
    predictions = np.asarray(jr.predict(model, X)).tolist()
    python, sql = jr.to_python(model), jr.to_sql(model)
    source: dict[str, Any] = {}
    columns, names = jr.as_table(X, missing="own_category").to_columns(), model.schema.names
    rows = list(zip(*map(list, columns.values()), strict=True))
    exec(python, source)
    told = [source["predict"](dict(zip(names, row, strict=True))) for row in rows]
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE t ({', '.join(names)})")
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", rows)
        asked = database.execute(f"SELECT {sql} FROM t").fetchall()
    same = predictions == told == [value for (value,) in asked]
    return 0.0 if same else np.nan


def rates() -> list[Entry]:
    """Learners and models of counts with an offset or exposure."""
    data = {"X": X, "y": COUNTS_OF_ROWS}
    timed = {**data, "loss": "poisson", "time_limit": 0.5}
    tried = {"offset": OFFSETS, "exposure": EXPOSURES}
    model = jr.boosting.fit(X, COUNTS_OF_ROWS, loss="poisson", max_rules=1).model
    squared = {**data, "rules": RULES, "restarts": 1, "time_limit": 0.5, "loss": "squared"}
    fits = (
        ("rulefit.fit", jr.rulefit.fit, {"rules": RULES, "l1_penalty": 0.02}),
        ("boosting.fit", jr.boosting.fit, {"max_rules": 2}),
        ("boosting.path", jr.boosting.path, {"max_rules": 2}),
        ("glrm.fit", jr.glrm.fit, {"rule_penalty": 0.02}),
        ("lltboost.fit", jr.lltboost.fit, {"max_rules": 2}),
        ("ltrnet.fit", jr.ltrnet.fit, {"max_rules": 4, "iterations": 50, "restarts": 1}),
    )
    return [
        *(
            Entry(f"{name}, rates", call, {**timed, **options}, of={**tried, "y": COUNTED})
            for name, call, options in fits
        ),
        Entry("lire.fit, offset", jr.lire.fit, squared, of={"offset": DIFFERENCES}),
        Entry("predict, rates", jr.predict, {"model": model, "X": X}, of=tried),
        *(
            Entry(f"{one.__name__}, rates", one, {"model": model, **data}, of=tried)
            for one in (jr.risk, jr.refit)
        ),
    ]


def functions() -> list[Entry]:
    """The functions."""
    data, shown = {"X": X, "y": LABELS}, {"model": ENSEMBLE, "X": X}
    timed = {**data, "time_limit": 0.5}
    network = {"max_rules": 4, "max_length": 2, "iterations": 50, "restarts": 2}
    path, two, folds = {"path": PATH}, {"max_rules": 2}, {"n_folds": 2}
    sets = {"iterations": 50, "restarts": 1}
    penalties = {"global_penalty": 0.02, "local_penalty": 0.02}
    of_learners: dict[str, dict[str, Any]] = {
        "rulefit.fit": {"rules": RULES, "l1_penalty": 0.02},
        "rulefit.path": {"rules": RULES, "n_penalties": 3},
        "rulefit.cross_validate": {"rules": RULES, "l1_penalties": [0.02]},
        "lire.fit": {**penalties, "rules": RULES, "restarts": 1},
        "lire.path": {"rules": RULES, "restarts": 1, "global_penalties": [0.1, 0.01]},
        "lire.cross_validate": {
            "rules": RULES,
            "global_penalties": [0.02],
            "l2_penalties": [0.25],
            **folds,
        },
        "lire.published": {**penalties, "rules": RULES},
        "lire.optimal": {"max_length": 1, "max_cut_points": 2},
        "lire.near_optimal": {"max_length": 1, "max_cut_points": 2, "limit": 20},
        "glrm.fit": {"rule_penalty": 0.02},
        "glrm.path": {"rule_penalties": [0.1, 0.02]},
        "glrm.cross_validate": {"rule_penalties": [0.05], **folds},
        "boosting.fit": two,
        "boosting.path": two,
        "boosting.cross_validate": {**two, **folds, "search": "greedy"},
        "lltboost.fit": two,
        "lltboost.path": two,
        "lltboost.cross_validate": {**two, **folds},
        "ltrnet.fit": network,
        "ltrnet.path": network,
        "ltrnet.cross_validate": {**network, **folds},
        "ssrl.fit": two,
        "ssrl.path": two,
        "ssrl.cross_validate": {"max_rules": [2], "literal_penalties": [1.0], **folds},
        "ssrl.published": two,
        "regression_list.fit": {**two, "y": NUMBERS},
        "regression_list.path": {**two, "y": NUMBERS},
        "regression_list.cross_validate": {**two, "y": NUMBERS, **folds},
        "exact_list.fit": two,
        "exact_list.path": two,
        "exact_list.cross_validate": {"max_rules": 1, "literal_penalties": [1.0], **folds},
        "exact_list.near_optimal": {"max_rules": 1},
        "drnet.fit": {"max_rules": 4, **sets},
        "drnet.path": {"literal_penalties": [0.01], **sets},
        "drnet.cross_validate": {"literal_penalties": [0.01], **sets, **folds},
        "finetune": {"model": ENSEMBLE, "iterations": 20},
        "paths.fit": {"y": NUMBERS, "steps": 3, "restarts": 2},
        "paths.fit, local": {"steps": 3, "restarts": 2, "method": "local"},
        "paths.path": {"y": NUMBERS, "steps": 2, "restarts": 2},
        "paths.cross_validate": {"y": NUMBERS, "steps": 2, "restarts": 2, **folds},
        "paths.pareto": {"y": NUMBERS, "max_steps": 2, "tradeoffs": [1.0]},
        "paths.interpretability": {
            "y": NUMBERS,
            "model": {"x0": 1.0, "x2": 0.5},
            "max_steps": 3,
        },
    }
    others: dict[str, dict[str, Any]] = {
        "lire.objective": {**data, **penalties, "model": ENSEMBLE},
        "paths.greedy": {"X": X, "y": NUMBERS, "steps": 3},
        "paths.direct": {"X": X, "y": NUMBERS},
        "paths.lasso_sequence": {"X": X, "y": NUMBERS, "steps": 3},
        "paths.complexity_loss": path,
        "paths.weighted_loss": {**path, "step_weights": [1, 1, 1]},
        "paths.geometric_loss": {**path, "gamma": 1.0},
        "paths.dominates": {**path, "other": PATH},
        "as_table": {"X": X},
        "default_forest": {**data, "n_trees": 2},
        "extract_rules": {"forest": FOREST, "X": X},
        "tree_rules": {"forest": FOREST, "X": X},
        "datasets.available": {},
        "datasets.train_test_split": {"data": jr.datasets.load("iris")},
        "with_weights": {"model": ENSEMBLE, "weights": [1.0, 2.0]},
        **{
            name: {"model": ENSEMBLE}
            for name in (
                *("complexity", "support", "to_latex"),
                *("to_python", "to_sql", "to_dataframe", "to_pmml"),
            )
        },
        "save": {"model": ENSEMBLE, "path": f"{tempfile.gettempdir()}/jaxrules-fuzz.json"},
        "load": {},
        **dict.fromkeys(("importance", "rule_report", "feature_importance", "reasons"), shown),
        "scaled_scorecard": {"model": ENSEMBLE},
        "drift": {"model": ENSEMBLE, "before": X, "after": X},
        "oriented": {**shown, "side": "smaller"},
        "local_importance": {**shown, "row": X[:1]},
        "scorecard": {**shown, "y": LABELS},
        "scores_by_group": {**shown, "y": LABELS, "groups": "x0"},
        "operating_point": {**shown, "y": LABELS, "max_alarms": 0.5},
        "plots.risk_complexity": {"methods": {"a": [[1.0, 0.5], [2.0, 0.4]]}},
        "plots.search_progress": {"fit": PATH_FIT},
        "plots.support_path": {
            "path": jr.rulefit.path(X, LABELS, rules=RULES, n_penalties=2),
            "penalty": "l1_penalty",
        },
        **dict.fromkeys(("plots.rule_importance", "plots.feature_importance"), shown),
        "plots.waterfall": {"explanation": jr.explain(ENSEMBLE, X[:1])[0]},
        "plots.local_importance": {**shown, "row": X[:1]},
        "plots.coefficient_path": {"path": PATH},
        "plots.decision_regions": {**shown, "y": LABELS},
        **{
            f"plots.{name}": {**shown, "y": LABELS}
            for name in ("roc", "precision_recall", "calibration")
        },
        "plots.effect": {**shown, "column": "x0"},
        "plots.overlap": shown,
        "plots.path_costs": {"sequences": {"a": PATH}},
        "plots.price_of_interpretability": {
            "front": jr.paths.pareto(X, NUMBERS, max_steps=2, tradeoffs=[1.0])
        },
    }
    others |= {name: {**timed, **options} for name, options in of_learners.items()}
    found = [Entry(name, public(name), arguments) for name, arguments in others.items()]
    nested = {"methods": {"": _always}, "folds": 2, "inner_folds": 2}
    bootstrap = {"method": _always, "replicates": 2}
    on_sample = {"fit": jr.boosting.fit, "rows": 30, "max_rules": 1}
    found += [
        Entry("compare", jr.compare, {**timed, **nested}, ("n_jobs",)),
        Entry("stability", jr.stability, {**timed, **bootstrap}, ("n_jobs",)),
        Entry("boosting by fit_on_sample", jr.fit_on_sample, {**timed, **on_sample}),
        Entry("datasets.load", jr.datasets.load, {"name": "wine"}, ("data_home",)),
        Entry("Table.head", jr.as_table(X).head, {"n": 2}),
        Entry(
            "report",
            jr.report,
            {"result": ENSEMBLE, **data, "path": None},
            # test_report.py: None and any text are good
            skip=("result", "path", "groups", "title"),
        ),
        Entry(
            "with_threshold",
            jr.with_threshold,
            {"model": ENSEMBLE, "threshold": 0.5},
            of={
                "model": MODELS,
                "threshold": (*ENDS, *bad(np.inf, -np.inf, PATH_FIT, ENSEMBLE)),
            },
        ),
        Entry(
            "RuleBoostingClassifier",
            estimator(estimators.RuleBoostingClassifier),
            {**timed, **two},
            (),
            "sklearn",
        ),
        Entry(
            "RuleFitRegressor",
            estimator(estimators.RuleFitRegressor),
            {"X": X, "y": NUMBERS, "rules": RULES, "l1_penalty": 0.1, "time_limit": 0.5},
            (),
            "sklearn",
        ),
    ]
    found += [
        Entry(
            kind.__name__,
            estimator(kind),
            {"X": X, "y": LABELS if kind.__name__.endswith("Classifier") else NUMBERS, **options},
            tuple(set(inspect.signature(kind).parameters) - {"class_weight", "penalty"}),
            "sklearn",
        )
        for kind, options in {
            estimators.LIREClassifier: {"rules": RULES},
            estimators.LIRERegressor: {"rules": RULES},
            estimators.RuleFitClassifier: {"rules": RULES, "l1_penalty": 0.1},
            estimators.GLRMClassifier: {},
            estimators.GLRMRegressor: {},
            estimators.RuleBoostingRegressor: {"max_rules": 2},
            estimators.LLTBoostClassifier: {"max_rules": 2},
            estimators.LLTBoostRegressor: {"max_rules": 2},
            estimators.LTRNetClassifier: network,
            estimators.LTRNetRegressor: network,
            estimators.DRNetClassifier: {"max_rules": 4, "iterations": 50, "restarts": 1},
            estimators.SSRLClassifier: {"max_rules": 2},
            estimators.ExactRuleListClassifier: {"max_rules": 2},
            estimators.RegressionListRegressor: {"max_rules": 2},
            estimators.CoordinatePathRegressor: {"steps": 3, "restarts": 2},
        }.items()
    ]
    for kind, model in {"ensemble": ENSEMBLE, "list": LIST}.items():
        found += [
            Entry(f"without_rules, {kind}", jr.without_rules, {"model": model, "rules": [0]}),
            Entry(f"refit, {kind}", jr.refit, {**data, "model": model}),
            Entry(f"calibrate, {kind}", jr.calibrate, {**data, "model": model}),
            Entry(f"simplify, {kind}", jr.simplify, {"model": model, "X": X}),
        ]
    numbers = {"model": NUMBER_LIST, "X": X}
    for function in (jr.predict, jr.explain, jr.local_supports, jr.simplify):
        found.append(Entry(f"{function.__name__}, numbers", function, numbers))
    for function in (jr.risk, jr.refit):
        found.append(Entry(f"{function.__name__}, numbers", function, {**numbers, "y": NUMBERS}))
    for kind, model in {"ensemble": ENSEMBLE, "list": LIST, "path": PATH}.items():
        of_rows: list[Callable[..., Any]] = [jr.predict, jr.explain]
        of_targets: list[Callable[..., Any]] = []
        if kind != "path":
            of_rows += [jr.predict_proba, jr.local_support, jr.local_supports]
            of_targets.append(jr.accuracy)
        if kind != "list":
            of_rows.append(jr.decision_function)
            of_targets.append(jr.risk)
        given = {"model": model, "X": X}
        found += [Entry(f"{f.__name__}, {kind}", f, given) for f in of_rows]
        given = given | ({"y": NUMBERS, "loss": "squared"} if kind == "path" else {"y": LABELS})
        found += [Entry(f"{f.__name__}, {kind}", f, given) for f in of_targets]
    return found


def public(name: str) -> Callable[..., Any]:
    """The function of this name; of a plot, one that closes the figure again."""
    function = functools.reduce(getattr, name.partition(",")[0].split("."), jr)
    return drawn(function) if name.startswith("plots.") else function


def drawn(function: Callable[..., Any]) -> Callable[..., Any]:
    """A plot, whose figure is closed again."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> None:
        import matplotlib.pyplot as plt

        try:
            function(*args, **options)
        finally:
            plt.close("all")

    return call


def estimator(kind: Any) -> Callable[..., Any]:
    """Make an estimator with these options, fit it, and predict: the fit."""
    parameters = inspect.signature(kind).parameters.values()
    of_fit = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in ("X", "y", "sample_weight")
    ]

    def call(*, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        model = kind(**options).fit(X, y, sample_weight=sample_weight)
        model.predict(X)
        return model.fit_

    call.__signature__ = inspect.Signature([*of_fit, *parameters])
    return call


@dataclass(frozen=True, eq=False)
class Case:
    """One call: an argument with a value."""

    entry: Entry
    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.entry.name}({self.name}={_shown(self.value)})"


def cases(entry: Entry) -> list[Case]:
    """All values of all arguments."""
    if entry.of is not None:
        return [Case(entry, name, value) for name, values in entry.of.items() for value in values]
    of_name = dict(BY_NAME)
    if entry.name.startswith("paths"):
        of_name["path"] = MODELS
    for name, argument, values in (
        ("paths.interpretability", "model", VALUES),
        ("plots.support_path", "path", FITS),
        ("without_rules", "rules", PLACES),
    ):
        if entry.name.startswith(name):
            of_name[argument] = values
    return [Case(entry, name, value) for name in entry.tried for value in of_name.get(name, VALUES)]


# What comes of it


@dataclass(frozen=True)
class Result:
    outcome: Outcome
    told: str = ""

    @property
    def is_defect(self) -> bool:
        return self.outcome in ("raw error", "silent nonsense")


def run(case: Case) -> Result:
    """Call the function and classify what it returns or raises."""
    value, must_fail = (
        (case.value.value, True) if isinstance(case.value, Bad) else (case.value, False)
    )
    arguments = dict(case.entry.arguments)
    if case.name == "X":
        arguments.pop("rules", None)  # they are of the right columns
    if hasattr(value, "__next__"):
        value = iter([])
    try:
        with warnings.catch_warnings(), _time_limit():
            warnings.simplefilter("error")
            warnings.filterwarnings("default", category=UserWarning)
            if elsewhere := case.entry.checks_elsewhere:
                warnings.filterwarnings("default", category=RuntimeWarning, module=elsewhere)
            if isinstance(value, Traced):
                found = jax.jit(
                    lambda traced: _arrays(_call(case, {**arguments, case.name: traced}))
                )(value.value)
            else:
                found = _call(case, {**arguments, case.name: value})
            if wrong := _wrong(found, X):
                return Result("silent nonsense", wrong)
    except Exception as error:
        return _judged(error, case)
    return (
        Result("silent nonsense", "was taken")
        if must_fail and not _meant(case)
        else Result("model")
    )


def warm_up(entry: Entry) -> None:
    """A call that works: kernels are compiled before calls are timed."""
    if entry.arguments:
        bound = inspect.signature(entry.call).bind(**entry.arguments)
        entry.call(*bound.args, **bound.kwargs)


def _call(case: Case, arguments: Mapping[str, Any]) -> Any:
    bound = inspect.signature(case.entry.call).bind(**arguments)
    return case.entry.call(*bound.args, **bound.kwargs)


def _meant(case: Case) -> bool:
    """Whether a value of `VALUES` that is bad for most arguments is right for this one."""
    value = case.value.value
    text, function = isinstance(value, str), callable(value)
    return (
        (case.name == "progress" and function)
        or (
            case.name in ("X", "forest", "data")
            and value is None
            and case.entry.name in ("extract_rules", "tree_rules")
        )
        or (case.name in ("data_home", "sample_weight") and value is None)
        or (case.name == "groups" and value is None and case.entry.name != "scores_by_group")
        or (case.name == "path" and text)
        or (
            case.name in ("X", "y")
            and value is None
            and case.entry.name.startswith(("plots.", "operating_point"))
        )
        or (case.name == "table" and text)
        or (case.entry.name == "default_forest" and case.name == "sample_weight")
        or (
            case.entry.name in ("default_forest", "extract_rules", "tree_rules")
            and any(value is one for one in MISSING)
        )
        or (
            case.name == "sample_weight"
            and (not _has_classes(case) or "model" in case.entry.arguments)
        )
        or (case.name == "y" and not _has_classes(case))
        or (
            case.name == "y"
            and case.entry.name.startswith(("boosting", "paths"))
            and _is_constant_number(value)
        )
        or (case.entry.checks_elsewhere is not None and _is_read_by_scikit_learn(value))
    )


def _is_read_by_scikit_learn(value: Any) -> bool:
    """Numbers in an array of objects, and labels in one column, with a warning."""
    return isinstance(value, np.ndarray) and (value.dtype == object or value.shape == (N_ROWS, 1))


def _is_constant_number(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind == "f"
        and value.ndim == 1
        and not np.ptp(value)
    )


def _has_classes(case: Case) -> bool:
    return case.entry.arguments.get("y") is LABELS


def _judged(error: Exception, case: Case) -> Result:
    frames = traceback.extract_tb(error.__traceback__)
    ours = frames[-1].filename.startswith(_HOME)
    elsewhere = (
        case.entry.checks_elsewhere is not None
        and case.entry.checks_elsewhere in frames[-1].filename
    )
    kinds: tuple[type[Exception], ...] = (ValueError, TypeError)
    if case.name in ("path", "data_home", "name"):
        kinds = (*kinds, OSError)
    # X without the columns that a model names, a model of other classes or columns, or weights
    # that leave one class of it
    others = {"X": {"model"}, "model": {"y", "weights", "groups"}, "sample_weight": {"y"}}
    names = {case.name} | others.get(case.name, set())
    named = any(re.search(rf"(?<![A-Za-z]){name}(?![A-Za-z])", str(error)) for name in names)
    named = named or isinstance(error, OSError)
    told = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
    if isinstance(error, kinds) and (
        (elsewhere and not ours) or (named and (ours or isinstance(error, OSError)))
    ):
        return Result("clear error", told)
    why = "" if ours else f" [{Path(frames[-1].filename).name}:{frames[-1].lineno}]"
    return Result("raw error", told + why)


def _arrays(found: Any) -> Any:
    return found if all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(found)) else 0


def _wrong(found: Any, rows: Any) -> str:
    """What is not finite in a result, or not valid."""
    if isinstance(found, jr.Fit):
        if not np.isfinite(found.objective):
            return f"objective {found.objective}"
        if found.bound is not None and np.isnan(found.bound):
            return "bound NaN"
        return _wrong(found.model, rows)
    if (
        isinstance(found, (list, tuple))
        and found
        and all(isinstance(one, (jr.Fit, jr.RuleEnsemble)) for one in found)
    ):
        return next(filter(None, (_wrong(one, rows) for one in found)), "")
    if callable(getattr(found, "validate", None)) and is_dataclass(found):
        try:
            found.validate()
        except Exception as error:
            return f"not valid: {error}"
        if hasattr(found, "intercept") or hasattr(found, "intercepts"):
            leaves = [leaf for leaf in jax.tree.leaves(found) if np.asarray(leaf).dtype.kind == "f"]
            if any(np.isnan(leaf).any() for leaf in leaves):
                return "NaN in the model"
        return ""
    if isinstance(found, (float, np.ndarray, jax.Array)) and np.asarray(found).dtype.kind == "f":
        return "" if np.isfinite(found).all() else f"{type(found).__name__} not finite"
    return ""


class _time_limit:
    """A call that does not return counts as a raw error. The limit is in CPU seconds, so that a
    busy machine does not matter.
    """

    def __enter__(self) -> None:
        def over(number: int, frame: FrameType | None) -> None:
            raise RuntimeError(f"no answer within {SECONDS_PER_CALL} CPU seconds")

        if not hasattr(signal, "SIGPROF"):  # Windows: nothing watches there
            return
        self._before = signal.signal(signal.SIGPROF, over)
        signal.setitimer(
            signal.ITIMER_PROF, SECONDS_PER_CALL, 1.0
        )  # again: callbacks swallow what is raised in them

    def __exit__(self, *error: Any) -> None:
        if not hasattr(signal, "SIGPROF"):
            return
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)


def _shown(value: Any) -> str:
    if isinstance(value, (Bad, Traced)):
        return f"{type(value).__name__}({_shown(value.value)})"
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"array{value.shape} {value.dtype} from {value.ravel()[:3]}"
    text = re.sub(r"\s+", " ", repr(value))
    return text if len(text) < 70 else text[:67] + "..."


def main(wanted: list[str]) -> None:
    """Print how many calls end in which way, and the defects. A number n among the names tries only
    every n-th call.
    """
    step = next((int(name) for name in wanted if name.isdigit()), 1)
    wanted = [name for name in wanted if not name.isdigit()]
    total: Counter[Outcome] = Counter()
    for entry in entries():
        if wanted and not any(name in entry.name for name in wanted):
            continue
        counts: Counter[Outcome] = Counter()
        warm_up(entry)
        start = time.process_time()
        for case in cases(entry)[::step]:
            result = run(case)
            counts[result.outcome] += 1
            if result.is_defect:
                print(f"    {result.outcome}: {case}: {result.told}", flush=True)
        print(f"{entry.name}: {dict(counts)}, {time.process_time() - start:.0f} CPU s", flush=True)
        total += counts
    print(dict(total), sum(total.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
