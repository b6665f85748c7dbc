"""The reproduction of the LLTBoost paper: its measures, its data, and a few small cells."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from paper_reproductions import lltboost
from paper_reproductions.__main__ import load_paper
from paper_reproductions.framework import Archive, Cell, Results, Rows, Settings, Store
from paper_reproductions.lltboost import data, figures, protocol, published, scores, tables
from paper_reproductions.report import write
from paper_reproductions.sections import Canvas, ComparisonTable, Quoted, Value

QUICK = Settings(quick=True)
ALL = ["Figure 1", "Table 1", "Figure 2", "Figure 4", "Table 2", "Table 3", "Table 4"]


def test_all_exhibits_are_there():
    assert [exhibit.name for exhibit in load_paper("lltboost").exhibits] == ALL


@pytest.mark.parametrize("settings", [QUICK, Settings()], ids=["quick", "full"])
def test_report_before_anything_is_computed(settings, tmp_path):
    paper = load_paper("lltboost")
    markdown, _ = write(paper, paper.exhibits, Results(Store(tmp_path), settings), tmp_path)
    text = markdown.read_text()
    assert all(f"## {name}" in text for name in ALL)
    assert "not run (paper 17.0)" in text, "Friedman, LLTBoost"


def test_published_numbers_are_of_one_kind():
    assert (
        list(published.COMPLEXITY)
        == list(published.RISK)
        == list(published.SECONDS)
        == list(data.SETS)
    )
    assert list(published.ERROR) == list(published.ERROR_COMPLEXITY) == list(data.CLASSIFICATIONS)
    for name in data.SETS:
        assert published.RISK[name].target == pytest.approx(
            published.COMPLEXITY[name].tgb[1], abs=2
        )
        assert (published.COMPLEXITY[name].drnet is None) == (name not in data.CLASSIFICATIONS)


def test_order_statistics():
    values = np.random.default_rng(0).permutation(np.arange(1.0, 11.0))
    assert scores.interval(values, 0.4) == (4, 5.5, 7)
    assert scores.interval(values, 0.3) == (3, 5.5, 8)
    assert scores.interval([2.0, math.inf, math.inf], 0.4) == (2, math.inf, math.inf)
    assert scores.interval([3.0], 0.4) == (3, 3, 3)


def test_half_an_interval():
    assert scores.half_width((4, 5, 8)) == 2
    assert scores.half_width((4, 5, math.inf)) == 1, "what lies below the median"
    assert scores.half_width((4, math.inf, math.inf)) == scores.half_width(published.NEVER) == 0


def rows(*entries):
    names = ("repeat", "oracle", "complexity", "risk")
    return Rows(dict(zip(names, entry, strict=True)) for entry in entries)


def test_complexity_at_a_risk_and_risk_at_a_complexity():
    models = rows((0, 0, 3, 0.9), (0, 0, 6, 0.5), (0, 0, 9, 0.6), (0, 0, 12, 0.4))
    assert scores.complexity_at(models, 0.5, "risk") == 6
    assert scores.complexity_at(models, 0.45, "risk") == 12
    assert scores.complexity_at(models, 0.3, "risk") == math.inf
    assert scores.risk_at(models, 11, "risk") == 0.6, "the largest, not the best"
    assert scores.risk_at(models, 2, "risk") == math.inf


def test_the_oracle_takes_the_setting_of_the_smallest_median():
    models = rows(
        (0, 1.0, 3, 0.5), (1, 1.0, 9, 0.5), (2, 1.0, 9, 0.5),
        (0, 10.0, 4, 0.5), (1, 10.0, 4, 0.5), (2, 10.0, 20, 0.5),
        (0, 100.0, 1, 0.5),
    )  # fmt: skip
    found = scores.per_repetition(models, lambda rows: scores.complexity_at(rows, 0.5, "risk"))
    assert found == [4, 4, 20], "100 has one repetition only"
    assert (
        scores.mean_risk(rows((0, 1.0, 3, 0.5), (0, 1.0, 5, 0.3), (0, 2.0, 3, 0.45)), "risk") == 0.4
    )
    assert scores.per_repetition(rows(), len) == []


def test_chance_of_a_median():
    assert scores.chance_of_median([1, 2, 3], 10, 3) == 0
    assert scores.chance_of_median([1, 2, 3], 10, 0.5) == 1
    assert scores.chance_of_median([1, 2], 9, 1.5) == pytest.approx(0.5, abs=0.02)


def test_claims_are_one_sided_for_lltboost():
    better = tables.compared([10.0] * 10, (21, 22, 24), "complexity", "LLTBoost")
    worse = tables.compared([25.0] * 10, (21, 22, 24), "complexity", "LLTBoost")
    assert isinstance(better, Value)
    assert isinstance(worse, Value)
    assert (better.departs, worse.departs) == (False, True)
    rounded = tables.compared([0.494] * 10, (0.47, 0.49, 0.51), "risk", "LLTBoost")
    assert isinstance(rounded, Value)
    assert not rounded.departs, "the paper rounds to two decimals"


@pytest.mark.parametrize("method", ["TGB", "DRNet", "LTRNet, to the letter"])
def test_baselines_are_compared_on_both_sides(method):
    """By two standard errors: half the width of both intervals is 1.5, a median's error .99 times
    that.
    """
    found = {
        ours: [ours - 1.5] * 4 + [ours] * 2 + [ours + 1.5] * 4
        for ours in (16.5, 18.0, 22.0, 26.0, 27.0)
    }
    departing = {
        ours: tables.compared(values, (20, 22, 23), "complexity", method)
        for ours, values in found.items()
    }
    assert [ours for ours, value in departing.items() if value.departs] == [16.5, 27.0]
    never = tables.compared([math.inf] * 10, (20, 22, 23), "complexity", method)
    assert isinstance(never, Value)
    assert never.departs, "it never gets there, the paper's does"
    open_ended = tables.compared([math.inf] * 10, (28, 81, math.inf), "complexity", method)
    assert isinstance(open_ended, Value)
    assert (open_ended.departs, open_ended.apart) == (False, tables.UNCERTAIN)
    assert str(open_ended.mark).startswith("z +inf; ")


@pytest.mark.parametrize("ours", [12.0, math.inf])
@pytest.mark.parametrize("method", tables.PAPER)
def test_an_infinite_median_of_the_paper_is_not_compared(method, ours):
    value = tables.compared([ours] * 10, published.NEVER, "complexity", method)
    assert isinstance(value, Value)
    assert (value.tolerance, value.apart) == (None, tables.ENDLESS)
    table = ComparisonTable("t", ("a",), ("x",), {("a", "x"): value})
    assert f"infinite 1 times; ours is, too, in {int(ours == math.inf)}" in tables._infinite(table)


def test_ltrnet_of_jaxrules_is_not_compared_with_the_paper():
    assert "LTRNet" not in tables.PAPER
    assert tables.compared([16.5] * 10, None, "complexity", "LTRNet") == "16.5 [16.5 to 16.5]"


@pytest.mark.parametrize(
    ("paper", "text", "printed"),
    [
        ((21, 22, 24), "1 to 2; paper's 21 to 24", 2),
        ((28, 81, math.inf), "1 to 2; paper's 28 to inf", 2),
        ((73, math.inf, math.inf), "1 to 2; paper's from 73", 1),
        (published.NEVER, "1 to 2", 0),
    ],
)
def test_order_statistics_are_counted_as_they_are_printed(paper, text, printed):
    mark = tables._bounds("1 to 2", paper)
    assert str(mark) == text
    assert (mark.numbers if isinstance(mark, Quoted) else 0) == printed


def test_a_single_repetition_is_shown_and_not_compared():
    alone = tables.compared([50.0], (21, 22, 24), "complexity", "LLTBoost")
    assert isinstance(alone, Value)
    assert (alone.departs, alone.apart, str(alone.mark)) == (
        False,
        "a single repetition",
        "one repetition; paper's 21 to 24",
    )


@pytest.mark.parametrize(
    ("complexities", "said"),
    [
        (
            (30.0, 30.0, 30.0),
            "is 30, and a median of ten drawn from them is above the paper's in 100% of the cases: "
            "more than chance",
        ),
        (
            (30.0, 30.0, 18.0),
            "is 30, and a median of ten drawn from them is above the paper's in 92% of the cases: "
            "more than chance",
        ),
        (
            (18.0, 18.0, 18.0),
            "is 18, and a median of ten drawn from them is above the paper's in 0% of the cases: by "
            "chance.",
        ),
    ],
)
def test_further_repetitions_tell_chance_from_more(complexities, said, tmp_path):
    store, row = Store(tmp_path), {"size": 1, "oracle": 0.0, "rules": 2, "risk": 0.6}
    repeats = ((protocol.boosting, 0), (protocol.more, 10), (protocol.more, 11))
    for (experiment, repeat), complexity in zip(repeats, complexities, strict=True):
        cell = Cell.of(data="Liver", repeat=repeat, method="LLTBoost")
        store.write(experiment, cell, {**row, "complexity": complexity}, 1.0)
    liver = tables.Measured(Results(store, Settings(folds=1)), "Liver")
    reasons = tables._reasons([liver], published.COMPLEXITY)
    assert said in reasons["Liver", "LLTBoost"]
    assert "Over 3 repetitions" in reasons["Liver", "LLTBoost"]


def test_variants_of_tgb_are_reasons_where_they_agree(tmp_path):
    store, row = Store(tmp_path), {"size": 1, "oracle": 0.0, "rules": 2, "risk": 0.5}
    for cuts, complexities in ((10, (10.0, 11.0)), (50, (36.0, 38.0))):
        for repeat, complexity in enumerate(complexities):
            cell = Cell.of(data="Housing", repeat=repeat, method="TGB by cut points", cuts=cuts)
            store.write(protocol.cuts, cell, {**row, "complexity": complexity}, 1.0)
    housing = tables.Measured(Results(store, Settings(folds=2)), "Housing")
    reasons = tables._reasons([housing], published.COMPLEXITY)
    assert reasons == {
        ("Housing", "TGB"): "The paper leaves open how TGB searches: it is 37.0 with 50 cut points "
        "(2 repetitions)."
    }


def test_variants_of_the_networks_and_the_ridge_are_reasons_where_they_agree(tmp_path):
    store = Store(tmp_path)

    def write(experiment, method, complexity, risk, data="Liver", **more):
        for repeat in range(10):
            cell = Cell.of(data=data, repeat=repeat, method=method, **more)
            dropped = {"dropped": 1} if experiment is protocol.rounded else {}
            risks = {"risk": risk + repeat * 1e-3, "error": risk / 2}
            row = {"size": 1, "oracle": 0.0, "rules": 2, **risks}
            store.write(experiment, cell, {**row, **dropped, "complexity": complexity}, 1.0)

    write(protocol.ridge, protocol.RIDGE, 37, 0.63)
    write(protocol.own_output, protocol.OWN_OUTPUT, 10, 0.665)
    write(protocol.rounded, protocol.ROUNDED, 33, 0.636, steepness=10.0)
    liver = tables.Measured(Results(store, Settings(slow=True)), "Liver")
    assert tables._reasons([liver], published.RISK) == {
        ("Liver", "LLTBoost"): f"LLTBoost has {protocol.LLTBOOST_SETTING}: it is 0.635 with the "
        "default ridge.",
        ("Liver", "DRNet"): "The paper leaves open which probabilities its log loss has: it is "
        "0.669 with the network's own output.",
        ("Liver", tables.LETTER): "The paper leaves open the steepness, and whether small weights "
        "are rounded: it is 0.641 with steepness 10, no rule below 10% of the largest weight.",
    }
    assert ("Liver", "DRNet") not in tables._reasons([liver], published.ERROR, "error")
    titles = [table.title for table in tables._networks([liver])]
    assert titles == [f"{m} by what the paper leaves open" for m in (tables.LETTER, "DRNet")]


def test_settings_are_said_from_the_options():
    assert protocol.in_words({}, jr.lltboost.Options) == "jaxrules' defaults"
    given = {"l2_penalty": 0.5, "max_length": jr.lltboost.Options().max_length}
    said = protocol.in_words(given, jr.lltboost.Options)
    assert said == "jaxrules' defaults but for l2_penalty=0.5"
    assert "l2_penalty=0.001" in protocol.LLTBOOST_SETTING
    assert protocol.LLTBOOST_SETTING in load_paper("lltboost").protocol


def test_the_own_output_of_a_rule_set_counts_its_rules():
    """sigma(r - 1/2) by hand, of the rules of a model that hold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = ((X[:, 0] > 0.3) | (X[:, 1] > 0.5)).astype(int)
    model = jr.drnet.fit(X, y, max_rules=3, iterations=60).model
    twice = [0, *range(len(model.conjunctions))]
    model = jr.RuleList(
        model.conjunctions.take(np.array(twice)),
        model.labels[[*twice, -1]],
        model.probabilities[[*twice, -1]],
    )
    held = model.conjunctions.satisfied(jr.as_table(X)).sum(axis=1)
    assert held.max() > 1, "rows with several rules"
    p = 1 / (1 + np.exp(-(held - 0.5)))
    expected = -np.log(np.where(y == 1, p, 1 - p)).mean()
    test = Dataset("two", jr.as_table(X), y, "binary")
    assert protocol.own_output_loss(model, test) == pytest.approx(expected)


