"""Fig. 4: shared bikes, a coordinate path against the models of the
LASSO's sequence of features.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxrules import paths
from jaxrules.paths.costs import mean_squared_error
from jaxrules.paths.problem import best_path
from paper_reproductions.coordinate_paths import data, published
from paper_reproductions.framework import Cell, Exhibit, Experiment, Results, Row, Rows, Settings
from paper_reproductions.sections import Canvas, ComparisonTable, Section, Value

STEPS = len(published.BIKES_STEPS)
FEATURES = tuple(name for name, _, _ in published.BIKES_STEPS)
COSTS = {
    "path": tuple(cost for _, _, cost in published.BIKES_STEPS),
    "lasso": tuple(cost for _, cost in published.LASSO_MODELS),
}
PRINTED = np.concatenate([COSTS["path"], COSTS["lasso"]])
EXPECTED = {"path": published.BIKES_EXPECTED, "lasso": published.LASSO_EXPECTED}
COMPARED = "last levels dropped"
"""The coding that is compared with the paper."""
LEVELS = {COMPARED: False, "all levels": True}
LABELS = tuple(f"b{k}" for k in range(1, STEPS + 1))
SIZES = (487, 585, 658, 700)
"""Rows of random parts: two thirds, four fifths, nine tenths and nearly all of the 731."""
NEAR = 0.005
COEFFICIENT, COST = 0.005, 0.0005  # tolerances: half a unit of the last printed digit
NOTHING = Rows(())
GIVEN = "in the paper's order of features, which is given and not found"


# What is measured


def measure(cell: Cell, settings: Settings) -> list[Row]:
    """A row per coefficient of each model that is set there: all of the LASSO's
    models, one per step of a path.
    """
    X, y = data.bikes(LEVELS[cell["columns"]])
    if cell["method"] == "lasso":
        sequence = paths.lasso_sequence(X, y, steps=STEPS)
        models = np.asarray(sequence.models)
        return [
            _row(k, sequence.names[j], models[k, j], sequence.costs[k])
            for k in range(1, len(sequence) + 1)
            for j in sequence.moved
            if models[k, j] != 0
        ]
    if cell["method"] == "path":
        found = paths.fit(X, y, steps=STEPS, step_weights=np.full(STEPS, 1 / STEPS))
        path = found.model
        moves = zip(path.features, path.values, path.costs[1:], strict=True)
        return [
            {**_row(k, path.names[j], value, cost), "status": found.status.value}
            for k, (j, value, cost) in enumerate(moves, 1)
        ]
    order = np.array([X.names.index(name) for name in FEATURES])
    cost = mean_squared_error(X.numeric_matrix(), y, np.ones(len(y)))
    models = best_path(cost, np.ones(STEPS), order)
    return [
        _row(k, X.names[j], models[k - 1, j], float(cost(models[k - 1])))
        for k, j in enumerate(order, 1)
    ]


def _row(model: int, feature: str, value: float, cost: float) -> Row:
    return {"model": model, "feature": feature, "value": float(value), "half_cost": float(cost) / 2}


def measure_samples(cell: Cell, settings: Settings) -> list[Row]:
    """The paper's printed models, priced on all rows and on random parts of them,
    standardised anew each time.
    """
    columns, rides = data.bike_columns()
    models = _printed_models(list(columns))
    values = np.column_stack([*columns.values(), rides])
    rng = np.random.default_rng(settings.seed)
    parts = [
        rng.permutation(len(values))[: cell["rows"]] for _ in range(200 if settings.quick else 2000)
    ]
    costs = np.array([_half_costs(models, values[part]) for part in parts])
    whole = _half_costs(models, values)
    furthest = np.abs(costs - PRINTED).max(axis=1)
    low, high = np.percentile(costs, [5, 95], axis=0)
    return [
        {
            "method": method,
            "model": k + 1,
            "whole": float(whole[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "near": int((furthest <= NEAR).sum()),
            "nearest": float(furthest.min()),
            "samples": len(costs),
        }
        for i, (method, k) in enumerate((m, k) for m in COSTS for k in range(STEPS))
    ]


def measure_alternative(cell: Cell, settings: Settings) -> Row:
    """How far the paper's 14 costs are from those of its models on data that
    are prepared in another way.
    """
    columns, rides = data.bike_columns()
    other = data.bike_extras()
    preparation = cell["preparation"]
    rows = np.full(len(rides), True)
    if preparation == "temperature, not feeling temperature":
        columns = {**columns, "Ftemp": other["temp"]}
    elif preparation in TRANSFORMED:
        rides = TRANSFORMED[preparation](rides)
    elif preparation in SELECTED:
        rows = SELECTED[preparation](other, rides)
    models = _printed_models(list(columns))
    costs = _half_costs(models, np.column_stack([*columns.values(), rides])[rows])
    return {
        "rows": int(rows.sum()),
        "first": float(costs[STEPS]),
        "furthest": float(np.abs(costs - PRINTED).max()),
    }


TRANSFORMED = {"square root of the rides": np.sqrt, "logarithm of the rides": np.log}
SELECTED = {
    "without holidays": lambda other, rides: other["holiday"] == 0,
    "without days of fewer than 500 rides": lambda other, rides: rides >= 500,
    "without the day of humidity 0": lambda other, rides: other["hum"] > 0,
    "2011": lambda other, rides: other["yr"] == 0,
    "2012": lambda other, rides: other["yr"] == 1,
}
ALL_ROWS = "all 731 days"
PREPARATIONS = (ALL_ROWS, "temperature, not feeling temperature", *TRANSFORMED, *SELECTED)


def _printed_models(names: list[str]) -> NDArray[np.float64]:
    """The paper's models of the path, then of the LASSO, shape (14, columns)."""
    steps = [
        dict.fromkeys(names, 0.0) | {f: b for f, b, _ in published.BIKES_STEPS[:k]}
        for k in range(1, STEPS + 1)
    ]
    lasso = [
        dict.fromkeys(names, 0.0) | dict(zip(published.LASSO_FEATURES, coefficients, strict=False))
        for coefficients, _ in published.LASSO_MODELS
    ]
    return np.array([list(model.values()) for model in (*steps, *lasso)])


