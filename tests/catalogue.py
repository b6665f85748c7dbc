"""The catalogue of learners: how to call each one, which searches and losses it has, and what its
fits claim.

A new learner adds one entry to `LEARNERS`, and a function to claims.py;
test_contracts.py does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import claims
import jaxrules as jr
from claims import Claims
from problems import LOSSES, NOISY, X, pool


@dataclass(frozen=True, eq=False)
class Search:
    """One way to search.

    Attributes:
        losses: those that it accepts.
        settings: its arguments.
        exact: it proves its optimum.
        draws_rows: it draws rows at random, for a forest or for folds, so that a repeated row is
            not the same as a row of weight two.
    """

    losses: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = False
    draws_rows: bool = False


@dataclass(frozen=True, eq=False)
class Learner:
    """A learner: how to call it cheaply, its searches, and independent code for what its fits
    claim.

    Attributes:
        fit: the function.
        settings: arguments of every fit.
        searches: by name; every search option of the learner is in one of them.
        claims: (settings, fit) -> what the fit claims, next to what independent code finds.
        loss: the name of the argument that sets the loss; None if there is none.
        models: what they are: one conjunction may explain labels, but not numbers, to linear ones;
            lists have no scores, and no output per class.
        together: it fits several classes together, not one against the rest.
        path: the function with the arguments of `fit` that returns the fits
            with 1, ..., max_rules rules.
    """

    name: str
    fit: Callable[..., jr.Fit[Any]]
    settings: Mapping[str, Any]
    searches: Mapping[str, Search]
    claims: Callable[[Mapping[str, Any], jr.Fit[Any]], Claims]
    loss: str | None = "loss"
    models: Literal["ensembles", "lists", "linear"] = "ensembles"
    together: bool = False
    path: Callable[..., list[jr.Fit[Any]]] | None = None


BOTH, ANY = ("logistic", "squared"), ("logistic", "squared", "exponential", "poisson")
RECIPE = {"per_unit": True, "corrective": True, "intercept": True}
LEARNERS = {
    learner.name: learner
    for learner in (
        Learner(
            "rulefit",
            jr.rulefit.fit,
            {"l1_penalty": 0.02, "rules": pool()},
            {
                "": Search(ANY, exact=True),
                "linear": Search(BOTH, {"linear_terms": True}, exact=True),
                "forest": Search(BOTH, {"rules": None}, draws_rows=True),
                "cross-validation": Search(
                    BOTH, {"l1_penalty": None, "n_folds": 2}, exact=True, draws_rows=True
                ),
            },
            claims.rulefit,
        ),
        Learner(
            "lire",
            jr.lire.fit,
            {"global_penalty": 0.01, "local_penalty": 0.02, "rules": pool(), "restarts": 2},
            {
                "combo": Search(ANY),
                "optimal": Search(ANY, {"search": "optimal"}, exact=True),
                "forest": Search(("exponential",), {"rules": None}, draws_rows=True),
            },
            claims.lire,
        ),
        Learner(
            "lire.published",
            jr.lire.published,
            {"global_penalty": 0.01, "local_penalty": 0.02, "rules": pool()},
            {
                "": Search(("exponential",)),
                "forest": Search(("exponential",), {"rules": "forest"}, draws_rows=True),
            },
            claims.lire_published,
            None,
        ),
        Learner(
            "lire.optimal",
            jr.lire.optimal,
            {
                "global_penalty": 0.03,
                "l2_penalty": 4.0,
                "max_rules": 2,
                "max_length": 2,
                "max_cut_points": None,
            },
            {"": Search(ANY, exact=True)},
            claims.lire_optimal,
        ),
        Learner(
            "boosting.published",
            jr.boosting.published,
            {"max_rules": 3},
            {"": Search(ANY, exact=True)},
            claims.boosting_published,
        ),
        Learner(
            "boosting",
            jr.boosting.fit,
            {"max_rules": 3, **jr.boosting.PAPER},
            {
                "optimal": Search(ANY, exact=True),
                "ridge by noise": Search(ANY, {"l2_penalty": None}),
                "greedy": Search(ANY, {"search": "greedy"}),
                "beam": Search(ANY, {"search": "beam"}),
                **{
                    f"{objective}-{search}": Search(
                        BOTH, {"objective": objective, "search": search}, search == "optimal"
                    )
                    for objective in ("gradient_sum", "orthogonal")
                    for search in ("optimal", "greedy", "beam")
                },
                "corrective": Search(ANY, {"corrective": True, "intercept": True}),
                "tolerance": Search(
                    BOTH, {"objective": "gradient_sum", "objective_tolerance": 0.3}, exact=True
                ),
                "tgb": Search(
                    ANY,
                    {
                        "objective": "gradient_sum",
                        "search": "greedy",
                        "corrective": True,
                        "intercept": True,
                        "objective_tolerance": 0.3,
                    },
                ),
                "per unit": Search(ANY, RECIPE, exact=True),
                "pairs": Search(
                    BOTH,
                    {**RECIPE, "objective": "corrective_decrease", "max_length": 2},
                    exact=True,
                ),
                "eliminate": Search(BOTH, {**RECIPE, "search": "beam", "eliminate": True}),
                "directions": Search(
                    ANY,
                    {
                        **RECIPE,
                        "objective": "corrective_decrease",
                        "max_length": 2,
                        "max_nonzeros": 3,
                    },
                ),
                "linear": Search(
                    ANY,
                    {
                        **RECIPE,
                        "objective": "corrective_decrease",
                        "max_length": 2,
                        "linear_terms": True,
                    },
                    exact=True,
                ),
                **{
                    f"decrease-{search}": Search(
                        BOTH,
                        {**RECIPE, "objective": "corrective_decrease", "search": search},
                        search == "optimal",
                    )
                    for search in ("optimal", "greedy", "beam")
                },
            },
            claims.boosting,
            path=jr.boosting.path,
        ),
        Learner(
            "lltboost",
            jr.lltboost.fit,
            {"max_rules": 3},
            {
                "": Search(ANY),
                "options": Search(
                    ("squared",),
                    {
                        "refit_propositions": False,
                        "refit_on_all_rows": False,
                        "refine_thresholds": True,
                        "axis_parallel": True,
                        "beam_width": 2,
                    },
                ),
            },
            claims.lltboost,
            path=jr.lltboost.path,
        ),
        Learner(
            "ltrnet",
            jr.ltrnet.fit,
            {"max_rules": 4, "max_length": 2, "l1_penalty": 1e-3},
            {
                "soft": Search(BOTH),
                "straight_through": Search(BOTH, {"training": "straight_through"}),
            },
            claims.ltrnet,
            together=True,
        ),
        Learner(
            "glrm",
            jr.glrm.fit,
            {"rule_penalty": 0.02},
            {
                "beam": Search(ANY),
                "exact": Search(ANY, {"pricing": "exact"}, exact=True),
                "linear": Search(BOTH, {"linear_terms": True}),
            },
            claims.glrm,
        ),
        Learner(
            "paths",
            jr.paths.fit,
            {"steps": 3, "restarts": 3},
            {
                "exact": Search((*BOTH, "poisson"), exact=True),
                "local": Search((*BOTH, "poisson"), {"method": "local"}),
                "mip": Search(("squared",), {"method": "mip"}, exact=True),
                **{
                    kind: Search(("squared",), {"integer_steps": kind}, exact=True)
                    for kind in ("any", "unit")
                },
                "end": Search(("squared",), {"end": claims.END}, exact=True),
            },
            claims.paths,
            "cost",
            "linear",
        ),
        Learner(
            "ssrl",
            jr.ssrl.fit,
            {"max_rules": 2, "literal_penalty": 0.5},
            {
                "beam": Search(("zero-one",)),
                "exact": Search(("zero-one",), {"subproblem": "exact", "max_length": 3}),
                "read": Search(("zero-one",), {"local_penalty": 0.02}),
                "penalty by noise": Search(("zero-one",), {"literal_penalty": None}),
                "certificate": Search(("zero-one",), {"certificate": True, "max_length": 3}, True),
            },
            claims.ssrl,
            None,
            "lists",
        ),
        Learner(
            "ssrl.published",
            jr.ssrl.published,
            {"max_rules": 2, "literal_penalty": 0.5},
            {"": Search(("zero-one",))},
            claims.ssrl,
            None,
            "lists",
        ),
        Learner(
            "drnet",
            jr.drnet.fit,
            {"max_rules": 5, "iterations": 2000},
            {"": Search(("zero-one",))},
            claims.drnet,
            None,
            "lists",
        ),
        Learner(
            "regression_list",
            jr.regression_list.fit,
            {"max_rules": 2, "literal_penalty": 0.02, "min_support": 0.0, "max_cut_points": None},
            {
                "": Search(("squared",)),
                "absolute": Search(("squared",), {"loss": "absolute"}),
                "read": Search(("squared",), {"local_penalty": 0.01}),
                "width": Search(("squared",), {"beam_width": 2, "local_search": False}),
            },
            claims.regression_list,
            None,
            "lists",
        ),
        Learner(
            "exact_list",
            jr.exact_list.fit,
            {
                "max_rules": 2,
                "literal_penalty": 0.5,
                "max_length": 5,
                "min_support": 0.0,
                "max_evaluations": None,
            },
            {
                "search": Search(("zero-one",), exact=True),
                "mip": Search(("zero-one",), {"method": "mip", "max_length": 1}, exact=True),
                "penalty by noise": Search(("zero-one",), {"literal_penalty": None}, exact=True),
                "read": Search(("zero-one",), {"local_penalty": 0.02}, exact=True),
            },
            claims.ssrl,
            None,
            "lists",
        ),
    )
}


@dataclass(frozen=True, eq=False)
class Case:
    """One learner with one search and one loss."""

    learner: Learner
    search: str
    loss: str

    def __str__(self) -> str:
        return "-".join(filter(None, (self.learner.name, self.search, self.loss)))

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of the fit."""
        return {
            "missing": "own_category",
            **self.learner.settings,
            **self.learner.searches[self.search].settings,
            **({} if self.learner.loss is None else {self.learner.loss: self.loss}),
        }

    @property
    def target(self) -> str:
        """The kind of target that the loss needs."""
        return LOSSES[self.loss].target

    @property
    def exact(self) -> bool:
        return self.learner.searches[self.search].exact

    @property
    def draws_rows(self) -> bool:
        return self.learner.searches[self.search].draws_rows

    def fit(self, y: Any = None, **changes: Any) -> jr.Fit[Any]:
        """A fit of the noisy target, or of another one."""
        return self.learner.fit(
            X, NOISY[self.target] if y is None else y, **self.settings | changes
        )

    def claims(self, fit: jr.Fit[Any]) -> Claims:
        """What a fit of the noisy target claims."""
        return self.learner.claims(self.settings, fit)


CASES = tuple(
    Case(learner, name, loss)
    for learner in LEARNERS.values()
    for name, search in learner.searches.items()
    for loss in search.losses
)
