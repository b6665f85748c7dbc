"""The reproduction framework, on a toy paper: what is computed, kept,
resumed, compared and drawn.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxrules as jr
import paper_reproductions
from paper_reproductions import (
    Cell,
    ComparisonTable,
    Exhibit,
    Experiment,
    Paper,
    Quoted,
    Results,
    Rows,
    Section,
    Settings,
    Value,
    audit,
    data_sources,
    jobs,
)
from paper_reproductions.__main__ import (
    adopt,
    available_papers,
    chosen_exhibits,
    load_paper,
    main,
    reproduce,
)
from paper_reproductions.framework import (
    Archive,
    Made,
    Store,
    Task,
    library,
    processor,
    run,
    unfinished,
)
from paper_reproductions.papers import archive_of
from paper_reproductions.report import total_line, write
from paper_reproductions.sections import Canvas

PUBLISHED = {"rose": 2.0, "lily": 3.0}


class Toy:
    """A paper whose cells count how often they were computed."""

    def __init__(self) -> None:
        self.computed: list[Cell] = []
        self.broken: set[tuple[str, int]] = set()
        self.patience = 99
        self.size = Experiment("size", self.cells, self.measure)
        self.path = Experiment("path", lambda settings: [Cell.of(data="rose")], self.measure_path)
        self.paper = Paper(
            "toy",
            "A paper about flowers",
            "Doe (2020)",
            (
                Exhibit("table", 1, "Sizes", (self.size,), self.table_1),
                Exhibit("figure", 2, "A path", (self.path, self.size), self.figure_2),
            ),
            protocol="Flowers are measured.\n\nTwice.",
            quick="one fold.",
            summary=lambda results: f"{len(results[self.size])} flowers.",
        )

    @staticmethod
    def cells(settings: Settings) -> list[Cell]:
        return [
            Cell.of(data=data, fold=fold) for data in PUBLISHED for fold in settings.first_folds(4)
        ]

    def measure(self, cell: Cell, settings: Settings) -> dict[str, float]:
        if (cell["data"], cell["fold"]) in self.broken:
            raise RuntimeError("wilted")
        if len(self.computed) == self.patience:
            raise KeyboardInterrupt
        self.computed.append(cell)
        return {"size": len(cell["data"]) / 3 + cell["fold"]}

    def measure_path(self, cell: Cell, settings: Settings) -> list[dict[str, float]]:
        self.computed.append(cell)
        return [{"penalty": penalty, "rules": 10 - 3 * penalty} for penalty in (1, 2, 3)]

    def table_1(self, results: Results, canvas: Canvas) -> Section:
        values = {
            (data, "size"): Value(
                results[self.size].where(data=data).mean("size"),
                published,
                digits=2,
                tolerance=0.5,
                spread=results[self.size].where(data=data).spread("size"),
                reason="It rained.",
            )
            for data, published in PUBLISHED.items()
        }
        return Section(
            "How large?", (ComparisonTable("Sizes", tuple(PUBLISHED), ("size",), values),)
        )

    def figure_2(self, results: Results, canvas: Canvas) -> Section:
        figure, axes = canvas.subplots(1, 2)
        rows = results[self.path]
        axes[0, 0].plot(rows.column("penalty"), rows.column("rules"))
        return Section(figures=(canvas.save(figure, "figure_2"),))


@pytest.fixture
def toy() -> Toy:
    return Toy()


FULL = Settings()


def everything(toy: Toy, folder, settings=FULL, **options) -> int:
    return reproduce(toy.paper, toy.paper.exhibits, settings, folder, **options)


def test_all_cells_are_computed_once_and_kept(toy, tmp_path, capsys):
    assert everything(toy, tmp_path) == 0
    assert (
        len(toy.computed) == len(set(toy.computed)) == 9
    )  # 2 flowers x 4 folds, shared by both exhibits; 1 path
    first = (tmp_path / "toy/full/report.md").read_text()
    assert everything(toy, tmp_path) == 0
    assert len(toy.computed) == 9
    assert "9 cells are finished already" in capsys.readouterr().out
    assert (tmp_path / "toy/full/report.md").read_text() == first


def test_three_folds_are_the_first_of_four(toy, tmp_path):
    everything(toy, tmp_path, Settings(folds=3))
    assert {cell["fold"] for cell in toy.computed if "fold" in dict(cell.key)} == {0, 1, 2}
    before = len(toy.computed)
    everything(toy, tmp_path)
    assert len(toy.computed) == before + 2


def test_quick_and_seeds_are_kept_apart(toy, tmp_path):
    everything(toy, tmp_path, Settings(quick=True))
    assert len(toy.computed) == 3
    assert "THIS IS A QUICK RUN" in (tmp_path / "toy/quick/report.md").read_text()
    everything(toy, tmp_path, Settings(quick=True, seed=5))
    assert len(toy.computed) == 6
    assert (tmp_path / "toy/quick-seed-5/report.html").exists()


def test_first_folds():
    assert list(Settings().first_folds(4)) == [0, 1, 2, 3]
    assert list(Settings(quick=True).first_folds(4)) == [0]
    assert list(Settings(quick=True, folds=2).first_folds(4)) == [0, 1]
    assert list(Settings(folds=9).first_folds(4)) == [0, 1, 2, 3]


def test_fresh_computes_again_and_report_only_computes_nothing(toy, tmp_path):
    everything(toy, tmp_path, report_only=True)
    assert not toy.computed
    report = (tmp_path / "toy/full/report.md").read_text()
    assert "Not finished: 8 of 8 cells" in report
    assert "not run (paper 2.00)" in report
    everything(toy, tmp_path)
    everything(toy, tmp_path, fresh=True)
    assert len(toy.computed) == 18


def test_a_failing_cell_is_named_and_the_others_go_on(toy, tmp_path, capsys):
    toy.broken = {("rose", 2)}
    assert everything(toy, tmp_path) == 1
    assert len(toy.computed) == 8
    assert "FAILED: RuntimeError: wilted" in capsys.readouterr().out
    report = (tmp_path / "toy/full/report.md").read_text()
    assert "Cells that failed in this run" in report
    assert "size: data=rose fold=2: RuntimeError: wilted" in report
    toy.broken = set()
    assert everything(toy, tmp_path) == 0
    assert len(toy.computed) == 9


def test_an_interrupted_run_goes_on_where_it_stopped(toy, tmp_path, capsys):
    first = Toy()
    first.patience = 3
    assert everything(first, tmp_path) == 130
    assert "interrupted; run the same command to go on" in capsys.readouterr().out
    assert everything(toy, tmp_path) == 0
    assert len(toy.computed) == 6


def test_the_report_puts_the_paper_beside_every_number(toy, tmp_path):
    everything(toy, tmp_path)
    report = (tmp_path / "toy/full/report.md").read_text()
    # four letters: 4/3 + mean of the folds 0..3; the standard deviation of 0..3 is 1.29
    assert "| rose | 2.83 ± 1.29 (paper 2.00, +0.83) |" in report
    assert "| lily | 2.83 ± 1.29 (paper 3.00, -0.17) |" in report
    assert "- rose, size: 2.83 ± 1.29 (paper 2.00, +0.83) (tolerance 0.5). It rained." in report
    assert "| Table 1 | 2 | 2 | 0 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |" in report
    assert "8 flowers." in report
    assert "![figure_2](figure_2.png)" in report
    assert (tmp_path / "toy/full/figure_2.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "toy/full/report.html").read_text()
    assert "<td class=departs>2.83 ± 1.29 (paper 2.00, +0.83)</td>" in page
    assert "<td>2.83 ± 1.29 (paper 3.00, -0.17)</td>" in page


def test_html_is_escaped(toy, tmp_path):
    nasty = Exhibit("table", 3, "a < b & c", (), lambda results, canvas: Section("x < y"))
    paper = dataclasses.replace(toy.paper, exhibits=(nasty,))
    reproduce(paper, paper.exhibits, Settings(), tmp_path)
    page = (tmp_path / "toy/full/report.html").read_text()
    assert "a &lt; b &amp; c" in page
    assert "<p>x &lt; y</p>" in page


@pytest.mark.parametrize(
    ("only", "ours", "departs"),
    [
        (None, 1.2, True), (None, 0.8, True), (None, 1.05, False),
        ("above", 1.2, True), ("above", 0.8, False), ("below", 1.2, False), ("below", 0.8, True),
    ],
)  # fmt: skip
def test_which_differences_count(only, ours, departs):
    assert Value(ours, 1.0, tolerance=0.1, only=only).departs is departs


def test_values_without_a_counterpart():
    assert str(Value(None, 1.0)) == "not run (paper 1.0000)"
    assert str(Value(0.5, mark="5000 rows")) == "0.5000 [5000 rows]"
    assert not Value(None, 1.0, tolerance=0.1).departs
    assert not Value(5.0, 1.0).departs


KEYS = st.one_of(
    st.integers(-(10**9), 10**9), st.sampled_from(["adult", "a b/c", "x,y", 'with "quotes"', "ä"])
)


@settings(max_examples=50)
@given(
    key=st.dictionaries(st.sampled_from(["data", "fold", "method"]), KEYS, min_size=1),
    measured=st.lists(
        st.fixed_dictionaries(
            {
                "value": st.floats(allow_nan=False),
                "text": st.sampled_from(["", "a, b", "two\nlines"]),
            }
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_cells_come_back_as_they_were(tmp_path_factory, key, measured):
    store = Store(tmp_path_factory.mktemp("store"))
    cell = Cell.of(**key)
    experiment = Experiment("x", lambda settings: [cell], lambda cell, settings: measured)
    assert store.read(experiment, cell) is None
    run(unfinished([experiment], Settings(), store), Settings(), store, report=lambda line: None)
    rows = store.read(experiment, cell)
    assert rows is not None
    seconds = [row["cell_seconds"] for row in rows]
    assert rows == [
        {**key, **row, "cell_seconds": s} for row, s in zip(measured, seconds, strict=True)
    ]


def test_rows():
    rows = Rows([{"data": "a", "x": 1.0}, {"data": "a", "x": 3.0}, {"data": "b", "x": 5.0, "y": 2}])
    assert rows.values("data") == ("a", "b")
    assert rows.where(data="a").mean("x") == 2.0
    assert rows.where(data="a").spread("x") == pytest.approx(2**0.5)
    assert rows.where(data="b").spread("x") is None
    assert rows.where(data="c").mean("x") is None
    assert rows.column("y").tolist() == [2.0]


@pytest.mark.parametrize("measured", [[], {"data": 1.0}])
def test_what_a_cell_may_not_return(tmp_path, measured):
    experiment = Experiment(
        "x", lambda settings: [Cell.of(data="a")], lambda cell, settings: measured
    )
    tasks = unfinished([experiment], Settings(), Store(tmp_path))
    outcome = run(tasks, Settings(), Store(tmp_path), report=lambda line: None)
    assert isinstance(outcome.failures[0].error, ValueError)


def test_choosing_exhibits(toy):
    assert [e.name for e in chosen_exhibits(toy.paper, [], [])] == ["Table 1", "Figure 2"]
    assert [e.name for e in chosen_exhibits(toy.paper, [], [2])] == ["Figure 2"]
    with pytest.raises(ValueError, match="toy has no table 7 here; it has Table 1, Figure 2"):
        chosen_exhibits(toy.paper, [7], [])


def test_command_line(capsys, tmp_path):
    assert main(["no_such_paper", "--results", str(tmp_path)]) == 2
    assert "paper must be one of" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["no_such_paper", "--folds", "0"])
    with pytest.raises(SystemExit):
        main(["no_such_paper", "--all", "--table", "1"])
    with pytest.raises(SystemExit):
        main(["no_such_paper", "--shipped", "--table", "1", "--folds", "3"])
    assert (
        "--shipped writes the whole report; it goes without --table, --folds"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", available_papers())
def test_every_paper_reports_before_anything_is_computed(name, tmp_path):
    paper = load_paper(name)
    assert paper.name == name
    assert reproduce(paper, paper.exhibits, Settings(quick=True), tmp_path, report_only=True) == 0


def test_every_number_of_the_paper_is_counted(tmp_path):
    """Compared, not compared (no tolerance), not run; a number of ours alone is none of the
    paper's.
    """
    values = {
        ("a", "x"): Value(1.0, 1.0, tolerance=0.1),
        ("b", "x"): Value(1.0, 2.0, apart="another machine", kind="time"),
        ("c", "x"): Value(None, 2.0),
        ("d", "x"): Value(1.0),
        ("e", "x"): Value(1.0, 2.0, tolerance=0.1, only="above"),
        ("f", "x"): Quoted("3 ± 1", 2),
        ("g", "x"): Quoted("x >= 3", apart="rules"),
        ("h", "x"): Value(1.0, mark=Quoted("paper's 1 to 2", 2, apart="rules")),
        ("i", "x"): Value(2.0, 1.0, tolerance=0.1, reason="By a half; the rest is unexplained."),
    }
    section = Section(tables=(ComparisonTable("t", tuple("abcdefghi"), ("x",), values),))
    exhibit = Exhibit("table", 7, "t", (), lambda results, canvas: section)
    paper = Paper("p", "P", "R", (exhibit,))
    markdown, _ = write(paper, (exhibit,), Results(Store(tmp_path), Settings()), tmp_path)
    text = markdown.read_text()
    assert "| Table 7 | 8 | 3 | 1 | 2 | 0 | 1 | 1 | 0 | 3 | 1 | 2 |" in text
    assert "| all | 8 | 3 | 1 | 2 | 0 | 1 | 1 | 0 | 3 | 1 | 2 |" in text
    assert "- Table 7: 3 results (rules)" in text
    assert "| h | 1.0000 [paper's 1 to 2] |" in text
    assert "- Table 7: 1 times (another machine)" in text


def test_a_number_in_several_tables_counts_once(tmp_path):
    """For the exhibit where it is first compared; it agrees if it does wherever it is compared."""
    tables = [
        {
            ("a", "x"): Value(1.0, 1.0, apart="elsewhere", number="one"),
            ("b", "x"): Value(5.0, 1.0, number="two"),
        },
        {
            ("a", "x"): Value(1.0, 1.0, tolerance=0.1, number="one"),
            ("b", "x"): Value(None, 1.0, number="two"),
        },
        {("a", "x"): Value(2.0, 1.0, tolerance=0.1, number="one")},
    ]
    sections = [
        Section(tables=(ComparisonTable("t", ("a", "b"), ("x",), values),)) for values in tables
    ]
    exhibits = tuple(
        Exhibit("figure", k, "t", (), lambda results, canvas, section=section: section)
        for k, section in enumerate(sections, start=1)
    )
    paper = Paper("p", "P", "R", exhibits)
    text = write(paper, exhibits, Results(Store(tmp_path), Settings()), tmp_path)[0].read_text()
    assert "| Figure 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 | 0 | 0 |" in text
    assert "| Figure 2 | 1 | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 0 |" in text
    assert "| Figure 3" not in text


@pytest.mark.parametrize("name", available_papers())
def test_every_number_is_compared_or_it_is_said_why_not(name, tmp_path, monkeypatch):
    """In the report of the shipped results, which needs no data."""
    monkeypatch.setattr(
        jr.datasets, "load", lambda *names, **options: pytest.fail(f"it loads {names}")
    )
    paper = load_paper(name)
    root = Archive(Path(paper_reproductions.__file__).parent / name / "archive")
    shipped = root.folder.exists()
    results = (
        Results(root, root.settings) if shipped else Results(Store(tmp_path), Settings(quick=True))
    )
    if shipped:
        overview = Path(paper_reproductions.__file__).parents[1] / "docs" / "reproductions.md"
        assert total_line(paper, results, Canvas(tmp_path)) in overview.read_text()
    unsaid = [
        (exhibit.name, table.title, str(value))
        for exhibit in paper.exhibits
        for table in exhibit.show(results, Canvas(tmp_path)).tables
        for value in table.printed()
        if value.tolerance is None and not value.apart
    ]
    assert not unsaid


def test_bold_is_bold_and_a_quick_run_gives_no_reasons(toy, tmp_path):
    values = {
        ("a", "x"): Value(2.0, 1.0, tolerance=0.1, reason="It rained."),
        ("b", "x"): "**held**",
    }
    section = Section(tables=(ComparisonTable("t", ("a", "b"), ("x",), values),))
    exhibit = Exhibit("table", 7, "t", (toy.size,), lambda results, canvas: section)
    paper = Paper("p", "P", "R", (exhibit,))
    for asked, said in ((Settings(), True), (Settings(quick=True), False)):
        markdown, page = write(paper, (exhibit,), Results(Store(tmp_path), asked), tmp_path)
        assert ("It rained." in markdown.read_text()) is said
        assert "<b>held</b>" in page.read_text()
    assert "size 2 of 8." in markdown.read_text(), (
        "cells of the full protocol that a quick run asks for"
    )
    assert "(a quick run gives no reasons)" in markdown.read_text()


def test_an_archive_gives_the_results_back(toy, tmp_path):
    """One CSV file per experiment; the report names the versions and the date with
    which the cells were made.
    """
    everything(toy, tmp_path)
    settings = Settings()
    results = Results(Store(tmp_path / "toy/full"), settings)
    archive = Archive(tmp_path / "archive")
    archive.pack(results, [toy.size, toy.path], {"Versions": "jaxrules 9", "Date": "2031-01-01"})
    assert archive.settings == settings
    assert sorted(path.name for path in archive.folder.iterdir()) == [
        "about.json",
        "path.csv",
        "size.csv",
    ]
    back = Results(archive, settings)
    for experiment in (toy.size, toy.path):
        for row, before in zip(back[experiment], results[experiment], strict=True):
            del before["cell_seconds"]
            assert row == {
                name: pytest.approx(v, rel=1e-6) if type(v) is float else v
                for name, v in before.items()
            }
        assert all(archive.has(experiment, cell) for cell in experiment.cells(settings))
    assert not archive.has(toy.size, Cell.of(data="rose", fold=99))
    assert archive.has(toy.size, Cell.of(data="rose", fold="1")), "digits are read as a number"
    markdown, _ = write(toy.paper, toy.paper.exhibits, back, tmp_path / "docs")
    assert "Versions: jaxrules 9. Date: 2031-01-01." in markdown.read_text()
    table = markdown.read_text().split("## Table 1")[1]
    assert table == (tmp_path / "toy/full/report.md").read_text().split("## Table 1")[1]


def test_an_archive_says_how_long_its_cells_took(toy, tmp_path):
    """By experiment, over the cells that record their time; those restored from an archive have
    none.
    """
    store = Store(tmp_path / "toy/full")
    for cell, seconds in zip(toy.cells(FULL), (60.0, 30.0, 0.0), strict=False):
        store.write(toy.size, cell, {"size": 1.0}, seconds)
    store.write(
        toy.path,
        Cell.of(data="rose"),
        [{"penalty": 1, "rules": 2}, {"penalty": 2, "rules": 1}],
        4.2,
    )
    archive = Archive(tmp_path / "archive")
    results = Results(store, FULL)
    archive.pack(results, [toy.size, toy.path], {"Versions": "of today"})
    for kept in (results, Results(archive, FULL)):
        assert kept.store.seconds(toy.size, FULL) == (90.0, 2)
        text = write(toy.paper, toy.paper.exhibits, kept, tmp_path / "docs")[0].read_text()
        assert "Computed in 2 min, by the clock" in text
        assert "the sum over 3 of 4 cells (size 2 min, path 4 s)" in text
    again = Store(tmp_path / "again")
    again.write(toy.size, next(iter(toy.cells(FULL))), {"size": 1.0}, 1.0)
    archive.pack(Results(again, FULL), [toy.size, toy.path], {"Versions": "of today"})
    assert archive.seconds(toy.size, FULL) == (90.0, 2)


@pytest.mark.parametrize("name", [name for name in available_papers() if name != "others"])
def test_the_overview_names_all_exhibits(name):
    overview = (
        Path(paper_reproductions.__file__).parents[1] / "docs" / "reproductions.md"
    ).read_text()
    line = next(line for line in overview.splitlines() if line.startswith(f"| `{name}` |"))
    named = set()
    for kind, numbers in re.findall(r"(Table|Figure)s? ((?:\d+|, | to | and )+)", line):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", numbers):
            named |= {f"{kind} {number}" for number in range(int(first), int(last or first) + 1)}
    assert named == {exhibit.name for exhibit in load_paper(name).exhibits}


# With what a cell was made


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", True, None])
def test_the_version_of_an_experiment_counts_from_1(version):
    with pytest.raises(ValueError, match="size: version must be an integer of at least 1, got"):
        Experiment("size", lambda settings: [], lambda cell, settings: {}, version=version)


@pytest.mark.parametrize("name", available_papers())
def test_archives_hold_cells_of_the_present_versions(name):
    archive = archive_of(name)
    for experiment in {
        e.name: e for x in load_paper(name).exhibits for e in x.experiments
    }.values():
        made = [archive.made(experiment, cell) for cell in experiment.cells(archive.settings)]
        assert experiment.version in {one.protocol for one in made if one}, experiment.name


def test_a_changed_protocol_computes_again(toy, tmp_path, monkeypatch):
    everything(toy, tmp_path)
    store, cell = Store(tmp_path / "toy/full"), Cell.of(data="rose")
    date = store.made(toy.path, cell).date
    assert store.made(toy.path, cell) == Made(1, library(), date, processor())
    assert not unfinished([toy.path, toy.size], FULL, store)
    changed = dataclasses.replace(
        toy.path, measure=lambda cell, settings: {"penalty": 7, "rules": 0}, version=2
    )
    assert unfinished([changed, toy.size], FULL, store) == [Task(changed, cell)]
    assert store.read(changed, cell) is None
    run(unfinished([changed], FULL, store), FULL, store, report=lambda line: None)
    assert store.read(changed, cell)[0]["penalty"] == 7
    assert store.made(changed, cell).protocol == 2
    assert unfinished([toy.path], FULL, store) == [Task(toy.path, cell)], "of another version, too"
    assert f"Cells: 9 by jaxrules {library()}" in (tmp_path / "toy/full/report.md").read_text()


def test_cells_without_a_protocol_are_adopted_or_refused(toy, tmp_path, capsys):
    everything(toy, tmp_path)
    for path in (tmp_path / "toy/full/cells").rglob("*.csv"):
        lines = [row[:-4] for row in csv.reader(path.read_text().splitlines())]
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(lines)  # as they were kept before cells carried it
    assert everything(toy, tmp_path) == 2
    assert "9 cells in" in (said := capsys.readouterr().err)
    assert "--adopt" in said
    assert len(toy.computed) == 9
    adopt(toy.paper, FULL, tmp_path, "0.0.9 (abc)")
    assert everything(toy, tmp_path) == 0
    assert len(toy.computed) == 9
    assert "9 by jaxrules 0.0.9 (abc), adopted" in (tmp_path / "toy/full/report.md").read_text()
    assert not Store(tmp_path / "toy/full").adopt(toy.path, Cell.of(data="rose"), "other"), (
        "it has one already"
    )


def test_an_archive_shows_cells_of_an_older_protocol_and_says_so(toy, tmp_path):
    everything(toy, tmp_path)
    archive = Archive(tmp_path / "archive")
    archive.pack(Results(Store(tmp_path / "toy/full"), FULL), [toy.size, toy.path], {})
    toy.path = dataclasses.replace(toy.path, version=2)
    paper = dataclasses.replace(
        toy.paper,
        exhibits=(dataclasses.replace(toy.paper.exhibits[1], experiments=(toy.path, toy.size)),),
    )
    markdown, _ = write(paper, paper.exhibits, Results(archive, FULL), tmp_path / "docs")
    text = markdown.read_text()
    assert "Not finished" not in text
    assert text.count("(measured in another way than this version of the reproduction would)") == 1


# What is asked for


def test_only_a_method(tmp_path):
    cells = [Cell.of(method=method, fold=fold) for method in ("a", "b") for fold in (0, 1)]
    experiment = Experiment("x", lambda settings: cells, lambda cell, settings: {})
    tasks = unfinished([experiment, experiment], FULL, Store(tmp_path), only=["b"])
    assert [task.cell for task in tasks] == cells[2:]
    with pytest.raises(ValueError, match="no cell has the method 'c'; there are 'a', 'b'"):
        unfinished([experiment], FULL, Store(tmp_path), only=["c"])


def test_one_run_at_a_time(tmp_path, capsys):
    with (
        jobs.alone(tmp_path / "coordinate_paths/quick"),
        pytest.raises(jobs.Busy, match="is at work"),
        jobs.alone(tmp_path / "coordinate_paths/quick"),
    ):
        pass
    with jobs.alone(tmp_path / "coordinate_paths/quick"):
        assert main(["coordinate_paths", "--report", "--quick", "--results", str(tmp_path)]) == 2
    assert "is at work in" in capsys.readouterr().err
    with jobs.alone(tmp_path / "coordinate_paths/quick"):
        pass


def test_missing_data_sets_are_named_together(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("JAXRULES_DATA", raising=False)
    assert main(["coordinate_paths", "--quick", "--results", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "3 data sets are missing; nothing was computed" in said
    for name in ("prestige", "caschool", "bike_day"):
        assert f"  {name}: github.com/{data_sources.SOURCES[name]['repository']}, " in said
    assert not list(tmp_path.rglob("cells"))


@pytest.mark.parametrize("there", [True, False])
def test_a_data_folder_without_a_manifest_or_that_is_not_there(
    there, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "data"
    if there:
        folder.mkdir()
    monkeypatch.setenv("JAXRULES_DATA", str(folder))
    assert main(["coordinate_paths", "--quick", "--results", str(tmp_path / "results")]) == 2
    said = capsys.readouterr().err
    assert (
        "3 data sets are missing; nothing was computed: the environment variable JAXRULES_DATA "
        "names" in said
    )
    bundled = Experiment(
        "x", lambda settings: [], lambda cell, settings: {}, lambda cell: ("iris",)
    )
    assert not data_sources.missing([Task(bundled, Cell.of(k=1))]), "it comes with scikit-learn"


@pytest.mark.parametrize("name", available_papers())
def test_it_is_known_where_every_data_set_comes_from(name, monkeypatch):
    monkeypatch.delenv("JAXRULES_DATA", raising=False)
    experiments = {
        e.name: e for exhibit in load_paper(name).exhibits for e in exhibit.experiments
    }.values()
    tasks = [Task(e, cell) for e in experiments for cell in e.cells(Settings(slow=True))]
    assert "not known here" not in data_sources.missing(tasks)


def test_a_fit_that_ctrl_c_made_shorter_is_not_kept(toy, tmp_path):
    def measure(cell, settings):
        with contextlib.suppress(KeyboardInterrupt):  # as a fit does
            signal.raise_signal(signal.SIGINT)
        return {"x": 1.0}

    experiment = Experiment("x", lambda settings: [Cell.of(k=1)], measure)
    store = Store(tmp_path)
    outcome = run(unfinished([experiment], FULL, store), FULL, store, report=lambda line: None)
    assert outcome.interrupted
    assert store.made(experiment, Cell.of(k=1)) is None


@pytest.mark.slow
def test_several_processes_measure_what_one_does(tmp_path):
    for name, more in (("one", []), ("two", ["--jobs", "2"])):
        command = [
            sys.executable,
            "-m",
            "paper_reproductions",
            "coordinate_paths",
            "--quick",
            "--table",
            "1",
        ]
        subprocess.run(
            [*command, "--results", str(tmp_path / name), *more], check=True, capture_output=True
        )
    tables = [
        (tmp_path / n / "coordinate_paths/quick/report.md").read_text().split("## Table")
        for n in ("one", "two")
    ]
    assert tables[0][1] == tables[1][1]


# Audits


@pytest.fixture
def shipped(toy, tmp_path, monkeypatch) -> Archive:
    """The toy paper with an archive, for the command line."""
    everything(toy, tmp_path)
    archive = Archive(tmp_path / "archive")
    archive.pack(
        Results(Store(tmp_path / "toy/full"), FULL),
        [toy.size, toy.path],
        {"Versions": "jaxrules 9"},
    )
    monkeypatch.setattr(audit, "load_paper", lambda name: toy.paper)
    monkeypatch.setattr(audit, "archive_of", lambda name: archive)
    return archive


def test_an_audit_measures_random_cells_again(toy, shipped, capsys):
    assert main(["audit", "toy", "--share", "1"]) == 0
    assert "0 of 9 cells differ" in capsys.readouterr().out
    toy.computed.clear()
    assert main(["audit", "toy", "--cells", "2", "--seed", "3"]) == 0
    assert {cell.key[0] for cell in toy.computed} <= {("data", "rose"), ("data", "lily")}
    assert len(toy.computed) == 2
    assert any("fold" not in dict(cell.key) for cell in toy.computed), "one of every experiment"
    first, toy.computed = toy.computed, []
    assert main(["audit", "toy", "--cells", "2", "--seed", "3"]) == 0
    assert toy.computed == first, "the seed repeats the draw"


def test_an_audit_names_what_differs_and_marks_it(toy, shipped, tmp_path, capsys):
    object.__setattr__(toy.size, "measure", lambda cell, settings: {"size": 1.0000001})
    toy.broken.add(("rose", 0))
    assert main(["audit", "toy", "--share", "1", "--only", "size", "--mark"]) == 1
    said = capsys.readouterr().out
    assert "DIFFERS" in said
    assert "row 0, size: 2.333333 in the archive, 1.0 now" in said
    assert shipped.stale["size"].startswith("8 of 8 cells measured again differ with jaxrules")
    assert main(["audit", "toy", "--share", "1"]) == 0, "what is known to be stale is left out"
    markdown, _ = write(toy.paper, toy.paper.exhibits, Results(shipped, FULL), tmp_path / "docs")
    assert "By an earlier version of jaxrules: size (8 of 8" in markdown.read_text()
    assert main(["audit", "no_such_paper"]) == 0


@pytest.mark.parametrize(
    ("kept", "now", "equal"),
    [
        ({"x": 0.3333333}, {"x": 1 / 3}, True),
        ({"x": 0.3333333}, {"x": 0.33334}, False),
        ({"x": 1e-10}, {"x": 3e-10}, True),
        ({"x": 1, "seconds": 3.0}, {"x": 1, "seconds": 4.0}, True),
        ({"x": 1}, {"x": 1, "y": 2}, False),
        ({"x": 1, "y": 2}, {"x": 1}, False),
        ({"rule": "a"}, {"rule": "b"}, False),
        ({"x": float("inf")}, {"x": float("inf")}, True),
        ({"x": float("nan")}, {"x": float("nan")}, True),
        ({"x": "True"}, {"x": True}, True),
    ],
)
def test_what_counts_as_a_difference(kept, now, equal):
    assert (audit.difference([kept], now) == "") is equal
    assert audit.difference([kept, kept], now) == "2 rows in the archive, 1 now"


def test_cells_of_others_and_those_that_the_clock_ended_are_not_audited(tmp_path):
    counted = Experiment(
        "counted",
        lambda settings: [Cell.of(k=k) for k in range(4)],
        lambda cell, settings: {"unproved": cell["k"] % 2, "seconds": 60.0},
        elsewhere=lambda cell: cell["k"] == 2,
    )
    store = Store(tmp_path / "cells")
    for cell in counted.cells(FULL):
        store.write(counted, cell, counted.measure(cell, FULL), 70.0)
    archive = Archive(tmp_path / "archive")
    archive.pack(Results(store, FULL), [counted], {})
    (found,) = audit.archived("toy", archive, [counted])
    assert found.task.cell == Cell.of(k=0)
    assert found.seconds == 70.0


def test_cells_that_depend_on_rounding_are_audited_on_processors_like_theirs(
    toy, tmp_path, monkeypatch
):
    store, archive = Store(tmp_path / "cells"), Archive(tmp_path / "archive")
    rounds = dataclasses.replace(toy.size, rounding=True)
    here, elsewhere = list(rounds.cells(FULL))[:2]
    store.write(rounds, here, {"size": 1.0}, 1.0)
    with monkeypatch.context() as patch:
        patch.setattr("paper_reproductions.framework.processor", lambda: "another")
        store.write(rounds, elsewhere, {"size": 1.0}, 1.0)
    archive.pack(Results(store, FULL), [rounds], {})
    assert archive.made(rounds, elsewhere).processor == "another"
    assert [one.task.cell for one in audit.archived("toy", archive, [rounds])] == [here]
    strict = dataclasses.replace(rounds, rounding=False)
    assert len(audit.archived("toy", archive, [strict])) == 2


def test_new_results_replace_their_cells_of_an_archive_only(toy, shipped, tmp_path):
    shipped.mark_stale({"size": "old", "path": "old"})
    store = Store(tmp_path / "later")
    store.write(toy.size, Cell.of(data="rose", fold=1), {"size": 77.0}, 5.0)
    store.write(toy.path, Cell.of(data="rose"), {"penalty": 1, "rules": 7}, 2.0)
    shipped.pack(Results(store, FULL), [toy.size, toy.path], {"Versions": "jaxrules 10"})
    rows = Results(shipped, FULL)[toy.size]
    assert [row["size"] for row in rows if row["size"] > 70] == [77.0]
    assert len(rows) == 8
    assert list(shipped.stale) == ["size"], "path has no old cell left"
    assert shipped.about == {"Versions": "jaxrules 10", "Earlier cells": "jaxrules 9"}
    assert shipped.seconds(toy.size, FULL) == (5.0, 1)
    object.__setattr__(toy.size, "elsewhere", lambda cell: True)
    shipped.pack(Results(store, FULL), [toy.size, toy.path], {"Versions": "jaxrules 10"})
    assert not shipped.stale, "programs of others do not change with the library"
