"""What a fit reports beside its model: how each rule was found, and how the ridge was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxrules.ensembles.boosting.pruning import Pruning
from jaxrules.tools.fits import Details, Status


@dataclass(frozen=True)
class BoostingStage:
    """How one stage found its rule.

    Attributes:
        objective: the value of the stage's objective, the rule's gain; divided by 1 + length if
            `per_unit`, and by (1 + objective_tolerance)^length.
        bound: proved upper bound over all conjunctions; None for greedy and beam search, and with
            `max_nonzeros` above 1, except for rules of one condition on at most two columns
            (`max_length=1, max_nonzeros=2`, no `monotone`, up to a few thousand rows). With the
            default cut points it holds for single conditions over all values of numeric columns,
            and for longer rules over the cut points and the thresholds of
            `jaxrules.ensembles.boosting.thresholds`; a threshold that is neither counts after its
            price. A finished search includes its tolerance: objectives within 1e-10 of each other,
            relative, count as ties.
        axis_parallel_bound: proved upper bound over all conjunctions of conditions on single
            columns; None for greedy and beam search. A rule with a direction may exceed it.
        status: OPTIMAL, CONVERGED (greedy or beam search, or an approximation below 1), TIME_LIMIT,
            MAX_ITERATIONS (max_evaluations) or INTERRUPTED.
        weight: the rule's weight when it was added; one per class for classes fitted together.
        length: number of propositions; 0 for a linear term.
        linear_term: the column of a linear term, empty for a rule.
        evaluations: how often the search for conditions on single columns evaluated the objective.
        counts: search nodes, and how often each pruning rule applied.
        seconds: duration of the search.
    """

    objective: float
    bound: float | None
    status: Status
    weight: float | tuple[float, ...]
    length: int
    evaluations: int
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)
    axis_parallel_bound: float | None = None
    linear_term: str = ""

    @property
    def gap(self) -> float | None:
        """(bound - objective) / objective, or None without a certificate."""
        if self.bound is None:
            return None
        # A stage without any gain has the objective 0.
        return abs(self.bound - self.objective) / max(self.objective, 1e-12)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostingDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        stages: one per rule: objective, bound, gap, evaluations, pruning counts.
        propositions: the number of propositions searched; the bounds cover rules made of these.
        gains: by how much each rule raised the log-likelihood, beyond what a smaller ridge on the
            rules before would have raised it, see `jaxrules.ensembles.size`; empty for a
            loss without a likelihood, and without refits.
        prices: by how much each rule had to raise it, likewise; the sum of the differences is
            greatest for the number of rules that `max_rules="auto"` takes.
        risks: the regularised risk after 0, 1, ... stages, with the ridge of the search.
        sample: the number of rows that the propositions come from; None for all.
        l2_penalty: the ridge of the weights.
        chosen: why the data chose this ridge; empty if it was given.
        pruning: what `prune` cost, None without it. The risks are those before.
    """

    stages: tuple[BoostingStage, ...]
    propositions: int
    risks: tuple[float, ...]
    gains: tuple[float, ...]
    prices: tuple[float, ...]
    sample: int | None
    l2_penalty: float
    chosen: str = ""
    pruning: Pruning | None = None

    @property
    def told_of_pool(self) -> str:
        left_out = max((stage.counts.get("pairs_left_out", 0) for stage in self.stages), default=0)
        advice = "max_evaluations=None compares all."
        pairs = f"A stage left out up to {left_out} pairs of columns; {advice}"
        return " ".join(filter(None, [super().told_of_pool, pairs * bool(left_out)]))

    @property
    def proved_stages(self) -> tuple[int, int]:
        """The number of stages whose rule is proved to be the best, and the number of all
        stages.
        """
        return sum(stage.status is Status.OPTIMAL for stage in self.stages), len(self.stages)
