"""Programs of others on saved arrays, each in an environment of its own (peers.py).

    PYTHON benchmarks/peer_programs.py data.npz ENVIRONMENT TASK OPTIONS

OPTIONS are JSON. Those of a program: `data.npz` holds X, y (classes as 0, 1, ...) and X_test of
every split, numbered, and a line of JSON per program of the environment and split is printed: what
it predicts of the test rows, its rules and their conditions, and seconds of the processor. That is
what paper_reproductions/others shows.

{"sizes of": METHOD, "most": SPLITS, "seed": K}: `data.npz` holds X, y and X_test, and a line is
printed per model of this method, from small to large: its size, its number of rules and of rules
that hold for a test row (NaN if they cannot be counted), and its predictions (of a class, its
probability) for the test rows. That is what fronts.py draws.
"""

import inspect
import json
import re
import sys
import time
import warnings

import numpy as np


def imodels_programs(task):
    import imodels

    names = ["FIGS", "RuleFit", "BoostedRules"]
    names += ["GreedyRuleList", "SkopeRules"] if task != "regression" else []
    kind = "Regressor" if task == "regression" else "Classifier"
    return {name: getattr(imodels, name + kind) for name in names}


def interpret_programs(task):
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    return {
        "EBM": ExplainableBoostingRegressor
        if task == "regression"
        else ExplainableBoostingClassifier
    }


def ruleopt_programs(task):
    from ruleopt import RUGClassifier

    return {} if task == "regression" else {"RUG": RUGClassifier}


def boomer_programs(task):
    from mlrl.boosting import BoomerClassifier

    class Boomer(BoomerClassifier):
        """With targets and predictions of one column."""

        def fit(self, X, y):
            return super().fit(X.astype(np.float32), y.reshape(-1, 1))

        def predict(self, X):
            said = super().predict(X.astype(np.float32))
            return np.asarray(said.toarray() if hasattr(said, "toarray") else said).ravel()

    return {} if task == "regression" else {"Boomer": Boomer}


def aix360_programs(task):
    import pandas
    from aix360.algorithms.rbm import FeatureBinarizer, LinearRuleRegression, LogisticRuleRegression

    class RuleRegression:
        """Of binarised columns, and, with ``useOrd``, of the standardised columns;
        NaN is a value of its own.
        """

        def __init__(self, **options):
            self.binarizer = FeatureBinarizer(negations=True, returnOrd=True)
            self.program = (
                LinearRuleRegression if task == "regression" else LogisticRuleRegression
            )(**options)

        def columns(self, X):
            return pandas.DataFrame(X, columns=[str(column) for column in range(X.shape[1])])

        def fit(self, X, y):
            binary, standardised = self.binarizer.fit_transform(self.columns(X))
            self.program.fit(binary, pandas.Series(y), standardised)
            self.linear_terms = len(getattr(self.program, "idxNonzeroOrd", ()))

        def predict(self, X):
            return self.program.predict(*self.binarizer.transform(self.columns(X)))

    return {"LinearRR" if task == "regression" else "LogRR": RuleRegression}


PROGRAMS = {
    "imodels": imodels_programs, "interpret": interpret_programs, "ruleopt": ruleopt_programs,
    "boomer": boomer_programs, "aix360": aix360_programs,
}  # fmt: skip


def size(name, model):
    """Rules with their conditions; for FIGS the leaves of its trees with the splits above them."""
    if name == "FIGS":
        depths = [depth for tree in model.trees_ for depth in leaves(tree, 0)]
        return len(depths), sum(depths)
    if name == "RuleFit":
        used = [str(rule) for rule in model.rules_]
        return len(used), sum(1 + rule.count(" and ") for rule in used)
    if name == "SkopeRules":
        used = [str(rule) for rule in model.rules_]
        return len(used), sum(1 + rule.count(" and ") for rule in used)
    if name == "BoostedRules":
        return len(model.estimators_), len(model.estimators_)
    if name == "GreedyRuleList":
        return len(model.rules_), sum(1 for rule in model.rules_ if rule.get("col") is not None)
    if name == "RUG":
        return len(model.decision_rules_), sum(
            rule.n_clauses for rule in model.decision_rules_.values()
        )
    if name == "Boomer":
        counter = Bodies()
        model.model_.visit_used(counter)
        return counter.rules, counter.conditions
    if name in ("LogRR", "LinearRR"):
        return model.program.z.shape[1], int(model.program.z.to_numpy().sum())
    return None, None


