"""The LIRE reproduction: the quoted numbers agree with each other, and the protocol's parts do what they say."""

from __future__ import annotations

import numpy as np
import pytest

from paper_reproductions import Canvas, Cell, Results, Rows, Settings
from paper_reproductions.framework import Store
from paper_reproductions.lire import PAPER, exhibits, protocol, published


def scores(data, method, measure):
    return published.comparison().where(data=data, method=method).column(measure)


def test_every_table_and_figure_of_the_experiments_is_there():
    names = [exhibit.name for exhibit in PAPER.exhibits]
    assert sorted(names) == sorted([f"Table {n}" for n in range(1, 7)] + [f"Figure {n}" for n in range(2, 13)])


def test_the_quoted_files_are_complete():
    assert len(published.comparison()) == 5 * 6 * 10
    assert len(published.tradeoff()) == 10 * (5 + 25)
    for data in published.DATA_SETS:
        for method in published.METHODS:
            assert published.comparison().where(data=data, method=method).values("fold") == tuple(range(10))


@pytest.mark.parametrize("data", published.DATA_SETS)
@pytest.mark.parametrize("method", published.METHODS)
def test_seconds_per_fold_have_the_means_of_table_4(data, method):
    mean = scores(data, method, "seconds").mean()
    assert mean == pytest.approx(published.TABLE_4[data][method], rel=0.005, abs=0.0006)


@pytest.mark.parametrize("measure", ["f1", "auc"])
@pytest.mark.parametrize("data", ["adult", "fico", "compas"])
def test_scores_per_fold_have_the_p_values_of_table_5(data, measure):
    for method, printed in published.TABLE_5[measure][data].items():
        p = exhibits.wilcoxon(scores(data, "LIRE", measure), scores(data, method, measure), "less")
        assert p == pytest.approx(printed, abs=2e-5), method


def test_supports_per_fold_have_the_p_values_of_table_6():
    for measure, by_data in published.TABLE_6.items():
        for data, by_method in by_data.items():
            for method, printed in by_method.items():
                p = exhibits.wilcoxon(scores(data, "LIRE", measure), scores(data, method, measure), "greater")
                assert p == pytest.approx(printed, abs=0.05), (measure, data, method)


def test_wilcoxon_of_few_folds():
    assert exhibits.wilcoxon(np.array([1.0]), np.array([2.0]), "less") is None
    assert exhibits.wilcoxon(np.array([1.0, 1.0]), np.array([1.0, 1.0]), "less") == 1.0
    assert exhibits.wilcoxon(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]), "less") == 0.125


def test_front():
    points = [{"size": s, "score": v} for s, v in [(3, 0.8), (1, 0.5), (2, 0.4), (4, 0.9), (5, 0.9)]]
    assert [p["size"] for p in exhibits.front(points, "size", "score")] == [1, 3, 4]


def models(fold, *settings):
    """Rows of a fold: (penalty, accuracy, support, local support)."""
    names = ("penalty", "accuracy", "support", "local_support")
    return [
        {"fold": fold, "local_penalty": 1.0, "auc": 0.9, **dict(zip(names, each, strict=True))} for each in settings
    ]


def test_models_of_equal_accuracy_are_chosen_by_the_other_folds():
    rows = Rows([
        *models(0, (1.0, 0.80, 10, 3.0), (2.0, 0.90, 20, 2.0)),
        *models(1, (1.0, 0.86, 12, 4.0), (2.0, 0.82, 22, 1.0)),
    ])  # fmt: skip
    point = {"accuracy": 0.85, "auc": 0.9, "support": 30.0, "local_support": 3.5}
    found = exhibits.chosen_elsewhere(rows, point)
    # fold 1 chooses penalty 1 for fold 0 (0.86), fold 0 chooses penalty 2 for fold 1 (0.90)
    assert [(row["fold"], row["penalty"], row["accuracy"]) for row in found] == [(0, 1.0, 0.80), (1, 2.0, 0.82)]
    table = exhibits._equal_accuracy({"x": (rows, point)}, {"x": "x"}, "anywhere")
    assert table.values["x", "accuracy"].ours == pytest.approx(0.81)
    assert table.values["x", "accuracy"].departs
    assert not table.values["x", "#LocalSupport"].departs
    assert table.values["x", "ours is at"] == "gamma 1, lambda 1; gamma 2, lambda 1"
    single = exhibits._equal_accuracy({"x": (rows.where(fold=0), point)}, {"x": "x"}, "anywhere")
    assert single.values["x", "accuracy"].ours is None, "one fold leaves none to choose by"


def test_the_setting_has_no_more_rules_where_that_is_possible():
    point = {"accuracy": 0.8, "auc": 0.9, "support": 15.0, "local_support": 4.0}
    rows = Rows(models(0, (1.0, 0.80, 10, 3.0), (2.0, 0.82, 20, 2.0), (3.0, 0.85, 40, 6.0)))
    assert exhibits._setting_for(rows, point)[0] == 1.0
    assert exhibits._setting_for(rows, point | {"accuracy": 0.815})[0] == 2.0
    assert exhibits._setting_for(rows, point | {"accuracy": 0.9})[0] == 3.0, "the most accurate, if none is enough"


