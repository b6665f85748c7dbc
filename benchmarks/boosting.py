"""Optimal rule boosting against its authors' realkd 0.2.1: the same propositions,
penalties and stage objectives.

    python benchmarks/boosting.py [--limit 900] [--only wine,titanic] [--no-peer]

realkd gets --limit seconds for every instance. The ratio compares cumulative CPU seconds up to the
last stage that both finish. It is given with realkd's search contexts, for which its users wait,
and without them. The script asserts that the objectives of all common stages agree to 1e-10. Our
time is the CPU time of a whole `boosting.fit`: the median of five runs, or of half a second's worth
if that is more; one run if it takes above two seconds. Compiling (first process) and loading (later
processes) are timed separately. Peak memory is that of a fresh process with one fit of ten rules.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import jaxrules as jr
from jaxrules.ensembles import boosting
from jaxrules.rules.conditions import PropositionPool, propositions_of

sys.path.insert(0, str(Path(__file__).parent))
from memory import peak_memory
from peers import NotRun, python_of

RESULTS = Path(__file__).parent / "results"
STAGES = 10


@dataclass(frozen=True)
class Instance:
    """One row of the table; `bar` is the ratio to beat."""

    name: str
    loss: str
    l2_penalty: float
    max_col_attr: int
    positive: Any = None
    rows: int | None = None
    bar: float | None = None


INSTANCES = {
    "wine": Instance("wine", "logistic", 1.0, 10, positive="class_1"),
    "breast_cancer_77": Instance("breast_cancer", "logistic", 2.0, 4, bar=350),
    "breast_cancer_257": Instance("breast_cancer", "logistic", 10.0, 10),
    "diabetes": Instance("diabetes", "squared", 2.0, 10, bar=600),
    "friedman1_50": Instance("friedman1", "squared", 2.0, 6, bar=60),
    "friedman1_90": Instance("friedman1", "squared", 1.0, 10),
    "boston": Instance("boston", "squared", 5.0, 8, bar=600),
    "titanic": Instance("titanic_orb", "logistic", 1.0, 10, rows=712, bar=200),
    "tic_tac_toe": Instance("tic_tac_toe", "logistic", 2.0, 10, bar=200),
}


def load(instance: Instance) -> tuple[jr.Table, np.ndarray]:
    """The features, and the target as numbers or -1 / +1."""
    data = jr.datasets.load(instance.name)
    table, y = data.X, np.asarray(data.y)
    if instance.rows is not None:
        table, y = table[: instance.rows], y[: instance.rows]
    if instance.loss == "squared":
        return table, y.astype(np.float64)
    labels = np.unique(y)
    positive = (
        instance.positive
        if instance.positive in labels
        else (labels[1] if len(labels) < 4 else None)
    )
    return table, np.where(y == positive, 1.0, -1.0)


def write_csv(path: Path, table: jr.Table, y: np.ndarray) -> None:
    """The data with columns named c0, c1, ...; numbers in full precision."""
    columns = []
    for feature, column in zip(table.schema.features, table.columns, strict=True):
        columns.append(
            [repr(float(v)) for v in column]
            if feature.categories is None
            else [f"v_{feature.categories[code]}" for code in column]
        )
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"c{i}" for i in range(len(columns))] + ["target"])
        writer.writerows(zip(*columns, map(repr, y.tolist()), strict=True))


def realkd_pool(texts: list[str], table: jr.Table) -> PropositionPool:
    """realkd's attributes, such as ``c3<=0.5`` or ``c1==v_male``, as our propositions."""
    pool: list[jr.Condition] = []
    for text in texts:
        match = re.fullmatch(r"c(\d+)(<=|>=|==)(.*)", text)
        assert match is not None, text
        feature = int(match[1])
        if match[2] == "==":
            categories = table.schema.features[feature].categories or ()
            pool.append(jr.Condition.one_of(feature, [categories.index(match[3][2:])]))
        else:
            compare = jr.Condition.at_most if match[2] == "<=" else jr.Condition.at_least
            pool.append(compare(feature, float(match[3])))
    return PropositionPool.of(table.schema, pool)


def run_peer(
    instance: Instance, table: jr.Table, y: np.ndarray, limit: float
) -> tuple[list[str], list[dict[str, Any]]]:
    """realkd's propositions and the stages it finishes within the limit."""
    python = python_of("realkd")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        write_csv(path, table, y)
        script = Path(__file__).with_name("boosting_realkd.py")
        command = [str(python), str(script), str(path), instance.loss, str(instance.l2_penalty)]
        command += [str(instance.max_col_attr), str(STAGES if limit > 0 else 0)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                command, stdout=out, stderr=errors, text=True, env=environment
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=limit if limit > 0 else 120)
            process.kill()
            code = process.wait()
            out.seek(0)
            errors.seek(0)
            lines = [json.loads(line) for line in out.read().splitlines() if line.endswith("}")]
            if not lines:
                raise NotRun(f"realkd ended with code {code}: {errors.read().strip()[-200:]}")
    return lines[0]["propositions"], lines[1:]


