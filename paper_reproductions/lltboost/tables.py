"""Tables 2, 3 and 4: complexity at a risk, risk at a complexity, and time; and what
the differences are due to.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

import jaxrules as jr
from paper_reproductions.framework import Exhibit, Results, Rows
from paper_reproductions.lltboost import protocol, published, scores
from paper_reproductions.lltboost.published import Interval
from paper_reproductions.sections import Canvas, ComparisonTable, Quoted, Section, Value

LETTER = "LTRNet, to the letter"
PAPER = {"TGB": "tgb", "DRNet": "drnet", LETTER: "ltrnet", "LLTBoost": "lltboost"}
"""The paper's methods, as columns of its tables."""
SHOWN = (*PAPER, "LTRNet")
"""The paper's methods, and the LTRNet of jaxrules, which is another and stands beside them
without the paper's numbers.
"""
STEPS = (
    "TGB",
    "TGB, tolerance",
    "TGB, corrective",
    "TGB, corrective, tolerance",
    "LLTBoost, single columns",
    "LLTBoost",
)
"""From the baseline to the method: what is added one after the other."""
EXACT = ("TGB, exact search", "TGB, all, exact search")
OPEN = (
    *(name for name in protocol.READINGS if name != "LLTBoost, single columns"),
    protocol.RIDGE,
)
RISKS = "LLTBoost's risk with 1, 2, 3, 5, 10 rules"
SHARES = {"complexity": 0.4, "risk": 0.3}
"""Order statistics beside the median: the 4th and the 7th of ten, the 3rd and the 8th."""
ROUNDING = {"complexity": 0.0, "risk": 0.005}
MOST_ERROR = 0.25
"""Of the paper's median: where the difference has a larger standard error, its z says nothing."""
ENDLESS = "the paper's median is infinite"
UNCERTAIN = (
    "the repetitions differ too much: a standard error above a quarter of the paper's median"
)
TARGETS = (
    ("complexity at the risk target", published.COMPLEXITY, "risk"),
    ("at that of the 0/1 loss", published.ERROR_COMPLEXITY, "error"),
    ("risk at the complexity target", published.RISK, "risk"),
    ("0/1 loss at it", published.ERROR, "error"),
)
"""Of Tables 2 and 3: the paper's numbers, and what is measured."""
DROPPED = f"rule below {protocol.SMALL_WEIGHT:.0%} of the largest weight"
SIGMOID = "the network's own output"
DEFAULT_RIDGE = "the default ridge"
"""Variants of LTRNet, DRNet and LLTBoost."""
BOUNDS = "order statistics, shown beside their median"


def _if_any(name: str, rows: Rows) -> dict[str, Rows]:
    return {name: rows} if rows else {}


