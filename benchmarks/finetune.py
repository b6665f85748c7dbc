"""Rule ensembles by gradient descent: the speed of LTRNet, and what fine-tuning
gains and where it harms.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/finetune.py \\
        [--only speed|tuning] [--repeats 10] [--rows 500]

- speed: six restarts of 250 steps, ten rules of five propositions, 500 rows, with discretisation
  and refits. It times the first fit of a fresh process with an empty compilation cache, and warm
  fits on other samples.
- tuning: the ten data sets of the LLTBoost paper and five with categories or more skew. The
  training set is a bootstrap sample of at most `--rows` rows; the out-of-bag rows are the test set.
  Starts are LLTBoost (oblique), corrective greedy boosting (axis-parallel), both with three and
  with six rules, and RuleFit. The script prints the mean test risks of the start, of the tuned
  rules without the guard, and with it, all of the same complexity. Regression targets are
  standardised, so risks of the squared loss are shares of the variance. Then, per start, it prints
  the geometric mean of the ratios to the start's risk, how many fits became worse and better by
  over 2 %, and the worst.

CPU time is printed beside wall time: other programs on the machine disturb it less.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import jaxrules as jr
from jaxrules.data.datasets import Dataset

RESULTS = Path(__file__).parent / "results"
PAPER = (
    "california_housing",
    "red_wine_quality",
    "diabetes",
    "friedman1",
    "used_cars",
    "breast_cancer",
    "banknote",
    "voice",
    "magic",
    "liver",
)
OWN = ("boston", "insurance", "bike_day", "titanic", "telco_churn")
SMALL = tuple(
    f"small_{name}"
    for name in (
        "australian", "bands", "birthwt", "breast", "bupa", "caschool", "chile", "cpus", "crx",
        "fair", "hedonic", "housevotes", "housing", "monk_2", "participation", "quine", "sonar",
        "tae",
    )
)  # fmt: skip
SPEED = ("banknote", "friedman1", "red_wine_quality", "breast_cancer")
ROWS, TEST_ROWS, RULES = 500, 5000, (3, 6)


def sample(data: Dataset, repeat: int, rows: int = ROWS) -> tuple[Dataset, Dataset]:
    """A bootstrap sample and the out-of-bag rows; regression targets are
    standardised by the sample.
    """
    rng = np.random.default_rng([repeat, len(data)])
    drawn = rng.integers(0, len(data), min(len(data), rows))
    rest = rng.permutation(np.setdiff1d(np.arange(len(data)), drawn))[:TEST_ROWS]
    if data.task == "regression":
        y = np.asarray(data.y, np.float64)
        data = Dataset(data.name, data.X, (y - y[drawn].mean()) / y[drawn].std(), data.task)
    return data[drawn], data[rest]


def loss_of(data: Dataset) -> Any:
    return "squared" if data.task == "regression" else "logistic"


# Speed


def fit(name: str, repeat: int, training: Any) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds, objective."""
    train, _ = sample(jr.datasets.load(name), repeat)
    wall, cpu = time.perf_counter(), time.process_time()
    found = jr.ltrnet.fit(
        train.X, train.y, loss=loss_of(train), training=training, restarts=6, iterations=250
    )
    return time.perf_counter() - wall, time.process_time() - cpu, found.objective


def speed(repeats: int) -> None:
    print(f"LTRNet: six restarts of 250 steps, {ROWS} rows (seconds, wall / processor)")
    for training in ("soft", "straight_through"):
        for name in SPEED:
            with tempfile.TemporaryDirectory() as cache:
                environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": cache}
                program = f"import finetune; print(*finetune.fit({name!r}, 0, {training!r}))"
                command = [sys.executable, "-c", program]
                first = subprocess.run(
                    command,
                    env=environment,
                    cwd=Path(__file__).parent,
                    capture_output=True,
                    text=True,
                    check=True,
                )
            wall, cpu, _ = map(float, first.stdout.split())
            fit(name, 0, training)
            warm = [fit(name, repeat, training) for repeat in range(1, repeats + 1)]
            walls, cpus = ([one[i] for one in warm] for i in (0, 1))
            middle = f"{statistics.median(walls):.3f} / {statistics.median(cpus):.3f}"
            print(
                f"  {training:16s} {name:17s} first {wall:5.2f} / {cpu:5.2f}   warm: median "
                f"{middle}, least {min(walls):.3f} / {min(cpus):.3f}",
                flush=True,
            )


