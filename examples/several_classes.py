"""Several classes as one problem: a weight per class and rule, pruned for reading.

    python examples/several_classes.py

The data are three kinds of wine. All classes share their rules; `prune=` keeps the weights that
matter and states what that costs. The explanation says why a wine is of one kind and not another.
"""

import numpy as np

import jaxrules as jr


def main() -> None:
    data = jr.datasets.load("wine")
    train, test = jr.datasets.train_test_split(data, test_size=0.3, seed=0)

    for prune in (None, 8):
        fit = jr.boosting.fit(train.X, train.y, max_rules=5, prune=prune)
        error = np.mean(jr.predict(fit.model, test.X) != np.asarray(test.y))
        print(f"{fit.model}\n\ntest error {error:.3f}, test log-loss ", end="")
        print(f"{jr.risk(fit.model, test.X, test.y):.3f}\n{fit.details.pruning or ''}\n")

    print(jr.explain(fit.model, test.X[np.array([0])])[0])


if __name__ == "__main__":
    main()
