"""RuleFit's engines, paired: a path on the host and as one JAX program.

    JAXRULES_DATA=/with/manifest.json python benchmarks/rulefit_engines.py [heart ...]
    [--penalties 20]

One pool per set: rules of the default forest. The first path of the program compiles; its seconds
are told apart. The script prints CPU seconds of the first and the second path, the number of
non-zero weights along the path, the objective at its end and the largest relative gap.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax

import jaxrules as jr
from jaxrules.ensembles.growing import default_forest

SETS = ["heart", "compas_lire", "magic"]


def timed(*arguments: Any, **options: Any) -> tuple[list[jr.Fit[jr.RuleEnsemble]], float]:
    """A path and its CPU seconds."""
    start = time.process_time()
    return jr.rulefit.path(*arguments, **options), time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--penalties", type=int, default=20)
    arguments = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}; {arguments.penalties} penalties")
    for name in arguments.sets:
        data = jr.datasets.load(name)
        X = jr.as_table(data.X, missing="own_category")
        rules = jr.extract_rules(default_forest(X, data.y, seed=0), X)
        print(f"{name}: {X.n_rows} rows, {len(rules)} rules")
        for engine in ("numpy", "jax"):
            common: dict[str, Any] = {"rules": rules, "n_penalties": arguments.penalties}
            _, first = timed(X, data.y, **common, engine=engine)
            fits, second = timed(X, data.y, **common, engine=engine)
            weights = sum(jr.support(fit.model) for fit in fits)
            gap = max((fit.gap or 0.0) / fit.objective for fit in fits)
            print(
                f"  {engine:6} first {first:6.2f} s, second {second:6.2f} s, {weights} weights, "
                f"objective {fits[-1].objective:.10f}, gap {gap:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
