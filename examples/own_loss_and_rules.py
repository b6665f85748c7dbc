# %% [markdown]
# # Your own loss and your own rules
#
# The task is to predict how far diabetes progresses within a year. Predicting too little is worse
# than predicting too much, and there are rules that must be in the model.

# %%
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxrules as jr

data = jr.datasets.load("diabetes")
train, test = jr.datasets.train_test_split(data, test_size=0.3, seed=0)
y, y_test = np.asarray(train.y) / 100, np.asarray(test.y) / 100
print(train.X.names)

# %% [markdown]
# ## A loss
#
# A loss is a function of (y, score) that JAX can differentiate: here a smooth absolute error that
# counts three times as much when the score is too low. Boosting takes gradient and curvature from
# JAX, and the rule of every stage is optimal for this loss.


# %%
def too_low_is_worse(target, score):
    distance = target - score
    return jnp.where(distance > 0, 3.0, 1.0) * (jnp.sqrt(0.1 + distance**2) - jnp.sqrt(0.1))


own = jr.boosting.fit(train.X, y, loss=too_low_is_worse, max_rules=5)
plain = jr.boosting.fit(train.X, y, max_rules=5)
print(own)
own.model

# %%
for name, model in {"own loss": own.model, "squared loss": plain.model}.items():
    predicted = jr.predict(model, test.X)
    mean = float(np.mean(too_low_is_worse(y_test, predicted)))
    print(f"{name:13} own loss {mean:.3f}, too low for {np.mean(predicted < y_test):.0%} of rows")

# %%
figure, ax = plt.subplots(figsize=(4.6, 3.6), layout="constrained")
ax.axline((1.5, 1.5), slope=1, color="0.8")
for name, fit, marker in [("own loss", own, "o"), ("squared loss", plain, "x")]:
    ax.plot(y_test, jr.predict(fit.model, test.X), marker, markersize=4, label=name)
ax.set_xlabel("progression / 100 on test rows")
ax.set_ylabel("prediction")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Rules
#
# Rules are written as lists of conditions, columns by index. A linear combination of columns is a
# column of its own. `first=` keeps an expert's rules in the model; boosting adds the rest and fits
# all weights.

# %%
column = {name: index for index, name in enumerate(train.X.names)}
c = jr.Condition
heavy = jr.Direction((column["bmi"], column["bp"]), (1.0, 0.5))
experts = jr.Conjunctions.build(
    train.X.schema,
    [
        [c.above(column["bmi"], 30), c.above(column["bp"], 100)],
        [c.at_least(heavy, 80)],
    ],
)
print(experts.describe(0), "|", experts.describe(1))
kept = jr.boosting.fit(train.X, y, max_rules=5, first=experts)
kept.model

# %% [markdown]
# Or choose among candidate rules alone: those of a fitted forest, or your own, with an L1 penalty
# and a certificate.

# %%
from sklearn.ensemble import RandomForestRegressor

X = train.X.numeric_matrix()
forest = RandomForestRegressor(30, max_depth=2, random_state=0).fit(X, y)
candidates = jr.extract_rules(forest, train.X)
chosen = jr.rulefit.fit(train.X, y, rules=candidates, l1_penalty=0.06)
print(len(candidates), "candidates")
print(chosen)
chosen.model

# %% [markdown]
# The path shows how weights appear as the penalty falls:

# %%
path = jr.rulefit.path(train.X, y, rules=candidates, l1_penalties=[0.2, 0.15, 0.1, 0.06, 0.04])
jr.plots.coefficient_path(path, most=6)
plt.show()
