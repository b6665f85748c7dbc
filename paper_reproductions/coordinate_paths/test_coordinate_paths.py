"""The reproduction of the coordinate path paper: the toy problem in full, the real
data where they are at hand.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from paper_reproductions import coordinate_paths
from paper_reproductions.__main__ import load_paper, main, reproduce
from paper_reproductions.coordinate_paths import bikes, data, prestige, published, schools, toy
from paper_reproductions.framework import (
    Archive,
    Cell,
    Results,
    Rows,
    Settings,
    Store,
    run,
    unfinished,
)
from paper_reproductions.report import write
from paper_reproductions.sections import Canvas

QUICK = Settings(quick=True)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The toy problem's cells."""
    store = Store(tmp_path_factory.mktemp("toy"))
    tasks = unfinished([e for x in toy.EXHIBITS for e in x.experiments], QUICK, store)
    outcome = run(tasks, QUICK, store, report=lambda line: None)
    assert not outcome.failures
    return Results(store, QUICK)


def test_all_exhibits_are_there():
    names = [exhibit.name for exhibit in load_paper("coordinate_paths").exhibits]
    assert names == ["Table 1", "Figure 1", "Figure 2", "Table 2", "Figure 3", "Figure 4"]


def test_toy_data_have_the_moments_of_the_problem():
    X, y = data.toy()
    moments = X.numeric_matrix().T @ X.numeric_matrix() / len(y)
    np.testing.assert_allclose(
        moments, [[1, published.CORRELATION], [published.CORRELATION, 1]], atol=1e-15
    )
    solution, residuals, *_ = np.linalg.lstsq(X.numeric_matrix(), y)
    np.testing.assert_allclose(solution, published.OPTIMUM, atol=1e-14)
    np.testing.assert_allclose(residuals / len(y), published.OPTIMAL_COST, atol=1e-14)