def ours(
    instance: Instance, table: jr.Table, y: np.ndarray, pool: PropositionPool, rules: int
) -> tuple[Any, float]:
    """The fit, and its CPU seconds."""
    options: Any = {
        **boosting.PAPER,
        "loss": instance.loss,
        "l2_penalty": instance.l2_penalty,
        "propositions": pool,
    }
    seconds: list[float] = []
    fit = None
    while not seconds or (sum(seconds) < 2.0 and len(seconds) < 5) or sum(seconds) < 0.5:
        start = time.process_time()
        fit = boosting.fit(table, y, max_rules=rules, **options)
        seconds.append(time.process_time() - start)
    return fit, statistics.median(seconds)


def compare(key: str, instance: Instance, limit: float) -> dict[str, Any]:
    """One row of the table."""
    table, y = load(instance)
    texts, stages = run_peer(instance, table, y, limit)
    pool = realkd_pool(texts, table)
    fit, seconds = ours(instance, table, y, pool, STAGES)
    row: dict[str, Any] = {
        "instance": key,
        "rows": table.n_rows,
        "propositions": fit.details["propositions"],
        "l2_penalty": instance.l2_penalty,
        "seconds_10_rules": round(seconds, 4),
        "evaluations": sum(stage.evaluations for stage in fit.details["stages"]),
        "largest_gap": max(stage.gap for stage in fit.details["stages"]),
        "peak_memory_gib": memory_of_a_fit(instance, texts),
        "stages": len(stages),
        "bar": instance.bar,
    }
    common = min(len(stages), len(fit.details["stages"]))
    for mine, theirs in zip(fit.details["stages"], stages, strict=False):
        assert abs(mine.objective - theirs["objective"]) <= 1e-10 * abs(theirs["objective"]), (
            key,
            mine,
            theirs,
        )
    if common:
        _, part = ours(instance, table, y, pool, common)
        row["ours"], row["realkd"] = round(part, 4), round(stages[common - 1]["seconds"], 2)
        search = stages[common - 1]["seconds"] - stages[common - 1]["building"]
        row["ratio"], row["ratio_search_only"] = round(row["realkd"] / part), round(search / part)
    return row


def memory_of_a_fit(instance: Instance, texts: list[str]) -> float:
    """GiB of a fresh process with one fit."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_fit_and_look, instance, texts).result()


def _fit_and_look(instance: Instance, texts: list[str]) -> float:
    table, y = load(instance)
    boosting.fit(
        table,
        y,
        loss=instance.loss,
        propositions=realkd_pool(texts, table),
        max_rules=STAGES,
        **boosting.PAPER | {"l2_penalty": instance.l2_penalty},
    )
    return round(peak_memory(), 3)


def startup() -> Iterator[tuple[str, float]]:
    """Seconds until the compiled search can be used: in the first process and in a later one."""
    code = (
        "import time, jaxrules; s = time.process_time(); import "
        "jaxrules.solvers.rule_search.kernels;print(time.process_time() - s)"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first process (compiles)", "later process (loads)"):
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
            done = subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, check=True
            )
            yield name, float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--limit", type=float, default=900.0, help="seconds for realkd per instance"
    )
    parser.add_argument(
        "--only", default=",".join(INSTANCES), help="instances, separated by commas"
    )
    parser.add_argument("--no-startup", action="store_true", help="skip timing the compilation")
    arguments = parser.parse_args()
    if not arguments.no_startup:
        for name, seconds in startup():
            print(f"{name}: {seconds:.2f} CPU s")
    boosting.fit(np.eye(4), np.arange(4.0), max_rules=1, **boosting.PAPER)  # load the kernels
    rows = []
    for key in arguments.only.split(","):
        try:
            row = compare(key, INSTANCES[key], arguments.limit)
        except NotRun as reason:
            print(f"{key}: not run: {reason}")
            continue
        rows.append(row)
        print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    telco = jr.datasets.load("telco_churn")
    pool = propositions_of(telco.X, max_cut_points=4)
    for name, chosen in {"with ==": pool.take(~pool.unseen), "with == and !=": pool}.items():
        start = time.process_time()
        fit = boosting.fit(
            telco.X,
            telco.y,
            loss="logistic",
            propositions=chosen,
            time_limit=300,
            **boosting.PAPER | {"l2_penalty": 10.0},
        )
        print(
            f"telco_churn ({telco.X.n_rows} rows, {len(chosen)} propositions {name}), lambda 10: "
            f"{time.process_time() - start:.2f} CPU s, largest gap "
            f"{max(s.gap for s in fit.details['stages']):.2g}"
        )
    print(f"peak memory {peak_memory():.2f} GiB")
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "boosting.json").open("w") as file:
        json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
