"""The figures of the pages in docs/methods, made of the pages' examples.

    python docs/pictures/methods.py [NAME ...]

Writes NAME.svg beside this file; seconds each.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt

import jaxrules as jr


def lire() -> None:
    data = jr.datasets.load("breast_cancer")
    penalties = [0.1, 0.05, 0.02, 0.01, 0.005, 0.002]
    path = jr.lire.path(data.X, data.y, global_penalties=penalties, seed=0)
    jr.plots.support_path(path, data.X)


def boosting() -> None:
    data = jr.datasets.load("breast_cancer")
    fit = jr.boosting.fit(data.X, data.y, max_rules=4)
    jr.plots.waterfall(jr.explain(fit.model, data.X[19:20])[0])


def rulefit() -> None:
    data = jr.datasets.load("breast_cancer")
    path = jr.rulefit.path(data.X, data.y, l1_penalties=[0.3, 0.25, 0.2, 0.16, 0.13, 0.1, 0.08])
    jr.plots.coefficient_path(path, most=5)


FIGURES = {figure.__name__: figure for figure in (boosting, lire, rulefit)}

if __name__ == "__main__":
    plt.rcParams.update(
        {"font.size": 8.5, "svg.hashsalt": "jaxrules", "figure.figsize": (5.6, 3.2)}
    )
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name]()
        place = Path(__file__).with_name(f"{name}.svg")
        plt.savefig(place, metadata={"Date": None}, facecolor="white")
        plt.close("all")
