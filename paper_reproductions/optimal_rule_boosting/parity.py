"""Fig. 1: noisy parity, on which greedy search fails."""

from __future__ import annotations

import math
from functools import reduce
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from jaxrules.rules.conditions import PropositionPool
from paper_reproductions.framework import Cell, Exhibit, Experiment, Results, Row, Rows, Settings
from paper_reproductions.optimal_rule_boosting import data, scores
from paper_reproductions.sections import Canvas, ComparisonTable, Section, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIGMA = 0.5  # the authors' program: variance 0.25
ATTRIBUTES = 8  # per column: quartiles
PENALTY = 10.0
STAGE_SECONDS = 5.0
"""What an exact stage may take."""
TEST_ROWS = 2000
METHODS = ("greedy", "beam", "optimal")
COLOURS = dict(zip(METHODS, ("C1", "C2", "C0"), strict=True))


def parity(dimension: int, n_rows: int, seed: int) -> Dataset:
    """C uniform in {-1, 1}^d, X ~ N(C, sigma^2 I), Y = product of C."""
    rng = np.random.default_rng([dimension, n_rows, seed])
    centres = rng.choice([-1.0, 1.0], (n_rows, dimension))
    X = centres + SIGMA * rng.standard_normal((n_rows, dimension))
    return Dataset("noisy parity", jr.as_table(X), centres.prod(axis=1).astype(int), "binary", "1")


def train_rows(dimension: int) -> int:
    """The paper's number of training rows."""
    return 100 * 2**dimension


def best_accuracy(dimension: int) -> float:
    """Of the 2^d rules by the signs of X: the chance that an even number
    of signs differs from C's.
    """
    return 0.5 + 0.5 * math.erf(1 / (SIGMA * math.sqrt(2))) ** dimension


def dimensions(settings: Settings) -> range:
    return range(2, 5 if settings.quick else 7)


def _pool(train: Dataset) -> PropositionPool:
    return data.quantile_propositions(train.X, ATTRIBUTES)


def _rules(dimension: int, method: str) -> int:
    """Heuristic searches may have four times the 2^d rules that are enough."""
    return 2**dimension * (1 if method == "optimal" else 4)


def measure_accuracy(cell: Cell, settings: Settings) -> list[Row]:
    """A row per number of rules."""
    dimension, method = cell["dimension"], cell["method"]
    many = train_rows(dimension) * dict(cell.key).get("times", 1)
    train = parity(dimension, many, 2 * cell["repeat"])
    test = parity(dimension, TEST_ROWS, 2 * cell["repeat"] + 1)
    limit = 1.0 if settings.quick else STAGE_SECONDS
    fit = scores.boost(train, _pool(train), method, PENALTY, limit, rules=_rules(dimension, method))
    predictions = np.cumsum(
        fit.model.conjunctions.satisfied(test.X) * np.asarray(fit.model.weights)[:, 0], axis=1
    )
    proved = [stage.status is jr.Status.OPTIMAL for stage in fit.details["stages"]]
    return [
        {
            "rules": k + 1,
            "accuracy": float(((predictions[:, k] > 0) == (test.y > 0)).mean()),
            "proved": int(proved[k]),
            "rows": len(train),
            "length": stage.length,
        }
        for k, stage in enumerate(fit.details["stages"])
    ]


DIMENSION, TIMES, REPEATS = 4, (1, 4, 16, 64), 20
"""Where rows are added, how many times the paper's there are, and how often."""
GRID = np.linspace(-2.5, 2.5, 61)


def measure_regions(cell: Cell, settings: Settings) -> list[Row]:
    """The score of four rules on a grid, d = 2."""
    train = parity(2, train_rows(2), 0)
    fit = scores.boost(train, _pool(train), cell["method"], PENALTY, 60.0, rules=4)
    points = np.array(list(product(GRID, GRID)))
    values = np.asarray(jr.decision_function(fit.model, jr.as_table(points)))
    return [
        {"x0": float(x), "x1": float(y), "score": float(v)}
        for (x, y), v in zip(points, values, strict=True)
    ]


accuracies = Experiment(
    "parity",
    lambda settings: [
        Cell.of(dimension=d, method=method, repeat=repeat)
        for repeat in settings.first_folds(5)
        for d in dimensions(settings)
        for method in METHODS
    ],
    measure_accuracy,
)
more_rows = Experiment(
    "parity_rows",
    lambda settings: [
        Cell.of(dimension=DIMENSION, method=method, repeat=repeat, times=times)
        for times in TIMES[: 2 if settings.quick else None]
        for repeat in settings.first_folds(REPEATS)
        for method in ("greedy", "optimal")
    ],
    measure_accuracy,
)
regions = Experiment(
    "parity_regions",
    lambda settings: [Cell.of(method=m) for m in ("greedy", "optimal")],
    measure_regions,
)


