"""The toy problem: Table 1, Fig. 1 and Fig. 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxrules import paths
from jaxrules.tools.fits import Status
from paper_reproductions.coordinate_paths import data, published
from paper_reproductions.framework import Cell, Exhibit, Experiment, Results, Row, Rows, Settings
from paper_reproductions.sections import Canvas, ComparisonTable, Section, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROUNDED = 0.005 + 1e-9  # two printed decimals
FEATURES = ("height", "weight")
STEP_NAMES = ("no step", "1 step", "2 steps", "3 steps")
GIVEN = "a coefficient that is given, not found"


def compared_cost(ours: float | None, printed: float, of: str) -> Value:
    """Our cost of a model beside the paper's, which counts once wherever it stands."""
    return Value(ours, printed, digits=3, tolerance=ROUNDED, number=f"cost of {of}")


def name_of(model: tuple[float, float, float]) -> str:
    """A model of Table 1, by its coefficients: the paper prints its cost for
    every path that it is on.
    """
    return f"({model[0]:g}, {model[1]:g})"


def price(models: list[tuple[float, float]]) -> list[Row]:
    """A row per model: its coefficients and its mean squared error."""
    X, y = data.toy()
    residuals = y[:, None] - X.numeric_matrix() @ np.array(models).T
    costs = (residuals**2).mean(axis=0).tolist()
    return [
        {"step": k, "height": b[0], "weight": b[1], "cost": c}
        for k, (b, c) in enumerate(zip(models, costs, strict=True))
    ]


def path_rows(path: paths.CoordinatePath) -> list[Row]:
    """A row per model of a path."""
    return [
        {"step": k, "height": float(b[0]), "weight": float(b[1]), "cost": float(c)}
        for k, (b, c) in enumerate(zip(path.models, path.costs, strict=True))
    ]


# Table 1


def measure_decomposition(cell: Cell, settings: Settings) -> list[Row]:
    """(a) is what `direct` finds, (c) what `interpretability` finds; (b) is no optimum
    of anything: it is priced.
    """
    X, y = data.toy()
    if cell["path"] == "a":
        return path_rows(paths.direct(X, y, end=published.OPTIMUM))
    if cell["path"] == "c":
        found = paths.interpretability(X, y, published.OPTIMUM, max_steps=6)
        proved = int(found.status == Status.OPTIMAL and found.details["all_lengths"])
        return [{**row, "proved": proved} for row in path_rows(found.model)]
    if cell["path"] == "greedy":
        return path_rows(paths.greedy(X, y, steps=2))
    return price([model[:2] for model in published.DECOMPOSITIONS["b"]])


decompositions = Experiment(
    "decompositions",
    lambda settings: [Cell.of(path=path) for path in ("a", "b", "c", "greedy")],
    measure_decomposition,
)


def show_table_1(results: Results, canvas: Canvas) -> Section:
    tables = []
    titles = {
        "a": "(a) The final coefficients one by one, in the best order",
        "b": "(b) The same in the other order (the printed models, priced)",
        "c": "(c) The explanation of the optimum with the least interpretability loss, gamma = 1, any length",
    }
    for path, models in published.DECOMPOSITIONS.items():
        rows = results[decompositions].where(path=path)
        steps = [f"b{k}" for k in range(len(models))]
        values: dict[tuple[str, str], Value | str] = {}
        for step, printed, ours in zip(steps, models, rows, strict=False):
            given = path == "b" or printed in (models[0], models[-1])
            for name, coefficient in zip(FEATURES, printed[:2], strict=True):
                values[step, name] = Value(
                    ours[name],
                    coefficient,
                    digits=3,
                    tolerance=None if given else ROUNDED,
                    apart=GIVEN if given else "",
                    kind="setting",
                )
            values[step, "cost"] = compared_cost(ours["cost"], printed[2], name_of(printed))
        if rows and len(rows) != len(models):
            titles[path] += f"; OURS HAS {len(rows) - 1} STEPS"
        tables.append(ComparisonTable(titles[path], steps, (*FEATURES, "cost"), values))
    greedy = results[decompositions].where(path="greedy").column("cost")[1:]
    costs = dict(zip(("b1", "b2"), greedy, strict=False))
    values = {
        (step, "cost"): compared_cost(costs.get(step), printed, f"greedy {step}")
        for step, printed in zip(("b1", "b2"), published.GREEDY_COSTS, strict=True)
    }
    tables.append(
        ComparisonTable("The greedy path of Section 2.2", ("b1", "b2"), ("cost",), values)
    )
    explained = results[decompositions].where(path="c")
    proof = "proved for all lengths" if explained and explained[0]["proved"] else "not proved"
    text = f"""
        The data are four rows that have exactly the moments of problem (1): correlation 0.9, optimum
        (2.12, -0.94), residual variance 0.25. The optimum's digits are taken as exact, so that differences of
        half a unit in the second decimal are rounding. Both ends of a path are given, and all of (b); what is found are
        the coefficients on the way. A model that stands on several paths has one cost.

        The paper gives path (c) as an example. It is more: of all paths of any length that end in the optimum
        it has the least loss of Definition 1 for gamma = 1 ({proof}), and 1.70 is the best coefficient, 1.697, rounded.

        The paper calls the target normalised; with a mean squared error of 2.04 for the model 0 its variance is
        2.04, not 1.
    """
    return Section(text, tables)


