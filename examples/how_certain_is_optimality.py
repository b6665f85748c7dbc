# %% [markdown]
# # How certain is optimality?
#
# A `Fit` says how its search ended. Learners that prove something add a bound: no model of the
# stated class is better than that. A better model can gain at most the gap between objective and
# bound.

# %%
import matplotlib.pyplot as plt

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)

# %% [markdown]
# ## Lists: the global optimum
#
# `optimal` means that the bound meets the objective: this is the best list of these conditions at
# this penalty.

# %%
best = jr.exact_list.fit(train.X, train.y, max_rules=2, max_length=1, max_cut_points=4)
print(best)
print(f"objective {best.objective:g}, bound {best.bound:g}, gap {best.gap:g}")
print(best.model)

# %% [markdown]
# The optimal list is not the only good one. How many lists are nearly as good, and on how many rows
# do they agree?

# %%
near = jr.exact_list.near_optimal(
    train.X, train.y, max_rules=2, max_length=1, max_cut_points=4, within=0.01
)
print(near)
agreed = near.possible(test.X).sum(axis=1) == 1
print(f"all of them predict the same label on {agreed.mean():.0%} of the test rows")

# %% [markdown]
# ## Boosting: every rule is optimal for its stage
#
# Each stage has its own certificate. An ensemble of rules that are optimal for their stages need
# not be the optimal ensemble.

# %%
fit = jr.boosting.fit(
    train.X, train.y, max_rules=3, max_length=2, max_cut_points=5, max_evaluations=None
)
for rule, stage in enumerate(fit.details["stages"]):
    print(f"gap {stage.gap:.1e}  {fit.model.conjunctions.describe(rule)}")

# %% [markdown]
# A limit ends a search early. The model is the best so far, and the gap says how much a better rule
# could gain at most.

# %%
hasty = jr.boosting.fit(train.X, train.y, max_rules=3, max_evaluations=200)
for rule, stage in enumerate(hasty.details["stages"]):
    print(f"gap {stage.gap:.1e}  {hasty.model.conjunctions.describe(rule)}")

# %% [markdown]
# ## What a proof does not say
#
# A proof is about the training rows. Whether another sample would give the same rules is a separate
# question:

# %%
stable = jr.stability(
    lambda X, y: jr.boosting.fit(X, y, max_rules=2, max_cut_points=5),
    train.X,
    train.y,
    replicates=5,
)
print(stable)

# %% [markdown]
# ## The search over time
#
# The plot shows the incumbent and, if there is one, the bound.

# %%
jr.plots.search_progress(best)
plt.show()