def test_rules_of_small_weight_are_dropped():
    X = np.arange(10.0)[:, None]
    y = np.where(X[:, 0] > 5, 3.0, 0.0) + np.where(X[:, 0] > 8, 0.2, 0.0)
    model = jr.boosting.fit(X, y, max_rules=2, l2_penalty=0.0).model
    weights = np.array([[1.0], [-0.05]])[: len(model.weights)]
    kept = protocol.without_small_weights(dataclasses.replace(model, weights=weights))
    assert np.asarray(kept.weights).tolist() == [[1.0]]
    assert kept.conjunctions.describe(0) == model.conjunctions.describe(0)
    assert np.asarray(kept.intercept) == pytest.approx(np.asarray(model.intercept))


@pytest.mark.parametrize(("first", "rows"), [("small", 2), ("large", 8)])
def test_of_equal_propositions_the_first_is_taken(first, rows):
    X = np.arange(10.0)[:, None]
    train = Dataset("steps", jr.as_table(X), (X[:, 0] > 7.5) * 1.0, "regression")
    model = protocol.first_of_equals(train, first, 0.0)[0]
    assert model.conjunctions.satisfied(train.X).sum() == rows
    assert np.asarray(model.weights)[0, 0] == pytest.approx(0.8 if first == "small" else -0.2)


