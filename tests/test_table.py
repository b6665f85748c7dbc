"""Tables: arrays and dataframes of every kind, missing values, conforming to a
schema, targets, weights.
"""

import copy
import datetime
import pathlib
import pickle
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import jaxrules as jr
from jaxrules.data.table import (
    MISSING,
    UNSEEN,
    EncodedColumn,
    OrderedLabels,
    binary_target,
    check_sample_weight,
    class_target,
    conform,
    holds_classes,
    label_order,
    look_like_counts,
    regression_target,
    target_array,
)

FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


def own(X: Any) -> jr.Table:
    return jr.as_table(X, missing="own_category")


# Arrays


def test_arrays_become_named_float64_columns() -> None:
    table = jr.as_table(np.array([[1, 2], [3, 4], [5, 6]], np.int8))
    assert table.names == ("x0", "x1")
    assert table.shape == (3, 2)
    assert len(table) == table.n_rows == 3
    assert all(column.dtype == np.float64 for column in table.columns)
    np.testing.assert_array_equal(table.numeric_matrix(), [[1, 2], [3, 4], [5, 6]])
    assert jr.as_table([[True, False]]).columns[0][0] == 1.0
    assert jr.as_table([[1.0]], feature_names=["age"]).names == ("age",)


def test_a_table_does_not_follow_later_changes_of_the_array() -> None:
    X = np.ones((2, 2))
    table = jr.as_table(X)
    X[:] = 7
    np.testing.assert_array_equal(table.numeric_matrix(), np.ones((2, 2)))


@settings(max_examples=50)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.integers(1, 4)),
        elements=st.floats(allow_infinity=False),
    )
)
def test_numbers_survive_exactly(X: np.ndarray) -> None:
    for column in X.T:
        if np.isnan(column).all():
            with pytest.raises(ValueError, match="no values"):
                own(X)
            return
    table = own(X)
    np.testing.assert_array_equal(np.stack(table.columns, axis=1), X)
    assert table.columns_with_missing() == tuple(
        f"x{i}" for i in np.flatnonzero(np.isnan(X).any(axis=0))
    )


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones(3), ValueError, "reshape"),
        (np.ones((1, 1, 1)), ValueError, "2-D"),
        (None, ValueError, "2-D"),
        ("text", ValueError, "2-D.*text; read the file first, e.g. with pandas.read_csv"),
        (pathlib.Path("file.csv"), ValueError, "2-D.*read the file first"),
        ({}, ValueError, "no columns"),
        ([{}], ValueError, "no columns"),
        ({"a": 1.0}, ValueError, "'a' of X must be a list of values, got one float; one row is"),
        ({"a": "text"}, ValueError, "'a' of X must be a list of values"),
        ({"a": {1.0}}, ValueError, "'a' of X must be a list of values"),
        ({"a": np.ones((2, 2))}, ValueError, "'a' of X must be a list of values"),
        ({"a": [1.0], "b": [1.0, 2.0]}, ValueError, "different lengths {'a': 1, 'b': 2}"),
        ({"a": [1.0, "x"]}, TypeError, "'a' of X holds text .'x'. among values of type float"),
        ({"a": [[1], [1, 2]]}, TypeError, "'a' of X holds Python objects .list among them"),
        ({"a": [2**53]}, ValueError, "2\\*\\*53"),
        ({"a": [10**400]}, ValueError, "2\\*\\*53"),
        ([{"a": np.int64(2**60)}, {"a": np.int64(-(2**63))}], ValueError, "2\\*\\*53"),
        (pd.DataFrame({"a": pd.array([None, 2**60], "Int64")}), ValueError, "2\\*\\*53"),
        ({"a": [1j]}, TypeError, "complex"),
        ({"a": np.array([1j])}, TypeError, "complex"),
        ({"a": [None]}, ValueError, "'a' of X has no values"),
        ({"a": [1.0, None]}, ValueError, "missing values in 'a'"),
        ([{"a": 1.0}, {"b": 1.0}], ValueError, "missing values in 'a', 'b'"),
        ({"a": np.ma.masked_array([1.0])}, TypeError, "filled"),
        ({"0": [1.0], 0: [1.0]}, ValueError, "several columns named '0'"),
        (object(), ValueError, "2-D.*one object; pass a 2-D array, a dataframe or a Table"),
        (np.ones((0, 2)), ValueError, "no rows"),
        (np.ones((2, 0)), ValueError, "no columns"),
        ([[1.0, 2.0], [3.0]], ValueError, "different lengths"),
        ([[1.0, np.inf]], ValueError, "'x1' of X has infinite"),
        ([[1.0, np.nan], [1.0, 2.0]], ValueError, "missing values in 'x1'.*own_category"),
        ([["a", "b"]], TypeError, "must be numeric"),
        (np.array([[1, "a"], ["b", "a"]], object), TypeError, "'x0' of X holds.*astype"),
        (np.array([[1j]]), TypeError, "complex"),
        (np.array([["2020-01-01"]], "datetime64[D]"), TypeError, "datetime64"),
        (np.array([[2**53]]), ValueError, "2\\*\\*53"),
        (np.array([[-(2**63)]]), ValueError, "2\\*\\*53"),
        (np.array([[2**64 - 1]], np.uint64), ValueError, "2\\*\\*53"),
        (np.ma.masked_array([[1.0, 2.0]]), TypeError, "filled"),
        (scipy.sparse.csr_matrix(np.eye(2)), TypeError, "toarray"),
        (scipy.sparse.coo_array(np.eye(2)), TypeError, "toarray"),
        (scipy.sparse.dok_array(np.eye(2)), TypeError, "toarray"),
        (pd.DataFrame({"a": [1]}).to_records(), TypeError, "structured.*pandas.DataFrame"),
        (pl.LazyFrame({"a": [1]}), TypeError, "lazy frame.*collect"),
        (jax.random.split(jax.random.key(0), (2, 2)), TypeError, "X is not an array of numbers"),
    ],
)
def test_arrays_that_are_no_table_are_refused(X: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        jr.as_table(X)


def test_integers_up_to_2_to_the_53_are_kept() -> None:
    largest = 2**53 - 1
    assert jr.as_table(np.array([[largest], [-largest]])).columns[0].tolist() == [largest, -largest]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="missing must be"):
        jr.as_table([[1.0]], missing="impute")
    with pytest.raises(ValueError, match="2 names for 1 columns"):
        jr.as_table([[1.0]], feature_names=["a", "b"])
    with pytest.raises(ValueError, match="feature_names repeats 'a'"):
        jr.as_table([[1.0, 2.0]], feature_names=["a", "a"])
    with pytest.raises(ValueError, match="rename the columns"):
        jr.as_table(pd.DataFrame({"a": [1]}), feature_names=["b"])
    with pytest.raises(ValueError, match="a Table has its own names"):
        jr.as_table(jr.as_table([[1.0]]), feature_names=["b"])


