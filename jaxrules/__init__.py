"""Interpretable rule models on JAX: rule ensembles, optimal rule boosting, rule lists, coordinate paths.

Every learner is a module with ``fit(X, y, ...)`` that returns a `Fit`; ``fit.model`` is an immutable
pytree; `predict`, `predict_proba`, `decision_function` and `explain` work on all models.
"""

from jaxrules import datasets, losses, paths, plots
from jaxrules.comparison import Comparison, Stability, compare, stability
from jaxrules.conditions import Condition, Conjunctions
from jaxrules.ensembles import boosting, glrm, lire, lltboost, ltrnet, rulefit
from jaxrules.ensembles.extraction import default_forest, extract_rules, tree_rules
from jaxrules.ensembles.finetune import finetune
from jaxrules.export import to_dataframe, to_pmml, to_python, to_sql
from jaxrules.inspection import Importance, importance, operating_point, rule_report, scores_by_group
from jaxrules.lists import drnet, exact_list, ssrl
from jaxrules.lowered import Direction
from jaxrules.metrics import accuracy, complexity, local_support, local_supports, risk, support
from jaxrules.models import (
    Explanation,
    LinearTerms,
    RuleEnsemble,
    RuleList,
    decision_function,
    explain,
    predict,
    predict_proba,
    to_latex,
    with_weights,
)
from jaxrules.persistence import load, save
from jaxrules.results import Deadline, Fit, Progress, Status, Step
from jaxrules.table import Feature, Schema, Table, as_table

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Condition",
    "Conjunctions",
    "Deadline",
    "Direction",
    "Explanation",
    "Feature",
    "Fit",
    "Importance",
    "LinearTerms",
    "Progress",
    "RuleEnsemble",
    "RuleList",
    "Schema",
    "Stability",
    "Status",
    "Step",
    "Table",
    "accuracy",
    "as_table",
    "boosting",
    "compare",
    "complexity",
    "datasets",
    "decision_function",
    "default_forest",
    "drnet",
    "exact_list",
    "explain",
    "extract_rules",
    "finetune",
    "glrm",
    "importance",
    "lire",
    "lltboost",
    "load",
    "local_support",
    "local_supports",
    "losses",
    "ltrnet",
    "operating_point",
    "paths",
    "plots",
    "predict",
    "predict_proba",
    "risk",
    "rule_report",
    "rulefit",
    "save",
    "scores_by_group",
    "ssrl",
    "stability",
    "support",
    "to_dataframe",
    "to_latex",
    "to_pmml",
    "to_python",
    "to_sql",
    "tree_rules",
    "with_weights",
]
