"""Special values: codes among the numbers of a column, read, fitted, printed and saved."""

import pickle
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

import jaxrules as jr
from jaxrules.data.table import A_NUMBER, MISSING, conform
from jaxrules.estimators import RuleBoostingClassifier
from jaxrules.rules.lowered import Direction
from jaxrules.users.inspection import group_of_rows

CODES = {"months": [-7, -8, -9]}
FEATURE = jr.Feature("months", special_values=(-9.0, -8.0, -7.0))
COMPANION = jr.Feature("months (special)", ("-9", "-8", "-7", A_NUMBER), source="months")


def loans(n: int = 200, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Raw columns, and labels that depend on the numbers and on one code."""
    rng = np.random.default_rng(seed)
    months = np.where(rng.random(n) < 0.3, rng.choice([-7.0, -8.0], n), rng.integers(0, 60, n))
    z = rng.normal(size=n)
    bad = ((months >= 0) & (months <= 20)) | ((months == -8) & (z > 0))
    return {"months": months, "z": z}, np.where(bad, "bad", "good")


def by_hand(table: jr.Table) -> jr.Table:
    """The two columns of each number with special values, as ordinary columns."""
    features = (jr.Feature(f.name, f.categories, f.levels) for f in table.schema.features)
    return jr.Table(jr.Schema(tuple(features), "own_category"), table.columns)


CONTAINERS = {
    "dict": lambda X: X,
    "records": lambda X: [dict(zip(X, row, strict=True)) for row in zip(*X.values(), strict=True)],
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "Table": jr.as_table,
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_column_becomes_numbers_and_a_companion(container: Any) -> None:
    X = container({"months": [3.0, -7.0, -8.0, -1.0], "z": [0.0, 1.0, 2.0, 3.0]})
    table = jr.as_table(X, special_values=CODES)
    assert table.schema.features == (FEATURE, jr.Feature("z"), COMPANION)
    np.testing.assert_array_equal(table.columns[0], [3, np.nan, np.nan, -1])
    assert table.columns[2].tolist() == [3, 2, 1, 3]
    again = conform(X, table.schema)
    assert all(map(np.array_equal, again.columns, table.columns, [True] * 3))
    assert table.to_columns()["months"].tolist() == [3.0, -7.0, -8.0, -1.0]
    assert list(table.to_columns()) == ["months", "z"]
    assert jr.as_table(table).schema == table.schema


def test_arrays_by_position_and_rows_of_tables() -> None:
    X = np.array([[0.0, -1.0], [1.0, 5.0], [2.0, np.nan]])
    table = jr.as_table(X, missing="own_category", special_values={1: [-1]})
    assert table.names == ("x0", "x1", "x1 (special)")
    assert table.columns[2].tolist() == [0, 1, MISSING]
    np.testing.assert_array_equal(np.asarray(table), X)
    np.testing.assert_array_equal(np.asarray(table[1:]), X[1:])
    np.testing.assert_array_equal(np.asarray(conform(X, table.schema)), X)
    assert table.columns_with_missing() == ("x1",)
    with pytest.raises(ValueError, match="missing values in 'x1'"):
        jr.as_table(X, special_values={1: [-1]})
    with pytest.raises(ValueError, match="missing values in 'x1'"):
        conform(X, jr.as_table(X[:2], special_values={"x1": [-1]}).schema)


def test_a_table_shows_the_columns_of_x() -> None:
    table = jr.as_table(loans()[0], special_values=CODES)
    assert repr(table) == (
        "Table(200 rows, 2 columns, 0 of them categorical, 1 with special values)"
    )
    assert str(table).splitlines()[1].split() == ["months", "z"]
    described = str(table.describe()).splitlines()
    assert described[2].startswith("months            number   0        0 to 59")
    assert " ".join(described[4].split()) == (
        "months (special) special 0 2 categories -7 (30), -8 (23)"
    )


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([-7], TypeError, "special_values must map columns to lists of numbers.*got list"),
        ({"month": [-7]}, ValueError, "names 'month', which is not a column; the columns are"),
        ({4: [-7]}, ValueError, "special_values names column 4; there are 4"),
        ({1.5: [-7]}, TypeError, "special_values must name columns by name or position, got 1.5"),
        ({"job": [-7]}, TypeError, r"\['job'\]: column 'job' is of the kind 'text', but special"),
        ({"flag": [1]}, TypeError, "column 'flag' is of the kind 'True / False'"),
        ({"months": [-7], 0: [-8]}, ValueError, "column 'months' has special values already"),
        ({"months": []}, ValueError, r"special_values\['months'\] must be a non-empty sequence"),
        ({"months": -7}, TypeError, "must be a non-empty sequence of numbers, got int"),
        ({"months": ["-7"]}, TypeError, r"special_values\['months'\] must be a number, got str"),
        ({"months": [np.nan]}, ValueError, r"special_values\['months'\] must be"),
        ({"months": [np.inf]}, ValueError, r"special_values\['months'\] must be"),
        ({"months": [3, -7]}, ValueError, "column 'months' of X has no other values; make it te"),
    ],
)
def test_bad_special_values_are_refused(given: Any, error: type, message: str) -> None:
    X = {"months": [3, -7], "flag": [True, False], "job": ["a", "b"], "z": [0.5, 1.5]}
    with pytest.raises(error, match=message):
        jr.as_table(X, special_values=given)


def test_the_companion_needs_a_name() -> None:
    X = {"months": [3, -7], "months (special)": [0, 1]}
    with pytest.raises(ValueError, match=r"needs the name 'months \(special\)', which X has"):
        jr.as_table(X, special_values=CODES)


def test_schemas_and_tables_made_by_hand_are_checked() -> None:
    with pytest.raises(ValueError, match="features must end in the companions"):
        jr.Schema((FEATURE, jr.Feature("z")))
    with pytest.raises(ValueError, match="features must end in the companions"):
        jr.Schema((FEATURE, COMPANION, jr.Feature("z")))
    with pytest.raises(ValueError, match="features must end in the companions"):
        jr.Schema((jr.Feature("months"), COMPANION))
    with pytest.raises(TypeError, match="special_values of feature 'a' must be a tuple of numbers"):
        jr.Feature("a", ("x",), special_values=(1.0,))
    with pytest.raises(ValueError, match="at least one, finite, distinct and ascending"):
        jr.Feature("a", special_values=(1.0, 0.0))
    numbers, codes = np.array([1.0, np.nan]), np.array([3, 3], np.int32)
    with pytest.raises(ValueError, match="'months' of X has a number where"):
        jr.as_table(jr.Table(jr.Schema((FEATURE, COMPANION)), (numbers, codes)))


C = jr.Condition
TEXTS = [
    (C.above(0, 3.0), "months > 3", "months > 3"),
    (C.at_most(0, 3.0), "(months <= 3 and not special)", "(months <= 3 and not special)"),
    (C.at_most(0, -8.0), "(months <= -8 and not special)", "(months <= -8 and not special)"),
    (C.below(0, -9.0), "months < -9", "months < -9"),
    (C.at_most(0, 3, True), "(months <= 3 or special)", "(months <= 3 or special or missing)"),
    (C.is_missing(0, True), "months is special", "months is special or missing"),
    (C.is_present(0, None), "months is a number", "months is a number"),
    (C.one_of(1, [2]), "months == -7", "months == -7"),
    (C.one_of(1, [1, 2], True), "months in {-8, -7}", "(months in {-8, -7} or missing)"),
    (C.one_of(1, [0, 3]), "months not in {-8, -7}", "months not in {-8, -7} and not missing"),
    (C.none_of(1, [2], 4), "months != -7", "months != -7"),
    (C.none_of(1, [3], 4), "months is special", "(months is special or missing)"),
    (C.none_of(1, [0, 1, 2], 4), "months is a number", "(months is a number or missing)"),
    (C.one_of(1, [MISSING]), "months never", "months is missing"),
    (
        C.at_most(Direction((0, 1), (1.0, 2.0), (MISSING, 0)), 3.0),
        "number(months) + 2 [months == -9] <= 3",
        "number(months) + 2 [months == -9] <= 3",
    ),
]


@pytest.mark.parametrize(("condition", "text", "with_missing"), TEXTS)
def test_conditions_as_text(condition: jr.Condition, text: str, with_missing: str) -> None:
    schema = jr.Schema((FEATURE, COMPANION))
    assert condition.describe(schema) == text
    assert condition.describe(jr.Schema(schema.features, "own_category")) == with_missing


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([-9.0, -8.0, -7.0, -6.5, 0.0, 3.0, np.nan]), min_size=1, max_size=20),
    st.sampled_from(["lower", "upper"]),
    st.sampled_from([-10.0, -8.0, -7.5, 0.0, 2.0]),
)
def test_thresholds_hold_for_no_special_value(values: list[float], end: str, at: float) -> None:
    months = np.array([*values, 0.0])
    table = jr.as_table({"months": months}, missing="own_category", special_values=CODES)
    number = ~np.isnan(months) & ~np.isin(months, CODES["months"])
    side = months > at if end == "lower" else months <= at
    rules = jr.Conjunctions.build(
        table.schema,
        [
            [C.above(0, at) if end == "lower" else C.at_most(0, at)],
            [C.is_present(0, None)],
            [C.one_of(1, [2])],
            [C.none_of(1, [0, 1], 4)],
        ],
    )
    expected = [number & side, number, months == -7, ~np.isin(months, [-9, -8])]
    np.testing.assert_array_equal(rules.satisfied(table), np.stack(expected, axis=1))


FITS: dict[str, Any] = {
    "boosting": lambda X, y, **more: jr.boosting.fit(X, y, max_rules=3, **more),
    "drnet": lambda X, y, **more: jr.drnet.fit(X, y, max_rules=5, iterations=2000, **more),
    "exact_list": lambda X, y, **more: jr.exact_list.fit(
        X, y, max_rules=2, max_cut_points=3, **more
    ),
    "glrm": lambda X, y, **more: jr.glrm.fit(X, y, max_rules=4, linear_terms=True, **more),
    "lire": lambda X, y, **more: jr.lire.fit(X, y, max_rules=3, **more),
    "lltboost": lambda X, y, **more: jr.lltboost.fit(X, y, max_rules=2, **more),
    "ltrnet": lambda X, y, **more: jr.ltrnet.fit(X, y, max_rules=4, max_length=2, **more),
    "rulefit": lambda X, y, **more: jr.rulefit.fit(
        X, y, l1_penalty=0.02, linear_terms=True, **more
    ),
    "ssrl": lambda X, y, **more: jr.ssrl.fit(X, y, **more),
    "regression_list": lambda X, y, **more: jr.regression_list.fit(
        X, (y == "bad").astype(float), literal_penalty=0.001, **more
    ),
    "paths": lambda X, y, **more: jr.paths.fit(X, (y == "bad").astype(float), steps=4, **more),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
def test_a_fit_equals_that_on_two_columns(fit: Any, tmp_path: Path) -> None:
    X, y = loans()
    table = jr.as_table(X, special_values=CODES)
    ours, theirs = fit(table, y), fit(by_hand(table), y, missing="own_category")
    # A linear model of two columns has an indicator more, and sums that may round otherwise.
    ulps = int(isinstance(ours.model, jr.paths.CoordinatePath))
    np.testing.assert_array_max_ulp(ours.objective, theirs.objective, ulps)
    model, two = ours.model, theirs.model
    said = jr.predict(model, X)
    np.testing.assert_array_equal(said, jr.predict(two, by_hand(table)))
    np.testing.assert_array_equal(said, jr.predict(model, table))
    assert any(text in str(model) for text in ("special", "== -", "=-", "in {-"))
    jr.save(model, tmp_path / "model.json")
    for again in (jr.load(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        assert again.schema == model.schema
        assert str(again) == str(model)
        np.testing.assert_array_equal(jr.predict(again, X), said)
    assert [str(one) for one in jr.explain(model, X)][:5] == [
        str(one) for one in jr.explain(model, table)
    ][:5]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**16), st.lists(st.sampled_from([-9, -1, 0, 7, 99]), min_size=1, max_size=3))
def test_any_special_values_equal_two_columns(seed: int, codes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    x = rng.choice([*codes, *range(10), np.nan], 120)
    X, y = {"x": x, "z": rng.normal(size=120)}, rng.random(120) < 0.3 + 0.4 * np.isin(x, codes)
    assume(0 < y.sum() < 120)
    table = jr.as_table(X, missing="own_category", special_values={"x": codes})
    np.testing.assert_array_equal(np.asarray(table)[:, 0], x)
    fits = [
        jr.boosting.fit(one, y, max_rules=3, missing="own_category")
        for one in (table, by_hand(table))
    ]
    rules = [fit.model.conjunctions for fit in fits]
    assert [list(rule) for rule in rules[0]] == [list(rule) for rule in rules[1]]
    assert fits[0].objective == fits[1].objective
    risks = [jr.risk(fits[0].model, X, y), jr.risk(fits[1].model, by_hand(table), y)]
    assert risks[0] == risks[1]


def test_paths_predict_special_values_that_fit_did_not_see() -> None:
    z = np.random.default_rng(0).normal(size=60)
    X = {"months": np.arange(60.0), "z": z}
    table = jr.as_table(X, missing="own_category", special_values=CODES)
    X["months"][:5] = -8
    seen = jr.as_table(X, missing="own_category", special_values=CODES)
    for fitted_on in (table, seen):
        model = jr.paths.fit(fitted_on, z + X["months"], steps=3, missing="own_category").model
        scores = jr.predict(model, {"months": [-7, -9, -8], "z": [0.0, 0.0, 0.0]})
        assert scores[0] == scores[1]
        with pytest.raises(ValueError, match="missing values in 'months', which had none in fit"):
            jr.predict(model, {"months": [np.nan, 1.0], "z": [0.0, 0.0]})


def test_constraints_by_name_are_on_the_numbers() -> None:
    X, y = loans()
    table = jr.as_table(X, special_values=CODES)
    rising = jr.boosting.fit(table, y == "good", max_rules=6, monotone={"months": 1}).model
    grid = {"months": np.arange(-5.0, 70.0), "z": np.zeros(75)}
    assert (np.diff(jr.decision_function(rising, grid)) >= 0).all()
    without = jr.boosting.fit(table, y, max_rules=3, forbidden=["months"]).model
    assert "months" not in str(without)
    required = jr.boosting.fit(table, np.sign(X["z"]), max_rules=2, required=["months"]).model
    assert "months" in str(required)


def test_exports_ask_for_the_column_of_x() -> None:
    X, y = loans()
    model = jr.boosting.fit(
        jr.as_table(X, special_values=CODES), y, max_rules=2, l2_penalty=1.0
    ).model
    assert "(months < 21 and not special)" in str(jr.to_dataframe(model))
    sql = jr.to_sql(model)
    assert 'WHEN "months" < 21.0E0 AND "months" NOT IN (-9.0E0, -8.0E0, -7.0E0) THEN' in sql
    assert '"months" = -8.0E0' in sql
    assert "(special)" not in sql + jr.to_pmml(model)
    module: dict[str, Any] = {}
    exec(jr.to_python(model), module)
    rows = [{"months": m, "z": z} for m, z in zip(X["months"], X["z"], strict=True)]
    assert [module["predict"](row) for row in rows] == jr.predict(model, X).tolist()


def test_groups_of_rows_keep_special_values() -> None:
    X, y = loans()
    model = jr.boosting.fit(jr.as_table(X, special_values=CODES), y, max_rules=2).model
    groups, codes = group_of_rows(model, X, "months", len(y))
    np.testing.assert_array_equal(groups[codes], X["months"])


def test_estimators_take_the_table_and_predict_raw_rows() -> None:
    X, y = loans()
    table, raw = jr.as_table(X, special_values=CODES), pd.DataFrame(X)
    fitted = RuleBoostingClassifier(max_rules=2).fit(table, y)
    assert fitted.n_features_in_ == 2
    np.testing.assert_array_equal(fitted.predict(raw), fitted.predict(table))


def test_a_forest_on_the_raw_columns_is_refused() -> None:
    X, y = loans()
    table = jr.as_table(X, special_values=CODES)
    with pytest.raises(ValueError, match=r"'months \(special\)'.*train the forest on .*one_hot"):
        jr.extract_rules(DecisionTreeClassifier(max_depth=2).fit(pd.DataFrame(X), y), table)
    forest = DecisionTreeClassifier(max_depth=2).fit(table.one_hot()[0], y)
    assert len(jr.extract_rules(forest, table))


def test_regions_are_those_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = loans()
    model = jr.boosting.fit(jr.as_table(X, special_values=CODES), y, max_rules=2).model
    grids: list[jr.Table] = []
    monkeypatch.setattr(
        "jaxrules.users.plots.predict",
        lambda model, grid: grids.append(grid) or jr.predict(model, grid),
    )
    jr.plots.decision_regions(model, X, y)
    plt.close("all")
    (grid,) = grids
    assert not np.isnan(np.asarray(grid)).any()
    assert jr.as_table(grid).schema == jr.as_table(X, special_values=CODES).schema
