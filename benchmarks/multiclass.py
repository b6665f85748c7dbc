"""Several classes as one problem, against one model per class and other learners.

    JAXRULES_DATA=FOLDER python benchmarks/multiclass.py [DATA ...] [--splits 2] [--rules 10 20 40]
        [--methods METHOD ...] [--complexity 40 80] [--train 2000]

Prints test log-loss and error by size: rules, or for CART leaves, and for L1 multinomial regression
coefficients that are not 0 (the densest model of its path that is no larger). One-vs-rest counts
distinct rules over the classes. Of the paths of RuleFit and GLRM, this is the largest model within
the size; their default fits, whose number of rules stands in brackets, come last. LIRE, LTRNet and
DRNet have a limit on their rules, which LIRE one-vs-rest and DRNet divide among the classes;
brackets hold the number that they have. MLRL-Boomer (`pip install mlrl-boomer`, its own defaults
with at most two conditions) takes part where it is installed. `--complexity` compares boosting with
and without conditions on several columns at equal complexity instead: rules + conditions + columns.
These paths, and LLTBoost's, have 20 rules, or 10 per class. Seconds are CPU time of all sizes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import jaxrules as jr

DATA = ("iris", "wine", "small_tae", "cmc", "cardio", "page_blocks", "dry_bean", "pendigits")
_MOST = 2000
Answers = Iterator[tuple[int | str, Any]]
"""For each size the probabilities of the test rows, None without a model of this size."""


def joint(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
    fits = jr.boosting.path(X, y, max_rules=max(rules), multiclass="joint")
    for most in rules:
        yield most, jr.predict_proba(fits[min(most, len(fits)) - 1].model, X_test)


def one_vs_rest(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
    each = max(2, -(-3 * max(rules) // len(np.unique(y))))
    fits = jr.boosting.path(X, y, max_rules=each, multiclass="one_vs_rest")
    for most in rules:
        small = [fit.model for fit in fits if len(fit.model.conjunctions) <= most]
        yield most, jr.predict_proba(small[-1], X_test) if small else None


def by_size(
    path: Callable[..., Any],
    multiclass: Literal["joint", "one_vs_rest"],
    size: Callable[[Any], int],
    **options: Any,
) -> Callable[..., Answers]:
    def answers(X: Any, y: Any, X_test: Any, sizes: list[int]) -> Answers:
        rules = 20 if multiclass == "joint" else 10
        fits = path(X, y, max_rules=rules, multiclass=multiclass, **options)
        for most in sizes:
            small = [one.model for one in fits if size(one.model) <= most]
            yield most, jr.predict_proba(small[-1], X_test) if small else None

    return answers


def rulefit(multiclass: Literal["joint", "one_vs_rest"]) -> Callable[..., Answers]:
    def answers(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
        pool = jr.extract_rules(jr.default_forest(X, y, seed=0), X)
        given: dict[str, Any] = {"rules": pool, "multiclass": multiclass}
        largest = jr.rulefit.path(X, y, n_penalties=2, **given)[0].details.l1_penalty
        penalties = (largest * np.geomspace(1, 0.01, 30)).tolist()
        fits = jr.rulefit.path(X, y, l1_penalties=penalties, tolerance=1e-4, **given)
        for most in rules:
            small = [fit.model for fit in fits if len(fit.model.conjunctions) <= most]
            yield most, jr.predict_proba(small[-1], X_test)
        model = jr.rulefit.fit(X, y, multiclass=multiclass).model
        yield f"default ({len(model.conjunctions)})", jr.predict_proba(model, X_test)

    return answers


def lire(multiclass: Literal["joint", "one_vs_rest"]) -> Callable[..., Answers]:
    def answers(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
        pool = jr.extract_rules(jr.default_forest(X, y, seed=0), X)
        given: dict[str, Any] = {"rules": pool, "multiclass": multiclass, "restarts": 0}
        for most in rules:
            each = most if multiclass == "joint" else max(1, round(most / len(np.unique(y))))
            model = jr.lire.fit(X, y, global_penalty=1e-3, max_rules=each, **given).model
            yield f"{most} ({len(model.conjunctions)})", jr.predict_proba(model, X_test)
        model = jr.lire.fit(X, y, **given).model
        yield f"default ({len(model.conjunctions)})", jr.predict_proba(model, X_test)

    return answers


def glrm(multiclass: Literal["joint", "one_vs_rest"]) -> Callable[..., Answers]:
    def answers(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
        first = jr.glrm.path(X, y, multiclass=multiclass)[0].details
        parts = [first] if multiclass == "joint" else first.of_class
        largest = parts[0].rule_penalty / 0.3
        penalties = (largest * np.geomspace(0.9, 0.02, 28)).tolist()
        fits = jr.glrm.path(X, y, multiclass=multiclass, rule_penalties=penalties, tolerance=1e-4)
        for most in rules:
            small = [fit.model for fit in fits if len(fit.model.conjunctions) <= most]
            yield most, jr.predict_proba(small[-1], X_test)
        model = jr.glrm.fit(X, y, multiclass=multiclass).model
        yield f"default ({len(model.conjunctions)})", jr.predict_proba(model, X_test)

    return answers


def ltrnet(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
    for most in rules:
        model = jr.ltrnet.fit(X, y, max_rules=most).model
        yield f"{most} ({len(model.conjunctions)})", jr.predict_proba(model, X_test)


def drnet(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
    for most in rules:
        each = max(1, most // (len(np.unique(y)) - 1))
        model = jr.drnet.fit(X, y, max_rules=each).model
        yield f"{most} ({len(model.conjunctions)})", jr.predict_proba(model, X_test)


def cart(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
    X, X_test = np.asarray(X), np.asarray(X_test)
    for most in rules:
        tree = DecisionTreeClassifier(max_leaf_nodes=max(2, most), random_state=0)
        yield most, tree.fit(X, y).predict_proba(X_test)


def l1_multinomial(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
    scale = StandardScaler().fit(np.asarray(X))
    X, X_test = scale.transform(np.asarray(X)), scale.transform(np.asarray(X_test))
    models = []
    for strength in np.geomspace(1e-3, 10, 15):
        model = LogisticRegression(C=strength, l1_ratio=1.0, solver="saga", max_iter=300)
        models.append(model.fit(X, y))
    for most in rules:
        small = [model for model in models if np.count_nonzero(model.coef_) <= most]
        yield most, small[-1].predict_proba(X_test) if small else None


def boomer(X: Any, y: Any, X_test: Any, rules: list[int]) -> Answers:
    from mlrl.boosting import BoomerClassifier

    labels, X, X_test = np.unique(y), np.asarray(X), np.asarray(X_test)
    for most in rules:
        model = BoomerClassifier(
            max_rules=most,
            loss="logistic-non-decomposable",
            rule_induction="top-down-greedy{max_conditions=2}",
            random_state=1,
        )
        model.fit(X, (np.asarray(y)[:, None] == labels).astype(np.uint8))
        yield most, np.asarray(model.predict_proba(X_test), np.float64)


METHODS: dict[str, Callable[..., Answers]] = {
    "joint": joint,
    "one-vs-rest": one_vs_rest,
    "LLTBoost joint": by_size(jr.lltboost.path, "joint", lambda m: len(m.conjunctions)),
    "LLTBoost one-vs-rest": by_size(jr.lltboost.path, "one_vs_rest", lambda m: len(m.conjunctions)),
    "RuleFit joint": rulefit("joint"),
    "RuleFit one-vs-rest": rulefit("one_vs_rest"),
    "LIRE joint": lire("joint"),
    "LIRE one-vs-rest": lire("one_vs_rest"),
    "GLRM joint": glrm("joint"),
    "GLRM one-vs-rest": glrm("one_vs_rest"),
    "LTRNet": ltrnet,
    "DRNet": drnet,
    "CART": cart,
    "L1 multinomial": l1_multinomial,
}

_complexity = partial(jr.complexity, measure="nonzeros")
BY_COMPLEXITY: dict[str, Callable[..., Answers]] = {
    "joint": by_size(jr.boosting.path, "joint", _complexity),
    "joint, oblique": by_size(jr.boosting.path, "joint", _complexity, max_nonzeros=3),
    "one-vs-rest": by_size(jr.boosting.path, "one_vs_rest", _complexity),
    "one-vs-rest, oblique": by_size(jr.boosting.path, "one_vs_rest", _complexity, max_nonzeros=3),
}


def measures(answers: Any, y: Any, labels: Any) -> str:
    """Log-loss and error."""
    if answers is None:
        return "-"
    p = np.clip(np.asarray(answers), 1e-6, 1)
    p /= p.sum(axis=1, keepdims=True)
    codes = np.searchsorted(labels, y)
    return (
        f"{-np.log(p[np.arange(len(y)), codes]).mean():.3f} / {(p.argmax(1) != codes).mean():.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", nargs="*", default=DATA)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--rules", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--complexity", type=int, nargs="+")
    parser.add_argument("--train", type=int, default=_MOST)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*max_iter.*|.*penalty.*|.*multi_class.*")
    methods = dict(METHODS)
    if given.complexity:
        methods = dict(BY_COMPLEXITY)
    try:
        import mlrl.boosting  # noqa: F401 (is it installed?)

        if not given.complexity:
            methods["MLRL-Boomer"] = boomer
    except ImportError:
        print("MLRL-Boomer is not installed and left out")
    if given.methods:
        methods = {name: methods[name] for name in given.methods}
    for name in given.data:
        data = jr.datasets.load(name)
        y, n = np.asarray(data.y), len(data.y)
        sizes = {
            "train_size": min(given.train, int(0.7 * n)),
            "test_size": min(_MOST, int(0.3 * n)),
        }
        splits = StratifiedShuffleSplit(given.splits, random_state=0, **sizes)
        for split, (train, test) in enumerate(splits.split(np.zeros(n), y)):
            for method, answers in methods.items():
                start = time.process_time()
                most = sorted(given.complexity or given.rules)
                found = list(answers(data.X[train], y[train], data.X[test], most))
                texts = [f"{most}: {measures(p, y[test], np.unique(y))}" for most, p in found]
                seconds = time.process_time() - start
                print(
                    f"{name:12} {split} {method:19} {seconds:6.1f} s  {'   '.join(texts)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