# Fig. 1


def measure_first_two_steps(cell: Cell, settings: Settings) -> list[Row]:
    """The best path of two steps for each weighting of the first and the second cost."""
    X, y = data.toy()
    rows: list[Row] = []
    angles = np.linspace(0, np.pi / 2, 13 if settings.quick else 41)  # denser where the curve bends
    shares = (np.sin(angles) ** 2).clip(1e-6, 1 - 1e-6)
    for share in shares.tolist():
        found = paths.fit(X, y, steps=2, step_weights=[share, 1 - share])
        first, second = path_rows(found.model)[1:]
        rows.append({
            "share": share, "height": first["height"], "weight": second["weight"],
            "first": first["cost"], "second": second["cost"], "status": found.status.value,
            "order": ", ".join(FEATURES[j] for j in found.model.features),
        })  # fmt: skip
    return rows


first_two_steps = Experiment(
    "first_two_steps", lambda settings: [Cell.of(steps=2)], measure_first_two_steps
)


def show_figure_1(results: Results, canvas: Canvas) -> Section:
    rows = results[first_two_steps]
    if not rows:
        return Section()
    figure, axes = canvas.subplots(width=5, height=3.6)
    ax = axes[0, 0]
    ax.plot(rows.column("first"), rows.column("second"), color="C0")
    greedy = {f"greedy b{k}": cost for k, cost in enumerate(published.GREEDY_COSTS, start=1)}
    direct = {name_of(model): model[2] for model in published.DECOMPOSITIONS["a"][1:]}
    ends = {
        "greedy path": (rows[-1], greedy, (8, -4)),
        "path (a) of Table 1": (rows[0], direct, (0, 14)),
    }
    values: dict[tuple[str, str], Value | str] = {}
    for name, (row, printed, offset) in ends.items():
        ax.plot(row["first"], row["second"], "o", color="C0")
        ax.annotate(
            name, (row["first"], row["second"]), xytext=offset, textcoords="offset points",
            ha="left" if offset[0] > 0 else "right",
        )  # fmt: skip
        for column, (model, cost) in zip(("first", "second"), printed.items(), strict=True):
            values[name, f"cost of the {column} model"] = compared_cost(row[column], cost, model)
    ax.set_xlabel("cost of the first model")
    ax.set_ylabel("cost of the second model")
    orders = " or ".join(str(order) for order in rows.values("order"))
    text = f"""
        The {len(rows)} points of the curve are certified optimal paths of two steps, from all weight on the second
        cost to all weight on the first; the order of the features is {orders}. The paper prints no numbers
        beside the curve; its ends are path (a) and the greedy path, whose costs are in Table 1 and Section 2.2 and
        count there.
    """
    columns = ("cost of the first model", "cost of the second model")
    table = ComparisonTable("The ends of the curve", tuple(ends), columns, values)
    return Section(text, (table,), (canvas.save(figure, "figure_1"),))


# Fig. 2


def measure_front(cell: Cell, settings: Settings) -> list[Row]:
    """All Pareto-optimal paths of at most `max_steps` steps, those that no
    weighted sum reaches included.

    The right end is the limit of tradeoffs that tend to 0: the cheapest explanation
    of the least-squares model.
    """
    X, y = data.toy()
    tradeoffs = np.geomspace(30, 1e-3, 40 if settings.quick else 120)
    points = paths.pareto(
        X, y, max_steps=cell["max_steps"], step_weights=1.0, tradeoffs=tradeoffs
    ).points
    end = paths.interpretability(X, y, published.OPTIMUM, max_steps=cell["max_steps"] + 1).model
    rows = [
        _point(p.path, p.interpretability, int(p.supported))
        for p in points
        if p.interpretability < end.loss
    ]
    return _without_dominated([*rows, _point(end, end.loss, 1)])


