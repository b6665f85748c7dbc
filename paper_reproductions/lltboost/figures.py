"""Fig. 1 and Table 1 (Banknote with two columns), Fig. 2 (risk against complexity),
Fig. 4 (functions of LTRNet).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from jaxrules.ensembles.ltrnet import modified_sigmoid, w_shaped
from paper_reproductions.framework import Cell, Exhibit, Experiment, Results, Row, Rows, Settings
from paper_reproductions.lltboost import data, protocol, published
from paper_reproductions.sections import Canvas, ComparisonTable, Quoted, Section, Value

COLOURS = {
    "TGB": "tab:orange", "TGB, corrective, tolerance": "tab:brown", "DRNet": "tab:green",
    "LTRNet, to the letter": "tab:pink", "LTRNet": "tab:red", "LLTBoost": "tab:blue",
}  # fmt: skip
GRID = 150
"""Points per side of a picture of regions."""
TICKS = (3, 5, 10, 20, 50, 100, 200)

BOXES = ("TGB", "TGB, corrective, tolerance")
NOT_NAMED = "the paper names neither the rows nor the settings of these models"

# Table 1 and Fig. 1


def single_rule(train: Dataset) -> Any:
    return jr.lltboost.fit(train.X, train.y, loss="logistic", max_rules=1).model


def two_boxes(train: Dataset) -> Any:
    return jr.boosting.fit(train.X, train.y, loss="logistic", max_rules=2, **protocol.TGB).model


def six_rules(train: Dataset) -> Any:
    given = {"restarts": 6, "combine_starts": False}
    return jr.ltrnet.fit(
        train.X, train.y, loss="logistic", max_rules=6, max_length=2, **given
    ).model


def three_boxes(train: Dataset) -> Any:
    return jr.drnet.fit(train.X, train.y, max_rules=3).model


MODELS: dict[str, Callable[[Dataset], Any]] = {
    "TGB": two_boxes, "DRNet": three_boxes, "LTRNet": six_rules, "LLTBoost": single_rule
}  # fmt: skip
"""As many rules as the paper shows."""


def grid(train: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The two columns at the points of the picture, (GRID,) each."""
    X = train.X.numeric_matrix()
    low, high = X.min(axis=0) - 0.15, X.max(axis=0) + 0.15
    return np.linspace(low[0], high[0], GRID), np.linspace(low[1], high[1], GRID)


def measure_regions(cell: Cell, settings: Settings) -> list[Row]:
    """The model's rules, its scores, and its class at the points of a grid, line by line."""
    train, test = data.two_columns(0, settings.seed)
    model = MODELS[cell["method"]](train)
    across, up = grid(train)
    points = np.stack([axis.ravel() for axis in np.meshgrid(across, up)], axis=1)
    positive = (jr.predict(model, jr.as_table(points, feature_names=["var", "skew"])) == 1).reshape(
        GRID, GRID
    )
    rows: list[Row] = [
        {
            "part": "score",
            "rules": jr.support(model),
            "complexity": jr.complexity(model, measure="nonzeros"),
            "training_error": 1 - jr.accuracy(model, train.X, train.y),
            "error": 1 - jr.accuracy(model, test.X, test.y),
        }
    ]
    rows += [
        {"part": "rule", "weight": weight, "condition": condition}
        for weight, condition in printed_rules(model)
    ]
    lines = ("".join(map(str, line.astype(int))) for line in positive)
    return rows + [{"part": "line", "cells": f"row {line}"} for line in lines]


def printed_rules(model: jr.RuleEnsemble | jr.RuleList) -> list[tuple[float, str]]:
    """Weight and condition of every rule, the constant first; rules of a set have no weights."""
    conjunctions = model.conjunctions
    if isinstance(model, jr.RuleList):
        return [(np.nan, conjunctions.describe(r)) for r in range(len(conjunctions))]
    rules = [
        (float(model.weights[r, 0]), conjunctions.describe(r)) for r in range(len(conjunctions))
    ]
    return [(float(model.intercept[0]), "always"), *rules]


