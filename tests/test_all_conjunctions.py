"""The best ensemble over all conjunctions, against brute force over all supports and a conic
solver.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from supports import best_support

import jaxrules as jr
from jaxrules.losses import loss_by_name

LOSSES = ("logistic", "squared", "exponential", "poisson")
Floats = np.ndarray


# The oracle


def columns_of(X: Floats, max_length: int) -> tuple[Floats, list[tuple[int, ...]]]:
    """The distinct conjunctions of 0/1 columns and their negations, up to the complement, (rows,
    conjunctions), and the columns that each uses.
    """
    literals = [(j, X[:, j] == side) for j in range(X.shape[1]) for side in (0, 1)]
    found: dict[bytes, tuple[Floats, tuple[int, ...]]] = {}
    for length in range(1, max_length + 1):
        for chosen in itertools.combinations(literals, length):
            rows = np.logical_and.reduce([held for _, held in chosen])
            if rows.any() and not rows.all():
                key = (rows if not rows[0] else ~rows).tobytes()
                found.setdefault(key, (rows, tuple(j for j, _ in chosen)))
    return np.array([rows for rows, _ in found.values()], float).T, [
        used for _, used in found.values()
    ]


@dataclass(frozen=True)
class Case:
    """A small problem and the options of its fit."""

    X: Floats
    y: Any
    weight: Floats
    options: dict[str, Any]

    @classmethod
    def of(cls, seed: int, loss: str) -> Case:
        rng = np.random.default_rng(seed)
        d, n = int(rng.integers(2, 4)), int(rng.integers(12, 40))
        X = (rng.random((n, d)) < rng.uniform(0.3, 0.7)).astype(float)
        X[:2] = [[0.0] * d, [1.0] * d]
        score = 1.5 * X[:, 0] * X[:, 1] - rng.normal() * (1 - X[:, -1]) + 0.5 * rng.normal(size=n)
        if loss == "squared":
            y = score.round(2)
        elif loss == "poisson":
            y = rng.poisson(np.exp(np.clip(score, -3, 3))).astype(float)
            y[:2] = [0, 1]
        else:
            y = score > np.median(score)
            y[:2] = [False, True]
        weight = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
        options = {
            "loss": loss,
            "global_penalty": float(rng.choice([0.03, 0.05, 0.1])),
            "l2_penalty": float(rng.choice([1.0, 2.0, 8.0])),
            "max_length": int(rng.integers(1, 4)) if d > 2 else 2,
            "max_rules": [None, None, 1, 2][seed % 4],
        }
        return cls(X, y, weight, options)

    @property
    def target(self) -> Floats:
        y = np.asarray(self.y, float)
        return 2 * y - 1 if self.options["loss"] in ("logistic", "exponential") else y

    def fit(self, **changes: Any) -> jr.Fit[jr.RuleEnsemble]:
        return jr.lire.optimal(self.X, self.y, self.weight, **self.options | changes)

    def optimum(self, keeps: Any = None) -> tuple[float, tuple[int, ...]]:
        R, used = columns_of(self.X, self.options["max_length"])
        w = self.weight / self.weight.sum()
        return best_support(
            loss_by_name(self.options["loss"]), R, self.target, w, self.options["global_penalty"],
            self.options["l2_penalty"] / self.weight.sum(), self.options["max_rules"],
            (lambda support: True) if keeps is None else lambda s: keeps([used[m] for m in s]),
        )  # fmt: skip


def check(case: Case) -> None:
    fit, (least, _) = case.fit(), case.optimum()
    scale = 1e-5 * max(abs(least), 0.1)
    assert fit.status == "optimal"
    assert fit.objective == pytest.approx(least, abs=scale)
    assert fit.bound is not None
    assert fit.details.relaxation is not None
    assert fit.details.relaxation <= fit.bound <= least + 1e-9
    assert fit.objective >= least - 1e-7
    stated = jr.lire.objective(
        fit.model, case.X, case.y, global_penalty=fit.details.global_penalty, local_penalty=0.0,
        l2_penalty=fit.details.l2_penalty, sample_weight=case.weight,
    )  # fmt: skip
    assert stated == pytest.approx(fit.objective, abs=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(10))
def test_brute_force(loss: str, seed: int) -> None:
    check(Case.of(seed, loss))


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("block", range(5))
def test_many_brute_forced_problems(loss: str, block: int) -> None:
    for seed in range(100 + 25 * block, 125 + 25 * block):
        check(Case.of(seed, loss))
