# %% [markdown]
# # Several classes, text columns and missing values
#
# The rows are simulated: parcels, of which some arrive late or damaged. Two columns are text, and
# two have gaps that carry information. Nothing has to be encoded or filled.

# %%
import matplotlib.pyplot as plt
import numpy as np

import jaxrules as jr

rng = np.random.default_rng(0)
n = 1200
carrier = rng.choice(["Arrow", "Brisk", "Comet"], n, p=[0.5, 0.3, 0.2])
goods = rng.choice(["books", "glass", "tools", "toys"], n)
weight = np.round(rng.lognormal(0.5, 0.6, n), 1)
distance = np.round(rng.gamma(2.0, 150.0, n))
insured = np.where(rng.random(n) < 0.4, np.nan, np.round(rng.lognormal(4.0, 0.7, n)))

late = -2.0 + 2.2 * (carrier == "Comet") + 1.6 * (distance > 500) + 0.8 * (weight > 3)
broken = -2.6 + 2.6 * (goods == "glass") + 1.2 * np.isnan(insured)
scores = np.column_stack([broken, late, np.zeros(n)]) + rng.gumbel(size=(n, 3)) * 0.7
outcome = np.array(["damaged", "late", "on time"])[scores.argmax(axis=1)]
missing_weight = rng.random(n) < 0.05
rows = {
    "carrier": carrier.tolist(),
    "goods": goods.tolist(),
    "weight": np.where(missing_weight, np.nan, weight),
    "distance": distance,
    "insured for": insured,
}

# %% [markdown]
# A dict of columns, a list of dicts or any dataframe is a table. `missing="own_category"` makes "is
# missing" a condition of its own; without it, gaps are an error.

# %%
table = jr.as_table(rows, missing="own_category")
table.describe()

# %% [markdown]
# The labels follow the columns closely, so a small ridge is enough. Without `l2_penalty`, the fit
# chooses one.

# %%
train, test = np.arange(n) < 900, np.arange(n) >= 900
fit = jr.boosting.fit(
    table[train], outcome[train], max_rules=6, missing="own_category", l2_penalty=0.1, prune=0.6
)
print(fit)
fit.model

# %% [markdown]
# All classes share the rules, and each rule has a weight per class. `prune=` keeps the weights that
# matter and states what that costs.

# %%
before, after = fit.details.pruning.log_loss
print(f"{fit.details.pruning.kept} of {fit.details.pruning.weights} weights are left;")
print(f"training log-loss {before:.3f} before, {after:.3f} after")
print(f"test accuracy {jr.accuracy(fit.model, table[test], outcome[test]):.3f}")
print(f"of the most frequent class {np.mean(outcome[test] == 'on time'):.3f}")

# %% [markdown]
# ## Why this class and not another?

# %%
predicted = jr.predict(fit.model, table[test])
one = table[test][np.flatnonzero(predicted == "damaged")[:1]]
print(jr.explain(fit.model, one)[0])

# %% [markdown]
# New rows need no dataframe. A missing value and a category that fit never saw are no errors; an
# unseen category equals none of the known ones.

# %%
new = [
    {"carrier": "Comet", "goods": "tools", "weight": None, "distance": 700, "insured for": 50},
    {"carrier": "Dash", "goods": "glass", "weight": 1.5, "distance": 80, "insured for": None},
]
print(jr.predict(fit.model, new), jr.predict_proba(fit.model, new).round(2).tolist())

# %% [markdown]
# ## Which columns matter?
#
# The bars are importances, with one standard error from fits to bootstrap samples.

# %%
stable = jr.stability(
    lambda X, y: jr.boosting.fit(X, y, max_rules=6, missing="own_category", l2_penalty=0.1),
    table[train],
    outcome[train],
    replicates=5,
    missing="own_category",
)
jr.plots.feature_importance(stable, table[train])
plt.show()

# %% [markdown]
# ## A list instead
#
# Rules that are read from top to bottom: the first that holds decides.

# %%
listed = jr.ssrl.fit(table[train], outcome[train], max_rules=4, missing="own_category")
print(listed.model)
print(f"test accuracy {jr.accuracy(listed.model, table[test], outcome[test]):.3f}")