class Measured:
    """What was measured on a data set."""

    def __init__(self, results: Results, name: str) -> None:
        self.name = name
        self.rows = Rows(row for part in protocol.ALL for row in results[part].where(data=name))
        self.more = results[protocol.more].where(data=name)
        cuts, ties = (results[part].where(data=name) for part in (protocol.cuts, protocol.ties))
        rounded = results[protocol.rounded].where(data=name)
        self.variants: dict[str, dict[str, Rows]] = {
            "TGB": {
                **{
                    f"{number} cut points": cuts.where(cuts=number)
                    for number in cuts.values("cuts")
                },
                **{
                    f"the {first} side first": ties.where(first=first)
                    for first in ties.values("first")
                },
            },
            LETTER: {
                f"steepness {a:g}" + (f", no {DROPPED}" if dropped else ""): part
                for a in rounded.values("steepness")
                for dropped in (0, 1)
                if (part := rounded.where(steepness=a, dropped=dropped))
            },
            "DRNet": _if_any(SIGMOID, results[protocol.own_output].where(data=name)),
            "LLTBoost": _if_any(DEFAULT_RIDGE, results[protocol.ridge].where(data=name)),
        }
        """By the method, and by how they differ from it."""

    @functools.cache  # noqa: B019 (as many objects as data sets)
    def of(self, method: str) -> Rows:
        found = (variants[method] for variants in self.variants.values() if method in variants)
        return next(found, None) or self.rows.where(method=method)

    def complexities(self, method: str, target: float, measure: str = "risk") -> list[float]:
        """The smallest complexity at this risk, per repetition."""
        return scores.per_repetition(
            self.of(method), lambda rows: scores.complexity_at(rows, target, measure)
        )

    def risks(self, method: str, target: float, measure: str = "risk") -> list[float]:
        """The risk at this complexity, per repetition."""
        return scores.per_repetition(
            self.of(method), lambda rows: scores.risk_at(rows, target, measure)
        )

    def all_rows(self, method: str) -> Rows:
        """Of a method with one setting: the repetitions of the tables, and those beyond."""
        return Rows([*self.of(method), *self.more.where(method=method)])

    def all_complexities(self, method: str, target: float, measure: str = "risk") -> list[float]:
        """`complexities` in all of them."""
        return scores.per_repetition(
            self.all_rows(method), lambda rows: scores.complexity_at(rows, target, measure)
        )

    def all_risks(self, method: str, target: float, measure: str = "risk") -> list[float]:
        """`risks` in all of them."""
        return scores.per_repetition(
            self.all_rows(method), lambda rows: scores.risk_at(rows, target, measure)
        )

    def risks_by_rules(self, method: str) -> dict[int, tuple[float, float]]:
        """Mean and standard deviation over all repetitions, by the number of
        rules, 1, 2, 3, 5 and 10.
        """
        both = self.all_rows(method)
        parts = {size: both.where(size=size) for size in (1, 2, 3, 5, 10)}
        return {
            k: (rows.mean("risk") or 0.0, rows.spread("risk") or 0.0)
            for k, rows in parts.items()
            if len(rows)
        }

    def own_risk_target(self) -> float | None:
        """The mean risk of our TGB."""
        return scores.mean_risk(self.of("TGB"), "risk")


def _number(name: str, method: str, kind: str) -> str:
    """A number of Table 2 or 3, of squared or log loss."""
    return f"{kind} {name} {method}"


def measured_sets(results: Results) -> list[Measured]:
    return [Measured(results, name) for name in protocol.sets(results.settings)]


def _few(results: Results) -> str:
    """A warning where medians are of fewer repetitions than the paper's."""
    repeats = results.settings.first_folds(published.REPEATS, quick=3)
    if len(repeats) == published.REPEATS:
        return ""
    return (
        f"Ours are medians of {len(repeats)} of the ten repetitions: a first comparison, as single "
        "repetitions differ "
        "by as much as many of the differences below."
    )


def _shown(
    title: str,
    names: Sequence[str],
    columns: Sequence[str],
    values: Mapping[tuple[str, str], Value | str],
    note: str = "",
) -> list[ComparisonTable]:
    """A table by data set of what was measured: without empty rows and columns;
    none if all of it is empty.
    """
    rows = [name for name in names if any((name, column) in values for column in columns)]
    there = [column for column in columns if any((name, column) in values for name in names)]
    return [ComparisonTable(title, rows, there, values, corner="data", note=note)] if rows else []


def compared(
    values: Sequence[float], paper: Interval | None, kind: str, method: str, reason: str = ""
) -> Value | str:
    """Our median beside the paper's, by the rule that the protocol of this reproduction states."""
    digits = 1 if kind == "complexity" else 3
    ours = scores.interval(values, SHARES[kind]) if values else None
    spread = (
        f"{ours[0]:.{digits}f} to {ours[2]:.{digits}f}"
        if ours and len(values) > 1
        else "one repetition"
    )
    if paper is None:
        return f"{ours[1]:.{digits}f} [{spread}]" if ours else "not run"
    tolerance, apart, z = None, "", math.nan
    if ours is None:
        apart = "not run"
    elif math.isinf(paper[1]):
        apart = ENDLESS
    elif len(values) == 1:
        apart = "a single repetition"
    elif method == "LLTBoost":
        tolerance = ROUNDING[kind]
    else:
        z, error = scores.z_of(ours, paper, SHARES[kind], len(values), published.REPEATS)
        if error > MOST_ERROR * paper[1]:
            apart = UNCERTAIN
        else:
            tolerance = max(2 * error, ROUNDING[kind])
    if not math.isnan(z):
        spread = f"z {z:+.1f}; {spread}"
    return Value(
        ours[1] if ours else None,
        paper[1],
        digits=digits,
        mark=_bounds(spread if ours else "", paper),
        tolerance=tolerance,
        only="above" if method == "LLTBoost" else None,
        reason=reason,
        apart=apart,
    )


