"""GLRM as the author runs it: AIX360, in an environment of its own (`benchmarks/peers.py`).

    PYTHON authors_glrm_program.py data.npz LAMBDA ...

`data.npz` holds X and y (0 and 1) of the rows to fit, X_choose and y_choose of those to choose
lambda_0 by, X_all and y_all of both, and X_test and y_test. Prints a line of JSON for every grid
that begins at one of the first two values: the lambda_0 chosen by the AUC, the model fitted with it
on both, measured on the test rows, and the CPU seconds so far.

If `data.npz` holds `paper` instead of the first four, the author's accuracy and AUC on the test rows,
it prints a line for each lambda_0 in turn, fitted to all rows, and ends where both are the author's.
"""

import json
import sys
import time
import warnings

import numpy as np
import pandas
from aix360.algorithms.rbm import FeatureBinarizer, LogisticRuleRegression
from sklearn.metrics import roc_auc_score


def frame(X):
    return pandas.DataFrame(X, columns=[f"x_{column}" for column in range(X.shape[1])])


def fitted(X, y, penalty):
    """The author's options; what is not named has its default."""
    binarizer = FeatureBinarizer(numThresh=9, negations=True)
    model = LogisticRuleRegression(lambda0=penalty, lambda1=0.2 * penalty, maxSolverIter=1000)
    model.fit(binarizer.fit_transform(frame(X)), pandas.Series(y))
    return lambda rows: binarizer.transform(frame(rows)), model


def measures(binary, model, data):
    """Scores and sizes on the test rows; counted as by the author."""
    rows, y = binary(data["X_test"]), data["y_test"]
    used = np.flatnonzero(np.abs(model.lr.coef_[0]) > 1e-8)
    holds = np.asarray(model.compute_conjunctions(rows)) > 0
    return {
        "accuracy": float(np.mean(model.predict(rows) == y)),
        "auc": float(roc_auc_score(y, model.predict_proba(rows))),
        "support": len(used),
        "local_support": float(holds[:, used].sum(axis=1).mean()),
        "ratio": float(holds[:, used].mean()) if len(used) else 0.0,
        "cpu_seconds": time.process_time(),
    }


def until_the_authors(data, penalties):
    accuracy, auc = data["paper"]
    for penalty in penalties:
        found = measures(*fitted(data["X_all"], data["y_all"], penalty), data)
        same = abs(found["accuracy"] - accuracy) < 1e-5 and abs(found["auc"] - auc) < 1e-4
        print(json.dumps({"penalty": penalty, "same": int(same), **found}))
        if same:
            break


def chosen_by_auc(data, penalties):
    areas, refitted = [], {}
    for penalty in penalties:
        binary, model = fitted(data["X"], data["y"], penalty)
        shares = model.predict_proba(binary(data["X_choose"]))
        areas.append(roc_auc_score(data["y_choose"], shares))
    for first in range(2):
        chosen = penalties[first + int(np.argmax(areas[first:]))]
        if chosen not in refitted:
            refitted[chosen] = fitted(data["X_all"], data["y_all"], chosen)
        line = {"grid": len(penalties) - first, "chosen": chosen}
        print(json.dumps({**line, **measures(*refitted[chosen], data)}))


def main():
    data, penalties = np.load(sys.argv[1]), [float(text) for text in sys.argv[2:]]
    warnings.filterwarnings("ignore")
    (until_the_authors if "paper" in data.files else chosen_by_auc)(data, penalties)


main()
