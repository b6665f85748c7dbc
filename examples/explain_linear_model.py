"""Explain a linear model step by step: update an old model, show the price of
interpretability, draw the front.

    python examples/explain_linear_model.py [--output FOLDER]

The old model predicts the progression of diabetes from the body mass index alone. Now ten
measurements are available. The best update changes one coefficient at a time and has the lowest
total cost along the way.
"""

import argparse
from pathlib import Path

import jaxrules as jr
from jaxrules import paths


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, help="folder for the plots; without it, none are drawn"
    )
    output = parser.parse_args().output

    data = jr.datasets.load("diabetes")
    train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)

    others = [name for name in train.X.names if name != "bmi"]
    old = paths.fit(train.X, train.y, steps=1, standardise=True, forbidden=others)
    print("The old model, on standardised columns:")
    print(old.model)

    update = paths.fit(train.X, train.y, steps=5, start=old.model, standardise=True)
    print(f"\nIts best update in five steps ({update.status.value}, {update.seconds:.3f} s):")
    print(update.model)

    greedy = paths.greedy(train.X, train.y, steps=5, start=old.model, standardise=True)
    direct = paths.direct(train.X, train.y, start=old.model, standardise=True)
    print(
        f"\nSum of the costs along five steps: optimal {update.objective:.4f}, greedy "
        f"{greedy.loss:.4f}"
    )
    for step in range(len(update.model) + 1):
        residual = test.y - jr.predict(update.model, test.X, step=step)
        print(f"  after step {step}: R^2 on the test rows {1 - residual.var() / test.y.var():.3f}")

    print("\nWhy does the new model predict this value for the first test row?")
    print(jr.explain(update.model, test.X[:1])[0])

    front = paths.pareto(train.X, train.y, max_steps=5, standardise=True)
    print(f"\n{front}")

    if output is not None:
        import matplotlib.pyplot as plt

        output.mkdir(parents=True, exist_ok=True)
        _, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
        jr.plots.path_costs(
            {"optimal": update.model, "greedy": greedy, "direct": direct}, ax=axes[0]
        )
        jr.plots.price_of_interpretability(front, ax=axes[1])
        plt.savefig(output / "explain_linear_model.svg")


if __name__ == "__main__":
    main()
