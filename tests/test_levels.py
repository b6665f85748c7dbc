"""Columns of True and False, and ordered categories: read, fitted, printed, saved, exported."""

import contextlib
import datetime
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.data.table import BOOLEAN, conform

SIZES = ("S", "M", "L", "XL")
FLAG = jr.Feature("flag", levels=BOOLEAN)
SIZE = jr.Feature("size", levels=SIZES)


def people(n: int = 80, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sizes = pd.Categorical.from_codes(rng.integers(0, 4, n), list(SIZES), ordered=True)
    return pd.DataFrame({"flag": rng.random(n) < 0.5, "size": sizes, "age": rng.normal(size=n)})


def labels_of(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["flag"] & (frame["size"].cat.codes <= 1), "yes", "no")


BOOLEANS = {
    "NumPy": np.array([[True], [False], [True]]),
    "objects": np.array([[True], [False], [True]], object),
    "records": [{"x0": True}, {"x0": False}, {"x0": np.True_}],
    "columns": {"x0": [True, False, True]},
    "pandas": pd.DataFrame({"x0": [True, False, True]}),
    "pandas object": pd.DataFrame({"x0": [True, False, True]}, dtype=object),
    "pandas boolean": pd.DataFrame({"x0": [True, False, True]}, dtype="boolean"),
    "polars": pl.DataFrame({"x0": [True, False, True]}),
}


@pytest.mark.parametrize("X", BOOLEANS.values(), ids=BOOLEANS.keys())
def test_booleans_are_booleans_in_every_container(X: Any) -> None:
    table = jr.as_table(X)
    assert table.schema.features == (jr.Feature("x0", levels=BOOLEAN),)
    assert table.columns[0].tolist() == [1.0, 0.0, 1.0]
    assert table.to_columns() == {"x0": [True, False, True]}
    assert jr.as_table(jr.to_dataframe(table)).schema == table.schema


MISSING_FLAGS = {
    "pandas object": pd.DataFrame({"flag": [True, None, False]}),
    "pandas boolean": pd.DataFrame({"flag": pd.array([True, None, False], "boolean")}),
    "polars": pl.DataFrame({"flag": [True, None, False]}),
    "records": [{"flag": True}, {}, {"flag": False}],
}


@pytest.mark.parametrize("X", MISSING_FLAGS.values(), ids=MISSING_FLAGS.keys())
def test_missing_booleans_follow_the_rule_for_missing_values(X: Any) -> None:
    with pytest.raises(ValueError, match=r"missing values in 'flag'"):
        jr.as_table(X)
    table = jr.as_table(X, missing="own_category")
    assert table.schema.features == (FLAG,)
    np.testing.assert_array_equal(table.columns[0], [1.0, np.nan, 0.0])
    assert table.to_columns() == {"flag": [True, None, False]}


def test_numbers_where_fit_had_booleans_and_the_reverse() -> None:
    flags, numbers = jr.as_table({"a": [True, False]}), jr.as_table({"a": [0.5, 1.0]})
    assert conform({"a": [1, 0.0, 1]}, flags.schema).columns[0].tolist() == [1, 0, 1]
    assert conform(numbers[1:], flags.schema).columns[0].tolist() == [1.0]
    assert conform({"a": [True, False]}, numbers.schema).columns[0].tolist() == [1, 0]
    with pytest.raises(
        ValueError, match=r"'a' of X has the value 2.0, but in fit it was True or F"
    ):
        conform({"a": [0, 2]}, flags.schema)
    with pytest.raises(ValueError, match="'a' of X is categorical, but was True / False in fit"):
        conform({"a": ["True", "False"]}, flags.schema)


ORDERED = {
    "pandas": pd.DataFrame({"size": pd.Categorical(["M", "S"], SIZES, ordered=True)}),
    "polars": pl.DataFrame({"size": pl.Series(["M", "S"], dtype=pl.Enum(SIZES))}),
}


@pytest.mark.parametrize("X", ORDERED.values(), ids=ORDERED.keys())
def test_ordered_categories_keep_their_declared_order(X: Any) -> None:
    table = jr.as_table(X)
    assert table.schema.features == (SIZE,)
    assert table.columns[0].tolist() == [1.0, 0.0]
    assert table.to_columns() == {"size": ["M", "S"]}


def test_pyarrow_dictionaries_say_whether_they_are_ordered() -> None:
    pa = pytest.importorskip("pyarrow")
    for ordered, feature in ((True, SIZE), (False, jr.Feature("size", ("M", "S")))):
        column = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(SIZES), ordered=ordered)
        assert jr.as_table(pa.table({"size": column})).schema.features == (feature,)


def test_bins_of_pandas_are_ordered() -> None:
    X = pd.DataFrame({"age": pd.cut([5, 15, 25, 15], [0, 10, 20, 30])})
    assert jr.as_table(X).schema.features[0].levels == ("(0, 10]", "(10, 20]", "(20, 30]")


