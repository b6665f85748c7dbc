"""FIGS (imodels) and explainable boosting machines (interpret) on saved arrays, in environments of their own (see
fronts.py).

    PYTHON benchmarks/fronts_peers.py FIGS|EBM TASK data.npz MOST_SPLITS SEED

Prints one line of JSON per model: its size (2 per split; 0 for EBM), and what it says of the test rows.
"""

import json
import sys

import numpy as np


def main() -> None:
    method, task, file, most, seed = sys.argv[1:]
    data = np.load(file)
    X, y, X_test = data["X"], data["y"], data["X_test"]
    if method == "EBM":
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        kind = ExplainableBoostingRegressor if task == "regression" else ExplainableBoostingClassifier
        models = [(0, kind(interactions=0, random_state=int(seed), n_jobs=1))]
    else:
        from imodels import FIGSClassifier, FIGSRegressor

        kind = FIGSRegressor if task == "regression" else FIGSClassifier
        sizes = sorted({*range(1, 11), *range(12, int(most) + 1, 3), int(most)})
        models = [(2 * splits, kind(max_rules=splits, random_state=int(seed))) for splits in sizes]
    for size, model in models:
        model.fit(X, y)
        says = model.predict(X_test) if task == "regression" else model.predict_proba(X_test)[:, 1]
        print(json.dumps({"size": size, "says": np.asarray(says, float).tolist()}), flush=True)


if __name__ == "__main__":
    main()
