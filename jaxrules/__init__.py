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

# Every public name twice: here as type checkers and editors read it, and below as Python does;
# tests/test_import.py compares them.
if TYPE_CHECKING:
    from jaxrules import estimators as estimators
    from jaxrules import losses as losses
    from jaxrules import paths as paths
    from jaxrules.data import datasets as datasets
    from jaxrules.data.table import Feature as Feature
    from jaxrules.data.table import Schema as Schema
    from jaxrules.data.table import Table as Table
    from jaxrules.data.table import as_table as as_table
    from jaxrules.ensembles import boosting as boosting
    from jaxrules.ensembles import glrm as glrm
    from jaxrules.ensembles import lire as lire
    from jaxrules.ensembles import lltboost as lltboost
    from jaxrules.ensembles import ltrnet as ltrnet
    from jaxrules.ensembles import rulefit as rulefit
    from jaxrules.ensembles.extraction import extract_rules as extract_rules
    from jaxrules.ensembles.extraction import tree_rules as tree_rules
    from jaxrules.ensembles.finetune import finetune as finetune
    from jaxrules.ensembles.growing import default_forest as default_forest
    from jaxrules.learning.cross_validation import CrossValidation as CrossValidation
    from jaxrules.learning.sampling import fit_on_sample as fit_on_sample
    from jaxrules.lists import drnet as drnet
    from jaxrules.lists import exact_list as exact_list
    from jaxrules.lists import regression_list as regression_list
    from jaxrules.lists import ssrl as ssrl
    from jaxrules.losses import Loss as Loss
    from jaxrules.models.metrics import accuracy as accuracy
    from jaxrules.models.metrics import complexity as complexity
    from jaxrules.models.metrics import f1 as f1
    from jaxrules.models.metrics import local_support as local_support
    from jaxrules.models.metrics import local_supports as local_supports
    from jaxrules.models.metrics import risk as risk
    from jaxrules.models.metrics import support as support
    from jaxrules.models.metrics import support_ratio as support_ratio
    from jaxrules.models.persistence import load as load
    from jaxrules.models.persistence import save as save
    from jaxrules.models.rule_models import Explanation as Explanation
    from jaxrules.models.rule_models import LinearTerms as LinearTerms
    from jaxrules.models.rule_models import RegressionList as RegressionList
    from jaxrules.models.rule_models import RuleEnsemble as RuleEnsemble
    from jaxrules.models.rule_models import RuleList as RuleList
    from jaxrules.models.rule_models import decision_function as decision_function
    from jaxrules.models.rule_models import explain as explain
    from jaxrules.models.rule_models import predict as predict
    from jaxrules.models.rule_models import predict_proba as predict_proba
    from jaxrules.models.rule_models import to_latex as to_latex
    from jaxrules.models.rule_models import with_weights as with_weights
    from jaxrules.rules.conditions import Condition as Condition
    from jaxrules.rules.conditions import Conjunctions as Conjunctions
    from jaxrules.rules.lowered import Direction as Direction
    from jaxrules.tools.fits import Fit as Fit
    from jaxrules.tools.fits import Status as Status
    from jaxrules.tools.fits import Step as Step
    from jaxrules.tools.placement import rows_over as rows_over
    from jaxrules.tools.runs import Deadline as Deadline
    from jaxrules.tools.runs import Progress as Progress
    from jaxrules.users import plots as plots
    from jaxrules.users import survival as survival
    from jaxrules.users.comparison import Comparison as Comparison
    from jaxrules.users.comparison import Stability as Stability
    from jaxrules.users.comparison import compare as compare
    from jaxrules.users.comparison import stability as stability
    from jaxrules.users.editing import calibrate as calibrate
    from jaxrules.users.editing import refit as refit
    from jaxrules.users.editing import simplify as simplify
    from jaxrules.users.editing import with_threshold as with_threshold
    from jaxrules.users.editing import without_rules as without_rules
    from jaxrules.users.export import to_dataframe as to_dataframe
    from jaxrules.users.export import to_pmml as to_pmml
    from jaxrules.users.export import to_python as to_python
    from jaxrules.users.export import to_sql as to_sql
    from jaxrules.users.importances import ColumnImportance as ColumnImportance
    from jaxrules.users.importances import feature_importance as feature_importance
    from jaxrules.users.importances import local_importance as local_importance
    from jaxrules.users.inspection import Importance as Importance
    from jaxrules.users.inspection import importance as importance
    from jaxrules.users.inspection import operating_point as operating_point
    from jaxrules.users.inspection import rule_report as rule_report
    from jaxrules.users.inspection import scores_by_group as scores_by_group
    from jaxrules.users.monitoring import Drift as Drift
    from jaxrules.users.monitoring import drift as drift
    from jaxrules.users.orientation import oriented as oriented
    from jaxrules.users.reasons import Reason as Reason
    from jaxrules.users.reasons import Reasons as Reasons
    from jaxrules.users.reasons import reasons as reasons
    from jaxrules.users.reporting import Report as Report
    from jaxrules.users.reporting import report as report
    from jaxrules.users.scorecards import ScaledScorecard as ScaledScorecard
    from jaxrules.users.scorecards import Scorecard as Scorecard
    from jaxrules.users.scorecards import scaled_scorecard as scaled_scorecard
    from jaxrules.users.scorecards import scorecard as scorecard

