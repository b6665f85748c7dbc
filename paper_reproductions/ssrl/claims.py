"""What the paper says of SSRL, weighed by the archived folds.

Ours is jaxrules' SSRL with beam search, its settings chosen in the training rows of every fold by
the best inner accuracy. The programs of others are not run here: their numbers are the paper's,
means and standard deviations of ten folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from paper_reproductions import claims
from paper_reproductions.claims import Comparison
from paper_reproductions.framework import Claim, Results, Rows
from paper_reproductions.ssrl import exhibits, peers, protocol, published

LISTS, SETS = ("SBRL", "CORELS*", "CLASSY"), ("IDRS", "RIPPER")
BIG = 1.0
"""Points of accuracy that are a big margin."""
MOST = 4
"""Of the six sets of two classes."""
LINEAR = 0.5
"""How far from 1 the power of the number of features may be in a roughly linear time."""


def folds(results: Results, name: str, choice: str = protocol.ACCURATE) -> Rows:
    """Our ten folds of a set."""
    return results[exhibits.inside].where(data=name, choice=choice)


def _printed(name: str, method: str, measure: str) -> published.Number | None:
    """Mean and deviation in the paper's tables, if it has them."""
    table = published.ACCURACY if measure == "accuracy" else published.SIZES
    cell = table[name].get(method)
    return cell[measure == "literals"] if cell else None


def against(
    results: Results,
    names: Sequence[str],
    methods: Sequence[str],
    measures: Sequence[str],
    margin: float = 0.0,
    choice: str = protocol.ACCURATE,
) -> list[Comparison]:
    """Ours minus the printed numbers of others: accuracies higher by the margin, sizes smaller."""
    found = []
    for name in names:
        rows = folds(results, name, choice)
        for method in methods:
            for measure in measures:
                printed = _printed(name, method, measure)
                if printed is not None and len(rows):
                    estimate = claims.against_printed(
                        rows.column(measure), *printed, protocol.FOLDS
                    )  # fmt: skip
                    side = {"above": margin} if measure == "accuracy" else {"below": -margin}
                    what = f"{name}, {method}, {measure}"
                    found.append(Comparison(what, estimate, form="+.1f", **side))
    return found


def highest(
    results: Results, names: Sequence[str], choice: str = protocol.ACCURATE
) -> list[Comparison]:
    """Our accuracy minus that of the best of the others."""
    return [
        one
        for name in names
        for one in against(results, [name], [best_of_others(name)], ["accuracy"], choice=choice)
    ]


def best_of_others(name: str) -> str:
    """The other method with the highest printed accuracy."""
    others = {
        method: cell[0][0] for method, cell in published.ACCURACY[name].items() if method != "SSRL"
    }
    return max(others, key=others.__getitem__)


def _in_the_paper(names: Sequence[str]) -> str:
    """On which of these sets the paper's own table has a mean as high as SSRL's."""
    table = published.ACCURACY
    reached = [
        f"{name} ({best})"
        for name in names
        if table[name][best := best_of_others(name)][0][0] >= table[name]["SSRL"][0][0]
    ]
    return f" The paper's own table has a mean as high as SSRL's on {', '.join(reached) or 'none'}."


def _by_default(names: Sequence[str]) -> Callable[[Results], str]:
    """The same with jaxrules' default choice of settings."""

    def beside(results: Results) -> str:
        found = highest(results, names, protocol.SHORTEST)
        number = claims.counts(found)
        return (
            f"(With settings by one standard error, jaxrules' default: shown in {number['shown']}, "
            f"against in {number['against']} of {len(found)}.{_in_the_paper(names)})"
            if found
            else ""
        )

    return beside


# Fig. 4


def faster(results: Results) -> list[Comparison]:
    """CPU seconds of our fits over those of one run of CLASSY and of SBRL, with the most features
    that they have finished.
    """
    ours, theirs = results[exhibits.times], results[peers.peers]
    found = []
    for name in ours.values("data"):
        for method in peers.ENVIRONMENTS:
            done = [r for r in theirs.where(data=name, method=method) if "cpu_seconds" in r]
            if not done:
                continue
            most = max(row["features"] for row in done)
            other = Rows(done).where(features=most).mean("cpu_seconds") or np.nan
            seconds = ours.where(data=name, features=most).column("cpu_seconds")
            if len(seconds):
                what = f"{name}, {most} features, {method}"
                estimate = claims.geometric_mean(seconds / other)
                found.append(Comparison(what, estimate, below=1.0, form=".3f"))
    return found


def linear(results: Results) -> list[Comparison]:
    """The power of the number of features with which CPU seconds grow, by repetition."""
    rows = results[exhibits.times].where(data="WDBC")
    powers = []
    for repeat in rows.values("repeat"):
        part = rows.where(repeat=repeat)
        if len(part) > 2:
            x, y = np.log(part.column("features")), np.log(part.column("cpu_seconds"))
            powers.append(float(np.polyfit(x, y, 1)[0]))
    if not powers:
        return []
    limits = {"above": 1 - LINEAR, "below": 1 + LINEAR}
    return [Comparison("WDBC, power", claims.mean(powers), form=".2f", **limits)]


_MINUS = (
    "Ours (beam search, settings by inner cross-validation) minus the paper's number, Welch's "
    "interval over ten folds on each side"
)
_NOT_WDBC = tuple(name for name in exhibits.BINARY if name != "WDBC")

CLAIMS = (
    Claim(
        "SSRL achieves the highest classification accuracy on most binary datasets",
        "Section 6.2",
        "Table 4",
        f"{_MINUS} for the best of the others, per cent.",
        lambda results: highest(results, exhibits.BINARY),
        needed=MOST,
        beside=_by_default(exhibits.BINARY),
    ),
    Claim(
        "The proposed SSRL outperforms SBRL and CORELS by a big margin",
        "Section 6.2",
        "Table 4",
        f"{_MINUS}; a big margin: {BIG:g} point.",
        lambda results: against(results, exhibits.BINARY, LISTS[:2], ["accuracy"], BIG),
    ),
    Claim(
        "the proposed SSRL achieves the highest classification accuracy on all multi-class datasets",
        "Section 6.2",
        "Table 5",
        f"{_MINUS} for the best of the others, per cent.",
        lambda results: highest(results, exhibits.MULTI),
        beside=_by_default(exhibits.MULTI),
    ),
    Claim(
        "except dataset WDBC, the proposed SSRL generates much less literals than rule set based "
        "models IDRS and RIPPER",
        "Section 6.3",
        "Table 6",
        f"{_MINUS}.",
        lambda results: against(results, _NOT_WDBC, SETS, ["literals"]),
    ),
    Claim(
        "the rules learned by the proposed SSRL are more compact as compared with CLASSY, i.e. less "
        "rules and less literals involved",
        "Section 6.3",
        "Table 6",
        f"{_MINUS}, sets of two classes.",
        lambda results: against(results, exhibits.BINARY, ["CLASSY"], exhibits.SIZE),
    ),
    Claim(
        "SSRL requires much less training time than SBRL and CLASSY when the number of features is "
        "large",
        "Section 6.4",
        "Figure 4",
        "CPU seconds of jaxrules over those of one run of the others' programs here, with the most "
        "features that these finished.",
        faster,
    ),
    Claim(
        "SSRL achieves a roughly linear relationship between the training time and the data "
        "dimension",
        "Section 6.4",
        "Figure 4",
        f"The slope of log CPU seconds over log features, five draws; roughly linear: within "
        f"{LINEAR:g} of 1.",
        linear,
    ),
)