def _point(path: paths.CoordinatePath, loss: float, supported: int) -> Row:
    height, weight = (float(value) for value in path.models[-1])
    return {
        "steps": len(path),
        "loss": loss,
        "cost": float(path.costs[-1]),
        "height": height,
        "weight": weight,
        "order": ", ".join(FEATURES[j] for j in path.features) or "none",
        "values": ", ".join(f"{value:.2f}" for value in path.values),
        "costs": ", ".join(f"{cost:.3f}" for cost in path.costs[1:]),
        "supported": supported,
    }


def _without_dominated(rows: list[Row]) -> list[Row]:
    """Leave out points above a chord of another sequence's curve: the curve, being
    convex, lies below its chords.
    """
    kept = []
    for row in rows:
        others = {str(other["order"]) for other in rows} - {row["order"], "none"}
        chords = (
            np.interp(
                float(row["loss"]),
                [float(other["loss"]) for other in rows if other["order"] == order],
                [float(other["cost"]) for other in rows if other["order"] == order],
                left=np.inf,
                right=np.inf,
            )
            for order in others
        )
        if min(chords, default=np.inf) >= float(row["cost"]):
            kept.append(row)
    return kept


front = Experiment("front", lambda settings: [Cell.of(gamma=1, max_steps=4)], measure_front)


def show_figure_2(results: Results, canvas: Canvas) -> Section:
    rows = results[front]
    if not rows:
        return Section()
    figure, axes = canvas.subplots(1, 2, width=5.6, height=4.2)
    _draw_front(axes[0, 0], axes[0, 1], rows)
    text = """
        The front of cost against the interpretability loss (gamma = 1), from all paths of up to four steps; no path
        of four steps is on it. As in the paper the front is discontinuous: the cost jumps from no step to one,
        which are single points, and from one to two steps. Two and three steps share no jump: their curves
        cross. Dashed are Pareto-optimal paths that no weighted sum (8) reaches, points above the lower convex
        hull, found by enumerating the sequences of features.

        The paper shows the front as a picture without numbers, so that there is little to compare: the numbers of
        steps of its segments (caption), and three costs that count with Table 1: of no step, of one step (Section 2.2)
        and of the right end, which is path (c) of Table 1: nothing explains the least-squares model at a smaller loss,
        and no model costs less. The models of the paper's inset table are in the picture, too; ours has the ends of the
        segments and of their dashed parts.
    """
    return Section(text, (_segments(rows), _inset(rows)), (canvas.save(figure, "figure_2"),))


def _segments(rows: Rows) -> ComparisonTable:
    """Where each number of steps begins and ends."""
    path = published.DECOMPOSITIONS["c"]
    printed = {
        ("no step", "from"): (path[0][2], name_of(path[0])),
        ("1 step", "from"): (published.GREEDY_COSTS[0], "greedy b1"),
        ("3 steps", "to"): (path[-1][2], name_of(path[-1])),
    }
    values: dict[tuple[str, str], Value | str] = {}
    found = rows.values("steps")
    for position, steps in enumerate(published.FRONT_STEPS):
        name = STEP_NAMES[steps]
        here = float(found[position]) if position < len(found) else None
        values[name, "steps"] = Value(here, float(steps), digits=0, tolerance=0.0)
        segment = rows.where(steps=steps)
        for side, index in (("from", 0), ("to", -1)):
            loss, cost = (
                segment[index][column] if segment else None for column in ("loss", "cost")
            )
            values[name, f"loss {side}"] = Value(loss, digits=3)
            known = printed.get((name, side))
            values[name, f"cost {side}"] = (
                compared_cost(cost, *known) if known else Value(cost, digits=3)
            )
    columns = ("steps", "loss from", "cost from", "loss to", "cost to")
    total = sum(model[2] for model in path[1:])
    note = f"The paper prints no loss; the costs on path (c) of Table 1 add up to {total:.2f}."
    return ComparisonTable(
        "The segments of the front", STEP_NAMES, columns, values, corner="segment", note=note
    )


def _landmarks(rows: Rows) -> dict[str, Row]:
    """The first and last point of every segment and of its parts with and without
    support, named from the left.
    """
    marks: list[Row] = []
    for index, row in enumerate(rows):
        around = [rows[i] for i in (index - 1, index + 1) if 0 <= i < len(rows)]
        ends = len(around) < 2 or any(other["steps"] != row["steps"] for other in around)
        borders = row["supported"] and any(
            other["supported"] != row["supported"] for other in around
        )
        if ends or borders:
            marks.append(row)
    return dict(zip("ABCDEFGHIJKLMNOP", marks, strict=False))


