"""One row or a few: the quick ways of reading and of evaluating agree with those for many rows, and
what models keep for them is nobody else's business.
"""

import copy
import itertools
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
from jaxrules.data import table as tables
from jaxrules.data.table import Feature, Schema, conform
from jaxrules.rules import lowered

C = jr.Condition
MIXED = (
    Feature("age"),
    Feature("job", ("1", "cook", "nan", "vet")),
    Feature("member", levels=(False, True)),
    Feature("size", levels=("S", "M", "L")),
    Feature("number"),
)


def schema_of(features: tuple[Feature, ...] = MIXED, missing: Any = "refuse") -> Schema:
    return Schema(features, missing, ("no", "yes"))


def read(X: Any, schema: Schema, quick: bool) -> tuple[Any, ...]:
    """The columns, or the error, and the warnings."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not quick:
            patch.setattr(tables, "columns_of", lambda *_: None)
        try:
            columns = [(c.dtype, c.tolist()) for c in conform(X, schema).columns]
        except (TypeError, ValueError) as error:
            return type(error), str(error)
    return repr(columns), [str(one.message) for one in caught]


_values = [
    st.sampled_from([0, 1, 2.5, -0.0, 1e300, 2**53, True, np.float64(3), np.int64(4), "1"]),
    st.sampled_from(["cook", "vet", "1", "1.0", "new", "nan", 1, 1.0, np.str_("vet"), True]),
    st.sampled_from([True, False, 0, 1, 1.0, np.True_, 2, "True"]),
    st.sampled_from(["S", "M", "L", "XL", 1]),
    st.sampled_from([7, 8.5, np.inf, 10**30, 1j, np.float32(0.1)]),
]
_missing = st.sampled_from([None, np.nan])


@settings(max_examples=100, deadline=None)
@given(st.data(), st.booleans())
def test_rows_mean_the_same_whichever_way_they_are_read(data: st.DataObject, gaps: bool) -> None:
    common = [[25, 41.5], ["cook", "vet"], [True, False], ["S", "L"], [3.5, 4]]
    strange = data.draw(st.lists(st.sampled_from(range(5)), max_size=2))
    rows = []
    for _ in range(data.draw(st.integers(1, 3))):
        row = {}
        for i, feature in enumerate(MIXED):
            usual = st.sampled_from(common[i])
            known: Any = _values[i] | usual if i in strange else usual
            row[feature.name] = data.draw(known | _missing if gaps and i in strange else known)
        rows.append(row)
    codes = data.draw(st.sampled_from([None, (3.5, 7.0)]))  # special values among the numbers
    features = MIXED
    if codes is not None:
        number = Feature("number", special_values=codes)
        features = (*MIXED[:4], number, number.companion())
    schema = schema_of(features, data.draw(st.sampled_from(["refuse", "own_category"])))
    further = data.draw(st.sampled_from([{}, {"id": "x"}, {1: 2}]))
    forms: list[Any] = [[row | further for row in rows], [dict(reversed(r.items())) for r in rows]]
    try:
        forms += [pd.DataFrame(rows), pd.DataFrame(rows).astype({"job": "category"})]
        with np.errstate(over="ignore"):  # 1e300 is infinite in 32 bits
            forms += [pd.DataFrame(rows).astype({"age": np.float32, "number": object})]
    except (TypeError, ValueError, OverflowError):
        pass  # pandas refuses these values
    for X in forms:
        assert read(X, schema, quick=True) == read(X, schema, quick=False)


@pytest.mark.parametrize("missing", ["refuse", "own_category"])
def test_arrays_mean_the_same_whichever_way_they_are_read(missing: Any) -> None:
    rows, coded = np.array([[1.0, 2.0], [np.nan, 0.1]]), Feature("b", special_values=(-3.0, 2.0))
    plain = schema_of((Feature("a"), Feature("b")), missing)
    special = schema_of((Feature("a"), coded, coded.companion()), missing)
    for schema, X in itertools.product(
        (plain, special),
        (
            rows,
            rows[:1],
            rows[:1].astype(np.float32),
            np.array([[1, 2**53]]),
            np.array([[1, -3]], np.int8),
            np.array([[True, False]]),
            np.array([[np.inf, 0.0]]),
            np.array([[1.0]]),
            np.array([1.0, 2.0]),
            np.array([[1.0, "a"]], object),
            np.ma.masked_equal(rows[:1], 2.0),
            rows[:0],
            np.tile(rows[:1], (100, 1)),
        ),
    ):
        assert read(X, schema, quick=True) == read(X, schema, quick=False)


def test_what_is_read_does_not_follow_the_array() -> None:
    X = np.array([[1.0, 2.0]])
    table = conform(X, schema_of((Feature("a"), Feature("b"))))
    X[:] = 9
    assert [column.tolist() for column in table.columns] == [[1.0], [2.0]]


def models() -> list[Any]:
    """Of one output, of three, with linear terms, a list, one with directions."""
    schema = Schema((*MIXED[:4], Feature("x")), "own_category", ("no", "yes"))
    rules = [
        [C.above(0, 30.0), C.one_of(1, [1, 3])],
        [C.at_most(0, 30.0, missing=True)],
        [C.none_of(1, [1], 4), C.at_least(3, 1.0)],
        [C(0, 25.0, 41.0, True, False)],
        [],
        [C.is_missing(4, True)],
        [C.at_least(jr.Direction((0, 1, 4), (1.0, -2.5, 0.5), (-1, 1, -1)), 20.0)],
    ]
    many = [[C.above(0, float(k))] for k in range(70)]  # two words of bits
    conjunctions = jr.Conjunctions.build(schema, rules)
    rng = np.random.default_rng(0)
    three = conjunctions.with_schema(schema.with_classes(("a", "b", "c")))
    linear = jr.LinearTerms(
        np.array([0], np.int32), np.array([[0.01]]), np.array([-np.inf]), np.array([35.0])
    )
    shares = rng.dirichlet([1.0, 1.0], size=len(rules) + 1)
    listed = shares.argmax(axis=1).astype(np.int32)
    return [
        jr.RuleEnsemble(conjunctions, rng.normal(size=(7, 1)), np.array([0.3]), link="logistic"),
        jr.RuleEnsemble(conjunctions, rng.normal(size=(7, 1)), np.zeros(1), linear, "logistic"),
        jr.RuleEnsemble(three, rng.normal(size=(7, 3)), rng.normal(size=3), link="softmax"),
        jr.RuleEnsemble(
            jr.Conjunctions.build(schema, many),
            rng.normal(size=(70, 1)),
            np.zeros(1),
            link="logistic",
        ),
        jr.RuleList(conjunctions.take([0, 3, 5, 6]), listed[:5], shares[:5]),
    ]


def rows_of(model: Any, n: int) -> jr.Table:
    rng = np.random.default_rng(1)
    columns: list[Any] = []
    for feature in model.schema.features:
        if feature.categories:
            columns.append(rng.integers(-2, 4, n).astype(np.int32))
        elif feature.levels:
            columns.append(rng.integers(0, len(feature.levels), n).astype(float))
        else:
            columns.append(rng.choice([25.0, 30.0, 41.0, 33.3, np.nan], n))
    return jr.Table(model.schema, tuple(columns))


@pytest.mark.parametrize("model", models(), ids=lambda model: repr(model)[:40])
def test_a_row_alone_has_the_prediction_that_it_has_among_many(model: Any) -> None:
    table = rows_of(model, 60)
    verbs = [jr.predict, jr.predict_proba]
    if isinstance(model, jr.RuleEnsemble):
        verbs.append(jr.decision_function)
    for verb in verbs:
        together = verb(model, table)
        for size in (1, 2, lowered.FEW_ROWS):
            parts = [verb(model, table[i : i + size]) for i in range(0, 60, size)]
            np.testing.assert_array_equal(np.concatenate(parts), together)
    alone = [str(jr.explain(model, table[i : i + 1])[0]) for i in range(60)]
    assert alone == [str(one) for one in jr.explain(model, table)]


@pytest.mark.parametrize("model", models(), ids=lambda model: repr(model)[:40])
def test_what_a_model_keeps_is_no_part_of_it(model: Any) -> None:
    table = rows_of(model, 3)
    before, names = pickle.dumps(model), list(vars(model.conjunctions))
    leaves, shape = jax.tree.flatten(model)
    expected = jr.predict_proba(model, table)
    jr.explain(model, table)
    assert model.conjunctions.recall("derived") is not None
    assert pickle.dumps(model) == before
    assert list(vars(model.conjunctions)) == names
    assert jax.tree.structure(model) == shape
    assert [a is b for a, b in zip(jax.tree.leaves(model), leaves, strict=True)] == [True] * len(
        leaves
    )
    for other in (
        copy.copy(model),
        copy.deepcopy(model),
        pickle.loads(before),
        jax.tree.unflatten(shape, leaves),
        jax.tree.map(lambda leaf: leaf, model),
    ):
        assert other.recall("traced leaves") is None
        np.testing.assert_array_equal(jr.predict_proba(other, table), expected)


def test_a_model_that_was_used_is_traced_as_before() -> None:
    model = models()[0]
    table = rows_of(model, 5)
    scores = jr.decision_function(model, table)

    def total(weights: Any) -> Any:
        return jr.decision_function(jr.with_weights(model, weights), table).sum()

    # The rules of the traced model are those that the used one keeps.
    gradient = jax.grad(total)(jax.numpy.asarray(model.weights))
    held = model.conjunctions.satisfied(table).sum(axis=0)
    np.testing.assert_allclose(np.asarray(gradient)[:, 0], held)
    X = np.stack(table.columns, axis=1)
    traced = jax.jit(jr.decision_function)(model, X)
    np.testing.assert_allclose(np.asarray(traced), scores, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(jr.decision_function(model, table), scores)


def test_rules_changed_in_place_are_evaluated_as_they_are() -> None:
    rules = jr.Conjunctions.build(schema_of((Feature("a"),)), [[C.at_most(0, 1.0)]])
    model = jr.RuleEnsemble(rules, np.ones((1, 1)), np.zeros(1), link="logistic")
    row = np.array([[2.0]])
    assert jr.decision_function(model, row).tolist() == [0.0]
    assert "a <= 1" not in str(jr.explain(model, row)[0])
    rules.upper[0] = 3.0
    assert jr.decision_function(model, row).tolist() == [1.0]
    assert "a <= 3" in str(jr.explain(model, row)[0])
    model.weights[0] = 5.0
    assert jr.decision_function(model, row).tolist() == [5.0]


def test_many_threads_ask_a_new_model() -> None:
    for model in models():
        table = rows_of(model, 4)
        expected = jr.predict_proba(copy.deepcopy(model), table)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _, m=model, t=table: jr.predict_proba(m, t), range(40)))
        for one in found:
            np.testing.assert_array_equal(one, expected)


def test_large_sets_of_rules_keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = models()[3]
    monkeypatch.setattr("jaxrules.rules.conditions._MOST_KEPT_NUMBERS", 10)
    jr.predict(model, rows_of(model, 2))
    assert model.conjunctions.recall("derived") is None
    monkeypatch.undo()
    monkeypatch.setattr(lowered, "_MOST_KEPT_BYTES", 10)
    jr.predict(model, rows_of(model, 2))
    assert model.conjunctions.recall("derived")[1] == {}
