"""Time and memory against rows, rules, columns and devices, learner by learner.

    python benchmarks/scale.py [--parts rows sample blocks rules columns ...]
    [--only lire boosting] [--sizes 10000 100000] [--limit 150] [--memory 20] [--draw FOLDER]

- rows: 20 columns; 10^4, 10^5 and 10^6 rows. Ask for 10^7 by `--sizes`.
- sample: as rows, by `jr.fit_on_sample`, and boosting on all rows beside it; 10^6 rows.
- blocks: the same on 10^7 rows, from a function that makes blocks of 10^5, twice.
- rules: given rules on 10^4 rows: 100, 1000, 10 000 and 25 000.
- columns: 10^4 rows; 20, 100 and 300 columns.
- wide: 100 rows; 500 and 5000 columns.
- devices: 10^5 rows over 1, 2 and 4 virtual devices of the CPU, the first and a second call. They
  share its cores: what is measured is the cost of splitting, not a gain.
- fire: LIRE's path of five penalties over 10 955 given rules on 25 000 rows, the size that the
  FIRE paper states.
- batches: 8 penalties, and 5 folds of 4 penalties, side by side as one program and one after the
  other, on 10^4 rows and 200 given rules; second calls, so that nothing compiles.
- caches: the first and the second fit of a process, with the caches of numba and JAX empty, and
  filled by an earlier process; 2000 rows. A fit with NumPy comes before those of LIRE and RuleFit
  with JAX.

Data and given rules are those of `large.py`. Every cell runs in its own process, where a fit of
5000 rows comes first: it imports what the learner needs, and loads or compiles numba's kernels,
also those that would wait until they repay it.

- `CPU s`: of the measured call, all threads; `clock s` beside it is longer on a busy machine.
- `compile s`: how much of the clock JAX spent lowering and compiling programs for these shapes.
- `GiB`: peak of the process less its peak before the data were made, so X is included.
- `slope`: of log CPU s against log size, from the size before.

A cell that exceeds `--limit` CPU seconds or `--memory` GiB says so, and larger sizes of its row are
left out. The tables also go to results/scale_PART.csv; `--draw` makes pictures of these files.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
WARM_ROWS = 5000
_PATIENCE = 20
"""Times the limit of a cell: the clock of a busy machine."""
GIVEN = {"rows": 1000, "devices": 200}
"""The number of given rules for learners that need some, where it does not vary."""
SIZES: dict[str, list[int]] = {
    "rows": [10_000, 100_000, 1_000_000],
    "sample": [1_000_000],
    "blocks": [10_000_000],
    "rules": [100, 1000, 10_000, 25_000],
    "columns": [20, 100, 300],
    "wide": [500, 5000],
    "devices": [1, 2, 4],
    "fire": [10_955],
    "batches": [1],
    "caches": [2000],
}
LEARNERS: dict[str, list[str]] = {
    "rows": [
        "boosting", "lire", "rulefit", "glrm", "lltboost", "ssrl", "exact_list", "predict",
    ],
    "sample": [
        "boosting", "boosting, all rows", "lire", "rulefit", "glrm", "lltboost", "ssrl",
        "exact_list",
    ],
    "blocks": ["boosting"],
    "rules": ["lire", "rulefit", "predict"],
    "columns": ["boosting", "lire", "glrm", "lltboost", "ssrl", "exact_list"],
    "wide": ["boosting", "lire", "rulefit", "glrm", "lltboost", "ltrnet", "ssrl", "exact_list",
             "regression_list"],
    "devices": ["lire", "rulefit", "lltboost", "ssrl", "predict"],
    "fire": ["lire path"],
    "batches": ["penalties numpy", "penalties in turn", "penalties side by side", "folds numpy",
                "folds side by side"],
    "caches": ["boosting", "exact_list", "lire jax", "rulefit jax", "lltboost", "ltrnet", "drnet",
               "ssrl", "glrm", "regression_list", "lire optimal"],
}  # fmt: skip
BLOCK = 100_000
FIELDS = ("learner", "size", "cpu", "clock", "compile", "gib", "slope", "reached")


# One cell, in its own process


def call(part: str, learner: str, X: Any, y: Any, rules: Any) -> Any:
    """The fit or the prediction of a cell."""
    import jaxrules as jr

    if part in ("sample", "blocks"):
        name, _, whole = learner.partition(",")
        fit = getattr(jr, name).fit
        return fit(X, y) if whole else jr.fit_on_sample(fit, X, y)
    given: dict[str, Any] = {"rules": rules}
    if part == "devices" and learner == "lire":
        return jr.lire.fit(X, y, **given, engine="jax")
    if part == "wide":
        return getattr(jr, learner).fit(X, X[:, 0] if learner == "regression_list" else y)
    if learner == "rulefit" or learner == "rulefit jax":
        given |= {"engine": "jax"} if part == "devices" or learner == "rulefit jax" else {}
        return jr.rulefit.fit(X, y, **given, l1_penalty=0.001)
    if learner == "lire path":
        return jr.lire.path(X, y, **given)[-1]
    if learner == "lire jax":
        return jr.lire.fit(X, y, **given, engine="jax")
    if learner == "lire" and part in ("rules", "caches"):
        return jr.lire.fit(X, y, **given)
    if learner == "lire optimal":
        return jr.lire.optimal(X[:, :3], y, max_length=1, global_penalty=0.02)
    options = {"max_rules": 3} if part == "devices" else {}
    return getattr(jr, learner).fit(X, y, **options)


def batch(name: str, X: Any, y: Any, rules: Any) -> Any:
    """Penalties or folds of LIRE, side by side or one after the other."""
    import jaxrules as jr

    what, _, how = name.partition(" ")
    engine = "numpy" if how == "numpy" else "jax"
    gammas = np.geomspace(0.02, 0.002, 8 if what == "penalties" else 4).tolist()
    common: dict[str, Any] = {"rules": rules, "engine": engine}
    if what == "folds":
        return jr.lire.cross_validate(
            X, y, **common, global_penalties=gammas, l2_penalties=[8.0], n_folds=5
        )
    if how == "in turn":
        fits = [
            jr.lire.fit(X, y, **common, global_penalty=gamma, l2_penalty=8.0) for gamma in gammas
        ]
        return fits[-1]
    return jr.lire.path(X, y, **common, global_penalties=gammas)[-1]


def predictor(part: str, X: np.ndarray, n_rules: int) -> Callable[[], Any]:
    """Scores of random rules, on the host or split over devices under `jax.jit`."""
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec
    from predict import random_model

    import jaxrules as jr

    model = random_model(n_rules, X.shape[1], np.random.default_rng(1))
    if part != "devices":
        return lambda: jr.predict(model, X)
    mesh = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(AxisType.Auto,))
    rows = jax.device_put(X, NamedSharding(mesh, PartitionSpec("rows")))
    score = jax.jit(lambda X: jr.decision_function(model, X))
    return lambda: jax.block_until_ready(score(rows))


def watched() -> list[float]:
    """Where JAX reports the seconds of every program that it lowers or compiles from now on."""
    import jax

    seconds: list[float] = []

    def listen(event: str, duration: float, **_: Any) -> None:
        if event.endswith(("backend_compile_duration", "jaxpr_to_mlir_module_duration")):
            seconds.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return seconds


def shape(part: str, size: int) -> tuple[int, int, int]:
    """Rows, columns and given rules of a cell."""
    return {
        "rows": (size, 20, GIVEN["rows"]),
        "sample": (size, 20, 1),
        "blocks": (size, 20, 1),
        "rules": (10_000, 20, size),
        "columns": (10_000, size, 1),
        "wide": (100, size, 1),
        "devices": (100_000, 20, GIVEN["devices"]),
        "fire": (25_000, 20, size),
        "batches": (10_000, 20, 200),
        "caches": (size, 20, 200),
    }[part]


def measure(part: str, learner: str, size: int) -> dict[str, Any]:
    """Make the call of a cell."""
    import jax
    from large import problem
    from memory import peak_memory

    import jaxrules as jr
    from jaxrules.tools import kernels

    n_rows, n_columns, n_rules = shape(part, size)
    mesh = contextlib.nullcontext()
    if part == "devices":
        mesh = jr.rows_over(jax.make_mesh((jax.device_count(),), ("rows",)))

    def blocks(n_rows: int) -> Iterator[Any]:
        for k in range(-(-n_rows // BLOCK)):
            yield problem(min(BLOCK, n_rows), 1, seed=k, n_columns=n_columns)[:2]

    def calls(n_rows: int, n_rules: int) -> Callable[[], Any]:
        if part == "blocks":
            return lambda: call(part, learner, lambda: blocks(n_rows), None, None)
        X, y, rules = problem(n_rows, 1 if learner == "predict" else n_rules, n_columns=n_columns)
        if learner == "predict":
            return predictor(part, X, n_rules)
        if part == "batches":
            return lambda: batch(learner, X, y, rules)
        return lambda: call(part, learner, X, y, rules)

    with mesh:
        first = (
            calls(n_rows, n_rules)
            if part == "batches"
            else calls(min(WARM_ROWS, n_rows), min(n_rules, 100))
        )
        if part != "caches":
            kernels._REPAYS = 0.0  # a fit of 5000 rows would not wait for them
            first()
        elif learner.endswith(" jax"):  # NumPy imports what both engines need
            call(part, learner.removesuffix(" jax"), *problem(n_rows, n_rules))
        before, seconds = peak_memory(), watched()
        made = calls(n_rows, n_rules)
        cpu, clock = time.process_time(), time.perf_counter()
        found = made()
        cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
        result = {
            "cpu": cpu, "clock": clock, "compile": sum(seconds), "gib": peak_memory() - before,
            "reached": "",
        }  # fmt: skip
        reached = []
        if part in ("caches", "devices"):
            cpu = time.process_time()
            made()
            reached = [f"second call {time.process_time() - cpu:.2f} CPU s"]
        if part != "caches" and hasattr(found, "status"):
            model = found.model
            rules = len(getattr(model, "conjunctions", model))
            reached += [f"objective {found.objective:.10g}", f"{rules} rules", str(found.status)]
        result["reached"] = ", ".join(reached)
    return result


# All cells


def cell(
    part: str, learner: str, size: int, limit: float, memory: float, caches: Path | None = None
) -> dict[str, Any]:
    """What a fresh process measured, or which limit it exceeded."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 2**30),) * 2)

    own = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if part == "devices":
        own["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={size}"
    if caches is not None:
        own["NUMBA_CACHE_DIR"] = str(caches / "numba")
        own["JAX_COMPILATION_CACHE_DIR"] = str(caches / "jax")
        own["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    command = [sys.executable, __file__, "--one", part, learner, str(size)]
    found: dict[str, Any] = {"learner": learner, "size": size}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | own,
            preexec_fn=limited, timeout=_PATIENCE * limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return found | {"reached": f"over {_PATIENCE * limit:.0f} s of the clock"}
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return found | {"reached": f"over {limit:.0f} s"}
    last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
    if done.returncode and any(
        word in done.stderr for word in ("MemoryError", "bad_alloc", "RESOURCE_EXHAUSTED")
    ):
        return found | {"reached": f"over {memory:g} GiB ({last[:60]})"}
    if done.returncode:
        return found | {"reached": f"failed: {last}"}
    return found | json.loads(done.stdout.splitlines()[-1])


def cells(
    part: str, learners: list[str], sizes: list[int], limit: float, memory: float
) -> Iterator[dict[str, Any]]:
    """Row by row; a learner that exceeds a limit is not asked for more."""
    for learner in learners:
        if part == "caches":
            with tempfile.TemporaryDirectory() as folder:
                for state in ("empty", "filled"):
                    found = cell(part, learner, sizes[0], limit, memory, Path(folder))
                    yield found | {"learner": f"{learner}, {state}"}
            continue
        before = measured_below(part, learner, sizes[0])
        for size in sizes:
            found = cell(part, learner, size, limit, memory)
            if before is not None and "cpu" in found and part != "devices":
                found["slope"] = math.log(found["cpu"] / before["cpu"]) / math.log(
                    size / before["size"]
                )
            yield found
            if "cpu" not in found:
                break
            before = found


def line(found: dict[str, Any]) -> str:
    numbers = {"cpu": "9.2f", "clock": "9.2f", "compile": "10.2f", "gib": "7.2f", "slope": "6.2f"}
    columns = [
        f"{found[name]:{form}}" if name in found else " " * int(form.split(".")[0])
        for name, form in numbers.items()
    ]
    return f"{found['learner']:24s}{found['size']:>9d}{''.join(columns)}  {found['reached']}"


def stored(part: str, rows: list[dict[str, Any]]) -> None:
    """The rows beside those of earlier runs for other cells."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"scale_{part}.csv"
    known = {(row["learner"], str(row["size"])): row for row in read(part)}
    known |= {(row["learner"], str(row["size"])): row for row in rows}
    with file.open("w", newline="") as target:
        writer = csv.DictWriter(target, FIELDS)
        writer.writeheader()
        writer.writerows(known.values())


def measured_below(part: str, learner: str, size: int) -> dict[str, Any] | None:
    """The largest smaller size that an earlier run measured."""
    smaller = [
        {"size": int(row["size"]), "cpu": float(row["cpu"])}
        for row in read(part)
        if row["learner"] == learner and row["cpu"] and int(row["size"]) < size
    ]
    return max(smaller, key=lambda row: row["size"], default=None)


def read(part: str) -> list[dict[str, Any]]:
    file = RESULTS / f"scale_{part}.csv"
    if not file.exists():
        return []
    with file.open(newline="") as source:
        return list(csv.DictReader(source))


def drawn(part: str, folder: Path) -> None:
    """CPU seconds and memory of a part against its size, both on logarithmic axes."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 8.5, "svg.hashsalt": "jaxrules"})
    rows = [row for row in read(part) if row["cpu"]]
    names = [name for name in LEARNERS[part] if any(row["learner"] == name for row in rows)]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3), layout="constrained")
    for panel, field, label in zip(
        axes, ("cpu", "gib"), ("CPU seconds", "GiB above import"), strict=True
    ):
        ends = []
        for k, name in enumerate(names):
            points = sorted(
                (int(row["size"]), float(row[field]))
                for row in rows
                if row["learner"] == name and float(row[field]) > 0
            )
            if not points:
                continue
            panel.plot(*zip(*points, strict=True), color=f"C{k}", marker="o", ms=3, lw=1.3)
            ends.append((points[-1], name, f"C{k}"))
        labelled(panel, ends)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel(part)
        panel.set_ylabel(label)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"scale-{part}.svg", metadata={"Date": None}, facecolor="white")


