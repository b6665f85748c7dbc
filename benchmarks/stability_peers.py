"""FIGS and RuleFit (imodels) on bootstrap samples, in their own environment; see stability.py.

    PYTHON benchmarks/stability_peers.py FIGS|RuleFit TASK data.npz RULES

data.npz has X, y and `draws` (samples, rows), the rows of each sample. Writes held_0, held_1, ...
into held.npz beside it: (rows, rules), which rules of a sample's model hold for which row of X. The
leaves of FIGS are its rules.
"""

import sys
from pathlib import Path

import numpy as np
from peer_programs import satisfied


def main() -> None:
    method, task, file, rules = sys.argv[1:]
    data = np.load(file)
    X, y = data["X"], data["y"]
    found = {}
    for i, rows in enumerate(data["draws"]):
        model = fitted(method, task, int(rules), i, X[rows], y[rows])
        if method == "FIGS":
            held = [leaf for tree in model.trees_ for leaf in leaves(tree, X)]
        else:
            pairs = zip(model.rules_, model.coef, strict=False)
            held = [satisfied(rule, X) for rule, weight in pairs if weight]
        found[f"held_{i}"] = np.reshape(held, (len(held), len(X))).T
    np.savez(Path(file).with_name("held.npz"), **found)


def fitted(method, task, rules, seed, X, y):
    import imodels

    kind = "Regressor" if task == "regression" else "Classifier"
    given = {"include_linear": False} if method == "RuleFit" else {}
    return getattr(imodels, method + kind)(max_rules=rules, random_state=seed, **given).fit(X, y)


def leaves(node, X, held=None):
    held = np.ones(len(X), bool) if held is None else held
    if node.left is None:
        return [held]
    below = X[:, node.feature] <= node.threshold
    return leaves(node.left, X, held & below) + leaves(node.right, X, held & ~below)


if __name__ == "__main__":
    main()
