"""rulefit, from which the authors have RuleFit, on one split, in an environment of its own
(`benchmarks/peers.py`).

    PYTHON authors_rulefit_program.py data.npz TASK SEED ORDERS C ...

`data.npz` holds X, y and X_test; TASK is "classify" or "regress". Prints a line of JSON per order of
the rules and C: how many rules have a weight, and what the model predicts of the test rows.

The package keeps its rules in a set, so that their order is another one in every process; of equal
columns, and they are many, the solvers take the first. Order 0 is a set's, the others are drawn. The
package grows the same trees for every C, by the seed: they are grown once, and its last step, which
has one C to choose from, is repeated as scikit-learn ends it. For the first C of order 0 it is
compared with the package's own. Before each tree the package sums all trees before it: here it goes
on from the last sum, which has the same digits.
"""

import json
import os
import sys
import warnings

import numpy as np

if os.environ.get("PYTHONHASHSEED") != "0":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})

from rulefit import RuleFit
from sklearn.ensemble import _gb
from sklearn.linear_model import Lasso, LogisticRegression


def going_on(predict_stages):
    """The same sums over trees, of one ensemble that grows, on one X."""
    done, total = 0, None

    def predict(trees, X, scale, out):
        nonlocal done, total
        if done:
            out[:] = total
        predict_stages(trees[done:], X, scale, out)
        done, total = len(trees), out.copy()

    return predict


def last_step(task, seed, C):
    """The model that scikit-learn's cross-validation fits to all rows at the end."""
    if task == "regress":
        return Lasso(alpha=1.0 / C, random_state=seed)
    return LogisticRegression(C=C, penalty="l1", random_state=seed, solver="liblinear")


def main():
    file, task, seed, orders = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    warnings.filterwarnings("ignore")
    data, all_C = np.load(file), [float(text) for text in sys.argv[5:]]
    _gb.predict_stages = going_on(_gb.predict_stages)
    model = RuleFit(rfmode=task, model_type="r", Cs=np.array(all_C[:1]), random_state=seed)
    model.fit(data["X"], data["y"])
    inside, outside = (model.rule_ensemble.transform(data[name]) for name in ("X", "X_test"))
    order = np.arange(inside.shape[1])
    for number in range(orders):
        rows = inside[:, order].astype(float)
        for C in all_C:
            solver = last_step(task, seed, C).fit(rows, data["y"])
            weights = np.ravel(solver.coef_)
            if number == 0 and all_C[0] == C and not np.array_equal(weights, np.ravel(model.coef_)):
                sys.exit("the last step is not the package's")
            line = {"order": number, "rules": int(np.count_nonzero(weights))}
            print(json.dumps({**line, "says": solver.predict(outside[:, order]).tolist()}))
        order = np.random.RandomState(number).permutation(len(order))


main()
