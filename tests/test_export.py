"""Exported models predict what jaxrules predicts: Python, sqlite, DuckDB and PostgreSQL on rows
with edge values, PMML as read from its specification.
"""

import atexit
import functools
import json
import math
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.data.table import BOOLEAN, MISSING, EncodedColumn
from jaxrules.estimators import RuleBoostingClassifier
from jaxrules.paths.model import ModelSequence
from jaxrules.users.export.program import Program, program_of
from jaxrules.users.export.sql import DialectName
from pmml import Document

pytestmark = pytest.mark.filterwarnings(
    "ignore:column .* of X has none of the categories"
)  # rows of every kind

C = jr.Condition
Row = dict[str, Any]

# Names are code to whoever does not quote them.
NAMES = (
    'a"; DROP TABLE rows; --',
    "it's",
    'naïve ☃ """',
    "\\'] + __import__('os') #\n{0}",
    "plain",
)
CATEGORIES = ("cook", "o'clock", '"', "\\", "-- x", "☃\n", "None")
UNSEEN = "not seen'"
EDGES = (
    0.0,
    -0.0,
    0.1,
    0.1 + 0.2,
    1 / 3,
    30.0,
    math.nextafter(30.0, 99),
    math.nextafter(30.0, 0),
    -2.5,
    2.0**53,
    5e-324,
    1e-300,
    -1e-300,
    1e300,
    -1e300,
)
SPECIAL = (-2.5, 0.0, 0.1, 30.0, 1e300)
NUMBERS = st.sampled_from(EDGES) | st.floats(-1e6, 1e6)
WEIGHTS = st.sampled_from([0.0, 1.0, -1.0, 0.1]) | st.floats(-8, 8).filter(
    lambda w: w == 0 or abs(w) > 1e-6
)
CLASSES = {
    1: [("no", "it's"), (False, True), (0, 7), (-1.5, 2.5)],
    3: [("c", "a'", "☃"), (1, 2, 3)],
}


# Any model


@st.composite
def schemas(draw: st.DrawFn, classes: Any) -> jr.Schema:
    """Numbers, with special values or without, categories, booleans and ordered categories in any
    order, named badly.
    """
    kinds = draw(st.lists(st.integers(0, 6), min_size=1, max_size=len(NAMES)))
    width = st.integers(1, len(CATEGORIES))
    features = []
    for name, kind in zip(NAMES, kinds, strict=False):
        chosen = CATEGORIES[: draw(width)]
        special = tuple(sorted(draw(st.sets(st.sampled_from(SPECIAL), min_size=1))))
        of_kind: dict[int, dict[str, Any]] = {
            0: {"categories": chosen},
            1: {"categories": chosen},
            2: {"levels": chosen},
            3: {"levels": BOOLEAN},
            4: {"special_values": special},
        }
        features.append(jr.Feature(name, **of_kind.get(kind, {})))
    features += [f.companion() for f in features if f.special_values is not None]
    return jr.Schema(tuple(features), draw(st.sampled_from(["own_category", "refuse"])), classes)


@st.composite
def conditions(draw: st.DrawFn, schema: jr.Schema) -> jr.Condition:
    index = draw(st.integers(0, len(schema.features) - 1))
    categories, missing = schema.features[index].categories, draw(st.booleans())
    if categories is not None and draw(st.booleans()):
        chosen = frozenset(draw(st.sets(st.integers(0, len(categories) - 1))))
        return C(index, missing=missing, categories=chosen, unseen=draw(st.booleans()))
    feature: int | jr.Direction = index
    if categories is not None or draw(st.booleans()):
        places = [
            (f, code)
            for f, one in enumerate(schema.features)
            for code in range(-1, len(one.categories) if one.categories else 0)
        ]
        terms = sorted(draw(st.sets(st.sampled_from(places), min_size=1, max_size=3)))
        weights = [draw(WEIGHTS.filter(bool)) for _ in terms]
        features, codes = zip(*terms, strict=True)
        origins = [
            draw(st.sampled_from([0.0, 1.5, -3.0])) if schema.features[f].is_numeric else 0.0
            for f in features
        ]
        feature = jr.Direction(features, tuple(weights), codes, tuple(origins))
    levels = isinstance(feature, int) and schema.features[feature].levels is not None
    ends_of = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 3.5, 9.0]) if levels else NUMBERS
    lower, upper = sorted(draw(st.tuples(ends_of, ends_of)))
    ends = draw(
        st.sampled_from(
            [(lower, math.inf), (-math.inf, upper), (lower, upper), (math.inf, -math.inf)]
        )
    )
    return C(feature, *ends, draw(st.booleans()), draw(st.booleans()), missing)


@st.composite
def conjunctions(draw: st.DrawFn, classes: Any) -> jr.Conjunctions:
    schema = draw(schemas(classes))
    rules = []
    for _ in range(draw(st.integers(0, 4))):
        asked = [draw(conditions(schema)) for _ in range(draw(st.integers(0, 3)))]
        rules.append(list({condition.feature: condition for condition in asked}.values()))
    return jr.Conjunctions.build(schema, rules)


def matrix(draw: st.DrawFn, rows: int, columns: int) -> np.ndarray:
    return np.array([[draw(WEIGHTS) for _ in range(columns)] for _ in range(rows)], float).reshape(
        rows, columns
    )


@st.composite
def ensembles(draw: st.DrawFn) -> jr.RuleEnsemble:
    outputs = draw(st.sampled_from([1, 1, 3]))
    link = draw(
        st.sampled_from(
            ["logistic", "exponential", *(["softmax"] if outputs > 1 else ["identity", "log"])]
        )
    )
    rules = draw(
        conjunctions(
            draw(st.sampled_from(CLASSES[outputs])) if link not in ("identity", "log") else None
        )
    )
    numbers = [f for f, feature in enumerate(rules.schema.features) if feature.is_numeric]
    linear = None
    if numbers and draw(st.booleans()):
        features = np.array(draw(st.lists(st.sampled_from(numbers), max_size=2)), np.int32)
        small = [sorted(draw(st.tuples(*[st.floats(-40, 40)] * 2))) for _ in features]
        ends = [
            (low, high) if link == "log" or draw(st.booleans()) else (-math.inf, high)
            for low, high in small
        ]
        lower, upper = np.array(ends, float).reshape(-1, 2).T
        linear = jr.LinearTerms(features, matrix(draw, len(features), outputs), lower, upper)
    weights, intercept = matrix(draw, len(rules), outputs), matrix(draw, 1, outputs)[0]
    threshold = 0.0
    if outputs == 1 and rules.schema.classes is not None:  # often a score that rows have
        scores = [intercept[0], *(intercept[0] + weights[:, 0])]
        threshold = float(draw(st.just(0.0) | st.sampled_from(scores) | WEIGHTS))
    return jr.RuleEnsemble(rules, weights, intercept, linear, link, threshold=threshold)


