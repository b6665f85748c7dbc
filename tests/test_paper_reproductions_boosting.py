"""The reproduction of the optimal rule boosting paper: its measures, its data, and two small cells."""

from __future__ import annotations

import numpy as np
import pytest

import jaxrules as jr
from jaxrules.table import Feature, Schema, Table
from paper_reproductions.__main__ import load_paper
from paper_reproductions.framework import Cell, Results, Rows, Settings, Store
from paper_reproductions.optimal_rule_boosting import data, effort, parity, published, scores
from paper_reproductions.report import Canvas, write

QUICK = Settings(quick=True)
ALL = ["Figure 1", "Table 1", "Figure 2", "Figure 4", "Figure 5", "Table 2"]


def test_all_exhibits_are_there():
    assert [exhibit.name for exhibit in load_paper("optimal_rule_boosting").exhibits] == ALL


@pytest.mark.parametrize("settings", [QUICK, Settings()], ids=["quick", "full"])
def test_report_before_anything_is_computed(settings, tmp_path):
    paper = load_paper("optimal_rule_boosting")
    markdown, _ = write(paper, paper.exhibits, Results(Store(tmp_path), settings), tmp_path)
    text = markdown.read_text()
    assert all(f"## {name}" in text for name in ALL)
    assert "not run (paper 0.5531)" in text, "friedman1, optimal"


def test_area_is_the_mean_height_of_the_trapezoids():
    assert scores.area(np.full(10, 0.7)) == pytest.approx(0.7)
    assert scores.area(np.linspace(0.0, 1.0, 10)) == pytest.approx(0.5)
    assert scores.area_from_no_rule(np.full(10, 0.9)) == pytest.approx(0.88)
    heights = np.random.default_rng(0).random(10)
    assert scores.area(heights) == pytest.approx(np.mean((heights[1:] + heights[:-1]) / 2))


def test_equal_sizes_are_averaged_and_missing_ones_interpolated():
    found = scores.curve([2, 2, 4, 9, 12], [0.2, 0.4, 0.5, 1.0, 1.6], 0.1)
    np.testing.assert_allclose(found, [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2])
    np.testing.assert_allclose(scores.curve([2], [0.7], 0.5), [0.6] + [0.7] * 9)


def test_lambda_is_chosen_by_the_inner_scores_and_the_oracle_by_the_test_scores():
    def rows(penalty, split, inner, test):
        cell = {"penalty": penalty, "split": split}
        return [{**cell, "rules": k, "inner_score": inner, "score": test} for k in scores.SIZES]

    table = Rows([*rows(1, 0, 0.9, 0.5), *rows(5, 0, 0.8, 0.7), *rows(1, 1, 0.6, 0.6), *rows(5, 1, 0.7, 0.5)])
    assert [found[0]["penalty"] for found in scores.chosen(table, "inner")] == [1, 5]
    assert [found[0]["penalty"] for found in scores.chosen(table, "oracle")] == [5, 5]
    half = Rows([*table, *rows(9, 0, 1.0, 1.0)])
    assert [found[0]["penalty"] for found in scores.chosen(half, "oracle")] == [5, 5], "9 has one split only"


def test_every_row_of_the_paper_has_a_data_set():
    assert published.TABLE_1.keys() == data.SETS.keys() - {"titanic, true labels"}
    assert len(published.TABLE_1) == 24
    assert published.TABLE_2.keys() <= published.TABLE_1.keys()
    for row in published.TABLE_1.values():
        assert row.optimal > row.greedy > row.rulefit


def test_propositions_of_the_authors_program():
    """friedman1 has 3 bins: three upper ends, and "<= largest" always holds: 5 per column."""
    pool = data.propositions(data.load("friedman1").X, 3)
    assert len(pool) == 50
    letters = Table(Schema((Feature("c", ("a", "b", "c")),)), (np.arange(9, dtype=np.int32) % 3,))
    pool = data.propositions(letters, 2)
    assert [pool.describe(j) for j in range(len(pool))] == ["c == a", "c == b", "c == c"]
    numbers = data.propositions(jr.as_table(np.arange(9.0)[:, None]), 2)
    assert [numbers.describe(j) for j in range(len(numbers))] == ["x0 <= 4", "x0 >= 4", "x0 >= 8"]


def test_generated_classification():
    found = data.load("classification2")
    assert found.X.shape == (2000, 8)
    assert 0.4 < found.y.mean() < 0.6


@pytest.mark.slow
def test_largest_penalty_of_rulefit():
    whole = data.load("iris (1)")
    rules = scores.candidate_rules(whole, 3, seed=0)
    largest = scores.largest_penalty(rules.satisfied(whole.X), whole.y, True)
    fits = jr.rulefit.path(whole.X, whole.y, rules=rules, penalties=[1.001 * largest, 0.98 * largest])
    assert len(fits[0].model.conjunctions) == 0
    assert len(fits[1].model.conjunctions) >= 1


def test_best_accuracy_on_noisy_parity():
    test = parity.parity(3, 20000, 0)
    guess = np.sign(test.X.numeric_matrix()).prod(axis=1)
    assert parity.best_accuracy(3) == pytest.approx((guess == test.y).mean(), abs=0.01)


def test_small_cells_are_measured_and_shown(tmp_path, monkeypatch):
    """Iris with few cut points, the exact search certified; the report draws what is there."""
    monkeypatch.setitem(data.SETS, "iris (1)", data.Source("iris", 3, 5.0, positive="versicolor"))
    store = Store(tmp_path)
    for experiment in (scores.boosted, effort.times, effort.prunings):
        cell = next(cell for cell in experiment.cells(QUICK) if cell["data"] == "iris (1)")
        store.write(experiment, cell, experiment.measure(cell, QUICK), 1.0)
    results = Results(store, QUICK)
    first = results[scores.boosted]
    assert len(first) == 10
    assert first.column("uncertified").max() == 0
    table = scores.show_table_1(results, Canvas(tmp_path)).tables[0]
    assert table.values["iris (1)", "greedy"].ours == pytest.approx(0.95, abs=0.05)
    assert effort.show_figure_4(results, Canvas(tmp_path)).figures[0].stat().st_size > 5000
    assert effort.show_table_2(results, Canvas(tmp_path)).tables[0].values["iris (1)", "immediate bound"].ours > 0


def test_constant_propositions_are_where_table_2_has_its_equivalences_on_tic_tac_toe():
    """The paper: 4303, 7772, 2179, 0. Without the constants there is nothing equivalent."""
    cell = next(iter(effort.constants.cells(QUICK)))
    with_constants = effort.measure_constant_counts(cell, QUICK)
    without = effort.measure_counts(cell, QUICK)
    assert without["immediate_equivalence"] == without["propagated_equivalence"] == 0
    assert with_constants["propagated_equivalence"] == 0
    assert 0.5 * 7772 < with_constants["immediate_equivalence"] < 2 * 7772
    assert with_constants["immediate_bound"] == without["immediate_bound"]


def test_exact_search_learns_parity():
    """d = 3: 2^d certified rules are nearly as good as those of the signs."""
    rows = parity.measure_accuracy(Cell.of(dimension=3, method="optimal", repeat=0), QUICK)
    assert [row["rules"] for row in rows] == list(range(1, 9))
    assert all(row["proved"] for row in rows)
    assert rows[-1]["accuracy"] > parity.best_accuracy(3) - 0.05
