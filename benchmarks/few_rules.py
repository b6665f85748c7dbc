"""As few rules as the data need: what defaults make of noise and of a step, and what it costs.

    JAXRULES_DATA=/folder/with/manifest.json python benchmarks/few_rules.py
        [--parts tries price lire lists chance] [--splits 2] [--learners boosting ...]

- tries: the number of rules that `fit(X, y)` finds for noise, and for a step in one column (numbers
  with noise of a tenth), eight normal columns, four draws.
- price: boosting's sizes if each rule must be worth 1.25 times the scale of the likelihood, and by
  the nats that grow with the rows (`jaxrules.ensembles.size`); test risks along one path.
- lists: rule lists at the deciles with a penalty of 1 or 4, with thresholds of the data, and
  by default: there, with much noise, a literal must also gain what the best gains by chance.
- lire: LIRE for numbers with the penalty of classes, 6 / rows of the constant's loss, and with the
  default, which follows the noise.
- chance: boosting on few rows of many normal columns, and on few rows of the sets, without and with
  the fit to a permuted target that tells noise from signal; LTRNet without and with networks that
  are trained in folds.

Risks are test log-loss or squared error, as geometric means of ratios over sets, with standard
errors.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import jaxrules as jr
from jaxrules.data.datasets import Dataset
from jaxrules.ensembles import ltrnet
from jaxrules.ensembles.boosting import fitting
from jaxrules.ensembles.size import PER_RULE, nats
from jaxrules.lists.noise import Penalty

LEARNERS = ("boosting", "lire", "rulefit", "glrm", "lltboost", "ltrnet", "ssrl", "exact_list")
OF_NUMBERS = ("boosting", "lire", "rulefit", "glrm", "lltboost", "ltrnet", "regression_list")
LARGE = 4000


def tries(learners: Sequence[str]) -> None:
    print("\n| learner | target | rows | rules for noise | for a step |\n|---|---|---|---|---|")
    for kind, names in (("classes", LEARNERS), ("numbers", OF_NUMBERS)):
        for name in sorted(set(names) & set(learners)):
            for rows in (200, 500, 1000, 3000):
                found: dict[str, list[str]] = {"noise": [], "step": []}
                for seed in range(4):
                    rng = np.random.default_rng(seed)
                    X = rng.normal(size=(rows, 8))
                    step = X[:, 0] > 0.1234
                    classes = {"noise": rng.integers(0, 2, rows), "step": step}
                    numbers = {"noise": rng.normal(size=rows)}
                    numbers["step"] = step + 0.1 * rng.normal(size=rows)
                    for task, y in (classes if kind == "classes" else numbers).items():
                        model = getattr(jr, name).fit(X, y).model
                        found[task].append(str(jr.support(model)))
                cells = " | ".join(", ".join(counts) for counts in found.values())
                print(f"| {name} | {kind} | {rows} | {cells} |", flush=True)


def tasks(kinds: tuple[str, ...], large: bool, splits: int) -> Iterator[tuple[str, Any, Any]]:
    """Name, training rows and test rows of every split."""
    without = {"adult_train", "gas_batch_standardised", "world_happiness"}
    without |= {"fico_binary", "compas_binary"}  # the same rows once more
    for name in sorted(set(jr.datasets.available()) - without):
        data = jr.datasets.load(name)
        if data.task not in kinds or (large and len(data) <= LARGE):
            continue
        for seed in range(splits):
            order = np.random.default_rng(seed).permutation(len(data))
            n = min(10_000 if large else 800, int(0.75 * len(data)))
            yield name, data[np.sort(order[:n])], data[np.sort(order[n : n + 5000])]


def risk(model: Any, train: Any, test: Any) -> float:
    if test.task == "regression":
        return float(np.mean((jr.predict(model, test.X) - np.asarray(test.y, float)) ** 2))
    classes, least = np.unique(train.y), 0.5 / len(train)
    known = np.isin(test.y, classes)
    p = jr.predict_proba(model, test.X[known])
    of_truth = p[np.arange(len(p)), np.searchsorted(classes, test.y[known])]
    return float(-np.mean(np.log(np.clip(of_truth, least, 1 - least))))


def ratio(named: list[tuple[str, float, float]]) -> str:
    """The geometric mean of the second number over the first, over sets."""
    names = sorted({name for name, _, _ in named})
    logs = [np.mean([np.log(b / a) for name, a, b in named if name == one]) for one in names]
    mean = float(np.exp(np.mean(logs)))
    return f"{mean:.3f} +- {mean * np.std(logs, ddof=1) / np.sqrt(len(names)):.3f}"


def scale(price: float, most: float) -> float:
    """The scale s of price = s (1.25 + (most - 1.25) min(s, 1)), as `nats` has it."""
    more = most - PER_RULE
    if more <= 0 or price >= most:
        return price / most
    return (-PER_RULE + np.sqrt(PER_RULE**2 + 4 * more * price)) / (2 * more)


class Sizes(NamedTuple):
    """Sizes and test risks before and now, of at most 10 and at most 40 rules."""

    name: str
    task: str
    sizes: tuple[tuple[int, int], ...]
    risks: tuple[tuple[float, float], ...]


def sizes(name: str, train: Any, test: Any) -> Sizes:
    fits = jr.boosting.path(train.X, train.y, max_rules=40, missing="own_category")
    gains, now = (np.array(fits[-1].details[it]) for it in ("gains", "prices"))
    squared, most = train.task == "regression", nats(np.ones(len(train)))
    before = np.array([PER_RULE * (1.0 if squared else scale(one, most)) for one in now])
    places = [
        tuple(int(np.argmax(np.cumsum((gains - price)[:limit]))) for price in (before, now))
        for limit in (10, 40)
    ]
    risks = [risk(one.model, train, test) for one in fits]
    return Sizes(
        name,
        train.task,
        tuple((a + 1, b + 1) for a, b in places),
        tuple((risks[a], risks[b]) for a, b in places),
    )


def prices(splits: int) -> None:
    print("\n| rows | task | sets | at most 10: risk | rules | at most 40: risk | rules |")
    print("|---|---|---|---|---|---|---|")
    for large in (False, True):
        found = [sizes(*task) for task in tasks(("binary", "regression"), large, splits)]
        for kinds in (("binary", "regression"), ("regression",), ("binary",)):
            some = [one for one in found if one.task in kinds]
            cells = []
            for k in range(2):
                before, now = np.mean([one.sizes[k] for one in some], axis=0)
                change = ratio([(one.name, *one.risks[k]) for one in some])
                cells.append(f"{change} | {before:.1f}, now {now:.1f}")
            rows, count = "10 000" if large else "800", len({one.name for one in some})
            print(f"| {rows} | {' and '.join(kinds)} | {count} | {' | '.join(cells)} |", flush=True)


def lire(splits: int) -> None:
    found: list[tuple[str, float, float]] = []
    rules, seconds = [], []
    for name, train, test in tasks(("regression",), False, splits):
        y = np.asarray(train.y, float)
        before = max(0.005, 6 / len(y)) * float(np.var(y))
        risks, counts, times = [], [], []
        for penalty in (before, None):
            begun = time.process_time()
            model = jr.lire.fit(
                train.X, y, global_penalty=penalty, missing="own_category", seed=0
            ).model
            times.append(time.process_time() - begun)
            risks.append(risk(model, train, test))
            counts.append(jr.support(model))
        found.append((name, risks[0], risks[1]))
        rules.append(counts)
        seconds.append(times)
    (a, b), (s, t) = np.mean(rules, axis=0), np.mean(seconds, axis=0)
    print(f"\nLIRE, numbers: {ratio(found)}, {a:.1f} and now {b:.1f} rules, {s:.2f} and {t:.2f} s")


def as_before(self: Penalty, search: Any, *_: Any) -> tuple[Penalty, Any]:
    """`Penalty.search` without a look at what chance gains."""
    return self, search(self.value)


def lists(learners: Sequence[str], splits: int) -> None:
    print("\n| learner | sets | risk: thresholds | risk: and penalty | literals | CPU seconds |")
    print("|---|---|---|---|---|---|")
    for learner in ("ssrl", "exact_list", "regression_list"):
        if learner not in learners:
            continue
        kinds = ("regression",) if learner == "regression_list" else ("binary", "multiclass")
        found, sizes, seconds = [], [], []
        for name, train, test in tasks(kinds, False, splits):
            risks, counts, times = [], [], []
            for cuts, penalty in ((9, as_before), ("auto", as_before), ("auto", Penalty.search)):
                begun = time.process_time()
                with mock.patch.object(Penalty, "search", penalty):
                    fit = getattr(jr, learner).fit(
                        train.X, train.y, max_cut_points=cuts, missing="own_category"
                    )
                times.append(time.process_time() - begun)
                risks.append(risk(fit.model, train, test))
                counts.append(int(fit.model.conjunctions.propositions.sum()))
            found.append((name, *risks))
            sizes.append(counts)
            seconds.append(times)
        cells = [ratio([(name, risks[0], risks[k]) for name, *risks in found]) for k in (1, 2)]
        means = (np.mean(each, axis=0).round(1).tolist() for each in (sizes, seconds))
        cells += [", ".join(map(str, three)) for three in means]
        count = len({name for name, *_ in found})
        print(f"| {learner} | {count} | {' | '.join(cells)} |", flush=True)


def generated(target: str, rows: int, columns: int, seed: int) -> tuple[Any, Any]:
    """Training rows, and 2000 test rows, of normal columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows + 2000, columns))
    y: Any = rng.normal(size=len(X))
    if target != "numbers":
        y = (y if target == "noise" else X[:, 0] + X[:, 1] + 0.5 * y) > 0
    data = Dataset(target, jr.as_table(X), y, "regression" if target == "numbers" else "binary")
    return data[np.arange(rows)], data[np.arange(rows, len(X))]


