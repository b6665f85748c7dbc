"""Choose the size of a model by cross-validation, read what was tried, and test
the model on held-out rows.

python examples/choose_penalties.py
"""

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)

# How many boosted rules? The smallest model within one standard error of the best.
boosted = jr.boosting.cross_validate(train.X, train.y, max_rules=6, search="beam", progress=True)
print(boosted.details["cross_validation"], "\n")

# Which penalty on a rule, and which ridge? Every fold makes its rules anew from its own rows.
grid = {"global_penalties": [0.05, 0.02, 0.01], "l2_penalties": [0.25, 2.5]}
lire = jr.lire.cross_validate(train.X, train.y, **grid, n_folds=3, restarts=0, progress=True)
print(lire.details["cross_validation"], "\n")

for name, fit in {"boosting": boosted, "LIRE": lire}.items():
    print(
        f"{name:10}{jr.support(fit.model):>3} rules, {jr.local_support(fit.model, test.X):.1f} per "
        f"row on average; test accuracy {jr.accuracy(fit.model, test.X, test.y):.3f}"
    )
print(f"\n{lire.model}")
