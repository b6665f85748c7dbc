"""The paper's tables and figures with ours beside."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from paper_reproductions.framework import Exhibit, Experiment, Results, Rows
from paper_reproductions.sections import Canvas, ComparisonTable, Quoted, Section, Value
from paper_reproductions.ssrl import peers, protocol, published

inside = Experiment("inside", protocol.fold_cells, protocol.measure_inside, protocol.files)
every = Experiment("settings", protocol.fold_cells, protocol.measure_settings, protocol.files)
modmod = Experiment("modmod", protocol.modmod_cells, protocol.measure_modmod, protocol.files)
variants = Experiment("variants", protocol.variant_cells, protocol.measure_variant, protocol.files)
gas = Experiment("gas", protocol.gas_cells, protocol.measure_gas, protocol.files)
times = Experiment("times", protocol.time_cells, protocol.measure_time, protocol.files)
lists = Experiment("lists", protocol.list_cells, protocol.measure_list, protocol.files)

BINARY = ("FICO-binary", "FICO", "WDBC", "magic", "adult", "COMPAS-binary")
MULTI = ("iris", "cmc", "cardio", "page-blocks", "dry-bean", "pendigits")
INSIDE, BEST = (
    {
        f"ours, inside, {rule}": rule
        for rule in (protocol.SHORTEST, protocol.ACCURATE, protocol.AS_LONG)
    },
    "ours, best setting",
)
SIZE = ("rules", "literals")


def best_setting(rows: Rows, name: str | None = None) -> Rows:
    """The folds of the setting with the best mean test accuracy: as the paper probably chose.

    Given the name of a set, of the settings with at most the paper's rules and literals.
    """
    done = len(rows.values("fold"))
    settings = dict.fromkeys((row["literal_penalty"], row["max_rules"]) for row in rows)
    found = [rows.where(literal_penalty=penalty, max_rules=size) for penalty, size in settings]
    complete = [part for part in found if len(part) == done]
    if name is not None:
        limits = [mean + spread for mean, spread in published.SIZES[name]["SSRL"]]
        complete = [
            part
            for part in complete
            if all(
                (part.mean(measure) or 0.0) <= limit
                for measure, limit in zip(SIZE, limits, strict=True)
            )
        ]
    return max(complete, key=lambda part: part.mean("accuracy") or 0.0, default=Rows([]))


def chosen(results: Results, name: str) -> dict[str, Rows]:
    """The folds of a set by the way in which their settings were chosen."""
    rows = results[inside].where(data=name)
    by_rule = {column: rows.where(choice=rule) for column, rule in INSIDE.items()}
    return {**by_rule, BEST: best_setting(results[every].where(data=name))}


def z_of(rows: Rows, measure: str, mean: float, spread: float) -> float | None:
    """Our mean minus the paper's in standard errors, both over their folds; None without spread."""
    ours, own = rows.mean(measure), rows.spread(measure)
    if ours is None or own is None:
        return None
    error = math.hypot(own / math.sqrt(len(rows)), spread / math.sqrt(protocol.FOLDS))
    return (ours - mean) / error if error else None


def reason(results: Results, name: str, measure: str) -> str:
    """The setting, if another one has at most the paper's size and agrees with its accuracy."""
    short = best_setting(results[every].where(data=name), name)
    ((mean, spread),) = published.ACCURACY[name]["SSRL"]
    accuracy = short.mean("accuracy")
    if measure not in SIZE or accuracy is None or accuracy < mean - spread:
        return ""
    return (
        f"The setting: penalty {short[0]['literal_penalty']:g} has {short.mean('rules'):.1f} rules "
        f"and {short.mean('literals'):.1f} literals at an accuracy of {accuracy:.2f} (see settings "
        "of the paper's size)."
    )


