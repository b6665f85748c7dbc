"""realkd's optimal rule boosting on saved data, in realkd's own environment (see boosting.py).

    PYTHON benchmarks/boosting_realkd.py data.csv LOSS PENALTY MAX_COL_ATTR STAGES

Prints the propositions, then one line of JSON per stage: the objective, the CPU seconds since the
start, and how many of them were spent on the search context (realkd builds a new one per stage).
"""

import json
import sys
import time

import numpy as np
import pandas as pd
from realkd.rules import GradientBoostingObjective, Rule
from realkd.search import Context, search_methods


def main() -> None:
    path, loss, penalty, attributes, stages = sys.argv[1:]
    data = pd.read_csv(path, float_precision="round_trip")
    target = data.pop("target").astype(float)
    context = Context.from_df(data, max_col_attr=int(attributes))
    print(
        json.dumps({"propositions": [str(attribute) for attribute in context.attributes]}),
        flush=True,
    )
    scores, building = np.zeros(len(target)), 0.0
    start = time.process_time()
    for _ in range(int(stages)):
        objective = GradientBoostingObjective(
            data, target, predictions=scores, loss=loss, reg=float(penalty)
        )
        began = time.process_time()
        context = Context.from_df(objective.data, max_col_attr=int(attributes))
        building += time.process_time() - began
        search = search_methods["exhaustive"](
            context, objective, objective.bound, order="bestboundfirst", max_depth=None
        )
        query = search.run()
        rows = objective.data.loc[query].index
        rule = Rule(query, objective.opt_weight(query))
        scores = scores + np.asarray(rule(data), float)
        seconds = time.process_time() - start
        line = {
            "objective": float(objective(rows)),
            "seconds": seconds,
            "building": building,
            "rule": str(rule),
        }
        print(json.dumps(line), flush=True)


main()