def test_the_account_multiplies_what_it_should():
    medians = {step: {"a": 40.0, "b": 10.0} for step in tables.STEPS}
    medians["TGB, corrective, tolerance"] = {"a": 20.0, "b": 5.0}
    medians["LLTBoost"] = {"a": 10.0, "b": math.inf}
    text = tables._account_in_words(medians)
    assert "(1 for the first): LLTBoost needs 0.25 times TGB's" in text
    assert "give 0.50" in text
    assert "Exact" not in text
    medians["TGB, exact search"], medians["TGB, all, exact search"] = (
        {"a": 30.0, "b": math.inf},
        {"a": 15.0, "b": 15.0},
    )
    assert (
        "gives 0.75, and with tolerance and corrective weights 1.50."
        in tables._account_in_words(medians)
    )
    assert tables._account_in_words({step: {} for step in tables.STEPS}) == ""


def test_exact_searches_say_how_much_they_proved(tmp_path):
    store = Store(tmp_path)
    row = {"rules": 1, "complexity": 9.0, "risk": 0.6}
    paths = {1.0: 4, 100.0: 0}  # penalty, rules without a proof
    for oracle, unproved in paths.items():
        rows = [
            {**row, "oracle": oracle, "size": size, "unproved": unproved} for size in range(1, 11)
        ]
        cell = Cell.of(data="Liver", repeat=0 if unproved else 1, method="TGB, exact search")
        store.write(protocol.slow, cell, rows, 1.0)
    liver = tables.Measured(Results(store, Settings(folds=2)), "Liver")
    assert '"TGB, exact search" 80% of 20.' in tables._proofs([liver])
    assert (
        tables._proofs(
            [tables.Measured(Results(Store(tmp_path / "empty"), Settings(folds=2)), "Liver")]
        )
        == ""
    )


