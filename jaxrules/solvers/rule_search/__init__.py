"""The search for one rule: objectives say what a conjunction is worth, searches find the best."""

from jaxrules.solvers.rule_search.beam import search_beam, search_beams
from jaxrules.solvers.rule_search.best_first import search_best_first, search_published
from jaxrules.solvers.rule_search.depth_first import search_depth_first
from jaxrules.solvers.rule_search.objectives import (
    CorrectiveDecrease,
    GivenObjective,
    GradientSum,
    NormOfSums,
    Objective,
    Orthogonal,
    SecondOrder,
    SignedWeights,
    SumOverClasses,
)
from jaxrules.solvers.rule_search.pairs import LeftOut, search_pairs
from jaxrules.solvers.rule_search.shortest import shortest_equivalent
from jaxrules.solvers.rule_search.sides import Side, best_of, search_using, sides_of
from jaxrules.solvers.rule_search.space import Found, SearchSpace
from jaxrules.solvers.rule_search.triples import search_triples

__all__ = [
    "CorrectiveDecrease",
    "Found",
    "GivenObjective",
    "GradientSum",
    "LeftOut",
    "NormOfSums",
    "Objective",
    "Orthogonal",
    "SearchSpace",
    "SecondOrder",
    "Side",
    "SignedWeights",
    "SumOverClasses",
    "best_of",
    "search_beam",
    "search_beams",
    "search_best_first",
    "search_depth_first",
    "search_pairs",
    "search_published",
    "search_triples",
    "search_using",
    "shortest_equivalent",
    "sides_of",
]