# Dataframes


@FRAMES
def test_a_mixed_frame(frame: Any) -> None:
    table = own(
        frame(
            {
                "number": [1.5, None, 3.0],
                "whole": [1, 2, 3],
                "flag": [True, False, True],
                "text": ["b", None, "a"],
            }
        )
    )
    assert table.names == ("number", "whole", "flag", "text")
    np.testing.assert_array_equal(table.columns[0], [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(table.columns[1], [1, 2, 3])
    np.testing.assert_array_equal(table.columns[2], [1, 0, 1])
    np.testing.assert_array_equal(table.columns[3], [1, MISSING, 0])
    assert table.schema.features[3].categories == ("a", "b")
    assert [feature.is_numeric for feature in table.schema.features] == [True, True, True, False]
    assert table.columns_with_missing() == ("number", "text")
    assert "1 of them categorical" in repr(table)


SERIES = {
    "pandas Int64": pd.Series([1, None, 3], dtype="Int64"),
    "pandas Float64": pd.Series([1, None, 3], dtype="Float64"),
    "pandas boolean": pd.Series([True, None, False], dtype="boolean"),
    "pandas UInt8": pd.Series([1, None, 3], dtype="UInt8"),
    "polars Int64": pl.Series([1, None, 3]),
    "polars UInt8": pl.Series([1, None, 3], dtype=pl.UInt8),
    "polars Float32": pl.Series([1, None, 3], dtype=pl.Float32),
    "polars Boolean": pl.Series([True, None, False]),
}


@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES.keys())
def test_nullable_numbers_and_booleans(series: Any) -> None:
    frame = series.to_frame("a") if isinstance(series, pd.Series) else pl.DataFrame({"a": series})
    values = own(frame).columns[0]
    assert np.isnan(values[1])
    assert values[[0, 2]].tolist() in ([1.0, 3.0], [1.0, 0.0])


TEXTS = {
    "pandas str": pd.Series(["x", None, "y"]),
    "pandas string": pd.Series(["x", None, "y"], dtype="string"),
    "pandas object": pd.Series(["x", None, "y"], dtype=object),
    "pandas object with NA": pd.Series(["x", pd.NA, "y"], dtype=object),
    "pandas object with NaN": pd.Series(["x", np.nan, "y"], dtype=object),
    "pandas category": pd.Series(pd.Categorical(["x", None, "y"], categories=["z", "y", "x"])),
    "polars String": pl.Series(["x", None, "y"]),
    "polars Categorical": pl.Series(["x", None, "y"], dtype=pl.Categorical),
}


@pytest.mark.parametrize("series", TEXTS.values(), ids=TEXTS.keys())
def test_text_and_categories(series: Any) -> None:
    frame = series.to_frame("a") if isinstance(series, pd.Series) else pl.DataFrame({"a": series})
    table = own(frame)
    assert table.schema.features[0].categories == ("x", "y")
    assert table.columns[0].tolist() == [0, MISSING, 1]


def test_categories_of_numbers_become_text() -> None:
    assert jr.as_table(pd.DataFrame({"a": pd.Categorical([3, 1])})).schema.features[
        0
    ].categories == ("1", "3")


@pytest.mark.parametrize(
    ("in_fit", "values"),
    [
        (
            pd.Categorical([1, 2, 3]),
            [[1.0, 2.0, 3.0], [1, 2, 3], pd.Categorical([1.0, 2.0, 3.0]), ["1", "2", "3"]],
        ),
        (
            pd.Categorical([1.0, 2.5, 3.0]),
            [[1.0, 2.5, 3.0], pd.Categorical([1.0, 2.5, 3.0]), ["1", "2.5", "3"]],
        ),
        (["1", "2", "3"], [[1, 2, 3], np.array([1.0, 2.0, 3.0]), pd.array([1, 2, 3], "Int64")]),
    ],
)
def test_categories_that_are_numbers_are_the_same_in_every_type(
    in_fit: Any, values: list[Any]
) -> None:
    schema = jr.as_table(pd.DataFrame({"a": in_fit})).schema
    for one in values:
        assert conform(pd.DataFrame({"a": one}), schema).columns[0].tolist() == [0, 1, 2]
    if schema.features[0].categories == ("1", "2", "3"):
        assert conform(np.array([[3.0], [1.0]]), schema).columns[0].tolist() == [2, 0]
    with pytest.warns(UserWarning, match="'4'"):
        conform(pd.DataFrame({"a": [4.0]}), schema)


def test_older_models_wrote_whole_numbers_with_a_point() -> None:
    schema = jr.Schema((jr.Feature("a", ("1.0", "2.0", "2.5")),))
    for values in (pd.Categorical([1.0, 2.0, 2.5]), ["1.0", "2.0", "2.5"]):
        assert conform(pd.DataFrame({"a": values}), schema).columns[0].tolist() == [0, 1, 2]
    versions = jr.Schema((jr.Feature("a", ("v1.0", "v2.0")),))
    assert conform(pd.DataFrame({"a": ["v1", "v2.0"]}), versions).columns[0].tolist() == [-2, 1]


def test_a_table_does_not_follow_its_frame() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.array([1.0, None], "Float64"), "c": [1, 2]})
    table = own(frame)
    frame.loc[:, ["a", "b", "c"]] = 0
    assert [column[0] for column in table.columns] == [1.0, 1.0, 1.0]


