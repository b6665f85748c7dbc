"""The paper's own numbers, as printed; nothing here is measured."""

# Section 2: the toy problem (1). Coefficients of (height, weight).
CORRELATION = 0.9
OPTIMUM = (2.12, -0.94)
OPTIMAL_COST = 0.25

# Table 1: (height, weight, cost) after every step, the start first; and the greedy path of Section
# 2.2, whose coefficients are not printed.
DECOMPOSITIONS = {
    "a": ((0.0, 0.0, 2.04), (2.12, 0.0, 1.13), (2.12, -0.94, 0.25)),
    "b": ((0.0, 0.0, 2.04), (0.0, -0.94, 4.74), (2.12, -0.94, 0.25)),
    "c": ((0.0, 0.0, 2.04), (1.70, 0.0, 0.60), (1.70, -0.94, 0.43), (2.12, -0.94, 0.25)),
}
GREEDY_COSTS = (0.42, 0.39)

# Fig. 2, caption: numbers of steps of the segments of the front, from the left; gamma = 1.
FRONT_STEPS = (0, 1, 2, 3)

# Table 2: seconds to convergence and gap in percent, K = 10.
PRESTIGE = {"exact": (5.078, 0.00), "q=1": (0.004, 0.02), "q=2": (0.019, 0.00)}

# Fig. 3a and Section 4.2: the start, then (feature, coefficient, "MSE") of every step.
SCHOOLS_START = ("MealPct", -0.87, 0.122)
SCHOOLS_STEPS = (
    ("AvgInc", 0.23, 0.122),
    ("MealPct", -0.59, 0.117),
    ("ELPct", -0.18, 0.099),
    ("ExpnStu", 0.07, 0.097),
)
SCHOOLS_OPTIMUM = 0.095

# Fig. 4a: (feature, coefficient, "MSE") of every step; Section 5.2: the expected costs.
BIKES_STEPS = (
    ("Ftemp", 0.56, 0.293),
    ("Day", 0.55, 0.146),
    ("Hum", -0.20, 0.129),
    ("Summer", 0.15, 0.119),
    ("Wind", -0.14, 0.110),
    ("Sunday", -0.07, 0.108),
    ("Clear", 0.06, 0.107),
)
BIKES_EXPECTED = 0.145

# Fig. 4b: the models of the LASSO's sequence of features, each with its "MSE".
LASSO_FEATURES = ("Ftemp", "Day", "Spring", "Clear", "Hum", "Summer", "Wind")
LASSO_MODELS = (
    ((0.65,), 0.289),
    ((0.55, 0.54), 0.146),
    ((0.50, 0.52, -0.10), 0.143),
    ((0.47, 0.52, -0.12, 0.18), 0.128),
    ((0.49, 0.51, -0.13, 0.09, -0.15), 0.121),
    ((0.50, 0.55, -0.07, 0.10, -0.14, 0.13), 0.114),
    ((0.49, 0.54, -0.06, 0.08, -0.18, 0.14, -0.14), 0.107),
)
LASSO_EXPECTED = 0.150
