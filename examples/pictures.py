# %% [markdown]
# # A gallery of plots
#
# All plots of `jr.plots` for models, on held-out rows. Each draws on axes that you pass, or makes a
# figure that is high enough for its rules. The colours are distinct for colour-blind readers.

# %%
import matplotlib.pyplot as plt

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.4, seed=0)
model = jr.boosting.fit(train.X, train.y, max_rules=6).model

# %% [markdown]
# ## How good is it?
#
# Rings mark the operating point, bands are intervals with 95 % confidence.

# %%
_, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
jr.plots.roc(model, test.X, test.y, axes[0])
jr.plots.precision_recall(model, test.X, test.y, axes[1])
jr.plots.calibration(model, test.X, test.y, axes[2])
plt.show()

# %% [markdown]
# ## What does it rest on?

# %%
jr.plots.rule_importance(model, test.X)
plt.show()

# %%
jr.plots.feature_importance(model, test.X)
plt.show()

# %% [markdown]
# ## What does a column do?
#
# The mean probability if only this column is changed. Grey bars are how often its values occur.

# %%
jr.plots.effect(model, test.X, "worst perimeter")
plt.show()

# %% [markdown]
# ## Which rules say nearly the same?

# %%
jr.plots.overlap(model, test.X)
plt.show()

# %% [markdown]
# ## Why is a row predicted as it is?

# %%
explanation = jr.explain(model, test.X[:1])[0]
print(explanation)
jr.plots.waterfall(explanation)
plt.show()

# %% [markdown]
# ## Several classes, and rule lists
#
# With several classes, a bar has the part of each class. In a list, bars are the shares of rows
# that the rules decide, in the colour of their label; as a flow, they show which rows reach a rule.

# %%
wine = jr.datasets.load("wine")
several = jr.boosting.fit(wine.X, wine.y, max_rules=6).model
jr.plots.rule_importance(several, wine.X)
plt.show()

# %%
rule_list = jr.ssrl.fit(wine.X, wine.y, max_rules=4).model
jr.plots.rule_importance(rule_list, wine.X)
plt.show()

# %%
jr.plots.list_flow(rule_list, wine.X, wine.y)
plt.show()

# %% [markdown]
# ## On a dark page

# %%
with plt.style.context("dark_background"):
    jr.plots.list_flow(rule_list, wine.X, wine.y)
    plt.show()