def test_declared_categories_of_booleans_may_come_as_booleans() -> None:
    schema = jr.as_table({"a": pd.Categorical([True, False])}).schema
    for values in (np.array([True, False]), [True, False], pd.Categorical([True, False])):
        assert conform({"a": values}, schema).columns[0].tolist() == [1, 0]


def test_an_integer_is_not_the_name_of_another_column() -> None:
    frame = pd.DataFrame({2: [1.0, 2.0, 3.0], 0: [3.0, 1.0, 2.0]})
    for options in ({"forbidden": [0]}, {"monotone": {0: 1}}):
        with pytest.raises(ValueError, match="names column 0, the position of one.*write '0'"):
            jr.boosting.fit(frame, [1.5, 2.5, 3.5], **options)
    with pytest.raises(ValueError, match="special_values names column 0, the position"):
        jr.as_table(frame, special_values={0: [1]})
    jr.boosting.fit(frame[[0, 2]], [1.5, 2.5, 3.5], forbidden=[0], max_rules=1)


def test_a_column_without_any_known_category_is_told() -> None:
    schema = own(pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})).schema
    with pytest.warns(
        UserWarning,
        match=r"'a' of X has none of the categories in fit: it has 'X', 'Y', the model 'x', 'y'",
    ):
        found = conform(pd.DataFrame({"a": ["X", "Y", None, "X"], "b": 1.0}), schema)
    assert found.columns[0].tolist() == [UNSEEN, UNSEEN, MISSING, UNSEEN]
    conform(pd.DataFrame({"a": ["X", "y"], "b": 1.0}), schema)  # warnings are errors here
    conform(pd.DataFrame({"a": [None], "b": 1.0}), schema)


RECORDS = pd.DataFrame({"age": [3.0, 5.5], "job": ["cook", "smith"], "adult": [False, True]})


@pytest.mark.parametrize(
    "X",
    [
        RECORDS.to_dict("list"),
        {name: RECORDS[name] for name in RECORDS},
        {name: RECORDS[name].to_numpy() for name in RECORDS},
        RECORDS.to_dict("records"),
        tuple(RECORDS.to_dict("records")),
        dict(jr.as_table(RECORDS).to_columns()),
    ],
)
def test_records_are_read_as_the_dataframe_is(X: object) -> None:
    expected, schema = jr.as_table(RECORDS), jr.as_table(RECORDS).schema
    for table in (jr.as_table(X), jr.data.table.conform(X, schema)):
        assert table.schema == schema
        for column, other in zip(table.columns, expected.columns, strict=True):
            np.testing.assert_array_equal(column, other)


def test_arrays_of_objects_have_columns_of_text() -> None:
    schema = jr.as_table(RECORDS).schema
    table = jr.data.table.conform(RECORDS.to_numpy(object), schema)
    assert table.to_columns()["job"] == ["cook", "smith"]
    assert jr.as_table(np.array([[1, "a"], [None, None]], object), missing="own_category").schema


def test_records_without_a_key_have_a_missing_value() -> None:
    rows = [{"age": 3, "job": "cook"}, {"job": None, "age": 4.5}, {"age": np.int64(7)}]
    table = jr.as_table(rows, missing="own_category")
    assert table.to_columns()["job"] == ["cook", None, None]
    np.testing.assert_array_equal(table.columns[0], [3, 4.5, 7])
    one = jr.data.table.conform([{"job": "cook", "age": None}], table.schema)
    assert np.isnan(one.columns[0][0])
    assert one.to_columns()["job"] == ["cook"]


BAD_FRAMES = {
    "pandas dates": (
        pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}),
        TypeError,
        r"'a'.*datetime64\[",
    ),
    "polars dates": (pl.DataFrame({"a": [datetime.date(2020, 1, 1)]}), TypeError, "'a'.*Date"),
    "polars lists": (pl.DataFrame({"a": [[1]]}), TypeError, "'a'.*List"),
    "objects": (
        pd.DataFrame({"a": pd.Series([object(), "x"], dtype=object)}),
        TypeError,
        "'a'.*object among them",
    ),
    "mixed": (pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)}), TypeError, "astype\\(str\\)"),
    "arrays": (
        pd.DataFrame({"a": pd.Series([np.ones(2), "x"], dtype=object)}),
        TypeError,
        "ndarray",
    ),
    "NA and number": (
        pd.DataFrame({"a": pd.Series([pd.NA, 1], dtype=object)}),
        TypeError,
        "int among them",
    ),
    "complex": (pd.DataFrame({"a": [1j]}), TypeError, "'a' of X has type complex128"),
    "pandas sparse": (
        pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}),
        TypeError,
        "'a' of X has type Sparse",
    ),
    "lazy": (pl.DataFrame({"a": [1]}).lazy(), TypeError, "collect"),
    "no rows": (pl.DataFrame({"a": []}, schema={"a": pl.Float64}), ValueError, "no rows"),
    "no columns": (pd.DataFrame(), ValueError, "no columns"),
    "repeated names": (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "same name"),
    "names equal as text": (
        pd.DataFrame([[1, 2]], columns=[0, "0"]),
        ValueError,
        "several columns named '0'",
    ),
    "infinite": (pd.DataFrame({"a": [np.inf]}), ValueError, "'a'.*infinite"),
    "missing": (pl.DataFrame({"a": [None, 1]}), ValueError, "missing values in 'a'"),
    "only missing, object": (pd.DataFrame({"a": [None, None]}), ValueError, "'a'.*no values"),
    "only missing, float": (pd.DataFrame({"a": [np.nan]}), ValueError, "'a'.*no values"),
    "only missing, polars": (pl.DataFrame({"a": [None]}), ValueError, "'a'.*no values"),
    "large integers": (pd.DataFrame({"a": [2**60]}), ValueError, "'a'.*2\\*\\*53"),
    "large nullable integers": (
        pd.DataFrame({"a": pd.array([2**60, None], "Int64")}),
        ValueError,
        "'a'.*2\\*\\*53",
    ),
    "smallest integer": (pl.DataFrame({"a": [-(2**63)]}), ValueError, "'a'.*2\\*\\*53"),
    "a series": (pd.Series([1.0]), ValueError, "2-D"),
}


