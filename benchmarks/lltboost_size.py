"""Does LLTBoost gain if it stops where the risk of its held-out rows rises?

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/lltboost_size.py [--splits 2]

A path of 15 rules on 16 sets of `fronts.py`. Every way to choose a number of rules is compared with
ten rules, the default: the geometric mean over the sets of the ratio of the test risks, with its
standard error; the sets on which it is lower; the cells in which it is 2 % worse and better; and
the ratio of the complexities.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from fronts import LEAST, measures, says, split

import jaxrules as jr

SETS = (
    "breast_cancer", "heart", "titanic", "liver", "voice", "diabetes", "boston", "insurance",
    "red_wine_quality", "small_australian", "small_bupa", "small_birthwt", "small_sonar",
    "small_chile", "small_quine", "small_cpus",
)  # fmt: skip
DEFAULT = 10


def after_rises(risks: Sequence[float], patience: int) -> int:
    """The place of the least risk when it has not fallen for so many rules."""
    best = 0
    for m, risk in enumerate(risks[:DEFAULT]):
        if risk < risks[best]:
            best = m
        elif m - best >= patience:
            break
    return best


WAYS: dict[str, Callable[[Sequence[float]], int]] = {
    "before the first rise": lambda risks: after_rises(risks, 1),
    "before two rules without a fall": lambda risks: after_rises(risks, 2),
    "before three rules without a fall": lambda risks: after_rises(risks, 3),
    "least of ten": lambda risks: int(np.argmin(risks[:DEFAULT])),
    "least of 15": lambda risks: int(np.argmin(risks)),
    "15 rules": lambda risks: len(risks) - 1,
}
"""From the held-out risks along the path, the place of a model."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=2)
    splits = parser.parse_args().splits
    ratios = {way: np.empty((2, len(SETS), splits)) for way in WAYS}
    for place, name in enumerate(SETS):
        for seed in range(splits):
            train, test = split(name, seed)
            given = {"max_rules": 15, "missing": "own_category", "seed": seed}
            path = jr.lltboost.path(train.X, train.y, **given)
            held_out = [stage.risk for stage in path[-1].details.stages]
            figures = np.array(
                [
                    (
                        max(measures(train, test, says(fit.model, test))["risk"], LEAST),
                        jr.complexity(fit.model, "nonzeros"),
                    )
                    for fit in path
                ]
            )
            for way, chosen in WAYS.items():
                ratios[way][:, place, seed] = figures[chosen(held_out)] / figures[:DEFAULT][-1]
    print("| number of rules | risk | sets lower | cells worse, better | complexity |")
    print("|---|---|---|---|---|")
    for way, (risks, sizes) in ratios.items():
        logs = np.log(risks).mean(axis=1)
        mean = np.exp(logs.mean())
        error = mean * logs.std(ddof=1) / np.sqrt(len(SETS))
        print(
            f"| {way} | {mean:.3f} +- {error:.3f} | {np.sum(logs < 0)} of {len(SETS)} | "
            f"{np.sum(risks > 1.02)}, {np.sum(risks < 0.98)} | {sizes.mean():.2f} |"
        )


if __name__ == "__main__":
    main()