def _bounds(ours: str, paper: Interval) -> str | Quoted:
    """Order statistics of ours and of the paper, which prints none above an infinite median."""
    low, median, high = (f"{value:g}" for value in paper)
    if median == "inf":
        printed, theirs = int(low != "inf"), f"paper's from {low}" if low != "inf" else ""
    else:
        printed, theirs = 2, f"paper's {low} to {high}"
    text = "; ".join(part for part in (ours, theirs) if part)
    return Quoted(text, printed, apart=BOUNDS) if printed else text


def _infinite(*tables: ComparisonTable) -> str:
    """How often ours is infinite where the paper's is."""
    found = [value for table in tables for value in table.printed() if value.apart == ENDLESS]
    if not found:
        return ""
    both = sum(value.ours == math.inf for value in found)
    return f"The paper's median is infinite {len(found)} times; ours is, too, in {both} of these."


def paper_table(
    title: str,
    measured: Iterable[Measured],
    paper: Mapping[str, published.Row],
    kind: str,
    score: Callable[[Measured, str, float], list[float]],
    reasons: Mapping[tuple[str, str], str],
) -> ComparisonTable:
    """A part of Table 2 or 3; reasons by data set and method."""
    values: dict[tuple[str, str], Value | str] = {}
    names = [one.name for one in measured if one.name in paper]
    for one in measured:
        row = paper.get(one.name)
        for method in protocol.applicable(SHOWN, one.name) if row else ():
            assert row is not None
            if method not in PAPER:
                values[one.name, method] = compared(
                    score(one, method, row.target), None, kind, method
                )
            else:
                printed = getattr(row, PAPER[method])
                reason = reasons.get((one.name, method), "")
                found = compared(score(one, method, row.target), printed, kind, method, reason)
                if isinstance(found, Value) and (
                    paper is published.COMPLEXITY or paper is published.RISK
                ):
                    found = replace(found, number=_number(one.name, method, kind))
                values[one.name, method] = found
        if row:
            values[one.name, "target"] = (
                Quoted(f"{row.target:g}", apart="a target, taken as it is", kind="setting")
                if paper is published.ERROR_COMPLEXITY
                else f"{row.target:g}"  # the others are beside a target of ours
            )
    return ComparisonTable(title, names, ("target", *SHOWN), values, corner="data")


# Table 2


def show_table_2(results: Results, canvas: Canvas) -> Section:
    measured = measured_sets(results)
    reasons = _reasons(measured, published.COMPLEXITY)
    at_risk = paper_table(
        "Smallest complexity at the risk target (squared or log loss)",
        measured,
        published.COMPLEXITY,
        "complexity",
        Measured.complexities,
        reasons,
    )
    at_error = paper_table(
        "Smallest complexity at the target of the 0/1 loss",
        measured,
        published.ERROR_COMPLEXITY,
        "complexity",
        lambda one, method, target: one.complexities(method, target, "error"),
        _reasons(measured, published.ERROR_COMPLEXITY, "error"),
    )
    text = f"""
        {_few(results)}

        Medians over the repetitions, in square brackets order statistics, of ten the 4th and the 7th as the paper has
        them; "inf" where a target is not reached. {_infinite(at_risk, at_error)} {_wins(at_risk)} TGB, LTRNet and DRNet
        are shown at the best of their settings, chosen by the test risk itself, as in the paper; LLTBoost has one
        setting, {protocol.LLTBOOST_SETTING}.
    """
    tables = (
        at_risk,
        at_error,
        _own_targets(measured),
        *_variants(measured),
        *_networks(measured),
        *_account(measured),
        *_readings(measured, "complexity"),
        *_luck(measured),
    )
    return Section(text, tables)