@pytest.mark.parametrize(("frame", "error", "message"), BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
def test_frames_that_are_no_table_are_refused(
    frame: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        jr.as_table(frame)


def test_names_that_are_no_text_and_repeated_indices() -> None:
    table = jr.as_table(pd.DataFrame([[1, 2], [3, 4]], columns=[10, 20], index=[5, 5]))
    assert table.names == ("10", "20")
    np.testing.assert_array_equal(table.numeric_matrix(), [[1, 2], [3, 4]])


@FRAMES
def test_own_category_lists_no_missing_columns_when_none_miss(frame: Any) -> None:
    assert own(frame({"a": [1.0], "b": ["x"]})).columns_with_missing() == ()


# Tables


def test_rows_are_selected_by_slices_masks_and_indices() -> None:
    table = own(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", None]}))
    for rows in (slice(1, 3), np.array([False, True, True]), [1, 2]):
        part = table[rows]
        assert part.schema is table.schema
        assert [column.tolist() for column in part.columns] == [[2.0, 3.0], [1, MISSING]]
    with pytest.raises(TypeError, match=r"table\[1:2\]"):
        table[1]


def test_a_table_may_change_its_rule_for_missing_values() -> None:
    table = own(pd.DataFrame({"a": [1.0, None], "b": ["x", "y"]}))
    assert jr.as_table(table, missing="own_category") is not None
    with pytest.raises(ValueError, match="missing values in 'a'"):
        jr.as_table(table, missing="refuse")
    assert jr.as_table(table[:1], missing="refuse").schema.missing == "refuse"
    assert jr.as_table(table).schema.missing == "own_category"


def test_a_table_with_unseen_categories_is_no_training_table() -> None:
    schema = jr.as_table(pd.DataFrame({"b": ["x", "y"]})).schema
    with pytest.warns(UserWarning, match="'b'"):
        unseen = conform(pd.DataFrame({"b": ["z"]}), schema)
    with pytest.raises(ValueError, match="'b'"):
        jr.as_table(unseen)


def test_numeric_matrix_refuses_categories_and_missing_values() -> None:
    with pytest.raises(ValueError, match="'b'"):
        jr.as_table(pd.DataFrame({"b": ["x"]})).numeric_matrix()
    with pytest.raises(ValueError, match="'x0'"):
        own([[1.0], [np.nan]]).numeric_matrix()


def test_one_hot() -> None:
    matrix, columns = own(
        pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": ["x", "y", None], "c": ["u", "u", "u"]})
    ).one_hot()
    expected = [(0, None), (1, 0), (1, 1), (1, MISSING), (2, 0)]
    assert columns == tuple(EncodedColumn(*pair) for pair in expected)
    np.testing.assert_array_equal(matrix, [[1, 1, 0, 0, 1], [np.nan, 0, 1, 0, 1], [3, 0, 0, 1, 1]])


def test_schema_is_hashable_and_validates() -> None:
    schema = jr.Schema((jr.Feature("a"), jr.Feature("b", ("x", "y"))))
    assert hash(schema) == hash(jr.Schema((jr.Feature("a"), jr.Feature("b", ("x", "y")))))
    schema.with_classes((0, 1))
    bad: list[Callable[[], object]] = [
        lambda: jr.Schema(()),
        lambda: jr.Schema((jr.Feature("a"), jr.Feature("a"))),
        lambda: jr.Feature("a", ()),
        lambda: jr.Feature("a", ("x", "x")),
        lambda: jr.Schema((jr.Feature("a"),), "drop"),  # type: ignore[arg-type]
        lambda: schema.with_classes((1,)),
        lambda: schema.with_classes((1, 1)),
        lambda: schema.with_classes((1, "a")),
    ]
    for make in bad:
        with pytest.raises(ValueError):
            make()


# Conforming new data


@FRAMES
def test_columns_are_matched_by_name(frame: Any) -> None:
    schema = own(frame({"a": [1.0, 2.0], "b": ["x", "y"]})).schema
    table = conform(frame({"b": ["y", "new", None], "a": [7, None, 8]}), schema)
    assert table.schema is schema
    np.testing.assert_array_equal(table.columns[0], [7, np.nan, 8])
    assert table.columns[1].tolist() == [1, UNSEEN, MISSING]
    assert table.columns[1].dtype == np.int32


def test_pandas_and_polars_mean_the_same() -> None:
    data = {"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]}
    schema = jr.as_table(pd.DataFrame(data)).schema
    assert schema == jr.as_table(pl.DataFrame(data)).schema
    for frame in (pd.DataFrame(data), pl.DataFrame(data), jr.as_table(pl.DataFrame(data))):
        table = conform(frame, schema)
        assert [column.tolist() for column in table.columns] == [[1.0, 2.0, 3.0], [0, 1, 0]]


def test_tables_are_matched_by_name_and_categories() -> None:
    schema = jr.as_table(pd.DataFrame({"a": [1.0], "b": ["x"]})).schema
    other = own(pd.DataFrame({"b": ["x", "w", None], "a": [1.0, 2.0, 3.0]}))
    with pytest.raises(ValueError, match="missing values in 'b'"):
        conform(other, schema)
    assert conform(other[:2], schema).columns[1].tolist() == [0, UNSEEN]


@FRAMES
def test_missing_columns_are_named_and_further_ones_left_out(frame: Any) -> None:
    schema = jr.as_table(frame({"a": [1.0], "b": [2.0]})).schema
    with pytest.raises(ValueError, match="lacks the columns 'b' .*it has 'B', 'c'"):
        conform(frame({"a": [1.0], "B": [2.0], "c": [3.0]}), schema)
    wide = {"c": ["x"], "b": [2.0], "day": [datetime.date(2024, 1, 1)], "a": [1.0]}
    for X in (frame(wide), wide, [{name: values[0] for name, values in wide.items()}]):
        assert [column.tolist() for column in conform(X, schema).columns] == [[1.0], [2.0]]
    del wide["day"]
    assert conform(jr.as_table(wide), schema).columns[1].tolist() == [2.0]
    with pytest.raises(ValueError, match="further columns 'c'"):
        conform(frame(wide), schema, exact=True)
    with pytest.raises(ValueError, match="has 3 columns, .* fitted on 2; .* in order: 'a', 'b'"):
        conform(np.ones((1, 3)), schema)
    with pytest.raises(ValueError, match="'a' of X is categorical, but was numeric"):
        conform(frame({"a": ["1"], "b": [2.0]}), schema)


def test_arrays_are_matched_by_position() -> None:
    schema = jr.as_table(pd.DataFrame({"a": [1.0], "b": [2.0]})).schema
    np.testing.assert_array_equal(conform([[3, 4]], schema).numeric_matrix(), [[3, 4]])
    with pytest.raises(ValueError, match="3 columns, but the model was fitted on 2"):
        conform(np.ones((1, 3)), schema)
    categorical = jr.as_table(pd.DataFrame({"b": ["x"]})).schema
    with pytest.raises(ValueError, match="is numeric, but was categorical"):
        conform(np.ones((1, 1)), categorical)


@FRAMES
def test_new_data_may_have_no_rows(frame: Any) -> None:
    rows = frame({"a": [1.0, 2.0], "b": ["x", "y"]})
    schema = own(rows).schema
    for X in (rows[:0], jr.as_table(rows)[:0]):
        assert conform(X, schema).shape == (0, 2)
    assert conform(np.zeros((0, 1)), jr.as_table([[1.0]]).schema).shape == (0, 1)


@FRAMES
def test_one_row_that_misses_everything(frame: Any) -> None:
    schema = own(frame({"a": [1.0, 2.0], "b": ["x", "y"]})).schema
    table = conform(frame({"a": [None], "b": [None]}), schema)
    assert np.isnan(table.columns[0][0])
    assert table.columns[1].tolist() == [MISSING]
    with pytest.raises(ValueError, match="missing values in 'a', 'b'"):
        conform(
            frame({"a": [None], "b": [None]}), jr.as_table(frame({"a": [1.0], "b": ["x"]})).schema
        )


def test_infinite_and_refused_missing_values_in_new_data() -> None:
    schema = jr.as_table([[1.0]]).schema
    with pytest.raises(ValueError, match="infinite"):
        conform([[np.inf]], schema)
    with pytest.raises(ValueError, match="missing values in 'x0'"):
        conform([[1.0], [np.nan]], schema)


@pytest.mark.filterwarnings("ignore:column 'p' of X has none of the categories")
@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(["a", "b", "c", "new", None]), min_size=1, max_size=8),
    st.permutations(["p", "q", "r"]),
)
def test_conforming_agrees_with_a_loop(values: list[str | None], order: list[str]) -> None:
    schema = own(pl.DataFrame({"p": ["a", "b", "c"], "q": [1.0, 2.0, 3.0], "r": [0, 1, 2]})).schema
    n = len(values)
    new = {"p": pl.Series(values, dtype=pl.String), "q": np.arange(n) / 3, "r": np.arange(n)}
    table = conform(pl.DataFrame({name: new[name] for name in order}), schema)
    known = {"a": 0, "b": 1, "c": 2, "new": UNSEEN, None: MISSING}
    assert table.columns[0].tolist() == [known[value] for value in values]
    np.testing.assert_array_equal(table.columns[1], np.arange(n) / 3)


# Targets and weights

LABELS = {
    "text": (["b", "a", "b"], ("a", "b")),
    "booleans": ([True, False, True], (False, True)),
    "integers": ([7, 3, 7], (3, 7)),
    "floats": ([1.0, 0.0, 1.0], (0.0, 1.0)),
    "array": (np.array(["b", "a", "b"]), ("a", "b")),
    "objects": (np.array([7, 3, 7], object), (3, 7)),
    "pandas": (pd.Series(["b", "a", "b"]), ("a", "b")),
    "pandas object": (pd.Series(["b", "a", "b"], dtype=object), ("a", "b")),
    "pandas category": (pd.Series(pd.Categorical(["b", "a", "b"])), ("a", "b")),
    "pandas Int64": (pd.Series([7, 3, 7], dtype="Int64"), (3, 7)),
    "pandas boolean": (pd.Series([True, False, True], dtype="boolean"), (False, True)),
    "pandas string": (pd.Series(["b", "a", "b"], dtype="string"), ("a", "b")),
    "polars": (pl.Series(["b", "a", "b"]), ("a", "b")),
    "polars category": (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ("a", "b")),
    "polars integers": (pl.Series([7, 3, 7]), (3, 7)),
    "variable-width text": (np.array(["b", "a", "b"], np.dtypes.StringDType()), ("a", "b")),
    "an order of pandas": (pd.Categorical(list("aba"), ["c", "b", "a"], ordered=True), ("b", "a")),
    "of a series": (pd.Series(pd.Categorical([3, 7, 3], [7, 3], ordered=True)), (7, 3)),
    "of polars": (pl.Series(["a", "b", "a"], dtype=pl.Enum(["b", "a"])), ("b", "a")),
    "of intervals": (pd.cut(np.array([10.0, 2.0, 10.0]), [0, 9, 11]), ("(0, 9]", "(9, 11]")),
}


def test_labels_keep_their_order() -> None:
    y = pd.Categorical(["low", "high"], ["low", "mid", "high"], ordered=True)
    labels = OrderedLabels.of(target_array(y), label_order(y))
    for one in (labels, labels[::-1], copy.copy(labels), pickle.loads(pickle.dumps(labels))):
        assert label_order(one) == ("low", "mid", "high")
        assert class_target(one)[1] == ("low", "high")
    assert label_order(np.asarray(labels)) == ()
    assert type(OrderedLabels.of(np.arange(2), ())) is np.ndarray
    for missing in (pd.Categorical([*y, None], y.categories, ordered=True), pd.cut([1, 9], [0, 2])):
        with pytest.raises(ValueError, match="y has missing values"):
            class_target(missing)


@pytest.mark.parametrize(("y", "classes"), LABELS.values(), ids=LABELS.keys())
def test_class_labels(y: Any, classes: tuple[Any, ...]) -> None:
    codes, found = class_target(y, 3)
    assert found == classes
    assert [type(label) for label in found] == [type(label) for label in classes]
    assert codes.tolist() == [1, 0, 1]
    target, found = binary_target(y, 3)
    assert found == classes
    assert target.dtype == np.float64
    assert target.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([1, 1], ValueError, "only one class"),
        ([], ValueError, "empty"),
        ([[1], [2]], ValueError, "ravel"),
        ([[1, 2]], ValueError, "one-dimensional"),
        (pd.DataFrame({"a": [1, 2]}), ValueError, r"pass y\['a'\]"),
        (pl.DataFrame({"a": [1, 2]}), ValueError, r"pass y\['a'\]"),
        (None, ValueError, "one-dimensional"),
        ("ab", ValueError, "one-dimensional"),
        ([np.nan, 1.0], ValueError, "missing"),
        (np.array([np.nan, 1.0]), ValueError, "NaN"),
        ([None, "a"], ValueError, "missing"),
        (pd.Series(["a", None]), ValueError, "missing"),
        (pd.Series(["a", pd.NA], dtype="string"), ValueError, "missing"),
        (pd.Series([True, None], dtype="boolean"), ValueError, "missing"),
        (pd.Series([1, None], dtype="Int64"), ValueError, "NaN"),
        (pl.Series(["a", None]), ValueError, "missing"),
        (pl.Series([1, None]), ValueError, "NaN"),
        ([1, "a"], TypeError, "int, str"),
        ([1, True], TypeError, "bool, int"),
        ([1j, 2], TypeError, "complex"),
        (np.array([b"a", b"b"]), TypeError, "type"),
        ([2**70, 1], ValueError, "64 bits"),
        (np.ma.masked_array([1, 2], [False, True]), TypeError, "masked"),
        (np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"), TypeError, "datetime64"),
        (np.arange(100) / 7, ValueError, "regression"),
    ],
)
def test_bad_labels_are_refused(y: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        class_target(y)


def test_lengths_and_class_counts() -> None:
    with pytest.raises(ValueError, match="y has 2 values, but X has 3 rows"):
        class_target([0, 1], 3)
    with pytest.raises(ValueError, match="y has 2 values, but X has 3 rows"):
        regression_target([0, 1], 3)
    with pytest.raises(ValueError, match=r"3 classes.*this learner is binary"):
        binary_target([0, 1, 2])


def test_regression_targets() -> None:
    for y in (
        [1, 2],
        [1.0, 2.0],
        pd.Series([1, 2], dtype="Int64"),
        pl.Series([1, 2]),
        np.array([1, 2], np.float32),
    ):
        target = regression_target(y)
        assert target.dtype == np.float64
        assert target.tolist() == [1.0, 2.0]
    assert regression_target([True, False]).tolist() == [1.0, 0.0]
    with pytest.raises(TypeError, match="text labels"):
        regression_target(["1", "2"])
    with pytest.raises(ValueError, match="infinite"):
        regression_target([1.0, np.inf])
    with pytest.raises(ValueError, match="y has integers beyond"):
        regression_target(2**60 + np.arange(3))
    with pytest.raises(TypeError, match="y has values of type Decimal.*astype.float"):
        regression_target([Decimal("1.5")] * 3)
    with pytest.raises(ValueError, match="numbers written as text; pass pandas.to_numeric"):
        class_target([f"{value:.3f}" for value in np.arange(30) / 7])
    for column in ([[1], [2]], pd.DataFrame({("a", "b"): [1, 2]})):
        with pytest.raises(ValueError, match=r"one column; pass numpy.ravel\(y\)"):
            target_array(column)


class OfArrow:
    """As pyarrow's arrays do: `to_numpy` copies nothing, and so refuses text and booleans."""

    def to_numpy(self) -> np.ndarray:
        raise ValueError("Needed to copy 1 chunks with 0 nulls, but zero_copy_only was True")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(["no", "yes"], object)


def test_columns_of_every_library_are_targets() -> None:
    series = pl.Series(["no", "yes"])
    for y in (
        OfArrow(),
        series,
        series.cast(pl.Categorical),
        pd.Series(["no", "yes"], dtype="category"),
    ):
        assert target_array(y).tolist() == ["no", "yes"]
    for missing in (
        pl.Series(["no", None]),
        pd.Series([1, None], dtype="Int64"),
        pl.Series([True, None]),
    ):
        with pytest.raises(ValueError, match="y has .*drop those rows"):
            target_array(missing)


def test_labels_that_numpy_would_merge_are_refused() -> None:
    with pytest.raises(ValueError, match="y has labels that end in a NUL"):
        target_array(["a", "a\0", "b"])


def test_target_array_keeps_integers_and_copies_nothing_odd() -> None:
    assert target_array([1, 2]).dtype == np.int64
    assert target_array([1, 2.5]).dtype == np.float64
    assert target_array(np.array([1, 2], np.int8)).dtype == np.int8


def test_sample_weights() -> None:
    np.testing.assert_array_equal(check_sample_weight(None, 3), np.ones(3))
    weights = check_sample_weight([1, 0, 2], 3)
    assert weights.dtype == np.float64
    assert weights.tolist() == [1.0, 0.0, 2.0]
    np.testing.assert_array_equal(check_sample_weight(pl.Series([1, 2]), 2), [1.0, 2.0])
    given = np.ones(2)
    check_sample_weight(given, 2)[0] = 5
    assert given[0] == 1


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1.0], ValueError, "1 values, but X has 2 rows"),
        ([[1.0, 1.0]], ValueError, "one-dimensional"),
        (1.0, ValueError, "one-dimensional"),
        ([1.0, np.nan], ValueError, "NaN"),
        ([1.0, np.inf], ValueError, "infinite"),
        ([1.0, -1.0], ValueError, "negative"),
        ([0.0, 0.0], ValueError, "zero for every row"),
        (["a", "b"], TypeError, "sample_weight.*numbers"),
        ([1j, 1], TypeError, "sample_weight.*numbers"),
        ([object(), 1], TypeError, "sample_weight.*numbers"),
        ([[1.0], [1.0, 2.0]], TypeError, "sample_weight.*numbers"),
        ({"a": 1.0}, TypeError, "sample_weight.*numbers"),
    ],
)
def test_bad_sample_weights_are_refused(weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_sample_weight(weights, 2)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["a", "b", "c"], True), ([True, False], True), ([0, 1, 2], True), ([0.5, 7.0, 7.0], True),
        ([0.0, 1.0, 2.0], False), (list(range(11)), False), ([1.5], False),
        (pd.Categorical(range(11)), True), (pd.Categorical(range(11), ordered=True), True),
    ],
)  # fmt: skip
def test_what_looks_like_classes(y: Any, classes: bool) -> None:
    assert holds_classes(y) == classes


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ((82, 86, 60, 42, 20, 8, 2), True), ((900, 70, 20, 5), True), ((20, 30, 12, 3, 0, 1), True),
        ((50, 50, 50, 50), False), ((178, 182, 177, 183, 181, 182, 181, 179, 174, 180), False),
        ((0, 82, 60, 42, 8, 2), False), ((80, 20, 5), False), ((500, 20, 300, 30, 10), False),
    ],
)  # fmt: skip
def test_what_looks_like_counts(rows: tuple[int, ...], counts: bool) -> None:
    y = np.repeat(np.arange(len(rows)), rows)
    assert look_like_counts(y) == counts
    assert not look_like_counts(y.astype(float))
    assert not look_like_counts(y.astype(str))
    assert not look_like_counts(pd.Categorical(y))