# Tuning


def starts(train: Dataset, repeat: int) -> Iterator[tuple[str, jr.RuleEnsemble]]:
    """Fitted models, by name."""
    common: dict[str, Any] = {"loss": loss_of(train), "missing": "own_category"}
    oblique = jr.lltboost.path(train.X, train.y, max_rules=max(RULES), seed=repeat, **common)
    straight = jr.boosting.path(
        train.X,
        train.y,
        max_rules=max(RULES),
        search="greedy",
        objective="gradient_sum",
        corrective=True,
        intercept=True,
        per_unit=False,
        l2_penalty=1e-3 * len(train),
        max_length=3,
        max_cut_points=20,
        **common,
    )
    for name, path in (("LLTBoost", oblique), ("boosting", straight)):
        for rules in RULES:
            if len(path) >= rules:
                yield f"{name} {rules}", path[rules - 1].model
    yield "RuleFit", jr.rulefit.fit(train.X, train.y, l1_penalty=0.05, seed=repeat, **common).model


def tuned(name: str, repeat: int, rows: int) -> Iterator[dict[str, Any]]:
    """One row per start."""
    train, test = sample(jr.datasets.load(name), repeat, rows)
    for start, model in starts(train, repeat):
        row: dict[str, Any] = {"set": name, "repeat": repeat, "start": start}
        began = time.process_time()
        fits = {
            str(guard): jr.finetune(model, train.X, train.y, guard=guard, seed=repeat)
            for guard in (False, True)
        }
        row["cpu"] = (time.process_time() - began) / 2
        for key, one in {"start": model, **{key: fit.model for key, fit in fits.items()}}.items():
            row[f"risk {key}"] = jr.risk(one, test.X, test.y)
            row[f"complexity {key}"] = jr.complexity(one, "nonzeros")
        yield {**row, "accepted": fits["True"].details["accepted"]}


def tuning(repeats: int, names: tuple[str, ...], n_rows: int) -> None:
    print(
        f"\nFine-tuning: {repeats} repetitions; complexity, test risk of the start / tuned / under "
        "the guard (accepted)"
    )
    RESULTS.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = []
    for name in names:
        rows += [row for repeat in range(repeats) for row in tuned(name, repeat, n_rows)]
        (RESULTS / "finetune.json").write_text(json.dumps(rows))
        for start in dict.fromkeys(row["start"] for row in rows):
            of_set = [row for row in rows if (row["set"], row["start"]) == (name, start)]
            if of_set:
                mean = {
                    key: np.mean([row[key] for row in of_set])
                    for key in of_set[0]
                    if key not in ("set", "start")
                }
                print(
                    f"  {name:18s} {start:10s} {mean['complexity start']:6.1f}  "
                    f"{mean['risk start']:.3f} /"
                    f" {mean['risk False']:.3f} / {mean['risk True']:.3f} ({mean['accepted']:.0%})",
                    flush=True,
                )
    print(
        "\nratio to the start's risk: geometric mean, worse by over 2 %, better by over 2 %, "
        "worst; processor seconds"
    )
    for start in dict.fromkeys(row["start"] for row in rows):
        of_start = [row for row in rows if row["start"] == start]
        assert all(row["complexity True"] <= row["complexity start"] for row in of_start)
        cpu = statistics.median(row["cpu"] for row in of_start)
        for key, label in (("False", "tuned"), ("True", "guarded")):
            ratios = np.array([row[f"risk {key}"] / row["risk start"] for row in of_start])
            print(
                f"  {start:10s} {label:7s} {np.exp(np.log(ratios).mean()):.3f}  "
                f"{np.mean(ratios > 1.02):4.0%}"
                f"  {np.mean(ratios < 0.98):4.0%}  {ratios.max():.2f}   {cpu:.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("speed", "tuning"))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--sets", nargs="+", choices=(*PAPER, *OWN, *SMALL), default=(*PAPER, *OWN))
    options = parser.parse_args()
    print(f"jaxrules {jr.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if options.only != "tuning":
        speed(options.repeats)
    if options.only != "speed":
        tuning(options.repeats, tuple(options.sets), options.rows)


if __name__ == "__main__":
    main()
