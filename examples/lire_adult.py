"""LIRE and RuleFit on Adult: accuracy against the number of rules to read, and
both models side by side.

    JAXRULES_DATA=/folder/with/manifest.json python examples/lire_adult.py [picture.png]

Without JAXRULES_DATA, the data come from OpenML. The tables follow Table 1 of the LIRE paper: both
models have the same number of rules, and the rules that one person satisfies are bold. Both models'
weights are on the log-odds scale.
"""

import sys
import textwrap
from itertools import zip_longest
from pathlib import Path

import jax
import numpy as np

import jaxrules as jr

# Compiled kernels are kept between runs. The first run takes a few seconds longer.
jax.config.update("jax_compilation_cache_dir", str(Path.home() / ".cache" / "jaxrules"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

MOST_RULES_IN_THE_TABLE = 10
WIDTH = 58


def table_lines(title: str, model: jr.RuleEnsemble, person: jr.Table) -> list[tuple[str, bool]]:
    """The lines of text, and whether each is bold; largest weights first."""
    satisfied = model.conjunctions.satisfied(person)[0]
    weights = model.weights[:, 0]
    lines = [(title, False), (f"intercept {model.intercept[0]:+.3f}", False), ("", False)]
    for rule in np.argsort(-np.abs(weights), kind="stable").tolist():
        text = textwrap.wrap(model.conjunctions.describe(rule), WIDTH - 8)
        lines.append((f"{text[0]:{WIDTH - 8}} {weights[rule]:+7.3f}", bool(satisfied[rule])))
        lines += [(f"{more:{WIDTH}}", bool(satisfied[rule])) for more in text[1:]]
    return lines


def side_by_side(left: list[tuple[str, bool]], right: list[tuple[str, bool]]) -> str:
    def styled(line: tuple[str, bool]) -> str:
        text = f"{line[0]:{WIDTH}}"
        return f"\033[1m{text}\033[0m" if line[1] else text

    return "\n".join(
        f"{styled(a)} | {styled(b)}" for a, b in zip_longest(left, right, fillvalue=("", False))
    )


def equal_support(
    some: tuple[jr.Fit, ...], others: tuple[jr.Fit, ...], most: int
) -> tuple[jr.RuleEnsemble, jr.RuleEnsemble]:
    """A pair of models, one from each, with the same number of rules: as many
    as possible up to `most`.
    """
    pairs = [
        (a.model, b.model)
        for a in some
        for b in others
        if jr.support(a.model) == jr.support(b.model) <= most
    ]
    return max(pairs, key=lambda pair: jr.support(pair[0]))


data = jr.datasets.load("adult")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
rules = jr.extract_rules(jr.default_forest(train.X, train.y, seed=0), train.X)
print(f"{len(train)} people to learn from, {len(test)} to test on, {len(rules)} candidate rules\n")

common = {"rules": rules, "missing": "own_category"}
lire = jr.lire.path(train.X, train.y, global_penalties=np.geomspace(0.01, 0.0004, 12), **common)
rulefit = jr.rulefit.path(
    train.X, train.y, l1_penalties=np.geomspace(0.06, 0.0015, 40).tolist(), **common
)

print(f"{'':10}{'support':>9}{'local support':>15}{'test accuracy':>15}")
fronts = {}
for name, fits in (("LIRE", lire), ("RuleFit", rulefit)):
    fronts[name] = [
        (
            jr.support(fit.model),
            jr.local_support(fit.model, test.X),
            jr.accuracy(fit.model, test.X, test.y),
        )
        for fit in fits
    ]
    for size, local, accuracy in fronts[name]:
        print(f"{name:10}{size:>9}{local:>15.2f}{accuracy:>15.4f}")

# A person from the test rows who satisfies rules of both models
small, equal = equal_support(lire, rulefit, MOST_RULES_IN_THE_TABLE)
counts = np.minimum(jr.local_supports(small, test.X), jr.local_supports(equal, test.X))
person = test.X[np.array([int(np.argmax(counts > 0))])]
print("\nOne person:")
for name, column, feature in zip(person.names, person.columns, person.schema.features, strict=True):
    value = column[0] if feature.categories is None else (*feature.categories, "?")[column[0]]
    print(f"  {name}: {value:g}" if feature.categories is None else f"  {name}: {value}")
print()
titles = [
    f"{name}: accuracy {jr.accuracy(model, test.X, test.y):.3f}, "
    f"{jr.local_support(model, test.X):.1f} rules a person"
    for name, model in (("RuleFit", equal), ("LIRE", small))
]
print(side_by_side(table_lines(titles[0], equal, person), table_lines(titles[1], small, person)))

if len(sys.argv) > 1:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for name, front in fronts.items():
        size, local, accuracy = np.array(front).T
        axes[0].plot(size, accuracy, marker="o", label=name)
        axes[1].plot(local, accuracy, marker="o", label=name)
    axes[0].set(xlabel="rules in the model", ylabel="test accuracy")
    axes[1].set(xlabel="rules that hold for a person, on average")
    axes[1].legend()
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=150)
    print(f"\nPlot of the trade-off: {sys.argv[1]}")
