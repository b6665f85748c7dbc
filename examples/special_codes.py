"""Codes among numbers on FICO's home equity data: categories beside the numbers, not small numbers.

    JAXRULES_DATA=/folder/with/manifest.json python examples/special_codes.py

In the columns of this set -7 means "condition not met", such as "never delinquent", -8 "no usable
trades" and -9 "no record". As numbers, the codes are less than all others: "few months since the
last delinquency" includes those who never were delinquent, and the constraint that more months are
never worse makes them the worst.
"""

import numpy as np

import jaxrules as jr

data = jr.datasets.load("fico")
coded = jr.as_table(data.X, special_values={name: [-7, -8, -9] for name in data.X.names})
months = ("MSinceMostRecentDelq", "MSinceMostRecentInqexcl7days", "MSinceOldestTradeOpen")
falling = dict.fromkeys((*months, "ExternalRiskEstimate", "PercentTradesNeverDelq"), -1)
test = np.random.default_rng(0).random(len(data)) < 0.25

for title, X in {"codes as numbers": data.X, "codes as special values": coded}.items():
    for constraint, monotone in {"": None, ", monotone": falling}.items():
        model = jr.boosting.fit(
            X[~test], data.y[~test], max_rules=8, positive="Bad", monotone=monotone
        ).model
        risk = jr.risk(model, X[test], data.y[test])
        print(f"\n{title}{constraint}: test log-loss {risk:.4f}\n{model}")