def test_samples_are_bootstrap_samples():
    train, test = data.sample("Friedman", 3)
    assert (len(train), train.task) == (500, "regression")
    everything = data.load("Friedman")
    np.testing.assert_allclose(everything.X.numeric_matrix().std(axis=0), 1)
    assert (everything.y.mean(), everything.y.std()) == (pytest.approx(0), pytest.approx(1))
    known = {tuple(row) for row in train.X.numeric_matrix()}
    assert len(known) + len(test) == len(everything)
    assert not known & {tuple(row) for row in test.X.numeric_matrix()}
    assert not np.array_equal(train.y, data.sample("Friedman", 4)[0].y)


def test_small_cells_are_measured_and_shown(tmp_path, timeless):
    store = Store(tmp_path)
    for method in ("LLTBoost", "LLTBoost, single columns", "TGB"):
        cell = Cell.of(data="Cancer", repeat=0, method=method)
        store.write(protocol.boosting, cell, protocol.measure(cell, QUICK), 1.0)
    results = Results(store, QUICK)
    found = results[protocol.boosting]
    assert list(found.where(method="LLTBoost").column("size")) == list(range(1, 11))
    assert set(found.where(method="TGB").values("oracle")) == set(protocol.QUICK_PENALTIES)
    section = tables.show_table_2(results, Canvas(tmp_path))
    value = section.tables[0].values["Cancer", "LLTBoost"]
    assert isinstance(value, Value)
    assert value.ours is not None
    assert 3 <= value.ours < 40
    risks = tables.show_table_3(results, Canvas(tmp_path)).tables[0].values["Cancer", "LLTBoost"]
    assert isinstance(risks, Value)
    assert risks.ours == pytest.approx(0.13, abs=0.07)
    assert tables.show_table_4(results, Canvas(tmp_path)).tables[0].values["Cancer", "TGB"].ours > 0