@st.composite
def rule_lists(draw: st.DrawFn) -> jr.RuleList:
    classes = draw(st.sampled_from([*CLASSES[1], *CLASSES[3]]))
    rules = draw(conjunctions(classes))
    labels = [draw(st.integers(0, len(classes) - 1)) for _ in range(len(rules) + 1)]
    shares = np.exp(matrix(draw, len(labels), len(classes)))
    shares /= shares.sum(axis=1, keepdims=True)
    model = jr.RuleList(rules, np.array(labels, np.int32), shares)
    if len(classes) > 2 or draw(st.booleans()):
        return model
    return jr.with_threshold(model, float(draw(st.sampled_from(shares[:, 1].tolist()))))


@st.composite
def sequences(draw: st.DrawFn) -> ModelSequence:
    several = draw(st.booleans())
    schema = draw(schemas(draw(st.sampled_from(CLASSES[3] if several else [None, *CLASSES[1]]))))
    columns = []
    for f, feature in enumerate(schema.features):
        columns += [EncodedColumn(f, code) for code in range(len(feature.categories or ()))]
        columns += [EncodedColumn(f, None)] * feature.is_numeric
        seen = schema.missing == "own_category" or (feature.special_values and draw(st.booleans()))
        columns += [EncodedColumn(f, MISSING)] * bool(seen)
    n = len(columns)
    scale = np.array([draw(st.sampled_from([1.0, 0.3, 7.0])) for _ in columns])
    models, intercepts = matrix(draw, 2, n), matrix(draw, 1, 2)[0]
    if several:
        models, intercepts = matrix(draw, 2 * n, 3).reshape(2, n, 3), matrix(draw, 2, 3)
    return ModelSequence(
        models, intercepts, np.ones(2), scale, np.array(1.5), schema, tuple(columns),
        link="softmax" if several else "identity",
    )  # fmt: skip


@st.composite
def cases(draw: st.DrawFn, models: st.SearchStrategy[Any]) -> tuple[Any, list[Row]]:
    """A model, and rows of the thresholds in its rules and next to them, edge
    values and anything else.
    """
    model = draw(models)
    schema, rules = model.schema, getattr(model, "conjunctions", None)
    ends = (
        []
        if rules is None
        else [float(end) for end in (*rules.lower, *rules.upper) if math.isfinite(end)]
    )
    near = [math.nextafter(end, side) for end in ends for side in (-math.inf, math.inf)]
    numbers = st.sampled_from([*EDGES, *SPECIAL, *ends, *near]) | NUMBERS
    values = {}
    for feature in schema.sources:
        of_kind = numbers if feature.kind == "number" else st.sampled_from(possible(feature))
        absent = [] if schema.missing == "refuse" else missing_values(feature)
        values[feature.name] = st.one_of(of_kind, *map(st.just, absent))
    rows = draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=5))
    if schema.missing == "own_category":
        rows += [
            {**rows[0], f.name: absent} for f in schema.sources for absent in missing_values(f)
        ]
    return model, rows


def possible(feature: jr.Feature) -> tuple[Any, ...]:
    """The levels, or the categories and one that fit did not see."""
    return feature.levels or (*(feature.categories or ()), UNSEEN)


def missing_values(feature: jr.Feature) -> list[Any]:
    return [None, math.nan] if feature.kind == "number" else [None]


ANY_CASE = cases(ensembles()) | cases(rule_lists()) | cases(sequences())


def frame(schema: jr.Schema, rows: list[Row]) -> pd.DataFrame:
    """Rows as jaxrules reads them."""
    return pd.DataFrame(
        {
            feature.name: pd.Series(
                [row[feature.name] for row in rows],
                dtype=float if feature.kind == "number" else object,
            )
            for feature in schema.sources
        }
    )


def spoiled(model: Any, rows: list[Row], data: st.DataObject) -> list[Row]:
    """The rows with a value that the model refuses, in a column that it uses."""
    refused: list[tuple[str, Any]] = []
    for f, refuses in program_of(model).asks.items():
        feature = model.schema.features[f]
        wrong = missing_values(feature) if refuses else []
        wrong += [math.inf, -math.inf] if feature.kind == "number" else []
        wrong += [UNSEEN] if feature.kind == "ordered" else []
        refused += [(feature.name, value) for value in wrong]
    if not refused:
        reject()
    return [{**row, **dict([data.draw(st.sampled_from(refused))])} for row in rows]


# Python


def module(model: Any) -> dict[str, Any]:
    """What the exported module holds, imported."""
    namespace: dict[str, Any] = {}
    exec(compile(jr.to_python(model), "exported", "exec"), namespace)
    return namespace


@settings(max_examples=100)
@given(ANY_CASE)
def test_python_says_the_same(case: tuple[Any, list[Row]]) -> None:
    model, rows = case
    X, code = frame(model.schema, rows), module(model)
    several = getattr(model, "n_outputs", 1) > 1 or getattr(model, "by_class", False)
    classes = model.schema.classes
    found = [code["predict"](row) for row in rows]
    expected = jr.predict(model, X).tolist()
    if classes is None:
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    else:
        assert found == expected
        assert [type(label) for label in found] == [type(label) for label in expected]
        shares = [list(code["probabilities"](row).items()) for row in rows]
        assert [[label for label, _ in row] for row in shares] == [list(classes)] * len(rows)
        np.testing.assert_allclose(
            [[p for _, p in row] for row in shares], jr.predict_proba(model, X), atol=1e-12
        )
    if isinstance(model, jr.RuleList):
        assert "score" not in code
    else:
        scores = [code["score"](row) for row in rows]
        assert [list(s.values()) if several else s for s in scores] == jr.decision_function(
            model, X
        ).tolist()


