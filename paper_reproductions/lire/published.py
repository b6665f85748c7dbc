"""The paper's own numbers, and nothing else. All of them are quoted; none is ours.

`TABLE_1` to `TABLE_6` are printed in the paper (arXiv:2306.11481; the appendix holds Tables 2 to
6). The folder ``published`` holds what the paper draws but does not print: the results per fold
that its author published with the program (kelicht/lire, MIT licence, folder ``res``), rounded to
five digits. Their means over the ten folds are the points of Figures 2 to 12; their folds are
scikit-learn's ``StratifiedKFold(10)`` without a shuffle, so that ours are the same rows.
"""

from __future__ import annotations

import csv
import functools
from pathlib import Path

from paper_reproductions.framework import Rows

DATA_SETS = ("adult", "bank", "heart", "fico", "compas")
RULE_METHODS = ("LIRE", "RuleFit", "GLRM")
METHODS = (*RULE_METHODS, "RF", "LightGBM", "KernelSVM")

TABLE_1_INPUT: dict[str, str | float] = {
    "age": 39,
    "fnlwgt": 120985,
    "education-num": 9,
    "capital-gain": 0,
    "capital-loss": 0,
    "hours-per-week": 40,
    "workclass": "Private",
    "education": "HS-grad",
    "marital-status": "Divorced",
    "occupation": "Other-service",
    "relationship": "Own-child",
    "race": "White",
    "sex": "Male",
    "native-country": "United-States",
}
"""Table 1 (a): a row with an income of at most $50K."""

TABLE_1 = {
    "RuleFit": {
        "accuracy": 0.830,
        "support": 8,
        "local_support": 3.8,
        "intercept": 0.0,
        "satisfied": 6,
    },
    "LIRE": {
        "accuracy": 0.842,
        "support": 7,
        "local_support": 1.1,
        "intercept": -1.637,
        "satisfied": 2,
    },
}
"""Table 1 (b), (c) and the average numbers of satisfied rules in Section 1;
``satisfied``: rules in boldface.

``intercept`` is a threshold: the sum of the weights has to be greater for an income of at most
$50K.
"""

TABLE_1_RULES = {
    "RuleFit": (
        ("Education-Num <= 12 & Capital-Gain <= 5119", 1.006, True),
        ("Marital-Status != Married-civ-spouse & Education != Prof-school", 0.644, True),
        ("Capital-Loss <= 1820 & Marital-Status != Married-civ-spouse", 0.411, True),
        ("Marital-Status != Married-civ-spouse & Hours-per-week <= 44", 0.312, True),
        ("Age > 31 & Sex = Male", -0.191, True),
        ("Marital-Status != Married-civ-spouse & Education != Masters", 0.050, True),
        ("Marital-Status = Married-civ-spouse & Education != HS-grad", -0.027, False),
        ("Hours-per-week > 43 & Marital-Status != Never-married", -0.014, False),
    ),
    "LIRE": (
        ("Capital-Gain > 5119", -1.536, False),
        ("Relationship = Own-child & Hours-per-week <= 49", 1.255, True),
        ("Capital-Loss > 1820 & Capital-Loss <= 1978", -1.245, False),
        ("Marital-Status = Married-civ-spouse", -1.192, False),
        ("Hours-per-week <= 43 & Occupation = Other-service", 0.906, True),
        ("Education-Num > 12", -0.801, False),
        ("Relationship != Own-child & Capital-Gain > 5095", -0.661, False),
    ),
}
"""Rule, weight, and whether it is in boldface: the input satisfies it."""

TABLE_2 = {
    "adult": {"rows": 32561, "columns": 108, "rules": 1220.3},
    "bank": {"rows": 4521, "columns": 35, "rules": 1225.8},
    "heart": {"rows": 1025, "columns": 15, "rules": 1053.4},
    "fico": {"rows": 9871, "columns": 23, "rules": 1249.8},
    "compas": {"rows": 6167, "columns": 14, "rules": 1092.9},
}