def leaves(node, depth):
    """The depth of every leaf."""
    if node.left is None and node.right is None:
        return [depth]
    return leaves(node.left, depth + 1) + leaves(node.right, depth + 1)


try:
    from mlrl.common.cython.rule_model import RuleModelVisitor
except ImportError:
    RuleModelVisitor = object


class Bodies(RuleModelVisitor):
    """Counts Boomer's rules and their conditions."""

    def __init__(self):
        self.rules = self.conditions = 0

    def visit_empty_body(self, body):
        """The default rule."""

    def visit_conjunctive_body(self, body):
        """A rule."""
        self.rules += 1
        for kind in (
            "numerical_leq",
            "numerical_gr",
            "ordinal_leq",
            "ordinal_gr",
            "nominal_eq",
            "nominal_neq",
        ):
            indices = getattr(body, f"{kind}_indices", None)
            self.conditions += 0 if indices is None else len(indices)

    def visit_complete_head(self, head):
        """Not counted."""

    def visit_partial_head(self, head):
        """Not counted."""


def main():
    file, environment, task, options = sys.argv[1:]
    options = json.loads(options)
    warnings.filterwarnings("ignore")
    data = np.load(file)
    if "sizes of" in options:
        models_of_all_sizes(data, environment, task, options)
    else:
        models_by_default(data, environment, task, options)


def write(**line):
    print(json.dumps(line), flush=True)


def models_by_default(data, environment, task, options):
    """A model of every program of the environment, on every split."""
    for name, program in PROGRAMS[environment](task).items():
        for split in range(int(data["splits"])):
            X, y, X_test = (data[f"{part}_{split}"] for part in ("X", "y", "X_test"))
            line = {"program": name, "split": split}
            try:
                seeded = "random_state" in inspect.signature(program.__init__).parameters
                model = program(random_state=1) if seeded else program(**options)
                began = time.process_time()
                model.fit(X, y)
                line["seconds"] = time.process_time() - began
                line["says"] = np.asarray(model.predict(X_test), float).ravel().tolist()
                line["rules"], line["conditions"] = size(name, model)
                line["linear_terms"] = getattr(model, "linear_terms", 0)
            except Exception as error:  # one program that fails must not cost the others
                line["error"] = f"{type(error).__name__}: {error}"
            write(**line)


# Models of several sizes


def models_of_all_sizes(data, environment, task, options):
    """Models of one program on one split, from small to large."""
    X, y, X_test = data["X"], data["y"], data["X_test"]
    name, seed = options["sizes of"], options["seed"]
    if own := OWN_SIZES.get(environment):
        own(X, y, X_test, task, seed)
        return
    program = PROGRAMS[environment](task)[name]
    for larger, setting in settings_by_size(name, options["most"]):
        model = program(random_state=seed, **setting).fit(X, y)
        # By default FIGS passes its sums of shares through a sigmoid, which makes .5 of 0.
        clipped = {"use_clipped_prediction": True} if name == "FIGS" else {}
        says = (
            model.predict(X_test)
            if task == "regression"
            else model.predict_proba(X_test, **clipped)[:, 1]
        )
        support, local = float("nan"), float("nan")
        if name == "RuleFit":
            used = [rule for rule, weight in zip(model.rules_, model.coef, strict=False) if weight]
            larger, support = len(used) + sum(len(rule.agg_dict) for rule in used), len(used)
            local = held(used, X_test)
        elif name != "EBM":
            support = larger / 2
        write(size=larger, support=support, local=local, says=np.asarray(says, float).tolist())


