"""Table 2 and Figure 1: programs of others and our learners, all at their defaults, on five splits
of twelve data sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from paper_reproductions.framework import Cell, Exhibit, Experiment, Results, Row, Rows, Settings
from paper_reproductions.others import elsewhere, methods
from paper_reproductions.sections import Canvas, ComparisonTable, Section, Value

CLASSES = ("liver", "heart", "breast_cancer", "titanic", "banknote", "tic_tac_toe")
NUMBERS = ("world_happiness", "diabetes", "boston", "insurance", "red_wine_quality", "used_cars")
SETS = tuple(name for pair in zip(CLASSES, NUMBERS, strict=True) for name in pair)
"""All of at most 2000 rows without missing values."""
QUICK_SETS = SETS[:4]
SPLITS = 5
ENVIRONMENTS = {
    "imodels": ("FIGS", "RuleFit (imodels)", "BoostedRules", "GreedyRuleList", "SkopeRules"),
    "interpret": ("EBM",),
    "ruleopt": ("RUG",),
    "boomer": ("Boomer",),
}
"""Programs by environment, as they are named here."""
CLASSIFIERS = ("ruleopt", "boomer", *methods.CLASSIFIERS)
"""Environments and learners that are run on classes only."""
OURS = tuple(methods.LEARNERS)


def cells(settings: Settings, run: Iterable[str]) -> list[Cell]:
    """A cell holds all splits: an environment is started once for them, and
    shapes are compiled once.
    """
    return [
        Cell.of(data=name, method=method)
        for name in (QUICK_SETS if settings.quick else SETS)
        for method in run
        if method not in (methods.REGRESSORS if name in CLASSES else CLASSIFIERS)
    ]


def splits(name: str, settings: Settings) -> Iterator[tuple[Dataset, Dataset]]:
    """Three quarters to train on, classes with their shares."""
    data = jr.datasets.load(name)
    for split in settings.first_folds(SPLITS):
        yield jr.datasets.train_test_split(data, test_size=0.25, seed=split)


def measure(cell: Cell, settings: Settings) -> list[Row]:
    """A row per split of one of our learners: score (accuracy or R2), rules, conditions, seconds of
    the processor.
    """
    name, method = cell["data"], cell["method"]
    rows: list[Row] = []
    for split, (train, test) in enumerate(splits(name, settings)):
        if split == 0:
            methods.timed(method, train, {})  # compiles
        fit, seconds = methods.timed(method, train, {})
        found = methods.scores(fit.model, test)
        rows.append(
            {
                "program": method,
                "split": split,
                "score": found["R2" if test.task == "regression" else "accuracy"],
                "rules": found["rules"],
                "conditions": found["conditions"],
                "seconds": seconds,
            }
        )
    return rows


def measure_elsewhere(cell: Cell, settings: Settings) -> list[Row]:
    """The same of all programs of an environment, on columns of numbers (one per category)."""
    name, environment = cell["data"], cell["method"]
    parts = list(splits(name, settings))
    arrays = [
        (train.X.one_hot()[0], elsewhere.codes(train), test.X.one_hot()[0]) for train, test in parts
    ]
    rows: list[Row] = []
    for line in elsewhere.said(environment, parts[0][0].task, arrays):
        program = "RuleFit (imodels)" if line["program"] == "RuleFit" else line["program"]
        row: dict[str, object] = {"program": program, "split": line["split"]}
        if "error" in line:
            row["error"] = line["error"]
        else:
            test = parts[line["split"]][1]
            says = np.array(line["says"])
            row |= {
                "score": elsewhere.score(test, says),
                "seconds": line["seconds"],
                "answers": len(np.unique(says)),
            }
            row |= {size: line[size] for size in ("rules", "conditions") if line[size] is not None}
        rows.append(row)
    return rows


ours = Experiment(
    "defaults",
    lambda settings: cells(settings, OURS),
    measure,
    lambda cell: (cell["data"],),
    rounding=True,
)
peers = Experiment(
    "peers",
    lambda settings: cells(settings, ENVIRONMENTS),
    measure_elsewhere,
    lambda cell: (cell["data"],),
    elsewhere=lambda cell: True,
)


def _rows(results: Results) -> Rows:
    return Rows([*results[ours], *results[peers]])


def _programs(rows: Rows) -> list[str]:
    """Ours first."""
    there = [str(program) for program in rows.values("program")]
    return [name for name in OURS if name in there] + [name for name in there if name not in OURS]


def show_table_2(results: Results, canvas: Canvas) -> Section:
    rows = _rows(results)
    if not rows:
        return Section()
    done = [name for name in SETS if rows.where(data=name)]
    return Section(
        "Every program at its own defaults, on the same splits. Seconds are of the processor; ours "
        "without the first fit of a data set, which compiles. Programs of others are run apart from "
        "ours, EBM on another day, when the machine was slower. They see a column per category. "
        "FIGS' rules are the leaves of its trees, with the splits above them as conditions; EBM has "
        "no rules.",
        (_summary(rows, done), *(_table(rows.where(data=name), name) for name in done)),
    )


def _summary(rows: Rows, done: list[str]) -> ComparisonTable:
    """Means over the data sets: of the score's distance to the best program's,
    and of sizes and seconds.
    """
    values: dict[tuple[str, str], Value | str] = {}
    everyone = _programs(rows)
    silent = _silent(rows)
    programs = [name for name in everyone if name not in silent]
    for kind, names in (("accuracy", CLASSES), ("R2", NUMBERS)):
        there = [name for name in names if name in done]
        best = {
            name: max(_mean(rows, name, program, "score") for program in programs) for name in there
        }
        for program in programs:
            own = [name for name in there if np.isfinite(_mean(rows, name, program, "score"))]
            if own:
                gap = np.mean([best[name] - _mean(rows, name, program, "score") for name in own])
                values[program, f"{kind} below the best"] = f"{gap:.4f} ({len(own)} sets)"
    for program in programs:
        part = rows.where(program=program)
        for measure, digits in (("rules", 1), ("conditions", 1), ("seconds", 2)):
            medians = [Rows(part.where(data=name)).mean(measure) for name in done]
            found = [median for median in medians if median is not None]
            if found:
                values[program, f"{measure}, median"] = Value(
                    float(np.median(found)), digits=digits
                )
    columns = (
        "accuracy below the best",
        "R2 below the best",
        "rules, median",
        "conditions, median",
        "seconds, median",
    )
    return ComparisonTable(
        "Summary",
        programs,
        columns,
        values,
        corner="program",
        note="Below the best: the mean over data sets of the distance to the best program's mean score. Medians over "
        "data sets of means over splits."
        + "".join(
            f" {program} says one class for all test rows on {len(alike)} of "
            f"{len(rows.where(program=program))} splits"
            + (" and is not ranked." if program in silent else ".")
            for program in everyone
            if (alike := rows.where(program=program, answers=1))
        ),
    )


def _silent(rows: Rows) -> list[str]:
    """The programs that say one class for all test rows, on every split."""
    return [
        name
        for name in _programs(rows)
        if len(rows.where(program=name)) == len(rows.where(program=name, answers=1))
    ]


def _mean(rows: Rows, name: str, program: str, measure: str) -> float:
    found = rows.where(data=name, program=program).mean(measure)
    return -np.inf if found is None else found


def _table(rows: Rows, name: str) -> ComparisonTable:
    values: dict[tuple[str, str], Value | str] = {}
    score = "accuracy" if name in CLASSES else "R2"
    for program in _programs(rows):
        part = rows.where(program=program)
        for column, measure, digits in (
            (score, "score", 4),
            ("rules", "rules", 1),
            ("conditions", "conditions", 1),
            ("seconds", "seconds", 2),
        ):
            if part.mean(measure) is not None:
                values[program, column] = Value(
                    part.mean(measure), digits=digits, spread=part.spread(measure)
                )
        errors = [str(row["error"]) for row in part if row.get("error")]
        if errors:
            values[program, "remark"] = f"failed on {len(errors)} splits: {errors[0][:80]}"
        if alike := part.where(answers=1):
            values[program, "remark"] = f"one class for all test rows, {len(alike)} splits"
    columns = [score, "rules", "conditions", "seconds"]
    columns += ["remark"] if any(column == "remark" for _, column in values) else []
    return ComparisonTable(name, _programs(rows), columns, values, corner="program")


def show_figure_1(results: Results, canvas: Canvas) -> Section:
    rows = _rows(results)
    done = [name for name in SETS if rows.where(data=name)]
    if not done:
        return Section()
    across = min(4, len(done))
    figure, axes = canvas.subplots(-(-len(done) // across), across, width=3.4, height=2.8)
    silent = _silent(rows)
    programs = [name for name in _programs(rows) if name not in silent]
    for place, axis in enumerate(axes.ravel()):
        if place < len(done):
            _draw(axis, rows.where(data=done[place]), done[place], programs)
        else:
            axis.set_visible(False)
    handles = [_marker(program, programs) for program in programs]
    figure.legend(handles=handles, fontsize=7, loc="outside right upper")
    text = (
        "Score against rules and conditions, means over the splits; the line is the front. EBM, "
        "which has no rules, is "
        "a dashed line. Scores far below the others' are not in the picture; the tables have them."
        + "".join(f" {name}, which is not ranked, is not drawn." for name in silent)
    )
    return Section(text, (), (canvas.save(figure, "figure_1"),))


def _marker(program: str, programs: list[str]):
    from matplotlib.lines import Line2D

    if program == "EBM":
        return Line2D([], [], color="black", ls="--", lw=1, label=program)
    shape = "o" if program in OURS else "x"
    return Line2D(
        [], [], color=f"C{programs.index(program) % 10}", marker=shape, ls="", label=program
    )


def _draw(axis, rows: Rows, name: str, programs: list[str]) -> None:
    points = []
    for program in programs:
        part = rows.where(program=program)
        score, rules, conditions = (
            part.mean(measure) for measure in ("score", "rules", "conditions")
        )
        if score is None:
            continue
        if rules is None or conditions is None:
            axis.axhline(score, color="black", ls="--", lw=1)
            continue
        points.append((max(rules + conditions, 1.0), score))
        shape = "o" if program in OURS else "x"
        axis.plot(*points[-1], shape, color=f"C{programs.index(program) % 10}", ms=5)
    front = [
        point
        for point in sorted(points)
        if point[1] >= max(p[1] for p in points if p[0] <= point[0])
    ]
    axis.plot([p[0] for p in front], [p[1] for p in front], "-", color="0.7", lw=1, zorder=0)
    if points:
        best = max(score for _, score in points)
        axis.set_ylim(bottom=max(min(score for _, score in points), best - 0.4) - 0.02)
    axis.set_xscale("log")
    axis.set_xlim(3, 8000)
    axis.set_title(name, fontsize=10)
    axis.set_xlabel("rules + conditions")
    axis.set_ylabel("accuracy" if name in CLASSES else "R2")


EXHIBITS = (
    Exhibit("table", 2, "Programs of others on our splits", (ours, peers), show_table_2),
    Exhibit("figure", 1, "Fronts", (ours, peers), show_figure_1),
)