def _half_costs(models: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the mean squared errors; the target is the last of the values."""
    scaled = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    extended = np.column_stack([models, -np.ones(len(models))])
    return ((scaled @ extended.T) ** 2).mean(axis=0) / 2


def measure_parts(cell: Cell, settings: Settings) -> Row:
    """Whether all 49 numbers of both tables look like those of a random part of the rows.

    Their Mahalanobis distance from the mean of such parts, beside the distances of other parts;
    and how the optimal paths of some parts order the features.
    """
    columns, rides = data.bike_columns()
    if cell["target"] in TRANSFORMED:
        rides = TRANSFORMED[cell["target"]](rides)
    values = np.column_stack([*columns.values(), rides])
    names, rng = list(columns), np.random.default_rng(settings.seed)
    draws = 300 if settings.quick else 3000
    parts = [rng.permutation(len(values))[: cell["rows"]] for _ in range(draws)]
    rounded = np.array([_all_numbers(names, values[part]) for part in parts])
    rounded = np.round(rounded / ROUNDING) * ROUNDING
    known, others = np.split(rounded, [2 * draws // 3])
    spread = np.linalg.inv(np.cov(known.T))
    away = np.vstack([others, ALL_PRINTED]) - known.mean(axis=0)
    distances = np.einsum("ij,jk,ik->i", away, spread, away)
    orders = [
        _order_of({name: column[part] for name, column in columns.items()}, rides[part])
        for part in parts[: 5 if settings.quick else 40]
    ]
    return {
        "distance": float(distances[-1]),
        "median": float(np.median(distances[:-1])),
        "further": float(np.mean(distances[:-1] >= distances[-1])),
        "parts": len(others),
        "paths": len(orders),
        "first": sum(order[0] == FEATURES[0] for order in orders),
        "same": sum(set(order) == set(FEATURES) for order in orders),
    }


def _order_of(columns: dict[str, NDArray[np.float64]], rides: NDArray[np.float64]) -> list[str]:
    """The features of the optimal path, in its order."""
    X, y = data.standardised(columns, rides)
    path = paths.fit(X, y, steps=STEPS, step_weights=np.full(STEPS, 1 / STEPS)).model
    return [path.names[j] for j in path.features]


def _all_numbers(names: list[str], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients and costs of the best path in the paper's order, then of each LASSO's model."""
    scaled = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    products = scaled.T @ scaled / len(scaled)

    def cost(columns: NDArray[np.int64], coefficients: NDArray[np.float64]) -> float:
        at = np.append(columns, len(names))
        extended = np.append(coefficients, -1.0)
        return float(extended @ products[np.ix_(at, at)] @ extended) / 2

    order = np.array([names.index(name) for name in FEATURES])
    # Coefficient i is in the models i, ..., 7 of the path: their normal equations, summed.
    later = STEPS - np.maximum.outer(np.arange(STEPS), np.arange(STEPS))
    path = np.linalg.solve(
        products[np.ix_(order, order)] * later, products[order, -1] * later.diagonal()
    )
    numbers = [*path, *(cost(order[:k], path[:k]) for k in range(1, STEPS + 1))]
    chosen = np.array([names.index(name) for name in published.LASSO_FEATURES])
    for k in range(1, STEPS + 1):
        best = np.linalg.solve(products[np.ix_(chosen[:k], chosen[:k])], products[chosen[:k], -1])
        numbers += [*best, cost(chosen[:k], best)]
    return np.array(numbers)


ALL_PRINTED = np.array(
    [
        *(value for _, value, _ in published.BIKES_STEPS),
        *COSTS["path"],
        *(x for coefficients, cost in published.LASSO_MODELS for x in (*coefficients, cost)),
    ]
)
"""In the order of `_all_numbers`."""
ROUNDING = 2 * np.array(
    [
        *[COEFFICIENT] * STEPS,
        *[COST] * STEPS,
        *(x for k in range(1, STEPS + 1) for x in (*[COEFFICIENT] * k, COST)),
    ]
)
RIDES = "rides"
LIKELY = 0.05
PARTS = (365, *SIZES)


sequences = Experiment(
    "sequences",
    lambda settings: [
        Cell.of(columns=columns, method=method)
        for columns in LEVELS
        for method in ("path", "paper order", "lasso")
    ],
    measure,
    data.loads("bike_day"),
)  # fmt: skip
samples = Experiment(
    "samples",
    lambda settings: [Cell.of(rows=rows) for rows in SIZES],
    measure_samples,
    data.loads("bike_day"),
)
alternatives = Experiment(
    "alternatives",
    lambda settings: [Cell.of(preparation=name) for name in PREPARATIONS],
    measure_alternative,
    data.loads("bike_day"),
)
parts = Experiment(
    "parts",
    lambda settings: [
        *(Cell.of(rows=rows, target=RIDES) for rows in PARTS),
        *(Cell.of(rows=365, target=name) for name in TRANSFORMED),
    ],
    measure_parts,
    data.loads("bike_day"),
)


# What is shown


def show_figure_4(results: Results, canvas: Canvas) -> Section:
    rows = results[sequences].where(columns=COMPARED)
    reason = _part_reason(results[parts])
    tables = (
        _path_table(
            "(a) The optimal path",
            rows.where(method="path"),
            _proof(rows.where(method="path")),
            in_order=rows.where(method="paper order"),
            reason=reason,
        ),
        _path_table(
            "(a) The path in the paper's order of features, with the best coefficients",
            rows.where(method="paper order"),
            _excess(rows),
            given=True,
        ),
        _lasso_table(rows.where(method="lasso"), reason),
        _parts_table(results[parts]),
        _levels_table(results[sequences]),
        _samples_table(results[samples]),
        _alternatives_table(results[alternatives], results[samples]),
    )
    figures = (_draw(rows, canvas),) if len(rows.values("method")) == 3 else ()
    return Section(TEXT, tables, figures)


def _half_cost(rows: Rows, model: int) -> float | None:
    found = rows.where(model=model)
    return found[0]["half_cost"] if found else None


def _expected(rows: Rows) -> float | None:
    """The mean of the models' costs."""
    costs = [rows.where(model=model)[0]["half_cost"] for model in rows.values("model")]
    return float(np.mean(costs)) if costs else None


def _excess(rows: Rows) -> str:
    """How much worse than the optimal path the paper's order is."""
    ours, best = _expected(rows.where(method="paper order")), _expected(rows.where(method="path"))
    return (
        ""
        if ours is None or best is None
        else f"{100 * (ours / best - 1):.2f} % above the optimal path."
    )


def _proof(rows: Rows) -> str:
    return "Proved optimal." if rows.values("status") == ("optimal",) else ""


def _path_table(
    title: str,
    rows: Rows,
    note: str,
    *,
    given: bool = False,
    in_order: Rows = NOTHING,
    reason: str = "",
) -> ComparisonTable:
    """In the form of Fig. 4a. Where the paper moves another feature, its
    number stands without ours.

    A path in the given order is another reading of the same numbers of the
    paper and is not compared; `in_order`, that path, is a reason where its coefficient agrees;
    `reason` holds for the rest.
    """
    values: dict[tuple[str, str], Value | str] = {}

    def put(
        label: str, column: str, ours: float | None, printed: float, tolerance: float, **shown: Any
    ) -> None:
        shown = {"reason": reason} | shown
        values[label, column] = Value(
            ours, printed, tolerance=None if given else tolerance, apart=GIVEN if given else "", kind="setting",
            number=f"path {label} {column}", **shown,
        )  # fmt: skip

    for k, (label, (name, printed, cost)) in enumerate(
        zip(LABELS, published.BIKES_STEPS, strict=True), 1
    ):
        for row in rows.where(model=k):
            if row["feature"] == name:
                ordered = _order_reason(in_order.where(model=k, feature=name), printed) or reason
                put(label, name, row["value"], printed, COEFFICIENT, digits=3, reason=ordered)
            else:
                put(label, name, 0.0, printed, COEFFICIENT, digits=2, mark="not moved")
                values[label, str(row["feature"])] = Value(row["value"], digits=3)
        put(label, "MSE / 2", _half_cost(rows, k), cost, COST)
    put("expected", "MSE / 2", _expected(rows), EXPECTED["path"], COST)
    features = dict.fromkeys([*FEATURES, *(str(row["feature"]) for row in rows)])
    return ComparisonTable(title, (*LABELS, "expected"), (*features, "MSE / 2"), values, note=note)


def _order_reason(there: Rows, printed: float) -> str:
    """The coefficient in the paper's order of features, if it agrees."""
    if not there or abs(there[0]["value"] - printed) > COEFFICIENT:
        return ""
    return f"It is {there[0]['value']:.3f} on the best path in the paper's order of features (next table)."


def _part_reason(rows: Rows) -> str:
    """That a part of the rows has the paper's numbers, if the test of `measure_parts` allows it."""
    found = rows.where(target=RIDES)
    likely = [row for row in found if row["further"] > LIKELY]
    if not likely:
        return ""
    row = likely[0]
    return f"As likely from a random part of the rows: p = {row['further']:.2f} for {row['rows']} (table of parts)."


def _parts_table(rows: Rows) -> ComparisonTable:
    """The test behind `_part_reason`."""
    values: dict[tuple[str, str], Value | str] = {}
    names = []
    for row in rows:
        unit = "" if row["target"] == RIDES else f", {row['target']}"
        names.append(f"{row['rows']} rows{unit}")
        values[names[-1], "distance of the paper's numbers"] = Value(row["distance"], digits=1)
        values[names[-1], "median distance of parts"] = Value(row["median"], digits=1)
        values[names[-1], "parts further away"] = f"{100 * row['further']:.1f} %"
        total = row["paths"]
        values[names[-1], "paths that begin with temperature"] = f"{row['first']} of {total}"
        values[names[-1], "paths of the paper's features"] = f"{row['same']} of {total}"
    columns = dict.fromkeys(column for _, column in values)
    note = (
        f"Distances are Mahalanobis's, of the {len(ALL_PRINTED)} coefficients and costs of both tables, rounded as "
        "the paper prints them, from their means over 2000 other parts. The optimal paths are of some of the parts."
    )
    title = "Are the paper's numbers those of a random part of the rows?"
    return ComparisonTable(title, names, tuple(columns), values, corner="part", note=note)


def _lasso_table(rows: Rows, reason: str) -> ComparisonTable:
    """In the form of Fig. 4b."""
    values: dict[tuple[str, str], Value | str] = {}
    for k, (label, (coefficients, cost)) in enumerate(
        zip(LABELS, published.LASSO_MODELS, strict=True), 1
    ):
        printed = dict(zip(published.LASSO_FEATURES, coefficients, strict=False))
        ours = {str(row["feature"]): row["value"] for row in rows.where(model=k)}
        for name in dict.fromkeys([*printed, *ours]):
            values[label, name] = Value(
                ours.get(name), printed.get(name), digits=3, tolerance=COEFFICIENT, reason=reason
            )
        values[label, "MSE / 2"] = Value(_half_cost(rows, k), cost, tolerance=COST, reason=reason)
    values["expected", "MSE / 2"] = Value(
        _expected(rows), EXPECTED["lasso"], tolerance=COST, reason=reason
    )
    features = dict.fromkeys([*published.LASSO_FEATURES, *(str(row["feature"]) for row in rows)])
    title = "(b) Least squares on the first features of the LASSO's path"
    return ComparisonTable(title, (*LABELS, "expected"), (*features, "MSE / 2"), values)


def _levels_table(rows: Rows) -> ComparisonTable:
    """Features in the order in which they are set, and expected costs, by the
    coding of the categories.
    """
    values: dict[tuple[str, str], Value | str] = {("paper", "path"): ", ".join(FEATURES)}
    values["paper", "LASSO"] = ", ".join(published.LASSO_FEATURES)
    names = {"path": "path", "lasso": "LASSO"}
    for method, name in names.items():
        values["paper", f"expected MSE / 2, {name}"] = f"{EXPECTED[method]:.3f}"
        for coding in LEVELS:
            found = rows.where(columns=coding, method=method)
            values[coding, name] = ", ".join(str(feature) for feature in found.values("feature"))
            values[coding, f"expected MSE / 2, {name}"] = Value(_expected(found))
    columns = ("path", "LASSO", "expected MSE / 2, path", "expected MSE / 2, LASSO")
    title = "Order of the features by the coding of season, weekday and weather"
    return ComparisonTable(title, ("paper", *LEVELS), columns, values, corner="coding")


def _samples_table(rows: Rows) -> ComparisonTable:
    """The paper's own models on our rows."""
    values: dict[tuple[str, str], Value | str] = {}
    first = rows.where(rows=SIZES[0])
    for method, name in (("path", "path"), ("lasso", "LASSO")):
        for label, row in zip(LABELS, first.where(method=method), strict=False):
            values[label, f"{name}, paper"] = f"{COSTS[method][row['model'] - 1]:.3f}"
            values[label, f"{name}, all rows"] = Value(row["whole"])
            values[label, f"{name}, two thirds"] = f"{row['low']:.3f} to {row['high']:.3f}"
    parts = [rows.where(rows=size)[0] for size in SIZES if rows.where(rows=size)]
    note = (
        "Two thirds: the 5 % and 95 % quantiles over random parts of the rows. All 14 costs within "
        + "; ".join(
            f"{NEAR} of the paper's in {row['near']} of {row['samples']} parts of {row['rows']} "
            "rows (nearest: "
            f"{row['nearest']:.4f})"
            for row in parts
        )
    )
    columns = tuple(
        f"{name}, {what}"
        for name in ("path", "LASSO")
        for what in ("paper", "all rows", "two thirds")
    )
    title = "MSE / 2 of the paper's printed models"
    return ComparisonTable(title, LABELS, columns, values, note=f"{note}." if parts else "")


def _alternatives_table(rows: Rows, sampled: Rows) -> ComparisonTable:
    """Which preparations could be the paper's: its models should cost what it prints."""
    values: dict[tuple[str, str], Value | str] = {}
    names = []
    for row in rows:
        name = str(row["preparation"])
        names.append(name)
        values[name, "rows"] = str(row["rows"])
        values[name, f"temperature alone (paper {COSTS['lasso'][0]:.3f})"] = Value(row["first"])
        values[name, "largest difference of the 14 costs"] = Value(row["furthest"])
    for size in SIZES:
        for row in sampled.where(rows=size)[:1]:
            names.append(f"nearest of the random parts of {size} rows")
            values[names[-1], "rows"] = str(size)
            values[names[-1], "largest difference of the 14 costs"] = Value(row["nearest"])
    columns = (
        "rows",
        f"temperature alone (paper {COSTS['lasso'][0]:.3f})",
        "largest difference of the 14 costs",
    )
    return ComparisonTable(
        "The paper's printed models on other readings of its data", names, columns, values
    )


def _draw(rows: Rows, canvas: Canvas) -> Path:
    """Cost by number of features, ours and the paper's."""
    figure, axes = canvas.subplots(width=5.4, height=3.8)
    ax = axes[0, 0]
    steps = np.arange(1, STEPS + 1)
    for method, name, colour, marker in (
        ("path", "coordinate path", "C0", "o"),
        ("lasso", "LASSO", "C1", "s"),
    ):
        found = rows.where(method=method)
        models = found.values("model")
        costs = [found.where(model=model)[0]["half_cost"] for model in models]
        ax.plot(models, costs, marker=marker, ms=5, color=colour, label=name)
        ax.plot(
            steps,
            COSTS[method],
            marker=marker,
            ms=5,
            mfc="w",
            color=colour,
            ls=":",
            label=f"{name}, paper",
        )
    ax.set_xlabel("model")
    ax.set_ylabel("mean squared error / 2")
    ax.legend(frameon=False)
    return canvas.save(figure, "figure_4")


TEXT = """
    Data: 731 days. (The paper places the bikes in Porto, where the authors of the data set worked; the data are of
    Washington, D.C.) Columns: feeling temperature, day number, humidity, wind speed, and indicators of season,
    weekday and weather; costs are halved and variances have n - 1 in the denominator, as for the schools. The
    stopping point is uniform on 1, ..., 7, so that the objective is the expected cost.

    Coding. The paper counts 18 features and names 8. Four numbers and all levels of the three categories are 18,
    but then rainy weather enters both sequences on all rows, and the paper has it in neither. With the last level
    of each category dropped (winter, Saturday, rain: 15 columns) the LASSO takes up the paper's seven features
    in the paper's order, and the optimal path has the paper's seven features, with two pairs of neighbours
    exchanged (table of codings). So this coding is compared; what the paper's other three columns were does not
    show in its tables.

    Costs. The paper's are lower than those of all 731 rows: with feeling temperature alone, the cheapest model has
    the coefficient 0.63 and costs 0.301, the paper's 0.65 and 0.289. The paper's two numbers fit each other (half
    of 1 - 0.65 squared is 0.289), so that its data have a correlation of 0.65 between temperature and rides. Parts
    of the rows have such numbers: all 49 of both tables together are as near to the mean of random halves as
    random halves are, two thirds and four fifths pass the same test, nine tenths do not (table of parts). Halves
    with the square root or the logarithm of the rides pass too, but their paths take other features. So the paper's
    models were most likely fitted on a part of the rows, to train on, of which it does not speak. Which rows these were
    we do not know: none of 2000 random parts has all costs within the tolerance, half a unit of the last
    printed digit. None of the preparations of the last table gives the paper's costs.

    The optimal path is compared cell by cell. Below it are the best coefficients in the paper's order of features,
    which is next to optimal on our rows: temperature and day, equally correlated with the rides, are exchanged in the
    optimal path, and so are Sundays and clear weather. Where a coefficient agrees in the paper's order, the order is
    the reason; about half of the optimal paths of parts begin with temperature, too. The statement of Fig. 4 holds on
    all rows and with both codings: the path's expected cost is lower than that of the LASSO's sequence, though it
    changes one coefficient at a time.
"""

EXHIBITS = (
    Exhibit(
        "figure",
        4,
        "Bike sharing: a path against the LASSO",
        (sequences, samples, alternatives, parts),
        show_figure_4,
    ),
)