@settings(max_examples=50)
@given(cases(ensembles()) | cases(rule_lists()))
def test_python_explains_as_jaxrules_does(case: tuple[Any, list[Row]]) -> None:
    model, rows = case
    code = module(model)
    for row, expected in zip(rows, jr.explain(model, frame(model.schema, rows)), strict=True):
        told = code["explain"](row)
        assert told["prediction"] == code["predict"](row)
        assert told["threshold"] == (expected.threshold and str(expected.threshold))
        if isinstance(model, jr.RuleList):
            assert told["parts"] == [part.text for part in expected.parts]
            continue
        assert [text for text, _ in told["parts"]] == [
            part.text.split(" at ")[0] for part in expected.parts
        ]
        weights = [list(w.values()) if isinstance(w, dict) else [w] for _, w in told["parts"]]
        assert weights == [part.weight.tolist() for part in expected.parts]
        total = told["score"]
        np.testing.assert_allclose(
            np.sum(weights, axis=0),
            list(total.values()) if isinstance(total, dict) else [total],
            atol=1e-9,
            rtol=1e-12,
        )


def test_python_checks_its_rows(ensemble: jr.RuleEnsemble) -> None:
    predict = module(ensemble)["predict"]
    row = {"age": 40, "job": "cook", "income": np.float32(2.0), "name": "not a column"}
    assert predict(row) == jr.predict(ensemble, pd.DataFrame([row]).drop(columns="name"))[0]
    assert predict({**row, "income": pd.NA, "job": float("nan")}) == predict(
        {**row, "income": None, "job": None}
    )
    assert predict({**row, "age": np.True_}) == predict({**row, "age": 1})
    for wrong, error, message in [
        ({"age": 40.0, "job": "cook"}, ValueError, "row lacks the column 'income'"),
        ({**row, "age": "40"}, TypeError, "'age' must be a number, got '40'"),
        ({**row, "job": 3}, TypeError, "'job' must be text, got 3"),
        ({**row, "age": math.inf}, ValueError, "'age' is infinite"),
        ({**row, "age": 2**53 + 1}, ValueError, r"'age' is an integer beyond 2\*\*53"),
        ({**row, "age": np.int64(-(2**60))}, ValueError, r"'age' is an integer beyond"),
    ]:
        with pytest.raises(error, match=message):
            predict(wrong)


def test_python_asks_for_the_columns_of_the_rules_alone() -> None:
    schema = jr.Schema((jr.Feature("used"), jr.Feature("unused")))
    rules = jr.Conjunctions.build(schema, [[C.above(0, 1.0)], [C.above(1, 1.0)]])
    model = jr.RuleEnsemble(rules, np.array([[2.0], [0.0]]), np.array([1.0]))
    predict = module(model)["predict"]
    assert predict({"used": 2.0}) == 3.0
    with pytest.raises(
        ValueError, match="no value in 'used'; the model was fitted without missing values"
    ):
        predict({"used": None})


def test_python_takes_categories_that_are_numbers_as_numbers() -> None:
    schema = jr.Schema((jr.Feature("zip", ("1", "2.5", "30")), jr.Feature("job", ("1", "cook"))))
    rules = jr.Conjunctions.build(
        schema, [[C.one_of(0, [0, 2])], [C.one_of(0, [1])], [C.one_of(1, [0])]]
    )
    model = jr.RuleEnsemble(rules, np.array([[1.0], [10.0], [100.0]]), np.zeros(1))
    predict = module(model)["predict"]
    for zip_code in (1, 1.0, np.float32(30), np.int8(1), np.True_, 2.5, "2.5", "30"):
        X = pd.DataFrame({"zip": [zip_code], "job": ["cook"]})
        assert predict({"zip": zip_code, "job": "cook"}) == jr.predict(model, X)[0] > 0
    with pytest.raises(TypeError, match="'job' must be text, got 1"):
        predict({"zip": 1, "job": 1})


def test_python_counts_without_overflow() -> None:
    rules = jr.Conjunctions.build(jr.Schema((jr.Feature("x"),)), [])
    model = jr.RuleEnsemble(rules, np.zeros((0, 1)), np.array([1000.0]), link="log")
    assert module(model)["predict"]({}) == math.inf


# SQL


@functools.cache
def sqlite_database() -> Any:
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database.execute("SELECT EXP(0)")
    except sqlite3.OperationalError:  # built without it
        database.create_function("EXP", 1, math.exp)
    return database


@functools.cache
def duckdb_database() -> Any:
    return duckdb.connect(":memory:", config={"threads": 1})


Types = dict[str, str] | None
"""The type of the columns of a kind, where it is not the usual one."""


def in_sqlite(
    schema: jr.Schema, rows: list[Row], expressions: list[str], types: Types = None
) -> list[tuple[Any, ...]]:
    return ask(sqlite_database(), schema, rows, expressions, types)


def in_duckdb(
    schema: jr.Schema, rows: list[Row], expressions: list[str], types: Types = None
) -> list[tuple[Any, ...]]:
    return ask(duckdb_database(), schema, rows, expressions, types)


@functools.cache
def postgres_server() -> Callable[[str], str]:
    """A server on a socket in a temporary folder, and a function that asks it; skips the test if
    none is installed.
    """
    places = [os.environ.get("PATH", ""), *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
    found = shutil.which("initdb", path=os.pathsep.join(places))
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    folder, binaries = Path(tempfile.mkdtemp()), Path(found).resolve().parent
    user: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL}
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # the server refuses to run as root
        try:
            shutil.chown(folder, "postgres", "postgres")
        except LookupError:
            pytest.skip("PostgreSQL refuses to run as root, and there is no user postgres")
        user |= {"user": "postgres", "group": "postgres"}
    control = [binaries / "pg_ctl", "-D", folder / "data", "-w"]
    init = [binaries / "initdb", "-D", folder / "data", "-A", "trust", "-U", "test", "-N"]
    subprocess.run([*init, "-E", "UTF8", "--locale=C"], check=True, **user)
    options = ["-o", f"-c listen_addresses= -k {folder} -F", "-l", folder / "log", "start"]
    subprocess.run([*control, *options], check=True, **user)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(subprocess.run, [*control, "-m", "immediate", "stop"], **user)
    client = [binaries / "psql", "-h", folder, "-U", "test", "-d", "postgres", "-XqAt"]

    def run(statements: str) -> str:
        done = subprocess.run(
            [*client, "-v", "ON_ERROR_STOP=1"],
            input=statements.encode(),
            capture_output=True,
            env={**os.environ, "PGCLIENTENCODING": "UTF8"},
        )
        if b"value out of range" in done.stderr:  # where others round to 0 or to infinity
            reject()
        assert not done.returncode, done.stderr.decode()
        return done.stdout.decode()

    return run


