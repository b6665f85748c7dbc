"""The picture of README and docs/comparing.md: risk-complexity fronts on
scikit-learn's breast cancer data.

    python docs/pictures/compare.py

Prints the table and writes compare.svg beside this file; about four minutes on one core.
"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt

import jaxrules as jr

METHODS = ("boosting", "lire", "rulefit", "lltboost", "glrm", "linear", "cart", "gradient_boosting")

if __name__ == "__main__":
    data = jr.datasets.load("breast_cancer")
    found = jr.compare(
        data.X, data.y, methods=METHODS, risk="log_loss", folds=3, inner_folds=2, seed=0
    )
    print(found)
    plt.rcParams.update({"font.size": 8, "svg.hashsalt": "jaxrules"})
    figure, ax = plt.subplots(figsize=(5.5, 3.0), layout="constrained")
    jr.plots.risk_complexity(found, ax)
    ax.set_yscale(
        "log"
    )  # leaves of one class make the log loss of large trees many times that of the others
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")
    ax.set_yticks([0.1, 0.2, 0.5, 1, 2])
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})