BEFORE = {"boosting": (fitting, "_WORTH_A_FIT", np.inf), "ltrnet": (ltrnet, "_FEW_ROWS", 0)}
"""What takes the look at noise on few rows away."""


SIZES = ((100, 20), (100, 500), (100, 2000), (300, 20), (500, 100), (500, 300))


def chance(learners: Sequence[str], splits: int) -> None:
    for learner in sorted(set(learners) & set(BEFORE)):
        print(f"\n{learner}\n\n| target | rows | columns | risk: before | rules | now | rules |")
        print("|---|---|---|---|---|---|---|")
        for target in ("noise", "numbers", "signal"):
            for rows, columns in SIZES:
                found = [
                    by_chance(learner, *generated(target, rows, columns, seed)) for seed in range(5)
                ]
                cells = " | ".join(
                    f"{risk:.3f} | {rules:.1f}" for risk, rules in np.mean(found, axis=0).tolist()
                )
                print(f"| {target} | {rows} | {columns} | {cells} |", flush=True)
        print("\n| rows | sets | risk | rules | risk above 1.02 |\n|---|---|---|---|---|")
        for rows in (60, 100, 300):
            changes: list[tuple[str, float, float]] = []
            counts, harmful = [], []
            for name, train, test in tasks(("binary", "regression"), False, splits):
                some = train[np.arange(0, len(train), max(1, len(train) // rows))[:rows]]
                if len(some) == rows < len(train) and len(np.unique(some.y)) > 1:
                    (before, many), (now, few) = by_chance(learner, some, test)
                    changes.append((name, before, now))
                    counts.append((many, few))
                    harmful.append((before > 1.02, now > 1.02))
            (before, now), (bad, less) = np.mean(counts, axis=0), np.sum(harmful, axis=0)
            count = len({name for name, *_ in changes})
            cells = f"{ratio(changes)} | {before:.1f}, now {now:.1f} | {bad}, now {less}"
            print(f"| {rows} | {count} | {cells} |", flush=True)


def by_chance(learner: str, train: Any, test: Any) -> list[tuple[float, int]]:
    """Risk over the constant's and rules, without and with the look at noise."""
    given: dict[str, Any] = {"missing": "own_category"}
    constant = risk(jr.boosting.fit(train.X, train.y, time_limit=0, **given).model, train, test)
    module, name, off = BEFORE[learner]
    found = []
    for value in (off, getattr(module, name)):
        with mock.patch.object(module, name, value):
            model = getattr(jr, learner).fit(train.X, train.y, **given).model
        found.append((risk(model, train, test) / constant, jr.support(model)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("tries", "price", "lire", "lists", "chance")
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts)
    every = sorted({*LEARNERS, *OF_NUMBERS})
    parser.add_argument("--learners", nargs="*", default=every, choices=every)
    parser.add_argument("--splits", type=int, default=2)
    given = parser.parse_args()
    for part in given.parts:
        if part == "tries":
            tries(given.learners)
        elif part in ("lists", "chance"):
            {"lists": lists, "chance": chance}[part](given.learners, given.splits)
        else:
            {"price": prices, "lire": lire}[part](given.splits)


if __name__ == "__main__":
    main()