def _wins(table: ComparisonTable) -> str:
    """On how many sets LLTBoost is at or below the paper's number."""
    cells = [table.values.get((row, "LLTBoost")) for row in table.rows]
    found = [cell for cell in cells if isinstance(cell, Value) and cell.difference is not None]
    kept = sum(not cell.departs for cell in found)
    return (
        f"LLTBoost is at or below the paper's number on {kept} of {len(found)} sets."
        if found
        else ""
    )


def _own_target(name: str, risk: float) -> Value:
    return Value(
        risk,
        published.COMPLEXITY[name].target,
        digits=3,
        apart="our TGB's own risk, as a target",
        kind="setting",
        number=f"target risk {name}",
    )


def _own_targets(measured: Sequence[Measured]) -> ComparisonTable:
    """Targets from our own TGB, as the paper takes them from its own."""
    values: dict[tuple[str, str], Value | str] = {}
    for one in measured:
        target = one.own_risk_target()
        if target is None:
            continue
        values[one.name, "risk target"] = _own_target(one.name, target)
        for method in protocol.applicable(SHOWN, one.name):
            values[one.name, method] = compared(
                one.complexities(method, target), None, "complexity", method
            )
    return ComparisonTable(
        "Smallest complexity at the mean risk of our own TGB", [one.name for one in measured],
        ("risk target", *SHOWN), values, corner="data",
    )  # fmt: skip


def _variants(measured: Sequence[Measured]) -> list[ComparisonTable]:
    """TGB by what the paper leaves open: its numbers, and its own targets."""
    values: dict[tuple[str, str], Value | str] = {}
    labels = []
    for one in measured:
        variants = one.variants["TGB"]
        for variant in ("TGB", *variants) if variants else ():
            target = scores.mean_risk(one.of(variant), "risk")
            if target is None:
                continue
            label = f"{one.name}, {'all thresholds' if variant == 'TGB' else variant}"
            labels.append(label)
            for column, paper, measure in TARGETS:
                if row := paper.get(one.name):
                    kind = _kind(paper)
                    score = one.complexities if kind == "complexity" else one.risks
                    found = score(variant, row.target, measure)
                    values[label, column] = str(compared(found, row.tgb, kind, variant))
            values[label, "own risk target"] = _own_target(one.name, target)
            values[label, "complexity there"] = Value(
                float(np.median(one.complexities(variant, target))),
                digits=1,
                mark=f"paper {published.RISK[one.name].target:g}",  # a number of Table 3
            )
    columns = (*(column for column, _, _ in TARGETS), "own risk target", "complexity there")
    note = """Cut points are quantiles. No one number of them gives all of the paper's numbers. A side first: all
        thresholds, and of propositions worth the same, such as two complements at the start, the one of fewer or of
        more rows; otherwise both are followed."""
    return _shown(
        "TGB by what the paper leaves open", labels, columns, values, " ".join(note.split())
    )


def _networks(measured: Sequence[Measured]) -> list[ComparisonTable]:
    """LTRNet and DRNet by what the paper leaves open: its numbers of Tables 2 and 3."""
    found: list[ComparisonTable] = []
    for method, note in ((LETTER, LTRNET_NOTE), ("DRNet", DRNET_NOTE)):
        values: dict[tuple[str, str], Value | str] = {}
        labels = []
        for one in measured:
            variants = one.variants[method]
            for variant in (method, *variants) if variants else ():
                label = f"{one.name}, {variant}"
                labels.append(label)
                repeats = len(one.of(variant).values("repeat"))
                values[label, "repetitions"] = str(repeats)
                for column, paper, measure in TARGETS:
                    row = paper.get(one.name)
                    if row is None or (method == "DRNet" and measure == "error"):
                        continue
                    kind = _kind(paper)
                    score = one.complexities if kind == "complexity" else one.risks
                    scored = score(variant, row.target, measure)
                    printed = getattr(row, PAPER[method])
                    values[label, column] = str(compared(scored, printed, kind, variant))
        columns = ("repetitions", *(column for column, _, _ in TARGETS))
        title = f"{method} by what the paper leaves open"
        found += _shown(title, labels, columns, values, " ".join(note.split()))
    return found


