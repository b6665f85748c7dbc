# %% [markdown]
# # The best rule ensemble over all conjunctions
#
# Boosting adds the best rule at every stage, and keeps it. LIRE searches a pool of rules.
# `jr.lire.optimal` searches all sets of conjunctions at once, and proves that none is better.

# %%
import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
rows = {"max_cut_points": 3, "max_length": 2}

best = jr.lire.optimal(train.X, train.y, global_penalty=0.05, l2_penalty=20.0, **rows)
print(best)
print(best.model)

# %% [markdown]
# The bound holds for all models of these conjunctions. Screening left few of them for branch and
# bound to search.

# %%
details = best.details
print(f"objective {best.objective:.6f}, bound {best.bound:.6f}")
print(
    f"{details.n_propositions} propositions; {details.n_candidates} conjunctions were left, and "
    f"branch and bound needed {details.nodes} nodes"
)

# %% [markdown]
# How far is boosting, with as many rules of the same propositions and the same ridge? Conditions
# cost nothing in this objective, so `per_unit=False`.

# %%
size = len(best.model.conjunctions)
boosted = jr.boosting.fit(train.X, train.y, max_rules=size, l2_penalty=20.0, per_unit=False, **rows)
prices = {"global_penalty": 0.05, "local_penalty": 0.0, "l2_penalty": 20.0}
reached = jr.lire.objective(boosted.model, train.X, train.y, **prices)
print(f"boosting {reached:.6f}, {reached / best.objective - 1:.2%} above the optimum")
for name, fit in {"optimal": best, "boosting": boosted}.items():
    print(f"{name}: log-loss {jr.risk(fit.model, test.X, test.y):.4f} on test rows")
