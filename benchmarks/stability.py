"""Do bootstrap samples give the same rules? The learners of the library beside FIGS and RuleFit of
imodels, at an equal number of rules.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/stability.py [--sets heart ...]
        [--methods FIGS ...] [--rules 5] [--samples 10] [--only-summary]

Rules are compared by the rows that they divide: for a rule of one sample's model, the largest
absolute correlation with a rule of another sample's, both on all rows of the set; a threshold that
moves past no row changes nothing. The figure of a cell is the mean over rules and pairs of samples.
Cells are appended to results/stability.csv and are not computed again.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import fronts
import numpy as np
from numpy.typing import NDArray
from peers import NotRun, printed

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from jaxrules.models.metrics import used_rules

Rows = NDArray[np.int64]
Held = NDArray[np.bool_]
SETS = (
    "heart",
    "liver",
    "ibm_hr",
    "fico_lire",
    "diabetes",
    "red_wine_quality",
    "small_australian",
    "small_breast",
    "small_chile",
    "small_housing",
    "small_hedonic",
    "small_fair",
)
MOST_ROWS = 2000


def ours(fit: Callable[..., Any], data: Dataset, draws: Sequence[Rows], rules: int) -> list[Held]:
    """(rows, rules) of every sample's model, on all rows."""
    found = []
    for seed, rows in enumerate(draws):
        one = fit(data.X[rows], data.y[rows], rules, missing="own_category", seed=seed)
        found.append(np.asarray(used_rules(one.model).satisfied(data.X)))
    return found


def boosting(X: Any, y: Any, rules: int, **given: Any) -> jr.Fit[Any]:
    return jr.boosting.fit(X, y, max_rules=rules, **given)


def lire(X: Any, y: Any, rules: int, **given: Any) -> jr.Fit[Any]:
    return jr.lire.fit(X, y, max_rules=rules, **given)


def rulefit(X: Any, y: Any, rules: int, **given: Any) -> jr.Fit[Any]:
    """The last of the path with at most so many rules."""
    path = jr.rulefit.path(X, y, **given)
    return [one for one in path if jr.support(one.model) <= rules][-1]


def peer(method: str, data: Dataset, draws: Sequence[Rows], rules: int) -> list[Held]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, **fronts.arrays_of(data), draws=draws)
        script = Path(__file__).with_name("stability_peers.py")
        printed("imodels", script, method, data.task, file, rules)
        with np.load(file.with_name("held.npz")) as held:
            return [held[f"held_{i}"] for i in range(len(draws))]


METHODS: dict[str, Callable[[Dataset, Sequence[Rows], int], list[Held]]] = {
    "boosting": partial(ours, boosting),
    "LIRE": partial(ours, lire),
    "RuleFit": partial(ours, rulefit),
    "FIGS": partial(peer, "FIGS"),
    "RuleFit (imodels)": partial(peer, "RuleFit"),
}


def agreement(found: Sequence[Held]) -> float:
    """The mean over ordered pairs of models, then over the rules of the first, of the largest
    absolute correlation with a rule of the second; 0 where the second has none.
    """
    columns = [standardised(one) for one in found]
    pairs = itertools.permutations(columns, 2)
    return float(
        np.mean([np.abs(a.T @ b).max(axis=1, initial=0).mean() for a, b in pairs if a.shape[1]])
    )


def standardised(held: Held) -> NDArray[np.float64]:
    """Centred columns of length 1, without those that hold everywhere or nowhere."""
    centred = held - held.mean(axis=0)
    centred = centred[:, centred.any(axis=0)]
    return np.asarray(centred / np.linalg.norm(centred, axis=0))


def run(names: Sequence[str], methods: Sequence[str], rules: int, samples: int, file: Path) -> None:
    done = {(row["set"], row["method"], int(row["rules"])) for row in fronts.read(file)}
    for name, method in itertools.product(names, methods):
        if (name, method, rules) in done:
            continue
        data = jr.datasets.load(name)
        rng = np.random.default_rng(0)
        data = data[np.sort(rng.permutation(len(data))[:MOST_ROWS])]
        draws = rng.integers(len(data), size=(samples, len(data)))
        try:
            found = METHODS[method](data, draws, rules)
        except NotRun as reason:
            print(f"{name} {method}: not run: {reason}", flush=True)
            continue
        new = not file.exists()
        size = np.mean([one.shape[1] for one in found])
        with file.open("a", newline="") as out:
            writer = csv.writer(out)
            if new:
                writer.writerow(("set", "method", "rules", "found", "agreement"))
            writer.writerow((name, method, rules, round(size, 2), round(agreement(found), 4)))
        print(name, method, round(size, 2), round(agreement(found), 3), flush=True)


def summary(file: Path, rules: int) -> None:
    """Means over the sets, and the mean difference from boosting with its standard error."""
    cells: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    for row in fronts.read(file):
        if int(row["rules"]) == rules:
            cells[row["method"]][row["set"]] = float(row["agreement"]), float(row["found"])
    print(f"\n| at most {rules} rules | sets | rules | agreement | less boosting's |")
    print("|---|---|---|---|---|")
    for method in (name for name in METHODS if name in cells):
        mean, size = np.mean(list(cells[method].values()), axis=0)
        both = sorted(cells[method].keys() & cells["boosting"].keys())
        more = np.array([cells[method][name][0] - cells["boosting"][name][0] for name in both])
        error = more.std(ddof=1) / np.sqrt(len(both))
        less = "" if method == "boosting" else f"{more.mean():+.2f} +- {error:.2f}"
        print(f"| {method} | {len(cells[method])} | {size:.1f} | {mean:.2f} | {less} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS)
    parser.add_argument("--rules", type=int, default=5)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--only-summary", action="store_true")
    parser.add_argument("--file", type=Path, default=fronts.RESULTS / "stability.csv")
    arguments = parser.parse_args()
    arguments.file.parent.mkdir(exist_ok=True)
    if not arguments.only_summary:
        run(arguments.sets, arguments.methods, arguments.rules, arguments.samples, arguments.file)
    summary(arguments.file, arguments.rules)


if __name__ == "__main__":
    main()
