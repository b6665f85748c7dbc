"""SSRL: warm fits, growth in rows and in features, and CLASSY, RIPPER and CORELS on the same split.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/rule_lists.py [--only warm growth peers] [--quick]

- warm: a second fit on the same data; nothing is compiled in it. "gas-sized": 13910 x 2304 random binary features.
- growth: 20 numeric columns (360 literals) and 10^4 to 10^6 rows; 10^4 rows and more literals. Seconds per insertion
  (a sub-problem solved), because the number of insertions differs.
- peers: test accuracy, rules, literals and seconds on a stratified fifth of the rows. Each is a process of its own, in
  its own environment (see peers.py); one that cannot be installed is "not run".

Processor time is printed beside wall time: it suffers less from other programs on the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from memory import peak_memory
from peers import NotRun, python_of

import jaxrules as jr

HERE = Path(__file__).parent
WARM = {"compas_binary": 10, "breast_cancer": 10, "fico_binary": 10, "fico": 10, "magic": 40}
PEERS = {"rulelist": "CLASSY", "wittgenstein": "RIPPER", "corels": "CORELS"}


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, wall seconds, processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def second_fit(X: Any, y: Any, **options: Any) -> tuple[jr.Fit[jr.RuleList], float, float]:
    """A fit after one with the same shapes."""
    jr.ssrl.fit(X, y, missing="own_category", **options)
    return timed(lambda: jr.ssrl.fit(X, y, missing="own_category", **options))


def report(what: str, fit: jr.Fit[jr.RuleList], wall: float, cpu: float) -> None:
    insertions, each = fit.details["insertions"], 1e3 * cpu / fit.details["insertions"]
    print(
        f"  {what:24s} wall {wall:7.2f}, processor {cpu:7.2f} s; {insertions:3d} insertions of {each:6.1f} ms; "
        f"f = {fit.objective:.0f}, {len(fit.model.conjunctions)} rules; {peak_memory():.2f} GiB so far",
        flush=True,
    )


def warm(quick: bool) -> None:
    print("\nwarm: a fit of nu rules")
    for name, rules in WARM.items():
        if not (quick and name == "magic"):
            data = jr.datasets.load(name)
            report(f"{name}, {rules}", *second_fit(data.X, data.y, max_rules=rules))
    if not quick:
        rng = np.random.default_rng(0)
        X = (rng.random((13910, 2304)) < rng.uniform(0.1, 0.9, 2304)).astype(np.uint8)
        y = (X[:, 0] & X[:, 1]) | (X[:, 2] & X[:, 3]) | (rng.random(13910) < 0.1)
        # one of the two literals of every column, for 2304 of them
        pool = jr.ssrl.literals_of(jr.as_table(X))
        pool = pool.take(np.flatnonzero(np.isfinite(pool.lower)))
        report("gas-sized, 10", *second_fit(X, y, max_rules=10, literals=pool))


def growth(quick: bool) -> None:
    print("\ngrowth")
    for rows in (10**4, 10**5) if quick else (10**4, 10**5, 10**6):
        X, y = columns(rows, 20)
        report(f"{rows} rows, 20 columns", *second_fit(X, y, max_rules=5, max_rounds=1))
    for width in (20, 40) if quick else (20, 40, 80, 160):
        X, y = columns(10**4, width)
        report(f"10000 rows, {width} columns", *second_fit(X, y, max_rules=5, max_rounds=1))


def columns(rows: int, width: int) -> tuple[Any, Any]:
    """Numbers, and a noisy label that two of three conjunctions explain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, width))
    y = ((X[:, 0] > 0) & (X[:, 1] > 0)) | ((X[:, 2] > 1) & (X[:, 3] < 0))
    return X, y ^ (rng.random(rows) < 0.1)


def peers(quick: bool) -> None:
    for name in ("fico_binary",) if quick else ("compas_binary", "breast_cancer", "fico", "magic"):
        data = jr.datasets.load(name)
        train, test = jr.datasets.train_test_split(data, test_size=0.2, seed=0)
        print(f"\n{name}: test accuracy on {len(test)} rows after {len(train)}")
        fit, wall, cpu = second_fit(train.X, train.y, max_rules=WARM.get(name, 20))
        accuracy = jr.accuracy(fit.model, test.X, test.y)
        literals = int(fit.model.conjunctions.propositions.sum())
        print(f"  {'SSRL':8s} {accuracy:.4f}, {len(fit.model.conjunctions)} rules, {literals} literals; "
              f"wall {wall:.2f}, processor {cpu:.2f} s", flush=True)  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            save(train, test, Path(folder) / "data.npz")
            for package, method in PEERS.items():
                print(f"  {method:8s} {peer(package, Path(folder) / 'data.npz')}", flush=True)


def save(train: Any, test: Any, path: Path) -> None:
    """Columns as numbers, classes as codes, and the same rows by SSRL's literals for those that need them binary."""
    pool = jr.ssrl.literals_of(train.X)
    classes = np.unique(train.y)
    parts: dict[str, Any] = {}
    for part, rows in (("train", train), ("test", test)):
        parts[f"X_{part}"] = np.column_stack(rows.X.columns)
        parts[f"y_{part}"] = np.searchsorted(classes, rows.y)
        parts[f"binary_{part}"] = pool.satisfied(rows.X)
    np.savez(path, **parts)


def peer(package: str, path: Path, limit: float = 1800) -> str:
    """What a peer's process printed, or why it did not run."""
    try:
        command = [str(python_of(package)), str(HERE / "rule_lists_peers.py"), package, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except NotRun as reason:
        return f"not run: {reason}"
    except subprocess.TimeoutExpired:
        return f"not finished after {limit:g} s"
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1]}"
    measured = json.loads(done.stdout.strip().splitlines()[-1])
    return (
        f"{measured['accuracy']:.4f}, {measured['rules']} rules, {measured['literals']} literals; "
        f"wall {measured['wall']:.2f}, processor {measured['cpu']:.2f} s"
    )


def main() -> None:
    parts = {"warm": warm, "growth": growth, "peers": peers}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--quick", action="store_true", help="small data sets only")
    options = parser.parse_args()
    print(f"jaxrules {jr.__version__}, Python {sys.version.split()[0]}")
    for part in options.only:
        parts[part](options.quick)


if __name__ == "__main__":
    main()
