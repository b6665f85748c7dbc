"""Table 1: our learners on the splits on which others publish numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from paper_reproductions.framework import Cell, Exhibit, Experiment, Results, Row, Rows, Settings
from paper_reproductions.others import methods, published
from paper_reproductions.others.problems import PROBLEMS, rows_of
from paper_reproductions.sections import Canvas, ComparisonTable, Quoted, Section, Value

DIGITS = {
    "accuracy": 4,
    "balanced": 4,
    "AUC": 4,
    "R2": 4,
    "rules": 1,
    "linear_terms": 1,
    "conditions": 1,
    "seconds": 2,
}
LABELS = {"balanced": "balanced accuracy", "linear_terms": "linear terms", "seconds": "seconds"}
COUNTS = {"adult, rulelearn": (4942, 1571)}
"""Test rows of either class, where a source prints them."""
THEIRS = "another program's, to set ours beside; Table 3 runs some of them"
ON_FOLDS = "chosen on folds"
CHOSEN = ("chosen", ON_FOLDS)
PICKED = "the learner, too, "
"""And the setting."""


def cells(settings: Settings) -> list[Cell]:
    """Every learner that can, on every split, at both settings; in small no Adult and one split."""
    return [
        Cell.of(problem=name, split=split, method=method, setting=setting)
        for name, problem in PROBLEMS.items()
        if not (settings.quick and name.startswith("adult"))
        for split in settings.first_folds(problem.splits)
        for method in methods.GRID
        if problem.measure != "R2" or method not in methods.CLASSIFIERS
        for setting in methods.SETTINGS
    ]


def measure(cell: Cell, settings: Settings) -> Row:
    """Scores and size on the test rows; seconds of the final fit, and of choosing before it.

    ``inside`` is the score of a chosen setting on the rows that it was chosen on.
    """
    problem = PROBLEMS[cell["problem"]]
    train, test = rows_of(cell["problem"], cell["split"])
    if (
        cell["problem"] in COUNTS
        and (int((test.y == 0).sum()), int(test.y.sum())) != COUNTS[cell["problem"]]
    ):
        raise ValueError(f"the split of {cell['problem']} is not the source's: it has other counts")
    began = time.process_time()
    options: methods.Options = {}
    inside: dict[str, float] = {}
    if cell["setting"] == "chosen":
        options, inside["inside"] = methods.chosen(cell["method"], train, problem.measure)
    choosing = time.process_time() - began
    fit, seconds = methods.timed(cell["method"], train, options)
    return {
        **methods.scores(fit.model, test), "seconds": seconds, "choosing": choosing, **inside,
        "options": methods.in_words(options), "status": str(fit.status),
    }  # fmt: skip


known = Experiment(
    "known_splits",
    cells,
    measure,
    lambda cell: (PROBLEMS[cell["problem"]].file,),
    version=2,
    rounding=True,
)


def fold_cells(settings: Settings) -> list[Cell]:
    """Every learner on every split."""
    asked = (dict(cell.key) for cell in cells(settings) if cell["setting"] == "chosen")
    return [Cell.of(**{**key, "setting": ON_FOLDS}) for key in asked]


def measure_on_folds(cell: Cell, settings: Settings) -> Row:
    """As `measure`, chosen on folds of all training rows."""
    train, test = rows_of(cell["problem"], cell["split"])
    began = time.process_time()
    options, inside = methods.chosen_on_folds(
        cell["method"], train, PROBLEMS[cell["problem"]].measure
    )
    choosing = time.process_time() - began
    fit, seconds = methods.timed(cell["method"], train, options)
    return {
        **methods.scores(fit.model, test),
        "seconds": seconds,
        "choosing": choosing,
        "inside": inside,
        "options": methods.in_words(options),
        "status": str(fit.status),
    }


on_folds = Experiment(
    "chosen_on_folds",
    fold_cells,
    measure_on_folds,
    lambda cell: (PROBLEMS[cell["problem"]].file,),
    version=2,
    rounding=True,
)


def path_cells(settings: Settings) -> list[Cell]:
    """The learners that have a path of penalties, on every split."""
    asked = [(cell["problem"], cell["split"], cell["method"]) for cell in cells(settings)]
    return [
        Cell.of(problem=problem, split=split, method=method, setting="own path")
        for problem, split, method in dict.fromkeys(asked)
        if method in methods.OWN_PATHS
    ]


def measure_path(cell: Cell, settings: Settings) -> Row:
    """As `measure`; seconds are of the choice, too."""
    train, test = rows_of(cell["problem"], cell["split"])
    fit, seconds = methods.own_path(cell["method"], train, PROBLEMS[cell["problem"]].measure)
    return {**methods.scores(fit.model, test), "seconds": seconds, "status": str(fit.status)}


paths = Experiment(
    "own_paths",
    path_cells,
    measure_path,
    lambda cell: (PROBLEMS[cell["problem"]].file,),
    rounding=True,
)


def show_table_1(results: Results, canvas: Canvas) -> Section:
    rows = Rows([*results[known], *results[on_folds], *results[paths]])
    tables = [
        _table(name, rows.where(problem=name)) for name in PROBLEMS if rows.where(problem=name)
    ]
    quoted = [_table(name, Rows([])) for name in PROBLEMS if not rows.where(problem=name)]
    return Section(_targets(rows), [*tables, *quoted])


def _table(name: str, rows: Rows) -> ComparisonTable:
    """Ours and the source's programs on a problem, means over its splits."""
    values: dict[tuple[str, str], Value | Quoted | str] = {}
    labels = []
    for program, numbers in published.PUBLISHED[name].items():
        labels.append(f"{program} (published)")
        values |= {
            (labels[-1], LABELS.get(measure, measure)): Quoted(
                f"{number:g}", apart=THEIRS, kind="time" if measure == "seconds" else "result"
            )
            for measure, number in numbers.items()
        }
    for method in rows.values("method"):
        for setting in rows.where(method=method).values("setting"):
            part = rows.where(method=method, setting=setting)
            labels.append(f"{method}, {setting}" + _splits(name, part))
            values |= _means(labels[-1], part)
            if setting in CHOSEN:
                values[labels[-1], "choosing, s"] = Value(part.mean("choosing"), digits=1)
                values[labels[-1], "setting"] = " / ".join(
                    str(option) for option in part.values("options")
                )
    for setting in CHOSEN:
        if best := picked(rows, setting):
            labels.append(PICKED + setting)
            values |= _means(labels[-1], best)
            values[labels[-1], "setting"] = " / ".join(
                str(method) for method in best.values("method")
            )
    columns = [LABELS.get(measure, measure) for measure in DIGITS]
    used = {column for _, column in values}
    wide = [column for column in (*columns, "choosing, s", "setting") if column in used]
    return ComparisonTable(name, labels, wide, values, note=PROBLEMS[name].note)