def show_figure_1(results: Results, canvas: Canvas) -> Section:
    rows = results[accuracies]
    names = [f"d = {d}" for d in dimensions(results.settings)]
    values: dict[tuple[str, str], Value | str] = {}
    for d, name in zip(dimensions(results.settings), names, strict=True):
        values[name, "rows"] = str(train_rows(d))
        values[name, "the 2^d rules of the signs"] = Value(best_accuracy(d))
        for method in METHODS:
            runs = last_of(rows.where(dimension=d, method=method), 2**d)
            values[name, f"{method}, 2^d rules"] = Value(
                runs.mean("accuracy"), spread=runs.spread("accuracy")
            )
            longer = last_of(rows.where(dimension=d, method=method), 4 * 2**d)
            if method != "optimal":
                values[name, f"{method}, 4 x 2^d rules"] = Value(
                    longer.mean("accuracy"), spread=longer.spread("accuracy")
                )
        exact = rows.where(dimension=d, method="optimal")
        if exact:
            values[name, "stages certified"] = (
                f"{int(exact.column('proved').sum())} of {len(exact)}"
            )
    columns = (
        "rows",
        *(f"{m}, 2^d rules" for m in METHODS),
        "greedy, 4 x 2^d rules",
        "beam, 4 x 2^d rules",
        "the 2^d rules of the signs",
        "stages certified",
    )
    table = ComparisonTable(
        "Accuracy on noisy parity, 2000 test rows", names, columns, values, corner="dimension"
    )
    grown = results[more_rows]
    by_rows: dict[tuple[str, str], Value | str] = {}
    row_names = {times: f"{times * train_rows(DIMENSION)}" for times in grown.values("times")}
    for times, name in row_names.items():
        for method in ("greedy", "optimal"):
            runs = last_of(grown.where(times=times, method=method), 2**DIMENSION)
            by_rows[name, f"{method}, 2^d rules"] = Value(
                runs.mean("accuracy"), spread=runs.spread("accuracy")
            )
    more = ComparisonTable(
        f"More rows, d = {DIMENSION}, {REPEATS} repeats",
        list(row_names.values()),
        ["greedy, 2^d rules", "optimal, 2^d rules"],
        by_rows,
        corner="training rows",
    )
    text = f"""
        sigma = {SIGMA}, lambda = {PENALTY:g}, cut points at the quartiles, as in the authors' program; the paper
        names none of them. The paper prints no numbers beside its curves. Its statement: optimal rules stay near the
        2^d rules of the signs as d grows and greedy ones fall to guessing (0.5); greedy ensembles are not improved by
        more rows of data (second table), only by many more rules. Open markers: stages that were not certified in their time, {STAGE_SECONDS:g} s. Beam search (width 10) is no
        method of the paper.
    """
    return Section(text, (table, more), _draw(results, rows, canvas))


def last_of(rows: Rows, most: int) -> Rows:
    """Per repeat the largest ensemble of at most so many rules."""
    runs = [
        [row for row in rows.where(repeat=r) if row["rules"] <= most] for r in rows.values("repeat")
    ]
    return Rows(run[-1] for run in runs if run)


def _draw(results: Results, rows: Rows, canvas: Canvas) -> tuple[Path, ...]:
    maps = results[regions]
    if not rows or not maps:
        return ()
    figure, axes = canvas.subplots(1, 4, width=3.7)
    points = parity(2, train_rows(2), 0)
    for ax, method in zip(axes[0], ("greedy", "optimal"), strict=False):
        _draw_regions(ax, maps.where(method=method), points)
        ax.set_title(f"(a) {method}, d = 2, k = 4")
    growth, size = axes[0, 2:]
    there = [d for d in dimensions(results.settings) if rows.where(dimension=d)]
    largest = there[-1]
    for method in METHODS:
        runs = {d: last_of(rows.where(dimension=d, method=method), 2**d) for d in there}
        means = {d: run.column("accuracy").mean() for d, run in runs.items() if run}
        growth.plot(list(means), list(means.values()), "o-", color=COLOURS[method], label=method)
        _draw_sizes(size, rows.where(dimension=largest, method=method), method)
    growth.plot(there, [best_accuracy(d) for d in there], "k:", label="rules of the signs")
    size.axhline(best_accuracy(largest), color="k", ls=":")
    growth.set_title("(b) k = 2$^d$, n = 100 · 2$^d$")
    growth.set_xlabel("dimension d")
    growth.set_xticks(there)
    size.set_title(f"(c) d = {largest}, n = {train_rows(largest)}")
    size.set_xlabel("number of rules k")
    for ax in (growth, size):
        ax.set_ylim(0.4, 1.0)
        ax.set_ylabel("accuracy")
    growth.legend(frameon=False, loc="lower left")
    return (canvas.save(figure, "figure_1"),)


def _draw_regions(ax: Axes, rows: Rows, points: Dataset) -> None:
    values: NDArray[np.float64] = rows.column("score").reshape(len(GRID), len(GRID)).T
    limit = max(float(np.abs(values).max()), 1e-9)
    ax.pcolormesh(
        GRID, GRID, values, cmap="RdBu_r", vmin=-limit, vmax=limit, alpha=0.5, rasterized=True
    )
    X = points.X.numeric_matrix()
    for label, colour in ((1, "C3"), (-1, "C0")):
        ax.plot(*X[points.y == label].T, ".", ms=3, color=colour)
    ax.set_xlim(GRID[0], GRID[-1])
    ax.set_ylim(GRID[0], GRID[-1])
    ax.set_xlabel("x1")
    ax.set_ylabel("x2")


def _draw_sizes(ax: Axes, rows: Rows, method: str) -> None:
    """The mean over repeats, as far as all of them reach; open markers where
    a stage is not certified.
    """
    if not rows:
        return
    sizes = reduce(
        np.intersect1d, [rows.where(repeat=r).column("rules") for r in rows.values("repeat")]
    ).astype(int)
    means = np.array([rows.where(rules=int(k)).column("accuracy").mean() for k in sizes])
    ax.plot(sizes, means, "-", color=COLOURS[method])
    if method == "optimal":
        proved = np.array([rows.where(rules=int(k)).column("proved").all() for k in sizes], bool)
        ax.plot(sizes[proved], means[proved], "o", ms=3.5, color=COLOURS[method])
        ax.plot(sizes[~proved], means[~proved], "o", ms=3.5, mfc="w", color=COLOURS[method])


EXHIBITS = (Exhibit("figure", 1, "Noisy parity", (accuracies, more_rows, regions), show_figure_1),)
