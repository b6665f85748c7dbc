# %% [markdown]
# # Rules for survival: hazards as Poisson rates
#
# A hazard that is constant within intervals of time is a Poisson rate: every person gives one row
# per interval, its count is 1 if the event happened there, and its exposure is the time at risk
# (Friedman, "Piecewise Exponential Models for Survival Data with Covariates", 1982). `week` is a
# column like the others, so that rules may say when a hazard is high.
#
# The data, 432 men released from prison and followed for a year (Rossi, Berk and Lenihan, 1980),
# come with the package lifelines, which also fits Cox's model: `pip install lifelines`.

# %%
import numpy as np

import jaxrules as jr

try:
    from lifelines import CoxPHFitter
    from lifelines.datasets import load_rossi
    from lifelines.utils import concordance_index
except ImportError:
    CoxPHFitter = None
    print("This example needs the package lifelines: pip install lifelines")

STARTS = np.array([0.0, 13.0, 26.0, 39.0])


def split(people):
    """A row per person and interval: the columns, the events and the weeks at risk."""
    ends = np.append(STARTS[1:], np.inf)
    spans = np.clip(people["week"].to_numpy()[:, None], STARTS, ends) - STARTS
    person, interval = np.nonzero(spans > 0)
    last = people["week"].to_numpy()[person] <= ends[interval]
    rows = people.drop(columns=["week", "arrest"]).iloc[person].assign(week=STARTS[interval])
    return rows, people["arrest"].to_numpy()[person] * last, spans[person, interval]


def cumulated_hazard(model, people):
    """The expected number of events of every person in the year of the study."""
    whole = people.assign(week=52.0)
    rows, _, exposure = split(whole)
    return jr.predict(model, rows, exposure=exposure).reshape(len(people), -1).sum(axis=1)


# %% [markdown]
# Half of the men fit the models, the other half compares them.

# %%
if CoxPHFitter is not None:
    people = load_rossi().sample(frac=1.0, random_state=0)
    train, test = people[:216], people[216:]
    rows, events, exposure = split(train)
    fit = jr.boosting.fit(rows, events, loss="poisson", exposure=exposure, max_rules=4)
    print(fit.model)
    cox = CoxPHFitter(penalizer=0.1).fit(train, "week", "arrest")
    scores = {
        "four rules": cumulated_hazard(fit.model, test),
        "Cox": cox.predict_partial_hazard(test),
    }
    for name, hazard in scores.items():
        c = concordance_index(test["week"], -np.asarray(hazard), test["arrest"])
        print(f"{name}: concordance {c:.3f}")
