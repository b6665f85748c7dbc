"""realkd, the authors' program, on one table, in an environment of its own (`benchmarks/peers.py`).

    PYTHON authors_program.py < task.json

The task: columns of X and X_test by name, y, loss, search ("greedy" or "exhaustive"), penalty,
attributes (the most of a column, by name), rules, and stop: whether the search ends when no bound
left is above the best value found. Prints a line of JSON: the version, what the first 1, 2, ...
rules predict of the test rows, and for an exhaustive search what it pruned, summed over rules.
"""

import json
import sys

import numpy as np
import pandas as pd
import realkd
from realkd.rules import GradientBoostingObjective, Rule
from realkd.search import BestBoundFirstBoundary, Context, CoreQueryTreeSearch, search_methods

COUNTS = (
    "bnd_immediate_hits",
    "bnd_post_children_hits",
    "clo_hits",
    "non_lexmin_hits",
    "del_bnd_hits",
    "rec_crit_hits",
)


class Watched:
    """An objective that remembers the best value it has had."""

    def __init__(self, objective):
        self.objective, self.best = objective, -np.inf

    def __call__(self, rows):
        value = self.objective(rows)
        self.best = max(self.best, value)
        return value


def stopping(objective):
    """A boundary that is empty as soon as nothing in it can be better."""

    class Stopping(BestBoundFirstBoundary):
        def __bool__(self):
            return bool(self.heap and -self.heap[0][0] > objective.best)

    return Stopping


def main():
    task = json.load(sys.stdin)
    X, X_test, y = pd.DataFrame(task["X"]), pd.DataFrame(task["X_test"]), pd.Series(task["y"])
    scores, predicted = np.zeros(len(X)), np.zeros(len(X_test))
    predictions, counts = [], dict.fromkeys(COUNTS, 0)
    for _ in range(task["rules"]):
        objective = GradientBoostingObjective(
            X, y, predictions=scores, loss=task["loss"], reg=task["penalty"]
        )
        context = Context.from_df(objective.data, max_col_attr=task["attributes"])
        watched = Watched(objective)
        boundary = stopping(watched) if task["stop"] else BestBoundFirstBoundary
        CoreQueryTreeSearch.traversal_orders["bestboundfirst"] = boundary
        method = search_methods[task["search"]]
        search = method(context, watched, objective.bound, order="bestboundfirst", max_depth=None)
        query = search.run()
        rule = Rule(query, objective.opt_weight(query))
        scores = scores + np.asarray(rule(X), float)
        predicted = predicted + np.asarray(rule(X_test), float)
        predictions.append(predicted.tolist())
        for count in COUNTS:
            counts[count] += getattr(search, count, 0)
    print(json.dumps({"version": realkd.__version__, "predictions": predictions, "counts": counts}))


main()
