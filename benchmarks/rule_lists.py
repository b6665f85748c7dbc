"""Rule lists: SSRL's warm fits and scaling; CLASSY, RIPPER and CORELS on the same split; exact
lists.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/rule_lists.py [--only warm
    growth peers exact proofs corels bounds] [--quick]

- warm: a second fit on the same data, in which nothing is compiled. "gas-sized": 13910 x 2304
  random binary features.
- growth: 20 numeric columns (360 literals) and 10^4 to 10^6 rows; 10^4 rows and more literals.
  Seconds per insertion (a sub-problem solved), because the number of insertions differs.
- peers: test accuracy on a stratified fifth of the rows, rules, literals and seconds, for several
  splits; SSRL at several sizes. Each peer runs in its own process and environment (see peers.py);
  one that cannot be installed is "not run".
- exact: compas_binary (6907 rows) over all conditions of two literals, proved; the gain and the
  cost of a third literal; what the mixed-integer program proves in the same time; all near-optimal
  lists; CORELS on the same conditions, where a rule costs 0.5 % of the rows whatever its length, as
  in CORELS.
- proofs: time to the proof on compas_binary, the three monks' problems (all 432 rows) and
  fico_binary, with conditions of one literal and of two, penalty 1.
- corels: time to the proof beside CORELS on the binary sets and on twelve others, where a rule
  costs 0.5 % of the rows.
- bounds: what SSRL's certificate proves, by the largest list and length of rules.

CPU time is printed beside wall time: other programs on the machine disturb it less.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from memory import peak_memory
from peers import NotRun, python_of

import jaxrules as jr
from jaxrules.lists.literals import literals_of

HERE = Path(__file__).parent
WARM = {"compas_binary": 10, "breast_cancer": 10, "fico_binary": 10, "fico": 10, "magic": 40}
SIZES = {
    "compas_binary": (5, 10, 20),
    "breast_cancer": (5, 10, 20),
    "fico": (5, 10, 20),
    "magic": (5, 10, 20, 40),
}
"""Sizes of SSRL's lists; the peers choose their own size."""
SPLITS = 3
BOUNDED = (
    "iris", "wine", "tic_tac_toe", "titanic", "compas_binary", "fico_binary", "breast_cancer",
    "heart", "banknote", "cmc", "page_blocks", "magic", "fico", "adult",
)  # fmt: skip
PEERS = {"rulelist": "CLASSY", "wittgenstein": "RIPPER", "corels": "CORELS"}


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, wall seconds, CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def second_fit(X: Any, y: Any, **options: Any) -> tuple[jr.Fit[jr.RuleList], float, float]:
    """A fit after another with the same shapes."""
    options = {"literal_penalty": 1.0, **options}
    jr.ssrl.fit(X, y, missing="own_category", **options)
    return timed(lambda: jr.ssrl.fit(X, y, missing="own_category", **options))