def _comparison(
    results: Results, title: str, names: Sequence[str], measures: Sequence[str], digits: int
) -> ComparisonTable:
    """Ours, chosen in three ways, with the paper's SSRL in brackets; the paper's numbers
    for its peers, and for gas.
    """
    values: dict[tuple[str, str], Value | str] = {}
    accuracy = measures[0] == "accuracy"
    table, only = (published.ACCURACY, "below") if accuracy else (published.SIZES, "above")
    columns = [
        f"{column}{'' if accuracy else f', {m}'}" for column in (*INSIDE, BEST) for m in measures
    ]
    for name in names:
        paper = table[name]
        for column, rows in chosen(results, name).items():
            for measure, (mean, spread) in zip(measures, paper["SSRL"], strict=True):
                marks = [f"z {z:+.1f}"] if (z := z_of(rows, measure, mean, spread)) else []
                if len(rows) not in (0, protocol.FOLDS):
                    marks.append(f"{len(rows)} of {protocol.FOLDS} folds")
                values[name, column if accuracy else f"{column}, {measure}"] = Value(
                    rows.mean(measure), mean, digits, spread, only, rows.spread(measure),
                    reason(results, name, measure), "; ".join(marks), number=f"{name} {measure}",
                )  # fmt: skip
    rows = [*names, *(("gas",) if names == BINARY else ())]
    for name in rows:
        for method, cell in table[name].items():
            printed = " / ".join(f"{mean:g} ± {spread:g}" for mean, spread in cell)
            # The means of programs that run here stand in a table of their own.
            here = _program(results, name, method).mean("accuracy") is not None
            quoted = Quoted(printed, (1 if here else 2) * len(cell))
            beside_ours = method == "SSRL" and name in names  # counted there, and as deviations
            values[name, f"{method} (paper)"] = printed if beside_ours else quoted
    methods = [f"{method} (paper)" for method in table[names[0]]]
    return ComparisonTable(title, rows, [*columns, *methods], values, corner="data")


def _program(results: Results, name: str, method: str) -> Rows:
    """The folds of a program of others, by the paper's name for it."""
    return results[peers.folds].where(data=name, method=method.removesuffix("*"))


def programs_table(
    names: Sequence[str], measures: Sequence[str]
) -> Callable[[Results], ComparisonTable]:
    """The programs of others on our folds beside the paper's numbers of them."""

    def table(results: Results) -> ComparisonTable:
        printed = published.ACCURACY if measures[0] == "accuracy" else published.SIZES
        values: dict[tuple[str, str], Value | str] = {}
        for name in names:
            for method, paper in printed[name].items():
                rows = _program(results, name, method)
                finished = len(rows.column("accuracy"))
                marks = [f"{finished} of {len(rows)} folds"] * (0 < finished < len(rows))
                marks += ["a fold"] * (finished == len(rows) == 1)
                for measure, (mean, _) in zip(measures, paper, strict=True):
                    column = f"{method}, {measure}"
                    if finished:
                        ours = float(rows.mean(measure) or 0) + (measure == "rules")
                        values[name, column] = Value(
                            ours, mean, 2 if measure == "accuracy" else 1,
                            spread=rows.spread(measure), mark="; ".join(marks),
                            apart="programs of others in versions and settings that the paper "
                            "does not name", number=f"{name} {method} {measure}",
                        )  # fmt: skip
                    elif rows:
                        values[name, column] = "not finished"
        columns = [
            f"{method}, {measure}"
            for method in published.METHODS
            for measure in measures
            if any((name, f"{method}, {measure}") in values for name in names)
        ]
        note = (
            "On our folds and SSRL's binary features, one of each and its complement, in the first "
            f"fold of {', '.join(protocol.LARGE)}; a fold may take {peers.FOLD_SECONDS} CPU "
            "seconds, and means are over those that end. CLASSY is rulelist, RIPPER wittgenstein, "
            "both with their defaults; SBRL is pysbrl with rules of at most two items and a "
            "support of 0.001, one of the two that the paper tunes; CORELS has the paper's "
            "settings and the default price of a rule, which the paper does not name. In brackets "
            "the paper's."
        )
        there = [name for name in names if any((name, column) in values for column in columns)]
        return ComparisonTable(
            "Programs of others, as they run here", there, columns, values, corner="data", note=note
        )

    return table