def in_postgres(
    schema: jr.Schema, rows: list[Row], expressions: list[str], types: Types = None
) -> list[tuple[Any, ...]]:
    def literal(value: Any) -> str:
        if value is None or isinstance(value, bool):
            return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
        return "'" + str(value).replace("'", "''") + "'"

    statements = list(created(schema, types))
    for place, row in enumerate(rows):
        values = [str(place), *(literal(row[feature.name]) for feature in schema.sources)]
        statements.append(f"INSERT INTO rows VALUES ({', '.join(values)})")
    listed = ", ".join(f"{expression} AS e{i}" for i, expression in enumerate(expressions))
    asked = f"SELECT place, {listed} FROM rows"
    statements.append(f"SELECT json_agg(row_to_json(asked) ORDER BY place) FROM ({asked}) asked")
    answer = json.loads(postgres_server()("; ".join(statements)))
    return [tuple(row[f"e{i}"] for i in range(len(expressions))) for row in answer]


def created(schema: jr.Schema, types: Types) -> tuple[str, str]:
    """The statements that make the table."""
    quoted = ['"' + feature.name.replace('"', '""') + '"' for feature in schema.sources]
    types = {"number": "DOUBLE PRECISION", "True / False": "BOOLEAN", **(types or {})}
    kinds = [types.get(feature.kind, "TEXT") for feature in schema.sources]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(quoted, kinds, strict=True))
    return "DROP TABLE IF EXISTS rows", f"CREATE TABLE rows (place INTEGER, {columns})"


def ask(
    database: Any,
    schema: jr.Schema,
    rows: list[Row],
    expressions: list[str],
    types: Types,
) -> list[tuple[Any, ...]]:
    for statement in created(schema, types):
        database.execute(statement)
    for place, row in enumerate(rows):
        values = [place, *(row[feature.name] for feature in schema.sources)]
        database.execute(f"INSERT INTO rows VALUES ({', '.join('?' * len(values))})", values)
    listed = ", ".join(f"{expression} AS e{i}" for i, expression in enumerate(expressions))
    found = database.execute(f"SELECT {listed} FROM rows ORDER BY place").fetchall()
    assert database.execute("SELECT COUNT(*) FROM rows").fetchone() == (len(rows),)
    return list(found)


DATABASES = pytest.mark.parametrize("database", [in_sqlite, in_duckdb, in_postgres])
OWN: dict[Any, Any] = {in_sqlite: "sqlite", in_duckdb: "duckdb", in_postgres: "postgres"}
"""The dialect of each."""
Database = Callable[..., list[tuple[Any, ...]]]


def expressions_of(model: Any, **options: Any) -> list[str]:
    """The label or value, the scores and the probabilities."""
    classes = model.schema.classes
    written = [jr.to_sql(model, **options)]
    if not isinstance(model, jr.RuleList):
        scored = (None,) if classes is None else classes if len(classes) > 2 else classes[1:]
        written += [jr.to_sql(model, "score", label=label, **options) for label in scored]
    return written + [
        jr.to_sql(model, "probability", label=label, **options) for label in classes or ()
    ]


@DATABASES
@settings(max_examples=60)
@given(case=ANY_CASE)
def test_sql_says_the_same(database: Database, case: tuple[Any, list[Row]]) -> None:
    model, rows = case
    X, classes = frame(model.schema, rows), model.schema.classes
    expected = [jr.predict(model, X)]
    if not isinstance(model, jr.RuleList):
        expected += list(np.asarray(jr.decision_function(model, X)).reshape(len(rows), -1).T)
    n_exact = len(expected)
    # in probabilities, scores (twice those of the exponential link) count as 700 if beyond
    moderate = np.all([np.ones(len(rows)), *(np.abs(s) < 300 for s in expected[1:])], axis=0)
    if classes is not None:
        expected += list(jr.predict_proba(model, X).T)
    expressions = expressions_of(model) + expressions_of(model, table="rows", dialect=OWN[database])
    found = list(zip(*database(model.schema, rows, expressions), strict=True))
    for columns in (found[: len(expected)], found[len(expected) :]):
        for i, (column, truth) in enumerate(zip(columns, expected, strict=True)):
            if i == 0 and classes is not None:
                assert list(column) == truth.tolist()
            elif i < n_exact:
                np.testing.assert_allclose(column, truth, rtol=1e-12, atol=1e-12)
            else:
                likely = np.array(column)[moderate]
                np.testing.assert_allclose(likely, truth[moderate], rtol=0, atol=1e-12)


@pytest.mark.full
@DATABASES
@settings(max_examples=40)
@given(case=ANY_CASE, data=st.data())
def test_sql_is_null_where_predict_refuses(
    database: Database, case: tuple[Any, list[Row]], data: st.DataObject
) -> None:
    model, rows = case
    wrong = spoiled(model, rows, data)
    for row in wrong:
        with pytest.raises(ValueError, match=r"missing|infinite|no place in the order"):
            jr.predict(model, frame(model.schema, [row]))
    expressions = expressions_of(model) + expressions_of(model, dialect=OWN[database])
    found = database(model.schema, [*rows, *wrong], expressions)
    assert found[len(rows) :] == [(None,) * len(expressions)] * len(rows)
    assert all(value is not None for row in found[: len(rows)] for value in row)


@DATABASES
def test_sql_numbers_are_read_back_exactly(database: Database, rng: np.random.Generator) -> None:
    numbers = [
        0.1411200080598672,
        *EDGES,
        *rng.normal(size=60).tolist(),
        *np.exp(rng.normal(size=60) * 50).tolist(),
    ]
    assert "1.411200080598672135E-01" in jr.to_sql(
        constant(None, numbers[:1], "identity")
    )  # "0.1411200080598672" is
    model = constant(
        None, [1.0], "identity"
    )  # nearly as far from the next number: parsers that round err there
    expressions = [jr.to_sql(jr.with_weights(model, model.weights, [number])) for number in numbers]
    assert list(database(model.schema, [{"x": 1.0}], expressions)[0]) == numbers


