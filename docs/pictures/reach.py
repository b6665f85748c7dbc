"""The picture of Table 10 of docs/measured/lire.md, drawn from it: how far the proof reaches.

    python docs/pictures/reach.py

The table is of `benchmarks/all_conjunctions.py --only reach --seconds 10`. Writes reach.svg beside
this file.
"""

import re
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt

PAGE = Path(__file__).parents[1] / "measured" / "lire.md"
SECONDS = 10
STYLES = {  # by `max_rules`: name, colour, marker
    "3": ("at most 3 rules", "#0072B2", "o"),
    "5": ("at most 5 rules", "#E69F00", "s"),
    "-": ("any number of rules", "#009E73", "^"),
}
LABELS = {  # of sets with a gap, from a mark, in points
    ("fico_binary", 531, 2.0): (-18, 7), ("tic_tac_toe", 1323, 1.09): (-12, 7),
    ("breast_cancer", 1419, 0.01): (-24, 8), ("breast_cancer", 2750, 0.95): (-20, -14),
    ("titanic", 2803, 0.27): (-12, -14), ("titanic", 11941, 1.1): (-16, -14),
    ("heart", 6428, 3.18): (-18, 8), ("boston", 7241, 29.05): (-17, 7),
    ("diabetes", 9172, 18.04): (-8, -15),
}  # fmt: skip


class Run(NamedTuple):
    """A row of the table; the gap is in percent, 0 if the optimum is proved."""

    name: str
    most: str
    listed: int
    seconds: float
    gap: float


def runs() -> list[Run]:
    table = PAGE.read_text("utf-8").split("*Table 10.")[1].split("\n\n")[1]
    found, name = [], ""
    for line in table.splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = cells[0].split(",")[0] or name
        gap = re.search(r"[\d.]+(?= %)", cells[8])
        listed, seconds = int(cells[5].replace(" ", "")), float(cells[7])
        found.append(Run(name, cells[3], listed, seconds, float(gap[0]) if gap else 0.0))
    return found


def drawn(found: list[Run]) -> None:
    plt.rcParams.update({"font.size": 8.5, "svg.hashsalt": "jaxrules"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.5), layout="constrained")
    for most, (name, colour, marker) in STYLES.items():
        left.plot([], [], marker, color=colour, label=name, markersize=5)
        for run in found:
            if run.most == most:
                how = {"color": colour, "markersize": 5, "mew": 1.2}
                how["markerfacecolor"] = "none" if run.gap else colour
                left.plot(run.listed, run.seconds, marker, **how)
                if run.gap:
                    right.plot(run.listed, run.gap, marker, **how)
    left.axhline(SECONDS, color="0.5", linewidth=0.8, linestyle="--", zorder=0)
    left.text(110, SECONDS * 1.15, "the limit (hollow marks: not proved)", color="0.25")
    left.set(ylim=(0.2, 16), ylabel="CPU seconds", yticks=[0.3, 1, 3, 10])
    right.set(ylim=(0.007, 60), ylabel=f"gap after {SECONDS} CPU seconds (%)")
    right.set_yticks([0.01, 0.1, 1, 10])
    for (name, *spot), shift in LABELS.items():
        right.annotate(
            name, spot, xytext=shift, textcoords="offset points", color="0.25", fontsize=7.5
        )
    for ax in (left, right):
        ax.set(xscale="log", xlim=(100, 20000), xlabel="listed conjunctions (log scale)")
        ax.set_yscale("log")
        ax.set_xticks([100, 1000, 10000])
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    left.legend(loc="lower right", frameon=False, borderpad=0)
    place = Path(__file__).with_suffix(".svg")
    figure.savefig(place, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    drawn(runs())
