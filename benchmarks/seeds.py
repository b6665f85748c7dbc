"""How much does LTRNet depend on its seed? The rules of the best of six starts beside those chosen
among ten starts.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/seeds.py [--sets liver ...]
        [--seeds 5]

One split per set, at most 400 training rows; regression targets are standardised. Printed are the
mean test risk and its standard deviation over the seeds; the agreement of the rules, as in
stability.py, and the correlation of the scores of two seeds, on the test rows; and the complexity,
the number of rules, and CPU seconds of a warm fit.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

import numpy as np
from stability import agreement

import jaxrules as jr
from jaxrules.data.datasets import Dataset

SETS = ("liver", "diabetes", "small_australian", "small_hedonic")
SETTINGS: dict[str, dict[str, Any]] = {
    "best of 6": {"restarts": 6, "combine_starts": False},
    "among 10": {},
}
MOST_ROWS, MOST_TEST_ROWS = 400, 3000


def split(name: str) -> tuple[Dataset, Dataset]:
    """Training and test rows."""
    data = jr.datasets.load(name)
    order = np.random.default_rng(1).permutation(len(data))
    n = min(MOST_ROWS, int(0.7 * len(data)))
    if data.task == "regression":
        y = np.asarray(data.y, np.float64)
        y = (y - y[order[:n]].mean()) / y[order[:n]].std()
        data = Dataset(data.name, data.X, y, data.task)
    return data[np.sort(order[:n])], data[np.sort(order[n : n + MOST_TEST_ROWS])]


def measured(train: Dataset, test: Dataset, seeds: int, **options: Any) -> list[float]:
    """What the module says is printed."""
    common = {"missing": "own_category", **options}
    common["loss"] = "squared" if train.task == "regression" else "logistic"
    jr.ltrnet.fit(train.X, train.y, seed=seeds, **common)
    fits, seconds = [], []
    for seed in range(seeds):
        began = time.process_time()
        fits.append(jr.ltrnet.fit(train.X, train.y, seed=seed, **common))
        seconds.append(time.process_time() - began)
    models = [fit.model for fit in fits]
    risks = [jr.risk(model, test.X, test.y) for model in models]
    scores = [np.asarray(jr.decision_function(model, test.X)) for model in models]
    return [
        float(np.mean(risks)),
        float(np.std(risks, ddof=1)),
        agreement([np.asarray(model.conjunctions.satisfied(test.X)) for model in models]),
        float(np.mean([np.corrcoef(*two)[0, 1] for two in itertools.combinations(scores, 2)])),
        float(np.mean([jr.complexity(model, "nonzeros") for model in models])),
        float(np.mean([len(model.conjunctions) for model in models])),
        float(np.median(seconds)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    print("| set (rows) | rules | risk | s.d. | rules agree | scores | complexity | number | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in arguments.sets:
        train, test = split(name)
        for label, options in SETTINGS.items():
            found = measured(train, test, arguments.seeds, **options)
            texts = (f"{x:.{d}f}" for x, d in zip(found, (3, 3, 2, 2, 0, 1, 2), strict=True))
            print(f"| {name} ({len(train)}) | {label} | {' | '.join(texts)} |", flush=True)


if __name__ == "__main__":
    main()
