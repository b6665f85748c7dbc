"""The paper's own numbers, as printed; nothing here is measured. Triples are lower
bound, median and upper bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

Interval = tuple[float, float, float]
NEVER: Interval = (math.inf, math.inf, math.inf)


class Row(NamedTuple):
    """A row of Table 2 or 3: the target, and the methods' triples; None
    where a method does not apply.
    """

    target: float
    tgb: Interval
    drnet: Interval | None
    ltrnet: Interval
    lltboost: Interval


# Table 2: the smallest complexity at a risk target; medians of ten repetitions with the
# 4th and the 7th of them.
COMPLEXITY = {  # squared loss and log loss, targets from TGB
    "Housing": Row(0.55, (28, 36, 41), None, (55, 62, 69), (21, 22, 24)),
    "Wine": Row(0.78, (32, 43, 64), None, (110, 116, 124), (5, 9, 12)),
    "Diabetes": Row(0.71, (23, 41, 63), None, (101, 113, 121), (7, 7, 9)),
    "Friedman": Row(0.46, (33, 36, 37), None, (99, 116, 133), (16, 17, 20)),
    "Cars": Row(0.25, (22, 25, 27), None, (26, 33, 53), (18, 20, 22)),
    "Cancer": Row(0.19, (25, 32, 41), NEVER, (308, 327, 373), (7, 13, 13)),
    "Banknote": Row(0.21, (26, 30, 33), NEVER, (30, 32, 36), (6, 6, 6)),
    "Voice": Row(0.17, (17, 17, 17), NEVER, (156, 168, 186), (6, 6, 9)),
    "Magic": Row(0.49, (33, 43, 43), NEVER, (98, 110, 129), (16, 19, 23)),
    "Liver": Row(0.63, (32, 37, 43), NEVER, (28, 81, math.inf), (12, 18, 27)),
}
ERROR_COMPLEXITY = {  # 0/1 loss, targets from DRNet
    "Cancer": Row(0.06, (73, math.inf, math.inf), (17, 20, 22), (277, 295, 346), (7, 10, 17)),
    "Banknote": Row(0.09, (24, 28, 33), (28, 85, 104), (18, 22, 25), (6, 6, 5)),
    "Voice": Row(0.05, (29, 52, 71), (11, 13, 15), (90, 104, 130), (4, 4, 4)),
    "Magic": Row(0.23, (32, 42, 44), (9, 9, 10), (60, 66, 86), (5, 6, 7)),
    "Liver": Row(0.5, (7, 8, 9), (9, 12, 16), (14, 21, 26), (6, 7, 9)),
}

# Table 3: risk at a complexity target; medians of ten repetitions with the 3rd and the 8th of them.
RISK = {
    "Housing": Row(36, (0.53, 0.54, 0.56), None, NEVER, (0.47, 0.49, 0.51)),
    "Wine": Row(43, (0.73, 0.77, 0.81), None, NEVER, (0.73, 0.75, 0.76)),
    "Diabetes": Row(41, (0.65, 0.73, 0.75), None, NEVER, (0.57, 0.62, 0.66)),
    "Friedman": Row(36, (0.42, 0.45, 0.49), None, NEVER, (0.34, 0.36, 0.37)),
    "Cars": Row(25, (0.21, 0.23, 0.25), None, (0.25, 0.28, math.inf), (0.2, 0.22, 0.24)),
    "Cancer": Row(32, (0.17, 0.19, 0.2), (0.31, 0.31, 0.32), NEVER, (0.1, 0.13, 0.15)),
    "Banknote": Row(
        30, (0.19, 0.21, 0.23), (0.41, 0.42, 0.44), (0.03, 0.25, math.inf), (0.05, 0.05, 0.06)
    ),
    "Voice": Row(17, (0.15, 0.16, 0.17), (0.34, 0.34, 0.35), NEVER, (0.13, 0.13, 0.14)),
    "Magic": Row(41, (0.49, 0.49, 0.5), (0.55, 0.56, 0.58), NEVER, (0.45, 0.46, 0.46)),
    "Liver": Row(37, (0.63, 0.63, 0.64), (0.65, 0.67, 0.7), (0.62, 0.64, 0.67), (0.63, 0.64, 0.66)),
}
ERROR = {
    "Cancer": Row(32, (0.07, 0.09, 0.1), (0.05, 0.05, 0.06), NEVER, (0.03, 0.05, 0.05)),
    "Banknote": Row(
        30, (0.06, 0.09, 0.1), (0.09, 0.1, 0.11), (0.0, 0.01, math.inf), (0.01, 0.01, 0.01)
    ),
    "Voice": Row(17, (0.05, 0.07, 0.09), (0.05, 0.05, 0.05), NEVER, (0.03, 0.04, 0.04)),
    "Magic": Row(41, (0.22, 0.24, 0.25), (0.21, 0.22, 0.23), NEVER, (0.19, 0.2, 0.21)),
    "Liver": Row(37, (0.34, 0.35, 0.38), (0.38, 0.41, 0.43), (0.32, 0.4, 0.47), (0.31, 0.36, 0.38)),
}

# Table 4: seconds of a fit, (TGB, DRNet, LTRNet, LLTBoost).
SECONDS: dict[str, tuple[float, float | None, float, float]] = {
    "Housing": (0.88, None, 10.65, 1.69),
    "Wine": (1.15, None, 11.38, 1.47),
    "Diabetes": (0.86, None, 10.77, 1.53),
    "Friedman": (1.07, None, 11.44, 1.19),
    "Cars": (0.5, None, 11.47, 0.87),
    "Cancer": (2.6, 11.53, 4.56, 4.5),
    "Banknote": (0.55, 23.11, 11.35, 0.91),
    "Voice": (1.93, 26.52, 13.68, 6.4),
    "Magic": (1.1, 34.26, 14.08, 2.43),
    "Liver": (0.47, 19.03, 10.47, 0.93),
}
SIZES = {  # Table 4: columns and rows
    "Housing": (8, 20640),
    "Wine": (11, 1599),
    "Diabetes": (10, 442),
    "Friedman": (10, 2000),
    "Cars": (4, 1770),
    "Cancer": (30, 569),
    "Banknote": (4, 1372),
    "Voice": (20, 3168),
    "Magic": (10, 19020),
    "Liver": (6, 345),
}

# Table 1: the rules of Fig. 1, (weight, condition); DRNet's say "true" where one of them holds.
RULES = {
    "TGB": (
        (1.46, "always"),
        (-4.58, "var >= 0.295"),
        (-12.7, "skew >= 0.975 & var <= 0.295 & var >= -0.918"),
    ),
    "DRNet": (
        (math.nan, "var <= 0.022 & skew <= 0.67"),
        (math.nan, "var <= -0.29 & skew <= 1.28"),
        (math.nan, "var <= -0.29 & skew <= 0.67"),
    ),
    "LTRNet": (
        (-25.9, "always"),
        (11.94, "-11.16 var + 3.88 skew >= -4.1 & -3.36 var - 10.3 skew >= -5.95"),
        (3.45, "-2.4 var - 1.28 skew >= 2.45"),
        (-4.0, "2.29 var + 2.28 skew >= -0.99 & 2.22 var + 2.26 skew >= -0.44"),
        (3.45, "-2.04 var - 6.11 skew >= -3.51"),
        (11.42, "-3.8 var - 11.67 skew >= -6.73 & -13.95 var + 4.77 skew >= -3.58"),
        (-7.31, "6.35 var - 1.93 skew >= 1.14"),
    ),
    "LLTBoost": ((1.79, "always"), (-3.85, "2.81 var + 1.5 skew >= -0.28")),
}

# Section 4.
REPEATS, MOST_ROWS, RULES_AT_MOST = 10, 500, 10
TGB_PENALTIES = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)
LTRNET_STRENGTHS = (1e-4, 1e-3, 0.01, 0.1, 1.0)
"""Of the L1 penalties, and of the W-shaped one."""
DRNET_STRENGTHS = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)
"""lambda_1; lambda_2 is 1e-5."""