_LOADED = {
    "data.table": "Feature Schema Table as_table",
    "losses": "Loss",
    "models.metrics": "accuracy complexity f1 local_support local_supports risk support "
    "support_ratio",
    "models.persistence": "load save",
    "models.rule_models": "Explanation LinearTerms RegressionList RuleEnsemble RuleList "
    "decision_function explain predict predict_proba to_latex with_weights",
    "models.survival": "",
    "paths": "",
    "rules.conditions": "Condition Conjunctions",
    "rules.lowered": "Direction",
    "tools.fits": "Fit Status Step",
    "tools.placement": "rows_over",
    "tools.runs": "Deadline Progress",
}
"""Names by module that are imported with the package."""
_ON_USE = {
    "ensembles.extraction": "extract_rules tree_rules",
    "ensembles.finetune": "finetune",
    "ensembles.growing": "default_forest",
    "learning.cross_validation": "CrossValidation",
    "learning.sampling": "fit_on_sample",
    "users.comparison": "Comparison Stability compare stability",
    "users.editing": "calibrate refit simplify with_threshold without_rules",
    "users.export": "to_dataframe to_pmml to_python to_sql",
    "users.importances": "ColumnImportance feature_importance local_importance",
    "users.inspection": "Importance importance operating_point rule_report scores_by_group",
    "users.monitoring": "Drift drift",
    "users.orientation": "oriented",
    "users.reasons": "Reason Reasons reasons",
    "users.reporting": "Report report",
    "users.scorecards": "ScaledScorecard Scorecard scaled_scorecard scorecard",
}
"""Names by module that load when they are first used."""
_MODULES = (
    "losses paths estimators data.datasets ensembles.boosting ensembles.glrm ensembles.lire "
    "ensembles.lltboost ensembles.ltrnet ensembles.rulefit lists.drnet lists.exact_list "
    "lists.regression_list lists.ssrl users.plots users.survival"
)
"""Public modules, which load when they are first used; the first two load with the package."""

with whole_imports():
    for _place, _names in _LOADED.items():
        _module = importlib.import_module(f"jaxrules.{_place}")
        globals().update((_name, getattr(_module, _name)) for _name in _names.split())

__version__ = "0.2.0"
__all__ = [place.rpartition(".")[2] for place in _MODULES.split()]
__all__ += " ".join((*_LOADED.values(), *_ON_USE.values())).split()


def __getattr__(name: str) -> Any:
    """Load a name on first use (PEP 562)."""
    with whole_imports():
        for place in _MODULES.split():
            if place.rpartition(".")[2] == name:
                return globals().setdefault(name, importlib.import_module(f"jaxrules.{place}"))
        for place, names in _ON_USE.items():
            if name in names.split():
                module = importlib.import_module(f"jaxrules.{place}")
                return globals().setdefault(name, getattr(module, name))
    elsewhere = "; see jaxrules.estimators" if name.endswith(("Classifier", "Regressor")) else ""
    message = f"module {__name__!r} has no attribute {name!r}{elsewhere}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])  # Python adds a suggestion


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


for _name, _module in list(sys.modules.items()):  # loaded before Ctrl-C ended an earlier import
    if _name.rpartition(".")[0] == __name__:
        globals().setdefault(_name.rpartition(".")[2], _module)