regions = Experiment(
    "regions",
    lambda settings: [Cell.of(method=method) for method in MODELS],
    measure_regions,
    data.files,
)


def measure_points(cell: Cell, settings: Settings) -> list[Row]:
    """The rows that the models of the picture are fitted to, and the corners of its grid."""
    train, _ = data.two_columns(cell["repeat"], settings.seed)
    across, up = grid(train)
    corners = {"left": across[0], "right": across[-1], "bottom": up[0], "top": up[-1]}
    points = zip(*train.X.numeric_matrix().T.tolist(), (train.y == 1).tolist(), strict=True)
    return [
        {"part": "grid", **{name: float(value) for name, value in corners.items()}},
        *(
            {"part": "point", "var": var, "skew": skew, "forged": int(forged)}
            for var, skew, forged in points
        ),
    ]


points = Experiment("points", lambda settings: [Cell.of(repeat=0)], measure_points, data.files)


def measure_boxes(cell: Cell, settings: Settings) -> list[Row]:
    """LLTBoost's single rule, and TGB with 1, 2, ... rules, in one repetition."""
    train, test = data.two_columns(cell["repeat"], settings.seed)
    options = {"loss": "logistic", "max_rules": 20} | protocol.TGB
    models = {"LLTBoost": [single_rule(train)]}
    for name in BOXES:
        models[name] = [
            fit.model for fit in jr.boosting.path(train.X, train.y, **options | protocol.TGBS[name])
        ]
    return [
        {"method": name, **protocol.scored(model, test)}
        for name, found in models.items()
        for model in found
    ]


boxes = Experiment(
    "boxes",
    lambda settings: [
        Cell.of(repeat=repeat) for repeat in settings.first_folds(published.REPEATS, quick=3)
    ],
    measure_boxes,
    data.files,
)


def show_table_1(results: Results, canvas: Canvas) -> Section:
    tables = []
    for method in published.RULES:
        rows = results[regions].where(method=method, part="rule")
        printed = published.RULES[method]
        labels = [str(k) for k in range(max(len(rows), len(printed)))]
        values: dict[tuple[str, str], Value | Quoted | str] = {}
        for k, row in enumerate(rows):
            values[labels[k], "our weight"] = (
                "" if np.isnan(row["weight"]) else Value(row["weight"], digits=2)
            )
            values[labels[k], "our rule"] = str(row["condition"])
        for k, (weight, condition) in enumerate(printed):
            values[labels[k], "paper's weight"] = (
                "" if np.isnan(weight) else Quoted(f"{weight:g}", apart=NOT_NAMED)
            )
            numbers = len(re.findall(r"\d+(?:\.\d+)?", condition))
            values[labels[k], "paper's rule"] = (
                Quoted(condition, numbers, apart=NOT_NAMED) if numbers else condition
            )
        columns = ("our weight", "our rule", "paper's weight", "paper's rule")
        tables.append(ComparisonTable(method, labels, columns, values, corner="rule"))
    text = f"""
        Rules for two columns of Banknote, standardised, fitted to the first bootstrap sample; the positive class is 1,
        forged. They stand beside the paper's and are not compared: {NOT_NAMED}.
    """
    return Section(text, tables)


def show_figure_1(results: Results, canvas: Canvas) -> Section:
    found = {method: results[regions].where(method=method) for method in published.RULES}
    found = {method: rows for method, rows in found.items() if len(rows)}
    values: dict[tuple[str, str], Value | str] = {}
    for method, rows in found.items():
        for name, digits in (("rules", 0), ("complexity", 0), ("training_error", 3), ("error", 3)):
            values[method, name.replace("_", " ")] = Value(rows[0][name], digits=digits)
    table = ComparisonTable(
        "The models of the picture",
        tuple(found),
        ("rules", "complexity", "training error", "error"),
        values,
        corner="method",
    )
    return Section(
        _boxes_in_words(results[boxes]), (table,), _draw_regions(found, results[points], canvas)
    )