LTRNET_NOTE = f"""
The paper rounds weight vectors at {protocol.SMALL_WEIGHT:.0%} of their largest entry, and does not say whether the
weights of the rules are one of them: "no {DROPPED}" drops these rules. It names no steepness.
"""
DRNET_NOTE = """
The paper does not say which probabilities of DRNet its log loss has. The network's own output is sigma(r - 1/2) for r
rules that hold, of those that are left when redundant ones are dropped; in the first row of a set it is that of shares
of the training rows, of other random draws of the networks.
"""


def _account(measured: Sequence[Measured]) -> list[ComparisonTable]:
    """From TGB to LLTBoost, one change after the other, at the paper's risk target."""
    values: dict[tuple[str, str], Value | str] = {}
    medians: dict[str, dict[str, float]] = {step: {} for step in STEPS}
    for one in measured:
        target = published.COMPLEXITY[one.name].target
        for step in (*STEPS, *EXACT):
            found = one.complexities(step, target)
            if found:
                values[one.name, step] = compared(found, None, "complexity", step)
                medians.setdefault(step, {})[one.name] = float(np.median(found))
    return _shown(
        "What the difference to TGB is due to: complexity at the paper's risk target",
        [one.name for one in measured],
        (*STEPS, *EXACT),
        values,
        _account_in_words(medians) + _proofs(measured),
    )


def _account_in_words(medians: Mapping[str, Mapping[str, float]]) -> str:
    """Ratios of complexities between steps, geometric means over the sets on
    which both reach the target.
    """

    def ratio(before: str, after: str) -> tuple[float, int]:
        pairs = [
            (medians[before][n], medians[after][n]) for n in medians[before] if n in medians[after]
        ]
        ratios = [b / a for a, b in pairs if math.isfinite(a) and math.isfinite(b)]
        return (scores.geometric_mean(ratios), len(ratios)) if ratios else (math.nan, 0)

    if not all(medians[step] for step in STEPS):
        return ""
    whole, sets = ratio("TGB", "LLTBoost")
    both, _ = ratio("TGB", "TGB, corrective, tolerance")
    oblique, _ = ratio("LLTBoost, single columns", "LLTBoost")
    last, _ = ratio("TGB, corrective, tolerance", "LLTBoost")
    return (
        f"Complexities, as geometric means over the sets on which both reach the target ({sets} "
        "for the first): "
        f"LLTBoost needs {whole:.2f} times TGB's. Of this, the tolerance for short rules and the "
        "corrective weights, "
        f"with the propositions of TGB, give {both:.2f} (the tolerance alone "
        f"{ratio('TGB', 'TGB, tolerance')[0]:.2f}, "
        f"corrective weights alone {ratio('TGB', 'TGB, corrective')[0]:.2f}); oblique propositions "
        f"{oblique:.2f}, by "
        f"LLTBoost with several columns per proposition against one, and {last:.2f} against TGB "
        "with both. TGB is at "
        "its best penalty per set and column; LLTBoost has no such choice."
    ) + (
        f" Exact instead of greedy search gives {ratio('TGB', EXACT[0])[0]:.2f}, and with "
        "tolerance and corrective "
        f"weights {ratio('TGB, corrective, tolerance', EXACT[1])[0]:.2f}."
        if all(medians.get(step) for step in EXACT)
        else ""
    )