def report(what: str, fit: jr.Fit[jr.RuleList], wall: float, cpu: float) -> None:
    insertions, each = fit.details["insertions"], 1e3 * cpu / fit.details["insertions"]
    print(
        f"  {what:24s} wall {wall:7.2f}, processor {cpu:7.2f} s; {insertions:3d} insertions of "
        f"{each:6.1f} ms; f = {fit.objective:.0f}, {len(fit.model.conjunctions)} rules; "
        f"{peak_memory():.2f} GiB so far",
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
        pool = literals_of(jr.as_table(X))
        pool = pool.take(np.flatnonzero(np.isfinite(pool.lower)))
        report("gas-sized, 10", *second_fit(X, y, max_rules=10, propositions=pool))


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
    for name in ("fico_binary",) if quick else SIZES:
        data, measured = jr.datasets.load(name), defaultdict[str, list[dict[str, Any]]](list)
        for seed in range(1 if quick else SPLITS):
            train, test = jr.datasets.train_test_split(data, test_size=0.2, seed=seed)
            print(f"\n{name}, split {seed}: test accuracy on {len(test)} rows after {len(train)}")
            for method, found in on_split(train, test, SIZES.get(name, (10,))):
                print(f"  {method:8s} {told(found)}", flush=True)
                if not isinstance(found, str):
                    measured[method].append(found)
        print(
            f"{name}, medians over the splits; processor seconds over those of SSRL of each size, "
            "split by split"
        )
        ours = [method for method in measured if method.startswith("SSRL")]
        for method, own in measured.items():
            accuracy, rules, cpu = (
                np.median([one[key] for one in own]) for key in ("accuracy", "rules", "cpu")
            )
            ratios = [
                np.median(
                    [one["cpu"] / two["cpu"] for one, two in zip(own, measured[size], strict=True)]
                )
                for size in ours
                if len(own) == len(measured[size])
            ]
            beside = (
                "" if method in ours else ", times " + ", ".join(f"{ratio:.1f}" for ratio in ratios)
            )
            print(
                f"  {method:8s} {accuracy:.4f}, {rules:.0f} rules, {cpu:.2f} s{beside}", flush=True
            )


def on_split(
    train: Any, test: Any, sizes: Sequence[int]
) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """For every method, its measurements or why it did not run."""
    for size in sizes:
        fit, wall, cpu = second_fit(train.X, train.y, max_rules=size)
        right = int((jr.predict(fit.model, test.X) == test.y).sum())
        yield f"SSRL, {size}", {
            "accuracy": right / len(test), "right": right, "rules": len(fit.model.conjunctions),
            "literals": int(fit.model.conjunctions.propositions.sum()), "wall": wall, "cpu": cpu,
        }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        save(train, test, Path(folder) / "data.npz")
        for package, method in PEERS.items():
            yield method, peer(package, Path(folder) / "data.npz")


def exact(quick: bool) -> None:
    data = jr.datasets.load("compas_binary")
    everything = {"min_support": 0.0, "max_evaluations": None}
    jr.exact_list.fit(
        data.X, data.y, max_rules=2, **everything
    )  # compiles, or reads what was compiled before
    print(f"\nexact: compas_binary, {len(data)} rows, 24 literals, literal_penalty 1")

    def certified(what: str, **options: Any) -> jr.Fit[jr.RuleList]:
        fit, wall, cpu = timed(lambda: jr.exact_list.fit(data.X, data.y, **everything | options))
        print(
            f"  {what:34s} f = {fit.objective:.1f}, bound {fit.bound:.1f}, {fit.status}; "
            f"{fit.details['conditions']} conditions, {fit.details['evaluations']:.3g} "
            f"evaluations, {fit.details['nodes']} nodes; wall {wall:.2f}, processor {cpu:.2f} s",
            flush=True,
        )
        return fit

    for rules in (3, 4) if quick else (3, 4, 5):
        pairs = certified(f"{rules} rules, 2 literals", max_rules=rules, time_limit=300)
        if rules < 5:
            limit = 60 if quick else 300
            triples = certified(
                f"{rules} rules, 3 literals", max_rules=rules, max_length=3, time_limit=limit
            )
            print(
                f"    a third literal is worth {triples.objective - pairs.objective:.0f} rows or "
                f"more, and at most {triples.bound - pairs.objective:.0f}"
            )
    for rules in (2, 3):
        certified(
            f"{rules} rules, 1 literal, program",
            max_rules=rules,
            max_length=1,
            method="mip",
            time_limit=60,
        )
        certified(f"{rules} rules, 1 literal, search", max_rules=rules, max_length=1)
    for within in (0.001, 0.01):
        found, wall, cpu = timed(
            lambda share=within: jr.exact_list.near_optimal(
                data.X, data.y, within=share, min_support=0.0
            )
        )
        agree = (found.possible(data.X).sum(axis=1) == 1).mean()
        print(
            f"  3 rules, within {within:.1%}: {len(found)} lists, complete: {found.complete}; they "
            f"agree on {agree:.1%} of the rows; wall {wall:.2f}, processor {cpu:.2f} s"
        )
    against_corels(data)


PROOFS = (
    ("compas_binary", 2, 4),
    ("monks1", 2, 4),
    ("monks2", 2, 4),
    ("monks3", 2, 4),
    ("fico_binary", 1, 5),
    ("fico_binary", 2, 3),
    ("fico_binary", 2, 4),
    ("fico", 1, 3),
)
"""Data, literals of a condition, rules of a list."""
BINARY = ("compas_binary", "monks1", "monks2", "monks3", "fico_binary")
OTHERS = (
    "titanic", "tic_tac_toe", "heart", "breast_cancer", "banknote", "liver", "voice", "telco_churn",
    "ibm_hr", "bank", "magic", "adult_train",
)  # fmt: skip
COLUMNS = 12


def monks(problem: int) -> Any:
    """The rows of a monk's problem (Thrun et al. 1991): all 432, without noise."""
    sizes = (3, 3, 2, 3, 4, 2)
    a = np.array(list(itertools.product(*(range(1, size + 1) for size in sizes))))
    y = {
        1: (a[:, 0] == a[:, 1]) | (a[:, 4] == 1),
        2: (a == 1).sum(axis=1) == 2,
        3: ((a[:, 4] == 3) & (a[:, 3] == 1)) | ((a[:, 4] != 4) & (a[:, 1] != 3)),
    }[problem]
    names = [f"a{i}_{value}" for i, size in enumerate(sizes) for value in range(1, size + 1)]
    columns = [(a[:, i] == v) * 1.0 for i, size in enumerate(sizes) for v in range(1, size + 1)]
    return Problem(jr.as_table(dict(zip(names, columns, strict=True))), y.astype(int))


class Problem(NamedTuple):
    X: jr.Table
    y: Any

    def __len__(self) -> int:
        return len(self.y)


def proofs(quick: bool) -> None:
    print("\nproofs: penalty 1, all conditions that hold for one row (fico: one in a hundred)")
    sets = {
        name: monks(int(name[-1])) if name.startswith("monks") else jr.datasets.load(name)
        for name, _, _ in PROOFS
    }
    tiny = monks(1)
    jr.exact_list.fit(tiny.X, tiny.y, max_rules=2)  # compiles
    for name, length, rules in PROOFS:
        data, least = sets[name], 0.01 if name == "fico" else 0.0
        fit, wall, cpu = timed(
            lambda of=data, rules=rules, length=length, least=least: jr.exact_list.fit(
                of.X, of.y, max_rules=rules, max_length=length, min_support=least,
                literal_penalty=1.0, max_evaluations=None, time_limit=10 if quick else 60,
            )
        )  # fmt: skip
        print(
            f"  {name}, {rules} rules of {length} literals, {fit.details['conditions']} "
            f"conditions: f = {fit.objective:.0f}, bound {fit.bound:.0f}, {fit.status}; wall "
            f"{wall:.2f}, processor {cpu:.2f} s",
            flush=True,
        )


def corels(quick: bool) -> None:
    print("\ncorels: lists of at most eight rules, of conditions of two literals; to the proof")
    tiny = monks(1)
    jr.exact_list.fit(tiny.X, tiny.y, max_rules=2)  # compiles
    for name in BINARY[: 1 if quick else None]:
        print(f"  {name}")
        against_corels(monks(int(name[-1])) if "monk" in name else jr.datasets.load(name), 60)
    for name in OTHERS[: 1 if quick else None]:
        print(f"  {name}, {COLUMNS} literals and their negations")
        against_corels(of_literals(jr.datasets.load(name)), 60)


def of_literals(data: Any) -> Problem:
    """The literals at three cut points that correlate most with the classes, as columns."""
    X = jr.as_table(data.X, missing="own_category")
    pool, y = literals_of(X, max_cut_points=3), np.searchsorted(np.unique(data.y), data.y)
    holds = pool.satisfied(X)
    strength = np.abs(np.array([np.corrcoef(column, y)[0, 1] for column in holds.T])).round(9)
    kept = []
    for j in np.argsort(-strength, kind="stable"):
        if all((holds[:, j] == holds[:, k]).mean() not in (0.0, 1.0) for k in kept):
            kept.append(j)
    names = [f"literal{j}" for j in kept[:COLUMNS]]
    return Problem(jr.as_table(dict(zip(names, 1.0 * holds[:, kept].T, strict=False))), y)


def bounds(quick: bool) -> None:
    print("\nbounds: SSRL with certificate=True; rules, literals a rule: f, bound, gap, proof")
    iris = jr.datasets.load("iris")
    jr.ssrl.fit(iris.X, iris.y, max_rules=2, max_length=2, certificate=True)  # compiles
    for name in BOUNDED[: 3 if quick else None]:
        data = jr.datasets.load(name)
        for rules, length in ((1, None), (2, 2), (3, 2), (20, 2), (20, None)):
            options: dict[str, Any] = {"max_rules": rules, "max_length": length}
            options["missing"] = "own_category"
            plain, _, before = timed(lambda of=data, o=options: jr.ssrl.fit(of.X, of.y, **o))
            fit, _, cpu = timed(
                lambda of=data, o=options: jr.ssrl.fit(of.X, of.y, certificate=True, **o)
            )
            print(
                f"  {name}, {rules}, {length or 'any'}: {plain.objective:.0f} -> "
                f"{fit.objective:.0f}, {fit.bound:.0f}, {fit.gap:.1%}, {fit.details.bounded_by}; "
                f"processor {before:.2f} -> {cpu:.2f} s",
                flush=True,
            )


def against_corels(data: Any, limit: float = 300) -> None:
    """The same conditions, the same penalty on a rule, any default."""
    literals = literals_of(data.X)
    rules = [rule for size in (1, 2) for rule in itertools.combinations(range(len(literals)), size)]
    pool = literals.conjunctions(rules)
    price = 0.005 * len(data)
    pool = replace(pool, propositions=np.ones(len(rules), np.int32))
    options = {
        "max_rules": 8,
        "literal_penalty": price,
        "default": "free",
        "max_evaluations": None,
        "time_limit": limit,
    }
    fit, wall, cpu = timed(lambda: jr.exact_list.fit(data.X, data.y, rules=pool, **options))
    print(
        f"  a rule costs {price:.1f}: {fit.objective:.1f}, bound {fit.bound:.1f}, "
        f"{len(fit.model.conjunctions)} rules; wall {wall:.2f}, processor {cpu:.2f} s",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        binary = np.column_stack(data.X.columns)
        y = np.searchsorted(np.unique(data.y), data.y)
        np.savez(path, binary_train=binary, binary_test=binary, y_train=y, y_test=y, price=0.005)
        print(
            f"  {'CORELS':8s} {told(peer('corels', path, 3 * limit))}; {price:.1f} a rule",
            flush=True,
        )


def save(train: Any, test: Any, path: Path) -> None:
    """Save columns as numbers, classes as codes, and rows as SSRL's literals (for binary peers)."""
    pool = literals_of(train.X)
    classes = np.unique(train.y)
    parts: dict[str, Any] = {}
    for part, rows in (("train", train), ("test", test)):
        parts[f"X_{part}"] = np.column_stack(rows.X.columns)
        parts[f"y_{part}"] = np.searchsorted(classes, rows.y)
        parts[f"binary_{part}"] = pool.satisfied(rows.X)
    np.savez(path, **parts)


def peer(package: str, path: Path, limit: float = 1800) -> dict[str, Any] | str:
    """The measurements of a peer's process, or why it did not run."""
    try:
        command = [str(python_of(package)), str(HERE / "rule_lists_peers.py"), package, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except NotRun as reason:
        return f"not run: {reason}"
    except subprocess.TimeoutExpired:
        return f"not finished after {limit:g} s"
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1]}"
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def told(measured: dict[str, Any] | str) -> str:
    if isinstance(measured, str):
        return measured
    return (
        f"{measured['accuracy']:.4f} ({measured['right']} rows), {measured['rules']} rules, "
        f"{measured['literals']} literals; wall {measured['wall']:.2f}, processor "
        f"{measured['cpu']:.2f} s"
    )


def main() -> None:
    parts = {
        "warm": warm,
        "growth": growth,
        "peers": peers,
        "exact": exact,
        "proofs": proofs,
        "corels": corels,
        "bounds": bounds,
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--quick", action="store_true", help="small data sets only")
    options = parser.parse_args()
    print(f"jaxrules {jr.__version__}, Python {sys.version.split()[0]}")
    for part in options.only:
        parts[part](options.quick)


if __name__ == "__main__":
    main()