def _at_the_papers_size(results: Results, names: Sequence[str]) -> ComparisonTable:
    """The most accurate of the settings with at most the paper's rules and literals."""
    values: dict[tuple[str, str], Value | str] = {}
    for name in names:
        rows = best_setting(results[every].where(data=name), name)
        if not len(rows):
            continue
        values[name, "penalty"] = f"{rows[0]['literal_penalty']:g}"
        values[name, "at most"] = f"{rows[0]['max_rules']} rules"
        paper = (*published.ACCURACY[name]["SSRL"], *published.SIZES[name]["SSRL"])
        for measure, (mean, spread) in zip(("accuracy", *SIZE), paper, strict=True):
            z = z_of(rows, measure, mean, spread)
            values[name, measure] = Value(
                rows.mean(measure), mean, 2 if measure == "accuracy" else 1,
                spread=rows.spread(measure), mark="" if z is None else f"z {z:+.1f}",
                apart="a setting chosen for its size", number=f"{name} {measure}",
            )  # fmt: skip
    note = (
        "The setting with the best mean test accuracy among those with at most the paper's means "
        "and one standard deviation. The paper does not say which settings its sizes have."
    )
    columns = ("penalty", "at most", "accuracy", *SIZE)
    there = [name for name in names if (name, "accuracy") in values]
    return ComparisonTable("Settings of the paper's size", there, columns, values, note=note)


def _deviations(
    results: Results, names: Sequence[str], measures: Sequence[str], digits: int
) -> ComparisonTable:
    """Those over folds, of jaxrules' default choice and of the paper's SSRL."""
    table = published.ACCURACY if measures[0] == "accuracy" else published.SIZES
    values: dict[tuple[str, str], Value | str] = {}
    for name in names:
        rows = results[inside].where(data=name, choice=protocol.SHORTEST)
        for measure, (_, spread) in zip(measures, table[name]["SSRL"], strict=True):
            values[name, measure] = Value(
                rows.spread(measure),
                spread,
                digits,
                apart="deviations over folds are what the means are judged by",
            )
    return ComparisonTable(
        "Standard deviations over folds, ours with one standard error",
        names,
        measures,
        values,
        corner="data",
    )


def _few(results: Results) -> str:
    """How far means of fewer folds than the paper's are from those of all."""
    folds = len(results[inside].values("fold"))
    if folds in (0, protocol.FOLDS):
        return ""
    share = float(np.sqrt((1 / folds - 1 / protocol.FOLDS) * protocol.FOLDS / (protocol.FOLDS - 1)))
    return (
        f" Ours are of {folds} of the ten folds, or of fewer where it is said; a mean of {folds} "
        "is typically "
        f"{share:.2f} of the deviation over folds away from the mean of all ten."
    )


def accuracies(
    title: str, names: Sequence[str], *more: Callable[[Results], ComparisonTable]
) -> Callable[..., Section]:
    """An exhibit of accuracies, with further tables."""

    def show(results: Results, canvas: Canvas) -> Section:
        text = (
            "At most one standard deviation of the paper's below its accuracy counts as agreement. z "
            "is the difference of the means in standard errors." + _few(results)
        )
        first = _comparison(results, title, names, ("accuracy",), 2)
        deviations = _deviations(results, names, ("accuracy",), 2)
        return Section(
            text, [first, deviations, *(made for table in more if (made := table(results)).rows)]
        )

    return show


def sizes(title: str, names: Sequence[str]) -> Callable[..., Section]:
    """An exhibit of numbers of rules and of literals."""

    def show(results: Results, canvas: Canvas) -> Section:
        text = (
            "At most the paper's mean and one standard deviation, of rules and of literals, counts "
            "as agreement; the "
            "default is a rule. z is the difference of the means in standard errors."
            + _few(results)
        )
        return Section(
            text,
            [
                _comparison(results, title, names, SIZE, 1),
                _at_the_papers_size(results, names),
                _deviations(results, names, SIZE, 1),
                *(made for made in [programs_table(names, SIZE)(results)] if made.rows),
            ],
        )

    return show


MODMOD, BEAM = "ModMod", "beam search"


