"""FIGS, RuleFit, BoostedRules (imodels) and EBM (interpret) on saved arrays,
in their own environments.

See fronts.py.

    PYTHON benchmarks/fronts_peers.py FIGS|RuleFit|BoostedRules|EBM TASK data.npz MOST_SPLITS SEED

Prints one line of JSON per model: its size (2 per split of FIGS, rules and conditions; 0 for EBM),
its number of rules and of rules that hold for a test row (None if they cannot be counted), and its
predictions for the test rows.
"""

import json
import re
import sys

import numpy as np


def main() -> None:
    method, task, file, most, seed = sys.argv[1:]
    data = np.load(file)
    X, y, X_test = data["X"], data["y"], data["X_test"]
    if method == "EBM":
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        kind = (
            ExplainableBoostingRegressor if task == "regression" else ExplainableBoostingClassifier
        )
        models = [(0, kind(interactions=0, random_state=int(seed), n_jobs=1))]
    elif method == "FIGS":
        from imodels import FIGSClassifier, FIGSRegressor

        kind = FIGSRegressor if task == "regression" else FIGSClassifier
        sizes = sorted({*range(1, 11), *range(12, int(most) + 1, 3), int(most)})
        models = [(2 * splits, kind(max_rules=splits, random_state=int(seed))) for splits in sizes]
    elif method == "RuleFit":
        from imodels import RuleFitClassifier, RuleFitRegressor

        kind = RuleFitRegressor if task == "regression" else RuleFitClassifier
        given = {"include_linear": False, "random_state": int(seed)}
        models = [(None, kind(max_rules=rules, **given)) for rules in (5, 10, 20, 40, 80)]
    else:
        from imodels import BoostedRulesClassifier, BoostedRulesRegressor

        kind = BoostedRulesRegressor if task == "regression" else BoostedRulesClassifier
        models = [
            (2 * rules, kind(n_estimators=rules, random_state=int(seed)))
            for rules in (5, 10, 15, 20, 40)
        ]
    for size, model in models:
        model.fit(X, y)
        says = model.predict(X_test) if task == "regression" else model.predict_proba(X_test)[:, 1]
        support, local = float("nan"), float("nan")
        if method == "RuleFit":
            used = [rule for rule, weight in zip(model.rules_, model.coef, strict=False) if weight]
            size, support = len(used) + sum(len(rule.agg_dict) for rule in used), len(used)
            local = held(used, X_test)
        elif method != "EBM":
            support = size / 2
        one = {
            "size": size,
            "support": support,
            "local": local,
            "says": np.asarray(says, float).tolist(),
        }
        print(json.dumps(one), flush=True)


def held(rules, X):
    """How many of the rules hold for a row, on average."""
    return float(np.mean(sum(satisfied(rule, X) for rule in rules))) if rules else 0.0


def satisfied(rule, X):
    """Whether a rule of imodels holds for each row."""
    result = np.ones(len(X), bool)
    for (name, sign), threshold in rule.agg_dict.items():
        column = X[:, int(re.sub(r"\D", "", str(name)))]
        result &= {
            "<=": column <= float(threshold),
            ">": column > float(threshold),
            "<": column < float(threshold),
            ">=": column >= float(threshold),
        }[sign]
    return result


if __name__ == "__main__":
    main()
