"""The reproduction of the SSRL paper: its numbers, its choice of settings, its
report, and a small cell.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

import jaxrules as jr
from benchmarks.peers import NotRun, OutOfTime, said
from paper_reproductions.__main__ import load_paper
from paper_reproductions.framework import Cell, Results, Rows, Settings, Store
from paper_reproductions.report import write
from paper_reproductions.sections import Canvas
from paper_reproductions.ssrl import exhibits, peers, protocol, published

QUICK = Settings(quick=True)
ALL = ["Table 4", "Table 5", "Table 6", "Table 7", "Figure 4", "Table 8", "Table 9"]


def test_all_exhibits_are_there() -> None:
    assert [exhibit.name for exhibit in load_paper("ssrl").exhibits] == ALL


@pytest.mark.parametrize("settings", [QUICK, Settings()], ids=["quick", "full"])
def test_report_before_anything_is_computed(settings: Settings, tmp_path) -> None:
    paper = load_paper("ssrl")
    markdown, _ = write(paper, paper.exhibits, Results(Store(tmp_path), settings), tmp_path)
    text = markdown.read_text()
    assert all(f"## {name}" in text for name in ALL)
    assert "not run (paper 86.28)" in text
    assert "No set is measured." in text
    assert "What magic needs" not in text, "a table without a number of ours"
    assert "98.63 ± 0.2" in text, "gas, of which the paper's numbers stand alone"


def test_published_numbers() -> None:
    assert list(published.ACCURACY) == list(published.SIZES)
    assert {*exhibits.BINARY, *exhibits.MULTI, "gas"} == set(published.ACCURACY)
    assert set(protocol.SETS) == set(published.ACCURACY) - {"gas"}
    assert published.ACCURACY["magic"]["SSRL"] == ((86.28, 0.6),)
    assert published.SIZES["magic"]["RIPPER"] == ((52.3, 10.6), (391.3, 75.0))
    assert list(published.ACCURACY["iris"]) == ["SSRL", "SBRL", "CLASSY", "RIPPER"]


def test_the_best_setting_is_one_for_all_folds() -> None:
    entries = [(0, 1.0, 90.0), (0, 5.0, 80.0), (1, 1.0, 70.0), (1, 5.0, 85.0), (1, 7.0, 99.0)]
    rows = Rows(
        {"fold": f, "literal_penalty": p, "max_rules": 10, "accuracy": a} for f, p, a in entries
    )
    assert exhibits.best_setting(rows).values("literal_penalty") == (5.0,)  # 7 has one fold only
    assert len(exhibits.best_setting(Rows([]))) == 0


def test_modmod_stands_beside_beam_search_on_the_same_folds(tmp_path) -> None:
    store = Store(tmp_path)
    for fold in range(2):
        cell = Cell.of(data="iris", fold=fold)
        sizes = {"rules": 3, "literals": 4}
        store.write(
            exhibits.modmod,
            cell,
            [
                {"literal_penalty": penalty, "accuracy": 90.0 + penalty + fold, **sizes}
                for penalty in published.PENALTIES
            ],
            1.0,
        )
    for fold in range(3):
        rows = [
            {"literal_penalty": 1.0, "max_rules": most, "accuracy": 80.0 + most + fold, **sizes}
            for most in (10, 40)
        ]
        store.write(exhibits.every, Cell.of(data="iris", fold=fold), rows, 1.0)
    table = exhibits.modmod_table(exhibits.MULTI)(Results(store, Settings()))
    assert list(table.rows) == ["iris"]
    ours, beam = (
        table.values["iris", f"{search}, accuracy"] for search in ("ModMod", "beam search")
    )
    assert (ours.ours, beam.ours) == (100.5, 90.5)
    assert "penalty 10" in ours.mark
    assert "2 of 10 folds" in beam.mark
    assert ours.apart


def test_a_cell_of_modmod_has_a_row_for_every_penalty() -> None:
    (cell, *_) = protocol.modmod_cells(QUICK)
    rows = protocol.measure_modmod(cell, QUICK)
    assert [row["literal_penalty"] for row in rows] == list(published.PENALTIES)
    assert all(row["rules"] <= 1 + protocol.MODMOD_RULES for row in rows)
    assert rows[0]["accuracy"] > 90


@pytest.mark.parametrize(
    ("measure", "accuracy", "literals", "given"),
    [("rules", 86.0, 90, True), ("literals", 86.0, 90, True), ("accuracy", 86.0, 90, False),
     ("literals", 86.0, 99, False), ("literals", 85.0, 90, False)],
)  # fmt: skip
def test_a_reason_is_a_setting_of_the_papers_size_and_accuracy(
    measure, accuracy, literals, given, tmp_path
) -> None:
    store = Store(tmp_path)
    setting = {"literal_penalty": 5.0, "max_rules": 30}
    row = {**setting, "accuracy": accuracy, "rules": 30, "literals": literals}
    store.write(exhibits.every, Cell.of(data="magic", fold=0), row, 1.0)
    results = Results(store, Settings(folds=1))
    assert bool(exhibits.reason(results, "magic", measure)) == given
    assert not exhibits.reason(results, "cmc", measure), "no experiment"


def test_a_cell_and_its_report(tmp_path) -> None:
    cell = Cell.of(data="iris", fold=0)
    store = Store(tmp_path)
    store.write(exhibits.inside, cell, protocol.measure_inside(cell, QUICK), 1.0)
    rows = protocol.measure_settings(cell, QUICK)
    assert [(row["literal_penalty"], row["max_rules"]) for row in rows] == [(1.0, 10), (5.0, 10)]
    store.write(exhibits.every, cell, rows, 1.0)
    paper = load_paper("ssrl")
    results = Results(store, QUICK)
    chosen = {row["choice"]: row for row in results[exhibits.inside]}
    assert set(chosen) == {protocol.SHORTEST, protocol.ACCURATE, protocol.AS_LONG}
    assert all(row["accuracy"] in [one["accuracy"] for one in rows] for row in chosen.values())
    assert chosen[protocol.SHORTEST]["literals"] <= chosen[protocol.ACCURATE]["literals"]
    markdown, _ = write(paper, paper.exhibits, results, tmp_path)
    assert "1 of 10 folds" in markdown.read_text()
    assert "a mean of 1 is typically 1.00 of the deviation over folds away" in markdown.read_text()


def test_figure_4_shows_peers_or_why_they_are_not_there(tmp_path) -> None:
    store = Store(tmp_path)
    measured = {"cpu_seconds": 2.0, "rules": 3, "accuracy": 97.0}
    too_many = {"candidates": 492764, "gigabytes": 13.7}
    for features, method, row in [
        (100, "CLASSY", measured), (200, "CLASSY", {"more_than": 600}),
        (100, "SBRL", {**too_many, **measured}), (200, "SBRL", too_many),
    ]:  # fmt: skip
        key = {"data": "WDBC", "features": features, "repeat": 0}
        store.write(peers.peers, Cell.of(**key, method=method), row, 1.0)
        store.write(exhibits.times, Cell.of(**key), measured, 1.0)
    (table,) = exhibits.figure_4(Results(store, Settings()), Canvas(tmp_path)).tables
    assert [line[3:] for line in table.lines()] == [
        ("CLASSY", "SBRL"),
        ("2.00 [3.0 rules, 97.0 %]", "2.00 [3.0 rules, 97.0 %]"),
        ("not finished after 600 s", "not run [492764 candidates, 13.7 GB]"),
    ]
    assert (tmp_path / "figure_4.png").exists()


def test_peers_see_the_features_that_ours_see(monkeypatch) -> None:
    seen = {}

    def told(environment, script, arrays, *arguments):
        seen.update(arrays)
        return [{"rules": 3}]

    monkeypatch.setattr(peers, "said", told)
    cell = Cell.of(data="WDBC", features=100, repeat=0, method="SBRL")
    found = peers.measure(cell, QUICK)
    data, _, pool = protocol.drawn(cell, QUICK)
    np.testing.assert_array_equal(seen["X"], pool.satisfied(data.X))
    assert found["rules"] == 3
    assert found["candidates"] < 200 + 200 * 199 / 2

    def late(*arguments):
        raise OutOfTime

    monkeypatch.setattr(peers, "said", late)
    assert peers.measure(cell, QUICK)["more_than"] == peers.SECONDS
    monkeypatch.setattr(peers, "MOST_GIGABYTES", 0.001)
    assert set(peers.measure(cell, QUICK)) == {"candidates", "gigabytes"}


def test_programs_of_others_on_folds_see_one_of_each_feature_and_its_complement(
    monkeypatch,
) -> None:
    seen = {}

    def told(environment, script, arrays, *arguments):
        seen[environment] = arrays
        return [{"accuracy": 90.0, "rules": 3}]

    monkeypatch.setattr(peers, "said", told)
    for method in ("CLASSY", "CORELS"):
        cell = Cell.of(data="WDBC", fold=1, method=method)
        assert peers.measure_fold(cell, QUICK)["accuracy"] == 90.0
    arrays = seen["rulelist"]
    part = protocol.split(protocol.load(protocol.SETS["WDBC"]), 1, 0)
    assert (len(arrays["X"]), len(arrays["X_test"])) == (len(part.train), len(part.test))
    np.testing.assert_array_equal(arrays["y_test"] == 1, part.test.y == "malignant")
    columns = {column.tobytes() for column in arrays["X"].T}
    assert len(columns) == arrays["X"].shape[1] > 200
    assert not any((1 - column).tobytes() in columns for column in arrays["X"].T)
    # CORELS has the most important of them.
    chosen = seen["corels"]["X"]
    assert chosen.shape[1] == peers.MOST_COLUMNS
    assert {column.tobytes() for column in chosen.T} < columns
    cells = [str(cell) for cell in peers.fold_cells(Settings())]
    assert "data=cmc fold=9 method=CLASSY" in cells
    assert not {"data=cmc fold=0 method=RIPPER", "data=magic fold=1 method=CLASSY"} & {*cells}


def test_means_of_programs_that_run_here_stand_beside_the_papers(tmp_path) -> None:
    store = Store(tmp_path)
    for fold, row in enumerate([
        {"accuracy": 90.0, "rules": 3, "literals": 5}, {"accuracy": 94.0, "rules": 4, "literals": 5}, {"more_than": 60},
    ]):  # fmt: skip
        store.write(peers.folds, Cell.of(data="WDBC", fold=fold, method="CORELS"), row, 1.0)
    store.write(peers.folds, Cell.of(data="WDBC", fold=0, method="SBRL"), {"more_than": 60}, 1.0)
    results = Results(store, Settings())
    accuracies = exhibits.programs_table(exhibits.BINARY, ("accuracy",))(results)
    assert accuracies.columns == ["SBRL, accuracy", "CORELS*, accuracy"]
    assert accuracies.values["WDBC", "SBRL, accuracy"] == "not finished"
    value = accuracies.values["WDBC", "CORELS*, accuracy"]
    assert (value.ours, value.paper, value.mark) == (92.0, 94.39, "2 of 3 folds")
    sizes = exhibits.programs_table(exhibits.BINARY, exhibits.SIZE)(results)
    assert sizes.values["WDBC", "CORELS*, rules"].ours == 4.5  # with the default


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        pytest.param(
            "os.kill(os.getpid(), signal.SIGXCPU)",
            OutOfTime,
            "has had its time",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="no such signal"),
        ),
        ("sys.exit('the reason')", NotRun, "code 1: the reason"),
    ],
)
def test_what_a_program_of_others_says(monkeypatch, tmp_path, line, error, message) -> None:
    monkeypatch.setattr("benchmarks.peers.python_of", lambda name: sys.executable)
    script = tmp_path / "script.py"
    script.write_text(
        "import json, os, signal, sys\nimport numpy as np\nprint('Iteration: 1')\n"
        "print(json.dumps({'sum': int(np.load(sys.argv[1])['X'].sum()), 'option': sys.argv[2]}))\n"
    )
    arrays = {"X": np.arange(4)}
    assert said("sbrl", script, arrays, 7) == [{"sum": 6, "option": "7"}]
    script.write_text(f"import os, signal, sys\n{line}\n")
    with pytest.raises(error, match=message):
        said("sbrl", script, arrays)


def test_candidates_are_pairs_of_items_that_a_row_has() -> None:
    X = np.array([[True, True], [True, False]])
    assert peers.candidates(X, np.array([0, 1])) == 3 + 2  # x0=1, x1=1, x1=0, and two pairs


def test_cut_points_are_those_of_the_printed_list() -> None:
    X = jr.datasets.load("iris").X
    cuts = protocol.closed(X, protocol.NINTHS)
    printed = {"petal length (cm)": {2.63, 4.9}, "petal width (cm)": {1.6}}
    for name, thresholds in printed.items():
        column = X.columns[X.schema.names.index(name)]
        assert thresholds <= {round(cut, 2) for cut in cuts[name]}
        assert not thresholds & {round(q, 2) for q in np.quantile(column, np.arange(1, 10) / 10)}
        at_most = {tuple(column < cut) for cut in cuts[name]}
        assert at_most == {tuple(column <= q) for q in np.quantile(column, np.arange(1, 9) / 9)}


def test_printed_list_of_iris() -> None:
    data = jr.datasets.load("iris")
    assert np.mean(protocol.printed_list("iris", data) == data.y) > 0.94


@pytest.mark.needs_data
def test_printed_list_of_compas() -> None:
    data = jr.datasets.load("compas_binary")
    assert np.mean(protocol.printed_list("COMPAS-binary", data) == data.y) > 0.64
