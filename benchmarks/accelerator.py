"""An accelerator beside the host: the tests that need one, then seconds and objectives of both.

    python benchmarks/accelerator.py [RESULTS.jsonl] [--tiny] [--only CASE ...] [--seconds 450]
    [--cores 3] [--no-tests]

Without an accelerator, `--tiny` runs everything in less than a minute, on small data. For the
cases that name a real data set, JAXRULES_DATA must name the folder; else made data replace it.

Every case runs in two processes: on JAX's default device, and with the host's engine on `--cores`
processors that the other does not use, both at the same time. Each has its time limit: one that
fails or hangs loses itself only. Results are written as they come, a JSON object per line; after
`--seconds`, what has not begun is left out and named, so that cases not measured yet come first.

- `first s`: the first call on the device, with compilation; `again s`: the second;
- `host s`: the host's engine, compiled before on small data;
- `objective`: of both; `predicted s`: of the second call, see `CASES`;
- `programs`: how long JAX spent compiling, and the operations per trip of the loops of the compiled
  programs (`--tiny` only). A trip of a loop takes about 10 microseconds per operation there, as
  each is a launch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import Any, NamedTuple

HERE = Path(__file__).parent
TESTS = (
    "test_precision.py", "test_rule_search.py", "test_lire_traced.py", "test_traced_path.py",
    "test_ltrnet.py", "test_finetune.py", "test_adam.py", "test_l1_path.py", "test_drnet.py",
    "test_ssrl.py", "test_lltboost.py", "test_sparse_glm.py", "test_placement.py",
    "test_patience.py",
)  # fmt: skip
TINY_TESTS = ("test_patience.py",)
TEST_SECONDS = 150
LAUNCH = 1e-5
"""Seconds per operation and trip of a loop."""


class Case(NamedTuple):
    """One row of the table.

    Attributes:
        make: makes the data and returns the call, given the sizes and whether it is for the device.
        predicted: seconds of the second call on an H200-like card, by operations and launches; the
            docs say how.
        seconds: the time limit of each process.
        size: arguments of `make`; `tiny` those of the tiny run, None to leave it out there.
    """

    make: Callable[..., Callable[[], Any]]
    predicted: float
    seconds: float
    size: dict[str, Any]
    tiny: dict[str, Any] | None


def _engine(device: bool) -> str:
    return "jax" if device else "numpy"


def boosting(device: bool, rows: int, columns: int = 20, **options: Any) -> Callable[[], Any]:
    from large import problem

    import jaxrules as jr

    X, y, _ = problem(rows, 0, n_columns=columns)
    return lambda: jr.boosting.fit(X, y, engine=_engine(device), **options)


def ranking(device: bool, rows: int, terms: int, columns: int = 20) -> Callable[[], Any]:
    """One ranking of all pairs, without the rest of a stage."""
    import numpy as np

    from jaxrules.solvers.rule_search import CorrectiveDecrease, search_pairs
    from jaxrules.solvers.rule_search.ranking import ranking_of
    from jaxrules.solvers.rule_search.space import SearchSpace, never

    random = np.random.default_rng(0)
    cell = np.arange(1, 21, dtype=np.uint16)
    space = SearchSpace.of_codes(
        random.integers(0, 21, (rows, columns)).astype(np.uint16),
        np.repeat(np.arange(columns, dtype=np.int32), 40),
        np.tile(np.repeat([True, False], 20), columns),
        np.tile(np.concatenate([cell, cell - 1]), columns),
    )
    g, h = random.normal(size=rows), random.uniform(0.1, 1, rows)
    found = np.column_stack(
        [np.ones(rows, bool), *(space.selected((k, k + 50)) for k in range(terms - 3))]
    )
    objective = CorrectiveDecrease(g, h, 8.0, found, np.array([0.0] + [8.0] * (terms - 3)))
    summed = objective.one_row(space)
    assert space.partitions is not None
    if not device:
        return lambda: search_pairs(space, objective).objective
    ranked = ranking_of(space)
    return lambda: ranked.best(objective, summed, 64, never)[0].worth  # type: ignore[index]


def _rules(data: str | None, rows: int, rules: int) -> tuple[Any, Any, Any]:
    """Rows, target and rules: of a real data set and its default forest, or made."""
    from large import problem

    import jaxrules as jr
    from jaxrules import datasets
    from jaxrules.ensembles.growing import default_forest

    if data is None or "JAXRULES_DATA" not in os.environ:
        return problem(rows, rules)
    found = datasets.load(data)
    X = jr.as_table(found.X, missing="own_category")
    return X, found.y, jr.extract_rules(default_forest(X, found.y, seed=0), X)


def lire(device: bool, data: str | None, rows: int, rules: int, **options: Any) -> Any:
    import jaxrules as jr

    X, y, pool = _rules(data, rows, rules)
    given = {"global_penalty": 1e-3, "l2_penalty": 1.0} | options
    return lambda: jr.lire.fit(X, y, rules=pool, engine=_engine(device), **given)


def lire_folds(device: bool, data: str | None, rows: int, rules: int, **options: Any) -> Any:
    import jaxrules as jr

    X, y, pool = _rules(data, rows, rules)
    return lambda: jr.lire.cross_validate(X, y, rules=pool, engine=_engine(device), **options)


def rulefit_path(device: bool, rows: int, rules: int, penalties: int = 20) -> Any:
    from large import problem

    import jaxrules as jr

    X, y, pool = problem(rows, rules)
    return lambda: jr.rulefit.path(
        X, y, rules=pool, n_penalties=penalties, engine=_engine(device)
    )[-1]  # fmt: skip


def learner(device: bool, name: str, rows: int, **options: Any) -> Any:
    """A learner whose engine follows the device."""
    from large import problem

    import jaxrules as jr

    X, y, _ = problem(rows, 0)
    return lambda: getattr(jr, name).fit(X, y, **options)


def predict(device: bool, rows: int, rules: int) -> Any:
    import jax
    import numpy as np
    from large import problem

    import jaxrules as jr

    X, _, pool = problem(rows, rules)
    weights = np.random.default_rng(0).normal(size=(rules, 1))
    model = jr.RuleEnsemble(pool, weights, np.zeros(1))
    if not device:
        return lambda: float(jr.decision_function(model, X).mean())
    placed, scores = jax.device_put(X), jax.jit(lambda rows: jr.decision_function(model, rows))
    return lambda: float(scores(placed).mean())


M, ADULT = 1_000_000, {"data": "adult_train", "rows": 20_000, "rules": 1000}
FEW = {"data": None, "rows": 400, "rules": 12}
FOLDS = {"n_folds": 5, "global_penalties": [3e-3, 2e-3, 1.5e-3, 1e-3, 7e-4]}
SOME = {"rows": 300, "max_rules": 2}
CASES = {
    "LIRE adult": Case(lire, 0.3, 60, ADULT, FEW | {"global_penalty": 0.02}),
    "LIRE adult, 75 fits": Case(
        lire_folds, 1.5, 100, ADULT | FOLDS | {"l2_penalties": [1.0, 8.0, 32.0]},
        FEW | {"n_folds": 2, "global_penalties": [0.05, 0.02], "l2_penalties": [1.0]},
    ),
    "LIRE compas": Case(lire, 0.2, 60, ADULT | {"data": "compas_lire"}, None),
    "LIRE heart": Case(lire, 0.2, 60, ADULT | {"data": "heart"}, None),
    "predict 10^6 x 827": Case(
        predict, 0.15, 60, {"rows": M, "rules": 827}, {"rows": 300, "rules": 12}
    ),
    "boosting 10^5 x 20": Case(
        boosting, 0.5, 60, {"rows": 100_000}, None
    ),
    "GLRM 10^5": Case(
        learner, 3.0, 60, {"name": "glrm", "rows": 100_000, "search_rows": None},
        {"name": "glrm", "rows": 300},
    ),
    "SSRL 10^5, 3 rules": Case(
        learner, 1.0, 60, {"name": "ssrl", "rows": 100_000, "max_rules": 3},
        {"name": "ssrl", **SOME},
    ),
    "boosting 10^6 x 20": Case(
        boosting, 3.0, 150, {"rows": M},
        {"rows": 300, "columns": 6, "max_rules": 2, "max_cut_points": 4, "max_length": 2},
    ),
    "ranking of pairs 10^6 x 20, 8 terms": Case(
        ranking, 0.03, 60, {"rows": M, "terms": 8}, {"rows": 300, "terms": 4, "columns": 2}
    ),
    "ranking of pairs 10^6 x 20, 13 terms": Case(
        ranking, 0.06, 60, {"rows": M, "terms": 13}, None
    ),
    "RuleFit path 10^5 x 2000": Case(
        rulefit_path, 1.5, 60, {"rows": 100_000, "rules": 2000},
        {"rows": 300, "rules": 12, "penalties": 3},
    ),
    "LTRNet 10^6": Case(
        learner, 3.0, 90, {"name": "ltrnet", "rows": M},
        {"name": "ltrnet", "iterations": 50, **SOME},
    ),
    "LLTBoost 10^6": Case(
        learner, 4.0, 150, {"name": "lltboost", "rows": M, "search_rows": None},
        {"name": "lltboost", **SOME},
    ),
}  # fmt: skip


def run_case(name: str, device: bool, tiny: bool) -> dict[str, Any]:
    """What one process measures."""
    import jax

    case, compiling = CASES[name], [0.0]

    def listen(event: str, seconds: float, **_: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            compiling[0] += seconds

    jax.monitoring.register_event_duration_secs_listener(listen)
    if not device and not tiny:
        case.make(device, **(case.tiny or case.size))()  # numba's kernels, imports
    call = case.make(device, **(case.tiny if tiny and case.tiny else case.size))
    found: dict[str, Any] = {}
    for column in ("first s", "again s") if device else ("host s",):
        began = time.perf_counter()
        result = call()
        found[column] = round(time.perf_counter() - began, 3)
    found["objective"] = float(getattr(result, "objective", result))
    stages = getattr(getattr(result, "details", None), "stages", None)
    if stages:
        found["seconds of searches"] = [round(stage.seconds, 3) for stage in stages]
    if device:
        found |= {"device": jax.devices()[0].device_kind, "compile s": round(compiling[0], 2)}
    return found


def operations_per_trip(text: str) -> list[int]:
    """The operations in the body of each loop of a compiled program, those of inner loops left out:
    each is at least one launch per trip.
    """
    bodies = re.findall(r"\bwhile\(.*?body=%?([\w.\-]+)", text)
    free = r"(parameter|get-tuple-element|tuple|constant|bitcast)"
    counts = []
    for body in bodies:
        found = re.search(
            rf"^%?{re.escape(body)} .*?\{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL
        )
        lines = found.group(1).splitlines() if found else []
        counts.append(
            sum(
                bool(re.search(r" = \S+.*? [\w\-]+\(", line)) and not re.search(rf" {free}\(", line)
                for line in lines
            )
        )
    return counts


def in_process(
    name: str, device: bool, tiny: bool, cores: list[int], seconds: float
) -> dict[str, Any]:
    """`run_case` in a process of its own; what went wrong, if something did."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(HERE.parent), str(HERE), environment.get("PYTHONPATH", "")]
        )
        if device and tiny:
            environment["XLA_FLAGS"] = (
                f"{environment.get('XLA_FLAGS', '')} --xla_dump_to={folder} "
                "--xla_dump_hlo_as_text --xla_backend_optimization_level=0"
            )
        if not device:
            environment["JAX_PLATFORMS"] = "cpu"
            environment["OMP_NUM_THREADS"] = environment["NUMBA_NUM_THREADS"] = str(len(cores))
        code = (
            f"import os, json; os.sched_setaffinity(0, {cores})\n"
            f"import accelerator; print('\\n' + json.dumps("
            f"accelerator.run_case({name!r}, {device}, {tiny})))"
        )
        base = {"case": name, "side": "device" if device else "host"}
        try:
            ran = subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, text=True,
                timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return base | {"failed": f"longer than {seconds:g} s"}
        if ran.returncode:
            return base | {"failed": (ran.stderr.strip().splitlines() or ["?"])[-1][:300]}
        found: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
        programs = {
            re.sub(r"^module_\d+\.|\.\w*after_optimizations.*", "", path.name): trips
            for path in sorted(Path(folder).glob("*after_optimizations.txt"))
            if (trips := operations_per_trip(path.read_text("utf-8", "replace")))
        }
        return base | found | ({"operations per trip": programs} if programs else {})


