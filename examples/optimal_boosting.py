"""Optimal rule boosting: a few rules, each the best there is, with a proof.

    python examples/optimal_boosting.py

Tic-tac-toe endgames (won by x or not) if JAXRULES_DATA holds them, otherwise scikit-learn's breast cancer data.
Prints the rules of the exact and of the greedy search with their gains and proved gaps, explains a prediction,
and shows what a limit on the search does.
"""

import numpy as np

import jaxrules as jr
from jaxrules.ensembles import boosting

if "tic_tac_toe" in jr.datasets.available():
    data = jr.datasets.load("tic_tac_toe")
else:
    data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.2, seed=0)
options = {"loss": "logistic", "l2_penalty": 1.0, "max_rules": 8, "max_cut_points": 4}


def report(title: str, fit: jr.Fit[jr.RuleEnsemble]) -> None:
    """The rules in the order in which they were found, with what is proved about each."""
    accuracy = np.mean(jr.predict(fit.model, test.X) == test.y)
    print(f"\n{title}: test accuracy {accuracy:.3f}, {fit.seconds:.2f} s, {fit.status.advice}")
    for rule, stage in enumerate(fit.details["stages"]):
        proof = "no proof" if stage.gap is None else f"proved gap {stage.gap:.1e}"
        condition = fit.model.conjunctions.describe(rule)
        weight = fit.model.weights[rule, 0]
        print(f"  {weight:+.3f} if {condition}   (gain per unit of size {stage.objective:.5f}, {proof})")


optimal = boosting.fit(train.X, train.y, **options)
report("optimal rules", optimal)
report("greedy rules", boosting.fit(train.X, train.y, search="greedy", **options))

print("\nwhy the first test row gets its class:")
print(jr.explain(optimal.model, test.X[:1])[0])

# A limit ends the search of a rule early: the best rule so far is taken, and the gap says how much could be missing.
report("no more than 200 evaluations per rule", boosting.fit(train.X, train.y, max_evaluations=200, **options))
report("a hundredth of a second for all rules", boosting.fit(train.X, train.y, time_limit=0.01, **options))