def modmod_table(names: Sequence[str]) -> Callable[[Results], ComparisonTable]:
    """The paper's own search beside beam search, with as many rules and on the same folds, each at
    the penalty with its best mean test accuracy.
    """

    def table(results: Results) -> ComparisonTable:
        values: dict[tuple[str, str], Value | str] = {}
        measures = ("accuracy", *SIZE)
        there = [name for name in names if results[modmod].where(data=name)]
        for name in there:
            theirs = results[modmod].where(data=name)
            folds = theirs.values("fold")
            beam = Rows(
                row
                for row in results[every].where(data=name, max_rules=protocol.MODMOD_RULES)
                if row["fold"] in folds
            )
            paper = (*published.ACCURACY[name]["SSRL"], *published.SIZES[name]["SSRL"])
            for search, rows in ((MODMOD, theirs), (BEAM, beam)):
                best = _best_penalty(rows)
                for measure, (mean, spread) in zip(measures, paper, strict=True):
                    z = z_of(best, measure, mean, spread)
                    marks = [f"penalty {best[0]['literal_penalty']:g}"] if len(best) else []
                    marks += [] if z is None else [f"z {z:+.1f}"]
                    if len(best) not in (0, protocol.FOLDS):
                        marks.append(f"{len(best)} of {protocol.FOLDS} folds")
                    values[name, f"{search}, {measure}"] = Value(
                        best.mean(measure),
                        mean,
                        2 if measure == "accuracy" else 1,
                        spread=best.spread(measure),
                        mark="; ".join(marks),
                        apart=f"searches side by side, with at most {protocol.MODMOD_RULES} rules",
                        number=f"{name} {measure}",
                    )
        note = (
            f"`jaxrules.ssrl.published`, Algorithm 4 with ModMod, and beam search, both with at most "
            f"{protocol.MODMOD_RULES} rules, each at the penalty with its best mean test accuracy. "
            "The permutation of literals and the start of ModMod, on which the paper is silent, are "
            "ours. In brackets the paper's SSRL."
        )
        columns = [f"{search}, {measure}" for search in (MODMOD, BEAM) for measure in measures]
        return ComparisonTable(
            "The paper's own search (ModMod) beside beam search", there, columns, values,
            corner="data", note=note,
        )  # fmt: skip

    return table


def _best_penalty(rows: Rows) -> Rows:
    """The folds of the penalty with the best mean accuracy."""
    found = [rows.where(literal_penalty=penalty) for penalty in published.PENALTIES]
    return max(found, key=lambda part: part.mean("accuracy") or 0.0)


def variant_table(name: str) -> Callable[[Results], ComparisonTable]:
    """What raises the accuracy on a set."""

    def table(results: Results) -> ComparisonTable:
        columns = ("test accuracy", "training accuracy", "rules", "literals", "CPU seconds")
        measures = ("accuracy", "training_accuracy", "rules", "literals", "cpu_seconds")
        printed = (published.ACCURACY[name]["SSRL"], published.SIZES[name]["SSRL"])
        paper = dict(
            zip(
                ("accuracy", "rules", "literals"),
                (mean for part in printed for mean, _ in part),
                strict=True,
            )
        )
        ours = results[variants].where(data=name)
        values: dict[tuple[str, str], Value | str] = {}
        there = [variant for variant in protocol.VARIANTS[name] if ours.where(variant=variant)]
        for variant in there:
            rows = ours.where(variant=variant)
            for column, measure in zip(columns, measures, strict=True):
                digits = 2 if "accuracy" in measure else 1
                values[variant, column] = Value(
                    rows.mean(measure),
                    paper.get(measure),
                    digits,
                    apart="a variant, to see what makes a difference",
                    number=f"{name} {measure}",
                )
        folds = len(ours.values("fold"))
        note = (
            f"Means over {folds} fold{'s' * (folds != 1)}; every row changes what it says of the "
            "first. CPU seconds "
            "with compilation."
        )
        return ComparisonTable(f"What {name} needs", there, columns, values, note=note)

    return table


def gas_table(results: Results) -> ComparisonTable:
    """Both files, as six classes and each against the rest; not counted."""
    values: dict[tuple[str, str], Value | str] = {}
    rows = results[gas]
    for row in rows.values("task"):
        for file in rows.values("file"):
            part = rows.where(task=row, file=file)
            size = f"{part.mean('rules') or 0:.1f} rules, {part.mean('literals') or 0:.1f} literals"
            values[str(row), str(file)] = Value(
                part.mean("accuracy"), None, 2, spread=part.spread("accuracy"), mark=size
            )
    note = (
        "Not the paper's data, and no agreement is claimed (its SSRL: 98.63 with 10.9 rules and "
        "27.1 literals, on two "
        "classes that it does not name): the raw file lacks batches 7 and 10; the other one has "
        "all rows, but was "
        "standardised within every batch, which removes the drift between batches."
    )
    columns = tuple(map(str, rows.values("file")))
    return ComparisonTable("gas", tuple(map(str, rows.values("task"))), columns, values, note=note)


