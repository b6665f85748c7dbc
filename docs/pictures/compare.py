"""The picture of the README and the site's home page: how much a short model explains.

    JAXRULES_DATA=/folder/with/manifest.json python docs/pictures/compare.py

Five-fold cross-validation on 3000 rows of the MAGIC telescope data (gamma rays or hadrons), log
loss against rules + conditions. Needs imodels (FIGS) and interpret (EBM, without pairs). Prints the
tables and writes compare.svg beside this file; about two minutes on one core.
"""

from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from imodels import FIGSClassifier
from interpret.glassbox import ExplainableBoostingClassifier

import jaxrules as jr

ROWS, FOLDS = 3000, 5
STYLES = {  # colour, marker, the labelled point, and (dx, dy) from there in points
    "jr.boosting": ("#0072B2", "o", 3, (-60, -8)),
    "jr.lire": ("#009E73", "s", 0, (5, 3)),
    "FIGS": ("#E69F00", "^", 2, (2, 8)),
    "CART": ("#CC79A7", "v", -1, (6, -4)),
}


def figs(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, FIGSClassifier]:
    sizes = (1, 2, 3, 4, 6, 8, 10, 13, 16, 20)
    return {str(m): FIGSClassifier(max_rules=m, random_state=seed).fit(X, y) for m in sizes}


def measured() -> dict[str, np.ndarray]:
    """The front of every method: complexity, log loss and its standard error."""
    data = jr.datasets.load("magic")
    rows = np.random.default_rng(0).permutation(len(data))[:ROWS]
    X, y = data.X[rows].numeric_matrix(), (data.y[rows] == np.unique(data.y)[-1]).astype(int)
    penalties = [0.05, 0.03, 0.02, 0.012, 0.008, 0.005, 0.003]
    named = {
        "jr.boosting": partial(jr.boosting.path, max_rules=30),
        "jr.lire": partial(jr.lire.path, global_penalties=penalties),
        "FIGS": figs,
        "EBM": ExplainableBoostingClassifier(interactions=0, n_jobs=1),
    }
    settings = {"risk": "log_loss", "folds": FOLDS, "inner_folds": 2, "seed": 0}
    ours, cart = (jr.compare(X, y, methods=methods, **settings) for methods in (named, ["cart"]))
    print(ours, cart, sep="\n")
    fronts = {**ours.fronts, "CART": cart.fronts["cart"]}
    return {name: np.asarray(front, float) for name, front in fronts.items()}


def drawn(fronts: dict[str, np.ndarray]) -> None:
    plt.rcParams.update({"font.size": 8.5, "svg.hashsalt": "jaxrules"})
    figure, ax = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
    for name, (colour, marker, point, shift) in STYLES.items():
        front = fronts[name][np.argsort(fronts[name][:, 0])]
        size, risk, error = front.T
        ax.errorbar(
            size, risk, yerr=error, color=colour, marker=marker, markersize=3.5, linewidth=1.3,
            elinewidth=0.7, capsize=2,
        )  # fmt: skip
        ax.annotate(
            name, (size[point], risk[point]), xytext=shift, textcoords="offset points",
            color=colour, weight="bold",
        )  # fmt: skip
    size, risk, error = fronts["EBM"][0]
    ax.axhline(risk, color="0.35", linewidth=1, linestyle="--")
    ax.axhspan(risk - error, risk + error, color="0.35", alpha=0.15, linewidth=0)
    ax.text(3, risk - error - 0.003, f"EBM (size {size:,.0f})", color="0.25", va="top")
    ax.set_xscale("log")
    ax.set_xlim(2.8, 260)
    ax.set_xticks([3, 5, 10, 20, 50, 100, 200])
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.set_ylim(0.33, 0.6)
    ax.set_xlabel("size of the model: rules + conditions (log scale)")
    ax.set_ylabel("log loss on held-out rows")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    drawn(measured())
