"""RuleFit on Adult: categorical columns, missing values as their own category, a path of penalties.

    JAXRULES_DATA=/folder/with/manifest.json python examples/adult_rulefit.py

Without JAXRULES_DATA, the data come from OpenML.
"""

import jaxrules as jr

data = jr.datasets.load("adult")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
missing = ", ".join(data.X.columns_with_missing())
print(f"{data.X.shape[0]} people, {data.X.shape[1]} columns; missing values in {missing}")

rules = jr.extract_rules(jr.default_forest(train.X, train.y, seed=0), train.X)
rules = rules.with_short_thresholds(train.X)
fits = jr.rulefit.path(
    train.X, train.y, rules=rules, n_penalties=20, missing="own_category", seed=0, progress=True
)
print(f"\n{len(rules)} candidate rules")
print(f"{'penalty':>10}{'support':>9}{'local support':>15}{'test accuracy':>15}")
for fit in fits:
    print(
        f"{fit.details['l1_penalty']:>10.5f}{jr.support(fit.model):>9}"
        f"{jr.local_support(fit.model, test.X):>15.1f}"
        f"{jr.accuracy(fit.model, test.X, test.y):>15.4f}"
    )

small = next(fit for fit in fits if jr.support(fit.model) >= 10)
print(f"\n{small.model}\n")
print(jr.explain(small.model, test.X[:1])[0])