# Text that may be something else

_NUMBERS = [f"{k / 7:.3f}" for k in range(40)]
SUSPECT = {
    "one stray value": (["unknown", *_NUMBERS], r"most of its values .* others are 'unknown'"),
    "many of one": ([*["?"] * 15, *_NUMBERS], r"most of its values are numbers; others are '\?'"),
    "no stray value": (_NUMBERS, r"its values are numbers, such as '0.000'"),
    "whole numbers": (["n/a", *map(str, range(18, 80))], r"others are 'n/a'"),
    "missing ones": ([None, *_NUMBERS, "-"], r"others are '-'"),
    "shares": ([f"{k}%" for k in range(30)], r"such as '0%': remove % and convert it"),
    "dates": ([f"2024-01-{k:02d}" for k in range(1, 32)], r"dates or times .* '2024-01-01'"),
    "times": ([f"{k}/12/2024 10:30" for k in range(1, 30)], r"dates or times as text"),
}
FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": lambda texts: pd.DataFrame({"a": texts}),
    "pandas objects": lambda texts: pd.DataFrame({"a": pd.Series(texts, dtype=object)}),
    "polars": lambda texts: pl.DataFrame({"a": texts}),
    "columns": lambda texts: {"a": texts},
    "records": lambda texts: [{"a": text} for text in texts],
    "array": lambda texts: np.array([[text, 1.0] for text in texts], object),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize(("texts", "words"), SUSPECT.values(), ids=SUSPECT.keys())
