"""FIGS, RuleFit, BoostedRules (imodels), EBM (interpret) and TT-Sparse on saved arrays,
in their own environments.

See fronts.py.

    PYTHON benchmarks/fronts_peers.py data.npz METHOD TASK MOST_SPLITS SEED

Prints one line of JSON per model: its size (2 per split of FIGS, rules and conditions; 0 for EBM),
its number of rules and of rules that hold for a test row (None if they cannot be counted), and its
predictions for the test rows.
"""

import json
import re
import sys

import numpy as np


def main() -> None:
    file, method, task, most, seed = sys.argv[1:]
    data = np.load(file)
    X, y, X_test = data["X"], data["y"], data["X_test"]
    if method == "TT-Sparse":
        tt_sparse(X, y, X_test, task, int(seed))
        return
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
        write(size, support, local, says)


def write(size, support, local, says):
    one = {
        "size": size,
        "support": support,
        "local": local,
        "says": np.asarray(says, float).tolist(),
    }
    print(json.dumps(one), flush=True)


def tt_sparse(X, y, X_test, task, seed):
    """The program of Soegeng, Modi and Peyrin (2026) with the settings of its README, pruned at
    several tolerances. Its size: that of its rules, each with its literals, and its linear terms.
    """
    import copy

    import pandas as pd
    import torch
    from tt_sparse import TabularEncoder, TTSparseModel, explain, predict_rules, prune, train

    torch.set_num_threads(1)
    task = "regression" if task == "regression" else "binary"
    centre, spread = (y.mean(), y.std()) if task == "regression" else (0, 1)
    train_frame, test_frame = (
        pd.DataFrame(one).rename(columns="x{}".format) for one in (X, X_test)
    )
    train_frame["target"] = (y - centre) / spread
    binary = [f"x{f}" for f, column in enumerate(X.T) if len(np.unique(column)) == 2]
    rest = [name for name in train_frame if name not in (*binary, "target")]
    encoder = TabularEncoder(categorical=binary, continuous=rest, num_bits=9, task_type=task)
    encoded = encoder.fit_transform(train_frame)
    given = {"tau": 0.01, "task_type": task, "skip_size": encoder.n_skip_features}
    torch.manual_seed(seed)
    trained = TTSparseModel(encoder.n_ltt_features, 30, 1, 5, **given)
    train(trained, encoded, epochs=100, device="cpu", seed=seed, verbose=False)
    for drop in (0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0):
        model = copy.deepcopy(trained)
        prune(model, encoded, max_drop_pct=drop, finetune_epochs=30, seed=seed)
        rules = explain(model, encoder)
        kinds = [rule["kind"] for rule in rules.rules]
        says = centre + spread * predict_rules(rules, test_frame, encoder=encoder)
        write(rules.complexity - 1 + kinds.count("ltt"), len(kinds) - 1, float("nan"), says)


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