def _inset(rows: Rows) -> ComparisonTable:
    """The models at the landmarks."""
    values: dict[tuple[str, str], Value | str] = {}
    marks = _landmarks(rows)
    for label, row in marks.items():
        values[label, "features set"] = str(row["order"])
        values[label, "to"] = str(row.get("values", ""))
        values[label, "costs on the way"] = str(row.get("costs", ""))
        values[label, "model"] = _model(row)
        values[label, "loss"] = Value(row["loss"], digits=3)
        values[label, "cost"] = Value(row["cost"], digits=3)
    columns = ("features set", "to", "costs on the way", "model", "loss", "cost")
    return ComparisonTable("Models on the front", tuple(marks), columns, values, corner="point")


def _model(row: Row) -> str:
    return f"({row['height']:.2f}, {row['weight']:.2f})"


def _draw_front(whole: Axes, detail: Axes, rows: Rows) -> None:
    """The front as a whole, with the models at the landmarks in an inset table, and its
    part of two and three steps.
    """
    marks = _landmarks(rows)
    single = {label: row for label, row in marks.items() if row["steps"] < 2}
    for ax, labels in (
        (whole, single),
        (detail, {k: row for k, row in marks.items() if k not in single}),
    ):
        _draw_segments(ax, rows)
        following = [row["loss"] for row in labels.values()][1:]
        for (label, row), right in zip(labels.items(), [*following, np.inf], strict=True):
            offset = (5, 5) if right - row["loss"] > 0.02 else (-8, -13)  # two labels at one place
            ax.annotate(
                label, (row["loss"], row["cost"]), xytext=offset, textcoords="offset points"
            )
        ax.set_xlabel("interpretability loss")
        ax.set_ylabel("cost")
    lines = [
        (label, _model(row), str(row["steps"]), f"{row['cost']:.3f}")
        for label, row in marks.items()
    ]
    table = whole.table(
        lines,
        colLabels=("", "model", "steps", "cost"),
        colWidths=(0.1, 0.42, 0.2, 0.28),
        bbox=(0.5, 0.36, 0.48, 0.62),
        cellLoc="center",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    whole.set_ylim(0, 2.25)
    detail.set_xlim(0.75, 1.33)
    detail.set_ylim(0.245, 0.36)
    detail.legend(frameon=False)


def _draw_segments(ax: Axes, rows: Rows) -> None:
    """Lines coloured by the number of steps, dotted where unsupported; grey: the jumps."""
    single = Rows([*rows.where(steps=0), *rows.where(steps=1), *rows.where(steps=2)[:1]])
    ax.step(
        single.column("loss"), single.column("cost"), where="post", color="0.85", lw=1, zorder=0
    )
    for steps, colour in zip(published.FRONT_STEPS, ("C0", "C1", "C2", "C4"), strict=True):
        segment = rows.where(steps=steps)
        loss, cost = segment.column("loss"), segment.column("cost")
        if len(segment) == 1:
            ax.plot(loss, cost, "o", color=colour, label=STEP_NAMES[steps])
            continue
        supported = segment.column("supported") == 1
        reached = supported[:-1] & supported[1:]
        runs = (
            np.split(np.arange(len(reached)), np.flatnonzero(np.diff(reached)) + 1)
            if len(reached)
            else []
        )
        for run in runs:
            part = slice(run[0], run[-1] + 2)
            ax.plot(
                loss[part],
                cost[part],
                color=colour,
                ls="-" if reached[run[0]] else (0, (1.2, 1)),
                lw=2.2,
            )
        ax.plot([], [], color=colour, lw=2.2, label=STEP_NAMES[steps])
    for row in _landmarks(rows).values():
        if row["steps"] > 1:
            ax.plot(row["loss"], row["cost"], "o", color="k", ms=3, zorder=3)
    ax.plot([], [], color="0.4", ls=(0, (1.2, 1)), lw=2.2, label="beyond weighted sums")


EXHIBITS = (
    Exhibit(
        "table",
        1,
        "Three decompositions of the least-squares model",
        (decompositions,),
        show_table_1,
    ),
    Exhibit(
        "figure",
        1,
        "The first model's cost against the second's",
        (first_two_steps,),
        show_figure_1,
    ),
    Exhibit(
        "figure", 2, "The price of interpretability on the toy problem", (front,), show_figure_2
    ),
)