def _means(label: str, part: Rows) -> dict[tuple[str, str], Value]:
    """A row of the table."""
    return {
        (label, LABELS.get(measure, measure)): Value(
            part.mean(measure), digits=digits, spread=part.spread(measure)
        )
        for measure, digits in DIGITS.items()
        if part.mean(measure) is not None
    }


def picked(rows: Rows, setting: str = "chosen") -> Rows:
    """On every split the learner whose chosen setting is best on the training
    rows that it was chosen on.
    """
    chosen = Rows(row for row in rows.where(setting=setting) if "inside" in row)
    parts = [chosen.where(split=split) for split in chosen.values("split")]
    return Rows(max(part, key=lambda row: row["inside"]) for part in parts)


def _splits(name: str, rows: Rows) -> str:
    """A remark where not all splits of the source were run."""
    done, all_ = len(rows.values("split")), PROBLEMS[name].splits
    return f" ({done} of {all_} splits)" if done < all_ else ""


def _whole_seconds(part: Rows) -> float:
    """Of fitting and of choosing before it."""
    return (part.mean("seconds") or 0.0) + (part.mean("choosing") or 0.0)


def _best(rows: Rows, measure: str, limits: Mapping[str, float]) -> tuple[Rows, float] | None:
    """The learner and setting of largest mean over the splits that keeps
    the limits, and that mean.
    """
    pairs = dict.fromkeys((row["method"], row["setting"]) for row in rows)
    kept = [
        part
        for part in (rows.where(method=method, setting=setting) for method, setting in pairs)
        if all(
            (part.mean(size) or 0.0) <= most for size, most in limits.items() if size != "seconds"
        )
        and _whole_seconds(part) <= limits.get("seconds", np.inf)
    ]
    return max(
        ((part, part.mean(measure) or 0.0) for part in kept), key=lambda pair: pair[1], default=None
    )


