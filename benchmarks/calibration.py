"""Do the probabilities of each learner's defaults agree with test rows? The picture of defaults.md.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/calibration.py

Every learner is fitted without options to at most 800 rows of the 25 sets of two classes of
benchmarks/defaults.py, one split each. Test rows are pooled in ten bins of the probability of the
second class; every set has the same total weight. Noisy sets are those on which the L1 regression
leaves more than .8 of the constant's loss. Prints the mean difference between probability and share
(weighted by the bins), draws docs/pictures/calibration.svg and keeps what it measured in
results/calibration.json.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np

import jaxrules as jr

sys.path.insert(0, str(Path(__file__).parent))
from defaults import CLASSES, RESULTS, design, linear, split

LEARNERS = (
    "boosting", "lire", "rulefit", "glrm", "lltboost", "ltrnet", "ssrl", "exact_list", "drnet",
)  # fmt: skip
BINS = 10
KINDS = {"clean": ("#0072B2", "o"), "noisy": ("#D55E00", "s")}
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "calibration.svg"
MEASURED = RESULTS.with_name("calibration.json")


def binned(said: np.ndarray, truth: np.ndarray) -> list[list[float]]:
    """Sums over the rows of each bin: weight, probability, label, and squared weight."""
    bins = np.minimum((BINS * said).astype(int), BINS - 1)
    share = np.full(len(said), 1 / len(said))
    sums = share, share * said, share * truth, share**2
    return [np.bincount(bins, values, BINS).tolist() for values in sums]


def cell(name: str) -> dict[str, Any]:
    """The risk of the L1 regression on a set, and the bins of every learner."""
    train, test = split(name, 0)
    classes = np.unique(train.y)
    truth = (test.y == classes[1]).astype(float)
    by_linear = linear(train).predict_proba(design(train, test))[:, 1]
    constant = np.mean(train.y == classes[1])
    found: dict[str, Any] = {"risk": loss(by_linear, truth) / loss(constant, truth)}
    for learner in LEARNERS:
        model = getattr(jr, learner).fit(train.X, train.y, missing="own_category").model
        found[learner] = binned(np.asarray(jr.predict_proba(model, test.X))[:, 1], truth)
    return found


def loss(said: np.ndarray | float, truth: np.ndarray) -> float:
    return float(-np.mean(np.log(np.clip(np.where(truth, said, 1 - np.asarray(said)), 1e-6, 1))))


def measured() -> dict[str, dict[str, Any]]:
    cells = json.loads(MEASURED.read_text()) if MEASURED.is_file() else {}
    for name in CLASSES:
        if name not in cells:
            cells[name] = cell(name)
            MEASURED.parent.mkdir(exist_ok=True)
            MEASURED.write_text(json.dumps(cells))
    return cells


def drawn(cells: dict[str, dict[str, Any]]) -> None:
    plt.rcParams.update({"font.size": 8.5, "svg.hashsalt": "jaxrules"})
    figure, grid = plt.subplots(
        3, 3, figsize=(6.4, 6.4), sharex=True, sharey=True, layout="constrained"
    )
    for learner, ax in zip(LEARNERS, grid.flat, strict=True):
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
        told = []
        for kind, (colour, marker) in KINDS.items():
            sets = [one for one in cells.values() if (one["risk"] > 0.8) == (kind == "noisy")]
            weight, said, truth, squares = np.sum([one[learner] for one in sets], axis=0)
            there = weight > 0.002 * weight.sum()
            weight, said, truth, squares = (a[there] for a in (weight, said, truth, squares))
            mean, share = said / weight, truth / weight
            error = np.sqrt(share * (1 - share) * squares) / weight
            ax.errorbar(
                mean, share, yerr=error, color=colour, marker=marker, markersize=3.5,
                linewidth=1.2, elinewidth=0.7, capsize=2, label=kind,
            )  # fmt: skip
            told.append(float(np.sum(weight * np.abs(mean - share)) / np.sum(weight)))
        print(learner, *(f"{kind} {off:.3f}" for kind, off in zip(KINDS, told, strict=True)))
        ax.set_title(f"jr.{learner}", fontsize=9)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    grid[0, 0].legend(frameon=False, loc="upper left")
    figure.supxlabel("predicted probability of the second class", fontsize=9)
    figure.supylabel("share of the second class among test rows", fontsize=9)
    figure.savefig(PICTURE, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    drawn(measured())