@pytest.mark.full
@DATABASES
def test_sql_of_many_rules(database: Database) -> None:
    """Databases nest expressions 1000 deep."""
    schema = jr.Schema((jr.Feature("x"),), classes=("no", "yes"))
    rules = jr.Conjunctions.build(schema, [[C.above(0, float(i))] for i in range(1100)])
    weights = np.random.default_rng(0).normal(size=(1100, 1))
    model = jr.RuleEnsemble(rules, weights, np.zeros(1), link="logistic")
    rows = [{"x": value} for value in (0.5, 600.0, 1099.5)]
    found = database(schema, rows, [jr.to_sql(model), jr.to_sql(model, "score")])
    X = frame(schema, rows)
    assert [label for label, _ in found] == jr.predict(model, X).tolist()
    np.testing.assert_allclose(
        [score for _, score in found], jr.decision_function(model, X), atol=1e-12
    )


@DATABASES
def test_sql_is_null_where_a_missing_value_is_refused(database: Database) -> None:
    schema = jr.Schema(
        (jr.Feature("x"), jr.Feature("job", ("a", "b")), jr.Feature("unused")),
        classes=("no", "yes"),
    )
    rules = jr.Conjunctions.build(schema, [[C.above(0, 1.0)], [C.none_of(1, [0], 2)]])
    model = jr.RuleEnsemble(rules, np.array([[2.0], [-1.0]]), np.array([0.5]), link="logistic")
    listed = jr.RuleList(rules, np.array([1, 0, 1], np.int32), np.full((3, 2), 0.5))
    rows: list[Row] = [{"x": 2.0, "job": "a"}, {"x": None, "job": "a"}, {"x": 2.0, "job": None}]
    rows = [{**row, "unused": None} for row in rows]
    found = database(schema, rows, [jr.to_sql(model), jr.to_sql(model, "score"), jr.to_sql(listed)])
    assert found == [("yes", 2.5, "yes"), (None, None, None), (None, None, None)]


@DATABASES
def test_sql_takes_a_stored_nan_for_missing(database: Database) -> None:
    """In thresholds with and without missing values, special values, directions and terms."""
    features = (jr.Feature("x"), jr.Feature("m", special_values=(-7.0,)))
    schema = jr.Schema((*features, features[1].companion()), "own_category", ("no", "yes"))
    asked = [C.above(0, 1.0), C(0, 1.0, missing=True), C.at_most(0, 1.0), C(1, -9.0)]
    asked += [C(2, missing=True, categories=frozenset()), C.one_of(2, [1]), C(0, missing=False)]
    asked += [C.above(jr.Direction((0, 1), (1.0, 1.0)), 1.0)]
    rules = jr.Conjunctions.build(schema, [[condition] for condition in asked])
    linear = jr.LinearTerms(
        np.array([0, 1], np.int32), np.array([[0.5], [0.25]]), np.zeros(2), np.full(2, 1.5)
    )
    weights = 2.0 ** np.arange(len(asked))[:, None]
    model = jr.RuleEnsemble(rules, weights, np.array([-50.0]), linear, "logistic")
    values = [None, math.nan, 0.0, 2.0, -7.0]
    rows = [{"x": x, "m": m} for x in values for m in values]
    expressions = expressions_of(model) + expressions_of(model, dialect=OWN[database])
    found = list(zip(*database(schema, rows, expressions), strict=True))
    X = frame(schema, rows)
    for label, score in (found[:2], found[4:6]):
        assert list(label) == jr.predict(model, X).tolist()
        assert list(score) == jr.decision_function(model, X).tolist()


TYPES = {
    in_sqlite: ["INTEGER", "REAL", "NUMERIC", "DECIMAL(9, 2)", ""],
    in_duckdb: ["TINYINT", "BIGINT", "UINTEGER", "HUGEINT", "FLOAT", "DECIMAL(9, 2)"],
    in_postgres: ["SMALLINT", "BIGINT", "REAL", "NUMERIC", "NUMERIC(9, 2)"],
}


@pytest.mark.parametrize(
    ("database", "kind"), [(database, kind) for database, kinds in TYPES.items() for kind in kinds]
)
@pytest.mark.parametrize("missing", ["refuse", "own_category"])
def test_sql_reads_numbers_of_every_type(database: Database, kind: str, missing: Any) -> None:
    features = (jr.Feature("a"), jr.Feature("b"), jr.Feature("c", special_values=(3.0,)))
    schema = jr.Schema((*features, features[2].companion()), missing, ("no", "yes"))
    sums = [0.1 * a + 0.2 * (b - 0.1) for a in range(4) for b in range(4)]  # float64, not decimals
    direction = jr.Direction((0, 1), (0.1, 0.2), (), (0.0, 0.1))
    asked = [[C.at_least(direction, value)] for value in sums]
    asked += [[C.above(0, 1.0), C(2, 1.0, missing=True)], [C.at_most(2, 2.5)]]
    linear = jr.LinearTerms(
        np.array([0, 2], np.int32), np.array([[0.1], [0.7]]), np.array([0.0, 0.1]), np.full(2, 2.5)
    )
    weights = np.linspace(-0.3, 0.7, len(asked))[:, None]
    rules = jr.Conjunctions.build(schema, asked)
    model = jr.RuleEnsemble(rules, weights, np.array([-0.3]), linear, "logistic")
    rows = [{"a": a, "b": b, "c": c} for a in range(4) for b in range(4) for c in (1, 3, 4)]
    if missing == "own_category":
        rows += [{**row, name: None} for row in rows[:20] for name in row]
    expressions = expressions_of(model) + expressions_of(model, dialect=OWN[database])
    found = list(zip(*database(schema, rows, expressions, {"number": kind}), strict=True))
    X = frame(schema, rows)
    for label, score, _, share in (found[:4], found[4:]):
        assert list(label) == jr.predict(model, X).tolist()
        assert list(score) == jr.decision_function(model, X).tolist()
        np.testing.assert_allclose(share, jr.predict_proba(model, X)[:, 1], rtol=1e-12)


