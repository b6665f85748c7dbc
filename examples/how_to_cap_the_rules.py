# %% [markdown]
# # How do I cap the number of rules?
#
# Set the maximum number of rules, or set a penalty per rule and see how many remain. A whole path
# costs little more than one model.

# %%
import matplotlib.pyplot as plt
import numpy as np

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)

# %% [markdown]
# ## A maximum number
#
# Boosting, lists and networks have `max_rules`. `max_length` limits the conditions in a rule.

# %%
print(jr.boosting.fit(train.X, train.y, max_rules=2, max_length=2, max_cut_points=5).model)

# %% [markdown]
# One run of `path` gives a model for every number of rules.

# %%
path = jr.boosting.path(train.X, train.y, max_rules=6, max_cut_points=5)
for rules, fit in enumerate(path, 1):
    loss, accuracy = jr.risk(fit.model, test.X, test.y), jr.accuracy(fit.model, test.X, test.y)
    print(
        f"{rules} rules, complexity {jr.complexity(fit.model)}: log loss {loss:.3f}, accuracy "
        f"{accuracy:.3f}"
    )

# %% [markdown]
# ## A penalty
#
# In RuleFit (and LIRE, GLRM) a larger penalty leaves fewer rules.

# %%
rules = jr.extract_rules(jr.default_forest(train.X, train.y, n_trees=20, seed=0), train.X)
rules = rules.with_short_thresholds(train.X)
penalised = jr.rulefit.path(train.X, train.y, rules=rules, l1_penalties=np.geomspace(0.2, 0.01, 6))
jr.plots.support_path(penalised, test.X, penalty="l1_penalty")
plt.show()

# %% [markdown]
# ## The best model within a size
#
# In every training fold, `jr.compare` chooses by cross-validation among the models of at most
# `max_complexity`. Its table reports the risk of this choice on held-out rows. `refit` then uses
# all rows. Every learner's path is available by name; this example defines its own, with few cut
# points.

# %%


def boosting(X, y):
    return {
        f"max_rules={m}": fit
        for m, fit in enumerate(jr.boosting.path(X, y, max_rules=4, max_cut_points=4), 1)
    }


methods = {"boosting": boosting, "cart": "cart"}
found = jr.compare(
    train.X, train.y, methods=methods, max_complexity=20, folds=3, inner_folds=2, seed=0
)
print(found)
print(found.refit("boosting", train.X, train.y).model)

# %%
jr.plots.risk_complexity(found)
plt.show()
