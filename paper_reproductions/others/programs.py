"""Programs of others on saved arrays, each in an environment of its own (`benchmarks/peers.py`).

    PYTHON programs.py ENVIRONMENT TASK data.npz OPTIONS

`data.npz` holds X, y (classes as 0, 1, ...) and X_test of every split, numbered; OPTIONS, of the
program, are JSON. Prints a line of JSON per program and split: what it predicts of the test rows,
its rules and their conditions, and seconds of the processor.
"""

import inspect
import json
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
    environment, task, file, options = sys.argv[1:]
    options = json.loads(options)
    warnings.filterwarnings("ignore")
    data = np.load(file)
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
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