@pytest.mark.parametrize("database", [in_sqlite, in_duckdb])  # others refuse the types
@pytest.mark.parametrize("kind", ["INTEGER", "TINYINT", "DOUBLE"])
def test_sql_reads_booleans_stored_as_numbers(database: Database, kind: str) -> None:
    schema = jr.Schema((jr.Feature("flag", levels=BOOLEAN),), "own_category")
    rules = jr.Conjunctions.build(schema, [[C.at_least(0, 0.5)], [C.at_most(0, 0.5)]])
    model = jr.RuleEnsemble(rules, np.array([[1.0], [2.0]]), np.zeros(1))
    rows = [{"flag": value} for value in (0, 1, None, 2)]
    found = database(schema, rows, [jr.to_sql(model)], {"True / False": kind})
    assert found == [(2.0,), (1.0,), (0.0,), (None,)]


def test_sqlite_refuses_what_other_databases_refuse_by_themselves() -> None:
    """Text among numbers, and columns that the table lacks."""
    schema = jr.Schema((jr.Feature("x"),), "own_category", ("no", "yes"))
    rules = jr.Conjunctions.build(schema, [[C.at_least(0, 2.0)]])
    model = jr.RuleEnsemble(rules, np.ones((1, 1)), np.array([-0.5]), link="logistic")
    rows = [{"x": value} for value in (10.0, None, "10", "", "ten")]
    for kind, first in (("REAL", "yes"), ("", "yes"), ("TEXT", None)):
        found = in_sqlite(schema, rows, [jr.to_sql(model, dialect="sqlite")], {"number": kind})
        read = "yes" if kind == "REAL" else None  # SQLite stores "10" in it as a number
        assert [label for (label,) in found] == [first, "no", read, None, None]
    absent = jr.to_sql(model, dialect="sqlite").replace("`x`", "`y`")
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        in_sqlite(schema, rows, [absent])


def named(*names: str) -> jr.RuleEnsemble:
    """A model that uses the first two of these columns."""
    rules = jr.Conjunctions.build(
        jr.Schema(tuple(map(jr.Feature, names))), [[C.above(0, 1.0)], [C.above(1, 1.0)]]
    )
    return jr.RuleEnsemble(rules, np.array([[1.0], [2.0]]), np.zeros(1))


@pytest.mark.parametrize(
    ("first", "second", "refusing"),
    [
        ("AGE", "age", {"ansi", "duckdb", "sqlite", "bigquery", "spark"}),
        ("\u00c4", "\u00e4", {"bigquery", "spark"}),
        ("age", "age ", set()),
        ("x" * 63 + "a", "x" * 63 + "b", {"postgres"}),
        ("\u00e4" * 32, "\u00e4" * 31 + "a", set()),
    ],
)
def test_sql_refuses_columns_that_a_database_takes_for_one(
    first: str, second: str, refusing: set[str]
) -> None:
    for dialect in DIALECTS:
        for model in (named(first, second), named(first, "z", second)):
            if dialect not in refusing:
                jr.to_sql(model, dialect=dialect)
                continue
            with pytest.raises(ValueError, match="are one in SQL") as error:
                jr.to_sql(model, dialect=dialect)
            assert repr(first) in str(error.value)
            assert repr(second) in str(error.value)
        jr.to_sql(named("y", "z", first, second), dialect=dialect)  # it reads neither


@pytest.mark.parametrize("database", [in_sqlite, in_duckdb, in_postgres])
@pytest.mark.parametrize(
    ("first", "second"),
    [("AGE", "age"), ("\u00c4", "\u00e4"), ("age", "age "), ("e\u0301", "\u00e9")],
)
def test_sql_tells_names_apart_as_the_database_does(
    database: Database, first: str, second: str
) -> None:
    model, rows = named(first, second), [{first: 2.0, second: 0.0}, {first: 0.0, second: 2.0}]
    if first == "AGE" and database is not in_postgres:
        with pytest.raises((sqlite3.OperationalError, duckdb.CatalogException)):
            database(model.schema, rows, ["1"])
        return
    found = database(model.schema, rows, [jr.to_sql(model, dialect=OWN[database])])
    assert found == [(1.0,), (2.0,)]


DIALECTS: tuple[Any, ...] = get_args(DialectName)


def names_read(program: Program) -> set[str]:
    """The names of the columns of X that a program reads."""
    return {program.schema.names[f] for f in program.asks}


@pytest.mark.full  # it parses 30 queries in every dialect: half of the time of this file
@settings(max_examples=30)
@given(case=ANY_CASE)
def test_sql_of_every_dialect_is_read_by_sqlglot(case: tuple[Any, list[Row]]) -> None:
    """It finds the columns, and what it translates for DuckDB says the same there."""
    sqlglot = pytest.importorskip("sqlglot")
    model, rows = case
    expected = jr.predict(model, frame(model.schema, rows)).tolist()
    program = program_of(model)
    # A rule of a list that never holds is "1 = 0", whatever it reads.
    able = tuple(rule for rule in program.rules if not any(test.fails for test in rule.tests))
    translated = []
    for dialect in DIALECTS:
        text = jr.to_sql(model, dialect=dialect)
        tree = sqlglot.parse_one(text, read="" if dialect == "ansi" else dialect)
        named = {column.name for column in tree.find_all(sqlglot.exp.Column)}
        named = {name for name in named if not re.fullmatch(r"(rule|term|score)_\d+", name)}
        assert names_read(replace(program, rules=able)) <= named <= names_read(program)
        if dialect != "sqlite":  # has other names for types, and is run itself
            translated.append(tree.sql(dialect="duckdb"))
    for row, truth in zip(in_duckdb(model.schema, rows, translated), expected, strict=True):
        if model.schema.classes is None:
            np.testing.assert_allclose(row, truth, rtol=1e-12, atol=1e-12)
        else:
            assert row == (truth,) * len(translated)


def test_sql_of_a_dialect_quotes_as_it_says() -> None:
    schema = jr.Schema((jr.Feature('a`b"\\', ("o'clock", "\\n", "\n")), jr.Feature("select")))
    rules = jr.Conjunctions.build(schema, [[C.one_of(0, [0, 1, 2])]])
    model = jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1))
    for dialects, name, texts in [
        ("ansi duckdb postgres", '"a`b""\\"', r"""('o''clock', '\n', '""" + "\n')"),
        ("sqlite", '`a``b"\\`', r"""('o''clock', '\n', '""" + "\n')"),
        ("snowflake", '"a`b""\\"', r"""('o\'clock', '\\n', '\n')"""),
        ("bigquery", r'`a\`b"\\`', r"""('o\'clock', '\\n', '\n')"""),
        ("spark", '`a``b"\\`', r"""('o\'clock', '\\n', '\n')"""),
    ]:
        for dialect in dialects.split():
            assert f"{name} IN {texts}" in jr.to_sql(model, dialect=dialect), dialect
    with pytest.raises(ValueError, match="dialect must be"):
        jr.to_sql(model, dialect="oracle")