def figure_4(results: Results, canvas: Canvas) -> Section:
    ours, theirs = results[times], results[peers.peers]
    names = [str(name) for name in ours.values("data")]
    if not names:
        return Section()
    figure, axes = canvas.subplots(1, len(names))
    tables = []
    for axis, name in zip(axes[0], names, strict=True):
        part = ours.where(data=name)
        features = [int(n) for n in part.values("features")]
        means = [part.where(features=n).mean("cpu_seconds") or 0.0 for n in features]
        axis.plot(
            part.column("features"),
            part.column("cpu_seconds"),
            ".",
            color="tab:gray",
            label="SSRL, one fit",
        )
        axis.plot(features, means, "o-", color="tab:blue", label="SSRL, mean")
        for method, style in (("CLASSY", "s--C1"), ("SBRL", "^:C2")):
            done = [row for row in theirs.where(data=name, method=method) if "cpu_seconds" in row]
            at = sorted({row["features"] for row in done})
            axis.plot(
                at, [Rows(done).where(features=n).mean("cpu_seconds") for n in at], style,
                label=method if done else None,
            )  # fmt: skip
        axis.set(xlabel="binary features", ylabel="CPU seconds", title=name, yscale="log")
        axis.legend(fontsize="small")
        slope, start = np.polyfit(features, means, 1) if len(features) > 1 else (0.0, means[0])
        values: dict[tuple[str, str], Value | str] = {}
        for n, mean in zip(features, means, strict=True):
            found = part.where(features=n)
            values[str(n), "SSRL"] = Value(
                mean,
                published.WDBC_SECONDS.get(n) if name == "WDBC" else None,
                2,
                mark=_size_of(found),
                apart="seconds on another machine",
                kind="time",
            )
            values[str(n), "straight line"] = Value(float(start + slope * n), None, 2)
            for method in peers.ENVIRONMENTS:
                values[str(n), method] = _seconds_of(
                    theirs.where(data=name, features=n, method=method)
                )
        tables.append(
            ComparisonTable(
                f"{name}: CPU seconds of a fit",
                tuple(map(str, features)),
                ("SSRL", "straight line", *peers.ENVIRONMENTS),
                values,
                corner="features",
            )
        )
    text = (
        "A random part of the binary features, the same for every method and size of a repetition. "
        "In square brackets rules without the default, and the accuracy on the same rows. SSRL has "
        "at most ten rules and is the mean of five repetitions; CLASSY (rulelist) and SBRL "
        "(pysbrl), as their programs run here, one at a time in environments of their own, have "
        "the first. CLASSY has its defaults, as in the paper, and SBRL rules of at most two items, "
        "a support of 0.001, and 30 chains of 30000 steps, the program's defaults; the paper names "
        "no setting of this figure. The program rounds the support down to whole per cents, so "
        "that every pair of items is a candidate that some row has, and writes the rows of every "
        f"candidate to a file: more than {peers.MOST_GIGABYTES:g} GB is not tried. On gas "
        "both are asked for at the smallest number of features, with --slow at all. The paper's "
        "curves of both on gas lie between 500 and 1200 seconds, those of SSRL on WDBC between 4 "
        "and 20, on another machine: shapes compare, not seconds. Our gas is the standardised "
        "file, the class of the first row against the rest."
    )
    return Section(text, tables, [canvas.save(figure, "figure_4")])


def _size_of(rows: Rows) -> str:
    """Rules and accuracy, means over these fits."""
    return f"{rows.mean('rules') or 0:.1f} rules, {rows.mean('accuracy') or 0:.1f} %"


def _seconds_of(rows: Rows) -> Value | str:
    """CPU seconds of a peer, or why there are none."""
    if (seconds := rows.mean("cpu_seconds")) is not None:
        return Value(seconds, None, 2, mark=_size_of(rows))
    for row in rows:
        if "more_than" in row:
            return f"not finished after {row['more_than']} s"
        return f"not run [{row['candidates']} candidates, {row['gigabytes']:.1f} GB]"
    return "not run"