def test_numbers_and_dates_as_text_are_refused(form: Any, texts: list[Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"column '(a|x0)' of X .*{words}"):
        own(form(texts * 3))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "texts",
    [
        ["0", "1", "2", "3", "8+"], ["1.5", "2.5", "unknown"], [f"{k:05d}" for k in range(30)],
        ["none", *(f"{k:05d}" for k in range(30))], [str(10**17 + k) for k in range(30)],
        [f"{k} to {k + 9}" for k in range(30)], [f"1.2.{k}" for k in range(30)], ["True", "False"],
    ],
    ids=str,
)  # fmt: skip
def test_codes_are_categories(texts: list[str]) -> None:
    assert jr.as_table({"a": texts * 3}).schema.features[0].categories == tuple(sorted(texts))


def test_declared_categories_are_believed() -> None:
    texts = ["unknown", *_NUMBERS] * 3
    for X in (
        pd.DataFrame({"a": pd.Categorical(texts)}),
        pl.DataFrame({"a": pl.Series(texts, dtype=pl.Categorical)}),
        {"a": pd.Categorical(texts)},
    ):
        assert len(jr.as_table(X).schema.features[0].categories or ()) == 41
    with pytest.warns(UserWarning, match="its values are numbers, such as '0': convert it"):
        assert jr.as_table({"a": [*map(str, range(12))] * 3}).schema.features[0].kind == "text"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_nearly_a_category_per_row_is_worth_a_warning(form: Any) -> None:
    names = [f"n{k}" for k in range(60)]
    for texts in (names, [*["other"] * 90, *names], [*names, *names[:50]]):
        words = f"has {len(set(texts))} categories in {len(texts)} rows.* does not generalise"
        with pytest.warns(UserWarning, match=words):
            jr.as_table(form(texts))
    for texts in (names[:19], names * 2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jr.as_table(form(texts))


def test_text_in_a_numeric_column_is_named_at_prediction() -> None:
    schema = jr.as_table({"a": [1.0, 2.0]}).schema
    with pytest.raises(ValueError, match="but was numeric in fit .it has 'unknown'.; convert"):
        conform({"a": ["3.041", "unknown"]}, schema)


def test_ordered_categories_of_a_dict_keep_their_order() -> None:
    sizes = pd.Categorical(["M", "S"], ["S", "M"], ordered=True)
    assert jr.as_table({"size": sizes}).schema.features[0].levels == ("S", "M")


def test_numbers_whose_products_overflow_or_vanish_are_refused() -> None:
    with pytest.raises(ValueError, match="sample_weight .*divide it by its maximum"):
        check_sample_weight([1e-200, 1e-230], 2)
    for least in (1e-200, 1e-320):
        with pytest.raises(ValueError, match="sample_weight .* times its maximum .*set them to 0"):
            check_sample_weight([1.0, least], 2)
    with pytest.raises(ValueError, match="y has values beyond .*divide y by a constant"):
        regression_target([1.0, -1e200])
    with pytest.raises(
        ValueError, match="y has values that differ by less than .*multiply y by a constant"
    ):
        regression_target([0.0, 1e-200])
    assert regression_target([1e-200, 1e-200, 1e-50]).tolist() == [1e-200, 1e-200, 1e-50]


def test_a_table_is_an_array_or_a_dataframe(table: jr.Table) -> None:
    with pytest.raises(TypeError, match=r"categorical columns 'job'.*to_dataframe\(table\)"):
        np.asarray(table)
    numbers = jr.as_table(np.array([[1.0, np.nan], [2.0, 3.0]]), missing="own_category")
    np.testing.assert_array_equal(np.asarray(numbers), [[1.0, np.nan], [2.0, 3.0]])
    assert np.asarray(numbers, np.float32).dtype == np.float32
    for backend in ("pandas", "polars"):
        frame = jr.to_dataframe(table, backend)
        assert list(frame.columns) == ["age", "job", "income"]
        again = jr.as_table(frame, missing="own_category")
        np.testing.assert_array_equal(again.columns[0], table.columns[0])
        assert list(frame["job"])[:3] == ["clerk", "cook", "smith"]
        assert frame["job"].is_null()[3] if backend == "polars" else frame["job"].isna()[3]


# Order and hand-made tables


def test_an_index_in_another_order_is_refused() -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0] * 5})
    y = pd.Series(np.where(frame["a"] > 1, "yes", "no"))
    weight = pd.Series(np.ones(20))
    model = jr.boosting.fit(frame, y, max_rules=1).model
    calls: list[Callable[..., object]] = [
        lambda X, y, w: jr.boosting.fit(X, y, w, max_rules=1),
        lambda X, y, w: jr.exact_list.fit(X, y, w, max_rules=1),
        lambda X, y, w: jr.paths.direct(X, (y == "yes") * 1.0, sample_weight=w),
        lambda X, y, w: jr.default_forest(X, y, n_trees=2, sample_weight=w),
        lambda X, y, w: jr.estimators.RuleBoostingClassifier(max_rules=1).fit(X, y, w),
        lambda X, y, w: jr.accuracy(model, X, y, w),
        lambda X, y, w: jr.risk(model, X, y, w),
        lambda X, y, w: jr.refit(model, X, y, sample_weight=w),
        lambda X, y, w: jr.calibrate(model, X, y, sample_weight=w),
        lambda X, y, w: jr.operating_point(model, X, y, max_alarms=0.5, sample_weight=w),
        lambda X, y, w: jr.scores_by_group(model, X, y, "a", w),
        lambda X, y, w: jr.lire.objective(
            model, X, y, global_penalty=0.1, local_penalty=0.1, sample_weight=w
        ),
    ]
    for call in calls:
        call(frame, y, weight)
        with pytest.raises(ValueError, match="y has the index of X in another order"):
            call(frame, y.iloc[::-1], weight)
        with pytest.raises(ValueError, match="sample_weight has the index of X in another order"):
            call(frame, y, weight.iloc[::-1])
        with pytest.raises(TypeError, match="sample_weight is a masked array"):
            call(frame, y, np.ma.masked_equal(np.arange(20.0), 3))
    twice = frame.set_index(np.arange(20) // 2)
    with pytest.raises(ValueError, match="another order.*its labels repeat"):
        jr.boosting.fit(twice, y.set_axis(twice.index[::-1]))
    split = frame.iloc[5:15]  # another index: the rows are paired by position
    jr.accuracy(model, split, y.iloc[5:15].reset_index(drop=True))
    with pytest.raises(ValueError, match="sample_weight has the index of y"):
        jr.boosting.fit(frame.to_numpy(), y, weight.iloc[::-1], max_rules=1)


def test_tables_made_by_hand_are_checked() -> None:
    table = jr.as_table(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    a, b = table.columns
    for columns, message in (
        ((a,), "must be 2, one per feature, got 1"),
        ((a, b[:1]), "must have one length"),
        ((b, b), "'a' must be an array of numbers"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            jr.Table(table.schema, columns)
    with pytest.raises(ValueError, match="'b' of X has categories"):
        jr.as_table(jr.Table(table.schema, (a, b + 1)))
    with pytest.raises(ValueError, match="'b' of X has categories"):
        conform(jr.Table(table.schema, (a, b + 1)), table.schema)


# Looking at a table


def test_head_description_and_pandas() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 4.0], "b": ["x", "y", None, "y"]})
    table = own(frame)
    assert len(table.head(2)) == 2
    assert len(table.head()) == 4
    back = table.to_pandas()
    assert back.isna().equals(frame.isna())
    assert back.dropna().to_numpy().tolist() == frame.dropna().to_numpy().tolist()
    assert str(table).splitlines()[1].split() == ["a", "b"]
    assert str(table).splitlines()[2].split() == ["1", "x"]
    lines = str(table.describe()).splitlines()
    assert lines[2].split() == ["a", "number", "1", "1", "to", "4", "2", "3", "3.5"]
    assert lines[3].split() == ["b", "text", "1", "2", "categories", "y", "(2),", "x", "(1)"]
    assert table._repr_html_().count("<tr>") == 5
    assert "categories" in table.describe()._repr_html_()
    wide = jr.as_table(np.zeros((2, 20)))
    assert str(wide).splitlines()[1].endswith("...")
    with pytest.raises(ValueError, match="n must be at least 0"):
        table.head(-1)