@DATABASES
def test_sql_of_many_classes_writes_every_rule_once(database: Database) -> None:
    rng, classes = np.random.default_rng(0), tuple(f"class {k}" for k in range(40))
    schema = jr.Schema((jr.Feature("x"),), classes=classes)
    rules = jr.Conjunctions.build(schema, [[C.above(0, float(i))] for i in range(9)])
    weights = rng.integers(-2, 3, (9, 40)).astype(float)  # many ties: the first class wins
    model = jr.RuleEnsemble(rules, weights, np.zeros(40), link="softmax")
    rows = [{"x": value} for value in np.arange(-0.5, 9.0)]
    text = jr.to_sql(model, dialect=OWN[database])
    assert text.count(" > 8.0E0 ") == 1
    assert len(text) < 0.3 * len(jr.to_sql(model, dialect="snowflake"))
    found = [label for (label,) in database(schema, rows, [text])]
    assert found == jr.predict(model, frame(schema, rows)).tolist()


@DATABASES
def test_sql_of_several_classes_writes_every_rule_once(database: Database) -> None:
    """Also where the columns have the names of the steps, and the table that of a subquery."""
    names = ("rule_1", "score_2", "term_1_", "k")
    features = (*map(jr.Feature, names[:3]), jr.Feature("k", ("a", "b")))
    schema = jr.Schema(features, "own_category", ("x", "y", "z"))
    rules = jr.Conjunctions.build(
        schema, [[C.above(0, 0.5)], [C.at_most(1, 0.25), C.one_of(3, [0])], [C.above(2, 0.75)]]
    )
    linear = jr.LinearTerms(
        np.array([0, 2], np.int32),
        np.array([[0.5, 0.0, -0.25], [0.0, 1.5, 0.125]]),
        np.array([0.1, -np.inf]),
        np.array([0.9, np.inf]),
    )
    rng = np.random.default_rng(1)
    weights, rows = rng.normal(size=(3, 3)), []
    for x, y, z in rng.uniform(size=(12, 3)).tolist():
        rows.append({"rule_1": x, "score_2": y, "term_1_": z, "k": "a" if x < z else "b"})
    rows[0]["rule_1"] = rows[1]["k"] = None
    for link in ("softmax", "logistic"):
        model = jr.RuleEnsemble(rules, weights, np.array([0.1, -0.2, 0.0]), linear, link)
        asked = expressions_of(model) + expressions_of(model, table="rows", dialect=OWN[database])
        for text in (asked[0], *asked[4:8], asked[-1]):
            if "FROM" in text:
                assert text.count(" > 0.75E0") == 1
        found = list(zip(*database(schema, rows, asked), strict=True))
        X = frame(schema, rows)
        assert list(found[0]) == list(found[7]) == jr.predict(model, X).tolist()
        scores = np.asarray(jr.decision_function(model, X)).T
        np.testing.assert_array_equal([found[1:4], found[8:11]], [scores, scores])
        np.testing.assert_allclose(
            [found[4:7], found[11:14]], [jr.predict_proba(model, X).T] * 2, atol=1e-12
        )


@DATABASES
@pytest.mark.parametrize("link", ["logistic", "exponential"])
def test_sql_is_one_operand(database: Database, link: str) -> None:
    model = constant(("no", "yes"), [0.75], link)
    expressions = [
        jr.to_sql(model, what, label=label)
        for what in ("score", "probability")
        for label in ("no", "yes")
    ]
    (found,) = database(model.schema, [{"x": 1.0}], expressions)
    np.testing.assert_allclose(found[:2], [-0.75, 0.75])
    np.testing.assert_allclose(found[2:], jr.predict_proba(model, [[1.0]])[0], rtol=1e-12)
    (less,) = database(
        model.schema, [{"x": 1.0}], [f"1.0E0-{expression}" for expression in expressions]
    )
    np.testing.assert_allclose(less, 1 - np.array(found), rtol=1e-12)


@DATABASES
@pytest.mark.parametrize("score", [-1e4, -800.0, 800.0, 1e4])
@pytest.mark.parametrize("outputs", [1, 3])
def test_sql_probabilities_of_extreme_scores(
    database: Database, score: float, outputs: int
) -> None:
    for link in ("logistic", "exponential", *["softmax"] * (outputs > 1)):
        model = constant(("a", "b", "c")[: max(2, outputs)], [score, 0.0, 1.0][:outputs], link)
        assert model.schema.classes is not None
        expressions = [
            jr.to_sql(model, "probability", label=label) for label in model.schema.classes
        ]
        (found,) = database(model.schema, [{"x": 1.0}], expressions)
        np.testing.assert_allclose(found, jr.predict_proba(model, [[1.0]])[0], atol=1e-12)


def constant(classes: Any, intercept: list[float], link: Any) -> jr.RuleEnsemble:
    rules = jr.Conjunctions.build(jr.Schema((jr.Feature("x"),), classes=classes), [])
    return jr.RuleEnsemble(rules, np.zeros((0, len(intercept))), np.array(intercept), link=link)


def test_sql_refuses_what_it_cannot_say(ensemble: jr.RuleEnsemble, rule_list: jr.RuleList) -> None:
    assert jr.to_sql(ensemble, "probability") == jr.to_sql(ensemble, "probability", label="yes")
    for label, wrong in (
        (None, "an expression is for one class"),
        ("d", "label must be one of the classes"),
    ):
        with pytest.raises(ValueError, match=wrong):
            jr.to_sql(constant(("a", "b", "c"), [0.0, 1.0, 2.0], "softmax"), "score", label=label)
    with pytest.raises(ValueError, match="what must be"):
        jr.to_sql(ensemble, "label")
    with pytest.raises(TypeError, match="a RuleList has no scores"):
        jr.to_sql(rule_list, "score")
    with pytest.raises(ValueError, match="model predicts numbers"):
        jr.to_sql(constant(None, [1.0], "identity"), "probability")
    with pytest.raises(ValueError, match="NUL character"):
        jr.to_sql(ensemble, table="a\0b")


# PMML


