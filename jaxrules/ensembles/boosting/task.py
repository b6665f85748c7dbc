"""What the stages of a fit work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from jaxrules.constraints import Constraints
from jaxrules.ensembles.boosting.options import Options
from jaxrules.ensembles.candidates import Candidates
from jaxrules.fits import Settings
from jaxrules.models import RuleEnsemble
from jaxrules.runs import Run
from jaxrules.solvers.rule_search import Found
from jaxrules.training import TrainingData


@dataclass(frozen=True)
class Task:
    """The data and the propositions of a fit.

    Attributes:
        settings: the settings that the model keeps.
        sample: the rows that the propositions come from, None for all.
        joint: whether more than two classes are fitted together.
        find: the search for one rule.
        constraints: the constraints on the rules.
        chosen: why the data chose the ridge.
        sketch: the model of a sample of the rows, None without one.
    """

    data: TrainingData
    candidates: Candidates
    options: Options
    run: Run
    settings: Settings
    sample: int | None
    joint: bool
    find: Callable[..., Found]
    constraints: Constraints
    chosen: str = ""
    sketch: RuleEnsemble | None = None

    def with_ridge(self, ridge: float, max_rules: int | None, why: str = "") -> Task:
        """The same task with a ridge chosen from the data."""
        return replace(
            self,
            options=replace(self.options, l2_penalty=ridge, max_rules=max_rules),
            settings=tuple((dict(self.settings) | {"l2_penalty": ridge}).items()),
            chosen=why,
        )