TABLE_3 = {
    "LIRE": "gamma in {0.001, 0.002, 0.003, 0.004, 0.005}, lambda = 2 gamma",
    "RuleFit": "gamma in {0.0005, 0.00075, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.025, 0.05}",
    "GLRM": "lambda_0 in {0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1}, lambda_1 = 0.2 lambda_0",
    "RF": "T in {100, 300, 500}, L in {64, 128, 256}",
    "LightGBM": "T in {100, 300, 500}, L in {64, 128, 256}",
    "KernelSVM": "C in {0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0}",
}

TABLE_4 = {
    "adult": {
        "LIRE": 148.5,
        "RuleFit": 9.658,
        "GLRM": 75.93,
        "RF": 5.137,
        "LightGBM": 0.192,
        "KernelSVM": 401.7,
    },
    "bank": {
        "LIRE": 8.446,
        "RuleFit": 1.308,
        "GLRM": 11.78,
        "RF": 0.825,
        "LightGBM": 0.252,
        "KernelSVM": 2.017,
    },
    "heart": {
        "LIRE": 4.859,
        "RuleFit": 0.782,
        "GLRM": 32.37,
        "RF": 0.095,
        "LightGBM": 0.067,
        "KernelSVM": 0.106,
    },
    "fico": {
        "LIRE": 74.59,
        "RuleFit": 1.93,
        "GLRM": 14.17,
        "RF": 2.142,
        "LightGBM": 0.284,
        "KernelSVM": 10.99,
    },
    "compas": {
        "LIRE": 9.875,
        "RuleFit": 1.191,
        "GLRM": 2.528,
        "RF": 0.492,
        "LightGBM": 0.084,
        "KernelSVM": 4.47,
    },
}
"""Seconds of the final fit, without the forest that the rules come from."""

TABLE_4_AVERAGE = {
    "LIRE": 49.36,
    "RuleFit": 2.974,
    "GLRM": 27.36,
    "RF": 1.744,
    "LightGBM": 0.176,
    "KernelSVM": 83.86,
}

TABLE_4_DEVIATIONS = {
    "adult": {
        "LIRE": 0.01,
        "RuleFit": 0.01,
        "GLRM": 0.0,
        "RF": 0.01,
        "LightGBM": 0.0,
        "KernelSVM": 0.01,
    },
    "bank": {
        "LIRE": 0.01,
        "RuleFit": 0.01,
        "GLRM": 0.01,
        "RF": 0.01,
        "LightGBM": 0.01,
        "KernelSVM": 0.0,
    },
    "heart": {
        "LIRE": 0.01,
        "RuleFit": 0.02,
        "GLRM": 0.02,
        "RF": 0.01,
        "LightGBM": 0.01,
        "KernelSVM": 0.05,
    },
    "fico": dict.fromkeys(METHODS, 0.02),
    "compas": dict.fromkeys(METHODS, 0.02),
}
"""What stands behind the sign of plus or minus after every number of seconds."""