@settings(max_examples=100)
@given(ANY_CASE)
def test_pmml_says_the_same(case: tuple[Any, list[Row]]) -> None:
    model, rows = case
    X, document, classes = (
        frame(model.schema, rows),
        Document(jr.to_pmml(model)),
        model.schema.classes,
    )
    found, expected = [document.predict(row) for row in rows], jr.predict(model, X).tolist()
    if classes is None:
        np.testing.assert_allclose([value for value, _ in found], expected, rtol=1e-12, atol=1e-12)
        return
    truth = jr.predict_proba(model, X)
    shares = np.array(
        [[named[label] for label in classes] for _, named in found if named is not None]
    )
    np.testing.assert_allclose(shares, truth, atol=1e-12)
    clear = np.diff(np.sort(truth, axis=1)[:, -2:])[:, 0] > 1e-9  # PMML does not say who wins a tie
    if isinstance(model, jr.RuleList):
        clear[:] = True
    elif getattr(model, "cut", None) is not None:  # compared as a probability, which is rounded
        clear = np.abs(truth[:, 1] - model.cut.probability) > 1e-9
    assert [label for (label, _), sure in zip(found, clear, strict=True) if sure] == [
        label for label, sure in zip(expected, clear, strict=True) if sure
    ]


def test_pmml_has_probabilities_where_no_class_is_likely() -> None:
    model = constant(("a", "b", "c"), [-1e300, -800.0, -801.0], "logistic")
    label, shares = Document(jr.to_pmml(model)).predict(dict.fromkeys(model.schema.names, 0.0))
    assert label == "b"
    assert shares == pytest.approx({"a": 0.0, "b": 1 / (1 + np.exp(-1)), "c": 1 / (1 + np.e)})


def test_pmml_refuses_missing_values_as_the_model_does() -> None:
    rules = jr.Conjunctions.build(jr.Schema((jr.Feature("x"),)), [[C.above(0, 1.0)]])
    document = Document(jr.to_pmml(jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1))))
    assert document.predict({"x": 2.0}) == (1.0, None)
    for missing in (None, math.nan):
        with pytest.raises(ValueError, match="missing"):
            document.predict({"x": missing})


@settings(max_examples=40)
@given(case=ANY_CASE, data=st.data())
def test_python_and_pmml_refuse_what_predict_refuses(
    case: tuple[Any, list[Row]], data: st.DataObject
) -> None:
    model, rows = case
    code, document = module(model), Document(jr.to_pmml(model))
    for row in spoiled(model, rows, data):
        with pytest.raises(ValueError, match=r"no value|infinite|must be one of"):
            code["predict"](row)
        with pytest.raises(ValueError, match="missing|invalid"):
            document.predict(row)


def test_pmml_names_every_field_once() -> None:
    names = ("target", "rule 1", "prediction", "target_")
    rules = jr.Conjunctions.build(
        jr.Schema(tuple(map(jr.Feature, names))), [[C.above(f, 1.0) for f in range(4)]]
    )
    document = Document(jr.to_pmml(jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1))))
    assert document.predict(dict.fromkeys(names, 2.0)) == (1.0, None)


def test_pmml_refuses_control_characters() -> None:
    rules = jr.Conjunctions.build(jr.Schema((jr.Feature("a\x07"),)), [[C.above(0, 1.0)]])
    with pytest.raises(ValueError, match=r"control character in 'a\\x07'"):
        jr.to_pmml(jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1)))


# Dataframes


@pytest.mark.parametrize("backend", [None, "pandas", "polars"])
def test_a_dataframe_holds_the_rules(
    backend: Any, ensemble: jr.RuleEnsemble, rule_list: jr.RuleList
) -> None:
    frame = jr.to_dataframe(ensemble, backend)
    assert isinstance(frame, pl.DataFrame if backend == "polars" else pd.DataFrame)
    columns = nw.from_native(frame).to_dict(as_series=False)
    used = [r for r in range(5) if r not in (3, 4)]  # one never holds, one has no weight
    assert columns == {
        "kind": ["intercept", *["rule"] * 3],
        "rule": ["always", *(ensemble.conjunctions.describe(r) for r in used)],
        "conditions": [0, 1, 2, 0],
        "weight": [-0.375, 0.5, -1.25, 0.125],
    }
    columns = nw.from_native(jr.to_dataframe(rule_list, backend)).to_dict(as_series=False)
    assert columns == {
        "rule": [*(rule_list.conjunctions.describe(r, " AND ") for r in range(3)), "no rule holds"],
        "conditions": [1, 1, 2, 0],
        "then": ["yes", "no", "yes", "no"],
        "probability of no": [0.25, 1.0, 0.5, 0.625],
        "probability of yes": [0.75, 0.0, 0.5, 0.375],
    }


def test_a_dataframe_of_several_outputs_and_terms() -> None:
    schema = jr.Schema((jr.Feature("x"),), classes=("a", "b", "c"))
    linear = jr.LinearTerms(
        np.array([0], np.int32), np.array([[1.0, 2.0, 0.0]]), np.array([-1.5]), np.array([2.0])
    )
    model = jr.RuleEnsemble(
        jr.Conjunctions.build(schema, []), np.zeros((0, 3)), np.arange(3.0), linear, "softmax"
    )
    assert jr.to_dataframe(model, "pandas").to_dict("list") == {
        "kind": ["intercept", "linear term"],
        "rule": ["always", "linear term of x, clipped to [-1.5, 2]"],
        "conditions": [0, 0],
        "weight of a": [0.0, 1.0],
        "weight of b": [1.0, 2.0],
        "weight of c": [2.0, 0.0],
    }
    with pytest.raises(ValueError, match='backend must be "pandas", "polars"'):
        jr.to_dataframe(model, "excel")


EXPORTS = pytest.mark.parametrize("export", [jr.to_python, jr.to_sql, jr.to_pmml, jr.to_dataframe])


@EXPORTS
def test_what_is_not_a_model_is_refused(
    export: Callable[[Any], Any], ensemble: jr.RuleEnsemble
) -> None:
    with pytest.raises(TypeError, match=r"got Fit; pass fit\.model"):
        export(jr.Fit(ensemble, 0.0, "min", jr.Status.CONVERGED))
    with pytest.raises(TypeError, match="got RuleBoostingClassifier; pass the model_"):
        export(RuleBoostingClassifier())
    with pytest.raises(TypeError, match="got str"):
        export("model")
