# %% [markdown]
# # A tour: every method on one data set
#
# The task is to classify tumours in scikit-learn's breast cancer data as benign or malignant, from
# eight of the thirty measurements. Every learner takes `X` and `y` and returns a `Fit`: the model,
# what was optimised, how the search ended and what is proved.

# %%
import matplotlib.pyplot as plt
import numpy as np

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
names = [name for name in data.X.names if name.startswith("mean")][:8]
columns = data.X.numeric_matrix()[:, [data.X.names.index(name) for name in names]]
rows = np.random.default_rng(0).permutation(len(data))
train, test = rows[:300], rows[300:]
X, y = jr.as_table(columns[train], feature_names=names), data.y[train]
X_test, y_test = jr.as_table(columns[test], feature_names=names), data.y[test]
fits = {}


def show(name: str, fit: jr.Fit) -> None:
    """Print a fit, its model and the test accuracy."""
    fits[name] = fit
    print(f"{fit}\n\n{fit.model}\n\ntest accuracy {jr.accuracy(fit.model, X_test, y_test):.3f}")


# %% [markdown]
# ## Additive rules
#
# **Boosting** finds one rule at a time. Each is the best conjunction for its stage, and the
# remaining gap is reported.

# %%
show("boosting", jr.boosting.fit(X, y, max_rules=3, max_cut_points=5))

# %% [markdown]
# **LIRE** selects rules of a forest so that a single prediction needs few of them.

# %%
rules = jr.extract_rules(jr.default_forest(X, y, n_trees=20, seed=0), X)
rules = rules.with_short_thresholds(jr.as_table(X))
show("LIRE", jr.lire.fit(X, y, global_penalty=0.02, rules=rules, restarts=0))

# %% [markdown]
# **RuleFit** weights the rules of a forest under an L1 penalty; the optimum is certified.

# %%
show("RuleFit", jr.rulefit.fit(X, y, l1_penalty=0.05, rules=rules))

# %% [markdown]
# **GLRM** solves the same kind of problem over all conjunctions, by column generation.

# %%
show("GLRM", jr.glrm.fit(X, y, rule_penalty=0.05))

# %% [markdown]
# ## Rules on linear combinations of columns
#
# **LLTBoost** boosts such rules. **LTRNet** learns them all at once, by gradient descent.

# %%
show("LLTBoost", jr.lltboost.fit(X, y, max_rules=2))

# %%
show("LTRNet", jr.ltrnet.fit(X, y, max_rules=4, iterations=100, restarts=2))

# %% [markdown]
# ## Lists and sets: one rule decides
#
# **SSRL** searches for lists by sequence-submodular optimisation. The **exact** search proves the
# best list of its conditions. **DRNet** trains a network that represents a rule set for the second
# class.

# %%
show("SSRL", jr.ssrl.fit(X, y, max_rules=3, max_cut_points=4))

# %%
show("exact list", jr.exact_list.fit(X, y, max_rules=2, max_length=1, max_cut_points=4))

# %%
show("DRNet", jr.drnet.fit(X, y, max_rules=5, restarts=1))

# %% [markdown]
# ## A linear model in steps
#
# A **coordinate path** changes one coefficient at a time and keeps the cost low along the way.

# %%
path = jr.paths.fit(X, y == "malignant", steps=4, cost="logistic", method="local", standardise=True)
print(path.model)

# %% [markdown]
# ## Side by side
#
# These are the test rows of one split, with settings chosen by hand. `jr.compare` chooses settings
# inside training folds.

# %%
print(f"{'':12}{'accuracy':>9}{'rules':>7}{'complexity':>12}{'seconds':>9}  status")
for name, fit in fits.items():
    print(
        f"{name:12}{jr.accuracy(fit.model, X_test, y_test):9.3f}{jr.support(fit.model):7d}"
        f"{jr.complexity(fit.model, 'nonzeros'):12d}{fit.seconds:9.2f}  {fit.status}"
    )

# %% [markdown]
# A plot of the rules by importance, for one of them:

# %%
jr.plots.rule_importance(fits["boosting"].model, X_test)
plt.show()