def printed(name: str, paper: Sequence[str]) -> Callable[..., Section]:
    """Table 8 or 9: both lists on all rows of our file."""

    def show(results: Results, canvas: Canvas) -> Section:
        rows = results[lists].where(data=name)
        if not len(rows):
            return Section()
        ours = [str(row["line"]) for row in rows]
        numbers = [str(k + 1) for k in range(max(len(ours), len(paper)))]
        values: dict[tuple[str, str], Value | str] = {}
        for column, lines in (("ours", ours), ("paper", paper)):
            values |= {(number, column): line for number, line in zip(numbers, lines, strict=False)}
        accuracy = [100 * rows[0][part] / rows[0]["n"] for part in ("right", "paper_right")]
        values["accuracy on all rows", "ours"] = Value(accuracy[0], None, 2)
        values["accuracy on all rows", "paper"] = Value(accuracy[1], None, 2)
        setting = ", ".join(f"{option} {value}" for option, value in protocol.LISTS[name].items())
        cuts = (
            " and the k/9 quantiles, <= (a cut point is the next number above)"
            if name == "iris"
            else ""
        )
        note = f"Ours with {setting}{cuts}. The paper's list as printed, on the same rows."
        return Section(
            tables=[
                ComparisonTable(
                    name, [*numbers, "accuracy on all rows"], ("ours", "paper"), values, note=note
                )
            ]
        )

    return show


def summary(results: Results) -> str:
    """On how many sets accuracy and size are the paper's, and on how many the accuracy is lower."""
    lines = []
    for column in (*INSIDE, BEST):
        found = {name: chosen(results, name)[column] for name in (*BINARY, *MULTI)}
        done = [name for name, rows in found.items() if rows]
        if not done:
            continue
        kept = {
            measure: {name for name in done if _as_the_paper(found[name], name, measure)}
            for measure in ("accuracy", "rules", "literals")
        }
        good = kept["accuracy"] & kept["rules"]
        accuracies = {name: (found[name], *published.ACCURACY[name]["SSRL"][0]) for name in done}
        below = [
            name
            for name, (rows, mean, _) in accuracies.items()
            if (rows.mean("accuracy") or 0) < mean
        ]
        clearly = [
            name
            for name, (rows, mean, spread) in accuracies.items()
            if (z_of(rows, "accuracy", mean, spread) or 0) < -2
        ]
        missed = ", ".join(name for name in done if name not in good & kept["literals"])
        lines.append(
            f"{column}: at most one standard deviation below the paper's accuracy with at most the "
            "paper's mean plus one standard deviation of rules and of literals on "
            f"{len(good & kept['literals'])} of {len(done)} sets, of rules alone on {len(good)}"
            + (f"; not on {missed}. " if missed else ". ")
            + f"The mean accuracy is below the paper's on {len(below)} of {len(done)} sets, by more "
            f"than two standard errors on {len(clearly)}{': ' * bool(clearly)}{', '.join(clearly)}."
        )
    return "\n\n".join(lines) or "No set is measured."


def _as_the_paper(rows: Rows, name: str, measure: str) -> bool:
    """Whether a mean is the paper's, or better, but for its standard deviation."""
    if measure == "accuracy":
        mean, spread = published.ACCURACY[name]["SSRL"][0]
        return (rows.mean(measure) or 0) >= mean - spread
    mean, spread = published.SIZES[name]["SSRL"][measure == "literals"]
    return (rows.mean(measure) or 0) <= mean + spread


EXHIBITS = (
    Exhibit(
        "table",
        4,
        "Accuracy, two classes",
        (inside, every, modmod, variants, gas, peers.folds),
        accuracies(
            "Accuracy in per cent",
            BINARY,
            programs_table(BINARY, ("accuracy",)),
            modmod_table(BINARY),
            variant_table("magic"),
            gas_table,
        ),
    ),
    Exhibit(
        "table",
        5,
        "Accuracy, many classes",
        (inside, every, modmod, variants, peers.folds),
        accuracies(
            "Accuracy in per cent",
            MULTI,
            programs_table(MULTI, ("accuracy",)),
            modmod_table(MULTI),
            variant_table("iris"),
        ),
    ),
    Exhibit(
        "table",
        6,
        "Rules and literals, two classes",
        (inside, every, peers.folds),
        sizes("Rules, literals", BINARY),
    ),
    Exhibit(
        "table",
        7,
        "Rules and literals, many classes",
        (inside, every, peers.folds),
        sizes("Rules, literals", MULTI),
    ),
    Exhibit("figure", 4, "Seconds by number of features", (times, peers.peers), figure_4),
    Exhibit("table", 8, "A list for COMPAS", (lists,), printed("COMPAS-binary", published.TABLE_8)),
    Exhibit("table", 9, "A list for iris", (lists,), printed("iris", published.TABLE_9)),
)
