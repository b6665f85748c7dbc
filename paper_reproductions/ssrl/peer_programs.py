"""CLASSY or SBRL on binary columns, each in an environment of its own (`benchmarks/peers.py`).

    PYTHON peer_programs.py data.npz METHOD SEED SECONDS

`data.npz` holds X and y (0 and 1). Prints a line of JSON: CPU seconds of a fit, rules and literals
without the default, and the accuracy on the same rows in per cent. The system ends it with SIGXCPU
after SECONDS of the processor.
"""

import json
import resource
import sys
import time

import numpy as np


def classy(X, y, seed):
    """rulelist with its defaults: it fits, predicts and counts."""
    import pandas
    from rulelist import RuleList

    columns = pandas.DataFrame(X).add_prefix("x")
    fitted = RuleList(task="prediction", target_model="categorical")
    return (
        lambda: fitted.fit(columns, pandas.DataFrame({"y": y.astype(str)})),
        lambda: np.asarray(fitted.predict(columns)).ravel().astype(int),
        lambda: [len(rule.pattern) for rule in fitted._rulelist.subgroups],
    )


def sbrl(X, y, seed):
    """pysbrl with its defaults, which are rules of at most two items, and the paper's support."""
    from pysbrl import BayesianRuleList

    columns, fitted = X.astype(int), BayesianRuleList(min_support=0.001, seed=seed)
    return (
        lambda: fitted.fit(columns, y.astype(int)),
        lambda: fitted.predict(columns),
        lambda: [len(rule.clauses) for rule in fitted.rule_list if not rule.is_default()],
    )


def main():
    file, method, seed, seconds = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), resource.RLIM_INFINITY))
    data = np.load(file)
    X, y = data["X"], data["y"]
    fit, predict, lengths = {"CLASSY": classy, "SBRL": sbrl}[method](X, y, int(seed))
    began = time.process_time()
    fit()
    measured = {"cpu_seconds": time.process_time() - began}
    measured["accuracy"] = 100 * float(np.mean(predict() == y))
    measured["rules"], measured["literals"] = len(lengths()), sum(lengths())
    print(json.dumps(measured))


main()