def _proofs(measured: Sequence[Measured]) -> str:
    """What the exact searches are, and how many of their rules they proved to be the best."""
    proved = []
    for step in EXACT:
        rows = [(one.name, row) for one in measured for row in one.of(step)]
        longest = {
            (name, row["repeat"], row["oracle"]): row for name, row in rows
        }  # of every path, its last ensemble
        if rules := sum(row["size"] for row in longest.values()):
            without = sum(row["unproved"] for row in longest.values())
            proved.append(f'"{step}" {1 - without / rules:.0%} of {rules}')
    penalties = ", ".join(f"{penalty:g}" for penalty in protocol.QUICK_PENALTIES)
    return (
        f" The exact searches have {protocol.EXACT_CUT_POINTS} cut points per column and the "
        f"penalties {penalties}; "
        f'the greedy ones all thresholds and {len(published.TGB_PENALTIES)} penalties. "All" has '
        "tolerance and "
        f"corrective weights. Within {protocol.EXACT_SECONDS:g} seconds per rule on average, rules "
        "proved to be the "
        f"best: {', '.join(proved)}."
        if proved
        else ""
    )


def _readings(measured: Sequence[Measured], kind: str) -> list[ComparisonTable]:
    """Other readings of LLTBoost: complexity at the paper's risk target, or risk
    at its complexity target.
    """
    values: dict[tuple[str, str], Value | str] = {}
    for one in measured:
        row = (published.COMPLEXITY if kind == "complexity" else published.RISK)[one.name]
        score = one.complexities if kind == "complexity" else one.risks
        for name in OPEN:
            if found := score(name, row.target):
                values[one.name, name] = Value(
                    float(np.median(found)),
                    row.lltboost[1],
                    digits=1 if kind == "complexity" else 3,
                    apart="another reading of the method",
                    number=_number(one.name, "LLTBoost", kind),
                )
    return _shown(
        f"LLTBoost by what the paper leaves open: {kind} at the target",
        [one.name for one in measured],
        OPEN,
        values,
        "; ".join(
            f"{name}: {protocol.in_words(options, jr.lltboost.Options)}"
            for name, options in protocol.OPEN_SETTINGS.items()
        )
        + ".",
    )


def _luck(measured: Sequence[Measured]) -> list[ComparisonTable]:
    """What a median of ten repetitions is worth."""
    values: dict[tuple[str, str], Value | str] = {}
    for one in measured:
        if not len(one.more):
            continue
        row = published.COMPLEXITY[one.name]
        found = one.all_complexities("LLTBoost", row.target)
        chance = scores.chance_of_median(found, published.REPEATS, row.lltboost[1])
        low, median, high = scores.interval(found, SHARES["complexity"])
        values[one.name, "LLTBoost"] = Value(
            median,
            row.lltboost[1],
            digits=1,
            apart="more repetitions than the paper's",
            number=_number(one.name, "LLTBoost", "complexity"),
            mark=f"{low:g} to {high:g}; {len(found)} repetitions, {np.mean(np.isinf(found)):.0%} never; "
            f"a median of ten is above the paper's in {chance:.0%}",
        )
        risks = one.risks_by_rules("LLTBoost")
        values[one.name, RISKS] = ", ".join(
            f"{mean:.3f} ± {spread:.3f}" for mean, spread in risks.values()
        )
        values[one.name, "target"] = f"{row.target:g}"
    return _shown(
        "How much is luck: LLTBoost's complexity at the risk target over more repetitions",
        [one.name for one in measured],
        ("LLTBoost", "target", RISKS),
        values,
        note=f"The repetitions of the tables and further ones. {_enough(measured)}"
        "Where the risk stays within its standard deviation of the target while rules are added, "
        "the complexity at "
        "which it is reached jumps between a few propositions and many, and so does a median of "
        "ten.",
    )


def _enough(measured: Sequence[Measured]) -> str:
    """On how many sets LLTBoost's median over all repetitions is at or below the paper's."""
    there = [one for one in measured if len(one.more.where(method="LLTBoost"))]
    rows = [published.COMPLEXITY[one.name] for one in there]
    medians = [
        np.median(one.all_complexities("LLTBoost", row.target))
        for one, row in zip(there, rows, strict=True)
    ]
    kept = sum(median <= row.lltboost[1] for median, row in zip(medians, rows, strict=True))
    return (
        f"Over them LLTBoost's median is at or below the paper's on {kept} of {len(there)} sets. "
        if there
        else ""
    )


