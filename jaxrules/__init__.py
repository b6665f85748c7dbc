"""Interpretable rule models on JAX: rule ensembles, optimal rule boosting,
rule lists, coordinate paths.

Every learner is a module with ``fit(X, y, ...)`` that returns a `Fit`; ``fit.model`` is an
immutable pytree; `predict`, `predict_proba`, `decision_function` and `explain` work on all models.

Functions that load and query models are imported with the package. Learners, data sets and tools
load when their name is first used, so that prediction alone need not wait for them.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from jaxrules.tools.interrupts import whole_imports

with whole_imports():
    from jaxrules import losses, paths
    from jaxrules.data.table import Feature, Schema, Table, as_table
    from jaxrules.losses import Loss
    from jaxrules.models.metrics import (
        accuracy,
        complexity,
        local_support,
        local_supports,
        risk,
        support,
    )
    from jaxrules.models.persistence import load, save
    from jaxrules.models.rule_models import (
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
    from jaxrules.rules.conditions import Condition, Conjunctions
    from jaxrules.rules.lowered import Direction
    from jaxrules.tools.fits import Fit, Status, Step
    from jaxrules.tools.placement import rows_over
    from jaxrules.tools.runs import Deadline, Progress

if TYPE_CHECKING:
    from jaxrules import estimators
    from jaxrules.data import datasets
    from jaxrules.ensembles import boosting, glrm, lire, lltboost, ltrnet, rulefit
    from jaxrules.ensembles.extraction import extract_rules, tree_rules
    from jaxrules.ensembles.finetune import finetune
    from jaxrules.ensembles.growing import default_forest
    from jaxrules.learning.cross_validation import CrossValidation
    from jaxrules.learning.sampling import fit_on_sample
    from jaxrules.lists import drnet, exact_list, ssrl
    from jaxrules.users import plots
    from jaxrules.users.comparison import Comparison, Stability, compare, stability
    from jaxrules.users.editing import calibrate, refit, simplify, with_threshold, without_rules
    from jaxrules.users.export import to_dataframe, to_pmml, to_python, to_sql
    from jaxrules.users.importances import ColumnImportance, feature_importance, local_importance
    from jaxrules.users.inspection import (
        Importance,
        importance,
        operating_point,
        rule_report,
        scores_by_group,
    )
    from jaxrules.users.reporting import Report, report
    from jaxrules.users.scorecards import Scorecard, scorecard

# The same imports for `__getattr__`; tests/test_import.py compares them.
_MODULES = (
    *(
        "jaxrules.data.datasets",
        "jaxrules.estimators",
        "jaxrules.ensembles.lire",
        "jaxrules.users.plots",
    ),
    *(
        "jaxrules.ensembles." + name
        for name in ("boosting", "glrm", "lltboost", "ltrnet", "rulefit")
    ),
    *("jaxrules.lists." + name for name in ("drnet", "exact_list", "ssrl")),
)
_NAMES = {
    "jaxrules.users.comparison": ("Comparison", "Stability", "compare", "stability"),
    "jaxrules.learning.cross_validation": ("CrossValidation",),
    "jaxrules.users.editing": ("calibrate", "refit", "simplify", "with_threshold", "without_rules"),
    "jaxrules.ensembles.extraction": ("extract_rules", "tree_rules"),
    "jaxrules.ensembles.finetune": ("finetune",),
    "jaxrules.ensembles.growing": ("default_forest",),
    "jaxrules.users.export": ("to_dataframe", "to_pmml", "to_python", "to_sql"),
    "jaxrules.users.importances": ("ColumnImportance", "feature_importance", "local_importance"),
    "jaxrules.users.inspection": (
        "Importance",
        "importance",
        "operating_point",
        "rule_report",
        "scores_by_group",
    ),
    "jaxrules.users.reporting": ("Report", "report"),
    "jaxrules.learning.sampling": ("fit_on_sample",),
    "jaxrules.users.scorecards": ("Scorecard", "scorecard"),
}

__version__ = "0.2.0"

__all__ = [
    "ColumnImportance",
    "Comparison",
    "Condition",
    "Conjunctions",
    "CrossValidation",
    "Deadline",
    "Direction",
    "Explanation",
    "Feature",
    "Fit",
    "Importance",
    "LinearTerms",
    "Loss",
    "Progress",
    "Report",
    "RuleEnsemble",
    "RuleList",
    "Schema",
    "Scorecard",
    "Stability",
    "Status",
    "Step",
    "Table",
    "accuracy",
    "as_table",
    "boosting",
    "calibrate",
    "compare",
    "complexity",
    "datasets",
    "decision_function",
    "default_forest",
    "drnet",
    "estimators",
    "exact_list",
    "explain",
    "extract_rules",
    "feature_importance",
    "finetune",
    "fit_on_sample",
    "glrm",
    "importance",
    "lire",
    "lltboost",
    "load",
    "local_importance",
    "local_support",
    "local_supports",
    "losses",
    "ltrnet",
    "operating_point",
    "paths",
    "plots",
    "predict",
    "predict_proba",
    "refit",
    "report",
    "risk",
    "rows_over",
    "rule_report",
    "rulefit",
    "save",
    "scorecard",
    "scores_by_group",
    "simplify",
    "ssrl",
    "stability",
    "support",
    "to_dataframe",
    "to_latex",
    "to_pmml",
    "to_python",
    "to_sql",
    "tree_rules",
    "with_threshold",
    "with_weights",
    "without_rules",
]


def __getattr__(name: str) -> Any:
    """Load a name on first use (PEP 562)."""
    with whole_imports():
        for module in _MODULES:
            if module.rpartition(".")[2] == name:
                return globals().setdefault(name, importlib.import_module(module))
        for module, names in _NAMES.items():
            if name in names:
                return globals().setdefault(name, getattr(importlib.import_module(module), name))
    elsewhere = "; see jaxrules.estimators" if name.endswith(("Classifier", "Regressor")) else ""
    message = f"module {__name__!r} has no attribute {name!r}{elsewhere}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])  # Python adds a suggestion


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


for _name, _module in list(sys.modules.items()):  # loaded before Ctrl-C ended an earlier import
    if _name.rpartition(".")[0] == __name__:
        globals().setdefault(_name.rpartition(".")[2], _module)
