"""Does every fit keep its `time_limit`? Every learner and search on Adult, first and third call.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/limits.py [--limits 0.1 1]
    [--only lire rulefit] [--cpu] [--rows 1000000] [--calls 1]

Each line comes from its own process. It imports the library, reads the data as a dataframe of text
and numbers, and calls `fit` three times with the same limit.

- The first call also imports what the learner needs, and compiles or loads its kernels. (A second
  run of this script finds the caches filled.)
- The second call does the same for what the first had no time for.
- The third call has to keep its limit.

The script prints the seconds of the first and last calls; the CPU seconds, status and number of
rules of the last; and the load of the machine. On a busy machine, use `--cpu`: it sets the limit
in CPU seconds of the process (all threads) and prints CPU seconds. `--rows` replaces the data set
by rows of 20 numbers (`large.py`), `--calls` the number of calls.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "boosting optimal": ("boosting", {}),
    "boosting best-first": ("boosting", {"objective": "orthogonal", "corrective": True}),
    "boosting beam": ("boosting", {"search": "beam"}),
    "boosting greedy": ("boosting", {"search": "greedy"}),
    "boosting published": ("boosting.published", {}),
    "lire combo": ("lire", {}),
    "lire published": ("lire.published", {"rules": "boosted_trees"}),
    "rulefit cv": ("rulefit", {}),
    "rulefit penalty": ("rulefit", {"l1_penalty": 0.001}),
    "glrm beam": ("glrm", {}),
    "glrm exact": ("glrm", {"pricing": "exact"}),
    "lltboost": ("lltboost", {}),
    "ltrnet": ("ltrnet", {}),
    "drnet": ("drnet", {}),
    "ssrl beam": ("ssrl", {}),
    "ssrl published": ("ssrl.published", {}),
    "ssrl exact": ("ssrl", {"subproblem": "exact"}),
    "exact_list": ("exact_list", {}),
    "exact_list, every value": ("exact_list", {"max_cut_points": None}),
    "ssrl beam, every value": ("ssrl", {"max_cut_points": None}),
    "paths exact": ("paths", {}),
    "paths local": ("paths", {"method": "local"}),
    "paths mip": ("paths", {"method": "mip", "cost": "squared"}),
    "paths squared": ("paths", {"cost": "squared"}),
}
HEAD = (
    f"{'case':20s} {'limit':>6s} {'first':>7s} {'last':>7s} {'CPU':>7s} {'status':>12s} "
    f"{'rules':>6s} {'load':>5s}"
)


def frame_of(table: Any) -> Any:
    """The table as users have it: a pandas dataframe of numbers and text."""
    import pandas as pd

    columns = {}
    for feature, column in zip(table.schema.features, table.columns, strict=True):
        texts = [*(feature.categories or ()), None]
        columns[feature.name] = column if feature.is_numeric else [texts[code] for code in column]
    return pd.DataFrame(columns)


def measure(
    case: str, limit: float, dataset: str, rows: int, calls: int, clock: Callable[[], float]
) -> dict[str, Any]:
    """Make the calls in this process."""
    import jax

    cache = Path(tempfile.gettempdir()) / "jaxrules-limits"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    from large import problem

    import jaxrules as jr

    if rows:
        X, y, _ = problem(rows, 1)
    else:
        data = jr.datasets.load(dataset)
        X, y = frame_of(data.X), data.y
    name, options = CASES[case]
    learner, _, function = name.partition(".")
    if options.get("cost") == "squared":
        y = (y == sorted(set(y.tolist()))[1]).astype(float)
    result: dict[str, Any] = {"case": case, "limit": limit}
    for call in range(calls):
        cpu, start = time.process_time(), clock()
        fit = getattr(getattr(jr, learner), function or "fit")(
            X, y, missing="own_category", time_limit=jr.Deadline(limit, clock), **options
        )
        result["last"], result["cpu"] = clock() - start, time.process_time() - cpu
        result["first"] = result["last"] if call == 0 else result["first"]
    rules = getattr(fit.model, "conjunctions", fit.model)
    return {**result, "status": fit.status.value, "rules": len(rules), "load": os.getloadavg()[0]}


def line(found: dict[str, Any]) -> str:
    return (
        f"{found['case']:20s} {found['limit']:6g} {found['first']:7.2f} {found['last']:7.2f} "
        f"{found['cpu']:7.2f} {found['status']:>12s} {found['rules']:6d} {found['load']:5.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limits", nargs="*", type=float, default=[0.1, 1.0], help="seconds")
    parser.add_argument(
        "--only", nargs="*", default=[], help="cases whose names contain one of these words"
    )
    parser.add_argument("--dataset", default="adult")
    parser.add_argument("--rows", type=int, default=0, help="of numbers, instead of a data set")
    parser.add_argument("--calls", type=int, default=3, help="of each fit in its process")
    parser.add_argument("--cpu", action="store_true", help="limits and seconds of CPU")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        clock = time.process_time if arguments.cpu else time.monotonic
        found = measure(
            arguments.one, arguments.limits[0], arguments.dataset, arguments.rows,
            arguments.calls, clock,
        )  # fmt: skip
        print(json.dumps(found))
        return
    print(HEAD)
    chosen = [
        case for case in CASES if not arguments.only or any(word in case for word in arguments.only)
    ]
    for limit in arguments.limits:
        for case in chosen:
            command = [
                sys.executable, __file__, "--one", case, "--limits", str(limit), "--dataset",
                arguments.dataset, "--rows", str(arguments.rows), "--calls", str(arguments.calls),
            ]  # fmt: skip
            command += ["--cpu"] * arguments.cpu
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            failed = f"{case:20s} {limit:6g} failed: {done.stderr.strip().splitlines()[-1:]}"
            print(
                line(json.loads(done.stdout.splitlines()[-1])) if done.returncode == 0 else failed,
                flush=True,
            )


if __name__ == "__main__":
    main()
