"""What the stages of a fit work on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from jaxrules.ensembles.boosting.options import BoostingOptions
from jaxrules.ensembles.boosting.ridge import DefaultRidge
from jaxrules.ensembles.boosting.thresholds import Thresholds
from jaxrules.ensembles.candidates import Candidates
from jaxrules.ensembles.noise import Ridge
from jaxrules.ensembles.size import nats_among
from jaxrules.learning.training import TrainingData
from jaxrules.models.rule_models import RuleEnsemble
from jaxrules.rules.constraints import Constraints
from jaxrules.solvers.rule_search import Found
from jaxrules.solvers.rule_search.space import SearchSpace
from jaxrules.tools.fits import Settings
from jaxrules.tools.runs import Run

_CONDITIONS = 2
"""The conditions of a rule that count as chosen: further ones have few rows left to tell apart."""


@dataclass(frozen=True)
class BoostingTask:
    """The data and the propositions of a fit.

    Attributes:
        settings: the settings that the model keeps.
        sample: the rows that the propositions come from, None for all.
        sizes: the values of `max_rules` of a path.
        joint: whether more than two classes are fitted together.
        find: the search for one rule.
        constraints: the constraints on the rules.
        ridge: the one that the data chose, None if it was given.
        sketch: the model of a sample of the rows, None without one.
        thresholds: the search over all thresholds, None if rules use the cut points only.
        trial: whether only the ridge is wanted: a fit that leaves out pairs of columns leaves out
            more.
        interactions: of one output, for every side the pairs of partitions that matter together,
            once a stage has asked.
    """

    data: TrainingData
    candidates: Candidates
    options: BoostingOptions
    run: Run
    settings: Settings
    sample: int | None
    sizes: range
    joint: bool
    find: Callable[..., Found]
    constraints: Constraints
    ridge: DefaultRidge | None = None
    sketch: RuleEnsemble | None = None
    thresholds: Thresholds | None = None
    trial: bool = False
    interactions: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def with_options(self, ridge: DefaultRidge | None = None, **options: Any) -> BoostingTask:
        """The same task with other options, and a ridge that the data chose."""
        return replace(self, options=replace(self.options, **options), ridge=ridge)

    def on(self, data: TrainingData) -> BoostingTask:
        """The same propositions on other rows, without other thresholds."""
        # Sorted columns belong to their rows.
        candidates = self.candidates.on(data)
        return replace(self, data=data, candidates=candidates, thresholds=None, interactions={})

    @functools.cached_property
    def nats_of_choice(self) -> float:
        """By how many nats a rule is dearer, and gains more by chance, than among a few columns."""
        longest = self.options.longest(self.candidates.n_searched)
        conditions = _CONDITIONS if longest is None else min(longest, _CONDITIONS)
        return nats_among(self.candidates.n_columns, conditions)

    def leaves_out_pairs(self, space: SearchSpace) -> bool:
        """Whether the exhaustive search for pairs has too many columns to compare all of them."""
        options, n = self.options, len(space.partitions or ())
        most = options.pairs(space.activations.n_patterns)
        exhaustive = options.search == "optimal" and options.max_evaluations == "auto"
        pairs = exhaustive and options.longest(len(space)) == 2
        return pairs and most is not None and math.comb(n + 1, 2) > most

    def ridge_of_weights(self, rules: int, share: float = 1.0) -> Ridge:
        """The ridge of the reported weights of so many rules, or this share of it if the data chose
        it.
        """
        if self.ridge is None:
            return Ridge(self.options.l2_penalty or 0.0)
        return self.ridge.of_weights(rules, share)
