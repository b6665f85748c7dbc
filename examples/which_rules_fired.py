# %% [markdown]
# # Which rules fired for this row?
#
# A rule model explains every prediction: it lists the rules that hold for the row and what each one
# adds.

# %%
import matplotlib.pyplot as plt

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
model = jr.boosting.fit(train.X, train.y, max_rules=5, max_cut_points=5).model
print(model)

# %% [markdown]
# `explain` takes rows and returns one explanation for each.

# %%
row = test.X[:1]
(explanation,) = jr.explain(model, row)
print(explanation)

# %% [markdown]
# The parts add up to the score: the intercept, and every rule that holds.

# %%
print([(part.text, float(part.weight[0])) for part in explanation.parts])
jr.plots.waterfall(explanation)
plt.show()

# %% [markdown]
# The same for many rows: which rules hold, and how many does a prediction need?

# %%
holds = model.conjunctions.satisfied(test.X)
for rule, share in enumerate(holds.mean(axis=0)):
    print(f"{share:4.0%} of the rows: {model.conjunctions.describe(rule)}")
print(f"rules per prediction: {jr.local_support(model, test.X):.1f} of {jr.support(model)}")

# %% [markdown]
# Which rules matter over all rows, and which ones overlap?

# %%
jr.plots.rule_importance(model, test.X)
plt.show()
print(jr.rule_report(model, test.X))