def _boxes_in_words(rows: Rows) -> str:
    """How many rules of TGB are worth LLTBoost's one."""
    if not len(rows):
        return ""
    one, repeats = rows.where(method="LLTBoost"), rows.values("repeat")
    parts = []
    for measure, what in (("error", "0/1 loss"), ("risk", "log loss")):
        needed = [_first_as_good(rows.where(repeat=repeat), measure) for repeat in repeats]
        counts = ", ".join(
            f"{method} {np.median([found[method] for found in needed], axis=0)[0]:g} (complexity "
            f"{np.median([found[method] for found in needed], axis=0)[1]:g})"
            for method in BOXES
        )
        parts.append(f"for its {what}, {one.mean(measure):.3f}: {counts}")
    return (
        f"LLTBoost's single rule has complexity {np.median(one.column('complexity')):g}. To be as "
        "good on the test "
        f"rows, others need these numbers of rules, medians of {len(repeats)} repetitions (at most "
        "20; inf: never), "
        f"{'; '.join(parts)}."
    )


def _first_as_good(rows: Rows, measure: str) -> dict[str, tuple[float, float]]:
    """Rules and complexity of the first ensemble of each TGB that is no
    worse than LLTBoost's rule.
    """
    limit = rows.where(method="LLTBoost")[0][measure]
    found = {}
    for method in BOXES:
        path = rows.where(method=method)
        sizes = [
            (k, row["complexity"]) for k, row in enumerate(path, start=1) if row[measure] <= limit
        ]
        found[method] = sizes[0] if sizes else (np.inf, np.inf)
    return found


def _draw_regions(found: dict[str, Rows], rows: Rows, canvas: Canvas) -> tuple[Any, ...]:
    if not found or not len(rows):
        return ()
    (corners,), given = rows.where(part="grid"), rows.where(part="point")
    across, up = (
        np.linspace(corners[a], corners[b], GRID) for a, b in (("left", "right"), ("bottom", "top"))
    )
    X, forged = (
        np.stack([given.column("var"), given.column("skew")], axis=1),
        given.column("forged") == 1,
    )
    figure, axes = canvas.subplots(1, len(found), width=3.3, height=3.3)
    for ax, (method, rows) in zip(axes[0], found.items(), strict=True):
        lines = [list(row["cells"].removeprefix("row ")) for row in rows.where(part="line")]
        ax.contourf(
            across, up, np.array(lines, int), levels=[-0.5, 0.5, 1.5], colors=["#d9e8f5", "#fbe3d0"]
        )
        for chosen, colour, label in (
            (~forged, "tab:blue", "genuine"),
            (forged, "tab:orange", "forged"),
        ):
            ax.scatter(*X[chosen].T, s=5, color=colour, label=label, linewidths=0)
        ax.set_title(f"{method}: {rows[0]['rules']} rule{'s' * (rows[0]['rules'] != 1)}")
        ax.set_xlabel("variance")
    axes[0, 0].set_ylabel("skewness")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        markerscale=3,
    )
    return (canvas.save(figure, "figure_1"),)


# Fig. 2

WIDE = "LTRNet, to the letter"
"""Its strongest penalties leave models that are as bad as a constant and do not fit the frame."""