def _reasons(
    measured: Sequence[Measured], paper: Mapping[str, published.Row], measure: str = "risk"
) -> dict[tuple[str, str], str]:
    """By data set: of LLTBoost's median, whether ten repetitions may give it by chance, by the
    further ones; of all methods', which variants agree with the paper.
    """
    kind, found = _kind(paper), {}
    for one in measured:
        row = paper.get(one.name)
        if row is None:
            continue
        if len(one.more.where(method="LLTBoost")):
            score = one.all_complexities if kind == "complexity" else one.all_risks
            values = score("LLTBoost", row.target, measure)
            limit = row.lltboost[1] + ROUNDING[kind]
            chance = scores.chance_of_median(values, published.REPEATS, limit)
            found[one.name, "LLTBoost"] = (
                f"Over {len(values)} repetitions the median is {np.median(values):.3g}, and a "
                "median of ten drawn from "
                f"them is above the paper's in {chance:.0%} of the cases"
            ) + (
                ": by chance." if np.median(values) <= limit
                else ": more than chance, and unexplained."
            )  # fmt: skip
        for method, said in OPEN_IN.items():
            # What DRNet puts out changes its log loss alone.
            if method == "DRNet" and measure == "error":
                continue
            if nearest := _nearest(one, method, row, kind, measure):
                found[one.name, method] = f"{said} {nearest}."
    return found


OPEN_IN = {
    "TGB": "The paper leaves open how TGB searches: it is",
    LETTER: "The paper leaves open the steepness, and whether small weights are rounded: it is",
    "DRNet": "The paper leaves open which probabilities its log loss has: it is",
    "LLTBoost": f"LLTBoost has {protocol.LLTBOOST_SETTING}: it is",
}
"""What the variants of a method are for."""


def _nearest(one: Measured, method: str, row: published.Row, kind: str, measure: str) -> str:
    """The nearest two of the variants that agree with the paper, in words. What counts as agreement
    of the method itself must do for a variant of few repetitions, whose median is less certain.
    """
    score = one.complexities if kind == "complexity" else one.risks
    printed, judged = getattr(row, PAPER[method]), "LLTBoost" if method == "LLTBoost" else ""
    itself = compared(score(method, row.target, measure), printed, kind, judged or method)
    given = itself.tolerance if isinstance(itself, Value) else None
    most = math.inf if given is None else given
    tried = [
        (compared(score(v, row.target, measure), printed, kind, judged or v), v)
        for v in one.variants[method]
    ]
    agreeing = [
        (
            abs(value.difference or 0.0),
            f"{value.ours:.{value.digits}f} with {variant}{_of_few(one, variant)}",
        )
        for value, variant in tried
        if isinstance(value, Value)
        and value.tolerance is not None
        and not replace(value, tolerance=min(value.tolerance, most)).departs
    ]
    return " and ".join(text for _, text in sorted(agreeing)[:2])


def _of_few(one: Measured, variant: str) -> str:
    """How many repetitions a variant has, if fewer than the paper's."""
    repeats = len(one.of(variant).values("repeat"))
    return "" if repeats >= published.REPEATS else f" ({repeats} repetitions)"


def _kind(paper: Mapping[str, published.Row]) -> str:
    return "complexity" if paper in (published.COMPLEXITY, published.ERROR_COMPLEXITY) else "risk"


# Table 3


