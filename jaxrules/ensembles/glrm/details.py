"""What a fit reports beside its model."""

from __future__ import annotations

from dataclasses import dataclass

from jaxrules.tools.fits import Details


@dataclass(frozen=True, kw_only=True, eq=False)
class GLRMDetails(Details):
    """What a fit reports beside its model.

    Attributes:
        rounds: solutions of the master problem.
        n_candidates: rules in the last master problem.
        n_propositions: the propositions that rules are built from.
        rule_penalty, condition_penalty: lambda_0 and lambda_1 of the weights.
        chosen: why the data chose the rule penalty that rules were found with, how many of them
            were dropped, and the penalty of the others; empty if it was given and none was dropped.
        dropped: the number of rules that `eliminate` dropped.
        sample: the number of rows that the rules come from; None for all. `rounds` and
            `n_candidates` are then those of the weights on all rows.
    """

    rounds: int
    n_candidates: int
    n_propositions: int
    rule_penalty: float
    condition_penalty: float
    chosen: str = ""
    dropped: int = 0
    sample: int | None = None
