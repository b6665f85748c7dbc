"""Rows with equal terms, counted by class: the same sums, bounds, thresholds and rules."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings

import jaxrules as jr
from jaxrules.solvers.rule_search import CorrectiveDecrease, row_classes, search_pairs
from jaxrules.solvers.rule_search.compiled_pairs import CompiledPairs
from jaxrules.solvers.rule_search.counted_pairs import counted_pairs, keep
from jaxrules.solvers.rule_search.row_classes import RowTerms, classes_of
from jaxrules.solvers.rule_search.space import SearchSpace
from jaxrules.solvers.rule_search.thresholds import SortedColumn, best_threshold


def space_of(r: np.random.Generator, n: int, cells: int = 6, d: int = 15) -> SearchSpace:
    """Thresholds on columns that leave no two rows equal."""
    codes = r.integers(0, cells, (n, d))
    while len(unique := np.unique(codes, axis=0)) < n:
        codes = np.concatenate([unique, r.integers(0, cells, (n - len(unique), d))])
    column = np.repeat(np.arange(d, dtype=np.int32), 2 * (cells - 1))
    above = np.tile(np.arange(2) > 0, d * (cells - 1))
    cell = np.tile(np.repeat(np.arange(cells - 1), 2), d) + above
    space = SearchSpace.of_codes(codes.astype(np.uint16), column, above, cell.astype(np.uint16))
    assert space.activations.n_patterns == n
    return space


def objective_of(r: np.random.Generator, found: np.ndarray, **price: float) -> CorrectiveDecrease:
    """The slopes of two targets under scores that follow from the rules found."""
    p = 1 / (1 + np.exp(-(found @ r.normal(size=found.shape[1]))))
    g = p - (r.random(len(p)) < p)
    penalties = np.append(0.0, np.full(found.shape[1] - 1, 1.5))
    return CorrectiveDecrease(g, p * (1 - p), 1.5, found, penalties, **price)


def rules(r: np.random.Generator, n: int, m: int) -> np.ndarray:
    return np.column_stack([np.ones(n, bool), r.random((n, m)) < r.uniform(0.1, 0.9, m)])


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_rows_of_a_class_have_equal_terms(seed: int, m: int) -> None:
    r = np.random.default_rng(seed)
    objective = objective_of(r, rules(r, 9000, m))
    some = objective.row_classes
    assert some is not None
    assert some.of_rows is not None
    assert some.terms.shape[1] <= 2 ** (m + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_classes, "_ROWS_PER_CLASS", 10**6)
        plain = objective_of(np.random.default_rng(0), objective.found)
        assert plain.row_classes is None
        plain = CorrectiveDecrease(
            objective.gradient, objective.curvature, 1.5, objective.found, objective.penalties
        )
        terms = RowTerms(plain._of_rows)
    assert objective._of_rows == pytest.approx(terms.terms, rel=1e-9, abs=1e-12)
    rows, within = r.random((2, 9000)) < 0.3
    for one, other in ((some, terms), (some.inside(within), terms.inside(within))):
        assert one.over(rows) == pytest.approx(other.over(rows), rel=1e-9, abs=1e-9)


def test_numbers_and_many_patterns_have_no_classes() -> None:
    r = np.random.default_rng(0)
    n, found = 5000, rules(r, 5000, 2)
    h = np.ones(n)
    assert classes_of(r.normal(size=n), h, found) is None
    g = np.where(r.random(n) < 0.5, -1.0, 1.0)
    assert classes_of(g, h, found) is not None
    assert classes_of(g, r.permutation(np.arange(n) + 1.0), found) is None  # of other curvature
    late = g.copy()
    late[-1] = 0.7  # one row is unlike its pattern
    assert classes_of(late, h, found) is None
    assert classes_of(g, h, rules(r, n, 8)) is None
    assert classes_of(g[:100], h[:100], found[:100]) is None


@settings(max_examples=10)
@given(st.integers(0, 10**6))
@example(683)  # two drawn rows are equal
def test_counted_pairs_are_compiled_pairs_from_search_to_search(seed: int) -> None:
    r = np.random.default_rng(seed)
    n = 16_000
    space, found = space_of(r, n), np.ones((n, 1), bool)
    # Rules that divide classes, and then one rule fewer, for which all is counted anew.
    for m in (0, 1, 2, 3, 1):
        found = found[:, : m + 1]
        while found.shape[1] <= m:
            a, b = r.integers(0, len(space), 2).tolist()
            found = np.column_stack([found, space.selected([a, b])])
        objective = objective_of(r, found)
        terms = objective.one_row(space)
        counted = counted_pairs(objective, space, None)
        assert counted is not None
        partitions = space.partitions
        assert partitions is not None
        compiled = CompiledPairs(terms[None], 1.5)
        both = zip(counted.of_cells(partitions), compiled.of_cells(partitions), strict=True)
        for one, other in both:
            assert one == pytest.approx(other, rel=1e-9, abs=1e-9)
        pairs = np.array(
            [(a, b) for a in range(len(partitions)) for b in range(a, len(partitions))]
        )
        bounds = counted.bounds(partitions)
        assert bounds is not None
        best = []
        for a, b in pairs:
            values = counted.values(partitions[a], partitions[b])
            assert values == pytest.approx(compiled.values(partitions[a], partitions[b]), rel=1e-8)
            best.append(values.max())
        assert (bounds(pairs) >= best).all()
        assert bounds(pairs) == pytest.approx(best, rel=1e-4)
        keep(space, counted)
    assert counted_pairs(objective, space, 3) is None  # more pairs than are examined


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_pairs_by_classes_are_those_of_all_rows(seed: int, m: int) -> None:
    r = np.random.default_rng(seed)
    n = 12_000
    space, objective = space_of(r, n), objective_of(r, rules(r, n, m), per_unit=True)
    found = search_pairs(space, objective)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_classes, "_ROWS_PER_CLASS", 10**6)
        plain = search_pairs(
            space,
            CorrectiveDecrease(
                objective.gradient, objective.curvature, 1.5, objective.found,
                objective.penalties, per_unit=True,
            ),
        )  # fmt: skip
    assert found.objective == pytest.approx(plain.objective, rel=1e-9)
    assert found.bound == pytest.approx(plain.bound, rel=1e-9)
    assert (found.status, found.evaluations) == (plain.status, plain.evaluations)


@settings(max_examples=30)
@given(
    st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([(True, True), (True, False)]),
    st.booleans(),
)  # fmt: skip
def test_thresholds_by_classes_are_those_of_all_rows(
    seed: int, m: int, sides: tuple[bool, bool], some: bool
) -> None:
    r = np.random.default_rng(seed)
    n = 9000
    objective = objective_of(r, rules(r, n, m))
    classes = objective.row_classes
    assert classes is not None
    columns = [r.normal(size=n), r.integers(0, 5, n) * 1.0, np.round(r.normal(size=n), 1)]
    columns[0][r.random(n) < 0.1] = np.nan
    columns[1] += objective.gradient > 0.4
    sorted_columns = {f: (SortedColumn.of(one), sides) for f, one in enumerate(columns)}
    if some:
        classes = classes.inside(r.random(n) < 0.2)
    assert classes.of_rows is not None
    plain = np.take(classes.terms, classes.of_rows, axis=1)
    found = best_threshold(sorted_columns, objective, classes.terms, 0.0, classes.of_rows)
    full = best_threshold(sorted_columns, objective, plain)
    assert found is not None
    assert full is not None
    assert found.value == pytest.approx(full.value, rel=1e-9)
    assert (
        best_threshold(sorted_columns, objective, classes.terms, full.value * 1.01, classes.of_rows)
        is None
    )
    # A rule of one side has no quotients, and its terms are read row by row.
    one_sided = objective_of(r, objective.found, one_sided=True)
    terms = one_sided.row_classes
    assert terms is not None
    by_class = best_threshold(sorted_columns, one_sided, terms.terms, 0.0, terms.of_rows)
    by_row = best_threshold(sorted_columns, one_sided, one_sided._of_rows, 0.0)
    assert by_class == by_row


def test_boosting_by_classes_is_that_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(20_000, 5))
    y = X[:, 0] + X[:, 1] * X[:, 2] + r.logistic(size=len(X)) > 0
    fit = jr.boosting.fit(X, y, max_rules=6)
    monkeypatch.setattr(row_classes, "_ROWS_PER_CLASS", 10**6)
    plain = jr.boosting.fit(X, y, max_rules=6)
    assert str(fit.model) == str(plain.model)
    assert np.asarray(fit.model.weights).tolist() == np.asarray(plain.model.weights).tolist()
    bounds = [[stage.bound for stage in one.details["stages"]] for one in (fit, plain)]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)
