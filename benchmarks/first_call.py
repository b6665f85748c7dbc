"""What the defaults give: `fit(X, y)` without options, for every learner.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/first_call.py
    [--datasets fico_lire] [--only lire]

Each line comes from its own process, which trains on three quarters of the rows. It gives the
seconds of the first call (with imports, and with kernels that are loaded or compiled) and of a
second call, the accuracy on the other rows, the number of rules, rules and conditions together
(`jaxrules.complexity`), the largest weight, and why the fit ended.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

LEARNERS = (
    "boosting",
    "lire",
    "rulefit",
    "glrm",
    "lltboost",
    "ltrnet",
    "ssrl",
    "exact_list",
    "drnet",
)
DATASETS = ("breast_cancer", "compas_lire", "fico_lire", "magic", "adult_train")


def measure(learner: str, dataset: str) -> dict[str, Any]:
    import numpy as np

    import jaxrules as jr

    train, test = jr.datasets.train_test_split(jr.datasets.load(dataset), test_size=0.25, seed=0)
    call = getattr(jr, learner).fit
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        fit = call(train.X, train.y, missing="own_category")
        seconds.append(time.perf_counter() - start)
    model = fit.model
    weights = np.abs(np.asarray(getattr(model, "weights", [[0.0]])))
    return {
        "rows": train.X.n_rows,
        "first": seconds[0],
        "second": seconds[1],
        "accuracy": jr.accuracy(model, test.X, test.y),
        "rules": len(model.conjunctions),
        "complexity": jr.complexity(model),
        "weight": float(weights.max(initial=0)),
        "status": fit.status.value,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--only", nargs="*", default=LEARNERS, help="learners")
    parser.add_argument(
        "--patience", type=float, default=300.0, help="seconds after which a process is ended"
    )
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one)))
        return
    print(
        "| data (rows) | learner | first, s | second, s | accuracy | rules | complexity | largest "
        "weight | status |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for dataset in arguments.datasets:
        for learner in arguments.only:
            command = [sys.executable, __file__, "--one", learner, dataset]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=True, timeout=arguments.patience
                )
                found = json.loads(done.stdout.splitlines()[-1])
                cells = [
                    f"{found['first']:.1f}",
                    f"{found['second']:.2f}",
                    f"{found['accuracy']:.3f}",
                    found["rules"],
                    found["complexity"],
                    f"{found['weight']:.1f}",
                    found["status"],
                ]
                name = f"{dataset} ({found['rows']})"
            except subprocess.TimeoutExpired:
                cells, name = [f"> {arguments.patience / 2:.0f}"] * 2 + [""] * 5, dataset
            except subprocess.CalledProcessError as error:
                cells, name = [error.stderr.strip().splitlines()[-1]] + [""] * 6, dataset
            print("|", " | ".join(map(str, (name, learner, *cells))), "|", flush=True)
    print(f"\nload of the machine at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