@pytest.mark.parametrize("exhibit", toy.EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_every_number_of_the_toy_problem_agrees_with_the_paper(exhibit, measured, tmp_path):
    section = exhibit.show(measured, Canvas(tmp_path))
    compared = [entry for table in section.tables for entry in table.compared()]
    assert len(compared) >= 4
    assert not [(row, column, str(value)) for row, column, value in compared if value.departs]
    assert all(path.stat().st_size > 5000 for path in section.figures)
    assert len(section.figures) == (exhibit.kind == "figure")


def test_every_number_of_the_paper_counts_once(tmp_path):
    """As the paper prints them: 28 of Table 1 and the greedy path of Section 2.2, of
    which Fig. 1 and 2 show some.
    """
    paper = load_paper("coordinate_paths")
    archive = Archive(Path(coordinate_paths.__file__).parent / "archive")
    text = write(paper, paper.exhibits, Results(archive, archive.settings), tmp_path)[0].read_text()
    printed = dict(re.findall(r"^\| ((?:Table|Figure) \d) \| (\d+) \|", text, re.MULTILINE))
    assert printed == {
        "Table 1": "28",
        "Figure 2": "4",
        "Table 2": "6",
        "Figure 3": "11",
        "Figure 4": "51",
    }


def test_what_is_given_is_not_compared(measured, tmp_path):
    """Both ends of a path, and all of the models that are only priced."""
    *paths, greedy = toy.show_table_1(measured, Canvas(tmp_path)).tables
    coefficients = [[name for _, name, _ in table.compared() if name != "cost"] for table in paths]
    assert [len(names) for names in coefficients] == [2, 0, 4]
    assert len(list(greedy.compared())) == 2


def test_two_step_curve_against_its_closed_form(measured):
    """With b1 = (v, 0), the second step is best at w = -0.94 - 0.9 (v - 2.12)."""
    for row in measured[toy.first_two_steps]:
        u = row["height"] - 2.12
        assert row["second"] == pytest.approx(0.25 + (1 - 0.81) * u**2, abs=1e-9)
        assert row["first"] == pytest.approx(0.25 + u**2 + 0.94**2 + 2 * 0.9 * u * 0.94, abs=1e-9)
        assert row["status"] == "optimal"


def test_front_falls_and_has_the_segments_of_the_paper(measured):
    rows = measured[toy.front]
    assert (np.diff(rows.column("loss")) > 0).all()
    assert (np.diff(rows.column("cost")) < 0).all()
    assert (np.diff(rows.column("steps")) >= 0).all()
    assert rows.values("steps") == published.FRONT_STEPS
    assert not rows.column("supported").all()
    two = rows.where(steps=2)
    assert two[0]["loss"] - rows.where(steps=1)[0]["loss"] > 0.3, "a jump"


def test_points_above_a_chord_of_another_curve_are_left_out():
    def point(loss, cost, order):
        return {"loss": loss, "cost": cost, "order": order}

    line = [point(1.0, 2.0, "a"), point(3.0, 1.0, "a")]
    above, below = point(2.0, 1.6, "b"), point(2.0, 1.4, "b")
    assert toy._without_dominated([*line, above, below]) == [*line, below]


def test_report_of_nothing_measured(tmp_path, capsys):
    assert main(["coordinate_paths", "--report", "--quick", "--results", str(tmp_path)]) == 0
    text = (tmp_path / "coordinate_paths/quick/report.md").read_text()
    assert text.count("Not finished") == 6


@pytest.mark.needs_data
def test_quick_run_of_the_real_data(tmp_path, capsys):
    paper = load_paper("coordinate_paths")
    real = [exhibit for exhibit in paper.exhibits if exhibit not in toy.EXHIBITS]
    assert reproduce(paper, real, QUICK, tmp_path) == 0
    folder = tmp_path / "coordinate_paths/quick"
    text = (folder / "report.md").read_text()
    assert "Not finished" not in text
    assert "Not explained yet" not in text
    results = Results(Store(folder), QUICK)
    exact = results[prestige.convergence].where(method="exact")
    assert len(exact) == 4
    assert exact.column("gap").max() < 1e-6
    assert results[prestige.convergence].column("gap").min() > -1e-6
    section = schools.show_figure_3(results, Canvas(tmp_path))
    values = [value for table in section.tables for _, _, value in table.compared()]
    assert len(values) == 11
    assert not any(value.departs for value in values)
    lasso = results[bikes.sequences].where(columns="last levels dropped", method="lasso")
    assert lasso.values("feature") == published.LASSO_FEATURES


@pytest.mark.needs_data
def test_printed_bike_models_are_priced_as_least_squares_prices_them():
    columns, rides = data.bike_columns()
    row = bikes.measure_alternative(Cell.of(preparation=bikes.ALL_ROWS), QUICK)
    correlation = np.corrcoef(columns["Ftemp"], rides)[0, 1]
    n = len(rides)
    expected = (1 - 2 * 0.65 * correlation + 0.65**2) / 2 * (n - 1) / n
    assert row["first"] == pytest.approx(expected, abs=1e-12)
    assert Rows([row]).column("rows")[0] == 731


@pytest.mark.parametrize(("found", "agrees"), [(0.554, True), (0.548, False)])
def test_the_papers_order_is_a_reason_where_its_coefficient_agrees(found, agrees):
    reason = bikes._order_reason(Rows([{"value": found}]), 0.555)
    assert bool(reason) == agrees
    assert bikes._order_reason(Rows(()), 0.555) == ""


@pytest.mark.needs_data
def test_the_numbers_of_a_part_are_the_models_of_the_tables():
    columns, rides = data.bike_columns()
    values = np.column_stack([*columns.values(), rides])
    numbers = bikes._all_numbers(list(columns), values)
    assert len(numbers) == len(bikes.ALL_PRINTED) == len(bikes.ROUNDING) == 49
    steps = bikes.STEPS
    ordered = bikes.measure(Cell.of(columns=bikes.COMPARED, method="paper order"), QUICK)
    np.testing.assert_allclose(numbers[:steps], [row["value"] for row in ordered], atol=1e-8)
    np.testing.assert_allclose(
        numbers[steps : 2 * steps], [row["half_cost"] for row in ordered], atol=1e-8
    )
    lasso = bikes.measure(Cell.of(columns=bikes.COMPARED, method="lasso"), QUICK)
    last = [row for row in lasso if row["model"] == steps]
    values_of = {row["feature"]: row["value"] for row in last}
    expected = [values_of[name] for name in published.LASSO_FEATURES]
    np.testing.assert_allclose(numbers[-steps - 1 : -1], expected, atol=1e-6)
    assert numbers[-1] == pytest.approx(last[0]["half_cost"], abs=1e-8)


@pytest.mark.needs_data
def test_the_paper_could_have_used_half_of_the_rows_but_not_nearly_all():
    half, most = (
        bikes.measure_parts(Cell.of(rows=rows, target=bikes.RIDES), QUICK) for rows in (365, 700)
    )
    assert half["further"] > bikes.LIKELY > most["further"]
    assert bikes._part_reason(Rows([])) == ""
    assert "for 365" in bikes._part_reason(Rows([{"rows": 365, "target": bikes.RIDES, **half}]))
    assert bikes._part_reason(Rows([{"rows": 700, "target": bikes.RIDES, **most}])) == ""
