"""What the sources print, and nothing else.

rulelearn: github.com/IBM/rulelearn at 06c48bf, examples/ripper_demo.ipynb, brcg_demo.ipynb,
rbm/breast-cancer-logistic.ipynb, rbm/breast-cancer-br.ipynb, rbm/boston-linear.ipynb. AIX360:
github.com/Trusted-AI/AIX360, examples/tutorials/HELOC.ipynb. interpret:
github.com/interpretml/interpret, docs/benchmarks/ebm-classification-comparison.ipynb (means over
three splits). Sizes are counted from the printed models; LogRR's on HELOC are 36 terms,
unbinarised columns among them.
"""

Numbers = dict[str, float]

PUBLISHED: dict[str, dict[str, Numbers]] = {
    "adult, rulelearn": {
        "RIPPER": {
            "accuracy": 0.8442,
            "balanced": 0.7393,
            "seconds": 10.2,
            "rules": 29,
            "conditions": 165,
        },
        "BRCG": {"accuracy": 0.8211, "balanced": 0.7254, "seconds": 26.4},
    },
    "HELOC, AIX360": {
        "LogRR": {"accuracy": 0.7261, "rules": 36},
        "BRCG": {"accuracy": 0.697, "rules": 2, "conditions": 4},
    },
    "breast cancer, rulelearn": {
        "LogRR": {"accuracy": 0.9123, "rules": 10},
        "BRCG": {"accuracy": 0.9298, "rules": 4, "conditions": 13},
    },
    "boston, rulelearn": {"LinearRR": {"R2": 0.8249}},
    "adult, interpret": {
        "logistic regression": {"AUC": 0.907, "seconds": 1.215},
        "random forest": {"AUC": 0.903, "seconds": 1.599},
        "XGBoost": {"AUC": 0.927, "seconds": 4.047},
        "EBM": {"AUC": 0.928, "seconds": 26.368},
    },
    "breast cancer, interpret": {
        "logistic regression": {"AUC": 0.995, "seconds": 0.006},
        "random forest": {"AUC": 0.992, "seconds": 0.170},
        "XGBoost": {"AUC": 0.992, "seconds": 0.084},
        "EBM": {"AUC": 0.995, "seconds": 2.616},
    },
    "telco, interpret": {
        "logistic regression": {"AUC": 0.849, "seconds": 0.095},
        "random forest": {"AUC": 0.824, "seconds": 0.406},
        "XGBoost": {"AUC": 0.828, "seconds": 0.851},
        "EBM": {"AUC": 0.852, "seconds": 3.675},
    },
}