def settings_by_size(name, most):
    """(size, setting): 2 per split of FIGS, of which there are at most `most`, rules and conditions
    of boosted stumps; 0 for EBM; RuleFit's is counted.
    """
    if name == "EBM":
        return [(0, {"interactions": 0, "n_jobs": 1})]
    if name == "FIGS":
        splits = sorted({*range(1, 11), *range(12, most + 1, 3), most})
        return [(2 * number, {"max_rules": number}) for number in splits]
    if name == "RuleFit":
        return [
            (None, {"include_linear": False, "max_rules": number}) for number in (5, 10, 20, 40, 80)
        ]
    return [(2 * number, {"n_estimators": number}) for number in (5, 10, 15, 20, 40)]


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
        write_sized(rules.complexity - 1 + kinds.count("ltt"), len(kinds) - 1, says)


def scored_rule_sets(X, y, X_test, task, seed):
    """scoredrulesets' genetic programs of at most so many rules, 20 seconds each. A class has the
    share of the scores of the rules that hold: the program predicts the class of the largest sum.
    """
    import scoredrulesets
    from scoredrulesets.runtime import decision_function

    kind = "Regressor" if task == "regression" else "Classifier"
    program = getattr(scoredrulesets, f"RuleGP{kind}")
    for most in (2, 5, 10, 20):
        model = program(max_rules=most, max_fit_seconds=20, random_state=seed).fit(X, y)
        if task == "regression":
            says = model.predict(X_test)
        else:
            scores = decision_function(model.ruleset_, X_test)
            says = scores[:, 1] / scores.sum(axis=1)
        lengths = [len(rule.atoms) for rule in model.ruleset_.rules if rule.atoms]
        write_sized(len(lengths) + sum(lengths), len(lengths), says)


def rule_trees(X, y, X_test, task, seed):
    """RuleTree's trees of 2, 3, ... leaves; probabilities count one more row of each class."""
    from RuleTree import RuleTreeClassifier, RuleTreeRegressor

    for leaves in (*range(2, 12), *range(13, 27, 3)):
        program = RuleTreeRegressor if task == "regression" else RuleTreeClassifier
        model = program(max_leaf_nodes=leaves, random_state=seed).fit(X, y)
        if task == "regression":
            says = model.predict(X_test)
        else:
            rows, reached = model.apply(X), model.apply(X_test)
            share = {
                leaf: (y[rows == leaf].sum() + 1) / ((rows == leaf).sum() + 2)
                for leaf in np.unique(rows)
            }
            says = [share[leaf] for leaf in reached]
        write_sized(2 * (leaves - 1), leaves - 1, says)


def scorecards(X, y, X_test, task, seed):
    """optbinning's scorecards with an L1 penalty; a bin is a rule of one condition, but for one of
    each column.
    """
    import pandas as pd
    from optbinning import BinningProcess, Scorecard
    from sklearn.linear_model import Lasso, LogisticRegression

    frames = [pd.DataFrame(one).rename(columns="x{}".format) for one in (X, X_test)]
    # The program takes whole numbers for classes.
    spread = y.std() if task == "regression" else 1
    for strength in np.geomspace(1, 1e-3, 12):
        lasso = Lasso(alpha=strength / 2, random_state=seed)
        logistic = LogisticRegression(
            l1_ratio=1, C=0.02 / strength, solver="liblinear", random_state=seed
        )
        estimator = lasso if task == "regression" else logistic
        card = Scorecard(BinningProcess(list(frames[0])), estimator).fit(frames[0], y / spread)
        table = card.table(style="detailed")
        used = table[(table["Coefficient"] != 0) & (table["Count"] > 0)]
        bins = len(used) - used["Variable"].nunique()
        if task == "regression":
            says = spread * card.predict(frames[1])
        else:
            says = card.predict_proba(frames[1])[:, 1]
        write_sized(2 * bins, bins, says)


OWN_SIZES = {
    "tt_sparse": tt_sparse,
    "scoredrulesets": scored_rule_sets,
    "ruletree": rule_trees,
    "optbinning": scorecards,
}
"""Environments whose programs give their sizes in other ways than `size`."""


def write_sized(size, support, says):
    write(size=size, support=support, local=float("nan"), says=np.asarray(says, float).tolist())


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
