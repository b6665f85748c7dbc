"""Choose the size of a model by cross-validation, read what was tried, and see what it says of rows held out.

python examples/choose_penalties.py
"""

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)

# How many boosted rules? The smallest model within one standard error of the best.
boosted = jr.boosting.cross_validate(train.X, train.y, max_rules=6, search="beam", progress=True)
print(boosted.details["cross_validation"], "\n")

# Which price of a rule, and which ridge? Rules are taken anew from the rows of every fold.
grid = {"global_penalties": [0.05, 0.02, 0.01], "l2_penalties": [0.25, 2.5]}
lire = jr.lire.cross_validate(train.X, train.y, **grid, n_folds=3, restarts=0, progress=True)
print(lire.details["cross_validation"], "\n")

for name, fit in {"boosting": boosted, "LIRE": lire}.items():
    print(
        f"{name:10}{jr.support(fit.model):>3} rules, {jr.local_support(fit.model, test.X):.1f} of them hold for a row; "
        f"{jr.accuracy(fit.model, test.X, test.y):.3f} of the test rows are right"
    )
print(f"\n{lire.model}")