@pytest.mark.needs_data
def test_one_oblique_rule_separates_banknotes(tmp_path):
    store = Store(tmp_path)
    for method in ("TGB", "LLTBoost"):
        cell = Cell.of(method=method)
        store.write(figures.regions, cell, figures.measure_regions(cell, QUICK), 1.0)
    assert not figures.show_figure_1(Results(store, QUICK), Canvas(tmp_path)).figures, (
        "without its points"
    )
    cell = Cell.of(repeat=0)
    store.write(figures.points, cell, figures.measure_points(cell, QUICK), 1.0)
    results = Results(store, QUICK)
    picture = figures.show_figure_1(results, Canvas(tmp_path))
    assert picture.figures[0].stat().st_size > 20_000
    assert picture.tables[0].values["LLTBoost", "rules"].ours == 1
    rule = figures.show_table_1(results, Canvas(tmp_path)).tables[-1]
    assert rule.title == "LLTBoost"
    assert "var + " in str(rule.values["1", "our rule"])
    train, _ = data.two_columns(0, 0)
    assert jr.accuracy(figures.single_rule(train), train.X, train.y) > 0.85


def test_every_number_of_the_tables_is_counted(tmp_path):
    """As the paper prints them: 55 medians and 15 targets in Table 2, an
    infinite median without bounds.
    """
    paper = load_paper("lltboost")
    archive = Archive(Path(lltboost.__file__).parent / "archive")
    text = write(paper, paper.exhibits, Results(archive, archive.settings), tmp_path)[0].read_text()
    printed = dict(re.findall(r"^\| (Table \d) \| (\d+) \|", text, re.MULTILINE))
    assert printed == {"Table 1": "52", "Table 2": "169", "Table 3": "155", "Table 4": "55"}
