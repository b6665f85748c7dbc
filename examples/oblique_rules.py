"""Oblique rules: one rule that combines several columns can replace many plain rules.

    python examples/oblique_rules.py [--output FOLDER]

The data are banknotes (genuine or forged, with two measures of their images) if JAXRULES_DATA has
them, otherwise two columns of scikit-learn's breast cancer data. The script prints one oblique rule
and plain rules of the same accuracy, explains a prediction and shows how the risk falls as rules on
all columns are added. With --output it draws the decision regions (needs matplotlib).
"""

import argparse
from pathlib import Path

import numpy as np

import jaxrules as jr


def columns(data: jr.datasets.Dataset, names: list[str]) -> jr.Table:
    """A table of the named columns."""
    chosen = [data.X.names.index(name) for name in names]
    return jr.as_table(data.X.numeric_matrix()[:, chosen], feature_names=names)


def report(title: str, model: jr.RuleEnsemble, X: jr.Table, y: np.ndarray) -> None:
    size = jr.complexity(model, measure="nonzeros")
    print(f"\n{title}: test accuracy {jr.accuracy(model, X, y):.3f}, complexity {size}")
    print(model)


def draw(models: dict[str, jr.RuleEnsemble], X: jr.Table, y: np.ndarray, path: Path) -> None:
    """Draw the decision regions and the test rows."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(
        1, len(models), figsize=(4 * len(models), 3.8), layout="constrained", squeeze=False
    )
    for ax, (title, model) in zip(axes[0], models.items(), strict=True):
        jr.plots.decision_regions(model, X, y, ax).set_title(title, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(path)
    print(f"\nplot: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, help="folder for the plot; without it, none is drawn"
    )
    output = parser.parse_args().output

    if "banknote" in jr.datasets.available():
        data, names = jr.datasets.load("banknote"), ["variance", "skewness"]
    else:
        data, names = jr.datasets.load("breast_cancer"), ["worst smoothness", "worst area"]
    train, test = jr.datasets.train_test_split(data, test_size=0.3, seed=0)
    X, X_test = columns(train, names), columns(test, names)

    oblique = jr.lltboost.fit(X, train.y, loss="logistic", max_rules=1).model
    report("one oblique rule", oblique, X_test, test.y)

    # Plain rules by the same kind of boosting: as many as it takes to be as accurate, at most ten.
    plain = jr.boosting.path(
        X,
        train.y,
        loss="logistic",
        objective="gradient_sum",
        search="greedy",
        corrective=True,
        intercept=True,
        per_unit=False,
        objective_tolerance=0.3,
        max_rules=10,
        max_cut_points=None,
    )
    wanted = jr.accuracy(oblique, X, train.y)
    enough = next(
        (fit for fit in plain if jr.accuracy(fit.model, X, train.y) >= wanted), plain[-1]
    ).model
    title = f"{jr.support(enough)} plain rule{'s' * (jr.support(enough) != 1)}"
    report(title, enough, X_test, test.y)

    print("\nwhy the first test row gets its label:")
    print(jr.explain(oblique, X_test[:1])[0])

    print("\nall columns, one more rule at a time:")
    path = jr.lltboost.path(train.X, train.y, loss="logistic", max_rules=5)
    for rules, fit in enumerate(path, start=1):
        risk, accuracy = jr.risk(fit.model, test.X, test.y), jr.accuracy(fit.model, test.X, test.y)
        newest = fit.model.conjunctions.describe(rules - 1)
        print(f"  {rules}: log loss {risk:.3f}, accuracy {accuracy:.3f} after adding   {newest}")

    if output is not None:
        draw(
            {"one oblique rule": oblique, title: enough},
            X_test,
            test.y,
            output / "oblique_rules.svg",
        )


if __name__ == "__main__":
    main()
