"""A peer's rule list or rule set on saved data, in the peer's own environment (see rule_lists.py).

    PYTHON benchmarks/rule_lists_peers.py PACKAGE data.npz

Prints one line of JSON: test accuracy, rules, literals, wall and CPU seconds of the fit.
"""

import json
import sys
import time

import numpy as np

# Every peer: three functions, which fit, say which test rows are right, and
# count rules and literals.


def classy(data):
    """rulelist with its defaults, except nine cut points per column, as in SSRL."""
    import pandas as pd
    from rulelist import RuleList

    model = RuleList(task="prediction", target_model="categorical", n_cutpoints=9)
    X = {part: pd.DataFrame(data[f"X_{part}"]).add_prefix("x") for part in ("train", "test")}
    y = pd.DataFrame({"y": data["y_train"].astype(str)})
    return (
        lambda: model.fit(X["train"], y),
        lambda: np.asarray(model.predict(X["test"])).astype(str) == data["y_test"].astype(str),
        lambda: (model.number_rules, sum(len(rule.pattern) for rule in model._rulelist.subgroups)),
    )


def ripper(data):
    """wittgenstein, its defaults: rules for class 1."""
    import wittgenstein

    model = wittgenstein.RIPPER(random_state=0)
    return (
        lambda: model.fit(data["X_train"], data["y_train"], pos_class=1),
        lambda: np.asarray(model.predict(data["X_test"])) == (data["y_test"] == 1),
        lambda: (len(model.ruleset_), sum(len(rule.conds) for rule in model.ruleset_)),
    )


def corels(data):
    """CORELS on SSRL's literals, the 30 with the largest correlation,
    conditions of two, 10^5 nodes.
    """
    import corels as package

    binary, test, y = data["binary_train"], data["binary_test"], data["y_train"]
    strength = np.abs(np.array([np.corrcoef(column, y)[0, 1] for column in binary.T]))
    kept = np.argsort(-strength)[:30]
    options = {"n_iter": 100_000, "c": 0.001}
    if "price" in data:  # to the end, or as far as memory allows
        options = {"n_iter": 10_000_000, "c": float(data["price"]), "min_support": 0.0}
    model = package.CorelsClassifier(max_card=2, verbosity=[], **options)
    return (
        lambda: model.fit(binary[:, kept], y),
        lambda: np.asarray(model.predict(test[:, kept])).astype(int) == data["y_test"],
        lambda: (
            len(model.rl().rules) - 1,
            sum(len(r["antecedents"]) for r in model.rl().rules[:-1]),
        ),
    )


def main() -> None:
    package, path = sys.argv[1:]
    data = dict(np.load(path))
    fit, right, size = {"rulelist": classy, "wittgenstein": ripper, "corels": corels}[package](data)
    wall, cpu = time.perf_counter(), time.process_time()
    fit()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rules, literals = size()
    found = {"accuracy": float(right().mean()), "right": int(right().sum())}
    print(
        json.dumps(
            {**found, "rules": int(rules), "literals": int(literals), "wall": wall, "cpu": cpu}
        )
    )


if __name__ == "__main__":
    main()