def test_differences_that_may_be_chance():
    def rows(*values):
        return Rows({"fold": fold, "accuracy": value} for fold, value in enumerate(values))

    paper = rows(0.8, 0.8, 0.8, 0.8, 0.8)
    assert "-0.1000, +0.0500" in exhibits._chance(rows(0.7, 0.85, 0.7, 0.9, 0.8), paper, "accuracy")
    assert exhibits._chance(rows(0.7, 0.71, 0.7, 0.72, 0.7), paper, "accuracy") == ""
    assert exhibits._chance(rows(0.7, 0.85), paper, "accuracy") == "", "two folds show nothing"


def test_settings_in_small_are_part_of_the_full_ones():
    small, full = protocol.methods(Settings(quick=True)), protocol.methods(Settings())
    assert small.keys() == full.keys() == set(protocol.METHODS)
    for name, method in small.items():
        assert set(method.settings) <= set(full[name].settings)
        assert len(method.settings) < len(full[name].settings)
    assert len(full["RF"].settings) == 9


def test_the_published_search_on_adult_is_left_out_unless_asked_for():
    cells, slow = (set(protocol.comparison_cells(Settings(folds=3, slow=slow))) for slow in (False, True))
    assert len(slow) == 5 * 3 * len(protocol.METHODS)
    assert {(cell["data"], cell["method"]) for cell in slow - cells} == {("adult", "LIRE, published search")}


def test_tests_of_few_folds_say_what_they_are(tmp_path):
    asked = Settings(folds=3)
    store = Store(tmp_path)
    for method, accuracies in (("LIRE", (0.7, 0.8, 0.9)), ("RuleFit", (0.8, 0.95, 0.7)), ("GLRM", (0.8, 0.9))):
        for fold, accuracy in enumerate(accuracies):
            cell = Cell.of(data="heart", fold=fold, method=method)
            store.write(exhibits.comparison, cell, {"accuracy": accuracy, "f1": 0.5, "auc": 0.5}, 1.0)
    results = Results(store, asked)
    section = exhibits.table_5(results, Canvas(tmp_path))
    assert "With 3 folds the exact p-value is at least 0.125" in section.text
    cells = section.tables[0].values
    assert str(cells["accuracy, Heart", "RuleFit"]) == "0.62500 (paper 0.79289, -0.16789) [lower in 2 of 3]"
    assert str(cells["accuracy, Heart", "GLRM"]).endswith("[lower in 2 of 2]")
    assert str(cells["accuracy, Adult", "GLRM"]) == "not run (paper 1.00000)"
    scores = exhibits._score_table(results, "accuracy", protocol.METHODS).values
    assert "[2 of 3 folds]" in str(scores["Heart", "GLRM"])
    assert "folds]" not in str(scores["Heart", "LIRE"])


def test_baselines_are_compared_on_both_sides(tmp_path):
    results = Results(Store(tmp_path), Settings())
    values = exhibits._score_table(results, "accuracy", protocol.METHODS).values
    assert {method: values["Heart", method].only for method in protocol.METHODS} == {
        method: "below" if method == "LIRE" else None for method in protocol.METHODS
    }
    assert values["Adult", "KernelSVM"].tolerance is None
    assert values["Heart", "LIRE"].number == values["Heart", protocol.PUBLISHED].number


@pytest.fixture
def small_fold(monkeypatch):
    """A fold of COMPAS with few rows and a small forest."""
    from jaxrules.ensembles import growing

    def forest(X, y, seed):
        return growing.default_forest(X, y, n_trees=5, max_depth=2, seed=seed)

    monkeypatch.setattr(protocol, "default_forest", forest)
    protocol.fold_of.cache_clear()
    try:
        yield protocol.fold_of("compas", 0, 0, 600)
    except FileNotFoundError:
        pytest.skip("needs the data folder")
    finally:
        protocol.fold_of.cache_clear()


@pytest.mark.usefixtures("data_home")
class TestOneFold:
    """Every method on a small fold."""

    @pytest.mark.parametrize("name", ["LIRE", "RuleFit"])
    def test_a_path_gives_its_models_in_the_order_asked_for(self, small_fold, name):
        method = protocol.methods(Settings(quick=True))[name]
        models = list(method.models(small_fold.train, small_fold))
        sizes = [protocol.quality(model, small_fold.test)["support"] for model in models]
        assert sizes == sorted(sizes, reverse=True)  # settings go from small to large penalties

    @pytest.mark.parametrize("name", protocol.METHODS)
    def test_quality(self, small_fold, name):
        method = protocol.methods(Settings(quick=True))[name]
        model = method.fit(small_fold.train, small_fold, method.settings[-1])
        measured = protocol.quality(model, small_fold.test)
        assert 0.5 < measured["accuracy"] <= 1
        assert 0.5 < measured["auc"] <= 1
        if name in protocol.RULE_METHODS:
            assert measured["local_support"] <= measured["support"]

    def test_tuning_rows_are_a_fifth(self, small_fold):
        fitting, choosing = small_fold.tuning()
        assert len(choosing.y) == pytest.approx(len(small_fold.train.y) / 5, abs=1)
        assert len(fitting.y) + len(choosing.y) == len(small_fold.train.y)
        assert fitting.y.mean() == pytest.approx(choosing.y.mean(), abs=0.02)


@pytest.fixture
def data_home():
    import os

    if "JAXRULES_DATA" not in os.environ:
        pytest.skip("JAXRULES_DATA names no folder of data sets")
