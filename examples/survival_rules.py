# %% [markdown]
# # Rules for survival: hazards as Poisson rates
#
# A hazard that is constant within intervals of time is a Poisson rate: every person gives one row
# per interval, its count is 1 if the event happened there, and its exposure is the time at risk
# (Friedman, "Piecewise Exponential Models for Survival Data with Covariates", 1982).
# `jr.survival` splits the rows, fits rules and turns rates into hazard ratios and curves. `week`,
# the start of the interval, is a column like the others, so that rules may say when a hazard is
# high.
#
# The data, 432 men released from prison and followed for a year (Rossi, Berk and Lenihan, 1980),
# come with the package lifelines, which also fits Cox's model: `pip install lifelines`. Without it
# this example makes up people of the same kind.

# %%
import numpy as np
import pandas as pd

import jaxrules as jr

try:
    from lifelines import CoxPHFitter
    from lifelines.datasets import load_rossi

    people = load_rossi().sample(frac=1.0, random_state=0)
except ImportError:
    CoxPHFitter = None
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(17, 45, 432), "prio": rng.poisson(3, 432)})
    hazard = 0.004 * np.where(people["age"] < 23, 2.5, 1.0) * 1.1 ** people["prio"]
    weeks = np.ceil(rng.exponential(1 / hazard))
    people["week"], people["arrest"] = np.minimum(weeks, 52), (weeks <= 52).astype(int)

# %% [markdown]
# Two thirds of the men fit the model, the others measure it.

# %%
train, test = people[:288], people[288:]
X, X_test = (part.drop(columns=["week", "arrest"]) for part in (train, test))
model = jr.survival.fit(X, train["week"], train["arrest"], column="week", max_rules=4)
print(model)

# %% [markdown]
# The same rules chose themselves on these men, so that their intervals are too narrow. Those of the
# other men are honest.

# %%
print(jr.survival.refit(model, X_test, test["week"], test["arrest"]))

# %% [markdown]
# The probability of no arrest until some week, with an interval, of the first man:

# %%
times = np.array([13.0, 26.0, 39.0, 51.0])
lower, upper = model.survival_interval(X_test[:1], times)
for t, chance, low, high in zip(
    times, model.survival(X_test[:1], times)[0], lower[0], upper[0], strict=True
):
    print(f"week {t:.0f}: {chance:.2f} ({low:.2f} to {high:.2f})")

# %% [markdown]
# Concordance, and the integrated Brier score (smaller is better), beside Cox's model:

# %%
times = np.arange(4.0, 52.0, 4.0)
risk = model.cumulative_hazard(X_test, [52.0])[:, 0]
found = {"four rules": (risk, model.survival(X_test, times))}
if CoxPHFitter is not None:
    cox = CoxPHFitter(penalizer=0.1).fit(train, "week", "arrest")
    found["Cox"] = (
        cox.predict_partial_hazard(test).to_numpy(),
        cox.predict_survival_function(test, times=times).to_numpy().T,
    )
for name, (risk, chances) in found.items():
    c = jr.survival.concordance(test["week"], test["arrest"], risk)
    score = jr.survival.integrated_brier_score(test["week"], test["arrest"], chances, times)
    print(f"{name}: concordance {c:.3f}, integrated Brier score {score:.4f}")