def show_figure_2(results: Results, canvas: Canvas) -> Section:
    rows = Rows(row for part in protocol.ALL for row in results[part].where(data="Banknote"))
    curves = {method: _curve(rows.where(method=method)) for method in COLOURS}
    curves = {method: curve for method, curve in curves.items() if len(curve)}
    if not curves:
        return Section()
    figure, axes = canvas.subplots(1, 2, width=4.6)
    for ax, measure, table in (
        (axes[0, 0], "risk", published.COMPLEXITY),
        (axes[0, 1], "error", published.ERROR_COMPLEXITY),
    ):
        top = 0.0
        for method, curve in curves.items():
            points = curve[np.argsort(curve[:, 0], kind="stable")]
            points = points[points[:, 0] >= 1]  # the constant has no place on this scale
            column = 1 if measure == "risk" else 2
            if method != WIDE:
                top = max(top, points[:, column].max(initial=0.0))
            ax.plot(
                points[:, 0],
                points[:, column],
                "o-",
                ms=3.5,
                lw=1.2,
                color=COLOURS[method],
                label=method,
            )
        ax.axhline(
            table["Banknote"].target, color="black", ls="--", lw=1, label="the paper's target"
        )
        ax.set_xlabel("complexity")
        ax.set_ylabel("log loss" if measure == "risk" else "0/1 loss")
        ax.set_xscale("log")
        ax.set_xticks(TICKS, map(str, TICKS))
        ax.set_xticks((), minor=True)
        ax.set_ylim(0, 1.05 * top if top else None)
    axes[0, 1].legend(frameon=False, fontsize=8)
    text = """
        Banknote: mean test risk against mean complexity over the repetitions, a point per number of rules (TGB,
        LLTBoost) or per strength of the penalty (LTRNet, DRNet), at the oracle's choice of what else there is to
        choose. The complexities are drawn on a logarithmic scale, as they differ by more than ten times. Models of
        "LTRNet, to the letter" that are no better than a constant lie above the frame.
    """
    return Section(text, (), (canvas.save(figure, "figure_2"),))


def _curve(rows: Rows) -> np.ndarray:
    """Mean complexity, risk and error by size, (sizes, 3), at the choice
    of the smallest mean risk.
    """
    curves = []
    for oracle in rows.values("oracle"):
        chosen = rows.where(oracle=oracle)
        groups = [chosen.where(size=size) for size in chosen.values("size")]
        curves.append(
            np.array(
                [[group.mean(name) for name in ("complexity", "risk", "error")] for group in groups]
            )
        )
    return min(curves, key=lambda curve: curve[:, 1].mean(), default=np.zeros((0, 3)))


# Fig. 4


def show_figure_4(results: Results, canvas: Canvas) -> Section:
    figure, axes = canvas.subplots(1, 2)
    z = np.linspace(-3, 2, 400)
    axes[0, 0].plot(z, 1 / (1 + np.exp(-z)), color="black", ls="--", label="sigmoid")
    for steepness, colour in ((1, "#9ecae1"), (3, "#4292c6"), (10, "#08519c")):
        axes[0, 0].plot(
            z,
            np.asarray(modified_sigmoid(z, steepness)),
            color=colour,
            label=f"modified, a = {steepness}",
        )
    axes[0, 0].set_xlabel("z: propositions that hold, less those selected")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="upper left")
    axes[0, 0].set_title("modified sigmoid")
    v = np.linspace(-1, 2, 601)
    axes[0, 1].plot(v, np.asarray(w_shaped(v)), color="tab:blue")
    axes[0, 1].set_xlabel("weight of a proposition in a conjunction")
    axes[0, 1].set_title("W-shaped penalty")
    text = """
        The conjunction layer of LTRNet: with as many propositions as are selected z is 0, with one less -1, and the
        step lies between them; the penalty is 0 where a proposition is out or in.
    """
    return Section(text, (), (canvas.save(figure, "figure_4"),))


EXHIBITS = (
    Exhibit(
        "figure",
        1,
        "Decision regions on Banknote with two columns",
        (regions, points, boxes),
        show_figure_1,
    ),
    Exhibit("table", 1, "The rules of Fig. 1", (regions,), show_table_1),
    Exhibit(
        "figure",
        2,
        "Risk against complexity on Banknote",
        (protocol.boosting, protocol.networks),
        show_figure_2,
    ),
    Exhibit("figure", 4, "Functions of LTRNet", (), show_figure_4),
)
