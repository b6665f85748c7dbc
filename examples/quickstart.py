"""Quickstart: fit interpretable rule models to data bundled with scikit-learn, and read them.

python examples/quickstart.py
"""

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
trees = jr.default_forest(train.X, train.y, kind="boosted_trees", seed=0)
rules = jr.extract_rules(trees, train.X).with_short_thresholds(train.X)
print(
    f"{data.name}: {len(train)} training rows, {len(test)} test rows, {len(rules)} candidate "
    "rules\n"
)

fits = {
    "RuleFit": jr.rulefit.fit(train.X, train.y, l1_penalty=0.04, rules=rules, progress=True),
    "LIRE": jr.lire.fit(train.X, train.y, rules=rules, progress=True),
    "boosting": jr.boosting.fit(
        train.X,
        train.y,
        loss="logistic",
        max_rules=4,
        l2_penalty=5.0,
        max_cut_points=4,
        progress=True,
    ),
}

print(f"{'':10}{'test accuracy':>15}{'support':>9}{'local support':>15}{'complexity':>12}  status")
for name, fit in fits.items():
    print(
        f"{name:10}{jr.accuracy(fit.model, test.X, test.y):>15.3f}{jr.support(fit.model):>9}"
        f"{jr.local_support(fit.model, test.X):>15.2f}{jr.complexity(fit.model):>12}  {fit.status}"
    )

model = fits["LIRE"].model
print(f"\n{model}\n")
print("Why does the second test row get its label?")
print(jr.explain(model, test.X[1:2])[0])
