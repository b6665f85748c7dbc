"""Prediction: rule checks per second on two cores, and peak memory.

    python benchmarks/predict.py --one-row
    python benchmarks/predict.py [--rows 1000000] [--rules 100] [--features 20] [--repeats 5]

A rule check is one rule on one row. The script times `jaxrules.predict` on a float64 array,
including reading the array, and the checks alone on a table; nothing is compiled. The target is
10^7 checks per second. For comparison, the same rules are checked condition by condition with NumPy
comparisons.

With ``--one-row``, it prints the median microseconds of `predict` and `explain` for one row, as a
service asks: an array, a record (a list of one dict) and a dataframe; and of the Python module that
`to_python` writes.
"""

import argparse
import csv
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jaxrules as jr

RESULTS = Path(__file__).parent / "results"


def random_model(n_rules: int, n_features: int, rng: np.random.Generator) -> jr.RuleEnsemble:
    """Rules of one to four conditions on random columns; cut points have three digits."""
    schema = jr.Schema(tuple(jr.Feature(f"x{f}") for f in range(n_features)), classes=(0, 1))
    rules = []
    for _ in range(n_rules):
        columns = rng.choice(
            n_features, size=min(n_features, int(rng.integers(1, 5))), replace=False
        )
        cuts = np.round(rng.normal(size=len(columns)), 3)
        make = [
            jr.Condition.above if up else jr.Condition.at_most
            for up in rng.random(len(columns)) < 0.5
        ]
        rules.append([m(int(f), float(c)) for m, f, c in zip(make, columns, cuts, strict=True)])
    conjunctions = jr.Conjunctions.build(schema, rules)
    return jr.RuleEnsemble(
        conjunctions, rng.normal(size=(n_rules, 1)), np.zeros(1), link="logistic"
    )


def by_conditions(model: jr.RuleEnsemble, X: np.ndarray) -> np.ndarray:
    """The straightforward way: compare whole columns, one condition after the other."""
    scores = np.zeros(len(X))
    for rule, weight in zip(model.conjunctions, np.asarray(model.weights)[:, 0], strict=True):
        holds = np.ones(len(X), bool)
        for c in rule:
            holds &= (X[:, c.feature] > c.lower) & (X[:, c.feature] <= c.upper)
        scores += holds * weight
    return scores


def median_seconds(function: Callable[[], Any], repeats: int) -> float:
    function()  # warm
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_row(repeats: int) -> None:
    """Print the microseconds for one row, of models of ten rules on 20 columns."""
    import pandas as pd

    rng = np.random.default_rng(0)
    model = random_model(10, 20, rng)
    X = rng.normal(size=(1, 20))
    frame = pd.DataFrame(X, columns=model.schema.names)
    record: Any = frame.to_dict("records")
    shares = np.full((11, 2), 0.5)
    listed = jr.RuleList(model.conjunctions, np.zeros(11, np.int32), shares)
    many = rng.normal(size=(200, 20))
    path = jr.paths.fit(many, many[:, 0] > many[:, 1], steps=4).model
    exported: dict[str, Any] = {}
    exec(jr.to_python(model), exported)
    plain = record[0]

    def microseconds(function: Callable[[], Any]) -> float:
        return round(1e6 * median_seconds(function, repeats))

    for name, one in {"ensemble": model, "rule list": listed, "path": path}.items():
        for kind, given in {"array": X, "record": record, "dataframe": frame}.items():
            predict = microseconds(lambda one=one, given=given: jr.predict(one, given))
            explain = microseconds(lambda one=one, given=given: jr.explain(one, given))
            print(f"{name}, {kind}: predict {predict} us, explain {explain} us")
    print(f"module of to_python: {microseconds(lambda: exported['predict'](plain))} us")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rules", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--one-row", action="store_true")
    arguments = parser.parse_args()
    if arguments.one_row:
        one_row(max(200, arguments.repeats))
        return

    rng = np.random.default_rng(0)
    X = rng.normal(size=(arguments.rows, arguments.features))
    table = jr.as_table(X)
    rows = []
    for n_rules in arguments.rules:
        model = random_model(n_rules, arguments.features, rng)
        checks = arguments.rows * n_rules
        before = peak_megabytes()
        predict = median_seconds(lambda model=model: jr.predict(model, X), arguments.repeats)
        grown = peak_megabytes() - before
        check = median_seconds(
            lambda model=model: sum(len(batch) for _, batch in model.conjunctions.batches(table)),
            arguments.repeats,
        )
        part = slice(0, max(1, arguments.rows // 10))
        plain = 10 * median_seconds(
            lambda model=model, part=part: by_conditions(model, X[part]), arguments.repeats
        )
        np.testing.assert_array_equal(
            jr.decision_function(model, X[part]), by_conditions(model, X[part])
        )
        rows.append(
            {
                "rows": arguments.rows,
                "rules": n_rules,
                "predict_seconds": round(predict, 4),
                "predict_checks_per_second": f"{checks / predict:.3g}",
                "check_seconds": round(check, 4),
                "checks_per_second": f"{checks / check:.3g}",
                "by_conditions_seconds": round(plain, 4),
                "peak_grown_mb": round(grown, 1),
            }
        )
        print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)

    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "predict.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(f"data {X.nbytes / 2**20:.0f} MB, peak of the process {peak_megabytes():.0f} MB")


if __name__ == "__main__":
    main()