def test_the_text_of_an_ordered_category_is_enough() -> None:
    schema = jr.as_table(ORDERED["pandas"]).schema
    assert conform({"size": ["XL", "M"]}, schema).columns[0].tolist() == [3.0, 1.0]
    wider = pd.DataFrame({"size": pd.Categorical(["L"], ["XXS", *SIZES], ordered=True)})
    assert conform(wider, schema).columns[0].tolist() == [2.0]
    with pytest.raises(
        ValueError, match="the value 'XXL', which has no place in the order of fit, S < M"
    ):
        conform({"size": ["S", "XXL"]}, schema)
    numbers = pd.DataFrame({"a": pd.Categorical([3, 1], [1, 3, 10], ordered=True)})
    schema = jr.as_table(numbers).schema
    assert schema.features[0].levels == ("1", "3", "10")
    assert conform({"a": [10, 1.0]}, schema).columns[0].tolist() == [2.0, 0.0]
    with pytest.raises(ValueError, match="is numeric, but was an ordered category in fit"):
        conform({"size": [1]}, jr.as_table(ORDERED["pandas"]).schema)


def test_handmade_features_and_tables_are_checked() -> None:
    for levels in ((), (True, False), (0, 1), ("a", True), ["a"]):
        with pytest.raises(TypeError, match=r"levels of feature 'a' must be \(False, True\) or a"):
            jr.Feature("a", levels=levels)  # type: ignore[arg-type]  # refused on purpose
    with pytest.raises(ValueError, match="levels of feature 'a' must all be distinct"):
        jr.Feature("a", levels=("x", "x"))
    with pytest.raises(TypeError, match="without categories"):
        jr.Feature("a", ("x",), ("x",))
    table = jr.Table(jr.Schema((FLAG,)), (np.array([0.5]),))
    with pytest.raises(ValueError, match="numbers that are not places of its levels"):
        jr.as_table(table)


C = jr.Condition
TEXTS = [
    (C.at_most(0, 0.5), "not flag"),
    (C.at_least(0, 1.0), "flag"),
    (C.above(0, 0.0, missing=True), "(flag or missing)"),
    (C.is_missing(0, numeric=True), "flag is missing"),
    (C.is_present(0, None), "flag is not missing"),
    (C.above(0, 1.0), "flag never"),
    (C.at_most(1, 1.5), "size <= M"),
    (C.above(1, 1.0), "size >= L"),
    (C.above(1, 0.5) & C.below(1, 3.0), "M <= size <= L"),
    (C.above(1, 0.5) & C.below(1, 2.0), "size == M"),
    (C.at_most(1, 0.0, missing=True), "(size == S or missing)"),
    (C.at_least(jr.Direction((0, 1), (2.0, -1.0)), 0.5), "2 [flag] - rank(size) >= 0.5"),
]


@pytest.mark.parametrize(("condition", "text"), TEXTS)
def test_conditions_say_levels(condition: jr.Condition, text: str) -> None:
    assert condition.describe(jr.Schema((FLAG, SIZE), "own_category")) == text


@given(st.data())
def test_printed_levels_are_those_that_satisfy_the_condition(data: st.DataObject) -> None:
    ends = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, np.inf])
    closed = st.booleans()
    condition = C(0, data.draw(ends), data.draw(ends), data.draw(closed), data.draw(closed))
    schema = jr.Schema((SIZE,))
    table = jr.Table(schema, (np.arange(4.0),))
    holds = jr.Conjunctions.build(schema, [[condition]]).satisfied(table)[:, 0]
    assert np.flatnonzero(holds).tolist() == condition.levels_of(SIZE)


def test_a_fit_says_flag_and_size() -> None:
    X = people()
    fit = jr.boosting.fit(X, labels_of(X), max_rules=1)
    assert "flag & size <= M" in str(fit.model)
    assert "flag & size <= M" in fit.model._repr_html_().replace("&amp;", "&").replace("&lt;", "<")
    assert r"size $\le$ M" in jr.to_latex(fit.model)
    listed = jr.exact_list.fit(X, labels_of(X)).model
    assert "flag" in str(listed)
    described = str(jr.as_table(X).describe())
    assert "True / False" in described
    assert "S to XL" in described
    assert "True" in str(jr.as_table(X))


def test_monotone_constraints_follow_the_order() -> None:
    X = people()
    y = np.where(X["size"].cat.codes >= 2, "yes", "no")
    model = jr.boosting.fit(X, y, max_rules=3, monotone={"size": 1, "flag": 1}).model
    all_sizes = pd.DataFrame({"flag": True, "size": list(SIZES), "age": 0.0})
    assert (np.diff(jr.decision_function(model, all_sizes)) >= 0).all()


def test_linear_terms_take_the_place_of_a_level() -> None:
    schema = jr.Schema((FLAG, SIZE), "own_category")
    linear = jr.LinearTerms(
        np.array([0, 1], np.int32), np.array([[2.0], [10.0]]), np.zeros(2), np.full(2, 2.0)
    )
    model = jr.RuleEnsemble(jr.Conjunctions.build(schema, []), np.zeros((0, 1)), np.ones(1), linear)
    X = {"flag": [True, None, False], "size": ["XL", "M", None]}
    assert jr.predict(model, X).tolist() == [23.0, 11.0, 1.0]
    assert "times [flag], clipped to [0, 2]" in str(model)
    assert "linear term of rank(size) at 2" in str(jr.explain(model, X)[0])