def labelled(panel: Any, ends: list[tuple[tuple[int, float], str, str]]) -> None:
    """Names at the ends of lines, moved apart where lines end together."""
    last: dict[int, float] = {}
    for (size, value), name, color in sorted(ends, key=lambda end: end[0][1]):
        place = last[size] = max(math.log10(value), last.get(size, -math.inf) + 0.16)
        panel.annotate(
            name, (size, 10**place), xytext=(5, 0), textcoords="offset points", color=color,
            va="center", annotation_clip=False,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="*", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--only", nargs="*", default=None, help="names of lines, as printed")
    parser.add_argument("--sizes", nargs="*", type=int, default=None)
    parser.add_argument("--limit", type=float, default=150.0, help="CPU seconds of a cell")
    parser.add_argument("--memory", type=float, default=20.0, help="GiB of a cell")
    parser.add_argument("--draw", type=Path, default=None, help="a folder; nothing is measured")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        part, learner, size = arguments.one
        print(json.dumps(measure(part, learner, int(size))))
        return
    for part in arguments.parts:
        if arguments.draw is not None:
            drawn(part, arguments.draw)
            continue
        print(f"\n{part}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        heads = ("CPU s", 9), ("clock s", 9), ("compile s", 10), ("GiB", 7), ("slope", 6)
        print(f"{'':24s}{'size':>9s}" + "".join(f"{name:>{width}s}" for name, width in heads))
        learners = [name for name in LEARNERS[part] if name in (arguments.only or LEARNERS[part])]
        sizes = arguments.sizes or SIZES[part]
        for found in cells(part, learners, sizes, arguments.limit, arguments.memory):
            print(line(found), flush=True)
            stored(part, [found])


if __name__ == "__main__":
    main()
