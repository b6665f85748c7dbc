# %% [markdown]
# # How do I cap the number of rules?
#
# Say how many there may be, or say what a rule must be worth and see how many remain. Whole paths cost little more than
# one model.

# %%
import matplotlib.pyplot as plt
import numpy as np

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)

# %% [markdown]
# ## A number
#
# `max_rules` in boosting, lists and networks, and `max_length` for the conditions of a rule.

# %%
print(jr.boosting.fit(train.X, train.y, max_rules=2, max_length=2, max_cut_points=5).model)

# %% [markdown]
# The path has the model of every number of rules, from one run.

# %%
path = jr.boosting.path(train.X, train.y, max_rules=6, max_cut_points=5)
for rules, fit in enumerate(path, 1):
    loss, accuracy = jr.risk(fit.model, test.X, test.y), jr.accuracy(fit.model, test.X, test.y)
    print(f"{rules} rules, complexity {jr.complexity(fit.model)}: log loss {loss:.3f}, accuracy {accuracy:.3f}")

# %% [markdown]
# ## A price
#
# In RuleFit (and LIRE, GLRM) a larger penalty leaves fewer rules.

# %%
rules = jr.extract_rules(jr.default_forest(train.X, train.y, n_trees=20, seed=0), train.X)
penalised = jr.rulefit.path(train.X, train.y, rules=rules, penalties=np.geomspace(0.2, 0.01, 6))
jr.plots.support_path(penalised, test.X, penalty="l1_penalty")
plt.show()

# %% [markdown]
# ## The best model within a size
#
# `jr.compare` chooses by cross-validation among the models of at most `max_complexity`, separately in every training
# fold, and its table says what that is worth on rows held out. `refit` then takes all rows. By name there are the paths
# of all learners; here is one of our own, with few cut points.

# %%


def boosting(X, y):
    return {f"max_rules={m}": fit for m, fit in enumerate(jr.boosting.path(X, y, max_rules=4, max_cut_points=4), 1)}


methods = {"boosting": boosting, "cart": "cart"}
found = jr.compare(train.X, train.y, methods=methods, max_complexity=20, folds=3, inner_folds=2, seed=0)
print(found)
print(found.refit("boosting", train.X, train.y).model)

# %%
jr.plots.risk_complexity(found)
plt.show()
