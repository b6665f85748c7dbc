"""Regression lists beside a CART tree of as many leaves and the same list without local search.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/regression_lists.py

Five data sets, five random splits (three quarters of the rows to fit; 4000 rows of
california_housing in all): R^2 of the squared loss and mean absolute error of the absolute one on
the other rows, rules, literals and CPU seconds. All options are the defaults. CART reads
categories as 0/1 columns.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import ShuffleSplit
from sklearn.tree import DecisionTreeRegressor

import jaxrules as jr

SETS = ("boston", "red_wine_quality", "insurance", "california_housing", "bike_day")
MOST_ROWS = 4000


def main() -> None:
    warnings.simplefilter("ignore")
    for name in SETS:
        data = jr.datasets.load(name)
        y = np.asarray(data.y, float)
        some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        table, y = jr.as_table(data.X, missing="own_category")[some], y[some]
        matrix = pd.get_dummies(pd.DataFrame(table.to_columns())).to_numpy(float)
        for loss in ("squared", "absolute"):
            rows: dict[str, list[tuple[float, ...]]] = {}
            for train, test in ShuffleSplit(5, test_size=0.25, random_state=0).split(y):

                def score(said: Any, test: Any = test, loss: str = loss, y: Any = y) -> float:
                    away = y[test] - said
                    if loss == "absolute":
                        return float(np.abs(away).mean())
                    return float(1 - (away**2).mean() / y[test].var())

                size = 2
                for how, local in (("list", True), ("greedy", False)):
                    begun = time.process_time()
                    model = jr.regression_list.fit(
                        table[train], y[train], loss=loss, local_search=local
                    ).model
                    seconds = time.process_time() - begun
                    n, literals = (
                        len(model.conjunctions),
                        int(model.conjunctions.propositions.sum()),
                    )
                    size = max(n + 1, 2) if local else size
                    found = score(jr.predict(model, table[test])), n, literals, seconds
                    rows.setdefault(how, []).append(found)
                begun = time.process_time()
                tree = DecisionTreeRegressor(
                    criterion=f"{loss}_error", max_leaf_nodes=size, random_state=0
                ).fit(matrix[train], y[train])
                seconds = time.process_time() - begun
                found = score(tree.predict(matrix[test])), size - 1, np.nan, seconds
                rows.setdefault("CART", []).append(found)
            for how, one in rows.items():
                mean = np.mean(one, axis=0)
                spread = np.std([row[0] for row in one])
                print(
                    f"{name:20} {loss:9} {how:7} {mean[0]:.3f} +- {spread:.3f}, {mean[1]:.1f}"
                    f" rules, {mean[2]:.1f} literals, {np.median([row[3] for row in one]):.2f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