def versions() -> dict[str, Any]:
    """Packages, and JAX's device, in a process of its own: this one must not hold the device."""
    code = """
import json, jax, jaxlib, numpy, scipy, sklearn, numba
device = jax.devices()[0]
kind, names = device.device_kind, (jax, jaxlib, numpy, scipy, sklearn, numba)
print(json.dumps({"device": kind, "platform": device.platform, "devices": jax.device_count(),
    **{package.__name__: package.__version__ for package in names}}))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return {"python": platform.python_version(), "cores": os.cpu_count()} | json.loads(
        ran.stdout.strip().splitlines()[-1]
    )


def tests(names: tuple[str, ...], processes: int, seconds: float) -> dict[str, Any]:
    """Test files on the device, several at once."""
    files = [str(HERE.parent / "tests" / name) for name in names]
    several = ["-n", str(processes), "--dist", "loadfile"] if processes > 1 else ["-n0"]
    # One line per test: failures are named even if time runs out.
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *several, *files]
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(
            command, env=environment, cwd=HERE.parent, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, 15)
            running.wait()
        output.seek(0)
        lines = output.read().strip().splitlines()
    failures = [line for line in lines if re.search(r"\b(FAILED|ERROR)\b", line) and "::" in line]
    last = lines[-1] if lines else "no output"
    return {"tests": last, "returned": running.returncode, "failures": failures[:60],
            "output": lines[-200:] if running.returncode else []}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="?", help="where the JSON lines go, too")
    parser.add_argument("--tiny", action="store_true", help="small data, one test file")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--seconds", type=float, default=450)
    parser.add_argument("--cores", type=int, default=3, help="processors of the host's side")
    parser.add_argument("--no-tests", action="store_true")
    asked = parser.parse_args()
    began, lock = time.monotonic(), threading.Lock()
    rows: dict[tuple[str, str], dict[str, Any]] = {}

    def report(row: dict[str, Any]) -> None:
        with lock:
            row = row | {"at s": round(time.monotonic() - began, 1)}
            if "case" in row:
                rows[row["case"], row["side"]] = row
            print(json.dumps({k: v for k, v in row.items() if k != "output"}), flush=True)
            if asked.results:
                with open(asked.results, "a", encoding="utf-8") as stream:
                    stream.write(json.dumps(row) + "\n")

    def left() -> float:
        return asked.seconds - (time.monotonic() - began)

    every = sorted(os.sched_getaffinity(0))
    apart = len(every) > asked.cores
    own, others = (every[: asked.cores], every[asked.cores :]) if apart else (every, every)

    def sides(device: bool, queue: Queue[str]) -> None:
        while left() > 5:
            try:
                name = queue.get_nowait()
            except Empty:
                return
            seconds = left() if asked.tiny else min(CASES[name].seconds, left())
            report(in_process(name, device, asked.tiny, others if device else own, seconds))

    report(versions())
    queues: dict[bool, Queue[str]] = {True: Queue(), False: Queue()}
    if asked.tiny:
        asked.only = [name for name in asked.only if CASES[name].tiny is not None]
    for name in asked.only:
        for queue in queues.values():
            queue.put(name)
    host = threading.Thread(target=sides, args=(False, queues[False]))
    host.start()
    if not asked.no_tests:
        report(
            tests(TINY_TESTS, 1, 60) if asked.tiny
            else tests(TESTS, max(1, min(8, len(others) // 2)), TEST_SECONDS)
        )  # fmt: skip
    sides(True, queues[True])
    host.join()
    titles = "".join(f"{title:>8s}" for title in ("first", "again", "host"))
    print(f"\n{'':38s}{titles}{'ratio':>7s}{'predicted':>10s}  objectives")
    for name in asked.only:
        device, other = (rows.get((name, side), {}) for side in ("device", "host"))
        again, seconds = device.get("again s"), other.get("host s")
        ratio = f"{seconds / again:.1f}" if again and seconds else ""
        shown = [
            row.get("failed") or f"{row['objective']:.10g}" if row else "left out"
            for row in (device, other)
        ]
        print(
            f"{name:38s}{device.get('first s', ''):>8}{again or '':>8}{seconds or '':>8}{ratio:>7}"
            f"{CASES[name].predicted:>10}  {' | '.join(shown)}"
        )
    if any("failed" in row for row in rows.values()) and asked.tiny:
        sys.exit("a case failed")


if __name__ == "__main__":
    main()