TABLE_5 = {
    "accuracy": {
        "adult": {
            "RuleFit": 0.02531,
            "GLRM": 1.0,
            "RF": 0.06174,
            "LightGBM": 0.00098,
            "KernelSVM": 1.0,
        },
        "bank": {
            "RuleFit": 0.1875,
            "GLRM": 0.53906,
            "RF": 0.65234,
            "LightGBM": 0.88214,
            "KernelSVM": 0.99626,
        },
        "heart": {
            "RuleFit": 0.79289,
            "GLRM": 0.91734,
            "RF": 0.39323,
            "LightGBM": 0.08986,
            "KernelSVM": 1.0,
        },
        "fico": {
            "RuleFit": 0.02441,
            "GLRM": 0.00865,
            "RF": 0.00195,
            "LightGBM": 0.95801,
            "KernelSVM": 0.03316,
        },
        "compas": {
            "RuleFit": 0.00888,
            "GLRM": 0.1377,
            "RF": 0.10267,
            "LightGBM": 1.0,
            "KernelSVM": 0.04292,
        },
    },
    "f1": {
        "adult": {
            "RuleFit": 0.00684,
            "GLRM": 1.0,
            "RF": 0.01367,
            "LightGBM": 0.00098,
            "KernelSVM": 1.0,
        },
        "bank": {
            "RuleFit": 0.1377,
            "GLRM": 0.46094,
            "RF": 0.24609,
            "LightGBM": 0.91346,
            "KernelSVM": 0.99023,
        },
        "heart": {
            "RuleFit": 0.5,
            "GLRM": 0.89796,
            "RF": 0.34292,
            "LightGBM": 0.08986,
            "KernelSVM": 1.0,
        },
        "fico": {
            "RuleFit": 0.11621,
            "GLRM": 0.01367,
            "RF": 0.00293,
            "LightGBM": 0.99023,
            "KernelSVM": 0.06543,
        },
        "compas": {
            "RuleFit": 0.00195,
            "GLRM": 0.00488,
            "RF": 0.8125,
            "LightGBM": 0.97559,
            "KernelSVM": 0.61523,
        },
    },
    "auc": {
        "adult": {
            "RuleFit": 0.01367,
            "GLRM": 1.0,
            "RF": 0.02441,
            "LightGBM": 0.00098,
            "KernelSVM": 1.0,
        },
        "bank": {
            "RuleFit": 0.1377,
            "GLRM": 0.21582,
            "RF": 0.01367,
            "LightGBM": 0.05273,
            "KernelSVM": 1.0,
        },
        "heart": {
            "RuleFit": 0.2326,
            "GLRM": 0.24948,
            "RF": 0.07206,
            "LightGBM": 0.0544,
            "KernelSVM": 1.0,
        },
        "fico": {
            "RuleFit": 0.00195,
            "GLRM": 0.00195,
            "RF": 0.00098,
            "LightGBM": 0.8125,
            "KernelSVM": 0.02441,
        },
        "compas": {
            "RuleFit": 0.01367,
            "GLRM": 0.00488,
            "RF": 0.01855,
            "LightGBM": 1.0,
            "KernelSVM": 0.00195,
        },
    },
}
"""p-values, alternative: LIRE's score is lower than the baseline's."""

TABLE_6 = {
    "support": {
        "adult": {"RuleFit": 1.0, "GLRM": 0.09668},
        "bank": {"RuleFit": 1.0, "GLRM": 0.83887},
        "heart": {"RuleFit": 1.0, "GLRM": 0.99902},
        "fico": {"RuleFit": 0.90332, "GLRM": 0.8623},
        "compas": {"RuleFit": 0.99618, "GLRM": 0.8125},
    },
    "local_support": {data: {"RuleFit": 1.0, "GLRM": 1.0} for data in DATA_SETS},
}
"""p-values, alternative: LIRE's support is larger than the baseline's."""


@functools.cache
def comparison() -> Rows:
    """Figures 4, 5, 10, 11, 12 per fold: data, method, fold, accuracy, f1, auc,
    seconds, sizes of ensembles.
    """
    return _read("comparison.csv")


@functools.cache
def tradeoff() -> Rows:
    """Figures 2, 3, 6 to 9 per fold, on Adult: method, fold, penalty,
    local_penalty, and what was measured.
    """
    return _read("tradeoff_adult.csv")


def _read(name: str) -> Rows:
    """The rows of a file, those with a support with the support ratio."""
    with (Path(__file__).parent / "published" / name).open(encoding="utf-8", newline="") as file:
        rows = [{key: _entry(text) for key, text in row.items()} for row in csv.DictReader(file)]
    for row in rows:
        if row["support"] != "":
            size, local = float(row["support"]), float(row["local_support"])
            row["ratio"] = local / size if size else 0.0
    return Rows(rows)


def _entry(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