def test_saved_files_hold_levels(tmp_path: Path) -> None:
    X = people()
    model = jr.boosting.fit(X, labels_of(X), max_rules=2).model
    jr.save(model, tmp_path / "model.json")
    loaded = jr.load(tmp_path / "model.json")
    assert loaded.schema == model.schema
    assert str(loaded) == str(model)
    assert jr.predict(loaded, X).tolist() == jr.predict(model, X).tolist()


@pytest.mark.parametrize("database", ["sqlite", "duckdb"])
def test_sql_of_flags(database: str) -> None:
    schema = jr.Schema((FLAG, SIZE), "own_category")
    rules = jr.Conjunctions.build(
        schema, [[C.at_least(0, 1.0), C.at_most(1, 1.0)], [C.at_most(0, 0.0, missing=True)]]
    )
    model = jr.RuleEnsemble(rules, np.array([[1.0], [10.0]]), np.zeros(1))
    sql = jr.to_sql(model)
    assert """"flag" AND "size" IN ('S', 'M')""" in sql
    assert '(NOT "flag" OR "flag" IS NULL)' in sql
    rows = [(True, "M"), (False, "M"), (None, "M"), (True, "L")]
    connect: Any = sqlite3.connect if database == "sqlite" else duckdb.connect
    with contextlib.closing(connect(":memory:")) as open_database:
        open_database.execute('CREATE TABLE t (place INT, "flag" BOOLEAN, "size" TEXT)')
        for place, row in enumerate(rows):
            open_database.execute("INSERT INTO t VALUES (?, ?, ?)", (place, *row))
        found = open_database.execute(f"SELECT {sql} FROM t ORDER BY place").fetchall()
    X = {"flag": [row[0] for row in rows], "size": [row[1] for row in rows]}
    assert [value for (value,) in found] == jr.predict(model, X).tolist() == [1, 10, 10, 0]


def test_pmml_declares_booleans_and_orders() -> None:
    rules = jr.Conjunctions.build(
        jr.Schema((FLAG, SIZE)), [[C.at_least(0, 1.0), C.at_most(1, 1.0)]]
    )
    text = jr.to_pmml(jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1)))
    assert '<DataField name="flag" optype="categorical" dataType="boolean">' in text
    assert '<DataField name="size" optype="ordinal" dataType="string">' in text


def test_python_reads_booleans() -> None:
    rules = jr.Conjunctions.build(jr.Schema((FLAG,)), [[C.at_least(0, 1.0)]])
    source = jr.to_python(jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1)))
    assert "lambda x: x['flag'] is True" in source
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    assert [namespace["predict"]({"flag": one}) for one in (True, 0, np.True_)] == [1.0, 0.0, 1.0]
    with pytest.raises(ValueError, match=r"'flag' must be one of \(False, True\), got 2"):
        namespace["predict"]({"flag": 2})


def test_report_page_of_levels(tmp_path: Path) -> None:
    X = people()
    model = jr.boosting.fit(X, labels_of(X), max_rules=2).model
    jr.report(model, X, labels_of(X), tmp_path / "page.html", groups="flag")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert '"levels":["False","True"]' in page.replace(" ", "")
    assert "True / False" in page


DATES = {
    "NumPy": np.array([["2024-01-01"]], "datetime64[D]"),
    "pandas": pd.DataFrame({"day": pd.to_datetime(["2024-01-01"])}),
    "pandas durations": pd.DataFrame({"day": pd.to_timedelta([3], "D")}),
    "polars": pl.DataFrame({"day": [datetime.date(2024, 1, 1)]}),
    "objects": pd.DataFrame({"day": [datetime.date(2024, 1, 1)]}, dtype=object),
    "records": [{"day": datetime.datetime(2024, 1, 1)}],
    "columns": {"day": np.array(["2024-01-01"], "datetime64[D]")},
}


@pytest.mark.parametrize("X", DATES.values(), ids=DATES.keys())
def test_dates_are_refused_with_a_remedy(X: Any) -> None:
    with pytest.raises(
        TypeError, match=r"dates or times .*; convert it to .*days since a fixed date"
    ):
        jr.as_table(X)


def test_rules_of_lightgbm_compare_ordered_categories() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X = people(200)
    X["job"] = pd.Categorical(np.where(X.index % 2, "cook", "smith"))
    y = 1.0 * (X["size"].cat.codes > 1) + 2.0 * (X["job"] == "cook") + X["flag"]
    forest = lightgbm.LGBMRegressor(n_estimators=3, min_child_samples=5, verbose=-1).fit(X, y)
    rules = jr.extract_rules(forest, X, drop_duplicates=False)
    texts = " ".join(rules.describe(r) for r in range(len(rules)))
    assert "size <= M" in texts
    assert "not flag" in texts
    assert "job == cook" in texts
    leaves = jr.extract_rules(forest, X, leaves_only=True, drop_duplicates=False)
    holds = leaves.satisfied(jr.as_table(X))
    assert (holds.sum(axis=1) == 3).all()  # one leaf per tree
