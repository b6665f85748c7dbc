# %% [markdown]
# # How do I show a model to others?
#
# `jr.report` writes one HTML file: the rules, how good they are, and why each row is predicted as
# it is. It opens in any browser, without a network.

# %%
import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
fits = jr.boosting.path(train.X, train.y, max_rules=4)

# %% [markdown]
# A path gets a slider. The figures are for the rows given, here the test rows.

# %%
page = jr.report(fits, test.X, test.y, path="report.html")
print(page)  # as the last expression of a cell, `page` is shown

# %% [markdown]
# Whom do the rules affect? `groups` is one group per row, or the name of a column. With
# `max_rows=0` the file stores no row.

# %%
groups = ["small" if area < 500 else "large" for area in test.X.columns[3]]
print(jr.report(fits[-1], test.X, test.y, "groups.html", groups=groups, max_rows=0))