def _targets(rows: Rows) -> str:
    """What was aimed at, and the best of ours that keeps the limits. The best of
    several is seen on test rows.
    """
    ebm = published.PUBLISHED["adult, interpret"]["EBM"]
    ripper = published.PUBLISHED["adult, rulelearn"]["RIPPER"]
    aims: list[tuple[str, str, str, float, dict[str, float]]] = [
        ("HELOC, AIX360", "accuracy", "above LogRR's .7261", 0.7261, {}),
        (
            "adult, rulelearn",
            "accuracy",
            "above RIPPER's .8442 with fewer than its 165 conditions",
            0.8442,
            {"conditions": ripper["conditions"] - 1},
        ),
        (
            "adult, interpret",
            "AUC",
            "within .01 of EBM's .928 with under 100 rules, fitted and chosen in a fifth of "
            "its 26.4 s",
            0.918,
            {"rules": 99.0, "seconds": ebm["seconds"] / 5},
        ),
    ]
    lines = []
    for name, measure, aim, least, limits in aims:
        there = rows.where(problem=name)
        if found := _best(there, measure, limits):
            part, value = found
            verdict = "reached" if value > least else "not reached by what was run"
            line = (
                f"{name}, {measure} {aim}: {verdict}; {part[0]['method']}, "
                f"{part[0]['setting']}{_splits(name, part)}, "
                f"has {value:.4f} with {part.mean('rules'):.3g} rules, "
                f"{part.mean('conditions'):.3g} conditions, in "
                f"{_whole_seconds(part):.1f} s."
            )
            for setting in CHOSEN:
                if best := picked(there, setting):
                    learners = " / ".join(str(method) for method in best.values("method"))
                    line += (
                        f" The learner, too, {setting} ({learners}), has {best.mean(measure):.4f}."
                    )
            lines.append(line)
        elif there:
            lines.append(
                f"{name}, {measure} {aim}: not reached; nothing that was run keeps the limits."
            )
    for name, program, measure in (
        ("HELOC, AIX360", "LogRR", "accuracy"), ("breast cancer, rulelearn", "LogRR", "accuracy"),
        ("boston, rulelearn", "LinearRR", "R2"),
    ):  # fmt: skip
        part = rows.where(problem=name, method="GLRM")
        if part:
            ours = ", ".join(f"{row['setting']} {row[measure]:.4f}" for row in part)
            lines.append(
                f"{name}: GLRM {ours}; {program} {published.PUBLISHED[name][program][measure]:g}."
            )
    if lines:
        lines.append(
            "HELOC has 2468 test rows: a standard error of an accuracy there is .009, and Table 3 "
            "has further splits. "
            "Where an aim is reached by one of several learners and settings, the best was found "
            "on the test rows; a "
            "single number of the tables was not."
        )
    return "\n\n".join(lines)


EXHIBITS = (
    Exhibit(
        "table", 1, "Published numbers on known splits", (known, on_folds, paths), show_table_1
    ),
)
