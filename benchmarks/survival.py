"""Rules for survival beside Cox's model and Kaplan-Meier's curve, on Rossi's 432 men.

    pip install lifelines && python benchmarks/survival.py [--folds 5] [--methods boosting ...]

Folds of the shuffled rows. A line gives the means over the test folds of the concordance and of the
integrated Brier score over the weeks 4 to 48, and the numbers of rules: docs/survival.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import jaxrules as jr

TIME, EVENT = "week", "arrest"
WEEKS = np.arange(4.0, 52.0, 4.0)
YEAR = 52.0

Floats = NDArray[np.float64]
Predictor = Callable[[Any, Any], tuple[Floats, Floats, int]]
"""From training and test rows to the risk of every test row, its survival at `WEEKS`, and size."""


def kaplan_meier(train: Any, test: Any) -> tuple[Floats, Floats, int]:
    from lifelines import KaplanMeierFitter

    curve = KaplanMeierFitter().fit(train[TIME], train[EVENT]).survival_function_at_times(WEEKS)
    return np.zeros(len(test)), np.tile(curve.to_numpy(), (len(test), 1)), 0


def cox(train: Any, test: Any) -> tuple[Floats, Floats, int]:
    from lifelines import CoxPHFitter

    model = CoxPHFitter(penalizer=0.1).fit(train, TIME, EVENT)
    curves = model.predict_survival_function(test, times=WEEKS).to_numpy().T
    return model.predict_partial_hazard(test).to_numpy(), curves, len(model.params_)


def rules(learner: Callable[..., Any], **options: Any) -> Predictor:
    def measured(train: Any, test: Any) -> tuple[Floats, Floats, int]:
        columns = [name for name in train.columns if name not in (TIME, EVENT)]
        model = jr.survival.fit(
            train[columns], train[TIME], train[EVENT], learner=learner, column=TIME, **options
        )
        risk = model.cumulative_hazard(test[columns], [YEAR])[:, 0]
        return risk, model.survival(test[columns], WEEKS), len(model.rates.conjunctions)

    return measured


METHODS: dict[str, Predictor] = {
    "Kaplan-Meier": kaplan_meier,
    "Cox, penalizer .1": cox,
    "rulefit": rules(jr.rulefit.fit),
    "boosting, 4 rules": rules(jr.boosting.fit, max_rules=4),
    "glrm": rules(jr.glrm.fit),
    "lltboost": rules(jr.lltboost.fit),
    "boosting": rules(jr.boosting.fit),
    "glrm, cross-validated": rules(jr.glrm.cross_validate),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    from lifelines.datasets import load_rossi

    rows = load_rossi().sample(frac=1.0, random_state=0).reset_index(drop=True)
    fold = np.arange(len(rows)) % options.folds
    print(f"{'':24}{'concordance':>12}{'Brier':>8}  rules")
    for name in options.methods:
        scores, sizes = [], []
        for k in range(options.folds):
            train, test = rows[fold != k], rows[fold == k]
            risk, curves, size = METHODS[name](train, test)
            time, event = test[TIME].to_numpy(float), test[EVENT].to_numpy()
            scores.append(
                (
                    jr.survival.concordance(time, event, risk),
                    jr.survival.integrated_brier_score(time, event, curves, WEEKS),
                )
            )
            sizes.append(size)
        concordance, brier = np.mean(scores, axis=0)
        print(f"{name:24}{concordance:12.3f}{brier:8.4f}  {min(sizes)} to {max(sizes)}", flush=True)


if __name__ == "__main__":
    main()
