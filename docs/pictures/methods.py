"""The figures of the pages in docs/methods, made of the pages' examples.

    python docs/pictures/methods.py [NAME ...]

Writes NAME.svg beside this file; seconds each.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np

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


def glrm() -> None:
    data = jr.datasets.load("breast_cancer")
    penalties = [0.2, 0.15, 0.11, 0.08, 0.06, 0.045, 0.03]
    path = jr.glrm.path(data.X, data.y, rule_penalties=penalties, max_cut_points=4)
    jr.plots.coefficient_path(path, most=5)


def ssrl() -> None:
    data = jr.datasets.load("iris")
    X = {name: column for name, column in data.X.to_columns().items() if "petal" in name}
    jr.plots.decision_regions(jr.ssrl.fit(X, data.y, max_rules=4).model, X, data.y)


def exact_lists() -> None:
    data = jr.datasets.load("iris")
    settings = {"max_rules": 2, "max_length": 1, "max_cut_points": 4, "within": 0.05}
    settings["literal_penalty"] = 1.0
    near = jr.exact_list.near_optimal(data.X, data.y, **settings)
    order = np.argsort(near.occurrences)
    names = [near.conditions.describe(k) for k in order]
    ax = plt.subplots(layout="constrained")[1]
    ax.barh(names, near.occurrences[order] / len(near), color=jr.plots.BLUE)
    ax.set_xlabel(f"share of the {len(near)} lists in which the condition occurs")


def drnet() -> None:
    X = np.random.default_rng(0).uniform(size=(400, 2))
    y = ((X[:, 0] > 0.6) & (X[:, 1] < 0.5)) | ((X[:, 0] < 0.5) & (X[:, 1] > 0.6))
    jr.plots.decision_regions(jr.drnet.fit(X, y).model, X, y)


def lltboost() -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = np.where(2 * X[:, 0] - X[:, 1] > 0.5, "yes", "no")
    jr.plots.decision_regions(jr.lltboost.fit(X, y, max_rules=2).model, X, y)


def ltrnet() -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.where(X[:, 0] + X[:, 1] > 0.5, "a", np.where(X[:, 0] > X[:, 1], "b", "c"))
    jr.plots.decision_regions(jr.ltrnet.fit(X, y, max_rules=4, seed=0).model, X, y)


def paths() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = X @ [2.0, 0.0, -1.0, 0.5, 0.0] + rng.normal(size=100)
    jr.plots.coefficient_path(jr.paths.fit(X, y, steps=4).model)


FIGURES = {
    figure.__name__: figure
    for figure in (boosting, drnet, exact_lists, glrm, lire, lltboost, ltrnet, paths, rulefit, ssrl)
}

if __name__ == "__main__":
    plt.rcParams.update(
        {"font.size": 8.5, "svg.hashsalt": "jaxrules", "figure.figsize": (5.6, 3.2)}
    )
    for name in sys.argv[1:] or FIGURES:
        FIGURES[name]()
        place = Path(__file__).with_name(f"{name}.svg")
        plt.savefig(place, metadata={"Date": None}, facecolor="white")
        plt.close("all")
