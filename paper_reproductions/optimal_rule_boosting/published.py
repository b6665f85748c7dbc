"""The paper's own numbers, as printed (scores rounded to four decimals); nothing here is measured."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A row of Table 1: areas under the rules/score curve, seconds, and RuleFit without a bound on its rules."""

    rulefit: float
    greedy: float
    optimal: float
    rulefit_seconds: float
    greedy_seconds: float
    optimal_seconds: float
    unbounded_score: float
    unbounded_rules: int


TABLE_1 = {
    "breast cancer": Row(0.9080, 0.9493, 0.9525, 2.99, 13.94, 44.89, 0.9842, 46),
    "digits (5)": Row(0.5, 0.9225, 0.9275, 10.02, 266.44, 947.68, 0.9761, 228),
    "gender recog": Row(0.9396, 0.9420, 0.9562, 7.90, 76.99, 1642.92, 0.9825, 113),
    "IBM HR": Row(0.5, 0.6773, 0.6787, 4.10, 44.06, 5925.01, 0.6741, 173),
    "iris (1)": Row(0.6888, 0.9097, 0.9152, 1.33, 2.48, 10.07, 0.9437, 99),
    "wine (1)": Row(0.7939, 0.9311, 0.9418, 1.51, 3.15, 3.99, 0.9779, 85),
    "classification2": Row(0.7532, 0.8690, 0.8872, 5.26, 27.16, 228.15, 0.9062, 155),
    "telco churn": Row(0.5, 0.7763, 0.7789, 16.31, 82.59, 517.30, 0.7252, 88),
    "tic-tac-toe": Row(0.6993, 0.7520, 0.8035, 3.08, 14.44, 15.61, 0.9902, 194),
    "titanic": Row(0.6987, 0.8574, 0.8594, 2.95, 14.73, 144.10, 0.8372, 35),
    "boston": Row(0.1626, 0.5443, 0.5645, 2.41, 10.09, 585.08, 0.8766, 151),
    "demographics": Row(0.2087, 0.3348, 0.3432, 14.51, 112.25, 941.60, 0.5291, 170),
    "insurance": Row(0.2246, 0.7471, 0.7511, 3.63, 11.97, 16.16, 0.8352, 236),
    "load diabetes": Row(0.1823, 0.2947, 0.3079, 2.05, 5.72, 51.91, 0.4556, 53),
    "friedman1": Row(0.2090, 0.5080, 0.5531, 5.88, 24.86, 51.35, 0.9771, 231),
    "friedman2": Row(0.2655, 0.7878, 0.8075, 5.78, 16.91, 18.53, 0.9990, 638),
    "friedman3": Row(0.1613, 0.5079, 0.5237, 4.78, 16.93, 22.49, 0.8813, 192),
    "mobile prices": Row(0.1317, 0.7701, 0.7785, 7.17, 39.50, 2437.31, 0.9339, 105),
    "red wine quality": Row(0.1090, 0.2560, 0.2673, 4.14, 22.00, 623.11, 0.4485, 138),
    "suicide rates": Row(0.2061, 0.2981, 0.3016, 45.28, 243.09, 259.84, 0.3964, 249),
    "used cars": Row(0.2691, 0.6889, 0.7204, 4.20, 12.48, 13.30, 0.9623, 283),
    "videogamesales": Row(0.1160, 0.8402, 0.8596, 34.71, 131.00, 148.81, 0.9993, 991),
    "life expectancy": Row(0.2458, 0.5819, 0.5987, 6.43, 68.37, 161.17, 0.9555, 245),
    "world happiness": Row(0.2738, 0.5994, 0.6530, 1.76, 5.24, 34.34, 0.9691, 108),
}

# Section 4: the ensembles of five rules that are printed, (weight, condition).
ENSEMBLES = {
    ("used cars", "optimal"): (
        (16192, "PS>=100 & year>=2003"),
        (10596, "count<=86 & PS>=180 & year>=2009"),
        (-8360, "PS in [100,180] & year in [2003,2009]"),
        (5837, "PS>=180 & year<=2003"),
        (2497, "km<=70000"),
    ),
    ("used cars", "greedy"): (
        (16202, "PS>=100 & year>=2003"),
        (10612, "count<=86 & PS>=180 & year>=2009"),
        (9791, "year>=2015"),
        (5790, "PS>=180 & year<=2003"),
        (-8414, "PS in [100,180] & year in [2003,2009]"),
    ),
    ("tic-tac-toe", "optimal"): (
        (1.187, "mid-mid==x"),
        (1.717, "top-lft==x & top-mid==x & top-rgt==x"),
        (1.721, "bot-lft==x & bot-mid==x & bot-rgt==x"),
        (1.671, "bot-rgt==x & mid-rgt==x & top-rgt==x"),
        (-2.344, "top-lft==o & top-mid==o & top-rgt==o"),
    ),
    ("tic-tac-toe", "greedy"): (
        (1.187, "mid-mid==x"),
        (1.211, "bot-rgt==x & mid-mid==b"),
        (-2.671, "top-lft==o & top-mid==o & top-rgt==o"),
        (1.487, "bot-lft==x & bot-mid==x & bot-rgt==x"),
        (1.685, "top-lft==x & top-mid==x & top-rgt==x"),
    ),
}

# Table 2: activations of bound and equivalence, immediate and propagated.
TABLE_2 = {
    "boston": (1280132, 941252, 146216, 405358),
    "breast cancer": (151420, 88881, 18902, 54427),
    "friedman1": (227373, 4473, 2981, 0),
    "iris (1)": (15881, 26208, 2255, 3310),
    "red wine quality": (2881173, 149112, 54389, 114079),
    "tic-tac-toe": (4303, 7772, 2179, 0),
    "titanic": (106374, 911809, 1969, 27241),
    "used cars": (1347, 990, 183, 1),
    "world happiness": (148327, 17080, 26420, 5904),
}

# Appendix B.
PENALTIES = (1e-4, 1e-3, 0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
