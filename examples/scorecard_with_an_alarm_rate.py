# %% [markdown]
# # A scorecard with an alarm rate
#
# A card of a few rules with whole points that can be added without a computer; it must never
# contradict what experts know about the columns, and it may raise an alarm for at most a given
# share of the cases.

# %%
import matplotlib.pyplot as plt
import numpy as np

import jaxrules as jr

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.3, seed=1)
print(repr(train.X), f"{np.mean(train.y == 'malignant'):.0%} malignant")

# %% [markdown]
# ## Rules that keep to what is known
#
# The score is the log-odds of "malignant", the class that alarms are about; `positive=` names the
# other one if need be. Larger and more concave nuclei must never lower it, so
# these columns get `monotone=1`; the measurement errors are left out. Each rule is the best one of
# its stage among those that keep the constraints.

# %%
up = ["worst radius", "worst area", "worst perimeter", "worst concave points", "worst texture"]
errors = [name for name in train.X.names if name.endswith("error")]
fit = jr.boosting.fit(
    train.X, train.y, max_rules=4, monotone=dict.fromkeys(up, 1), forbidden=errors
)
print(fit)
fit.model

# %% [markdown]
# What did the constraints cost? The same fit without them, on the test rows:

# %%
free = jr.boosting.fit(train.X, train.y, max_rules=4)
for name, model in {"constrained": fit.model, "free": free.model}.items():
    print(f"{name:12} test log-loss {jr.risk(model, test.X, test.y):.3f}")

# %% [markdown]
# ## Points instead of weights
#
# All points from -5 to +5 are tried, each with its best scale and intercept: no better card of
# these rules exists. The caption says what rounding to points costs.

# %%
card = jr.scorecard(fit.model, train.X, train.y)
card

# %%
for name, model in {"weights": fit.model, "points": card.model}.items():
    accuracy, risk = jr.accuracy(model, test.X, test.y), jr.risk(model, test.X, test.y)
    print(f"{name:8} test accuracy {accuracy:.3f}, log-loss {risk:.3f}")

# %% [markdown]
# ## At most so many alarms
#
# Suppose that there is time to look at one case in three. `operating_point` finds the lowest
# threshold with alarms on at most that share of the training rows. Few rules give few totals, and
# rows with equal totals are alarms together: `tied` says how many share the next total.

# %%
point = jr.operating_point(card.model, train.X, train.y, max_alarms=0.35)
print(f"threshold {point.threshold:.3f}: {point.alarms:.1%} of the training rows are alarms,")
print(f"one total lower {point.alarms + point.tied:.1%}")
model = jr.with_threshold(card.model, point)

# %% [markdown]
# The threshold is part of the model: `predict`, the saved file, SQL, PMML and Python use it.

# %%
alarm = jr.predict(model, test.X) == "malignant"
sick = np.asarray(test.y) == "malignant"
print(f"test rows: {alarm.mean():.1%} alarms; {sick[alarm].mean():.1%} of them are malignant;")
print(f"{alarm[sick].mean():.1%} of the malignant cases raise an alarm")
print(jr.to_sql(model))

# %% [markdown]
# ## A scale, and what moves later
#
# The usual scale of credit scores: 20 points double the odds of the harmless class. `drift`
# compares the scores and rules of later rows with those of fit.

# %%
print(jr.scaled_scorecard(card, pdo=20, base_score=600, base_odds=50))
print(jr.drift(card, train.X, test.X))

# %% [markdown]
# ## One case
#
# Which rules hold for it, and what they add; and its reason codes, the points of the card that move
# it towards an alarm, also of rules that do not hold:

# %%
row = test.X[np.flatnonzero(alarm)[:1]]
explanation = jr.explain(model, row)[0]
print(explanation)
print(jr.reasons(card, row)[0])
jr.plots.waterfall(explanation)
plt.show()