def show_table_3(results: Results, canvas: Canvas) -> Section:
    measured = measured_sets(results)
    at_complexity = paper_table(
        "Risk at the complexity target (squared or log loss)",
        measured,
        published.RISK,
        "risk",
        Measured.risks,
        _reasons(measured, published.RISK),
    )
    error = paper_table(
        "0/1 loss at the complexity target", measured, published.ERROR, "risk",
        lambda one, method, target: one.risks(method, target, "error"),
        _reasons(measured, published.ERROR, "error"),
    )  # fmt: skip
    steps: dict[tuple[str, str], Value | str] = {}
    for one in measured:
        for step in (*STEPS, *EXACT):
            found = one.risks(step, published.RISK[one.name].target)
            if found:
                steps[one.name, step] = compared(found, None, "risk", step)
    own: dict[tuple[str, str], Value | str] = {}
    for one in measured:
        target = one.own_risk_target()
        reached = [] if target is None else one.complexities("TGB", target)
        if not reached or math.isinf(np.median(reached)):
            continue
        limit = float(np.median(reached))
        own[one.name, "complexity target"] = Value(
            limit,
            published.RISK[one.name].target,
            digits=1,
            apart="our TGB's own complexity, as a target",
            kind="setting",
        )
        for method in protocol.applicable(SHOWN, one.name):
            own[one.name, method] = compared(one.risks(method, limit), None, "risk", method)
    names = [one.name for one in measured]
    text = f"""
        {_few(results)}

        The risk of the largest ensemble that is no more complex than the target; in square brackets order statistics,
        of ten repetitions the 3rd and the 8th. {_infinite(at_complexity, error)} {_wins(at_complexity)} On the 0/1
        loss: {_wins(error)}
    """
    tables = (
        at_complexity,
        error,
        ComparisonTable(
            "Risk at the complexity of our own TGB at its mean risk",
            names,
            ("complexity target", *SHOWN),
            own,
            corner="data",
        ),
        *_shown(
            "What the difference to TGB is due to: risk at the paper's complexity target",
            names,
            (*STEPS, *EXACT),
            steps,
            _proofs(measured),
        ),
        *_readings(measured, "risk"),
    )
    return Section(text, tables)


# Table 4


def show_table_4(results: Results, canvas: Canvas) -> Section:
    values: dict[tuple[str, str], Value | str] = {}
    measured = measured_sets(results)
    for one in measured:
        paper = dict(zip(PAPER, published.SECONDS[one.name], strict=True))
        for method in protocol.applicable(SHOWN, one.name):
            # Rows of one fit repeat its seconds; fits of the first repetition compile.
            fits = {(row["repeat"], row["oracle"]): row["seconds"] for row in one.of(method)}
            warm = {fit: seconds for fit, seconds in fits.items() if fit[0] > 0}
            values[one.name, method] = Value(
                float(np.median(list((warm or fits).values()))) if fits else None,
                paper.get(method),
                digits=3,
                mark="with what is compiled" if fits and not warm else "",
                apart="seconds on another machine",
                kind="time",
            )
        found = results[protocol.sizes].where(data=one.name)
        for name, printed in zip(("columns", "rows"), published.SIZES[one.name], strict=True):
            values[one.name, name] = Value(
                found.mean(name),
                printed,
                digits=0,
                apart="the size of the data set",
                kind="setting",
            )
    text = """
        Seconds of one fit by the clock (ten rules; all numbers of rules come from the same run), medians over
        repetitions and settings, without the first repetition, whose fits compile, where there are more. The machine
        has two cores, and other programs may have had their share; the paper's machine is not named.
    """
    names = [one.name for one in measured]
    return Section(
        text,
        (ComparisonTable("Seconds per fit", names, ("columns", "rows", *SHOWN), values, "data"),),
    )


_EXPERIMENTS = (
    protocol.boosting,
    protocol.more,
    protocol.networks,
    protocol.slow,
    protocol.cuts,
    protocol.ties,
    protocol.ridge,
    protocol.own_output,
    protocol.rounded,
)
EXHIBITS = (
    Exhibit("table", 2, "Complexity at a risk target", _EXPERIMENTS, show_table_2),
    Exhibit("table", 3, "Risk at a complexity target", _EXPERIMENTS, show_table_3),
    Exhibit(
        "table", 4, "Time", (protocol.boosting, protocol.networks, protocol.sizes), show_table_4
    ),
)
