"""CLASSY, SBRL, CORELS or RIPPER on binary columns, each in an environment of its own
(`benchmarks/peers.py`).

    PYTHON peer_programs.py data.npz METHOD SEED SECONDS

`data.npz` holds X and y (codes of the classes; 0 and 1 for all but CLASSY), and perhaps X_test and
y_test. Prints a line of JSON: CPU seconds of a fit, rules and literals without the default, and the
accuracy on the test rows, or on the same ones, in per cent. The system ends it with SIGXCPU after
SECONDS of the processor.
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
        lambda X: (
            np.asarray(fitted.predict(pandas.DataFrame(X).add_prefix("x"))).ravel().astype(int)
        ),
        lambda: [len(rule.pattern) for rule in fitted._rulelist.subgroups],
    )


def sbrl(X, y, seed):
    """pysbrl with its defaults, which are rules of at most two items, and the paper's support."""
    from pysbrl import BayesianRuleList

    fitted = BayesianRuleList(min_support=0.001, seed=seed)
    return (
        lambda: fitted.fit(X.astype(int), y.astype(int)),
        lambda X: fitted.predict(X.astype(int)),
        lambda: [len(rule.clauses) for rule in fitted.rule_list if not rule.is_default()],
    )


def corels(X, y, seed):
    """corels as in the paper: rules of at most four items, the policy "objective", a support of
    0.001 and 5 x 10^5 nodes; the price of a rule, which the paper does not name, is its default.
    """
    from corels import CorelsClassifier

    own = {"max_card": 4, "policy": "objective", "min_support": 0.001, "n_iter": 500000}
    fitted = CorelsClassifier(verbosity=[], **own)
    return (
        lambda: fitted.fit(X, y),
        lambda X: np.asarray(fitted.predict(X)).astype(int),
        lambda: [len(rule["antecedents"]) for rule in fitted.rl().rules[:-1]],
    )


def ripper(X, y, seed):
    """wittgenstein with its defaults: rules for class 1."""
    import wittgenstein

    fitted = wittgenstein.RIPPER(random_state=seed)
    return (
        lambda: fitted.fit(X.astype(int), y.astype(int), pos_class=1),
        lambda X: np.asarray(fitted.predict(X.astype(int))).astype(int),
        lambda: [len(rule.conds) for rule in fitted.ruleset_],
    )


METHODS = {"CLASSY": classy, "SBRL": sbrl, "CORELS": corels, "RIPPER": ripper}


def main():
    file, method, seed, seconds = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), resource.RLIM_INFINITY))
    data = np.load(file)
    X, y = data["X"], data["y"]
    X_test, y_test = (data[part + "_test" * ("X_test" in data)] for part in ("X", "y"))
    fit, predict, lengths = METHODS[method](X, y, int(seed))
    began = time.process_time()
    fit()
    measured = {"cpu_seconds": time.process_time() - began}
    measured["accuracy"] = 100 * float(np.mean(predict(X_test) == y_test))
    measured["rules"], measured["literals"] = len(lengths()), sum(lengths())
    print(json.dumps(measured))


main()
